//! `/api/v1/prompts/{name}/…`: the versions of a prompt, what differs between two, moving a label, going back.

mod blame;
mod write;

use std::collections::HashMap;
use std::sync::Arc;
use std::time::Duration;

use axum::extract::{Path, State};
use axum::http::{Extensions, StatusCode, Uri};
use axum::response::{IntoResponse, Response};
use serde::Serialize;
use tokio::sync::MutexGuard;
use utoipa::ToSchema;
use utoipa_axum::router::OpenApiRouter;
use utoipa_axum::routes;

use super::openapi::{Absent, Anywhere, Failed, Named, Paged, Unfit};
use super::preview::at_refusal;
use super::query::Query;
use super::tag::{etag, tag_of};
use super::visible::{no_prompt, seen, sees_prompt};
use super::{Api, Refusal, by, json};
use crate::access::{Action, Actor};
use crate::history::{Commit, Numbered};
use crate::prompt::PromptName;
use crate::prompt::name::version_number;
use crate::registry::{AtError, Snapshot};
use crate::versions::{diff, log};

/// Longest request, in bytes.
const MAX_BODY: usize = 64 * 1024;
/// Versions that are listed, the newest.
const LISTED: i64 = 1000;
/// Moves of labels that are listed, the newest.
const MOVES: usize = 1000;
/// Held by a request for the versions of a prompt, or for what was published, while it reads git.
static LOGS: tokio::sync::Mutex<()> = tokio::sync::Mutex::const_new(());
/// Time that the turn is waited for.
const TURN: Duration = Duration::from_secs(5);

/// Waits for the turn to read the moves of labels.
pub(super) async fn turn() -> Result<MutexGuard<'static, ()>, Refusal> {
    let turn = tokio::time::timeout(TURN, LOGS.lock()).await;
    turn.map_err(|_| at_refusal(&AtError::Busy))
}

pub(super) fn routes() -> OpenApiRouter<Api> {
    OpenApiRouter::default()
        .routes(routes!(versions))
        .routes(routes!(compare))
        .routes(routes!(blame::blame))
        .routes(routes!(write::label))
        .routes(routes!(write::revert))
}

#[derive(Debug, Serialize, ToSchema)]
#[schema(as = Commit)]
struct ShownCommit {
    /// Its id.
    #[schema(value_type = String)]
    commit: Arc<str>,
    /// Seconds since 1970, UTC.
    time: i64,
    /// Who made it.
    #[schema(value_type = String)]
    author: Arc<str>,
    /// The first line of its message.
    #[schema(value_type = String)]
    subject: Arc<str>,
}

impl From<&Commit> for ShownCommit {
    fn from(commit: &Commit) -> Self {
        Self {
            commit: commit.hex(),
            time: commit.seconds,
            author: commit.author.clone(),
            subject: commit.subject.clone(),
        }
    }
}

#[derive(Debug, Serialize, ToSchema)]
#[schema(as = Version)]
struct ShownVersion {
    /// Its number, from 1.
    version: u64,
    /// Where the prompt was then.
    #[schema(value_type = String)]
    path: Arc<str>,
    /// Labels that are on it now.
    labels: Vec<String>,
    #[serde(flatten)]
    of: ShownCommit,
}

#[derive(Debug, Serialize, ToSchema)]
#[schema(as = LabelMove)]
struct ShownMove {
    /// The label.
    label: String,
    /// Where it went; none where it was taken off.
    version: Option<u64>,
    #[serde(flatten)]
    of: ShownCommit,
}

/// What is known of the versions of a prompt now.
struct Known {
    actor: Actor,
    snapshot: Arc<Snapshot>,
    name: String,
    numbered: Arc<Numbered>,
    /// Changes with its versions and its labels.
    tag: String,
}

/// Changes with the versions and the labels of a prompt; none where its versions are not known.
pub(super) fn tag(snapshot: &Snapshot, name: &str) -> Option<String> {
    let versions = snapshot.history.as_ref()?.of(name)?;
    let labels: Vec<String> = snapshot
        .latest
        .labels()
        .filter(|(_, prompt, _)| *prompt == name)
        .map(|(label, _, number)| format!("{label} {number}"))
        .collect();
    Some(tag_of(&(name, versions.latest(), &labels)))
}

