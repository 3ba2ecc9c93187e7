//! Whoever may propose asks the gate what a resource says that they may not read, and hears what they would of one that is
//! not there.

use serde_json::json;

use super::{Guarded, Person};
use crate::support::http::{Reply, send};
use crate::support::mcp::MODERN;

const PEOPLE: [Person<'static>; 1] = [(
    "prober",
    &[
        ("publisher", "prompts/duty/**"),
        ("reader", "resources/pager/**"),
        ("reader", "resources/plan/open/**"),
    ],
)];

const FILES: &[(&str, &str)] = &[
    (
        "prompts/duty/triage.md",
        "---\ndescription: D\n---\nTriage.\n",
    ),
    ("resources/pager/book.md", "The numbers.\n"),
    ("resources/merger/book.md", "The terms are secret.\n"),
    ("resources/plan/open/a.md", "The open plan.\n"),
    ("resources/plan/secret/b.md", "The terms are secret.\n"),
];

/// Prompts that bind a URI and expect a text: as it stands, by an argument that an example or its default gives, and needed
/// or not.
fn probes(uri: &str, expect: &str) -> Vec<String> {
    let bound = |uri: &str, required: bool| {
        format!("resources: [{{ name: a, uri: \"{uri}\", required: {required}, as: text }}]\n")
    };
    let body = "---\nIt says:\n\n<!-- resource: a -->\n";
    let mut probes = Vec::new();
    for required in [true, false] {
        let fixed = bound(uri, required);
        let given = bound("{{ of }}", required);
        probes.push(format!(
            "---\ndescription: D\n{fixed}examples: [{{ name: e, expect: [\"{expect}\"] }}]\n{body}"
        ));
        probes.push(format!(
            "---\ndescription: D\narguments: [{{ name: of }}]\n{given}\
             examples: [{{ name: e, arguments: {{ of: \"{uri}\" }}, expect: [\"{expect}\"] }}]\n{body}"
        ));
        probes.push(format!(
            "---\ndescription: D\narguments: [{{ name: of, default: \"{uri}\" }}]\n{given}{body}"
        ));
    }
    probes
}

/// Asks to publish a prompt, or to propose it.
async fn ask(server: &Guarded, who: &str, way: &str, prompt: &str) -> Reply {
    let ready = server.get("root", "/readyz").await.json();
    let files = json!({ "prompts/duty/probe.md": prompt });
    let mut body = json!({ "base": ready["tip"], "message": "M", "files": files });
    if way == "proposals" {
        body["title"] = "T".into();
    }
    let path = format!("/api/v1/{way}");
    server.post(who, &path, &body.to_string()).await
}

#[tokio::test(flavor = "multi_thread")]
async fn what_is_bound_and_not_read_is_refused_as_what_is_not_there() {
    let server = Guarded::start(FILES, &PEOPLE).await;
    for (hidden, absent) in [
        ("merger://book", "qqqqqq://book"),
        ("plan://secret/b", "plan://secret/q"),
    ] {
        let scheme = |uri: &str| uri.split("://").next().unwrap().to_owned();
        let said = |reply: &Reply, uri: &str| {
            let text = reply.text().replace(uri, "…");
            (reply.status, text.replace(&scheme(uri), "…"))
        };
        let (right, wrong) = ("The terms are secret.", "The terms are public.");
        let three = probes(hidden, right)
            .into_iter()
            .zip(probes(hidden, wrong))
            .zip(probes(absent, right));
        for ((right, wrong), missing) in three {
            for way in ["changes", "proposals"] {
                let missing = ask(&server, "prober", way, &missing).await;
                let expected = said(&missing, absent);
                assert_eq!(expected.0, 422, "{way}: {}", missing.text());
                for probe in [&right, &wrong] {
                    let reply = ask(&server, "prober", way, probe).await;
                    assert_eq!(said(&reply, hidden), expected, "{way}: {probe}");
                }
            }
        }
    }
    // what is read is told as ever
    let probe = |expect: &str| probes("pager://book", expect).swap_remove(1);
    let wrong = ask(&server, "prober", "changes", &probe("The letters.")).await;
    assert_eq!(wrong.status, 422, "{}", wrong.text());
    assert!(
        wrong.text().contains("does not contain"),
        "{}",
        wrong.text()
    );
    let right = ask(&server, "prober", "changes", &probe("The numbers.")).await;
    assert_eq!(right.status, 200, "{}", right.text());
}

#[tokio::test(flavor = "multi_thread")]
async fn who_reads_everything_hears_what_the_whole_library_says() {
    let server = Guarded::start(FILES, &PEOPLE).await;
    let probe = probes("merger://book", "The terms are public.").swap_remove(1);
    let refused = ask(&server, "prober", "proposals", &probe).await;
    assert!(
        refused.text().contains("is not in the library"),
        "{}",
        refused.text()
    );
    let told = ask(&server, "root", "proposals", &probe).await;
    assert_eq!(told.status, 422, "{}", told.text());
    assert!(told.text().contains("does not contain"), "{}", told.text());
    // an optional resource may be absent where all that could be there is read
    let absent = probes("pager://nothing", "It says:").swap_remove(4);
    let taken = ask(&server, "prober", "proposals", &absent).await;
    assert_eq!(taken.status, 201, "{}", taken.text());
}

