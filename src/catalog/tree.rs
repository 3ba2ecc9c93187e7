//! What a catalog is built from: the files of one revision.

use std::io;
use std::sync::Arc;

use crate::prompt::parse::hex;

use super::Revision;

/// A git object id (SHA-1), of the blob the content is or would be.
pub type ObjectId = [u8; 20];

/// What an entry is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum EntryKind {
    /// A regular file.
    File,
    /// A symbolic link; never followed.
    Symlink,
    /// A submodule.
    Gitlink,
    /// A folder below the deepest that is read.
    Deep,
    /// A file whose path is not UTF-8 or has a part such as `..`; the path is shown lossily.
    BadPath,
}

/// One file of a revision.
#[derive(Debug, Clone)]
pub struct Entry {
    /// Path from the root, `/` separated.
    pub path: Arc<str>,
    /// Its content's id: the same id means the same bytes. Of what is no file: an id of its path.
    pub id: ObjectId,
    /// What it is.
    pub kind: EntryKind,
    /// Size in bytes, where it is known without reading.
    pub size: Option<u64>,
}

impl Entry {
    /// What names it among the entries of a revision: its path, where that is its own. What is no file may be shown by a
    /// path that others have too; its id tells it from them.
    pub fn key(&self) -> Arc<str> {
        match self.kind {
            EntryKind::File => self.path.clone(),
            _ => format!("{}\0{}", self.path, hex(&self.id)).into(),
        }
    }
}

/// An entry that another revision has differently.
#[derive(Debug, Clone)]
pub struct Change {
    /// As it was; none where it is new.
    pub before: Option<Entry>,
    /// As it is; none where it is gone.
    pub after: Option<Entry>,
}

/// The files of one revision. Implemented by a commit's tree and by a work tree.
pub trait Tree {
    /// All entries, in any order.
    fn entries(&self) -> io::Result<Vec<Entry>>;
    /// What differs from another revision, where that costs less than listing everything; none where it does not.
    fn changes(&self, _since: &Revision) -> io::Result<Option<Vec<Change>>> {
        Ok(None)
    }
    /// The bytes of an entry.
    fn read(&self, entry: &Entry) -> io::Result<Vec<u8>>;
    /// The size of an entry, without reading it where that can be done.
    fn size(&self, entry: &Entry) -> io::Result<u64> {
        match entry.size {
            Some(size) => Ok(size),
            None => Ok(self.read(entry)?.len() as u64),
        }
    }
}

/// Files held in memory, for tests, the starter library and unsaved text.
#[derive(Debug, Clone, Default)]
pub struct MemoryTree {
    files: Vec<(Arc<str>, Vec<u8>)>,
}

impl MemoryTree {
    /// Adds a file.
    #[must_use]
    pub fn with(mut self, path: &str, bytes: impl Into<Vec<u8>>) -> Self {
        self.files.push((path.into(), bytes.into()));
        self
    }
}

impl Tree for MemoryTree {
    fn entries(&self) -> io::Result<Vec<Entry>> {
        use sha2::{Digest, Sha256};
        Ok(self
            .files
            .iter()
            .map(|(path, bytes)| {
                let mut id = [0; 20];
                id.copy_from_slice(&Sha256::digest(bytes)[..20]);
                Entry {
                    path: path.clone(),
                    id,
                    kind: EntryKind::File,
                    size: Some(bytes.len() as u64),
                }
            })
            .collect())
    }

    fn read(&self, entry: &Entry) -> io::Result<Vec<u8>> {
        self.files
            .iter()
            .find(|(path, _)| *path == entry.path)
            .map(|(_, bytes)| bytes.clone())
            .ok_or_else(|| io::ErrorKind::NotFound.into())
    }
}
