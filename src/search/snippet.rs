//! Where the words of a query stand in what was found: parts of the original text, with ranges in bytes. No markup.

use std::ops::Range;

use serde::{Deserialize, Serialize};

use super::document::{Document, Field, Item, head};
use super::form::{Mapped, form, initials_form};
use super::query::{Query, Word};

/// Longest text of a match, in bytes.
const MAX_TEXT: usize = 240;
/// What is shown before the first word, in bytes.
const LEAD: usize = 60;
/// Matches shown of one document.
const MAX_MATCHES: usize = 5;
/// Lines shown of a body.
const MAX_LINES: usize = 2;
/// Longest line that words are looked for in again, in bytes.
const MAX_LINE: usize = 16 * 1024;
/// Ranges marked in one match.
const MAX_RANGES: usize = 20;

/// A part of a text with words of the query in it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, utoipa::ToSchema)]
#[schema(as = SearchMatch)]
pub struct Match {
    /// `name`, `title`, `tags`, `description`, `arguments` or `body`.
    pub field: String,
    /// The line of the file it is on, from 1, where it is of a body.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub line: Option<usize>,
    /// The text as it was written, or a part of it.
    pub text: String,
    /// Where the words stand in `text`: first byte and the byte behind the last, in order, none touching another.
    #[schema(value_type = Vec<[usize; 2]>)]
    pub ranges: Vec<Span>,
}

/// First byte and the byte behind the last.
pub type Span = [usize; 2];

/// Where the words of a query stand in a document, best field first.
pub(super) fn matches(document: &Document, query: &Query) -> Vec<Match> {
    let mut out = Vec::new();
    let heads = [
        Field::Name,
        Field::Title,
        Field::Description,
        Field::Tags,
        Field::Arguments,
    ];
    for field in heads {
        for text in head(&document.item, field) {
            let ranges = ranges(&text, &query.words);
            if !ranges.is_empty() {
                out.push(cut(field, None, &text, ranges));
            }
        }
    }
    let at = document.body_at();
    let body = &document.form[at..];
    let mut lines: Vec<usize> = query
        .words
        .iter()
        .filter_map(|word| body.find(&*word.form))
        .map(|place| memchr::memchr_iter(b'\n', &body.as_bytes()[..place]).count())
        .collect();
    lines.sort_unstable();
    lines.dedup();
    let first = match &document.item {
        Item::Prompt(prompt) => {
            let before = prompt.text().len() - prompt.body().len();
            memchr::memchr_iter(b'\n', &prompt.text().as_bytes()[..before]).count() + 1
        }
        Item::Resource(_) => 1,
    };
    out.truncate(MAX_MATCHES - MAX_LINES);
    for line in lines.into_iter().take(MAX_LINES) {
        let Some(text) = document.item.body().split('\n').nth(line) else {
            continue;
        };
        let mut end = text.len().min(MAX_LINE);
        while !text.is_char_boundary(end) {
            end -= 1;
        }
        let ranges = ranges(&text[..end], &query.words);
        out.push(cut(Field::Body, Some(first + line), text, ranges));
    }
    out
}

/// Where words stand in a text, joined where they touch.
fn ranges(text: &str, words: &[Word]) -> Vec<Range<usize>> {
    let mut found: Vec<Range<usize>> = Vec::new();
    let mut look = |mapped: &Mapped, word: &str| {
        for (at, _) in mapped.form.match_indices(word).take(MAX_RANGES) {
            found.extend(mapped.original(at, at + word.len()));
        }
    };
    let whole = form(text);
    if words.iter().any(|word| whole.contains(&*word.form)) {
        let mapped = Mapped::new(text, form);
        for word in words {
            look(&mapped, &word.form);
        }
    }
    if !text.is_ascii() && words.iter().any(|word| word.initials) {
        let mapped = Mapped::new(text, initials_form);
        for word in words.iter().filter(|word| word.initials) {
            look(&mapped, &word.form);
        }
    }
    found.sort_by_key(|range| (range.start, range.end));
    let mut out: Vec<Range<usize>> = Vec::new();
    for range in found {
        match out.last_mut() {
            Some(last) if range.start <= last.end => last.end = last.end.max(range.end),
            _ => out.push(range),
        }
    }
    out.truncate(MAX_RANGES);
    out
}

/// Cuts a text to what is shown.
fn cut(field: Field, line: Option<usize>, text: &str, ranges: Vec<Range<usize>>) -> Match {
    let near = |mut at: usize| {
        at = at.min(text.len());
        while !text.is_char_boundary(at) {
            at -= 1;
        }
        at
    };
    let first = ranges.first().map_or(0, |range| range.start);
    let from = if text.len() <= MAX_TEXT {
        0
    } else {
        near(first.saturating_sub(LEAD))
    };
    let to = near(from + MAX_TEXT);
    let ranges = ranges
        .into_iter()
        .filter(|range| range.start >= from && range.start < to)
        .map(|range| [range.start - from, range.end.min(to) - from])
        .collect();
    Match {
        field: field.as_str().to_owned(),
        line,
        text: text[from..to].to_owned(),
        ranges,
    }
}
