//! Where a comment stands when the text it was made on has changed. Pure.

use std::cmp::Reverse;
use std::collections::HashMap;
use std::sync::Arc;
use std::time::{Duration, Instant};

use serde::{Deserialize, Serialize};
use similar::{Algorithm, DiffOp, capture_diff_slices_deadline};

/// How long one comparison may take; what is not matched by then counts as changed.
const COMPARING: Duration = Duration::from_millis(200);
/// How long all comparisons for one answer may take.
const ALL: Duration = Duration::from_secs(2);
/// Characters of a line that are kept of it.
const QUOTED: usize = 300;
/// Lines with fewer characters are found again only between the same lines.
const TELLING: usize = 3;

/// Which lines of a text are still there in another: where they begin in both, and how many.
#[derive(Debug)]
struct Carried(Vec<(usize, usize, usize)>);

impl Carried {
    fn between(then: &str, now: &str, until: Instant) -> Self {
        if then == now {
            return Self(vec![(0, 0, then.lines().count())]);
        }
        let then: Vec<&str> = then.lines().collect();
        let now: Vec<&str> = now.lines().collect();
        let deadline = until.min(Instant::now() + COMPARING);
        let ops = capture_diff_slices_deadline(Algorithm::Myers, &then, &now, Some(deadline));
        let equal = ops.into_iter().filter_map(|op| match op {
            DiffOp::Equal {
                old_index,
                new_index,
                len,
            } => Some((old_index, new_index, len)),
            _ => None,
        });
        Self(equal.collect())
    }

    /// What a line has become, both from 1; none where it was changed or removed.
    fn line(&self, line: usize) -> Option<usize> {
        let index = line.checked_sub(1)?;
        let within = |(old, _, len): &&(usize, usize, usize)| (*old..old + len).contains(&index);
        let (old, new, _) = self.0.iter().find(within)?;
        Some(new + (index - old) + 1)
    }
}

/// Files of commits, each read once, and where their lines have gone, compared once for each two.
pub struct Texts<R> {
    read: R,
    until: Instant,
    known: HashMap<(String, String), Option<Arc<str>>>,
    compared: HashMap<[String; 3], Option<Carried>>,
}

impl<R: FnMut(&str, &str) -> Option<String>> Texts<R> {
    /// `read` gives the text at a path of a commit.
    pub fn new(read: R) -> Self {
        Self {
            read,
            until: Instant::now() + ALL,
            known: HashMap::new(),
            compared: HashMap::new(),
        }
    }

    /// The text at a path of a commit.
    pub fn text(&mut self, commit: &str, path: &str) -> Option<Arc<str>> {
        let key = (commit.to_owned(), path.to_owned());
        let read = || (self.read)(commit, path).map(Arc::from);
        self.known.entry(key).or_insert_with(read).clone()
    }

    /// The line of `now` that a line of `then` has become, both from 1; none where it was changed or removed.
    pub fn carried(&mut self, path: &str, then: &str, now: &str, line: usize) -> Option<usize> {
        let key = [path, then, now].map(str::to_owned);
        if let Some(known) = self.compared.get(&key) {
            return known.as_ref()?.line(line);
        }
        let both = self.text(then, path).zip(self.text(now, path));
        let carried = both.map(|(then, now)| Carried::between(&then, &now, self.until));
        let now = carried.as_ref().and_then(|carried| carried.line(line));
        self.compared.insert(key, carried);
        now
    }
}

/// A line of what an example renders to: the message, from 0, its number, from 1, and its text.
pub type RenderedLine<'a> = (i64, i64, &'a str);

/// A line of a render that was commented on, by which it is found again in another.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Quote {
    /// Its text.
    pub line: String,
    before: Option<String>,
    after: Option<String>,
    /// Whether the prompt had text of other files, so that not everybody who reads it may read this.
    #[serde(default = "yes")]
    pub of_others: bool,
}

fn yes() -> bool {
    true
}

fn clipped(text: &str) -> String {
    text.chars().take(QUOTED).collect()
}

