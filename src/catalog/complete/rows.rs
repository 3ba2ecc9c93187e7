//! The rows of a values file as they were written.

use super::super::text::fold;
use super::list::place;

/// One completion value.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Candidate<'a> {
    /// The value.
    pub value: &'a str,
    /// What it means, for people.
    pub description: Option<&'a str>,
    /// What `where` compares with.
    pub key: Option<&'a str>,
}

/// Values in the author's order, in one text.
#[derive(Debug, Default, PartialEq, Eq)]
pub struct Rows {
    text: Box<str>,
    /// Where each value begins and ends in it; the rest of its line are its other fields.
    spans: Vec<(u32, u32)>,
}

impl Rows {
    /// Rows of a text, given where the value of each begins and ends.
    pub(in super::super) fn new(text: Box<str>, mut spans: Vec<(u32, u32)>) -> Self {
        spans.shrink_to_fit();
        Self { text, spans }
    }

    /// Values alone.
    pub(super) fn plain<'a>(values: impl IntoIterator<Item = &'a str>) -> Self {
        let mut text = String::new();
        let mut spans = Vec::new();
        for value in values {
            let start = place(text.len());
            text.push_str(value);
            spans.push((start, place(text.len())));
            text.push('\n');
        }
        Self::new(text.into(), spans)
    }

    /// How many there are.
    pub fn len(&self) -> usize {
        self.spans.len()
    }

    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        self.spans.is_empty()
    }

    /// The value of a row.
    pub(super) fn value(&self, row: u32) -> &str {
        let (start, end) = self.spans[row as usize];
        &self.text[start as usize..end as usize]
    }

    /// A row with all its fields.
    pub fn get(&self, row: usize) -> Option<Candidate<'_>> {
        let (start, end) = *self.spans.get(row)?;
        let rest = &self.text[end as usize..];
        let rest = rest.split('\n').next().unwrap_or_default();
        let mut fields = rest.split('\t').skip(1).map(str::trim);
        let mut field = || fields.next().filter(|field| !field.is_empty());
        Some(Candidate {
            value: &self.text[start as usize..end as usize],
            description: field(),
            key: field(),
        })
    }

    /// What `where` compares with, folded.
    pub(super) fn group(&self, row: u32) -> Option<String> {
        self.get(row as usize)?.key.map(fold)
    }

    pub(super) fn memory(&self) -> usize {
        self.text.len() + self.spans.capacity() * 8
    }
}
