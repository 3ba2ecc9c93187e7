//! Where an HTTP answer ends, and the few words of it that are looked at.

use std::ops::Range;

use memchr::memmem;

/// A whole answer at the start of a buffer.
pub struct Answer {
    /// The status line's number.
    pub status: u16,
    /// Where the body is; of a chunked one with its chunk lines.
    pub body: Range<usize>,
    /// Whether the body came in chunks, so that its length says little.
    pub chunked: bool,
}

/// The head at the start of a buffer, when it is there as a whole.
pub struct Head<'a> {
    pub status: u16,
    pub length: Option<usize>,
    pub chunked: bool,
    pub session: Option<&'a str>,
    /// Bytes of it.
    pub end: usize,
}

pub fn head(buffer: &[u8]) -> Result<Option<Head<'_>>, String> {
    let Some(end) = memmem::find(buffer, b"\r\n\r\n") else {
        return Ok(None);
    };
    let text = std::str::from_utf8(&buffer[..end]).map_err(|e| e.to_string())?;
    let mut lines = text.split("\r\n");
    let status = lines
        .next()
        .and_then(|line| line.split(' ').nth(1))
        .and_then(|status| status.parse().ok())
        .ok_or("no status line")?;
    let mut head = Head {
        status,
        length: None,
        chunked: false,
        session: None,
        end: end + 4,
    };
    for line in lines {
        let Some((name, value)) = line.split_once(':') else {
            continue;
        };
        if name.eq_ignore_ascii_case("content-length") {
            head.length = value.trim().parse().ok();
        } else if name.eq_ignore_ascii_case("transfer-encoding") {
            head.chunked = value.trim().eq_ignore_ascii_case("chunked");
        } else if name.eq_ignore_ascii_case("mcp-session-id") {
            head.session = Some(value.trim());
        }
    }
    Ok(Some(head))
}

/// The answer that the buffer is, when nothing of it is missing. Nothing may follow it: there is one request at a time.
pub fn whole(buffer: &[u8]) -> Result<Option<Answer>, String> {
    let Some(head) = head(buffer)? else {
        return Ok(None);
    };
    let have = buffer.len() - head.end;
    let done = if head.chunked {
        // a chunk's end never looks so within JSON, where a line end is written `\r\n`
        buffer.ends_with(b"\r\n0\r\n\r\n")
    } else {
        have == head.length.unwrap_or(0)
    };
    if !head.chunked && have > head.length.unwrap_or(0) {
        return Err("an answer is longer than it says".into());
    }
    Ok(done.then_some(Answer {
        status: head.status,
        body: head.end..buffer.len(),
        chunked: head.chunked,
    }))
}
