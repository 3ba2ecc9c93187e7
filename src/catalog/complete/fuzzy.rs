//! Keys that begin almost like a query: Levenshtein automata, run over sorted keys or over an fst.

use std::ops::Range;

use fst::raw::Fst;

use super::key::{MARK, Symbols, byte_of, width};
use super::list::{Arena, List, split};

/// What is looked at of a query, in characters; Hangul counts in jamo.
const MAX_LEN: usize = 24;

/// An automaton that knows how many edits a text is away from beginning like a query.
#[derive(Debug)]
pub(super) struct Fuzzy {
    query: Vec<char>,
    /// Where in the query each character stands that one byte of a key stands for: a bit for each place, by byte.
    singles: Box<[u32; 256]>,
    edits: usize,
}

/// Which parts of the query may be what was read so far: a bit for each, by edits.
#[derive(Debug, Clone, Copy)]
pub(super) struct State {
    reached: [u32; 3],
    /// The character that is being read, its bytes so far and how many are to come.
    bytes: [u8; 4],
    have: u8,
    need: u8,
}

impl Fuzzy {
    /// For the key of a query; none where it is too short for errors to be told from other words.
    pub(super) fn new(key: &[u8]) -> Option<Self> {
        let mut query: Vec<char> = Symbols::new(key)
            .filter(|(bytes, _)| *bytes != [MARK])
            .map(|(_, c)| c)
            .collect();
        let edits = match query.len() {
            0..4 => return None,
            8..=16 => 2,
            _ => 1,
        };
        query.truncate(MAX_LEN);
        let mut singles = Box::new([0; 256]);
        for (i, c) in query.iter().enumerate() {
            if let Some(byte) = byte_of(*c) {
                singles[usize::from(byte)] |= 1 << i;
            }
        }
        Some(Self {
            query,
            singles,
            edits,
        })
    }

    pub(super) fn start(&self) -> State {
        // the first characters of the query may be missing
        let reached = std::array::from_fn(|edits| {
            if edits <= self.edits {
                (1 << (edits + 1)) - 1
            } else {
                0
            }
        });
        State {
            reached,
            bytes: [0; 4],
            have: 0,
            need: 0,
        }
    }

    /// Whether a text that begins so far begins like the query, however it goes on.
    pub(super) fn is_match(&self, state: &State) -> bool {
        let end = 1 << self.query.len();
        state.reached.iter().any(|bits| bits & end != 0)
    }

    /// Whether no text that begins so can match.
    pub(super) fn is_dead(state: &State) -> bool {
        state.reached == [0; 3]
    }

    /// Reads a byte of a key.
    pub(super) fn step(&self, mut state: State, byte: u8) -> State {
        if state.need == 0 {
            if byte == MARK {
                return state;
            }
            let width = width(byte);
            if width == 1 {
                return self.read(state, self.singles[usize::from(byte)]);
            }
            state.bytes[0] = byte;
            state.have = 1;
            state.need = u8::try_from(width - 1).unwrap_or(0);
            return state;
        }
        if let Some(slot) = state.bytes.get_mut(usize::from(state.have)) {
            *slot = byte;
        }
        state.have += 1;
        state.need -= 1;
        if state.need > 0 {
            return state;
        }
        let bytes = state.bytes;
        let c = std::str::from_utf8(&bytes[..usize::from(state.have)])
            .ok()
            .and_then(|text| text.chars().next());
        self.read(state, places(&self.query, c.unwrap_or('\u{FFFD}')))
    }

    /// Reads a character that stands at these places of the query.
    fn read(&self, state: State, same: u32) -> State {
        let old = state.reached;
        let mut new = [0; 3];
        new[0] = (old[0] & same) << 1;
        for e in 1..=self.edits {
            // the same; one too many; another; one missing
            new[e] = (old[e] & same) << 1 | old[e - 1] | old[e - 1] << 1 | new[e - 1] << 1;
        }
        let all = (1u32 << (self.query.len() + 1)) - 1;
        State {
            reached: new.map(|bits| bits & all),
            ..state
        }
    }

