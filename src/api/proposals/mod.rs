//! `/api/v1/proposals…` and `/api/v1/inbox`: changes under review.
//!
//! What an actor may not read in whole is absent for them.

mod comments;
pub mod effect;
pub mod inbox;
mod undo;
pub mod view;
mod write;

use std::sync::Arc;

use axum::extract::{Path, Request, State};
use axum::http::{Extensions, StatusCode, Uri};
use axum::response::{IntoResponse, Response};
use serde::Serialize;
use utoipa::ToSchema;
use utoipa_axum::router::OpenApiRouter;
use utoipa_axum::routes;

use super::openapi::{Absent, Anywhere, Conflict, Failed, Numbered, Paged, Unfit};
use super::query::Query;
use super::tag;
use super::{Api, Refusal, by, json};
use crate::access::Actor;
use crate::gate::Gate;
use crate::gate::merge::MergeError;
use crate::gate::propose::ProposingError;
use crate::gate::publish::PublishError;
use crate::proposals::state::{self, State as Stands};
use crate::proposals::{About, Proposals, ProposeError, TalkError, tag as tag_of};

use view::Summary;

pub use undo::revert;
pub(crate) use write::open as open_asked;
pub use write::{Said, close, comment, edit, make as revise, merge, resolve, review};

/// Proposals of one answer, unless the request says.
const SHOWN: i64 = 50;
/// Proposals of one answer, at most.
const MOST: i64 = 200;

pub(super) fn routes() -> OpenApiRouter<Api> {
    OpenApiRouter::default()
        .routes(routes!(waiting))
        .routes(routes!(list, write::open))
        .routes(routes!(one, write::change))
        .routes(routes!(what))
        .routes(routes!(conflicts))
        .routes(routes!(write::revise))
        .routes(routes!(write::give))
        .routes(routes!(comments::say))
        .routes(routes!(comments::mend))
        .routes(routes!(write::bring))
        .routes(routes!(write::end))
        .routes(routes!(write::again))
        .routes(routes!(undo::undo))
}

/// The gate and its proposals, where there are any.
pub(super) fn proposals(api: &Api) -> Result<(&Arc<Gate>, &Arc<Proposals>), Refusal> {
    let gate = super::changes::gate(api)?;
    let proposals = gate.proposals().map_err(|why| {
        Refusal::new(
            StatusCode::SERVICE_UNAVAILABLE,
            format!("there are no proposals now: {why}; the operator of the server has to look"),
        )
    })?;
    Ok((gate, proposals))
}

/// A number of a URL; what is none is absent.
fn number(text: &str) -> Result<i64, Refusal> {
    text.parse()
        .ok()
        .filter(|number| *number > 0)
        .ok_or_else(|| {
            let shown: String = text.chars().take(40).collect();
            Refusal::new(
                StatusCode::NOT_FOUND,
                format!("there is no proposal {shown}"),
            )
        })
}

/// A proposal that an actor may see, with what is needed to judge it.
pub async fn about(api: &Api, actor: &Actor, number: i64) -> Result<About, Refusal> {
    let (_, proposals) = proposals(api)?;
    let row = proposals.seen_by(actor, number).await.map_err(talk)?;
    proposals.about(row).await.map_err(talk)
}

/// An answer about a proposal as it is now, with its tag.
fn tagged(row: &crate::store::ProposalRow, value: &impl Serialize) -> Response {
    let mut response = json(value);
    tag::etag(&mut response, &tag_of(row));
    response
}

fn internal(error: &dyn std::fmt::Display) -> Refusal {
    tracing::error!(%error, "a request about a proposal could not be answered");
    Refusal::new(
        StatusCode::INTERNAL_SERVER_ERROR,
        "it could not be done; the server's log says more",
    )
}

fn propose(error: ProposeError) -> Refusal {
    match error {
        ProposeError::Refused(refusal) => {
            let detail = refusal.to_string();
            let conflict = Refusal::new(StatusCode::CONFLICT, detail);
            match refusal {
                state::Refusal::MovedOn(_, head) => conflict.with("head", head.into()),
                _ => conflict,
            }
        }
        ProposeError::Upstream(_) => Refusal::new(StatusCode::BAD_GATEWAY, error.to_string()),
        ProposeError::Store(error) => error.into(),
        ProposeError::Git(_) | ProposeError::Stopping => internal(&error),
    }
}

