//! `/api/v1/proposals…` and `/api/v1/inbox`: changes under review.
//!
//! What an actor may not read in whole is absent for them.

pub mod effect;
pub mod inbox;
pub mod view;
mod write;

use std::sync::Arc;

use axum::Router;
use axum::extract::{Path, Request, State};
use axum::http::header::{self, HeaderValue};
use axum::http::{HeaderMap, StatusCode, Uri};
use axum::response::{IntoResponse, Response};
use axum::routing::{get, patch, post};
use serde::Serialize;

use super::query::Query;
use super::{Api, Refusal, by, json};
use crate::access::Actor;
use crate::gate::Gate;
use crate::gate::merge::MergeError;
use crate::gate::propose::ProposingError;
use crate::gate::publish::PublishError;
use crate::proposals::state::{self, State as Stands};
use crate::proposals::{About, Proposals, ProposeError, TalkError, tag};

use view::Summary;

pub(crate) use write::open;
pub use write::{Said, close, comment, edit, make as revise, merge, resolve, revert, review};

/// Proposals of one answer, unless the request says.
const SHOWN: i64 = 50;
/// Proposals of one answer, at most.
const MOST: i64 = 200;

pub(super) fn routes() -> Router<Api> {
    Router::new()
        .route("/api/v1/inbox", get(waiting))
        .route("/api/v1/proposals", get(list).post(open))
        .route("/api/v1/proposals/{number}", get(one).patch(write::change))
        .route("/api/v1/proposals/{number}/effect", get(what))
        .route("/api/v1/proposals/{number}/conflicts", get(conflicts))
        .route("/api/v1/proposals/{number}/revisions", post(write::revise))
        .route("/api/v1/proposals/{number}/reviews", post(write::give))
        .route("/api/v1/proposals/{number}/comments", post(write::say))
        .route(
            "/api/v1/proposals/{number}/comments/{id}",
            patch(write::mend),
        )
        .route("/api/v1/proposals/{number}/merge", post(write::bring))
        .route("/api/v1/proposals/{number}/close", post(write::end))
        .route("/api/v1/proposals/{number}/reopen", post(write::again))
        .route("/api/v1/proposals/{number}/revert", post(write::undo))
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

/// What the caller says they have seen: `If-Match`, without its quotes. None where they say nothing, or `*`.
fn seen(headers: &HeaderMap) -> Option<String> {
    let text = headers
        .get(header::IF_MATCH)?
        .to_str()
        .unwrap_or("?")
        .trim();
    let tag = text.strip_prefix("W/").unwrap_or(text).trim_matches('"');
    (tag != "*").then(|| tag.to_owned())
}

/// An answer about a proposal as it is now, with its tag.
fn tagged(row: &crate::store::ProposalRow, value: &impl Serialize) -> Response {
    let mut response = json(value);
    if let Ok(tag) = HeaderValue::from_str(&format!("\"{}\"", tag(row))) {
        response.headers_mut().insert(header::ETAG, tag);
    }
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
        TalkError::Changed(_) => Refusal::new(StatusCode::PRECONDITION_FAILED, detail),
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

async fn list(State(api): State<Api>, uri: Uri, request: Request) -> Response {
    #[derive(Serialize)]
    struct Answer {
        /// Newest first.
        proposals: Vec<Summary>,
        /// What `cursor` says to get those before; none where there are none.
        next: Option<i64>,
    }
    let actor = by(request.extensions()).actor;
    drop(request);
    let answer = async {
        let query = Query::of(&uri, &["state", "limit", "cursor"])?;
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
        Ok(json(&Answer { proposals, next }))
    };
    answer.await.unwrap_or_else(Refusal::into_response)
}

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

async fn waiting(State(api): State<Api>, request: Request) -> Response {
    let actor = by(request.extensions()).actor;
    drop(request);
    match inbox::inbox(&api, &actor).await {
        Ok(inbox) => json(&inbox),
        Err(refusal) => refusal.into_response(),
    }
}
