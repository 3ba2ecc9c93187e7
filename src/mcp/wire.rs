//! What goes on the wire in `prompts/get` and `resources/read`: borrowed, serialised straight into
//! one buffer. Everything else uses rmcp's model types, which own their text.

use std::borrow::Cow;

use base64::display::Base64Display;
use base64::engine::general_purpose::STANDARD;
use serde::{Serialize, Serializer};

use super::revision::Revision;
use crate::prompt::{Resource, ResourceBody};

/// This program's name in `serverInfo`.
pub const SERVER_NAME: &str = "cuebook";
/// Its version in `serverInfo`.
pub const SERVER_VERSION: &str = env!("CARGO_PKG_VERSION");

/// Bytes that travel as base64.
#[derive(Debug, Clone, Copy)]
pub struct Base64<'a>(pub &'a [u8]);

impl Serialize for Base64<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(&Base64Display::new(self.0, &STANDARD))
    }
}

/// One message of a prompt.
#[derive(Debug, Serialize)]
pub struct Message<'a> {
    /// `user` or `assistant`.
    pub role: &'static str,
    /// Its one block.
    pub content: Block<'a>,
}

/// A content block.
#[derive(Debug, Serialize)]
#[serde(tag = "type", rename_all = "snake_case")]
pub enum Block<'a> {
    /// Text.
    Text {
        /// As it is.
        text: Cow<'a, str>,
    },
    /// An image.
    #[serde(rename_all = "camelCase")]
    Image {
        /// Its bytes.
        data: Base64<'a>,
        /// Its type.
        mime_type: &'a str,
    },
    /// Sound.
    #[serde(rename_all = "camelCase")]
    Audio {
        /// Its bytes.
        data: Base64<'a>,
        /// Its type.
        mime_type: &'a str,
    },
    /// An embedded resource.
    Resource {
        /// With its content.
        resource: Contents<'a>,
    },
    /// A link to a resource.
    #[serde(rename_all = "camelCase")]
    ResourceLink {
        /// Where it is.
        uri: &'a str,
        /// Its name.
        name: &'a str,
        /// Its type.
        mime_type: &'a str,
        /// Its size in bytes.
        size: usize,
    },
}

/// A resource with its content.
#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Contents<'a> {
    /// The URI that was asked for.
    pub uri: &'a str,
    /// Its type.
    pub mime_type: &'a str,
    /// Its text, where it is text.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub text: Option<&'a str>,
    /// Its bytes, where it is not.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub blob: Option<Base64<'a>>,
}

impl<'a> Contents<'a> {
    /// A resource under the URI by which it was asked for.
    pub fn new(uri: &'a str, resource: &'a Resource) -> Self {
        let (text, blob) = match &resource.body {
            ResourceBody::Text(text) => (Some(&**text), None),
            ResourceBody::Blob(bytes) => (None, Some(Base64(bytes))),
        };
        Self {
            uri,
            mime_type: &resource.mime_type,
            text,
            blob,
        }
    }
}

/// `serverInfo` in the `_meta` of modern results.
#[derive(Debug, Clone, Copy, Serialize)]
pub struct ServerInfo {
    name: &'static str,
    version: &'static str,
}

/// `_meta` of a result.
#[derive(Debug, Default, Serialize)]
pub struct ResultMeta<'a> {
    #[serde(rename = "dev.cuebook/source", skip_serializing_if = "Option::is_none")]
    source: Option<&'a Source<'a>>,
    #[serde(rename = "dev.cuebook/commit", skip_serializing_if = "Option::is_none")]
    commit: Option<&'a str>,
    #[serde(
        rename = "io.modelcontextprotocol/serverInfo",
        skip_serializing_if = "Option::is_none"
    )]
    server: Option<ServerInfo>,
}

