//! The editor: `/edit/{path}` for any file of the library, `/new` for one that is not there yet.
//!
//! The text is edited in the browser; here is what it begins with, and the form that works without a script. What is saved goes
//! through the API's own way of publishing.

mod check;
mod drafts;
pub(super) mod endings;
mod place;
mod starters;
mod words;

use std::collections::BTreeMap;

use axum::Router;
use axum::body::Body;
use axum::extract::{Path, Request, State};
use axum::http::header::{CONTENT_TYPE, HeaderValue};
use axum::http::request::Parts;
use axum::http::{Method, StatusCode};
use axum::response::{IntoResponse, Response};
use axum::routing::{get, post};
use serde::{Deserialize, Serialize};

use super::layout::see_other;
use super::page::{Failure, Page, answer, failed, show};
use super::text::{Lang, Query, encoded};
use super::{Visit, Web};
use crate::access::{Action, Actor};
use crate::api::changes::{changes, gate};
use crate::api::{Refusal, json};
use crate::registry::source::Library;

use place::{Found, Kind, fault, find, reads};
use starters::{Starter, begin, outline, starters};

/// Longest form, in bytes: a text of which every byte is written as three.
const MAX_FORM: usize = 12 * 1024 * 1024;

pub(super) fn routes() -> Router<Web> {
    Router::new()
        .route("/edit/{*path}", get(edit).post(submit))
        .route("/new", get(new))
        .route("/editor/words", get(words::words))
        .route("/editor/file", get(file))
        .route("/editor/place", get(may_be_there))
        .route("/editor/check", post(check::check))
        .route(
            "/editor/draft",
            get(drafts::list).put(drafts::put).delete(drafts::delete),
        )
}

/// What the page shows without a script, and gives to it.
#[derive(Debug, Serialize)]
struct Edit {
    path: String,
    kind: Kind,
    exists: bool,
    base: Option<String>,
    /// The text with `\n` alone.
    text: String,
    message: String,
    starter: Option<String>,
    read_only: Option<String>,
    may_publish: bool,
    /// Why what was sent was not published.
    refused: Option<Refused>,
    /// The commit that was made of what was sent.
    published: Option<String>,
    /// The page of the prompt.
    view: Option<String>,
    /// What the script begins with, as JSON.
    data: String,
}

#[derive(Debug, Serialize)]
struct Refused {
    lines: Vec<String>,
    /// What main says now, where somebody else was quicker.
    theirs: Option<String>,
}

impl Page for Edit {
    const TEMPLATE: &'static str = "edit.html";
    const SECTION: &'static str = "library";

    fn title(&self, lang: Lang) -> String {
        lang.text("editor.title", &[("path", &self.path)])
    }
}

/// What the script gets.
#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
struct Data<'a> {
    path: &'a str,
    kind: Kind,
    base: Option<&'a str>,
    exists: bool,
    raw: &'a str,
    may: May,
    read_only: Option<&'a str>,
    draft: Option<drafts::Shown>,
    comes_with: BTreeMap<String, String>,
    max_bytes: usize,
    texts: BTreeMap<&'static str, &'static str>,
}

#[derive(Debug, Clone, Copy, Serialize)]
struct May {
    publish: bool,
    propose: bool,
}

impl May {
    fn of(actor: &Actor, kind: Kind, path: &str) -> Self {
        let publish = match kind {
            Kind::Labels => Action::MoveLabel,
            Kind::Library => Action::ChangePolicy,
            _ => Action::Publish,
        };
        Self {
            publish: actor.may(publish, path),
            propose: actor.may(Action::Propose, path),
        }
    }
}

/// The texts of the editor's script.
fn texts(lang: Lang) -> BTreeMap<&'static str, &'static str> {
    let all = lang.table().iter();
    all.filter_map(|(key, text)| Some((key.strip_prefix("editor.")?, text.as_str())))
        .collect()
}

/// What is at a path for somebody: as if there were nothing where they may not look.
struct Opened {
    kind: Kind,
    raw: String,
    exists: bool,
    commit: Option<String>,
    read_only: Option<String>,
    may: May,
    comes_with: BTreeMap<String, String>,
    starter: Option<String>,
}

