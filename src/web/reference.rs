//! The reference of the API, for people: its description as a page, which needs no script.

use std::sync::LazyLock;

use axum::extract::State;
use axum::response::Response;
use serde::Serialize;
use serde_json::{Map, Value};

use super::Web;
use super::page::{Page, show};
use super::text::Lang;
use super::visit::Visit;
use crate::api::openapi;

/// How deep a schema of schemas is looked into.
const DEPTH: usize = 4;
/// What a reference to a schema begins with.
const SCHEMA: &str = "#/components/schemas/";

/// What the template sees.
#[derive(Debug, Default, Serialize)]
pub struct ReferencePage {
    /// Operations, by what they are about.
    pub groups: Vec<Group>,
    /// What is sent and answered.
    pub schemas: Vec<Schema>,
}

/// Operations about one kind of thing.
#[derive(Debug, Serialize)]
pub struct Group {
    /// Its name is the text `reference.tag.<tag>`.
    pub tag: String,
    /// By URL.
    pub operations: Vec<Operation>,
}

/// What can be asked.
#[derive(Debug, Serialize)]
pub struct Operation {
    /// Its name in the description.
    pub id: String,
    /// `GET`, `POST` or `PATCH`.
    pub method: String,
    /// The URL.
    pub path: String,
    /// One line.
    pub summary: String,
    /// What else there is to say.
    pub description: String,
    /// Of its URL and headers.
    pub parameters: Vec<Field>,
    /// What is sent, where something is.
    pub body: Option<Kind>,
    /// What comes, by status.
    pub answers: Vec<Answer>,
}

/// What comes.
#[derive(Debug, Serialize)]
pub struct Answer {
    /// The status.
    pub status: String,
    /// When.
    pub said: String,
    /// What the body is.
    pub kind: Option<Kind>,
    /// Headers that come with it.
    pub headers: Vec<String>,
}

/// A kind of value.
#[derive(Debug, Serialize)]
pub struct Kind {
    /// For people.
    pub text: String,
    /// The schema it is or is made of.
    pub schema: Option<String>,
}

/// A parameter, or a member of an object.
#[derive(Debug, Serialize)]
pub struct Field {
    /// Its name.
    pub name: String,
    /// `path`, `query` or `header`; empty for a member.
    pub at: String,
    /// What it is.
    pub kind: Kind,
    /// Whether it must be there.
    pub required: bool,
    /// What it means.
    pub said: String,
}

/// An object that is sent or answered.
#[derive(Debug, Serialize)]
pub struct Schema {
    /// Its name.
    pub name: String,
    /// What it is.
    pub said: String,
    /// What it is, where it has no members.
    pub kind: Option<Kind>,
    /// Its members.
    pub fields: Vec<Field>,
}

impl Page for ReferencePage {
    const TEMPLATE: &'static str = "api.html";
    const SECTION: &'static str = "";

    fn title(&self, lang: Lang) -> String {
        lang.text("reference.title", &[])
    }
}

static PAGE: LazyLock<ReferencePage> = LazyLock::new(|| {
    let document = serde_json::to_value(openapi::document()).unwrap_or_default();
    of(&document)
});

/// `GET /api`.
pub(super) async fn page(State(web): State<Web>, visit: Visit) -> Response {
    show(&web, &visit, &*PAGE).await
}

fn text(value: &Value) -> String {
    value.as_str().unwrap_or_default().to_owned()
}

/// The members of an object; nothing where it is none.
fn members(value: &Value) -> impl Iterator<Item = (&String, &Value)> {
    value.as_object().into_iter().flatten()
}

/// The entries of a list; nothing where it is none.
fn entries(value: &Value) -> impl Iterator<Item = &Value> {
    value.as_array().into_iter().flatten()
}

