//! Every MCP method and every tool: what each shows, which `walk.rs` asks as every role, and what is said of the hidden.

use std::collections::BTreeSet;

use cuebook::access::{Action, Permissions};
use regex::Regex;
use serde_json::{Value, json};

use super::walk::{ABSENT, SIDES, Side};
use super::{Guarded, Person};
use crate::support::http::{Reply, send};
use crate::support::mcp::MODERN;

/// A legacy revision, spoken without a session.
const LEGACY: &str = "2025-11-25";

/// Two folders that are alike: every name and every text of `plan` holds the word `merger`, of `duty` the word `pager`.
const FILES: &[(&str, &str)] = &[
    (
        "cuebook.toml",
        "[[resource]]\ntemplate = \"pager://{name}\"\n[[resource]]\ntemplate = \"merger://{name}\"\n",
    ),
    (
        "prompts/duty/pager-triage.md",
        "---\ndescription: The pager rings\narguments: [{ name: of, values: { resource: \"pager://{of}\" } }]\n---\nThe pager of {{ of }}.\n",
    ),
    (
        "prompts/plan/merger-plan.md",
        "---\ndescription: The merger comes\narguments: [{ name: of, values: { resource: \"merger://{of}\" } }]\n---\nThe merger of {{ of }}.\n",
    ),
    ("resources/pager/pager-book.md", "# Numbers of the pager\n"),
    ("resources/merger/merger-book.md", "# Terms of the merger\n"),
];

/// What a method shows.
enum Shows {
    /// Nothing of the library.
    Nothing,
    /// What is seen of both folders.
    All(fn() -> Value),
    /// One thing: its parameters by the name of a prompt, a URI and a template of it.
    One(fn(&str, &str, &str) -> Value),
    /// Tried elsewhere, since it opens a stream.
    Elsewhere,
}

/// Every method of every era, and what it shows.
fn methods() -> Vec<(&'static str, Shows)> {
    vec![
        (
            "initialize",
            Shows::All(
                || json!({ "protocolVersion": LEGACY, "capabilities": {}, "clientInfo": { "name": "t", "version": "1" } }),
            ),
        ),
        ("ping", Shows::Nothing),
        ("logging/setLevel", Shows::Nothing),
        ("server/discover", Shows::Nothing),
        ("prompts/list", Shows::All(|| json!({}))),
        (
            "prompts/get",
            Shows::One(|prompt, _, _| json!({ "name": prompt, "arguments": { "of": "x" } })),
        ),
        (
            "completion/complete",
            Shows::One(
                |prompt, _, _| json!({ "ref": { "type": "ref/prompt", "name": prompt }, "argument": { "name": "of", "value": "" } }),
            ),
        ),
        (
            "completion/complete",
            Shows::One(
                |_, _, template| json!({ "ref": { "type": "ref/resource", "uri": template }, "argument": { "name": "name", "value": "" } }),
            ),
        ),
        ("resources/list", Shows::All(|| json!({}))),
        ("resources/templates/list", Shows::All(|| json!({}))),
        (
            "resources/read",
            Shows::One(|_, uri, _| json!({ "uri": uri })),
        ),
        (
            "resources/subscribe",
            Shows::One(|_, uri, _| json!({ "uri": uri })),
        ),
        ("resources/unsubscribe", Shows::Nothing),
        ("subscriptions/listen", Shows::Elsewhere),
        ("tools/list", Shows::Nothing),
        (
            "tools/call",
            Shows::All(|| json!({ "name": "list_prompts", "arguments": {} })),
        ),
        (
            "tools/call",
            Shows::All(|| json!({ "name": "search_prompts", "arguments": { "query": "" } })),
        ),
        (
            "tools/call",
            Shows::One(
                |prompt, _, _| json!({ "name": "search_prompts", "arguments": { "query": prompt } }),
            ),
        ),
        (
            "tools/call",
            Shows::One(
                |prompt, _, _| json!({ "name": "get_prompt", "arguments": { "name": prompt, "arguments": { "of": "x" } } }),
            ),
        ),
    ]
}

/// Methods of which the one era alone knows.
const LEGACY_ALONE: [&str; 5] = [
    "initialize",
    "ping",
    "logging/setLevel",
    "resources/subscribe",
    "resources/unsubscribe",
];
const MODERN_ALONE: [&str; 2] = ["server/discover", "subscriptions/listen"];

