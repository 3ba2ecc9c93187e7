//! Examples are tests: each is rendered at every check of what it depends on. And the gate: a prompt that hits a limit
//! with its examples, with nothing, or with much, is not published.

use std::collections::BTreeMap;

use crate::prompt::parse::PromptFile;
use crate::prompt::problem::{Problem, Severity};
use crate::prompt::render::{Stopped, render_uri};
use crate::prompt::scan;
use crate::prompt::{
    BoundArguments, Content, Lane, Limits, Prompt, RenderError, Rendered, ResolvedResources, render,
};

use super::{Catalog, Lookup, ResolveError};

/// What much text is made of: everything that a template may split, count or escape by.
const MUCH: &str = "one, two; \"three\" | four: <five> & six/seven = 8\n  - a line\t한글\n";

/// How a build runs the examples of a prompt: [`run`] in this process, or [`run_with`] elsewhere.
pub type RunExamples<'a> = &'a (dyn Fn(&Prompt, &PromptFile, &Catalog) -> Vec<Problem> + Sync);

/// How a prompt is rendered.
pub type Render<'a> = &'a (
        dyn Fn(
    &Prompt,
    &BoundArguments,
    &ResolvedResources,
    &Limits,
) -> Result<Rendered, RenderError>
            + Sync
    );

/// Runs none, for who looks only at the text.
pub fn none(_: &Prompt, _: &PromptFile, _: &Catalog) -> Vec<Problem> {
    Vec::new()
}

/// Renders the examples in this process, which nothing bounds: for libraries whose templates are trusted.
pub fn run(prompt: &Prompt, file: &PromptFile, catalog: &Catalog) -> Vec<Problem> {
    with_little(&render, prompt, file, catalog)
}

/// The gate: renders every example elsewhere, then the prompt with little and with much.
pub fn run_with(
    render: Render<'_>,
    prompt: &Prompt,
    file: &PromptFile,
    catalog: &Catalog,
) -> Vec<Problem> {
    let mut problems = with_little(render, prompt, file, catalog);
    if problems.is_empty() {
        problems.extend(with_much(render, prompt, file, catalog));
    }
    problems
}

/// Renders every example of a prompt and looks for what it expects, and the prompt with as little as it needs.
fn with_little(
    render: Render<'_>,
    prompt: &Prompt,
    file: &PromptFile,
    catalog: &Catalog,
) -> Vec<Problem> {
    let mut problems = Vec::new();
    let front = &file.front;
    for (example, places) in front.examples.iter().zip(&front.example_places) {
        let mut error =
            |code, span: std::ops::Range<usize>, message: String, hint: Option<String>| {
                problems.push(
                    file.source
                        .problem(Severity::Error, code, span, message, hint),
                );
            };
        let given = example
            .arguments
            .iter()
            .map(|(n, v)| (n.as_str(), v.as_str()));
        let rendered = match outcome(render, prompt, file, given, catalog) {
            Ok(rendered) => rendered,
            Err(failed) => {
                let message = format!("example `{}` fails: {failed}", example.name);
                if let Failed::NoVerdict(problem) = failed {
                    return vec![*problem];
                }
                error("example-fails", places.whole.clone(), message, None);
                // the others would only burn as much again
                if let Failed::Limit(_) = failed {
                    return problems;
                }
                continue;
            }
        };
        let text = full_text(&rendered);
        for (expected, span) in example.expect.iter().zip(&places.expect) {
            if !text.contains(expected.as_str()) {
                error(
                    "example-expect",
                    span.clone(),
                    format!("example `{}` does not contain this text", example.name),
                    Some(format!(
                        "see what it gives: cuebook render {}{}",
                        prompt.name,
                        shell_arguments(example)
                    )),
                );
            }
        }
    }
    problems.extend(unaided(render, prompt, file, catalog));
    problems
}

