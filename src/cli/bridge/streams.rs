//! The server's streams: the one of a legacy session, and the subscriptions of a modern client.
//!
//! Both outlast the server: a stream that ends is opened again, and what may have been missed in between is
//! made good by comparing lists.

use std::ops::ControlFlow;
use std::sync::Arc;
use std::time::Duration;

use serde_json::Value;
use tokio::time::{Instant, sleep};

use super::link::{Listen, Session, jitter};
use super::message::{self, INTERNAL_ERROR, Incoming, Message, SUBSCRIPTION};
use super::remote::{Body, Events, Fault, Headers, Reply};
use super::{Bridge, lock};

impl Bridge {
    /// Follows the notification stream of the legacy session, whichever that is at the time.
    pub(super) async fn follow(self: Arc<Self>) {
        let stop = self.hang_up.clone();
        tokio::select! {
            () = stop.cancelled() => {}
            () = self.follow_for_ever() => {}
        }
    }

    async fn follow_for_ever(self: &Arc<Self>) {
        let mut up = self.up.subscribe();
        let mut sessions = self.sessions.subscribe();
        let mut pause = Pause::new(
            self.options.timing.first_retry,
            self.options.timing.last_retry,
        );
        let (mut last_event, mut again) = (None, false);
        loop {
            if up.wait_for(|up| *up).await.is_err() {
                return;
            }
            let number = *sessions.borrow_and_update();
            let session = lock(&self.state).session.clone();
            let Some(Session { id, version }) = session else {
                // Greeted from memory; the session comes with the server.
                if sessions.changed().await.is_err() {
                    return;
                }
                continue;
            };
            let headers = Headers {
                session: id,
                version: Some(version),
                last_event: last_event.clone(),
                ..Headers::default()
            };
            pause.start();
            match self.remote.listen(&headers).await {
                Ok(Some(mut events)) => {
                    // Something may have happened while nobody listened.
                    if again {
                        tokio::spawn({
                            let bridge = Arc::clone(self);
                            async move { bridge.reconcile().await }
                        });
                    }
                    again = true;
                    tokio::select! {
                        () = self.pass_events(&mut events, &mut last_event) => {}
                        _ = sessions.changed() => last_event = None,
                    }
                }
                Ok(None) => {
                    tracing::info!(
                        "the server has no notification stream; changes are seen at the next list"
                    );
                    if sessions.changed().await.is_err() {
                        return;
                    }
                }
                Err(Fault::SessionLost) => {
                    last_event = None;
                    if let Err(Fault::Away(why)) = self.revive(number).await {
                        self.lost(&why);
                    }
                }
                Err(Fault::Away(why)) => self.lost(&why),
                Err(Fault::Refused(why)) => {
                    tracing::warn!("cuebook server at {}: {why}", self.remote.shown);
                }
            }
            pause.end().await;
        }
    }

    async fn pass_events(&self, events: &mut Events, last_event: &mut Option<String>) {
        while let Ok(Some(event)) = events.next().await {
            if event.id.is_some() {
                last_event.clone_from(&event.id);
            }
            if Incoming::parse(&event.data).is_some() {
                self.write(event.data).await;
            }
        }
    }

    /// Keeps a subscription of a modern client open across absences of the server.
    pub(super) async fn listen(self: &Arc<Self>, message: Message) {
        let Ok(_permit) = Arc::clone(&self.listens).try_acquire_owned() else {
            let text = "too many subscriptions; end one first";
            return self
                .write(message::error(&message.id, INTERNAL_ERROR, text))
                .await;
        };
        let stop = self.hang_up.clone();
        let _listed = Listed {
            bridge: self,
            request: &message.id,
        };
        tokio::select! {
            () = stop.cancelled() => {}
            () = self.listen_for_ever(&message) => {}
        }
    }

