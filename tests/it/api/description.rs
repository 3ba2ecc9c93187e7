//! The description of the API is true of the server, and the page of it shows all of it.

use std::collections::BTreeSet;

use cuebook::access::ROUTES;
use cuebook::api::openapi;
use serde_json::Value;

use crate::access::Guarded;
use crate::support::http::send;

/// Methods that a URL may take.
const METHODS: [&str; 5] = ["get", "post", "patch", "put", "delete"];

fn document() -> Value {
    serde_json::to_value(openapi::document()).unwrap()
}

/// Every operation: its URL, its method and what is said of it.
fn operations(document: &Value) -> Vec<(String, String, Value)> {
    let mut out = Vec::new();
    for (path, item) in document["paths"].as_object().unwrap() {
        for (method, operation) in item.as_object().unwrap() {
            assert!(METHODS.contains(&&**method), "{path}: {method}");
            out.push((path.clone(), method.clone(), operation.clone()));
        }
    }
    out
}

/// Every `$ref` of a value.
fn references(value: &Value, out: &mut BTreeSet<String>) {
    match value {
        Value::Object(members) => {
            for (name, member) in members {
                match member {
                    Value::String(to) if name == "$ref" => {
                        out.insert(to.clone());
                    }
                    member => references(member, out),
                }
            }
        }
        Value::Array(entries) => entries.iter().for_each(|entry| references(entry, out)),
        _ => {}
    }
}

#[test]
fn every_url_of_the_api_is_described() {
    let document = document();
    let described: BTreeSet<&str> = document["paths"]
        .as_object()
        .unwrap()
        .keys()
        .map(String::as_str)
        .collect();
    let rows: BTreeSet<&str> = ROUTES
        .iter()
        .map(|route| route.path)
        .filter(|path| path.starts_with("/api/v1/"))
        .collect();
    assert_eq!(described, rows);
}

