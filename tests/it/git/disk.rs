//! A disk that is full, and one that cannot be written.

use super::*;

/// A server whose data directory is a small disk of its own.
fn on_a_small_disk(size: &str) -> Process {
    let mut process = Process {
        folder: tempfile::tempdir().unwrap(),
        server: None,
        settings: Vec::new(),
    };
    std::fs::create_dir(process.folder.path().join("cuebook-data")).unwrap();
    let inner = process.command();
    let mut command = Command::new("unshare");
    command
        .args(["--map-root-user", "--mount", "sh", "-c"])
        .arg(format!(
            "mount -t tmpfs -o size={size} tmpfs cuebook-data && exec \"$@\""
        ))
        .arg("sh")
        .arg(inner.get_program())
        .args(inner.get_args())
        .current_dir(process.folder.path())
        .env_clear()
        .stdin(Stdio::null());
    #[allow(clippy::disallowed_methods, reason = "git must be found")]
    if let Some(path) = std::env::var_os("PATH") {
        command.env("PATH", path);
    }
    process.server = Some(Server::start(command));
    process
}

/// Runs a command where the server is.
#[track_caller]
fn there(process: &Process, script: &str) {
    let id = process.server().id().to_string();
    let mut command = Command::new("nsenter");
    command.args([
        "--target",
        &id,
        "--user",
        "--preserve-credentials",
        "--mount",
        "sh",
        "-c",
        script,
        "sh",
    ]);
    command.arg(process.folder.path().join("cuebook-data"));
    let ran = run(command);
    assert!(ran.ok, "{script}: {}", ran.text);
}

/// The repository as the server sees it.
fn bare(process: &Process) -> PathBuf {
    let root = PathBuf::from(format!("/proc/{}/root", process.server().id()));
    root.join(process.bare().strip_prefix("/").unwrap())
}

#[tokio::test(flavor = "multi_thread")]
async fn a_full_disk_refuses_in_words_and_main_stays() {
    let process = on_a_small_disk("6m");
    let work = process.work("work");
    work.publish(&[("prompts/sre/after.md", &prompt("Before."))]);
    let main = main_of(&bare(&process));
    // a push that does not fit
    work.write("attachments/noise.bin", noise(8_000_000, 19));
    work.commit("large");
    let said = work.no(&["push", "origin", "HEAD:main"]);
    said.says("No space left on device");
    said.says_not("Everything up-to-date");
    assert_eq!(main_of(&bare(&process)), main);
    assert_eq!(left_behind(&bare(&process)), Vec::<PathBuf>::new());
    work.back();
    // a disk on which nothing fits
    there(
        &process,
        "dd if=/dev/zero of=\"$1/filler\" bs=4k 2>/dev/null; true",
    );
    work.change(&[("prompts/sre/after.md", &prompt("While it is full."))]);
    for target in ["HEAD:main", "HEAD:refs/for/main"] {
        let said = work.no(&["push", "origin", target]);
        said.says("remote");
        said.says("No space left on device");
        assert_eq!(main_of(&bare(&process)), main, "{target}");
        assert_eq!(process.server().text("after").await, "Before.\n");
    }
    // with room again the same push goes in
    there(&process, "rm \"$1/filler\"");
    work.ok(&["push", "origin", "HEAD:main"]);
    assert_eq!(process.server().text("after").await, "While it is full.\n");
    assert_eq!(left_behind(&bare(&process)), Vec::<PathBuf>::new());
}

#[tokio::test(flavor = "multi_thread")]
async fn a_read_only_disk_refuses_in_words_and_main_stays() {
    let process = on_a_small_disk("20m");
    let work = process.work("work");
    work.publish(&[("prompts/sre/after.md", &prompt("Before."))]);
    let main = main_of(&bare(&process));
    there(
        &process,
        "mount --bind \"$1/library.git\" \"$1/library.git\" && mount -o remount,ro,bind \"$1/library.git\"",
    );
    work.change(&[("prompts/sre/after.md", &prompt("While it is read-only."))]);
    for target in ["HEAD:main", "HEAD:refs/for/main"] {
        let said = work.no(&["push", "origin", target]);
        said.says("remote");
        said.says("ead-only file system");
        assert_eq!(main_of(&bare(&process)), main, "{target}");
        assert_eq!(process.server().text("after").await, "Before.\n");
    }
    // clones go on
    process.work("reader");
    there(&process, "mount -o remount,rw,bind \"$1/library.git\"");
    work.ok(&["push", "origin", "HEAD:main"]);
    assert_eq!(
        process.server().text("after").await,
        "While it is read-only.\n"
    );
}

/// Asks for a prompt again and again.
async fn gets(process: &Process, many: usize) {
    for _ in 0..many {
        assert_eq!(process.server().text("after").await, "Before.\n");
    }
}

async fn ready(process: &Process) -> Value {
    send(process.server().address, "GET", "/readyz", &[], b"")
        .await
        .json()
}

#[tokio::test(flavor = "multi_thread")]
async fn a_full_disk_keeps_records_waiting_and_loses_none() {
    let mut process = on_a_small_disk("6m");
    let work = process.work("work");
    work.publish(&[("prompts/sre/after.md", &prompt("Before."))]);
    gets(&process, 3).await;
    there(
        &process,
        "dd if=/dev/zero of=\"$1/filler\" bs=4k 2>/dev/null; true",
    );
    gets(&process, 200).await;
    let told = soon("the full disk to be told", async {
        loop {
            let told = ready(&process).await;
            if told.to_string().contains("cannot be written") {
                return told;
            }
            gets(&process, 1).await;
            tokio::time::sleep(std::time::Duration::from_millis(20)).await;
        }
    })
    .await;
    assert_eq!(told["status"], "degraded");
    assert!(
        told.to_string().contains("deliveries wait in memory"),
        "{told}"
    );
    assert!(
        told.to_string()
            .contains("disk that holds the database is full"),
        "{told}"
    );
    gets(&process, 10).await;
    there(&process, "rm \"$1/filler\"");
    soon("all to be written", async {
        while ready(&process).await["status"] != "ready" {
            tokio::time::sleep(std::time::Duration::from_millis(100)).await;
        }
    })
    .await;
    // the disk goes with the server, so the rows are counted before it ends
    let copy = process.folder.path().join("copy.db");
    for (from, to) in [("cuebook.db", "copy.db"), ("cuebook.db-wal", "copy.db-wal")] {
        let root = PathBuf::from(format!("/proc/{}/root", process.server().id()));
        let inside = process.folder.path().join("cuebook-data").join(from);
        let inside = root.join(inside.strip_prefix("/").unwrap());
        std::fs::copy(inside, process.folder.path().join(to)).unwrap();
    }
    let store = cuebook::store::Store::open(&copy).await.unwrap();
    let rows = store
        .deliveries(&cuebook::store::DeliveryFilter::default(), 10_000)
        .await;
    let gets: i64 = store
        .usage(0, i64::MAX, None)
        .await
        .unwrap()
        .iter()
        .map(|row| row.gets)
        .sum();
    assert!(gets >= 213, "{gets}");
    assert_eq!(i64::try_from(rows.unwrap().len()).unwrap(), gets);
    assert_eq!(store.losses(0, i64::MAX).await.unwrap(), []);
    process.server.take().unwrap().kill();
}
