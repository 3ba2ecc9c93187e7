//! Which documents a query finds, and in which order: name and title first, and what is used before what is not.

use std::borrow::Cow;
use std::cmp::Ordering;
use std::collections::HashMap;
use std::sync::Arc;

use memchr::memmem;

use crate::catalog::Catalog;
use crate::catalog::text::fold;
use crate::prompt::Prompt;

use super::document::{Document, Field, Item};
use super::grams::Runs;
use super::query::{Filter, Query};

/// Most that use adds to a score: it orders what fits alike and lifts no body above a title.
const MAX_USE: u32 = 40;

/// A query, ready to be compared with many documents.
pub(super) struct Matcher<'a> {
    query: &'a Query,
    catalog: &'a Catalog,
    finders: Vec<(memmem::Finder<'a>, Runs)>,
    gets: &'a HashMap<Box<str>, u64>,
}

/// A document that was found.
#[derive(Debug, Clone)]
pub(super) struct Scored {
    pub(super) score: u32,
    pub(super) document: Arc<Document>,
}

impl<'a> Matcher<'a> {
    pub(super) fn new(
        query: &'a Query,
        catalog: &'a Catalog,
        gets: &'a HashMap<Box<str>, u64>,
    ) -> Self {
        let finders = query.words.iter();
        Self {
            finders: finders
                .map(|word| {
                    let finder = memmem::Finder::new(word.form.as_bytes());
                    (finder, Runs::of(&word.form))
                })
                .collect(),
            query,
            catalog,
            gets,
        }
    }

    /// How well a document fits; none where a word is nowhere in it or a filter does not hold.
    pub(super) fn score(&self, document: &Document) -> Option<u32> {
        let filters = &self.query.filters;
        match &document.item {
            Item::Prompt(prompt) => {
                if !filters.iter().all(|filter| self.passes(filter, prompt)) {
                    return None;
                }
            }
            // what only a prompt has is asked for
            Item::Resource(_) if !filters.is_empty() || self.query.words.is_empty() => return None,
            Item::Resource(_) => {}
        }
        let mut total = 0;
        // what one word rules out is not read for the others
        if !self
            .finders
            .iter()
            .zip(&self.query.words)
            .all(|((_, runs), word)| word.initials || document.grams.may_have(runs))
        {
            return None;
        }
        for (word, (finder, runs)) in self.query.words.iter().zip(&self.finders) {
            let written = document
                .grams
                .may_have(runs)
                .then(|| finder.find(document.form.as_bytes()))
                .flatten()
                .map(|at| place_score(document, at, &word.form));
            let initials = word
                .initials
                .then(|| finder.find(document.initials.as_bytes()))
                .flatten()
                .map(|at| {
                    let starts = at == 0 || document.initials.as_bytes()[at - 1] == b'\n';
                    if starts { 60 } else { 45 }
                });
            total += written.max(initials)?;
        }
        Some(total + self.used(&document.item))
    }

    fn used(&self, item: &Item) -> u32 {
        match self.gets_of(item) {
            0 => 0,
            gets => (5 * (gets.ilog2() + 1)).min(MAX_USE),
        }
    }

    /// How often an item was got; 0 for what is no prompt.
    pub(super) fn gets_of(&self, item: &Item) -> u64 {
        let name = item.prompt().map(|prompt| prompt.name.as_str());
        name.and_then(|name| self.gets.get(name))
            .copied()
            .unwrap_or(0)
    }

    fn passes(&self, filter: &Filter, prompt: &Prompt) -> bool {
        match filter {
            Filter::Folder(folder) => in_folder(&folded(&prompt.folder), folder),
            Filter::Tag(tag) => prompt.tags.iter().any(|has| folded(has) == *tag),
            Filter::Argument(name) => prompt.arguments.iter().any(|a| folded(&a.name) == *name),
            Filter::Label(label) => self.catalog.has_label(label, prompt.name.as_str()),
        }
    }
}

/// A text folded; most folders, tags and names are so already.
fn folded(text: &str) -> Cow<'_, str> {
    let plain = |byte: u8| byte.is_ascii_graphic() && !byte.is_ascii_uppercase();
    if text.bytes().all(plain) {
        return Cow::Borrowed(text);
    }
    Cow::Owned(fold(text))
}

/// Whether a folder is another or below it.
pub(super) fn in_folder(folder: &str, of: &str) -> bool {
    folder
        .strip_prefix(of)
        .is_some_and(|rest| rest.is_empty() || rest.starts_with('/'))
}

fn place_score(document: &Document, at: usize, word: &str) -> u32 {
    let form = &document.form;
    let before = form[..at].chars().next_back();
    let line_start = before.is_none_or(|c| c == '\n');
    let word_start = before.is_none_or(|c| !c.is_alphanumeric());
    let line_end = matches!(form.as_bytes().get(at + word.len()), None | Some(b'\n'));
    match document.field(at) {
        Field::Name if line_start && line_end => 1000,
        Field::Name if line_start => 500,
        Field::Name if word_start => 300,
        Field::Name => 200,
        Field::Title if word_start => 150,
        Field::Title => 100,
        Field::Tags if line_start && line_end => 90,
        Field::Tags if word_start => 70,
        Field::Tags => 50,
        Field::Description if word_start => 40,
        Field::Description => 30,
        Field::Arguments if word_start => 30,
        Field::Arguments => 20,
        Field::Body if word_start => 10,
        Field::Body => 5,
    }
}

impl Scored {
    /// The order of answers: best first, then prompts before resources, then by name.
    pub(super) fn order(&self, other: &Self) -> Ordering {
        self.key().order(&other.key())
    }

    pub(super) fn key(&self) -> Key<'_> {
        Key {
            score: self.score,
            kind: self.document.item.kind(),
            name: self.document.item.name(),
        }
    }
}

/// A place in an answer.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Key<'a> {
    pub(super) score: u32,
    pub(super) kind: &'a str,
    pub(super) name: &'a str,
}

impl Key<'_> {
    pub(super) fn order(&self, other: &Key<'_>) -> Ordering {
        let by_name = || (self.kind, self.name).cmp(&(other.kind, other.name));
        other.score.cmp(&self.score).then_with(by_name)
    }
}
