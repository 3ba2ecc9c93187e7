//! What a new file begins with: a prompt of the starter library with what it needs, or an outline.

use std::collections::BTreeMap;

use serde::Serialize;

use crate::git::NewFile;
use crate::prompt::Limits;
use crate::prompt::parse::prompt_file;
use crate::starter::{Language, files};

use super::super::Lang;
use super::place::Kind;

/// A prompt that may be begun with.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub(super) struct Starter {
    /// What names it: `en/prompts/sre/incident-triage.md`.
    pub(super) id: String,
    /// Its name.
    pub(super) name: String,
    /// Its folder under `prompts/`.
    pub(super) folder: String,
    /// Title for people.
    pub(super) title: String,
    /// What it is for.
    pub(super) description: String,
}

fn language(lang: Lang) -> (Language, &'static str) {
    match lang {
        Lang::En => (Language::En, "en"),
        Lang::Ko => (Language::Ko, "ko"),
    }
}

/// The prompts of the starter library in a language, by folder and name.
pub(super) fn starters(lang: Lang) -> Vec<Starter> {
    let (language, tag) = language(lang);
    let limits = Limits::default();
    let prompts = files(language).into_iter();
    prompts
        .filter(|file| Kind::of(file.path) == Some(Kind::Prompt))
        .filter_map(|file| {
            let parsed = prompt_file(&file.path.into(), file.bytes, &limits, &mut Vec::new())?;
            Some(Starter {
                id: format!("{tag}/{}", file.path),
                name: parsed.name.to_string(),
                folder: parsed.folder,
                title: parsed.front.title.unwrap_or_default(),
                description: parsed.front.description.unwrap_or_default(),
            })
        })
        .collect()
}

/// A starter's text, and the files it needs by path: partials, also through others, and values.
pub(super) fn begin(id: &str) -> Option<(String, BTreeMap<String, String>)> {
    let (tag, path) = id.split_once('/')?;
    let (language, _) = language(Lang::of_tag(tag).filter(|lang| lang.tag() == tag)?);
    let all = files(language);
    let text = |path: &str| {
        let file = all
            .iter()
            .find(|file: &&NewFile<'static>| file.path == path)?;
        Some(std::str::from_utf8(file.bytes).ok()?.to_owned())
    };
    let main = text(path).filter(|_| Kind::of(path) == Some(Kind::Prompt))?;
    let mut needs = BTreeMap::new();
    let mut open = vec![main.clone()];
    while let Some(next) = open.pop() {
        for file in &all {
            let named = match Kind::of(file.path) {
                Some(Kind::Partial) => file.path.strip_prefix("partials/"),
                Some(Kind::Values) => file.path.strip_prefix("values/"),
                _ => None,
            };
            if let Some(name) = named
                && next.contains(name)
                && !needs.contains_key(file.path)
                && let Some(inner) = text(file.path)
            {
                open.push(inner.clone());
                needs.insert(file.path.to_owned(), inner);
            }
        }
    }
    Some((main, needs))
}

/// What a new file of a kind begins with where no starter was chosen.
pub(super) fn outline(kind: Kind, lang: Lang, name: &str) -> String {
    let text = |key: &str| lang.text(&format!("editor.outline_{key}"), &[("name", name)]);
    match kind {
        Kind::Prompt => format!(
            "---\ntitle: {}\ndescription: {}\narguments:\n  - name: topic\n    description: {}\n    required: true\nexamples:\n  \
             - name: {}\n    arguments: {{ topic: {} }}\n---\n{}\n",
            text("title"),
            text("description"),
            text("argument"),
            text("example"),
            text("value"),
            text("body"),
        ),
        Kind::Partial => format!("{}\n", text("partial")),
        Kind::Labels => "# [production]\n# incident-triage = \"v1\"\n".to_owned(),
        Kind::Library => "format = 1\n".to_owned(),
        Kind::Values | Kind::Resource | Kind::Other => String::new(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_starter_can_be_begun_with() {
        for lang in Lang::ALL {
            let all = starters(lang);
            assert!(all.len() > 10, "{}", all.len());
            for starter in all {
                let (text, needs) = begin(&starter.id).unwrap();
                assert!(text.starts_with("---\n"), "{}", starter.id);
                assert!(!starter.title.is_empty() && !starter.description.is_empty());
                for (name, _) in text.match_indices("{% include \"") {
                    let rest = &text[name + "{% include \"".len()..];
                    let partial = rest.split('"').next().unwrap();
                    assert!(
                        needs.contains_key(&format!("partials/{partial}")),
                        "{partial}"
                    );
                }
            }
        }
        for id in [
            "",
            "en",
            "en/prompts/none.md",
            "en/partials/severity-rubric.md",
            "xx/prompts/sre/postmortem.md",
            "en-US/prompts/sre/postmortem.md",
        ] {
            assert!(begin(id).is_none(), "{id}");
        }
    }
}
