//! A database that is damaged, missing, newer, full, locked or not writable: what is served and published goes on, somebody
//! says so, and nothing is lost.

use std::time::Duration;

use cuebook::store::{AuditEntry, DeliveryFilter, DeliveryRow, LossRow, Store, StoreError};
use sqlx::Connection as _;

use super::*;

async fn connection(path: &Path) -> sqlx::SqliteConnection {
    let options = sqlx::sqlite::SqliteConnectOptions::new().filename(path);
    sqlx::SqliteConnection::connect_with(&options)
        .await
        .unwrap()
}

fn entry(n: i64) -> AuditEntry {
    AuditEntry {
        at: n,
        actor: "local".into(),
        action: "publish".into(),
        ..AuditEntry::default()
    }
}

fn loss() -> LossRow {
    LossRow {
        day: 20_000,
        kind: "usage".into(),
        lost: 17,
    }
}

/// A database with rows, closed in good order: 100 of the audit, 20,000 deliveries, one of what was lost.
async fn filled(path: &Path) {
    let store = Store::open(path).await.unwrap();
    let entries: Vec<AuditEntry> = (1..=100).map(entry).collect();
    store.append_audit(&entries).await.unwrap();
    let deliveries = (1..=20_000).map(|n| DeliveryRow {
        at: n,
        prompt: "triage".into(),
        sha256: format!("{n:064x}"),
        resources: "[]".into(),
        ..DeliveryRow::default()
    });
    let batch = cuebook::store::Batch {
        deliveries: deliveries.collect(),
        losses: vec![loss()],
        ..Default::default()
    };
    store.write_records(&batch).await.unwrap();
    store.close().await;
}

#[tokio::test]
async fn a_database_of_every_released_form_is_opened_and_keeps_its_rows() {
    let fixtures = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/fixtures/store");
    let mut opened = 0;
    for file in std::fs::read_dir(fixtures).unwrap() {
        let file = file.unwrap().path();
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("cuebook.db");
        std::fs::copy(&file, &path).unwrap();
        let store = Store::open(&path).await.unwrap();
        assert_eq!(store.mended(), None);
        let proposals = store.proposals().await.unwrap();
        let seen: Vec<_> = proposals
            .iter()
            .map(|row| (row.number, &*row.title, &*row.state, row.revision))
            .collect();
        assert_eq!(
            seen,
            [(1, "Add one", "open", 2), (2, "Add two", "merged", 1)],
            "{}",
            file.display()
        );
        assert_eq!(store.revisions_of(1).await.unwrap().len(), 2);
        store.append_audit(&[entry(1)]).await.unwrap();
        assert_eq!(store.verify_audit().await.unwrap(), []);
        store.close().await;
        opened += 1;
    }
    assert!(opened > 0);
}

