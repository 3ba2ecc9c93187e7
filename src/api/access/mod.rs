//! `/api/v1/access/…`: people, groups, grants, tokens and sessions.

mod changes;
pub mod desk;
pub mod sign_in;

use std::collections::BTreeMap;

use axum::Router;
use axum::extract::{Path, Request, State};
use axum::http::{Extensions, Uri};
use axum::response::{IntoResponse, Response};
use axum::routing::{get, post};
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};

use super::query::Query;
use super::{Api, Refusal, by, json, parse, read};
use crate::access::{Action, Actor, Credential, Kind, Role};
use crate::records::calendar;
use crate::store::{AccessRows, GrantRow, PrincipalRow, SessionRow, TokenRow};

use desk::{Desk, Ends, Newcomer, TokenAsk};

/// Longest request, in bytes.
const MAX_BODY: usize = 64 * 1024;

pub(super) fn routes() -> Router<Api> {
    Router::new()
        .route("/api/v1/access/me", get(me))
        .route("/api/v1/access/people", get(people).post(add))
        .route("/api/v1/access/people/{name}", post(change))
        .route("/api/v1/access/people/{name}/invite", post(invite))
        .route("/api/v1/access/groups", get(groups).post(change_group))
        .route("/api/v1/access/grants", get(grants).post(give))
        .route("/api/v1/access/grants/revoke", post(take))
        .route("/api/v1/access/tokens", get(tokens).post(make_token))
        .route("/api/v1/access/tokens/{id}/revoke", post(revoke_token))
        .route("/api/v1/access/sessions", get(sessions))
        .route("/api/v1/access/sessions/{id}/revoke", post(end_session))
}

/// A request's body as JSON says it.
async fn body<T: DeserializeOwned>(request: Request) -> Result<T, Refusal> {
    let (parts, body) = request.into_parts();
    parse(&read(&parts.headers, body, MAX_BODY, "fixed").await?)
}

fn answer<T: Serialize>(answer: Result<T, Refusal>) -> Response {
    match answer {
        Ok(value) => json(&value),
        Err(refusal) => refusal.into_response(),
    }
}

/// What was asked for is so.
#[derive(Serialize)]
struct Done {
    /// Whether it was not so before.
    changed: bool,
}

#[derive(Serialize)]
struct ShownGrant {
    who: String,
    role: String,
    path: String,
    given: String,
    by: String,
}

impl From<GrantRow> for ShownGrant {
    fn from(row: GrantRow) -> Self {
        Self {
            who: row.who,
            role: row.role,
            path: row.pattern,
            given: calendar::show(row.created_at),
            by: row.created_by,
        }
    }
}

#[derive(Serialize)]
struct Me {
    name: String,
    kind: &'static str,
    groups: Vec<String>,
    /// Where it has which role, after what its credential takes away.
    grants: Vec<ShownRole>,
    /// What the credential leaves at most; absent where it leaves everything.
    #[serde(skip_serializing_if = "Option::is_none")]
    at_most: Option<&'static str>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    only_at: Vec<String>,
    credential: Option<String>,
}

#[derive(Serialize)]
struct ShownRole {
    role: &'static str,
    path: String,
}

async fn me(request: Request) -> Response {
    let actor = by(request.extensions()).actor;
    let scope = actor.permissions().scope();
    json(&Me {
        name: actor.name.to_string(),
        kind: match actor.kind() {
            Kind::Local => "local",
            Kind::Person => "person",
            Kind::Service => "service",
            Kind::Nobody => "nobody",
        },
        groups: actor.groups().iter().map(ToString::to_string).collect(),
        grants: actor
            .permissions()
            .grants()
            .map(|grant| ShownRole {
                role: grant.role.as_str(),
                path: grant.pattern.to_string(),
            })
            .collect(),
        at_most: scope.role.map(Role::as_str),
        only_at: scope.patterns.iter().map(ToString::to_string).collect(),
        credential: actor.credential().map(|credential| match credential {
            Credential::Token(prefix) => format!("token {prefix}"),
            Credential::Session(_) => "session".to_owned(),
            Credential::Bearer(..) => "access token".to_owned(),
        }),
    })
}

#[derive(Serialize)]
struct ShownPerson {
    name: String,
    kind: String,
    email: Option<String>,
    disabled: bool,
    /// Whether they may do everything.
    admin: bool,
    groups: Vec<String>,
    /// Whom an OpenID provider calls this.
    subject: Option<String>,
    has_password: bool,
    added: String,
    by: String,
}

