//! ARCHITECTURE.md is true: modules use what it allows, every path it names exists, and what it says is absent is absent.

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};

/// Longest source file, in lines; unit tests in a file of their own are not counted.
const MAX_LINES: usize = 700;

/// Files that may hold unsafe code, each with SAFETY comments.
const UNSAFE: [&str; 2] = ["src/workers/allocator.rs", "src/workers/sandbox.rs"];

fn root() -> &'static Path {
    Path::new(env!("CARGO_MANIFEST_DIR"))
}

/// Files below a folder, sorted; what is built or installed is left out.
fn files(folder: &Path) -> Vec<PathBuf> {
    let mut out = Vec::new();
    let mut folders = vec![folder.to_owned()];
    while let Some(folder) = folders.pop() {
        for entry in std::fs::read_dir(&folder).unwrap() {
            let entry = entry.unwrap();
            let name = entry.file_name();
            let skipped = [
                "target",
                "node_modules",
                ".git",
                "cuebook-data",
                "corpus",
                "artifacts",
                "__pycache__",
            ];
            if skipped.iter().any(|s| name == *s) {
                continue;
            }
            if entry.file_type().unwrap().is_dir() {
                folders.push(entry.path());
            } else {
                out.push(entry.path());
            }
        }
    }
    out.sort();
    out
}

fn relative(path: &Path) -> String {
    let path = path.strip_prefix(root()).unwrap();
    path.to_str().unwrap().replace('\\', "/")
}

/// The sources of the package: path and text.
fn sources() -> Vec<(String, String)> {
    files(&root().join("src"))
        .into_iter()
        .filter(|path| path.extension().is_some_and(|e| e == "rs"))
        .map(|path| (relative(&path), std::fs::read_to_string(&path).unwrap()))
        .collect()
}

/// The lines of a source that are no comments.
fn code(text: &str) -> String {
    text.lines()
        .filter(|line| !line.trim_start().starts_with("//"))
        .collect::<Vec<_>>()
        .join("\n")
}

/// The module a source file is: `src/a/b.rs` is `a, b`.
fn module(path: &str) -> Vec<&str> {
    let inner = path
        .strip_prefix("src/")
        .unwrap()
        .strip_suffix(".rs")
        .unwrap();
    let mut parts: Vec<&str> = inner.split('/').collect();
    if matches!(parts.last(), Some(&"mod" | &"lib" | &"main")) {
        parts.pop();
    }
    parts
}

/// The modules of this package that a source names, by `crate::…` and by enough `super::`.
fn used(path: &str, text: &str) -> BTreeSet<String> {
    let code = code(text);
    let depth = module(path).len();
    let mut out = BTreeSet::new();
    let mut note = |rest: &str| {
        let names = match rest.strip_prefix('{') {
            Some(group) => top_level(group),
            None => vec![rest],
        };
        for name in names {
            let name: String = name
                .trim_start()
                .chars()
                .take_while(|c| c.is_ascii_alphanumeric() || *c == '_')
                .collect();
            out.insert(name);
        }
    };
    for (i, found) in code.match_indices("crate::") {
        note(&code[i + found.len()..]);
    }
    let to_root = "super::".repeat(depth.max(1));
    for (i, found) in code.match_indices(&to_root) {
        let before = code[..i].ends_with("super::");
        let rest = &code[i + found.len()..];
        if !before && !rest.starts_with("super::") {
            note(rest);
        }
    }
    out
}

/// The entries of a `{…}` group whose opening brace is already read.
fn top_level(group: &str) -> Vec<&str> {
    let mut out = Vec::new();
    let (mut depth, mut start) = (0usize, 0);
    for (i, c) in group.char_indices() {
        match c {
            '{' => depth += 1,
            '}' if depth == 0 => {
                out.push(&group[start..i]);
                break;
            }
            '}' => depth -= 1,
            ',' if depth == 0 => {
                out.push(&group[start..i]);
                start = i + 1;
            }
            _ => {}
        }
    }
    out
}

