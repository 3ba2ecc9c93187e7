//! Access tokens of an OpenID provider: this server as an OAuth 2.1 resource server.
//!
//! Source: MCP authorization (2025-11-25 and 2026-07-28), RFC 9068, RFC 9728, RFC 6750.

use std::sync::Arc;

use serde_json::{Map, Value, json};

use super::fetch::Fetch;
use super::keys::{Keys, Unbelieved};
use super::{Arrivals, NotHere, Said, listed};
use crate::access::{Access, Action, Actor, Denied, Need, Role, Scope};

/// How access tokens are read.
#[derive(Debug, Clone)]
pub struct Settings {
    /// Who makes them.
    pub issuer: String,
    /// Whom they are for, as they say.
    pub audience: String,
    /// The claim that lists groups.
    pub groups_claim: String,
    /// The most that a scope lets do.
    pub scopes: Vec<(String, Role)>,
}

/// Why an access token lets nobody in.
#[derive(Debug)]
pub enum Refused {
    /// It is not good; one line.
    Token(String),
    /// It was good, and its time is over.
    Over,
    /// It has no scope of this server.
    Scope,
    /// Its owner is not let in.
    Denied(Denied),
    /// Whether it is good cannot be found out now; one line.
    Unavailable(String),
}

/// Takes access tokens.
#[derive(Debug)]
pub struct Bearers {
    settings: Settings,
    keys: Keys,
    access: Arc<Access>,
    arrivals: Arrivals,
    /// The address of this server, e.g. `https://prompts.example.com`.
    url: String,
}

/// Whether a credential looks like a JSON Web Token.
pub fn is_jwt(token: &str) -> bool {
    token.starts_with("eyJ") && token.bytes().filter(|byte| *byte == b'.').count() == 2
}

impl Bearers {
    /// Takes the tokens of one provider.
    pub fn new(
        settings: Settings,
        access: Arc<Access>,
        arrivals: Arrivals,
        url: &str,
    ) -> anyhow::Result<Self> {
        let keys = Keys::new(&settings.issuer, Fetch::new()?);
        Ok(Self {
            settings,
            keys,
            access,
            arrivals,
            url: url.to_owned(),
        })
    }

    /// Whom an access token lets in.
    pub async fn actor(&self, token: &str, peer: Option<&str>) -> Result<Actor, Refused> {
        let audience = &*self.settings.audience;
        let claims = self
            .keys
            .believe(token, &[audience], &["exp", "iss", "aud", "sub"])
            .await
            .map_err(|error| match error {
                Unbelieved::Token(why) => Refused::Token(why.to_owned()),
                Unbelieved::Over => Refused::Over,
                Unbelieved::Unreachable(error) => {
                    tracing::error!(%error, "an access token could not be verified");
                    Refused::Unavailable(error.to_string())
                }
            })?;
        let most = self.most(&claims).ok_or(Refused::Scope)?;
        let said = Said::of(&self.settings.issuer, &claims, &self.settings.groups_claim)
            .ok_or_else(|| Refused::Token("the token says nothing of whose it is".to_owned()))?;
        let expires = claims.get("exp").and_then(Value::as_u64).unwrap_or(0);
        let name = self
            .arrivals
            .find(&said, peer)
            .await
            .map_err(|error| match error {
                NotHere::Unknown => Refused::Denied(Denied::Unknown),
                NotHere::Store(error) => Refused::Unavailable(error.to_string()),
            })?;
        let scope = Scope {
            role: Some(most),
            patterns: Vec::new(),
        };
        self.access
            .by_bearer(&name, &said.groups, scope, expires)
            .map_err(Refused::Denied)
    }

    /// The most that the scopes of a token let do; none where none of them is ours.
    fn most(&self, claims: &Map<String, Value>) -> Option<Role> {
        let given = listed(claims.get("scope")).chain(listed(claims.get("scp")));
        given
            .filter_map(|scope| self.settings.scopes.iter().find(|(own, _)| own == scope))
            .map(|(_, role)| *role)
            .max()
    }

    /// The scope that would be needed, where it is the scope of the token alone that is missing.
    pub fn missing_scope(&self, actor: &Actor, need: Need) -> Option<&str> {
        let role = match need {
            Need::Somewhere(action) | Need::Everywhere(action) => action.needs(),
            Need::Nothing | Need::Known => return None,
        };
        if !need.met_by(&actor.with_any_scope()) {
            return None;
        }
        self.scope_of(role)
    }

    /// The least scope that lets a role do what it may.
    pub fn scope_of(&self, role: Role) -> Option<&str> {
        self.settings
            .scopes
            .iter()
            .filter(|(_, own)| *own >= role)
            .min_by_key(|(_, own)| *own)
            .map(|(scope, _)| &**scope)
    }

    /// The scope that a client needs at the least.
    pub fn least_scope(&self) -> Option<&str> {
        self.scope_of(Action::Read.needs())
    }

    /// Where clients read who makes tokens for this server.
    pub fn metadata_url(&self) -> String {
        format!("{}/.well-known/oauth-protected-resource/mcp", self.url)
    }

    /// What they read there (RFC 9728).
    pub fn metadata(&self) -> Value {
        let scopes: Vec<&str> = self.settings.scopes.iter().map(|(s, _)| &**s).collect();
        json!({
            "resource": self.settings.audience,
            "authorization_servers": [self.settings.issuer],
            "scopes_supported": scopes,
            "bearer_methods_supported": ["header"],
            "resource_name": "Cuebook",
        })
    }
}