fn known(api: &Api, actor: Actor, name: &str) -> Result<Known, Refusal> {
    let name = PromptName::parse(name)
        .map_err(|error| Refusal::new(StatusCode::NOT_FOUND, error.to_string()))?;
    let snapshot = api.registry.snapshot();
    let Some(history) = &snapshot.history else {
        let error = match api.registry.counting() {
            Some((done, total)) => AtError::Counting { done, total },
            None => AtError::NotNumbered,
        };
        return Err(at_refusal(&error));
    };
    let found = history.of(name.as_str()).cloned();
    let found = found.filter(|_| sees_prompt(&snapshot, &actor, name.as_str()));
    let Some(found) = found else {
        return Err(no_prompt(&snapshot.latest, &actor, name.as_str()));
    };
    Ok(Known {
        tag: tag(&snapshot, name.as_str()).unwrap_or_default(),
        name: name.as_str().to_owned(),
        actor,
        numbered: found,
        snapshot,
    })
}

fn internal(error: &dyn std::fmt::Display) -> Refusal {
    tracing::error!(%error, "versions could not be read");
    Refusal::new(
        StatusCode::INTERNAL_SERVER_ERROR,
        "the versions could not be read; the server's log says more",
    )
}

/// Runs what reads git off the async threads.
async fn blocking<T: Send + 'static>(
    work: impl FnOnce() -> Result<T, Refusal> + Send + 'static,
) -> Result<T, Refusal> {
    tokio::task::spawn_blocking(work)
        .await
        .map_err(|error| internal(&error))?
}

#[derive(Serialize, ToSchema)]
#[schema(as = VersionPage)]
struct Numbers {
    /// The prompt.
    name: String,
    /// What is served by default; none where the prompt is gone or hidden.
    served: Option<u64>,
    /// The newest.
    latest: u64,
    /// Newest first.
    versions: Vec<ShownVersion>,
    /// Labels that were moved, newest first.
    moves: Vec<ShownMove>,
    /// What `cursor` says to get the versions before; none where there are none.
    next_cursor: Option<String>,
}

/// The versions of a prompt, and where its labels were moved
#[utoipa::path(
    get,
    path = "/api/v1/prompts/{name}/versions",
    operation_id = "versions",
    tag = "versions",
    params(Named, Paged),
    responses(
        (status = 200, description = "Versions, newest first", body = Numbers,
         headers(("ETag" = String, description = "For `If-Match` of what moves its labels or takes it back"))),
        Anywhere,
        Absent,
        Failed
    )
)]
async fn versions(
    State(api): State<Api>,
    Path(name): Path<String>,
    uri: Uri,
    extensions: Extensions,
) -> Response {
    let answer = async {
        let Known {
            actor,
            snapshot,
            name,
            numbered,
            tag,
        } = known(&api, by(&extensions).actor, &name)?;
        let query = Query::of(&uri)?;
        let most = query.number("limit", 1, LISTED)?.unwrap_or(LISTED);
        let most = usize::try_from(most).unwrap_or(usize::MAX);
        let before = query.number("cursor", 1, i64::MAX)?;
        let before = before.and_then(|number| u64::try_from(number).ok());
        let registry = api.registry.clone();
        let (of, snap) = (name.clone(), snapshot.clone());
        // one of these at a time, which leaves a place to those who ask for a version
        let _one = turn().await?;
        let _permit = api
            .registry
            .reading()
            .await
            .map_err(|error| at_refusal(&error))?;
        let (moves, mut labels) = blocking(move || {
            let mut labels: HashMap<u64, Vec<String>> = HashMap::new();
            for (label, prompt, number) in snap.latest.labels() {
                if *prompt == *of {
                    labels.entry(number).or_default().push(label.to_owned());
                }
            }
            let (Some(repository), Some(history)) =
                (registry.library().repository(), &snap.history)
            else {
                return Ok((Vec::new(), labels));
            };
            let moves = log::moves(repository, history, &of).map_err(|error| internal(&error))?;
            Ok((moves, labels))
        })
        .await?;
        let mut versions: Vec<ShownVersion> = numbered
            .versions
            .iter()
            .enumerate()
            .rev()
            .map(|(index, version)| (version, index as u64 + 1))
            .filter(|(version, number)| {
                before.is_none_or(|before| *number < before)
                    && actor.may(Action::Read, &version.path)
            })
            .take(most + 1)
            .map(|(version, number)| ShownVersion {
                version: number,
                path: version.path.clone(),
                labels: labels.remove(&number).unwrap_or_default(),
                of: ShownCommit::from(&*version.commit),
            })
            .collect();
        let more = versions.len() > most;
        versions.truncate(most);
        let last = versions.last().filter(|_| more);
        let served = snapshot
            .catalog
            .prompt(&name)
            .and_then(|_| snapshot.served_version(&name))
            .map(|(number, _)| number);
        let seen = |number: Option<u64>| {
            let version = number.and_then(|number| numbered.get(number));
            version.is_none_or(|version| actor.may(Action::Read, &version.path))
        };
        let moves: Vec<_> = moves
            .into_iter()
            .filter(|moved| seen(moved.before) && seen(moved.number))
            .collect();
        let mut response = json(&Numbers {
            served,
            latest: numbered.latest(),
            next_cursor: last.map(|version| version.version.to_string()),
            versions,
            moves: moves
                .into_iter()
                .rev()
                .take(MOVES)
                .map(|moved| ShownMove {
                    of: ShownCommit::from(&*moved.commit),
                    label: moved.label,
                    version: moved.number,
                })
                .collect(),
            name,
        });
        etag(&mut response, &tag);
        Ok(response)
    };
    answer.await.unwrap_or_else(Refusal::into_response)
}

