//! What was used, delivered and done: taken on the way of a request without waiting, written together by one task.
//!
//! Nothing here is needed to serve a prompt. Use and deliveries may be lost, and then are counted as lost; the audit never
//! is. No argument's value and no rendered text is stored, but the values of arguments that say `values: { recent: true }`.

pub mod audit;
pub mod calendar;
pub mod get;
mod moves;
mod recents;
pub mod report;
mod tally;

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::Path;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use tokio::sync::{mpsc, oneshot};
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;

use crate::catalog::Catalog;
use crate::git::Repository;
use crate::registry::Registry;
use crate::store::{Store, StoreError};

pub use audit::{Audit, NotYet};
pub use get::{Get, Given, Outcome, Via};
pub use recents::{IN_ALL, PER_ARGUMENT, Recents};
use tally::Tally;
pub use tally::{BUCKETS, Lost, MAX_CLIENTS, MAX_DELIVERIES, MAX_KEYS, OTHER, bucket};

/// Calls that wait to be counted, at most.
pub const QUEUE: usize = 8192;
/// How long a call may wait to be counted together with others.
const PAUSE: Duration = Duration::from_millis(20);
/// Calls that are counted without a pause for others.
const AT_ONCE: usize = 32;
/// How long what was counted may wait for more before it is written.
const GATHER: Duration = Duration::from_millis(500);
/// Deliveries that are written at once, however long they have waited.
const MANY: usize = 1000;
/// Waits after failures grow up to this.
const LONGEST_WAIT: Duration = Duration::from_secs(30);
/// Rows that a sweep removes in one transaction: others write between.
const SWEPT: i64 = 5000;
/// Time between two looks whether the file is still there.
const LOOK: Duration = Duration::from_secs(2);
/// How long the last rows may take when the server stops.
const LAST: Duration = Duration::from_secs(10);

/// How long records are kept.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Settings {
    /// Days that deliveries are kept.
    pub deliveries_days: u32,
    /// Deliveries that are kept, at most.
    pub deliveries_rows: u64,
    /// Days that use is kept.
    pub usage_days: u32,
    /// Days that the audit is kept; 0 for ever.
    pub audit_days: u32,
    /// Days that a value is offered after its last use.
    pub values_days: u32,
    /// Time from the start to the first removal of what is older.
    pub first_sweep: Duration,
    /// Time between two.
    pub sweep_every: Duration,
    /// How long a push that the gate has accepted may take to tell the audit of itself; after that its row is written
    /// without it.
    pub untold_push: Duration,
}

impl Default for Settings {
    fn default() -> Self {
        Self {
            deliveries_days: 400,
            deliveries_rows: 10_000_000,
            usage_days: 800,
            audit_days: 0,
            values_days: 90,
            first_sweep: Duration::from_mins(1),
            sweep_every: Duration::from_hours(1),
            untold_push: Duration::from_secs(30),
        }
    }
}

/// Takes the values of an argument out of everything, and says how many there were.
struct Erase {
    prompt: Option<String>,
    argument: Option<String>,
    done: oneshot::Sender<Result<u64, StoreError>>,
}

/// The receiving ends, until the writer takes them.
struct Inbox {
    gets: mpsc::Receiver<Get>,
    erasures: mpsc::Receiver<Erase>,
}

/// The records of a data directory.
pub struct Records {
    gets: mpsc::Sender<Get>,
    erasures: mpsc::Sender<Erase>,
    inbox: Mutex<Option<Inbox>>,
    store: Result<Store, String>,
    /// Nothing can be written at all.
    read_only: bool,
    settings: Settings,
    recents: Recents,
    audit: Audit,
    /// What did not fit into the queue, and is not among the losses to be written yet.
    overflowed: AtomicU64,
    /// All that was lost since the start.
    lost_usage: AtomicU64,
    lost_deliveries: AtomicU64,
    waiting: AtomicUsize,
    trouble: Mutex<Trouble>,
}

/// Why records are not written as they should be.
#[derive(Debug, Default)]
struct Trouble {
    write: Option<String>,
    gone: Option<String>,
}

impl std::fmt::Debug for Records {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Records")
            .field("settings", &self.settings)
            .finish_non_exhaustive()
    }
}

impl Records {
    /// The records of a data directory with its database, or why there is none. They are written while [`Records::run`] runs.
    pub fn new(data_dir: &Path, store: Result<Store, String>, settings: Settings) -> Self {
        let (gets, received) = mpsc::channel(QUEUE);
        let (erasures, erased) = mpsc::channel(1);
        Self {
            gets,
            erasures,
            inbox: Mutex::new(Some(Inbox {
                gets: received,
                erasures: erased,
            })),
            store,
            read_only: false,
            audit: Audit::new(data_dir, settings.untold_push),
            settings,
            recents: Recents::default(),
            overflowed: AtomicU64::new(0),
            lost_usage: AtomicU64::new(0),
            lost_deliveries: AtomicU64::new(0),
            waiting: AtomicUsize::new(0),
            trouble: Mutex::default(),
        }
    }

