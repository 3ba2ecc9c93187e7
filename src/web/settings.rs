//! One's own tokens, sessions and password, the limits in force; and, for admins, people, groups and grants.

use axum::Router;
use axum::body::Body;
use axum::extract::State;
use axum::http::header::{self, HeaderValue};
use axum::http::{Extensions, StatusCode};
use axum::response::Response;
use axum::routing::get;
use serde::Serialize;

use super::Web;
use super::account::{by, from, why};
use super::layout::{form, see_other};
use super::page::{Failure, Page, answer, failed, show};
use super::text::{Lang, Query};
use super::visit::Visit;
use crate::access::{Action, Credential, GROUP, Scope};
use crate::api::access::desk::{Ends, Newcomer, TokenAsk};
use crate::api::{Limit, Refusal};
use crate::clock::unix_millis;
use crate::store::AccessRows;

pub(super) fn routes() -> Router<Web> {
    Router::new()
        .route("/settings", get(settings).post(change))
        .route("/settings/people", get(people).post(change_people))
}

#[derive(Debug, Serialize)]
struct Token {
    prefix: String,
    owner: String,
    label: String,
    role: Option<String>,
    paths: Vec<String>,
    /// Seconds since 1970.
    expires: Option<i64>,
    used: Option<i64>,
}

#[derive(Debug, Serialize)]
struct Session {
    id: String,
    owner: String,
    client: Option<String>,
    address: Option<String>,
    began: i64,
    used: i64,
    current: bool,
}

#[derive(Debug, Serialize)]
struct Role {
    role: String,
    path: String,
}

/// A limit in force.
#[derive(Debug, Serialize)]
struct Bound {
    name: &'static str,
    meaning: &'static str,
    value: i64,
    /// The key of its unit's text.
    unit: &'static str,
}

impl From<&Limit> for Bound {
    fn from(limit: &Limit) -> Self {
        let &Limit {
            name,
            meaning,
            value,
        } = limit;
        Self {
            name,
            meaning,
            value,
            unit: unit(name),
        }
    }
}

/// How the names of limits end, with the key of the unit that this says; the longest first.
const UNITS: &[(&str, &str)] = &[
    ("_ms_per_minute", "settings.limits.ms_per_minute"),
    ("_per_minute", "settings.limits.per_minute"),
    ("_bytes", "settings.limits.bytes"),
    ("_ms", "settings.limits.ms"),
    ("_seconds", "settings.limits.seconds"),
    ("_hours", "settings.limits.hours"),
    ("_days", "settings.limits.days"),
];

/// The key of the unit of a limit.
fn unit(name: &str) -> &'static str {
    UNITS
        .iter()
        .find(|(end, _)| name.ends_with(end))
        .map_or("settings.limits.count", |(_, key)| key)
}

/// A token just made, shown this once.
#[derive(Debug, Serialize)]
struct Made {
    token: String,
    notes: Vec<String>,
}

/// What was typed into a form that was refused.
#[derive(Debug, Default, Serialize)]
struct Typed {
    name: String,
    email: String,
    who: String,
    path: String,
    group: String,
    member: String,
    owner: String,
    label: String,
    paths: String,
    days: String,
}

impl Typed {
    fn of(fields: &Query) -> Self {
        let of = |deeds: &[&str], name: &str| {
            let is_it = fields.get("do").is_some_and(|deed| deeds.contains(&deed));
            let typed = fields.get(name).filter(|_| is_it);
            typed.unwrap_or_default().to_owned()
        };
        let group = ["join", "leave"];
        Self {
            name: of(&["add"], "name"),
            email: of(&["add"], "email"),
            who: of(&["grant"], "who"),
            path: of(&["grant"], "path"),
            group: of(&group, "group"),
            member: of(&group, "name"),
            owner: of(&["token"], "owner"),
            label: of(&["token"], "label"),
            paths: of(&["token"], "paths"),
            days: of(&["token"], "days"),
        }
    }
}

