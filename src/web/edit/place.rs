//! Where a file may be in a library, what kind of file that makes it, and what it holds now.

use std::path::Path;

use serde::Serialize;

use crate::access::{Action, Actor};
use crate::api::changes::is_path;
use crate::catalog::{Catalog, Tree};
use crate::git::MAIN;
use crate::prompt::front_matter::name_and_folder;
use crate::registry::Registry;
use crate::registry::source::{Library, WorkTree};

use super::super::page::Failure;

/// What a file is to the library.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub(super) enum Kind {
    /// A prompt.
    Prompt,
    /// A partial.
    Partial,
    /// Completion values.
    Values,
    /// A resource.
    Resource,
    /// `labels.toml`.
    Labels,
    /// `cuebook.toml`.
    Library,
    /// Kept with the library and not read: a README, `.gitattributes`.
    Other,
}

impl Kind {
    /// The kind of file that a path makes; none where no file of a library may be.
    pub(super) fn of(path: &str) -> Option<Self> {
        if !is_path(path) {
            return None;
        }
        let name = path.rsplit('/').next().unwrap_or(path);
        let ends = |ending: &str| name.len() > ending.len() && name.ends_with(ending);
        match path.split_once('/').map(|(folder, _)| folder) {
            None if path == "labels.toml" => Some(Self::Labels),
            None if path == "cuebook.toml" => Some(Self::Library),
            Some("resources") => Some(Self::Resource),
            _ if name.eq_ignore_ascii_case("readme.md") => Some(Self::Other),
            Some("prompts") => ends(".md").then_some(Self::Prompt),
            Some("partials") => ends(".md").then_some(Self::Partial),
            Some("values") => ends(".txt").then_some(Self::Values),
            _ => Some(Self::Other),
        }
    }
}

/// Whether somebody may see what is at a path.
pub(super) fn reads(actor: &Actor, path: &str) -> bool {
    actor.may(Action::Read, path)
}

/// Why a file cannot be put at a path, as one line; `from` is where it is now.
pub(super) fn fault(
    catalog: &Catalog,
    actor: &Actor,
    path: &str,
    from: Option<&str>,
    taken: bool,
) -> Option<String> {
    let shown: String = path.chars().take(120).collect();
    let Some(kind) = Kind::of(path) else {
        return Some(format!(
            "`{shown}` is no place in a library; prompts are at prompts/<folder>/<name>.md, partials at \
             partials/<name>.md, values at values/<name>.txt"
        ));
    };
    if let Some(from) = from
        && Kind::of(from) != Some(kind)
    {
        return Some(format!(
            "`{shown}` would be another kind of file than {from}; keep the first folder and the ending"
        ));
    }
    if !actor.may(Action::Propose, path) {
        return Some(format!(
            "you may not change `{shown}`; choose another folder"
        ));
    }
    if kind == Kind::Prompt {
        let name = match name_and_folder(&path.into()) {
            Ok((name, _)) => name,
            Err(problem) => {
                return Some(match problem.hint {
                    Some(hint) => format!("{}; {hint}", problem.message),
                    None => problem.message,
                });
            }
        };
        let folded = name.folded();
        let other = catalog
            .list(None)
            .iter()
            .find(|prompt| prompt.name.folded() == folded && Some(&*prompt.path) != from);
        if let Some(other) = other
            && &*other.path != path
        {
            // a name is taken, whoever may see by what
            let by = if reads(actor, &other.path) {
                format!(" by {}", other.path)
            } else {
                String::new()
            };
            return Some(format!(
                "the name `{name}` is taken{by} (`-` and `_` count as one); names are unique in the whole library"
            ));
        }
    }
    (taken && from != Some(path))
        .then(|| format!("there is a file at `{shown}`; open that one, or choose another name"))
}

/// A file as it is stored, and the commit it is of.
#[derive(Debug)]
pub(super) struct Found {
    /// Its bytes; none where there is no file.
    pub(super) bytes: Option<Vec<u8>>,
    /// The tip of main; none in an empty library and in a work tree.
    pub(super) commit: Option<String>,
    /// Whether the library is a work tree, which takes no changes here.
    pub(super) work_tree: bool,
}

/// Reads a file of the tip of main, or of the work tree that is served. Blocks.
pub(super) fn find(registry: &Registry, path: &str) -> Result<Found, Failure> {
    match registry.library() {
        Library::Bare(repository) => {
            let wrong = |error: crate::git::GitError| Failure::Internal(error.to_string());
            let commit = repository.read_ref(MAIN).map_err(wrong)?;
            let bytes = match &commit {
                Some(commit) => repository.file(commit, path).map_err(wrong)?,
                None => None,
            };
            Ok(Found {
                bytes,
                commit,
                work_tree: false,
            })
        }
        Library::WorkTree { root, .. } => Ok(Found {
            bytes: in_work_tree(root, path)
                .map_err(|error| Failure::Internal(error.to_string()))?,
            commit: None,
            work_tree: true,
        }),
    }
}

fn in_work_tree(root: &Path, path: &str) -> std::io::Result<Option<Vec<u8>>> {
    let tree = WorkTree::open(root)?;
    let entries = tree.entries()?;
    let entry = entries.iter().find(|entry| {
        &*entry.path == path && matches!(entry.kind, crate::catalog::EntryKind::File)
    });
    entry.map(|entry| tree.read(entry)).transpose()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_path_says_what_a_file_is() {
        let check = |path, expected| assert_eq!(Kind::of(path), expected, "{path}");
        check("prompts/sre/triage.md", Some(Kind::Prompt));
        check("prompts/triage.md", Some(Kind::Prompt));
        check("prompts/sre/triage.txt", None);
        check("prompts/.md", None);
        check("prompts/README.md", Some(Kind::Other));
        check("partials/a/b.md", Some(Kind::Partial));
        check("values/services.txt", Some(Kind::Values));
        check("resources/runbook/README.md", Some(Kind::Resource));
        check("labels.toml", Some(Kind::Labels));
        check("cuebook.toml", Some(Kind::Library));
        check(".gitattributes", Some(Kind::Other));
        for path in [
            "",
            "prompts/../x.md",
            "/etc/passwd",
            ".git/config",
            "prompts//x.md",
            "a\\b",
        ] {
            check(path, None);
        }
    }
}
