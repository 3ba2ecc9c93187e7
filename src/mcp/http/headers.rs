//! The headers of the protocol: which revision, which session, and that they agree with the body.

use std::borrow::Cow;

use axum::http::header::{ACCEPT, CONTENT_TYPE};
use axum::http::{HeaderMap, HeaderName};
use base64::Engine;
use base64::engine::general_purpose::STANDARD;

use super::super::envelope::{Request, text};
use super::super::error::RpcError;
use super::super::meta;
use super::super::revision::Revision;

pub(super) const SESSION_ID: HeaderName = HeaderName::from_static("mcp-session-id");
const PROTOCOL_VERSION: HeaderName = HeaderName::from_static("mcp-protocol-version");
const METHOD: HeaderName = HeaderName::from_static("mcp-method");
const NAME: HeaderName = HeaderName::from_static("mcp-name");

/// What `MCP-Protocol-Version` says.
pub(super) struct Version<'a>(Cow<'a, str>);

impl Version<'_> {
    /// Whether it is a revision with `initialize`.
    pub(super) fn is_legacy(&self) -> bool {
        Revision::parse_legacy(&self.0).is_some()
    }

    /// Whether it is a revision without, that is spoken here.
    pub(super) fn is_modern(&self) -> bool {
        Revision::parse(&self.0).is_some_and(Revision::is_modern)
    }

    /// The legacy revision it names.
    pub(super) fn legacy(&self) -> Result<Revision, RpcError> {
        Revision::parse_legacy(&self.0).ok_or_else(|| {
            let shown: String = self.0.chars().take(40).collect();
            let known: Vec<&str> = Revision::ALL
                .iter()
                .map(|revision| revision.as_str())
                .collect();
            RpcError::refused(
                400,
                format!(
                    "the MCP-Protocol-Version header is `{shown}`, which is not one of {}",
                    known.join(", ")
                ),
            )
        })
    }
}

/// The revision that the headers name.
pub(super) fn version(headers: &HeaderMap) -> Option<Version<'_>> {
    headers
        .get(PROTOCOL_VERSION)
        .map(|value| Version(String::from_utf8_lossy(value.as_bytes())))
}

/// The session that the headers name.
pub(super) fn session_id(headers: &HeaderMap) -> Option<Cow<'_, str>> {
    headers
        .get(SESSION_ID)
        .map(|value| String::from_utf8_lossy(value.as_bytes()))
}

/// Whether the body is said to be JSON; a client that says nothing is believed.
pub(super) fn is_json(headers: &HeaderMap) -> bool {
    let Some(value) = headers.get(CONTENT_TYPE) else {
        return true;
    };
    let Ok(value) = value.to_str() else {
        return false;
    };
    let media = value.split(';').next().unwrap_or_default().trim();
    media.eq_ignore_ascii_case("application/json")
}

/// Whether the client can read a stream of events.
pub(super) fn accepts_events(headers: &HeaderMap) -> bool {
    let mut accepts = headers.get_all(ACCEPT).iter().peekable();
    if accepts.peek().is_none() {
        return true;
    }
    accepts
        .filter_map(|value| value.to_str().ok())
        .flat_map(|value| value.split(','))
        .any(|range| {
            let media = range.split(';').next().unwrap_or_default().trim();
            media.eq_ignore_ascii_case("text/event-stream")
                || media.eq_ignore_ascii_case("text/*")
                || media == "*/*"
        })
}

/// Headers that every modern request has, against its body.
pub(super) fn check_modern(headers: &HeaderMap, request: &Request<'_>) -> Result<(), RpcError> {
    let declared = meta::declared_version(&request.params);
    match (version(headers), declared) {
        // A body without a version is wrong in itself, whatever the header says.
        (_, None) => return Ok(()),
        (None, Some(_)) => {
            return Err(RpcError::header_mismatch("MCP-Protocol-Version is missing"));
        }
        (Some(header), Some(body)) if header.0 != body => {
            return Err(RpcError::header_mismatch(format!(
                "MCP-Protocol-Version is `{}`, `_meta` says `{}`",
                shown(&header.0),
                shown(&body)
            )));
        }
        (Some(_), Some(_)) => {}
    }
    match one(headers, &METHOD)? {
        None => Err(RpcError::header_mismatch("Mcp-Method is missing")),
        Some(method) if method != request.method => Err(RpcError::header_mismatch(format!(
            "Mcp-Method is `{}`, the body says `{}`",
            shown(&method),
            shown(&request.method)
        ))),
        Some(_) => Ok(()),
    }
}

/// `Mcp-Name` against what the body names.
pub(super) fn check_name(headers: &HeaderMap, request: &Request<'_>) -> Result<(), RpcError> {
    let body = match &*request.method {
        "prompts/get" | "tools/call" => request.params.name,
        "resources/read" => request.params.uri,
        _ => return Ok(()),
    };
    let body = body.and_then(text);
    let header = one(headers, &NAME)?.map(decode).transpose()?;
    match (header, body) {
        (None, Some(_)) => Err(RpcError::header_mismatch("Mcp-Name is missing")),
        (Some(header), body) if Some(&*header) != body.as_deref() => {
            Err(RpcError::header_mismatch(format!(
                "Mcp-Name is `{}`, the body says `{}`",
                shown(&header),
                shown(&body.unwrap_or_default())
            )))
        }
        // Where the body names nothing, the method says what is wrong with it.
        (None, None) | (Some(_), _) => Ok(()),
    }
}

