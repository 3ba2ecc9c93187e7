//! Parameters: kept raw, decoded by the method that wants them, wrong ones named.

use std::borrow::Cow;
use std::fmt;

use serde::Deserialize;
use serde::de::{DeserializeSeed, IgnoredAny, MapAccess, Visitor};
use serde_json::value::RawValue;

use super::envelope::{kind, present, text};
use super::error::RpcError;

/// Arguments of one call, at most: a prompt declares 32 of them at most.
pub const MAX_ARGUMENTS: usize = 1000;

/// Every parameter that any method here reads.
#[derive(Debug, Default, Deserialize)]
pub struct Params<'a> {
    #[serde(borrow, default, deserialize_with = "present", rename = "_meta")]
    pub(super) meta: Option<&'a RawValue>,
    #[serde(borrow, default, deserialize_with = "present")]
    pub(super) name: Option<&'a RawValue>,
    #[serde(borrow, default, deserialize_with = "present")]
    pub(super) uri: Option<&'a RawValue>,
    #[serde(borrow, default, deserialize_with = "present")]
    pub(super) cursor: Option<&'a RawValue>,
    #[serde(borrow, default, deserialize_with = "present")]
    pub(super) arguments: Option<&'a RawValue>,
    #[serde(borrow, default, deserialize_with = "present", rename = "ref")]
    pub(super) reference: Option<&'a RawValue>,
    #[serde(borrow, default, deserialize_with = "present")]
    pub(super) argument: Option<&'a RawValue>,
    #[serde(borrow, default, deserialize_with = "present")]
    pub(super) context: Option<&'a RawValue>,
    #[serde(borrow, default, deserialize_with = "present")]
    pub(super) notifications: Option<&'a RawValue>,
    #[serde(borrow, default, deserialize_with = "present")]
    pub(super) level: Option<&'a RawValue>,
    #[serde(
        borrow,
        default,
        deserialize_with = "present",
        rename = "protocolVersion"
    )]
    pub(super) protocol_version: Option<&'a RawValue>,
    #[serde(borrow, default, deserialize_with = "present", rename = "clientInfo")]
    pub(super) client_info: Option<&'a RawValue>,
    #[serde(borrow, default, deserialize_with = "present", rename = "requestId")]
    pub(super) request_id: Option<&'a RawValue>,
}

impl<'a> Params<'a> {
    pub(super) fn parse(raw: &'a RawValue) -> Result<Self, RpcError> {
        match raw.get().as_bytes().first() {
            Some(b'{') => serde_json::from_str(raw.get())
                .map_err(|error| RpcError::invalid_params(format!("`params`: {error}"))),
            Some(b'n') => Ok(Self::default()),
            _ => Err(RpcError::invalid_params(format!(
                "`params` must be an object, not {}",
                kind(raw)
            ))),
        }
    }

    /// `params.name`.
    pub fn name(&self) -> Result<Cow<'a, str>, RpcError> {
        required_text(self.name, "name")
    }

    /// `params.uri`.
    pub fn uri(&self) -> Result<Cow<'a, str>, RpcError> {
        required_text(self.uri, "uri")
    }

    /// `params.cursor`; null and absent are the same.
    pub fn cursor(&self) -> Result<Option<Cow<'a, str>>, RpcError> {
        optional_text(self.cursor, "cursor")
    }

    /// `params.arguments` of a prompt: strings by name. Null and absent mean none.
    pub fn prompt_arguments(&self) -> Result<Arguments<'a>, RpcError> {
        Arguments::parse(self.arguments, "arguments")
    }
}

pub(super) fn required_text<'a>(
    raw: Option<&'a RawValue>,
    name: &str,
) -> Result<Cow<'a, str>, RpcError> {
    let raw = raw.ok_or_else(|| RpcError::invalid_params(format!("`{name}` is missing")))?;
    text(raw).ok_or_else(|| RpcError::invalid_params(format!("`{name}` {}", not_text(raw))))
}

fn not_text(raw: &RawValue) -> String {
    match kind(raw) {
        "a string" => "must be valid Unicode".to_owned(),
        other => format!("must be a string, not {other}"),
    }
}

pub(super) fn optional_text<'a>(
    raw: Option<&'a RawValue>,
    name: &str,
) -> Result<Option<Cow<'a, str>>, RpcError> {
    match raw {
        Some(raw) if raw.get() != "null" => required_text(Some(raw), name).map(Some),
        _ => Ok(None),
    }
}

/// Decodes an object parameter into a struct; null and absent give its default.
pub(super) fn object<'a, T: Deserialize<'a> + Default>(
    raw: Option<&'a RawValue>,
    name: &str,
) -> Result<T, RpcError> {
    match raw {
        None => Ok(T::default()),
        Some(raw) => match raw.get().as_bytes().first() {
            Some(b'{') => serde_json::from_str(raw.get())
                .map_err(|error| RpcError::invalid_params(format!("`{name}`: {error}"))),
            Some(b'n') => Ok(T::default()),
            _ => Err(RpcError::invalid_params(format!(
                "`{name}` must be an object, not {}",
                kind(raw)
            ))),
        },
    }
}

/// Argument values by name, in the order they came.
#[derive(Debug, Default, PartialEq, Eq)]
pub struct Arguments<'a>(pub Vec<(Cow<'a, str>, Cow<'a, str>)>);

