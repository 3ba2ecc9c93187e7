//! The bridge between a client in memory and a small server on a real socket that can go away.

mod server;

use std::path::Path;

use serde_json::{Value, json};
use tokio::io::{
    AsyncWriteExt, BufReader, DuplexStream, Lines, ReadHalf, WriteHalf, duplex, split,
};
use tokio::task::JoinHandle;

use super::*;
use server::Server;

const LEGACY: &str = "2025-11-25";
const MODERN: &str = "2026-07-28";

/// Short enough for tests, long enough for a busy machine.
fn timing() -> Timing {
    Timing {
        patience: Duration::from_millis(100),
        first_retry: Duration::from_millis(20),
        last_retry: Duration::from_millis(100),
        answer: Duration::from_secs(20),
        list_answer: Duration::from_secs(5),
        ..Timing::default()
    }
}

/// A client with a bridge of its own.
struct Client {
    input: Option<WriteHalf<DuplexStream>>,
    output: Lines<BufReader<ReadHalf<DuplexStream>>>,
    bridge: JoinHandle<anyhow::Result<()>>,
    next_id: u64,
    /// Messages that came while something else was awaited.
    aside: Vec<Value>,
    modern: bool,
}

impl Client {
    fn start(url: &str) -> Self {
        Self::with(url, None, None)
    }

    fn with(url: &str, cache: Option<&Path>, token: Option<&str>) -> Self {
        let options = Options {
            token: token.map(str::to_owned),
            cache: cache.map(Path::to_owned),
            timing: timing(),
            now: crate::clock::now,
        };
        let (near, far) = duplex(64 * 1024);
        let (output, input) = split(near);
        let (stdin, stdout) = split(far);
        let url = url.to_owned();
        let bridge = tokio::spawn(async move { run(&url, stdin, stdout, options).await });
        let output = BufReader::new(output).lines();
        Self {
            input: Some(input),
            output,
            bridge,
            next_id: 0,
            aside: Vec::new(),
            modern: false,
        }
    }

    /// A client that has shaken hands as legacy clients do.
    async fn greeted(url: &str, cache: Option<&Path>) -> Self {
        let mut client = Self::with(url, cache, None);
        client.greet().await;
        client
    }

    async fn greet(&mut self) -> Value {
        let info = json!({"name": "test", "version": "1"});
        let params = json!({"protocolVersion": LEGACY, "capabilities": {}, "clientInfo": info});
        let greeting = self.result("initialize", params).await;
        self.notify("notifications/initialized").await;
        greeting
    }

    fn modern(url: &str) -> Self {
        Self {
            modern: true,
            ..Self::start(url)
        }
    }

    async fn line(&mut self, line: &str) {
        let input = self.input.as_mut().unwrap();
        input
            .write_all(format!("{line}\n").as_bytes())
            .await
            .unwrap();
    }

    async fn send(&mut self, message: Value) {
        self.line(&message.to_string()).await;
    }

    async fn notify(&mut self, method: &str) {
        self.send(json!({"jsonrpc": "2.0", "method": method})).await;
    }

    async fn read(&mut self) -> Value {
        let line = timeout(Duration::from_secs(20), self.output.next_line()).await;
        serde_json::from_str(
            &line
                .expect("a message in time")
                .unwrap()
                .expect("a message"),
        )
        .unwrap()
    }

    /// Sends a request and gives its id.
    async fn ask(&mut self, method: &str, mut params: Value) -> u64 {
        self.next_id += 1;
        if self.modern {
            params["_meta"] = json!({
                "io.modelcontextprotocol/protocolVersion": MODERN,
                "io.modelcontextprotocol/clientInfo": {"name": "test", "version": "1"},
                "io.modelcontextprotocol/clientCapabilities": {},
            });
        }
        let id = self.next_id;
        self.send(json!({"jsonrpc": "2.0", "id": id, "method": method, "params": params}))
            .await;
        id
    }

