//! What others do to the repository while it is served: maintenance, and a restored backup.

use std::time::Duration;

use super::*;

#[tokio::test(flavor = "multi_thread")]
async fn maintenance_while_pushes_run_disturbs_neither() {
    let host = Host::small().await;
    let work = host.work("work");
    let bare = host.bare();
    let stop = std::sync::atomic::AtomicBool::new(false);
    let (rounds, failures) = std::thread::scope(|scope| {
        let maintaining = scope.spawn(|| {
            let (mut rounds, mut failures) = (0, Vec::new());
            while !stop.load(std::sync::atomic::Ordering::SeqCst) {
                for arguments in [
                    &["repack", "-a", "-d", "-q"][..],
                    &["pack-refs", "--all"],
                    &["gc", "--quiet"],
                    &["commit-graph", "write", "--reachable", "--changed-paths"],
                ] {
                    let ran = git(&bare, arguments);
                    if !ran.ok {
                        failures.push(format!("{arguments:?}: {}", ran.text));
                    }
                }
                rounds += 1;
            }
            (rounds, failures)
        });
        // also where an assertion fails, for the scope waits for the thread
        let ending = Stop(&stop);
        for n in 0..25 {
            let text = format!("Edit {n}.");
            work.change(&[("prompts/sre/after.md", &prompt(&text))]);
            let mut said = work.push();
            let mut tries = 0;
            // git's own race: gc takes an empty folder away in which the push is about to put an object
            while !said.ok && tries < 20 {
                said.says("unable to migrate objects to permanent storage");
                said.says("the repository was being tidied meanwhile; push again");
                said = work.push();
                tries += 1;
            }
            assert!(said.ok, "{}", said.text);
            said.says("published 1 prompt");
            let got = tokio::task::block_in_place(|| {
                tokio::runtime::Handle::current().block_on(host.text("after"))
            });
            assert_eq!(got, format!("{text}\n"));
        }
        drop(ending);
        maintaining.join().unwrap()
    });
    assert!(rounds > 0);
    assert_eq!(failures, Vec::<String>::new());
    assert!(git(&bare, &["fsck", "--strict"]).ok);
    assert_eq!(
        git(&bare, &["rev-list", "--count", "main"]).text.trim(),
        "26"
    );
}

/// Ends the maintenance when it is dropped.
struct Stop<'a>(&'a std::sync::atomic::AtomicBool);

impl Drop for Stop<'_> {
    fn drop(&mut self) {
        self.0.store(true, std::sync::atomic::Ordering::SeqCst);
    }
}

/// Waits until a commit is what is served.
async fn serves(host: &Host, commit: &str) {
    soon("the commit to be served", async {
        while host.ready().await["served"] != commit {
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
    })
    .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_restored_backup_is_served_and_never_moved_by_us() {
    let host = Host::small().await;
    let work = host.work("work");
    let backup = host.folder.path().join("backup.git");
    let old = host.main();
    // a backup as git makes one: the refs and objects, and nothing of the configuration
    let from = host.bare();
    let made = git(
        host.folder.path(),
        &[
            "clone",
            "--quiet",
            "--mirror",
            from.to_str().unwrap(),
            "backup.git",
        ],
    );
    assert!(made.ok, "{}", made.text);
    work.publish(&[("prompts/sre/after.md", &prompt("After the backup."))]);
    let lost = host.main();

    // by its ref
    assert!(git(&host.bare(), &["update-ref", "refs/heads/main", &old]).ok);
    serves(&host, &old).await;
    assert_eq!(host.text("after").await, "Write it down.\n");
    assert_eq!(host.main(), old, "nobody moved it back");
    assert_eq!(host.ready().await["status"], "ready");
    // a push from a clone that still has the lost commit brings it back; nothing is in its way
    work.ok(&["push", "origin", "HEAD:main"])
        .says("published 1 prompt: after");
    assert_eq!(host.main(), lost);

    // by its folder
    let away = host.folder.path().join("away.git");
    std::fs::rename(host.bare(), &away).unwrap();
    std::fs::rename(&backup, host.bare()).unwrap();
    serves(&host, &old).await;
    assert_eq!(host.text("after").await, "Write it down.\n");
    let new = host.work("new");
    assert_eq!(new.head(), old);
    new.publish(&[("prompts/sre/after.md", &prompt("After the restore."))]);
    assert_eq!(host.text("after").await, "After the restore.\n");
    assert_eq!(host.main(), new.head());
    // and by path, past the server's HTTP, the gate is the same
    soon("the gate to be put before the restored repository", async {
        while !git(&host.bare(), &["config", "core.hooksPath"]).ok {
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
    })
    .await;
    let by_path = host.work_by_path("by-path");
    by_path.change(&[("prompts/sre/bad.md", &prompt("{{ nope }}"))]);
    by_path
        .no(&["push", "origin", "HEAD:main"])
        .says("prompts/sre/bad.md:4:4");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_bad_main_from_outside_is_reported_and_mended_by_a_push() {
    let host = Host::small().await;
    let work = host.work("work");
    let good = host.main();
    let bad = work.change(&[("prompts/sre/after.md", &prompt("{{ nope }}"))]);
    work.ok(&["push", "origin", "HEAD:wip"]);
    assert!(git(&host.bare(), &["update-ref", "refs/heads/main", &bad]).ok);
    soon("the bad tip to be seen", async {
        while host.ready().await["tip"] != bad {
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
    })
    .await;
    let ready = host.ready().await;
    assert_eq!(
        (&ready["status"], &ready["served"]),
        (&json!("degraded"), &json!(good)),
        "{ready}"
    );
    assert_eq!(host.text("after").await, "Write it down.\n");
    assert_eq!(host.main(), bad, "somebody's ref is theirs");
    // a push that does not mend it is refused, one that does is published
    work.change(&[("prompts/sre/other.md", &prompt("Other."))]);
    work.no(&["push", "origin", "HEAD:main"])
        .says("prompts/sre/after.md:4:4");
    work.publish(&[("prompts/sre/after.md", &prompt("Mended."))])
        .says("published 2 prompts: after (0 arguments), other");
    assert_eq!(host.text("after").await, "Mended.\n");
    assert_eq!(host.ready().await["status"], "ready");
}
