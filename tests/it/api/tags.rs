//! `ETag` and `If-Match`: nobody writes over what they have not seen.

use serde_json::{Value, json};

use crate::access::{Guarded, ROLES};
use crate::git::git;
use crate::support::http::{Reply, send};

fn prompt(text: &str) -> String {
    format!("---\ndescription: D\n---\n{text}\n")
}

/// Writes as `root`, saying what was seen.
async fn write(server: &Guarded, method: &str, path: &str, body: &Value, seen: &str) -> Reply {
    let bearer = server.bearer("root");
    let headers = [
        ("Authorization", &*bearer),
        ("Content-Type", "application/json"),
        ("If-Match", seen),
    ];
    let body = body.to_string();
    send(server.address, method, path, &headers, body.as_bytes()).await
}

async fn tag(server: &Guarded, path: &str) -> String {
    let reply = server.get("root", path).await;
    assert_eq!(reply.status, 200, "{path}: {}", reply.text());
    reply
        .header("etag")
        .unwrap_or_else(|| panic!("{path}"))
        .to_owned()
}

/// A write with an old tag is refused with the one of now, and goes through with that; another tag than the first then
/// names what is there. Gives the answer of the write.
async fn guarded(
    server: &Guarded,
    list: &str,
    (method, path): (&str, &str),
    body: &Value,
) -> Value {
    let before = tag(server, list).await;
    assert_eq!(tag(server, list).await, before, "{list} is read twice");
    let stale = write(server, method, path, body, "\"something-else\"").await;
    assert_eq!(stale.status, 412, "{path}: {}", stale.text());
    assert_eq!(stale.header("etag"), Some(&*before), "{path}");
    assert_eq!(
        stale.header("content-type"),
        Some("application/problem+json")
    );
    assert_eq!(tag(server, list).await, before, "{path} changed {list}");
    let good = write(server, method, path, body, &before).await;
    assert!((200..300).contains(&good.status), "{path}: {}", good.text());
    assert_ne!(tag(server, list).await, before, "{path}");
    let again = write(server, method, path, body, &before).await;
    assert_eq!(again.status, 412, "{path}: {}", again.text());
    good.json()
}

