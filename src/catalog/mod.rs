//! The immutable, in-memory index of one revision: everything served comes from one.
//!
//! Pure: takes bytes and gives values. Knows no git, no network and no clock.

pub mod build;
pub mod complete;
pub mod difference;
pub mod examples;
mod findings;
pub mod library;
pub mod listed;
mod names;
mod parallel;
mod parts;
mod place;
pub mod policy;
pub mod prompts;
pub mod relabel;
mod resources;
mod seen;
pub mod text;
pub mod tree;
pub mod uri;
pub mod values;
pub mod versioned;
mod work;

use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Arc, Mutex, PoisonError};

use rpds::{HashTrieMapSync, RedBlackTreeMapSync};
use sha2::{Digest, Sha256};

use crate::prompt::parse::hex;
use crate::prompt::problem::nearest_all;
use crate::prompt::render::{ResolvedResource, render_uri};
use crate::prompt::{
    BoundArguments, Limits, Problem, Prompt, RenderError, ResolvedResources, Resource,
};

pub use build::{Built, Update, build, update};
pub use complete::{Completion, MAX_VALUES, Recent};
use complete::{ValueIndex, Values};
pub use difference::Difference;
pub use library::{Library, ResourceFamily};
pub use listed::{Listed, list_key};
use listed::{Ordered, folder_key};
use parts::Parts;
use prompts::literal_scheme;
use resources::SchemeHash;
use text::{clip, fold};
pub use tree::{Change, Entry, EntryKind, MemoryTree, ObjectId, Tree};

/// Longest value of another argument that `where` compares with, in bytes.
const MAX_KEY: usize = 4096;

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

/// The index of one revision. A copy shares everything with it.
#[derive(Debug, Clone)]
pub struct Catalog {
    revision: Revision,
    library: Arc<Library>,
    /// By folder, then name: [`list_key`].
    prompts: Ordered<Prompt>,
    by_name: HashTrieMapSync<Arc<str>, Arc<Prompt>>,
    /// By URI.
    resources: Ordered<Resource>,
    /// By every form a URI can have.
    by_uri: HashTrieMapSync<Arc<str>, Arc<Resource>>,
    scheme_hashes: RedBlackTreeMapSync<Arc<str>, SchemeHash>,
    values: HashTrieMapSync<Arc<str>, Arc<ValueIndex>>,
    limits: Limits,
    /// What the next build can use again.
    parts: Parts,
    /// Notes what is looked for, while a prompt is checked.
    looked: Option<Arc<Looked>>,
}

/// Keys of resources that were looked for.
#[derive(Debug, Default)]
struct Looked(Mutex<BTreeSet<Arc<str>>>);

impl Catalog {
    /// One without any file.
    pub fn empty(revision: Revision, limits: &Limits) -> Self {
        Self {
            revision,
            library: Arc::default(),
            prompts: Ordered::default(),
            by_name: HashTrieMapSync::default(),
            resources: Ordered::default(),
            by_uri: HashTrieMapSync::default(),
            scheme_hashes: RedBlackTreeMapSync::default(),
            values: HashTrieMapSync::default(),
            limits: limits.clone(),
            parts: Parts::default(),
            looked: None,
        }
    }

    /// The same, noting which resources are looked for.
    fn noting(&self) -> Self {
        Self {
            looked: Some(Arc::default()),
            ..self.clone()
        }
    }

