//! How each client shows a prompt, and what of it does not get there: one table, and pure functions over it.

use serde::Serialize;
use utoipa::ToSchema;

use crate::prompt::{Argument, Embed, Prompt, Role};

/// How well a client does with a prompt, best first.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, ToSchema)]
#[serde(rename_all = "lowercase")]
pub enum Fit {
    /// All of it arrives.
    Full,
    /// It works, and something arrives in another shape.
    Adapted,
    /// It has no slash command; the client's model gets it by a tool.
    Tool,
    /// The client does not show it.
    Hidden,
}

/// What a client does otherwise; its text is `fit.<key>`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, ToSchema)]
#[serde(rename_all = "snake_case")]
pub enum Note {
    /// Arguments are split at blanks: a value is one word.
    OneWord,
    /// It is not shown where there is more than one argument.
    TooManyArguments,
    /// Attached resources arrive as text.
    ResourceAsText,
    /// A link or a sound becomes a line with its address.
    LinkAsLine,
    /// Pictures and sounds do not arrive.
    NoMedia,
    /// All messages arrive as one.
    OneMessage,
    /// The assistant's messages arrive as the user's.
    NoAssistant,
    /// With one required argument the rest of the line is its value.
    RestOfLine,
    /// What is decided by a value is decided by its placeholder.
    Placeholders,
    /// Values are not completed.
    NoCompletion,
    /// There are no slash commands: it is asked for by name.
    ToolOnly,
}

/// What a prompt has that a client may not take.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
#[allow(
    clippy::struct_excessive_bools,
    reason = "each is a question of its own"
)]
pub struct Shape {
    /// How many arguments it declares.
    pub arguments: usize,
    /// How many of them are required.
    pub required: usize,
    /// Whether any argument has values to offer.
    pub completes: bool,
    /// Whether it has more than one message.
    pub several: bool,
    /// Whether the assistant speaks in it.
    pub assistant: bool,
    /// Whether it attaches a resource as a block.
    pub resource: bool,
    /// Whether it has a link or a sound.
    pub link: bool,
    /// Whether it has a picture.
    pub image: bool,
    /// Whether a condition or a loop stands in it.
    pub decides: bool,
}

impl Shape {
    /// The shape of a prompt.
    pub fn of(prompt: &Prompt) -> Self {
        let roles: Vec<Role> = prompt.roles().collect();
        let embeds = |wanted: &[Embed]| prompt.bindings.iter().any(|b| wanted.contains(&b.embed));
        Self {
            arguments: prompt.arguments.len(),
            required: prompt.arguments.iter().filter(|a| a.required).count(),
            completes: prompt.arguments.iter().any(|a| !a.values.is_empty()),
            several: roles.len() > 1
                || embeds(&[Embed::Resource, Embed::Link, Embed::Image, Embed::Audio]),
            assistant: roles.contains(&Role::Assistant),
            resource: embeds(&[Embed::Resource]),
            link: embeds(&[Embed::Link, Embed::Audio]),
            image: embeds(&[Embed::Image]),
            decides: prompt.body().contains("{%"),
        }
    }
}

/// How the arguments follow a command.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Style {
    /// One after the other.
    Words,
    /// `--name="value"`.
    Flags,
    /// `name=value`.
    Pairs,
    /// They are asked for.
    Asked,
    /// The one argument follows.
    One,
    /// There is no command: a sentence.
    Sentence,
}

/// A client: its name, what stands before and after the prompt's name in a command, and how arguments follow.
struct Client {
    name: &'static str,
    /// As `cuebook connect` and the page of it call it; empty where neither knows it.
    id: &'static str,
    command: &'static str,
    style: Style,
    notes: fn(&Shape) -> Vec<Note>,
}

/// What a condition adds to the notes.
fn when(is_so: bool, note: Note) -> Option<Note> {
    is_so.then_some(note)
}

