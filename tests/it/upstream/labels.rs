//! Labels that are moved in a library that follows another: at once, kept when the other moves on, with the same numbers.

use super::*;

impl Mirror {
    fn cuebook(&self, arguments: &[&str]) -> (bool, String) {
        let output = Command::new(env!("CARGO_BIN_EXE_cuebook"))
            .args(arguments)
            .arg("--data-dir")
            .arg(self.folder.path().join("data"))
            .output()
            .unwrap();
        let text = [output.stdout, output.stderr].concat();
        (
            output.status.success(),
            String::from_utf8_lossy(&text).into_owned(),
        )
    }

    #[track_caller]
    fn promote(&self, name: &str, version: &str) -> String {
        let (ok, said) = self.cuebook(&[
            "promote",
            name,
            version,
            "--to",
            "production",
            "--reason",
            "it was better",
        ]);
        assert!(ok, "{said}");
        said
    }

    /// Every version of a prompt, oldest first, with the labels that are on it.
    async fn versions(&self, name: &str) -> Vec<(u64, Vec<String>)> {
        let path = format!("/api/v1/prompts/{name}/versions");
        let request = head("GET", &path, &[("Connection", "close")], None);
        // after a rewrite they are counted again, and the answer says so meanwhile
        let answer = soon("the versions to be counted", async {
            loop {
                let reply = raw(self.running.address, request.as_bytes()).await;
                if reply.status != 503 {
                    break reply.json();
                }
                tokio::time::sleep(Duration::from_millis(10)).await;
            }
        })
        .await;
        let versions = answer["versions"].as_array().unwrap().iter().rev();
        versions
            .map(|version| {
                let labels = version["labels"].as_array().unwrap().iter();
                (
                    version["version"].as_u64().unwrap(),
                    labels.map(|l| l.as_str().unwrap().to_owned()).collect(),
                )
            })
            .collect()
    }

    /// The version that the label is on.
    async fn production(&self, name: &str) -> Option<u64> {
        let versions = self.versions(name).await;
        let on = |labels: &Vec<String>| labels.iter().any(|label| label == "production");
        let found = versions.iter().find(|(_, labels)| on(labels));
        found.map(|(number, _)| *number)
    }

    fn git(&self, arguments: &[&str]) -> String {
        git(&self.bare(), arguments).trim().to_owned()
    }

    /// Asks for a fetch and waits until main has this commit of the other side.
    async fn until_has(&self, commit: &str) {
        let signed = [("X-Gitlab-Token", SECRET)];
        assert_eq!(self.hook(&signed, "{}").await.0, 202);
        until("what is followed", || {
            self.git(&["rev-parse", "refs/cuebook/upstream"]) == commit
                && self.main().is_some_and(|main| self.serves_commit(&main))
        })
        .await;
    }
}

fn labels(a: &str, b: &str) -> String {
    format!("# whose\n[production]\na = \"{a}\" # why\nb = \"{b}\"\n")
}

/// Two prompts, the first with two versions and the label on the second.
fn labelled() -> (TestLibrary, String) {
    let library = TestLibrary::with(&[
        ("prompts/a.md", &prompt("One")),
        ("prompts/b.md", &prompt("Other")),
    ]);
    let tip = library.publish(&[
        ("prompts/a.md", &prompt("Two")),
        ("labels.toml", &labels("v2", "v1")),
    ]);
    (library, tip)
}

async fn mirror_of(forge: &Forge) -> Mirror {
    Mirror::start(&forge.url(), &[("upstream.webhook_secret", SECRET)]).await
}

