//! Signing in: passwords, one-time codes, and the sessions of browsers.

use std::net::IpAddr;
use std::sync::Arc;

use axum::http::StatusCode;

use super::changes::whole;
use super::desk::{DAY_MS, Desk, Newcomer, admin, grant_row, nobody};
use crate::access::password::{PasswordError, Passwords, Place};
use crate::access::{Actor, By, Credential, Invitation, Pattern, Role, secret};
use crate::api::Refusal;
use crate::clock::unix_millis;
use crate::http::{Attempt, Entrance};
use crate::identity::login::Over;
use crate::store::SessionRow;

/// Time for which somebody may choose a password with a code that an admin gave them.
const INVITED_MS: i64 = 3 * DAY_MS;
/// Longest name of a browser that is kept, in characters.
const MAX_CLIENT: usize = 200;
/// Characters of a session's id.
const ID_CHARS: usize = 16;
/// Seconds after which somebody comes again who came when too many signed in.
const BUSY_SECONDS: u64 = 5;

/// What signing in needs besides who may do what.
#[derive(Debug)]
pub struct SignIn {
    passwords: Passwords,
    entrance: Arc<Entrance>,
    /// Days after which a browser is signed out, used or not.
    session_days: u32,
}

impl SignIn {
    /// Signs browsers in for so many days; failed attempts are counted at the entrance.
    pub fn new(session_days: u32, entrance: Arc<Entrance>) -> Self {
        Self {
            passwords: Passwords::default(),
            entrance,
            session_days,
        }
    }
}

/// Where somebody signs in from.
#[derive(Debug, Clone, Default)]
pub struct From {
    /// Their address, where they come over a network.
    pub address: Option<IpAddr>,
    /// The browser, as it calls itself.
    pub client: Option<String>,
}

/// A browser that has signed in.
#[derive(Debug)]
pub struct Signed {
    /// The value of its cookie; shown to nobody else.
    pub cookie: String,
    /// For how long, in seconds.
    pub seconds: i64,
}

/// What a provider has said of somebody who comes from it.
#[derive(Debug, Clone, Default)]
pub struct FromProvider {
    /// Its own name of their session.
    pub session: Option<String>,
    /// When that ends, in milliseconds since 1970.
    pub until: Option<i64>,
}

/// Why somebody is not signed in.
#[derive(Debug)]
pub enum NotSigned {
    /// The name, the password, or both are wrong: which, nobody is told.
    Wrong,
    /// After too many wrong ones; in seconds.
    Wait(u64),
    /// What was chosen is no password.
    Password(PasswordError),
    /// The code is good for nothing, or not any more.
    Code,
    /// Another reason.
    Refused(Refusal),
}

impl std::convert::From<Refusal> for NotSigned {
    fn from(refusal: Refusal) -> Self {
        Self::Refused(refusal)
    }
}

impl std::convert::From<PasswordError> for NotSigned {
    fn from(error: PasswordError) -> Self {
        Self::Password(error)
    }
}

#[allow(clippy::needless_pass_by_value, reason = "as map_err gives it")]
fn unavailable(error: impl ToString) -> Refusal {
    Refusal::new(StatusCode::SERVICE_UNAVAILABLE, error.to_string())
}

/// Who is signed in, for the audit.
fn as_owner(name: &str, from: &From) -> By {
    By {
        actor: Actor::named(name),
        peer: from.address.map(|ip| ip.to_string()),
    }
}

impl Desk {
    /// Whether an attempt is looked at now.
    fn attempt(&self, name: Option<&str>, from: &From) -> Result<(), NotSigned> {
        let backoff = &self.sign_in.entrance.backoff;
        let address = from.address.map(Attempt::Address);
        let attempts = [name.map(Attempt::Name), address];
        let longest = attempts
            .into_iter()
            .flatten()
            .filter_map(|attempt| backoff.check(attempt).err())
            .max();
        match longest {
            Some(wait) => Err(NotSigned::Wait(wait.as_secs().max(1))),
            None => Ok(()),
        }
    }

    fn failed(&self, name: Option<&str>, from: &From) {
        let address = from.address.map(Attempt::Address);
        for attempt in [name.map(Attempt::Name), address].into_iter().flatten() {
            self.sign_in.entrance.backoff.failed(attempt);
        }
    }

    /// A place to look at a password.
    async fn place(&self) -> Result<Place, Refusal> {
        self.sign_in.passwords.place().await.ok_or_else(|| Refusal {
            retry_after: Some(BUSY_SECONDS),
            ..unavailable("too many people sign in at this moment; try again in a few seconds")
        })
    }

    /// Whether a password is right. The attempt counts as failed before it is looked at, so that attempts that are sent
    /// at once wait as those do that are sent one after another.
    async fn compare(
        &self,
        name: &str,
        password: &str,
        kept: Option<&str>,
        from: &From,
    ) -> Result<bool, NotSigned> {
        let place = self.place().await?;
        self.attempt(Some(name), from)?;
        self.failed(Some(name), from);
        let right = place.is_right(password, kept).await;
        if right {
            let address = from.address.map(Attempt::Address);
            for attempt in [Some(Attempt::Name(name)), address].into_iter().flatten() {
                self.sign_in.entrance.backoff.forgive(attempt);
            }
        }
        Ok(right)
    }

