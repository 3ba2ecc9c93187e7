//! `/api/v1/prompts/{name}/…`: the versions of a prompt, what differs between two, moving a label, going back.

mod blame;

use std::collections::HashMap;
use std::sync::Arc;

use axum::Router;
use axum::extract::{Path, Request, State};
use axum::http::{Extensions, StatusCode, Uri};
use axum::response::{IntoResponse, Response};
use axum::routing::{get, post};
use serde::{Deserialize, Deserializer, Serialize};

use super::changes::{self, gate, refusal};
use super::preview::at_refusal;
use super::visible::{seen, sees_prompt};
use super::{Api, Refusal, by, json, parse, read};
use crate::access::{Action, Actor};
use crate::catalog::relabel::{RelabelError, relabel};
use crate::gate::publish::{Change, Published, Tip};
use crate::gate::wire::Deed;
use crate::git::commit::Edit;
use crate::git::{GitError, MAIN, Mode, Repository};
use crate::history::{Commit, Kind, Numbered, Version, kind};
use crate::prompt::PromptName;
use crate::prompt::name::version_number;
use crate::registry::versions::version_files;
use crate::registry::{AtError, Snapshot};
use crate::versions::{diff, log};

/// Longest request, in bytes.
const MAX_BODY: usize = 64 * 1024;
/// Versions that are listed, the newest.
const LISTED: usize = 1000;
/// Held by a request for the versions of a prompt while it reads git.
static LOGS: tokio::sync::Mutex<()> = tokio::sync::Mutex::const_new(());
/// Longest reason, in characters.
const MAX_REASON: usize = 2000;

pub(super) fn routes() -> Router<Api> {
    Router::new()
        .route("/api/v1/prompts/{name}/versions", get(versions))
        .route("/api/v1/prompts/{name}/diff", get(compare))
        .route("/api/v1/prompts/{name}/blame", get(blame::blame))
        .route("/api/v1/prompts/{name}/label", post(label))
        .route("/api/v1/prompts/{name}/revert", post(revert))
}

#[derive(Debug, Serialize)]
struct ShownCommit {
    commit: Arc<str>,
    /// Seconds since 1970, UTC.
    time: i64,
    author: Arc<str>,
    subject: Arc<str>,
}

impl From<&Commit> for ShownCommit {
    fn from(commit: &Commit) -> Self {
        Self {
            commit: commit.hex(),
            time: commit.seconds,
            author: commit.author.clone(),
            subject: commit.subject.clone(),
        }
    }
}

#[derive(Debug, Serialize)]
struct ShownVersion {
    version: u64,
    path: Arc<str>,
    labels: Vec<String>,
    #[serde(flatten)]
    of: ShownCommit,
}

#[derive(Debug, Serialize)]
struct ShownMove {
    label: String,
    version: Option<u64>,
    #[serde(flatten)]
    of: ShownCommit,
}

/// What is known of the versions of a prompt now.
struct Known {
    actor: Actor,
    snapshot: Arc<Snapshot>,
    name: String,
    numbered: Arc<Numbered>,
}

fn known(api: &Api, actor: Actor, name: &str) -> Result<Known, Refusal> {
    let name = PromptName::parse(name)
        .map_err(|error| Refusal::new(StatusCode::NOT_FOUND, error.to_string()))?;
    let snapshot = api.registry.snapshot();
    let Some(history) = &snapshot.history else {
        let error = match api.registry.counting() {
            Some((done, total)) => AtError::Counting { done, total },
            None => AtError::NotNumbered,
        };
        return Err(at_refusal(&error));
    };
    let found = history.of(name.as_str()).cloned();
    let found = found.filter(|_| sees_prompt(&snapshot, &actor, name.as_str()));
    let Some(numbered) = found else {
        let seen = seen(&snapshot.latest, &actor);
        let near = seen.suggest(name.as_str(), None);
        let hint = if near.is_empty() {
            String::new()
        } else {
            format!("; did you mean {}?", near.join(", "))
        };
        return Err(Refusal::new(
            StatusCode::NOT_FOUND,
            format!("there is no prompt `{name}`{hint}"),
        ));
    };
    Ok(Known {
        name: name.as_str().to_owned(),
        actor,
        numbered,
        snapshot,
    })
}

