//! Lists come in pages, whose cursors lead through all of it once.

use serde_json::{Value, json};

use crate::access::{Guarded, ROLES};

fn prompt(text: &str) -> String {
    format!("---\ndescription: D\n---\n{text}\n")
}

/// What a list holds when it is read a page of `limit` at a time, and how many pages that took.
pub(super) async fn walked(
    server: &Guarded,
    path: &str,
    list: &str,
    limit: usize,
) -> (Vec<Value>, usize) {
    let (mut out, mut pages, mut cursor) = (Vec::new(), 0, None::<String>);
    loop {
        let cursor_text = cursor.map_or(String::new(), |cursor| format!("&cursor={cursor}"));
        let path = format!("{path}?limit={limit}{cursor_text}");
        let reply = server.get("root", &path).await;
        assert_eq!(reply.status, 200, "{path}: {}", reply.text());
        let page = reply.json();
        let entries = page[list].as_array().unwrap();
        assert!(entries.len() <= limit, "{path}");
        out.extend(entries.iter().cloned());
        pages += 1;
        assert!(pages < 100, "{path} has no end");
        match page["next_cursor"].as_str() {
            Some(next) => cursor = Some(next.to_owned()),
            None => return (out, pages),
        }
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_list_that_is_read_page_by_page_is_the_list() {
    let path = "prompts/sre/triage.md";
    let server = Guarded::start(&[(path, &prompt("1"))], &ROLES).await;
    for text in ["2", "3", "4"] {
        server.publish(&[(path, &prompt(text))]).await;
    }
    for group in ["night", "day", "late"] {
        let ask = json!({ "group": group, "add": ["reader", "author"] });
        let reply = server
            .post("root", "/api/v1/access/groups", &ask.to_string())
            .await;
        assert_eq!(reply.status, 200, "{}", reply.text());
    }
    for (path, list, least) in [
        ("/api/v1/access/people", "people", 6),
        ("/api/v1/access/groups", "groups", 3),
        ("/api/v1/access/grants", "grants", 6),
        ("/api/v1/access/tokens", "tokens", 6),
        ("/api/v1/prompts/triage/versions", "versions", 4),
        ("/api/v1/audit", "rows", 5),
        ("/api/v1/search", "hits", 1),
        ("/api/v1/prompts", "prompts", 1),
    ] {
        let whole = server.get("root", path).await.json();
        let whole = whole[list].as_array().unwrap().clone();
        assert!(whole.len() >= least, "{path}: {}", whole.len());
        for limit in [1, 2, 200] {
            let (walked, pages) = walked(&server, path, list, limit).await;
            let entries = |list: &[Value]| -> Vec<Value> {
                // when a token was used last is another at each request
                list.iter()
                    .cloned()
                    .map(|mut entry| {
                        if let Some(entry) = entry.as_object_mut() {
                            entry.remove("used");
                        }
                        entry
                    })
                    .collect()
            };
            assert_eq!(entries(&walked), entries(&whole), "{path} by {limit}");
            assert!(pages >= whole.len().div_ceil(limit), "{path} by {limit}");
        }
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_page_stays_where_it_is_when_the_list_changes() {
    let server = Guarded::start(&[], &ROLES).await;
    let first = server.get("root", "/api/v1/access/people?limit=2").await;
    let first = first.json();
    let names = |page: &Value| -> Vec<String> {
        let people = page["people"].as_array().unwrap().iter();
        people
            .map(|person| person["name"].as_str().unwrap().to_owned())
            .collect()
    };
    assert_eq!(names(&first), ["admin", "author"]);
    let ask = json!({ "name": "aaron" }).to_string();
    let added = server.post("root", "/api/v1/access/people", &ask).await;
    assert_eq!(added.status, 200, "{}", added.text());
    let cursor = first["next_cursor"].as_str().unwrap();
    let path = format!("/api/v1/access/people?limit=2&cursor={cursor}");
    let second = server.get("root", &path).await.json();
    assert_eq!(names(&second), ["publisher", "reader"]);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_page_that_cannot_be_is_refused() {
    let server = Guarded::start(&[], &[]).await;
    for query in [
        "limit=0",
        "limit=1001",
        "limit=many",
        "cursor=%25",
        "cursor=_w",
        "page=2",
    ] {
        let path = format!("/api/v1/access/people?{query}");
        let reply = server.get("root", &path).await;
        assert_eq!(reply.status, 400, "{query}: {}", reply.text());
    }
}
