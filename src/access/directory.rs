//! Everyone who may get in, in memory.

use std::collections::{BTreeMap, HashMap};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use arc_swap::ArcSwap;
use tokio::sync::watch;
use tokio_util::sync::CancellationToken;

use super::permissions::{Grant, Permissions, Scope};
use super::secret;
use super::{Actor, Credential, Kind, Pattern, Role};
use crate::store::{AccessRows, GrantRow, PrincipalRow, Store, StoreError, TokenRow};

/// Time after which the last uses of credentials are written.
const WRITTEN_EVERY: Duration = Duration::from_secs(30);
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
    denied: Option<Denied>,
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
    /// When credentials were last used, in milliseconds since 1970, until that is written.
    used: Mutex<HashMap<Credential, i64>>,
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
        }
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
        self.directory
            .store(Arc::new(Directory::new(store.access().await?)));
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

    /// Whom a token lets in.
    pub fn by_token(&self, token: &str, now_ms: i64) -> Result<Actor, Denied> {
        let found = self
            .directory
            .load()
            .tokens
            .get(&secret::hash(token))
            .cloned();
        self.let_in(found, now_ms)
    }

    /// Whom the cookie of a session lets in.
    pub fn by_session(&self, cookie: &str, now_ms: i64) -> Result<Actor, Denied> {
        let found = self
            .directory
            .load()
            .sessions
            .get(&secret::hash(cookie))
            .cloned();
        self.let_in(found, now_ms)
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
        let mut actor = directory.rows.actor(row, groups, scope);
        actor.credential = Some(Credential::Bearer(expires));
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
            Credential::Bearer(expires) => {
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
                        let groups: Vec<String> =
                            actor.groups.iter().map(ToString::to_string).collect();
                        let scope = actor.permissions.scope().clone();
                        let mut again = directory.rows.actor(row, &groups, scope);
                        again.credential = Some(credential.clone());
                        Ok(again)
                    }
                };
            }
        };
        let found = entries
            .values()
            .find(|entry| entry.actor.credential.as_ref() == Some(credential));
        check(found.cloned(), now_ms)
    }

    fn let_in(&self, found: Option<Entry>, now_ms: i64) -> Result<Actor, Denied> {
        let actor = check(found, now_ms)?;
        if let Some(credential) = &actor.credential {
            self.used
                .lock()
                .unwrap_or_else(PoisonError::into_inner)
                .insert(credential.clone(), now_ms);
        }
        Ok(actor)
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

    async fn write_used(&self) {
        let used = std::mem::take(&mut *self.used.lock().unwrap_or_else(PoisonError::into_inner));
        let Some(store) = self.store.as_ref().filter(|_| !used.is_empty()) else {
            return;
        };
        let (mut tokens, mut sessions) = (Vec::new(), Vec::new());
        for (credential, at) in used {
            match credential {
                Credential::Token(prefix) => tokens.push((prefix.to_string(), at)),
                Credential::Session(id) => sessions.push((id.to_string(), at)),
                Credential::Bearer(_) => {}
            }
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
                let entry = entry(&row.principal, all, credential, Some(row.expires_at), false)?;
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
        let members = self.memberships.iter().filter(|m| m.principal == row.name);
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
