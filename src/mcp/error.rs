//! JSON-RPC errors: the one place where domain errors become codes.

use serde::Serialize;
use serde_json::value::RawValue;

use super::revision::Revision;
use crate::catalog::ResolveError;
use crate::prompt::{BindError, RenderError, selector::SelectorError};
use crate::registry::AtError;

/// Codes that this server sends.
pub mod code {
    /// The text is not JSON.
    pub const PARSE: i32 = -32700;
    /// The JSON is not a message.
    pub const INVALID_REQUEST: i32 = -32600;
    /// No such method.
    pub const METHOD_NOT_FOUND: i32 = -32601;
    /// The parameters are wrong, or name what is not there.
    pub const INVALID_PARAMS: i32 = -32602;
    /// A fault of the server.
    pub const INTERNAL: i32 = -32603;
    /// Resource not found, until 2025-11-25.
    pub const RESOURCE_NOT_FOUND: i32 = -32002;
    /// HTTP headers and body disagree, since 2026-07-28.
    pub const HEADER_MISMATCH: i32 = -32020;
    /// The revision is not spoken here, since 2026-07-28.
    pub const UNSUPPORTED_VERSION: i32 = -32022;
}

/// A JSON-RPC error with the HTTP status it travels under.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RpcError {
    /// The code, one of [`code`].
    pub code: i32,
    /// One plain line that a person can act on.
    pub message: String,
    /// `data`, as JSON text.
    pub data: Option<String>,
    /// HTTP status; 200 for what a client is to read as an answer.
    pub status: u16,
}

impl RpcError {
    fn new(code: i32, status: u16, message: impl Into<String>) -> Self {
        let mut message = message.into();
        // A client shows it on one line; what is quoted in it may hold anything.
        if message.contains(char::is_control) {
            message = message
                .chars()
                .map(|c| if c.is_control() { ' ' } else { c })
                .collect();
        }
        Self {
            code,
            message,
            data: None,
            status,
        }
    }

    fn with_data(mut self, data: &impl Serialize) -> Self {
        self.data = serde_json::to_string(data).ok();
        self
    }

    /// The text is not JSON.
    pub fn parse(detail: impl std::fmt::Display) -> Self {
        Self::new(
            code::PARSE,
            400,
            format!("the message is not valid JSON: {detail}"),
        )
    }

    /// The JSON is not a message.
    pub fn invalid_request(detail: impl std::fmt::Display) -> Self {
        Self::new(
            code::INVALID_REQUEST,
            400,
            format!("the message is not a JSON-RPC 2.0 request: {detail}"),
        )
    }

    /// A message that is well-formed, and that is not taken where or as it came; the sentence says why.
    pub fn refused(status: u16, why: impl Into<String>) -> Self {
        Self::new(code::INVALID_REQUEST, status, why)
    }

    /// The message is longer than is read.
    pub fn too_large(limit: usize) -> Self {
        Self::new(
            code::INVALID_REQUEST,
            413,
            format!("the message is longer than {limit} bytes"),
        )
    }

    /// No such method in this revision.
    pub fn method_not_found(method: &str, revision: Revision) -> Self {
        let method: String = method.chars().take(80).collect();
        let status = if revision.is_modern() { 404 } else { 200 };
        Self::new(
            code::METHOD_NOT_FOUND,
            status,
            format!("method `{method}` does not exist in revision {revision}"),
        )
    }

    /// Wrong parameters, or a name of nothing.
    pub fn invalid_params(message: impl Into<String>) -> Self {
        Self::new(code::INVALID_PARAMS, 200, message)
    }

    /// `_meta` lacks what every modern request must say.
    pub fn missing_meta(what: &str) -> Self {
        Self::new(
            code::INVALID_PARAMS,
            400,
            format!("`params._meta` needs {what}"),
        )
    }

    /// Headers and body disagree.
    pub fn header_mismatch(message: impl Into<String>) -> Self {
        Self::new(
            code::HEADER_MISMATCH,
            400,
            format!("header mismatch: {}", message.into()),
        )
    }

    /// The revision is not spoken here.
    pub fn unsupported_version(requested: &str) -> Self {
        #[derive(Serialize)]
        struct Data<'a> {
            supported: [&'static str; 1],
            requested: &'a str,
        }
        let requested: String = requested.chars().take(80).collect();
        Self::new(
            code::UNSUPPORTED_VERSION,
            400,
            format!("protocol version `{requested}` is not supported"),
        )
        .with_data(&Data {
            supported: Revision::MODERN,
            requested: &requested,
        })
    }

