//! Prompt names, argument names and labels: validated by type at the edge.

use std::fmt;
use std::sync::Arc;

/// Longest prompt or label name, in bytes (names are ASCII).
pub const MAX_NAME: usize = 40;

/// A prompt's name: `^[a-z][a-z0-9_-]{0,39}$`, the stem of its file.
#[derive(Clone, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct PromptName(Arc<str>);

impl From<PromptName> for Arc<str> {
    fn from(name: PromptName) -> Self {
        name.0
    }
}

/// Why a text is not a [`PromptName`].
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("`{given}` is not a prompt name: {why}")]
pub struct NameError {
    /// The text as given, shortened to 80 characters.
    pub given: String,
    /// What is wrong with it, as a sentence without a full stop.
    pub why: &'static str,
    /// A valid name near it, when one can be made.
    pub suggestion: Option<String>,
}

impl PromptName {
    /// Checks a text against the name rule.
    pub fn parse(text: &str) -> Result<Self, NameError> {
        match name_fault(text) {
            None => Ok(Self(text.into())),
            Some(why) => Err(NameError {
                given: text.chars().take(80).collect(),
                why,
                suggestion: suggest(text),
            }),
        }
    }

    /// The name as text.
    pub fn as_str(&self) -> &str {
        &self.0
    }

    /// The form in which two names must differ: `-` and `_` are one, because several clients fold them.
    pub fn folded(&self) -> String {
        self.0.replace('-', "_")
    }
}

impl fmt::Display for PromptName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl fmt::Debug for PromptName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:?}", &*self.0)
    }
}

impl std::borrow::Borrow<str> for PromptName {
    fn borrow(&self) -> &str {
        &self.0
    }
}

fn name_fault(text: &str) -> Option<&'static str> {
    if text.is_empty() {
        return Some("it is empty");
    }
    if text.is_ascii() && text.len() > MAX_NAME {
        return Some("it is longer than 40 characters");
    }
    if text.is_ascii() && !text.starts_with(|c: char| c.is_ascii_lowercase()) {
        return Some("it must begin with a lower-case letter a-z");
    }
    if !text
        .bytes()
        .all(|b| b.is_ascii_lowercase() || b.is_ascii_digit() || b == b'_' || b == b'-')
    {
        return Some("only a-z, 0-9, `-` and `_` are allowed (other scripts go in `title`)");
    }
    None
}

fn suggest(text: &str) -> Option<String> {
    let mut out = String::new();
    for c in text.chars() {
        let c = c.to_ascii_lowercase();
        match c {
            'a'..='z' | '0'..='9' | '_' | '-' => out.push(c),
            ' ' | '.' | '/' if !out.ends_with('-') => out.push('-'),
            _ => {}
        }
    }
    let out: String = out
        .trim_start_matches(|c: char| !c.is_ascii_lowercase())
        .trim_end_matches('-')
        .chars()
        .take(MAX_NAME)
        .collect();
    name_fault(&out).is_none().then_some(out)
}

/// Whether a text follows the name rule and may be a label: never `latest`, `v<digits>`, all digits, or 7-40 hex digits.
pub fn is_label(text: &str) -> bool {
    name_fault(text).is_none()
        && text != "latest"
        && !looks_like_version(text)
        && !is_revision(text)
}

/// `v<digits>`, also where there are too many for a number.
fn looks_like_version(text: &str) -> bool {
    text.strip_prefix('v')
        .is_some_and(|digits| !digits.is_empty() && digits.bytes().all(|b| b.is_ascii_digit()))
}

/// The number of a version text `v<digits>`.
pub fn version_number(text: &str) -> Option<u64> {
    let digits = text.strip_prefix('v')?;
    if digits.is_empty() || digits.len() > 18 || !digits.bytes().all(|b| b.is_ascii_digit()) {
        return None;
    }
    digits.parse().ok()
}

/// Whether a text can name a commit: 7 to 40 lower- or upper-case hex digits.
pub fn is_revision(text: &str) -> bool {
    (7..=40).contains(&text.len()) && text.bytes().all(|b| b.is_ascii_hexdigit())
}

/// Why a text is not an argument name (`^[A-Za-z][A-Za-z0-9_]{0,39}$`, and not reserved), if it is not.
pub fn argument_name_fault(text: &str) -> Option<String> {
    if text.is_empty() {
        return Some("an argument needs a name".into());
    }
    if text.len() > MAX_NAME {
        return Some(format!("`{text}` is longer than 40 characters"));
    }
    let mut bytes = text.bytes();
    if !bytes.next().is_some_and(|b| b.is_ascii_alphabetic())
        || !bytes.all(|b| b.is_ascii_alphanumeric() || b == b'_')
    {
        return Some(format!(
            "`{text}` is not an argument name: a letter A-Z, then letters, digits and `_`"
        ));
    }
    if RESERVED_ARGUMENTS.contains(&text) {
        return Some(format!("`{text}` is reserved and cannot name an argument"));
    }
    None
}

/// A valid argument name near a text (`svc-name` gives `svc_name`), when one can be made.
pub fn suggest_argument_name(text: &str) -> Option<String> {
    let out: String = text
        .chars()
        .map(|c| if c.is_ascii_alphanumeric() { c } else { '_' })
        .collect();
    let out = out.trim_matches('_').to_string();
    argument_name_fault(&out).is_none().then_some(out)
}

/// Names a template already gives a meaning to: Tera 2.4's `RESERVED_NAMES`, its tag words, and ours.
const RESERVED_ARGUMENTS: &[&str] = &[
    "resources",
    "true",
    "True",
    "false",
    "False",
    "loop",
    "self",
    "and",
    "or",
    "not",
    "is",
    "in",
    "continue",
    "break",
    "none",
    "None",
    "null",
    "if",
    "elif",
    "else",
    "endif",
    "for",
    "endfor",
    "set",
    "endset",
    "set_global",
    "block",
    "endblock",
    "extends",
    "include",
    "raw",
    "endraw",
    "filter",
    "endfilter",
    "component",
    "endcomponent",
    "super",
    "body",
];

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_follow_the_rule() {
        for good in ["a", "code-review", "x_1", &"a".repeat(40)] {
            assert!(PromptName::parse(good).is_ok(), "{good}");
        }
        for bad in [
            "",
            "A",
            "1a",
            "-a",
            "a b",
            "코드",
            "a.b",
            "a/b",
            &"a".repeat(41),
        ] {
            assert!(PromptName::parse(bad).is_err(), "{bad}");
        }
        let e = PromptName::parse("Code Review").unwrap_err();
        assert_eq!(e.suggestion.as_deref(), Some("code-review"));
    }

    #[test]
    fn labels_are_never_versions_or_revisions() {
        assert!(is_label("production"));
        assert!(is_label("v1beta"));
        assert!(is_label("v"));
        for bad in [
            "latest",
            "v12",
            "v1234567890123456789",
            &format!("v{}", "9".repeat(39)),
            "deadbeef",
            "1234567",
            "Production",
            "",
        ] {
            assert!(!is_label(bad), "{bad}");
        }
    }

    #[test]
    fn argument_names() {
        assert!(argument_name_fault("ticketId").is_none());
        for bad in ["svc-name", "", "1a", "_x", "resources", "loop", "서비스"] {
            assert!(argument_name_fault(bad).is_some(), "{bad}");
        }
        assert_eq!(
            suggest_argument_name("svc-name").as_deref(),
            Some("svc_name")
        );
    }
}
