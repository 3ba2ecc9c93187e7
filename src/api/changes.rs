//! `POST /api/v1/changes`: edits of the library's files, published as one commit through the gate.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use axum::extract::{Request, State};
use axum::http::StatusCode;
use axum::response::{IntoResponse, Response};
use base64::Engine as _;
use base64::prelude::BASE64_STANDARD;
use serde::{Deserialize, Serialize};
use tokio::sync::OwnedSemaphorePermit;
use utoipa::ToSchema;
use utoipa_axum::router::OpenApiRouter;
use utoipa_axum::routes;

use super::openapi::{Anywhere, Conflict as Stands, Failed, Unfit, Unread};
use super::preview::shown;
use super::{Api, Refusal, by, json, parse, read};
use crate::gate::Gate;
use crate::gate::permit::refused_path;
use crate::gate::publish::{Change, MAX_MESSAGE, PublishError, Published, Tip};
use crate::git::GitError;
use crate::git::commit::Edit;

/// Longest request, in bytes: an edit of a large resource, in base64.
pub(super) const MAX_BODY: usize = 16 * 1024 * 1024;
/// Changes that are made at once; each may hold as much as a request.
pub(super) const CHANGES: usize = 16;
/// How long a change waits for its place.
const WAIT: Duration = Duration::from_secs(30);

/// What is asked.
#[derive(Debug, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
#[schema(as = ChangeAsk)]
struct Ask {
    /// The commit of main that the edits were made from; none for an empty library.
    base: Option<String>,
    /// What each file holds afterwards, by path; null deletes it.
    files: BTreeMap<String, NewFile>,
    /// The commit's message: a subject line, and more after a blank line.
    message: String,
}

/// The content of a file; null deletes it.
#[derive(Debug, Deserialize, ToSchema)]
#[serde(transparent)]
pub(super) struct NewFile(Option<NewContent>);

/// The content of a file.
#[derive(Debug, Deserialize, ToSchema)]
#[serde(untagged)]
#[schema(as = FileContent)]
enum NewContent {
    /// Text.
    Text(String),
    /// Bytes, in base64.
    Bytes {
        /// The bytes.
        base64: String,
    },
}

#[derive(Debug, Serialize, ToSchema)]
#[schema(as = Published)]
pub(super) struct Answer {
    /// The commit that was made.
    pub(super) commit: String,
    /// What the check and the audit have to say of it, a line each.
    pub(super) lines: Vec<String>,
}

/// Why a change cannot be made of what main says now.
#[derive(Debug, thiserror::Error)]
pub(super) enum Unmade {
    /// Somebody else has changed the same files since.
    #[error("{} changed on main since {base}; nothing was published", .conflicts.iter().map(|c| &*c.path).collect::<Vec<_>>().join(", "))]
    Conflict {
        /// What the edits were made from, as the caller said.
        base: String,
        /// The commit of main now.
        now: String,
        /// The files.
        conflicts: Vec<Conflict>,
    },
    /// The base is no commit of this library.
    #[error("there is no commit `{0}`; give the commit of main that the edits were made from")]
    Base(String),
    /// It cannot be asked for like that.
    #[error("{0}")]
    Wrong(String),
    /// git failed.
    #[error(transparent)]
    Git(#[from] GitError),
}

/// A file that both sides have changed; text where it is UTF-8.
#[derive(Debug, Serialize)]
pub(super) struct Conflict {
    path: String,
    base: Option<String>,
    now: Option<String>,
}

pub(super) fn routes() -> OpenApiRouter<Api> {
    OpenApiRouter::default().routes(routes!(changes))
}

/// Publish edits of files as one commit
///
/// `base` says what they were made from: a file that somebody else has changed since is a conflict, which says what both
/// sides have, and nothing is published.
#[utoipa::path(
    post,
    path = "/api/v1/changes",
    operation_id = "publish",
    tag = "library",
    request_body = Ask,
    responses(
        (status = 200, description = "They are published", body = Answer),
        Anywhere,
        Stands,
        Unread,
        Unfit,
        Failed
    )
)]
pub(crate) async fn changes(State(api): State<Api>, request: Request) -> Response {
    match publish(&api, request).await {
        Ok(response) => response,
        Err(refusal) => refusal.into_response(),
    }
}

