//! What was published: versions of prompts, and labels that were moved, with who did it and why.

use std::cmp::Reverse;
use std::collections::BinaryHeap;
use std::fmt;
use std::sync::Arc;

use serde::Serialize;
use utoipa::ToSchema;

use crate::access::{Action, Actor};
use crate::git::{GitError, read_again};
use crate::history::{Commit, Numbered};
use crate::registry::versions::Label;
use crate::registry::{AtError, Registry, Snapshot};
use crate::versions::log::{self, Moved};

/// Labels that are named of one commit.
const NAMED: usize = 8;

/// A commit that published a version of a prompt, or moved labels.
#[derive(Debug, Serialize, ToSchema)]
#[schema(as = PublishedItem)]
pub struct Published {
    /// The version; none where labels were moved.
    pub version: Option<PublishedVersion>,
    /// The labels that were moved; the first of them.
    pub moves: Vec<PublishedMove>,
    /// How many more there were.
    pub more: usize,
    /// Who.
    pub author: String,
    /// Why.
    pub subject: String,
    /// When, in seconds since 1970.
    pub time: i64,
    /// The commit.
    pub commit: String,
    /// Where it stands in the list.
    #[serde(skip)]
    pub place: Place,
}

/// A version that was published.
#[derive(Debug, Serialize, ToSchema)]
pub struct PublishedVersion {
    /// The prompt.
    pub name: String,
    /// Its title.
    pub title: String,
    /// The version.
    pub number: u64,
    /// The earlier version that it is once more, as after going back to that.
    pub again: Option<u64>,
    /// Labels on it now.
    pub labels: Vec<Label>,
}

/// A label that was moved.
#[derive(Debug, Serialize, ToSchema)]
pub struct PublishedMove {
    /// The prompt.
    pub name: String,
    /// Its title.
    pub title: String,
    /// The label.
    pub label: String,
    /// The version it is on since; none where it was taken off.
    pub number: Option<u64>,
    /// Whether it was on a later one before.
    pub back: bool,
}

/// Where something stands in the list; what is newer is greater. A label is moved after what it is moved to, also within a
/// second. It is the same whatever is published since.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct Place {
    /// When, in seconds since 1970.
    time: i64,
    /// Whether labels were moved.
    moves: bool,
    /// How many changes of the labels were before it in its second, or the number of the version.
    number: u64,
    /// The prompt of the version.
    name: String,
}

impl fmt::Display for Place {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self {
            time,
            moves,
            number,
            name,
        } = self;
        write!(f, "{time} {moves} {number} {name}")
    }
}

impl Place {
    /// Reads what `Display` writes; none where it is something else.
    pub fn parse(text: &str) -> Option<Self> {
        let mut parts = text.splitn(4, ' ');
        Some(Self {
            time: parts.next()?.parse().ok()?,
            moves: parts.next()?.parse().ok()?,
            number: parts.next()?.parse().ok()?,
            name: parts.next()?.to_owned(),
        })
    }

    /// Whether a version is older: its time, its number, its prompt.
    fn is_after(&self, (time, number, name): (i64, u64, &str)) -> bool {
        (time, false, number, name) < (self.time, self.moves, self.number, self.name.as_str())
    }
}

impl Published {
    fn of(commit: &Commit, place: Place) -> Self {
        Self {
            version: None,
            moves: Vec::new(),
            more: 0,
            author: commit.author.to_string(),
            subject: commit.subject.to_string(),
            time: commit.seconds,
            commit: commit.hex().to_string(),
            place,
        }
    }
}

/// A part of the list.
#[derive(Debug, Clone, Default)]
pub struct Asked {
    /// Only what stands before this; the newest where it is none.
    pub before: Option<Place>,
    /// How many.
    pub most: usize,
    /// Changes of the labels that are looked at, the newest.
    pub back: usize,
}

