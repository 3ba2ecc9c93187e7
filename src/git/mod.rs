//! Git, behind few functions: trees, blobs, history, the ref of main; and git processes where they are better.
//!
//! Knows nothing of prompts. A `Repository` is a path; libgit2 opens it again for each use (0.05 ms), because its
//! handle is Send and not Sync.

pub mod commit;
mod compare;
pub mod history;
pub mod log;
pub mod merge;
pub mod pack;
mod process;
pub mod remote;
mod stale;

use std::path::{Path, PathBuf};

pub use compare::TreeChange;
pub use process::{
    NewFile, clone, common_folder, hooks_folder, import_commit, init, kill_group, reset_work_tree,
    staged_commit, version,
};
pub use stale::{Swept, remove_stale, remove_unfinished};

/// The address that commits and reflogs of the server itself carry.
pub const SERVER_EMAIL: &str = "cuebook@localhost";
/// The branch that is served.
pub const MAIN: &str = "refs/heads/main";
/// Where the newest clean commit is remembered.
pub const SERVED: &str = "refs/cuebook/served";

/// Why git could not do something.
#[derive(Debug, thiserror::Error)]
pub enum GitError {
    /// The folder is no repository.
    #[error("{} is not a git repository", .0.display())]
    NotARepository(PathBuf),
    /// The repository has a format that libgit2 cannot read.
    #[error("{}: {what} is not supported; convert it: git clone --bare --ref-format=files … (sha1 objects)", .path.display())]
    Format {
        /// The repository.
        path: PathBuf,
        /// What it has.
        what: &'static str,
    },
    /// Nothing has this name.
    #[error("no commit `{0}`")]
    Unknown(String),
    /// More than one commit begins with this.
    #[error("`{0}` fits more than one commit; give more digits")]
    Ambiguous(String),
    /// A ref moved meanwhile.
    #[error("{0} was moved by somebody else meanwhile")]
    Moved(String),
    /// A file cannot be where a folder is, or below another file.
    #[error("`{0}` is in the way: a file and a folder cannot have one name")]
    InTheWay(String),
    /// git takes no such commit: a name that means something else on some system, for one.
    #[error("git does not take this change: {0}")]
    NotTaken(String),
    /// A git process failed.
    #[error("git {command}: {message}")]
    Process {
        /// The subcommand.
        command: String,
        /// What it wrote, one line.
        message: String,
    },
    /// `git` is not there.
    #[error("git was not found: install git 2.34 or newer and put it on the PATH")]
    Missing,
    /// libgit2 failed.
    #[error("{}", .0.message())]
    Library(#[from] git2::Error),
    /// Reading or writing failed.
    #[error(transparent)]
    Io(#[from] std::io::Error),
}

impl GitError {
    /// Itself, as [`read_again`] asks for it.
    pub fn git(&self) -> Option<&Self> {
        Some(self)
    }
}

/// How often a reading that failed is done again; the wait in between is 10 ms at first and doubles.
const READ_AGAIN: u32 = 5;

/// Reads again what could not be read while git tidied: it writes objects to another file and takes the old one away, and
/// libgit2, which has the old one open, finds them nowhere. A repository is opened anew for each attempt, which sees the
/// new files. `git` gives the error of git that a failure comes from. Blocks; for threads that may wait.
pub fn read_again<T, E>(
    git: fn(&E) -> Option<&GitError>,
    mut read: impl FnMut() -> Result<T, E>,
) -> Result<T, E> {
    let mut wait = std::time::Duration::from_millis(10);
    for _ in 0..READ_AGAIN {
        match read() {
            Err(error) if matches!(git(&error), Some(GitError::Library(_))) => {
                std::thread::sleep(wait);
                wait *= 2;
            }
            result => return result,
        }
    }
    read()
}

/// What a tree entry is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Mode {
    /// A regular or executable file.
    File,
    /// A symbolic link.
    Symlink,
    /// A submodule.
    Gitlink,
    /// A folder below [`MAX_DEPTH`], which is not entered.
    Deep,
}

/// A file of a commit's tree.
#[derive(Debug, Clone)]
pub struct TreeEntry {
    /// Path from the root as stored, `/` separated.
    pub path: Vec<u8>,
    /// The object's id.
    pub id: [u8; 20],
    /// What it is.
    pub mode: Mode,
}

/// A repository on this machine.
#[derive(Debug, Clone)]
pub struct Repository {
    path: PathBuf,
    /// The work tree, when there is one.
    work_tree: Option<PathBuf>,
    /// Objects that are looked for here too.
    objects: Option<PathBuf>,
}

impl Repository {
    /// Opens a bare repository, a work tree or a `.git` folder; never looks in parent folders.
    pub fn open(path: &Path) -> Result<Self, GitError> {
        let flags = git2::RepositoryOpenFlags::NO_SEARCH;
        match git2::Repository::open_ext(path, flags, std::iter::empty::<&std::ffi::OsStr>()) {
            Ok(repository) => Ok(Self {
                path: repository.path().to_path_buf(),
                work_tree: repository.workdir().map(Path::to_path_buf),
                objects: None,
            }),
            Err(error) => Err(open_error(path, error)),
        }
    }

