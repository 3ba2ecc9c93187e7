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
    if front.description.is_none() {
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

/// Text that some clients would run or replace, in a prompt's body or a partial.
pub(super) fn executed(source: &Source, part: &Range<usize>, problems: &mut Vec<Problem>) {
    let body = &source.text[part.clone()];
    let mut warn = |at: usize, length: usize, message: &str, hint: &str| {
        let span = part.start + at..part.start + at + length;
        problems.push(source.problem(
            Severity::Warning,
            "client-executes",
            span,
            message.to_owned(),
            Some(hint.to_owned()),
        ));
    };
    for (i, _) in body.match_indices("!`") {
        if i == 0 || body[..i].ends_with(|c: char| c.is_whitespace()) {
            warn(
                i,
                2,
                "opencode and Claude Code run what stands between !` and ` as a shell command",
                "write the command without the exclamation mark",
            );
        }
    }
    for (i, _) in body.match_indices("$ARGUMENTS") {
        warn(
            i,
            10,
            "opencode replaces $ARGUMENTS with what the person typed",
            "use a declared argument",
        );
    }
    for (i, _) in body.match_indices('@') {
        let before = body[..i].chars().next_back();
        let after = body[i + 1..].chars().next();
        let is_path = body[i + 1..]
            .split(|c: char| c.is_whitespace() || matches!(c, ')' | ',' | '`' | '"'))
            .next()
            .is_some_and(|word| word.contains(['/', '.']) && !word.ends_with('.'));
        if before.is_none_or(|c| c.is_whitespace() || c == '(')
            && after.is_some_and(|c| c.is_alphanumeric() || matches!(c, '.' | '/' | '~'))
            && is_path
        {
            warn(
                i,
                1,
                "opencode and Gemini CLI read `@path` as a file to attach",
                "write the path without @",
            );
        }
    }
}
