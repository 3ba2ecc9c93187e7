//! People, groups and grants: what an admin changes, what nobody does, and that it is in force at once.

use serde_json::json;

use super::{Guarded, ROLES};

const FILES: &[(&str, &str)] = &[(
    "prompts/sre/triage.md",
    "---\ndescription: Triage\n---\nLook.\n",
)];

#[tokio::test(flavor = "multi_thread")]
async fn a_grant_is_in_force_at_once_and_gone_at_once() {
    let server = Guarded::start(FILES, &[("ana", &[])]).await;
    let search = "/api/v1/search?q=triage";
    assert_eq!(server.get("ana", search).await.status, 403);
    let grant = json!({ "who": "group:sre", "role": "reader", "path": "prompts/sre/**" });
    let give = server
        .post("root", "/api/v1/access/grants", &grant.to_string())
        .await;
    assert_eq!(give.json()["changed"], true, "{}", give.text());
    assert_eq!(server.get("ana", search).await.status, 403);
    let join = json!({ "group": "sre", "add": ["ana"] }).to_string();
    let joined = server.post("root", "/api/v1/access/groups", &join).await;
    assert_eq!(joined.status, 200, "{}", joined.text());
    assert_eq!(server.get("ana", search).await.status, 200);
    let me = server.get("ana", "/api/v1/access/me").await.json();
    assert_eq!(me["groups"], json!(["sre"]));
    assert_eq!(
        me["grants"],
        json!([{ "role": "reader", "path": "prompts/sre/**" }])
    );
    let leave = json!({ "group": "sre", "remove": ["ana"] }).to_string();
    server.post("root", "/api/v1/access/groups", &leave).await;
    assert_eq!(server.get("ana", search).await.status, 403);
    let audit = server.get("root", "/api/v1/audit").await.json();
    let said: Vec<(&str, &str, &str)> = audit["rows"]
        .as_array()
        .unwrap()
        .iter()
        .filter(|row| row["action"] == "grant" || row["action"] == "group")
        .map(|row| {
            let text = |name: &str| row[name].as_str().unwrap();
            (text("action"), text("subject"), text("detail"))
        })
        .collect();
    assert_eq!(
        said,
        [
            ("group", "sre", "removed ana"),
            ("group", "sre", "added ana"),
            ("grant", "group:sre", "reader at prompts/sre/**"),
        ]
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn nobody_but_an_admin_changes_anything() {
    let server = Guarded::start(FILES, &ROLES).await;
    let grant = json!({ "who": "reader", "role": "admin" }).to_string();
    let person = json!({ "name": "eve", "admin": true }).to_string();
    let disable = json!({ "disabled": true }).to_string();
    for name in ["reader", "author", "reviewer", "publisher"] {
        for (path, body) in [
            ("/api/v1/access/grants", &grant),
            ("/api/v1/access/people", &person),
            ("/api/v1/access/people/root", &disable),
        ] {
            let reply = server.post(name, path, body).await;
            assert_eq!(reply.status, 403, "{name} {path}: {}", reply.text());
        }
    }
    assert_eq!(
        server.get("reader", "/api/v1/access/me").await.json()["grants"],
        json!([{ "role": "reader", "path": "**" }])
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn an_admin_stays() {
    let server = Guarded::start(FILES, &[("ana", &[("admin", "**")])]).await;
    let disable = json!({ "disabled": true }).to_string();
    let enable = json!({ "disabled": false }).to_string();
    let of = |name: &str| format!("/api/v1/access/people/{name}");
    let first = server.post("root", &of("ana"), &disable).await;
    assert_eq!(first.status, 200, "{}", first.text());
    assert_eq!(server.get("ana", "/api/v1/access/me").await.status, 401);
    let last = server.post("root", &of("root"), &disable).await;
    assert_eq!(last.status, 409, "{}", last.text());
    let take = json!({ "who": "root", "role": "admin" }).to_string();
    let taken = server
        .post("root", "/api/v1/access/grants/revoke", &take)
        .await;
    assert_eq!(taken.status, 409, "{}", taken.text());
    server.post("root", &of("ana"), &enable).await;
    assert_eq!(server.get("ana", "/api/v1/access/me").await.status, 200);
    let taken = server
        .post("root", "/api/v1/access/grants/revoke", &take)
        .await;
    assert_eq!(taken.status, 200, "{}", taken.text());
    assert_eq!(
        server.get("root", "/api/v1/access/people").await.status,
        403
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn what_cannot_be_is_said_in_one_line() {
    let server = Guarded::start(FILES, &[("ana", &[])]).await;
    let check = |path: &'static str, body: serde_json::Value, status: u16, text: &'static str| {
        let server = &server;
        async move {
            let reply = server.post("root", path, &body.to_string()).await;
            assert_eq!(reply.status, status, "{body}: {}", reply.text());
            let detail = reply.json()["detail"].as_str().unwrap().to_owned();
            assert!(detail.contains(text) && !detail.contains('\n'), "{detail}");
        }
    };
    let people = "/api/v1/access/people";
    check(people, json!({ "name": "ANA" }), 409, "ana is known").await;
    check(people, json!({ "name": "a b" }), 422, "is no name").await;
    check(
        people,
        json!({ "name": "everyone" }),
        422,
        "means somebody else",
    )
    .await;
    check(
        people,
        json!({ "name": "x", "email": "x" }),
        422,
        "no address",
    )
    .await;
    let grants = "/api/v1/access/grants";
    check(
        grants,
        json!({ "who": "bo", "role": "reader" }),
        404,
        "nobody is called",
    )
    .await;
    check(
        grants,
        json!({ "who": "ana", "role": "boss" }),
        422,
        "there are reader",
    )
    .await;
    let path = json!({ "who": "ana", "role": "reader", "path": "../x" });
    check(grants, path, 422, "no path of a library").await;
    let all = json!({ "who": "everyone", "role": "admin" });
    check(grants, all, 422, "everyone cannot be an admin").await;
}
