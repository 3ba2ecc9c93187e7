//! From the files of a revision to a catalog, using again what has not changed.

use std::collections::{BTreeSet, HashMap};
use std::io;
use std::sync::Arc;

use crate::prompt::closure::{self, Partials};
use crate::prompt::parse::{self, Partial};
use crate::prompt::problem::{Problem, Severity};
use crate::prompt::source::Source;
use crate::prompt::{Limits, Prompt};

use super::examples::{self, RunExamples};
use super::library::{self, Labels, Library};
use super::parallel::parallel;
use super::prompts::{
    check_prompt, clashes, moved_schemes, one_form, reaches, same_closure, surroundings,
};
use super::resources::{self, ResourceFile};
use super::tree::{Entry, EntryKind, ObjectId, Tree};
use super::uri::UriTemplate;
use super::values::{self, ValueIndex};
use super::{Catalog, Revision};

/// What a build gives.
#[derive(Debug)]
pub struct Built {
    /// The catalog of what is good.
    pub catalog: Catalog,
    /// Every finding, by path and line. A commit with an error among them is not served.
    pub problems: Vec<Problem>,
}

impl Built {
    /// Whether nothing keeps the revision from being served.
    pub fn is_clean(&self) -> bool {
        !self.problems.iter().any(Problem::is_error)
    }
}

/// Pieces kept for the next build, by path; each with the id of the content it was read from.
#[derive(Debug, Default)]
pub struct Parsed {
    partials: HashMap<Arc<str>, Kept<Partial>>,
    prompts: HashMap<Arc<str>, Kept<Checked>>,
    resources: HashMap<Arc<str>, Kept<ResourceFile>>,
    values: HashMap<Arc<str>, Kept<ValueIndex>>,
    problems: Vec<Problem>,
}

impl Parsed {
    pub(super) fn problems(&self) -> impl Iterator<Item = &Problem> {
        self.problems.iter()
    }
}

#[derive(Debug)]
struct Kept<T> {
    id: ObjectId,
    value: Option<Arc<T>>,
    problems: Vec<Problem>,
}

impl<T> Clone for Kept<T> {
    fn clone(&self) -> Self {
        Self {
            id: self.id,
            value: self.value.clone(),
            problems: self.problems.clone(),
        }
    }
}

/// A prompt that passed, and what its passing rests on besides its own bytes.
#[derive(Debug)]
struct Checked {
    prompt: Arc<Prompt>,
    render_hash: Arc<str>,
    surroundings: Arc<str>,
}

/// Keeps what the previous build read from the same content, or reads it.
fn keep<T>(
    previous: Option<&HashMap<Arc<str>, Kept<T>>>,
    entry: &Entry,
    read: impl FnOnce(&mut Vec<Problem>) -> io::Result<Option<T>>,
) -> io::Result<Kept<T>> {
    if let Some(kept) = previous
        .and_then(|map| map.get(&entry.path))
        .filter(|kept| kept.id == entry.id)
    {
        return Ok(kept.clone());
    }
    let mut problems = Vec::new();
    let value = read(&mut problems)?.map(Arc::new);
    Ok(Kept {
        id: entry.id,
        value,
        problems,
    })
}

/// Which part of a library a path belongs to.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Place {
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

