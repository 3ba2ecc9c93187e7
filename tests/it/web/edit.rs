//! The editor, by real requests: what a page begins with, drafts, the form that works without a script.

use std::collections::BTreeSet;

use cuebook::store::{DRAFT_MILLIS, DraftRow, Kept, MAX_DRAFTS, Store};
use regex::Regex;
use serde_json::{Value, json};

use super::BROWSER;
use crate::access::{Guarded, Person};
use crate::support::http::{Reply, send};
use crate::support::library::git;

/// Everybody may do what they are called on `sre`, and nothing anywhere else.
const PEOPLE: [Person<'static>; 3] = [
    (
        "writer",
        &[("publisher", "prompts/sre/**"), ("author", "partials/**")],
    ),
    ("author", &[("author", "prompts/sre/**")]),
    ("reader", &[("reader", "prompts/sre/**")]),
];

/// A byte order mark, CRLF, no last newline.
const WINDOWS: &str = "\u{feff}---\r\ndescription: From Windows\r\n---\r\nOne.\r\nTwo.";

const TRIAGE: &str = "---\ndescription: Triage\narguments:\n  - name: service\n    required: true\n---\n\
    {% include \"rubric.md\" %}\nLook at {{ service }}.\n";

async fn server() -> Guarded {
    Guarded::start(
        &[
            ("prompts/sre/triage.md", TRIAGE),
            ("prompts/sre/windows.md", WINDOWS),
            (
                "prompts/hidden/plan.md",
                "---\ndescription: Plan\n---\nSecret plan.\n",
            ),
            ("partials/rubric.md", "Say how bad it is.\n"),
            ("partials/hidden.md", "Nobody includes it.\n"),
            ("resources/runbook/payments.md", "# Payments\n"),
        ],
        &PEOPLE,
    )
    .await
}

impl Guarded {
    async fn page(&self, name: &str, path: &str) -> Reply {
        let bearer = self.bearer(name);
        let headers = [
            ("Authorization", &*bearer),
            ("Accept", BROWSER),
            ("Accept-Language", "en"),
        ];
        send(self.address, "GET", path, &headers, b"").await
    }

    async fn form(&self, name: &str, path: &str, fields: &[(&str, &str)]) -> Reply {
        let bearer = self.bearer(name);
        let body: Vec<String> = fields
            .iter()
            .map(|(field, value)| format!("{field}={}", encoded(value)))
            .collect();
        let headers = [
            ("Authorization", &*bearer),
            ("Accept", BROWSER),
            ("Accept-Language", "en"),
            ("Content-Type", "application/x-www-form-urlencoded"),
        ];
        send(
            self.address,
            "POST",
            path,
            &headers,
            body.join("&").as_bytes(),
        )
        .await
    }

    async fn keep(&self, name: &str, body: &Value) -> Reply {
        let bearer = self.bearer(name);
        let headers = [
            ("Authorization", &*bearer),
            ("Content-Type", "application/json"),
            ("X-Cuebook", "1"),
        ];
        send(
            self.address,
            "PUT",
            "/editor/draft",
            &headers,
            body.to_string().as_bytes(),
        )
        .await
    }

    fn on_main(&self, path: &str) -> Vec<u8> {
        git(
            &self.data_dir().join("library.git"),
            &["show", &format!("main:{path}")],
        )
        .into_bytes()
    }
}

fn encoded(text: &str) -> String {
    text.bytes().map(|byte| format!("%{byte:02X}")).collect()
}

/// What the script of a page begins with.
#[track_caller]
fn data(page: &Reply) -> Value {
    let html = page.text();
    let content = html.split("<meta name=\"edit\" content=\"").nth(1).unwrap();
    let content = content.split('"').next().unwrap();
    let plain = content
        .replace("&quot;", "\"")
        .replace("&#x27;", "'")
        .replace("&#39;", "'")
        .replace("&#x2F;", "/")
        .replace("&lt;", "<")
        .replace("&gt;", ">")
        .replace("&amp;", "&");
    serde_json::from_str(&plain).unwrap_or_else(|error| panic!("{error}: {plain}"))
}

