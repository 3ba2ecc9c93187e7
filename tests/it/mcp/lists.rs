//! Lists: pages, cursors, folders.

use serde_json::json;

use crate::support::http::send;
use crate::support::library::TestLibrary;
use crate::support::mcp::{Client, request};
use crate::support::server::{TestServer, settings};

fn prompt(name: &str, folder: &str) -> (String, String) {
    let folder = if folder.is_empty() {
        String::new()
    } else {
        format!("{folder}/")
    };
    (
        format!("prompts/{folder}{name}.md"),
        format!("---\ndescription: About {name}\n---\nText of {name}.\n"),
    )
}

fn publish(library: &TestLibrary, files: &[(String, String)]) {
    let files: Vec<(&str, &str)> = files
        .iter()
        .map(|(path, text)| (&**path, &**text))
        .collect();
    library.publish(&files);
}

#[tokio::test]
async fn an_entry_as_each_revision_has_it() {
    let server = TestServer::start(&TestLibrary::small()).await;
    let entry = async |revision| {
        let result = Client::named(&server, revision, "test")
            .await
            .call("prompts/list", json!({}))
            .await;
        let prompts = result["prompts"].as_array().unwrap().clone();
        assert!(result.get("nextCursor").is_none());
        prompts
            .into_iter()
            .find(|prompt| prompt["name"] == "incident-triage")
            .unwrap()
    };
    let mut expected = json!({
        "name": "incident-triage",
        "title": "장애 초동 조치",
        "description": "First response to an incident ticket",
        "arguments": [
            { "name": "ticketId", "description": "Ticket, e.g. INC-9942", "required": true },
            { "name": "service", "description": "Service the alert fired for", "required": false },
            { "name": "severity", "description": "CRITICAL, HIGH, MEDIUM or LOW", "required": false }
        ]
    });
    for revision in ["2025-06-18", "2025-11-25", "2026-07-28"] {
        assert_eq!(entry(revision).await, expected, "{revision}");
    }
    expected.as_object_mut().unwrap().remove("title");
    for revision in ["2024-11-05", "2025-03-26"] {
        assert_eq!(entry(revision).await, expected, "{revision}");
    }
}

#[tokio::test]
async fn p7_a_thousand_prompts_come_in_pages_that_a_publish_does_not_disturb() {
    let library = TestLibrary::empty();
    let mut files = Vec::new();
    for n in 0..1000 {
        // Folders whose order by parts is not their order as text.
        let folder = ["", "a", "a-b", "a/c", "b"][n % 5];
        files.push(prompt(&format!("p{n:04}"), folder));
    }
    publish(&library, &files);
    let server = TestServer::start(&library).await;
    for revision in ["2025-06-18", "2026-07-28"] {
        let client = Client::named(&server, revision, "test").await;
        let first = client.call("prompts/list", json!({})).await;
        assert_eq!(first["prompts"].as_array().unwrap().len(), 500);
        let mut names = client.names().await;
        assert_eq!(names.len(), 1000);
        names.sort();
        names.dedup();
        assert_eq!(names.len(), 1000);
    }

    // What stays is neither repeated nor skipped when something is published between two pages.
    let client = Client::modern(&server);
    let first = client.call("prompts/list", json!({})).await;
    let cursor = first["nextCursor"].clone();
    let page = |result: &serde_json::Value| -> Vec<String> {
        result["prompts"]
            .as_array()
            .unwrap()
            .iter()
            .map(|p| p["name"].as_str().unwrap().to_owned())
            .collect()
    };
    let mut seen = page(&first);
    library.remove("prompts/p0000.md");
    let last_of_page = seen.last().unwrap().clone();
    let path = files
        .iter()
        .find(|(path, _)| path.ends_with(&format!("/{last_of_page}.md")))
        .unwrap()
        .0
        .clone();
    library.remove(&path);
    publish(&library, &[prompt("aaa", ""), prompt("zzz", "b")]);
    server.refresh().await;
    let mut next = Some(cursor);
    while let Some(cursor) = next {
        let result = client
            .call("prompts/list", json!({ "cursor": cursor }))
            .await;
        seen.extend(page(&result));
        next = result.get("nextCursor").cloned();
    }
    assert_eq!(
        seen.len(),
        1001,
        "500 of the old, 500 of the rest, and the new one at the end"
    );
    let mut unique = seen.clone();
    unique.sort();
    unique.dedup();
    assert_eq!(unique.len(), seen.len());
    assert!(seen.contains(&"zzz".to_owned()) && !seen.contains(&"aaa".to_owned()));
}

