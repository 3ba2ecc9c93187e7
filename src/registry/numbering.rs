//! Counts versions from a repository: all of them, or those that came since.

use std::collections::{HashMap, HashSet};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::mpsc::sync_channel;
use std::sync::{Arc, Mutex, PoisonError};

use crate::git::log::LoggedCommit;
use crate::git::{Blobs, GitError, Mode, Repository};
use crate::history::facts::MAX_BYTES;
use crate::history::{Change, Commit, Facts, History, Id, Kind, State, Step, kind};
use crate::prompt::parse::hex;

/// Commits that are read before their files are.
const BATCH: usize = 1000;
/// Batches that wait.
const WAITING: usize = 4;
/// Commits that are walked by comparing trees; for more, a process of git costs less.
const FEW: usize = 200;
/// Facts of blobs that are kept while a whole history is counted: reverts bring the same ones again.
const KEPT_FACTS: usize = 200_000;

/// How far a count has come.
#[derive(Debug, Default)]
pub struct Progress {
    done: AtomicU64,
    total: AtomicU64,
    stopped: AtomicBool,
}

impl Progress {
    /// Ends the count that runs, and any later one.
    pub fn stop(&self) {
        self.stopped.store(true, Ordering::Relaxed);
    }

    /// Commits that are counted, and how many there are; 0 while that is not known.
    pub fn get(&self) -> (u64, u64) {
        (
            self.done.load(Ordering::Relaxed),
            self.total.load(Ordering::Relaxed),
        )
    }
}

/// Versions up to a commit, with the files of that commit once they are needed to go on.
#[derive(Debug, Clone)]
pub struct Numbering {
    /// The versions.
    pub history: Arc<History>,
    state: Option<State>,
}

/// Reads blobs and says what a number rests on of them.
struct Reader {
    blobs: Blobs,
    known: HashMap<(bool, Id), Arc<Facts>>,
}

impl Reader {
    fn new(repository: &Repository) -> Result<Self, GitError> {
        Ok(Self {
            blobs: repository.blobs()?,
            known: HashMap::new(),
        })
    }

    fn facts(&mut self, kind: &Kind, id: Id) -> Result<Arc<Facts>, GitError> {
        let is_prompt = matches!(kind, Kind::Prompt(_));
        if let Some(facts) = self.known.get(&(is_prompt, id)) {
            return Ok(facts.clone());
        }
        facts(&self.blobs, is_prompt, id)
    }
}

fn facts(blobs: &Blobs, is_prompt: bool, id: Id) -> Result<Arc<Facts>, GitError> {
    if blobs.size(id)? > MAX_BYTES as u64 {
        return Ok(Arc::default());
    }
    let bytes = blobs.read(id)?;
    Ok(Arc::new(if is_prompt {
        Facts::of_prompt(&bytes)
    } else {
        Facts::of_partial(&bytes)
    }))
}

fn step(commit: LoggedCommit, authors: &mut HashSet<Arc<str>>) -> Step {
    let mut facts = Commit::new(commit.id, commit.seconds, &commit.author, &commit.subject);
    // most commits are by few people
    match authors.get(&facts.author) {
        Some(known) => facts.author = known.clone(),
        None => {
            authors.insert(facts.author.clone());
        }
    }
    let changes = commit
        .changes
        .into_iter()
        .filter_map(|change| {
            let path: Arc<str> = String::from_utf8(change.path).ok()?.into();
            kind(&path)?;
            Some(Change {
                path,
                after: change.after,
            })
        })
        .collect();
    Step {
        commit: Arc::new(facts),
        changes,
    }
}

impl Numbering {
    /// Goes on from versions that were kept.
    pub fn kept(history: History) -> Self {
        Self {
            history: Arc::new(history),
            state: None,
        }
    }

    /// Counts the whole history of a commit. Blocks for as long as reading every change takes.
    pub fn cold(repository: &Repository, tip: &str, progress: &Progress) -> Result<Self, GitError> {
        let mut made = Self {
            history: Arc::default(),
            state: Some(State::default()),
        };
        progress.done.store(0, Ordering::Relaxed);
        std::thread::scope(|scope| {
            scope.spawn(|| {
                let total = repository.count_first_parents(tip).unwrap_or_default();
                progress.total.store(total, Ordering::Relaxed);
            });
            made.stream(repository, tip, None, Some(progress))
        })?;
        Ok(made)
    }

    /// Goes on to a commit that has the one it is at on its first-parent chain; false, and unchanged, where it does not.
    pub fn advance(&mut self, repository: &Repository, tip: &str) -> Result<bool, GitError> {
        let Some(at) = self.history.tip() else {
            return Ok(false);
        };
        let at = hex(&at);
        if *at == *tip {
            return Ok(true);
        }
        let few = repository.few_first_parents(tip, &at, FEW)?;
        if let Some(commits) = few {
            let mut reader = Reader::new(repository)?;
            let mut state = self.state(repository)?;
            let mut history = (*self.history).clone();
            let mut authors = HashSet::new();
            for commit in commits {
                state.step(
                    &mut history,
                    &step(commit, &mut authors),
                    &mut |kind, id| reader.facts(kind, id),
                )?;
            }
            self.history = Arc::new(history);
            self.state = Some(state);
            return Ok(true);
        }
        if repository.reachable(&at, tip).is_err() {
            return Ok(false);
        }
        let mut ahead = self.clone();
        ahead.state = Some(self.state(repository)?);
        if ahead.stream(repository, tip, Some(&at), None)? {
            *self = ahead;
            return Ok(true);
        }
        Ok(false)
    }