/// Renders a prompt with much text in its arguments: only a limit refuses, for such values may well make no sense to it.
///
/// An output that is too long only because each argument is written out so often is none of the template's faults: whoever
/// calls it with less gets it. So the output limit refuses what grows faster than its arguments: it is hit also with values
/// so short that all mentions of them together are a quarter of it.
fn with_much(
    render: Render<'_>,
    prompt: &Prompt,
    file: &PromptFile,
    catalog: &Catalog,
) -> Option<Problem> {
    if prompt.arguments.is_empty() {
        return None;
    }
    let limits = &catalog.limits;
    let bytes = limits.check_arguments_bytes.min(limits.arguments_bytes);
    let share = bytes / prompt.arguments.len();
    let is_fast = matches!(prompt.lane, Lane::Fast(_));
    if !prompt.reads_resources() && prompt.lane.admits(bytes) {
        return None;
    }
    let mut error = stopped_with(render, prompt, catalog, share)?;
    let mut given = share;
    if let RenderError::OutputLimit { .. } = error {
        if is_fast {
            return None;
        }
        given = share.min(limits.output_bytes / 4 / mentions(prompt).max(1));
        if given < share {
            error = stopped_with(render, prompt, catalog, given)?;
        }
    }
    if let Some(problem) = no_verdict(file, &error) {
        return Some(problem);
    }
    let place = match &prompt.lane {
        Lane::Worker(reason) if *reason.path == *file.source.path => file
            .source
            .offset(reason.line as usize, reason.column as usize),
        _ => file.body.start,
    };
    Some(file.source.problem(
        Severity::Error,
        "render-limit",
        place..place,
        format!(
            "the prompt cannot be rendered with {} bytes of arguments in all: {error}",
            given * prompt.arguments.len()
        ),
        Some("loop over less, use an argument less often, or have who runs the server raise the limit".into()),
    ))
}

/// The limit that a render hits with so many bytes of text in each argument, or why it says nothing.
fn stopped_with(
    render: Render<'_>,
    prompt: &Prompt,
    catalog: &Catalog,
    share: usize,
) -> Option<RenderError> {
    let limits = &catalog.limits;
    let mut text = MUCH.repeat(share / MUCH.len() + 1);
    let mut end = share;
    while !text.is_char_boundary(end) {
        end -= 1;
    }
    text.truncate(end);
    let given = prompt.arguments.iter().map(|a| (&*a.name, text.as_str()));
    let bound = BoundArguments::bind(&prompt.arguments, given, limits).ok()?;
    // no resource has such a name; what is there for the examples stands for it
    let mut resources = if prompt.reads_resources() {
        catalog
            .resolve(prompt, &example_arguments(prompt, limits)?)
            .ok()?
    } else {
        ResolvedResources::default()
    };
    "example".clone_into(&mut resources.nonce);
    render(prompt, &bound, &resources, limits)
        .err()
        .filter(RenderError::is_limit)
}

/// How often the templates of a prompt name a value, each text counted once.
fn mentions(prompt: &Prompt) -> usize {
    let in_one = |source: &str| -> usize {
        let constructs = scan::scan(source);
        let named = constructs
            .iter()
            .map(|c| scan::variables(source, c).count());
        named.sum()
    };
    prompt.sources().map(|(_, source)| in_one(&source)).sum()
}

/// The arguments of a prompt's first example, or as few as there must be.
fn example_arguments(prompt: &Prompt, limits: &Limits) -> Option<BoundArguments> {
    match prompt.examples.first() {
        Some(example) => {
            let given = example
                .arguments
                .iter()
                .map(|(n, v)| (n.as_str(), v.as_str()));
            BoundArguments::bind(&prompt.arguments, given, limits).ok()
        }
        None => BoundArguments::bind(&prompt.arguments, stand_ins(prompt), limits).ok(),
    }
}

/// A value for each argument that must have one.
fn stand_ins(prompt: &Prompt) -> impl Iterator<Item = (&str, &str)> {
    prompt
        .arguments
        .iter()
        .filter(|a| a.required && a.default.is_none())
        .map(|argument| {
            let listed = argument.values.list.first().map(String::as_str);
            (&*argument.name, listed.unwrap_or("example"))
        })
}

