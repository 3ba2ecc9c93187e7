//! Who calls. Until there is access control there is one: whoever reaches the loopback address.

use std::sync::Arc;

/// Who does something: a person, or a program that has a token.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Actor {
    /// The name that records carry.
    pub name: Arc<str>,
}

impl Actor {
    /// The one actor of a server on loopback: the person at this machine.
    pub fn local() -> Self {
        Self {
            name: "local".into(),
        }
    }

    /// The address that goes with the name in a commit made here.
    pub fn email(&self) -> String {
        format!("{}@localhost", self.name)
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
