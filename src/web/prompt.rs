//! A prompt: how each client calls it up, what it renders to, who uses it, what of it arrives where.

use std::collections::BTreeMap;
use std::sync::Arc;

use axum::body::Body;
use axum::extract::{Path, Request, State};
use axum::http::{HeaderMap, StatusCode};
use axum::response::{IntoResponse, Response};
use serde::{Deserialize, Serialize};

use super::library::{DAYS, bars, uses};
use super::page::{Failure, Page, answer};
use super::rendering::{Rendering, render};
use super::text::{Lang, Query};
use super::versions::meant;
use super::visit::Visit;
use super::waiting::{self, Waiting};
use super::{Web, layout};
use crate::access::Action;
use crate::api::charged;
use crate::api::prompts::reason;
use crate::catalog::Catalog;
use crate::connect::compat::{Shape, Shown, shown};
use crate::prompt::selector::Selector;
use crate::prompt::{Argument, At, Prompt};
use crate::records::calendar;
use crate::registry::Snapshot;
use crate::registry::versions::Label;
use crate::workers::Caller;

/// What clients call the server where nobody says otherwise.
const SERVER: &str = "cuebook";
/// Values that a completion shows.
const OFFERED: usize = 50;
/// Longest question of a completion, in bytes.
const MAX_ASK: usize = 64 * 1024;
/// Clients that are listed as using a prompt.
const CLIENTS: usize = 12;
/// What a field of an argument is called: this, then its name.
const FIELD: &str = "a.";

/// What the template sees.
#[derive(Debug, Serialize)]
pub struct PromptPage {
    /// What every page of this prompt shows.
    pub head: Head,
    /// Declared arguments, with the values that are in the form.
    pub arguments: Vec<Field>,
    /// Examples as tabs.
    pub examples: Vec<Tab>,
    /// The messages for these values.
    pub rendering: Rendering,
    /// What each client shows.
    pub clients: Vec<Shown>,
    /// The call as JSON.
    pub json: String,
    /// The call for a shell.
    pub curl: String,
    /// Where it is rendered.
    pub worker: Option<String>,
    /// Partials it includes, by path.
    pub partials: Vec<String>,
    /// Use, where it is recorded.
    pub usage: Option<Usage>,
    /// Open proposals that change it.
    pub waiting: Vec<Waiting>,
    /// The version that was asked for.
    pub at: Option<String>,
    /// Whether that is not the one that is served.
    pub elsewhere: bool,
}

/// What every page of a prompt shows on top.
#[derive(Debug, Clone, Serialize)]
pub struct Head {
    /// Its name.
    pub name: String,
    /// Its title, or its name.
    pub title: String,
    /// What it is for.
    pub description: Option<String>,
    /// Its folder.
    pub folder: String,
    /// Its path in the library.
    pub path: String,
    /// Its tags.
    pub tags: Vec<String>,
    /// The version that is served.
    pub version: Option<u64>,
    /// The newest version.
    pub latest: Option<u64>,
    /// Labels on it.
    pub labels: Vec<Label>,
    /// Whether this actor may change it, or propose to.
    pub may_edit: bool,
}

/// An argument as a field of the form.
#[derive(Debug, Serialize)]
pub struct Field {
    /// Its name.
    pub name: String,
    /// What it means.
    pub description: Option<String>,
    /// Whether it must be given.
    pub required: bool,
    /// What stands in for it.
    pub default: Option<String>,
    /// What is in the form.
    pub value: String,
    /// Whether there are values to offer.
    pub completes: bool,
}

/// An example.
#[derive(Debug, Serialize)]
pub struct Tab {
    /// What it shows.
    pub name: String,
    /// Whether it is shown.
    pub current: bool,
    /// Where it is.
    pub href: String,
}

