//! The page that says which version each line of a prompt is from, and the same as JSON.

use std::time::{Duration, Instant};

use serde_json::json;

use super::{open, open_in};
use crate::support::http::send;
use crate::support::library::{TestLibrary, git};
use crate::support::server::TestServer;

const PATH: &str = "prompts/sre/triage.md";

/// Commits everything in the clone as somebody, and pushes it.
fn publish_as(library: &TestLibrary, author: &str, message: &str, text: &str) {
    library.write_bytes(PATH, text.as_bytes());
    git(&library.clone(), &["add", "--all"]);
    let author = format!("--author={author} <a@example.com>");
    git(
        &library.clone(),
        &["commit", "--quiet", &author, "--message", message],
    );
    library.push();
}

#[tokio::test]
async fn each_line_has_its_version_with_who_and_why() {
    let library = TestLibrary::with(&[(PATH, "Look.\nThen tell.\n")]);
    publish_as(&library, "Mina", "Ask first", "Ask.\nLook.\nThen tell.\n");
    let server = TestServer::start(&library).await;
    let page = open(&server, "/prompts/triage/blame").await;
    let html = page.text();
    assert_eq!(page.status, 200, "{html}");
    assert!(html.contains("<bdi>Ask first</bdi>") && html.contains("<bdi>Mina</bdi>"));
    assert!(
        html.contains("<ol class=\"lines\" start=\"1\"><li><code>Ask.</code></li></ol>"),
        "{html}"
    );
    // what is from one version stands together
    let together = "<ol class=\"lines\" start=\"2\"><li><code>Look.</code></li><li><code>Then tell.</code></li></ol>";
    assert!(html.contains(together), "{html}");
    let versions = open(&server, "/prompts/triage/versions").await;
    assert!(
        versions
            .text()
            .contains("href=\"/prompts/triage/blame?at=v1\"")
    );
    let old = open_in(&server, "/prompts/triage/blame?at=v1", "ko").await;
    assert!(old.text().contains("줄별 이력") && !old.text().contains("Ask."));
    for (path, status) in [
        ("/prompts/triage/blame?at=v9", 404),
        ("/prompts/nothing/blame", 404),
    ] {
        assert_eq!(open(&server, path).await.status, status, "{path}");
    }

    let get = async |path: &str| send(server.address, "GET", path, &[], b"").await;
    let told = get("/api/v1/prompts/triage/blame").await.json();
    assert_eq!(
        (&told["name"], &told["version"]),
        (&json!("triage"), &json!(2))
    );
    assert_eq!(
        told["lines"],
        json!([
            { "text": "Ask.", "version": 2 },
            { "text": "Look.", "version": 1 },
            { "text": "Then tell.", "version": 1 },
        ])
    );
    assert_eq!(told["versions"][0]["author"], "Mina");
    assert_eq!(told["versions"][0]["subject"], "Ask first");
    assert_eq!(told["versions"][1]["path"], PATH);
    let old = get("/api/v1/prompts/triage/blame?at=v1").await.json();
    assert_eq!(old["lines"].as_array().unwrap().len(), 2);
    for (path, status) in [
        ("/api/v1/prompts/triage/blame?at=v9", 404),
        ("/api/v1/prompts/triage/blame?at=nowhere", 422),
        ("/api/v1/prompts/triage/blame?from=v1", 400),
        ("/api/v1/prompts/nothing/blame", 404),
    ] {
        assert_eq!(get(path).await.status, status, "{path}");
    }
}

#[tokio::test]
async fn what_a_prompt_was_that_is_gone_is_still_told() {
    let text = "---\nexamples: [{ name: plain }]\n---\nLook.\n";
    let library = TestLibrary::with(&[(PATH, text), ("prompts/other.md", "Other.\n")]);
    let twice = text.replace("Look.", "Look twice.");
    publish_as(&library, "Mina", "Look twice", &twice);
    library.remove(PATH);
    library.commit("Gone");
    library.push();
    let server = TestServer::start(&library).await;
    let get = async |path: &str| send(server.address, "GET", path, &[], b"").await;
    let told = get("/api/v1/prompts/triage/blame").await;
    assert_eq!(told.status, 200, "{}", told.text());
    let lines = told.json()["lines"].clone();
    assert_eq!(lines[2], json!({ "text": "---", "version": 1 }));
    assert_eq!(lines[3], json!({ "text": "Look twice.", "version": 2 }));
    let told = get("/api/v1/prompts/triage/diff?from=v1&to=v2").await;
    assert_eq!(told.status, 200, "{}", told.text());
    let told = told.json();
    for diff in [&told["source"], &told["rendered"][0]["diff"]] {
        let diff = diff.as_str().unwrap();
        assert!(diff.contains("-Look.\n+Look twice.\n"), "{told}");
    }
}

/// Who looks through a large text takes no place from who asks for something else.
#[tokio::test]
async fn one_text_is_looked_through_at_a_time() {
    let library = TestLibrary::with(&[(PATH, "Look.\n")]);
    let server = TestServer::start(&library).await;
    let get = async |path: &str| send(server.address, "GET", path, &[], b"").await;
    let place = server.registry.blaming().await.unwrap();
    let (api, page, versions) = tokio::join!(
        get("/api/v1/prompts/triage/blame"),
        open(&server, "/prompts/triage/blame"),
        get("/api/v1/prompts/triage/versions")
    );
    assert_eq!((api.status, page.status), (503, 503), "{}", api.text());
    assert_eq!(versions.status, 200, "{}", versions.text());
    drop(place);
    for path in ["/api/v1/prompts/triage/blame", "/prompts/triage/blame"] {
        assert_eq!(get(path).await.status, 200, "{path}");
    }
}

#[tokio::test]
async fn names_subjects_and_lines_are_text() {
    let library = TestLibrary::empty();
    publish_as(
        &library,
        "\u{202e}x\" onmouseover=\"alert(1)",
        "<script>alert(2)</script>",
        "</code><img src=x onerror=alert(3)>\u{200b}\n",
    );
    let server = TestServer::start(&library).await;
    let page = open(&server, "/prompts/triage/blame").await;
    let html = page.text();
    assert_eq!(page.status, 200, "{html}");
    for hostile in [
        "<script>alert",
        "<img src=x",
        "x\" onmouseover",
        "\u{202e}",
        "\u{200b}",
    ] {
        assert!(!html.contains(hostile), "{hostile}: {html}");
    }
    assert!(html.contains("&lt;script&gt;alert(2)&lt;/script&gt;"));
    assert!(html.contains("&lt;U+202E&gt;x&quot; onmouseover"));
    assert!(html.contains("&lt;/code&gt;&lt;img src=x onerror=alert(3)&gt;&lt;U+200B&gt;"));
}

/// A file as large as one may be, that is another in each of its versions: it costs what it may, and no more.
#[tokio::test]
async fn a_large_file_with_a_long_history_is_told_in_bounded_time() {
    let text = |version: usize| {
        let lines = (0..6000).map(|line| format!("{:x}\n", line * (version + 1) % 7919));
        lines.collect::<String>()
    };
    let library = TestLibrary::empty();
    for version in 0..30 {
        publish_as(
            &library,
            "Mina",
            &format!("Version {version}"),
            &text(version),
        );
    }
    let server = TestServer::start(&library).await;
    let began = Instant::now();
    let page = open(&server, "/prompts/triage/blame").await;
    assert_eq!(page.status, 200);
    assert!(began.elapsed() < Duration::from_secs(10));
    // a page has no more lines than a person reads
    assert!(page.text().contains("3,000 more lines"));
    assert_eq!(page.text().matches("<li><code>").count(), 3000);
}
