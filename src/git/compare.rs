//! What differs between the trees of two commits: trees with the same id are never entered.
//!
//! Tree objects are read as they are stored: libgit2's `diff_tree_to_tree` expands everything and costs forty times as
//! much.

use std::cmp::Ordering;

use git2::{ObjectType, Odb, Oid};

use super::{Blobs, GitError, MAX_DEPTH, Mode, TreeEntry};

/// A file that two commits have differently.
#[derive(Debug, Clone)]
pub struct TreeChange {
    /// As it was; none where it is new.
    pub before: Option<TreeEntry>,
    /// As it is; none where it is gone.
    pub after: Option<TreeEntry>,
}

impl Blobs {
    /// Every file that differs between two commits. A file whose execute bit alone differs does not.
    pub fn changes(&self, old: &str, new: &str) -> Result<Vec<TreeChange>, GitError> {
        let repository = &self.repository;
        let tree = |commit: &str| -> Result<Oid, git2::Error> {
            Ok(repository.find_commit(Oid::from_str(commit)?)?.tree_id())
        };
        let (old, new) = (tree(old)?, tree(new)?);
        let mut compare = Compare {
            odb: repository.odb()?,
            path: Vec::new(),
            out: Vec::new(),
        };
        if old != new {
            compare.trees(old, new, 0)?;
        }
        Ok(compare.out)
    }
}

struct Compare<'r> {
    odb: Odb<'r>,
    path: Vec<u8>,
    out: Vec<TreeChange>,
}

/// An entry of a stored tree.
#[derive(Clone, Copy)]
struct Raw<'a> {
    /// Mode, name and id, as they are stored.
    bytes: &'a [u8],
    mode: u32,
    name: &'a [u8],
    id: &'a [u8],
}

impl Raw<'_> {
    fn is_tree(&self) -> bool {
        self.mode == 0o040_000
    }

    fn oid(&self) -> Result<Oid, git2::Error> {
        Oid::from_bytes(self.id)
    }

    fn mode(&self) -> Mode {
        match self.mode {
            0o040_000 => Mode::Deep,
            0o120_000 => Mode::Symlink,
            0o160_000 => Mode::Gitlink,
            _ => Mode::File,
        }
    }
}

/// Reads the entry a stored tree begins with, and gives what follows it.
fn split(data: &[u8]) -> Result<Option<(Raw<'_>, &[u8])>, GitError> {
    if data.is_empty() {
        return Ok(None);
    }
    let broken = || GitError::Library(git2::Error::from_str("a tree object is broken"));
    let space = data.iter().position(|b| *b == b' ').ok_or_else(broken)?;
    let name = data[space + 1..]
        .iter()
        .position(|b| *b == 0)
        .ok_or_else(broken)?;
    let end = space + 1 + name + 1 + 20;
    let mode = data[..space].iter().try_fold(0u32, |mode, digit| {
        let digit = digit.checked_sub(b'0').filter(|d| *d < 8)?;
        mode.checked_mul(8)?.checked_add(digit.into())
    });
    let (Some(bytes), Some(mode)) = (data.get(..end), mode) else {
        return Err(broken());
    };
    let entry = Raw {
        bytes,
        mode,
        name: &bytes[space + 1..space + 1 + name],
        id: &bytes[end - 20..],
    };
    Ok(Some((entry, &data[end..])))
}

/// The order in which git stores the entries of a tree: folders as if their names ended in a slash.
fn order(a: &Raw<'_>, b: &Raw<'_>) -> Ordering {
    let both = a.name.len().min(b.name.len());
    let next = |entry: &Raw<'_>| match entry.name.get(both) {
        Some(byte) => *byte,
        None if entry.is_tree() => b'/',
        None => 0,
    };
    a.name[..both]
        .cmp(&b.name[..both])
        .then_with(|| next(a).cmp(&next(b)))
        .then_with(|| a.name.len().cmp(&b.name.len()))
}

impl Compare<'_> {
    fn trees(&mut self, old: Oid, new: Oid, depth: usize) -> Result<(), GitError> {
        let (old, new) = (self.read(old)?, self.read(new)?);
        let (mut old, mut new) = (&*old, &*new);
        loop {
            match (split(old)?, split(new)?) {
                (None, None) => return Ok(()),
                (Some((a, rest_old)), Some((b, rest_new))) if a.bytes == b.bytes => {
                    (old, new) = (rest_old, rest_new);
                }
                (Some((a, rest_old)), Some((b, rest_new))) => match order(&a, &b) {
                    Ordering::Equal => {
                        self.differs(a, b, depth)?;
                        (old, new) = (rest_old, rest_new);
                    }
                    Ordering::Less => {
                        self.every(a, depth, &mut |before| gone(before))?;
                        old = rest_old;
                    }
                    Ordering::Greater => {
                        self.every(b, depth, &mut |after| came(after))?;
                        new = rest_new;
                    }
                },
                (Some((a, rest_old)), None) => {
                    self.every(a, depth, &mut |before| gone(before))?;
                    old = rest_old;
                }
                (None, Some((b, rest_new))) => {
                    self.every(b, depth, &mut |after| came(after))?;
                    new = rest_new;
                }
            }
        }
    }

    /// Two entries of the same name, both folders or neither.
    fn differs(&mut self, a: Raw<'_>, b: Raw<'_>, depth: usize) -> Result<(), GitError> {
        let length = self.enter(a.name);
        if a.is_tree() && depth < MAX_DEPTH {
            self.trees(a.oid()?, b.oid()?, depth + 1)?;
        } else if (a.id, a.mode()) != (b.id, b.mode()) {
            let (before, after) = (self.entry(a), self.entry(b));
            self.out.push(TreeChange {
                before: Some(before),
                after: Some(after),
            });
        }
        self.path.truncate(length);
        Ok(())
    }

    /// Every file at or below an entry.
    fn every(
        &mut self,
        entry: Raw<'_>,
        depth: usize,
        change: &mut dyn FnMut(TreeEntry) -> TreeChange,
    ) -> Result<(), GitError> {
        let length = self.enter(entry.name);
        if entry.is_tree() && depth < MAX_DEPTH {
            let data = self.read(entry.oid()?)?;
            let mut rest = &*data;
            while let Some((inner, after)) = split(rest)? {
                self.every(inner, depth + 1, change)?;
                rest = after;
            }
        } else {
            let entry = self.entry(entry);
            self.out.push(change(entry));
        }
        self.path.truncate(length);
        Ok(())
    }

    /// Appends a name to the path; gives the length to go back to.
    fn enter(&mut self, name: &[u8]) -> usize {
        let length = self.path.len();
        if length > 0 {
            self.path.push(b'/');
        }
        self.path.extend_from_slice(name);
        length
    }

    fn entry(&self, raw: Raw<'_>) -> TreeEntry {
        let mut id = [0; 20];
        id.copy_from_slice(raw.id);
        TreeEntry {
            path: self.path.clone(),
            id,
            mode: raw.mode(),
        }
    }

    fn read(&self, id: Oid) -> Result<Vec<u8>, GitError> {
        let object = self.odb.read(id)?;
        if object.kind() != ObjectType::Tree {
            return Err(git2::Error::from_str("a tree object is none").into());
        }
        Ok(object.data().to_vec())
    }
}

fn gone(before: TreeEntry) -> TreeChange {
    TreeChange {
        before: Some(before),
        after: None,
    }
}

fn came(after: TreeEntry) -> TreeChange {
    TreeChange {
        before: None,
        after: Some(after),
    }
}
