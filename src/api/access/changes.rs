//! Changes of who may do what, each run to its end: a client that hangs up must not leave one in the database that is not
//! in force, or not in the audit.

use axum::http::StatusCode;

use super::desk::{Desk, Made, Newcomer, TokenAsk};
use crate::access::By;
use crate::api::Refusal;

/// Runs a change to its end, whoever waits for it.
pub(super) async fn whole<T, E>(
    change: impl Future<Output = Result<T, E>> + Send + 'static,
) -> Result<T, E>
where
    T: Send + 'static,
    E: From<Refusal> + Send + 'static,
{
    match tokio::spawn(change).await {
        Ok(changed) => changed,
        Err(error) => {
            tracing::error!(%error, "a change of access was cut");
            Err(E::from(Refusal::new(
                StatusCode::SERVICE_UNAVAILABLE,
                "the change was cut; look whether it was made, and try again",
            )))
        }
    }
}

impl Desk {
    /// Adds a person or a service; gives the name as it is kept.
    pub async fn add(&self, by: &By, newcomer: &Newcomer) -> Result<String, Refusal> {
        let (desk, by, newcomer) = (self.clone(), by.clone(), newcomer.clone());
        whole(async move { desk.add_one(&by, &newcomer).await }).await
    }

    /// Lets nobody in by any credential of somebody, or lets them in again.
    pub async fn set_disabled(&self, by: &By, who: &str, disabled: bool) -> Result<(), Refusal> {
        let (desk, by, who) = (self.clone(), by.clone(), who.to_owned());
        whole(async move { desk.disable_now(&by, &who, disabled).await }).await
    }

    /// Puts people into a group and takes others out of it.
    pub async fn change_group(
        &self,
        by: &By,
        group: &str,
        add: &[String],
        remove: &[String],
    ) -> Result<(), Refusal> {
        let (desk, by, group) = (self.clone(), by.clone(), group.to_owned());
        let (add, remove) = (add.to_vec(), remove.to_vec());
        whole(async move { desk.group_now(&by, &group, &add, &remove).await }).await
    }

    /// Gives a role at a path; whether it was not given before.
    pub async fn give(&self, by: &By, who: &str, asked: &str, path: &str) -> Result<bool, Refusal> {
        let (desk, by, who) = (self.clone(), by.clone(), who.to_owned());
        let (asked, path) = (asked.to_owned(), path.to_owned());
        whole(async move { desk.give_now(&by, &who, &asked, &path).await }).await
    }

    /// Takes a role at a path away; whether it was there.
    pub async fn take(&self, by: &By, who: &str, asked: &str, path: &str) -> Result<bool, Refusal> {
        let (desk, by, who) = (self.clone(), by.clone(), who.to_owned());
        let (asked, path) = (asked.to_owned(), path.to_owned());
        whole(async move { desk.take_now(&by, &who, &asked, &path).await }).await
    }

    /// Makes a token, of who asks or, for an admin, of somebody else. It may do at most what its maker's credential may.
    pub async fn make_token(&self, by: &By, ask: &TokenAsk) -> Result<Made, Refusal> {
        let (desk, by, ask) = (self.clone(), by.clone(), ask.clone());
        whole(async move { desk.token_now(&by, &ask).await }).await
    }

    /// Revokes a token, one's own or, for an admin, anybody's; what it has open ends.
    pub async fn revoke_token(&self, by: &By, prefix: &str) -> Result<(), Refusal> {
        let (desk, by, prefix) = (self.clone(), by.clone(), prefix.to_owned());
        whole(async move { desk.revoke_now(&by, &prefix).await }).await
    }

    /// Ends a session, one's own or, for an admin, anybody's.
    pub async fn end_session(&self, by: &By, id: &str) -> Result<(), Refusal> {
        let (desk, by, id) = (self.clone(), by.clone(), id.to_owned());
        whole(async move { desk.end_now(&by, &id).await }).await
    }
}
