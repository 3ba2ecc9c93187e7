//! `GET /api/v1/usage`, `POST /api/v1/usage/erase-values`: what is used, and forgetting the values that were.

use axum::extract::{Request, State};
use axum::http::{Extensions, Uri};
use axum::response::{IntoResponse, Response};
use serde::{Deserialize, Serialize};
use tokio::sync::Semaphore;
use utoipa::ToSchema;
use utoipa_axum::router::OpenApiRouter;
use utoipa_axum::routes;

use super::openapi::{Anywhere, Conflict, Paged, Unread};
use super::query::Query;
use super::visible::sees_prompt;
use super::{Api, Refusal, by, json, parse, read, store};
use crate::access::Actor;
use crate::records::{calendar, report};

/// One report is made at a time; the others wait.
static REPORT: Semaphore = Semaphore::const_new(1);
/// Days that are looked at unless the request says.
const DAYS: i64 = 30;
/// Longest request.
const MAX_BODY: usize = 4096;

#[derive(Serialize, ToSchema)]
#[schema(as = UsagePage)]
struct Answer {
    /// The first day, e.g. `2026-11-01`.
    from: String,
    /// The last day: today, UTC.
    to: String,
    #[serde(flatten)]
    usage: report::Usage,
    /// What `cursor` says to get the next of `prompts`; none where there are none. It goes on after the count and the name
    /// of the last one, so that a prompt is missed or comes twice only where its own count changes meanwhile.
    next_cursor: Option<String>,
}

#[derive(Default, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
#[schema(as = EraseValues)]
struct Erase {
    /// Only of this prompt.
    #[serde(default)]
    prompt: Option<String>,
    /// Only of this argument of it.
    #[serde(default)]
    argument: Option<String>,
}

#[derive(Serialize, ToSchema)]
#[schema(as = ErasedValues)]
struct Erased {
    /// How many values there were.
    erased: u64,
}

pub(super) fn routes() -> OpenApiRouter<Api> {
    OpenApiRouter::default()
        .routes(routes!(usage))
        .routes(routes!(erase))
}

/// What is used, by prompt and version
#[utoipa::path(
    get,
    path = "/api/v1/usage",
    operation_id = "usage",
    tag = "records",
    params(
        ("days" = Option<i64>, Query, description = "Days that are looked at, today included; 30 unless given"),
        ("prompt" = Option<String>, Query, description = "Only of this prompt"),
        Paged
    ),
    responses((status = 200, description = "Use, most used first", body = Answer), Anywhere, Conflict)
)]
async fn usage(State(api): State<Api>, uri: Uri, extensions: Extensions) -> Response {
    match report_of(&api, &uri, &by(&extensions).actor).await {
        Ok(answer) => json(&answer),
        Err(refusal) => refusal.into_response(),
    }
}

async fn report_of(api: &Api, uri: &Uri, actor: &Actor) -> Result<Answer, Refusal> {
    let query = Query::of(uri)?;
    let days = query.number("days", 1, 36_500)?.unwrap_or(DAYS);
    let prompt = query.text("prompt");
    let store = store(api)?;
    let to = calendar::day(crate::clock::unix_millis());
    let from = to - days + 1;
    // a report of years reads much, and others read too
    let _one = REPORT.acquire().await.ok();
    let mut rows = store.usage_by_version(from, to, prompt).await?;
    let mut clients = store.gets_by_client(from, to, prompt).await?;
    let mut latency = store.latency(from, to, prompt).await?;
    let losses = store.losses(from, to).await?;
    let snapshot = api.registry.snapshot();
    let sees = |name: &str| sees_prompt(&snapshot, actor, name);
    if !actor.sees_all() {
        rows.retain(|row| sees(&row.prompt));
        clients.retain(|row| sees(&row.prompt));
        latency.retain(|row| sees(&row.prompt));
    }
    let listed = snapshot.catalog.list(None);
    let known = listed
        .iter()
        .map(|known| known.name.as_str())
        .filter(|name| sees(name))
        .filter(|name| prompt.is_none_or(|prompt| *name == prompt));
    let mut usage = report::usage(&rows, &clients, &latency, &losses, known);
    let next_cursor = query.page(&mut usage.prompts, |one| key(one.all.gets, &one.prompt))?;
    Ok(Answer {
        from: calendar::show_day(from),
        to: calendar::show_day(to),
        usage,
        next_cursor,
    })
}

/// Where a prompt stands in the list: most used first, then by name.
fn key(gets: i64, prompt: &str) -> String {
    format!("{:020} {prompt}", i64::MAX - gets)
}

/// Forget values that were used as arguments
#[utoipa::path(
    post,
    path = "/api/v1/usage/erase-values",
    operation_id = "eraseValues",
    tag = "records",
    request_body = Erase,
    responses((status = 200, description = "They are forgotten", body = Erased), Anywhere, Conflict, Unread)
)]
async fn erase(State(api): State<Api>, request: Request) -> Response {
    match erased(&api, request).await {
        Ok(erased) => json(&Erased { erased }),
        Err(refusal) => refusal.into_response(),
    }
}

async fn erased(api: &Api, request: Request) -> Result<u64, Refusal> {
    let (parts, body) = request.into_parts();
    let body = read(&parts.headers, body, MAX_BODY, "a limit of this release").await?;
    let ask: Erase = parse(&body)?;
    let records = super::records(api)?;
    Ok(records
        .erase_values(ask.prompt.as_deref(), ask.argument.as_deref())
        .await?)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn counts_that_change_between_two_pages_move_nothing_else() {
        let page = |counts: &[(i64, &'static str)], query: &str| {
            let mut list = counts.to_vec();
            list.sort_by_key(|(gets, name)| key(*gets, name));
            let uri = format!("/api/v1/usage?limit=2{query}").parse().unwrap();
            let query = Query::of(&uri).unwrap();
            let next = query.page(&mut list, |(gets, name)| key(*gets, name));
            let names: Vec<&str> = list.into_iter().map(|(_, name)| name).collect();
            (names, next.unwrap())
        };
        let (first, next) = page(&[(9, "d"), (7, "c"), (7, "b"), (5, "a"), (0, "e")], "");
        assert_eq!(first, ["d", "b"]);
        // the one that was last is used less now than all others, and the first is gone
        let counts = [(0, "b"), (7, "c"), (6, "a"), (0, "e")];
        let next = format!("&cursor={}", next.unwrap());
        let (second, last) = page(&counts, &next);
        assert_eq!(second, ["c", "a"]);
        assert!(last.is_some());
    }
}
