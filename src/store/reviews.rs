//! Rows of what is said of proposals: verdicts and comments.

use sqlx::{FromRow, Sqlite, Transaction};

use super::{Store, StoreError};

/// A verdict on a head.
#[derive(Debug, Clone, Default, PartialEq, Eq, FromRow)]
pub struct ReviewRow {
    /// The proposal's number.
    pub proposal: i64,
    /// From 1 in each proposal, in the order they came.
    pub id: i64,
    /// The actor.
    pub reviewer: String,
    /// Their groups then, a JSON list.
    pub groups: String,
    /// `approve` or `request-changes`.
    pub verdict: String,
    /// The commit that was judged.
    pub head: String,
    /// What they said with it.
    pub body: String,
    /// When, in milliseconds since 1970.
    pub at: i64,
}

/// A comment; the first of a thread has the place and whether it is resolved.
#[derive(Debug, Clone, Default, PartialEq, Eq, FromRow)]
pub struct CommentRow {
    /// The proposal's number.
    pub proposal: i64,
    /// From 1 in each proposal, in the order they came.
    pub id: i64,
    /// The id of the first of its thread; its own where it is the first.
    pub thread: i64,
    /// The actor.
    pub author: String,
    /// What they say.
    pub body: String,
    /// When, in milliseconds since 1970.
    pub at: i64,
    /// When it was last edited.
    pub edited_at: Option<i64>,
    /// The proposal's head then.
    pub head: String,
    /// The commit in which the place is.
    pub place_commit: Option<String>,
    /// The file.
    pub path: Option<String>,
    /// `old` or `new`: before or after the change.
    pub side: Option<String>,
    /// The line, from 1.
    pub line: Option<i64>,
    /// The example, for a place in what it renders to.
    pub example: Option<String>,
    /// The message of the render, from 0.
    pub message: Option<i64>,
    /// Who has resolved the thread.
    pub resolved_by: Option<String>,
    /// When.
    pub resolved_at: Option<i64>,
    /// The line of the render that it was made on, as JSON.
    pub quote: Option<String>,
}

/// The newest comment on a proposal, without what it says.
#[derive(Debug, Clone, PartialEq, Eq, FromRow)]
pub struct NewestComment {
    /// The proposal's number.
    pub proposal: i64,
    /// The actor.
    pub author: String,
    /// When, in milliseconds since 1970.
    pub at: i64,
    /// How many comments the proposal has.
    pub comments: i64,
}

/// Counts a write of a proposal.
async fn touch(
    transaction: &mut Transaction<'_, Sqlite>,
    proposal: i64,
    at: i64,
) -> Result<(), StoreError> {
    sqlx::query("UPDATE proposal SET version = version + 1, changed_at = $2 WHERE number = $1")
        .bind(proposal)
        .bind(at)
        .execute(&mut **transaction)
        .await?;
    Ok(())
}

impl Store {
    /// Appends a verdict, and says its id; the one of the row is not looked at.
    pub async fn add_review(&self, row: &ReviewRow) -> Result<i64, StoreError> {
        let mut transaction = self.write.begin_with("BEGIN IMMEDIATE").await?;
        let id: i64 = sqlx::query_scalar(
            "INSERT INTO proposal_review (proposal, id, reviewer, groups, verdict, head, body, at)
             VALUES ($1, (SELECT COALESCE(MAX(id), 0) + 1 FROM proposal_review WHERE proposal = $1), $2, $3, $4, $5, $6, $7)
             RETURNING id",
        )
        .bind(row.proposal)
        .bind(&row.reviewer)
        .bind(&row.groups)
        .bind(&row.verdict)
        .bind(&row.head)
        .bind(&row.body)
        .bind(row.at)
        .fetch_one(&mut *transaction)
        .await?;
        touch(&mut transaction, row.proposal, row.at).await?;
        transaction.commit().await?;
        Ok(id)
    }

    /// The verdicts on a proposal, oldest first.
    pub async fn reviews_of(&self, proposal: i64) -> Result<Vec<ReviewRow>, StoreError> {
        Ok(
            sqlx::query_as("SELECT * FROM proposal_review WHERE proposal = $1 ORDER BY id")
                .bind(proposal)
                .fetch_all(&self.read)
                .await?,
        )
    }

