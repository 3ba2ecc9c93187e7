//! Changes that are made here (an edit in the page, a promotion, a revert): a commit on main that passes the gate as a
//! push of the same commit does.

use std::sync::Arc;

use tokio_util::sync::CancellationToken;

use super::wire::{Answer, Deed, Hook, Judged, Question, Update};
use super::{Checked, Gate};
use crate::access::{Actor, By};
use crate::git::commit::{Apart, Edit, Message};
use crate::git::history::{NOTHING, RefEdit};
use crate::git::{GitError, MAIN, Repository, read_again};

/// How often a change is made again because a push was quicker.
const TRIES: usize = 8;
/// Longest message of a commit that is made here, in bytes; a longer one is cut.
pub const MAX_MESSAGE: usize = 64 * 1024;

/// What main says at the moment a change is made.
#[derive(Debug, Clone)]
pub struct Tip {
    /// The library.
    pub repository: Repository,
    /// The tip of main; none in an empty library.
    pub commit: Option<String>,
}

impl Tip {
    /// A file at the tip; none where there is none.
    pub fn read(&self, path: &str) -> Result<Option<Vec<u8>>, GitError> {
        match &self.commit {
            Some(commit) => self.repository.file(commit, path),
            None => Ok(None),
        }
    }
}

/// A change of the library's files.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Change {
    /// What happens to which file.
    pub edits: Vec<Edit>,
    /// Subject, a blank line, body, trailers.
    pub message: String,
    /// What it is to the audit; none for a plain publish.
    pub deed: Option<Deed>,
}

/// What was published.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Published {
    /// The new tip of main.
    pub commit: String,
    /// Lines for the person, as a push gets them.
    pub lines: Vec<String>,
}

/// Why a change was not published. Nothing has changed then.
#[derive(Debug, thiserror::Error)]
pub enum PublishError<E> {
    /// The change could not be made of what main says now.
    #[error(transparent)]
    Change(E),
    /// It would change nothing.
    #[error("main says this already: there is nothing to publish")]
    Nothing,
    /// The gate refuses it.
    #[error("{}", .lines.join("\n"))]
    Refused {
        /// Why, as a push is told.
        lines: Vec<String>,
        /// What the check found, where it was checked.
        checked: Option<Arc<Checked>>,
    },
    /// Whoever asks may not change it so.
    #[error("{}", .lines.join("\n"))]
    Forbidden {
        /// Which path takes which role.
        lines: Vec<String>,
    },
    /// It could not be judged now; later it may be.
    #[error("{0}")]
    Unjudged(String),
    /// Other pushes were quicker, again and again.
    #[error("main kept moving; try again in a moment")]
    Busy,
    /// git failed.
    #[error(transparent)]
    Git(#[from] GitError),
}

/// A commit that is to be published.
pub(super) struct Made {
    /// The commit, apart; its first parent is the tip it was made of.
    pub(super) apart: Apart,
    /// What it is to the audit; none for a plain publish.
    pub(super) deed: Option<Deed>,
    /// What reviewers said, where it merges a proposal.
    pub(super) judged: Option<Arc<Judged>>,
}

impl Gate {
    /// Publishes a change of what main says now: `make` is given the tip, and is asked again where a push was quicker. One
    /// at a time, so that those who save together need no second attempt.
    pub async fn publish<E, F>(
        self: &Arc<Self>,
        by: &By,
        make: F,
    ) -> Result<Published, PublishError<E>>
    where
        E: Send + 'static,
        F: Fn(&Tip) -> Result<Change, E> + Send + Sync + 'static,
    {
        let (gate, author) = (self.clone(), by.actor.clone());
        self.publish_commit(by, move |tip| gate.make(&author, tip, &make))
            .await
    }

