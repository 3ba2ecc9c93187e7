//! `POST /api/v1/preview`: a text that is not saved, checked and rendered with the rest of a revision.
//!
//! Whoever may see prompts may send any text here, so that it is always rendered in a worker, one at a time for each
//! caller, and on a budget of CPU time.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::{Duration, Instant};

use axum::extract::{Request, State};
use axum::http::StatusCode;
use axum::response::{IntoResponse, Response};
use serde::{Deserialize, Serialize};
use utoipa::ToSchema;
use utoipa_axum::router::OpenApiRouter;
use utoipa_axum::routes;

use super::openapi::{Absent, Anywhere, Failed, Unfit, Unread};
use super::visible::seen;
use super::{Api, Refusal, by, charged, json, parse, read};
use crate::access::Actor;
use crate::catalog::Catalog;
use crate::catalog::prompts::Draft;
use crate::prompt::render::Stopped;
use crate::prompt::{
    BoundArguments, Content, Lane, Message, Problem, Prompt, RenderError, Severity,
};
use crate::registry::AtError;
use crate::workers::{Budgets, Caller, Done, Running, Spent};

/// What previews share.
#[derive(Debug)]
pub struct Previews {
    budgets: Arc<Budgets<Caller>>,
    body_bytes: usize,
}

impl Default for Previews {
    fn default() -> Self {
        Self::new(6000, 2 * 1024 * 1024)
    }
}

impl Previews {
    /// Nobody has asked yet; a budget is in milliseconds of CPU time a minute for each caller.
    pub fn new(cpu_ms_per_minute: u64, body_bytes: usize) -> Self {
        Self {
            budgets: Arc::new(Budgets::new(cpu_ms_per_minute)),
            body_bytes,
        }
    }
}

/// What is asked.
#[derive(Debug, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
#[schema(as = PreviewAsk)]
struct Ask {
    /// Path in the library; or its name.
    path: Option<String>,
    /// Its name, where there is no path.
    name: Option<String>,
    /// The text of the prompt's file.
    text: String,
    /// Values of its arguments, by name.
    #[serde(default)]
    arguments: BTreeMap<String, String>,
    /// A commit of main; what is served now when there is none.
    revision: Option<String>,
    /// Partials that are not saved either, by path.
    #[serde(default)]
    files: BTreeMap<String, String>,
}

/// What is answered.
#[derive(Debug, Serialize, ToSchema)]
#[schema(as = Preview)]
struct Answer<'a> {
    /// What the check finds.
    problems: Vec<ShownProblem<'a>>,
    /// What it renders to: `role` and `content` of each, as MCP has them.
    messages: Vec<serde_json::Value>,
    /// In which lane it would be rendered.
    #[serde(skip_serializing_if = "Option::is_none")]
    lane: Option<ShownLane<'a>>,
}

#[derive(Debug, Serialize, ToSchema)]
#[schema(as = CheckedProblem)]
pub(crate) struct ShownProblem<'a> {
    /// `error` or `warning`.
    severity: &'static str,
    /// One word.
    code: &'a str,
    /// The file.
    path: &'a str,
    /// The line, from 1; 0 for the whole file.
    line: u32,
    /// The column, from 1.
    column: u32,
    /// How many characters from there.
    width: u32,
    /// What is wrong.
    message: &'a str,
    /// What to do.
    #[serde(skip_serializing_if = "Option::is_none")]
    hint: Option<&'a str>,
    /// Texts to put in that mend it, by line and column as above.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    fix: Vec<ShownInsertion>,
}

#[derive(Debug, Serialize, ToSchema)]
#[schema(as = Insertion)]
struct ShownInsertion {
    /// The line, from 1.
    line: u32,
    /// The column, from 1.
    column: u32,
    /// What to put in.
    text: &'static str,
}

#[derive(Debug, Serialize, ToSchema)]
#[schema(as = RenderLane)]
struct ShownLane<'a> {
    /// `fast` or `worker`; a preview itself is always rendered in a worker.
    lane: &'static str,
    #[serde(skip_serializing_if = "Option::is_none")]
    reason: Option<ShownReason<'a>>,
}

#[derive(Debug, Serialize, ToSchema)]
#[schema(as = RenderLaneReason)]
struct ShownReason<'a> {
    /// One line.
    why: &'a str,
    /// The file.
    path: &'a str,
    /// The line, from 1.
    line: u32,
    /// The column, from 1.
    column: u32,
}

pub(super) fn routes() -> OpenApiRouter<Api> {
    OpenApiRouter::default().routes(routes!(preview))
}

