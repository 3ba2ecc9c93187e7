//! Wakes the streams of a publish in waves: ten thousand woken at once would keep every request waiting until the last of
//! them has been told.

use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Once};
use std::time::{Duration, Instant};

use tokio::sync::watch;

use crate::registry::Registry;

/// Groups that are woken one after the other; each is 1.5 ms of work where there are 10,000 streams.
const GROUPS: u64 = 64;
/// Streams that are woken together, where there are no more.
const AT_ONCE: usize = 256;

/// The groups, and the one task that wakes them.
#[derive(Debug)]
pub(super) struct Waves {
    groups: Arc<[watch::Sender<u64>]>,
    begun: Once,
    /// What the last waves took, in microseconds and one more; 0 before the first.
    took: Arc<AtomicU64>,
}

impl Default for Waves {
    fn default() -> Self {
        Self {
            groups: (0..GROUPS).map(|_| watch::Sender::new(0)).collect(),
            begun: Once::new(),
            took: Arc::default(),
        }
    }
}

impl Waves {
    /// What the last waves took, from when a change was seen until the last group was woken.
    pub(super) fn last(&self) -> Option<Duration> {
        let took = self.took.load(Ordering::Relaxed).checked_sub(1)?;
        Some(Duration::from_micros(took))
    }

    /// What wakes the stream of a number when a new snapshot is in. Called on the runtime; the first call begins the task,
    /// which ends with the registry.
    pub(super) fn join(&self, number: u64, registry: &Registry) -> watch::Receiver<u64> {
        self.begun.call_once(|| {
            let changes = registry.subscribe();
            tokio::spawn(wake(self.groups.clone(), changes, self.took.clone()));
        });
        let group = usize::try_from(number % GROUPS).unwrap_or_default();
        self.groups[group].subscribe()
    }
}

async fn wake(
    groups: Arc<[watch::Sender<u64>]>,
    mut changes: watch::Receiver<u64>,
    took: Arc<AtomicU64>,
) {
    while changes.changed().await.is_ok() {
        let began = Instant::now();
        let generation = *changes.borrow_and_update();
        let streams: usize = groups.iter().map(watch::Sender::receiver_count).sum();
        for group in &*groups {
            group.send_replace(generation);
            if streams > AT_ONCE {
                // goes on when what was woken has run and the sockets have been looked at
                tokio::task::yield_now().await;
            }
        }
        let micros = u64::try_from(began.elapsed().as_micros()).unwrap_or(u64::MAX - 1);
        took.store(micros + 1, Ordering::Relaxed);
    }
}
