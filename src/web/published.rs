//! What was published: versions of prompts, and labels that were moved, with who did it and why.

use std::cmp::Reverse;
use std::collections::BinaryHeap;
use std::sync::Arc;

use serde::Serialize;

use super::Web;
use super::library::{Label, labels};
use super::versions::off_the_threads;
use super::visit::{Visit, reads};
use crate::access::Actor;
use crate::git::{GitError, read_again};
use crate::history::{Commit, Numbered};
use crate::registry::Snapshot;
use crate::versions::log::{self, Moved};

/// What is listed, newest first.
const LISTED: usize = 40;
/// Labels that are named of one commit.
const NAMED: usize = 8;

/// A commit that published a version of a prompt, or moved labels.
#[derive(Debug, Serialize)]
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
    pub at: i64,
    /// The commit.
    pub commit: String,
}

/// A version that was published.
#[derive(Debug, Serialize)]
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
#[derive(Debug, Serialize)]
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

impl Published {
    fn of(commit: &Commit) -> Self {
        Self {
            version: None,
            moves: Vec::new(),
            more: 0,
            author: commit.author.to_string(),
            subject: commit.subject.to_string(),
            at: commit.seconds,
            commit: commit.hex().to_string(),
        }
    }
}

/// What was published last of the prompts that are seen, newest first, and whether moves of labels could be read: they are
/// not among it otherwise.
pub(super) async fn published(
    web: &Web,
    snapshot: &Arc<Snapshot>,
    visit: &Visit,
) -> (Vec<Published>, bool) {
    let moves = relabelled(web, snapshot, visit).await;
    let whole = moves.is_some();
    // a label is moved after what it is moved to, also within a second
    let mut out = moves.unwrap_or_default();
    out.extend(versions(snapshot, visit));
    out.sort_by_key(|one| Reverse(one.at));
    out.truncate(LISTED);
    (out, whole)
}

/// The newest versions.
fn versions(snapshot: &Snapshot, visit: &Visit) -> Vec<Published> {
    let Some(history) = &snapshot.history else {
        return Vec::new();
    };
    let mut newest: BinaryHeap<Reverse<(i64, u64, &str)>> = BinaryHeap::new();
    for prompt in snapshot.catalog.list(None).iter() {
        let name = prompt.name.as_str();
        if !visit.reads(&prompt.path) {
            continue;
        }
        let Some(numbered) = history.of(name) else {
            continue;
        };
        // a version that was elsewhere may not be known of
        let versions = numbered.versions.iter().enumerate().rev();
        let versions = versions.filter(|(_, version)| visit.reads(&version.path));
        for (index, version) in versions.take(LISTED) {
            newest.push(Reverse((version.commit.seconds, index as u64 + 1, name)));
            if newest.len() > LISTED {
                newest.pop();
            }
        }
    }
    let labels = labels(snapshot);
    // the smallest of what is turned round is the newest
    newest
        .into_sorted_vec()
        .into_iter()
        .filter_map(|Reverse((_, number, name))| {
            let numbered = history.of(name)?;
            let prompt = snapshot.catalog.prompt(name)?;
            let on = labels.get(name).cloned().unwrap_or_default();
            Some(Published {
                version: Some(PublishedVersion {
                    name: name.to_owned(),
                    title: prompt.title.clone().unwrap_or_else(|| name.to_owned()),
                    number,
                    again: again(numbered, number, &visit.actor),
                    labels: on
                        .into_iter()
                        .filter(|label| label.version == number)
                        .collect(),
                }),
                ..Published::of(&numbered.get(number)?.commit)
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

/// What the last commits that changed the labels have moved of what is seen; none where that cannot be read now.
async fn relabelled(web: &Web, snapshot: &Arc<Snapshot>, visit: &Visit) -> Option<Vec<Published>> {
    let (registry, snapshot) = (web.api.registry.clone(), snapshot.clone());
    let actor = visit.actor.clone();
    let read = off_the_threads(web, move || {
        let (Some(repository), Some(history)) =
            (registry.library().repository(), &snapshot.history)
        else {
            return Ok(Vec::new());
        };
        let read = read_again(GitError::git, || {
            let mut out: Vec<Published> = Vec::new();
            log::walk(repository, history, LISTED, |commit, moved| {
                let moves: Vec<&Moved> = moved
                    .iter()
                    .filter(|moved| sees(&snapshot, &actor, moved))
                    .collect();
                if !moves.is_empty() {
                    out.push(Published {
                        more: moves.len().saturating_sub(NAMED),
                        moves: moves
                            .into_iter()
                            .take(NAMED)
                            .map(|moved| named(&snapshot, moved))
                            .collect(),
                        ..Published::of(commit)
                    });
                }
            })?;
            Ok(out)
        });
        read.map_err(|error: GitError| super::Failure::Internal(error.to_string()))
    });
    let mut out = read
        .await
        .inspect_err(|error| tracing::warn!(?error, "the moves of labels could not be read"))
        .ok()?;
    out.reverse();
    Some(out)
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