    async fn listen_for_ever(self: &Arc<Self>, message: &Message) {
        let mut up = self.up.subscribe();
        let mut pause = Pause::new(
            self.options.timing.first_retry,
            self.options.timing.last_retry,
        );
        // What the client knows its subscription by, once the server has granted it.
        let mut known: Option<Value> = None;
        loop {
            pause.start();
            let (headers, _) = self.headers(message);
            match self.remote.post(message.line.clone(), &headers).await {
                Ok(Reply {
                    body: Body::Stream(mut events),
                    ..
                }) => {
                    while let Ok(Some(event)) = events.next().await {
                        if self
                            .pass_subscribed(message, &event.data, &mut known)
                            .await
                            .is_break()
                        {
                            return;
                        }
                    }
                }
                Ok(Reply {
                    body: Body::Json(text),
                    session,
                }) => return self.finish(message, &text, session).await,
                Ok(Reply {
                    body: Body::Empty, ..
                })
                | Err(Fault::SessionLost) => {}
                Err(Fault::Away(why)) => self.lost(&why),
                Err(Fault::Refused(why)) => {
                    let text = format!("cuebook server at {}: {why}", self.remote.shown);
                    return self
                        .write(message::error(&message.id, INTERNAL_ERROR, &text))
                        .await;
                }
            }
            pause.end().await;
            if up.wait_for(|up| *up).await.is_err() {
                return;
            }
        }
    }

    /// Passes one message of a subscription on. Breaks off where the server says that it is over.
    async fn pass_subscribed(
        self: &Arc<Self>,
        message: &Message,
        text: &str,
        known: &mut Option<Value>,
    ) -> ControlFlow<()> {
        let Some(incoming) = Incoming::parse(text) else {
            return ControlFlow::Continue(());
        };
        if incoming.answers(&message.id) {
            if incoming.error.is_some() {
                self.finish(message, text, None).await;
                return ControlFlow::Break(());
            }
            // A graceful end: the server is about to stop, and will be back.
            return ControlFlow::Continue(());
        }
        let mut event: Value = serde_json::from_str(text).unwrap_or_default();
        let id = event
            .pointer("/params/_meta")
            .and_then(|meta| meta.get(SUBSCRIPTION))
            .cloned();
        if incoming.method.as_deref() == Some("notifications/subscriptions/acknowledged") {
            let granted = event
                .pointer("/params/notifications")
                .or(message.params.get("notifications"))
                .cloned();
            if known.is_some() {
                let bridge = Arc::clone(self);
                tokio::spawn(async move { bridge.reconcile().await });
                return ControlFlow::Continue(());
            }
            let subscription =
                id.unwrap_or_else(|| serde_json::from_str(&message.id).unwrap_or_default());
            *known = Some(subscription.clone());
            let wanted = granted.unwrap_or_default();
            lock(&self.state).listens.push(Listen {
                request: message.id.clone(),
                subscription,
                wanted,
            });
        } else if let (Some(known), Some(id)) = (known.as_ref(), id)
            && *known != id
        {
            // The client knows the subscription by its first id only.
            if let Some(meta) = event
                .pointer_mut("/params/_meta")
                .and_then(Value::as_object_mut)
            {
                meta.insert(SUBSCRIPTION.to_owned(), known.clone());
            }
            self.write(event.to_string()).await;
            return ControlFlow::Continue(());
        }
        self.write(text.to_owned()).await;
        ControlFlow::Continue(())
    }
}

/// Takes a subscription out of the list when it ends, however it ends.
struct Listed<'a> {
    bridge: &'a Bridge,
    request: &'a str,
}

impl Drop for Listed<'_> {
    fn drop(&mut self) {
        lock(&self.bridge.state)
            .listens
            .retain(|listen| listen.request != self.request);
    }
}

/// A pause between tries: doubled while they fail at once, the first again after one that lasted.
struct Pause {
    first: Duration,
    last: Duration,
    next: Duration,
    started: Instant,
}

impl Pause {
    fn new(first: Duration, last: Duration) -> Self {
        Self {
            first,
            last,
            next: first,
            started: Instant::now(),
        }
    }

    fn start(&mut self) {
        self.started = Instant::now();
    }

    async fn end(&mut self) {
        if self.started.elapsed() > self.last {
            self.next = self.first;
        }
        sleep(jitter(self.next)).await;
        self.next = (self.next * 2).min(self.last);
    }
}
