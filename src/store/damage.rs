//! A file that SQLite cannot read: it is moved aside, never removed, and what can still be read of it goes into a new one.

use std::path::{Path, PathBuf};

use sqlx::SqliteConnection;

/// Statements that a salvage takes at most: a file that is damaged everywhere is given up.
const MOST_STATEMENTS: u32 = 20_000;
/// Where a table's last row is looked for when the table does not say.
const FAR: i64 = 1 << 32;

/// What was done about a damaged file.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Mended {
    /// Where the damaged file is now.
    pub moved_to: PathBuf,
    /// What SQLite said of it.
    pub reason: String,
    /// Rows that could be read and are in the new file.
    pub salvaged: u64,
    /// Whether something could not be read.
    pub incomplete: bool,
}

impl std::fmt::Display for Mended {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(
            f,
            "the database was damaged ({}); it is kept as {}, and ",
            self.reason,
            self.moved_to.display()
        )?;
        match (self.salvaged, self.incomplete) {
            (0, true) => f.write_str("nothing could be read of it: a new one begins empty"),
            (rows, true) => write!(f, "a new one has the {rows} rows that could be read"),
            (rows, false) => write!(f, "a new one has all of its {rows} rows"),
        }
    }
}

/// The file that belongs to a database file: `-wal`, `-shm`.
fn beside(path: &Path, suffix: &str) -> PathBuf {
    let mut name = path.as_os_str().to_owned();
    name.push(suffix);
    name.into()
}

/// Moves a database file and its log to the first free name `….damaged-<n>`.
pub(super) fn move_aside(path: &Path) -> std::io::Result<PathBuf> {
    let free = |n: &u32| !beside(path, &format!(".damaged-{n}")).exists();
    let n = (1..u32::MAX).find(free).unwrap_or(u32::MAX);
    let moved = beside(path, &format!(".damaged-{n}"));
    std::fs::rename(path, &moved)?;
    for suffix in ["-wal", "-shm"] {
        match std::fs::rename(beside(path, suffix), beside(&moved, suffix)) {
            Err(error) if error.kind() != std::io::ErrorKind::NotFound => return Err(error),
            _ => {}
        }
    }
    Ok(moved)
}

/// A table whose rows are in no other place.
struct Table {
    bounds: &'static str,
    copy: &'static str,
}

macro_rules! tables {
    ($($name:literal: $columns:literal),* $(,)?) => {
        [$(Table {
            bounds: concat!("SELECT COALESCE(MIN(rowid), 0), COALESCE(MAX(rowid), -1) FROM damaged.", $name),
            copy: concat!(
                "INSERT OR IGNORE INTO main.", $name, " (", $columns, ") SELECT ", $columns,
                " FROM damaged.", $name, " WHERE rowid BETWEEN $1 AND $2"
            ),
        }),*]
    };
}

const TABLES: [Table; 10] = tables! {
    "proposal": "number, target, topic, title, author, state, head, revision, opened_at, changed_at",
    "proposal_revision": "proposal, revision, head, pushed_by, pushed_at",
    "audit": "seq, at, actor, origin, action, subject, old_commit, new_commit, detail, previous, hash",
    "audit_head": "id, seq, hash, main",
    "delivery": "seq, at, actor, client, client_version, via, placeholder, prompt, version, revision, path, sha256, resources_revision, resources",
    "usage_day": "prompt, version, client, client_version, day, gets, failed, refused, picks, micros_sum, micros_max",
    "usage_latency": "prompt, version, day, bucket, gets",
    "record_loss": "day, kind, lost",
    "recent_value": "prompt, argument, value, weight, at",
    "draft": "actor, path, base, text, saved_at",
};

/// Copies what can be read of a damaged file into the one that is open: how many rows, and whether some could not be read.
pub(super) async fn salvage(
    connection: &mut SqliteConnection,
    damaged: &Path,
) -> Result<(u64, bool), sqlx::Error> {
    // a file that is no database at all is found by the first look into it
    sqlx::query("ATTACH DATABASE $1 AS damaged")
        .bind(damaged.display().to_string())
        .execute(&mut *connection)
        .await?;
    let out = copy_all(connection).await;
    let _ = sqlx::query("DETACH DATABASE damaged")
        .execute(&mut *connection)
        .await;
    out
}

async fn copy_all(connection: &mut SqliteConnection) -> Result<(u64, bool), sqlx::Error> {
    let any: Result<i64, _> = sqlx::query_scalar("SELECT COUNT(*) FROM damaged.sqlite_master")
        .fetch_one(&mut *connection)
        .await;
    if any.is_err() {
        return Ok((0, true));
    }
    // a revision whose proposal cannot be read is kept: its ref brings the proposal back
    sqlx::query("PRAGMA foreign_keys = OFF")
        .execute(&mut *connection)
        .await?;
    let (mut rows, mut incomplete, mut statements) = (0, false, 0);
    for table in &TABLES {
        let bounds: Result<(i64, i64), _> = sqlx::query_as(table.bounds)
            .fetch_one(&mut *connection)
            .await;
        let (first, last) = match bounds {
            Ok(bounds) => bounds,
            // a file of an earlier release does not have it
            Err(error) if error.to_string().contains("no such table") => continue,
            Err(_) => {
                incomplete = true;
                (1, FAR)
            }
        };
        // halves, until what cannot be read is a row
        let mut ranges = vec![(first, last)];
        while let Some((first, last)) = ranges.pop() {
            if first > last {
                continue;
            }
            if statements >= MOST_STATEMENTS {
                incomplete = true;
                break;
            }
            statements += 1;
            let copied = sqlx::query(table.copy)
                .bind(first)
                .bind(last)
                .execute(&mut *connection)
                .await;
            if let Ok(done) = copied {
                rows += done.rows_affected();
                continue;
            }
            incomplete = true;
            if first < last {
                let middle = first + (last - first) / 2;
                ranges.push((middle + 1, last));
                ranges.push((first, middle));
            }
        }
    }
    // where the end of the chain is not known, it is the last row there is
    sqlx::query(
        "INSERT INTO main.audit_head (id, seq, hash, main)
         SELECT 1, seq, hash, NULL FROM main.audit WHERE NOT EXISTS (SELECT 1 FROM main.audit_head)
         ORDER BY seq DESC LIMIT 1",
    )
    .execute(&mut *connection)
    .await?;
    sqlx::query("PRAGMA foreign_keys = ON")
        .execute(&mut *connection)
        .await?;
    Ok((rows, incomplete))
}
