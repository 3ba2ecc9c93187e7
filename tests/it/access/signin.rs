//! Signing in: the one-time link, passwords, sessions, and what other sites cannot do with them.

use super::{Guarded, ROLES};
use crate::support::http::{Reply, send};

const FORM: (&str, &str) = ("Content-Type", "application/x-www-form-urlencoded");
const HTML: (&str, &str) = ("Accept", "text/html");
const PASSWORD: &str = "correct+horse+battery";
const FILES: &[(&str, &str)] = &[(
    "prompts/sre/triage.md",
    "---\ndescription: Triage\n---\nLook.\n",
)];

async fn get(server: &Guarded, path: &str, cookie: &str) -> Reply {
    let headers = [HTML, ("Cookie", cookie)];
    send(server.address, "GET", path, &headers, b"").await
}

async fn post(server: &Guarded, path: &str, cookie: &str, body: &str) -> Reply {
    let headers = [HTML, FORM, ("Cookie", cookie)];
    send(server.address, "POST", path, &headers, body.as_bytes()).await
}

/// The token of a page's forms.
fn csrf(page: &Reply) -> String {
    let html = page.text();
    let rest = html
        .split("name=\"csrf\" value=\"")
        .nth(1)
        .unwrap_or_else(|| panic!("no form in {html}"));
    rest.split('"').next().unwrap().to_owned()
}

/// The cookie of a session that an answer begins.
#[track_caller]
fn cookie(reply: &Reply) -> String {
    let set = reply
        .header("set-cookie")
        .unwrap_or_else(|| panic!("{}: {}", reply.status, reply.text()));
    assert!(
        set.contains("; HttpOnly") && set.contains("; SameSite=Lax") && set.contains("; Path=/"),
        "{set}"
    );
    set.split(';').next().unwrap().to_owned()
}

/// Invites somebody and gives them the password; the cookie of their session.
async fn invited(server: &Guarded, name: &str) -> String {
    let path = format!("/api/v1/access/people/{name}/invite");
    let link = server.post("root", &path, "{}").await.json();
    let link = link["url"].as_str().unwrap();
    let path = format!("/setup{}", link.split("/setup").nth(1).unwrap());
    let page = get(server, &path, "").await;
    assert_eq!(page.status, 200, "{}", page.text());
    let code = path.split("code=").nth(1).unwrap();
    let body = format!("csrf={}&code={code}&password={PASSWORD}", csrf(&page));
    let reply = post(server, "/setup", "", &body).await;
    assert_eq!(reply.status, 303, "{}", reply.text());
    // it is used once
    assert_eq!(get(server, &path, "").await.status, 403);
    assert_eq!(post(server, "/setup", "", &body).await.status, 403);
    cookie(&reply)
}

async fn login(server: &Guarded, name: &str, password: &str, before: &str) -> Reply {
    let page = get(server, "/login?next=/settings", before).await;
    let body = format!(
        "csrf={}&name={name}&password={password}&next=/settings",
        csrf(&page)
    );
    post(server, "/login", before, &body).await
}

async fn me(server: &Guarded, cookie: &str) -> Reply {
    let headers = [("Cookie", cookie)];
    send(server.address, "GET", "/api/v1/access/me", &headers, b"").await
}

