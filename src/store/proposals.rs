//! Rows of proposals and of their revisions.

use sqlx::FromRow;

use super::{Store, StoreError};

/// A proposal.
#[derive(Debug, Clone, Default, PartialEq, Eq, FromRow)]
pub struct ProposalRow {
    /// Its number, from 1.
    pub number: i64,
    /// The branch it is for.
    pub target: String,
    /// The name its author gave it, by which a second push finds it.
    pub topic: Option<String>,
    /// What it is about, one line.
    pub title: String,
    /// The actor who opened it.
    pub author: String,
    /// `open`, `merged` or `closed`.
    pub state: String,
    /// The commit that is proposed.
    pub head: String,
    /// How often something was pushed to it.
    pub revision: i64,
    /// When it was opened, in milliseconds since 1970.
    pub opened_at: i64,
    /// When it last changed, in milliseconds since 1970.
    pub changed_at: i64,
    /// What its author says of it beside the title.
    pub body: String,
    /// Files that it touches, a JSON list, sorted; none until they are looked up.
    pub paths: Option<String>,
    /// How often anything of it was written, from 1.
    pub version: i64,
    /// The commit of main that merged it; none where it came to main in another way, or has not.
    pub merge_commit: Option<String>,
    /// Who merged or closed it.
    pub ended_by: Option<String>,
    /// When, in milliseconds since 1970.
    pub ended_at: Option<i64>,
}

impl ProposalRow {
    /// The files that it touches, as they are stored. Where that is not known or cannot be read, the empty path, which is
    /// the whole library: only who may do something everywhere may do it then.
    pub fn touches(&self) -> Vec<String> {
        let stored = self.paths.as_deref();
        stored
            .and_then(|text| serde_json::from_str(text).ok())
            .unwrap_or_else(|| vec![String::new()])
    }
}

/// One push to a proposal.
#[derive(Debug, Clone, PartialEq, Eq, FromRow)]
pub struct RevisionRow {
    /// From 1.
    pub revision: i64,
    /// The commit that was pushed.
    pub head: String,
    /// The actor who pushed it.
    pub pushed_by: String,
    /// When, in milliseconds since 1970.
    pub pushed_at: i64,
}

impl Store {
    /// Writes a proposal and its newest revision, both as the row says; what was there before is replaced.
    pub async fn put_proposal(&self, row: &ProposalRow, pushed_by: &str) -> Result<(), StoreError> {
        let mut transaction = self.write.begin_with("BEGIN IMMEDIATE").await?;
        sqlx::query(
            "INSERT INTO proposal (number, target, topic, title, author, state, head, revision, opened_at, changed_at,
                 body, paths, merge_commit, ended_by, ended_at)
             VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12, $13, $14, $15)
             ON CONFLICT (number) DO UPDATE SET topic = excluded.topic, title = excluded.title, state = excluded.state,
                 head = excluded.head, revision = excluded.revision, changed_at = excluded.changed_at,
                 body = excluded.body, paths = excluded.paths, merge_commit = excluded.merge_commit,
                 ended_by = excluded.ended_by, ended_at = excluded.ended_at, version = version + 1",
        )
        .bind(row.number)
        .bind(&row.target)
        .bind(&row.topic)
        .bind(&row.title)
        .bind(&row.author)
        .bind(&row.state)
        .bind(&row.head)
        .bind(row.revision)
        .bind(row.opened_at)
        .bind(row.changed_at)
        .bind(&row.body)
        .bind(&row.paths)
        .bind(&row.merge_commit)
        .bind(&row.ended_by)
        .bind(row.ended_at)
        .execute(&mut *transaction)
        .await?;
        sqlx::query(
            "INSERT INTO proposal_revision (proposal, revision, head, pushed_by, pushed_at)
             VALUES ($1, $2, $3, $4, $5) ON CONFLICT (proposal, revision) DO NOTHING",
        )
        .bind(row.number)
        .bind(row.revision)
        .bind(&row.head)
        .bind(pushed_by)
        .bind(row.changed_at)
        .execute(&mut *transaction)
        .await?;
        transaction.commit().await?;
        Ok(())
    }

    /// Every proposal, by number.
    pub async fn proposals(&self) -> Result<Vec<ProposalRow>, StoreError> {
        Ok(sqlx::query_as("SELECT * FROM proposal ORDER BY number")
            .fetch_all(&self.read)
            .await?)
    }

    /// The proposals in a state, by number.
    pub async fn proposals_in(&self, state: &str) -> Result<Vec<ProposalRow>, StoreError> {
        Ok(
            sqlx::query_as("SELECT * FROM proposal WHERE state = $1 ORDER BY number")
                .bind(state)
                .fetch_all(&self.read)
                .await?,
        )
    }

    /// Proposals of a state, or of all, newest first: those below a number, at most so many.
    pub async fn proposals_before(
        &self,
        state: Option<&str>,
        before: Option<i64>,
        most: i64,
    ) -> Result<Vec<ProposalRow>, StoreError> {
        Ok(sqlx::query_as(
            "SELECT * FROM proposal WHERE ($1 IS NULL OR state = $1) AND ($2 IS NULL OR number < $2)
             ORDER BY number DESC LIMIT $3",
        )
        .bind(state)
        .bind(before)
        .bind(most)
        .fetch_all(&self.read)
        .await?)
    }

    /// One proposal.
    pub async fn proposal(&self, number: i64) -> Result<Option<ProposalRow>, StoreError> {
        Ok(sqlx::query_as("SELECT * FROM proposal WHERE number = $1")
            .bind(number)
            .fetch_optional(&self.read)
            .await?)
    }

    /// The pushes to a proposal, oldest first.
    pub async fn revisions_of(&self, number: i64) -> Result<Vec<RevisionRow>, StoreError> {
        Ok(sqlx::query_as(
            "SELECT revision, head, pushed_by, pushed_at FROM proposal_revision WHERE proposal = $1 ORDER BY revision",
        )
        .bind(number)
        .fetch_all(&self.read)
        .await?)
    }

    /// The highest number any proposal has; 0 where there is none.
    pub async fn last_proposal(&self) -> Result<i64, StoreError> {
        Ok(
            sqlx::query_scalar("SELECT COALESCE(MAX(number), 0) FROM proposal")
                .fetch_one(&self.read)
                .await?,
        )
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_not_known_to_be_touched_may_be_anything() {
        let touches = |paths: Option<&str>| {
            let row = ProposalRow {
                paths: paths.map(str::to_owned),
                ..ProposalRow::default()
            };
            row.touches()
        };
        assert_eq!(touches(None), [""]);
        assert_eq!(touches(Some("")), [""]);
        assert_eq!(touches(Some("{")), [""]);
        assert_eq!(touches(Some("[]")), Vec::<String>::new());
        assert_eq!(touches(Some("[\"prompts/x.md\"]")), ["prompts/x.md"]);
    }
}
