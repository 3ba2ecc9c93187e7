//! The texts of the pages in each language, and which language someone reads; what stands in a query.

use std::collections::BTreeMap;
use std::sync::LazyLock;

use percent_encoding::{AsciiSet, NON_ALPHANUMERIC, percent_decode_str, utf8_percent_encode};
use serde::Serialize;

/// What stays as it is in a query or a path segment.
const KEPT: &AsciiSet = &NON_ALPHANUMERIC
    .remove(b'-')
    .remove(b'_')
    .remove(b'.')
    .remove(b'~');

/// A language of the pages.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Lang {
    /// English.
    En,
    /// Korean.
    Ko,
}

impl Lang {
    /// All of them.
    pub const ALL: [Self; 2] = [Self::En, Self::Ko];

    /// Its tag (BCP 47).
    pub fn tag(self) -> &'static str {
        match self {
            Self::En => "en",
            Self::Ko => "ko",
        }
    }

    /// The language of a tag such as `ko` or `ko-KR`.
    pub fn of_tag(tag: &str) -> Option<Self> {
        let primary = tag.split(['-', '_']).next()?.trim();
        Self::ALL
            .into_iter()
            .find(|lang| lang.tag().eq_ignore_ascii_case(primary))
    }

    /// What a cookie says, else the first of `Accept-Language` that there is, by weight; else English.
    pub fn asked(cookie: Option<&str>, accept: Option<&str>) -> Self {
        if let Some(lang) = cookie.and_then(Self::of_tag) {
            return lang;
        }
        let mut best: Option<(f32, Self)> = None;
        for range in accept.unwrap_or_default().split(',') {
            let (tag, parameters) = range.split_once(';').unwrap_or((range, ""));
            let weight = parameters
                .trim()
                .strip_prefix("q=")
                .map_or(Some(1.0), |q| q.trim().parse::<f32>().ok())
                .unwrap_or(0.0);
            if let Some(lang) = Self::of_tag(tag.trim())
                && weight > 0.0
                && best.is_none_or(|(most, _)| weight > most)
            {
                best = Some((weight, lang));
            }
        }
        best.map_or(Self::En, |(_, lang)| lang)
    }

    /// The text of a key, with each `{name}` replaced; the key itself where there is none, which a test rules out.
    pub fn text(self, key: &str, values: &[(&str, &str)]) -> String {
        let Some(text) = self.table().get(key) else {
            return key.to_owned();
        };
        fill(text, values)
    }

    /// The text of a count: the key with `.one` for one in a language that tells one from more, else with `.other`.
    pub fn counted(self, key: &str, count: i64, values: &[(&str, &str)]) -> String {
        let form = if count == 1 { "one" } else { "other" };
        let shown = grouped(count);
        let mut all = vec![("n", shown.as_str())];
        all.extend_from_slice(values);
        self.text(&format!("{key}.{form}"), &all)
    }

    /// All its texts by key.
    pub fn table(self) -> &'static BTreeMap<String, String> {
        match self {
            Self::En => &TABLES[0],
            Self::Ko => &TABLES[1],
        }
    }

    /// The texts that scripts need, as JSON: those below `js.`, without that.
    pub(super) fn of_scripts(self) -> &'static str {
        match self {
            Self::En => &SCRIPTS[0],
            Self::Ko => &SCRIPTS[1],
        }
    }
}

/// A number with its thousands apart.
pub(super) fn grouped(number: i64) -> String {
    let digits = number.unsigned_abs().to_string();
    let mut out = String::new();
    for (i, digit) in digits.chars().enumerate() {
        if i > 0 && (digits.len() - i).is_multiple_of(3) {
            out.push(',');
        }
        out.push(digit);
    }
    if number < 0 {
        out.insert(0, '-');
    }
    out
}