/// Check and render a text that is not saved
#[utoipa::path(
    post,
    path = "/api/v1/preview",
    operation_id = "preview",
    tag = "library",
    request_body = Ask,
    responses(
        (status = 200, description = "Its problems and messages", body = Answer),
        Anywhere,
        Absent,
        Unread,
        Unfit,
        Failed
    )
)]
async fn preview(State(state): State<Api>, request: Request) -> Response {
    match answer(&state, request).await {
        Ok(response) => response,
        Err(refusal) => refusal.into_response(),
    }
}

async fn answer(state: &Api, request: Request) -> Result<Response, Refusal> {
    let (parts, body) = request.into_parts();
    let caller = charged(&parts.extensions);
    let actor = by(&parts.extensions).actor;
    // before it counts as running: who sends slowly would keep everybody else of an address out
    let body = read(
        &parts.headers,
        body,
        state.previews.body_bytes,
        "rendering.preview_bytes",
    )
    .await?;
    let ask: Ask = parse(&body)?;
    drop(body);
    let running = state
        .previews
        .budgets
        .begin(caller.clone(), Instant::now())
        .map_err(|spent| spent_refusal(&spent))?;
    // whoever hangs up has it charged all the same, and none begins beside it
    let state = state.clone();
    tokio::spawn(async move { made(&state, &actor, &caller, &ask, running).await })
        .await
        .map_err(|_| {
            Refusal::new(
                StatusCode::INTERNAL_SERVER_ERROR,
                "the preview could not be made",
            )
        })?
}

/// Checks and renders what is asked, and charges for it.
async fn made(
    state: &Api,
    actor: &Actor,
    caller: &Caller,
    ask: &Ask,
    mut running: Running<Caller>,
) -> Result<Response, Refusal> {
    let catalog = match &ask.revision {
        None => state.registry.snapshot().catalog.clone(),
        Some(commit) => state
            .registry
            .at(commit)
            .await
            .map_err(|error| at_refusal(&error.told(actor.sees_all())))?,
    };
    let catalog = seen(&catalog, actor);
    let (checked, spent) = check(&catalog, ask).await?;
    running.charge(spent);
    let Draft {
        mut problems,
        prompt,
    } = checked;
    let mut messages = Vec::new();
    if let Some(prompt) = &prompt {
        match rendered(state, caller, &catalog, prompt, ask, &mut running).await? {
            Ok(made) => messages = made.iter().map(message_json).collect(),
            Err(problem) => problems.push(problem),
        }
    }
    drop(running);
    let answer = Answer {
        problems: problems.iter().map(shown).collect(),
        messages,
        lane: prompt.as_ref().map(|prompt| lane(&prompt.lane)),
    };
    Ok(json(&answer))
}

/// Reads and links the text, off the async threads; what it took is charged.
async fn check(catalog: &Arc<Catalog>, ask: &Ask) -> Result<(Draft, Duration), Refusal> {
    let path = match (&ask.path, &ask.name) {
        (Some(path), _) => path.clone(),
        (None, Some(name)) => catalog
            .prompt(name)
            .map_or_else(|| format!("prompts/{name}.md"), |p| p.path.to_string()),
        (None, None) => {
            return Err(Refusal::new(
                StatusCode::UNPROCESSABLE_ENTITY,
                "give the `path` or the `name` of the prompt",
            ));
        }
    };
    if !path.starts_with("prompts/") || !path.to_ascii_lowercase().ends_with(".md") {
        return Err(Refusal::new(
            StatusCode::UNPROCESSABLE_ENTITY,
            "a prompt is a file such as prompts/sre/incident-triage.md",
        ));
    }
    if let Some(other) = ask.files.keys().find(|path| !path.starts_with("partials/")) {
        let shown: String = other.chars().take(80).collect();
        return Err(Refusal::new(
            StatusCode::UNPROCESSABLE_ENTITY,
            format!("`files` takes partials, such as partials/rubric.md, and `{shown}` is none"),
        ));
    }
    let catalog = catalog.clone();
    let text = ask.text.clone();
    let files = ask.files.clone();
    tokio::task::spawn_blocking(move || {
        let started = Instant::now();
        let draft = catalog.draft(&path, &text, &files);
        (draft, started.elapsed())
    })
    .await
    .map_err(|_| {
        Refusal::new(
            StatusCode::INTERNAL_SERVER_ERROR,
            "the text could not be checked",
        )
    })
}

