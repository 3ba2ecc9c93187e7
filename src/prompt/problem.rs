//! Findings of the checker: path, line, column, message, hint.

use std::sync::Arc;

/// Whether a finding keeps a commit from being served.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Severity {
    /// The commit is not served (invariant 2 of the product).
    Error,
    /// Shown, refuses nothing.
    Warning,
}

impl Severity {
    /// `error` or `warning`.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Error => "error",
            Self::Warning => "warning",
        }
    }
}

/// A finding with its place and a hint.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Problem {
    /// Whether it refuses.
    pub severity: Severity,
    /// A stable short word for the kind, e.g. `undeclared-variable`.
    pub code: &'static str,
    /// Path in the library, `/` separated; empty for the library as a whole.
    pub path: Arc<str>,
    /// Line, from 1; 0 when the whole file is meant.
    pub line: u32,
    /// Column in characters, from 1; 0 when the whole line is meant.
    pub column: u32,
    /// How many characters the finding covers, at least 1.
    pub width: u32,
    /// What is wrong, one line, without a full stop.
    pub message: String,
    /// How to put it right.
    pub hint: Option<String>,
    /// The line of source it stands on, shortened, for showing a caret.
    pub excerpt: Option<String>,
    /// Text to put in to put it right by `cuebook check --fix`; empty where a person must decide.
    pub fix: Vec<Insertion>,
}

/// A text to put in at a place.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Insertion {
    /// Line, from 1.
    pub line: u32,
    /// Column in characters, from 1.
    pub column: u32,
    /// What to put there.
    pub text: &'static str,
}

impl Problem {
    /// A finding about a whole file, or about the library when `path` is empty.
    pub fn whole(
        severity: Severity,
        code: &'static str,
        path: &Arc<str>,
        message: String,
        hint: Option<String>,
    ) -> Self {
        Self {
            severity,
            code,
            path: path.clone(),
            line: 0,
            column: 0,
            width: 1,
            message,
            hint,
            excerpt: None,
            fix: Vec::new(),
        }
    }

    /// Whether it keeps a commit from being served.
    pub fn is_error(&self) -> bool {
        self.severity == Severity::Error
    }

    /// `path:line:col: message`, as compilers print it.
    pub fn one_line(&self) -> String {
        if self.line == 0 {
            format!("{}: {}", self.path, self.message)
        } else {
            format!(
                "{}:{}:{}: {}",
                self.path,
                self.line,
                self.column.max(1),
                self.message
            )
        }
    }
}

/// The candidate nearest to a text, when one is near enough to be what was meant.
pub fn nearest<'a>(text: &str, candidates: impl IntoIterator<Item = &'a str>) -> Option<&'a str> {
    nearest_all(text, candidates, 1).into_iter().next()
}

/// Up to `limit` candidates near a text, nearest first; none when nothing is near.
pub fn nearest_all<'a>(
    text: &str,
    candidates: impl IntoIterator<Item = &'a str>,
    limit: usize,
) -> Vec<&'a str> {
    let text: String = text.chars().take(120).collect::<String>().to_lowercase();
    let mut near: Vec<(usize, &str)> = candidates
        .into_iter()
        .filter_map(|candidate| {
            let lower = candidate.to_lowercase();
            let length = text.chars().count().max(lower.chars().count());
            if length > 120 {
                return None;
            }
            let distance = strsim::damerau_levenshtein(&text, &lower);
            let contained = text.len() >= 3
                && (lower.contains(&text) || (lower.len() >= 3 && text.contains(&lower)));
            if distance <= (length / 3).max(1) && distance < length {
                Some((distance, candidate))
            } else if contained {
                Some((length, candidate))
            } else {
                None
            }
        })
        .collect();
    near.sort_unstable();
    near.into_iter()
        .take(limit)
        .map(|(_, candidate)| candidate)
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn near_is_near() {
        assert_eq!(
            nearest("incident-triag", ["incident-triage", "x"]),
            Some("incident-triage")
        );
        assert_eq!(nearest("code", ["code-review"]), Some("code-review"));
        assert_eq!(nearest("zzz", ["code-review", "a"]), None);
        assert_eq!(nearest("a", ["b"]), None);
    }
}
