//! One message of the client: forwarded, answered, remembered; from memory where the server is away.

use std::sync::Arc;
use std::time::Duration;

use serde_json::{Value, json};
use tokio::time::{Instant, sleep, timeout};
use tokio_util::sync::CancellationToken;

use super::memory::{Asked, Remembered};
use super::message::{self, INTERNAL_ERROR, Incoming, Kind, Message};
use super::remote::{Body, Fault, Reply};
use super::{Bridge, MAX_PENDING, MIN_WEIGHT, lock};

/// The revisions that `initialize` may settle on.
const LEGACY: [&str; 4] = ["2024-11-05", "2025-03-26", "2025-06-18", "2025-11-25"];

/// Takes a request out of the table of flights when its task ends, however it ends.
struct Flight {
    bridge: Arc<Bridge>,
    id: String,
}

impl Drop for Flight {
    fn drop(&mut self) {
        lock(&self.bridge.flights).remove(&self.id);
    }
}

impl Bridge {
    /// Starts whatever a message wants done. Waits only where the client has too much pending.
    pub(super) async fn accept(self: &Arc<Self>, message: Message) {
        match (message.kind, message.method.as_str()) {
            (Kind::Notification, "notifications/cancelled") => self.cancel(message),
            (Kind::Notification, "notifications/initialized") => {
                self.client_is_ready(message).await;
            }
            (Kind::Notification | Kind::Response, _) => self.pass_on(message),
            (Kind::Request | Kind::Batch, _) => {
                let weight = message.line.len().clamp(MIN_WEIGHT, MAX_PENDING);
                let weight = u32::try_from(weight).unwrap_or(u32::MAX);
                let Ok(permit) = Arc::clone(&self.pending).acquire_many_owned(weight).await else {
                    return;
                };
                let cancelled = CancellationToken::new();
                let id = canonical(&message.id);
                lock(&self.flights).insert(id.clone(), cancelled.clone());
                let flight = Flight {
                    bridge: Arc::clone(self),
                    id,
                };
                let bridge = Arc::clone(self);
                self.tasks.spawn(async move {
                    let (_permit, _flight) = (permit, flight);
                    tokio::select! {
                        () = cancelled.cancelled() => {}
                        () = bridge.handle(message) => {}
                    }
                });
            }
        }
    }

    async fn handle(self: Arc<Self>, message: Message) {
        if message.kind == Kind::Batch {
            return self.handle_batch(message).await;
        }
        self.note_era(&message);
        if message.method == "subscriptions/listen" {
            return self.listen(message).await;
        }
        // What is known is given at once, without another try that would make an editor wait.
        if !*self.up.borrow()
            && message::is_kept_on_disk(&message.method)
            && self.answer_from_memory(&message).await
        {
            return;
        }
        let Ok(_active) = self.active.acquire().await else {
            return;
        };
        let allowed = self.allowance(&message);
        let outcome = timeout(allowed, self.ask(&message)).await;
        match outcome.unwrap_or_else(|_| Err(Fault::Away(format!("no answer in {allowed:?}")))) {
            Ok(()) => {
                if !*self.up.borrow() {
                    self.trouble.notify_one();
                }
            }
            Err(Fault::Away(why)) => {
                self.lost(&why);
                self.answer_alone(&message, &why).await;
            }
            Err(Fault::Refused(why)) => {
                let text = format!("cuebook server at {}: {why}", self.remote.shown);
                self.write(message::error(&message.id, INTERNAL_ERROR, &text))
                    .await;
            }
            Err(Fault::SessionLost) => {
                let text = format!(
                    "cuebook server at {} keeps losing the session",
                    self.remote.shown
                );
                self.write(message::error(&message.id, INTERNAL_ERROR, &text))
                    .await;
            }
        }
    }

    /// How long a request may take: less where memory can stand in.
    fn allowance(&self, message: &Message) -> Duration {
        let timing = &self.options.timing;
        let key = message.key(&self.era(message));
        let known = key.is_some_and(|key| lock(&self.memory).find(&key).is_some());
        if known {
            timing.list_answer
        } else {
            timing.answer
        }
    }

