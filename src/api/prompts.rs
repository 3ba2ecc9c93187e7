//! `GET /api/v1/prompts`, `GET /api/v1/prompts/{name}`: prompts as they are served.

use std::collections::HashMap;
use std::sync::Arc;

use axum::extract::{Path, State};
use axum::http::{Extensions, StatusCode, Uri};
use axum::response::{IntoResponse, Response};
use serde::Serialize;
use utoipa::ToSchema;
use utoipa_axum::router::OpenApiRouter;
use utoipa_axum::routes;

use super::openapi::{Absent, Anywhere, Named, Paged};
use super::query::Query;
use super::tag::etag;
use super::versions::tag;
use super::visible::no_prompt;
use super::{Api, Refusal, by, json};
use crate::access::{Action, Actor};
use crate::catalog::Lookup;
use crate::prompt::{Argument, Lane, Prompt, PromptName, ResourceBinding};
use crate::registry::Snapshot;
use crate::registry::versions::Label;

pub(super) fn routes() -> OpenApiRouter<Api> {
    OpenApiRouter::default()
        .routes(routes!(prompts))
        .routes(routes!(prompt))
}

#[derive(Debug, Serialize, ToSchema)]
#[schema(as = Prompt)]
struct Shown {
    /// Its name.
    name: String,
    /// Its title.
    title: Option<String>,
    /// What it is for.
    description: Option<String>,
    /// Its path in the library.
    path: String,
    /// Its tags, in the author's order.
    tags: Vec<String>,
    /// What it is called with.
    arguments: Vec<ShownArgument>,
    /// Resources that it binds; one that is written out and leads to nothing that who asks may read is left out.
    resources: Vec<ShownResource>,
    /// The names of its examples.
    examples: Vec<String>,
    /// `fast` where it is rendered in the server's process, `worker` where it is in a process of its own.
    lane: &'static str,
    /// Why it is rendered apart, and where in the library that stands; none in the fast lane.
    reason: Option<String>,
    /// Labels on it.
    labels: Vec<Label>,
    /// The version that is served; none while versions are counted, and for a work tree.
    served: Option<u64>,
    /// The newest version; none where the served one is.
    latest: Option<u64>,
    /// The commit of the library that is served; none for a work tree.
    revision: Option<String>,
}

#[derive(Debug, Serialize, ToSchema)]
#[schema(as = PromptArgument)]
struct ShownArgument {
    /// Its name.
    name: String,
    /// What it means.
    description: Option<String>,
    /// Whether a value must be given.
    required: bool,
    /// What stands in for an absent or empty value.
    default: Option<String>,
    /// Where its completions come from: `list`, `file`, `resource` and `recent`; none of them where there are none.
    #[schema(value_type = Vec<String>)]
    sources: Vec<&'static str>,
}

impl From<&Argument> for ShownArgument {
    fn from(argument: &Argument) -> Self {
        let values = &argument.values;
        let sources = [
            ("list", !values.list.is_empty()),
            ("file", values.file.is_some()),
            ("resource", values.resource.is_some()),
            ("recent", values.recent),
        ];
        Self {
            name: argument.name.to_string(),
            description: argument.description.clone(),
            required: argument.required,
            default: argument.default.clone(),
            sources: sources
                .into_iter()
                .filter_map(|(kind, declared)| declared.then_some(kind))
                .collect(),
        }
    }
}

#[derive(Debug, Serialize, ToSchema)]
#[schema(as = PromptResource)]
struct ShownResource {
    /// The name that its text has for it.
    name: String,
    /// Its URI, a template over the arguments.
    uri: String,
    /// Whether the prompt cannot be rendered without it.
    required: bool,
    /// How it is shown: `resource`, `text`, `link`, `image` or `audio`.
    embed: &'static str,
}

impl From<&ResourceBinding> for ShownResource {
    fn from(binding: &ResourceBinding) -> Self {
        Self {
            name: binding.name.to_string(),
            uri: binding.uri.clone(),
            required: binding.required,
            embed: binding.embed.as_str(),
        }
    }
}

/// Whether an actor may know of what a binding leads to: what only a call decides is the prompt's own text.
fn sees_bound(snapshot: &Snapshot, actor: &Actor, binding: &ResourceBinding) -> bool {
    if actor.sees_all() || binding.uri.contains('{') {
        return true;
    }
    match snapshot.catalog.resource(&binding.uri) {
        Lookup::Found(resource) => actor.may(Action::Read, &resource.path),
        Lookup::Missing | Lookup::Invalid(_) => false,
    }
}

/// Why a prompt is rendered in a worker, with the place where an actor may read that; none in the fast lane.
pub(crate) fn reason(lane: &Lane, actor: &Actor) -> Option<String> {
    match lane {
        Lane::Fast(_) => None,
        Lane::Worker(reason) if actor.may(Action::Read, &reason.path) => Some(reason.to_string()),
        Lane::Worker(reason) => Some(reason.why.clone()),
    }
}

