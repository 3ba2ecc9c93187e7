//! Secrets that a push would leave in the history though its tip no longer has them: whoever clones gets them.

use std::collections::HashSet;
use std::sync::Arc;

use crate::git::{GitError, Mode, Repository, TreeEntry};
use crate::prompt::{Problem, secrets};
use crate::registry::source::PARTS;

/// Commits of one push that are looked at, newest first.
const COMMITS: usize = 1000;
/// Files of one push that are looked at.
const FILES: usize = 20_000;

/// What was found.
#[derive(Debug)]
pub(super) struct Leaks {
    /// The secrets.
    pub(super) found: Vec<Problem>,
    /// Whether every commit was looked at; a long history is only looked at from its end.
    pub(super) all: bool,
}

/// Secrets in the commits that `tip` brings, its own tree left out: the check of the tip finds those.
pub(super) fn find(
    repository: &Repository,
    tip: &str,
    largest_bytes: usize,
) -> Result<Leaks, GitError> {
    let blobs = repository.blobs()?;
    let mut seen = HashSet::new();
    let mut found = Vec::new();
    let brought = repository.brought(tip, COMMITS + 1)?;
    let mut all = brought.len() <= COMMITS;
    'commits: for (commit, parent) in brought.into_iter().take(COMMITS) {
        if commit == tip {
            continue;
        }
        let added: Vec<TreeEntry> = match parent {
            Some(parent) => blobs
                .changes(&parent, &commit)?
                .into_iter()
                .filter_map(|change| change.after)
                .collect(),
            None => repository.tree(&commit)?,
        };
        for entry in added {
            let path = String::from_utf8_lossy(&entry.path);
            let part = path.split('/').next().unwrap_or_default();
            if entry.mode != Mode::File || !PARTS.contains(&part) || !seen.insert(entry.id) {
                continue;
            }
            if seen.len() > FILES {
                all = false;
                break 'commits;
            }
            if blobs.size(entry.id)? > largest_bytes as u64 {
                continue;
            }
            let path: Arc<str> = path.into();
            for mut problem in secrets::find(&path, &blobs.read(entry.id)?) {
                let short = commit.get(..7).unwrap_or(&commit);
                problem.message = format!(
                    "{} in {short}, a commit of this push: it stays in the history, whatever a later commit removes",
                    problem.message
                );
                problem.hint = Some(
                    "take it out of that commit (git rebase -i, or git reset --soft and commit again), and revoke it".into(),
                );
                found.push(problem);
            }
        }
    }
    Ok(Leaks { found, all })
}
