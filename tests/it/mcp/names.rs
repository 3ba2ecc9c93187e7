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
async fn a_folder_whose_last_prompt_is_gone_is_empty_to_a_session() {
    let library = TestLibrary::small();
    let server = TestServer::start(&library).await;
    let legacy = Client {
        path: "/mcp/sre/after".into(),
        ..Client::legacy(&server, "2025-06-18").await
    };
    assert_eq!(legacy.names().await, ["postmortem"]);
    let mut events = legacy.listen(json!(null)).await;
    library.remove("prompts/sre/after/postmortem.md");
    library.publish(&[]);
    server.refresh().await;
    assert_eq!(events.notice().await, "notifications/prompts/list_changed");
    assert_eq!(legacy.names().await, [""; 0]);
    drop(events);
    drop(legacy.listen(json!(null)).await);
    let (status, code, _) = legacy
        .fail("prompts/get", json!({ "name": "postmortem" }))
        .await;
    assert_eq!((status, code), (200, -32602));
    library.publish(&[(
        "prompts/sre/after/new.md",
        "---\ndescription: New\n---\nNew.\n",
    )]);
    server.refresh().await;
    assert_eq!(legacy.names().await, ["new"]);

    let ping = request("ping", &json!({}));
    let status = async |client: &Client, path: &str| client.at(path).post(&ping, &[]).await.status;
    let deep = ["a"; 32].join("/");
    for path in ["/mcp/none", &format!("/mcp/{deep}")] {
        assert_eq!(status(&legacy, path).await, 200, "{path}");
    }
    let too_deep = format!("/mcp/{deep}/a");
    let long = format!("/mcp/{}", "a".repeat(41));
    for path in [
        "/mcp/None",
        "/mcp/1",
        "/mcp/a//b",
        "/mcp/a.b",
        &too_deep,
        &long,
    ] {
        assert_eq!(status(&legacy, path).await, 404, "{path}");
    }
    for session in [None, Some("x".to_owned())] {
        let other = Client {
            session,
            ..legacy.clone()
        };
        assert_eq!(status(&other, "/mcp/none").await, 404);
    }
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
