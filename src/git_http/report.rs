//! Holds back what a push's status says until the new catalog is in.
//!
//! git-receive-pack writes its status before its post-receive hook runs. Whoever reads "ok" must get the new text at the
//! next request, so the status (band 1 of the sideband) waits for the process to end; progress and the hooks' lines
//! (band 2) pass at once. Source: `gitprotocol-pack(5)`, `gitprotocol-capabilities(5)` (side-band-64k).

use bytes::{Buf as _, Bytes, BytesMut};

/// Reads the output of a receive-pack and gives on what may go.
#[derive(Debug, Default)]
pub(super) struct Report {
    unread: BytesMut,
    held: BytesMut,
    /// The output is no sideband (an old client, or none asked for): all of it is the status.
    raw: bool,
    /// Some of it was a sideband packet.
    sideband: bool,
}

/// Bands of the sideband.
const STATUS: u8 = 1;
const PROGRESS: u8 = 2;
const FATAL: u8 = 3;

impl Report {
    /// Takes the next bytes; what may be sent on now.
    pub(super) fn take(&mut self, bytes: &[u8]) -> Bytes {
        if self.raw {
            self.held.extend_from_slice(bytes);
            return Bytes::new();
        }
        self.unread.extend_from_slice(bytes);
        let mut out = BytesMut::new();
        while self.unread.len() >= 4 {
            let length = std::str::from_utf8(&self.unread[..4])
                .ok()
                .and_then(|digits| usize::from_str_radix(digits, 16).ok());
            let Some(length) = length else {
                self.all_is_status();
                break;
            };
            // a flush, or another packet without content
            if length < 5 {
                let packet = self.unread.split_to(4);
                self.held.unsplit(packet);
                continue;
            }
            if self.unread.len() < 5 {
                break;
            }
            let band = self.unread[4];
            if !matches!(band, STATUS | PROGRESS | FATAL) {
                self.all_is_status();
                break;
            }
            self.sideband = true;
            if self.unread.len() < length {
                break;
            }
            let packet = self.unread.split_to(length);
            // an empty packet on band 1 only keeps the connection alive
            if band == STATUS && length > 5 {
                self.held.extend_from_slice(&packet);
            } else {
                out.extend_from_slice(&packet);
            }
        }
        out.freeze()
    }

    /// Whether the process took the pack in.
    pub(super) fn unpacked(&self) -> bool {
        self.says(b"unpack ok")
    }

    /// Whether the status holds these words.
    pub(super) fn says(&self, words: &[u8]) -> bool {
        self.held.windows(words.len()).any(|bytes| bytes == words)
    }

    fn all_is_status(&mut self) {
        self.raw = true;
        let rest = self.unread.split();
        self.held.extend_from_slice(&rest);
    }

    /// The process has ended: the rest, after a line for the person who pushes where one is to be said.
    pub(super) fn end(self, line: Option<&str>) -> Bytes {
        let mut out = BytesMut::new();
        if let Some(line) = line
            && self.sideband
        {
            out.extend_from_slice(format!("{:04x}", line.len() + 6).as_bytes());
            out.extend_from_slice(&[PROGRESS]);
            out.extend_from_slice(line.as_bytes());
            out.extend_from_slice(b"\n");
        }
        out.extend_from_slice(&self.held);
        out.extend_from_slice(self.unread.chunk());
        out.freeze()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Feeds an output in pieces of every size; what was passed at once and what at the end.
    #[track_caller]
    fn check(output: &[u8], passed: &[u8], rest: &[u8]) {
        for size in 1..=output.len() {
            let mut report = Report::default();
            let mut now = Vec::new();
            for piece in output.chunks(size) {
                now.extend_from_slice(&report.take(piece));
            }
            assert_eq!(
                (&*now, &*report.end(None)),
                (passed, rest),
                "in pieces of {size}"
            );
        }
    }

    #[test]
    fn the_status_waits_and_progress_does_not() {
        check(
            b"0009\x02abc\n0005\x010012\x01000eunpack ok0008\x02ok\n0000",
            b"0009\x02abc\n0005\x010008\x02ok\n",
            b"0012\x01000eunpack ok0000",
        );
        check(b"0009\x03die\n", b"0009\x03die\n", b"");
    }

    #[test]
    fn without_a_sideband_everything_waits() {
        check(b"000eunpack ok\n0000", b"", b"000eunpack ok\n0000");
        check(b"garbage", b"", b"garbage");
        check(b"0000", b"", b"0000");
        check(b"00", b"", b"00");
    }

    #[test]
    fn a_line_for_the_person_goes_before_the_status() {
        let mut report = Report::default();
        assert!(report.take(b"0012\x01000eunpack ok0000").is_empty());
        assert_eq!(
            &*report.end(Some("too large")),
            b"000f\x02too large\n0012\x01000eunpack ok0000"
        );
    }
}
