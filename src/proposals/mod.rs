//! Changes under review: opened and revised by a push to `refs/for/main`, kept under `refs/proposals/<number>/`.
//!
//! The commits are refs, so that a deleted database loses words and no change: `reconcile` writes a row again for every
//! ref that has none.

pub mod place;
pub mod review;
pub mod state;
mod talk;

use std::collections::{BTreeMap, HashMap};
use std::sync::Arc;

use tokio::sync::Mutex;
use tokio_util::sync::CancellationToken;

use crate::access::{Action, Actor};
use crate::git::history::{Advance, RefEdit};
use crate::git::merge::MergeFound;
use crate::git::{GitError, Repository};
use crate::store::{ProposalRow, Store, StoreError};

use crate::upstream::Upstream;

pub use talk::{About, NewComment, Place, Seen, TalkError, tag};

use state::{Open, Options, Plan, Pushed, Refusal, State};

/// Where proposals are kept.
const REFS: &str = "refs/proposals/";
/// Commits of main among which the merge of a proposal is looked for.
const MERGES: usize = 10_000;
/// Commits of a push among which the head of an open proposal is looked for.
const LOOKED_AT: usize = 10_000;
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

/// What is said with a commit that is proposed.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Words {
    /// Which proposal it is of, its topic and its title.
    pub options: Options,
    /// What its author says of it beside the title; none to leave that as it is.
    pub body: Option<String>,
    /// The head that it revises; none where that does not matter.
    pub onto: Option<String>,
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
    writing: Mutex<()>,
}

