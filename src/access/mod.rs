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
}
