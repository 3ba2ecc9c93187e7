//! stdio: one JSON-RPC message a line, both eras on one pair of pipes.

mod lines;

use std::sync::Arc;

use tokio::io::{AsyncRead, AsyncWrite, AsyncWriteExt};
use tokio_util::sync::CancellationToken;

use self::lines::{Line, Lines};
use super::clients::Client;
use super::envelope::{Incoming, Message, Notification, Rejected, Request};
use super::error::RpcError;
use super::methods::starting_hashes;
use super::notices::{self, Filter, Interest, Subscriptions, Told, due};
use super::revision::Revision;
use super::session::{Session, lock};
use super::views::View;
use super::{Answer, Caller, Service, batch, handle, meta};
use crate::access::Actor;
use crate::http::RequestId;
use crate::workers;

/// Modern subscriptions on one pair of pipes, at most.
const MAX_LISTENERS: usize = 64;

/// Serves one client until its input ends or `cancel` says so.
pub async fn run(
    service: Arc<Service>,
    reader: impl AsyncRead + Unpin,
    writer: impl AsyncWrite + Unpin,
    cancel: CancellationToken,
) -> std::io::Result<()> {
    let mut changes = service.registry.subscribe();
    let mut lines = Lines::new(reader, service.settings.message_bytes);
    let mut connection = Connection::new(service, writer);
    loop {
        connection.tell().await?;
        tokio::select! {
            biased;
            () = cancel.cancelled() => return connection.finish().await,
            line = lines.next() => match line? {
                Line::End => return Ok(()),
                Line::TooLong => {
                    let error = RpcError::too_large(connection.service.settings.message_bytes);
                    connection.write(&error.to_response(None, connection.is_modern())).await?;
                }
                Line::Text(text) => connection.line(&text).await?,
            },
            outcome = changes.changed() => if outcome.is_err() {
                return connection.finish().await;
            },
        }
    }
}

/// A modern subscription.
struct Listener {
    /// Its id as JSON text.
    id: Box<str>,
    interest: Interest,
    told: Told,
    subscriptions: Subscriptions,
}

struct Connection<W> {
    service: Arc<Service>,
    writer: W,
    /// What `initialize` agreed on; none for a client that is modern, or has said nothing.
    legacy: Option<Session>,
    /// Whether the legacy client has said that it is ready to be told.
    ready: bool,
    listeners: Vec<Listener>,
}

impl<W: AsyncWrite + Unpin> Connection<W> {
    fn new(service: Arc<Service>, writer: W) -> Self {
        Self {
            service,
            writer,
            legacy: None,
            ready: false,
            listeners: Vec::new(),
        }
    }

    /// Who has the pipe is at this machine.
    fn view(&self) -> View {
        View::whole(self.service.registry.snapshot())
    }

    fn bodies(&self) -> bool {
        self.service.registry.notifies_body_edits()
    }

    /// By whose rules an error is shaped that belongs to no request.
    fn is_modern(&self) -> bool {
        self.legacy.is_none()
    }

    async fn write(&mut self, message: &[u8]) -> std::io::Result<()> {
        self.writer.write_all(message).await?;
        self.writer.write_all(b"\n").await?;
        self.writer.flush().await
    }

    async fn line(&mut self, line: &[u8]) -> std::io::Result<()> {
        match Incoming::parse(line) {
            Incoming::One(Ok(Message::Request(request))) => self.request(&request).await,
            Incoming::One(Ok(Message::Notification(notification))) => {
                self.notification(&notification);
                Ok(())
            }
            Incoming::One(Ok(Message::Response)) => Ok(()),
            Incoming::One(Err(Rejected { id, error })) => {
                let response = error.to_response(id, self.is_modern());
                self.write(&response).await
            }
            Incoming::Batch(messages) => self.batch(messages).await,
        }
    }

    async fn request(&mut self, request: &Request<'_>) -> std::io::Result<()> {
        let caller = match self.caller(request) {
            Ok(caller) => caller,
            Err(error) => {
                let modern = request.method != "initialize" && self.is_modern();
                return self
                    .write(&error.to_response(Some(request.id), modern))
                    .await;
            }
        };
        let modern = caller.revision.is_modern();
        match handle(&self.service, &caller, request).await {
            Answer::Initialized {
                response,
                revision,
                client,
            } => {
                let told = Told::of(&self.view(), None, self.bodies());
                self.legacy = Some(Session::of_a_pipe(revision, client, told));
                self.ready = false;
                self.write(&response).await
            }
            Answer::Listen(filter) => self.listen(request.id, &filter).await,
            answer => self.write(&answer.into_bytes(request.id, modern)).await,
        }
    }

