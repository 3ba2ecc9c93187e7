//! `POST /api/v1/verify` and `/api/v1/reindex`: whether what is derived from git equals what git says, and making it so.

use axum::Router;
use axum::extract::State;
use axum::http::StatusCode;
use axum::response::{IntoResponse, Response};
use axum::routing::post;
use serde::Serialize;

use super::{Api, Refusal, json};
use crate::store::{IndexDifference, Store};
use crate::versions;

/// Differences that are shown of one table.
const SHOWN: usize = 100;

/// What was looked at.
#[derive(Debug, Serialize)]
struct Verified {
    /// Whether all of it is what git says.
    ok: bool,
    tables: Vec<Table>,
}

/// One thing that is derived.
#[derive(Debug, Serialize)]
struct Table {
    name: &'static str,
    /// How many rows were compared.
    rows: usize,
    /// How many are not what git says.
    different: usize,
    /// The first of them.
    differences: Vec<Differing>,
}

/// A row that is not what git says.
#[derive(Debug, Serialize)]
struct Differing {
    row: String,
    expected: Option<String>,
    found: Option<String>,
}

pub(super) fn routes() -> Router<Api> {
    Router::new()
        .route("/api/v1/verify", post(verify))
        .route("/api/v1/reindex", post(reindex))
}

async fn verify(State(api): State<Api>) -> Response {
    match tables(&api).await {
        Ok(tables) => json(&Verified {
            ok: tables.iter().all(|table| table.different == 0),
            tables,
        }),
        Err(refusal) => refusal.into_response(),
    }
}

/// Makes everything derived again, then looks at it.
async fn reindex(State(api): State<Api>) -> Response {
    let registry = api.registry.clone();
    let rebuilt = tokio::task::spawn_blocking(move || registry.rebuild()).await;
    if let Err(refusal) = done("the catalog", rebuilt) {
        return refusal.into_response();
    }
    if let Err(error) = api.search.reindex(&api.registry).await {
        return failed("the search index", &error).into_response();
    }
    if let Some(store) = store(&api)
        && let Err(refusal) = done(
            "the versions",
            Ok(versions::reindex(&api.registry, store).await),
        )
    {
        return refusal.into_response();
    }
    verify(State(api)).await
}

/// The database, where it can be used.
fn store(api: &Api) -> Option<&Store> {
    api.records.as_ref()?.store().ok()
}

async fn tables(api: &Api) -> Result<Vec<Table>, Refusal> {
    let registry = api.registry.clone();
    let catalog = tokio::task::spawn_blocking(move || registry.verify()).await;
    let (rows, differences) = done("the catalog", catalog)?;
    let mut tables = vec![table("catalog", rows, differences)];
    if api.search.has_index() {
        let verified = api.search.verify(&api.registry).await;
        let differences = verified.map_err(|error| failed("the search index", &error))?;
        let catalog = &api.registry.snapshot().catalog;
        let rows = catalog.list(None).len() + catalog.resources().len();
        tables.push(table("search", rows, differences));
    }
    // not derived from git, but proven by itself
    if let Some(Ok(store)) = api.records.as_ref().map(|records| records.store()) {
        let differences = store.verify_audit().await?;
        let rows = usize::try_from(store.audit_head().await?.seq).unwrap_or(usize::MAX);
        tables.push(table("audit", rows, differences));
    }
    if let Some(store) = store(api) {
        let found = versions::verify(&api.registry, store).await;
        let (rows, differences) = done("the versions", Ok(found))?;
        tables.push(table("versions", rows, differences));
    }
    Ok(tables)
}

fn table(name: &'static str, rows: usize, differences: Vec<IndexDifference>) -> Table {
    Table {
        name,
        rows,
        different: differences.len(),
        differences: differences
            .into_iter()
            .take(SHOWN)
            .map(|difference| Differing {
                row: difference.row,
                expected: difference.expected,
                found: difference.found,
            })
            .collect(),
    }
}

/// What some work gave; what went wrong is logged.
fn done<T, E: std::fmt::Display>(
    what: &str,
    result: Result<Result<T, E>, tokio::task::JoinError>,
) -> Result<T, Refusal> {
    let error = match result {
        Ok(Ok(value)) => return Ok(value),
        Ok(Err(error)) => error.to_string(),
        Err(error) => error.to_string(),
    };
    Err(failed(what, &error))
}

/// Logs what went wrong, and says it.
fn failed(what: &str, error: &impl std::fmt::Display) -> Refusal {
    tracing::error!(%error, "{what} could not be looked at");
    Refusal::new(
        StatusCode::INTERNAL_SERVER_ERROR,
        format!("{what} could not be looked at: {error}"),
    )
}
