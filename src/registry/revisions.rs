//! Catalogs of other commits, for `name@<commit>`: read on demand, checked as today, a few of them kept.

use std::sync::{Arc, PoisonError};
use std::time::Duration;

use tokio::sync::{MutexGuard, SemaphorePermit};
use tokio_util::sync::CancellationToken;

use crate::catalog::Catalog;
use crate::git::{GitError, read_again};

use super::{OpenError, Registry};

/// Longest time that somebody waits for a place.
const WAIT: Duration = Duration::from_secs(5);

/// Why a revision cannot be served.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
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
    /// The prompt has no version of this number.
    #[error("`{name}` has no v{number}; {}", newest(*.latest))]
    NoVersion {
        /// The prompt.
        name: String,
        /// The number that was asked for.
        number: u64,
        /// The newest there is; 0 for none.
        latest: u64,
    },
    /// A version does not pass today's check in the served library.
    #[error("{version} does not pass the check: {first}")]
    UncleanVersion {
        /// The prompt and the number.
        version: String,
        /// The first problem.
        first: String,
    },
    /// Versions are not known yet.
    #[error(
        "the versions of the prompts are being numbered, {done} of {} commits are read; try again in a moment",
        if *.total == 0 { "all".to_owned() } else { .total.to_string() }
    )]
    Counting {
        /// Commits that are read.
        done: u64,
        /// How many there are; 0 while that is not known.
        total: u64,
    },
    /// A work tree is served, which has no versions.
    #[error(
        "there are no versions here, because the files of a work tree are served; a server with a data directory numbers them"
    )]
    NotNumbered,
    /// Too many requests for other commits at once.
    #[error("the server is reading other revisions; try again in a moment")]
    Busy,
    /// Reading failed; the inside is logged, not shown.
    #[error("the library could not be read")]
    Io,
}

impl AtError {
    /// As it is told to somebody: what the check found first may be of what they do not see.
    #[must_use]
    pub fn told(self, sees_all: bool) -> Self {
        if sees_all {
            return self;
        }
        let first = "who reads the whole library is told why".to_owned();
        match self {
            Self::Unclean { commit, .. } => Self::Unclean { commit, first },
            Self::UncleanVersion { version, .. } => Self::UncleanVersion { version, first },
            other => other,
        }
    }
}

fn newest(latest: u64) -> String {
    match latest {
        0 => "it has no versions yet".to_owned(),
        latest => format!("its newest is v{latest}"),
    }
}

impl Registry {
    /// Waits for a place among those who read other commits.
    pub async fn reading(&self) -> Result<SemaphorePermit<'_>, AtError> {
        tokio::time::timeout(WAIT, self.reading_revisions.acquire())
            .await
            .map_err(|_| AtError::Busy)?
            .map_err(|_| AtError::Io)
    }

    /// The same for who asks which version each line of a prompt is from, which may read long: one at a time, so that a
    /// place is left to those who ask for a version.
    pub async fn blaming(&self) -> Result<(MutexGuard<'_, ()>, SemaphorePermit<'_>), AtError> {
        let one = tokio::time::timeout(WAIT, self.blaming.lock())
            .await
            .map_err(|_| AtError::Busy)?;
        Ok((one, self.reading().await?))
    }

    /// The catalog of a commit reachable from main, from a small cache; read off the async threads, two at a time.
    pub async fn at(self: &Arc<Self>, commit: &str) -> Result<Arc<Catalog>, AtError> {
        let snapshot = self.snapshot();
        if snapshot.latest.revision().commit() == Some(commit) {
            return Ok(snapshot.latest.clone());
        }
        if let Some(found) = self
            .revisions
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .get(commit)
        {
            return Ok(found.clone());
        }
        let _permit = self.reading().await?;
        let registry = self.clone();
        let commit = commit.to_owned();
        tokio::task::spawn_blocking(move || registry.read_revision(&commit))
            .await
            .map_err(|_| AtError::Io)?
    }

    fn read_revision(&self, id: &str) -> Result<Arc<Catalog>, AtError> {
        let unreadable = |error: &dyn std::fmt::Display| {
            tracing::error!(%error, "a revision could not be read");
            AtError::Io
        };
        let repository = self
            .library
            .repository()
            .ok_or_else(|| AtError::Unknown(id.into()))?;
        let known = |error: GitError| match error {
            GitError::Unknown(id) => AtError::Unknown(id),
            GitError::Ambiguous(id) => AtError::Ambiguous(id),
            error => unreadable(&error),
        };
        let tip = repository
            .main_tip()
            .map_err(known)?
            .ok_or_else(|| AtError::Unknown(id.into()))?;
        let commit = repository.reachable(id, &tip).map_err(known)?;
        let cached = self
            .revisions
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .get(&commit)
            .cloned();
        let catalog = if let Some(cached) = cached {
            cached
        } else {
            let snapshot = self.snapshot();
            if snapshot.latest.revision().commit() == Some(commit.as_str()) {
                return Ok(snapshot.latest.clone());
            }
            if let Some(first) = self
                .unclean
                .lock()
                .unwrap_or_else(PoisonError::into_inner)
                .get(&commit)
                .cloned()
            {
                return Err(AtError::Unclean { commit, first });
            }
            let check = self.renderer().check(CancellationToken::new());
            let built = read_again(OpenError::git, || {
                self.build_commit(repository, &commit, Some(&snapshot.latest), &check)
            })
            .map_err(|e| unreadable(&e))?;
            if let Some(first) = built.problems().iter().find(|p| p.is_error()) {
                let first = first.one_line();
                self.unclean
                    .lock()
                    .unwrap_or_else(PoisonError::into_inner)
                    .put(commit.clone(), first.clone());
                return Err(AtError::Unclean { commit, first });
            }
            Arc::new(built.catalog)
        };
        let mut cache = self
            .revisions
            .lock()
            .unwrap_or_else(PoisonError::into_inner);
        cache.put(commit, catalog.clone());
        // the short form as it was asked for, so that the next request needs no git
        if id.len() < 40 {
            cache.put(id.to_owned(), catalog.clone());
        }
        Ok(catalog)
    }
}
