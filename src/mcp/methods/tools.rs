//! Prompts as tools, for the many clients that show tools only.

use std::borrow::Cow;
use std::fmt::Write;
use std::sync::Arc;

use rmcp::model::{JsonObject, Tool, ToolAnnotations};
use serde::{Deserialize, Serialize};
use serde_json::value::RawValue;
use serde_json::{Value, json};

use super::super::Answer;
use super::super::clients::{Inline, Needs, Reads};
use super::super::envelope::{kind, present, text};
use super::super::error::{Failure, RpcError};
use super::super::messages::{Shape, flat, flat_one, shape};
use super::super::params::{Arguments, object, required_text};
use super::super::revision::Revision;
use super::super::wire::{Base64, Block, Common, Source};
use super::Call;
use super::prompts::{in_folder, make};
use crate::access::Action;
use crate::prompt::{Content, Embed, Prompt};
use crate::records::Via;
use crate::search::{Access, Ask, Index, Kinds, Match};

const LIST: &str = "list_prompts";
const SEARCH: &str = "search_prompts";
const GET: &str = "get_prompt";

/// Prompts in one answer of `list_prompts`.
const LISTED: usize = 200;
/// Prompts in one answer of `search_prompts`, unless it says.
const SEARCHED: usize = 10;
/// Resources in one answer of `search_prompts`.
const BESIDE: usize = 3;
/// Longest query that is searched for, in characters.
const MAX_QUERY: usize = 200;

pub(super) fn list(call: &Call<'_>) -> Result<Answer, Failure> {
    #[derive(Serialize)]
    struct Listed {
        tools: Vec<Tool>,
        #[serde(flatten)]
        common: Common<'static>,
    }
    let revision = call.caller.revision;
    let tools = if call.service.settings.tools {
        tools(revision)
    } else {
        Vec::new()
    };
    call.respond(
        &Listed {
            tools,
            common: Common::cacheable(revision, call.by_actor()),
        },
        4096,
    )
}

fn tools(revision: Revision) -> Vec<Tool> {
    let matches = json!({ "type": "array", "items": {
        "type": "object",
        "properties": {
            "field": { "type": "string" },
            "line": { "type": "integer", "minimum": 1 },
            "text": { "type": "string" },
            "ranges": { "type": "array", "items": { "type": "array", "items": { "type": "integer", "minimum": 0 } } }
        },
        "required": ["field", "text", "ranges"]
    } });
    let prompts = json!({
        "type": "object",
        "properties": {
            "prompts": { "type": "array", "items": {
                "type": "object",
                "properties": {
                    "name": { "type": "string" },
                    "folder": { "type": "string" },
                    "title": { "type": "string" },
                    "description": { "type": "string" },
                    "tags": { "type": "array", "items": { "type": "string" } },
                    "arguments": { "type": "array", "items": {
                        "type": "object",
                        "properties": {
                            "name": { "type": "string" },
                            "description": { "type": "string" },
                            "required": { "type": "boolean" },
                            "default": { "type": "string" }
                        },
                        "required": ["name", "required"]
                    } },
                    "matches": matches.clone()
                },
                "required": ["name", "folder", "tags", "arguments"]
            } },
            "total": { "type": "integer", "minimum": 0 },
            "resources": { "type": "array", "items": {
                "type": "object",
                "properties": {
                    "uri": { "type": "string" },
                    "matches": matches
                },
                "required": ["uri", "matches"]
            } },
            "index": { "type": "string", "enum": ["current", "scan"] },
            "revision": { "type": "string" }
        },
        "required": ["prompts", "total"]
    });
    let got = json!({
        "type": "object",
        "properties": {
            "name": { "type": "string" },
            "description": { "type": "string" },
            "messages": { "type": "array", "items": {
                "type": "object",
                "properties": {
                    "role": { "type": "string", "enum": ["user", "assistant"] },
                    "text": { "type": "string" }
                },
                "required": ["role", "text"]
            } },
            "source": { "type": "object" }
        },
        "required": ["name", "messages", "source"]
    });
    vec![
        tool(
            revision,
            LIST,
            "List prompts",
            "List the team's prompt templates with their arguments. Use it to see what exists before writing a prompt of your own.",
            json!({
                "type": "object",
                "properties": {
                    "folder": { "type": "string", "description": "Only this folder and the folders below it, e.g. sre" },
                    "tag": { "type": "string", "description": "Only prompts with this tag" }
                },
                "additionalProperties": false
            }),
            &prompts,
        ),
        tool(
            revision,
            SEARCH,
            "Search prompts",
            "Find the team's prompt templates, and the runbooks and guides beside them, by words in names, titles, descriptions, tags, arguments and texts, best first. folder:, tag:, arg: and label: narrow it.",
            json!({
                "type": "object",
                "properties": {
                    "query": { "type": "string", "description": "What the prompt is for, e.g. database outage, or outage tag:incident folder:sre" },
                    "limit": { "type": "integer", "minimum": 1, "maximum": LISTED, "description": "How many at most; 10 unless given" }
                },
                "required": ["query"],
                "additionalProperties": false
            }),
            &prompts,
        ),
        tool(
            revision,
            GET,
            "Get a prompt",
            "Get one of the team's prompt templates with its arguments filled in and its runbooks and guides inside. Follow the text it returns.",
            json!({
                "type": "object",
                "properties": {
                    "name": { "type": "string", "description": "Name from list_prompts or search_prompts; name@v3 for a version, name@production for a label, name@<commit> for an older text" },
                    "arguments": {
                        "type": "object",
                        "additionalProperties": { "type": "string" },
                        "description": "Values by argument name, all of them strings"
                    }
                },
                "required": ["name"],
                "additionalProperties": false
            }),
            &got,
        ),
    ]
}