/// Who uses a prompt, over the last 30 days.
#[derive(Debug, Serialize)]
pub struct Usage {
    /// Times it was got.
    pub uses: i64,
    /// A chart of them, as the path of an SVG of 119 by 24.
    pub bars: String,
    /// By client, most first: its name, its version, gets.
    pub clients: Vec<(String, String, i64)>,
    /// By version, newest first: the version, gets, calls that failed or were refused.
    pub versions: Vec<(i64, i64, i64)>,
}

impl Page for PromptPage {
    const TEMPLATE: &'static str = "prompt.html";
    const SECTION: &'static str = "library";

    fn title(&self, _: Lang) -> String {
        self.head.title.clone()
    }
}

/// The head of a prompt's pages.
pub(super) fn head(snapshot: &Snapshot, visit: &Visit, prompt: &Prompt) -> Head {
    let name = prompt.name.as_str();
    Head {
        name: name.to_owned(),
        title: prompt.title.clone().unwrap_or_else(|| name.to_owned()),
        description: prompt.description.clone(),
        folder: prompt.folder.to_string(),
        path: prompt.path.to_string(),
        tags: prompt.tags.clone(),
        version: snapshot.served_version(name).map(|(number, _)| number),
        latest: snapshot.latest_version(name),
        labels: snapshot
            .labels(|path| visit.reads(path))
            .remove(name)
            .unwrap_or_default(),
        may_edit: visit.actor.may(Action::Propose, &prompt.path),
    }
}

/// A prompt that this visit may see; it looks absent, else.
pub(super) fn seen(catalog: &Catalog, visit: &Visit, name: &str) -> Result<Arc<Prompt>, Failure> {
    catalog
        .prompt(name)
        .filter(|prompt| visit.reads(&prompt.path))
        .cloned()
        .ok_or(Failure::NotFound)
}

/// `GET /prompts/{name}`.
pub(super) async fn page(
    State(web): State<Web>,
    visit: Visit,
    Path(name): Path<String>,
    request: Request,
) -> Response {
    let caller = charged(request.extensions());
    let page = made(&web, &visit, &caller, &name, None).await;
    answer(&web, &visit, page).await
}

/// `POST /prompts/{name}`: the same for the values of the form, which so stand in no address.
pub(super) async fn typed(
    State(web): State<Web>,
    visit: Visit,
    Path(name): Path<String>,
    request: Request,
) -> Response {
    let caller = charged(request.extensions());
    let page = match layout::form(&web, &visit, request.into_body()).await {
        Ok(fields) => made(&web, &visit, &caller, &name, Some(&fields)).await,
        Err(failure) => Err(failure),
    };
    answer(&web, &visit, page).await
}

/// The prompt as a version, a label or a commit has it; one that was where this visit may not read looks absent.
async fn at_version(
    web: &Web,
    visit: &Visit,
    snapshot: &Arc<Snapshot>,
    prompt: &Arc<Prompt>,
    at: &str,
) -> Result<Arc<Prompt>, Failure> {
    let name = prompt.name.as_str();
    let selector = Selector::parse(&format!("{name}@{at}"))
        .map_err(|error| Failure::Invalid(error.to_string()))?;
    let newest = snapshot.latest.prompt(name);
    if newest.is_some_and(|newest| !visit.reads(&newest.path)) {
        return Err(Failure::NotFound);
    }
    let number = match selector.at {
        At::Version(number) => number,
        At::Label(label) => snapshot
            .latest
            .label(&label, name)
            .ok_or(Failure::NotFound)?,
        At::Latest => return Ok(newest.unwrap_or(prompt).clone()),
        At::Served | At::Revision(_) => return Err(Failure::NotFound),
    };
    if let Some(history) = &snapshot.history {
        let version = history.version(name, number);
        if version.is_none_or(|version| !visit.reads(&version.path)) {
            return Err(Failure::NotFound);
        }
    }
    let found = web.api.registry.version(snapshot, name, number).await;
    found
        .map(|versioned| versioned.prompt)
        .map_err(|error| Failure::Unavailable(error.told(visit.actor.sees_all()).to_string()))
}

