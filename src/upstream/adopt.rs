//! Moves main to what was fetched, as far as it passes the check.
//!
//! Where labels were moved here, main goes on: each commit of the other side is merged into it, so that every change takes
//! the number that it has there.

use std::cell::OnceCell;
use std::collections::HashSet;

use tokio_util::sync::CancellationToken;

use crate::catalog::relabel::{LABELS, Numbers, join, said};
use crate::git::commit::{Message, Taken};
use crate::git::history::{Advance, RefEdit};
use crate::git::{GitError, MAIN, Repository, SERVER_EMAIL};
use crate::registry::candidate::Checked;
use crate::registry::{OpenError, Registry};
use crate::starter;

/// The commit of the other side that main has: what main has beyond it is this library's own.
pub const ADOPTED: &str = "refs/cuebook/upstream";
/// Commits of the other side that are looked at when the newest is bad.
const LOOKED_AT: usize = 50;
/// How often it is tried again because a label was moved here meanwhile.
const TRIES: usize = 8;
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
    for _ in 0..TRIES {
        match attempt(repository, registry, branch) {
            Err(AdoptError::Git(GitError::Moved(_))) => {}
            other => return other,
        }
    }
    attempt(repository, registry, branch)
}

fn attempt(
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
    if let (Some(main), Some(adopted)) = (&main, &adopted)
        && let Some(moved) = moved_here(repository, main, adopted)?
        && let Some(done) = moved.join(repository, registry, &upstream)?
    {
        return Ok(done);
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
            problems = shown(&checked);
        }
        at = repository.first_parent(&commit)?;
    }
    Ok(Adopted::Unclean { upstream, problems })
}

fn shown(checked: &Checked) -> Vec<String> {
    let errors = checked.problems.iter().filter(|problem| problem.is_error());
    errors
        .take(SHOWN)
        .map(crate::prompt::Problem::one_line)
        .collect()
}

/// What a commit says in `labels.toml`; nothing where it has no such file, none where it cannot be read.
pub(super) fn labels_of(
    repository: &Repository,
    commit: &str,
) -> Result<Option<Numbers>, GitError> {
    let bytes = repository.file(commit, LABELS)?.unwrap_or_default();
    Ok(String::from_utf8(bytes).ok().and_then(|text| said(&text)))
}

/// Labels that were moved here, and nothing else, since the other side's commit was taken over.
struct MovedHere<'a> {
    main: &'a str,
    adopted: &'a str,
    base: Numbers,
    ours: Numbers,
}

/// What main has of its own, where that is moves of labels, made here, and merges of the other side; none else.
fn moved_here<'a>(
    repository: &Repository,
    main: &'a str,
    adopted: &'a str,
) -> Result<Option<MovedHere<'a>>, GitError> {
    let beyond = repository.beyond(main, Some(adopted), usize::MAX)?;
    let mut own: HashSet<String> = beyond.into_iter().collect();
    if own.is_empty() {
        return Ok(None);
    }
    let mut at = main.to_owned();
    while own.remove(&at) {
        let facts = repository.facts(&at)?;
        let Some(parent) = repository.first_parent(&at)? else {
            return Ok(None);
        };
        let made_here = facts.committer_email == SERVER_EMAIL
            && match facts.parents {
                1 => repository.differing(&parent, &at, 2)? == [LABELS],
                2 => repository
                    .second_parent(&at)?
                    .is_some_and(|other| !own.contains(&other)),
                _ => false,
            };
        if !made_here {
            return Ok(None);
        }
        at = parent;
    }
    if !own.is_empty() {
        return Ok(None);
    }
    let (Some(base), Some(ours)) = (
        labels_of(repository, adopted)?,
        labels_of(repository, main)?,
    ) else {
        return Ok(None);
    };
    Ok(Some(MovedHere {
        main,
        adopted,
        base,
        ours,
    }))
}