    /// The repository's own folder (`library.git`, or `.git`).
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Whether it has no work tree.
    pub fn is_bare(&self) -> bool {
        self.work_tree.is_none()
    }

    /// The same repository with the objects of one more folder: a push that is not accepted yet has its own.
    #[must_use]
    pub fn with_objects(&self, extra: &Path) -> Self {
        Self {
            objects: Some(extra.to_path_buf()),
            ..self.clone()
        }
    }

    fn library(&self) -> Result<git2::Repository, GitError> {
        let repository = git2::Repository::open(&self.path)?;
        if let Some(objects) = &self.objects {
            // libgit2 takes no path that is not UTF-8 here
            let objects = objects.to_str().ok_or_else(|| {
                GitError::Io(std::io::Error::new(
                    std::io::ErrorKind::InvalidInput,
                    format!("{} is not UTF-8", objects.display()),
                ))
            })?;
            repository.odb()?.add_disk_alternate(objects)?;
        }
        Ok(repository)
    }

    /// The commit main points to; HEAD's where there is no main; none in an empty repository.
    pub fn main_tip(&self) -> Result<Option<String>, GitError> {
        let repository = self.library()?;
        let reference = match repository.find_reference(MAIN) {
            Ok(reference) => reference,
            Err(error) if error.code() == git2::ErrorCode::NotFound => match repository.head() {
                Ok(head) => head,
                Err(error)
                    if matches!(
                        error.code(),
                        git2::ErrorCode::UnbornBranch | git2::ErrorCode::NotFound
                    ) =>
                {
                    return Ok(None);
                }
                Err(error) => return Err(error.into()),
            },
            Err(error) => return Err(error.into()),
        };
        Ok(Some(reference.peel_to_commit()?.id().to_string()))
    }

    /// The commit a revision expression names (`HEAD~1`, a branch, an id or its beginning).
    pub fn resolve(&self, revision: &str) -> Result<String, GitError> {
        let repository = self.library()?;
        let object = repository
            .revparse_single(revision)
            .map_err(|error| match error.code() {
                git2::ErrorCode::Ambiguous => GitError::Ambiguous(revision.into()),
                _ => GitError::Unknown(revision.into()),
            })?;
        let commit = object
            .peel_to_commit()
            .map_err(|_| GitError::Unknown(revision.into()))?;
        Ok(commit.id().to_string())
    }

    /// The full id of a commit that is `tip` or an ancestor of it, from an id of 7 to 40 hex digits.
    pub fn reachable(&self, id: &str, tip: &str) -> Result<String, GitError> {
        let repository = self.library()?;
        let commit = repository
            .find_commit_by_prefix(id)
            .map_err(|error| match error.code() {
                git2::ErrorCode::Ambiguous => GitError::Ambiguous(id.into()),
                _ => GitError::Unknown(id.into()),
            })?;
        let tip = git2::Oid::from_str(tip)?;
        if commit.id() == tip || repository.graph_descendant_of(tip, commit.id())? {
            Ok(commit.id().to_string())
        } else {
            Err(GitError::Unknown(id.into()))
        }
    }