/// Checked against the clients; see docs/clients.md. `{s}` is the server's name, `{p}` the prompt's.
const CLIENTS: &[Client] = &[
    Client {
        name: "Claude Code",
        id: "claude-code",
        command: "/mcp__{s}__{p}",
        style: Style::Words,
        notes: |shape| {
            [
                when(shape.arguments > 0, Note::OneWord),
                when(shape.completes, Note::NoCompletion),
                when(shape.assistant, Note::NoAssistant),
                when(shape.resource, Note::ResourceAsText),
            ]
            .into_iter()
            .flatten()
            .collect()
        },
    },
    Client {
        name: "VS Code",
        id: "vscode",
        command: "/mcp.{s}.{p}",
        style: Style::Asked,
        notes: |shape| when(shape.link, Note::LinkAsLine).into_iter().collect(),
    },
    Client {
        name: "Cursor",
        id: "cursor",
        command: "/{p}",
        style: Style::Asked,
        notes: |_| Vec::new(),
    },
    Client {
        name: "Gemini CLI",
        id: "gemini-cli",
        command: "/{p}",
        style: Style::Flags,
        notes: |shape| {
            [
                when(shape.several, Note::OneMessage),
                when(shape.required == 1, Note::RestOfLine),
                when(shape.image, Note::NoMedia),
            ]
            .into_iter()
            .flatten()
            .collect()
        },
    },
    Client {
        name: "opencode",
        id: "opencode",
        command: "/{s}:{p}",
        style: Style::Words,
        notes: |shape| {
            [
                when(shape.arguments > 0 && shape.decides, Note::Placeholders),
                when(shape.resource, Note::ResourceAsText),
                when(shape.image || shape.link, Note::NoMedia),
            ]
            .into_iter()
            .flatten()
            .collect()
        },
    },
    Client {
        name: "Zed",
        id: "zed",
        command: "/{p}",
        style: Style::One,
        notes: |shape| {
            [
                when(shape.arguments > 1, Note::TooManyArguments),
                when(shape.resource, Note::ResourceAsText),
                when(shape.image, Note::NoMedia),
            ]
            .into_iter()
            .flatten()
            .collect()
        },
    },
    Client {
        name: "Continue",
        id: "continue",
        command: "/{p}",
        style: Style::Asked,
        notes: |shape| {
            [
                when(shape.resource, Note::ResourceAsText),
                when(shape.image || shape.link, Note::NoMedia),
            ]
            .into_iter()
            .flatten()
            .collect()
        },
    },
    Client {
        name: "goose",
        id: "goose",
        command: "/prompt {p}",
        style: Style::Pairs,
        notes: |_| Vec::new(),
    },
    Client {
        name: "Codex",
        id: "codex",
        command: "",
        style: Style::Sentence,
        notes: |_| vec![Note::ToolOnly],
    },
    Client {
        name: "JetBrains AI",
        id: "jetbrains",
        command: "",
        style: Style::Sentence,
        notes: |_| vec![Note::ToolOnly],
    },
    Client {
        name: "Cline, Roo, Copilot CLI",
        id: "",
        command: "",
        style: Style::Sentence,
        notes: |_| vec![Note::ToolOnly],
    },
];

/// A client with a prompt in it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Shown {
    /// The client's name.
    pub client: &'static str,
    /// As `cuebook connect` calls it; empty where it does not know it.
    pub id: &'static str,
    /// What is typed there.
    pub command: String,
    /// Whether it is a sentence to a model and no command.
    pub sentence: bool,
    /// How well it does.
    pub fit: Fit,
    /// What is otherwise there.
    pub notes: Vec<Note>,
}

/// How each client shows a prompt of a server by that name, with these values typed in.
pub fn shown(
    server: &str,
    name: &str,
    shape: &Shape,
    arguments: &[Argument],
    values: &[(String, String)],
) -> Vec<Shown> {
    CLIENTS
        .iter()
        .map(|client| {
            let notes = (client.notes)(shape);
            Shown {
                client: client.name,
                id: client.id,
                command: command(client, server, name, arguments, values),
                sentence: client.style == Style::Sentence,
                fit: fit(&notes),
                notes,
            }
        })
        .collect()
}

fn fit(notes: &[Note]) -> Fit {
    if notes.contains(&Note::TooManyArguments) {
        Fit::Hidden
    } else if notes.contains(&Note::ToolOnly) {
        Fit::Tool
    } else if notes.is_empty() {
        Fit::Full
    } else {
        Fit::Adapted
    }
}