fn person(row: PrincipalRow, rows: &AccessRows) -> ShownPerson {
    let actor = rows.actor(&row, &[], crate::access::Scope::default());
    ShownPerson {
        admin: !row.disabled && actor.may(Action::Administer, ""),
        groups: actor.groups().iter().map(ToString::to_string).collect(),
        has_password: row.password.is_some(),
        added: calendar::show(row.created_at),
        name: row.name,
        kind: row.kind,
        email: row.email,
        disabled: row.disabled,
        subject: row.subject,
        by: row.created_by,
    }
}

async fn people(State(api): State<Api>) -> Response {
    #[derive(Serialize)]
    struct Answer {
        people: Vec<ShownPerson>,
    }
    answer(api.desk().rows().await.map(|rows| {
        Answer {
            people: rows
                .principals
                .clone()
                .into_iter()
                .map(|row| person(row, &rows))
                .collect(),
        }
    }))
}

async fn add(State(api): State<Api>, request: Request) -> Response {
    #[derive(Deserialize)]
    #[serde(deny_unknown_fields)]
    struct Ask {
        name: String,
        #[serde(default)]
        service: bool,
        email: Option<String>,
        #[serde(default)]
        admin: bool,
    }
    #[derive(Serialize)]
    struct Answer {
        name: String,
    }
    let by = by(request.extensions());
    let made = async {
        let ask: Ask = body(request).await?;
        let newcomer = Newcomer {
            name: ask.name,
            service: ask.service,
            email: ask.email,
            admin: ask.admin,
        };
        let name = api.desk().add(&by, &newcomer).await?;
        Ok(Answer { name })
    };
    answer(made.await)
}

async fn change(State(api): State<Api>, Path(name): Path<String>, request: Request) -> Response {
    #[derive(Deserialize)]
    #[serde(deny_unknown_fields)]
    struct Ask {
        disabled: bool,
    }
    let by = by(request.extensions());
    let done = async {
        let ask: Ask = body(request).await?;
        api.desk().set_disabled(&by, &name, ask.disabled).await?;
        Ok(Done { changed: true })
    };
    answer(done.await)
}

async fn invite(State(api): State<Api>, Path(name): Path<String>, request: Request) -> Response {
    #[derive(Serialize)]
    struct Answer {
        /// Where they choose a password; to be used once.
        url: String,
    }
    let by = by(request.extensions());
    let code = api.desk().invite(&by, &name).await;
    answer(code.map(|code| Answer {
        url: format!("{}/setup?code={code}", api.url),
    }))
}

async fn groups(State(api): State<Api>) -> Response {
    #[derive(Serialize)]
    struct Answer {
        groups: Vec<Group>,
    }
    #[derive(Serialize)]
    struct Group {
        name: String,
        members: Vec<Member>,
    }
    #[derive(Serialize)]
    struct Member {
        name: String,
        /// `here`, or `oidc` where the provider says so.
        source: String,
    }
    answer(api.desk().rows().await.map(|rows| {
        let mut groups: BTreeMap<String, Vec<Member>> = BTreeMap::new();
        for row in rows.memberships {
            groups.entry(row.group_name).or_default().push(Member {
                name: row.principal,
                source: row.source,
            });
        }
        Answer {
            groups: groups
                .into_iter()
                .map(|(name, members)| Group { name, members })
                .collect(),
        }
    }))
}

async fn change_group(State(api): State<Api>, request: Request) -> Response {
    #[derive(Deserialize)]
    #[serde(deny_unknown_fields)]
    struct Ask {
        group: String,
        #[serde(default)]
        add: Vec<String>,
        #[serde(default)]
        remove: Vec<String>,
    }
    let by = by(request.extensions());
    let done = async {
        let ask: Ask = body(request).await?;
        api.desk()
            .change_group(&by, &ask.group, &ask.add, &ask.remove)
            .await?;
        Ok(Done { changed: true })
    };
    answer(done.await)
}

