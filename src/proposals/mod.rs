//! Changes under review: opened and revised by a push to `refs/for/main`, kept under `refs/proposals/<number>/`.
//!
//! The commits are refs, so that a deleted database loses words and no change: `reconcile` writes a row again for every
//! ref that has none.

pub mod state;

use std::sync::Arc;

use tokio::sync::Mutex;

use crate::access::Actor;
use crate::git::history::{Advance, RefEdit};
use crate::git::{GitError, Repository};
use crate::store::{ProposalRow, Store, StoreError};

use crate::upstream::Upstream;

use state::{Open, Options, Plan, Pushed, Refusal, State};

/// Where proposals are kept.
const REFS: &str = "refs/proposals/";
/// The branch they are for.
const TARGET: &str = "main";

/// The ref of a proposal's head.
pub fn head_ref(number: i64) -> String {
    format!("{REFS}{number}/head")
}

/// The ref that keeps one of its revisions, so that an earlier one is never collected as garbage.
fn revision_ref(number: i64, revision: i64) -> String {
    format!("{REFS}{number}/{revision}")
}

/// Why a proposal could not be opened or revised.
#[derive(Debug, thiserror::Error)]
pub enum ProposeError {
    /// The push itself asks for what cannot be.
    #[error(transparent)]
    Refused(#[from] Refusal),
    /// git failed.
    #[error(transparent)]
    Git(#[from] GitError),
    /// The database failed.
    #[error(transparent)]
    Store(#[from] StoreError),
    /// The repository that is followed did not take it as a branch; nothing was written here either.
    #[error("the repository that this library follows did not take it: {0}")]
    Upstream(#[source] GitError),
    /// A task was cut off.
    #[error("the server is stopping")]
    Stopping,
}

/// What a push wrote.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Written {
    /// The proposal as it is now.
    pub proposal: ProposalRow,
    /// Its head before; none for a new one.
    pub old: Option<String>,
    /// Whether the old head is no ancestor of the new.
    pub forced: bool,
    /// The branch it became in the repository that is followed.
    pub branch: Option<Branch>,
}

/// A proposal in the repository that is followed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Branch {
    /// Its name there.
    pub name: String,
    /// What the other side said, a line each.
    pub said: Vec<String>,
}

/// The proposals of a library.
#[derive(Debug)]
pub struct Proposals {
    store: Store,
    repository: Repository,
    /// Where proposals go as branches.
    upstream: Option<Arc<Upstream>>,
    /// Numbers are given one at a time.
    writing: Mutex<Rows>,
}

/// How the rows stand against the refs.
#[derive(Debug, PartialEq)]
enum Rows {
    /// As they should.
    Whole,
    /// A ref was written and its row could not be: the disk was full, the database busy.
    Behind,
}

impl Proposals {
    /// The proposals of a repository, with their records in a store; `upstream` where they go on as branches.
    pub fn new(store: Store, repository: Repository, upstream: Option<Arc<Upstream>>) -> Self {
        Self {
            store,
            repository,
            upstream,
            writing: Mutex::new(Rows::Whole),
        }
    }

    /// Opens a proposal of a commit, or revises the one that is meant. The commit's objects are in the repository.
    pub async fn push(
        self: &Arc<Self>,
        actor: &Actor,
        head: &str,
        options: &[String],
        now_ms: i64,
    ) -> Result<Written, ProposeError> {
        let options = Options::parse(options)?;
        let mut rows = self.writing.lock().await;
        if *rows == Rows::Behind {
            self.bring_up(now_ms).await?;
            *rows = Rows::Whole;
        }
        let open = self.store.proposals_in(State::Open.as_str()).await?;
        let known: Vec<Open> = open
            .iter()
            .map(|row| Open {
                number: row.number,
                topic: row.topic.clone(),
                head: row.head.clone(),
            })
            .collect();
        let (pushed, subject) = self
            .blocking({
                let (known, head) = (known.clone(), head.to_owned());
                move |repository| look(repository, &known, &head)
            })
            .await?;
        let (old, row) = match state::plan(&known, &options, &pushed)? {
            Plan::Open => {
                let number = self.next_number().await?;
                let row = ProposalRow {
                    number,
                    target: TARGET.into(),
                    topic: options.topic,
                    title: options.title.unwrap_or_else(|| state::title(&subject)),
                    author: actor.name.to_string(),
                    state: State::Open.as_str().into(),
                    head: head.to_owned(),
                    revision: 1,
                    opened_at: now_ms,
                    changed_at: now_ms,
                };
                (None, row)
            }
            Plan::Revise(number) => {
                let Some(before) = open.into_iter().find(|row| row.number == number) else {
                    return Err(Refusal::NotOpen(number).into());
                };
                let old = before.head.clone();
                let row = ProposalRow {
                    topic: options.topic.or(before.topic),
                    title: options.title.unwrap_or(before.title),
                    revision: before.revision + i64::from(old != head),
                    head: head.to_owned(),
                    changed_at: now_ms,
                    ..before
                };
                (Some(old), row)
            }
        };
        // there first: what it does not take must not stay here, apart
        let branch = match &self.upstream {
            Some(upstream) => {
                let number = format!("proposal-{}", row.number);
                let name = row.topic.as_ref().unwrap_or(&number);
                let pushed = upstream.propose(head, name).await;
                let (name, said) = pushed.map_err(ProposeError::Upstream)?;
                Some(Branch { name, said })
            }
            None => None,
        };
        let forced = self
            .blocking({
                let (row, old) = (row.clone(), old.clone());
                move |repository| write_refs(repository, &row, old.as_deref())
            })
            .await?;
        if let Err(error) = self.store.put_proposal(&row, &actor.name).await {
            *rows = Rows::Behind;
            return Err(error.into());
        }
        Ok(Written {
            proposal: row,
            old,
            forced,
            branch,
        })
    }

    /// The open proposals, by number.
    pub async fn open(&self) -> Result<Vec<ProposalRow>, StoreError> {
        self.store.proposals_in(State::Open.as_str()).await
    }

    /// One proposal.
    pub async fn get(&self, number: i64) -> Result<Option<ProposalRow>, StoreError> {
        self.store.proposal(number).await
    }

    /// Puts right what a crash, a deleted database or a push to main has left: a row for every proposal that is only a
    /// ref, and `merged` for every open one that main has. Returns how many rows it wrote.
    pub async fn reconcile(self: &Arc<Self>, now_ms: i64) -> Result<usize, ProposeError> {
        let mut rows = self.writing.lock().await;
        let written = self.bring_up(now_ms).await?;
        *rows = Rows::Whole;
        Ok(written)
    }

    async fn bring_up(self: &Arc<Self>, now_ms: i64) -> Result<usize, ProposeError> {
        let open = self.store.proposals_in(State::Open.as_str()).await?;
        let mut written = 0;
        let found = self.blocking(heads).await?;
        for (number, head, revision) in found {
            let row = match self.store.proposal(number).await? {
                Some(row) if row.head == head => continue,
                Some(row) => ProposalRow {
                    head,
                    revision: revision.max(row.revision),
                    changed_at: now_ms,
                    ..row
                },
                None => {
                    let facts = self
                        .blocking({
                            let head = head.clone();
                            move |repository| Ok(repository.facts(&head)?)
                        })
                        .await?;
                    ProposalRow {
                        number,
                        target: TARGET.into(),
                        topic: None,
                        title: state::title(&facts.subject),
                        author: facts.author,
                        state: State::Open.as_str().into(),
                        head,
                        revision,
                        opened_at: facts.seconds.saturating_mul(1000),
                        changed_at: now_ms,
                    }
                }
            };
            self.store.put_proposal(&row, &row.author).await?;
            written += 1;
        }
        let open = if written > 0 {
            self.store.proposals_in(State::Open.as_str()).await?
        } else {
            open
        };
        let merged = self
            .blocking(move |repository| {
                let Some(tip) = repository.main_tip()? else {
                    return Ok(Vec::new());
                };
                Ok(open
                    .into_iter()
                    .filter(|row| repository.reachable(&row.head, &tip).is_ok())
                    .collect())
            })
            .await?;
        for row in merged {
            let row = ProposalRow {
                state: State::Merged.as_str().into(),
                changed_at: now_ms,
                ..row
            };
            self.store.put_proposal(&row, &row.author).await?;
            written += 1;
        }
        Ok(written)
    }

    /// The number after the highest one that the store or the refs have.
    async fn next_number(self: &Arc<Self>) -> Result<i64, ProposeError> {
        let stored = self.store.last_proposal().await?;
        let found = self.blocking(heads).await?;
        let highest = found.iter().map(|(number, ..)| *number).max().unwrap_or(0);
        Ok(stored.max(highest) + 1)
    }

    async fn blocking<T: Send + 'static>(
        self: &Arc<Self>,
        work: impl FnOnce(&Repository) -> Result<T, ProposeError> + Send + 'static,
    ) -> Result<T, ProposeError> {
        let proposals = self.clone();
        tokio::task::spawn_blocking(move || work(&proposals.repository))
            .await
            .map_err(|_| ProposeError::Stopping)?
    }
}

/// What the decision needs to know of a pushed commit, and its subject.
fn look(
    repository: &Repository,
    open: &[Open],
    head: &str,
) -> Result<(Pushed, String), ProposeError> {
    let in_main = match repository.main_tip()? {
        Some(tip) => repository.reachable(head, &tip).is_ok(),
        None => false,
    };
    let builds_on: Vec<&Open> = open
        .iter()
        .filter(|proposal| repository.reachable(&proposal.head, head).is_ok())
        .collect();
    // of two proposals where one builds on the other, the upper one is nearer: it has more of the others below it
    let below = |one: &Open| {
        let is_below = |other: &&&Open| repository.reachable(&other.head, &one.head).is_ok();
        builds_on.iter().filter(is_below).count()
    };
    let mut nearest: Vec<(usize, i64)> = builds_on
        .iter()
        .map(|proposal| (below(proposal), proposal.number))
        .collect();
    nearest.sort_unstable_by(|a, b| b.cmp(a));
    let pushed = Pushed {
        head: head.to_owned(),
        in_main,
        builds_on: nearest.into_iter().map(|(_, number)| number).collect(),
    };
    Ok((pushed, repository.facts(head)?.subject))
}

/// Points a proposal's refs at its head; whether that took something out of it.
fn write_refs(
    repository: &Repository,
    row: &ProposalRow,
    old: Option<&str>,
) -> Result<bool, ProposeError> {
    if old == Some(&row.head) {
        return Ok(false);
    }
    let edits = [
        RefEdit {
            name: head_ref(row.number),
            new: row.head.clone(),
            old: old.map(Into::into),
        },
        RefEdit {
            name: revision_ref(row.number, row.revision),
            new: row.head.clone(),
            old: None,
        },
    ];
    repository.move_refs(&edits, "proposal")?;
    match old {
        Some(old) => Ok(repository.advance(old, &row.head)? == Advance::Rewrites),
        None => Ok(false),
    }
}

/// Number, head and newest revision of every proposal that has refs.
fn heads(repository: &Repository) -> Result<Vec<(i64, String, i64)>, ProposeError> {
    let mut out: Vec<(i64, String, i64)> = Vec::new();
    let refs = repository.refs(REFS)?;
    for (name, head) in &refs {
        let number = name
            .strip_prefix(REFS)
            .and_then(|rest| rest.strip_suffix("/head"))
            .and_then(|number| number.parse().ok());
        if let Some(number) = number {
            let prefix = format!("{REFS}{number}/");
            let revision = refs
                .iter()
                .filter_map(|(name, _)| name.strip_prefix(&prefix)?.parse::<i64>().ok())
                .max()
                .unwrap_or(1);
            out.push((number, head.clone(), revision.max(1)));
        }
    }
    Ok(out)
}
