//! Who may do what, changed: one place for the API, the pages and the sign-in, so that each change keeps the same rules and
//! leaves its row in the audit.

use std::sync::Arc;

use axum::http::StatusCode;
use serde::Serialize;
use utoipa::ToSchema;

use super::sign_in::SignIn;
use super::tags::Of;
use crate::access::people::{name, within};
use crate::access::{Access, Action, By, Credential, EVERYONE, Pattern, Role, Scope, secret};
use crate::api::Refusal;
use crate::clock::unix_millis;
use crate::records::{Records, calendar};
use crate::store::{AccessRows, AuditEntry, GrantRow, PrincipalRow, Store, TokenRow};

pub(super) const DAY_MS: i64 = 86_400_000;
/// Longest time of a token of a person, in days.
pub const MOST_DAYS: u32 = 366;
/// Longest note of a token, in characters.
const MAX_LABEL: usize = 100;
/// Tokens of one owner that let somebody in at a time.
const MAX_TOKENS: usize = 100;

/// Changes who may do what.
#[derive(Debug, Clone)]
pub struct Desk {
    pub(super) access: Arc<Access>,
    records: Option<Arc<Records>>,
    pub(super) sign_in: Arc<SignIn>,
    /// Days after which a token ends that says nothing else.
    token_days: u32,
    /// What the caller has seen of what they change, where they say so.
    pub(super) seen: Option<(Of, String)>,
}

/// A token that is asked for.
#[derive(Debug, Clone, Default)]
pub struct TokenAsk {
    /// Whose it will be; none for who asks.
    pub owner: Option<String>,
    /// What it is for.
    pub label: String,
    /// The most it may do.
    pub role: Option<String>,
    /// Where; nowhere named is everywhere.
    pub paths: Vec<String>,
    /// When it ends.
    pub ends: Ends,
}

/// When a token ends.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum Ends {
    /// As the settings say.
    #[default]
    Usual,
    /// After so many days.
    After(u32),
    /// Not by itself.
    Never,
}

/// A token just made; the only time that it is shown.
#[derive(Debug, Serialize, ToSchema)]
#[schema(as = TokenMade)]
pub struct Made {
    /// The token.
    pub token: String,
    /// The part of it that lists show.
    pub prefix: String,
    /// Whose it is.
    pub owner: String,
    /// When it ends; none for never.
    pub expires: Option<String>,
    /// What to know about it besides.
    pub notes: Vec<String>,
}

/// A person or a service that is added.
#[derive(Debug, Clone, Default)]
pub struct Newcomer {
    /// The name in records.
    pub name: String,
    /// Whether it is a program.
    pub service: bool,
    /// What their commits carry.
    pub email: Option<String>,
    /// Whether they may do everything.
    pub admin: bool,
}

#[allow(clippy::needless_pass_by_value, reason = "as map_err gives it")]
fn wrong(error: impl ToString) -> Refusal {
    Refusal::new(StatusCode::UNPROCESSABLE_ENTITY, error.to_string())
}

fn conflict(detail: impl Into<String>) -> Refusal {
    Refusal::new(StatusCode::CONFLICT, detail)
}

fn absent(detail: impl Into<String>) -> Refusal {
    Refusal::new(StatusCode::NOT_FOUND, detail)
}

/// What only an admin does.
pub(super) fn admin(by: &By) -> Result<(), Refusal> {
    if by.actor.may(Action::Administer, "") {
        return Ok(());
    }
    Err(Refusal::new(
        StatusCode::FORBIDDEN,
        "only an admin changes who may do what; ask one of this server",
    ))
}

/// An address of mail, as far as a commit needs it to be one.
fn email(text: &str) -> Result<String, Refusal> {
    let plain = |c: char| !c.is_control() && !c.is_whitespace() && !matches!(c, '<' | '>');
    if text.len() <= 254 && text.contains('@') && text.chars().all(plain) {
        return Ok(text.to_owned());
    }
    let shown: String = text.chars().take(80).collect();
    Err(wrong(format!("`{shown}` is no address of mail")))
}

fn role(text: &str) -> Result<Role, Refusal> {
    Role::parse(text).ok_or_else(|| {
        let shown: String = text.chars().take(40).collect();
        let all: Vec<&str> = Role::ALL.iter().map(|role| role.as_str()).collect();
        wrong(format!(
            "`{shown}` is no role; there are {}",
            all.join(", ")
        ))
    })
}

