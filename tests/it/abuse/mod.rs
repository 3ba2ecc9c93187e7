//! Clients that take more than their share, and everybody else, who is served as usual meanwhile.

mod guesses;
mod proxies;
mod rates;
mod slow;
mod streams;

use std::net::SocketAddr;
use std::process::Command;

use serde_json::{Value, json};
use tempfile::TempDir;

use crate::support::http::{Reply, send};
use crate::support::process::Server;

/// A server of the starter library in a process of its own, with settings as environment variables.
struct Started {
    folder: TempDir,
    server: Server,
}

impl Started {
    fn new(settings: &[(&str, &str)]) -> Self {
        let folder = tempfile::tempdir().unwrap();
        let mut command = Command::new(env!("CARGO_BIN_EXE_cuebook"));
        command
            .args(["serve", "--listen", "127.0.0.1:0", "--data-dir"])
            .arg(folder.path().join("data"))
            .envs(settings.iter().copied());
        let server = Server::start(command);
        Self { folder, server }
    }

    fn address(&self) -> SocketAddr {
        self.server.address
    }

    /// `prompts/list` as a client behind a proxy makes it.
    async fn list(&self, client: &str) -> Reply {
        let body = json!({ "jsonrpc": "2.0", "id": 1, "method": "prompts/list" }).to_string();
        let headers = [
            ("Content-Type", "application/json"),
            ("Accept", "application/json, text/event-stream"),
            ("MCP-Protocol-Version", "2025-06-18"),
            ("X-Forwarded-For", client),
        ];
        send(self.address(), "POST", "/mcp", &headers, body.as_bytes()).await
    }
}

/// Whether an answer is the list.
#[track_caller]
fn is_list(reply: &Reply) {
    assert_eq!(reply.status, 200, "{reply:?}");
    let prompts: Vec<Value> =
        serde_json::from_value(reply.json()["result"]["prompts"].clone()).unwrap();
    assert!(prompts.len() > 3, "{reply:?}");
}