    /// Asks the server and passes the reply on; tries again where that may help.
    async fn ask(self: &Arc<Self>, message: &Message) -> Result<(), Fault> {
        let started = Instant::now();
        let mut pause = Duration::from_millis(50);
        let mut revived = false;
        loop {
            let (headers, session) = self.headers(message);
            let attempt = async {
                if message.method != "initialize" && self.needs_session(message) {
                    self.revive(session).await?;
                }
                let (headers, _) = if headers.session.is_none() {
                    self.headers(message)
                } else {
                    (headers, 0)
                };
                let reply = self.remote.post(message.line.clone(), &headers).await?;
                self.deliver(message, reply).await
            };
            match attempt.await {
                Err(Fault::SessionLost) if !revived => {
                    self.revive(session).await?;
                    revived = true;
                }
                Err(Fault::Away(_))
                    if *self.up.borrow()
                        && started.elapsed() + pause < self.options.timing.patience =>
                {
                    sleep(pause).await;
                    pause *= 2;
                }
                outcome => return outcome,
            }
        }
    }

    /// Passes the messages of a reply on, up to the answer.
    async fn deliver(self: &Arc<Self>, message: &Message, reply: Reply) -> Result<(), Fault> {
        match reply.body {
            Body::Json(text) => {
                self.finish(message, &text, reply.session).await;
                Ok(())
            }
            Body::Empty => Err(Fault::Away(
                "it took the request and gave no answer".to_owned(),
            )),
            Body::Stream(mut events) => {
                while let Some(event) = events.next().await? {
                    if Incoming::parse(&event.data)
                        .is_some_and(|incoming| incoming.answers(&message.id))
                    {
                        self.finish(message, &event.data, reply.session).await;
                        return Ok(());
                    }
                    self.write(event.data).await;
                }
                Err(Fault::Away("the answer broke off".to_owned()))
            }
        }
    }

    /// Remembers what has to be and gives the client its answer.
    pub(super) async fn finish(
        self: &Arc<Self>,
        message: &Message,
        text: &str,
        session: Option<reqwest::header::HeaderValue>,
    ) {
        let Some(incoming) = Incoming::parse(text) else {
            return;
        };
        if let Some(result) = incoming.result {
            let result = result.get();
            match message.method.as_str() {
                "initialize" => self.session_opened(message, result, session),
                "resources/subscribe" => self.subscribed(message, true),
                "resources/unsubscribe" => self.subscribed(message, false),
                _ => {}
            }
            self.remember(message, result);
        }
        // A server that could not read the id answers with null; the client would wait for ever.
        let line = match (incoming.id, incoming.result, incoming.error) {
            (Some(_), ..) => text.to_owned(),
            (None, Some(result), _) => message::reply(&message.id, result.get()),
            (None, None, Some(error)) => {
                format!(
                    r#"{{"jsonrpc":"2.0","id":{},"error":{}}}"#,
                    message.id,
                    error.get()
                )
            }
            (None, None, None) => return,
        };
        self.write(line).await;
    }

    fn remember(&self, message: &Message, result: &str) {
        let Some(key) = message.key(&self.era(message)) else {
            return;
        };
        let mut memory = lock(&self.memory);
        if message::is_list(&message.method) {
            memory.note(key.clone(), asked(message, Some(result)));
        }
        memory.keep(&message.method, key, result, self.seconds());
        drop(memory);
        self.unsaved.notify_one();
    }

    /// Answers a list or a handshake with what it was last; says whether that was known.
    async fn answer_from_memory(&self, message: &Message) -> bool {
        let Some(key) = message.key(&self.era(message)) else {
            return false;
        };
        let found = {
            let mut memory = lock(&self.memory);
            let mut found = memory.find(&key);
            if found.is_none() && message.method == "initialize" {
                found = memory.find_handshake();
            }
            if message::is_list(&message.method) {
                memory.note(
                    key,
                    asked(message, found.as_ref().map(|entry| entry.result.as_str())),
                );
            }
            found
        };
        match found {
            Some(Remembered { result, .. }) => {
                self.write(message::reply(&message.id, &result)).await;
                true
            }
            None => false,
        }
    }