async fn open(web: &Web, visit: &Visit, path: &str) -> Result<Opened, Failure> {
    let kind = Kind::of(path).ok_or(Failure::NotFound)?;
    let may = May::of(&visit.actor, kind, path);
    if !reads(&visit.actor, path) {
        return Err(Failure::NotFound);
    }
    let Found {
        bytes,
        commit,
        work_tree,
    } = look(web, path).await?;
    let text = |key: &str| visit.lang.text(&format!("editor.{key}"), &[]);
    let exists = bytes.is_some();
    if !(exists || may.propose || may.publish) {
        return Err(Failure::NotFound);
    }
    let read_only = if work_tree {
        Some(text("read_only_work_tree"))
    } else if !(may.propose || may.publish) {
        Some(text("read_only_role"))
    } else {
        gate(&web.api).err().map(|refusal| refusal.detail)
    };
    let starter = visit.query.get("starter").filter(|_| !exists);
    let (raw, comes_with) = match (bytes, starter.and_then(begin)) {
        (Some(bytes), _) => {
            let raw = String::from_utf8(bytes).map_err(|_| Failure::Invalid(text("binary")))?;
            (raw, BTreeMap::new())
        }
        (None, Some((raw, needs))) => (raw, missing(web, needs).await?),
        (None, None) => {
            let name = path.rsplit('/').next().unwrap_or(path);
            let name = name.split('.').next().unwrap_or(name);
            (outline(kind, visit.lang, name), BTreeMap::new())
        }
    };
    Ok(Opened {
        kind,
        raw,
        exists,
        commit,
        read_only,
        may,
        comes_with,
        starter: starter.map(str::to_owned),
    })
}

async fn look(web: &Web, path: &str) -> Result<Found, Failure> {
    let (registry, path) = (web.api.registry.clone(), path.to_owned());
    tokio::task::spawn_blocking(move || find(&registry, &path))
        .await
        .unwrap_or_else(|error| Err(Failure::Internal(error.to_string())))
}

/// Of the files that a starter needs, those that the library has not.
async fn missing(
    web: &Web,
    needs: BTreeMap<String, String>,
) -> Result<BTreeMap<String, String>, Failure> {
    let mut out = BTreeMap::new();
    for (path, text) in needs {
        if look(web, &path).await?.bytes.is_none() {
            out.insert(path, text);
        }
    }
    Ok(out)
}

/// `GET /edit/{path}`.
async fn edit(State(web): State<Web>, visit: Visit, Path(path): Path<String>) -> Response {
    let page = async {
        let opened = open(&web, &visit, &path).await?;
        let published = visit
            .query
            .get("published")
            .filter(|commit| commit.len() == 40 && commit.bytes().all(|b| b.is_ascii_hexdigit()));
        Ok(Edit {
            published: published.map(str::to_owned),
            ..shown(&web, &visit, &path, opened).await
        })
    };
    answer(&web, &visit, page.await).await
}

async fn shown(web: &Web, visit: &Visit, path: &str, opened: Opened) -> Edit {
    let limits = web.api.registry.limits();
    let data = Data {
        path,
        kind: opened.kind,
        base: opened.commit.as_deref(),
        exists: opened.exists,
        raw: &opened.raw,
        may: opened.may,
        read_only: opened.read_only.as_deref(),
        draft: match opened.read_only {
            None => drafts::of(web, visit, path).await,
            Some(_) => None,
        },
        comes_with: opened.comes_with,
        max_bytes: match opened.kind {
            Kind::Resource => limits.resource_file_bytes,
            Kind::Values => limits.values_file_bytes,
            _ => limits.prompt_file_bytes,
        },
        texts: texts(visit.lang),
    };
    let data = serde_json::to_string(&data).unwrap_or_default();
    let name = path.rsplit('/').next().unwrap_or(path);
    let name = name.split('.').next().unwrap_or(name);
    let key = if opened.exists {
        "message_edit"
    } else {
        "message_new"
    };
    Edit {
        path: path.to_owned(),
        kind: opened.kind,
        exists: opened.exists,
        base: opened.commit,
        text: endings::plain(&opened.raw),
        message: visit.lang.text(&format!("editor.{key}"), &[("name", name)]),
        starter: opened.starter,
        may_publish: opened.may.publish && opened.read_only.is_none(),
        read_only: opened.read_only,
        refused: None,
        published: None,
        view: (opened.kind == Kind::Prompt && opened.exists)
            .then(|| format!("/prompts/{}", encoded(name))),
        data,
    }
}

/// `POST /edit/{path}`: the form that works without a script.
async fn submit(
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
    if let Some(why) = opened.read_only {
        return failed(&web, &visit, Failure::Forbidden(why)).await;
    }
    if !opened.may.publish {
        let why = visit.lang.text("editor.plain_propose", &[]);
        return failed(&web, &visit, Failure::Forbidden(why)).await;
    }
    let base = fields.get("base").map(str::to_owned);
    let sent = fields.get("text").unwrap_or_default();
    let message = fields.get("message").unwrap_or_default();
    match publish(&web, parts, &path, base, sent, message, &fields).await {
        Ok(Published { commit }) => {
            drafts::forget(&web, &visit, &path).await;
            let place: Vec<String> = path.split('/').map(encoded).collect();
            see_other(&format!("/edit/{}?published={commit}", place.join("/")))
        }
        Err(why) => refused(&web, &visit, &path, opened, &fields, why).await,
    }
}

