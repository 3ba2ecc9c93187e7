//! Secrets: a library that holds one is not served, wherever it stands.

use super::*;

/// A token that opens nothing, put together here so that this file holds none.
fn token() -> String {
    format!("{}_{}", "ghp", "k3Vd0QxT9bLw2RzYpJ7hN5sCfG8mA1uEo6Xi")
}

#[track_caller]
fn check(path: &str, text: &str, expected: &[&str]) {
    let built = built(&[
        (
            "prompts/t/other.md",
            "---\ndescription: D\n---\nother {% include \"p.md\" %}",
        ),
        ("partials/p.md", "partial"),
        (path, text),
    ]);
    let found: Vec<String> = built
        .problems
        .iter()
        .filter(|p| p.is_error())
        .map(|p| format!("{}:{}:{} {}", p.path, p.line, p.column, p.code))
        .collect();
    assert_eq!(found, expected, "{text}");
    assert_eq!(built.is_clean(), expected.is_empty());
    let shown = format!("{:?}", built.problems);
    assert!(!shown.contains(&token()[..8]), "{shown}");
}

#[test]
fn a_secret_refuses_wherever_it_stands() {
    let token = token();
    for (path, text, place) in [
        (
            PATH,
            format!("---\ndescription: D\n---\na\nuse {token} here"),
            "5:5",
        ),
        (
            PATH,
            format!("---\ndescription: use {token}\n---\na"),
            "2:18",
        ),
        ("resources/runbook/x.md", format!("{token}\n"), "1:1"),
        (
            "resources/config/x.yaml",
            format!("a: 1\nkey: {token}\n"),
            "2:6",
        ),
        ("values/x.txt", format!("a\n{token}\n"), "2:1"),
        (
            "cuebook.toml",
            format!("instructions = \"{token}\"\n"),
            "1:17",
        ),
    ] {
        check(path, &text, &[&format!("{path}:{place} secret")]);
    }
    // what is no text, and what is not read
    check("resources/image/x.png", &format!("\u{0}{token}"), &[]);
    check("README.md", &token, &[]);
}

#[test]
fn nothing_that_holds_one_is_served_in_part_either() {
    let token = token();
    let built = built(&[
        ("prompts/t/good.md", "---\ndescription: D\n---\ngood"),
        (
            "prompts/t/bad.md",
            &format!("---\ndescription: D\n---\n{token}"),
        ),
        (
            "prompts/t/through.md",
            "---\ndescription: D\n---\n{% include \"p.md\" %}",
        ),
        ("partials/p.md", &format!("a\n{token}")),
        ("resources/runbook/x.md", &token),
    ]);
    let names: Vec<&str> = built
        .catalog
        .list(None)
        .into_iter()
        .map(|p| p.name.as_str())
        .collect();
    assert_eq!(names, ["good"]);
    assert!(built.catalog.resources().is_empty());
}

#[test]
fn other_problems_of_the_file_do_not_quote_it() {
    let token = token();
    check(
        PATH,
        &format!("---\ndescription: D\n---\n{{{{ nope }}}} {token}"),
        &[
            "prompts/t/p.md:4:4 undeclared-variable",
            "prompts/t/p.md:4:12 secret",
        ],
    );
    check(
        PATH,
        &format!("---\n{token}: x\ndescription: D\n---\na"),
        &[
            "prompts/t/p.md:2:1 unknown-key",
            "prompts/t/p.md:2:1 secret",
        ],
    );
}

#[test]
fn a_comment_allows_it_and_no_client_sees_the_comment() {
    let token = token();
    let body =
        format!("before\n{{#- secret: allow #}}\n{token}\nafter {token} {{# secret: allow #}}");
    let built = prompt(&format!("---\ndescription: D\n---\n{body}"));
    assert_eq!(
        text(&built, &[]),
        format!("before\n{token}\nafter {token} ")
    );
    check(
        "resources/config/x.yaml",
        &format!("# secret: allow\nkey: {token}\n"),
        &[],
    );
    check(
        "values/x.txt",
        &format!("{token}\t# secret: allow\n"),
        &["values/x.txt:1:1 secret"],
    );
}

#[test]
fn the_starter_library_and_its_examples_hold_none() {
    for language in ["en", "ko"] {
        let root = std::path::Path::new(env!("CARGO_MANIFEST_DIR"))
            .join("templates")
            .join(language);
        if !root.exists() {
            continue;
        }
        let tree = cuebook::registry::source::WorkTree::open(&root).unwrap();
        let built = build_and_run(&tree, Revision::WorkTree, &Limits::default(), None).unwrap();
        assert!(
            !built.problems.iter().any(|p| p.code == "secret"),
            "{}",
            told(&built)
        );
    }
}
