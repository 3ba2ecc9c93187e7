//! Signing in and out, and the one-time link of the first admin and of who was invited.

use axum::Router;
use axum::body::Body;
use axum::extract::State;
use axum::http::header::{self, HeaderValue};
use axum::http::{Extensions, StatusCode};
use axum::response::{IntoResponse, Response};
use axum::routing::{get, post};
use serde::Serialize;

use super::Web;
use super::layout::{form, local_path, see_other};
use super::page::{Failure, Page, answer, failed, show};
use super::text::{Lang, Query, encoded};
use super::visit::Visit;
use crate::access::password::PasswordError;
use crate::access::{Actor, By, Credential, Invitation};
use crate::api::access::sign_in::{From, FromProvider, NotSigned, Signed};
use crate::http::ClientAddress;
use crate::http::actor::cookie;
use crate::identity::NotHere;
use crate::identity::login::{AWAY_SECONDS, LoginError};

/// What a browser keeps while its person is at the provider.
const AWAY: &str = "cuebook_away";

pub(super) fn routes() -> Router<Web> {
    Router::new()
        .route("/login", get(login_page).post(login))
        .route("/login/oidc", get(leave))
        .route("/login/oidc/callback", get(come_back))
        .route("/login/oidc/logout", post(provider_logout))
        .route("/logout", post(logout))
        .route("/setup", get(setup_page).post(setup))
}

/// Where somebody signs in from.
pub(super) fn from(visit: &Visit, extensions: &Extensions) -> From {
    From {
        address: extensions.get::<ClientAddress>().map(|client| client.ip),
        client: visit
            .headers
            .get(header::USER_AGENT)
            .and_then(|value| value.to_str().ok())
            .map(str::to_owned),
    }
}

/// Who asks, and from where, for the audit.
pub(super) fn by(visit: &Visit, extensions: &Extensions) -> By {
    By {
        actor: visit.actor.clone(),
        peer: extensions
            .get::<ClientAddress>()
            .map(|client| client.ip.to_string()),
    }
}

#[derive(Debug, Serialize)]
struct LoginPage {
    next: String,
    name: String,
    error: Option<String>,
    /// The provider, by its host.
    provider: Option<String>,
    /// Whether there is access control at all.
    open: bool,
}

impl Page for LoginPage {
    const TEMPLATE: &'static str = "login.html";
    const SECTION: &'static str = "";

    fn title(&self, lang: Lang) -> String {
        lang.text("login.title", &[])
    }
}

#[derive(Debug, Serialize)]
struct SetupPage {
    code: String,
    /// Who was invited; none for the first admin, who chooses a name.
    who: Option<String>,
    name: String,
    error: Option<String>,
    provider: Option<String>,
}

impl Page for SetupPage {
    const TEMPLATE: &'static str = "setup.html";
    const SECTION: &'static str = "";

    fn title(&self, lang: Lang) -> String {
        lang.text("setup.title", &[])
    }
}

/// Why nobody was signed in, in somebody's language.
pub(super) fn why(lang: Lang, not: &NotSigned) -> String {
    match not {
        NotSigned::Wrong => lang.text("login.wrong", &[]),
        NotSigned::Wait(seconds) => lang.counted(
            "login.wait",
            i64::try_from(*seconds).unwrap_or(i64::MAX),
            &[],
        ),
        NotSigned::Password(PasswordError::Short) => lang.text("login.short", &[]),
        NotSigned::Password(error) => error.to_string(),
        NotSigned::Code => lang.text("setup.over", &[]),
        NotSigned::Refused(refusal) => refusal.detail.clone(),
    }
}

fn provider(web: &Web) -> Option<String> {
    let login = web.api.login.as_ref()?;
    Some(login.provider().to_owned())
}

fn login_with(web: &Web, fields: &Query, error: Option<String>) -> LoginPage {
    LoginPage {
        next: local_path(fields.get("next")).to_owned(),
        name: fields.get("name").unwrap_or_default().to_owned(),
        error,
        provider: provider(web),
        open: web.api.access.is_open(),
    }
}

async fn login_page(State(web): State<Web>, visit: Visit) -> Response {
    if matches!(visit.actor.credential(), Some(Credential::Session(_))) {
        return see_other(local_path(visit.query.get("next")));
    }
    show(&web, &visit, &login_with(&web, &visit.query, None)).await
}

/// A response that sets a cookie.
fn with_cookie(mut response: Response, cookie: &str) -> Response {
    if let Ok(value) = HeaderValue::from_str(cookie) {
        response.headers_mut().append(header::SET_COOKIE, value);
    }
    response
        .headers_mut()
        .insert(header::CACHE_CONTROL, HeaderValue::from_static("no-store"));
    response
}

