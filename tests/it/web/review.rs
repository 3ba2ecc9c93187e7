//! The pages of proposals, as a browser without scripts uses them.

use regex::Regex;
use serde_json::{Value, json};

use super::BROWSER;
use crate::access::Guarded;
use crate::support::http::{Reply, send};

const HOSTILE: &str = "<script>alert(1)</script>\u{202e}\"><img src=x onerror=alert(2)>";

pub(super) fn prompt(text: &str) -> String {
    format!("---\ndescription: D\n---\n{text}\n")
}

pub(super) async fn server() -> Guarded {
    let files = [
        ("prompts/sre/after.md", &*prompt("Write it down.")),
        (
            "cuebook.toml",
            "[[approval]]\npaths = [\"prompts/sre/**\"]\n",
        ),
    ];
    let people: [(&str, &[(&str, &str)]); 4] = [
        ("ann", &[("author", "**")]),
        ("mina", &[("reviewer", "**")]),
        ("pub", &[("publisher", "**")]),
        ("outside", &[("publisher", "prompts/review/**")]),
    ];
    Guarded::start(&files, &people).await
}

pub(super) async fn open(server: &Guarded, name: &str, path: &str, lang: &str) -> Reply {
    let bearer = server.bearer(name);
    let headers = [
        ("Authorization", &*bearer),
        ("Accept", BROWSER),
        ("Accept-Language", lang),
    ];
    send(server.address, "GET", path, &headers, b"").await
}

/// Sends a form of a page with its token, as its button does.
pub(super) async fn press(
    server: &Guarded,
    name: &str,
    path: &str,
    fields: &[(&str, &str)],
) -> Reply {
    let page = open(server, name, path, "en").await;
    let token = page.text().split("name=\"csrf\" value=\"").nth(1).unwrap();
    let token = token.split('"').next().unwrap().to_owned();
    submit(server, name, path, &token, fields).await
}

async fn submit(
    server: &Guarded,
    name: &str,
    path: &str,
    token: &str,
    fields: &[(&str, &str)],
) -> Reply {
    let encode = |text: &str| -> String { text.bytes().map(|b| format!("%{b:02X}")).collect() };
    let mut body = format!("csrf={}", encode(token));
    for (name, value) in fields {
        body.push_str(&format!("&{}={}", encode(name), encode(value)));
    }
    let bearer = server.bearer(name);
    let headers = [
        ("Authorization", &*bearer),
        ("Accept", BROWSER),
        ("Content-Type", "application/x-www-form-urlencoded"),
    ];
    send(server.address, "POST", path, &headers, body.as_bytes()).await
}

pub(super) async fn propose(server: &Guarded, title: &str, message: &str, text: &str) -> Value {
    let ready = server.get("root", "/readyz").await.json();
    let body = json!({
        "title": title,
        "message": message,
        "base": ready["tip"],
        "files": { "prompts/sre/after.md": prompt(text) },
    });
    let reply = server
        .post("ann", "/api/v1/proposals", &body.to_string())
        .await;
    assert_eq!(reply.status, 201, "{}", reply.text());
    reply.json()
}