#[tokio::test(flavor = "multi_thread")]
async fn what_a_prompt_includes_shows_in_its_text_and_not_as_a_file() {
    let text = |word: &str| {
        format!(
            "---\ndescription: D\nexamples: [{{ name: e }}]\n---\n{word}\n{{% include \"terms.md\" %}}\n"
        )
    };
    let partial = |word: &str| format!("{{# A note on {word}. #}}The terms are {word}.\n");
    let server = Guarded::start(
        &[
            ("prompts/duty/triage.md", &text("One.")),
            ("partials/terms.md", &partial("old")),
        ],
        &PEOPLE,
    )
    .await;
    server
        .publish(&[
            ("prompts/duty/triage.md", &text("Two.")),
            ("partials/terms.md", &partial("new")),
        ])
        .await;
    for (who, reads) in [("prober", false), ("root", true)] {
        let path = "/api/v1/prompts/triage/diff?from=v1&to=v2";
        let diff = server.get(who, path).await;
        assert_eq!(diff.status, 200, "{}", diff.text());
        let diff = diff.json();
        let (source, rendered) = (diff["source"].to_string(), diff["rendered"].to_string());
        assert!(source.contains("+Two.") && rendered.contains("+The terms are new."));
        assert_eq!(source.contains("A note on new"), reads, "{who}: {source}");
        let bearer = server.bearer(who);
        let headers = [("Authorization", &*bearer), ("Accept", "text/html")];
        let path = "/prompts/triage/diff?from=v1&to=v2";
        let page = send(server.address, "GET", path, &headers, b"").await;
        assert!(page.text().contains("The terms are"), "{who}");
        assert_eq!(page.text().contains("A note on"), reads, "{who}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_line_that_somebody_commented_on_is_not_quoted_to_who_does_not_read_it() {
    let server = Guarded::start(FILES, &PEOPLE).await;
    let bound = "---\ndescription: D\nresources: [{ name: a, uri: \"merger://book\", as: text }]\n---\n\
                 It says:\n\n<!-- resource: a -->\n";
    let opened = ask(&server, "root", "proposals", bound).await;
    assert_eq!(opened.status, 201, "{}", opened.text());
    let effect = server.get("root", "/api/v1/proposals/1/effect").await;
    assert!(effect.text().contains("The terms"), "{}", effect.text());
    for message in 0..2 {
        let path = "prompts/duty/probe.md";
        let place = json!({ "path": path, "line": 1, "example": "", "message": message });
        let body = json!({ "message": "Really?", "place": place }).to_string();
        let comments = "/api/v1/proposals/1/comments";
        let reply = server.post("root", comments, &body).await;
        assert_eq!(reply.status, 201, "{}", reply.text());
    }
    for path in ["/api/v1/proposals/1", "/proposals/1"] {
        let page = server.get("prober", path).await;
        assert_eq!(page.status, 200, "{path}: {}", page.text());
        assert!(page.text().contains("Really?"), "{path}: {}", page.text());
        assert!(
            !page.text().contains("The terms"),
            "{path}: {}",
            page.text()
        );
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_version_that_comes_back_is_asked_for_as_who_brings_it_back_sees_the_library() {
    let server = Guarded::start(FILES, &PEOPLE).await;
    let probe = |expect: &str| probes("merger://book", expect).swap_remove(0);
    for text in [
        &*probe("The terms are secret."),
        "---\ndescription: D\n---\nIt says nothing.\n",
    ] {
        server.publish(&[("prompts/duty/probe.md", text)]).await;
    }
    let back = json!({ "version": "v1", "reason": "The one before." }).to_string();
    let path = "/api/v1/prompts/probe/revert";
    let refused = server.post("prober", path, &back).await;
    assert_eq!(refused.status, 422, "{}", refused.text());
    assert!(
        refused.text().contains("this library has no"),
        "{}",
        refused.text()
    );
    let taken = server.post("root", path, &back).await;
    assert_eq!(taken.status, 200, "{}", taken.text());
}

#[tokio::test(flavor = "multi_thread")]
async fn a_commit_that_fails_is_told_without_what_is_not_read() {
    let server = Guarded::start(FILES, &PEOPLE).await;
    // a push is checked as main will be: a commit on the way to it may fail
    let work = server.work("root", "root");
    let failing = work.change(&[
        (
            "prompts/duty/triage.md",
            "---\ndescription: D\n---\nTwo.\n{% include \"merger.md\" %}\n",
        ),
        ("partials/merger.md", "{{ undeclared }}\n"),
    ]);
    let mended = "---\ndescription: D\n---\nThree.\n";
    work.change(&[
        ("prompts/duty/triage.md", mended),
        ("partials/merger.md", "The terms.\n"),
    ]);
    work.ok(&["push", "origin", "HEAD:main"]);
    let preview = json!({
        "revision": failing,
        "path": "prompts/duty/triage.md",
        "text": mended,
    });
    for (who, sees) in [("prober", false), ("root", true)] {
        let mut told = Vec::new();
        for at in ["v2", &*failing] {
            let get = json!({ "name": format!("triage@{at}"), "arguments": {} });
            let reply = server.ask(who, "/mcp", MODERN, "prompts/get", get).await;
            told.push(reply.text().to_owned());
        }
        let reply = server
            .post(who, "/api/v1/preview", &preview.to_string())
            .await;
        told.push(reply.text().to_owned());
        let page = server.get(who, "/prompts/triage?at=v2").await;
        told.push(page.text().to_owned());
        for (nth, told) in told.iter().enumerate() {
            let names = told.contains("merger") || told.contains("undeclared");
            assert_eq!(names, sees, "{who}, {nth}: {told}");
            let why = told.contains("who reads the whole library is told why");
            assert_eq!(why, !sees, "{who}, {nth}: {told}");
        }
    }
}
