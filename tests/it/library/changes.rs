//! What a commit changes for whom: the counters that streams compare.

use std::collections::BTreeSet;

use super::*;

const BASE: &[(&str, &str)] = &[
    (
        "prompts/sre/triage.md",
        "---\ntitle: T\ndescription: D\narguments:\n  - { name: x, values: { resource: \"runbook://{s}\" } }\nresources: [{ name: r, uri: \"runbook://{{ x }}\" }]\n---\ntriage {% include \"rubric.md\" %}",
    ),
    (
        "prompts/sre/after/postmortem.md",
        "---\ndescription: D\n---\npostmortem {% include \"rubric.md\" %}",
    ),
    (
        "prompts/review/code.md",
        "---\ndescription: D\narguments: [{ name: x, values: { file: langs.txt } }]\n---\ncode {{ x }}",
    ),
    (
        "prompts/top.md",
        "---\ndescription: D\nresources: [{ name: g, uri: \"style://guide\", as: link }]\n---\ntop",
    ),
    ("partials/rubric.md", "rubric {% include \"units.md\" %}"),
    ("partials/units.md", "units"),
    ("partials/unused.md", "unused"),
    ("resources/runbook/payments.md", "payments"),
    ("resources/style/guide.md", "guide"),
    ("resources/doc/unbound.md", "unbound"),
    ("values/langs.txt", "rust\ngo\n"),
    ("labels.toml", "[production]\ncode = \"v1\"\n"),
    ("cuebook.toml", "title = \"T\"\n"),
    ("README.md", "read me"),
];

/// Publishes a change of the base library and gives what changed: folders of prompts (`""` is the whole), then `list`
/// and `content` of resources.
fn change(settings: Settings, edits: &[(&str, Option<&str>)]) -> BTreeSet<String> {
    let library = TestLibrary::with(BASE);
    let registry = open(&library.bare(), settings);
    let before = registry.snapshot();
    let mut woken = registry.subscribe();
    woken.mark_unchanged();
    for (path, text) in edits {
        match text {
            Some(text) => library.write_bytes(path, text.as_bytes()),
            None => library.remove(path),
        }
    }
    library.publish(&[]);
    registry.refresh().unwrap();
    let after = registry.snapshot();
    assert_eq!(
        after.status.tip_problem_count, 0,
        "{:?}",
        after.status.tip_problems
    );
    assert_eq!(after.generation, before.generation + 1);
    assert!(woken.has_changed().unwrap(), "those who wait are woken");

    let mut out = BTreeSet::new();
    let mut note = |name: &str, before: u64, after_: u64| {
        assert!(after_ == before || after_ == after.generation, "{name}");
        if after_ != before {
            out.insert(name.to_owned());
        }
    };
    let (old, new) = (&before.changes, &after.changes);
    note("prompts", old.prompts, new.prompts);
    note("list", old.resources_list, new.resources_list);
    note("content", old.resources_content, new.resources_content);
    for (folder, generation) in &new.folders {
        note(
            &format!("/{folder}"),
            old.folders.get(folder).copied().unwrap_or_default(),
            *generation,
        );
    }
    out
}

#[track_caller]
fn check(edits: &[(&str, Option<&str>)], expected: &[&str]) {
    let found = change(owner(), edits);
    assert_eq!(
        found,
        expected.iter().map(ToString::to_string).collect(),
        "{edits:?}"
    );
}

/// The same with `notify_body_edits = false`.
#[track_caller]
fn check_quiet(edits: &[(&str, Option<&str>)], expected: &[&str]) {
    let settings = Settings {
        notify_body_edits: false,
        ..owner()
    };
    let found = change(settings, edits);
    assert_eq!(
        found,
        expected.iter().map(ToString::to_string).collect(),
        "{edits:?}"
    );
}

#[test]
fn an_edit_of_a_body_concerns_its_folders() {
    let edit: &[(&str, Option<&str>)] = &[(
        "prompts/sre/after/postmortem.md",
        Some("---\ndescription: D\n---\nanother text"),
    )];
    check(edit, &["prompts", "/", "/sre", "/sre/after"]);
    check_quiet(edit, &[]);
    let edit: &[(&str, Option<&str>)] = &[(
        "prompts/top.md",
        Some(
            "---\ndescription: D\nresources: [{ name: g, uri: \"style://guide\", as: link }]\n---\nTOP",
        ),
    )];
    check(edit, &["prompts", "/"]);
    check_quiet(edit, &[]);
}

#[test]
fn an_edit_of_what_is_listed_is_always_told() {
    let code = |front: &str| format!("---\n{front}\n---\ncode {{{{ x }}}}");
    for front in [
        "description: Another\narguments: [{ name: x, values: { file: langs.txt } }]",
        "title: New\ndescription: D\narguments: [{ name: x, values: { file: langs.txt } }]",
        "description: D\narguments: [{ name: x, required: true, values: { file: langs.txt } }]",
        "description: D\narguments: [{ name: x, description: New, values: { file: langs.txt } }]",
        "description: D\ntags: [new]\narguments: [{ name: x, values: { file: langs.txt } }]",
    ] {
        let text = code(front);
        let edit: &[(&str, Option<&str>)] = &[("prompts/review/code.md", Some(&text))];
        check(edit, &["prompts", "/", "/review"]);
        check_quiet(edit, &["prompts", "/", "/review"]);
    }
}

