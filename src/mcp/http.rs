//! Streamable HTTP: `POST`, `GET` and `DELETE` on one endpoint, for both eras.

mod headers;

use std::sync::Arc;
use std::time::Duration;

use axum::body::{Body, Bytes};
use axum::extract::{Path, Request as HttpRequest, State};
use axum::http::header::{self, HeaderValue};
use axum::http::{Extensions, HeaderMap, Method, StatusCode};
use axum::response::{IntoResponse, Response};
use futures_util::{Stream, StreamExt};
use http_body_util::BodyExt;
use tokio_util::sync::CancellationToken;

use self::headers::{SESSION_ID, accepts_events, is_json, session_id, version};
use super::clients::Client;
use super::envelope::{Incoming, Message, Rejected, Request};
use super::error::RpcError;
use super::notices::Told;
use super::revision::Revision;
use super::session::Session;
use super::stream::{self, Slot};
use super::{Answer, Caller, Service, batch, handle, meta};
use crate::access::{Actor, Kind};
use crate::http::{ClientAddress, RequestId, json_error};
use crate::prompt::PromptName;
use crate::workers;

/// Time in which a body must arrive.
const BODY_TIMEOUT: Duration = Duration::from_secs(30);
/// Bytes past the limit that are read over before the connection is closed.
const READ_OVER: usize = 16 * 1024 * 1024;
/// Headers of an answer.
const HEADERS: usize = 8;
/// How deep folders are read.
const MAX_DEPTH: usize = 32;

/// What the endpoint's handlers share.
#[derive(Debug, Clone)]
pub struct Endpoint {
    /// The core.
    pub service: Arc<Service>,
    /// Ends every stream.
    pub shutdown: CancellationToken,
}

/// `/mcp`: the whole library.
pub async fn whole(State(endpoint): State<Arc<Endpoint>>, request: HttpRequest) -> Response {
    exchange(endpoint, None, request).await
}

/// `/mcp/<folder>`: the prompts of one folder and of those below it.
pub async fn folder(
    State(endpoint): State<Arc<Endpoint>>,
    Path(folder): Path<String>,
    request: HttpRequest,
) -> Response {
    let folder = folder.trim_end_matches('/');
    if folder.is_empty() {
        return exchange(endpoint, None, request).await;
    }
    let actor = actor(request.extensions());
    let service = &endpoint.service;
    let known = service.view(&actor).snapshot.catalog.has_folder(folder)
        || (is_folder_name(folder) && has_session(service, &actor, request.headers()));
    if !known {
        let shown: String = folder.chars().take(80).collect();
        let error = json_error(&format!("the library has no folder `{shown}`"));
        return (StatusCode::NOT_FOUND, error).into_response();
    }
    exchange(endpoint, Some(folder.into()), request).await
}

/// Whether a folder of the library could have this name.
fn is_folder_name(folder: &str) -> bool {
    let parts = folder.split('/');
    parts.clone().count() <= MAX_DEPTH && parts.into_iter().all(|p| PromptName::parse(p).is_ok())
}

/// Whether a request belongs to a session. A folder whose last prompt is gone is empty to it: a 404
/// would say that the session is over.
fn has_session(service: &Service, actor: &Actor, headers: &HeaderMap) -> bool {
    session_id(headers).is_some_and(|id| service.sessions.resume(actor, &id).is_some())
}

/// Who makes a request; a request that nobody has looked at is nobody's.
fn actor(extensions: &Extensions) -> Actor {
    extensions.get().cloned().unwrap_or_else(Actor::nobody)
}

async fn exchange(
    endpoint: Arc<Endpoint>,
    folder: Option<Arc<str>>,
    request: HttpRequest,
) -> Response {
    let (parts, body) = request.into_parts();
    let request_id = parts.extensions.get::<RequestId>().cloned();
    let actor = actor(&parts.extensions);
    let exchange = Exchange {
        endpoint,
        request_id: request_id.unwrap_or_default(),
        folder,
        charged: match parts.extensions.get::<ClientAddress>() {
            _ if actor.kind() != Kind::Local => workers::Caller::actor(actor.name.clone()),
            Some(client) => workers::Caller::address(client.ip),
            None => workers::Caller::local(),
        },
        headers: parts.headers,
        actor,
    };
    match parts.method {
        Method::POST => exchange.post(body).await,
        Method::GET => exchange.get(),
        Method::DELETE => exchange.delete(),
        _ => not_allowed(),
    }
}

/// One HTTP request to the endpoint.
struct Exchange {
    endpoint: Arc<Endpoint>,
    request_id: RequestId,
    folder: Option<Arc<str>>,
    charged: workers::Caller,
    headers: HeaderMap,
    actor: Actor,
}

