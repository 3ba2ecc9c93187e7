//! Prompts that hit a limit lately: their renders wait behind all others.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

/// Prompts that are remembered; above it all are forgotten, and tell themselves again.
const REMEMBERED: usize = 4096;
/// How long one is.
const FOR: Duration = Duration::from_mins(10);

/// Prompts by the hash of their closure.
#[derive(Debug, Default)]
pub(super) struct Suspects(Mutex<HashMap<Arc<str>, Instant>>);

impl Suspects {
    pub(super) fn has(&self, closure: &str, now: Instant) -> bool {
        let all = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        all.get(closure)
            .is_some_and(|since| now.saturating_duration_since(*since) < FOR)
    }

    pub(super) fn add(&self, closure: &Arc<str>, now: Instant) {
        let mut all = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if all.len() >= REMEMBERED {
            all.clear();
        }
        all.insert(closure.clone(), now);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_suspect_is_one_for_a_while() {
        let suspects = Suspects::default();
        let now = Instant::now();
        suspects.add(&"a".into(), now);
        assert!(suspects.has("a", now) && !suspects.has("b", now));
        assert!(!suspects.has("a", now + FOR));
    }
}
