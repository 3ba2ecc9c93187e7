//! How many requests a client may make: by its address before anything is done for it, and by its actor once that is
//! known. What is kept is bounded, however many addresses come.

use std::hash::{BuildHasher as _, Hash, RandomState};
use std::net::IpAddr;
use std::num::NonZeroU32;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use axum::http::header::{self, HeaderValue};
use axum::http::{HeaderMap, StatusCode};
use axum::response::{IntoResponse as _, Response};
use governor::clock::{Clock, DefaultClock};
use governor::middleware::NoOpMiddleware;
use governor::nanos::Nanos;
use governor::state::StateStore;
use governor::{Quota, RateLimiter};
use lru::LruCache;

use super::client::ClientAddress;

/// Clients of a kind that are remembered; the one that was seen longest ago goes first, and begins anew when it comes
/// again.
const REMEMBERED: usize = 65_536;
/// Parts of what is remembered, each with a lock of its own.
const SHARDS: usize = 16;
/// Shortest time between two lines of the log about refused requests.
const SAID: Duration = Duration::from_mins(1);

/// What one client has at least: an IPv4 address, or the 64 bits of an IPv6 network.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Network {
    /// An address.
    V4(u32),
    /// The first half of an address.
    V6(u64),
}

impl From<IpAddr> for Network {
    fn from(ip: IpAddr) -> Self {
        match ip.to_canonical() {
            IpAddr::V4(ip) => Self::V4(ip.to_bits()),
            IpAddr::V6(ip) => Self::V6((ip.to_bits() >> 64) as u64),
        }
    }
}

/// How many requests there may be. A rate of 0 is no limit.
#[derive(Debug, Clone)]
pub struct RateSettings {
    /// Requests of one address in a minute.
    pub per_minute: u32,
    /// Requests of one address at once, when it has been quiet.
    pub burst: u32,
    /// Requests of one actor in a minute, from all addresses together.
    pub actor_per_minute: u32,
    /// Requests of one actor at once.
    pub actor_burst: u32,
    /// Whether programs of this machine may ask as often as they like.
    pub exempt_loopback: bool,
}

impl Default for RateSettings {
    fn default() -> Self {
        Self {
            per_minute: 12_000,
            burst: 4_000,
            actor_per_minute: 60_000,
            actor_burst: 20_000,
            exempt_loopback: true,
        }
    }
}

/// Why a request is not answered.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("{whose} made too many requests; try again in {seconds} s")]
pub struct TooMany {
    /// `this address`, or `this actor`.
    pub whose: &'static str,
    /// Seconds after which another attempt makes sense.
    pub seconds: u64,
}

/// Counts requests.
#[derive(Debug)]
pub struct Rates {
    addresses: Option<Limiter<Network, DefaultClock>>,
    actors: Option<Limiter<Arc<str>, DefaultClock>>,
    exempt_loopback: bool,
    refused: Mutex<Refused>,
}

/// Requests that were refused and not yet told in the log.
#[derive(Debug, Default)]
struct Refused {
    count: u64,
    said: Option<Instant>,
}

impl Default for Rates {
    fn default() -> Self {
        Self::new(&RateSettings::default())
    }
}

impl Rates {
    /// Nobody has asked for anything.
    pub fn new(settings: &RateSettings) -> Self {
        let clock = DefaultClock::default();
        Self {
            addresses: Limiter::new(settings.per_minute, settings.burst, clock.clone()),
            actors: Limiter::new(settings.actor_per_minute, settings.actor_burst, clock),
            exempt_loopback: settings.exempt_loopback,
            refused: Mutex::default(),
        }
    }

    /// Counts a request of an address; why it is refused, when there were too many.
    pub fn address(&self, client: ClientAddress) -> Result<(), TooMany> {
        if self.exempt_loopback && client.ip.is_loopback() {
            return Ok(());
        }
        let Some(limiter) = &self.addresses else {
            return Ok(());
        };
        limiter.check(&client.ip.into()).map_err(|wait| {
            self.say(client.ip);
            too_many("this address", wait)
        })
    }