impl Exchange {
    async fn post(self, body: Body) -> Response {
        let modern = version(&self.headers).is_some_and(|v| !v.is_legacy());
        if !is_json(&self.headers) {
            let error = RpcError::refused(415, "the Content-Type header must be application/json");
            return rejected(&error, None, modern);
        }
        let limit = self.endpoint.service.settings.message_bytes;
        let bytes = match read(body, limit).await {
            Ok(bytes) => bytes,
            Err(error) => return rejected(&error, None, modern),
        };
        match Incoming::parse(&bytes) {
            Incoming::One(Ok(Message::Request(request))) => self.request(&request).await,
            Incoming::One(Ok(Message::Response)) if modern => rejected(
                &RpcError::refused(400, "responses are not accepted in this revision"),
                None,
                true,
            ),
            Incoming::One(Ok(Message::Notification(_) | Message::Response)) => self.one_way(),
            Incoming::One(Err(Rejected { id, error })) => rejected(&error, id, modern),
            Incoming::Batch(messages) => self.batch(messages).await,
        }
    }

    async fn request(self, request: &Request<'_>) -> Response {
        match self.caller(request) {
            Ok(caller) => {
                let modern = caller.revision.is_modern();
                match handle(&self.endpoint.service, &caller, request).await {
                    Answer::Response(body) => json(StatusCode::OK, body),
                    Answer::Error(error) => rejected(&error, Some(request.id), modern),
                    Answer::Initialized {
                        response,
                        revision,
                        client,
                    } => self.initialized(response, revision, &client),
                    Answer::Listen(filter) => match Slot::take(&self.endpoint.service) {
                        Some(slot) => {
                            slot.is_of(caller.client.clone(), caller.revision);
                            events(stream::subscription(
                                slot,
                                request.id,
                                &filter,
                                self.folder,
                                self.actor,
                                self.endpoint.shutdown.clone(),
                            ))
                        }
                        None => too_many_streams(),
                    },
                }
            }
            Err(error) => rejected(&error, Some(request.id), is_modern(&self.headers, request)),
        }
    }

    /// Who is asking, and in which revision.
    fn caller(&self, request: &Request<'_>) -> Result<Caller, RpcError> {
        let (revision, client, session) = if is_modern(&self.headers, request) {
            headers::check_modern(&self.headers, request)?;
            let meta = meta::read(&request.params)?;
            headers::check_name(&self.headers, request)?;
            (meta.revision, meta.client, None)
        } else if request.method == "initialize" {
            // A session that is over, or a header of one, is no reason not to begin another.
            (Revision::LATEST_LEGACY, Client::default(), None)
        } else {
            self.legacy()?
        };
        Ok(Caller {
            revision,
            client,
            actor: self.actor.clone(),
            folder: self.folder.clone(),
            session,
            charged: self.charged.clone(),
            request_id: self.request_id.0.clone(),
        })
    }

    /// Revision, client and session of a legacy message that is not `initialize`.
    fn legacy(&self) -> Result<(Revision, Client, Option<Session>), RpcError> {
        let header = match version(&self.headers) {
            None => None,
            Some(version) => Some(version.legacy()?),
        };
        match session_id(&self.headers) {
            None => Ok((header.unwrap_or(Revision::ASSUMED), Client::default(), None)),
            Some(id) => {
                let session = self
                    .endpoint
                    .service
                    .sessions
                    .resume(&self.actor, &id)
                    .ok_or_else(no_session)?;
                Ok((
                    session.identity.revision,
                    session.identity.client.clone(),
                    Some(session),
                ))
            }
        }
    }

    fn initialized(&self, response: Vec<u8>, revision: Revision, client: &Client) -> Response {
        let service = &self.endpoint.service;
        let bodies = service.registry.notifies_body_edits();
        let told = Told::of(&service.view(&self.actor), self.folder.as_deref(), bodies);
        let mut response = json(StatusCode::OK, response);
        match service.sessions.issue(&self.actor, revision, client, told) {
            Ok(id) => {
                if let Ok(id) = HeaderValue::try_from(id) {
                    response.headers_mut().insert(SESSION_ID, id);
                }
            }
            // Without randomness there is no id; the client is served without a session.
            Err(error) => tracing::error!(%error, "could not make a session id"),
        }
        response
    }

    /// A notification or a response: accepted, with nothing to do.
    fn one_way(&self) -> Response {
        let modern = version(&self.headers).is_some_and(|v| v.is_modern());
        if !modern && let Err(error) = self.legacy() {
            return rejected(&error, None, false);
        }
        StatusCode::ACCEPTED.into_response()
    }

    async fn batch(self, messages: Vec<Result<Message<'_>, Rejected<'_>>>) -> Response {
        let (revision, client, session) = match self.legacy() {
            Ok(legacy) => legacy,
            Err(error) => return rejected(&error, None, false),
        };
        if !revision.has_batches() {
            let error = RpcError::refused(
                400,
                format!("revision {revision} has no batches; send one message at a time"),
            );
            return rejected(&error, None, false);
        }
        let caller = Caller {
            revision,
            client,
            actor: self.actor.clone(),
            folder: self.folder.clone(),
            session,
            charged: self.charged.clone(),
            request_id: self.request_id.0.clone(),
        };
        match batch::answer(&self.endpoint.service, &caller, messages).await {
            Some(answers) => json(StatusCode::OK, answers),
            None => StatusCode::ACCEPTED.into_response(),
        }
    }

