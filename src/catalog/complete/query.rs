//! What someone has typed, and how well a value fits it.

use super::super::text::{clip, clip_query};
use super::fuzzy::Fuzzy;
use super::key::{MAX_VALUE, MAX_WORDS, encode, hangul, initials, key, unmarked};

/// How a value fits, best first.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Tier {
    /// It begins so.
    Prefix,
    /// One of its words begins so.
    Word,
    /// It, or one of its words, begins so when syllables are taken apart.
    Jamo,
    /// So do the initial consonants.
    Initials,
    /// It begins almost so.
    Fuzzy,
}

/// A query in every form that is looked for.
#[derive(Debug)]
pub(super) struct Query {
    pub(super) key: Vec<u8>,
    /// Without marks, where there is Hangul.
    pub(super) jamo: Option<Vec<u8>>,
    /// Where all Hangul is consonants.
    pub(super) initials: Option<Vec<u8>>,
    pub(super) fuzzy: Option<Fuzzy>,
}

impl Query {
    /// Takes what was typed, at most 256 bytes of it.
    pub(super) fn new(typed: &str) -> Self {
        let key = key(clip_query(typed));
        let (has_hangul, are_initials) = hangul(&key);
        Self {
            jamo: has_hangul.then(|| unmarked(&key)),
            initials: are_initials.then(|| {
                let mut out = Vec::new();
                initials(&key, &mut out);
                out
            }),
            // what is near to a few consonants is everything
            fuzzy: if are_initials { None } else { Fuzzy::new(&key) },
            key,
        }
    }

    /// How well a value fits, found without an index.
    pub(super) fn tier(&self, value: &str) -> Option<Tier> {
        let mut key = Vec::with_capacity(value.len());
        let mut words = Vec::new();
        encode(clip(value, MAX_VALUE), &mut key, |at| {
            if words.len() < MAX_WORDS {
                words.push(at);
            }
        });
        let any = |begins: &dyn Fn(&[u8]) -> bool| words.iter().any(|at| begins(&key[*at..]));
        if key.starts_with(&self.key) {
            return Some(Tier::Prefix);
        }
        if any(&|word| word.starts_with(&self.key)) {
            return Some(Tier::Word);
        }
        if let Some(jamo) = &self.jamo
            && any(&|word| unmarked(word).starts_with(jamo))
        {
            return Some(Tier::Jamo);
        }
        if let Some(typed) = &self.initials
            && any(&|word| {
                let mut own = Vec::new();
                initials(word, &mut own);
                own.starts_with(typed)
            })
        {
            return Some(Tier::Initials);
        }
        let fuzzy = self.fuzzy.as_ref()?;
        fuzzy.matches(&key).then_some(Tier::Fuzzy)
    }
}