    /// The first parent of a commit.
    pub fn first_parent(&self, commit: &str) -> Result<Option<String>, GitError> {
        let repository = self.library()?;
        let commit = repository.find_commit(git2::Oid::from_str(commit)?)?;
        Ok(commit.parent_id(0).ok().map(|id| id.to_string()))
    }

    /// Every file of a commit, in tree order, and the folders that are too deep to be entered.
    pub fn tree(&self, commit: &str) -> Result<Vec<TreeEntry>, GitError> {
        let repository = self.library()?;
        let tree = repository
            .find_commit(git2::Oid::from_str(commit)?)?
            .tree()?;
        let mut out = Vec::new();
        walk(&repository, &tree, &mut Vec::new(), 0, &mut out)?;
        Ok(out)
    }

    /// The object id of a file of a commit; none where there is no file of that path.
    pub fn file_id(&self, commit: &str, path: &str) -> Result<Option<[u8; 20]>, GitError> {
        let repository = self.library()?;
        let tree = repository
            .find_commit(git2::Oid::from_str(commit)?)?
            .tree()?;
        match tree.get_path(Path::new(path)) {
            Ok(entry) if entry.kind() == Some(git2::ObjectType::Blob) => {
                let mut id = [0; 20];
                id.copy_from_slice(entry.id().as_bytes());
                Ok(Some(id))
            }
            Ok(_) => Ok(None),
            Err(error) if error.code() == git2::ErrorCode::NotFound => Ok(None),
            Err(error) => Err(error.into()),
        }
    }

    /// The bytes of a file of a commit; none where there is no file of that path.
    pub fn file(&self, commit: &str, path: &str) -> Result<Option<Vec<u8>>, GitError> {
        match self.file_id(commit, path)? {
            Some(id) => self.blobs()?.read(id).map(Some),
            None => Ok(None),
        }
    }

    /// A reader of blobs that opens the repository once.
    pub fn blobs(&self) -> Result<Blobs, GitError> {
        Ok(Blobs {
            repository: self.library()?,
        })
    }

    /// The commit a ref points to.
    pub fn read_ref(&self, name: &str) -> Result<Option<String>, GitError> {
        match self.library()?.refname_to_id(name) {
            Ok(id) => Ok(Some(id.to_string())),
            Err(error) if error.code() == git2::ErrorCode::NotFound => Ok(None),
            Err(error) => Err(error.into()),
        }
    }

    /// Points one of our own refs (`refs/cuebook/…`) at a commit, whatever it said before; writes nothing when it says so
    /// already.
    pub fn write_own_ref(&self, name: &str, commit: &str) -> Result<(), GitError> {
        let repository = self.library()?;
        let commit = git2::Oid::from_str(commit)?;
        if repository.refname_to_id(name).is_ok_and(|id| id == commit) {
            return Ok(());
        }
        repository.reference(name, commit, true, "cuebook")?;
        Ok(())
    }
}

/// Deepest folder that is read.
pub const MAX_DEPTH: usize = 32;

fn walk(
    repository: &git2::Repository,
    tree: &git2::Tree<'_>,
    path: &mut Vec<u8>,
    depth: usize,
    out: &mut Vec<TreeEntry>,
) -> Result<(), GitError> {
    for entry in tree {
        let length = path.len();
        if length > 0 {
            path.push(b'/');
        }
        path.extend_from_slice(entry.name_bytes());
        let mode = match entry.filemode() {
            0o040_000 if depth >= MAX_DEPTH => Some(Mode::Deep),
            0o040_000 => None,
            0o120_000 => Some(Mode::Symlink),
            0o160_000 => Some(Mode::Gitlink),
            _ => Some(Mode::File),
        };
        match mode {
            None => walk(
                repository,
                &repository.find_tree(entry.id())?,
                path,
                depth + 1,
                out,
            )?,
            Some(mode) => {
                let mut id = [0; 20];
                id.copy_from_slice(entry.id().as_bytes());
                out.push(TreeEntry {
                    path: path.clone(),
                    id,
                    mode,
                });
            }
        }
        path.truncate(length);
    }
    Ok(())
}

/// Reads blobs of one repository.
pub struct Blobs {
    repository: git2::Repository,
}

impl std::fmt::Debug for Blobs {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Blobs")
            .field("path", &self.repository.path())
            .finish()
    }
}

