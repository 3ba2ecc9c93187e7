//! Streams of events: what a listening client is connected to.
//!
//! A stream is polled only when its connection can take more, so a reader that has stopped holds
//! nothing but its own few hundred bytes, and nobody waits for it.

use std::collections::VecDeque;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use bytes::Bytes;
use futures_util::Stream;
use futures_util::stream;
use tokio::sync::watch;
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;

use super::clients::Client;
use super::methods::starting_hashes;
use super::notices::{self, Filter, Interest, Notice, Subscriptions, due};
use super::revision::Revision;
use super::session::{Session, lock};
use super::{Listening, Service};

/// Shortest time between two comments, whatever the setting says.
const SHORTEST: Duration = Duration::from_millis(100);

const COMMENT: Bytes = Bytes::from_static(b":\n\n");

static NUMBER: AtomicU64 = AtomicU64::new(1);

/// One place among the streams that may be open at a time.
#[derive(Debug)]
pub(super) struct Slot {
    service: Arc<Service>,
    number: u64,
}

impl Slot {
    /// None when all are taken.
    pub(super) fn take(service: &Arc<Service>) -> Option<Self> {
        let max = service.settings.max_streams;
        service
            .streams
            .fetch_update(Ordering::Relaxed, Ordering::Relaxed, |open| {
                (open < max).then_some(open + 1)
            })
            .ok()?;
        Some(Self {
            service: service.clone(),
            number: NUMBER.fetch_add(1, Ordering::Relaxed),
        })
    }
}

impl Slot {
    /// What wakes the stream when a new snapshot is in.
    fn changes(&self) -> watch::Receiver<u64> {
        self.service.waves.join(self.number, &self.service.registry)
    }
}

impl Slot {
    /// Says who is at the stream, for whoever looks at the server's activity.
    pub(super) fn is_of(&self, client: Client, revision: Revision) {
        let mut all = lock(&self.service.listening);
        all.insert(self.number, Listening { client, revision });
    }
}

impl Drop for Slot {
    fn drop(&mut self) {
        lock(&self.service.listening).remove(&self.number);
        self.service.streams.fetch_sub(1, Ordering::Relaxed);
    }
}

/// Who listens.
enum Listener {
    /// A session, by its `GET`.
    Session(Session),
    /// A legacy client without a session.
    Anonymous { told: u64 },
    /// A modern client, by `subscriptions/listen`.
    Subscription {
        id: Box<str>,
        interest: Interest,
        told: u64,
        subscriptions: Subscriptions,
    },
}

/// What is kept for one open stream.
struct Open {
    slot: Slot,
    listener: Listener,
    folder: Option<Arc<str>>,
    changes: watch::Receiver<u64>,
    shutdown: CancellationToken,
    /// The end of the session, where there is one.
    over: CancellationToken,
    ready: VecDeque<Bytes>,
    keep_alive: Duration,
    /// When something was last sent.
    sent: Instant,
    ended: bool,
}

/// The stream of a legacy `GET`.
pub(super) fn legacy(
    slot: Slot,
    session: Option<Session>,
    folder: Option<Arc<str>>,
    shutdown: CancellationToken,
) -> impl Stream<Item = Bytes> + Send + use<> {
    let changes = slot.changes();
    let listener = match session {
        Some(session) => {
            lock(&session.state).streams.push(slot.number);
            Listener::Session(session)
        }
        None => Listener::Anonymous {
            told: slot.service.registry.snapshot().generation,
        },
    };
    // The first bytes say that the stream is open, before there is anything to tell.
    run(Open::new(
        slot, listener, folder, changes, shutdown, COMMENT,
    ))
}

/// The stream of a modern `subscriptions/listen`.
pub(super) fn subscription(
    slot: Slot,
    id: &str,
    filter: &Filter,
    folder: Option<Arc<str>>,
    shutdown: CancellationToken,
) -> impl Stream<Item = Bytes> + Send + use<> {
    let changes = slot.changes();
    let snapshot = slot.service.registry.snapshot();
    let listener = Listener::Subscription {
        id: id.into(),
        interest: Interest {
            prompts: filter.prompts_list_changed,
            resources: filter.resources_list_changed,
        },
        told: snapshot.generation,
        subscriptions: starting_hashes(&snapshot.catalog, &filter.resource_subscriptions),
    };
    let first = notices::event(&notices::acknowledged(id, filter));
    run(Open::new(slot, listener, folder, changes, shutdown, first))
}

