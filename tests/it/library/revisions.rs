//! `name@<commit>`: everything from that commit, when it is on main and passes today's check.

use cuebook::registry::AtError;

use super::*;
use crate::support::soon;

/// The texts of a commit.
async fn at(registry: &Arc<Registry>, commit: &str) -> Result<Vec<String>, AtError> {
    let catalog = soon("a revision", registry.at(commit)).await?;
    let mut snapshot = Snapshot {
        latest: catalog.clone(),
        catalog,
        history: None,
        generation: 0,
        changes: cuebook::registry::Changes::default(),
        status: cuebook::registry::Status::default(),
    };
    snapshot.status.served = snapshot.catalog.revision().commit().map(Into::into);
    Ok(texts(&snapshot))
}

fn three_commits() -> (TestLibrary, [String; 3]) {
    let library = TestLibrary::empty();
    let bound = "---\ndescription: D\nresources: [{ name: r, uri: \"doc://r\" }]\n---\n{% include \"p.md\" %} ";
    let first = library.publish(&[
        ("prompts/a/one.md", bound),
        ("partials/p.md", "p1"),
        ("resources/doc/r.md", "r1"),
    ]);
    let second = library.publish(&[("partials/p.md", "p2"), ("prompts/a/two.md", BAD)]);
    library.remove("prompts/a/two.md");
    let third = library.publish(&[
        ("resources/doc/r.md", "r3"),
        ("prompts/a/three.md", &prompt("three")),
    ]);
    (library, [first, second, third])
}

#[tokio::test]
async fn everything_comes_from_the_commit_that_is_named() {
    let (library, [first, _, third]) = three_commits();
    let registry = open(&library.bare(), owner());
    assert_eq!(
        texts(&registry.snapshot()),
        ["one: p2 [r3]", "three: three"]
    );
    for id in [&first[..], &first[..7], &first[..12], &first[..39]] {
        assert_eq!(at(&registry, id).await.unwrap(), ["one: p1 [r1]"], "{id}");
        // a second time, from the cache
        assert_eq!(at(&registry, id).await.unwrap(), ["one: p1 [r1]"], "{id}");
    }
    for id in [&third[..], &third[..7]] {
        assert_eq!(
            at(&registry, id).await.unwrap(),
            ["one: p2 [r3]", "three: three"]
        );
    }
    let catalog = registry.at(&first[..7]).await.unwrap();
    assert_eq!(catalog.revision().commit(), Some(first.as_str()));
}

#[tokio::test]
async fn what_is_not_on_main_or_not_clean_is_refused() {
    let (library, [first, second, _]) = three_commits();
    let clone = library.clone();
    // on another branch, and a commit that nothing names
    git(&clone, &["checkout", "--quiet", "-b", "topic", &first]);
    library.write_bytes("prompts/a/secret.md", prompt("unpublished").as_bytes());
    let topic = library.commit("topic");
    git(&clone, &["push", "--quiet", "origin", "HEAD:topic"]);
    git(
        &clone,
        &["commit", "--quiet", "--amend", "--message", "lost"],
    );
    let lost = git(&clone, &["rev-parse", "HEAD"]).trim().to_owned();
    git(
        &clone,
        &["push", "--quiet", "--force", "origin", "HEAD:topic"],
    );
    git(&clone, &["push", "--quiet", "origin", ":topic"]);

    let registry = open(&library.bare(), owner());
    let tree = git(&library.bare(), &["rev-parse", "main^{tree}"])
        .trim()
        .to_owned();
    let blob = git(&library.bare(), &["rev-parse", "main:partials/p.md"])
        .trim()
        .to_owned();
    for id in [
        "0123456789abcdef0123456789abcdef01234567",
        "0123456",
        &topic,
        &topic[..10],
        &lost,
        &tree,
        &blob,
    ] {
        assert_eq!(
            at(&registry, id).await.unwrap_err(),
            AtError::Unknown(id.to_owned()),
            "{id}"
        );
    }
    let error = at(&registry, &second).await.unwrap_err();
    let AtError::Unclean { commit, first } = &error else {
        panic!("{error:?}");
    };
    assert_eq!(commit, &second);
    assert!(first.starts_with("prompts/a/two.md:4:4: "), "{first}");
}

#[tokio::test]
async fn a_commit_that_main_has_left_behind_is_refused() {
    let (library, [first, _, third]) = three_commits();
    library.publish(&[("prompts/a/four.md", &prompt("four"))]);
    let registry = open(&library.bare(), owner());
    assert!(at(&registry, &third).await.is_ok());
    assert!(at(&registry, &third[..9]).await.is_ok());
    git(&library.bare(), &["update-ref", "refs/heads/main", &first]);
    registry.refresh().unwrap();
    for id in [&third[..], &third[..9]] {
        assert_eq!(
            at(&registry, id).await.unwrap_err(),
            AtError::Unknown(id.to_owned()),
            "what was withdrawn from main is served no more, also not from a cache"
        );
    }
    assert_eq!(at(&registry, &first).await.unwrap(), ["one: p1 [r1]"]);
}

