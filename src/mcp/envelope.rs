//! JSON-RPC envelopes: one pass over the text, an exact error for everything that is wrong.
//!
//! Parameters stay as they came ([`RawValue`]) until a method asks for them, so that a large or a
//! deep value costs nothing where it is not wanted.

use std::borrow::Cow;

use serde::{Deserialize, Deserializer};
use serde_json::value::RawValue;

use super::error::RpcError;
use super::params::Params;

/// Messages in one batch, at most.
pub const MAX_BATCH: usize = 100;
/// Bytes of an id, at most: a stream keeps the id it was opened with.
pub const MAX_ID: usize = 512;

/// What a client sent: one message, or a batch of them.
#[derive(Debug)]
#[expect(
    clippy::large_enum_variant,
    reason = "one is made for each request and read at once"
)]
pub enum Incoming<'a> {
    /// One message.
    One(Result<Message<'a>, Rejected<'a>>),
    /// A JSON array of messages.
    Batch(Vec<Result<Message<'a>, Rejected<'a>>>),
}

/// A message that is not one, with its id where that could be read.
#[derive(Debug)]
pub struct Rejected<'a> {
    /// The id as JSON text.
    pub id: Option<&'a str>,
    /// What is wrong.
    pub error: RpcError,
}

/// A message.
#[derive(Debug)]
pub enum Message<'a> {
    /// Wants an answer.
    Request(Request<'a>),
    /// Wants none.
    Notification(Notification<'a>),
    /// An answer to a request that this server never sends.
    Response,
}

/// A request.
#[derive(Debug)]
pub struct Request<'a> {
    /// The id as JSON text, echoed byte for byte.
    pub id: &'a str,
    /// The method.
    pub method: Cow<'a, str>,
    /// Its parameters.
    pub params: Params<'a>,
}

/// A notification.
#[derive(Debug)]
pub struct Notification<'a> {
    /// The method.
    pub method: Cow<'a, str>,
    /// Its parameters; none where they were not an object.
    pub params: Params<'a>,
}

#[derive(Deserialize)]
struct Envelope<'a> {
    #[serde(borrow, default, deserialize_with = "present")]
    jsonrpc: Option<&'a RawValue>,
    #[serde(borrow, default, deserialize_with = "present")]
    id: Option<&'a RawValue>,
    #[serde(borrow, default, deserialize_with = "present")]
    method: Option<&'a RawValue>,
    #[serde(borrow, default, deserialize_with = "present")]
    params: Option<&'a RawValue>,
    #[serde(borrow, default, deserialize_with = "present")]
    result: Option<&'a RawValue>,
    #[serde(borrow, default, deserialize_with = "present")]
    error: Option<&'a RawValue>,
}

/// Keeps `null` apart from absent.
pub(super) fn present<'de, D: Deserializer<'de>>(
    deserializer: D,
) -> Result<Option<&'de RawValue>, D::Error> {
    <&RawValue>::deserialize(deserializer).map(Some)
}

/// A JSON string as text; none when the value is not a string or not valid Unicode.
pub(super) fn text(raw: &RawValue) -> Option<Cow<'_, str>> {
    let json = raw.get();
    let inner = json.strip_prefix('"')?.strip_suffix('"')?;
    if !inner.contains('\\') && !inner.contains(|c: char| c < ' ') {
        return Some(Cow::Borrowed(inner));
    }
    serde_json::from_str(json).ok().map(Cow::Owned)
}

/// The JSON type of a value, with its article, for messages.
pub(super) fn kind(raw: &RawValue) -> &'static str {
    match raw.get().as_bytes().first() {
        Some(b'"') => "a string",
        Some(b'{') => "an object",
        Some(b'[') => "an array",
        Some(b't' | b'f') => "a boolean",
        Some(b'n') => "null",
        _ => "a number",
    }
}

impl<'a> Incoming<'a> {
    /// Reads a body or a line.
    pub fn parse(bytes: &'a [u8]) -> Self {
        match std::str::from_utf8(bytes) {
            Ok(text) => Self::parse_text(text),
            Err(error) => Self::One(Err(Rejected {
                id: None,
                error: RpcError::parse(format_args!(
                    "byte {} is not valid UTF-8",
                    error.valid_up_to() + 1
                )),
            })),
        }
    }

