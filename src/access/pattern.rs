//! Which paths of the library a grant is about.

use std::fmt;
use std::sync::Arc;

/// Longest pattern, in bytes.
const MAX_BYTES: usize = 300;

/// A path, or many: `**` for the whole library, `prompts/sre/**` for a folder and all below it, `labels.toml` for one file.
#[derive(Debug, Clone, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Pattern(Arc<str>);

/// Why a text is no pattern.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error(
    "`{0}` is no path of a library; use ** for everything, prompts/sre/** for a folder with all below it, or a file such as labels.toml"
)]
pub struct PatternError(String);

impl Pattern {
    /// The whole library.
    pub fn all() -> Self {
        Self("**".into())
    }

    /// Reads a pattern.
    pub fn parse(text: &str) -> Result<Self, PatternError> {
        let wrong = || PatternError(text.chars().take(80).collect());
        let path = match text {
            "**" => return Ok(Self::all()),
            _ => text.strip_suffix("/**").unwrap_or(text),
        };
        let plain = |part: &str| {
            !part.is_empty()
                && part != "."
                && part != ".."
                && !part.contains(['*', '?', '\\', '[', ']'])
                && !part.contains(char::is_control)
        };
        if text.len() > MAX_BYTES || !path.split('/').all(plain) {
            return Err(wrong());
        }
        Ok(Self(text.into()))
    }

    /// As it is typed.
    pub fn as_str(&self) -> &str {
        &self.0
    }

    /// Whether it is about the whole library.
    pub fn is_all(&self) -> bool {
        &*self.0 == "**"
    }

    /// Whether it is about a path. A folder with all below it is not about a file beside it that begins alike.
    pub fn covers(&self, path: &str) -> bool {
        if self.is_all() {
            return true;
        }
        match self.0.strip_suffix("**") {
            Some(folder) => path.len() > folder.len() && path.starts_with(folder),
            None => path == &*self.0,
        }
    }
}

impl fmt::Display for Pattern {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;

    fn check(pattern: &str, covered: &[&str], others: &[&str]) {
        let pattern = Pattern::parse(pattern).unwrap();
        for path in covered {
            assert!(pattern.covers(path), "{pattern} {path}");
        }
        for path in others {
            assert!(!pattern.covers(path), "{pattern} {path}");
        }
    }

    #[test]
    fn what_a_pattern_covers() {
        check("**", &["", "prompts/a.md", "labels.toml"], &[]);
        check(
            "prompts/sre/**",
            &["prompts/sre/a.md", "prompts/sre/db/a.md"],
            &[
                "prompts/sre",
                "prompts/sre/",
                "prompts/sre-private/a.md",
                "prompts/a.md",
                "",
            ],
        );
        check(
            "labels.toml",
            &["labels.toml"],
            &["labels.toml2", "prompts/labels.toml", ""],
        );
    }

    #[test]
    fn what_is_no_pattern() {
        for text in [
            "",
            "/",
            "/prompts",
            "prompts/",
            "a//b",
            "../x",
            "prompts/*",
            "*",
            "a/**/b",
            "a\\b",
            "a\nb",
        ] {
            assert!(Pattern::parse(text).is_err(), "{text:?}");
        }
    }
}