    fn get(self) -> Response {
        // A modern client opens streams by POST; a browser wants a page, and this is none.
        if version(&self.headers).is_some_and(|v| v.is_modern()) || !accepts_events(&self.headers) {
            return not_allowed();
        }
        let (revision, client, session) = match self.legacy() {
            Ok(legacy) => legacy,
            Err(error) => return rejected(&error, None, false),
        };
        match Slot::take(&self.endpoint.service) {
            Some(slot) => {
                slot.is_of(client, revision);
                events(stream::legacy(
                    slot,
                    session,
                    self.folder,
                    self.actor,
                    self.endpoint.shutdown.clone(),
                ))
            }
            None => too_many_streams(),
        }
    }

    fn delete(self) -> Response {
        match self.legacy() {
            Ok((_, _, Some(session))) => {
                self.endpoint.service.sessions.end(&session);
                StatusCode::NO_CONTENT.into_response()
            }
            Ok((_, _, None)) => rejected(
                &RpcError::refused(
                    400,
                    "the Mcp-Session-Id header is missing; it says which session to end",
                ),
                None,
                false,
            ),
            Err(error) => rejected(&error, None, false),
        }
    }
}

/// Whether a request is to be read by the rules of the modern era.
fn is_modern(headers: &HeaderMap, request: &Request<'_>) -> bool {
    meta::declared_version(&request.params).is_some()
        || matches!(&*request.method, "server/discover" | "subscriptions/listen")
        || (request.method != "initialize" && version(headers).is_some_and(|v| v.is_modern()))
}

fn no_session() -> RpcError {
    RpcError::refused(
        404,
        "there is no such session, or it has ended; initialize again",
    )
}

/// Reads a body. One that is too long is read over, within reason: a client that is still sending
/// when the connection closes would never see why.
async fn read(mut body: Body, limit: usize) -> Result<Bytes, RpcError> {
    let read = async {
        let mut first: Option<Bytes> = None;
        let mut all: Vec<u8> = Vec::new();
        let mut length = 0usize;
        while let Some(frame) = body.frame().await {
            let frame =
                frame.map_err(|_| RpcError::refused(400, "the body did not arrive whole"))?;
            let Ok(data) = frame.into_data() else {
                continue;
            };
            length += data.len();
            if length > limit + READ_OVER {
                break;
            }
            if length > limit {
                continue;
            }
            // Most bodies come in one piece, which is then not copied.
            match first.take() {
                None if all.is_empty() => first = Some(data),
                None => all.extend_from_slice(&data),
                Some(before) => {
                    all.reserve(before.len() + data.len());
                    all.extend_from_slice(&before);
                    all.extend_from_slice(&data);
                }
            }
        }
        if length > limit {
            return Err(RpcError::too_large(limit));
        }
        Ok(first.unwrap_or_else(|| all.into()))
    };
    tokio::time::timeout(BODY_TIMEOUT, read)
        .await
        .unwrap_or_else(|_| Err(RpcError::refused(408, "the body did not arrive in time")))
}

fn json(status: StatusCode, body: Vec<u8>) -> Response {
    let mut response = Response::new(Body::from(body));
    *response.status_mut() = status;
    let headers = response.headers_mut();
    // with what the way out adds, so that it grows once
    headers.reserve(HEADERS);
    headers.insert(
        header::CONTENT_TYPE,
        HeaderValue::from_static("application/json"),
    );
    headers.insert(header::CACHE_CONTROL, HeaderValue::from_static("no-store"));
    response
}

fn rejected(error: &RpcError, id: Option<&str>, modern: bool) -> Response {
    let status = StatusCode::from_u16(error.status).unwrap_or(StatusCode::BAD_REQUEST);
    json(status, error.to_response(id, modern))
}

fn events(stream: impl Stream<Item = Bytes> + Send + 'static) -> Response {
    let mut response = Response::new(Body::from_stream(
        stream.map(Ok::<_, std::convert::Infallible>),
    ));
    let headers = response.headers_mut();
    headers.insert(
        header::CONTENT_TYPE,
        HeaderValue::from_static("text/event-stream"),
    );
    headers.insert(
        header::CACHE_CONTROL,
        HeaderValue::from_static("no-cache, no-store"),
    );
    headers.insert("x-accel-buffering", HeaderValue::from_static("no"));
    response
}

fn not_allowed() -> Response {
    (
        StatusCode::METHOD_NOT_ALLOWED,
        [(header::ALLOW, "GET, POST, DELETE")],
        json_error("POST JSON-RPC messages here"),
    )
        .into_response()
}

fn too_many_streams() -> Response {
    (
        StatusCode::SERVICE_UNAVAILABLE,
        [(header::RETRY_AFTER, "60")],
        json_error("too many streams are open"),
    )
        .into_response()
}
