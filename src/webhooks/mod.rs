//! Outgoing webhooks: who wants to hear of a proposal or a publish is told by a signed request, which is tried again.
//!
//! What is told is what the audit notes. Each receiver has a queue of its own; what does not fit, and what nobody takes in
//! the end, is counted. Knows nothing of how a change is made.

mod address;
pub mod message;

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use hmac::{Hmac, KeyInit as _, Mac as _};
use reqwest::{Client, StatusCode, Url};
use sha2::Sha256;
use tokio::sync::{broadcast, mpsc};
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;

use crate::store::{AuditEntry, Store};

pub use address::is_private;
pub use message::{EVENTS, Event, Format};

/// Messages that wait for one receiver.
const QUEUE: usize = 256;
/// Time for one request.
const TIMEOUT: Duration = Duration::from_secs(10);
/// How often a message is tried.
const TRIES: u32 = 6;
/// The first wait between two tries; each next one is four times as long.
const WAIT: Duration = Duration::from_secs(2);

/// A receiver.
#[derive(Clone)]
pub struct Hook {
    /// Where it is; `http` or `https`.
    pub url: Url,
    /// What its messages are signed with; none where it asks for no signature.
    pub secret: Option<String>,
    /// What it wants to hear of.
    pub events: Vec<Event>,
    /// What a message looks like.
    pub format: Format,
    /// Whether it may be at an address that is no public one.
    pub private: bool,
}

impl std::fmt::Debug for Hook {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(&self.shown())
    }
}

impl Hook {
    /// The address without what may be a secret: a path and a query can be.
    pub fn shown(&self) -> String {
        let port = self
            .url
            .port()
            .map_or_else(String::new, |port| format!(":{port}"));
        let host = self.url.host_str().unwrap_or_default();
        format!("{}://{host}{port}", self.url.scheme())
    }
}

/// What is known of a receiver.
#[derive(Debug, Default)]
struct State {
    delivered: AtomicU64,
    lost: AtomicU64,
}

/// Tells receivers.
#[derive(Debug)]
pub struct Webhooks {
    hooks: Vec<(Hook, Arc<State>)>,
    /// The address of pages, for links.
    url: String,
}

impl Webhooks {
    /// For these receivers; `url` is where people reach this server.
    pub fn new(hooks: Vec<Hook>, url: String) -> Self {
        let hooks = hooks
            .into_iter()
            .map(|hook| (hook, Arc::default()))
            .collect();
        Self { hooks, url }
    }

    /// What was not told, for whoever looks whether all is well.
    pub fn messages(&self) -> Vec<String> {
        let lost = self.hooks.iter().filter_map(|(hook, state)| {
            let lost = state.lost.load(Ordering::Relaxed);
            (lost > 0).then(|| {
                format!(
                    "since the start {lost} webhook {} not taken by {}; the log says why",
                    if lost == 1 {
                        "message was"
                    } else {
                        "messages were"
                    },
                    hook.shown()
                )
            })
        });
        lost.collect()
    }

    /// How many messages were taken and how many were lost, for each receiver in order.
    pub fn counts(&self) -> Vec<(u64, u64)> {
        let count = |state: &State| {
            let load = |number: &AtomicU64| number.load(Ordering::Relaxed);
            (load(&state.delivered), load(&state.lost))
        };
        self.hooks.iter().map(|(_, state)| count(state)).collect()
    }

    /// Tells of what is noted until it is cancelled; what waits then is lost, and the log says so.
    pub async fn run(
        self: Arc<Self>,
        mut noted: broadcast::Receiver<AuditEntry>,
        store: Option<Store>,
        cancel: CancellationToken,
    ) {
        let tasks = TaskTracker::new();
        let mut queues = Vec::new();
        for (hook, state) in &self.hooks {
            let (queue, waiting) = mpsc::channel(QUEUE);
            let (hook, state, cancel) = (hook.clone(), state.clone(), cancel.clone());
            queues.push(queue);
            tasks.spawn(async move { deliver(&hook, &state, waiting, &cancel).await });
        }
        loop {
            let entry = match cancel.run_until_cancelled(noted.recv()).await {
                Some(Ok(entry)) => entry,
                Some(Err(broadcast::error::RecvError::Lagged(missed))) => {
                    tracing::error!(missed, "webhooks could not keep up with what was done");
                    for (_, state) in &self.hooks {
                        state.lost.fetch_add(missed, Ordering::Relaxed);
                    }
                    continue;
                }
                Some(Err(broadcast::error::RecvError::Closed)) | None => break,
            };
            let Some(event) = Event::of(&entry) else {
                continue;
            };
            let number = message::proposal(&entry);
            let title = match (number, &store) {
                (Some(number), Some(store)) => store.proposal(number).await.ok().flatten(),
                _ => None,
            }
            .map(|row| row.title);
            let message = message::Message::new(event, &entry, title, &self.url);
            for ((hook, state), queue) in self.hooks.iter().zip(&queues) {
                if hook.events.contains(&event) && queue.try_send(message.clone()).is_err() {
                    state.lost.fetch_add(1, Ordering::Relaxed);
                    tracing::error!(
                        url = hook.shown(),
                        event = event.as_str(),
                        "a webhook message was lost: {QUEUE} wait already"
                    );
                }
            }
        }
        drop(queues);
        tasks.close();
        tasks.wait().await;
    }
}

