//! What one actor may do where: grants put together. Pure.

use std::collections::BTreeSet;
use std::sync::Arc;
use std::sync::LazyLock;

use super::pattern::Pattern;
use super::role::{Action, Role};

/// A role somewhere.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Grant {
    /// What may be done.
    pub role: Role,
    /// Where.
    pub pattern: Pattern,
}

/// What a credential takes away from what its owner may do.
#[derive(Debug, Clone, Default, PartialEq, Eq, Hash)]
pub struct Scope {
    /// The most it may do; none for all that its owner may.
    pub role: Option<Role>,
    /// Where; empty for everywhere.
    pub patterns: Vec<Pattern>,
}

/// What an actor may do.
#[derive(Debug, Clone, Default, PartialEq, Eq, Hash)]
pub struct Permissions {
    grants: BTreeSet<Grant>,
    scope: Scope,
}

static EVERYTHING: LazyLock<Arc<Permissions>> = LazyLock::new(|| {
    Arc::new(Permissions::new(
        [Grant {
            role: Role::Admin,
            pattern: Pattern::all(),
        }],
        Scope::default(),
    ))
});

impl Permissions {
    /// Grants, within a scope.
    pub fn new(grants: impl IntoIterator<Item = Grant>, scope: Scope) -> Self {
        Self {
            grants: grants.into_iter().collect(),
            scope,
        }
    }

    /// Everything.
    pub fn everything() -> Arc<Self> {
        EVERYTHING.clone()
    }

    /// What the credential takes away.
    pub fn scope(&self) -> &Scope {
        &self.scope
    }

    /// The role at a path; none where the path is not even seen. The empty path is the whole library.
    pub fn role_at(&self, path: &str) -> Option<Role> {
        let patterns = &self.scope.patterns;
        if !patterns.is_empty() && !patterns.iter().any(|pattern| pattern.covers(path)) {
            return None;
        }
        let granted = self
            .grants
            .iter()
            .filter(|grant| grant.pattern.covers(path))
            .map(|grant| grant.role)
            .max()?;
        Some(self.scope.role.map_or(granted, |most| granted.min(most)))
    }

    /// Whether something may be done at a path.
    pub fn may(&self, action: Action, path: &str) -> bool {
        self.role_at(path)
            .is_some_and(|role| role >= action.needs())
    }

    /// Whether something may be done at any path there could be.
    pub fn may_somewhere(&self, action: Action) -> bool {
        let needed = action.needs();
        if self.scope.role.is_some_and(|most| most < needed) {
            return false;
        }
        self.grants
            .iter()
            .filter(|grant| grant.role >= needed)
            .any(|grant| {
                self.scope.patterns.is_empty()
                    || self
                        .scope
                        .patterns
                        .iter()
                        .any(|pattern| meet(pattern, &grant.pattern))
            })
    }

    /// Whether the whole library is seen.
    pub fn sees_all(&self) -> bool {
        self.may(Action::Read, "")
    }
}

/// Whether any path is covered by both.
fn meet(a: &Pattern, b: &Pattern) -> bool {
    let inside = |inner: &Pattern, outer: &Pattern| match inner.as_str().strip_suffix("**") {
        // one path below the folder stands for all of them
        Some(folder) => outer.covers(&format!("{folder}x")),
        None => outer.covers(inner.as_str()),
    };
    inside(a, b) || inside(b, a)
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;

    fn grants(text: &[(&str, &str)]) -> Vec<Grant> {
        text.iter()
            .map(|(role, pattern)| Grant {
                role: Role::parse(role).unwrap(),
                pattern: Pattern::parse(pattern).unwrap(),
            })
            .collect()
    }

    #[test]
    fn the_highest_grant_counts_and_the_scope_caps_it() {
        let granted = grants(&[
            ("reader", "**"),
            ("publisher", "prompts/sre/**"),
            ("author", "prompts/**"),
        ]);
        let all = Permissions::new(granted.clone(), Scope::default());
        assert_eq!(all.role_at("prompts/sre/a.md"), Some(Role::Publisher));
        assert_eq!(all.role_at("prompts/b.md"), Some(Role::Author));
        assert_eq!(all.role_at("labels.toml"), Some(Role::Reader));
        assert!(all.sees_all());
        assert!(!all.may(Action::Publish, ""));
        let scope = Scope {
            role: Some(Role::Author),
            patterns: vec![Pattern::parse("prompts/sre/**").unwrap()],
        };
        let capped = Permissions::new(granted, scope);
        assert_eq!(capped.role_at("prompts/sre/a.md"), Some(Role::Author));
        assert_eq!(capped.role_at("prompts/b.md"), None);
        assert!(!capped.sees_all());
        assert!(capped.may_somewhere(Action::Propose));
        assert!(!capped.may_somewhere(Action::Publish));
    }

    #[test]
    fn a_scope_beside_every_grant_leaves_nothing() {
        let scope = Scope {
            role: None,
            patterns: vec![Pattern::parse("resources/**").unwrap()],
        };
        let apart = Permissions::new(grants(&[("admin", "prompts/sre/**")]), scope);
        for action in Action::ALL {
            assert!(!apart.may_somewhere(action), "{action:?}");
        }
        let scope = Scope {
            role: None,
            patterns: vec![Pattern::parse("prompts/**").unwrap()],
        };
        let inside = Permissions::new(grants(&[("reader", "prompts/sre/a.md")]), scope);
        assert!(inside.may_somewhere(Action::Read));
        assert!(!inside.may_somewhere(Action::Propose));
    }

    #[test]
    fn who_has_nothing_may_nothing() {
        let none = Permissions::default();
        for action in Action::ALL {
            assert!(
                !none.may_somewhere(action)
                    && !none.may(action, "")
                    && !none.may(action, "prompts/a.md")
            );
            assert!(
                Permissions::everything().may(action, "")
                    && Permissions::everything().may(action, "labels.toml")
            );
        }
    }
}
