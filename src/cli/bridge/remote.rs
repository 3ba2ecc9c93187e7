//! The server at the other end: HTTP requests, and what their outcome means for the bridge.
//!
//! Knows status codes and headers, nothing of who asked or what is remembered.

use std::collections::VecDeque;
use std::error::Error as _;
use std::net::IpAddr;
use std::time::Duration;

use anyhow::Context as _;
use bytes::Bytes;
use reqwest::header::{
    ACCEPT, ALLOW, AUTHORIZATION, CONTENT_TYPE, HeaderMap, HeaderName, HeaderValue, LOCATION,
};
use reqwest::{Client, Method, Response, StatusCode, Url};
use tokio::time::timeout;

use super::Timing;
use super::message::{Incoming, one_line};
use super::sse::{Event, Parser};

const SESSION: HeaderName = HeaderName::from_static("mcp-session-id");
const VERSION: HeaderName = HeaderName::from_static("mcp-protocol-version");
const METHOD: HeaderName = HeaderName::from_static("mcp-method");
const NAME: HeaderName = HeaderName::from_static("mcp-name");
const LAST_EVENT: HeaderName = HeaderName::from_static("last-event-id");

/// The most bytes of one reply.
const MAX_BODY: usize = 32 * 1024 * 1024;

/// Why a request had no reply that could be passed on.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Fault {
    /// The server cannot be reached, or something else answers in its place. It will be tried again.
    Away(String),
    /// The server answered and does not want this client. Nothing remembered may be served either.
    Refused(String),
    /// The session is gone; a new one will do.
    SessionLost,
}

/// What goes into the headers of a request.
#[derive(Debug, Clone, Default)]
pub(super) struct Headers {
    pub(super) session: Option<HeaderValue>,
    pub(super) version: Option<String>,
    pub(super) method: Option<String>,
    pub(super) name: Option<String>,
    pub(super) last_event: Option<String>,
}

impl Headers {
    fn map(&self) -> HeaderMap {
        let mut map = HeaderMap::new();
        if let Some(session) = &self.session {
            map.insert(SESSION, session.clone());
        }
        let texts = [
            (VERSION, &self.version),
            (METHOD, &self.method),
            (NAME, &self.name),
            (LAST_EVENT, &self.last_event),
        ];
        for (header, text) in texts {
            // What a header cannot hold is left out: the server then says what it misses.
            if let Some(value) = text
                .as_ref()
                .and_then(|text| HeaderValue::from_str(text).ok())
            {
                map.insert(header, value);
            }
        }
        map
    }
}

/// What came back for a POST.
#[derive(Debug)]
pub(super) struct Reply {
    /// The session that the server opened with this reply.
    pub(super) session: Option<HeaderValue>,
    pub(super) body: Body,
}

/// The body of a reply.
#[derive(Debug)]
pub(super) enum Body {
    /// Accepted, nothing to say.
    Empty,
    /// JSON, on one line.
    Json(String),
    /// Messages as they come.
    Stream(Box<Events>),
}

/// A server's address and how to talk to it.
#[derive(Debug)]
pub(super) struct Remote {
    client: Client,
    url: Url,
    /// The address as it is shown: without a query, which may hold what nobody else should read.
    pub(super) shown: String,
    authorization: Option<HeaderValue>,
    timing: Timing,
}

impl Remote {
    /// Prepares to talk to `url`; connects to nothing.
    pub(super) fn new(url: Url, token: Option<&str>, timing: Timing) -> anyhow::Result<Self> {
        // The second call in one process finds the first one's choice, which is the same.
        let _ = rustls::crypto::ring::default_provider().install_default();
        let mut builder = Client::builder()
            .user_agent(concat!("cuebook/", env!("CARGO_PKG_VERSION")))
            // A redirect would carry the token to whoever the answer names.
            .redirect(reqwest::redirect::Policy::none())
            .connect_timeout(timing.connect)
            .pool_idle_timeout(Duration::from_secs(20))
            .tcp_nodelay(true);
        if url.scheme() == "http" {
            // Plain http needs no certificates, and a machine may have none.
            builder = builder.tls_certs_only([]);
        }
        let host = url.host_str().unwrap_or_default().trim_matches(['[', ']']);
        let local = host == "localhost"
            || host
                .parse::<IpAddr>()
                .is_ok_and(|address| address.is_loopback());
        if local {
            builder = builder.no_proxy();
        }
        let authorization = token
            .map(|token| {
                let mut value = HeaderValue::from_str(&format!("Bearer {}", token.trim()))
                    .ok()
                    .context("CUEBOOK_TOKEN has characters that no token has")?;
                value.set_sensitive(true);
                anyhow::Ok(value)
            })
            .transpose()?;
        if token.is_some() && url.scheme() == "http" && !local {
            tracing::warn!(
                "the token goes to {} unencrypted; use https",
                url.host_str().unwrap_or_default()
            );
        }
        let mut plain = url.clone();
        plain.set_query(None);
        let client = builder.build().context("preparing to talk to the server")?;
        Ok(Self {
            client,
            url,
            shown: plain.into(),
            authorization,
            timing,
        })
    }

