//! Trees that no checkout makes: links, submodules, `..`, names in other scripts and cases.

use unicode_normalization::UnicodeNormalization;

use super::*;

const GOOD: &str = "---\ndescription: D\n---\ngood";

/// A commit on main of an empty repository with these entries in one folder: mode, kind, object, name.
struct Trees {
    library: TestLibrary,
}

impl Trees {
    fn new() -> Self {
        Self {
            library: TestLibrary::empty(),
        }
    }

    fn blob(&self, bytes: &[u8]) -> String {
        git_with(
            &self.library.bare(),
            &["hash-object", "-w", "--stdin"],
            bytes,
        )
    }

    /// A tree object written byte by byte: names are taken as they are.
    fn tree(&self, entries: &[(&str, &[u8], &str)]) -> String {
        let mut bytes = Vec::new();
        for (mode, name, id) in entries {
            bytes.extend_from_slice(mode.as_bytes());
            bytes.push(b' ');
            bytes.extend_from_slice(name);
            bytes.push(0);
            bytes.extend(
                (0..id.len())
                    .step_by(2)
                    .map(|i| u8::from_str_radix(&id[i..i + 2], 16).unwrap()),
            );
        }
        git_with(
            &self.library.bare(),
            &["hash-object", "-t", "tree", "-w", "--literally", "--stdin"],
            &bytes,
        )
    }

    /// Points main at a commit of this tree.
    fn commit(&self, tree: &str) -> String {
        let bare = self.library.bare();
        let id = git_with(&bare, &["commit-tree", tree, "-m", "odd"], b"");
        git(&bare, &["update-ref", "refs/heads/main", &id]);
        id
    }

    /// What is served of a library whose `prompts/` holds `good.md` and these entries, and what is wrong with it.
    fn served(&self, entries: &[(&str, &[u8], &str)]) -> (Vec<String>, Vec<String>) {
        let good = self.blob(GOOD.as_bytes());
        let mut all = entries.to_vec();
        all.push(("100644", b"good.md", &good));
        let prompts = self.tree(&all);
        let root = self.tree(&[("40000", b"prompts", &prompts)]);
        self.commit(&root);
        self.check()
    }

    fn check(&self) -> (Vec<String>, Vec<String>) {
        let registry = open(&self.library.bare(), owner());
        let snapshot = registry.snapshot();
        (texts(&snapshot), snapshot.status.tip_problems.clone())
    }
}

#[test]
fn v10_links_and_submodules_in_a_commit_are_problems_and_never_followed() {
    let trees = Trees::new();
    let check = |entry: (&str, &[u8], &str), problem: &str| {
        let (texts, problems) = trees.served(&[entry]);
        assert_eq!(texts, ["good: good"]);
        assert_eq!(problems, [problem]);
    };
    let passwd = trees.blob(b"/etc/passwd");
    let good = trees.blob(b"good.md");
    let commit = {
        trees.served(&[]);
        tip(&trees.library)
    };
    check(
        ("120000", b"bad.md", &passwd),
        "prompts/bad.md: symbolic links are not followed",
    );
    check(
        ("120000", b"bad.md", &good),
        "prompts/bad.md: symbolic links are not followed",
    );
    check(
        ("120000", b"a-folder", &passwd),
        "prompts/a-folder: symbolic links are not followed",
    );
    check(
        ("160000", b"module", &commit),
        "prompts/module: submodules are not read",
    );
    check(
        (
            "160000",
            b"bad.md",
            "0123456789012345678901234567890123456789",
        ),
        "prompts/bad.md: submodules are not read",
    );
}

#[test]
fn v10_names_that_could_lead_out_are_problems() {
    let trees = Trees::new();
    let blob = trees.blob(prompt("evil").as_bytes());
    let inner = trees.tree(&[("100644", b"evil.md", &blob)]);
    for name in [&b".."[..], b".", b".git", b".GIT", b"a\\b", b"\xff\xfe"] {
        for (mode, id, shown) in [("40000", &inner, true), ("100644", &blob, false)] {
            let (texts, problems) = trees.served(&[(mode, name, id)]);
            assert_eq!(texts, ["good: good"], "{name:?}");
            // a plain file that is no prompt is not read at all
            let name = String::from_utf8_lossy(name);
            if shown {
                assert_eq!(problems.len(), 1, "{name}: {problems:?}");
                assert!(problems[0].starts_with("prompts/"), "{name}: {problems:?}");
            }
        }
    }
    // at the root, where `..` would be the folder above the library
    for name in [&b".."[..], b".git"] {
        let evil = trees.tree(&[("100644", b"evil.md", &blob)]);
        let root = trees.tree(&[("40000", name, &evil)]);
        trees.commit(&root);
        let (texts, problems) = trees.check();
        assert_eq!(
            (texts.len(), problems.len()),
            (0, 1),
            "{name:?}: {problems:?}"
        );
    }
}

