//! What the server says where it refuses something, in the language of who reads it.
//!
//! Such a line is English where it is made, wherever that is. The texts below `said.` of `en.toml` are these lines, with a
//! name for each part that differs; those of `ko.toml` say the same in Korean. A line that is not among them stays as it is.

use axum::body::{Body, HttpBody as _};
use axum::http::HeaderMap;
use axum::http::header::{self, HeaderValue};
use axum::response::{IntoResponse, Response};
use serde_json::Value;

use super::text::Lang;
use crate::http::actor::cookie;

/// Answers that are longer, in bytes, are not read for their lines: they hold whole files.
const MOST: u64 = 1024 * 1024;

/// A text of one line or more, in a language.
pub fn told(lang: Lang, text: &str) -> String {
    if lang == Lang::En {
        return text.to_owned();
    }
    let line = |line: &str| {
        let plain = line.trim_start();
        let indent = &line[..line.len() - plain.len()];
        said(lang, plain).map_or_else(|| line.to_owned(), |said| format!("{indent}{said}"))
    };
    text.lines().map(line).collect::<Vec<_>>().join("\n")
}

/// A line that is known, in a language; of several that fit, the one of which the most is fixed.
fn said(lang: Lang, line: &str) -> Option<String> {
    let (key, parts) = known(line)?;
    let parts: Vec<(&str, String)> = parts
        .into_iter()
        .map(|(name, part)| {
            let whole = known(part).filter(|(_, parts)| parts.is_empty());
            let text = whole.map_or_else(|| part.to_owned(), |(key, _)| lang.text(key, &[]));
            (name, text)
        })
        .collect();
    let parts: Vec<(&str, &str)> = parts.iter().map(|(name, text)| (*name, &**text)).collect();
    Some(lang.text(key, &parts))
}

/// The parts of a line, by name.
type Parts<'a> = Vec<(&'static str, &'a str)>;

fn known(line: &str) -> Option<(&'static str, Parts<'_>)> {
    let patterns = Lang::En.table().iter();
    let fitting = patterns
        .filter(|(key, _)| key.starts_with("said."))
        .filter_map(|(key, pattern)| {
            let (fixed, parts) = parts(pattern, line)?;
            Some((fixed, key.as_str(), parts))
        });
    let (_, key, parts) = fitting.max_by_key(|(fixed, ..)| *fixed)?;
    Some((key, parts))
}

/// How much of a pattern is fixed, and what stands in a line for its `{name}`.
fn parts<'a>(pattern: &'static str, line: &'a str) -> Option<(usize, Parts<'a>)> {
    let mut pieces = pattern.split('{');
    let first = pieces.next()?;
    let mut rest = line.strip_prefix(first)?;
    let (mut fixed, mut out) = (first.len(), Vec::new());
    let mut pieces = pieces.peekable();
    while let Some(piece) = pieces.next() {
        let (name, after) = piece.split_once('}')?;
        let at = if pieces.peek().is_some() {
            rest.find(after)?
        } else {
            rest.strip_suffix(after)?.len()
        };
        out.push((name, &rest[..at]));
        rest = &rest[at + after.len()..];
        fixed += after.len();
    }
    rest.is_empty().then_some((fixed, out))
}

/// The language of who asks.
pub(super) fn lang_of(headers: &HeaderMap) -> Lang {
    let accepted = headers.get(header::ACCEPT_LANGUAGE);
    Lang::asked(
        cookie(headers, "lang"),
        accepted.and_then(|value| value.to_str().ok()),
    )
}

