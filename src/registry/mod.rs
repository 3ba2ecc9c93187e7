//! Holds the current catalog; the only publisher; tells who waits.
//!
//! A refresh derives the catalog from the refs: it is checked, and only what is clean is served. Nothing on the way of
//! a request waits for it.

pub mod source;
mod watch;

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::num::NonZeroUsize;
use std::path::Path;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use arc_swap::ArcSwap;
use lru::LruCache;
use tokio::sync::watch as channel;

use crate::catalog::build::{Built, build, build_and_run};
use crate::catalog::{Catalog, MemoryTree, Revision};
use crate::git::{GitError, Repository, SERVED};
use crate::prompt::{Limits, Problem, Prompt};

use source::{CommitTree, Library, WorkTree};

/// Catalogs of other commits that are kept for `name@<commit>`.
const KEPT_REVISIONS: usize = 8;
/// Commits that are known not to pass the check, so that asking again costs nothing.
const KEPT_UNCLEAN: usize = 64;
/// First-parent ancestors that are checked when the tip is bad and nothing is remembered.
const MAX_ANCESTORS: usize = 1000;
/// Problems that a status carries as text.
const SHOWN_PROBLEMS: usize = 20;

/// Looks at a changed work tree until two in a row are the same, at most so many.
const SETTLING: usize = 5;
/// Time between two looks.
const SETTLE: Duration = Duration::from_millis(30);
/// The same when a file is empty, which no file of a library is for long.
const SETTLE_EMPTY: Duration = Duration::from_millis(150);

/// What is served now, taken once a request.
#[derive(Debug)]
pub struct Snapshot {
    /// The index everything comes from.
    pub catalog: Arc<Catalog>,
    /// Counts swaps, from 1; never repeats in a process.
    pub generation: u64,
    /// When what last changed.
    pub changes: Changes,
    /// Whether the tip is served.
    pub status: Status,
}

/// Generations at which what clients see last changed; a stream compares them with what it was told.
#[derive(Debug, Clone, Default)]
pub struct Changes {
    /// Any prompt lists or renders differently (or, with the setting off, lists differently).
    pub prompts: u64,
    /// The same by folder (every folder prefix: `a`, `a/b`).
    pub folders: HashMap<Arc<str>, u64>,
    /// The list of resources differs (URIs, names, types).
    pub resources_list: u64,
    /// A resource's content differs; streams then compare the hashes of what they subscribed to.
    pub resources_content: u64,
}

/// What is served against what main says.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Status {
    /// The tip of main; none for a work tree.
    pub tip: Option<String>,
    /// The served commit; none for a work tree.
    pub served: Option<String>,
    /// Whether only the good prompts of a bad revision are served.
    pub partial: bool,
    /// Error-level problems at the tip, as lines, at most 20.
    pub tip_problems: Vec<String>,
    /// Error-level problems at the tip in all.
    pub tip_problem_count: usize,
    /// Warnings of what is served.
    pub warning_count: usize,
    /// Why the last attempt to read the library failed, when it did.
    pub read_error: Option<String>,
}

/// Why a revision cannot be served.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum AtError {
    /// No commit of main has this id.
    #[error("no commit `{0}` on main")]
    Unknown(String),
    /// More than one has.
    #[error("`{0}` fits more than one commit; give more digits")]
    Ambiguous(String),
    /// It does not pass today's check.
    #[error("commit `{commit}` does not pass the check: {first}")]
    Unclean {
        /// The commit.
        commit: String,
        /// The first problem.
        first: String,
    },
    /// Too many requests for other commits at once.
    #[error("the server is reading other revisions; try again in a moment")]
    Busy,
    /// Reading failed; the inside is logged, not shown.
    #[error("the library could not be read")]
    Io,
}

