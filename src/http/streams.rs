//! How many open streams of events one actor has, and one address.

use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};

use axum::body::{Body, Bytes, HttpBody};
use axum::http::header;
use axum::response::Response;
use http_body::{Frame, SizeHint};

use super::client::ClientAddress;
use super::crowd::{Crowd, Held};
use super::rates::{Network, too_many_requests};

/// Seconds after which a client that was refused a stream tries again.
const RETRY_AFTER: u64 = 60;

/// How many streams there may be. 0 is no limit.
#[derive(Debug, Clone)]
pub struct StreamSettings {
    /// Streams of one actor.
    pub per_actor: usize,
    /// Streams of one address.
    pub per_address: usize,
    /// Whether programs of this machine may have as many as there are.
    pub exempt_loopback: bool,
}

impl Default for StreamSettings {
    fn default() -> Self {
        Self {
            per_actor: 500,
            per_address: 2_500,
            exempt_loopback: true,
        }
    }
}

/// Counts open streams.
#[derive(Debug, Default)]
pub struct Streams {
    settings: StreamSettings,
    actors: Arc<Crowd<Arc<str>>>,
    addresses: Arc<Crowd<Network>>,
}

impl Streams {
    /// Nobody has a stream.
    pub fn new(settings: StreamSettings) -> Self {
        Self {
            settings,
            ..Self::default()
        }
    }

    /// The same response, counted for as long as it is sent, when it is a stream of events; a refusal in its place when
    /// its actor or its address has too many.
    pub(super) fn count(
        &self,
        actor: Option<&Arc<str>>,
        client: Option<ClientAddress>,
        response: Response,
    ) -> Response {
        let is_stream = response
            .headers()
            .get(header::CONTENT_TYPE)
            .is_some_and(|value| value.as_bytes().starts_with(b"text/event-stream"));
        if !is_stream {
            return response;
        }
        let client =
            client.filter(|client| !(self.settings.exempt_loopback && client.ip.is_loopback()));
        let of_address = client.map(|client| {
            self.addresses
                .take(client.ip.into(), most(self.settings.per_address))
        });
        let of_actor = actor.map(|name| {
            self.actors
                .take(name.clone(), most(self.settings.per_actor))
        });
        let refused = |whose| {
            let detail =
                format!("{whose} has too many open streams; close some, or try again later");
            too_many_requests(&detail, RETRY_AFTER)
        };
        let of_address = match of_address {
            Some(None) => return refused("this address"),
            Some(Some(held)) => Some(held),
            None => None,
        };
        let of_actor = match of_actor {
            Some(None) => return refused("this actor"),
            Some(Some(held)) => Some(held),
            None => None,
        };
        if of_address.is_none() && of_actor.is_none() {
            return response;
        }
        response.map(|body| {
            Body::new(Counted {
                body,
                _of_address: of_address,
                _of_actor: of_actor,
            })
        })
    }
}

fn most(limit: usize) -> usize {
    if limit == 0 { usize::MAX } else { limit }
}

/// A stream that counts until it is dropped.
struct Counted {
    body: Body,
    _of_address: Option<Held<Network>>,
    _of_actor: Option<Held<Arc<str>>>,
}

impl HttpBody for Counted {
    type Data = Bytes;
    type Error = axum::Error;

    fn poll_frame(
        self: Pin<&mut Self>,
        context: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, axum::Error>>> {
        Pin::new(&mut self.get_mut().body).poll_frame(context)
    }

    fn is_end_stream(&self) -> bool {
        self.body.is_end_stream()
    }

    fn size_hint(&self) -> SizeHint {
        self.body.size_hint()
    }
}
