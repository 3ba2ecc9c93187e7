//! One JSON-RPC message: what a line from the client is, and how lines for it are written.

use base64::{Engine, prelude::BASE64_STANDARD};
use bytes::Bytes;
use serde::Deserialize;
use serde_json::value::RawValue;
use serde_json::{Value, json};

/// `_meta` key with the revision of a modern request.
const VERSION: &str = "io.modelcontextprotocol/protocolVersion";
/// `_meta` key that ties a notification to the subscription it is for.
pub(super) const SUBSCRIPTION: &str = "io.modelcontextprotocol/subscriptionId";

/// JSON-RPC's code for text that is not JSON.
pub(super) const PARSE_ERROR: i32 = -32700;
/// JSON-RPC's code for JSON that is not a message.
pub(super) const INVALID_REQUEST: i32 = -32600;
/// JSON-RPC's code for a fault that is not the client's.
pub(super) const INTERNAL_ERROR: i32 = -32603;

/// What a message is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Kind {
    Request,
    Notification,
    Response,
    /// An array of messages, as 2025-03-26 has them.
    Batch,
}

/// A message from the client.
#[derive(Debug)]
pub(super) struct Message {
    /// As it came, without the line end: this is what is forwarded.
    pub(super) line: Bytes,
    pub(super) kind: Kind,
    /// The id as the client wrote it; `null` where there is none.
    pub(super) id: String,
    /// Empty where there is none.
    pub(super) method: String,
    pub(super) params: Value,
}

#[derive(Deserialize)]
struct Envelope<'a> {
    #[serde(borrow)]
    id: Option<&'a RawValue>,
    method: Option<String>,
    #[serde(borrow)]
    params: Option<&'a RawValue>,
    #[serde(borrow)]
    result: Option<&'a RawValue>,
    #[serde(borrow)]
    error: Option<&'a RawValue>,
}

impl Message {
    /// Reads a line, or says with which error to answer it.
    pub(super) fn parse(line: Bytes) -> Result<Self, (i32, String)> {
        let whole = |kind, line| Self {
            line,
            kind,
            id: "null".to_owned(),
            method: String::new(),
            params: Value::Null,
        };
        if line.first() == Some(&b'[') {
            serde_json::from_slice::<Vec<&RawValue>>(&line)
                .map_err(|error| (PARSE_ERROR, format!("the line is not JSON: {error}")))?;
            return Ok(whole(Kind::Batch, line));
        }
        let envelope: Envelope = match serde_json::from_slice(&line) {
            Ok(envelope) => envelope,
            Err(error) if error.is_data() => {
                return Err((
                    INVALID_REQUEST,
                    format!("the line is not a JSON-RPC message: {error}"),
                ));
            }
            Err(error) => return Err((PARSE_ERROR, format!("the line is not JSON: {error}"))),
        };
        let kind = match (&envelope.method, envelope.id) {
            (Some(_), Some(_)) => Kind::Request,
            (Some(_), None) => Kind::Notification,
            (None, Some(_)) if envelope.result.is_some() || envelope.error.is_some() => {
                Kind::Response
            }
            (None, _) => {
                return Err((
                    INVALID_REQUEST,
                    "the message has neither a method nor a result".to_owned(),
                ));
            }
        };
        let params = envelope
            .params
            .map(|raw| serde_json::from_str(raw.get()))
            .transpose();
        Ok(Self {
            kind,
            id: envelope.id.map_or("null", RawValue::get).to_owned(),
            method: envelope.method.unwrap_or_default(),
            params: params.unwrap_or_default().unwrap_or_default(),
            line,
        })
    }

    /// The revision that a modern request names for itself; legacy messages name none.
    pub(super) fn version(&self) -> Option<&str> {
        self.params.get("_meta")?.get(VERSION)?.as_str()
    }

    /// `params.<field>` where it is text.
    pub(super) fn text(&self, field: &str) -> Option<&str> {
        self.params.get(field)?.as_str()
    }

    /// The value of the `Mcp-Name` header, where the method has one.
    pub(super) fn name(&self) -> Option<String> {
        let field = match self.method.as_str() {
            "prompts/get" | "tools/call" => "name",
            "resources/read" => "uri",
            _ => return None,
        };
        self.text(field).map(header_value)
    }

