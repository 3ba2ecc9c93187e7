//! A catalog made from another one and a change equals one that is built from nothing, whatever the change.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write as _;

use cuebook::catalog::{Catalog, Difference, Lookup, Revision, Update, examples, update};
use cuebook::git::Repository;
use cuebook::prompt::Limits;
use cuebook::registry::source::CommitTree;
use proptest::prelude::*;
use proptest::test_runner::Config;

use super::*;

/// Paths, few enough that files often want the same name.
const PATHS: &[&str] = &[
    "prompts/one.md",
    "prompts/two.md",
    "prompts/a/two.md",
    "prompts/a/two-x.md",
    "prompts/a/b/two_x.md",
    "prompts/a/b/three.md",
    "prompts/a-b/four.md",
    "prompts/a/Bad Name.md",
    "prompts/five.md/inner.md",
    "prompts/five.md",
    "prompts/a/README.md",
    "prompts/a/stray.txt",
    "partials/rubric.md",
    "partials/opt.md",
    "partials/caf\u{e9}.md",
    "partials/cafe\u{301}.md",
    "resources/runbook/pay.md",
    "resources/runbook/pay.txt",
    "resources/runbook/Pay.md",
    "resources/runbook/pay",
    "resources/runbook/search.md",
    "resources/runbook/deep/pay.md",
    "resources/style/guide.md",
    "resources/image/dot.png",
    "resources/lost.md",
    "values/langs.txt",
    "values/caf\u{e9}.txt",
    "values/cafe\u{301}.txt",
    "labels.toml",
    "cuebook.toml",
    "README.md",
    "docs/x.md",
];

/// Contents that make sense somewhere, and elsewhere are a fault.
const CONTENTS: &[&str] = &[
    "---\ndescription: D\n---\nplain",
    "---\ndescription: D\n---\nanother",
    "---\ndescription: D\n---\n{% include \"rubric.md\" %} text",
    "---\ndescription: D\n---\n{% include \"opt.md\" %} and {% include \"rubric.md\" %}",
    "---\ndescription: D\n---\n{% include \"caf\u{e9}.md\" %}",
    "---\ndescription: D\narguments: [{ name: x, values: { resource: \"runbook://{s}\" } }]\nresources: [{ name: r, uri: \"runbook://{{ x }}\", required: false }]\n---\nhelp {{ x }}",
    "---\ndescription: D\narguments: [{ name: x }]\nresources: [{ name: r, uri: \"runbook://{{ x }}\", as: text }]\nexamples: [{ name: e, arguments: { x: pay }, expect: [PAY] }]\n---\nhelp {{ x }}",
    "---\ndescription: D\nresources: [{ name: r, uri: \"runbook://pay\" }]\n---\nfollow",
    "---\ndescription: D\nresources: [{ name: r, uri: \"style://guide\", as: text }, { name: s, uri: \"runbook://search\", required: false }]\n---\nstyle",
    "---\ndescription: D\narguments: [{ name: x, required: true }]\nresources: [{ name: r, uri: \"{{ x }}\", required: false }]\n---\nany {{ x }}",
    "---\ndescription: D\narguments: [{ name: x, values: { file: langs.txt } }, { name: y, required: true }]\n---\n{{ x }} {{ y }}",
    "---\ndescription: D\narguments: [{ name: x, values: { resource: \"style://{s}\" } }]\n---\n{{ x }} !`ls`",
    "---\ndescription: D\n---\n{{ nope }}",
    "---\ndescription: D\n---\n{% if %}",
    "---\nwrong: D\n---\nx",
    "rubric text",
    "rubric of another kind",
    "short rubric",
    "rubric {% include \"opt.md\" %}",
    "rubric {% include \"rubric.md\" %}",
    "rubric {{ x }}",
    "{% if x %}",
    "PAY",
    "pay and more",
    "rust\tThe language\tsystems\ngo\n",
    "a\tb\tc\td\n",
    "",
    "format = 1\ntitle = \"T\"\n[[resource]]\ntemplate = \"runbook://{service}\"\ntitle = \"R\"\n",
    "title = \"Other\"\n[[resource]]\ntemplate = \"style://{which}\"\n",
    "titel = 1",
    "[production]\none = \"v1\"\ntwo = \"v2\"\n",
    "[production]\none = \"v1\"\n",
    "[production]\ntwo-x = \"v1\"\n[staging]\nthree = \"v3\"\n",
    "\u{0}binary",
];

