//! What the server says, in the language of who reads it: what it refuses, problems of the check, why a prompt is rendered
//! apart, what is not as it should be, what a limit bounds.
//!
//! Such a line is English where it is made, wherever that is. The texts below `said.` of `en.toml` are these lines, with a
//! name for each part that differs; those of `ko.toml` say the same in Korean. A line that is not among them stays as it is.
//! A part is told the same way where it is known, unless it stands in backticks: then it quotes somebody. What is below
//! `said.part.` is known as a part alone.

use std::collections::BTreeMap;
use std::sync::LazyLock;

use axum::body::{Body, HttpBody as _};
use axum::http::HeaderMap;
use axum::http::header::{self, HeaderValue};
use axum::response::{IntoResponse, Response};
use serde_json::Value;

use super::text::Lang;
use crate::http::actor::cookie;

/// Answers that are longer, in bytes, are not read for their lines: they hold whole files.
const MOST: u64 = 1024 * 1024;

/// How deep parts are looked for in parts.
const DEPTH: usize = 3;

/// A text of one line or more, in a language.
pub fn told(lang: Lang, text: &str) -> String {
    if lang == Lang::En {
        return text.to_owned();
    }
    let line = |line: &str| {
        let plain = line.trim_start();
        let indent = &line[..line.len() - plain.len()];
        line_of(lang, plain, 0).map_or_else(|| line.to_owned(), |said| format!("{indent}{said}"))
    };
    text.lines().map(line).collect::<Vec<_>>().join("\n")
}

/// A line that is known, maybe behind a place, in a language: `path:line:column: ` or `path: `.
fn line_of(lang: Lang, line: &str, depth: usize) -> Option<String> {
    let behind = |(head, rest): (&str, &str)| {
        let rest = said(lang, rest, depth).or_else(|| listed(lang, rest, depth))?;
        Some(format!("{head}: {rest}"))
    };
    let placed = line.split_once(": ");
    placed
        .filter(|(head, _)| is_place(head) || is_path(head))
        .and_then(behind)
        .or_else(|| said(lang, line, depth))
        .or_else(|| listed(lang, line, depth))
}

/// `warning: …` or `hint: …`, as problems of a push are listed, in a language.
fn listed(lang: Lang, line: &str, depth: usize) -> Option<String> {
    let (word, rest) = line.split_once(": ")?;
    let key = match word {
        "warning" => "said.part.warning",
        "hint" => "said.part.hint",
        _ => return None,
    };
    let rest = said(lang, rest, depth)?;
    Some(format!("{}: {rest}", lang.text(key, &[])))
}

/// Whether a text is `path:line:column`.
fn is_place(text: &str) -> bool {
    let is_number = |field: Option<&str>| {
        field.is_some_and(|field| {
            !field.is_empty() && field.bytes().all(|byte| byte.is_ascii_digit())
        })
    };
    let mut fields = text.rsplitn(3, ':');
    is_number(fields.next())
        && is_number(fields.next())
        && fields.next().is_some_and(|path| !path.is_empty())
}

/// Whether a text can be the path of a file of a library.
fn is_path(text: &str) -> bool {
    !text.contains('`') && (text.contains('/') || matches!(text, "cuebook.toml" | "labels.toml"))
}

/// A line that is known, in a language; of several patterns that fit, the one of which the most is fixed.
fn said(lang: Lang, line: &str, depth: usize) -> Option<String> {
    let (pattern, parts) = known(line, depth > 0)?;
    let parts: Vec<(&str, String)> = pattern
        .names
        .iter()
        .zip(parts)
        .map(|(name, part)| {
            let is_told = !name.is_quoted && depth < DEPTH;
            let text = is_told.then(|| line_of(lang, part, depth + 1)).flatten();
            (name.name, text.unwrap_or_else(|| part.to_owned()))
        })
        .collect();
    let parts: Vec<(&str, &str)> = parts.iter().map(|(name, text)| (*name, &**text)).collect();
    Some(lang.text(pattern.key, &parts))
}

