//! An index over the rows of one values file.

use std::collections::{HashMap, HashSet};
use std::fmt;
use std::ops::Range;

use fst::raw::{Builder, Fst};

use super::super::text::clip;
use super::MAX_VALUES;
use super::fuzzy::{Fuzzy, fst_prefix};
use super::key::{MAX_VALUE, MAX_WORDS, encode, hangul, initials};
use super::list::{Arena, List, Posting, place, sorted, split};
use super::query::{Query, Tier};
use super::rows::Rows;

/// Postings above which the rows of a range are counted when the index is built, not when it is asked.
const HEAVY: usize = if cfg!(test) { 8 } else { 16 * 1024 };

/// Postings whose rows are counted by sorting them.
const FEW: usize = if cfg!(test) { 16 } else { 4096 };

/// Rows by their keys, by the words in these, and by initial consonants.
#[derive(Debug, Default)]
struct Lists {
    /// One posting a row.
    starts: List,
    /// One for each word, the first included; none where no row has more than one.
    words: Option<List>,
    initials: List,
}

/// How many rows there are in the ranges that hold many.
type Heavy = HashMap<(usize, usize), usize>;

/// What only many rows need.
struct Large {
    /// From each key to the first of `starts` that has it.
    fst: Fst<Vec<u8>>,
    words: Heavy,
    initials: Heavy,
}

impl fmt::Debug for Large {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Large").finish_non_exhaustive()
    }
}

/// Rows by what `where` compares with.
#[derive(Debug)]
struct Groups {
    lists: Lists,
    /// The number of each, from 1; 0 are rows without.
    numbers: HashMap<Box<str>, u32>,
    /// Where each begins in `starts`, `words` and `initials`, with the end of the last.
    bounds: [Vec<u32>; 3],
}

/// An index over rows.
#[derive(Debug)]
pub(super) struct Index {
    keys: Arena,
    initials: Arena,
    all: Lists,
    large: Option<Large>,
    groups: Option<Groups>,
}

impl Index {
    /// Indexes rows, with what many of them need or without; a value that occurs twice is there once, at its first place.
    pub(super) fn new(rows: &Rows, many: bool) -> Self {
        let count = place(rows.len());
        let mut keys = Arena::default();
        let mut words = Vec::new();
        let mut starts = Vec::with_capacity(rows.len());
        let mut has_hangul = false;
        for row in 0..count {
            let begin = keys.bytes.len();
            let mut seen = 0;
            encode(clip(rows.value(row), MAX_VALUE), &mut keys.bytes, |at| {
                if seen < MAX_WORDS {
                    words.push(Posting {
                        group: 0,
                        at: place(begin + at),
                        row,
                    });
                }
                seen += 1;
            });
            keys.end_row();
            has_hangul |= hangul(&keys.bytes[begin..]).0;
            starts.push(Posting {
                group: 0,
                at: place(begin),
                row,
            });
        }
        keys.shrink();
        let starts = sorted(&starts, &keys);
        let mut arena = Arena::default();
        let consonants = if has_hangul {
            consonants(&words, &keys, &mut arena)
        } else {
            Vec::new()
        };
        let mut numbers = HashMap::new();
        let groups: Vec<u32> = (0..count)
            .map(|row| match rows.group(row) {
                Some(name) => {
                    let next = place(numbers.len() + 1);
                    *numbers.entry(name.into_boxed_str()).or_insert(next)
                }
                None => 0,
            })
            .collect();
        let twice = Twice::find(rows, &keys, &starts, &groups);
        let lists = |gone: &HashSet<u32>, group: &dyn Fn(u32) -> u32| {
            let some = |postings: &[Posting], arena: &Arena| {
                let kept = postings.iter().filter(|p| !gone.contains(&p.row));
                let kept: Vec<Posting> = kept
                    .map(|p| Posting {
                        group: group(p.row),
                        ..*p
                    })
                    .collect();
                List::new(&sorted(&kept, arena))
            };
            let starts = some(&starts, &keys);
            let words = (words.len() > count as usize).then(|| some(&words, &keys));
            Lists {
                starts,
                words,
                initials: some(&consonants, &arena),
            }
        };
        let all = lists(&twice.in_all, &|_| 0);
        let large = many
            .then(|| Large::new(&all, &keys, &arena, rows.len()))
            .flatten();
        let groups = (!numbers.is_empty()).then(|| {
            let lists = lists(&twice.in_group, &|row| groups[row as usize]);
            let bounds = |list: &List| {
                let mut ends = vec![0u32; numbers.len() + 2];
                for row in list.rows(0..list.len()) {
                    ends[groups[*row as usize] as usize + 1] += 1;
                }
                let mut sum = 0;
                for end in &mut ends {
                    sum += *end;
                    *end = sum;
                }
                ends
            };
            let words = lists.words.as_ref().map(bounds);
            Groups {
                bounds: [
                    bounds(&lists.starts),
                    words.unwrap_or_default(),
                    bounds(&lists.initials),
                ],
                lists,
                numbers,
            }
        });
        Self {
            keys,
            initials: arena,
            all,
            large,
            groups,
        }
    }

