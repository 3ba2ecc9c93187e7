//! Completion: the best values for what has been typed so far, and how many there are.
//!
//! A value fits by its beginning, by the beginning of one of its words, by a syllable still being typed, by initial
//! consonants, or almost; in this order, and by its place in its source within each. What almost fits is looked for where
//! the rest leaves room in an answer, and counted only then.

mod fuzzy;
mod index;
mod key;
mod list;
mod query;
mod rows;
#[cfg(test)]
mod tests;

use std::collections::HashSet;
use std::sync::{Arc, Mutex, OnceLock, PoisonError};

use index::{Found, Index, View};
pub(super) use list::place;
use query::{Query, Tier};
pub use rows::{Candidate, Rows};

/// Most values one answer carries (MCP `completion/complete`).
pub const MAX_VALUES: usize = 100;

/// Most recent values of an argument that are looked at.
pub const MAX_RECENT: usize = 256;

/// Values above which an index has an fst, and is made after the catalog is served.
const LARGE: usize = 50_000;

/// A value that was used, and how much that counts now.
#[derive(Debug, Clone, PartialEq)]
pub struct Recent {
    /// The value.
    pub value: Box<str>,
    /// The higher, the further in front.
    pub weight: f64,
}

/// An answer to a completion request.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Completion {
    /// At most 100 values, best first.
    pub values: Vec<String>,
    /// How many there are in all.
    pub total: usize,
}

/// Values in the author's order, found by what someone types.
#[derive(Debug)]
pub struct ValueIndex {
    rows: Arc<Rows>,
    index: Arc<OnceLock<Index>>,
}

impl ValueIndex {
    /// Indexes rows; many of them in a thread of its own, and until that is done they are looked through one by one.
    pub fn new(rows: Rows) -> Self {
        let this = Self {
            rows: Arc::new(rows),
            index: Arc::default(),
        };
        if this.rows.len() <= LARGE || !this.start() {
            this.wait();
        }
        this
    }

    /// Values alone.
    pub fn plain<'a>(values: impl IntoIterator<Item = &'a str>) -> Self {
        Self::new(Rows::plain(values))
    }

    /// Starts the thread; false where the machine has none to give.
    fn start(&self) -> bool {
        /// One index is made at a time, whatever is published meanwhile.
        static TURN: Mutex<()> = Mutex::new(());
        let rows = Arc::downgrade(&self.rows);
        let index = Arc::downgrade(&self.index);
        let started = std::thread::Builder::new()
            .name("values".into())
            .spawn(move || {
                let _turn = TURN.lock().unwrap_or_else(PoisonError::into_inner);
                // the file may be gone by now
                if let (Some(rows), Some(index)) = (rows.upgrade(), index.upgrade()) {
                    index.get_or_init(|| Index::new(&rows, true));
                }
            });
        started.is_ok()
    }

    /// Waits until the index is made.
    pub fn wait(&self) {
        let many = self.rows.len() > LARGE;
        self.index.get_or_init(|| Index::new(&self.rows, many));
    }

    /// The rows, in the author's order.
    pub fn rows(&self) -> &Rows {
        &self.rows
    }

    /// How much memory it takes, in bytes.
    pub fn memory(&self) -> usize {
        self.rows.memory() + self.index.get().map_or(0, Index::memory)
    }

    /// What a `where` leaves of it.
    fn parts(&self, query: &Query, wanted: Option<&str>) -> Vec<Part<'_>> {
        if let Some(index) = self.index.get() {
            let views = index.views(&self.rows, wanted);
            return views.into_iter().map(Part::View).collect();
        }
        let accepted = (0..place(self.rows.len())).filter(|row| {
            let group = || self.rows.group(*row);
            wanted.is_none_or(|wanted| group().is_none_or(|group| group == wanted))
        });
        let values = accepted.map(|row| (row, self.rows.value(row)));
        vec![Part::Few(Few::new(query, values))]
    }

    /// Whether a value is among what a `where` leaves of it; false while it is being indexed.
    fn contains(&self, value: &str, wanted: Option<&str>) -> bool {
        let views = self
            .index
            .get()
            .map(|index| index.views(&self.rows, wanted));
        views.is_some_and(|views| views.iter().any(|view| view.contains(value)))
    }
}