/// Where every history begins: what is good, path and content.
const BASE: &[(&str, usize)] = &[
    ("prompts/one.md", 2),
    ("prompts/two.md", 3),
    ("prompts/a-b/four.md", 5),
    ("prompts/a/b/three.md", 7),
    ("prompts/five.md", 10),
    ("prompts/a/two-x.md", 9),
    ("partials/rubric.md", 15),
    ("partials/opt.md", 16),
    ("resources/runbook/pay.md", 22),
    ("resources/runbook/search.md", 23),
    ("resources/style/guide.md", 23),
    ("values/langs.txt", 24),
    ("labels.toml", 31),
    ("cuebook.toml", 27),
];

/// One step of a history: files written, removed, or made a link.
#[derive(Debug, Clone)]
enum Edit {
    Write(usize, usize),
    Remove(usize),
    Move(usize, usize),
    Link(usize),
    Module(usize),
    /// A path that is no text.
    Odd(bool, usize),
}

fn edit() -> impl Strategy<Value = Edit> {
    let path = 0..PATHS.len();
    let content = 0..CONTENTS.len();
    prop_oneof![
        12 => (path.clone(), content.clone()).prop_map(|(p, c)| Edit::Write(p, c)),
        4 => path.clone().prop_map(Edit::Remove),
        3 => (path.clone(), path.clone()).prop_map(|(a, b)| Edit::Move(a, b)),
        1 => path.clone().prop_map(Edit::Link),
        1 => path.prop_map(Edit::Module),
        1 => (any::<bool>(), content).prop_map(|(there, c)| Edit::Odd(there, c)),
    ]
}

/// A content that suits a path, most of the time: else nothing would ever be good.
fn suiting(path: usize, content: usize) -> usize {
    let range = match PATHS[path].split('/').next().unwrap_or_default() {
        "prompts" => 0..15,
        "partials" => 15..22,
        "resources" => 22..24,
        "values" => 24..26,
        "labels.toml" => 30..33,
        "cuebook.toml" => 27..30,
        _ => 0..CONTENTS.len(),
    };
    if content.is_multiple_of(7) {
        content
    } else {
        range.start + content % range.len()
    }
}

/// Writes a history with one `git fast-import` and gives its commits, oldest first.
fn history(library: &TestLibrary, steps: &[Vec<Edit>]) -> Vec<String> {
    let mut stream = String::new();
    let mut files: BTreeMap<usize, usize> = BTreeMap::new();
    for (i, content) in CONTENTS.iter().enumerate() {
        let _ = write!(
            stream,
            "blob\nmark :{}\ndata {}\n{content}\n",
            i + 1,
            content.len()
        );
    }
    for (i, step) in steps.iter().enumerate() {
        let _ = write!(
            stream,
            "commit refs/heads/main\nmark :{}\ncommitter T <t@localhost> {} +0000\ndata 1\nx\n",
            1000 + i,
            1_700_000_000 + i
        );
        if i > 0 {
            let _ = writeln!(stream, "from :{}", 999 + i);
        } else {
            for (path, content) in BASE {
                let at = PATHS.iter().position(|p| p == path).unwrap();
                files.insert(at, *content);
                let _ = writeln!(stream, "M 100644 :{} {path}", content + 1);
            }
        }
        for edit in step {
            match *edit {
                Edit::Write(path, content) => {
                    let content = suiting(path, content);
                    files.insert(path, content);
                    let _ = writeln!(stream, "M 100644 :{} {}", content + 1, PATHS[path]);
                }
                Edit::Remove(path) => {
                    files.remove(&path);
                    let _ = writeln!(stream, "D {}", PATHS[path]);
                }
                Edit::Move(from, to) => {
                    if let Some(content) = files.remove(&from) {
                        files.insert(to, content);
                        let _ = writeln!(stream, "D {}", PATHS[from]);
                        let _ = writeln!(stream, "M 100755 :{} {}", content + 1, PATHS[to]);
                    }
                }
                Edit::Link(path) => {
                    files.remove(&path);
                    let _ = writeln!(stream, "M 120000 :1 {}", PATHS[path]);
                }
                Edit::Module(path) => {
                    files.remove(&path);
                    let _ = writeln!(stream, "M 160000 {} {}", "1".repeat(40), PATHS[path]);
                }
                Edit::Odd(there, content) => {
                    let path = format!("\"prompts/a/\\37{}.md\"", content % 2);
                    let _ = if there {
                        writeln!(stream, "M 100644 :{} {path}", content + 1)
                    } else {
                        writeln!(stream, "D {path}")
                    };
                }
            }
        }
        stream.push('\n');
    }
    git_with(
        &library.bare(),
        &["fast-import", "--quiet"],
        stream.as_bytes(),
    );
    let commits = git(&library.bare(), &["rev-list", "--reverse", "main"]);
    commits.lines().map(str::to_owned).collect()
}