#[track_caller]
fn hidden(page: &Reply, name: &str) -> String {
    let html = page.text();
    let field = html
        .split(&format!("name=\"{name}\" value=\""))
        .nth(1)
        .unwrap();
    field.split('"').next().unwrap().to_owned()
}

#[tokio::test(flavor = "multi_thread")]
async fn an_editor_begins_with_the_stored_bytes() {
    let server = server().await;
    let page = server.page("writer", "/edit/prompts/sre/windows.md").await;
    assert_eq!(page.status, 200);
    let data = data(&page);
    assert_eq!(data["raw"].as_str().unwrap().as_bytes(), WINDOWS.as_bytes());
    let tip = git(
        &server.data_dir().join("library.git"),
        &["rev-parse", "main"],
    );
    assert_eq!(data["base"], tip.trim());
    assert_eq!(
        (&data["exists"], &data["kind"]),
        (&json!(true), &json!("prompt"))
    );
    assert_eq!(data["may"], json!({ "publish": true, "propose": true }));
    // without a script the text is there as well, and the way to send it
    assert!(
        page.text()
            .contains("From Windows\n---\nOne.\nTwo.</textarea>")
    );
    let by_author = server.page("author", "/edit/prompts/sre/windows.md").await;
    assert_eq!(
        self::data(&by_author)["may"],
        json!({ "publish": false, "propose": true })
    );
    let by_reader = server.page("reader", "/edit/prompts/sre/windows.md").await;
    assert!(
        by_reader.text().contains("readonly") && by_reader.text().contains("role of an author")
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn what_may_not_be_read_is_not_there() {
    let server = server().await;
    let id = Regex::new("[0-9a-f]{8,}").unwrap();
    let token = Regex::new("(content|value)=\"[A-Za-z0-9_-]{40,}\"").unwrap();
    // but for what differs in any two pages
    let same = |reply: &Reply| {
        let plain = id
            .replace_all(reply.text(), "")
            .replace("none.md", "plan.md");
        token.replace_all(&plain, "").into_owned()
    };
    for name in ["writer", "reader"] {
        let hidden = server.page(name, "/edit/prompts/hidden/plan.md").await;
        let nothing = server.page(name, "/edit/prompts/hidden/none.md").await;
        assert_eq!((hidden.status, nothing.status), (404, 404));
        assert_eq!(same(&hidden), same(&nothing));
        let file = server
            .get(name, "/editor/file?path=prompts/hidden/plan.md")
            .await;
        let none = server
            .get(name, "/editor/file?path=prompts/hidden/none.md")
            .await;
        assert_eq!((file.status, file.text()), (404, none.text()));
    }
    let words = server
        .get("writer", "/editor/words?path=partials/rubric.md")
        .await
        .json();
    assert!(!words.to_string().contains("plan"), "{words}");
    assert_eq!(words["includers"][0]["name"], "triage");
    assert_eq!(words["partials"][0]["name"], "hidden.md");
    assert_eq!(words["prompts"][0]["version"], "v1");
    assert!(
        words["filters"]
            .as_array()
            .unwrap()
            .contains(&json!("untrusted"))
    );
    assert_eq!(words["resources"], json!([]));
    let all = server
        .get("root", "/editor/words?path=partials/rubric.md")
        .await
        .json();
    assert_eq!(all["resources"][0]["name"], "runbook://payments");
    // what a change does is told to who sees all that it touches: an example could ask what the rest says
    let body = json!({ "files": { "partials/rubric.md": "{{ nowhere }}\n" } }).to_string();
    assert_eq!(
        server.post("writer", "/editor/check", &body).await.status,
        403
    );
    let check = server.post("root", "/editor/check", &body).await;
    assert!(check.text().contains("nowhere"), "{}", check.text());
    let other = json!({ "files": { "prompts/hidden/plan.md": null } }).to_string();
    assert_eq!(
        server.post("writer", "/editor/check", &other).await.status,
        403
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn a_draft_is_its_actors_until_it_is_published() {
    let server = server().await;
    let path = "prompts/sre/triage.md";
    let page = server.page("writer", "/edit/prompts/sre/triage.md").await;
    let base = data(&page)["base"].clone();
    assert_eq!(data(&page)["draft"], Value::Null);
    let draft = |text: &str| json!({ "path": path, "base": base, "text": text });
    let first = server.keep("writer", &draft("half a thou")).await;
    assert_eq!(first.status, 200, "{}", first.text());
    let first = first.json()["saved_at"].as_i64().unwrap();
    let second = server.keep("writer", &draft("half a thought")).await.json();
    assert!(second["saved_at"].as_i64().unwrap() > first);
    // a page that does not know of it is told that there is another
    let on = async |on: i64| {
        let body = json!({ "path": path, "base": base, "text": "half a thought", "on": on });
        server.keep("writer", &body).await.json()
    };
    let second = on(second["saved_at"].as_i64().unwrap()).await;
    assert_eq!(second["elsewhere"], false);
    assert_eq!(on(0).await["elsewhere"], true);
    let second = on(first).await;
    assert_eq!(second["elsewhere"], true);
    let again = data(&server.page("writer", "/edit/prompts/sre/triage.md").await);
    assert_eq!(again["draft"]["text"], "half a thought");
    assert_eq!(again["draft"]["base"], base);
    let other = data(&server.page("author", "/edit/prompts/sre/triage.md").await);
    assert_eq!(other["draft"], Value::Null);
    assert_eq!(
        server.get("writer", "/editor/draft").await.json()[0]["path"],
        path
    );

    // what was acknowledged goes, and nothing that came after it
    let remove = async |saved_at: &str| {
        let bearer = server.bearer("writer");
        let url = format!("/editor/draft?path={path}&saved_at={saved_at}");
        let headers = [("Authorization", &*bearer), ("X-Cuebook", "1")];
        send(server.address, "DELETE", &url, &headers, b"")
            .await
            .status
    };
    assert_eq!(remove(&first.to_string()).await, 204);
    assert_eq!(
        server.get("writer", "/editor/draft").await.json()[0]["path"],
        path
    );
    assert_eq!(remove(&second["saved_at"].to_string()).await, 204);
    assert_eq!(
        server.get("writer", "/editor/draft").await.json(),
        json!([])
    );

    // it is bounded, and of files that its actor may change
    let large = server
        .keep("writer", &draft(&"x".repeat(1024 * 1024 + 1)))
        .await;
    assert_eq!(large.status, 422);
    assert!(
        large.text().contains("in your browser alone"),
        "{}",
        large.text()
    );
    for path in ["prompts/hidden/plan.md", "../x", "prompts/sre/x.txt"] {
        let reply = server
            .keep(
                "writer",
                &json!({ "path": path, "base": null, "text": "x" }),
            )
            .await;
        assert_eq!(reply.status, 422, "{path}");
    }
    let bearer = server.bearer("writer");
    let headers = [
        ("Authorization", &*bearer),
        ("Content-Type", "application/json"),
    ];
    let forged = send(
        server.address,
        "PUT",
        "/editor/draft",
        &headers,
        draft("x").to_string().as_bytes(),
    )
    .await;
    assert_eq!(forged.status, 403);
}

#[tokio::test]
async fn drafts_are_few_and_end_by_themselves() {
    let folder = tempfile::tempdir().unwrap();
    let store = Store::open(&folder.path().join("cuebook.db"))
        .await
        .unwrap();
    let row = |actor: &str, n: i64, saved_at| DraftRow {
        actor: actor.into(),
        path: format!("prompts/a{n}.md"),
        base: None,
        text: "x".into(),
        saved_at,
    };
    for n in 0..MAX_DRAFTS {
        assert_eq!(
            store.put_draft(&row("ada", n, 1000)).await.unwrap(),
            Kept::At(1000)
        );
    }
    assert_eq!(
        store
            .put_draft(&row("ada", MAX_DRAFTS, 1000))
            .await
            .unwrap(),
        Kept::TooMany
    );
    assert_eq!(
        store.put_draft(&row("ada", 0, 1000)).await.unwrap(),
        Kept::At(1001)
    );
    assert_eq!(
        store.put_draft(&row("bob", 0, 1000)).await.unwrap(),
        Kept::At(1000)
    );
    let large = DraftRow {
        text: "한".repeat(3 * 1024 * 1024),
        ..row("bob", 1, 1000)
    };
    assert_eq!(store.put_draft(&large).await.unwrap(), Kept::TooLarge);
    // a month later they are gone, and there is room
    let later = 2000 + DRAFT_MILLIS;
    assert_eq!(
        store.drafts_of("ada", later - DRAFT_MILLIS).await.unwrap(),
        []
    );
    assert_eq!(
        store
            .put_draft(&row("ada", MAX_DRAFTS, later))
            .await
            .unwrap(),
        Kept::At(later)
    );
    assert_eq!(store.drafts_of("ada", 0).await.unwrap().len(), 1);
    store.close().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn the_form_publishes_without_a_script_and_keeps_the_line_ends() {
    let server = server().await;
    let url = "/edit/prompts/sre/windows.md";
    let page = server.page("writer", url).await;
    let (csrf, base) = (hidden(&page, "csrf"), hidden(&page, "base"));
    let send = async |text: &str, csrf: &str| {
        let fields = [
            ("csrf", csrf),
            ("base", &base),
            ("text", text),
            ("message", "From the form"),
        ];
        server.form("writer", url, &fields).await
    };
    // as a browser sends what was not changed: no mark, CRLF
    let same = send(
        "---\r\ndescription: From Windows\r\n---\r\nOne.\r\nTwo.",
        &csrf,
    )
    .await;
    assert_eq!(same.status, 409);
    assert!(
        same.text().contains("nothing to publish"),
        "{}",
        same.text()
    );
    let forged = send("x", "AAAA").await;
    assert_eq!(forged.status, 403);
    // what is refused is still in the field, as it was typed
    let bad = send(
        "---\r\ndescription: X\r\n---\r\nHello {{ nmae }} <b>&amp;\r\n",
        &csrf,
    )
    .await;
    assert_eq!(bad.status, 422);
    assert!(
        bad.text().contains("`nmae` is not an argument"),
        "{}",
        bad.text()
    );
    assert!(
        bad.text()
            .contains("Hello {{ nmae }} &lt;b&gt;&amp;amp;\n</textarea>"),
        "{}",
        bad.text()
    );
    assert_eq!(server.on_main("prompts/sre/windows.md"), WINDOWS.as_bytes());

    let draft = json!({ "path": "prompts/sre/windows.md", "base": base, "text": "x" });
    assert_eq!(server.keep("writer", &draft).await.status, 200);
    let done = send(
        "---\r\ndescription: From Windows\r\n---\r\nOne.\r\nTwo!\r\n",
        &csrf,
    )
    .await;
    assert_eq!(done.status, 303, "{}", done.text());
    assert!(
        done.header("location")
            .unwrap()
            .starts_with("/edit/prompts/sre/windows.md?published=")
    );
    let now = WINDOWS.replace("Two.", "Two!\r\n");
    assert_eq!(server.on_main("prompts/sre/windows.md"), now.as_bytes());
    assert_eq!(
        server.get("writer", "/editor/draft").await.json(),
        json!([])
    );

    // the second of two editors sees both texts, and what it sent is in the field
    let late = send("---\r\ndescription: Mine\r\n---\r\nOne.\r\nTwo.", &csrf).await;
    assert_eq!(late.status, 409);
    let html = late.text();
    assert!(
        html.contains("description: Mine\n") && html.contains("Two!"),
        "{html}"
    );
    assert_ne!(hidden(&late, "base"), base);
    assert_eq!(server.on_main("prompts/sre/windows.md"), now.as_bytes());
    // a base that main does not have gives the one that it has, with both texts
    let gone = "0".repeat(40);
    let fields = [
        ("csrf", &*csrf),
        ("base", &gone),
        ("text", "Mine.\n"),
        ("message", "m"),
    ];
    let gone = server.form("writer", url, &fields).await;
    assert_eq!(gone.status, 422, "{}", gone.text());
    for shown in ["there is no commit", "Mine.\n</textarea>", "Two!"] {
        assert!(gone.text().contains(shown), "no {shown} in {}", gone.text());
    }
    assert_eq!(hidden(&gone, "base"), hidden(&late, "base"));
    let author = server.page("author", url).await;
    let fields = [
        ("csrf", &*hidden(&author, "csrf")),
        ("base", &base),
        ("text", "x"),
        ("message", "m"),
    ];
    let refused = server.form("author", url, &fields).await;
    assert!(matches!(refused.status, 403 | 422), "{}", refused.status);
    assert_eq!(server.on_main("prompts/sre/windows.md"), now.as_bytes());
}

#[tokio::test(flavor = "multi_thread")]
async fn the_form_proposes_without_a_script() {
    let server = server().await;
    let url = "/edit/prompts/sre/triage.md";
    let page = server.page("author", url).await;
    assert!(
        page.text().contains("value=\"propose\"") && !page.text().contains("value=\"publish\"")
    );
    let (csrf, base) = (hidden(&page, "csrf"), hidden(&page, "base"));
    let send = async |how: &str, csrf: &str, title: &str, text: &str| {
        let fields = [
            ("csrf", csrf),
            ("base", &*base),
            ("text", text),
            ("message", title),
            ("more", "Because <b>\r\nof this."),
            ("do", how),
        ];
        server.form("author", url, &fields).await
    };
    let better = TRIAGE.replace("Look at", "Look closely at");
    let before = server.on_main("prompts/sre/triage.md");
    assert_eq!(send("propose", "AAAA", "T", &better).await.status, 403);
    // what is refused is in the form again, all of it
    for (how, title, text, status, why) in [
        ("publish", "T", &*better, 403, "and not publish it"),
        ("propose", " ", &*better, 422, "is one line of at most"),
        (
            "propose",
            "T",
            "---\ndescription: D\n---\n{{ nmae }}\n",
            422,
            "<code>4 | {{ nmae }}</code><br>`nmae` is not an argument",
        ),
    ] {
        let refused = send(how, &csrf, title, text).await;
        let html = refused.text();
        assert_eq!(refused.status, status, "{html}");
        let last = text.lines().last().unwrap();
        for shown in [why, last, "Because &lt;b&gt;\nof this.</textarea>"] {
            assert!(html.contains(shown), "no {shown} in {html}");
        }
    }
    let listed = server.get("author", "/api/v1/proposals").await.json();
    assert_eq!(listed["proposals"], json!([]));
    let draft = json!({ "path": "prompts/sre/triage.md", "base": base, "text": "x" });
    assert_eq!(server.keep("author", &draft).await.status, 200);
    let done = send("propose", &csrf, "Look closely", &better).await;
    assert_eq!(
        (done.status, done.header("location")),
        (303, Some("/proposals/1")),
        "{}",
        done.text()
    );
    let made = server.get("author", "/api/v1/proposals/1").await.json();
    assert_eq!(
        (&made["title"], &made["message"], &made["author"]),
        (
            &json!("Look closely"),
            &json!("Because <b>\nof this."),
            &json!("author")
        )
    );
    assert_eq!(
        server.get("author", "/editor/draft").await.json(),
        json!([])
    );
    assert_eq!(server.on_main("prompts/sre/triage.md"), before);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_file_is_moved_and_removed_without_a_script() {
    let server = server().await;
    let url = "/edit/prompts/sre/windows.md";
    let page = server.page("writer", url).await;
    let (csrf, base) = (hidden(&page, "csrf"), hidden(&page, "base"));
    let send = async |url: &str, base: &str, field: (&str, &str)| {
        let fields = [
            ("csrf", &*csrf),
            ("base", base),
            (
                "text",
                "---\r\ndescription: From Windows\r\n---\r\nOne.\r\nTwo.",
            ),
            ("message", "Move it"),
            ("do", "publish"),
            field,
        ];
        server.form("writer", url, &fields).await
    };
    // where it cannot be it is not put, and the place that was typed stays
    for (to, why) in [
        ("prompts/hidden/windows.md", "you may not change"),
        ("prompts/sre/Windows.md", "lower-case"),
        ("prompts/sre/triage.md", "there is a file"),
        ("partials/windows.md", "another kind of file"),
    ] {
        let refused = send(url, &base, ("path", to)).await;
        let html = refused.text();
        assert_eq!(refused.status, 422, "{html}");
        let typed = format!("value=\"{to}\"");
        assert!(html.contains(why) && html.contains(&typed), "{to}: {html}");
        assert!(html.contains("Two.</textarea>"), "{html}");
    }
    let moved = send(url, &base, ("path", "prompts/sre/panes.md")).await;
    assert_eq!(moved.status, 303, "{}", moved.text());
    let to = moved.header("location").unwrap().to_owned();
    assert!(
        to.starts_with("/edit/prompts/sre/panes.md?published="),
        "{to}"
    );
    assert_eq!(server.on_main("prompts/sre/panes.md"), WINDOWS.as_bytes());
    let file = async |path: &str| {
        let url = format!("/editor/file?path={path}");
        server.get("writer", &url).await.status
    };
    assert_eq!(file("prompts/sre/windows.md").await, 404);
    let page = server.page("writer", &to).await;
    let url = "/edit/prompts/sre/panes.md";
    let gone = send(url, &hidden(&page, "base"), ("removed", "yes")).await;
    assert_eq!(gone.header("location"), Some("/"), "{}", gone.text());
    assert_eq!(file("prompts/sre/panes.md").await, 404);
}

/// Sends a form as a browser of nobody, or of a token.
async fn post(server: &Guarded, path: &str, more: &[(&str, &str)], body: &str) -> Reply {
    let mut headers = vec![
        ("Accept", BROWSER),
        ("Accept-Language", "en"),
        ("Content-Type", "application/x-www-form-urlencoded"),
    ];
    headers.extend_from_slice(more);
    send(server.address, "POST", path, &headers, body.as_bytes()).await
}

#[tokio::test(flavor = "multi_thread")]
async fn whoever_refuses_a_form_gives_back_what_was_typed() {
    let server = server().await;
    let url = "/edit/prompts/sre/triage.md";
    let page = server.page("author", url).await;
    let (csrf, base) = (hidden(&page, "csrf"), hidden(&page, "base"));
    let better = TRIAGE.replace("Look at", "Look <b>closely</b> at");
    let form = |csrf: &str| {
        let fields = [
            ("csrf", csrf),
            ("base", &*base),
            ("text", &*better),
            ("message", "Say how"),
            ("more", "Because."),
            ("do", "propose"),
        ];
        let fields = fields.map(|(name, value)| format!("{name}={}", encoded(value)));
        fields.join("&")
    };
    let kept = |reply: &Reply, status: u16, why: &str| {
        let html = reply.text();
        assert_eq!(reply.status, status, "{html}");
        for shown in [
            why,
            "Look &lt;b&gt;closely&lt;/b&gt; at {{ service }}.\n</textarea>",
            "Say how</textarea>",
            "Because.</textarea>",
            "name=\"do\" value=\"propose\"",
            "Send it again",
        ] {
            assert!(html.contains(shown), "no {shown} in {html}");
        }
        assert!(!html.contains(&csrf), "a token is not sent again");
    };
    // who is signed in no more, whose form is too old, who may not look there
    let nobody = post(&server, url, &[], &form(&csrf)).await;
    kept(&nobody, 401, "href=\"/login\" target=\"_blank\"");
    let bearer = server.bearer("author");
    let author = [("Authorization", &*bearer)];
    let old = post(&server, url, &author, &form("AAAA")).await;
    kept(&old, 403, "The form was too old");
    let hidden_file = "/edit/prompts/hidden/plan.md";
    let absent = post(&server, hidden_file, &author, &form(&csrf)).await;
    kept(&absent, 404, "There is nothing here");
    let reader = server.bearer("reader");
    let no_role = post(&server, url, &[("Authorization", &*reader)], &form(&csrf)).await;
    kept(&no_role, 403, "a role that you do not have");
    // what another site has sent is nobody's
    let other = [author[0], ("Sec-Fetch-Site", "cross-site")];
    let other = post(&server, url, &other, &form("AAAA")).await;
    assert_eq!(other.status, 403);
    assert!(!other.text().contains("Because."), "{}", other.text());
    // a comment and a reason are kept as well, and a password is not
    for (path, field) in [
        ("/proposals/1", "message"),
        ("/prompts/triage/restore", "reason"),
    ] {
        let lost = post(&server, path, &[], &format!("{field}=My+words&do=comment")).await;
        assert_eq!(lost.status, 401);
        assert!(lost.text().contains("My words</textarea>"), "{path}");
    }
    let password = post(&server, "/login", &[], "name=a&password=My+words").await;
    assert_eq!(password.status, 403);
    assert!(!password.text().contains("My words"));
    // what is too long for the page is still in the browser
    let long = form(&csrf);
    let more = 512 * 1024 + 1 - long.len();
    let long = long + &"x".repeat(more);
    let long = post(&server, url, &[], &long).await;
    assert_eq!(long.status, 401);
    assert!(long.text().contains("go back one page"), "{}", long.text());
    // and what came back is sent from there
    let again = post(&server, url, &author, &form(&hidden(&old, "csrf"))).await;
    assert_eq!(again.status, 303, "{}", again.text());
}

#[tokio::test(flavor = "multi_thread")]
async fn who_asks_too_often_has_the_text_again() {
    let server = Guarded::with(&[], &[("author", &[("author", "**")])], |config| {
        config.network.rates.actor_per_minute = 1;
        config.network.rates.actor_burst = 1;
    })
    .await;
    let bearer = server.bearer("author");
    let author = [("Authorization", &*bearer)];
    let mut last = None;
    for _ in 0..3 {
        let body = "csrf=x&text=Typed+here&message=m&do=publish";
        last = Some(post(&server, "/edit/prompts/a.md", &author, body).await);
    }
    let last = last.unwrap();
    assert_eq!(last.status, 429, "{}", last.text());
    assert!(last.header("retry-after").is_some());
    for shown in ["made too many requests", "Typed here</textarea>", ">429<"] {
        assert!(last.text().contains(shown), "no {shown} in {}", last.text());
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_check_tells_what_a_change_would_do_and_keeps_nothing() {
    let server = server().await;
    let bare = server.data_dir().join("library.git");
    let objects = || git(&bare, &["count-objects", "-v"]);
    let before = objects();
    let check = async |files: Value| {
        let reply = server
            .post(
                "root",
                "/editor/check",
                &json!({ "files": files }).to_string(),
            )
            .await;
        assert_eq!(reply.status, 200, "{}", reply.text());
        reply.json()
    };
    let good = check(json!({ "partials/rubric.md": "Say it in one word.\n" })).await;
    assert_eq!(
        good["published"],
        json!([{ "name": "triage", "kind": "changed" }])
    );
    assert_eq!(good["errors"], 0);
    let moved =
        check(json!({ "prompts/sre/triage.md": null, "prompts/review/triage.md": TRIAGE })).await;
    assert_eq!(moved["published"][0]["kind"], "moved");
    let bad = check(json!({ "partials/rubric.md": null })).await;
    assert_eq!(bad["problems"][0]["path"], "prompts/sre/triage.md");
    assert!(bad["errors"].as_u64().unwrap() > 0);
    let same = check(json!({ "partials/rubric.md": "Say how bad it is.\n" })).await;
    assert_eq!(
        (&same["errors"], &same["published"]),
        (&json!(0), &json!([]))
    );
    assert_eq!(objects(), before);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_new_file_has_a_place_and_a_beginning() {
    let server = server().await;
    let place = async |query: &str| {
        server
            .get("writer", &format!("/editor/place?path={query}"))
            .await
    };
    assert_eq!(place("prompts/sre/new.md").await.status, 200);
    for (path, words) in [
        ("prompts/sre/New.md", "lower-case"),
        ("prompts/sre/%ED%95%9C.md", "only a-z"),
        ("prompts/SRE/new.md", "may not change"),
        ("prompts/sre/triage.md", "there is a file"),
        ("prompts/sre/tri_age.txt", "no place in a library"),
        ("prompts/hidden/new.md", "may not change"),
        ("prompts/sre/../x.md", "no place in a library"),
        (
            "partials/x.md&from=prompts/sre/triage.md",
            "another kind of file",
        ),
        ("prompts/sre/plan.md", "`plan` is taken (`-`"),
    ] {
        let reply = place(path).await;
        assert_eq!(reply.status, 422, "{path}: {}", reply.text());
        assert!(reply.text().contains(words), "{path}: {}", reply.text());
    }
    // what is there besides prompts is a link, to who may read it
    let links = async |name: &str, path: &str| {
        let page = server.page(name, path).await;
        assert_eq!(page.status, 200, "{}", page.text());
        let links = page.text().split("href=\"/edit/").skip(1);
        let links: Vec<String> = links
            .map(|link| link.split('"').next().unwrap().to_owned())
            .collect();
        links
    };
    let partials = ["partials/hidden.md", "partials/rubric.md"];
    assert_eq!(links("writer", "/new").await, partials);
    let others = [
        "resources/runbook/payments.md",
        "labels.toml",
        "cuebook.toml",
    ];
    assert_eq!(
        links("root", "/new").await,
        [&partials[..], &others].concat()
    );
    let triage = "prompts/sre/triage.md";
    let seen = links("writer", "/prompts/triage").await;
    assert_eq!(seen, [triage, "partials/rubric.md"]);
    assert_eq!(links("author", "/prompts/triage").await, [triage]);
    let went = server.page("writer", "/new?kind=prompt&folder=sre&name=review&starter=en%2Fprompts%2Fsre%2Fincident-triage.md").await;
    assert_eq!(went.status, 303, "{}", went.text());
    let page = server
        .page("writer", went.header("location").unwrap())
        .await;
    let begun = data(&page);
    assert_eq!(begun["exists"], false);
    assert!(begun["raw"].as_str().unwrap().contains("arguments:"));
    assert!(
        begun["comesWith"]["partials/severity-rubric.md"].is_string(),
        "{}",
        begun["comesWith"]
    );
    let wrong = server
        .page("writer", "/new?kind=prompt&folder=sre&name=Bad+Name")
        .await;
    assert_eq!(wrong.status, 200);
    assert!(wrong.text().contains("value=\"Bad Name\"") && wrong.text().contains("bad-name"));
    // an outline passes the check as it is, in both languages
    for lang in ["en", "ko"] {
        let bearer = server.bearer("root");
        let headers = [
            ("Authorization", &*bearer),
            ("Accept", BROWSER),
            ("Accept-Language", lang),
        ];
        let page = send(
            server.address,
            "GET",
            "/edit/prompts/sre/fresh.md",
            &headers,
            b"",
        )
        .await;
        let files = json!({ "files": { "prompts/sre/fresh.md": data(&page)["raw"] } }).to_string();
        let checked = server.post("root", "/editor/check", &files).await.json();
        assert_eq!(checked["problems"], json!([]), "{lang}");
        assert_eq!(
            checked["published"],
            json!([{ "name": "fresh", "kind": "added" }])
        );
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_preview_says_how_pasted_text_is_kept_as_text() {
    let server = server().await;
    let text = "---\ndescription: X\n---\n한글 {{ .Values.image }}\n";
    let body = json!({ "path": "prompts/sre/x.md", "text": text }).to_string();
    let answer = server.post("writer", "/api/v1/preview", &body).await.json();
    let fix = &answer["problems"][0]["fix"];
    assert_eq!(
        *fix,
        json!([
            { "line": 4, "column": 4, "text": "{% raw %}" },
            { "line": 4, "column": 23, "text": "{% endraw %}" },
        ])
    );
}

/// Texts that the scripts of the editor name, in `web/src`.
#[test]
fn every_text_of_the_script_is_there() {
    let table = cuebook::web::Lang::En.table();
    let root = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("web/src");
    let named = Regex::new(r#"\bt\("([a-z_]+)""#).unwrap();
    let mut keys = BTreeSet::new();
    let editor = std::fs::read_dir(root.join("editor")).unwrap();
    let files = editor
        .map(|entry| entry.unwrap().path())
        .chain([root.join("pages/edit_new.ts")]);
    for file in files {
        let text = std::fs::read_to_string(file).unwrap();
        keys.extend(named.captures_iter(&text).map(|found| found[1].to_owned()));
    }
    assert!(keys.len() > 60, "{}", keys.len());
    for key in keys {
        assert!(
            table.contains_key(&format!("editor.{key}")),
            "web/text has no editor.{key}"
        );
    }
}
