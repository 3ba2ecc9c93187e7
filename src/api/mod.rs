//! The HTTP API besides MCP, a file for each kind of thing. Errors are problem details (RFC 9457). Knows nothing of MCP.

pub mod access;
mod activity;
mod audit;
pub(crate) mod changes;
mod deliveries;
pub mod openapi;
pub mod preview;
pub(crate) mod prompts;
pub mod proposals;
mod query;
mod search;
mod tag;
mod usage;
mod verify;
mod versions;
mod visible;

use std::sync::Arc;

use axum::Router;
use axum::body::{Body, Bytes};
use axum::http::header::{self, HeaderValue};
use axum::http::{Extensions, HeaderMap, StatusCode};
use axum::middleware;
use axum::response::{IntoResponse, Response};
use bytes::BytesMut;
use http_body_util::BodyExt as _;
use serde::Serialize;
use serde::de::DeserializeOwned;
use tokio::sync::Semaphore;
use tokio_util::task::TaskTracker;
use utoipa::ToSchema;

use crate::access::{Access, Actor, By, Kind};
use crate::activity::Activity;
use crate::gate::Gate;
use crate::http::ClientAddress;
use crate::http::actor::Cookies;
use crate::identity::Arrivals;
use crate::identity::login::Login;
use crate::records::Records;
use crate::registry::Registry;
use crate::search::Search;
use crate::store::{Store, StoreError};
use crate::workers::Caller;

use preview::Previews;

/// A setting that is a number, as it is in force.
#[derive(Debug, Clone, Serialize)]
pub struct Limit {
    /// Its name, e.g. `limits.output_bytes`.
    pub name: &'static str,
    /// What it bounds, for people.
    pub meaning: &'static str,
    /// How much.
    pub value: i64,
}

/// What the handlers share.
#[derive(Debug, Clone)]
pub struct Api {
    /// What is served.
    pub registry: Arc<Registry>,
    /// Budgets of previews.
    pub previews: Arc<Previews>,
    /// Searches it.
    pub search: Arc<Search>,
    /// Who may do what.
    pub access: Arc<Access>,
    /// Signs browsers in.
    pub sign_in: Arc<access::sign_in::SignIn>,
    /// Lets people sign in with an OpenID provider, where there is one.
    pub login: Option<Arc<Login>>,
    /// Finds who somebody is whom the provider knows.
    pub arrivals: Option<Arrivals>,
    /// How the cookie of a session is written.
    pub cookies: Cookies,
    /// The address clients are told to use, e.g. `http://127.0.0.1:8400`.
    pub url: Arc<str>,
    /// Days after which a token ends that says nothing else.
    pub token_days: u32,
    /// The limits that are in force, in the order in which they are shown.
    pub limits: Arc<[Limit]>,
    /// Takes changes; none where a work tree is served.
    pub gate: Option<Arc<Gate>>,
    /// What was used, delivered and done; none where a work tree is served.
    pub records: Option<Arc<Records>>,
    /// What proposals do, kept.
    pub effects: Arc<proposals::effect::Effects>,
    /// What happens; set by the router, which knows all of it.
    pub activity: Option<Arc<Activity>>,
    /// Changes that are being made; their end is waited for.
    pub writing: TaskTracker,
    /// Places for changes that are made at once.
    changing: Arc<Semaphore>,
    /// Held while everything derived is made again or compared.
    proving: Arc<tokio::sync::Mutex<()>>,
}

impl Api {
    /// An API that only reads, and searches without an index.
    pub fn new(registry: Arc<Registry>, previews: Previews) -> Self {
        Self {
            registry,
            previews: Arc::new(previews),
            search: Arc::new(Search::new()),
            access: Arc::new(Access::open()),
            sign_in: Arc::new(access::sign_in::SignIn::new(30, Arc::default())),
            login: None,
            arrivals: None,
            cookies: Cookies::of("http://localhost"),
            url: "http://localhost".into(),
            token_days: 90,
            limits: Arc::default(),
            gate: None,
            records: None,
            effects: Arc::default(),
            activity: None,
            writing: TaskTracker::new(),
            changing: Arc::new(Semaphore::new(changes::CHANGES)),
            proving: Arc::default(),
        }
    }
}

/// Every URL of the API.
pub fn routes(api: Api) -> Router {
    Router::from(openapi::router())
        .route_layer(middleware::from_fn(openapi::described))
        .with_state(api)
}

/// Who makes a request, and from where.
pub fn by(extensions: &Extensions) -> By {
    By {
        actor: extensions.get().cloned().unwrap_or_else(Actor::nobody),
        peer: extensions
            .get::<ClientAddress>()
            .map(|client| client.ip.to_string()),
    }
}

/// Whom a request that costs much is charged to: who they are, and where that is not known their address.
pub(crate) fn charged(extensions: &Extensions) -> Caller {
    match extensions.get::<Actor>() {
        Some(actor) if actor.kind() != Kind::Local => Caller::actor(actor.name.clone()),
        _ => match extensions.get::<ClientAddress>() {
            Some(client) => Caller::address(client.ip),
            None => Caller::local(),
        },
    }
}

/// The records, where a data directory is served.
fn records(api: &Api) -> Result<&Arc<Records>, Refusal> {
    api.records.as_ref().ok_or_else(|| {
        Refusal::new(
            StatusCode::CONFLICT,
            "a work tree is served, and nothing is recorded there; serve a data directory",
        )
    })
}

/// The database of the records.
pub(crate) fn store(api: &Api) -> Result<&Store, Refusal> {
    records(api)?.store().map_err(|error| {
        Refusal::new(
            StatusCode::SERVICE_UNAVAILABLE,
            format!("there is no database: {error}"),
        )
    })
}

