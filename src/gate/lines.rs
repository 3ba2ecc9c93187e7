//! What a person who pushes reads: `remote:` lines.

use crate::prompt::visible::visible;
use crate::prompt::{Problem, Severity};
use crate::registry::candidate::{Checked, PublishedKind};

use super::rules::Refused;

/// Problems that are shown in full.
const SHOWN: usize = 20;
/// Prompts that are named.
const NAMED: usize = 8;

/// `1 prompt`, `2 prompts`.
fn number(n: usize, word: &str) -> String {
    format!("{n} {word}{}", if n == 1 { "" } else { "s" })
}

/// A refused ref with what to do instead.
pub(super) fn refusal(refused: &Refused) -> Vec<String> {
    vec![
        format!("refused: {}", visible(&refused.message)),
        format!("  {}", visible(&refused.hint)),
    ]
}

/// Problems as `path:line:column: message` with the hint below, errors first, at most 20, and how many more there are.
pub(super) fn problems(found: &[&Problem]) -> Vec<String> {
    let mut sorted: Vec<&&Problem> = found.iter().collect();
    sorted.sort_by_key(|p| p.severity != Severity::Error);
    let mut out = Vec::new();
    for problem in sorted.iter().take(SHOWN) {
        let warning = if problem.is_error() { "" } else { "warning: " };
        let place = if problem.line == 0 {
            problem.path.to_string()
        } else {
            format!(
                "{}:{}:{}",
                problem.path,
                problem.line,
                problem.column.max(1)
            )
        };
        let place = visible(&place);
        let colon = if place.is_empty() { "" } else { ": " };
        out.push(format!(
            "{place}{colon}{warning}{}",
            visible(&problem.message)
        ));
        for line in problem.hint.iter().flat_map(|hint| hint.lines()) {
            out.push(format!("  hint: {}", visible(line)));
        }
    }
    if found.len() > SHOWN {
        out.push(format!(
            "and {} more; `cuebook check` in your clone shows all",
            found.len() - SHOWN
        ));
    }
    out
}

/// The last line of a refused push: `errors` are problems of its content; a ref that may not move so has said why.
/// `checkable`: whether a check of a clone, which knows no versions, finds all of them.
pub(super) fn refused_by(errors: usize, refs: usize, checkable: bool) -> Option<String> {
    if errors > 0 {
        let them = if errors == 1 { "it" } else { "them" };
        let check = if checkable {
            "; `cuebook check` in your clone finds the same"
        } else {
            ""
        };
        Some(format!(
            "refused: {}; nothing was changed. Mend {them}, commit, push again{check}.",
            number(errors, "error")
        ))
    } else if refs > 1 {
        Some("nothing was changed: a push moves all of its refs or none".into())
    } else {
        None
    }
}

/// What a push has published; `clients` are told of it.
pub(super) fn published(checked: &Checked, clients: Option<usize>, url: &str) -> Vec<String> {
    let mut out = Vec::new();
    let count = checked.published.len();
    if count > 0 {
        let mut names: Vec<String> = checked
            .published
            .iter()
            .take(NAMED)
            .map(|prompt| {
                let moved = match &prompt.kind {
                    PublishedKind::Added => ", new",
                    PublishedKind::Moved { .. } => ", moved",
                    PublishedKind::Changed => "",
                };
                format!(
                    "{} ({}{moved})",
                    prompt.name,
                    number(prompt.arguments, "argument")
                )
            })
            .collect();
        if count > NAMED {
            names.push(format!("and {} more", count - NAMED));
        }
        out.push(format!(
            "published {}: {}",
            number(count, "prompt"),
            names.join(", ")
        ));
    }
    if !checked.removed.is_empty() {
        let mut names: Vec<&str> = checked
            .removed
            .iter()
            .take(NAMED)
            .map(AsRef::as_ref)
            .collect();
        let more = format!("and {} more", checked.removed.len().saturating_sub(NAMED));
        if checked.removed.len() > NAMED {
            names.push(&more);
        }
        out.push(format!(
            "removed {}: {}",
            number(checked.removed.len(), "prompt"),
            names.join(", ")
        ));
    }
    if checked.resources_changed > 0 {
        out.push(format!(
            "changed {}",
            number(checked.resources_changed, "resource")
        ));
    }
    if out.is_empty() {
        out.push("published; nothing that clients see has changed".into());
    } else if let (Some(clients), Some(last)) = (clients, out.last_mut()) {
        last.push_str("; ");
        if clients == 0 {
            last.push_str("no client is connected");
        } else {
            last.push_str(&format!("telling {}", number(clients, "client")));
        }
    }
    out.push(format!("served at {url}/mcp"));
    out
}