    fn parse_text(text: &'a str) -> Self {
        if !text
            .trim_start_matches([' ', '\t', '\r', '\n'])
            .starts_with('[')
        {
            return Self::One(message(text));
        }
        match serde_json::from_str::<Vec<&'a RawValue>>(text) {
            Err(error) => Self::One(Err(Rejected {
                id: None,
                error: RpcError::parse(error),
            })),
            Ok(items) if items.is_empty() => Self::One(Err(invalid(None, "the batch is empty"))),
            Ok(items) if items.len() > MAX_BATCH => Self::One(Err(invalid(
                None,
                format_args!("the batch has more than {MAX_BATCH} messages"),
            ))),
            Ok(items) => Self::Batch(items.into_iter().map(|item| message(item.get())).collect()),
        }
    }
}

fn invalid(id: Option<&str>, detail: impl std::fmt::Display) -> Rejected<'_> {
    Rejected {
        id,
        error: RpcError::invalid_request(detail),
    }
}

fn message(text: &str) -> Result<Message<'_>, Rejected<'_>> {
    let envelope: Envelope<'_> = serde_json::from_str(text).map_err(|error| {
        if error.is_data() {
            if text.trim_start().starts_with('{') {
                invalid(None, error)
            } else {
                invalid(None, "it is not an object")
            }
        } else {
            Rejected {
                id: None,
                error: RpcError::parse(error),
            }
        }
    })?;
    let id = match envelope.id {
        None => None,
        Some(raw) => Some(check_id(raw)?),
    };
    if envelope.jsonrpc.and_then(self::text).as_deref() != Some("2.0") {
        return Err(invalid(id, "`jsonrpc` must be \"2.0\""));
    }
    let Some(method) = envelope.method else {
        return match (envelope.result, envelope.error) {
            (None, None) => Err(invalid(id, "`method` is missing")),
            (Some(_), Some(_)) => Err(invalid(id, "it has both `result` and `error`")),
            _ => Ok(Message::Response),
        };
    };
    let Some(method) = self::text(method) else {
        return Err(invalid(id, "`method` must be a string"));
    };
    let params = match envelope.params {
        None => Ok(Params::default()),
        Some(raw) => Params::parse(raw),
    };
    match (id, params) {
        (Some(id), Ok(params)) => Ok(Message::Request(Request { id, method, params })),
        (Some(id), Err(error)) => Err(Rejected {
            id: Some(id),
            error,
        }),
        (None, params) => Ok(Message::Notification(Notification {
            method,
            params: params.unwrap_or_default(),
        })),
    }
}

fn check_id(raw: &RawValue) -> Result<&str, Rejected<'_>> {
    let json = raw.get();
    if json.len() > MAX_ID {
        return Err(invalid(
            None,
            format_args!("`id` is longer than {MAX_ID} bytes"),
        ));
    }
    let integer = |json: &str| {
        let digits = json.strip_prefix('-').unwrap_or(json);
        !digits.is_empty() && digits.bytes().all(|b| b.is_ascii_digit())
    };
    if integer(json) || text(raw).is_some() {
        Ok(json)
    } else if json.starts_with(|c: char| c == '-' || c.is_ascii_digit()) {
        Err(invalid(
            None,
            "`id` must be a string or an integer, not a fraction",
        ))
    } else {
        Err(invalid(
            None,
            format_args!("`id` must be a string or an integer, not {}", kind(raw)),
        ))
    }
}

#[cfg(test)]
mod tests {
    use super::super::error::code;
    use super::*;

    fn outcome(text: &[u8]) -> (i32, Option<String>) {
        match Incoming::parse(text) {
            Incoming::One(Ok(Message::Request(request))) => (0, Some(request.id.to_owned())),
            Incoming::One(Ok(Message::Notification(_))) => (1, None),
            Incoming::One(Ok(Message::Response)) => (2, None),
            Incoming::One(Err(rejected)) => (rejected.error.code, rejected.id.map(str::to_owned)),
            Incoming::Batch(items) => (100 + i32::try_from(items.len()).unwrap(), None),
        }
    }

    #[track_caller]
    fn check(text: &str, code: i32, id: Option<&str>) {
        assert_eq!(
            outcome(text.as_bytes()),
            (code, id.map(str::to_owned)),
            "{text:.200}"
        );
    }

