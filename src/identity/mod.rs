//! OpenID providers: what their access tokens and their sign-ins say of somebody, and who that is here.
//!
//! Knows nothing of the requests that come to this server.

pub mod bearer;
mod fetch;
mod keys;
pub mod login;

use std::collections::BTreeSet;
use std::sync::Arc;
use std::time::Duration;

use serde_json::{Map, Value};

use crate::access::people::name;
use crate::access::{Access, By};
use crate::clock::unix_millis;
use crate::records::Records;
use crate::store::{AuditEntry, PrincipalRow, StoreError};

/// Groups of one person that are looked at.
const MAX_GROUPS: usize = 200;
/// Time in which a provider has to answer, and for which somebody waits for who asks it already.
const ASKING: Duration = Duration::from_secs(10);
/// Time for which a provider that could not be asked is not asked again: each request would wait for it.
const AWAY: Duration = Duration::from_secs(10);
/// What is said of one that does not answer.
const LATE: &str = "it does not answer in time";
/// Seconds by which a provider's clock and this one may differ.
pub const SKEW_SECONDS: u64 = 60;

/// Whether a text is the address of a provider that may be asked.
pub fn is_provider(text: &str) -> bool {
    reqwest::Url::parse(text).is_ok_and(|url| fetch::is_safe(&url))
}

/// Why a provider cannot be asked.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("the OpenID provider {issuer} cannot be asked: {reason}")]
pub struct Unreachable {
    /// The provider.
    pub issuer: String,
    /// What went wrong.
    pub reason: String,
}

/// What a provider says of somebody.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Said {
    /// The provider's address.
    pub issuer: String,
    /// Its name for them, which it gives to nobody else.
    pub subject: String,
    /// What they may be called here.
    pub name: Option<String>,
    /// Where mail reaches them, where the provider has made sure.
    pub email: Option<String>,
    /// The groups they are in.
    pub groups: Vec<String>,
}

impl Said {
    /// Reads it out of claims that were verified; `groups` is the claim that lists groups.
    pub fn of(issuer: &str, claims: &Map<String, Value>, groups: &str) -> Option<Self> {
        let text = |claim: &str| claims.get(claim).and_then(Value::as_str);
        let verified = claims.get("email_verified").and_then(Value::as_bool);
        let email = text("email").filter(|_| verified != Some(false));
        let names = ["preferred_username", "email", "client_id", "name"];
        Some(Self {
            issuer: issuer.to_owned(),
            subject: text("sub").filter(|sub| !sub.is_empty())?.to_owned(),
            name: names.into_iter().find_map(text).map(str::to_owned),
            email: email.map(str::to_owned),
            groups: listed(claims.get(groups))
                .filter_map(|group| name(group).ok())
                .take(MAX_GROUPS)
                .collect::<BTreeSet<String>>()
                .into_iter()
                .collect(),
        })
    }

    /// As it is kept with a principal.
    fn key(&self) -> String {
        format!("{} {}", self.issuer, self.subject)
    }
}

/// The texts of a claim that is a list of them, or one with spaces between.
fn listed(claim: Option<&Value>) -> impl Iterator<Item = &str> {
    let many = claim.and_then(Value::as_array).into_iter().flatten();
    let one = claim.and_then(Value::as_str).unwrap_or_default();
    many.filter_map(Value::as_str)
        .chain(one.split_ascii_whitespace())
}

/// Why somebody whom a provider knows is not let in.
#[derive(Debug, thiserror::Error)]
pub enum NotHere {
    /// Nobody here is who the provider says.
    #[error("nobody here belongs to this account of the provider; ask an admin")]
    Unknown,
    /// The database failed.
    #[error(transparent)]
    Store(#[from] StoreError),
}

/// Runs a change to its end, whoever waits for it: one that was cut would be in the database and not in force.
async fn whole<T: Send + 'static>(change: impl Future<Output = T> + Send + 'static) -> T {
    match tokio::spawn(change).await {
        Ok(done) => done,
        Err(error) => std::panic::resume_unwind(error.into_panic()),
    }
}

/// Finds who somebody is here, and makes them known when they come for the first time.
#[derive(Debug, Clone)]
pub struct Arrivals {
    access: Arc<Access>,
    records: Option<Arc<Records>>,
    /// Whether who comes for the first time is made known.
    create: bool,
}

impl Arrivals {
    /// Those of a server.
    pub fn new(access: Arc<Access>, records: Option<Arc<Records>>, create: bool) -> Self {
        Self {
            access,
            records,
            create,
        }
    }

    /// The name here of whom a provider speaks. Never that of somebody else who is called alike there: a new one is made.
    pub async fn find(&self, said: &Said, peer: Option<&str>) -> Result<String, NotHere> {
        let key = said.key();
        if let Some(known) = self.access.by_subject(&key) {
            return Ok(known);
        }
        let (arrivals, said) = (self.clone(), said.clone());
        let peer = peer.map(str::to_owned);
        whole(async move { arrivals.make_known(&said, key, peer).await }).await
    }