    /// Waits for the reply to a request.
    async fn reply(&mut self, id: u64) -> Value {
        self.wait(|message| message["id"] == id && message.get("method").is_none())
            .await
    }

    /// Waits for a notification.
    async fn notification(&mut self, method: &str) -> Value {
        self.wait(|message| message["method"] == method).await
    }

    async fn wait(&mut self, wanted: impl Fn(&Value) -> bool) -> Value {
        if let Some(at) = self.aside.iter().position(&wanted) {
            return self.aside.remove(at);
        }
        loop {
            let message = self.read().await;
            if wanted(&message) {
                return message;
            }
            self.aside.push(message);
        }
    }

    async fn result(&mut self, method: &str, params: Value) -> Value {
        let id = self.ask(method, params).await;
        let reply = self.reply(id).await;
        assert!(reply.get("error").is_none(), "{reply}");
        reply["result"].clone()
    }

    async fn error(&mut self, method: &str, params: Value) -> (i64, String) {
        let id = self.ask(method, params).await;
        let reply = self.reply(id).await;
        assert!(reply.get("result").is_none(), "{reply}");
        (
            reply["error"]["code"].as_i64().unwrap(),
            reply["error"]["message"].as_str().unwrap().to_owned(),
        )
    }

    async fn prompts(&mut self) -> Vec<String> {
        let result = self.result("prompts/list", json!({})).await;
        let prompts = result["prompts"].as_array().unwrap();
        prompts
            .iter()
            .map(|prompt| prompt["name"].as_str().unwrap().to_owned())
            .collect()
    }

    /// Closes stdin; gives what was still written.
    async fn close(mut self) -> Vec<Value> {
        self.input.take().unwrap().shutdown().await.unwrap();
        let mut rest = std::mem::take(&mut self.aside);
        while let Some(line) = self.output.next_line().await.unwrap() {
            rest.push(serde_json::from_str(&line).unwrap());
        }
        timeout(Duration::from_secs(20), self.bridge)
            .await
            .unwrap()
            .unwrap()
            .unwrap();
        rest
    }

    /// Closes where lists have changed: that may have been said once more than was waited for.
    async fn close_after_news(self) {
        let rest = self.close().await;
        let news = |message: &Value| {
            message["method"]
                .as_str()
                .is_some_and(|method| method.ends_with("/list_changed"))
        };
        assert!(rest.iter().all(news), "{rest:?}");
    }
}

const PROMPTS_CHANGED: &str = "notifications/prompts/list_changed";

#[tokio::test]
async fn a_legacy_client_is_passed_through() {
    let server = Server::start(&["triage"]).await;
    let mut client = Client::with(&server.url(), None, Some("secret"));
    let greeting = client.greet().await;
    assert_eq!(greeting["serverInfo"]["name"], "fake");
    assert_eq!(client.prompts().await, ["triage"]);
    let prompt = client
        .result(
            "prompts/get",
            json!({"name": "triage", "arguments": {"a": "한글"}}),
        )
        .await;
    assert_eq!(
        prompt["messages"][0]["content"]["text"],
        r#"triage {"a":"한글"}"#
    );
    assert!(prompt.get("_meta").is_none());
    assert_eq!(
        client
            .error("prompts/get", json!({"name": "nothing"}))
            .await
            .0,
        -32602
    );
    server.streams(1).await;
    assert_eq!(client.close().await, Vec::<Value>::new());

    let requests = server.requests();
    assert!(
        requests
            .iter()
            .all(|request| request.header("authorization") == "Bearer secret")
    );
    let (first, others) = requests.split_first().unwrap();
    assert_eq!(
        (first.method.as_str(), first.header("mcp-session-id")),
        ("initialize", "")
    );
    assert!(
        others
            .iter()
            .all(|request| request.header("mcp-session-id") == "session-1")
    );
    assert!(
        others
            .iter()
            .all(|request| request.header("mcp-protocol-version") == LEGACY)
    );
    assert!(
        others
            .iter()
            .any(|request| request.method == "notifications/initialized")
    );
    assert!(others.iter().any(|request| request.verb == "GET"));
    assert_eq!(requests.last().unwrap().verb, "DELETE");
}

