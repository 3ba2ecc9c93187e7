//! Histories made with `git fast-import`: commits with whole trees, whatever a gate would say of them.

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::io::Write as _;
use std::path::PathBuf;
use std::process::{Command, Stdio};

use cuebook::git::Repository;
use cuebook::history::History;
use cuebook::registry::numbering::{Numbering, Progress};
use tempfile::TempDir;

/// The files of a commit by path.
pub(crate) type Files = BTreeMap<String, String>;

/// A commit of main.
#[derive(Debug, Clone, Default)]
pub(crate) struct Made {
    /// All of its files.
    pub(crate) files: Files,
    /// Whether it has a second parent, a commit of another branch with other files.
    pub(crate) merge: bool,
}

/// A repository whose main has these commits, and their ids.
pub(crate) struct Histories {
    folder: TempDir,
    pub(crate) ids: Vec<String>,
}

fn run(command: &mut Command, input: &[u8]) -> String {
    let mut child = command
        .env("GIT_CONFIG_GLOBAL", "/dev/null")
        .env("GIT_CONFIG_NOSYSTEM", "1")
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    child.stdin.take().unwrap().write_all(input).unwrap();
    let output = child.wait_with_output().unwrap();
    assert!(output.status.success(), "{command:?}");
    String::from_utf8(output.stdout).unwrap()
}

impl Histories {
    pub(crate) fn new(commits: &[Made]) -> Self {
        let folder = TempDir::new().unwrap();
        let path = folder.path().join("library.git");
        run(
            Command::new("git")
                .args(["init", "--quiet", "--bare", "--initial-branch=main"])
                .arg(&path),
            b"",
        );
        let mut stream = String::new();
        let data = |stream: &mut String, text: &str| {
            write!(stream, "data {}\n{text}\n", text.len()).unwrap();
        };
        for (i, made) in commits.iter().enumerate() {
            // times go backwards on purpose: nothing may rest on them
            let when = 1_700_000_000 - i * 60;
            let second = made.merge && i > 0;
            if second {
                writeln!(
                    stream,
                    "commit refs/heads/side{i}\nmark :{}\ncommitter S <s@x> {when} +0000",
                    100_000 + i
                )
                .unwrap();
                data(&mut stream, "on a branch");
                writeln!(stream, "from :{i}").unwrap();
                stream.push_str("M 100644 inline prompts/on-a-branch.md\n");
                data(&mut stream, "only here");
            }
            let subject = format!("commit {}", i + 1);
            writeln!(
                stream,
                "commit refs/heads/main\nmark :{}\ncommitter Someone <s@x> {when} +0000",
                i + 1
            )
            .unwrap();
            data(&mut stream, &subject);
            if i > 0 {
                writeln!(stream, "from :{i}").unwrap();
            }
            if second {
                writeln!(stream, "merge :{}", 100_000 + i).unwrap();
            }
            stream.push_str("deleteall\n");
            for (file, text) in &made.files {
                writeln!(stream, "M 100644 inline {file}").unwrap();
                data(&mut stream, text);
            }
        }
        stream.push_str("done\n");
        let mut import = Command::new("git");
        import
            .current_dir(&path)
            .args(["fast-import", "--quiet", "--done", "--date-format=raw"]);
        run(&mut import, stream.as_bytes());
        let mut list = Command::new("git");
        list.current_dir(&path)
            .args(["rev-list", "--first-parent", "--reverse", "main"]);
        let ids = run(&mut list, b"").lines().map(str::to_owned).collect();
        Self { folder, ids }
    }

    pub(crate) fn path(&self) -> PathBuf {
        self.folder.path().join("library.git")
    }

    pub(crate) fn repository(&self) -> Repository {
        Repository::open(&self.path()).unwrap()
    }

    /// Counted from the first commit.
    pub(crate) fn cold(&self, at: usize) -> Numbering {
        Numbering::cold(&self.repository(), &self.ids[at], &Progress::default()).unwrap()
    }

    /// The versions as `name: commit numbers`, and where each was.
    pub(crate) fn shown(&self, history: &History) -> BTreeMap<String, Vec<(usize, String)>> {
        history
            .names()
            .map(|(name, numbered)| {
                let versions = numbered
                    .versions
                    .iter()
                    .map(|version| {
                        let id = version.commit.hex();
                        let at = self.ids.iter().position(|known| **known == *id).unwrap();
                        (at, version.path.to_string())
                    })
                    .collect();
                (name.to_string(), versions)
            })
            .collect()
    }
}
