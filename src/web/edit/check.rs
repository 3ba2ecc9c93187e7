//! What a change would do if it were published now: the check of a push, of a commit that nothing points to.

use std::collections::BTreeMap;

use axum::extract::{Request, State};
use axum::http::StatusCode;
use axum::response::{IntoResponse, Response};
use serde::{Deserialize, Serialize};
use tokio::sync::Semaphore;
use tokio_util::sync::CancellationToken;

use crate::access::{Action, Actor};
use crate::api::changes::gate;
use crate::api::preview::{ShownProblem, shown};
use crate::api::{Refusal, json, parse, read};
use crate::git::commit::{Edit, Message};
use crate::git::{GitError, MAIN, Repository};
use crate::registry::Registry;
use crate::registry::candidate::{Checked, PublishedKind};

use super::super::{Visit, Web};
use super::place::{Kind, reads};

/// Longest request, in bytes.
const MAX_BODY: usize = 16 * 1024 * 1024;
/// Checks that run at once, so that those of pushes have room.
static CHECKS: Semaphore = Semaphore::const_new(2);

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct Ask {
    /// What each file holds afterwards, by path; null deletes it.
    files: BTreeMap<String, Option<String>>,
}

#[derive(Debug, Default, Serialize)]
struct Answer<'a> {
    problems: Vec<ShownProblem<'a>>,
    errors: usize,
    published: Vec<Published<'a>>,
    removed: Vec<&'a str>,
    resources_changed: usize,
}

#[derive(Debug, Serialize)]
struct Published<'a> {
    name: &'a str,
    kind: &'static str,
}

/// `POST /editor/check`.
pub(super) async fn check(State(web): State<Web>, request: Request) -> Response {
    let (parts, body) = request.into_parts();
    let visit = Visit::of(&parts);
    let checked = async {
        gate(&web.api)?;
        let body = read(&parts.headers, body, MAX_BODY, "a limit of this release").await?;
        let ask: Ask = parse(&body)?;
        drop(body);
        let edits = edits(ask.files)?;
        if let Some(edit) = edits
            .iter()
            .find(|edit| !visit.actor.may(Action::Propose, &edit.path))
        {
            return Err(Refusal::new(
                StatusCode::FORBIDDEN,
                format!("you may not change `{}`", edit.path),
            ));
        }
        // examples run against the whole library: what they expect would tell what may not be read
        if !visit.actor.sees_all() {
            return Err(Refusal::new(
                StatusCode::FORBIDDEN,
                "what a change does to the whole library is told to who may read all of it; the preview checks your text, \
                 and publishing or proposing checks it all",
            ));
        }
        run(&web, edits).await
    };
    match checked.await {
        Ok(checked) => answer(&web, &visit.actor, &checked),
        Err(refusal) => refusal.into_response(),
    }
}

/// What happens to which file.
fn edits(files: BTreeMap<String, Option<String>>) -> Result<Vec<Edit>, Refusal> {
    let edits = files.into_iter().map(|(path, text)| {
        if Kind::of(&path).is_none() {
            let shown: String = path.chars().take(80).collect();
            return Err(Refusal::new(
                StatusCode::UNPROCESSABLE_ENTITY,
                format!("`{shown}` is no place in a library"),
            ));
        }
        Ok(Edit {
            path,
            content: text.map(String::into_bytes),
        })
    });
    edits.collect()
}

async fn run(web: &Web, edits: Vec<Edit>) -> Result<Checked, Refusal> {
    let Ok(_place) = CHECKS.acquire().await else {
        return Err(failed("no check can be made"));
    };
    // whoever hangs up ends it
    let gone = CancellationToken::new();
    let _waits = gone.clone().drop_guard();
    let registry = web.api.registry.clone();
    let done = tokio::task::spawn_blocking(move || {
        let Some(repository) = registry.library().repository() else {
            return Ok(Checked::default());
        };
        candidate(&registry, repository, &edits, &gone)
    })
    .await;
    match done {
        Ok(Ok(checked)) => Ok(checked),
        Ok(Err(error)) => Err(error),
        Err(_) => Err(failed("the check ended early")),
    }
}

fn candidate(
    registry: &Registry,
    repository: &Repository,
    edits: &[Edit],
    gone: &CancellationToken,
) -> Result<Checked, Refusal> {
    let wrong = |error: GitError| match error {
        GitError::InTheWay(_) | GitError::NotTaken(_) => {
            Refusal::new(StatusCode::UNPROCESSABLE_ENTITY, error.to_string())
        }
        error => failed(&error.to_string()),
    };
    let tip = repository.read_ref(MAIN).map_err(wrong)?;
    let message = Message {
        author: "Cuebook".into(),
        email: crate::git::SERVER_EMAIL.into(),
        text: "Check".into(),
        seconds: i64::try_from(crate::clock::unix_seconds()).unwrap_or(i64::MAX),
    };
    let Some(apart) = repository
        .commit_apart(tip.as_deref(), edits, &message)
        .map_err(wrong)?
    else {
        return Ok(Checked::default());
    };
    let with = repository.with_objects(apart.objects());
    registry
        .look(&with, &apart.commit, gone)
        .map_err(|error| failed(&error.to_string()))
}

fn failed(why: &str) -> Refusal {
    tracing::error!(why, "a change could not be checked");
    Refusal::new(
        StatusCode::INTERNAL_SERVER_ERROR,
        "the change could not be checked; the server's log says more",
    )
}

/// What was found, of what the actor sees.
fn answer(web: &Web, actor: &Actor, checked: &Checked) -> Response {
    let snapshot = web.api.registry.snapshot();
    let seen = |folder: &str, name: &str| {
        let inner = if folder.is_empty() {
            name.to_owned()
        } else {
            format!("{folder}/{name}")
        };
        reads(actor, &format!("prompts/{inner}.md"))
    };
    json(&Answer {
        problems: checked
            .problems
            .iter()
            .filter(|problem| problem.path.is_empty() || reads(actor, &problem.path))
            .map(shown)
            .collect(),
        errors: checked.errors,
        published: checked
            .published
            .iter()
            .filter(|prompt| seen(&prompt.folder, &prompt.name))
            .map(|prompt| Published {
                name: &prompt.name,
                kind: match prompt.kind {
                    PublishedKind::Added => "added",
                    PublishedKind::Changed => "changed",
                    PublishedKind::Moved { .. } => "moved",
                },
            })
            .collect(),
        removed: checked
            .removed
            .iter()
            .filter(|name| {
                let prompt = snapshot.latest.prompt(name);
                prompt.is_some_and(|prompt| reads(actor, &prompt.path))
            })
            .map(|name| &**name)
            .collect(),
        resources_changed: checked.resources_changed,
    })
}
