//! What a proposal does: its files line by line, and what the examples of every prompt that it reaches render to, before
//! and after.

use std::collections::BTreeSet;
use std::sync::Arc;
use std::time::Duration;

use serde::Serialize;
use similar::{ChangeTag, TextDiff};
use tokio_util::sync::CancellationToken;
use utoipa::ToSchema;

use super::VersionsError;
use crate::catalog::Catalog;
use crate::connect::compat::{Lost, lost};
use crate::git::{GitError, Repository};
use crate::prompt::{BoundArguments, Content, Prompt};
use crate::registry::Registry;
use crate::workers::Check;

/// How long one comparison of texts may take; then what was found is shown in larger pieces.
const COMPARING: Duration = Duration::from_millis(300);
/// Lines around a change.
const CONTEXT: usize = 3;
/// Files whose lines are compared.
const FILES: usize = 200;
/// Largest file whose lines are compared, in bytes.
const FILE_BYTES: usize = 512 * 1024;
/// Lines that are shown, of all files and of all renders.
const LINES: usize = 20_000;
/// Prompts whose examples are rendered.
const PROMPTS: usize = 100;
/// Examples that are rendered, twice each.
const EXAMPLES: usize = 300;
/// The nonce of both sides, so that only what differs is shown.
const NONCE: &str = "0000000000000000";

/// A line of a comparison.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, ToSchema)]
#[schema(as = DiffLine)]
pub struct Line {
    /// Its number before, from 1; none for a new one.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub old: Option<u32>,
    /// Its number after; none for one that is gone.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub new: Option<u32>,
    /// Its text, without the end of the line.
    pub text: String,
}

/// Lines that stand together.
pub type Hunk = Vec<Line>;

/// A file of the change.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, ToSchema)]
pub struct FileChange {
    /// Its path.
    pub path: String,
    /// Its size before, in bytes; none where it is new.
    pub size_before: Option<usize>,
    /// Its size after; none where it is gone.
    pub size_after: Option<usize>,
    /// Why no lines are shown: it is no text, or too large.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub not_shown: Option<&'static str>,
    /// What differs.
    #[schema(value_type = Vec<Vec<Line>>)]
    pub hunks: Vec<Hunk>,
    /// Whether more differs than `hunks` shows.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub cut: bool,
}

/// A message of an example, before and after.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, ToSchema)]
pub struct MessageChange {
    /// Who speaks before; none for a new message.
    pub role_before: Option<&'static str>,
    /// Who speaks after; none for one that is gone.
    pub role_after: Option<&'static str>,
    /// What differs; nothing where the text is the same.
    #[schema(value_type = Vec<Vec<Line>>)]
    pub hunks: Vec<Hunk>,
    /// Whether more differs than `hunks` shows.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub cut: bool,
}

/// An example, before and after.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, ToSchema)]
pub struct ExampleChange {
    /// Its name; empty for the prompt as it is without arguments.
    pub example: String,
    /// Why it does not render before.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub error_before: Option<String>,
    /// Why it does not render after.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub error_after: Option<String>,
    /// Its messages.
    pub messages: Vec<MessageChange>,
}

impl ExampleChange {
    /// Whether both sides are alike.
    pub fn is_same(&self) -> bool {
        self.error_before == self.error_after
            && self.messages.iter().all(|message| {
                message.hunks.is_empty()
                    && !message.cut
                    && message.role_before == message.role_after
            })
    }
}

/// A prompt that the change reaches, in its own file or through what it includes or embeds.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, ToSchema)]
pub struct PromptChange {
    /// Its name.
    #[schema(value_type = String)]
    pub name: Arc<str>,
    /// Its path after, or before where it is gone.
    #[schema(value_type = String)]
    pub path: Arc<str>,
    /// `added`, `changed`, `reached` (its own file is the same) or `removed`.
    pub kind: &'static str,
    /// Its examples.
    pub examples: Vec<ExampleChange>,
    /// The clients in which less of it arrives than before.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub clients: Vec<Lost>,
    /// Whether it has text of other files: resources it binds, partials it includes.
    #[serde(skip)]
    pub of_others: bool,
}

