//! A small MCP server that can be stopped, so that connections break, and started again at its address.

use std::collections::HashSet;
use std::convert::Infallible;
use std::net::SocketAddr;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use axum::Router;
use axum::body::{Body, Bytes};
use axum::extract::{Request, State};
use axum::response::Response;
use futures_util::stream;
use hyper_util::rt::TokioIo;
use hyper_util::service::TowerToHyperService;
use serde_json::{Value, json};
use tokio::net::TcpListener;
use tokio::sync::{Notify, broadcast, watch};
use tokio::task::{JoinHandle, JoinSet};
use tokio::time::timeout;

/// What a client has sent.
#[derive(Debug, Clone)]
pub(super) struct Received {
    pub(super) verb: String,
    pub(super) method: String,
    pub(super) body: Value,
    headers: axum::http::HeaderMap,
}

impl Received {
    pub(super) fn header(&self, name: &str) -> &str {
        self.headers
            .get(name)
            .and_then(|value| value.to_str().ok())
            .unwrap_or_default()
    }
}

struct Shared {
    prompts: Mutex<Vec<String>>,
    sessions: Mutex<HashSet<String>>,
    opened: AtomicUsize,
    requests: Mutex<Vec<Received>>,
    arrived: Notify,
    /// Messages for every stream; an empty one ends the streams.
    pushed: broadcast::Sender<String>,
    streams: watch::Sender<usize>,
    release: watch::Sender<bool>,
    /// Status, content type and body of everything, for a server that is not itself.
    instead: Mutex<Option<(u16, String, String)>>,
    active: AtomicUsize,
    most: AtomicUsize,
    /// Tells the servers of one test apart.
    number: usize,
}

pub(super) struct Server {
    address: SocketAddr,
    shared: Arc<Shared>,
    task: JoinHandle<()>,
}

static STARTED: AtomicUsize = AtomicUsize::new(0);

impl Server {
    pub(super) async fn start(prompts: &[&str]) -> Self {
        Self::start_at(SocketAddr::from(([127, 0, 0, 1], 0)), prompts).await
    }

    pub(super) async fn start_at(address: SocketAddr, prompts: &[&str]) -> Self {
        let listener = TcpListener::bind(address).await.unwrap();
        let address = listener.local_addr().unwrap();
        let shared = Arc::new(Shared {
            prompts: Mutex::new(names(prompts)),
            sessions: Mutex::default(),
            opened: AtomicUsize::new(0),
            requests: Mutex::default(),
            arrived: Notify::new(),
            pushed: broadcast::Sender::new(64),
            streams: watch::Sender::new(0),
            release: watch::Sender::new(false),
            instead: Mutex::default(),
            active: AtomicUsize::new(0),
            most: AtomicUsize::new(0),
            number: STARTED.fetch_add(1, Ordering::Relaxed),
        });
        let router = Router::new()
            .fallback(handle)
            .with_state(Arc::clone(&shared));
        let task = tokio::spawn(async move {
            // Dropped with the task, which breaks every connection.
            let mut connections = JoinSet::new();
            loop {
                let Ok((socket, _)) = listener.accept().await else {
                    return;
                };
                let service = TowerToHyperService::new(router.clone());
                let connection = hyper::server::conn::http1::Builder::new();
                connections.spawn(async move {
                    connection
                        .serve_connection(TokioIo::new(socket), service)
                        .await
                });
            }
        });
        Self {
            address,
            shared,
            task,
        }
    }

    pub(super) fn address(&self) -> SocketAddr {
        self.address
    }

    pub(super) fn url(&self) -> String {
        format!("http://{}/mcp", self.address)
    }

    pub(super) async fn stop(self) {
        self.task.abort();
        let _ = self.task.await;
    }

    pub(super) fn publish(&self, prompts: &[&str]) {
        *self.shared.prompts.lock().unwrap() = names(prompts);
        self.push(&json!({"jsonrpc": "2.0", "method": "notifications/prompts/list_changed"}));
    }

    pub(super) fn push(&self, message: &Value) {
        self.shared.pushed.send(message.to_string()).unwrap();
    }

    pub(super) fn end_streams(&self) {
        self.shared.pushed.send(String::new()).unwrap();
    }

    pub(super) fn forget_sessions(&self) {
        self.shared.sessions.lock().unwrap().clear();
    }

    /// Lets slow calls go on.
    pub(super) fn release(&self) {
        self.shared.release.send_replace(true);
    }

    pub(super) fn answer_with(&self, status: u16, kind: &str, body: &str) {
        *self.shared.instead.lock().unwrap() = Some((status, kind.to_owned(), body.to_owned()));
        self.end_streams();
    }

