//! Protocol revisions and what each of them can carry: the one place where wire shapes differ.

use std::fmt;

/// A revision of the protocol that this server speaks, oldest first.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Revision {
    /// 2024-11-05.
    V2024_11_05,
    /// 2025-03-26, the only one with batches.
    V2025_03_26,
    /// 2025-06-18.
    V2025_06_18,
    /// 2025-11-25, the last with `initialize`.
    V2025_11_25,
    /// 2026-07-28, the first without sessions.
    V2026_07_28,
}

/// How a connection is opened, which decides most of the rules.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Era {
    /// `initialize`, then sessions.
    Legacy,
    /// Every request carries its own `_meta`.
    Modern,
}

impl Revision {
    /// Every revision, oldest first.
    pub const ALL: [Self; 5] = [
        Self::V2024_11_05,
        Self::V2025_03_26,
        Self::V2025_06_18,
        Self::V2025_11_25,
        Self::V2026_07_28,
    ];
    /// The newest that has `initialize`: the answer to a client that asks for one we do not know.
    pub const LATEST_LEGACY: Self = Self::V2025_11_25;
    /// What the specification tells a server to assume of an HTTP request that names none.
    pub const ASSUMED: Self = Self::V2025_03_26;
    /// What `server/discover` lists: the revisions that requests may name in their `_meta`.
    pub const MODERN: [&'static str; 1] = ["2026-07-28"];

    /// The revision a text names.
    pub fn parse(text: &str) -> Option<Self> {
        Self::ALL
            .into_iter()
            .find(|revision| revision.as_str() == text)
    }

    /// The revision a text names, if it is one with `initialize`.
    pub fn parse_legacy(text: &str) -> Option<Self> {
        Self::parse(text).filter(|revision| revision.era() == Era::Legacy)
    }

    /// Its date, as it stands on the wire.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::V2024_11_05 => "2024-11-05",
            Self::V2025_03_26 => "2025-03-26",
            Self::V2025_06_18 => "2025-06-18",
            Self::V2025_11_25 => "2025-11-25",
            Self::V2026_07_28 => "2026-07-28",
        }
    }

    /// The era it belongs to.
    pub fn era(self) -> Era {
        if self >= Self::V2026_07_28 {
            Era::Modern
        } else {
            Era::Legacy
        }
    }

    /// Whether it is of the modern era.
    pub fn is_modern(self) -> bool {
        self.era() == Era::Modern
    }

    /// Whether several messages may come as one JSON array.
    pub fn has_batches(self) -> bool {
        self == Self::V2025_03_26
    }

    /// Whether servers declare a `completions` capability.
    pub fn has_completions_capability(self) -> bool {
        self >= Self::V2025_03_26
    }

    /// Whether things have a `title` beside their `name`.
    pub fn has_title(self) -> bool {
        self >= Self::V2025_06_18
    }

    /// Whether there is an `audio` block.
    pub fn has_audio(self) -> bool {
        self >= Self::V2025_03_26
    }

    /// Whether there is a `resource_link` block.
    pub fn has_resource_link(self) -> bool {
        self >= Self::V2025_06_18
    }

    /// Whether tools have `annotations`.
    pub fn has_tool_annotations(self) -> bool {
        self >= Self::V2025_03_26
    }

    /// Whether tools declare an `outputSchema` and answer with `structuredContent`.
    pub fn has_structured_content(self) -> bool {
        self >= Self::V2025_06_18
    }
}

impl fmt::Display for Revision {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn dates_and_eras() {
        for revision in Revision::ALL {
            assert_eq!(Revision::parse(revision.as_str()), Some(revision));
            assert_eq!(
                revision.is_modern(),
                Revision::MODERN.contains(&revision.as_str())
            );
        }
        assert_eq!(Revision::parse_legacy("2026-07-28"), None);
        assert_eq!(Revision::parse("2025-06-19"), None);
        assert_eq!(Revision::ALL.iter().filter(|r| r.has_batches()).count(), 1);
    }
}
