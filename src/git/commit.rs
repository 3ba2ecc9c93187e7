//! Commits that are made here: from edits to the files of another commit, without a work tree and without an index.
//!
//! A commit is made in memory and kept apart ([`Apart`]) until it is accepted, as git keeps the objects of a push.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

use git2::build::TreeUpdateBuilder;

use super::process::{git_with, run};
use super::{GitError, Repository, SERVER_EMAIL};

/// An edit of one file.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Edit {
    /// Path from the root, `/` separated.
    pub path: String,
    /// What it holds afterwards; none to delete it.
    pub content: Option<Vec<u8>>,
}

/// What a new commit says of itself.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Message {
    /// The author's name.
    pub author: String,
    /// The author's address.
    pub email: String,
    /// Subject, a blank line, body, trailers.
    pub text: String,
    /// When, in seconds since 1970, UTC.
    pub seconds: i64,
}

/// A commit whose objects the repository does not have yet; what is not kept is gone when this is dropped.
#[derive(Debug)]
pub struct Apart {
    /// The commit's id.
    pub commit: String,
    /// Every object that is new, as a pack.
    pack: Vec<u8>,
    repository: Repository,
    folder: PathBuf,
}

impl Repository {
    /// Makes a commit on `parent` (none: the first one), apart from the repository's objects. None where the edits change
    /// nothing. A path that cannot be in a tree (`..`, an empty part, `.git`, a folder's) is an error.
    pub fn commit_apart(
        &self,
        parent: Option<&str>,
        edits: &[Edit],
        message: &Message,
    ) -> Result<Option<Apart>, GitError> {
        let repository = self.library()?;
        let odb = repository.odb()?;
        // written to first, so that nothing reaches the disk
        let _memory = odb.add_new_mempack_backend(1000)?;
        // only what is new: libgit2's own dump of what was written takes every object of the tree along
        let mut pack = repository.packbuilder()?;
        let parent = parent
            .map(|id| repository.find_commit(git2::Oid::from_str(id)?))
            .transpose()?;
        let base = match &parent {
            Some(parent) => parent.tree()?,
            None => repository.find_tree(repository.treebuilder(None)?.write()?)?,
        };
        let mut builder = TreeUpdateBuilder::new();
        for edit in edits {
            match &edit.content {
                Some(content) => {
                    if let Some(other) = in_the_way(&base, &edit.path) {
                        return Err(GitError::InTheWay(other));
                    }
                    let mode = match base.get_path(Path::new(&edit.path)) {
                        Ok(entry) if entry.filemode() == 0o100_755 => {
                            git2::FileMode::BlobExecutable
                        }
                        _ => git2::FileMode::Blob,
                    };
                    let blob = repository.blob(content)?;
                    pack.insert_object(blob, None)?;
                    builder.upsert(&*edit.path, blob, mode);
                }
                None => match base.get_path(Path::new(&edit.path)) {
                    // who deletes a file has not seen what else a folder of that name holds
                    Ok(entry) if entry.kind() == Some(git2::ObjectType::Tree) => {
                        return Err(GitError::InTheWay(edit.path.clone()));
                    }
                    Ok(_) => {
                        builder.remove(&*edit.path);
                    }
                    Err(_) => {}
                },
            }
        }
        let tree = builder
            .create_updated(&repository, &base)
            .map_err(|error| GitError::NotTaken(error.message().to_owned()))?;
        if tree == base.id() {
            return Ok(None);
        }
        let time = git2::Time::new(message.seconds, 0);
        let author = git2::Signature::new(&message.author, &message.email, &time)?;
        let committer = git2::Signature::new("Cuebook", SERVER_EMAIL, &time)?;
        let parents: Vec<&git2::Commit<'_>> = parent.iter().collect();
        let commit = repository.commit(
            None,
            &author,
            &committer,
            &message.text,
            &repository.find_tree(tree)?,
            &parents,
        )?;
        pack.insert_object(commit, None)?;
        let made = repository.find_tree(tree)?;
        for id in new_trees(&base, &made, edits) {
            pack.insert_object(id, None)?;
        }
        let mut packed = git2::Buf::new();
        pack.write_buf(&mut packed)?;
        Ok(Some(self.apart(commit.to_string(), packed.to_vec())?))
    }

    /// A commit with its objects in a folder of their own.
    pub(super) fn apart(&self, commit: String, pack: Vec<u8>) -> Result<Apart, GitError> {
        let apart = Apart {
            commit,
            pack,
            repository: self.clone(),
            folder: self.new_folder()?,
        };
        std::fs::create_dir(&apart.folder)?;
        apart
            .unpack(Some(&apart.folder))
            .map_err(|error| match error {
                GitError::Process { message, .. } => GitError::NotTaken(message),
                error => error,
            })?;
        Ok(apart)
    }
}

/// A commit with another's files.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Taken {
    /// Whose files it has.
    pub other: String,
    /// What is different in it: the content of files at the root.
    pub edits: Vec<(String, String)>,
    /// What it says of itself.
    pub message: Message,
}

