//! `GET /api/v1/search?q=…&limit=&cursor=&kind=&folder=`: prompts and resources by words.

use axum::extract::{RawQuery, State};
use axum::http::{Extensions, StatusCode};
use axum::response::{IntoResponse, Response};
use percent_encoding::percent_decode_str;
use utoipa_axum::router::OpenApiRouter;
use utoipa_axum::routes;

use super::openapi::{Anywhere, Paged};
use super::{Api, Refusal, by, json};
use crate::access::Action;
use crate::search::{Access, Ask, Cursor, Kinds, Page};

/// Hits of one answer, unless it says.
const LIMIT: usize = 20;
/// Hits of one answer at most.
const MAX_LIMIT: usize = 200;

pub(super) fn routes() -> OpenApiRouter<Api> {
    OpenApiRouter::default().routes(routes!(search))
}

/// Prompts and resources by words
#[utoipa::path(
    get,
    path = "/api/v1/search",
    operation_id = "search",
    tag = "library",
    params(
        ("q" = Option<String>, Query, description = "The words; all of it where there are none"),
        ("kind" = Option<String>, Query, description = "`prompt`, `resource` or `all`"),
        ("folder" = Option<String>, Query, description = "Only below this folder, e.g. `sre`"),
        Paged
    ),
    responses((status = 200, description = "What was found, best first", body = Page), Anywhere)
)]
async fn search(
    State(api): State<Api>,
    RawQuery(query): RawQuery,
    extensions: Extensions,
) -> Response {
    let mut ask = match ask(query.as_deref().unwrap_or_default()) {
        Ok(ask) => ask,
        Err(refusal) => return refusal.into_response(),
    };
    let actor = by(&extensions).actor;
    if !actor.sees_all() {
        ask.access = Access::reading(move |path| actor.may(Action::Read, path));
    }
    let catalog = api.registry.snapshot().catalog.clone();
    json(&Page::from(api.search.search(&catalog, ask).await))
}

/// What the query of a URL asks. Every `q` is a query; the rest has to make sense.
fn ask(query: &str) -> Result<Ask, Refusal> {
    let refused = |detail: String| Refusal::new(StatusCode::BAD_REQUEST, detail);
    let mut ask = Ask::new("", LIMIT);
    for (name, value) in query.split('&').filter_map(|pair| pair.split_once('=')) {
        let value = value.replace('+', " ");
        let value = percent_decode_str(&value).decode_utf8_lossy();
        match name {
            "q" => ask.query = value.into_owned(),
            "limit" => {
                ask.limit = value
                    .parse()
                    .ok()
                    .filter(|limit| (1..=MAX_LIMIT).contains(limit))
                    .ok_or_else(|| {
                        refused(format!("`limit` must be a number from 1 to {MAX_LIMIT}"))
                    })?;
            }
            "cursor" => {
                let cursor = Cursor::decode(&value).ok_or_else(|| {
                    refused("`cursor` must be a `next_cursor` of an earlier answer".to_owned())
                })?;
                ask.after = Some(cursor);
            }
            "kind" => {
                ask.kinds = match &*value {
                    "all" => Kinds::All,
                    "prompt" => Kinds::Prompts,
                    "resource" => Kinds::Resources,
                    _ => {
                        return Err(refused("`kind` must be prompt, resource or all".to_owned()));
                    }
                };
            }
            "folder" => ask.folder = Some(value.trim_matches('/').into()),
            _ => {}
        }
    }
    Ok(ask)
}
