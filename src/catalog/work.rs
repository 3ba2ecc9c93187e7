//! An update: files go out and come in, what rests on them is made right, in an order in which nothing is looked at
//! before it is.

use std::collections::BTreeSet;
use std::io;
use std::sync::{Arc, OnceLock};

use crate::prompt::closure;
use crate::prompt::parse::{self, Partial};
use crate::prompt::problem::{Problem, Severity};
use crate::prompt::{Limits, Prompt, Resource, ResourceBody, secrets};

use super::difference::Difference;
use super::examples::{self, RunExamples};
use super::listed::list_key;
use super::names::{clashes, one_form};
use super::parallel::parallel;
use super::parts::{Content, Pattern, Piece, Rest, rests};
use super::place::{Place, place, refusal, stem, text, too_large, values_file};
use super::prompts::check_prompt;
use super::resources::{self, Unsettled};
use super::tree::{Change, Entry, Tree};
use super::uri::UriTemplate;
use super::{Catalog, Revision, findings, library};

/// An update under way: the new catalog, and what is still to be made right in it.
pub(super) struct Work<'a> {
    tree: &'a dyn Tree,
    limits: &'a Limits,
    before: &'a Catalog,
    pub(super) catalog: Catalog,
    /// Paths of prompts that are to be parsed, linked and checked.
    check: BTreeSet<Arc<str>>,
    /// Paths of prompts that may be listed otherwise.
    relist: BTreeSet<Arc<str>>,
    /// Names, `-` and `_` being one, that a prompt took or left.
    stems: BTreeSet<Arc<str>>,
    /// Names of partials that may be another text.
    partials: BTreeSet<Arc<str>>,
    /// Names of values files that may be others.
    values: BTreeSet<Arc<str>>,
    resources: Unsettled,
    /// Whether the labels are others.
    labels: bool,
    /// Sources whose findings were set anew.
    pub(super) sources: BTreeSet<Arc<str>>,
    /// Against `before`.
    pub(super) difference: Difference,
}

/// The form in which names of prompts must differ.
fn folded(path: &str) -> Arc<str> {
    stem(path).replace('-', "_").into()
}

impl<'a> Work<'a> {
    pub(super) fn new(
        tree: &'a dyn Tree,
        limits: &'a Limits,
        before: &'a Catalog,
        revision: Revision,
    ) -> Self {
        Self {
            tree,
            limits,
            before,
            catalog: Catalog {
                revision,
                ..before.clone()
            },
            check: BTreeSet::new(),
            relist: BTreeSet::new(),
            stems: BTreeSet::new(),
            partials: BTreeSet::new(),
            values: BTreeSet::new(),
            resources: Unsettled::default(),
            labels: false,
            sources: BTreeSet::new(),
            difference: Difference::default(),
        }
    }

    /// Makes the new catalog.
    pub(super) fn run(
        mut self,
        changes: &[Change],
        run_examples: RunExamples<'_>,
    ) -> io::Result<Self> {
        // what is gone goes before anything comes: a name may pass from one file to another
        for change in changes {
            if let Some(entry) = &change.before {
                self.remove(&entry.key());
            }
        }
        for change in changes {
            if let Some(entry) = &change.after {
                self.add(entry)?;
            }
        }
        self.settle_partials();
        self.settle_resources();
        self.settle_values();
        self.settle_schemes();
        self.check_prompts(run_examples)?;
        self.list_prompts();
        self.check_labels();
        Ok(self)
    }

    fn found(&mut self, source: &Arc<str>, problems: Vec<Problem>) {
        self.catalog.parts.findings.set(source, problems);
        self.sources.insert(source.clone());
    }