    /// Under which key the reply is remembered, for the methods whose replies are; `era` is the revision.
    pub(super) fn key(&self, era: &str) -> Option<String> {
        match self.method.as_str() {
            "initialize" => Some(format!(
                "initialize {}",
                self.text("protocolVersion").unwrap_or_default()
            )),
            "server/discover" => Some(format!("server/discover {era}")),
            method if is_list(method) => Some(format!(
                "{method} {era} {}",
                self.text("cursor").unwrap_or_default()
            )),
            "prompts/get" => {
                let call = json!([self.params.get("name"), self.params.get("arguments")]);
                Some(format!("prompts/get {era} {call}"))
            }
            _ => None,
        }
    }
}

/// Whether replies to `method` are lists that are served while the server is away.
pub(super) fn is_list(method: &str) -> bool {
    matches!(
        method,
        "prompts/list" | "resources/list" | "resources/templates/list" | "tools/list"
    )
}

/// Whether replies to `method` go into the cache file.
pub(super) fn is_kept_on_disk(method: &str) -> bool {
    is_list(method) || matches!(method, "initialize" | "server/discover")
}

/// Writes a header value: as it is where that is safe, else `=?base64?…?=`.
fn header_value(value: &str) -> String {
    let blank = |byte: Option<&u8>| matches!(byte, Some(b' ' | b'\t'));
    let bytes = value.as_bytes();
    let looks_encoded = value.starts_with("=?base64?") && value.ends_with("?=");
    let plain = bytes.iter().all(|byte| (b' '..=b'~').contains(byte));
    let plain = plain && !blank(bytes.first()) && !blank(bytes.last()) && !looks_encoded;
    if plain {
        value.to_owned()
    } else {
        format!("=?base64?{}?=", BASE64_STANDARD.encode(value))
    }
}

/// What a message from the server is.
#[derive(Debug, Deserialize)]
pub(super) struct Incoming<'a> {
    #[serde(borrow)]
    pub(super) id: Option<&'a RawValue>,
    #[serde(default)]
    pub(super) method: Option<String>,
    #[serde(borrow)]
    pub(super) result: Option<&'a RawValue>,
    #[serde(borrow)]
    pub(super) error: Option<&'a RawValue>,
}

impl<'a> Incoming<'a> {
    /// Reads a message; nothing where it is no JSON object.
    pub(super) fn parse(text: &'a str) -> Option<Self> {
        serde_json::from_str(text).ok()
    }

    /// Whether this answers the request with the given id. A server that could not read the id says null.
    pub(super) fn answers(&self, id: &str) -> bool {
        let answer = self.method.is_none() && (self.result.is_some() || self.error.is_some());
        answer && self.id.is_none_or(|own| own.get() == id)
    }
}

