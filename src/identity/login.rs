//! Signing in with an OpenID provider: the code flow with PKCE, state and nonce, and the provider's word that it is over.
//!
//! Source: OpenID Connect Core 1.0, RFC 7636, OpenID Connect Back-Channel Logout 1.0.

use std::sync::Arc;
use std::time::{Duration, Instant};

use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use hmac::{Hmac, KeyInit as _, Mac as _};
use openidconnect::core::{
    CoreAuthenticationFlow, CoreClient, CoreJwsSigningAlgorithm, CoreProviderMetadata,
};
use openidconnect::{
    AuthorizationCode, ClientId, ClientSecret, CsrfToken, IssuerUrl, Nonce, PkceCodeChallenge,
    PkceCodeVerifier, RedirectUrl, Scope, TokenResponse as _,
};
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};
use sha2::Sha256;
use tokio::sync::Mutex;
use tokio::time::timeout;

use super::fetch::{Fetch, FetchError};
use super::keys::{Keys, Unbelieved};
use super::{ASKING, AWAY, LATE, Said, Unreachable};
use crate::access::secret;
use crate::clock::unix_seconds;

/// Time for which somebody may be away at the provider, in seconds.
pub const AWAY_SECONDS: u64 = 600;
/// Time after which the provider's metadata is read again.
const FRESH: Duration = Duration::from_hours(1);
/// What a logout token says that it is.
const LOGOUT: &str = "http://schemas.openid.net/event/backchannel-logout";

/// How people sign in.
#[derive(Debug, Clone)]
pub struct Settings {
    /// The provider.
    pub issuer: String,
    /// What this server is called there.
    pub client_id: String,
    /// The secret that goes with it; none for a public client.
    pub client_secret: Option<String>,
    /// What is asked of the provider, besides `openid`.
    pub scopes: Vec<String>,
    /// The claim that lists groups.
    pub groups_claim: String,
}

/// Why nobody is signed in.
#[derive(Debug, thiserror::Error)]
pub enum LoginError {
    /// What came back is not what was begun here.
    #[error("this sign-in was not begun here, or too long ago; begin again")]
    NotOurs,
    /// The provider says no.
    #[error("the provider says: {0}")]
    Provider(String),
    /// It says what is not believed.
    #[error("what the provider says cannot be verified: {0}")]
    Unbelieved(String),
    /// It cannot be asked.
    #[error(transparent)]
    Unreachable(#[from] Unreachable),
}

/// What is kept in the browser between leaving and coming back: signed, and for ten minutes.
#[derive(Debug, Serialize, Deserialize)]
struct Away {
    state: String,
    nonce: String,
    verifier: String,
    /// Where to go afterwards.
    next: String,
    until: u64,
}

/// Somebody who has come back.
#[derive(Debug)]
pub struct Came {
    /// What the provider says of them.
    pub said: Said,
    /// Its own name of their session.
    pub session: Option<String>,
    /// Where they wanted to go.
    pub next: String,
}

/// What a provider says is over.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Over {
    /// One session, by the provider's name of it; none for all of somebody.
    pub session: Option<String>,
    /// Whose, by the provider's address and its name for them.
    pub subject: Option<String>,
}

/// The provider's metadata, or why it could not be asked for it.
type Asked = Result<Arc<CoreProviderMetadata>, Unreachable>;

/// Lets people sign in with a provider.
#[derive(Debug)]
pub struct Login {
    settings: Settings,
    /// Where the provider sends them back to.
    redirect: String,
    fetch: Fetch,
    keys: Keys,
    /// What it said when it was last asked, or why it could not be.
    metadata: Mutex<Option<(Instant, Asked)>>,
    /// Signs what is kept in the browser; of this process.
    key: [u8; 32],
}

impl Login {
    /// With one provider, for a server at this address.
    pub fn new(settings: Settings, url: &str) -> anyhow::Result<Self> {
        let fetch = Fetch::new()?;
        let mut key = [0; 32];
        getrandom::fill(&mut key)?;
        Ok(Self {
            keys: Keys::new(&settings.issuer, fetch.clone()),
            settings,
            redirect: format!("{url}/login/oidc/callback"),
            fetch,
            metadata: Mutex::default(),
            key,
        })
    }

    /// The name of the provider for people: its host.
    pub fn provider(&self) -> &str {
        let rest = self.settings.issuer.split("://").nth(1);
        rest.and_then(|rest| rest.split('/').next())
            .unwrap_or(&self.settings.issuer)
    }

    #[allow(clippy::needless_pass_by_value, reason = "as map_err gives it")]
    fn unreachable(&self, reason: impl ToString) -> Unreachable {
        Unreachable {
            issuer: self.settings.issuer.clone(),
            reason: reason.to_string(),
        }
    }

