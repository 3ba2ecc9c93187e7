//! Tags of the lists of who may do what: each changes with what its list says, and not with when something was used last.

use super::desk::Desk;
use crate::access::{Action, Actor, By};
use crate::api::Refusal;
use crate::api::tag::{tag_of, unchanged};
use crate::store::AccessRows;

/// A list.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Of {
    /// People and services, with their groups and whether they are admins.
    People,
    /// Groups.
    Groups,
    /// Grants.
    Grants,
    /// Tokens.
    Tokens,
    /// Sessions.
    Sessions,
}

/// Whether an actor is shown what lets somebody in.
pub(super) fn shows(actor: &Actor, principal: &str) -> bool {
    *actor.name == *principal || actor.may(Action::Administer, "")
}

impl Of {
    /// The tag of what an actor is shown of it as it is: what lets others in is shown to admins alone.
    pub(super) fn tag(self, rows: &AccessRows, actor: &Actor) -> String {
        let people = rows.principals.iter().map(|row| {
            let password = row.password.is_some();
            (
                &row.name,
                &row.kind,
                &row.email,
                &row.subject,
                password,
                row.disabled,
            )
        });
        let members = rows.memberships.iter();
        let members = members.map(|row| (&row.group_name, &row.principal, &row.source));
        let grants = rows.grants.iter();
        let grants = grants.map(|row| (&row.who, &row.role, &row.pattern));
        let shown = |principal: &str| shows(actor, principal);
        let tokens = rows.tokens.iter();
        let tokens = tokens.filter(|row| shown(&row.principal));
        let tokens = tokens.map(|row| (&row.prefix, &row.revoked_at, &row.expires_at));
        let sessions = rows.sessions.iter();
        let sessions = sessions.filter(|row| shown(&row.principal));
        let sessions = sessions.map(|row| &row.id);
        match self {
            Self::People => tag_of(&(
                people.collect::<Vec<_>>(),
                members.collect::<Vec<_>>(),
                grants.collect::<Vec<_>>(),
            )),
            Self::Groups => tag_of(&members.collect::<Vec<_>>()),
            Self::Grants => tag_of(&grants.collect::<Vec<_>>()),
            Self::Tokens => tag_of(&tokens.collect::<Vec<_>>()),
            Self::Sessions => tag_of(&sessions.collect::<Vec<_>>()),
        }
    }
}

impl Desk {
    /// The same for a caller who says which tag of a list they have seen; none where they say nothing.
    pub(super) fn seen(mut self, of: Of, tag: Option<String>) -> Self {
        self.seen = tag.map(|tag| (of, tag));
        self
    }

    /// Refuses a change where what the caller has seen is not so any more; whoever asks holds the lock of changes.
    pub(super) fn unchanged(&self, by: &By, rows: &AccessRows) -> Result<(), Refusal> {
        match &self.seen {
            Some((of, seen)) => unchanged(Some(seen), &of.tag(rows, &by.actor)),
            None => Ok(()),
        }
    }
}
