//! The library as each actor sees it: one view for all who see everything, which costs nothing, and one for each set of
//! permissions beside it, made when it is first asked for and kept until the next publish.

use std::collections::HashMap;
use std::num::NonZeroUsize;
use std::sync::{Arc, Mutex, OnceLock};

use lru::LruCache;

use super::session::lock;
use crate::access::{Action, Actor, Permissions};
use crate::catalog::Catalog;
use crate::registry::Snapshot;

/// Views that are kept; a set of permissions beside them has its view made at each request.
const KEPT: usize = 64;
/// Views of other revisions that are kept.
const KEPT_EARLIER: usize = 16;
/// Folders of which a view keeps what it shows.
const KEPT_FOLDERS: usize = 1000;

type Kept<K, T> = Mutex<LruCache<(K, Arc<Permissions>), T>>;

/// The views that are kept.
#[derive(Debug)]
pub(super) struct Views {
    now: Kept<u64, Arc<OnceLock<Arc<Part>>>>,
    earlier: Kept<Arc<str>, Arc<Catalog>>,
}

impl Default for Views {
    fn default() -> Self {
        let size = |size| NonZeroUsize::new(size).unwrap_or(NonZeroUsize::MIN);
        Self {
            now: Mutex::new(LruCache::new(size(KEPT))),
            earlier: Mutex::new(LruCache::new(size(KEPT_EARLIER))),
        }
    }
}

/// A snapshot as somebody sees it.
#[derive(Debug, Clone)]
pub(super) struct View {
    /// What they see of it: all else is not there.
    pub(super) snapshot: Arc<Snapshot>,
    part: Option<Arc<Part>>,
}

/// What somebody sees who does not see everything.
#[derive(Debug)]
struct Part {
    snapshot: Arc<Snapshot>,
    prompts: Mutex<HashMap<Option<Box<str>>, [u8; 32]>>,
    resources: OnceLock<[u8; 32]>,
}

/// What a listener who sees a part was told of, to compare with what there is now.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Seen {
    /// A hash over the prompts.
    pub prompts: [u8; 32],
    /// A hash over the list of resources.
    pub resources: [u8; 32],
}

impl View {
    /// Everything.
    pub(super) fn whole(snapshot: Arc<Snapshot>) -> Self {
        Self {
            snapshot,
            part: None,
        }
    }

    /// What there is now in a folder, for who sees a part; none for who sees everything. `bodies` says whether an edit
    /// of a body alone counts.
    pub(super) fn seen(&self, folder: Option<&str>, bodies: bool) -> Option<Seen> {
        let part = self.part.as_ref()?;
        let catalog = &part.snapshot.catalog;
        let key = folder.map(Into::into);
        let known = lock(&part.prompts).get(&key).copied();
        let prompts = known.unwrap_or_else(|| {
            let hash = catalog.prompts_hash(folder, bodies);
            let mut kept = lock(&part.prompts);
            if kept.len() < KEPT_FOLDERS {
                kept.insert(key, hash);
            }
            hash
        });
        let resources = *part.resources.get_or_init(|| catalog.resources_hash());
        Some(Seen { prompts, resources })
    }
}

/// A catalog as an actor sees it.
fn seen(catalog: &Catalog, actor: &Actor) -> Arc<Catalog> {
    if !actor.may_somewhere(Action::Read) {
        let revision = catalog.revision().clone();
        return Arc::new(Catalog::empty(revision, catalog.limits()));
    }
    Arc::new(catalog.seen(|path| actor.may(Action::Read, path)))
}

impl Views {
    /// A snapshot as an actor sees it.
    pub(super) fn of(&self, actor: &Actor, snapshot: Arc<Snapshot>) -> View {
        if actor.sees_all() {
            return View::whole(snapshot);
        }
        let cell = {
            let mut kept = lock(&self.now);
            let key = (snapshot.generation, actor.permissions().clone());
            if let Some(cell) = kept.get(&key) {
                cell.clone()
            } else {
                let generation = snapshot.generation;
                // what was served before is held by who still needs it
                let gone: Vec<_> = kept
                    .iter()
                    .map(|(key, _)| key.clone())
                    .filter(|(of, _)| *of < generation)
                    .collect();
                for key in gone {
                    kept.pop(&key);
                }
                let cell: Arc<OnceLock<Arc<Part>>> = Arc::default();
                kept.put(key, cell.clone());
                cell
            }
        };
        let part = cell.get_or_init(|| {
            let catalog = seen(&snapshot.catalog, actor);
            let latest = if Arc::ptr_eq(&snapshot.catalog, &snapshot.latest) {
                catalog.clone()
            } else {
                seen(&snapshot.latest, actor)
            };
            Arc::new(Part {
                snapshot: Arc::new(Snapshot {
                    catalog,
                    latest,
                    ..(*snapshot).clone()
                }),
                prompts: Mutex::default(),
                resources: OnceLock::new(),
            })
        });
        View {
            snapshot: part.snapshot.clone(),
            part: Some(part.clone()),
        }
    }

    /// The catalog of another revision as an actor sees it.
    pub(super) fn earlier(&self, actor: &Actor, catalog: &Arc<Catalog>) -> Arc<Catalog> {
        if actor.sees_all() {
            return catalog.clone();
        }
        let Some(commit) = catalog.revision().commit() else {
            return seen(catalog, actor);
        };
        let key = (Arc::from(commit), actor.permissions().clone());
        if let Some(known) = lock(&self.earlier).get(&key) {
            return known.clone();
        }
        let made = seen(catalog, actor);
        lock(&self.earlier).put(key, made.clone());
        made
    }
}
