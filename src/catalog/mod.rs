//! The immutable, in-memory index of one revision: everything served comes from one.
//!
//! Pure: takes bytes and gives values. Knows no git, no network and no clock.

pub mod build;
pub mod difference;
pub mod examples;
pub mod library;
mod parallel;
mod prompts;
mod resources;
pub mod text;
pub mod tree;
pub mod uri;
pub mod values;

use std::collections::{BTreeMap, HashMap};
use std::sync::Arc;

use crate::prompt::problem::nearest_all;
use crate::prompt::render::{ResolvedResource, render_uri};
use crate::prompt::{
    BoundArguments, Limits, Problem, Prompt, RenderError, ResolvedResources, Resource,
};

use build::Parsed;
pub use build::{Built, build};
pub use difference::Difference;
pub use library::{Library, ResourceFamily};
use text::{fold, fold_query};
pub use tree::{Entry, EntryKind, MemoryTree, ObjectId, Tree};
pub use values::{Completion, MAX_VALUES};
use values::{ValueIndex, complete};

/// Where a catalog's content was read.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Revision {
    /// A commit id, 40 lower-case hex digits.
    Commit(Arc<str>),
    /// A work tree with uncommitted edits.
    WorkTree,
}

impl Revision {
    /// The commit id, when it is one.
    pub fn commit(&self) -> Option<&str> {
        match self {
            Self::Commit(id) => Some(id),
            Self::WorkTree => None,
        }
    }
}

/// What was found at a URI.
#[derive(Debug, Clone)]
pub enum Lookup {
    /// It is there.
    Found(Arc<Resource>),
    /// It is not; [`Catalog::near`] finds what is near it.
    Missing,
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
    /// A required resource's URI needs arguments that are empty.
    #[error("the required resource `{binding}` needs a value for {}", .arguments.join(", "))]
    EmptyUri {
        /// The binding.
        binding: String,
        /// The arguments its URI reads that are empty.
        arguments: Vec<String>,
    },
    /// The binding's URI template failed.
    #[error(transparent)]
    Uri(#[from] RenderError),
}

fn nearby(near: &[String]) -> String {
    if near.is_empty() {
        String::new()
    } else {
        format!("; near it: {}", near.join(", "))
    }
}

/// The index of one revision.
#[derive(Debug)]
pub struct Catalog {
    pub(crate) revision: Revision,
    pub(crate) library: Library,
    /// Sorted by folder, then name.
    pub(crate) prompts: Vec<Arc<Prompt>>,
    pub(crate) by_name: HashMap<Arc<str>, u32>,
    /// Sorted by URI.
    pub(crate) resources: Vec<Arc<Resource>>,
    /// Positions in `resources` by every form a URI can have.
    pub(crate) by_uri: HashMap<Arc<str>, u32>,
    /// A hash over all resources of a scheme.
    pub(crate) scheme_hashes: BTreeMap<Arc<str>, Arc<str>>,
    pub(crate) values: HashMap<Arc<str>, Arc<ValueIndex>>,
    pub(crate) patterns: HashMap<Arc<str>, Arc<ValueIndex>>,
    pub(crate) render_hashes: HashMap<Arc<str>, Arc<str>>,
    pub(crate) limits: Limits,
    /// What the next build can use again.
    pub(crate) parsed: Parsed,
}

impl Catalog {
    /// The revision it was built from.
    pub fn revision(&self) -> &Revision {
        &self.revision
    }

    /// Title of the library, from `cuebook.toml`.
    pub fn title(&self) -> Option<&str> {
        self.library.title.as_deref()
    }

    /// Instructions for clients, from `cuebook.toml`.
    pub fn instructions(&self) -> Option<&str> {
        self.library.instructions.as_deref()
    }

    /// All prompts sorted by folder and name; or those of a folder and the folders below it.
    pub fn list(&self, folder: Option<&str>) -> &[Arc<Prompt>] {
        let Some(folder) = folder.filter(|f| !f.is_empty()) else {
            return &self.prompts;
        };
        // `a`, then everything that begins with `a/`: both ranges are one, for `/` sorts before the name characters
        // that may follow a folder's name only when compared by parts
        let from = self.prompts.partition_point(|p| before(&p.folder, folder));
        let count = self.prompts[from..]
            .iter()
            .take_while(|p| within(&p.folder, folder))
            .count();
        &self.prompts[from..from + count]
    }