    async fn make_known(
        &self,
        said: &Said,
        key: String,
        peer: Option<String>,
    ) -> Result<String, NotHere> {
        let Some(store) = self.access.store().filter(|_| self.create) else {
            return Err(NotHere::Unknown);
        };
        let _changing = self.access.changing().await;
        let rows = store.access().await?;
        let known = |row: &&PrincipalRow| row.subject.as_deref() == Some(&key);
        if let Some(row) = rows.principals.iter().find(known) {
            // they are in the database and not in memory: what made them known was cut
            self.access.reload().await?;
            return Ok(row.name.clone());
        }
        let wanted = [said.name.as_deref(), Some(&*said.subject)];
        let wanted = wanted
            .into_iter()
            .flatten()
            .find_map(|text| name(text).ok())
            .unwrap_or_else(|| "person".to_owned());
        let mut free = wanted.clone();
        let mut count = 1;
        while rows.like(&free).is_some() || name(&free).is_err() {
            count += 1;
            let short: String = wanted.chars().take(56).collect();
            free = format!("{short}-{count}");
        }
        let row = PrincipalRow {
            name: free.clone(),
            kind: "person".into(),
            email: said.email.clone(),
            subject: Some(key),
            password: None,
            disabled: false,
            created_at: unix_millis(),
            created_by: "cuebook".into(),
        };
        store.put_principal(&row).await?;
        self.access.reload().await?;
        if let Some(records) = &self.records {
            let entry = AuditEntry {
                at: row.created_at,
                actor: row.created_by.clone(),
                origin: peer,
                action: "person-add".into(),
                subject: Some(free.clone()),
                detail: Some(format!("known to {}", said.issuer)),
                ..AuditEntry::default()
            };
            if let Err(not_yet) = records.audit().append(entry).await {
                tracing::warn!(%not_yet, "a newcomer waits for their row in the audit");
            }
        }
        Ok(free)
    }

    /// Puts somebody who signs in into the groups that the provider says, and out of those it said before.
    pub async fn join(&self, name: &str, groups: &[String]) -> Result<(), StoreError> {
        let (arrivals, name, groups) = (self.clone(), name.to_owned(), groups.to_vec());
        whole(async move { arrivals.join_now(&name, &groups).await }).await
    }

    async fn join_now(&self, name: &str, groups: &[String]) -> Result<(), StoreError> {
        let Some(store) = self.access.store() else {
            return Ok(());
        };
        let _changing = self.access.changing().await;
        let rows = store.access().await?;
        let before: Vec<&str> = rows
            .memberships
            .iter()
            .filter(|m| m.principal == name && m.source == "oidc")
            .map(|m| &*m.group_name)
            .collect();
        if before == groups {
            return Ok(());
        }
        store.put_memberships(name, groups, "oidc").await?;
        self.access.reload().await?;
        if let Some(records) = &self.records {
            let by = By {
                actor: crate::access::Actor::named("cuebook"),
                peer: None,
            };
            let entry = AuditEntry {
                at: unix_millis(),
                actor: by.actor.name.to_string(),
                action: "group".into(),
                subject: Some(name.to_owned()),
                detail: Some(format!("the provider says: {}", groups.join(", "))),
                ..AuditEntry::default()
            };
            if let Err(not_yet) = records.audit().append(entry).await {
                tracing::warn!(%not_yet, "groups of a provider wait for their row in the audit");
            }
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::store::Store;

    #[tokio::test]
    async fn groups_are_in_force_though_whoever_signs_in_has_gone() {
        let folder = tempfile::tempdir().unwrap();
        let store = Store::open(&folder.path().join("cuebook.db"))
            .await
            .unwrap();
        let access = Arc::new(Access::closed(Some(store)).await.unwrap());
        let arrivals = Arrivals::new(access.clone(), None, true);
        let said = Said {
            issuer: "https://id.example.com".into(),
            subject: "7".into(),
            name: Some("ana".into()),
            ..Said::default()
        };
        let groups = ["sre".to_owned()];
        let in_force = async |what: &dyn Fn() -> bool| {
            let ends = std::time::Instant::now() + Duration::from_secs(20);
            while !what() {
                assert!(std::time::Instant::now() < ends, "it was cut");
                tokio::time::sleep(Duration::from_millis(5)).await;
            }
        };
        // asked for once, and not waited for
        let _ = tokio::time::timeout(Duration::ZERO, arrivals.find(&said, None)).await;
        in_force(&|| access.by_subject(&said.key()).is_some()).await;
        let _ = tokio::time::timeout(Duration::ZERO, arrivals.join("ana", &groups)).await;
        in_force(&|| {
            let rows = access.rows();
            rows.memberships.iter().any(|m| m.group_name == "sre")
        })
        .await;
    }

    #[test]
    fn claims_are_read_as_far_as_they_can_be_trusted() {
        let claims = serde_json::json!({
            "sub": "7", "preferred_username": "ana", "email": "ana@example.com", "email_verified": false,
            "groups": ["sre", "a b", "sre", 7], "roles": "one two",
        });
        let claims = claims.as_object().unwrap();
        let said = Said::of("https://id.example.com", claims, "groups").unwrap();
        assert_eq!(said.groups, ["sre"]);
        assert_eq!((said.name.as_deref(), said.email), (Some("ana"), None));
        let said = Said::of("https://id.example.com", claims, "roles").unwrap();
        assert_eq!(said.groups, ["one", "two"]);
        assert_eq!(Said::of("x", &Map::new(), "groups"), None);
    }
}
