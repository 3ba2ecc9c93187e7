//! The library format from bytes to messages, without git, files or network.
//!
//! Tests named `t…`, `f…`, `n…` and `v…` are the faults that other registries shipped, each with its siblings.

mod fidelity;
mod files;
mod frozen;
mod markers;
mod names;
mod regressions;
mod secrets;
mod templates;

use cuebook::catalog::build::{Built, build_and_run};
use cuebook::catalog::{MemoryTree, Revision};
use cuebook::prompt::{BoundArguments, Content, Limits, Message, Prompt, render};

/// A library in memory.
pub(crate) fn tree(files: &[(&str, &str)]) -> MemoryTree {
    files
        .iter()
        .fold(MemoryTree::default(), |tree, (path, text)| {
            tree.with(path, text.as_bytes())
        })
}

/// The check of a publish.
pub(crate) fn build(tree: &MemoryTree, limits: &Limits) -> Built {
    build_and_run(tree, Revision::WorkTree, limits, None).unwrap()
}

/// The check of a library given as paths and texts, with the default limits.
pub(crate) fn built(files: &[(&str, &str)]) -> Built {
    build(&tree(files), &Limits::default())
}

/// A library of one prompt, `prompts/t/p.md`.
pub(crate) fn prompt(text: &str) -> Built {
    built(&[(PATH, text)])
}

/// Where the prompt of most tests lies.
pub(crate) const PATH: &str = "prompts/t/p.md";

/// A prompt file with these arguments (`name` or `name!` for a required one) and this body.
pub(crate) fn with_arguments(arguments: &str, body: &str) -> String {
    let mut text = String::from("---\ndescription: A prompt\n");
    if !arguments.is_empty() {
        text.push_str("arguments:\n");
    }
    for name in arguments.split_whitespace() {
        let (name, required) = match name.strip_suffix('!') {
            Some(name) => (name, true),
            None => (name, false),
        };
        text.push_str(&format!("  - name: {name}\n    required: {required}\n"));
    }
    text + "---\n" + body
}

/// Lines that [`with_arguments`] puts before the body when there are no arguments.
pub(crate) const HEAD_LINES: u32 = 3;

/// Problems as `path:line:col severity code`.
pub(crate) fn places(built: &Built) -> Vec<String> {
    built
        .problems
        .iter()
        .map(|p| {
            format!(
                "{}:{}:{} {} {}",
                p.path,
                p.line,
                p.column,
                p.severity.as_str(),
                p.code
            )
        })
        .collect()
}

/// The codes of the errors, in order.
pub(crate) fn errors(built: &Built) -> Vec<&'static str> {
    built
        .problems
        .iter()
        .filter(|p| p.is_error())
        .map(|p| p.code)
        .collect()
}

/// Problems with their messages and hints, for looking into a failure and for what must be named in them.
pub(crate) fn told(built: &Built) -> String {
    built
        .problems
        .iter()
        .map(|p| format!("{} [{}]\n", p.one_line(), p.hint.as_deref().unwrap_or("-")))
        .collect()
}

/// Why a prompt gives no messages.
pub(crate) fn try_messages(
    built: &Built,
    name: &str,
    arguments: &[(&str, &str)],
) -> Result<Vec<(&'static str, String)>, String> {
    let catalog = &built.catalog;
    let prompt = catalog
        .prompt(name)
        .ok_or_else(|| format!("no prompt {name}: {}", told(built)))?;
    messages_of(built, prompt, arguments)
}

fn messages_of(
    built: &Built,
    prompt: &Prompt,
    arguments: &[(&str, &str)],
) -> Result<Vec<(&'static str, String)>, String> {
    let limits = built.catalog.limits();
    let bound = BoundArguments::bind(&prompt.arguments, arguments.iter().copied(), limits)
        .map_err(|e| e.to_string())?;
    let mut resources = built
        .catalog
        .resolve(prompt, &bound)
        .map_err(|e| e.to_string())?;
    "n0nce".clone_into(&mut resources.nonce);
    let rendered = render(prompt, &bound, &resources, limits).map_err(|e| e.to_string())?;
    Ok(rendered.messages.iter().map(shown).collect())
}

/// Role and text; of a resource `[how uri]`, then its text.
fn shown(message: &Message) -> (&'static str, String) {
    let text = match &message.content {
        Content::Text(text) => text.clone(),
        Content::Resource {
            resource, embed, ..
        } => format!(
            "[{} {}]{}",
            embed.as_str(),
            resource.uri,
            resource.text().unwrap_or_default()
        ),
    };
    (message.role.as_str(), text)
}

/// The messages of a prompt that must render.
#[track_caller]
pub(crate) fn messages(
    built: &Built,
    name: &str,
    arguments: &[(&str, &str)],
) -> Vec<(&'static str, String)> {
    try_messages(built, name, arguments).unwrap_or_else(|e| panic!("{e}"))
}

/// The one message of a prompt `p` that must have passed the check without an error.
#[track_caller]
pub(crate) fn text(built: &Built, arguments: &[(&str, &str)]) -> String {
    assert_eq!(errors(built), Vec::<&str>::new(), "{}", told(built));
    let mut all = messages(built, "p", arguments);
    assert_eq!(all.len(), 1, "{all:?}");
    all.remove(0).1
}

/// Puts in what the problems of a file say, again and again, as `cuebook check --fix` does.
pub(crate) fn fixed(text: &str) -> String {
    let mut text = text.to_owned();
    loop {
        let built = prompt(&text);
        let fixes: Vec<_> = built
            .problems
            .iter()
            .flat_map(|p| p.fix.iter().cloned())
            .collect();
        if fixes.is_empty() {
            return text;
        }
        text = cuebook::prompt::problem::insert(&text, fixes);
    }
}