#[tokio::test]
async fn what_can_be_read_of_a_damaged_file_is_in_a_new_one() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("cuebook.db");
    filled(&path).await;
    // pages in the middle of the deliveries
    let mut bytes = std::fs::read(&path).unwrap();
    let marker = format!("{:064x}", 15_000);
    let at = bytes
        .windows(marker.len())
        .position(|part| part == marker.as_bytes())
        .unwrap();
    let page = at / 4096 * 4096;
    bytes[page..page + 3 * 4096].fill(0xA5);
    std::fs::write(&path, &bytes).unwrap();
    let store = Store::open(&path).await.unwrap();
    let mended = store.mended().unwrap();
    assert!(mended.incomplete);
    assert!(mended.salvaged > 15_000, "{mended}");
    assert!(
        mended.to_string().contains("cuebook.db.damaged-1"),
        "{mended}"
    );
    assert_eq!(std::fs::read(&mended.moved_to).unwrap(), bytes);
    let kept = store
        .deliveries(&DeliveryFilter::default(), 100_000)
        .await
        .unwrap();
    assert_eq!((kept[0].seq, kept[kept.len() - 1].seq), (20_000, 1));
    assert!((19_000..20_000).contains(&kept.len()), "{}", kept.len());
    assert_eq!(store.losses(0, i64::MAX).await.unwrap(), [loss()]);
    // the audit is whole, and goes on
    assert_eq!(store.audit_after(0, 1000).await.unwrap().len(), 100);
    store.append_audit(&[entry(101)]).await.unwrap();
    assert_eq!(store.verify_audit().await.unwrap(), []);
    store.close().await;
    // the next one that is damaged takes no place of the first
    std::fs::write(
        &path,
        "this is no database at all, whatever its name says".repeat(100),
    )
    .unwrap();
    let store = Store::open(&path).await.unwrap();
    let mended = store.mended().unwrap();
    assert!(mended.moved_to.to_string_lossy().ends_with("damaged-2"));
    assert_eq!((mended.salvaged, mended.incomplete), (0, true));
    store.close().await;
    let store = Store::open(&path).await.unwrap();
    assert_eq!(store.mended(), None);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_damaged_database_stops_nothing_and_is_told() {
    let mut host = Host::small().await;
    let work = host.work("work");
    work.change(&[("prompts/sre/after.md", &prompt("Proposed."))]);
    work.ok(&["push", "origin", "HEAD:refs/for/main"]);
    work.back();
    host.stop().await;
    let path = host.data_dir().join("cuebook.db");
    std::fs::write(&path, "garbage".repeat(5000)).unwrap();
    host.start_again().await;
    work.publish(&[("prompts/sre/after.md", &prompt("Goes on."))])
        .says("published 1 prompt");
    assert_eq!(host.text("after").await, "Goes on.\n");
    let ready = host.ready().await;
    assert_eq!(ready["status"], "degraded");
    assert!(
        ready.to_string().contains("the database was damaged"),
        "{ready}"
    );
    assert!(host.data_dir().join("cuebook.db.damaged-1").exists());
    // the proposal came back by its ref
    work.change(&[("prompts/sre/after.md", &prompt("Another."))]);
    work.ok(&["push", "origin", "HEAD:refs/for/main"])
        .says("opened proposal 2");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_database_of_a_newer_release_is_left_alone_and_told() {
    let mut host = Host::small().await;
    let work = host.work("work");
    host.stop().await;
    let path = host.data_dir().join("cuebook.db");
    let mut newer = connection(&path).await;
    sqlx::query(
        "INSERT INTO _sqlx_migrations (version, description, success, checksum, execution_time) VALUES (9999, 'later', 1, x'00', 1)",
    )
    .execute(&mut newer)
    .await
    .unwrap();
    newer.close().await.unwrap();
    let before = std::fs::read(&path).unwrap();
    host.start_again().await;
    let said = work.publish(&[("prompts/sre/after.md", &prompt("Goes on."))]);
    said.says("published 1 prompt");
    said.says("the audit row could not be written yet");
    assert_eq!(host.text("after").await, "Goes on.\n");
    work.change(&[("prompts/sre/after.md", &prompt("Proposed."))]);
    work.no(&["push", "origin", "HEAD:refs/for/main"])
        .says("newer release");
    // and the editor offers no button that cannot work
    let page = host.get("/edit/prompts/sre/after.md", &[("Accept", "text/html")]);
    let page = page.await;
    let page = page.text();
    assert!(page.contains("Nothing can be proposed now"), "{page}");
    assert!(page.contains("value=\"publish\"") && !page.contains("value=\"propose\""));
    let ready = host.ready().await.to_string();
    assert!(
        ready.contains("newer release of cuebook (migration 9999)"),
        "{ready}"
    );
    assert!(ready.contains("1 calls were not counted"), "{ready}");
    let published = host.main();
    host.stop().await;
    assert_eq!(std::fs::read(&path).unwrap(), before);
    // the release that wrote it has it again: what was published meanwhile is in its audit
    let mut newer = connection(&path).await;
    sqlx::query("DELETE FROM _sqlx_migrations WHERE version = 9999")
        .execute(&mut newer)
        .await
        .unwrap();
    newer.close().await.unwrap();
    host.start_again().await;
    let records = host.running.as_ref().unwrap().records.as_ref().unwrap();
    let store = records.store().unwrap();
    let rows = soon("the row that waited", async {
        loop {
            let rows = store.audit_after(0, 100).await.unwrap();
            if rows.len() >= 2 {
                return rows;
            }
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
    })
    .await;
    assert_eq!(rows.len(), 2);
    assert_eq!(
        (&*rows[1].action, rows[1].new_commit.as_deref()),
        ("publish", Some(&*published))
    );
    assert_eq!(store.verify_audit().await.unwrap(), []);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_database_that_is_removed_while_the_server_runs_is_told() {
    let mut host = Host::small().await;
    let work = host.work("work");
    for name in ["cuebook.db", "cuebook.db-wal", "cuebook.db-shm"] {
        std::fs::remove_file(host.data_dir().join(name)).unwrap();
    }
    soon("it to be noticed", async {
        while !host.ready().await.to_string().contains("has been removed") {
            tokio::time::sleep(Duration::from_millis(50)).await;
        }
    })
    .await;
    work.publish(&[("prompts/sre/after.md", &prompt("Goes on."))]);
    assert_eq!(host.text("after").await, "Goes on.\n");
    host.stop().await;
    host.start_again().await;
    assert_eq!(host.ready().await["status"], "ready");
    assert_eq!(host.text("after").await, "Goes on.\n");
}

#[tokio::test]
async fn errors_of_the_database_say_what_to_do() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("cuebook.db");
    let store = Store::open(&path).await.unwrap();
    let mut other = connection(&path).await;
    let lock = other.begin_with("BEGIN EXCLUSIVE").await.unwrap();
    let locked = store.append_audit(&[entry(1)]).await.unwrap_err();
    assert!(matches!(locked, StoreError::Locked), "{locked}");
    // opening while it is locked neither waits for ever nor takes the file for damaged
    let opened = Store::open(&path).await.unwrap();
    assert_eq!(opened.mended(), None);
    lock.rollback().await.unwrap();
    store.append_audit(&[entry(1)]).await.unwrap();
    let missing = Store::open(&folder.path().join("no/such/cuebook.db")).await;
    assert!(matches!(missing, Err(StoreError::Database(_))));
}