impl From<StoreError> for Refusal {
    fn from(error: StoreError) -> Self {
        tracing::error!(%error, "a request could not be answered from the database");
        Self::new(StatusCode::SERVICE_UNAVAILABLE, error.to_string())
    }
}

/// A JSON answer.
pub(crate) fn json(value: &impl Serialize) -> Response {
    let body = serde_json::to_vec(value).unwrap_or_default();
    (
        [(
            header::CONTENT_TYPE,
            HeaderValue::from_static("application/json"),
        )],
        body,
    )
        .into_response()
}

/// Time for a request to come whole.
const BODY: std::time::Duration = std::time::Duration::from_secs(10);

/// The bytes of a JSON request, at most `limit` of them; `setting` is what a person would change to send more.
pub(crate) async fn read(
    headers: &HeaderMap,
    body: Body,
    limit: usize,
    setting: &str,
) -> Result<Bytes, Refusal> {
    if !is_json(headers) {
        return Err(Refusal::new(
            StatusCode::UNSUPPORTED_MEDIA_TYPE,
            "send application/json",
        ));
    }
    tokio::time::timeout(BODY, whole(headers, body, limit, setting))
        .await
        .map_err(|_| {
            Refusal::new(
                StatusCode::REQUEST_TIMEOUT,
                format!("the request did not come within {} seconds", BODY.as_secs()),
            )
        })?
}

/// The whole body; one that is too long is told with how long it is, where the client says or as far as it was read.
async fn whole(
    headers: &HeaderMap,
    mut body: Body,
    limit: usize,
    setting: &str,
) -> Result<Bytes, Refusal> {
    let too_long = |length: u64, or_more: &str| {
        Refusal::new(
            StatusCode::PAYLOAD_TOO_LARGE,
            format!("the request is {length} bytes{or_more}; at most {limit} are read ({setting})"),
        )
    };
    let declared = headers
        .get(header::CONTENT_LENGTH)
        .and_then(|value| value.to_str().ok()?.parse::<u64>().ok());
    if let Some(length) = declared.filter(|length| *length > limit as u64) {
        return Err(too_long(length, ""));
    }
    let mut out = BytesMut::new();
    while let Some(frame) = body.frame().await {
        let frame =
            frame.map_err(|error| Refusal::new(StatusCode::BAD_REQUEST, error.to_string()))?;
        let Ok(data) = frame.into_data() else {
            continue;
        };
        if out.len() + data.len() > limit {
            return Err(too_long((out.len() + data.len()) as u64, " or more"));
        }
        out.extend_from_slice(&data);
    }
    Ok(out.freeze())
}

/// A request as JSON says it.
pub(crate) fn parse<T: DeserializeOwned>(body: &[u8]) -> Result<T, Refusal> {
    serde_json::from_slice(body).map_err(|error| {
        Refusal::new(
            StatusCode::BAD_REQUEST,
            format!("the request cannot be read: {error}"),
        )
    })
}

fn is_json(headers: &HeaderMap) -> bool {
    headers
        .get(header::CONTENT_TYPE)
        .and_then(|value| value.to_str().ok())
        .is_some_and(|value| {
            let kind = value.split(';').next().unwrap_or_default().trim();
            kind.eq_ignore_ascii_case("application/json")
        })
}

/// A refusal as problem details.
#[derive(Debug, Clone, PartialEq)]
pub struct Refusal {
    /// HTTP status.
    pub status: StatusCode,
    /// One plain line that a person can act on.
    pub detail: String,
    /// Seconds after which another attempt makes sense.
    pub retry_after: Option<u64>,
    /// More members (RFC 9457, section 3.2), for programs.
    pub more: serde_json::Map<String, serde_json::Value>,
}

impl Refusal {
    /// One with no more than its line.
    pub(crate) fn new(status: StatusCode, detail: impl Into<String>) -> Self {
        Self {
            status,
            detail: detail.into(),
            retry_after: None,
            more: serde_json::Map::new(),
        }
    }

    fn with(mut self, name: &str, value: serde_json::Value) -> Self {
        self.more.insert(name.to_owned(), value);
        self
    }
}

/// Why something was refused (RFC 9457). Some answers have more members, for programs.
#[derive(Serialize, ToSchema)]
#[schema(as = Problem)]
struct Details<'a> {
    /// `about:blank`: the status says what kind it is.
    r#type: &'static str,
    /// The status in words.
    title: &'static str,
    /// The status.
    status: u16,
    /// One plain line that a person can act on.
    detail: &'a str,
    #[serde(flatten)]
    #[schema(ignore)]
    more: &'a serde_json::Map<String, serde_json::Value>,
}

impl IntoResponse for Refusal {
    fn into_response(self) -> Response {
        let body = serde_json::to_vec(&Details {
            r#type: "about:blank",
            title: self.status.canonical_reason().unwrap_or("Error"),
            status: self.status.as_u16(),
            detail: &self.detail,
            more: &self.more,
        })
        .unwrap_or_default();
        let mut headers = HeaderMap::new();
        headers.insert(
            header::CONTENT_TYPE,
            HeaderValue::from_static("application/problem+json"),
        );
        if let Some(seconds) = self.retry_after {
            headers.insert(header::RETRY_AFTER, seconds.into());
        }
        let mut response = (self.status, headers, body).into_response();
        if self.status == StatusCode::PRECONDITION_FAILED
            && let Some(now) = self.more.get("tag").and_then(|tag| tag.as_str())
        {
            tag::etag(&mut response, now);
        }
        response
    }
}