impl Guarded {
    /// Asks as an actor.
    pub(crate) async fn ask(
        &self,
        who: &str,
        path: &str,
        revision: &str,
        method: &str,
        mut params: Value,
    ) -> Reply {
        let bearer = self.bearer(who);
        let name = params["name"].as_str().or(params["uri"].as_str());
        let name = name.unwrap_or_default().to_owned();
        let mut headers = vec![
            ("Authorization", &*bearer),
            ("Content-Type", "application/json"),
            ("Accept", "application/json, text/event-stream"),
            ("MCP-Protocol-Version", revision),
        ];
        if revision == MODERN {
            params["_meta"] = json!({
                "io.modelcontextprotocol/protocolVersion": MODERN,
                "io.modelcontextprotocol/clientInfo": { "name": "test", "version": "1.0" },
                "io.modelcontextprotocol/clientCapabilities": {}
            });
            headers.push(("Mcp-Method", method));
            if matches!(method, "prompts/get" | "resources/read" | "tools/call") {
                headers.push(("Mcp-Name", &*name));
            }
        }
        let body = json!({ "jsonrpc": "2.0", "id": 1, "method": method, "params": params });
        send(
            self.address,
            "POST",
            path,
            &headers,
            body.to_string().as_bytes(),
        )
        .await
    }
}

/// What comes back without what was asked for, which an error repeats.
fn without(reply: &Reply, side: Side) -> (u16, String) {
    let text = reply.text();
    (
        reply.status,
        text.replace(side.prompt, "…")
            .replace(&side.uri(), "…")
            .replace(&side.template(), "…"),
    )
}

