//! The pages of a prompt, over real sockets: what it renders to, what is offered, its versions, going back.

use serde_json::json;

use super::{BROWSER, open, open_in};
use crate::access::Guarded;
use crate::support::http::{Reply, send};
use crate::support::library::TestLibrary;
use crate::support::server::TestServer;

const GREET: &str = "---\ntitle: 인사\ndescription: Says hello\narguments:\n  - name: who\n    description: Whom\n    required: true\n    values: [Mina, 결제팀]\n  - name: note\nexamples:\n  - name: plain\n    arguments: { who: Mina }\n  - name: noted\n    arguments: { who: Joon, note: late }\n---\nHello {{ who }}. {{ note }}\n\n<!-- role: assistant -->\nI am {{ who }}'s.\n";

/// The token of the first form of a page.
fn token(html: &str) -> &str {
    let rest = html.split("name=\"csrf\" value=\"").nth(1).unwrap();
    rest.split('"').next().unwrap()
}

#[tokio::test]
async fn a_prompt_is_shown_with_its_first_example_and_with_what_is_typed() {
    let server = TestServer::start(&TestLibrary::with(&[("prompts/a/greet.md", GREET)])).await;
    let page = open(&server, "/prompts/greet").await;
    assert_eq!(page.status, 200);
    let html = page.text();
    assert!(
        html.contains("Hello Mina. ") && html.contains("I am Mina&#39;s."),
        "{html}"
    );
    assert!(html.contains("/mcp__cuebook__greet Mina") && html.contains("--who=&quot;Mina&quot;"));
    assert!(
        html.contains("not in its menu"),
        "Zed shows no prompt of two arguments"
    );
    let second = open_in(&server, "/prompts/greet?example=1", "ko").await;
    assert!(second.text().contains("Hello Joon. late") && second.text().contains("메시지"));

    // what is typed goes by POST, and comes back as it was
    let body = format!("csrf={}&a.who=%3Cb%3E%0D%0Atwo&a.note=", token(html));
    let headers = [
        ("Accept", BROWSER),
        ("Content-Type", "application/x-www-form-urlencoded"),
    ];
    let typed = send(
        server.address,
        "POST",
        "/prompts/greet",
        &headers,
        body.as_bytes(),
    )
    .await;
    assert_eq!(typed.status, 200, "{}", typed.text());
    assert!(
        typed.text().contains("Hello &lt;b&gt;\ntwo."),
        "{}",
        typed.text()
    );
    let without = send(
        server.address,
        "POST",
        "/prompts/greet",
        &headers,
        b"a.who=x",
    )
    .await;
    assert_eq!(without.status, 403);
    // what is missing is named
    let body = format!("csrf={}&a.note=x", token(html));
    let missing = send(
        server.address,
        "POST",
        "/prompts/greet",
        &headers,
        body.as_bytes(),
    )
    .await;
    assert!(missing.text().contains("role=\"alert\"") && missing.text().contains("who"));
    for path in [
        "/prompts/nothing",
        "/prompts/greet%2F..",
        "/prompts/greet?at=v9",
    ] {
        assert_ne!(open(&server, path).await.status, 200, "{path}");
    }
}

