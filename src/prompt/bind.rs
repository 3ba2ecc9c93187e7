//! Binding: from given argument values to checked ones with defaults filled in.

use std::sync::Arc;

use super::{argument::Argument, limits::Limits};

/// Argument values that satisfy a prompt's declaration, one for each declared argument, in order.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct BoundArguments {
    values: Vec<(Arc<str>, String)>,
    unknown: Vec<String>,
}

/// Why values do not satisfy a declaration.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum BindError {
    /// Required arguments without a value, every one that is missing.
    #[error("missing required {}: {}", if .0.len() == 1 { "argument" } else { "arguments" }, .0.join(", "))]
    Missing(Vec<String>),
    /// All values together are over the limit.
    #[error(
        "the arguments are {actual} bytes in all; at most {limit} are accepted (arguments_bytes)"
    )]
    TooLarge {
        /// Bytes given.
        actual: usize,
        /// Bytes accepted.
        limit: usize,
    },
}

impl BoundArguments {
    /// Binds given values: `""` and an absent value mean the same, unknown names are set aside.
    pub fn bind<'a>(
        declared: &[Argument],
        given: impl IntoIterator<Item = (&'a str, &'a str)>,
        limits: &Limits,
    ) -> Result<Self, BindError> {
        let mut values: Vec<(Arc<str>, String)> = declared
            .iter()
            .map(|a| (a.name.clone(), String::new()))
            .collect();
        let mut unknown = Vec::new();
        let mut size = 0usize;
        for (name, value) in given {
            size = size.saturating_add(value.len());
            if size > limits.arguments_bytes {
                continue;
            }
            match declared.iter().position(|a| &*a.name == name) {
                Some(at) => value.clone_into(&mut values[at].1),
                None if unknown.len() < 16 => unknown.push(name.chars().take(40).collect()),
                None => {}
            }
        }
        if size > limits.arguments_bytes {
            return Err(BindError::TooLarge {
                actual: size,
                limit: limits.arguments_bytes,
            });
        }
        let mut missing = Vec::new();
        for (argument, (_, value)) in declared.iter().zip(&mut values) {
            if value.is_empty() {
                match &argument.default {
                    Some(default) => value.clone_from(default),
                    None if argument.required => missing.push(argument.name.to_string()),
                    None => {}
                }
            }
        }
        if missing.is_empty() {
            Ok(Self { values, unknown })
        } else {
            Err(BindError::Missing(missing))
        }
    }

    /// Names and values in declared order.
    pub fn iter(&self) -> impl Iterator<Item = (&str, &str)> {
        self.values
            .iter()
            .map(|(name, value)| (&**name, value.as_str()))
    }

    /// The value of a declared argument.
    pub fn get(&self, name: &str) -> Option<&str> {
        self.iter().find(|(n, _)| *n == name).map(|(_, v)| v)
    }

    /// Given names that the prompt does not declare, at most 16, each cut to 40 characters.
    pub fn unknown(&self) -> &[String] {
        &self.unknown
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::prompt::argument::Completable;

    fn argument(name: &str, required: bool, default: Option<&str>) -> Argument {
        Argument {
            name: name.into(),
            description: None,
            required,
            default: default.map(Into::into),
            values: Completable::default(),
        }
    }

    #[test]
    fn empty_and_absent_are_the_same() {
        let declared = [argument("a", false, Some("x")), argument("b", false, None)];
        for given in [vec![], vec![("a", ""), ("b", "")]] {
            let bound = BoundArguments::bind(&declared, given, &Limits::default()).unwrap();
            assert_eq!(bound.iter().collect::<Vec<_>>(), [("a", "x"), ("b", "")]);
        }
    }

    #[test]
    fn every_missing_argument_is_named() {
        let declared = [
            argument("a", true, None),
            argument("b", true, None),
            argument("c", true, Some("d")),
        ];
        assert_eq!(
            BoundArguments::bind(&declared, [("a", "")], &Limits::default()),
            Err(BindError::Missing(vec!["a".into(), "b".into()]))
        );
    }

    #[test]
    fn unknown_names_are_set_aside_and_size_is_bounded() {
        let limits = Limits {
            arguments_bytes: 10,
            ..Limits::default()
        };
        let bound = BoundArguments::bind(&[], [("zzz", "1")], &limits).unwrap();
        assert_eq!(bound.unknown(), ["zzz"]);
        assert_eq!(
            BoundArguments::bind(&[], [("zzz", "12345678901")], &limits),
            Err(BindError::TooLarge {
                actual: 11,
                limit: 10
            })
        );
    }
}