    async fn metadata(&self) -> Asked {
        let waited = timeout(ASKING, self.metadata.lock()).await;
        let mut kept = waited.map_err(|_| self.unreachable(LATE))?;
        if let Some((asked, said)) = &*kept
            && asked.elapsed() < if said.is_ok() { FRESH } else { AWAY }
        {
            return said.clone();
        }
        let issuer = IssuerUrl::new(self.settings.issuer.clone())
            .map_err(|error| self.unreachable(error))?;
        let send = self.send();
        let said = match timeout(ASKING, CoreProviderMetadata::discover_async(issuer, &send)).await
        {
            Ok(Ok(metadata)) => Ok(Arc::new(metadata)),
            Ok(Err(error)) => Err(self.unreachable(chain(&error))),
            Err(_) => Err(self.unreachable(LATE)),
        };
        *kept = Some((Instant::now(), said.clone()));
        said
    }

    /// How the crate asks the provider.
    fn send(
        &self,
    ) -> impl Fn(
        openidconnect::HttpRequest,
    ) -> futures_util::future::BoxFuture<
        'static,
        Result<openidconnect::HttpResponse, FetchError>,
    > {
        let fetch = self.fetch.clone();
        move |request| {
            let fetch = fetch.clone();
            Box::pin(async move { fetch.send(request).await })
        }
    }

    /// The address to send somebody to, and what their browser keeps meanwhile.
    pub async fn begin(&self, next: &str) -> Result<(String, String), LoginError> {
        let metadata = self.metadata().await?;
        let client = CoreClient::from_provider_metadata(
            (*metadata).clone(),
            ClientId::new(self.settings.client_id.clone()),
            None,
        )
        .set_redirect_uri(self.redirect()?);
        let (challenge, verifier) = PkceCodeChallenge::new_random_sha256();
        let random = || secret::random().map_err(|error| LoginError::Unbelieved(error.to_string()));
        let (state, nonce) = (random()?, random()?);
        let (for_state, for_nonce) = (state.clone(), nonce.clone());
        let mut request = client
            .authorize_url(
                CoreAuthenticationFlow::AuthorizationCode,
                move || CsrfToken::new(for_state),
                move || Nonce::new(for_nonce),
            )
            .set_pkce_challenge(challenge);
        for scope in &self.settings.scopes {
            request = request.add_scope(Scope::new(scope.clone()));
        }
        let (url, _, _) = request.url();
        let away = Away {
            state,
            nonce,
            verifier: verifier.into_secret(),
            next: next.to_owned(),
            until: unix_seconds() + AWAY_SECONDS,
        };
        Ok((url.to_string(), self.seal(&away)))
    }

    fn redirect(&self) -> Result<RedirectUrl, Unreachable> {
        RedirectUrl::new(self.redirect.clone()).map_err(|error| self.unreachable(error))
    }

    /// Somebody who comes back with a code, or with an error of the provider; `kept` is what their browser kept.
    pub async fn finish(
        &self,
        kept: &str,
        state: &str,
        answer: Result<&str, &str>,
    ) -> Result<Came, LoginError> {
        let away = self.open(kept).ok_or(LoginError::NotOurs)?;
        if away.until < unix_seconds() || secret::hash(&away.state) != secret::hash(state) {
            return Err(LoginError::NotOurs);
        }
        let code = answer.map_err(|error| {
            LoginError::Provider(
                error
                    .chars()
                    .filter(|c| !c.is_control())
                    .take(200)
                    .collect(),
            )
        })?;
        let metadata = self.metadata().await?;
        let client = CoreClient::from_provider_metadata(
            (*metadata).clone(),
            ClientId::new(self.settings.client_id.clone()),
            self.settings.client_secret.clone().map(ClientSecret::new),
        )
        .set_redirect_uri(self.redirect()?);
        let unbelieved = |error: &dyn std::error::Error| LoginError::Unbelieved(chain(error));
        let tokens = client
            .exchange_code(AuthorizationCode::new(code.to_owned()))
            .map_err(|error| unbelieved(&error))?
            .set_pkce_verifier(PkceCodeVerifier::new(away.verifier))
            .request_async(&self.send())
            .await
            .map_err(|error| unbelieved(&error))?;
        let id_token = tokens
            .id_token()
            .ok_or_else(|| LoginError::Unbelieved("it gave no ID token".to_owned()))?;
        let verifier = client.id_token_verifier().set_allowed_algs([
            CoreJwsSigningAlgorithm::RsaSsaPkcs1V15Sha256,
            CoreJwsSigningAlgorithm::RsaSsaPssSha256,
            CoreJwsSigningAlgorithm::EcdsaP256Sha256,
            CoreJwsSigningAlgorithm::EdDsa,
        ]);
        id_token
            .claims(&verifier, &Nonce::new(away.nonce))
            .map_err(|error| unbelieved(&error))?;
        let claims = claims(&id_token.to_string())
            .ok_or_else(|| LoginError::Unbelieved("its ID token has no claims".to_owned()))?;
        let said = Said::of(&self.settings.issuer, &claims, &self.settings.groups_claim)
            .ok_or_else(|| LoginError::Unbelieved("its ID token names nobody".to_owned()))?;
        Ok(Came {
            said,
            session: claims.get("sid").and_then(Value::as_str).map(str::to_owned),
            next: away.next,
        })
    }

