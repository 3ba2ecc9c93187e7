//! Which moves of main are accounted for: those that were told of, in whatever order they were, and those that a push was
//! accepted for. What is left was made past the gate.

use std::collections::{HashMap, VecDeque};
use std::sync::Arc;
use std::time::{Duration, Instant};

/// How long a move of main that nobody announced may still be told by whoever made it.
const UNTOLD: Duration = Duration::from_secs(3);
/// How long main may stay away from where it was told to have gone.
const TOLD: Duration = Duration::from_secs(30);
/// How long a move that was told is remembered while nothing leads to it.
const UNUSED: Duration = Duration::from_hours(1);
/// Moves of each kind that are remembered.
const REMEMBERED: usize = 256;

/// Main from one commit, or from nothing, to another.
pub(super) type Step = (Option<String>, String);

/// Who made a move, and from where.
pub(super) type Who = (Arc<str>, Option<String>);

/// A move that needs a row: told by nobody.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Found {
    /// Where main was before.
    pub(super) from: Option<String>,
    /// Where it went; none where it went away.
    pub(super) to: Option<String>,
    /// Whose push it is, where one was accepted.
    pub(super) who: Option<Who>,
    /// Whether main was known before.
    pub(super) begun: bool,
}

#[derive(Debug, Clone)]
struct Move {
    step: Step,
    since: Instant,
    /// None where it was told, else whose push was accepted.
    accepted: Option<Who>,
}

/// What is known of the moves of main.
#[derive(Debug)]
pub(super) struct Moves {
    /// How long a push that was accepted may still be told by whoever made it.
    untold_push: Duration,
    /// Up to here main is accounted for.
    last: Option<String>,
    begun: bool,
    known: VecDeque<Move>,
    /// Steps that got a row without having been told; who made them may still tell.
    found: VecDeque<Step>,
    /// Where main was seen, and since when; the oldest first.
    seen: VecDeque<(String, Instant)>,
}

fn remember<T>(all: &mut VecDeque<T>, one: T) {
    if all.len() >= REMEMBERED {
        all.pop_front();
    }
    all.push_back(one);
}

impl Moves {
    pub(super) fn new(untold_push: Duration) -> Self {
        Self {
            untold_push,
            last: None,
            begun: false,
            known: VecDeque::new(),
            found: VecDeque::new(),
            seen: VecDeque::new(),
        }
    }

    /// Where main was when it was last known.
    pub(super) fn start(&mut self, last: Option<String>) {
        self.begun |= last.is_some();
        self.last = last;
    }

    /// Up to where main is accounted for, when nothing is open.
    pub(super) fn settled(&self) -> Option<&str> {
        self.last.as_deref().filter(|_| self.seen.is_empty())
    }

    /// A push was accepted.
    pub(super) fn accept(&mut self, step: Step, who: Who, now: Instant) {
        self.known
            .retain(|known| known.accepted.is_none() || known.step != step);
        let accepted = Some(who);
        remember(
            &mut self.known,
            Move {
                step,
                since: now,
                accepted,
            },
        );
    }

    /// Main has moved, and there is a row for it.
    pub(super) fn tell(&mut self, step: Step, now: Instant) {
        self.known
            .retain(|known| known.accepted.is_none() || known.step != step);
        if let Some(at) = self.found.iter().position(|found| *found == step) {
            self.found.remove(at);
            return;
        }
        remember(
            &mut self.known,
            Move {
                step,
                since: now,
                accepted: None,
            },
        );
    }

    /// Main is at a commit. Returns the moves to which nothing known leads; `start` says that who made them has ended.
    pub(super) fn see(&mut self, tip: &str, start: bool, now: Instant) -> Vec<Found> {
        let before = self.seen.back().map(|(tip, _)| &**tip);
        if before.or(self.last.as_deref()) != Some(tip) && self.seen.len() < REMEMBERED {
            self.seen.push_back((tip.to_owned(), now));
        }
        let mut out = Vec::new();
        while let Some((tip, since)) = self.seen.front().cloned() {
            if !self.account(&tip, since, start, now, &mut out) {
                return out;
            }
            self.last = Some(tip);
            self.begun = true;
            self.seen.pop_front();
        }
        // away and back: told of both, or somebody took it back past the gate
        while let Some(circle) = self.path(tip, false) {
            self.take(&circle);
        }
        let left = self.known.iter().find(|known| {
            known.accepted.is_none()
                && known.step.0.as_deref() == Some(tip)
                && now.duration_since(known.since) >= TOLD
        });
        if let Some(since) = left.map(|known| known.since) {
            self.account(tip, since, start, now, &mut out);
        }
        self.known
            .retain(|known| known.accepted.is_some() || now.duration_since(known.since) < UNUSED);
        out
    }

