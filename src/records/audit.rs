//! The audit: appended by one writer, in order. What cannot be written waits, in memory and in a file beside the database,
//! and is tried again until it is written; when too much waits, nothing that would have to be audited is taken any more.

use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant};

use tokio::sync::{broadcast, mpsc, oneshot};
use tokio_util::sync::CancellationToken;

use super::moves::{Found, Moves};
use crate::access::Actor;
use crate::git::{GitError, MAIN, Repository, SERVER_EMAIL};
use crate::store::{AuditEntry, Store};

/// Entries that may wait before nothing more is taken that would have to be audited.
pub const MAX_WAITING: usize = 1000;
/// Entries that are handed over at a time.
const QUEUE: usize = 256;
/// Waits between two attempts grow up to this.
const LONGEST_WAIT: Duration = Duration::from_secs(30);
/// Time between two looks at main.
const LOOK: Duration = Duration::from_millis(500);
/// What a followed repository last moved main to.
const FOLLOWED: &str = "refs/cuebook/upstream";
/// The file beside the database that holds what waits.
const WAITING_FILE: &str = "audit-waiting.json";

type Handed = (AuditEntry, oneshot::Sender<Result<(), String>>);

/// What is appended to the audit, and by what it is known whether all of it is written.
#[derive(Debug)]
pub struct Audit {
    queue: mpsc::Sender<Handed>,
    handed: Mutex<Option<mpsc::Receiver<Handed>>>,
    waiting: AtomicUsize,
    error: Mutex<Option<String>>,
    file: PathBuf,
    /// Where the rows that a process before this one left over say main was.
    main: Mutex<Option<String>>,
    /// What the newest row about main says, where main is not there because rows came in another order.
    newest: Mutex<Option<String>>,
    moves: Mutex<Moves>,
    /// Whoever wants to hear of what is noted.
    noted: broadcast::Sender<AuditEntry>,
}

/// An entry is kept, and not in the database yet.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("the audit row could not be written yet ({0}); it is kept and tried again")]
pub struct NotYet(String);

/// Whether a tip is what was followed, or was made here of it: a merge into main, or with labels that were moved here.
fn takes(repository: &Repository, tip: &str, followed: &str) -> bool {
    let parent = |parent: Result<Option<String>, GitError>| {
        parent.is_ok_and(|parent| parent.as_deref() == Some(followed))
    };
    tip == followed
        || (repository
            .facts(tip)
            .is_ok_and(|facts| facts.committer_email == SERVER_EMAIL)
            && (parent(repository.first_parent(tip)) || parent(repository.second_parent(tip))))
}

fn locked<T>(mutex: &Mutex<T>) -> std::sync::MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

impl Audit {
    pub(super) fn new(data_dir: &Path, untold_push: Duration) -> Self {
        let (queue, handed) = mpsc::channel(QUEUE);
        Self {
            queue,
            handed: Mutex::new(Some(handed)),
            waiting: AtomicUsize::new(0),
            error: Mutex::default(),
            file: data_dir.join(WAITING_FILE),
            main: Mutex::default(),
            newest: Mutex::default(),
            moves: Mutex::new(Moves::new(untold_push)),
            noted: broadcast::channel(QUEUE).0,
        }
    }

    /// Appends an entry; when it returns, the entry is on disk, or is kept and tried again.
    pub async fn append(&self, entry: AuditEntry) -> Result<(), NotYet> {
        let step = entry
            .main
            .clone()
            .map(|main| (entry.old_commit.clone(), main));
        if let Some(step) = step {
            locked(&self.moves).tell(step, Instant::now());
        }
        self.hand(entry).await
    }

    async fn hand(&self, entry: AuditEntry) -> Result<(), NotYet> {
        // nobody need listen
        let _ = self.noted.send(entry.clone());
        self.waiting.fetch_add(1, Ordering::SeqCst);
        if let Some(main) = &entry.main {
            *locked(&self.newest) = Some(main.clone());
        }
        let (done, written) = oneshot::channel();
        if let Err(mpsc::error::SendError((entry, _))) = self.queue.send((entry, done)).await {
            // the writer has ended: the last resort is the log, which nobody loses silently
            tracing::error!(entry = %text_of(&entry), "an audit entry came after the server had stopped writing");
            return Err(NotYet("the server is stopping".into()));
        }
        match written.await {
            Ok(written) => written.map_err(NotYet),
            Err(_) => Err(NotYet("the server is stopping".into())),
        }
    }

    /// What is noted from now on, whether or not it is written yet.
    pub fn subscribe(&self) -> broadcast::Receiver<AuditEntry> {
        self.noted.subscribe()
    }

    /// Whether what has to be audited may be done now; otherwise why not.
    pub fn ready(&self) -> Result<(), String> {
        let waiting = self.waiting.load(Ordering::SeqCst);
        if waiting < MAX_WAITING {
            return Ok(());
        }
        let known = locked(&self.error).clone();
        let why = known.unwrap_or_else(|| "it is being tried".to_owned());
        Err(format!(
            "{waiting} rows of the audit wait to be written ({why}), and no more are taken until they are"
        ))
    }

