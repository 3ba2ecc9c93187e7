//! `prompts/list` and `prompts/get`.

use std::sync::Arc;

use serde::Serialize;

use super::super::Answer;
use super::super::error::{Failure, RpcError};
use super::super::messages::{Shape, shape};
use super::super::pages::List;
use super::super::wire::{Common, Message, Source, SourceResource};
use super::Call;
use crate::catalog::{Catalog, Revision as CatalogRevision};
use crate::prompt::selector::SelectorError;
use crate::prompt::{At, BoundArguments, Prompt, Rendered, ResolvedResources, Selector};

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
    let made = make(call, &name, arguments.iter()).await?;
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

/// A rendered prompt with all that it came from.
pub(super) struct Made {
    pub(super) catalog: Arc<Catalog>,
    pub(super) prompt: Arc<Prompt>,
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
        Source {
            prompt: self.prompt.name.as_str(),
            path: &self.prompt.path,
            commit: match self.catalog.revision() {
                CatalogRevision::Commit(commit) => Some(commit),
                CatalogRevision::WorkTree => None,
            },
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
) -> Result<Made, Failure> {
    let (catalog, prompt) = find(call, name).await?;
    tracing::Span::current().record("prompt", prompt.name.as_str());
    let limits = call.service.registry.limits();
    let bound = BoundArguments::bind(&prompt.arguments, arguments, limits)?;
    let mut resolved = catalog.resolve(&prompt, &bound)?;
    resolved.nonce = nonce()?;
    let renderer = call.service.registry.renderer();
    let charged = &call.caller.charged;
    let rendered = renderer
        .render(charged, &prompt, &bound, &resolved, limits)
        .await?;
    Ok(Made {
        catalog,
        prompt,
        bound,
        resolved,
        rendered,
    })
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

async fn find(call: &Call<'_>, text: &str) -> Result<(Arc<Catalog>, Arc<Prompt>), Failure> {
    let selector = match Selector::parse(text) {
        Ok(selector) => selector,
        Err(SelectorError::Name(_)) => return Err(unknown(call, &call.snapshot.catalog, text)),
        Err(error) => return Err(error.into()),
    };
    let catalog = match &selector.at {
        At::Latest => call.snapshot.catalog.clone(),
        At::Revision(commit) => call.service.registry.at(commit).await?,
        At::Version(_) | At::Label(_) => {
            return Err(RpcError::invalid_params(format!(
                "this server does not number versions and has no labels yet; use `{name}` or `{name}@<commit>`",
                name = selector.name
            ))
            .into());
        }
    };
    match catalog
        .prompt(selector.name.as_str())
        .filter(|prompt| in_folder(prompt, call.folder()))
        .cloned()
    {
        Some(prompt) => Ok((catalog, prompt)),
        None => Err(unknown(call, &catalog, selector.name.as_str())),
    }
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

/// A random name for the tags of the `untrusted` filter.
fn nonce() -> Result<String, Failure> {
    let random = getrandom::u64().map_err(|error| Failure::Internal(error.to_string()))?;
    Ok(format!("{random:016x}"))
}
