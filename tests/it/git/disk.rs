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
    let mount = format!("mount -t tmpfs -o size={size} tmpfs cuebook-data");
    process.server = Some(Server::start(after(&mount, &process)));
    process
}

/// The server's command in a mount namespace of its own, after a command there.
fn after(mount: &str, process: &Process) -> Command {
    let inner = process.command();
    let mut command = Command::new("unshare");
    command
        .args(["--map-root-user", "--mount", "sh", "-c"])
        .arg(format!("{mount} && exec \"$@\""))
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
    command
}

/// Mounts the data directory read-only where it is.
const READ_ONLY: &str =
    "mount --bind cuebook-data cuebook-data && mount -o remount,ro,bind cuebook-data";

/// Every file below a folder, with its bytes and when it was written.
fn everything(folder: &Path) -> Vec<(PathBuf, std::time::SystemTime, Vec<u8>)> {
    let mut out = Vec::new();
    let mut folders = vec![folder.to_owned()];
    while let Some(folder) = folders.pop() {
        for entry in std::fs::read_dir(folder).unwrap() {
            let entry = entry.unwrap();
            let metadata = entry.metadata().unwrap();
            let bytes = if metadata.is_file() {
                std::fs::read(entry.path()).unwrap()
            } else {
                Vec::new()
            };
            out.push((entry.path(), metadata.modified().unwrap(), bytes));
            if metadata.is_dir() {
                folders.push(entry.path());
            }
        }
    }
    out.sort();
    out
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
    let delivered: i64 = rows.unwrap().iter().map(|row| row.times).sum();
    assert_eq!(delivered, gets);
    assert_eq!(store.losses(0, i64::MAX).await.unwrap(), []);
    process.server.take().unwrap().kill();
}

#[tokio::test(flavor = "multi_thread")]
async fn a_read_only_data_directory_is_served_as_it_is_and_not_written() {
    let mut process = Process::start(&[]);
    let work = process.work("work");
    work.publish(&[("prompts/sre/after.md", &prompt("Before."))]);
    let (code, log) = process.server.take().unwrap().end("-TERM");
    assert_eq!(code, Some(0), "{log}");
    let data_dir = process.folder.path().join("cuebook-data");
    let before = everything(&data_dir);

    let reader = Server::start(after(READ_ONLY, &process));
    assert!(
        reader.greeting.contains("is on a read-only file system"),
        "{}",
        reader.greeting
    );
    assert!(reader.log().contains("read-only file system"));
    assert_eq!(reader.text("after").await, "Before.\n");
    let told = send(reader.address, "GET", "/readyz", &[], b"")
        .await
        .json();
    assert_eq!(told["status"], "degraded");
    for words in [
        "nothing is published, proposed, followed or recorded; mount it so that it can be written",
        "1 calls were not counted as use and 1 deliveries have no row",
    ] {
        assert!(told.to_string().contains(words), "{told}");
    }
    // clones go on, pushes are refused in words
    let url = format!("http://{}/library.git", reader.address);
    let other = Work::clone(process.folder.path(), &url, "other", &[]);
    other.change(&[("prompts/sre/after.md", &prompt("Pushed."))]);
    for target in ["HEAD:main", "HEAD:refs/for/main"] {
        let said = other.no(&["push", "origin", target]);
        said.says("remote: ");
        said.says("is on a read-only file system");
    }
    let change = json!({ "base": null, "files": {}, "message": "m" }).to_string();
    let headers = [("Content-Type", "application/json")];
    let refused = send(
        reader.address,
        "POST",
        "/api/v1/changes",
        &headers,
        change.as_bytes(),
    )
    .await;
    assert_eq!(refused.status, 503);
    assert!(
        refused.json()["detail"]
            .as_str()
            .unwrap()
            .contains("is on a read-only file system")
    );
    // the editor without a script gives back what was typed, and can send it again
    let page = "/edit/prompts/sre/after.md";
    let shown = send(reader.address, "GET", page, &[("Accept", "text/html")], b"").await;
    let token = shown.text().split("name=\"csrf\" value=\"").nth(1).unwrap();
    let token = token.split('"').next().unwrap();
    for deed in ["publish", "propose"] {
        let form = format!("csrf={token}&text=Typed+here.&message=Said&more=And+more&do={deed}");
        let headers = [
            ("Accept", "text/html"),
            ("Content-Type", "application/x-www-form-urlencoded"),
        ];
        let kept = send(reader.address, "POST", page, &headers, form.as_bytes()).await;
        assert_eq!(kept.status, 503, "{}", kept.text());
        let button = format!("name=\"do\" value=\"{deed}\"");
        for words in [
            "is on a read-only file system",
            "Typed here.</textarea>",
            "value=\"Said\"",
            "And more</textarea>",
            &button,
        ] {
            assert!(kept.text().contains(words), "no {words} in {}", kept.text());
        }
        assert!(!kept.text().contains("readonly"));
    }
    let erased = send(
        reader.address,
        "POST",
        "/api/v1/usage/erase-values",
        &headers,
        b"{}",
    )
    .await;
    assert_eq!(erased.status, 503);
    assert!(everything(&data_dir) == before, "something was written");

    // it hinders no server that can write, and serves what that one publishes
    process.again();
    work.ok(&["remote", "set-url", "origin", &process.url()]);
    work.publish(&[("prompts/sre/after.md", &prompt("By the other."))]);
    assert_eq!(process.server().text("after").await, "By the other.\n");
    soon("the reader to follow", async {
        while reader.text("after").await != "By the other.\n" {
            tokio::time::sleep(std::time::Duration::from_millis(20)).await;
        }
    })
    .await;
    let (code, log) = reader.end("-TERM");
    assert_eq!(code, Some(0), "{log}");
    // two that can write never serve one directory
    let second = run(process.command());
    assert!(!second.ok);
    second.says("another cuebook serves");
}

#[test]
fn a_read_only_directory_without_a_library_is_refused_in_words() {
    let process = Process {
        folder: tempfile::tempdir().unwrap(),
        server: None,
        settings: Vec::new(),
    };
    std::fs::create_dir(process.folder.path().join("cuebook-data")).unwrap();
    let ran = run(after(READ_ONLY, &process));
    assert!(!ran.ok);
    ran.says("read-only file system and has no library yet");
    ran.says("choose another --data-dir");
}

#[test]
fn a_lock_of_other_permissions_is_an_error_with_the_way_out() {
    use std::os::unix::fs::PermissionsExt as _;
    let mut process = Process::start(&[]);
    process.server.take().unwrap().end("-TERM");
    let lock = process.folder.path().join("cuebook-data/lock");
    std::fs::set_permissions(&lock, std::fs::Permissions::from_mode(0o444)).unwrap();
    // in a user namespace without a mapping nobody is root: the mode counts
    let inner = process.command();
    let mut command = Command::new("unshare");
    command
        .arg("--user")
        .arg(inner.get_program())
        .args(inner.get_args())
        .arg("--unsafe-rendering")
        .current_dir(process.folder.path())
        .stdin(Stdio::null());
    let ran = run(command);
    assert!(!ran.ok);
    ran.says("cannot write in the data directory cuebook-data");
    ran.says("cuebook-data/lock must be a file that the user who runs cuebook may write");
    ran.says("chmod u+w");
    ran.says_not("read-only file system");
}