impl<'a> Arguments<'a> {
    /// Reads an object of strings.
    pub fn parse(raw: Option<&'a RawValue>, name: &str) -> Result<Self, RpcError> {
        let Some(raw) = raw else {
            return Ok(Self::default());
        };
        match raw.get().as_bytes().first() {
            Some(b'{') => {}
            Some(b'n') => return Ok(Self::default()),
            _ => {
                return Err(RpcError::invalid_params(format!(
                    "`{name}` must be an object of strings, not {}",
                    kind(raw)
                )));
            }
        }
        let mut deserializer = serde_json::Deserializer::from_str(raw.get());
        let read = ArgumentsSeed
            .deserialize(&mut deserializer)
            .map_err(|error| RpcError::invalid_params(format!("`{name}`: {error}")))?;
        match read.fault {
            None => Ok(Self(read.values)),
            Some(Fault::TooMany) => Err(RpcError::invalid_params(format!(
                "more than {MAX_ARGUMENTS} arguments were given"
            ))),
            Some(Fault::NotText(argument, why)) => {
                let argument: String = argument.chars().take(40).collect();
                Err(RpcError::invalid_params(format!(
                    "argument `{argument}` {why}"
                )))
            }
        }
    }

    /// Pairs of name and value.
    pub fn iter(&self) -> impl Iterator<Item = (&str, &str)> {
        self.0.iter().map(|(name, value)| (&**name, &**value))
    }
}

struct ArgumentsSeed;

struct Read<'a> {
    values: Vec<(Cow<'a, str>, Cow<'a, str>)>,
    fault: Option<Fault>,
}

enum Fault {
    NotText(String, String),
    TooMany,
}

impl<'de> DeserializeSeed<'de> for ArgumentsSeed {
    type Value = Read<'de>;

    fn deserialize<D: serde::Deserializer<'de>>(
        self,
        deserializer: D,
    ) -> Result<Read<'de>, D::Error> {
        deserializer.deserialize_map(self)
    }
}

impl<'de> Visitor<'de> for ArgumentsSeed {
    type Value = Read<'de>;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("an object of strings")
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Read<'de>, A::Error> {
        let mut read = Read {
            values: Vec::new(),
            fault: None,
        };
        // The rest is read over once a fault is known: the map has to be left at its end.
        loop {
            if read.fault.is_some() {
                while map.next_entry::<IgnoredAny, IgnoredAny>()?.is_some() {}
                return Ok(read);
            }
            let Some(name) = map.next_key_seed(TextSeed)? else {
                return Ok(read);
            };
            let raw: &'de RawValue = map.next_value()?;
            match text(raw) {
                _ if read.values.len() == MAX_ARGUMENTS => read.fault = Some(Fault::TooMany),
                Some(value) => read.values.push((name, value)),
                None => read.fault = Some(Fault::NotText(name.into_owned(), not_text(raw))),
            }
        }
    }
}

/// A string, borrowed where it has no escapes.
struct TextSeed;

impl<'de> DeserializeSeed<'de> for TextSeed {
    type Value = Cow<'de, str>;

    fn deserialize<D: serde::Deserializer<'de>>(
        self,
        deserializer: D,
    ) -> Result<Cow<'de, str>, D::Error> {
        deserializer.deserialize_str(self)
    }
}

impl<'de> Visitor<'de> for TextSeed {
    type Value = Cow<'de, str>;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a string")
    }

    fn visit_borrowed_str<E>(self, text: &'de str) -> Result<Cow<'de, str>, E> {
        Ok(Cow::Borrowed(text))
    }

    fn visit_str<E>(self, text: &str) -> Result<Cow<'de, str>, E> {
        Ok(Cow::Owned(text.to_owned()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(json: &str, expected: Result<&[(&str, &str)], &str>) {
        let raw: &RawValue = serde_json::from_str(json).unwrap();
        let read = Arguments::parse(Some(raw), "arguments");
        match (read, expected) {
            (Ok(read), Ok(expected)) => assert_eq!(read.iter().collect::<Vec<_>>(), expected),
            (Err(error), Err(expected)) => assert_eq!(error.message, expected),
            (read, expected) => panic!("{read:?} is not {expected:?}"),
        }
    }

    #[test]
    fn p4_strings_of_any_kind_and_nothing_else() {
        check("null", Ok(&[]));
        check("{}", Ok(&[]));
        check(
            r#"{"a":"$1","b":"\"quoted","":"","서":"\u0001\n"}"#,
            Ok(&[("a", "$1"), ("b", "\"quoted"), ("", ""), ("서", "\u{1}\n")]),
        );
        check(
            "5",
            Err("`arguments` must be an object of strings, not a number"),
        );
        check(
            "[]",
            Err("`arguments` must be an object of strings, not an array"),
        );
        check(
            r#"{"a":"x","n":7,"m":{}}"#,
            Err("argument `n` must be a string, not a number"),
        );
        check(
            r#"{"n":null}"#,
            Err("argument `n` must be a string, not null"),
        );
        check(
            r#"{"n":[[["x"]]]}"#,
            Err("argument `n` must be a string, not an array"),
        );
        check(
            r#"{"n":"\ud800"}"#,
            Err("argument `n` must be valid Unicode"),
        );
    }

    #[test]
    fn a_million_arguments_are_refused_without_keeping_them() {
        let many: Vec<String> = (0..200_000).map(|n| format!(r#""a{n}":"x""#)).collect();
        check(
            &format!("{{{}}}", many.join(",")),
            Err("more than 1000 arguments were given"),
        );
    }
}
