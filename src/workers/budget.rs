//! What one caller may use of the workers: one preview at a time, and CPU time that comes back slowly.

use std::collections::HashMap;
use std::hash::Hash;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

/// Callers that are remembered; above it those with a full budget are forgotten.
const REMEMBERED: usize = 4096;

/// Budgets by caller.
#[derive(Debug)]
pub struct Budgets<K> {
    /// Milliseconds of CPU time that a caller has in a minute.
    per_minute_ms: u64,
    callers: Mutex<HashMap<K, Caller>>,
}

#[derive(Debug)]
struct Caller {
    /// Microseconds that are left; below zero after a render that took more than there was.
    left_us: i64,
    as_of: Instant,
    running: bool,
}

/// Why a caller has to wait.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum Spent {
    /// Another of its previews is running.
    #[error("1 preview of yours is running; at most 1 may be at a time")]
    Running,
    /// Its CPU time is used up.
    #[error(
        "your previews used {used_ms} ms of CPU time; at most {limit_ms} ms are given in a minute (preview_cpu_ms_per_minute)"
    )]
    Budget {
        /// Milliseconds used, those that have come back not counted.
        used_ms: u64,
        /// Milliseconds given.
        limit_ms: u64,
        /// Until there is some again.
        wait: Duration,
    },
}

impl Spent {
    /// Seconds after which another attempt makes sense.
    pub fn retry_after_seconds(&self) -> u64 {
        match self {
            Self::Running => 1,
            Self::Budget { wait, .. } => wait.as_secs() + 1,
        }
    }
}

/// A preview that runs; its caller may begin the next when this is dropped.
#[derive(Debug)]
pub struct Running<K: Eq + Hash> {
    budgets: Arc<Budgets<K>>,
    key: K,
    used: Duration,
}

impl<K: Eq + Hash> Running<K> {
    /// What it used.
    pub fn charge(&mut self, used: Duration) {
        self.used += used;
    }
}

impl<K: Eq + Hash + Clone> Budgets<K> {
    /// Nobody has used anything.
    pub fn new(per_minute_ms: u64) -> Self {
        Self {
            per_minute_ms,
            callers: Mutex::default(),
        }
    }

    /// Whether more than half of what a caller gets in a minute is left; why it has to wait, when nothing is.
    pub fn left(&self, key: &K, now: Instant) -> Result<bool, Spent> {
        let full = self.full();
        let callers = self.callers.lock().unwrap_or_else(PoisonError::into_inner);
        let left = callers
            .get(key)
            .map_or(full, |caller| caller.left_at(now, full));
        if left <= 0 {
            return Err(self.spent(left));
        }
        Ok(left > full / 2)
    }

    /// What a caller used. What is begun before it is told is not held back, so that it may be more than there was.
    pub fn charge(&self, key: &K, used: Duration, now: Instant) {
        if used.is_zero() {
            return;
        }
        let full = self.full();
        let mut callers = self.callers.lock().unwrap_or_else(PoisonError::into_inner);
        self.forget(&mut callers, now);
        let caller = callers.entry(key.clone()).or_insert(Caller {
            left_us: full,
            as_of: now,
            running: false,
        });
        caller.left_us = caller.left_at(now, full).saturating_sub(micros(used));
        caller.as_of = now;
    }

    fn full(&self) -> i64 {
        micros(Duration::from_millis(self.per_minute_ms))
    }

    fn forget(&self, callers: &mut HashMap<K, Caller>, now: Instant) {
        if callers.len() >= REMEMBERED {
            let full = self.full();
            callers.retain(|_, caller| caller.running || caller.left_at(now, full) < full);
        }
    }

    fn spent(&self, left: i64) -> Spent {
        let missing = (1 - left).unsigned_abs();
        let us_each_second = (self.per_minute_ms * 1000 / 60).max(1);
        Spent::Budget {
            used_ms: (self.full() - left).unsigned_abs() / 1000,
            limit_ms: self.per_minute_ms,
            wait: Duration::from_secs(missing / us_each_second),
        }
    }

    /// Begins a preview, when the caller may.
    pub fn begin(self: &Arc<Self>, key: K, now: Instant) -> Result<Running<K>, Spent> {
        let full = self.full();
        let mut callers = self.callers.lock().unwrap_or_else(PoisonError::into_inner);
        self.forget(&mut callers, now);
        let caller = callers.entry(key.clone()).or_insert(Caller {
            left_us: full,
            as_of: now,
            running: false,
        });
        if caller.running {
            return Err(Spent::Running);
        }
        caller.left_us = caller.left_at(now, full);
        caller.as_of = now;
        if caller.left_us <= 0 {
            return Err(self.spent(caller.left_us));
        }
        caller.running = true;
        Ok(Running {
            budgets: self.clone(),
            key,
            used: Duration::ZERO,
        })
    }
}

impl Caller {
    fn left_at(&self, now: Instant, full: i64) -> i64 {
        let since = micros(now.saturating_duration_since(self.as_of));
        let back = i128::from(since) * i128::from(full) / 60_000_000;
        let left = i128::from(self.left_us) + back;
        i64::try_from(left).unwrap_or(full).min(full)
    }
}

impl<K: Eq + Hash> Drop for Running<K> {
    fn drop(&mut self) {
        let mut callers = self
            .budgets
            .callers
            .lock()
            .unwrap_or_else(PoisonError::into_inner);
        if let Some(caller) = callers.get_mut(&self.key) {
            caller.running = false;
            caller.left_us = caller.left_us.saturating_sub(micros(self.used));
        }
    }
}

fn micros(time: Duration) -> i64 {
    i64::try_from(time.as_micros()).unwrap_or(i64::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_was_used_comes_back_in_a_minute() {
        let budgets = Budgets::new(600);
        let start = Instant::now();
        assert_eq!(budgets.left(&"a", start), Ok(true));
        budgets.charge(&"a", Duration::from_millis(300), start);
        assert_eq!(budgets.left(&"a", start), Ok(false));
        // two that ran at the same time
        budgets.charge(&"a", Duration::from_millis(200), start);
        budgets.charge(&"a", Duration::from_millis(200), start);
        let spent = Spent::Budget {
            used_ms: 700,
            limit_ms: 600,
            wait: Duration::from_secs(10),
        };
        assert_eq!(budgets.left(&"a", start), Err(spent));
        assert_eq!(budgets.left(&"b", start), Ok(true));
        assert_eq!(
            budgets.left(&"a", start + Duration::from_secs(11)),
            Ok(false)
        );
        assert_eq!(
            budgets.left(&"a", start + Duration::from_secs(70)),
            Ok(true)
        );
    }

    #[test]
    fn one_at_a_time_and_no_more_than_a_minute_gives() {
        let budgets = Arc::new(Budgets::new(600));
        let start = Instant::now();
        let mut first = budgets.begin("a", start).unwrap();
        assert_eq!(budgets.begin("a", start).unwrap_err(), Spent::Running);
        assert!(budgets.begin("b", start).is_ok());
        first.charge(Duration::from_millis(700));
        drop(first);
        let error = budgets.begin("a", start).unwrap_err();
        assert_eq!(
            error.to_string(),
            "your previews used 700 ms of CPU time; at most 600 ms are given in a minute (preview_cpu_ms_per_minute)"
        );
        // 100 ms are missing, and 10 ms come back each second
        assert_eq!(error.retry_after_seconds(), 11);
        assert!(budgets.begin("a", start + Duration::from_secs(9)).is_err());
        assert!(budgets.begin("a", start + Duration::from_secs(11)).is_ok());
    }
}
