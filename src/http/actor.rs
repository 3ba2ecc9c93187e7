//! Who makes a request: read from what it carries, once, before any handler sees it.

use std::sync::Arc;

use axum::extract::{MatchedPath, Request, State};
use axum::http::header::{self, HeaderValue};
use axum::http::{HeaderMap, Method, StatusCode};
use axum::middleware::Next;
use axum::response::{IntoResponse, Response};
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;

use super::json_error;
use crate::access::{Access, Actor, Denied, Need, need};

/// Marks a request that came by the socket of the data directory, or from the command itself: who can reach those could
/// read and write the data directory.
#[derive(Debug, Clone, Copy)]
pub struct SameMachine;

/// The cookie of who has signed in.
pub const SESSION_COOKIE: &str = "cuebook_session";
/// A header that pages of other sites cannot send without asking first, which nobody grants them.
const OWN_PAGE: &str = "x-cuebook";

/// Puts the [`Actor`] into a request, and refuses what the table of URLs does.
pub async fn actor(
    State(access): State<Arc<Access>>,
    mut request: Request,
    next: Next,
) -> Response {
    let actor = if access.is_open() || request.extensions().get::<SameMachine>().is_some() {
        Actor::local()
    } else {
        match presented(&access, request.headers(), request.method()) {
            Ok(actor) => actor,
            Err(Refused::Denied(denied)) if is_public(&request) => {
                tracing::debug!(%denied, "a credential that lets nobody in");
                Actor::nobody()
            }
            Err(refused) => return refused.answer(&request),
        }
    };
    // who asks for what is not there is told so by the router
    if let Some(path) = request.extensions().get::<MatchedPath>() {
        let reads = matches!(*request.method(), Method::GET | Method::HEAD);
        let Some(need) = need(path.as_str(), reads) else {
            tracing::error!(
                path = path.as_str(),
                "this address has no row in the table of permissions"
            );
            return Refused::Forbidden.answer(&request);
        };
        if !need.met_by(&actor) {
            return if actor.is_known() {
                Refused::Forbidden.answer(&request)
            } else {
                Refused::Nobody.answer(&request)
            };
        }
    }
    request.extensions_mut().insert(actor);
    next.run(request).await
}

/// Why a request goes no further.
enum Refused {
    /// It has no credential.
    Nobody,
    /// It has one that lets nobody in.
    Denied(Denied),
    /// Who asks may not.
    Forbidden,
    /// A page of another site may have sent it.
    NotOurPage,
}

fn is_public(request: &Request) -> bool {
    let reads = matches!(*request.method(), Method::GET | Method::HEAD);
    let path = request.extensions().get::<MatchedPath>();
    // what is not there shows nothing
    path.is_none_or(|path| need(path.as_str(), reads) == Some(Need::Nothing))
}

/// Who the headers say it is.
fn presented(access: &Access, headers: &HeaderMap, method: &Method) -> Result<Actor, Refused> {
    let now = crate::clock::unix_millis();
    if let Some(value) = headers.get(header::AUTHORIZATION) {
        let token = token(value).ok_or(Refused::Denied(Denied::Unknown))?;
        return access.by_token(&token, now).map_err(Refused::Denied);
    }
    let Some(cookie) = cookie(headers, SESSION_COOKIE) else {
        return Ok(Actor::nobody());
    };
    let reads = matches!(*method, Method::GET | Method::HEAD);
    // browsers add cookies to what other sites make them send, but not these; forms carry a field that the page checks
    let form = headers.get(header::CONTENT_TYPE).is_some_and(|value| {
        value
            .as_bytes()
            .starts_with(b"application/x-www-form-urlencoded")
    });
    let site = headers.get("sec-fetch-site").map(HeaderValue::as_bytes);
    let ours =
        matches!(site, None | Some(b"same-origin")) && (form || headers.contains_key(OWN_PAGE));
    if !reads && !ours {
        return Err(Refused::NotOurPage);
    }
    match access.by_session(cookie, now) {
        Ok(actor) => Ok(actor),
        // a browser keeps sending the cookie of a session that is over; the login page must still open
        Err(denied) => {
            tracing::debug!(%denied, "a session that is over");
            Ok(Actor::nobody())
        }
    }
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
    fn answer(self, request: &Request) -> Response {
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
        if status == StatusCode::UNAUTHORIZED {
            // RFC 6750, section 3; git asks its user for a password where it reads Basic
            let challenge = match self {
                _ if git => "Basic realm=\"Cuebook\", charset=\"UTF-8\"",
                Self::Denied(_) => "Bearer realm=\"Cuebook\", error=\"invalid_token\"",
                _ => "Bearer realm=\"Cuebook\"",
            };
            response.headers_mut().insert(
                header::WWW_AUTHENTICATE,
                HeaderValue::from_static(challenge),
            );
        }
        response
    }
}