/// What the API says of a change that was published.
#[derive(Debug, Deserialize)]
struct Published {
    commit: String,
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
}

#[derive(Debug, Deserialize)]
struct Conflict {
    path: String,
    now: Option<String>,
}

/// Publishes as the API does, with all it asks and refuses.
async fn publish(
    web: &Web,
    mut parts: Parts,
    path: &str,
    base: Option<String>,
    sent: &str,
    message: &str,
    fields: &Query,
) -> Result<Published, Why> {
    let internal = |_| Why {
        status: 500,
        detail: "the library could not be read; the server's log says more".into(),
        ..Why::default()
    };
    let stored = stored(web, base.clone(), path).await.map_err(internal)?;
    let mut files = BTreeMap::new();
    if let Some((_, needs)) = fields.get("starter").and_then(begin) {
        files = missing(web, needs)
            .await
            .map_err(|_| unread())
            .map_err(internal)?;
    }
    files.insert(path.to_owned(), endings::restored(&stored, sent));
    let body = serde_json::json!({ "base": base, "files": files, "message": message });
    parts.method = Method::POST;
    parts.headers.clear();
    parts
        .headers
        .insert(CONTENT_TYPE, HeaderValue::from_static("application/json"));
    let request = Request::from_parts(parts, Body::from(body.to_string()));
    let response = changes(State(web.api.clone()), request).await;
    let (status, body) = (response.status(), response.into_body());
    let body = axum::body::to_bytes(body, MAX_FORM)
        .await
        .unwrap_or_default();
    if status.is_success()
        && let Ok(published) = serde_json::from_slice(&body)
    {
        return Ok(published);
    }
    let mut why: Why = serde_json::from_slice(&body).unwrap_or_default();
    why.status = status.as_u16();
    Err(why)
}

fn unread() -> Refusal {
    Refusal::new(
        StatusCode::INTERNAL_SERVER_ERROR,
        "the library could not be read; the server's log says more",
    )
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

/// The form again, with what was sent and why it was not published.
async fn refused(
    web: &Web,
    visit: &Visit,
    path: &str,
    opened: Opened,
    fields: &Query,
    why: Why,
) -> Response {
    let theirs = why.conflicts.into_iter().find(|one| one.path == path);
    let theirs = theirs.map(|one| one.now.unwrap_or_default());
    let mut lines: Vec<String> = why.detail.lines().map(str::to_owned).collect();
    // who has seen both texts puts them together, and publishes that in the place of what main says now
    let base = match &theirs {
        Some(_) => {
            lines.push(visit.lang.text("editor.plain_conflict", &[]));
            why.now
        }
        None => fields.get("base").map(str::to_owned),
    };
    let page = Edit {
        base,
        text: endings::plain(fields.get("text").unwrap_or_default()),
        message: fields.get("message").unwrap_or_default().to_owned(),
        refused: Some(Refused { lines, theirs }),
        // what was sent stands in the form, which the script would replace by what is stored
        data: String::new(),
        ..shown(web, visit, path, opened).await
    };
    let mut response = show(web, visit, &page).await;
    if response.status() == StatusCode::OK {
        *response.status_mut() = StatusCode::from_u16(why.status).unwrap_or(StatusCode::CONFLICT);
    }
    response
}

/// `GET /editor/file?path=…`: a file as it is stored at the tip of main.
async fn file(State(web): State<Web>, visit: Visit) -> Response {
    #[derive(Serialize)]
    struct Answer {
        /// None where it is no text.
        raw: Option<String>,
        commit: Option<String>,
    }
    let path = visit.query.get("path").unwrap_or_default();
    let found = if Kind::of(path).is_some() && reads(&visit.actor, path) {
        look(&web, path).await
    } else {
        Err(Failure::NotFound)
    };
    match found {
        Ok(Found {
            bytes: Some(bytes),
            commit,
            ..
        }) => json(&Answer {
            raw: String::from_utf8(bytes).ok(),
            commit,
        }),
        Ok(_) | Err(Failure::NotFound) => {
            Refusal::new(StatusCode::NOT_FOUND, "there is no such file on main").into_response()
        }
        Err(error) => {
            tracing::error!(?error, "a file could not be read");
            unread().into_response()
        }
    }
}

/// `GET /editor/place?path=…&from=…`: whether a file can be put there.
async fn may_be_there(State(web): State<Web>, visit: Visit) -> Response {
    #[derive(Serialize)]
    struct Answer<'a> {
        path: &'a str,
        kind: Option<Kind>,
    }
    let path = visit.query.get("path").unwrap_or_default();
    match place_fault(&web, &visit, path, visit.query.get("from")).await {
        Ok(None) => json(&Answer {
            path,
            kind: Kind::of(path),
        }),
        Ok(Some(why)) => Refusal::new(StatusCode::UNPROCESSABLE_ENTITY, why).into_response(),
        Err(error) => {
            tracing::error!(?error, "a place could not be looked at");
            unread().into_response()
        }
    }
}

