//! Main's first-parent history with the files each commit changes, oldest first.

use std::io::{BufRead as _, BufReader, Read as _};
use std::process::{Child, ChildStderr, ChildStdout, Stdio};

use super::process::git_with;
use super::{Blobs, GitError, Mode, Repository, TreeChange};

/// Longest header of a commit or path that is read, in bytes.
const MAX_FIELD: u64 = 256 * 1024 * 1024;

/// A file that a commit has otherwise than its first parent.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LoggedChange {
    /// Path from the root.
    pub path: Vec<u8>,
    /// The blob it has now; none where it is gone or is no regular file.
    pub after: Option<[u8; 20]>,
}

/// A commit of a first-parent history.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LoggedCommit {
    /// Its id.
    pub id: [u8; 20],
    /// The id of its first parent.
    pub parent: Option<[u8; 20]>,
    /// When it was committed, in seconds since 1970.
    pub seconds: i64,
    /// The author's name.
    pub author: String,
    /// The first line of the message.
    pub subject: String,
    /// What it changes.
    pub changes: Vec<LoggedChange>,
}

/// The first line of a message that says something.
fn subject(message: &str) -> String {
    message
        .lines()
        .map(str::trim)
        .find(|line| !line.is_empty())
        .unwrap_or_default()
        .to_owned()
}

/// What a commit says of itself.
#[derive(Debug, Default, PartialEq, Eq)]
struct Said {
    seconds: i64,
    author: String,
    subject: String,
}

/// Reads the bytes of a commit object. Both ways of reading a history do it here: git and libgit2 each decode, trim and
/// mend in ways of their own.
fn said(object: &[u8]) -> Said {
    let (mut out, mut rest) = (Said::default(), object);
    while let Some(end) = rest.iter().position(|byte| *byte == b'\n') {
        let line = &rest[..end];
        rest = &rest[end + 1..];
        if line.is_empty() {
            out.subject = subject(&String::from_utf8_lossy(rest));
            break;
        }
        if let Some(author) = line.strip_prefix(b"author ") {
            let end = author.iter().rposition(|byte| *byte == b'<');
            let name = String::from_utf8_lossy(&author[..end.unwrap_or(author.len())]);
            name.trim().clone_into(&mut out.author);
        } else if let Some(committer) = line.strip_prefix(b"committer ") {
            let end = committer.iter().rposition(|byte| *byte == b'>');
            let when = std::str::from_utf8(&committer[end.map_or(0, |end| end + 1)..]);
            out.seconds = when
                .ok()
                .and_then(|when| when.split_whitespace().next()?.parse().ok())
                .unwrap_or_default();
        }
    }
    out
}

impl Blobs {
    fn said(&self, commit: git2::Oid) -> Result<Said, GitError> {
        Ok(said(self.repository.odb()?.read(commit)?.data()))
    }
}

fn hex_id(text: &[u8]) -> Option<[u8; 20]> {
    let text = std::str::from_utf8(text).ok()?;
    let oid = (text.len() == 40).then(|| git2::Oid::from_str(text).ok())??;
    let mut id = [0; 20];
    id.copy_from_slice(oid.as_bytes());
    Some(id)
}

/// A history that is being read from a git process, which ends with it.
#[derive(Debug)]
pub struct FirstParents {
    child: Child,
    out: BufReader<ChildStdout>,
    errors: Option<ChildStderr>,
    commits: Blobs,
    /// The header of the next commit, already read.
    next: Option<Vec<u8>>,
    done: bool,
}

