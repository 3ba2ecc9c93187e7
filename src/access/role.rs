//! What may be done, and the role it takes: the one table that every way in asks.

use std::fmt;

/// What somebody may do at a place in the library; each may do what those before it may.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Role {
    /// Sees it.
    Reader,
    /// Proposes changes of it.
    Author,
    /// Judges proposals.
    Reviewer,
    /// Makes changes live.
    Publisher,
    /// Changes who may do what.
    Admin,
}

impl Role {
    /// Every role, the least first.
    pub const ALL: [Self; 5] = [
        Self::Reader,
        Self::Author,
        Self::Reviewer,
        Self::Publisher,
        Self::Admin,
    ];

    /// As it is stored and typed, e.g. `reviewer`.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Reader => "reader",
            Self::Author => "author",
            Self::Reviewer => "reviewer",
            Self::Publisher => "publisher",
            Self::Admin => "admin",
        }
    }

    /// The role of a name, any case.
    pub fn parse(name: &str) -> Option<Self> {
        Self::ALL
            .into_iter()
            .find(|role| role.as_str().eq_ignore_ascii_case(name))
    }
}

impl fmt::Display for Role {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

/// Something that is done to a path of the library, e.g. `prompts/sre/incident-triage.md` or `labels.toml`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Action {
    /// List, get, complete, search, look at its history, be told of it. Of the whole library: clone it.
    Read,
    /// Propose a change, comment, preview.
    Propose,
    /// Approve a proposal or ask for changes.
    Review,
    /// Change it on main: push, publish, merge, restore.
    Publish,
    /// Move a label; asked of `labels.toml`.
    MoveLabel,
    /// Move a label that the library protects; asked of `labels.toml`.
    MoveProtectedLabel,
    /// Change the policy; asked of `cuebook.toml`.
    ChangePolicy,
    /// See and change who may do what, prove and mend the index, read the audit; asked of the whole library.
    Administer,
}

impl Action {
    /// Every action.
    pub const ALL: [Self; 8] = [
        Self::Read,
        Self::Propose,
        Self::Review,
        Self::Publish,
        Self::MoveLabel,
        Self::MoveProtectedLabel,
        Self::ChangePolicy,
        Self::Administer,
    ];

    /// The permission table: the role it takes at the least, at the path it is done to.
    pub fn needs(self) -> Role {
        match self {
            Self::Read => Role::Reader,
            Self::Propose => Role::Author,
            Self::Review => Role::Reviewer,
            Self::Publish | Self::MoveLabel => Role::Publisher,
            Self::MoveProtectedLabel | Self::ChangePolicy | Self::Administer => Role::Admin,
        }
    }

    /// What is done, for a sentence such as `you may not … prompts/sre/x.md`.
    pub fn verb(self) -> &'static str {
        match self {
            Self::Read => "read",
            Self::Propose => "propose changes of",
            Self::Review => "review",
            Self::Publish => "publish",
            Self::MoveLabel => "move labels in",
            Self::MoveProtectedLabel => "move protected labels in",
            Self::ChangePolicy => "change the policy in",
            Self::Administer => "administer",
        }
    }
}