fn shown(text: &str) -> String {
    text.chars().take(80).collect()
}

/// A header that must not be repeated.
fn one<'a>(headers: &'a HeaderMap, name: &HeaderName) -> Result<Option<Cow<'a, str>>, RpcError> {
    let mut values = headers.get_all(name).iter();
    let Some(value) = values.next() else {
        return Ok(None);
    };
    if values.next().is_some() {
        return Err(RpcError::header_mismatch(format!("{name} is given twice")));
    }
    let wrong =
        || RpcError::header_mismatch(format!("{name} has characters that a header cannot carry"));
    value
        .to_str()
        .map(|value| Some(Cow::Borrowed(value)))
        .map_err(|_| wrong())
}

/// Undoes the `=?base64?…?=` form.
fn decode(value: Cow<'_, str>) -> Result<Cow<'_, str>, RpcError> {
    let Some(encoded) = value
        .strip_prefix("=?base64?")
        .and_then(|rest| rest.strip_suffix("?="))
    else {
        return Ok(value);
    };
    STANDARD
        .decode(encoded)
        .ok()
        .and_then(|bytes| String::from_utf8(bytes).ok())
        .map(Cow::Owned)
        .ok_or_else(|| RpcError::header_mismatch("Mcp-Name is not valid base64 of UTF-8 text"))
}

#[cfg(test)]
mod tests {
    use axum::http::HeaderValue;

    use super::super::super::envelope::{Incoming, Message};
    use super::*;

    const META: &str = r#""_meta":{"io.modelcontextprotocol/protocolVersion":"2026-07-28"}"#;

    #[track_caller]
    fn check(method: &str, params: &str, headers: &[(&'static str, &str)], ok: bool) {
        let body = format!(
            r#"{{"jsonrpc":"2.0","id":1,"method":"{method}","params":{{{META}{params}}}}}"#
        );
        let Incoming::One(Ok(Message::Request(request))) = Incoming::parse(body.as_bytes()) else {
            panic!("{body}")
        };
        let mut map = HeaderMap::new();
        for (name, value) in headers {
            map.append(*name, HeaderValue::from_bytes(value.as_bytes()).unwrap());
        }
        let outcome = check_modern(&map, &request).and_then(|()| check_name(&map, &request));
        assert_eq!(outcome.is_ok(), ok, "{headers:?} {outcome:?}");
        if let Err(error) = outcome {
            assert_eq!((error.code, error.status), (-32020, 400));
        }
    }

    #[test]
    fn headers_agree_with_the_body() {
        let version = ("mcp-protocol-version", "2026-07-28");
        let list = ("mcp-method", "prompts/list");
        check("prompts/list", "", &[version, list], true);
        check("prompts/list", "", &[version], false);
        check("prompts/list", "", &[list], false);
        check(
            "prompts/list",
            "",
            &[version, ("mcp-method", "PROMPTS/LIST")],
            false,
        );
        check(
            "prompts/list",
            "",
            &[("mcp-protocol-version", "2025-11-25"), list],
            false,
        );
        check("prompts/list", "", &[version, list, list], false);
        let get = ("mcp-method", "prompts/get");
        let name = r#","name":"triage""#;
        check(
            "prompts/get",
            name,
            &[version, get, ("mcp-name", "triage")],
            true,
        );
        check(
            "prompts/get",
            name,
            &[version, get, ("mcp-name", "=?base64?dHJpYWdl?=")],
            true,
        );
        check(
            "prompts/get",
            name,
            &[version, get, ("mcp-name", "other")],
            false,
        );
        check(
            "prompts/get",
            name,
            &[version, get, ("mcp-name", "=?base64?!!?=")],
            false,
        );
        check(
            "prompts/get",
            name,
            &[version, get, ("mcp-name", "트리아지")],
            false,
        );
        check("prompts/get", name, &[version, get], false);
        check("prompts/get", "", &[version, get], true);
        let read = ("mcp-method", "resources/read");
        check(
            "resources/read",
            r#","uri":"runbook://결제""#,
            &[
                version,
                read,
                ("mcp-name", "=?base64?cnVuYm9vazovL+qysOygnA==?="),
            ],
            true,
        );
    }

    #[test]
    fn media_types() {
        let mut headers = HeaderMap::new();
        assert!(is_json(&headers) && accepts_events(&headers));
        headers.insert(
            CONTENT_TYPE,
            HeaderValue::from_static("Application/JSON; charset=utf-8"),
        );
        headers.insert(
            ACCEPT,
            HeaderValue::from_static("application/json, text/event-stream;q=0.9"),
        );
        assert!(is_json(&headers) && accepts_events(&headers));
        headers.insert(CONTENT_TYPE, HeaderValue::from_static("text/plain"));
        headers.insert(ACCEPT, HeaderValue::from_static("text/html"));
        assert!(!is_json(&headers) && !accepts_events(&headers));
    }
}
