//! Rows of use: how often which version of a prompt was got by which client on which day.

use sqlx::{FromRow, Sqlite, Transaction};

use super::{Store, StoreError};

/// Use of one version of a prompt by one client on one day.
#[derive(Debug, Clone, Default, PartialEq, Eq, FromRow)]
pub struct UsageRow {
    /// The prompt.
    pub prompt: String,
    /// Its version; 0 where it was not known.
    pub version: i64,
    /// The client, as it calls itself.
    pub client: String,
    /// The client's version.
    pub client_version: String,
    /// Days since 1970-01-01, UTC.
    pub day: i64,
    /// Times it was delivered.
    pub gets: i64,
    /// Times it could not be rendered.
    pub failed: i64,
    /// Times its arguments did not satisfy its declaration.
    pub refused: i64,
    /// Values among those given that the argument's completion offers.
    pub picks: i64,
    /// Time that the gets took together, in microseconds.
    pub micros_sum: i64,
    /// Time that the slowest took, in microseconds.
    pub micros_max: i64,
}

/// Gets of a prompt by one client.
#[derive(Debug, Clone, Default, PartialEq, Eq, FromRow)]
pub struct ClientRow {
    /// The prompt.
    pub prompt: String,
    /// The client, as it calls itself.
    pub client: String,
    /// The client's version.
    pub client_version: String,
    /// Times it was delivered.
    pub gets: i64,
}

/// How many gets of one version of a prompt took how long on one day.
#[derive(Debug, Clone, PartialEq, Eq, FromRow)]
pub struct LatencyRow {
    /// The prompt.
    pub prompt: String,
    /// Its version; 0 where it was not known.
    pub version: i64,
    /// Days since 1970-01-01, UTC.
    pub day: i64,
    /// The times: below `2^bucket × 100` microseconds.
    pub bucket: i64,
    /// How many.
    pub gets: i64,
}

/// What could not be recorded on one day.
#[derive(Debug, Clone, PartialEq, Eq, FromRow)]
pub struct LossRow {
    /// Days since 1970-01-01, UTC.
    pub day: i64,
    /// `usage` or `delivery`.
    pub kind: String,
    /// How many.
    pub lost: i64,
}

pub(super) async fn add(
    transaction: &mut Transaction<'_, Sqlite>,
    usage: &[UsageRow],
    latency: &[LatencyRow],
    losses: &[LossRow],
) -> Result<(), StoreError> {
    for row in usage {
        sqlx::query(
            "INSERT INTO usage_day (prompt, version, client, client_version, day, gets, failed, refused, picks, micros_sum, micros_max)
             VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11)
             ON CONFLICT (day, prompt, version, client, client_version) DO UPDATE SET
                 gets = usage_day.gets + excluded.gets, failed = usage_day.failed + excluded.failed,
                 refused = usage_day.refused + excluded.refused, picks = usage_day.picks + excluded.picks,
                 micros_sum = usage_day.micros_sum + excluded.micros_sum,
                 micros_max = CASE WHEN usage_day.micros_max > excluded.micros_max THEN usage_day.micros_max ELSE excluded.micros_max END",
        )
        .bind(&row.prompt)
        .bind(row.version)
        .bind(&row.client)
        .bind(&row.client_version)
        .bind(row.day)
        .bind(row.gets)
        .bind(row.failed)
        .bind(row.refused)
        .bind(row.picks)
        .bind(row.micros_sum)
        .bind(row.micros_max)
        .execute(&mut **transaction)
        .await?;
    }
    for row in latency {
        sqlx::query(
            "INSERT INTO usage_latency (prompt, version, day, bucket, gets) VALUES ($1, $2, $3, $4, $5)
             ON CONFLICT (day, prompt, version, bucket) DO UPDATE SET gets = usage_latency.gets + excluded.gets",
        )
        .bind(&row.prompt)
        .bind(row.version)
        .bind(row.day)
        .bind(row.bucket)
        .bind(row.gets)
        .execute(&mut **transaction)
        .await?;
    }
    for row in losses {
        sqlx::query(
            "INSERT INTO record_loss (day, kind, lost) VALUES ($1, $2, $3)
             ON CONFLICT (day, kind) DO UPDATE SET lost = record_loss.lost + excluded.lost",
        )
        .bind(row.day)
        .bind(&row.kind)
        .bind(row.lost)
        .execute(&mut **transaction)
        .await?;
    }
    Ok(())
}

impl Store {
    /// Use on the days from one to another, both included: by prompt, version, client and day; of one prompt where it is named.
    pub async fn usage(
        &self,
        from: i64,
        to: i64,
        prompt: Option<&str>,
    ) -> Result<Vec<UsageRow>, StoreError> {
        Ok(sqlx::query_as(
            "SELECT * FROM usage_day WHERE day BETWEEN $1 AND $2 AND ($3 IS NULL OR prompt = $3)
             ORDER BY prompt, version, client, client_version, day",
        )
        .bind(from)
        .bind(to)
        .bind(prompt)
        .fetch_all(&self.read)
        .await?)
    }

