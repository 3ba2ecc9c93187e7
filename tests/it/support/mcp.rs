//! Two clients: one of each era, as plain as can be.

use std::net::SocketAddr;
use std::sync::atomic::{AtomicU64, Ordering};

use serde_json::{Value, json};

use super::http::{Events, Reply, send};
use super::server::TestServer;

static ID: AtomicU64 = AtomicU64::new(1);

/// The modern revision.
pub(crate) const MODERN: &str = "2026-07-28";
/// The legacy revisions, oldest first.
pub(crate) const LEGACY: [&str; 4] = ["2024-11-05", "2025-03-26", "2025-06-18", "2025-11-25"];

/// A request as text.
pub(crate) fn request(method: &str, params: &Value) -> String {
    let id = ID.fetch_add(1, Ordering::Relaxed);
    json!({ "jsonrpc": "2.0", "id": id, "method": method, "params": params }).to_string()
}

/// A client of either era.
#[derive(Debug, Clone)]
pub(crate) struct Client {
    pub(crate) address: SocketAddr,
    pub(crate) path: String,
    pub(crate) revision: &'static str,
    pub(crate) name: &'static str,
    pub(crate) session: Option<String>,
}

impl Client {
    /// A legacy client with a session.
    pub(crate) async fn legacy(server: &TestServer, revision: &'static str) -> Self {
        Self::named(server, revision, "test").await
    }

    /// A modern client, which needs nothing to begin.
    pub(crate) fn modern(server: &TestServer) -> Self {
        Self {
            address: server.address,
            path: "/mcp".into(),
            revision: MODERN,
            name: "test",
            session: None,
        }
    }

    /// A client of any revision that goes by a name.
    pub(crate) async fn named(
        server: &TestServer,
        revision: &'static str,
        name: &'static str,
    ) -> Self {
        let mut client = Self {
            revision,
            name,
            ..Self::modern(server)
        };
        if revision != MODERN {
            client.initialize().await;
        }
        client
    }

    /// The same at another path.
    pub(crate) fn at(&self, path: &str) -> Self {
        Self {
            path: path.into(),
            ..self.clone()
        }
    }

    /// Begins a session; the result.
    pub(crate) async fn initialize(&mut self) -> Value {
        let params = json!({
            "protocolVersion": self.revision,
            "capabilities": {},
            "clientInfo": { "name": self.name, "version": "1.0" }
        });
        self.session = None;
        let reply = self.post(&request("initialize", &params), &[]).await;
        assert_eq!(reply.status, 200, "{reply:?}");
        self.session = reply.header("mcp-session-id").map(str::to_owned);
        assert!(self.session.is_some(), "{reply:?}");
        let body = reply.json();
        assert_eq!(body["result"]["protocolVersion"], self.revision, "{body}");
        let initialized =
            json!({ "jsonrpc": "2.0", "method": "notifications/initialized" }).to_string();
        assert_eq!(self.post(&initialized, &[]).await.status, 202);
        body["result"].clone()
    }

    pub(crate) fn is_modern(&self) -> bool {
        self.revision == MODERN
    }

    /// The `_meta` that makes parameters modern.
    pub(crate) fn meta(&self) -> Value {
        json!({
            "io.modelcontextprotocol/protocolVersion": self.revision,
            "io.modelcontextprotocol/clientInfo": { "name": self.name, "version": "1.0" },
            "io.modelcontextprotocol/clientCapabilities": {}
        })
    }

    /// A body as it is, with the headers of this client and more.
    pub(crate) async fn post(&self, body: &str, more: &[(&str, &str)]) -> Reply {
        let mut headers = self.headers();
        headers.extend_from_slice(more);
        send(self.address, "POST", &self.path, &headers, body.as_bytes()).await
    }

    fn headers(&self) -> Vec<(&str, &str)> {
        let mut headers = vec![
            ("Content-Type", "application/json"),
            ("Accept", "application/json, text/event-stream"),
        ];
        if self.is_modern() || self.session.is_some() {
            headers.push(("MCP-Protocol-Version", self.revision));
        }
        if let Some(session) = &self.session {
            headers.push(("Mcp-Session-Id", session));
        }
        headers
    }

