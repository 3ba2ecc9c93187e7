//! Selectors: `name`, `name@v3`, `name@production`, `name@<commit>`.

use super::name::{NameError, PromptName, is_label, is_revision, version_number};

/// Which content of a prompt is meant.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum At {
    /// What is served by default: latest, or the label that the library says.
    Served,
    /// What main has, whatever is served by default.
    Latest,
    /// The prompt's own version number, `v3`.
    Version(u64),
    /// A label of `labels.toml`.
    Label(String),
    /// A commit id or a prefix of one, 7 to 40 hex digits, lower case.
    Revision(String),
}

/// A prompt name with what is meant of it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Selector {
    /// The prompt's name.
    pub name: PromptName,
    /// Which content.
    pub at: At,
}

/// Why a text is not a [`Selector`].
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum SelectorError {
    /// The part before `@` is not a name.
    #[error(transparent)]
    Name(#[from] NameError),
    /// The part after `@` is nothing that can be selected.
    #[error(
        "`{0}` after `@` is not `latest`, a version (`v3`), a label or a commit id (7 to 40 hex digits)"
    )]
    At(String),
}

impl Selector {
    /// Parses `name` or `name@…`.
    pub fn parse(text: &str) -> Result<Self, SelectorError> {
        let (name, at) = match text.split_once('@') {
            None => (text, At::Served),
            Some((name, "latest")) => (name, At::Latest),
            Some((name, at)) => {
                let parsed = if let Some(n) = version_number(at) {
                    At::Version(n)
                } else if is_revision(at) {
                    At::Revision(at.to_ascii_lowercase())
                } else if is_label(at) {
                    At::Label(at.into())
                } else {
                    return Err(SelectorError::At(at.chars().take(80).collect()));
                };
                (name, parsed)
            }
        };
        Ok(Self {
            name: PromptName::parse(name)?,
            at,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_kind() {
        let at = |text: &str| Selector::parse(text).map(|s| s.at);
        assert_eq!(at("x"), Ok(At::Served));
        assert_eq!(at("x@latest"), Ok(At::Latest));
        assert_eq!(at("x@v3"), Ok(At::Version(3)));
        assert_eq!(at("x@production"), Ok(At::Label("production".into())));
        assert_eq!(at("x@DEADBEEF"), Ok(At::Revision("deadbeef".into())));
        assert!(at("x@").is_err());
        assert!(at("X@v3").is_err());
        assert!(at("x@a@b").is_err());
    }
}