    fn caller(&self, request: &Request<'_>) -> Result<Caller, RpcError> {
        let modern = meta::declared_version(&request.params).is_some()
            || matches!(&*request.method, "server/discover" | "subscriptions/listen");
        let (revision, client, session) = if modern {
            let meta = meta::read(&request.params)?;
            (meta.revision, meta.client, None)
        } else if request.method == "initialize" {
            (Revision::LATEST_LEGACY, Client::default(), None)
        } else {
            match &self.legacy {
                Some(session) => (
                    session.identity.revision,
                    session.identity.client.clone(),
                    Some(session.clone()),
                ),
                // Nothing agreed on yet: some clients ping first, and none is helped by a refusal.
                None => (Revision::LATEST_LEGACY, Client::default(), None),
            }
        };
        Ok(Caller {
            revision,
            client,
            actor: Actor::local(),
            folder: None,
            session,
            charged: workers::Caller::local(),
            request_id: RequestId::new().0,
        })
    }

    fn notification(&mut self, notification: &Notification<'_>) {
        match &*notification.method {
            "notifications/initialized" => self.ready = self.legacy.is_some(),
            "notifications/cancelled" => {
                if let Some(id) = notification.params.request_id {
                    self.listeners.retain(|listener| *listener.id != *id.get());
                }
            }
            _ => {}
        }
    }

    async fn batch(
        &mut self,
        messages: Vec<Result<Message<'_>, Rejected<'_>>>,
    ) -> std::io::Result<()> {
        let Some(session) = self
            .legacy
            .clone()
            .filter(|session| session.identity.revision.has_batches())
        else {
            let error = RpcError::refused(
                400,
                "batches belong to revision 2025-03-26 alone; send one message at a time",
            );
            let response = error.to_response(None, self.is_modern());
            return self.write(&response).await;
        };
        for message in &messages {
            if let Ok(Message::Notification(notification)) = message {
                self.notification(notification);
            }
        }
        let caller = Caller {
            revision: session.identity.revision,
            client: session.identity.client.clone(),
            actor: Actor::local(),
            folder: None,
            session: Some(session),
            charged: workers::Caller::local(),
            request_id: RequestId::new().0,
        };
        match batch::answer(&self.service, &caller, messages).await {
            Some(answers) => self.write(&answers).await,
            None => Ok(()),
        }
    }

    async fn listen(&mut self, id: &str, filter: &Filter) -> std::io::Result<()> {
        if self.listeners.len() == MAX_LISTENERS {
            let error = RpcError::invalid_params(format!(
                "more than {MAX_LISTENERS} subscriptions are open"
            ));
            return self.write(&error.to_response(Some(id), true)).await;
        }
        let view = self.view();
        self.listeners.retain(|listener| &*listener.id != id);
        self.listeners.push(Listener {
            id: id.into(),
            interest: Interest {
                prompts: filter.prompts_list_changed,
                resources: filter.resources_list_changed,
            },
            told: Told::of(&view, None, self.bodies()),
            subscriptions: starting_hashes(&view.snapshot.catalog, &filter.resource_subscriptions),
        });
        self.write(&notices::acknowledged(id, filter)).await
    }

    /// Tells everyone on this pipe what they are owed.
    async fn tell(&mut self) -> std::io::Result<()> {
        let (view, bodies) = (self.view(), self.bodies());
        let mut messages = Vec::new();
        if let Some(session) = self.legacy.as_ref().filter(|_| self.ready) {
            let mut state = lock(&session.state);
            let state = &mut *state;
            let notices = due(
                &view,
                None,
                Interest::ALL,
                bodies,
                &mut state.told,
                &mut state.subscriptions,
            );
            messages.extend(notices.iter().map(|notice| notice.json(None)));
        }
        for listener in &mut self.listeners {
            let notices = due(
                &view,
                None,
                listener.interest,
                bodies,
                &mut listener.told,
                &mut listener.subscriptions,
            );
            messages.extend(notices.iter().map(|notice| notice.json(Some(&listener.id))));
        }
        for message in messages {
            self.write(&message).await?;
        }
        Ok(())
    }

    /// Ends every subscription in good order.
    async fn finish(&mut self) -> std::io::Result<()> {
        for listener in std::mem::take(&mut self.listeners) {
            self.write(&notices::completed(&listener.id)).await?;
        }
        Ok(())
    }
}
