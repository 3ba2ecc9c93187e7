//! What is written of versions: a label that is moved, an older version that is published again.

use std::sync::Arc;

use axum::extract::{Path, Request, State};
use axum::http::{HeaderMap, StatusCode};
use axum::response::{IntoResponse, Response};
use serde::{Deserialize, Deserializer};
use utoipa::ToSchema;

use super::{Known, MAX_BODY, blocking, internal, known, number};
use crate::api::changes::{self, Answer as Done, gate, refusal};
use crate::api::openapi::{
    Absent, Anywhere, Changed, Conflict, Failed, Named, Seen, Unfit, Unread,
};
use crate::api::tag::{self, seen_tag};
use crate::api::{Api, Refusal, by, json, parse, read};
use crate::catalog::relabel::{RelabelError, relabel};
use crate::gate::publish::{Change, Published, Tip};
use crate::gate::wire::Deed;
use crate::git::commit::Edit;
use crate::git::{GitError, MAIN, Mode, Repository};
use crate::history::{Kind, Numbered, Version, kind};
use crate::registry::versions::version_files;
use crate::registry::{OpenError, Registry};

/// Longest reason, in characters.
const MAX_REASON: usize = 2000;

/// The tag that a change is bound to, and what it is of.
struct Bound {
    registry: Arc<Registry>,
    name: String,
    tag: String,
}

/// What a change is bound to whose caller says what they have seen; none where they say nothing.
fn unchanged(api: &Api, known: &Known, headers: &HeaderMap) -> Result<Option<Bound>, Refusal> {
    let seen = seen_tag(headers);
    tag::unchanged(seen.as_deref(), &known.tag)?;
    Ok(seen.map(|tag| Bound {
        registry: api.registry.clone(),
        name: known.name.clone(),
        tag,
    }))
}

/// The versions and labels of the prompt are in main what they were when they were looked at, whatever else has changed.
/// Blocks.
fn still(tip: &Tip, bound: Option<&Bound>) -> Result<(), Unmade> {
    let Some(bound) = bound else {
        return Ok(());
    };
    if bound.registry.snapshot().status.tip != tip.commit {
        // a push that was quicker is not read yet
        bound.registry.refresh()?;
    }
    match super::tag(&bound.registry.snapshot(), &bound.name) {
        Some(now) if now == bound.tag => Ok(()),
        now => Err(Unmade::Moved(now.unwrap_or_default())),
    }
}

