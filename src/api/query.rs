//! What a URL asks for after its `?`.

use std::collections::BTreeMap;

use axum::http::{StatusCode, Uri};
use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;

use super::Refusal;

/// Entries of a page of a list that is held in memory, at most and unless the request says.
const MOST: i64 = 1000;

fn wrong(detail: impl Into<String>) -> Refusal {
    Refusal::new(StatusCode::BAD_REQUEST, detail)
}

fn url(uri: &Uri) -> Result<reqwest::Url, Refusal> {
    let url = format!("http://localhost/?{}", uri.query().unwrap_or_default());
    reqwest::Url::parse(&url).map_err(|error| wrong(error.to_string()))
}

/// Refuses a parameter of a URL that is none of these.
pub(super) fn only(uri: &Uri, known: &[&str]) -> Result<(), Refusal> {
    for (name, _) in url(uri)?.query_pairs() {
        if !known.contains(&&*name) {
            let name: String = name.chars().take(40).collect();
            return Err(wrong(if known.is_empty() {
                format!("there is no parameter `{name}`; this takes none")
            } else {
                format!(
                    "there is no parameter `{name}`; there are {}",
                    known.join(", ")
                )
            }));
        }
    }
    Ok(())
}

/// The parameters of a URL, among which are only those of its description; one that is said twice is refused.
#[derive(Debug)]
pub(super) struct Query(BTreeMap<String, String>);

impl Query {
    /// Reads them.
    pub(super) fn of(uri: &Uri) -> Result<Self, Refusal> {
        let mut out = BTreeMap::new();
        for (name, value) in url(uri)?.query_pairs() {
            if out.insert(name.to_string(), value.into_owned()).is_some() {
                return Err(wrong(format!("`{name}` stands twice")));
            }
        }
        out.retain(|_, value| !value.is_empty());
        Ok(Self(out))
    }

    pub(super) fn text(&self, name: &str) -> Option<&str> {
        self.0.get(name).map(String::as_str)
    }

    /// A number within bounds.
    pub(super) fn number(&self, name: &str, least: i64, most: i64) -> Result<Option<i64>, Refusal> {
        let Some(text) = self.text(name) else {
            return Ok(None);
        };
        match text.parse::<i64>() {
            Ok(number) if (least..=most).contains(&number) => Ok(Some(number)),
            _ => Err(wrong(format!(
                "`{name}` must be a number from {least} to {most}"
            ))),
        }
    }

    /// Leaves of a list the page that is asked for, and gives what `cursor` says to get the next. The list is in the order
    /// of its keys, so that what is added and removed meanwhile moves nothing.
    pub(super) fn page<T>(
        &self,
        list: &mut Vec<T>,
        key: impl Fn(&T) -> String,
    ) -> Result<Option<String>, Refusal> {
        let limit = self.number("limit", 1, MOST)?.unwrap_or(MOST);
        let limit = usize::try_from(limit).unwrap_or(usize::MAX);
        if let Some(after) = self.after(|text| Some(text.to_owned()))? {
            list.retain(|entry| key(entry) > after);
        }
        let more = list.len() > limit;
        list.truncate(limit);
        let last = list.last().filter(|_| more);
        Ok(last.map(|entry| cursor(&key(entry))))
    }

    /// The key of the entry that `cursor` names, as `parse` reads it.
    pub(super) fn after<T>(
        &self,
        parse: impl FnOnce(&str) -> Option<T>,
    ) -> Result<Option<T>, Refusal> {
        let Some(cursor) = self.text("cursor") else {
            return Ok(None);
        };
        let bytes = URL_SAFE_NO_PAD.decode(cursor).ok();
        let key = bytes.and_then(|bytes| parse(std::str::from_utf8(&bytes).ok()?));
        if key.is_none() {
            return Err(wrong(
                "`cursor` must be the `next_cursor` of an earlier answer",
            ));
        }
        Ok(key)
    }
}

/// What `cursor` says to go on after the entry of a key.
pub(super) fn cursor(key: &str) -> String {
    URL_SAFE_NO_PAD.encode(key)
}
