//! From the files of a revision to a catalog, using again what has not changed.

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::io;
use std::sync::Arc;

use sha2::{Digest, Sha256};

use crate::prompt::closure::{self, Partials};
use crate::prompt::parse::{self, Partial, PromptFile, hex};
use crate::prompt::problem::{Problem, Severity, nearest};
use crate::prompt::source::Source;
use crate::prompt::{Embed, Limits, Prompt};

use super::examples::{self, ExampleJob};
use super::library::{self, Labels, Library};
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
    /// Examples still to be run; [`examples::run`] takes them.
    pub jobs: Vec<ExampleJob>,
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
fn stem(path: &str) -> &str {
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
            Some((path.strip_prefix("values/")?.into(), kept.value.clone()?))
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

    let clashing = clashes(&prompts, &mut problems);
    // a label may name a prompt that has problems of its own
    let stems: Vec<String> = prompts
        .iter()
        .map(|entry| stem(&entry.path).to_owned())
        .collect();
    let surroundings = surroundings(&catalog);
    let mut jobs = Vec::new();
    let mut good = Vec::new();
    for entry in prompts {
        let kept = old.and_then(|o| o.prompts.get(&entry.path)).filter(|kept| {
            kept.id == entry.id
                && kept.value.as_ref().is_some_and(|checked| {
                    checked.surroundings == surroundings
                        && same_closure(&checked.prompt, &partials)
                        && checked.render_hash == render_hash(&catalog, &checked.prompt)
                })
        });
        let kept = if let Some(kept) = kept {
            kept.clone()
        } else {
            let mut found = Vec::new();
            let file = parse::prompt_file(&entry.path, &tree.read(entry)?, limits, &mut found);
            let prompt = file.as_ref().and_then(|file| {
                let prompt = closure::link(file, &partials, limits, &mut found)?;
                in_library(&catalog, file, &mut found);
                (!found.iter().any(Problem::is_error)).then(|| Arc::new(prompt))
            });
            if let (Some(file), Some(prompt)) = (file, &prompt)
                && !prompt.examples.is_empty()
                && !clashing.contains(&entry.path)
            {
                jobs.push(ExampleJob::new(prompt.clone(), file));
            }
            let value = prompt.map(|prompt| {
                let render_hash = render_hash(&catalog, &prompt);
                Arc::new(Checked {
                    prompt,
                    render_hash,
                    surroundings: surroundings.clone(),
                })
            });
            Kept {
                id: entry.id,
                value,
                problems: found,
            }
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
    // a fault in a partial is found again by every prompt that includes it
    let mut seen = BTreeSet::new();
    problems.retain(|p| {
        seen.insert((
            p.path.clone(),
            p.line,
            p.column,
            p.code,
            p.severity,
            shared_message(p),
        ))
    });

    good.sort_by(|a, b| {
        let parts = |p: &'_ Checked| {
            p.prompt
                .folder
                .split('/')
                .map(str::to_owned)
                .collect::<Vec<_>>()
        };
        parts(a)
            .cmp(&parts(b))
            .then_with(|| a.prompt.name.cmp(&b.prompt.name))
    });
    if let Some((source, labels)) = &labels {
        library::check_labels(source, labels, &stems.iter().map(|s| &**s), &mut problems);
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
    Ok(Built {
        catalog,
        problems,
        jobs,
    })
}

/// Builds and runs the examples in this process.
pub fn build_and_run(
    tree: &dyn Tree,
    revision: Revision,
    limits: &Limits,
    previous: Option<&Catalog>,
) -> io::Result<Built> {
    let mut built = build(tree, revision, limits, previous)?;
    let jobs = std::mem::take(&mut built.jobs);
    let found: Vec<_> = jobs
        .iter()
        .flat_map(|job| examples::run(job, &built.catalog))
        .collect();
    if !found.is_empty() {
        built.add_problems(found);
    }
    Ok(built)
}

impl Built {
    /// Takes findings of examples: prompts with an error among them leave the catalog.
    pub fn add_problems(&mut self, found: Vec<Problem>) {
        let bad: BTreeSet<Arc<str>> = found
            .iter()
            .filter(|p| p.is_error())
            .map(|p| p.path.clone())
            .collect();
        let catalog = &mut self.catalog;
        catalog.prompts.retain(|p| !bad.contains(&p.path));
        catalog.index_names();
        for path in &bad {
            catalog.parsed.prompts.remove(path);
        }
        self.problems.extend(found);
        sort(&mut self.problems);
        catalog.parsed.problems.clone_from(&self.problems);
    }
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

/// A syntax fault of a partial is one finding, whoever includes it; an undeclared variable is one for each prompt.
fn shared_message(problem: &Problem) -> Option<String> {
    (problem.code != "template-syntax").then(|| problem.message.clone())
}

/// Links, submodules and paths that could lead out of the library are problems wherever they are; never followed.
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
        EntryKind::BadPath => (
            "bad-path",
            "the path is not UTF-8 or has a part such as `..`",
            "rename the file",
        ),
    };
    problems.push(Problem::whole(
        Severity::Error,
        code,
        &entry.path,
        message.into(),
        Some(hint.into()),
    ));
    false
}

fn text(
    tree: &dyn Tree,
    entry: &Entry,
    limits: &Limits,
    problems: &mut Vec<Problem>,
) -> io::Result<Option<Source>> {
    let bytes = tree.read(entry)?;
    if bytes.len() > limits.prompt_file_bytes {
        problems.push(Problem::whole(
            Severity::Error,
            "file-size",
            &entry.path,
            format!(
                "the file is {} bytes; at most {} are read (prompt_file_bytes)",
                bytes.len(),
                limits.prompt_file_bytes
            ),
            None,
        ));
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
    let bytes = tree.read(entry)?;
    if bytes.len() > limits.values_file_bytes {
        problems.push(Problem::whole(
            Severity::Error,
            "file-size",
            &entry.path,
            format!(
                "the file is {} bytes; at most {} are read (values_file_bytes)",
                bytes.len(),
                limits.values_file_bytes
            ),
            None,
        ));
        return Ok(None);
    }
    Ok(match Source::decode(&entry.path, &bytes) {
        Ok(source) => Some(ValueIndex::new(values::parse(&source, problems))),
        Err(problem) => {
            problems.push(*problem);
            None
        }
    })
}

/// Paths whose names are not unique, also when `-` and `_` are one.
fn clashes(prompts: &[&Entry], problems: &mut Vec<Problem>) -> BTreeSet<Arc<str>> {
    let mut by_folded: BTreeMap<String, Vec<&Arc<str>>> = BTreeMap::new();
    for entry in prompts {
        by_folded
            .entry(stem(&entry.path).replace('-', "_"))
            .or_default()
            .push(&entry.path);
    }
    let mut out = BTreeSet::new();
    for paths in by_folded.values().filter(|paths| paths.len() > 1) {
        for path in paths {
            let others: Vec<&str> = paths.iter().filter(|p| p != &path).map(|p| &***p).collect();
            problems.push(Problem::whole(
                Severity::Error,
                "duplicate-name",
                path,
                format!(
                    "the name is taken by {} too (`-` and `_` count as one)",
                    others.join(", ")
                ),
                Some("names are unique in the whole library; rename one of the files".into()),
            ));
            out.insert((*path).clone());
        }
    }
    out
}

fn same_closure(prompt: &Prompt, partials: &Partials) -> bool {
    prompt.partials.iter().all(|old| {
        partials
            .get(&old.name)
            .is_some_and(|new| Arc::ptr_eq(old, new))
    })
}

/// What decides the checks of `in_library` besides resources a prompt is bound to: schemes and values files.
fn surroundings(catalog: &Catalog) -> Arc<str> {
    let mut names: Vec<&str> = catalog.values.keys().map(|k| &**k).collect();
    names.sort_unstable();
    let mut hash = Sha256::new();
    for name in names
        .into_iter()
        .chain(["\0"])
        .chain(catalog.scheme_hashes.keys().map(|k| &**k))
    {
        hash.update(name);
        hash.update([0]);
    }
    for family in &catalog.library.families {
        hash.update(&family.template);
        hash.update([0]);
    }
    hex(&hash.finalize())
}

/// The literal scheme of a binding's URI; `None` when an argument gives it.
fn literal_scheme(uri: &str) -> Option<&str> {
    let (scheme, _) = uri.split_once("://")?;
    (!scheme.contains('{')).then_some(scheme)
}

fn render_hash(catalog: &Catalog, prompt: &Prompt) -> Arc<str> {
    if prompt.bindings.is_empty() {
        return prompt.closure_hash.clone();
    }
    let mut hash = Sha256::new();
    hash.update(prompt.closure_hash.as_bytes());
    for binding in &prompt.bindings {
        match literal_scheme(&binding.uri) {
            Some(scheme) => {
                hash.update(catalog.scheme_hashes.get(scheme).map_or("", |h| h));
            }
            None => catalog
                .scheme_hashes
                .values()
                .for_each(|h| hash.update(h.as_bytes())),
        }
    }
    hex(&hash.finalize())
}

/// Checks of a prompt that need the rest of the library: schemes, resources, values files.
fn in_library(catalog: &Catalog, file: &PromptFile, problems: &mut Vec<Problem>) {
    let source = &file.source;
    let known = |scheme: &str| {
        catalog.scheme_hashes.contains_key(scheme)
            || catalog
                .library
                .families
                .iter()
                .any(|f| f.parsed.scheme() == scheme)
    };
    let schemes = || {
        let mut all: Vec<&str> = catalog.scheme_hashes.keys().map(|k| &**k).collect();
        all.extend(catalog.library.families.iter().map(|f| f.parsed.scheme()));
        all.sort_unstable();
        all.dedup();
        all
    };
    let scheme_hint = |scheme: &str| match nearest(scheme, schemes()) {
        Some(near) => format!("did you mean `{near}://`?"),
        None if schemes().is_empty() => format!("put files under resources/{scheme}/"),
        None => format!(
            "this library has {}; or put files under resources/{scheme}/",
            schemes().join(", ")
        ),
    };
    let mut error = |code, span: std::ops::Range<usize>, message: String, hint: Option<String>| {
        problems.push(source.problem(Severity::Error, code, span, message, hint));
    };
    for (binding, (_, at)) in file.front.bindings.iter().zip(&file.front.binding_places) {
        let is_template = binding.uri.contains('{');
        if !binding.uri.contains("://") && !binding.uri.contains('{') {
            error(
                "resource-uri",
                at.clone(),
                format!("`{}` is no resource URI", binding.uri),
                Some("like \"runbook://{{ service }}\"".into()),
            );
            continue;
        }
        if let Some(scheme) = literal_scheme(&binding.uri)
            && !known(scheme)
        {
            let message = format!("this library has no `{scheme}://` resources");
            error(
                "unknown-scheme",
                at.clone(),
                message,
                Some(scheme_hint(scheme)),
            );
            continue;
        }
        if is_template {
            continue;
        }
        match catalog.resource(&binding.uri) {
            super::Lookup::Found(resource) => {
                let wanted = match binding.embed {
                    Embed::Image => Some("image/"),
                    Embed::Audio => Some("audio/"),
                    _ => None,
                };
                if let Some(wanted) = wanted.filter(|w| !resource.mime_type.starts_with(w)) {
                    let message = format!(
                        "`{}` is {}, not {wanted}…",
                        resource.path, resource.mime_type
                    );
                    error(
                        "resource-type",
                        at.clone(),
                        message,
                        Some("choose another `as`".into()),
                    );
                } else if binding.embed == Embed::Text && resource.text().is_none() {
                    let message =
                        format!("`{}` is no text, so it cannot be inlined", resource.path);
                    error(
                        "resource-type",
                        at.clone(),
                        message,
                        Some("as: resource".into()),
                    );
                }
            }
            super::Lookup::Missing(near) => {
                let hint = near.first().map(|near| format!("did you mean `{near}`?"));
                error(
                    "missing-resource",
                    at.clone(),
                    format!("there is no resource `{}`", binding.uri),
                    hint,
                );
            }
            super::Lookup::Invalid(fault) => {
                error(
                    "resource-uri",
                    at.clone(),
                    format!("`{}` is no resource URI: {fault}", binding.uri),
                    None,
                );
            }
        }
    }
    for (argument, places) in file.front.arguments.iter().zip(&file.front.argument_places) {
        if let Some(name) = argument.values.file.as_deref()
            && !catalog.values.contains_key(name)
        {
            let hint = nearest(name, catalog.values.keys().map(|k| &**k)).map_or_else(
                || format!("create values/{name}"),
                |near| format!("did you mean `{near}`?"),
            );
            let message = format!("there is no values file `{name}` (values/{name})");
            error("values-file", places.values.clone(), message, Some(hint));
        }
        let Some(pattern) = argument.values.resource.as_deref() else {
            continue;
        };
        match UriTemplate::parse(pattern) {
            Err(fault) => error(
                "values-resource",
                places.values.clone(),
                format!("`{pattern}` is no resource pattern: {fault}"),
                Some("like \"runbook://{service}\"".into()),
            ),
            Ok(template) if template.variables().count() != 1 => error(
                "values-resource",
                places.values.clone(),
                format!("`{pattern}` must have one variable, whose values are completed"),
                None,
            ),
            Ok(template) if !known(template.scheme()) => error(
                "unknown-scheme",
                places.values.clone(),
                format!("this library has no `{}://` resources", template.scheme()),
                Some(scheme_hint(template.scheme())),
            ),
            Ok(_) => {}
        }
    }
}
