//! Everyone who may get in, in memory.

use std::collections::{BTreeMap, HashMap};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use arc_swap::ArcSwap;
use tokio::sync::watch;
use tokio_util::sync::CancellationToken;

use super::permissions::{Grant, Permissions, Scope};
use super::secret::{self, NoRandom};
use super::{Actor, Credential, Kind, Pattern, Role};
use crate::store::{
    AccessRows, GrantRow, MembershipRow, PrincipalRow, Store, StoreError, TokenRow,
};

/// Time after which the last uses of credentials are written.
const WRITTEN_EVERY: Duration = Duration::from_secs(30);
/// Time after which a session that nobody uses is over, unless the settings say.
const IDLE: Duration = Duration::from_hours(12);
/// Who everybody is that has a credential, in a grant.
pub const EVERYONE: &str = "everyone";
/// What a group begins with, in a grant.
pub const GROUP: &str = "group:";

/// Why a credential lets nobody in.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum Denied {
    /// Nobody has it.
    #[error("this credential is not known here; make a token with cuebook token create")]
    Unknown,
    /// Its time is over.
    #[error("this credential has expired; make a new one")]
    Expired,
    /// It was taken back.
    #[error("this credential was revoked; ask an admin for a new one")]
    Revoked,
    /// Its owner was shut out.
    #[error("the owner of this credential is disabled; ask an admin")]
    Disabled,
}

/// A credential and who it lets in.
#[derive(Debug, Clone)]
struct Entry {
    actor: Actor,
    /// In milliseconds since 1970.
    expires_at: Option<i64>,
    /// When it was last used as far as the database knew, in milliseconds since 1970; only of sessions.
    used_at: Option<i64>,
    denied: Option<Denied>,
}

/// When a credential was last used.
#[derive(Debug, Clone, Copy)]
struct Used {
    /// In milliseconds since 1970.
    at: i64,
    written: bool,
}

/// A code that is used once.
#[derive(Debug)]
struct Code {
    /// Whose it is; none for the first admin's.
    of: Option<Box<str>>,
    /// In milliseconds since 1970.
    until: i64,
}

/// What a code is for.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Invitation {
    /// Who comes first chooses a name and a password, and administers the server.
    FirstAdmin,
    /// Somebody of this name chooses a password.
    Known(String),
}

/// One moment's answer to who may get in.
#[derive(Debug, Default)]
struct Directory {
    rows: AccessRows,
    /// By the SHA-256 of the secret.
    tokens: HashMap<[u8; 32], Entry>,
    sessions: HashMap<[u8; 32], Entry>,
}

/// Who may get in and what they may do.
#[derive(Debug)]
pub struct Access {
    /// Whether everybody who reaches the server is the person at this machine.
    open: bool,
    directory: ArcSwap<Directory>,
    store: Option<Store>,
    changed: watch::Sender<u64>,
    used: Mutex<HashMap<Credential, Used>>,
    /// A session that nobody uses for so long is over.
    idle: Duration,
    /// Held by who changes it, so that what was looked at is still so when it is written.
    changing: tokio::sync::Mutex<()>,
    /// Held from reading the rows until they are in force, so that older ones never take the place of newer ones.
    reading: tokio::sync::Mutex<()>,
    /// Codes that are used once to choose a password, by their hash. They end with this process.
    codes: Mutex<HashMap<[u8; 32], Code>>,
}

impl Access {
    /// No access control: everybody is the person at this machine. For loopback.
    pub fn open() -> Self {
        Self {
            open: true,
            directory: ArcSwap::default(),
            store: None,
            changed: watch::channel(0).0,
            used: Mutex::default(),
            idle: IDLE,
            changing: tokio::sync::Mutex::default(),
            reading: tokio::sync::Mutex::default(),
            codes: Mutex::default(),
        }
    }

    /// The same, with sessions that are over when nobody has used them for so long.
    #[must_use]
    pub fn with_idle(self, idle: Duration) -> Self {
        Self { idle, ..self }
    }