    /// Says that a push of main from one commit, or from nothing, to another has been accepted, lest its move be taken for one
    /// that went past the gate.
    pub fn expect(&self, old: Option<&str>, new: &str, actor: &Actor, origin: Option<&str>) {
        let step = (old.map(str::to_owned), new.to_owned());
        let who = (actor.name.clone(), origin.map(str::to_owned));
        locked(&self.moves).accept(step, who, Instant::now());
    }

    /// What is not written, for whoever looks whether all is well.
    pub fn message(&self) -> Option<String> {
        let waiting = self.waiting.load(Ordering::SeqCst);
        let error = locked(&self.error).clone()?;
        let rows = if waiting == 1 {
            "row waits"
        } else {
            "rows wait"
        };
        Some(format!(
            "the audit cannot be written: {error}; {waiting} {rows}, and nothing is lost while the server runs"
        ))
    }

    /// Writes what is appended, until it is cancelled and all that was handed over has been tried.
    pub(super) async fn write(
        &self,
        store: Option<Store>,
        mut pending: Vec<AuditEntry>,
        cancel: CancellationToken,
    ) {
        let Some(mut handed) = locked(&self.handed).take() else {
            return;
        };
        self.waiting.fetch_add(pending.len(), Ordering::SeqCst);
        let mut wait = Duration::ZERO;
        let mut new: Vec<Handed> = Vec::new();
        let mut stopping = false;
        loop {
            if !pending.is_empty() || !new.is_empty() {
                let (entries, told): (Vec<_>, Vec<_>) = new.drain(..).unzip();
                let fresh = !entries.is_empty();
                pending.extend(entries);
                let written = match &store {
                    Some(store) => store
                        .append_audit(&pending)
                        .await
                        .map_err(|error| error.to_string()),
                    None => Err("there is no database that can be written".into()),
                };
                let outcome = match written {
                    Ok(_) => {
                        self.waiting.fetch_sub(pending.len(), Ordering::SeqCst);
                        pending.clear();
                        wait = Duration::ZERO;
                        if locked(&self.error).take().is_some() {
                            tracing::info!("the audit is written again");
                        }
                        let _ = std::fs::remove_file(&self.file);
                        Ok(())
                    }
                    Err(error) => {
                        wait = (wait * 2).clamp(Duration::from_secs(1), LONGEST_WAIT);
                        let kept = fresh.then(|| self.keep(&pending));
                        if let Some(Err(kept)) = kept {
                            tracing::error!(%error, not_kept = %kept, waiting = pending.len(), "audit rows wait in memory alone: neither the database nor the file beside it can be written");
                        } else if locked(&self.error).is_none() {
                            tracing::error!(%error, waiting = pending.len(), "the audit cannot be written; it is tried again");
                        }
                        *locked(&self.error) = Some(error.clone());
                        Err(error)
                    }
                };
                for told in told {
                    let _ = told.send(outcome.clone());
                }
            }
            if stopping {
                break;
            }
            let retry = !pending.is_empty();
            tokio::select! {
                () = cancel.cancelled() => {
                    // nobody appends any more but who has begun to
                    handed.close();
                    handed.recv_many(&mut new, QUEUE).await;
                    stopping = true;
                }
                // the bound of what waits is kept by whoever asks whether it is ready
                _ = handed.recv_many(&mut new, QUEUE) => {}
                () = tokio::time::sleep(wait), if retry => {}
            }
        }
        for entry in &pending {
            tracing::error!(entry = %text_of(entry), file = %self.file.display(), "an audit row is not in the database; the next start writes it if the file beside the database has it");
        }
    }

    /// What a process before this one could not write. What it says of main is known from then on.
    pub(super) async fn left_over(&self, store: Option<&Store>) -> Vec<AuditEntry> {
        let text = match std::fs::read(&self.file) {
            Ok(text) => text,
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => return Vec::new(),
            Err(error) => {
                tracing::error!(%error, file = %self.file.display(), "audit rows that wait could not be read");
                return Vec::new();
            }
        };
        let mut entries: Vec<AuditEntry> = match serde_json::from_slice(&text) {
            Ok(entries) => entries,
            Err(error) => {
                let aside = self.file.with_extension("damaged");
                let _ = std::fs::rename(&self.file, &aside);
                tracing::error!(%error, file = %aside.display(), "audit rows that wait could not be read; they are kept there");
                return Vec::new();
            }
        };
        // a process that ended between the database and the file has written them
        if let Some(store) = store
            && let Ok(newest) = store
                .audit_before(None, i64::try_from(2 * MAX_WAITING).unwrap_or(i64::MAX))
                .await
        {
            entries.retain(|entry| !newest.iter().any(|row| row.says(entry)));
        }
        if let Some(main) = entries.iter().rev().find_map(|entry| entry.main.clone()) {
            *locked(&self.main) = Some(main);
        }
        tracing::info!(
            rows = entries.len(),
            "audit rows that could not be written before are written now"
        );
        entries
    }