/// A version of a query or a body: `v3`, or a label.
fn number(known: &Known, text: &str) -> Result<u64, Refusal> {
    let labelled = || known.snapshot.latest.label(text, &known.name);
    let Some(number) = version_number(text).or_else(labelled) else {
        let shown: String = text.chars().take(40).collect();
        return Err(Refusal::new(
            StatusCode::UNPROCESSABLE_ENTITY,
            format!(
                "`{shown}` is neither a version of `{}`, such as v3, nor a label that is on it",
                known.name
            ),
        ));
    };
    let version = known.numbered.get(number);
    if version.is_none_or(|version| !known.actor.may(Action::Read, &version.path)) {
        return Err(at_refusal(&AtError::NoVersion {
            name: known.name.clone(),
            number,
            latest: known.numbered.latest(),
        }));
    }
    Ok(number)
}

#[derive(Serialize, ToSchema)]
#[schema(as = VersionDiff)]
struct Compared {
    /// The prompt.
    name: String,
    /// The version before.
    from: u64,
    /// The version after.
    to: u64,
    /// What differs between the files, as a unified diff.
    source: String,
    /// What differs in what the examples render to.
    rendered: Vec<Example>,
}

#[derive(Serialize, ToSchema)]
#[schema(as = ExampleDiff)]
struct Example {
    /// The name of the example.
    example: String,
    /// A unified diff.
    diff: String,
}

/// What differs between two versions
#[utoipa::path(
    get,
    path = "/api/v1/prompts/{name}/diff",
    operation_id = "compare",
    tag = "versions",
    params(
        Named,
        ("from" = String, Query, description = "A version such as `v3`, or a label", example = "v1"),
        ("to" = String, Query, description = "A version such as `v3`, or a label", example = "v1")
    ),
    responses(
        (status = 200, description = "What differs", body = Compared),
        Anywhere,
        Absent,
        Unfit,
        Failed
    )
)]
async fn compare(
    State(api): State<Api>,
    Path(name): Path<String>,
    uri: Uri,
    extensions: Extensions,
) -> Response {
    let answer = async {
        let known = known(&api, by(&extensions).actor, &name)?;
        let query = Query::of(&uri)?;
        let version = |name: &str| match query.text(name) {
            Some(text) => number(&known, text),
            None => Err(Refusal::new(
                StatusCode::UNPROCESSABLE_ENTITY,
                format!("say `{name}`, a version such as v3: ?from=v3&to=v7"),
            )),
        };
        let (from, to) = (version("from")?, version("to")?);
        let registry = api.registry.clone();
        let answer = blocking(move || {
            let Known {
                actor,
                snapshot,
                name,
                numbered,
                ..
            } = known;
            let latest = seen(&snapshot.latest, &actor);
            let (Some(before), Some(after), Some(repository)) = (
                numbered.get(from),
                numbered.get(to),
                registry.library().repository(),
            ) else {
                return Err(at_refusal(&AtError::NotNumbered));
            };
            let today = latest.prompt(&name);
            let path = today.map_or_else(|| after.path.clone(), |prompt| prompt.path.clone());
            let compared = diff::compare(
                &registry,
                repository,
                &latest,
                &path,
                (from, before),
                (to, after),
                &|path| actor.may(Action::Read, path),
            )
            .map_err(|error| internal(&error))?;
            Ok(Compared {
                name,
                from,
                to,
                source: compared.source,
                rendered: compared
                    .rendered
                    .into_iter()
                    .map(|(example, diff)| Example { example, diff })
                    .collect(),
            })
        })
        .await?;
        Ok(json(&answer))
    };
    answer.await.unwrap_or_else(Refusal::into_response)
}