/// Everything that can be asked of a catalog.
fn facts(catalog: &Catalog) -> Vec<String> {
    let mut out = vec![
        format!("{:?} {:?}", catalog.revision(), catalog.title()),
        format!("{:?} {}", catalog.is_clean(), catalog.warning_count()),
    ];
    let folders = ["", "a", "a/b", "a-b", "five.md", "nowhere"];
    for folder in folders {
        let listed = catalog.list(Some(folder));
        let names: Vec<&str> = listed.iter().map(|p| p.name.as_str()).collect();
        out.push(format!("{folder}: {names:?} {}", listed.len()));
        out.push(format!("{:?}", catalog.suggest("tow", Some(folder))));
    }
    for prompt in catalog.list(None) {
        assert!(Arc::ptr_eq(
            prompt,
            catalog.prompt(prompt.name.as_str()).unwrap()
        ));
        out.push(format!(
            "{} {} {} {} {} {:?}",
            prompt.path,
            prompt.sha256,
            prompt.list_hash,
            prompt.closure_hash,
            catalog.render_hash(prompt),
            prompt
                .partials
                .iter()
                .map(|p| (&p.name, &p.sha256))
                .collect::<Vec<_>>(),
        ));
        for argument in &prompt.arguments {
            for typed in ["", "p", "S"] {
                let found = catalog.complete(prompt, &argument.name, typed, &BTreeMap::new(), &[]);
                out.push(format!("{} {typed}: {found:?}", argument.name));
            }
        }
    }
    for resource in catalog.resources() {
        out.push(format!(
            "{} {} {} {} {}",
            resource.uri, resource.long_uri, resource.path, resource.mime_type, resource.sha256
        ));
    }
    for uri in [
        "runbook://pay",
        "runbook://PAY.md",
        "runbook://pay.txt",
        "style://guide",
        "runbook://deep/pay",
        "image://dot",
    ] {
        let found = match catalog.resource(uri) {
            Lookup::Found(resource) => resource.path.to_string(),
            other => format!("{other:?} {:?}", catalog.near(uri)),
        };
        out.push(format!("{uri}: {found}"));
    }
    for family in catalog.families() {
        let variable = family.parsed.variables().next().unwrap();
        let found = catalog.complete_uri(&family.template, variable, "", &BTreeMap::new());
        out.push(format!("{}: {found:?}", family.template));
    }
    out.extend(catalog.problems().iter().map(|p| format!("{p:?}")));
    out
}

/// Folders that are told of a difference.
fn told(difference: &Difference) -> BTreeSet<String> {
    let changed = difference
        .prompts
        .values()
        .filter(|c| c.lists() || c.renders());
    changed
        .flat_map(|c| c.before.iter().chain(&c.after))
        .map(|prompt| &prompt.folder)
        .chain(&difference.reached)
        .map(ToString::to_string)
        .collect()
}

