//! Holds the current catalog; the only publisher; tells who waits.
//!
//! A refresh derives the catalog from the refs: it is checked, and only what is clean is served. Nothing on the way of
//! a request waits for it.

pub mod candidate;
mod changes;
mod check;
mod error;
pub mod numbering;
mod revisions;
pub mod source;
mod verify;
pub mod versions;
mod watch;

use std::num::NonZeroUsize;
use std::path::Path;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use arc_swap::ArcSwap;
use lru::LruCache;
use tokio::sync::watch as channel;
use tokio_util::sync::CancellationToken;

use crate::catalog::{Catalog, Difference, Revision, Update};
use crate::git::{Repository, SERVED, read_again};
use crate::history::History;
use crate::prompt::{Limits, Problem};
use crate::workers::{Check, Renderer};

use candidate::{Candidate, Checked, KEPT_CANDIDATES};
pub use changes::Changes;
pub use check::check;
pub use error::OpenError;
use numbering::{Numbering, Progress};
pub use revisions::AtError;
use source::{CommitTree, Library, WorkTree};
use versions::{Labelled, NumbersAt, ReadVersions, Ready, goes_on_from};

/// Catalogs of other commits that are kept for `name@<commit>`.
const KEPT_REVISIONS: usize = 8;
/// Commits that are known not to pass the check, so that asking again costs nothing.
const KEPT_UNCLEAN: usize = 64;
/// Versions that are kept for `name@v3`.
const KEPT_VERSIONS: usize = 256;
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
#[derive(Debug, Clone)]
pub struct Snapshot {
    /// The index everything comes from; where a label is served, with the versions it is on.
    pub catalog: Arc<Catalog>,
    /// The index of the commit as it is, whatever is served by default.
    pub latest: Arc<Catalog>,
    /// The versions up to the served commit; none while they are counted, and for a work tree.
    pub history: Option<Arc<History>>,
    /// Counts swaps, from 1; never repeats in a process.
    pub generation: u64,
    /// When what last changed.
    pub changes: Changes,
    /// Whether the tip is served.
    pub status: Status,
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

/// How a registry behaves.
#[derive(Debug, Clone)]
pub struct Settings {
    /// Limits of the format.
    pub limits: Limits,
    /// Whether an edit of a body alone is told to clients, because many of them cache.
    pub notify_body_edits: bool,
    /// Whether the served commit is remembered in `refs/cuebook/served`; only the owner of a data directory does.
    pub remember: bool,
    /// Renders what the library publishes, at the check and for requests.
    pub renderer: Arc<Renderer>,
}

impl Default for Settings {
    fn default() -> Self {
        Self {
            limits: Limits::default(),
            notify_body_edits: true,
            remember: false,
            renderer: Arc::default(),
        }
    }
}

/// Which requests for a refresh have been met.
#[derive(Debug, Default)]
struct Requests {
    done: u64,
}

/// The one holder of the current catalog.
#[derive(Debug)]
pub struct Registry {
    library: Library,
    settings: Settings,
    current: ArcSwap<Snapshot>,
    generation: channel::Sender<u64>,
    refreshing: Mutex<Requests>,
    /// Refreshes asked for, ever.
    requested: AtomicU64,
    /// Commits that passed the check and are not served yet.
    candidates: Mutex<LruCache<String, Candidate>>,
    /// What is said of commits that cost more than one check may, against what was served then.
    over_budget: Mutex<LruCache<(String, u64), Checked>>,
    /// What a work tree held at the last refresh.
    files_seen: Mutex<Option<Arc<str>>>,
    revisions: Mutex<LruCache<String, Arc<Catalog>>>,
    /// The first problem of commits that do not pass the check.
    unclean: Mutex<LruCache<String, String>>,
    reading_revisions: tokio::sync::Semaphore,
    blaming: tokio::sync::Mutex<()>,
    /// The versions up to the served commit, to count on from.
    numbering: Mutex<Option<Numbering>>,
    progress: Progress,
    counting_error: Mutex<Option<String>>,
    versions: Mutex<ReadVersions>,
    versions_at: Mutex<NumbersAt>,
    labelled: Mutex<Labelled>,
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
        Self::open_from(library, settings, None)
    }

