//! Prompts in their library: the checks of one prompt that need the rest, and what a check rests on.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use sha2::{Digest, Sha256};

use crate::prompt::closure::{self, Partials};
use crate::prompt::parse::{self, PromptFile, hex};
use crate::prompt::problem::{Problem, Severity, nearest};
use crate::prompt::scan;
use crate::prompt::{Embed, Prompt};

use super::build::stem;
use super::examples::RunExamples;
use super::tree::Entry;
use super::uri::UriTemplate;
use super::{Catalog, Lookup};

/// Files whose names differ in their Unicode form alone: which one is meant cannot be known.
pub(super) fn one_form<'a>(
    paths: impl Iterator<Item = &'a Arc<str>>,
    folder: &str,
    problems: &mut Vec<Problem>,
) {
    let mut by_name: BTreeMap<String, BTreeSet<&Arc<str>>> = BTreeMap::new();
    for path in paths {
        by_name
            .entry(parse::file_name(path, folder))
            .or_default()
            .insert(path);
    }
    for path in by_name.values().flat_map(|paths| paths.iter().skip(1)) {
        problems.push(Problem::whole(
            Severity::Error,
            "duplicate-name",
            path,
            "another file has this name in another Unicode form".into(),
            Some("remove one of them".into()),
        ));
    }
}

/// Paths whose names are not unique, also when `-` and `_` are one.
pub(super) fn clashes(prompts: &[&Entry], problems: &mut Vec<Problem>) -> BTreeSet<Arc<str>> {
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

pub(super) type CheckedPrompt = Option<(Arc<Prompt>, Arc<str>)>;

/// Parses, links and checks one prompt and runs its examples; gives it with its render hash when it is good.
pub(super) fn check_prompt(
    entry: &Entry,
    bytes: &[u8],
    partials: &Partials,
    catalog: &Catalog,
    run_examples: RunExamples<'_>,
) -> (CheckedPrompt, Vec<Problem>) {
    let mut found = Vec::new();
    let file = parse::prompt_file(&entry.path, bytes, &catalog.limits, &mut found);
    let prompt = file.as_ref().and_then(|file| {
        let prompt = closure::link(file, partials, &catalog.limits, &mut found)?;
        in_library(catalog, file, &mut found);
        if !found.iter().any(Problem::is_error) {
            found.extend(run_examples(&prompt, file, catalog));
        }
        // ten times its source in memory, and most prompts are not rendered before the next check
        prompt.release();
        (!found.iter().any(Problem::is_error)).then(|| Arc::new(prompt))
    });
    let checked = prompt.map(|prompt| {
        let hash = render_hash(catalog, &prompt);
        (prompt, hash)
    });
    (checked, found)
}

/// Schemes whose resources differ from those of the previous catalog.
pub(super) fn moved_schemes(previous: Option<&Catalog>, catalog: &Catalog) -> BTreeSet<Arc<str>> {
    let Some(previous) = previous else {
        return BTreeSet::new();
    };
    let (old, new) = (&previous.scheme_hashes, &catalog.scheme_hashes);
    old.keys()
        .chain(new.keys())
        .filter(|scheme| old.get(*scheme) != new.get(*scheme))
        .cloned()
        .collect()
}

/// Whether a binding of a prompt can reach a resource of one of these schemes.
pub(super) fn reaches(prompt: &Prompt, schemes: &BTreeSet<Arc<str>>) -> bool {
    !schemes.is_empty()
        && prompt
            .bindings
            .iter()
            .any(|b| literal_scheme(&b.uri).is_none_or(|scheme| schemes.contains(scheme)))
}

pub(super) fn same_closure(prompt: &Prompt, partials: &Partials) -> bool {
    prompt.partials.iter().all(|old| {
        partials
            .get(&old.name)
            .is_some_and(|new| Arc::ptr_eq(old, new))
    })
}

/// What decides the checks of `in_library` besides resources a prompt is bound to: schemes and values files.
pub(super) fn surroundings(catalog: &Catalog) -> Arc<str> {
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
            if let Some((message, hint)) = template_fault(&binding.uri) {
                error("resource-uri", at.clone(), message, Some(hint));
            }
            continue;
        }
        match catalog.resource(&binding.uri) {
            Lookup::Found(resource) => {
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
            Lookup::Missing => {
                let hint = catalog
                    .near(&binding.uri)
                    .first()
                    .map(|near| format!("did you mean `{near}`?"));
                error(
                    "missing-resource",
                    at.clone(),
                    format!("there is no resource `{}`", binding.uri),
                    hint,
                );
            }
            Lookup::Invalid(fault) => {
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
                || {
                    if name.contains(['/', '\\']) || name.strip_suffix(".txt").is_none() {
                        "name a file under values/, like \"services.txt\"".to_owned()
                    } else {
                        format!("create values/{name}")
                    }
                },
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

/// What makes a URI template one that never finds anything.
fn template_fault(uri: &str) -> Option<(String, String)> {
    let constructs = scan::scan(uri);
    // a value is no slash, so that a segment with one in it is none of those looked for
    let mut literal = String::new();
    let mut at = 0;
    for construct in &constructs {
        literal.push_str(&uri[at..construct.span.start]);
        literal.push('\u{1}');
        at = construct.span.end;
    }
    literal.push_str(&uri[at..]);
    if literal.contains(['{', '}']) {
        let shown = uri.replace('{', "{{ ").replace('}', " }}");
        return Some((
            format!("`{uri}` has single braces, which are literal text here"),
            format!("write \"{shown}\""),
        ));
    }
    let Some((scheme, path)) = literal.split_once("://") else {
        let whole = literal.starts_with('\u{1}');
        return (!whole).then(|| {
            (
                format!("`{uri}` is no resource URI"),
                "like \"runbook://{{ service }}\"".to_owned(),
            )
        });
    };
    if !scheme.contains('\u{1}') && path.split('/').any(|s| matches!(s, "" | "." | "..")) {
        return Some((
            format!("`{uri}` finds nothing: its path has an empty, `.` or `..` segment"),
            "name the path below resources/<scheme>/".to_owned(),
        ));
    }
    None
}
