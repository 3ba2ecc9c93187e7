//! Where files lie in a library, what is not accepted there, and reading what is.

use std::io;

use crate::prompt::Limits;
use crate::prompt::parse;
use crate::prompt::problem::{Problem, Severity};
use crate::prompt::source::Source;

use super::complete::ValueIndex;
use super::tree::{Entry, EntryKind, Tree};
use super::values;
use super::work::withhold;

/// Which part of a library a path belongs to.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Place {
    Library,
    Labels,
    Prompt,
    Partial,
    Resource,
    Values,
    Stray,
    Elsewhere,
}

/// The name a prompt's path gives it.
pub(super) fn stem(path: &str) -> &str {
    let file = path.rsplit('/').next().unwrap_or(path);
    file.strip_suffix(".md").unwrap_or(file)
}

/// The part a path belongs to.
pub(super) fn place(path: &str) -> Place {
    let file = path.rsplit('/').next().unwrap_or(path);
    let is_md = path.strip_suffix(".md").is_some();
    let folder = path.split('/').next().unwrap_or_default();
    if path == "cuebook.toml" {
        return Place::Library;
    }
    if path == "labels.toml" {
        return Place::Labels;
    }
    if !path.contains('/')
        || file.starts_with('.')
        || (file.eq_ignore_ascii_case("readme.md") && folder != "resources")
    {
        return Place::Elsewhere;
    }
    match folder {
        "prompts" if is_md => Place::Prompt,
        "partials" if is_md => Place::Partial,
        "values" if path.strip_suffix(".txt").is_some() => Place::Values,
        "resources" => Place::Resource,
        "prompts" | "partials" | "values" => Place::Stray,
        _ => Place::Elsewhere,
    }
}

/// Links, submodules and paths that could lead out of the library are problems and never followed. Where nothing is
/// read, a link keeps nothing from being served.
pub(super) fn refusal(entry: &Entry) -> Option<Problem> {
    let (code, message, hint) = match entry.kind {
        EntryKind::File => return None,
        EntryKind::Symlink => (
            "symlink",
            "symbolic links are not followed",
            "put the content itself here",
        ),
        EntryKind::Gitlink => (
            "submodule",
            "submodules are not read",
            "put the files themselves here",
        ),
        EntryKind::Deep => (
            "deep-folder",
            "folders are read 32 deep, and this one lies below",
            "move what is in it up",
        ),
        EntryKind::BadPath => (
            "bad-path",
            "the path is not UTF-8 or has a part such as `..`",
            "rename the file",
        ),
    };
    let first = entry.path.split('/').next().unwrap_or_default();
    let is_read = matches!(
        first,
        "prompts" | "partials" | "resources" | "values" | "cuebook.toml" | "labels.toml"
    );
    let severity = if is_read || entry.kind == EntryKind::BadPath {
        Severity::Error
    } else {
        Severity::Warning
    };
    Some(Problem::whole(
        severity,
        code,
        &entry.path,
        message.into(),
        Some(hint.into()),
    ))
}

/// The problem of a file that is over its limit; found without reading it.
pub(super) fn too_large(
    tree: &dyn Tree,
    entry: &Entry,
    limits: &Limits,
) -> io::Result<Option<Problem>> {
    let place = place(&entry.path);
    let (limit, name) = match place {
        Place::Resource => (limits.resource_file_bytes, "resource_file_bytes"),
        Place::Values => (limits.values_file_bytes, "values_file_bytes"),
        _ => (limits.prompt_file_bytes, "prompt_file_bytes"),
    };
    let size = tree.size(entry)?;
    if size <= limit as u64 {
        return Ok(None);
    }
    let done = if place == Place::Resource {
        "served"
    } else {
        "read"
    };
    let hint = matches!(place, Place::Prompt | Place::Partial)
        .then(|| "move parts of it into partials or resources".to_owned());
    Ok(Some(Problem::whole(
        Severity::Error,
        "file-size",
        &entry.path,
        format!("the file is {size} bytes; at most {limit} are {done} ({name})"),
        hint,
    )))
}

/// The text of a file, where it is one and not too large.
pub(super) fn text(
    tree: &dyn Tree,
    entry: &Entry,
    limits: &Limits,
    problems: &mut Vec<Problem>,
) -> io::Result<Option<Source>> {
    if let Some(problem) = too_large(tree, entry, limits)? {
        problems.push(problem);
        return Ok(None);
    }
    let bytes = tree.read(entry)?;
    if let Some(problem) = parse::lfs_pointer(&entry.path, &bytes) {
        problems.push(problem);
        return Ok(None);
    }
    if !withhold(&entry.path, &bytes, problems) {
        return Ok(None);
    }
    Ok(Source::decode(&entry.path, &bytes)
        .map_err(|problem| problems.push(*problem))
        .ok())
}

/// A values file, read.
pub(super) fn values_file(
    tree: &dyn Tree,
    entry: &Entry,
    limits: &Limits,
    problems: &mut Vec<Problem>,
) -> io::Result<Option<ValueIndex>> {
    let source = text(tree, entry, limits, problems)?;
    Ok(source.map(|source| ValueIndex::new(values::parse(source, problems))))
}
