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
        for n in 0..25 {
            let text = format!("Edit {n}.");
            let said = work.publish(&[("prompts/sre/after.md", &prompt(&text))]);
            said.says("published 1 prompt");
            let got = tokio::task::block_in_place(|| {
                tokio::runtime::Handle::current().block_on(host.text("after"))
            });
            assert_eq!(got, format!("{text}\n"));
        }
        stop.store(true, std::sync::atomic::Ordering::SeqCst);
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
    assert!(
        Command::new("cp")
            .arg("-a")
            .arg(host.bare())
            .arg(&backup)
            .status()
            .unwrap()
            .success()
    );
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