/// What was published of the prompts that are seen, newest first; and why the moves of labels are not among it, where they
/// could not be read. Takes a place among those who read git.
pub async fn published(
    registry: &Arc<Registry>,
    actor: &Actor,
    asked: &Asked,
) -> (Vec<Published>, Option<AtError>) {
    let snapshot = registry.snapshot();
    let (mut out, unread) = match relabelled(registry, &snapshot, actor, asked).await {
        Ok(moves) => (moves, None),
        Err(error) => (Vec::new(), Some(error)),
    };
    out.extend(versions(&snapshot, actor, asked));
    out.sort_by(|a, b| b.place.cmp(&a.place));
    out.truncate(asked.most);
    (out, unread)
}

fn reads(actor: &Actor, path: &str) -> bool {
    actor.may(Action::Read, path)
}

/// The newest versions.
fn versions(snapshot: &Snapshot, actor: &Actor, asked: &Asked) -> Vec<Published> {
    let Some(history) = &snapshot.history else {
        return Vec::new();
    };
    let mut newest: BinaryHeap<Reverse<(i64, u64, &str)>> = BinaryHeap::new();
    for prompt in snapshot.catalog.list(None).iter() {
        let name = prompt.name.as_str();
        if !reads(actor, &prompt.path) {
            continue;
        }
        let Some(numbered) = history.of(name) else {
            continue;
        };
        for (index, version) in numbered.versions.iter().enumerate().rev() {
            let (seconds, number) = (version.commit.seconds, index as u64 + 1);
            let key = (seconds, number, name);
            let is_full = newest.len() >= asked.most;
            let is_old = is_full && newest.peek().is_none_or(|Reverse(oldest)| key < *oldest);
            let was_told = asked
                .before
                .as_ref()
                .is_some_and(|before| !before.is_after(key));
            // a version that was elsewhere may not be known of
            if is_old || was_told || !reads(actor, &version.path) {
                continue;
            }
            newest.push(Reverse(key));
            if newest.len() > asked.most {
                newest.pop();
            }
        }
    }
    let labels = snapshot.labels(|path| reads(actor, path));
    newest
        .into_iter()
        .filter_map(|Reverse((time, number, name))| {
            let numbered = history.of(name)?;
            let prompt = snapshot.catalog.prompt(name)?;
            let on = labels.get(name).cloned().unwrap_or_default();
            let place = Place {
                time,
                moves: false,
                number,
                name: name.to_owned(),
            };
            Some(Published {
                version: Some(PublishedVersion {
                    name: name.to_owned(),
                    title: prompt.title.clone().unwrap_or_else(|| name.to_owned()),
                    number,
                    again: again(numbered, number, actor),
                    labels: on
                        .into_iter()
                        .filter(|label| label.version == number)
                        .collect(),
                }),
                ..Published::of(&numbered.get(number)?.commit, place)
            })
        })
        .collect()
}

/// The newest version before another that is the same, among those that an actor may know of.
fn again(numbered: &Numbered, number: u64, actor: &Actor) -> Option<u64> {
    let content = numbered.get(number)?.content;
    (1..number).rev().find(|earlier| {
        let earlier = numbered.get(*earlier);
        earlier.is_some_and(|version| version.content == content && reads(actor, &version.path))
    })
}

/// What the last commits that changed the labels have moved of what is seen.
async fn relabelled(
    registry: &Arc<Registry>,
    snapshot: &Arc<Snapshot>,
    actor: &Actor,
    asked: &Asked,
) -> Result<Vec<Published>, AtError> {
    let _permit = registry.reading().await?;
    let (registry, snapshot) = (registry.clone(), snapshot.clone());
    let (actor, asked) = (actor.clone(), asked.clone());
    let read = tokio::task::spawn_blocking(move || {
        read_again(GitError::git, || {
            moved(&registry, &snapshot, &actor, &asked)
        })
    });
    let unread = |error: &dyn fmt::Display| {
        tracing::warn!(%error, "the moves of labels could not be read");
        AtError::Io
    };
    let read = read.await.map_err(|error| unread(&error))?;
    read.map_err(|error| unread(&error))
}