/// What a change does.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, ToSchema)]
#[schema(as = ProposalEffect)]
pub struct Effect {
    /// The files it touches.
    pub files: Vec<FileChange>,
    /// The prompts it reaches.
    pub prompts: Vec<PromptChange>,
    /// Files, prompts, examples and messages that are not shown, or not in whole, because there is too much of them.
    pub left_out: usize,
}

/// Lines that may still be shown.
struct Room(usize);

/// What differs, and whether there is more of it than there is room for.
fn hunks(before: &str, after: &str, room: &mut Room) -> (Vec<Hunk>, bool) {
    if before == after {
        return (Vec::new(), false);
    }
    if room.0 == 0 {
        return (Vec::new(), true);
    }
    let mut config = TextDiff::configure();
    config.timeout(COMPARING);
    let diff = config.diff_lines(before, after);
    let number = |index: Option<usize>| index.and_then(|i| u32::try_from(i + 1).ok());
    let (mut out, mut cut) = (Vec::new(), false);
    for group in diff.grouped_ops(CONTEXT) {
        let mut hunk = Vec::new();
        for change in group.iter().flat_map(|op| diff.iter_changes(op)) {
            if room.0 == 0 {
                cut = true;
                break;
            }
            room.0 -= 1;
            hunk.push(Line {
                old: number(change.old_index()).filter(|_| change.tag() != ChangeTag::Insert),
                new: number(change.new_index()).filter(|_| change.tag() != ChangeTag::Delete),
                text: change.value().trim_end_matches(['\n', '\r']).to_owned(),
            });
        }
        if !hunk.is_empty() {
            out.push(hunk);
        }
    }
    (out, cut)
}

/// The files that differ between two commits, line by line. Blocks.
pub fn files(
    repository: &Repository,
    base: &str,
    head: &str,
) -> Result<(Vec<FileChange>, usize), GitError> {
    let blobs = repository.blobs()?;
    let changes = blobs.changes(base, head)?;
    let mut left_out = changes.len().saturating_sub(FILES);
    let mut room = Room(LINES);
    let mut out = Vec::new();
    for change in changes.into_iter().take(FILES) {
        let Some(entry) = change.after.as_ref().or(change.before.as_ref()) else {
            continue;
        };
        let path = String::from_utf8_lossy(&entry.path).into_owned();
        let side = |entry: Option<&crate::git::TreeEntry>| match entry {
            Some(entry) if entry.mode == crate::git::Mode::File => blobs.read(entry.id).map(Some),
            _ => Ok(None),
        };
        let (before, after) = (side(change.before.as_ref())?, side(change.after.as_ref())?);
        let size = |bytes: &Option<Vec<u8>>| bytes.as_ref().map(Vec::len);
        let (size_before, size_after) = (size(&before), size(&after));
        let large = size_before.unwrap_or(0).max(size_after.unwrap_or(0)) > FILE_BYTES;
        let texts = (
            String::from_utf8(before.unwrap_or_default()),
            String::from_utf8(after.unwrap_or_default()),
        );
        let (not_shown, (hunks, cut)) = match texts {
            _ if large => (
                Some("too large to be shown line by line"),
                (Vec::new(), false),
            ),
            (Ok(before), Ok(after)) if !before.contains('\0') && !after.contains('\0') => {
                (None, hunks(&before, &after, &mut room))
            }
            _ => (Some("no text"), (Vec::new(), false)),
        };
        left_out += usize::from(cut);
        out.push(FileChange {
            path,
            size_before,
            size_after,
            not_shown,
            hunks,
            cut,
        });
    }
    Ok((out, left_out))
}