/// Why there is no catalog to begin with.
#[derive(Debug, thiserror::Error)]
pub enum OpenError {
    /// git failed.
    #[error(transparent)]
    Git(#[from] GitError),
    /// Reading failed.
    #[error("the library could not be read: {0}")]
    Io(#[from] std::io::Error),
}

/// How a registry behaves.
#[derive(Debug, Clone)]
pub struct Settings {
    /// Limits of the format.
    pub limits: Limits,
    /// Whether an edit of a body alone is told to clients, because many of them cache.
    pub notify_body_edits: bool,
    /// Whether the served commit is remembered in `refs/cuebook/served`; only the owner of a data directory does.
    pub remember: bool,
}

impl Default for Settings {
    fn default() -> Self {
        Self {
            limits: Limits::default(),
            notify_body_edits: true,
            remember: false,
        }
    }
}

/// The one holder of the current catalog.
#[derive(Debug)]
pub struct Registry {
    library: Library,
    settings: Settings,
    current: ArcSwap<Snapshot>,
    generation: channel::Sender<u64>,
    refreshing: Mutex<()>,
    /// What a work tree held at the last refresh.
    files_seen: Mutex<Option<Arc<str>>>,
    revisions: Mutex<LruCache<String, Arc<Catalog>>>,
    /// The first problem of commits that do not pass the check.
    unclean: Mutex<LruCache<String, String>>,
    reading_revisions: tokio::sync::Semaphore,
}

/// What a refresh did.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Refreshed {
    /// Nothing had changed.
    Unchanged,
    /// A new snapshot is in.
    Swapped,
}

impl Registry {
    /// Reads the library and serves it. A bad tip is no error: what is good is served, and the status says so.
    pub fn open(library: Library, settings: Settings) -> Result<Self, OpenError> {
        let empty = build(
            &MemoryTree::default(),
            Revision::WorkTree,
            &settings.limits,
            None,
            &crate::catalog::examples::none,
        )?;
        let snapshot = Snapshot {
            catalog: Arc::new(empty.catalog),
            generation: 0,
            changes: Changes::default(),
            status: Status::default(),
        };
        let registry = Self {
            library,
            settings,
            current: ArcSwap::from_pointee(snapshot),
            generation: channel::Sender::new(0),
            refreshing: Mutex::new(()),
            files_seen: Mutex::new(None),
            revisions: Mutex::new(LruCache::new(
                NonZeroUsize::new(KEPT_REVISIONS).unwrap_or(NonZeroUsize::MIN),
            )),
            unclean: Mutex::new(LruCache::new(
                NonZeroUsize::new(KEPT_UNCLEAN).unwrap_or(NonZeroUsize::MIN),
            )),
            reading_revisions: tokio::sync::Semaphore::new(2),
        };
        registry.refresh()?;
        Ok(registry)
    }

    /// What is served now.
    pub fn snapshot(&self) -> Arc<Snapshot> {
        self.current.load_full()
    }

    /// Wakes whenever a new snapshot is in; carries its generation.
    pub fn subscribe(&self) -> channel::Receiver<u64> {
        self.generation.subscribe()
    }

    /// The limits in force.
    pub fn limits(&self) -> &Limits {
        &self.settings.limits
    }

    /// The library that is served.
    pub fn library(&self) -> &Library {
        &self.library
    }

    /// Derives the catalog again from the refs or files, and swaps it in when it differs. Blocks; one at a time.
    pub fn refresh(&self) -> Result<Refreshed, OpenError> {
        let _one = self
            .refreshing
            .lock()
            .unwrap_or_else(PoisonError::into_inner);
        let result = match &self.library {
            Library::Bare(repository) => self.refresh_commit(repository),
            Library::WorkTree { root, .. } => self.refresh_files(root),
        };
        if let Err(error) = &result {
            let snapshot = self.snapshot();
            if snapshot.generation > 0 {
                let status = Status {
                    read_error: Some(error.to_string()),
                    ..snapshot.status.clone()
                };
                self.replace_status(&snapshot, status);
            }
        }
        result
    }

    fn refresh_files(&self, root: &Path) -> Result<Refreshed, OpenError> {
        let mut tree = WorkTree::open(root)?;
        let old = self.snapshot();
        let mut fingerprint = Some(tree.fingerprint());
        let mut seen = self
            .files_seen
            .lock()
            .unwrap_or_else(PoisonError::into_inner);
        if old.generation > 0 && *seen == fingerprint && old.status.read_error.is_none() {
            return Ok(Refreshed::Unchanged);
        }
        // a file that is being saved in place is empty or cut off for a moment
        for _ in 0..SETTLING {
            if old.generation == 0 {
                break;
            }
            std::thread::sleep(if tree.has_empty_file() {
                SETTLE_EMPTY
            } else {
                SETTLE
            });
            let again = WorkTree::open(root)?;
            let now = Some(again.fingerprint());
            tree = again;
            if now == fingerprint {
                break;
            }
            fingerprint = now;
        }
        *seen = fingerprint;
        let built = build_and_run(
            &tree,
            Revision::WorkTree,
            &self.settings.limits,
            Some(&old.catalog),
        )?;
        let status = status(None, None, &built, true);
        if status.tip_problems != old.status.tip_problems {
            for problem in &status.tip_problems {
                tracing::error!("{problem}");
            }
            let more = status.tip_problem_count - status.tip_problems.len();
            if more > 0 {
                tracing::error!("and {more} more; see `cuebook check`");
            }
            if status.tip_problems.is_empty() {
                tracing::info!("all prompts are good again");
            }
        }
        Ok(self.swap(built.catalog, status))
    }

