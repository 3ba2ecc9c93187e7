//! Notices: who is told what, how often, and when.

use std::time::Duration;

use serde_json::{Value, json};
use tokio::io::AsyncWriteExt;
use tokio::net::TcpStream;

use crate::support::http::head;
use crate::support::library::TestLibrary;
use crate::support::mcp::{Client, MODERN, request};
use crate::support::server::{TestServer, settings};

const PROMPTS: &str = "notifications/prompts/list_changed";
const RESOURCES: &str = "notifications/resources/list_changed";
const UPDATED: &str = "notifications/resources/updated";

fn postmortem(text: &str) -> (&'static str, String) {
    (
        "prompts/sre/after/postmortem.md",
        format!("---\ndescription: After an incident\n---\n{text}\n"),
    )
}

/// Publishes and has the server read it.
async fn publish(server: &TestServer, library: &TestLibrary, files: &[(&str, &str)]) {
    library.publish(files);
    server.refresh().await;
}

#[tokio::test]
async fn the_first_event_says_what_was_accepted() {
    let server = TestServer::start(&TestLibrary::small()).await;
    let client = Client::modern(&server);
    for (id, json_id) in [("7", json!(7)), (r#""a\"b""#, json!("a\"b"))] {
        let filter = json!({
            "promptsListChanged": true, "resourcesListChanged": false, "toolsListChanged": true,
            "resourceSubscriptions": ["runbook://payments", "runbook://not-yet", "not a uri"], "other": 1
        });
        let params = json!({ "_meta": client.meta(), "notifications": filter });
        let body = format!(
            r#"{{"jsonrpc":"2.0","id":{id},"method":"subscriptions/listen","params":{params}}}"#
        );
        let headers = [
            ("Content-Type", "application/json"),
            ("MCP-Protocol-Version", MODERN),
            ("Mcp-Method", "subscriptions/listen"),
        ];
        let mut events = crate::support::http::Events::open(
            server.address,
            "POST",
            "/mcp",
            &headers,
            body.as_bytes(),
        )
        .await;
        assert_eq!(
            events.message().await.unwrap(),
            json!({
                "jsonrpc": "2.0",
                "method": "notifications/subscriptions/acknowledged",
                "params": {
                    "_meta": { "io.modelcontextprotocol/subscriptionId": json_id },
                    "notifications": {
                        "promptsListChanged": true,
                        "resourceSubscriptions": ["runbook://payments", "runbook://not-yet"]
                    }
                }
            })
        );
    }
}

#[tokio::test]
async fn p3_one_publish_of_forty_prompts_is_one_notice_after_the_list_can_be_read() {
    let library = TestLibrary::small();
    let server = TestServer::start(&library).await;
    server.watch();
    let legacy = Client::legacy(&server, "2025-11-25").await;
    let modern = Client::modern(&server);
    let mut of_legacy = legacy.listen(Value::Null).await;
    let mut of_modern = modern.listen(json!({ "promptsListChanged": true })).await;
    let mut of_another = modern.listen(json!({ "resourcesListChanged": true })).await;
    for events in [&mut of_modern, &mut of_another] {
        assert_eq!(
            events.notice().await,
            "notifications/subscriptions/acknowledged"
        );
    }
    let files: Vec<(String, String)> = (0..40)
        .map(|n| {
            (
                format!("prompts/more/p{n}.md"),
                format!("---\ndescription: {n}\n---\nText {n}.\n"),
            )
        })
        .collect();
    let files: Vec<(&str, &str)> = files
        .iter()
        .map(|(path, text)| (&**path, &**text))
        .collect();
    library.publish(&files);
    for events in [&mut of_legacy, &mut of_modern] {
        assert_eq!(events.notice().await, PROMPTS);
        assert_eq!(modern.names().await.len(), 47);
    }
    // Nothing more was said before the next publish is, and the third was never told.
    library.publish(&[("resources/guide/new.md", "# New\n")]);
    assert_eq!(of_another.notice().await, RESOURCES);
    assert_eq!(of_legacy.notice().await, RESOURCES);
    library.publish(&[(
        "prompts/more/p0.md",
        "---\ndescription: 0\n---\nOther text.\n",
    )]);
    assert_eq!(of_modern.notice().await, PROMPTS);
    assert_eq!(of_legacy.notice().await, PROMPTS);
}

#[tokio::test]
async fn every_notice_of_a_subscription_carries_its_id() {
    let library = TestLibrary::small();
    let server = TestServer::start(&library).await;
    let client = Client::modern(&server);
    let mut events =
        client.listen(json!({ "promptsListChanged": true, "resourceSubscriptions": ["runbook://payments.md"] })).await;
    let id = events.message().await.unwrap()["params"]["_meta"]["io.modelcontextprotocol/subscriptionId"].clone();
    assert!(id.is_u64());
    publish(
        &server,
        &library,
        &[("resources/runbook/payments.md", "# Payments\n\nNew.\n")],
    )
    .await;
    // The prompt that embeds it renders differently: that is told first, and the URI as it was written.
    for (method, uri) in [
        (PROMPTS, Value::Null),
        (UPDATED, json!("runbook://payments.md")),
    ] {
        let message = events.message().await.unwrap();
        assert_eq!(message["method"], method);
        assert_eq!(
            message["params"]["_meta"]["io.modelcontextprotocol/subscriptionId"],
            id
        );
        assert_eq!(message["params"]["uri"], uri);
    }
}

#[tokio::test]
async fn resources_updated_in_both_eras() {
    let library = TestLibrary::small();
    let server = TestServer::start(&library).await;
    let legacy = Client::legacy(&server, "2025-03-26").await;
    legacy
        .call(
            "resources/subscribe",
            json!({ "uri": "runbook://payments" }),
        )
        .await;
    legacy
        .call("resources/subscribe", json!({ "uri": "runbook://search" }))
        .await;
    legacy
        .call(
            "resources/unsubscribe",
            json!({ "uri": "runbook://search" }),
        )
        .await;
    let mut of_legacy = legacy.listen(Value::Null).await;
    let modern = Client::modern(&server);
    let mut of_modern = modern
        .listen(json!({ "resourceSubscriptions": ["runbook://payments", "runbook://later"] }))
        .await;
    of_modern.notice().await;

    publish(
        &server,
        &library,
        &[("resources/runbook/search.md", "# Search\n\nOther.\n")],
    )
    .await;
    assert_eq!(of_legacy.notice().await, PROMPTS);
    publish(
        &server,
        &library,
        &[("resources/runbook/payments.md", "# Payments\n\nOther.\n")],
    )
    .await;
    assert_eq!(of_legacy.notice().await, PROMPTS);
    assert_eq!(
        of_legacy.notice().await,
        format!("{UPDATED} runbook://payments")
    );
    assert_eq!(
        of_modern.notice().await,
        format!("{UPDATED} runbook://payments")
    );

    publish(
        &server,
        &library,
        &[("resources/runbook/later.md", "# Later\n")],
    )
    .await;
    assert_eq!(
        of_modern.notice().await,
        format!("{UPDATED} runbook://later")
    );
    library.remove("resources/runbook/later.md");
    publish(&server, &library, &[]).await;
    assert_eq!(
        of_modern.notice().await,
        format!("{UPDATED} runbook://later")
    );
}

#[tokio::test]
async fn a_folder_hears_of_its_own_prompts() {
    let library = TestLibrary::small();
    let server = TestServer::start(&library).await;
    let client = Client::modern(&server);
    let filter = json!({ "promptsListChanged": true });
    let mut whole = client.listen(filter.clone()).await;
    let mut sre = client.at("/mcp/sre").listen(filter.clone()).await;
    let mut after = client.at("/mcp/sre/after").listen(filter.clone()).await;
    let mut review = client.at("/mcp/review").listen(filter).await;
    for events in [&mut whole, &mut sre, &mut after, &mut review] {
        events.notice().await;
    }
    let (path, text) = postmortem("Other.");
    publish(&server, &library, &[(path, &text)]).await;
    for events in [&mut whole, &mut sre, &mut after] {
        assert_eq!(events.notice().await, PROMPTS);
    }
    publish(
        &server,
        &library,
        &[(
            "prompts/review/new.md",
            "---\ndescription: New\n---\nNew.\n",
        )],
    )
    .await;
    assert_eq!(review.notice().await, PROMPTS);
    assert_eq!(whole.notice().await, PROMPTS);
    publish(
        &server,
        &library,
        &[("prompts/sre/new2.md", "---\ndescription: New\n---\nNew.\n")],
    )
    .await;
    assert_eq!(sre.notice().await, PROMPTS);
}

#[tokio::test]
async fn a_message_goes_on_one_stream_of_a_session_the_newest() {
    let library = TestLibrary::small();
    let server = TestServer::with(
        &library,
        cuebook::mcp::Settings {
            keep_alive: Duration::from_millis(200),
            ..settings()
        },
        None,
    )
    .await;
    let client = Client::legacy(&server, "2025-06-18").await;
    let mut first = client.listen(Value::Null).await;
    let mut second = client.listen(Value::Null).await;
    publish(
        &server,
        &library,
        &[("prompts/one.md", "---\ndescription: One\n---\nOne.\n")],
    )
    .await;
    assert_eq!(second.notice().await, PROMPTS);
    drop(second);
    // The older one takes over, and hears of what comes after, once.
    while server.service.open_streams() > 1 {
        tokio::time::sleep(Duration::from_millis(10)).await;
    }
    publish(&server, &library, &[("resources/guide/one.md", "# One\n")]).await;
    assert_eq!(first.notice().await, RESOURCES);
}

#[tokio::test]
async fn a_session_without_a_stream_is_owed_one_notice() {
    let library = TestLibrary::small();
    let server = TestServer::start(&library).await;
    let client = Client::legacy(&server, "2025-06-18").await;
    let idle = Client::legacy(&server, "2025-06-18").await;
    for n in 0..3 {
        let (path, text) = postmortem(&format!("Text {n}."));
        publish(&server, &library, &[(path, &text)]).await;
    }
    let mut events = client.listen(Value::Null).await;
    assert_eq!(events.notice().await, PROMPTS);
    publish(&server, &library, &[("resources/guide/one.md", "# One\n")]).await;
    assert_eq!(events.notice().await, RESOURCES);
    drop(events);
    let mut events = idle.listen(Value::Null).await;
    assert_eq!(events.notice().await, PROMPTS);
    assert_eq!(events.notice().await, RESOURCES);
    // And of nothing that it has heard before.
    drop(events);
    let mut events = client.listen(Value::Null).await;
    publish(
        &server,
        &library,
        &[("prompts/one.md", "---\ndescription: One\n---\nOne.\n")],
    )
    .await;
    assert_eq!(events.notice().await, PROMPTS);
}

#[tokio::test]
async fn a_client_without_a_session_can_listen_too() {
    let library = TestLibrary::small();
    let server = TestServer::start(&library).await;
    let client = Client {
        revision: "2025-03-26",
        ..Client::modern(&server)
    };
    let mut events = client.listen(Value::Null).await;
    assert_eq!(events.block().await.unwrap(), ":");
    publish(
        &server,
        &library,
        &[("prompts/one.md", "---\ndescription: One\n---\nOne.\n")],
    )
    .await;
    assert_eq!(events.notice().await, PROMPTS);
}

#[tokio::test]
async fn silence_is_broken_by_comments() {
    let library = TestLibrary::small();
    let keep_alive = Duration::from_millis(256);
    let server = TestServer::with(
        &library,
        cuebook::mcp::Settings {
            keep_alive,
            ..settings()
        },
        None,
    )
    .await;
    let client = Client::legacy(&server, "2025-06-18").await;
    let mut events = client.listen(Value::Null).await;
    for _ in 0..4 {
        assert_eq!(
            crate::support::soon("a comment", events.block())
                .await
                .unwrap(),
            ":"
        );
    }
}

#[tokio::test]
async fn changes_that_are_not_told_do_not_put_comments_off() {
    let library = TestLibrary::small();
    let keep_alive = Duration::from_millis(1500);
    let settings = cuebook::mcp::Settings {
        keep_alive,
        ..settings()
    };
    let server = TestServer::with(&library, settings, None).await;
    let client = Client::modern(&server);
    let mut events = client.listen(json!({ "resourcesListChanged": true })).await;
    events.notice().await;
    let comment = tokio::spawn(async move { events.block().await });
    let mut publishes = 0;
    while !comment.is_finished() {
        let (path, text) = postmortem(&format!("Text {publishes}."));
        publish(&server, &library, &[(path, &text)]).await;
        publishes += 1;
        assert!(publishes < 200, "no comment came");
    }
    assert_eq!(comment.await.unwrap().unwrap(), ":");
}

#[tokio::test]
async fn a_reader_that_has_stopped_stalls_nobody() {
    let library = TestLibrary::small();
    let server = TestServer::start(&library).await;
    // Streams that are opened and never read.
    let mut stuck = Vec::new();
    for _ in 0..50 {
        let client = Client::legacy(&server, "2025-11-25").await;
        let session = client.session.clone().unwrap();
        let mut stream = TcpStream::connect(server.address).await.unwrap();
        let head = head(
            "GET",
            "/mcp",
            &[
                ("Accept", "text/event-stream"),
                ("Mcp-Session-Id", &session),
            ],
            None,
        );
        stream.write_all(head.as_bytes()).await.unwrap();
        stuck.push(stream);
    }
    let client = Client::modern(&server);
    let mut events = client.listen(json!({ "promptsListChanged": true })).await;
    events.notice().await;
    while server.service.open_streams() < 51 {
        tokio::time::sleep(Duration::from_millis(10)).await;
    }
    for n in 0..5 {
        let (path, text) = postmortem(&format!("Text {n}."));
        publish(&server, &library, &[(path, &text)]).await;
        assert_eq!(events.notice().await, PROMPTS);
    }
    drop(stuck);
    while server.service.open_streams() > 1 {
        tokio::time::sleep(Duration::from_millis(10)).await;
    }
}

#[tokio::test]
async fn many_streams_are_each_told_once_in_waves() {
    let library = TestLibrary::small();
    let server = TestServer::start(&library).await;
    let client = Client::modern(&server);
    let mut streams = Vec::new();
    for _ in 0..400 {
        let mut events = client.listen(json!({ "promptsListChanged": true })).await;
        events.notice().await;
        streams.push(events);
    }
    for round in 0..2 {
        let (path, text) = postmortem(&format!("Round {round}."));
        publish(&server, &library, &[(path, &text)]).await;
        // the next round's notice would be a second one of this, were there one
        for events in &mut streams {
            assert_eq!(events.notice().await, PROMPTS);
        }
    }
    publish(&server, &library, &[("resources/guide/one.md", "# One\n")]).await;
    let stopping = tokio::spawn(server.stop());
    for events in &mut streams {
        let last = events.message().await.unwrap();
        assert_eq!(last["result"]["resultType"], "complete", "{last}");
    }
    stopping.await.unwrap();
}

#[tokio::test]
async fn streams_are_bounded_and_a_place_is_given_back() {
    let library = TestLibrary::small();
    let server = TestServer::with(
        &library,
        cuebook::mcp::Settings {
            max_streams: 1,
            ..settings()
        },
        None,
    )
    .await;
    let client = Client::modern(&server);
    let events = client.listen(json!({})).await;
    let params = json!({ "_meta": client.meta(), "notifications": {} });
    let body = request("subscriptions/listen", &params);
    let headers = [("Mcp-Method", "subscriptions/listen")];
    let reply = client.post(&body, &headers).await;
    assert_eq!(
        (reply.status, reply.header("retry-after").is_some()),
        (503, true)
    );
    drop(events);
    while server.service.open_streams() > 0 {
        tokio::time::sleep(Duration::from_millis(10)).await;
    }
    drop(client.listen(json!({})).await);
}

#[tokio::test]
async fn shutdown_completes_what_is_open() {
    let server = TestServer::start(&TestLibrary::small()).await;
    let modern = Client::modern(&server);
    let legacy = Client::legacy(&server, "2025-11-25").await;
    let mut of_modern = modern.listen(json!({ "promptsListChanged": true })).await;
    let mut of_legacy = legacy.listen(Value::Null).await;
    let id = of_modern.message().await.unwrap()["params"]["_meta"]["io.modelcontextprotocol/subscriptionId"].clone();
    let stopping = tokio::spawn(server.stop());
    assert_eq!(
        of_modern.message().await.unwrap(),
        json!({
            "jsonrpc": "2.0", "id": id,
            "result": { "resultType": "complete", "_meta": { "io.modelcontextprotocol/subscriptionId": id } }
        })
    );
    assert_eq!(of_modern.message().await, None);
    assert_eq!(of_legacy.message().await, None);
    stopping.await.unwrap();
}