#[tokio::test]
async fn completion_is_what_mcp_offers() {
    let server = TestServer::start(&TestLibrary::with(&[("prompts/a/greet.md", GREET)])).await;
    let ask = async |body: &str| {
        let headers = [("Content-Type", "application/json")];
        send(
            server.address,
            "POST",
            "/prompts/greet/complete",
            &headers,
            body.as_bytes(),
        )
        .await
    };
    let all = ask(r#"{"argument":"who","value":""}"#).await.json();
    assert_eq!(all, json!({ "values": ["Mina", "결제팀"], "total": 2 }));
    let initials = ask(r#"{"argument":"who","value":"ㄱㅈ","context":{"note":"x"}}"#).await;
    assert_eq!(initials.json()["values"], json!(["결제팀"]));
    assert_eq!(ask("{").await.status, 400);
    let form = send(
        server.address,
        "POST",
        "/prompts/greet/complete",
        &[],
        b"argument=who",
    )
    .await;
    assert_eq!(form.status, 415, "a form of another site cannot ask");
}

#[tokio::test]
async fn bound_resources_are_shown_with_the_file_that_is_found() {
    let look = "---\ndescription: D\narguments: [{ name: service }]\nresources:\n  \
        - { name: runbook, uri: \"runbook://{{ service }}\", required: false, as: text }\n\
        examples: [{ name: usual, arguments: { service: payments } }]\n---\nLook.\n";
    let server = TestServer::start(&TestLibrary::with(&[
        ("prompts/a/look.md", look),
        ("resources/runbook/payments.md", "# Payments\n"),
    ]))
    .await;
    let page = open(&server, "/prompts/look").await;
    for shown in [
        "<code>runbook</code>",
        "runbook://{{ service }}",
        "Found:</span> <a href=\"/edit/resources/runbook/payments.md\">",
        "# Payments",
    ] {
        assert!(page.text().contains(shown), "no {shown} in {}", page.text());
    }
    let body = format!("csrf={}&a.service=orders", token(page.text()));
    let headers = [
        ("Accept", BROWSER),
        ("Content-Type", "application/x-www-form-urlencoded"),
    ];
    let path = "/prompts/look";
    let typed = send(server.address, "POST", path, &headers, body.as_bytes()).await;
    let missing = "Not in the library: <bdi>runbook://orders</bdi>";
    assert!(typed.text().contains(missing), "{}", typed.text());
}

#[tokio::test]
async fn versions_are_listed_and_compared() {
    let library = TestLibrary::with(&[("prompts/a/greet.md", GREET)]);
    library.publish(&[
        ("prompts/a/greet.md", &GREET.replace("Hello", "Good day")),
        ("labels.toml", "[production]\ngreet = \"v1\"\n"),
    ]);
    let server = TestServer::start(&library).await;
    let page = open(&server, "/prompts/greet/versions").await;
    let html = page.text();
    assert!(
        html.contains(">v2<") && html.contains(">v1<") && html.contains("<bdi>production</bdi>"),
        "{html}"
    );
    let diff = open(&server, "/prompts/greet/diff?from=v1&to=v2").await;
    let html = diff.text();
    assert_eq!(diff.status, 200);
    assert!(
        html.contains("<mark>Hello</mark>") && html.contains("<mark>Good day</mark>"),
        "{html}"
    );
    assert!(html.contains("<bdi>plain</bdi>") && html.contains("<bdi>noted</bdi>"));
    let labelled = open(&server, "/prompts/greet/diff?from=production").await;
    assert!(labelled.text().contains("Good day"));
    assert_eq!(
        open(&server, "/prompts/greet/diff?from=v7").await.status,
        404
    );
    let old = open(&server, "/prompts/greet?at=production").await;
    let elsewhere = "which is not what is served";
    assert!(old.text().contains("Hello Mina") && old.text().contains(elsewhere));
    let newest = open(&server, "/prompts/greet?at=v2").await;
    assert!(!newest.text().contains(elsewhere), "{}", newest.text());
}

/// Sends a form of a page as an actor does.
async fn form(server: &Guarded, name: &str, path: &str, fields: &str) -> Reply {
    let page = seen(server, name, "/prompts/greet").await;
    let body = format!("csrf={}&{fields}", token(page.text()));
    let bearer = server.bearer(name);
    let headers = [
        ("Authorization", &*bearer),
        ("Accept", BROWSER),
        ("Content-Type", "application/x-www-form-urlencoded"),
    ];
    send(server.address, "POST", path, &headers, body.as_bytes()).await
}

/// A page as an actor sees it.
async fn seen(server: &Guarded, name: &str, path: &str) -> Reply {
    let bearer = server.bearer(name);
    let headers = [("Authorization", &*bearer), ("Accept", BROWSER)];
    send(server.address, "GET", path, &headers, b"").await
}

#[tokio::test(flavor = "multi_thread")]
async fn going_back_and_promoting_is_a_form_and_asks_the_same_gate() {
    let server = Guarded::start(
        &[("prompts/a/greet.md", GREET)],
        &[
            ("pub", &[("publisher", "**")]),
            ("read", &[("reader", "**")]),
        ],
    )
    .await;
    server
        .publish(&[("prompts/a/greet.md", &GREET.replace("Hello", "Good day"))])
        .await;
    let page = seen(&server, "pub", "/prompts/greet/versions").await;
    assert!(
        page.text().contains("/prompts/greet/restore"),
        "{}",
        page.text()
    );
    let reader = seen(&server, "read", "/prompts/greet/versions").await;
    assert!(!reader.text().contains("/restore") && !reader.text().contains("/promote"));

    let refused = form(
        &server,
        "read",
        "/prompts/greet/restore",
        "version=v1&reason=x",
    )
    .await;
    assert_eq!(refused.status, 403);
    let unsaid = form(
        &server,
        "pub",
        "/prompts/greet/restore",
        "version=v1&reason=",
    )
    .await;
    assert_eq!(unsaid.status, 422);
    assert!(unsaid.text().contains("role=\"alert\""));
    // a reason that was typed stays in its form, which is open
    for (deed, more) in [("restore", ""), ("promote", "&label=production")] {
        let fields = format!("version=v1&reason=Too+%22stiff%22{more}");
        let path = format!("/prompts/greet/{deed}");
        let refused = form(&server, "read", &path, &fields).await;
        assert_eq!(refused.status, 403, "{deed}: {}", refused.text());
        assert!(refused.text().contains("Too &quot;stiff&quot;"), "{deed}");
    }
    let long = format!("version=v1&label=production&reason={}", "x".repeat(70_000));
    let long = form(&server, "pub", "/prompts/greet/promote", &long).await;
    assert_eq!(long.status, 422);
    assert!(long.text().contains("xxx</textarea>"), "as it was typed");
    let nul = "version=v1&label=production&reason=Too+%22stiff%22+%00";
    let nul = form(&server, "pub", "/prompts/greet/promote", nul).await;
    assert_eq!(nul.status, 422, "{}", nul.text());
    let html = nul.text();
    let opened = html.split("<details class=\"act\" open>").nth(1).unwrap();
    let opened = opened.split("</details>").next().unwrap();
    assert!(opened.contains("/promote\"") && opened.contains("value=\"v1\""));
    assert!(
        opened.contains("value=\"Too &quot;stiff&quot; "),
        "{opened}"
    );
    let forged = "version=v1&reason=x&csrf=AAAA";
    let forged = form(&server, "pub", "/prompts/greet/restore", forged).await;
    assert_eq!(forged.status, 403, "the last token counts");

    let back = form(
        &server,
        "pub",
        "/prompts/greet/restore",
        "version=v1&reason=Too+stiff",
    )
    .await;
    assert_eq!(back.status, 303, "{}", back.text());
    let to = back.header("location").unwrap().to_owned();
    let page = seen(&server, "pub", &to).await;
    assert!(page.text().contains(">v3<") && page.text().contains("role=\"status\""));
    assert!(
        seen(&server, "read", "/prompts/greet")
            .await
            .text()
            .contains("Hello Mina")
    );

    let label = "version=v2&label=production&reason=Try+it";
    let label = form(&server, "pub", "/prompts/greet/promote", label).await;
    assert_eq!(label.status, 303, "{}", label.text());
    let page = seen(&server, "read", "/prompts/greet").await;
    assert!(
        page.text().contains("<bdi>production</bdi> v2"),
        "{}",
        page.text()
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn what_an_actor_may_not_read_looks_absent_on_every_page() {
    let secret = GREET.replace("인사", "Secret plan");
    let server = Guarded::start(
        &[
            ("prompts/open/greet.md", GREET),
            ("prompts/closed/secret.md", &secret),
        ],
        &[("half", &[("reader", "prompts/open/**")])],
    )
    .await;
    for path in [
        "/",
        "/?q=secret",
        "/?folder=closed",
        "/activity",
        "/connect",
        "/prompts/greet",
    ] {
        let page = seen(&server, "half", path).await;
        assert_eq!(page.status, 200, "{path}");
        for word in ["Secret plan", "closed/secret", "/prompts/secret"] {
            assert!(!page.text().contains(word), "{path} tells of {word}");
        }
    }
    let same = |path: &'static str| {
        let server = &server;
        async move {
            let page = seen(server, "half", path).await;
            let text = page.text().replace(path, "PATH");
            // but for the token of the form and the number of the request
            let at = text.find("<main").unwrap();
            (page.status, text[at..].to_owned())
        }
    };
    for (hidden, absent) in [
        ("/prompts/secret", "/prompts/nought"),
        ("/prompts/secret/versions", "/prompts/nought/versions"),
        ("/prompts/secret/diff", "/prompts/nought/diff"),
        ("/prompts/secret/blame", "/prompts/nought/blame"),
    ] {
        assert_eq!(same(hidden).await, same(absent).await, "{hidden}");
    }
    assert!(
        seen(&server, "root", "/?q=secret")
            .await
            .text()
            .contains("Secret plan")
    );
    assert!(
        seen(&server, "root", "/activity")
            .await
            .text()
            .contains("/api/v1/audit/export")
    );
    let nobody = send(server.address, "GET", "/", &[("Accept", BROWSER)], b"").await;
    assert_eq!(nobody.status, 303);
    assert_eq!(nobody.header("location"), Some("/login?next=%2F"));
    let login = send(server.address, "GET", "/login", &[("Accept", BROWSER)], b"").await;
    assert_eq!(login.status, 200);
    assert!(!login.text().contains("Secret"));
}

#[tokio::test]
async fn every_client_can_be_connected_from_the_page() {
    let server = TestServer::start(&TestLibrary::small()).await;
    let url = format!("http://{}/mcp", server.address);
    let page = open(&server, "/connect").await;
    assert!(page.text().contains(&url));
    let mut clients = 0;
    for part in page.text().split("href=\"/connect?client=").skip(1) {
        let id = part.split('"').next().unwrap();
        let page = open_in(&server, &format!("/connect?client={id}"), "ko").await;
        assert!(
            page.text().contains(&url) && page.text().contains("data-copy="),
            "{id}"
        );
        // also what stands in the guide of the client
        let (_, guide) = page.text().split_once("<pre class=\"prose\">").unwrap();
        let (using, rest) = guide.split_once("</pre>").unwrap();
        let limits = rest.split("<li>").skip(1);
        let limits = limits.map(|limit| limit.split("</li>").next().unwrap());
        for text in std::iter::once(using).chain(limits) {
            let is_korean = text.chars().any(|c| ('가'..='힣').contains(&c));
            assert!(is_korean, "{id}: {text}");
        }
        clients += 1;
    }
    assert_eq!(clients, 11);
}

#[tokio::test]
async fn who_listens_is_on_the_page_of_the_activity() {
    let library = TestLibrary::small();
    let server = TestServer::start(&library).await;
    assert!(
        open(&server, "/activity")
            .await
            .text()
            .contains("No client listens")
    );
    let client = crate::support::mcp::Client::named(&server, "2025-06-18", "visual-test").await;
    let events = client.listen(json!({})).await;
    let page = open(&server, "/activity").await;
    assert!(
        page.text().contains("<bdi>visual-test</bdi>"),
        "{}",
        page.text()
    );
    assert!(page.text().contains("2025-06-18"));
    drop(events);
}

#[tokio::test(flavor = "multi_thread")]
async fn labels_that_move_and_versions_that_come_back_are_published_too() {
    let people: &[crate::access::Person<'_>] = &[
        ("pub", &[("publisher", "**")]),
        ("half", &[("reader", "prompts/open/**")]),
    ];
    let server = Guarded::start(
        &[
            ("prompts/a/greet.md", GREET),
            ("prompts/open/plain.md", "Plain.\n"),
        ],
        people,
    )
    .await;
    let changed = GREET.replace("Hello", "Good day");
    server.publish(&[("prompts/a/greet.md", &changed)]).await;
    for (deed, fields) in [
        ("promote", "version=v2&label=production&reason=Try+it"),
        ("promote", "version=v1&label=production&reason=It+fails"),
        ("restore", "version=v1&reason=Too+stiff"),
    ] {
        let path = format!("/prompts/greet/{deed}");
        let done = form(&server, "pub", &path, fields).await;
        assert_eq!(done.status, 303, "{}", done.text());
    }
    let page = seen(&server, "pub", "/activity").await;
    let html = page.text();
    let item = |subject: &str| {
        let subject = format!("<bdi>{subject}</bdi>");
        let items = html.split("<li>");
        let found: Vec<&str> = items.filter(|item| item.contains(&subject)).collect();
        assert_eq!(found.len(), 1, "{subject} in {html}");
        found[0].to_owned()
    };
    assert!(item("revert greet to v1").contains("v1 again"));
    let on = item("promote greet v2 to production");
    assert!(
        on.contains("<bdi>production</bdi>") && on.contains(">v2<"),
        "{on}"
    );
    let back = item("promote greet v1 to production");
    let marked = "chip warn\">back<";
    assert!(back.contains(marked) && !on.contains(marked), "{back}");
    // where they cannot be read that is said, and the versions are there
    let missing = "Labels that were moved could not be read";
    assert!(!html.contains(missing));
    let objects = server.data_dir().join("library.git/objects");
    let away = server.data_dir().join("library.git/away");
    std::fs::rename(&objects, &away).unwrap();
    let partly = seen(&server, "pub", "/activity").await;
    std::fs::rename(&away, &objects).unwrap();
    let partly = partly.text();
    assert!(
        partly.contains(missing) && partly.contains("v1 again"),
        "{partly}"
    );
    assert!(!partly.contains("promote greet"), "{partly}");
    // who may not read the prompt is told of none of it
    let half = seen(&server, "half", "/activity").await;
    assert!(half.text().contains("\"/prompts/plain?at=v1\""));
    assert!(!half.text().contains("greet"), "{}", half.text());
}