    /// Accounts for main at a commit, from where it is accounted for; whether that could be done yet.
    fn account(
        &mut self,
        tip: &str,
        since: Instant,
        start: bool,
        now: Instant,
        out: &mut Vec<Found>,
    ) -> bool {
        if let Some(path) = self.path(tip, false) {
            self.take(&path);
            return true;
        }
        let untold_push = self.untold_push;
        let young = |known: &Move| {
            known.accepted.is_some() && now.duration_since(known.since) < untold_push
        };
        if let Some(path) = self.path(tip, true) {
            if path.iter().any(|at| young(&self.known[*at])) {
                return false;
            }
            let taken = self.take(&path);
            self.found(taken, out);
            return true;
        }
        // what is known at both ends, and a hole between them
        let mut ahead = Vec::new();
        let mut end = self.last.clone();
        while let Some(at) = self.next(&ahead, |known| {
            known.accepted.is_none() && known.step.0 == end
        }) {
            ahead.push(at);
            end = Some(self.known[at].step.1.clone());
        }
        let mut behind = Vec::new();
        let mut begin = Some(tip.to_owned());
        while let Some(at) = begin.as_ref().and_then(|begin| {
            let both = [&ahead[..], &behind[..]].concat();
            self.next(&both, |known| known.step.1 == *begin)
        }) {
            behind.push(at);
            begin.clone_from(&self.known[at].step.0);
        }
        let goes_on = self.known.iter().any(|k| young(k) && k.step.0 == end);
        let leads = behind.iter().any(|at| young(&self.known[*at]));
        let waited = now.duration_since(since) >= UNTOLD;
        if goes_on || leads || !(start || waited) {
            return false;
        }
        if let Some(to) = &begin {
            remember(&mut self.found, (end.clone(), to.clone()));
        }
        self.begun |= end.is_some();
        out.push(Found {
            from: end,
            to: begin,
            who: None,
            begun: self.begun,
        });
        self.begun = true;
        behind.reverse();
        let count = behind.len();
        behind.extend(ahead);
        let taken = self.take(&behind);
        self.found(taken.into_iter().take(count), out);
        true
    }

    /// The first known move that is so, and is not among some.
    fn next(&self, but: &[usize], is: impl Fn(&Move) -> bool) -> Option<usize> {
        (0..self.known.len()).find(|at| !but.contains(at) && is(&self.known[*at]))
    }

    /// Moves to be told now, because a push was accepted and nobody told of it.
    fn found(&mut self, moves: impl IntoIterator<Item = Move>, out: &mut Vec<Found>) {
        for Move { step, accepted, .. } in moves {
            if accepted.is_some() {
                remember(&mut self.found, step.clone());
                out.push(Found {
                    from: step.0,
                    to: Some(step.1),
                    who: accepted,
                    begun: true,
                });
            }
        }
    }

    /// The shortest way of at least one known move from where main is accounted for to a commit.
    fn path(&self, tip: &str, with_accepted: bool) -> Option<Vec<usize>> {
        let mut came: HashMap<&str, usize> = HashMap::new();
        let mut open = VecDeque::from([self.last.as_deref()]);
        while let Some(place) = open.pop_front() {
            for (at, known) in self.known.iter().enumerate() {
                let to = &*known.step.1;
                let usable = with_accepted || known.accepted.is_none();
                if !usable || known.step.0.as_deref() != place || came.contains_key(to) {
                    continue;
                }
                came.insert(to, at);
                if to != tip {
                    open.push_back(Some(to));
                    continue;
                }
                let mut path = vec![at];
                let mut place = known.step.0.as_deref();
                while let Some(from) = place.filter(|_| place != self.last.as_deref()) {
                    let at = *came.get(from)?;
                    path.push(at);
                    place = self.known[at].step.0.as_deref();
                }
                path.reverse();
                return Some(path);
            }
        }
        None
    }

