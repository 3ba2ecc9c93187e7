//! What single clients cannot read, and what is done about it: one table.
//!
//! Names are what clients say in `clientInfo`. A client that is not here gets the protocol as it
//! stands. Nothing here is a matter of trust: the name is the client's own word.

use std::sync::Arc;

use serde::Deserialize;
use serde_json::value::RawValue;

use super::envelope::{present, text};

/// Longest name of a client that is kept, in bytes.
const MAX_NAME: usize = 64;
/// Longest version of a client that is kept, in bytes.
const MAX_VERSION: usize = 32;

/// A client, as it calls itself.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Client {
    /// `clientInfo.name`, shortened; empty when it does not say.
    pub name: Arc<str>,
    /// `clientInfo.version`, shortened.
    pub version: Arc<str>,
}

impl Client {
    /// A client by name and version, each shortened to what is kept.
    pub fn new(name: &str, version: &str) -> Self {
        Self {
            name: shorten(name, MAX_NAME).into(),
            version: shorten(version, MAX_VERSION).into(),
        }
    }

    /// Reads `clientInfo`; whatever is wrong in it is left out.
    pub fn from_json(raw: &RawValue) -> Self {
        #[derive(Deserialize)]
        struct Info<'a> {
            #[serde(borrow, default, deserialize_with = "present")]
            name: Option<&'a RawValue>,
            #[serde(borrow, default, deserialize_with = "present")]
            version: Option<&'a RawValue>,
        }
        let Ok(info) = serde_json::from_str::<Info<'_>>(raw.get()) else {
            return Self::default();
        };
        let field = |raw: Option<&RawValue>| raw.and_then(text).unwrap_or_default().into_owned();
        Self::new(&field(info.name), &field(info.version))
    }

    /// What it needs done.
    pub fn needs(&self) -> Needs {
        let name = self.name.to_ascii_lowercase();
        TABLE
            .iter()
            .find(|(known, _)| match known.strip_suffix('*') {
                Some(start) => name.starts_with(start),
                None => name == *known,
            })
            .map_or(Needs::NONE, |(_, needs)| *needs)
    }
}

fn shorten(text: &str, limit: usize) -> &str {
    let mut end = text.len().min(limit);
    while !text.is_char_boundary(end) {
        end -= 1;
    }
    &text[..end]
}

/// How much of a prompt a client reads, most first.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Reads {
    /// All of it.
    All,
    /// Not links and audio: they become a line of text that names the URI.
    NoLinks,
    /// Text only: embedded resources are put into text.
    Text,
    /// The text of the first message only: the whole prompt goes there.
    FirstText,
}

/// What is done for a client that cannot read a prompt as the protocol has it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Needs {
    /// How much of a prompt it reads.
    pub reads: Reads,
    /// It runs `` !`command` `` and reads `@file` found in what it is given.
    pub neutralise: bool,
}

impl Needs {
    const NONE: Self = Self::reads(Reads::All);

    const fn reads(reads: Reads) -> Self {
        Self {
            reads,
            neutralise: false,
        }
    }
}

/// Lower-case names; a `*` at the end stands for any rest.
const TABLE: &[(&str, Needs)] = &[
    // Takes the text of the first message and nothing else.
    ("gemini-cli*", Needs::reads(Reads::FirstText)),
    // Text parts only.
    ("continue*", Needs::reads(Reads::Text)),
    // An embedded resource becomes a bare URI that the model cannot open.
    ("zed", Needs::reads(Reads::Text)),
    // Reads embedded resources, drops audio and links.
    ("visual studio code*", Needs::reads(Reads::NoLinks)),
    // Joins texts and drops everything else; expands shell commands and file names in them.
    (
        "opencode",
        Needs {
            reads: Reads::Text,
            neutralise: true,
        },
    ),
];

/// Whether embedded resources are put into text.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Inline {
    /// For the clients that need it.
    #[default]
    Auto,
    /// For every client.
    Always,
    /// For none.
    Never,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_matched_without_case() {
        assert!(Client::new("gemini-cli-mcp-client", "1").needs().reads == Reads::FirstText);
        assert!(Client::new("Zed", "1").needs().reads == Reads::Text);
        assert_eq!(
            Client::new("Visual Studio Code - Insiders", "1")
                .needs()
                .reads,
            Reads::NoLinks
        );
        assert!(Client::new("opencode", "1").needs().neutralise);
        assert_eq!(Client::new("opencode-like", "1").needs(), Needs::NONE);
        assert_eq!(Client::default().needs(), Needs::NONE);
    }

    #[test]
    fn long_names_are_cut_between_characters() {
        assert_eq!(Client::new(&"가".repeat(40), "").name.chars().count(), 21);
        let raw: &RawValue = serde_json::from_str(r#"{"name":5,"version":"1"}"#).unwrap();
        assert_eq!(Client::from_json(raw), Client::new("", "1"));
    }
}
