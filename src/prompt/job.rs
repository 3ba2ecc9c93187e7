//! A render as data: what a template may read and nothing else, so that it can be done in this process or in another.

use std::borrow::Cow;
use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};
use tera::{Context, Tera, Value};

use super::bind::BoundArguments;
use super::closure::{Prompt, part_template};
use super::engine::{self, Bounded, EngineError, NONCE};
use super::limits::Limits;
use super::parse::Part;
use super::render::ResolvedResources;

/// Everything a worker needs to render a prompt: its templates and the values they read.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct Job<'a> {
    /// Name and source of each template of the closure.
    templates: Vec<(Cow<'a, str>, Cow<'a, str>)>,
    inputs: Inputs<'a>,
}

/// What the templates of a prompt read, and which of them are rendered.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub(super) struct Inputs<'a> {
    /// Parts that are templates, by their place in the prompt.
    parts: Vec<usize>,
    values: Vec<(Cow<'a, str>, Cow<'a, str>)>,
    nonce: Option<Cow<'a, str>>,
    resources: Option<Vec<ResourceText<'a>>>,
    /// Bytes that parts without a template take of the output.
    literal_bytes: usize,
    output_bytes: usize,
}

/// What a template may read of a bound resource.
#[derive(Debug, Clone, Serialize, Deserialize)]
struct ResourceText<'a> {
    binding: Cow<'a, str>,
    found: bool,
    uri: Cow<'a, str>,
    text: Cow<'a, str>,
}

/// Why a job gave no texts.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub enum JobError {
    /// The output is over its limit; bytes that it would have had at least.
    Output {
        /// Bytes of output, the one that was too much included.
        actual: usize,
    },
    /// The engine failed at a place.
    Engine(EngineError),
    /// The templates do not compile, which the check has ruled out.
    Compile,
}

/// Characters of a message that are kept.
const MESSAGE_CHARACTERS: usize = 500;
/// Characters of a template's name that are kept: a path.
const NAME_CHARACTERS: usize = 4096;

impl JobError {
    /// The same, no longer than one of this process would be: it may come from a worker that is no longer ours.
    #[must_use]
    pub fn bounded(mut self) -> Self {
        if let Self::Engine(error) = &mut self {
            for (text, most) in [
                (&mut error.message, MESSAGE_CHARACTERS),
                (&mut error.template, NAME_CHARACTERS),
            ] {
                if let Some((end, _)) = text.char_indices().nth(most) {
                    text.truncate(end);
                }
            }
        }
        self
    }
}

impl<'a> Job<'a> {
    /// The job of rendering a prompt.
    pub fn new(
        prompt: &'a Prompt,
        bound: &'a BoundArguments,
        resources: &'a ResolvedResources,
        limits: &Limits,
    ) -> Self {
        Self {
            templates: prompt.sources().collect(),
            inputs: Inputs::new(prompt, bound, resources, limits),
        }
    }

    /// Texts that [`Self::run`] gives.
    pub fn texts(&self) -> usize {
        self.inputs.parts.len()
    }

    /// Bytes that these may have together.
    pub fn texts_bytes(&self) -> usize {
        self.inputs
            .output_bytes
            .saturating_sub(self.inputs.literal_bytes)
    }

    /// Renders: one text for each part that is a template, in order.
    pub fn run(&self) -> Result<Vec<String>, JobError> {
        let templates = self
            .templates
            .iter()
            .map(|(name, source)| (name.to_string(), source.to_string()))
            .collect();
        let tera = engine::compile(templates).map_err(|_| JobError::Compile)?;
        self.inputs.render(&tera)
    }
}

