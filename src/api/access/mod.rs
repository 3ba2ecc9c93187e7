//! `/api/v1/access/…`: people, groups, grants; tokens and sessions are in `credentials.rs`.

mod changes;
mod credentials;
pub mod desk;
pub mod sign_in;
mod tags;

use std::collections::BTreeMap;

use axum::extract::{Path, Request, State};
use axum::http::{Extensions, HeaderMap, Uri};
use axum::response::{IntoResponse, Response};
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};
use utoipa::ToSchema;
use utoipa_axum::router::OpenApiRouter;
use utoipa_axum::routes;

use super::openapi::{Absent, Anywhere, Changed, Conflict, Paged, Seen, Somebody, Unfit, Unread};
use super::query::Query;
use super::tag::{etag, seen_tag};
use super::{Api, Refusal, by, json, parse, read};
use crate::access::{Action, Actor, Credential, Kind, Role};
use crate::records::calendar;
use crate::store::{AccessRows, GrantRow, PrincipalRow};

use desk::{Desk, Newcomer};
use tags::Of;

/// Longest request, in bytes.
const MAX_BODY: usize = 64 * 1024;

pub(super) fn routes() -> OpenApiRouter<Api> {
    OpenApiRouter::default()
        .routes(routes!(me))
        .routes(routes!(people, add))
        .routes(routes!(change))
        .routes(routes!(invite))
        .routes(routes!(groups, change_group))
        .routes(routes!(grants, give))
        .routes(routes!(take))
        .merge(credentials::routes())
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

/// A list with the tag of all that it is a page of.
fn tagged(page: &impl Serialize, rows: &AccessRows, actor: &Actor, of: Of) -> Response {
    let mut response = json(page);
    etag(&mut response, &of.tag(rows, actor));
    response
}

/// What was asked for is so.
#[derive(Serialize, ToSchema)]
#[schema(as = AccessChanged)]
struct Done {
    /// Whether it was not so before.
    changed: bool,
}

#[derive(Serialize, ToSchema)]
#[schema(as = Grant)]
struct ShownGrant {
    /// A person, a service, `group:NAME` or `everyone`.
    who: String,
    /// The role.
    role: String,
    /// Where, e.g. `prompts/sre/**`.
    path: String,
    /// When, UTC.
    given: String,
    /// By whom.
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

#[derive(Serialize, ToSchema)]
struct Me {
    /// The name in records.
    name: String,
    /// `local`, `person`, `service` or `nobody`.
    kind: &'static str,
    /// The groups.
    groups: Vec<String>,
    /// Where it has which role, after what its credential takes away.
    grants: Vec<ShownRole>,
    /// What the credential leaves at most; absent where it leaves everything.
    #[serde(skip_serializing_if = "Option::is_none")]
    at_most: Option<&'static str>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    only_at: Vec<String>,
    /// What was shown; none on the machine itself.
    credential: Option<String>,
}

#[derive(Serialize, ToSchema)]
#[schema(as = RoleAt)]
struct ShownRole {
    /// The role.
    role: &'static str,
    /// Where.
    path: String,
}

/// Who asks, and what they may do
#[utoipa::path(
    get,
    path = "/api/v1/access/me",
    operation_id = "me",
    tag = "access",
    responses(
        (status = 200, description = "Who asks, and what they may do", body = Me),
        Anywhere
    )
)]
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

#[derive(Serialize, ToSchema)]
#[schema(as = Person)]
struct ShownPerson {
    /// The name in records.
    name: String,
    /// `person` or `service`.
    kind: String,
    /// What their commits carry.
    email: Option<String>,
    /// Whether nobody gets in by any credential of theirs.
    disabled: bool,
    /// Whether they may do everything.
    admin: bool,
    /// Their groups.
    groups: Vec<String>,
    /// Whom an OpenID provider calls this.
    subject: Option<String>,
    /// Whether they can sign in with one.
    has_password: bool,
    /// When, UTC.
    added: String,
    /// By whom.
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

#[derive(Serialize, ToSchema)]
#[schema(as = PersonPage)]
struct People {
    /// By name.
    people: Vec<ShownPerson>,
    /// What `cursor` says to get the next; none where there are none.
    next_cursor: Option<String>,
}

/// People and services
#[utoipa::path(
    get,
    path = "/api/v1/access/people",
    operation_id = "people",
    tag = "access",
    params(Paged),
    responses(
        (status = 200, description = "People and services", body = People,
         headers(("ETag" = String, description = "For `If-Match` of what changes it"))),
        Anywhere,
        Conflict
    )
)]
async fn people(State(api): State<Api>, uri: Uri, extensions: Extensions) -> Response {
    let listed = async {
        let query = Query::of(&uri)?;
        let rows = api.desk().rows().await?;
        let mut people: Vec<ShownPerson> = rows
            .principals
            .iter()
            .map(|row| person(row.clone(), &rows))
            .collect();
        people.sort_by(|a, b| a.name.cmp(&b.name));
        let next_cursor = query.page(&mut people, |person| person.name.clone())?;
        let page = People {
            people,
            next_cursor,
        };
        Ok::<_, Refusal>(tagged(&page, &rows, &by(&extensions).actor, Of::People))
    };
    listed.await.unwrap_or_else(Refusal::into_response)
}