#[tokio::test]
async fn notifications_of_the_session_are_passed_through() {
    let server = Server::start(&["triage"]).await;
    let mut client = Client::greeted(&server.url(), None).await;
    server.streams(1).await;
    server.publish(&["triage", "review"]);
    client.notification(PROMPTS_CHANGED).await;
    assert_eq!(client.prompts().await, ["triage", "review"]);
    // A request of the server's own, and the client's answer to it.
    server.push(&json!({"jsonrpc": "2.0", "id": "s1", "method": "ping"}));
    assert_eq!(
        client.wait(|message| message["method"] == "ping").await["id"],
        "s1"
    );
    client
        .send(json!({"jsonrpc": "2.0", "id": "s1", "result": {}}))
        .await;
    server
        .wait(|request| request.body["id"] == "s1" && request.body.get("result").is_some())
        .await;
}

#[tokio::test]
async fn a_lost_session_is_opened_again_unseen() {
    let server = Server::start(&["triage"]).await;
    let mut client = Client::greeted(&server.url(), None).await;
    client
        .result("resources/subscribe", json!({"uri": "runbook://payments"}))
        .await;
    server.streams(1).await;
    server.forget_sessions();
    assert_eq!(client.prompts().await, ["triage"]);
    // The new session is ready, has the subscription, and is listened to.
    for method in ["notifications/initialized", "resources/subscribe"] {
        server
            .wait(|request| {
                request.method == method && request.header("mcp-session-id") == "session-2"
            })
            .await;
    }
    server.streams(1).await;
    server.publish(&["triage", "review"]);
    client.notification(PROMPTS_CHANGED).await;
    client.close_after_news().await;
}

#[tokio::test]
async fn an_absent_server_is_stood_in_for() {
    let server = Server::start(&["triage"]).await;
    let mut client = Client::greeted(&server.url(), None).await;
    client.prompts().await;
    let call = json!({"name": "triage", "arguments": {"a": "1"}});
    let fresh = client.result("prompts/get", call.clone()).await;
    let (address, url) = (server.address(), server.url());
    server.stop().await;

    assert_eq!(client.prompts().await, ["triage"]);
    let stale = client.result("prompts/get", call).await;
    assert_eq!(stale["messages"], fresh["messages"]);
    assert_eq!(stale["_meta"]["dev.cuebook/stale"], true);
    assert!(
        stale["_meta"]["dev.cuebook/staleSince"]
            .as_str()
            .unwrap()
            .ends_with('Z'),
        "{stale}"
    );
    let (code, text) = client
        .error(
            "prompts/get",
            json!({"name": "triage", "arguments": {"a": "2"}}),
        )
        .await;
    assert_eq!(code, -32603);
    assert!(
        text.starts_with(&format!("cuebook server at {url} cannot be reached: ")),
        "{text}"
    );
    assert!(
        text.ends_with("; retrying") && !text.contains('\n'),
        "{text}"
    );
    assert_eq!(client.error("resources/list", json!({})).await.0, -32603);
    assert_eq!(client.result("ping", json!({})).await, json!({}));
    let completion = client.result("completion/complete", json!({})).await;
    assert_eq!(completion["completion"]["values"], json!([]));
    client
        .result("resources/subscribe", json!({"uri": "runbook://a"}))
        .await;

    let server = Server::start_at(address, &["triage", "review"]).await;
    client.notification(PROMPTS_CHANGED).await;
    assert_eq!(client.prompts().await, ["triage", "review"]);
    client
        .result(
            "prompts/get",
            json!({"name": "review", "arguments": {"a": "2"}}),
        )
        .await;
    // The resources list was asked for in vain; the subscription was made without the server.
    client
        .notification("notifications/resources/list_changed")
        .await;
    server
        .wait(|request| request.method == "resources/subscribe")
        .await;
    client.close_after_news().await;
}