/// Renders a prompt as somebody calls it who gives no more than they must: what fails then would fail at serve.
/// With examples, required arguments have been tried; without, a stand-in is given for them.
fn unaided(
    render: Render<'_>,
    prompt: &Prompt,
    file: &PromptFile,
    catalog: &Catalog,
) -> Option<Problem> {
    let is_required = stand_ins(prompt).next().is_some();
    if is_required && !prompt.examples.is_empty() {
        return None;
    }
    let bound = BoundArguments::bind(&prompt.arguments, stand_ins(prompt), &catalog.limits).ok()?;
    // a resource that such values do not find is no fault of the template
    let mut resources = catalog.resolve(prompt, &bound).ok()?;
    "example".clone_into(&mut resources.nonce);
    let error = render(prompt, &bound, &resources, &catalog.limits).err()?;
    if let Some(problem) = no_verdict(file, &error) {
        return Some(problem);
    }
    let (when, hint) = if is_required {
        (
            "with stand-ins for its required arguments",
            "add an example with values that work",
        )
    } else {
        (
            "when no argument is given",
            "give the argument a default, or ask for it first: {% if name %}",
        )
    };
    Some(file.source.problem(
        Severity::Error,
        "render-fails",
        file.body.start..file.body.start,
        format!("the prompt cannot be rendered {when}: {error}"),
        Some(hint.into()),
    ))
}

/// The codes of such problems.
const BOUND: [&str; 8] = [
    "missing-resource",
    "unknown-scheme",
    "resource-type",
    "example-fails",
    "example-expect",
    "render-fails",
    "render-limit",
    OVER_BUDGET,
];

/// Whether a problem may tell what a bound resource says, or that it is there.
pub fn tells_of_resources(problem: &Problem) -> bool {
    BOUND.contains(&problem.code)
}

impl Catalog {
    /// What a prompt's text binds, in its examples or without any, that is not in this catalog, which is one as somebody
    /// sees it ([`Catalog::seen`]). Where they may not read all resources of a scheme, a binding that need not find anything
    /// must as well: that it finds nothing would tell what is there.
    pub fn unmet(&self, path: &str, text: &str, sees: &dyn Fn(&str) -> bool) -> Vec<Problem> {
        let mut draft = self.draft(path, text, &BTreeMap::new());
        draft.problems.retain(tells_of_resources);
        let mut problems = draft.problems;
        let Some(prompt) = draft.prompt.filter(|prompt| !prompt.bindings.is_empty()) else {
            return problems;
        };
        for example in &prompt.examples {
            let given = example.arguments.iter();
            let given = given.map(|(n, v)| (n.as_str(), v.as_str()));
            if let Some(error) = self.not_met(&prompt, given, true, sees) {
                let message = format!("example `{}` fails: {error}", example.name);
                problems.push(of_bindings("example-fails", path, message));
            }
        }
        // as the check does it
        let unaided = prompt.examples.is_empty() || stand_ins(&prompt).next().is_none();
        if unaided && let Some(error) = self.not_met(&prompt, stand_ins(&prompt), false, sees) {
            let message = format!("the prompt cannot be rendered without an example: {error}");
            problems.push(of_bindings("render-fails", path, message));
        }
        problems
    }

