//! Which commit is served: the tip when it is clean, else the newest clean first-parent ancestor.

use cuebook::git::SERVED;
use cuebook::registry::Refreshed;

use super::*;

/// `refs/cuebook/served` of a library.
fn remembered(library: &TestLibrary) -> Option<String> {
    let id = git(
        &library.bare(),
        &["for-each-ref", "--format=%(objectname)", SERVED],
    );
    (!id.trim().is_empty()).then(|| id.trim().to_owned())
}

#[test]
fn a_bad_tip_is_not_served_and_the_newest_clean_ancestor_is() {
    let library = TestLibrary::with(&[("prompts/a/one.md", &prompt("first"))]);
    let registry = open(&library.bare(), owner());
    let first = tip(&library);
    assert_eq!(registry.snapshot().status.served, Some(first.clone()));

    let second = library.publish(&[("prompts/a/one.md", &prompt("second"))]);
    assert_eq!(registry.refresh().unwrap(), Refreshed::Swapped);
    assert_eq!(texts(&registry.snapshot()), ["one: second"]);

    // several bad commits in a row, the good file changed in one of them
    library.publish(&[("prompts/a/two.md", BAD)]);
    registry.refresh().unwrap();
    library.publish(&[
        ("prompts/a/one.md", &prompt("third")),
        ("prompts/a/three.md", BAD),
    ]);
    assert_eq!(
        registry.refresh().unwrap(),
        Refreshed::Unchanged,
        "what is served did not change"
    );
    let bad = tip(&library);
    let check = |registry: &Registry| {
        let snapshot = registry.snapshot();
        assert_eq!(texts(&snapshot), ["one: second"]);
        let status = &snapshot.status;
        assert_eq!(
            (
                status.tip.as_deref(),
                status.served.as_deref(),
                status.partial
            ),
            (Some(bad.as_str()), Some(second.as_str()), false)
        );
        assert_eq!(status.tip_problem_count, 2);
        assert!(
            status.tip_problems[0].starts_with("prompts/a/three.md:4:4: "),
            "{:?}",
            status.tip_problems
        );
    };
    check(&registry);
    assert_eq!(remembered(&library), Some(second.clone()));
    // and the same for a server that starts now, with and without what is remembered
    check(&open(&library.bare(), owner()));
    git(&library.bare(), &["update-ref", "-d", SERVED]);
    check(&open(&library.bare(), Settings::default()));
    assert_eq!(remembered(&library), None, "only the owner writes");
    check(&open(&library.bare(), owner()));
    assert_eq!(remembered(&library), Some(second));

    // put right
    library.remove("prompts/a/two.md");
    let fixed = library.publish(&[("prompts/a/three.md", &prompt("3"))]);
    assert_eq!(registry.refresh().unwrap(), Refreshed::Swapped);
    let snapshot = registry.snapshot();
    assert_eq!(texts(&snapshot), ["one: third", "three: 3"]);
    assert_eq!(
        (
            snapshot.status.tip.clone(),
            snapshot.status.served.clone(),
            snapshot.status.tip_problem_count
        ),
        (Some(fixed.clone()), Some(fixed.clone()), 0)
    );
    assert_eq!(remembered(&library), Some(fixed));
}

#[test]
fn where_no_commit_is_clean_the_good_prompts_of_the_tip_are_served() {
    let library = TestLibrary::with(&[
        ("prompts/a/good.md", &prompt("good")),
        ("prompts/a/bad.md", BAD),
    ]);
    let registry = open(&library.bare(), owner());
    let check = |expected: &[&str]| {
        let snapshot = registry.snapshot();
        assert_eq!(texts(&snapshot), expected);
        assert!(snapshot.status.partial);
        assert_eq!(snapshot.status.tip.as_deref(), Some(tip(&library).as_str()));
        assert_eq!(snapshot.status.served, snapshot.status.tip);
    };
    check(&["good: good"]);
    assert_eq!(remembered(&library), None, "it is not clean");
    library.publish(&[("prompts/a/good.md", &prompt("better"))]);
    registry.refresh().unwrap();
    check(&["good: better"]);

    let fixed = library.publish(&[("prompts/a/bad.md", &prompt("not so bad"))]);
    registry.refresh().unwrap();
    let snapshot = registry.snapshot();
    assert_eq!(texts(&snapshot), ["bad: not so bad", "good: better"]);
    assert!(!snapshot.status.partial);

    // from now on there is a clean ancestor
    library.publish(&[
        ("prompts/a/bad.md", BAD),
        ("prompts/a/good.md", &prompt("best")),
    ]);
    registry.refresh().unwrap();
    let snapshot = registry.snapshot();
    assert_eq!(texts(&snapshot), ["bad: not so bad", "good: better"]);
    assert_eq!(snapshot.status.served, Some(fixed));
}

