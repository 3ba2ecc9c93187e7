//! Commits that are checked before main points to them: what they would publish, and that the check is not done twice.

use cuebook::git::Repository;
use cuebook::registry::candidate::{Checked, PublishedKind};

use super::*;

const BASE: &[(&str, &str)] = &[
    (
        "prompts/sre/triage.md",
        "---\ndescription: D\narguments: [{ name: x }]\n---\ntriage {{ x }} {% include \"rubric.md\" %}",
    ),
    (
        "prompts/sre/after.md",
        "---\ndescription: D\n---\nafter {% include \"rubric.md\" %}",
    ),
    ("prompts/review/code.md", "---\ndescription: D\n---\ncode"),
    ("partials/rubric.md", "rubric"),
    ("resources/runbook/payments.md", "payments"),
];

/// Files to write, or to remove.
type Edits<'a> = &'a [(&'a str, Option<&'a str>)];

/// Commits edits in the clone, which main of the bare repository does not know, and checks them as a push would.
fn check(
    library: &TestLibrary,
    registry: &Registry,
    edits: &[(&str, Option<&str>)],
) -> (String, Checked) {
    for (path, text) in edits {
        match text {
            Some(text) => library.write_bytes(path, text.as_bytes()),
            None => library.remove(path),
        }
    }
    let commit = library.commit("a candidate");
    let quarantine = Repository::open(&library.bare())
        .unwrap()
        .with_objects(&library.clone().join(".git/objects"));
    let checked = registry
        .check(
            &quarantine,
            &commit,
            &tokio_util::sync::CancellationToken::new(),
        )
        .unwrap();
    (commit, checked)
}

/// `name(arguments) kind`, then `-name` of what is gone.
fn told(checked: &Checked) -> Vec<String> {
    let published = checked.published.iter().map(|p| match &p.kind {
        PublishedKind::Added => format!("{}({}) added", p.name, p.arguments),
        PublishedKind::Changed => format!("{}({}) changed", p.name, p.arguments),
        PublishedKind::Moved { from } => format!("{}({}) from {from}", p.name, p.arguments),
    });
    published
        .chain(checked.removed.iter().map(|name| format!("-{name}")))
        .collect()
}

#[test]
fn objects_that_only_a_push_has_are_checked_and_nothing_is_served() {
    let library = TestLibrary::with(BASE);
    let registry = open(&library.bare(), owner());
    let before = registry.snapshot();
    let (_, checked) = check(
        &library,
        &registry,
        &[
            ("prompts/sre/new.md", Some(&prompt("new"))),
            ("prompts/review/code.md", Some(&prompt("CODE"))),
        ],
    );
    assert!(checked.is_clean(), "{:?}", checked.problems);
    assert_eq!(told(&checked), ["code(0) changed", "new(0) added"]);
    assert!(Arc::ptr_eq(&registry.snapshot(), &before));
}