fn internal(error: &dyn std::fmt::Display) -> Refusal {
    tracing::error!(%error, "versions could not be read");
    Refusal::new(
        StatusCode::INTERNAL_SERVER_ERROR,
        "the versions could not be read; the server's log says more",
    )
}

/// Runs what reads git off the async threads.
async fn blocking<T: Send + 'static>(
    work: impl FnOnce() -> Result<T, Refusal> + Send + 'static,
) -> Result<T, Refusal> {
    tokio::task::spawn_blocking(work)
        .await
        .map_err(|error| internal(&error))?
}

async fn versions(
    State(api): State<Api>,
    Path(name): Path<String>,
    extensions: Extensions,
) -> Response {
    #[derive(Serialize)]
    struct Answer {
        name: String,
        /// What is served by default; none where the prompt is gone or hidden.
        served: Option<u64>,
        latest: u64,
        /// Newest first.
        versions: Vec<ShownVersion>,
        /// Labels that were moved, newest first.
        moves: Vec<ShownMove>,
    }
    let answer = async {
        let Known {
            actor,
            snapshot,
            name,
            numbered,
        } = known(&api, by(&extensions).actor, &name)?;
        let registry = api.registry.clone();
        let (of, snap) = (name.clone(), snapshot.clone());
        // one of these at a time, which leaves a place to those who ask for a version
        let _one = LOGS.lock().await;
        let _permit = api
            .registry
            .reading()
            .await
            .map_err(|error| at_refusal(&error))?;
        let (moves, mut labels) = blocking(move || {
            let mut labels: HashMap<u64, Vec<String>> = HashMap::new();
            for (label, prompt, number) in snap.latest.labels() {
                if *prompt == *of {
                    labels.entry(number).or_default().push(label.to_owned());
                }
            }
            let (Some(repository), Some(history)) =
                (registry.library().repository(), &snap.history)
            else {
                return Ok((Vec::new(), labels));
            };
            let moves = log::moves(repository, history, &of).map_err(|error| internal(&error))?;
            Ok((moves, labels))
        })
        .await?;
        let versions = numbered
            .versions
            .iter()
            .enumerate()
            .rev()
            .filter(|(_, version)| actor.may(Action::Read, &version.path))
            .take(LISTED)
            .map(|(index, version)| ShownVersion {
                version: index as u64 + 1,
                path: version.path.clone(),
                labels: labels.remove(&(index as u64 + 1)).unwrap_or_default(),
                of: ShownCommit::from(&*version.commit),
            })
            .collect();
        let served = snapshot
            .catalog
            .prompt(&name)
            .and_then(|_| snapshot.served_version(&name))
            .map(|(number, _)| number);
        Ok(json(&Answer {
            served,
            latest: numbered.latest(),
            versions,
            moves: moves
                .into_iter()
                .rev()
                .take(LISTED)
                .map(|moved| ShownMove {
                    of: ShownCommit::from(&*moved.commit),
                    label: moved.label,
                    version: moved.number,
                })
                .collect(),
            name,
        }))
    };
    answer.await.unwrap_or_else(Refusal::into_response)
}

/// A version of a query or a body: `v3`, or a label.
fn number(known: &Known, text: &str) -> Result<u64, Refusal> {
    let labelled = || known.snapshot.latest.label(text, &known.name);
    let Some(number) = version_number(text).or_else(labelled) else {
        let shown: String = text.chars().take(40).collect();
        return Err(Refusal::new(
            StatusCode::UNPROCESSABLE_ENTITY,
            format!(
                "`{shown}` is neither a version of `{}`, such as v3, nor a label that is on it",
                known.name
            ),
        ));
    };
    let version = known.numbered.get(number);
    if version.is_none_or(|version| !known.actor.may(Action::Read, &version.path)) {
        return Err(at_refusal(&AtError::NoVersion {
            name: known.name.clone(),
            number,
            latest: known.numbered.latest(),
        }));
    }
    Ok(number)
}

