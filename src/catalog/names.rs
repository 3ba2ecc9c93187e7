//! Names that two files want: which one is meant cannot be known.

use crate::prompt::problem::{Problem, Severity};

use super::parts::Groups;

/// Files whose names differ in their Unicode form alone: which one is meant cannot be known.
pub(super) fn one_form(groups: &Groups, name: &str) -> Vec<Problem> {
    let others = groups.paths(name).skip(1);
    others
        .map(|path| {
            Problem::whole(
                Severity::Error,
                "duplicate-name",
                path,
                "another file has this name in another Unicode form".into(),
                Some("remove one of them".into()),
            )
        })
        .collect()
}

/// Others that are named where a name is taken.
const NAMED: usize = 5;

/// Prompts whose names are not unique, also when `-` and `_` are one.
pub(super) fn clashes(stems: &Groups, name: &str) -> Vec<Problem> {
    if stems.count(name) < 2 {
        return Vec::new();
    }
    let paths = stems.paths(name);
    paths
        .map(|path| {
            let others = stems.paths(name).filter(|other| *other != path);
            let mut named: Vec<&str> = others.take(NAMED).map(|other| &**other).collect();
            let more = stems.count(name) - 1 - named.len();
            let more_words = format!("{more} more");
            if more > 0 {
                named.push(&more_words);
            }
            Problem::whole(
                Severity::Error,
                "duplicate-name",
                path,
                format!(
                    "the name is taken by {} too (`-` and `_` count as one)",
                    named.join(", ")
                ),
                Some("names are unique in the whole library; rename one of the files".into()),
            )
        })
        .collect()
}
