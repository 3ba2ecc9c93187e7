//! The files of one commit as the numbers see them, and the step to the next commit.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use rpds::{HashTrieMapSync, HashTrieSetSync, RedBlackTreeMapSync};
use sha2::{Digest, Sha256};

use super::facts::{Facts, Kind, kind};
use super::{Change, History, Id, LabelsAt, Numbered, Step, Version};

/// A file: its blob and what that says.
#[derive(Debug, Clone)]
struct Piece {
    blob: Id,
    facts: Arc<Facts>,
}

/// Files by the name they give, each name's by path: more than one may claim a name.
type Pieces = HashTrieMapSync<Arc<str>, RedBlackTreeMapSync<Arc<str>, Piece>>;

/// What is read of a file: its kind, and the blob.
pub(super) type Reading<'a, E> = &'a mut dyn FnMut(&Kind, Id) -> Result<Arc<Facts>, E>;

/// The files of the commit that a [`History`] reaches. A copy shares everything with it.
#[derive(Debug, Clone, Default)]
pub struct State {
    prompts: Pieces,
    partials: Pieces,
    /// Prompts by the name of each partial that their text reaches, whether or not it is there.
    users: HashTrieMapSync<Arc<str>, HashTrieSetSync<Arc<str>>>,
    /// The other way round.
    reached: HashTrieMapSync<Arc<str>, Arc<BTreeSet<Arc<str>>>>,
}

/// The state of a prompt at a commit.
enum Effective {
    /// There is no file.
    Gone,
    /// There is one that cannot be read, includes what cannot be read or is not there, or shares its name.
    Unreadable,
    /// It is where the path says, and this is the hash of what it is made of.
    Content(Arc<str>, Id),
}

/// A hash over the blobs that a prompt is made of: its own, and those of the partials it reaches by name.
pub fn content(prompt: Id, partials: &BTreeMap<&str, Id>) -> Id {
    let mut hash = Sha256::new();
    hash.update(prompt);
    for (name, blob) in partials {
        hash.update(name.as_bytes());
        hash.update([0]);
        hash.update(blob);
    }
    let mut content = [0; 20];
    content.copy_from_slice(&hash.finalize()[..20]);
    content
}

impl State {
    /// The state of a commit from all of its files.
    pub fn of<E>(
        files: impl IntoIterator<Item = (Arc<str>, Id)>,
        read: Reading<'_, E>,
    ) -> Result<Self, E> {
        let mut state = Self::default();
        for (path, blob) in files {
            if let Some(kind) = kind(&path) {
                state.put(&kind, &path, Some(blob), read)?;
            }
        }
        let names: Vec<Arc<str>> = state.prompts.keys().cloned().collect();
        for name in names {
            state.reach(&name);
        }
        Ok(state)
    }

    fn put<E>(
        &mut self,
        kind: &Kind,
        path: &Arc<str>,
        blob: Option<Id>,
        read: Reading<'_, E>,
    ) -> Result<(), E> {
        let (pieces, name) = match kind {
            Kind::Prompt(name) => (&mut self.prompts, name),
            Kind::Partial(name) => (&mut self.partials, name),
            Kind::Labels => return Ok(()),
        };
        let mut of_name = pieces.get(name).cloned().unwrap_or_default();
        match blob {
            Some(blob) => {
                let facts = read(kind, blob)?;
                of_name.insert_mut(path.clone(), Piece { blob, facts });
            }
            None => {
                of_name.remove_mut(path);
            }
        }
        if of_name.is_empty() {
            pieces.remove_mut(name);
        } else {
            pieces.insert_mut(name.clone(), of_name);
        }
        Ok(())
    }

    /// Goes one commit further and numbers what it changed; costs what changed and what includes it.
    pub fn step<E>(
        &mut self,
        history: &mut History,
        step: &Step,
        read: Reading<'_, E>,
    ) -> Result<(), E> {
        let before = self.prompts.clone();
        let mut names: BTreeSet<Arc<str>> = BTreeSet::new();
        let mut partials: BTreeSet<Arc<str>> = BTreeSet::new();
        for Change { path, after } in &step.changes {
            let Some(kind) = kind(path) else { continue };
            self.put(&kind, path, *after, read)?;
            match kind {
                Kind::Prompt(name) => {
                    names.insert(name);
                }
                Kind::Partial(name) => {
                    partials.insert(name);
                }
                Kind::Labels => history.labels.push_back_mut(LabelsAt {
                    commit: step.commit.clone(),
                    blob: *after,
                }),
            }
        }
        self.renamed(history, &before, &names, step);
        for partial in &partials {
            let users = self.users.get(partial);
            names.extend(users.into_iter().flat_map(HashTrieSetSync::iter).cloned());
        }
        for name in &names {
            self.number(history, name, step);
        }
        history.tip = Some(step.commit.id);
        Ok(())
    }

