//! The one narrow way from template to text.
//!
//! Today it renders in-process and bounds the output; lanes with more isolation go behind this function.

use std::collections::BTreeMap;
use std::sync::Arc;

use tera::{Context, Value};

use super::bind::BoundArguments;
use super::closure::{Prompt, part_template, uri_template};
use super::engine::{self, Bounded, NONCE};
use super::limits::Limits;
use super::message::{Content, Embed, Message, Role};
use super::parse::Part;
use super::resource::Resource;

/// The resources of a prompt's bindings for given arguments, one entry for each binding, in order.
#[derive(Debug, Clone, Default)]
pub struct ResolvedResources {
    /// The rendered URI and what was found there.
    pub entries: Vec<ResolvedResource>,
    /// The nonce of the `untrusted` filter: an input, so that a reply can be rendered again.
    pub nonce: String,
}

/// One binding's outcome.
#[derive(Debug, Clone, Default)]
pub struct ResolvedResource {
    /// The URI its template gave; empty when an argument in it was empty.
    pub uri: String,
    /// What is there.
    pub resource: Option<Arc<Resource>>,
}

/// The messages, and what was used on the way.
#[derive(Debug, Clone, Default)]
pub struct Rendered {
    /// In order.
    pub messages: Vec<Message>,
    /// Whether the `untrusted` filter is used, so that the nonce matters.
    pub nonce_used: bool,
}

/// Why a render failed.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum RenderError {
    /// The template failed.
    #[error("{path}:{line}:{column}: {message}{}", included_by(.prompt, .path))]
    Template {
        /// Path of the prompt that was rendered.
        prompt: String,
        /// File that failed, maybe a partial.
        path: String,
        /// Line from 1.
        line: u32,
        /// Column from 1.
        column: u32,
        /// What happened, at most 500 characters.
        message: String,
    },
    /// The output is over the limit.
    #[error("the rendered text is over {limit} bytes (output_bytes)")]
    OutputLimit {
        /// Bytes accepted.
        limit: usize,
    },
}

fn included_by(prompt: &str, path: &str) -> String {
    if prompt == path {
        String::new()
    } else {
        format!(" (included by {prompt})")
    }
}

/// Renders a prompt into messages. Parts that render blank vanish; resources that were not found are left out.
pub fn render(
    prompt: &Prompt,
    bound: &BoundArguments,
    resources: &ResolvedResources,
    limits: &Limits,
) -> Result<Rendered, RenderError> {
    let mut context = None;
    let mut left = limits.output_bytes;
    let mut messages = Vec::with_capacity(prompt.parts.len());
    for (i, part) in prompt.parts.iter().enumerate() {
        match part {
            Part::Text { role, span } => {
                let text = if prompt.literal[i] {
                    prompt.text[span.clone()].to_owned()
                } else {
                    let context =
                        context.get_or_insert_with(|| full_context(prompt, bound, resources));
                    run(prompt, &part_template(i), context, left, limits)?
                };
                if text.len() > left {
                    return Err(RenderError::OutputLimit {
                        limit: limits.output_bytes,
                    });
                }
                left -= text.len();
                if !text.trim().is_empty() {
                    messages.push(Message {
                        role: *role,
                        content: Content::Text(text),
                    });
                }
            }
            Part::Resource { role, binding } => {
                let found = resources
                    .entries
                    .get(*binding)
                    .and_then(|r| r.resource.clone());
                if let Some(resource) = found {
                    messages.push(embedded(prompt, *role, *binding, resource));
                }
            }
        }
    }
    Ok(Rendered {
        messages,
        nonce_used: prompt.uses_nonce,
    })
}

fn embedded(prompt: &Prompt, role: Role, binding: usize, resource: Arc<Resource>) -> Message {
    let declared = &prompt.bindings[binding];
    let content = match (declared.embed, resource.text()) {
        (Embed::Text, Some(text)) => Content::Text(text.to_owned()),
        (Embed::Text, None) => Content::Resource {
            binding: declared.name.clone(),
            resource,
            embed: Embed::Resource,
        },
        (embed, _) => Content::Resource {
            binding: declared.name.clone(),
            resource,
            embed,
        },
    };
    Message { role, content }
}

/// Renders the URI of a binding; empty when an argument it reads is empty.
pub fn render_uri(
    prompt: &Prompt,
    binding: usize,
    bound: &BoundArguments,
    limits: &Limits,
) -> Result<String, RenderError> {
    let Some(arguments) = &prompt.uri_arguments[binding] else {
        return Ok(prompt.bindings[binding].uri.clone());
    };
    if arguments
        .iter()
        .any(|name| bound.get(name).is_none_or(str::is_empty))
    {
        return Ok(String::new());
    }
    let mut context = Context::new();
    for (name, value) in bound.iter() {
        if arguments.iter().any(|a| **a == *name) {
            context.insert_value(name.to_owned(), Value::from(value));
        }
    }
    run(prompt, &uri_template(binding), &context, 4096, limits)
}

fn full_context(prompt: &Prompt, bound: &BoundArguments, resources: &ResolvedResources) -> Context {
    let mut context = Context::new();
    for (name, value) in bound.iter() {
        context.insert_value(name.to_owned(), Value::from(value));
    }
    if prompt.uses_nonce {
        context.insert_value(NONCE, Value::from(resources.nonce.as_str()));
    }
    if prompt.uses_resources {
        let mut all: BTreeMap<String, Value> = BTreeMap::new();
        for (binding, entry) in prompt.bindings.iter().zip(&resources.entries) {
            let text = entry
                .resource
                .as_ref()
                .and_then(|r| r.text())
                .unwrap_or_default();
            let members: BTreeMap<String, Value> = BTreeMap::from([
                ("found".to_owned(), Value::from(entry.resource.is_some())),
                (
                    "uri".to_owned(),
                    Value::from(
                        entry
                            .resource
                            .as_ref()
                            .map_or(entry.uri.as_str(), |r| &*r.uri),
                    ),
                ),
                ("text".to_owned(), Value::from(text)),
            ]);
            all.insert(binding.name.to_string(), Value::from(members));
        }
        context.insert_value("resources", Value::from(all));
    }
    context
}

fn run(
    prompt: &Prompt,
    template: &str,
    context: &Context,
    left: usize,
    limits: &Limits,
) -> Result<String, RenderError> {
    let fail = |path: &str, line, column, message: &str| RenderError::Template {
        prompt: prompt.path.to_string(),
        path: path.to_owned(),
        line,
        column,
        message: message.to_owned(),
    };
    let Some(tera) = prompt.engine() else {
        return Err(fail(
            &prompt.path,
            0,
            0,
            "the templates of this prompt do not compile",
        ));
    };
    let mut out = Bounded {
        bytes: Vec::with_capacity(1024),
        limit: left,
        exceeded: false,
    };
    let result = engine::guarded(|| tera.render_to(template, context, &mut out));
    if out.exceeded {
        return Err(RenderError::OutputLimit {
            limit: limits.output_bytes,
        });
    }
    if let Err(error) = result {
        let places = engine::places(&error);
        let Some(first) = places.first() else {
            return Err(fail(&prompt.path, 0, 0, "the template failed"));
        };
        let (path, line, column) = prompt.locate(first);
        return Err(fail(&path, line, column, &first.message));
    }
    String::from_utf8(out.bytes).map_err(|_| {
        fail(
            &prompt.path,
            0,
            0,
            "the template gave bytes that are not UTF-8",
        )
    })
}