    fn refresh_commit(&self, repository: &Repository) -> Result<Refreshed, OpenError> {
        let old = self.snapshot();
        let Some(tip) = repository.main_tip()? else {
            return self.refresh_without_main(repository, &old);
        };
        if old.generation > 0
            && old.status.tip.as_deref() == Some(tip.as_str())
            && old.status.read_error.is_none()
        {
            return Ok(Refreshed::Unchanged);
        }
        if let Some(before) = &old.status.tip
            && repository.reachable(before, &tip).is_err()
        {
            // main was rewound: what it has left behind is served no more
            self.revisions
                .lock()
                .unwrap_or_else(PoisonError::into_inner)
                .clear();
        }
        let started = Instant::now();
        let at_tip = self.build_commit(repository, &tip, Some(&old.catalog))?;
        if at_tip.is_clean() {
            let status = status(Some(&tip), Some(&tip), &at_tip, false);
            let prompts = at_tip.catalog.list(None).len();
            let outcome = self.swap(at_tip.catalog, status);
            self.remember(repository, &tip);
            tracing::info!(commit = %tip, prompts, elapsed_ms = millis(started), "serving");
            return Ok(outcome);
        }
        let mut status = status(Some(&tip), Some(&tip), &at_tip, true);
        for problem in &status.tip_problems {
            tracing::error!(commit = %tip, "{problem}");
        }
        if let Some((commit, built)) = self.clean_ancestor(repository, &tip, &at_tip, &old)? {
            tracing::error!(
                tip = %tip, served = %commit, problems = status.tip_problem_count,
                "the tip of main has problems and is not served; the newest clean commit is"
            );
            status.served = Some(commit.clone());
            status.partial = false;
            let outcome = if let Some(built) = built {
                self.swap(built.catalog, status)
            } else {
                self.replace_status(&old, status);
                Refreshed::Unchanged
            };
            self.remember(repository, &commit);
            return Ok(outcome);
        }
        tracing::error!(
            tip = %tip, problems = status.tip_problem_count,
            "no commit of main is clean; the good prompts of the tip are served"
        );
        Ok(self.swap(at_tip.catalog, status))
    }

    /// Where main has no commit: nothing is served until the first push, and what was served once goes on.
    fn refresh_without_main(
        &self,
        repository: &Repository,
        old: &Snapshot,
    ) -> Result<Refreshed, OpenError> {
        const GONE: &str =
            "main is gone from the library; what was served goes on until it is pushed again";
        if old.status.read_error.as_deref() == Some(GONE) {
            return Ok(Refreshed::Unchanged);
        }
        let gone = |status: Status| Status {
            tip: None,
            read_error: Some(GONE.into()),
            ..status
        };
        if old.status.served.is_some() {
            tracing::error!("{GONE}");
            self.replace_status(old, gone(old.status.clone()));
            return Ok(Refreshed::Unchanged);
        }
        if old.generation > 0 && old.status.read_error.is_none() {
            return Ok(Refreshed::Unchanged);
        }
        if let Some(commit) = repository.read_ref(SERVED)? {
            let built = self.build_commit(repository, &commit, None)?;
            if built.is_clean() {
                tracing::error!(%commit, "{GONE}");
                let status = gone(status(None, Some(&commit), &built, false));
                return Ok(self.swap(built.catalog, status));
            }
        }
        let empty = build(
            &MemoryTree::default(),
            Revision::WorkTree,
            &self.settings.limits,
            None,
            &crate::catalog::examples::none,
        )?;
        Ok(self.swap(empty.catalog, Status::default()))
    }

    fn build_commit(
        &self,
        repository: &Repository,
        commit: &str,
        previous: Option<&Catalog>,
    ) -> Result<Built, OpenError> {
        let tree = CommitTree::open(repository, commit)?;
        Ok(build_and_run(
            &tree,
            Revision::Commit(commit.into()),
            &self.settings.limits,
            previous,
        )?)
    }

