//! Rows of versions: what git says, kept so that a start is fast.

use sqlx::{FromRow, QueryBuilder, Sqlite};

use super::{Store, StoreError};

/// Rows written by one statement: SQLite binds at most 32,766 values.
const AT_ONCE: usize = 4000;

const STATE: &str = "SELECT rule, tip FROM version_state WHERE id = 1";

/// Where the rows are at.
#[derive(Debug, Clone, PartialEq, Eq, FromRow)]
pub struct VersionState {
    /// Which rules the numbers follow.
    pub rule: i64,
    /// The commit they reach; empty while they are being written.
    pub tip: String,
}

/// A commit.
#[derive(Debug, Clone, PartialEq, Eq, FromRow)]
pub struct CommitRow {
    /// Its id.
    pub commit_id: String,
    /// When it was committed, in seconds since 1970.
    pub seconds: i64,
    /// The author's name.
    pub author: String,
    /// The first line of its message.
    pub subject: String,
}

/// A name that has versions.
#[derive(Debug, Clone, PartialEq, Eq, FromRow)]
pub struct NameRow {
    /// The name.
    pub name: String,
    /// What its next state is compared with.
    pub last: Option<String>,
}

/// A version.
#[derive(Debug, Clone, PartialEq, Eq, FromRow)]
pub struct VersionRow {
    /// The prompt's name.
    pub name: String,
    /// From 1.
    pub number: i64,
    /// The commit that made it.
    pub commit_id: String,
    /// Where the prompt was.
    pub path: String,
    /// A hash over what it is made of.
    pub content: String,
}

/// A commit at which the labels changed.
#[derive(Debug, Clone, PartialEq, Eq, FromRow)]
pub struct LabelRow {
    /// From 0, in the order of the history.
    pub position: i64,
    /// The commit.
    pub commit_id: String,
    /// The blob of `labels.toml`.
    pub blob: Option<String>,
}

/// Rows of all kinds.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct VersionRows {
    /// Commits.
    pub commits: Vec<CommitRow>,
    /// Names.
    pub names: Vec<NameRow>,
    /// Versions, by name and number.
    pub versions: Vec<VersionRow>,
    /// Changes of the labels, in order.
    pub labels: Vec<LabelRow>,
}

impl Store {
    /// Where the rows are at; none before the first were written.
    pub async fn version_state(&self) -> Result<Option<VersionState>, StoreError> {
        Ok(sqlx::query_as(STATE).fetch_optional(&self.read).await?)
    }

    /// Where the rows are at, and every row, as they are at one moment.
    pub async fn version_rows(&self) -> Result<(Option<VersionState>, VersionRows), StoreError> {
        let mut transaction = self.read.begin().await?;
        let state = sqlx::query_as(STATE)
            .fetch_optional(&mut *transaction)
            .await?;
        let rows = VersionRows {
            commits: sqlx::query_as(
                "SELECT commit_id, seconds, author, subject FROM version_commit ORDER BY commit_id",
            )
            .fetch_all(&mut *transaction)
            .await?,
            names: sqlx::query_as("SELECT name, last FROM version_name ORDER BY name")
                .fetch_all(&mut *transaction)
                .await?,
            versions: sqlx::query_as(
                "SELECT name, number, commit_id, path, content FROM version ORDER BY name, number",
            )
            .fetch_all(&mut *transaction)
            .await?,
            labels: sqlx::query_as(
                "SELECT position, commit_id, blob FROM label_change ORDER BY position",
            )
            .fetch_all(&mut *transaction)
            .await?,
        };
        transaction.commit().await?;
        Ok((state, rows))
    }

    /// Waits until nobody else writes versions; to be held over what is read to write them.
    pub async fn writing_versions(&self) -> tokio::sync::MutexGuard<'_, ()> {
        self.versions.lock().await
    }

    /// Removes every row, before others are written.
    pub async fn clear_versions(&self) -> Result<(), StoreError> {
        let mut transaction = self.write.begin_with("BEGIN IMMEDIATE").await?;
        for statement in [
            "DELETE FROM version_state",
            "DELETE FROM version",
            "DELETE FROM version_name",
            "DELETE FROM label_change",
            "DELETE FROM version_commit",
        ] {
            sqlx::query(statement).execute(&mut *transaction).await?;
        }
        transaction.commit().await?;
        Ok(())
    }

    /// Adds rows, or puts them in the place of those that have their keys, and says where the rows are at then; in one
    /// transaction. False, and nothing is written, where they are not at `expected`.
    pub async fn put_versions(
        &self,
        rows: &VersionRows,
        expected: Option<&VersionState>,
        state: &VersionState,
    ) -> Result<bool, StoreError> {
        let mut transaction = self.write.begin_with("BEGIN IMMEDIATE").await?;
        let at: Option<VersionState> = sqlx::query_as(STATE)
            .fetch_optional(&mut *transaction)
            .await?;
        if at.as_ref() != expected {
            transaction.rollback().await?;
            return Ok(false);
        }
        for share in rows.commits.chunks(AT_ONCE) {
            let mut query = QueryBuilder::<Sqlite>::new(
                "INSERT INTO version_commit (commit_id, seconds, author, subject) ",
            );
            query.push_values(share, |mut values, row| {
                values
                    .push_bind(&row.commit_id)
                    .push_bind(row.seconds)
                    .push_bind(&row.author)
                    .push_bind(&row.subject);
            });
            query.push(
                " ON CONFLICT (commit_id) DO UPDATE SET seconds = excluded.seconds, author = excluded.author,
                  subject = excluded.subject",
            );
            query.build().execute(&mut *transaction).await?;
        }
        for share in rows.names.chunks(AT_ONCE) {
            let mut query = QueryBuilder::<Sqlite>::new("INSERT INTO version_name (name, last) ");
            query.push_values(share, |mut values, row| {
                values.push_bind(&row.name).push_bind(&row.last);
            });
            query.push(" ON CONFLICT (name) DO UPDATE SET last = excluded.last");
            query.build().execute(&mut *transaction).await?;
        }
        for share in rows.versions.chunks(AT_ONCE) {
            let mut query = QueryBuilder::<Sqlite>::new(
                "INSERT INTO version (name, number, commit_id, path, content) ",
            );
            query.push_values(share, |mut values, row| {
                values
                    .push_bind(&row.name)
                    .push_bind(row.number)
                    .push_bind(&row.commit_id)
                    .push_bind(&row.path)
                    .push_bind(&row.content);
            });
            query.push(
                " ON CONFLICT (name, number) DO UPDATE SET commit_id = excluded.commit_id, path = excluded.path,
                  content = excluded.content",
            );
            query.build().execute(&mut *transaction).await?;
        }
        for share in rows.labels.chunks(AT_ONCE) {
            let mut query = QueryBuilder::<Sqlite>::new(
                "INSERT INTO label_change (position, commit_id, blob) ",
            );
            query.push_values(share, |mut values, row| {
                values
                    .push_bind(row.position)
                    .push_bind(&row.commit_id)
                    .push_bind(&row.blob);
            });
            query.push(
                " ON CONFLICT (position) DO UPDATE SET commit_id = excluded.commit_id, blob = excluded.blob",
            );
            query.build().execute(&mut *transaction).await?;
        }
        sqlx::query(
            "INSERT INTO version_state (id, rule, tip) VALUES (1, $1, $2)
             ON CONFLICT (id) DO UPDATE SET rule = excluded.rule, tip = excluded.tip",
        )
        .bind(state.rule)
        .bind(&state.tip)
        .execute(&mut *transaction)
        .await?;
        transaction.commit().await?;
        Ok(true)
    }
}
