//! Resources: runbooks, style guides, images; files of the library under `resources/`.

use std::sync::Arc;

/// The content of a resource, untouched.
#[derive(Debug, Clone)]
pub enum ResourceBody {
    /// Valid UTF-8 of a textual type.
    Text(Arc<str>),
    /// Anything else.
    Blob(Arc<[u8]>),
}

/// One resource at one revision.
#[derive(Debug, Clone)]
pub struct Resource {
    /// The URI as listed: the short form, percent-encoded, e.g. `runbook://payments`.
    pub uri: Arc<str>,
    /// The long form, with the file's extension; equal to `uri` where nothing was dropped.
    pub long_uri: Arc<str>,
    /// Where it is in the library, e.g. `resources/runbook/payments.md`.
    pub path: Arc<str>,
    /// The last segment of the path without its extension, for lists.
    pub name: Arc<str>,
    /// MIME type by extension, e.g. `text/markdown`.
    pub mime_type: Arc<str>,
    /// The stored bytes.
    pub body: ResourceBody,
    /// SHA-256 of the stored bytes, lower-case hex.
    pub sha256: Arc<str>,
}

impl Resource {
    /// The text, when it is text.
    pub fn text(&self) -> Option<&str> {
        match &self.body {
            ResourceBody::Text(text) => Some(text),
            ResourceBody::Blob(_) => None,
        }
    }

    /// The stored bytes.
    pub fn bytes(&self) -> &[u8] {
        match &self.body {
            ResourceBody::Text(text) => text.as_bytes(),
            ResourceBody::Blob(bytes) => bytes,
        }
    }
}