impl Blobs {
    /// The blob of a regular file of a commit; none where there is no such file.
    pub fn file(&self, commit: &str, path: &str) -> Result<Option<[u8; 20]>, GitError> {
        let tree = self
            .repository
            .find_commit(git2::Oid::from_str(commit)?)?
            .tree()?;
        match tree.get_path(Path::new(path)) {
            Ok(entry) if matches!(entry.filemode(), 0o100_644 | 0o100_755 | 0o100_664) => {
                let mut id = [0; 20];
                id.copy_from_slice(entry.id().as_bytes());
                Ok(Some(id))
            }
            Ok(_) => Ok(None),
            Err(error) if error.code() == git2::ErrorCode::NotFound => Ok(None),
            Err(error) => Err(error.into()),
        }
    }

    /// The regular files below a folder of a commit, in tree order; none where there is no such folder.
    pub fn folder(&self, commit: &str, folder: &str) -> Result<Vec<TreeEntry>, GitError> {
        let tree = self
            .repository
            .find_commit(git2::Oid::from_str(commit)?)?
            .tree()?;
        let mut out = Vec::new();
        if let Some(entry) = tree.get_name(folder)
            && entry.kind() == Some(git2::ObjectType::Tree)
        {
            let tree = self.repository.find_tree(entry.id())?;
            let mut path = folder.as_bytes().to_vec();
            walk(&self.repository, &tree, &mut path, 1, &mut out)?;
        }
        out.retain(|entry| entry.mode == Mode::File);
        Ok(out)
    }

    /// The size of a blob, from its header alone.
    pub fn size(&self, id: [u8; 20]) -> Result<u64, GitError> {
        let (size, _) = self
            .repository
            .odb()?
            .read_header(git2::Oid::from_bytes(&id)?)?;
        Ok(size as u64)
    }

    /// The bytes of a blob.
    pub fn read(&self, id: [u8; 20]) -> Result<Vec<u8>, GitError> {
        Ok(self
            .repository
            .find_blob(git2::Oid::from_bytes(&id)?)?
            .content()
            .to_vec())
    }
}

/// The id git would give to a blob of these bytes.
pub fn blob_id(bytes: &[u8]) -> [u8; 20] {
    let mut id = [0; 20];
    if let Ok(oid) = git2::Oid::hash_object(git2::ObjectType::Blob, bytes) {
        id.copy_from_slice(oid.as_bytes());
    }
    id
}

fn open_error(path: &Path, error: git2::Error) -> GitError {
    // libgit2 says only "unsupported extension name"; the repository's own words say which
    let config = std::fs::read_to_string(path.join("config"))
        .or_else(|_| std::fs::read_to_string(path.join(".git/config")))
        .unwrap_or_default()
        .to_ascii_lowercase();
    let setting = |key: &str, value: &str| {
        config.lines().any(|l| {
            l.split_once('=')
                .is_some_and(|(k, v)| k.trim() == key && v.trim() == value)
        })
    };
    if setting("refstorage", "reftable") {
        return GitError::Format {
            path: path.into(),
            what: "reftable",
        };
    }
    if setting("objectformat", "sha256") {
        return GitError::Format {
            path: path.into(),
            what: "the sha256 object format",
        };
    }
    match error.code() {
        git2::ErrorCode::NotFound => GitError::NotARepository(path.into()),
        _ => error.into(),
    }
}