#[tokio::test(flavor = "multi_thread")]
async fn who_may_do_what_is_changed_by_who_has_seen_it() {
    let server = Guarded::start(&[], &ROLES).await;
    let (people, grants) = ("/api/v1/access/people", "/api/v1/access/grants");
    let (groups, tokens) = ("/api/v1/access/groups", "/api/v1/access/tokens");
    guarded(&server, people, ("POST", people), &json!({ "name": "ann" })).await;
    let path = format!("{people}/ann");
    guarded(
        &server,
        people,
        ("POST", &path),
        &json!({ "disabled": true }),
    )
    .await;
    let ask = json!({ "group": "night", "add": ["reader"] });
    guarded(&server, groups, ("POST", groups), &ask).await;
    let ask = json!({ "who": "group:night", "role": "author", "path": "prompts/**" });
    guarded(&server, grants, ("POST", grants), &ask).await;
    let path = format!("{grants}/revoke");
    guarded(&server, grants, ("POST", &path), &ask).await;
    let ask = json!({ "label": "laptop" });
    let made = guarded(&server, tokens, ("POST", tokens), &ask).await;
    let path = format!("{tokens}/{}/revoke", made["prefix"].as_str().unwrap());
    guarded(&server, tokens, ("POST", &path), &json!({})).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn labels_and_versions_are_moved_by_who_has_seen_them() {
    let (path, other) = ("prompts/sre/triage.md", "prompts/sre/other.md");
    let server = Guarded::start(&[(path, &prompt("1")), (other, &prompt("O"))], &[]).await;
    server.publish(&[(path, &prompt("2"))]).await;
    let versions = "/api/v1/prompts/triage/versions";
    let label = "/api/v1/prompts/triage/label";
    let ask = json!({ "label": "production", "version": "v1", "reason": "r" });
    guarded(&server, versions, ("POST", label), &ask).await;
    let revert = "/api/v1/prompts/triage/revert";
    let ask = json!({ "version": "v1", "reason": "r" });
    guarded(&server, versions, ("POST", revert), &ask).await;
    // what others publish of other prompts stands in nobody's way
    let seen = tag(&server, versions).await;
    server.publish(&[(other, &prompt("Other."))]).await;
    let ask = json!({ "label": "production", "version": "v2", "reason": "r" });
    let reply = write(&server, "POST", label, &ask, &seen).await;
    assert_eq!(reply.status, 200, "{}", reply.text());
}

#[tokio::test(flavor = "multi_thread")]
async fn what_lets_others_in_changes_no_tag_of_ones_own() {
    let server = Guarded::start(&[], &ROLES).await;
    let list = "/api/v1/access/tokens";
    let tag_of = async |who: &str| {
        let reply = server.get(who, list).await;
        assert_eq!(reply.status, 200, "{}", reply.text());
        reply.header("etag").unwrap().to_owned()
    };
    let make = async |who: &str, seen: &str| {
        let bearer = server.bearer(who);
        let headers = [
            ("Authorization", &*bearer),
            ("Content-Type", "application/json"),
            ("If-Match", seen),
        ];
        let body = json!({ "label": "laptop" }).to_string();
        send(server.address, "POST", list, &headers, body.as_bytes()).await
    };
    let (reader, root) = (tag_of("reader").await, tag_of("root").await);
    let made = make("author", "*").await;
    assert_eq!(made.status, 200, "{}", made.text());
    assert_eq!(tag_of("reader").await, reader);
    assert_ne!(tag_of("root").await, root);
    // and stands in nobody's way
    let made = make("reader", &reader).await;
    assert_eq!(made.status, 200, "{}", made.text());
    let stale = make("reader", &reader).await;
    assert_eq!(stale.status, 412, "{}", stale.text());
    assert_eq!(stale.header("etag"), Some(&*tag_of("reader").await));
}

/// Commits something to main past the gate, as who is at the machine can, so that no server has read it yet.
fn commit(server: &Guarded, folder: &str, path: &str, text: &str) {
    let work = server.work("root", folder);
    work.change(&[(path, &prompt(text))]);
    let from = work.path.to_str().unwrap();
    let ran = git(&server.bare(), &["fetch", "--quiet", from, "HEAD:main"]);
    assert!(ran.ok, "{}", ran.text);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_label_is_held_against_main_as_it_is_when_it_moves() {
    let (path, other) = ("prompts/sre/triage.md", "prompts/sre/other.md");
    let server = Guarded::start(&[(path, &prompt("1")), (other, &prompt("O"))], &[]).await;
    server.counted("triage").await;
    let versions = "/api/v1/prompts/triage/versions";
    let label = "/api/v1/prompts/triage/label";
    let seen = tag(&server, versions).await;
    commit(&server, "one", other, "Other.");
    let ask = json!({ "label": "production", "version": "v1", "reason": "r" });
    let reply = write(&server, "POST", label, &ask, &seen).await;
    assert_eq!(reply.status, 200, "{}", reply.text());
    let seen = tag(&server, versions).await;
    commit(&server, "two", path, "2");
    let ask = json!({ "label": "staging", "version": "v1", "reason": "r" });
    let reply = write(&server, "POST", label, &ask, &seen).await;
    assert_eq!(reply.status, 412, "{}", reply.text());
    assert_eq!(reply.header("etag"), Some(&*tag(&server, versions).await));
    assert_ne!(reply.header("etag"), Some(&*seen));
}

#[tokio::test(flavor = "multi_thread")]
async fn proposals_are_changed_by_who_has_seen_them() {
    let server = Guarded::start(&[("prompts/sre/triage.md", &prompt("1"))], &[]).await;
    let base = server.get("root", "/readyz").await.json()["tip"].clone();
    let files = json!({ "prompts/sre/triage.md": prompt("2") });
    let ask = json!({ "title": "T", "base": base, "files": files });
    let opened = server
        .post("root", "/api/v1/proposals", &ask.to_string())
        .await;
    assert_eq!(opened.status, 201, "{}", opened.text());
    let head = opened.json()["head"].clone();
    let one = "/api/v1/proposals/1";
    guarded(&server, one, ("PATCH", one), &json!({ "title": "Better" })).await;
    let path = format!("{one}/comments");
    guarded(&server, one, ("POST", &path), &json!({ "message": "Why?" })).await;
    let path = format!("{one}/revisions");
    let files = json!({ "prompts/sre/triage.md": prompt("3") });
    let ask = json!({ "base": head, "files": files, "message": "Again" });
    guarded(&server, one, ("POST", &path), &ask).await;
    // an answer says how many comments there are
    for (method, path, ask) in [
        ("PATCH", one.to_owned(), json!({ "title": "Better yet" })),
        ("POST", format!("{one}/close"), json!({})),
        ("POST", format!("{one}/reopen"), json!({})),
    ] {
        let answer = guarded(&server, one, (method, &path), &ask).await;
        assert_eq!(answer["comments"], 1, "{path}: {answer}");
    }
}
