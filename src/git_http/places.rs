//! How many exchanges run at a time, and how many wait.

use std::sync::Arc;
use std::time::Duration;

use tokio::sync::{OwnedSemaphorePermit, Semaphore};

/// Places of one kind of exchange.
#[derive(Debug)]
pub(super) struct Places {
    running: Arc<Semaphore>,
    waiting: Arc<Semaphore>,
    wait: Duration,
}

/// Why there is no place.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub(super) enum Full {
    /// As many wait as may.
    #[error("the server is busy with other")]
    Queue,
    /// None became free in time.
    #[error("the server was busy for too long with other")]
    Wait,
}

impl Places {
    /// So many at a time; so many more wait, so long.
    pub(super) fn new(running: usize, waiting: usize, wait: Duration) -> Self {
        Self {
            running: Arc::new(Semaphore::new(running)),
            waiting: Arc::new(Semaphore::new(waiting)),
            wait,
        }
    }

    /// A place, held until it is dropped; first come, first served.
    pub(super) async fn take(&self) -> Result<OwnedSemaphorePermit, Full> {
        if let Ok(place) = self.running.clone().try_acquire_owned() {
            return Ok(place);
        }
        let Ok(_waiting) = self.waiting.clone().try_acquire_owned() else {
            return Err(Full::Queue);
        };
        match tokio::time::timeout(self.wait, self.running.clone().acquire_owned()).await {
            Ok(Ok(place)) => Ok(place),
            Ok(Err(_)) | Err(_) => Err(Full::Wait),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test(start_paused = true)]
    async fn one_runs_one_waits_and_the_third_is_refused_at_once() {
        let places = Arc::new(Places::new(1, 1, Duration::from_secs(30)));
        let first = places.take().await.unwrap();
        let waiting = tokio::spawn({
            let places = places.clone();
            async move { places.take().await.map(drop) }
        });
        tokio::task::yield_now().await;
        assert_eq!(places.take().await.map(drop), Err(Full::Queue));
        drop(first);
        assert_eq!(waiting.await.unwrap(), Ok(()));
        let _held = places.take().await.unwrap();
        assert_eq!(places.take().await.map(drop), Err(Full::Wait));
    }
}
