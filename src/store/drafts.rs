//! Rows of edits that are not finished. They are few, not large, and end by themselves.

use sqlx::FromRow;

use super::{Store, StoreError};

/// Drafts that one actor may have.
pub const MAX_DRAFTS: i64 = 50;
/// Bytes that the drafts of one actor may have together.
pub const MAX_DRAFT_BYTES: i64 = 8 * 1024 * 1024;
/// How long a draft is kept that nobody goes on with, in milliseconds.
pub const DRAFT_MILLIS: i64 = 30 * 24 * 60 * 60 * 1000;

/// An edit that is not finished.
#[derive(Debug, Clone, PartialEq, Eq, FromRow)]
pub struct DraftRow {
    /// Whose it is.
    pub actor: String,
    /// The file, e.g. `prompts/sre/incident-triage.md`.
    pub path: String,
    /// The commit of main that it was begun from; none in an empty library.
    pub base: Option<String>,
    /// The text as it would be stored.
    pub text: String,
    /// When it was kept, in milliseconds since 1970.
    pub saved_at: i64,
}

/// What became of a draft.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Kept {
    /// It is kept, as of this time: later than any draft of the same file before it.
    At(i64),
    /// Its actor has [`MAX_DRAFTS`] others.
    TooMany,
    /// With those its actor has it would be more than [`MAX_DRAFT_BYTES`].
    TooLarge,
}

impl Store {
    /// Keeps a draft in the place of what its actor had at that path; what is out of date goes.
    pub async fn put_draft(&self, row: &DraftRow) -> Result<Kept, StoreError> {
        let mut transaction = self.write.begin_with("BEGIN IMMEDIATE").await?;
        sqlx::query("DELETE FROM draft WHERE saved_at < $1")
            .bind(row.saved_at.saturating_sub(DRAFT_MILLIS))
            .execute(&mut *transaction)
            .await?;
        let (others, bytes): (i64, i64) = sqlx::query_as(
            "SELECT COUNT(*), COALESCE(SUM(LENGTH(CAST(text AS BLOB))), 0) FROM draft WHERE actor = $1 AND path <> $2",
        )
        .bind(&row.actor)
        .bind(&row.path)
        .fetch_one(&mut *transaction)
        .await?;
        let own = i64::try_from(row.text.len()).unwrap_or(i64::MAX);
        let refused = if others >= MAX_DRAFTS {
            Some(Kept::TooMany)
        } else if bytes.saturating_add(own) > MAX_DRAFT_BYTES {
            Some(Kept::TooLarge)
        } else {
            None
        };
        if let Some(refused) = refused {
            transaction.commit().await?;
            return Ok(refused);
        }
        let saved_at: i64 = sqlx::query_scalar(
            "INSERT INTO draft (actor, path, base, text, saved_at) VALUES ($1, $2, $3, $4, $5)
             ON CONFLICT (actor, path) DO UPDATE SET base = excluded.base, text = excluded.text,
                 saved_at = MAX(excluded.saved_at, draft.saved_at + 1)
             RETURNING saved_at",
        )
        .bind(&row.actor)
        .bind(&row.path)
        .bind(&row.base)
        .bind(&row.text)
        .bind(row.saved_at)
        .fetch_one(&mut *transaction)
        .await?;
        transaction.commit().await?;
        Ok(Kept::At(saved_at))
    }

    /// What an actor was writing at a path, if it was kept after a time.
    pub async fn draft(
        &self,
        actor: &str,
        path: &str,
        after: i64,
    ) -> Result<Option<DraftRow>, StoreError> {
        Ok(sqlx::query_as(
            "SELECT actor, path, base, text, saved_at FROM draft WHERE actor = $1 AND path = $2 AND saved_at > $3",
        )
        .bind(actor)
        .bind(path)
        .bind(after)
        .fetch_optional(&self.read)
        .await?)
    }

    /// Paths of an actor's drafts that were kept after a time, with when; the newest first.
    pub async fn drafts_of(
        &self,
        actor: &str,
        after: i64,
    ) -> Result<Vec<(String, i64)>, StoreError> {
        Ok(sqlx::query_as(
            "SELECT path, saved_at FROM draft WHERE actor = $1 AND saved_at > $2 ORDER BY saved_at DESC, path",
        )
        .bind(actor)
        .bind(after)
        .fetch_all(&self.read)
        .await?)
    }

    /// Removes a draft; with a time only the one that was kept then, so that a newer one stays. Whether there was one.
    pub async fn remove_draft(
        &self,
        actor: &str,
        path: &str,
        saved_at: Option<i64>,
    ) -> Result<bool, StoreError> {
        let done = sqlx::query(
            "DELETE FROM draft WHERE actor = $1 AND path = $2 AND ($3 IS NULL OR saved_at = $3)",
        )
        .bind(actor)
        .bind(path)
        .bind(saved_at)
        .execute(&self.write)
        .await?;
        Ok(done.rows_affected() > 0)
    }
}