/// A client in which a change makes less of a prompt arrive.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, ToSchema)]
pub struct Lost {
    /// The client's name.
    pub client: &'static str,
    /// How well it does after the change.
    pub fit: Fit,
    /// What is otherwise there, and was not before.
    pub notes: Vec<Note>,
}

/// The clients that do worse with a prompt as it is after a change than as it was before; all that do anything otherwise,
/// where it is new.
pub fn lost(before: Option<&Prompt>, after: &Prompt) -> Vec<Lost> {
    let (before, after) = (before.map(Shape::of), Shape::of(after));
    lost_between(before.as_ref(), &after)
}

fn lost_between(before: Option<&Shape>, after: &Shape) -> Vec<Lost> {
    let each = CLIENTS.iter().filter_map(|client| {
        let known = before.map_or_else(Vec::new, client.notes);
        let now = (client.notes)(after);
        let before = fit(&known);
        let fit = fit(&now);
        let new = |note: &Note| !known.contains(note) && *note != Note::ToolOnly;
        let notes: Vec<Note> = now.into_iter().filter(new).collect();
        (!notes.is_empty() && fit >= before).then_some(Lost {
            client: client.name,
            fit,
            notes,
        })
    });
    each.collect()
}

fn command(
    client: &Client,
    server: &str,
    name: &str,
    arguments: &[Argument],
    values: &[(String, String)],
) -> String {
    let value = |argument: &Argument| {
        values
            .iter()
            .find(|(name, value)| **name == *argument.name && !value.is_empty())
            .map(|(_, value)| value.as_str())
    };
    let start = client.command.replace("{s}", server).replace("{p}", name);
    let mut out = start;
    match client.style {
        Style::Asked => {}
        Style::Words => {
            // by position: what comes before a value that is given has to stand there too
            let last = arguments
                .iter()
                .rposition(|argument| value(argument).is_some() || argument.required);
            for argument in arguments.iter().take(last.map_or(0, |last| last + 1)) {
                out.push(' ');
                match value(argument) {
                    Some(value) => out.push_str(value),
                    None => out.push_str(&format!("<{}>", argument.name)),
                }
            }
        }
        Style::One => {
            if let Some(argument) = arguments.first() {
                out.push(' ');
                out.push_str(value(argument).unwrap_or(&format!("<{}>", argument.name)));
            }
        }
        Style::Flags | Style::Pairs => {
            for argument in arguments {
                let given = value(argument);
                if given.is_none() && !argument.required {
                    continue;
                }
                let placeholder = format!("<{}>", argument.name);
                let given = given.unwrap_or(&placeholder);
                let quoted = given.replace('\\', "\\\\").replace('"', "\\\"");
                if client.style == Style::Flags {
                    out.push_str(&format!(" --{}=\"{quoted}\"", argument.name));
                } else if given.contains([' ', '"']) {
                    out.push_str(&format!(" {}=\"{quoted}\"", argument.name));
                } else {
                    out.push_str(&format!(" {}={given}", argument.name));
                }
            }
        }
        Style::Sentence => {
            let with: Vec<String> = arguments
                .iter()
                .filter_map(|argument| Some(format!("{} {}", argument.name, value(argument)?)))
                .collect();
            out = format!("Use {server}'s get_prompt for {name}");
            if !with.is_empty() {
                out.push_str(&format!(" with {}", with.join(", ")));
            }
            out.push_str(", and do what it says.");
        }
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::prompt::Completable;

    fn argument(name: &str, required: bool) -> Argument {
        Argument {
            name: name.into(),
            description: None,
            required,
            default: None,
            values: Completable::default(),
        }
    }

    fn of(client: &str, shape: Shape) -> (Fit, Vec<Note>) {
        let all = shown("cuebook", "triage", &shape, &[], &[]);
        let found = all.into_iter().find(|s| s.client == client).unwrap();
        (found.fit, found.notes)
    }

    #[test]
    fn a_prompt_of_one_text_arrives_everywhere() {
        for client in [
            "Claude Code",
            "VS Code",
            "Cursor",
            "Gemini CLI",
            "opencode",
            "Zed",
            "Continue",
            "goose",
        ] {
            assert_eq!(
                of(client, Shape::default()),
                (Fit::Full, vec![]),
                "{client}"
            );
        }
        assert_eq!(
            of("Codex", Shape::default()),
            (Fit::Tool, vec![Note::ToolOnly])
        );
    }

    #[test]
    fn what_each_client_does_otherwise() {
        let two = Shape {
            arguments: 2,
            required: 1,
            ..Shape::default()
        };
        assert_eq!(of("Zed", two), (Fit::Hidden, vec![Note::TooManyArguments]));
        assert_eq!(of("Claude Code", two), (Fit::Adapted, vec![Note::OneWord]));
        assert_eq!(
            of("Gemini CLI", two),
            (Fit::Adapted, vec![Note::RestOfLine])
        );
        assert_eq!(of("Cursor", two).0, Fit::Full);
        let attached = Shape {
            resource: true,
            several: true,
            assistant: true,
            ..Shape::default()
        };
        assert_eq!(
            of("Claude Code", attached).1,
            [Note::NoAssistant, Note::ResourceAsText]
        );
        assert_eq!(of("Gemini CLI", attached).1, [Note::OneMessage]);
        assert_eq!(of("VS Code", attached).0, Fit::Full);
        assert_eq!(of("Zed", attached).1, [Note::ResourceAsText]);
        let decides = Shape {
            arguments: 1,
            decides: true,
            ..Shape::default()
        };
        assert_eq!(of("opencode", decides).1, [Note::Placeholders]);
    }

    #[test]
    fn what_a_change_loses() {
        let one = Shape {
            arguments: 1,
            ..Shape::default()
        };
        let two = Shape {
            arguments: 2,
            ..Shape::default()
        };
        let hidden = Lost {
            client: "Zed",
            fit: Fit::Hidden,
            notes: vec![Note::TooManyArguments],
        };
        assert_eq!(
            lost_between(Some(&one), &two),
            std::slice::from_ref(&hidden)
        );
        assert_eq!(lost_between(Some(&two), &one), []);
        assert_eq!(lost_between(Some(&two), &two), []);
        let of_new: Vec<&str> = lost_between(None, &two).iter().map(|l| l.client).collect();
        assert_eq!(of_new, ["Claude Code", "Zed"]);
        assert_eq!(lost_between(None, &Shape::default()), []);
        // what was hidden already and now comes in another shape as well
        let attached = Shape {
            resource: true,
            ..two
        };
        let zed = lost_between(Some(&two), &attached);
        let zed = zed.iter().find(|lost| lost.client == "Zed").unwrap();
        assert_eq!(zed.fit, Fit::Hidden);
        assert_eq!(zed.notes, [Note::ResourceAsText]);
    }

    #[track_caller]
    fn check(client: &str, values: &[(&str, &str)], expected: &str) {
        let arguments = [
            argument("ticketId", true),
            argument("service", false),
            argument("note", false),
        ];
        let values: Vec<(String, String)> = values
            .iter()
            .map(|(name, value)| ((*name).to_owned(), (*value).to_owned()))
            .collect();
        let all = shown("cuebook", "triage", &Shape::default(), &arguments, &values);
        let found = all.iter().find(|s| s.client == client).unwrap();
        assert_eq!(found.command, expected);
    }

    #[test]
    fn the_command_of_each_client() {
        let both: &[(&str, &str)] = &[("ticketId", "INC-1"), ("service", "pay ments")];
        check("Claude Code", &[], "/mcp__cuebook__triage <ticketId>");
        check(
            "Claude Code",
            &[("service", "x")],
            "/mcp__cuebook__triage <ticketId> x",
        );
        check("VS Code", both, "/mcp.cuebook.triage");
        check(
            "Gemini CLI",
            both,
            "/triage --ticketId=\"INC-1\" --service=\"pay ments\"",
        );
        check(
            "opencode",
            &[("ticketId", "INC-1")],
            "/cuebook:triage INC-1",
        );
        check(
            "goose",
            both,
            "/prompt triage ticketId=INC-1 service=\"pay ments\"",
        );
        check(
            "Codex",
            &[("ticketId", "INC-1")],
            "Use cuebook's get_prompt for triage with ticketId INC-1, and do what it says.",
        );
    }
}
