//! What goes over the pipes between a server and a worker: a kind, a length, a body.

use serde::{Deserialize, Serialize};

use crate::prompt::job::JobError;

/// Bytes before each body: one for the kind, four for the length, little-endian.
pub(super) const HEAD: usize = 5;

/// What a frame is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Kind {
    /// From a worker, once: [`Hello`] as JSON.
    Hello,
    /// From a worker, instead of a hello: why it cannot be one, as text.
    Refusal,
    /// To a worker: a job as JSON.
    Job,
    /// From a worker: CPU time, then the texts as `texts` writes them.
    Texts,
    /// From a worker: CPU time, then a [`JobError`] as JSON.
    Failed,
    /// From a worker that ends because of its CPU time: milliseconds, eight bytes little-endian.
    Cpu,
    /// From a worker that ends because of its memory: bytes wanted, eight bytes little-endian.
    Memory,
}

impl Kind {
    pub(super) const fn byte(self) -> u8 {
        match self {
            Self::Hello => b'h',
            Self::Refusal => b'r',
            Self::Job => b'j',
            Self::Texts => b't',
            Self::Failed => b'f',
            Self::Cpu => b'c',
            Self::Memory => b'm',
        }
    }

    pub(super) fn of(byte: u8) -> Option<Self> {
        [
            Self::Hello,
            Self::Refusal,
            Self::Job,
            Self::Texts,
            Self::Failed,
            Self::Cpu,
            Self::Memory,
        ]
        .into_iter()
        .find(|kind| kind.byte() == byte)
    }
}

/// What a worker found out about itself before it takes work.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Hello {
    /// Variables in its environment; none in one that may serve.
    pub environment: usize,
    /// Whether opening a file, making a socket and starting a program were tried and refused.
    pub refused: bool,
    /// Whether it can gain no privileges.
    pub no_new_privileges: bool,
    /// Whether the kernel ends it on any call that is not on its list.
    pub seccomp: bool,
}

/// Bytes of the CPU time, in microseconds, that an answer begins with.
const CPU: usize = 8;
/// Longest error of a job: its message has at most 500 characters, its template's name is a path.
const FAILED_BYTES: usize = 64 * 1024;
/// Longest hello or refusal.
const HELLO_BYTES: usize = 4 * 1024;

/// Longest body of a frame from a worker that may answer with so many texts of so many bytes.
pub(super) fn longest(kind: Kind, texts: usize, bytes: usize) -> usize {
    match kind {
        Kind::Hello | Kind::Refusal => HELLO_BYTES,
        Kind::Job => 0,
        Kind::Texts => bytes
            .saturating_add(texts.saturating_mul(4))
            .saturating_add(CPU + 4),
        Kind::Failed => CPU + FAILED_BYTES,
        Kind::Cpu | Kind::Memory => 8,
    }
}

/// The frame of an answer.
pub(super) fn answer(
    answer: &Result<Vec<String>, JobError>,
    cpu_us: u64,
) -> serde_json::Result<Vec<u8>> {
    let mut out = Vec::with_capacity(4096);
    let kind = if answer.is_ok() {
        Kind::Texts
    } else {
        Kind::Failed
    };
    begin(&mut out, kind);
    out.extend_from_slice(&cpu_us.to_le_bytes());
    match answer {
        Ok(texts) => {
            let number = |n: usize| u32::try_from(n).unwrap_or(u32::MAX).to_le_bytes();
            out.extend_from_slice(&number(texts.len()));
            for text in texts {
                out.extend_from_slice(&number(text.len()));
            }
            for text in texts {
                out.extend_from_slice(text.as_bytes());
            }
        }
        Err(error) => serde_json::to_writer(&mut out, error)?,
    }
    finish(&mut out);
    Ok(out)
}