    /// Signs somebody in by name and password.
    pub async fn sign_in(
        &self,
        name: &str,
        password: &str,
        from: &From,
    ) -> Result<Signed, NotSigned> {
        let name = name.trim();
        self.attempt(Some(name), from)?;
        let rows = self.access.rows();
        let row = rows
            .like(name)
            .filter(|row| row.kind == "person" && !row.disabled);
        // one way for all: who is not known takes the same time
        let kept = row.and_then(|row| row.password.as_deref());
        let right = self.compare(name, password, kept, from).await?;
        let Some(row) = row.filter(|_| right) else {
            tracing::info!(address = ?from.address, "a sign-in failed");
            return Err(NotSigned::Wrong);
        };
        self.sign_in.entrance.backoff.succeeded(name);
        Ok(self
            .begin_session(&row.name, "password", from, FromProvider::default())
            .await?)
    }

    /// Begins a session of somebody who has shown who they are. Its cookie is new: what a browser sent before is never one.
    pub async fn begin_session(
        &self,
        name: &str,
        how: &str,
        from: &From,
        provider: FromProvider,
    ) -> Result<Signed, Refusal> {
        let (desk, from) = (self.clone(), from.clone());
        let (name, how) = (name.to_owned(), how.to_owned());
        whole(async move { desk.begin_now(&name, &how, &from, provider).await }).await
    }

    async fn begin_now(
        &self,
        name: &str,
        how: &str,
        from: &From,
        provider: FromProvider,
    ) -> Result<Signed, Refusal> {
        self.ready()?;
        let cookie = secret::random().map_err(unavailable)?;
        let id = secret::random().map_err(unavailable)?;
        let now = unix_millis();
        let longest = now + i64::from(self.sign_in.session_days) * DAY_MS;
        let expires_at = provider.until.map_or(longest, |until| until.min(longest));
        let client = from.client.as_deref().unwrap_or_default();
        let client: String = client
            .chars()
            .filter(|c| !c.is_control())
            .take(MAX_CLIENT)
            .collect();
        let row = SessionRow {
            id: id.chars().take(ID_CHARS).collect(),
            hash: secret::hash(&cookie).to_vec(),
            principal: name.to_owned(),
            provider_session: provider.session,
            client: (!client.is_empty()).then_some(client),
            address: from.address.map(|ip| ip.to_string()),
            created_at: now,
            used_at: now,
            expires_at,
        };
        {
            let _changing = self.access.changing().await;
            self.store()?.put_session(&row).await?;
        }
        let by = as_owner(name, from);
        let detail = Some(format!("with {how}; session {}", row.id));
        self.done(&by, "sign-in", name, detail).await?;
        Ok(Signed {
            cookie,
            seconds: (expires_at - now).max(0) / 1000,
        })
    }

    /// What a code is for, while it is good for anything.
    pub fn invited(&self, code: &str, from: &From) -> Result<Invitation, NotSigned> {
        self.attempt(None, from)?;
        self.access.invited(code, unix_millis()).ok_or_else(|| {
            self.failed(None, from);
            NotSigned::Code
        })
    }

    /// Makes the first admin, or gives somebody who was invited their password; signs them in. `name` is for the first alone.
    pub async fn set_up(
        &self,
        code: &str,
        name: &str,
        password: &str,
        from: &From,
    ) -> Result<Signed, NotSigned> {
        let (desk, from) = (self.clone(), from.clone());
        let (code, name, password) = (code.to_owned(), name.to_owned(), password.to_owned());
        whole(async move { desk.set_up_now(&code, &name, &password, &from).await }).await
    }

    async fn set_up_now(
        &self,
        code: &str,
        name: &str,
        password: &str,
        from: &From,
    ) -> Result<Signed, NotSigned> {
        self.invited(code, from)?;
        let hashed = self.place().await?.hash(password).await?;
        let changing = self.access.changing().await;
        // whoever used it meanwhile has used it
        let invitation = self.invited(code, from)?;
        let name = match invitation {
            Invitation::FirstAdmin => {
                let newcomer = Newcomer {
                    name: name.to_owned(),
                    admin: true,
                    ..Newcomer::default()
                };
                let by = as_owner("setup", from);
                self.add_now(&by, &newcomer, None, Some(hashed)).await?
            }
            Invitation::Known(name) => {
                self.keep_password(&as_owner(&name, from), &name, hashed, None)
                    .await?;
                name
            }
        };
        self.access.use_up(code);
        drop(changing);
        Ok(self
            .begin_session(&name, "a one-time code", from, FromProvider::default())
            .await?)
    }

