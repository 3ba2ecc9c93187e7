//! Front matter's YAML as a small tree with places, read strictly.
//!
//! `saphyr-parser` gives YAML 1.2 events with spans and scalar styles, so a plain scalar keeps its source
//! text. What this module refuses on top: duplicate keys, anchors, aliases, tags, a second document, keys
//! that are not scalars, and depth.

use std::ops::Range;

use saphyr_parser::{Event, Parser, ScalarStyle, Span};

/// Deepest nesting that front matter needs, with room.
const MAX_DEPTH: usize = 8;

/// A value with the bytes it covers in the parsed text.
#[derive(Debug, Clone)]
pub struct Node {
    /// Bytes of the parsed text.
    pub span: Range<usize>,
    /// What it is.
    pub value: Value,
}

/// What a node is.
#[derive(Debug, Clone)]
pub enum Value {
    /// A scalar: its text, and whether it was written without quotes.
    Scalar {
        /// The text; of a plain scalar, the source text.
        text: String,
        /// Written without quotes and not as a block.
        plain: bool,
    },
    /// A list.
    List(Vec<Node>),
    /// Keys with their spans, and values, in order.
    Map(Vec<(String, Range<usize>, Node)>),
}

impl Value {
    /// What a person calls it.
    pub fn kind(&self) -> &'static str {
        match self {
            Self::Scalar { .. } => "a text",
            Self::List(_) => "a list",
            Self::Map(_) => "a table",
        }
    }

    /// Whether it is null: nothing, `~` or `null`, written plainly.
    pub fn is_null(&self) -> bool {
        matches!(self, Self::Scalar { text, plain: true } if matches!(text.as_str(), "" | "~" | "null" | "Null" | "NULL"))
    }
}

/// What is wrong with a text as YAML.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Fault {
    /// A stable word for the kind.
    pub code: &'static str,
    /// Bytes of the parsed text.
    pub span: Range<usize>,
    /// What is wrong.
    pub message: String,
    /// How to put it right.
    pub hint: Option<String>,
}

/// Reads one YAML document; `None` when the text holds none.
pub fn read(text: &str) -> Result<Option<Node>, Fault> {
    Reader {
        text,
        offsets: char_offsets(text),
        parser: Parser::new_from_str(text),
    }
    .document()
}

/// Byte offset by character index, with the end; spans of the parser count characters.
fn char_offsets(text: &str) -> Option<Vec<u32>> {
    if text.is_ascii() {
        return None;
    }
    let end = u32::try_from(text.len()).unwrap_or(u32::MAX);
    Some(
        text.char_indices()
            .map(|(i, _)| u32::try_from(i).unwrap_or(u32::MAX))
            .chain(std::iter::once(end))
            .collect(),
    )
}

struct Reader<'a> {
    text: &'a str,
    offsets: Option<Vec<u32>>,
    parser: Parser<'a, saphyr_parser::StrInput<'a>>,
}

impl<'a> Reader<'a> {
    fn byte(&self, index: usize) -> usize {
        match &self.offsets {
            None => index.min(self.text.len()),
            Some(offsets) => offsets
                .get(index)
                .or(offsets.last())
                .map_or(0, |o| *o as usize),
        }
    }

    fn bytes(&self, span: Span) -> Range<usize> {
        self.byte(span.start.index())..self.byte(span.end.index())
    }

    fn next(&mut self) -> Result<(Event<'a>, Range<usize>), Fault> {
        match self.parser.next_event() {
            Some(Ok((event, span))) => {
                let span = self.bytes(span);
                Ok((event, span))
            }
            Some(Err(error)) => {
                let at = self.byte(error.marker().index());
                Err(self.syntax(at, error.info()))
            }
            None => Ok((Event::StreamEnd, self.text.len()..self.text.len())),
        }
    }

