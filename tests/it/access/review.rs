//! Who may open, judge and merge a proposal, and who sees that there is one.

use serde_json::{Value, json};

use super::Guarded;
use crate::support::http::Reply;

fn prompt(text: &str) -> String {
    format!("---\ndescription: D\n---\n{text}\n")
}

async fn server(policy: &str) -> Guarded {
    let (sre, review) = (prompt("Write it down."), prompt("Review this."));
    let files = [
        ("prompts/sre/after.md", &*sre),
        ("prompts/review/code-review.md", &*review),
        ("cuebook.toml", policy),
    ];
    let people: [super::Person<'_>; 6] = [
        ("reader", &[("reader", "**")]),
        ("ann", &[("author", "**")]),
        ("mina", &[("reviewer", "**")]),
        (
            "joon",
            &[("reviewer", "prompts/review/**"), ("reader", "**")],
        ),
        ("pub", &[("publisher", "**")]),
        ("outside", &[("publisher", "prompts/review/**")]),
    ];
    Guarded::start(&files, &people).await
}

async fn open(server: &Guarded, name: &str, files: Value) -> Reply {
    let ready = server.get("root", "/readyz").await.json();
    let body = json!({ "title": "T", "base": ready["tip"], "files": files });
    server
        .post(name, "/api/v1/proposals", &body.to_string())
        .await
}

async fn post(server: &Guarded, name: &str, what: &str, body: Value) -> Reply {
    server
        .post(
            name,
            &format!("/api/v1/proposals/1/{what}"),
            &body.to_string(),
        )
        .await
}

fn says(reply: &Reply, status: u16, words: &str) {
    let text = String::from_utf8_lossy(&reply.body);
    assert_eq!(reply.status, status, "{text}");
    assert!(text.contains(words), "no `{words}` in {text}");
}

const POLICY: &str =
    "[[approval]]\npaths = [\"prompts/sre/**\"]\nreviewers = [\"mina\", \"pub\"]\n";