    /// A code with which somebody who is known chooses a password. It ends with this process, and after three days.
    pub async fn invite(&self, by: &By, name: &str) -> Result<String, Refusal> {
        admin(by)?;
        self.ready()?;
        let rows = self.rows().await?;
        let row = rows.principal(name).ok_or_else(|| nobody(name))?;
        if row.kind != "person" || row.disabled {
            return Err(Refusal::new(
                StatusCode::CONFLICT,
                format!("{name} is a service or is disabled, and does not sign in"),
            ));
        }
        let code = self
            .access
            .invite(name, unix_millis() + INVITED_MS)
            .map_err(unavailable)?;
        self.done(by, "invite", name, None).await?;
        Ok(code)
    }

    /// Changes one's own password; the other sessions end. Who has none yet needs none to choose one.
    pub async fn change_password(
        &self,
        by: &By,
        current: &str,
        new: &str,
        from: &From,
    ) -> Result<(), NotSigned> {
        let Some(Credential::Session(session)) = by.actor.credential().cloned() else {
            return Err(NotSigned::Refused(Refusal::new(
                StatusCode::FORBIDDEN,
                "a password is changed by who has signed in to the web pages",
            )));
        };
        let name = by.actor.name.to_string();
        self.attempt(Some(&name), from)?;
        let rows = self.access.rows();
        let kept = rows
            .principal(&name)
            .and_then(|row| row.password.as_deref());
        if kept.is_some() && !self.compare(&name, current, kept, from).await? {
            return Err(NotSigned::Wrong);
        }
        let hashed = self.place().await?.hash(new).await?;
        let (desk, by) = (self.clone(), by.clone());
        whole(async move {
            let _changing = desk.access.changing().await;
            desk.keep_password(&by, &name, hashed, Some(&session)).await
        })
        .await?;
        Ok(())
    }

    /// Writes a password and ends every session of its owner but one.
    async fn keep_password(
        &self,
        by: &By,
        name: &str,
        hashed: String,
        stays: Option<&str>,
    ) -> Result<(), Refusal> {
        let store = self.store()?;
        let rows = store.access().await?;
        let mut row = rows
            .principal(name)
            .filter(|row| !row.disabled)
            .ok_or_else(|| nobody(name))?
            .clone();
        row.password = Some(hashed);
        store.put_principal(&row).await?;
        let others = rows
            .sessions
            .iter()
            .filter(|session| session.principal == name && Some(&*session.id) != stays);
        for session in others {
            store.delete_session(&session.id).await?;
        }
        self.done(by, "password", name, None).await
    }
}

impl Desk {
    /// Makes somebody whom a provider knows the first admin, with the code that says so.
    pub async fn admit_first(&self, code: &str, name: &str, from: &From) -> Result<(), NotSigned> {
        let (desk, from) = (self.clone(), from.clone());
        let (code, name) = (code.to_owned(), name.to_owned());
        whole(async move { desk.admit_now(&code, &name, &from).await }).await
    }

    async fn admit_now(&self, code: &str, name: &str, from: &From) -> Result<(), NotSigned> {
        self.ready()?;
        let _changing = self.access.changing().await;
        if self.invited(code, from)? != Invitation::FirstAdmin {
            return Err(NotSigned::Code);
        }
        let by = as_owner("setup", from);
        let grant = grant_row(&by, name, Role::Admin, &Pattern::all());
        self.store()?
            .put_grant(&grant)
            .await
            .map_err(Refusal::from)?;
        self.access.use_up(code);
        self.done(&by, "grant", name, Some("admin at **".to_owned()))
            .await?;
        Ok(())
    }

    /// Ends what a provider says is over.
    pub async fn end_sessions_of(&self, over: &Over, actor: &Actor) -> Result<(), Refusal> {
        let (desk, over, actor) = (self.clone(), over.clone(), actor.clone());
        whole(async move { desk.end_of_now(&over, &actor).await }).await
    }

    async fn end_of_now(&self, over: &Over, actor: &Actor) -> Result<(), Refusal> {
        let _changing = self.access.changing().await;
        let store = self.store()?;
        let rows = store.access().await?;
        let owner = over.subject.as_ref().and_then(|subject| {
            let mut people = rows.principals.iter();
            people.find(|row| row.subject.as_ref() == Some(subject))
        });
        let ends = |row: &&SessionRow| {
            let theirs = owner.is_some_and(|owner| owner.name == row.principal);
            match &over.session {
                Some(session) => {
                    row.provider_session.as_ref() == Some(session)
                        && (theirs || over.subject.is_none())
                }
                None => theirs && row.provider_session.is_some(),
            }
        };
        let by = By {
            actor: actor.clone(),
            peer: None,
        };
        let ended: Vec<&SessionRow> = rows.sessions.iter().filter(ends).collect();
        for row in &ended {
            store.delete_session(&row.id).await?;
            let detail = format!("of {}, as the provider says", row.principal);
            self.done(&by, "sign-out", &row.id, Some(detail)).await?;
        }
        if ended.is_empty() {
            self.access.reload().await?;
        }
        Ok(())
    }
}
