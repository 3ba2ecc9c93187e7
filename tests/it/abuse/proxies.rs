//! Whose address it is that counts.

use std::process::Command;

use super::*;
use crate::support::soon;

/// The address that the audit has for a push with this header.
async fn audited(started: &Started, header: &str, name: &str) -> String {
    let clone = started.folder.path().join(name);
    let git = |arguments: &[&str]| {
        let mut command = Command::new("git");
        command
            .env("GIT_CONFIG_GLOBAL", "/dev/null")
            .env("GIT_CONFIG_NOSYSTEM", "1")
            .args(["-c", "user.name=Test", "-c", "user.email=test@example.com"])
            .arg("-c")
            .arg(format!("http.extraHeader={header}"))
            .args(arguments);
        if clone.exists() {
            command.current_dir(&clone);
        }
        let output = command.output().unwrap();
        assert!(
            output.status.success(),
            "{}",
            String::from_utf8_lossy(&output.stderr)
        );
    };
    let url = format!("http://{}/library.git", started.address());
    git(&["clone", "--quiet", &url, clone.to_str().unwrap()]);
    let text = "---\ndescription: D\n---\nText.\n";
    std::fs::write(clone.join(format!("prompts/{name}.md")), text).unwrap();
    git(&["add", "--all"]);
    git(&["commit", "--quiet", "--message", name]);
    git(&["push", "--quiet", "origin", "HEAD:main"]);
    let audit = send(started.address(), "GET", "/api/v1/audit?limit=1", &[], b"").await;
    let row = &audit.json()["rows"][0];
    assert_eq!(row["action"], "publish", "{row}");
    row["origin"].as_str().unwrap().to_owned()
}

#[tokio::test]
async fn the_audit_has_the_client_that_a_trusted_proxy_names() {
    let started = Started::new(&[("CUEBOOK_HTTP_TRUSTED_PROXIES", "127.0.0.1, 10.0.0.0/8")]);
    let header = "X-Forwarded-For: 198.51.100.1, 203.0.113.7, 10.1.1.1";
    assert_eq!(audited(&started, header, "named").await, "203.0.113.7");
    let log = started.server.log();
    assert!(log.contains("whoever the proxy lets through may"), "{log}");
}

#[tokio::test]
async fn the_audit_has_the_connection_where_nobody_is_trusted_and_the_log_says_why_once() {
    let started = Started::new(&[]);
    let header = "X-Forwarded-For: 203.0.113.7";
    assert_eq!(audited(&started, header, "claimed").await, "127.0.0.1");
    let log = started.server.log();
    assert_eq!(log.matches("http.trusted_proxies").count(), 1, "{log}");
}

#[tokio::test]
async fn the_audit_reads_the_one_header_that_the_proxy_writes() {
    let started = Started::new(&[
        ("CUEBOOK_HTTP_TRUSTED_PROXIES", "127.0.0.1"),
        ("CUEBOOK_HTTP_FORWARDED_HEADER", "forwarded"),
    ]);
    // the client's own claim, which the proxy has passed on
    let header = "X-Forwarded-For: 198.51.100.1";
    assert_eq!(audited(&started, header, "other").await, "127.0.0.1");
    let header = "Forwarded: for=\"[2001:db8::7]:99\";proto=https";
    assert_eq!(audited(&started, header, "own").await, "2001:db8::7");
}

#[tokio::test]
async fn what_a_page_costs_is_charged_to_the_client_behind_the_proxy() {
    let started = Started::new(&[
        ("CUEBOOK_HTTP_TRUSTED_PROXIES", "127.0.0.1"),
        ("CUEBOOK_RENDERING_CALLER_CPU_MS_PER_MINUTE", "1"),
        // a slow machine renders it as well
        ("CUEBOOK_RENDERING_WORKER_CPU_MS", "10000"),
        ("CUEBOOK_RENDERING_WORKER_WALL_MS", "20000"),
    ]);
    let text = "---\ndescription: D\n---\n{% for i in [2, 1] | sort %}{% endfor %}{% for i in range(end=20000) %}{% endfor %}Rendered.\n";
    let ready = send(started.address(), "GET", "/readyz", &[], b"").await;
    let body = json!({
        "base": ready.json()["tip"],
        "message": "Costly",
        "files": { "prompts/costly.md": text },
    });
    let headers = [("Content-Type", "application/json")];
    let body = body.to_string();
    let path = "/api/v1/changes";
    let published = send(started.address(), "POST", path, &headers, body.as_bytes()).await;
    assert_eq!(published.status, 200, "{}", published.text());
    let open = async |client: &str| {
        let headers = [("Accept", "text/html"), ("X-Forwarded-For", client)];
        let page = send(started.address(), "GET", "/prompts/costly", &headers, b"").await;
        assert_eq!(page.status, 200, "{}", page.text());
        page.text().to_owned()
    };
    let spent = "caller_cpu_ms_per_minute";
    soon("the budget to be spent", async {
        while !open("203.0.113.7").await.contains(spent) {}
    })
    .await;
    let other = open("203.0.113.8").await;
    assert!(
        other.contains("Rendered.") && !other.contains(spent),
        "{other}"
    );
}
