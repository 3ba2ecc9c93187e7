//! Versions: a prompt's own numbers, counted along main's first-parent history.
//!
//! Pure: takes commits with the files they change, and gives numbers. One way counts, whether it begins at the first
//! commit or goes on from where it was; times and names of people never matter. The rules are in
//! `docs/decisions/0006-versions.md`, and [`RULE`] is raised when one of them changes.

pub mod facts;
mod state;

use std::collections::BTreeSet;
use std::sync::Arc;

use rpds::{HashTrieMapSync, VectorSync};

pub use facts::{Facts, Kind, kind};
pub use state::{State, content};

/// Which rules the numbers follow; numbers that were counted by others are counted again.
pub const RULE: i64 = 1;

/// A git object id (SHA-1).
pub type Id = [u8; 20];

/// Longest name of an author that is kept, in characters.
const MAX_AUTHOR: usize = 100;
/// Longest first line of a message that is kept, in characters.
const MAX_SUBJECT: usize = 200;

/// What a commit says of itself.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Commit {
    /// Its id.
    pub id: Id,
    /// When it was committed, in seconds since 1970; shown, and never compared.
    pub seconds: i64,
    /// The author's name, at most 100 characters.
    pub author: Arc<str>,
    /// The first line of the message, at most 200 characters.
    pub subject: Arc<str>,
}

impl Commit {
    /// A commit whose texts are cut to what is kept.
    pub fn new(id: Id, seconds: i64, author: &str, subject: &str) -> Self {
        let cut = |text: &str, most: usize| -> Arc<str> {
            text.char_indices()
                .nth(most)
                .map_or(text, |(end, _)| &text[..end])
                .into()
        };
        Self {
            id,
            seconds,
            author: cut(author, MAX_AUTHOR),
            subject: cut(subject, MAX_SUBJECT),
        }
    }

    /// The id as 40 lower-case hex digits.
    pub fn hex(&self) -> Arc<str> {
        crate::prompt::parse::hex(&self.id)
    }
}

/// A file that a commit has otherwise than its first parent.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Change {
    /// Path from the root.
    pub path: Arc<str>,
    /// The blob it has now; none where it is gone or is no regular file.
    pub after: Option<Id>,
}

/// A commit of the first-parent history with what it changes.
#[derive(Debug, Clone)]
pub struct Step {
    /// The commit.
    pub commit: Arc<Commit>,
    /// Every file it changes, or at least those that a number can rest on ([`kind`]).
    pub changes: Vec<Change>,
}

/// One version of a prompt; its number is its place in [`Numbered::versions`], from 1.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Version {
    /// The commit that made it.
    pub commit: Arc<Commit>,
    /// Where the prompt was in that commit.
    pub path: Arc<str>,
    /// A hash over the blobs it is made of.
    pub content: Id,
}

/// The versions of one name.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Numbered {
    /// Oldest first.
    pub versions: Vec<Version>,
    /// What the next state is compared with; none when the prompt is gone, so that its return takes a number.
    pub last: Option<Id>,
}

impl Numbered {
    /// The version of a number.
    pub fn get(&self, number: u64) -> Option<&Version> {
        let index = usize::try_from(number).ok()?.checked_sub(1)?;
        self.versions.get(index)
    }

    /// The number of the newest version; 0 where there is none.
    pub fn latest(&self) -> u64 {
        self.versions.len() as u64
    }
}

/// A commit at which `labels.toml` changed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LabelsAt {
    /// The commit.
    pub commit: Arc<Commit>,
    /// The file's blob; none where it went away.
    pub blob: Option<Id>,
}

/// The versions of every prompt up to one commit. A copy shares everything with it.
#[derive(Debug, Clone, Default)]
pub struct History {
    tip: Option<Id>,
    names: HashTrieMapSync<Arc<str>, Arc<Numbered>>,
    labels: VectorSync<LabelsAt>,
    /// Where it was begun; what goes on from it has the same.
    begun: Arc<Begun>,
    /// Every change of a name since then, with its commit.
    changes: VectorSync<(Arc<str>, Id)>,
}

/// Tells histories apart that were begun by themselves.
#[derive(Debug, Default)]
struct Begun {
    /// What has no size may share its place.
    _place: u8,
}

impl PartialEq for History {
    fn eq(&self, other: &Self) -> bool {
        self.tip == other.tip
            && self.names == other.names
            && self.labels.iter().eq(other.labels.iter())
    }
}

impl Eq for History {}

impl History {
    /// One that was kept: what it counted, to go on from.
    pub fn kept(
        tip: Id,
        names: impl IntoIterator<Item = (Arc<str>, Numbered)>,
        labels: impl IntoIterator<Item = LabelsAt>,
    ) -> Self {
        Self {
            tip: Some(tip),
            names: names
                .into_iter()
                .map(|(name, numbered)| (name, Arc::new(numbered)))
                .collect(),
            labels: labels.into_iter().collect(),
            ..Self::default()
        }
    }

    fn set(&mut self, name: &Arc<str>, numbered: Arc<Numbered>, commit: Id) {
        self.names.insert_mut(name.clone(), numbered);
        self.changes.push_back_mut((name.clone(), commit));
    }

    /// The names that changed since another one from which this one goes on; none where it does not. Costs what changed.
    pub fn changed_since(&self, before: &Self) -> Option<BTreeSet<&Arc<str>>> {
        let (known, labels) = (before.changes.len(), before.labels.len());
        let goes_on = Arc::ptr_eq(&self.begun, &before.begun)
            && known <= self.changes.len()
            && labels <= self.labels.len()
            // a commit says all that was before it
            && (known == 0 || self.changes.get(known - 1) == before.changes.last())
            && (labels == 0 || self.labels.get(labels - 1) == before.labels.last());
        goes_on.then(|| {
            let changes = (known..self.changes.len()).filter_map(|at| self.changes.get(at));
            changes.map(|(name, _)| name).collect()
        })
    }

    /// The commit it reaches; none before the first.
    pub fn tip(&self) -> Option<Id> {
        self.tip
    }

    /// The versions of a name, whether or not the prompt is still there.
    pub fn of(&self, name: &str) -> Option<&Arc<Numbered>> {
        self.names.get(name)
    }

    /// One version of a name.
    pub fn version(&self, name: &str, number: u64) -> Option<&Version> {
        self.of(name)?.get(number)
    }

    /// The number of a name's newest version, when its state is one: none while what is there does not parse.
    pub fn latest(&self, name: &str) -> Option<u64> {
        self.of(name).map(|n| n.latest()).filter(|n| *n > 0)
    }

    /// Every name that ever had a version or waits for one, in no order.
    pub fn names(&self) -> impl Iterator<Item = (&Arc<str>, &Arc<Numbered>)> {
        self.names.iter()
    }

    /// How many names there are.
    pub fn len(&self) -> usize {
        self.names.size()
    }

    /// Whether there is none.
    pub fn is_empty(&self) -> bool {
        self.names.is_empty()
    }

    /// How many versions there are.
    pub fn versions(&self) -> usize {
        self.names.values().map(|n| n.versions.len()).sum()
    }

    /// How many commits just before one of those at which the labels changed are of the same second.
    pub fn of_the_same_second(&self, position: usize) -> usize {
        let seconds = |at: usize| self.labels.get(at).map(|at| at.commit.seconds);
        let before = (0..position).rev();
        before
            .take_while(|at| seconds(*at) == seconds(position))
            .count()
    }

    /// Commits at which the labels changed, oldest first.
    pub fn labels(&self) -> impl DoubleEndedIterator<Item = &LabelsAt> + ExactSizeIterator {
        self.labels.iter()
    }
}
