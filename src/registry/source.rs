//! Where a library is read: a commit of a repository, or the files of a work tree.

use std::collections::HashMap;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use crate::catalog::{Change, Entry, EntryKind, Revision, Tree};
use crate::git::{self, Blobs, GitError, Mode, Repository, TreeEntry};

/// The files of a commit.
#[derive(Debug)]
pub struct CommitTree {
    repository: Repository,
    commit: String,
    blobs: Blobs,
}

impl CommitTree {
    /// A commit's files; they are listed and read when they are asked for.
    pub fn open(repository: &Repository, commit: &str) -> Result<Self, GitError> {
        Ok(Self {
            repository: repository.clone(),
            commit: commit.to_owned(),
            blobs: repository.blobs()?,
        })
    }
}

fn entry(entry: TreeEntry) -> Entry {
    let raw = git::blob_id(&entry.path);
    let (path, fits) = match String::from_utf8(entry.path) {
        Ok(path) => {
            let fits = path.split('/').all(|part| {
                !matches!(part, "" | "." | "..")
                    && !part.eq_ignore_ascii_case(".git")
                    && !part.contains('\\')
            });
            (path, fits)
        }
        Err(error) => (
            String::from_utf8_lossy(error.as_bytes()).into_owned(),
            false,
        ),
    };
    let kind = match entry.mode {
        Mode::Symlink => EntryKind::Symlink,
        Mode::Gitlink => EntryKind::Gitlink,
        Mode::Deep => EntryKind::Deep,
        Mode::File if fits => EntryKind::File,
        Mode::File => EntryKind::BadPath,
    };
    Entry {
        path: path.into(),
        // what is not read is told from others by its path alone, which may be no text
        id: if kind == EntryKind::File {
            entry.id
        } else {
            raw
        },
        kind,
        size: None,
    }
}

impl Tree for CommitTree {
    fn entries(&self) -> io::Result<Vec<Entry>> {
        let entries = self.repository.tree(&self.commit);
        let entries = entries.map_err(io::Error::other)?;
        Ok(entries.into_iter().map(entry).collect())
    }

    fn changes(&self, since: &Revision) -> io::Result<Option<Vec<Change>>> {
        let Some(since) = since.commit() else {
            return Ok(None);
        };
        match self.blobs.changes(since, &self.commit) {
            Ok(changes) => Ok(Some(
                changes
                    .into_iter()
                    .map(|change| Change {
                        before: change.before.map(entry),
                        after: change.after.map(entry),
                    })
                    .collect(),
            )),
            // the other commit may be gone from the repository: then everything is listed
            Err(error) => {
                tracing::debug!(%error, since, "trees could not be compared");
                Ok(None)
            }
        }
    }

    fn read(&self, entry: &Entry) -> io::Result<Vec<u8>> {
        self.blobs.read(entry.id).map_err(io::Error::other)
    }

    fn size(&self, entry: &Entry) -> io::Result<u64> {
        self.blobs.size(entry.id).map_err(io::Error::other)
    }
}

/// The files of a work tree that can belong to a library, as they are on disk now.
#[derive(Debug)]
pub struct WorkTree {
    entries: Vec<Entry>,
    contents: HashMap<Arc<str>, Vec<u8>>,
}

/// The folders and files of a library.
pub const PARTS: [&str; 6] = [
    "prompts",
    "partials",
    "resources",
    "values",
    "cuebook.toml",
    "labels.toml",
];

/// Larger files are listed by size and not read; every limit of a file is below.
const MAX_FILE_BYTES: u64 = 64 * 1024 * 1024;

impl WorkTree {
    /// Reads the library's parts below a folder; links are listed, never followed.
    pub fn open(root: &Path) -> io::Result<Self> {
        let mut tree = Self {
            entries: Vec::new(),
            contents: HashMap::new(),
        };
        std::fs::metadata(root)?;
        for part in PARTS {
            tree.add(&root.join(part), part.to_owned(), 0)?;
        }
        Ok(tree)
    }

    /// Whether a prompt or a partial has no content at all.
    pub fn has_empty_file(&self) -> bool {
        self.entries
            .iter()
            .any(|e| e.size == Some(0) && e.kind == EntryKind::File && e.path.ends_with(".md"))
    }

    /// A hash over every path with its content's id: the same means that nothing changed.
    pub fn fingerprint(&self) -> Arc<str> {
        use sha2::{Digest, Sha256};
        let mut entries: Vec<_> = self.entries.iter().collect();
        entries.sort_by(|a, b| a.path.cmp(&b.path));
        let mut hash = Sha256::new();
        for entry in entries {
            hash.update(entry.path.as_bytes());
            hash.update([0]);
            hash.update(entry.id);
            hash.update([entry.kind as u8]);
        }
        crate::prompt::parse::hex(&hash.finalize())
    }

