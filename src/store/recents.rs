//! Rows of values that colleagues used, for arguments that offer them.

use sqlx::{FromRow, Sqlite, Transaction};

use super::{Store, StoreError};

/// A value that was used.
#[derive(Debug, Clone, PartialEq, FromRow)]
pub struct RecentRow {
    /// The prompt.
    pub prompt: String,
    /// Its argument.
    pub argument: String,
    /// The value.
    pub value: String,
    /// How much it was used, as of `at`.
    pub weight: f64,
    /// When it was last used, in milliseconds since 1970.
    pub at: i64,
}

pub(super) async fn put(
    transaction: &mut Transaction<'_, Sqlite>,
    rows: &[RecentRow],
) -> Result<(), StoreError> {
    for row in rows {
        sqlx::query(
            "INSERT INTO recent_value (prompt, argument, value, weight, at) VALUES ($1, $2, $3, $4, $5)
             ON CONFLICT (prompt, argument, value) DO UPDATE SET weight = excluded.weight, at = excluded.at",
        )
        .bind(&row.prompt)
        .bind(&row.argument)
        .bind(&row.value)
        .bind(row.weight)
        .bind(row.at)
        .execute(&mut **transaction)
        .await?;
    }
    Ok(())
}

pub(super) async fn remove(
    transaction: &mut Transaction<'_, Sqlite>,
    rows: &[(String, String, String)],
) -> Result<(), StoreError> {
    for (prompt, argument, value) in rows {
        sqlx::query("DELETE FROM recent_value WHERE prompt = $1 AND argument = $2 AND value = $3")
            .bind(prompt)
            .bind(argument)
            .bind(value)
            .execute(&mut **transaction)
            .await?;
    }
    Ok(())
}

impl Store {
    /// Every value, by prompt and argument.
    pub async fn recent_values(&self) -> Result<Vec<RecentRow>, StoreError> {
        Ok(
            sqlx::query_as("SELECT * FROM recent_value ORDER BY prompt, argument, value")
                .fetch_all(&self.read)
                .await?,
        )
    }

    /// Removes the values of every argument, of a prompt's arguments, or of one argument; from the file's pages too.
    /// Returns how many.
    pub async fn erase_values(
        &self,
        prompt: Option<&str>,
        argument: Option<&str>,
    ) -> Result<u64, StoreError> {
        let erased = sqlx::query(
            "DELETE FROM recent_value WHERE ($1 IS NULL OR prompt = $1) AND ($2 IS NULL OR argument = $2)",
        )
        .bind(prompt)
        .bind(argument)
        .execute(&self.write)
        .await?
        .rows_affected();
        // the log still has the pages as they were
        self.checkpoint().await?;
        Ok(erased)
    }
}
