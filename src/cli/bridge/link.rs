//! The connection as a whole: the session, and the way back after an absence.

use std::collections::BTreeSet;
use std::sync::Arc;
use std::time::Duration;

use reqwest::header::HeaderValue;
use serde_json::{Value, json};
use tokio::time::timeout;

use super::memory::Asked;
use super::message::{self, Incoming, Message};
use super::remote::{Body, Fault, Headers, Reply};
use super::{Bridge, lock};

/// The most subscribed resources that are asked for again in a new session.
const MAX_SUBSCRIBED: usize = 1_000;
/// The most bytes of a modern client's `_meta` that are kept for the bridge's own requests.
const MAX_META: usize = 16 * 1024;

/// What the bridge knows of the client and of its session.
#[derive(Debug, Default)]
pub(super) struct State {
    /// The `initialize` line, kept to open the session again.
    handshake: Option<bytes::Bytes>,
    /// The revision that the client asked for, until one is settled.
    wanted: Option<String>,
    pub(super) session: Option<Session>,
    /// Whether the client has sent `notifications/initialized`.
    ready: bool,
    /// Whether a task follows the notification stream.
    following: bool,
    /// The `_meta` of a modern client, for requests of the bridge's own.
    meta: Option<Value>,
    /// Resources to subscribe to again.
    subscribed: BTreeSet<String>,
    /// The subscriptions of a modern client.
    pub(super) listens: Vec<Listen>,
}

/// A legacy session.
#[derive(Debug, Clone)]
pub(super) struct Session {
    /// Absent where the server keeps none.
    pub(super) id: Option<HeaderValue>,
    pub(super) version: String,
}

/// One `subscriptions/listen` of the client.
#[derive(Debug, Clone)]
pub(super) struct Listen {
    /// The request's id.
    pub(super) request: String,
    /// The id that notifications carry.
    pub(super) subscription: Value,
    /// What was asked for, or what the server granted of it.
    pub(super) wanted: Value,
}

impl State {
    pub(super) fn has_session(&self) -> bool {
        self.session.is_some()
    }
}

impl Bridge {
    /// The headers for a message and the number of the session they are for.
    pub(super) fn headers(&self, message: &Message) -> (Headers, u64) {
        let state = lock(&self.state);
        let number = *self.sessions.borrow();
        if let Some(version) = message.version() {
            let headers = Headers {
                version: Some(version.to_owned()),
                method: Some(message.method.clone()),
                name: message.name(),
                ..Headers::default()
            };
            return (headers, number);
        }
        if message.method == "initialize" {
            return (Headers::default(), number);
        }
        let headers = state
            .session
            .as_ref()
            .map_or_else(Headers::default, |session| Headers {
                session: session.id.clone(),
                version: Some(session.version.clone()),
                ..Headers::default()
            });
        (headers, number)
    }

    /// The revision a message is in, as far as replies differ by it.
    pub(super) fn era(&self, message: &Message) -> String {
        if let Some(version) = message.version() {
            return version.to_owned();
        }
        let state = lock(&self.state);
        let settled = state
            .session
            .as_ref()
            .map(|session| session.version.clone());
        settled.or_else(|| state.wanted.clone()).unwrap_or_default()
    }

    /// Keeps what is needed to speak for the client later.
    pub(super) fn note_era(&self, message: &Message) {
        let mut state = lock(&self.state);
        if message.version().is_some() {
            let meta = message.params.get("_meta").cloned().unwrap_or_default();
            if state.meta.as_ref() != Some(&meta) && meta.to_string().len() <= MAX_META {
                let mut meta = meta;
                if let Some(fields) = meta.as_object_mut() {
                    fields.remove("progressToken");
                }
                state.meta = Some(meta);
            }
        } else if message.method == "initialize" {
            state.handshake = Some(message.line.clone());
            state.wanted = message.text("protocolVersion").map(str::to_owned);
            state.session = None;
            state.ready = false;
        }
    }

    /// Whether a legacy message has to wait for a session: the client was greeted from memory.
    pub(super) fn needs_session(&self, message: &Message) -> bool {
        let state = lock(&self.state);
        message.version().is_none() && state.handshake.is_some() && state.session.is_none()
    }

    /// Notes the session that an `initialize` has opened.
    pub(super) fn session_opened(&self, message: &Message, result: &str, id: Option<HeaderValue>) {
        let result: Value = serde_json::from_str(result).unwrap_or_default();
        let version = result.get("protocolVersion").and_then(Value::as_str);
        let mut state = lock(&self.state);
        let wanted = message.text("protocolVersion").unwrap_or_default();
        let version = version.unwrap_or(wanted).to_owned();
        state.wanted = Some(version.clone());
        state.session = Some(Session { id, version });
        drop(state);
        self.sessions.send_modify(|number| *number += 1);
    }

