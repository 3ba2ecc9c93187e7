//! What every HTTP request passes before a handler sees it, and the loop that accepts connections.
//!
//! Knows nothing of prompts or of MCP.

pub mod actor;
mod backoff;
mod client;
mod crowd;
mod guard;
mod pace;
mod rates;
mod serve;
mod streams;
mod tls;

use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, LazyLock};

use axum::extract::{Request, State};
use axum::http::header::{self, HeaderName, HeaderValue};
use axum::http::{HeaderMap, StatusCode};
use axum::middleware::Next;
use axum::response::{IntoResponse, Response};
use axum::{Router, middleware};

use self::client::Peer;
use crate::access::{Actor, Kind};

pub use self::backoff::{Attempt, Backoff};
pub use self::client::{ClientAddress, ForwardedHeader, Proxies};
pub use self::crowd::{Crowd, Held};
pub use self::guard::{Allowed, PublicUrlError, Refusal};
pub use self::pace::Pace;
pub use self::rates::{Network, RateSettings, Rates, TooMany, too_many_requests};
#[cfg(unix)]
pub use self::serve::serve_unix;
pub use self::serve::{App, Limits, serve, serve_tls};
pub use self::streams::{StreamSettings, Streams};
pub use self::tls::{Tls, TlsError};

/// The header that names a request in the log.
pub const REQUEST_ID: HeaderName = HeaderName::from_static("x-request-id");

/// Names a request in the log and in an internal error.
#[derive(Debug, Clone)]
pub struct RequestId(pub Arc<str>);

/// Where this process begins to count, so that two of them do not give the same names.
static FIRST: LazyLock<u64> = LazyLock::new(|| getrandom::u64().unwrap_or_default());
static COUNT: AtomicU64 = AtomicU64::new(0);

impl RequestId {
    /// A new one, not to be met twice. It is a name and no secret.
    pub fn new() -> Self {
        // An odd factor takes every number to another one, and neighbours far apart.
        let count = COUNT.fetch_add(1, Ordering::Relaxed);
        let mixed = FIRST.wrapping_add(count.wrapping_mul(0x9e37_79b9_7f4a_7c15));
        Self(format!("{mixed:016x}").into())
    }
}

impl Default for RequestId {
    fn default() -> Self {
        Self::new()
    }
}

/// What is known at the door: who may come in, and from where they come.
#[derive(Debug, Default)]
pub struct Entrance {
    /// Hosts and origins that are served.
    pub allowed: Allowed,
    /// Proxies whose word counts.
    pub proxies: Proxies,
    /// How many requests a client may make.
    pub rates: Rates,
    /// How many streams a client may have.
    pub streams: Streams,
    /// Failed attempts to show who one is.
    pub backoff: Backoff,
    /// The certificate, where the server speaks TLS itself.
    pub tls: Option<Arc<Tls>>,
}

/// Wraps a router in what everything passes, as [`outer`] does.
pub fn layers(router: Router, entrance: Arc<Entrance>) -> Router {
    let outer = async |State(entrance): State<Arc<Entrance>>, request, next: Next| {
        outer(&entrance, request, async |request| next.run(request).await).await
    };
    router.layer(middleware::from_fn_with_state(entrance, outer))
}

/// What everything passes first: request id, the client's address and how much it asks, Host and Origin, security headers.
pub async fn outer(
    entrance: &Entrance,
    mut request: Request,
    next: impl AsyncFnOnce(Request) -> Response,
) -> Response {
    let id = RequestId::new();
    let peer = request.extensions().get::<Peer>().copied();
    let client = peer.map(|peer| entrance.proxies.client(peer, request.headers()));
    // a proxy that ends TLS says it for itself
    let strict = peer.is_some_and(|peer| peer.encrypted)
        && entrance.allowed.is_whole_host(request.headers());
    let counted = client.map_or(Ok(()), |client| entrance.rates.address(client));
    let mut response = if let Err(too_many) = counted {
        too_many.response()
    } else if let Err(refusal) = entrance.allowed.check(request.headers()) {
        tracing::warn!(request_id = &*id.0, client = ?client.map(|c| c.ip), %refusal, "refused a request");
        refused(&refusal)
    } else {
        let extensions = request.extensions_mut();
        extensions.insert(id.clone());
        if let Some(client) = client {
            extensions.insert(client);
        }
        next(request).await
    };
    let headers = response.headers_mut();
    if let Ok(value) = HeaderValue::from_str(&id.0) {
        headers.insert(REQUEST_ID, value);
    }
    secure(headers);
    if strict {
        // for a year (RFC 6797); hosts below this one are not ours to bind
        headers.insert(
            header::STRICT_TRANSPORT_SECURITY,
            HeaderValue::from_static("max-age=31536000"),
        );
    }
    response
}

/// Counts the requests and streams of an actor who has shown a credential, and the streams of an address; stands behind
/// the layer that finds out who asks.
pub async fn per_actor(
    entrance: &Entrance,
    request: Request,
    next: impl AsyncFnOnce(Request) -> Response,
) -> Response {
    let extensions = request.extensions();
    let client = extensions.get::<ClientAddress>().copied();
    let actor = extensions
        .get::<Actor>()
        .filter(|actor| matches!(actor.kind(), Kind::Person | Kind::Service));
    let name = actor.map(|actor| actor.name.clone());
    if let Some(actor) = actor
        && let Err(too_many) = entrance.rates.actor(&actor.name)
    {
        let mut response = too_many.response();
        // for who makes a page of it
        response.extensions_mut().insert(actor.clone());
        return response;
    }
    let response = next(request).await;
    entrance.streams.count(name.as_ref(), client, response)
}

fn refused(refusal: &Refusal) -> Response {
    let status = match refusal {
        Refusal::NoHost => StatusCode::BAD_REQUEST,
        Refusal::Host(_) | Refusal::Origin(_) => StatusCode::FORBIDDEN,
    };
    (status, json_error(&refusal.to_string())).into_response()
}

/// `{"error": "…"}`, the form in which everything but JSON-RPC says no.
pub fn json_error(message: &str) -> impl IntoResponse + use<> {
    let body = serde_json::json!({ "error": message }).to_string();
    (
        [(
            header::CONTENT_TYPE,
            HeaderValue::from_static("application/json"),
        )],
        body,
    )
}

fn secure(headers: &mut HeaderMap) {
    let fixed = [
        (header::X_CONTENT_TYPE_OPTIONS, "nosniff"),
        (header::REFERRER_POLICY, "no-referrer"),
        (header::X_FRAME_OPTIONS, "DENY"),
        (
            header::CONTENT_SECURITY_POLICY,
            "default-src 'none'; frame-ancestors 'none'",
        ),
    ];
    for (name, value) in fixed {
        // A page may say more than this about itself.
        headers
            .entry(name)
            .or_insert(HeaderValue::from_static(value));
    }
}