#[tokio::test(flavor = "multi_thread")]
async fn a_proposal_is_read_judged_and_merged_without_scripts() {
    let server = server().await;
    let empty = open(&server, "ann", "/proposals", "en").await;
    assert!(
        empty.text().contains("git push origin HEAD:refs/for/main"),
        "{}",
        empty.text()
    );
    let opened = propose(&server, "Say when", "Because.", "Write it down today.").await;
    let head = opened["head"].as_str().unwrap();
    let list = open(&server, "mina", "/proposals", "en").await;
    assert!(list.text().contains("href=\"/proposals/1\"") && list.text().contains("Say when"));
    let inbox = open(&server, "mina", "/inbox", "ko").await;
    assert!(inbox.text().contains("내 검토를 기다리는 제안") && inbox.text().contains("Say when"));
    // a time has its zone, and who speaks is said in words
    assert!(inbox.text().contains(" UTC</time>"), "{}", inbox.text());
    let korean = open(&server, "mina", "/proposals/1", "ko").await;
    let role = "<p class=\"role\">사용자</p>";
    assert!(korean.text().contains(role), "{}", korean.text());
    let page = open(&server, "mina", "/proposals/1", "en").await;
    let html = page.text();
    assert_eq!(page.status, 200, "{html}");
    for shown in [
        "<del>Write it down.</del>",
        "<ins>Write it down today.</ins>",
        "git fetch origin refs/proposals/1/head",
        "takes 1 approval of the newest revision and has 0",
        "value=\"approve\"",
        "<button class=\"primary\" disabled>",
        "/after</code>",
    ] {
        assert!(html.contains(shown), "no {shown} in {html}");
    }
    // its author has no button to approve it, and cannot without one
    let own = open(&server, "ann", "/proposals/1", "en").await;
    assert!(!own.text().contains("value=\"approve\""));
    let forged = press(
        &server,
        "ann",
        "/proposals/1",
        &[("do", "approve"), ("head", head)],
    )
    .await;
    assert_eq!(forged.status, 403, "{}", forged.text());
    // a comment on a line, from the link of its number
    let at = open(&server, "mina", "/proposals/1?at=f0n4", "en").await;
    assert!(
        at.text().contains("class=\"new-comment stack\""),
        "{}",
        at.text()
    );
    let place = [
        ("do", "comment"),
        ("message", "When?"),
        ("path", "prompts/sre/after.md"),
        ("side", "new"),
        ("line", "4"),
    ];
    let said = press(&server, "mina", "/proposals/1", &place).await;
    assert_eq!(
        (said.status, said.header("location")),
        (303, Some("/proposals/1#t1"))
    );
    let resolve = [("do", "resolve"), ("thread", "1")];
    assert_eq!(
        press(&server, "ann", "/proposals/1", &resolve).await.status,
        303
    );
    let page = open(&server, "ann", "/proposals/1", "en").await;
    assert!(page.text().contains("Resolved by ann"), "{}", page.text());
    // a form without the token of the page does nothing
    let approve = [("do", "approve"), ("head", head), ("message", "Good.")];
    assert_eq!(
        submit(&server, "mina", "/proposals/1", "AAAA", &approve)
            .await
            .status,
        403
    );
    // one of another head says so, and what was typed comes back
    let old = [
        ("do", "approve"),
        ("head", "0123456"),
        ("message", "Typed <b>"),
    ];
    let refused = press(&server, "mina", "/proposals/1", &old).await;
    assert_eq!(refused.status, 409);
    assert!(
        refused.text().contains("has moved on to"),
        "{}",
        refused.text()
    );
    assert!(
        refused.text().contains(">Typed &lt;b&gt;</textarea>"),
        "{}",
        refused.text()
    );
    assert_eq!(
        press(&server, "mina", "/proposals/1", &approve)
            .await
            .status,
        303
    );
    let page = open(&server, "pub", "/proposals/1", "en").await;
    assert!(
        page.text()
            .contains("<button class=\"primary\" name=\"do\" value=\"merge\">")
    );
    let merge = [("do", "merge"), ("head", head)];
    let merged = press(&server, "pub", "/proposals/1", &merge).await;
    assert_eq!(
        (merged.status, merged.header("location")),
        (303, Some("/proposals/1"))
    );
    let page = open(&server, "pub", "/proposals/1", "ko").await;
    assert!(page.text().contains("병합됨"), "{}", page.text());
    assert!(
        open(&server, "pub", "/proposals?state=merged", "en")
            .await
            .text()
            .contains("Say when")
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn conflicts_are_resolved_in_the_page() {
    let server = server().await;
    propose(&server, "Mine", "", "Mine.").await;
    let theirs = propose(&server, "Theirs", "", "Theirs.").await;
    let head = theirs["head"].as_str().unwrap();
    let approve = [("do", "approve"), ("head", head)];
    assert_eq!(
        press(&server, "mina", "/proposals/2", &approve)
            .await
            .status,
        303
    );
    let merge = [("do", "merge"), ("head", head)];
    assert_eq!(
        press(&server, "pub", "/proposals/2", &merge).await.status,
        303
    );
    let page = open(&server, "ann", "/proposals/1", "en").await;
    assert!(
        page.text().contains("href=\"/proposals/1/conflicts\""),
        "{}",
        page.text()
    );
    let path = "/proposals/1/conflicts";
    let page = open(&server, "ann", path, "en").await;
    let html = page.text();
    for text in ["Mine.", "Theirs.", "Write it down."] {
        assert!(html.contains(text), "no {text} in {html}");
    }
    let hidden = |name: &str| {
        let rest = html
            .split(&format!("name=\"{name}\" value=\""))
            .nth(1)
            .unwrap();
        rest.split('"').next().unwrap().to_owned()
    };
    let (head, main) = (hidden("head"), hidden("main"));
    // both stand in the form, and while the markers do it is not saved
    assert!(html.contains("below: main"), "{html}");
    let marked = [
        ("head", &*head),
        ("main", &*main),
        ("file:prompts/sre/after.md", ">>>>>>> main\r\nMine."),
    ];
    let refused = press(&server, "ann", path, &marked).await;
    assert_eq!(refused.status, 422);
    assert!(refused.text().contains("Markers of a conflict"));
    // a browser sends CRLF
    let text = prompt("Both.").replace('\n', "\r\n");
    let fields = [
        ("head", &*head),
        ("main", &*main),
        ("file:prompts/sre/after.md", &*text),
    ];
    let saved = press(&server, "ann", path, &fields).await;
    assert_eq!(
        (saved.status, saved.header("location")),
        (303, Some("/proposals/1")),
        "{}",
        saved.text()
    );
    let after = server.get("ann", "/api/v1/proposals/1").await.json();
    assert_eq!(
        (&after["conflicts"], &after["revision"]),
        (&json!([]), &json!(2))
    );
    let page = open(&server, "ann", "/proposals/1", "en").await;
    assert!(page.text().contains("<ins>Both.</ins>"), "{}", page.text());
    // again, with what is old by now: what was typed stays
    let again = press(&server, "ann", path, &fields).await;
    assert_eq!(again.status, 409);
    let html = again.text();
    for text in ["has moved on to", "name=\"seen\"", "Both.", &*head] {
        assert!(html.contains(text), "no {text} in {html}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn what_people_write_is_text_in_every_place() {
    let server = server().await;
    let title = HOSTILE.replace('\u{202e}', "");
    let opened = propose(&server, &title, HOSTILE, HOSTILE).await;
    let head = opened["head"].as_str().unwrap();
    let comment =
        json!({ "message": HOSTILE, "place": { "path": "prompts/sre/after.md", "line": 4 } });
    let path = "/api/v1/proposals/1/comments";
    assert_eq!(
        server.post("mina", path, &comment.to_string()).await.status,
        201
    );
    let review = json!({ "verdict": "request-changes", "head": head, "message": HOSTILE });
    let path = "/api/v1/proposals/1/reviews";
    assert_eq!(
        server.post("mina", path, &review.to_string()).await.status,
        201
    );
    // what is one's own is edited as it is
    let edited = Regex::new("(?s)<textarea.*?</textarea>").unwrap();
    for path in [
        "/proposals",
        "/inbox",
        "/proposals/1",
        "/proposals/1?at=f0n4",
        "/proposals/1/conflicts",
    ] {
        for lang in ["en", "ko"] {
            let page = open(&server, "pub", path, lang).await;
            assert_eq!(page.status, 200, "{path}: {}", page.text());
            let shown = edited.replace_all(page.text(), "");
            for hostile in [
                "<script>alert",
                "<img src=x",
                "\u{202e}",
                " style=",
                "onclick=",
            ] {
                assert!(
                    !shown.contains(hostile),
                    "{path} has {hostile}: {}",
                    page.text()
                );
            }
        }
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn what_somebody_may_not_read_is_no_page() {
    let server = server().await;
    propose(&server, "Hidden title", "", "Hidden.").await;
    assert!(
        !open(&server, "outside", "/proposals", "en")
            .await
            .text()
            .contains("Hidden title")
    );
    for path in [
        "/proposals/1",
        "/proposals/1/conflicts",
        "/proposals/9",
        "/proposals/x",
    ] {
        let page = open(&server, "outside", path, "en").await;
        assert_eq!(page.status, 404, "{path}");
        assert!(page.text().contains("There is nothing here"), "{path}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn what_is_ones_own_is_edited_without_scripts() {
    let server = server().await;
    propose(&server, "Mine", "Because.", "Mine.").await;
    let path = "/proposals/1";
    for (who, words) in [("ann", "Of ann."), ("mina", "Of mina.")] {
        let said = [("do", "comment"), ("message", words)];
        assert_eq!(press(&server, who, path, &said).await.status, 303);
    }
    // a button for one's own comment alone
    let page = open(&server, "mina", path, "en").await;
    assert!(page.text().contains("name=\"comment\" value=\"2\""));
    assert!(!page.text().contains("name=\"comment\" value=\"1\""));
    assert!(!page.text().contains("value=\"rename\""));
    let edit = |id: &'static str, words: &'static str| {
        [("do", "edit"), ("comment", id), ("message", words)]
    };
    let others = press(&server, "mina", path, &edit("1", "Not hers <b>")).await;
    assert_eq!(others.status, 403, "{}", others.text());
    let empty = press(&server, "mina", path, &edit("2", " ")).await;
    assert_eq!(empty.status, 422, "{}", empty.text());
    let done = press(&server, "mina", path, &edit("2", "Now <i>\r\nthis.")).await;
    assert_eq!(
        (done.status, done.header("location")),
        (303, Some("/proposals/1#c2")),
        "{}",
        done.text()
    );
    let seen = server.get("ann", "/api/v1/proposals/1").await.json();
    let comment = |n: usize| seen["threads"][n]["comments"][0].clone();
    assert_eq!(
        (&comment(0)["message"], &comment(0)["edited"]),
        (&json!("Of ann."), &json!(false))
    );
    assert_eq!(
        (&comment(1)["message"], &comment(1)["edited"]),
        (&json!("Now <i>\nthis."), &json!(true))
    );
    let page = open(&server, "ann", path, "en").await;
    assert!(page.text().contains(">edited</span>"), "{}", page.text());
    // the title and what is said with it: by its author, or by who may publish it, who have seen it as it is
    let tag = seen["tag"].as_str().unwrap().to_owned();
    let rename = |tag: &str, title: &str| {
        let fields = [
            ("do", "rename"),
            ("tag", tag),
            ("title", title),
            ("message", "More <u>."),
        ];
        fields.map(|(name, value)| (name, value.to_owned()))
    };
    let send = async |who: &str, fields: [(&'static str, String); 4]| {
        let fields = fields.each_ref().map(|(name, value)| (*name, &**value));
        press(&server, who, path, &fields).await
    };
    assert_eq!(send("mina", rename(&tag, "Hers")).await.status, 403);
    assert_eq!(send("ann", rename(&tag, " ")).await.status, 422);
    assert_eq!(send("ann", rename(&tag, "Better")).await.status, 303);
    let late = send("pub", rename(&tag, "Late \"title\"")).await;
    assert_eq!(late.status, 412);
    for shown in [
        "value=\"Late &quot;title&quot;\"",
        "More &lt;u&gt;.</textarea>",
        "<bdi>Better</bdi>",
    ] {
        assert!(late.text().contains(shown), "no {shown} in {}", late.text());
    }
    let now = server.get("pub", "/api/v1/proposals/1").await.json();
    assert_eq!(
        (&now["title"], &now["message"]),
        (&json!("Better"), &json!("More <u>."))
    );
    let again = send("pub", rename(now["tag"].as_str().unwrap(), "Best")).await;
    assert_eq!(again.status, 303, "{}", again.text());
}

#[tokio::test(flavor = "multi_thread")]
async fn every_button_of_a_proposal_works_without_scripts() {
    let server = server().await;
    let opened = propose(&server, "Mine", "", "Mine.").await;
    let head = opened["head"].as_str().unwrap();
    let path = "/proposals/1";
    let state = async || server.get("pub", "/api/v1/proposals/1").await.json();
    // each page has the button that is pressed, and what it does is done
    let press_seen = async |who: &str, fields: &[(&str, &str)]| {
        let page = open(&server, who, path, "en").await;
        let button = format!("value=\"{}\"", fields[0].1);
        assert!(
            page.text().contains(&button),
            "{who}: no {button} in {}",
            page.text()
        );
        let done = press(&server, who, path, fields).await;
        assert_eq!(done.status, 303, "{}", done.text());
        done.header("location").unwrap().to_owned()
    };
    press_seen("mina", &[("do", "comment"), ("message", "Hm.")]).await;
    let answered = press_seen(
        "ann",
        &[("do", "comment"), ("thread", "1"), ("message", "So.")],
    )
    .await;
    assert_eq!(answered, "/proposals/1#t1");
    press_seen("ann", &[("do", "resolve"), ("thread", "1")]).await;
    press_seen("ann", &[("do", "unresolve"), ("thread", "1")]).await;
    let seen = state().await;
    assert_eq!(seen["threads"][0]["comments"][1]["message"], "So.");
    assert_eq!(seen["threads"][0]["resolved_by"], Value::Null);
    press_seen(
        "mina",
        &[
            ("do", "request-changes"),
            ("head", head),
            ("message", "No."),
        ],
    )
    .await;
    assert_eq!(state().await["reviews"][0]["verdict"], "request-changes");
    press_seen("ann", &[("do", "close")]).await;
    assert_eq!(state().await["state"], "closed");
    press_seen("ann", &[("do", "reopen")]).await;
    assert_eq!(state().await["state"], "open");
    press_seen("mina", &[("do", "approve"), ("head", head)]).await;
    press_seen("pub", &[("do", "merge"), ("head", head)]).await;
    assert_eq!(state().await["state"], "merged");
    let revert = press_seen("pub", &[("do", "revert"), ("message", "It was wrong.")]).await;
    assert_eq!(revert, "/proposals/2");
    let second = server.get("pub", "/api/v1/proposals/2").await.json();
    assert_eq!(second["title"], "Revert proposal 1: Mine");
}