fn query<'a>(uri: &'a Uri, name: &str) -> Result<&'a str, Refusal> {
    let pairs = uri.query().unwrap_or_default().split('&');
    let found = pairs
        .filter_map(|pair| pair.split_once('='))
        .find(|(key, _)| *key == name);
    found.map(|(_, value)| value).ok_or_else(|| {
        Refusal::new(
            StatusCode::UNPROCESSABLE_ENTITY,
            format!("say `{name}`, a version such as v3: ?from=v3&to=v7"),
        )
    })
}

async fn compare(
    State(api): State<Api>,
    Path(name): Path<String>,
    uri: Uri,
    extensions: Extensions,
) -> Response {
    #[derive(Serialize)]
    struct Answer {
        name: String,
        from: u64,
        to: u64,
        source: String,
        rendered: Vec<Example>,
    }
    #[derive(Serialize)]
    struct Example {
        example: String,
        diff: String,
    }
    let answer = async {
        let known = known(&api, by(&extensions).actor, &name)?;
        let from = number(&known, query(&uri, "from")?)?;
        let to = number(&known, query(&uri, "to")?)?;
        let registry = api.registry.clone();
        let answer = blocking(move || {
            let Known {
                actor,
                snapshot,
                name,
                numbered,
            } = known;
            let latest = seen(&snapshot.latest, &actor);
            let (Some(before), Some(after), Some(repository)) = (
                numbered.get(from),
                numbered.get(to),
                registry.library().repository(),
            ) else {
                return Err(at_refusal(&AtError::NotNumbered));
            };
            let today = latest.prompt(&name);
            let path = today.map_or_else(|| after.path.clone(), |prompt| prompt.path.clone());
            let compared = diff::compare(
                &registry,
                repository,
                &latest,
                &path,
                (from, before),
                (to, after),
                &|path| actor.may(Action::Read, path),
            )
            .map_err(|error| internal(&error))?;
            Ok(Answer {
                name,
                from,
                to,
                source: compared.source,
                rendered: compared
                    .rendered
                    .into_iter()
                    .map(|(example, diff)| Example { example, diff })
                    .collect(),
            })
        })
        .await?;
        Ok(json(&answer))
    };
    answer.await.unwrap_or_else(Refusal::into_response)
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
    #[error("both {1} and {2} are `{0}`; remove one first")]
    Twice(String, String, String),
    #[error(transparent)]
    Git(#[from] GitError),
}

fn unmade(error: Unmade) -> Refusal {
    match error {
        Unmade::Git(error) => internal(&error),
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

#[derive(Debug, Serialize)]
struct Done {
    commit: String,
    lines: Vec<String>,
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

async fn label(State(api): State<Api>, Path(name): Path<String>, request: Request) -> Response {
    #[derive(Deserialize)]
    #[serde(deny_unknown_fields)]
    struct Ask {
        label: String,
        /// `v7`, or another label; null takes the label off, and must be said.
        #[serde(default)]
        version: Onto,
        reason: String,
    }
    let answer = async {
        let (parts, body) = request.into_parts();
        let body = read(&parts.headers, body, MAX_BODY, "a limit of this release").await?;
        let ask: Ask = parse(&body)?;
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

async fn revert(State(api): State<Api>, Path(name): Path<String>, request: Request) -> Response {
    #[derive(Deserialize)]
    #[serde(deny_unknown_fields)]
    struct Ask {
        /// `v3`, or a label.
        version: String,
        reason: String,
    }
    let answer = async {
        let (parts, body) = request.into_parts();
        let body = read(&parts.headers, body, MAX_BODY, "a limit of this release").await?;
        let ask: Ask = parse(&body)?;
        let known = known(&api, by(&parts.extensions).actor, &name)?;
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