    fn add(&mut self, path: &Path, name: String, depth: usize) -> io::Result<()> {
        let metadata = match std::fs::symlink_metadata(path) {
            Ok(metadata) => metadata,
            // also a file that went away between listing and reading
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(()),
            Err(error) => return Err(error),
        };
        let name: Arc<str> = name.into();
        let mut entry = Entry {
            path: name.clone(),
            id: [0; 20],
            kind: EntryKind::File,
            size: Some(metadata.len()),
        };
        if metadata.is_symlink() {
            entry.kind = EntryKind::Symlink;
            self.entries.push(entry);
        } else if metadata.is_dir() {
            if depth > git::MAX_DEPTH {
                entry.kind = EntryKind::Deep;
                self.entries.push(entry);
                return Ok(());
            }
            if path.join(".git").exists() {
                entry.kind = EntryKind::Gitlink;
                self.entries.push(entry);
                return Ok(());
            }
            for child in std::fs::read_dir(path)? {
                let child = child?;
                match child.file_name().into_string() {
                    Ok(file) => self.add(&child.path(), format!("{name}/{file}"), depth + 1)?,
                    Err(file) => {
                        let path = format!("{name}/{}", file.to_string_lossy()).into();
                        self.entries.push(Entry {
                            path,
                            id: [0; 20],
                            kind: EntryKind::BadPath,
                            size: None,
                        });
                    }
                }
            }
        } else if metadata.is_file() {
            if metadata.len() > MAX_FILE_BYTES {
                // too large for every limit: refused by its size, so that stands for what is in it
                let stamp = format!("{} {:?}", metadata.len(), metadata.modified().ok());
                entry.id = git::blob_id(stamp.as_bytes());
                self.entries.push(entry);
                return Ok(());
            }
            let bytes = match std::fs::read(path) {
                Ok(bytes) => bytes,
                Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(()),
                Err(error) => {
                    return Err(io::Error::new(
                        error.kind(),
                        format!("{}: {error}", path.display()),
                    ));
                }
            };
            entry.id = git::blob_id(&bytes);
            // what was read, also when the file grew meanwhile
            entry.size = Some(bytes.len() as u64);
            self.contents.insert(name, bytes);
            self.entries.push(entry);
        }
        Ok(())
    }
}

impl Tree for WorkTree {
    fn entries(&self) -> io::Result<Vec<Entry>> {
        Ok(self.entries.clone())
    }

    fn read(&self, entry: &Entry) -> io::Result<Vec<u8>> {
        self.contents
            .get(&entry.path)
            .cloned()
            .ok_or_else(|| io::ErrorKind::NotFound.into())
    }
}

/// A library on this machine.
#[derive(Debug, Clone)]
pub enum Library {
    /// A bare repository: main is served.
    Bare(Repository),
    /// A folder: its files are served as they are, uncommitted edits included.
    WorkTree {
        /// The folder.
        root: PathBuf,
        /// Its repository, when it has one; for `name@<commit>`.
        repository: Option<Repository>,
    },
}

/// Why a folder is no library.
#[derive(Debug, thiserror::Error)]
pub enum LibraryError {
    /// It is not there.
    #[error("{} does not exist", .0.display())]
    Missing(PathBuf),
    /// Nothing of a library is in it.
    #[error("{} is no library: it has no prompts/ folder and is no bare git repository ({})", .0.display(), advice(.0))]
    NotALibrary(PathBuf),
    /// The repository cannot be read.
    #[error(transparent)]
    Git(#[from] GitError),
}

/// What to do about a folder that is no library: to name the one it is a part of, its misnamed folder, or to make one.
fn advice(path: &Path) -> String {
    let absolute = path.canonicalize().unwrap_or_else(|_| path.into());
    let mut part = absolute.as_path();
    while let Some(above) = part.parent() {
        let is_part = part.file_name().is_some_and(|name| {
            PARTS.iter().any(|p| name == *p)
                && (name == "prompts"
                    || above.join(".git").exists()
                    || above.join("prompts").is_dir())
        });
        if is_part {
            // as the person wrote it, where that is shorter than the whole path
            let depth = absolute.components().count() - above.components().count();
            let written = path.ancestors().nth(depth);
            let shown = match written {
                Some(written) if !written.as_os_str().is_empty() && !path.ends_with("..") => {
                    written
                }
                _ => above,
            };
            return format!("{} looks like the library; name that one", shown.display());
        }
        part = above;
    }
    let near = std::fs::read_dir(path)
        .into_iter()
        .flatten()
        .flatten()
        .filter_map(|entry| entry.file_name().into_string().ok())
        .find(|name| matches!(name.to_lowercase().as_str(), "prompts" | "prompt"));
    match near {
        Some(near) => format!("it has {near}/: did you mean prompts/?"),
        None => format!("make one with `cuebook init {}`", path.display()),
    }
}

impl Library {
    /// Finds what a folder is: a data directory (its `library.git`), a bare repository, a clone or a plain folder.
    pub fn find(path: &Path) -> Result<Self, LibraryError> {
        if !path.exists() {
            return Err(LibraryError::Missing(path.into()));
        }
        let inner = path.join("library.git");
        if inner.is_dir() {
            return Ok(Self::Bare(Repository::open(&inner)?));
        }
        let has_files = PARTS.iter().any(|part| path.join(part).exists());
        match Repository::open(path) {
            Ok(repository) if repository.is_bare() => Ok(Self::Bare(repository)),
            Ok(repository) => Ok(Self::WorkTree {
                root: path.into(),
                repository: Some(repository),
            }),
            Err(GitError::NotARepository(_)) if has_files => Ok(Self::WorkTree {
                root: path.into(),
                repository: None,
            }),
            Err(GitError::NotARepository(_)) => Err(LibraryError::NotALibrary(path.into())),
            Err(error) => Err(error.into()),
        }
    }

    /// The repository, when there is one.
    pub fn repository(&self) -> Option<&Repository> {
        match self {
            Self::Bare(repository) => Some(repository),
            Self::WorkTree { repository, .. } => repository.as_ref(),
        }
    }
}