/// A redirect of who is signed in now.
fn signed_in(web: &Web, signed: &Signed, next: &str) -> Response {
    let cookies = web.api.cookies;
    let cookie = cookies.set(cookies.session_name(), &signed.cookie, signed.seconds);
    with_cookie(see_other(next), &cookie)
}

/// The same page again, with another status.
async fn again<P: Page>(web: &Web, visit: &Visit, page: &P, not: &NotSigned) -> Response {
    let mut response = show(web, visit, page).await;
    *response.status_mut() = match not {
        NotSigned::Wait(seconds) => {
            let seconds = HeaderValue::from(*seconds);
            response.headers_mut().insert(header::RETRY_AFTER, seconds);
            StatusCode::TOO_MANY_REQUESTS
        }
        NotSigned::Wrong => StatusCode::UNAUTHORIZED,
        NotSigned::Refused(refusal) => {
            if let Some(seconds) = refusal.retry_after {
                let seconds = HeaderValue::from(seconds);
                response.headers_mut().insert(header::RETRY_AFTER, seconds);
            }
            refusal.status
        }
        NotSigned::Password(_) => StatusCode::UNPROCESSABLE_ENTITY,
        NotSigned::Code => StatusCode::NOT_FOUND,
    };
    response
}

async fn login(State(web): State<Web>, visit: Visit, ext: Extensions, body: Body) -> Response {
    let fields = match form(&web, &visit, body).await {
        Ok(fields) => fields,
        Err(failure) => return failed(&web, &visit, failure).await,
    };
    let name = fields.get("name").unwrap_or_default();
    let password = fields.get("password").unwrap_or_default();
    let signed = web
        .api
        .desk()
        .sign_in(name, password, &from(&visit, &ext))
        .await;
    match signed {
        Ok(signed) => signed_in(&web, &signed, local_path(fields.get("next"))),
        Err(not) => {
            let page = login_with(&web, &fields, Some(why(visit.lang, &not)));
            again(&web, &visit, &page, &not).await
        }
    }
}

async fn logout(State(web): State<Web>, visit: Visit, ext: Extensions, body: Body) -> Response {
    if let Err(failure) = form(&web, &visit, body).await {
        return failed(&web, &visit, failure).await;
    }
    if let Some(Credential::Session(id)) = visit.actor.credential()
        && let Err(refusal) = web.api.desk().end_session(&by(&visit, &ext), id).await
    {
        return failed(&web, &visit, Failure::Unavailable(refusal.detail)).await;
    }
    let cookies = web.api.cookies;
    with_cookie(
        see_other("/login"),
        &cookies.set(cookies.session_name(), "", 0),
    )
}

fn setup_with(web: &Web, fields: &Query, of: &Invitation, error: Option<String>) -> SetupPage {
    SetupPage {
        code: fields.get("code").unwrap_or_default().to_owned(),
        who: match of {
            Invitation::FirstAdmin => None,
            Invitation::Known(name) => Some(name.clone()),
        },
        name: fields.get("name").unwrap_or_default().to_owned(),
        error,
        provider: provider(web),
    }
}

async fn setup_page(State(web): State<Web>, visit: Visit, ext: Extensions) -> Response {
    let code = visit.query.get("code").unwrap_or_default();
    let page = match web.api.desk().invited(code, &from(&visit, &ext)) {
        Ok(of) => Ok(setup_with(&web, &visit.query, &of, None)),
        Err(NotSigned::Code) => Err(Failure::Forbidden(visit.lang.text("setup.over", &[]))),
        Err(not) => Err(Failure::Unavailable(why(visit.lang, &not))),
    };
    let mut response = answer(&web, &visit, page).await;
    let headers = response.headers_mut();
    headers.insert(header::CACHE_CONTROL, HeaderValue::from_static("no-store"));
    response
}

async fn setup(State(web): State<Web>, visit: Visit, ext: Extensions, body: Body) -> Response {
    let fields = match form(&web, &visit, body).await {
        Ok(fields) => fields,
        Err(failure) => return failed(&web, &visit, failure).await,
    };
    let from = from(&visit, &ext);
    let desk = web.api.desk();
    let text = |name: &str| fields.get(name).unwrap_or_default();
    let of = match desk.invited(text("code"), &from) {
        Ok(of) => of,
        Err(not) => {
            let detail = why(visit.lang, &not);
            return failed(&web, &visit, Failure::Forbidden(detail)).await;
        }
    };
    let signed = desk
        .set_up(text("code"), text("name"), text("password"), &from)
        .await;
    match signed {
        Ok(signed) => signed_in(&web, &signed, "/settings"),
        Err(not) => {
            let page = setup_with(&web, &fields, &of, Some(why(visit.lang, &not)));
            again(&web, &visit, &page, &not).await
        }
    }
}

fn no_provider(visit: &Visit) -> Failure {
    Failure::Invalid(visit.lang.text("login.no_provider", &[]))
}

