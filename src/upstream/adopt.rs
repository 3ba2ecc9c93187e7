//! Moves main to what was fetched, as far as it passes the check.

use tokio_util::sync::CancellationToken;

use crate::git::history::{Advance, RefEdit};
use crate::git::{GitError, MAIN, Repository};
use crate::registry::{OpenError, Registry};
use crate::starter;

/// What main was moved to last: what main has beyond it is this library's own.
const ADOPTED: &str = "refs/cuebook/upstream";
/// Commits of the other side that are looked at when the newest is bad.
const LOOKED_AT: usize = 50;
/// Problems that are told.
const SHOWN: usize = 20;

/// What came of a fetch.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Adopted {
    /// The branch does not exist.
    Nothing,
    /// Main is there already.
    Same(String),
    /// Main was moved.
    Moved {
        /// The branch's tip.
        upstream: String,
        /// Where main is now: the tip, or the newest clean commit before it.
        to: String,
        /// Problems of the tip.
        problems: Vec<String>,
    },
    /// Nothing new is clean.
    Unclean {
        /// The branch's tip.
        upstream: String,
        /// Its problems.
        problems: Vec<String>,
    },
    /// Main has commits that the other side has never had.
    Apart {
        /// The branch's tip.
        upstream: String,
        /// How many, in words.
        own: String,
    },
}

#[derive(Debug, thiserror::Error)]
pub(super) enum AdoptError {
    #[error(transparent)]
    Git(#[from] GitError),
    #[error(transparent)]
    Open(#[from] OpenError),
}

/// Moves main to the fetched tip of `branch`, or to the newest commit before it that passes the check.
pub(super) fn adopt(
    repository: &Repository,
    registry: &Registry,
    branch: &str,
) -> Result<Adopted, AdoptError> {
    let Some(upstream) = repository.read_ref(&format!("refs/upstream/heads/{branch}"))? else {
        return Ok(Adopted::Nothing);
    };
    let main = repository.read_ref(MAIN)?;
    let adopted = repository.read_ref(ADOPTED)?;
    if main.as_ref() == Some(&upstream) {
        if adopted.as_ref() != Some(&upstream) {
            repository.write_own_ref(ADOPTED, &upstream)?;
        }
        return Ok(Adopted::Same(upstream));
    }
    let mut continues = false;
    if let Some(main) = &main {
        continues = repository.advance(main, &upstream)? != Advance::Rewrites;
        let untouched = starter::is_untouched(&repository.facts(main)?);
        if !continues && !untouched && adopted.as_ref() != Some(main) {
            let own = repository.ahead(main, &upstream)?;
            return Ok(Adopted::Apart {
                upstream,
                own: format!("{own} {}", if own == 1 { "commit" } else { "commits" }),
            });
        }
    }
    let mut problems = Vec::new();
    let mut at = Some(upstream.clone());
    for _ in 0..LOOKED_AT {
        let Some(commit) = at else { break };
        // older than what is served: nothing new is clean
        if main.as_ref() == Some(&commit) {
            break;
        }
        // a first parent that came from a branch of theirs may lack what is served now
        if continues
            && let Some(main) = &main
            && repository.advance(main, &commit)? == Advance::Rewrites
        {
            at = repository.first_parent(&commit)?;
            continue;
        }
        let checked = registry.check(repository, &commit, &CancellationToken::new())?;
        if checked.is_clean() {
            let mut edits = vec![RefEdit {
                name: MAIN.into(),
                new: commit.clone(),
                old: main.clone(),
            }];
            edits.push(RefEdit {
                name: ADOPTED.into(),
                new: commit.clone(),
                old: adopted.clone(),
            });
            edits.retain(|edit| edit.old.as_ref() != Some(&edit.new));
            repository.move_refs(&edits, "follow upstream")?;
            if main.is_some() && !continues {
                tracing::warn!(old = main.as_deref(), new = %commit, "the repository that is followed has rewritten its history; main follows");
            }
            return Ok(Adopted::Moved {
                upstream,
                to: commit,
                problems,
            });
        }
        if commit == upstream {
            let errors = checked.problems.iter().filter(|problem| problem.is_error());
            problems = errors
                .take(SHOWN)
                .map(crate::prompt::Problem::one_line)
                .collect();
        }
        at = repository.first_parent(&commit)?;
    }
    Ok(Adopted::Unclean { upstream, problems })
}
