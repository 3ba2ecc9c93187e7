//! How slowly a request's body may come, for every handler that has no bound of its own.

use std::io;
use std::pin::Pin;
use std::task::{Context, Poll};
use std::time::Duration;

use axum::body::{Body, Bytes, HttpBody};
use axum::extract::Request;
use axum::middleware::Next;
use axum::response::Response;
use http_body::{Frame, SizeHint};
use tokio::time::{Instant, Sleep, sleep_until};

/// Time that a body may be waited for, and what each byte that comes adds to it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Pace {
    /// Time for the first bytes, and in all for a short body.
    pub patience: Duration,
    /// Bytes for which there is another second.
    pub bytes_per_second: u64,
}

impl Default for Pace {
    fn default() -> Self {
        Self {
            patience: Duration::from_secs(30),
            bytes_per_second: 16 * 1024,
        }
    }
}

impl Pace {
    /// Bounds the body of a request: one that comes too slowly ends with an error.
    pub async fn bound(self, request: Request, next: Next) -> Response {
        next.run(request.map(|body| self.of(body))).await
    }

    /// A body that ends with an error when it has been waited for too long.
    pub fn of(self, body: Body) -> Body {
        if body.is_end_stream() {
            return body;
        }
        Body::new(Paced {
            body,
            pace: self,
            received: 0,
            waited: Duration::ZERO,
            waiting: None,
        })
    }
}

/// A body whose waits are counted.
struct Paced {
    body: Body,
    pace: Pace,
    received: u64,
    /// Time that was waited for what is there.
    waited: Duration,
    /// Since when it is waited now, and until when.
    waiting: Option<(Instant, Pin<Box<Sleep>>)>,
}

impl Paced {
    /// What may still be waited.
    fn left(&self) -> Duration {
        let earned = Duration::from_secs(self.received / self.pace.bytes_per_second.max(1));
        (self.pace.patience + earned).saturating_sub(self.waited)
    }
}

impl HttpBody for Paced {
    type Data = Bytes;
    type Error = axum::Error;

    fn poll_frame(
        self: Pin<&mut Self>,
        context: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, axum::Error>>> {
        let this = self.get_mut();
        if let Poll::Ready(frame) = Pin::new(&mut this.body).poll_frame(context) {
            if let Some((since, _)) = this.waiting.take() {
                this.waited += since.elapsed();
            }
            if let Some(Ok(frame)) = &frame {
                this.received += frame.data_ref().map_or(0, |data| data.len() as u64);
            }
            return Poll::Ready(frame);
        }
        let left = this.left();
        let (_, sleep) = this.waiting.get_or_insert_with(|| {
            let now = Instant::now();
            (now, Box::pin(sleep_until(now + left)))
        });
        match sleep.as_mut().poll(context) {
            Poll::Pending => Poll::Pending,
            Poll::Ready(()) => Poll::Ready(Some(Err(axum::Error::new(io::Error::new(
                io::ErrorKind::TimedOut,
                "the body came too slowly",
            ))))),
        }
    }

    fn is_end_stream(&self) -> bool {
        self.body.is_end_stream()
    }

    fn size_hint(&self) -> SizeHint {
        self.body.size_hint()
    }
}

#[cfg(test)]
mod tests {
    use std::convert::Infallible;

    use futures_util::stream;
    use http_body_util::BodyExt as _;

    use super::*;

    /// A body of pieces, each after a while; whether it comes whole, and after how long.
    async fn read(pace: Pace, pieces: usize, size: usize, each: Duration) -> (bool, Duration) {
        let body = Body::from_stream(stream::unfold(0, move |number| async move {
            if number == pieces {
                return None;
            }
            tokio::time::sleep(each).await;
            Some((Ok::<_, Infallible>(vec![b'x'; size]), number + 1))
        }));
        let started = Instant::now();
        let read = pace.of(body).collect().await;
        (read.is_ok(), started.elapsed())
    }

    #[tokio::test(start_paused = true)]
    async fn a_slow_body_ends_and_a_long_one_that_keeps_coming_does_not() {
        let pace = Pace::default();
        let second = Duration::from_secs(1);
        // a byte a second
        assert_eq!(read(pace, 1000, 1, second).await, (false, second * 30));
        assert!(read(pace, 29, 1, second).await.0);
        // nothing at all
        assert_eq!(read(pace, 1, 1, second * 3600).await, (false, second * 30));
        // slow, and as fast as it must be
        assert!(read(pace, 600, 16 * 1024, second).await.0);
        assert!(!read(pace, 600, 8 * 1024, second).await.0);
    }

    #[tokio::test(start_paused = true)]
    async fn time_in_which_nobody_reads_does_not_count() {
        let body = Body::from_stream(stream::iter([Ok::<_, Infallible>("a"), Ok("b")]));
        let mut body = Pace::default().of(body);
        assert!(body.frame().await.unwrap().is_ok());
        tokio::time::sleep(Duration::from_secs(100)).await;
        assert!(body.frame().await.unwrap().is_ok());
        assert!(body.frame().await.is_none());
    }
}
