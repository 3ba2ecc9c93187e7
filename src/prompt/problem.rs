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
}

impl Problem {
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