async fn made(
    web: &Web,
    visit: &Visit,
    caller: &Caller,
    name: &str,
    form: Option<&Query>,
) -> Result<PromptPage, Failure> {
    let snapshot = web.api.registry.snapshot();
    let catalog = visit.catalog(&snapshot.catalog);
    let served = seen(&catalog, visit, name)?;
    let at = visit.query.get("at").map(str::to_owned);
    let prompt = match &at {
        Some(at) => at_version(web, visit, &snapshot, &served, at).await?,
        None => served.clone(),
    };
    let example = match form {
        Some(_) => None,
        None => Some(
            visit
                .query
                .get("example")
                .and_then(|number| number.parse::<usize>().ok())
                .filter(|number| *number < prompt.examples.len())
                .unwrap_or_default(),
        ),
    };
    let values: Vec<(String, String)> = match (form, example.and_then(|i| prompt.examples.get(i))) {
        (Some(form), _) => form
            .pairs()
            .filter_map(|(name, value)| Some((name.strip_prefix(FIELD)?, value)))
            .filter(|(_, value)| !value.is_empty())
            // a browser sends line ends as CR LF
            .map(|(name, value)| (name.to_owned(), value.replace("\r\n", "\n")))
            .collect(),
        (None, Some(example)) => example.arguments.clone(),
        (None, None) => Vec::new(),
    };
    let rendering = render(web, visit, caller, &catalog, &prompt, &values).await?;
    let days = uses(web, &[name]).await;
    let usage = match days {
        Some(days) => usage(web, name, &days.get(name).copied().unwrap_or([0; DAYS])).await,
        None => None,
    };
    let (json, curl) = calls(web, visit, &prompt, at.as_deref(), &values);
    let value = |argument: &Argument| {
        let found = values.iter().find(|(name, _)| **name == *argument.name);
        found.map(|(_, value)| value.clone()).unwrap_or_default()
    };
    let with_at = visit.query.without("example");
    Ok(PromptPage {
        head: head(&snapshot, visit, &served),
        arguments: prompt
            .arguments
            .iter()
            .map(|argument| Field {
                name: argument.name.to_string(),
                description: argument.description.clone(),
                required: argument.required,
                default: argument.default.clone(),
                value: value(argument),
                completes: !argument.values.is_empty(),
            })
            .collect(),
        examples: prompt
            .examples
            .iter()
            .enumerate()
            .map(|(number, shown)| Tab {
                name: shown.name.clone(),
                current: example == Some(number),
                href: format!(
                    "/prompts/{name}{}",
                    with_at.with("example", Some(&number.to_string()))
                ),
            })
            .collect(),
        rendering,
        clients: shown(
            SERVER,
            name,
            &Shape::of(&prompt),
            &prompt.arguments,
            &values,
        ),
        json,
        curl,
        worker: reason(&prompt.lane, &visit.actor),
        partials: prompt
            .partials
            .iter()
            .filter(|partial| visit.reads(&partial.source.path))
            .map(|partial| format!("partials/{}", partial.name))
            .collect(),
        usage,
        waiting: waiting::by_prompt(web, visit)
            .await
            .remove(&*served.path)
            .unwrap_or_default(),
        elsewhere: at.as_deref().is_some_and(|at| {
            let served = snapshot.served_version(name).map(|(number, _)| number);
            meant(&snapshot, name, at).ok() != served
        }),
        at,
    })
}

