//! The form that works without a script: it publishes or proposes as the API does, with all it asks and refuses.

use std::collections::BTreeMap;

use axum::body::Body;
use axum::extract::{Path, Request, State};
use axum::http::header::{CONTENT_TYPE, HeaderValue};
use axum::http::request::Parts;
use axum::http::{Method, StatusCode};
use axum::response::Response;
use serde::{Deserialize, Serialize};

use super::starters::begin;
use super::{Edit, May, Opened, drafts, endings, missing, open, place_fault, shown, unread};
use crate::api::Refusal;
use crate::api::changes::changes;
use crate::api::proposals::open_asked as propose;
use crate::git::GitError;
use crate::registry::source::Library;
use crate::web::layout::see_other;
use crate::web::page::{Failure, failed, respond_with};
use crate::web::text::{Query, encoded_path};
use crate::web::{Visit, Web};

/// Longest form, in bytes: a text of which every byte is written as three.
const MAX_FORM: usize = 12 * 1024 * 1024;

/// Why what was sent was not taken.
#[derive(Debug, Serialize)]
pub(super) struct Refused {
    lines: Vec<String>,
    /// What the check has found, each with its line of the text.
    problems: Vec<Problem>,
    /// What main says now, where somebody else was quicker.
    theirs: Option<String>,
}

/// `POST /edit/{path}`.
pub(super) async fn submit(
    State(web): State<Web>,
    visit: Visit,
    Path(path): Path<String>,
    request: Request,
) -> Response {
    let (parts, body) = request.into_parts();
    let Ok(bytes) = axum::body::to_bytes(body, MAX_FORM).await else {
        let detail = format!("a form has at most {MAX_FORM} bytes");
        return failed(&web, &visit, Failure::Invalid(detail)).await;
    };
    let fields = Query::of(&String::from_utf8_lossy(&bytes));
    if !visit.sent(&web, fields.get("csrf").unwrap_or_default()) {
        let detail = visit.lang.text("error.forbidden.token", &[]);
        return failed(&web, &visit, Failure::Forbidden(detail)).await;
    }
    let opened = match open(&web, &visit, &path).await {
        Ok(opened) => opened,
        Err(failure) => return failed(&web, &visit, failure).await,
    };
    let proposes = fields.get("do") == Some("propose");
    let sent = async {
        if let Some((status, detail)) = why_not(&visit, &path, &opened, proposes) {
            return Err(Why {
                status,
                detail,
                ..Why::default()
            });
        }
        let to = target(&web, &visit, &path, opened.exists, &fields).await?;
        let taken = send(&web, parts, (&path, to.as_deref()), &fields, proposes).await?;
        Ok::<_, Why>((taken, to))
    };
    match sent.await {
        Ok((taken, to)) => {
            drafts::forget(&web, &visit, &path).await;
            see_other(&match (taken, to) {
                (Taken::Published { commit }, Some(to)) => {
                    format!("/edit/{}?published={commit}", encoded_path(&to))
                }
                (Taken::Published { .. }, None) => "/".to_owned(),
                (Taken::Proposed { number }, _) => format!("/proposals/{number}"),
            })
        }
        Err(why) => refused(&web, &visit, &path, opened, &fields, why).await,
    }
}

/// Why a form is not sent to the API, and the status of that.
fn why_not(visit: &Visit, path: &str, opened: &Opened, proposes: bool) -> Option<(u16, String)> {
    if let Some(why) = &opened.read_only {
        let may = May::of(&visit.actor, opened.kind, path);
        let status = if may.propose || may.publish { 503 } else { 403 };
        return Some((status, why.clone()));
    }
    match (&opened.no_proposals, proposes) {
        (_, false) if !opened.may.publish => {
            Some((403, visit.lang.text("editor.plain_may_not", &[])))
        }
        (Some(why), true) => Some((503, why.clone())),
        (None, true) if opened.commit.is_none() => {
            Some((422, visit.lang.text("editor.propose_empty", &[])))
        }
        _ => None,
    }
}