#[tokio::test]
async fn cursors_that_are_none() {
    let library = TestLibrary::small();
    let server = TestServer::with(
        &library,
        cuebook::mcp::Settings {
            page_size: 2,
            ..settings()
        },
        None,
    )
    .await;
    for revision in ["2025-11-25", "2026-07-28"] {
        let client = Client::named(&server, revision, "test").await;
        assert_eq!(client.names().await.len(), 7);
        let first = client.call("prompts/list", json!({ "cursor": "" })).await;
        assert_eq!(first["prompts"].as_array().unwrap().len(), 2);
        let of_prompts = first["nextCursor"].clone();
        let of_resources = client
            .call("resources/list", json!({ "cursor": null }))
            .await["nextCursor"]
            .clone();
        for (method, cursor) in [
            ("prompts/list", json!("x")),
            ("prompts/list", json!("한글")),
            ("prompts/list", json!("a".repeat(20_000))),
            ("prompts/list", json!(5)),
            ("prompts/list", of_resources),
            ("resources/list", of_prompts.clone()),
            ("resources/templates/list", of_prompts),
        ] {
            assert_eq!(
                client.fail(method, json!({ "cursor": cursor })).await.1,
                -32602,
                "{method} {cursor}"
            );
        }
    }
}

#[tokio::test]
async fn a_folder_is_a_library_of_its_own() {
    let server = TestServer::start(&TestLibrary::small()).await;
    for revision in ["2025-06-18", "2026-07-28"] {
        let whole = Client::named(&server, revision, "test").await;
        let sre = whole.at("/mcp/sre");
        assert_eq!(
            sre.names().await,
            ["incident-triage", "strict", "postmortem"]
        );
        assert_eq!(whole.at("/mcp/sre/after").names().await, ["postmortem"]);
        assert_eq!(whole.at("/mcp/sre/").names().await.len(), 3);
        assert_eq!(whole.names().await.len(), 7);
        assert!(sre.texts("postmortem", json!({})).await[0].contains("postmortem"));
        let (_, code, message) = sre
            .fail("prompts/get", json!({ "name": "code-review" }))
            .await;
        assert_eq!(
            (code, message.contains("did you mean")),
            (-32602, false),
            "{message}"
        );
        let complete = json!({ "ref": { "type": "ref/prompt", "name": "code-review" }, "argument": { "name": "language", "value": "" } });
        assert_eq!(
            sre.call("completion/complete", complete.clone()).await["completion"]["total"],
            0
        );
        assert_eq!(
            whole.call("completion/complete", complete).await["completion"]["total"],
            3
        );
        let found = sre
            .call(
                "tools/call",
                json!({ "name": "search_prompts", "arguments": { "query": "review" } }),
            )
            .await;
        assert!(!found.to_string().contains("code-review"), "{found}");
        let listed = sre
            .call("tools/call", json!({ "name": "list_prompts" }))
            .await;
        assert!(!listed.to_string().contains("code-review"), "{listed}");
        // Resources belong to the whole library.
        assert_eq!(
            sre.call("resources/list", json!({})).await["resources"]
                .as_array()
                .unwrap()
                .len(),
            4
        );
    }
    let client = Client::modern(&server);
    assert_eq!(client.at("/mcp//").names().await.len(), 7);
    for path in [
        "/mcp/none",
        "/mcp/sr",
        "/mcp/sre/aft",
        "/mcp/..%2fsre",
        "/mcp/sre%2f..",
        "/mcp/%00",
    ] {
        let reply = send(
            server.address,
            "POST",
            path,
            &[],
            request("ping", &json!({})).as_bytes(),
        )
        .await;
        assert_eq!(
            (reply.status, reply.json()["error"].is_string()),
            (404, true),
            "{path}"
        );
    }
}

#[tokio::test]
async fn what_is_not_there_is_an_empty_list() {
    let library = TestLibrary::with(&[("prompts/one.md", "---\ndescription: One\n---\nOne.\n")]);
    let settings = cuebook::mcp::Settings {
        tools: false,
        ..settings()
    };
    let server = TestServer::with(&library, settings, None).await;
    for revision in ["2024-11-05", "2026-07-28"] {
        let client = Client::named(&server, revision, "test").await;
        for (method, field) in [
            ("resources/list", "resources"),
            ("resources/templates/list", "resourceTemplates"),
            ("tools/list", "tools"),
        ] {
            assert_eq!(
                client.call(method, json!({})).await[field],
                json!([]),
                "{method}"
            );
        }
        assert_eq!(
            client
                .fail("tools/call", json!({ "name": "list_prompts" }))
                .await
                .1,
            -32602
        );
    }
    let discovered = Client::modern(&server)
        .call("server/discover", json!({}))
        .await;
    assert!(discovered["capabilities"].get("tools").is_none());
}