    fn syntax(&self, at: usize, info: &str) -> Fault {
        let line_start = self.text[..at].rfind('\n').map_or(0, |i| i + 1);
        let line = self.text[line_start..]
            .split('\n')
            .next()
            .unwrap_or_default();
        let previous = self.text[..line_start]
            .trim_end()
            .rsplit('\n')
            .next()
            .unwrap_or_default();
        let hint = quote_hint(line)
            .or_else(|| quote_hint(previous))
            .unwrap_or_else(|| "check quotes, brackets and indentation (spaces, not tabs)".into());
        Fault {
            code: "yaml-syntax",
            span: at..at,
            message: format!("front matter is not valid YAML: {info}"),
            hint: Some(hint),
        }
    }

    fn document(mut self) -> Result<Option<Node>, Fault> {
        let mut root = None;
        loop {
            let (event, span) = self.next()?;
            match event {
                Event::DocumentStart(_) if root.is_some() => {
                    return Err(fault(
                        "yaml-documents",
                        span,
                        "front matter is one YAML document, here a second begins",
                        None,
                    ));
                }
                Event::StreamStart
                | Event::DocumentStart(_)
                | Event::DocumentEnd
                | Event::Nothing => {}
                Event::StreamEnd => return Ok(root),
                other => root = Some(self.node(other, span, 0)?),
            }
        }
    }

    fn node(&mut self, event: Event<'a>, span: Range<usize>, depth: usize) -> Result<Node, Fault> {
        if depth > MAX_DEPTH {
            return Err(fault(
                "yaml-depth",
                span,
                "front matter is nested more than 8 levels deep",
                None,
            ));
        }
        match event {
            Event::Scalar(text, style, anchor, tag) => {
                refuse_decoration(anchor, tag.is_some(), &span)?;
                let plain = style == ScalarStyle::Plain;
                Ok(Node {
                    span,
                    value: Value::Scalar {
                        text: text.into_owned(),
                        plain,
                    },
                })
            }
            Event::SequenceStart(anchor, tag) => {
                refuse_decoration(anchor, tag.is_some(), &span)?;
                let mut items = Vec::new();
                loop {
                    let (event, inner) = self.next()?;
                    if matches!(event, Event::SequenceEnd) {
                        let span = span.start..inner.end.max(span.end);
                        return Ok(Node {
                            span,
                            value: Value::List(items),
                        });
                    }
                    items.push(self.node(event, inner, depth + 1)?);
                }
            }
            Event::MappingStart(anchor, tag) => {
                refuse_decoration(anchor, tag.is_some(), &span)?;
                let mut entries: Vec<(String, Range<usize>, Node)> = Vec::new();
                loop {
                    let (event, inner) = self.next()?;
                    let key = match event {
                        Event::MappingEnd => {
                            let span = span.start..inner.end.max(span.end);
                            return Ok(Node {
                                span,
                                value: Value::Map(entries),
                            });
                        }
                        Event::Scalar(text, _, anchor, tag) => {
                            refuse_decoration(anchor, tag.is_some(), &inner)?;
                            text.into_owned()
                        }
                        _ => {
                            return Err(fault(
                                "yaml-key",
                                inner,
                                "a key must be a plain word",
                                None,
                            ));
                        }
                    };
                    if entries.iter().any(|(k, ..)| *k == key) {
                        return Err(fault(
                            "duplicate-key",
                            inner,
                            &format!("`{}` is given twice", shorten(&key)),
                            Some("keep one of them".into()),
                        ));
                    }
                    let (event, value_span) = self.next()?;
                    let value = self.node(event, value_span, depth + 1)?;
                    entries.push((key, inner, value));
                }
            }
            Event::Alias(_) => Err(fault(
                "yaml-alias",
                span,
                "YAML aliases (`*name`) are not read in front matter",
                Some("write the value out, or quote a text that begins with `*`".into()),
            )),
            _ => Err(fault(
                "yaml-syntax",
                span,
                "front matter is not valid YAML: a value is missing",
                None,
            )),
        }
    }
}