    /// Takes a file out.
    fn remove(&mut self, key: &Arc<str>) {
        let Some(piece) = self.catalog.parts.pieces.get(key).cloned() else {
            return;
        };
        self.catalog.parts.pieces.remove_mut(key);
        self.found(key, Vec::new());
        let path = piece.path;
        match piece.content {
            Content::Plain => {}
            Content::Library => self.catalog.library = Arc::default(),
            Content::Labels => {
                self.catalog.parts.labels = None;
                self.labels = true;
            }
            Content::Prompt { prompt, looked } => {
                let parts = &mut self.catalog.parts;
                let stem = folded(&path);
                parts.stems.remove(&stem, &path);
                parts.failing.remove_mut(&path);
                if let Some(prompt) = prompt {
                    let old = rests(&prompt, &looked);
                    parts.dependents.replace(&path, &old, BTreeSet::new());
                }
                self.stems.insert(stem);
                self.relist.insert(path);
            }
            Content::Partial(_) => {
                let name: Arc<str> = parse::file_name(&path, "partials/").into();
                self.catalog.parts.partial_names.remove(&name, &path);
                self.partials.insert(name);
            }
            Content::Resource { file, served } => {
                if let Some(file) = file {
                    self.resources.remove(&mut self.catalog, &file, served);
                }
            }
            Content::Values(_) => {
                let name: Arc<str> = parse::file_name(&path, "values/").into();
                self.catalog.parts.values_names.remove(&name, &path);
                self.values.insert(name);
            }
        }
    }

    /// Puts a file in; prompts are checked later, when all they rest on is there.
    fn add(&mut self, entry: &Entry) -> io::Result<()> {
        let (tree, limits) = (self.tree, self.limits);
        let path = &entry.path;
        let mut problems = Vec::new();
        let place = place(path);
        let content = if let Some(problem) = refusal(entry) {
            problems.push(problem);
            Content::Plain
        } else {
            match place {
                Place::Library => {
                    if let Some(source) = text(tree, entry, limits, &mut problems)? {
                        self.catalog.library = library::library(&source, &mut problems).into();
                    }
                    Content::Library
                }
                Place::Labels => {
                    if let Some(source) = text(tree, entry, limits, &mut problems)? {
                        let labels = library::labels(&source, &mut problems);
                        self.catalog.parts.labels = Some(Arc::new((source, labels)));
                    }
                    self.labels = true;
                    Content::Labels
                }
                Place::Prompt => {
                    let stem = folded(path);
                    self.catalog.parts.stems.insert(&stem, path);
                    self.stems.insert(stem);
                    self.check.insert(path.clone());
                    Content::Prompt {
                        prompt: None,
                        looked: Arc::default(),
                    }
                }
                Place::Partial => {
                    let partial = self.partial(entry, &mut problems)?;
                    let name: Arc<str> = parse::file_name(path, "partials/").into();
                    self.catalog.parts.partial_names.insert(&name, path);
                    self.partials.insert(name);
                    Content::Partial(partial.map(Arc::new))
                }
                Place::Resource => {
                    let file = if let Some(problem) = too_large(tree, entry, limits)? {
                        problems.push(problem);
                        None
                    } else {
                        resources::read(path, tree.read(entry)?, limits, &mut problems)
                    };
                    let clean = match file.as_ref().map(|file| &file.body) {
                        Some(ResourceBody::Text(text)) => {
                            withhold(path, text.as_bytes(), &mut problems)
                        }
                        _ => true,
                    };
                    let file = file.filter(|_| clean).map(Arc::new);
                    if let Some(file) = &file {
                        self.resources.add(&mut self.catalog, file);
                    }
                    Content::Resource { file, served: None }
                }
                Place::Values => {
                    let values = values_file(tree, entry, limits, &mut problems)?;
                    let name: Arc<str> = parse::file_name(path, "values/").into();
                    self.catalog.parts.values_names.insert(&name, path);
                    self.values.insert(name);
                    Content::Values(values.map(Arc::new))
                }
                Place::Stray => {
                    problems.push(Problem::whole(
                        Severity::Warning,
                        "stray-file",
                        path,
                        "this file is not read".into(),
                        Some("prompts and partials end in .md, values in .txt".into()),
                    ));
                    Content::Plain
                }
                Place::Elsewhere => return Ok(()),
            }
        };
        let key = entry.key();
        if !problems.is_empty() {
            self.found(&key, problems);
        }
        let piece = Piece {
            path: path.clone(),
            id: entry.id,
            kind: entry.kind,
            size: entry.size,
            content,
        };
        self.catalog.parts.pieces.insert_mut(key, piece);
        Ok(())
    }

