//! `cuebook stdio --server URL` against a real server that is stopped and started, in both eras.

use std::collections::VecDeque;
use std::path::Path;
use std::process::Stdio;
use std::time::Duration;

use rmcp::model::GetPromptRequestParams;
use rmcp::{ServiceExt, transport::TokioChildProcess};
use serde_json::{Value, json};
use tempfile::TempDir;
use tokio::io::{AsyncBufReadExt, AsyncWriteExt, BufReader, Lines};
use tokio::process::{Child, ChildStdin, ChildStdout, Command};
use tokio::time::timeout;

const BINARY: &str = env!("CARGO_BIN_EXE_cuebook");
const PROMPTS_CHANGED: &str = "notifications/prompts/list_changed";
/// The longest that anything may take.
const PATIENCE: Duration = Duration::from_secs(30);

/// The binary with an environment of its own.
fn cuebook(folder: &Path, arguments: &[&str]) -> Command {
    let mut command = Command::new(BINARY);
    command
        .args(arguments)
        .env_clear()
        .env("HOME", folder)
        .env("XDG_CACHE_HOME", folder.join("cache"));
    command
        .env("PATH", "/usr/local/bin:/usr/bin:/bin")
        .current_dir(folder)
        .kill_on_drop(true);
    command.stderr(Stdio::null());
    command
}

fn git(folder: &Path, arguments: &[&str]) {
    let output = std::process::Command::new("git")
        .args(["-c", "user.name=Test", "-c", "user.email=test@example.com"])
        .args(arguments)
        .current_dir(folder)
        .env("GIT_CONFIG_GLOBAL", "/dev/null")
        .env("GIT_CONFIG_NOSYSTEM", "1")
        .output()
        .unwrap();
    assert!(
        output.status.success(),
        "git {arguments:?}: {}",
        String::from_utf8_lossy(&output.stderr)
    );
}

/// A server on a data directory that outlasts it.
struct Server {
    process: Child,
    address: String,
}

impl Server {
    async fn start(folder: &Path, address: &str) -> Self {
        let arguments = [
            "serve",
            "--data-dir",
            "data",
            "--language",
            "en",
            "--listen",
            address,
        ];
        let mut process = cuebook(folder, &arguments)
            .stdout(Stdio::piped())
            .spawn()
            .unwrap();
        let mut lines = BufReader::new(process.stdout.take().unwrap()).lines();
        let greeting = async {
            loop {
                let line = lines
                    .next_line()
                    .await
                    .unwrap()
                    .expect("the server says where it is");
                if let Some((_, url)) = line.split_once(" prompts at ") {
                    return url.trim().to_owned();
                }
            }
        };
        let url = timeout(PATIENCE, greeting).await.expect("a server in time");
        // The rest of the greeting has to go somewhere.
        tokio::spawn(async move { while let Ok(Some(_)) = lines.next_line().await {} });
        let address = url
            .trim_start_matches("http://")
            .trim_end_matches("/mcp")
            .to_owned();
        Self { process, address }
    }

    fn url(&self) -> String {
        format!("http://{}/mcp", self.address)
    }

    /// Kills it, as a crash would; gives the address for the next one.
    async fn kill(mut self) -> String {
        self.process.kill().await.unwrap();
        self.address
    }
}

/// Commits a new text of a prompt and publishes it.
fn publish(folder: &Path, name: &str) {
    let clone = folder.join("clone");
    if !clone.exists() {
        git(folder, &["clone", "--quiet", "data/library.git", "clone"]);
    }
    let text = format!("---\ndescription: Made by a test\n---\nThis is {name}.\n");
    std::fs::write(clone.join("prompts/sre").join(format!("{name}.md")), text).unwrap();
    git(&clone, &["add", "."]);
    git(&clone, &["commit", "--quiet", "-m", name]);
    git(&clone, &["push", "--quiet", "origin", "HEAD:main"]);
}

/// A client that writes and reads lines.
struct Client {
    process: Child,
    input: Option<ChildStdin>,
    output: Lines<BufReader<ChildStdout>>,
    modern: bool,
    next_id: u64,
    aside: VecDeque<Value>,
}