/// Why a change cannot be made of what main says now.
#[derive(Debug, thiserror::Error)]
enum Unmade {
    #[error(transparent)]
    Label(#[from] RelabelError),
    #[error("labels.toml is not UTF-8; mend it first")]
    NotText,
    #[error("the prompt would come back as {0}, where main has something else; move that first")]
    Taken(String),
    #[error("it has changed since you looked, and nothing was published; look again")]
    Moved(String),
    #[error("both {1} and {2} are `{0}`; remove one first")]
    Twice(String, String, String),
    #[error(transparent)]
    Git(#[from] GitError),
    #[error(transparent)]
    Unread(#[from] OpenError),
}

fn unmade(error: Unmade) -> Refusal {
    match error {
        Unmade::Git(error) => internal(&error),
        Unmade::Unread(error) => internal(&error),
        Unmade::Moved(ref now) => tag::changed(error.to_string(), now),
        error => Refusal::new(StatusCode::UNPROCESSABLE_ENTITY, error.to_string()),
    }
}

fn reason(text: &str) -> Result<String, Refusal> {
    let text: String = text.trim().chars().take(MAX_REASON).collect();
    if text.contains('\0') {
        return Err(Refusal::new(
            StatusCode::UNPROCESSABLE_ENTITY,
            "`reason` holds a NUL, which no commit's message can",
        ));
    }
    if text.is_empty() {
        return Err(Refusal::new(
            StatusCode::UNPROCESSABLE_ENTITY,
            "say in `reason` why; it stands in the commit and in the log of the prompt",
        ));
    }
    Ok(text)
}

/// Publishes a change; `notes` are told with it, and where it turns out to change nothing.
async fn publish<F>(
    api: &Api,
    request_by: crate::access::By,
    notes: Vec<String>,
    make: F,
) -> Result<Response, Refusal>
where
    F: Fn(&Tip) -> Result<Change, Unmade> + Send + Sync + 'static,
{
    let gate = gate(api)?.clone();
    let place = changes::place(api).await?;
    // whoever hangs up has it published all the same, or not at all
    let published = api
        .writing
        .spawn(async move {
            let _place = place;
            gate.publish(&request_by, make).await
        })
        .await
        .map_err(|error| internal(&error))?;
    match published {
        Ok(Published { commit, mut lines }) => {
            lines.extend(notes);
            Ok(json(&Done { commit, lines }))
        }
        Err(error) => {
            let mut refusal = refusal(error, unmade);
            if refusal.status == StatusCode::CONFLICT {
                for note in notes {
                    refusal.detail.push('\n');
                    refusal.detail.push_str(&note);
                }
            }
            Err(refusal)
        }
    }
}

/// Where a label goes: `null` apart from absent.
#[derive(Debug, Default)]
enum Onto {
    #[default]
    Unsaid,
    Off,
    Version(String),
}

impl<'de> Deserialize<'de> for Onto {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let version = Option::deserialize(deserializer)?;
        Ok(version.map_or(Self::Off, Self::Version))
    }
}

#[derive(Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
#[schema(as = LabelAsk)]
struct LabelAsk {
    /// The label.
    label: String,
    /// `v7`, or another label; null takes the label off, and must be said.
    #[serde(default)]
    #[schema(value_type = Option<String>, required = true)]
    version: Onto,
    /// Why; it stands in the commit.
    reason: String,
}

/// Put a label on a version of a prompt, or take it off
#[utoipa::path(
    post,
    path = "/api/v1/prompts/{name}/label",
    operation_id = "label",
    tag = "versions",
    params(Named, Seen),
    request_body = LabelAsk,
    responses(
        (status = 200, description = "It is published", body = Done),
        Anywhere,
        Absent,
        Conflict,
        Changed,
        Unread,
        Unfit,
        Failed
    )
)]
pub(super) async fn label(
    State(api): State<Api>,
    Path(name): Path<String>,
    request: Request,
) -> Response {
    let answer = async {
        let (parts, body) = request.into_parts();
        let body = read(&parts.headers, body, MAX_BODY, "a limit of this release").await?;
        let ask: LabelAsk = parse(&body)?;
        let version = match ask.version {
            Onto::Version(text) => Some(text),
            Onto::Off => None,
            Onto::Unsaid => {
                return Err(Refusal::new(
                    StatusCode::UNPROCESSABLE_ENTITY,
                    "say `version`: one such as v3, or null to take the label off",
                ));
            }
        };
        let known = known(&api, by(&parts.extensions).actor, &name)?;
        let bound = unchanged(&api, &known, &parts.headers)?;
        let on = version.map(|text| number(&known, &text)).transpose()?;
        let reason = reason(&ask.reason)?;
        let (name, label) = (known.name, ask.label);
        let subject = match on {
            Some(number) => format!("promote {name} v{number} to {label}"),
            None => format!("take {label} off {name}"),
        };
        let message = format!("{subject}\n\n{reason}\n");
        let deed = Deed {
            action: if on.is_some() { "promote" } else { "unlabel" }.into(),
            subject: match on {
                Some(number) => format!("{name} v{number} to {label}"),
                None => format!("{name} from {label}"),
            },
            reason: Some(reason),
        };
        let make = move |tip: &Tip| {
            still(tip, bound.as_ref())?;
            let text = tip.read("labels.toml")?.unwrap_or_default();
            let text = String::from_utf8(text).map_err(|_| Unmade::NotText)?;
            let edited = relabel(&text, &label, &name, on)?;
            Ok(Change {
                edits: vec![Edit {
                    path: "labels.toml".into(),
                    content: Some(edited.into_bytes()),
                }],
                message: message.clone(),
                deed: Some(deed.clone()),
            })
        };
        publish(&api, by(&parts.extensions), Vec::new(), make).await
    };
    answer.await.unwrap_or_else(Refusal::into_response)
}

