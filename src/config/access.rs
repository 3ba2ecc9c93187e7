//! Settings of who is let in, and how.

use super::keys::{Key, flag, number};

/// Who is let in.
#[derive(Debug, Clone)]
pub struct AccessConfig {
    /// Whether callers must say who they are.
    pub enabled: bool,
    /// A browser that nobody uses for so long is signed out.
    pub session_idle_hours: u32,
    /// A browser is signed out after so long, used or not.
    pub session_days: u32,
    /// Days after which a token ends that says nothing else.
    pub token_days: u32,
}

impl Default for AccessConfig {
    fn default() -> Self {
        Self {
            enabled: false,
            session_idle_hours: 12,
            session_days: 30,
            token_days: 90,
        }
    }
}

/// Every setting of them, in the order in which they are shown.
pub(super) static KEYS: &[Key] = &[
    Key {
        name: "access.enabled",
        meaning: "whether callers must say who they are; needed to listen on a network",
        set: |c, value| {
            c.access.enabled = flag(value)?;
            Ok(())
        },
        get: |c| c.access.enabled.to_string(),
    },
    Key {
        name: "access.session_idle_hours",
        meaning: "a browser that nobody uses for so long is signed out",
        set: |c, value| {
            c.access.session_idle_hours = number(value, 1, 8760)?;
            Ok(())
        },
        get: |c| c.access.session_idle_hours.to_string(),
    },
    Key {
        name: "access.session_days",
        meaning: "a browser is signed out after so long, used or not",
        set: |c, value| {
            c.access.session_days = number(value, 1, 366)?;
            Ok(())
        },
        get: |c| c.access.session_days.to_string(),
    },
    Key {
        name: "access.token_days",
        meaning: "days after which a token ends that says nothing else",
        set: |c, value| {
            c.access.token_days = number(value, 1, 366)?;
            Ok(())
        },
        get: |c| c.access.token_days.to_string(),
    },
];