/// Where values come from.
#[derive(Debug, Clone, Copy)]
pub enum Values<'a> {
    /// An index over many.
    Indexed(&'a ValueIndex),
    /// A few in the author's order.
    Listed(&'a [String]),
    /// Values that were used.
    Recent(&'a [Recent]),
}

/// Completes what was typed from several sources, of which each is better than the next where values fit alike; a
/// value that occurs twice is given once. `wanted` is the folded key that rows must have, if they have one.
pub fn complete(sources: &[Values<'_>], typed: &str, wanted: Option<&str>) -> Completion {
    let query = Query::new(typed);
    let mut parts: Vec<(usize, Part<'_>)> = Vec::new();
    for (source, values) in sources.iter().enumerate() {
        let some = match values {
            Values::Indexed(index) => index.parts(&query, wanted),
            Values::Listed(values) => {
                let values = values.iter().map(String::as_str);
                vec![Part::Few(Few::new(&query, (0..).zip(values)))]
            }
            Values::Recent(values) => vec![Part::Few(Few::new(&query, best(values)))],
        };
        parts.extend(some.into_iter().map(|part| (source, part)));
    }
    let mut found: Vec<Found> = parts.iter().map(|(_, part)| part.find(&query)).collect();
    let mut total = union(&parts, &found, &query, false);
    if total < MAX_VALUES && query.fuzzy.is_some() {
        for ((_, part), found) in parts.iter().zip(&mut found) {
            part.find_fuzzy(&query, found);
        }
        total = union(&parts, &found, &query, true);
    }
    let mut best: Vec<(Tier, usize, u32, &str)> = Vec::new();
    for ((source, part), found) in parts.iter().zip(&found) {
        let rows = found.best.iter();
        best.extend(rows.map(|(tier, row)| (*tier, *source, *row, part.value(*row))));
    }
    best.sort_unstable();
    // of one part each value is there once
    if found.iter().filter(|found| !found.best.is_empty()).count() > 1 {
        let mut seen = HashSet::new();
        best.retain(|(.., value)| seen.insert(*value));
    }
    best.truncate(MAX_VALUES);
    Completion {
        values: best
            .into_iter()
            .map(|(.., value)| value.to_owned())
            .collect(),
        total,
    }
}

/// Whether a value is among what several sources have, where [`complete()`] may have no room for it. Costs no more where
/// there are a million; of a large file that is being indexed nothing is known.
pub fn offers(sources: &[Values<'_>], value: &str, wanted: Option<&str>) -> bool {
    sources.iter().any(|values| match values {
        Values::Indexed(index) => index.contains(value, wanted),
        Values::Listed(values) => values.iter().any(|known| known == value),
        Values::Recent(values) => values.iter().any(|known| &*known.value == value),
    })
}

/// The recent values of most weight, these first; of two alike the earlier.
fn best(values: &[Recent]) -> impl Iterator<Item = (u32, &str)> {
    let mut sorted: Vec<&Recent> = values.iter().collect();
    sorted.sort_by(|a, b| b.weight.total_cmp(&a.weight));
    let sorted = sorted.into_iter().take(MAX_RECENT);
    (0..).zip(sorted.map(|recent| &*recent.value))
}

/// Values that are looked through one by one.
#[derive(Debug)]
struct Few<'a> {
    /// Each value once, in order, and how it fits.
    values: Vec<(u32, &'a str)>,
    tiers: Vec<Option<Tier>>,
}

impl<'a> Few<'a> {
    fn new(query: &Query, values: impl Iterator<Item = (u32, &'a str)>) -> Self {
        let mut seen = HashSet::new();
        let values: Vec<(u32, &str)> = values.filter(|(_, value)| seen.insert(*value)).collect();
        Self {
            tiers: values.iter().map(|(_, value)| query.tier(value)).collect(),
            values,
        }
    }

    /// Those that fit, or only almost.
    fn fitting(&self, almost: bool) -> impl Iterator<Item = (Tier, u32, &'a str)> {
        let tiers = self.tiers.iter().zip(&self.values);
        tiers.filter_map(move |(tier, (order, value))| {
            let tier = (*tier)?;
            ((tier == Tier::Fuzzy) == almost).then_some((tier, *order, *value))
        })
    }

    fn add(&self, found: &mut Found, almost: bool) {
        let mut best: Vec<(Tier, u32)> = self
            .fitting(almost)
            .map(|(tier, order, _)| (tier, order))
            .collect();
        best.sort_unstable();
        found.total += best.len();
        best.truncate(MAX_VALUES);
        found.best.extend(best);
    }
}

/// Values of one source, or of one part of it.
#[derive(Debug)]
enum Part<'a> {
    View(View<'a>),
    Few(Few<'a>),
}

impl<'a> Part<'a> {
    fn find(&self, query: &Query) -> Found {
        match self {
            Self::View(view) => view.find(query),
            Self::Few(few) => {
                let mut found = Found::default();
                few.add(&mut found, false);
                found
            }
        }
    }

    fn find_fuzzy(&self, query: &Query, found: &mut Found) {
        match self {
            Self::View(view) => {
                if let Some(fuzzy) = &query.fuzzy {
                    view.find_fuzzy(fuzzy, found);
                }
            }
            Self::Few(few) => few.add(found, true),
        }
    }

    fn value(&self, row: u32) -> &'a str {
        match self {
            Self::View(view) => view.value(row),
            Self::Few(few) => {
                let at = few.values.partition_point(|(order, _)| *order < row);
                few.values.get(at).map_or("", |(_, value)| value)
            }
        }
    }

    /// Calls with every value that was counted.
    fn each(&self, query: &Query, almost: bool, mut each: impl FnMut(&'a str)) {
        match self {
            Self::View(view) => {
                let fuzzy = query.fuzzy.as_ref().filter(|_| almost);
                view.each(query, fuzzy, each);
            }
            Self::Few(few) => {
                let more = few.fitting(true).filter(|_| almost);
                few.fitting(false)
                    .chain(more)
                    .for_each(|(.., value)| each(value));
            }
        }
    }

    fn contains(&self, value: &str) -> bool {
        match self {
            Self::View(view) => view.contains(value),
            Self::Few(few) => few.values.iter().any(|(_, known)| *known == value),
        }
    }
}

/// How many values were found in all: those of the part with most, and of each other what is in none before it.
fn union(parts: &[(usize, Part<'_>)], found: &[Found], query: &Query, almost: bool) -> usize {
    let mut order: Vec<usize> = (0..parts.len()).collect();
    order.sort_by_key(|i| std::cmp::Reverse(found[*i].total));
    let mut total = 0;
    for (n, i) in order.iter().enumerate() {
        let before = &order[..n];
        if before.is_empty() || found[*i].total == 0 {
            total += found[*i].total;
            continue;
        }
        parts[*i].1.each(query, almost, |value| {
            let known = before.iter().any(|b| parts[*b].1.contains(value));
            total += usize::from(!known);
        });
    }
    total
}