#[tokio::test]
async fn a_restart_without_a_change_is_no_news() {
    let server = Server::start(&["triage"]).await;
    let mut client = Client::greeted(&server.url(), None).await;
    client.prompts().await;
    server.streams(1).await;
    let address = server.address();
    server.stop().await;
    let server = Server::start_at(address, &["triage"]).await;
    // The list is compared by the bridge, on the new stream.
    server.streams(1).await;
    server
        .wait(|request| request.method == "prompts/list" && request.body["id"] == "cuebook-bridge")
        .await;
    client.result("ping", json!({})).await;
    assert_eq!(client.close().await, Vec::<Value>::new());
}

#[tokio::test]
async fn a_request_outlasts_a_short_restart() {
    let server = Server::start(&["triage"]).await;
    let mut client = Client::greeted(&server.url(), None).await;
    let address = server.address();
    server.stop().await;
    let id = client.ask("tools/call", json!({"name": "echo"})).await;
    let _server = Server::start_at(address, &["triage"]).await;
    // Either it was tried long enough, or the client is told; never silence.
    let reply = client.reply(id).await;
    assert!(
        reply.get("result").is_some() || reply["error"]["code"] == -32603,
        "{reply}"
    );
}

#[tokio::test]
async fn an_editor_started_without_the_server_shows_the_cached_lists() {
    let folder = tempfile::tempdir().unwrap();
    let server = Server::start(&["triage"]).await;
    let url = server.url();
    let mut client = Client::greeted(&url, Some(folder.path())).await;
    client.prompts().await;
    client
        .result(
            "prompts/get",
            json!({"name": "triage", "arguments": {"a": "1"}}),
        )
        .await;
    client.close().await;
    let address = server.address();
    server.stop().await;

    let mut client = Client::with(&url, Some(folder.path()), None);
    assert_eq!(client.greet().await["serverInfo"]["name"], "fake");
    assert_eq!(client.prompts().await, ["triage"]);
    // Rendered prompts are not on disk.
    assert_eq!(
        client
            .error(
                "prompts/get",
                json!({"name": "triage", "arguments": {"a": "1"}})
            )
            .await
            .0,
        -32603
    );

    let server = Server::start_at(address, &["review"]).await;
    client.notification(PROMPTS_CHANGED).await;
    assert_eq!(client.prompts().await, ["review"]);
    // A true session now, with its stream.
    server.streams(1).await;
    server.publish(&[]);
    client.notification(PROMPTS_CHANGED).await;
    client.close_after_news().await;
}

#[tokio::test]
async fn the_cache_of_one_token_is_not_shown_to_another() {
    let folder = tempfile::tempdir().unwrap();
    let server = Server::start(&["triage"]).await;
    let url = server.url();
    let mut client = Client::with(&url, Some(folder.path()), Some("a"));
    client.greet().await;
    client.prompts().await;
    client.close().await;
    server.stop().await;
    let mut client = Client::with(&url, Some(folder.path()), Some("b"));
    client.greet().await;
    assert_eq!(client.error("prompts/list", json!({})).await.0, -32603);
}

#[tokio::test]
async fn a_server_never_seen_can_still_come() {
    let server = Server::start(&[]).await;
    let (address, url) = (server.address(), server.url());
    server.stop().await;
    let mut client = Client::start(&url);
    let greeting = client.greet().await;
    assert_eq!(greeting["protocolVersion"], LEGACY);
    assert_eq!(greeting["capabilities"]["prompts"]["listChanged"], true);
    assert_eq!(client.error("prompts/list", json!({})).await.0, -32603);
    let _server = Server::start_at(address, &["triage"]).await;
    client.notification(PROMPTS_CHANGED).await;
    assert_eq!(client.prompts().await, ["triage"]);
}