    /// Waits for who changes it now; nobody else does until the guard is dropped.
    pub async fn changing(&self) -> tokio::sync::MutexGuard<'_, ()> {
        self.changing.lock().await
    }

    /// A code with which the first admin makes themselves: a new one, the one before is worth nothing any more. None where
    /// there is an admin, or no access control.
    pub fn setup_code(&self) -> Result<Option<String>, NoRandom> {
        if self.open || !self.directory.load().rows.admins().is_empty() {
            return Ok(None);
        }
        let code = secret::random()?;
        let mut codes = self.codes();
        codes.retain(|_, known| known.of.is_some());
        codes.insert(
            secret::hash(&code),
            Code {
                of: None,
                until: i64::MAX,
            },
        );
        Ok(Some(code))
    }

    /// A code with which somebody who is known chooses a password, until a time in milliseconds since 1970; the one before
    /// is worth nothing any more.
    pub fn invite(&self, name: &str, until: i64) -> Result<String, NoRandom> {
        let code = secret::random()?;
        let mut codes = self.codes();
        codes.retain(|_, known| known.of.as_deref() != Some(name));
        codes.insert(
            secret::hash(&code),
            Code {
                of: Some(name.into()),
                until,
            },
        );
        Ok(code)
    }

    /// What a code is for, while it is good for anything.
    pub fn invited(&self, code: &str, now_ms: i64) -> Option<Invitation> {
        let codes = self.codes();
        let known = codes
            .get(&secret::hash(code))
            .filter(|known| known.until > now_ms)?;
        match &known.of {
            Some(name) => Some(Invitation::Known(name.to_string())),
            None => self
                .directory
                .load()
                .rows
                .admins()
                .is_empty()
                .then_some(Invitation::FirstAdmin),
        }
    }

    /// Lets a code be good for nothing any more.
    pub fn use_up(&self, code: &str) {
        self.codes().remove(&secret::hash(code));
    }

    fn codes(&self) -> std::sync::MutexGuard<'_, HashMap<[u8; 32], Code>> {
        self.codes.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Lets in who the database says; nobody where there is none.
    pub async fn closed(store: Option<Store>) -> Result<Self, StoreError> {
        let access = Self {
            open: false,
            store,
            ..Self::open()
        };
        access.reload().await?;
        Ok(access)
    }

    /// Whether there is no access control.
    pub fn is_open(&self) -> bool {
        self.open
    }

    /// The database of it, where there is one.
    pub fn store(&self) -> Option<&Store> {
        self.store.as_ref()
    }

    /// Reads everything again; to be called after each change of it. Streams that are open learn of it.
    pub async fn reload(&self) -> Result<(), StoreError> {
        let Some(store) = &self.store else {
            return Ok(());
        };
        let _reading = self.reading.lock().await;
        let rows = store.access().await?;
        if !rows.admins().is_empty() {
            self.codes().retain(|_, known| known.of.is_some());
        }
        self.directory.store(Arc::new(Directory::new(rows)));
        self.changed.send_modify(|generation| *generation += 1);
        Ok(())
    }

    /// Changes whenever who may do what does.
    pub fn subscribe(&self) -> watch::Receiver<u64> {
        self.changed.subscribe()
    }

    /// The rows, as of the last reading.
    pub fn rows(&self) -> AccessRows {
        self.directory.load().rows.clone()
    }

    /// The name of whom an OpenID provider calls this: its address, a space, and its name for them.
    pub fn by_subject(&self, subject: &str) -> Option<String> {
        let directory = self.directory.load();
        let row = directory
            .rows
            .principals
            .iter()
            .find(|row| row.subject.as_deref() == Some(subject))?;
        Some(row.name.clone())
    }

    /// Whether somebody is let in by nothing.
    pub fn is_disabled(&self, name: &str) -> bool {
        let directory = self.directory.load();
        let row = directory.rows.principal(name);
        row.is_none_or(|row| row.disabled)
    }

    /// Whom a token lets in.
    pub fn by_token(&self, token: &str, now_ms: i64) -> Result<Actor, Denied> {
        let directory = self.directory.load();
        self.let_in(directory.tokens.get(&secret::hash(token)), now_ms)
    }

    /// Whom the cookie of a session lets in.
    pub fn by_session(&self, cookie: &str, now_ms: i64) -> Result<Actor, Denied> {
        let directory = self.directory.load();
        self.let_in(directory.sessions.get(&secret::hash(cookie)), now_ms)
    }

    /// A principal as who an access token of an OpenID provider names, with the groups it says, until `expires`, in seconds
    /// since 1970.
    pub fn by_bearer(
        &self,
        name: &str,
        groups: &[String],
        scope: Scope,
        expires: u64,
    ) -> Result<Actor, Denied> {
        let directory = self.directory.load();
        let row = directory
            .rows
            .principals
            .iter()
            .find(|row| row.name == name);
        let row = row.ok_or(Denied::Unknown)?;
        if row.disabled {
            return Err(Denied::Disabled);
        }
        let mut actor = directory.rows.bearer(row, groups, scope);
        actor.credential = Some(Credential::Bearer(expires, groups.into()));
        Ok(actor)
    }

    /// The same actor as they are now; an error once their credential lets nobody in any more. For what stays open.
    pub fn again(&self, actor: &Actor, now_ms: i64) -> Result<Actor, Denied> {
        let Some(credential) = &actor.credential else {
            return Ok(actor.clone());
        };
        let directory = self.directory.load();
        let entries = match credential {
            Credential::Token(_) => &directory.tokens,
            Credential::Session(_) => &directory.sessions,
            Credential::Bearer(expires, groups) => {
                if i64::try_from(*expires)
                    .unwrap_or(i64::MAX)
                    .saturating_mul(1000)
                    <= now_ms
                {
                    return Err(Denied::Expired);
                }
                let row = directory
                    .rows
                    .principals
                    .iter()
                    .find(|row| *row.name == *actor.name);
                return match row {
                    None => Err(Denied::Unknown),
                    Some(row) if row.disabled => Err(Denied::Disabled),
                    Some(row) => {
                        let scope = actor.permissions.scope().clone();
                        let mut again = directory.rows.bearer(row, groups, scope);
                        again.credential = Some(credential.clone());
                        Ok(again)
                    }
                };
            }
        };
        let found = entries
            .values()
            .find(|entry| entry.actor.credential.as_ref() == Some(credential));
        let actor = check(found.cloned(), now_ms)?;
        self.in_use(found, now_ms)?;
        Ok(actor)
    }

    /// When the credential of an actor ends by itself, in milliseconds since 1970; none where it does not.
    pub fn ends_at(&self, actor: &Actor) -> Option<i64> {
        let directory = self.directory.load();
        let entries = match actor.credential.as_ref()? {
            Credential::Token(_) => &directory.tokens,
            Credential::Session(_) => &directory.sessions,
            Credential::Bearer(seconds, _) => {
                let seconds = i64::try_from(*seconds).unwrap_or(i64::MAX);
                return Some(seconds.saturating_mul(1000));
            }
        };
        let found = entries
            .values()
            .find(|entry| entry.actor.credential == actor.credential);
        found?.expires_at
    }

    fn let_in(&self, found: Option<&Entry>, now_ms: i64) -> Result<Actor, Denied> {
        let actor = check(found.cloned(), now_ms)?;
        self.in_use(found, now_ms)?;
        if let Some(credential) = &actor.credential {
            let used = Used {
                at: now_ms,
                written: false,
            };
            self.used
                .lock()
                .unwrap_or_else(PoisonError::into_inner)
                .insert(credential.clone(), used);
        }
        Ok(actor)
    }

    /// Whether a session has not been left alone for too long.
    fn in_use(&self, found: Option<&Entry>, now_ms: i64) -> Result<(), Denied> {
        let Some(Entry {
            actor,
            used_at: Some(read),
            ..
        }) = found
        else {
            return Ok(());
        };
        let used = self.used.lock().unwrap_or_else(PoisonError::into_inner);
        let seen = actor
            .credential
            .as_ref()
            .and_then(|credential| used.get(credential));
        let last = seen.map_or(*read, |used| used.at.max(*read));
        let idle = i64::try_from(self.idle.as_millis()).unwrap_or(i64::MAX);
        if now_ms.saturating_sub(last) > idle {
            return Err(Denied::Expired);
        }
        Ok(())
    }

    /// Writes when credentials were last used, now and then, until it is cancelled.
    pub async fn keep(self: Arc<Self>, cancel: CancellationToken) {
        while cancel
            .run_until_cancelled(tokio::time::sleep(WRITTEN_EVERY))
            .await
            .is_some()
        {
            self.write_used().await;
        }
        self.write_used().await;
    }

    /// Writes when credentials were last used, as far as that is not written.
    pub async fn write_used(&self) {
        let Some(store) = self.store.as_ref() else {
            return;
        };
        let (mut tokens, mut sessions) = (Vec::new(), Vec::new());
        {
            let directory = self.directory.load();
            let mut used = self.used.lock().unwrap_or_else(PoisonError::into_inner);
            used.retain(|credential, _| directory.has(credential));
            for (credential, used) in used.iter_mut().filter(|(_, used)| !used.written) {
                used.written = true;
                match credential {
                    Credential::Token(prefix) => tokens.push((prefix.to_string(), used.at)),
                    Credential::Session(id) => sessions.push((id.to_string(), used.at)),
                    Credential::Bearer(..) => {}
                }
            }
        }
        if tokens.is_empty() && sessions.is_empty() {
            return;
        }
        if let Err(error) = store.credentials_used(&tokens, &sessions).await {
            tracing::warn!(%error, "when tokens were last used could not be written");
        }
    }
}