/// Sends a browser to the provider.
async fn leave(State(web): State<Web>, visit: Visit) -> Response {
    let Some(login) = &web.api.login else {
        return failed(&web, &visit, no_provider(&visit)).await;
    };
    // the first admin comes back to the code that brought them
    let next = match visit.query.get("code") {
        Some(code) => format!("/setup?code={}", encoded(code)),
        None => local_path(visit.query.get("next")).to_owned(),
    };
    match login.begin(&next).await {
        Ok((url, kept)) => {
            let mut response = StatusCode::SEE_OTHER.into_response();
            if let Ok(value) = HeaderValue::from_str(&url) {
                response.headers_mut().insert(header::LOCATION, value);
            }
            let seconds = i64::try_from(AWAY_SECONDS).unwrap_or(0);
            with_cookie(response, &web.api.cookies.set(AWAY, &kept, seconds))
        }
        Err(error) => {
            tracing::error!(%error, "nobody can sign in with the provider");
            failed(&web, &visit, Failure::Unavailable(error.to_string())).await
        }
    }
}

/// A browser that comes back from the provider.
async fn come_back(State(web): State<Web>, visit: Visit, ext: Extensions) -> Response {
    let (Some(login), Some(arrivals)) = (&web.api.login, &web.api.arrivals) else {
        return failed(&web, &visit, no_provider(&visit)).await;
    };
    let text = |name: &str| visit.query.get(name);
    let from = from(&visit, &ext);
    let signed = async {
        let said = match (text("code"), text("error")) {
            (Some(code), None) => Ok(code),
            (_, error) => Err(error.unwrap_or("nothing")),
        };
        let kept = cookie(&visit.headers, AWAY).unwrap_or_default();
        let state = text("state").unwrap_or_default();
        let came = login
            .finish(kept, state, said)
            .await
            .map_err(|error| match error {
                LoginError::NotOurs | LoginError::Provider(_) => {
                    Failure::Forbidden(error.to_string())
                }
                LoginError::Unbelieved(_) => {
                    tracing::warn!(%error, "a sign-in with the provider failed");
                    Failure::Forbidden(error.to_string())
                }
                LoginError::Unreachable(_) => {
                    tracing::error!(%error, "a sign-in with the provider failed");
                    Failure::Unavailable(error.to_string())
                }
            })?;
        let peer = from.address.map(|ip| ip.to_string());
        let name =
            arrivals
                .find(&came.said, peer.as_deref())
                .await
                .map_err(|error| match error {
                    NotHere::Unknown => Failure::Forbidden(error.to_string()),
                    NotHere::Store(_) => Failure::Unavailable(error.to_string()),
                })?;
        arrivals
            .join(&name, &came.said.groups)
            .await
            .map_err(|error| Failure::Unavailable(error.to_string()))?;
        let desk = web.api.desk();
        let mut next = came.next;
        if let Some(code) = next.strip_prefix("/setup?code=") {
            // who holds the code of the first admin is it, by whatever name the provider knows them
            desk.admit_first(code, &name, &from)
                .await
                .map_err(|not| Failure::Forbidden(why(visit.lang, &not)))?;
            "/settings".clone_into(&mut next);
        }
        if web.api.access.is_disabled(&name) {
            let detail = visit.lang.text("login.disabled", &[]);
            return Err(Failure::Forbidden(detail));
        }
        let provider = FromProvider {
            session: came.session,
            until: None,
        };
        let signed = desk
            .begin_session(&name, "the provider", &from, provider)
            .await
            .map_err(|refusal| Failure::Unavailable(refusal.detail))?;
        Ok((signed, next))
    };
    let response = match signed.await {
        Ok((signed, next)) => signed_in(&web, &signed, &next),
        Err(failure) => failed(&web, &visit, failure).await,
    };
    with_cookie(response, &web.api.cookies.set(AWAY, "", 0))
}

/// The provider says that a session is over (OpenID Connect Back-Channel Logout 1.0). It comes without a browser.
async fn provider_logout(State(web): State<Web>, body: Body) -> Response {
    let Some(login) = &web.api.login else {
        return StatusCode::NOT_FOUND.into_response();
    };
    let Ok(bytes) = axum::body::to_bytes(body, 64 * 1024).await else {
        return StatusCode::BAD_REQUEST.into_response();
    };
    let fields = Query::of(&String::from_utf8_lossy(&bytes));
    let over = match login
        .over(fields.get("logout_token").unwrap_or_default())
        .await
    {
        Ok(over) => over,
        Err(error) => {
            tracing::warn!(%error, "a logout of the provider was refused");
            return StatusCode::BAD_REQUEST.into_response();
        }
    };
    let desk = web.api.desk();
    let status = match desk.end_sessions_of(&over, &Actor::named("cuebook")).await {
        Ok(()) => StatusCode::OK,
        Err(refusal) => refusal.status,
    };
    (status, [(header::CACHE_CONTROL, "no-store")]).into_response()
}
