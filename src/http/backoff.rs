//! Failed attempts to show who one is: after some of them the next has to wait, each time for longer.
//!
//! A credential that is right is never kept waiting by what others do wrong: whoever checks a long random token looks
//! whether it is known first, and asks here only how to answer one that is not. A password, which can be guessed and
//! is slow to check, is asked about before it is looked at.

use std::hash::{BuildHasher as _, RandomState};
use std::net::IpAddr;
use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant};

use lru::LruCache;

use super::rates::Network;

/// Addresses and names that are remembered.
const REMEMBERED: usize = 65_536;
/// Time without a failure after which those before are forgotten.
const FORGOTTEN: Duration = Duration::from_mins(15);

/// Whose attempts are counted.
#[derive(Debug, Clone, Copy)]
pub enum Attempt<'a> {
    /// Those from an address: 20 are free, then 1 s and twice as long each time, 5 minutes at most.
    Address(IpAddr),
    /// Tokens from an address that nobody has: 20 are free, then the same, 1 minute at most. They are counted apart, so that
    /// a program with an old token keeps nobody of its network from signing in.
    Token(IpAddr),
    /// Those for a name, from anywhere: 5 are free, then the same, 30 s at most, so that nobody is kept out by a stranger
    /// who types the name.
    Name(&'a str),
}

impl Attempt<'_> {
    fn free(self) -> u32 {
        match self {
            Self::Address(_) | Self::Token(_) => 20,
            Self::Name(_) => 5,
        }
    }

    fn longest(self) -> Duration {
        match self {
            Self::Address(_) => Duration::from_mins(5),
            Self::Token(_) => Duration::from_mins(1),
            Self::Name(_) => Duration::from_secs(30),
        }
    }
}

/// What is counted by. A name is kept as a hash: it may be long, and may be a password in the wrong field.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
enum Key {
    Address(Network),
    Token(Network),
    Name(u64),
}

#[derive(Debug, Clone, Copy)]
struct Failures {
    count: u32,
    last: Instant,
    until: Instant,
}

/// Counts failed attempts.
#[derive(Debug)]
pub struct Backoff {
    hasher: RandomState,
    failures: Mutex<LruCache<Key, Failures>>,
}

impl Default for Backoff {
    fn default() -> Self {
        Self::new()
    }
}

impl Backoff {
    /// Nobody has failed.
    pub fn new() -> Self {
        Self {
            hasher: RandomState::new(),
            failures: Mutex::new(LruCache::unbounded()),
        }
    }

    /// Whether another attempt is looked at now; how long to wait, when it is not.
    pub fn check(&self, attempt: Attempt<'_>) -> Result<(), Duration> {
        self.check_at(attempt, Instant::now())
    }

    /// Counts an attempt that failed.
    pub fn failed(&self, attempt: Attempt<'_>) {
        self.failed_at(attempt, Instant::now());
    }

    /// Forgets the failures of a name whose owner has come in. Those of an address stay: it may have one good name and
    /// guess at others.
    pub fn succeeded(&self, name: &str) {
        let key = self.key(Attempt::Name(name));
        self.lock().pop(&key);
    }

    /// Takes one failure back, of an attempt that was counted before it was looked at and was good.
    pub fn forgive(&self, attempt: Attempt<'_>) {
        let key = self.key(attempt);
        if let Some(failures) = self.lock().get_mut(&key) {
            failures.count = failures.count.saturating_sub(1);
            failures.until = failures.last;
        }
    }

    fn check_at(&self, attempt: Attempt<'_>, now: Instant) -> Result<(), Duration> {
        let key = self.key(attempt);
        match self.lock().peek(&key) {
            Some(failures) if failures.until > now => Err(failures.until - now),
            _ => Ok(()),
        }
    }