impl Proposals {
    /// The proposals of a repository, with their records in a store; `upstream` where they go on as branches.
    pub fn new(store: Store, repository: Repository, upstream: Option<Arc<Upstream>>) -> Self {
        Self {
            store,
            repository,
            upstream,
            writing: Mutex::new(()),
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
        let words = Words {
            options: Options::parse(options)?,
            ..Words::default()
        };
        self.record(actor, head, words, now_ms).await
    }

    /// The same, asked for in another way than by git.
    pub async fn record(
        self: &Arc<Self>,
        actor: &Actor,
        head: &str,
        Words {
            options,
            body,
            onto,
        }: Words,
        now_ms: i64,
    ) -> Result<Written, ProposeError> {
        let _one = self.writing.lock().await;
        // what main has got meanwhile is open no more, and a row that could not be written has its ref
        self.bring_up(now_ms).await?;
        let open = self.store.proposals_in(State::Open.as_str()).await?;
        let known: Vec<Open> = open
            .iter()
            .map(|row| Open {
                number: row.number,
                topic: row.topic.clone(),
                head: row.head.clone(),
            })
            .collect();
        let (pushed, subject, paths) = self
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
                    body: body.unwrap_or_default(),
                    paths,
                    version: 1,
                    ..ProposalRow::default()
                };
                (None, row)
            }
            Plan::Revise(number) => {
                let Some(before) = open.into_iter().find(|row| row.number == number) else {
                    return Err(Refusal::NotOpen(number).into());
                };
                may_revise(actor, &before)?;
                let old = before.head.clone();
                if onto.is_some_and(|onto| onto != old) {
                    return Err(Refusal::MovedOn(number, old).into());
                }
                let row = ProposalRow {
                    topic: options.topic.or(before.topic),
                    title: options.title.unwrap_or(before.title),
                    revision: before.revision + i64::from(old != head),
                    head: head.to_owned(),
                    changed_at: now_ms,
                    body: body.unwrap_or(before.body),
                    paths,
                    version: before.version + 1,
                    ..before
                };
                (Some(old), row)
            }
        };
        // there first: what it does not take must not stay here, apart
        let branch = match &self.upstream {
            Some(upstream) => {
                let name = self.branch_name(&row).await?;
                let pushed = upstream.propose(head, &name, old.as_deref()).await;
                let said = pushed.map_err(ProposeError::Upstream)?;
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
        self.store.put_proposal(&row, &actor.name).await?;
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
        let _one = self.writing.lock().await;
        self.bring_up(now_ms).await
    }

    /// Reconciles whenever another commit is served, whoever moved main, until it is cancelled.
    pub async fn keep_up(
        self: Arc<Self>,
        mut served: tokio::sync::watch::Receiver<u64>,
        cancel: CancellationToken,
    ) {
        loop {
            if let Err(error) = self.reconcile(crate::clock::unix_millis()).await {
                tracing::error!(%error, "the proposals could not be brought up to main");
            }
            match cancel.run_until_cancelled(served.changed()).await {
                Some(Ok(())) => {}
                Some(Err(_)) | None => return,
            }
        }
    }

    async fn bring_up(self: &Arc<Self>, now_ms: i64) -> Result<usize, ProposeError> {
        let mut written = 0;
        let found = self.blocking(heads).await?;
        let all = self.store.proposals().await?;
        let mut rows: HashMap<i64, ProposalRow> =
            all.into_iter().map(|row| (row.number, row)).collect();
        for (number, head, revision) in found {
            let row = match rows.remove(&number) {
                Some(row) if row.head == head => continue,
                Some(row) => ProposalRow {
                    head,
                    revision: revision.max(row.revision),
                    changed_at: now_ms,
                    paths: None,
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
                        version: 1,
                        ..ProposalRow::default()
                    }
                }
            };
            self.store.put_proposal(&row, &row.author).await?;
            written += 1;
        }
        let (open, mut lacking): (Vec<_>, Vec<_>) = self
            .store
            .proposals()
            .await?
            .into_iter()
            .partition(|row| State::parse(&row.state) == State::Open);
        lacking.retain(|row| row.paths.is_none());
        if open.is_empty() && lacking.is_empty() {
            return Ok(written);
        }
        let brought = self
            .blocking(move |repository| {
                let Some(tip) = repository.main_tip()? else {
                    return Ok(Vec::new());
                };
                // one walk for all of them
                let merged = repository.merged(&tip, REFS)?;
                let (ended, mut still): (Vec<_>, Vec<_>) = open
                    .into_iter()
                    .partition(|row| merged.contains(&head_ref(row.number)));
                let heads = ended.iter().map(|row| (row.number, row.head.clone()));
                let merges = repository.merges_of(&tip, &heads.collect(), MERGES)?;
                still.retain(|row| row.paths.is_none());
                for row in &mut still {
                    row.paths = paths(repository, &row.head, &tip)?;
                }
                for row in &mut lacking {
                    row.paths = paths_of_ended(repository, row, &tip);
                }
                let known = still.into_iter().chain(lacking);
                let known = known.filter(|row| row.paths.is_some());
                let ended = ended.into_iter().map(|row| {
                    let found = merges.get(&row.number);
                    let mut row = ended_by(row, found, now_ms);
                    if row.paths.is_none() {
                        row.paths = paths_of_ended(repository, &row, &tip);
                    }
                    row
                });
                Ok(known.chain(ended).collect())
            })
            .await?;
        for row in brought {
            self.store.put_proposal(&row, &row.author).await?;
            written += 1;
        }
        Ok(written)
    }

    /// The branch of a proposal in the repository that is followed: the same for all its revisions, and no other
    /// proposal's, also where another server, or this one with a new database, counts from 1 again.
    async fn branch_name(self: &Arc<Self>, row: &ProposalRow) -> Result<String, ProposeError> {
        let number = row.number;
        let first = self
            .blocking(move |repository| Ok(repository.read_ref(&revision_ref(number, 1))?))
            .await?;
        let first = first.as_ref().unwrap_or(&row.head);
        let short = first.get(..7).unwrap_or(first);
        Ok(format!("cuebook/{number}-{short}"))
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

/// A row of a proposal that main has.
fn ended_by(row: ProposalRow, found: Option<&MergeFound>, now_ms: i64) -> ProposalRow {
    let state = State::Merged.as_str().into();
    let Some(found) = found else {
        return ProposalRow {
            state,
            changed_at: now_ms,
            ..row
        };
    };
    let says = format!("Merge proposal {}: ", row.number);
    let title = found.subject.strip_prefix(&says).map(state::title);
    ProposalRow {
        state,
        title: title.unwrap_or(row.title),
        changed_at: now_ms,
        merge_commit: Some(found.commit.clone()),
        ended_by: Some(found.author.clone()),
        ended_at: Some(found.seconds.saturating_mul(1000)),
        ..row
    }
}

/// Whether an actor may revise a proposal: its author, or who may propose changes of all that it touches.
fn may_revise(actor: &Actor, row: &ProposalRow) -> Result<(), Refusal> {
    let touched = row.touches();
    let all = |action: Action| touched.iter().all(|path| actor.may(action, path));
    if *row.author == *actor.name || all(Action::Propose) {
        return Ok(());
    }
    Err(if all(Action::Read) {
        Refusal::NotYours(row.number, row.author.clone())
    } else {
        Refusal::NotOpen(row.number)
    })
}

/// The files that a proposal touches, as they are stored; none where that cannot be told from what main has.
fn paths(repository: &Repository, head: &str, main: &str) -> Result<Option<String>, GitError> {
    let base = repository.merge_base(head, main)?;
    // main has all of it, and where it began is not known
    let Some(base) = base.filter(|base| base != head) else {
        return Ok(None);
    };
    let touched = repository.touched(&base, head, false)?;
    Ok(serde_json::to_string(&touched).ok())
}

/// The same for one that is open no more; none as well where git cannot say, as after another history took main's place.
fn paths_of_ended(repository: &Repository, row: &ProposalRow, main: &str) -> Option<String> {
    let before = match &row.merge_commit {
        Some(merge) => repository.first_parent(merge).ok().flatten()?,
        None if State::parse(&row.state) == State::Merged => return None,
        None => main.to_owned(),
    };
    paths(repository, &row.head, &before).ok().flatten()
}

/// What the decision needs to know of a pushed commit, its subject, and what it touches.
fn look(
    repository: &Repository,
    open: &[Open],
    head: &str,
) -> Result<(Pushed, String, Option<String>), ProposeError> {
    // what main does not have of it, newest first: the first head of a proposal that is met is the nearest
    let main = repository.main_tip()?;
    let added = repository.beyond(head, main.as_deref(), LOOKED_AT)?;
    let by_head: HashMap<&str, i64> = open
        .iter()
        .map(|proposal| (proposal.head.as_str(), proposal.number))
        .collect();
    let pushed = Pushed {
        head: head.to_owned(),
        in_main: added.is_empty(),
        builds_on: added
            .iter()
            .filter_map(|commit| by_head.get(commit.as_str()).copied())
            .collect(),
    };
    let paths = match &main {
        Some(main) => paths(repository, head, main)?,
        None => None,
    };
    Ok((pushed, repository.facts(head)?.subject, paths))
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
    let mut found: BTreeMap<i64, (Option<String>, i64)> = BTreeMap::new();
    for (name, head) in repository.refs(REFS)? {
        let parts = name
            .strip_prefix(REFS)
            .and_then(|rest| rest.split_once('/'));
        let Some((Ok(number), last)) = parts.map(|(number, last)| (number.parse(), last)) else {
            continue;
        };
        let entry = found.entry(number).or_insert((None, 1));
        if last == "head" {
            entry.0 = Some(head);
        } else if let Ok(revision) = last.parse() {
            entry.1 = entry.1.max(revision);
        }
    }
    Ok(found
        .into_iter()
        .filter_map(|(number, (head, revision))| Some((number, head?, revision)))
        .collect())
}
