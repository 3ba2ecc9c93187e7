//! What takes a number, rule by rule.

use std::collections::BTreeMap;

use super::repository::{Files, Histories, Made};

const TRIAGE: &str = "prompts/sre/triage.md";

/// Counts a history of these trees from its first commit and step by step; the commits of a name's versions, from 0.
#[track_caller]
fn check(trees: &[&[(&str, &str)]], expected: &[(&str, &[usize])]) {
    let commits: Vec<Made> = trees
        .iter()
        .map(|files| Made {
            files: files
                .iter()
                .map(|(path, text)| ((*path).to_owned(), (*text).to_owned()))
                .collect::<Files>(),
            merge: false,
        })
        .collect();
    let made = Histories::new(&commits);
    let expected: BTreeMap<String, Vec<usize>> = expected
        .iter()
        .map(|(name, commits)| ((*name).to_owned(), commits.to_vec()))
        .collect();
    let found =
        |numbering: &cuebook::registry::numbering::Numbering| -> BTreeMap<String, Vec<usize>> {
            made.shown(&numbering.history)
                .into_iter()
                .map(|(name, versions)| (name, versions.into_iter().map(|(at, _)| at).collect()))
                .collect()
        };
    let last = made.ids.len() - 1;
    assert_eq!(found(&made.cold(last)), expected, "from the first commit");
    let mut numbering = made.cold(0);
    for id in &made.ids {
        assert!(numbering.advance(&made.repository(), id).unwrap());
    }
    assert_eq!(found(&numbering), expected, "step by step");
}

#[test]
fn an_edit_takes_the_next_number_and_so_does_a_revert() {
    check(
        &[
            &[(TRIAGE, "a")],
            &[(TRIAGE, "b")],
            &[(TRIAGE, "b"), ("resources/runbook/x.md", "r")],
            &[(TRIAGE, "a")],
        ],
        &[("triage", &[0, 1, 3])],
    );
}

#[test]
fn a_partial_gives_a_number_to_all_that_include_it() {
    let a = "{% include \"a.md\" %}";
    let through = "{% include \"b.md\" %}";
    check(
        &[
            &[
                ("prompts/x.md", a),
                ("prompts/y.md", through),
                ("prompts/z.md", "z"),
                ("partials/a.md", "1"),
                ("partials/b.md", a),
            ],
            &[
                ("prompts/x.md", a),
                ("prompts/y.md", through),
                ("prompts/z.md", "z"),
                ("partials/a.md", "2"),
                ("partials/b.md", a),
            ],
            &[
                ("prompts/x.md", a),
                ("prompts/y.md", through),
                ("prompts/z.md", "z"),
                ("partials/a.md", "2"),
                ("partials/b.md", "plain"),
            ],
            // nobody includes it any more but x
            &[
                ("prompts/x.md", a),
                ("prompts/y.md", through),
                ("prompts/z.md", "z"),
                ("partials/a.md", "3"),
                ("partials/b.md", "plain"),
            ],
        ],
        &[("x", &[0, 1, 3]), ("y", &[0, 1, 2]), ("z", &[0])],
    );
}

#[test]
fn what_does_not_parse_takes_none() {
    let include = "{% include \"a.md\" %}";
    check(
        &[
            &[
                (TRIAGE, "a"),
                ("prompts/x.md", include),
                ("partials/a.md", "1"),
            ],
            // broken, then as it was: nothing has changed
            &[
                (TRIAGE, "{% if x %}"),
                ("prompts/x.md", include),
                ("partials/a.md", "{{ x"),
            ],
            &[
                (TRIAGE, "a"),
                ("prompts/x.md", include),
                ("partials/a.md", "1"),
            ],
            // broken, then another
            &[(TRIAGE, "---\ntitle: [\n---\n"), ("prompts/x.md", include)],
            &[
                (TRIAGE, "b"),
                ("prompts/x.md", include),
                ("partials/a.md", "2"),
            ],
        ],
        &[("triage", &[0, 4]), ("x", &[0, 4])],
    );
}

#[test]
fn a_prompt_that_returns_goes_on() {
    check(
        &[
            &[(TRIAGE, "a")],
            &[],
            &[(TRIAGE, "a")],
            &[],
            &[(TRIAGE, "{{")],
            &[(TRIAGE, "a")],
        ],
        &[("triage", &[0, 2, 5])],
    );
}

#[test]
fn a_move_takes_no_number_and_a_rename_goes_on() {
    check(
        &[
            &[("prompts/a.md", "1")],
            &[("prompts/a.md", "2")],
            &[("prompts/sre/a.md", "2")],
            &[("prompts/sre/b.md", "2")],
            &[("prompts/sre/b.md", "3")],
            // a new one of the old name goes on after the old one's last
            &[("prompts/sre/b.md", "3"), ("prompts/a.md", "new")],
            // a copy is no rename, nor is a file of other bytes
            &[
                ("prompts/sre/b.md", "3"),
                ("prompts/a.md", "new"),
                ("prompts/c.md", "3"),
            ],
            &[
                ("prompts/sre/b.md", "3"),
                ("prompts/d.md", "newer"),
                ("prompts/c.md", "3"),
            ],
        ],
        &[
            ("a", &[0, 1, 5]),
            ("b", &[0, 1, 4]),
            ("c", &[6]),
            ("d", &[7]),
        ],
    );
}

#[test]
fn a_rename_back_counts_on_because_numbers_are_never_given_twice() {
    check(
        &[
            &[("prompts/a.md", "1")],
            &[("prompts/b.md", "1")],
            &[("prompts/a.md", "1")],
            &[("prompts/a.md", "2")],
        ],
        &[("a", &[0, 2, 3]), ("b", &[0])],
    );
}