    /// A name without any history that comes with the bytes of one that goes takes that one's versions along.
    fn renamed(
        &self,
        history: &mut History,
        before: &Pieces,
        names: &BTreeSet<Arc<str>>,
        step: &Step,
    ) {
        let blobs = |pieces: &Pieces, name: &Arc<str>| -> Vec<Id> {
            let of_name = pieces.get(name);
            let pieces = of_name.into_iter().flat_map(|pieces| pieces.values());
            pieces.map(|piece| piece.blob).collect()
        };
        let is_there = |pieces: &Pieces, name: &Arc<str>| pieces.contains_key(name);
        let mut gone: BTreeMap<Id, Vec<&Arc<str>>> = BTreeMap::new();
        for name in names.iter().rev() {
            if is_there(before, name) && !is_there(&self.prompts, name) {
                for blob in blobs(before, name) {
                    gone.entry(blob).or_default().push(name);
                }
            }
        }
        if gone.is_empty() {
            return;
        }
        let mut taken = BTreeSet::new();
        for name in names {
            let came = is_there(&self.prompts, name) && !is_there(before, name);
            if !came || history.names.contains_key(name) {
                continue;
            }
            let from = blobs(&self.prompts, name).iter().find_map(|blob| {
                let candidates = gone.get_mut(blob)?;
                while let Some(candidate) = candidates.pop() {
                    if !taken.contains(candidate) && history.names.contains_key(candidate) {
                        return Some(candidate.clone());
                    }
                }
                None
            });
            if let Some(from) = from
                && let Some(numbered) = history.names.get(&from).cloned()
            {
                history.set(name, numbered, step.commit.id);
                taken.insert(from);
            }
        }
    }

    fn number(&mut self, history: &mut History, name: &Arc<str>, step: &Step) {
        self.reach(name);
        match self.effective(name) {
            Effective::Unreadable => {}
            Effective::Gone => {
                if let Some(numbered) = history.names.get(name)
                    && numbered.last.is_some()
                {
                    let gone = Numbered {
                        last: None,
                        ..(**numbered).clone()
                    };
                    history.set(name, Arc::new(gone), step.commit.id);
                }
            }
            Effective::Content(path, content) => {
                let known = history.names.get_mut(name);
                if known.as_ref().is_some_and(|n| n.last == Some(content)) {
                    return;
                }
                let version = Version {
                    commit: step.commit.clone(),
                    path,
                    content,
                };
                if let Some(numbered) = known {
                    let numbered = Arc::make_mut(numbered);
                    numbered.versions.push(version);
                    numbered.last = Some(content);
                    let change = (name.clone(), step.commit.id);
                    history.changes.push_back_mut(change);
                } else {
                    let numbered = Numbered {
                        versions: vec![version],
                        last: Some(content),
                    };
                    history.set(name, Arc::new(numbered), step.commit.id);
                }
            }
        }
    }

    /// The only file of a name.
    fn only(pieces: &Pieces, name: &str) -> Option<(Arc<str>, Piece)> {
        let of_name = pieces.get(name)?;
        let (path, piece) = of_name.first()?;
        (of_name.size() == 1).then(|| (path.clone(), piece.clone()))
    }

    /// The file that `include` finds: the first of those that have the name in one Unicode form or another.
    fn partial(&self, name: &str) -> Option<&Piece> {
        self.partials.get(name)?.first().map(|(_, piece)| piece)
    }

    fn effective(&self, name: &Arc<str>) -> Effective {
        if !self.prompts.contains_key(name) {
            return Effective::Gone;
        }
        let Some((path, piece)) = Self::only(&self.prompts, name) else {
            return Effective::Unreadable;
        };
        if !piece.facts.sound {
            return Effective::Unreadable;
        }
        let mut hash = Sha256::new();
        hash.update(piece.blob);
        for partial in self
            .reached
            .get(name)
            .into_iter()
            .flat_map(|all| all.iter())
        {
            let Some(piece) = self.partial(partial).filter(|piece| piece.facts.sound) else {
                return Effective::Unreadable;
            };
            hash.update(partial.as_bytes());
            hash.update([0]);
            hash.update(piece.blob);
        }
        let mut content = [0; 20];
        content.copy_from_slice(&hash.finalize()[..20]);
        Effective::Content(path, content)
    }

    /// Notes which partials a prompt's text reaches now.
    fn reach(&mut self, name: &Arc<str>) {
        let mut now: BTreeSet<Arc<str>> = BTreeSet::new();
        let mut todo: Vec<Arc<str>> = Vec::new();
        if let Some(of_name) = self.prompts.get(name) {
            for piece in of_name.values() {
                todo.extend(piece.facts.includes.iter().cloned());
            }
        }
        while let Some(partial) = todo.pop() {
            if now.contains(&partial) {
                continue;
            }
            if let Some(piece) = self.partial(&partial) {
                todo.extend(piece.facts.includes.iter().cloned());
            }
            now.insert(partial);
        }
        let before = self.reached.get(name).cloned().unwrap_or_default();
        if *before == now {
            return;
        }
        for partial in before.difference(&now) {
            if let Some(users) = self.users.get_mut(partial) {
                users.remove_mut(name);
                if users.is_empty() {
                    self.users.remove_mut(partial);
                }
            }
        }
        for partial in now.difference(&before) {
            if let Some(users) = self.users.get_mut(partial) {
                users.insert_mut(name.clone());
            } else {
                let mut users = HashTrieSetSync::new_sync();
                users.insert_mut(name.clone());
                self.users.insert_mut(partial.clone(), users);
            }
        }
        if now.is_empty() {
            self.reached.remove_mut(name);
        } else {
            self.reached.insert_mut(name.clone(), Arc::new(now));
        }
    }
}
