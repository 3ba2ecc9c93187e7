//! The one place that reads the wall clock.

use std::time::{SystemTime, UNIX_EPOCH};

/// The time now.
#[allow(
    clippy::disallowed_methods,
    reason = "the one place that reads the clock"
)]
pub fn now() -> SystemTime {
    SystemTime::now()
}

/// Milliseconds since 1970-01-01 UTC.
pub fn unix_millis() -> i64 {
    now()
        .duration_since(UNIX_EPOCH)
        .map_or(0, |d| i64::try_from(d.as_millis()).unwrap_or(i64::MAX))
}

/// Seconds since 1970-01-01 UTC.
pub fn unix_seconds() -> u64 {
    now().duration_since(UNIX_EPOCH).map_or(0, |d| d.as_secs())
}
