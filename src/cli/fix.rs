//! `cuebook check --fix`: puts in what a problem says, byte for byte elsewhere.

use std::collections::BTreeMap;
use std::path::Path;
use std::sync::Arc;

use anyhow::Context as _;

use crate::catalog::Revision;
use crate::catalog::build::build;
use crate::prompt::Limits;
use crate::prompt::problem::{Insertion, insert};
use crate::registry::source::WorkTree;

/// Fixes the files of a work tree; gives how many changed.
///
/// One round may uncover what the next puts right: a file tells only its first hundred faults. It ends because every
/// round makes a file longer, and one over its size limit has no fixes.
pub(super) fn run(root: &Path, limits: &Limits) -> anyhow::Result<usize> {
    let mut changed = std::collections::BTreeSet::new();
    loop {
        let tree = WorkTree::open(root)?;
        let built = build(
            &tree,
            Revision::WorkTree,
            limits,
            None,
            &crate::catalog::examples::none,
        )?;
        let mut by_path: BTreeMap<Arc<str>, Vec<Insertion>> = BTreeMap::new();
        for problem in &built.problems {
            by_path
                .entry(problem.path.clone())
                .or_default()
                .extend(problem.fix.iter().cloned());
        }
        by_path.retain(|_, fixes| !fixes.is_empty());
        if by_path.is_empty() {
            break;
        }
        for (path, fixes) in by_path {
            let file = root.join(&*path);
            let text = std::fs::read_to_string(&file)
                .with_context(|| format!("cannot read {}", file.display()))?;
            std::fs::write(&file, insert(&text, fixes))
                .with_context(|| format!("cannot write {}", file.display()))?;
            changed.insert(path);
        }
    }
    Ok(changed.len())
}
