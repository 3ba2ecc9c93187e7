//! `prompts/list` and `prompts/get`.

use std::cell::RefCell;
use std::sync::Arc;
use std::time::Instant;

use serde::Serialize;

use super::super::Answer;
use super::super::error::{Failure, RpcError};
use super::super::messages::{Shape, shape};
use super::super::pages::List;
use super::super::wire::{Common, Message, Source, SourceResource};
use super::Call;
use crate::catalog::{Catalog, Revision as CatalogRevision};
use crate::history::Version;
use crate::prompt::render::ResolvedResource;
use crate::prompt::selector::SelectorError;
use crate::prompt::{At, BoundArguments, Prompt, Rendered, ResolvedResources, Selector};
use crate::records::{Get, Given, Outcome, Via};
use crate::registry::AtError;

pub(super) fn list(call: &Call<'_>) -> Result<Answer, Failure> {
    call.page(List::Prompts)
}

pub(super) async fn get(call: &Call<'_>) -> Result<Answer, Failure> {
    #[derive(Serialize)]
    struct Get<'a> {
        #[serde(skip_serializing_if = "Option::is_none")]
        description: Option<&'a str>,
        messages: &'a [Message<'a>],
        #[serde(flatten)]
        common: Common<'a>,
    }
    let name = call.params.name()?;
    let arguments = call.params.prompt_arguments()?;
    let made = make(call, &name, arguments.iter(), Via::Prompt).await?;
    let values: Vec<&str> = made.bound.iter().map(|(_, value)| value).collect();
    let settings = &call.service.settings;
    let (messages, transforms) = shape(
        &made.rendered.messages,
        &values,
        Shape {
            revision: call.caller.revision,
            needs: call.caller.client.needs(),
            inline: settings.inline,
            neutralise: settings.neutralise,
        },
    );
    let source = made.source(transforms);
    let expected = made.rendered.messages.iter().map(text_bytes).sum::<usize>() + 1024;
    call.respond(
        &Get {
            description: made.prompt.description.as_deref(),
            messages: &messages,
            common: Common::plain(call.caller.revision).with_source(&source),
        },
        expected,
    )
}

fn text_bytes(message: &crate::prompt::Message) -> usize {
    match &message.content {
        crate::prompt::Content::Text(text) => text.len() + text.len() / 8 + 64,
        crate::prompt::Content::Resource { resource, .. } => resource.bytes().len() * 4 / 3 + 256,
    }
}

/// A prompt, and the catalog that its resources are of.
struct Found {
    catalog: Arc<Catalog>,
    prompt: Arc<Prompt>,
    version: Option<Numbered>,
}

/// Which version a prompt is.
struct Numbered {
    number: u64,
    /// Where its text is of, where that is not the catalog's commit.
    of: Option<Version>,
}

/// A rendered prompt with all that it came from.
pub(super) struct Made {
    catalog: Arc<Catalog>,
    pub(super) prompt: Arc<Prompt>,
    version: Option<Numbered>,
    pub(super) bound: BoundArguments,
    pub(super) resolved: ResolvedResources,
    pub(super) rendered: Rendered,
}

