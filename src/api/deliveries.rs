//! `GET /api/v1/deliveries`: which text went to whom when, with which resources.

use axum::extract::State;
use axum::http::{Extensions, StatusCode, Uri};
use axum::response::{IntoResponse, Response};
use serde::Serialize;
use serde_json::Value;
use utoipa::ToSchema;
use utoipa_axum::router::OpenApiRouter;
use utoipa_axum::routes;

use super::openapi::{Anywhere, Conflict, Paged};
use super::query::Query;
use super::visible::sees_prompt;
use super::{Api, Refusal, by, json, store};
use crate::access::{Action, Actor};
use crate::records::calendar;
use crate::store::{DeliveryFilter, DeliveryRow};

/// Deliveries of one answer, unless the request says.
const SHOWN: i64 = 20;
/// Deliveries of one answer, at most.
const MOST: i64 = 1000;

/// Pages of rows that are looked at for one answer.
const LOOKED_AT: usize = 20;

#[derive(Serialize, ToSchema)]
#[schema(as = DeliveryPage)]
struct Answer {
    /// Newest first.
    deliveries: Vec<Delivery>,
    /// What `cursor` says to get those before; none where there are none.
    next_cursor: Option<String>,
}

impl Answer {
    fn of(deliveries: Vec<Delivery>, next: Option<i64>) -> Self {
        Self {
            deliveries,
            next_cursor: next.map(|seq| seq.to_string()),
        }
    }
}

#[derive(Serialize, ToSchema)]
struct Delivery {
    /// When, UTC; of several, the first.
    at: String,
    /// How often within that second: what is asked for again and again is one row.
    times: i64,
    /// To whom.
    actor: String,
    /// The client, as it calls itself.
    client: String,
    /// Its version, as it says.
    client_version: String,
    /// `prompt` or `tool`.
    via: String,
    /// Whether the client puts the arguments in by itself.
    placeholder: bool,
    /// The prompt.
    prompt: String,
    /// Its version, where it was known.
    version: Option<i64>,
    /// The commit of the prompt.
    commit: Option<String>,
    /// Its path.
    path: String,
    /// The hash of its file.
    sha256: String,
    /// The commit of the resources.
    resources_commit: Option<String>,
    /// What went with it: `uri`, `path` and `sha256` of each.
    #[schema(value_type = Vec<std::collections::BTreeMap<String, Value>>)]
    resources: Value,
}

impl From<DeliveryRow> for Delivery {
    fn from(row: DeliveryRow) -> Self {
        Self {
            at: calendar::show(row.at),
            times: row.times,
            actor: row.actor,
            client: row.client,
            client_version: row.client_version,
            via: row.via,
            placeholder: row.placeholder,
            prompt: row.prompt,
            version: row.version,
            commit: row.revision,
            path: row.path,
            sha256: row.sha256,
            resources_commit: row.resources_revision,
            resources: serde_json::from_str(&row.resources).unwrap_or_default(),
        }
    }
}

pub(super) fn routes() -> OpenApiRouter<Api> {
    OpenApiRouter::default().routes(routes!(deliveries))
}

/// Which text went to whom when
#[utoipa::path(
    get,
    path = "/api/v1/deliveries",
    operation_id = "deliveries",
    tag = "records",
    params(
        ("at" = Option<String>, Query, description = "Up to this time, e.g. `2026-11-30T03:12`"),
        ("from" = Option<String>, Query, description = "Not before this time"),
        ("until" = Option<String>, Query, description = "Not after this time"),
        ("prompt" = Option<String>, Query, description = "Only of this prompt"),
        ("actor" = Option<String>, Query, description = "Only to this person or program"),
        ("client" = Option<String>, Query, description = "Only to this client, as it calls itself"),
        Paged
    ),
    responses((status = 200, description = "Deliveries, newest first", body = Answer), Anywhere, Conflict)
)]
async fn deliveries(State(api): State<Api>, uri: Uri, extensions: Extensions) -> Response {
    match found(&api, &uri, &by(&extensions).actor).await {
        Ok(answer) => json(&answer),
        Err(refusal) => refusal.into_response(),
    }
}

async fn found(api: &Api, uri: &Uri, actor: &Actor) -> Result<Answer, Refusal> {
    let query = Query::of(uri)?;
    let time = |name: &str| {
        let read = query.text(name).map(calendar::parse).transpose();
        read.map_err(|error| Refusal::new(StatusCode::BAD_REQUEST, format!("`{name}`: {error}")))
    };
    let limit = query.number("limit", 1, MOST)?.unwrap_or(SHOWN);
    // up to the end of what was said: 03:12 is the whole minute
    let at = time("at")?;
    let until = time("until")?;
    let mut filter = DeliveryFilter {
        from: time("from")?.map(|(from, _)| from),
        before: [at, until].into_iter().flatten().map(|(_, end)| end).min(),
        before_seq: query.number("cursor", 1, i64::MAX)?,
        prompt: query.text("prompt").map(str::to_owned),
        actor: query.text("actor").map(str::to_owned),
        client: query.text("client").map(str::to_owned),
    };
    let store = store(api)?;
    let wanted = usize::try_from(limit).unwrap_or(usize::MAX);
    if actor.sees_all() {
        let mut rows = store.deliveries(&filter, limit + 1).await?;
        let more = rows.len() > wanted;
        rows.truncate(wanted);
        let next = rows.last().filter(|_| more).map(|row| row.seq);
        let deliveries = rows.into_iter().map(Delivery::from).collect();
        return Ok(Answer::of(deliveries, next));
    }
    // who sees little may have to look far; the answer then ends early, and says from where to go on
    let snapshot = api.registry.snapshot();
    let sees = |path: &str| actor.may(Action::Read, path);
    let mut deliveries = Vec::new();
    for _ in 0..LOOKED_AT {
        let rows = store.deliveries(&filter, MOST).await?;
        let last = rows.len() < usize::try_from(MOST).unwrap_or(usize::MAX);
        for row in rows {
            filter.before_seq = Some(row.seq);
            if !sees(&row.path) || !sees_prompt(&snapshot, actor, &row.prompt) {
                continue;
            }
            let mut delivery = Delivery::from(row);
            if let Value::Array(resources) = &mut delivery.resources {
                resources.retain(|resource| resource["path"].as_str().is_some_and(sees));
            }
            deliveries.push(delivery);
            if deliveries.len() == wanted {
                return Ok(Answer::of(deliveries, filter.before_seq));
            }
        }
        if last {
            return Ok(Answer::of(deliveries, None));
        }
    }
    Ok(Answer::of(deliveries, filter.before_seq))
}