#[derive(Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
struct PersonAsk {
    /// The name in records.
    name: String,
    /// Whether it is a program.
    #[serde(default)]
    service: bool,
    /// What their commits carry.
    email: Option<String>,
    /// Whether they may do everything.
    #[serde(default)]
    admin: bool,
}

#[derive(Serialize, ToSchema)]
struct PersonMade {
    /// The name as it is kept.
    name: String,
}

/// Add a person or a service
#[utoipa::path(
    post,
    path = "/api/v1/access/people",
    operation_id = "addPerson",
    tag = "access",
    params(Seen),
    request_body = PersonAsk,
    responses(
        (status = 200, description = "Add a person or a service", body = PersonMade),
        Anywhere,
        Conflict,
        Changed,
        Unread,
        Unfit
    )
)]
async fn add(State(api): State<Api>, request: Request) -> Response {
    let by = by(request.extensions());
    let desk = api.desk_for(request.headers(), Of::People);
    let made = async {
        let ask: PersonAsk = body(request).await?;
        let newcomer = Newcomer {
            name: ask.name,
            service: ask.service,
            email: ask.email,
            admin: ask.admin,
        };
        let name = desk.add(&by, &newcomer).await?;
        Ok(PersonMade { name })
    };
    answer(made.await)
}

#[derive(Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
struct PersonChange {
    /// Whether nobody gets in by any credential of theirs.
    disabled: bool,
}

/// Let somebody in no more, or again
#[utoipa::path(
    post,
    path = "/api/v1/access/people/{name}",
    operation_id = "changePerson",
    tag = "access",
    params(Somebody, Seen),
    request_body = PersonChange,
    responses(
        (status = 200, description = "Let somebody in no more, or again", body = Done),
        Anywhere,
        Conflict,
        Absent,
        Changed,
        Unread
    )
)]
async fn change(State(api): State<Api>, Path(name): Path<String>, request: Request) -> Response {
    let by = by(request.extensions());
    let desk = api.desk_for(request.headers(), Of::People);
    let done = async {
        let ask: PersonChange = body(request).await?;
        desk.set_disabled(&by, &name, ask.disabled).await?;
        Ok(Done { changed: true })
    };
    answer(done.await)
}

#[derive(Serialize, ToSchema)]
struct Invited {
    /// Where they choose a password; to be used once.
    url: String,
}

/// A link with which somebody chooses a password
#[utoipa::path(
    post,
    path = "/api/v1/access/people/{name}/invite",
    operation_id = "invitePerson",
    tag = "access",
    params(Somebody),
    responses(
        (status = 200, description = "A link with which somebody chooses a password", body = Invited),
        Anywhere,
        Conflict,
        Absent
    )
)]
async fn invite(State(api): State<Api>, Path(name): Path<String>, request: Request) -> Response {
    let by = by(request.extensions());
    let code = api.desk().invite(&by, &name).await;
    answer(code.map(|code| Invited {
        url: format!("{}/setup?code={code}", api.url),
    }))
}

#[derive(Serialize, ToSchema)]
#[schema(as = GroupPage)]
struct Groups {
    /// By name.
    groups: Vec<Group>,
    /// What `cursor` says to get the next; none where there are none.
    next_cursor: Option<String>,
}

#[derive(Serialize, ToSchema)]
struct Group {
    /// Its name.
    name: String,
    /// Who is in it.
    members: Vec<Member>,
}

#[derive(Serialize, ToSchema)]
struct Member {
    /// A person or a service.
    name: String,
    /// `here`, or `oidc` where the provider says so.
    source: String,
}

/// Groups and who is in them
#[utoipa::path(
    get,
    path = "/api/v1/access/groups",
    operation_id = "groups",
    tag = "access",
    params(Paged),
    responses(
        (status = 200, description = "Groups and who is in them", body = Groups,
         headers(("ETag" = String, description = "For `If-Match` of what changes it"))),
        Anywhere,
        Conflict
    )
)]
async fn groups(State(api): State<Api>, uri: Uri, extensions: Extensions) -> Response {
    let listed = async {
        let query = Query::of(&uri)?;
        let rows = api.desk().rows().await?;
        let mut members: BTreeMap<&str, Vec<Member>> = BTreeMap::new();
        for row in &rows.memberships {
            members.entry(&row.group_name).or_default().push(Member {
                name: row.principal.clone(),
                source: row.source.clone(),
            });
        }
        let mut groups: Vec<Group> = members
            .into_iter()
            .map(|(name, members)| Group {
                name: name.to_owned(),
                members,
            })
            .collect();
        let next_cursor = query.page(&mut groups, |group| group.name.clone())?;
        let page = Groups {
            groups,
            next_cursor,
        };
        Ok::<_, Refusal>(tagged(&page, &rows, &by(&extensions).actor, Of::Groups))
    };
    listed.await.unwrap_or_else(Refusal::into_response)
}

