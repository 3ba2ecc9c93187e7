//! Warnings: what is allowed and will still surprise somebody in some client.

use std::ops::Range;

use super::message::Role;
use super::parse::{Part, PromptFile};
use super::problem::{Problem, Severity};
use super::source::Source;

/// Names that clients use for commands of their own, and one client for each.
const CLIENT_COMMANDS: &[(&str, &str)] = &[
    ("help", "Gemini CLI"),
    ("clear", "Gemini CLI"),
    ("init", "Claude Code"),
    ("chat", "Gemini CLI"),
    ("mcp", "Gemini CLI"),
    ("quit", "Gemini CLI"),
    ("exit", "Claude Code"),
    ("compact", "Claude Code"),
    ("config", "Claude Code"),
    ("cost", "Claude Code"),
    ("doctor", "Claude Code"),
    ("login", "Claude Code"),
    ("logout", "Claude Code"),
    ("memory", "Claude Code"),
    ("model", "Claude Code"),
    ("review", "Claude Code"),
    ("settings", "Gemini CLI"),
    ("status", "Claude Code"),
    ("theme", "Gemini CLI"),
    ("tools", "Gemini CLI"),
    ("undo", "opencode"),
    ("redo", "opencode"),
    ("share", "opencode"),
    ("sessions", "opencode"),
    ("models", "opencode"),
    ("compress", "Gemini CLI"),
    ("copy", "Gemini CLI"),
    ("restore", "Gemini CLI"),
    ("stats", "Gemini CLI"),
    ("new", "VS Code"),
    ("fix", "VS Code"),
    ("explain", "VS Code"),
    ("tests", "VS Code"),
    ("agents", "Claude Code"),
    ("permissions", "Claude Code"),
];

/// The warnings of one prompt file.
pub fn file(file: &PromptFile, problems: &mut Vec<Problem>) {
    let source = &file.source;
    let front = &file.front;
    let mut warn = |code, span: Range<usize>, message: String, hint: &str| {
        problems.push(source.problem(
            Severity::Warning,
            code,
            span,
            message,
            Some(hint.to_owned()),
        ));
    };
    if let Some((name, client)) = CLIENT_COMMANDS
        .iter()
        .find(|(name, _)| *name == file.name.as_str())
    {
        warn(
            "client-command",
            0..0,
            format!(
                "`{name}` is a command of {client} itself, which may hide this prompt or rename it"
            ),
            "give it a name that says more",
        );
    }
    if front.description.is_none() && !front.unreadable {
        warn(
            "no-description",
            0..0,
            "the prompt has no description; most clients show nothing else in their menu".into(),
            "add `description: …` to the front matter",
        );
    }
    let mut optional = None;
    for (argument, places) in front.arguments.iter().zip(&front.argument_places) {
        if !argument.required {
            optional = Some(&argument.name);
        } else if let Some(before) = optional {
            warn(
                "argument-order",
                places.name.clone(),
                format!(
                    "required argument `{}` comes after the optional `{before}`",
                    argument.name
                ),
                "clients that fill arguments by position then ask for the wrong one; put required ones first",
            );
        }
    }
    match file.parts.first() {
        Some(Part::Text {
            role: Role::Assistant,
            span,
        }) => warn(
            "first-message",
            span.start..span.start,
            "the first message is the assistant's".into(),
            "Gemini CLI reads only the first message and wants it from the user; begin with user text",
        ),
        Some(Part::Resource { .. }) => warn(
            "first-message",
            file.body.start..file.body.start,
            "the first message is a resource".into(),
            "Gemini CLI reads only the first message and wants text; begin with user text",
        ),
        _ => {}
    }
    executed(source, &file.body, problems);
}

/// Findings of one kind in one file; a text full of them needs no more to be understood.
const MAX_OF_A_KIND: usize = 20;

/// Text that some clients would run or replace, in a prompt's body or a partial.
pub(super) fn executed(source: &Source, part: &Range<usize>, problems: &mut Vec<Problem>) {
    let body = &source.text[part.clone()];
    let stands_free = |i: usize| {
        body[..i]
            .chars()
            .next_back()
            .is_none_or(|c| c.is_whitespace() || c == '(')
    };
    let mut warn =
        |found: &mut dyn Iterator<Item = usize>, length: usize, message: &str, hint: &str| {
            for at in found.take(MAX_OF_A_KIND) {
                let start = part.start + at;
                problems.push(source.problem(
                    Severity::Warning,
                    "client-executes",
                    start..start + length,
                    message.to_owned(),
                    Some(hint.to_owned()),
                ));
            }
        };
    warn(
        &mut body
            .match_indices("!`")
            .map(|(i, _)| i)
            .filter(|i| stands_free(*i)),
        2,
        "opencode and Claude Code run what stands between !` and ` as a shell command",
        "write the command without the exclamation mark",
    );
    warn(
        &mut body.match_indices("$ARGUMENTS").map(|(i, _)| i),
        10,
        "opencode replaces $ARGUMENTS with what the person typed",
        "use a declared argument",
    );
    warn(
        &mut body
            .match_indices('@')
            .map(|(i, _)| i)
            .filter(|i| stands_free(*i) && is_path(&body[i + 1..])),
        1,
        "opencode and Gemini CLI read `@path` as a file to attach",
        "write the path without @",
    );
}

/// Longest path that is looked for, in characters.
const MAX_PATH: usize = 256;

/// Whether a text begins with what looks like a path: `src/main.rs`, `./x`, `~/x`.
fn is_path(text: &str) -> bool {
    let end = text
        .char_indices()
        .nth(MAX_PATH)
        .map_or(text.len(), |(i, _)| i);
    let text = &text[..end];
    let begins = text.starts_with(|c: char| c.is_alphanumeric() || matches!(c, '.' | '/' | '~'));
    let word = || {
        text.split(|c: char| c.is_whitespace() || matches!(c, ')' | ',' | '`' | '"'))
            .next()
            .unwrap_or_default()
    };
    begins && word().contains(['/', '.']) && !word().ends_with('.')
}
