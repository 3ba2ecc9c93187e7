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
    /// From a worker: [`Answer`] as JSON.
    Answer,
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
            Self::Answer => b'a',
            Self::Cpu => b'c',
            Self::Memory => b'm',
        }
    }

    pub(super) fn of(byte: u8) -> Option<Self> {
        [
            Self::Hello,
            Self::Refusal,
            Self::Job,
            Self::Answer,
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

/// What became of a job.
#[derive(Debug, Serialize, Deserialize)]
pub(super) struct Answer {
    pub(super) texts: Result<Vec<String>, JobError>,
    /// CPU time that was used, in microseconds.
    pub(super) cpu_us: u64,
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