/// An answer for a program of somebody who reads a language: where it refuses, its lines are in that (RFC 9457, section 3).
pub(super) async fn answer(lang: Lang, response: Response) -> Response {
    let kind = response.headers().get(header::CONTENT_TYPE);
    let is_json =
        kind.is_some_and(|kind| kind == "application/problem+json" || kind == "application/json");
    let is_short = response
        .body()
        .size_hint()
        .upper()
        .is_some_and(|bytes| bytes <= MOST);
    if lang == Lang::En || response.status().as_u16() < 400 || !is_json || !is_short {
        return response;
    }
    let (mut parts, body) = response.into_parts();
    let Ok(bytes) = axum::body::to_bytes(body, usize::MAX).await else {
        return parts.status.into_response();
    };
    let Ok(mut value) = serde_json::from_slice::<Value>(&bytes) else {
        return Response::from_parts(parts, Body::from(bytes));
    };
    let in_lang = |value: &mut Value| {
        if let Value::String(text) = value {
            *text = told(lang, text);
        }
    };
    for name in ["detail", "error"] {
        value.get_mut(name).into_iter().for_each(in_lang);
    }
    let refusals = value.get_mut("refusals").and_then(Value::as_array_mut);
    for refusal in refusals.into_iter().flatten() {
        refusal.get_mut("detail").into_iter().for_each(in_lang);
    }
    parts.headers.remove(header::CONTENT_LENGTH);
    let tag = HeaderValue::from_static(lang.tag());
    parts.headers.insert(header::CONTENT_LANGUAGE, tag);
    Response::from_parts(parts, Body::from(value.to_string()))
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use super::*;

    /// Bytes that say which line it is.
    const FIXED: usize = 9;

    fn source(folder: &Path, out: &mut String) {
        for entry in std::fs::read_dir(folder).unwrap() {
            let path = entry.unwrap().path();
            if path.is_dir() {
                source(&path, out);
            } else if path.extension().is_some_and(|ending| ending == "rs") {
                let text = std::fs::read_to_string(&path).unwrap();
                // a string that goes on in the next line
                let mut lines = text.split("\\\n");
                out.push_str(lines.next().unwrap_or_default());
                for line in lines {
                    out.push_str(line.trim_start());
                }
            }
        }
    }

    #[test]
    fn every_line_is_one_that_the_server_says() {
        let mut all = String::new();
        source(&Path::new(env!("CARGO_MANIFEST_DIR")).join("src"), &mut all);
        let mut found = 0;
        for (key, pattern) in Lang::En.table() {
            if !key.starts_with("said.") {
                continue;
            }
            let mut longest = "";
            for (n, piece) in pattern.split('{').enumerate() {
                let piece = match n {
                    0 => piece,
                    _ => piece.split_once('}').unwrap().1,
                };
                let piece = piece.trim_matches(|c: char| !c.is_alphanumeric());
                if piece.len() >= FIXED {
                    assert!(all.contains(piece), "{key}: nobody says `{piece}`");
                }
                if piece.len() > longest.len() {
                    longest = piece;
                }
            }
            assert!(longest.len() >= FIXED, "{key} could be anything");
            // and it is found by itself
            assert_eq!(known(pattern).unwrap().0, key, "{pattern}");
            found += 1;
        }
        assert!(found > 50, "{found}");
    }

    #[test]
    fn a_line_is_told_with_its_parts() {
        let check = |line: &str, expected: &str| assert_eq!(told(Lang::Ko, line), expected);
        check(
            "proposal 7 has changed since you saw it; look again, then repeat what you did",
            "그사이 제안 7이(가) 바뀌었습니다. 다시 살펴본 뒤 한 번 더 하세요.",
        );
        check(
            "`a {b} c` is no address of mail\n  unknown line",
            "`a {b} c`은(는) 메일 주소가 아닙니다.\n  unknown line",
        );
        // who may approve is said in words
        check(
            "a.md, b.md take 2 approvals of the newest revision and have 0; anybody who may review them and has no part \
             in the proposal can approve",
            "a.md, b.md: 최신 수정본에 승인이 2건 필요하며 지금 0건입니다. 승인할 수 있는 사람: 검토 권한이 있고 이 제안에 참여하지 \
             않은 누구나",
        );
        check("", "");
        assert_eq!(
            told(Lang::En, "proposal 7 is merged"),
            "proposal 7 is merged"
        );
    }
}