pub(super) fn talk(error: TalkError) -> Refusal {
    let detail = error.to_string();
    match error {
        TalkError::Absent(_) => Refusal::new(StatusCode::NOT_FOUND, detail),
        TalkError::Forbidden(_) => Refusal::new(StatusCode::FORBIDDEN, detail),
        TalkError::Changed(_, now) => tag::changed(detail, &now),
        TalkError::Review(ref refusal) => {
            let conflict = Refusal::new(StatusCode::CONFLICT, detail);
            match refusal {
                crate::proposals::review::ReviewRefusal::Moved { head, .. } => {
                    conflict.with("head", head.clone().into())
                }
                _ => conflict,
            }
        }
        TalkError::Unfit(_) => Refusal::new(StatusCode::CONFLICT, detail),
        TalkError::Wrong(_) => Refusal::new(StatusCode::UNPROCESSABLE_ENTITY, detail),
        TalkError::Failed(error) => propose(error),
    }
}

fn merging(error: PublishError<MergeError>) -> Refusal {
    super::changes::refusal(error, |error| {
        let detail = error.to_string();
        match error {
            MergeError::Talk(error) => talk(error),
            MergeError::Policy(_) => Refusal::new(StatusCode::CONFLICT, detail),
            MergeError::Refused(refusals) => {
                let head = refusals.iter().find_map(|refusal| match refusal {
                    crate::proposals::review::MergeRefusal::Moved { head, .. } => Some(head),
                    _ => None,
                });
                let conflict = Refusal::new(StatusCode::CONFLICT, detail).with(
                    "refusals",
                    serde_json::to_value(view::refusals(&refusals)).unwrap_or_default(),
                );
                match head {
                    Some(head) => conflict.with("head", head.clone().into()),
                    None => conflict,
                }
            }
        }
    })
}

fn proposing(error: PublishError<ProposingError>) -> Refusal {
    super::changes::refusal(error, |error| {
        let detail = error.to_string();
        match error {
            ProposingError::Talk(error) => talk(error),
            ProposingError::Propose(error) => propose(error),
            ProposingError::Base(_) => Refusal::new(StatusCode::UNPROCESSABLE_ENTITY, detail),
            ProposingError::Conflicts(_) => Refusal::new(StatusCode::CONFLICT, detail),
        }
    })
}

/// A page of proposals that an actor may see, newest first, and the cursor of the next.
pub async fn page(
    api: &Api,
    actor: &Actor,
    stands: Option<Stands>,
    before: Option<i64>,
    most: i64,
) -> Result<(Vec<Summary>, Option<i64>), Refusal> {
    let (_, proposals) = proposals(api)?;
    let most = usize::try_from(most).unwrap_or(1);
    let (rows, next) = proposals
        .page(actor, stands, before, most)
        .await
        .map_err(talk)?;
    let newest = proposals.newest_comments().await?;
    let summaries = rows.iter().map(|row| {
        let found = newest.iter().find(|newest| newest.proposal == row.number);
        Summary::of(row, found.map_or(0, |newest| newest.comments))
    });
    Ok((summaries.collect(), next))
}

#[derive(Serialize, ToSchema)]
#[schema(as = ProposalPage)]
struct Answer {
    /// Newest first.
    proposals: Vec<Summary>,
    /// What `cursor` says to get those before; none where there are none.
    next_cursor: Option<String>,
}

/// Proposals
#[utoipa::path(
    get,
    path = "/api/v1/proposals",
    operation_id = "proposals",
    tag = "proposals",
    params(
        ("state" = Option<String>, Query, description = "`open`, `merged`, `closed` or `all`; open where it is left out"),
        Paged
    ),
    responses(
        (status = 200, description = "Proposals, newest first", body = Answer),
        Anywhere,
        Conflict,
        Failed
    )
)]
async fn list(State(api): State<Api>, uri: Uri, request: Request) -> Response {
    let actor = by(request.extensions()).actor;
    drop(request);
    let answer = async {
        let query = Query::of(&uri)?;
        let stands = match query.text("state").unwrap_or("open") {
            "all" => None,
            text => match [Stands::Open, Stands::Merged, Stands::Closed]
                .into_iter()
                .find(|state| state.as_str() == text)
            {
                Some(state) => Some(state),
                None => {
                    return Err(Refusal::new(
                        StatusCode::BAD_REQUEST,
                        "`state` is open, merged, closed or all",
                    ));
                }
            },
        };
        let limit = query.number("limit", 1, MOST)?.unwrap_or(SHOWN);
        let before = query.number("cursor", 1, i64::MAX)?;
        let (proposals, next) = page(&api, &actor, stands, before, limit).await?;
        Ok(json(&Answer {
            proposals,
            next_cursor: next.map(|number| number.to_string()),
        }))
    };
    answer.await.unwrap_or_else(Refusal::into_response)
}

