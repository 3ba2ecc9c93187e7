//! The versions of a prompt: who made them and why, what differs between two, going back to one, putting a label on one.
//!
//! What is written goes through the API's own handlers, in this process: one way, one set of rules.

use std::sync::Arc;

use axum::body::Body;
use axum::extract::{Path, Request, State};
use axum::http::header::{self, HeaderValue};
use axum::http::{Extensions, Method};
use axum::response::Response;
use serde::Serialize;
use tower::ServiceExt as _;

use super::diffing::{File, files};
use super::page::{Failure, Page, answer, respond_with};
use super::prompt::{Head, head, seen};
use super::text::{Lang, Query, encoded};
use super::visit::{Visit, reads};
use super::{Web, layout};
use crate::access::Action;
use crate::api;
use crate::history::{Numbered, Version};
use crate::http::ClientAddress;
use crate::prompt::name::version_number;
use crate::registry::Snapshot;
use crate::versions::diff;

/// Versions of one page, newest first.
const SHOWN: usize = 40;
/// Longest answer of the API that is read, in bytes.
const MAX_ANSWER: usize = 256 * 1024;

/// What the template of the list sees.
#[derive(Debug, Serialize)]
pub struct VersionsPage {
    /// The prompt.
    pub head: Head,
    /// Versions, newest first.
    pub versions: Vec<Row>,
    /// Labels that can be put on a version.
    pub known_labels: Vec<String>,
    /// Whether this actor may publish the prompt.
    pub may_restore: bool,
    /// Whether this actor may move labels.
    pub may_label: bool,
    /// Where older ones are.
    pub older: Option<String>,
    /// Why there are none, where they are not known yet.
    pub problem: Option<String>,
    /// What has just been done, a line each.
    pub done: Vec<String>,
    /// Why it was not done.
    pub refused: Option<String>,
}

/// A version.
#[derive(Debug, Serialize)]
pub struct Row {
    /// Its number.
    pub number: u64,
    /// Labels on it.
    pub labels: Vec<String>,
    /// Whether it is what is served.
    pub served: bool,
    /// Whether it is the newest.
    pub newest: bool,
    /// The commit it is of.
    pub commit: String,
    /// Seconds since 1970.
    pub at: i64,
    /// Who made it.
    pub author: String,
    /// The first line of the message.
    pub subject: String,
    /// The path it had then.
    pub path: String,
    /// What was typed to put a label on it, and was refused.
    pub promote: Option<Typed>,
    /// What was typed to go back to it, and was refused.
    pub restore: Option<Typed>,
}

/// What a refused form held.
#[derive(Debug, Clone, Serialize)]
pub struct Typed {
    /// The label; empty where none is moved.
    pub label: String,
    /// Why.
    pub reason: String,
}

/// What the template of a comparison sees.
#[derive(Debug, Serialize)]
pub struct DiffPage {
    /// The prompt.
    pub head: Head,
    /// The older one.
    pub from: u64,
    /// The newer one.
    pub to: u64,
    /// All numbers, newest first, to choose from.
    pub numbers: Vec<u64>,
    /// The files.
    pub source: Vec<File>,
    /// By example: its name and what its messages differ in.
    pub rendered: Vec<Example>,
}

/// An example that was rendered from both.
#[derive(Debug, Serialize)]
pub struct Example {
    /// Its name.
    pub name: String,
    /// What differs; nothing where it renders the same.
    pub files: Vec<File>,
}

impl Page for VersionsPage {
    const TEMPLATE: &'static str = "versions.html";
    const SECTION: &'static str = "library";

    fn title(&self, lang: Lang) -> String {
        lang.text("versions.window", &[("name", &self.head.name)])
    }
}

impl Page for DiffPage {
    const TEMPLATE: &'static str = "diff.html";
    const SECTION: &'static str = "library";

    fn title(&self, _: Lang) -> String {
        format!("{} v{} → v{}", self.head.name, self.from, self.to)
    }
}

