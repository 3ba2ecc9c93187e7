//! Reads a `text/event-stream` piece by piece, as it arrives.

/// The most bytes one event may have; a longer one ends the stream.
const MAX_EVENT: usize = 32 * 1024 * 1024;

/// One event with data in it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Event {
    /// The `data` lines, joined.
    pub(super) data: String,
    /// The last `id` seen, for `Last-Event-ID`.
    pub(super) id: Option<String>,
}

/// An event did not fit or was no UTF-8.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Malformed;

/// A parser that is fed chunks.
#[derive(Debug, Default)]
pub(super) struct Parser {
    line: Vec<u8>,
    data: Vec<u8>,
    has_data: bool,
    kind: String,
    id: Option<String>,
    /// The last byte was a carriage return, whose line feed may follow in the next chunk.
    after_return: bool,
    started: bool,
}

impl Parser {
    /// Takes the next bytes and appends the events that they complete.
    pub(super) fn push(
        &mut self,
        chunk: &[u8],
        events: &mut impl Extend<Event>,
    ) -> Result<(), Malformed> {
        for &byte in chunk {
            let was_return = std::mem::replace(&mut self.after_return, byte == b'\r');
            match byte {
                b'\n' if was_return => {}
                b'\n' | b'\r' => self.end_line(events)?,
                byte => self.line.push(byte),
            }
            if self.line.len() + self.data.len() > MAX_EVENT {
                return Err(Malformed);
            }
        }
        Ok(())
    }

    fn end_line(&mut self, events: &mut impl Extend<Event>) -> Result<(), Malformed> {
        let mut line = std::mem::take(&mut self.line);
        if !std::mem::replace(&mut self.started, true) && line.starts_with(b"\xef\xbb\xbf") {
            line.drain(..3);
        }
        if line.is_empty() {
            let event = self.end_event()?;
            events.extend(event);
            return Ok(());
        }
        let (field, value) = match line.iter().position(|&byte| byte == b':') {
            // A comment, sent to keep the connection open.
            Some(0) => return Ok(()),
            Some(at) => (&line[..at], &line[at + 1..]),
            None => (&line[..], &line[..0]),
        };
        let value = value.strip_prefix(b" ").unwrap_or(value);
        match field {
            b"data" => {
                if std::mem::replace(&mut self.has_data, true) {
                    self.data.push(b'\n');
                }
                self.data.extend_from_slice(value);
            }
            b"event" => self.kind = String::from_utf8_lossy(value).into_owned(),
            // Kept for a header, so nothing that a header cannot hold.
            b"id" if value.len() <= 256 && value.iter().all(u8::is_ascii_graphic) => {
                self.id = std::str::from_utf8(value).ok().map(str::to_owned);
            }
            _ => {}
        }
        Ok(())
    }

    fn end_event(&mut self) -> Result<Option<Event>, Malformed> {
        let data = std::mem::take(&mut self.data);
        let kind = std::mem::take(&mut self.kind);
        let has_data = std::mem::take(&mut self.has_data);
        // An event without data only sets the id: newer revisions open a stream with one.
        if !has_data || data.is_empty() || !(kind.is_empty() || kind == "message") {
            return Ok(None);
        }
        let data = String::from_utf8(data).map_err(|_| Malformed)?;
        Ok(Some(Event {
            data,
            id: self.id.clone(),
        }))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Feeds `stream` whole and byte by byte, which must give the same.
    #[track_caller]
    fn check(stream: &str, expected: &[(&str, Option<&str>)]) {
        let expected: Vec<Event> = expected
            .iter()
            .map(|(data, id)| Event {
                data: (*data).to_owned(),
                id: id.map(str::to_owned),
            })
            .collect();
        let (mut whole, mut pieces) = (Vec::new(), Vec::new());
        Parser::default()
            .push(stream.as_bytes(), &mut whole)
            .unwrap();
        assert_eq!(whole, expected);
        let mut parser = Parser::default();
        for byte in stream.as_bytes() {
            parser.push(&[*byte], &mut pieces).unwrap();
        }
        assert_eq!(pieces, expected);
    }

    #[test]
    fn events_are_read() {
        check("data: {}\n\n", &[("{}", None)]);
        check("data:a\r\ndata: b\r\n\r\n", &[("a\nb", None)]);
        check("\u{feff}data: 가\r\r", &[("가", None)]);
        check(
            ": keep-alive\n\n:\n\nid: 7\nevent: message\ndata: x\n\n",
            &[("x", Some("7"))],
        );
        check("id: 1\ndata:\n\ndata: x\n\n", &[("x", Some("1"))]);
        check(
            "event: endpoint\ndata: /x\n\nretry: 5\ndata: y\n\n",
            &[("y", None)],
        );
        check("data\n\nid: a b\n\n", &[]);
        check("data: unfinished", &[]);
    }

    #[test]
    fn what_cannot_be_a_message_ends_the_stream() {
        let mut events = Vec::new();
        assert_eq!(
            Parser::default().push(b"data: \xff\n\n", &mut events),
            Err(Malformed)
        );
        let mut parser = Parser::default();
        let chunk = vec![b'x'; MAX_EVENT];
        assert_eq!(parser.push(&chunk, &mut events), Ok(()));
        assert_eq!(parser.push(b"x", &mut events), Err(Malformed));
    }
}
