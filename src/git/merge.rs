//! Merges in memory, and what a range of commits touches. A merge is kept apart until it is accepted, as a change is.

use std::collections::{BTreeMap, BTreeSet, HashSet};

use super::commit::{Apart, Edit, Message};
use super::{GitError, Repository, SERVER_EMAIL};

/// A file that both sides have changed; none where a side has no such file.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Conflict {
    /// Its path, from the root.
    pub path: String,
    /// As it was where the two parted.
    pub base: Option<Vec<u8>>,
    /// As the first parent has it.
    pub first: Option<Vec<u8>>,
    /// As the other has it.
    pub other: Option<Vec<u8>>,
}

/// What became of a merge.
#[derive(Debug)]
pub enum Merged {
    /// A merge commit, apart.
    Made(Apart),
    /// Both sides have changed the same lines, or one has removed what the other has changed.
    Conflicts(Vec<Conflict>),
    /// The first parent has all of the other already.
    Nothing,
}

/// The merge of a proposal, as the history of main tells it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct MergeFound {
    /// The merge commit.
    pub commit: String,
    /// Its author's name.
    pub author: String,
    /// Its subject.
    pub subject: String,
    /// When, in seconds since 1970.
    pub seconds: i64,
}

/// Most files that are told as conflicts.
const CONFLICTS: usize = 200;

impl Repository {
    /// Merges `other` into `first`, apart from the repository's objects. `resolved` says what files with conflicts, or
    /// others, are to hold.
    pub fn merge_apart(
        &self,
        first: &str,
        other: &str,
        resolved: &[Edit],
        message: &Message,
    ) -> Result<Merged, GitError> {
        let stored = self.library()?;
        let repository = self.library()?;
        let odb = repository.odb()?;
        let _memory = odb.add_new_mempack_backend(1000)?;
        let (first, other) = (
            repository.find_commit(git2::Oid::from_str(first)?)?,
            repository.find_commit(git2::Oid::from_str(other)?)?,
        );
        if first.id() == other.id() || repository.graph_descendant_of(first.id(), other.id())? {
            return Ok(Merged::Nothing);
        }
        let mut index = repository.merge_commits(&first, &other, None)?;
        for edit in resolved {
            let path = std::path::Path::new(&edit.path);
            let mode = index
                .get_path(path, 0)
                .map_or(0o100_644, |entry| entry.mode);
            // none of these need be there
            let _ = index.conflict_remove(path);
            let _ = index.remove(path, 0);
            if let Some(content) = &edit.content {
                let id = repository.blob(content)?;
                index
                    .add(&entry(&edit.path, id, mode))
                    .map_err(|error| GitError::NotTaken(error.message().to_owned()))?;
            }
        }
        if index.has_conflicts() {
            return Ok(Merged::Conflicts(conflicts(&repository, &index)?));
        }
        let tree = index
            .write_tree_to(&repository)
            .map_err(|error| GitError::NotTaken(error.message().to_owned()))?;
        let tree = repository.find_tree(tree)?;
        let time = git2::Time::new(message.seconds, 0);
        let author = git2::Signature::new(&message.author, &message.email, &time)?;
        let committer = git2::Signature::new("Cuebook", SERVER_EMAIL, &time)?;
        let commit = repository.commit(
            None,
            &author,
            &committer,
            &message.text,
            &tree,
            &[&first, &other],
        )?;
        let mut pack = repository.packbuilder()?;
        pack.insert_object(commit, None)?;
        let stored = stored.odb()?;
        let mut next = vec![tree.id()];
        while let Some(id) = next.pop() {
            if stored.exists(id) {
                continue;
            }
            pack.insert_object(id, None)?;
            for entry in &repository.find_tree(id)? {
                match entry.kind() {
                    Some(git2::ObjectType::Tree) => next.push(entry.id()),
                    Some(git2::ObjectType::Blob) if !stored.exists(entry.id()) => {
                        pack.insert_object(entry.id(), None)?;
                    }
                    _ => {}
                }
            }
        }
        let mut packed = git2::Buf::new();
        pack.write_buf(&mut packed)?;
        Ok(Merged::Made(
            self.apart(commit.to_string(), packed.to_vec())?,
        ))
    }