#[test]
fn every_method_and_every_tool_has_a_row() {
    let table = include_str!("../../../src/mcp/methods/mod.rs");
    let row = Regex::new(r#"\((?:Legacy|Modern|_), "([^"]+)"\) =>"#).unwrap();
    let known: BTreeSet<&str> = row
        .captures_iter(table)
        .map(|found| found.get(1).unwrap().as_str())
        .collect();
    let rows: BTreeSet<&str> = methods().iter().map(|(method, _)| *method).collect();
    assert_eq!(rows, known);
    let tools = include_str!("../../../src/mcp/methods/tools.rs");
    let row = Regex::new(r#"(?m)^const [A-Z]+: &str = "([a-z_]+)";"#).unwrap();
    let known: BTreeSet<&str> = row
        .captures_iter(tools)
        .map(|found| found.get(1).unwrap().as_str())
        .collect();
    let mut rows = BTreeSet::new();
    for (method, shows) in methods() {
        let params = match shows {
            Shows::All(params) => params(),
            Shows::One(params) => params("", "", ""),
            Shows::Nothing | Shows::Elsewhere => continue,
        };
        if method == "tools/call" {
            rows.insert(params["name"].as_str().unwrap().to_owned());
        }
    }
    assert_eq!(
        rows.iter().map(|name| &**name).collect::<BTreeSet<_>>(),
        known
    );
}

/// Asks every method in both eras for what is in both folders of the walk, and compares with what somebody may.
pub(super) async fn walk(server: &Guarded, who: &str, may: &Permissions) {
    for revision in [LEGACY, MODERN] {
        let other = if revision == MODERN {
            &LEGACY_ALONE[..]
        } else {
            &MODERN_ALONE[..]
        };
        for (method, shows) in methods() {
            if other.contains(&method) {
                continue;
            }
            let ask = |params| server.ask(who, "/mcp", revision, method, params);
            match shows {
                Shows::Elsewhere => {}
                Shows::Nothing => {
                    let params = match method {
                        "logging/setLevel" => json!({ "level": "info" }),
                        "resources/unsubscribe" => json!({ "uri": "pager://x" }),
                        _ => json!({}),
                    };
                    let reply = ask(params).await;
                    assert_eq!(reply.status, 200, "{who} {method}: {}", reply.text());
                    for side in SIDES {
                        assert!(!reply.text().contains(side.word), "{who} {method}");
                    }
                }
                Shows::All(params) => {
                    let reply = ask(params()).await;
                    // who sees nothing gets a list without entries
                    assert_eq!(reply.status, 200, "{who} {method}: {}", reply.text());
                    for side in SIDES {
                        let sees = may.may(Action::Read, &side.path()) && method != "initialize";
                        assert_eq!(
                            reply.text().contains(side.word),
                            sees,
                            "{who} {revision} {method}: {}",
                            reply.text()
                        );
                    }
                    if revision == MODERN && method.ends_with("/list") {
                        assert_eq!(reply.json()["result"]["cacheScope"], "private");
                    }
                }
                Shows::One(params) => {
                    let of = |side: Side| params(side.prompt, &side.uri(), &side.template());
                    let nothing = without(&ask(of(ABSENT)).await, ABSENT);
                    for side in SIDES {
                        let reply = ask(of(side)).await;
                        let (status, rest) = without(&reply, side);
                        if may.may(Action::Read, &side.path()) {
                            assert_eq!(status, 200, "{who} {method}: {}", reply.text());
                            let shown = rest.contains(side.word) || method == "resources/subscribe";
                            assert!(shown, "{who} {method}: {}", reply.text());
                        } else {
                            assert_eq!((status, rest), nothing, "{who} {revision} {method}");
                        }
                    }
                }
            }
        }
        // a folder of which nothing is seen is no folder
        for side in SIDES.into_iter().chain([ABSENT]) {
            let path = format!("/mcp/{}", side.word);
            let reply = server
                .ask(who, &path, revision, "prompts/list", json!({}))
                .await;
            let sees = side.word != ABSENT.word && may.may(Action::Read, &side.path());
            let status = if sees { 200 } else { 404 };
            assert_eq!(reply.status, status, "{who} {path}: {}", reply.text());
            assert_eq!(reply.text().contains(side.prompt), sees, "{who} {path}");
        }
    }
}

/// What a request for each of two names comes to: nothing tells them apart.
async fn alike(server: &Guarded, who: &str, path: &str, asks: &[(&str, Value, Value)]) {
    for revision in [LEGACY, MODERN] {
        for (method, hidden, absent) in asks {
            let text = |reply: Reply, params: &Value| {
                let name = params["name"].as_str().or(params["uri"].as_str());
                let name = name.unwrap_or("\0").split('@').next().unwrap().to_owned();
                (reply.status, reply.text().replace(&name, "…"))
            };
            let one = server
                .ask(who, path, revision, method, hidden.clone())
                .await;
            let other = server
                .ask(who, path, revision, method, absent.clone())
                .await;
            assert_eq!(text(one, hidden), text(other, absent), "{method} {hidden}");
        }
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn nothing_that_is_asked_for_tells_the_hidden_from_the_absent() {
    let people: [Person<'_>; 1] = [(
        "duty",
        &[
            ("reader", "prompts/duty/**"),
            ("reader", "resources/pager/**"),
        ],
    )];
    let mut files = FILES.to_vec();
    files.extend([
        // near a hidden name, and above nothing that is seen
        ("prompts/duty/deep/other.md", "---\ndescription: D\n---\nOther.\n"),
        (
            "prompts/duty/needs.md",
            "---\ndescription: D\narguments: [{ name: uri }]\nresources: [{ name: a, uri: \"{{ uri }}\", required: true }]\n---\nIt: \n<!-- resource: a -->\n",
        ),
        (
            "prompts/duty/may.md",
            "---\ndescription: D\nresources: [{ name: a, uri: \"merger://merger-book\", required: false }]\n---\n{% if resources.a.found %}Found.{% else %}Not there.{% endif %}\n",
        ),
    ]);
    let server = Guarded::start(&files, &people).await;
    let commit = server.get("root", "/readyz").await.json()["served"]
        .as_str()
        .unwrap()
        .to_owned();
    let named = |name: String| json!({ "name": name, "arguments": {} });
    let mut asks = Vec::new();
    for at in [
        "",
        "@v1",
        "@v9",
        "@latest",
        "@production",
        "@0000000",
        &format!("@{commit}"),
    ] {
        asks.push((
            "prompts/get",
            named(format!("merger-plan{at}")),
            named(format!("wwwwww-wwww{at}")),
        ));
    }
    let needs = |uri: &str| json!({ "name": "needs", "arguments": { "uri": uri } });
    let get_tool = |name: &str| json!({ "name": "get_prompt", "arguments": { "name": name } });
    let listed =
        |folder: &str| json!({ "name": "list_prompts", "arguments": { "folder": folder } });
    asks.push(("tools/call", listed("plan"), listed("none")));
    alike(&server, "duty", "/mcp", &asks).await;
    // an error names what was asked for, and nothing else
    for (method, params, said) in [
        (
            "prompts/get",
            needs("merger://merger-book"),
            "merger://merger-book",
        ),
        (
            "prompts/get",
            needs("merger://merger-bool"),
            "merger://merger-bool",
        ),
        ("prompts/get", named("merger-plam".into()), "merger-plam"),
        ("tools/call", get_tool("merger-plam"), "merger-plam"),
        (
            "resources/read",
            json!({ "uri": "merger://merger-bool" }),
            "merger://merger-bool",
        ),
    ] {
        let reply = server.ask("duty", "/mcp", MODERN, method, params).await;
        let text = reply.text().replace(said, "…");
        assert!(!text.contains("merger"), "{method}: {text}");
        assert!(text.contains('…'), "{method}: {text}");
    }
    // what it may not read is as if it were not there, also inside what it may
    let reply = server
        .ask("duty", "/mcp", MODERN, "prompts/get", named("may".into()))
        .await;
    assert!(reply.text().contains("Not there."), "{}", reply.text());
    let reply = server
        .ask("root", "/mcp", MODERN, "prompts/get", named("may".into()))
        .await;
    assert!(reply.text().contains("Found."), "{}", reply.text());
    // a folder with nothing that is seen is no folder
    for (who, folder, status) in [
        ("duty", "plan", 404),
        ("duty", "none", 404),
        ("duty", "duty", 200),
        ("duty", "duty/deep", 200),
        ("root", "plan", 200),
    ] {
        let path = format!("/mcp/{folder}");
        let reply = server
            .ask(who, &path, MODERN, "prompts/list", json!({}))
            .await;
        assert_eq!(reply.status, status, "{who} {folder}: {}", reply.text());
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn what_was_moved_out_of_sight_is_out_of_sight_with_all_its_versions() {
    let text = "---\ndescription: D\n---\nThe merger.\n";
    let people: [Person<'_>; 1] = [("duty", &[("reader", "prompts/duty/**")])];
    let server = Guarded::start(&[("prompts/duty/merged.md", text)], &people).await;
    let served = || async {
        let ready = server.get("root", "/readyz").await.json();
        ready["served"].as_str().unwrap().to_owned()
    };
    let before = served().await;
    let at = |name: String| {
        let server = &server;
        async move {
            let params = json!({ "name": name, "arguments": {} });
            server
                .ask("duty", "/mcp", MODERN, "prompts/get", params)
                .await
        }
    };
    assert_eq!(at(format!("merged@{before}")).await.status, 200);
    let body = json!({ "base": before, "message": "Hide it", "files": {
        "prompts/duty/merged.md": null, "prompts/plan/merged.md": text
    } });
    let reply = server
        .post("root", "/api/v1/changes", &body.to_string())
        .await;
    assert_eq!(reply.status, 200, "{}", reply.text());
    for name in ["merged", "merged@v1", &format!("merged@{before}")] {
        let reply = at(name.to_owned()).await;
        assert!(
            !reply.text().contains("The merger"),
            "{name}: {}",
            reply.text()
        );
    }
    // and back in sight: the version that was made out of sight stays there
    let body = json!({ "base": served().await, "message": "Change it", "files": {
        "prompts/plan/merged.md": text.replace("The merger", "The terms")
    } });
    let reply = server
        .post("root", "/api/v1/changes", &body.to_string())
        .await;
    assert_eq!(reply.status, 200, "{}", reply.text());
    let body = json!({ "base": served().await, "message": "Show it", "files": {
        "prompts/plan/merged.md": null, "prompts/duty/merged.md": text.replace("The merger", "The news")
    } });
    let reply = server
        .post("root", "/api/v1/changes", &body.to_string())
        .await;
    assert_eq!(reply.status, 200, "{}", reply.text());
    assert!(at("merged".into()).await.text().contains("The news"));
    let versions = server
        .get("root", "/api/v1/prompts/merged/versions")
        .await
        .json();
    for version in versions["versions"].as_array().unwrap() {
        let number = version["version"].as_u64().unwrap();
        let seen = version["path"]
            .as_str()
            .unwrap()
            .starts_with("prompts/duty/");
        let reply = at(format!("merged@v{number}")).await;
        assert_eq!(
            reply.text().contains("\"messages\""),
            seen,
            "{version}: {}",
            reply.text()
        );
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_page_of_one_is_no_page_of_another() {
    let people: [Person<'_>; 3] = [
        ("duty", &[("reader", "prompts/duty/**")]),
        ("plan", &[("reader", "prompts/plan/**")]),
        ("all", &[("reader", "**")]),
    ];
    let server = Guarded::start(FILES, &people).await;
    // twice: the second time they come from what was kept
    for _ in 0..2 {
        for (who, names) in [
            ("duty", &["pager-triage"][..]),
            ("plan", &["merger-plan"]),
            ("all", &["pager-triage", "merger-plan"]),
        ] {
            let reply = server
                .ask(who, "/mcp", MODERN, "prompts/list", json!({}))
                .await
                .json();
            let listed = reply["result"]["prompts"].as_array().unwrap();
            let listed: Vec<&str> = listed.iter().map(|p| p["name"].as_str().unwrap()).collect();
            assert_eq!(listed, names, "{who}");
        }
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_permission_that_is_missing_is_no_reason_to_ask_for_a_credential() {
    let people: [Person<'_>; 1] = [("none", &[])];
    let server = Guarded::start(FILES, &people).await;
    for revision in [LEGACY, MODERN] {
        let params = json!({ "name": "pager-triage", "arguments": {} });
        let reply = server
            .ask("none", "/mcp", revision, "prompts/get", params)
            .await;
        assert_ne!(reply.status, 401);
        assert_eq!(reply.json()["error"]["code"], -32602, "{}", reply.text());
    }
    let headers = [
        ("Authorization", "Bearer cbk_abcdefgh_none"),
        ("Content-Type", "application/json"),
    ];
    let body = br#"{"jsonrpc":"2.0","id":1,"method":"ping"}"#;
    let reply = send(server.address, "POST", "/mcp", &headers, body).await;
    assert_eq!(reply.status, 401);
}