impl Client {
    fn start(folder: &Path, url: &str, modern: bool) -> Self {
        let mut command = cuebook(folder, &["stdio", "--server", url]);
        let mut process = command
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .unwrap();
        let input = process.stdin.take();
        let output = BufReader::new(process.stdout.take().unwrap()).lines();
        Self {
            process,
            input,
            output,
            modern,
            next_id: 0,
            aside: VecDeque::new(),
        }
    }

    async fn greeted(folder: &Path, url: &str) -> Self {
        let mut client = Self::start(folder, url, false);
        let info = json!({"name": "test", "version": "1"});
        let params =
            json!({"protocolVersion": "2025-11-25", "capabilities": {}, "clientInfo": info});
        let greeting = client.result("initialize", params).await;
        assert_eq!(greeting["serverInfo"]["name"], "cuebook");
        client
            .send(&json!({"jsonrpc": "2.0", "method": "notifications/initialized"}))
            .await;
        client
    }

    async fn send(&mut self, message: &Value) {
        self.input
            .as_mut()
            .unwrap()
            .write_all(format!("{message}\n").as_bytes())
            .await
            .unwrap();
    }

    async fn ask(&mut self, method: &str, mut params: Value) -> u64 {
        self.next_id += 1;
        if self.modern {
            params["_meta"] = json!({
                "io.modelcontextprotocol/protocolVersion": "2026-07-28",
                "io.modelcontextprotocol/clientInfo": {"name": "test", "version": "1"},
                "io.modelcontextprotocol/clientCapabilities": {},
            });
        }
        let id = self.next_id;
        self.send(&json!({"jsonrpc": "2.0", "id": id, "method": method, "params": params}))
            .await;
        id
    }

    async fn wait(&mut self, what: &str, wanted: impl Fn(&Value) -> bool) -> Value {
        if let Some(at) = self.aside.iter().position(&wanted) {
            return self.aside.remove(at).unwrap();
        }
        loop {
            let line = timeout(PATIENCE, self.output.next_line()).await;
            let line = line
                .unwrap_or_else(|_| panic!("waited in vain for {what}"))
                .unwrap()
                .unwrap();
            let message: Value = serde_json::from_str(&line).unwrap();
            if wanted(&message) {
                return message;
            }
            self.aside.push_back(message);
        }
    }

    async fn reply(&mut self, method: &str, params: Value) -> Value {
        let id = self.ask(method, params).await;
        self.wait(method, |message| {
            message["id"] == id && message.get("method").is_none()
        })
        .await
    }

    async fn result(&mut self, method: &str, params: Value) -> Value {
        let reply = self.reply(method, params).await;
        assert!(reply.get("error").is_none(), "{reply}");
        reply["result"].clone()
    }

    async fn has_prompt(&mut self, name: &str) -> bool {
        let result = self.result("prompts/list", json!({})).await;
        result["prompts"]
            .as_array()
            .unwrap()
            .iter()
            .any(|prompt| prompt["name"] == name)
    }

    async fn news(&mut self) -> Value {
        self.wait(PROMPTS_CHANGED, |message| {
            message["method"] == PROMPTS_CHANGED
        })
        .await
    }

    /// Closes stdin, upon which the bridge ends by itself.
    async fn close(mut self) {
        drop(self.input.take());
        let status = timeout(PATIENCE, self.process.wait())
            .await
            .expect("the bridge ends")
            .unwrap();
        assert!(status.success());
    }
}

async fn served() -> (TempDir, Server) {
    let folder = tempfile::tempdir().unwrap();
    let server = Server::start(folder.path(), "127.0.0.1:0").await;
    (folder, server)
}