    #[test]
    fn requests_and_their_ids() {
        for id in [
            "1",
            "-1",
            "0",
            r#""a""#,
            r#""""#,
            r#""\u00e9""#,
            "123456789012345678901234567890",
        ] {
            check(
                &format!(r#"{{"jsonrpc":"2.0","id":{id},"method":"ping"}}"#),
                0,
                Some(id),
            );
        }
        for id in ["null", "1.5", "1e3", "{}", "[]", "true", r#""\ud800""#] {
            check(
                &format!(r#"{{"jsonrpc":"2.0","id":{id},"method":"ping"}}"#),
                code::INVALID_REQUEST,
                None,
            );
        }
        check(
            &format!(
                r#"{{"jsonrpc":"2.0","id":"{}","method":"ping"}}"#,
                "x".repeat(600)
            ),
            code::INVALID_REQUEST,
            None,
        );
        check(
            r#" {"id":1,"method":"ping","jsonrpc":"2.0","extra":{"a":[1]}} "#,
            0,
            Some("1"),
        );
    }

    #[test]
    fn what_is_not_json() {
        for text in [
            "",
            "{",
            "hello",
            r#"{"jsonrpc":"2.0","id":1,"method":"ping"}}"#,
            "{'a':1}",
            "[1,",
            "\u{feff}{}",
        ] {
            check(text, code::PARSE, None);
        }
        assert_eq!(
            outcome(b"{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"\xff\"}").0,
            code::PARSE
        );
    }

    #[test]
    fn what_is_not_a_message() {
        for text in [
            "5",
            "null",
            r#""x""#,
            "{}",
            "[]",
            r#"{"id":1,"method":"a"}"#,
            r#"{"jsonrpc":"1.0","method":"a"}"#,
        ] {
            assert_eq!(outcome(text.as_bytes()).0, code::INVALID_REQUEST, "{text}");
        }
        check(
            r#"{"jsonrpc":"2.0","id":4}"#,
            code::INVALID_REQUEST,
            Some("4"),
        );
        check(
            r#"{"jsonrpc":"2.0","id":4,"method":5}"#,
            code::INVALID_REQUEST,
            Some("4"),
        );
        check(
            r#"{"jsonrpc":"2.0","id":4,"id":5,"method":"a"}"#,
            code::INVALID_REQUEST,
            None,
        );
        check(
            r#"{"jsonrpc":"2.0","id":4,"result":{},"error":{}}"#,
            code::INVALID_REQUEST,
            Some("4"),
        );
    }

    #[test]
    fn notifications_responses_and_batches() {
        check(
            r#"{"jsonrpc":"2.0","method":"notifications/initialized"}"#,
            1,
            None,
        );
        check(
            r#"{"jsonrpc":"2.0","method":"notifications/initialized","params":[]}"#,
            1,
            None,
        );
        check(r#"{"jsonrpc":"2.0","id":1,"result":{}}"#, 2, None);
        check(r#"[{"jsonrpc":"2.0","id":1,"method":"ping"},5]"#, 102, None);
        check(
            &format!("[{}]", vec!["1"; 101].join(",")),
            code::INVALID_REQUEST,
            None,
        );
    }

    #[test]
    fn parameters_must_be_an_object() {
        check(
            r#"{"jsonrpc":"2.0","id":1,"method":"ping","params":[]}"#,
            code::INVALID_PARAMS,
            Some("1"),
        );
        check(
            r#"{"jsonrpc":"2.0","id":1,"method":"ping","params":"x"}"#,
            code::INVALID_PARAMS,
            Some("1"),
        );
        check(
            r#"{"jsonrpc":"2.0","id":1,"method":"ping","params":{"name":1,"name":2}}"#,
            code::INVALID_PARAMS,
            Some("1"),
        );
        check(
            r#"{"jsonrpc":"2.0","id":1,"method":"ping","params":null}"#,
            0,
            Some("1"),
        );
    }

    #[test]
    fn depth_does_not_cost_stack() {
        let deep = format!("{}{}", "[".repeat(500_000), "]".repeat(500_000));
        check(
            &format!(r#"{{"jsonrpc":"2.0","id":1,"method":"ping","params":{{"x":{deep}}}}}"#),
            0,
            Some("1"),
        );
        check(&"[".repeat(1_000_000), code::PARSE, None);
        check(&deep, 101, None);
    }
}
