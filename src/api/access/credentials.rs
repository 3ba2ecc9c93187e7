//! `/api/v1/access/tokens…` and `/api/v1/access/sessions…`: what lets somebody in.

use axum::extract::{Path, Request, State};
use axum::http::{Extensions, Uri};
use axum::response::{IntoResponse, Response};
use serde::{Deserialize, Serialize};
use utoipa::ToSchema;
use utoipa_axum::router::OpenApiRouter;
use utoipa_axum::routes;

use super::desk::{Ends, Made, TokenAsk};
use super::tags::{Of, shows};
use super::{Done, answer, body, tagged};
use crate::access::{Actor, Credential};
use crate::api::openapi::{Absent, Anywhere, Changed, Conflict, Paged, Seen, Unfit, Unread, Whose};
use crate::api::query::Query;
use crate::api::{Api, Refusal, by};
use crate::records::calendar;
use crate::store::{SessionRow, TokenRow};

pub(super) fn routes() -> OpenApiRouter<Api> {
    OpenApiRouter::default()
        .routes(routes!(tokens, make_token))
        .routes(routes!(revoke_token))
        .routes(routes!(sessions))
        .routes(routes!(end_session))
}

#[derive(Serialize, ToSchema)]
#[schema(as = Token)]
struct ShownToken {
    /// The part of it that is shown.
    prefix: String,
    /// Whose it is.
    owner: String,
    /// What it is for.
    label: String,
    /// The most it may do.
    role: Option<String>,
    /// Where; nowhere named is everywhere.
    paths: Vec<String>,
    /// When, UTC.
    made: String,
    /// By whom.
    by: String,
    /// When it ends; none for never.
    expires: Option<String>,
    /// When it was revoked.
    revoked: Option<String>,
    /// When it was used last.
    used: Option<String>,
    /// Whether it lets somebody in.
    live: bool,
}

impl From<TokenRow> for ShownToken {
    fn from(row: TokenRow) -> Self {
        let now = crate::clock::unix_millis();
        Self {
            live: row.revoked_at.is_none() && row.expires_at.is_none_or(|at| at > now),
            paths: row
                .patterns
                .iter()
                .flat_map(|text| text.lines())
                .map(str::to_owned)
                .collect(),
            made: calendar::show(row.created_at),
            expires: row.expires_at.map(calendar::show),
            revoked: row.revoked_at.map(calendar::show),
            used: row.used_at.map(calendar::show),
            prefix: row.prefix,
            owner: row.principal,
            label: row.label,
            role: row.role,
            by: row.created_by,
        }
    }
}

#[derive(Serialize, ToSchema)]
#[schema(as = TokenPage)]
struct Tokens {
    /// The oldest first.
    tokens: Vec<ShownToken>,
    /// What `cursor` says to get the next; none where there are none.
    next_cursor: Option<String>,
}

/// Tokens: one's own, for an admin everybody's
#[utoipa::path(
    get,
    path = "/api/v1/access/tokens",
    operation_id = "tokens",
    tag = "access",
    params(Whose, Paged),
    responses(
        (status = 200, description = "Tokens: one's own, for an admin everybody's", body = Tokens,
         headers(("ETag" = String, description = "For `If-Match` of what changes it"))),
        Anywhere,
        Conflict
    )
)]
async fn tokens(State(api): State<Api>, uri: Uri, extensions: Extensions) -> Response {
    let listed = async {
        let query = Query::of(&uri)?;
        let actor = by(&extensions).actor;
        let of = query.text("of");
        api.access.write_used().await;
        let rows = api.desk().rows().await?;
        let mut shown: Vec<&TokenRow> = rows
            .tokens
            .iter()
            .filter(|row| shows(&actor, &row.principal))
            .filter(|row| of.is_none_or(|of| row.principal == of))
            .collect();
        let key = |row: &&TokenRow| format!("{:020} {}", row.created_at, row.prefix);
        shown.sort_by_cached_key(key);
        let next_cursor = query.page(&mut shown, key)?;
        let page = Tokens {
            tokens: shown.into_iter().cloned().map(Into::into).collect(),
            next_cursor,
        };
        Ok::<_, Refusal>(tagged(&page, &rows, &actor, Of::Tokens))
    };
    listed.await.unwrap_or_else(Refusal::into_response)
}

#[derive(Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
#[schema(as = TokenAsk)]
struct AskedToken {
    /// Whose it will be; that of who asks where it is left out.
    owner: Option<String>,
    /// What it is for.
    label: String,
    /// The most it may do.
    role: Option<String>,
    /// Where; nowhere named is everywhere.
    #[serde(default)]
    paths: Vec<String>,
    /// After how many days it ends.
    expires_days: Option<u32>,
    /// Whether it does not end by itself: only one of a service.
    #[serde(default)]
    no_expiry: bool,
}