    fn partial(&self, entry: &Entry, problems: &mut Vec<Problem>) -> io::Result<Option<Partial>> {
        if let Some(problem) = too_large(self.tree, entry, self.limits)? {
            problems.push(problem);
            return Ok(None);
        }
        let bytes = self.tree.read(entry)?;
        let mut partial = parse::partial(&entry.path, &bytes, self.limits, problems);
        if let Some(partial) = &mut partial {
            closure::compile_partial(partial, problems);
            // a prompt that includes it is not served either
            partial.sound &= withhold(&entry.path, &bytes, problems);
        }
        Ok(partial)
    }

    /// Marks the prompts that rest on something for a check.
    fn recheck(&mut self, rest: &Rest) {
        self.check
            .extend(self.catalog.parts.dependents.of(rest).cloned());
    }

    fn settle_partials(&mut self) {
        for name in std::mem::take(&mut self.partials) {
            let parts = &mut self.catalog.parts;
            let found = parts.partial_names.paths(&name).find_map(|path| {
                match &parts.pieces.get(path)?.content {
                    Content::Partial(partial) => partial.clone(),
                    _ => None,
                }
            });
            match found {
                Some(partial) => parts.partials.insert_mut(name.clone(), partial),
                None => {
                    parts.partials.remove_mut(&name);
                }
            }
            let problems = one_form(&parts.partial_names, &name);
            self.found(&findings::group("partial", &name), problems);
            self.recheck(&Rest::Partial(name));
        }
    }

    fn settle_values(&mut self) {
        for name in std::mem::take(&mut self.values) {
            let parts = &self.catalog.parts;
            let found = parts.values_names.paths(&name).find_map(|path| {
                match &parts.pieces.get(path)?.content {
                    Content::Values(values) => values.clone(),
                    _ => None,
                }
            });
            let problems = one_form(&parts.values_names, &name);
            if let Some(values) = found {
                self.catalog.values.insert_mut(name.clone(), values);
            } else {
                self.catalog.values.remove_mut(&name);
                self.recheck(&Rest::Values(name.clone()));
            }
            self.found(&findings::group("values", &name), problems);
        }
    }

    fn settle_resources(&mut self) {
        let moved = std::mem::take(&mut self.resources).settle(&mut self.catalog);
        self.sources.extend(moved.sources);
        let facts = |found: Option<&Arc<Resource>>| {
            found.map(|r| {
                (
                    r.sha256.clone(),
                    r.mime_type.clone(),
                    r.uri.clone(),
                    r.path.clone(),
                )
            })
        };
        for key in moved.keys {
            let old = facts(self.before.by_uri.get(&key));
            if old != facts(self.catalog.by_uri.get(&key)) {
                self.recheck(&Rest::Resource(key));
            }
        }
        // schemes with other URIs than before: what their patterns find is found anew
        let mut schemes: BTreeSet<Arc<str>> = BTreeSet::new();
        for uri in moved.uris {
            let old = self.before.resources.get(&uri);
            let new = self.catalog.resources.get(&uri);
            if old.map(|r| &r.long_uri) != new.map(|r| &r.long_uri)
                && let Some((scheme, _)) = uri.split_once("://")
            {
                schemes.insert(scheme.into());
            }
            let content = |r: &Arc<Resource>| (r.mime_type.clone(), r.sha256.clone());
            if old.map(content) != new.map(content) {
                let kind = |r: &Arc<Resource>| r.mime_type.clone();
                self.difference.resources_list |= old.map(kind) != new.map(kind);
                self.difference.resources.insert(uri);
            }
        }
        if schemes.is_empty() {
            return;
        }
        let patterns = &mut self.catalog.parts.patterns;
        let stale: Vec<(Arc<str>, Pattern)> = patterns
            .iter()
            .filter(|(_, pattern)| schemes.contains(pattern.template.scheme()))
            .map(|(name, pattern)| (name.clone(), pattern.clone()))
            .collect();
        for (name, pattern) in stale {
            let values = Arc::new(OnceLock::new());
            patterns.insert_mut(name, Pattern { values, ..pattern });
        }
    }

