//! A prompt file: front matter and parts.
use std::sync::Arc;
use super::{Argument, Example, PromptName, ResourceBinding, Role};

/// A parsed and compiled prompt with the closure of what it includes.
#[derive(Debug)]
pub struct Prompt {
    /// Its name, the stem of its file.
    pub name: PromptName,
    /// The folder under `prompts/`, e.g. `sre`; empty at the top; `a/b` when nested.
    pub folder: Arc<str>,
    /// Path in the library, e.g. `prompts/sre/incident-triage.md`.
    pub path: Arc<str>,
    /// Title for people, any script.
    pub title: Option<String>,
    /// What it is for.
    pub description: Option<String>,
    /// Tags, in the author's order.
    pub tags: Vec<String>,
    /// Declared arguments, in the author's order.
    pub arguments: Vec<Argument>,
    /// Declared resources.
    pub bindings: Vec<ResourceBinding>,
    /// Worked examples.
    pub examples: Vec<Example>,
    /// SHA-256 of the stored bytes of the file, lower-case hex.
    pub sha256: Arc<str>,
    /// SHA-256 over everything that decides how it lists (name, folder, title, description, arguments), hex.
    pub list_hash: Arc<str>,
    /// SHA-256 over the file and every partial it includes, hex.
    pub closure_hash: Arc<str>,
    /// x
    pub parts: Vec<(Role, String)>,
}