impl Desk {
    /// Changes what `access` knows; where nothing is recorded, nothing can be changed.
    pub fn new(
        access: Arc<Access>,
        records: Option<Arc<Records>>,
        sign_in: Arc<SignIn>,
        token_days: u32,
    ) -> Self {
        Self {
            access,
            records,
            sign_in,
            token_days,
            seen: None,
        }
    }

    /// Who may do what, in memory.
    pub fn access(&self) -> &Arc<Access> {
        &self.access
    }

    pub(super) fn store(&self) -> Result<&Store, Refusal> {
        let Some(records) = &self.records else {
            return Err(conflict(
                "a work tree is served, and nobody is known there; serve a data directory",
            ));
        };
        records.store().map_err(|error| {
            Refusal::new(
                StatusCode::SERVICE_UNAVAILABLE,
                format!("there is no database: {error}"),
            )
        })
    }

    /// Everything that decides who gets in, as the database has it.
    pub async fn rows(&self) -> Result<AccessRows, Refusal> {
        Ok(self.store()?.access().await?)
    }

    /// Whether what has to be audited may be done now.
    pub(super) fn ready(&self) -> Result<(), Refusal> {
        match self.records.as_ref().map(|records| records.audit().ready()) {
            Some(Err(why)) => Err(Refusal::new(StatusCode::SERVICE_UNAVAILABLE, why)),
            _ => Ok(()),
        }
    }

    /// Lets what was written be in force, and notes it.
    pub(super) async fn done(
        &self,
        by: &By,
        action: &str,
        subject: &str,
        detail: Option<String>,
    ) -> Result<(), Refusal> {
        let in_force = self.access.reload().await;
        let Some(records) = &self.records else {
            in_force?;
            return Ok(());
        };
        let entry = AuditEntry {
            at: unix_millis(),
            actor: by.actor.name.to_string(),
            origin: by.peer.clone(),
            action: action.to_owned(),
            subject: Some(subject.to_owned()),
            detail,
            ..AuditEntry::default()
        };
        if let Err(not_yet) = records.audit().append(entry).await {
            tracing::warn!(%not_yet, action, subject, "a change of access waits for its row in the audit");
        }
        in_force?;
        Ok(())
    }

    /// Refuses what would leave nobody who may change anything.
    fn keeps_an_admin(before: &AccessRows, after: &AccessRows) -> Result<(), Refusal> {
        if !before.admins().is_empty() && after.admins().is_empty() {
            return Err(conflict(
                "this would leave no person who administers the server; make somebody else an admin first \
                 (cuebook access grant NAME admin)",
            ));
        }
        Ok(())
    }

    /// Adds a person or a service; gives the name as it is kept.
    pub(super) async fn add_one(&self, by: &By, newcomer: &Newcomer) -> Result<String, Refusal> {
        admin(by)?;
        self.ready()?;
        let _changing = self.access.changing().await;
        self.add_now(by, newcomer, None, None).await
    }

    /// The same for who holds the lock already, with whom an OpenID provider calls this, and a hashed password.
    pub(super) async fn add_now(
        &self,
        by: &By,
        newcomer: &Newcomer,
        subject: Option<String>,
        password: Option<String>,
    ) -> Result<String, Refusal> {
        let store = self.store()?;
        let name = name(&newcomer.name).map_err(wrong)?;
        let rows = store.access().await?;
        self.unchanged(by, &rows)?;
        if let Some(known) = rows.like(&name) {
            return Err(conflict(format!(
                "{} is known already, as a {}; choose another name",
                known.name, known.kind
            )));
        }
        if newcomer.service && newcomer.admin {
            return Err(wrong(
                "a service is made without a role; give it one with cuebook access grant",
            ));
        }
        let row = PrincipalRow {
            name: name.clone(),
            kind: if newcomer.service {
                "service"
            } else {
                "person"
            }
            .to_owned(),
            email: newcomer.email.as_deref().map(email).transpose()?,
            subject,
            password,
            disabled: false,
            created_at: unix_millis(),
            created_by: by.actor.name.to_string(),
        };
        store.put_principal(&row).await?;
        if newcomer.admin {
            store
                .put_grant(&grant_row(by, &name, Role::Admin, &Pattern::all()))
                .await?;
        }
        let detail = newcomer.admin.then(|| "as admin of everything".to_owned());
        self.done(by, &format!("{}-add", row.kind), &name, detail)
            .await?;
        Ok(name)
    }