/// The page of a description.
fn of(document: &Value) -> ReferencePage {
    let mut page = ReferencePage::default();
    for (path, item) in members(&document["paths"]) {
        for (method, operation) in members(item).filter(|(_, value)| value.is_object()) {
            let tag = text(&operation["tags"][0]);
            let operation = operation_of(path, method, operation);
            match page.groups.iter_mut().find(|group| group.tag == tag) {
                Some(group) => group.operations.push(operation),
                None => page.groups.push(Group {
                    tag,
                    operations: vec![operation],
                }),
            }
        }
    }
    let schemas = &document["components"]["schemas"];
    page.schemas = members(schemas)
        .map(|(name, schema)| {
            let fields = fields(schema, schemas, DEPTH);
            Schema {
                name: name.clone(),
                said: text(&schema["description"]),
                kind: fields.is_empty().then(|| kind(schema)),
                fields,
            }
        })
        .collect();
    page
}

fn operation_of(path: &str, method: &str, operation: &Value) -> Operation {
    let body = &operation["requestBody"]["content"];
    Operation {
        id: text(&operation["operationId"]),
        method: method.to_ascii_uppercase(),
        path: path.to_owned(),
        summary: text(&operation["summary"]),
        description: text(&operation["description"]),
        parameters: entries(&operation["parameters"])
            .map(|parameter| Field {
                name: text(&parameter["name"]),
                at: text(&parameter["in"]),
                kind: kind(&parameter["schema"]),
                required: parameter["required"] == true,
                said: text(&parameter["description"]),
            })
            .collect(),
        body: members(body)
            .next()
            .map(|(_, media)| kind(&media["schema"])),
        answers: members(&operation["responses"])
            .map(|(status, answer)| Answer {
                status: status.clone(),
                said: text(&answer["description"]),
                kind: members(&answer["content"])
                    .next()
                    .map(|(_, media)| kind(&media["schema"])),
                headers: members(&answer["headers"])
                    .map(|(name, _)| name.clone())
                    .collect(),
            })
            .collect(),
    }
}

/// The members that an object of a schema has, also those of the schemas it is put together from.
fn fields(schema: &Value, schemas: &Value, depth: usize) -> Vec<Field> {
    if depth == 0 {
        return Vec::new();
    }
    let required: Vec<&str> = entries(&schema["required"])
        .filter_map(Value::as_str)
        .collect();
    let mut out: Vec<Field> = members(&schema["properties"])
        .map(|(name, property)| Field {
            name: name.clone(),
            at: String::new(),
            kind: kind(property),
            required: required.contains(&name.as_str()),
            said: text(&property["description"]),
        })
        .collect();
    for part in entries(&schema["allOf"]) {
        let named = part["$ref"].as_str();
        let part = named.map_or(part, |name| &schemas[name.trim_start_matches(SCHEMA)]);
        out.extend(fields(part, schemas, depth - 1));
    }
    out
}

/// A kind of value in words.
fn kind(schema: &Value) -> Kind {
    let mut named = None;
    Kind {
        text: words(schema, &mut named, DEPTH),
        schema: named,
    }
}

fn words(schema: &Value, named: &mut Option<String>, depth: usize) -> String {
    let empty = Map::new();
    let object = schema.as_object().unwrap_or(&empty);
    if depth == 0 || object.is_empty() {
        return "any".to_owned();
    }
    if let Some(name) = schema["$ref"].as_str() {
        let name = name.trim_start_matches(SCHEMA).to_owned();
        named.get_or_insert_with(|| name.clone());
        return name;
    }
    for (key, between) in [("oneOf", " or "), ("anyOf", " or "), ("allOf", " and ")] {
        if object.contains_key(key) {
            let parts = entries(&schema[key]).map(|part| words(part, named, depth - 1));
            return parts.collect::<Vec<_>>().join(between);
        }
    }
    let of_type = |name: &str, named: &mut Option<String>| match name {
        "array" => format!("list of {}", words(&schema["items"], named, depth - 1)),
        "object" if schema["additionalProperties"].is_object() => {
            let of = words(&schema["additionalProperties"], named, depth - 1);
            format!("map of {of}")
        }
        name => name.to_owned(),
    };
    match &schema["type"] {
        Value::String(name) => of_type(name, named),
        Value::Array(names) => {
            let names = names.iter().filter_map(Value::as_str);
            let all: Vec<String> = names.map(|name| of_type(name, named)).collect();
            all.join(" or ")
        }
        _ => "any".to_owned(),
    }
}