#[test]
fn what_would_be_published_is_named() {
    let code = BASE[2].1;
    let cases: &[(Edits<'_>, &[&str])] = &[
        // V4: an edit of a partial concerns all that include it
        (
            &[("partials/rubric.md", Some("RUBRIC"))],
            &["after(0) changed", "triage(1) changed"],
        ),
        (
            &[
                ("prompts/review/code.md", None),
                ("prompts/sre/code.md", Some(code)),
            ],
            &["code(0) from prompts/review/code.md"],
        ),
        (
            &[
                ("prompts/review/code.md", None),
                ("prompts/review/code-check.md", Some(code)),
            ],
            &["code-check(0) from prompts/review/code.md", "-code"],
        ),
        (&[("prompts/review/code.md", None)], &["-code"]),
        (&[("README.md", Some("read me"))], &[]),
    ];
    for (edits, expected) in cases {
        let library = TestLibrary::with(BASE);
        let registry = open(&library.bare(), owner());
        let (_, checked) = check(&library, &registry, edits);
        assert!(checked.is_clean(), "{:?}", checked.problems);
        assert_eq!(told(&checked), *expected, "{edits:?}");
        assert_eq!(checked.resources_changed, 0);
    }
    let library = TestLibrary::with(BASE);
    let registry = open(&library.bare(), owner());
    let edits: &[(&str, Option<&str>)] = &[
        ("resources/runbook/payments.md", Some("PAYMENTS")),
        ("resources/runbook/search.md", Some("search")),
    ];
    let (_, checked) = check(&library, &registry, edits);
    assert_eq!((told(&checked), checked.resources_changed), (vec![], 2));
}

#[test]
fn a_bad_candidate_names_its_problems_and_is_not_kept() {
    let library = TestLibrary::with(BASE);
    let registry = open(&library.bare(), owner());
    let (_, checked) = check(&library, &registry, &[("prompts/sre/bad.md", Some(BAD))]);
    assert_eq!(checked.errors, 1);
    assert_eq!(&*checked.problems[0].path, "prompts/sre/bad.md");
    library.push();
    registry.refresh().unwrap();
    let status = &registry.snapshot().status;
    assert_eq!(status.tip_problem_count, 1);
    assert_ne!(status.tip, status.served);
}

#[test]
fn the_refresh_after_a_push_serves_what_was_checked() {
    let library = TestLibrary::with(BASE);
    let registry = open(&library.bare(), owner());
    let before = registry.snapshot();
    let (commit, _) = check(
        &library,
        &registry,
        &[("prompts/review/code.md", Some(&prompt("CODE")))],
    );
    library.push();
    registry.refresh().unwrap();
    let after = registry.snapshot();
    assert_eq!(after.status.served.as_deref(), Some(commit.as_str()));
    assert_eq!(after.catalog.revision().commit(), Some(commit.as_str()));
    assert!(texts(&after).contains(&"code: CODE".to_owned()));
    assert_eq!(after.generation, before.generation + 1);
    assert_eq!(after.changes.folders.get("review"), Some(&after.generation));
    assert_eq!(
        after.changes.folders.get("sre"),
        before.changes.folders.get("sre")
    );
}

#[test]
fn who_only_looks_takes_no_place_of_a_candidate() {
    let library = TestLibrary::with(BASE);
    let registry = open(&library.bare(), owner());
    let text = prompt("CODE");
    let edit = ("prompts/review/code.md", Some(&*text));
    let (pushed, _) = check(&library, &registry, &[edit]);
    assert!(registry.has_candidate(&pushed));
    let objects = library.clone().join(".git/objects");
    let quarantine = Repository::open(&library.bare())
        .unwrap()
        .with_objects(&objects);
    for n in 0..6 {
        library.write_bytes("prompts/review/code.md", prompt(&format!("{n}")).as_bytes());
        let seen = library.commit("only looked at");
        let never = tokio_util::sync::CancellationToken::new();
        let checked = registry.look(&quarantine, &seen, &never).unwrap();
        assert_eq!(told(&checked), ["code(0) changed"]);
        assert!(!registry.has_candidate(&seen));
    }
    assert!(registry.has_candidate(&pushed));
}

#[test]
fn a_candidate_that_was_overtaken_is_served_as_what_it_is() {
    let library = TestLibrary::with(BASE);
    let registry = open(&library.bare(), owner());
    // checked against the first commit, then two commits later it is the tip
    check(
        &library,
        &registry,
        &[("prompts/review/code.md", Some(&prompt("CODE")))],
    );
    let (last, _) = check(
        &library,
        &registry,
        &[("prompts/sre/after.md", Some(&prompt("AFTER")))],
    );
    git(&library.clone(), &["push", "-q", "origin", "HEAD~1:main"]);
    registry.refresh().unwrap();
    library.push();
    registry.refresh().unwrap();
    let after = registry.snapshot();
    assert_eq!(after.status.served.as_deref(), Some(last.as_str()));
    assert_eq!(after.changes.folders.get("sre"), Some(&after.generation));
    assert_eq!(
        after.changes.folders.get("review"),
        Some(&(after.generation - 1)),
        "what was told before is not told again"
    );
}

#[test]
fn a_refresh_that_returns_serves_what_main_said() {
    let library = TestLibrary::with(BASE);
    let registry = open(&library.bare(), owner());
    for round in 0..5 {
        let commit = library.publish(&[("prompts/review/code.md", &prompt(&format!("{round}")))]);
        std::thread::scope(|scope| {
            for _ in 0..16 {
                scope.spawn(|| {
                    registry.refresh().unwrap();
                    assert_eq!(
                        registry.snapshot().status.served.as_deref(),
                        Some(commit.as_str())
                    );
                });
            }
        });
    }
    assert_eq!(registry.snapshot().generation, 6, "one swap for a publish");
}