#[test]
fn paths_are_read_out_of_sources() {
    let check = |path: &str, text: &str, expected: &[&str]| {
        let found = used(path, text);
        assert_eq!(
            found,
            expected.iter().map(ToString::to_string).collect(),
            "{text}"
        );
    };
    check(
        "src/mcp/wire.rs",
        "use crate::{prompt::{self, Role}, catalog};\nlet x = crate::git::MAIN;",
        &["prompt", "catalog", "git"],
    );
    check(
        "src/mcp/wire.rs",
        "use super::super::registry::Registry;\nuse super::error::X;",
        &["registry"],
    );
    check("src/mcp/mod.rs", "use super::config::Config;", &["config"]);
    check(
        "src/mcp/mod.rs",
        "//! [`crate::cli`]\n/// crate::cli\n// crate::cli",
        &[],
    );
}

/// The code map of ARCHITECTURE.md: for each module what it may use; nothing where the table does not limit it.
fn code_map() -> BTreeMap<String, Option<BTreeSet<String>>> {
    let text = std::fs::read_to_string(root().join("ARCHITECTURE.md")).unwrap();
    let mut out: BTreeMap<String, Option<BTreeSet<String>>> = BTreeMap::new();
    for line in text.lines().filter(|l| l.starts_with("| `src/")) {
        let cells: Vec<&str> = line.trim_matches('|').split('|').map(str::trim).collect();
        let [modules, _, may] = cells[..] else {
            continue;
        };
        let may: Option<BTreeSet<String>> = match may {
            "nothing" => Some(BTreeSet::new()),
            "everything" | "" => None,
            "everything but cli" => Some(BTreeSet::from(["!cli".to_owned()])),
            list => {
                let list = list.strip_prefix("→ ").unwrap_or_else(|| panic!("{line}"));
                Some(list.split(", ").map(str::to_owned).collect())
            }
        };
        for module in modules.split(", ") {
            let module = module.trim_matches('`').strip_prefix("src/").unwrap();
            let module = module.trim_end_matches('/').trim_end_matches(".rs");
            out.insert(module.to_owned(), may.clone());
        }
    }
    out
}

#[test]
fn modules_use_what_the_code_map_allows() {
    let map = code_map();
    assert!(map.len() >= 12, "{map:?}");
    let mut broken = Vec::new();
    for (path, text) in sources() {
        let Some(own) = module(&path).first().copied() else {
            continue;
        };
        let Some(may) = map.get(own) else {
            broken.push(format!("{path}: `{own}` is not in the code map"));
            continue;
        };
        for name in used(&path, &text) {
            let allowed = match may {
                None => true,
                Some(_) if name == own || !map.contains_key(&name) => true,
                Some(may) if may.contains("!cli") => name != "cli",
                Some(may) => may.contains(&name),
            };
            if !allowed {
                broken.push(format!(
                    "{path} uses `{name}`, which the code map does not allow"
                ));
            }
        }
    }
    assert_eq!(broken, Vec::<String>::new());
}

#[test]
fn the_code_map_has_no_circle_among_what_it_limits() {
    let map = code_map();
    let uses = |module: &str| {
        map.get(module)
            .and_then(Option::as_ref)
            .into_iter()
            .flatten()
    };
    for start in map.keys() {
        let mut seen = BTreeSet::new();
        let mut next: Vec<&String> = uses(start).collect();
        while let Some(module) = next.pop() {
            assert_ne!(module, start, "`{start}` reaches itself");
            if seen.insert(module) {
                next.extend(uses(module));
            }
        }
    }
}

#[test]
fn every_module_is_declared_where_it_is_named() {
    let lib = std::fs::read_to_string(root().join("src/lib.rs")).unwrap();
    let declared: BTreeSet<String> = lib
        .lines()
        .filter_map(|line| line.strip_prefix("pub mod ")?.strip_suffix(';'))
        .map(str::to_owned)
        .collect();
    let mapped: BTreeSet<String> = code_map().into_keys().collect();
    assert_eq!(declared, mapped);
}