    /// What a logout token says is over.
    pub async fn over(&self, token: &str) -> Result<Over, LoginError> {
        let claims = self
            .keys
            .believe(token, &[&self.settings.client_id], &["iss", "aud", "exp"])
            .await
            .map_err(|error| match error {
                Unbelieved::Token(why) => LoginError::Unbelieved(why.to_owned()),
                over @ Unbelieved::Over => LoginError::Unbelieved(over.to_string()),
                Unbelieved::Unreachable(error) => LoginError::Unreachable(error),
            })?;
        let event = claims.get("events").and_then(|events| events.get(LOGOUT));
        if event.is_none() || claims.contains_key("nonce") {
            return Err(LoginError::Unbelieved("this is no logout token".to_owned()));
        }
        let text = |claim: &str| claims.get(claim).and_then(Value::as_str);
        let over = Over {
            session: text("sid").map(str::to_owned),
            subject: text("sub").map(|sub| format!("{} {sub}", self.settings.issuer)),
        };
        if over.session.is_none() && over.subject.is_none() {
            return Err(LoginError::Unbelieved("it names no session".to_owned()));
        }
        Ok(over)
    }

    fn proof(&self, text: &str) -> Option<Hmac<Sha256>> {
        let mut mac = Hmac::<Sha256>::new_from_slice(&self.key).ok()?;
        mac.update(b"away\0");
        mac.update(text.as_bytes());
        Some(mac)
    }

    fn seal(&self, away: &Away) -> String {
        let text = URL_SAFE_NO_PAD.encode(serde_json::to_vec(away).unwrap_or_default());
        let proof = self.proof(&text).map(|mac| mac.finalize().into_bytes());
        let proof = proof.map(|proof| URL_SAFE_NO_PAD.encode(proof));
        format!("{text}.{}", proof.unwrap_or_default())
    }

    fn open(&self, kept: &str) -> Option<Away> {
        let (text, proof) = kept.split_once('.')?;
        let proof = URL_SAFE_NO_PAD.decode(proof).ok()?;
        self.proof(text)?.verify_slice(&proof).ok()?;
        serde_json::from_slice(&URL_SAFE_NO_PAD.decode(text).ok()?).ok()
    }
}

/// The claims of a token that was verified.
fn claims(token: &str) -> Option<Map<String, Value>> {
    let payload = token.split('.').nth(1)?;
    serde_json::from_slice(&URL_SAFE_NO_PAD.decode(payload).ok()?).ok()
}

/// An error with its causes.
fn chain(error: &dyn std::error::Error) -> String {
    let mut text = error.to_string();
    let mut cause = error.source();
    while let Some(inner) = cause {
        text.push_str(": ");
        text.push_str(&inner.to_string());
        cause = inner.source();
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    fn login() -> Login {
        let settings = Settings {
            issuer: "https://id.example.com/realm".into(),
            client_id: "cuebook".into(),
            client_secret: None,
            scopes: Vec::new(),
            groups_claim: "groups".into(),
        };
        Login::new(settings, "http://localhost").unwrap()
    }

    #[tokio::test]
    async fn only_what_was_begun_here_is_finished() {
        let (login, other) = (login(), login());
        let away = |until| Away {
            state: "state".into(),
            nonce: "nonce".into(),
            verifier: "verifier".into(),
            next: "/".into(),
            until,
        };
        let good = login.seal(&away(u64::MAX));
        let refused = |kept: String, state: &'static str| {
            let login = &login;
            async move { login.finish(&kept, state, Err("access_denied")).await }
        };
        assert!(matches!(
            refused(good.clone(), "state").await,
            Err(LoginError::Provider(_))
        ));
        for (kept, state) in [
            (good.clone(), "other"),
            (format!("{good}x"), "state"),
            (other.seal(&away(u64::MAX)), "state"),
            (login.seal(&away(0)), "state"),
            (String::new(), "state"),
            (good.split_once('.').unwrap().0.to_owned(), "state"),
        ] {
            assert!(
                matches!(refused(kept.clone(), state).await, Err(LoginError::NotOurs)),
                "{kept}"
            );
        }
        assert_eq!(login.provider(), "id.example.com");
    }
}
