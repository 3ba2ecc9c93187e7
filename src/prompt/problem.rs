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
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
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

/// Longest message, in characters: some quote a line of the library or of the engine.
const MESSAGE_CHARS: usize = 500;

/// A message as one line of bounded length; what it quotes may be neither.
pub(super) fn one_line(message: String) -> String {
    if message.len() <= MESSAGE_CHARS && !message.contains(['\n', '\r']) {
        return message;
    }
    message
        .chars()
        .take(MESSAGE_CHARS)
        .map(|c| if matches!(c, '\n' | '\r') { ' ' } else { c })
        .collect()
}

/// A text to put in at a place.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
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
            message: one_line(message),
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
            let most = (length / 3).max(1);
            let difference = text.chars().count().abs_diff(lower.chars().count());
            // the distance is at least the difference in length, which costs nothing to know
            let distance = if difference <= most {
                strsim::damerau_levenshtein(&text, &lower)
            } else {
                usize::MAX
            };
            let contained = text.len() >= 3
                && (lower.contains(&text) || (lower.len() >= 3 && text.contains(&lower)));
            if distance <= most && distance < length {
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

/// Puts insertions into stored text, whose newlines may be CRLF or CR and which may begin with a BOM.
pub fn insert(text: &str, mut fixes: Vec<Insertion>) -> String {
    fixes.sort_by_key(|f| (f.line, f.column));
    fixes.dedup();
    let mut fixes = fixes.into_iter().peekable();
    let mut out = String::with_capacity(text.len() + 64);
    let (mut line, mut column) = (1u32, 1u32);
    let mut chars = text.chars().peekable();
    loop {
        let at_bom = out.is_empty() && chars.peek() == Some(&'\u{feff}');
        while !at_bom && let Some(fix) = fixes.next_if(|f| (f.line, f.column) <= (line, column)) {
            out.push_str(fix.text);
        }
        let Some(c) = chars.next() else { return out };
        out.push(c);
        match c {
            '\u{feff}' if at_bom => {}
            '\n' => (line, column) = (line + 1, 1),
            '\r' if chars.peek() != Some(&'\n') => (line, column) = (line + 1, 1),
            '\r' => {}
            _ => column += 1,
        }
    }
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

    #[test]
    fn insertions_leave_other_bytes() {
        let fix = |line, column, text| Insertion { line, column, text };
        let text = "\u{feff}a\r\n한 {{ .x }}\r{#\n";
        let fixes = vec![
            fix(3, 1, "<"),
            fix(3, 3, ">"),
            fix(2, 3, "["),
            fix(2, 11, "]"),
        ];
        assert_eq!(insert(text, fixes), "\u{feff}a\r\n한 [{{ .x }}]\r<{#>\n");
        assert_eq!(insert("ab", vec![fix(1, 3, "!")]), "ab!");
    }
}