/// Where the file is afterwards; none where it is to go.
async fn target(
    web: &Web,
    visit: &Visit,
    path: &str,
    exists: bool,
    fields: &Query,
) -> Result<Option<String>, Why> {
    if fields.get("removed").is_some() {
        return Ok(None);
    }
    let to = fields.get("path").map(str::trim);
    let Some(to) = to.filter(|to| exists && *to != path) else {
        return Ok(Some(path.to_owned()));
    };
    let (status, detail) = match place_fault(web, visit, to, Some(path)).await {
        Ok(None) => return Ok(Some(to.to_owned())),
        Ok(Some(fault)) => (422, fault),
        Err(_) => (500, unread().detail),
    };
    Err(Why {
        status,
        detail,
        ..Why::default()
    })
}

/// What the API says of a change that was taken.
#[derive(Debug, Deserialize)]
#[serde(untagged)]
enum Taken {
    Published { commit: String },
    Proposed { number: i64 },
}

/// What the API says of one that was not.
#[derive(Debug, Default, Deserialize)]
struct Why {
    #[serde(default)]
    status: u16,
    #[serde(default)]
    detail: String,
    /// The commit of main now, where somebody else was quicker.
    now: Option<String>,
    #[serde(default)]
    conflicts: Vec<Conflict>,
    #[serde(default)]
    problems: Vec<Problem>,
}

/// What the check has found.
#[derive(Debug, Deserialize, Serialize)]
pub(super) struct Problem {
    path: String,
    line: usize,
    message: String,
    hint: Option<String>,
    /// The line as it was sent; empty in another file.
    #[serde(default)]
    text: String,
}

#[derive(Debug, Deserialize)]
struct Conflict {
    path: String,
    now: Option<String>,
}

/// Sends what a form holds to the API; of the file it is where it is, and where it will be.
async fn send(
    web: &Web,
    mut parts: Parts,
    (path, to): (&str, Option<&str>),
    fields: &Query,
    proposes: bool,
) -> Result<Taken, Why> {
    let internal = |_| Why {
        status: 500,
        detail: unread().detail,
        ..Why::default()
    };
    let field = |name: &str| fields.get(name).unwrap_or_default();
    let base = fields.get("base").map(str::to_owned);
    let stored = stored(web, base.clone(), path).await.map_err(internal)?;
    let mut files: BTreeMap<String, Option<String>> = BTreeMap::new();
    if let Some((_, needs)) = fields.get("starter").and_then(begin) {
        let missing = missing(web, needs).await;
        let missing = missing.map_err(|_| unread()).map_err(internal)?;
        files.extend(missing.into_iter().map(|(path, text)| (path, Some(text))));
    }
    if to != Some(path) {
        files.insert(path.to_owned(), None);
    }
    if let Some(to) = to {
        let text = endings::restored(&stored, field("text"));
        files.insert(to.to_owned(), Some(text));
    }
    let (first, more) = (field("message").trim(), endings::plain(field("more")));
    let body = if proposes {
        serde_json::json!({ "title": first, "message": more, "base": base, "files": files })
    } else {
        let message = format!("{first}\n\n{}", more.trim());
        serde_json::json!({ "message": message, "base": base, "files": files })
    };
    parts.method = Method::POST;
    parts.headers.clear();
    parts
        .headers
        .insert(CONTENT_TYPE, HeaderValue::from_static("application/json"));
    let request = Request::from_parts(parts, Body::from(body.to_string()));
    let api = State(web.api.clone());
    let response = if proposes {
        propose(api, request).await
    } else {
        changes(api, request).await
    };
    let (status, body) = (response.status(), response.into_body());
    let body = axum::body::to_bytes(body, MAX_FORM)
        .await
        .unwrap_or_default();
    if status.is_success()
        && let Ok(taken) = serde_json::from_slice(&body)
    {
        return Ok(taken);
    }
    let mut why: Why = serde_json::from_slice(&body).unwrap_or_default();
    why.status = status.as_u16();
    Err(why)
}

/// The text that an edit was begun from; empty where there was none.
async fn stored(web: &Web, base: Option<String>, path: &str) -> Result<String, Refusal> {
    let (registry, path) = (web.api.registry.clone(), path.to_owned());
    let read = tokio::task::spawn_blocking(move || {
        let (Library::Bare(repository), Some(base)) = (registry.library(), base) else {
            return None;
        };
        let tip = repository.read_ref(crate::git::MAIN).ok()??;
        let commit = repository.reachable(&base, &tip).ok()?;
        String::from_utf8(repository.file(&commit, &path).ok()??).ok()
    });
    Ok(read.await.map_err(|_| unread())?.unwrap_or_default())
}

