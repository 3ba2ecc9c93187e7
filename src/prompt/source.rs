//! The text of a file: decoded, newlines made one, with places by line and column.

use std::ops::Range;
use std::sync::Arc;

use super::problem::{Problem, Severity, one_line};

/// Longest source line shown in a problem, in characters; the report shows a window of it.
const EXCERPT_CHARS: usize = 4000;

/// A decoded file: no BOM, `\n` newlines, with the starts of its lines.
#[derive(Debug, Clone)]
pub struct Source {
    /// Path in the library.
    pub path: Arc<str>,
    /// The text.
    pub text: String,
    line_starts: Vec<usize>,
}

impl Source {
    /// Decodes stored bytes: UTF-8, a BOM dropped, CRLF and CR made LF, the last newline kept as stored.
    pub fn decode(path: &Arc<str>, bytes: &[u8]) -> Result<Self, Box<Problem>> {
        match std::str::from_utf8(bytes) {
            Ok(text) => Ok(Self::new(path, text)),
            Err(error) => {
                let good = String::from_utf8_lossy(&bytes[..error.valid_up_to()]).into_owned();
                let source = Self::new(path, &good);
                let byte = bytes.get(error.valid_up_to()).copied().unwrap_or_default();
                let at = source.text.len();
                Err(Box::new(source.problem(
                    Severity::Error,
                    "not-utf8",
                    at..at,
                    format!("the file is not UTF-8: byte 0x{byte:02x} cannot stand here"),
                    Some("save the file as UTF-8 (in most editors: Save with Encoding)".into()),
                )))
            }
        }
    }

    /// Takes text that is already decoded.
    pub fn new(path: &Arc<str>, text: &str) -> Self {
        let text = text.strip_prefix('\u{feff}').unwrap_or(text);
        let text = if text.contains('\r') {
            text.replace("\r\n", "\n").replace('\r', "\n")
        } else {
            text.to_owned()
        };
        let line_starts = std::iter::once(0)
            .chain(
                text.bytes()
                    .enumerate()
                    .filter(|(_, b)| *b == b'\n')
                    .map(|(i, _)| i + 1),
            )
            .collect();
        Self {
            path: path.clone(),
            text,
            line_starts,
        }
    }

    /// Line and column (in characters), both from 1, of a byte offset.
    pub fn position(&self, offset: usize) -> (u32, u32) {
        let offset = offset.min(self.text.len());
        let line = self.line_starts.partition_point(|start| *start <= offset) - 1;
        let start = self.line_starts[line];
        let column = self
            .text
            .get(start..offset)
            .map_or(0, |s| s.chars().count());
        (number(line + 1), number(column + 1))
    }

    /// Byte offset of a line and column (in characters), both from 1; the nearest place when there is none.
    pub fn offset(&self, line: usize, column: usize) -> usize {
        let Some(start) = self.line_starts.get(line.saturating_sub(1)).copied() else {
            return self.text.len();
        };
        let rest = &self.text[start..];
        let end = rest.find('\n').unwrap_or(rest.len());
        rest[..end]
            .char_indices()
            .nth(column.saturating_sub(1))
            .map_or(start + end, |(i, _)| start + i)
    }

    /// The text of a line, from 1, without its newline.
    pub fn line(&self, line: usize) -> &str {
        let Some(start) = self.line_starts.get(line.saturating_sub(1)).copied() else {
            return "";
        };
        self.text[start..].split('\n').next().unwrap_or_default()
    }

    /// A problem at a byte range of this file.
    pub fn problem(
        &self,
        severity: Severity,
        code: &'static str,
        span: Range<usize>,
        message: String,
        hint: Option<String>,
    ) -> Problem {
        let (line, column) = self.position(span.start);
        let (end_line, end_column) = self.position(span.end.max(span.start));
        let width = if end_line == line {
            end_column.saturating_sub(column)
        } else {
            1
        };
        Problem {
            severity,
            code,
            path: self.path.clone(),
            line,
            column,
            width: width.max(1),
            message: one_line(message),
            hint,
            excerpt: (column as usize <= EXCERPT_CHARS).then(|| {
                self.line(line as usize)
                    .chars()
                    .take(EXCERPT_CHARS)
                    .collect()
            }),
            fix: Vec::new(),
        }
    }
}

fn number(n: usize) -> u32 {
    u32::try_from(n).unwrap_or(u32::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn source(text: &str) -> Source {
        Source::new(&"x.md".into(), text)
    }

    #[test]
    fn newlines_and_bom() {
        assert_eq!(source("\u{feff}a\r\nb\rc\n").text, "a\nb\nc\n");
        assert_eq!(source("a\r\r\nb").text, "a\n\nb");
    }

    #[test]
    fn places_count_characters() {
        let s = source("한글 x\nb\n");
        assert_eq!(s.position(s.text.find('x').unwrap()), (1, 4));
        assert_eq!(s.position(s.text.find('b').unwrap()), (2, 1));
        assert_eq!(s.offset(1, 4), s.text.find('x').unwrap());
        assert_eq!(s.offset(9, 9), s.text.len());
        assert_eq!(s.line(1), "한글 x");
    }

    #[test]
    fn bytes_that_are_not_utf8_have_a_place() {
        let p = Source::decode(&"x.md".into(), b"ab\n\xffc").unwrap_err();
        assert_eq!((p.line, p.column, p.code), (2, 1, "not-utf8"));
    }
}