    /// The same, counting versions on from those that were kept, where what is served goes on from them.
    pub fn open_from(
        library: Library,
        settings: Settings,
        kept: Option<History>,
    ) -> Result<Self, OpenError> {
        let kept = kept.filter(|history| goes_on_from(&library, history));
        let empty = Arc::new(Catalog::empty(Revision::WorkTree, &settings.limits));
        let snapshot = Snapshot {
            catalog: empty.clone(),
            latest: empty,
            history: None,
            generation: 0,
            changes: Changes::default(),
            status: Status::default(),
        };
        let registry = Self {
            library,
            settings,
            current: ArcSwap::from_pointee(snapshot),
            generation: channel::Sender::new(0),
            refreshing: Mutex::default(),
            requested: AtomicU64::new(0),
            candidates: Mutex::new(LruCache::new(
                NonZeroUsize::new(KEPT_CANDIDATES).unwrap_or(NonZeroUsize::MIN),
            )),
            over_budget: Mutex::new(LruCache::new(
                NonZeroUsize::new(KEPT_UNCLEAN).unwrap_or(NonZeroUsize::MIN),
            )),
            files_seen: Mutex::new(None),
            revisions: Mutex::new(LruCache::new(
                NonZeroUsize::new(KEPT_REVISIONS).unwrap_or(NonZeroUsize::MIN),
            )),
            unclean: Mutex::new(LruCache::new(
                NonZeroUsize::new(KEPT_UNCLEAN).unwrap_or(NonZeroUsize::MIN),
            )),
            reading_revisions: tokio::sync::Semaphore::new(2),
            blaming: tokio::sync::Mutex::const_new(()),
            numbering: Mutex::new(kept.map(Numbering::kept)),
            progress: Progress::default(),
            counting_error: Mutex::default(),
            versions: Mutex::new(LruCache::new(
                NonZeroUsize::new(KEPT_VERSIONS).unwrap_or(NonZeroUsize::MIN),
            )),
            versions_at: Mutex::new(LruCache::new(
                NonZeroUsize::new(KEPT_VERSIONS).unwrap_or(NonZeroUsize::MIN),
            )),
            labelled: Mutex::default(),
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

    /// Whether an edit of a body alone is told to clients.
    pub fn notifies_body_edits(&self) -> bool {
        self.settings.notify_body_edits
    }

    /// What renders its prompts.
    pub fn renderer(&self) -> &Arc<Renderer> {
        &self.settings.renderer
    }

    /// The library that is served.
    pub fn library(&self) -> &Library {
        &self.library
    }

    /// Derives the catalog again from the refs or files, and swaps it in when it differs. Blocks; one at a time. When
    /// it returns, what the refs said when it was called is served, or something newer.
    pub fn refresh(&self) -> Result<Refreshed, OpenError> {
        let mine = self.requested.fetch_add(1, Ordering::SeqCst) + 1;
        let mut requests = self
            .refreshing
            .lock()
            .unwrap_or_else(PoisonError::into_inner);
        if requests.done >= mine {
            // a refresh that began after this was asked for has read the refs already
            return Ok(Refreshed::Unchanged);
        }
        let met = self.requested.load(Ordering::SeqCst);
        let result = match &self.library {
            Library::Bare(repository) => {
                read_again(OpenError::git, || self.refresh_commit(repository))
            }
            Library::WorkTree { root, .. } => self.refresh_files(root),
        };
        if result.is_ok() {
            requests.done = met;
        }
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
        let built = self.settings.update(
            &tree,
            Revision::WorkTree,
            Some(&old.latest),
            &self.on_budget(),
        )?;
        let status = status_of(None, None, &built.catalog, &errors(&built.catalog), true);
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
        Ok(self.swap_plain(&old, built.catalog, status, &built.difference))
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
        let kept = || {
            self.revisions
                .lock()
                .unwrap_or_else(PoisonError::into_inner)
        };
        let any_kept = !kept().is_empty()
            || !self
                .versions_at
                .lock()
                .unwrap_or_else(PoisonError::into_inner)
                .is_empty();
        if let Some(before) = old.status.tip.as_deref().filter(|_| any_kept)
            && repository.reachable(before, &tip).is_err()
        {
            // main was rewound: what it has left behind is served no more
            kept().clear();
            self.versions_at
                .lock()
                .unwrap_or_else(PoisonError::into_inner)
                .clear();
        }
        let started = Instant::now();
        // at the start what was served when the server ended comes first: it has passed, and what differs from it has not
        let first = if old.generation == 0 {
            self.served_before(repository, &tip)?
        } else {
            None
        };
        if let Some((commit, built)) = first.as_ref()
            && *commit == tip
        {
            let check = self.renderer().check_again();
            let (catalog, difference) = (built.catalog.clone(), Some(built.difference.clone()));
            let ready = self.ready(repository, &tip, catalog, difference, &old, &check)?;
            if ready.is_clean() {
                let status = status(Some(&tip), Some(&tip), &ready, false);
                let prompts = ready.catalog.list(None).len();
                let outcome = self.swap(&old, ready, status);
                tracing::info!(commit = %tip, prompts, elapsed_ms = millis(started), "serving");
                return Ok(outcome);
            }
        }
        let base = first
            .as_ref()
            .map_or(&*old.latest, |(_, built)| &built.catalog);
        // one that passed the check of its push is not to fail it here because more was published meanwhile
        let check = if self.has_candidate(&tip) {
            self.renderer().check_again()
        } else {
            self.on_budget()
        };
        let update = match self.candidate(&tip, old.generation) {
            Some(checked) => checked,
            None => self.build_commit(repository, &tip, Some(base), &check)?,
        };
        // made from what was served before the start, and nothing was served yet: compared as a whole
        let difference = first.is_none().then_some(update.difference);
        let at_tip = self.ready(repository, &tip, update.catalog, difference, &old, &check)?;
        if at_tip.is_clean() {
            let status = status(Some(&tip), Some(&tip), &at_tip, false);
            let prompts = at_tip.catalog.list(None).len();
            let outcome = self.swap(&old, at_tip, status);
            self.remember(repository, &tip);
            tracing::info!(commit = %tip, prompts, elapsed_ms = millis(started), "serving");
            return Ok(outcome);
        }
        let mut status = status(Some(&tip), Some(&tip), &at_tip, true);
        for problem in &status.tip_problems {
            tracing::error!(commit = %tip, "{problem}");
        }
        if let Some((commit, built)) =
            self.clean_ancestor(repository, &tip, &at_tip.latest, &old, first, &check)?
        {
            tracing::error!(
                tip = %tip, served = %commit, problems = status.tip_problem_count,
                "the tip of main has problems and is not served; the newest clean commit is"
            );
            status.served = Some(commit.clone());
            status.partial = false;
            let outcome = if let Some(ready) = built {
                self.swap(&old, ready, status)
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
        Ok(self.swap(&old, at_tip, status))
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
            let check = self.renderer().check_again();
            let built = self.build_commit(repository, &commit, None, &check)?;
            let ready = self.ready(repository, &commit, built.catalog, None, old, &check)?;
            if ready.is_clean() {
                tracing::error!(%commit, "{GONE}");
                let status = gone(status(None, Some(&commit), &ready, false));
                return Ok(self.swap(old, ready, status));
            }
        }
        let empty = Catalog::empty(Revision::WorkTree, &self.settings.limits);
        let difference = Difference::between(&old.catalog, &empty);
        Ok(self.swap_plain(old, empty, Status::default(), &difference))
    }

    fn build_commit(
        &self,
        repository: &Repository,
        commit: &str,
        previous: Option<&Catalog>,
        check: &Check<'_>,
    ) -> Result<Update, OpenError> {
        let tree = CommitTree::open(repository, commit)?;
        let revision = Revision::Commit(commit.into());
        Ok(self.settings.update(&tree, revision, previous, check)?)
    }

    /// The budget of one refresh, which nobody cancels.
    fn on_budget(&self) -> Check<'_> {
        self.renderer().check(CancellationToken::new())
    }

    /// What was served when the server ended, where it is still a part of main and still clean. It has passed the check
    /// and is on no budget: a library that was published in many pushes starts again as one.
    fn served_before(
        &self,
        repository: &Repository,
        tip: &str,
    ) -> Result<Option<(String, Update)>, OpenError> {
        let Some(commit) = repository.read_ref(SERVED)? else {
            return Ok(None);
        };
        if repository.reachable(&commit, tip).is_err() {
            return Ok(None);
        }
        let check = self.renderer().check_again();
        let built = self.build_commit(repository, &commit, None, &check)?;
        Ok(built.is_clean().then_some((commit, built)))
    }

    /// The newest clean first-parent ancestor of a bad tip; without a build when it is what is served already. `first` is
    /// what was served before the start. All that is looked at shares the budget of the tip: when that is spent, what is
    /// known to be clean is served, and nothing is looked for.
    fn clean_ancestor(
        &self,
        repository: &Repository,
        tip: &str,
        at_tip: &Catalog,
        old: &Snapshot,
        first: Option<(String, Update)>,
        check: &Check<'_>,
    ) -> Result<Option<(String, Option<Ready>)>, OpenError> {
        let served = old
            .status
            .served
            .clone()
            .filter(|_| !old.status.partial && old.generation > 0);
        let mut at = repository.first_parent(tip)?;
        let mut looked = 0;
        let mut last: Option<Arc<Catalog>> = None;
        while let Some(commit) = at {
            if served.as_deref() == Some(commit.as_str()) {
                return Ok(Some((commit, None)));
            }
            if let Some((before, built)) = &first
                && *before == commit
            {
                let again = self.renderer().check_again();
                let catalog = built.catalog.clone();
                let ready = self.ready(repository, &commit, catalog, None, old, &again)?;
                if ready.is_clean() {
                    return Ok(Some((commit, Some(ready))));
                }
            }
            if looked >= MAX_ANCESTORS || check.is_spent() {
                break;
            }
            // a commit differs little from its child: what that had is used again
            let child = last.as_deref().unwrap_or(at_tip);
            let built = self
                .build_commit(repository, &commit, Some(child), check)?
                .catalog;
            let latest = if built.is_clean() {
                let ready = self.ready(repository, &commit, built, None, old, check)?;
                if ready.is_clean() {
                    return Ok(Some((commit, Some(ready))));
                }
                ready.latest
            } else {
                Arc::new(built)
            };
            last = Some(latest);
            looked += 1;
            at = repository.first_parent(&commit)?;
        }
        // far back, but known: it was the tip once
        if looked < MAX_ANCESTORS && !check.is_spent() {
            return Ok(None);
        }
        if let Some((commit, built)) = first {
            let again = self.renderer().check_again();
            let ready = self.ready(repository, &commit, built.catalog, None, old, &again)?;
            return Ok(ready.is_clean().then_some((commit, Some(ready))));
        }
        if let Some(commit) = served
            && repository.reachable(&commit, tip).is_ok()
        {
            return Ok(Some((commit, None)));
        }
        Ok(None)
    }

    fn remember(&self, repository: &Repository, commit: &str) {
        if !self.settings.remember {
            return;
        }
        if let Err(error) = repository.write_own_ref(SERVED, commit) {
            tracing::warn!(%error, "{SERVED} could not be written; after a restart the served commit is looked for again");
        }
    }

    /// Puts what is ready in the place of what is served and tells who waits.
    fn swap(&self, old: &Snapshot, ready: Ready, status: Status) -> Refreshed {
        let generation = old.generation + 1;
        let bodies = self.settings.notify_body_edits;
        let changes = old.changes.with(generation, &ready.difference, bodies);
        let history = ready.numbering.as_ref().map(|n| n.history.clone());
        *self.numbering() = ready.numbering;
        self.current.store(Arc::new(Snapshot {
            catalog: ready.catalog,
            latest: ready.latest,
            history,
            generation,
            changes,
            status,
        }));
        self.generation.send_replace(generation);
        Refreshed::Swapped
    }

    /// The same for what has no versions.
    fn swap_plain(
        &self,
        old: &Snapshot,
        catalog: Catalog,
        status: Status,
        difference: &Difference,
    ) -> Refreshed {
        let catalog = Arc::new(catalog);
        let ready = Ready {
            latest: catalog.clone(),
            catalog,
            numbering: None,
            difference: difference.clone(),
            problems: Vec::new(),
        };
        self.swap(old, ready, status)
    }

    /// The same catalog with another status; nobody needs to be told.
    fn replace_status(&self, old: &Snapshot, status: Status) {
        if old.status == status {
            return;
        }
        self.current.store(Arc::new(Snapshot {
            status,
            ..old.clone()
        }));
    }
}

fn millis(started: Instant) -> u64 {
    u64::try_from(started.elapsed().as_millis()).unwrap_or(u64::MAX)
}

fn status(tip: Option<&str>, served: Option<&str>, ready: &Ready, partial: bool) -> Status {
    let catalog = &*ready.latest;
    let mut errors = errors(catalog);
    errors.extend_from_slice(&ready.problems);
    status_of(tip, served, catalog, &errors, partial)
}

fn errors(catalog: &Catalog) -> Vec<Problem> {
    if catalog.is_clean() {
        return Vec::new();
    }
    let mut problems = catalog.problems();
    problems.retain(Problem::is_error);
    problems
}

fn status_of(
    tip: Option<&str>,
    served: Option<&str>,
    catalog: &Catalog,
    errors: &[Problem],
    partial: bool,
) -> Status {
    Status {
        tip: tip.map(Into::into),
        served: served.map(Into::into),
        partial: partial && !errors.is_empty(),
        tip_problems: errors
            .iter()
            .take(SHOWN_PROBLEMS)
            .map(Problem::one_line)
            .collect(),
        tip_problem_count: errors.len(),
        warning_count: catalog.warning_count(),
        read_error: None,
    }
}
