//! A prompt rendered for a page: by the served catalog, the way `prompts/get` does it, for values of an example or of a form.

use std::sync::Arc;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use serde::Serialize;

use super::visit::Visit;
use super::{Failure, Web};
use crate::catalog::Catalog;
use crate::prompt::{BoundArguments, Content, Embed, Message, Prompt, ResourceBody};
use crate::workers::Caller;

/// Largest picture that is shown in a page, in bytes.
const PICTURE: usize = 96 * 1024;

/// What a prompt rendered to, or why it did not.
#[derive(Debug, Default, Serialize)]
pub struct Rendering {
    /// The messages, in order.
    pub messages: Vec<Block>,
    /// One line: what is missing or wrong.
    pub problem: Option<String>,
    /// Bound resources for these values.
    pub resources: Vec<Bound>,
    /// Bytes of all texts.
    pub bytes: usize,
}

/// A message.
#[derive(Debug, Serialize)]
pub struct Block {
    /// `user`, `assistant` or `system`.
    pub role: &'static str,
    /// `text`, `resource`, `link`, `image` or `audio`.
    pub kind: &'static str,
    /// Its text, where it has one.
    pub text: Option<String>,
    /// The address of a resource.
    pub uri: Option<String>,
    /// Its type.
    pub mime: Option<String>,
    /// A small picture, as an address that holds it.
    pub picture: Option<String>,
    /// Bytes of what is not text.
    pub bytes: usize,
}

/// A declared resource, with what is there for these values.
#[derive(Debug, Serialize)]
pub struct Bound {
    /// The binding's name.
    pub name: String,
    /// The template of its address.
    pub template: String,
    /// `resource`, `text`, `link` …
    pub embed: &'static str,
    /// Whether a render fails without it.
    pub required: bool,
    /// The address for these values; empty where an argument in it is.
    pub uri: String,
    /// The path of the file that is there.
    pub path: Option<String>,
    /// Whether that is text.
    pub is_text: bool,
}

/// The declared resources, before any value is known.
fn declared(prompt: &Prompt) -> Vec<Bound> {
    let bindings = prompt.bindings.iter().map(|binding| Bound {
        name: binding.name.to_string(),
        template: binding.uri.clone(),
        embed: binding.embed.as_str(),
        required: binding.required,
        uri: String::new(),
        path: None,
        is_text: false,
    });
    bindings.collect()
}

/// Binds, resolves and renders. What is wrong with the values is said in the rendering.
pub(super) async fn render(
    web: &Web,
    visit: &Visit,
    caller: &Caller,
    catalog: &Arc<Catalog>,
    prompt: &Arc<Prompt>,
    values: &[(String, String)],
) -> Result<Rendering, Failure> {
    let mut out = Rendering {
        resources: declared(prompt),
        ..Rendering::default()
    };
    let limits = web.api.registry.limits();
    let given = values
        .iter()
        .map(|(name, value)| (name.as_str(), value.as_str()));
    let bound = match BoundArguments::bind(&prompt.arguments, given, limits) {
        Ok(bound) => bound,
        Err(error) => {
            out.problem = Some(error.to_string());
            return Ok(out);
        }
    };
    let mut resolved = match catalog.resolve(prompt, &bound) {
        Ok(resolved) => resolved,
        Err(error) => {
            out.problem = Some(error.to_string());
            return Ok(out);
        }
    };
    for ((entry, binding), shown) in resolved
        .entries
        .iter_mut()
        .zip(&prompt.bindings)
        .zip(&mut out.resources)
    {
        shown.uri.clone_from(&entry.uri);
        // what may not be read is not there
        entry.resource = entry
            .resource
            .take()
            .filter(|found| visit.reads(&found.path));
        match &entry.resource {
            Some(found) => {
                shown.path = Some(found.path.to_string());
                shown.is_text = found.text().is_some();
            }
            None if binding.required => {
                let uri: String = entry.uri.chars().take(200).collect();
                out.problem = Some(format!(
                    "resource `{uri}` (binding `{}`) is not in the library",
                    binding.name
                ));
            }
            None => {}
        }
    }
    if out.problem.is_some() {
        return Ok(out);
    }
    resolved.nonce = match getrandom::u64() {
        Ok(random) => format!("{random:016x}"),
        Err(error) => return Err(Failure::Internal(error.to_string())),
    };
    let renderer = web.api.registry.renderer();
    match renderer
        .render(caller, prompt, &bound, &resolved, limits)
        .await
    {
        Ok(rendered) => {
            out.messages = rendered.messages.iter().map(block).collect();
            let texts = out.messages.iter().filter_map(|block| block.text.as_ref());
            out.bytes = texts.map(String::len).sum();
        }
        Err(error) if error.is_limit() => out.problem = Some(error.to_string()),
        Err(error) => out.problem = Some(format!("the prompt cannot be rendered: {error}")),
    }
    Ok(out)
}

fn block(message: &Message) -> Block {
    let role = message.role.as_str();
    match &message.content {
        Content::Text(text) => Block {
            role,
            kind: "text",
            text: Some(text.clone()),
            uri: None,
            mime: None,
            picture: None,
            bytes: 0,
        },
        Content::Resource {
            resource, embed, ..
        } => Block {
            role,
            kind: embed.as_str(),
            text: resource
                .text()
                .filter(|_| *embed != Embed::Link)
                .map(str::to_owned),
            uri: Some(resource.uri.to_string()),
            mime: Some(resource.mime_type.to_string()),
            picture: match &resource.body {
                // only kinds of pictures that hold no script
                ResourceBody::Blob(bytes)
                    if *embed == Embed::Image
                        && bytes.len() <= PICTURE
                        && ["image/png", "image/jpeg", "image/gif", "image/webp"]
                            .contains(&&*resource.mime_type) =>
                {
                    Some(format!(
                        "data:{};base64,{}",
                        resource.mime_type,
                        STANDARD.encode(bytes)
                    ))
                }
                _ => None,
            },
            bytes: resource.bytes().len(),
        },
    }
}
