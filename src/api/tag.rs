//! `ETag` and `If-Match`: what somebody has seen of what they change.

use axum::http::header::{self, HeaderValue};
use axum::http::{HeaderMap, StatusCode};
use axum::response::Response;
use serde::Serialize;
use sha2::{Digest, Sha256};

use super::Refusal;
use crate::prompt::parse::hex;

/// A tag that changes with what a value says.
pub(super) fn tag_of(value: &impl Serialize) -> String {
    let text = serde_json::to_vec(value).unwrap_or_default();
    hex(&Sha256::digest(&text)).chars().take(32).collect()
}

/// Puts a tag on an answer.
pub(super) fn etag(response: &mut Response, tag: &str) {
    if let Ok(tag) = HeaderValue::from_str(&format!("\"{tag}\"")) {
        response.headers_mut().insert(header::ETAG, tag);
    }
}

/// What the caller says they have seen: `If-Match`, without its quotes. None where they say nothing, or `*`.
pub(super) fn seen_tag(headers: &HeaderMap) -> Option<String> {
    let text = headers
        .get(header::IF_MATCH)?
        .to_str()
        .unwrap_or("?")
        .trim();
    let tag = text.strip_prefix("W/").unwrap_or(text).trim_matches('"');
    (tag != "*").then(|| tag.to_owned())
}

/// Refuses what was asked by who has seen something else than is there now.
pub(super) fn unchanged(seen: Option<&str>, now: &str) -> Result<(), Refusal> {
    match seen {
        Some(seen) if seen != now => Err(changed(
            "it has changed since you looked, and nothing was done; look again",
            now,
        )),
        _ => Ok(()),
    }
}

/// The refusal of what was asked by who has seen something else; the answer has the tag of now.
pub(super) fn changed(detail: impl Into<String>, now: &str) -> Refusal {
    Refusal::new(StatusCode::PRECONDITION_FAILED, detail).with("tag", now.into())
}
