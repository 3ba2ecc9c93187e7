//! Prompts as they are served, one and as a list.

use serde_json::{Value, json};

use crate::access::{Guarded, Person};
use crate::support::http::send;

const TRIAGE: &str = "---\ntitle: Triage\ndescription: D\ntags: [duty, night]\narguments:\n  - name: service\n    description: Whose\n    required: true\n    values: { list: [mail], resource: \"runbook://{service}\" }\n  - name: severity\n    default: HIGH\nresources:\n  - { name: runbook, uri: \"runbook://{{ service }}\", required: false }\n  - { name: style, uri: \"plan://style\", required: false, as: link }\nexamples:\n  - name: mail is down\n    arguments: { service: mail }\n---\nLook at {{ service }}, {{ severity }}.{% set told = severity %}{{ told }}\n";
const PLAIN: &str = "---\ndescription: D\n---\nPlain.\n";

const HALF: &[Person<'static>] = &[("half", &[("reader", "prompts/sre/**")])];

async fn server() -> Guarded {
    let server = Guarded::start(
        &[
            ("prompts/sre/triage.md", TRIAGE),
            ("prompts/sre/night/zebra.md", PLAIN),
            ("prompts/plan/merger.md", PLAIN),
            ("resources/runbook/mail.md", "Restart it.\n"),
            ("resources/plan/style.md", "Plainly.\n"),
        ],
        HALF,
    )
    .await;
    server.counted("triage").await;
    let ask = json!({ "label": "production", "version": "v1", "reason": "r" });
    let path = "/api/v1/prompts/triage/label";
    let reply = server.post("root", path, &ask.to_string()).await;
    assert_eq!(reply.status, 200, "{}", reply.text());
    server
}

fn names(list: &Value) -> Vec<&str> {
    let list = list.as_array().unwrap().iter();
    list.map(|entry| entry["name"].as_str().unwrap()).collect()
}

#[tokio::test(flavor = "multi_thread")]
async fn a_prompt_is_told_as_it_is_served() {
    let server = server().await;
    let reply = server.get("root", "/api/v1/prompts/triage").await;
    assert_eq!(reply.status, 200, "{}", reply.text());
    let found = reply.json();
    let ready = server.get("root", "/readyz").await.json();
    for (member, value) in [
        ("name", json!("triage")),
        ("title", json!("Triage")),
        ("description", json!("D")),
        ("path", json!("prompts/sre/triage.md")),
        ("tags", json!(["duty", "night"])),
        ("examples", json!(["mail is down"])),
        ("lane", json!("worker")),
        ("labels", json!([{ "name": "production", "version": 1 }])),
        ("served", json!(1)),
        ("latest", json!(1)),
        ("revision", ready["served"].clone()),
    ] {
        assert_eq!(found[member], value, "{member}: {found}");
    }
    let reason = found["reason"].as_str().unwrap();
    assert!(reason.starts_with("prompts/sre/triage.md:"), "{reason}");
    let (service, severity) = (&found["arguments"][0], &found["arguments"][1]);
    assert_eq!(service["sources"], json!(["list", "resource"]));
    assert_eq!(
        (&service["required"], &service["description"]),
        (&json!(true), &json!("Whose"))
    );
    assert_eq!(
        (&severity["default"], &severity["sources"]),
        (&json!("HIGH"), &json!([]))
    );
    assert_eq!(names(&found["resources"]), ["runbook", "style"]);
    assert_eq!(found["resources"][1]["embed"], "link");
    // its tag is what its labels are moved with
    let versions = server.get("root", "/api/v1/prompts/triage/versions").await;
    assert!(reply.header("etag").is_some());
    assert_eq!(reply.header("etag"), versions.header("etag"));
}

#[tokio::test(flavor = "multi_thread")]
async fn what_somebody_may_not_read_is_in_no_prompt_and_no_list() {
    let server = server().await;
    let found = server.get("half", "/api/v1/prompts/triage").await.json();
    assert_eq!(names(&found["resources"]), ["runbook"], "{found}");
    let hidden = server.get("half", "/api/v1/prompts/merger").await;
    let absent = server.get("half", "/api/v1/prompts/nought").await;
    assert_eq!((hidden.status, absent.status), (404, 404));
    assert_eq!(
        hidden.text().replace("merger", "…"),
        absent.text().replace("nought", "…")
    );
    let cases: [(&str, &str, &[&str]); 7] = [
        ("root", "", &["merger", "triage", "zebra"]),
        ("half", "", &["triage", "zebra"]),
        ("root", "?folder=sre", &["triage", "zebra"]),
        ("root", "?folder=sre/night", &["zebra"]),
        ("root", "?folder=nowhere", &[]),
        ("root", "?tag=night", &["triage"]),
        ("half", "?folder=plan", &[]),
    ];
    for (who, query, expected) in cases {
        let path = format!("/api/v1/prompts{query}");
        let reply = server.get(who, &path).await;
        assert_eq!(reply.status, 200, "{who} {path}: {}", reply.text());
        let listed = reply.json();
        assert_eq!(names(&listed["prompts"]), expected, "{who} {path}");
        assert_eq!(listed["next_cursor"], json!(null));
    }
    // an entry of the list is what is told of the prompt alone
    let listed = server.get("half", "/api/v1/prompts?limit=1").await.json();
    assert_eq!(listed["prompts"], json!([found]));
    assert!(listed["next_cursor"].is_string());
    let nobody = send(server.address, "GET", "/api/v1/prompts", &[], b"").await;
    assert_eq!(nobody.status, 401);
}