    /// How much memory it takes, in bytes.
    pub(super) fn memory(&self) -> usize {
        let heavy = |heavy: &Heavy| heavy.capacity() * 32;
        let groups = self.groups.as_ref().map_or(0, |groups| {
            let names = groups.numbers.keys().map(|name| name.len() + 40);
            let bounds = groups.bounds.iter().map(|bounds| bounds.capacity() * 4);
            groups.lists.memory() + names.sum::<usize>() + bounds.sum::<usize>()
        });
        let large = self.large.as_ref().map_or(0, |large| {
            large.fst.as_bytes().len() + heavy(&large.words) + heavy(&large.initials)
        });
        self.keys.memory() + self.initials.memory() + self.all.memory() + groups + large
    }

    /// The rows that a `where` leaves: all, or those without a key and those with this one, folded.
    pub(super) fn views<'a>(&'a self, rows: &'a Rows, wanted: Option<&str>) -> Vec<View<'a>> {
        let (Some(groups), Some(wanted)) = (&self.groups, wanted) else {
            return vec![View {
                index: self,
                rows,
                lists: &self.all,
                large: self.large.as_ref(),
                bounds: [
                    0..self.all.starts.len(),
                    0..self.all.words.as_ref().map_or(0, List::len),
                    0..self.all.initials.len(),
                ],
            }];
        };
        let view = |number: u32| View {
            index: self,
            rows,
            lists: &groups.lists,
            large: None,
            bounds: std::array::from_fn(|list| {
                let bounds = &groups.bounds[list];
                let at = |n: u32| bounds.get(n as usize).copied().unwrap_or(0) as usize;
                at(number)..at(number + 1)
            }),
        };
        let some = groups.numbers.get(wanted).map(|number| view(*number));
        std::iter::once(view(0)).chain(some).collect()
    }
}

/// The postings of words by initial consonants, where there are any; their keys go into an arena of their own.
fn consonants(words: &[Posting], keys: &Arena, arena: &mut Arena) -> Vec<Posting> {
    let mut out = Vec::new();
    let mut unread = Vec::new();
    for of_row in words.chunk_by(|a, b| a.row == b.row) {
        let Some(first) = of_row.first() else {
            continue;
        };
        let begin = arena.bytes.len();
        let key = keys.key(first.row);
        if hangul(key).0 && initials(key, &mut arena.bytes) {
            for posting in of_row {
                let (before, word) = key.split_at((posting.at - first.at) as usize);
                unread.clear();
                initials(before, &mut unread);
                let skipped = unread.len();
                if initials(word, &mut unread) {
                    out.push(Posting {
                        at: place(begin + skipped),
                        ..*posting
                    });
                }
            }
        } else {
            arena.bytes.truncate(begin);
        }
        arena.end_row();
    }
    arena.shrink();
    out
}

/// Rows whose value is there already.
struct Twice {
    in_all: HashSet<u32>,
    /// In the same group, or among the rows without a key, which every group has.
    in_group: HashSet<u32>,
}

impl Twice {
    /// Equal values have equal keys, so they stand together.
    fn find(rows: &Rows, keys: &Arena, starts: &[Posting], groups: &[u32]) -> Self {
        let mut out = Self {
            in_all: HashSet::new(),
            in_group: HashSet::new(),
        };
        for run in starts.chunk_by(|a, b| keys.key(a.row) == keys.key(b.row)) {
            if run.len() < 2 {
                continue;
            }
            let value = |p: &Posting| rows.value(p.row);
            let group = |p: &Posting| groups[p.row as usize];
            let everywhere: HashSet<&str> =
                run.iter().filter(|p| group(p) == 0).map(value).collect();
            let mut values = HashSet::new();
            let mut grouped = HashSet::new();
            for posting in run {
                let (value, group) = (value(posting), group(posting));
                if !values.insert(value) {
                    out.in_all.insert(posting.row);
                }
                if !grouped.insert((value, group)) || group != 0 && everywhere.contains(value) {
                    out.in_group.insert(posting.row);
                }
            }
        }
        out
    }
}

impl Lists {
    fn memory(&self) -> usize {
        let words = self.words.as_ref().map_or(0, List::memory);
        self.starts.memory() + words + self.initials.memory()
    }
}

