//! Edits that are not finished, kept for their actor until they are published or given up.

use axum::extract::{Request, State};
use axum::http::StatusCode;
use axum::response::{IntoResponse, Response};
use serde::{Deserialize, Serialize};

use crate::access::Action;
use crate::api::{Refusal, json, parse, read, store};
use crate::clock;
use crate::store::{DRAFT_MILLIS, DraftRow, Kept, MAX_DRAFT_BYTES, MAX_DRAFTS, Store};

use super::super::{Visit, Web};
use super::place::Kind;

/// Longest text of a draft, in bytes.
pub(super) const MAX_DRAFT: usize = 1024 * 1024;
/// Longest request for one: a text of which every byte is written as six.
const MAX_BODY: usize = 6 * MAX_DRAFT + 4096;

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct Ask {
    path: String,
    /// The commit of main that the edit was begun from.
    base: Option<String>,
    /// The text as it would be stored.
    text: String,
    /// When the draft was kept that the page knows of; 0 where it knows of none.
    on: Option<i64>,
}

/// A draft as the page gets it.
#[derive(Debug, Serialize)]
pub(super) struct Shown {
    base: Option<String>,
    text: String,
    saved_at: i64,
}

#[derive(Debug, Serialize)]
struct Saved {
    saved_at: i64,
    /// Whether it took the place of one that the page did not know of: somebody writes in another tab or browser too.
    elsewhere: bool,
}

/// The draft that somebody has at a path; none where there is none, or no database.
pub(super) async fn of(web: &Web, visit: &Visit, path: &str) -> Option<Shown> {
    let store = store(&web.api).ok()?;
    let after = clock::unix_millis() - DRAFT_MILLIS;
    let row = store.draft(&visit.actor.name, path, after).await.ok()??;
    Some(Shown {
        base: row.base,
        text: row.text,
        saved_at: row.saved_at,
    })
}

/// Forgets a draft whose text was published.
pub(super) async fn forget(web: &Web, visit: &Visit, path: &str) {
    if let Ok(store) = store(&web.api)
        && let Err(error) = store.remove_draft(&visit.actor.name, path, None).await
    {
        tracing::warn!(%error, "a draft could not be removed; it ends by itself");
    }
}

/// `GET /editor/draft`: the paths of one's drafts, with when each was kept.
pub(super) async fn list(State(web): State<Web>, visit: Visit) -> Response {
    #[derive(Serialize)]
    struct Entry {
        path: String,
        saved_at: i64,
    }
    let listed = async {
        let after = clock::unix_millis() - DRAFT_MILLIS;
        let store = store(&web.api)?;
        Ok::<_, Refusal>(store.drafts_of(&visit.actor.name, after).await?)
    };
    match listed.await {
        Ok(rows) => {
            let rows = rows.into_iter();
            json(
                &rows
                    .map(|(path, saved_at)| Entry { path, saved_at })
                    .collect::<Vec<_>>(),
            )
        }
        Err(refusal) => refusal.into_response(),
    }
}

/// `PUT /editor/draft`.
pub(super) async fn put(State(web): State<Web>, request: Request) -> Response {
    let (parts, body) = request.into_parts();
    let visit = Visit::of(&parts);
    let kept = async {
        own(&visit)?;
        let store = store(&web.api)?;
        let body = read(&parts.headers, body, MAX_BODY, "a limit of this release").await?;
        let ask: Ask = parse(&body)?;
        keep(store, &visit, ask).await
    };
    match kept.await {
        Ok(saved) => json(&saved),
        Err(refusal) => refusal.into_response(),
    }
}

async fn keep(store: &Store, visit: &Visit, ask: Ask) -> Result<Saved, Refusal> {
    let wrong = |detail: String| Refusal::new(StatusCode::UNPROCESSABLE_ENTITY, detail);
    if Kind::of(&ask.path).is_none() || !visit.actor.may(Action::Propose, &ask.path) {
        return Err(wrong(
            "no draft is kept for a file that cannot be changed".into(),
        ));
    }
    if ask.text.len() > MAX_DRAFT {
        return Err(wrong(format!(
            "the text is {} bytes; a draft has at most {MAX_DRAFT}, and this one is kept in your browser alone",
            ask.text.len()
        )));
    }
    if let Some(base) = &ask.base
        && !(base.len() == 40 && base.bytes().all(|b| b.is_ascii_hexdigit()))
    {
        return Err(wrong("`base` is a commit, 40 hex digits".into()));
    }
    let now = clock::unix_millis();
    let known = store
        .drafts_of(&visit.actor.name, now - DRAFT_MILLIS)
        .await?;
    let before = known.iter().find(|(path, _)| *path == ask.path);
    let elsewhere = before.zip(ask.on).is_some_and(|((_, at), on)| *at != on);
    let row = DraftRow {
        actor: visit.actor.name.to_string(),
        path: ask.path,
        base: ask.base,
        text: ask.text,
        saved_at: now,
    };
    match store.put_draft(&row).await? {
        Kept::At(saved_at) => Ok(Saved {
            saved_at,
            elsewhere,
        }),
        Kept::TooMany => Err(wrong(format!(
            "you have {MAX_DRAFTS} drafts; publish or drop one, and this one is kept here too"
        ))),
        Kept::TooLarge => Err(wrong(format!(
            "your drafts are more than {MAX_DRAFT_BYTES} bytes together; publish or drop one, and this one is kept here too"
        ))),
    }
}

/// `DELETE /editor/draft?path=…&saved_at=…`: with a time, only the one that was kept then.
pub(super) async fn delete(State(web): State<Web>, visit: Visit) -> Response {
    let removed = async {
        own(&visit)?;
        let path = visit.query.get("path").unwrap_or_default();
        let saved_at = match visit.query.get("saved_at") {
            None => None,
            Some(text) => Some(text.parse::<i64>().map_err(|_| {
                Refusal::new(
                    StatusCode::UNPROCESSABLE_ENTITY,
                    "`saved_at` is the number that keeping the draft was answered with",
                )
            })?),
        };
        let store = store(&web.api)?;
        store
            .remove_draft(&visit.actor.name, path, saved_at)
            .await?;
        Ok::<_, Refusal>(())
    };
    match removed.await {
        Ok(()) => StatusCode::NO_CONTENT.into_response(),
        Err(refusal) => refusal.into_response(),
    }
}

/// A page of another site cannot send this header without being asked for leave first.
fn own(visit: &Visit) -> Result<(), Refusal> {
    if visit.headers.contains_key("x-cuebook") {
        Ok(())
    } else {
        Err(Refusal::new(
            StatusCode::FORBIDDEN,
            "send the header `X-Cuebook: 1`; pages of other sites cannot",
        ))
    }
}