/// A reply line.
pub(super) fn reply(id: &str, result: &str) -> String {
    format!(r#"{{"jsonrpc":"2.0","id":{id},"result":{result}}}"#)
}

/// An error line.
pub(super) fn error(id: &str, code: i32, message: &str) -> String {
    format!(
        r#"{{"jsonrpc":"2.0","id":{id},"error":{}}}"#,
        json!({"code": code, "message": message})
    )
}

/// A request line of the bridge's own.
pub(super) fn request(id: &str, method: &str, params: &Value) -> String {
    json!({"jsonrpc": "2.0", "id": id, "method": method, "params": params}).to_string()
}

/// A notification line, for one subscription or for the session.
pub(super) fn notification(method: &str, subscription: Option<&Value>) -> String {
    match subscription {
        Some(id) => {
            json!({"jsonrpc": "2.0", "method": method, "params": {"_meta": {SUBSCRIPTION: id}}})
                .to_string()
        }
        None => json!({"jsonrpc": "2.0", "method": method}).to_string(),
    }
}

/// One line of text from JSON that may be spread over several: raw line ends are only ever blanks in JSON.
pub(super) fn one_line(mut text: String) -> String {
    if text.contains(['\n', '\r']) {
        text = text.replace(['\n', '\r'], " ");
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parse(line: &str) -> Result<Message, (i32, String)> {
        Message::parse(Bytes::copy_from_slice(line.as_bytes()))
    }

    #[test]
    fn lines_are_told_apart() {
        for (line, kind) in [
            (r#"{"jsonrpc":"2.0","id":1,"method":"ping"}"#, Kind::Request),
            (
                r#"{"jsonrpc":"2.0","id":"a","method":"ping","params":[1]}"#,
                Kind::Request,
            ),
            (
                r#"{"jsonrpc":"2.0","method":"notifications/initialized"}"#,
                Kind::Notification,
            ),
            (r#"{"jsonrpc":"2.0","id":1,"result":{}}"#, Kind::Response),
            (
                r#"{"jsonrpc":"2.0","id":1,"error":{"code":1,"message":""}}"#,
                Kind::Response,
            ),
            (r#"[{"jsonrpc":"2.0","id":1,"method":"ping"}]"#, Kind::Batch),
        ] {
            assert_eq!(parse(line).unwrap().kind, kind, "{line}");
        }
        for (line, code) in [
            ("{", PARSE_ERROR),
            ("hello", PARSE_ERROR),
            ("[1", PARSE_ERROR),
            ("5", INVALID_REQUEST),
            ("{}", INVALID_REQUEST),
            (r#"{"id":1}"#, INVALID_REQUEST),
            (r#"{"id":1,"method":5}"#, INVALID_REQUEST),
        ] {
            assert_eq!(parse(line).unwrap_err().0, code, "{line}");
        }
    }

    #[test]
    fn ids_are_kept_as_written() {
        for id in ["1", "1.0", "\"\\u0061\"", "123456789012345678901234567890"] {
            let message = parse(&format!(r#"{{"id": {id} ,"method":"ping"}}"#)).unwrap();
            assert_eq!(message.id, id);
        }
    }

    #[test]
    fn names_become_header_values() {
        for (name, header) in [
            ("incident-triage", "incident-triage"),
            ("incident-triage@v3", "incident-triage@v3"),
            ("장애", "=?base64?7J6l7JWg?="),
            (" x", "=?base64?IHg=?="),
            ("=?base64?eA==?=", "=?base64?PT9iYXNlNjQ/ZUE9PT89?="),
            ("a\nb", "=?base64?YQpi?="),
        ] {
            let line = request("1", "prompts/get", &json!({"name": name}));
            assert_eq!(parse(&line).unwrap().name().as_deref(), Some(header));
        }
        let line = request(
            "1",
            "resources/read",
            &json!({"uri": "runbook://payments", "name": "x"}),
        );
        assert_eq!(
            parse(&line).unwrap().name().as_deref(),
            Some("runbook://payments")
        );
        assert_eq!(
            parse(&request("1", "prompts/list", &json!({"name": "x"})))
                .unwrap()
                .name(),
            None
        );
    }

    #[test]
    fn equal_calls_have_equal_keys() {
        let key = |line: &str| parse(line).unwrap().key("2025-11-25");
        let a = key(
            r#"{"id":1,"method":"prompts/get","params":{"name":"x","arguments":{"a":"1","b":"2"}}}"#,
        );
        let b = key(
            r#"{"id":2,"method":"prompts/get","params":{"_meta":{"progressToken":7},"arguments":{"b":"2","a":"1"},"name":"x"}}"#,
        );
        assert!(a.is_some());
        assert_eq!(a, b);
        assert_ne!(
            a,
            key(r#"{"id":1,"method":"prompts/get","params":{"name":"x","arguments":{"a":"1"}}}"#)
        );
        assert_eq!(
            key(r#"{"id":1,"method":"tools/call","params":{"name":"x"}}"#),
            None
        );
    }

    #[test]
    fn replies_are_recognised() {
        let incoming = |text| Incoming::parse(text).unwrap();
        assert!(incoming(r#"{"id":1,"result":{}}"#).answers("1"));
        assert!(incoming(r#"{"id":null,"error":{}}"#).answers("1"));
        assert!(!incoming(r#"{"id":"1","result":{}}"#).answers("1"));
        assert!(!incoming(r#"{"id":1,"method":"ping"}"#).answers("1"));
        assert!(!incoming(r#"{"method":"notifications/progress"}"#).answers("1"));
        assert!(Incoming::parse("[]").is_none());
    }
}
