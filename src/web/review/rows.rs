//! Lines of a comparison as the page shows them: with the threads that stand on them, and the place of a new comment.

use serde::Serialize;

use crate::api::proposals::view::Thread;
use crate::versions::effect::{FileChange, Hunk, PromptChange};

/// A line.
#[derive(Debug, Clone, Serialize)]
pub struct Row {
    /// What names it in the page, e.g. `f2n12`: the third file, line 12 after the change.
    pub id: String,
    /// `add`, `del` or `same`.
    pub kind: &'static str,
    /// Its number before.
    pub old: Option<u32>,
    /// Its number after.
    pub new: Option<u32>,
    /// Its text.
    pub text: String,
    /// The side a comment on it stands on.
    pub side: &'static str,
    /// The line a comment on it stands on.
    pub line: u32,
    /// Threads that stand on it.
    pub threads: Vec<Thread>,
    /// Whether a comment is to be made here.
    pub open: bool,
}

/// A file.
#[derive(Debug, Clone, Serialize)]
pub struct FileView {
    /// Its path.
    pub path: String,
    /// `added`, `changed` or `removed`.
    pub kind: &'static str,
    /// Its size after, or before where it is gone, in bytes.
    pub size: usize,
    /// Why no lines are shown: `binary` or `large`, whose text is `review.not_shown.<word>`.
    pub not_shown: Option<&'static str>,
    /// Lines that came.
    pub added: usize,
    /// Lines that went.
    pub removed: usize,
    /// What differs.
    pub hunks: Vec<Vec<Row>>,
}

/// A message of an example.
#[derive(Debug, Clone, Serialize)]
pub struct MessageView {
    /// From 0.
    pub index: usize,
    /// Who speaks before.
    pub role_before: Option<&'static str>,
    /// Who speaks after.
    pub role_after: Option<&'static str>,
    /// What differs.
    pub hunks: Vec<Vec<Row>>,
}

/// An example.
#[derive(Debug, Clone, Serialize)]
pub struct ExampleView {
    /// Its name; empty for the prompt without arguments.
    pub name: String,
    /// Why it does not render before.
    pub error_before: Option<String>,
    /// Why it does not render after.
    pub error_after: Option<String>,
    /// Whether nothing of it differs.
    pub same: bool,
    /// Its messages.
    pub messages: Vec<MessageView>,
}

/// A prompt.
#[derive(Debug, Clone, Serialize)]
pub struct PromptView {
    /// Its name.
    pub name: String,
    /// Its path.
    pub path: String,
    /// `added`, `changed`, `reached` or `removed`.
    pub kind: &'static str,
    /// Its examples.
    pub examples: Vec<ExampleView>,
}

/// Takes out the threads that stand on a line.
fn on(threads: &mut Vec<Thread>, stands: impl Fn(&Thread) -> bool) -> Vec<Thread> {
    let (here, others) = std::mem::take(threads).into_iter().partition(stands);
    *threads = others;
    here
}

fn rows(
    hunks: &[Hunk],
    prefix: &str,
    at: &str,
    mut threads: impl FnMut(&str, u32) -> Vec<Thread>,
) -> Vec<Vec<Row>> {
    let mut shown = Vec::new();
    for hunk in hunks {
        let rows = hunk.iter().map(|line| {
            let (kind, side, number) = match (line.old, line.new) {
                (Some(old), None) => ("del", "old", old),
                (None, new) => ("add", "new", new.unwrap_or(0)),
                (Some(_), Some(new)) => ("same", "new", new),
            };
            let id = format!("{prefix}{}{number}", &side[..1]);
            Row {
                open: id == at,
                threads: threads(side, number),
                id,
                kind,
                old: line.old,
                new: line.new,
                text: line.text.clone(),
                side,
                line: number,
            }
        });
        shown.push(rows.collect());
    }
    shown
}

/// The files with their threads, which are taken out of `threads`.
pub(super) fn files(files: &[FileChange], threads: &mut Vec<Thread>, at: &str) -> Vec<FileView> {
    let view = |(index, file): (usize, &FileChange)| {
        let hunks = rows(&file.hunks, &format!("f{index}"), at, |side, line| {
            on(threads, |thread| {
                thread.place.as_ref().is_some_and(|place| {
                    place.example.is_none()
                        && place.path == file.path
                        && place.side == side
                        && place.now == Some(line.into())
                })
            })
        });
        let count = |kind: &str| {
            hunks
                .iter()
                .flatten()
                .filter(|row| row.kind == kind)
                .count()
        };
        FileView {
            path: file.path.clone(),
            kind: match (file.size_before, file.size_after) {
                (None, _) => "added",
                (_, None) => "removed",
                _ => "changed",
            },
            size: file.size_after.or(file.size_before).unwrap_or(0),
            not_shown: file.not_shown.map(|why| match why {
                "no text" => "binary",
                _ => "large",
            }),
            added: count("add"),
            removed: count("del"),
            hunks,
        }
    };
    files.iter().enumerate().map(view).collect()
}

/// The prompts with their threads, which are taken out of `threads`.
pub(super) fn prompts(
    prompts: &[PromptChange],
    threads: &mut Vec<Thread>,
    at: &str,
) -> Vec<PromptView> {
    let mut out = Vec::new();
    for (p, prompt) in prompts.iter().enumerate() {
        let mut examples = Vec::new();
        for (e, example) in prompt.examples.iter().enumerate() {
            let mut messages = Vec::new();
            for (m, message) in example.messages.iter().enumerate() {
                let prefix = format!("p{p}e{e}m{m}");
                let hunks = rows(&message.hunks, &prefix, at, |side, line| {
                    on(threads, |thread| {
                        thread.place.as_ref().is_some_and(|place| {
                            place.example.as_deref() == Some(&*example.example)
                                && place.path == *prompt.path
                                && place.message == i64::try_from(m).ok()
                                && place.side == side
                                && place.now == Some(line.into())
                        })
                    })
                });
                messages.push(MessageView {
                    index: m,
                    role_before: message.role_before,
                    role_after: message.role_after,
                    hunks,
                });
            }
            examples.push(ExampleView {
                name: example.example.clone(),
                error_before: example.error_before.clone(),
                error_after: example.error_after.clone(),
                same: example.is_same(),
                messages,
            });
        }
        out.push(PromptView {
            name: prompt.name.to_string(),
            path: prompt.path.to_string(),
            kind: prompt.kind,
            examples,
        });
    }
    out
}