/// What main would be with a commit whose objects `repository` has, against what is served: every prompt that lists or
/// renders differently, of the paths that `sees` says yes to: the rest is as if it were not there, and a prompt that would
/// come to show a partial of the rest is left out. Blocks: builds a catalog, and renders examples on the budget of a check.
pub fn prompts(
    registry: &Registry,
    repository: &Repository,
    commit: &str,
    sees: impl Fn(&str) -> bool,
    cancel: &CancellationToken,
) -> Result<(Vec<PromptChange>, usize), VersionsError> {
    let (base, update) =
        registry
            .would_be(repository, commit, cancel)
            .map_err(|error| match error {
                crate::registry::OpenError::Git(error) => VersionsError::Git(error),
                error @ crate::registry::OpenError::Io(_) => {
                    VersionsError::Git(GitError::Io(std::io::Error::other(error.to_string())))
                }
            })?;
    let (base_seen, after_seen) = (base.seen(&sees), update.catalog.seen(&sees));
    let check = registry.renderer().check(cancel.clone());
    let mut room = Room(LINES);
    let (mut out, mut left_out, mut rendered) = (Vec::new(), 0, 0);
    let changed = &update.difference.prompts;
    let mut reached: BTreeSet<Arc<str>> = BTreeSet::new();
    for folder in &update.difference.reached {
        let all = update.catalog.list(Some(folder));
        let own = all.iter().filter(|prompt| prompt.folder == *folder);
        reached.extend(own.map(|prompt| Arc::from(prompt.name.as_str())));
    }
    reached.retain(|name| !changed.contains_key(name));
    let sides = changed
        .iter()
        .map(|(name, changed)| (name, changed.before.clone(), changed.after.clone(), false));
    let by_resource = reached.iter().map(|name| {
        let of = |catalog: &Catalog| catalog.prompt(name).cloned();
        (name, of(&base), of(&update.catalog), true)
    });
    let is_seen = |prompt: &Arc<Prompt>| sees(&prompt.path);
    for (name, before, after, by_resource) in sides.chain(by_resource) {
        let (before, after) = (before.filter(is_seen), after.filter(is_seen));
        if let Some(after) = &after
            && shows_more(before.as_deref(), after, &sees)
        {
            continue;
        }
        let Some(path) = after
            .as_ref()
            .or(before.as_ref())
            .map(|prompt| prompt.path.clone())
        else {
            continue;
        };
        if out.len() >= PROMPTS {
            left_out += 1;
            continue;
        }
        let kind = match (&before, &after) {
            (None, _) => "added",
            (_, None) => "removed",
            (Some(before), Some(after)) if before.sha256 == after.sha256 => "reached",
            _ => "changed",
        };
        let mut examples = Vec::new();
        for (example, arguments) in of_both(before.as_deref(), after.as_deref()) {
            if rendered >= EXAMPLES {
                left_out += 1;
                continue;
            }
            rendered += 1;
            let side = |catalog: &Catalog, prompt: &Option<Arc<Prompt>>| {
                let prompt = prompt.as_ref();
                prompt.map(|prompt| shown(&check, catalog, prompt, &arguments))
            };
            let sides = (side(&base_seen, &before), side(&after_seen, &after));
            let example = compared(example, sides, &mut room);
            left_out += example.messages.iter().filter(|m| m.cut).count();
            examples.push(example);
        }
        if by_resource && examples.iter().all(ExampleChange::is_same) {
            continue;
        }
        out.push(PromptChange {
            name: name.clone(),
            path,
            kind,
            examples,
            clients: after
                .as_deref()
                .map_or_else(Vec::new, |after| lost(before.as_deref(), after)),
            of_others: [&before, &after]
                .into_iter()
                .flatten()
                .any(|prompt| !prompt.bindings.is_empty() || !prompt.partials.is_empty()),
        });
    }
    Ok((out, left_out))
}

/// Whether a prompt shows a partial that is not seen, and did not before.
fn shows_more(before: Option<&Prompt>, after: &Prompt, sees: impl Fn(&str) -> bool) -> bool {
    let had = |name: &str| {
        before.is_some_and(|before| {
            let mut known = before.partials.iter();
            known.any(|partial| *partial.name == *name)
        })
    };
    let mut partials = after.partials.iter();
    partials.any(|partial| !sees(&partial.source.path) && !had(&partial.name))
}

