//! The text that a conflict is resolved from: what only one side changed is taken, what both changed stands between markers.

use std::ops::Range;
use std::time::Duration;

use similar::{DiffTag, TextDiff};

/// The line before what the proposal says.
const FIRST: &str = "<<<<<<< proposal";
/// The line between both.
const BETWEEN: &str = "======= above: the proposal, below: main";
/// The line behind what main says.
const LAST: &str = ">>>>>>> main";
/// How long one comparison may take; then larger pieces are put between markers.
const COMPARING: Duration = Duration::from_millis(300);

/// Lines of the common text that a side has changed, and what it has in their place.
struct Change {
    base: Range<usize>,
    side: Range<usize>,
}

/// A side, in lines.
struct Side<'a> {
    lines: Vec<&'a str>,
    changes: Vec<Change>,
    /// Changes that are behind.
    done: usize,
}

impl<'a> Side<'a> {
    fn of(base: &str, text: &'a str) -> Self {
        let mut config = TextDiff::configure();
        config.timeout(COMPARING);
        let diff = config.diff_lines(base, text);
        let changes = diff.ops().iter().filter(|op| op.tag() != DiffTag::Equal);
        let changes = changes.map(|op| Change {
            base: op.old_range(),
            side: op.new_range(),
        });
        Self {
            changes: changes.collect(),
            lines: text.split_inclusive('\n').collect(),
            done: 0,
        }
    }

    /// Where the next change begins.
    fn next(&self) -> Option<usize> {
        self.changes.get(self.done).map(|change| change.base.start)
    }

    /// Passes the next change where it begins no later than `end`; where it ends, then.
    fn pass(&mut self, end: usize) -> Option<usize> {
        let change = self.changes.get(self.done)?;
        if change.base.start > end {
            return None;
        }
        self.done += 1;
        Some(end.max(change.base.end))
    }

    /// What this side has in the place of some lines, all of whose changes are those from `from` up to here.
    fn text(&self, from: usize, base: &Range<usize>, unchanged: &str) -> String {
        let passed = self.changes.get(from..self.done).unwrap_or_default();
        let (Some(first), Some(last)) = (passed.first(), passed.last()) else {
            return unchanged.to_owned();
        };
        let start = (first.side.start + base.start).saturating_sub(first.base.start);
        let end = (last.side.end + base.end).saturating_sub(last.base.end);
        self.lines.get(start..end).unwrap_or_default().concat()
    }
}

/// What two sides made of a common text; all with `\n` alone at the end of lines.
pub(super) fn merged(base: &str, ours: &str, theirs: &str) -> String {
    let lines: Vec<&str> = base.split_inclusive('\n').collect();
    let (mut ours, mut theirs) = (Side::of(base, ours), Side::of(base, theirs));
    let mut out = String::new();
    let mut at = 0;
    loop {
        let start = match (ours.next(), theirs.next()) {
            (None, None) => break,
            (Some(start), None) | (None, Some(start)) => start,
            (Some(one), Some(other)) => one.min(other),
        };
        let (from_ours, from_theirs) = (ours.done, theirs.done);
        let mut end = start;
        // what touches is one piece
        while let Some(further) = ours.pass(end).or_else(|| theirs.pass(end)) {
            end = further;
        }
        out.extend(lines.get(at..start).unwrap_or_default().iter().copied());
        let unchanged = lines.get(start..end).unwrap_or_default().concat();
        let piece = start..end;
        let one = ours.text(from_ours, &piece, &unchanged);
        let other = theirs.text(from_theirs, &piece, &unchanged);
        if one == other || other == unchanged {
            out.push_str(&one);
        } else if one == unchanged {
            out.push_str(&other);
        } else {
            let parts = [(FIRST, &*one), (BETWEEN, &*other), (LAST, "")];
            for (marker, text) in parts {
                out.push_str(marker);
                out.push('\n');
                out.push_str(text);
                if !text.is_empty() && !text.ends_with('\n') {
                    out.push('\n');
                }
            }
        }
        at = end;
    }
    out.extend(lines.get(at..).unwrap_or_default().iter().copied());
    out
}

/// Whether a marker stands in a text.
pub(super) fn is_marked(text: &str) -> bool {
    text.lines()
        .any(|line| [FIRST, BETWEEN, LAST].contains(&line.trim_end()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_one_side_changed_is_taken() {
        let check = |base, ours, theirs, expected: &str| {
            let text = merged(base, ours, theirs);
            assert_eq!(text, expected, "{base:?} {ours:?} {theirs:?}");
            assert!(!is_marked(&text));
        };
        check("a\nb\nc\n", "a\nb\nc\n", "a\nb\nc\n", "a\nb\nc\n");
        check("a\nb\nc\n", "A\nb\nc\n", "a\nb\nC\n", "A\nb\nC\n");
        check("a\nb\nc\n", "a\nb\nc\nd\n", "b\nc\n", "b\nc\nd\n");
        check("a\nb\n", "a\nx\n", "a\nx\n", "a\nx\n");
        check("", "", "a\n", "a\n");
    }

    #[test]
    fn what_both_changed_stands_between_markers() {
        let check = |base, ours, theirs, expected: &str| {
            let text = merged(base, ours, theirs);
            assert_eq!(text, expected, "{base:?} {ours:?} {theirs:?}");
            assert!(is_marked(&text));
        };
        let both = |one: &str, other: &str| format!("{FIRST}\n{one}{BETWEEN}\n{other}{LAST}\n");
        check(
            "1\na\n2\n3\n4\n",
            "1\nx\n2\n3\nfour\n",
            "one\ny\n2\n3\n4\n",
            &format!("{}2\n3\nfour\n", both("1\nx\n", "one\ny\n")),
        );
        check("a", "b", "c", &both("b\n", "c\n"));
        check("", "b\n", "c\n", &both("b\n", "c\n"));
        check("a\nb\n", "", "a\nc\n", &both("", "a\nc\n"));
    }
}
