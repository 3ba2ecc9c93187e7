//! What happened to a prompt: its versions, and the labels that were put on them.

use std::sync::Arc;

use crate::catalog::library::labels;
use crate::git::{GitError, Repository};
use crate::history::{Commit, History};
use crate::prompt::source::Source;

/// Changes of the labels that are looked at; older ones are not shown.
const LOOKED_AT: usize = 2000;

/// A label that was put on a version of a prompt, or taken off it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Move {
    /// The label.
    pub label: String,
    /// The version it is on since; none where it was taken off.
    pub number: Option<u64>,
    /// The commit that did it.
    pub commit: Arc<Commit>,
}

/// The moves of labels on a prompt, oldest first. Blocks: reads `labels.toml` as each of the last 2,000 commits that
/// changed it had it.
pub fn moves(
    repository: &Repository,
    history: &History,
    name: &str,
) -> Result<Vec<Move>, GitError> {
    let blobs = repository.blobs()?;
    let mut before = std::collections::BTreeMap::new();
    let mut out = Vec::new();
    let skipped = history.labels().count().saturating_sub(LOOKED_AT);
    for (position, at) in history.labels().enumerate() {
        // the one before the first that is shown says what that changed
        if position + 1 < skipped {
            continue;
        }
        let text = match at.blob {
            Some(blob) => blobs.read(blob)?,
            None => Vec::new(),
        };
        let Ok(source) = Source::decode(&"labels.toml".into(), &text) else {
            continue;
        };
        let now: std::collections::BTreeMap<String, u64> = labels(&source, &mut Vec::new())
            .into_iter()
            .filter_map(|(label, entries)| Some((label, entries.get(name)?.0)))
            .collect();
        if position >= skipped {
            let mut note = |label: &String, number| {
                out.push(Move {
                    label: label.clone(),
                    number,
                    commit: at.commit.clone(),
                });
            };
            for label in before.keys().filter(|label| !now.contains_key(*label)) {
                note(label, None);
            }
            for (label, number) in &now {
                if before.get(label) != Some(number) {
                    note(label, Some(*number));
                }
            }
        }
        before = now;
    }
    Ok(out)
}
