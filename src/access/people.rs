//! Names of people, services and groups, and what must stay true of them whatever an admin changes. Pure.

use unicode_normalization::UnicodeNormalization as _;

use super::directory::{EVERYONE, GROUP};
use super::permissions::Scope;
use super::{Action, Pattern, Role};
use crate::store::{AccessRows, PrincipalRow};

/// Longest name, in characters.
const MAX_CHARS: usize = 64;
/// Names that records use for somebody else.
const TAKEN: [&str; 5] = [EVERYONE, "local", "nobody", "unknown", "cuebook"];

/// Why a text is no name.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum NameError {
    /// It has the wrong characters, or too many.
    #[error(
        "`{0}` is no name; use 1 to {MAX_CHARS} letters, digits and . _ - @ +, beginning with a letter or a digit"
    )]
    Form(String),
    /// Records use it otherwise.
    #[error("`{0}` means somebody else in records; choose another name")]
    Taken(String),
}

/// The name of a person, a service or a group, in one spelling: Unicode's composed form.
pub fn name(text: &str) -> Result<String, NameError> {
    let name: String = text.trim().nfc().collect();
    let wrong = || NameError::Form(text.chars().take(MAX_CHARS).collect());
    let plain = |c: char| c.is_alphanumeric() || matches!(c, '.' | '_' | '-' | '@' | '+');
    if name.chars().count() > MAX_CHARS
        || !name.chars().all(plain)
        || !name.starts_with(char::is_alphanumeric)
    {
        return Err(wrong());
    }
    if TAKEN.contains(&&*name.to_lowercase()) {
        return Err(NameError::Taken(name));
    }
    Ok(name)
}

impl AccessRows {
    /// The principal of a name.
    pub fn principal(&self, name: &str) -> Option<&PrincipalRow> {
        self.principals.iter().find(|row| row.name == name)
    }

    /// The principal whose name differs from this one at most by upper and lower case: nobody takes a name that looks like
    /// another's.
    pub fn like(&self, name: &str) -> Option<&PrincipalRow> {
        let name = name.to_lowercase();
        self.principals
            .iter()
            .find(|row| row.name.to_lowercase() == name)
    }

    /// People who may change who may do what, and are let in.
    pub fn admins(&self) -> Vec<&str> {
        let people = self
            .principals
            .iter()
            .filter(|row| row.kind == "person" && !row.disabled);
        people
            .filter(|row| {
                self.actor(row, &[], Scope::default())
                    .may(Action::Administer, "")
            })
            .map(|row| &*row.name)
            .collect()
    }

    /// Whether a grant may name this: somebody who is known, a group of any name, or `everyone`.
    pub fn is_grantee(&self, who: &str) -> bool {
        who == EVERYONE
            || who
                .strip_prefix(GROUP)
                .is_some_and(|group| name(group).is_ok_and(|name| name == group))
            || self.principal(who).is_some()
    }
}

/// Why a credential may not hand something on.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum Beyond {
    /// A higher role than its own.
    #[error("this credential has the role {0} at most, and cannot make one that may do more")]
    Role(Role),
    /// A path that it does not reach.
    #[error("this credential does not reach {0}, and cannot make one that does")]
    Path(Pattern),
}

/// What a credential with the scope `of` hands on when `asked` is asked of it: never more than it has itself.
pub fn within(of: &Scope, asked: Scope) -> Result<Scope, Beyond> {
    let role = match (of.role, asked.role) {
        (Some(most), Some(role)) if role > most => return Err(Beyond::Role(most)),
        (Some(most), None) => Some(most),
        (_, role) => role,
    };
    if asked.patterns.is_empty() || of.patterns.is_empty() {
        let both = [asked.patterns, of.patterns.clone()];
        let patterns = both.into_iter().find(|patterns| !patterns.is_empty());
        return Ok(Scope {
            role,
            patterns: patterns.unwrap_or_default(),
        });
    }
    let beyond = asked
        .patterns
        .iter()
        .find(|inner| !of.patterns.iter().any(|outer| inside(inner, outer)));
    match beyond {
        Some(pattern) => Err(Beyond::Path(pattern.clone())),
        None => Ok(Scope {
            role,
            patterns: asked.patterns,
        }),
    }
}

/// Whether everything that `inner` is about, `outer` is about too.
fn inside(inner: &Pattern, outer: &Pattern) -> bool {
    if outer.is_all() || inner == outer {
        return true;
    }
    match (
        inner.as_str().strip_suffix("**"),
        outer.as_str().strip_suffix("**"),
    ) {
        (Some(inner), Some(outer)) => inner.starts_with(outer),
        (None, _) => outer.covers(inner.as_str()),
        (Some(_), None) => false,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_plain_and_nobody_elses() {
        for good in ["ana", "김민수", "deploy-bot", "ana.k@example.com", "7of9"] {
            assert_eq!(name(good).as_deref(), Ok(good));
        }
        assert_eq!(name("\u{1100}\u{1161}").as_deref(), Ok("가"));
        for wrong in [
            "",
            " ",
            "-x",
            "a b",
            "a/b",
            "group:x",
            "a\u{202e}b",
            "a\nb",
            &"a".repeat(65),
        ] {
            assert!(matches!(name(wrong), Err(NameError::Form(_))), "{wrong:?}");
        }
        for taken in ["everyone", "Local", "NOBODY"] {
            assert!(matches!(name(taken), Err(NameError::Taken(_))), "{taken}");
        }
    }

    fn scope(role: Option<Role>, patterns: &[&str]) -> Scope {
        Scope {
            role,
            patterns: patterns
                .iter()
                .map(|text| Pattern::parse(text).unwrap())
                .collect(),
        }
    }

    #[test]
    fn a_credential_hands_on_at_most_what_it_has() {
        let author = scope(Some(Role::Author), &[]);
        let admin = scope(Some(Role::Admin), &[]);
        let all = Scope::default();
        assert_eq!(within(&author, all.clone()), Ok(author.clone()));
        assert_eq!(
            within(&author, admin.clone()),
            Err(Beyond::Role(Role::Author))
        );
        assert_eq!(within(&all, admin.clone()), Ok(admin));
        let sre = scope(None, &["prompts/sre/**"]);
        assert_eq!(within(&sre, all.clone()), Ok(sre.clone()));
        for (asked, good) in [
            ("prompts/sre/x.md", true),
            ("prompts/sre/deep/**", true),
            ("prompts/**", false),
            ("**", false),
            ("labels.toml", false),
        ] {
            assert_eq!(within(&sre, scope(None, &[asked])).is_ok(), good, "{asked}");
        }
        let file = scope(None, &["prompts/sre/x"]);
        assert!(within(&file, scope(None, &["prompts/sre/**"])).is_err());
    }
}
