//! What a new catalog changes for whom: the generations that streams compare with what they were told.

use std::sync::Arc;

use rpds::HashTrieMapSync;

use crate::catalog::Difference;

/// Generations at which what clients see last changed; a stream compares them with what it was told.
#[derive(Debug, Clone, Default)]
pub struct Changes {
    /// Any prompt lists or renders differently (or, with the setting off, lists differently).
    pub prompts: u64,
    /// The same by folder (every folder prefix: `a`, `a/b`, and `""` for the whole).
    pub folders: HashTrieMapSync<Arc<str>, u64>,
    /// The list of resources differs (URIs, names, types).
    pub resources_list: u64,
    /// A resource's content differs; streams then compare the hashes of what they subscribed to.
    pub resources_content: u64,
}

impl Changes {
    /// The same once a difference is served; `generation` is the new one, 1 for the first catalog of a process.
    ///
    /// `bodies` says whether an edit of a body alone counts.
    pub(super) fn with(&self, generation: u64, difference: &Difference, bodies: bool) -> Self {
        let mut changes = self.clone();
        let told = difference
            .prompts
            .values()
            .filter(|changed| changed.lists() || (bodies && changed.renders()))
            .flat_map(|changed| changed.before.iter().chain(&changed.after))
            .map(|prompt| &prompt.folder)
            .chain(difference.reached.iter().filter(|_| bodies));
        let mut any = generation == 1;
        for folder in told {
            any = true;
            changes.note(folder, generation);
        }
        if any {
            changes.prompts = generation;
        }
        if generation == 1 || difference.resources_list {
            changes.resources_list = generation;
        }
        if generation == 1 || !difference.resources.is_empty() {
            changes.resources_content = generation;
        }
        changes
    }

    /// Notes a folder and all that hold it.
    fn note(&mut self, folder: &Arc<str>, generation: u64) {
        if self.folders.get(folder) == Some(&generation) {
            return;
        }
        self.folders.insert_mut("".into(), generation);
        for (at, _) in folder.match_indices('/') {
            self.folders.insert_mut(folder[..at].into(), generation);
        }
        self.folders.insert_mut(folder.clone(), generation);
    }
}
