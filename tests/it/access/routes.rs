//! Every URL against the table of permissions.

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;

use base64::Engine as _;
use cuebook::access::{Need, ROUTES};
use regex::Regex;

use super::{Guarded, Person, ROLES, met, permissions};
use crate::support::http::send;

/// Every URL that the sources give to a router, with its methods.
pub(super) fn routed() -> BTreeMap<String, BTreeSet<String>> {
    let mut out: BTreeMap<String, BTreeSet<String>> = BTreeMap::new();
    let method = Regex::new(r"\b(get|post|put|patch|delete|any)\(").unwrap();
    let described = Regex::new(r#"utoipa::path\(\s*(\w+),\s*path =\s*"([^"]+)""#).unwrap();
    let mut folders = vec![Path::new(env!("CARGO_MANIFEST_DIR")).join("src")];
    while let Some(folder) = folders.pop() {
        for entry in std::fs::read_dir(folder).unwrap() {
            let path = entry.unwrap().path();
            if path.is_dir() {
                folders.push(path);
            } else if path.extension().is_some_and(|e| e == "rs") {
                let text = std::fs::read_to_string(&path).unwrap();
                for call in text.split(".route(").skip(1) {
                    let mut open = 1;
                    let end = call.find(|c: char| {
                        open += i32::from(c == '(') - i32::from(c == ')');
                        open == 0
                    });
                    let call = call[..end.unwrap()].trim_start();
                    let Some((url, handlers)) =
                        call.strip_prefix('"').and_then(|rest| rest.split_once('"'))
                    else {
                        continue;
                    };
                    let methods = method
                        .captures_iter(handlers)
                        .map(|found| found[1].to_uppercase());
                    out.entry(url.to_owned()).or_default().extend(methods);
                }
                // the one before the router
                let endpoint = text.split_once("const ENDPOINT: &str = \"");
                if let Some((url, _)) = endpoint.and_then(|(_, rest)| rest.split_once('"')) {
                    out.entry(url.to_owned()).or_default().insert("ANY".into());
                }
                // those of the API stand in what describes them
                for found in described.captures_iter(&text) {
                    let methods = out.entry(found[2].to_owned()).or_default();
                    methods.insert(found[1].to_uppercase());
                }
            }
        }
    }
    out
}

#[test]
fn every_url_has_a_row_and_every_row_a_url() {
    let urls: BTreeSet<String> = routed().into_keys().collect();
    let rows: BTreeSet<String> = ROUTES.iter().map(|route| route.path.to_owned()).collect();
    assert_eq!(rows.len(), ROUTES.len(), "a URL has two rows");
    assert_eq!(urls, rows, "src/access/routes.rs and the routers differ");
}

/// Whether a request is let through to its handler, which may refuse it for other reasons.
fn let_in(status: u16, text: &str) -> bool {
    status != 401 && !(status == 403 && text.contains("the role it takes"))
}

#[tokio::test(flavor = "multi_thread")]
async fn every_url_lets_in_who_the_table_says() {
    // a role in a folder is none in the whole library
    let parts: [Person<'_>; 4] = [
        ("none", &[]),
        ("author-of-a-part", &[("author", "prompts/sre/**")]),
        ("publisher-of-a-part", &[("publisher", "prompts/sre/**")]),
        ("admin-of-a-part", &[("admin", "prompts/sre/**")]),
    ];
    let people: Vec<Person<'_>> = ROLES.into_iter().chain(parts).collect();
    let server = Guarded::start(
        &[(
            "prompts/sre/triage.md",
            "---\ndescription: Triage\n---\nLook.\n",
        )],
        &people,
    )
    .await;
    for route in ROUTES {
        let path = route
            .path
            .replace("{*path}", "prompts/sre/triage.md")
            .replace("{name}", "triage")
            .replace("{id}", "x")
            .replace("{*folder}", "sre")
            .replace("{*rest}", "HEAD")
            .replace("{number}", "1")
            .replace("{id}", "1");
        let path = match route.path {
            "/assets/{file}" => cuebook::web::assets::address("app.css").unwrap(),
            _ => path,
        };
        for (method, need) in [("GET", route.read), ("POST", route.write)] {
            let nobody = send(server.address, method, &path, &[], b"").await;
            if nobody.status == 404 {
                // nothing is followed and no provider is asked here: there are no such addresses
                assert!(
                    route.path == "/hooks/upstream"
                        || route
                            .path
                            .starts_with("/.well-known/oauth-protected-resource")
                        || route.path.starts_with("/login/oidc"),
                    "{}",
                    route.path
                );
                continue;
            }
            assert_eq!(
                let_in(nobody.status, nobody.text()),
                need == Need::Nothing,
                "{method} {path} without a credential: {} {}",
                nobody.status,
                nobody.text()
            );
            let wrong = [("Authorization", "Bearer cbk_abcdefgh_wrong")];
            let wrong = send(server.address, method, &path, &wrong, b"").await;
            // the same one so often is slowed down
            assert_eq!(
                matches!(wrong.status, 401 | 429),
                need != Need::Nothing,
                "{method} {path} with a wrong token"
            );
            for &(name, grants) in &people {
                let expected = met(need, &permissions(grants));
                let bearer = server.bearer(name);
                // no stream is opened for who takes none
                let headers = [("Authorization", &*bearer), ("Accept", "application/json")];
                let reply = send(server.address, method, &path, &headers, b"").await;
                assert_eq!(
                    let_in(reply.status, &String::from_utf8_lossy(&reply.body)),
                    expected,
                    "{method} {path} as {name}: {}",
                    reply.status
                );
            }
        }
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_credential_is_asked_for_in_the_way_its_client_understands() {
    let server = Guarded::start(&[], &[]).await;
    let git = send(
        server.address,
        "GET",
        "/library.git/info/refs?service=git-upload-pack",
        &[],
        b"",
    )
    .await;
    assert_eq!(git.status, 401);
    assert!(
        git.header("www-authenticate")
            .unwrap()
            .starts_with("Basic ")
    );
    let mcp = send(server.address, "POST", "/mcp", &[], b"{}").await;
    assert_eq!(
        mcp.header("www-authenticate"),
        Some("Bearer realm=\"Cuebook\"")
    );
    // a token in the address is no credential
    let path = format!("/api/v1/search?q=x&access_token={}", server.token("root"));
    assert_eq!(
        send(server.address, "GET", &path, &[], b"").await.status,
        401
    );
    // git sends it as a password, under any name
    let basic =
        base64::engine::general_purpose::STANDARD.encode(format!("x:{}", server.token("root")));
    let basic = format!("Basic {basic}");
    let path = "/library.git/info/refs?service=git-upload-pack";
    assert_eq!(
        send(
            server.address,
            "GET",
            path,
            &[("Authorization", &basic)],
            b""
        )
        .await
        .status,
        200
    );
    assert!(server.data_dir().join("cuebook.db").is_file());
    assert!(server.running.is_some());
}
