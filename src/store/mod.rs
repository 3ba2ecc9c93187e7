//! The SQLite file: what git does not hold. A file per aggregate, plain rows; knows nothing of prompts or of git.
//!
//! One connection writes, a few read; the journal is a write-ahead log. Migrations go forward only.

mod access;
mod audit;
mod damage;
mod deliveries;
mod drafts;
mod proposals;
mod recents;
mod reviews;
mod search;
mod usage;
mod versions;

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use sqlx::migrate::{MigrateError, Migrator};
use sqlx::sqlite::{SqliteConnectOptions, SqliteJournalMode, SqlitePoolOptions, SqliteSynchronous};
use sqlx::{Connection as _, SqlitePool};

pub use access::{AccessRows, GrantRow, MembershipRow, PrincipalRow, SessionRow, TokenRow};
pub use audit::{AuditEntry, AuditHead, AuditRow};
pub use damage::Mended;
pub use deliveries::{DeliveryFilter, DeliveryRow};
pub use drafts::{DRAFT_MILLIS, DraftRow, Kept, MAX_DRAFT_BYTES, MAX_DRAFTS};
pub use proposals::{ProposalRow, RevisionRow};
pub use recents::RecentRow;
pub use reviews::{CommentRow, NewestComment, ReviewRow};
pub use search::{SearchRow, SearchState, SearchText};
pub use usage::{ClientRow, LatencyRow, LossRow, UsageRow};
pub use versions::{CommitRow, LabelRow, NameRow, VersionRow, VersionRows, VersionState};

static MIGRATIONS: Migrator = sqlx::migrate!("./migrations");

/// How long a statement waits for the writer of another process.
const BUSY: Duration = Duration::from_secs(5);
/// Connections that read.
const READERS: u32 = 4;
/// Bytes to which the write-ahead log is cut back once its pages are in the file.
const LOG_BYTES: &str = "16777216";
/// Largest file that is looked through at the open, in bytes; of a larger one only the beginning is.
const CHECKED_BYTES: u64 = 256 * 1024 * 1024;

/// Why the database could not do something.
#[derive(Debug, thiserror::Error)]
pub enum StoreError {
    /// A release after this one has written it.
    #[error(
        "the database was written by a newer release of cuebook (migration {0}); run that release, or move cuebook.db away"
    )]
    Newer(i64),
    /// Its tables are not what this release's migrations make.
    #[error("the database could not be brought to this release's form: {0}")]
    Migration(#[source] MigrateError),
    /// No room.
    #[error("the disk that holds the database is full; make room")]
    Full,
    /// Another process holds it.
    #[error(
        "another process has locked the database; end what has cuebook.db open (sqlite3, a backup)"
    )]
    Locked,
    /// It may not be written.
    #[error("the database may not be written: {0}; its folder must be writable for the server")]
    ReadOnly(#[source] sqlx::Error),
    /// It is not what SQLite wrote.
    #[error(
        "the database is damaged: {0}; restart the server, which moves it aside and keeps what can be read of it"
    )]
    Damaged(#[source] sqlx::Error),
    /// It is damaged, and could not be moved aside.
    #[error("the database is damaged ({reason}) and could not be moved aside: {error}")]
    NotMoved {
        /// What SQLite said of it.
        reason: String,
        /// Why it could not be moved.
        error: std::io::Error,
    },
    /// Somebody else has written the versions meanwhile.
    #[error("another process writes the versions to the database; end it")]
    Overtaken,
    /// SQLite failed in another way.
    #[error("the database: {0}")]
    Database(#[source] sqlx::Error),
}

impl From<sqlx::Error> for StoreError {
    fn from(error: sqlx::Error) -> Self {
        // https://www.sqlite.org/rescode.html
        match primary_code(&error) {
            Some(13) => Self::Full,
            Some(5 | 6) => Self::Locked,
            Some(8) => Self::ReadOnly(error),
            Some(11 | 26) => Self::Damaged(error),
            _ => Self::Database(error),
        }
    }
}

impl From<MigrateError> for StoreError {
    fn from(error: MigrateError) -> Self {
        match error {
            MigrateError::VersionMissing(version) => Self::Newer(version),
            MigrateError::Execute(error) | MigrateError::ExecuteMigration(error, _) => error.into(),
            error => Self::Migration(error),
        }
    }
}

fn primary_code(error: &sqlx::Error) -> Option<u32> {
    let code = error.as_database_error()?.code()?;
    Some(code.parse::<u32>().ok()? & 0xff)
}

/// A row that is derived from git and is not what git says.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct IndexDifference {
    /// The table it is in.
    pub table: &'static str,
    /// Which row: its key, e.g. `incident-triage v3`.
    pub row: String,
    /// What git says; none where the row should not be.
    pub expected: Option<String>,
    /// What the row says; none where it is missing.
    pub found: Option<String>,
}

/// The database.
#[derive(Debug, Clone)]
pub struct Store {
    write: SqlitePool,
    read: SqlitePool,
    path: Arc<Path>,
    identity: Option<u64>,
    mended: Option<Arc<Mended>>,
    /// Held by who writes versions, in several transactions.
    versions: Arc<tokio::sync::Mutex<()>>,
}