/// `GET /prompts/{name}/versions`.
pub(super) async fn page(
    State(web): State<Web>,
    visit: Visit,
    Path(name): Path<String>,
) -> Response {
    let done = visit.query.get("done").map(|commit| {
        let commit: String = commit.chars().take(40).collect();
        visit.lang.text("versions.done", &[("commit", &commit)])
    });
    let before = visit.query.get("before").and_then(version_number);
    let page = listed(&web, &visit, &name, before).map(|page| VersionsPage {
        done: done.into_iter().collect(),
        ..page
    });
    answer(&web, &visit, page).await
}

fn listed(
    web: &Web,
    visit: &Visit,
    name: &str,
    before: Option<u64>,
) -> Result<VersionsPage, Failure> {
    let snapshot = web.api.registry.snapshot();
    let prompt = seen(&snapshot.catalog, visit, name)?;
    let head = head(&snapshot, visit, &prompt);
    let numbered = snapshot
        .history
        .as_deref()
        .and_then(|history| history.of(name).cloned());
    // offered to who may move them, and so reads labels.toml
    let mut known_labels: Vec<String> = snapshot
        .latest
        .labels()
        .map(|(label, ..)| label.to_owned())
        .collect();
    known_labels.push("production".to_owned());
    known_labels.sort();
    known_labels.dedup();
    let before = before.unwrap_or(u64::MAX);
    let all = numbered
        .as_deref()
        .map(|numbered| rows(&snapshot, visit, &head, numbered, before));
    let (versions, older) = all.unwrap_or_default();
    let can_write = web.api.gate.is_some();
    Ok(VersionsPage {
        problem: numbered
            .is_none()
            .then(|| match web.api.registry.counting() {
                Some((done, total)) => visit.lang.text(
                    "versions.counting",
                    &[("done", &done.to_string()), ("total", &total.to_string())],
                ),
                None => visit.lang.text("versions.not_numbered", &[]),
            }),
        versions,
        known_labels,
        may_restore: can_write && visit.actor.may(Action::Publish, &prompt.path),
        may_label: can_write && visit.actor.may(Action::MoveLabel, "labels.toml"),
        older: older.map(|number| format!("/prompts/{name}/versions?before=v{number}")),
        done: Vec::new(),
        refused: None,
        head,
    })
}

/// Versions below a number that were where this visit may read, newest first, and where the next ones begin.
fn rows(
    snapshot: &Snapshot,
    visit: &Visit,
    head: &Head,
    numbered: &Numbered,
    before: u64,
) -> (Vec<Row>, Option<u64>) {
    let served = snapshot
        .served_version(&head.name)
        .map(|(number, _)| number);
    let latest = numbered.latest();
    let all = numbered.versions.iter().enumerate().rev();
    let mut out: Vec<Row> = all
        .map(|(index, version)| (index as u64 + 1, version))
        .filter(|(number, version)| *number < before && visit.reads(&version.path))
        .take(SHOWN + 1)
        .map(|(number, version)| Row {
            number,
            labels: head
                .labels
                .iter()
                .filter(|label| label.version == number)
                .map(|label| label.name.clone())
                .collect(),
            served: served == Some(number),
            newest: number == latest,
            commit: version.commit.hex().to_string(),
            at: version.commit.seconds,
            author: version.commit.author.to_string(),
            subject: version.commit.subject.to_string(),
            path: version.path.to_string(),
            promote: None,
            restore: None,
        })
        .collect();
    let older = (out.len() > SHOWN).then(|| out[SHOWN - 1].number);
    out.truncate(SHOWN);
    (out, older)
}

/// `GET /prompts/{name}/diff?from=v3&to=v7`.
pub(super) async fn compare(
    State(web): State<Web>,
    visit: Visit,
    Path(name): Path<String>,
) -> Response {
    let page = compared(&web, &visit, &name).await;
    answer(&web, &visit, page).await
}