/// Whether a base is no commit of main, as after a history was put in the place of another.
async fn is_unknown(web: &Web, base: &str, tip: Option<&str>) -> bool {
    let Some(tip) = tip.map(str::to_owned) else {
        return false;
    };
    if base.len() != 40 || !base.bytes().all(|byte| byte.is_ascii_hexdigit()) {
        return true;
    }
    let (registry, base) = (web.api.registry.clone(), base.to_owned());
    let read = tokio::task::spawn_blocking(move || {
        let repository = registry.library().repository()?;
        let found = repository.reachable(&base, &tip);
        Some(matches!(found, Err(GitError::Unknown(_))))
    });
    read.await.ok().flatten().unwrap_or_default()
}

/// The form again, with what was sent and why it was not taken.
async fn refused(
    web: &Web,
    visit: &Visit,
    path: &str,
    opened: Opened,
    fields: &Query,
    why: Why,
) -> Response {
    let text = endings::plain(fields.get("text").unwrap_or_default());
    let theirs = why.conflicts.into_iter().find(|one| one.path == path);
    let mut theirs = theirs.map(|one| one.now.unwrap_or_default());
    let (sent, mut now) = (fields.get("base"), why.now);
    let is_unknown = match sent {
        Some(base) => is_unknown(web, base, opened.commit.as_deref()).await,
        // it was begun when there was nothing
        None => opened.commit.is_some(),
    };
    if theirs.is_none() && is_unknown {
        let raw = opened.exists.then(|| opened.raw.clone());
        (theirs, now) = (Some(raw.unwrap_or_default()), opened.commit.clone());
    }
    let count = i64::try_from(why.problems.len()).unwrap_or(i64::MAX);
    // where it is to be
    let to = fields.get("path").map_or(path, str::trim);
    let problems = marked(why.problems, to, &text);
    let mut lines: Vec<String> = why.detail.lines().map(str::to_owned).collect();
    if !problems.is_empty() {
        let is_problem = |line: &String| {
            line.starts_with("  hint: ") || problems.iter().any(|one| line.ends_with(&*one.message))
        };
        lines.retain(|line| !is_problem(line));
        let found = visit.lang.counted("editor.plain_problems", count, &[]);
        lines.insert(0, found);
    } else if lines.is_empty() {
        lines.push(visit.lang.text("editor.no_answer", &[]));
    }
    // who has seen both texts puts them together, and publishes that in the place of what main says now
    let base = match &theirs {
        Some(_) => {
            lines.push(visit.lang.text("editor.plain_conflict", &[]));
            now
        }
        None => sent.map(str::to_owned),
    };
    let proposes = fields.get("do") == Some("propose");
    let closed = opened.read_only.is_some();
    let shown = shown(web, visit, path, opened).await;
    let page = Edit {
        base,
        text,
        message: fields.get("message").unwrap_or_default().to_owned(),
        more: endings::plain(fields.get("more").unwrap_or_default()),
        to: fields.get("path").unwrap_or(path).to_owned(),
        remove: fields.get("removed").is_some(),
        // what cannot be done now is said above, and can be asked for once more
        read_only: None,
        may_publish: shown.may_publish || (closed && !proposes),
        may_propose: shown.may_propose || (closed && proposes),
        refused: Some(Refused {
            lines,
            problems,
            theirs,
        }),
        // what was sent stands in the form, which the script would replace by what is stored
        data: String::new(),
        ..shown
    };
    let status = StatusCode::from_u16(why.status).unwrap_or(StatusCode::CONFLICT);
    respond_with(web, visit, status, &page).await
}

/// Problems that are shown, and characters of a line that one stands in.
const SHOWN: usize = 100;
const LINE: usize = 200;

/// Problems with the lines of a text that they stand in, the first of them.
fn marked(problems: Vec<Problem>, path: &str, text: &str) -> Vec<Problem> {
    let lines: Vec<&str> = text.lines().collect();
    let line = |problem: &Problem| {
        let index = problem.line.checked_sub(1).filter(|_| problem.path == path);
        let line = index.and_then(|index| lines.get(index)).unwrap_or(&"");
        line.chars().take(LINE).collect()
    };
    let problems = problems.into_iter().take(SHOWN).map(|problem| Problem {
        text: line(&problem),
        ..problem
    });
    problems.collect()
}
