//! Settings of who is let in, and how.

use super::Secret;
use super::keys::{Key, flag, hidden, number, secret, secret_file};
use crate::access::Role;
use crate::identity::{bearer, login};

/// Scopes of access tokens, and the most that each lets do, unless the settings say.
const SCOPES: [(&str, Role); 5] = [
    ("cuebook:read", Role::Reader),
    ("cuebook:propose", Role::Author),
    ("cuebook:review", Role::Reviewer),
    ("cuebook:publish", Role::Publisher),
    ("cuebook:admin", Role::Admin),
];

/// Who is let in.
#[derive(Debug, Clone)]
pub struct AccessConfig {
    /// Whether callers must say who they are.
    pub enabled: bool,
    /// A browser that nobody uses for so long is signed out.
    pub session_idle_hours: u32,
    /// A browser is signed out after so long, used or not.
    pub session_days: u32,
    /// Days after which a token ends that says nothing else.
    pub token_days: u32,
    /// Whose access tokens are taken; none where none are.
    pub oauth_issuer: Option<String>,
    /// Whom they are for; unset, the MCP endpoint at the public address.
    pub oauth_audience: Option<String>,
    /// The most that each of their scopes lets do.
    pub scopes: Vec<(String, Role)>,
    /// The claim that lists groups.
    pub groups_claim: String,
    /// Whether somebody whom the provider knows is made known at the first use.
    pub auto_create: bool,
    /// Whom people sign in with; none where they do so with a password alone.
    pub oidc_issuer: Option<String>,
    /// What this server is called there.
    pub oidc_client_id: Option<String>,
    /// The secret that goes with it.
    pub oidc_client_secret: Option<Secret>,
    /// What is asked of the provider besides `openid`.
    pub oidc_scopes: Vec<String>,
}

impl AccessConfig {
    /// How access tokens are read, where they are; `url` is the address of this server.
    pub fn bearers(&self, url: &str) -> Option<bearer::Settings> {
        let audience = self.oauth_audience.clone();
        Some(bearer::Settings {
            issuer: self.oauth_issuer.clone()?,
            audience: audience.unwrap_or_else(|| format!("{url}/mcp")),
            groups_claim: self.groups_claim.clone(),
            scopes: self.scopes.clone(),
        })
    }

    /// How people sign in with a provider, where they do.
    pub fn login(&self) -> anyhow::Result<Option<login::Settings>> {
        let Some(issuer) = self.oidc_issuer.clone() else {
            return Ok(None);
        };
        let Some(client_id) = self.oidc_client_id.clone() else {
            anyhow::bail!(
                "access.oidc_issuer is set and access.oidc_client_id is not; set it to the name that the provider has given \
                 this server"
            );
        };
        Ok(Some(login::Settings {
            issuer,
            client_id,
            client_secret: self
                .oidc_client_secret
                .as_ref()
                .map(|secret| secret.0.clone()),
            scopes: self.oidc_scopes.clone(),
            groups_claim: self.groups_claim.clone(),
        }))
    }
}

/// The address of a provider.
fn provider(value: &str) -> Result<Option<String>, String> {
    if value.is_empty() || crate::identity::is_provider(value) {
        return Ok(some(value));
    }
    Err("must be the https address of an OpenID provider, exactly as its metadata has it".into())
}

/// A text; none where it is empty.
fn some(value: &str) -> Option<String> {
    (!value.is_empty()).then(|| value.to_owned())
}

fn words(value: &str) -> Vec<String> {
    value
        .split([',', ' '])
        .filter(|word| !word.is_empty())
        .map(str::to_owned)
        .collect()
}

impl Default for AccessConfig {
    fn default() -> Self {
        Self {
            enabled: false,
            session_idle_hours: 12,
            session_days: 30,
            token_days: 90,
            oauth_issuer: None,
            oauth_audience: None,
            scopes: SCOPES
                .iter()
                .map(|(scope, role)| ((*scope).to_owned(), *role))
                .collect(),
            groups_claim: "groups".into(),
            auto_create: true,
            oidc_issuer: None,
            oidc_client_id: None,
            oidc_client_secret: None,
            oidc_scopes: vec!["profile".into(), "email".into()],
        }
    }
}