#[test]
fn the_description_is_whole() {
    let document = document();
    assert_eq!(document["openapi"], "3.1.0");
    assert_eq!(document["servers"][0]["url"], "/");
    let schemes = &document["components"]["securitySchemes"];
    assert_eq!(schemes["token"]["scheme"], "bearer");
    assert_eq!(schemes["session"]["in"], "cookie");
    let operations = operations(&document);
    assert!(operations.len() >= 40, "{}", operations.len());
    let mut ids = BTreeSet::new();
    for (path, method, operation) in &operations {
        let id = operation["operationId"].as_str().unwrap();
        assert!(ids.insert(id), "{id} twice");
        assert!(operation["summary"].is_string(), "{method} {path}");
        assert!(operation["tags"][0].is_string(), "{method} {path}");
        let parameters = operation["parameters"].as_array();
        let named = parameters.into_iter().flatten().filter_map(|parameter| {
            let in_path = parameter["in"] == "path";
            parameter["name"].as_str().filter(|_| in_path)
        });
        let named: BTreeSet<String> = named.map(|name| format!("{{{name}}}")).collect();
        let placed = path.split('/').filter(|part| part.starts_with('{'));
        let placed: BTreeSet<String> = placed.map(str::to_owned).collect();
        assert_eq!(named, placed, "{method} {path}");
        let answers = operation["responses"].as_object().unwrap();
        assert!(answers.keys().any(|status| status.starts_with('2')));
        for (status, answer) in answers.iter().filter(|(s, _)| !s.starts_with('2')) {
            let problem = &answer["content"]["application/problem+json"]["schema"]["$ref"];
            assert_eq!(problem, "#/components/schemas/Problem", "{path} {status}");
        }
        if operation["requestBody"].is_object() {
            for status in ["400", "408", "413", "415"] {
                assert!(answers.contains_key(status), "{method} {path} {status}");
            }
        }
    }
    let mut named = BTreeSet::new();
    references(&document, &mut named);
    assert!(named.len() > 40, "{}", named.len());
    for name in named {
        let place = name.strip_prefix('#').unwrap();
        assert!(document.pointer(place).is_some(), "{name} is not there");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn urls_take_the_methods_that_are_described_and_no_others() {
    let files = [("prompts/a.md", "---\ndescription: D\n---\nA.\n")];
    let server = Guarded::start(&files, &[]).await;
    let document = document();
    let described: BTreeSet<(String, String)> = operations(&document)
        .into_iter()
        .map(|(path, method, _)| (path, method))
        .collect();
    let bearer = server.bearer("root");
    let headers = [("Authorization", &*bearer)];
    for path in document["paths"].as_object().unwrap().keys() {
        let url = path.replace("{number}", "1").replace("{id}", "0");
        let url = url.replace("{name}", "nobody-of-this-name");
        for method in METHODS {
            let upper = method.to_uppercase();
            let reply = send(server.address, &upper, &url, &headers, b"").await;
            assert_eq!(
                reply.status != 405,
                described.contains(&(path.clone(), method.to_owned())),
                "{method} {path}: {}",
                reply.status
            );
            if reply.status >= 400 {
                let kind = reply.header("content-type");
                assert_eq!(kind, Some("application/problem+json"), "{method} {path}");
                assert_eq!(reply.json()["status"], reply.status, "{method} {path}");
                assert!(reply.json()["detail"].is_string(), "{method} {path}");
            }
        }
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_parameter_that_is_not_described_is_refused() {
    let server = Guarded::start(&[], &[]).await;
    let bearer = server.bearer("root");
    let headers = [("Authorization", &*bearer)];
    for (path, method, operation) in operations(&document()) {
        let url = path.replace("{number}", "1").replace("{id}", "0");
        let url = url.replace("{name}", "nobody-of-this-name");
        let method = method.to_uppercase();
        let ask = async |query: &str| {
            let url = format!("{url}?{query}");
            send(server.address, &method, &url, &headers, b"").await
        };
        let reply = ask("no%20such=1").await;
        assert_eq!(reply.status, 400, "{method} {path}: {}", reply.text());
        let detail = reply.json()["detail"].as_str().unwrap().to_owned();
        assert!(detail.contains("no parameter `no such`"), "{detail}");
        assert!(operation["responses"]["400"].is_object(), "{method} {path}");
        // one that is described is not: what it is refused for, if at all, is something else
        let parameters = operation["parameters"].as_array().into_iter().flatten();
        for parameter in parameters.filter(|parameter| parameter["in"] == "query") {
            let name = parameter["name"].as_str().unwrap();
            assert!(detail.contains(name), "{method} {path}: {detail}");
            let reply = ask(&format!("{name}=")).await;
            assert!(
                !reply.text().contains("no parameter"),
                "{method} {path} {name}"
            );
        }
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn what_layers_refuse_is_a_problem_below_api_alone() {
    let server = Guarded::start(&[], &[("reader", &[("reader", "**")])]).await;
    let problem = |reply: &crate::support::http::Reply, status: u16| {
        assert_eq!(reply.status, status, "{}", reply.text());
        assert_eq!(
            reply.header("content-type"),
            Some("application/problem+json")
        );
        assert_eq!(reply.json()["status"], status);
        reply.json()["detail"].as_str().unwrap().to_owned()
    };
    let nobody = send(server.address, "GET", "/api/v1/search", &[], b"").await;
    assert!(problem(&nobody, 401).contains("token"));
    assert!(nobody.header("www-authenticate").is_some());
    let reader = server.get("reader", "/api/v1/audit").await;
    assert!(problem(&reader, 403).contains("role"));
    problem(&server.get("root", "/api/v1/nothing").await, 404);
    let other = [("Host", "evil.example"), ("Authorization", "Bearer x")];
    let other = send(server.address, "GET", "/api/v1/search", &other, b"").await;
    assert!(problem(&other, 403).contains("evil.example"));
    let bearer = server.bearer("root");
    let headers = [("Authorization", &*bearer)];
    let bytes = send(
        server.address,
        "GET",
        "/api/v1/prompts/%FF/versions",
        &headers,
        b"",
    )
    .await;
    problem(&bytes, 400);
    let mcp = send(server.address, "POST", "/mcp", &[], b"{}").await;
    assert_eq!(mcp.header("content-type"), Some("application/json"));
}

#[tokio::test(flavor = "multi_thread")]
async fn the_description_and_its_page_are_shown_to_everybody() {
    let server = Guarded::start(&[], &[]).await;
    let get = async |path: &str, lang: &str| {
        let headers = [("Accept", "text/html"), ("Accept-Language", lang)];
        send(server.address, "GET", path, &headers, b"").await
    };
    let sent = get("/api/v1/openapi.json", "en").await;
    assert_eq!(sent.header("content-type"), Some("application/json"));
    assert_eq!(sent.json(), document());
    for (lang, heading) in [("en", "Versions and labels"), ("ko", "버전과 레이블")] {
        let page = get("/api", lang).await;
        assert_eq!(page.status, 200, "{}", page.text());
        let text = page.text();
        assert!(text.contains(heading), "{lang}");
        for (path, method, operation) in operations(&document()) {
            let id = operation["operationId"].as_str().unwrap();
            assert!(text.contains(&format!("id=\"operation-{id}\"")), "{id}");
            let shown = format!("<code>{} {path}</code>", method.to_uppercase());
            assert!(text.contains(&shown), "{shown}");
        }
        // every schema that is linked to is there
        for link in text.split("href=\"#").skip(1) {
            let id = link.split('"').next().unwrap();
            assert!(text.contains(&format!("id=\"{id}\"")), "{id}");
        }
    }
}
