//! Every URL against the table of permissions.

use std::collections::BTreeSet;
use std::path::Path;

use base64::Engine as _;
use cuebook::access::{Need, ROUTES};
use regex::Regex;

use super::{Guarded, ROLES};
use crate::support::http::send;

/// The URLs that sources give to a router.
fn routed(folder: &Path, out: &mut BTreeSet<String>) {
    // those of the API stand in what describes them
    let route = Regex::new(r#"(?:\.route\(|utoipa::path\(\s*\w+,\s*path =)\s*"([^"]+)""#).unwrap();
    for entry in std::fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        if path.is_dir() {
            routed(&path, out);
        } else if path.extension().is_some_and(|e| e == "rs") {
            let text = std::fs::read_to_string(&path).unwrap();
            out.extend(route.captures_iter(&text).map(|found| found[1].to_owned()));
        }
    }
}

#[test]
fn every_url_has_a_row_and_every_row_a_url() {
    let mut urls = BTreeSet::new();
    routed(
        &Path::new(env!("CARGO_MANIFEST_DIR")).join("src"),
        &mut urls,
    );
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
    let server = Guarded::start(
        &[(
            "prompts/sre/triage.md",
            "---\ndescription: Triage\n---\nLook.\n",
        )],
        &ROLES,
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
            assert_eq!(
                wrong.status == 401,
                need != Need::Nothing,
                "{method} {path} with a wrong token"
            );
            for (name, grants) in ROLES {
                let role = cuebook::access::Role::parse(grants[0].0).unwrap();
                let expected = match need {
                    Need::Nothing | Need::Known => true,
                    Need::Somewhere(action) | Need::Everywhere(action) => role >= action.needs(),
                };
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
