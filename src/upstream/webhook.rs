//! `/hooks/upstream`: a forge says that something was pushed. Only a hint: what counts is what is then fetched.
//!
//! Sources: GitHub, "Validating webhook deliveries" (HMAC-SHA256 of the raw body, `X-Hub-Signature-256`); GitLab,
//! "Webhooks" (`X-Gitlab-Token`); Gitea and Forgejo sign as GitHub does, also under a name of their own.

use std::num::NonZeroUsize;
use std::sync::{Arc, Mutex, PoisonError};

use axum::Router;
use axum::body::Body;
use axum::extract::State;
use axum::http::StatusCode;
use axum::http::header::{self, HeaderMap, HeaderValue};
use axum::response::{IntoResponse, Response};
use axum::routing::post;
use futures_util::StreamExt as _;
use hmac::{Hmac, KeyInit as _, Mac as _};
use lru::LruCache;
use sha2::{Digest as _, Sha256};

use super::Upstream;

/// Largest body that is read, in bytes; GitHub sends at most 25 MB.
const MAX_BODY: usize = 26 * 1024 * 1024;
/// Deliveries that are remembered.
const REMEMBERED: usize = 256;
/// Longest name of a delivery.
const MAX_ID: usize = 100;

/// Takes webhooks.
#[derive(Debug)]
struct Receiver {
    upstream: Arc<Upstream>,
    seen: Mutex<LruCache<String, ()>>,
}

/// The route of webhooks; without an upstream, or without a secret, it says what is missing.
pub fn routes(upstream: Option<Arc<Upstream>>) -> Router {
    let Some(upstream) = upstream else {
        return Router::new();
    };
    let receiver = Receiver {
        upstream,
        seen: Mutex::new(LruCache::new(
            NonZeroUsize::new(REMEMBERED).unwrap_or(NonZeroUsize::MIN),
        )),
    };
    Router::new()
        .route("/hooks/upstream", post(receive))
        .with_state(Arc::new(receiver))
}

async fn receive(
    State(receiver): State<Arc<Receiver>>,
    headers: HeaderMap,
    body: Body,
) -> Response {
    let Some(secret) = &receiver.upstream.settings().webhook_secret else {
        return answer(
            StatusCode::FORBIDDEN,
            "webhooks are not taken: set upstream.webhook_secret, and the same secret at the forge",
        );
    };
    let Ok(mut mac) = Hmac::<Sha256>::new_from_slice(secret.as_bytes()) else {
        return answer(
            StatusCode::INTERNAL_SERVER_ERROR,
            "the webhook secret cannot be used",
        );
    };
    let mut length = 0;
    let mut body = body.into_data_stream();
    while let Some(piece) = body.next().await {
        let Ok(piece) = piece else {
            return answer(StatusCode::BAD_REQUEST, "the body ended early");
        };
        length += piece.len();
        if length > MAX_BODY {
            return answer(StatusCode::PAYLOAD_TOO_LARGE, "the body is too large");
        }
        mac.update(&piece);
    }
    if !is_signed(&headers, secret, mac) {
        tracing::warn!("a webhook without a valid signature was refused");
        return answer(
            StatusCode::UNAUTHORIZED,
            "the signature does not fit: the secret here and at the forge must be the same",
        );
    }
    if let Some(id) = delivery(&headers) {
        let mut seen = receiver.seen.lock().unwrap_or_else(PoisonError::into_inner);
        if seen.put(id, ()).is_some() {
            return answer(StatusCode::OK, "this delivery was taken before");
        }
    }
    if text(&headers, "x-github-event") == Some("ping") {
        return answer(StatusCode::OK, "pong");
    }
    receiver.upstream.want();
    answer(StatusCode::ACCEPTED, "fetching")
}

fn text<'a>(headers: &'a HeaderMap, name: &str) -> Option<&'a str> {
    headers.get(name)?.to_str().ok()
}

/// Whether the forge knows the secret. Compared in a time that does not depend on the content.
fn is_signed(headers: &HeaderMap, secret: &str, mac: Hmac<Sha256>) -> bool {
    if let Some(signature) = text(headers, "x-hub-signature-256") {
        let digits = signature.strip_prefix("sha256=").unwrap_or_default();
        return bytes(digits).is_some_and(|bytes| mac.verify_slice(&bytes).is_ok());
    }
    for name in ["x-gitea-signature", "x-forgejo-signature"] {
        if let Some(digits) = text(headers, name) {
            return bytes(digits).is_some_and(|bytes| mac.verify_slice(&bytes).is_ok());
        }
    }
    if let Some(token) = headers.get("x-gitlab-token") {
        // of two hashes a comparison that ends early tells nothing
        return Sha256::digest(token.as_bytes()) == Sha256::digest(secret.as_bytes());
    }
    false
}

fn bytes(digits: &str) -> Option<Vec<u8>> {
    if digits.len() != 64 || !digits.is_ascii() {
        return None;
    }
    (0..32)
        .map(|i| u8::from_str_radix(&digits[2 * i..2 * i + 2], 16).ok())
        .collect()
}

/// What the forge calls this delivery; a repeated one has the same name.
fn delivery(headers: &HeaderMap) -> Option<String> {
    [
        "x-github-delivery",
        "x-gitlab-event-uuid",
        "x-gitea-delivery",
        "x-forgejo-delivery",
    ]
    .iter()
    .find_map(|name| text(headers, name))
    .filter(|id| !id.is_empty() && id.len() <= MAX_ID)
    .map(str::to_owned)
}

fn answer(status: StatusCode, message: &str) -> Response {
    let body = serde_json::json!({ "message": message }).to_string();
    let json = (
        header::CONTENT_TYPE,
        HeaderValue::from_static("application/json"),
    );
    (status, [json], body).into_response()
}
