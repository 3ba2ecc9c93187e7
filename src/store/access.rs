//! Rows of people, groups, grants, tokens and sessions.

use sqlx::FromRow;

use super::{Store, StoreError};

/// A person or a service.
#[derive(Debug, Clone, PartialEq, Eq, FromRow)]
pub struct PrincipalRow {
    /// The name in records.
    pub name: String,
    /// `person` or `service`.
    pub kind: String,
    /// Where mail reaches them; what their commits carry.
    pub email: Option<String>,
    /// Whom an OpenID provider calls this: its address, a space, and its name for them.
    pub subject: Option<String>,
    /// Argon2id, as a PHC string.
    pub password: Option<String>,
    /// Whether nothing lets them in.
    pub disabled: bool,
    /// When it was made, in milliseconds since 1970.
    pub created_at: i64,
    /// Who made it.
    pub created_by: String,
}

/// Who is in which group.
#[derive(Debug, Clone, PartialEq, Eq, FromRow)]
pub struct MembershipRow {
    /// The group.
    pub group_name: String,
    /// The member.
    pub principal: String,
    /// `here`, or `oidc` where the provider says so.
    pub source: String,
}

/// A role somewhere.
#[derive(Debug, Clone, PartialEq, Eq, FromRow)]
pub struct GrantRow {
    /// A principal's name, `group:<name>`, or `everyone`.
    pub who: String,
    /// The role.
    pub role: String,
    /// Where.
    pub pattern: String,
    /// When it was given, in milliseconds since 1970.
    pub created_at: i64,
    /// Who gave it.
    pub created_by: String,
}

/// A token, without what it is.
#[derive(Debug, Clone, PartialEq, Eq, FromRow)]
pub struct TokenRow {
    /// The part of it that may be shown.
    pub prefix: String,
    /// The SHA-256 of the whole.
    pub hash: Vec<u8>,
    /// Whose it is.
    pub principal: String,
    /// What it is for.
    pub label: String,
    /// What it may do at most.
    pub role: Option<String>,
    /// Where, a pattern a line.
    pub patterns: Option<String>,
    /// When it was made, in milliseconds since 1970.
    pub created_at: i64,
    /// Who made it.
    pub created_by: String,
    /// When it ends, in milliseconds since 1970.
    pub expires_at: Option<i64>,
    /// When it was revoked, in milliseconds since 1970.
    pub revoked_at: Option<i64>,
    /// When it was last used, in milliseconds since 1970; up to a minute late.
    pub used_at: Option<i64>,
}

/// A browser that has signed in.
#[derive(Debug, Clone, PartialEq, Eq, FromRow)]
pub struct SessionRow {
    /// What a list shows of it.
    pub id: String,
    /// The SHA-256 of its cookie.
    pub hash: Vec<u8>,
    /// Who has signed in.
    pub principal: String,
    /// The provider's own name of the session.
    pub provider_session: Option<String>,
    /// The browser, as it calls itself.
    pub client: Option<String>,
    /// Where it signed in from.
    pub address: Option<String>,
    /// When, in milliseconds since 1970.
    pub created_at: i64,
    /// When it was last used, in milliseconds since 1970; up to a minute late.
    pub used_at: i64,
    /// When it ends, in milliseconds since 1970.
    pub expires_at: i64,
}

/// Everything that decides who gets in.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct AccessRows {
    /// By name.
    pub principals: Vec<PrincipalRow>,
    /// By group and member.
    pub memberships: Vec<MembershipRow>,
    /// By who, role and pattern.
    pub grants: Vec<GrantRow>,
    /// By prefix; revoked ones too.
    pub tokens: Vec<TokenRow>,
    /// By when they signed in.
    pub sessions: Vec<SessionRow>,
}

impl Store {
    /// Everything that decides who gets in, as of one moment.
    pub async fn access(&self) -> Result<AccessRows, StoreError> {
        let mut transaction = self.read.begin().await?;
        Ok(AccessRows {
            principals: sqlx::query_as("SELECT * FROM principal ORDER BY name")
                .fetch_all(&mut *transaction)
                .await?,
            memberships: sqlx::query_as(
                "SELECT * FROM membership ORDER BY group_name, principal, source",
            )
            .fetch_all(&mut *transaction)
            .await?,
            grants: sqlx::query_as("SELECT * FROM access_grant ORDER BY who, role, pattern")
                .fetch_all(&mut *transaction)
                .await?,
            tokens: sqlx::query_as("SELECT * FROM token ORDER BY created_at, prefix")
                .fetch_all(&mut *transaction)
                .await?,
            sessions: sqlx::query_as("SELECT * FROM session ORDER BY created_at, id")
                .fetch_all(&mut *transaction)
                .await?,
        })
    }

    /// Writes a principal; what was there of that name is replaced.
    pub async fn put_principal(&self, row: &PrincipalRow) -> Result<(), StoreError> {
        sqlx::query(
            "INSERT INTO principal (name, kind, email, subject, password, disabled, created_at, created_by)
             VALUES ($1, $2, $3, $4, $5, $6, $7, $8)
             ON CONFLICT (name) DO UPDATE SET kind = excluded.kind, email = excluded.email, subject = excluded.subject,
                 password = excluded.password, disabled = excluded.disabled",
        )
        .bind(&row.name)
        .bind(&row.kind)
        .bind(&row.email)
        .bind(&row.subject)
        .bind(&row.password)
        .bind(row.disabled)
        .bind(row.created_at)
        .bind(&row.created_by)
        .execute(&self.write)
        .await?;
        Ok(())
    }