#[test]
fn the_ancestor_is_looked_for_on_the_first_parents() {
    let library = TestLibrary::with(&[("prompts/a/one.md", &prompt("base"))]);
    let base = tip(&library);
    let clone = library.clone();
    git(&clone, &["checkout", "--quiet", "-b", "topic"]);
    library.write_bytes("prompts/a/one.md", prompt("topic").as_bytes());
    library.commit("clean, and newer than the base");
    git(&clone, &["checkout", "--quiet", "main"]);
    library.write_bytes("prompts/a/two.md", BAD.as_bytes());
    library.commit("bad");
    git(&clone, &["merge", "--quiet", "--no-edit", "topic"]);
    library.push();
    let registry = open(&library.bare(), owner());
    let snapshot = registry.snapshot();
    assert_eq!(snapshot.status.served, Some(base));
    assert_eq!(texts(&snapshot), ["one: base"]);
}

#[test]
fn a_rewind_to_an_older_commit_serves_it() {
    let library = TestLibrary::with(&[("prompts/a/one.md", &prompt("first"))]);
    let first = tip(&library);
    library.publish(&[("prompts/a/one.md", &prompt("second"))]);
    let registry = open(&library.bare(), owner());
    git(&library.bare(), &["update-ref", "refs/heads/main", &first]);
    registry.refresh().unwrap();
    assert_eq!(texts(&registry.snapshot()), ["one: first"]);
    assert_eq!(remembered(&library), Some(first));
}

#[test]
fn a_commit_with_warnings_alone_is_served() {
    let library = TestLibrary::with(&[("prompts/a/help.md", "no description")]);
    let registry = open(&library.bare(), owner());
    let snapshot = registry.snapshot();
    assert_eq!(texts(&snapshot), ["help: no description"]);
    assert_eq!(
        (
            snapshot.status.warning_count,
            snapshot.status.tip_problem_count
        ),
        (2, 0)
    );
    assert!(!snapshot.status.partial);
}

#[test]
fn an_example_that_fails_keeps_a_commit_from_being_served() {
    let example = |expect: &str| {
        format!("---\ndescription: D\nexamples: [{{ expect: [\"{expect}\"] }}]\n---\nthe text")
    };
    let library = TestLibrary::with(&[("prompts/a/one.md", &example("the text"))]);
    let registry = open(&library.bare(), owner());
    let good = tip(&library);
    library.publish(&[("prompts/a/one.md", &example("another text"))]);
    registry.refresh().unwrap();
    let snapshot = registry.snapshot();
    assert_eq!(snapshot.status.served, Some(good));
    assert!(
        snapshot.status.tip_problems[0].contains("does not contain this text"),
        "{:?}",
        snapshot.status.tip_problems
    );
}

#[test]
fn a_partial_that_breaks_a_prompt_it_was_not_changed_with_keeps_the_commit_back() {
    let library = TestLibrary::with(&[
        ("prompts/a/one.md", &prompt("{% include \"p.md\" %}")),
        ("prompts/a/two.md", &prompt("two")),
        ("partials/p.md", "fine"),
        ("resources/doc/r.md", "R"),
        (
            "prompts/a/three.md",
            "---\ndescription: D\nresources: [{ name: r, uri: \"doc://r\" }]\n---\nthree ",
        ),
    ]);
    let registry = open(&library.bare(), owner());
    let good = ["one: fine", "three: three [R]", "two: two"];
    assert_eq!(texts(&registry.snapshot()), good);
    let check = |expected: &str| {
        registry.refresh().unwrap();
        let snapshot = registry.snapshot();
        assert_eq!(texts(&snapshot), good);
        assert!(
            snapshot
                .status
                .tip_problems
                .iter()
                .any(|p| p.contains(expected)),
            "{:?}",
            snapshot.status.tip_problems
        );
    };
    library.publish(&[("partials/p.md", "{{ nope }}")]);
    check("partials/p.md:1:4");
    library.publish(&[("partials/p.md", "{% include \"p.md\" %}")]);
    check("circle");
    library.remove("partials/p.md");
    library.publish(&[]);
    check("there is no partial `p.md`");
    library.write_bytes("partials/p.md", b"fine");
    library.remove("resources/doc/r.md");
    library.publish(&[]);
    check("this library has no `doc://` resources");
}