#[tokio::test]
async fn a_legacy_client_outlasts_the_server() {
    let (folder, server) = served().await;
    let mut client = Client::greeted(folder.path(), &server.url()).await;
    assert!(client.has_prompt("incident-triage").await);
    let call = json!({"name": "incident-triage", "arguments": {"ticketId": "INC-1", "service": "payments"}});
    let fresh = client.result("prompts/get", call.clone()).await;
    assert!(fresh["messages"].to_string().contains("runbook://payments"));

    publish(folder.path(), "first-news");
    client.news().await;
    assert!(client.has_prompt("first-news").await);

    let address = server.kill().await;
    assert!(client.has_prompt("first-news").await);
    let stale = client.result("prompts/get", call).await;
    assert_eq!(stale["messages"], fresh["messages"]);
    assert_eq!(stale["_meta"]["dev.cuebook/stale"], true);
    assert_eq!(
        stale["_meta"]["dev.cuebook/source"],
        fresh["_meta"]["dev.cuebook/source"]
    );
    let unseen = client
        .reply(
            "prompts/get",
            json!({"name": "postmortem", "arguments": {"ticketId": "1"}}),
        )
        .await;
    assert_eq!(unseen["error"]["code"], -32603);

    publish(folder.path(), "second-news");
    let _server = Server::start(folder.path(), &address).await;
    client.news().await;
    assert!(client.has_prompt("second-news").await);
    // The notification stream is back too.
    publish(folder.path(), "third-news");
    client.news().await;
    client.close().await;
}

#[tokio::test]
async fn a_modern_subscription_outlasts_the_server() {
    let (folder, server) = served().await;
    let mut client = Client::start(folder.path(), &server.url(), true);
    client.result("server/discover", json!({})).await;
    assert!(client.has_prompt("incident-triage").await);
    client
        .ask(
            "subscriptions/listen",
            json!({"notifications": {"promptsListChanged": true}}),
        )
        .await;
    let method = "notifications/subscriptions/acknowledged";
    let acknowledged = client
        .wait(method, |message| message["method"] == method)
        .await;
    let key = "io.modelcontextprotocol/subscriptionId";
    let subscription = acknowledged["params"]["_meta"][key].clone();
    assert!(!subscription.is_null(), "{acknowledged}");

    let address = server.kill().await;
    assert!(client.has_prompt("incident-triage").await);
    publish(folder.path(), "first-news");
    let _server = Server::start(folder.path(), &address).await;
    assert_eq!(client.news().await["params"]["_meta"][key], subscription);
    assert!(client.has_prompt("first-news").await);
    client.close().await;
}

#[tokio::test]
async fn an_editor_can_be_started_before_the_server() {
    let (folder, server) = served().await;
    let url = server.url();
    let mut client = Client::greeted(folder.path(), &url).await;
    assert!(client.has_prompt("incident-triage").await);
    client.close().await;
    let address = server.kill().await;

    let mut client = Client::greeted(folder.path(), &url).await;
    assert!(client.has_prompt("incident-triage").await);
    publish(folder.path(), "first-news");
    let _server = Server::start(folder.path(), &address).await;
    client.news().await;
    assert!(client.has_prompt("first-news").await);
    client.close().await;
}

/// An independent client finds nothing strange about the bridge.
#[tokio::test]
async fn the_rust_sdk_is_content() {
    let (folder, server) = served().await;
    let command = cuebook(folder.path(), &["stdio", "--server", &server.url()]);
    let client = timeout(PATIENCE, ().serve(TokioChildProcess::new(command).unwrap()))
        .await
        .unwrap()
        .unwrap();
    let prompts = timeout(PATIENCE, client.list_all_prompts())
        .await
        .unwrap()
        .unwrap();
    assert!(prompts.iter().any(|prompt| prompt.name == "code-review"));
    let values = client.complete_prompt_simple("code-review", "language", "ru");
    assert!(
        timeout(PATIENCE, values)
            .await
            .unwrap()
            .unwrap()
            .contains(&"rust".to_owned())
    );
    let arguments = json!({"language": "rust"}).as_object().unwrap().clone();
    let params = GetPromptRequestParams::new("code-review").with_arguments(arguments);
    let prompt = timeout(PATIENCE, client.get_prompt(params))
        .await
        .unwrap()
        .unwrap();
    assert!(!prompt.messages.is_empty());
    client.cancel().await.unwrap();
}