impl Quote {
    /// What stands at a place of a render; none where there is no such line.
    pub fn of(lines: &[RenderedLine<'_>], (message, line): (i64, i64)) -> Option<Self> {
        let here = |(m, n, _): &RenderedLine<'_>| (*m, *n) == (message, line);
        Some(Self::at(lines, lines.iter().position(here)?))
    }

    fn at(lines: &[RenderedLine<'_>], at: usize) -> Self {
        let text = |at: usize| lines.get(at).map(|(_, _, text)| clipped(text));
        Self {
            line: text(at).unwrap_or_default(),
            before: at.checked_sub(1).and_then(text),
            after: text(at + 1),
            of_others: true,
        }
    }

    /// The message and the line where it stands now: the equal line with the most of what was around it, and of those the
    /// nearest to where it was. None where there is none.
    pub fn found(
        &self,
        lines: &[RenderedLine<'_>],
        (message, line): (i64, i64),
    ) -> Option<(i64, i64)> {
        let least = if self.line.trim().chars().count() < TELLING {
            2
        } else {
            0
        };
        let equal = lines.iter().enumerate().filter_map(|(at, (m, n, text))| {
            if !text.starts_with(&*self.line) {
                return None;
            }
            let other = Self::at(lines, at);
            let around =
                usize::from(other.before == self.before) + usize::from(other.after == self.after);
            let is_it = other.line == self.line && around >= least;
            is_it.then_some((around, *m == message, Reverse(n.abs_diff(line)), (*m, *n)))
        });
        equal.max().map(|(.., place)| place)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn carried(then: &str, now: &str, line: usize) -> Option<usize> {
        Carried::between(then, now, Instant::now() + ALL).line(line)
    }

    #[test]
    fn two_texts_are_compared_once_however_many_comments_there_are() {
        let mut reads = 0;
        let mut texts = Texts::new(|commit: &str, _: &str| {
            reads += 1;
            (commit != "gone").then(|| format!("{commit}\n{}", "line\n".repeat(300)))
        });
        for line in 1..=200 {
            let now = texts.carried("a.md", "one", "two", line);
            assert_eq!(now, (line > 1).then_some(line));
            assert_eq!(texts.carried("a.md", "one", "gone", line), None);
        }
        assert_eq!((texts.compared.len(), texts.known.len()), (2, 3));
        assert_eq!(texts.carried("b.md", "one", "two", 2), Some(2));
        assert_eq!(texts.compared.len(), 3);
        drop(texts);
        assert_eq!(reads, 5);
    }

    #[test]
    fn a_line_of_a_render_is_found_by_its_text_and_what_is_around_it() {
        let lines = |text: &'static str| -> Vec<RenderedLine<'static>> {
            let numbers = 1..;
            let lines = numbers.zip(text.lines());
            lines.map(|(number, text)| (0, number, text)).collect()
        };
        let then = lines("Hello.\nBe kind.\n\nSay when.\nBe kind.\nEnd.");
        let check = |at: i64, now: &'static str, expected: Option<i64>| {
            let quote = Quote::of(&then, (0, at)).unwrap();
            let found = quote.found(&lines(now), (0, at));
            assert_eq!(found, expected.map(|line| (0, line)), "{at} in {now}");
        };
        // a line more in a partial above it
        check(4, "Hello.\nBe brief.\nBe kind.\n\nSay when.\nEnd.", Some(5));
        check(4, "Hello.\nBe kind.\nEnd.", None);
        // of two that are equal, the one between the same lines
        check(5, "Hello.\nBe kind.\n\nSay when.\nBe kind.\nEnd.", Some(5));
        check(2, "Say when.\nBe kind.\nEnd.\nHello.\nBe kind.", Some(5));
        // an empty line is no other empty line
        check(3, "Hello.\n\nBe kind.\n\nSay when.", Some(4));
        check(3, "Hello.\n\nSay when.", None);
        // another message of the same example
        let quote = Quote::of(&then, (0, 4)).unwrap();
        assert_eq!(quote.found(&[(2, 1, "Say when.")], (0, 4)), Some((2, 1)));
        assert_eq!(Quote::of(&then, (1, 1)), None);
    }

    #[test]
    fn a_line_is_carried_or_outdated() {
        let then = "a\nb\nc\nd\n";
        assert_eq!(carried(then, then, 3), Some(3));
        assert_eq!(carried(then, then, 5), None);
        assert_eq!(carried(then, then, 0), None);
        assert_eq!(carried(then, "x\na\nb\nc\nd\n", 3), Some(4));
        assert_eq!(carried(then, "a\nc\nd\n", 3), Some(2));
        assert_eq!(carried(then, "a\nb\nC\nd\n", 3), None);
        assert_eq!(carried(then, "", 1), None);
    }

    proptest::proptest! {
        /// Where a line is said to be, the same text stands; and where nothing above changed, it stays.
        #[test]
        fn the_same_text_stands_there(
            then in proptest::collection::vec("[a-c]{0,2}", 1..20),
            now in proptest::collection::vec("[a-c]{0,2}", 0..20),
            at in 0..20usize,
        ) {
            let (a, b) = (then.join("\n") + "\n", now.join("\n") + "\n");
            let line = at % then.len() + 1;
            if let Some(to) = carried(&a, &b, line) {
                proptest::prop_assert_eq!(a.lines().nth(line - 1), b.lines().nth(to - 1));
            }
            let more = a.clone() + "more\n";
            proptest::prop_assert_eq!(carried(&a, &more, line), Some(line));
        }
    }
}