/// Takes messages to one receiver, one after the other.
async fn deliver(
    hook: &Hook,
    state: &State,
    mut waiting: mpsc::Receiver<message::Message>,
    cancel: &CancellationToken,
) {
    let client = match address::client(hook, TIMEOUT) {
        Ok(client) => client,
        Err(error) => {
            tracing::error!(url = hook.shown(), %error, "this webhook cannot be called");
            while waiting.recv().await.is_some() {
                state.lost.fetch_add(1, Ordering::Relaxed);
            }
            return;
        }
    };
    while let Some(message) = waiting.recv().await {
        if cancel.is_cancelled() || !take(&client, hook, &message, cancel).await {
            state.lost.fetch_add(1, Ordering::Relaxed);
        } else {
            state.delivered.fetch_add(1, Ordering::Relaxed);
        }
    }
}

/// Whether a receiver has taken a message, in the end.
async fn take(
    client: &Client,
    hook: &Hook,
    message: &message::Message,
    cancel: &CancellationToken,
) -> bool {
    let mut wait = WAIT;
    let mut why = String::new();
    for attempt in 1..=TRIES {
        let sent = cancel
            .run_until_cancelled(send(client, hook, message))
            .await;
        match sent {
            Some(Ok(status)) if status.is_success() => return true,
            Some(Ok(status)) => {
                why = format!("it answered {status}");
                let later = matches!(
                    status,
                    StatusCode::REQUEST_TIMEOUT | StatusCode::TOO_MANY_REQUESTS
                ) || status.is_server_error();
                if !later {
                    break;
                }
            }
            Some(Err(error)) => why = error,
            None => {
                why = "the server is stopping".into();
                break;
            }
        }
        tracing::warn!(url = hook.shown(), attempt, %why, "a webhook message was not taken");
        if attempt == TRIES {
            break;
        }
        if cancel
            .run_until_cancelled(tokio::time::sleep(wait))
            .await
            .is_none()
        {
            why = "the server is stopping".into();
            break;
        }
        wait *= 4;
    }
    tracing::error!(url = hook.shown(), id = message.id, %why, "a webhook message was lost");
    false
}

async fn send(
    client: &Client,
    hook: &Hook,
    message: &message::Message,
) -> Result<StatusCode, String> {
    let body = message.body(hook.format);
    let seconds = crate::clock::unix_seconds();
    let mut request = client
        .post(hook.url.clone())
        .header("Content-Type", "application/json")
        .header("X-Cuebook-Event", message.event.as_str())
        .header("X-Cuebook-Delivery", &message.id);
    if let Some(secret) = &hook.secret {
        request = request.header("X-Cuebook-Signature", signature(secret, seconds, &body)?);
    }
    // the address may be a secret, and is no part of what is logged
    let sent = request.body(body).send().await;
    sent.map(|response| response.status())
        .map_err(|error| address::reason(&error.without_url()))
}

/// `t=<seconds since 1970>,v1=<HMAC-SHA256 of the time, a dot and the body, in hex>`.
fn signature(secret: &str, seconds: u64, body: &[u8]) -> Result<String, String> {
    let mut mac = Hmac::<Sha256>::new_from_slice(secret.as_bytes())
        .map_err(|_| "the secret cannot be used".to_owned())?;
    mac.update(format!("{seconds}.").as_bytes());
    mac.update(body);
    let digits: String = mac
        .finalize()
        .into_bytes()
        .iter()
        .map(|b| format!("{b:02x}"))
        .collect();
    Ok(format!("t={seconds},v1={digits}"))
}
