//! `_meta` of a request: what a modern client says of itself every time.

use serde::Deserialize;
use serde_json::value::RawValue;

use super::clients::Client;
use super::envelope::{present, text};
use super::error::RpcError;
use super::params::Params;
use super::revision::Revision;

const LOG_LEVELS: [&str; 8] = [
    "debug",
    "info",
    "notice",
    "warning",
    "error",
    "critical",
    "alert",
    "emergency",
];

/// Whether a text is one of the protocol's log levels.
pub fn is_log_level(text: &str) -> bool {
    LOG_LEVELS.contains(&text)
}

#[derive(Debug, Default, Deserialize)]
struct Fields<'a> {
    #[serde(
        borrow,
        default,
        deserialize_with = "present",
        rename = "io.modelcontextprotocol/protocolVersion"
    )]
    version: Option<&'a RawValue>,
    #[serde(
        borrow,
        default,
        deserialize_with = "present",
        rename = "io.modelcontextprotocol/clientInfo"
    )]
    client: Option<&'a RawValue>,
    #[serde(
        borrow,
        default,
        deserialize_with = "present",
        rename = "io.modelcontextprotocol/clientCapabilities"
    )]
    capabilities: Option<&'a RawValue>,
    #[serde(
        borrow,
        default,
        deserialize_with = "present",
        rename = "io.modelcontextprotocol/logLevel"
    )]
    log_level: Option<&'a RawValue>,
}

/// What the `_meta` of a modern request says.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ModernMeta {
    /// The revision the request is made in.
    pub revision: Revision,
    /// Who makes it, as it calls itself.
    pub client: Client,
}

/// The protocol version in `_meta`, which is what makes a request modern.
pub fn declared_version<'a>(params: &Params<'a>) -> Option<std::borrow::Cow<'a, str>> {
    let raw = params.meta?;
    let fields: Fields<'a> = serde_json::from_str(raw.get()).ok()?;
    fields.version.and_then(text)
}

/// Reads and checks the `_meta` of a modern request.
pub fn read(params: &Params<'_>) -> Result<ModernMeta, RpcError> {
    let raw = params.meta.ok_or_else(|| {
        RpcError::missing_meta(
            "\"io.modelcontextprotocol/protocolVersion\" and \"io.modelcontextprotocol/clientCapabilities\"",
        )
    })?;
    let fields: Fields<'_> = serde_json::from_str(raw.get())
        .map_err(|_| RpcError::missing_meta("to be an object without repeated keys"))?;
    let version = fields.version.and_then(text).ok_or_else(|| {
        RpcError::missing_meta("\"io.modelcontextprotocol/protocolVersion\", a string")
    })?;
    let revision = Revision::parse(&version)
        .filter(|revision| revision.is_modern())
        .ok_or_else(|| RpcError::unsupported_version(&version))?;
    if !fields
        .capabilities
        .is_some_and(|raw| raw.get().starts_with('{'))
    {
        return Err(RpcError::missing_meta(
            "\"io.modelcontextprotocol/clientCapabilities\", an object",
        ));
    }
    if let Some(level) = fields.log_level
        && !text(level).is_some_and(|level| is_log_level(&level))
    {
        return Err(RpcError::invalid_params(
            "`io.modelcontextprotocol/logLevel` is not a log level",
        ));
    }
    Ok(ModernMeta {
        revision,
        client: fields.client.map(Client::from_json).unwrap_or_default(),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(meta: &str, expected: Result<&str, i32>) {
        let params = format!(r#"{{"_meta":{meta}}}"#);
        let raw: &RawValue = serde_json::from_str(&params).unwrap();
        let read = read(&Params::parse(raw).unwrap());
        assert_eq!(
            read.as_ref().map(|m| &*m.client.name).map_err(|e| e.code),
            expected,
            "{meta}"
        );
        if let Err(error) = read {
            assert_eq!(
                error.status,
                if meta.contains("\"loud\"") { 200 } else { 400 },
                "{meta}"
            );
        }
    }

    #[test]
    fn every_field() {
        let version = r#""io.modelcontextprotocol/protocolVersion":"2026-07-28""#;
        let capabilities = r#""io.modelcontextprotocol/clientCapabilities":{}"#;
        let client = r#""io.modelcontextprotocol/clientInfo":{"name":"x","version":"1"}"#;
        check(&format!("{{{version},{capabilities},{client}}}"), Ok("x"));
        check(&format!("{{{version},{capabilities}}}"), Ok(""));
        check(&format!("{{{version},{client}}}"), Err(-32602));
        check(&format!("{{{capabilities}}}"), Err(-32602));
        check("{}", Err(-32602));
        check("5", Err(-32602));
        check(
            &format!(r#"{{{version},{capabilities},"io.modelcontextprotocol/logLevel":"loud"}}"#),
            Err(-32602),
        );
        check(
            &format!(
                "{{{},{capabilities}}}",
                version.replace("2026-07-28", "2025-11-25")
            ),
            Err(-32022),
        );
    }
}
