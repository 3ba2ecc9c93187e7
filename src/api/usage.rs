//! `GET /api/v1/usage`, `POST /api/v1/usage/erase-values`: what is used, and forgetting the values that were.

use axum::Router;
use axum::extract::{Request, State};
use axum::http::{Extensions, Uri};
use axum::response::{IntoResponse, Response};
use axum::routing::{get, post};
use serde::{Deserialize, Serialize};
use tokio::sync::Semaphore;

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

#[derive(Serialize)]
struct Answer {
    /// The first day, e.g. `2026-11-01`.
    from: String,
    /// The last day: today, UTC.
    to: String,
    #[serde(flatten)]
    usage: report::Usage,
}

#[derive(Default, Deserialize)]
#[serde(deny_unknown_fields)]
struct Erase {
    #[serde(default)]
    prompt: Option<String>,
    #[serde(default)]
    argument: Option<String>,
}

#[derive(Serialize)]
struct Erased {
    /// How many values there were.
    erased: u64,
}

pub(super) fn routes() -> Router<Api> {
    Router::new()
        .route("/api/v1/usage", get(usage))
        .route("/api/v1/usage/erase-values", post(erase))
}

async fn usage(State(api): State<Api>, uri: Uri, extensions: Extensions) -> Response {
    match report_of(&api, &uri, &by(&extensions).actor).await {
        Ok(answer) => json(&answer),
        Err(refusal) => refusal.into_response(),
    }
}

async fn report_of(api: &Api, uri: &Uri, actor: &Actor) -> Result<Answer, Refusal> {
    let query = Query::of(uri, &["days", "prompt"])?;
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
    Ok(Answer {
        from: calendar::show_day(from),
        to: calendar::show_day(to),
        usage: report::usage(&rows, &clients, &latency, &losses, known),
    })
}

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