/// The same; blocks.
fn moved(
    registry: &Registry,
    snapshot: &Snapshot,
    actor: &Actor,
    asked: &Asked,
) -> Result<Vec<Published>, GitError> {
    let mut out: Vec<Published> = Vec::new();
    let (Some(repository), Some(history)) = (registry.library().repository(), &snapshot.history)
    else {
        return Ok(out);
    };
    log::walk(
        repository,
        history,
        asked.back,
        |position, commit, moved| {
            let place = Place {
                time: commit.seconds,
                moves: true,
                number: history.of_the_same_second(position) as u64,
                name: String::new(),
            };
            if asked.before.as_ref().is_some_and(|before| place >= *before) {
                return;
            }
            let moves: Vec<&Moved> = moved
                .iter()
                .filter(|moved| sees(snapshot, actor, moved))
                .collect();
            if !moves.is_empty() {
                out.push(Published {
                    more: moves.len().saturating_sub(NAMED),
                    moves: moves
                        .into_iter()
                        .take(NAMED)
                        .map(|moved| named(snapshot, moved))
                        .collect(),
                    ..Published::of(commit, place)
                });
            }
        },
    )?;
    Ok(out)
}

/// Whether an actor may know of a move: of the prompt, and of the versions it is about.
fn sees(snapshot: &Snapshot, actor: &Actor, moved: &Moved) -> bool {
    let prompt = snapshot.catalog.prompt(&moved.prompt);
    let version = |number: Option<u64>| {
        let history = snapshot.history.as_ref();
        history.and_then(|history| history.version(&moved.prompt, number?))
    };
    let was_seen = |number| version(number).is_none_or(|version| reads(actor, &version.path));
    prompt.is_some_and(|prompt| reads(actor, &prompt.path))
        && was_seen(moved.before)
        && was_seen(moved.number)
}

fn named(snapshot: &Snapshot, moved: &Moved) -> PublishedMove {
    let prompt = snapshot.catalog.prompt(&moved.prompt);
    let title = prompt.and_then(|prompt| prompt.title.clone());
    PublishedMove {
        name: moved.prompt.to_string(),
        title: title.unwrap_or_else(|| moved.prompt.to_string()),
        label: moved.label.to_string(),
        number: moved.number,
        back: moved.number.is_some() && moved.number < moved.before,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::history::Version;

    #[test]
    fn places_are_read_as_they_are_written() {
        let moved = Place {
            time: 7,
            moves: true,
            number: 0,
            name: String::new(),
        };
        let version = Place {
            moves: false,
            number: 3,
            name: "a".to_owned(),
            ..moved.clone()
        };
        for place in [&moved, &version] {
            assert_eq!(Place::parse(&place.to_string()).as_ref(), Some(place));
        }
        for text in ["", "7", "7 true 0", "7 maybe 0 a", "seven true 0 a"] {
            assert_eq!(Place::parse(text), None, "{text}");
        }
        // what is moved onto a version of the same second comes after it
        assert!(version < moved);
        assert!(moved.is_after((7, 3, "a")) && !version.is_after((7, 3, "a")));
    }

    #[test]
    fn a_version_is_an_earlier_one_again() {
        let version = |content: u8| Version {
            commit: Arc::new(Commit::new([content; 20], 0, "a", "s")),
            path: "prompts/a.md".into(),
            content: [content; 20],
        };
        let numbered = Numbered {
            versions: [1, 2, 1, 3, 1].map(version).to_vec(),
            last: None,
        };
        let local = Actor::local();
        let found: Vec<Option<u64>> = (1..=5).map(|n| again(&numbered, n, &local)).collect();
        assert_eq!(found, [None, None, Some(1), None, Some(3)]);
    }
}