    /// Writes what waits into the file beside the database.
    fn keep(&self, pending: &[AuditEntry]) -> std::io::Result<()> {
        use std::io::Write as _;
        let temporary = self.file.with_extension("new");
        let mut file = std::fs::File::create(&temporary)?;
        file.write_all(&serde_json::to_vec(pending)?)?;
        file.sync_all()?;
        std::fs::rename(&temporary, &self.file)
    }

    /// Notes every move of main that nobody told of: one that was made before the start, one past the gate, one of the
    /// repository that is followed, one whose hook was killed. Until it is cancelled. It looks at the ref itself, which a
    /// catalog follows later.
    pub(super) async fn keep_up(
        &self,
        store: Option<&Store>,
        repository: &Repository,
        followed: Option<&str>,
        cancel: CancellationToken,
    ) {
        let known = match store {
            Some(store) => store.audit_head().await.ok(),
            None => None,
        };
        let left_over = locked(&self.main).take();
        let mut last = left_over.or(known.and_then(|head| head.main));
        if store.is_none() && last.is_none() {
            // where main was cannot be known now; the commit before is in the next row
            last = main_of(repository).await;
        }
        locked(&self.moves).start(last);
        let mut start = true;
        // tips that were those of the followed repository when they were seen, until they have a row
        let mut was_followed: Vec<String> = Vec::new();
        loop {
            if let Some(tip) = main_of(repository).await {
                let found = locked(&self.moves).see(&tip, start, Instant::now());
                for moved in found {
                    let entry = untold(moved, start, repository, followed, &was_followed);
                    if entry.action == "begin" {
                        tracing::info!(%tip, "the audit of main begins");
                    } else {
                        tracing::info!(action = %entry.action, origin = entry.origin.as_deref(), %tip, "main has moved, and nobody told of it");
                    }
                    // what could not be written is kept
                    let _ = self.hand(entry).await;
                }
                if locked(&self.moves).settled().is_some() {
                    was_followed.clear();
                } else if !was_followed.contains(&tip) && follows(repository, followed, &tip) {
                    was_followed.push(tip);
                }
                if let Some(store) = store {
                    self.put_right(store).await;
                }
            }
            start = false;
            if cancel
                .run_until_cancelled(tokio::time::sleep(LOOK))
                .await
                .is_none()
            {
                return;
            }
        }
    }

    /// Says to the database where main is, when the newest row about main is not of its newest move.
    async fn put_right(&self, store: &Store) {
        let Some(main) = locked(&self.moves).settled().map(str::to_owned) else {
            return;
        };
        let newest = locked(&self.newest).clone();
        let Some(newest) = newest.filter(|newest| *newest != main) else {
            return;
        };
        // rows that wait say where main is when they are written
        if self.waiting.load(Ordering::SeqCst) == 0
            && store.correct_main(&newest, &main).await.is_ok()
        {
            let mut known = locked(&self.newest);
            if known.as_ref() == Some(&newest) {
                *known = Some(main);
            }
        }
    }
}

/// Where main is; none also where that cannot be read now.
async fn main_of(repository: &Repository) -> Option<String> {
    let repository = repository.clone();
    let read = tokio::task::spawn_blocking(move || repository.read_ref(MAIN)).await;
    read.ok()?.ok()?
}

/// Whether a commit is where the followed repository has moved main now.
fn follows(repository: &Repository, followed: Option<&str>, tip: &str) -> bool {
    followed.is_some()
        && repository
            .read_ref(FOLLOWED)
            .is_ok_and(|commit| commit.is_some_and(|commit| takes(repository, tip, &commit)))
}

fn untold(
    moved: Found,
    start: bool,
    repository: &Repository,
    followed: Option<&str>,
    was_followed: &[String],
) -> AuditEntry {
    let follows = moved.to.as_deref().is_some_and(|to| {
        was_followed.iter().any(|tip| tip == to) || follows(repository, followed, to)
    });
    let (action, actor, origin) = match moved.who {
        _ if !moved.begun => ("begin", "cuebook".to_owned(), None),
        Some((actor, origin)) => ("publish", actor.to_string(), origin),
        None if follows => ("follow", "cuebook".to_owned(), followed.map(str::to_owned)),
        None if start => (
            "move",
            "unknown".to_owned(),
            Some("found at the start".into()),
        ),
        None => (
            "move",
            "unknown".to_owned(),
            Some("not through the gate".into()),
        ),
    };
    AuditEntry {
        at: crate::clock::unix_millis(),
        actor,
        origin,
        action: action.into(),
        subject: Some(MAIN.into()),
        old_commit: moved.from,
        detail: moved.to.as_deref().and_then(|to| author(repository, to)),
        new_commit: moved.to.clone(),
        main: moved.to,
    }
}

/// Who a commit says made it.
pub fn author(repository: &Repository, commit: &str) -> Option<String> {
    let facts = repository.facts(commit).ok()?;
    let text = format!("author {} <{}>", facts.author, facts.email);
    Some(
        text.chars()
            .map(|c| if c.is_control() { ' ' } else { c })
            .take(200)
            .collect(),
    )
}

fn text_of(entry: &AuditEntry) -> String {
    serde_json::to_string(entry).unwrap_or_default()
}
