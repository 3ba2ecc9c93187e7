//! `GET /api/v1/audit`: who did what; `GET /api/v1/audit/export`: all of it, a JSON object a line.

use axum::body::{Body, Bytes};
use axum::extract::State;
use axum::http::Uri;
use axum::http::header::{self, HeaderValue};
use axum::response::{IntoResponse, Response};
use serde::Serialize;
use utoipa::ToSchema;
use utoipa_axum::router::OpenApiRouter;
use utoipa_axum::routes;

use super::openapi::{Anywhere, Conflict, Paged};
use super::query::Query;
use super::{Api, Refusal, json, store};
use crate::records::calendar;
use crate::store::{AuditRow, Store, StoreError};

/// Rows of one answer, unless the request says.
const SHOWN: i64 = 50;
/// Rows of one answer, at most, and rows that an export reads at a time.
const MOST: i64 = 1000;

#[derive(Serialize, ToSchema)]
#[schema(as = AuditPage)]
struct Answer {
    /// Newest first.
    rows: Vec<Row>,
    /// What `cursor` says to get those before; none where there are none.
    next_cursor: Option<String>,
}

#[derive(Serialize, ToSchema)]
#[schema(as = Audited)]
struct Row {
    /// For people: `at` in milliseconds is what the hash covers.
    time: String,
    #[serde(flatten)]
    row: AuditRow,
}

impl From<AuditRow> for Row {
    fn from(row: AuditRow) -> Self {
        Self {
            time: calendar::show(row.at),
            row,
        }
    }
}

pub(super) fn routes() -> OpenApiRouter<Api> {
    OpenApiRouter::default()
        .routes(routes!(audit))
        .routes(routes!(export))
}

/// Who did what
#[utoipa::path(
    get,
    path = "/api/v1/audit",
    operation_id = "audit",
    tag = "records",
    params(Paged),
    responses((status = 200, description = "Rows, newest first", body = Answer), Anywhere, Conflict)
)]
async fn audit(State(api): State<Api>, uri: Uri) -> Response {
    match newest(&api, &uri).await {
        Ok(answer) => json(&answer),
        Err(refusal) => refusal.into_response(),
    }
}

async fn newest(api: &Api, uri: &Uri) -> Result<Answer, Refusal> {
    let query = Query::of(uri)?;
    let limit = query.number("limit", 1, MOST)?.unwrap_or(SHOWN);
    let before = query.number("cursor", 1, i64::MAX)?;
    let rows = store(api)?.audit_before(before, limit).await?;
    Ok(Answer {
        next_cursor: rows
            .last()
            .filter(|row| row.seq > 1)
            .map(|row| row.seq.to_string()),
        rows: rows.into_iter().map(Row::from).collect(),
    })
}

/// The whole audit, oldest first
///
/// A JSON object a line.
#[utoipa::path(
    get,
    path = "/api/v1/audit/export",
    operation_id = "exportAudit",
    tag = "records",
    responses(
        (status = 200, description = "A row a line", body = String, content_type = "application/jsonl"),
        Anywhere,
        Conflict
    )
)]
async fn export(State(api): State<Api>) -> Response {
    let store = match store(&api) {
        Ok(store) => store.clone(),
        Err(refusal) => return refusal.into_response(),
    };
    let pieces = futures_util::stream::try_unfold((store, 0), |(store, seq)| async move {
        let piece = lines(&store, seq).await.map_err(std::io::Error::other)?;
        Ok::<_, std::io::Error>(piece.map(|(bytes, last)| (bytes, (store, last))))
    });
    let mut response = Response::new(Body::from_stream(pieces));
    response.headers_mut().insert(
        header::CONTENT_TYPE,
        HeaderValue::from_static("application/jsonl"),
    );
    response
}

/// Some rows after a number as lines, and the number of the last one; none where there are none.
async fn lines(store: &Store, after: i64) -> Result<Option<(Bytes, i64)>, StoreError> {
    let rows = store.audit_after(after, MOST).await?;
    let Some(last) = rows.last().map(|row| row.seq) else {
        return Ok(None);
    };
    let mut out = Vec::new();
    for row in rows {
        let line = serde_json::to_vec(&Row::from(row)).unwrap_or_default();
        out.extend_from_slice(&line);
        out.push(b'\n');
    }
    Ok(Some((out.into(), last)))
}