async fn compared(web: &Web, visit: &Visit, name: &str) -> Result<DiffPage, Failure> {
    let snapshot = web.api.registry.snapshot();
    let shown = seen(&snapshot.catalog, visit, name)?;
    let head = head(&snapshot, visit, &shown);
    let numbered = numbered(&snapshot, visit, name)?;
    let number = |key: &str, otherwise: u64| {
        let text = visit.query.get(key);
        text.map_or(Ok(otherwise), |text| meant(&snapshot, name, text))
            .and_then(|number| readable(&numbered, visit, number))
    };
    let (to, after) = number("to", numbered.latest())?;
    let (from, before) = number("from", to.saturating_sub(1).max(1))?;
    let reading = web.api.registry.clone();
    let (latest, of) = (visit.catalog(&snapshot.latest), name.to_owned());
    let actor = visit.actor.clone();
    let compared = off_the_threads(web, move || {
        let (Some(repository), Some(prompt)) = (reading.library().repository(), latest.prompt(&of))
        else {
            return Err(Failure::NotFound);
        };
        diff::compare(
            &reading,
            repository,
            &latest,
            &prompt.path,
            (from, &before),
            (to, &after),
            &|path| reads(&actor, path),
        )
        .map_err(|error| Failure::Internal(error.to_string()))
    })
    .await?;
    Ok(DiffPage {
        from,
        to,
        numbers: (1..=numbered.latest())
            .rev()
            .filter(|number| {
                let version = numbered.get(*number);
                version.is_some_and(|version| visit.reads(&version.path))
            })
            .take(500)
            .collect(),
        source: files(&compared.source),
        rendered: compared
            .rendered
            .into_iter()
            .map(|(name, diff)| Example {
                name,
                files: files(&diff),
            })
            .collect(),
        head,
    })
}

/// Runs what reads git where it may block, among those few that may at a time.
pub(super) async fn off_the_threads<T: Send + 'static>(
    web: &Web,
    read: impl FnOnce() -> Result<T, Failure> + Send + 'static,
) -> Result<T, Failure> {
    let permit = web.api.registry.reading().await;
    let _permit = permit.map_err(|error| Failure::Unavailable(error.to_string()))?;
    tokio::task::spawn_blocking(read)
        .await
        .map_err(|error| Failure::Internal(error.to_string()))?
}

/// The versions of a prompt, where they are known.
pub(super) fn numbered(
    snapshot: &Snapshot,
    visit: &Visit,
    name: &str,
) -> Result<Arc<Numbered>, Failure> {
    let history = snapshot.history.as_deref();
    let found = history.and_then(|history| history.of(name).cloned());
    found.ok_or_else(|| Failure::Unavailable(visit.lang.text("versions.not_numbered", &[])))
}

/// The number of a version that a query names: `v3`, `3`, or a label that is on it.
pub(super) fn meant(snapshot: &Snapshot, name: &str, text: &str) -> Result<u64, Failure> {
    version_number(text)
        .or_else(|| text.parse().ok())
        .or_else(|| snapshot.latest.label(text, name))
        .ok_or(Failure::NotFound)
}

/// A version by its number; one that was where this visit may not read looks absent.
pub(super) fn readable(
    numbered: &Numbered,
    visit: &Visit,
    number: u64,
) -> Result<(u64, Version), Failure> {
    numbered
        .get(number)
        .filter(|version| visit.reads(&version.path))
        .map(|version| (number, version.clone()))
        .ok_or(Failure::NotFound)
}

/// `POST /prompts/{name}/restore`: the text of an earlier version becomes the newest.
pub(super) async fn restore(
    State(web): State<Web>,
    visit: Visit,
    Path(name): Path<String>,
    request: Request,
) -> Response {
    act(&web, &visit, &name, "revert", request).await
}

/// `POST /prompts/{name}/promote`: a label is put on a version.
pub(super) async fn promote(
    State(web): State<Web>,
    visit: Visit,
    Path(name): Path<String>,
    request: Request,
) -> Response {
    act(&web, &visit, &name, "label", request).await
}