    /// Notes a subscription, so that a new session has it too.
    pub(super) fn subscribed(&self, message: &Message, on: bool) {
        let Some(uri) = message.text("uri") else {
            return;
        };
        let subscribed = &mut lock(&self.state).subscribed;
        if !on {
            subscribed.remove(uri);
        } else if subscribed.len() < MAX_SUBSCRIBED {
            subscribed.insert(uri.to_owned());
        }
    }

    /// The client has taken the handshake: tell the server, before anything else, and open the stream.
    pub(super) async fn client_is_ready(self: &Arc<Self>, message: Message) {
        let first = {
            let mut state = lock(&self.state);
            state.ready = true;
            !std::mem::replace(&mut state.following, true)
        };
        let (headers, _) = self.headers(&message);
        if *self.up.borrow() && lock(&self.state).has_session() {
            let sent = timeout(
                self.options.timing.list_answer,
                self.remote.post(message.line, &headers),
            )
            .await;
            if let Ok(Err(fault)) = sent {
                tracing::debug!(
                    ?fault,
                    "the server does not know yet that the client is ready"
                );
            }
        }
        if first {
            tokio::spawn(Arc::clone(self).follow());
        }
    }

    /// Opens the session again, unless that has happened since it was number `session`.
    pub(super) async fn revive(self: &Arc<Self>, session: u64) -> Result<(), Fault> {
        let _one = self.reviving.lock().await;
        let (handshake, ready, subscribed) = {
            let state = lock(&self.state);
            if *self.sessions.borrow() != session && state.session.is_some() {
                return Ok(());
            }
            (
                state.handshake.clone(),
                state.ready,
                state.subscribed.clone(),
            )
        };
        let Some(line) = handshake else {
            return Err(Fault::SessionLost);
        };
        let Ok(message) = Message::parse(line.clone()) else {
            return Err(Fault::SessionLost);
        };
        let reply = self.remote.post(line, &Headers::default()).await?;
        let session = reply.session.clone();
        let text = answer(reply, &message.id).await?;
        let result = Incoming::parse(&text)
            .and_then(|incoming| incoming.result.map(|raw| raw.get().to_owned()));
        let Some(result) = result else {
            return Err(Fault::Refused(format!(
                "it does not open a session any more: {}",
                shorten(&text)
            )));
        };
        self.session_opened(&message, &result, session);
        tracing::info!("the session was opened again");
        let (headers, _) = self.headers(&Message {
            method: String::new(),
            ..message
        });
        if ready {
            self.remote
                .post(
                    message::notification("notifications/initialized", None).into(),
                    &headers,
                )
                .await?;
        }
        for uri in subscribed {
            let line = message::request(
                "cuebook-bridge",
                "resources/subscribe",
                &json!({"uri": uri}),
            );
            let reply = self.remote.post(line.into(), &headers).await?;
            answer(reply, "\"cuebook-bridge\"").await?;
        }
        Ok(())
    }

    /// Ends the session politely.
    pub(super) async fn end_session(&self) {
        let session = lock(&self.state).session.clone();
        let Some(Session {
            id: Some(id),
            version,
        }) = session
        else {
            return;
        };
        if !*self.up.borrow() {
            return;
        }
        let headers = Headers {
            session: Some(id),
            version: Some(version),
            ..Headers::default()
        };
        let _ = timeout(Duration::from_secs(2), self.remote.end(&headers)).await;
    }

    /// Notes that the server is away and sets out to find it again.
    pub(super) fn lost(&self, why: &str) {
        if self.up.send_replace(false) {
            tracing::warn!("{}", self.absence(why));
            self.trouble.notify_one();
        }
    }

    /// Finds the server again whenever it is lost, for as long as the bridge runs.
    pub(super) async fn supervise(self: Arc<Self>) {
        let stop = self.stop.clone();
        let work = async {
            loop {
                self.trouble.notified().await;
                let mut pause = self.options.timing.first_retry;
                while !*self.up.borrow() {
                    // Sooner where a request has got through meanwhile.
                    let _ = timeout(jitter(pause), self.trouble.notified()).await;
                    pause = (pause * 2).min(self.options.timing.last_retry);
                    match self.restore().await {
                        Ok(()) => tracing::info!("cuebook server at {} is back", self.remote.shown),
                        Err(fault) => tracing::debug!(?fault, "the server is still away"),
                    }
                }
            }
        };
        tokio::select! {
            () = stop.cancelled() => {}
            () = work => {}
        }
    }

