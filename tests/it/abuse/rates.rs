//! Clients that ask too often.

use super::*;
use crate::support::soon;

const FLOODER: &str = "203.0.113.7";
const SOMEBODY: &str = "203.0.113.8";

#[tokio::test]
async fn an_address_that_floods_is_told_when_to_come_again_and_nobody_else_notices() {
    let started = Started::new(&[
        ("CUEBOOK_HTTP_TRUSTED_PROXIES", "127.0.0.1"),
        ("CUEBOOK_HTTP_REQUESTS_PER_MINUTE", "60"),
        ("CUEBOOK_HTTP_BURST", "20"),
    ]);
    let mut refused = Vec::new();
    for _ in 0..60 {
        let reply = started.list(FLOODER).await;
        if reply.status == 429 {
            refused.push(reply);
        } else {
            is_list(&reply);
        }
    }
    assert!(refused.len() >= 30, "{}", refused.len());
    for reply in &refused {
        assert_eq!(
            reply.header("content-type"),
            Some("application/problem+json")
        );
        assert!(reply.header("x-request-id").is_some() && reply.header("retry-after").is_some());
        let problem = reply.json();
        assert_eq!(
            (&problem["status"], &problem["title"]),
            (&429.into(), &"Too Many Requests".into())
        );
        assert!(
            problem["detail"].as_str().unwrap().contains("try again in"),
            "{problem}"
        );
    }
    for _ in 0..10 {
        is_list(&started.list(SOMEBODY).await);
    }
    // every way in counts alike
    for path in [
        "/healthz",
        "/",
        "/api/v1/audit",
        "/library.git/info/refs?service=git-upload-pack",
    ] {
        let headers = [("X-Forwarded-For", FLOODER)];
        assert_eq!(
            send(started.address(), "GET", path, &headers, b"")
                .await
                .status,
            429,
            "{path}"
        );
    }
    // and what is said is kept
    soon("its turn", async {
        while started.list(FLOODER).await.status != 200 {
            tokio::time::sleep(std::time::Duration::from_millis(100)).await;
        }
    })
    .await;
    let log = started.server.log();
    assert_eq!(log.matches("make too many").count(), 1, "{log}");
}

#[tokio::test]
async fn an_ipv6_network_is_one_client() {
    let started = Started::new(&[
        ("CUEBOOK_HTTP_TRUSTED_PROXIES", "127.0.0.1"),
        ("CUEBOOK_HTTP_REQUESTS_PER_MINUTE", "1"),
        ("CUEBOOK_HTTP_BURST", "5"),
    ]);
    for number in 1..=5 {
        is_list(&started.list(&format!("2001:db8::{number}")).await);
    }
    assert_eq!(started.list("2001:db8::6").await.status, 429);
    is_list(&started.list("2001:db8:0:1::6").await);
}

#[tokio::test]
async fn programs_of_the_same_machine_ask_as_often_as_they_like() {
    let started = Started::new(&[
        ("CUEBOOK_HTTP_REQUESTS_PER_MINUTE", "1"),
        ("CUEBOOK_HTTP_BURST", "1"),
    ]);
    for _ in 0..20 {
        is_list(&started.list("").await);
    }
}
