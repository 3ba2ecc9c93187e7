//! The one narrow way from template to text.
//!
//! [`render`] does it in this process and is for what the fast lane admits; what may be slow or large is the same
//! [`super::Job`] in a worker process, put together by [`assemble`]. What the two give is the same, byte for byte.

use std::sync::Arc;

use tera::{Context, Value};

use super::bind::BoundArguments;
use super::closure::{Prompt, uri_template};
use super::job::{self, Inputs, JobError};
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
    #[error(
        "the rendered text is {actual} bytes or more; at most {limit} are given (output_bytes)"
    )]
    OutputLimit {
        /// Bytes of output when it was stopped.
        actual: usize,
        /// Bytes accepted.
        limit: usize,
    },
    /// A worker ended before it had an answer.
    #[error(transparent)]
    Stopped(#[from] Stopped),
}

impl RenderError {
    /// Whether a limit of time, memory or output was hit, and not a fault in the template's own words.
    pub fn is_limit(&self) -> bool {
        !matches!(self, Self::Template { .. })
    }
}

impl RenderError {
    /// Whether this machine could not do it here and now, which says nothing of the template.
    pub fn is_unable(&self) -> bool {
        matches!(
            self,
            Self::Stopped(
                Stopped::Unavailable(_)
                    | Stopped::QueueFull { .. }
                    | Stopped::QueueWait { .. }
                    | Stopped::Budget { .. }
                    | Stopped::GivenUp
            )
        )
    }
}

/// Why a worker gave no answer.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum Stopped {
    /// Its CPU time was used up.
    #[error(
        "rendering used {used_ms} ms of CPU time; at most {limit_ms} are given (worker_cpu_ms)"
    )]
    Cpu {
        /// Milliseconds used.
        used_ms: u64,
        /// Milliseconds given.
        limit_ms: u64,
    },
    /// It took too long by the clock.
    #[error("rendering took {used_ms} ms; at most {limit_ms} are given (worker_wall_ms)")]
    Wall {
        /// Milliseconds waited.
        used_ms: u64,
        /// Milliseconds given.
        limit_ms: u64,
    },
    /// It wanted too much memory.
    #[error(
        "rendering wanted {wanted} bytes of memory; at most {limit} are given (worker_memory_bytes)"
    )]
    Memory {
        /// Bytes wanted.
        wanted: u64,
        /// Bytes given.
        limit: u64,
    },
    /// The engine ended the process, as a stack that overflows does.
    #[error("rendering ended its worker process ({0})")]
    Crashed(String),
    /// Too many renders wait already.
    #[error(
        "{waiting} renders are waiting; at most {limit} may (queue_length). Try again in a moment"
    )]
    QueueFull {
        /// Renders that wait.
        waiting: usize,
        /// Renders that may.
        limit: usize,
    },
    /// No worker was free in time.
    #[error(
        "no worker was free in {waited_ms} ms; a render waits for at most {limit_ms} (queue_wait_ms). Try again in a moment"
    )]
    QueueWait {
        /// Milliseconds waited.
        waited_ms: u64,
        /// Milliseconds that are waited.
        limit_ms: u64,
    },
    /// Whoever asked has used up what one caller gets.
    #[error(
        "your renders used {used_ms} ms of CPU time; at most {limit_ms} are given in a minute (caller_cpu_ms_per_minute). Try again in {wait_seconds} s"
    )]
    Budget {
        /// Milliseconds used, those that have come back not counted.
        used_ms: u64,
        /// Milliseconds given.
        limit_ms: u64,
        /// Seconds until there are some again.
        wait_seconds: u64,
    },
    /// The check that it was for has used up what one check gets.
    #[error(
        "the renders of this check used {used_ms} ms of CPU time; at most {limit_ms} are given (check_cpu_ms); {prompt} used the most, {prompt_ms} ms"
    )]
    Check {
        /// Milliseconds used.
        used_ms: u64,
        /// Milliseconds given.
        limit_ms: u64,
        /// Path of the prompt whose renders used the most.
        prompt: String,
        /// Milliseconds of these.
        prompt_ms: u64,
    },
    /// Nobody waits for the check that it was for.
    #[error("the check was given up: whoever asked for it has gone")]
    GivenUp,
    /// There is no worker to be had.
    #[error("no worker process can be started: {0}")]
    Unavailable(String),
}

