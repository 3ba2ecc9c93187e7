//! What is searched: the prompts and resources of one catalog, each as one text in the form that is compared.

use std::collections::HashMap;
use std::sync::Arc;

use sha2::{Digest as _, Sha256};

use crate::catalog::Catalog;
use crate::catalog::uri;
use crate::prompt::{Prompt, Resource};

use super::form::{form, initials_form};
use super::grams::Grams;

/// How much of a body or of a resource is searched, in bytes.
pub const MAX_TEXT: usize = 256 * 1024;

/// What can be found.
#[derive(Debug, Clone)]
pub enum Item {
    /// A prompt.
    Prompt(Arc<Prompt>),
    /// A resource of the library, e.g. a runbook.
    Resource(Arc<Resource>),
}

impl Item {
    /// `prompt` or `resource`.
    pub fn kind(&self) -> &'static str {
        match self {
            Self::Prompt(_) => "prompt",
            Self::Resource(_) => "resource",
        }
    }

    /// A prompt's name, a resource's URI.
    pub fn name(&self) -> &str {
        match self {
            Self::Prompt(prompt) => prompt.name.as_str(),
            Self::Resource(resource) => &resource.uri,
        }
    }

    /// Its path in the library.
    pub fn path(&self) -> &str {
        match self {
            Self::Prompt(prompt) => &prompt.path,
            Self::Resource(resource) => &resource.path,
        }
    }

    /// The prompt, where it is one.
    pub fn prompt(&self) -> Option<&Arc<Prompt>> {
        match self {
            Self::Prompt(prompt) => Some(prompt),
            Self::Resource(_) => None,
        }
    }

    fn same(&self, other: &Self) -> bool {
        match (self, other) {
            (Self::Prompt(a), Self::Prompt(b)) => Arc::ptr_eq(a, b),
            (Self::Resource(a), Self::Resource(b)) => Arc::ptr_eq(a, b),
            _ => false,
        }
    }

    /// The text below all that is declared.
    pub(super) fn body(&self) -> &str {
        let text = match self {
            Self::Prompt(prompt) => prompt.body(),
            Self::Resource(resource) => resource.text().unwrap_or_default(),
        };
        let mut end = text.len().min(MAX_TEXT);
        while !text.is_char_boundary(end) {
            end -= 1;
        }
        &text[..end]
    }
}

/// A part of what is searched.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Field {
    /// A prompt's name, a resource's URI.
    Name,
    /// A prompt's title.
    Title,
    /// A prompt's tags and folder, a resource's path.
    Tags,
    /// A prompt's description.
    Description,
    /// Names and descriptions of a prompt's arguments.
    Arguments,
    /// A prompt's text, a resource's content.
    Body,
}

impl Field {
    /// Its name, e.g. `title`.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Name => "name",
            Self::Title => "title",
            Self::Tags => "tags",
            Self::Description => "description",
            Self::Arguments => "arguments",
            Self::Body => "body",
        }
    }
}

/// Fields before the body, in the order in which they stand in a form.
const HEADS: [Field; 5] = [
    Field::Name,
    Field::Title,
    Field::Tags,
    Field::Description,
    Field::Arguments,
];

/// The texts of a field before the body, as they were written.
pub(super) fn head(item: &Item, field: Field) -> Vec<String> {
    match (item, field) {
        (Item::Prompt(prompt), Field::Name) => vec![prompt.name.to_string()],
        (Item::Prompt(prompt), Field::Title) => prompt.title.iter().cloned().collect(),
        (Item::Prompt(prompt), Field::Tags) => {
            let mut texts = prompt.tags.clone();
            texts.push(prompt.folder.to_string());
            texts
        }
        (Item::Prompt(prompt), Field::Description) => prompt.description.iter().cloned().collect(),
        (Item::Prompt(prompt), Field::Arguments) => {
            let texts = prompt.arguments.iter().map(|argument| {
                argument.description.as_ref().map_or_else(
                    || argument.name.to_string(),
                    |description| format!("{}: {description}", argument.name),
                )
            });
            texts.collect()
        }
        (Item::Resource(resource), Field::Name) => vec![uri::decoded(&resource.uri)],
        (Item::Resource(resource), Field::Tags) => vec![resource.path.to_string()],
        _ => Vec::new(),
    }
}

/// One of them in the form that is compared.
#[derive(Debug)]
pub struct Document {
    /// What it is of.
    pub item: Item,
    /// Its fields, each with its lines, the body last.
    pub(super) form: Box<str>,
    /// What the form has.
    pub(super) grams: Grams,
    /// Where the fields before the body end.
    ends: [u32; HEADS.len()],
    /// The same of initial consonants, without the body.
    pub(super) initials: Box<str>,
    /// SHA-256 of kind, name and form.
    pub(super) hash: [u8; 32],
}

