//! Names, as far as MCP shows them.

use serde_json::json;

use crate::support::http::send;
use crate::support::library::TestLibrary;
use crate::support::mcp::{Client, MODERN, request};
use crate::support::server::TestServer;

#[tokio::test]
async fn n1_a_folder_raw_and_percent_encoded() {
    let server = TestServer::start(&TestLibrary::small()).await;
    let client = Client::modern(&server);
    for path in [
        "/mcp/sre/after",
        "/mcp/sre%2Fafter",
        "/mcp/%73re/after",
        "/mcp/sre/after/",
    ] {
        assert_eq!(client.at(path).names().await, ["postmortem"], "{path}");
    }
    let ping = request("ping", &json!({}));
    let miss = send(
        server.address,
        "POST",
        "/mcp/sre%2Fnone",
        &[],
        ping.as_bytes(),
    )
    .await;
    assert_eq!(miss.status, 404);
    assert_eq!(
        miss.json(),
        json!({ "error": "the library has no folder `sre/none`" })
    );
}

#[tokio::test]
async fn n2_two_prompts_of_one_name_change_nothing_that_is_served() {
    let library = TestLibrary::small();
    let server = TestServer::start(&library).await;
    let client = Client::modern(&server);
    let before = client.call("prompts/list", json!({})).await["prompts"].clone();
    for path in [
        "prompts/review/postmortem.md",
        "prompts/review/incident_triage.md",
    ] {
        library.publish(&[(path, "---\ndescription: Another\n---\nAnother.\n")]);
        server.refresh().await;
        assert_eq!(
            client.call("prompts/list", json!({})).await["prompts"],
            before
        );
        let ready = send(server.address, "GET", "/readyz", &[], b"").await;
        assert_eq!(ready.status, 200);
        let problems = ready.json()["problems"].to_string();
        assert!(problems.contains(path), "{problems}");
        library.remove(path);
        library.publish(&[]);
        server.refresh().await;
    }
}

#[tokio::test]
async fn n3_a_name_that_is_a_clients_own_command_is_served() {
    let library =
        TestLibrary::with(&[("prompts/help.md", "---\ndescription: Help\n---\nHelp me.\n")]);
    let server = TestServer::start(&library).await;
    for revision in ["2025-06-18", MODERN] {
        let client = Client::named(&server, revision, "test").await;
        assert_eq!(client.texts("help", json!({})).await, ["Help me.\n"]);
    }
}