/// The call as JSON, and as a command of a shell.
fn calls(
    web: &Web,
    visit: &Visit,
    prompt: &Prompt,
    at: Option<&str>,
    values: &[(String, String)],
) -> (String, String) {
    let values: BTreeMap<&str, &str> = values
        .iter()
        .map(|(name, value)| (name.as_str(), value.as_str()))
        .collect();
    let name = match at {
        Some(at) => format!("{}@{at}", prompt.name),
        None => prompt.name.to_string(),
    };
    let params = serde_json::json!({ "name": name, "arguments": values });
    let call =
        serde_json::json!({ "jsonrpc": "2.0", "id": 1, "method": "prompts/get", "params": params });
    // with access control, who has signed in here needs a token there
    let token = if visit.actor.credential().is_some() {
        " \\\n  -H \"Authorization: Bearer $CUEBOOK_TOKEN\""
    } else {
        ""
    };
    let curl = format!(
        "curl -s {}/mcp{token} \\\n  -H 'Content-Type: application/json' \\\n  -H 'Accept: application/json, text/event-stream' \\\n  -d '{}'",
        web.url,
        call.to_string().replace('\'', "'\\''")
    );
    let json = serde_json::to_string_pretty(&params).unwrap_or_default();
    (json, curl)
}

async fn usage(web: &Web, name: &str, days: &[i64; DAYS]) -> Option<Usage> {
    let store = web.api.records.as_ref()?.store().ok()?;
    let to = calendar::day(crate::clock::unix_millis());
    let from = to - i64::try_from(DAYS).unwrap_or(30) + 1;
    let clients = store.gets_by_client(from, to, Some(name)).await.ok()?;
    let versions = store.usage_by_version(from, to, Some(name)).await.ok()?;
    let mut clients: Vec<(String, String, i64)> = clients
        .into_iter()
        .filter(|row| row.gets > 0)
        .map(|row| (row.client, row.client_version, row.gets))
        .collect();
    clients.sort_by_key(|(_, _, gets)| std::cmp::Reverse(*gets));
    clients.truncate(CLIENTS);
    let mut versions: Vec<(i64, i64, i64)> = versions
        .into_iter()
        .map(|row| (row.version, row.gets, row.failed + row.refused))
        .collect();
    versions.sort_by_key(|(version, ..)| std::cmp::Reverse(*version));
    versions.truncate(CLIENTS);
    Some(Usage {
        uses: days.iter().sum(),
        bars: bars(days),
        clients,
        versions,
    })
}

/// What a completion is asked.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct Typed {
    /// The argument.
    argument: String,
    /// What is typed so far.
    value: String,
    /// The other fields.
    #[serde(default)]
    context: BTreeMap<String, String>,
}

/// What it offers.
#[derive(Debug, Serialize)]
struct Offered {
    values: Vec<String>,
    total: usize,
}

/// `POST /prompts/{name}/complete`: values for a field, as `completion/complete` gives them.
pub(super) async fn complete(
    State(web): State<Web>,
    visit: Visit,
    Path(name): Path<String>,
    headers: HeaderMap,
    body: Body,
) -> Response {
    let is_json = headers
        .get(axum::http::header::CONTENT_TYPE)
        .is_some_and(|value| value.as_bytes().starts_with(b"application/json"));
    if !is_json {
        return StatusCode::UNSUPPORTED_MEDIA_TYPE.into_response();
    }
    let Ok(bytes) = axum::body::to_bytes(body, MAX_ASK).await else {
        return StatusCode::PAYLOAD_TOO_LARGE.into_response();
    };
    let Ok(typed) = serde_json::from_slice::<Typed>(&bytes) else {
        return StatusCode::BAD_REQUEST.into_response();
    };
    let snapshot = web.api.registry.snapshot();
    let catalog = visit.catalog(&snapshot.catalog);
    let Ok(prompt) = seen(&catalog, &visit, &name) else {
        return StatusCode::NOT_FOUND.into_response();
    };
    let recent = web
        .api
        .records
        .as_ref()
        .map(|records| records.recents().get(prompt.name.as_str(), &typed.argument));
    let found = catalog.complete(
        &prompt,
        &typed.argument,
        &typed.value,
        &typed.context,
        recent.as_deref().unwrap_or_default(),
    );
    let total = found.total.max(found.values.len());
    let mut values = found.values;
    values.truncate(OFFERED);
    let offered = serde_json::to_vec(&Offered { values, total }).unwrap_or_default();
    (
        [(axum::http::header::CONTENT_TYPE, "application/json")],
        offered,
    )
        .into_response()
}