#[tokio::test]
async fn a_modern_client_is_passed_through() {
    let server = Server::start(&["triage"]).await;
    let mut client = Client::modern(&server.url());
    assert_eq!(
        client.result("server/discover", json!({})).await["resultType"],
        "complete"
    );
    assert_eq!(client.prompts().await, ["triage"]);
    assert_eq!(
        client.error("prompts/get", json!({"name": "장애"})).await.0,
        -32602
    );
    client
        .result("prompts/get", json!({"name": "triage"}))
        .await;
    assert_eq!(client.close().await, Vec::<Value>::new());
    for request in server.requests() {
        assert_eq!(request.verb, "POST");
        assert_eq!(request.header("mcp-protocol-version"), MODERN);
        assert_eq!(request.header("mcp-method"), request.method);
        assert_eq!(request.header("mcp-session-id"), "");
        let name = match request.body["params"]["name"].as_str() {
            Some("장애") => "=?base64?7J6l7JWg?=",
            name => name.unwrap_or_default(),
        };
        assert_eq!(request.header("mcp-name"), name);
    }
}

#[tokio::test]
async fn a_subscription_outlasts_the_server() {
    let server = Server::start(&["triage"]).await;
    let mut client = Client::modern(&server.url());
    client.prompts().await;
    let listen = client
        .ask(
            "subscriptions/listen",
            json!({"notifications": {"promptsListChanged": true}}),
        )
        .await;
    let acknowledged = client
        .notification("notifications/subscriptions/acknowledged")
        .await;
    let subscription = acknowledged["params"]["_meta"][message::SUBSCRIPTION].clone();
    server.publish(&["triage", "b"]);
    let changed = client.notification(PROMPTS_CHANGED).await;
    assert_eq!(
        changed["params"]["_meta"][message::SUBSCRIPTION],
        subscription
    );
    client.prompts().await;

    let address = server.address();
    server.stop().await;
    assert_eq!(client.prompts().await, ["triage", "b"]);
    let server = Server::start_at(address, &["triage", "c"]).await;
    let changed = client.notification(PROMPTS_CHANGED).await;
    assert_eq!(
        changed["params"]["_meta"][message::SUBSCRIPTION],
        subscription
    );
    server.streams(1).await;
    server.publish(&["d"]);
    // The new server calls the subscription otherwise; the client knows the first name.
    let changed = client.notification(PROMPTS_CHANGED).await;
    assert_eq!(
        changed["params"]["_meta"][message::SUBSCRIPTION],
        subscription
    );

    // Hanging up is how a modern client cancels.
    client.send(json!({"jsonrpc": "2.0", "method": "notifications/cancelled", "params": {"requestId": listen}})).await;
    server.streams(0).await;
    let rest = client.close().await;
    assert!(
        rest.iter()
            .all(|message| message["method"] == PROMPTS_CHANGED),
        "{rest:?}"
    );
    assert!(
        server
            .requests()
            .iter()
            .all(|request| request.method != "notifications/cancelled")
    );
}

#[tokio::test]
async fn a_graceful_end_of_a_subscription_is_a_restart() {
    let server = Server::start(&["triage"]).await;
    let mut client = Client::modern(&server.url());
    client
        .ask(
            "subscriptions/listen",
            json!({"notifications": {"promptsListChanged": true}}),
        )
        .await;
    client
        .notification("notifications/subscriptions/acknowledged")
        .await;
    server.end_streams();
    server
        .wait_all(|requests| {
            requests
                .iter()
                .filter(|request| request.method == "subscriptions/listen")
                .count()
                == 2
        })
        .await;
    server.streams(1).await;
    server.publish(&["b"]);
    client.notification(PROMPTS_CHANGED).await;
    client.close_after_news().await;
}

#[tokio::test]
async fn cancelled_requests_are_given_up() {
    let server = Server::start(&[]).await;
    let mut client = Client::greeted(&server.url(), None).await;
    let id = client.ask("tools/call", json!({"name": "slow"})).await;
    server.wait(|request| request.method == "tools/call").await;
    client.send(json!({"jsonrpc": "2.0", "method": "notifications/cancelled", "params": {"requestId": id}})).await;
    server
        .wait(|request| request.method == "notifications/cancelled")
        .await;
    server.release();
    client.result("ping", json!({})).await;
    assert_eq!(client.close().await, Vec::<Value>::new());
}