impl MovedHere<'_> {
    /// Takes over what the other side has now. None where main can go there as it is.
    fn join(
        self,
        repository: &Repository,
        registry: &Registry,
        upstream: &str,
    ) -> Result<Option<Adopted>, AdoptError> {
        if upstream == self.adopted {
            return Ok(Some(Adopted::Same(upstream.to_owned())));
        }
        let contains = match repository.advance(self.main, upstream)? {
            Advance::FirstParent => return Ok(None),
            Advance::OtherParent => true,
            Advance::Rewrites => false,
        };
        let onward = repository.advance(self.adopted, upstream)?;
        if onward != Advance::Rewrites
            && repository.advance(upstream, self.main)? != Advance::Rewrites
        {
            // some of what was moved here was brought there
            repository.write_own_ref(ADOPTED, upstream)?;
            return Ok(Some(Adopted::Same(upstream.to_owned())));
        }
        let commits = self.commits(repository, upstream, onward)?;
        let steps = self.steps(repository, &commits, onward, contains)?;
        let onto = (onward != Advance::Rewrites).then_some(self.main);
        let (taken, told): (Vec<Taken>, Vec<Vec<String>>) = steps.into_iter().unzip();
        let (apart, made) = repository.taken_apart(onto, &taken)?;
        let with_new = repository.with_objects(apart.objects());
        let mut problems = Vec::new();
        let newest = commits.iter().zip(&made).zip(&told).rev();
        for ((commit, new), told) in newest.take(LOOKED_AT) {
            let checked = registry.check(&with_new, new, &CancellationToken::new())?;
            if !checked.is_clean() {
                if commit == upstream {
                    problems = shown(&checked);
                }
                continue;
            }
            apart.keep()?;
            let edit = |name: &str, new: &str, old: &str| RefEdit {
                name: name.into(),
                new: new.into(),
                old: Some(old.into()),
            };
            let edits = [
                edit(MAIN, new, self.main),
                edit(ADOPTED, commit, self.adopted),
            ];
            repository.move_refs(&edits, "follow upstream")?;
            if onto.is_none() {
                tracing::warn!(old = self.main, %new, "the repository that is followed has rewritten its history; main follows, with the labels that were moved here");
            }
            for line in told {
                tracing::warn!("labels.toml: {line}");
            }
            return Ok(Some(Adopted::Moved {
                upstream: upstream.to_owned(),
                to: commit.clone(),
                problems,
            }));
        }
        Ok(Some(Adopted::Unclean {
            upstream: upstream.to_owned(),
            problems,
        }))
    }

    /// What is to be taken over, oldest first: all that is new on the other side's first-parent chain. Of a history that
    /// was rewritten, the newest.
    fn commits(
        &self,
        repository: &Repository,
        upstream: &str,
        onward: Advance,
    ) -> Result<Vec<String>, GitError> {
        let mut out = Vec::new();
        let mut at = Some(upstream.to_owned());
        while let Some(commit) = at {
            let ends = match onward {
                Advance::FirstParent => commit == self.adopted,
                // what came from a branch of theirs may lack what is served now
                Advance::OtherParent => {
                    out.len() == LOOKED_AT
                        || repository.advance(self.adopted, &commit)? == Advance::Rewrites
                }
                Advance::Rewrites => out.len() == LOOKED_AT,
            };
            if ends {
                break;
            }
            at = repository.first_parent(&commit)?;
            out.push(commit);
        }
        out.reverse();
        Ok(out)
    }

    /// The commits to be made, each with what is to be told of its labels.
    fn steps(
        &self,
        repository: &Repository,
        commits: &[String],
        onward: Advance,
        contains: bool,
    ) -> Result<Vec<(Taken, Vec<String>)>, GitError> {
        let (mut base, mut ours) = (self.base.clone(), self.ours.clone());
        // main's labels are what the other side began with, once it has merged main
        let mut begun = !contains;
        let mut seconds = repository.facts(self.main)?.seconds;
        let mut out = Vec::new();
        for commit in commits {
            if !begun && repository.advance(self.main, commit)? != Advance::Rewrites {
                base.clone_from(&self.ours);
                begun = true;
            }
            let facts = repository.facts(commit)?;
            let file = repository.file(commit, LABELS)?;
            let text = String::from_utf8(file.unwrap_or_default()).ok();
            let names = OnceCell::new();
            let exists = |name: &str| {
                let names: &Option<HashSet<String>> =
                    names.get_or_init(|| prompt_names(repository, commit).ok());
                names.as_ref().is_none_or(|names| names.contains(name))
            };
            let joined = text
                .as_ref()
                .and_then(|text| join(&base, &ours, text, exists));
            let (mut edits, mut told) = (Vec::new(), Vec::new());
            // what cannot be read stays as it is there, and fails the check
            if let (Some(joined), Some(text)) = (joined, text) {
                if onward != Advance::Rewrites {
                    ours = said(&joined.text).unwrap_or(ours);
                    base = said(&text).unwrap_or(base);
                }
                if joined.text != text {
                    edits.push((LABELS.to_owned(), joined.text));
                }
                told = joined.told;
            }
            let message = if onward == Advance::Rewrites {
                Message {
                    author: "Cuebook".into(),
                    email: SERVER_EMAIL.into(),
                    text: "labels that were moved here\n".into(),
                    seconds: facts.seconds,
                }
            } else {
                // whoever reads the log wants to know who changed it there; made again, it is the same commit
                seconds = seconds.max(facts.seconds);
                Message {
                    author: facts.author,
                    email: facts.email,
                    text: format!(
                        "{}\n\nFollowed: {commit}\n",
                        facts.subject.replace('\0', " ")
                    ),
                    seconds,
                }
            };
            let other = commit.clone();
            out.push((
                Taken {
                    other,
                    edits,
                    message,
                },
                told,
            ));
        }
        Ok(out)
    }
}

/// The names of the files below `prompts/`.
fn prompt_names(repository: &Repository, commit: &str) -> Result<HashSet<String>, GitError> {
    let files = repository.blobs()?.folder(commit, "prompts")?;
    Ok(files
        .iter()
        .filter_map(|file| {
            let path = std::str::from_utf8(&file.path).ok()?;
            let name = path.rsplit('/').next()?;
            name.strip_suffix(".md").map(str::to_owned)
        })
        .collect())
}
