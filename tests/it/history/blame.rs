//! Which version each line of a prompt is from: through edits, renames, other line ends, and after it was gone.

use cuebook::versions::blame::blame;

use super::repository::{Files, Histories, Made};

/// The versions that the lines of `a` are from at the end of a history of these files; `0` is none.
fn from(trees: &[&[(&str, &str)]], sees: impl Fn(&str) -> bool) -> Vec<u64> {
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
    let numbering = made.cold(made.ids.len() - 1);
    let numbered = numbering.history.of("a").unwrap();
    let found = blame(&made.repository(), numbered, numbered.latest(), sees).unwrap();
    assert_eq!(found.lines.len(), found.from.len());
    found
        .from
        .into_iter()
        .map(|from| from.unwrap_or(0))
        .collect()
}

const A: &str = "prompts/a.md";

#[test]
fn a_line_is_of_the_version_that_changed_it_last() {
    let trees: &[&[(&str, &str)]] = &[
        &[(A, "one\ntwo\nthree\n")],
        &[(A, "one\nTWO\nthree\n")],
        // nothing of it: no version
        &[(A, "one\nTWO\nthree\n"), ("prompts/b.md", "b\n")],
        &[(A, "zero\none\nTWO\nthree")],
    ];
    assert_eq!(from(trees, |_| true), [3, 1, 2, 1]);
}

#[test]
fn a_rename_takes_its_lines_along() {
    let trees: &[&[(&str, &str)]] = &[
        &[("prompts/sre/old.md", "one\ntwo\n")],
        &[("prompts/ops/a.md", "one\ntwo\n")],
        &[("prompts/ops/a.md", "one\ntwo\nthree\n")],
    ];
    assert_eq!(from(trees, |_| true), [1, 1, 2]);
}

#[test]
fn what_comes_back_is_of_who_wrote_it() {
    let trees: &[&[(&str, &str)]] = &[
        &[(A, "one\ntwo\n")],
        &[("prompts/b.md", "b\n")],
        &[(A, "one\nnew\n")],
    ];
    assert_eq!(from(trees, |_| true), [1, 2]);
}

#[test]
fn other_line_ends_are_no_other_lines() {
    let trees: &[&[(&str, &str)]] = &[
        &[(A, "one\ntwo\n")],
        &[(A, "one\r\ntwo\r\n")],
        &[(A, "one\r\ntwo\r\nthree")],
    ];
    assert_eq!(from(trees, |_| true), [1, 1, 3]);
}

#[test]
fn a_partial_that_changes_takes_no_line() {
    let text = "{% include \"p.md\" %}\n";
    let trees: &[&[(&str, &str)]] = &[
        &[(A, text), ("partials/p.md", "one\n")],
        &[(A, text), ("partials/p.md", "two\n")],
    ];
    assert_eq!(from(trees, |_| true), [1]);
}

#[test]
fn a_version_that_is_not_seen_gives_its_lines_to_the_next_that_is() {
    let trees: &[&[(&str, &str)]] = &[
        &[(A, "one\n")],
        &[("prompts/secret/a.md", "one\ntwo\n")],
        &[(A, "one\ntwo\nthree\n")],
    ];
    assert_eq!(from(trees, |_| true), [1, 2, 3]);
    assert_eq!(from(trees, |path| path == A), [1, 3, 3]);
}