    /// Posts one line.
    pub(super) async fn post(&self, line: Bytes, headers: &Headers) -> Result<Reply, Fault> {
        let request = self
            .request(Method::POST, headers)
            .header(ACCEPT, "application/json, text/event-stream")
            .header(CONTENT_TYPE, "application/json")
            .body(line);
        let response = self.send(request).await?;
        let session = response.headers().get(SESSION).cloned();
        let status = response.status();
        if status == StatusCode::NOT_FOUND && headers.session.is_some() {
            return Err(Fault::SessionLost);
        }
        let kind = content_type(&response);
        if status.is_success() && kind == "text/event-stream" {
            let stream = Events::new(response, self.timing.silence);
            return Ok(Reply {
                session,
                body: Body::Stream(Box::new(stream)),
            });
        }
        let location = response
            .headers()
            .get(LOCATION)
            .and_then(|at| at.to_str().ok())
            .map(str::to_owned);
        let text = timeout(self.timing.answer, body(response))
            .await
            .map_err(|_| {
                Fault::Away(format!(
                    "the answer took longer than {:?}",
                    self.timing.answer
                ))
            })??;
        // Also with an error status, as long as it is a message: it says more than the status.
        if matches!(
            status,
            StatusCode::UNAUTHORIZED | StatusCode::FORBIDDEN | StatusCode::TOO_MANY_REQUESTS
        ) {
            return Err(Fault::Refused(refusal(
                status,
                self.authorization.is_some(),
            )));
        }
        if is_message(&text) {
            return Ok(Reply {
                session,
                body: Body::Json(one_line(text)),
            });
        }
        match status {
            status if status.is_success() && text.trim().is_empty() => Ok(Reply {
                session,
                body: Body::Empty,
            }),
            status if status.is_success() => Err(Fault::Away(format!(
                "something answers with `{kind}` in its place"
            ))),
            status if status.is_redirection() => Err(Fault::Away(match location {
                Some(location) => format!("the address has moved to {location}"),
                None => "the address has moved".to_owned(),
            })),
            StatusCode::NOT_FOUND => Err(Fault::Away(
                "there is no MCP endpoint at this address".to_owned(),
            )),
            status => Err(Fault::Away(format!("it answers {status}"))),
        }
    }

    /// Opens the stream of a session; nothing where the server has none.
    pub(super) async fn listen(&self, headers: &Headers) -> Result<Option<Events>, Fault> {
        let request = self
            .request(Method::GET, headers)
            .header(ACCEPT, "text/event-stream");
        let response = self.send(request).await?;
        match response.status() {
            status if status.is_success() && content_type(&response) == "text/event-stream" => {
                Ok(Some(Events::new(response, self.timing.silence)))
            }
            StatusCode::NOT_FOUND if headers.session.is_some() => Err(Fault::SessionLost),
            status @ (StatusCode::UNAUTHORIZED
            | StatusCode::FORBIDDEN
            | StatusCode::TOO_MANY_REQUESTS) => Err(Fault::Refused(refusal(
                status,
                self.authorization.is_some(),
            ))),
            // 405 says so outright; a few servers say it with another code.
            status if status.is_client_error() && status != StatusCode::NOT_FOUND => {
                let allow = response.headers().get(ALLOW);
                tracing::debug!(%status, ?allow, "the server has no notification stream");
                Ok(None)
            }
            status => Err(Fault::Away(format!(
                "it answers {status} where a stream was wanted"
            ))),
        }
    }

    /// Ends a session.
    pub(super) async fn end(&self, headers: &Headers) -> Result<(), Fault> {
        self.send(self.request(Method::DELETE, headers))
            .await
            .map(drop)
    }

