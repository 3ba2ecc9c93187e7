//! Legacy sessions.

use serde_json::{Value, json};

use crate::support::http::{Reply, send};
use crate::support::library::TestLibrary;
use crate::support::mcp::{Client, request};
use crate::support::server::{TestServer, settings};
use crate::support::soon;

async fn ping(client: &Client) -> Reply {
    client.post(&request("ping", &json!({})), &[]).await
}

#[tokio::test]
async fn a_session_survives_a_restart_and_is_owed_a_notice() {
    let library = TestLibrary::small();
    let server = TestServer::start(&library).await;
    let mut client = Client::named(&server, "2025-06-18", "gemini-cli-mcp-client").await;
    server.stop().await;
    let server = TestServer::start(&library).await;
    client.address = server.address;
    assert_eq!(ping(&client).await.status, 200);
    // It still knows who it is talking to.
    let got = client
        .get(
            "incident-triage",
            json!({ "ticketId": "x", "service": "payments" }),
        )
        .await;
    assert_eq!(got["messages"].as_array().unwrap().len(), 1);
    let mut events = client.listen(Value::Null).await;
    assert_eq!(events.notice().await, "notifications/prompts/list_changed");

    // With another key it is nobody's.
    let other = cuebook::mcp::Settings {
        session_key: [1; 32],
        ..settings()
    };
    let server = TestServer::with(&library, other, None).await;
    client.address = server.address;
    assert_eq!(ping(&client).await.status, 404);
}

#[tokio::test]
async fn delete_ends_one_session_and_its_stream() {
    let library = TestLibrary::small();
    let settings = cuebook::mcp::Settings {
        // Nothing else wakes a stream in this test.
        keep_alive: std::time::Duration::from_hours(1),
        ..settings()
    };
    let server = TestServer::with(&library, settings, None).await;
    let client = Client::legacy(&server, "2025-11-25").await;
    let other = Client::legacy(&server, "2025-11-25").await;
    let mut streams = Vec::new();
    for _ in 0..2 {
        let mut events = client.listen(Value::Null).await;
        assert_eq!(events.block().await.unwrap(), ":");
        streams.push(events);
    }
    let mut of_other = other.listen(Value::Null).await;
    assert_eq!(of_other.block().await.unwrap(), ":");
    let session = client.session.clone().unwrap();
    let delete = async |headers: &[(&str, &str)]| {
        send(server.address, "DELETE", "/mcp", headers, b"")
            .await
            .status
    };
    assert_eq!(delete(&[("Mcp-Session-Id", &session)]).await, 204);
    assert_eq!(delete(&[("Mcp-Session-Id", &session)]).await, 404);
    assert_eq!(delete(&[]).await, 400);
    assert_eq!(ping(&client).await.status, 404);
    assert_eq!(ping(&other).await.status, 200);
    for mut events in streams {
        assert_eq!(soon("the end", events.message()).await, None);
    }
    soon("the places to be given back", async {
        while server.service.open_streams() != 1 {
            tokio::time::sleep(std::time::Duration::from_millis(10)).await;
        }
    })
    .await;
    library.publish(&[("prompts/one.md", "---\ndescription: One\n---\nOne.\n")]);
    server.refresh().await;
    assert_eq!(
        of_other.notice().await,
        "notifications/prompts/list_changed"
    );
}

#[tokio::test]
async fn an_id_that_is_none_is_404_and_no_id_is_served() {
    let server = TestServer::start(&TestLibrary::small()).await;
    let good = Client::legacy(&server, "2025-06-18").await;
    let id = good.session.clone().unwrap();
    assert!(id.bytes().all(|b| (0x21..=0x7e).contains(&b)));
    for bad in [
        "x",
        "AAAA",
        &id[..id.len() - 1],
        &id[1..],
        &id.to_uppercase(),
        &"A".repeat(5000),
    ] {
        let client = Client {
            session: Some(bad.to_owned()),
            ..good.clone()
        };
        for body in [
            request("ping", &json!({})),
            json!({ "jsonrpc": "2.0", "method": "notifications/x" }).to_string(),
        ] {
            let reply = client.post(&body, &[]).await;
            assert_eq!(reply.status, 404, "{bad:.100}");
            assert!(
                reply.json()["error"]["message"]
                    .as_str()
                    .unwrap()
                    .contains("initialize")
            );
        }
    }
    let sessionless = Client {
        session: None,
        ..good
    };
    assert_eq!(ping(&sessionless).await.status, 200);
    let reply = sessionless
        .post(
            &request(
                "resources/subscribe",
                &json!({ "uri": "runbook://payments" }),
            ),
            &[],
        )
        .await;
    assert_eq!(reply.json()["result"], json!({}));
}

#[tokio::test]
async fn ids_are_never_given_twice() {
    let server = TestServer::start(&TestLibrary::small()).await;
    let mut ids = Vec::new();
    for _ in 0..20 {
        ids.push(Client::legacy(&server, "2025-06-18").await.session.unwrap());
    }
    ids.sort();
    ids.dedup();
    assert_eq!(ids.len(), 20);
}