    /// Lets nobody in by any credential of somebody, or lets them in again.
    pub(super) async fn disable_now(
        &self,
        by: &By,
        who: &str,
        disabled: bool,
    ) -> Result<(), Refusal> {
        admin(by)?;
        self.ready()?;
        let _changing = self.access.changing().await;
        let store = self.store()?;
        let before = store.access().await?;
        self.unchanged(by, &before)?;
        let mut after = before.clone();
        let row = after
            .principals
            .iter_mut()
            .find(|row| row.name == who)
            .ok_or_else(|| nobody(who))?;
        if row.disabled == disabled {
            // whoever asks again, because the first time failed half way, gets what they ask
            self.access.reload().await?;
            return Ok(());
        }
        row.disabled = disabled;
        let row = row.clone();
        Self::keeps_an_admin(&before, &after)?;
        store.put_principal(&row).await?;
        if disabled {
            // they do not come back with it
            for session in before.sessions.iter().filter(|s| s.principal == who) {
                store.delete_session(&session.id).await?;
            }
        }
        let action = if disabled { "disable" } else { "enable" };
        self.done(by, action, who, None).await
    }

    /// Puts people into a group and takes others out of it.
    pub(super) async fn group_now(
        &self,
        by: &By,
        group: &str,
        add: &[String],
        remove: &[String],
    ) -> Result<(), Refusal> {
        admin(by)?;
        self.ready()?;
        let group = name(group).map_err(wrong)?;
        let _changing = self.access.changing().await;
        let store = self.store()?;
        let before = store.access().await?;
        self.unchanged(by, &before)?;
        if let Some(unknown) = add
            .iter()
            .chain(remove)
            .find(|who| before.principal(who).is_none())
        {
            return Err(nobody(unknown));
        }
        let mut after = before.clone();
        after.memberships.retain(|m| {
            m.source != "here" || m.group_name != group || !remove.contains(&m.principal)
        });
        for who in add {
            let there = |m: &crate::store::MembershipRow| {
                m.source == "here" && m.group_name == group && m.principal == *who
            };
            if !after.memberships.iter().any(there) {
                after.memberships.push(crate::store::MembershipRow {
                    group_name: group.clone(),
                    principal: who.clone(),
                    source: "here".into(),
                });
            }
        }
        Self::keeps_an_admin(&before, &after)?;
        for who in add.iter().chain(remove) {
            let groups: Vec<String> = after
                .memberships
                .iter()
                .filter(|m| m.source == "here" && m.principal == *who)
                .map(|m| m.group_name.clone())
                .collect();
            store.put_memberships(who, &groups, "here").await?;
        }
        let list = |what: &str, names: &[String]| {
            (!names.is_empty()).then(|| format!("{what} {}", names.join(", ")))
        };
        let detail: Vec<String> = [list("added", add), list("removed", remove)]
            .into_iter()
            .flatten()
            .collect();
        self.done(by, "group", &group, Some(detail.join("; ")))
            .await
    }

    /// Gives a role at a path; whether it was not given before.
    pub(super) async fn give_now(
        &self,
        by: &By,
        who: &str,
        asked: &str,
        path: &str,
    ) -> Result<bool, Refusal> {
        admin(by)?;
        self.ready()?;
        let (asked, pattern) = (role(asked)?, Pattern::parse(path).map_err(wrong)?);
        let _changing = self.access.changing().await;
        let store = self.store()?;
        let before = store.access().await?;
        self.unchanged(by, &before)?;
        if !before.is_grantee(who) {
            return Err(nobody(who));
        }
        if who == EVERYONE && asked == Role::Admin {
            return Err(wrong(
                "everyone cannot be an admin; name a person, or a group as group:NAME",
            ));
        }
        let new = store
            .put_grant(&grant_row(by, who, asked, &pattern))
            .await?;
        if new {
            let detail = format!("{asked} at {pattern}");
            self.done(by, "grant", who, Some(detail)).await?;
        } else {
            self.access.reload().await?;
        }
        Ok(new)
    }