async fn publish(api: &Api, request: Request) -> Result<Response, Refusal> {
    let (parts, body) = request.into_parts();
    let gate = gate(api)?.clone();
    let place = place(api).await?;
    let body = read(&parts.headers, body, MAX_BODY, "a limit of this release").await?;
    let ask: Ask = parse(&body)?;
    drop(body);
    let edits = edits(ask.files)?;
    let message = message(&ask.message)?;
    let base = ask.base;
    let by = by(&parts.extensions);
    // before anything is said of what is there
    let refused: Vec<String> = edits
        .iter()
        .filter_map(|edit| refused_path(&by.actor, &edit.path))
        .collect();
    if !refused.is_empty() {
        return Err(Refusal::new(StatusCode::FORBIDDEN, refused.join("\n")));
    }
    // whoever hangs up has it published all the same, or not at all
    let published = api
        .writing
        .spawn(async move {
            let _place = place;
            let make = move |tip: &Tip| -> Result<Change, Unmade> {
                unchanged(tip, base.as_deref(), &edits)?;
                Ok(Change {
                    edits: edits.clone(),
                    message: message.clone(),
                    deed: None,
                })
            };
            gate.publish(&by, make).await
        })
        .await
        .map_err(|_| internal())?;
    match published {
        Ok(Published { commit, lines }) => Ok(json(&Answer { commit, lines })),
        Err(error) => Err(refusal(error, unmade)),
    }
}

/// A place among the changes that are made at once, each of which holds its files in memory. Waiting ends with the client.
pub(super) async fn place(api: &Api) -> Result<OwnedSemaphorePermit, Refusal> {
    let place = api.changing.clone().acquire_owned();
    match tokio::time::timeout(WAIT, place).await {
        Ok(Ok(place)) => Ok(place),
        _ => Err(Refusal {
            retry_after: Some(1),
            ..Refusal::new(
                StatusCode::SERVICE_UNAVAILABLE,
                format!(
                    "{CHANGES} changes are being made, and none ended within {} seconds; nothing was changed",
                    WAIT.as_secs()
                ),
            )
        }),
    }
}

/// A message that a commit can have.
pub(super) fn message(text: &str) -> Result<String, Refusal> {
    let text = text.trim();
    let wrong = |detail: String| Err(Refusal::new(StatusCode::UNPROCESSABLE_ENTITY, detail));
    if text.is_empty() {
        return wrong(
            "say in `message` what the change is for; it becomes the commit's message".into(),
        );
    }
    if text.contains('\0') {
        return wrong("`message` holds a NUL, which no commit's message can".into());
    }
    if text.len() > MAX_MESSAGE {
        return wrong(format!(
            "`message` is {} bytes; a commit's message has at most {MAX_MESSAGE} here",
            text.len()
        ));
    }
    Ok(text.to_owned())
}

/// The gate, where changes are taken.
pub(crate) fn gate(api: &Api) -> Result<&Arc<Gate>, Refusal> {
    api.gate.as_ref().ok_or_else(|| {
        let read_only = api
            .records
            .as_ref()
            .filter(|records| records.is_read_only());
        if let Some(Err(why)) = read_only.map(|records| records.store()) {
            return Refusal::new(StatusCode::SERVICE_UNAVAILABLE, why);
        }
        Refusal::new(
            StatusCode::CONFLICT,
            "a work tree is served as it lies on disk, and takes no changes; edit its files",
        )
    })
}

/// What happens to which file, by paths that git would take on any system.
pub(super) fn edits(files: BTreeMap<String, NewFile>) -> Result<Vec<Edit>, Refusal> {
    if files.is_empty() {
        return Err(Refusal::new(
            StatusCode::UNPROCESSABLE_ENTITY,
            "`files` names no file",
        ));
    }
    // they are sorted: what lies below a path stands together
    for (path, _) in files.iter().filter(|(_, content)| content.0.is_some()) {
        let below = format!("{path}/");
        let mut inside = files
            .range(below.clone()..)
            .take_while(|(other, _)| other.starts_with(&below));
        let first = inside.find(|(_, content)| content.0.is_some());
        if let Some((other, _)) = first {
            return Err(Refusal::new(
                StatusCode::UNPROCESSABLE_ENTITY,
                format!("`{path}` cannot be a file, since `{other}` makes it a folder"),
            ));
        }
    }
    files
        .into_iter()
        .map(|(path, content)| {
            if !is_path(&path) {
                let shown: String = path.chars().take(80).collect();
                return Err(Refusal::new(
                    StatusCode::UNPROCESSABLE_ENTITY,
                    format!(
                        "`{shown}` is no path in a library, such as prompts/sre/incident-triage.md"
                    ),
                ));
            }
            let content = match content.0 {
                None => None,
                Some(NewContent::Text(text)) => Some(text.into_bytes()),
                Some(NewContent::Bytes { base64 }) => {
                    Some(BASE64_STANDARD.decode(base64).map_err(|error| {
                        Refusal::new(
                            StatusCode::UNPROCESSABLE_ENTITY,
                            format!("{path}: `base64`: {error}"),
                        )
                    })?)
                }
            };
            Ok(Edit { path, content })
        })
        .collect()
}