fn check(found: Option<Entry>, now_ms: i64) -> Result<Actor, Denied> {
    let entry = found.ok_or(Denied::Unknown)?;
    if let Some(denied) = entry.denied {
        return Err(denied);
    }
    if entry.expires_at.is_some_and(|at| at <= now_ms) {
        return Err(Denied::Expired);
    }
    Ok(entry.actor)
}

impl Directory {
    fn has(&self, credential: &Credential) -> bool {
        match credential {
            Credential::Token(prefix) => self.rows.tokens.iter().any(|row| *row.prefix == **prefix),
            Credential::Session(id) => self.rows.sessions.iter().any(|row| *row.id == **id),
            Credential::Bearer(..) => false,
        }
    }

    fn new(rows: AccessRows) -> Self {
        let people: BTreeMap<&str, &PrincipalRow> = rows
            .principals
            .iter()
            .map(|row| (&*row.name, row))
            .collect();
        let entry =
            |principal: &str, scope: Option<Scope>, credential, expires_at, revoked: bool| {
                let row = people.get(principal)?;
                // a scope that cannot be read leaves nothing
                let denied = if revoked || scope.is_none() {
                    Some(Denied::Revoked)
                } else if row.disabled {
                    Some(Denied::Disabled)
                } else {
                    None
                };
                let mut actor = rows.actor(row, &[], scope.unwrap_or_default());
                actor.credential = Some(credential);
                Some(Entry {
                    actor,
                    expires_at,
                    used_at: None,
                    denied,
                })
            };
        let key = |hash: &[u8]| <[u8; 32]>::try_from(hash).ok();
        let tokens = rows
            .tokens
            .iter()
            .filter_map(|row| {
                let credential = Credential::Token((&*row.prefix).into());
                let revoked = row.revoked_at.is_some();
                let entry = entry(
                    &row.principal,
                    scope(row),
                    credential,
                    row.expires_at,
                    revoked,
                )?;
                Some((key(&row.hash)?, entry))
            })
            .collect();
        let sessions = rows
            .sessions
            .iter()
            .filter_map(|row| {
                let credential = Credential::Session((&*row.id).into());
                let all = Some(Scope::default());
                let mut entry =
                    entry(&row.principal, all, credential, Some(row.expires_at), false)?;
                entry.used_at = Some(row.used_at);
                Some((key(&row.hash)?, entry))
            })
            .collect();
        Self {
            rows,
            tokens,
            sessions,
        }
    }
}

