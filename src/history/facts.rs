//! What one file says that a number rests on: whether it can be a prompt at all, and what it includes.
//!
//! These few rules are frozen. The check of a library grows stricter with releases; if these followed it, the numbers
//! that labels and people have noted would come to mean other texts.

use std::sync::Arc;

use crate::prompt::PromptName;
use crate::prompt::front_matter;
use crate::prompt::parse::file_name;
use crate::prompt::scan::{self, Nesting};
use crate::prompt::source::Source;
use crate::prompt::yaml::{self, Value};

/// A larger file is no prompt and no partial, in bytes.
pub const MAX_BYTES: usize = 1024 * 1024;
/// A path with more parts is not read.
const MAX_PARTS: usize = 33;

/// What a path is to the numbers.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Kind {
    /// A prompt, with its name.
    Prompt(Arc<str>),
    /// A partial, with the name that `include` uses.
    Partial(Arc<str>),
    /// `labels.toml`.
    Labels,
}

/// What a path is; none where no number rests on it.
pub fn kind(path: &str) -> Option<Kind> {
    if path == "labels.toml" {
        return Some(Kind::Labels);
    }
    let (folder, _) = path.split_once('/')?;
    let file = path.rsplit('/').next()?;
    let stem = file.strip_suffix(".md")?;
    if file.starts_with('.')
        || file.eq_ignore_ascii_case("readme.md")
        || path.split('/').count() > MAX_PARTS
    {
        return None;
    }
    match folder {
        "prompts" => PromptName::parse(stem)
            .ok()
            .map(|_| Kind::Prompt(stem.into())),
        "partials" => Some(Kind::Partial(file_name(path, "partials/").into())),
        _ => None,
    }
}

/// What a blob says.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Facts {
    /// Whether it can be read: text, front matter that closes and is a table, constructs and blocks that close.
    pub sound: bool,
    /// Names of the partials it includes, each once.
    pub includes: Box<[Arc<str>]>,
}

impl Facts {
    /// Reads the bytes of a prompt.
    pub fn of_prompt(bytes: &[u8]) -> Self {
        let Some(source) = text(bytes) else {
            return Self::default();
        };
        let Ok(sections) = front_matter::split(&source) else {
            return Self::default();
        };
        let yaml = &source.text[sections.yaml];
        let is_table = match yaml::read(yaml) {
            Ok(None) => true,
            Ok(Some(node)) => node.value.is_null() || matches!(node.value, Value::Map(_)),
            Err(_) => false,
        };
        let facts = Self::of_text(&source.text[sections.body]);
        Self {
            sound: facts.sound && is_table,
            ..facts
        }
    }

    /// Reads the bytes of a partial.
    pub fn of_partial(bytes: &[u8]) -> Self {
        text(bytes).map_or_else(Self::default, |source| Self::of_text(&source.text))
    }

    fn of_text(text: &str) -> Self {
        let constructs = scan::scan(text);
        let mut open = 0usize;
        let mut sound = true;
        for construct in &constructs {
            sound &= construct.fault.is_none();
            match scan::nesting(text, construct) {
                Nesting::Opens => open += 1,
                Nesting::Closes if open == 0 => sound = false,
                Nesting::Closes => open -= 1,
                Nesting::Flat => {}
            }
        }
        let mut includes: Vec<Arc<str>> = Vec::new();
        for (name, _) in scan::includes(text, &constructs) {
            if !includes.iter().any(|known| **known == *name) {
                includes.push(name.into());
            }
        }
        Self {
            sound: sound && open == 0,
            includes: includes.into(),
        }
    }
}

fn text(bytes: &[u8]) -> Option<Source> {
    if bytes.len() > MAX_BYTES {
        return None;
    }
    Source::decode(&"".into(), bytes).ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn prompt(text: &str, sound: bool, includes: &[&str]) {
        let facts = Facts::of_prompt(text.as_bytes());
        assert_eq!(facts.sound, sound, "{text}");
        let found: Vec<&str> = facts.includes.iter().map(|name| &**name).collect();
        assert_eq!(found, includes, "{text}");
    }

    /// What this says of a file may never change while [`super::super::RULE`] is 1.
    #[test]
    fn rule_1_is_frozen() {
        prompt("", true, &[]);
        prompt("plain text with { braces } and }}\n", true, &[]);
        prompt("---\n---\nx", true, &[]);
        prompt("---\ntitle: x\n---\nx", true, &[]);
        prompt("---\r\ntitle: x\r\n---\r\nx", true, &[]);
        prompt("\u{feff}---\ntitle: x\n---\nx", true, &[]);
        // a key that no release knows, a wrong type and an argument nobody uses are for the check
        prompt(
            "---\nfrom_a_later_release: { a: [1] }\ntitle: [1]\n---\n{{ x }}",
            true,
            &[],
        );
        prompt("---\ntitle: x\n", false, &[]);
        prompt("---\ntitle: [x\n---\nx", false, &[]);
        prompt("---\n- title\n---\nx", false, &[]);
        prompt("---\njust text\n---\nx", false, &[]);
        prompt("{{ x", false, &[]);
        prompt("{{ $labels.instance }}", false, &[]);
        prompt("{% raw %}{{ $labels.instance }}{% endraw %}", true, &[]);
        prompt("{% if a %}", false, &[]);
        prompt("{% endif %}", false, &[]);
        prompt("{% if a %}{% else %}{% endif %}", true, &[]);
        prompt("{# never closed", false, &[]);
        prompt(
            "{% include \"a.md\" %}{% if x %}{%- include 'b/c.md' -%}{% endif %}{% include \"a.md\" %}",
            true,
            &["a.md", "b/c.md"],
        );
        prompt("{% raw %}{% include \"a.md\" %}{% endraw %}", true, &[]);
        prompt("{# {% include \"a.md\" %} #}", true, &[]);
        assert!(!Facts::of_prompt(b"\xff").sound);
        assert!(!Facts::of_prompt(&vec![b'x'; MAX_BYTES + 1]).sound);
        assert!(Facts::of_partial(b"---\nno front matter in a partial").sound);
    }

    #[test]
    fn paths() {
        let prompt = |name: &str| Some(Kind::Prompt(name.into()));
        assert_eq!(kind("prompts/a.md"), prompt("a"));
        assert_eq!(kind("prompts/sre/x/a-b.md"), prompt("a-b"));
        assert_eq!(kind("prompts/A.md"), None);
        assert_eq!(kind("prompts/README.md"), None);
        assert_eq!(kind("prompts/.a.md"), None);
        assert_eq!(kind("prompts/a.txt"), None);
        assert_eq!(kind("a.md"), None);
        assert_eq!(kind("resources/x/a.md"), None);
        assert_eq!(kind("labels.toml"), Some(Kind::Labels));
        assert_eq!(
            kind("partials/b/c.md"),
            Some(Kind::Partial("b/c.md".into()))
        );
        // a file system's decomposed form is the same name
        assert_eq!(
            kind("partials/\u{1100}\u{1161}.md"),
            Some(Kind::Partial("가.md".into()))
        );
        assert_eq!(kind(&format!("prompts/{}a.md", "d/".repeat(40))), None);
    }
}