impl<'a> Inputs<'a> {
    pub(super) fn new(
        prompt: &'a Prompt,
        bound: &'a BoundArguments,
        resources: &'a ResolvedResources,
        limits: &Limits,
    ) -> Self {
        let mut parts = Vec::new();
        let mut literal_bytes = 0;
        for (i, part) in prompt.parts.iter().enumerate() {
            match part {
                Part::Text { span, .. } if prompt.literal[i] => literal_bytes += span.len(),
                Part::Text { .. } => parts.push(i),
                Part::Resource { .. } => {}
            }
        }
        let resources_read = prompt.uses_resources.then(|| {
            prompt
                .bindings
                .iter()
                .zip(&resources.entries)
                .map(|(binding, entry)| {
                    let found = entry.resource.as_deref();
                    ResourceText {
                        binding: Cow::Borrowed(&*binding.name),
                        found: found.is_some(),
                        uri: Cow::Borrowed(found.map_or(entry.uri.as_str(), |r| &*r.uri)),
                        text: Cow::Borrowed(found.and_then(|r| r.text()).unwrap_or_default()),
                    }
                })
                .collect()
        });
        Self {
            parts,
            values: bound
                .iter()
                .map(|(name, value)| (Cow::Borrowed(name), Cow::Borrowed(value)))
                .collect(),
            nonce: prompt
                .uses_nonce
                .then_some(Cow::Borrowed(resources.nonce.as_str())),
            resources: resources_read,
            literal_bytes,
            output_bytes: limits.output_bytes,
        }
    }

    /// Whether there is a template to render at all.
    pub(super) fn needs_engine(&self) -> bool {
        !self.parts.is_empty()
    }

    /// Bytes that parts without a template take, when that is too much already.
    pub(super) fn literal_excess(&self) -> Option<usize> {
        (self.literal_bytes > self.output_bytes).then_some(self.literal_bytes)
    }

    /// Bytes of all values that a template can read.
    pub(super) fn value_bytes(&self) -> usize {
        let resources = self.resources.iter().flatten();
        self.values
            .iter()
            .map(|(_, value)| value.len())
            .sum::<usize>()
            + resources.map(|r| r.text.len() + r.uri.len()).sum::<usize>()
    }

    pub(super) fn render(&self, tera: &Tera) -> Result<Vec<String>, JobError> {
        let context = self.context();
        let mut used = self.literal_bytes;
        let mut texts = Vec::with_capacity(self.parts.len());
        for part in &self.parts {
            let left = self.output_bytes.saturating_sub(used);
            let text = run(tera, &part_template(*part), &context, left).map_err(|e| match e {
                JobError::Output { actual } => JobError::Output {
                    actual: used + actual,
                },
                other => other,
            })?;
            used += text.len();
            texts.push(text);
        }
        Ok(texts)
    }

    fn context(&self) -> Context {
        let mut context = Context::new();
        for (name, value) in &self.values {
            context.insert_value(name.to_string(), Value::from(&**value));
        }
        if let Some(nonce) = &self.nonce {
            context.insert_value(NONCE, Value::from(&**nonce));
        }
        if let Some(resources) = &self.resources {
            let all: BTreeMap<String, Value> = resources
                .iter()
                .map(|resource| {
                    let members = BTreeMap::from([
                        ("found".to_owned(), Value::from(resource.found)),
                        ("uri".to_owned(), Value::from(&*resource.uri)),
                        ("text".to_owned(), Value::from(&*resource.text)),
                    ]);
                    (resource.binding.to_string(), Value::from(members))
                })
                .collect();
            context.insert_value("resources", Value::from(all));
        }
        context
    }
}

/// Renders one template into at most `left` bytes.
pub(super) fn run(
    tera: &Tera,
    template: &str,
    context: &Context,
    left: usize,
) -> Result<String, JobError> {
    let mut out = Bounded {
        bytes: Vec::with_capacity(1024.min(left)),
        limit: left,
        exceeded: None,
    };
    let result = engine::guarded(|| tera.render_to(template, context, &mut out));
    if let Some(actual) = out.exceeded {
        return Err(JobError::Output { actual });
    }
    let failed = |message: &str| {
        JobError::Engine(EngineError {
            template: template.to_owned(),
            line: 1,
            column: 1,
            message: message.to_owned(),
        })
    };
    if let Err(error) = result {
        let first = engine::places(&error).into_iter().next();
        return Err(first.map_or_else(|| failed("the template failed"), JobError::Engine));
    }
    String::from_utf8(out.bytes).map_err(|_| failed("the template gave bytes that are not UTF-8"))
}