    /// Answers without the server.
    async fn answer_alone(&self, message: &Message, why: &str) {
        if message::is_kept_on_disk(&message.method) && self.answer_from_memory(message).await {
            return;
        }
        let modern = message.version().is_some();
        let result = match message.method.as_str() {
            "prompts/get" => self.stale_prompt(message),
            // A client whose server was never seen still wants a connection, to hear of the lists later.
            "initialize" => Some(handshake(message)),
            // Completion never fails.
            "completion/complete" => {
                let mut result =
                    json!({"completion": {"values": [], "total": 0, "hasMore": false}});
                if modern {
                    result["resultType"] = json!("complete");
                }
                Some(result.to_string())
            }
            // Clients that ping end the connection when nothing comes back.
            "ping" | "logging/setLevel" if !modern => Some("{}".to_owned()),
            "resources/subscribe" | "resources/unsubscribe" if !modern => {
                self.subscribed(message, message.method == "resources/subscribe");
                Some("{}".to_owned())
            }
            _ => None,
        };
        let line = match result {
            Some(result) => message::reply(&message.id, &result),
            None => message::error(&message.id, INTERNAL_ERROR, &self.absence(why)),
        };
        self.write(line).await;
    }

    /// What to tell someone who wants what cannot be had.
    pub(super) fn absence(&self, why: &str) -> String {
        format!(
            "cuebook server at {} cannot be reached: {why}; retrying",
            self.remote.shown
        )
    }

    /// The last rendering for the same arguments, marked as old.
    fn stale_prompt(&self, message: &Message) -> Option<String> {
        let key = message.key(&self.era(message))?;
        let Remembered { result, at } = lock(&self.memory).find(&key)?;
        let mut result: Value = serde_json::from_str(&result).ok()?;
        let meta = result
            .as_object_mut()?
            .entry("_meta")
            .or_insert_with(|| json!({}));
        let meta = meta.as_object_mut()?;
        meta.insert("dev.cuebook/stale".to_owned(), json!(true));
        meta.insert("dev.cuebook/staleSince".to_owned(), json!(utc(at)));
        Some(result.to_string())
    }

    /// Forwards a notification or a response; nobody waits for an answer.
    fn pass_on(self: &Arc<Self>, message: Message) {
        if !*self.up.borrow() {
            return;
        }
        let bridge = Arc::clone(self);
        self.tasks.spawn(async move {
            let (headers, _) = bridge.headers(&message);
            let outcome = timeout(
                bridge.options.timing.list_answer,
                bridge.remote.post(message.line, &headers),
            );
            if let Ok(Err(fault)) = outcome.await {
                tracing::debug!(
                    method = message.method,
                    ?fault,
                    "a notification was not delivered"
                );
            }
        });
    }

    /// Gives a request up. In the modern era hanging up is the message; before, the server is told as well.
    fn cancel(self: &Arc<Self>, message: Message) {
        let id = message
            .params
            .get("requestId")
            .map(Value::to_string)
            .unwrap_or_default();
        let flight = lock(&self.flights).remove(&id);
        let Some(flight) = flight else { return };
        if lock(&self.state).has_session() {
            self.pass_on(message);
        }
        flight.cancel();
    }

    /// Gives everything up.
    pub(super) fn cancel_all(&self) {
        for (_, flight) in lock(&self.flights).drain() {
            flight.cancel();
        }
    }