fn place(path: &str) -> Place {
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

/// Builds the catalog of a revision. An error means that reading failed, not that content is bad.
pub fn build(
    tree: &dyn Tree,
    revision: Revision,
    limits: &Limits,
    previous: Option<&Catalog>,
    run_examples: RunExamples<'_>,
) -> io::Result<Built> {
    let old = previous.map(|c| &c.parsed);
    let mut problems = Vec::new();
    let mut entries = tree.entries()?;
    entries.sort_by(|a, b| a.path.cmp(&b.path));
    entries.retain(|entry| accepted(entry, &mut problems));

    let mut now = Parsed::default();
    let mut library = Library::default();
    let mut labels: Option<(Source, Labels)> = None;
    let mut prompts = Vec::new();
    for entry in &entries {
        match place(&entry.path) {
            Place::Library => {
                if let Some(source) = text(tree, entry, limits, &mut problems)? {
                    library = library::library(&source, &mut problems);
                }
            }
            Place::Labels => {
                if let Some(source) = text(tree, entry, limits, &mut problems)? {
                    let read = library::labels(&source, &mut problems);
                    labels = Some((source, read));
                }
            }
            Place::Prompt => prompts.push(entry),
            Place::Partial => {
                let kept = keep(old.map(|o| &o.partials), entry, |problems| {
                    if let Some(problem) = too_large(tree, entry, limits)? {
                        problems.push(problem);
                        return Ok(None);
                    }
                    let partial = parse::partial(&entry.path, &tree.read(entry)?, limits, problems);
                    if let Some(partial) = &partial {
                        closure::compile_partial(partial, problems);
                    }
                    Ok(partial)
                })?;
                problems.extend(kept.problems.iter().cloned());
                now.partials.insert(entry.path.clone(), kept);
            }
            Place::Resource => {
                let kept = keep(old.map(|o| &o.resources), entry, |problems| {
                    if let Some(problem) = too_large(tree, entry, limits)? {
                        problems.push(problem);
                        return Ok(None);
                    }
                    Ok(resources::read(
                        &entry.path,
                        tree.read(entry)?,
                        limits,
                        problems,
                    ))
                })?;
                problems.extend(kept.problems.iter().cloned());
                now.resources.insert(entry.path.clone(), kept);
            }
            Place::Values => {
                let kept = keep(old.map(|o| &o.values), entry, |problems| {
                    values_file(tree, entry, limits, problems)
                })?;
                problems.extend(kept.problems.iter().cloned());
                now.values.insert(entry.path.clone(), kept);
            }
            Place::Stray => problems.push(Problem::whole(
                Severity::Warning,
                "stray-file",
                &entry.path,
                "this file is not read".into(),
                Some("prompts and partials end in .md, values in .txt".into()),
            )),
            Place::Elsewhere => {}
        }
    }

    let mut files: Vec<_> = now
        .resources
        .values()
        .filter_map(|k| k.value.clone())
        .collect();
    files.sort_by(|a, b| a.path.cmp(&b.path));
    let index = resources::index(&files, &mut problems);
    let values: HashMap<Arc<str>, Arc<ValueIndex>> = now
        .values
        .iter()
        .filter_map(|(path, kept)| {
            Some((
                parse::file_name(path, "values/").into(),
                kept.value.clone()?,
            ))
        })
        .collect();
    let partials: Partials = now
        .partials
        .values()
        .filter_map(|kept| kept.value.clone())
        .map(|partial| (partial.name.clone(), partial))
        .collect();

    let mut catalog = Catalog {
        revision,
        library,
        prompts: Vec::new(),
        by_name: HashMap::new(),
        resources: index.resources,
        by_uri: index.by_uri,
        scheme_hashes: index.scheme_hashes,
        values,
        patterns: HashMap::new(),
        render_hashes: HashMap::new(),
        limits: limits.clone(),
        parsed: Parsed::default(),
    };

    one_form(now.partials.keys(), "partials/", &mut problems);
    one_form(now.values.keys(), "values/", &mut problems);
    let clashing = clashes(&prompts, &mut problems);
    // a label may name a prompt that has problems of its own
    let stems: Vec<String> = prompts
        .iter()
        .map(|entry| stem(&entry.path).to_owned())
        .collect();
    let surroundings = surroundings(&catalog);
    let moved = moved_schemes(previous, &catalog);
    let mut kept_prompts: Vec<Option<Kept<Checked>>> = Vec::with_capacity(prompts.len());
    let mut todo = Vec::new();
    for entry in &prompts {
        let kept = old.and_then(|o| o.prompts.get(&entry.path)).filter(|kept| {
            kept.id == entry.id
                && kept.value.as_ref().is_some_and(|checked| {
                    checked.surroundings == surroundings
                        && same_closure(&checked.prompt, &partials)
                        && !reaches(&checked.prompt, &moved)
                })
        });
        if kept.is_some() {
            kept_prompts.push(kept.cloned());
        } else if let Some(problem) = too_large(tree, entry, limits)? {
            kept_prompts.push(Some(Kept {
                id: entry.id,
                value: None,
                problems: vec![problem],
            }));
        } else {
            kept_prompts.push(None);
            todo.push((*entry, tree.read(entry)?));
        }
    }
    let linked = parallel(todo, |(entry, bytes)| {
        let (checked, problems) = check_prompt(entry, &bytes, &partials, &catalog, run_examples);
        let value = checked.map(|(prompt, render_hash)| {
            Arc::new(Checked {
                prompt,
                render_hash,
                surroundings: surroundings.clone(),
            })
        });
        Kept {
            id: entry.id,
            value,
            problems,
        }
    });
    let mut linked = linked.into_iter();
    let mut good = Vec::new();
    for (entry, kept) in prompts.iter().zip(kept_prompts) {
        let Some(kept) = kept.or_else(|| linked.next()) else {
            continue;
        };
        problems.extend(kept.problems.iter().cloned());
        if let Some(checked) = kept
            .value
            .as_ref()
            .filter(|_| !clashing.contains(&entry.path))
        {
            good.push(checked.clone());
        }
        now.prompts.insert(entry.path.clone(), kept);
    }
    // a fault in a partial is found again by every prompt that includes it; one finding says it, naming a prompt
    let place = |p: &Problem| (p.path.clone(), p.line, p.column, p.code);
    let named: BTreeSet<_> = problems
        .iter()
        .filter(|p| p.message.contains("(included by "))
        .map(place)
        .collect();
    let mut seen = BTreeSet::new();
    problems.retain(|p| {
        let shared = p.code == "template-syntax";
        let again = shared && named.contains(&place(p)) && !p.message.contains("(included by ");
        !again && seen.insert((place(p), p.severity, (!shared).then(|| p.message.clone())))
    });

    good.sort_by_cached_key(|checked| {
        let folders: Vec<Box<str>> = checked.prompt.folder.split('/').map(Into::into).collect();
        (folders, checked.prompt.name.clone())
    });
    if let Some((source, labels)) = &labels {
        library::check_labels(
            source,
            labels,
            &stems.iter().map(String::as_str).collect::<Vec<_>>(),
            &mut problems,
        );
    }
    for checked in good {
        catalog.render_hashes.insert(
            checked.prompt.name.as_str().into(),
            checked.render_hash.clone(),
        );
        catalog.add_patterns(&checked.prompt);
        catalog.prompts.push(checked.prompt.clone());
    }
    catalog.index_names();
    sort(&mut problems);
    catalog.parsed = now;
    catalog.parsed.problems.clone_from(&problems);
    Ok(Built { catalog, problems })
}

/// Builds, and runs the examples in this process.
pub fn build_and_run(
    tree: &dyn Tree,
    revision: Revision,
    limits: &Limits,
    previous: Option<&Catalog>,
) -> io::Result<Built> {
    build(tree, revision, limits, previous, &examples::run)
}

impl Catalog {
    fn index_names(&mut self) {
        self.by_name = self
            .prompts
            .iter()
            .zip(0u32..)
            .map(|(p, i)| (p.name.as_str().into(), i))
            .collect();
    }

    /// Values of the one variable of each `values: { resource: … }` pattern that have a resource.
    fn add_patterns(&mut self, prompt: &Prompt) {
        for argument in &prompt.arguments {
            let Some(pattern) = argument.values.resource.as_deref() else {
                continue;
            };
            if self.patterns.contains_key(pattern) {
                continue;
            }
            let Ok(template) = UriTemplate::parse(pattern) else {
                continue;
            };
            let mut values: BTreeSet<String> = BTreeSet::new();
            for resource in &self.resources {
                let found = [&resource.uri, &resource.long_uri]
                    .into_iter()
                    .find_map(|uri| {
                        let decoded = super::uri::decoded(uri);
                        let found = template.matches(&decoded)?;
                        found.first().map(|(_, value)| (*value).to_owned())
                    });
                values.extend(found);
            }
            let index = ValueIndex::plain(values.iter().map(String::as_str));
            self.patterns.insert(pattern.into(), Arc::new(index));
        }
    }
}

fn sort(problems: &mut [Problem]) {
    problems.sort_by(|a, b| {
        (&a.path, a.line, a.column, a.severity).cmp(&(&b.path, b.line, b.column, b.severity))
    });
}

/// Links, submodules and paths that could lead out of the library are problems and never followed. Where nothing is
/// read, a link keeps nothing from being served.
fn accepted(entry: &Entry, problems: &mut Vec<Problem>) -> bool {
    let (code, message, hint) = match entry.kind {
        EntryKind::File => return true,
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
    problems.push(Problem::whole(
        severity,
        code,
        &entry.path,
        message.into(),
        Some(hint.into()),
    ));
    false
}

/// The problem of a file that is over its limit; found without reading it.
fn too_large(tree: &dyn Tree, entry: &Entry, limits: &Limits) -> io::Result<Option<Problem>> {
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

fn text(
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
    Ok(Source::decode(&entry.path, &bytes)
        .map_err(|problem| problems.push(*problem))
        .ok())
}

fn values_file(
    tree: &dyn Tree,
    entry: &Entry,
    limits: &Limits,
    problems: &mut Vec<Problem>,
) -> io::Result<Option<ValueIndex>> {
    let source = text(tree, entry, limits, problems)?;
    Ok(source.map(|source| ValueIndex::new(values::parse(&source, problems))))
}