#[tokio::test(flavor = "multi_thread")]
async fn a_label_is_rolled_back_while_the_upstream_is_away_and_stays_when_it_moves_on() {
    let (library, tip) = labelled();
    let forge = Forge::serve(&library.bare(), Some(TOKEN)).await;
    let mirror = mirror_of(&forge).await;
    until("the first fetch", || mirror.serves_commit(&tip)).await;
    forge.lock_out();

    let said = mirror.promote("a", "v1");
    let main = mirror.main().unwrap();
    assert!(
        said.contains(&format!("published {main}")) && said.contains("origin/main:main"),
        "{said}"
    );
    assert!(mirror.serves_commit(&main));
    assert_eq!(mirror.git(&["rev-parse", "main^"]), tip);
    assert_eq!(mirror.production("a").await, Some(1));
    let ready = mirror.ready().await;
    assert_eq!(
        ready["upstream"]["label_moves"],
        serde_json::json!(["production of a is v1 here and v2 there"]),
        "{ready}"
    );
    assert!(ready.to_string().contains("1 label was moved here that"));

    // all else is changed there
    let (ok, said) = mirror.cuebook(&["revert", "a", "v1", "--reason", "x"]);
    assert!(
        !ok && said.contains("labels are moved here, all else is changed there"),
        "{said}"
    );
    let clone = library.clone();
    git(
        &clone,
        &["fetch", "--quiet", mirror.bare().to_str().unwrap(), "main"],
    );
    git(&clone, &["checkout", "--quiet", "FETCH_HEAD"]);
    library.write_bytes("labels.toml", labels("v2", "v1").as_bytes());
    library.commit("by git");
    let (ok, said) = try_git(&clone, &["push", &mirror.url(), "HEAD:main"]);
    assert!(!ok && said.contains("takes no pushes"), "{said}");
    assert_eq!(mirror.main().as_deref(), Some(&*main));

    // it moves on while the server is down: two versions at once, a label on the second, another of ours let be
    let Mirror { folder, running } = mirror;
    running.stop().await;
    git(&clone, &["checkout", "--quiet", "main"]);
    library.publish(&[("prompts/a.md", &prompt("Three"))]);
    let moved = library.publish(&[
        ("prompts/a.md", &prompt("Four")),
        ("prompts/b.md", &prompt("Otherwise")),
    ]);
    let moved_labels = library.publish(&[("labels.toml", &labels("v2", "v2"))]);
    assert_ne!(moved, moved_labels);
    let forge = Forge::serve(&library.bare(), Some(TOKEN)).await;
    let hook = [("upstream.webhook_secret", SECRET)];
    let mirror = Mirror::in_folder(folder, &forge.url(), &hook).await;
    mirror.until_has(&moved_labels).await;
    let numbers: Vec<u64> = mirror.versions("a").await.iter().map(|v| v.0).collect();
    assert_eq!(numbers, [1, 2, 3, 4]);
    assert_eq!(mirror.production("a").await, Some(1));
    assert_eq!(mirror.production("b").await, Some(2));
    assert_eq!(
        mirror.git(&["show", "main:labels.toml"]),
        labels("v1", "v2").trim()
    );
    assert_eq!(
        mirror.git(&["diff", "--name-only", &moved_labels, "main"]),
        "labels.toml"
    );
    let chain = mirror.git(&["rev-list", "--first-parent", "main"]);
    assert!(chain.lines().any(|commit| commit == main), "{chain}");
    let ready = until_ready(&mirror, "the status", |ready| {
        ready["upstream"]["commit"] == *moved_labels
    })
    .await;
    assert_eq!(ready["status"], "ready", "{ready}");
    assert_eq!(
        mirror.git(&["log", "-1", "--format=%an %cn %s", "main"]),
        "Test Cuebook publish"
    );

    // brought there as the status says, nothing is apart any more
    git(
        &clone,
        &["fetch", "--quiet", mirror.bare().to_str().unwrap(), "main"],
    );
    git(&clone, &["push", "--quiet", "origin", "FETCH_HEAD:main"]);
    git(&clone, &["reset", "--quiet", "--hard", "FETCH_HEAD"]);
    let main = mirror.main().unwrap();
    mirror.until_has(&main).await;
    let ready = mirror.ready().await;
    assert!(ready["upstream"]["label_moves"].is_null(), "{ready}");
    let next = library.publish(&[("prompts/a.md", &prompt("Five"))]);
    mirror.until_has(&next).await;
    assert_eq!(mirror.main(), Some(next));
    assert_eq!(mirror.production("a").await, Some(1));
    assert_eq!(mirror.versions("a").await.len(), 5);
    mirror.running.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_label_that_was_moved_at_both_ends_stays_as_it_is_here_and_a_bad_commit_is_not_served() {
    let (library, tip) = labelled();
    let forge = Forge::serve(&library.bare(), Some(TOKEN)).await;
    let mirror = mirror_of(&forge).await;
    until("the first fetch", || mirror.serves_commit(&tip)).await;
    mirror.promote("a", "v1");
    // two moves, the second onto what the first left
    let third = library.publish(&[("prompts/a.md", &prompt("Three"))]);
    mirror.until_has(&third).await;
    mirror.promote("a", "v2");
    mirror.promote("a", "v1");

    let conflicting = library.publish(&[("labels.toml", &labels("v3", "v1"))]);
    mirror.until_has(&conflicting).await;
    assert_eq!(mirror.production("a").await, Some(1));
    assert_eq!(
        mirror.ready().await["upstream"]["label_moves"],
        serde_json::json!(["production of a is v1 here and v3 there"])
    );

    // a bad one is not served, with what passes before it
    library.write_bytes("prompts/b.md", prompt("Newer").as_bytes());
    let clean = library.commit("clean");
    library.write_bytes("prompts/b.md", BAD.as_bytes());
    let bad = library.commit("bad");
    library.push();
    mirror.until_has(&clean).await;
    let ready = until_ready(&mirror, "the problems", |ready| {
        ready["upstream"]["commit"] == *bad
    })
    .await;
    assert_eq!(ready["status"], "degraded", "{ready}");
    assert!(
        ready["upstream"]["problems"][0]
            .as_str()
            .unwrap()
            .starts_with("prompts/b.md:4:4: "),
        "{ready}"
    );
    let main = mirror.main().unwrap();
    assert!(mirror.serves_commit(&main));
    // labels can be moved all the same, and nothing is made again by a fetch that brings nothing
    mirror.promote("a", "v3");
    let main = mirror.main().unwrap();
    mirror.hook(&[("X-Gitlab-Token", SECRET)], "{}").await;
    let mended = library.publish(&[("prompts/b.md", &prompt("Newest"))]);
    mirror.until_has(&mended).await;
    assert_eq!(mirror.production("a").await, Some(3));
    // the numbers are those of the other side: the bad one has its own, which is not served
    let numbers: Vec<u64> = mirror.versions("b").await.iter().map(|v| v.0).collect();
    assert_eq!(numbers, [1, 2, 3, 4]);
    let chain = mirror.git(&["rev-list", "--first-parent", "main"]);
    assert!(chain.lines().any(|commit| commit == main), "{chain}");

    // a prompt that is taken away there takes its label with it
    library.remove("prompts/a.md");
    let gone = library.publish(&[("labels.toml", "[production]\nb = \"v1\"\n")]);
    mirror.until_has(&gone).await;
    assert_eq!(mirror.served(), ["b"]);
    mirror.running.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_rewritten_history_is_followed_with_the_labels_that_were_moved() {
    let (library, tip) = labelled();
    let forge = Forge::serve(&library.bare(), Some(TOKEN)).await;
    let mirror = mirror_of(&forge).await;
    until("the first fetch", || mirror.serves_commit(&tip)).await;
    mirror.promote("a", "v1");
    let clone = library.clone();
    git(
        &clone,
        &["commit", "--quiet", "--amend", "--message", "rewritten"],
    );
    library.publish_by_force(&[("prompts/b.md", &prompt("Newer"))]);
    let rewritten = git(&clone, &["rev-parse", "HEAD"]).trim().to_owned();
    mirror.until_has(&rewritten).await;
    assert_eq!(mirror.git(&["rev-parse", "main^"]), rewritten);
    assert_eq!(mirror.production("a").await, Some(1));
    // and it goes on from there
    let next = library.publish(&[("prompts/b.md", &prompt("Newest"))]);
    mirror.until_has(&next).await;
    assert_eq!(mirror.production("a").await, Some(1));
    assert_eq!(mirror.versions("b").await.len(), 3);
    mirror.running.stop().await;
}