#[test]
fn the_core_is_pure() {
    let mut broken = Vec::new();
    for (path, text) in sources() {
        let code = code(&text);
        let own = module(&path).first().copied().unwrap_or_default();
        let mut forbid = |words: &[&str], why: &str| {
            for word in words.iter().filter(|w| code.contains(**w)) {
                broken.push(format!("{path} uses {word}: {why}"));
            }
        };
        if matches!(own, "prompt" | "catalog") {
            let crates = [
                "tokio::",
                "axum::",
                "sqlx::",
                "git2::",
                "rmcp::",
                "hyper::",
                "reqwest::",
                "notify::",
            ];
            forbid(&crates, "the core takes bytes and gives values");
            let ambient = [
                "std::fs",
                "std::env",
                "std::net",
                "std::process",
                "SystemTime",
                "getrandom",
            ];
            forbid(
                &ambient,
                "the core reads no file, environment, network or clock",
            );
        }
        if own != "mcp" {
            forbid(&["rmcp::"], "mcp is the only module that knows MCP");
        }
        if own != "git" {
            forbid(
                &["git2::", "libgit2_sys"],
                "git is the only module that knows git2",
            );
        }
        if !matches!(own, "prompt" | "web") {
            forbid(
                &["tera::"],
                "prompt is the only module that knows the engine, but for the pages' own templates",
            );
        }
    }
    assert_eq!(broken, Vec::<String>::new());
}

#[test]
fn unsafe_code_stands_in_few_named_files() {
    const { assert!(UNSAFE.len() <= 2) };
    let found: Vec<String> = sources()
        .into_iter()
        .filter(|(_, text)| {
            let code = code(text);
            code.contains("unsafe {")
                || code.contains("unsafe fn")
                || code.contains("unsafe impl")
                || code.contains("allow(unsafe_code")
        })
        .map(|(path, _)| path)
        .collect();
    assert_eq!(found, UNSAFE);
    let manifest = std::fs::read_to_string(root().join("Cargo.toml")).unwrap();
    assert!(
        manifest.contains("unsafe_code = \"deny\"")
            || manifest.contains("unsafe_code = \"forbid\"")
    );
}

#[test]
fn no_source_file_is_too_long_and_nothing_is_left_to_do() {
    for (path, text) in sources() {
        let lines = text.lines().count();
        assert!(
            lines <= MAX_LINES || path.ends_with("/tests.rs"),
            "{path} has {lines} lines: split it by meaning"
        );
        let code = code(&text);
        for word in ["todo!(", "unimplemented!(", "dbg!("] {
            assert!(!code.contains(word), "{path}: {word}");
        }
        assert!(
            text.starts_with("//!") || path.ends_with("/tests.rs"),
            "{path} does not say what it owns"
        );
    }
}

#[test]
fn every_path_that_a_page_names_exists() {
    let mut checked = 0;
    for page in ["ARCHITECTURE.md", "CONTRIBUTING.md", "README.md"] {
        let text = std::fs::read_to_string(root().join(page)).unwrap();
        // code spans of prose; fenced blocks are commands of a person's own machine
        let prose: String = text
            .split("\n```")
            .step_by(2)
            .collect::<Vec<_>>()
            .join("\n");
        for span in prose.split('`').skip(1).step_by(2) {
            let first = span.split('/').next().unwrap_or_default();
            let is_path = matches!(
                first,
                "src"
                    | "tests"
                    | "docs"
                    | "benches"
                    | "templates"
                    | "fuzz"
                    | "scripts"
                    | ".ci"
                    | "web"
                    | "migrations"
            ) && span.contains('/')
                && !span.contains([' ', '<', '*', '…', '{']);
            if is_path {
                assert!(
                    root().join(span).exists(),
                    "{page} names `{span}`, which is not there"
                );
                checked += 1;
            }
        }
    }
    assert!(checked > 20, "{checked}");
    // and what links between pages lead to
    for page in ["README.md", "CONTRIBUTING.md"] {
        let text = std::fs::read_to_string(root().join(page)).unwrap();
        for link in text.split("](").skip(1) {
            let link = link.split([')', '#']).next().unwrap_or_default();
            if !link.is_empty() && !link.contains("://") {
                assert!(
                    root().join(link).exists(),
                    "{page} links to {link}, which is not there"
                );
            }
        }
    }
}

#[test]
fn nothing_names_a_place_on_the_machine_it_was_made_on() {
    // put together here, so that this file does not name them
    let places: Vec<String> = ["work", "root", "Users", "home/runner", "home/ubuntu"]
        .iter()
        .map(|place| format!("/{place}/"))
        .collect();
    for path in files(root()) {
        let Ok(text) = std::fs::read_to_string(&path) else {
            continue;
        };
        for place in &places {
            assert!(!text.contains(place), "{} names {place}", relative(&path));
        }
    }
}