fn tool(
    revision: Revision,
    name: &'static str,
    title: &str,
    description: &'static str,
    input: Value,
    output: &Value,
) -> Tool {
    let schema = |value: Value| match value {
        Value::Object(map) => Arc::new(map),
        _ => Arc::new(JsonObject::new()),
    };
    let mut tool = Tool::default();
    tool.name = Cow::Borrowed(name);
    tool.description = Some(Cow::Borrowed(description));
    tool.input_schema = schema(input);
    tool.title = revision.has_title().then(|| title.to_owned());
    tool.output_schema = revision
        .has_structured_content()
        .then(|| schema(output.clone()));
    tool.annotations = revision.has_tool_annotations().then(|| {
        ToolAnnotations::from_raw(
            Some(title.to_owned()),
            Some(true),
            Some(false),
            Some(true),
            Some(false),
        )
    });
    tool
}

pub(super) async fn call(call: &Call<'_>) -> Result<Answer, Failure> {
    let name = call.params.name()?;
    let outcome = match &*name {
        _ if !call.service.settings.tools => Err(unknown_tool(&name)),
        LIST => list_prompts(call),
        SEARCH => search_prompts(call).await,
        GET => get_prompt(call).await,
        other => return Err(unknown_tool(other)),
    };
    match outcome {
        Ok(answer) => Ok(answer),
        // A model can act on the line; a protocol error it may never see.
        Err(Failure::Client(error)) if call.service.settings.tools => respond(
            call,
            vec![Block::Text {
                text: error.message.into(),
            }],
            &(),
            true,
        ),
        Err(failure) => Err(failure),
    }
}

fn unknown_tool(name: &str) -> Failure {
    let name: String = name.chars().take(80).collect();
    RpcError::invalid_params(format!("there is no tool `{name}`")).into()
}

fn respond(
    call: &Call<'_>,
    content: Vec<Block<'_>>,
    structured: &impl Serialize,
    is_error: bool,
) -> Result<Answer, Failure> {
    #[derive(Serialize)]
    #[serde(rename_all = "camelCase")]
    struct Called<'a, S> {
        content: Vec<Block<'a>>,
        #[serde(skip_serializing_if = "Option::is_none")]
        structured_content: Option<S>,
        is_error: bool,
        #[serde(flatten)]
        common: Common<'a>,
    }
    let called = Called {
        content,
        structured_content: (call.caller.revision.has_structured_content() && !is_error)
            .then_some(structured),
        is_error,
        common: Common::plain(call.caller.revision),
    };
    call.respond(&called, 4096)
}

#[derive(Serialize)]
struct Entry<'a> {
    name: &'a str,
    folder: &'a str,
    #[serde(skip_serializing_if = "Option::is_none")]
    title: Option<&'a str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    description: Option<&'a str>,
    tags: &'a [String],
    arguments: Vec<EntryArgument<'a>>,
    #[serde(skip_serializing_if = "<[Match]>::is_empty")]
    matches: &'a [Match],
}

