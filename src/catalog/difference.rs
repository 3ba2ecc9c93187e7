//! What differs between two catalogs: who is told, and what a pusher is told, follows from it.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use crate::prompt::Prompt;

use super::Catalog;

/// What differs between two catalogs.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Difference {
    /// Prompts that came, went, moved or changed, by name.
    pub prompts: BTreeMap<Arc<str>, Changed>,
    /// Folders of prompts that render differently only because a resource they can reach does.
    pub reached: BTreeSet<Arc<str>>,
    /// URIs that came, went, or have other content or another type.
    pub resources: BTreeSet<Arc<str>>,
    /// Whether the list of resources or of their families differs.
    pub resources_list: bool,
}

/// One prompt before and after; at least one of them is there.
#[derive(Debug, Clone)]
pub struct Changed {
    /// As it was.
    pub before: Option<Arc<Prompt>>,
    /// As it is.
    pub after: Option<Arc<Prompt>>,
}

impl Changed {
    /// Whether it lists differently (name, folder, title, description, tags, arguments).
    pub fn lists(&self) -> bool {
        let hash = |prompt: &Option<Arc<Prompt>>| prompt.as_ref().map(|p| p.list_hash.clone());
        hash(&self.before) != hash(&self.after)
    }

    /// Whether it renders differently, resources aside.
    pub fn renders(&self) -> bool {
        let hash = |prompt: &Option<Arc<Prompt>>| prompt.as_ref().map(|p| p.closure_hash.clone());
        hash(&self.before) != hash(&self.after)
    }

    /// Whether anything at all differs that a version is made of.
    pub(super) fn differs(&self) -> bool {
        let facts = |prompt: &Option<Arc<Prompt>>| {
            prompt
                .as_ref()
                .map(|p| (p.sha256.clone(), p.path.clone(), p.closure_hash.clone()))
        };
        facts(&self.before) != facts(&self.after)
    }
}

impl PartialEq for Changed {
    fn eq(&self, other: &Self) -> bool {
        let same = |a: &Option<Arc<Prompt>>, b: &Option<Arc<Prompt>>| match (a, b) {
            (None, None) => true,
            (Some(a), Some(b)) => {
                a.path == b.path && a.list_hash == b.list_hash && a.closure_hash == b.closure_hash
            }
            _ => false,
        };
        same(&self.before, &other.before) && same(&self.after, &other.after)
    }
}

impl Eq for Changed {}

impl Difference {
    /// Compares two catalogs as a whole; where one was built from the other, [`super::Update::difference`] costs less.
    pub fn between(old: &Catalog, new: &Catalog) -> Self {
        let mut out = Self::default();
        for prompt in new.list(None) {
            let before = old.prompt(prompt.name.as_str());
            if before.is_some_and(|before| Arc::ptr_eq(before, prompt)) {
                continue;
            }
            out.note(before.cloned(), Some(prompt.clone()));
        }
        for prompt in old.list(None) {
            if new.prompt(prompt.name.as_str()).is_none() {
                out.note(Some(prompt.clone()), None);
            }
        }
        for prompt in new.list(None) {
            if let Some(before) = old.prompt(prompt.name.as_str())
                && before.closure_hash == prompt.closure_hash
                && old.render_hash(before) != new.render_hash(prompt)
            {
                out.reached.insert(prompt.folder.clone());
            }
        }
        let listed = |catalog: &Catalog| -> BTreeMap<Arc<str>, (Arc<str>, Arc<str>)> {
            catalog
                .resources()
                .iter()
                .map(|r| (r.uri.clone(), (r.mime_type.clone(), r.sha256.clone())))
                .collect()
        };
        let (before, after) = (listed(old), listed(new));
        for (uri, facts) in &before {
            if after.get(uri) != Some(facts) {
                out.resources.insert(uri.clone());
                out.resources_list |= after.get(uri).is_none_or(|now| now.0 != facts.0);
            }
        }
        for uri in after.keys().filter(|uri| !before.contains_key(*uri)) {
            out.resources.insert(uri.clone());
            out.resources_list = true;
        }
        out.resources_list |= families(old) != families(new);
        out
    }

    /// Notes a prompt that may differ.
    pub(super) fn note(&mut self, before: Option<Arc<Prompt>>, after: Option<Arc<Prompt>>) {
        let Some(name) = after
            .as_ref()
            .or(before.as_ref())
            .map(|p| p.name.as_str().into())
        else {
            return;
        };
        let changed = Changed { before, after };
        if changed.differs() {
            self.prompts.insert(name, changed);
        }
    }
}

fn families(catalog: &Catalog) -> Vec<&str> {
    catalog
        .families()
        .iter()
        .map(|family| family.template.as_str())
        .collect()
}
