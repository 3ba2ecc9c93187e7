//! Changes that are made through the API: one commit each, through the same gate as a push.

use super::*;

impl Host {
    /// Asks for a change; the answer.
    async fn change(&self, base: &str, files: Value) -> Reply {
        let body = json!({ "base": base, "files": files, "message": "Edited here\n\nBecause." });
        self.post("/api/v1/changes", &body).await
    }

    async fn post(&self, path: &str, body: &Value) -> Reply {
        let headers = [("Content-Type", "application/json")];
        let body = body.to_string();
        send(self.address, "POST", path, &headers, body.as_bytes()).await
    }
}

#[track_caller]
fn refused(reply: &Reply, status: u16, words: &str) -> Value {
    assert_eq!(reply.status, status, "{}", reply.text());
    assert_eq!(
        reply.header("content-type"),
        Some("application/problem+json")
    );
    let problem = reply.json();
    let detail = problem["detail"].as_str().unwrap();
    assert!(detail.contains(words), "no `{words}` in: {detail}");
    problem
}

#[tokio::test(flavor = "multi_thread")]
async fn a_change_is_a_commit_that_clients_are_told_of() {
    let host = Host::small().await;
    let base = host.main();
    let client = host.client();
    let mut events = client.listen(json!({ "promptsListChanged": true })).await;
    assert_eq!(
        events.notice().await,
        "notifications/subscriptions/acknowledged"
    );
    let reply = host
        .change(
            &base,
            json!({
                "prompts/sre/after.md": prompt("Write it down today."),
                "prompts/sre/new.md": prompt("New."),
                "prompts/review/code-review.md": null,
                "resources/image/dot.png": { "base64": "iVBORw0KGgo=" },
            }),
        )
        .await;
    assert_eq!(reply.status, 200, "{}", reply.text());
    let answer = reply.json();
    let commit = answer["commit"].as_str().unwrap();
    assert_eq!(host.main(), commit);
    let lines = answer["lines"].to_string();
    assert!(lines.contains("published 2 prompts"), "{lines}");
    assert!(lines.contains("removed 1 prompt"), "{lines}");
    assert_eq!(events.notice().await, "notifications/prompts/list_changed");
    assert_eq!(host.text("after").await, "Write it down today.\n");
    assert_eq!(client.names().await, ["after", "new", "triage"]);

    let work = host.work("work");
    let log = work.ok(&["log", "-1", "--format=%an|%ae|%cn|%P|%B"]).text;
    assert_eq!(
        log.trim(),
        format!("local|local@localhost|Cuebook|{base}|Edited here\n\nBecause.")
    );
    let png = std::fs::read(work.path.join("resources/image/dot.png")).unwrap();
    assert_eq!(png, b"\x89PNG\r\n\x1a\n");
    // what was not edited is as it was
    work.ok(&[
        "diff",
        "--exit-code",
        &base,
        "HEAD",
        "--",
        "prompts/sre/triage.md",
    ]);
    work.ok(&["fsck", "--strict"]);
    settled(&host.bare()).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn the_first_commit_of_an_empty_library() {
    let host = Host::with(None, |_| {}).await;
    let body =
        json!({ "base": null, "files": { "prompts/a.md": prompt("A.") }, "message": "First" });
    let reply = host.post("/api/v1/changes", &body).await;
    assert_eq!(reply.status, 200, "{}", reply.text());
    assert_eq!(host.text("a").await, "A.\n");
    let base = host.main();
    refused(
        &host.post("/api/v1/changes", &body).await,
        422,
        "give `base`",
    );
    assert_eq!(host.main(), base);
}

#[tokio::test(flavor = "multi_thread")]
async fn what_the_gate_refuses_a_push_it_refuses_here() {
    let host = Host::small().await;
    let base = host.main();
    let objects = || git(&host.bare(), &["count-objects", "-v"]).text;
    let before = objects();
    let reply = host
        .change(
            &base,
            json!({ "prompts/sre/bad.md": prompt("Hello {{ nmae }}.") }),
        )
        .await;
    let problem = refused(
        &reply,
        422,
        "prompts/sre/bad.md:4:10: `nmae` is not an argument",
    );
    assert_eq!(problem["problems"][0]["line"], 4);
    assert_eq!(problem["problems"][0]["code"], "undeclared-variable");
    // a secret, a file that is no UTF-8
    let token = format!("ghp_{}", "a1B2c3D4e5".repeat(4).get(..36).unwrap());
    let secret = prompt(&format!("Use {token} to log in."));
    refused(
        &host
            .change(&base, json!({ "prompts/sre/s.md": secret }))
            .await,
        422,
        "prompts/sre/s.md",
    );
    refused(
        &host
            .change(&base, json!({ "prompts/sre/x.md": { "base64": "//79" } }))
            .await,
        422,
        "UTF-8",
    );
    // nothing of it was kept
    assert_eq!(host.main(), base);
    assert_eq!(objects(), before);
    settled(&host.bare()).await;
    assert_eq!(host.text("after").await, "Write it down.\n");
}

#[tokio::test(flavor = "multi_thread")]
async fn what_cannot_be_asked_for() {
    let host = Host::small().await;
    let base = host.main();
    for path in [
        "../x.md",
        "/etc/passwd",
        "prompts//x.md",
        "prompts/./x.md",
        ".git/config",
        "prompts/.GIT/x.md",
        "",
        "prompts/",
        "a\\b",
        "prompts/\0.md",
    ] {
        let reply = host.change(&base, json!({ path: prompt("X.") })).await;
        refused(&reply, 422, "is no path in a library");
    }
    let x = json!({ "prompts/x.md": prompt("X.") });
    refused(&host.change(&base, json!({})).await, 422, "names no file");
    refused(
        &host.change("main", x.clone()).await,
        422,
        "no commit `main`",
    );
    refused(
        &host.change(&"1".repeat(40), x.clone()).await,
        422,
        "no commit `1111",
    );
    refused(
        &host
            .change(
                &base,
                json!({ "prompts/sre/after.md": prompt("Write it down.") }),
            )
            .await,
        409,
        "nothing to publish",
    );
    refused(
        &host.change(&base, json!({ "prompts/none.md": null })).await,
        409,
        "nothing to publish",
    );
    let body = json!({ "base": base, "files": x, "message": "  " });
    refused(
        &host.post("/api/v1/changes", &body).await,
        422,
        "say in `message`",
    );
    refused(
        &host.post("/api/v1/changes", &json!({ "bse": 1 })).await,
        400,
        "unknown field `bse`",
    );
    refused(
        &send(host.address, "POST", "/api/v1/changes", &[], b"{}").await,
        415,
        "application/json",
    );
    assert_eq!(host.main(), base);
}

/// A file in the place of a folder, and the other way round.
#[tokio::test(flavor = "multi_thread")]
async fn a_file_where_a_folder_is() {
    let host = Host::small().await;
    let base = host.main();
    for (path, other) in [
        ("prompts/sre", "`prompts/sre` is in the way"),
        (
            "prompts/sre/after.md/x.md",
            "`prompts/sre/after.md` is in the way",
        ),
    ] {
        let reply = host.change(&base, json!({ path: prompt("X.") })).await;
        refused(&reply, 422, other);
    }
    assert_eq!(host.main(), base);
}

/// Whoever deletes a path has seen a file there, and not what a colleague has put into a folder.
#[tokio::test(flavor = "multi_thread")]
async fn a_folder_is_not_deleted_as_if_it_were_a_file() {
    let host = Host::small().await;
    let base = host.main();
    let reply = host.change(&base, json!({ "prompts/sre": null })).await;
    refused(&reply, 422, "`prompts/sre` is in the way");
    assert_eq!(host.main(), base);
}

#[tokio::test(flavor = "multi_thread")]
async fn what_git_does_not_take_is_said_and_no_fault_of_the_server() {
    let host = Host::small().await;
    let base = host.main();
    let x = || json!({ "prompts/x.md": prompt("X.") });
    let with = |message: String| json!({ "base": base, "files": x(), "message": message });
    let reply = host.post("/api/v1/changes", &with("a\0b".into())).await;
    refused(&reply, 422, "holds a NUL");
    let reply = host
        .post("/api/v1/changes", &with("m".repeat(70_000)))
        .await;
    refused(&reply, 422, "70000 bytes");
    let reply = host
        .change(
            &base,
            json!({ "resources/runbook/x": "a", "resources/runbook/x/y.md": "b" }),
        )
        .await;
    refused(
        &reply,
        422,
        "`resources/runbook/x` cannot be a file, since `resources/runbook/x/y.md` makes it a folder",
    );
    for path in ["prompts/git~1/x.md", "prompts/.git\u{200c}/x.md"] {
        let reply = host.change(&base, json!({ path: prompt("X.") })).await;
        refused(&reply, 422, "git does not take this change");
    }
    assert_eq!(host.main(), base);
    settled(&host.bare()).await;
}

/// What is written for a change is what is new, however large the library: the loose objects tell.
#[tokio::test(flavor = "multi_thread")]
async fn a_change_writes_its_own_objects_and_no_others() {
    let host = Host::small().await;
    let work = host.work("work");
    let files: Vec<(String, String)> = (0..200)
        .map(|i| {
            (
                format!("prompts/f{}/p{i}.md", i % 20),
                prompt(&format!("{i}.")),
            )
        })
        .collect();
    let files: Vec<(&str, &str)> = files.iter().map(|(p, t)| (&**p, &**t)).collect();
    work.publish(&files);
    let packed = git(&host.bare(), &["repack", "-a", "-d", "-q"]);
    assert!(packed.ok, "{}", packed.text);
    let loose = || {
        let text = git(&host.bare(), &["count-objects"]).text;
        text.split(' ').next().unwrap().parse::<usize>().unwrap()
    };
    let before = loose();
    let base = host.main();
    let reply = host
        .change(
            &base,
            json!({ "prompts/f3/p3.md": prompt("Other."), "prompts/new/deep/x.md": prompt("X.") }),
        )
        .await;
    assert_eq!(reply.status, 200, "{}", reply.text());
    // two blobs; prompts/new/deep, prompts/new, prompts/f3, prompts, the root; the commit
    assert_eq!(loose() - before, 8);
    let ran = git(&host.bare(), &["fsck", "--strict", "--full"]);
    assert!(ran.ok, "{}", ran.text);
}

/// Who hangs up leaves no more behind than the places there are.
#[tokio::test(flavor = "multi_thread")]
async fn changes_of_clients_that_hang_up_do_not_pile_up() {
    use tokio::io::AsyncWriteExt as _;
    let host = Host::small().await;
    let base = host.main();
    let files = json!({ "prompts/x.md": prompt(&"x".repeat(30_000)) });
    let body = json!({ "base": base, "files": files, "message": "m" }).to_string();
    let head = format!(
        "POST /api/v1/changes HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\nContent-Length: {}\r\n\r\n",
        body.len()
    );
    for _ in 0..200 {
        let mut stream = tokio::net::TcpStream::connect(host.address).await.unwrap();
        stream.write_all(head.as_bytes()).await.unwrap();
        stream.write_all(body.as_bytes()).await.unwrap();
    }
    // an honest one is served in its turn
    let y = json!({ "prompts/y.md": prompt("Y.") });
    let reply = soon("an honest change", host.change(&base, y)).await;
    assert_eq!(reply.status, 200, "{}", reply.text());
    settled(&host.bare()).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn v5_two_editors_of_one_base() {
    let host = Host::small().await;
    let base = host.main();
    let mine = json!({ "prompts/sre/after.md": prompt("Mine.") });
    assert_eq!(host.change(&base, mine.clone()).await.status, 200);
    let now = host.main();
    let theirs = json!({ "prompts/sre/after.md": prompt("Theirs.") });
    let problem = refused(
        &host.change(&base, theirs.clone()).await,
        409,
        "prompts/sre/after.md changed on main",
    );
    assert_eq!(problem["now"], now);
    assert_eq!(
        problem["conflicts"],
        json!([{
            "path": "prompts/sre/after.md",
            "base": prompt("Write it down."),
            "now": prompt("Mine."),
        }])
    );
    assert_eq!(host.main(), now);
    // from what main says now it goes in; and another file does from the old base
    assert_eq!(host.change(&now, theirs).await.status, 200);
    let other = json!({ "prompts/sre/triage.md": prompt("Ticket.") });
    assert_eq!(host.change(&base, other).await.status, 200);
    assert_eq!(host.text("after").await, "Theirs.\n");
    assert_eq!(host.text("triage").await, "Ticket.\n");
    // the same edit by both is no conflict, and nothing new
    refused(
        &host
            .change(&base, json!({ "prompts/sre/after.md": prompt("Theirs.") }))
            .await,
        409,
        "nothing to publish",
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn v6_many_save_at_once_and_somebody_pushes() {
    let host = Host::small().await;
    let base = host.main();
    let work = host.work("work");
    let different = |i: usize| {
        let mut files = serde_json::Map::new();
        files.insert(format!("prompts/many/p{i}.md"), prompt("P.").into());
        host.change(&base, Value::Object(files))
    };
    let same = |i: usize| {
        let text = prompt(&format!("By {i}."));
        host.change(&base, json!({ "prompts/sre/after.md": text }))
    };
    let pushing = async {
        // a push that finds main moved pulls and tries again, as a person does
        tokio::task::spawn_blocking(move || {
            for i in 0..5 {
                work.change(&[(&format!("prompts/pushed/q{i}.md"), &prompt("Q."))]);
                while !work.push().ok {
                    work.ok(&["pull", "--quiet", "--rebase", "origin", "main"]);
                }
            }
        })
        .await
        .unwrap();
    };
    let ((saved, contended), ()) = tokio::join!(
        async {
            tokio::join!(
                futures_util::future::join_all((0..50).map(different)),
                futures_util::future::join_all((0..50).map(same)),
            )
        },
        pushing
    );
    for reply in &saved {
        assert_eq!(reply.status, 200, "{}", reply.text());
    }
    let won = contended.iter().filter(|r| r.status == 200).count();
    let lost = contended.iter().filter(|r| r.status == 409).count();
    assert_eq!((won, lost), (1, 49));
    let names = host.client().names().await;
    for i in 0..50 {
        assert!(names.contains(&format!("p{i}")), "p{i}");
    }
    for i in 0..5 {
        assert!(names.contains(&format!("q{i}")), "q{i}");
    }
    let ran = git(&host.bare(), &["fsck", "--strict"]);
    assert!(ran.ok, "{}", ran.text);
    settled(&host.bare()).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn verify_finds_the_catalog_as_git_says() {
    let mut host = Host::small().await;
    let work = host.work("work");
    for i in 0..5 {
        work.publish(&[("prompts/sre/after.md", &prompt(&format!("Number {i}.")))]);
    }
    let verify = |command: &'static str| {
        let mut process = Command::new(env!("CARGO_BIN_EXE_cuebook"));
        process.args([command, "--data-dir"]).arg(host.data_dir());
        run(process)
    };
    let ran = verify("verify");
    assert!(ran.ok, "{}", ran.text);
    ran.says("catalog: 4 rows, as git says");
    let ran = verify("reindex");
    assert!(ran.ok, "{}", ran.text);
    assert_eq!(host.text("after").await, "Number 4.\n");
    // one at a time: whoever asks again and again keeps nobody from publishing
    let base = host.main();
    let both = tokio::join!(
        futures_util::future::join_all((0..20).map(|_| host.post("/api/v1/reindex", &Value::Null))),
        host.change(&base, json!({ "prompts/during.md": prompt("D.") })),
    );
    let statuses: Vec<u16> = both.0.iter().map(|reply| reply.status).collect();
    assert!(statuses.contains(&200), "{statuses:?}");
    assert!(
        statuses.iter().all(|status| matches!(status, 200 | 409)),
        "{statuses:?}"
    );
    assert_eq!(both.1.status, 200, "{}", both.1.text());
    assert_eq!(host.text("during").await, "D.\n");
    // without a server the command opens the data directory itself
    host.stop().await;
    let verify = |folder: &Path| {
        let mut process = Command::new(env!("CARGO_BIN_EXE_cuebook"));
        process.args(["verify", "--data-dir"]).arg(folder);
        run(process)
    };
    let ran = verify(&host.data_dir());
    assert!(ran.ok, "{}", ran.text);
    ran.says("catalog: 5 rows, as git says");
    let ran = verify(&host.folder.path().join("nothing"));
    assert!(!ran.ok);
    ran.says("there is no data directory at");
    ran.says("cuebook serve");
}