    /// Takes a role at a path away; whether it was there.
    pub(super) async fn take_now(
        &self,
        by: &By,
        who: &str,
        asked: &str,
        path: &str,
    ) -> Result<bool, Refusal> {
        admin(by)?;
        self.ready()?;
        let (asked, pattern) = (role(asked)?, Pattern::parse(path).map_err(wrong)?);
        let _changing = self.access.changing().await;
        let store = self.store()?;
        let before = store.access().await?;
        self.unchanged(by, &before)?;
        let mut after = before.clone();
        after.grants.retain(|row| {
            row.who != who || row.role != asked.as_str() || row.pattern != pattern.as_str()
        });
        if after.grants.len() == before.grants.len() {
            self.access.reload().await?;
            return Ok(false);
        }
        Self::keeps_an_admin(&before, &after)?;
        store
            .delete_grant(who, asked.as_str(), pattern.as_str())
            .await?;
        let detail = format!("{asked} at {pattern}");
        self.done(by, "ungrant", who, Some(detail)).await?;
        Ok(true)
    }

    /// Makes a token, of who asks or, for an admin, of somebody else. It may do at most what its maker's credential may.
    pub(super) async fn token_now(&self, by: &By, ask: &TokenAsk) -> Result<Made, Refusal> {
        self.ready()?;
        let actor = &by.actor;
        let owner = match &ask.owner {
            Some(owner) => owner.clone(),
            None if actor.credential().is_none() => {
                return Err(wrong("say whose token it is: cuebook token create NAME"));
            }
            None => actor.name.to_string(),
        };
        if owner != *actor.name {
            admin(by)?;
        }
        let label = ask.label.trim();
        if label.is_empty() || label.chars().count() > MAX_LABEL || label.contains(char::is_control)
        {
            return Err(wrong(format!(
                "say what the token is for, in 1 to {MAX_LABEL} characters, e.g. laptop"
            )));
        }
        let patterns: Result<Vec<Pattern>, _> =
            ask.paths.iter().map(|text| Pattern::parse(text)).collect();
        let asked = Scope {
            role: ask.role.as_deref().map(role).transpose()?,
            patterns: patterns.map_err(wrong)?,
        };
        let scope = within(actor.permissions().scope(), asked)
            .map_err(|beyond| Refusal::new(StatusCode::FORBIDDEN, beyond.to_string()))?;
        let _changing = self.access.changing().await;
        let store = self.store()?;
        let rows = store.access().await?;
        self.unchanged(by, &rows)?;
        let principal = rows.principal(&owner).ok_or_else(|| nobody(&owner))?;
        let now = unix_millis();
        let live = |row: &&TokenRow| {
            row.principal == owner
                && row.revoked_at.is_none()
                && row.expires_at.is_none_or(|at| at > now)
        };
        if rows.tokens.iter().filter(live).count() >= MAX_TOKENS {
            return Err(conflict(format!(
                "{owner} has {MAX_TOKENS} tokens; revoke one that is not used any more first"
            )));
        }
        let mut notes = Vec::new();
        let expires_at = self.end(by, ask.ends, principal, &rows, now, &mut notes)?;
        let token = secret::token()
            .map_err(|error| Refusal::new(StatusCode::SERVICE_UNAVAILABLE, error.to_string()))?;
        let lines: Vec<&str> = scope.patterns.iter().map(Pattern::as_str).collect();
        let row = TokenRow {
            prefix: token.prefix.clone(),
            hash: secret::hash(&token.text).to_vec(),
            principal: owner.clone(),
            label: label.to_owned(),
            role: scope.role.map(|role| role.as_str().to_owned()),
            patterns: (!lines.is_empty()).then(|| lines.join("\n")),
            created_at: now,
            created_by: actor.name.to_string(),
            expires_at,
            revoked_at: None,
            used_at: None,
        };
        store.put_token(&row).await?;
        let mut detail = format!("for {owner}: {label}");
        if let Some(role) = scope.role {
            detail.push_str(&format!("; at most {role}"));
        }
        if !lines.is_empty() {
            detail.push_str(&format!("; at {}", lines.join(", ")));
        }
        match expires_at {
            Some(at) => detail.push_str(&format!("; until {}", calendar::show(at))),
            None => detail.push_str("; without an end"),
        }
        self.done(by, "token", &token.prefix, Some(detail)).await?;
        if !rows
            .actor(principal, &[], scope)
            .may_somewhere(Action::Read)
        {
            notes.push(format!(
                "{owner} has no role yet, so the token opens nothing: cuebook access grant {owner} reader"
            ));
        }
        Ok(Made {
            token: token.text,
            prefix: token.prefix,
            owner,
            expires: expires_at.map(calendar::show),
            notes,
        })
    }

