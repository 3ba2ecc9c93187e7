//! A line in which callers take turns, whatever each has put into it.

use std::collections::{HashMap, VecDeque};

use super::Caller;

/// What waits, by caller.
#[derive(Debug)]
pub(super) struct Line<T> {
    waiting: HashMap<Caller, VecDeque<(u64, T)>>,
    /// Callers that have something in line, each once, the next one first.
    turns: VecDeque<Caller>,
    length: usize,
}

impl<T> Default for Line<T> {
    fn default() -> Self {
        Self {
            waiting: HashMap::new(),
            turns: VecDeque::new(),
            length: 0,
        }
    }
}

impl<T> Line<T> {
    /// How many wait.
    pub(super) fn len(&self) -> usize {
        self.length
    }

    /// How many of one caller's wait.
    pub(super) fn of(&self, caller: &Caller) -> usize {
        self.waiting.get(caller).map_or(0, VecDeque::len)
    }

    /// Puts something at the end of its caller's.
    pub(super) fn push(&mut self, caller: Caller, id: u64, item: T) {
        let own = self.waiting.entry(caller.clone()).or_default();
        if own.is_empty() {
            self.turns.push_back(caller);
        }
        own.push_back((id, item));
        self.length += 1;
    }

    /// The first of the caller whose turn it is.
    pub(super) fn pop(&mut self) -> Option<T> {
        let caller = self.turns.pop_front()?;
        let own = self.waiting.get_mut(&caller)?;
        let (_, item) = own.pop_front()?;
        if own.is_empty() {
            self.waiting.remove(&caller);
        } else {
            self.turns.push_back(caller);
        }
        self.length -= 1;
        Some(item)
    }

    /// Takes something out before its turn.
    pub(super) fn remove(&mut self, caller: &Caller, id: u64) -> Option<T> {
        let own = self.waiting.get(caller)?;
        let at = own.iter().position(|(other, _)| *other == id)?;
        self.take(caller, at)
    }

    /// Takes out the last of the caller that has the most in line, when that is more than `caller` would have.
    pub(super) fn make_room(&mut self, caller: &Caller, exempt: &Caller) -> Option<T> {
        let (most, count) = self
            .waiting
            .iter()
            .filter(|(other, _)| *other != exempt)
            .map(|(other, own)| (other.clone(), own.len()))
            .max_by_key(|(_, count)| *count)?;
        if count <= self.of(caller) + 1 {
            return None;
        }
        self.take(&most, count - 1)
    }

    fn take(&mut self, caller: &Caller, at: usize) -> Option<T> {
        let own = self.waiting.get_mut(caller)?;
        let (_, item) = own.remove(at)?;
        if own.is_empty() {
            self.waiting.remove(caller);
            self.turns.retain(|other| other != caller);
        }
        self.length -= 1;
        Some(item)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn caller(n: u8) -> Caller {
        Caller::address(std::net::IpAddr::from([127, 0, 0, n]))
    }

    #[test]
    fn callers_take_turns() {
        let mut line = Line::default();
        for id in 0..4 {
            line.push(caller(1), id, id);
        }
        line.push(caller(2), 10, 10);
        line.push(caller(3), 20, 20);
        assert_eq!(line.remove(&caller(3), 20), Some(20));
        assert_eq!(line.remove(&caller(3), 20), None);
        assert_eq!(line.remove(&caller(1), 1), Some(1));
        let order: Vec<u64> = std::iter::from_fn(|| line.pop()).collect();
        assert_eq!(order, [0, 10, 2, 3]);
        assert_eq!(line.len(), 0);
    }

    #[test]
    fn room_is_made_by_whoever_has_the_most() {
        let mut line = Line::default();
        let builds = Caller::builds();
        for id in 0..3 {
            line.push(caller(1), id, id);
        }
        for id in 10..20 {
            line.push(builds.clone(), id, id);
        }
        assert_eq!(line.make_room(&caller(1), &builds), None);
        assert_eq!(line.make_room(&caller(2), &builds), Some(2));
        line.push(caller(2), 30, 30);
        // two and one: nobody has more than the other would
        assert_eq!(line.make_room(&caller(2), &builds), None);
        assert_eq!((line.of(&caller(1)), line.of(&caller(2))), (2, 1));
    }
}
