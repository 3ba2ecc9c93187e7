//! Why a library could not be read.

use crate::git::GitError;

/// Why there is no catalog to begin with.
#[derive(Debug, thiserror::Error)]
pub enum OpenError {
    /// git failed.
    #[error(transparent)]
    Git(#[from] GitError),
    /// Reading failed.
    #[error("the library could not be read: {0}")]
    Io(#[from] std::io::Error),
}

impl OpenError {
    /// The error of git that it comes from.
    pub(super) fn git(&self) -> Option<&GitError> {
        match self {
            Self::Git(error) => Some(error),
            Self::Io(_) => None,
        }
    }
}