/// A text with its `{name}` replaced, each once: what a value says is never looked at again.
fn fill(text: &str, values: &[(&str, &str)]) -> String {
    let mut out = String::with_capacity(text.len());
    let mut rest = text;
    while let Some(open) = rest.find('{') {
        let (before, after) = rest.split_at(open);
        out.push_str(before);
        let found = after.find('}').and_then(|close| {
            Some((
                close,
                values.iter().find(|(name, _)| *name == &after[1..close])?,
            ))
        });
        if let Some((close, (_, value))) = found {
            out.push_str(value);
            rest = &after[close + 1..];
        } else {
            out.push('{');
            rest = &after[1..];
        }
    }
    out.push_str(rest);
    out
}

static TABLES: LazyLock<[BTreeMap<String, String>; 2]> = LazyLock::new(|| {
    [
        include_str!("../../web/text/en.toml"),
        include_str!("../../web/text/ko.toml"),
    ]
    .map(|text| {
        let mut out = BTreeMap::new();
        if let Ok(table) = toml::from_str::<toml::Table>(text) {
            flatten("", &table, &mut out);
        }
        out
    })
});

static SCRIPTS: LazyLock<[String; 2]> = LazyLock::new(|| {
    Lang::ALL.map(|lang| {
        let texts: BTreeMap<&str, &str> = lang
            .table()
            .iter()
            .filter_map(|(key, text)| Some((key.strip_prefix("js.")?, text.as_str())))
            .collect();
        serde_json::to_string(&texts).unwrap_or_default()
    })
});

fn flatten(prefix: &str, table: &toml::Table, out: &mut BTreeMap<String, String>) {
    for (key, value) in table {
        let key = if prefix.is_empty() {
            key.clone()
        } else {
            format!("{prefix}.{key}")
        };
        match value {
            toml::Value::Table(inner) => flatten(&key, inner, out),
            toml::Value::String(text) => {
                out.insert(key, text.clone());
            }
            _ => {}
        }
    }
}

/// What stands behind the `?` of a URL.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Query(Vec<(String, String)>);

impl Query {
    /// Reads it; what is not UTF-8 is shown as a replacement. A form's body reads the same.
    pub fn of(text: &str) -> Self {
        let decoded = |text: &str| {
            percent_decode_str(&text.replace('+', " "))
                .decode_utf8_lossy()
                .into_owned()
        };
        let pairs = text.split('&').filter(|pair| !pair.is_empty());
        Self(
            pairs
                .map(|pair| pair.split_once('=').unwrap_or((pair, "")))
                .map(|(name, value)| (decoded(name), decoded(value)))
                .collect(),
        )
    }

    /// The last value of a name; none where it is empty.
    pub fn get(&self, name: &str) -> Option<&str> {
        self.0
            .iter()
            .rev()
            .find(|(key, _)| key == name)
            .map(|(_, value)| value.as_str())
            .filter(|value| !value.is_empty())
    }

    /// All pairs, in their order.
    pub fn pairs(&self) -> impl Iterator<Item = (&str, &str)> {
        self.0.iter().map(|(name, value)| (&**name, &**value))
    }

    /// Every value of a name that is not empty.
    pub fn all<'a>(&'a self, name: &str) -> impl Iterator<Item = &'a str> {
        let name = name.to_owned();
        self.pairs()
            .filter(move |(key, value)| *key == name && !value.is_empty())
            .map(|(_, value)| value)
    }

    /// The same without a name.
    #[must_use]
    pub fn without(&self, name: &str) -> Self {
        let kept = self.0.iter().filter(|(key, _)| key != name);
        Self(kept.cloned().collect())
    }

    /// The query with a value of a name added, or taken out where it is there.
    pub fn toggled(&self, name: &str, value: &str) -> String {
        let mut kept: Vec<(String, String)> = self.0.clone();
        kept.retain(|(key, own)| key != name || own != value);
        if kept.len() == self.0.len() {
            kept.push((name.to_owned(), value.to_owned()));
        }
        Self(kept).with("", None)
    }

    /// The query with one name set to a value, or taken out; with its `?`, and empty where nothing is left.
    pub fn with(&self, name: &str, value: Option<&str>) -> String {
        let kept = self
            .pairs()
            .filter(|(key, value)| *key != name && !value.is_empty());
        let all: Vec<String> = kept
            .chain(value.map(|value| (name, value)))
            .map(|(name, value)| format!("{}={}", encoded(name), encoded(value)))
            .collect();
        if all.is_empty() {
            String::new()
        } else {
            format!("?{}", all.join("&"))
        }
    }
}