/// What comes with every result: nothing in legacy revisions, its type and our name in modern ones.
#[derive(Debug, Default, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Common<'a> {
    #[serde(skip_serializing_if = "Option::is_none")]
    result_type: Option<&'static str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    ttl_ms: Option<u32>,
    #[serde(skip_serializing_if = "Option::is_none")]
    cache_scope: Option<&'static str>,
    #[serde(rename = "_meta", skip_serializing_if = "Option::is_none")]
    meta: Option<ResultMeta<'a>>,
}

impl<'a> Common<'a> {
    /// For a result that no client may keep.
    pub fn plain(revision: Revision) -> Self {
        if !revision.is_modern() {
            return Self::default();
        }
        Self {
            result_type: Some("complete"),
            meta: Some(ResultMeta {
                source: None,
                commit: None,
                server: Some(ServerInfo {
                    name: SERVER_NAME,
                    version: SERVER_VERSION,
                }),
            }),
            ..Self::default()
        }
    }

    /// For a result that clients may keep until they hear otherwise: it is stale at once, since the
    /// list tells the truth at every call. It is the same for everyone only where there is no access control.
    pub fn cacheable(revision: Revision, by_actor: bool) -> Self {
        let mut common = Self::plain(revision);
        if revision.is_modern() {
            common.ttl_ms = Some(0);
            common.cache_scope = Some(if by_actor { "private" } else { "public" });
        }
        common
    }

    /// The same with the commit that a list of prompts was read from: a list that looks as before may stand for
    /// texts that are others.
    #[must_use]
    pub fn with_commit(mut self, commit: Option<&'a str>) -> Self {
        if commit.is_some() {
            self.meta.get_or_insert_default().commit = commit;
        }
        self
    }

    /// The same with where the content came from.
    #[must_use]
    pub fn with_source(mut self, source: &'a Source<'a>) -> Self {
        self.meta.get_or_insert_default().source = Some(source);
        self
    }
}

/// `_meta["dev.cuebook/source"]`: enough to render the same reply again.
#[derive(Debug, Serialize)]
pub struct Source<'a> {
    /// The prompt's name.
    pub prompt: &'a str,
    /// Where it is in the library.
    pub path: &'a str,
    /// Its version, where versions are known.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub version: Option<u64>,
    /// The commit its text is of; null for a work tree.
    pub commit: Option<std::sync::Arc<str>>,
    /// The commit its resources are of, where that is another.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub resources_commit: Option<&'a str>,
    /// SHA-256 of the file as stored.
    pub sha256: &'a str,
    /// What was embedded.
    pub resources: Vec<SourceResource<'a>>,
    /// The nonce of the `untrusted` filter, where it ran.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub nonce: Option<&'a str>,
    /// What was odd about the call.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub warnings: Vec<String>,
    /// What was done to the messages for this client.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub transforms: Vec<&'static str>,
}

/// One embedded resource.
#[derive(Debug, Serialize)]
pub struct SourceResource<'a> {
    /// Its URI.
    pub uri: &'a str,
    /// Where it is in the library.
    pub path: &'a str,
    /// SHA-256 of the file as stored.
    pub sha256: &'a str,
}

/// A whole response: `result` is a JSON object.
pub fn response(id: &str, result: &[u8]) -> Vec<u8> {
    let mut out = Vec::with_capacity(result.len() + id.len() + 40);
    out.extend_from_slice(b"{\"jsonrpc\":\"2.0\",\"id\":");
    out.extend_from_slice(id.as_bytes());
    out.extend_from_slice(b",\"result\":");
    out.extend_from_slice(result);
    out.push(b'}');
    out
}

/// A whole response, its result serialised in place.
pub fn respond(
    id: &str,
    result: &impl Serialize,
    expected: usize,
) -> Result<Vec<u8>, serde_json::Error> {
    let mut out = Vec::with_capacity(expected + id.len() + 64);
    out.extend_from_slice(b"{\"jsonrpc\":\"2.0\",\"id\":");
    out.extend_from_slice(id.as_bytes());
    out.extend_from_slice(b",\"result\":");
    serde_json::to_writer(&mut out, result)?;
    out.push(b'}');
    Ok(out)
}