#[test]
fn an_empty_repository_serves_nothing_until_the_first_push() {
    let library = TestLibrary::empty();
    let registry = open(&library.bare(), owner());
    let snapshot = registry.snapshot();
    assert_eq!(texts(&snapshot), Vec::<String>::new());
    assert_eq!(
        (&snapshot.status.tip, &snapshot.status.served),
        (&None, &None)
    );
    assert_eq!(registry.refresh().unwrap(), Refreshed::Unchanged);
    library.publish(&[("prompts/a/one.md", &prompt("first"))]);
    assert_eq!(registry.refresh().unwrap(), Refreshed::Swapped);
    assert_eq!(texts(&registry.snapshot()), ["one: first"]);
}

#[test]
fn a_repository_without_main_serves_its_head() {
    let library = TestLibrary::empty();
    git(
        &library.bare(),
        &["symbolic-ref", "HEAD", "refs/heads/trunk"],
    );
    library.write_bytes("prompts/a/one.md", prompt("trunk").as_bytes());
    library.commit("first");
    git(
        &library.clone(),
        &["push", "--quiet", "origin", "HEAD:trunk"],
    );
    let registry = open(&library.bare(), owner());
    assert_eq!(texts(&registry.snapshot()), ["one: trunk"]);
}

#[test]
fn when_main_is_deleted_what_was_served_goes_on_and_is_told() {
    let library = TestLibrary::with(&[("prompts/a/one.md", &prompt("first"))]);
    let served = tip(&library);
    let registry = open(&library.bare(), owner());
    git(&library.bare(), &["update-ref", "-d", "refs/heads/main"]);
    registry.refresh().unwrap();
    let check = |registry: &Registry| {
        let snapshot = registry.snapshot();
        assert_eq!(texts(&snapshot), ["one: first"]);
        assert_eq!(snapshot.status.tip, None);
        assert_eq!(snapshot.status.served.as_deref(), Some(served.as_str()));
        let told = snapshot.status.read_error.as_deref().unwrap_or_default();
        assert!(told.contains("main"), "{told}");
    };
    check(&registry);
    assert_eq!(registry.refresh().unwrap(), Refreshed::Unchanged);
    check(&registry);
    // a server that starts now has what is remembered
    check(&open(&library.bare(), owner()));
    // and main may come back
    library.write_bytes("prompts/a/one.md", prompt("second").as_bytes());
    library.commit("second");
    library.push();
    registry.refresh().unwrap();
    let snapshot = registry.snapshot();
    assert_eq!(texts(&snapshot), ["one: second"]);
    assert_eq!(snapshot.status.read_error, None);
    assert_eq!(snapshot.status.tip, Some(tip(&library)));
}

#[test]
fn a_repository_that_cannot_be_read_for_a_moment_loses_nothing() {
    let library = TestLibrary::with(&[("prompts/a/one.md", &prompt("first"))]);
    let registry = open(&library.bare(), owner());
    let hidden = library.bare().with_extension("away");
    std::fs::rename(library.bare(), &hidden).unwrap();
    assert!(registry.refresh().is_err());
    let snapshot = registry.snapshot();
    assert_eq!(texts(&snapshot), ["one: first"]);
    assert!(snapshot.status.read_error.is_some());
    std::fs::rename(&hidden, library.bare()).unwrap();
    registry.refresh().unwrap();
    assert_eq!(registry.snapshot().status.read_error, None);
    library.publish(&[("prompts/a/one.md", &prompt("second"))]);
    registry.refresh().unwrap();
    assert_eq!(texts(&registry.snapshot()), ["one: second"]);
}

#[test]
fn a_plain_work_tree_serves_its_good_prompts() {
    let folder = tempfile::tempdir().unwrap();
    let write = |path: &str, text: &str| {
        let path = folder.path().join(path);
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        std::fs::write(path, text).unwrap();
    };
    write("prompts/a/good.md", &prompt("good"));
    write("prompts/a/bad.md", BAD);
    let registry = open(folder.path(), Settings::default());
    let snapshot = registry.snapshot();
    assert_eq!(texts(&snapshot), ["good: good"]);
    assert!(snapshot.status.partial);
    assert_eq!(
        (&snapshot.status.tip, &snapshot.status.served),
        (&None, &None)
    );
    write("prompts/a/bad.md", &prompt("good too"));
    assert_eq!(registry.refresh().unwrap(), Refreshed::Swapped);
    assert_eq!(texts(&registry.snapshot()), ["bad: good too", "good: good"]);
    assert!(!registry.snapshot().status.partial);
    assert_eq!(registry.refresh().unwrap(), Refreshed::Unchanged);
}
