//! What a hook and the server say to each other over the socket: one JSON object a line.

use std::path::PathBuf;

use serde::{Deserialize, Serialize};

use crate::access::Actor;

/// Longest line, in bytes: a push of some ten thousand refs.
pub const MAX_LINE: u64 = 4 * 1024 * 1024;

/// Which hook asks.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, clap::ValueEnum)]
#[serde(rename_all = "kebab-case")]
pub enum Hook {
    /// Whether the push is accepted; nothing has moved yet.
    PreReceive,
    /// Open or revise proposals.
    ProcReceive,
    /// The refs have moved.
    PostReceive,
}

impl Hook {
    /// The file name git knows it by.
    pub fn name(self) -> &'static str {
        match self {
            Self::PreReceive => "pre-receive",
            Self::ProcReceive => "proc-receive",
            Self::PostReceive => "post-receive",
        }
    }
}

/// A ref that a push moves.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Update {
    /// Object id before; zeros where there was none.
    pub old: String,
    /// Object id after; zeros for a deletion.
    pub new: String,
    /// The full name of the ref.
    pub name: String,
}

/// What a hook asks.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Question {
    /// Which hook.
    pub hook: Hook,
    /// What the push moves.
    pub updates: Vec<Update>,
    /// Its push options (`-o key=value`).
    #[serde(default)]
    pub options: Vec<String>,
    /// Folder of the objects that are not accepted yet.
    #[serde(default)]
    pub quarantine: Option<PathBuf>,
    /// Which push it is of those that came over HTTP: the gate knows who makes it.
    #[serde(default)]
    pub push: Option<String>,
    /// Address of the client; no hook can say so.
    #[serde(skip)]
    pub peer: Option<String>,
    /// Who makes the change, where that is known; no hook can say so.
    #[serde(skip)]
    pub actor: Option<Actor>,
    /// Whether the change is made by this server and is no push; no hook can say so.
    #[serde(skip)]
    pub here: bool,
    /// What the change is, where it is made here and is more than a publish.
    #[serde(default)]
    pub deed: Option<Deed>,
}

/// What a change that is made here is, for the audit.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Deed {
    /// One word: `promote`, `restore`.
    pub action: String,
    /// To what, e.g. `incident-triage v3 to production`.
    pub subject: String,
    /// Why, as the person said.
    pub reason: Option<String>,
}

/// What became of one ref that was pushed to `refs/for/…`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Proposed {
    /// It was written under another name.
    Written {
        /// As it was pushed.
        pushed: String,
        /// Where it is, e.g. `refs/proposals/7/head`.
        name: String,
        /// What was there before; none for a new proposal.
        old: Option<String>,
        /// What is there now.
        new: String,
        /// Whether the old one is no ancestor of the new.
        forced: bool,
    },
    /// It was not.
    Refused {
        /// As it was pushed.
        pushed: String,
        /// Why, one line.
        reason: String,
    },
}

/// The answer, after which the socket is closed.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Answer {
    /// Whether the push goes on.
    pub accepted: bool,
    /// Lines for the person who pushes.
    pub lines: Vec<String>,
    /// For proc-receive.
    #[serde(default)]
    pub proposed: Vec<Proposed>,
    /// Whether it is refused only because it could not be judged now.
    #[serde(default)]
    pub unjudged: bool,
    /// Whether it is refused because whoever makes it may not.
    #[serde(default)]
    pub forbidden: bool,
}

impl Answer {
    /// A refusal.
    pub fn refused(lines: Vec<String>) -> Self {
        Self {
            lines,
            ..Self::default()
        }
    }
}