#[test]
fn names_in_another_case_or_unicode_form() {
    let trees = Trees::new();
    let one = trees.blob(prompt("one").as_bytes());
    let (texts, problems) =
        trees.served(&[("100644", b"CASE.md", &one), ("100644", b"case.md", &one)]);
    assert_eq!(texts, ["case: one", "good: good"]);
    assert_eq!(problems.len(), 1);
    assert!(
        problems[0].starts_with("prompts/CASE.md: `CASE` is not a prompt name"),
        "{problems:?}"
    );

    let folder = trees.tree(&[("100644", b"two.md", &one)]);
    let other = trees.tree(&[("100644", b"three.md", &one)]);
    let (texts, problems) = trees.served(&[("40000", b"SRE", &folder), ("40000", b"sre", &other)]);
    assert_eq!(texts, ["good: good", "three: one"]);
    assert!(problems[0].contains("folder `SRE`"), "{problems:?}");

    let nfd: String = "결제".nfd().collect();
    let library = TestLibrary::empty();
    library.write_bytes(&format!("resources/runbook/{nfd}.md"), b"runbook");
    library.write_bytes(&format!("values/{nfd}.txt"), "결제\n".as_bytes());
    library.write_bytes(&format!("partials/{nfd}.md"), b"partial");
    library.publish(&[(
        "prompts/a/one.md",
        "---\ndescription: D\narguments: [{ name: x, values: { file: \"결제.txt\" } }]\nresources: [{ name: r, uri: \"runbook://결제\", required: true }]\n---\n{{ x }} {% include \"결제.md\" %} ",
    )]);
    let registry = open(&library.bare(), owner());
    let snapshot = registry.snapshot();
    assert_eq!(snapshot.status.tip_problems, Vec::<String>::new());
    assert_eq!(super::texts(&snapshot), ["one: X partial [runbook]"]);
    assert_eq!(
        &*snapshot.catalog.resources().first().unwrap().uri,
        "runbook://%EA%B2%B0%EC%A0%9C"
    );
}

#[test]
fn an_executable_file_is_a_file_and_a_very_deep_one_is_not_read() {
    let trees = Trees::new();
    let blob = trees.blob(prompt("x").as_bytes());
    let (texts, problems) = trees.served(&[("100755", b"one.md", &blob)]);
    assert_eq!(
        (texts, problems),
        (vec!["good: good".into(), "one: x".into()], vec![])
    );

    let mut tree = trees.tree(&[("100644", b"deep.md", &blob)]);
    for _ in 0..200 {
        tree = trees.tree(&[("40000", b"a", &tree)]);
    }
    let (texts, problems) = trees.served(&[("40000", b"a", &tree)]);
    assert_eq!(texts, ["good: good"]);
    assert_eq!(
        problems.len(),
        1,
        "it is told that it is not read: {problems:?}"
    );
}

#[test]
fn an_lfs_pointer_in_a_commit_is_a_problem() {
    let pointer = "version https://git-lfs.github.com/spec/v1\noid sha256:4d7a214614ab2935c943f9e0ff69d22eadbb8f32b1258daaa5e2ca24d17e2393\nsize 12345\n";
    let library = TestLibrary::with(&[
        ("prompts/a/good.md", GOOD),
        ("prompts/a/big.md", pointer),
        ("resources/image/big.png", pointer),
    ]);
    let registry = open(&library.bare(), owner());
    let snapshot = registry.snapshot();
    assert_eq!(texts(&snapshot), ["good: good"]);
    assert_eq!(
        snapshot.status.tip_problems,
        [
            "prompts/a/big.md: this is a Git LFS pointer, not the content itself",
            "resources/image/big.png: this is a Git LFS pointer, not the content itself"
        ]
    );
}

#[cfg(unix)]
#[test]
fn v10_a_work_tree_is_checked_as_its_commit_is() {
    use std::os::unix::fs::symlink;

    let library = TestLibrary::empty();
    let clone = library.clone();
    library.write_bytes("prompts/a/good.md", GOOD.as_bytes());
    library.write_bytes("secret.md", b"SECRET");
    library.write_bytes("docs/notes.md", b"notes");
    for folder in ["partials", "resources/doc", "values"] {
        std::fs::create_dir_all(clone.join(folder)).unwrap();
    }
    symlink("/etc/passwd", clone.join("prompts/a/passwd.md")).unwrap();
    symlink("../../secret.md", clone.join("prompts/a/inside.md")).unwrap();
    symlink("/etc", clone.join("prompts/etc")).unwrap();
    symlink("nowhere", clone.join("partials/p.md")).unwrap();
    symlink("../../secret.md", clone.join("resources/doc/secret.md")).unwrap();
    symlink("/etc/hostname", clone.join("values/v.txt")).unwrap();
    symlink("/etc/hostname", clone.join("labels.toml")).unwrap();
    // where nothing is read, a link is nobody's problem
    symlink("secret.md", clone.join("CLAUDE.md")).unwrap();
    symlink("/etc", clone.join("docs/etc")).unwrap();
    library.commit("links");
    library.push();

    let expected = [
        "labels.toml: symbolic links are not followed",
        "partials/p.md: symbolic links are not followed",
        "prompts/a/inside.md: symbolic links are not followed",
        "prompts/a/passwd.md: symbolic links are not followed",
        "prompts/etc: symbolic links are not followed",
        "resources/doc/secret.md: symbolic links are not followed",
        "values/v.txt: symbolic links are not followed",
    ];
    for path in [library.bare(), clone] {
        let registry = open(&path, Settings::default());
        let snapshot = registry.snapshot();
        assert_eq!(snapshot.status.tip_problems, expected, "{}", path.display());
        assert_eq!(texts(&snapshot), ["good: good"]);
        assert!(snapshot.catalog.resources().is_empty());
    }
}

