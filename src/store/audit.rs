//! Rows of the audit: appended, and chained, so that a row that was changed or removed shows.

use serde::{Deserialize, Serialize};
use sha2::{Digest, Sha256};
use sqlx::{FromRow, Sqlite, Transaction};
use utoipa::ToSchema;

use super::{IndexDifference, Store, StoreError};

/// What the first row of a chain has before it.
const NOTHING: &str = "";
/// The action of a row that stands for older ones that were removed.
const SEALED: &str = "seal";
/// Rows that are read at a time.
const PAGE: i64 = 1000;

/// What is appended.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct AuditEntry {
    /// When, in milliseconds since 1970.
    pub at: i64,
    /// Who.
    pub actor: String,
    /// From where: an address, or how it came.
    pub origin: Option<String>,
    /// What was done, one word.
    pub action: String,
    /// To what: a ref, `proposal 7`.
    pub subject: Option<String>,
    /// The commit before.
    pub old_commit: Option<String>,
    /// The commit after.
    pub new_commit: Option<String>,
    /// What else there is to say.
    pub detail: Option<String>,
    /// Where main is after this, when this moved it; not part of the row.
    pub main: Option<String>,
}

/// A row of the audit.
#[derive(Debug, Clone, PartialEq, Eq, FromRow, Serialize, Deserialize, ToSchema)]
pub struct AuditRow {
    /// Its number, from 1, without a gap.
    pub seq: i64,
    /// When, in milliseconds since 1970.
    pub at: i64,
    /// Who.
    pub actor: String,
    /// From where: an address, or how it came.
    pub origin: Option<String>,
    /// What was done, one word.
    pub action: String,
    /// To what: a ref, `proposal 7`.
    pub subject: Option<String>,
    /// The commit before.
    pub old_commit: Option<String>,
    /// The commit after.
    pub new_commit: Option<String>,
    /// What else there is to say.
    pub detail: Option<String>,
    /// The hash of the row before.
    pub previous: String,
    /// SHA-256 over this row and `previous`, in hex.
    pub hash: String,
}

impl AuditRow {
    /// Whether this is the row of an entry.
    pub fn says(&self, entry: &AuditEntry) -> bool {
        (self.at, &self.actor, &self.origin, &self.action)
            == (entry.at, &entry.actor, &entry.origin, &entry.action)
            && (
                &self.subject,
                &self.old_commit,
                &self.new_commit,
                &self.detail,
            ) == (
                &entry.subject,
                &entry.old_commit,
                &entry.new_commit,
                &entry.detail,
            )
    }
}

/// The end of the chain.
#[derive(Debug, Clone, Default, PartialEq, Eq, FromRow)]
pub struct AuditHead {
    /// The number of the newest row; 0 where there is none.
    pub seq: i64,
    /// Its hash.
    pub hash: String,
    /// Where main was when the newest row about main was written.
    pub main: Option<String>,
}

/// What a row's hash is, by what it says.
fn hash(row: &AuditRow) -> String {
    let mut hasher = Sha256::new();
    hasher.update(b"cuebook audit 1\0");
    hasher.update(row.seq.to_be_bytes());
    hasher.update(row.at.to_be_bytes());
    let fields = [
        Some(&row.actor),
        row.origin.as_ref(),
        Some(&row.action),
        row.subject.as_ref(),
        row.old_commit.as_ref(),
        row.new_commit.as_ref(),
        row.detail.as_ref(),
        Some(&row.previous),
    ];
    for field in fields {
        // lengths first, so that no two rows are the same bytes
        match field {
            None => hasher.update([0]),
            Some(text) => {
                hasher.update([1]);
                hasher.update((text.len() as u64).to_be_bytes());
                hasher.update(text.as_bytes());
            }
        }
    }
    hasher
        .finalize()
        .iter()
        .map(|byte| format!("{byte:02x}"))
        .collect()
}

async fn head(transaction: &mut Transaction<'_, Sqlite>) -> Result<AuditHead, StoreError> {
    Ok(
        sqlx::query_as("SELECT seq, hash, main FROM audit_head WHERE id = 1")
            .fetch_optional(&mut **transaction)
            .await?
            .unwrap_or_default(),
    )
}