/// What a token is cut to; none where its row cannot be read.
fn scope(row: &TokenRow) -> Option<Scope> {
    let role = match &row.role {
        Some(role) => Some(Role::parse(role)?),
        None => None,
    };
    let patterns = row.patterns.iter().flat_map(|text| text.lines());
    let patterns: Result<Vec<Pattern>, _> = patterns.map(Pattern::parse).collect();
    Some(Scope {
        role,
        patterns: patterns.ok()?,
    })
}

impl AccessRows {
    /// A principal with what grants give them, themselves and as a member of groups; `more` are groups that a credential says.
    pub fn actor(&self, row: &PrincipalRow, more: &[String], scope: Scope) -> Actor {
        self.member(row, more, scope, |_| true)
    }

    /// The same as who an access token of an OpenID provider names: what the provider says of their groups is what this
    /// token says, and not what it said at a sign-in before.
    fn bearer(&self, row: &PrincipalRow, said: &[String], scope: Scope) -> Actor {
        self.member(row, said, scope, |membership| membership.source != "oidc")
    }

    fn member(
        &self,
        row: &PrincipalRow,
        more: &[String],
        scope: Scope,
        counts: impl Fn(&MembershipRow) -> bool,
    ) -> Actor {
        let members = self
            .memberships
            .iter()
            .filter(|m| m.principal == row.name && counts(m));
        let mut groups: Vec<Box<str>> = members.map(|m| (&*m.group_name).into()).collect();
        groups.extend(more.iter().map(|group| (&**group).into()));
        groups.sort_unstable();
        groups.dedup();
        let theirs = |grant: &&GrantRow| match grant.who.strip_prefix(GROUP) {
            Some(group) => groups.binary_search_by(|own| (**own).cmp(group)).is_ok(),
            None => grant.who == EVERYONE || grant.who == row.name,
        };
        let grants = self.grants.iter().filter(theirs).filter_map(|grant| {
            Some(Grant {
                role: Role::parse(&grant.role)?,
                pattern: Pattern::parse(&grant.pattern).ok()?,
            })
        });
        let permissions = Arc::new(Permissions::new(grants, scope));
        Actor {
            name: (&*row.name).into(),
            kind: if row.kind == "service" {
                Kind::Service
            } else {
                Kind::Person
            },
            email: row.email.as_deref().map(Into::into),
            permissions,
            groups: groups.into(),
            credential: None,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn membership(group: &str, source: &str) -> MembershipRow {
        MembershipRow {
            group_name: group.into(),
            principal: "ana".into(),
            source: source.into(),
        }
    }

    #[test]
    fn an_access_token_has_the_groups_it_says_and_those_from_here_that_are_left() {
        let ana = PrincipalRow {
            name: "ana".into(),
            kind: "person".into(),
            email: None,
            subject: None,
            password: None,
            disabled: false,
            created_at: 0,
            created_by: "test".into(),
        };
        let rows = AccessRows {
            principals: vec![ana],
            memberships: vec![membership("here", "here"), membership("before", "oidc")],
            ..AccessRows::default()
        };
        let access = Access {
            open: false,
            ..Access::open()
        };
        access
            .directory
            .store(Arc::new(Directory::new(rows.clone())));
        let said = ["said".to_owned()];
        let actor = access
            .by_bearer("ana", &said, Scope::default(), 100)
            .unwrap();
        assert_eq!(
            actor.groups(),
            [Box::<str>::from("here"), Box::<str>::from("said")]
        );
        // an admin takes them out of the group of this server
        let left = AccessRows {
            memberships: Vec::new(),
            ..rows
        };
        access.directory.store(Arc::new(Directory::new(left)));
        let again = access.again(&actor, 0).unwrap();
        assert_eq!(again.groups(), [Box::<str>::from("said")]);
        assert_eq!(again.credential(), actor.credential());
        assert_eq!(access.again(&actor, 100_000), Err(Denied::Expired));
    }
}
