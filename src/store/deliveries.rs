//! Rows of deliveries: which text went to whom when, with which resources.

use sqlx::{FromRow, Sqlite, Transaction};

use super::{Store, StoreError};

/// A prompt that was delivered.
#[derive(Debug, Clone, Default, PartialEq, Eq, FromRow)]
pub struct DeliveryRow {
    /// Its number, from 1; given by the store.
    pub seq: i64,
    /// When, in milliseconds since 1970.
    pub at: i64,
    /// The actor who got it.
    pub actor: String,
    /// The client, as it calls itself.
    pub client: String,
    /// The client's version.
    pub client_version: String,
    /// `prompt` or `tool`.
    pub via: String,
    /// Whether an argument held a placeholder such as `$1`, so that the client put the values in by itself.
    pub placeholder: bool,
    /// The prompt.
    pub prompt: String,
    /// Its version, where it was known.
    pub version: Option<i64>,
    /// The commit that has its text; none for a work tree.
    pub revision: Option<String>,
    /// Its file in that commit.
    pub path: String,
    /// SHA-256 of the file, in hex.
    pub sha256: String,
    /// The commit that has the resources: another one than that of the text where an earlier version was asked for.
    pub resources_revision: Option<String>,
    /// A JSON list of `{"uri", "path", "sha256"}`: the resources that were delivered with it.
    pub resources: String,
}

/// Which deliveries are asked for; what is none narrows nothing.
#[derive(Debug, Clone, Default)]
pub struct DeliveryFilter {
    /// Not before, in milliseconds since 1970.
    pub from: Option<i64>,
    /// Before, in milliseconds since 1970.
    pub before: Option<i64>,
    /// With a lower number.
    pub before_seq: Option<i64>,
    /// Of this prompt.
    pub prompt: Option<String>,
    /// To this actor.
    pub actor: Option<String>,
    /// To this client.
    pub client: Option<String>,
}

/// The number of the newest delivery; 0 where there is none.
pub(super) async fn last(transaction: &mut Transaction<'_, Sqlite>) -> Result<i64, StoreError> {
    Ok(
        sqlx::query_scalar("SELECT COALESCE(MAX(seq), 0) FROM delivery")
            .fetch_one(&mut **transaction)
            .await?,
    )
}

pub(super) async fn add(
    transaction: &mut Transaction<'_, Sqlite>,
    rows: &[DeliveryRow],
) -> Result<(), StoreError> {
    if rows.is_empty() {
        return Ok(());
    }
    let mut seq = last(transaction).await?;
    for row in rows {
        seq += 1;
        sqlx::query(
            "INSERT INTO delivery (seq, at, actor, client, client_version, via, placeholder, prompt, version, revision, path, sha256, resources_revision, resources)
             VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12, $13, $14)",
        )
        .bind(seq)
        .bind(row.at)
        .bind(&row.actor)
        .bind(&row.client)
        .bind(&row.client_version)
        .bind(&row.via)
        .bind(i64::from(row.placeholder))
        .bind(&row.prompt)
        .bind(row.version)
        .bind(&row.revision)
        .bind(&row.path)
        .bind(&row.sha256)
        .bind(&row.resources_revision)
        .bind(&row.resources)
        .execute(&mut **transaction)
        .await?;
    }
    Ok(())
}

impl Store {
    /// Deliveries, newest first and at most so many.
    pub async fn deliveries(
        &self,
        filter: &DeliveryFilter,
        most: i64,
    ) -> Result<Vec<DeliveryRow>, StoreError> {
        Ok(sqlx::query_as(
            "SELECT * FROM delivery
             WHERE ($1 IS NULL OR at >= $1) AND ($2 IS NULL OR at < $2) AND ($3 IS NULL OR seq < $3)
               AND ($4 IS NULL OR prompt = $4) AND ($5 IS NULL OR actor = $5) AND ($6 IS NULL OR client = $6)
             ORDER BY seq DESC LIMIT $7",
        )
        .bind(filter.from)
        .bind(filter.before)
        .bind(filter.before_seq)
        .bind(&filter.prompt)
        .bind(&filter.actor)
        .bind(&filter.client)
        .bind(most)
        .fetch_all(&self.read)
        .await?)
    }

    /// Removes at most so many of the oldest deliveries that are from before a time (milliseconds since 1970), or more than
    /// `keep` behind the newest. Returns how many it removed.
    pub async fn forget_deliveries(
        &self,
        before: i64,
        keep: i64,
        most: i64,
    ) -> Result<u64, StoreError> {
        let mut transaction = self.write.begin_with("BEGIN IMMEDIATE").await?;
        let behind = last(&mut transaction).await?.saturating_sub(keep);
        let removed = sqlx::query(
            "DELETE FROM delivery WHERE seq IN
                 (SELECT seq FROM delivery WHERE at < $1 OR seq <= $2 ORDER BY seq LIMIT $3)",
        )
        .bind(before)
        .bind(behind)
        .bind(most)
        .execute(&mut *transaction)
        .await?
        .rows_affected();
        transaction.commit().await?;
        Ok(removed)
    }
}