async fn append(
    transaction: &mut Transaction<'_, Sqlite>,
    entries: &[AuditEntry],
) -> Result<AuditHead, StoreError> {
    let mut head = head(transaction).await?;
    for entry in entries {
        let mut row = AuditRow {
            seq: head.seq + 1,
            at: entry.at,
            actor: entry.actor.clone(),
            origin: entry.origin.clone(),
            action: entry.action.clone(),
            subject: entry.subject.clone(),
            old_commit: entry.old_commit.clone(),
            new_commit: entry.new_commit.clone(),
            detail: entry.detail.clone(),
            previous: head.hash.clone(),
            hash: String::new(),
        };
        row.hash = hash(&row);
        sqlx::query(
            "INSERT INTO audit (seq, at, actor, origin, action, subject, old_commit, new_commit, detail, previous, hash)
             VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11)",
        )
        .bind(row.seq)
        .bind(row.at)
        .bind(&row.actor)
        .bind(&row.origin)
        .bind(&row.action)
        .bind(&row.subject)
        .bind(&row.old_commit)
        .bind(&row.new_commit)
        .bind(&row.detail)
        .bind(&row.previous)
        .bind(&row.hash)
        .execute(&mut **transaction)
        .await?;
        head = AuditHead {
            seq: row.seq,
            hash: row.hash,
            main: entry.main.clone().or(head.main),
        };
    }
    sqlx::query(
        "INSERT INTO audit_head (id, seq, hash, main) VALUES (1, $1, $2, $3)
         ON CONFLICT (id) DO UPDATE SET seq = excluded.seq, hash = excluded.hash, main = excluded.main",
    )
    .bind(head.seq)
    .bind(&head.hash)
    .bind(&head.main)
    .execute(&mut **transaction)
    .await?;
    Ok(head)
}

impl Store {
    /// Appends entries, in order, all or none; on disk when it returns. The new end of the chain.
    pub async fn append_audit(&self, entries: &[AuditEntry]) -> Result<AuditHead, StoreError> {
        let mut transaction = self.write.begin_with("BEGIN IMMEDIATE").await?;
        let head = append(&mut transaction, entries).await?;
        transaction.commit().await?;
        Ok(head)
    }

    /// Says where main is in the place of what the newest row about main said: rows may be told in another order.
    pub async fn correct_main(&self, said: &str, main: &str) -> Result<(), StoreError> {
        sqlx::query("UPDATE audit_head SET main = $1 WHERE id = 1 AND main = $2")
            .bind(main)
            .bind(said)
            .execute(&self.write)
            .await?;
        Ok(())
    }

    /// The end of the chain.
    pub async fn audit_head(&self) -> Result<AuditHead, StoreError> {
        Ok(
            sqlx::query_as("SELECT seq, hash, main FROM audit_head WHERE id = 1")
                .fetch_optional(&self.read)
                .await?
                .unwrap_or_default(),
        )
    }

    /// Rows after a number, oldest first and at most so many.
    pub async fn audit_after(&self, seq: i64, most: i64) -> Result<Vec<AuditRow>, StoreError> {
        Ok(
            sqlx::query_as("SELECT * FROM audit WHERE seq > $1 ORDER BY seq LIMIT $2")
                .bind(seq)
                .bind(most)
                .fetch_all(&self.read)
                .await?,
        )
    }

    /// Rows before a number, newest first and at most so many; the newest of all without one.
    pub async fn audit_before(
        &self,
        seq: Option<i64>,
        most: i64,
    ) -> Result<Vec<AuditRow>, StoreError> {
        Ok(sqlx::query_as(
            "SELECT * FROM audit WHERE $1 IS NULL OR seq < $1 ORDER BY seq DESC LIMIT $2",
        )
        .bind(seq)
        .bind(most)
        .fetch_all(&self.read)
        .await?)
    }

