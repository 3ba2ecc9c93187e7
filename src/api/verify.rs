//! `POST /api/v1/verify` and `/api/v1/reindex`: whether what is derived from git equals what git says, and making it so.

use axum::extract::State;
use axum::http::StatusCode;
use axum::response::{IntoResponse, Response};
use serde::Serialize;
use utoipa::ToSchema;
use utoipa_axum::router::OpenApiRouter;
use utoipa_axum::routes;

use super::openapi::{Anywhere, Conflict, Failed};
use super::{Api, Refusal, json};
use crate::store::{IndexDifference, Store};
use crate::versions;

/// Differences that are shown of one table.
const SHOWN: usize = 100;

/// What was looked at.
#[derive(Debug, Serialize, ToSchema)]
struct Verified {
    /// Whether all of it is what git says.
    ok: bool,
    /// Each thing that is derived.
    tables: Vec<Table>,
    /// What could not be looked at, and why.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    unseen: Vec<String>,
}

/// One thing that is derived.
#[derive(Debug, Serialize, ToSchema)]
#[schema(as = VerifiedTable)]
struct Table {
    /// `catalog`, `search`, `audit` or `versions`.
    name: &'static str,
    /// How many rows were compared.
    rows: usize,
    /// How many are not what git says.
    different: usize,
    /// The first of them.
    differences: Vec<Differing>,
}

/// A row that is not what git says.
#[derive(Debug, Serialize, ToSchema)]
struct Differing {
    /// Which row.
    row: String,
    /// What git says; none where it should not be there.
    expected: Option<String>,
    /// What is there; none where it is missing.
    found: Option<String>,
}

pub(super) fn routes() -> OpenApiRouter<Api> {
    OpenApiRouter::default()
        .routes(routes!(verify))
        .routes(routes!(reindex))
}

/// Compare what is derived from git with what git says
#[utoipa::path(
    post,
    path = "/api/v1/verify",
    operation_id = "verify",
    tag = "operations",
    responses((status = 200, description = "What was looked at", body = Verified), Anywhere, Conflict, Failed)
)]
async fn verify(State(api): State<Api>) -> Response {
    alone(&api, |api| async move { verified(&api).await }).await
}

/// Make everything derived again, and compare
#[utoipa::path(
    post,
    path = "/api/v1/reindex",
    operation_id = "reindex",
    tag = "operations",
    responses((status = 200, description = "What was looked at", body = Verified), Anywhere, Conflict, Failed)
)]
async fn reindex(State(api): State<Api>) -> Response {
    alone(&api, |api| async move {
        let registry = api.registry.clone();
        let rebuilt = tokio::task::spawn_blocking(move || registry.rebuild()).await;
        done("the catalog", rebuilt)?;
        api.search
            .reindex(&api.registry)
            .await
            .map_err(|error| failed("the search index", &error))?;
        if let Some(store) = store(&api) {
            done(
                "the versions",
                Ok(versions::reindex(&api.registry, store).await),
            )?;
        }
        verified(&api).await
    })
    .await
}

/// Runs one at a time, to its end even when the client hangs up: both read the whole library.
async fn alone<F>(api: &Api, work: impl FnOnce(Api) -> F) -> Response
where
    F: Future<Output = Result<Verified, Refusal>> + Send + 'static,
{
    let Ok(proving) = api.proving.clone().try_lock_owned() else {
        return Refusal {
            retry_after: Some(10),
            ..Refusal::new(
                StatusCode::CONFLICT,
                "a verify or a reindex is running; one does at a time",
            )
        }
        .into_response();
    };
    let work = work(api.clone());
    let ran = tokio::spawn(async move {
        let _proving = proving;
        work.await
    })
    .await;
    match ran {
        Ok(Ok(verified)) => json(&verified),
        Ok(Err(refusal)) => refusal.into_response(),
        Err(error) => failed("what is derived", &error).into_response(),
    }
}

async fn verified(api: &Api) -> Result<Verified, Refusal> {
    let tables = tables(api).await?;
    let unseen: Vec<String> = match api.records.as_ref().map(|records| records.store()) {
        Some(Err(error)) => vec![format!(
            "the search index, the versions kept and the audit: there is no database ({error})"
        )],
        _ => Vec::new(),
    };
    Ok(Verified {
        ok: unseen.is_empty() && tables.iter().all(|table| table.different == 0),
        tables,
        unseen,
    })
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
