//! Sorted keys of rows, and the best rows of a range of them.

use std::cmp::Reverse;
use std::collections::{BinaryHeap, HashSet};
use std::ops::Range;

use super::key::MARK;

/// Keys of rows, one after the other.
#[derive(Debug, Default)]
pub(super) struct Arena {
    pub(super) bytes: Vec<u8>,
    /// Where each row's key ends.
    ends: Vec<u32>,
}

impl Arena {
    /// Says that the bytes since the last call are the key of the next row.
    pub(super) fn end_row(&mut self) {
        self.ends.push(place(self.bytes.len()));
    }

    pub(super) fn shrink(&mut self) {
        self.bytes.shrink_to_fit();
        self.ends.shrink_to_fit();
    }

    /// Where a row's key begins.
    pub(super) fn start(&self, row: u32) -> u32 {
        match row.checked_sub(1) {
            Some(before) => self.ends[before as usize],
            None => 0,
        }
    }

    /// A row's key.
    pub(super) fn key(&self, row: u32) -> &[u8] {
        self.tail(self.start(row), row)
    }

    fn tail(&self, at: u32, row: u32) -> &[u8] {
        &self.bytes[at as usize..self.ends[row as usize] as usize]
    }

    pub(super) fn memory(&self) -> usize {
        self.bytes.capacity() + self.ends.capacity() * 4
    }
}

/// The first place in a range where something, true before, is not.
pub(super) fn split(range: Range<usize>, is_before: impl Fn(usize) -> bool) -> usize {
    let (mut from, mut to) = (range.start, range.end);
    while from < to {
        let middle = usize::midpoint(from, to);
        if is_before(middle) {
            from = middle + 1;
        } else {
            to = middle;
        }
    }
    from
}

/// A number of rows or bytes of a values file, which is bounded far below 4 GiB.
pub(in super::super) fn place(n: usize) -> u32 {
    u32::try_from(n).unwrap_or(u32::MAX)
}

/// A row that is found by the part of its key that begins somewhere.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Posting {
    /// Rows of a group stand together.
    pub(super) group: u32,
    /// Where in the arena.
    pub(super) at: u32,
    pub(super) row: u32,
}

/// How many postings, or nodes, a node of the tree stands for.
const FANOUT: usize = 16;

/// A range that is looked through rather than searched.
const FEW: usize = if cfg!(test) { 4 } else { 512 };

/// Postings sorted by group and key, with a tree over them that knows the best row of each range.
#[derive(Debug, Default)]
pub(super) struct List {
    at: Vec<u32>,
    rows: Vec<u32>,
    /// The lowest row below each node; the first level stands above the postings.
    levels: Vec<Vec<u32>>,
}

/// Postings by group, key and row.
pub(super) fn sorted(postings: &[Posting], arena: &Arena) -> Vec<Posting> {
    // most comparisons end within eight bytes, and these are read in order
    let mut sorted: Vec<(u64, Posting)> = postings
        .iter()
        .map(|p| {
            let key = arena.tail(p.at, p.row);
            let mut head = [0; 8];
            let n = key.len().min(8);
            head[..n].copy_from_slice(&key[..n]);
            (u64::from_be_bytes(head), *p)
        })
        .collect();
    sorted.sort_unstable_by(|(a_head, a), (b_head, b)| {
        (a.group, a_head)
            .cmp(&(b.group, b_head))
            .then_with(|| arena.tail(a.at, a.row).cmp(arena.tail(b.at, b.row)))
            .then_with(|| (a.row, a.at).cmp(&(b.row, b.at)))
    });
    sorted.into_iter().map(|(_, posting)| posting).collect()
}

impl List {
    /// Takes sorted postings.
    pub(super) fn new(sorted: &[Posting]) -> Self {
        let rows: Vec<u32> = sorted.iter().map(|p| p.row).collect();
        let mut levels: Vec<Vec<u32>> = Vec::new();
        loop {
            let below = levels.last().unwrap_or(&rows);
            if below.len() <= FANOUT {
                break;
            }
            let level = below
                .chunks(FANOUT)
                .filter_map(|chunk| chunk.iter().min().copied())
                .collect();
            levels.push(level);
        }
        Self {
            at: sorted.iter().map(|p| p.at).collect(),
            rows,
            levels,
        }
    }