impl Repository {
    /// Makes commits with others' files, apart. With `onto`, a chain: each is a merge whose first parent is the one before
    /// (`onto` for the first) and whose second is the other. Without, each stands on its other, and is the other where
    /// nothing differs. Returns their ids in the same order.
    pub fn taken_apart(
        &self,
        onto: Option<&str>,
        steps: &[Taken],
    ) -> Result<(Apart, Vec<String>), GitError> {
        let repository = self.library()?;
        let odb = repository.odb()?;
        let _memory = odb.add_new_mempack_backend(1000)?;
        let mut pack = repository.packbuilder()?;
        let mut before = onto
            .map(|id| repository.find_commit(git2::Oid::from_str(id)?))
            .transpose()?;
        let mut commits = Vec::new();
        for step in steps {
            let other = repository.find_commit(git2::Oid::from_str(&step.other)?)?;
            let base = other.tree()?;
            let mut builder = TreeUpdateBuilder::new();
            for (path, content) in &step.edits {
                let blob = repository.blob(content.as_bytes())?;
                pack.insert_object(blob, None)?;
                builder.upsert(path.as_str(), blob, git2::FileMode::Blob);
            }
            let tree = builder.create_updated(&repository, &base)?;
            if before.is_none() && tree == base.id() {
                commits.push(step.other.clone());
                continue;
            }
            if tree != base.id() {
                pack.insert_object(tree, None)?;
            }
            let message = &step.message;
            let time = git2::Time::new(message.seconds, 0);
            let committer = git2::Signature::new("Cuebook", SERVER_EMAIL, &time)?;
            // what other programs wrote may be no name to libgit2
            let author = git2::Signature::new(&message.author, &message.email, &time)
                .unwrap_or_else(|_| committer.clone());
            let parents: Vec<&git2::Commit<'_>> = before.iter().chain([&other]).collect();
            let tree = repository.find_tree(tree)?;
            let commit =
                repository.commit(None, &author, &committer, &message.text, &tree, &parents)?;
            pack.insert_object(commit, None)?;
            commits.push(commit.to_string());
            if before.is_some() {
                before = Some(repository.find_commit(commit)?);
            }
        }
        let mut packed = git2::Buf::new();
        if pack.object_count() > 0 {
            pack.write_buf(&mut packed)?;
        }
        let apart = Apart {
            commit: commits.last().cloned().unwrap_or_default(),
            pack: packed.to_vec(),
            repository: self.clone(),
            folder: self.new_folder()?,
        };
        std::fs::create_dir(&apart.folder)?;
        apart.unpack(Some(&apart.folder))?;
        Ok((apart, commits))
    }

    /// Where the next objects go that are not accepted yet.
    fn new_folder(&self) -> Result<PathBuf, GitError> {
        Ok(self.path().join("objects").join(format!(
            "tmp_objdir-incoming-cuebook-{:016x}",
            getrandom::u64().map_err(std::io::Error::other)?
        )))
    }
}

/// The trees that edits have made: the root, and the folders of the edited paths where they differ.
fn new_trees(base: &git2::Tree<'_>, made: &git2::Tree<'_>, edits: &[Edit]) -> BTreeSet<git2::Oid> {
    let folder = |tree: &git2::Tree<'_>, path: &str| {
        let entry = tree.get_path(Path::new(path)).ok()?;
        (entry.kind() == Some(git2::ObjectType::Tree)).then(|| entry.id())
    };
    let mut out = BTreeSet::from([made.id()]);
    for edit in edits {
        for (end, _) in edit.path.match_indices('/') {
            let path = &edit.path[..end];
            if let Some(id) = folder(made, path)
                && folder(base, path) != Some(id)
            {
                out.insert(id);
            }
        }
    }
    out
}

/// What is where a file is to be: a folder, or a file in the place of a folder of its path.
fn in_the_way(tree: &git2::Tree<'_>, path: &str) -> Option<String> {
    let is = |path: &str, folder: bool| {
        tree.get_path(Path::new(path))
            .is_ok_and(|entry| (entry.kind() == Some(git2::ObjectType::Tree)) == folder)
    };
    if is(path, true) {
        return Some(path.to_owned());
    }
    path.match_indices('/')
        .map(|(end, _)| &path[..end])
        .find(|folder| is(folder, false))
        .map(str::to_owned)
}

impl Apart {
    /// The folder of its objects, as the quarantine of a push.
    pub fn objects(&self) -> &Path {
        &self.folder
    }

    /// Writes its objects into the repository, on disk when this returns.
    pub fn keep(&self) -> Result<(), GitError> {
        self.unpack(None)
    }

    fn unpack(&self, apart: Option<&Path>) -> Result<(), GitError> {
        if self.pack.is_empty() {
            return Ok(());
        }
        // what may still be refused need not outlive a power cut
        let fsync = [("core.fsync", "none")];
        let mut command = git_with(
            self.repository.path(),
            if apart.is_some() { &fsync } else { &[] },
        );
        if let Some(folder) = apart {
            command.env("GIT_OBJECT_DIRECTORY", folder).env(
                "GIT_ALTERNATE_OBJECT_DIRECTORIES",
                self.repository.path().join("objects"),
            );
        }
        command.args(["unpack-objects", "-q", "--strict"]);
        run(command, "unpack-objects", &self.pack).map(drop)
    }
}

impl Drop for Apart {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.folder);
    }
}