    /// Appends a comment, and says its id; the one of the row is not looked at, and a thread of 0 is a new one.
    pub async fn add_comment(&self, row: &CommentRow) -> Result<i64, StoreError> {
        let mut transaction = self.write.begin_with("BEGIN IMMEDIATE").await?;
        let id: i64 = sqlx::query_scalar(
            "SELECT COALESCE(MAX(id), 0) + 1 FROM proposal_comment WHERE proposal = $1",
        )
        .bind(row.proposal)
        .fetch_one(&mut *transaction)
        .await?;
        sqlx::query(
            "INSERT INTO proposal_comment (proposal, id, thread, author, body, at, head, place_commit, path, side, line,
                 example, message, quote)
             VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12, $13, $14)",
        )
        .bind(row.proposal)
        .bind(id)
        .bind(if row.thread == 0 { id } else { row.thread })
        .bind(&row.author)
        .bind(&row.body)
        .bind(row.at)
        .bind(&row.head)
        .bind(&row.place_commit)
        .bind(&row.path)
        .bind(&row.side)
        .bind(row.line)
        .bind(&row.example)
        .bind(row.message)
        .bind(&row.quote)
        .execute(&mut *transaction)
        .await?;
        touch(&mut transaction, row.proposal, row.at).await?;
        transaction.commit().await?;
        Ok(id)
    }

    /// The comments on a proposal, oldest first.
    pub async fn comments_of(&self, proposal: i64) -> Result<Vec<CommentRow>, StoreError> {
        Ok(
            sqlx::query_as("SELECT * FROM proposal_comment WHERE proposal = $1 ORDER BY id")
                .bind(proposal)
                .fetch_all(&self.read)
                .await?,
        )
    }

    /// How many comments a proposal has.
    pub async fn comment_count(&self, proposal: i64) -> Result<i64, StoreError> {
        Ok(
            sqlx::query_scalar("SELECT COUNT(*) FROM proposal_comment WHERE proposal = $1")
                .bind(proposal)
                .fetch_one(&self.read)
                .await?,
        )
    }

    /// The newest comment on each of the proposals in a state that has any, and how many there are; no text is read.
    pub async fn newest_comments(&self, state: &str) -> Result<Vec<NewestComment>, StoreError> {
        Ok(sqlx::query_as(
            "SELECT c.proposal, c.author, c.at, n.comments FROM proposal_comment c JOIN (
                 SELECT proposal, COUNT(*) AS comments, MAX(id) AS newest FROM proposal_comment
                 WHERE proposal IN (SELECT number FROM proposal WHERE state = $1) GROUP BY proposal
             ) n ON c.proposal = n.proposal AND c.id = n.newest",
        )
        .bind(state)
        .fetch_all(&self.read)
        .await?)
    }

    /// Gives a comment another text.
    pub async fn edit_comment(
        &self,
        proposal: i64,
        id: i64,
        body: &str,
        at: i64,
    ) -> Result<(), StoreError> {
        let mut transaction = self.write.begin_with("BEGIN IMMEDIATE").await?;
        sqlx::query(
            "UPDATE proposal_comment SET body = $3, edited_at = $4 WHERE proposal = $1 AND id = $2",
        )
        .bind(proposal)
        .bind(id)
        .bind(body)
        .bind(at)
        .execute(&mut *transaction)
        .await?;
        touch(&mut transaction, proposal, at).await?;
        transaction.commit().await?;
        Ok(())
    }

    /// Resolves a thread, or opens it again where nobody is named.
    pub async fn resolve_thread(
        &self,
        proposal: i64,
        thread: i64,
        by: Option<&str>,
        at: i64,
    ) -> Result<(), StoreError> {
        let mut transaction = self.write.begin_with("BEGIN IMMEDIATE").await?;
        sqlx::query(
            "UPDATE proposal_comment SET resolved_by = $3, resolved_at = $4 WHERE proposal = $1 AND id = $2",
        )
        .bind(proposal)
        .bind(thread)
        .bind(by)
        .bind(by.map(|_| at))
        .execute(&mut *transaction)
        .await?;
        touch(&mut transaction, proposal, at).await?;
        transaction.commit().await?;
        Ok(())
    }
}
