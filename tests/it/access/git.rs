//! Who may clone, push and propose what, with the real git.

use std::path::PathBuf;

use cuebook::access::{Action, Role};
use serde_json::json;

use super::{Guarded, Person, ROLES};
use crate::git::{Ran, Work, git, git_command, run};

const POLICY: &str = "protected_labels = [\"production\"]\n";

fn prompt(text: &str) -> String {
    format!("---\ndescription: D\n---\n{text}\n")
}

impl Guarded {
    /// The address that an actor clones.
    fn url(&self, name: &str) -> String {
        format!(
            "http://{name}:{}@{}/library.git",
            self.token(name),
            self.address
        )
    }

    /// A clone as an actor.
    fn work(&self, name: &str, folder: &str) -> Work {
        Work::clone(self.folder.path(), &self.url(name), folder, &[])
    }

    fn bare(&self) -> PathBuf {
        self.data_dir().join("library.git")
    }

    async fn library(people: &[Person<'_>]) -> Self {
        let one = prompt("One.");
        let server = Self::start(
            &[
                ("cuebook.toml", POLICY),
                ("prompts/sre/triage.md", &one),
                ("prompts/review/code.md", &one),
            ],
            people,
        )
        .await;
        server
            .publish(&[("prompts/sre/triage.md", &prompt("Two."))])
            .await;
        server
    }
}

/// A push: what is changed, to which ref, and what it takes.
struct Operation {
    path: &'static str,
    text: fn(usize) -> String,
    to: &'static str,
    action: Action,
}

/// Every kind of push, and the action of the table that it takes.
const OPERATIONS: &[Operation] = &[
    Operation {
        path: "prompts/sre/triage.md",
        text: |n| prompt(&format!("Text {n}.")),
        to: "refs/heads/main",
        action: Action::Publish,
    },
    Operation {
        path: "labels.toml",
        text: |n| format!("[next]\ntriage = \"v{}\"\n", n % 2 + 1),
        to: "refs/heads/main",
        action: Action::MoveLabel,
    },
    Operation {
        path: "labels.toml",
        text: |n| format!("[production]\ntriage = \"v{}\"\n", n % 2 + 1),
        to: "refs/heads/main",
        action: Action::MoveProtectedLabel,
    },
    Operation {
        path: "cuebook.toml",
        text: |n| format!("title = \"Library {n}\"\n{POLICY}"),
        to: "refs/heads/main",
        action: Action::ChangePolicy,
    },
    Operation {
        path: "prompts/review/code.md",
        text: |n| prompt(&format!("Proposed {n}.")),
        to: "refs/for/main",
        action: Action::Propose,
    },
    Operation {
        path: "prompts/review/code.md",
        text: |n| prompt(&format!("Kept {n}.")),
        to: "refs/heads/wip",
        action: Action::Publish,
    },
    Operation {
        path: "prompts/review/code.md",
        text: |n| prompt(&format!("Tagged {n}.")),
        to: "refs/tags/t",
        action: Action::Publish,
    },
];

#[tokio::test(flavor = "multi_thread")]
async fn every_push_of_every_role_is_as_the_table_says() {
    let server = Guarded::library(&ROLES).await;
    for (index, (name, _)) in ROLES.into_iter().enumerate() {
        let role = Role::parse(name).unwrap();
        // whoever reads the whole library clones it
        let work = server.work(name, name);
        for (n, operation) in OPERATIONS.iter().enumerate() {
            let Operation {
                path,
                text,
                to,
                action,
            } = operation;
            work.back();
            work.change(&[(path, &text(index * OPERATIONS.len() + n))]);
            let ran = work.git(&["push", "--force", "origin", &format!("HEAD:{to}")]);
            assert_eq!(
                ran.ok,
                role >= action.needs(),
                "{name} pushes {path} to {to}:\n{}",
                ran.text
            );
            if role == Role::Reader {
                // git asks for the refs first, and is told there
                ran.says("403");
            } else if !ran.ok {
                ran.says("propose");
            }
        }
        // what is kept is deleted by who may keep it
        let ran = git(&server.bare(), &["branch", "gone", "main"]);
        assert!(ran.ok, "{}", ran.text);
        let ran = work.git(&["push", "origin", ":refs/heads/gone"]);
        assert_eq!(ran.ok, role >= Role::Publisher, "{name}: {}", ran.text);
        git(&server.bare(), &["branch", "-D", "gone"]);
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
