//! Smart HTTP at `/library.git`: clone, fetch and push with the real git behind it.
//!
//! Owns the processes and their bounds. What a push may change is judged by `gate`, which the hooks ask.
//! Source: git's `http-protocol(5)` and `protocol-v2(5)`.

mod exchange;
mod places;
mod report;

use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use axum::body::Body;
use axum::extract::{Request, State};
use axum::http::header::{self, HeaderMap, HeaderName, HeaderValue};
use axum::http::{Method, StatusCode, Uri};
use axum::response::{IntoResponse, Response};
use axum::routing::{any, get, post};
use axum::{Extension, Router};
use futures_util::StreamExt as _;
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;

use crate::access::{Action, Actor, By};
use crate::gate::install;
use crate::gate::pushers::Pushers;
use crate::git::pack::{Service, Step};
use crate::http::ClientAddress;

use places::{Full, Places};

/// How the library is served to git.
#[derive(Debug, Clone)]
pub struct Settings {
    /// Largest push, in bytes, after decompression of the request.
    pub max_push_bytes: u64,
    /// Time without a byte from or to the client after which an exchange ends.
    pub idle: Duration,
    /// Clones and fetches at a time.
    pub reads: usize,
    /// Pushes at a time.
    pub pushes: usize,
    /// Requests that wait for a place; more are refused at once.
    pub queue: usize,
    /// How long they wait.
    pub queue_wait: Duration,
}

impl Default for Settings {
    fn default() -> Self {
        Self {
            max_push_bytes: 512 * 1024 * 1024,
            idle: Duration::from_mins(1),
            reads: 8,
            pushes: 4,
            queue: 256,
            queue_wait: Duration::from_secs(30),
        }
    }
}

/// Largest request of a fetch, in bytes: what is wanted and what is had.
const MAX_FETCH_BYTES: u64 = 64 * 1024 * 1024;
/// Bytes of a refused request that are read, and for how long.
const MAX_DRAINED_BYTES: usize = 64 * 1024 * 1024;
const DRAINING: Duration = Duration::from_secs(30);
/// Seconds after which a refused client tries again.
const RETRY_AFTER: &str = "5";

/// The library as git clients see it.
#[derive(Debug)]
pub struct Endpoint {
    repository: PathBuf,
    hooks: PathBuf,
    settings: Settings,
    reads: Places,
    pushes: Places,
    /// Pushes that run; the shutdown waits for them.
    running: TaskTracker,
    /// The server ends: what still comes in gets a while, and no more.
    stopping: CancellationToken,
    /// Who makes which push.
    pushers: Arc<Pushers>,
    /// Why no push is taken, where that is so.
    read_only: Option<String>,
}

impl Endpoint {
    /// Serves a bare repository; `hooks` is the folder of the hooks that judge a push, which ask who of `pushers` it is.
    pub fn new(
        repository: PathBuf,
        hooks: PathBuf,
        pushers: Arc<Pushers>,
        settings: Settings,
        running: TaskTracker,
        stopping: CancellationToken,
    ) -> Self {
        let places = |places| Places::new(places, settings.queue, settings.queue_wait);
        Self {
            repository,
            hooks,
            reads: places(settings.reads),
            pushes: places(settings.pushes),
            settings,
            running,
            stopping,
            pushers,
            read_only: None,
        }
    }

    /// The same for a repository that cannot be written, and why.
    #[must_use]
    pub fn read_only(mut self, why: String) -> Self {
        self.read_only = Some(why);
        self
    }

    /// Refuses a push that git would take without asking the gate.
    fn ungated(&self, service: Service) -> Option<Response> {
        if service != Service::ReceivePack {
            return None;
        }
        if let Some(why) = &self.read_only {
            return Some(refused(StatusCode::SERVICE_UNAVAILABLE, why));
        }
        let hook = install::passed_over(&self.hooks)?;
        tracing::error!(hook = %hook.display(), "git cannot run this hook, so no push is taken; restart the server to write it again");
        Some(refused(
            StatusCode::SERVICE_UNAVAILABLE,
            "the server cannot check pushes now, so it takes none; its operator has to look at its log",
        ))
    }

    fn places(&self, service: Service) -> &Places {
        match service {
            Service::UploadPack => &self.reads,
            Service::ReceivePack => &self.pushes,
        }
    }
}

/// The routes below `/library.git`.
pub fn routes(endpoint: Arc<Endpoint>) -> Router {
    Router::new()
        .route("/library.git", any(not_a_page))
        .route("/library.git/", any(not_a_page))
        .route("/library.git/info/refs", get(info_refs))
        .route("/library.git/git-upload-pack", post(upload_pack))
        .route("/library.git/git-receive-pack", post(receive_pack))
        .route("/library.git/{*rest}", any(unknown))
        .with_state(endpoint)
}