#[derive(Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
struct GroupChange {
    /// The group; one that nobody is in is made by this.
    group: String,
    /// Who is put into it.
    #[serde(default)]
    add: Vec<String>,
    /// Who is taken out of it.
    #[serde(default)]
    remove: Vec<String>,
}

/// Put people into a group and take others out
#[utoipa::path(
    post,
    path = "/api/v1/access/groups",
    operation_id = "changeGroup",
    tag = "access",
    params(Seen),
    request_body = GroupChange,
    responses(
        (status = 200, description = "Put people into a group and take others out", body = Done),
        Anywhere,
        Conflict,
        Absent,
        Changed,
        Unread,
        Unfit
    )
)]
async fn change_group(State(api): State<Api>, request: Request) -> Response {
    let by = by(request.extensions());
    let desk = api.desk_for(request.headers(), Of::Groups);
    let done = async {
        let ask: GroupChange = body(request).await?;
        desk.change_group(&by, &ask.group, &ask.add, &ask.remove)
            .await?;
        Ok(Done { changed: true })
    };
    answer(done.await)
}

#[derive(Serialize, ToSchema)]
#[schema(as = GrantPage)]
struct Grants {
    /// By whom they are of.
    grants: Vec<ShownGrant>,
    /// What `cursor` says to get the next; none where there are none.
    next_cursor: Option<String>,
}

/// Who has which role where
#[utoipa::path(
    get,
    path = "/api/v1/access/grants",
    operation_id = "grants",
    tag = "access",
    params(Paged),
    responses(
        (status = 200, description = "Who has which role where", body = Grants,
         headers(("ETag" = String, description = "For `If-Match` of what changes it"))),
        Anywhere,
        Conflict
    )
)]
async fn grants(State(api): State<Api>, uri: Uri, extensions: Extensions) -> Response {
    let listed = async {
        let query = Query::of(&uri)?;
        let rows = api.desk().rows().await?;
        let mut grants: Vec<ShownGrant> = rows.grants.iter().cloned().map(Into::into).collect();
        let key = |grant: &ShownGrant| format!("{}\n{}\n{}", grant.who, grant.path, grant.role);
        grants.sort_by_cached_key(key);
        let next_cursor = query.page(&mut grants, key)?;
        let page = Grants {
            grants,
            next_cursor,
        };
        Ok::<_, Refusal>(tagged(&page, &rows, &by(&extensions).actor, Of::Grants))
    };
    listed.await.unwrap_or_else(Refusal::into_response)
}

#[derive(Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
struct GrantAsk {
    /// A person, a service, `group:NAME` or `everyone`.
    who: String,
    /// `reader`, `author`, `reviewer`, `publisher` or `admin`.
    role: String,
    /// Where, e.g. `prompts/sre/**`; everywhere where it is left out.
    #[serde(default = "everything")]
    path: String,
}

fn everything() -> String {
    "**".to_owned()
}

/// Give a role at a path
#[utoipa::path(
    post,
    path = "/api/v1/access/grants",
    operation_id = "grant",
    tag = "access",
    params(Seen),
    request_body = GrantAsk,
    responses(
        (status = 200, description = "Give a role at a path", body = Done),
        Anywhere,
        Conflict,
        Absent,
        Changed,
        Unread,
        Unfit
    )
)]
async fn give(State(api): State<Api>, request: Request) -> Response {
    let by = by(request.extensions());
    let desk = api.desk_for(request.headers(), Of::Grants);
    let done = async {
        let ask: GrantAsk = body(request).await?;
        let changed = desk.give(&by, &ask.who, &ask.role, &ask.path).await?;
        Ok(Done { changed })
    };
    answer(done.await)
}

/// Take a role at a path away
#[utoipa::path(
    post,
    path = "/api/v1/access/grants/revoke",
    operation_id = "revokeGrant",
    tag = "access",
    params(Seen),
    request_body = GrantAsk,
    responses(
        (status = 200, description = "Take a role at a path away", body = Done),
        Anywhere,
        Conflict,
        Changed,
        Unread,
        Unfit
    )
)]
async fn take(State(api): State<Api>, request: Request) -> Response {
    let by = by(request.extensions());
    let desk = api.desk_for(request.headers(), Of::Grants);
    let done = async {
        let ask: GrantAsk = body(request).await?;
        let changed = desk.take(&by, &ask.who, &ask.role, &ask.path).await?;
        Ok(Done { changed })
    };
    answer(done.await)
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

    /// The same for a request that says what it has seen.
    fn desk_for(&self, headers: &HeaderMap, of: Of) -> Desk {
        self.desk().seen(of, seen_tag(headers))
    }
}
