//! What changes behind the server's back is noticed: by events, and by a poll for what events miss.

use std::time::{Duration, Instant};

use tokio_util::sync::CancellationToken;

use super::*;

/// Longest wait in a bare repository, where a poll of the ref would do.
const PATIENCE: Duration = Duration::from_secs(20);
/// Longest wait in a work tree: shorter than its poll, so that only events can have done it.
const BY_EVENT: Duration = Duration::from_secs(12);

/// A registry that watches; it stops when this is dropped.
struct Watched {
    registry: Arc<Registry>,
    cancel: CancellationToken,
}

impl Watched {
    fn start(path: &Path) -> Self {
        let registry = open(path, owner());
        let cancel = CancellationToken::new();
        tokio::spawn(registry.clone().watch(cancel.clone()));
        Self { registry, cancel }
    }

    /// Waits for a snapshot; how long that took.
    #[track_caller]
    fn until(
        &self,
        what: &str,
        patience: Duration,
        seen: impl Fn(&Snapshot) -> bool,
    ) -> impl Future<Output = Duration> {
        let registry = self.registry.clone();
        let what = what.to_owned();
        async move {
            let started = Instant::now();
            while !seen(&registry.snapshot()) {
                assert!(
                    started.elapsed() < patience,
                    "{what} was not noticed; served: {:?}",
                    texts(&registry.snapshot())
                );
                tokio::time::sleep(Duration::from_millis(5)).await;
            }
            started.elapsed()
        }
    }

    async fn until_text(&self, what: &str, patience: Duration, text: &str) -> Duration {
        self.until(what, patience, |snapshot| {
            texts(snapshot).contains(&text.to_owned())
        })
        .await
    }
}