fn shown(
    snapshot: &Snapshot,
    actor: &Actor,
    prompt: &Prompt,
    labels: &mut HashMap<&str, Vec<Label>>,
) -> Shown {
    let name = prompt.name.as_str();
    Shown {
        name: name.to_owned(),
        title: prompt.title.clone(),
        description: prompt.description.clone(),
        path: prompt.path.to_string(),
        tags: prompt.tags.clone(),
        arguments: prompt.arguments.iter().map(Into::into).collect(),
        resources: prompt
            .bindings
            .iter()
            .filter(|binding| sees_bound(snapshot, actor, binding))
            .map(Into::into)
            .collect(),
        examples: prompt
            .examples
            .iter()
            .map(|example| example.name.clone())
            .collect(),
        lane: prompt.lane.as_str(),
        reason: reason(&prompt.lane, actor),
        labels: labels.remove(name).unwrap_or_default(),
        served: snapshot.served_version(name).map(|(number, _)| number),
        latest: snapshot.latest_version(name),
        revision: snapshot.catalog.revision().commit().map(str::to_owned),
    }
}

#[derive(Serialize, ToSchema)]
#[schema(as = PromptPage)]
struct Page {
    /// By name.
    prompts: Vec<Shown>,
    /// What `cursor` says to get the next; none where there are none.
    next_cursor: Option<String>,
}

/// Prompts as they are served
#[utoipa::path(
    get,
    path = "/api/v1/prompts",
    operation_id = "prompts",
    tag = "library",
    params(
        ("folder" = Option<String>, Query, description = "Only below this folder, e.g. `sre`"),
        ("tag" = Option<String>, Query, description = "Only with this tag"),
        Paged
    ),
    responses((status = 200, description = "Prompts, by name", body = Page), Anywhere)
)]
async fn prompts(State(api): State<Api>, uri: Uri, extensions: Extensions) -> Response {
    let actor = by(&extensions).actor;
    let snapshot = api.registry.snapshot();
    match listed(&snapshot, &actor, &uri) {
        Ok(page) => json(&page),
        Err(refusal) => refusal.into_response(),
    }
}

fn listed(snapshot: &Snapshot, actor: &Actor, uri: &Uri) -> Result<Page, Refusal> {
    let query = Query::of(uri)?;
    let folder = query.text("folder").map(|folder| folder.trim_matches('/'));
    let tag = query.text("tag");
    let listed = snapshot.catalog.list(folder);
    let mut found: Vec<&Arc<Prompt>> = listed
        .iter()
        .filter(|prompt| actor.may(Action::Read, &prompt.path))
        .filter(|prompt| tag.is_none_or(|tag| prompt.tags.iter().any(|of| of == tag)))
        .collect();
    found.sort_by(|a, b| a.name.cmp(&b.name));
    let next_cursor = query.page(&mut found, |prompt| prompt.name.to_string())?;
    let mut labels = snapshot.labels(|path| actor.may(Action::Read, path));
    Ok(Page {
        prompts: found
            .into_iter()
            .map(|prompt| shown(snapshot, actor, prompt, &mut labels))
            .collect(),
        next_cursor,
    })
}

/// A prompt as it is served
#[utoipa::path(
    get,
    path = "/api/v1/prompts/{name}",
    operation_id = "prompt",
    tag = "library",
    params(Named),
    responses(
        (status = 200, description = "A prompt as it is served", body = Shown,
         headers(("ETag" = String, description = "For `If-Match` of what moves its labels or takes it back, where versions are known"))),
        Anywhere,
        Absent
    )
)]
async fn prompt(
    State(api): State<Api>,
    Path(name): Path<String>,
    extensions: Extensions,
) -> Response {
    let snapshot = api.registry.snapshot();
    one(&snapshot, &by(&extensions).actor, &name).unwrap_or_else(Refusal::into_response)
}

fn one(snapshot: &Snapshot, actor: &Actor, name: &str) -> Result<Response, Refusal> {
    let name = PromptName::parse(name)
        .map_err(|error| Refusal::new(StatusCode::NOT_FOUND, error.to_string()))?;
    let name = name.as_str();
    let found = snapshot.catalog.prompt(name);
    let Some(prompt) = found.filter(|prompt| actor.may(Action::Read, &prompt.path)) else {
        return Err(no_prompt(&snapshot.catalog, actor, name));
    };
    let mut labels = snapshot.labels(|path| actor.may(Action::Read, path));
    let mut response = json(&shown(snapshot, actor, prompt, &mut labels));
    if let Some(tag) = tag(snapshot, name) {
        etag(&mut response, &tag);
    }
    Ok(response)
}
