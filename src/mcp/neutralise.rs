//! Text of a caller's making that a client would execute is made inert, after rendering.
//!
//! opencode runs `` !`command` `` and reads `@file` wherever they stand in a prompt it is given.
//! What the author wrote is the author's affair (the checker warns); what came in as a value of an
//! argument must not run. A word joiner (U+2060) keeps such text readable and stops it.

use std::ops::Range;

const JOINER: char = '\u{2060}';

/// Bytes of values that are searched for the constructs of one text.
const MAX_SEARCHED: usize = 128 * 1024 * 1024;

/// Makes constructs that come from `values` inert; none when there is nothing to do.
pub fn neutralise<'a>(text: &str, values: impl Iterator<Item = &'a str>) -> Option<String> {
    if !text.contains(['@', '!']) {
        return None;
    }
    let constructs = find(text);
    if constructs.is_empty() {
        return None;
    }
    // Any value: one that lands inside an author's command would run as part of it.
    let mut suspects: Vec<&str> = values.filter(|value| !value.is_empty()).collect();
    suspects.sort_unstable();
    suspects.dedup();
    let covered = covered(text, &suspects);
    let mut ahead = covered.iter().peekable();
    let mut echoes: Option<Echoes> = None;
    // Constructs are asked about in order of their starts, so that what is behind stays behind.
    let mut from_values = |construct: &Range<usize>| {
        while ahead.next_if(|r| r.end <= construct.start).is_some() {}
        ahead.peek().is_some_and(|r| r.start < construct.end)
            || echoes
                .get_or_insert_with(|| Echoes::new(text, &suspects))
                .has(construct)
    };
    let mut out: Option<String> = None;
    let mut done = 0;
    for construct in &constructs {
        if from_values(construct) {
            let out = out.get_or_insert_with(|| String::with_capacity(text.len() + 16));
            // Both constructs begin with one ASCII character: `!` or `@`.
            out.push_str(&text[done..=construct.start]);
            out.push(JOINER);
            done = construct.start + 1;
        }
    }
    out.map(|mut out| {
        out.push_str(&text[done..]);
        out
    })
}

/// Where any of the values stands in a text: sorted, and no two overlap.
fn covered(text: &str, values: &[&str]) -> Vec<Range<usize>> {
    let mut found: Vec<Range<usize>> = Vec::new();
    for value in values {
        found.extend(text.match_indices(value).map(|(at, v)| at..at + v.len()));
    }
    found.sort_by_key(|range| range.start);
    let mut merged: Vec<Range<usize>> = Vec::new();
    for range in found {
        match merged.last_mut() {
            Some(last) if range.start <= last.end => last.end = last.end.max(range.end),
            _ => merged.push(range),
        }
    }
    merged
}

/// Finds constructs in values whose case or punctuation a filter has changed.
struct Echoes {
    /// The text with only its letters and digits, in lower case.
    folded: String,
    /// By byte of the text, where it is in `folded`.
    places: Vec<usize>,
    values: Vec<String>,
    /// Bytes that are still searched.
    left: usize,
}

impl Echoes {
    fn new(text: &str, values: &[&str]) -> Self {
        let mut folded = String::with_capacity(text.len());
        let mut places = Vec::with_capacity(text.len() + 1);
        for c in text.chars() {
            places.resize(places.len() + c.len_utf8(), folded.len());
            fold(c, &mut folded);
        }
        places.push(folded.len());
        let values = values
            .iter()
            .map(|value| {
                let mut out = String::with_capacity(value.len());
                value.chars().for_each(|c| fold(c, &mut out));
                out
            })
            .collect();
        Self {
            folded,
            places,
            values,
            left: MAX_SEARCHED,
        }
    }

    fn has(&mut self, construct: &Range<usize>) -> bool {
        let key = &self.folded[self.places[construct.start]..self.places[construct.end]];
        if key.is_empty() {
            return false;
        }
        self.values.iter().any(|value| {
            if key.len() > value.len() {
                return false;
            }
            let Some(left) = self.left.checked_sub(value.len()) else {
                // A joiner too many is seen by nobody, and one too few runs a command.
                return true;
            };
            self.left = left;
            value.contains(key)
        })
    }
}

