//! The SQLite file: what git does not hold. A file per aggregate, plain rows; knows nothing of prompts or of git.
//!
//! One connection writes, a few read; the journal is a write-ahead log. Migrations go forward only.

mod proposals;
mod search;
mod versions;

use std::path::Path;
use std::time::Duration;

use sqlx::SqlitePool;
use sqlx::migrate::{MigrateError, Migrator};
use sqlx::sqlite::{SqliteConnectOptions, SqliteJournalMode, SqlitePoolOptions, SqliteSynchronous};

pub use proposals::{ProposalRow, RevisionRow};
pub use search::{SearchRow, SearchState, SearchText};
pub use versions::{CommitRow, LabelRow, NameRow, VersionRow, VersionRows, VersionState};

static MIGRATIONS: Migrator = sqlx::migrate!("./migrations");

/// How long a statement waits for the writer of another process.
const BUSY: Duration = Duration::from_secs(5);
/// Connections that read.
const READERS: u32 = 4;

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
    /// SQLite failed: a full disk, a file that is damaged, a folder that may not be written to.
    #[error("the database: {0}")]
    Database(#[from] sqlx::Error),
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
}

impl Store {
    /// Opens the file, makes it where there is none, and brings it to this release's form.
    pub async fn open(path: &Path) -> Result<Self, StoreError> {
        let options = SqliteConnectOptions::new()
            .filename(path)
            .journal_mode(SqliteJournalMode::Wal)
            .synchronous(SqliteSynchronous::Full)
            .foreign_keys(true)
            .busy_timeout(BUSY);
        let write = SqlitePoolOptions::new()
            .max_connections(1)
            .connect_with(options.clone().create_if_missing(true))
            .await?;
        MIGRATIONS.run(&write).await.map_err(|error| match error {
            MigrateError::VersionMissing(version) => StoreError::Newer(version),
            error => StoreError::Migration(error),
        })?;
        let read = SqlitePoolOptions::new()
            .max_connections(READERS)
            .connect_lazy_with(options.read_only(true));
        Ok(Self { write, read })
    }

    /// Writes the log into the file and closes it.
    pub async fn close(&self) {
        self.read.close().await;
        self.write.close().await;
    }
}