/// Make a token; it is shown this once
#[utoipa::path(
    post,
    path = "/api/v1/access/tokens",
    operation_id = "makeToken",
    tag = "access",
    params(Seen),
    request_body = AskedToken,
    responses(
        (status = 200, description = "Make a token; it is shown this once", body = Made),
        Anywhere,
        Conflict,
        Absent,
        Changed,
        Unread,
        Unfit
    )
)]
async fn make_token(State(api): State<Api>, request: Request) -> Response {
    let by = by(request.extensions());
    let desk = api.desk_for(request.headers(), Of::Tokens);
    let made = async {
        let ask: AskedToken = body(request).await?;
        let ask = TokenAsk {
            owner: ask.owner,
            label: ask.label,
            role: ask.role,
            paths: ask.paths,
            ends: match ask.expires_days {
                _ if ask.no_expiry => Ends::Never,
                Some(days) => Ends::After(days),
                None => Ends::Usual,
            },
        };
        desk.make_token(&by, &ask).await
    };
    answer(made.await)
}

/// Revoke a token
#[utoipa::path(
    post,
    path = "/api/v1/access/tokens/{id}/revoke",
    operation_id = "revokeToken",
    tag = "access",
    params(("id" = String, Path, description = "Its prefix"), Seen),
    responses(
        (status = 200, description = "Revoke a token", body = Done),
        Anywhere,
        Conflict,
        Absent,
        Changed
    )
)]
async fn revoke_token(
    State(api): State<Api>,
    Path(id): Path<String>,
    request: Request,
) -> Response {
    let by = by(request.extensions());
    let desk = api.desk_for(request.headers(), Of::Tokens);
    let done = desk.revoke_token(&by, &id).await;
    answer(done.map(|()| Done { changed: true }))
}

#[derive(Serialize, ToSchema)]
#[schema(as = Session)]
struct ShownSession {
    /// Its id; no secret.
    id: String,
    /// Whose it is.
    owner: String,
    /// The browser, as it calls itself.
    client: Option<String>,
    /// From where it began.
    address: Option<String>,
    /// When, UTC.
    began: String,
    /// When it was used last.
    used: String,
    /// When it ends.
    expires: String,
    /// Whether it is the one that asks.
    current: bool,
}

fn session(row: SessionRow, actor: &Actor) -> ShownSession {
    let own = matches!(actor.credential(), Some(Credential::Session(id)) if **id == *row.id);
    ShownSession {
        current: own,
        began: calendar::show(row.created_at),
        used: calendar::show(row.used_at),
        expires: calendar::show(row.expires_at),
        id: row.id,
        owner: row.principal,
        client: row.client,
        address: row.address,
    }
}

#[derive(Serialize, ToSchema)]
#[schema(as = SessionPage)]
struct Sessions {
    /// The oldest first.
    sessions: Vec<ShownSession>,
    /// What `cursor` says to get the next; none where there are none.
    next_cursor: Option<String>,
}

/// Browsers that are signed in: one's own, for an admin everybody's
#[utoipa::path(
    get,
    path = "/api/v1/access/sessions",
    operation_id = "sessions",
    tag = "access",
    params(Whose, Paged),
    responses(
        (status = 200, description = "Browsers that are signed in: one's own, for an admin everybody's", body = Sessions,
         headers(("ETag" = String, description = "For `If-Match` of what changes it"))),
        Anywhere,
        Conflict
    )
)]
async fn sessions(State(api): State<Api>, uri: Uri, extensions: Extensions) -> Response {
    let listed = async {
        let query = Query::of(&uri)?;
        let actor = by(&extensions).actor;
        let of = query.text("of");
        api.access.write_used().await;
        let rows = api.desk().rows().await?;
        let mut shown: Vec<&SessionRow> = rows
            .sessions
            .iter()
            .filter(|row| shows(&actor, &row.principal))
            .filter(|row| of.is_none_or(|of| row.principal == of))
            .collect();
        let key = |row: &&SessionRow| format!("{:020} {}", row.created_at, row.id);
        shown.sort_by_cached_key(key);
        let next_cursor = query.page(&mut shown, key)?;
        let page = Sessions {
            sessions: shown
                .into_iter()
                .map(|row| session(row.clone(), &actor))
                .collect(),
            next_cursor,
        };
        Ok::<_, Refusal>(tagged(&page, &rows, &actor, Of::Sessions))
    };
    listed.await.unwrap_or_else(Refusal::into_response)
}

/// Sign a browser out
#[utoipa::path(
    post,
    path = "/api/v1/access/sessions/{id}/revoke",
    operation_id = "endSession",
    tag = "access",
    params(("id" = String, Path, description = "Its id"), Seen),
    responses(
        (status = 200, description = "Sign a browser out", body = Done),
        Anywhere,
        Conflict,
        Absent,
        Changed
    )
)]
async fn end_session(State(api): State<Api>, Path(id): Path<String>, request: Request) -> Response {
    let by = by(request.extensions());
    let desk = api.desk_for(request.headers(), Of::Sessions);
    let done = desk.end_session(&by, &id).await;
    answer(done.map(|()| Done { changed: true }))
}
