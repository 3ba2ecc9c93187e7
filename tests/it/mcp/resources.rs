//! `resources/*`.

use serde_json::json;

use crate::support::library::TestLibrary;
use crate::support::mcp::{Client, LEGACY, MODERN};
use crate::support::server::{TestServer, settings};

#[tokio::test]
async fn lists_and_templates() {
    let server = TestServer::start(&TestLibrary::small()).await;
    for revision in LEGACY.into_iter().chain([MODERN]) {
        let client = Client::named(&server, revision, "test").await;
        let list = client.call("resources/list", json!({})).await;
        assert_eq!(
            list["resources"],
            json!([
                { "uri": "image://dot", "name": "dot", "mimeType": "image/png", "size": 10 },
                { "uri": "runbook://payments", "name": "payments", "mimeType": "text/markdown", "size": 44 },
                { "uri": "runbook://search", "name": "search", "mimeType": "text/markdown", "size": 30 },
                { "uri": "sound://beep", "name": "beep", "mimeType": list["resources"][3]["mimeType"], "size": 12 }
            ]),
            "{revision}"
        );
        let templates = client.call("resources/templates/list", json!({})).await;
        let mut expected = json!([{
            "uriTemplate": "runbook://{service}", "name": "runbook-service", "title": "Runbook", "description": "What to do"
        }]);
        if revision < "2025-06-18" {
            expected[0].as_object_mut().unwrap().remove("title");
        }
        assert_eq!(templates["resourceTemplates"], expected, "{revision}");
    }
}

#[tokio::test]
async fn a_resource_by_either_form_of_its_uri() {
    let server = TestServer::start(&TestLibrary::small()).await;
    let client = Client::modern(&server);
    for uri in [
        "runbook://payments",
        "runbook://payments.md",
        "runbook://Payments",
        "RUNBOOK://payments",
        "runbook://p%61yments",
    ] {
        let read = client.call("resources/read", json!({ "uri": uri })).await;
        assert_eq!(
            read["contents"],
            json!([{ "uri": uri, "mimeType": "text/markdown", "text": "# Payments\n\n1. Look at the connection pool.\n" }])
        );
    }
    let read = client
        .call("resources/read", json!({ "uri": "image://dot" }))
        .await;
    assert_eq!(
        read["contents"],
        json!([{ "uri": "image://dot", "mimeType": "image/png", "blob": "iVBORw0KGgoA/w==" }])
    );
}

#[tokio::test]
async fn what_is_not_there() {
    let server = TestServer::start(&TestLibrary::small()).await;
    for revision in LEGACY.into_iter().chain([MODERN]) {
        let client = Client::named(&server, revision, "test").await;
        let code = if revision == MODERN { -32602 } else { -32002 };
        let reply = client
            .exchange("resources/read", json!({ "uri": "runbook://paymnts" }))
            .await;
        let body = reply.json();
        assert_eq!(
            (reply.status, body["error"]["code"].as_i64()),
            (200, Some(code)),
            "{body}"
        );
        assert_eq!(body["error"]["data"], json!({ "uri": "runbook://paymnts" }));
        assert!(
            body["error"]["message"]
                .as_str()
                .unwrap()
                .contains("runbook://payments"),
            "{body}"
        );
        for uri in [
            "runbook://../cuebook.toml",
            "runbook://%2e%2e/cuebook.toml",
            "file:///etc/passwd",
            "runbook:///etc/passwd",
            "runbook://payments/../../..",
            "none://x",
            "x",
            "",
            "runbook://",
            "runbook://payments%00",
        ] {
            let (_, found, message) = client.fail("resources/read", json!({ "uri": uri })).await;
            assert!(found == code || found == -32602, "{uri}: {found} {message}");
        }
        for params in [json!({}), json!({ "uri": 5 }), json!({ "uri": null })] {
            assert_eq!(client.fail_raw("resources/read", params).await.1, -32602);
        }
        let long = format!("runbook://{}", "x".repeat(100_000));
        let reply = client
            .fail_raw("resources/read", json!({ "uri": long }))
            .await;
        // A modern client cannot name it in a header either.
        assert!(matches!(reply.1, -32602 | -32020), "{reply:?}");
    }
}

#[tokio::test]
async fn subscriptions_are_bounded() {
    let library = TestLibrary::small();
    let server = TestServer::with(
        &library,
        cuebook::mcp::Settings {
            max_subscriptions: 1,
            ..settings()
        },
        None,
    )
    .await;
    let client = Client::legacy(&server, "2025-06-18").await;
    let subscribe = async |uri: &str| {
        client
            .exchange("resources/subscribe", json!({ "uri": uri }))
            .await
            .json()
    };
    assert_eq!(subscribe("runbook://payments").await["result"], json!({}));
    assert_eq!(subscribe("runbook://payments").await["result"], json!({}));
    assert_eq!(subscribe("runbook://search").await["error"]["code"], -32602);
    assert_eq!(subscribe("runbook://none").await["error"]["code"], -32002);
    assert_eq!(
        client
            .call(
                "resources/unsubscribe",
                json!({ "uri": "runbook://payments" })
            )
            .await,
        json!({})
    );
    assert_eq!(
        client
            .call("resources/unsubscribe", json!({ "uri": "runbook://none" }))
            .await,
        json!({})
    );
    assert_eq!(subscribe("runbook://search").await["result"], json!({}));

    let modern = Client::modern(&server);
    for (filter, code) in [
        (
            json!({ "resourceSubscriptions": ["runbook://payments", "runbook://search"] }),
            -32602,
        ),
        (
            json!({ "resourceSubscriptions": "runbook://payments" }),
            -32602,
        ),
        (json!({ "resourceSubscriptions": [5] }), -32602),
        (json!({ "promptsListChanged": "yes" }), -32602),
        (json!([]), -32602),
    ] {
        let (_, found, _) = modern
            .fail("subscriptions/listen", json!({ "notifications": filter }))
            .await;
        assert_eq!(found, code);
    }
    assert_eq!(
        modern.fail("subscriptions/listen", json!({})).await.1,
        -32602
    );
}
