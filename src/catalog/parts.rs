//! What a catalog is made of, kept so that the next one is made from what has changed alone.
//!
//! Every map here shares its unchanged parts with the catalog it came from: a copy costs nothing, a change costs the
//! way to it.

use std::collections::BTreeSet;
use std::sync::{Arc, OnceLock};

use rpds::{HashTrieMapSync, HashTrieSetSync, RedBlackTreeSetSync};

use crate::prompt::Prompt;
use crate::prompt::closure::Partials;
use crate::prompt::parse::Partial;
use crate::prompt::source::Source;

use super::complete::ValueIndex;
use super::findings::Findings;
use super::library::Labels;
use super::prompts::literal_scheme;
use super::resources::{Claims, ResourceFile, Served};
use super::tree::{Entry, EntryKind, ObjectId};
use super::uri::UriTemplate;

/// A file of a revision, and what was made of it.
#[derive(Debug, Clone)]
pub(super) struct Piece {
    pub(super) path: Arc<str>,
    pub(super) id: ObjectId,
    pub(super) kind: EntryKind,
    /// Where it was known without reading.
    pub(super) size: Option<u64>,
    pub(super) content: Content,
}

impl Piece {
    /// The entry it was made from.
    pub(super) fn entry(&self) -> Entry {
        Entry {
            path: self.path.clone(),
            id: self.id,
            kind: self.kind,
            size: self.size,
        }
    }
}

/// What was made of a file; nothing inside where it has errors.
#[derive(Debug, Clone)]
pub(super) enum Content {
    /// Only its problems, if any, are kept.
    Plain,
    Library,
    Labels,
    Prompt {
        prompt: Option<Arc<Prompt>>,
        /// Keys of the resources that its check looked for.
        looked: Arc<[Arc<str>]>,
    },
    Partial(Option<Arc<Partial>>),
    Resource {
        file: Option<Arc<ResourceFile>>,
        /// As it is served, with every key that finds it; none where its URI is not its own.
        served: Option<Served>,
    },
    Values(Option<Arc<ValueIndex>>),
}

/// Paths that want one name.
#[derive(Debug, Clone, Default)]
pub(super) struct Groups(HashTrieMapSync<Arc<str>, RedBlackTreeSetSync<Arc<str>>>);

impl Groups {
    pub(super) fn insert(&mut self, name: &str, path: &Arc<str>) {
        if let Some(paths) = self.0.get_mut(name) {
            paths.insert_mut(path.clone());
        } else {
            let mut paths = RedBlackTreeSetSync::new_sync();
            paths.insert_mut(path.clone());
            self.0.insert_mut(name.into(), paths);
        }
    }

    pub(super) fn remove(&mut self, name: &str, path: &Arc<str>) {
        let Some(paths) = self.0.get_mut(name) else {
            return;
        };
        paths.remove_mut(path);
        if paths.is_empty() {
            self.0.remove_mut(name);
        }
    }

    /// Sorted.
    pub(super) fn paths(&self, name: &str) -> impl Iterator<Item = &Arc<str>> {
        self.0.get(name).into_iter().flat_map(|paths| paths.iter())
    }

    pub(super) fn count(&self, name: &str) -> usize {
        self.0.get(name).map_or(0, RedBlackTreeSetSync::size)
    }

    pub(super) fn iter(&self) -> impl Iterator<Item = &Arc<str>> {
        self.0.values().flat_map(|paths| paths.iter())
    }
}

/// What the passing of a prompt's check rests on besides its own bytes.
#[derive(Debug, Clone, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub(super) enum Rest {
    /// The text of a partial.
    Partial(Arc<str>),
    /// What is found by a key of a resource.
    Resource(Arc<str>),
    /// That a scheme is known.
    Scheme(Arc<str>),
    /// That a values file is there.
    Values(Arc<str>),
}

/// What a prompt that passed rests on, given the keys of resources that its check looked for.
pub(super) fn rests(prompt: &Prompt, looked: &[Arc<str>]) -> BTreeSet<Rest> {
    let partials = prompt
        .partials
        .iter()
        .map(|partial| Rest::Partial(partial.name.clone()));
    let resources = looked.iter().map(|key| Rest::Resource(key.clone()));
    let bound = prompt
        .bindings
        .iter()
        .filter_map(|binding| literal_scheme(&binding.uri))
        .map(|scheme| Rest::Scheme(scheme.into()));
    let values = prompt.arguments.iter().flat_map(|argument| {
        let file = argument.values.file.as_deref();
        let pattern = argument.values.resource.as_deref();
        let scheme = pattern.and_then(|pattern| pattern.split_once("://"));
        let file = file.map(|name| Rest::Values(name.into()));
        file.into_iter()
            .chain(scheme.map(|(scheme, _)| Rest::Scheme(scheme.into())))
    });
    partials
        .chain(resources)
        .chain(bound)
        .chain(values)
        .collect()
}