fn make(repository: &Repository, commit: &str, previous: Option<&Catalog>) -> Update {
    let tree = CommitTree::open(repository, commit).unwrap();
    let revision = Revision::Commit(commit.into());
    update(
        &tree,
        revision,
        &Limits::default(),
        previous,
        &examples::run,
    )
    .unwrap()
}

fn check(steps: &[Vec<Edit>], jumps: &[usize]) -> Result<(), TestCaseError> {
    let library = TestLibrary::empty();
    let commits = history(&library, steps);
    let repository = Repository::open(&library.bare()).unwrap();
    let cold: Vec<Catalog> = commits
        .iter()
        .map(|commit| make(&repository, commit, None).catalog)
        .collect();
    // forward through the history, then here and there
    let order = (0..commits.len()).chain(jumps.iter().map(|jump| jump % commits.len()));
    let mut served: Option<Catalog> = None;
    for i in order {
        let made = make(&repository, &commits[i], served.as_ref());
        prop_assert_eq!(facts(&made.catalog), facts(&cold[i]));
        if let Some(served) = &served {
            let whole = Difference::between(served, &made.catalog);
            prop_assert_eq!(told(&made.difference), told(&whole));
            prop_assert_eq!(&made.difference.prompts, &whole.prompts);
            prop_assert_eq!(&made.difference.resources, &whole.resources);
            prop_assert_eq!(made.difference.resources_list, whole.resources_list);
        }
        served = Some(made.catalog);
    }
    Ok(())
}

proptest! {
    #![proptest_config(Config { cases: 24, failure_persistence: None, ..Config::default() })]

    #[test]
    fn a_change_gives_what_a_build_from_nothing_gives(
        steps in prop::collection::vec(prop::collection::vec(edit(), 1..5), 1..16),
        jumps in prop::collection::vec(0usize..100, 0..8),
    ) {
        let steps: Vec<Vec<Edit>> = std::iter::once(Vec::new()).chain(steps).collect();
        check(&steps, &jumps)?;
    }
}

#[test]
fn trees_are_compared_as_git_compares_them() {
    let library = TestLibrary::with(&[
        ("a/b.md", "1"),
        ("a.md", "1"),
        ("a-b.md", "1"),
        ("x/y/z.md", "1"),
        ("same/deep/er.md", "1"),
    ]);
    let first = tip(&library);
    for path in ["a/b.md", "x/y/z.md"] {
        library.remove(path);
    }
    for folder in ["a", "x/y", "x"] {
        std::fs::remove_dir(library.clone().join(folder)).unwrap();
    }
    // a folder becomes a file, a file a folder
    let second = library.publish(&[("a", "2"), ("x", "1"), ("a0.md", "1"), ("same/new.md", "3")]);
    let repository = Repository::open(&library.bare()).unwrap();
    let compare = |old: &str, new: &str| -> Vec<String> {
        let changes = repository.blobs().unwrap().changes(old, new).unwrap();
        let mut lines: Vec<String> = changes
            .iter()
            .map(|change| {
                let letter = match (&change.before, &change.after) {
                    (Some(_), Some(_)) => 'M',
                    (None, _) => 'A',
                    (_, None) => 'D',
                };
                let entry = change.after.as_ref().or(change.before.as_ref()).unwrap();
                format!("{letter}\t{}", String::from_utf8_lossy(&entry.path))
            })
            .collect();
        lines.sort();
        lines
    };
    let by_git = |old: &str, new: &str| -> Vec<String> {
        let out = git(
            &library.bare(),
            &["diff-tree", "-r", "--no-renames", "--name-status", old, new],
        );
        let mut lines: Vec<String> = out.lines().map(str::to_owned).collect();
        lines.sort();
        lines
    };
    assert_eq!(compare(&first, &second), by_git(&first, &second));
    assert_eq!(compare(&second, &first), by_git(&second, &first));
    assert!(compare(&first, &second).len() >= 6);
    assert_eq!(compare(&first, &first), Vec::<String>::new());
}