    /// Counts a request of an actor who has shown a credential; why it is refused, when there were too many.
    pub fn actor(&self, name: &Arc<str>) -> Result<(), TooMany> {
        let Some(limiter) = &self.actors else {
            return Ok(());
        };
        limiter.check(name).map_err(|wait| {
            self.say(name);
            too_many("this actor", wait)
        })
    }

    /// Tells the log now and then: a line for each refused request would be work for whoever sends them.
    fn say(&self, last: impl std::fmt::Display) {
        let mut refused = self.refused.lock().unwrap_or_else(PoisonError::into_inner);
        refused.count += 1;
        if refused.said.is_none_or(|said| said.elapsed() >= SAID) {
            tracing::warn!(count = refused.count, %last, "refused requests of clients that make too many");
            *refused = Refused {
                count: 0,
                said: Some(Instant::now()),
            };
        }
    }
}

fn too_many(whose: &'static str, wait: Duration) -> TooMany {
    TooMany {
        whose,
        seconds: wait.as_secs() + 1,
    }
}

/// 429 with `Retry-After`, as problem details (RFC 9457).
pub fn too_many_requests(detail: &str, seconds: u64) -> Response {
    let status = StatusCode::TOO_MANY_REQUESTS;
    let body = serde_json::json!({
        "type": "about:blank",
        "title": "Too Many Requests",
        "status": status.as_u16(),
        "detail": detail,
    });
    let mut headers = HeaderMap::new();
    headers.insert(header::RETRY_AFTER, seconds.into());
    headers.insert(header::CACHE_CONTROL, HeaderValue::from_static("no-store"));
    headers.insert(
        header::CONTENT_TYPE,
        HeaderValue::from_static("application/problem+json"),
    );
    (status, headers, body.to_string()).into_response()
}

impl TooMany {
    /// The answer to the client.
    pub fn response(self) -> Response {
        too_many_requests(&self.to_string(), self.seconds)
    }
}

/// One rate for each key.
struct Limiter<K: Hash + Eq + Clone, C: Clock> {
    inner: RateLimiter<K, Bounded<K>, C, NoOpMiddleware<C::Instant>>,
}

impl<K: Hash + Eq + Clone, C: Clock> std::fmt::Debug for Limiter<K, C> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Limiter").finish_non_exhaustive()
    }
}

impl<K: Hash + Eq + Clone, C: Clock> Limiter<K, C> {
    /// None where there is no limit.
    fn new(per_minute: u32, burst: u32, clock: C) -> Option<Self> {
        let quota = Quota::per_minute(NonZeroU32::new(per_minute)?)
            .allow_burst(NonZeroU32::new(burst).unwrap_or(NonZeroU32::MIN));
        Some(Self {
            inner: RateLimiter::new(quota, Bounded::new(REMEMBERED), clock),
        })
    }

    /// Counts one; how long to wait, when there were too many.
    fn check(&self, key: &K) -> Result<(), Duration> {
        self.inner
            .check_key(key)
            .map_err(|until| until.wait_time_from(self.inner.clock().now()))
    }
}

/// What the limiter keeps of each key, in bounded memory.
struct Bounded<K> {
    hasher: RandomState,
    shards: Vec<Mutex<LruCache<K, Nanos>>>,
    most: usize,
}

impl<K: Hash + Eq + Clone> Bounded<K> {
    fn new(most: usize) -> Self {
        Self {
            hasher: RandomState::new(),
            shards: (0..SHARDS)
                .map(|_| Mutex::new(LruCache::unbounded()))
                .collect(),
            most: most.div_ceil(SHARDS),
        }
    }

    fn shard(&self, key: &K) -> &Mutex<LruCache<K, Nanos>> {
        // of a remainder nothing is lost
        #[allow(
            clippy::cast_possible_truncation,
            reason = "only its last bits are used"
        )]
        let number = self.hasher.hash_one(key) as usize % SHARDS;
        &self.shards[number]
    }
}

impl<K: Hash + Eq + Clone> StateStore for Bounded<K> {
    type Key = K;