/// Whether a text is a relative path that git would put into a tree on any system.
pub(crate) fn is_path(path: &str) -> bool {
    let part = |part: &str| {
        !matches!(part, "" | "." | "..")
            && !part.eq_ignore_ascii_case(".git")
            && !part.contains(['\\', '\0'])
    };
    path.len() <= 1000 && path.split('/').all(part)
}

/// Nobody has changed the same files since the base.
fn unchanged(tip: &Tip, base: Option<&str>, edits: &[Edit]) -> Result<(), Unmade> {
    let Some(now) = &tip.commit else {
        return match base {
            None => Ok(()),
            Some(base) => Err(Unmade::Base(shortened(base))),
        };
    };
    let Some(base) = base else {
        return Err(Unmade::Wrong(
            "give `base`, the commit of main that the edits were made from".into(),
        ));
    };
    if base == now {
        return Ok(());
    }
    if base.len() < 7 || !base.bytes().all(|b| b.is_ascii_hexdigit()) {
        return Err(Unmade::Base(shortened(base)));
    }
    let from = match tip.repository.reachable(base, now) {
        Ok(commit) => commit,
        Err(GitError::Unknown(_) | GitError::Ambiguous(_)) => {
            return Err(Unmade::Base(shortened(base)));
        }
        Err(error) => return Err(error.into()),
    };
    let mut conflicts = Vec::new();
    for edit in edits {
        let before = tip.repository.file_id(&from, &edit.path)?;
        let after = tip.repository.file_id(now, &edit.path)?;
        if before == after {
            continue;
        }
        let text = |commit: &str| -> Result<Option<String>, GitError> {
            let bytes = tip.repository.file(commit, &edit.path)?;
            Ok(bytes.and_then(|bytes| String::from_utf8(bytes).ok()))
        };
        // both have come to say the same
        let same = match (&edit.content, tip.read(&edit.path)?) {
            (Some(mine), Some(theirs)) => *mine == theirs,
            (None, None) => true,
            _ => false,
        };
        if !same {
            conflicts.push(Conflict {
                path: edit.path.clone(),
                base: text(&from)?,
                now: text(now)?,
            });
        }
    }
    if conflicts.is_empty() {
        Ok(())
    } else {
        Err(Unmade::Conflict {
            base: shortened(base),
            now: now.clone(),
            conflicts,
        })
    }
}

fn shortened(id: &str) -> String {
    id.chars().take(40).collect()
}

fn internal() -> Refusal {
    Refusal::new(
        StatusCode::INTERNAL_SERVER_ERROR,
        "the change could not be made; the server's log says more",
    )
}

fn unmade(error: Unmade) -> Refusal {
    let detail = error.to_string();
    match error {
        Unmade::Conflict { now, conflicts, .. } => Refusal::new(StatusCode::CONFLICT, detail)
            .with("now", now.into())
            .with(
                "conflicts",
                serde_json::to_value(conflicts).unwrap_or_default(),
            ),
        Unmade::Base(_) | Unmade::Wrong(_) => {
            Refusal::new(StatusCode::UNPROCESSABLE_ENTITY, detail)
        }
        Unmade::Git(error) => {
            tracing::error!(%error, "a change could not be made");
            internal()
        }
    }
}

/// What the caller is told of a change that was not published; `change` says it of its own errors.
pub(super) fn refusal<E: std::error::Error>(
    error: PublishError<E>,
    change: impl FnOnce(E) -> Refusal,
) -> Refusal {
    match error {
        PublishError::Change(error) => change(error),
        PublishError::Nothing => Refusal::new(StatusCode::CONFLICT, error.to_string()),
        PublishError::Refused { lines, checked } => {
            let problems: Vec<_> = checked
                .iter()
                .flat_map(|checked| checked.problems.iter().map(shown))
                .collect();
            Refusal::new(StatusCode::UNPROCESSABLE_ENTITY, lines.join("\n")).with(
                "problems",
                serde_json::to_value(problems).unwrap_or_default(),
            )
        }
        PublishError::Forbidden { lines } => Refusal::new(StatusCode::FORBIDDEN, lines.join("\n")),
        PublishError::Unjudged(_) | PublishError::Busy => Refusal {
            retry_after: Some(1),
            ..Refusal::new(StatusCode::SERVICE_UNAVAILABLE, error.to_string())
        },
        PublishError::Git(error @ (GitError::InTheWay(_) | GitError::NotTaken(_))) => {
            Refusal::new(StatusCode::UNPROCESSABLE_ENTITY, error.to_string())
        }
        PublishError::Git(error) => {
            tracing::error!(%error, "a change could not be published");
            internal()
        }
    }
}