#[derive(Debug, Serialize)]
#[allow(
    clippy::struct_excessive_bools,
    reason = "a template asks each by its name"
)]
struct SettingsPage {
    name: String,
    /// Whether they have signed in, and can sign out.
    signed_in: bool,
    has_password: bool,
    admin: bool,
    open: bool,
    roles: Vec<Role>,
    groups: Vec<String>,
    tokens: Vec<Token>,
    sessions: Vec<Session>,
    limits: Vec<Bound>,
    made: Option<Made>,
    error: Option<String>,
    done: Option<String>,
    typed: Typed,
}

impl Page for SettingsPage {
    const TEMPLATE: &'static str = "settings.html";
    const SECTION: &'static str = "settings";

    fn title(&self, lang: Lang) -> String {
        lang.text("settings.title", &[])
    }
}

#[derive(Debug, Serialize)]
struct Person {
    name: String,
    kind: String,
    email: Option<String>,
    disabled: bool,
    admin: bool,
    groups: Vec<String>,
    roles: Vec<Role>,
}

#[derive(Debug, Serialize)]
struct Shared {
    who: String,
    members: Vec<String>,
    roles: Vec<Role>,
}

#[derive(Debug, Serialize)]
struct PeoplePage {
    people: Vec<Person>,
    /// `everyone` and groups, with what is given to them.
    shared: Vec<Shared>,
    tokens: Vec<Token>,
    sessions: Vec<Session>,
    roles: Vec<&'static str>,
    /// A link for somebody who was invited, shown this once.
    invited: Option<String>,
    made: Option<Made>,
    error: Option<String>,
    typed: Typed,
}

impl Page for PeoplePage {
    const TEMPLATE: &'static str = "settings_people.html";
    const SECTION: &'static str = "settings";

    fn title(&self, lang: Lang) -> String {
        lang.text("people.title", &[])
    }
}

fn tokens(rows: &AccessRows, of: Option<&str>) -> Vec<Token> {
    let now = unix_millis();
    rows.tokens
        .iter()
        .filter(|row| of.is_none_or(|of| row.principal == of))
        .filter(|row| row.revoked_at.is_none() && row.expires_at.is_none_or(|at| at > now))
        .map(|row| Token {
            prefix: row.prefix.clone(),
            owner: row.principal.clone(),
            label: row.label.clone(),
            role: row.role.clone(),
            paths: row
                .patterns
                .iter()
                .flat_map(|text| text.lines())
                .map(str::to_owned)
                .collect(),
            expires: row.expires_at.map(|at| at / 1000),
            used: row.used_at.map(|at| at / 1000),
        })
        .collect()
}

fn sessions(rows: &AccessRows, of: Option<&str>, visit: &Visit) -> Vec<Session> {
    let now = unix_millis();
    let current = |id: &str| matches!(visit.actor.credential(), Some(Credential::Session(own)) if **own == *id);
    rows.sessions
        .iter()
        .filter(|row| of.is_none_or(|of| row.principal == of) && row.expires_at > now)
        .map(|row| Session {
            current: current(&row.id),
            id: row.id.clone(),
            owner: row.principal.clone(),
            client: row.client.clone(),
            address: row.address.clone(),
            began: row.created_at / 1000,
            used: row.used_at / 1000,
        })
        .collect()
}

fn roles_of(rows: &AccessRows, who: &str) -> Vec<Role> {
    rows.grants
        .iter()
        .filter(|row| row.who == who)
        .map(|row| Role {
            role: row.role.clone(),
            path: row.pattern.clone(),
        })
        .collect()
}

fn failure(refusal: Refusal) -> Failure {
    match refusal.status {
        StatusCode::FORBIDDEN => Failure::Forbidden(refusal.detail),
        StatusCode::SERVICE_UNAVAILABLE => Failure::Unavailable(refusal.detail),
        _ => Failure::Invalid(refusal.detail),
    }
}

/// The rows as they are now; none where a work tree is served.
async fn rows(web: &Web) -> Result<AccessRows, Failure> {
    web.api.access.write_used().await;
    if web.api.records.is_none() {
        return Ok(AccessRows::default());
    }
    web.api.desk().rows().await.map_err(failure)
}

