//! What the pages show of a prompt besides its text: use, lane, proposals, the call to copy, and where the index is.

use serde_json::{Value, json};

use super::{BROWSER, open};
use crate::access::Guarded;
use crate::support::http::{Reply, send};
use crate::support::library::TestLibrary;
use crate::support::mcp::{Client, MODERN};
use crate::support::server::TestServer;
use crate::support::soon;

async fn seen(server: &Guarded, name: &str, path: &str) -> Reply {
    let bearer = server.bearer(name);
    let headers = [("Authorization", &*bearer), ("Accept", BROWSER)];
    send(server.address, "GET", path, &headers, b"").await
}

/// Opens a page until it says something: rows are written behind what is served.
async fn until(server: &Guarded, path: &str, words: &str) -> String {
    soon(words, async {
        loop {
            let page = seen(server, "ann", path).await;
            assert_eq!(page.status, 200, "{}", page.text());
            if page.text().contains(words) {
                return page.text().to_owned();
            }
        }
    })
    .await
}

#[tokio::test(flavor = "multi_thread")]
async fn the_library_shows_use_lane_and_proposals() {
    let slow = "---\ndescription: D\n---\n{% filter upper %}look{% endfilter %}\n";
    let server = Guarded::start(
        &[
            ("prompts/sre/look.md", "Look.\n"),
            ("prompts/sre/slow.md", slow),
            ("prompts/sre/quiet.md", "Nobody asks.\n"),
        ],
        &[("ann", &[("author", "**")])],
    )
    .await;
    let params = json!({ "name": "look", "arguments": {} });
    let got = server
        .ask("ann", "/mcp", MODERN, "prompts/get", params)
        .await;
    assert_eq!(got.status, 200, "{}", got.text());
    let ready = server.get("root", "/readyz").await.json();
    let body = json!({
        "title": "Look twice",
        "message": "",
        "base": ready["tip"],
        "files": { "prompts/sre/quiet.md": "Nobody asks yet.\n" },
    });
    let opened = server
        .post("ann", "/api/v1/proposals", &body.to_string())
        .await;
    assert_eq!(opened.status, 201, "{}", opened.text());

    let library = until(&server, "/", "1 use, 30 days").await;
    let row = |name: &str| {
        let start = format!("href=\"/prompts/{name}\"");
        let (_, row) = library.split_once(&start).unwrap();
        row.split("</li>").next().unwrap()
    };
    assert!(row("look").contains("class=\"bars\"") && row("look").contains(" d=\"M"));
    let quiet = row("quiet");
    assert!(!quiet.contains("class=\"bars\"") && quiet.contains("no use, 30 days"));
    assert!(quiet.contains("1 open proposal"), "{quiet}");
    assert!(!row("look").contains("open proposal"));
    assert!(row("slow").contains("runs over a text"), "{}", row("slow"));
    // who uses it
    let page = until(&server, "/prompts/look", "<bdi>test</bdi>").await;
    assert!(page.contains("<strong>1</strong>"), "{page}");
    let proposed = seen(&server, "ann", "/prompts/quiet").await;
    assert!(proposed.text().contains("href=\"/proposals/1\""));
}

#[tokio::test(flavor = "multi_thread")]
async fn the_activity_says_where_the_index_is() {
    let files = [("prompts/sre/look.md", "Look.\n")];
    let server = Guarded::start(&files, &[("ann", &[("author", "**")])]).await;
    let tile = "<dt>Search index</dt><dd>up to date</dd>";
    until(&server, "/activity", tile).await;
    // where there is no database
    let server = TestServer::start(&TestLibrary::with(&files)).await;
    let page = open(&server, "/activity").await;
    let none = "<dt>Search index</dt><dd>none; each search looks at everything</dd>";
    assert!(page.text().contains(none), "{}", page.text());
}

#[tokio::test]
async fn the_call_that_is_copied_gives_what_the_page_shows() {
    let file = "---\ndescription: D\narguments: [{ name: who, required: true }]\nexamples:\n  - name: it's\n    arguments: { who: \"O'Neil & <Co> \\\"x\\\"\" }\n---\nHello {{ who }}.\n";
    let server = TestServer::start(&TestLibrary::with(&[("prompts/a/greet.md", file)])).await;
    let page = open(&server, "/prompts/greet").await;
    let part = |id: &str| {
        let start = format!("<pre id=\"{id}\" tabindex=\"0\">");
        let (_, text) = page.text().split_once(&start).unwrap();
        let text = text.split("</pre>").next().unwrap();
        [
            ("&lt;", "<"),
            ("&gt;", ">"),
            ("&quot;", "\""),
            ("&#39;", "'"),
            ("&amp;", "&"),
        ]
        .into_iter()
        .fold(text.to_owned(), |text, (from, to)| text.replace(from, to))
    };
    let params: Value = serde_json::from_str(&part("json")).unwrap();
    let client = Client::legacy(&server, "2025-06-18").await;
    let got = client.call("prompts/get", params).await;
    let text = got["messages"][0]["content"]["text"].as_str().unwrap();
    assert_eq!(text.trim_end(), "Hello O'Neil & <Co> \"x\".");
    assert_eq!(part("m1").trim_end(), text.trim_end());
    // the same for a shell, which gives the program one argument of JSON
    let curl = part("curl");
    let output = std::process::Command::new("sh")
        .args([
            "-c",
            &format!("curl() {{ for last; do :; done; printf %s \"$last\"; }}\n{curl}"),
        ])
        .output()
        .unwrap();
    let sent: Value = serde_json::from_slice(&output.stdout).unwrap();
    assert_eq!(sent["params"]["arguments"]["who"], "O'Neil & <Co> \"x\"");
    assert!(curl.contains(&format!("http://{}/mcp", server.address)));
}