/// A line as it is made.
#[derive(Debug)]
struct Pattern {
    key: &'static str,
    /// Whether it is known as a part of another alone.
    is_part: bool,
    /// What is fixed before the first name.
    first: &'static str,
    names: Vec<Hole>,
    /// Bytes that are fixed.
    fixed: usize,
}

/// A part that differs.
#[derive(Debug)]
struct Hole {
    name: &'static str,
    /// What is fixed behind it, up to the next.
    after: &'static str,
    /// Whether it stands in backticks.
    is_quoted: bool,
}

/// All patterns by their first byte; those that begin with a name are below none.
static PATTERNS: LazyLock<BTreeMap<Option<u8>, Vec<Pattern>>> = LazyLock::new(|| {
    let mut out: BTreeMap<Option<u8>, Vec<Pattern>> = BTreeMap::new();
    for (key, text) in Lang::En.table() {
        if key.starts_with("said.") {
            let pattern = Pattern::of(key, text);
            let first = pattern.first.bytes().next();
            out.entry(first).or_default().push(pattern);
        }
    }
    out
});

/// The pattern that fits a line, and what stands in the line for each of its names.
fn known(line: &str, is_part: bool) -> Option<(&'static Pattern, Vec<&str>)> {
    [line.bytes().next(), None]
        .into_iter()
        .filter_map(|first| PATTERNS.get(&first))
        .flatten()
        .filter(|pattern| is_part || !pattern.is_part)
        .filter_map(|pattern| Some((pattern, pattern.parts(line)?)))
        .max_by_key(|(pattern, _)| pattern.fixed)
}

impl Pattern {
    fn of(key: &'static str, text: &'static str) -> Self {
        let mut names = Vec::new();
        let (first, mut next) = cut(text);
        let (mut before, mut fixed) = (first, first.len());
        while let Some((name, rest)) = next {
            let (after, following) = cut(rest);
            names.push(Hole {
                name,
                after,
                is_quoted: before.ends_with('`'),
            });
            fixed += after.len();
            before = after;
            next = following;
        }
        Self {
            key,
            is_part: key.starts_with("said.part."),
            first,
            names,
            fixed,
        }
    }

    /// What stands in a line for its names, where it fits; each reaches to the first place where it may end.
    fn parts<'a>(&self, line: &'a str) -> Option<Vec<&'a str>> {
        let mut rest = line.strip_prefix(self.first)?;
        let Some((last, others)) = self.names.split_last() else {
            return rest.is_empty().then(Vec::new);
        };
        // most lines end otherwise, and then nothing is looked for in them
        if !rest.ends_with(last.after) {
            return None;
        }
        let mut out = Vec::with_capacity(self.names.len());
        for name in others {
            let (part, behind) = rest.split_once(name.after)?;
            out.push(part);
            rest = behind;
        }
        out.push(rest.strip_suffix(last.after)?);
        // what is quoted ends with its quote
        let mut quoted = self.names.iter().zip(&out);
        let is_whole = quoted.all(|(name, part)| !name.is_quoted || !part.contains('`'));
        is_whole.then_some(out)
    }
}

/// A text up to its first `{name}`, the name, and what stands behind it; other braces are text.
fn cut(text: &str) -> (&str, Option<(&str, &str)>) {
    let found = text.match_indices('{').find_map(|(at, _)| {
        let (name, behind) = text[at + 1..].split_once('}')?;
        let is_name = |byte: u8| byte.is_ascii_alphanumeric() || byte == b'_';
        let named = !name.is_empty() && name.bytes().all(is_name);
        named.then_some((at, name, behind))
    });
    found.map_or((text, None), |(at, name, behind)| {
        (&text[..at], Some((name, behind)))
    })
}

/// The language of who asks.
pub(super) fn lang_of(headers: &HeaderMap) -> Lang {
    let accepted = headers.get(header::ACCEPT_LANGUAGE);
    Lang::asked(
        cookie(headers, "lang"),
        accepted.and_then(|value| value.to_str().ok()),
    )
}

/// Whether what is answered at a path lists problems also where nothing is refused.
pub(super) fn lists_problems(path: &str) -> bool {
    matches!(path, "/api/v1/preview" | "/editor/check")
}