    /// The same where the data directory cannot be written, and why: what would be recorded is counted as lost, and
    /// [`Records::run`] is not called.
    pub fn read_only(data_dir: &Path, why: String, settings: Settings) -> Self {
        Self {
            read_only: true,
            ..Self::new(data_dir, Err(why), settings)
        }
    }

    /// Whether the data directory cannot be written; [`Records::store`] says why.
    pub fn is_read_only(&self) -> bool {
        self.read_only
    }

    /// Notes that a prompt was asked for. Never waits: what does not fit is counted as lost.
    pub fn got(&self, get: Get) {
        let delivered = get.outcome == Outcome::Delivered;
        if self.store.is_err() {
            self.count_lost(Lost {
                usage: 1,
                deliveries: u64::from(delivered),
            });
            return;
        }
        if self.gets.try_send(get).is_err() {
            // whether it was a delivery is in the upper half
            self.overflowed
                .fetch_add(1 + (u64::from(delivered) << 32), Ordering::Relaxed);
            self.count_lost(Lost {
                usage: 1,
                deliveries: u64::from(delivered),
            });
        }
    }

    fn count_lost(&self, lost: Lost) {
        self.lost_usage.fetch_add(lost.usage, Ordering::Relaxed);
        self.lost_deliveries
            .fetch_add(lost.deliveries, Ordering::Relaxed);
    }

    /// What was lost since the start.
    pub fn lost(&self) -> Lost {
        Lost {
            usage: self.lost_usage.load(Ordering::Relaxed),
            deliveries: self.lost_deliveries.load(Ordering::Relaxed),
        }
    }

    /// The values that colleagues used.
    pub fn recents(&self) -> &Recents {
        &self.recents
    }

    /// The audit.
    pub fn audit(&self) -> &Audit {
        &self.audit
    }

    /// The database, or why there is none.
    pub fn store(&self) -> Result<&Store, &str> {
        self.store.as_ref().map_err(String::as_str)
    }

    /// Forgets the values of every argument, of a prompt's arguments, or of one argument, wherever they are. Returns how many
    /// rows were removed.
    pub async fn erase_values(
        &self,
        prompt: Option<&str>,
        argument: Option<&str>,
    ) -> Result<u64, StoreError> {
        if let Err(error) = &self.store {
            let error = std::io::Error::other(error.clone());
            return Err(StoreError::Database(error.into()));
        }
        let (done, erased) = oneshot::channel();
        let erase = Erase {
            prompt: prompt.map(str::to_owned),
            argument: argument.map(str::to_owned),
            done,
        };
        let stopped = || StoreError::Database(sqlx_closed());
        self.erasures.send(erase).await.map_err(|_| stopped())?;
        erased.await.map_err(|_| stopped())?
    }

    /// What is not as it should be, for whoever looks whether all is well.
    pub fn messages(&self) -> Vec<String> {
        let mut messages = Vec::new();
        match &self.store {
            Ok(store) => messages.extend(store.mended().map(ToString::to_string)),
            Err(why) if self.read_only => messages.push(why.clone()),
            Err(error) => messages.push(format!(
                "the database cannot be used, so prompts are served and published, but nothing is proposed or recorded: {error}"
            )),
        }
        let trouble = self.trouble.lock().unwrap_or_else(PoisonError::into_inner);
        messages.extend(trouble.gone.clone());
        if let Some(error) = &trouble.write {
            messages.push(format!(
                "use and deliveries cannot be written: {error}; {} deliveries wait in memory (at most {MAX_DELIVERIES}), \
                 and it is tried again",
                self.waiting.load(Ordering::Relaxed)
            ));
        }
        drop(trouble);
        messages.extend(self.audit.message());
        let lost = self.lost();
        if lost != Lost::default() {
            messages.push(format!(
                "since the start {} calls were not counted as use and {} deliveries have no row: {}",
                lost.usage,
                lost.deliveries,
                if self.store.is_ok() {
                    "they came faster than they could be written"
                } else {
                    "there is no database"
                }
            ));
        }
        messages
    }