    /// What was looked for since [`Self::noting`].
    fn noted(&self) -> Arc<[Arc<str>]> {
        let Some(looked) = &self.looked else {
            return Arc::default();
        };
        let keys = looked.0.lock().unwrap_or_else(PoisonError::into_inner);
        keys.iter().cloned().collect()
    }

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
    pub fn list(&self, folder: Option<&str>) -> Listed<'_, Prompt> {
        match folder.filter(|f| !f.is_empty()) {
            None => Listed::all(&self.prompts),
            Some(folder) => {
                let key = folder_key(folder);
                Listed::between(&self.prompts, format!("{key}\0"), format!("{key}\u{2}"))
            }
        }
    }

    /// Whether a folder holds any prompt.
    pub fn has_folder(&self, folder: &str) -> bool {
        !self.list(Some(folder)).is_empty()
    }

    /// A prompt by its exact name.
    pub fn prompt(&self, name: &str) -> Option<&Arc<Prompt>> {
        self.by_name.get(name)
    }

    /// Up to three names near one that is unknown; none when nothing is near.
    pub fn suggest(&self, name: &str, folder: Option<&str>) -> Vec<&str> {
        nearest_all(name, self.list(folder).iter().map(|p| p.name.as_str()), 3)
    }

    /// Names of the partials that could be read, as `include` has them, in order.
    pub fn partial_names(&self) -> impl Iterator<Item = &str> {
        self.parts.partials.keys().map(|name| &**name)
    }

    /// Names of the values files that could be read, in order.
    pub fn values_files(&self) -> Vec<&str> {
        let mut names: Vec<&str> = self.values.keys().map(|name| &**name).collect();
        names.sort_unstable();
        names
    }

    /// Whether `labels.toml` gives a label to a prompt.
    pub fn has_label(&self, label: &str, prompt: &str) -> bool {
        let labels = self.parts.labels.as_ref();
        labels
            .and_then(|labels| labels.1.get(label))
            .is_some_and(|prompts| prompts.contains_key(prompt))
    }

    /// Values for an argument being typed, narrowed by the other arguments; nothing for an unknown argument. `recent` is
    /// what was used for it, and is looked at where the argument says so.
    pub fn complete(
        &self,
        prompt: &Prompt,
        argument: &str,
        typed: &str,
        context: &BTreeMap<String, String>,
        recent: &[Recent],
    ) -> Completion {
        self.values_of(prompt, argument, context, recent, |sources, wanted| {
            complete::complete(sources, typed, wanted)
        })
        .unwrap_or_default()
    }

    /// Whether an argument's completion offers a value, however many others it offers too; values that were used are not
    /// looked at.
    pub fn offers(
        &self,
        prompt: &Prompt,
        argument: &str,
        value: &str,
        context: &BTreeMap<String, String>,
    ) -> bool {
        self.values_of(prompt, argument, context, &[], |sources, wanted| {
            complete::offers(sources, value, wanted)
        })
        .unwrap_or_default()
    }

    /// Calls with where an argument's values come from, and the folded key that they must have, if any.
    fn values_of<T>(
        &self,
        prompt: &Prompt,
        argument: &str,
        context: &BTreeMap<String, String>,
        recent: &[Recent],
        ask: impl FnOnce(&[Values<'_>], Option<&str>) -> T,
    ) -> Option<T> {
        let argument = prompt.arguments.iter().find(|a| &*a.name == argument)?;
        let declared = &argument.values;
        let file = declared.file.as_deref().and_then(|f| self.values.get(f));
        let pattern = declared.resource.as_deref().and_then(|p| self.pattern(p));
        let mut sources = vec![Values::Listed(&declared.list)];
        sources.extend(file.map(|file| Values::Indexed(file)));
        sources.extend(pattern.map(Values::Indexed));
        if declared.recent {
            sources.push(Values::Recent(recent));
        }
        let wanted = declared
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
            .map(|value| fold(clip(value, MAX_KEY)));
        Some(ask(&sources, wanted.as_deref()))
    }

    /// Waits until every values file is indexed; those of many values are, after the catalog is served.
    pub fn wait_for_values(&self) {
        self.values.values().for_each(|values| values.wait());
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
        // a prompt may have the same pattern, which is found once
        if family.parsed.variables().eq([variable])
            && let Some(known) = self.pattern(template)
        {
            return complete::complete(&[Values::Indexed(known)], typed, None);
        }
        let mut values: Vec<String> = Vec::new();
        for resource in self.of_scheme(family.parsed.scheme()) {
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
        complete::complete(&[Values::Listed(&values)], typed, None)
    }

    /// All resources sorted by URI.
    pub fn resources(&self) -> Listed<'_, Resource> {
        Listed::all(&self.resources)
    }

    /// Those of one scheme.
    fn of_scheme(&self, scheme: &str) -> Listed<'_, Resource> {
        // what follows `://` sorts below what begins with `:/0`
        Listed::between(
            &self.resources,
            format!("{scheme}://"),
            format!("{scheme}:/0"),
        )
    }

    /// Values of the one variable of a `values: { resource: … }` pattern that have a resource; found when first asked for.
    fn pattern(&self, pattern: &str) -> Option<&ValueIndex> {
        let pattern = self.parts.patterns.get(pattern)?;
        let index = pattern.values.get_or_init(|| {
            let mut values: BTreeSet<String> = BTreeSet::new();
            for resource in self.of_scheme(pattern.template.scheme()) {
                let found = [&resource.uri, &resource.long_uri]
                    .into_iter()
                    .find_map(|uri| {
                        let decoded = uri::decoded(uri);
                        let found = pattern.template.matches(&decoded)?;
                        found.first().map(|(_, value)| (*value).to_owned())
                    });
                values.extend(found);
            }
            Arc::new(ValueIndex::plain(values.iter().map(String::as_str)))
        });
        Some(index)
    }

    /// What is at a URI (short or long form, compared decoded, NFC, first segment without case).
    pub fn resource(&self, uri: &str) -> Lookup {
        let key = match uri::key(uri) {
            Ok(key) => key,
            Err(fault) => return Lookup::Invalid(fault.into()),
        };
        if let Some(looked) = &self.looked {
            let mut keys = looked.0.lock().unwrap_or_else(PoisonError::into_inner);
            keys.insert(key.as_str().into());
        }
        match self.by_uri.get(&*key) {
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
            .of_scheme(scheme)
            .iter()
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
            let uri = render_uri(prompt, i, bound)?;
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
        if prompt.bindings.is_empty() {
            return prompt.closure_hash.clone();
        }
        let mut hash = Sha256::new();
        hash.update(prompt.closure_hash.as_bytes());
        for binding in &prompt.bindings {
            match literal_scheme(&binding.uri) {
                Some(scheme) => {
                    let scheme = self.scheme_hashes.get(scheme).copied();
                    hash.update(scheme.unwrap_or_default().bytes());
                }
                None => {
                    for (scheme, state) in &self.scheme_hashes {
                        hash.update(scheme.as_bytes());
                        hash.update(state.bytes());
                    }
                }
            }
        }
        hex(&hash.finalize())
    }

    /// Warnings and, for a revision that is served in part, errors found when it was built, by path and line.
    pub fn problems(&self) -> Vec<Problem> {
        self.parts.findings.all()
    }

    /// Whether no error was found when it was built.
    pub fn is_clean(&self) -> bool {
        self.parts.findings.is_clean()
    }

    /// How many warnings were found when it was built.
    pub fn warning_count(&self) -> usize {
        self.parts.findings.warnings()
    }

    /// The limits it was built with.
    pub fn limits(&self) -> &Limits {
        &self.limits
    }
}