    /// Takes known moves out, in the order of the way.
    fn take(&mut self, path: &[usize]) -> Vec<Move> {
        let taken = path.iter().map(|at| self.known[*at].clone()).collect();
        let mut at = 0;
        self.known.retain(|_| {
            at += 1;
            !path.contains(&(at - 1))
        });
        taken
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn step(from: &str, to: &str) -> Step {
        (Some(from.into()), to.into())
    }

    fn at(last: &str) -> (Moves, Instant) {
        let mut moves = Moves::new(Duration::from_secs(30));
        moves.start(Some(last.into()));
        (moves, Instant::now())
    }

    fn unknown(from: &str, to: &str) -> Found {
        Found {
            from: Some(from.into()),
            to: Some(to.into()),
            who: None,
            begun: true,
        }
    }

    const LONG: Duration = Duration::from_secs(31);

    #[test]
    fn what_was_told_is_told_in_any_order_and_at_any_age() {
        let (mut moves, start) = at("a");
        moves.tell(step("b", "c"), start);
        assert_eq!(moves.see("c", false, start), []);
        moves.tell(step("a", "b"), start + Duration::from_secs(1));
        assert_eq!(moves.see("c", false, start + LONG), []);
        assert_eq!(moves.settled(), Some("c"));
        // told before main is seen there
        moves.tell(step("c", "d"), start);
        assert_eq!(moves.see("c", false, start + Duration::from_secs(20)), []);
        assert_eq!(moves.see("d", false, start + LONG * 2), []);
        assert_eq!(moves.settled(), Some("d"));
        // away and back
        moves.tell(step("e", "d"), start);
        moves.tell(step("d", "e"), start);
        assert_eq!(moves.see("d", false, start + LONG * 3), []);
        assert!(moves.known.is_empty());
    }

    #[test]
    fn a_push_whose_hook_is_slow_is_waited_for_and_then_told_once() {
        let (mut moves, start) = at("a");
        let who: Who = ("mina".into(), None);
        moves.accept(step("a", "b"), who.clone(), start);
        moves.tell(step("b", "c"), start);
        assert_eq!(moves.see("c", true, start + Duration::from_secs(29)), []);
        let found = moves.see("c", false, start + LONG);
        let push = Found {
            who: Some(who),
            ..unknown("a", "b")
        };
        assert_eq!(found, [push]);
        assert_eq!(moves.settled(), Some("c"));
        // it tells after all, and that excuses nothing later
        moves.tell(step("a", "b"), start + LONG);
        assert!(moves.known.is_empty());
    }

    #[test]
    fn what_was_told_excuses_no_move_back_to_it() {
        let (mut moves, start) = at("a");
        moves.tell(step("a", "b"), start);
        assert_eq!(moves.see("b", false, start), []);
        // back to where it was told of a moment ago, and forth again
        let second = start + Duration::from_secs(1);
        assert_eq!(moves.see("a", false, second), []);
        assert_eq!(moves.see("b", false, second), []);
        let found = moves.see("b", false, second + UNTOLD);
        assert_eq!(found, [unknown("b", "a"), unknown("a", "b")]);
        // back before anybody looked
        moves.tell(step("b", "c"), start);
        assert_eq!(moves.see("b", false, start + LONG), [unknown("c", "b")]);
        assert_eq!(moves.see("b", false, start + LONG * 2), []);
    }

    #[test]
    fn a_hole_between_what_is_known_is_told_as_it_is() {
        let (mut moves, start) = at("a");
        moves.tell(step("a", "b"), start);
        moves.tell(step("x", "y"), start);
        assert_eq!(moves.see("y", false, start), []);
        let found = moves.see("y", false, start + UNTOLD);
        assert_eq!(found, [unknown("b", "x")]);
        assert_eq!(moves.settled(), Some("y"));
        assert_eq!(moves.see("z", true, start), [unknown("y", "z")]);
    }
}