    /// One try to get everything back.
    async fn restore(self: &Arc<Self>) -> Result<(), Fault> {
        let (legacy, has_session, meta) = {
            let state = lock(&self.state);
            (
                state.handshake.is_some(),
                state.has_session(),
                state.meta.clone(),
            )
        };
        let number = *self.sessions.borrow();
        let attempt = async {
            if legacy && !has_session {
                self.revive(number).await?;
            } else if legacy {
                match self.call("ping", &json!({})).await {
                    Err(Fault::SessionLost) => self.revive(number).await?,
                    outcome => drop(outcome?),
                }
            } else if let Some(meta) = meta {
                self.call("server/discover", &json!({"_meta": meta}))
                    .await?;
            }
            Ok(())
        };
        timeout(self.options.timing.list_answer, attempt)
            .await
            .unwrap_or_else(|_| Err(Fault::Away("no answer in time".to_owned())))?;
        self.up.send_replace(true);
        self.reconcile().await;
        Ok(())
    }

    /// A request of the bridge's own; gives the text of the answer.
    async fn call(&self, method: &str, params: &Value) -> Result<String, Fault> {
        const ID: &str = "cuebook-bridge";
        let line = message::request(ID, method, params);
        let Ok(message) = Message::parse(line.into()) else {
            return Err(Fault::SessionLost);
        };
        let (headers, _) = self.headers(&message);
        let reply = self.remote.post(message.line.clone(), &headers).await?;
        answer(reply, &message.id).await
    }

    /// Asks for every list again that the client has, and tells it which have changed.
    pub(super) async fn reconcile(self: &Arc<Self>) {
        let _one = self.reconciling.lock().await;
        let asked = lock(&self.memory).asked();
        let mut changed = BTreeSet::new();
        for (
            key,
            Asked {
                method,
                params,
                served,
            },
        ) in asked
        {
            let call = timeout(self.options.timing.list_answer, self.call(&method, &params)).await;
            let text = match call {
                Ok(Ok(text)) => text,
                Ok(Err(Fault::Away(why))) => return self.lost(&why),
                Ok(Err(_)) | Err(_) => continue,
            };
            let result = Incoming::parse(&text)
                .and_then(|incoming| incoming.result.map(|raw| raw.get().to_owned()));
            if result == served {
                continue;
            }
            changed.insert(match method.as_str() {
                "prompts/list" => Change::Prompts,
                "tools/list" => Change::Tools,
                _ => Change::Resources,
            });
            let mut memory = lock(&self.memory);
            if let Some(result) = &result {
                memory.keep(&method, key.clone(), result, self.seconds());
            }
            memory.note(
                key,
                Asked {
                    method,
                    params,
                    served: result,
                },
            );
            drop(memory);
            self.unsaved.notify_one();
        }
        for change in changed {
            self.tell(change).await;
        }
    }

    /// Tells the client that a list has changed, in the way it listens.
    async fn tell(&self, change: Change) {
        let (method, field) = change.names();
        let (ready, listens) = {
            let state = lock(&self.state);
            (state.ready, state.listens.clone())
        };
        if ready {
            self.write(message::notification(method, None)).await;
        }
        for listen in listens
            .iter()
            .filter(|listen| listen.wanted.get(field) == Some(&Value::Bool(true)))
        {
            self.write(message::notification(method, Some(&listen.subscription)))
                .await;
        }
    }
}

/// A kind of list that can change.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Change {
    Prompts,
    Resources,
    Tools,
}

impl Change {
    /// The notification and the field of a subscription that asks for it.
    fn names(self) -> (&'static str, &'static str) {
        match self {
            Self::Prompts => ("notifications/prompts/list_changed", "promptsListChanged"),
            Self::Resources => (
                "notifications/resources/list_changed",
                "resourcesListChanged",
            ),
            Self::Tools => ("notifications/tools/list_changed", "toolsListChanged"),
        }
    }
}

/// Half to all of a pause, so that a thousand bridges do not come back at once.
pub(super) fn jitter(pause: Duration) -> Duration {
    let random = getrandom::u32().unwrap_or(u32::MAX);
    pause / 2 + (pause / 2).mul_f64(f64::from(random) / f64::from(u32::MAX))
}

/// The answer in a reply to a request of the bridge's own; what else comes with it is of no use to anyone.
async fn answer(reply: Reply, id: &str) -> Result<String, Fault> {
    match reply.body {
        Body::Json(text) => Ok(text),
        Body::Empty => Err(Fault::Away(
            "it took the request and gave no answer".to_owned(),
        )),
        Body::Stream(mut events) => {
            while let Some(event) = events.next().await? {
                if Incoming::parse(&event.data).is_some_and(|incoming| incoming.answers(id)) {
                    return Ok(event.data);
                }
            }
            Err(Fault::Away("the answer broke off".to_owned()))
        }
    }
}

fn shorten(text: &str) -> &str {
    match text.char_indices().nth(200) {
        Some((end, _)) => &text[..end],
        None => text,
    }
}