async fn settings_page(web: &Web, visit: &Visit) -> Result<SettingsPage, Failure> {
    let rows = rows(web).await?;
    let name = visit.actor.name.to_string();
    let own = rows.principal(&name);
    Ok(SettingsPage {
        signed_in: matches!(visit.actor.credential(), Some(Credential::Session(_))),
        has_password: own.is_some_and(|row| row.password.is_some()),
        admin: visit.actor.may(Action::Administer, ""),
        open: web.api.access.is_open(),
        roles: visit
            .actor
            .permissions()
            .grants()
            .map(|grant| Role {
                role: grant.role.to_string(),
                path: grant.pattern.to_string(),
            })
            .collect(),
        groups: visit
            .actor
            .groups()
            .iter()
            .map(ToString::to_string)
            .collect(),
        tokens: tokens(&rows, Some(&name)),
        sessions: sessions(&rows, Some(&name), visit),
        limits: web.api.limits.iter().map(Bound::from).collect(),
        made: None,
        error: None,
        done: None,
        typed: Typed::default(),
        name,
    })
}

async fn settings(State(web): State<Web>, visit: Visit) -> Response {
    answer(&web, &visit, settings_page(&web, &visit).await).await
}

/// A token that a form asks for.
fn ask(fields: &Query) -> TokenAsk {
    let days = fields.get("days").and_then(|days| days.parse().ok());
    TokenAsk {
        owner: fields.get("owner").map(str::to_owned),
        label: fields.get("label").unwrap_or_default().to_owned(),
        role: fields.get("role").map(str::to_owned),
        paths: fields
            .get("paths")
            .unwrap_or_default()
            .split([',', ' ', '\n', '\r'])
            .filter(|path| !path.is_empty())
            .map(str::to_owned)
            .collect(),
        ends: match (days, fields.get("days")) {
            (Some(days), _) => Ends::After(days),
            (None, Some("never")) => Ends::Never,
            (None, _) => Ends::Usual,
        },
    }
}

/// What is shown once is kept by no cache.
fn once(mut response: Response) -> Response {
    let headers = response.headers_mut();
    headers.insert(header::CACHE_CONTROL, HeaderValue::from_static("no-store"));
    headers.remove(header::ETAG);
    response
}

async fn change(State(web): State<Web>, visit: Visit, ext: Extensions, body: Body) -> Response {
    let fields = match form(&web, &visit, body).await {
        Ok(fields) => fields,
        Err(failure) => return failed(&web, &visit, failure).await,
    };
    let (desk, by) = (web.api.desk(), by(&visit, &ext));
    let text = |name: &str| fields.get(name).unwrap_or_default();
    let (mut made, mut error, mut done) = (None, None, None);
    match text("do") {
        "token" => {
            let asked = TokenAsk {
                owner: None,
                ..ask(&fields)
            };
            match desk.make_token(&by, &asked).await {
                Ok(token) => {
                    made = Some(Made {
                        token: token.token,
                        notes: token.notes,
                    });
                }
                Err(refusal) => error = Some(refusal.detail),
            }
        }
        "revoke" => match desk.revoke_token(&by, text("id")).await {
            Ok(()) => return see_other("/settings"),
            Err(refusal) => error = Some(refusal.detail),
        },
        "end" => match desk.end_session(&by, text("id")).await {
            Ok(()) => return see_other("/settings"),
            Err(refusal) => error = Some(refusal.detail),
        },
        "password" => {
            let from = from(&visit, &ext);
            let changed = desk.change_password(&by, text("current"), text("new"), &from);
            match changed.await {
                Ok(()) => done = Some(visit.lang.text("settings.password.done", &[])),
                Err(not) => error = Some(why(visit.lang, &not)),
            }
        }
        _ => error = Some(visit.lang.text("error.invalid.help", &[])),
    }
    let status = if error.is_some() {
        StatusCode::UNPROCESSABLE_ENTITY
    } else {
        StatusCode::OK
    };
    match settings_page(&web, &visit).await {
        Ok(page) => {
            let page = SettingsPage {
                made,
                typed: if error.is_some() {
                    Typed::of(&fields)
                } else {
                    Typed::default()
                },
                error,
                done,
                ..page
            };
            let mut response = once(show(&web, &visit, &page).await);
            *response.status_mut() = status;
            response
        }
        Err(failure) => failed(&web, &visit, failure).await,
    }
}