impl Large {
    /// None where the keys are not what an fst takes, which sorted keys always are.
    fn new(lists: &Lists, keys: &Arena, initials: &Arena, rows: usize) -> Option<Self> {
        let mut builder = Builder::memory();
        let mut before = None;
        for i in 0..lists.starts.len() {
            let key = lists.starts.key(keys, i);
            if before != Some(key) {
                builder.insert(key, i as u64).ok()?;
                before = Some(key);
            }
        }
        let mut bytes = builder.into_inner().ok()?;
        bytes.shrink_to_fit();
        Some(Self {
            fst: Fst::new(bytes).ok()?,
            words: lists
                .words
                .as_ref()
                .map(|words| heavy(words, keys, rows))
                .unwrap_or_default(),
            initials: heavy(&lists.initials, initials, rows),
        })
    }
}

/// Counts the rows below every prefix that has many postings.
fn heavy(list: &List, arena: &Arena, rows: usize) -> Heavy {
    let mut out = Heavy::new();
    let mut todo = vec![(0..list.len(), 0)];
    while let Some((range, depth)) = todo.pop() {
        if range.len() <= HEAVY {
            continue;
        }
        out.entry((range.start, range.end))
            .or_insert_with(|| count(list, std::slice::from_ref(&range), rows));
        let mut from = range.start;
        while from < range.end {
            let byte = list.key(arena, from).get(depth).copied();
            let to = split(from..range.end, |i| {
                list.key(arena, i).get(depth).copied() == byte
            });
            if byte.is_some() {
                todo.push((from..to, depth + 1));
            }
            from = to;
        }
    }
    out
}

/// How many rows some ranges have.
fn count(list: &List, ranges: &[Range<usize>], rows: usize) -> usize {
    let mut total = 0;
    each_row(list, ranges, rows, |_| total += 1);
    total
}

/// Calls once with every row of some ranges.
fn each_row(list: &List, ranges: &[Range<usize>], rows: usize, mut each: impl FnMut(u32)) {
    let postings = ranges.iter().map(ExactSizeIterator::len).sum::<usize>();
    let all = ranges.iter().flat_map(|range| list.rows(range.clone()));
    if postings <= FEW {
        let mut found: Vec<u32> = all.copied().collect();
        found.sort_unstable();
        found.dedup();
        found.into_iter().for_each(each);
        return;
    }
    let mut seen = vec![0u64; rows.div_ceil(64)];
    for row in all {
        let (word, bit) = (&mut seen[*row as usize / 64], 1 << (row % 64));
        if *word & bit == 0 {
            *word |= bit;
            each(*row);
        }
    }
}

/// Some rows of an index.
#[derive(Debug)]
pub(super) struct View<'a> {
    index: &'a Index,
    rows: &'a Rows,
    lists: &'a Lists,
    large: Option<&'a Large>,
    /// Where they stand in `starts`, `words` and `initials`.
    bounds: [Range<usize>; 3],
}

/// What a view has for a query.
#[derive(Debug, Default)]
pub(super) struct Found {
    /// The best rows, best first; all of them where there are fewer than an answer holds.
    pub(super) best: Vec<(Tier, u32)>,
    taken: HashSet<u32>,
    /// How many there are in all.
    pub(super) total: usize,
}