    /// Whether a key begins like the query.
    pub(super) fn matches(&self, key: &[u8]) -> bool {
        let mut state = self.start();
        for byte in key {
            if self.is_match(&state) || Self::is_dead(&state) {
                break;
            }
            state = self.step(state, *byte);
        }
        self.is_match(&state)
    }

    /// The keys of a sorted list that begin like the query, as ranges that do not overlap.
    pub(super) fn in_list(
        &self,
        list: &List,
        arena: &Arena,
        within: Range<usize>,
    ) -> Vec<Range<usize>> {
        let mut out: Vec<Range<usize>> = Vec::new();
        // the states after each byte of the key before
        let mut states = vec![self.start()];
        let mut before: &[u8] = &[];
        let mut i = within.start;
        while i < within.end {
            let key = list.key(arena, i);
            let common = before.iter().zip(key).take_while(|(a, b)| a == b).count();
            states.truncate(common + 1);
            before = key;
            while let Some(state) = states.last()
                && !self.is_match(state)
                && !Self::is_dead(state)
                && let Some(byte) = key.get(states.len() - 1)
            {
                states.push(self.step(*state, *byte));
            }
            let Some(state) = states.last() else {
                break;
            };
            let (is_match, is_dead) = (self.is_match(state), Self::is_dead(state));
            let next = if is_match || is_dead {
                // what begins the same ends the same
                let shared = &key[..states.len() - 1];
                Self::end(list, arena, i..within.end, shared)
            } else {
                i + 1
            };
            if is_match {
                out.push(i..next);
            }
            i = next;
        }
        out
    }

    /// Where keys that begin with something end; they mostly end soon.
    fn end(list: &List, arena: &Arena, within: Range<usize>, shared: &[u8]) -> usize {
        let has = |i: usize| list.key(arena, i).starts_with(shared);
        let (mut known, mut step) = (within.start, 1);
        while known + step < within.end && has(known + step) {
            known += step;
            step *= 2;
        }
        split(known + 1..within.end.min(known + step), has)
    }

    /// The keys of an fst that begin like the query, as ranges of what it maps them to.
    pub(super) fn in_fst<D: AsRef<[u8]>>(&self, fst: &Fst<D>, len: usize) -> Vec<Range<usize>> {
        let mut out: Vec<Range<usize>> = Vec::new();
        let mut todo = vec![(fst.root().addr(), self.start(), 0, ordinal(len as u64))];
        while let Some((at, state, from, to)) = todo.pop() {
            if self.is_match(&state) {
                out.push(from..to);
                continue;
            }
            let node = fst.node(at);
            let mut end = to;
            for n in (0..node.len()).rev() {
                let transition = node.transition(n);
                let begin = from + ordinal(transition.out.value());
                let next = self.step(state, transition.inp);
                if !Self::is_dead(&next) {
                    todo.push((transition.addr, next, begin, end));
                }
                end = begin;
            }
        }
        out
    }
}

/// Where in a query a character stands: a bit for each place.
fn places(query: &[char], c: char) -> u32 {
    let same = (0..).zip(query);
    same.fold(0, |places, (i, q)| places | u32::from(*q == c) << i)
}

/// A place in a list, as an fst keeps it.
pub(super) fn ordinal(n: u64) -> usize {
    usize::try_from(n).unwrap_or(usize::MAX)
}

/// The keys of an fst that have a prefix, as the range of what it maps them to.
pub(super) fn fst_prefix<D: AsRef<[u8]>>(fst: &Fst<D>, len: usize, prefix: &[u8]) -> Range<usize> {
    let (mut from, mut to) = (0, len);
    let mut node = fst.root();
    for byte in prefix {
        let Some(n) = node.find_input(*byte) else {
            return 0..0;
        };
        if n + 1 < node.len() {
            to = from + ordinal(node.transition(n + 1).out.value());
        }
        let transition = node.transition(n);
        from += ordinal(transition.out.value());
        node = fst.node(transition.addr);
    }
    from..to
}