    /// Use on the days from one to another, both included, by prompt and version: rows without client and day.
    pub async fn usage_by_version(
        &self,
        from: i64,
        to: i64,
        prompt: Option<&str>,
    ) -> Result<Vec<UsageRow>, StoreError> {
        macro_rules! sql {
            ($narrowed:literal) => {
                concat!(
                    "SELECT prompt, version, '' AS client, '' AS client_version, 0 AS day, SUM(gets) AS gets, SUM(failed) AS failed,
                         SUM(refused) AS refused, SUM(picks) AS picks, SUM(micros_sum) AS micros_sum, MAX(micros_max) AS micros_max
                     FROM usage_day WHERE day BETWEEN $1 AND $2",
                    $narrowed,
                    " GROUP BY prompt, version ORDER BY prompt, version"
                )
            };
        }
        self.of_days([sql!(""), sql!(" AND prompt = $3")], from, to, prompt)
            .await
    }

    /// Gets on the days from one to another, both included, by prompt and client.
    pub async fn gets_by_client(
        &self,
        from: i64,
        to: i64,
        prompt: Option<&str>,
    ) -> Result<Vec<ClientRow>, StoreError> {
        macro_rules! sql {
            ($narrowed:literal) => {
                concat!(
                    "SELECT prompt, client, client_version, SUM(gets) AS gets
                     FROM usage_day WHERE day BETWEEN $1 AND $2",
                    $narrowed,
                    " GROUP BY prompt, client, client_version ORDER BY prompt, client, client_version"
                )
            };
        }
        self.of_days([sql!(""), sql!(" AND prompt = $3")], from, to, prompt)
            .await
    }

    /// Runs the first text for all prompts, or the second for one.
    async fn of_days<R>(
        &self,
        sql: [&'static str; 2],
        from: i64,
        to: i64,
        prompt: Option<&str>,
    ) -> Result<Vec<R>, StoreError>
    where
        R: for<'r> FromRow<'r, sqlx::sqlite::SqliteRow> + Send + Unpin,
    {
        let [all, one] = sql;
        let query = sqlx::query_as(if prompt.is_some() { one } else { all })
            .bind(from)
            .bind(to);
        let query = match prompt {
            Some(prompt) => query.bind(prompt.to_owned()),
            None => query,
        };
        Ok(query.fetch_all(&self.read).await?)
    }

    /// Gets of each of some prompts on each of the days from one to another, both included: prompt, day, gets.
    pub async fn gets_by_day(
        &self,
        from: i64,
        to: i64,
        prompts: &[&str],
    ) -> Result<Vec<(String, i64, i64)>, StoreError> {
        Ok(sqlx::query_as(
            "SELECT prompt, day, SUM(gets) FROM usage_day
             WHERE day BETWEEN $1 AND $2 AND prompt IN (SELECT value FROM json_each($3)) GROUP BY prompt, day",
        )
        .bind(from)
        .bind(to)
        .bind(serde_json::to_string(prompts).unwrap_or_default())
        .fetch_all(&self.read)
        .await?)
    }

    /// The times that gets took on the days from one to another, both included: rows without day.
    pub async fn latency(
        &self,
        from: i64,
        to: i64,
        prompt: Option<&str>,
    ) -> Result<Vec<LatencyRow>, StoreError> {
        macro_rules! sql {
            ($narrowed:literal) => {
                concat!(
                    "SELECT prompt, version, 0 AS day, bucket, SUM(gets) AS gets
                     FROM usage_latency WHERE day BETWEEN $1 AND $2",
                    $narrowed,
                    " GROUP BY prompt, version, bucket ORDER BY prompt, version, bucket"
                )
            };
        }
        self.of_days([sql!(""), sql!(" AND prompt = $3")], from, to, prompt)
            .await
    }

    /// What could not be recorded on the days from one to another, both included.
    pub async fn losses(&self, from: i64, to: i64) -> Result<Vec<LossRow>, StoreError> {
        Ok(sqlx::query_as(
            "SELECT * FROM record_loss WHERE day BETWEEN $1 AND $2 ORDER BY day, kind",
        )
        .bind(from)
        .bind(to)
        .fetch_all(&self.read)
        .await?)
    }

    /// How often each prompt was delivered since a day, by name.
    pub async fn gets_since(&self, day: i64) -> Result<Vec<(String, i64)>, StoreError> {
        Ok(sqlx::query_as(
            "SELECT prompt, SUM(gets) FROM usage_day WHERE day >= $1 GROUP BY prompt ORDER BY prompt",
        )
        .bind(day)
        .fetch_all(&self.read)
        .await?)
    }

    /// Removes use before a day. Returns how many rows.
    pub async fn forget_usage(&self, before: i64) -> Result<u64, StoreError> {
        let mut transaction = self.write.begin_with("BEGIN IMMEDIATE").await?;
        let mut removed = 0;
        for sql in [
            "DELETE FROM usage_day WHERE day < $1",
            "DELETE FROM usage_latency WHERE day < $1",
            "DELETE FROM record_loss WHERE day < $1",
        ] {
            removed += sqlx::query(sql)
                .bind(before)
                .execute(&mut *transaction)
                .await?
                .rows_affected();
        }
        transaction.commit().await?;
        Ok(removed)
    }
}