impl Drop for FirstParents {
    fn drop(&mut self) {
        // it only reads, so nothing is left half done
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

impl Repository {
    /// The first-parent history of a commit, oldest first; without what another commit has, where one is given.
    pub fn first_parents(&self, tip: &str, since: Option<&str>) -> Result<FirstParents, GitError> {
        let settings = [("log.showRoot", "true"), ("log.showSignature", "false")];
        let mut command = git_with(self.path(), &settings);
        command.args([
            "--no-replace-objects",
            "log",
            "--first-parent",
            "--diff-merges=first-parent",
            "--reverse",
            "--raw",
            "-z",
            "--no-abbrev",
            "--no-renames",
            "--no-color",
            "--format=format:%x01%H%x02%P%x03",
        ]);
        command.arg(tip);
        if let Some(since) = since {
            command.arg(format!("^{since}"));
        }
        command.arg("--");
        command
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped());
        let commits = self.blobs()?;
        let mut child = command.spawn().map_err(|error| match error.kind() {
            std::io::ErrorKind::NotFound => GitError::Missing,
            _ => error.into(),
        })?;
        let out = child.stdout.take().ok_or_else(broken)?;
        let errors = child.stderr.take();
        Ok(FirstParents {
            child,
            out: BufReader::with_capacity(256 * 1024, out),
            errors,
            commits,
            next: None,
            done: false,
        })
    }

    /// How many commits the first-parent history of a commit has.
    pub fn count_first_parents(&self, tip: &str) -> Result<u64, GitError> {
        let mut command = git_with(self.path(), &[]);
        command.args([
            "--no-replace-objects",
            "rev-list",
            "--count",
            "--first-parent",
            tip,
            "--",
        ]);
        let text = super::process::run(command, "rev-list", b"")?;
        text.parse().map_err(|_| broken())
    }

    /// The same commits as [`Self::first_parents`] without a process, by comparing trees: for a few. None where `since`
    /// is not among the last `most` commits of the history.
    pub fn few_first_parents(
        &self,
        tip: &str,
        since: &str,
        most: usize,
    ) -> Result<Option<Vec<LoggedCommit>>, GitError> {
        let blobs = self.blobs()?;
        let repository = self.library()?;
        let mut at = git2::Oid::from_str(tip)?;
        let since = git2::Oid::from_str(since)?;
        let mut chain = Vec::new();
        while at != since {
            let Ok(parent) = repository.find_commit(at)?.parent_id(0) else {
                return Ok(None);
            };
            chain.push((at, parent));
            if chain.len() > most {
                return Ok(None);
            }
            at = parent;
        }
        let mut out = Vec::with_capacity(chain.len());
        for (id, parent) in chain.into_iter().rev() {
            let changes = blobs.changes(&parent.to_string(), &id.to_string())?;
            let said = blobs.said(id)?;
            out.push(LoggedCommit {
                id: bytes(id),
                parent: Some(bytes(parent)),
                seconds: said.seconds,
                author: said.author,
                subject: said.subject,
                changes: changes.into_iter().filter_map(logged).collect(),
            });
        }
        Ok(Some(out))
    }
}

fn bytes(oid: git2::Oid) -> [u8; 20] {
    let mut id = [0; 20];
    id.copy_from_slice(oid.as_bytes());
    id
}

fn logged(change: TreeChange) -> Option<LoggedChange> {
    let path = change
        .after
        .as_ref()
        .or(change.before.as_ref())?
        .path
        .clone();
    let after = change
        .after
        .filter(|entry| entry.mode == Mode::File)
        .map(|entry| entry.id);
    Some(LoggedChange { path, after })
}

fn broken() -> GitError {
    GitError::Process {
        command: "log".into(),
        message: "its output could not be read".into(),
    }
}

impl FirstParents {
    /// The next field; none at the end.
    fn field(&mut self) -> Result<Option<Vec<u8>>, GitError> {
        let mut field = Vec::new();
        let read = (&mut self.out).take(MAX_FIELD).read_until(0, &mut field)?;
        if read == 0 {
            return Ok(None);
        }
        if field.last() == Some(&0) {
            field.pop();
        } else if read as u64 == MAX_FIELD {
            return Err(broken());
        }
        Ok(Some(field))
    }

    fn read(&mut self) -> Result<Option<LoggedCommit>, GitError> {
        let header = match self.next.take() {
            Some(header) => header,
            None => loop {
                match self.field()? {
                    Some(field) if field.starts_with(b"\x01") => break field,
                    Some(field) if field.is_empty() => {}
                    Some(_) => return Err(broken()),
                    None => {
                        self.finish()?;
                        return Ok(None);
                    }
                }
            },
        };
        let end = header.iter().position(|byte| *byte == 3);
        let (header, rest) = header.split_at(end.ok_or_else(broken)?);
        let mut parts = header[1..].splitn(2, |byte| *byte == 2);
        let mut part = || parts.next().ok_or_else(broken);
        let id = hex_id(part()?).ok_or_else(broken)?;
        let parent = part()?.split(|byte| *byte == b' ').next().and_then(hex_id);
        let said = self.commits.said(git2::Oid::from_bytes(&id)?)?;
        let rest = rest[1..].strip_prefix(b"\n").unwrap_or_default();
        let first = (!rest.is_empty()).then(|| rest.to_vec());
        let mut commit = LoggedCommit {
            id,
            parent,
            seconds: said.seconds,
            author: said.author,
            subject: said.subject,
            changes: Vec::new(),
        };
        let mut field = first;
        loop {
            let meta = match field.take() {
                Some(meta) => meta,
                None => match self.field()? {
                    Some(meta) => meta,
                    None => break,
                },
            };
            if meta.is_empty() {
                continue;
            }
            if meta.starts_with(b"\x01") {
                self.next = Some(meta);
                break;
            }
            let mut words = meta.split(|byte| *byte == b' ');
            let mode = words.nth(1).ok_or_else(broken)?;
            let after = words.nth(1).and_then(hex_id).ok_or_else(broken)?;
            let path = self.field()?.ok_or_else(broken)?;
            let is_file = mode.starts_with(b"100");
            commit.changes.push(LoggedChange {
                path,
                after: is_file.then_some(after),
            });
        }
        Ok(Some(commit))
    }

    fn finish(&mut self) -> Result<(), GitError> {
        self.done = true;
        let status = self.child.wait()?;
        if status.success() {
            return Ok(());
        }
        let mut said = String::new();
        if let Some(errors) = &mut self.errors {
            let _ = errors.take(4096).read_to_string(&mut said);
        }
        let line = said.lines().next().unwrap_or("failed");
        Err(GitError::Process {
            command: "log".into(),
            message: line.trim_start_matches("fatal: ").to_owned(),
        })
    }
}

impl Iterator for FirstParents {
    type Item = Result<LoggedCommit, GitError>;

    fn next(&mut self) -> Option<Self::Item> {
        if self.done {
            return None;
        }
        let read = self.read().transpose();
        self.done |= !matches!(read, Some(Ok(_)));
        read
    }
}
