//! What a prompt declares: arguments, where their values come from, resource bindings, examples.

use std::sync::Arc;

use super::message::Embed;

/// A declared argument.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Argument {
    /// Its name.
    pub name: Arc<str>,
    /// What it means, for people.
    pub description: Option<String>,
    /// Whether a value must be given.
    pub required: bool,
    /// What stands in for an absent or empty value.
    pub default: Option<String>,
    /// Where completion values come from; advice, never a restriction.
    pub values: Completable,
}

/// Where an argument's completion values come from.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Completable {
    /// Listed values, in the author's order.
    pub list: Vec<String>,
    /// A file under `values/`.
    pub file: Option<String>,
    /// Another argument: rows of the file whose key equals its value.
    pub where_argument: Option<String>,
    /// A URI pattern, `runbook://{service}`: every value of its one variable that has a resource.
    pub resource: Option<String>,
    /// Values colleagues used recently.
    pub recent: bool,
}

impl Completable {
    /// Whether nothing is declared.
    pub fn is_empty(&self) -> bool {
        *self == Self::default()
    }
}

/// A prompt's declared link to a resource.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ResourceBinding {
    /// The name templates and markers use.
    pub name: Arc<str>,
    /// A template over the arguments that gives the URI.
    pub uri: String,
    /// Whether a render fails without it.
    pub required: bool,
    /// How it is shown.
    pub embed: Embed,
}

/// A worked example: also a test, run at every check.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Example {
    /// What it shows.
    pub name: String,
    /// Values by argument name.
    pub arguments: Vec<(String, String)>,
    /// Substrings that must occur in the rendered text, embedded text included.
    pub expect: Vec<String>,
}
