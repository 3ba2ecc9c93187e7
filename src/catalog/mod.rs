//! The immutable, in-memory index of one revision: everything served comes from one.
//!
//! Pure: takes bytes and gives values.
use std::sync::Arc;
use std::collections::BTreeMap;
use crate::prompt::{Prompt, Resource, BoundArguments, ResolvedResources};

/// Where a catalog's content was read.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Revision {
    /// A commit id, 40 lower-case hex digits.
    Commit(Arc<str>),
    /// A work tree with uncommitted edits.
    WorkTree,
}

/// A resource family of `cuebook.toml`.
#[derive(Debug, Clone)]
pub struct ResourceFamily {
    /// e.g. `runbook://{service}` (RFC 6570 level 1).
    pub template: String,
    /// Name for lists: the title, else the template.
    pub name: String,
    /// Title for people.
    pub title: Option<String>,
    /// Description.
    pub description: Option<String>,
    /// MIME type when declared or when every member has the same.
    pub mime_type: Option<String>,
}

/// An answer to a completion request.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Completion {
    /// At most 100 values, best first.
    pub values: Vec<String>,
    /// How many there are in all.
    pub total: usize,
}

/// What was found at a URI.
#[derive(Debug, Clone)]
pub enum Lookup {
    /// It is there.
    Found(Arc<Resource>),
    /// It is not; up to three URIs near it.
    Missing(Vec<String>),
    /// The text is not a URI this library can have, with the reason.
    Invalid(String),
}

/// Why a prompt's required bindings could not be met.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum ResolveError {
    /// A required resource is not there.
    #[error("resource `{uri}` (binding `{binding}`) is not in the library{}", nearby(.near))]
    MissingResource {
        /// The binding.
        binding: String,
        /// The URI it gave.
        uri: String,
        /// What exists near it, at most three.
        near: Vec<String>,
    },
    /// The binding's URI template failed.
    #[error(transparent)]
    Uri(#[from] crate::prompt::RenderError),
}

fn nearby(near: &[String]) -> String {
    if near.is_empty() { String::new() } else { format!("; near it: {}", near.join(", ")) }
}

/// The index of one revision.
#[derive(Debug)]
pub struct Catalog {
    _x: (),
}

#[allow(missing_docs)]
impl Catalog {
    /// The revision it was built from.
    pub fn revision(&self) -> &Revision { todo!() }
    /// Title of the library, from `cuebook.toml`.
    pub fn title(&self) -> Option<&str> { todo!() }
    /// Instructions for clients, from `cuebook.toml`.
    pub fn instructions(&self) -> Option<&str> { todo!() }
    /// All prompts sorted by (folder, name); or those of a folder and the folders below it.
    pub fn list(&self, folder: Option<&str>) -> Box<dyn Iterator<Item = &Arc<Prompt>> + '_> { let _ = folder; todo!() }
    /// Whether a folder holds any prompt.
    pub fn has_folder(&self, folder: &str) -> bool { let _ = folder; todo!() }
    /// A prompt by its exact name.
    pub fn prompt(&self, name: &str) -> Option<&Arc<Prompt>> { let _ = name; todo!() }
    /// Up to three names near one that is unknown; none when nothing is near.
    pub fn suggest(&self, name: &str, folder: Option<&str>) -> Vec<&str> { let _ = (name, folder); todo!() }
    /// Prompts matching a text in name, title, description or tags, best first.
    pub fn search(&self, query: &str, folder: Option<&str>, limit: usize) -> Vec<&Arc<Prompt>> { let _ = (query, folder, limit); todo!() }
    /// Values for an argument being typed, narrowed by the other arguments; nothing for an unknown argument.
    pub fn complete(&self, prompt: &Prompt, argument: &str, typed: &str, context: &BTreeMap<String, String>) -> Completion { let _ = (prompt, argument, typed, context); todo!() }
    /// Values for a variable of a resource family's template.
    pub fn complete_uri(&self, template: &str, variable: &str, typed: &str, context: &BTreeMap<String, String>) -> Completion { let _ = (template, variable, typed, context); todo!() }
    /// All resources sorted by URI.
    pub fn resources(&self) -> &[Arc<Resource>] { todo!() }
    /// What is at a URI (short or long form, compared decoded, NFC, first segment without case).
    pub fn resource(&self, uri: &str) -> Lookup { let _ = uri; todo!() }
    /// Declared families.
    pub fn families(&self) -> &[ResourceFamily] { todo!() }
    /// Resolves a prompt's bindings for bound arguments (nonce empty: the caller sets it).
    pub fn resolve(&self, prompt: &Prompt, bound: &BoundArguments) -> Result<ResolvedResources, ResolveError> { let _ = (prompt, bound); todo!() }
    /// A hash over everything that decides how a prompt renders: its closure and the resources its bindings can reach.
    pub fn render_hash(&self, prompt: &Prompt) -> Arc<str> { let _ = prompt; todo!() }
}