/// A text as a part of a URL.
pub fn encoded(text: &str) -> String {
    utf8_percent_encode(text, KEPT).to_string()
}

/// A path of the library as a part of a URL: its slashes stay.
pub fn encoded_path(path: &str) -> String {
    let parts: Vec<String> = path.split('/').map(encoded).collect();
    parts.join("/")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn placeholders(text: &str) -> Vec<&str> {
        let mut out: Vec<&str> = text
            .split('{')
            .skip(1)
            .filter_map(|rest| rest.split_once('}'))
            .map(|(name, _)| name)
            // other braces are text
            .filter(|name| name.bytes().all(|b| b.is_ascii_alphanumeric() || b == b'_'))
            .collect();
        out.sort_unstable();
        out
    }

    #[test]
    fn both_languages_say_everything() {
        let (en, ko) = (Lang::En.table(), Lang::Ko.table());
        assert!(en.len() > 40, "{}", en.len());
        assert_eq!(en.keys().collect::<Vec<_>>(), ko.keys().collect::<Vec<_>>());
        for (key, text) in en {
            let (parts, mut said) = (placeholders(text), placeholders(&ko[key]));
            // of what the server says, a part can be said in other words
            if key.starts_with("said.") {
                said.retain(|part| !parts.contains(part));
                assert!(said.is_empty(), "{key}: {said:?}");
            } else {
                assert_eq!(parts, said, "{key}");
            }
            assert!(
                !text.trim().is_empty() && !ko[key].trim().is_empty(),
                "{key}"
            );
        }
        // a text that was forgotten would be the same in both
        let same = en.iter().filter(|(key, text)| ko[*key] == **text).count();
        assert!(
            same * 4 < en.len(),
            "{same} texts of {} are not translated",
            en.len()
        );
    }

    #[test]
    fn values_are_put_in_once() {
        assert_eq!(
            fill("{a} and {b}", &[("a", "{b}"), ("b", "x")]),
            "{b} and x"
        );
        assert_eq!(fill("{ {a} {missing} {", &[("a", "1")]), "{ 1 {missing} {");
    }

    #[test]
    fn the_language_someone_reads() {
        let check = |cookie, accept, expected| assert_eq!(Lang::asked(cookie, accept), expected);
        check(None, None, Lang::En);
        check(None, Some("ko-KR,ko;q=0.9,en;q=0.8"), Lang::Ko);
        check(None, Some("en;q=0.5, ko;q=0.9"), Lang::Ko);
        check(None, Some("de, ko;q=0"), Lang::En);
        check(Some("en"), Some("ko"), Lang::En);
        check(Some("xx"), Some("ko"), Lang::Ko);
    }

    #[test]
    fn a_query_is_read_and_written() {
        let query = Query::of("q=%EA%B2%B0%EC%A0%9C+x&tag=a&tag=b&empty=");
        assert_eq!(query.get("q"), Some("결제 x"));
        assert_eq!(query.get("tag"), Some("b"));
        assert_eq!(query.get("empty"), None);
        assert_eq!(query.with("tag", None), "?q=%EA%B2%B0%EC%A0%9C%20x");
        assert_eq!(Query::of("").with("a", Some("<&>")), "?a=%3C%26%3E");
        assert_eq!(Query::of("a=1").with("a", None), "");
    }

    #[test]
    fn thousands_stand_apart() {
        assert_eq!(
            [0, 999, 1000, 1_234_567].map(grouped),
            ["0", "999", "1,000", "1,234,567"]
        );
    }
}