    /// Nothing is at a URI.
    pub fn resource_not_found(uri: &str, near: &[String], revision: Revision) -> Self {
        #[derive(Serialize)]
        struct Data<'a> {
            uri: &'a str,
        }
        let shown: String = uri.chars().take(200).collect();
        let mut message = format!("resource `{shown}` is not in the library");
        if !near.is_empty() {
            message = format!("{message}; near it: {}", near.join(", "));
        }
        let code = if revision.is_modern() {
            code::INVALID_PARAMS
        } else {
            code::RESOURCE_NOT_FOUND
        };
        Self::new(code, 200, message).with_data(&Data { uri })
    }

    /// A fault of the server: says which request, and nothing of the inside.
    pub fn internal(request_id: &str) -> Self {
        Self::new(
            code::INTERNAL,
            200,
            format!("the server failed to answer; its log says why under request id {request_id}"),
        )
    }

    /// The error as a whole response; `id` is none where it could not be read.
    pub fn to_response(&self, id: Option<&str>, modern: bool) -> Vec<u8> {
        #[derive(Serialize)]
        struct Response<'a> {
            jsonrpc: &'static str,
            #[serde(skip_serializing_if = "Option::is_none")]
            id: Option<&'a RawValue>,
            error: Error<'a>,
        }
        #[derive(Serialize)]
        struct Error<'a> {
            code: i32,
            message: &'a str,
            #[serde(skip_serializing_if = "Option::is_none")]
            data: Option<&'a RawValue>,
        }
        fn raw(text: &str) -> Option<&RawValue> {
            serde_json::from_str(text).ok()
        }
        let response = Response {
            jsonrpc: "2.0",
            // JSON-RPC wants null there, the modern schema wants nothing.
            id: id.or((!modern).then_some("null")).and_then(raw),
            error: Error {
                code: self.code,
                message: &self.message,
                data: self.data.as_deref().and_then(raw),
            },
        };
        serde_json::to_vec(&response).unwrap_or_default()
    }
}

/// What a method can fail with: an answer for the client, or a fault to log.
#[derive(Debug)]
pub enum Failure {
    /// Told to the client as it is.
    Client(RpcError),
    /// Logged with the request id; the client gets [`RpcError::internal`].
    Internal(String),
}

impl From<RpcError> for Failure {
    fn from(error: RpcError) -> Self {
        Self::Client(error)
    }
}

impl From<BindError> for Failure {
    fn from(error: BindError) -> Self {
        Self::Client(RpcError::invalid_params(error.to_string()))
    }
}

impl From<SelectorError> for Failure {
    fn from(error: SelectorError) -> Self {
        Self::Client(RpcError::invalid_params(error.to_string()))
    }
}

impl From<RenderError> for Failure {
    fn from(error: RenderError) -> Self {
        match error {
            RenderError::OutputLimit { .. } => {
                Self::Client(RpcError::invalid_params(error.to_string()))
            }
            // which limit and both numbers: whoever called can give less, or have the template mended
            RenderError::Stopped(ref stopped) => {
                tracing::warn!(%stopped, "a render was stopped");
                Self::Client(RpcError::new(
                    code::INTERNAL,
                    200,
                    format!("the prompt could not be rendered: {error}"),
                ))
            }
            // A fault of the library, not of the server: whoever called needs the place to have it
            // mended. The engine's message may quote a value, and values are never logged.
            RenderError::Template {
                ref path,
                line,
                column,
                ..
            } => {
                tracing::warn!("{path}:{line}:{column}: a template failed");
                Self::Client(RpcError::new(
                    code::INTERNAL,
                    200,
                    format!("the prompt could not be rendered: {error}"),
                ))
            }
        }
    }
}

impl From<ResolveError> for Failure {
    fn from(error: ResolveError) -> Self {
        #[derive(Serialize)]
        struct Data<'a> {
            uri: &'a str,
        }
        match error {
            ResolveError::MissingResource { ref uri, .. } => {
                Self::Client(RpcError::invalid_params(error.to_string()).with_data(&Data { uri }))
            }
            ResolveError::EmptyUri { .. } => {
                Self::Client(RpcError::invalid_params(error.to_string()))
            }
            ResolveError::Uri(error) => error.into(),
        }
    }
}

impl From<AtError> for Failure {
    fn from(error: AtError) -> Self {
        match error {
            AtError::Io => Self::Internal(error.to_string()),
            AtError::Busy | AtError::Counting { .. } => {
                Self::Client(RpcError::new(code::INTERNAL, 200, error.to_string()))
            }
            AtError::Unknown(_)
            | AtError::Ambiguous(_)
            | AtError::Unclean { .. }
            | AtError::NoVersion { .. }
            | AtError::UncleanVersion { .. }
            | AtError::NotNumbered => Self::Client(RpcError::invalid_params(error.to_string())),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn shapes() {
        let error = RpcError::unsupported_version("v999");
        assert_eq!(
            String::from_utf8(error.to_response(Some("7"), true)).unwrap(),
            r#"{"jsonrpc":"2.0","id":7,"error":{"code":-32022,"message":"protocol version `v999` is not supported","data":{"supported":["2026-07-28"],"requested":"v999"}}}"#
        );
        let error = RpcError::parse("line 1\ncolumn 2");
        assert_eq!(
            String::from_utf8(error.to_response(None, false)).unwrap(),
            r#"{"jsonrpc":"2.0","id":null,"error":{"code":-32700,"message":"the message is not valid JSON: line 1 column 2"}}"#
        );
        assert!(
            !String::from_utf8(error.to_response(None, true))
                .unwrap()
                .contains("\"id\"")
        );
    }

    #[test]
    fn resource_not_found_differs_by_era() {
        let code = |r| RpcError::resource_not_found("a://b", &[], r).code;
        assert_eq!(code(Revision::V2025_11_25), -32002);
        assert_eq!(code(Revision::V2026_07_28), -32602);
    }
}