impl Made {
    pub(super) fn source(&self, transforms: Vec<&'static str>) -> Source<'_> {
        let resources = self
            .resolved
            .entries
            .iter()
            .filter_map(|entry| entry.resource.as_deref())
            .map(|resource| SourceResource {
                uri: &resource.uri,
                path: &resource.path,
                sha256: &resource.sha256,
            })
            .collect();
        let unknown = self.bound.unknown();
        let warnings = if unknown.is_empty() {
            Vec::new()
        } else {
            vec![format!(
                "ignored arguments that `{}` does not declare: {}",
                self.prompt.name,
                unknown.join(", ")
            )]
        };
        let served = match self.catalog.revision() {
            CatalogRevision::Commit(commit) => Some(commit),
            CatalogRevision::WorkTree => None,
        };
        let earlier = self.version.as_ref().and_then(|v| v.of.as_ref());
        Source {
            prompt: self.prompt.name.as_str(),
            path: earlier.map_or(&*self.prompt.path, |version| &*version.path),
            version: self.version.as_ref().map(|version| version.number),
            commit: match earlier {
                Some(version) => Some(version.commit.hex()),
                None => served.cloned(),
            },
            resources_commit: earlier.and(served.map(|commit| &**commit)),
            sha256: &self.prompt.sha256,
            resources,
            nonce: self.rendered.nonce_used.then_some(&*self.resolved.nonce),
            warnings,
            transforms,
        }
    }
}

/// Finds, binds, resolves and renders.
pub(super) async fn make<'a>(
    call: &Call<'_>,
    name: &str,
    arguments: impl Iterator<Item = (&'a str, &'a str)>,
    via: Via,
) -> Result<Made, Failure> {
    let Found {
        catalog,
        prompt,
        version,
    } = find(call, name).await?;
    tracing::Span::current().record("prompt", prompt.name.as_str());
    let started = Instant::now();
    let arguments: Vec<(&str, &str)> = arguments.collect();
    let limits = call.service.registry.limits();
    let bound = match BoundArguments::bind(&prompt.arguments, arguments.iter().copied(), limits) {
        Ok(bound) => bound,
        Err(error) => {
            note(
                call,
                &catalog,
                &prompt,
                &arguments,
                via,
                started,
                Outcome::Refused,
                &[],
                version.as_ref(),
            );
            return Err(error.into());
        }
    };
    match fill(call, &catalog, &prompt, &bound).await {
        Ok((resolved, rendered)) => {
            note(
                call,
                &catalog,
                &prompt,
                &arguments,
                via,
                started,
                Outcome::Delivered,
                &resolved.entries,
                version.as_ref(),
            );
            Ok(Made {
                catalog,
                prompt,
                version,
                bound,
                resolved,
                rendered,
            })
        }
        Err(failure) => {
            note(
                call,
                &catalog,
                &prompt,
                &arguments,
                via,
                started,
                Outcome::Failed,
                &[],
                version.as_ref(),
            );
            Err(failure)
        }
    }
}

/// Resolves and renders.
async fn fill(
    call: &Call<'_>,
    catalog: &Catalog,
    prompt: &Arc<Prompt>,
    bound: &BoundArguments,
) -> Result<(ResolvedResources, Rendered), Failure> {
    let mut resolved = catalog.resolve(prompt, bound)?;
    resolved.nonce = nonce()?;
    let (renderer, limits) = (
        call.service.registry.renderer(),
        call.service.registry.limits(),
    );
    let charged = &call.caller.charged;
    let rendered = renderer
        .render(charged, prompt, bound, &resolved, limits)
        .await?;
    Ok((resolved, rendered))
}

#[allow(
    clippy::too_many_arguments,
    reason = "all that a record says, named at its calls"
)]
/// Notes what came of a call; never waits.
fn note(
    call: &Call<'_>,
    catalog: &Arc<Catalog>,
    prompt: &Arc<Prompt>,
    arguments: &[(&str, &str)],
    via: Via,
    started: Instant,
    outcome: Outcome,
    resolved: &[ResolvedResource],
    version: Option<&Numbered>,
) {
    let Some(records) = &call.service.records else {
        return;
    };
    let client = &call.caller.client;
    records.got(Get {
        at: crate::clock::unix_millis(),
        actor: call.caller.actor.name.clone(),
        client: client.name.clone(),
        client_version: client.version.clone(),
        via,
        outcome,
        took: started.elapsed(),
        catalog: catalog.clone(),
        prompt: prompt.clone(),
        version: version.and_then(|version| u32::try_from(version.number).ok()),
        of: version
            .and_then(|version| version.of.as_ref())
            .map(|version| (version.commit.hex(), version.path.clone())),
        resources: resolved
            .iter()
            .filter_map(|entry| entry.resource.clone())
            .collect(),
        given: Given::of(&prompt.arguments, arguments.iter().copied()),
    });
}

/// Whether a prompt is in a folder or in one below it.
pub(super) fn in_folder(prompt: &Prompt, folder: Option<&str>) -> bool {
    folder.is_none_or(|folder| {
        prompt
            .folder
            .strip_prefix(folder)
            .is_some_and(|rest| rest.is_empty() || rest.starts_with('/'))
    })
}

