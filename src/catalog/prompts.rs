//! Prompts in their library: the checks of one prompt that need the rest.

use std::collections::BTreeMap;
use std::sync::Arc;

use crate::prompt::closure::{self, Partials};
use crate::prompt::parse::{self, PromptFile};
use crate::prompt::problem::{Problem, Severity, nearest};
use crate::prompt::scan;
use crate::prompt::{Embed, Prompt};

use super::examples::RunExamples;
use super::tree::Entry;
use super::uri::UriTemplate;
use super::{Catalog, Lookup};

/// Parses, links and checks one prompt and runs its examples; gives it when it is good.
pub(super) fn check_prompt(
    entry: &Entry,
    bytes: &[u8],
    partials: &Partials,
    catalog: &Catalog,
    run_examples: RunExamples<'_>,
) -> (Option<Arc<Prompt>>, Vec<Problem>) {
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
    (prompt, found)
}

/// A text that is not saved, checked with the rest of a library.
#[derive(Debug)]
pub struct Draft {
    /// What was found in it.
    pub problems: Vec<Problem>,
    /// The prompt; none when an error keeps it from being rendered.
    pub prompt: Option<Prompt>,
}

impl Catalog {
    /// Checks a prompt's text, and partials by path, as if they were saved in this library. Examples are not run.
    pub fn draft(&self, path: &str, text: &str, partials: &BTreeMap<String, String>) -> Draft {
        let mut problems = Vec::new();
        let mut all = self.parts.partials.clone();
        for (path, text) in partials {
            let read = parse::partial(
                &path.as_str().into(),
                text.as_bytes(),
                &self.limits,
                &mut problems,
            );
            if let Some(partial) = read {
                closure::compile_partial(&partial, &mut problems);
                all.insert_mut(partial.name.clone(), Arc::new(partial));
            }
        }
        let file = parse::prompt_file(&path.into(), text.as_bytes(), &self.limits, &mut problems);
        let prompt = file.and_then(|file| {
            let prompt = closure::link(&file, &all, &self.limits, &mut problems)?;
            in_library(self, &file, &mut problems);
            prompt.release();
            (!problems.iter().any(Problem::is_error)).then_some(prompt)
        });
        Draft { problems, prompt }
    }
}

/// The literal scheme of a binding's URI; `None` when an argument gives it.
pub(super) fn literal_scheme(uri: &str) -> Option<&str> {
    let (scheme, _) = uri.split_once("://")?;
    (!scheme.contains('{')).then_some(scheme)
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
                        "`{}` is of type {}, not {wanted}…",
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
            format!("write it as \"{shown}\""),
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