#[test]
fn two_files_of_one_name_take_none() {
    check(
        &[
            &[("prompts/a.md", "1")],
            &[("prompts/a.md", "1"), ("prompts/x/a.md", "2")],
            &[("prompts/x/a.md", "2")],
        ],
        &[("a", &[0, 2])],
    );
}

#[test]
fn only_first_parents_count() {
    let files = |text: &str| -> Files { [(TRIAGE.to_owned(), text.to_owned())].into() };
    let made = Histories::new(&[
        Made {
            files: files("1"),
            merge: false,
        },
        Made {
            files: files("2"),
            merge: true,
        },
        Made {
            files: files("2"),
            merge: true,
        },
    ]);
    let shown = made.shown(&made.cold(2).history);
    assert_eq!(
        shown,
        [(
            "triage".to_owned(),
            vec![(0, TRIAGE.to_owned()), (1, TRIAGE.to_owned())]
        )]
        .into()
    );
}

#[test]
fn odd_messages_and_links_do_not_disturb_the_reading() {
    let library = crate::support::library::TestLibrary::empty();
    let fake = format!(
        "one\u{3}\u{2}\n\n:000000 100644 {} {} A",
        "0".repeat(40),
        "1".repeat(40)
    );
    library.write_bytes("prompts/a.md", b"1");
    library.commit(&fake);
    library.commit(&fake);
    std::os::unix::fs::symlink("a.md", library.clone().join("prompts/b.md")).unwrap();
    library.write_bytes("prompts/c.md", b"\xff");
    library.commit("\u{1}two");
    library.remove("prompts/b.md");
    library.write_bytes("prompts/b.md", b"file");
    let tip = library.commit("three");
    library.push();
    let repository = cuebook::git::Repository::open(&library.bare()).unwrap();
    let progress = cuebook::registry::numbering::Progress::default();
    let cold = cuebook::registry::numbering::Numbering::cold(&repository, &tip, &progress).unwrap();
    let numbers: BTreeMap<&str, u64> = cold
        .history
        .names()
        .map(|(name, n)| (&**name, n.latest()))
        .collect();
    assert_eq!(numbers, [("a", 1), ("b", 1)].into());
    assert_eq!(progress.get(), (4, 4));
    let subjects: Vec<&str> = cold
        .history
        .names()
        .flat_map(|(_, n)| &n.versions)
        .map(|v| &*v.commit.subject)
        .collect();
    assert!(subjects.contains(&"one\u{3}\u{2}"), "{subjects:?}");
    // the process and the comparison of trees say the same of a commit
    let all: Vec<_> = repository
        .first_parents(&tip, None)
        .unwrap()
        .map(Result::unwrap)
        .collect();
    let root = cuebook::prompt::parse::hex(&all[0].id);
    let few = repository
        .few_first_parents(&tip, &root, 10)
        .unwrap()
        .unwrap();
    assert_eq!(all[1..], few[..]);
    assert_eq!(repository.few_first_parents(&tip, &root, 2).unwrap(), None);
}

#[test]
fn commits_that_are_not_utf8_are_the_same_in_both_ways() {
    let library = crate::support::library::TestLibrary::empty();
    library.write_bytes("prompts/a.md", b"0");
    library.commit("root");
    // as git writes them for i18n.commitEncoding, and names that it keeps and libgit2 trims, or the other way
    let heads: [(&[u8], &[u8], &[u8]); 4] = [
        (
            b"\xc8\xab\xb1\xe6\xb5\xbf",
            b"encoding EUC-KR\n",
            b"\xb0\xe1\xc1\xa6",
        ),
        (b"Jos\xe9", b"encoding ISO-8859-1\n", b"caf\xe9"),
        (b"  odd \t", b"", b"\n\n  blanks first \n"),
        (b"Jos\xe9", b"", b"\x01\x02\x03\xff"),
    ];
    let clone = library.clone();
    let at = |arguments: &[&str]| {
        crate::support::library::git(&clone, arguments)
            .trim()
            .to_owned()
    };
    for (i, (author, encoding, message)) in heads.iter().enumerate() {
        library.write_bytes("prompts/a.md", i.to_string().as_bytes());
        at(&["add", "--all"]);
        let mut object = format!(
            "tree {}\nparent {}\nauthor ",
            at(&["write-tree"]),
            at(&["rev-parse", "HEAD"])
        )
        .into_bytes();
        object.extend_from_slice(author);
        object.extend_from_slice(b" <a@x> 1700000000 +0900\ncommitter C <c@x> 1700000001 +0900\n");
        object.extend_from_slice(encoding);
        object.push(b'\n');
        object.extend_from_slice(message);
        let file = clone.join(".git/object");
        std::fs::write(&file, object).unwrap();
        let id = at(&[
            "hash-object",
            "-t",
            "commit",
            "-w",
            "--literally",
            ".git/object",
        ]);
        at(&["update-ref", "HEAD", &id]);
    }
    library.push();
    let repository = cuebook::git::Repository::open(&library.bare()).unwrap();
    let tip = at(&["rev-parse", "HEAD"]);
    let all: Vec<_> = repository
        .first_parents(&tip, None)
        .unwrap()
        .map(Result::unwrap)
        .collect();
    let root = cuebook::prompt::parse::hex(&all[0].id);
    let few = repository
        .few_first_parents(&tip, &root, 10)
        .unwrap()
        .unwrap();
    assert_eq!(all[1..], few[..]);
    assert_eq!(all.len(), 5);
    let said = |i: usize| (&*all[i].author, &*all[i].subject, all[i].seconds);
    assert_eq!(said(3), ("odd", "blanks first", 1_700_000_001));
    assert_eq!(said(2).1, "caf\u{fffd}");
}
