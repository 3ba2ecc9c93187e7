//! Rows of search: texts that are found by any three characters in a row, and which revision they are of.

use sqlx::{AssertSqlSafe, FromRow, Row as _};

use super::{Store, StoreError};

/// A row of what can be found, without its text.
#[derive(Debug, Clone, PartialEq, Eq, FromRow)]
pub struct SearchRow {
    /// By which its text is known.
    pub id: i64,
    /// `prompt` or `resource`.
    pub kind: String,
    /// A prompt's name, a resource's URI.
    pub name: String,
    /// SHA-256 of what the text was made from, hex.
    pub hash: String,
}

/// A row to be written, or one that was read with its text.
#[derive(Debug, Clone, PartialEq, Eq, FromRow)]
pub struct SearchText {
    /// By which its text is known; not looked at where it is written.
    pub id: i64,
    /// `prompt` or `resource`.
    pub kind: String,
    /// A prompt's name, a resource's URI.
    pub name: String,
    /// SHA-256 of what the text was made from, hex.
    pub hash: String,
    /// The text in the form that is searched; none where it is missing.
    pub form: Option<String>,
}

/// Where the rows are at.
#[derive(Debug, Clone, Default, PartialEq, Eq, FromRow)]
pub struct SearchState {
    /// Which forms the texts have.
    pub rule: i64,
    /// The commit they are of.
    pub revision: Option<String>,
    /// A sum over them; none while they are being written.
    pub digest: Option<String>,
}

impl Store {
    /// Where the rows are at; none before the first were written.
    pub async fn search_state(&self) -> Result<Option<SearchState>, StoreError> {
        Ok(
            sqlx::query_as("SELECT rule, revision, digest FROM search_state WHERE id = 1")
                .fetch_optional(&self.read)
                .await?,
        )
    }

    /// Every row, without its text.
    pub async fn search_rows(&self) -> Result<Vec<SearchRow>, StoreError> {
        Ok(
            sqlx::query_as("SELECT id, kind, name, hash FROM search_document ORDER BY id")
                .fetch_all(&self.read)
                .await?,
        )
    }

    /// Rows with their texts behind an id, by id.
    pub async fn search_texts(
        &self,
        after: i64,
        limit: i64,
    ) -> Result<Vec<SearchText>, StoreError> {
        Ok(sqlx::query_as(
            "SELECT d.id, d.kind, d.name, d.hash, t.form FROM search_document d
             LEFT JOIN search_text t ON t.rowid = d.id WHERE d.id > $1 ORDER BY d.id LIMIT $2",
        )
        .bind(after)
        .bind(limit)
        .fetch_all(&self.read)
        .await?)
    }

    /// Ids of texts that belong to no row.
    pub async fn search_strays(&self) -> Result<Vec<i64>, StoreError> {
        Ok(sqlx::query_scalar(
            "SELECT rowid FROM search_text WHERE rowid NOT IN (SELECT id FROM search_document) ORDER BY rowid",
        )
        .fetch_all(&self.read)
        .await?)
    }

    /// Removes rows by id, adds others, and says where all of them are at then, all or nothing. The ids of what was added.
    pub async fn write_search(
        &self,
        remove: &[i64],
        add: &[SearchText],
        state: &SearchState,
    ) -> Result<Vec<i64>, StoreError> {
        let mut transaction = self.write.begin_with("BEGIN IMMEDIATE").await?;
        for id in remove {
            sqlx::query("DELETE FROM search_text WHERE rowid = $1")
                .bind(id)
                .execute(&mut *transaction)
                .await?;
            sqlx::query("DELETE FROM search_document WHERE id = $1")
                .bind(id)
                .execute(&mut *transaction)
                .await?;
        }
        let mut ids = Vec::with_capacity(add.len());
        for row in add {
            let id: i64 = sqlx::query_scalar(
                "INSERT INTO search_document (kind, name, hash) VALUES ($1, $2, $3) RETURNING id",
            )
            .bind(&row.kind)
            .bind(&row.name)
            .bind(&row.hash)
            .fetch_one(&mut *transaction)
            .await?;
            sqlx::query("INSERT INTO search_text (rowid, form) VALUES ($1, $2)")
                .bind(id)
                .bind(&row.form)
                .execute(&mut *transaction)
                .await?;
            ids.push(id);
        }
        sqlx::query(
            "INSERT INTO search_state (id, rule, revision, digest) VALUES (1, $1, $2, $3)
             ON CONFLICT (id) DO UPDATE SET rule = excluded.rule, revision = excluded.revision, digest = excluded.digest",
        )
        .bind(state.rule)
        .bind(&state.revision)
        .bind(&state.digest)
        .execute(&mut *transaction)
        .await?;
        transaction.commit().await?;
        Ok(ids)
    }

    /// Ids of texts that hold every one of some runs of three characters, at most `limit` of them; none where the rows are
    /// not those of `digest`.
    pub async fn search_candidates(
        &self,
        digest: &str,
        runs: &[String],
        limit: i64,
    ) -> Result<Option<Vec<i64>>, StoreError> {
        // each run as a string of its own: nothing in it is syntax then but a quote, which is doubled
        let runs: Vec<String> = runs
            .iter()
            .map(|run| format!("\"{}\"", run.replace('"', "\"\"")))
            .collect();
        // one statement, so that both are of one moment; and one row, because a row costs more than what is in it
        let row = sqlx::query(
            "SELECT (SELECT digest FROM search_state WHERE id = 1) AS digest,
                 (SELECT group_concat(rowid) FROM (SELECT rowid FROM search_text WHERE search_text MATCH $1 LIMIT $2)) AS ids",
        )
        .bind(runs.join(" AND "))
        .bind(limit)
        .fetch_one(&self.read)
        .await?;
        if row.try_get::<Option<String>, _>("digest")?.as_deref() != Some(digest) {
            return Ok(None);
        }
        let ids: Option<String> = row.try_get("ids")?;
        let ids = ids.unwrap_or_default();
        Ok(Some(
            ids.split(',').filter_map(|id| id.parse().ok()).collect(),
        ))
    }

    /// What SQLite finds wrong between the texts and their index.
    pub async fn check_search(&self) -> Result<Option<String>, StoreError> {
        let checked = sqlx::query(
            "INSERT INTO search_text (search_text, rank) VALUES ('integrity-check', 1)",
        )
        .execute(&self.write)
        .await;
        match checked {
            Ok(_) => Ok(None),
            Err(sqlx::Error::Database(error)) => Ok(Some(error.message().to_owned())),
            Err(error) => Err(error.into()),
        }
    }

    /// Makes the tables anew, with nothing in them, whatever is wrong with them.
    pub async fn clear_search(&self) -> Result<(), StoreError> {
        let mut transaction = self.write.begin_with("BEGIN IMMEDIATE").await?;
        let made: String =
            sqlx::query_scalar("SELECT sql FROM sqlite_master WHERE name = 'search_text'")
                .fetch_one(&mut *transaction)
                .await?;
        for statement in [
            "DROP TABLE search_text",
            "DELETE FROM search_document",
            "DELETE FROM search_state",
        ] {
            sqlx::query(statement).execute(&mut *transaction).await?;
        }
        // the migration's own words, read back
        sqlx::query(AssertSqlSafe(made))
            .execute(&mut *transaction)
            .await?;
        transaction.commit().await?;
        Ok(())
    }
}