async fn find(call: &Call<'_>, text: &str) -> Result<Found, Failure> {
    let snapshot = &call.snapshot;
    let selector = match Selector::parse(text) {
        Ok(selector) => selector,
        Err(SelectorError::Name(_)) => return Err(unknown(call, &snapshot.catalog, text)),
        Err(error) => return Err(error.into()),
    };
    let name = selector.name.as_str();
    let of = |catalog: &Arc<Catalog>| -> Result<(Arc<Catalog>, Arc<Prompt>), Failure> {
        match catalog.prompt(name) {
            Some(prompt) if in_folder(prompt, call.folder()) => {
                Ok((catalog.clone(), prompt.clone()))
            }
            _ => Err(unknown(call, catalog, name)),
        }
    };
    let told = |error: AtError| error.told(call.caller.actor.sees_all());
    let number = match &selector.at {
        At::Served => {
            let (catalog, prompt) = of(&snapshot.catalog)?;
            let version = snapshot.served_version(name).map(|(number, version)| {
                let is_newest = snapshot.latest_version(name) == Some(number);
                Numbered {
                    number,
                    of: (!is_newest).then(|| version.clone()),
                }
            });
            return Ok(Found {
                catalog,
                prompt,
                version,
            });
        }
        At::Latest => {
            let (catalog, prompt) = of(&snapshot.latest)?;
            let version = snapshot
                .latest_version(name)
                .map(|number| Numbered { number, of: None });
            return Ok(Found {
                catalog,
                prompt,
                version,
            });
        }
        At::Revision(commit) => {
            let registry = &call.service.registry;
            let catalog = registry.at(commit).await.map_err(told)?;
            let views = &call.service.views;
            let (catalog, prompt) = of(&views.earlier(&call.caller.actor, &catalog))?;
            // what is hidden today was not hidden for nothing
            let today = call.whole.latest.prompt(name);
            if today.is_some_and(|prompt| !call.sees(&prompt.path)) {
                return Err(unknown(call, &catalog, name));
            }
            let number = match catalog.revision() {
                CatalogRevision::Commit(commit) => {
                    registry
                        .version_at(snapshot, name, commit, &prompt.path)
                        .await
                }
                CatalogRevision::WorkTree => None,
            };
            return Ok(Found {
                catalog,
                prompt,
                version: number.map(|number| Numbered { number, of: None }),
            });
        }
        At::Version(number) => *number,
        At::Label(label) => {
            of(&snapshot.latest)?;
            match snapshot.latest.label(label, name) {
                Some(number) => number,
                None => return Err(no_label(snapshot.latest.knows_label(label), label, name)),
            }
        }
    };
    let (catalog, newest) = of(&snapshot.latest)?;
    let registry = &call.service.registry;
    let found = registry.version(snapshot, name, number).await;
    let found = found.map_err(told)?;
    if !call.sees(&found.version.path) {
        return Err(unknown(call, &catalog, text));
    }
    let is_newest = Arc::ptr_eq(&newest, &found.prompt);
    Ok(Found {
        catalog,
        prompt: found.prompt,
        version: Some(Numbered {
            number,
            of: (!is_newest).then_some(found.version),
        }),
    })
}

fn no_label(is_known: bool, label: &str, name: &str) -> Failure {
    RpcError::invalid_params(if is_known {
        format!("label `{label}` is not on `{name}`; `{name}@latest` gives the newest version")
    } else {
        format!("there is no label `{label}`; `{name}@latest` gives the newest version")
    })
    .into()
}

fn unknown(call: &Call<'_>, catalog: &Catalog, name: &str) -> Failure {
    let shown: String = name.chars().take(80).collect();
    let near = if name.len() <= 200 {
        catalog.suggest(name, call.folder())
    } else {
        Vec::new()
    };
    let mut message = format!("there is no prompt `{shown}`");
    if !near.is_empty() {
        let near: Vec<String> = near
            .iter()
            .take(3)
            .map(|name| format!("`{name}`"))
            .collect();
        message = format!("{message}; did you mean {}?", near.join(", "));
    }
    RpcError::invalid_params(message).into()
}

/// Random numbers that are asked of the system at once.
const NONCES: usize = 32;

thread_local! {
    /// Those that are left.
    static RANDOM: RefCell<Vec<u64>> = const { RefCell::new(Vec::new()) };
}

/// A random name for the tags of the `untrusted` filter.
fn nonce() -> Result<String, Failure> {
    let random = RANDOM.with_borrow_mut(|left| {
        if left.is_empty() {
            let mut bytes = [0; NONCES * 8];
            getrandom::fill(&mut bytes)?;
            let (numbers, _) = bytes.as_chunks::<8>();
            left.extend(numbers.iter().map(|number| u64::from_ne_bytes(*number)));
        }
        Ok(left.pop().unwrap_or_default())
    });
    let random = random.map_err(|error: getrandom::Error| Failure::Internal(error.to_string()))?;
    Ok(format!("{random:016x}"))
}