    /// Whether a folder holds any prompt.
    pub fn has_folder(&self, folder: &str) -> bool {
        !self.list(Some(folder)).is_empty()
    }

    /// A prompt by its exact name.
    pub fn prompt(&self, name: &str) -> Option<&Arc<Prompt>> {
        self.by_name
            .get(name)
            .and_then(|i| self.prompts.get(*i as usize))
    }

    /// Up to three names near one that is unknown; none when nothing is near.
    pub fn suggest(&self, name: &str, folder: Option<&str>) -> Vec<&str> {
        nearest_all(name, self.list(folder).iter().map(|p| p.name.as_str()), 3)
    }

    /// Prompts matching every word of a text in name, title, description, tags or arguments, best first.
    pub fn search(&self, query: &str, folder: Option<&str>, limit: usize) -> Vec<&Arc<Prompt>> {
        let query = fold_query(query);
        let words: Vec<&str> = query.split_whitespace().collect();
        let mut found: Vec<(u32, &Arc<Prompt>)> = self
            .list(folder)
            .iter()
            .filter_map(|prompt| Some((score(prompt, &words)?, prompt)))
            .collect();
        found.sort_by(|a, b| b.0.cmp(&a.0).then_with(|| a.1.name.cmp(&b.1.name)));
        found
            .into_iter()
            .take(limit)
            .map(|(_, prompt)| prompt)
            .collect()
    }

    /// Values for an argument being typed, narrowed by the other arguments; nothing for an unknown argument.
    pub fn complete(
        &self,
        prompt: &Prompt,
        argument: &str,
        typed: &str,
        context: &BTreeMap<String, String>,
    ) -> Completion {
        let Some(argument) = prompt.arguments.iter().find(|a| &*a.name == argument) else {
            return Completion::default();
        };
        let sources = &argument.values;
        let folded = fold_query(typed);
        let mut indexes = Vec::new();
        if !sources.list.is_empty() {
            indexes.push(Arc::new(ValueIndex::plain(
                sources.list.iter().map(String::as_str),
            )));
        }
        let file = sources.file.as_deref().and_then(|f| self.values.get(f));
        indexes.extend(file.cloned());
        indexes.extend(
            sources
                .resource
                .as_deref()
                .and_then(|p| self.patterns.get(p))
                .cloned(),
        );
        let wanted = sources
            .where_argument
            .as_deref()
            .and_then(|other| {
                let given = context.get(other).filter(|v| !v.is_empty());
                let default = || {
                    prompt
                        .arguments
                        .iter()
                        .find(|a| &*a.name == other)?
                        .default
                        .as_ref()
                };
                given.or_else(default)
            })
            .map(|value| fold(value));
        complete(&indexes, &folded, |candidate| match &wanted {
            Some(wanted) => candidate
                .key
                .as_deref()
                .is_none_or(|key| fold(key) == *wanted),
            None => true,
        })
    }

    /// Values for a variable of a declared family's template; nothing for one that is not declared.
    pub fn complete_uri(
        &self,
        template: &str,
        variable: &str,
        typed: &str,
        context: &BTreeMap<String, String>,
    ) -> Completion {
        let Some(family) = self
            .library
            .families
            .iter()
            .find(|f| f.template == template)
        else {
            return Completion::default();
        };
        let mut values: Vec<String> = Vec::new();
        for resource in &self.resources {
            for uri in [&resource.uri, &resource.long_uri] {
                let decoded = uri::decoded(uri);
                let Some(found) = family.parsed.matches(&decoded) else {
                    continue;
                };
                let fits = found.iter().all(|(name, value)| {
                    *name == variable
                        || context
                            .get(*name)
                            .is_none_or(|c| c.is_empty() || c == value)
                });
                if fits && let Some((_, value)) = found.iter().find(|(name, _)| *name == variable) {
                    values.push((*value).to_owned());
                }
                break;
            }
        }
        values.sort();
        values.dedup();
        let index = Arc::new(ValueIndex::plain(values.iter().map(String::as_str)));
        complete(&[index], &fold_query(typed), |_| true)
    }

    /// All resources sorted by URI.
    pub fn resources(&self) -> &[Arc<Resource>] {
        &self.resources
    }

    /// What is at a URI (short or long form, compared decoded, NFC, first segment without case).
    pub fn resource(&self, uri: &str) -> Lookup {
        let key = match uri::key(uri) {
            Ok(key) => key,
            Err(fault) => return Lookup::Invalid(fault.into()),
        };
        match self
            .by_uri
            .get(&*key)
            .and_then(|i| self.resources.get(*i as usize))
        {
            Some(resource) => Lookup::Found(resource.clone()),
            None => Lookup::Missing,
        }
    }

