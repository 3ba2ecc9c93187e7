//! From the files of a revision to a catalog, made from the one before and what has changed since.
//!
//! A build from nothing is a change that brings every file: there is one way, so both give the same.

use std::collections::{BTreeSet, HashSet};
use std::io;
use std::sync::Arc;

use crate::prompt::{Limits, Problem};

use super::difference::Difference;
use super::examples::{self, RunExamples};
use super::findings;
use super::parts::Piece;
use super::tree::{Change, Tree};
use super::work::Work;
use super::{Catalog, Revision};

/// What a build gives.
#[derive(Debug)]
pub struct Built {
    /// The catalog of what is good.
    pub catalog: Catalog,
    /// Every finding, by path and line. A commit with an error among them is not served.
    pub problems: Vec<Problem>,
}

impl Built {
    /// Whether nothing keeps the revision from being served.
    pub fn is_clean(&self) -> bool {
        self.catalog.is_clean()
    }
}

/// What an update gives: the same, with what it has changed; problems are listed only when they are asked for.
#[derive(Debug)]
pub struct Update {
    /// The catalog of what is good.
    pub catalog: Catalog,
    /// Against the catalog it was made from; everything, where there was none.
    pub difference: Difference,
    /// Sources whose findings were set anew.
    sources: BTreeSet<Arc<str>>,
}

impl Update {
    /// Whether nothing keeps the revision from being served.
    pub fn is_clean(&self) -> bool {
        self.catalog.is_clean()
    }

    /// Every error, and the warnings of what was read or checked again, by path and line.
    pub fn problems(&self) -> Vec<Problem> {
        if self.catalog.is_clean() {
            let mut fresh = self.sources.iter().fold(Vec::new(), |mut all, source| {
                all.extend_from_slice(self.catalog.parts.findings.of(source));
                all
            });
            findings::order(&mut fresh);
            return fresh;
        }
        let fresh: HashSet<&Problem> = self
            .sources
            .iter()
            .flat_map(|source| self.catalog.parts.findings.of(source))
            .collect();
        let mut all = self.catalog.problems();
        all.retain(|problem| problem.is_error() || fresh.contains(problem));
        all
    }
}

/// Builds the catalog of a revision. An error means that reading failed, not that content is bad.
pub fn build(
    tree: &dyn Tree,
    revision: Revision,
    limits: &Limits,
    previous: Option<&Catalog>,
    run_examples: RunExamples<'_>,
) -> io::Result<Built> {
    let update = update(tree, revision, limits, previous, run_examples)?;
    Ok(Built {
        problems: update.catalog.problems(),
        catalog: update.catalog,
    })
}

/// Builds, and runs the examples in this process.
pub fn build_and_run(
    tree: &dyn Tree,
    revision: Revision,
    limits: &Limits,
    previous: Option<&Catalog>,
) -> io::Result<Built> {
    build(tree, revision, limits, previous, &examples::run)
}

/// Makes the catalog of a revision from another one; the cost is that of what differs between them, and of what rests
/// on it.
pub fn update(
    tree: &dyn Tree,
    revision: Revision,
    limits: &Limits,
    previous: Option<&Catalog>,
    run_examples: RunExamples<'_>,
) -> io::Result<Update> {
    let previous = previous.filter(|previous| previous.limits == *limits);
    let changes = match previous {
        Some(previous) => match tree.changes(&previous.revision)? {
            Some(changes) => changes,
            None => compare(tree, previous)?,
        },
        None => compare(tree, &Catalog::empty(revision.clone(), limits))?,
    };
    let empty;
    let before = if let Some(previous) = previous {
        previous
    } else {
        empty = Catalog::empty(revision.clone(), limits);
        &empty
    };
    let made = Work::new(tree, limits, before, revision).run(&changes, run_examples)?;
    // what this machine could not render now is no verdict, and is tried again
    let unable = made
        .sources
        .iter()
        .flat_map(|source| made.catalog.parts.findings.of(source))
        .find(|problem| problem.code == examples::NOT_RENDERED);
    if let Some(problem) = unable {
        return Err(io::Error::other(problem.one_line()));
    }
    Ok(Update {
        catalog: made.catalog,
        difference: made.difference,
        sources: made.sources,
    })
}

/// What differs from a catalog, by listing everything.
fn compare(tree: &dyn Tree, previous: &Catalog) -> io::Result<Vec<Change>> {
    let mut entries = tree.entries()?;
    entries.sort_by(|a, b| a.path.cmp(&b.path));
    let pieces = &previous.parts.pieces;
    let mut keys = HashSet::with_capacity(entries.len());
    let mut out = Vec::new();
    for entry in entries {
        let key = entry.key();
        let before = pieces.get(&key);
        if before.is_none_or(|piece| (piece.id, piece.kind) != (entry.id, entry.kind)) {
            out.push(Change {
                before: before.map(Piece::entry),
                after: Some(entry),
            });
        }
        keys.insert(key);
    }
    let gone = pieces.iter().filter(|(key, _)| !keys.contains(*key));
    out.extend(gone.map(|(_, piece)| Change {
        before: Some(piece.entry()),
        after: None,
    }));
    Ok(out)
}