    /// Writes what comes, and notes what moves main, until it is cancelled and all that had come is written.
    pub async fn run(
        self: Arc<Self>,
        registry: Arc<Registry>,
        repository: Repository,
        followed: Option<String>,
        cancel: CancellationToken,
    ) {
        let store = self.store.as_ref().ok().cloned();
        // what moves main is still told to the audit when the others have ended
        let audit_ends = CancellationToken::new();
        let keeping_up = async {
            self.audit
                .keep_up(
                    store.as_ref(),
                    &repository,
                    followed.as_deref(),
                    cancel.clone(),
                )
                .await;
        };
        let counting = async {
            if let Some(store) = &store {
                self.count(store, &registry, &cancel).await;
            }
        };
        // before anybody asks where main was
        let left_over = self.audit.left_over(store.as_ref()).await;
        let auditing = self
            .audit
            .write(store.clone(), left_over, audit_ends.clone());
        let others = async {
            tokio::join!(keeping_up, counting);
            audit_ends.cancel();
        };
        tokio::join!(auditing, others);
    }

    fn take_inbox(&self) -> Option<Inbox> {
        self.inbox
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .take()
    }

    async fn count(&self, store: &Store, registry: &Registry, cancel: &CancellationToken) {
        let Some(mut inbox) = self.take_inbox() else {
            return;
        };
        match store.recent_values().await {
            Ok(rows) => self.recents.load(rows, crate::clock::unix_millis()),
            Err(error) => {
                tracing::error!(%error, "the values that colleagues used could not be read");
            }
        }
        let mut tally = Tally::default();
        let mut gets = Vec::new();
        let mut count_at: Option<Instant> = None;
        let mut wait = Duration::ZERO;
        let mut write_at: Option<Instant> = None;
        let mut sweep_at = Instant::now() + self.settings.first_sweep;
        let mut looking = tokio::time::interval(LOOK);
        looking.set_missed_tick_behavior(tokio::time::MissedTickBehavior::Delay);
        loop {
            let due = write_at.unwrap_or(sweep_at);
            tokio::select! {
                () = cancel.cancelled() => break,
                // what comes in the pause wakes nobody
                _ = inbox.gets.recv_many(&mut gets, 1), if count_at.is_none() => {
                    count_at = Some(Instant::now() + PAUSE);
                }
                () = tokio::time::sleep_until(count_at.unwrap_or(due)), if count_at.is_some() => {
                    count_at = None;
                    while let Ok(get) = inbox.gets.try_recv() {
                        gets.push(get);
                    }
                    tally = self.tally(tally, std::mem::take(&mut gets)).await;
                    if write_at.is_none() {
                        write_at = Some(Instant::now() + GATHER);
                    } else if wait.is_zero() && tally.deliveries() >= MANY {
                        write_at = Some(Instant::now());
                    }
                }
                Some(erase) = inbox.erasures.recv() => {
                    // those that were used before are erased with the others
                    while let Ok(get) = inbox.gets.try_recv() {
                        gets.push(get);
                    }
                    tally = self.tally(tally, std::mem::take(&mut gets)).await;
                    self.erase(store, &mut tally, erase).await;
                    write_at = write_at.or_else(|| Some(Instant::now() + GATHER));
                }
                () = tokio::time::sleep_until(due) => {
                    write_at = None;
                    if self.write(store, &mut tally).await {
                        wait = Duration::ZERO;
                    } else {
                        wait = (wait * 2).clamp(Duration::from_secs(1), LONGEST_WAIT);
                        write_at = Some(Instant::now() + wait);
                    }
                }
                () = tokio::time::sleep_until(sweep_at) => {
                    sweep_at = Instant::now() + self.settings.sweep_every;
                    let catalog = is_whole(registry).then(|| registry.snapshot().catalog.clone());
                    self.sweep(store, &mut tally, catalog.as_deref()).await;
                    write_at = write_at.or_else(|| Some(Instant::now()));
                }
                _ = looking.tick() => self.look(store, &tally),
            }
        }
        while let Ok(get) = inbox.gets.try_recv() {
            gets.push(get);
        }
        tally = self.tally(tally, gets).await;
        let last = tokio::time::timeout(LAST, self.write(store, &mut tally)).await;
        if !matches!(last, Ok(true)) {
            tracing::error!(
                deliveries = tally.deliveries(),
                "the last records of use and deliveries could not be written and are lost"
            );
        }
    }

