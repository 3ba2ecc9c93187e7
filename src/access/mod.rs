//! Who calls, what they may do where, and how they prove who they are. Every way in asks here, and only here.
//!
//! Everything that a request asks is held in memory: people, groups, grants and the hashes of tokens are read from the
//! database at the start and after each change. Knows nothing of HTTP or MCP.

mod directory;
pub mod password;
mod pattern;
pub mod people;
mod permissions;
mod role;
mod routes;
pub mod secret;

use std::sync::{Arc, LazyLock};

pub use directory::{Access, Denied, EVERYONE, GROUP, Invitation};
pub use pattern::{Pattern, PatternError};
pub use people::{Beyond, NameError};
pub use permissions::{Grant, Permissions, Scope};
pub use role::{Action, Role};
pub use routes::{Need, ROUTES, Route, need};

/// What an actor is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Kind {
    /// Whoever is at this machine: everyone on loopback where there is no access control, and who reaches the data directory.
    Local,
    /// A person.
    Person,
    /// A program with a token of its own.
    Service,
    /// Nobody who has said who they are.
    Nobody,
}

/// How an actor has shown who they are.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub enum Credential {
    /// A token, by its prefix.
    Token(Arc<str>),
    /// A browser that has signed in, by the id of its session.
    Session(Arc<str>),
    /// An access token of an OpenID provider: the time it ends at, in seconds since 1970, and the groups that it says.
    Bearer(u64, Arc<[String]>),
}

/// Who does something: a person, or a program that has a token.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Actor {
    /// The name that records carry.
    pub name: Arc<str>,
    kind: Kind,
    email: Option<Arc<str>>,
    groups: Arc<[Box<str>]>,
    permissions: Arc<Permissions>,
    credential: Option<Credential>,
}

impl Actor {
    /// The person at this machine, who may do everything.
    pub fn local() -> Self {
        static LOCAL: LazyLock<Actor> = LazyLock::new(|| Actor {
            name: "local".into(),
            kind: Kind::Local,
            email: None,
            groups: Arc::default(),
            permissions: Permissions::everything(),
            credential: None,
        });
        LOCAL.clone()
    }

    /// Who has not said who they are, and may do nothing.
    pub fn nobody() -> Self {
        Self {
            name: "nobody".into(),
            kind: Kind::Nobody,
            email: None,
            groups: Arc::default(),
            permissions: Arc::default(),
            credential: None,
        }
    }

    /// One that a record names, of whom nothing else is known; it may do nothing.
    pub fn named(name: &str) -> Self {
        Self {
            name: name.into(),
            ..Self::nobody()
        }
    }

    /// What it is.
    pub fn kind(&self) -> Kind {
        self.kind
    }

    /// Whether it has said who it is.
    pub fn is_known(&self) -> bool {
        self.kind != Kind::Nobody
    }

    /// The groups it is in.
    pub fn groups(&self) -> &[Box<str>] {
        &self.groups
    }

    /// How it has shown who it is; none for who is at this machine.
    pub fn credential(&self) -> Option<&Credential> {
        self.credential.as_ref()
    }

    /// What it may do.
    pub fn permissions(&self) -> &Arc<Permissions> {
        &self.permissions
    }

    /// The same without what its credential takes away: to tell what is missing.
    #[must_use]
    pub fn with_any_scope(&self) -> Self {
        let grants = self.permissions.grants().cloned();
        Self {
            permissions: Arc::new(Permissions::new(grants, Scope::default())),
            ..self.clone()
        }
    }

    /// The role at a path of the library, e.g. `prompts/sre/incident-triage.md`; the empty path is the whole library.
    pub fn role_at(&self, path: &str) -> Option<Role> {
        self.permissions.role_at(path)
    }

    /// Whether it may do something to a path of the library; the empty path is the whole library.
    pub fn may(&self, action: Action, path: &str) -> bool {
        self.permissions.may(action, path)
    }

    /// Whether there is any path it may do something to.
    pub fn may_somewhere(&self, action: Action) -> bool {
        self.permissions.may_somewhere(action)
    }

    /// Whether it sees the whole library.
    pub fn sees_all(&self) -> bool {
        self.permissions.sees_all()
    }

    /// The address that goes with the name in a commit made here.
    pub fn email(&self) -> String {
        match &self.email {
            Some(email) => email.to_string(),
            None => format!("{}@localhost", self.name),
        }
    }
}

impl std::fmt::Display for Actor {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(&self.name)
    }
}

/// Who does something, and from where.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct By {
    /// Who.
    pub actor: Actor,
    /// The address of their client, where it came over a network.
    pub peer: Option<String>,
}