/// Prompts by what they rest on.
#[derive(Debug, Clone, Default)]
pub(super) struct Dependents(HashTrieMapSync<Rest, HashTrieSetSync<Arc<str>>>);

impl Dependents {
    /// Replaces what a prompt rests on.
    pub(super) fn replace(&mut self, path: &Arc<str>, old: &BTreeSet<Rest>, new: BTreeSet<Rest>) {
        for rest in old.difference(&new) {
            let Some(paths) = self.0.get_mut(rest) else {
                continue;
            };
            paths.remove_mut(path);
            if paths.is_empty() {
                self.0.remove_mut(rest);
            }
        }
        for rest in new {
            if old.contains(&rest) {
                continue;
            }
            if let Some(paths) = self.0.get_mut(&rest) {
                paths.insert_mut(path.clone());
            } else {
                let mut paths = HashTrieSetSync::new_sync();
                paths.insert_mut(path.clone());
                self.0.insert_mut(rest, paths);
            }
        }
    }

    /// The prompts that rest on something.
    pub(super) fn of(&self, rest: &Rest) -> impl Iterator<Item = &Arc<str>> {
        self.0.get(rest).into_iter().flat_map(|paths| paths.iter())
    }
}

/// How many listed prompts of each folder can reach a scheme.
#[derive(Debug, Clone, Default)]
pub(super) struct Reach(HashTrieMapSync<Arc<str>, HashTrieMapSync<Arc<str>, usize>>);

/// Stands for every scheme: an argument gives it.
const ANY: &str = "";

impl Reach {
    /// The schemes that a prompt's bindings can reach, each once.
    fn schemes(prompt: &Prompt) -> BTreeSet<&str> {
        prompt
            .bindings
            .iter()
            .map(|binding| literal_scheme(&binding.uri).unwrap_or(ANY))
            .collect()
    }

    pub(super) fn add(&mut self, prompt: &Prompt) {
        for scheme in Self::schemes(prompt) {
            if self.0.get(scheme).is_none() {
                self.0.insert_mut(scheme.into(), HashTrieMapSync::default());
            }
            let Some(folders) = self.0.get_mut(scheme) else {
                continue;
            };
            let count = folders.get(&prompt.folder).copied().unwrap_or_default();
            folders.insert_mut(prompt.folder.clone(), count + 1);
        }
    }

    pub(super) fn remove(&mut self, prompt: &Prompt) {
        for scheme in Self::schemes(prompt) {
            let Some(folders) = self.0.get_mut(scheme) else {
                continue;
            };
            match folders.get(&prompt.folder).copied() {
                Some(count) if count > 1 => {
                    folders.insert_mut(prompt.folder.clone(), count - 1);
                }
                _ => {
                    folders.remove_mut(&prompt.folder);
                }
            }
            if folders.is_empty() {
                self.0.remove_mut(scheme);
            }
        }
    }

    /// Folders with a prompt that can reach a scheme.
    pub(super) fn folders(&self, scheme: &str) -> impl Iterator<Item = &Arc<str>> {
        [scheme, ANY]
            .into_iter()
            .filter_map(|scheme| self.0.get(scheme))
            .flat_map(|folders| folders.keys())
    }
}

/// A pattern of `values: { resource: … }`, how many listed arguments have it, and its values once they are asked for.
#[derive(Debug, Clone)]
pub(super) struct Pattern {
    pub(super) count: usize,
    pub(super) template: Arc<UriTemplate>,
    pub(super) values: Arc<OnceLock<Arc<ValueIndex>>>,
}

/// What the next catalog is made from.
#[derive(Debug, Clone, Default)]
pub(super) struct Parts {
    /// By the key of the entry, [`super::tree::Entry::key`].
    pub(super) pieces: HashTrieMapSync<Arc<str>, Piece>,
    /// Paths of prompts by name, `-` and `_` being one.
    pub(super) stems: Groups,
    /// Paths of partials by the name `include` uses.
    pub(super) partial_names: Groups,
    /// Paths of values files by the name arguments use.
    pub(super) values_names: Groups,
    pub(super) partials: Partials,
    pub(super) claims: Claims,
    pub(super) dependents: Dependents,
    pub(super) reach: Reach,
    /// Paths of prompts that did not pass; what they wait for is not known, so each build looks again.
    pub(super) failing: RedBlackTreeSetSync<Arc<str>>,
    pub(super) patterns: HashTrieMapSync<Arc<str>, Pattern>,
    pub(super) labels: Option<Arc<(Source, Labels)>>,
    pub(super) findings: Findings,
}
