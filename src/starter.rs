//! The starter library, compiled into the binary: real SRE and code-review prompts in English and Korean.

use include_dir::{Dir, include_dir};

use crate::git::NewFile;
use crate::git::history::Facts;

static TEMPLATES: Dir<'static> = include_dir!("$CARGO_MANIFEST_DIR/templates");

/// The language of the starter library.
#[derive(Debug, Clone, Copy, PartialEq, Eq, clap::ValueEnum)]
pub enum Language {
    /// English.
    En,
    /// Korean.
    Ko,
}

impl Language {
    /// What a locale such as `ko_KR.UTF-8` asks for; English where it asks for neither.
    pub fn of_locale(locale: Option<&str>) -> Self {
        if locale.is_some_and(|l| {
            l == "ko" || l.starts_with("ko_") || l.starts_with("ko.") || l.starts_with("ko-")
        }) {
            Self::Ko
        } else {
            Self::En
        }
    }

    fn folder(self) -> &'static str {
        match self {
            Self::En => "en",
            Self::Ko => "ko",
        }
    }

    /// The message of the first commit.
    pub fn commit_message(self) -> &'static str {
        match self {
            Self::En => {
                "Starter library\n\nSRE and code-review prompts to begin with: edit them, or push a library of your own.\n"
            }
            Self::Ko => {
                "시작 라이브러리\n\nSRE와 코드 리뷰 프롬프트입니다. 고쳐 쓰거나 팀의 라이브러리를 push하세요.\n"
            }
        }
    }
}

/// Whether a commit is a starter library as it was made: its first push may replace it.
pub fn is_untouched(commit: &Facts) -> bool {
    commit.parents == 0
        && commit.committer_email == crate::git::SERVER_EMAIL
        && [Language::En, Language::Ko]
            .iter()
            .any(|language| language.commit_message().trim() == commit.message.trim())
}

/// The files of the starter library, by path.
pub fn files(language: Language) -> Vec<NewFile<'static>> {
    let mut out = Vec::new();
    if let Some(folder) = TEMPLATES.get_dir(language.folder()) {
        collect(folder, language.folder(), &mut out);
    }
    out.sort_by(|a, b| a.path.cmp(b.path));
    out
}

fn collect(folder: &'static Dir<'static>, root: &str, out: &mut Vec<NewFile<'static>>) {
    for file in folder.files() {
        let path = file.path().strip_prefix(root).ok().and_then(|p| p.to_str());
        if let Some(path) = path {
            out.push(NewFile {
                path,
                bytes: file.contents(),
            });
        }
    }
    for inner in folder.dirs() {
        collect(inner, root, out);
    }
}