async fn grants(State(api): State<Api>) -> Response {
    #[derive(Serialize)]
    struct Answer {
        grants: Vec<ShownGrant>,
    }
    answer(api.desk().rows().await.map(|rows| Answer {
        grants: rows.grants.into_iter().map(ShownGrant::from).collect(),
    }))
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct GrantAsk {
    who: String,
    role: String,
    #[serde(default = "everything")]
    path: String,
}

fn everything() -> String {
    "**".to_owned()
}

async fn give(State(api): State<Api>, request: Request) -> Response {
    let by = by(request.extensions());
    let done = async {
        let ask: GrantAsk = body(request).await?;
        let changed = api.desk().give(&by, &ask.who, &ask.role, &ask.path).await?;
        Ok(Done { changed })
    };
    answer(done.await)
}

async fn take(State(api): State<Api>, request: Request) -> Response {
    let by = by(request.extensions());
    let done = async {
        let ask: GrantAsk = body(request).await?;
        let changed = api.desk().take(&by, &ask.who, &ask.role, &ask.path).await?;
        Ok(Done { changed })
    };
    answer(done.await)
}

/// Whose rows an actor is shown: all, or those of one.
fn shown_of(actor: &Actor, uri: &Uri) -> Result<Option<String>, Refusal> {
    let query = Query::of(uri, &["of"])?;
    if actor.may(Action::Administer, "") {
        return Ok(query.text("of").map(str::to_owned));
    }
    Ok(Some(actor.name.to_string()))
}

#[derive(Serialize)]
struct ShownToken {
    prefix: String,
    owner: String,
    label: String,
    role: Option<String>,
    paths: Vec<String>,
    made: String,
    by: String,
    expires: Option<String>,
    revoked: Option<String>,
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

async fn tokens(State(api): State<Api>, uri: Uri, extensions: Extensions) -> Response {
    #[derive(Serialize)]
    struct Answer {
        tokens: Vec<ShownToken>,
    }
    let listed = async {
        let of = shown_of(&by(&extensions).actor, &uri)?;
        api.access.write_used().await;
        let rows = api.desk().rows().await?;
        Ok(Answer {
            tokens: rows
                .tokens
                .into_iter()
                .filter(|row| of.as_ref().is_none_or(|of| row.principal == *of))
                .map(ShownToken::from)
                .collect(),
        })
    };
    answer(listed.await)
}

async fn make_token(State(api): State<Api>, request: Request) -> Response {
    #[derive(Deserialize)]
    #[serde(deny_unknown_fields)]
    struct Ask {
        owner: Option<String>,
        label: String,
        role: Option<String>,
        #[serde(default)]
        paths: Vec<String>,
        expires_days: Option<u32>,
        #[serde(default)]
        no_expiry: bool,
    }
    let by = by(request.extensions());
    let made = async {
        let ask: Ask = body(request).await?;
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
        api.desk().make_token(&by, &ask).await
    };
    answer(made.await)
}

async fn revoke_token(
    State(api): State<Api>,
    Path(id): Path<String>,
    request: Request,
) -> Response {
    let by = by(request.extensions());
    let done = api.desk().revoke_token(&by, &id).await;
    answer(done.map(|()| Done { changed: true }))
}

#[derive(Serialize)]
struct ShownSession {
    id: String,
    owner: String,
    /// The browser, as it calls itself.
    client: Option<String>,
    address: Option<String>,
    began: String,
    used: String,
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

async fn sessions(State(api): State<Api>, uri: Uri, extensions: Extensions) -> Response {
    #[derive(Serialize)]
    struct Answer {
        sessions: Vec<ShownSession>,
    }
    let listed = async {
        let actor = by(&extensions).actor;
        let of = shown_of(&actor, &uri)?;
        api.access.write_used().await;
        let rows = api.desk().rows().await?;
        Ok(Answer {
            sessions: rows
                .sessions
                .into_iter()
                .filter(|row| of.as_ref().is_none_or(|of| row.principal == *of))
                .map(|row| session(row, &actor))
                .collect(),
        })
    };
    answer(listed.await)
}

async fn end_session(State(api): State<Api>, Path(id): Path<String>, request: Request) -> Response {
    let by = by(request.extensions());
    let done = api.desk().end_session(&by, &id).await;
    answer(done.map(|()| Done { changed: true }))
}

impl Api {
    /// Where who may do what is changed.
    pub fn desk(&self) -> Desk {
        Desk::new(
            self.access.clone(),
            self.records.clone(),
            self.sign_in.clone(),
            self.token_days,
        )
    }
}