    /// Schemes that are known no more, and those whose resources are others.
    fn settle_schemes(&mut self) {
        let known = |catalog: &Catalog, scheme: &str| {
            catalog.scheme_hashes.contains_key(scheme)
                || catalog
                    .families()
                    .iter()
                    .any(|family| family.parsed.scheme() == scheme)
        };
        let (before, now) = (self.before, &self.catalog);
        let families = |catalog: &Catalog| -> Vec<String> {
            let families = catalog.families().iter();
            families.map(|family| family.template.clone()).collect()
        };
        let mut schemes: BTreeSet<Arc<str>> = BTreeSet::new();
        if !Arc::ptr_eq(&before.library, &now.library) {
            self.difference.resources_list |= families(before) != families(now);
            let declared = before.families().iter();
            schemes.extend(declared.map(|family| Arc::from(family.parsed.scheme())));
        }
        let hashes = [&before.scheme_hashes, &now.scheme_hashes];
        for scheme in hashes.into_iter().flat_map(|hashes| hashes.keys()) {
            if before.scheme_hashes.get(scheme) != now.scheme_hashes.get(scheme) {
                let folders = before.parts.reach.folders(scheme);
                self.difference.reached.extend(folders.cloned());
                schemes.insert(scheme.clone());
            }
        }
        let lost: Vec<Arc<str>> = schemes
            .into_iter()
            .filter(|scheme| known(before, scheme) && !known(now, scheme))
            .collect();
        for scheme in lost {
            self.recheck(&Rest::Scheme(scheme));
        }
    }

    /// Parses, links and checks the prompts that changed or rest on what did.
    fn check_prompts(&mut self, run_examples: RunExamples<'_>) -> io::Result<()> {
        self.check
            .extend(self.catalog.parts.failing.iter().cloned());
        let mut todo = Vec::new();
        for path in std::mem::take(&mut self.check) {
            let Some(entry) = self.catalog.parts.pieces.get(&path).map(Piece::entry) else {
                continue;
            };
            if let Some(problem) = too_large(self.tree, &entry, self.limits)? {
                self.checked(&path, None, vec![problem], Arc::default());
            } else {
                let bytes = self.tree.read(&entry)?;
                todo.push((entry, bytes));
            }
        }
        let catalog = &self.catalog;
        let checked = parallel(todo, |(entry, bytes)| {
            let noting = catalog.noting();
            let partials = &catalog.parts.partials;
            let (prompt, mut problems) =
                check_prompt(&entry, &bytes, partials, &noting, run_examples);
            let clean = withhold(&entry.path, &bytes, &mut problems);
            let prompt = prompt.filter(|_| clean);
            (entry.path, prompt, problems, noting.noted())
        });
        // which prompts had nothing left is chance: one finding stands for all, and the next build checks each again
        let mut over = None;
        let mut unchecked = 0;
        for (path, prompt, mut problems, looked) in checked {
            let at = problems
                .iter()
                .position(|p| p.code == examples::OVER_BUDGET);
            if let Some(at) = at {
                unchecked += 1;
                over = Some(problems.remove(at));
            }
            self.checked(&path, prompt, problems, looked);
        }
        let group = findings::group("check", "budget");
        if over.is_some() || !self.catalog.parts.findings.of(&group).is_empty() {
            let hint = format!(
                "{unchecked} of the prompts were not checked to the end; make what they render smaller, give them fewer \
                 examples, publish them in parts, or have who runs the server raise the limit"
            );
            let found = over.map(|problem| Problem {
                hint: Some(hint),
                ..problem
            });
            self.found(&group, found.into_iter().collect());
        }
        Ok(())
    }

    /// Keeps what a check gave.
    fn checked(
        &mut self,
        path: &Arc<str>,
        prompt: Option<Arc<Prompt>>,
        problems: Vec<Problem>,
        looked: Arc<[Arc<str>]>,
    ) {
        self.found(path, problems);
        self.relist.insert(path.clone());
        let parts = &mut self.catalog.parts;
        let Some(piece) = parts.pieces.get_mut(path) else {
            return;
        };
        let old = match &piece.content {
            Content::Prompt {
                prompt: Some(prompt),
                looked,
            } => rests(prompt, looked),
            _ => BTreeSet::new(),
        };
        let new = match &prompt {
            Some(prompt) => rests(prompt, &looked),
            None => BTreeSet::new(),
        };
        if prompt.is_some() {
            parts.failing.remove_mut(path);
        } else {
            parts.failing.insert_mut(path.clone());
        }
        piece.content = Content::Prompt { prompt, looked };
        parts.dependents.replace(path, &old, new);
    }

