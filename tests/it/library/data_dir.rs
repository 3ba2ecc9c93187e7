//! The data directory: made, locked, tidied, refused.

use std::time::Duration;

use cuebook::config::Config;
use cuebook::git::{GitError, Repository};
use cuebook::server::{Running, Serve, start};
use cuebook::starter::Language;

use super::*;
use crate::support::soon;

fn config() -> Config {
    let mut config = Config::load(None, &|_| None, &[("listen", "127.0.0.1:0".into())]).unwrap();
    config.program = env!("CARGO_BIN_EXE_cuebook").into();
    config.rendering = crate::support::worker_settings();
    config
}

async fn serve(path: &Path, starter: Option<Language>) -> anyhow::Result<Running> {
    let what = Serve::DataDir {
        path: path.to_owned(),
        starter,
    };
    soon("the server", start(what, &config())).await
}

#[track_caller]
fn refused(result: anyhow::Result<Running>) -> String {
    match result {
        Ok(_) => panic!("it was served"),
        Err(error) => format!("{error:#}"),
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_new_directory_gets_the_starter_library_as_its_first_commit() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("a/b/data");
    let running = serve(&path, Some(Language::Ko)).await.unwrap();
    assert!(running.created);
    let bare = path.join("library.git");
    assert_eq!(running.library, bare);
    assert!(running.registry.snapshot().catalog.list(None).len() >= 16);
    running.stop().await;

    assert_eq!(git(&bare, &["rev-list", "--count", "main"]).trim(), "1");
    assert_eq!(
        git(&bare, &["fsck", "--strict", "--no-progress"]).trim(),
        ""
    );
    assert_eq!(git(&bare, &["config", "core.bare"]).trim(), "true");
    assert!(git(&bare, &["log", "-1", "--format=%s"]).contains("시작 라이브러리"));
    git(
        folder.path(),
        &["clone", "--quiet", bare.to_str().unwrap(), "clone"],
    );
    assert!(
        folder
            .path()
            .join("clone/prompts/sre/incident-triage.md")
            .is_file()
    );
    #[cfg(unix)]
    {
        use std::os::unix::fs::PermissionsExt as _;
        let mode = std::fs::metadata(path.join("session.key"))
            .unwrap()
            .permissions()
            .mode();
        assert_eq!(mode & 0o777, 0o600);
    }

    let key = std::fs::read(path.join("session.key")).unwrap();
    let running = serve(&path, Some(Language::En)).await.unwrap();
    assert!(!running.created, "what is there stays");
    running.stop().await;
    assert_eq!(git(&bare, &["rev-list", "--count", "main"]).trim(), "1");
    assert_eq!(std::fs::read(path.join("session.key")).unwrap(), key);
}

#[tokio::test(flavor = "multi_thread")]
async fn an_empty_library_takes_a_first_push() {
    let folder = tempfile::tempdir().unwrap();
    let running = serve(folder.path(), None).await.unwrap();
    let snapshot = running.registry.snapshot();
    assert_eq!(
        (snapshot.catalog.list(None).len(), &snapshot.status.tip),
        (0, &None)
    );
    let library = TestLibrary::empty();
    library.write_bytes("prompts/a/one.md", prompt("first").as_bytes());
    library.commit("first");
    git(
        &library.clone(),
        &[
            "push",
            "--quiet",
            running.library.to_str().unwrap(),
            "HEAD:main",
        ],
    );
    let mut news = running.registry.subscribe();
    soon("the first push", async {
        while running.registry.snapshot().catalog.list(None).is_empty() {
            news.changed().await.unwrap();
        }
    })
    .await;
    assert_eq!(texts(&running.registry.snapshot()), ["one: first"]);
    running.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_second_server_on_the_same_directory_is_refused_until_the_first_ends() {
    let folder = tempfile::tempdir().unwrap();
    let first = serve(folder.path(), None).await.unwrap();
    let error = refused(serve(folder.path(), None).await);
    assert!(
        error.contains("another cuebook serves") && error.contains("--data-dir"),
        "{error}"
    );
    first.stop().await;
    serve(folder.path(), None).await.unwrap().stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn locks_that_a_killed_process_left_are_removed_at_start() {
    let folder = tempfile::tempdir().unwrap();
    serve(folder.path(), Some(Language::En))
        .await
        .unwrap()
        .stop()
        .await;
    let bare = folder.path().join("library.git");
    let stale = [
        "refs/heads/main.lock",
        "refs/heads/topic/deep.lock",
        "refs/cuebook/served.lock",
        "packed-refs.lock",
        "HEAD.lock",
        "config.lock",
    ];
    let leave = || {
        for lock in stale {
            let path = bare.join(lock);
            std::fs::create_dir_all(path.parent().unwrap()).unwrap();
            std::fs::write(path, "").unwrap();
        }
        let incoming = bare.join("objects/tmp_objdir-incoming-x1y2z3");
        std::fs::create_dir_all(incoming.join("pack")).unwrap();
        std::fs::write(incoming.join("pack/tmp_pack_1"), "half").unwrap();
    };
    leave();
    // a running server's are somebody's: a second one must not touch them
    let running = serve(folder.path(), None).await.unwrap();
    for lock in stale {
        assert!(!bare.join(lock).exists(), "{lock}");
    }
    assert!(!bare.join("objects/tmp_objdir-incoming-x1y2z3").exists());
    assert!(
        bare.join("refs/heads/main").exists(),
        "refs themselves stay"
    );
    leave();
    refused(serve(folder.path(), None).await);
    for lock in stale {
        assert!(bare.join(lock).exists(), "{lock}");
        std::fs::remove_file(bare.join(lock)).unwrap();
    }
    // and a push works
    git(
        folder.path(),
        &["clone", "--quiet", bare.to_str().unwrap(), "clone"],
    );
    let clone = folder.path().join("clone");
    git(
        &clone,
        &["commit", "--quiet", "--allow-empty", "--message", "x"],
    );
    git(&clone, &["push", "--quiet", "origin", "HEAD:main"]);
    running.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn what_an_interrupted_start_left_is_begun_again() {
    let folder = tempfile::tempdir().unwrap();
    let half = folder.path().join("library.git.new");
    std::fs::create_dir_all(half.join("refs")).unwrap();
    std::fs::write(half.join("HEAD"), "ref: refs/heads/other").unwrap();
    let running = serve(folder.path(), Some(Language::En)).await.unwrap();
    assert!(running.created && !half.exists());
    assert!(!running.registry.snapshot().catalog.list(None).is_empty());
    running.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn formats_that_cannot_be_read_are_refused_with_how_to_convert() {
    for (format, named) in [
        ("--ref-format=reftable", "reftable"),
        ("--object-format=sha256", "sha256"),
    ] {
        let folder = tempfile::tempdir().unwrap();
        git(
            folder.path(),
            &["init", "--quiet", "--bare", format, "library.git"],
        );
        let bare = folder.path().join("library.git");
        let error = refused(serve(folder.path(), None).await);
        assert!(
            error.contains(named) && error.contains("git clone --bare --ref-format=files"),
            "{error}"
        );
        let error = Repository::open(&bare).unwrap_err();
        assert!(matches!(error, GitError::Format { .. }), "{error:?}");
        // and a work tree of that format
        git(folder.path(), &["init", "--quiet", format, "clone"]);
        let error = Library::find(&folder.path().join("clone"))
            .unwrap_err()
            .to_string();
        assert!(error.contains(named), "{error}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn places_that_cannot_hold_data_are_named() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("file");
    std::fs::write(&file, "").unwrap();
    let error = refused(serve(&file, None).await);
    assert!(error.contains(file.to_str().unwrap()), "{error}");
    let error = refused(serve(&file.join("below"), None).await);
    assert!(error.contains(file.to_str().unwrap()), "{error}");
}

#[tokio::test(flavor = "multi_thread")]
async fn stopping_ends_the_watch_and_the_listener() {
    let folder = tempfile::tempdir().unwrap();
    let running = serve(folder.path(), None).await.unwrap();
    let address = running.address;
    soon("the end", running.stop()).await;
    let refused = tokio::time::timeout(
        Duration::from_secs(5),
        tokio::net::TcpStream::connect(address),
    )
    .await
    .unwrap();
    assert!(refused.is_err());
}

#[tokio::test(flavor = "multi_thread")]
async fn a_library_itself_is_no_data_directory() {
    let library = TestLibrary::with(&[("prompts/a/one.md", &prompt("one"))]);
    let plain = tempfile::tempdir().unwrap();
    std::fs::write(plain.path().join("cuebook.toml"), "title = \"T\"").unwrap();
    let partials = tempfile::tempdir().unwrap();
    std::fs::create_dir(partials.path().join("partials")).unwrap();
    let repository = tempfile::tempdir().unwrap();
    git(repository.path(), &["init", "--quiet"]);
    for (path, advice) in [
        (library.clone().as_path(), "--watch"),
        (library.bare().as_path(), "DIR/library.git"),
        (plain.path(), "--watch"),
        (partials.path(), "--watch"),
        (repository.path(), "--watch"),
    ] {
        let before = std::fs::read_dir(path).unwrap().count();
        let error = refused(serve(path, Some(Language::En)).await);
        assert!(
            error.contains("is a library itself")
                && error.contains(advice)
                && error.contains("choose another --data-dir"),
            "{error}"
        );
        assert_eq!(std::fs::read_dir(path).unwrap().count(), before, "{error}");
    }
    // a directory that serves already goes on, whatever else lies in it
    let data = tempfile::tempdir().unwrap();
    serve(data.path(), None).await.unwrap().stop().await;
    std::fs::create_dir(data.path().join("prompts")).unwrap();
    serve(data.path(), None).await.unwrap().stop().await;
}