    /// Computes the chain again from its first row: every row that was changed, removed or put in, by its number.
    pub async fn verify_audit(&self) -> Result<Vec<IndexDifference>, StoreError> {
        let mut differences = Vec::new();
        let mut differs = |row: String, expected: Option<String>, found: Option<String>| {
            differences.push(IndexDifference {
                table: "audit",
                row,
                expected,
                found,
            });
        };
        // one transaction: rows that are appended meanwhile are no difference
        let mut transaction = self.read.begin().await?;
        let end = head(&mut transaction).await?;
        let first: Option<AuditRow> = sqlx::query_as("SELECT * FROM audit ORDER BY seq LIMIT 1")
            .fetch_optional(&mut *transaction)
            .await?;
        let mut before = (0, NOTHING.to_owned());
        if let Some(first) = first.filter(|row| row.seq > 1) {
            // older rows may have been removed, and then a later row says so
            let sealed = seal_of(first.seq - 1, &first.previous);
            let seals: i64 =
                sqlx::query_scalar("SELECT COUNT(*) FROM audit WHERE action = $1 AND detail = $2")
                    .bind(SEALED)
                    .bind(&sealed)
                    .fetch_one(&mut *transaction)
                    .await?;
            if seals == 0 {
                differs(
                    format!("1 to {}", first.seq - 1),
                    Some("these rows, or a later row that seals them".into()),
                    None,
                );
            }
            before = (first.seq - 1, first.previous);
        }
        loop {
            let rows: Vec<AuditRow> =
                sqlx::query_as("SELECT * FROM audit WHERE seq > $1 ORDER BY seq LIMIT $2")
                    .bind(before.0)
                    .bind(PAGE)
                    .fetch_all(&mut *transaction)
                    .await?;
            if rows.is_empty() {
                break;
            }
            for row in rows {
                let (seq, previous) = before;
                if row.seq == seq + 2 {
                    differs((seq + 1).to_string(), Some("a row".into()), None);
                } else if row.seq > seq + 1 {
                    let gap = format!("{} to {}", seq + 1, row.seq - 1);
                    differs(gap, Some("rows".into()), None);
                } else if row.previous != previous {
                    differs(
                        format!("{} (the hash of the row before it)", row.seq),
                        Some(previous),
                        Some(row.previous.clone()),
                    );
                }
                let computed = hash(&row);
                if computed != row.hash {
                    let found = Some(row.hash.clone());
                    differs(row.seq.to_string(), Some(computed), found);
                }
                before = (row.seq, row.hash);
            }
        }
        if (end.seq, &end.hash) != (before.0, &before.1) {
            differs(
                "the newest".into(),
                Some(format!("{} {}", end.seq, end.hash)),
                Some(format!("{} {}", before.0, before.1)),
            );
        }
        transaction.rollback().await?;
        Ok(differences)
    }

    /// Removes the rows that are older than a time (milliseconds since 1970) and appends one that seals them: it names the
    /// last that was removed and its hash, so that the rest is proven as before. The newest row stays. Returns how many
    /// were removed.
    pub async fn seal_audit(&self, before: i64, now: i64) -> Result<u64, StoreError> {
        let mut transaction = self.write.begin_with("BEGIN IMMEDIATE").await?;
        // a clock that was set back does not make a gap: everything up to the first that is young enough
        let last: Option<(i64, String)> = sqlx::query_as(
            "SELECT seq, hash FROM audit
             WHERE seq < COALESCE((SELECT MIN(seq) FROM audit WHERE at >= $1), (SELECT MAX(seq) FROM audit))
             ORDER BY seq DESC LIMIT 1",
        )
        .bind(before)
        .fetch_optional(&mut *transaction)
        .await?;
        let Some((seq, hash)) = last else {
            return Ok(0);
        };
        let seal = AuditEntry {
            at: now,
            actor: "cuebook".into(),
            origin: Some("retention".into()),
            action: SEALED.into(),
            detail: Some(seal_of(seq, &hash)),
            ..AuditEntry::default()
        };
        append(&mut transaction, &[seal]).await?;
        let removed = sqlx::query("DELETE FROM audit WHERE seq <= $1")
            .bind(seq)
            .execute(&mut *transaction)
            .await?
            .rows_affected();
        transaction.commit().await?;
        Ok(removed)
    }
}

/// What a row says that seals the rows up to a number.
fn seal_of(seq: i64, hash: &str) -> String {
    format!("rows to {seq}, hash {hash}")
}
