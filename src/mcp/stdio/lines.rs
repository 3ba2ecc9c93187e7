//! Lines of bounded length.

use tokio::io::{AsyncBufReadExt, AsyncRead, BufReader};

/// A line of input.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Line {
    /// Its bytes, without the line break; never blank.
    Text(Vec<u8>),
    /// It was longer than is read; it was read over.
    TooLong,
    /// There is no more.
    End,
}

/// Reads lines; what was read of a line is kept when the future is dropped.
pub(super) struct Lines<R> {
    reader: BufReader<R>,
    limit: usize,
    begun: Vec<u8>,
    too_long: bool,
}

impl<R: AsyncRead + Unpin> Lines<R> {
    pub(super) fn new(reader: R, limit: usize) -> Self {
        Self {
            reader: BufReader::with_capacity(64 * 1024, reader),
            limit,
            begun: Vec::new(),
            too_long: false,
        }
    }

    /// The next line that is not blank.
    pub(super) async fn next(&mut self) -> std::io::Result<Line> {
        loop {
            let available = self.reader.fill_buf().await?;
            if available.is_empty() {
                // A last line without a break is a message all the same.
                return Ok(self.take().unwrap_or(Line::End));
            }
            let (part, used, whole) = match available.iter().position(|b| *b == b'\n') {
                Some(at) => (&available[..at], at + 1, true),
                None => (available, available.len(), false),
            };
            if self.begun.len() + part.len() > self.limit {
                self.too_long = true;
                self.begun = Vec::new();
            }
            if !self.too_long {
                self.begun.extend_from_slice(part);
            }
            self.reader.consume(used);
            if whole && let Some(line) = self.take() {
                return Ok(line);
            }
        }
    }

    fn take(&mut self) -> Option<Line> {
        let line = std::mem::take(&mut self.begun);
        if std::mem::take(&mut self.too_long) {
            return Some(Line::TooLong);
        }
        (!line.trim_ascii().is_empty()).then_some(Line::Text(line))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    async fn read(input: &[u8], limit: usize) -> Vec<Line> {
        let mut lines = Lines::new(input, limit);
        let mut all = Vec::new();
        loop {
            let line = lines.next().await.unwrap();
            let end = line == Line::End;
            all.push(line);
            if end {
                return all;
            }
        }
    }

    #[tokio::test]
    async fn lines_blanks_and_the_last_one() {
        let text = |text: &str| Line::Text(text.as_bytes().to_vec());
        assert_eq!(
            read(b"a\n\n \r\nb\r\nc", 10).await,
            [text("a"), text("b\r"), text("c"), Line::End]
        );
        assert_eq!(read(b"", 10).await, [Line::End]);
    }

    #[tokio::test]
    async fn a_long_line_is_read_over() {
        let text = |text: &str| Line::Text(text.as_bytes().to_vec());
        let input = [vec![b'x'; 200_000], b"\nok\n".to_vec(), vec![b'y'; 11]].concat();
        assert_eq!(
            read(&input, 10).await,
            [Line::TooLong, text("ok"), Line::TooLong, Line::End]
        );
    }
}
