//! Who may clone, push and propose what, with the real git.

use std::os::unix::fs::PermissionsExt as _;
use std::path::PathBuf;

use cuebook::config::Config;
use serde_json::json;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::TcpStream;

use super::{Guarded, Person};
use crate::git::{RECEIVE, Ran, Work, git, git_command, left_behind, push_request, run};
use crate::support::http::head;
use crate::support::soon;

const POLICY: &str = "protected_labels = [\"production\"]\n";

fn prompt(text: &str) -> String {
    format!("---\ndescription: D\n---\n{text}\n")
}

impl Guarded {
    /// The address that an actor clones.
    pub(super) fn url(&self, name: &str) -> String {
        format!(
            "http://{name}:{}@{}/library.git",
            self.token(name),
            self.address
        )
    }

    /// A clone as an actor.
    pub(crate) fn work(&self, name: &str, folder: &str) -> Work {
        Work::clone(self.folder.path(), &self.url(name), folder, &[])
    }

    pub(crate) fn bare(&self) -> PathBuf {
        self.data_dir().join("library.git")
    }

    async fn library(people: &[Person<'_>]) -> Self {
        Self::library_with(people, |_| {}).await
    }

    async fn library_with(people: &[Person<'_>], change: impl FnOnce(&mut Config)) -> Self {
        let one = prompt("One.");
        let server = Self::with(
            &[
                ("cuebook.toml", POLICY),
                ("prompts/sre/triage.md", &one),
                ("prompts/review/code.md", &one),
            ],
            people,
            change,
        )
        .await;
        server
            .publish(&[("prompts/sre/triage.md", &prompt("Two."))])
            .await;
        server
    }

    /// Takes an actor's token back.
    async fn revoke(&self, who: &str) {
        let (prefix, now) = (self.prefix(who), cuebook::clock::unix_millis());
        let revoked = self
            .with_store(async |store| store.revoke_token(&prefix, now).await)
            .await;
        assert!(revoked.unwrap());
    }

    fn main(&self) -> String {
        git(&self.bare(), &["rev-parse", "main"])
            .text
            .trim()
            .to_owned()
    }
}

const TEAMS: [Person<'static>; 4] = [
    ("sre", &[("reader", "**"), ("publisher", "prompts/sre/**")]),
    (
        "review",
        &[("reader", "**"), ("author", "prompts/review/**")],
    ),
    ("part", &[("publisher", "prompts/sre/**")]),
    ("labels", &[("reader", "**"), ("publisher", "labels.toml")]),
];

#[track_caller]
fn refused(ran: &Ran, line: &str) {
    assert!(!ran.ok, "{}", ran.text);
    assert!(
        ran.remote().contains(&line),
        "no `{line}` in:\n{}",
        ran.text
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn a_push_is_asked_for_every_path_of_every_commit() {
    let server = Guarded::library(&TEAMS).await;
    let work = server.work("sre", "sre");
    work.publish(&[("prompts/sre/triage.md", &prompt("Three."))]);
    let other = "prompts/review/code.md: you may not publish this; ask an admin of this server for the role publisher there";
    work.change(&[
        ("prompts/sre/triage.md", &prompt("Four.")),
        ("prompts/review/code.md", &prompt("Mine.")),
    ]);
    let ran = work.push();
    refused(&ran, other);
    ran.says_not("sre/triage.md: you may not");
    // taken back in the same push: main would count versions of it all the same
    work.change(&[("prompts/review/code.md", &prompt("One."))]);
    refused(&work.push(), other);
    work.back();
    // beside main, in a merge that has nothing of it in the end: it could be asked for by its commit
    work.ok(&["checkout", "--quiet", "-b", "side"]);
    work.change(&[("prompts/review/code.md", &prompt("Mine."))]);
    work.ok(&["checkout", "--quiet", "main"]);
    work.change(&[("prompts/sre/triage.md", &prompt("Five."))]);
    work.ok(&[
        "merge", "--quiet", "--no-ff", "-s", "ours", "-m", "merge", "side",
    ]);
    refused(&work.push(), other);
    // a merge of what main has brings nothing of others
    work.back();
    work.ok(&["checkout", "--quiet", "-B", "mine", "main~1"]);
    work.change(&[("prompts/sre/other.md", &prompt("Other."))]);
    work.ok(&["checkout", "--quiet", "main"]);
    work.ok(&["merge", "--quiet", "--no-ff", "-m", "merge", "mine"]);
    assert!(work.push().ok);
    // a file that is taken away or moved away is changed
    work.back();
    work.remove("prompts/review/code.md");
    work.commit("gone");
    refused(&work.push(), other);
    work.back();
    work.ok(&["mv", "prompts/review/code.md", "prompts/sre/code.md"]);
    work.commit("moved");
    refused(&work.push(), other);

    let work = server.work("review", "review");
    work.change(&[("prompts/review/code.md", &prompt("Better."))]);
    refused(
        &work.push(),
        "prompts/review/code.md: you may not publish this; you may propose it: git push origin HEAD:refs/for/main",
    );
    work.ok(&["push", "origin", "HEAD:refs/for/main"]);
    work.change(&[("prompts/sre/triage.md", &prompt("Theirs."))]);
    let ran = work.no(&["push", "origin", "HEAD:refs/for/main"]);
    refused(
        &ran,
        "prompts/sre/triage.md: you may not propose changes of this; ask an admin of this server for the role author there",
    );
    refused(
        &work.no(&["push", "origin", "HEAD:refs/heads/mine"]),
        "refs/heads/mine: branches and tags are kept for who may publish the whole library; you may propose: git push \
         origin HEAD:refs/for/main",
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn a_proposal_is_revised_by_who_may_propose_all_of_it() {
    let server = Guarded::library(&TEAMS).await;
    let sre = server.work("sre", "sre");
    sre.change(&[("prompts/sre/triage.md", &prompt("Three."))]);
    sre.ok(&["push", "origin", "HEAD:refs/for/main"]);
    let review = server.work("review", "review");
    review.change(&[("prompts/review/code.md", &prompt("Mine."))]);
    let over = ["push", "-o", "proposal=1", "origin", "HEAD:refs/for/main"];
    review
        .no(&over)
        .says("proposal 1 is revised by its author, sre");
    let seen = server.get("root", "/api/v1/proposals/1").await.json();
    assert_eq!(seen["paths"], json!(["prompts/sre/triage.md"]));
    sre.change(&[("prompts/sre/triage.md", &prompt("Four."))]);
    sre.ok(&over);
}

#[tokio::test(flavor = "multi_thread")]
async fn git_gives_and_takes_nothing_where_only_a_part_is_read() {
    let server = Guarded::library(&TEAMS).await;
    let url = server.url("part");
    let ran = git(&server.data_dir(), &["ls-remote", &url]);
    assert!(!ran.ok);
    ran.says("403");
    let work = server.work("sre", "clone");
    work.change(&[("prompts/sre/triage.md", &prompt("Three."))]);
    let ran = work.no(&["push", &url, "HEAD:main"]);
    ran.says("403");
    let reply = server
        .get("part", "/library.git/info/refs?service=git-receive-pack")
        .await;
    assert_eq!(reply.status, 403);
    assert!(
        reply.text().contains("role reader on **"),
        "{}",
        reply.text()
    );
    // they change what they may where a part can be given
    let tip = server.get("root", "/readyz").await.json()["tip"].clone();
    let change = |path: &str| {
        json!({ "base": tip, "message": "Three", "files": { path: prompt("Three.") } }).to_string()
    };
    for hidden in ["prompts/review/code.md", "prompts/review/none.md"] {
        let reply = server
            .post("part", "/api/v1/changes", &change(hidden))
            .await;
        assert_eq!(reply.status, 403);
        let detail = reply.json()["detail"].as_str().unwrap().to_owned();
        assert_eq!(
            detail.replace(hidden, "x"),
            "x: you may not publish this; ask an admin of this server for the role publisher there"
        );
    }
    let reply = server
        .post("part", "/api/v1/changes", &change("prompts/sre/triage.md"))
        .await;
    assert_eq!(reply.status, 200, "{}", reply.text());
    // a conflict would show what is there: it is not even looked for
    let reply = server
        .post("part", "/api/v1/changes", &change("prompts/review/code.md"))
        .await;
    assert_eq!(reply.status, 403);
    // the commit says who
    let log = git(&server.bare(), &["log", "-1", "--format=%an %ae", "main"]);
    assert_eq!(log.text.trim(), "part part@localhost");
    let audit = server.get("root", "/api/v1/audit").await.json();
    assert_eq!(audit["rows"][0]["actor"], "part", "{audit}");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_label_that_is_protected_is_moved_by_an_admin_alone_whichever_way() {
    let server = Guarded::library(&TEAMS).await;
    let label = |label: &str| json!({ "label": label, "version": "v1", "reason": "r" }).to_string();
    let path = "/api/v1/prompts/triage/label";
    let protected = "labels.toml: you may not move the label production, which is protected; ";
    let ask = "ask an admin of this server for the role admin there";
    let reply = server.post("labels", path, &label("production")).await;
    assert_eq!(reply.status, 403, "{}", reply.text());
    assert_eq!(
        reply.json()["detail"],
        format!("{protected}you may propose it")
    );
    let reply = server.post("labels", path, &label("next")).await;
    assert_eq!(reply.status, 200, "{}", reply.text());
    // who publishes elsewhere is let in by the table of URLs, and not by that of the library
    for who in ["sre", "review"] {
        let reply = server.post(who, path, &label("later")).await;
        assert_eq!(reply.status, 403, "{who}: {}", reply.text());
    }
    // the file as an edit, and by a push
    let work = server.work("labels", "labels");
    let labels = "[production]\ntriage = \"v1\"\n";
    let edit = json!({ "base": work.head(), "message": "m", "files": { "labels.toml": labels } });
    let reply = server
        .post("labels", "/api/v1/changes", &edit.to_string())
        .await;
    assert_eq!(reply.status, 403, "{}", reply.text());
    work.change(&[("labels.toml", labels)]);
    refused(
        &work.push(),
        &format!("{protected}you may propose it: git push origin HEAD:refs/for/main"),
    );
    // what a push says of the policy itself does not count: main as it is does
    work.change(&[("cuebook.toml", "protected_labels = []\n")]);
    let ran = work.push();
    refused(
        &ran,
        &format!("{protected}you may propose it: git push origin HEAD:refs/for/main"),
    );
    refused(
        &ran,
        &format!("cuebook.toml: you may not change the policy; {ask}"),
    );
    let reply = server.post("root", path, &label("production")).await;
    assert_eq!(reply.status, 200, "{}", reply.text());
    // taken off, it has moved as well
    work.back();
    work.change(&[("labels.toml", "[next]\ntriage = \"v1\"\n")]);
    work.no(&["push", "origin", "HEAD:main"]).says(protected);
    // where a version is gone back to, its file is changed
    let revert = json!({ "version": "v1", "reason": "r" }).to_string();
    let revert_at = "/api/v1/prompts/triage/revert";
    let reply = server.post("labels", revert_at, &revert).await;
    assert_eq!(reply.status, 403, "{}", reply.text());
    let reply = server.post("sre", revert_at, &revert).await;
    assert_eq!(reply.status, 200, "{}", reply.text());
}

#[tokio::test(flavor = "multi_thread")]
async fn a_hook_cannot_say_who_pushes() {
    let mut server = Guarded::library(&TEAMS).await;
    let bare = server.bare();
    let push = |work: &Work, id: &str| {
        work.change(&[("prompts/sre/triage.md", &prompt(&format!("By path {id}.")))]);
        let mut command = git_command(&work.path, &["push", bare.to_str().unwrap(), "HEAD:main"]);
        command.env("CUEBOOK_PUSH", id);
        run(command)
    };
    let work = server.work("sre", "sre");
    let ran = push(&work, "guessed");
    refused(
        &ran,
        "refused: the server that took this push has ended; push again",
    );
    // who can write the repository is who is at the machine
    assert!(push(&work, "").ok);
    let audit = server.get("root", "/api/v1/audit").await.json();
    assert_eq!(audit["rows"][0]["actor"], "local", "{audit}");
    // a push over HTTP whose server is gone is judged by nobody else
    server.running.take().unwrap().stop().await;
    let ran = push(&work, "of-the-server-that-was");
    refused(
        &ran,
        "refused: the server that took this push has ended; push again",
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn a_push_whose_token_is_revoked_while_it_comes_in_moves_nothing() {
    let server = Guarded::library(&TEAMS).await;
    let work = server.work("sre", "sre");
    for revoked in [false, true] {
        let old = work.head();
        let new = work.change(&[(
            "prompts/sre/triage.md",
            &prompt(&format!("Revoked: {revoked}.")),
        )]);
        let request = push_request(&work, &old, &new);
        let bearer = server.bearer("sre");
        let headers = [
            ("Authorization", &*bearer),
            ("Content-Type", RECEIVE),
            ("Connection", "close"),
        ];
        let head = head(
            "POST",
            "/library.git/git-receive-pack",
            &headers,
            Some(request.len()),
        );
        let (first, last) = request.split_at(request.len() - 10);
        let mut stream = TcpStream::connect(server.address).await.unwrap();
        stream.write_all(head.as_bytes()).await.unwrap();
        stream.write_all(first).await.unwrap();
        // git has begun to take it
        soon("a receive-pack", async {
            while left_behind(&server.bare()).is_empty() {
                tokio::time::sleep(std::time::Duration::from_millis(5)).await;
            }
        })
        .await;
        if revoked {
            server.revoke("sre").await;
        }
        stream.write_all(last).await.unwrap();
        let mut said = Vec::new();
        soon("an answer", stream.read_to_end(&mut said))
            .await
            .unwrap();
        let said = String::from_utf8_lossy(&said);
        let refusal = "refused: this credential was revoked";
        assert_eq!(said.contains(refusal), revoked, "{said}");
        let expected = if revoked { &old } else { &new };
        assert_eq!(&server.main(), expected, "{said}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_push_whose_token_is_revoked_while_it_is_checked_moves_nothing() {
    // a worker that begins when it is let: the check of a push waits for it
    let folder = tempfile::tempdir().unwrap();
    let at = |name: &str| folder.path().join(name).display().to_string();
    let (hold, waits, worker) = (at("hold"), at("waits"), at("worker"));
    let script = format!(
        "#!/bin/sh\nwhile [ -e '{hold}' ]; do : > '{waits}'; /bin/sleep 0.02; done\nexec /usr/bin/env -i '{}' \"$@\"\n",
        env!("CARGO_BIN_EXE_cuebook")
    );
    std::fs::write(&worker, script).unwrap();
    std::fs::set_permissions(&worker, std::fs::Permissions::from_mode(0o755)).unwrap();
    let server = Guarded::library_with(&TEAMS, |config| {
        config.rendering.executable = worker.clone().into();
    })
    .await;
    let work = server.work("sre", "sre");
    let old = work.head();
    let looped = "{% for i in range(end=4000) %}{% set x = i %}{% endfor %}done";
    work.change(&[("prompts/sre/looped.md", &prompt(looped))]);
    std::fs::write(&hold, "").unwrap();
    let push = work.start_push(&["origin", "HEAD:main"]);
    soon("the check", async {
        while !std::fs::exists(&waits).unwrap() {
            tokio::time::sleep(std::time::Duration::from_millis(5)).await;
        }
    })
    .await;
    server.revoke("sre").await;
    std::fs::remove_file(&hold).unwrap();
    let output = push.wait_with_output().unwrap();
    let said = String::from_utf8_lossy(&output.stderr);
    assert!(!output.status.success(), "{said}");
    assert!(
        said.contains("refused: this credential was revoked"),
        "{said}"
    );
    assert_eq!(server.main(), old);
    // it was refused for that alone
    work.ok(&["push", "--quiet", &server.url("root"), "HEAD:main"]);
    assert_eq!(server.main(), work.head());
}
