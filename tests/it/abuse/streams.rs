//! Clients that open stream after stream.

use super::*;
use crate::access::Guarded;
use crate::support::http::Events;
use crate::support::soon;

const LISTEN: [(&str, &str); 2] = [("Accept", "text/event-stream"), ("Connection", "close")];

#[tokio::test]
async fn an_address_has_so_many_streams_and_each_that_ends_makes_room() {
    let started = Started::new(&[
        ("CUEBOOK_HTTP_TRUSTED_PROXIES", "127.0.0.1"),
        ("CUEBOOK_MCP_MAX_STREAMS_PER_ADDRESS", "3"),
    ]);
    let from = |client: &'static str| {
        let [accept, close] = LISTEN;
        [accept, close, ("X-Forwarded-For", client)]
    };
    let open =
        async |client| Events::open(started.address(), "GET", "/mcp", &from(client), b"").await;
    let mut streams = Vec::new();
    for _ in 0..3 {
        let mut stream = open("203.0.113.7").await;
        assert_eq!(stream.block().await.as_deref(), Some(":"));
        streams.push(stream);
    }
    let refused = send(started.address(), "GET", "/mcp", &from("203.0.113.7"), b"").await;
    assert_eq!(
        (refused.status, refused.header("retry-after")),
        (429, Some("60"))
    );
    assert!(
        refused.json()["detail"]
            .as_str()
            .unwrap()
            .contains("this address has too many open streams")
    );
    // requests are no streams, and another address has its own
    is_list(&started.list("203.0.113.7").await);
    drop(open("203.0.113.8").await);
    streams.pop();
    soon("room for another", async {
        let headers = from("203.0.113.7");
        loop {
            let reply = tokio::time::timeout(
                std::time::Duration::from_millis(300),
                send(started.address(), "GET", "/mcp", &headers, b""),
            );
            // one that is open does not end by itself
            if reply.await.is_err() {
                break;
            }
        }
    })
    .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn an_actor_has_so_many_streams_and_requests_and_others_have_their_own() {
    let people: [crate::access::Person<'_>; 2] =
        [("kim", &[("reader", "**")]), ("lee", &[("reader", "**")])];
    let server = Guarded::with(&[], &people, |config| {
        config.network.streams.per_actor = 2;
        config.network.rates.actor_per_minute = 1;
        config.network.rates.actor_burst = 10;
    })
    .await;
    let bearer = server.bearer("kim");
    let [accept, close] = LISTEN;
    let headers = [accept, close, ("Authorization", &*bearer)];
    let mut streams = Vec::new();
    for _ in 0..2 {
        streams.push(Events::open(server.address, "GET", "/mcp", &headers, b"").await);
    }
    let refused = send(server.address, "GET", "/mcp", &headers, b"").await;
    assert_eq!(refused.status, 429);
    assert!(
        refused
            .text()
            .contains("this actor has too many open streams"),
        "{}",
        refused.text()
    );
    let statuses = async |name: &str, many: usize| {
        let mut out = Vec::new();
        for _ in 0..many {
            out.push(server.get(name, "/api/v1/usage").await.status);
        }
        out
    };
    let kim = statuses("kim", 12).await;
    assert!(
        kim.starts_with(&[200; 7]) && kim.ends_with(&[429; 5]),
        "{kim:?}"
    );
    assert_eq!(statuses("lee", 8).await, [200; 8]);
}
