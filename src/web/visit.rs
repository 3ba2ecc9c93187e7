//! Who looks at a page, in which language, and how their browser wants it.

use std::convert::Infallible;
use std::sync::Arc;

use axum::extract::FromRequestParts;
use axum::http::HeaderMap;
use axum::http::request::Parts;

use super::Web;
use super::text::{Lang, Query};
use super::told::lang_of;
use crate::access::{Action, Actor, Credential};
use crate::catalog::Catalog;
use crate::http::RequestId;

/// What a page knows of the request for it.
#[derive(Debug, Clone)]
pub struct Visit {
    /// Who asks.
    pub actor: Actor,
    /// The language they read.
    pub lang: Lang,
    /// The path that was asked for, e.g. `/prompts/incident-triage`.
    pub path: Arc<str>,
    /// What stands behind the `?`, decoded; the last of one name counts.
    pub query: Query,
    /// What a form's token is bound to: the session, or `local`.
    pub session: Arc<str>,
    /// Names the request in the log.
    pub request_id: Arc<str>,
    /// The headers.
    pub headers: HeaderMap,
}

impl Visit {
    /// Whether a path of the repository may be read.
    pub fn reads(&self, path: &str) -> bool {
        reads(&self.actor, path)
    }

    /// A catalog as who asks sees it: what they may not read looks like what is not there.
    pub fn catalog(&self, whole: &Arc<Catalog>) -> Arc<Catalog> {
        if self.actor.sees_all() {
            return whole.clone();
        }
        Arc::new(whole.seen(|path| self.reads(path)))
    }

    /// Whether a form came from a page of ours, seen in this session.
    pub fn sent(&self, web: &Web, token: &str) -> bool {
        web.csrf.is_good(&self.session, token)
    }

    /// The same visit by an actor who was found out later.
    #[must_use]
    pub(super) fn by(self, actor: Actor) -> Self {
        Self {
            session: session(&actor),
            actor,
            ..self
        }
    }

    /// What is known of a request before its body is read.
    pub fn of(parts: &Parts) -> Self {
        let actor = parts
            .extensions
            .get::<Actor>()
            .cloned()
            .unwrap_or_else(Actor::nobody);
        Self {
            lang: lang_of(&parts.headers),
            path: parts.uri.path().into(),
            query: Query::of(parts.uri.query().unwrap_or_default()),
            session: session(&actor),
            request_id: parts
                .extensions
                .get::<RequestId>()
                .map_or_else(|| "".into(), |id| id.0.clone()),
            headers: parts.headers.clone(),
            actor,
        }
    }
}

/// What a form's token is bound to for an actor.
fn session(actor: &Actor) -> Arc<str> {
    match actor.credential() {
        Some(Credential::Session(id)) => id.clone(),
        _ => "local".into(),
    }
}

/// Whether an actor may read a path of the repository.
pub fn reads(actor: &Actor, path: &str) -> bool {
    actor.may(Action::Read, path)
}

impl FromRequestParts<Web> for Visit {
    type Rejection = Infallible;

    async fn from_request_parts(parts: &mut Parts, _: &Web) -> Result<Self, Infallible> {
        Ok(Self::of(parts))
    }
}
