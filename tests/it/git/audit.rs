//! Who did what: the rows that pushes and others leave, and the chain that shows what was changed in them.

use std::time::Duration;

use cuebook::records::audit::MAX_WAITING;
use cuebook::store::{AuditEntry, AuditRow, Store};
use sqlx::Connection as _;

use super::*;

fn store(host: &Host) -> &Store {
    let records = host.running.as_ref().unwrap().records.as_ref().unwrap();
    records.store().unwrap()
}

async fn rows(host: &Host) -> Vec<AuditRow> {
    store(host).audit_after(0, 1000).await.unwrap()
}

/// The rows, once there are so many.
async fn until(host: &Host, many: usize) -> Vec<AuditRow> {
    soon("the audit row", async {
        loop {
            let rows = rows(host).await;
            if rows.len() >= many {
                return rows;
            }
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
    })
    .await
}

fn actions(rows: &[AuditRow]) -> Vec<&str> {
    rows.iter().map(|row| &*row.action).collect()
}

#[tokio::test(flavor = "multi_thread")]
async fn what_is_pushed_is_audited_with_who_where_and_which_commit() {
    let host = Host::small().await;
    let work = host.work("work");
    let before = host.main();
    let commit = work.change(&[("prompts/sre/after.md", &prompt("Published."))]);
    work.ok(&["push", "origin", "HEAD:main"]);
    let proposed = work.change(&[("prompts/sre/after.md", &prompt("Proposed."))]);
    work.ok(&["push", "-o", "topic=t", "origin", "HEAD:refs/for/main"]);
    let revised = work.change(&[("prompts/sre/after.md", &prompt("Revised."))]);
    work.ok(&["push", "-o", "topic=t", "origin", "HEAD:refs/for/main"]);
    work.ok(&["push", "origin", "HEAD:refs/heads/topic"]);
    let by_path = host.work_by_path("by-path");
    let last = by_path.change(&[("prompts/sre/after.md", &prompt("By path."))]);
    by_path.ok(&["push", "origin", "HEAD:main"]);
    // a push that is refused leaves nothing
    by_path.change(&[("prompts/sre/after.md", &prompt("{{ nope }}"))]);
    by_path.no(&["push", "origin", "HEAD:main"]);

    let rows = rows(&host).await;
    assert_eq!(
        actions(&rows),
        ["publish", "publish", "propose", "revise", "push", "publish"],
        "{rows:?}"
    );
    let publish = &rows[1];
    assert_eq!(publish.actor, "local");
    assert!(publish.origin.as_deref().unwrap().starts_with("127.0.0.1"));
    assert_eq!(publish.subject.as_deref(), Some("refs/heads/main"));
    assert_eq!(publish.old_commit.as_deref(), Some(&*before));
    assert_eq!(publish.new_commit.as_deref(), Some(&*commit));
    assert_eq!(
        publish.detail.as_deref(),
        Some("author Test <test@example.com>")
    );
    assert_eq!(rows[2].subject.as_deref(), Some("proposal 1"));
    assert_eq!(rows[2].new_commit.as_deref(), Some(&*proposed));
    assert_eq!(rows[3].old_commit.as_deref(), Some(&*proposed));
    assert_eq!(rows[3].new_commit.as_deref(), Some(&*revised));
    assert_eq!(rows[4].subject.as_deref(), Some("refs/heads/topic"));
    assert_eq!(rows[5].origin.as_deref(), Some("by path or SSH"));
    assert_eq!(rows[5].new_commit.as_deref(), Some(&*last));
    assert_eq!(store(&host).verify_audit().await.unwrap(), []);
    let head = store(&host).audit_head().await.unwrap();
    assert_eq!((head.seq, head.main), (6, Some(last)));
}

#[tokio::test(flavor = "multi_thread")]
async fn main_that_moves_past_the_gate_is_audited_once() {
    let mut host = Host::small().await;
    let work = host.work("work");
    let first = host.main();
    let behind = work.change(&[("prompts/sre/after.md", &prompt("Behind."))]);
    let fetched = git(
        &host.bare(),
        &["fetch", "--quiet", work.path.to_str().unwrap(), "HEAD"],
    );
    assert!(fetched.ok, "{}", fetched.text);
    let bare = host.bare();
    assert!(git(&bare, &["update-ref", "refs/heads/main", &behind]).ok);
    let seen = until(&host, 2).await;
    let moved = seen.last().unwrap();
    assert_eq!(moved.actor, "unknown");
    assert_eq!(moved.origin.as_deref(), Some("not through the gate"));
    assert_eq!(moved.old_commit.as_deref(), Some(&*first));
    assert_eq!(moved.new_commit.as_deref(), Some(&*behind));
    // pushes go on, and are told as pushes
    let next = work.change(&[("prompts/sre/after.md", &prompt("Next."))]);
    work.ok(&["push", "origin", "HEAD:main"]);
    assert_eq!(actions(&rows(&host).await), ["publish", "move", "publish"]);

    // while no server runs: found at the start, as is a publish whose server was killed before its row
    host.stop().await;
    assert!(git(&bare, &["update-ref", "refs/heads/main", &behind]).ok);
    host.start_again().await;
    let found = until(&host, 4).await;
    let moved = found.last().unwrap();
    assert_eq!(moved.origin.as_deref(), Some("found at the start"));
    assert_eq!(moved.old_commit.as_deref(), Some(&*next));
    assert_eq!(moved.new_commit.as_deref(), Some(&*behind));
    // and not again at the next
    host.stop().await;
    host.start_again().await;
    work.ok(&["push", "origin", "HEAD:main"]);
    let all = rows(&host).await;
    assert_eq!(
        actions(&all),
        ["publish", "move", "publish", "move", "publish"]
    );
    assert_eq!(store(&host).verify_audit().await.unwrap(), []);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_publish_whose_row_must_wait_says_so_and_is_written_later() {
    let mut host = Host::small().await;
    let work = host.work("work");
    let path = host.data_dir().join("cuebook.db");
    let options = sqlx::sqlite::SqliteConnectOptions::new().filename(&path);
    let mut other = sqlx::SqliteConnection::connect_with(&options)
        .await
        .unwrap();
    let lock = other.begin_with("BEGIN EXCLUSIVE").await.unwrap();
    let said = work.publish(&[("prompts/sre/after.md", &prompt("While it is locked."))]);
    said.says("published 1 prompt");
    said.says("the audit row could not be written yet");
    said.says("another process has locked the database");
    assert_eq!(host.text("after").await, "While it is locked.\n");
    let ready = host.ready().await;
    assert_eq!(ready["status"], "degraded");
    assert!(
        ready.to_string().contains("the audit cannot be written"),
        "{ready}"
    );
    assert!(host.data_dir().join("audit-waiting.json").exists());
    lock.rollback().await.unwrap();
    let written = until(&host, 2).await;
    assert_eq!(written.len(), 2);
    assert_eq!(written[1].new_commit, Some(host.main()));
    soon("all to be well", async {
        while host.ready().await["status"] != "ready" {
            tokio::time::sleep(Duration::from_millis(50)).await;
        }
    })
    .await;
    assert!(!host.data_dir().join("audit-waiting.json").exists());

    // locked until the server ends: the next start writes what the file beside the database has
    let lock = other.begin_with("BEGIN EXCLUSIVE").await.unwrap();
    work.publish(&[("prompts/sre/after.md", &prompt("Locked to the end."))])
        .says("the audit row could not be written yet");
    host.stop().await;
    lock.rollback().await.unwrap();
    other.close().await.unwrap();
    host.start_again().await;
    let all = until(&host, 3).await;
    assert_eq!(actions(&all), ["publish", "publish", "publish"]);
    assert_eq!(all[2].new_commit, Some(host.main()));
    assert!(all[2].origin.as_deref().unwrap().starts_with("127.0.0.1"));
    assert_eq!(store(&host).verify_audit().await.unwrap(), []);
}

#[tokio::test(flavor = "multi_thread")]
async fn no_push_is_taken_while_a_thousand_rows_wait() {
    let host = Host::small().await;
    let work = host.work("work");
    let before = host.main();
    let path = host.data_dir().join("cuebook.db");
    let options = sqlx::sqlite::SqliteConnectOptions::new().filename(&path);
    let mut other = sqlx::SqliteConnection::connect_with(&options)
        .await
        .unwrap();
    let lock = other.begin_with("BEGIN EXCLUSIVE").await.unwrap();
    let records = host.running.as_ref().unwrap().records.clone().unwrap();
    let many = i64::try_from(MAX_WAITING).unwrap();
    let mut appending = tokio::task::JoinSet::new();
    for n in 0..many {
        let records = records.clone();
        appending.spawn(async move { records.audit().append(entry(n)).await });
    }
    soon("them to wait", async {
        while records.audit().ready().is_ok() {
            tokio::time::sleep(Duration::from_millis(10)).await;
        }
    })
    .await;
    work.change(&[("prompts/sre/after.md", &prompt("Too much waits."))]);
    for target in ["HEAD:main", "HEAD:refs/for/main", "HEAD:refs/heads/topic"] {
        let said = work.no(&["push", "origin", target]);
        said.says("1000 rows of the audit wait to be written");
        assert_eq!(host.main(), before, "{target}");
    }
    assert_eq!(host.text("after").await, "Write it down.\n");
    lock.rollback().await.unwrap();
    let all = soon("them to be written", async {
        loop {
            let rows = store(&host).audit_after(0, 2000).await.unwrap();
            if rows.len() > MAX_WAITING && records.audit().ready().is_ok() {
                return rows;
            }
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
    })
    .await;
    assert_eq!(all.len(), MAX_WAITING + 1);
    appending.join_all().await;
    work.ok(&["push", "origin", "HEAD:main"]);
    assert_eq!(host.text("after").await, "Too much waits.\n");
    assert_eq!(store(&host).verify_audit().await.unwrap(), []);
    let head = store(&host).audit_head().await.unwrap();
    assert_eq!((head.seq, head.main), (many + 2, Some(host.main())));
}

#[cfg(unix)]
#[tokio::test(flavor = "multi_thread")]
async fn a_push_whose_last_hook_was_killed_has_its_row_all_the_same() {
    use std::os::unix::fs::PermissionsExt as _;
    let host = Host::small_with(|config| {
        config.records.untold_push = Duration::from_millis(500);
    })
    .await;
    let work = host.work("work");
    let before = host.main();
    // as the kernel does it when memory is short
    let hook = host.data_dir().join("hooks/post-receive");
    let whole = std::fs::read(&hook).unwrap();
    std::fs::write(&hook, "#!/bin/sh\nkill -9 $$\n").unwrap();
    std::fs::set_permissions(&hook, std::fs::Permissions::from_mode(0o755)).unwrap();
    let commit = work.change(&[("prompts/sre/after.md", &prompt("Killed after."))]);
    let said = work.push();
    assert_eq!(host.main(), commit, "{}", said.text);
    let rows = until(&host, 2).await;
    assert_eq!(actions(&rows), ["publish", "publish"]);
    assert_eq!(rows[1].actor, "local");
    assert!(rows[1].origin.as_deref().unwrap().starts_with("127.0.0.1"));
    assert_eq!(rows[1].old_commit.as_deref(), Some(&*before));
    assert_eq!(rows[1].new_commit.as_deref(), Some(&*commit));
    // once, and the next tells of itself
    std::fs::write(&hook, whole).unwrap();
    let next = work.change(&[("prompts/sre/after.md", &prompt("Next."))]);
    work.ok(&["push", "origin", "HEAD:main"]);
    let rows = until(&host, 3).await;
    assert_eq!(rows.len(), 3);
    assert_eq!(rows[2].old_commit.as_deref(), Some(&*commit));
    assert_eq!(rows[2].new_commit.as_deref(), Some(&*next));
    assert_eq!(store(&host).verify_audit().await.unwrap(), []);
}

fn entry(n: i64) -> AuditEntry {
    AuditEntry {
        at: n * 1000,
        actor: format!("actor {n}"),
        action: "publish".into(),
        new_commit: Some(format!("{n:040x}")),
        ..AuditEntry::default()
    }
}

/// Twenty rows, what is done to them, and the rows that are named then.
async fn tampered(how: &[&'static str]) -> Vec<String> {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("cuebook.db");
    let store = Store::open(&path).await.unwrap();
    let entries: Vec<AuditEntry> = (1..=20).map(entry).collect();
    store.append_audit(&entries).await.unwrap();
    assert_eq!(store.verify_audit().await.unwrap(), []);
    let options = sqlx::sqlite::SqliteConnectOptions::new().filename(&path);
    let mut other = sqlx::SqliteConnection::connect_with(&options)
        .await
        .unwrap();
    for sql in how {
        sqlx::query(*sql).execute(&mut other).await.unwrap();
    }
    let differences = store.verify_audit().await.unwrap();
    assert!(differences.iter().all(|d| d.table == "audit"));
    store.close().await;
    differences.into_iter().map(|d| d.row).collect()
}

#[tokio::test]
async fn a_row_that_was_changed_removed_or_put_in_shows() {
    for (how, named) in [
        (
            "UPDATE audit SET actor = 'somebody else' WHERE seq = 7",
            &["7"][..],
        ),
        ("UPDATE audit SET at = at + 1 WHERE seq = 20", &["20"]),
        ("UPDATE audit SET detail = '' WHERE seq = 3", &["3"]),
        ("DELETE FROM audit WHERE seq = 9", &["9"]),
        ("DELETE FROM audit WHERE seq BETWEEN 9 AND 11", &["9 to 11"]),
        ("DELETE FROM audit WHERE seq = 20", &["the newest"]),
        ("DELETE FROM audit WHERE seq <= 5", &["1 to 5"]),
        ("DELETE FROM audit", &["the newest"]),
    ] {
        assert_eq!(tampered(&[how]).await, named, "{how}");
    }
    // a gap that is closed by new numbers, and a hash that is computed anew for a changed row
    let renumbered = tampered(&[
        "DELETE FROM audit WHERE seq = 9",
        "UPDATE audit SET seq = seq - 1 WHERE seq > 9",
    ])
    .await;
    assert!(
        renumbered.contains(&"9 (the hash of the row before it)".to_owned()),
        "{renumbered:?}"
    );
    let put_in = tampered(&[
        "UPDATE audit SET hash = 'aa' WHERE seq = 5",
        "UPDATE audit SET previous = 'aa' WHERE seq = 6",
    ])
    .await;
    assert_eq!(put_in, ["5", "6"]);
}

#[tokio::test]
async fn old_rows_go_and_the_rest_stays_proven() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("cuebook.db");
    let store = Store::open(&path).await.unwrap();
    let entries: Vec<AuditEntry> = (1..=20).map(entry).collect();
    store.append_audit(&entries).await.unwrap();
    assert_eq!(store.seal_audit(11_000, 50_000).await.unwrap(), 10);
    assert_eq!(store.verify_audit().await.unwrap(), []);
    let rows = store.audit_after(0, 100).await.unwrap();
    assert_eq!((rows[0].seq, rows[10].seq), (11, 21));
    assert_eq!(rows[10].action, "seal");
    assert!(
        rows[10]
            .detail
            .as_deref()
            .unwrap()
            .contains(&rows[0].previous)
    );
    // again, past the first seal
    store.append_audit(&[entry(60)]).await.unwrap();
    assert_eq!(store.seal_audit(60_000, 70_000).await.unwrap(), 11);
    assert_eq!(store.verify_audit().await.unwrap(), []);
    // nothing is old, or only the newest
    assert_eq!(store.seal_audit(60_000, 80_000).await.unwrap(), 0);
    // one more than was sealed is missed
    let options = sqlx::sqlite::SqliteConnectOptions::new().filename(&path);
    let mut other = sqlx::SqliteConnection::connect_with(&options)
        .await
        .unwrap();
    sqlx::query("DELETE FROM audit WHERE seq = 22")
        .execute(&mut other)
        .await
        .unwrap();
    let differences = store.verify_audit().await.unwrap();
    assert_eq!(differences.len(), 1, "{differences:?}");
    assert_eq!(differences[0].row, "1 to 22");
}

/// A push of main as a hook tells of it.
fn told(old: &str, new: &str) -> AuditEntry {
    AuditEntry {
        actor: "local".into(),
        action: "publish".into(),
        subject: Some("refs/heads/main".into()),
        old_commit: Some(old.into()),
        new_commit: Some(new.into()),
        main: Some(new.into()),
        ..AuditEntry::default()
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn pushes_whose_hooks_tell_in_the_other_order_leave_their_rows_and_no_other() {
    let mut host = Host::small().await;
    let work = host.work("work");
    let bare = host.bare();
    let first = host.main();
    let [second, third, fourth, fifth] = ["2", "3", "4", "5"].map(|text| {
        let commit = work.change(&[("prompts/sre/after.md", &prompt(text))]);
        let path = work.path.to_str().unwrap();
        let fetched = git(&bare, &["fetch", "--quiet", path, "HEAD"]);
        assert!(fetched.ok, "{}", fetched.text);
        commit
    });
    let to = |commit: &str| assert!(git(&bare, &["update-ref", "refs/heads/main", commit]).ok);
    let records = host.running.as_ref().unwrap().records.clone().unwrap();
    let local = cuebook::access::Actor::local();
    records.audit().expect(Some(&first), &second, &local, None);
    records.audit().expect(Some(&second), &third, &local, None);
    to(&second);
    to(&third);
    for (old, new) in [(&second, &third), (&first, &second)] {
        records.audit().append(told(old, new)).await.unwrap();
    }
    // what the database says of main is put right, so that the next start finds nothing
    soon("main to be put right", async {
        while store(&host).audit_head().await.unwrap().main.as_ref() != Some(&third) {
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
    })
    .await;
    drop(records);
    host.stop().await;
    host.start_again().await;
    // told before main is seen there, as when a look comes between: no row either
    let records = host.running.as_ref().unwrap().records.clone().unwrap();
    let append = records.audit().append(told(&third, &fourth)).await;
    append.unwrap();
    to(&fourth);
    // one past the gate is a row, though it goes where a push was told of a moment ago
    to(&fifth);
    until(&host, 5).await;
    to(&fourth);
    let all = until(&host, 6).await;
    assert_eq!(
        actions(&all),
        ["publish", "publish", "publish", "publish", "move", "move"],
        "{all:?}"
    );
    let moves: Vec<_> = all[4..]
        .iter()
        .map(|row| (row.old_commit.as_deref(), row.new_commit.as_deref()))
        .collect();
    assert_eq!(
        moves,
        [
            (Some(&*fourth), Some(&*fifth)),
            (Some(&*fifth), Some(&*fourth))
        ]
    );
    assert_eq!(store(&host).verify_audit().await.unwrap(), []);
}