/// What a row of the index is known by.
pub(super) fn hash(kind: &str, name: &str, form: &str) -> [u8; 32] {
    let mut hash = Sha256::new();
    for part in [kind, name] {
        hash.update(part.as_bytes());
        hash.update([0]);
    }
    hash.update(form.as_bytes());
    hash.finalize().into()
}

impl Document {
    fn new(item: Item) -> Self {
        let mut out = String::new();
        let mut consonants = String::new();
        let mut ends = [0; HEADS.len()];
        for (field, end) in HEADS.into_iter().zip(&mut ends) {
            for text in head(&item, field) {
                out.push_str(&form(&text));
                out.push('\n');
                if !text.is_ascii() {
                    consonants.push_str(&initials_form(&text));
                    consonants.push('\n');
                }
            }
            *end = u32::try_from(out.len()).unwrap_or(u32::MAX);
        }
        out.push_str(&form(item.body()));
        Self {
            hash: hash(item.kind(), item.name(), &out),
            item,
            grams: Grams::of(&out),
            form: out.into(),
            ends,
            initials: consonants.into(),
        }
    }

    /// The field at a place of the form.
    pub(super) fn field(&self, at: usize) -> Field {
        let place = self.ends.partition_point(|end| *end as usize <= at);
        HEADS.get(place).copied().unwrap_or(Field::Body)
    }

    /// Where the body begins in the form.
    pub(super) fn body_at(&self) -> usize {
        self.ends[HEADS.len() - 1] as usize
    }

    /// How much memory its forms take, in bytes.
    pub fn bytes(&self) -> usize {
        self.form.len() + self.initials.len() + size_of::<Self>()
    }
}

/// A sum over documents: two sets of the same documents have the same, however they came about.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(super) struct Digest([u64; 4]);

impl Digest {
    fn add(&mut self, hash: &[u8; 32]) {
        for (lane, bytes) in self.0.iter_mut().zip(hash.chunks_exact(8)) {
            let mut word = [0; 8];
            word.copy_from_slice(bytes);
            *lane = lane.wrapping_add(u64::from_le_bytes(word));
        }
    }

    /// 64 hex digits.
    pub(super) fn hex(self) -> String {
        self.0.iter().map(|lane| format!("{lane:016x}")).collect()
    }
}

/// The documents of one catalog.
#[derive(Debug)]
pub struct Documents {
    catalog: Arc<Catalog>,
    all: Vec<Arc<Document>>,
    digest: Digest,
}

impl Documents {
    /// Those of a catalog; what did not change is taken from another one's.
    pub fn of(catalog: Arc<Catalog>, before: Option<&Self>) -> Self {
        let prompts = catalog.list(None).into_iter().cloned().map(Item::Prompt);
        let resources = catalog.resources().into_iter();
        let items: Vec<Item> = prompts
            .chain(resources.cloned().map(Item::Resource))
            .collect();
        let before = before.map_or(&[][..], |before| &before.all);
        // both are in the order of lists: what a publish changes lies between two parts that are the same
        let same = |(item, document): &(&Item, &Arc<Document>)| document.item.same(item);
        let first = items.iter().zip(before).take_while(same).count();
        let rest = items[first..]
            .iter()
            .rev()
            .zip(before[first..].iter().rev());
        let last = rest.take_while(same).count();
        let between = &before[first..before.len() - last];
        let known: HashMap<(&str, &str), &Arc<Document>> = between
            .iter()
            .map(|d| ((d.item.kind(), d.item.name()), d))
            .collect();
        let end = items.len() - last;
        let made = items.into_iter().enumerate().map(|(at, item)| {
            if at < first {
                return before[at].clone();
            }
            if at >= end {
                return before[before.len() - last + (at - end)].clone();
            }
            let found = known.get(&(item.kind(), item.name())).copied();
            match found.filter(|document| document.item.same(&item)) {
                Some(document) => document.clone(),
                None => Arc::new(Document::new(item)),
            }
        });
        let mut digest = Digest::default();
        let all: Vec<Arc<Document>> = made.inspect(|d| digest.add(&d.hash)).collect();
        Self {
            catalog,
            all,
            digest,
        }
    }

    /// The catalog they are of.
    pub fn catalog(&self) -> &Arc<Catalog> {
        &self.catalog
    }

    /// All, prompts first, in the order of lists.
    pub fn all(&self) -> &[Arc<Document>] {
        &self.all
    }

    pub(super) fn digest(&self) -> Digest {
        self.digest
    }
}