#[tokio::test]
async fn a_clone_and_a_plain_folder() {
    let (library, [first, ..]) = three_commits();
    let registry = open(&library.clone(), Settings::default());
    library.write_bytes("prompts/a/three.md", prompt("edited").as_bytes());
    registry.refresh().unwrap();
    assert_eq!(
        texts(&registry.snapshot()),
        ["one: p2 [r3]", "three: edited"]
    );
    assert_eq!(at(&registry, &first).await.unwrap(), ["one: p1 [r1]"]);

    let folder = tempfile::tempdir().unwrap();
    std::fs::create_dir_all(folder.path().join("prompts")).unwrap();
    let registry = open(folder.path(), Settings::default());
    assert_eq!(
        at(&registry, &first).await.unwrap_err(),
        AtError::Unknown(first.clone())
    );
}

#[tokio::test]
async fn many_requests_for_many_commits_at_once() {
    let library = TestLibrary::empty();
    let mut commits = Vec::new();
    for i in 0..12 {
        commits.push(library.publish(&[("prompts/a/one.md", &prompt(&format!("text {i}")))]));
    }
    let registry = open(&library.bare(), owner());
    let mut tasks = tokio::task::JoinSet::new();
    for round in 0..5 {
        for (i, commit) in commits.iter().enumerate() {
            let registry = registry.clone();
            let id = commit[..commit.len() - round * 8].to_owned();
            tasks.spawn(async move { (i, at(&registry, &id).await) });
        }
    }
    while let Some(done) = tasks.join_next().await {
        let (i, found) = done.unwrap();
        assert_eq!(found.unwrap(), [format!("one: text {i}")]);
    }
}

#[tokio::test]
async fn an_id_that_fits_two_commits_asks_for_more_digits() {
    let library = TestLibrary::empty();
    library.write_bytes("prompts/a/one.md", b"---\ndescription: D\n---\nfirst\n");
    git(&library.clone(), &["add", "--all"]);
    let tree = git(&library.clone(), &["write-tree"]).trim().to_owned();
    // two commits of this tree whose ids begin alike, found by trying thirty thousand messages
    let ids: Vec<String> = ["6277", "28650"]
        .iter()
        .map(|message| {
            let commit = format!(
                "tree {tree}\nauthor T <t@example.com> 1700000000 +0000\ncommitter T <t@example.com> 1700000000 +0000\n\n{message}\n"
            );
            git_with(&library.clone(), &["hash-object", "-t", "commit", "-w", "--stdin"], commit.as_bytes())
        })
        .collect();
    assert_eq!(ids[0][..7], ids[1][..7], "{ids:?}");
    for id in &ids {
        git(
            &library.clone(),
            &[
                "push",
                "--quiet",
                "origin",
                &format!("{id}:refs/heads/x{id}"),
            ],
        );
    }
    git(&library.bare(), &["update-ref", "refs/heads/main", &ids[0]]);
    let registry = open(&library.bare(), owner());
    assert_eq!(
        at(&registry, &ids[0][..7]).await.unwrap_err(),
        AtError::Ambiguous(ids[0][..7].to_owned())
    );
    assert_eq!(at(&registry, &ids[0][..9]).await.unwrap(), ["one: first\n"]);
    assert_eq!(
        at(&registry, &ids[1]).await.unwrap_err(),
        AtError::Unknown(ids[1].clone())
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn a_bad_commit_is_told_again_from_memory() {
    let library = TestLibrary::with(&[("prompts/a/one.md", &prompt("one"))]);
    library.publish(&[("prompts/a/two.md", BAD)]);
    let bad = tip(&library);
    library.publish(&[("prompts/a/two.md", &prompt("two"))]);
    let registry = open(&library.bare(), Settings::default());
    let first = registry.at(&bad).await.unwrap_err();
    assert!(matches!(first, AtError::Unclean { .. }), "{first:?}");
    // its content is not read again: it is not there any more
    let blob = git(
        &library.bare(),
        &["rev-parse", &format!("{bad}:prompts/a/two.md")],
    );
    let blob = blob.trim();
    let loose = library
        .bare()
        .join("objects")
        .join(&blob[..2])
        .join(&blob[2..]);
    std::fs::remove_file(loose).unwrap();
    for id in [&bad[..], &bad[..8]] {
        assert_eq!(registry.at(id).await.unwrap_err(), first);
    }
}