    /// Up to three URIs of the same scheme near one that is not there; for whoever writes the error, and nobody else.
    pub fn near(&self, uri: &str) -> Vec<String> {
        let Ok(key) = uri::key(uri) else {
            return Vec::new();
        };
        let Some((scheme, path)) = key.split_once("://") else {
            return Vec::new();
        };
        let prefix = format!("{scheme}://");
        let candidates: Vec<(String, &Arc<str>)> = self
            .resources
            .iter()
            .filter(|r| r.uri.starts_with(&prefix))
            .map(|r| (uri::decoded(&r.uri[prefix.len()..]), &r.uri))
            .collect();
        nearest_all(path, candidates.iter().map(|(path, _)| path.as_str()), 3)
            .into_iter()
            .filter_map(|near| candidates.iter().find(|(path, _)| path == near))
            .map(|(_, uri)| uri.to_string())
            .collect()
    }

    /// Declared families.
    pub fn families(&self) -> &[ResourceFamily] {
        &self.library.families
    }

    /// Resolves a prompt's bindings for bound arguments; the nonce is left empty for the caller to set.
    pub fn resolve(
        &self,
        prompt: &Prompt,
        bound: &BoundArguments,
    ) -> Result<ResolvedResources, ResolveError> {
        let mut out = ResolvedResources::default();
        for (i, binding) in prompt.bindings.iter().enumerate() {
            let uri = render_uri(prompt, i, bound, &self.limits)?;
            let found = match self.resource(&uri) {
                Lookup::Found(resource) if !uri.is_empty() => Some(resource),
                _ if !binding.required => None,
                _ if uri.is_empty() => {
                    return Err(ResolveError::EmptyUri {
                        binding: binding.name.to_string(),
                        arguments: prompt.empty_uri_arguments(i, bound),
                    });
                }
                _ => {
                    return Err(ResolveError::MissingResource {
                        binding: binding.name.to_string(),
                        near: self.near(&uri),
                        uri: uri.chars().take(200).collect(),
                    });
                }
            };
            out.entries.push(ResolvedResource {
                uri,
                resource: found,
            });
        }
        Ok(out)
    }

    /// A hash over everything that decides how a prompt renders: its closure and the resources its bindings can reach.
    pub fn render_hash(&self, prompt: &Prompt) -> Arc<str> {
        self.render_hashes
            .get(prompt.name.as_str())
            .cloned()
            .unwrap_or_else(|| prompt.closure_hash.clone())
    }

    /// Warnings and, for a revision that is served in part, errors found when it was built.
    pub fn problems(&self) -> impl Iterator<Item = &Problem> {
        self.parsed.problems()
    }

    /// The limits it was built with.
    pub fn limits(&self) -> &Limits {
        &self.limits
    }
}

/// Whether a folder sorts before every folder at or below another; folders are compared by their parts.
fn before(folder: &str, other: &str) -> bool {
    folder.split('/').lt(other.split('/'))
}

fn within(folder: &str, other: &str) -> bool {
    folder
        .strip_prefix(other)
        .is_some_and(|rest| rest.is_empty() || rest.starts_with('/'))
}

/// How well a prompt fits words: name before title before the rest; `None` when one of them is nowhere.
fn score(prompt: &Prompt, words: &[&str]) -> Option<u32> {
    let name = fold(prompt.name.as_str());
    let title = fold(prompt.title.as_deref().unwrap_or_default());
    let mut rest = fold(prompt.description.as_deref().unwrap_or_default());
    for tag in &prompt.tags {
        rest.push(' ');
        rest.push_str(&fold(tag));
    }
    rest.push(' ');
    rest.push_str(&prompt.folder);
    for argument in &prompt.arguments {
        rest.push(' ');
        rest.push_str(&fold(&argument.name));
        rest.push(' ');
        rest.push_str(&fold(argument.description.as_deref().unwrap_or_default()));
    }
    let mut total = 0;
    for word in words {
        total += if name == *word {
            1000
        } else if name.starts_with(word) {
            300
        } else if name.contains(word) {
            100
        } else if title.contains(word) {
            50
        } else if rest.contains(word) {
            10
        } else {
            return None;
        };
    }
    Some(total)
}