    /// Forwards a batch; without the server, every request in it is an error.
    async fn handle_batch(self: Arc<Self>, batch: Message) {
        let (headers, session) = self.headers(&batch);
        let mut outcome = self.remote.post(batch.line.clone(), &headers).await;
        if outcome
            .as_ref()
            .is_err_and(|fault| *fault == Fault::SessionLost)
            && self.revive(session).await.is_ok()
        {
            outcome = self
                .remote
                .post(batch.line.clone(), &self.headers(&batch).0)
                .await;
        }
        let why = match outcome {
            Ok(Reply {
                body: Body::Empty, ..
            }) => return,
            Ok(Reply {
                body: Body::Json(text),
                ..
            }) => return self.write(text).await,
            Ok(Reply {
                body: Body::Stream(mut events),
                ..
            }) => {
                while let Ok(Some(event)) = events.next().await {
                    self.write(event.data).await;
                }
                return;
            }
            Err(Fault::Away(why)) => {
                self.lost(&why);
                self.absence(&why)
            }
            Err(Fault::Refused(why)) => format!("cuebook server at {}: {why}", self.remote.shown),
            Err(Fault::SessionLost) => "the session was lost".to_owned(),
        };
        let messages: Vec<&serde_json::value::RawValue> =
            serde_json::from_slice(&batch.line).unwrap_or_default();
        let errors: Vec<String> = messages
            .into_iter()
            .filter_map(|raw| Message::parse(raw.get().to_owned().into()).ok())
            .filter(|message| message.kind == Kind::Request)
            .map(|message| message::error(&message.id, INTERNAL_ERROR, &why))
            .collect();
        if !errors.is_empty() {
            self.write(format!("[{}]", errors.join(","))).await;
        }
    }
}

/// An id in one spelling, since a cancellation may write it otherwise than the request did.
fn canonical(id: &str) -> String {
    serde_json::from_str::<Value>(id).map_or_else(|_| id.to_owned(), |id| id.to_string())
}

fn asked(message: &Message, served: Option<&str>) -> Asked {
    Asked {
        method: message.method.clone(),
        params: message.params.clone(),
        served: served.map(str::to_owned),
    }
}

/// What a Cuebook server says of itself, for a client that must not wait for it.
fn handshake(message: &Message) -> String {
    let wanted = message.text("protocolVersion").unwrap_or_default();
    let version = LEGACY
        .iter()
        .find(|known| **known == wanted)
        .unwrap_or(&LEGACY[3]);
    json!({
        "protocolVersion": version,
        "capabilities": {
            "prompts": {"listChanged": true},
            "resources": {"listChanged": true, "subscribe": true},
            "tools": {"listChanged": true},
            "completions": {},
            "logging": {},
        },
        "serverInfo": {"name": "cuebook", "version": env!("CARGO_PKG_VERSION")},
    })
    .to_string()
}

/// Seconds since 1970 as `2026-07-28T09:30:00Z`.
fn utc(seconds: u64) -> String {
    let (days, second) = (seconds / 86_400, seconds % 86_400);
    // Years from March, so that a leap day is a year's last; 719,468 days lie before 1970 from year 0.
    let shifted = days + 719_468;
    let (era, day) = (shifted / 146_097, shifted % 146_097);
    let year = (day - day / 1_460 + day / 36_524 - day / 146_096) / 365;
    let day = day - (365 * year + year / 4 - year / 100);
    let march = (5 * day + 2) / 153;
    let month = if march < 10 { march + 3 } else { march - 9 };
    let year = era * 400 + year + u64::from(month <= 2);
    let day = day - (153 * march + 2) / 5 + 1;
    let (hour, minute, second) = (second / 3_600, second / 60 % 60, second % 60);
    format!("{year:04}-{month:02}-{day:02}T{hour:02}:{minute:02}:{second:02}Z")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn dates_are_right() {
        for (seconds, text) in [
            (0, "1970-01-01T00:00:00Z"),
            (951_782_400, "2000-02-29T00:00:00Z"),
            (951_868_799, "2000-02-29T23:59:59Z"),
            (1_785_231_000, "2026-07-28T09:30:00Z"),
            (4_107_542_400, "2100-03-01T00:00:00Z"),
        ] {
            assert_eq!(utc(seconds), text);
        }
    }
}