impl<'a> View<'a> {
    pub(super) fn value(&self, row: u32) -> &'a str {
        self.rows.value(row)
    }

    /// Keys that begin like the query.
    fn starts(&self, query: &Query) -> Range<usize> {
        match self.large {
            Some(large) => fst_prefix(&large.fst, self.lists.starts.len(), &query.key),
            None => self
                .lists
                .starts
                .prefix(&self.index.keys, self.bounds[0].clone(), &query.key),
        }
    }

    /// The list of words, and where these rows stand in it.
    fn words(&self) -> (&'a List, Range<usize>) {
        match &self.lists.words {
            Some(words) => (words, self.bounds[1].clone()),
            None => (&self.lists.starts, self.bounds[0].clone()),
        }
    }

    /// All that fits but almost: where it stands in which list.
    fn all(&self, query: &Query) -> (&'a List, Vec<Range<usize>>) {
        let (words, within) = self.words();
        if query.key.is_empty() {
            (&self.lists.starts, vec![self.bounds[0].clone()])
        } else if query.initials.is_some() {
            (&self.lists.initials, vec![self.initials(query)])
        } else if let Some(jamo) = &query.jamo {
            (words, words.unmarked_prefix(&self.index.keys, within, jamo))
        } else {
            (
                words,
                vec![words.prefix(&self.index.keys, within, &query.key)],
            )
        }
    }

    fn initials(&self, query: &Query) -> Range<usize> {
        let within = self.bounds[2].clone();
        match &query.initials {
            Some(typed) => self
                .lists
                .initials
                .prefix(&self.index.initials, within, typed),
            None => 0..0,
        }
    }

    /// What fits, but almost.
    pub(super) fn find(&self, query: &Query) -> Found {
        let mut found = Found::default();
        let (list, ranges) = self.all(query);
        found.total = self.count(list, &ranges);
        found.take(Tier::Prefix, &self.lists.starts, &[self.starts(query)]);
        let (words, within) = self.words();
        if let Some(words) = &self.lists.words
            && found.wants()
        {
            let range = words.prefix(&self.index.keys, within.clone(), &query.key);
            found.take(Tier::Word, words, &[range]);
        }
        if let Some(jamo) = &query.jamo
            && found.wants()
        {
            let ranges = words.unmarked_prefix(&self.index.keys, within, jamo);
            found.take(Tier::Jamo, words, &ranges);
        }
        if query.initials.is_some() && found.wants() {
            let range = self.initials(query);
            found.take(Tier::Initials, &self.lists.initials, &[range]);
        }
        found
    }

    /// Adds what almost fits to what fits, of which there must be less than an answer holds.
    pub(super) fn find_fuzzy(&self, fuzzy: &Fuzzy, found: &mut Found) {
        let ranges = self.fuzzy(fuzzy);
        let all: usize = ranges.iter().map(ExactSizeIterator::len).sum();
        let known = found
            .best
            .iter()
            // what begins like the query does so without an error
            .filter(|(tier, row)| *tier == Tier::Prefix || fuzzy.matches(self.index.keys.key(*row)))
            .count();
        found.total += all - known;
        found.take(Tier::Fuzzy, &self.lists.starts, &ranges);
    }

    fn fuzzy(&self, fuzzy: &Fuzzy) -> Vec<Range<usize>> {
        let starts = &self.lists.starts;
        match self.large {
            Some(large) => fuzzy.in_fst(&large.fst, starts.len()),
            None => fuzzy.in_list(starts, &self.index.keys, self.bounds[0].clone()),
        }
    }

    /// Calls with every value that fits, and, where asked, with those that almost do.
    pub(super) fn each(&self, query: &Query, fuzzy: Option<&Fuzzy>, mut each: impl FnMut(&'a str)) {
        let (list, ranges) = self.all(query);
        let mut fitting = HashSet::new();
        each_row(list, &ranges, self.rows.len(), |row| {
            if fuzzy.is_some() {
                fitting.insert(row);
            }
            each(self.rows.value(row));
        });
        let ranges = fuzzy.map(|fuzzy| self.fuzzy(fuzzy)).unwrap_or_default();
        for range in ranges {
            for row in self.lists.starts.rows(range) {
                if !fitting.contains(row) {
                    each(self.rows.value(*row));
                }
            }
        }
    }

    /// Whether a value is among these.
    pub(super) fn contains(&self, value: &str) -> bool {
        let mut key = Vec::new();
        encode(clip(value, MAX_VALUE), &mut key, |_| {});
        let starts = &self.lists.starts;
        let keys = &self.index.keys;
        let from = split(self.bounds[0].clone(), |i| starts.key(keys, i) < &*key);
        (from..self.bounds[0].end)
            .take_while(|i| starts.key(keys, *i) == key)
            .any(|i| {
                let rows = starts.rows(i..i + 1);
                rows.iter().any(|row| self.rows.value(*row) == value)
            })
    }

    fn count(&self, list: &List, ranges: &[Range<usize>]) -> usize {
        let postings = ranges.iter().map(ExactSizeIterator::len).sum();
        if std::ptr::eq(list, &raw const self.lists.starts) {
            return postings;
        }
        if let (Some(large), [range]) = (self.large, ranges) {
            let heavy = if std::ptr::eq(list, &raw const self.lists.initials) {
                &large.initials
            } else {
                &large.words
            };
            if let Some(count) = heavy.get(&(range.start, range.end)) {
                return *count;
            }
        }
        count(list, ranges, self.rows.len())
    }
}

impl Found {
    fn take(&mut self, tier: Tier, list: &List, ranges: &[Range<usize>]) {
        let most = MAX_VALUES - self.best.len();
        let best = list.best(ranges, most, &mut self.taken);
        self.best.extend(best.into_iter().map(|row| (tier, row)));
    }

    /// Whether an answer has room for what fits less well.
    fn wants(&self) -> bool {
        self.best.len() < MAX_VALUES.min(self.total)
    }
}
