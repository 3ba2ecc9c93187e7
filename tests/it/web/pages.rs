//! What every page has: its policy, its language, its `ETag`, its errors.

use super::{BROWSER, open, open_in};
use crate::support::http::send;
use crate::support::library::TestLibrary;
use crate::support::server::TestServer;

/// Pages that every server has.
const PAGES: &[&str] = &[
    "/",
    "/prompts/incident-triage",
    "/prompts/incident-triage/versions",
    "/prompts/incident-triage/diff",
    "/prompts/incident-triage/blame",
    "/connect",
    "/activity",
    "/api",
];

#[tokio::test]
async fn pages_run_no_script_and_no_style_but_this_servers() {
    let server = TestServer::start(&TestLibrary::small()).await;
    for path in PAGES.iter().chain(&["/nothing-here"]) {
        let page = open(&server, path).await;
        let policy = page.header("content-security-policy").unwrap();
        assert!(policy.starts_with("default-src 'none'; script-src 'self'; style-src 'self';"));
        assert!(!policy.contains("unsafe"), "{policy}");
        // with `no-referrer` the page's own forms would come from `Origin: null`, and be refused
        assert_eq!(page.header("referrer-policy"), Some("same-origin"));
        let html = page.text();
        assert!(html.starts_with("<!doctype html>"), "{path}: {html}");
        for attribute in [" style=", " onclick=", " onerror=", "<style", "javascript:"] {
            assert!(!html.contains(attribute), "{path} has {attribute}");
        }
        // what is loaded is here and is kept for ever
        let mut loaded = 0;
        for part in html.split("\"/assets/").skip(1) {
            let file = part.split('"').next().unwrap();
            let asset = send(server.address, "GET", &format!("/assets/{file}"), &[], b"").await;
            assert_eq!(asset.status, 200, "{file}");
            assert!(asset.header("cache-control").unwrap().contains("immutable"));
            loaded += 1;
        }
        assert!(loaded >= 3, "{path}");
        for script in html.split("<script").skip(1) {
            let (open, rest) = script.split_once('>').unwrap();
            assert!(
                open.contains("src=\"/assets/") && rest.starts_with("</script>"),
                "{path}"
            );
        }
    }
}

#[tokio::test]
async fn programs_get_the_text_and_browsers_the_page() {
    let server = TestServer::start(&TestLibrary::small()).await;
    for accept in ["*/*", "text/plain", ""] {
        let reply = send(server.address, "GET", "/", &[("Accept", accept)], b"").await;
        assert_eq!(
            reply.header("content-type"),
            Some("text/plain; charset=utf-8")
        );
        assert!(reply.text().contains("MCP endpoint"), "{}", reply.text());
    }
    let page = open(&server, "/").await;
    assert_eq!(
        page.header("content-type"),
        Some("text/html; charset=utf-8")
    );
    assert!(page.text().contains("href=\"/prompts/incident-triage\""));
}

#[tokio::test]
async fn the_language_is_the_browsers_until_it_is_chosen() {
    let server = TestServer::start(&TestLibrary::small()).await;
    assert!(
        open(&server, "/")
            .await
            .text()
            .contains("<html lang=\"en\">")
    );
    let korean = open_in(&server, "/", "ko-KR,ko;q=0.9,en;q=0.8").await;
    assert!(korean.text().contains("<html lang=\"ko\">") && korean.text().contains("라이브러리"));

    let token = |html: &str| {
        let rest = html.split("name=\"csrf\" value=\"").nth(1).unwrap();
        rest.split('"').next().unwrap().to_owned()
    };
    let choose = async |body: String| {
        let headers = [
            ("Accept", BROWSER),
            ("Content-Type", "application/x-www-form-urlencoded"),
        ];
        send(
            server.address,
            "POST",
            "/language",
            &headers,
            body.as_bytes(),
        )
        .await
    };
    let csrf = token(korean.text());
    let chosen = choose(format!("csrf={csrf}&lang=en&back=%2F%3Fq%3Dx")).await;
    assert_eq!(
        (chosen.status, chosen.header("location")),
        (303, Some("/?q=x"))
    );
    let cookie = chosen.header("set-cookie").unwrap();
    assert!(
        cookie.starts_with("lang=en;") && cookie.contains("SameSite=Lax"),
        "{cookie}"
    );
    let headers = [
        ("Accept", BROWSER),
        ("Accept-Language", "ko"),
        ("Cookie", "a=b; lang=en"),
    ];
    let page = send(server.address, "GET", "/", &headers, b"").await;
    assert!(page.text().contains("<html lang=\"en\">"));

    // a form of another site has no token, and nothing leads to another host
    let forged = choose("csrf=AAAA&lang=en&back=%2F".to_owned()).await;
    assert_eq!(forged.status, 403);
    assert!(forged.header("set-cookie").is_none());
    let away = choose(format!("csrf={csrf}&lang=en&back=%2F%2Fevil.example")).await;
    assert_eq!(away.header("location"), Some("/"));
}

