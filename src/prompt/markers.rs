//! Role and resource markers: an HTML comment alone on its line, outside code fences, splits the source.

use std::ops::Range;

use super::message::Role;
use super::problem::{Problem, Severity, nearest};
use super::source::Source;

/// What a marker begins.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Mark {
    /// `<!-- role: assistant -->`: text that follows speaks as this role.
    Role(Role),
    /// `<!-- resource: runbook -->`: the bound resource of this name stands here.
    Resource(String),
}

/// A marker and the line it stands on.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Marker {
    /// What it begins.
    pub mark: Mark,
    /// The line without its newline, as bytes of the file.
    pub line: Range<usize>,
    /// The word after the colon.
    pub word: Range<usize>,
}

/// Finds the markers of a part of a file; near misses become problems.
pub fn find(source: &Source, part: Range<usize>, problems: &mut Vec<Problem>) -> Vec<Marker> {
    let mut out = Vec::new();
    let mut fence: Option<(char, usize)> = None;
    let mut at = part.start;
    for raw in source.text[part].split_inclusive('\n') {
        let line = raw.strip_suffix('\n').unwrap_or(raw);
        let span = at..at + line.len();
        at += raw.len();
        if let Some((c, length, rest)) = fence_of(line) {
            match fence {
                None if !(c == '`' && rest.contains('`')) => fence = Some((c, length)),
                Some((open, least)) if open == c && length >= least && rest.trim().is_empty() => {
                    fence = None;
                }
                _ => {}
            }
            continue;
        }
        if fence.is_none()
            && let Some(marker) = marker(source, &span, problems)
        {
            out.push(marker);
        }
    }
    out
}

/// A code fence (`CommonMark` 4.5): its character, its length and the rest of the line.
fn fence_of(line: &str) -> Option<(char, usize, &str)> {
    let text = line.trim_start_matches(' ');
    if line.len() - text.len() > 3 {
        return None;
    }
    let c = text.chars().next().filter(|c| matches!(c, '`' | '~'))?;
    let rest = text.trim_start_matches(c);
    let length = text.len() - rest.len();
    (length >= 3).then_some((c, length, rest))
}

fn marker(source: &Source, line: &Range<usize>, problems: &mut Vec<Problem>) -> Option<Marker> {
    let text = &source.text[line.clone()];
    let inner = text.trim().strip_prefix("<!--")?.strip_suffix("-->")?;
    let (key, word) = inner.split_once(':')?;
    let key = key.trim();
    let lower = key.to_ascii_lowercase();
    if !matches!(lower.as_str(), "role" | "resource") {
        return None;
    }
    let word = word.trim();
    let behind = text.find(':').map_or(0, |i| i + 1);
    let start = line.start + behind + text[behind..].find(word).unwrap_or_default();
    let place = if word.is_empty() {
        line.clone()
    } else {
        start..start + word.len()
    };
    let mut error = |code, span: Range<usize>, message: String, hint: Option<String>| {
        problems.push(source.problem(Severity::Error, code, span, message, hint));
    };
    if key != lower {
        error(
            "marker",
            line.clone(),
            format!("a marker is written in lower case: `{lower}`"),
            Some(format!("write it as <!-- {lower}: {word} -->")),
        );
        return None;
    }
    if lower == "resource" {
        return Some(Marker {
            mark: Mark::Resource(word.to_owned()),
            line: line.clone(),
            word: place,
        });
    }
    if let Some(role) = Role::parse(word) {
        return Some(Marker {
            mark: Mark::Role(role),
            line: line.clone(),
            word: place,
        });
    }
    let hint = nearest(&word.to_lowercase(), ["user", "assistant", "system"]).map_or_else(
        || "one of: user, assistant, system".into(),
        |near| format!("did you mean `{near}`?"),
    );
    error(
        "marker-role",
        place,
        format!(
            "there is no role `{}`",
            word.chars().take(40).collect::<String>()
        ),
        Some(hint),
    );
    None
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(text: &str) -> (Vec<String>, Vec<&'static str>) {
        let source = Source::new(&"p.md".into(), text);
        let mut problems = Vec::new();
        let found = find(&source, 0..source.text.len(), &mut problems)
            .into_iter()
            .map(|m| {
                format!(
                    "{}@{}",
                    match m.mark {
                        Mark::Role(r) => r.as_str().into(),
                        Mark::Resource(n) => n,
                    },
                    source.position(m.line.start).0
                )
            })
            .collect();
        (found, problems.iter().map(|p| p.code).collect())
    }

    #[test]
    fn markers_stand_alone_outside_fences() {
        let text = "a\n<!-- role: assistant -->\n```md\n<!-- role: user -->\n```\n  <!--resource: runbook-->  \n~~~\n```\n<!-- role: user -->\n~~~\nx <!-- role: user -->\n<!-- note -->\n<!-- role: system -->";
        assert_eq!(
            check(text),
            (
                vec!["assistant@2".into(), "runbook@6".into(), "system@13".into()],
                vec![]
            )
        );
    }

    #[test]
    fn near_misses_are_problems() {
        assert_eq!(check("<!-- role: assitant -->").1, ["marker-role"]);
        assert_eq!(check("<!-- Role: user -->").1, ["marker"]);
        assert_eq!(check("<!-- role: -->").1, ["marker-role"]);
    }

    #[test]
    fn an_inline_fence_opens_nothing() {
        assert_eq!(check("```a```\n<!-- role: user -->").0, ["user@2"]);
        assert_eq!(check("    ```\n<!-- role: user -->").0, ["user@2"]);
    }
}