    /// The first binding that finds nothing and must; with `strict`, one that is required must wherever it looks.
    fn not_met<'a>(
        &self,
        prompt: &Prompt,
        given: impl Iterator<Item = (&'a str, &'a str)>,
        strict: bool,
        sees: &dyn Fn(&str) -> bool,
    ) -> Option<ResolveError> {
        let bound = BoundArguments::bind(&prompt.arguments, given, &self.limits).ok()?;
        prompt.bindings.iter().enumerate().find_map(|(i, binding)| {
            let uri = render_uri(prompt, i, &bound).ok()?;
            let (scheme, _) = uri.split_once("://")?;
            // no file has this name: only who sees the whole folder sees it
            let folder = format!("resources/{}/.", scheme.to_ascii_lowercase());
            let must = (strict && binding.required) || !sees(&folder);
            let missing = matches!(self.resource(&uri), Lookup::Missing);
            (must && missing).then(|| ResolveError::MissingResource {
                binding: binding.name.to_string(),
                near: self.near(&uri),
                uri: uri.chars().take(200).collect(),
            })
        })
    }
}

fn of_bindings(code: &'static str, path: &str, message: String) -> Problem {
    let hint = "bind what you may read, or ask an admin of this server for the role reader there";
    let path = path.into();
    Problem::whole(Severity::Error, code, &path, message, Some(hint.into()))
}

fn outcome<'a>(
    render: Render<'_>,
    prompt: &Prompt,
    file: &PromptFile,
    given: impl Iterator<Item = (&'a str, &'a str)>,
    catalog: &Catalog,
) -> Result<Rendered, Failed> {
    let limits: &Limits = &catalog.limits;
    let bound = BoundArguments::bind(&prompt.arguments, given, limits)
        .map_err(|error| Failed::Template(error.to_string()))?;
    let mut resources = catalog
        .resolve(prompt, &bound)
        .map_err(|error| Failed::Template(error.to_string()))?;
    "example".clone_into(&mut resources.nonce);
    render(prompt, &bound, &resources, limits).map_err(|error| Failed::of(file, &error))
}

/// Why an example was not rendered.
enum Failed {
    /// The template, its arguments or its resources are at fault.
    Template(String),
    /// A limit was hit.
    Limit(String),
    /// It was not tried to its end: no verdict on the prompt.
    NoVerdict(Box<Problem>),
}

impl Failed {
    fn of(file: &PromptFile, error: &RenderError) -> Self {
        if let Some(problem) = no_verdict(file, error) {
            return Self::NoVerdict(Box::new(problem));
        }
        let message = error.to_string();
        if error.is_limit() {
            Self::Limit(message)
        } else {
            Self::Template(message)
        }
    }
}

impl std::fmt::Display for Failed {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Template(message) | Self::Limit(message) => f.write_str(message),
            Self::NoVerdict(problem) => f.write_str(&problem.message),
        }
    }
}

/// The code of a problem that is none of the library's: a render could not be done here and now. A build with one is an
/// error of reading, and is tried again.
pub(super) const NOT_RENDERED: &str = "not-rendered";

/// The code of a problem that stands for all prompts that were not rendered to the end because the check had used up its
/// CPU time; its path is that of the prompt that used the most.
pub const OVER_BUDGET: &str = "check-budget";

/// What an error says that is no verdict on the prompt it was rendered for.
fn no_verdict(file: &PromptFile, error: &RenderError) -> Option<Problem> {
    let (code, path) = match error {
        RenderError::Stopped(Stopped::Check { prompt, .. }) => {
            (OVER_BUDGET, prompt.as_str().into())
        }
        error if error.is_unable() => (NOT_RENDERED, file.source.path.clone()),
        _ => return None,
    };
    let message = error.to_string();
    Some(Problem::whole(Severity::Error, code, &path, message, None))
}

/// All text of a render, embedded text included.
fn full_text(rendered: &Rendered) -> String {
    let mut out = String::new();
    for message in &rendered.messages {
        match &message.content {
            Content::Text(text) => out.push_str(text),
            Content::Resource { resource, .. } => out.push_str(resource.text().unwrap_or_default()),
        }
        out.push('\n');
    }
    out
}

fn shell_arguments(example: &crate::prompt::Example) -> String {
    let mut out = String::new();
    for (name, value) in &example.arguments {
        let value: String = value.replace('\'', "'\\''").chars().take(60).collect();
        out.push_str(&format!(" {name}='{value}'"));
    }
    out
}