    /// Counts calls, a few at a time: requests go on between.
    async fn tally(&self, mut tally: Tally, gets: Vec<Get>) -> Tally {
        let overflowed = self.overflowed.swap(0, Ordering::Relaxed);
        tally.lose(
            calendar::day(crate::clock::unix_millis()),
            Lost {
                usage: overflowed & 0xffff_ffff,
                deliveries: overflowed >> 32,
            },
        );
        let mut gets = gets.into_iter();
        while gets.len() > 0 {
            let some: Vec<Get> = gets.by_ref().take(AT_ONCE).collect();
            let calls = u64::try_from(some.len()).unwrap_or(u64::MAX);
            let counted = catch_unwind(AssertUnwindSafe(|| tally.add(some.into_iter())));
            let Ok((used, lost)) = counted else {
                tracing::error!(calls, "use could not be counted");
                self.count_lost(Lost {
                    usage: calls,
                    deliveries: calls,
                });
                continue;
            };
            self.count_lost(lost);
            if !used.is_empty() {
                let (written, removed) = self.recents.note(used);
                tally.keep(written, removed);
            }
            tokio::task::yield_now().await;
        }
        self.waiting.store(tally.deliveries(), Ordering::Relaxed);
        tally
    }

    /// Writes what waits; whether nothing waits any more.
    async fn write(&self, store: &Store, tally: &mut Tally) -> bool {
        if tally.is_empty() {
            return true;
        }
        let batch = tally.take();
        let written = store.write_records(&batch).await;
        let mut trouble = self.trouble.lock().unwrap_or_else(PoisonError::into_inner);
        let ok = match written {
            Ok(()) => {
                if trouble.write.take().is_some() {
                    tracing::info!("use and deliveries are written again");
                }
                true
            }
            Err(error) => {
                tally.put_back(batch);
                if trouble.write.is_none() {
                    tracing::error!(%error, waiting = tally.deliveries(), "use and deliveries cannot be written; they wait in memory");
                }
                trouble.write = Some(error.to_string());
                false
            }
        };
        self.waiting.store(tally.deliveries(), Ordering::Relaxed);
        ok
    }

    async fn erase(&self, store: &Store, tally: &mut Tally, erase: Erase) {
        let (prompt, argument) = (erase.prompt.as_deref(), erase.argument.as_deref());
        let known = self.recents.erase(prompt, argument);
        tally.erase(prompt, argument);
        let erased = store.erase_values(prompt, argument).await;
        tracing::info!(
            values = known,
            prompt,
            argument,
            "values that colleagues used were erased"
        );
        let _ = erase.done.send(erased);
    }

    /// Removes what is older than it may be; `catalog` says which arguments still offer values, where that is known.
    async fn sweep(&self, store: &Store, tally: &mut Tally, catalog: Option<&Catalog>) {
        let now = crate::clock::unix_millis();
        let offers = |prompt: &str, argument: &str| {
            catalog.is_none_or(|catalog| {
                catalog.prompt(prompt).is_some_and(|prompt| {
                    let declared = prompt.arguments.iter().find(|a| &*a.name == argument);
                    declared.is_some_and(|argument| argument.values.recent)
                })
            })
        };
        tally.forget(self.recents.sweep(now, self.settings.values_days, offers));
        if let Err(error) = sweep(store, &self.settings, now).await {
            tracing::warn!(%error, "old records could not be removed; it is tried again at the next sweep");
        }
    }

    fn look(&self, store: &Store, tally: &Tally) {
        self.waiting.store(tally.deliveries(), Ordering::Relaxed);
        let gone = store.gone().map(|path| {
            format!(
                "{} has been removed or replaced while the server runs, so what is recorded is lost; restart the server",
                path.display()
            )
        });
        let mut trouble = self.trouble.lock().unwrap_or_else(PoisonError::into_inner);
        if gone != trouble.gone {
            if let Some(gone) = &gone {
                tracing::error!("{gone}");
            }
            trouble.gone = gone;
        }
    }
}

/// Whether what is served is all that main has, so that what it does not declare is not declared.
fn is_whole(registry: &Registry) -> bool {
    let snapshot = registry.snapshot();
    let status = &snapshot.status;
    !status.partial && status.read_error.is_none() && status.served == status.tip
}

/// Removes the records that are older than they may be, and cuts the log back.
pub async fn sweep(store: &Store, settings: &Settings, now: i64) -> Result<(), StoreError> {
    let ago = |days: u32| now - i64::from(days) * calendar::DAY_MS;
    let keep = i64::try_from(settings.deliveries_rows).unwrap_or(i64::MAX);
    let mut removed = 0;
    loop {
        let some = store
            .forget_deliveries(ago(settings.deliveries_days), keep, SWEPT)
            .await?;
        removed += some;
        if some < SWEPT.unsigned_abs() {
            break;
        }
    }
    removed += store
        .forget_usage(calendar::day(ago(settings.usage_days)))
        .await?;
    if settings.audit_days > 0 {
        removed += store.seal_audit(ago(settings.audit_days), now).await?;
    }
    if removed > 0 {
        tracing::info!(removed, "removed records that were older than they may be");
    }
    store.checkpoint().await
}

fn sqlx_closed() -> sqlx::Error {
    sqlx::Error::PoolClosed
}