#[test]
fn an_edit_of_a_partial_concerns_those_who_include_it() {
    for edit in [
        (
            "partials/rubric.md",
            Some("RUBRIC {% include \"units.md\" %}"),
        ),
        ("partials/units.md", Some("UNITS")),
    ] {
        check(&[edit], &["prompts", "/", "/sre", "/sre/after"]);
        check_quiet(&[edit], &[]);
    }
    check(&[("partials/unused.md", Some("UNUSED"))], &[]);
    check(&[("partials/unused.md", None)], &[]);
}

#[test]
fn an_edit_of_a_resource_concerns_those_who_bind_it() {
    check(
        &[("resources/runbook/payments.md", Some("PAYMENTS"))],
        &["prompts", "/", "/sre", "content"],
    );
    check_quiet(
        &[("resources/runbook/payments.md", Some("PAYMENTS"))],
        &["content"],
    );
    check(
        &[("resources/doc/unbound.md", Some("UNBOUND"))],
        &["content"],
    );
    check(
        &[("resources/runbook/search.md", Some("new"))],
        &["prompts", "/", "/sre", "list", "content"],
    );
    check(&[("resources/doc/unbound.md", None)], &["list", "content"]);
    check(
        &[
            ("resources/doc/unbound.md", None),
            ("resources/doc/unbound.txt", Some("unbound")),
        ],
        &["list", "content"],
    );
}

#[test]
fn a_prompt_that_comes_goes_or_moves() {
    let code = "---\ndescription: D\narguments: [{ name: x, values: { file: langs.txt } }]\n---\ncode {{ x }}";
    let labels = ("labels.toml", Some("[production]\ntop = \"v1\"\n"));
    for run in [check, check_quiet] {
        run(
            &[("prompts/new/one.md", Some("---\ndescription: D\n---\nnew"))],
            &["prompts", "/", "/new"],
        );
        run(
            &[("prompts/review/code.md", None), labels],
            &["prompts", "/", "/review"],
        );
        run(
            &[
                ("prompts/review/code.md", None),
                ("prompts/review/code-check.md", Some(code)),
                labels,
            ],
            &["prompts", "/", "/review"],
        );
        run(
            &[
                ("prompts/review/code.md", None),
                ("prompts/sre/code.md", Some(code)),
            ],
            &["prompts", "/", "/review", "/sre"],
        );
        run(
            &[
                ("prompts/review/code.md", None),
                ("prompts/review/deep/er/code.md", Some(code)),
            ],
            &["prompts", "/", "/review", "/review/deep", "/review/deep/er"],
        );
    }
}

#[test]
fn what_no_client_sees_is_told_to_nobody() {
    check(&[("README.md", Some("READ ME"))], &[]);
    check(&[("docs/x.md", Some("x"))], &[]);
    check(&[("values/langs.txt", Some("rust\ngo\nc\n"))], &[]);
    check(
        &[("labels.toml", Some("[production]\ncode = \"v2\"\n"))],
        &[],
    );
    check(&[("cuebook.toml", Some("title = \"New\"\n"))], &[]);
}

#[test]
fn a_family_that_is_declared_changes_the_list_of_resources() {
    check(
        &[(
            "cuebook.toml",
            Some("title = \"T\"\n[[resource]]\ntemplate = \"runbook://{s}\"\n"),
        )],
        &["list"],
    );
}

#[test]
fn many_changes_in_one_commit_are_one() {
    let text = |i: usize| format!("---\ndescription: D\n---\n{i}");
    let paths: Vec<String> = (0..40)
        .map(|i| format!("prompts/f{}/p{i}.md", i % 4))
        .collect();
    let texts: Vec<String> = (0..40).map(text).collect();
    let edits: Vec<(&str, Option<&str>)> = paths
        .iter()
        .zip(&texts)
        .map(|(p, t)| (p.as_str(), Some(t.as_str())))
        .collect();
    check(&edits, &["prompts", "/", "/f0", "/f1", "/f2", "/f3"]);
}

#[test]
fn a_bad_commit_changes_nothing_for_anybody() {
    let library = TestLibrary::with(BASE);
    let registry = open(&library.bare(), owner());
    let before = registry.snapshot();
    let woken = registry.subscribe();
    library.publish(&[
        ("prompts/review/code.md", BAD),
        ("prompts/top.md", &prompt("TOP")),
    ]);
    registry.refresh().unwrap();
    let after = registry.snapshot();
    assert_eq!(after.generation, before.generation);
    assert!(!woken.has_changed().unwrap());
    assert!(Arc::ptr_eq(&after.catalog, &before.catalog));
    assert_eq!(after.status.tip_problem_count, 1);
}

#[test]
fn a_revert_is_a_change_like_any_other() {
    let library = TestLibrary::with(BASE);
    let registry = open(&library.bare(), owner());
    let first = texts(&registry.snapshot());
    library.publish(&[("partials/units.md", "UNITS")]);
    registry.refresh().unwrap();
    let told = registry.snapshot().changes.prompts;
    git(&library.clone(), &["revert", "--no-edit", "HEAD"]);
    library.push();
    registry.refresh().unwrap();
    assert_eq!(texts(&registry.snapshot()), first);
    assert!(registry.snapshot().changes.prompts > told);
}