impl Stopped {
    /// Whether another attempt may end otherwise: it says something of the machine, and nothing of the template.
    pub fn is_passing(&self) -> bool {
        !matches!(
            self,
            Self::Cpu { .. } | Self::Memory { .. } | Self::Check { .. } | Self::GivenUp
        )
    }

    /// Whether it cost a worker as much as a render can.
    pub fn is_costly(&self) -> bool {
        matches!(
            self,
            Self::Cpu { .. } | Self::Wall { .. } | Self::Memory { .. } | Self::Crashed(_)
        )
    }
}

fn included_by(prompt: &str, path: &str) -> String {
    if prompt == path {
        String::new()
    } else {
        format!(" (included by {prompt})")
    }
}

/// Renders a prompt into messages, in this process. Parts that render blank vanish; resources that were not found are
/// left out.
pub fn render(
    prompt: &Prompt,
    bound: &BoundArguments,
    resources: &ResolvedResources,
    limits: &Limits,
) -> Result<Rendered, RenderError> {
    let inputs = Inputs::new(prompt, bound, resources, limits);
    let texts = if let Some(actual) = inputs.literal_excess() {
        Err(JobError::Output { actual })
    } else if !inputs.needs_engine() {
        Ok(Vec::new())
    } else if let Some(tera) = prompt.engine() {
        inputs.render(&tera)
    } else {
        Err(JobError::Compile)
    };
    assemble(prompt, resources, limits, texts)
}

/// Whether a render needs a worker: the prompt is not in the fast lane, or its values are too large for it.
pub fn needs_worker(
    prompt: &Prompt,
    bound: &BoundArguments,
    resources: &ResolvedResources,
    limits: &Limits,
) -> bool {
    let inputs = Inputs::new(prompt, bound, resources, limits);
    inputs.needs_engine()
        && inputs.literal_excess().is_none()
        && !prompt.lane.admits(inputs.value_bytes())
}

/// Puts the texts that a [`super::Job`] gave into the messages of its prompt.
pub fn assemble(
    prompt: &Prompt,
    resources: &ResolvedResources,
    limits: &Limits,
    texts: Result<Vec<String>, JobError>,
) -> Result<Rendered, RenderError> {
    let mut texts = texts
        .map_err(|error| failed(prompt, &error, limits.output_bytes))?
        .into_iter();
    let mut messages = Vec::with_capacity(prompt.parts.len());
    for (i, part) in prompt.parts.iter().enumerate() {
        match part {
            Part::Text { role, span } => {
                let text = if prompt.literal[i] {
                    prompt.text[span.clone()].to_owned()
                } else {
                    texts.next().unwrap_or_default()
                };
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

fn failed(prompt: &Prompt, error: &JobError, limit: usize) -> RenderError {
    let (path, line, column, message) = match error {
        JobError::Output { actual } => {
            return RenderError::OutputLimit {
                actual: *actual,
                limit,
            };
        }
        JobError::Engine(error) => {
            let (path, line, column) = prompt.locate(error);
            (path, line, column, error.message.clone())
        }
        JobError::Compile => (
            prompt.path.to_string(),
            0,
            0,
            "the templates of this prompt do not compile".to_owned(),
        ),
    };
    RenderError::Template {
        prompt: prompt.path.to_string(),
        path,
        line,
        column,
        message,
    }
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

/// Longest URI that a template gives, and longest value in one, in bytes.
const URI_BYTES: usize = 4096;

/// Renders the URI of a binding, whose template is always of the fast class; empty when an argument it reads is empty.
pub fn render_uri(
    prompt: &Prompt,
    binding: usize,
    bound: &BoundArguments,
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
            // nothing that long names anything, and a filter would be run on all of it
            if value.len() > URI_BYTES {
                return Err(RenderError::OutputLimit {
                    actual: value.len(),
                    limit: URI_BYTES,
                });
            }
            context.insert_value(name.to_owned(), Value::from(value));
        }
    }
    let Some(tera) = prompt.engine() else {
        return Err(failed(prompt, &JobError::Compile, URI_BYTES));
    };
    job::run(&tera, &uri_template(binding), &context, URI_BYTES)
        .map_err(|error| failed(prompt, &error, URI_BYTES))
}