/// An answer for a program of somebody who reads a language: where it refuses (RFC 9457, section 3), or lists problems, its
/// lines are in that.
pub(super) async fn answer(lang: Lang, lists_problems: bool, response: Response) -> Response {
    let kind = response.headers().get(header::CONTENT_TYPE);
    let is_json =
        kind.is_some_and(|kind| kind == "application/problem+json" || kind == "application/json");
    let is_short = response
        .body()
        .size_hint()
        .upper()
        .is_some_and(|bytes| bytes <= MOST);
    let has_lines = lists_problems || response.status().as_u16() >= 400;
    if lang == Lang::En || !has_lines || !is_json || !is_short {
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
    let problems = value.get_mut("problems").and_then(Value::as_array_mut);
    for problem in problems.into_iter().flatten() {
        for name in ["message", "hint"] {
            problem.get_mut(name).into_iter().for_each(in_lang);
        }
    }
    let why = value.pointer_mut("/lane/reason/why");
    why.into_iter().for_each(in_lang);
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
    const FIXED: usize = 7;

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

    /// A text without the signs around it.
    fn bare(text: &str) -> &str {
        text.trim_matches(|c: char| !c.is_alphanumeric())
    }

    #[test]
    fn every_line_is_one_that_the_server_says() {
        let mut all = String::new();
        source(&Path::new(env!("CARGO_MANIFEST_DIR")).join("src"), &mut all);
        // the engine's words begin with a capital where it says them
        let all = all.replace("\\\"", "\"").to_lowercase();
        let formats = all.replace("{{", "{").replace("}}", "}");
        let is_said = |piece: &str| all.contains(piece) || formats.contains(piece);
        let mut found = 0;
        for pattern in PATTERNS.values().flatten() {
            let key = pattern.key;
            let pieces = pattern.names.iter().map(|name| name.after);
            let mut longest = 0;
            for piece in std::iter::once(pattern.first).chain(pieces) {
                let piece = bare(piece).to_lowercase();
                longest = longest.max(piece.len());
                // one format may put in what another has made
                let in_two = |(at, _): (usize, &str)| {
                    is_said(bare(&piece[..at])) && is_said(bare(&piece[at + 1..]))
                };
                assert!(
                    pattern.is_part
                        || piece.len() < FIXED
                        || is_said(&piece)
                        || piece.match_indices(' ').any(in_two),
                    "{key}: nobody says `{piece}`"
                );
            }
            assert!(
                pattern.is_part || longest >= FIXED,
                "{key} could be anything"
            );
            // and it is found by itself
            let text = &Lang::En.table()[key];
            assert_eq!(known(text, pattern.is_part).unwrap().0.key, key, "{text}");
            found += 1;
        }
        assert!(found > 500, "{found}");
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
        // braces of templates are text, and what is quoted stays as it was written
        check(
            "prompts/x.md:3:4: `a list` is not an argument",
            "prompts/x.md:3:4: `a list`은(는) 선언된 인자가 아닙니다.",
        );
        check(
            "declare it: arguments: [{ name: a_b }]; or wrap the text in {% raw %}",
            "선언하거나(arguments: [{ name: a_b }]) 글을 {% raw %}로 감싸세요.",
        );
        check(
            "labels.toml: label `p` serves `x` v3, which does not pass the check: prompts/x.md:1:2: unknown tag",
            "labels.toml: 레이블 `p`이(가) 서비스하는 `x` v3이(가) 검사를 통과하지 못합니다: prompts/x.md:1:2: 없는 태그입니다.",
        );
        check("", "");
        assert_eq!(
            told(Lang::En, "proposal 7 is merged"),
            "proposal 7 is merged"
        );
    }

    #[test]
    fn a_hostile_line_costs_little() {
        let begin = std::time::Instant::now();
        for piece in ["`", "{", "` is ", ": ", "; at most ", "label `"] {
            let line = piece.repeat(500 / piece.len());
            for _ in 0..100 {
                assert!(told(Lang::Ko, &line).len() < 5000);
            }
        }
        // some hundred times what it takes in a release
        let took = begin.elapsed();
        assert!(took.as_secs() < 10, "{took:?}");
    }
}