/// The same where no repository is served: a work tree with uncommitted edits has none to push to.
pub fn none() -> Router {
    Router::new()
        .route("/library.git", any(no_repository))
        .route("/library.git/{*rest}", any(no_repository))
}

async fn no_repository() -> Response {
    refused(
        StatusCode::NOT_FOUND,
        "this server shows a work tree (cuebook serve --watch) and takes no clones or pushes",
    )
}

/// A refusal that git shows to its user as `remote:` lines.
fn refused(status: StatusCode, text: &str) -> Response {
    let mut response = (status, format!("{text}\n")).into_response();
    if matches!(
        status,
        StatusCode::SERVICE_UNAVAILABLE | StatusCode::TOO_MANY_REQUESTS
    ) {
        response
            .headers_mut()
            .insert(header::RETRY_AFTER, HeaderValue::from_static(RETRY_AFTER));
    }
    response
}

async fn not_a_page() -> Response {
    refused(
        StatusCode::NOT_FOUND,
        "this is a git repository, not a page: git clone this address",
    )
}

async fn unknown() -> Response {
    refused(
        StatusCode::NOT_FOUND,
        "there is nothing here; git's dumb protocol is not served, only the smart one (git 1.6.6 and newer)",
    )
}

async fn info_refs(
    State(endpoint): State<Arc<Endpoint>>,
    uri: Uri,
    peer: Option<Extension<ClientAddress>>,
    actor: Option<Extension<Actor>>,
    headers: HeaderMap,
) -> Response {
    let mut asked = uri.query().unwrap_or_default().split('&');
    let Some(name) = asked.find_map(|part| part.strip_prefix("service=")) else {
        return unknown().await;
    };
    let Some(service) = Service::named(name) else {
        return refused(StatusCode::FORBIDDEN, "this server has no such git service");
    };
    let actor = actor.map_or_else(Actor::nobody, |Extension(actor)| actor);
    if let Some(refusal) = forbidden(service, &actor) {
        return refusal;
    }
    if let Some(refusal) = endpoint.ungated(service) {
        return refusal;
    }
    let place = match endpoint.places(service).take().await {
        Ok(place) => place,
        Err(full) => return busy(service, full),
    };
    let protocol = protocol(&headers);
    // protocol-v2(5): a version 2 answer of upload-pack has no service line
    let plain = service == Service::UploadPack && protocol.is_some_and(|p| p.contains("version=2"));
    let prologue = if plain {
        String::new()
    } else {
        let line = format!("# service={name}\n");
        format!("{:04x}{line}0000", line.len() + 4)
    };
    let job = exchange::Job {
        endpoint: endpoint.clone(),
        service,
        step: Step::Advertise,
        protocol: protocol.map(str::to_owned),
        peer: peer.map(|Extension(client)| client.ip),
        actor,
        push: None,
        prologue,
        gzip: false,
        place,
    };
    answer(job, Body::empty(), "advertisement")
}

async fn upload_pack(
    State(endpoint): State<Arc<Endpoint>>,
    peer: Option<Extension<ClientAddress>>,
    request: Request,
) -> Response {
    rpc(endpoint, Service::UploadPack, peer, request).await
}

async fn receive_pack(
    State(endpoint): State<Arc<Endpoint>>,
    peer: Option<Extension<ClientAddress>>,
    request: Request,
) -> Response {
    rpc(endpoint, Service::ReceivePack, peer, request).await
}

async fn rpc(
    endpoint: Arc<Endpoint>,
    service: Service,
    peer: Option<Extension<ClientAddress>>,
    request: Request,
) -> Response {
    debug_assert_eq!(request.method(), Method::POST);
    let headers = request.headers();
    let wanted = format!("application/x-{}-request", service.name());
    if text(headers, &header::CONTENT_TYPE) != Some(&wanted) {
        return refused(
            StatusCode::UNSUPPORTED_MEDIA_TYPE,
            &format!("the Content-Type must be {wanted}"),
        );
    }
    let gzip = match text(headers, &header::CONTENT_ENCODING) {
        None | Some("identity") => false,
        Some("gzip" | "x-gzip") => true,
        Some(_) => {
            return refused(
                StatusCode::UNSUPPORTED_MEDIA_TYPE,
                "the Content-Encoding must be gzip, or none",
            );
        }
    };
    let protocol = protocol(headers).map(str::to_owned);
    let actor = request.extensions().get().cloned();
    let actor = actor.unwrap_or_else(Actor::nobody);
    // a client that says `Expect: 100-continue` is told to go on before it is answered, and one that sends nothing
    // takes no place
    let body = match begun(request.into_body(), endpoint.settings.idle).await {
        Ok(body) => body,
        Err(status) => return refused(status, "the request's body did not come"),
    };
    if let Some(refusal) = forbidden(service, &actor).or_else(|| endpoint.ungated(service)) {
        drain(body).await;
        return refusal;
    }
    let place = match endpoint.places(service).take().await {
        Ok(place) => place,
        Err(full) => {
            drain(body).await;
            return busy(service, full);
        }
    };
    let peer = peer.map(|Extension(client)| client.ip);
    let push = if service == Service::ReceivePack {
        let by = By {
            actor: actor.clone(),
            peer: peer.map(|peer| peer.to_string()),
        };
        match endpoint.pushers.begin(by) {
            Ok(push) => Some(push),
            Err(error) => {
                tracing::error!(%error, "a push could not be taken");
                drain(body).await;
                return refused(
                    StatusCode::INTERNAL_SERVER_ERROR,
                    "the push could not be taken; the server's log says why",
                );
            }
        }
    } else {
        None
    };
    let job = exchange::Job {
        endpoint: endpoint.clone(),
        service,
        step: Step::Answer,
        protocol,
        peer,
        actor,
        push,
        prologue: String::new(),
        gzip,
        place,
    };
    answer(job, body, "result")
}