    fn failed_at(&self, attempt: Attempt<'_>, now: Instant) {
        let key = self.key(attempt);
        let mut failures = self.lock();
        let before = failures
            .get(&key)
            .filter(|before| now.saturating_duration_since(before.last) < FORGOTTEN);
        let count = before.map_or(1, |before| before.count.saturating_add(1));
        let over = count.saturating_sub(attempt.free());
        let wait = match over {
            0 => Duration::ZERO,
            over => Duration::from_secs(1u64 << (over - 1).min(16)).min(attempt.longest()),
        };
        failures.push(
            key,
            Failures {
                count,
                last: now,
                until: now + wait,
            },
        );
        if failures.len() > REMEMBERED {
            failures.pop_lru();
        }
    }

    fn key(&self, attempt: Attempt<'_>) -> Key {
        match attempt {
            Attempt::Address(ip) => Key::Address(ip.into()),
            Attempt::Token(ip) => Key::Token(ip.into()),
            Attempt::Name(name) => Key::Name(self.hasher.hash_one(name.to_lowercase())),
        }
    }

    fn lock(&self) -> std::sync::MutexGuard<'_, LruCache<Key, Failures>> {
        self.failures.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const ADDRESS: Attempt<'_> =
        Attempt::Address(IpAddr::V4(std::net::Ipv4Addr::new(192, 0, 2, 1)));

    const TOKEN: Attempt<'_> = Attempt::Token(IpAddr::V4(std::net::Ipv4Addr::new(192, 0, 2, 1)));

    #[test]
    fn some_failures_are_free_and_then_each_wait_is_twice_the_last_up_to_a_most() {
        for attempt in [ADDRESS, TOKEN, Attempt::Name("kim")] {
            let backoff = Backoff::new();
            let mut now = Instant::now();
            for _ in 0..attempt.free() {
                assert_eq!(backoff.check_at(attempt, now), Ok(()));
                backoff.failed_at(attempt, now);
            }
            for seconds in [1, 2, 4, 8, 16] {
                assert_eq!(backoff.check_at(attempt, now), Ok(()));
                backoff.failed_at(attempt, now);
                let wait = Duration::from_secs(seconds);
                assert_eq!(backoff.check_at(attempt, now), Err(wait));
                now += wait;
            }
            for _ in 0..100 {
                backoff.failed_at(attempt, now);
            }
            assert_eq!(backoff.check_at(attempt, now), Err(attempt.longest()));
        }
    }

    #[test]
    fn quiet_and_for_a_name_success_make_good_and_others_are_not_touched() {
        let backoff = Backoff::new();
        let now = Instant::now();
        for _ in 0..30 {
            backoff.failed_at(ADDRESS, now);
            backoff.failed_at(Attempt::Name("Kim"), now);
        }
        assert!(backoff.check_at(Attempt::Name("kim"), now).is_err());
        assert_eq!(backoff.check_at(Attempt::Name("lee"), now), Ok(()));
        assert_eq!(backoff.check_at(TOKEN, now), Ok(()));
        let other = Attempt::Address(IpAddr::from([192, 0, 2, 2]));
        assert_eq!(backoff.check_at(other, now), Ok(()));
        backoff.succeeded("KIM");
        assert_eq!(backoff.check_at(Attempt::Name("kim"), now), Ok(()));
        assert!(backoff.check_at(ADDRESS, now).is_err());
        let later = now + FORGOTTEN;
        backoff.failed_at(ADDRESS, later);
        assert_eq!(backoff.check_at(ADDRESS, later), Ok(()));
    }

    #[test]
    fn what_was_counted_too_early_is_taken_back() {
        let backoff = Backoff::new();
        for _ in 0..ADDRESS.free() {
            backoff.failed(ADDRESS);
        }
        backoff.failed(ADDRESS);
        assert!(backoff.check(ADDRESS).is_err());
        backoff.forgive(ADDRESS);
        assert_eq!(backoff.check(ADDRESS), Ok(()));
        // those before it stay
        backoff.failed(ADDRESS);
        assert!(backoff.check(ADDRESS).is_err());
    }

    #[test]
    fn a_million_names_take_no_more_memory() {
        let backoff = Backoff::new();
        let now = Instant::now();
        for number in 0..1_000_000 {
            backoff.failed_at(Attempt::Name(&number.to_string()), now);
        }
        assert!(backoff.lock().len() <= REMEMBERED);
    }
}
