//! What happened to a prompt: its versions, and the labels that were put on them.

use std::collections::{BTreeMap, HashSet};
use std::sync::{Arc, LazyLock, Mutex, PoisonError};

use lru::LruCache;

use crate::catalog::library::labels;
use crate::git::{Blobs, GitError, Repository};
use crate::history::{Commit, History, Id};
use crate::prompt::source::Source;

/// Changes of the labels that are looked at; older ones are not shown.
pub const LOOKED_AT: usize = 2000;
/// Moves of labels that are kept, of all prompts.
const KEPT: usize = 200_000;

/// The entries of `labels.toml`: a version by prompt and label.
type Entries = BTreeMap<(Arc<str>, Arc<str>), u64>;
/// What differs between two of them. None where the second cannot be read.
type Differs = Option<Arc<[Moved]>>;

/// A label of a prompt that one file has otherwise than another.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Moved {
    /// The prompt.
    pub prompt: Arc<str>,
    /// The label.
    pub label: Arc<str>,
    /// The version it was on before; none where it was on none.
    pub before: Option<u64>,
    /// The version it is on since; none where it was taken off.
    pub number: Option<u64>,
}

/// What one file has otherwise than another: it is the same for every prompt and whoever asks, so it is read once.
struct Known {
    between: LruCache<(Option<Id>, Option<Id>), Differs>,
    moves: usize,
}

static KNOWN: LazyLock<Mutex<Known>> = LazyLock::new(|| {
    Mutex::new(Known {
        between: LruCache::unbounded(),
        moves: 0,
    })
});

impl Known {
    fn get(&mut self, key: (Option<Id>, Option<Id>)) -> Option<Differs> {
        self.between.get(&key).cloned()
    }

    fn put(&mut self, key: (Option<Id>, Option<Id>), differs: Differs) {
        // an entry costs something by itself
        let cost = |differs: &Differs| 1 + differs.as_ref().map_or(0, |moves| moves.len());
        self.moves += cost(&differs);
        if let Some((_, before)) = self.between.push(key, differs) {
            self.moves -= cost(&before);
        }
        while self.moves > KEPT
            && let Some((_, oldest)) = self.between.pop_lru()
        {
            self.moves -= cost(&oldest);
        }
    }
}

fn known() -> std::sync::MutexGuard<'static, Known> {
    KNOWN.lock().unwrap_or_else(PoisonError::into_inner)
}

/// The entries of a file; none where it cannot be read.
fn entries(
    blobs: &Blobs,
    blob: Option<Id>,
    words: &mut HashSet<Arc<str>>,
) -> Result<Option<Entries>, GitError> {
    let text = match blob {
        Some(blob) => blobs.read(blob)?,
        None => Vec::new(),
    };
    let Ok(source) = Source::decode(&"labels.toml".into(), &text) else {
        return Ok(None);
    };
    let mut word = |text: String| -> Arc<str> {
        if let Some(known) = words.get(&*text) {
            return known.clone();
        }
        let word: Arc<str> = text.into();
        words.insert(word.clone());
        word
    };
    let mut out = Entries::new();
    for (label, versions) in labels(&source, &mut Vec::new()) {
        let label = word(label);
        for (prompt, (number, _)) in versions {
            out.insert((word(prompt), label.clone()), number);
        }
    }
    Ok(Some(out))
}

fn differs(before: &Entries, now: &Entries) -> Arc<[Moved]> {
    let moved = |(prompt, label): &(Arc<str>, Arc<str>), before, number| Moved {
        prompt: prompt.clone(),
        label: label.clone(),
        before,
        number,
    };
    let off = before
        .iter()
        .filter(|(key, _)| !now.contains_key(*key))
        .map(|(key, was)| moved(key, Some(*was), None));
    let on = now
        .iter()
        .map(|(key, number)| moved(key, before.get(key).copied(), Some(*number)))
        .filter(|moved| moved.before != moved.number);
    off.chain(on).collect()
}

/// A label that was put on a version of a prompt, or taken off it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Move {
    /// The label.
    pub label: String,
    /// The version it was on before; none where it was on none.
    pub before: Option<u64>,
    /// The version it is on since; none where it was taken off.
    pub number: Option<u64>,
    /// The commit that did it.
    pub commit: Arc<Commit>,
}

/// The moves of labels on a prompt, oldest first. Blocks: reads `labels.toml` as each of the last 2,000 commits that
/// changed it had it.
pub fn moves(
    repository: &Repository,
    history: &History,
    name: &str,
) -> Result<Vec<Move>, GitError> {
    let mut out = Vec::new();
    walk(repository, history, LOOKED_AT, |_, commit, moved| {
        let of = moved.iter().filter(|moved| *moved.prompt == *name);
        out.extend(of.map(|moved| Move {
            label: moved.label.to_string(),
            before: moved.before,
            number: moved.number,
            commit: commit.clone(),
        }));
    })?;
    Ok(out)
}

/// Goes through what each of the last commits that changed `labels.toml` moved, so many of them, oldest first, with how many
/// such commits were before it. Blocks: reads that file as each of them had it.
pub fn walk(
    repository: &Repository,
    history: &History,
    most: usize,
    mut take: impl FnMut(usize, &Arc<Commit>, &[Moved]),
) -> Result<(), GitError> {
    let blobs = repository.blobs()?;
    let mut words = HashSet::new();
    // the last file that could be read, and what it says once that is needed
    let mut before: (Option<Id>, Option<Entries>) = (None, Some(Entries::new()));
    let skipped = history.labels().count().saturating_sub(most);
    // the one before the first that is shown says what that changed
    let first = skipped.saturating_sub(1);
    for (position, at) in history.labels().enumerate().skip(first) {
        let key = (before.0, at.blob);
        let found = known().get(key);
        let (differing, now) = if let Some(differing) = found {
            (differing, None)
        } else {
            let now = entries(&blobs, at.blob, &mut words)?;
            let mut differing = None;
            if let Some(now) = &now {
                if before.1.is_none() {
                    before.1 = entries(&blobs, before.0, &mut words)?;
                }
                differing = Some(differs(before.1.get_or_insert_default(), now));
            }
            known().put(key, differing.clone());
            (differing, now)
        };
        let Some(differing) = differing else {
            continue;
        };
        before = (at.blob, now);
        if position < skipped {
            continue;
        }
        take(position, &at.commit, &differing);
    }
    Ok(())
}