    pub(super) fn answer_normally(&self) {
        *self.shared.instead.lock().unwrap() = None;
    }

    /// Waits until this many streams are open.
    pub(super) async fn streams(&self, count: usize) {
        let mut streams = self.shared.streams.subscribe();
        let waited = timeout(
            Duration::from_secs(20),
            streams.wait_for(|open| *open == count),
        )
        .await;
        waited
            .unwrap_or_else(|_| panic!("{count} streams"))
            .unwrap();
    }

    pub(super) fn requests(&self) -> Vec<Received> {
        self.shared.requests.lock().unwrap().clone()
    }

    /// Waits until a request has come.
    pub(super) async fn wait(&self, wanted: impl Fn(&Received) -> bool) {
        self.wait_all(|requests| requests.iter().any(&wanted)).await;
    }

    /// Waits until the requests that have come are as wanted.
    pub(super) async fn wait_all(&self, wanted: impl Fn(&[Received]) -> bool) {
        let arrival = async {
            loop {
                let next = self.shared.arrived.notified();
                tokio::pin!(next);
                next.as_mut().enable();
                if wanted(&self.requests()) {
                    return;
                }
                next.await;
            }
        };
        timeout(Duration::from_secs(20), arrival)
            .await
            .expect("the request in time");
    }

    pub(super) fn most_at_once(&self) -> usize {
        self.shared.most.load(Ordering::Relaxed)
    }
}

fn names(prompts: &[&str]) -> Vec<String> {
    prompts.iter().map(|&name| name.to_owned()).collect()
}

async fn handle(State(shared): State<Arc<Shared>>, request: Request) -> Response {
    let active = shared.active.fetch_add(1, Ordering::Relaxed) + 1;
    shared.most.fetch_max(active, Ordering::Relaxed);
    let response = answer(&shared, request).await;
    shared.active.fetch_sub(1, Ordering::Relaxed);
    response
}

async fn answer(shared: &Arc<Shared>, request: Request) -> Response {
    let (head, body) = request.into_parts();
    let bytes = axum::body::to_bytes(body, usize::MAX).await.unwrap();
    let body: Value = serde_json::from_slice(&bytes).unwrap_or_default();
    let method = body["method"].as_str().unwrap_or_default().to_owned();
    let received = Received {
        verb: head.method.to_string(),
        method,
        body,
        headers: head.headers,
    };
    shared.requests.lock().unwrap().push(received.clone());
    shared.arrived.notify_waiters();

    if let Some((status, kind, text)) = shared.instead.lock().unwrap().clone() {
        return response(status, &kind, text);
    }
    let session = received.header("mcp-session-id").to_owned();
    let modern = received.body["params"]["_meta"]
        .get("io.modelcontextprotocol/protocolVersion")
        .is_some();
    let known = shared.sessions.lock().unwrap().contains(&session);
    if !known && !modern && received.method != "initialize" {
        return response(404, "text/plain", "no such session".to_owned());
    }
    match received.verb.as_str() {
        "GET" => return events(shared, None),
        "DELETE" => return response(204, "text/plain", String::new()),
        _ => {}
    }
    if let Value::Array(batch) = &received.body {
        let replies: Vec<Value> = batch
            .iter()
            .filter(|message| message.get("id").is_some())
            .map(|message| json!({"jsonrpc": "2.0", "id": message["id"], "result": {}}))
            .collect();
        return response(200, "application/json", Value::Array(replies).to_string());
    }
    let Some(id) = received
        .body
        .get("id")
        .filter(|_| !received.method.is_empty())
    else {
        return response(202, "text/plain", String::new());
    };
    if received.method == "subscriptions/listen" {
        return events(shared, Some(&received.body));
    }
    let params = &received.body["params"];
    let outcome = match (received.method.as_str(), params["name"].as_str()) {
        ("initialize", _) => {
            let name = format!(
                "session-{}",
                shared.opened.fetch_add(1, Ordering::Relaxed) + 1
            );
            shared.sessions.lock().unwrap().insert(name.clone());
            let result = json!({
                "protocolVersion": params["protocolVersion"],
                "capabilities": {"prompts": {"listChanged": true}},
                "serverInfo": {"name": "fake", "version": "1"},
            });
            let text = json!({"jsonrpc": "2.0", "id": id, "result": result}).to_string();
            let mut response = response(200, "application/json", text);
            response
                .headers_mut()
                .insert("mcp-session-id", name.parse().unwrap());
            return response;
        }
        ("server/discover", _) => {
            Ok(json!({"resultType": "complete", "supportedVersions": ["2026-07-28"]}))
        }
        ("prompts/list", _) => {
            let prompts = shared.prompts.lock().unwrap().clone();
            let prompts: Vec<Value> = prompts.iter().map(|name| json!({"name": name})).collect();
            Ok(json!({"prompts": prompts}))
        }
        ("prompts/get", Some(name))
            if shared
                .prompts
                .lock()
                .unwrap()
                .iter()
                .any(|known| known == name) =>
        {
            let text = format!("{name} {}", params["arguments"]);
            Ok(json!({"messages": [{"role": "user", "content": {"type": "text", "text": text}}]}))
        }
        ("tools/call", Some("slow")) => {
            shared
                .release
                .subscribe()
                .wait_for(|released| *released)
                .await
                .unwrap();
            Ok(json!({"content": []}))
        }
        ("tools/call", Some("pretty")) => {
            let reply = json!({"jsonrpc": "2.0", "id": id, "result": {"content": []}});
            return response(
                200,
                "application/json",
                serde_json::to_string_pretty(&reply).unwrap(),
            );
        }
        ("tools/call", Some("streamed")) => {
            let progress = json!({"jsonrpc": "2.0", "method": "notifications/progress", "params": {"progress": 1}});
            let reply = json!({"jsonrpc": "2.0", "id": id, "result": {"content": []}});
            let text = format!(
                ": hello\n\nid: 1\ndata:\n\ndata: {progress}\n\nevent: message\ndata: {reply}\n\n"
            );
            return response(200, "text/event-stream; charset=utf-8", text);
        }
        ("ping" | "resources/subscribe" | "tools/call", _) => Ok(json!({})),
        ("resources/list", _) => Ok(json!({"resources": []})),
        _ => Err(json!({"code": -32602, "message": "no such thing"})),
    };
    let text = match outcome {
        Ok(result) => json!({"jsonrpc": "2.0", "id": id, "result": result}),
        Err(error) => json!({"jsonrpc": "2.0", "id": id, "error": error}),
    };
    response(200, "application/json", text.to_string())
}

