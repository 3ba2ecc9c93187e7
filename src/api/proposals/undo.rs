//! `POST /api/v1/proposals/{number}/revert`: taking a merged proposal back, by another.

use axum::extract::{Path, Request, State};
use axum::http::StatusCode;
use axum::response::{IntoResponse, Response};
use serde::Deserialize;
use utoipa::ToSchema;

use super::write::{Asked, MAX_BODY, Opened, asked, make, opened};
use super::{Api, Refusal, about, internal, number};
use crate::access::By;
use crate::api::changes;
use crate::api::openapi::{Absent, Anywhere, Conflict, Failed, Numbered, Unfit, Unreached, Unread};
use crate::gate::propose::Proposing;
use crate::git::commit::Edit;
use crate::proposals::Written;
use crate::proposals::state::State as Stands;

/// What takes a merged proposal back: edits of main as it is now, which is given with them.
async fn reverting(
    api: &Api,
    by: &By,
    number: i64,
) -> Result<(String, String, Vec<Edit>), Refusal> {
    let about = about(api, &by.actor, number).await?;
    let (Some(merge), Some(main)) = (about.row.merge_commit.clone(), about.main.clone()) else {
        let detail = match about.state() {
            Stands::Merged => format!(
                "proposal {number} came to main by a push, not by a merge made here; take it back with git revert"
            ),
            _ => format!(
                "proposal {number} is {}; only what is merged is taken back",
                about.row.state
            ),
        };
        return Err(Refusal::new(StatusCode::CONFLICT, detail));
    };
    let Some(repository) = api.registry.library().repository().cloned() else {
        return Err(internal(&"there is no repository"));
    };
    let tip = main.clone();
    let found = tokio::task::spawn_blocking(move || repository.reverting(&tip, &merge))
        .await
        .map_err(|error| internal(&error))?
        .map_err(|error| internal(&error))?;
    match found {
        Ok(edits) if edits.is_empty() => Err(Refusal::new(
            StatusCode::CONFLICT,
            format!(
                "main has nothing of proposal {number} any more: there is nothing to take back"
            ),
        )),
        Ok(edits) => Ok((main, about.row.title, edits)),
        Err(conflicts) => {
            let paths: Vec<String> = conflicts.into_iter().map(|c| c.path).collect();
            Err(Refusal::new(
                StatusCode::CONFLICT,
                format!(
                    "{} changed on main since proposal {number}; edit by hand, or git revert",
                    crate::proposals::review::named(&paths)
                ),
            ))
        }
    }
}

/// Proposes to take a merged proposal back.
pub async fn revert(
    api: &Api,
    by: By,
    number: i64,
    why: &str,
) -> Result<(Written, Vec<String>), Refusal> {
    let (main, of, edits) = reverting(api, &by, number).await?;
    let title = crate::proposals::state::title(&format!("Revert proposal {number}: {of}"));
    let body = why.trim().to_owned();
    let text = if body.is_empty() {
        title.clone()
    } else {
        format!("{title}\n\n{body}")
    };
    let ask = Proposing {
        message: changes::message(&text)?,
        title: Some(title),
        body: Some(body),
        base: main,
        number: None,
        merges: None,
        edits,
    };
    make(api, by, ask).await
}

#[derive(Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
#[schema(as = RevertAsk)]
struct AskUndo {
    /// Why.
    #[serde(default)]
    message: String,
}

/// Propose to take a merged proposal back
#[utoipa::path(
    post,
    path = "/api/v1/proposals/{number}/revert",
    operation_id = "revertProposal",
    tag = "proposals",
    params(Numbered),
    request_body = AskUndo,
    responses(
        (status = 201, description = "Propose to take a merged proposal back", body = Opened,
         headers(("ETag" = String, description = "For `If-Match` of what changes it"))),
        Anywhere,
        Absent,
        Conflict,
        Unread,
        Unfit,
        Failed,
        Unreached
    )
)]
pub(super) async fn undo(
    State(api): State<Api>,
    Path(text): Path<String>,
    request: Request,
) -> Response {
    let answer = async {
        let number = number(&text)?;
        let Asked { by, ask, .. } = asked::<AskUndo>(request, MAX_BODY).await?;
        let made = revert(&api, by, number, &ask.message).await?;
        Ok::<_, Refusal>(opened(StatusCode::CREATED, made))
    };
    answer.await.unwrap_or_else(Refusal::into_response)
}