    /// What takes a commit back out of `tip`, against its first parent: edits of files at the tip, or what conflicts.
    pub fn reverting(
        &self,
        tip: &str,
        commit: &str,
    ) -> Result<Result<Vec<Edit>, Vec<Conflict>>, GitError> {
        let repository = self.library()?;
        let odb = repository.odb()?;
        let _memory = odb.add_new_mempack_backend(1000)?;
        let (tip, commit) = (
            repository.find_commit(git2::Oid::from_str(tip)?)?,
            repository.find_commit(git2::Oid::from_str(commit)?)?,
        );
        let mainline = u32::from(commit.parent_count() > 1);
        let mut index = repository.revert_commit(&commit, &tip, mainline, None)?;
        if index.has_conflicts() {
            return Ok(Err(conflicts(&repository, &index)?));
        }
        let made = repository.find_tree(index.write_tree_to(&repository)?)?;
        let diff = repository.diff_tree_to_tree(Some(&tip.tree()?), Some(&made), None)?;
        let mut edits = Vec::new();
        for delta in diff.deltas() {
            let Some(path) = delta.new_file().path().and_then(|path| path.to_str()) else {
                return Err(GitError::NotTaken(
                    "a path that is not UTF-8 cannot be edited here".into(),
                ));
            };
            let gone = delta.status() == git2::Delta::Deleted;
            let content = (!gone)
                .then(|| repository.find_blob(delta.new_file().id()))
                .transpose()?
                .map(|blob| blob.content().to_vec());
            edits.push(Edit {
                path: path.to_owned(),
                content,
            });
        }
        Ok(Ok(edits))
    }

    /// Where two commits parted; none where they have nothing in common.
    pub fn merge_base(&self, one: &str, other: &str) -> Result<Option<String>, GitError> {
        let repository = self.library()?;
        match repository.merge_base(git2::Oid::from_str(one)?, git2::Oid::from_str(other)?) {
            Ok(id) => Ok(Some(id.to_string())),
            Err(error) if error.code() == git2::ErrorCode::NotFound => Ok(None),
            Err(error) => Err(error.into()),
        }
    }

    /// Every path that a commit after `old` touches on the way to `new`, sorted, also one that is as before in the end:
    /// each commit against its parent, a merge where it differs from all of its parents, and where `new` is to be the
    /// tip of main, each commit of its first-parent chain against the one before. Paths that are not UTF-8 are shown
    /// lossily.
    pub fn touched(
        &self,
        old: &str,
        new: &str,
        for_main: bool,
    ) -> Result<BTreeSet<String>, GitError> {
        let blobs = self.blobs()?;
        let repository = self.library()?;
        let mut walk = repository.revwalk()?;
        walk.push(git2::Oid::from_str(new)?)?;
        walk.hide(git2::Oid::from_str(old)?)?;
        let all: HashSet<git2::Oid> = walk.collect::<Result<_, _>>()?;
        let mut chain = HashSet::new();
        let mut at = git2::Oid::from_str(new)?;
        while for_main && all.contains(&at) {
            chain.insert(at);
            match repository.find_commit(at)?.parent_id(0) {
                Ok(parent) => at = parent,
                Err(_) => break,
            }
        }
        let between = |from: git2::Oid, to: git2::Oid| -> Result<BTreeSet<String>, GitError> {
            let changes = blobs.changes(&from.to_string(), &to.to_string())?;
            let paths = changes.into_iter().flat_map(|change| {
                [change.before, change.after]
                    .into_iter()
                    .flatten()
                    .map(|entry| entry.path)
            });
            Ok(paths
                .map(|path| String::from_utf8_lossy(&path).into_owned())
                .collect())
        };
        let mut out = BTreeSet::new();
        for id in all {
            let commit = repository.find_commit(id)?;
            let mut parents = commit.parent_ids();
            let Some(first) = parents.next() else {
                let files = self.tree(&id.to_string())?;
                out.extend(
                    files
                        .iter()
                        .map(|f| String::from_utf8_lossy(&f.path).into_owned()),
                );
                continue;
            };
            let mut paths = between(first, id)?;
            if !chain.contains(&id) {
                for parent in parents {
                    let others = between(parent, id)?;
                    paths.retain(|path| others.contains(path));
                }
            }
            out.extend(paths);
        }
        Ok(out)
    }

