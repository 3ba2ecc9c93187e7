//! What the log says of a request, and what it never says.

use std::io::Write;
use std::sync::{Arc, Mutex};

use serde_json::json;
use tracing_subscriber::fmt::MakeWriter;

use crate::support::library::TestLibrary;
use crate::support::mcp::{Client, MODERN};
use crate::support::server::TestServer;

#[derive(Clone, Default)]
struct Log(Arc<Mutex<Vec<u8>>>);

impl Write for Log {
    fn write(&mut self, bytes: &[u8]) -> std::io::Result<usize> {
        self.0.lock().unwrap().extend_from_slice(bytes);
        Ok(bytes.len())
    }

    fn flush(&mut self) -> std::io::Result<()> {
        Ok(())
    }
}

impl MakeWriter<'_> for Log {
    type Writer = Self;

    fn make_writer(&self) -> Self {
        self.clone()
    }
}

#[tokio::test]
async fn values_and_rendered_text_are_never_logged() {
    let log = Log::default();
    let subscriber = tracing_subscriber::fmt()
        .with_max_level(tracing::Level::TRACE)
        .with_ansi(false)
        .with_writer(log.clone())
        .finish();
    // This test's runtime has one thread, which is this one.
    let _guard = tracing::subscriber::set_default(subscriber);
    let library = TestLibrary::small();
    library.publish(&[(
        "prompts/review/number.md",
        "---\ndescription: Fails on what is no number\narguments:\n  - name: count\n    default: \"1\"\n---\nTwice {{ count | int }}.\n",
    )]);
    let server = TestServer::start(&library).await;
    for revision in ["2025-11-25", MODERN] {
        let client = Client::named(&server, revision, "log\ntest").await;
        client.get("echo", json!({ "text": "SECRET-1" })).await;
        client
            .get("echo", json!({ "text": "a", "SECRET-2": "SECRET-3" }))
            .await;
        client
            .fail(
                "prompts/get",
                json!({ "name": "echo", "arguments": { "other": "SECRET-4" } }),
            )
            .await;
        let (_, code, message) = client
            .fail(
                "prompts/get",
                json!({ "name": "number", "arguments": { "count": "SECRET-5" } }),
            )
            .await;
        // who sent the value is told where the template fails on it; the log is told the place alone
        assert_eq!(
            (code, message.contains("prompts/review/number.md:7:")),
            (-32603, true),
            "{message}"
        );
        client.call("tools/call", json!({ "name": "get_prompt", "arguments": { "name": "echo", "arguments": { "text": "SECRET-6" } } })).await;
        client
            .call(
                "completion/complete",
                json!({ "ref": { "type": "ref/prompt", "name": "echo" }, "argument": { "name": "text", "value": "SECRET-7" } }),
            )
            .await;
        if revision != MODERN {
            client.fail("no/such\nmethod", json!({})).await;
        }
    }
    let log = String::from_utf8(log.0.lock().unwrap().clone()).unwrap();
    assert!(!log.contains("SECRET"), "{log}");
    for said in [
        "prompts/get",
        "prompt=\"echo\"",
        "2026-07-28",
        "prompts/review/number.md:7:",
        "request_id",
    ] {
        assert!(log.contains(said), "{said} is not in {log}");
    }
    assert!(
        log.lines().all(|line| line.starts_with("20")),
        "no value breaks a line: {log}"
    );
}