/// The examples of both sides, each name once, with what they give; one without arguments where there are none.
fn of_both(
    before: Option<&Prompt>,
    after: Option<&Prompt>,
) -> Vec<(String, Vec<(String, String)>)> {
    let mut out: Vec<(String, Vec<(String, String)>)> = Vec::new();
    for prompt in [after, before].into_iter().flatten() {
        for example in &prompt.examples {
            if !out.iter().any(|(name, _)| *name == example.name) {
                out.push((example.name.clone(), example.arguments.clone()));
            }
        }
    }
    if out.is_empty() {
        // as the check tries it
        let required = after
            .or(before)
            .into_iter()
            .flat_map(|prompt| prompt.arguments.iter());
        let stand_ins = required
            .filter(|a| a.required && a.default.is_none())
            .map(|argument| {
                let listed = argument.values.list.first().cloned();
                (
                    argument.name.to_string(),
                    listed.unwrap_or_else(|| "example".into()),
                )
            });
        out.push((String::new(), stand_ins.collect()));
    }
    out
}

type Shown = Result<Vec<(&'static str, String)>, String>;

fn compared(
    example: String,
    (before, after): (Option<Shown>, Option<Shown>),
    room: &mut Room,
) -> ExampleChange {
    let split = |side: Option<Shown>| match side {
        None => (Vec::new(), None),
        Some(Ok(messages)) => (messages, None),
        Some(Err(error)) => (Vec::new(), Some(error)),
    };
    let ((before, error_before), (after, error_after)) = (split(before), split(after));
    let messages = (0..before.len().max(after.len())).map(|i| {
        let (old, new) = (before.get(i), after.get(i));
        let text = |side: Option<&(&'static str, String)>| {
            side.map_or_else(String::new, |(_, text)| text.clone())
        };
        let (hunks, cut) = hunks(&text(old), &text(new), room);
        MessageChange {
            role_before: old.map(|(role, _)| *role),
            role_after: new.map(|(role, _)| *role),
            hunks,
            cut,
        }
    });
    ExampleChange {
        example,
        messages: messages.collect(),
        error_before,
        error_after,
    }
}

/// The messages of a prompt, or why there are none.
fn shown(
    check: &Check<'_>,
    catalog: &Catalog,
    prompt: &Prompt,
    arguments: &[(String, String)],
) -> Shown {
    let limits = catalog.limits();
    // an argument that one side does not have is none of its own
    let known = |name: &str| {
        prompt
            .arguments
            .iter()
            .any(|argument| *argument.name == *name)
    };
    let given = arguments
        .iter()
        .map(|(name, value)| (name.as_str(), value.as_str()))
        .filter(|(name, _)| known(name));
    let made = || -> Result<Vec<(&'static str, String)>, Box<dyn std::error::Error>> {
        let bound = BoundArguments::bind(&prompt.arguments, given, limits)?;
        let mut resources = catalog.resolve(prompt, &bound)?;
        resources.nonce = NONCE.into();
        let rendered = check.render(prompt, &bound, &resources, limits)?;
        let messages = rendered.messages.iter().map(|message| {
            let text = match &message.content {
                Content::Text(text) => text.clone(),
                Content::Resource { resource, .. } => match resource.text() {
                    Some(text) => format!("[{}]\n{text}", resource.uri),
                    None => format!("[{} {}]\n", resource.uri, resource.sha256),
                },
            };
            (message.role.as_str(), text)
        });
        Ok(messages.collect())
    };
    made().map_err(|error| error.to_string())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_there_is_no_room_for_is_not_the_same() {
        let mut room = Room(3);
        let same = compared(
            String::new(),
            (
                Some(Ok(vec![("user", "a\n".into())])),
                Some(Ok(vec![("user", "a\n".into())])),
            ),
            &mut room,
        );
        assert!(same.is_same());
        assert!(!hunks("a\n", "b\n", &mut room).1);
        assert!(hunks("a\n", "b\n", &mut room).1);
        let full = compared(
            String::new(),
            (
                Some(Ok(vec![("user", "a\n".into())])),
                Some(Ok(vec![("user", "b\n".into())])),
            ),
            &mut room,
        );
        assert!(full.messages[0].cut && full.messages[0].hunks.is_empty());
        assert!(!full.is_same());
    }
}