async fn place_fault(
    web: &Web,
    visit: &Visit,
    path: &str,
    from: Option<&str>,
) -> Result<Option<String>, Failure> {
    let taken = Kind::of(path).is_some() && look(web, path).await?.bytes.is_some();
    let snapshot = web.api.registry.snapshot();
    Ok(fault(&snapshot.latest, &visit.actor, path, from, taken))
}

/// The page on which a new file begins.
#[derive(Debug, Serialize)]
struct New {
    starters: Vec<Starter>,
    /// Folders of prompts that there are, for the field's list.
    folders: Vec<String>,
    starter: String,
    kind: String,
    folder: String,
    name: String,
    fault: Option<String>,
    data: String,
}

impl Page for New {
    const TEMPLATE: &'static str = "edit_new.html";
    const SECTION: &'static str = "library";

    fn title(&self, lang: Lang) -> String {
        lang.text("editor.new_title", &[])
    }
}

/// What the script of that page gets.
#[derive(Debug, Serialize)]
struct NewData {
    texts: BTreeMap<&'static str, &'static str>,
}

/// Where a new file goes.
fn new_path(kind: &str, folder: &str, name: &str) -> String {
    let within = |top: &str, file: String| {
        let folder = folder.trim().trim_matches('/');
        if folder.is_empty() {
            format!("{top}/{file}")
        } else {
            format!("{top}/{folder}/{file}")
        }
    };
    let name = name.trim();
    match kind {
        "partial" => within("partials", format!("{}.md", name.trim_end_matches(".md"))),
        "values" => within("values", format!("{}.txt", name.trim_end_matches(".txt"))),
        "resource" if name.contains('.') => within("resources", name.to_owned()),
        "resource" => within("resources", format!("{name}.md")),
        _ => within("prompts", format!("{}.md", name.trim_end_matches(".md"))),
    }
}

/// `GET /new`: the form, or, when it is filled in, the editor of the new file.
async fn new(State(web): State<Web>, visit: Visit) -> Response {
    let field = |name: &str| visit.query.get(name).unwrap_or_default().to_owned();
    let (starter, kind, folder, name) = (
        field("starter"),
        field("kind"),
        field("folder"),
        field("name"),
    );
    if !visit.actor.may_somewhere(Action::Propose) {
        let why = visit.lang.text("editor.read_only_role", &[]);
        return failed(&web, &visit, Failure::Forbidden(why)).await;
    }
    let mut wrong = None;
    if !name.is_empty() {
        let path = new_path(&kind, &folder, &name);
        wrong = match place_fault(&web, &visit, &path, None).await {
            Ok(fault) => fault,
            Err(failure) => return failed(&web, &visit, failure).await,
        };
        if wrong.is_none() {
            let place: Vec<String> = path.split('/').map(encoded).collect();
            let query = if Kind::of(&path) == Some(Kind::Prompt) && begin(&starter).is_some() {
                format!("?starter={}", encoded(&starter))
            } else {
                String::new()
            };
            return see_other(&format!("/edit/{}{query}", place.join("/")));
        }
    }
    let snapshot = web.api.registry.snapshot();
    let mut folders: Vec<String> = snapshot
        .latest
        .list(None)
        .iter()
        .filter(|prompt| reads(&visit.actor, &prompt.path) && !prompt.folder.is_empty())
        .map(|prompt| prompt.folder.to_string())
        .collect();
    folders.dedup();
    let data = NewData {
        texts: texts(visit.lang),
    };
    let page = New {
        starters: starters(visit.lang),
        folders,
        starter,
        kind: if kind.is_empty() {
            "prompt".into()
        } else {
            kind
        },
        folder,
        name,
        fault: wrong,
        data: serde_json::to_string(&data).unwrap_or_default(),
    };
    show(&web, &visit, &page).await
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_new_file_goes_where_its_kind_is() {
        let check = |kind, folder, name, expected: &str| {
            assert_eq!(new_path(kind, folder, name), expected);
        };
        check("prompt", "sre", "triage", "prompts/sre/triage.md");
        check("", "", "triage.md", "prompts/triage.md");
        check("partial", "/a/", "x", "partials/a/x.md");
        check("values", "", "services", "values/services.txt");
        check(
            "resource",
            "runbook",
            "payments",
            "resources/runbook/payments.md",
        );
        check("resource", "image", "a.png", "resources/image/a.png");
    }
}
