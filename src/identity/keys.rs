//! The keys of a provider: found by its metadata, kept, and read again when it rotates them; and tokens signed with them.

use std::collections::HashSet;
use std::sync::Arc;
use std::time::{Duration, Instant};

use arc_swap::ArcSwapOption;
use jsonwebtoken::jwk::{Jwk, JwkSet, KeyAlgorithm, PublicKeyUse};
use jsonwebtoken::{Algorithm, DecodingKey, Validation, decode, decode_header};
use serde::Deserialize;
use serde_json::{Map, Value};
use tokio::sync::Mutex;
use tokio::time::timeout;

use super::fetch::Fetch;
use super::{ASKING, AWAY, LATE, SKEW_SECONDS, Unreachable};

/// Signatures that are believed. None with a shared secret: the key that everybody may read would be one.
const ALGORITHMS: [Algorithm; 4] = [
    Algorithm::RS256,
    Algorithm::PS256,
    Algorithm::ES256,
    Algorithm::EdDSA,
];
/// Time after which keys are read again although nothing is missing.
const FRESH: Duration = Duration::from_hours(1);
/// Time between two readings because of a key that is not known: who makes one up must not make us ask.
const APART: Duration = Duration::from_secs(30);
/// Longest token, in bytes.
const MAX_TOKEN: usize = 12 * 1024;

