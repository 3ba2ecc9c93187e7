//! stdio: the transport on a pair of pipes in this process.

use std::sync::Arc;

use cuebook::mcp::{self, Service};
use serde_json::{Value, json};
use tokio::io::{AsyncBufReadExt, AsyncWriteExt, BufReader, DuplexStream, ReadHalf, WriteHalf};
use tokio::task::JoinHandle;
use tokio_util::sync::CancellationToken;

use crate::support::library::TestLibrary;
use crate::support::mcp::MODERN;
use crate::support::server::{registry, settings};
use crate::support::soon;

struct Pipe {
    registry: Arc<cuebook::registry::Registry>,
    input: Option<WriteHalf<DuplexStream>>,
    output: BufReader<ReadHalf<DuplexStream>>,
    cancel: CancellationToken,
    task: JoinHandle<std::io::Result<()>>,
}

impl Pipe {
    async fn open(library: &TestLibrary, settings: mcp::Settings) -> Self {
        let registry = registry(library).await;
        let service = Arc::new(Service::new(registry.clone(), settings));
        let (ours, theirs) = tokio::io::duplex(64 * 1024);
        let (reader, writer) = tokio::io::split(theirs);
        let cancel = CancellationToken::new();
        let task = tokio::spawn(mcp::stdio::run(service, reader, writer, cancel.clone()));
        let (output, input) = tokio::io::split(ours);
        Self {
            registry,
            input: Some(input),
            output: BufReader::new(output),
            cancel,
            task,
        }
    }

    async fn write(&mut self, bytes: &[u8]) {
        self.input.as_mut().unwrap().write_all(bytes).await.unwrap();
    }

    async fn send(&mut self, message: Value) {
        self.write(format!("{message}\n").as_bytes()).await;
    }

    async fn read(&mut self) -> Value {
        let mut line = String::new();
        soon("a line", self.output.read_line(&mut line))
            .await
            .unwrap();
        serde_json::from_str(&line).unwrap_or_else(|e| panic!("{e}: {line:?}"))
    }

    async fn call(&mut self, id: i64, method: &str, params: Value) -> Value {
        self.send(json!({ "jsonrpc": "2.0", "id": id, "method": method, "params": params }))
            .await;
        let answer = self.read().await;
        assert_eq!(answer["id"], id, "{answer}");
        answer
    }

    async fn initialize(&mut self, revision: &str) {
        let params = json!({ "protocolVersion": revision, "capabilities": {}, "clientInfo": { "name": "test", "version": "1" } });
        let answer = self.call(0, "initialize", params).await;
        assert_eq!(answer["result"]["protocolVersion"], revision);
        self.send(json!({ "jsonrpc": "2.0", "method": "notifications/initialized" }))
            .await;
    }

    async fn publish(&self, library: &TestLibrary, files: &[(&str, &str)]) {
        library.publish(files);
        let registry = self.registry.clone();
        tokio::task::spawn_blocking(move || registry.refresh().unwrap())
            .await
            .unwrap();
    }
}

fn meta() -> Value {
    json!({ "io.modelcontextprotocol/protocolVersion": MODERN, "io.modelcontextprotocol/clientCapabilities": {} })
}

const ONE: (&str, &str) = ("prompts/one.md", "---\ndescription: One\n---\nOne.\n");
const TWO: (&str, &str) = ("prompts/two.md", "---\ndescription: Two\n---\nTwo.\n");

#[tokio::test]
async fn a_legacy_client_is_told_unasked() {
    let library = TestLibrary::small();
    let mut pipe = Pipe::open(&library, settings()).await;
    assert_eq!(pipe.call(1, "ping", json!({})).await["result"], json!({}));
    pipe.initialize("2025-06-18").await;
    let prompts = pipe.call(2, "prompts/list", json!({})).await;
    assert_eq!(prompts["result"]["prompts"].as_array().unwrap().len(), 7);
    let got = pipe
        .call(3, "prompts/get", json!({ "name": "postmortem" }))
        .await;
    assert_eq!(
        got["result"]["messages"][0]["content"]["text"],
        "Write the postmortem.\n"
    );
    pipe.call(
        4,
        "resources/subscribe",
        json!({ "uri": "runbook://search" }),
    )
    .await;
    pipe.publish(&library, &[ONE]).await;
    assert_eq!(
        pipe.read().await["method"],
        "notifications/prompts/list_changed"
    );
    pipe.publish(&library, &[("resources/runbook/search.md", "# Other\n")])
        .await;
    assert_eq!(
        pipe.read().await["method"],
        "notifications/prompts/list_changed"
    );
    let updated = pipe.read().await;
    assert_eq!(updated["params"]["uri"], "runbook://search", "{updated}");
    // The end of input is the end, and what was asked before it is answered.
    pipe.send(json!({ "jsonrpc": "2.0", "id": "last", "method": "ping" }))
        .await;
    pipe.input.take().unwrap().shutdown().await.unwrap();
    assert_eq!(pipe.read().await["id"], "last");
    soon("the end", pipe.task).await.unwrap().unwrap();
}

