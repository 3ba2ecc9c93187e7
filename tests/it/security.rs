//! SECURITY.md is true in so far as it names tests: each one that it names is there.

use std::path::Path;

/// The file of a test or of a module of tests: below `tests/it`, or of the package itself.
fn source(modules: &[&str]) -> Option<String> {
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    let modules = modules.strip_suffix(&["tests"]).unwrap_or(modules);
    let path = modules.join("/");
    let places = [
        format!("tests/it/{path}.rs"),
        format!("tests/it/{path}/mod.rs"),
        format!("src/{path}.rs"),
        format!("src/{path}/mod.rs"),
    ];
    // a module of the package has tests of its own
    let is_unit = |place: &str| place.starts_with("src/");
    places.iter().find_map(|place| {
        let text = std::fs::read_to_string(root.join(place)).ok()?;
        (!is_unit(place) || text.contains("mod tests")).then_some(text)
    })
}

/// Whether a name as nextest prints it is that of a test, or of a module with some.
fn exists(name: &str) -> bool {
    let parts: Vec<&str> = name.split("::").collect();
    if source(&parts).is_some_and(|text| {
        text.contains("#[test]") || text.contains("#[tokio::test") || text.contains("mod ")
    }) {
        return true;
    }
    let Some((test, modules)) = parts.split_last() else {
        return false;
    };
    !modules.is_empty() && source(modules).is_some_and(|text| text.contains(&format!("fn {test}(")))
}

#[test]
fn every_test_that_the_threat_model_names_is_there() {
    for no_test in [
        "abuse::nowhere",
        "abuse::rates::nothing",
        "nowhere",
        "http::guard::tests::nothing",
    ] {
        assert!(!exists(no_test), "{no_test}");
    }
    let text =
        std::fs::read_to_string(Path::new(env!("CARGO_MANIFEST_DIR")).join("SECURITY.md")).unwrap();
    let mut named = 0;
    for line in text.lines().filter(|line| line.starts_with("| ")) {
        let shown = line
            .trim_end_matches(" |")
            .rsplit(" | ")
            .next()
            .unwrap_or_default();
        if shown == "shown by" {
            continue;
        }
        let names: Vec<&str> = shown.split('`').skip(1).step_by(2).collect();
        assert!(!names.is_empty(), "no test shows this: {line}");
        for name in names {
            assert!(exists(name), "SECURITY.md names `{name}`, which is no test");
            named += 1;
        }
    }
    assert!(named > 30, "{named}");
}
