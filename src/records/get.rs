//! One call that asked for a prompt, as it is handed over on the way of the request: what it holds is shared, not copied.

use std::sync::Arc;
use std::time::Duration;

use crate::catalog::Catalog;
use crate::prompt::{Argument, Prompt, Resource};

/// Longest value of an argument that is looked at, in bytes.
pub const MAX_VALUE_BYTES: usize = 256;

/// By which method a prompt was asked for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Via {
    /// `prompts/get`.
    Prompt,
    /// The tool `get_prompt`.
    Tool,
}

impl Via {
    /// As it is stored: `prompt` or `tool`.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Prompt => "prompt",
            Self::Tool => "tool",
        }
    }
}

/// What came of it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Outcome {
    /// It was delivered.
    Delivered,
    /// It could not be rendered.
    Failed,
    /// The arguments do not satisfy its declaration.
    Refused,
}

/// A prompt that was asked for.
#[derive(Debug, Clone)]
pub struct Get {
    /// When, in milliseconds since 1970.
    pub at: i64,
    /// Who.
    pub actor: Arc<str>,
    /// The client's name, as it calls itself.
    pub client: Arc<str>,
    /// The client's version.
    pub client_version: Arc<str>,
    /// How.
    pub via: Via,
    /// What came of it.
    pub outcome: Outcome,
    /// How long it took.
    pub took: Duration,
    /// Where it was found.
    pub catalog: Arc<Catalog>,
    /// The prompt.
    pub prompt: Arc<Prompt>,
    /// Its version, where it is known.
    pub version: Option<u32>,
    /// The commit that has its text and its path there, where that is not the catalog's commit.
    pub of: Option<(Arc<str>, Arc<str>)>,
    /// The resources that were delivered with it, which are the catalog's.
    pub resources: Vec<Arc<Resource>>,
    /// What was given. Values stay in memory, and only until they are counted.
    pub given: Given,
}

/// What was given for arguments.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Given {
    /// Whether a value is a placeholder, so that the client puts the real ones in by itself.
    pub placeholder: bool,
    /// Values of arguments that have completion, by the argument's position.
    pub values: Vec<(usize, Box<str>)>,
}

impl Given {
    /// Looks at the given values of declared arguments.
    pub fn of<'a>(
        declared: &[Argument],
        given: impl IntoIterator<Item = (&'a str, &'a str)>,
    ) -> Self {
        let mut out = Self::default();
        for (name, value) in given {
            let Some(at) = declared.iter().position(|argument| &*argument.name == name) else {
                continue;
            };
            if value.is_empty() || value.len() > MAX_VALUE_BYTES {
                continue;
            }
            if is_placeholder(name, value) {
                out.placeholder = true;
            } else if !declared[at].values.is_empty() {
                out.values.push((at, value.into()));
            }
        }
        out
    }
}

/// Whether a value stands for one that the client will put in: `$1`, `$ARGUMENTS`, `{{service}}`, `<service>` for the
/// argument `service`.
pub fn is_placeholder(argument: &str, value: &str) -> bool {
    let value = value.trim();
    if let Some(rest) = value.strip_prefix('$') {
        let inner = rest.strip_prefix('{').and_then(|r| r.strip_suffix('}'));
        let name = inner.unwrap_or(rest);
        return matches!(name, "@" | "*")
            || name == "ARGUMENTS"
            || (!name.is_empty() && name.len() <= 2 && name.bytes().all(|b| b.is_ascii_digit()))
            || name.eq_ignore_ascii_case(argument)
            || (inner.is_some() && is_name(name));
    }
    if let Some(inner) = value
        .strip_prefix("{{")
        .and_then(|rest| rest.strip_suffix("}}"))
    {
        return is_name(inner.trim());
    }
    let pairs = [('{', '}'), ('<', '>'), ('[', ']'), ('%', '%')];
    pairs.iter().any(|(open, close)| {
        value
            .strip_prefix(*open)
            .and_then(|rest| rest.strip_suffix(*close))
            .is_some_and(|inner| inner.trim().eq_ignore_ascii_case(argument))
    })
}

fn is_name(text: &str) -> bool {
    text.bytes()
        .next()
        .is_some_and(|b| b.is_ascii_alphanumeric() || b == b'_')
        && text
            .bytes()
            .all(|b| b.is_ascii_alphanumeric() || matches!(b, b'_' | b'-' | b'.' | b' '))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn placeholders_are_told_from_values() {
        for value in [
            "$1",
            "$12",
            "${1}",
            "$@",
            "$ARGUMENTS",
            "$service",
            "$SERVICE",
            "${service}",
            "${ticket_id}",
            "{{service}}",
            "{{ anything }}",
            "{service}",
            "<service>",
            "<Service>",
            "[service]",
            "%service%",
            " $1 ",
        ] {
            assert!(is_placeholder("service", value), "{value}");
        }
        for value in [
            "payments",
            "$100",
            "$HOME",
            "$",
            "$$",
            "${}",
            "{}",
            "{\"a\": 1}",
            "<b>",
            "[x]",
            "100%",
            "$1 and $2",
            "{{",
            "{{}}",
            "{{ a }} b",
            "결제",
        ] {
            assert!(!is_placeholder("service", value), "{value}");
        }
    }
}