/// A proposal in full
#[utoipa::path(
    get,
    path = "/api/v1/proposals/{number}",
    operation_id = "proposal",
    tag = "proposals",
    params(Numbered),
    responses(
        (status = 200, description = "A proposal in full", body = view::Detail,
         headers(("ETag" = String, description = "For `If-Match` of what changes it"))),
        Anywhere,
        Absent,
        Conflict,
        Unfit,
        Failed
    )
)]
async fn one(State(api): State<Api>, Path(text): Path<String>, request: Request) -> Response {
    let actor = by(request.extensions()).actor;
    drop(request);
    let answer = async {
        let about = about(&api, &actor, number(&text)?).await?;
        let detail = view::detail(&api, &actor, &about).await?;
        Ok::<_, Refusal>(tagged(&about.row, &detail))
    };
    answer.await.unwrap_or_else(Refusal::into_response)
}

/// What a proposal does: its files, and what every prompt that it reaches renders to
#[utoipa::path(
    get,
    path = "/api/v1/proposals/{number}/effect",
    operation_id = "proposalEffect",
    tag = "proposals",
    params(Numbered),
    responses(
        (status = 200, description = "What a proposal does: its files, and what every prompt that it reaches renders to", body = crate::versions::effect::Effect,
         headers(("ETag" = String, description = "For `If-Match` of what changes it"))),
        Anywhere,
        Absent,
        Conflict,
        Unfit,
        Failed
    )
)]
async fn what(State(api): State<Api>, Path(text): Path<String>, request: Request) -> Response {
    let actor = by(request.extensions()).actor;
    drop(request);
    let answer = async {
        let about = about(&api, &actor, number(&text)?).await?;
        let effect = effect::effect(&api, &actor, &about).await?;
        Ok::<_, Refusal>(tagged(&about.row, &*effect))
    };
    answer.await.unwrap_or_else(Refusal::into_response)
}

/// What of a proposal conflicts with main
#[utoipa::path(
    get,
    path = "/api/v1/proposals/{number}/conflicts",
    operation_id = "proposalConflicts",
    tag = "proposals",
    params(Numbered),
    responses(
        (status = 200, description = "What of a proposal conflicts with main", body = view::Conflicts,
         headers(("ETag" = String, description = "For `If-Match` of what changes it"))),
        Anywhere,
        Absent,
        Conflict,
        Unfit,
        Failed
    )
)]
async fn conflicts(State(api): State<Api>, Path(text): Path<String>, request: Request) -> Response {
    let actor = by(request.extensions()).actor;
    drop(request);
    let answer = async {
        let about = about(&api, &actor, number(&text)?).await?;
        let conflicts = view::conflicts(&api, &actor, &about).await?;
        Ok::<_, Refusal>(tagged(&about.row, &conflicts))
    };
    answer.await.unwrap_or_else(Refusal::into_response)
}

/// What waits for who asks
#[utoipa::path(
    get,
    path = "/api/v1/inbox",
    operation_id = "inbox",
    tag = "proposals",
    params(Paged),
    responses(
        (status = 200, description = "What waits for who asks, newest first", body = inbox::Inbox),
        Anywhere,
        Conflict,
        Failed
    )
)]
async fn waiting(State(api): State<Api>, uri: Uri, extensions: Extensions) -> Response {
    let actor = by(&extensions).actor;
    let answer = async {
        let query = Query::of(&uri)?;
        let limit = query.number("limit", 1, MOST)?.unwrap_or(SHOWN);
        let before = query.number("cursor", 1, i64::MAX)?;
        let most = usize::try_from(limit).unwrap_or(1);
        inbox::inbox(&api, &actor, before, most).await
    };
    match answer.await {
        Ok(inbox) => json(&inbox),
        Err(refusal) => refusal.into_response(),
    }
}
