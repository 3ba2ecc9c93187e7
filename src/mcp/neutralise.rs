//! Text of a caller's making that a client would execute is made inert, after rendering.
//!
//! opencode runs `` !`command` `` and reads `@file` wherever they stand in a prompt it is given.
//! What the author wrote is the author's affair (the checker warns); what came in as a value of an
//! argument must not run. A word joiner (U+2060) keeps such text readable and stops it.

use std::ops::Range;

const JOINER: char = '\u{2060}';

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
    let suspects: Vec<&str> = values.filter(|value| !value.is_empty()).collect();
    let mut covered: Vec<Range<usize>> = Vec::new();
    for value in &suspects {
        covered.extend(
            text.match_indices(value)
                .map(|(at, found)| at..at + found.len()),
        );
    }
    covered.sort_by_key(|range| range.start);
    let folded: Vec<String> = suspects.iter().map(|value| fold(value)).collect();
    let from_values = |construct: &Range<usize>| {
        // A filter may have changed the case or the punctuation of what was inserted.
        let key = fold(&text[construct.clone()]);
        overlaps(&covered, construct)
            || (!key.is_empty() && folded.iter().any(|value| value.contains(&*key)))
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

fn fold(text: &str) -> String {
    text.chars()
        .filter(|c| c.is_alphanumeric())
        .flat_map(char::to_lowercase)
        .collect()
}

/// `ranges` are sorted by their start.
fn overlaps(ranges: &[Range<usize>], wanted: &Range<usize>) -> bool {
    ranges
        .iter()
        .take_while(|range| range.start < wanted.end)
        .any(|range| range.end > wanted.start)
}

/// Every `` !`…` `` and `@name`, in order of their starts.
fn find(text: &str) -> Vec<Range<usize>> {
    let bytes = text.as_bytes();
    let mut found = Vec::new();
    let mut before = None;
    for (at, c) in text.char_indices() {
        match c {
            '!' if bytes.get(at + 1) == Some(&b'`') => {
                let rest = &text[at + 2..];
                if let Some(length) = rest.find('`').filter(|length| *length > 0) {
                    found.push(at..at + 2 + length + 1);
                }
            }
            '@' if !before
                .is_some_and(|b: char| b == '`' || b == '_' || b.is_ascii_alphanumeric()) =>
            {
                let rest = &text[at + 1..];
                let end = rest
                    .find(|c: char| c.is_whitespace() || c == '`' || c == ',')
                    .unwrap_or(rest.len());
                found.push(at..at + 1 + end);
            }
            _ => {}
        }
        before = Some(c);
    }
    found
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
}