#[tokio::test]
async fn pending_replies_are_finished_after_the_end_of_stdin() {
    let server = Server::start(&[]).await;
    let mut client = Client::greeted(&server.url(), None).await;
    let id = client.ask("tools/call", json!({"name": "slow"})).await;
    server.wait(|request| request.method == "tools/call").await;
    let closing = tokio::spawn(client.close());
    tokio::task::yield_now().await;
    server.release();
    let rest = closing.await.unwrap();
    assert_eq!((rest.len(), &rest[0]["id"]), (1, &json!(id)));
}

#[tokio::test]
async fn bad_lines_are_answered_and_survived() {
    let server = Server::start(&["triage"]).await;
    let mut client = Client::greeted(&server.url(), None).await;
    for (line, code) in [("{oops", -32700), ("5", -32600), (r#"{"id":1}"#, -32600)] {
        client.line(line).await;
        let reply = client.read().await;
        assert_eq!(
            (&reply["id"], &reply["error"]["code"]),
            (&Value::Null, &json!(code)),
            "{line}"
        );
    }
    client.line("").await;
    client.line("  \r").await;
    client.line(&"x".repeat(MAX_LINE + 1)).await;
    assert_eq!(client.read().await["error"]["code"], -32600);
    assert_eq!(client.prompts().await, ["triage"]);
}

#[tokio::test]
async fn a_reply_may_be_a_stream() {
    let server = Server::start(&[]).await;
    let mut client = Client::greeted(&server.url(), None).await;
    let id = client.ask("tools/call", json!({"name": "streamed"})).await;
    let first = client.read().await;
    assert_eq!(first["method"], "notifications/progress");
    assert_eq!(client.read().await["id"], id);
    // Pretty-printed JSON is one line all the same.
    assert_eq!(
        client.result("tools/call", json!({"name": "pretty"})).await["content"],
        json!([])
    );
}

#[tokio::test]
async fn a_batch_is_one_request_and_one_line() {
    let server = Server::start(&[]).await;
    let mut client = Client::greeted(&server.url(), None).await;
    let batch = r#"[{"jsonrpc":"2.0","id":7,"method":"ping"},{"jsonrpc":"2.0","method":"notifications/x"}]"#;
    client.line(batch).await;
    assert_eq!(
        client.read().await,
        json!([{"jsonrpc": "2.0", "id": 7, "result": {}}])
    );
    server.stop().await;
    client.line(batch).await;
    let reply = client.wait(Value::is_array).await;
    assert_eq!(
        (&reply[0]["id"], &reply[0]["error"]["code"]),
        (&json!(7), &json!(-32603))
    );
    assert_eq!(reply.as_array().unwrap().len(), 1);
}

#[tokio::test]
async fn a_refused_client_gets_nothing_from_memory() {
    let server = Server::start(&["triage"]).await;
    let mut client = Client::greeted(&server.url(), None).await;
    client.prompts().await;
    server.answer_with(401, "text/plain", "");
    let (code, text) = client.error("prompts/list", json!({})).await;
    assert_eq!(code, -32603);
    assert!(text.contains("CUEBOOK_TOKEN"), "{text}");
}

#[tokio::test]
async fn what_answers_in_the_servers_place_is_an_absence() {
    let server = Server::start(&["triage"]).await;
    let mut client = Client::greeted(&server.url(), None).await;
    client.prompts().await;
    for (status, kind) in [
        (200, "text/html"),
        (502, "text/html"),
        (302, "text/html"),
        (404, "text/plain"),
    ] {
        server.answer_with(status, kind, "<h1>Log in to the hotel's network</h1>");
        assert_eq!(client.prompts().await, ["triage"], "{status}");
        server.answer_normally();
        server.streams(1).await;
        client.result("ping", json!({})).await;
    }
}

#[tokio::test]
async fn many_requests_at_once_are_all_answered() {
    let server = Server::start(&["triage"]).await;
    let mut client = Client::greeted(&server.url(), None).await;
    let mut input = client.input.take().unwrap();
    let writing = tokio::spawn(async move {
        for id in 1000..1500 {
            let line = message::request(
                "x",
                "prompts/get",
                &json!({"name": "triage", "arguments": {"n": id}}),
            )
            .replace("\"x\"", &id.to_string());
            input
                .write_all(format!("{line}\n").as_bytes())
                .await
                .unwrap();
        }
        input
    });
    let mut seen = std::collections::BTreeSet::new();
    while seen.len() < 500 {
        let reply = client.read().await;
        let id = reply["id"].as_u64().unwrap();
        let text = reply["result"]["messages"][0]["content"]["text"]
            .as_str()
            .unwrap();
        assert_eq!(text, format!(r#"triage {{"n":{id}}}"#));
        seen.insert(id);
    }
    client.input = Some(writing.await.unwrap());
    assert!(
        server.most_at_once() <= MAX_ACTIVE + 2,
        "{}",
        server.most_at_once()
    );
    client.close().await;
}

#[tokio::test]
async fn a_client_that_is_gone_ends_the_bridge() {
    let server = Server::start(&["triage"]).await;
    let mut client = Client::greeted(&server.url(), None).await;
    client.ask("prompts/list", json!({})).await;
    let Client {
        input,
        output,
        bridge,
        ..
    } = client;
    drop((input, output));
    timeout(Duration::from_secs(20), bridge)
        .await
        .unwrap()
        .unwrap()
        .unwrap();
}

#[tokio::test]
async fn nothing_can_be_bridged_to_a_bad_address_or_with_a_bad_token() {
    let options = |token: Option<&str>| Options {
        token: token.map(str::to_owned),
        cache: None,
        timing: timing(),
        now: crate::clock::now,
    };
    assert!(
        run(
            "ftp://x",
            tokio::io::empty(),
            tokio::io::sink(),
            options(None)
        )
        .await
        .is_err()
    );
    let error = run(
        "http://x",
        tokio::io::empty(),
        tokio::io::sink(),
        options(Some("a\nb")),
    )
    .await
    .unwrap_err();
    assert!(error.to_string().contains("CUEBOOK_TOKEN"), "{error}");
    // https needs the machine's certificates, or at least must not panic without them.
    let _ = run(
        "https://127.0.0.1:1/mcp",
        tokio::io::empty(),
        tokio::io::sink(),
        options(None),
    )
    .await;
}

#[test]
fn options_come_from_the_environment() {
    let variables = |name: &str| match name {
        "CUEBOOK_TOKEN" => Some(OsString::from("t")),
        "XDG_CACHE_HOME" | "LOCALAPPDATA" => {
            Some(OsString::from(if cfg!(windows) { r"C:\c" } else { "/c" }))
        }
        "HOME" => Some(OsString::from("/home/x")),
        _ => None,
    };
    let options = Options::from_environment(variables);
    assert_eq!(options.token.as_deref(), Some("t"));
    assert!(options.cache.unwrap().ends_with("cuebook"));
    let none = Options::from_environment(|_| Some(OsString::from(" ")));
    assert_eq!((none.token, none.cache), (None, None));
}

#[tokio::test]
async fn lines_are_read_whatever_their_end() {
    let mut input = BufReader::new(&b"a\n\nb\r\nc"[..]);
    let mut lines = Vec::new();
    loop {
        match read_line(&mut input).await.unwrap() {
            Line::End => break,
            line => lines.push(line),
        }
    }
    let text = |text: &[u8]| Line::Text(text.to_vec());
    assert_eq!(lines, [text(b"a"), text(b""), text(b"b\r"), text(b"c")]);
}
