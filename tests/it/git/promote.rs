//! `cuebook log`, `diff`, `promote` and `revert`: through the server that runs, and without one.

use super::*;

fn cuebook(host: &Host, arguments: &[&str]) -> Ran {
    let mut process = Command::new(env!("CARGO_BIN_EXE_cuebook"));
    process
        .args(arguments)
        .arg("--data-dir")
        .arg(host.data_dir());
    run(process)
}

#[track_caller]
fn ok(host: &Host, arguments: &[&str]) -> String {
    let ran = cuebook(host, arguments);
    assert!(ran.ok, "{arguments:?}: {}", ran.text);
    ran.text
}

/// The lines of a log without ids and days, which differ from run to run.
fn lines(log: &str) -> Vec<String> {
    let words = |line: &str| -> String {
        let words = line.split_whitespace().filter(|word| {
            let is_id = word.len() == 8 && word.bytes().all(|b| b.is_ascii_hexdigit());
            let is_day = word.len() == 10 && word.matches('-').count() == 2;
            !is_id && !is_day
        });
        words.collect::<Vec<_>>().join(" ")
    };
    log.lines().map(words).collect()
}

fn worked(text: &str) -> String {
    format!(
        "---\narguments: [{{ name: service }}]\nexamples:\n  - name: payments\n    arguments: {{ service: pay }}\n---\n{{% include \"head.md\" %}}\n{text} {{{{ service }}}}\n"
    )
}

async fn three() -> Host {
    let host = Host::small().await;
    let work = host.work("author");
    work.publish(&[
        ("prompts/a.md", &worked("first")),
        ("partials/head.md", "Head.\n"),
    ]);
    work.publish(&[("prompts/a.md", &worked("second"))]);
    work.publish(&[("partials/head.md", "Another head.\n")]);
    host
}

#[tokio::test(flavor = "multi_thread")]
async fn a_label_is_promoted_and_rolled_back_and_the_log_says_so() {
    let mut host = three().await;
    let said = ok(
        &host,
        &[
            "promote",
            "a",
            "v3",
            "--to",
            "production",
            "--reason",
            "a week on staging",
        ],
    );
    assert!(
        said.starts_with(&format!("published {}", host.main())),
        "{said}"
    );
    assert_eq!(
        host.client().get("a@production", json!({})).await["_meta"]["dev.cuebook/source"]["version"],
        3
    );
    let work = host.work("reader");
    assert_eq!(
        work.ok(&["log", "-1", "--format=%an|%cn|%B"]).text.trim(),
        "local|Cuebook|promote a v3 to production\n\na week on staging"
    );
    // the file keeps what people wrote in it
    work.publish(&[(
        "labels.toml",
        "# who may what\n[production] # live\na = \"v3\" # good\n",
    )]);
    ok(
        &host,
        &[
            "promote",
            "a",
            "v1",
            "--to",
            "production",
            "--reason",
            "v3 is too long",
        ],
    );
    assert_eq!(
        host.client().get("a@production", json!({})).await["_meta"]["dev.cuebook/source"]["version"],
        1
    );
    work.ok(&["pull", "--quiet"]);
    assert_eq!(
        std::fs::read_to_string(work.path.join("labels.toml")).unwrap(),
        "# who may what\n[production] # live\na = \"v1\" # good\n"
    );
    // one label onto what another is on
    ok(
        &host,
        &[
            "promote",
            "a",
            "production",
            "--to",
            "next",
            "--reason",
            "try it",
        ],
    );
    let log = ok(&host, &["log", "a"]);
    assert_eq!(
        lines(&log),
        [
            "v3 Test: change [served]",
            "v2 Test: change",
            "v1 Test: change [next, production]",
            "",
            "labels",
            "local: promote a v1 to next [next → v1]",
            "local: promote a v1 to production [production → v1]",
            "local: promote a v3 to production [production → v3]",
        ],
        "{log}"
    );
    for (arguments, says) in [
        (
            &["promote", "a", "v9", "--to", "production", "--reason", "x"][..],
            "`a` has no v9; its newest is v3",
        ),
        (
            &["promote", "a", "v1", "--to", "v2", "--reason", "x"],
            "`v2` cannot be a label",
        ),
        (
            &["promote", "a", "v1", "--to", "production", "--reason", " "],
            "say in `reason` why",
        ),
        (
            &["promote", "a", "v1", "--to", "production", "--reason", "x"],
            "there is nothing to publish",
        ),
        (
            &[
                "promote",
                "zzz",
                "v1",
                "--to",
                "production",
                "--reason",
                "x",
            ],
            "there is no prompt `zzz`",
        ),
        (
            &[
                "promote",
                "a",
                "nothing",
                "--to",
                "production",
                "--reason",
                "x",
            ],
            "`nothing` is neither a version of `a`",
        ),
        (&["log", "A"], "is not a prompt name"),
    ] {
        let main = host.main();
        let ran = cuebook(&host, arguments);
        assert!(!ran.ok, "{arguments:?}");
        ran.says(says);
        assert_eq!(host.main(), main, "{arguments:?}");
    }
    // without a server the command opens the data directory itself, with the same answer
    host.stop().await;
    assert_eq!(ok(&host, &["log", "a"]), log);
}