    /// The same of a commit: `make` makes it, apart, of the tip that it is given.
    pub(super) async fn publish_commit<E, F>(
        self: &Arc<Self>,
        by: &By,
        make: F,
    ) -> Result<Published, PublishError<E>>
    where
        E: Send + 'static,
        F: Fn(&Tip) -> Result<Made, PublishError<E>> + Send + Sync + 'static,
    {
        let make = Arc::new(make);
        let _one = self.publishing.lock().await;
        for _ in 0..TRIES {
            let (gate, make) = (self.clone(), make.clone());
            let (base, made) = blocking(move || {
                let tip = Tip {
                    commit: gate.repository.read_ref(MAIN)?,
                    repository: gate.repository.clone(),
                };
                let made = make(&tip)?;
                Ok((tip.commit, made))
            })
            .await?;
            let Made {
                apart,
                deed,
                judged,
            } = made;
            let update = Update {
                old: base.clone().unwrap_or_else(|| NOTHING.into()),
                new: apart.commit.clone(),
                name: MAIN.into(),
            };
            let question = |hook, quarantine| Question {
                hook,
                updates: vec![update.clone()],
                options: Vec::new(),
                quarantine,
                push: None,
                peer: by.peer.clone(),
                actor: Some(by.actor.clone()),
                here: true,
                deed: deed.clone(),
                judged: judged.clone(),
            };
            let quarantine = Some(apart.objects().to_path_buf());
            // whoever drops this ends the check
            let gone = CancellationToken::new();
            let waits = gone.clone().drop_guard();
            let Answer {
                accepted,
                lines,
                unjudged,
                forbidden,
                ..
            } = self
                .accept(question(Hook::PreReceive, quarantine), &gone)
                .await;
            drop(waits.disarm());
            let commit = apart.commit.clone();
            if !accepted {
                if self.repository.read_ref(MAIN)? != base {
                    continue;
                }
                if unjudged {
                    return Err(PublishError::Unjudged(lines.join("\n")));
                }
                if forbidden {
                    return Err(PublishError::Forbidden { lines });
                }
                let checked = self.found(&commit, &by.actor);
                return Err(PublishError::Refused { lines, checked });
            }
            let gate = self.clone();
            let moved = blocking(move || {
                apart.keep()?;
                let edit = RefEdit {
                    name: MAIN.into(),
                    new: apart.commit.clone(),
                    old: base,
                };
                match gate.repository.move_refs(&[edit], "published here") {
                    Ok(()) => Ok(true),
                    Err(GitError::Moved(_)) => Ok(false),
                    Err(error) => Err(PublishError::Git(error)),
                }
            })
            .await?;
            if moved {
                let mut lines = lines;
                lines.extend(
                    self.published(question(Hook::PostReceive, None))
                        .await
                        .lines,
                );
                if let Some(closed) = &self.settings.closed {
                    lines.push(format!(
                        "this library follows {}, which does not have it yet; {}",
                        closed.url,
                        closed.bring()
                    ));
                }
                return Ok(Published { commit, lines });
            }
        }
        Err(PublishError::Busy)
    }

    /// The commit of a change, apart, with what it is.
    fn make<E>(
        &self,
        author: &Actor,
        tip: &Tip,
        make: &(dyn Fn(&Tip) -> Result<Change, E> + Send + Sync),
    ) -> Result<Made, PublishError<E>> {
        let mut change = make(tip).map_err(PublishError::Change)?;
        let mut end = change.message.len().min(MAX_MESSAGE);
        while !change.message.is_char_boundary(end) {
            end -= 1;
        }
        change.message.truncate(end);
        let message = Message {
            author: author.to_string(),
            email: author.email(),
            text: change.message,
            seconds: i64::try_from(crate::clock::unix_seconds()).unwrap_or(i64::MAX),
        };
        let apart = read_again(GitError::git, || {
            self.repository
                .commit_apart(tip.commit.as_deref(), &change.edits, &message)
        })?;
        Ok(Made {
            apart: apart.ok_or(PublishError::Nothing)?,
            deed: change.deed,
            judged: None,
        })
    }
}

/// Runs what reads and writes git off the async threads.
pub(super) async fn blocking<T: Send + 'static, E: Send + 'static>(
    work: impl FnOnce() -> Result<T, PublishError<E>> + Send + 'static,
) -> Result<T, PublishError<E>> {
    tokio::task::spawn_blocking(work)
        .await
        .unwrap_or_else(|error| Err(GitError::Io(std::io::Error::other(error)).into()))
}
