//! `cuebook check --fix`: puts in what a problem says, byte for byte elsewhere.

use std::collections::BTreeMap;
use std::io::Write as _;
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
            replace(&file, insert(&text, fixes).as_bytes())
                .with_context(|| format!("cannot write {}", file.display()))?;
            changed.insert(path);
        }
    }
    Ok(changed.len())
}

/// Puts a file in the place of another, whole or not at all; it keeps the permissions.
fn replace(file: &Path, bytes: &[u8]) -> std::io::Result<()> {
    let permissions = std::fs::metadata(file)?.permissions();
    if permissions.readonly() {
        return Err(std::io::ErrorKind::PermissionDenied.into());
    }
    // hidden: nothing of a library is read from such a name
    let name = file.file_name().unwrap_or_default().to_string_lossy();
    let beside = file.with_file_name(format!(".{name}.{}.new", std::process::id()));
    let write = || {
        let mut new = std::fs::File::options()
            .write(true)
            .create_new(true)
            .open(&beside)?;
        new.write_all(bytes)?;
        new.set_permissions(permissions)?;
        new.sync_all()?;
        drop(new);
        std::fs::rename(&beside, file)
    };
    write().inspect_err(|_| {
        let _ = std::fs::remove_file(&beside);
    })
}