#[tokio::test(flavor = "multi_thread")]
async fn two_versions_are_compared_as_files_and_as_they_render() {
    let host = three().await;
    let shown = ok(&host, &["diff", "a", "v1", "v3"]);
    for line in [
        "--- v1/prompts/a.md",
        "+++ v3/prompts/a.md",
        "-first {{ service }}",
        "+second {{ service }}",
        "--- v1/partials/head.md",
        "+Another head.",
        "example: payments",
        "-first pay",
        "+second pay",
    ] {
        assert!(shown.lines().any(|l| l == line), "no `{line}` in:\n{shown}");
    }
    assert_eq!(
        ok(&host, &["diff", "a", "v2", "v2"]),
        "the files are the same\n\nexample: payments\nrenders the same\n"
    );
    let ran = cuebook(&host, &["diff", "a", "v1", "v4"]);
    assert!(!ran.ok);
    ran.says("`a` has no v4");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_revert_is_a_new_version_with_the_old_text() {
    let host = three().await;
    let said = ok(&host, &["revert", "a", "v1", "--reason", "v2 lost a word"]);
    // a partial is of other prompts too: it stays, and that is said
    assert!(
        said.contains("v1 had another partials/head.md, which is shared and stays as it is"),
        "{said}"
    );
    let again = cuebook(&host, &["revert", "a", "v1", "--reason", "again"]);
    assert!(!again.ok);
    again.says("there is nothing to publish");
    again.says("v1 had another partials/head.md");
    let got = host.client().get("a", json!({ "service": "pay" })).await;
    assert_eq!(
        got["messages"][0]["content"]["text"],
        "Another head.\n\nfirst pay\n"
    );
    assert_eq!(got["_meta"]["dev.cuebook/source"]["version"], 4);
    let log = lines(&ok(&host, &["log", "a"]));
    assert_eq!(log[0], "v4 local: revert a to v1 [served]");
    // a prompt that is gone comes back where it was
    let work = host.work("remover");
    work.remove("prompts/a.md");
    work.publish(&[]);
    ok(&host, &["revert", "a", "v2", "--reason", "it was needed"]);
    let got = host.client().get("a", json!({ "service": "pay" })).await;
    assert_eq!(
        got["messages"][0]["content"]["text"],
        "Another head.\n\nsecond pay\n"
    );
    assert_eq!(got["_meta"]["dev.cuebook/source"]["version"], 5);
    // each is in the audit for what it was
    let done = ok(
        &host,
        &[
            "promote",
            "a",
            "v4",
            "--to",
            "production",
            "--reason",
            "good",
        ],
    );
    let exported = ok(&host, &["audit", "--export"]);
    let rows: Vec<Value> = exported
        .lines()
        .map(|line| serde_json::from_str(line).unwrap())
        .collect();
    let of = |action: &str| -> Vec<(&str, &str)> {
        rows.iter()
            .filter(|row| row["action"] == action)
            .map(|row| {
                (
                    row["subject"].as_str().unwrap(),
                    row["detail"].as_str().unwrap(),
                )
            })
            .collect()
    };
    assert_eq!(
        of("restore"),
        [("a v1", "v2 lost a word"), ("a v2", "it was needed")]
    );
    assert_eq!(of("promote"), [("a v4 to production", "good")]);
    assert!(done.contains(&host.main()), "{done}");
    assert_eq!(rows.last().unwrap()["new_commit"], host.main());
}

#[tokio::test(flavor = "multi_thread")]
async fn a_revert_of_a_renamed_prompt_that_is_gone_leaves_others_alone() {
    let host = Host::small().await;
    let work = host.work("author");
    work.publish(&[("prompts/team/alpha.md", &prompt("first"))]);
    work.ok(&["mv", "prompts/team/alpha.md", "prompts/team/beta.md"]);
    work.publish(&[]);
    work.remove("prompts/team/beta.md");
    work.publish(&[("prompts/team/alpha.md", &prompt("another"))]);
    ok(
        &host,
        &["revert", "beta", "v1", "--reason", "it was needed"],
    );
    let text = async |name| {
        host.client().get(name, json!({})).await["messages"][0]["content"]["text"].clone()
    };
    assert_eq!(text("alpha").await, "another\n");
    assert_eq!(text("beta").await, "first\n");
    work.ok(&["pull", "--quiet"]);
    assert_eq!(
        std::fs::read_to_string(work.path.join("prompts/team/beta.md")).unwrap(),
        prompt("first")
    );
    // moved since, and edited: it stays where it is
    work.ok(&["mv", "prompts/team/beta.md", "prompts/beta.md"]);
    work.publish(&[("prompts/beta.md", &prompt("second"))]);
    ok(&host, &["revert", "beta", "v1", "--reason", "again"]);
    assert_eq!(text("beta").await, "first\n");
    work.ok(&["pull", "--quiet"]);
    assert!(!work.path.join("prompts/team/beta.md").exists());
}

#[tokio::test(flavor = "multi_thread")]
async fn a_label_is_taken_off_only_when_null_is_said() {
    let host = three().await;
    let ask = async |body: Value| {
        let headers = [("Content-Type", "application/json")];
        let path = "/api/v1/prompts/a/label";
        let body = body.to_string();
        send(host.address, "POST", path, &headers, body.as_bytes()).await
    };
    let on = json!({ "label": "production", "version": "v2", "reason": "x" });
    assert_eq!(ask(on).await.status, 200);
    let main = host.main();
    let reply = ask(json!({ "label": "production", "reason": "x" })).await;
    assert_eq!(reply.status, 422, "{}", reply.text());
    assert!(reply.text().contains("say `version`"), "{}", reply.text());
    assert_eq!(host.main(), main);
    let off = json!({ "label": "production", "version": null, "reason": "x" });
    assert_eq!(ask(off).await.status, 200);
    let work = host.work("reader");
    let text = std::fs::read_to_string(work.path.join("labels.toml")).unwrap_or_default();
    assert!(!text.contains("v2"), "{text}");
}