fn fold(c: char, out: &mut String) {
    if c.is_alphanumeric() {
        out.extend(c.to_lowercase());
    }
}

/// Every `` !`…` `` and `@name`, in order of their starts.
fn find(text: &str) -> Vec<Range<usize>> {
    let bytes = text.as_bytes();
    let mut found = Vec::new();
    let mut before = None;
    // The next end of each kind, which serves every construct that begins before it.
    let (mut tick, mut name_end) = (0, 0);
    for (at, c) in text.char_indices() {
        match c {
            '!' if bytes.get(at + 1) == Some(&b'`') => {
                let from = at + 2;
                if tick < from {
                    tick = next(text, from, |c| c == '`');
                }
                if tick > from && tick < text.len() {
                    found.push(at..tick + 1);
                }
            }
            '@' if !before
                .is_some_and(|b: char| b == '`' || b == '_' || b.is_ascii_alphanumeric()) =>
            {
                let from = at + 1;
                if name_end < from {
                    name_end = next(text, from, |c| c.is_whitespace() || c == '`' || c == ',');
                }
                found.push(at..name_end);
            }
            _ => {}
        }
        before = Some(c);
    }
    found
}

/// Where the next such character is, or the end of the text.
fn next(text: &str, from: usize, wanted: impl Fn(char) -> bool) -> usize {
    text[from..].find(wanted).map_or(text.len(), |at| from + at)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(text: &str, values: &[&str], expected: Option<&str>) {
        assert_eq!(
            neutralise(text, values.iter().copied()).as_deref(),
            expected,
            "{text}"
        );
    }

    #[test]
    fn what_came_in_a_value_is_stopped_and_stays_readable() {
        check("see !`id` now", &["!`id`"], Some("see !\u{2060}`id` now"));
        check(
            "see @/etc/passwd now",
            &["@/etc/passwd"],
            Some("see @\u{2060}/etc/passwd now"),
        );
        check(
            "a !`x` b @y",
            &["!`x` b @y"],
            Some("a !\u{2060}`x` b @\u{2060}y"),
        );
    }

    #[test]
    fn what_the_author_wrote_stays() {
        check(
            "run !`git diff` on @src/main.rs for me",
            &["me@example.com"],
            None,
        );
        check("run !`git diff`", &[], None);
        check("mail me@example.com", &["me@example.com"], None);
    }

    #[test]
    fn pieces_and_changed_case_count() {
        check("a !`rm -rf`", &["`rm -rf`"], Some("a !\u{2060}`rm -rf`"));
        check("a !`RM -RF`", &["!`rm -rf`"], Some("a !\u{2060}`RM -RF`"));
        check("a !`git log $1`", &["$1"], Some("a !\u{2060}`git log $1`"));
    }

    /// Would take hours if any step looked again at what it has seen.
    #[test]
    fn a_mebibyte_of_constructs() {
        for unit in ["@", " @a/b", " !`", "!`", " @a/b!`c`", " !`@a"] {
            let value = unit.repeat((1 << 20) / unit.len());
            let inert = neutralise(&value, [&*value].into_iter()).unwrap();
            assert_eq!(inert.replace(JOINER, ""), value);
            // What the author wrote, beside a value that is elsewhere.
            neutralise(&value, ["x"].into_iter());
            // As it comes out of a filter.
            let text = value.to_uppercase().replace('/', "//");
            neutralise(&text, [&*value].into_iter());
        }
        let names: String = (0..100_000).fold(String::new(), |all, n| all + &format!(" @p{n}"));
        let inert = neutralise(&names.to_uppercase(), [&*names].into_iter()).unwrap();
        assert_eq!(inert.matches(JOINER).count(), 100_000);
    }

    #[test]
    fn an_end_that_serves_several() {
        check("@@a b", &["@@a"], Some("@\u{2060}@\u{2060}a b"));
        check("!`a!`b", &["!`a"], Some("!\u{2060}`a!`b"));
        check("!``a` !`b`", &["`b`"], Some("!``a` !\u{2060}`b`"));
        check("@a, @b c", &["b"], Some("@a, @\u{2060}b c"));
        check(
            "@a @b @c @d",
            &["b @c"],
            Some("@a @\u{2060}b @\u{2060}c @d"),
        );
    }
}
