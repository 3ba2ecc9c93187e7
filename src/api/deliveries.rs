//! `GET /api/v1/deliveries`: which text went to whom when, with which resources.

use axum::Router;
use axum::extract::State;
use axum::http::{Extensions, StatusCode, Uri};
use axum::response::{IntoResponse, Response};
use axum::routing::get;
use serde::Serialize;
use serde_json::Value;

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

#[derive(Serialize)]
struct Answer {
    /// Newest first.
    deliveries: Vec<Delivery>,
    /// What `cursor` says to get those before; none where there are none.
    next: Option<i64>,
}

#[derive(Serialize)]
struct Delivery {
    at: String,
    actor: String,
    client: String,
    client_version: String,
    via: String,
    placeholder: bool,
    prompt: String,
    version: Option<i64>,
    commit: Option<String>,
    path: String,
    sha256: String,
    /// The commit of the resources.
    resources_commit: Option<String>,
    resources: Value,
}

impl From<DeliveryRow> for Delivery {
    fn from(row: DeliveryRow) -> Self {
        Self {
            at: calendar::show(row.at),
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

pub(super) fn routes() -> Router<Api> {
    Router::new().route("/api/v1/deliveries", get(deliveries))
}

async fn deliveries(State(api): State<Api>, uri: Uri, extensions: Extensions) -> Response {
    match found(&api, &uri, &by(&extensions).actor).await {
        Ok(answer) => json(&answer),
        Err(refusal) => refusal.into_response(),
    }
}

async fn found(api: &Api, uri: &Uri, actor: &Actor) -> Result<Answer, Refusal> {
    let known = [
        "at", "from", "until", "prompt", "actor", "client", "limit", "cursor",
    ];
    let query = Query::of(uri, &known)?;
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
        return Ok(Answer {
            next: rows.last().filter(|_| more).map(|row| row.seq),
            deliveries: rows.into_iter().map(Delivery::from).collect(),
        });
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
                return Ok(Answer {
                    next: filter.before_seq,
                    deliveries,
                });
            }
        }
        if last {
            return Ok(Answer {
                next: None,
                deliveries,
            });
        }
    }
    Ok(Answer {
        next: filter.before_seq,
        deliveries,
    })
}