    /// Lists what is good and has a name of its own.
    fn list_prompts(&mut self) {
        // an edit takes its name and leaves it: that is no change
        let (old, new) = (&self.before.parts.stems, &self.catalog.parts.stems);
        self.stems
            .retain(|stem| !old.paths(stem).eq(new.paths(stem)));
        for stem in &self.stems {
            self.relist.extend(new.paths(stem).cloned());
        }
        let relist = std::mem::take(&mut self.relist);
        for path in &relist {
            let name = stem(path);
            if let Some(prompt) = self.catalog.by_name.get(name).cloned()
                && prompt.path == *path
            {
                self.catalog.unlist(&prompt);
            }
        }
        for path in &relist {
            let parts = &self.catalog.parts;
            if let Some(Piece {
                content:
                    Content::Prompt {
                        prompt: Some(prompt),
                        ..
                    },
                ..
            }) = parts.pieces.get(path)
                && parts.stems.count(&folded(path)) == 1
            {
                let prompt = prompt.clone();
                self.catalog.list_prompt(&prompt);
            }
        }
        let names: BTreeSet<&str> = relist.iter().map(|path| stem(path)).collect();
        for name in names {
            let before = self.before.by_name.get(name).cloned();
            let after = self.catalog.by_name.get(name).cloned();
            self.difference.note(before, after);
        }
        for stem in self.stems.clone() {
            let problems = clashes(&self.catalog.parts.stems, &stem);
            self.found(&findings::group("prompt", &stem), problems);
        }
    }

    /// Labels name prompts that exist; one may have problems of its own.
    fn check_labels(&mut self) {
        if !self.labels && (self.stems.is_empty() || self.catalog.parts.labels.is_none()) {
            return;
        }
        let mut problems = Vec::new();
        let parts = &self.catalog.parts;
        if let Some(labels) = &parts.labels {
            let known = |name: &str| {
                let folded = name.replace('-', "_");
                let mut paths = parts.stems.paths(&folded);
                paths.any(|path| stem(path) == name)
            };
            let names = || parts.stems.iter().map(|path| stem(path));
            library::check_labels(&labels.0, &labels.1, known, names, &mut problems);
        }
        self.found(&findings::group("labels", ""), problems);
    }
}

impl Catalog {
    pub(super) fn unlist(&mut self, prompt: &Prompt) {
        let name = prompt.name.as_str();
        self.prompts
            .remove_mut(list_key(&prompt.folder, name).as_str());
        self.by_name.remove_mut(name);
        self.parts.reach.remove(prompt);
        for pattern in patterns(prompt) {
            match self.parts.patterns.get_mut(pattern) {
                Some(found) if found.count > 1 => found.count -= 1,
                _ => {
                    self.parts.patterns.remove_mut(pattern);
                }
            }
        }
    }

    pub(super) fn list_prompt(&mut self, prompt: &Arc<Prompt>) {
        let name = prompt.name.as_str();
        let key = list_key(&prompt.folder, name);
        self.prompts.insert_mut(key.into(), prompt.clone());
        self.by_name.insert_mut(name.into(), prompt.clone());
        self.parts.reach.add(prompt);
        for pattern in patterns(prompt) {
            if let Some(found) = self.parts.patterns.get_mut(pattern) {
                found.count += 1;
            } else if let Ok(template) = UriTemplate::parse(pattern) {
                let found = Pattern {
                    count: 1,
                    template: Arc::new(template),
                    values: Arc::default(),
                };
                self.parts.patterns.insert_mut(pattern.into(), found);
            }
        }
    }
}

/// Adds the secrets of a text to its problems; false when there is one, and nothing of the file is to be served.
pub(super) fn withhold(path: &Arc<str>, bytes: &[u8], problems: &mut Vec<Problem>) -> bool {
    let found = secrets::find(path, bytes);
    if found.is_empty() {
        return true;
    }
    secrets::redact(&found, problems);
    problems.extend(found);
    false
}

/// The patterns of a prompt's arguments.
fn patterns(prompt: &Prompt) -> impl Iterator<Item = &str> {
    let arguments = prompt.arguments.iter();
    arguments.filter_map(|argument| argument.values.resource.as_deref())
}