    /// Reads the files of the commit it is at, so that going on need not.
    pub fn prepare(&mut self, repository: &Repository) -> Result<(), GitError> {
        if self.state.is_none() {
            self.state = Some(self.state(repository)?);
        }
        Ok(())
    }

    fn state(&self, repository: &Repository) -> Result<State, GitError> {
        if let Some(state) = &self.state {
            return Ok(state.clone());
        }
        let Some(tip) = self.history.tip() else {
            return Ok(State::default());
        };
        let files: Vec<(Arc<str>, Id)> = repository
            .tree(&hex(&tip))?
            .into_iter()
            .filter(|entry| entry.mode == Mode::File)
            .filter_map(|entry| Some((String::from_utf8(entry.path).ok()?.into(), entry.id)))
            .collect();
        let mut reader = Reader::new(repository)?;
        let wanted = files
            .iter()
            .filter_map(|(path, id)| Some((kind(path)?, *id)));
        reader.known = read_all(repository, wanted, &HashMap::new())?;
        State::of(files, &mut |kind, id| reader.facts(kind, id))
    }

    /// Counts what a process of git lists; false, with this half way, where the list does not begin at `since`.
    fn stream(
        &mut self,
        repository: &Repository,
        tip: &str,
        since: Option<&str>,
        progress: Option<&Progress>,
    ) -> Result<bool, GitError> {
        let listing = repository.first_parents(tip, since)?;
        let mut state = self.state.take().unwrap_or_default();
        let mut history = (*self.history).clone();
        let mut expected = history.tip();
        let mut known: HashMap<(bool, Id), Arc<Facts>> = HashMap::new();
        let mut reader = Reader::new(repository)?;
        let result = std::thread::scope(|scope| {
            let (send, receive) = sync_channel::<Result<Vec<LoggedCommit>, GitError>>(WAITING);
            scope.spawn(move || {
                let mut batch = Vec::with_capacity(BATCH);
                for commit in listing {
                    match commit {
                        Ok(commit) => batch.push(commit),
                        Err(error) => {
                            let _ = send.send(Err(error));
                            return;
                        }
                    }
                    if batch.len() == BATCH {
                        let full = std::mem::replace(&mut batch, Vec::with_capacity(BATCH));
                        if send.send(Ok(full)).is_err() {
                            return;
                        }
                    }
                }
                let _ = send.send(Ok(batch));
            });
            let mut authors = HashSet::new();
            for batch in receive {
                let mut steps = Vec::with_capacity(BATCH);
                for commit in batch? {
                    if commit.parent != expected {
                        return Ok(false);
                    }
                    expected = Some(commit.id);
                    steps.push(step(commit, &mut authors));
                }
                if known.len() > KEPT_FACTS {
                    known.clear();
                }
                let wanted = steps
                    .iter()
                    .flat_map(|step| &step.changes)
                    .filter_map(|change| Some((kind(&change.path)?, change.after?)));
                known.extend(read_all(repository, wanted, &known)?);
                std::mem::swap(&mut reader.known, &mut known);
                for step in &steps {
                    state.step(&mut history, step, &mut |kind, id| reader.facts(kind, id))?;
                }
                std::mem::swap(&mut reader.known, &mut known);
                if let Some(progress) = progress {
                    if progress.stopped.load(Ordering::Relaxed) {
                        let stopped = std::io::Error::from(std::io::ErrorKind::Interrupted);
                        return Err(stopped.into());
                    }
                    let steps = steps.len() as u64;
                    progress.done.fetch_add(steps, Ordering::Relaxed);
                }
            }
            Ok(true)
        });
        self.history = Arc::new(history);
        self.state = Some(state);
        result
    }
}

/// The facts of blobs that are not known yet, read on every processor.
fn read_all(
    repository: &Repository,
    wanted: impl Iterator<Item = (Kind, Id)>,
    known: &HashMap<(bool, Id), Arc<Facts>>,
) -> Result<HashMap<(bool, Id), Arc<Facts>>, GitError> {
    let todo: HashSet<(bool, Id)> = wanted
        .filter(|(kind, _)| *kind != Kind::Labels)
        .map(|(kind, id)| (matches!(kind, Kind::Prompt(_)), id))
        .filter(|key| !known.contains_key(key))
        .collect();
    let todo: Vec<(bool, Id)> = todo.into_iter().collect();
    let threads = std::thread::available_parallelism().map_or(1, usize::from);
    let share = todo.len().div_ceil(threads.clamp(1, 8)).max(64);
    let found = Mutex::new(HashMap::with_capacity(todo.len()));
    std::thread::scope(|scope| {
        let readers: Vec<_> = todo
            .chunks(share)
            .map(|share| {
                let found = &found;
                scope.spawn(move || {
                    let blobs = repository.blobs()?;
                    let mut out = Vec::with_capacity(share.len());
                    for (is_prompt, id) in share {
                        out.push(((*is_prompt, *id), facts(&blobs, *is_prompt, *id)?));
                    }
                    found
                        .lock()
                        .unwrap_or_else(PoisonError::into_inner)
                        .extend(out);
                    Ok::<(), GitError>(())
                })
            })
            .collect();
        for reader in readers {
            reader
                .join()
                .map_err(|_| GitError::Io(std::io::Error::other("a reader of blobs failed")))??;
        }
        Ok::<(), GitError>(())
    })?;
    Ok(found.into_inner().unwrap_or_else(PoisonError::into_inner))
}