fn response(status: u16, kind: &str, body: String) -> Response {
    Response::builder()
        .status(status)
        .header("content-type", kind)
        .body(Body::from(body))
        .unwrap()
}

/// Counts a stream for as long as somebody reads it.
struct Open(Arc<Shared>);

impl Open {
    fn new(shared: &Arc<Shared>) -> Self {
        shared.streams.send_modify(|open| *open += 1);
        Self(Arc::clone(shared))
    }
}

impl Drop for Open {
    fn drop(&mut self) {
        self.0.streams.send_modify(|open| *open -= 1);
    }
}

/// The stream of a session, or of a subscription.
fn events(shared: &Arc<Shared>, listen: Option<&Value>) -> Response {
    const SUBSCRIPTION: &str = "io.modelcontextprotocol/subscriptionId";
    let receiver = shared.pushed.subscribe();
    let meta = json!({SUBSCRIPTION: format!("of server {}", shared.number)});
    let first = match listen {
        Some(request) => {
            let params =
                json!({"notifications": request["params"]["notifications"], "_meta": meta});
            let method = "notifications/subscriptions/acknowledged";
            format!(
                "data: {}\n\n",
                json!({"jsonrpc": "2.0", "method": method, "params": params})
            )
        }
        None => ": open\n\n".to_owned(),
    };
    let request = listen.map(|request| request["id"].clone());
    let state = (Some(first), receiver, request, Open::new(shared), false);
    let stream = stream::unfold(state, move |(first, mut receiver, request, open, ended)| {
        let meta = meta.clone();
        async move {
            if ended {
                return None;
            }
            if let Some(first) = first {
                return Some((chunk(first), (None, receiver, request, open, false)));
            }
            let text = receiver.recv().await.ok()?;
            if text.is_empty() {
                let id = request.clone()?;
                let end = json!({"jsonrpc": "2.0", "id": id, "result": {"resultType": "complete"}});
                return Some((
                    chunk(format!("data: {end}\n\n")),
                    (None, receiver, request, open, true),
                ));
            }
            let mut message: Value = serde_json::from_str(&text).unwrap();
            if request.is_some() {
                message["params"]["_meta"] = meta;
            }
            Some((
                chunk(format!("data: {message}\n\n")),
                (None, receiver, request, open, false),
            ))
        }
    });
    Response::builder()
        .header("content-type", "text/event-stream")
        .body(Body::from_stream(stream))
        .unwrap()
}

#[allow(clippy::unnecessary_wraps, reason = "streams of bodies carry results")]
fn chunk(text: String) -> Result<Bytes, Infallible> {
    Ok(Bytes::from(text))
}