impl Open {
    fn new(
        slot: Slot,
        listener: Listener,
        folder: Option<Arc<str>>,
        changes: watch::Receiver<u64>,
        shutdown: CancellationToken,
        first: Bytes,
    ) -> Self {
        let over = match &listener {
            Listener::Session(session) => lock(&session.state).over(),
            Listener::Anonymous { .. } | Listener::Subscription { .. } => CancellationToken::new(),
        };
        // Spread over a quarter, so that ten thousand streams do not beat as one.
        let step = slot.service.settings.keep_alive.max(SHORTEST) / 256;
        let keep_alive = step * (224 + u32::try_from(slot.number % 64).unwrap_or(0));
        Self {
            slot,
            listener,
            folder,
            changes,
            shutdown,
            over,
            ready: VecDeque::from([first]),
            keep_alive,
            sent: Instant::now(),
            ended: false,
        }
    }

    /// Puts what the listener is owed into `ready`.
    fn collect(&mut self) {
        self.changes.borrow_and_update();
        let snapshot = self.slot.service.registry.snapshot();
        let folder = self.folder.as_deref();
        let (notices, id): (Vec<Notice>, Option<&str>) = match &mut self.listener {
            Listener::Session(session) => {
                let mut state = lock(&session.state);
                if state.streams.last() != Some(&self.slot.number) {
                    return;
                }
                let state = &mut *state;
                (
                    due(
                        &snapshot,
                        folder,
                        Interest::ALL,
                        &mut state.told,
                        &mut state.subscriptions,
                    ),
                    None,
                )
            }
            Listener::Anonymous { told } => (
                due(
                    &snapshot,
                    folder,
                    Interest::ALL,
                    told,
                    &mut Subscriptions::new(),
                ),
                None,
            ),
            Listener::Subscription {
                id,
                interest,
                told,
                subscriptions,
            } => (
                due(&snapshot, folder, *interest, told, subscriptions),
                Some(&**id),
            ),
        };
        self.ready
            .extend(notices.iter().map(|notice| notice.event(id)));
    }

    fn is_over(&self) -> bool {
        match &self.listener {
            Listener::Session(session) => self.slot.service.sessions.is_ended(session),
            Listener::Anonymous { .. } | Listener::Subscription { .. } => false,
        }
    }

    /// The end that the server makes: a modern request is complete.
    fn finish(&mut self) {
        self.ended = true;
        if let Listener::Subscription { id, .. } = &self.listener {
            self.ready
                .push_back(notices::event(&notices::completed(id)));
        }
    }
}

impl Drop for Open {
    fn drop(&mut self) {
        if let Listener::Session(session) = &self.listener {
            let mut state = lock(&session.state);
            state.streams.retain(|number| *number != self.slot.number);
            state.touch();
        }
    }
}

fn run(open: Open) -> impl Stream<Item = Bytes> + Send + use<> {
    stream::unfold(Box::new(open), |mut open| async move {
        loop {
            if let Some(event) = open.ready.pop_front() {
                open.sent = Instant::now();
                return Some((event, open));
            }
            if open.ended || open.is_over() {
                return None;
            }
            open.collect();
            if !open.ready.is_empty() {
                continue;
            }
            let Open {
                changes,
                shutdown,
                over,
                keep_alive,
                sent,
                ..
            } = &mut *open;
            let silent = tokio::select! {
                biased;
                () = shutdown.cancelled() => {
                    open.finish();
                    continue;
                }
                () = over.cancelled() => return None,
                changed = changes.changed() => {
                    if changed.is_err() {
                        open.finish();
                    }
                    false
                }
                () = tokio::time::sleep_until(*sent + *keep_alive) => true,
            };
            if silent {
                open.ready.push_back(COMMENT);
            }
        }
    })
}
