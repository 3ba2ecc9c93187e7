//! The API beside MCP: what an actor may not read looks like what is not there.

use std::process::Stdio;

use serde_json::{Value, json};
use tokio::io::{AsyncBufReadExt as _, AsyncWriteExt as _, BufReader};
use tokio::process::Command;

use super::{Guarded, Person};
use crate::git::git;
use crate::support::http::{Reply, send};
use crate::support::mcp::MODERN;
use crate::support::soon;

const PEOPLE: [Person<'static>; 3] = [
    (
        "duty",
        &[
            ("publisher", "prompts/duty/**"),
            ("reader", "resources/pager/**"),
        ],
    ),
    (
        "labels",
        &[("reader", "prompts/duty/**"), ("admin", "labels.toml")],
    ),
    ("all", &[("reader", "**")]),
];

fn prompt(text: &str) -> String {
    format!("---\ndescription: D\n---\n{text}\n")
}

async fn library() -> Guarded {
    let server = Guarded::start(
        &[
            ("prompts/duty/pager-triage.md", &prompt("The pager.")),
            ("prompts/plan/merger-plan.md", &prompt("The merger.")),
            ("partials/merger.md", "Terms.\n"),
            ("resources/pager/book.md", "The numbers.\n"),
            ("resources/merger/book.md", "The merger's terms.\n"),
        ],
        &PEOPLE,
    )
    .await;
    server
        .publish(&[
            ("prompts/duty/pager-triage.md", &prompt("The pager rings.")),
            ("prompts/plan/merger-plan.md", &prompt("The merger comes.")),
        ])
        .await;
    server
}

/// A reply without the names that were asked for.
fn text(reply: &Reply, name: &str) -> (u16, String) {
    (reply.status, reply.text().replace(name, "…"))
}

