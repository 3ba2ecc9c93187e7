//! Who makes a request: read from what it carries, once, before any handler sees it.

use std::sync::Arc;

use axum::extract::{MatchedPath, Request};
use axum::http::header::{self, HeaderValue};
use axum::http::{HeaderMap, Method, StatusCode};
use axum::response::{IntoResponse, Response};
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;

use super::{Attempt, ClientAddress, Entrance, json_error, too_many_requests};
use crate::access::{Access, Actor, Credential, Denied, Need, need};
use crate::identity::bearer::{self, Bearers, is_jwt};

/// Marks a request that came by the socket of the data directory, or from the command itself: who can reach those could
/// read and write the data directory.
#[derive(Debug, Clone, Copy)]
pub struct SameMachine;

/// The cookie of who has signed in, where the server is reached over plain HTTP.
const PLAIN_COOKIE: &str = "cuebook_session";
/// The same over HTTPS: browsers take one of this name only from this host, over HTTPS, for every path.
const SECURE_COOKIE: &str = "__Host-cuebook_session";
/// A header that pages of other sites cannot send without asking first, which nobody grants them.
const OWN_PAGE: &str = "x-cuebook";

/// How the cookie of a session is written.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Cookies {
    secure: bool,
}

impl Cookies {
    /// For a server that is reached at this address.
    pub fn of(url: &str) -> Self {
        Self {
            secure: url.starts_with("https://"),
        }
    }

    /// Its name. Only this one is read: over HTTPS, a cookie of the other name may come from anywhere.
    pub fn session_name(self) -> &'static str {
        if self.secure {
            SECURE_COOKIE
        } else {
            PLAIN_COOKIE
        }
    }

    /// A header that sets a cookie of this server for so many seconds; 0 removes it.
    pub fn set(self, name: &str, value: &str, seconds: i64) -> String {
        let secure = if self.secure { "; Secure" } else { "" };
        format!("{name}={value}; Path=/; Max-Age={seconds}; HttpOnly; SameSite=Lax{secure}")
    }
}

/// What a request is let in by.
#[derive(Debug, Clone)]
pub struct Door {
    /// Who may do what.
    pub access: Arc<Access>,
    /// How the cookie of a session is written.
    pub cookies: Cookies,
    /// Takes access tokens of an OpenID provider, where there is one.
    pub bearers: Option<Arc<Bearers>>,
    /// Counts the credentials that nobody has.
    pub entrance: Arc<Entrance>,
}

/// Puts the [`Actor`] into a request, and refuses what the table of URLs does.
pub async fn actor(
    door: &Door,
    mut request: Request,
    next: impl AsyncFnOnce(Request) -> Response,
) -> Response {
    let actor = if door.access.is_open() || request.extensions().get::<SameMachine>().is_some() {
        Actor::local()
    } else {
        let client = request.extensions().get::<ClientAddress>().copied();
        let headers = request.headers();
        match door
            .presented(headers, request.method(), request.uri().path(), client)
            .await
        {
            Ok(actor) => actor,
            Err(refused) if is_public(&request) && !matches!(refused, Refused::NotOurPage) => {
                tracing::debug!("a credential that lets nobody in");
                Actor::nobody()
            }
            Err(refused) => {
                return match door.wait(&refused, client) {
                    Some(seconds) => too_many_requests(GUESSED, seconds),
                    None => refused.answer(&request, door.bearers.as_deref()),
                };
            }
        }
    };
    // who asks for what is not there is told so by the router
    if let Some(path) = matched(&request) {
        let reads = matches!(*request.method(), Method::GET | Method::HEAD);
        let Some(need) = need(path, reads) else {
            tracing::error!(path, "this address has no row in the table of permissions");
            return Refused::Forbidden.answer(&request, None);
        };
        if !need.met_by(&actor) {
            let bearers = door.bearers.as_deref();
            let refused = match (actor.credential(), bearers) {
                _ if !actor.is_known() => Refused::Nobody,
                (Some(Credential::Bearer(..)), Some(bearers)) => {
                    match bearers.missing_scope(&actor, need) {
                        Some(scope) => Refused::Scope(scope.to_owned()),
                        None => Refused::Forbidden,
                    }
                }
                _ => Refused::Forbidden,
            };
            return refused.answer(&request, bearers);
        }
    }
    request.extensions_mut().insert(actor);
    next(request).await
}