/// What a version had of partials that main has otherwise, a line each.
fn other_partials(
    repository: &Repository,
    version: &Version,
    number: u64,
) -> Result<Vec<String>, GitError> {
    let Some(tip) = repository.read_ref(MAIN)? else {
        return Ok(Vec::new());
    };
    let mut out = Vec::new();
    for (path, bytes) in version_files(&repository.blobs()?, version)?.partials {
        if repository.file(&tip, &path)?.as_deref() != Some(&*bytes) {
            let commit = version.commit.hex();
            out.push(format!(
                "v{number} had another {path}, which is shared and stays as it is: git show {commit}:{path}"
            ));
        }
    }
    Ok(out)
}

/// Where a prompt that is gone comes back: where it was under its name, or beside where it was under another.
fn home(name: &str, numbered: &Numbered) -> String {
    let mut paths = numbered.versions.iter().rev().map(|version| &version.path);
    let newest = paths.clone().next();
    if let Some(path) = paths.find(|path| is_of(path, name)) {
        return path.to_string();
    }
    let folder = newest.and_then(|path| path.rsplit_once('/'));
    format!(
        "{}/{name}.md",
        folder.map_or("prompts", |(folder, _)| folder)
    )
}

/// Whether a file is the prompt of a name.
fn is_of(path: &str, name: &str) -> bool {
    matches!(kind(path), Some(Kind::Prompt(of)) if *of == *name)
}

/// The path of a prompt in main as it is now; `home` where it is gone. Never the path of anything else.
fn place(tip: &Tip, name: &str, home: &str) -> Result<String, Unmade> {
    let files = match &tip.commit {
        Some(commit) => tip.repository.tree(commit)?,
        None => Vec::new(),
    };
    let mut found = None;
    for entry in files {
        let Ok(path) = String::from_utf8(entry.path) else {
            continue;
        };
        let is_file = entry.mode == Mode::File;
        if is_file && is_of(&path, name) {
            if let Some(other) = found {
                return Err(Unmade::Twice(name.to_owned(), other, path));
            }
            found = Some(path);
        } else if path == home {
            return Err(Unmade::Taken(path));
        }
    }
    Ok(found.unwrap_or_else(|| home.to_owned()))
}

#[derive(Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
#[schema(as = RestoreAsk)]
struct RestoreAsk {
    /// `v3`, or a label.
    version: String,
    /// Why; it stands in the commit.
    reason: String,
}

/// Publish an older version of a prompt again
#[utoipa::path(
    post,
    path = "/api/v1/prompts/{name}/revert",
    operation_id = "restore",
    tag = "versions",
    params(Named, Seen),
    request_body = RestoreAsk,
    responses(
        (status = 200, description = "It is published", body = Done),
        Anywhere,
        Absent,
        Conflict,
        Changed,
        Unread,
        Unfit,
        Failed
    )
)]
pub(super) async fn revert(
    State(api): State<Api>,
    Path(name): Path<String>,
    request: Request,
) -> Response {
    let answer = async {
        let (parts, body) = request.into_parts();
        let body = read(&parts.headers, body, MAX_BODY, "a limit of this release").await?;
        let ask: RestoreAsk = parse(&body)?;
        let known = known(&api, by(&parts.extensions).actor, &name)?;
        let bound = unchanged(&api, &known, &parts.headers)?;
        let number = number(&known, &ask.version)?;
        let reason = reason(&ask.reason)?;
        let Some(version) = known.numbered.get(number).cloned() else {
            return Err(internal(&"a version went away"));
        };
        let (registry, of) = (api.registry.clone(), version.clone());
        let notes = blocking(move || match registry.library().repository() {
            Some(repository) => {
                other_partials(repository, &of, number).map_err(|error| internal(&error))
            }
            None => Ok(Vec::new()),
        })
        .await?;
        let home = home(&known.name, &known.numbered);
        let name = known.name.clone();
        let message = format!("revert {} to v{number}\n\n{reason}\n", known.name);
        let deed = Deed {
            action: "restore".into(),
            subject: format!("{} v{number}", known.name),
            reason: Some(reason),
        };
        let make = move |tip: &Tip| {
            still(tip, bound.as_ref())?;
            // its file alone: partials are of others as well
            let files = version_files(&tip.repository.blobs()?, &version)?;
            Ok(Change {
                edits: vec![Edit {
                    path: place(tip, &name, &home)?,
                    content: Some(files.prompt),
                }],
                message: message.clone(),
                deed: Some(deed.clone()),
            })
        };
        publish(&api, by(&parts.extensions), notes, make).await
    };
    answer.await.unwrap_or_else(Refusal::into_response)
}
