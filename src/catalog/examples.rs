//! Examples are tests: each is rendered at every check of what it depends on.

use crate::prompt::parse::PromptFile;
use crate::prompt::problem::{Problem, Severity};
use crate::prompt::{BoundArguments, Content, Limits, Prompt, RenderError, Rendered, render};

use super::Catalog;

/// How a build runs the examples of a prompt: [`run`] in this process, or elsewhere.
pub type RunExamples<'a> = &'a (dyn Fn(&Prompt, &PromptFile, &Catalog) -> Vec<Problem> + Sync);

/// Runs none, for who looks only at the text.
pub fn none(_: &Prompt, _: &PromptFile, _: &Catalog) -> Vec<Problem> {
    Vec::new()
}

/// Renders every example of a prompt and looks for what it expects.
pub fn run(prompt: &Prompt, file: &PromptFile, catalog: &Catalog) -> Vec<Problem> {
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
        let rendered = match outcome(prompt, given, catalog) {
            Ok(rendered) => rendered,
            Err(message) => {
                let message = format!("example `{}` fails: {message}", example.name);
                error("example-fails", places.whole.clone(), message, None);
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
    problems.extend(unaided(prompt, file, catalog));
    problems
}

/// Renders a prompt as somebody calls it who gives no more than they must: what fails then would fail at serve.
/// With examples, required arguments have been tried; without, a stand-in is given for them.
fn unaided(prompt: &Prompt, file: &PromptFile, catalog: &Catalog) -> Option<Problem> {
    let required: Vec<_> = prompt
        .arguments
        .iter()
        .filter(|a| a.required && a.default.is_none())
        .collect();
    if !required.is_empty() && !prompt.examples.is_empty() {
        return None;
    }
    let given = required.iter().map(|argument| {
        let listed = argument.values.list.first().map(String::as_str);
        (&*argument.name, listed.unwrap_or("example"))
    });
    let bound = BoundArguments::bind(&prompt.arguments, given, &catalog.limits).ok()?;
    // a resource that such values do not find is no fault of the template
    let mut resources = catalog.resolve(prompt, &bound).ok()?;
    "example".clone_into(&mut resources.nonce);
    let error = render(prompt, &bound, &resources, &catalog.limits).err()?;
    let (when, hint) = if required.is_empty() {
        (
            "when no argument is given",
            "give the argument a default, or ask for it first: {% if name %}",
        )
    } else {
        (
            "with stand-ins for its required arguments",
            "add an example with values that work",
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

fn outcome<'a>(
    prompt: &Prompt,
    given: impl Iterator<Item = (&'a str, &'a str)>,
    catalog: &Catalog,
) -> Result<Rendered, String> {
    let limits: &Limits = &catalog.limits;
    let bound =
        BoundArguments::bind(&prompt.arguments, given, limits).map_err(|e| e.to_string())?;
    let mut resources = catalog.resolve(prompt, &bound).map_err(|e| e.to_string())?;
    "example".clone_into(&mut resources.nonce);
    render(prompt, &bound, &resources, limits).map_err(|error: RenderError| error.to_string())
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