/// What is said to who shows one wrong token after another.
const GUESSED: &str = "this address has shown too many tokens that nobody has; set a token that is known here, and try again later";

/// Why a request goes no further.
enum Refused {
    /// It has no credential.
    Nobody,
    /// It has one that lets nobody in.
    Denied(Denied),
    /// It has an access token that is not good; one line.
    Token(String),
    /// It has one that was good.
    TokenOver,
    /// It has an access token without the scope that it takes.
    Scope(String),
    /// Whether its access token is good cannot be found out now; one line.
    Unavailable(String),
    /// Who asks may not.
    Forbidden,
    /// A page of another site may have sent it.
    NotOurPage,
}

/// The URL's row in the table of permissions, where no router of axum has matched it.
#[derive(Debug, Clone, Copy)]
pub struct Row(pub &'static str);

fn matched(request: &Request) -> Option<&str> {
    let extensions = request.extensions();
    let row = extensions.get::<Row>().map(|row| row.0);
    row.or_else(|| extensions.get::<MatchedPath>().map(MatchedPath::as_str))
}

fn is_public(request: &Request) -> bool {
    let reads = matches!(*request.method(), Method::GET | Method::HEAD);
    // what is not there shows nothing
    matched(request).is_none_or(|path| need(path, reads) == Some(Need::Nothing))
}

impl Door {
    /// For how many seconds a token that is refused is not told from another, after too many of its address that nobody
    /// has. A token was looked at first: one that is good is never kept waiting.
    fn wait(&self, refused: &Refused, client: Option<ClientAddress>) -> Option<u64> {
        // one that has ended or was revoked is no guess: its program needs to hear that it wants another
        // nor does anybody guess a signature
        let guess = matches!(refused, Refused::Denied(Denied::Unknown));
        let attempt = Attempt::Token(client.filter(|_| guess)?.ip);
        if let Err(wait) = self.entrance.backoff.check(attempt) {
            return Some(wait.as_secs() + 1);
        }
        self.entrance.backoff.failed(attempt);
        None
    }

    /// Who the headers say it is.
    async fn presented(
        &self,
        headers: &HeaderMap,
        method: &Method,
        path: &str,
        client: Option<ClientAddress>,
    ) -> Result<Actor, Refused> {
        let now = crate::clock::unix_millis();
        if let Some(value) = headers.get(header::AUTHORIZATION) {
            let token = token(value).ok_or(Refused::Denied(Denied::Unknown))?;
            if let Some(bearers) = &self.bearers
                && is_jwt(&token)
            {
                let peer = client.map(|client| client.ip.to_string());
                let actor = bearers.actor(&token, peer.as_deref()).await;
                return actor.map_err(|refused| match refused {
                    bearer::Refused::Token(why) => Refused::Token(why),
                    bearer::Refused::Over => Refused::TokenOver,
                    bearer::Refused::Denied(denied) => Refused::Denied(denied),
                    bearer::Refused::Unavailable(why) => Refused::Unavailable(why),
                    bearer::Refused::Scope => {
                        Refused::Scope(bearers.least_scope().unwrap_or_default().to_owned())
                    }
                });
            }
            return self.access.by_token(&token, now).map_err(Refused::Denied);
        }
        let Some(cookie) = cookie(headers, self.cookies.session_name()) else {
            return Ok(Actor::nobody());
        };
        let actor = match self.access.by_session(cookie, now) {
            Ok(actor) => actor,
            // a browser keeps sending the cookie of a session that is over; the login page must still open
            Err(denied) => {
                tracing::debug!(%denied, "a session that is over");
                return Ok(Actor::nobody());
            }
        };
        let reads = matches!(*method, Method::GET | Method::HEAD);
        if !reads && !is_ours(headers, path) {
            return Err(Refused::NotOurPage);
        }
        Ok(actor)
    }
}

/// Whether a page of this server may have sent what writes: browsers add cookies to what other sites make them send, but
/// not this header; forms, which go to pages alone, carry a field that the page checks.
fn is_ours(headers: &HeaderMap, path: &str) -> bool {
    let page = !path.starts_with("/api/");
    let form = page
        && headers.get(header::CONTENT_TYPE).is_some_and(|value| {
            value
                .as_bytes()
                .starts_with(b"application/x-www-form-urlencoded")
        });
    let site = headers.get("sec-fetch-site").map(HeaderValue::as_bytes);
    matches!(site, None | Some(b"same-origin" | b"none"))
        && (form || headers.contains_key(OWN_PAGE))
}

/// The token of an Authorization header: a bearer token, or the password that git sends.
fn token(value: &HeaderValue) -> Option<String> {
    let (scheme, rest) = value.to_str().ok()?.split_once(' ')?;
    let rest = rest.trim();
    if scheme.eq_ignore_ascii_case("bearer") {
        return Some(rest.to_owned());
    }
    if !scheme.eq_ignore_ascii_case("basic") {
        return None;
    }
    let decoded = String::from_utf8(STANDARD.decode(rest).ok()?).ok()?;
    let (_, password) = decoded.split_once(':')?;
    Some(password.to_owned())
}

/// The value of a cookie.
pub fn cookie<'a>(headers: &'a HeaderMap, name: &str) -> Option<&'a str> {
    let all = headers.get_all(header::COOKIE).iter();
    all.filter_map(|value| value.to_str().ok())
        .flat_map(|value| value.split(';'))
        .filter_map(|pair| pair.trim().split_once('='))
        .find_map(|(key, value)| (key == name).then_some(value))
}