#[tokio::test(flavor = "multi_thread")]
async fn a_proposal_goes_through_the_hands_it_must() {
    let server = server(POLICY).await;
    let files = json!({ "prompts/sre/after.md": prompt("Changed.") });
    says(
        &open(&server, "reader", files.clone()).await,
        403,
        "the role it takes",
    );
    let opened = open(&server, "ann", files).await;
    says(&opened, 201, "opened proposal 1");
    let head = opened.json()["head"].clone();
    let approve = json!({ "verdict": "approve", "head": head });
    // nobody without the role, and nobody their own
    says(
        &post(&server, "reader", "reviews", approve.clone()).await,
        403,
        "the role it takes",
    );
    says(
        &post(&server, "ann", "reviews", approve.clone()).await,
        403,
        "you may not review",
    );
    says(
        &post(&server, "joon", "reviews", approve.clone()).await,
        403,
        "you may not review",
    );
    says(
        &post(&server, "pub", "merge", json!({ "head": head })).await,
        409,
        "takes 1 approval",
    );
    let inbox = server.get("mina", "/api/v1/inbox").await.json();
    assert_eq!(inbox["to_review"][0]["number"], 1);
    // an approval is of what was judged
    says(
        &post(&server, "mina", "reviews", approve.clone()).await,
        201,
        "\"id\":1",
    );
    let inbox = server.get("mina", "/api/v1/inbox").await.json();
    assert_eq!(inbox["to_review"], json!([]));
    let inbox = server.get("ann", "/api/v1/inbox").await.json();
    assert_eq!(
        (&inbox["answered"][0]["what"], &inbox["answered"][0]["from"]),
        (&json!("approved"), &json!("mina"))
    );
    let revised = json!({ "base": head, "files": { "prompts/sre/after.md": prompt("More.") }, "message": "More" });
    let revised = post(&server, "ann", "revisions", revised).await;
    assert_eq!(revised.status, 200, "{}", revised.text());
    let head = revised.json()["head"].clone();
    let seen = server.get("pub", "/api/v1/proposals/1").await.json();
    assert_eq!(
        (&seen["reviews"][0]["stale"], &seen["mergeable"]),
        (&json!(true), &json!(false))
    );
    says(
        &post(&server, "mina", "reviews", approve).await,
        409,
        "has moved on to",
    );
    says(
        &post(&server, "pub", "merge", json!({ "head": head })).await,
        409,
        "takes 1 approval",
    );
    // changes are asked for, then it is approved
    let no = json!({ "verdict": "request-changes", "head": head, "message": "Why?" });
    says(&post(&server, "pub", "reviews", no).await, 201, "\"id\":2");
    let approve = json!({ "verdict": "approve", "head": head });
    says(
        &post(&server, "mina", "reviews", approve.clone()).await,
        201,
        "\"id\":3",
    );
    says(
        &post(&server, "pub", "merge", json!({ "head": head })).await,
        409,
        "pub asked for changes",
    );
    says(
        &post(&server, "pub", "reviews", approve).await,
        201,
        "\"id\":4",
    );
    // who may only propose does not merge, nor who may only review
    says(
        &post(&server, "ann", "merge", json!({ "head": head })).await,
        403,
        "the role it takes",
    );
    says(
        &post(&server, "mina", "merge", json!({ "head": head })).await,
        403,
        "the role it takes",
    );
    let merged = post(&server, "pub", "merge", json!({ "head": head })).await;
    assert_eq!(merged.status, 200, "{}", merged.text());
    let log = server.get("root", "/api/v1/audit?limit=1").await.json();
    assert_eq!(
        (
            &log["rows"][0]["action"],
            &log["rows"][0]["actor"],
            &log["rows"][0]["detail"]
        ),
        (
            &json!("merge"),
            &json!("pub"),
            &json!("approved by mina, pub")
        )
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn an_approval_counts_while_its_reviewer_may_give_it() {
    let server = server(POLICY).await;
    let files = json!({ "prompts/sre/after.md": prompt("Changed.") });
    let opened = open(&server, "ann", files).await;
    says(&opened, 201, "opened proposal 1");
    let head = opened.json()["head"].clone();
    let approve = json!({ "verdict": "approve", "head": head });
    says(
        &post(&server, "mina", "reviews", approve).await,
        201,
        "\"id\":1",
    );
    let mina = "/api/v1/access/people/mina";
    let out = server.post("root", mina, r#"{"disabled":true}"#).await;
    assert_eq!(out.status, 200, "{}", out.text());
    says(
        &post(&server, "pub", "merge", json!({ "head": head })).await,
        409,
        "takes 1 approval",
    );
    let back = server.post("root", mina, r#"{"disabled":false}"#).await;
    assert_eq!(back.status, 200, "{}", back.text());
    let merged = post(&server, "pub", "merge", json!({ "head": head })).await;
    assert_eq!(merged.status, 200, "{}", merged.text());
}

#[tokio::test(flavor = "multi_thread")]
async fn what_somebody_may_not_read_looks_absent() {
    let server = server("").await;
    let files = json!({ "prompts/sre/after.md": prompt("Secret.") });
    let opened = open(&server, "ann", files).await;
    assert_eq!(opened.status, 201, "{}", opened.text());
    let head = opened.json()["head"].clone();
    for path in ["", "/effect", "/conflicts"] {
        let hidden = server
            .get("outside", &format!("/api/v1/proposals/1{path}"))
            .await;
        let absent = server
            .get("outside", &format!("/api/v1/proposals/9{path}"))
            .await;
        assert_eq!((hidden.status, absent.status), (404, 404));
        let absent = String::from_utf8_lossy(&absent.body).replace("proposal 9", "proposal 1");
        assert_eq!(String::from_utf8_lossy(&hidden.body), absent);
    }
    let list = server.get("outside", "/api/v1/proposals").await.json();
    assert_eq!(list, json!({ "proposals": [], "next_cursor": null }));
    assert_eq!(
        server.get("outside", "/api/v1/inbox").await.json()["to_review"],
        json!([])
    );
    for (what, body) in [
        ("comments", json!({ "message": "x" })),
        ("reviews", json!({ "verdict": "approve", "head": head })),
        ("merge", json!({ "head": head })),
        ("close", json!({})),
        ("revert", json!({})),
        (
            "revisions",
            json!({ "base": head, "files": { "prompts/review/x.md": prompt("X.") }, "message": "m" }),
        ),
    ] {
        says(
            &post(&server, "outside", what, body).await,
            404,
            "there is no proposal 1",
        );
    }
    // and nobody proposes what they may not
    let files = json!({ "prompts/sre/after.md": prompt("Mine.") });
    says(
        &open(&server, "outside", files).await,
        403,
        "you may not propose changes of",
    );
    let files = json!({ "prompts/review/code-review.md": prompt("Mine.") });
    assert_eq!(open(&server, "outside", files).await.status, 201);
    // somebody else's is closed by its author or who may publish it
    says(
        &post(&server, "mina", "close", json!({})).await,
        403,
        "by its author, ann",
    );
    assert_eq!(post(&server, "pub", "close", json!({})).await.status, 200);
}

#[tokio::test(flavor = "multi_thread")]
async fn what_waits_comes_in_pages() {
    let server = server(POLICY).await;
    let files = |name: &str| json!({ (format!("prompts/sre/{name}.md")): prompt(name) });
    let mut own = Vec::new();
    for number in 1..=22 {
        let who = if number % 7 == 0 { "mina" } else { "ann" };
        let opened = open(&server, who, files(&format!("new-{number}"))).await;
        assert_eq!(opened.status, 201, "{}", opened.text());
        if who == "mina" {
            own.push(number);
            let path = format!("/api/v1/proposals/{number}/comments");
            let said = json!({ "message": "Why?" }).to_string();
            let said = server.post("ann", &path, &said).await;
            assert_eq!(said.status, 201, "{}", said.text());
        }
    }
    let numbers = |inbox: &Value, list: &str| -> Vec<i64> {
        let list = inbox[list].as_array().unwrap().iter();
        list.map(|entry| entry["number"].as_i64().unwrap())
            .collect()
    };
    own.reverse();
    let others: Vec<i64> = (1..=22).rev().filter(|n| !own.contains(n)).collect();
    for limit in [1, 5, 21, 22, 200] {
        let (mut to_review, mut answered) = (Vec::new(), Vec::new());
        let mut path = format!("/api/v1/inbox?limit={limit}");
        loop {
            let reply = server.get("mina", &path).await;
            assert_eq!(reply.status, 200, "{}", reply.text());
            let page = reply.json();
            let found = (numbers(&page, "to_review"), numbers(&page, "answered"));
            assert!(found.0.len() + found.1.len() <= limit, "{page}");
            to_review.extend(found.0);
            answered.extend(found.1);
            match page["next_cursor"].as_str() {
                Some(next) => path = format!("/api/v1/inbox?limit={limit}&cursor={next}"),
                None => break,
            }
        }
        assert_eq!((&to_review, &answered), (&others, &own), "by {limit}");
    }
    let first = server.get("mina", "/inbox").await;
    assert!(first.text().contains("/proposals/22") && !first.text().contains("/proposals/1\""));
    let next = first.text().split("href=\"/inbox?cursor=").nth(1).unwrap();
    let next = format!("/inbox?cursor={}", next.split('"').next().unwrap());
    let rest = server.get("mina", &next).await;
    assert!(rest.text().contains("/proposals/1\""), "{}", rest.text());
    assert!(!rest.text().contains("href=\"/inbox?cursor="));
}
