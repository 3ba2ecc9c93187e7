//! Texts of authors are shown, and do nothing.

use super::open;
use crate::support::library::TestLibrary;
use crate::support::server::TestServer;

const SCRIPT: &str = "<script>alert(1)</script>";

#[tokio::test]
async fn titles_descriptions_and_tags_are_text() {
    let file = "---\ntitle: \"<script>alert(1)</script> \\u202Eevil\\u200B\"\n\
        description: '<img src=x onerror=alert(2)>'\ntags: ['\"><svg onload=alert(3)>']\n---\nHello.\n";
    let toml = format!("title = \"{SCRIPT}\"\n");
    let server = TestServer::start(&TestLibrary::with(&[
        ("prompts/a/hostile.md", file),
        ("cuebook.toml", &toml),
    ]))
    .await;
    for path in [
        "/",
        "/?q=%3Cscript%3Ealert(4)%3C%2Fscript%3E%22%3E%3Cimg",
        "/?folder=%22%3E%3Cscript%3E",
    ] {
        let page = open(&server, path).await;
        let html = page.text();
        assert_eq!(page.status, 200);
        for hostile in [
            "<script>alert",
            "<img src=x",
            "<svg onload",
            "\u{202e}",
            "\u{200b}",
        ] {
            // what is typed into the search comes back byte for byte, as a value
            assert!(!html.contains(hostile), "{path} has {hostile}: {html}");
        }
    }
    let html = open(&server, "/").await;
    assert!(
        html.text()
            .contains("&lt;script&gt;alert(1)&lt;/script&gt; &lt;U+202E&gt;evil&lt;U+200B&gt;")
    );
}