#[tokio::test]
async fn a_modern_client_is_told_what_it_asked_for() {
    let library = TestLibrary::small();
    let mut pipe = Pipe::open(&library, settings()).await;
    let discovered = pipe
        .call(1, "server/discover", json!({ "_meta": meta() }))
        .await;
    assert_eq!(discovered["result"]["supportedVersions"], json!([MODERN]));
    let listed = pipe
        .call(2, "prompts/list", json!({ "_meta": meta() }))
        .await;
    assert_eq!(listed["result"]["resultType"], "complete");
    pipe.publish(&library, &[ONE]).await;
    let listen = |id: &str, filter: Value| json!({ "jsonrpc": "2.0", "id": id, "method": "subscriptions/listen", "params": { "_meta": meta(), "notifications": filter } });
    pipe.send(listen("p", json!({ "promptsListChanged": true })))
        .await;
    pipe.send(listen("r", json!({ "resourcesListChanged": true })))
        .await;
    for id in ["p", "r"] {
        let first = pipe.read().await;
        assert_eq!(
            first["method"], "notifications/subscriptions/acknowledged",
            "nothing is told before: {first}"
        );
        assert_eq!(
            first["params"]["_meta"]["io.modelcontextprotocol/subscriptionId"],
            id
        );
    }
    pipe.publish(&library, &[TWO]).await;
    let notice = pipe.read().await;
    assert_eq!(notice["method"], "notifications/prompts/list_changed");
    assert_eq!(
        notice["params"]["_meta"]["io.modelcontextprotocol/subscriptionId"],
        "p"
    );
    pipe.send(json!({ "jsonrpc": "2.0", "method": "notifications/cancelled", "params": { "requestId": "p" } })).await;
    pipe.call(9, "prompts/list", json!({ "_meta": meta() }))
        .await;
    pipe.publish(
        &library,
        &[
            ("prompts/two.md", "---\ndescription: Two\n---\nOther.\n"),
            ("resources/runbook/x.md", "# X\n"),
        ],
    )
    .await;
    let notice = pipe.read().await;
    assert_eq!(
        notice["params"]["_meta"]["io.modelcontextprotocol/subscriptionId"], "r",
        "{notice}"
    );
    pipe.cancel.cancel();
    let end = pipe.read().await;
    assert_eq!(
        (&end["id"], &end["result"]["resultType"]),
        (&json!("r"), &json!("complete")),
        "{end}"
    );
    soon("the end", pipe.task).await.unwrap().unwrap();
}

#[tokio::test]
async fn both_eras_on_one_pipe() {
    let library = TestLibrary::small();
    let mut pipe = Pipe::open(&library, settings()).await;
    // As Claude Code opens: a probe, and then whatever it likes better.
    assert!(
        pipe.call(1, "server/discover", json!({ "_meta": meta() }))
            .await["result"]
            .is_object()
    );
    pipe.initialize("2025-11-25").await;
    assert!(
        pipe.call(2, "prompts/list", json!({})).await["result"]
            .get("resultType")
            .is_none()
    );
    assert_eq!(
        pipe.call(3, "prompts/list", json!({ "_meta": meta() }))
            .await["result"]["resultType"],
        "complete"
    );
    assert_eq!(
        pipe.call(4, "ping", json!({ "_meta": meta() })).await["error"]["code"],
        -32601
    );
    assert_eq!(
        pipe.call(5, "server/discover", json!({})).await["error"]["code"],
        -32602
    );
    let old = json!({ "io.modelcontextprotocol/protocolVersion": "2099-01-01", "io.modelcontextprotocol/clientCapabilities": {} });
    assert_eq!(
        pipe.call(6, "server/discover", json!({ "_meta": old }))
            .await["error"]["code"],
        -32022
    );
}

#[tokio::test]
async fn input_that_is_wrong_is_answered_and_read_over() {
    let library = TestLibrary::small();
    let mut pipe = Pipe::open(
        &library,
        mcp::Settings {
            message_bytes: 10_000,
            ..settings()
        },
    )
    .await;
    let code = |answer: &Value| answer["error"]["code"].as_i64().unwrap_or(0);
    pipe.write(b"\n   \nnot json\n").await;
    assert_eq!(code(&pipe.read().await), -32700);
    pipe.write(b"{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"\xff\"}\n")
        .await;
    assert_eq!(code(&pipe.read().await), -32700);
    pipe.write(&[b"[".repeat(50_000), b"\n".to_vec()].concat())
        .await;
    assert_eq!(code(&pipe.read().await), -32600);
    pipe.write(b"{\"jsonrpc\":\"2.0\",\"id\":null,\"method\":\"ping\"}\n")
        .await;
    assert_eq!(code(&pipe.read().await), -32600);
    pipe.initialize("2025-11-25").await;
    pipe.write(b"[{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"ping\"}]\n")
        .await;
    assert_eq!(code(&pipe.read().await), -32600);
    pipe.initialize("2025-03-26").await;
    pipe.write(b"[{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"ping\"},{\"jsonrpc\":\"2.0\",\"method\":\"x\"}]\r\n").await;
    assert_eq!(
        pipe.read().await,
        json!([{ "jsonrpc": "2.0", "id": 1, "result": {} }])
    );
}
