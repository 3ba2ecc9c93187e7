//! Mirror mode, against a bare repository over HTTP (git's own `http-backend`) and against a second cuebook.

mod forge;
mod labels;

use std::path::Path;
use std::process::Command;
use std::time::{Duration, Instant};

use cuebook::config::Config;
use cuebook::server::{Running, Serve, start};
use hmac::{Hmac, KeyInit as _, Mac as _};
use serde_json::Value;
use sha2::Sha256;
use tempfile::TempDir;

use crate::support::http::{head, raw};
use crate::support::library::{TestLibrary, git};
use crate::support::{PATIENCE, soon};

use forge::{Forge, TOKEN};

const SECRET: &str = "a webhook's secret";

fn prompt(text: &str) -> String {
    format!("---\ndescription: D\n---\n{text}\n")
}

const BAD: &str = "---\ndescription: D\n---\n{{ nope }}\n";

/// A server that follows a URL.
struct Mirror {
    folder: TempDir,
    running: Running,
}

impl Mirror {
    async fn start(url: &str, more: &[(&'static str, &str)]) -> Self {
        Self::in_folder(TempDir::new().unwrap(), url, more).await
    }

    async fn in_folder(folder: TempDir, url: &str, more: &[(&'static str, &str)]) -> Self {
        let mut flags = vec![
            ("listen", "127.0.0.1:0".to_owned()),
            ("upstream.url", url.to_owned()),
            ("upstream.token", TOKEN.to_owned()),
            // a test that needs a fetch asks for it, or sets this
            ("upstream.poll_seconds", "3600".to_owned()),
        ];
        flags.retain(|(key, _)| !more.iter().any(|(other, _)| other == key));
        flags.extend(more.iter().map(|(key, value)| (*key, (*value).to_owned())));
        let mut config = Config::load(None, &|_| None, &flags).unwrap();
        config.program = env!("CARGO_BIN_EXE_cuebook").into();
        let what = Serve::DataDir {
            path: folder.path().join("data"),
            starter: None,
        };
        let running = soon("the mirror", start(what, &config)).await.unwrap();
        Self { folder, running }
    }

    fn url(&self) -> String {
        format!("{}/library.git", self.running.url)
    }

    fn bare(&self) -> std::path::PathBuf {
        self.folder.path().join("data/library.git")
    }

    fn main(&self) -> Option<String> {
        let output = Command::new("git")
            .args(["rev-parse", "--verify", "--quiet", "refs/heads/main"])
            .current_dir(self.bare())
            .output()
            .unwrap();
        output
            .status
            .success()
            .then(|| String::from_utf8(output.stdout).unwrap().trim().to_owned())
    }

    /// The texts that are served, by name.
    fn served(&self) -> Vec<String> {
        let snapshot = self.running.registry.snapshot();
        snapshot
            .catalog
            .list(None)
            .iter()
            .map(|prompt| prompt.name.to_string())
            .collect()
    }

    #[track_caller]
    fn serves_commit(&self, commit: &str) -> bool {
        self.running.registry.snapshot().status.served.as_deref() == Some(commit)
    }

    async fn ready(&self) -> Value {
        let request = head("GET", "/readyz", &[("Connection", "close")], None);
        raw(self.running.address, request.as_bytes()).await.json()
    }

    async fn hook(&self, headers: &[(&str, &str)], body: &str) -> (u16, String) {
        let mut all = vec![
            ("Connection", "close"),
            ("Content-Type", "application/json"),
        ];
        all.extend(headers);
        let mut request = head("POST", "/hooks/upstream", &all, Some(body.len()));
        request.push_str(body);
        let reply = raw(self.running.address, request.as_bytes()).await;
        (
            reply.status,
            reply.json()["message"]
                .as_str()
                .unwrap_or_default()
                .to_owned(),
        )
    }
}

/// Waits until something holds.
async fn until(what: &str, mut holds: impl FnMut() -> bool) {
    let started = Instant::now();
    while !holds() {
        assert!(started.elapsed() < PATIENCE, "waited in vain: {what}");
        tokio::time::sleep(Duration::from_millis(10)).await;
    }
}

async fn until_ready(mirror: &Mirror, what: &str, holds: impl Fn(&Value) -> bool) -> Value {
    let started = Instant::now();
    loop {
        let ready = mirror.ready().await;
        if holds(&ready) {
            return ready;
        }
        assert!(
            started.elapsed() < PATIENCE,
            "waited in vain: {what}: {ready}"
        );
        tokio::time::sleep(Duration::from_millis(10)).await;
    }
}

/// A git command whose outcome matters: whether it succeeded, and all it said.
fn try_git(at: &Path, arguments: &[&str]) -> (bool, String) {
    let output = Command::new("git")
        .args(arguments)
        .current_dir(at)
        .env("GIT_CONFIG_GLOBAL", "/dev/null")
        .env("GIT_CONFIG_NOSYSTEM", "1")
        .env("GIT_TERMINAL_PROMPT", "0")
        .output()
        .unwrap();
    let text = [output.stdout, output.stderr].concat();
    (
        output.status.success(),
        String::from_utf8_lossy(&text).into_owned(),
    )
}

fn signature(body: &str, secret: &str) -> String {
    let mut mac = Hmac::<Sha256>::new_from_slice(secret.as_bytes()).unwrap();
    mac.update(body.as_bytes());
    let digest = mac.finalize().into_bytes();
    digest.iter().map(|byte| format!("{byte:02x}")).collect()
}

#[tokio::test(flavor = "multi_thread")]
async fn a_bare_repository_over_http_is_followed_by_webhook() {
    let library = TestLibrary::with(&[("prompts/sre/one.md", &prompt("One"))]);
    let forge = Forge::serve(&library.bare(), Some(TOKEN)).await;
    let mirror = Mirror::start(&forge.url(), &[("upstream.webhook_secret", SECRET)]).await;
    until("the first fetch", || mirror.served() == ["one"]).await;

    let commit = library.publish(&[("prompts/sre/two.md", &prompt("Two"))]);
    let body = r#"{"ref":"refs/heads/main"}"#;
    let signed = format!("sha256={}", signature(body, SECRET));
    let hook = [
        ("X-GitHub-Event", "push"),
        ("X-GitHub-Delivery", "d1"),
        ("X-Hub-Signature-256", &*signed),
    ];
    assert_eq!(mirror.hook(&hook, body).await, (202, "fetching".into()));
    until("the second commit", || mirror.serves_commit(&commit)).await;
    assert_eq!(mirror.main().as_deref(), Some(&*commit));
    let ready = until_ready(&mirror, "the status", |ready| {
        ready["upstream"]["commit"] == *commit
    })
    .await;
    assert_eq!(ready["status"], "ready", "{ready}");
    assert_eq!(ready["upstream"]["mode"], "follow");
    assert!(
        ready["upstream"]["fetched_seconds_ago"].as_i64().unwrap() < 20,
        "{ready}"
    );
    assert!(!ready.to_string().contains(TOKEN));

    // a wrong token is told, and what was served goes on
    let before = mirror.served();
    forge.lock_out();
    mirror.hook(&[("X-Gitlab-Token", SECRET)], "{}").await;
    let ready = until_ready(&mirror, "the error", |ready| ready["status"] == "degraded").await;
    assert!(
        ready["upstream"]["error"]
            .as_str()
            .unwrap()
            .contains("the last fetch failed"),
        "{ready}"
    );
    assert!(!ready.to_string().contains(TOKEN));
    assert_eq!(mirror.served(), before);
    mirror.running.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn webhooks_must_be_signed_and_count_once() {
    let library = TestLibrary::with(&[("prompts/one.md", &prompt("One"))]);
    let forge = Forge::serve(&library.bare(), None).await;
    let without = Mirror::start(&forge.url(), &[]).await;
    let (status, message) = without.hook(&[("X-Gitlab-Token", "")], "{}").await;
    assert!(
        status == 403 && message.contains("upstream.webhook_secret"),
        "{message}"
    );
    without.running.stop().await;

    let mirror = Mirror::start(&forge.url(), &[("upstream.webhook_secret", SECRET)]).await;
    let body = "{\"a\": \"한\"}";
    let good = format!("sha256={}", signature(body, SECRET));
    let other = format!("sha256={}", signature("{}", SECRET));
    let forged = format!("sha256={}", signature(body, "another"));
    let gitea = signature(body, SECRET);
    for (headers, expected) in [
        (vec![], 401),
        (vec![("X-Hub-Signature-256", "sha256=00")], 401),
        (vec![("X-Hub-Signature-256", "")], 401),
        (vec![("X-Hub-Signature-256", &*other)], 401),
        (
            vec![
                ("X-Hub-Signature-256", &*forged),
                ("X-Gitlab-Token", SECRET),
            ],
            401,
        ),
        (vec![("X-Gitlab-Token", "a webhook's secre")], 401),
        (
            vec![("X-Hub-Signature-256", &*good), ("X-GitHub-Event", "ping")],
            200,
        ),
        (
            vec![("X-Hub-Signature-256", &*good), ("X-GitHub-Delivery", "1")],
            202,
        ),
        (
            vec![("X-Hub-Signature-256", &*good), ("X-GitHub-Delivery", "1")],
            200,
        ),
        (
            vec![("X-Gitea-Signature", &*gitea), ("X-Gitea-Delivery", "2")],
            202,
        ),
        (
            vec![("X-Gitlab-Token", SECRET), ("X-Gitlab-Event-UUID", "3")],
            202,
        ),
        (
            vec![("X-Gitlab-Token", SECRET), ("X-Gitlab-Event-UUID", "3")],
            200,
        ),
    ] {
        let (status, message) = mirror.hook(&headers, body).await;
        assert_eq!(status, expected, "{headers:?}: {message}");
    }
    let large = format!("\"{}\"", "x".repeat(27 * 1024 * 1024));
    let (status, _) = mirror.hook(&[("X-Gitlab-Token", SECRET)], &large).await;
    assert_eq!(status, 413);
    mirror.running.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_second_cuebook_is_followed_by_poll_and_publishing_is_refused() {
    let folder = TempDir::new().unwrap();
    let mut config = Config::load(None, &|_| None, &[("listen", "127.0.0.1:0".into())]).unwrap();
    config.program = env!("CARGO_BIN_EXE_cuebook").into();
    let what = Serve::DataDir {
        path: folder.path().join("first"),
        starter: None,
    };
    let first = start(what, &config).await.unwrap();
    let first_url = format!("{}/library.git", first.url);
    let library = TestLibrary::empty();
    git(
        &library.clone(),
        &["remote", "set-url", "origin", &first_url],
    );
    library.publish(&[("prompts/one.md", &prompt("One"))]);

    let mirror = Mirror::start(&first_url, &[("upstream.poll_seconds", "1")]).await;
    until("the first fetch", || mirror.served() == ["one"]).await;
    let commit = library.publish(&[("prompts/two.md", &prompt("Two"))]);
    until("the poll", || mirror.serves_commit(&commit)).await;

    library.write_bytes("prompts/three.md", prompt("Three").as_bytes());
    library.commit("three");
    for target in ["HEAD:main", "HEAD:refs/for/main"] {
        let (ok, said) = try_git(&library.clone(), &["push", &mirror.url(), target]);
        assert!(
            !ok && said.contains("remote: refused: this library follows"),
            "{said}"
        );
        assert!(
            said.contains(&format!("git push {first_url} HEAD:main")),
            "{said}"
        );
    }
    // and by the path, behind the server's back
    let bare = mirror.bare();
    let (ok, said) = try_git(
        &library.clone(),
        &["push", bare.to_str().unwrap(), "HEAD:main"],
    );
    assert!(
        !ok && said.contains("refused: this library follows"),
        "{said}"
    );
    assert_eq!(mirror.main().as_deref(), Some(&*commit));
    mirror.running.stop().await;
    first.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn proposals_go_upstream_as_branches() {
    let library = TestLibrary::with(&[("prompts/one.md", &prompt("One"))]);
    let forge = Forge::serve(&library.bare(), Some(TOKEN)).await;
    let mirror = Mirror::start(
        &forge.url(),
        &[
            ("upstream.mode", "propose"),
            ("upstream.webhook_secret", SECRET),
        ],
    )
    .await;
    until("the first fetch", || mirror.served() == ["one"]).await;

    library.write_bytes("prompts/one.md", prompt("Uno").as_bytes());
    let commit = library.commit("in other words");
    let clone = library.clone();
    let there = || {
        git(
            &library.bare(),
            &[
                "for-each-ref",
                "--format=%(refname) %(objectname)",
                "refs/heads/cuebook",
            ],
        )
    };
    let push = |topic: &str| {
        let topic = format!("topic={topic}");
        try_git(
            &clone,
            &["push", "-o", &topic, &mirror.url(), "HEAD:refs/for/main"],
        )
    };
    let (ok, said) = try_git(&clone, &["push", &mirror.url(), "HEAD:main"]);
    assert!(
        !ok && said.contains("HEAD:refs/for/main gives your commit to it as a branch"),
        "{said}"
    );
    let (ok, said) = try_git(&clone, &["push", &mirror.url(), "HEAD:feature"]);
    assert!(
        !ok && said.contains("keeps no branches or tags of its own"),
        "{said}"
    );
    let branch = format!("cuebook/1-{}", &commit[..7]);
    let (ok, said) = push("다른 말");
    assert!(
        ok && said.contains(&format!("pushed as branch {branch}")),
        "{said}"
    );
    assert_eq!(there(), format!("refs/heads/{branch} {commit}\n"));
    // revised with another history: the same branch
    git(
        &clone,
        &["commit", "--quiet", "--amend", "--message", "better"],
    );
    let (ok, said) = push("다른 말");
    assert!(ok && said.contains("revised proposal 1"), "{said}");
    let revised = git(&clone, &["rev-parse", "HEAD"]);
    assert_eq!(there(), format!("refs/heads/{branch} {revised}"));
    // a topic that differs by a blank is another proposal
    let (ok, said) = push("다른-말");
    assert!(ok && said.contains("opened proposal 2"), "{said}");
    assert_eq!(there().lines().count(), 2);

    // what a reviewer has put on the branch there is not overwritten, and nothing is kept here that is not there
    let base = git(&library.bare(), &["rev-parse", "main"]);
    git(
        &library.bare(),
        &["update-ref", &format!("refs/heads/{branch}"), base.trim()],
    );
    git(
        &clone,
        &["commit", "--quiet", "--amend", "--message", "best"],
    );
    let (ok, said) = push("다른 말");
    assert!(
        !ok && said.contains("did not take it") && said.contains("stale info"),
        "{said}"
    );
    let head = git(&mirror.bare(), &["rev-parse", "refs/proposals/1/head"]);
    assert_eq!(head, revised);

    // merged there, it is open here no more
    git(
        &library.bare(),
        &["update-ref", "refs/heads/main", revised.trim()],
    );
    let merged = revised.trim().to_owned();
    mirror.hook(&[("X-Gitlab-Token", SECRET)], "{}").await;
    until("the merge", || mirror.serves_commit(&merged)).await;
    let (ok, said) = push("다른 말");
    assert!(ok && said.contains("opened proposal 3"), "{said}");

    forge.lock_out();
    let (ok, said) = push("more");
    assert!(!ok && said.contains("did not take it"), "{said}");
    let refs = git(
        &mirror.bare(),
        &["for-each-ref", "--format=%(refname)", "refs/proposals"],
    );
    assert!(!refs.contains("refs/proposals/4"), "{refs}");
    mirror.running.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_redirect_does_not_take_the_token_elsewhere() {
    let library = TestLibrary::with(&[("prompts/one.md", &prompt("One"))]);
    let elsewhere = Forge::serve(&library.bare(), Some(TOKEN)).await;
    let redirecting = Forge::redirecting(&elsewhere).await;
    let mirror = Mirror::start(&redirecting.url(), &[]).await;
    let ready = until_ready(&mirror, "the error", |ready| {
        ready["upstream"]["error"].is_string()
    })
    .await;
    let error = ready["upstream"]["error"].as_str().unwrap();
    assert!(error.contains("the last fetch failed"), "{error}");
    assert_eq!(elsewhere.asked(), 0, "the other host was asked");
    assert!(mirror.served().is_empty());
    mirror.running.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn what_fails_the_check_is_told_and_main_stays_clean() {
    let library = TestLibrary::with(&[("prompts/one.md", &prompt("One"))]);
    let forge = Forge::serve(&library.bare(), None).await;
    let mirror = Mirror::start(&forge.url(), &[("upstream.poll_seconds", "1")]).await;
    until("the first fetch", || mirror.served() == ["one"]).await;

    library.write_bytes("prompts/two.md", prompt("Two").as_bytes());
    let clean = library.commit("clean");
    library.write_bytes("prompts/two.md", BAD.as_bytes());
    let bad = library.commit("bad");
    library.push();
    until("the clean one", || mirror.serves_commit(&clean)).await;
    let ready = until_ready(&mirror, "the problems", |ready| {
        ready["upstream"]["commit"] == *bad
    })
    .await;
    assert_eq!(mirror.main().as_deref(), Some(&*clean));
    assert!(
        ready["upstream"]["problems"][0]
            .as_str()
            .unwrap()
            .starts_with("prompts/two.md:4:4: "),
        "{ready}"
    );
    assert_eq!(ready["status"], "degraded");
    let mended = library.publish(&[("prompts/two.md", &prompt("Two again"))]);
    until("the mended one", || mirror.serves_commit(&mended)).await;
    until_ready(&mirror, "all well", |ready| ready["status"] == "ready").await;
    mirror.running.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_rewritten_history_is_followed_and_own_commits_are_never_given_up() {
    let library = TestLibrary::with(&[("prompts/one.md", &prompt("One"))]);
    let forge = Forge::serve(&library.bare(), None).await;
    let mirror = Mirror::start(&forge.url(), &[("upstream.poll_seconds", "1")]).await;
    until("the first fetch", || mirror.served() == ["one"]).await;
    git(
        &library.clone(),
        &["commit", "--quiet", "--amend", "--message", "rewritten"],
    );
    library.publish_by_force(&[("prompts/one.md", &prompt("Uno"))]);
    let rewritten = git(&library.clone(), &["rev-parse", "HEAD"]);
    until("the rewritten history", || {
        mirror.serves_commit(rewritten.trim())
    })
    .await;

    // a commit that only this library has, made behind the server's back
    let bare = mirror.bare();
    let tree = git(&bare, &["rev-parse", "main^{tree}"]);
    let own = git(
        &bare,
        &["commit-tree", "-p", "main", "-m", "own", tree.trim()],
    );
    git(&bare, &["update-ref", "refs/heads/main", own.trim()]);
    library.publish(&[("prompts/two.md", &prompt("Two"))]);
    let ready = until_ready(&mirror, "the divergence", |ready| {
        ready["upstream"]["error"].is_string()
    })
    .await;
    let error = ready["upstream"]["error"].as_str().unwrap();
    assert!(error.contains("1 commit of its own"), "{error}");
    assert_eq!(mirror.main().as_deref(), Some(own.trim()));
    assert_eq!(mirror.served(), ["one"]);
    mirror.running.stop().await;
}

#[test]
fn secrets_are_never_shown_and_urls_hold_none() {
    let load =
        |key: &'static str, value: &str| Config::load(None, &|_| None, &[(key, value.to_owned())]);
    let shown = load("upstream.token", TOKEN).unwrap();
    assert!(!shown.show().contains(TOKEN) && shown.show().contains("(hidden)"));
    assert!(!format!("{shown:?}").contains(TOKEN));
    let folder = TempDir::new().unwrap();
    let file = folder.path().join("token");
    std::fs::write(&file, format!("{TOKEN}\n")).unwrap();
    let from_file = load("upstream.token_file", file.to_str().unwrap()).unwrap();
    assert!(from_file.show().contains("(hidden)"));
    for (url, says) in [
        ("https://me:secret@git.example.com/x.git", "token_file"),
        (
            "https://token-as-a-name@git.example.com/x.git",
            "token_file",
        ),
        ("HTTP://token-as-a-name@git.example.com/x.git", "token_file"),
        ("ext::sh -c id", "must be a URL"),
        ("--upload-pack=id", "must be a URL"),
    ] {
        let error = load("upstream.url", url).unwrap_err().to_string();
        assert!(
            error.contains(says) && !error.contains("secret@") && !error.contains("as-a-name"),
            "{error}"
        );
    }
    for url in [
        "https://git.example.com/x.git",
        "git@git.example.com:team/x.git",
        "ssh://git@host/x",
        "/srv/x.git",
    ] {
        load("upstream.url", url).unwrap();
    }
}