#[tokio::test(flavor = "multi_thread")]
async fn who_comes_first_with_the_link_is_the_admin_and_the_link_is_gone() {
    let folder = tempfile::tempdir().unwrap();
    let flags = [
        ("listen", "127.0.0.1:0".into()),
        ("access.enabled", "true".into()),
    ];
    let mut config = cuebook::config::Config::load(None, &|_| None, &flags).unwrap();
    config.program = env!("CARGO_BIN_EXE_cuebook").into();
    let what = cuebook::server::Serve::DataDir {
        path: folder.path().join("data"),
        starter: None,
    };
    let running = cuebook::server::start(what, &config).await.unwrap();
    let link = running
        .setup
        .clone()
        .expect("a link where there is no admin");
    let path = link.strip_prefix(&running.url).unwrap().to_owned();
    let address = running.address;
    let open = |path: String| async move { send(address, "GET", &path, &[HTML], b"").await };
    let page = open(path.clone()).await;
    assert_eq!(page.status, 200, "{}", page.text());
    assert_eq!(page.header("cache-control"), Some("no-store"));
    let wrong = open("/setup?code=wrong".into()).await;
    assert_eq!(wrong.status, 403);
    let code = path.split("code=").nth(1).unwrap();
    let fill = |password: &str| {
        format!(
            "csrf={}&code={code}&name=ana&password={password}",
            csrf(&page)
        )
    };
    let short = send(
        address,
        "POST",
        "/setup",
        &[HTML, FORM],
        fill("short").as_bytes(),
    )
    .await;
    assert_eq!(short.status, 422, "{}", short.text());
    let reply = send(
        address,
        "POST",
        "/setup",
        &[HTML, FORM],
        fill(PASSWORD).as_bytes(),
    )
    .await;
    let cookie = cookie(&reply);
    let headers = [("Cookie", &*cookie)];
    let people = send(address, "GET", "/api/v1/access/people", &headers, b"").await;
    assert_eq!(people.status, 200, "{}", people.text());
    assert_eq!(people.json()["people"][0]["admin"], true);
    assert_eq!(open(path).await.status, 403);
    running.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_password_signs_in_and_a_wrong_one_says_nothing() {
    let server = Guarded::start(FILES, &ROLES).await;
    let first = invited(&server, "author").await;
    assert_eq!(me(&server, &first).await.json()["name"], "author");
    // whoever opens a page without a session signs in, and comes back to it
    let page = get(&server, "/settings?x=1", "").await;
    assert_eq!(page.status, 303);
    assert_eq!(
        page.header("location"),
        Some("/login?next=%2Fsettings%3Fx%3D1")
    );
    let reply = login(&server, "Author", PASSWORD, "").await;
    assert_eq!(
        reply.header("location"),
        Some("/settings"),
        "{}",
        reply.text()
    );
    let second = cookie(&reply);
    assert_ne!(first, second);
    // one answer for a wrong password, a wrong name, and somebody who has none
    let mut said = Vec::new();
    for (name, password) in [
        ("author", "wrong+wrong+wrong"),
        ("nobodyhere", PASSWORD),
        ("reader", PASSWORD),
    ] {
        let reply = login(&server, name, password, "").await;
        assert_eq!(reply.status, 401);
        let html = reply.text();
        said.push(
            html.split("role=\"alert\">")
                .nth(1)
                .unwrap()
                .split('<')
                .next()
                .unwrap()
                .to_owned(),
        );
    }
    assert!(said.windows(2).all(|two| two[0] == two[1]), "{said:?}");
    // signing out ends it here, and a new password ends it elsewhere
    let page = get(&server, "/settings", &second).await;
    assert_eq!(page.status, 200);
    let change = format!(
        "csrf={}&do=password&current={PASSWORD}&new=another+good+one",
        csrf(&page)
    );
    let changed = post(&server, "/settings", &second, &change).await;
    assert_eq!(changed.status, 200, "{}", changed.text());
    assert_eq!(me(&server, &first).await.status, 401);
    assert_eq!(me(&server, &second).await.status, 200);
    let out = post(
        &server,
        "/logout",
        &second,
        &format!("csrf={}", csrf(&page)),
    )
    .await;
    assert_eq!(out.status, 303);
    assert_eq!(me(&server, &second).await.status, 401);
    assert_eq!(login(&server, "author", PASSWORD, "").await.status, 401);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_cookie_from_before_the_login_is_never_a_session() {
    let server = Guarded::start(FILES, &ROLES).await;
    invited(&server, "author").await;
    let planted = "cuebook_session=planted-by-somebody-else";
    let reply = login(&server, "author", PASSWORD, planted).await;
    let own = cookie(&reply);
    assert_ne!(own, planted);
    assert_eq!(me(&server, planted).await.status, 401);
    assert_eq!(me(&server, &own).await.status, 200);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_page_of_another_site_writes_nothing() {
    let server = Guarded::start(FILES, &ROLES).await;
    let cookie = invited(&server, "admin").await;
    let body = "do=token&label=stolen";
    let send =
        |headers: Vec<(&'static str, &'static str)>, path: &'static str, body: &'static str| {
            let cookie = cookie.clone();
            let server = &server;
            async move {
                let mut all = vec![("Cookie", &*cookie)];
                all.extend(headers);
                send(server.address, "POST", path, &all, body.as_bytes()).await
            }
        };
    let json = ("Content-Type", "application/json");
    let token = r#"{"label":"stolen"}"#;
    for (headers, path, body) in [
        (vec![FORM], "/settings", body),
        (vec![FORM], "/settings", "csrf=AAAA&do=token&label=stolen"),
        (
            vec![FORM, ("Origin", "https://evil.example")],
            "/settings",
            body,
        ),
        (
            vec![FORM, ("Sec-Fetch-Site", "cross-site")],
            "/settings",
            body,
        ),
        (vec![json], "/api/v1/access/tokens", token),
        (
            vec![json, ("X-Cuebook", "1"), ("Origin", "https://evil.example")],
            "/api/v1/access/tokens",
            token,
        ),
        (
            vec![json, ("X-Cuebook", "1"), ("Sec-Fetch-Site", "same-site")],
            "/api/v1/access/tokens",
            token,
        ),
        (vec![FORM], "/api/v1/access/people/author/invite", ""),
        (vec![FORM], "/logout", ""),
    ] {
        let reply = send(headers.clone(), path, body).await;
        assert_eq!(
            reply.status,
            403,
            "{headers:?} {path}: {}",
            String::from_utf8_lossy(&reply.body)
        );
    }
    assert_eq!(me(&server, &cookie).await.status, 200);
    let own = send(
        vec![json, ("X-Cuebook", "1"), ("Sec-Fetch-Site", "same-origin")],
        "/api/v1/access/tokens",
        token,
    )
    .await;
    assert_eq!(own.status, 200, "{}", own.text());
    // the token of one session's forms is worth nothing in another
    let other = invited(&server, "author").await;
    let page = get(&server, "/settings", &other).await;
    let body = format!("csrf={}&do=token&label=x", csrf(&page));
    assert_eq!(post(&server, "/settings", &cookie, &body).await.status, 403);
    assert_eq!(post(&server, "/settings", &other, &body).await.status, 200);
}

#[tokio::test(flavor = "multi_thread")]
async fn guessing_is_slowed_down() {
    let server = Guarded::start(FILES, &ROLES).await;
    invited(&server, "author").await;
    let mut said = Vec::new();
    for _ in 0..15 {
        let reply = login(&server, "author", "wrong+wrong+wrong", "").await;
        said.push(reply.status);
        if reply.status == 429 {
            assert!(reply.header("retry-after").is_some());
            break;
        }
    }
    assert_eq!(said[..5], [401; 5]);
    assert_eq!(said.last(), Some(&429), "{said:?}");
}

#[tokio::test(flavor = "multi_thread")]
async fn guessing_at_once_is_slowed_down_as_well() {
    let server = Guarded::start(FILES, &ROLES).await;
    invited(&server, "author").await;
    let guesses = (0..20).map(|_| login(&server, "author", "wrong+wrong+wrong", ""));
    let replies = futures_util::future::join_all(guesses).await;
    let wrong = replies.iter().filter(|reply| reply.status == 401).count();
    assert!((1..=8).contains(&wrong), "{wrong} guesses were looked at");
    let others = replies.iter().filter(|reply| reply.status != 401);
    assert!(others.into_iter().all(|reply| reply.status == 429));
}

#[tokio::test(flavor = "multi_thread")]
async fn over_https_the_cookie_is_of_this_host_alone() {
    let server = Guarded::with(FILES, &ROLES, |config| {
        config.public_url = Some("https://localhost".into());
    })
    .await;
    let cookie = invited(&server, "author").await;
    assert!(cookie.starts_with("__Host-cuebook_session="), "{cookie}");
    let plain = cookie.replace("__Host-", "");
    assert_eq!(me(&server, &cookie).await.status, 200);
    assert_eq!(me(&server, &plain).await.status, 401);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_session_that_is_ended_or_whose_owner_is_disabled_opens_nothing() {
    let server = Guarded::start(FILES, &ROLES).await;
    let cookie = invited(&server, "author").await;
    let listed = server
        .get("root", "/api/v1/access/sessions?of=author")
        .await
        .json();
    let id = listed["sessions"][0]["id"].as_str().unwrap();
    assert!(!cookie.contains(id));
    let path = format!("/api/v1/access/sessions/{id}/revoke");
    assert_eq!(server.post("reader", &path, "{}").await.status, 404);
    assert_eq!(server.post("root", &path, "{}").await.status, 200);
    assert_eq!(me(&server, &cookie).await.status, 401);
    let reply = login(&server, "author", PASSWORD, "").await;
    let cookie = self::cookie(&reply);
    let disable = server
        .post(
            "root",
            "/api/v1/access/people/author",
            r#"{"disabled":true}"#,
        )
        .await;
    assert_eq!(disable.status, 200);
    assert_eq!(me(&server, &cookie).await.status, 401);
    assert_eq!(login(&server, "author", PASSWORD, "").await.status, 401);
}

#[tokio::test(flavor = "multi_thread")]
async fn the_pages_of_settings_work_without_scripts_in_both_languages() {
    let server = Guarded::start(FILES, &ROLES).await;
    let cookie = invited(&server, "admin").await;
    let page = get(&server, "/settings", &cookie).await;
    let made = post(
        &server,
        "/settings",
        &cookie,
        &format!("csrf={}&do=token&label=laptop&days=7", csrf(&page)),
    )
    .await;
    assert_eq!(made.header("cache-control"), Some("no-store"));
    let token = made
        .text()
        .split("data-copy=\"")
        .nth(1)
        .unwrap()
        .split('"')
        .next()
        .unwrap()
        .to_owned();
    assert!(token.starts_with("cbk_"), "{token}");
    assert!(
        !get(&server, "/settings", &cookie)
            .await
            .text()
            .contains(&token)
    );
    let people = get(&server, "/settings/people", &cookie).await;
    assert_eq!(people.status, 200, "{}", people.text());
    let add = format!(
        "csrf={}&do=add&name=%EA%B9%80%EB%AF%BC%EC%88%98&kind=person",
        csrf(&people)
    );
    assert_eq!(
        post(&server, "/settings/people", &cookie, &add)
            .await
            .status,
        303
    );
    let grant = format!(
        "csrf={}&do=grant&who=%EA%B9%80%EB%AF%BC%EC%88%98&role=author&path=prompts/**",
        csrf(&people)
    );
    assert_eq!(
        post(&server, "/settings/people", &cookie, &grant)
            .await
            .status,
        303
    );
    let headers = [HTML, ("Cookie", &*cookie), ("Accept-Language", "ko")];
    let korean = send(server.address, "GET", "/settings/people", &headers, b"").await;
    assert!(korean.text().contains("사람과 접근 권한") && korean.text().contains("김민수"));
    let reader = invited(&server, "reader").await;
    assert_eq!(get(&server, "/settings/people", &reader).await.status, 403);
}