#[test]
fn a_repository_inside_a_work_tree_is_a_submodule() {
    let library = TestLibrary::empty();
    library.write_bytes("prompts/a/good.md", GOOD.as_bytes());
    library.write_bytes("prompts/inner/evil.md", prompt("evil").as_bytes());
    git(&library.clone().join("prompts/inner"), &["init", "--quiet"]);
    let registry = open(&library.clone(), Settings::default());
    let snapshot = registry.snapshot();
    assert_eq!(texts(&snapshot), ["good: good"]);
    assert_eq!(
        snapshot.status.tip_problems,
        ["prompts/inner: submodules are not read"]
    );
}

/// The problems of a library as lines.
fn problems(tree: &dyn cuebook::catalog::Tree) -> Vec<String> {
    use cuebook::catalog::Revision;
    use cuebook::catalog::build::build_and_run;
    let built = build_and_run(
        tree,
        Revision::WorkTree,
        &cuebook::prompt::Limits::default(),
        None,
    )
    .unwrap();
    built
        .problems
        .iter()
        .filter(|p| p.code == "file-size")
        .map(|p| format!("{}: {}", p.path, p.message))
        .collect()
}

const LARGE: [&str; 6] = [
    "cuebook.toml",
    "labels.toml",
    "partials/p.md",
    "prompts/a/large.md",
    "resources/doc/large.bin",
    "values/v.txt",
];

/// What is told of [`LARGE`] when each has this size.
fn told(size: u64) -> Vec<String> {
    let limits = [
        "65536 are read (prompt_file_bytes)",
        "65536 are read (prompt_file_bytes)",
        "65536 are read (prompt_file_bytes)",
        "65536 are read (prompt_file_bytes)",
        "1048576 are served (resource_file_bytes)",
        "16777216 are read (values_file_bytes)",
    ];
    LARGE
        .iter()
        .zip(limits)
        .map(|(path, limit)| format!("{path}: the file is {size} bytes; at most {limit}"))
        .collect()
}

/// A tree of large files that cannot be read.
struct Unreadable;

impl cuebook::catalog::Tree for Unreadable {
    fn entries(&self) -> std::io::Result<Vec<cuebook::catalog::Entry>> {
        let entry = |path: &&str| cuebook::catalog::Entry {
            path: (*path).into(),
            id: [1; 20],
            kind: cuebook::catalog::EntryKind::File,
            size: Some(700_000_000),
        };
        Ok(LARGE.iter().map(entry).collect())
    }

    fn read(&self, entry: &cuebook::catalog::Entry) -> std::io::Result<Vec<u8>> {
        panic!("{} is read", entry.path)
    }
}

#[test]
fn a_file_over_its_limit_is_refused_without_being_read() {
    assert_eq!(problems(&Unreadable), told(700_000_000));

    // sparse files: reading them would take 6 GB
    let folder = tempfile::tempdir().unwrap();
    for path in LARGE {
        let path = folder.path().join(path);
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        std::fs::File::create(path)
            .unwrap()
            .set_len(1_000_000_007)
            .unwrap();
    }
    let tree = cuebook::registry::source::WorkTree::open(folder.path()).unwrap();
    assert_eq!(problems(&tree), told(1_000_000_007));

    // in a repository the size comes from the object's header, loose or packed
    let library = TestLibrary::empty();
    let bytes = vec![b'x'; 17_000_000];
    for path in LARGE {
        library.write_bytes(path, &bytes);
    }
    library.commit("large");
    library.push();
    let repository = cuebook::git::Repository::open(&library.bare()).unwrap();
    for packed in [false, true] {
        if packed {
            git(&library.bare(), &["repack", "-a", "-d", "--quiet"]);
        }
        let tree =
            cuebook::registry::source::CommitTree::open(&repository, &tip(&library)).unwrap();
        assert_eq!(problems(&tree), told(17_000_000));
    }
}
