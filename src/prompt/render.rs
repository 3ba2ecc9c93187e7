//! Rendering.
use std::sync::Arc;
use super::{Prompt, BoundArguments, Limits, Message, Resource};

/// The resources of a prompt's bindings for given arguments, one entry for each binding, in order.
#[derive(Debug, Clone, Default)]
pub struct ResolvedResources {
    /// The rendered URI and what was found there.
    pub entries: Vec<ResolvedResource>,
    /// The nonce of the `untrusted` filter: an input, so that a reply can be rendered again.
    pub nonce: String,
}

/// One binding's outcome.
#[derive(Debug, Clone, Default)]
pub struct ResolvedResource {
    /// The URI its template gave; empty when an argument in it was empty.
    pub uri: String,
    /// What is there.
    pub resource: Option<Arc<Resource>>,
}

/// The messages, and what was used on the way.
#[derive(Debug, Clone, Default)]
pub struct Rendered {
    /// In order.
    pub messages: Vec<Message>,
    /// Whether the `untrusted` filter ran, so that the nonce matters.
    pub nonce_used: bool,
}

/// Why a render failed.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum RenderError {
    /// The template failed.
    #[error("{path}:{line}:{column}: {message}")]
    Template {
        /// File that failed, maybe a partial.
        path: String,
        /// Line from 1.
        line: u32,
        /// Column from 1.
        column: u32,
        /// What happened, at most 500 characters.
        message: String,
    },
    /// The output is over the limit.
    #[error("the rendered text is over {limit} bytes (output_bytes)")]
    OutputLimit {
        /// Bytes accepted.
        limit: usize,
    },
}

/// Renders a prompt into messages: the one narrow way from template to text.
pub fn render(
    prompt: &Prompt,
    bound: &BoundArguments,
    resources: &ResolvedResources,
    limits: &Limits,
) -> Result<Rendered, RenderError> {
    let _ = (prompt, bound, resources, limits);
    todo!()
}