/// Every setting of them, in the order in which they are shown.
pub(super) static KEYS: &[Key] = &[
    Key {
        name: "access.enabled",
        meaning: "whether callers must say who they are; needed to listen on a network",
        set: |c, value| {
            c.access.enabled = flag(value)?;
            Ok(())
        },
        get: |c| c.access.enabled.to_string(),
    },
    Key {
        name: "access.session_idle_hours",
        meaning: "a browser that nobody uses for so long is signed out",
        set: |c, value| {
            c.access.session_idle_hours = number(value, 1, 8760)?;
            Ok(())
        },
        get: |c| c.access.session_idle_hours.to_string(),
    },
    Key {
        name: "access.session_days",
        meaning: "a browser is signed out after so long, used or not",
        set: |c, value| {
            c.access.session_days = number(value, 1, 366)?;
            Ok(())
        },
        get: |c| c.access.session_days.to_string(),
    },
    Key {
        name: "access.token_days",
        meaning: "days after which a token ends that says nothing else",
        set: |c, value| {
            c.access.token_days = number(value, 1, 366)?;
            Ok(())
        },
        get: |c| c.access.token_days.to_string(),
    },
    Key {
        name: "access.oauth_issuer",
        meaning: "OpenID provider whose access tokens (JWT) are taken",
        set: |c, value| {
            c.access.oauth_issuer = provider(value)?;
            Ok(())
        },
        get: |c| c.access.oauth_issuer.clone().unwrap_or_default(),
    },
    Key {
        name: "access.oauth_audience",
        meaning: "whom its access tokens must be for; not set: the public address with /mcp",
        set: |c, value| {
            c.access.oauth_audience = some(value);
            Ok(())
        },
        get: |c| c.access.oauth_audience.clone().unwrap_or_default(),
    },
    Key {
        name: "access.scopes",
        meaning: "scopes of access tokens, each with the role that it lets have at most",
        set: |c, value| {
            let mut scopes = Vec::new();
            for word in words(value) {
                let pair = word.split_once('=');
                let (scope, role) = pair
                    .and_then(|(scope, role)| Some((scope, Role::parse(role)?)))
                    .ok_or(
                        "must be a list such as cuebook:read=reader,cuebook:publish=publisher",
                    )?;
                scopes.push((scope.to_owned(), role));
            }
            c.access.scopes = scopes;
            Ok(())
        },
        get: |c| {
            let pairs = c.access.scopes.iter();
            let texts: Vec<String> = pairs
                .map(|(scope, role)| format!("{scope}={role}"))
                .collect();
            texts.join(",")
        },
    },
    Key {
        name: "access.groups_claim",
        meaning: "claim of tokens that lists somebody's groups",
        set: |c, value| {
            value.clone_into(&mut c.access.groups_claim);
            Ok(())
        },
        get: |c| c.access.groups_claim.clone(),
    },
    Key {
        name: "access.auto_create",
        meaning: "whether somebody whom the provider knows is made known at the first use",
        set: |c, value| {
            c.access.auto_create = flag(value)?;
            Ok(())
        },
        get: |c| c.access.auto_create.to_string(),
    },
    Key {
        name: "access.oidc_issuer",
        meaning: "OpenID provider with which people sign in to the web pages",
        set: |c, value| {
            c.access.oidc_issuer = provider(value)?;
            Ok(())
        },
        get: |c| c.access.oidc_issuer.clone().unwrap_or_default(),
    },
    Key {
        name: "access.oidc_client_id",
        meaning: "what this server is called there",
        set: |c, value| {
            c.access.oidc_client_id = some(value);
            Ok(())
        },
        get: |c| c.access.oidc_client_id.clone().unwrap_or_default(),
    },
    Key {
        name: "access.oidc_client_secret",
        meaning: "the secret that goes with it",
        set: |c, value| {
            c.access.oidc_client_secret = secret(value);
            Ok(())
        },
        get: |c| hidden(c.access.oidc_client_secret.as_ref()),
    },
    Key {
        name: "access.oidc_client_secret_file",
        meaning: "file that holds the secret",
        set: |c, value| {
            c.access.oidc_client_secret = secret_file(value)?;
            Ok(())
        },
        get: |c| hidden(c.access.oidc_client_secret.as_ref()),
    },
    Key {
        name: "access.oidc_scopes",
        meaning: "what is asked of the provider besides openid",
        set: |c, value| {
            c.access.oidc_scopes = words(value);
            Ok(())
        },
        get: |c| c.access.oidc_scopes.join(","),
    },
];