/// What is written together.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Batch {
    /// Added to what is there.
    pub usage: Vec<UsageRow>,
    /// Added to what is there.
    pub latency: Vec<LatencyRow>,
    /// Added to what is there.
    pub losses: Vec<LossRow>,
    /// Appended; their numbers are given by the store.
    pub deliveries: Vec<DeliveryRow>,
    /// Put in the place of what is there.
    pub recents: Vec<RecentRow>,
    /// Prompt, argument and value of what is removed.
    pub forgotten: Vec<(String, String, String)>,
}

impl Store {
    /// Opens the file, makes it where there is none, and brings it to this release's form. One that is damaged is moved
    /// aside, and what can be read of it goes into a new one ([`Store::mended`]).
    pub async fn open(path: &Path) -> Result<Self, StoreError> {
        let reason = match Self::open_once(path).await {
            Err(StoreError::Damaged(error)) => error.to_string(),
            opened => return opened,
        };
        let moved_to = match damage::move_aside(path) {
            Ok(moved_to) => moved_to,
            Err(error) => return Err(StoreError::NotMoved { reason, error }),
        };
        let mut store = Self::open_once(path).await?;
        let mut connection = store.write.acquire().await?;
        let (salvaged, incomplete) = damage::salvage(&mut connection, &moved_to)
            .await
            .unwrap_or((0, true));
        drop(connection);
        store.mended = Some(Arc::new(Mended {
            moved_to,
            reason,
            salvaged,
            incomplete,
        }));
        Ok(store)
    }

    async fn open_once(path: &Path) -> Result<Self, StoreError> {
        let options = SqliteConnectOptions::new()
            .filename(path)
            .journal_mode(SqliteJournalMode::Wal)
            .synchronous(SqliteSynchronous::Full)
            .foreign_keys(true)
            .pragma("journal_size_limit", LOG_BYTES)
            // a value that is erased is not left in a free page
            .pragma("secure_delete", "ON")
            .busy_timeout(BUSY);
        let bytes = std::fs::metadata(path).map_or(0, |metadata| metadata.len());
        let write = SqlitePoolOptions::new()
            .max_connections(1)
            // where a full disk ends a transaction, SQLite rolls it back by itself and the driver goes on counting it:
            // such a connection would never begin another
            .before_acquire(|connection, _| {
                Box::pin(async move { Ok(!connection.is_in_transaction()) })
            })
            .connect_with(options.clone().create_if_missing(true))
            .await?;
        if (1..=CHECKED_BYTES).contains(&bytes) {
            let found: Result<String, _> = sqlx::query_scalar("PRAGMA quick_check(1)")
                .fetch_one(&write)
                .await;
            let found = found?;
            if found != "ok" {
                write.close().await;
                return Err(StoreError::Damaged(sqlx::Error::Protocol(found)));
            }
        }
        let migrated = MIGRATIONS.run(&write).await;
        if let Err(error) = migrated {
            write.close().await;
            return Err(error.into());
        }
        let read = SqlitePoolOptions::new()
            .max_connections(READERS)
            .connect_lazy_with(options.read_only(true));
        Ok(Self {
            write,
            read,
            path: path.into(),
            identity: identity(path),
            mended: None,
            versions: Arc::default(),
        })
    }

    /// What was done about the file at the open, when it was damaged.
    pub fn mended(&self) -> Option<&Mended> {
        self.mended.as_deref()
    }

    /// Where the file is, when it has been removed or replaced since the open: what is written goes nowhere then.
    pub fn gone(&self) -> Option<PathBuf> {
        let now = identity(&self.path);
        (self.identity.is_some() && now != self.identity).then(|| self.path.to_path_buf())
    }

    /// Writes records, all or none; on disk when it returns.
    pub async fn write_records(&self, batch: &Batch) -> Result<(), StoreError> {
        let mut transaction = self.write.begin_with("BEGIN IMMEDIATE").await?;
        usage::add(
            &mut transaction,
            &batch.usage,
            &batch.latency,
            &batch.losses,
        )
        .await?;
        deliveries::add(&mut transaction, &batch.deliveries).await?;
        recents::remove(&mut transaction, &batch.forgotten).await?;
        recents::put(&mut transaction, &batch.recents).await?;
        transaction.commit().await?;
        Ok(())
    }

    /// Writes the log into the file and cuts it back.
    pub async fn checkpoint(&self) -> Result<(), StoreError> {
        sqlx::query("PRAGMA wal_checkpoint(TRUNCATE)")
            .execute(&self.write)
            .await?;
        Ok(())
    }

    /// Writes the log into the file and closes it.
    pub async fn close(&self) {
        self.read.close().await;
        self.write.close().await;
    }
}

#[cfg(unix)]
fn identity(path: &Path) -> Option<u64> {
    let metadata = std::fs::metadata(path).ok()?;
    Some(std::os::unix::fs::MetadataExt::ino(&metadata))
}

#[cfg(not(unix))]
fn identity(_: &Path) -> Option<u64> {
    None
}