/// Renders in a worker. What is wrong with the text or its arguments is a problem; what is wrong here is a refusal.
async fn rendered(
    state: &Api,
    caller: &Caller,
    catalog: &Catalog,
    prompt: &Prompt,
    ask: &Ask,
    running: &mut Running<Caller>,
) -> Result<Result<Vec<Message>, Problem>, Refusal> {
    let limits = catalog.limits();
    let problem =
        |code, message: String| Problem::whole(Severity::Error, code, &prompt.path, message, None);
    let given = ask.arguments.iter().map(|(n, v)| (n.as_str(), v.as_str()));
    let bound = match BoundArguments::bind(&prompt.arguments, given, limits) {
        Ok(bound) => bound,
        Err(error) => return Ok(Err(problem("arguments", error.to_string()))),
    };
    let mut resources = match catalog.resolve(prompt, &bound) {
        Ok(resources) => resources,
        Err(error) => return Ok(Err(problem("missing-resource", error.to_string()))),
    };
    resources.nonce = format!("{:016x}", getrandom::u64().unwrap_or_default());
    let renderer = state.registry.renderer();
    let Done { rendered, cpu } = renderer
        .isolated(caller, prompt, &bound, &resources, limits)
        .await;
    running.charge(cpu);
    match rendered {
        Ok(rendered) => Ok(Ok(rendered.messages)),
        Err(RenderError::Stopped(
            stopped @ (Stopped::QueueFull { .. }
            | Stopped::QueueWait { .. }
            | Stopped::Unavailable(_)),
        )) => {
            tracing::warn!(%stopped, "a preview found no worker");
            Err(Refusal {
                retry_after: Some(1),
                ..Refusal::new(StatusCode::SERVICE_UNAVAILABLE, stopped.to_string())
            })
        }
        Err(RenderError::Template {
            path,
            line,
            column,
            message,
            ..
        }) => {
            let message = format!("the prompt cannot be rendered: {message}");
            let mut found = problem("render-fails", message);
            found.path = path.into();
            (found.line, found.column) = (line, column);
            Ok(Err(found))
        }
        Err(error) => Ok(Err(problem("render-limit", error.to_string()))),
    }
}

fn spent_refusal(spent: &Spent) -> Refusal {
    Refusal {
        retry_after: Some(spent.retry_after_seconds()),
        ..Refusal::new(StatusCode::TOO_MANY_REQUESTS, spent.to_string())
    }
}

pub(super) fn at_refusal(error: &AtError) -> Refusal {
    let (status, retry_after) = match error {
        AtError::Unknown(_)
        | AtError::Ambiguous(_)
        | AtError::NoVersion { .. }
        | AtError::NotNumbered => (StatusCode::NOT_FOUND, None),
        AtError::Unclean { .. } | AtError::UncleanVersion { .. } => {
            (StatusCode::UNPROCESSABLE_ENTITY, None)
        }
        AtError::Busy | AtError::Counting { .. } => (StatusCode::SERVICE_UNAVAILABLE, Some(1)),
        AtError::Io => (StatusCode::INTERNAL_SERVER_ERROR, None),
    };
    Refusal {
        retry_after,
        ..Refusal::new(status, error.to_string())
    }
}

pub(crate) fn shown(problem: &Problem) -> ShownProblem<'_> {
    ShownProblem {
        severity: problem.severity.as_str(),
        code: problem.code,
        path: &problem.path,
        line: problem.line,
        column: problem.column,
        width: problem.width,
        message: &problem.message,
        hint: problem.hint.as_deref(),
        fix: problem
            .fix
            .iter()
            .map(|insertion| ShownInsertion {
                line: insertion.line,
                column: insertion.column,
                text: insertion.text,
            })
            .collect(),
    }
}

fn lane(lane: &Lane) -> ShownLane<'_> {
    ShownLane {
        lane: lane.as_str(),
        reason: match lane {
            Lane::Fast(_) => None,
            Lane::Worker(reason) => Some(ShownReason {
                why: &reason.why,
                path: &reason.path,
                line: reason.line,
                column: reason.column,
            }),
        },
    }
}

fn message_json(message: &Message) -> serde_json::Value {
    let content = match &message.content {
        Content::Text(text) => serde_json::json!({ "type": "text", "text": text }),
        Content::Resource {
            resource, embed, ..
        } => serde_json::json!({
            "type": embed.as_str(),
            "uri": &*resource.uri,
            "mimeType": &*resource.mime_type,
            "sha256": &*resource.sha256,
            "text": resource.text(),
        }),
    };
    serde_json::json!({ "role": message.role.as_str(), "content": content })
}
