//! What happens, as the page of it shows it.

use std::time::Duration;

use cuebook::clock;
use serde_json::{Value, json};

use super::lists::walked;
use crate::access::{Guarded, Person};
use crate::support::http::send;
use crate::support::library::TestLibrary;
use crate::support::mcp::Client;
use crate::support::server::TestServer;
use crate::support::soon;

fn prompt(text: &str) -> String {
    format!("---\ndescription: D\n---\n{text}\n")
}

#[tokio::test(flavor = "multi_thread")]
async fn what_was_published_comes_in_pages_and_for_who_may_read_it() {
    let half: &[Person<'_>] = &[("half", &[("reader", "prompts/open/**")])];
    let (one, two) = ("prompts/open/one.md", "prompts/closed/two.md");
    let server = Guarded::start(&[(one, &prompt("1")), (two, &prompt("1"))], half).await;
    server.publish(&[(one, &prompt("2"))]).await;
    for (name, version) in [
        ("one", json!("v1")),
        ("two", json!("v1")),
        ("one", json!(null)),
    ] {
        let ask = json!({ "label": "production", "version": version, "reason": "r" });
        let path = format!("/api/v1/prompts/{name}/label");
        let reply = server.post("root", &path, &ask.to_string()).await;
        assert_eq!(reply.status, 200, "{}", reply.text());
    }
    server.publish(&[(one, &prompt("1"))]).await;
    let path = "/api/v1/published";
    let whole = server.get("root", path).await.json();
    let whole = whole["published"].as_array().unwrap().clone();
    // two versions at first, two more, and three moves
    assert_eq!(whole.len(), 7, "{whole:?}");
    for limit in [1, 2, 3, 200] {
        let (walked, pages) = walked(&server, path, "published", limit).await;
        assert_eq!(walked, whole, "by {limit}");
        assert!(pages >= whole.len().div_ceil(limit), "by {limit}");
    }
    let times: Vec<i64> = whole.iter().map(|e| e["time"].as_i64().unwrap()).collect();
    assert!(times.is_sorted_by(|a, b| a >= b), "{times:?}");
    let again = |entry: &&Value| entry["version"]["again"] == 1;
    assert_eq!(whole.iter().filter(again).count(), 1, "{whole:?}");
    let off = |entry: &&Value| {
        let moved = &entry["moves"][0];
        moved["label"] == "production" && moved["number"].is_null()
    };
    assert_eq!(whole.iter().filter(off).count(), 1, "{whole:?}");
    // what is published meanwhile moves no page
    let first = server.get("root", "/api/v1/published?limit=3").await.json();
    let cursor = first["next_cursor"].as_str().unwrap();
    // within a second, what has a lower number stands lower
    soon("the next second", async {
        while clock::unix_seconds().cast_signed() <= times[0] {
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
    })
    .await;
    server.publish(&[(two, &prompt("2"))]).await;
    let rest = format!("{path}?cursor={cursor}");
    let rest = server.get("root", &rest).await.json();
    assert_eq!(rest["published"], json!(whole[3..]));

    let seen = server.get("half", path).await;
    assert_eq!(seen.json()["published"].as_array().unwrap().len(), 5);
    assert!(!seen.text().contains("two"), "{}", seen.text());
    for query in ["limit=0", "limit=201", "cursor=NSA1"] {
        let reply = server.get("root", &format!("{path}?{query}")).await;
        assert_eq!(reply.status, 400, "{query}: {}", reply.text());
    }
}

#[tokio::test]
async fn who_listens_is_told() {
    let library = TestLibrary::small();
    let server = TestServer::start(&library).await;
    let now = async || {
        let reply = send(server.address, "GET", "/api/v1/activity", &[], b"").await;
        assert_eq!(reply.status, 200, "{}", reply.text());
        reply.json()
    };
    let before = now().await;
    assert_eq!(before["clients"], json!([]));
    assert_eq!(before["messages"], json!([]));
    assert_eq!(before["served"], before["tip"]);
    assert_eq!(before["index"], "none");
    assert_eq!(before["upstream"], json!(null));
    let client = Client::named(&server, "2025-06-18", "api-test").await;
    let events = client.listen(json!({})).await;
    let found = now().await;
    let listening = &found["clients"][0];
    assert_eq!(
        (&listening["name"], &listening["revision"]),
        (&json!("api-test"), &json!("2025-06-18"))
    );
    assert_eq!(
        (&listening["streams"], &found["streams"]),
        (&json!(1), &json!(1))
    );
    drop(events);
}

#[tokio::test(flavor = "multi_thread")]
async fn lines_and_clients_are_told_to_who_reads_all() {
    let people: &[Person<'_>] = &[
        ("all", &[("reader", "**")]),
        ("half", &[("reader", "prompts/open/**")]),
    ];
    let text = prompt("1");
    let files = [
        ("prompts/open/one.md", &*text),
        ("prompts/closed/two.md", &*text),
    ];
    let server = Guarded::start(&files, people).await;
    let work = server.work("root", "work");
    work.change(&[("prompts/closed/two.md", &prompt("The {{ merger }"))]);
    // past the gate, as who is at the machine can
    let from = work.path.to_str().unwrap();
    let ran = crate::git::git(&server.bare(), &["fetch", "--quiet", from, "HEAD:main"]);
    assert!(ran.ok, "{}", ran.text);
    soon("the problem to be found", async {
        while server.get("root", "/readyz").await.json()["problem_count"] == 0 {
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
    })
    .await;
    for (who, sees) in [("all", true), ("half", false)] {
        let reply = server.get(who, "/api/v1/activity").await;
        assert_eq!(reply.status, 200, "{}", reply.text());
        let now = reply.json();
        assert_eq!(now["problem_count"] != 0, sees, "{now}");
        assert_eq!(now["problems"] != json!([]), sees, "{now}");
        assert_eq!(now["messages"] != json!([]), sees, "{now}");
        assert_eq!(now["prompts"], if sees { 2 } else { 1 }, "{now}");
        assert_eq!(reply.text().contains("two"), sees, "{now}");
    }
}

/// What could not be read is told, and not left out.
#[tokio::test(flavor = "multi_thread")]
async fn moves_that_could_not_be_read_are_not_left_out_silently() {
    let library = TestLibrary::small();
    let server = TestServer::start(&library).await;
    let headers = [("Accept", "text/html"), ("Accept-Language", "en")];
    let page = send(server.address, "GET", "/activity", &headers, b"").await;
    assert!(
        !page.text().contains("could not be read now"),
        "{}",
        page.text()
    );
    // nobody gets a place
    let first = server.registry.reading().await.unwrap();
    let second = server.registry.reading().await.unwrap();
    let (page, api) = tokio::join!(
        send(server.address, "GET", "/activity", &headers, b""),
        send(server.address, "GET", "/api/v1/published", &[], b"")
    );
    assert_eq!(page.status, 200, "{}", page.text());
    assert!(page.text().contains("could not be read now"));
    assert_eq!(api.status, 503, "{}", api.text());
    assert_eq!(api.header("retry-after"), Some("1"));
    drop((first, second));
}