    fn request(&self, method: Method, headers: &Headers) -> reqwest::RequestBuilder {
        let mut request = self
            .client
            .request(method, self.url.clone())
            .headers(headers.map());
        if let Some(authorization) = &self.authorization {
            request = request.header(AUTHORIZATION, authorization.clone());
        }
        request
    }

    /// Sends and waits for the head of the answer.
    async fn send(&self, request: reqwest::RequestBuilder) -> Result<Response, Fault> {
        match timeout(self.timing.answer, request.send()).await {
            Ok(Ok(response)) => Ok(response),
            Ok(Err(error)) => Err(Fault::Away(reason(&error))),
            Err(_) => Err(Fault::Away(format!(
                "no answer in {:?}",
                self.timing.answer
            ))),
        }
    }
}

fn content_type(response: &Response) -> String {
    let header = response
        .headers()
        .get(CONTENT_TYPE)
        .and_then(|value| value.to_str().ok());
    let kind = header
        .and_then(|value| value.split(';').next())
        .unwrap_or_default();
    kind.trim().to_ascii_lowercase()
}

fn refusal(status: StatusCode, has_token: bool) -> String {
    match (status, has_token) {
        (StatusCode::UNAUTHORIZED, false) => "it wants a token: set CUEBOOK_TOKEN".to_owned(),
        (StatusCode::UNAUTHORIZED, true) => {
            "it does not accept the token in CUEBOOK_TOKEN: it is wrong or has expired".to_owned()
        }
        (StatusCode::TOO_MANY_REQUESTS, _) => "too many requests; try again in a moment".to_owned(),
        _ => format!("it answers {status}"),
    }
}

/// The innermost cause, which is the one that says something.
fn reason(error: &reqwest::Error) -> String {
    if error.is_timeout() {
        return "no connection in time".to_owned();
    }
    let mut cause = error.source();
    while let Some(next) = cause.and_then(|cause| cause.source()) {
        cause = Some(next);
    }
    let text = cause.map_or_else(|| error.to_string(), ToString::to_string);
    text.replace(['\n', '\r'], " ")
}

async fn body(mut response: Response) -> Result<String, Fault> {
    let mut bytes = Vec::new();
    loop {
        match response.chunk().await {
            Ok(Some(chunk)) if bytes.len() + chunk.len() <= MAX_BODY => {
                bytes.extend_from_slice(&chunk);
            }
            Ok(Some(_)) => {
                return Err(Fault::Away(format!(
                    "the answer is longer than {MAX_BODY} bytes"
                )));
            }
            Ok(None) => break,
            Err(error) => return Err(Fault::Away(reason(&error))),
        }
    }
    String::from_utf8(bytes).map_err(|_| Fault::Away("the answer is not UTF-8".to_owned()))
}

/// Whether text is a JSON-RPC message or a batch of them.
fn is_message(text: &str) -> bool {
    if text.trim_start().starts_with('[') {
        return serde_json::from_str::<Vec<Incoming>>(text).is_ok();
    }
    Incoming::parse(text).is_some_and(|message| {
        message.result.is_some() || message.error.is_some() || message.method.is_some()
    })
}

/// The events of a stream as they come.
#[derive(Debug)]
pub(super) struct Events {
    response: Response,
    parser: Parser,
    ready: VecDeque<Event>,
    silence: Duration,
}

impl Events {
    fn new(response: Response, silence: Duration) -> Self {
        Self {
            response,
            parser: Parser::default(),
            ready: VecDeque::new(),
            silence,
        }
    }

    /// The next event; nothing at the end. Servers send comments when there is nothing to say, so a stream
    /// that is silent for long has lost its other end.
    pub(super) async fn next(&mut self) -> Result<Option<Event>, Fault> {
        loop {
            if let Some(event) = self.ready.pop_front() {
                return Ok(Some(Event {
                    data: one_line(event.data),
                    ..event
                }));
            }
            let chunk = timeout(self.silence, self.response.chunk())
                .await
                .map_err(|_| Fault::Away(format!("the stream was silent for {:?}", self.silence)))?
                .map_err(|error| Fault::Away(reason(&error)))?;
            let Some(chunk) = chunk else { return Ok(None) };
            self.parser.push(&chunk, &mut self.ready).map_err(|_| {
                Fault::Away("the stream holds something that is no event".to_owned())
            })?;
        }
    }
}