/// Reads an answer of a worker that may be anybody's: exactly so many texts, of at most so many bytes together.
/// Microseconds of CPU time come as the worker says.
pub(super) fn read_answer(
    kind: Kind,
    body: &[u8],
    texts: usize,
    bytes: usize,
) -> Result<(u64, Result<Vec<String>, JobError>), &'static str> {
    let (cpu_us, rest) = body.split_first_chunk::<CPU>().ok_or("it is too short")?;
    let cpu_us = u64::from_le_bytes(*cpu_us);
    if kind == Kind::Failed {
        let error: JobError =
            serde_json::from_slice(rest).map_err(|_| "its error cannot be read")?;
        return Ok((cpu_us, Err(error.bounded())));
    }
    let number = |rest: &mut &[u8]| -> Option<usize> {
        let (number, after) = rest.split_first_chunk::<4>()?;
        *rest = after;
        usize::try_from(u32::from_le_bytes(*number)).ok()
    };
    let mut rest = rest;
    if number(&mut rest) != Some(texts) {
        return Err("it has another number of texts than was asked for");
    }
    let mut lengths = Vec::with_capacity(texts);
    let mut all = 0usize;
    for _ in 0..texts {
        let length = number(&mut rest).ok_or("it is too short")?;
        all = all.saturating_add(length);
        lengths.push(length);
    }
    if all != rest.len() || all > bytes {
        return Err("its texts are not as long as it says, or longer than they may be");
    }
    let mut out = Vec::with_capacity(texts);
    for length in lengths {
        let (text, after) = rest.split_at(length);
        rest = after;
        out.push(String::from_utf8(text.to_vec()).map_err(|_| "its texts are not UTF-8")?);
    }
    Ok((cpu_us, Ok(out)))
}

/// A frame as bytes.
pub(super) fn frame(kind: Kind, body: &[u8]) -> Vec<u8> {
    let mut out = Vec::with_capacity(HEAD + body.len());
    begin(&mut out, kind);
    out.extend_from_slice(body);
    finish(&mut out);
    out
}

/// A frame whose body is a value as JSON.
pub(super) fn json(kind: Kind, value: &impl Serialize) -> serde_json::Result<Vec<u8>> {
    let mut out = Vec::with_capacity(4096);
    begin(&mut out, kind);
    serde_json::to_writer(&mut out, value)?;
    finish(&mut out);
    Ok(out)
}

fn begin(out: &mut Vec<u8>, kind: Kind) {
    out.push(kind.byte());
    out.extend_from_slice(&[0; 4]);
}

fn finish(out: &mut [u8]) {
    let length = u32::try_from(out.len() - HEAD).unwrap_or(u32::MAX);
    out[1..HEAD].copy_from_slice(&length.to_le_bytes());
}

/// The kind and length that a frame begins with.
pub(super) fn head(bytes: [u8; HEAD]) -> Option<(Kind, usize)> {
    let [kind, a, b, c, d] = bytes;
    Some((
        Kind::of(kind)?,
        usize::try_from(u32::from_le_bytes([a, b, c, d])).ok()?,
    ))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::prompt::job::JobError;

    fn body(answer: &Result<Vec<String>, JobError>) -> (Kind, Vec<u8>) {
        let frame = super::answer(answer, 7).unwrap();
        let (head, body) = frame.split_at(HEAD);
        let (kind, length) = super::head(head.try_into().unwrap()).unwrap();
        assert_eq!(length, body.len());
        (kind, body.to_vec())
    }

    #[test]
    fn an_answer_is_read_as_it_was_written() {
        let texts = vec!["a\0é".to_owned(), String::new(), "b".to_owned()];
        let (kind, body) = body(&Ok(texts.clone()));
        assert!(body.len() <= longest(kind, 3, 5), "{}", body.len());
        let (cpu_us, read) = read_answer(kind, &body, 3, 5).unwrap();
        assert_eq!((cpu_us, read.unwrap()), (7, texts));
        let (kind, body) = self::body(&Err(JobError::Output { actual: 9 }));
        let (_, read) = read_answer(kind, &body, 3, 5).unwrap();
        assert!(matches!(read, Err(JobError::Output { actual: 9 })));
    }

    #[test]
    fn an_answer_that_is_not_what_was_asked_for_is_none() {
        let (kind, good) = body(&Ok(vec!["aé".to_owned(), "b".to_owned()]));
        for (texts, bytes) in [(1, 100), (3, 100), (usize::MAX, 100), (2, 3)] {
            assert!(
                read_answer(kind, &good, texts, bytes).is_err(),
                "{texts} {bytes}"
            );
        }
        for end in 0..good.len() {
            assert!(read_answer(kind, &good[..end], 2, 100).is_err(), "{end}");
        }
        // lengths that add up to more than there is, and to what is no text
        for (at, value) in [(12, 0xff), (15, 0xff), (12, 2)] {
            let mut bad = good.clone();
            bad[at] = value;
            assert!(read_answer(kind, &bad, 2, 100).is_err(), "{at}");
        }
        assert!(read_answer(Kind::Failed, &good, 2, 100).is_err());
    }
}