impl Drop for Watched {
    fn drop(&mut self) {
        self.cancel.cancel();
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn every_way_a_ref_can_move_is_noticed() {
    let library = TestLibrary::with(&[("prompts/a/one.md", &prompt("first"))]);
    let bare = library.bare();
    let first = tip(&library);
    let watched = Watched::start(&bare);

    library.publish(&[("prompts/a/one.md", &prompt("pushed"))]);
    watched.until_text("a push", PATIENCE, "one: pushed").await;

    git(&bare, &["update-ref", "refs/heads/main", &first]);
    watched
        .until_text("an update-ref", PATIENCE, "one: first")
        .await;

    git(
        &library.clone(),
        &["checkout", "--quiet", "--detach", &first],
    );
    library.write_bytes("prompts/a/one.md", prompt("forced").as_bytes());
    library.commit("forced");
    git(
        &library.clone(),
        &["push", "--quiet", "--force", "origin", "HEAD:main"],
    );
    watched
        .until_text("a forced push", PATIENCE, "one: forced")
        .await;

    // all refs into one file, then a ref that only stands there
    git(&bare, &["pack-refs", "--all"]);
    assert!(!bare.join("refs/heads/main").exists());
    library.publish(&[("prompts/a/one.md", &prompt("after packing"))]);
    watched
        .until_text("a push onto packed refs", PATIENCE, "one: after packing")
        .await;

    library.write_bytes("prompts/a/one.md", prompt("fetched").as_bytes());
    library.commit("fetched");
    git(
        &bare,
        &[
            "fetch",
            "--quiet",
            library.clone().to_str().unwrap(),
            "+HEAD:refs/heads/main",
        ],
    );
    watched
        .until_text("a fetch", PATIENCE, "one: fetched")
        .await;

    // a mirror's way: pack while the ref moves
    library.write_bytes("prompts/a/one.md", prompt("moved and packed").as_bytes());
    library.commit("moved");
    library.push();
    git(&bare, &["pack-refs", "--all"]);
    watched
        .until_text(
            "a push that is packed at once",
            PATIENCE,
            "one: moved and packed",
        )
        .await;

    library.publish(&[("prompts/a/two.md", BAD)]);
    let bad = tip(&library);
    watched
        .until("a bad push", PATIENCE, |s| {
            s.status.tip.as_deref() == Some(&bad)
        })
        .await;
    assert_eq!(
        texts(&watched.registry.snapshot()),
        ["one: moved and packed"]
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn a_push_is_noticed_within_a_second() {
    let library = TestLibrary::with(&[("prompts/a/one.md", &prompt("0"))]);
    let watched = Watched::start(&library.bare());
    let mut took = Vec::new();
    for i in 1..=9 {
        let text = i.to_string();
        library.publish(&[("prompts/a/one.md", &prompt(&text))]);
        took.push(
            watched
                .until_text("a push", PATIENCE, &format!("one: {text}"))
                .await,
        );
    }
    // the middle one: other work on this machine may have delayed a few
    took.sort();
    assert!(took[4] < Duration::from_secs(1), "{took:?}");
}

#[tokio::test(flavor = "multi_thread")]
async fn gc_and_repack_disturb_nobody() {
    let library = TestLibrary::with(&[("prompts/a/one.md", &prompt("0"))]);
    let first = tip(&library);
    let bare = library.bare();
    let watched = Watched::start(&bare);
    let steps: [&[&str]; 6] = [
        &["gc", "--quiet"],
        &["repack", "-a", "-d", "--quiet"],
        &["pack-refs", "--all", "--prune"],
        &["commit-graph", "write", "--reachable"],
        &["multi-pack-index", "write"],
        &["gc", "--quiet", "--aggressive"],
    ];
    for (i, step) in steps.into_iter().enumerate() {
        let text = format!("{}", i + 1);
        library.publish(&[("prompts/a/one.md", &prompt(&text))]);
        git(&bare, step);
        watched
            .until_text(step[0], PATIENCE, &format!("one: {text}"))
            .await;
        git(&bare, step);
        // an old revision is read out of whatever holds it now
        let catalog = watched.registry.at(&first[..8 + i]).await.unwrap();
        assert_eq!(catalog.revision().commit(), Some(first.as_str()));
        assert_eq!(watched.registry.snapshot().status.read_error, None);
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn the_first_push_into_an_empty_repository_is_noticed() {
    let library = TestLibrary::empty();
    let watched = Watched::start(&library.bare());
    library.publish(&[("prompts/a/one.md", &prompt("first"))]);
    watched
        .until_text("the first push", PATIENCE, "one: first")
        .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_burst_of_pushes_ends_with_the_last() {
    let library = TestLibrary::with(&[("prompts/a/one.md", &prompt("0"))]);
    let watched = Watched::start(&library.bare());
    for i in 1..=20 {
        library.publish(&[("prompts/a/one.md", &prompt(&i.to_string()))]);
    }
    watched
        .until_text("the last push", PATIENCE, "one: 20")
        .await;
    assert_eq!(
        watched.registry.snapshot().status.served,
        Some(tip(&library))
    );
}

/// A folder with files, and a registry that watches it.
struct Folder {
    folder: tempfile::TempDir,
}

impl Folder {
    fn new(files: &[(&str, &str)]) -> Self {
        let folder = Self {
            folder: tempfile::tempdir().unwrap(),
        };
        for (path, text) in files {
            folder.write(path, text);
        }
        folder
    }

    fn path(&self, path: &str) -> std::path::PathBuf {
        self.folder.path().join(path)
    }

    fn write(&self, path: &str, text: &str) {
        let path = self.path(path);
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        std::fs::write(path, text).unwrap();
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn every_way_a_file_can_change_is_noticed() {
    let folder = Folder::new(&[("prompts/a/one.md", &prompt("first"))]);
    let watched = Watched::start(folder.folder.path());

    folder.write("prompts/a/one.md", &prompt("edited"));
    watched.until_text("an edit", BY_EVENT, "one: edited").await;

    // as editors save: another file that takes the place
    folder.write("prompts/a/.one.md.swp", &prompt("renamed"));
    std::fs::rename(
        folder.path("prompts/a/.one.md.swp"),
        folder.path("prompts/a/one.md"),
    )
    .unwrap();
    watched
        .until_text("a rename", BY_EVENT, "one: renamed")
        .await;

    folder.write("prompts/new/deep/two.md", &prompt("new folder"));
    watched
        .until_text("a new folder", BY_EVENT, "two: new folder")
        .await;
    folder.write("prompts/new/deep/two.md", &prompt("edited"));
    watched
        .until_text("an edit in a new folder", BY_EVENT, "two: edited")
        .await;

    std::fs::remove_file(folder.path("prompts/new/deep/two.md")).unwrap();
    watched
        .until("a deletion", BY_EVENT, |s| texts(s) == ["one: renamed"])
        .await;

    // folders of the library that were not there at the start
    folder.write("prompts/a/one.md", &prompt("{% include \"p.md\" %}"));
    folder.write("partials/p.md", "partial");
    watched
        .until_text("a new partials folder", BY_EVENT, "one: partial")
        .await;
    folder.write("partials/p.md", "edited");
    watched
        .until_text("an edit of a partial", BY_EVENT, "one: edited")
        .await;

    folder.write("cuebook.toml", "title = \"New\"");
    watched
        .until("cuebook.toml", BY_EVENT, |s| {
            s.catalog.title() == Some("New")
        })
        .await;
    folder.write("resources/doc/r.md", "R");
    watched
        .until("a resource", BY_EVENT, |s| s.catalog.resources().len() == 1)
        .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_prompts_folder_that_comes_later_is_noticed() {
    let folder = Folder::new(&[("cuebook.toml", "title = \"T\"")]);
    let watched = Watched::start(folder.folder.path());
    assert_eq!(texts(&watched.registry.snapshot()), Vec::<String>::new());
    folder.write("prompts/a/one.md", &prompt("late"));
    watched
        .until_text("a new prompts folder", BY_EVENT, "one: late")
        .await;
    folder.write("prompts/a/one.md", &prompt("edited"));
    watched
        .until_text("an edit in it", BY_EVENT, "one: edited")
        .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_folder_that_takes_the_place_of_another_is_watched() {
    let folder = Folder::new(&[
        ("prompts/a/one.md", &prompt("first")),
        ("other/a/one.md", &prompt("other")),
    ]);
    let watched = Watched::start(folder.folder.path());
    std::fs::rename(folder.path("prompts"), folder.path("old")).unwrap();
    std::fs::rename(folder.path("other"), folder.path("prompts")).unwrap();
    watched
        .until_text("another folder", BY_EVENT, "one: other")
        .await;
    folder.write("prompts/a/one.md", &prompt("edited"));
    watched
        .until_text("an edit in it", BY_EVENT, "one: edited")
        .await;

    std::fs::remove_dir_all(folder.path("prompts")).unwrap();
    watched
        .until("that it is gone", BY_EVENT, |s| texts(s).is_empty())
        .await;
    folder.write("prompts/a/one.md", &prompt("again"));
    watched
        .until_text("that it is there again", BY_EVENT, "one: again")
        .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_folder_made_again_at_once_is_watched() {
    let folder = Folder::new(&[("prompts/a/one.md", &prompt("first"))]);
    let watched = Watched::start(folder.folder.path());
    // the watch is there
    folder.write("prompts/a/one.md", &prompt("edited"));
    watched.until_text("an edit", BY_EVENT, "one: edited").await;
    for i in 0..5 {
        // the new folder often gets the inode of the old one
        std::fs::remove_dir_all(folder.path("prompts")).unwrap();
        let made = format!("made again {i}");
        folder.write("prompts/a/one.md", &prompt(&made));
        watched
            .until_text("the new folder", BY_EVENT, &format!("one: {made}"))
            .await;
        let edited = format!("edited {i}");
        folder.write("prompts/a/one.md", &prompt(&edited));
        watched
            .until_text(
                "an edit in it",
                Duration::from_secs(2),
                &format!("one: {edited}"),
            )
            .await;
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_library_made_again_at_once_is_watched() {
    let outer = Folder::new(&[("lib/prompts/a/one.md", &prompt("first"))]);
    let watched = Watched::start(&outer.path("lib"));
    outer.write("lib/prompts/a/one.md", &prompt("edited"));
    watched.until_text("an edit", BY_EVENT, "one: edited").await;
    std::fs::remove_dir_all(outer.path("lib")).unwrap();
    outer.write("lib/prompts/a/one.md", &prompt("made again"));
    watched
        .until_text("the new library", BY_EVENT, "one: made again")
        .await;
    outer.write("lib/prompts/a/one.md", &prompt("edited again"));
    watched
        .until_text("an edit in it", Duration::from_secs(3), "one: edited again")
        .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_folder_that_cannot_be_read_is_told_and_forgotten() {
    let outer = Folder::new(&[("lib/prompts/a/one.md", &prompt("first"))]);
    let registry = open(&outer.path("lib"), Settings::default());
    std::fs::rename(outer.path("lib"), outer.path("away")).unwrap();
    assert!(registry.refresh().is_err());
    assert!(registry.snapshot().status.read_error.is_some());
    assert_eq!(texts(&registry.snapshot()), ["one: first"]);
    std::fs::rename(outer.path("away"), outer.path("lib")).unwrap();
    registry.refresh().unwrap();
    assert_eq!(registry.snapshot().status.read_error, None);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_checkout_of_another_branch_is_noticed() {
    let library = TestLibrary::with(&[("prompts/a/one.md", &prompt("main"))]);
    let clone = library.clone();
    git(&clone, &["checkout", "--quiet", "-b", "topic"]);
    library.write_bytes("prompts/a/one.md", prompt("topic").as_bytes());
    library.write_bytes("prompts/b/two.md", prompt("topic").as_bytes());
    library.commit("topic");
    let watched = Watched::start(&clone);
    git(&clone, &["checkout", "--quiet", "main"]);
    watched
        .until("a checkout", BY_EVENT, |s| texts(s) == ["one: main"])
        .await;
    git(&clone, &["checkout", "--quiet", "topic"]);
    watched
        .until("a checkout", BY_EVENT, |s| {
            texts(s) == ["one: topic", "two: topic"]
        })
        .await;
}
