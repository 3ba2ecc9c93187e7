//! Whether the catalog in memory, made change by change, equals one made from nothing.

use crate::catalog::{Catalog, Difference, Revision};
use crate::prompt::Prompt;
use crate::store::IndexDifference;

use super::source::Library;
use super::{OpenError, Refreshed, Registry};

impl Registry {
    /// Compares what is served with a catalog made from nothing. How many prompts and resources were compared, and which
    /// are not the same. Blocks for as long as the library takes to read.
    pub fn verify(&self) -> Result<(usize, Vec<IndexDifference>), OpenError> {
        let snapshot = self.snapshot();
        let served = &snapshot.latest;
        let cold = self.cold(served)?;
        let difference = Difference::between(served, &cold);
        let rows = cold.list(None).len() + cold.resources().len();
        let mut out = Vec::new();
        let hash = |prompt: &Option<std::sync::Arc<Prompt>>| {
            prompt
                .as_ref()
                .map(|prompt| format!("{} {}", prompt.path, prompt.closure_hash))
        };
        for (name, changed) in &difference.prompts {
            out.push(IndexDifference {
                table: "catalog",
                row: format!("prompt {name}"),
                expected: hash(&changed.after),
                found: hash(&changed.before),
            });
        }
        for uri in &difference.resources {
            let hash = |catalog: &Catalog| {
                catalog
                    .resources()
                    .iter()
                    .find(|resource| resource.uri == *uri)
                    .map(|resource| resource.sha256.to_string())
            };
            out.push(IndexDifference {
                table: "catalog",
                row: format!("resource {uri}"),
                expected: hash(&cold),
                found: hash(served),
            });
        }
        Ok((rows, out))
    }

    /// Makes what is served from nothing, in the place of what was made change by change.
    pub fn rebuild(&self) -> Result<Refreshed, OpenError> {
        let _requests = self
            .refreshing
            .lock()
            .unwrap_or_else(std::sync::PoisonError::into_inner);
        let old = self.snapshot();
        let cold = self.cold(&old.latest)?;
        let status = old.status.clone();
        if let (Library::Bare(repository), Some(commit)) = (&self.library, &status.served) {
            let check = self.renderer().check_again();
            let ready = self.ready(repository, &commit.clone(), cold, None, &old, &check)?;
            return Ok(self.swap(&old, ready, status));
        }
        let difference = Difference::between(&old.catalog, &cold);
        Ok(self.swap_plain(&old, cold, status, &difference))
    }

    /// The revision of a catalog, made from nothing.
    fn cold(&self, served: &Catalog) -> Result<Catalog, OpenError> {
        // it has passed the check once
        let check = self.renderer().check_again();
        match (&self.library, served.revision()) {
            (Library::Bare(repository), Revision::Commit(commit)) => {
                Ok(self.build_commit(repository, commit, None, &check)?.catalog)
            }
            (Library::Bare(_), Revision::WorkTree) => {
                Ok(Catalog::empty(Revision::WorkTree, &self.settings.limits))
            }
            (Library::WorkTree { root, .. }, _) => {
                let tree = super::source::WorkTree::open(root)?;
                let update = self
                    .settings
                    .update(&tree, Revision::WorkTree, None, &check)?;
                Ok(update.catalog)
            }
        }
    }
}