    /// One call as an HTTP exchange.
    pub(crate) async fn exchange(&self, method: &str, params: Value) -> Reply {
        let (body, name) = self.prepare(method, params);
        let mut more = Vec::new();
        if self.is_modern() {
            more.push(("Mcp-Method", method));
            if let Some(name) = &name {
                more.push(("Mcp-Name", name));
            }
        }
        self.post(&body, &more).await
    }

    fn prepare(&self, method: &str, mut params: Value) -> (String, Option<String>) {
        let name = params["name"]
            .as_str()
            .or(params["uri"].as_str())
            .map(|name| {
                use base64::Engine;
                format!(
                    "=?base64?{}?=",
                    base64::engine::general_purpose::STANDARD.encode(name)
                )
            });
        if self.is_modern() {
            params["_meta"] = self.meta();
        }
        (request(method, &params), name)
    }

    /// One call; its result.
    #[track_caller]
    pub(crate) fn call(
        &self,
        method: &str,
        params: Value,
    ) -> impl Future<Output = Value> + use<'_> {
        let at = std::panic::Location::caller();
        let method = method.to_owned();
        async move {
            let reply = self.exchange(&method, params).await;
            let body = reply.json();
            assert!(
                body.get("result").is_some(),
                "{at}: {method}: {} {body}",
                reply.status
            );
            assert_eq!(reply.status, 200);
            assert_eq!(
                body["result"]["resultType"].as_str(),
                self.is_modern().then_some("complete"),
                "{at}: {body}"
            );
            body["result"].clone()
        }
    }

    /// One call that must fail: status, code and message.
    pub(crate) async fn fail(&self, method: &str, params: Value) -> (u16, i64, String) {
        let reply = self.exchange(method, params).await;
        let body = reply.json();
        let error = &body["error"];
        assert!(error.is_object(), "{method}: {body}");
        let message = error["message"].as_str().unwrap().to_owned();
        assert!(!message.contains('\n'), "{message}");
        (reply.status, error["code"].as_i64().unwrap(), message)
    }

    /// The same, with headers that a careless client would send.
    pub(crate) async fn fail_raw(&self, method: &str, mut params: Value) -> (u16, i64) {
        if self.is_modern() {
            params["_meta"] = self.meta();
        }
        let reply = self
            .post(&request(method, &params), &[("Mcp-Method", method)])
            .await;
        (
            reply.status,
            reply.json()["error"]["code"].as_i64().unwrap(),
        )
    }

    /// Names of all prompts, page by page.
    pub(crate) async fn names(&self) -> Vec<String> {
        let mut names = Vec::new();
        let mut params = json!({});
        loop {
            let page = self.call("prompts/list", params).await;
            names.extend(
                page["prompts"]
                    .as_array()
                    .unwrap()
                    .iter()
                    .map(|p| p["name"].as_str().unwrap().to_owned()),
            );
            match page.get("nextCursor") {
                Some(cursor) => params = json!({ "cursor": cursor }),
                None => return names,
            }
        }
    }

    /// Gets a prompt; its result.
    pub(crate) async fn get(&self, name: &str, arguments: Value) -> Value {
        self.call(
            "prompts/get",
            json!({ "name": name, "arguments": arguments }),
        )
        .await
    }

    /// The texts of a prompt's messages.
    pub(crate) async fn texts(&self, name: &str, arguments: Value) -> Vec<String> {
        let got = self.get(name, arguments).await;
        got["messages"]
            .as_array()
            .unwrap()
            .iter()
            .map(|m| m["content"]["text"].as_str().unwrap_or_default().to_owned())
            .collect()
    }

    /// Opens this client's stream of notices: `GET` for a legacy one, `subscriptions/listen` for a modern one.
    pub(crate) async fn listen(&self, filter: Value) -> Events {
        if self.is_modern() {
            let params = json!({ "_meta": self.meta(), "notifications": filter });
            let body = request("subscriptions/listen", &params);
            let mut headers = self.headers();
            headers.push(("Mcp-Method", "subscriptions/listen"));
            return Events::open(self.address, "POST", &self.path, &headers, body.as_bytes()).await;
        }
        Events::open(self.address, "GET", &self.path, &self.headers(), b"").await
    }
}