impl Refused {
    fn answer(self, request: &Request, bearers: Option<&Bearers>) -> Response {
        let path = request.uri().path();
        let git = path.starts_with("/library.git");
        let (status, text) = match &self {
            Self::Nobody => (
                StatusCode::UNAUTHORIZED,
                "this server asks who you are: send a token (Authorization: Bearer cbk_…; git asks for it as the password), \
                 which cuebook token create makes"
                    .to_owned(),
            ),
            Self::Denied(denied) => (StatusCode::UNAUTHORIZED, denied.to_string()),
            Self::Token(why) => (
                StatusCode::UNAUTHORIZED,
                format!("{why}; sign in again to get another"),
            ),
            Self::TokenOver => (
                StatusCode::UNAUTHORIZED,
                "the token has expired; sign in again to get another".to_owned(),
            ),
            Self::Scope(scope) => (
                StatusCode::FORBIDDEN,
                format!("the access token lacks the scope {scope}; ask for it when signing in"),
            ),
            Self::Unavailable(why) => (StatusCode::SERVICE_UNAVAILABLE, why.clone()),
            Self::Forbidden => (
                StatusCode::FORBIDDEN,
                "you may not do this; ask an admin of this server for the role it takes".to_owned(),
            ),
            Self::NotOurPage => (
                StatusCode::FORBIDDEN,
                "a browser that has signed in must send this from a page of this server".to_owned(),
            ),
        };
        let mut response = if git {
            (status, format!("{text}\n")).into_response()
        } else {
            (status, json_error(&text)).into_response()
        };
        // RFC 6750, section 3; RFC 9728, section 5.1; git asks its user for a password where it reads Basic
        let challenge = match &self {
            _ if git && status == StatusCode::UNAUTHORIZED => {
                "Basic realm=\"Cuebook\", charset=\"UTF-8\"".to_owned()
            }
            Self::Denied(_) | Self::Token(_) | Self::TokenOver => {
                "Bearer realm=\"Cuebook\", error=\"invalid_token\"".to_owned()
            }
            Self::Nobody => "Bearer realm=\"Cuebook\"".to_owned(),
            Self::Scope(scope) => {
                format!("Bearer realm=\"Cuebook\", error=\"insufficient_scope\", scope=\"{scope}\"")
            }
            Self::Forbidden | Self::NotOurPage | Self::Unavailable(_) => return response,
        };
        let challenge = match bearers.filter(|_| !git) {
            Some(bearers) => {
                let mut challenge = challenge;
                if matches!(self, Self::Nobody)
                    && let Some(scope) = bearers.least_scope()
                {
                    challenge.push_str(&format!(", scope=\"{scope}\""));
                }
                format!(
                    "{challenge}, resource_metadata=\"{}\"",
                    bearers.metadata_url()
                )
            }
            None => challenge,
        };
        if let Ok(value) = HeaderValue::from_str(&challenge) {
            response
                .headers_mut()
                .insert(header::WWW_AUTHENTICATE, value);
        }
        response
    }
}