    /// The newest clean first-parent ancestor of a bad tip; without a build when it is what is served already.
    fn clean_ancestor(
        &self,
        repository: &Repository,
        tip: &str,
        at_tip: &Built,
        old: &Snapshot,
    ) -> Result<Option<(String, Option<Built>)>, OpenError> {
        let served = old
            .status
            .served
            .clone()
            .filter(|_| !old.status.partial && old.generation > 0);
        let remembered = served.clone().or(repository.read_ref(SERVED)?);
        let mut at = repository.first_parent(tip)?;
        let mut looked = 0;
        let mut last: Option<Built> = None;
        while let Some(commit) = at {
            if served.as_deref() == Some(commit.as_str()) {
                return Ok(Some((commit, None)));
            }
            // a commit differs little from its child: what that had is used again
            let child = last.as_ref().unwrap_or(at_tip);
            let built = self.build_commit(repository, &commit, Some(&child.catalog))?;
            if built.is_clean() {
                return Ok(Some((commit, Some(built))));
            }
            last = Some(built);
            looked += 1;
            if looked >= MAX_ANCESTORS {
                break;
            }
            at = repository.first_parent(&commit)?;
        }
        // far back, but known: remembered from a time when it was the tip
        match remembered {
            Some(commit)
                if looked >= MAX_ANCESTORS && repository.reachable(&commit, tip).is_ok() =>
            {
                let built = self.build_commit(repository, &commit, Some(&at_tip.catalog))?;
                Ok(built.is_clean().then_some((commit, Some(built))))
            }
            _ => Ok(None),
        }
    }

    fn remember(&self, repository: &Repository, commit: &str) {
        if !self.settings.remember
            || repository.read_ref(SERVED).ok().flatten().as_deref() == Some(commit)
        {
            return;
        }
        if let Err(error) = repository.write_own_ref(SERVED, commit) {
            tracing::warn!(%error, "{SERVED} could not be written; after a restart the served commit is looked for again");
        }
    }

    /// Puts a catalog in the place of the current one and tells who waits.
    fn swap(&self, catalog: Catalog, status: Status) -> Refreshed {
        let old = self.snapshot();
        let generation = old.generation + 1;
        let mut changes = old.changes.clone();
        let first = old.generation == 0;
        let changed = changed_folders(&old.catalog, &catalog, self.settings.notify_body_edits);
        if first || !changed.is_empty() {
            changes.prompts = generation;
        }
        for folder in changed {
            changes.folders.insert(folder, generation);
        }
        let (list, content) = changed_resources(&old.catalog, &catalog);
        if first || list {
            changes.resources_list = generation;
        }
        if first || content {
            changes.resources_content = generation;
        }
        self.current.store(Arc::new(Snapshot {
            catalog: Arc::new(catalog),
            generation,
            changes,
            status,
        }));
        self.generation.send_replace(generation);
        Refreshed::Swapped
    }

    /// The same catalog with another status; nobody needs to be told.
    fn replace_status(&self, old: &Snapshot, status: Status) {
        if old.status == status {
            return;
        }
        self.current.store(Arc::new(Snapshot {
            catalog: old.catalog.clone(),
            generation: old.generation,
            changes: old.changes.clone(),
            status,
        }));
    }

    /// The catalog of a commit reachable from main, from a small cache; read off the async threads, two at a time.
    pub async fn at(self: &Arc<Self>, commit: &str) -> Result<Arc<Catalog>, AtError> {
        let snapshot = self.snapshot();
        if snapshot.catalog.revision().commit() == Some(commit) {
            return Ok(snapshot.catalog.clone());
        }
        if let Some(found) = self
            .revisions
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .get(commit)
        {
            return Ok(found.clone());
        }
        let _permit =
            tokio::time::timeout(Duration::from_secs(5), self.reading_revisions.acquire())
                .await
                .map_err(|_| AtError::Busy)?
                .map_err(|_| AtError::Io)?;
        let registry = self.clone();
        let commit = commit.to_owned();
        tokio::task::spawn_blocking(move || registry.read_revision(&commit))
            .await
            .map_err(|_| AtError::Io)?
    }