    /// When a token ends, in milliseconds since 1970; never after the one that makes it.
    fn end(
        &self,
        by: &By,
        ends: Ends,
        principal: &PrincipalRow,
        rows: &AccessRows,
        now: i64,
        notes: &mut Vec<String>,
    ) -> Result<Option<i64>, Refusal> {
        let service = principal.kind == "service";
        let days = match ends {
            Ends::Usual => Some(self.token_days),
            Ends::After(days) if days == 0 || (days > MOST_DAYS && !service) => {
                return Err(wrong(format!(
                    "a token ends after 1 to {MOST_DAYS} days; only one of a service may last longer"
                )));
            }
            Ends::After(days) => Some(days.min(36_500)),
            Ends::Never if !service => {
                return Err(wrong(format!(
                    "a token of a person ends, after {MOST_DAYS} days at the latest; only one of a service may not"
                )));
            }
            Ends::Never => None,
        };
        let asked = days.map(|days| now + i64::from(days) * DAY_MS);
        let most = match by.actor.credential() {
            // signing in again is what bounds a browser, and not this
            None | Some(Credential::Session(_)) => None,
            Some(Credential::Token(prefix)) => rows
                .tokens
                .iter()
                .find(|row| *row.prefix == **prefix)
                .and_then(|row| row.expires_at),
            Some(Credential::Bearer(..)) => {
                return Err(Refusal::new(
                    StatusCode::FORBIDDEN,
                    "an access token of an OpenID provider makes no tokens; sign in to the web pages, under Settings",
                ));
            }
        };
        let expires_at = match (asked, most) {
            (Some(asked), Some(most)) => Some(asked.min(most)),
            (asked, most) => asked.or(most),
        };
        if expires_at != asked {
            notes.push("it ends with the token that made it".to_owned());
        }
        if expires_at.is_none() {
            notes.push(
                "it does not end by itself: revoke it when it is not needed any more".to_owned(),
            );
        }
        Ok(expires_at)
    }

    /// Revokes a token, one's own or, for an admin, anybody's; what it has open ends.
    pub(super) async fn revoke_now(&self, by: &By, prefix: &str) -> Result<(), Refusal> {
        // whoever types the whole token has not to be punished for it, and it is not kept
        let prefix: String = prefix.chars().take(12).collect();
        self.ready()?;
        let _changing = self.access.changing().await;
        let store = self.store()?;
        let rows = store.access().await?;
        self.unchanged(by, &rows)?;
        let row = rows.tokens.iter().find(|row| row.prefix == prefix);
        let row = row
            .filter(|row| row.principal == *by.actor.name || by.actor.may(Action::Administer, ""));
        let Some(row) = row else {
            return Err(absent(format!(
                "there is no token {prefix} here; cuebook token list shows them"
            )));
        };
        if store.revoke_token(&prefix, unix_millis()).await? {
            let detail = format!("of {}: {}", row.principal, row.label);
            self.done(by, "revoke", &prefix, Some(detail)).await?;
        } else {
            self.access.reload().await?;
        }
        Ok(())
    }

    /// Ends a session, one's own or, for an admin, anybody's.
    pub(super) async fn end_now(&self, by: &By, id: &str) -> Result<(), Refusal> {
        let _changing = self.access.changing().await;
        let store = self.store()?;
        let rows = store.access().await?;
        self.unchanged(by, &rows)?;
        let row = rows.sessions.iter().find(|row| row.id == id);
        let row = row
            .filter(|row| row.principal == *by.actor.name || by.actor.may(Action::Administer, ""));
        let Some(row) = row else {
            self.access.reload().await?;
            return Err(absent("there is no such session; it may have ended"));
        };
        if store.delete_session(id).await? {
            let detail = Some(format!("of {}", row.principal));
            self.done(by, "sign-out", id, detail).await?;
        } else {
            self.access.reload().await?;
        }
        Ok(())
    }
}

pub(super) fn nobody(who: &str) -> Refusal {
    let shown: String = who.chars().take(80).collect();
    absent(format!(
        "nobody is called `{shown}` here; cuebook access show lists who is, and a group is named group:NAME"
    ))
}

pub(super) fn grant_row(by: &By, who: &str, role: Role, pattern: &Pattern) -> GrantRow {
    GrantRow {
        who: who.to_owned(),
        role: role.as_str().to_owned(),
        pattern: pattern.as_str().to_owned(),
        created_at: unix_millis(),
        created_by: by.actor.name.to_string(),
    }
}
