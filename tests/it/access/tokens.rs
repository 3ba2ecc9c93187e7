//! Tokens: shown once, cut down, ending, revoked at once, and never where they do not belong.

use std::process::Command;

use serde_json::json;

use super::{Guarded, ROLES};
use crate::support::http::send;
use crate::support::process::Server;

const PROMPT: (&str, &str) = (
    "prompts/sre/triage.md",
    "---\ndescription: Triage\n---\nLook.\n",
);

async fn me(server: &Guarded, token: &str) -> crate::support::http::Reply {
    let bearer = format!("Bearer {token}");
    let headers = [("Authorization", &*bearer)];
    send(server.address, "GET", "/api/v1/access/me", &headers, b"").await
}

async fn make(server: &Guarded, name: &str, ask: serde_json::Value) -> crate::support::http::Reply {
    server
        .post(name, "/api/v1/access/tokens", &ask.to_string())
        .await
}

#[tokio::test(flavor = "multi_thread")]
async fn people_make_and_revoke_their_own_and_admins_everybodys() {
    let server = Guarded::start(&[PROMPT], &ROLES).await;
    let made = make(&server, "author", json!({ "label": "laptop" })).await;
    assert_eq!(made.status, 200, "{}", made.text());
    let made = made.json();
    let (token, prefix) = (
        made["token"].as_str().unwrap().to_owned(),
        made["prefix"].as_str().unwrap().to_owned(),
    );
    assert!(token.starts_with("cbk_") && token.starts_with(&prefix));
    assert!(made["expires"].is_string(), "{made}");
    let known = me(&server, &token).await.json();
    assert_eq!(
        (known["name"].as_str(), known["credential"].as_str()),
        (Some("author"), Some(&*format!("token {prefix}")))
    );
    // nobody lists or revokes another's, and which there are is not told
    let listed = server.get("reader", "/api/v1/access/tokens").await.json();
    let owners: Vec<&str> = listed["tokens"]
        .as_array()
        .unwrap()
        .iter()
        .map(|token| token["owner"].as_str().unwrap())
        .collect();
    assert_eq!(owners, ["reader"]);
    let path = format!("/api/v1/access/tokens/{prefix}/revoke");
    let refused = server.post("reader", &path, "{}").await;
    let unknown = server
        .post("reader", "/api/v1/access/tokens/cbk_aaaaaaaa/revoke", "{}")
        .await;
    assert_eq!((refused.status, unknown.status), (404, 404));
    assert_eq!(
        refused.text().replace(&prefix, ""),
        unknown.text().replace("cbk_aaaaaaaa", "")
    );
    assert_eq!(
        make(
            &server,
            "reader",
            json!({ "label": "x", "owner": "author" })
        )
        .await
        .status,
        403
    );
    // its list says when it was used, and shows nothing of it but its beginning
    let listed = server.get("author", "/api/v1/access/tokens").await;
    assert!(!listed.text().contains(&token[prefix.len()..]));
    let listed = listed.json();
    let own = listed["tokens"]
        .as_array()
        .unwrap()
        .iter()
        .find(|row| row["prefix"] == *prefix)
        .unwrap()
        .clone();
    assert!(own["used"].is_string(), "{own}");
    // an admin revokes it, and it ends at once
    assert_eq!(server.post("root", &path, "{}").await.status, 200);
    let ended = me(&server, &token).await;
    assert_eq!(ended.status, 401);
    assert!(ended.text().contains("revoked"), "{}", ended.text());
    // all of it is in the audit, without the secret
    let audit = server.get("root", "/api/v1/audit").await;
    assert!(!audit.text().contains(&token[prefix.len()..]));
    let rows = audit.json()["rows"].clone();
    let of = |action: &str| {
        rows.as_array()
            .unwrap()
            .iter()
            .find(|row| row["action"] == action && row["subject"] == *prefix)
            .unwrap_or_else(|| panic!("no {action} in {rows}"))
            .clone()
    };
    assert_eq!(of("token")["actor"], "author");
    assert_eq!(of("revoke")["actor"], "root");
    assert_eq!(of("token")["origin"], "127.0.0.1");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_revocation_that_was_cut_is_in_force_when_it_is_asked_for_again() {
    let server = Guarded::start(&[PROMPT], &ROLES).await;
    let made = make(&server, "author", json!({ "label": "laptop" }))
        .await
        .json();
    let (token, prefix) = (
        made["token"].as_str().unwrap(),
        made["prefix"].as_str().unwrap(),
    );
    // the database has it, and memory does not
    let running = server.running.as_ref().unwrap();
    let store = running.records.as_ref().unwrap().store().unwrap();
    assert!(store.revoke_token(prefix, 1).await.unwrap());
    assert_eq!(me(&server, token).await.status, 200);
    let path = format!("/api/v1/access/tokens/{prefix}/revoke");
    assert_eq!(server.post("root", &path, "{}").await.status, 200);
    assert_eq!(me(&server, token).await.status, 401);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_token_does_at_most_what_it_was_made_for() {
    let server = Guarded::start(&[PROMPT, ("prompts/other.md", PROMPT.1)], &ROLES).await;
    let ask = json!({ "label": "ci", "role": "author", "paths": ["prompts/sre/**"] });
    let made = make(&server, "admin", ask).await.json();
    let token = made["token"].as_str().unwrap();
    let bearer = format!("Bearer {token}");
    let headers = [
        ("Authorization", &*bearer),
        ("Content-Type", "application/json"),
    ];
    let people = send(
        server.address,
        "GET",
        "/api/v1/access/people",
        &headers,
        b"",
    )
    .await;
    assert_eq!(people.status, 403, "{}", people.text());
    let known = me(&server, token).await.json();
    assert_eq!(known["at_most"], "author");
    assert_eq!(known["only_at"], json!(["prompts/sre/**"]));
    // it hands on no more than it has
    let hand_on = |ask: serde_json::Value| {
        let body = ask.to_string();
        async move {
            let path = "/api/v1/access/tokens";
            send(server.address, "POST", path, &headers, body.as_bytes()).await
        }
    };
    let higher = hand_on(json!({ "label": "x", "role": "admin" })).await;
    assert_eq!(higher.status, 403, "{}", higher.text());
    let wider = hand_on(json!({ "label": "x", "paths": ["prompts/**"] })).await;
    assert_eq!(wider.status, 403, "{}", wider.text());
    let other = hand_on(json!({ "label": "x", "owner": "root" })).await;
    assert_eq!(other.status, 403, "{}", other.text());
    let same = hand_on(json!({ "label": "x", "expires_days": 366 })).await;
    assert_eq!(same.status, 200, "{}", same.text());
    let same = same.json();
    let child = me(&server, same["token"].as_str().unwrap()).await.json();
    assert_eq!(child["at_most"], "author");
    assert_eq!(child["only_at"], json!(["prompts/sre/**"]));
    assert_eq!(
        same["expires"], made["expires"],
        "it does not outlive its maker"
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn only_a_service_has_a_token_without_an_end() {
    let server = Guarded::start(&[PROMPT], &ROLES).await;
    let refused = make(
        &server,
        "author",
        json!({ "label": "x", "no_expiry": true }),
    )
    .await;
    assert_eq!(refused.status, 422, "{}", refused.text());
    let refused = make(
        &server,
        "author",
        json!({ "label": "x", "expires_days": 367 }),
    )
    .await;
    assert_eq!(refused.status, 422, "{}", refused.text());
    let add = json!({ "name": "ci", "service": true }).to_string();
    assert_eq!(
        server
            .post("root", "/api/v1/access/people", &add)
            .await
            .status,
        200
    );
    // what a token of limited time makes has that limit too, so the one who makes it is the machine's own
    let local = server
        .local(
            "/api/v1/access/tokens",
            &json!({ "label": "x", "owner": "ci", "no_expiry": true }),
        )
        .await;
    assert!(local["expires"].is_null(), "{local}");
    let notes = local["notes"].to_string();
    assert!(
        notes.contains("does not end") && notes.contains("no role yet"),
        "{notes}"
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn a_token_in_the_address_is_none() {
    let server = Guarded::start(&[PROMPT], &ROLES).await;
    for name in ["access_token", "token", "api_key", "authorization"] {
        for path in ["/api/v1/search?q=x&", "/mcp?", "/api/v1/access/me?", "/?"] {
            let path = format!("{path}{name}={}", server.token("root"));
            let reply = send(server.address, "GET", &path, &[], b"").await;
            assert_eq!(reply.status, 401, "{path}");
        }
    }
}

fn cuebook(data_dir: &std::path::Path, arguments: &[&str]) -> (i32, String) {
    let mut command = Command::new(env!("CARGO_BIN_EXE_cuebook"));
    let ran = command
        .args(arguments)
        .arg("--data-dir")
        .arg(data_dir)
        .output()
        .unwrap();
    (
        ran.status.code().unwrap(),
        String::from_utf8(ran.stdout).unwrap() + &String::from_utf8(ran.stderr).unwrap(),
    )
}

/// The commands on a server that runs, and what its log says of the secrets that pass: nothing.
#[tokio::test(flavor = "multi_thread")]
async fn the_commands_make_people_and_tokens_and_no_secret_is_logged() {
    let folder = tempfile::tempdir().unwrap();
    let data_dir = folder.path().join("data");
    let mut command = Command::new(env!("CARGO_BIN_EXE_cuebook"));
    command
        .args(["--log", "trace", "serve", "--listen", "127.0.0.1:0"])
        .arg("--data-dir")
        .arg(&data_dir)
        .env("CUEBOOK_ACCESS_ENABLED", "true");
    let server = Server::start(command);
    let run = |arguments: &[&str]| {
        let (code, text) = cuebook(&data_dir, arguments);
        assert_eq!(code, 0, "{arguments:?}: {text}");
        text
    };
    run(&[
        "access",
        "add-person",
        "ana",
        "--admin",
        "--email",
        "ana@example.com",
    ]);
    run(&["access", "add-person", "김민수"]);
    run(&["access", "groups", "sre", "--add", "김민수"]);
    run(&[
        "access",
        "grant",
        "group:sre",
        "publisher",
        "prompts/sre/**",
    ]);
    run(&["access", "grant", "everyone", "reader"]);
    let shown = run(&["access", "show"]);
    for line in [
        "ana  person <ana@example.com>",
        "    admin at **",
        "김민수  person  in sre",
        "group:sre\n    publisher at prompts/sre/**",
        "everyone\n    reader at **",
    ] {
        assert!(shown.contains(line), "{line} in {shown}");
    }
    let made = run(&[
        "token",
        "create",
        "ana",
        "--label",
        "laptop",
        "--expires",
        "7d",
    ]);
    let token = made.lines().next().unwrap().to_owned();
    let bearer = format!("Bearer {token}");
    let headers = [("Authorization", &*bearer)];
    let me = send(server.address, "GET", "/api/v1/access/me", &headers, b"").await;
    assert_eq!(me.json()["name"], "ana");
    let in_address = format!("/api/v1/search?q=x&token={token}");
    send(server.address, "GET", &in_address, &[], b"").await;
    let wrong = format!("Bearer {token}x");
    let headers = [("Authorization", &*wrong)];
    send(server.address, "GET", "/api/v1/access/me", &headers, b"").await;
    let listed = run(&["token", "list", "ana"]);
    assert!(
        listed.contains("laptop") && listed.contains("last used on"),
        "{listed}"
    );
    // the last person who administers stays one
    let (code, text) = cuebook(&data_dir, &["access", "disable", "ana"]);
    assert_eq!(code, 1, "{text}");
    assert!(text.contains("no person who administers"), "{text}");
    let (code, text) = cuebook(&data_dir, &["access", "revoke", "ana", "admin"]);
    assert_eq!(code, 1, "{text}");
    run(&["access", "grant", "김민수", "admin"]);
    run(&["access", "disable", "ana"]);
    let headers = [("Authorization", &*bearer)];
    let me = send(server.address, "GET", "/api/v1/access/me", &headers, b"").await;
    assert_eq!(me.status, 401);
    run(&["token", "revoke", &token[..12]]);
    let (_, log) = server.end("-TERM");
    assert!(log.len() > 1000, "the log is empty: {log}");
    assert!(!log.contains(&token[13..]), "the token is in the log");
    let database = std::fs::read(data_dir.join("cuebook.db")).unwrap();
    let secret = &token.as_bytes()[13..];
    assert!(!database.windows(secret.len()).any(|part| part == secret));
}