    fn read_revision(&self, id: &str) -> Result<Arc<Catalog>, AtError> {
        let unreadable = |error: &dyn std::fmt::Display| {
            tracing::error!(%error, "a revision could not be read");
            AtError::Io
        };
        let repository = self
            .library
            .repository()
            .ok_or_else(|| AtError::Unknown(id.into()))?;
        let known = |error: GitError| match error {
            GitError::Unknown(id) => AtError::Unknown(id),
            GitError::Ambiguous(id) => AtError::Ambiguous(id),
            error => unreadable(&error),
        };
        let tip = repository
            .main_tip()
            .map_err(known)?
            .ok_or_else(|| AtError::Unknown(id.into()))?;
        let commit = repository.reachable(id, &tip).map_err(known)?;
        let cached = self
            .revisions
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .get(&commit)
            .cloned();
        let catalog = if let Some(cached) = cached {
            cached
        } else {
            let snapshot = self.snapshot();
            if snapshot.catalog.revision().commit() == Some(commit.as_str()) {
                return Ok(snapshot.catalog.clone());
            }
            if let Some(first) = self
                .unclean
                .lock()
                .unwrap_or_else(PoisonError::into_inner)
                .get(&commit)
                .cloned()
            {
                return Err(AtError::Unclean { commit, first });
            }
            let built = self
                .build_commit(repository, &commit, Some(&snapshot.catalog))
                .map_err(|e| unreadable(&e))?;
            if let Some(first) = built.problems.iter().find(|p| p.is_error()) {
                let first = first.one_line();
                self.unclean
                    .lock()
                    .unwrap_or_else(PoisonError::into_inner)
                    .put(commit.clone(), first.clone());
                return Err(AtError::Unclean { commit, first });
            }
            Arc::new(built.catalog)
        };
        let mut cache = self
            .revisions
            .lock()
            .unwrap_or_else(PoisonError::into_inner);
        cache.put(commit, catalog.clone());
        // the short form as it was asked for, so that the next request needs no git
        if id.len() < 40 {
            cache.put(id.to_owned(), catalog.clone());
        }
        Ok(catalog)
    }
}

fn millis(started: Instant) -> u64 {
    u64::try_from(started.elapsed().as_millis()).unwrap_or(u64::MAX)
}

fn status(tip: Option<&str>, served: Option<&str>, built: &Built, partial: bool) -> Status {
    let errors: Vec<&Problem> = built.problems.iter().filter(|p| p.is_error()).collect();
    Status {
        tip: tip.map(Into::into),
        served: served.map(Into::into),
        partial: partial && !errors.is_empty(),
        tip_problems: errors
            .iter()
            .take(SHOWN_PROBLEMS)
            .map(|p| p.one_line())
            .collect(),
        tip_problem_count: errors.len(),
        warning_count: built.problems.len() - errors.len(),
        read_error: None,
    }
}

/// Folders (every prefix, and `""` for the whole) with a prompt that lists or renders differently.
fn changed_folders(old: &Catalog, new: &Catalog, bodies: bool) -> BTreeSet<Arc<str>> {
    let mut out = BTreeSet::new();
    let mut note = |prompt: &Prompt| {
        out.insert("".into());
        let mut at = 0;
        while let Some(i) = prompt.folder[at..].find('/') {
            out.insert(prompt.folder[..at + i].into());
            at += i + 1;
        }
        out.insert(prompt.folder.clone());
    };
    for prompt in new.list(None) {
        match old.prompt(prompt.name.as_str()) {
            Some(before) if Arc::ptr_eq(before, prompt) => {
                if bodies && old.render_hash(before) != new.render_hash(prompt) {
                    note(prompt);
                }
            }
            Some(before) => {
                let lists = before.list_hash == prompt.list_hash;
                let renders = !bodies || old.render_hash(before) == new.render_hash(prompt);
                if !(lists && renders) {
                    note(prompt);
                    note(before);
                }
            }
            None => note(prompt),
        }
    }
    for prompt in old.list(None) {
        if new.prompt(prompt.name.as_str()).is_none() {
            note(prompt);
        }
    }
    out
}

/// Whether the list of resources differs, and whether any content does.
fn changed_resources(old: &Catalog, new: &Catalog) -> (bool, bool) {
    let listed = |catalog: &Catalog| -> BTreeMap<Arc<str>, (Arc<str>, Arc<str>)> {
        catalog
            .resources()
            .iter()
            .map(|r| (r.uri.clone(), (r.mime_type.clone(), r.sha256.clone())))
            .collect()
    };
    let (old_list, new_list) = (listed(old), listed(new));
    let content = old_list != new_list;
    let list = old_list.len() != new_list.len()
        || old_list
            .iter()
            .zip(&new_list)
            .any(|((a, (ta, _)), (b, (tb, _)))| a != b || ta != tb);
    let families = |c: &Catalog| {
        c.families()
            .iter()
            .map(|f| f.template.clone())
            .collect::<Vec<_>>()
    };
    (list || families(old) != families(new), content)
}
