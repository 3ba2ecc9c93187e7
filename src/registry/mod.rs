//! Holds the current catalog; the only publisher; tells who waits.
use std::collections::HashMap;
use std::sync::Arc;
use crate::catalog::Catalog;
use crate::prompt::Limits;

/// What is served now, taken once a request.
#[derive(Debug)]
pub struct Snapshot {
    /// The index everything comes from.
    pub catalog: Arc<Catalog>,
    /// Counts swaps, from 1; never repeats in a process.
    pub generation: u64,
    /// When what last changed.
    pub changes: Changes,
    /// Whether the tip is served.
    pub status: Status,
}

/// Generations at which what clients see last changed; a stream compares them with what it was told.
#[derive(Debug, Clone, Default)]
pub struct Changes {
    /// Any prompt lists or renders differently (or, with the setting off, lists differently).
    pub prompts: u64,
    /// The same by folder (every folder prefix: `a`, `a/b`).
    pub folders: HashMap<Arc<str>, u64>,
    /// The list of resources differs (URIs, names, types).
    pub resources_list: u64,
    /// A resource's content differs; streams then compare the hashes of what they subscribed to.
    pub resources_content: u64,
}

/// What is served against what main says.
#[derive(Debug, Clone, Default)]
pub struct Status {
    /// The tip of main; none for a work tree.
    pub tip: Option<String>,
    /// The served commit; none for a work tree.
    pub served: Option<String>,
    /// Error-level problems at the tip, as lines, at most 20.
    pub tip_problems: Vec<String>,
    /// Error-level problems at the tip in all.
    pub tip_problem_count: usize,
}

/// Why a revision cannot be served.
#[derive(Debug, Clone, thiserror::Error)]
pub enum AtError {
    /// No commit of main has this id.
    #[error("no commit `{0}` on main")]
    Unknown(String),
    /// More than one has.
    #[error("`{0}` fits more than one commit; give more digits")]
    Ambiguous(String),
    /// It does not pass today's check.
    #[error("commit `{commit}` does not pass the check: {first}")]
    Unclean {
        /// The commit.
        commit: String,
        /// The first problem.
        first: String,
    },
    /// Reading failed; the inside is logged, not shown.
    #[error("the library could not be read")]
    Io,
}

/// The one holder of the current catalog.
#[derive(Debug)]
pub struct Registry { _x: () }

impl Registry {
    /// What is served now.
    pub fn snapshot(&self) -> Arc<Snapshot> { todo!() }
    /// Wakes whenever a new snapshot is in; carries its generation.
    pub fn subscribe(&self) -> tokio::sync::watch::Receiver<u64> { todo!() }
    /// The catalog of a commit reachable from main, from a small cache; off the async threads.
    pub async fn at(&self, commit: &str) -> Result<Arc<Catalog>, AtError> { let _ = commit; todo!() }
    /// The limits in force.
    pub fn limits(&self) -> &Limits { todo!() }
}