fn refuse_decoration(anchor: usize, tagged: bool, span: &Range<usize>) -> Result<(), Fault> {
    if anchor != 0 {
        return Err(fault(
            "yaml-anchor",
            span.clone(),
            "YAML anchors (`&name`) are not read in front matter",
            Some("write the value out, or quote a text that begins with `&`".into()),
        ));
    }
    if tagged {
        return Err(fault(
            "yaml-tag",
            span.clone(),
            "YAML tags (`!name`) are not read in front matter",
            Some("remove the tag, or quote a text that begins with `!`".into()),
        ));
    }
    Ok(())
}

fn fault(code: &'static str, span: Range<usize>, message: &str, hint: Option<String>) -> Fault {
    Fault {
        code,
        span,
        message: message.into(),
        hint,
    }
}

/// For `key: value` whose value needs quotes: the line with them.
fn quote_hint(line: &str) -> Option<String> {
    let trimmed = line.trim_start();
    let (dash, rest) = match trimmed.strip_prefix("- ") {
        Some(rest) => ("- ", rest),
        None => ("", trimmed),
    };
    let (key, value) = rest.split_once(": ")?;
    let value = value.trim();
    if key.contains(['"', '\'', '{', '[']) || value.is_empty() {
        return None;
    }
    let needs = value.contains(": ")
        || value.ends_with(':')
        || value.starts_with(['[', '{', '"', '\'', '*', '&', '!', '%', '@', '`', '|', '>']);
    if !needs {
        return None;
    }
    let inner = value
        .trim_matches('"')
        .replace('\\', "\\\\")
        .replace('"', "\\\"");
    Some(format!(
        "quote it: {dash}{}: \"{}\"",
        shorten(key),
        shorten(&inner)
    ))
}

fn shorten(text: &str) -> String {
    if text.chars().count() > 80 {
        text.chars().take(80).chain(['…']).collect()
    } else {
        text.into()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn code(text: &str) -> &'static str {
        read(text).unwrap_err().code
    }

    #[test]
    fn plain_scalars_keep_their_source_text() {
        let Some(Node {
            value: Value::Map(map),
            ..
        }) = read("a: 1.10\nb: yes\nc: '1'\n").unwrap()
        else {
            panic!("a table")
        };
        let texts: Vec<_> = map
            .iter()
            .map(|(k, _, n)| match &n.value {
                Value::Scalar { text, plain } => (k.as_str(), text.as_str(), *plain),
                _ => panic!("a scalar"),
            })
            .collect();
        assert_eq!(
            texts,
            [("a", "1.10", true), ("b", "yes", true), ("c", "1", false)]
        );
    }

    #[test]
    fn what_is_refused() {
        assert_eq!(code("a: 1\na: 2\n"), "duplicate-key");
        assert_eq!(code("a: &x 1\n"), "yaml-anchor");
        assert_eq!(code("a: *x\n"), "yaml-syntax");
        assert_eq!(code("a: &x 1\nb: *x\n"), "yaml-anchor");
        assert_eq!(code("a: !!str 1\n"), "yaml-tag");
        assert_eq!(code("{[a]: 1}\n"), "yaml-key");
        assert_eq!(code("a: 1\n---\nb: 2\n"), "yaml-documents");
        let deep = |n: usize| format!("a: {}{}", "[".repeat(n), "]".repeat(n));
        assert_eq!(code(&deep(20)), "yaml-depth");
        // the parser has a depth of its own
        assert_eq!(code(&deep(5000)), "yaml-syntax");
    }

    #[test]
    fn a_colon_in_a_value_says_quote_it() {
        let fault = read("title: 한글\ndescription: Review: find bugs\n").unwrap_err();
        assert_eq!(
            fault.hint.as_deref(),
            Some("quote it: description: \"Review: find bugs\"")
        );
        assert_eq!(fault.span.start, "title: 한글\ndescription: Review".len());
    }

    #[test]
    fn nothing_is_no_document() {
        assert!(read("").unwrap().is_none());
        assert!(read("# only a comment\n").unwrap().is_none());
    }
}