    /// Names and addresses of the authors of the commits that `tip` has and `base` does not, each once.
    pub fn authors(&self, tip: &str, base: &str) -> Result<BTreeSet<(String, String)>, GitError> {
        let repository = self.library()?;
        let mut walk = repository.revwalk()?;
        walk.push(git2::Oid::from_str(tip)?)?;
        walk.hide(git2::Oid::from_str(base)?)?;
        let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
        walk.map(|id| {
            let commit = repository.find_commit(id?)?;
            let author = commit.author();
            Ok((text(author.name_bytes()), text(author.email_bytes())))
        })
        .collect()
    }

    /// The merges of proposals on the first-parent chain of a commit, by number, as far as `most` commits go: what has a
    /// line `Proposal: <number>` and the head of that proposal, as `heads` says, as its second parent.
    pub fn merges_of(
        &self,
        tip: &str,
        heads: &BTreeMap<i64, String>,
        most: usize,
    ) -> Result<BTreeMap<i64, MergeFound>, GitError> {
        let repository = self.library()?;
        let mut out = BTreeMap::new();
        let mut at = Some(git2::Oid::from_str(tip)?);
        for _ in 0..most {
            let Some(id) = at.filter(|_| out.len() < heads.len()) else {
                break;
            };
            let commit = repository.find_commit(id)?;
            at = commit.parent_id(0).ok();
            let Ok(second) = commit.parent_id(1) else {
                continue;
            };
            let message = String::from_utf8_lossy(commit.message_bytes()).into_owned();
            let Some(number) = trailer(&message, "Proposal").and_then(|text| text.parse().ok())
            else {
                continue;
            };
            if heads
                .get(&number)
                .is_some_and(|head| *head == second.to_string())
            {
                out.entry(number).or_insert_with(|| MergeFound {
                    commit: id.to_string(),
                    author: String::from_utf8_lossy(commit.author().name_bytes()).into_owned(),
                    subject: message.lines().next().unwrap_or_default().to_owned(),
                    seconds: commit.time().seconds(),
                });
            }
        }
        Ok(out)
    }
}

/// A trailer of a commit's message: what stands after its name in the last paragraph.
pub fn trailer<'a>(message: &'a str, name: &str) -> Option<&'a str> {
    let last = message.trim_end().rsplit("\n\n").next()?;
    last.lines().find_map(|line| {
        let (key, value) = line.split_once(':')?;
        (key == name).then(|| value.trim())
    })
}

fn entry(path: &str, id: git2::Oid, mode: u32) -> git2::IndexEntry {
    git2::IndexEntry {
        ctime: git2::IndexTime::new(0, 0),
        mtime: git2::IndexTime::new(0, 0),
        dev: 0,
        ino: 0,
        mode,
        uid: 0,
        gid: 0,
        file_size: 0,
        id,
        flags: 0,
        flags_extended: 0,
        path: path.as_bytes().to_vec(),
    }
}

fn conflicts(
    repository: &git2::Repository,
    index: &git2::Index,
) -> Result<Vec<Conflict>, GitError> {
    let text = |entry: &Option<git2::IndexEntry>| -> Result<Option<Vec<u8>>, GitError> {
        match entry {
            Some(entry) => Ok(Some(repository.find_blob(entry.id)?.content().to_vec())),
            None => Ok(None),
        }
    };
    let mut out = Vec::new();
    for conflict in index.conflicts()?.take(CONFLICTS) {
        let conflict = conflict?;
        let named = [&conflict.our, &conflict.their, &conflict.ancestor];
        let Some(path) = named
            .into_iter()
            .flatten()
            .map(|entry| entry.path.clone())
            .next()
        else {
            continue;
        };
        out.push(Conflict {
            path: String::from_utf8_lossy(&path).into_owned(),
            base: text(&conflict.ancestor)?,
            first: text(&conflict.our)?,
            other: text(&conflict.their)?,
        });
    }
    out.sort_by(|a, b| a.path.cmp(&b.path));
    Ok(out)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn trailers_are_of_the_last_paragraph() {
        let message =
            "Merge proposal 7: Proposal: 9\n\nProposal: 8\n\nProposal: 7\nApproved-by: mina\n";
        assert_eq!(trailer(message, "Proposal"), Some("7"));
        assert_eq!(trailer(message, "Approved-by"), Some("mina"));
        assert_eq!(trailer("Proposal 7", "Proposal"), None);
    }
}