#[tokio::test]
async fn what_has_not_changed_is_not_sent_again() {
    let library = TestLibrary::small();
    let server = TestServer::start(&library).await;
    let page = open(&server, "/").await;
    let tag = page.header("etag").unwrap().to_owned();
    let again = async |tag: &str| {
        let headers = [
            ("Accept", BROWSER),
            ("Accept-Language", "en"),
            ("If-None-Match", tag),
        ];
        send(server.address, "GET", "/", &headers, b"").await
    };
    let same = again(&tag).await;
    assert_eq!((same.status, same.body.len()), (304, 0));
    // a cookie that is nobody's session makes no other page
    let headers = [
        ("Accept", BROWSER),
        ("Accept-Language", "en"),
        ("Cookie", "cuebook_session=other"),
        ("If-None-Match", &*tag),
    ];
    let other = send(server.address, "GET", "/", &headers, b"").await;
    assert_eq!(other.status, 304);
    library.publish(&[("prompts/sre/new-one.md", "Hello.\n")]);
    server.refresh().await;
    let changed = again(&tag).await;
    assert_eq!(changed.status, 200);
    assert!(changed.text().contains("/prompts/new-one"));
}

#[tokio::test]
async fn pages_and_assets_are_compressed_where_that_is_taken() {
    let server = TestServer::start(&TestLibrary::small()).await;
    let plain = open(&server, "/").await;
    assert!(plain.header("content-encoding").is_none());
    let headers = [("Accept", BROWSER), ("Accept-Encoding", "gzip, br")];
    let packed = send(server.address, "GET", "/", &headers, b"").await;
    assert_eq!(packed.header("content-encoding"), Some("gzip"));
    assert!(packed.body.len() * 2 < plain.body.len());
    assert!(packed.header("vary").unwrap().contains("Accept-Encoding"));
    let file = plain.text().split("\"/assets/app-").nth(1).unwrap();
    let path = format!("/assets/app-{}", file.split('"').next().unwrap());
    let asset = send(server.address, "GET", &path, &headers, b"").await;
    assert_eq!(asset.header("content-encoding"), Some("gzip"));
    assert_eq!(asset.body[..2], [0x1f, 0x8b]);
}

#[tokio::test]
async fn what_is_not_there_is_said_in_html_to_browsers_alone() {
    let server = TestServer::start(&TestLibrary::small()).await;
    let page = open(&server, "/nothing-here").await;
    assert_eq!((page.status, page.header("etag")), (404, None));
    assert!(page.text().contains("There is nothing here"));
    let korean = open_in(&server, "/nothing-here", "ko").await;
    assert!(korean.text().contains("여기에는 아무것도 없습니다"));
    for path in ["/api/v1/nothing", "/.well-known/oauth-protected-resource"] {
        let reply = open(&server, path).await;
        assert_eq!(reply.status, 404);
        assert!(!reply.text().contains("<html"), "{path}");
    }
    let program = send(server.address, "GET", "/nothing-here", &[], b"").await;
    assert_eq!(program.json()["error"], "there is nothing here");
    let missing = send(server.address, "GET", "/assets/manifest.json", &[], b"").await;
    assert_eq!(missing.status, 404);
}

#[tokio::test]
async fn the_library_is_filtered_and_searched_without_scripts() {
    let server = TestServer::start(&TestLibrary::with(&[
        (
            "prompts/sre/triage.md",
            "---\ntitle: 결제 장애\ntags: [incident, pay]\n---\nLook.\n",
        ),
        (
            "prompts/sre/db/failover.md",
            "---\ntags: [incident]\n---\nMove.\n",
        ),
        ("prompts/review/code.md", "Review.\n"),
        ("labels.toml", "[production]\ntriage = \"v1\"\n"),
    ]))
    .await;
    let names = async |path: &str| {
        let page = open(&server, path).await;
        let rows = page.text().split("href=\"/prompts/").skip(1);
        let names: Vec<String> = rows
            .map(|row| row.split('"').next().unwrap().to_owned())
            .collect();
        names
    };
    assert_eq!(names("/").await, ["code", "triage", "failover"]);
    assert_eq!(names("/?folder=sre").await, ["triage", "failover"]);
    assert_eq!(names("/?folder=sre%2Fdb").await, ["failover"]);
    assert_eq!(names("/?tag=incident&tag=pay").await, ["triage"]);
    assert_eq!(
        names("/?q=%E3%84%B1%E3%85%88").await,
        ["triage"],
        "by initials"
    );
    assert_eq!(names("/?q=zzzzqqqq").await, Vec::<String>::new());
    let page = open(&server, "/").await;
    assert!(page.text().contains("<bdi>production</bdi>"));
    assert!(page.text().contains("href=\"/?folder=sre%2Fdb\""));
}

#[tokio::test]
async fn an_empty_library_teaches() {
    let server = TestServer::start(&TestLibrary::empty()).await;
    let page = open(&server, "/").await;
    assert_eq!(page.status, 200);
    assert!(page.text().contains("cuebook check"), "{}", page.text());
    assert!(page.text().contains("href=\"/connect\""));
}