/// Sends a form to the API as its own request would be, and shows what came of it.
async fn act(web: &Web, visit: &Visit, name: &str, deed: &str, request: Request) -> Response {
    let (parts, body) = request.into_parts();
    let fields = match layout::form(web, visit, body).await {
        Ok(fields) => fields,
        Err(failure) => return super::page::failed(web, visit, failure).await,
    };
    let said = |name: &str| fields.get(name).unwrap_or_default();
    let mut ask = serde_json::json!({ "version": said("version"), "reason": said("reason") });
    if deed == "label" {
        ask["label"] = said("label").into();
    }
    let sent = called(
        web,
        &parts.extensions,
        &format!("/api/v1/prompts/{}/{deed}", encoded(name)),
        &ask,
    )
    .await;
    match sent {
        Ok(answer) => {
            let commit = answer["commit"].as_str().unwrap_or_default();
            layout::see_other(&format!(
                "/prompts/{}/versions?done={}",
                encoded(name),
                encoded(commit)
            ))
        }
        Err(Refused { status, detail }) => match again(web, visit, name, deed, &fields) {
            Ok(page) => {
                let page = VersionsPage {
                    refused: Some(detail),
                    ..page
                };
                respond_with(web, visit, status, &page).await
            }
            Err(failure) => super::page::failed(web, visit, failure).await,
        },
    }
}

/// The list with a form as it was sent: on the page that has its version.
fn again(
    web: &Web,
    visit: &Visit,
    name: &str,
    deed: &str,
    fields: &Query,
) -> Result<VersionsPage, Failure> {
    let said = |name: &str| fields.get(name).unwrap_or_default();
    let mut page = listed(web, visit, name, None)?;
    let Some(number) = version_number(said("version")) else {
        return Ok(page);
    };
    if page.versions.iter().all(|row| row.number != number) {
        page = listed(web, visit, name, number.checked_add(1))?;
    }
    if let Some(row) = page.versions.iter_mut().find(|row| row.number == number) {
        let typed = Some(Typed {
            label: said("label").to_owned(),
            reason: said("reason").to_owned(),
        });
        if deed == "label" {
            row.promote = typed;
        } else {
            row.restore = typed;
        }
    }
    Ok(page)
}

/// What the API has refused.
struct Refused {
    status: axum::http::StatusCode,
    detail: String,
}

/// Calls the API in this process, for the actor of a request.
async fn called(
    web: &Web,
    extensions: &Extensions,
    path: &str,
    ask: &serde_json::Value,
) -> Result<serde_json::Value, Refused> {
    let failed = |detail: String| Refused {
        status: axum::http::StatusCode::INTERNAL_SERVER_ERROR,
        detail,
    };
    let mut request = Request::builder()
        .method(Method::POST)
        .uri(path)
        .header(
            header::CONTENT_TYPE,
            HeaderValue::from_static("application/json"),
        )
        .body(Body::from(ask.to_string()))
        .map_err(|error| failed(error.to_string()))?;
    // who asks, and from where: the same as for the form
    if let Some(actor) = extensions.get::<crate::access::Actor>() {
        request.extensions_mut().insert(actor.clone());
    }
    if let Some(client) = extensions.get::<ClientAddress>() {
        request.extensions_mut().insert(*client);
    }
    let response = api::routes(web.api.clone())
        .oneshot(request)
        .await
        .unwrap_or_else(|never| match never {});
    let status = response.status();
    let bytes = axum::body::to_bytes(response.into_body(), MAX_ANSWER)
        .await
        .map_err(|error| failed(error.to_string()))?;
    let answer: serde_json::Value = serde_json::from_slice(&bytes).unwrap_or_default();
    if status.is_success() {
        return Ok(answer);
    }
    Err(Refused {
        status,
        detail: answer["detail"]
            .as_str()
            .unwrap_or("the server refused it and did not say why")
            .to_owned(),
    })
}