    fn measure_and_replace<T, F, E>(&self, key: &K, f: F) -> Result<T, E>
    where
        F: Fn(Option<Nanos>) -> Result<(T, Nanos), E>,
    {
        let mut shard = self
            .shard(key)
            .lock()
            .unwrap_or_else(PoisonError::into_inner);
        if let Some(state) = shard.get_mut(key) {
            let (outcome, next) = f(Some(*state))?;
            *state = next;
            return Ok(outcome);
        }
        let (outcome, next) = f(None)?;
        if shard.len() >= self.most {
            shard.pop_lru();
        }
        shard.push(key.clone(), next);
        Ok(outcome)
    }
}

#[cfg(test)]
mod tests {
    use governor::clock::FakeRelativeClock;

    use super::*;

    fn limiter<K: Hash + Eq + Clone>(
        per_minute: u32,
        burst: u32,
    ) -> (Limiter<K, FakeRelativeClock>, FakeRelativeClock) {
        let clock = FakeRelativeClock::default();
        (
            Limiter::new(per_minute, burst, clock.clone()).unwrap(),
            clock,
        )
    }

    #[test]
    fn a_burst_is_served_and_then_the_rate_and_each_key_has_its_own() {
        let (limiter, clock) = limiter::<u32>(60, 3);
        for _ in 0..3 {
            assert_eq!(limiter.check(&1), Ok(()));
        }
        assert_eq!(limiter.check(&1), Err(Duration::from_secs(1)));
        assert_eq!(limiter.check(&2), Ok(()));
        // what was refused does not count
        clock.advance(Duration::from_secs(1));
        assert_eq!(limiter.check(&1), Ok(()));
        assert!(limiter.check(&1).is_err());
        clock.advance(Duration::from_mins(1));
        assert_eq!((0..5).filter(|_| limiter.check(&1).is_ok()).count(), 3);
    }

    #[test]
    fn millions_of_addresses_take_no_more_memory_and_the_busy_one_stays_known() {
        let (limiter, _) = limiter::<Network>(60, 3);
        let busy: Network = IpAddr::from([192, 0, 2, 1]).into();
        for _ in 0..3 {
            limiter.check(&busy).unwrap();
        }
        for number in 0..2_000_000u32 {
            let _ = limiter.check(&Network::V4(number));
            if number % 1000 == 0 {
                assert!(limiter.check(&busy).is_err());
            }
        }
        let kept: usize = limiter
            .inner
            .into_state_store()
            .shards
            .iter()
            .map(|shard| shard.lock().unwrap().len())
            .sum();
        assert!(kept <= REMEMBERED, "{kept}");
    }

    #[test]
    fn an_ipv6_client_is_its_64_bits_and_a_mapped_address_is_ipv4() {
        let network = |text: &str| Network::from(text.parse::<IpAddr>().unwrap());
        assert_eq!(network("2001:db8::1"), network("2001:db8::ffff:1:2:3"));
        assert_ne!(network("2001:db8::1"), network("2001:db8:0:1::1"));
        assert_eq!(network("::ffff:192.0.2.1"), network("192.0.2.1"));
        assert_ne!(network("192.0.2.1"), network("192.0.2.2"));
    }

    #[test]
    fn programs_of_this_machine_are_exempt_as_the_settings_say_and_zero_is_no_limit() {
        let address = |ip: &str| ClientAddress {
            ip: ip.parse().unwrap(),
            encrypted: false,
        };
        let mut settings = RateSettings {
            per_minute: 1,
            burst: 1,
            actor_per_minute: 0,
            ..RateSettings::default()
        };
        let rates = Rates::new(&settings);
        for ip in ["127.0.0.1", "::1"] {
            assert_eq!(
                [rates.address(address(ip)), rates.address(address(ip))],
                [Ok(()); 2]
            );
        }
        assert_eq!(rates.address(address("192.0.2.1")), Ok(()));
        let refused = rates.address(address("192.0.2.1")).unwrap_err();
        assert!(
            refused.seconds >= 59 && refused.whose == "this address",
            "{refused:?}"
        );
        let actor: Arc<str> = "kim".into();
        assert!((0..100).all(|_| rates.actor(&actor).is_ok()));

        settings.exempt_loopback = false;
        let rates = Rates::new(&settings);
        assert_eq!(rates.address(address("127.0.0.1")), Ok(()));
        assert!(rates.address(address("127.0.0.1")).is_err());
    }
}