/// What git cannot do in part: it gives all of a repository, and pushes from all of it.
fn forbidden(service: Service, actor: &Actor) -> Option<Response> {
    let action = match service {
        Service::UploadPack => Action::Read,
        Service::ReceivePack => Action::Propose,
    };
    if actor.sees_all() && actor.may_somewhere(action) {
        return None;
    }
    let why = if actor.sees_all() {
        "you may read this library and not change it; ask an admin of this server for the role author"
    } else {
        "git can only give a library as a whole, and you may read a part of it at most; ask an admin of this server for the \
         role reader on **"
    };
    Some(refused(StatusCode::FORBIDDEN, why))
}

/// The same body once its first bytes are there.
async fn begun(body: Body, idle: Duration) -> Result<Body, StatusCode> {
    let mut pieces = body.into_data_stream();
    match tokio::time::timeout(idle, pieces.next()).await {
        Ok(Some(Ok(first))) => {
            let first = futures_util::stream::iter([Ok(first)]);
            Ok(Body::from_stream(first.chain(pieces)))
        }
        Ok(None) => Ok(Body::empty()),
        Ok(Some(Err(_))) => Err(StatusCode::BAD_REQUEST),
        Err(_) => Err(StatusCode::REQUEST_TIMEOUT),
    }
}

fn answer(job: exchange::Job, body: Body, kind: &str) -> Response {
    let content_type = format!("application/x-{}-{kind}", job.service.name());
    match exchange::start(job, body) {
        Ok(body) => {
            let mut response = Response::new(body);
            let headers = response.headers_mut();
            if let Ok(value) = HeaderValue::from_str(&content_type) {
                headers.insert(header::CONTENT_TYPE, value);
            }
            headers.insert(header::CACHE_CONTROL, HeaderValue::from_static("no-cache"));
            response
        }
        Err(error) => {
            tracing::error!(%error, "a git process could not be started");
            refused(
                StatusCode::INTERNAL_SERVER_ERROR,
                "git could not be started on the server; its log says why",
            )
        }
    }
}

/// Reads what a client still sends before it is refused: one that is sending does not read the answer. Bounded.
async fn drain(body: Body) {
    let mut pieces = body.into_data_stream();
    let mut bytes = 0;
    let reading = async {
        while let Some(Ok(piece)) = pieces.next().await {
            bytes += piece.len();
            if bytes > MAX_DRAINED_BYTES {
                break;
            }
        }
    };
    let _ = tokio::time::timeout(DRAINING, reading).await;
}

fn busy(service: Service, full: Full) -> Response {
    let what = match service {
        Service::UploadPack => "clones and fetches",
        Service::ReceivePack => "pushes",
    };
    refused(
        StatusCode::SERVICE_UNAVAILABLE,
        &format!("{full} {what}; try again in {RETRY_AFTER} seconds"),
    )
}

fn text<'a>(headers: &'a HeaderMap, name: &HeaderName) -> Option<&'a str> {
    headers.get(name)?.to_str().ok().map(str::trim)
}

/// The Git-Protocol header, when it has no other characters than git writes: it becomes an environment variable.
fn protocol(headers: &HeaderMap) -> Option<&str> {
    let value = text(headers, &HeaderName::from_static("git-protocol"))?;
    let plain =
        |b: u8| b.is_ascii_alphanumeric() || matches!(b, b'=' | b':' | b'-' | b'.' | b'_' | b'/');
    (value.len() <= 256 && value.bytes().all(plain)).then_some(value)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_protocol_header_is_taken_only_as_git_writes_it() {
        let check = |value: &'static str, taken: bool| {
            let mut headers = HeaderMap::new();
            headers.insert("git-protocol", HeaderValue::from_static(value));
            assert_eq!(protocol(&headers).is_some(), taken, "{value}");
        };
        check("version=2", true);
        check("version=1:feature=a-b", true);
        check("version=2; rm -rf /", false);
        check("version=2$(id)", false);
        check("version=2\tx", false);
        assert_eq!(protocol(&HeaderMap::new()), None);
    }
}