#[derive(Serialize)]
struct EntryArgument<'a> {
    name: &'a str,
    #[serde(skip_serializing_if = "Option::is_none")]
    description: Option<&'a str>,
    required: bool,
    #[serde(skip_serializing_if = "Option::is_none")]
    default: Option<&'a str>,
}

impl<'a> From<&'a Prompt> for Entry<'a> {
    fn from(prompt: &'a Prompt) -> Self {
        Self {
            name: prompt.name.as_str(),
            folder: &prompt.folder,
            title: prompt.title.as_deref(),
            description: prompt.description.as_deref(),
            tags: &prompt.tags,
            arguments: prompt
                .arguments
                .iter()
                .map(|argument| EntryArgument {
                    name: &argument.name,
                    description: argument.description.as_deref(),
                    required: argument.required,
                    default: argument.default.as_deref(),
                })
                .collect(),
            matches: &[],
        }
    }
}

/// A list of prompts, or what a search found.
#[derive(Serialize)]
struct Entries<'a> {
    prompts: Vec<Entry<'a>>,
    total: usize,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    resources: Vec<FoundResource<'a>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    index: Option<Index>,
    #[serde(skip_serializing_if = "Option::is_none")]
    revision: Option<&'a str>,
}

#[derive(Serialize)]
struct FoundResource<'a> {
    uri: &'a str,
    matches: &'a [Match],
}

/// `others` says how to get at those of `total` that are not among the prompts.
fn entries(call: &Call<'_>, listed: &Entries<'_>, others: &str) -> Result<Answer, Failure> {
    let mut lines = String::new();
    for entry in &listed.prompts {
        lines.push_str(entry.name);
        if !entry.arguments.is_empty() {
            let names: Vec<String> = entry
                .arguments
                .iter()
                .map(|argument| {
                    if argument.required {
                        argument.name.to_owned()
                    } else {
                        format!("[{}]", argument.name)
                    }
                })
                .collect();
            let _ = write!(lines, "({})", names.join(", "));
        }
        if let Some(what) = entry.description.or(entry.title) {
            lines.push_str(": ");
            lines.push_str(what);
        }
        lines.push('\n');
    }
    let shown = listed.prompts.len();
    if shown < listed.total {
        let _ = writeln!(lines, "{shown} of {} shown; {others}", listed.total);
    } else if listed.prompts.is_empty() {
        lines.push_str("no prompt fits\n");
    }
    for resource in &listed.resources {
        let _ = write!(lines, "resource {}", resource.uri);
        let line = resource.matches.iter().find(|found| found.line.is_some());
        if let Some(found) = line {
            let _ = write!(lines, ": {}", found.text.trim());
        }
        lines.push('\n');
    }
    respond(
        call,
        vec![Block::Text { text: lines.into() }],
        listed,
        false,
    )
}

#[derive(Default, Deserialize)]
struct Given<'a> {
    #[serde(borrow, default, deserialize_with = "present")]
    folder: Option<&'a RawValue>,
    #[serde(borrow, default, deserialize_with = "present")]
    tag: Option<&'a RawValue>,
    #[serde(borrow, default, deserialize_with = "present")]
    query: Option<&'a RawValue>,
    #[serde(borrow, default, deserialize_with = "present")]
    limit: Option<&'a RawValue>,
    #[serde(borrow, default, deserialize_with = "present")]
    name: Option<&'a RawValue>,
    #[serde(borrow, default, deserialize_with = "present")]
    arguments: Option<&'a RawValue>,
}

fn list_prompts(call: &Call<'_>) -> Result<Answer, Failure> {
    let given: Given<'_> = object(call.params.arguments, "arguments")?;
    let folder = optional(given.folder, "folder")?;
    let tag = optional(given.tag, "tag")?;
    let folder = folder
        .as_deref()
        .map(|folder| folder.trim_matches('/'))
        .filter(|folder| !folder.is_empty());
    let found: Vec<&Arc<Prompt>> = call
        .snapshot
        .catalog
        .list(call.folder())
        .iter()
        .filter(|prompt| in_folder(prompt, folder))
        .filter(|prompt| {
            tag.as_deref()
                .is_none_or(|tag| prompt.tags.iter().any(|has| has == tag))
        })
        .collect();
    let listed = Entries {
        prompts: found
            .iter()
            .take(LISTED)
            .map(|prompt| Entry::from(&***prompt))
            .collect(),
        total: found.len(),
        resources: Vec::new(),
        index: None,
        revision: None,
    };
    entries(call, &listed, "search_prompts finds the others")
}

