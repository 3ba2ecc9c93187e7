//! Prompts that hit a limit lately, for whoever called them: their renders wait behind all others.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use super::Caller;

/// Pairs that are remembered; above it those that are over are forgotten, and all if none is.
const REMEMBERED: usize = 4096;
/// How long one is.
const FOR: Duration = Duration::from_mins(10);

/// The hash of a prompt's closure, with who called it: costly arguments of one caller say nothing of another's.
type Pair = (Arc<str>, Caller);

/// Pairs of prompt and caller.
#[derive(Debug, Default)]
pub(super) struct Suspects(Mutex<HashMap<Pair, Instant>>);

impl Suspects {
    pub(super) fn has(&self, closure: &Arc<str>, caller: &Caller, now: Instant) -> bool {
        let all = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        all.get(&(closure.clone(), caller.clone()))
            .is_some_and(|since| now.saturating_duration_since(*since) < FOR)
    }

    pub(super) fn add(&self, closure: Arc<str>, caller: Caller, now: Instant) {
        let mut all = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if all.len() >= REMEMBERED {
            all.retain(|_, since| now.saturating_duration_since(*since) < FOR);
        }
        if all.len() >= REMEMBERED {
            all.clear();
        }
        all.insert((closure, caller), now);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_suspect_is_one_for_a_while_and_for_one_caller() {
        let suspects = Suspects::default();
        let now = Instant::now();
        let (a, b): (Arc<str>, Arc<str>) = ("a".into(), "b".into());
        let (one, other) = (Caller::local(), Caller::address([127, 0, 0, 2].into()));
        suspects.add(a.clone(), one.clone(), now);
        assert!(suspects.has(&a, &one, now));
        assert!(!suspects.has(&b, &one, now) && !suspects.has(&a, &other, now));
        assert!(!suspects.has(&a, &one, now + FOR));
    }
}