    /// Puts somebody into exactly these groups, as far as `source` says.
    pub async fn put_memberships(
        &self,
        principal: &str,
        groups: &[String],
        source: &str,
    ) -> Result<(), StoreError> {
        let mut transaction = self.write.begin_with("BEGIN IMMEDIATE").await?;
        sqlx::query("DELETE FROM membership WHERE principal = $1 AND source = $2")
            .bind(principal)
            .bind(source)
            .execute(&mut *transaction)
            .await?;
        for group in groups {
            sqlx::query(
                "INSERT INTO membership (group_name, principal, source) VALUES ($1, $2, $3) ON CONFLICT DO NOTHING",
            )
            .bind(group)
            .bind(principal)
            .bind(source)
            .execute(&mut *transaction)
            .await?;
        }
        transaction.commit().await?;
        Ok(())
    }

    /// Gives a role; whether it was not given before.
    pub async fn put_grant(&self, row: &GrantRow) -> Result<bool, StoreError> {
        let done = sqlx::query(
            "INSERT INTO access_grant (who, role, pattern, created_at, created_by) VALUES ($1, $2, $3, $4, $5)
             ON CONFLICT DO NOTHING",
        )
        .bind(&row.who)
        .bind(&row.role)
        .bind(&row.pattern)
        .bind(row.created_at)
        .bind(&row.created_by)
        .execute(&self.write)
        .await?;
        Ok(done.rows_affected() > 0)
    }

    /// Takes a role away; whether it was there.
    pub async fn delete_grant(
        &self,
        who: &str,
        role: &str,
        pattern: &str,
    ) -> Result<bool, StoreError> {
        let done =
            sqlx::query("DELETE FROM access_grant WHERE who = $1 AND role = $2 AND pattern = $3")
                .bind(who)
                .bind(role)
                .bind(pattern)
                .execute(&self.write)
                .await?;
        Ok(done.rows_affected() > 0)
    }

    /// Writes a new token.
    pub async fn put_token(&self, row: &TokenRow) -> Result<(), StoreError> {
        sqlx::query(
            "INSERT INTO token (prefix, hash, principal, label, role, patterns, created_at, created_by, expires_at)
             VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9)",
        )
        .bind(&row.prefix)
        .bind(&row.hash)
        .bind(&row.principal)
        .bind(&row.label)
        .bind(&row.role)
        .bind(&row.patterns)
        .bind(row.created_at)
        .bind(&row.created_by)
        .bind(row.expires_at)
        .execute(&self.write)
        .await?;
        Ok(())
    }

    /// Revokes a token; whether there was one of that prefix that was not revoked.
    pub async fn revoke_token(&self, prefix: &str, now_ms: i64) -> Result<bool, StoreError> {
        let done = sqlx::query(
            "UPDATE token SET revoked_at = $2 WHERE prefix = $1 AND revoked_at IS NULL",
        )
        .bind(prefix)
        .bind(now_ms)
        .execute(&self.write)
        .await?;
        Ok(done.rows_affected() > 0)
    }

    /// Writes a new session, and forgets those that have ended.
    pub async fn put_session(&self, row: &SessionRow) -> Result<(), StoreError> {
        let mut transaction = self.write.begin_with("BEGIN IMMEDIATE").await?;
        sqlx::query("DELETE FROM session WHERE expires_at <= $1")
            .bind(row.created_at)
            .execute(&mut *transaction)
            .await?;
        sqlx::query(
            "INSERT INTO session (id, hash, principal, provider_session, client, address, created_at, used_at, expires_at)
             VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9)",
        )
        .bind(&row.id)
        .bind(&row.hash)
        .bind(&row.principal)
        .bind(&row.provider_session)
        .bind(&row.client)
        .bind(&row.address)
        .bind(row.created_at)
        .bind(row.used_at)
        .bind(row.expires_at)
        .execute(&mut *transaction)
        .await?;
        transaction.commit().await?;
        Ok(())
    }

    /// Ends a session; whether there was one.
    pub async fn delete_session(&self, id: &str) -> Result<bool, StoreError> {
        let done = sqlx::query("DELETE FROM session WHERE id = $1")
            .bind(id)
            .execute(&self.write)
            .await?;
        Ok(done.rows_affected() > 0)
    }

    /// Notes when tokens, by prefix, and sessions, by id, were last used, in milliseconds since 1970.
    pub async fn credentials_used(
        &self,
        tokens: &[(String, i64)],
        sessions: &[(String, i64)],
    ) -> Result<(), StoreError> {
        let mut transaction = self.write.begin_with("BEGIN IMMEDIATE").await?;
        for (prefix, at) in tokens {
            sqlx::query("UPDATE token SET used_at = $2 WHERE prefix = $1")
                .bind(prefix)
                .bind(at)
                .execute(&mut *transaction)
                .await?;
        }
        for (id, at) in sessions {
            sqlx::query("UPDATE session SET used_at = $2 WHERE id = $1")
                .bind(id)
                .bind(at)
                .execute(&mut *transaction)
                .await?;
        }
        transaction.commit().await?;
        Ok(())
    }
}