async fn search_prompts(call: &Call<'_>) -> Result<Answer, Failure> {
    let given: Given<'_> = object(call.params.arguments, "arguments")?;
    let query: String = required_text(given.query, "query")?
        .chars()
        .take(MAX_QUERY)
        .collect();
    let limit = match given.limit.map(RawValue::get) {
        None | Some("null") => SEARCHED,
        Some(limit) => limit
            .parse::<usize>()
            .ok()
            .filter(|limit| (1..=LISTED).contains(limit))
            .ok_or_else(|| {
                RpcError::invalid_params(format!("`limit` must be an integer from 1 to {LISTED}"))
            })?,
    };
    let actor = call.caller.actor.clone();
    let access = Access::reading(move |path| actor.may(Action::Read, path));
    let ask = |kinds, limit| Ask {
        kinds,
        access: access.clone(),
        folder: call.caller.folder.clone(),
        ..Ask::new(&*query, limit)
    };
    let search = &call.service.search;
    // what the search has made of the library is shared by all
    let catalog = &call.whole.catalog;
    let found = search.search(catalog, ask(Kinds::Prompts, limit)).await;
    let beside = search
        .search(catalog, ask(Kinds::Resources, limit.min(BESIDE)))
        .await;
    let prompts = found.hits.iter().filter_map(|hit| {
        let prompt = hit.item.prompt()?;
        Some(Entry {
            matches: &hit.matches,
            ..Entry::from(&**prompt)
        })
    });
    let listed = Entries {
        prompts: prompts.collect(),
        total: found.total,
        resources: beside
            .hits
            .iter()
            .map(|hit| FoundResource {
                uri: hit.item.name(),
                matches: &hit.matches,
            })
            .collect(),
        index: Some(found.index),
        revision: catalog.revision().commit(),
    };
    let others = if limit < LISTED {
        "more words or a higher limit find the others"
    } else {
        "more words find the others"
    };
    entries(call, &listed, others)
}

/// Models send `""` for what they leave out.
fn optional<'a>(raw: Option<&'a RawValue>, name: &str) -> Result<Option<Cow<'a, str>>, RpcError> {
    match raw {
        None => Ok(None),
        Some(raw) if raw.get() == "null" => Ok(None),
        Some(raw) => match text(raw) {
            Some(text) => Ok(Some(text).filter(|text| !text.is_empty())),
            None => Err(RpcError::invalid_params(format!(
                "`{name}` must be a string, not {}",
                kind(raw)
            ))),
        },
    }
}

async fn get_prompt(call: &Call<'_>) -> Result<Answer, Failure> {
    #[derive(Serialize)]
    struct Got<'a> {
        name: &'a str,
        #[serde(skip_serializing_if = "Option::is_none")]
        description: Option<&'a str>,
        messages: Vec<GotMessage<'a>>,
        source: &'a Source<'a>,
    }
    #[derive(Serialize)]
    struct GotMessage<'a> {
        role: &'static str,
        text: Cow<'a, str>,
    }
    let given: Given<'_> = object(call.params.arguments, "arguments")?;
    let name = required_text(given.name, "name")?;
    let arguments = Arguments::parse(given.arguments, "arguments")?;
    let made = make(call, &name, arguments.iter(), Via::Tool).await?;
    let values: Vec<&str> = made.bound.iter().map(|(_, value)| value).collect();
    let settings = &call.service.settings;
    let needs = Needs {
        reads: Reads::Text,
        ..call.caller.client.needs()
    };
    let (messages, transforms) = shape(
        &made.rendered.messages,
        &values,
        Shape {
            revision: call.caller.revision,
            needs,
            inline: Inline::Auto,
            neutralise: settings.neutralise,
        },
    );
    let source = made.source(transforms);
    let got = Got {
        name: made.prompt.name.as_str(),
        description: made.prompt.description.as_deref(),
        messages: messages
            .iter()
            .map(|message| GotMessage {
                role: message.role,
                text: flat_one(message),
            })
            .collect(),
        source: &source,
    };
    let mut content = vec![Block::Text {
        text: flat(&messages).into(),
    }];
    content.extend(
        made.rendered
            .messages
            .iter()
            .filter_map(|message| match &message.content {
                Content::Resource {
                    resource,
                    embed: Embed::Image,
                    ..
                } => Some(Block::Image {
                    data: Base64(resource.bytes()),
                    mime_type: &resource.mime_type,
                }),
                _ => None,
            }),
    );
    respond(call, content, &got, false)
}