/// Why a token is not believed.
#[derive(Debug, thiserror::Error)]
pub(super) enum Unbelieved {
    /// It is not one of this provider, or not for this server, or not now.
    #[error("{0}")]
    Token(&'static str),
    /// It was one, and its time is over.
    #[error("the token has expired")]
    Over,
    /// Whether it is cannot be found out now.
    #[error(transparent)]
    Unreachable(#[from] Unreachable),
}

#[derive(Debug)]
struct Kept {
    keys: Vec<Jwk>,
    read: Instant,
}

/// The keys of one provider.
#[derive(Debug)]
pub(super) struct Keys {
    issuer: String,
    fetch: Fetch,
    kept: ArcSwapOption<Kept>,
    /// Held by who reads them; nobody who knows the key waits for it. When that failed last while there were no keys.
    reading: Mutex<Option<(Instant, Unreachable)>>,
}

#[derive(Deserialize)]
struct Metadata {
    issuer: String,
    jwks_uri: String,
}

/// Where a provider's metadata may stand (OpenID Connect Discovery 1.0, section 4; RFC 8414, section 3).
fn places(issuer: &str) -> Vec<String> {
    let plain = issuer.trim_end_matches('/');
    let mut places = vec![format!("{plain}/.well-known/openid-configuration")];
    if let Some((scheme, rest)) = plain.split_once("://") {
        let (host, path) = rest.split_once('/').unwrap_or((rest, ""));
        let path = if path.is_empty() {
            String::new()
        } else {
            format!("/{path}")
        };
        places.push(format!(
            "{scheme}://{host}/.well-known/oauth-authorization-server{path}"
        ));
    }
    places
}

impl Keys {
    pub(super) fn new(issuer: &str, fetch: Fetch) -> Self {
        Self {
            issuer: issuer.to_owned(),
            fetch,
            kept: ArcSwapOption::empty(),
            reading: Mutex::default(),
        }
    }

    #[allow(clippy::needless_pass_by_value, reason = "as map_err gives it")]
    fn unreachable(&self, reason: impl ToString) -> Unreachable {
        Unreachable {
            issuer: self.issuer.clone(),
            reason: reason.to_string(),
        }
    }

    async fn read(&self) -> Result<Vec<Jwk>, Unreachable> {
        let mut last = self.unreachable("it has no metadata");
        for place in places(&self.issuer) {
            let text = match self.fetch.get(&place).await {
                Ok(text) => text,
                Err(error) => {
                    last = self.unreachable(error);
                    continue;
                }
            };
            let metadata: Metadata =
                serde_json::from_slice(&text).map_err(|error| self.unreachable(error))?;
            if metadata.issuer != self.issuer {
                return Err(self.unreachable(format!(
                    "its metadata calls it {}; set the issuer to exactly that",
                    metadata.issuer
                )));
            }
            let keys = self
                .fetch
                .get(&metadata.jwks_uri)
                .await
                .map_err(|error| self.unreachable(error))?;
            let keys: JwkSet =
                serde_json::from_slice(&keys).map_err(|error| self.unreachable(error))?;
            return Ok(keys.keys);
        }
        Err(last)
    }

    /// The keys that may have signed what names this one; read again where none fits.
    async fn fitting(
        &self,
        key_id: Option<&str>,
        algorithm: Algorithm,
    ) -> Result<Vec<Jwk>, Unreachable> {
        let find = |kept: &Kept| -> Vec<Jwk> {
            let fits = |key: &&Jwk| fits(key, key_id, algorithm);
            kept.keys.iter().filter(fits).cloned().collect()
        };
        // what is known, unless it is time to read again
        let known = || {
            let kept = self.kept.load_full()?;
            let found = find(&kept);
            let age = kept.read.elapsed();
            (age < APART || (!found.is_empty() && age < FRESH)).then_some(found)
        };
        if let Some(found) = known() {
            return Ok(found);
        }
        let stale = self.kept.load_full().map(|kept| find(&kept));
        let mut failed = match self.reading.try_lock() {
            Ok(reading) => reading,
            Err(_) => match stale {
                Some(found) if !found.is_empty() => return Ok(found),
                _ => timeout(ASKING, self.reading.lock())
                    .await
                    .map_err(|_| self.unreachable(LATE))?,
            },
        };
        if let Some(found) = known() {
            return Ok(found);
        }
        if let Some((at, error)) = &*failed
            && at.elapsed() < AWAY
        {
            return Err(error.clone());
        }
        let asked = timeout(ASKING, self.read()).await;
        let keys = match asked.unwrap_or_else(|_| Err(self.unreachable(LATE))) {
            Ok(keys) => keys,
            Err(error) => {
                // what was read before stays good while the provider is away
                let Some(kept) = self.kept.load_full() else {
                    *failed = Some((Instant::now(), error.clone()));
                    return Err(error);
                };
                tracing::warn!(%error, "the keys that were read before are used");
                kept.keys.clone()
            }
        };
        let kept = Arc::new(Kept {
            keys,
            read: Instant::now(),
        });
        self.kept.store(Some(kept.clone()));
        Ok(find(&kept))
    }

    /// The claims of a token that this provider has signed for one of these audiences, and that is valid now.
    pub(super) async fn believe(
        &self,
        token: &str,
        audiences: &[&str],
        required: &[&str],
    ) -> Result<Map<String, Value>, Unbelieved> {
        if token.len() > MAX_TOKEN {
            return Err(Unbelieved::Token("the token is too long"));
        }
        let header = decode_header(token).map_err(|_| {
            Unbelieved::Token("the token cannot be read, or is signed in no way that is taken here")
        })?;
        if !ALGORITHMS.contains(&header.alg) {
            return Err(Unbelieved::Token(
                "the token is signed in a way that is not taken here",
            ));
        }
        let keys = self.fitting(header.kid.as_deref(), header.alg).await?;
        let mut validation = Validation::new(header.alg);
        validation.leeway = SKEW_SECONDS;
        validation.validate_nbf = true;
        validation.set_issuer(&[&self.issuer]);
        validation.set_audience(audiences);
        validation.required_spec_claims = required
            .iter()
            .map(ToString::to_string)
            .collect::<HashSet<_>>();
        let mut why = Unbelieved::Token("no key of the provider has signed the token");
        for key in keys {
            let Ok(key) = DecodingKey::from_jwk(&key) else {
                continue;
            };
            match decode::<Map<String, Value>>(token, &key, &validation) {
                Ok(data) => return Ok(data.claims),
                Err(error) => why = reason(&error),
            }
        }
        Err(why)
    }
}

/// Whether a key may have made a signature.
fn fits(key: &Jwk, key_id: Option<&str>, algorithm: Algorithm) -> bool {
    let common = &key.common;
    let named = match (key_id, &common.key_id) {
        (Some(wanted), Some(own)) => wanted == own,
        (Some(_), None) => false,
        (None, _) => true,
    };
    let signs = !matches!(&common.public_key_use, Some(used) if *used != PublicKeyUse::Signature);
    let own = common.key_algorithm.is_none_or(|own| {
        own == match algorithm {
            Algorithm::RS256 => KeyAlgorithm::RS256,
            Algorithm::PS256 => KeyAlgorithm::PS256,
            Algorithm::ES256 => KeyAlgorithm::ES256,
            _ => KeyAlgorithm::EdDSA,
        }
    });
    named && signs && own
}

fn reason(error: &jsonwebtoken::errors::Error) -> Unbelieved {
    use jsonwebtoken::errors::ErrorKind;
    Unbelieved::Token(match error.kind() {
        // the signature was looked at first
        ErrorKind::ExpiredSignature => return Unbelieved::Over,
        ErrorKind::ImmatureSignature => "the token is not valid yet",
        ErrorKind::InvalidIssuer => "the token is from another issuer",
        ErrorKind::InvalidAudience => "the token is for another audience",
        ErrorKind::MissingRequiredClaim(_) => "the token lacks a claim that is needed",
        ErrorKind::InvalidSignature => "the signature of the token is wrong",
        _ => "the token cannot be verified",
    })
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::{AtomicUsize, Ordering};

    use super::*;

    #[tokio::test]
    async fn a_provider_that_cannot_be_asked_is_not_asked_for_each_request() {
        let asked = Arc::new(AtomicUsize::new(0));
        let count = asked.clone();
        let router = axum::Router::new().fallback(move || {
            let count = count.clone();
            async move {
                count.fetch_add(1, Ordering::SeqCst);
                axum::http::StatusCode::INTERNAL_SERVER_ERROR
            }
        });
        let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
        let issuer = format!("http://{}", listener.local_addr().unwrap());
        tokio::spawn(async move { axum::serve(listener, router).await });
        let keys = Keys::new(&issuer, Fetch::new().unwrap());
        for _ in 0..5 {
            let refused = keys.fitting(None, Algorithm::ES256).await.unwrap_err();
            assert!(refused.reason.contains("500"), "{refused}");
        }
        // once at each of the places
        assert_eq!(asked.load(Ordering::SeqCst), places(&issuer).len());
    }

    #[test]
    fn metadata_is_looked_for_where_both_standards_put_it() {
        assert_eq!(
            places("https://id.example.com/realms/a/"),
            [
                "https://id.example.com/realms/a/.well-known/openid-configuration",
                "https://id.example.com/.well-known/oauth-authorization-server/realms/a",
            ]
        );
        assert_eq!(
            places("https://id.example.com")[1],
            "https://id.example.com/.well-known/oauth-authorization-server"
        );
    }
}