async fn people_page(web: &Web, visit: &Visit) -> Result<PeoplePage, Failure> {
    let rows = rows(web).await?;
    let mut shared: Vec<String> = rows
        .memberships
        .iter()
        .map(|row| format!("{GROUP}{}", row.group_name))
        .chain(rows.grants.iter().map(|row| row.who.clone()))
        .filter(|who| rows.principal(who).is_none())
        .collect();
    shared.sort_unstable();
    shared.dedup();
    Ok(PeoplePage {
        people: rows
            .principals
            .iter()
            .map(|row| {
                let actor = rows.actor(row, &[], Scope::default());
                Person {
                    name: row.name.clone(),
                    kind: row.kind.clone(),
                    email: row.email.clone(),
                    disabled: row.disabled,
                    admin: actor.may(Action::Administer, ""),
                    groups: actor.groups().iter().map(ToString::to_string).collect(),
                    roles: roles_of(&rows, &row.name),
                }
            })
            .collect(),
        shared: shared
            .into_iter()
            .map(|who| Shared {
                members: rows
                    .memberships
                    .iter()
                    .filter(|row| who.strip_prefix(GROUP) == Some(&*row.group_name))
                    .map(|row| row.principal.clone())
                    .collect(),
                roles: roles_of(&rows, &who),
                who,
            })
            .collect(),
        tokens: tokens(&rows, None),
        sessions: sessions(&rows, None, visit),
        roles: crate::access::Role::ALL
            .iter()
            .map(|role| role.as_str())
            .collect(),
        invited: None,
        made: None,
        error: None,
        typed: Typed::default(),
    })
}

async fn people(State(web): State<Web>, visit: Visit) -> Response {
    answer(&web, &visit, people_page(&web, &visit).await).await
}

async fn change_people(
    State(web): State<Web>,
    visit: Visit,
    ext: Extensions,
    body: Body,
) -> Response {
    let fields = match form(&web, &visit, body).await {
        Ok(fields) => fields,
        Err(failure) => return failed(&web, &visit, failure).await,
    };
    let (desk, by) = (web.api.desk(), by(&visit, &ext));
    let text = |name: &str| fields.get(name).unwrap_or_default();
    let path = fields.get("path").unwrap_or("**");
    let (mut made, mut invited) = (None, None);
    let done = match text("do") {
        "add" => {
            let newcomer = Newcomer {
                name: text("name").to_owned(),
                service: fields.get("kind") == Some("service"),
                email: fields.get("email").map(str::to_owned),
                admin: false,
            };
            desk.add(&by, &newcomer).await.map(drop)
        }
        "disable" => desk.set_disabled(&by, text("name"), true).await,
        "enable" => desk.set_disabled(&by, text("name"), false).await,
        "invite" => desk.invite(&by, text("name")).await.map(|code| {
            invited = Some(format!("{}/setup?code={code}", web.url));
        }),
        "grant" => desk
            .give(&by, text("who"), text("role"), path)
            .await
            .map(drop),
        "ungrant" => desk
            .take(&by, text("who"), text("role"), path)
            .await
            .map(drop),
        "join" => {
            let name = [text("name").to_owned()];
            desk.change_group(&by, text("group"), &name, &[]).await
        }
        "leave" => {
            let name = [text("name").to_owned()];
            desk.change_group(&by, text("group"), &[], &name).await
        }
        "token" => desk.make_token(&by, &ask(&fields)).await.map(|token| {
            made = Some(Made {
                token: token.token,
                notes: token.notes,
            });
        }),
        "revoke" => desk.revoke_token(&by, text("id")).await,
        "end" => desk.end_session(&by, text("id")).await,
        _ => Ok(()),
    };
    if done.is_ok() && made.is_none() && invited.is_none() {
        return see_other("/settings/people");
    }
    match people_page(&web, &visit).await {
        Ok(page) => {
            let status = done
                .as_ref()
                .map_or_else(|refusal| refusal.status, |()| StatusCode::OK);
            let page = PeoplePage {
                invited,
                made,
                typed: match &done {
                    Ok(()) => Typed::default(),
                    Err(_) => Typed::of(&fields),
                },
                error: done.err().map(|refusal| refusal.detail),
                ..page
            };
            let mut response = once(show(&web, &visit, &page).await);
            *response.status_mut() = status;
            response
        }
        Err(failure) => failed(&web, &visit, failure).await,
    }
}
