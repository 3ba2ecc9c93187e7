//! What every HTTP request passes before a handler sees it, and the loop that accepts connections.
//!
//! Knows nothing of prompts or of MCP.

pub mod actor;
mod guard;
mod serve;

use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, LazyLock};

use axum::extract::{Request, State};
use axum::http::header::{self, HeaderName, HeaderValue};
use axum::http::{HeaderMap, StatusCode};
use axum::middleware::Next;
use axum::response::{IntoResponse, Response};
use axum::{Router, middleware};

pub use self::guard::{Allowed, PublicUrlError, Refusal};
#[cfg(unix)]
pub use self::serve::serve_unix;
pub use self::serve::{Limits, serve};

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

/// Wraps a router in the layers that everything passes, outermost first: request id, Host and
/// Origin, security headers.
pub fn layers(router: Router, allowed: Arc<Allowed>) -> Router {
    router.layer(middleware::from_fn_with_state(allowed, outer))
}

async fn outer(State(allowed): State<Arc<Allowed>>, mut request: Request, next: Next) -> Response {
    let id = RequestId::new();
    let mut response = match allowed.check(request.headers()) {
        Ok(()) => {
            request.extensions_mut().insert(id.clone());
            next.run(request).await
        }
        Err(refusal) => {
            tracing::warn!(request_id = &*id.0, %refusal, "refused a request");
            refused(&refusal)
        }
    };
    let headers = response.headers_mut();
    if let Ok(value) = HeaderValue::from_str(&id.0) {
        headers.insert(REQUEST_ID, value);
    }
    secure(headers);
    response
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