    pub(super) fn len(&self) -> usize {
        self.rows.len()
    }

    pub(super) fn rows(&self, range: Range<usize>) -> &[u32] {
        &self.rows[range]
    }

    pub(super) fn key<'a>(&self, arena: &'a Arena, i: usize) -> &'a [u8] {
        arena.tail(self.at[i], self.rows[i])
    }

    pub(super) fn memory(&self) -> usize {
        let levels = self.levels.iter().map(Vec::capacity).sum::<usize>();
        (self.at.capacity() + self.rows.capacity() + levels) * 4
    }

    /// Postings whose keys have a prefix.
    pub(super) fn prefix(
        &self,
        arena: &Arena,
        within: Range<usize>,
        prefix: &[u8],
    ) -> Range<usize> {
        let from = split(within.clone(), |i| self.key(arena, i) < prefix);
        let to = split(from..within.end, |i| self.key(arena, i).starts_with(prefix));
        from..to
    }

    /// Postings whose keys have a prefix when marks are not looked at; the ranges do not overlap.
    pub(super) fn unmarked_prefix(
        &self,
        arena: &Arena,
        within: Range<usize>,
        prefix: &[u8],
    ) -> Vec<Range<usize>> {
        let mut out = Vec::new();
        let mut todo = vec![(within, 0, 0)];
        while let Some((range, depth, done)) = todo.pop() {
            if range.is_empty() {
                continue;
            }
            let Some(&next) = prefix.get(done) else {
                out.push(range);
                continue;
            };
            let child = |byte: u8| {
                let byte_at = |i: usize| self.key(arena, i).get(depth).copied();
                let from = split(range.clone(), |i| byte_at(i) < Some(byte));
                from..split(from..range.end, |i| byte_at(i) == Some(byte))
            };
            if depth > 0 {
                todo.push((child(MARK), depth + 1, done));
            }
            todo.push((child(next), depth + 1, done + 1));
        }
        out
    }

    /// The best rows of some ranges that are not taken yet, at most so many, best first; they are taken then.
    pub(super) fn best(
        &self,
        ranges: &[Range<usize>],
        most: usize,
        taken: &mut HashSet<u32>,
    ) -> Vec<u32> {
        let mut out = Vec::new();
        if ranges.iter().map(ExactSizeIterator::len).sum::<usize>() <= FEW {
            out.extend(ranges.iter().flat_map(|r| &self.rows[r.clone()]));
            out.sort_unstable();
            out.dedup();
            out.retain(|row| !taken.contains(row));
            out.truncate(most);
            taken.extend(&out);
            return out;
        }
        // nodes by the best row below them, which may lie outside of the range: then it is a bound; of two that have
        // the same the deeper one is first, since it is nearer to the row itself
        let mut heap = BinaryHeap::new();
        let top = self.levels.len();
        for (n, range) in ranges.iter().enumerate() {
            self.open(&mut heap, range, n, top, 0..usize::MAX);
        }
        while out.len() < most
            && let Some(Reverse((row, level, node, n))) = heap.pop()
        {
            if level > 0 {
                let children = node * FANOUT..(node + 1) * FANOUT;
                self.open(&mut heap, &ranges[n], n, level - 1, children);
            } else if taken.insert(row) {
                out.push(row);
            }
        }
        out
    }

    /// Puts nodes of a level on the heap, where they reach into a range.
    fn open(
        &self,
        heap: &mut BinaryHeap<Reverse<(u32, usize, usize, usize)>>,
        range: &Range<usize>,
        n: usize,
        level: usize,
        nodes: Range<usize>,
    ) {
        if range.is_empty() {
            return;
        }
        let width = FANOUT.pow(u32::try_from(level).unwrap_or(0));
        let from = nodes.start.max(range.start / width);
        let to = nodes.end.min((range.end - 1) / width + 1);
        let best = match level.checked_sub(1) {
            Some(above) => &self.levels[above],
            None => &self.rows,
        };
        for (node, row) in (from..to).zip(&best[from..to]) {
            heap.push(Reverse((*row, level, node, n)));
        }
    }
}