#[tokio::test(flavor = "multi_thread")]
async fn a_prompt_that_is_not_read_is_not_there() {
    let server = library().await;
    let (hidden, absent) = ("merger-plan", "qqqqqq-qqqq");
    for path in [
        "versions",
        "diff?from=v1&to=v2",
        "diff?from=v1&to=production",
        "blame",
        "blame?at=v1",
    ] {
        let at = |name: &str| format!("/api/v1/prompts/{name}/{path}");
        let one = server.get("duty", &at(hidden)).await;
        let other = server.get("duty", &at(absent)).await;
        assert_eq!(one.status, 404, "{path}");
        assert_eq!(text(&one, hidden), text(&other, absent), "{path}");
        let seen = server.get("duty", &at("pager-triage")).await;
        assert_ne!(seen.status, 404, "{path}: {}", seen.text());
    }
    let near = server
        .get("duty", "/api/v1/prompts/merger-plam/versions")
        .await;
    assert!(!near.text().contains("merger-plan"), "{}", near.text());
    let near = server
        .get("all", "/api/v1/prompts/merger-plam/versions")
        .await;
    assert!(near.text().contains("merger-plan"), "{}", near.text());
    for (who, what, body) in [
        ("duty", "revert", json!({ "version": "v1", "reason": "r" })),
        (
            "labels",
            "label",
            json!({ "label": "next", "version": "v1", "reason": "r" }),
        ),
    ] {
        let at = |name: &str| format!("/api/v1/prompts/{name}/{what}");
        let one = server.post(who, &at(hidden), &body.to_string()).await;
        let other = server.post(who, &at(absent), &body.to_string()).await;
        assert_eq!(one.status, 404, "{what}");
        assert_eq!(text(&one, hidden), text(&other, absent), "{what}");
        let seen = server
            .post(who, &at("pager-triage"), &body.to_string())
            .await;
        assert_eq!(seen.status, 200, "{what}: {}", seen.text());
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_search_finds_what_is_read() {
    let server = library().await;
    for (who, pager, merger) in [("duty", true, false), ("all", true, true)] {
        for query in ["", "merger", "the", "book"] {
            let found = server.get(who, &format!("/api/v1/search?q={query}")).await;
            assert_eq!(found.status, 200);
            let hits = found.json();
            let listed = hits["hits"].as_array().unwrap();
            assert_eq!(hits["total"], listed.len(), "{who} {query}");
            let text = found.text();
            assert!(merger || !text.contains("merger"), "{who} {query}: {text}");
            if query == "the" {
                assert_eq!(text.contains("pager"), pager, "{who}: {text}");
                assert_eq!(text.contains("merger"), merger, "{who}: {text}");
            }
        }
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn what_was_used_and_delivered_is_told_of_what_is_read() {
    let server = library().await;
    for name in ["pager-triage", "merger-plan"] {
        let params = json!({ "name": name, "arguments": {} });
        let reply = server
            .ask("all", "/mcp", MODERN, "prompts/get", params)
            .await;
        assert_eq!(reply.status, 200);
    }
    // rows are written behind what is served
    let both = |text: &str| text.contains("pager-triage") && text.contains("merger-plan");
    for path in ["/api/v1/deliveries", "/api/v1/usage"] {
        let told = soon("both to be written", async {
            loop {
                let reply = server.get("all", path).await;
                assert_eq!(reply.status, 200, "{}", reply.text());
                let json = reply.json();
                let rows = json["deliveries"].as_array().or(json["prompts"].as_array());
                if both(reply.text()) && rows.is_some_and(|rows| rows.len() == 2) {
                    return reply;
                }
                tokio::time::sleep(std::time::Duration::from_millis(50)).await;
            }
        })
        .await;
        assert!(both(told.text()));
        let reply = server.get("duty", path).await;
        assert!(reply.text().contains("pager-triage"), "{}", reply.text());
        assert!(!reply.text().contains("merger"), "{}", reply.text());
        let of = |name: &str| format!("{path}?prompt={name}");
        let one = server.get("duty", &of("merger-plan")).await;
        let other = server.get("duty", &of("qqqqqq-qqqq")).await;
        assert_eq!(one.text(), other.text());
    }
    // who got it is who asked
    let rows = server.get("all", "/api/v1/deliveries").await.json();
    assert_eq!(rows["deliveries"][0]["actor"], "all", "{rows}");
    let one = server
        .get("duty", "/api/v1/deliveries?limit=1")
        .await
        .json();
    assert_eq!(one["deliveries"].as_array().unwrap().len(), 1, "{one}");
    let cursor = one["next_cursor"].as_str().unwrap();
    let next = format!("/api/v1/deliveries?cursor={cursor}");
    let rest = server.get("duty", &next).await.json();
    assert_eq!(rest, json!({ "deliveries": [], "next_cursor": null }));
}

#[tokio::test(flavor = "multi_thread")]
async fn a_preview_finds_no_partial_and_no_resource_that_is_not_read() {
    let codes = |reply: &Reply| -> Vec<String> {
        let reply = reply.json();
        let problems = reply["problems"].as_array().unwrap().iter();
        problems
            .map(|problem| problem["code"].to_string())
            .collect()
    };
    let server = library().await;
    let ask = |text: &str| json!({ "path": "prompts/duty/new.md", "text": text }).to_string();
    let bound = |uri: &str| {
        ask(&format!(
            "---\ndescription: D\nresources: [{{ name: a, uri: \"{uri}\", as: text }}]\n---\nIt is:\n\n<!-- resource: a -->\n"
        ))
    };
    let preview =
        async |who: &'static str, body: String| server.post(who, "/api/v1/preview", &body).await;
    let hidden = preview("duty", bound("merger://book")).await;
    assert_eq!(hidden.status, 200, "{}", hidden.text());
    assert!(!hidden.text().contains("terms"), "{}", hidden.text());
    let absent = preview("duty", bound("qqqqqq://book")).await;
    assert_eq!(codes(&hidden), codes(&absent));
    let seen = preview("duty", bound("pager://book")).await;
    assert!(seen.text().contains("The numbers."), "{}", seen.text());
    let include = |name: &str| {
        ask(&format!(
            "---\ndescription: D\n---\n{{% include \"{name}.md\" %}}\n"
        ))
    };
    let hidden = preview("duty", include("merger")).await;
    assert!(!hidden.text().contains("Terms."), "{}", hidden.text());
    let absent = preview("duty", include("qqqqqq")).await;
    assert_eq!(codes(&hidden), codes(&absent));
    let seen = preview("root", include("merger")).await;
    assert!(seen.text().contains("Terms."), "{}", seen.text());
}

#[tokio::test(flavor = "multi_thread")]
async fn readiness_says_what_is_wrong_to_who_sees_everything() {
    let server = library().await;
    let nobody = send(server.address, "GET", "/readyz", &[], b"").await;
    assert_eq!(nobody.json(), json!({ "status": "ready" }));
    let part = server.get("duty", "/readyz").await;
    assert_eq!(part.json(), json!({ "status": "ready" }));
    let all = server.get("all", "/readyz").await.json();
    assert_eq!(all["served"].as_str().unwrap().len(), 40, "{all}");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_bridge_acts_for_whose_token_it_has() {
    let server = library().await;
    let home = tempfile::tempdir().unwrap();
    let url = format!("http://{}/mcp", server.address);
    for (token, expected) in [
        (Some(server.token("duty")), Some(vec!["pager-triage"])),
        (
            Some(server.token("all")),
            Some(vec!["pager-triage", "merger-plan"]),
        ),
        (None, None),
        (Some("cbk_abcdefgh_wrong"), None),
    ] {
        let mut command = Command::new(env!("CARGO_BIN_EXE_cuebook"));
        command
            .args(["stdio", "--server", &url])
            .env_clear()
            .env("HOME", home.path())
            .env("XDG_CACHE_HOME", home.path().join(token.unwrap_or("none")))
            .kill_on_drop(true)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::null());
        if let Some(token) = token {
            command.env("CUEBOOK_TOKEN", token);
        }
        let mut bridge = command.spawn().unwrap();
        let mut input = bridge.stdin.take().unwrap();
        let mut lines = BufReader::new(bridge.stdout.take().unwrap()).lines();
        let meta = json!({
            "io.modelcontextprotocol/protocolVersion": MODERN,
            "io.modelcontextprotocol/clientInfo": { "name": "test", "version": "1.0" },
            "io.modelcontextprotocol/clientCapabilities": {}
        });
        let request = json!({ "jsonrpc": "2.0", "id": 1, "method": "prompts/list", "params": { "_meta": meta } });
        input
            .write_all(format!("{request}\n").as_bytes())
            .await
            .unwrap();
        let line = soon("an answer", lines.next_line()).await.unwrap().unwrap();
        let answer: Value = serde_json::from_str(&line).unwrap();
        let listed = answer["result"]["prompts"].as_array().map(|listed| {
            let names = listed.iter().map(|p| p["name"].as_str().unwrap());
            names.collect::<Vec<_>>()
        });
        assert_eq!(listed, expected, "{answer}");
        if expected.is_none() {
            assert!(answer["error"].is_object(), "{answer}");
        }
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn nobody_publishes_their_way_to_what_they_may_not_read() {
    let server = library().await;
    let change = async |who: &'static str, path: &'static str, text: &str| {
        let base = server.get("root", "/readyz").await.json()["tip"].clone();
        let body = json!({ "base": base, "message": "m", "files": { path: text } });
        server.post(who, "/api/v1/changes", &body.to_string()).await
    };
    let path = "prompts/duty/new.md";
    let include =
        |name: &str| format!("---\ndescription: D\n---\nSee:\n{{% include \"{name}.md\" %}}\n");
    let hidden = change("duty", path, &include("merger")).await;
    let absent = change("duty", path, &include("qqqqqq")).await;
    assert_eq!(hidden.status, 422, "{}", hidden.text());
    for (reply, name) in [(&hidden, "merger.md"), (&absent, "qqqqqq.md")] {
        let detail = reply.json()["detail"].as_str().unwrap().to_owned();
        assert!(
            detail.starts_with(path) && detail.contains(name),
            "{detail}"
        );
    }
    // what somebody else has let it include may stay
    assert_eq!(change("root", path, &include("merger")).await.status, 200);
    let more = include("merger").replace("See:", "See this:");
    let reply = change("duty", path, &more).await;
    assert_eq!(reply.status, 200, "{}", reply.text());
    // names of what is hidden are taken, and nothing more is said of them
    let reply = change("duty", "prompts/duty/merger-plan.md", &prompt("Mine.")).await;
    assert_eq!(reply.status, 422, "{}", reply.text());
    assert!(!reply.text().contains("prompts/plan"), "{}", reply.text());
}

#[tokio::test(flavor = "multi_thread")]
async fn nobody_proposes_their_way_to_what_they_may_not_read() {
    let server = library().await;
    let base = server.get("root", "/readyz").await.json()["tip"].clone();
    let path = "prompts/duty/new.md";
    for name in ["merger.md", "qqqqqq.md"] {
        let text = format!("---\ndescription: D\n---\nSee:\n{{% include \"{name}\" %}}\n");
        let body = json!({ "title": "T", "base": base, "files": { path: text } });
        let reply = server
            .post("duty", "/api/v1/proposals", &body.to_string())
            .await;
        assert_eq!(reply.status, 422, "{name}: {}", reply.text());
        let detail = reply.json()["detail"].as_str().unwrap().to_owned();
        assert!(
            detail.starts_with(path) && detail.contains(name),
            "{detail}"
        );
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn the_effect_of_a_proposal_shows_no_partial_that_is_not_read() {
    let server = library().await;
    let base = server.get("root", "/readyz").await.json()["tip"].clone();
    let text = "---\ndescription: D\n---\nSee:\n{% include \"merger.md\" %}\n";
    let files = json!({ "prompts/duty/new.md": text });
    let body = json!({ "title": "T", "base": base, "files": files });
    let opened = server
        .post("root", "/api/v1/proposals", &body.to_string())
        .await;
    assert_eq!(opened.status, 201, "{}", opened.text());
    let effect = "/api/v1/proposals/1/effect";
    let whole = server.get("root", effect).await;
    assert!(whole.text().contains("Terms."), "{}", whole.text());
    let part = server.get("duty", effect).await;
    assert_eq!(part.status, 200, "{}", part.text());
    assert!(!part.text().contains("Terms."), "{}", part.text());
    assert_eq!(part.json()["prompts"], json!([]));
    assert_eq!(part.json()["files"][0]["path"], "prompts/duty/new.md");
}

#[tokio::test(flavor = "multi_thread")]
async fn pages_say_nothing_of_versions_that_were_out_of_sight() {
    let server = library().await;
    let before = "prompts/plan/handover.md";
    server.publish(&[(before, &prompt("The plot."))]).await;
    let base = server.get("root", "/readyz").await.json()["tip"].clone();
    let files = json!({ before: null, "prompts/duty/handover.md": prompt("Hand over.") });
    let body = json!({ "base": base, "message": "m", "files": files });
    let moved = server
        .post("root", "/api/v1/changes", &body.to_string())
        .await;
    assert_eq!(moved.status, 200, "{}", moved.text());
    for version in ["v1", "v2"] {
        let labels = format!("[then]\nhandover = \"{version}\"\n");
        server.publish(&[("labels.toml", &labels)]).await;
    }
    for (who, sees) in [("duty", false), ("all", true)] {
        // where a label stood tells of a version that was out of sight
        let listed = server.get(who, "/api/v1/prompts/handover/versions").await;
        let moves = listed.json()["moves"].as_array().unwrap().len();
        assert_eq!(moves, if sees { 2 } else { 0 }, "{who}: {}", listed.text());
        let versions = server.get(who, "/prompts/handover/versions").await;
        assert_eq!(versions.status, 200, "{who}");
        let shown = versions.text();
        assert_eq!(shown.contains("prompts/plan/"), sees, "{who}: {shown}");
        for path in [
            "/prompts/handover?at=v1",
            "/prompts/handover/diff?from=v1&to=v2",
        ] {
            let page = server.get(who, path).await;
            let status = if sees { 200 } else { 404 };
            assert_eq!(page.status, status, "{who} {path}");
        }
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn problems_of_the_tip_name_no_file_to_who_may_not_read_it() {
    let server = library().await;
    let work = server.work("root", "work");
    let path = "prompts/plan/merger-plan.md";
    work.change(&[(path, &prompt("The {{ merger }"))]);
    // past the gate, as who is at the machine can
    let from = work.path.to_str().unwrap();
    let ran = git(&server.bare(), &["fetch", "--quiet", from, "HEAD:main"]);
    assert!(ran.ok, "{}", ran.text);
    soon("the problem to be found", async {
        while server.get("root", "/readyz").await.json()["problem_count"] == 0 {
            tokio::time::sleep(std::time::Duration::from_millis(20)).await;
        }
    })
    .await;
    for (who, sees) in [("all", true), ("duty", false)] {
        let bearer = server.bearer(who);
        let headers = [("Authorization", &*bearer), ("Accept", "text/html")];
        for page in ["/", "/activity"] {
            let reply = send(server.address, "GET", page, &headers, b"").await;
            assert_eq!(reply.status, 200, "{who} {page}");
            let shown = reply.text();
            assert_eq!(shown.contains(path), sees, "{who} {page}: {shown}");
            assert!(sees || !shown.contains("merger"), "{who} {page}: {shown}");
        }
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn problems_of_a_proposal_name_no_file_to_who_may_not_read_it() {
    let server = library().await;
    let base = server.get("root", "/readyz").await.json()["tip"].clone();
    let (mine, theirs) = ("prompts/duty/handover.md", "prompts/plan/handover.md");
    let body = json!({ "title": "T", "base": base, "files": { mine: prompt("Hand over.") } });
    let opened = server
        .post("duty", "/api/v1/proposals", &body.to_string())
        .await;
    assert_eq!(opened.status, 201, "{}", opened.text());
    // meanwhile the name is taken where they do not see it
    server.publish(&[(theirs, &prompt("The plot."))]).await;
    for (who, paths) in [("all", vec![mine, theirs]), ("duty", vec![mine])] {
        let reply = server.get(who, "/api/v1/proposals/1").await;
        assert_eq!(reply.status, 200, "{who}: {}", reply.text());
        let seen = reply.json();
        let problems = seen["problems"].as_array().unwrap().iter();
        let taken = problems.filter(|problem| problem["code"] == "duplicate-name");
        let found: Vec<&str> = taken.map(|p| p["path"].as_str().unwrap()).collect();
        assert_eq!(found, paths, "{who}: {seen}");
        assert_eq!(seen["mergeable"], false, "{who}: {seen}");
        let page = server.get(who, "/proposals/1").await;
        for shown in [reply.text(), page.text()] {
            let told = shown.contains("prompts/plan/");
            assert_eq!(told, who == "all", "{who}: {shown}");
        }
    }
}
