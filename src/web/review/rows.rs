//! Lines of a comparison as the page shows them: with the threads that stand on them, and the place of a new comment.

use std::collections::HashMap;

use serde::Serialize;

use crate::api::proposals::view::Thread;
use crate::connect::compat::Lost;
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
    /// Whether more differs than is shown.
    pub cut: bool,
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
    /// Whether more differs than is shown.
    pub cut: bool,
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
    /// The clients in which less of it arrives than before.
    pub clients: Vec<Lost>,
}

/// A file, or a message of an example of it.
type Text = (String, Option<(String, i64)>);
/// The threads on the lines of a text, by side and number.
type OnLines = HashMap<(String, i64), Vec<Thread>>;

/// Threads by where they stand, so that a line finds its own at once.
#[derive(Debug, Default)]
pub(super) struct Placed {
    texts: HashMap<Text, OnLines>,
    /// About the whole, or about a line that is no more.
    others: Vec<Thread>,
}

impl Placed {
    pub(super) fn of(threads: Vec<Thread>) -> Self {
        let mut out = Self::default();
        for thread in threads {
            let stands = thread.place.as_ref().and_then(|place| {
                let rendered = match (&place.example, place.message) {
                    (None, _) => None,
                    (Some(example), Some(message)) => Some((example.clone(), message)),
                    (Some(_), None) => return None,
                };
                let text = (place.path.clone(), rendered);
                Some((text, (place.side.clone(), place.now?)))
            });
            match stands {
                Some((text, line)) => {
                    let lines = out.texts.entry(text).or_default();
                    lines.entry(line).or_default().push(thread);
                }
                None => out.others.push(thread),
            }
        }
        out
    }

    /// Takes out the threads of a text; those whose line is not shown come back with [`Self::put`].
    fn take(&mut self, text: &Text) -> OnLines {
        self.texts.remove(text).unwrap_or_default()
    }

    fn put(&mut self, text: Text, lines: OnLines) {
        if !lines.is_empty() {
            self.texts.insert(text, lines);
        }
    }

    /// Those that stand on no line that is shown, oldest first.
    pub(super) fn rest(self) -> Vec<Thread> {
        let mut out = self.others;
        let texts = self.texts.into_values();
        out.extend(texts.flat_map(HashMap::into_values).flatten());
        out.sort_by_key(|thread| thread.thread);
        out
    }
}

fn rows(hunks: &[Hunk], prefix: &str, at: &str, threads: &mut OnLines) -> Vec<Vec<Row>> {
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
                threads: if threads.is_empty() {
                    Vec::new()
                } else {
                    let line = (side.to_owned(), i64::from(number));
                    threads.remove(&line).unwrap_or_default()
                },
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
pub(super) fn files(files: &[FileChange], threads: &mut Placed, at: &str) -> Vec<FileView> {
    let view = |(index, file): (usize, &FileChange)| {
        let text = (file.path.clone(), None);
        let mut lines = threads.take(&text);
        let hunks = rows(&file.hunks, &format!("f{index}"), at, &mut lines);
        threads.put(text, lines);
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
            cut: file.cut,
            hunks,
        }
    };
    files.iter().enumerate().map(view).collect()
}

/// The prompts with their threads, which are taken out of `threads`.
pub(super) fn prompts(prompts: &[PromptChange], threads: &mut Placed, at: &str) -> Vec<PromptView> {
    let mut out = Vec::new();
    for (p, prompt) in prompts.iter().enumerate() {
        let mut examples = Vec::new();
        for (e, example) in prompt.examples.iter().enumerate() {
            let mut messages = Vec::new();
            for (m, message) in example.messages.iter().enumerate() {
                let prefix = format!("p{p}e{e}m{m}");
                let number = i64::try_from(m).unwrap_or(i64::MAX);
                let text = (
                    prompt.path.to_string(),
                    Some((example.example.clone(), number)),
                );
                let mut lines = threads.take(&text);
                let hunks = rows(&message.hunks, &prefix, at, &mut lines);
                threads.put(text, lines);
                messages.push(MessageView {
                    index: m,
                    role_before: message.role_before,
                    role_after: message.role_after,
                    cut: message.cut,
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
            clients: prompt.clients.clone(),
        });
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::api::proposals::view::ThreadPlace;
    use crate::versions::effect::Line;

    #[test]
    fn a_thread_stands_on_its_line_or_among_the_others() {
        let thread = |thread: i64, now: Option<i64>| Thread {
            thread,
            place: Some(ThreadPlace {
                path: "a.md".into(),
                side: "new".into(),
                line: 1,
                now,
                example: None,
                message: None,
                outdated: now.is_none(),
                quote: None,
            }),
            resolved_by: None,
            comments: Vec::new(),
        };
        let threads = vec![
            thread(1, None),
            thread(2, Some(9)),
            thread(3, Some(2)),
            thread(4, Some(2)),
        ];
        let line = |new: u32| Line {
            old: None,
            new: Some(new),
            text: String::new(),
        };
        let file = FileChange {
            path: "a.md".into(),
            size_before: None,
            size_after: Some(3),
            not_shown: None,
            hunks: vec![vec![line(1), line(2)]],
            cut: false,
        };
        let ids = |threads: &[Thread]| threads.iter().map(|t| t.thread).collect::<Vec<_>>();
        let mut placed = Placed::of(threads);
        let view = files(&[file], &mut placed, "");
        assert!(view[0].hunks[0][0].threads.is_empty());
        assert_eq!(ids(&view[0].hunks[0][1].threads), [3, 4]);
        assert_eq!(ids(&placed.rest()), [1, 2]);
    }
}
