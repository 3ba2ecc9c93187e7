//! `GET /api/v1/activity`, `GET /api/v1/published`: what is so now, and what was published.

use axum::extract::State;
use axum::http::{Extensions, StatusCode, Uri};
use axum::response::{IntoResponse, Response};
use serde::Serialize;
use utoipa::ToSchema;
use utoipa_axum::router::OpenApiRouter;
use utoipa_axum::routes;

use super::openapi::{Anywhere, Failed, Paged};
use super::preview::at_refusal;
use super::query::{Query, cursor};
use super::versions::turn;
use super::{Api, Refusal, by, json};
use crate::access::Actor;
use crate::activity::Now;
use crate::activity::published::{Asked, Place, Published, published as list};
use crate::versions::log::LOOKED_AT;

/// Entries of one answer, unless the request says.
const SHOWN: i64 = 40;
/// Entries of one answer, at most.
const MOST: i64 = 200;

pub(super) fn routes() -> OpenApiRouter<Api> {
    OpenApiRouter::default()
        .routes(routes!(activity))
        .routes(routes!(published))
}

/// What is so now: who listens, what is not as it should be, how far things are
#[utoipa::path(
    get,
    path = "/api/v1/activity",
    operation_id = "activity",
    tag = "operations",
    responses((status = 200, description = "What is so now", body = Now), Anywhere)
)]
async fn activity(State(api): State<Api>, extensions: Extensions) -> Response {
    match &api.activity {
        Some(activity) => json(&activity.now(&by(&extensions).actor)),
        None => Refusal::new(
            StatusCode::SERVICE_UNAVAILABLE,
            "this server does not tell what happens",
        )
        .into_response(),
    }
}

#[derive(Serialize, ToSchema)]
#[schema(as = PublishedPage)]
struct Page {
    /// Newest first.
    published: Vec<Published>,
    /// What `cursor` says to get those before; none where there are none.
    next_cursor: Option<String>,
}

/// What was published: versions of prompts, and labels that were moved
#[utoipa::path(
    get,
    path = "/api/v1/published",
    operation_id = "published",
    tag = "versions",
    params(Paged),
    responses(
        (status = 200, description = "What was published, newest first; of the labels the last 2,000 changes", body = Page),
        Anywhere,
        Failed
    )
)]
async fn published(State(api): State<Api>, uri: Uri, extensions: Extensions) -> Response {
    match page(&api, &uri, &by(&extensions).actor).await {
        Ok(page) => json(&page),
        Err(refusal) => refusal.into_response(),
    }
}

async fn page(api: &Api, uri: &Uri, actor: &Actor) -> Result<Page, Refusal> {
    let query = Query::of(uri)?;
    let limit = query.number("limit", 1, MOST)?.unwrap_or(SHOWN);
    let limit = usize::try_from(limit).unwrap_or(1);
    let asked = Asked {
        before: query.after(Place::parse)?,
        most: limit + 1,
        back: LOOKED_AT,
    };
    // it may read as much as the versions of a prompt
    let one = turn().await?;
    let (mut published, unread) = list(&api.registry, actor, &asked).await;
    drop(one);
    if let Some(error) = unread {
        return Err(at_refusal(&error));
    }
    let more = published.len() > limit;
    published.truncate(limit);
    let last = published.last().filter(|_| more);
    Ok(Page {
        next_cursor: last.map(|last| cursor(&last.place.to_string())),
        published,
    })
}
