//! Front matter: what a prompt declares about itself, read strictly.

use std::ops::Range;

use super::argument::{Argument, Completable, Example, ResourceBinding};
use super::limits::Limits;
use super::message::Embed;
use super::name::{PromptName, argument_name_fault, suggest_argument_name};
use super::problem::{Problem, Severity};
use super::source::Source;
use super::yaml::{self, Node, Value};

/// Bytes of the file.
pub type Span = Range<usize>;

/// What the front matter declares, with the places problems point at.
#[derive(Debug, Default)]
pub struct FrontMatter {
    /// It could not be read at all: what the body misses may well be declared there.
    pub unreadable: bool,
    /// Title for people.
    pub title: Option<String>,
    /// What the prompt is for.
    pub description: Option<String>,
    /// Tags.
    pub tags: Vec<String>,
    /// Arguments in the author's order.
    pub arguments: Vec<Argument>,
    /// Where each argument stands.
    pub argument_places: Vec<ArgumentPlaces>,
    /// Resource bindings.
    pub bindings: Vec<ResourceBinding>,
    /// Where each binding's name and URI stand.
    pub binding_places: Vec<(Span, Span)>,
    /// Examples.
    pub examples: Vec<Example>,
    /// Where each example stands.
    pub example_places: Vec<ExamplePlaces>,
}

/// Places inside one argument.
#[derive(Debug, Clone)]
pub struct ArgumentPlaces {
    /// Its name.
    pub name: Span,
    /// Its `values`, or the name when it has none.
    pub values: Span,
}

/// Places inside one example.
#[derive(Debug, Clone, Default)]
pub struct ExamplePlaces {
    /// The whole example.
    pub whole: Span,
    /// Each argument's name.
    pub arguments: Vec<Span>,
    /// Each expected text.
    pub expect: Vec<Span>,
}

/// Where a file's front matter and body are.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Sections {
    /// The YAML between the `---` lines; empty when there is none.
    pub yaml: Span,
    /// Everything after the closing line.
    pub body: Span,
}

/// A warning for what looks like front matter and is text, because it does not begin the file.
pub fn misplaced(source: &Source, sections: &Sections) -> Option<Problem> {
    let text = &source.text;
    if !sections.yaml.is_empty() || sections.body.start > 0 {
        return None;
    }
    let blank: usize = text
        .split_inclusive('\n')
        .take_while(|l| l.trim().is_empty())
        .map(str::len)
        .sum();
    let line = text[blank..].split('\n').next().unwrap_or_default();
    let closes = text[blank..].lines().skip(1).any(|l| l.trim_end() == "---");
    let opens = line
        .strip_prefix("---")
        .is_some_and(|rest| !rest.starts_with('-'));
    (opens && closes).then(|| {
        source.problem(
            Severity::Warning,
            "front-matter-place",
            blank..blank + line.len(),
            "this looks like front matter and is served as text".into(),
            Some("front matter begins on the first line, with a line that is only `---`".into()),
        )
    })
}

/// Splits a file at its first `---` block.
pub fn split(source: &Source) -> Result<Sections, Box<Problem>> {
    sections(&source.text).ok_or_else(|| {
        Box::new(source.problem(
            Severity::Error,
            "front-matter-open",
            0..3,
            "the front matter that begins here is never closed".into(),
            Some("put a line with only `---` after it".into()),
        ))
    })
}

/// The sections of a file's text; none where its front matter is never closed.
pub fn sections(text: &str) -> Option<Sections> {
    let first = text.split_inclusive('\n').next().unwrap_or_default();
    if first.trim_end() != "---" {
        return Some(Sections {
            yaml: 0..0,
            body: 0..text.len(),
        });
    }
    let start = first.len();
    let mut at = start;
    for line in text[start..].split_inclusive('\n') {
        if line.trim_end() == "---" {
            return Some(Sections {
                yaml: start..at,
                body: at + line.len()..text.len(),
            });
        }
        at += line.len();
    }
    None
}

/// Reads the declarations; problems go to `problems`, what could be read is returned.
pub fn read(
    source: &Source,
    yaml_span: &Span,
    limits: &Limits,
    problems: &mut Vec<Problem>,
) -> FrontMatter {
    let mut front = FrontMatter::default();
    let mut reader = Reader {
        source,
        base: yaml_span.start,
        problems,
    };
    if yaml_span.len() > limits.front_matter_bytes {
        reader.error(
            "front-matter-size",
            0..3,
            format!(
                "the front matter is {} bytes; at most {} are read (front_matter_bytes)",
                yaml_span.len(),
                limits.front_matter_bytes
            ),
            None,
        );
        front.unreadable = true;
        return front;
    }
    let root = match yaml::read(&source.text[yaml_span.clone()]) {
        Ok(None) => return front,
        Ok(Some(root)) => root,
        Err(fault) => {
            reader.error(fault.code, fault.span, fault.message, fault.hint);
            front.unreadable = true;
            return front;
        }
    };
    let known = [
        "title",
        "description",
        "tags",
        "arguments",
        "resources",
        "examples",
    ];
    for (key, key_span, node) in reader.table(&root, "the front matter", &known) {
        match key.as_str() {
            "title" => front.title = reader.line(node, "title"),
            "description" => front.description = reader.text(node, "description"),
            "tags" => front.tags = reader.texts(node, "tags"),
            "arguments" => reader.arguments(node, &mut front, limits),
            "resources" => reader.bindings(node, &mut front),
            "examples" => reader.examples(node, &mut front, limits),
            _ => reader.error(
                "unknown-key",
                key_span.clone(),
                format!("`{key}` is not read here"),
                None,
            ),
        }
    }
    front
}

struct Reader<'a> {
    source: &'a Source,
    base: usize,
    problems: &'a mut Vec<Problem>,
}

type Entry = (String, Span, Node);

impl Reader<'_> {
    /// A YAML span as bytes of the file.
    fn place(&self, span: &Span) -> Span {
        span.start + self.base..span.end + self.base
    }

    fn error(&mut self, code: &'static str, span: Span, message: String, hint: Option<String>) {
        let span = self.place(&span);
        self.problems.push(
            self.source
                .problem(Severity::Error, code, span, message, hint),
        );
    }

    fn wrong_type(&mut self, node: &Node, field: &str, wanted: &str) {
        let message = format!("`{field}` must be {wanted}, here is {}", node.value.kind());
        self.error("wrong-type", node.span.clone(), message, None);
    }

    /// The entries of a table, with unknown keys reported.
    fn table<'n>(&mut self, node: &'n Node, what: &str, known: &[&str]) -> Vec<&'n Entry> {
        let Value::Map(entries) = &node.value else {
            let message = format!(
                "{what} must be a table of `key: value` lines, here is {}",
                node.value.kind()
            );
            self.error("wrong-type", node.span.clone(), message, None);
            return Vec::new();
        };
        let mut out = Vec::new();
        for entry in entries {
            if known.contains(&entry.0.as_str()) {
                out.push(entry);
            } else {
                let near = super::problem::nearest(&entry.0, known.iter().copied());
                let hint = near.map_or_else(
                    || format!("keys read here: {}", known.join(", ")),
                    |near| format!("did you mean `{near}`?"),
                );
                let key: String = entry.0.chars().take(80).collect();
                self.error(
                    "unknown-key",
                    entry.1.clone(),
                    format!("unknown key `{key}` in {what}"),
                    Some(hint),
                );
            }
        }
        out
    }

    fn list<'n>(&mut self, node: &'n Node, field: &str) -> &'n [Node] {
        match &node.value {
            Value::List(items) => items,
            _ if node.value.is_null() => {
                self.null(node, field);
                &[]
            }
            _ => {
                self.wrong_type(node, field, "a list");
                &[]
            }
        }
    }

    fn null(&mut self, node: &Node, field: &str) {
        self.error(
            "null-value",
            node.span.clone(),
            format!("`{field}` has no value"),
            Some(format!(
                "give it one, quote it (`\"null\"`), or remove the line `{field}:`"
            )),
        );
    }

    /// A text field: a plain scalar is its source text, null is a problem.
    fn text(&mut self, node: &Node, field: &str) -> Option<String> {
        match &node.value {
            _ if node.value.is_null() => {
                self.null(node, field);
                None
            }
            Value::Scalar { text, plain } => {
                if *plain {
                    self.swallowed_comment(node, field);
                }
                if let Some(c) = text
                    .chars()
                    .find(|c| c.is_control() && !matches!(c, '\n' | '\t'))
                {
                    let message = format!(
                        "`{field}` holds the control character U+{:04X}",
                        u32::from(c)
                    );
                    self.error("control-character", node.span.clone(), message, None);
                    return None;
                }
                Some(text.clone())
            }
            _ => {
                self.wrong_type(node, field, "a text");
                None
            }
        }
    }

    /// ` # …` after a plain scalar is a comment; in a text field that is mostly not what was meant.
    fn swallowed_comment(&mut self, node: &Node, field: &str) {
        let place = self.place(&node.span);
        let rest = self.source.text[place.end..]
            .split('\n')
            .next()
            .unwrap_or_default();
        if rest.trim_start().starts_with('#') && rest.starts_with([' ', '\t']) {
            self.problems.push(self.source.problem(
                Severity::Warning,
                "yaml-comment",
                place.end..place.end + rest.trim_end().len(),
                format!("the text after ` #` is a YAML comment and not part of `{field}`"),
                Some("quote the whole value to keep it".into()),
            ));
        }
    }

    fn line(&mut self, node: &Node, field: &str) -> Option<String> {
        let text = self.text(node, field)?;
        if text.trim_end().contains('\n') {
            self.error(
                "one-line",
                node.span.clone(),
                format!("`{field}` must be one line"),
                None,
            );
            return None;
        }
        Some(text.trim_end().to_owned())
    }

    fn texts(&mut self, node: &Node, field: &str) -> Vec<String> {
        self.list(node, field)
            .iter()
            .filter_map(|n| self.text(n, field))
            .collect()
    }

    fn flag(&mut self, node: &Node, field: &str) -> bool {
        match &node.value {
            Value::Scalar { text, plain: true } if text == "true" => true,
            Value::Scalar { text, plain: true } if text == "false" => false,
            _ => {
                self.error(
                    "wrong-type",
                    node.span.clone(),
                    format!("`{field}` must be true or false"),
                    Some("write `true` or `false`, without quotes".into()),
                );
                false
            }
        }
    }

    fn arguments(&mut self, node: &Node, front: &mut FrontMatter, limits: &Limits) {
        let items = self.list(node, "arguments");
        if items.len() > limits.arguments_count {
            let message = format!(
                "{} arguments; at most {} are read (arguments_count)",
                items.len(),
                limits.arguments_count
            );
            self.error("arguments-count", node.span.clone(), message, None);
            return;
        }
        for item in items {
            let known = ["name", "description", "required", "values", "default"];
            let mut name = None;
            let mut argument = Argument {
                name: "".into(),
                description: None,
                required: false,
                default: None,
                values: Completable::default(),
            };
            let mut values_span = None;
            let mut required_span = None;
            for (key, key_span, value) in self.table(item, "an argument", &known) {
                match key.as_str() {
                    "name" => {
                        name = self
                            .text(value, "name")
                            .map(|text| (text, value.span.clone()));
                    }
                    "description" => argument.description = self.text(value, "description"),
                    "required" => {
                        argument.required = self.flag(value, "required");
                        required_span = Some(key_span.clone());
                    }
                    "default" => {
                        argument.default = self.text(value, "default").filter(|d| !d.is_empty());
                    }
                    _ => {
                        argument.values = self.values(value);
                        values_span = Some(value.span.clone());
                    }
                }
            }
            let Some((text, span)) = name else {
                if matches!(item.value, Value::Map(_)) {
                    self.error(
                        "argument-name",
                        item.span.clone(),
                        "an argument needs a `name`".into(),
                        None,
                    );
                }
                continue;
            };
            if let Some(fault) = argument_name_fault(&text) {
                let hint = suggest_argument_name(&text).map(|s| format!("call it `{s}`"));
                self.error("argument-name", span, fault, hint);
                continue;
            }
            if front.arguments.iter().any(|a| *a.name == *text) {
                self.error(
                    "duplicate-argument",
                    span,
                    format!("argument `{text}` is declared twice"),
                    None,
                );
                continue;
            }
            if argument.required
                && let (Some(_), Some(at)) = (&argument.default, required_span)
            {
                let at = self.place(&at);
                self.problems.push(self.source.problem(
                    Severity::Warning,
                    "required-default",
                    at,
                    format!(
                        "`{text}` has a default, so it is never missing although it is required"
                    ),
                    Some("remove `required: true` or the default".into()),
                ));
            }
            argument.name = text.into();
            let name = self.place(&span);
            let values = values_span.map_or_else(|| name.clone(), |s| self.place(&s));
            front.argument_places.push(ArgumentPlaces { name, values });
            front.arguments.push(argument);
        }
    }

    fn values(&mut self, node: &Node) -> Completable {
        let mut out = Completable::default();
        if let Value::List(_) = &node.value {
            out.list = self.texts(node, "values");
            return out;
        }
        if node.value.is_null() {
            self.null(node, "values");
            return out;
        }
        if !matches!(node.value, Value::Map(_)) {
            self.wrong_type(
                node,
                "values",
                "a list, or a table with list, file, where, resource or recent",
            );
            return out;
        }
        for (key, _, value) in self.table(
            node,
            "values",
            &["list", "file", "where", "resource", "recent"],
        ) {
            match key.as_str() {
                "list" => out.list = self.texts(value, "list"),
                "file" => out.file = self.text(value, "file"),
                "where" => out.where_argument = self.text(value, "where"),
                "resource" => out.resource = self.text(value, "resource"),
                _ => out.recent = self.flag(value, "recent"),
            }
        }
        if out.where_argument.is_some() && out.file.is_none() {
            self.error(
                "values-where",
                node.span.clone(),
                "`where` narrows the rows of a `file`, and there is no `file` here".into(),
                None,
            );
        }
        out
    }

    fn bindings(&mut self, node: &Node, front: &mut FrontMatter) {
        for item in self.list(node, "resources") {
            let mut name = None;
            let mut uri = None;
            let mut required = false;
            let mut embed = Embed::Resource;
            for (key, _, value) in
                self.table(item, "a resource", &["name", "uri", "required", "as"])
            {
                match key.as_str() {
                    "name" => name = self.text(value, "name").map(|t| (t, value.span.clone())),
                    "uri" => uri = self.line(value, "uri").map(|t| (t, value.span.clone())),
                    "required" => required = self.flag(value, "required"),
                    _ => embed = self.embed(value),
                }
            }
            let (Some((name, name_span)), Some((uri, uri_span))) = (name, uri) else {
                if matches!(item.value, Value::Map(_)) {
                    let message = "a resource needs a `name` and a `uri`".into();
                    self.error("resource-binding", item.span.clone(), message, None);
                }
                continue;
            };
            if let Some(fault) = argument_name_fault(&name) {
                self.error(
                    "resource-name",
                    name_span,
                    fault.replace("an argument", "a resource"),
                    None,
                );
                continue;
            }
            if front.bindings.iter().any(|b| *b.name == *name) {
                self.error(
                    "duplicate-resource",
                    name_span,
                    format!("resource `{name}` is declared twice"),
                    None,
                );
                continue;
            }
            let places = (self.place(&name_span), self.place(&uri_span));
            front.binding_places.push(places);
            front.bindings.push(ResourceBinding {
                name: name.into(),
                uri,
                required,
                embed,
            });
        }
    }

    fn embed(&mut self, node: &Node) -> Embed {
        let all = [
            Embed::Resource,
            Embed::Text,
            Embed::Link,
            Embed::Image,
            Embed::Audio,
        ];
        let Some(word) = self.text(node, "as") else {
            return Embed::Resource;
        };
        all.into_iter()
            .find(|e| e.as_str() == word)
            .unwrap_or_else(|| {
                self.error(
                    "resource-as",
                    node.span.clone(),
                    format!(
                        "`as` cannot be `{}`",
                        word.chars().take(40).collect::<String>()
                    ),
                    Some("one of: resource, text, link, image, audio".into()),
                );
                Embed::Resource
            })
    }

    fn examples(&mut self, node: &Node, front: &mut FrontMatter, limits: &Limits) {
        let items = self.list(node, "examples");
        if items.len() > limits.examples_count {
            let message = format!(
                "{} examples; at most {} are run (examples_count)",
                items.len(),
                limits.examples_count
            );
            let hint = Some("keep those that show different things".to_owned());
            self.error("examples-count", node.span.clone(), message, hint);
            return;
        }
        for item in items {
            let mut example = Example {
                name: String::new(),
                arguments: Vec::new(),
                expect: Vec::new(),
            };
            let mut places = ExamplePlaces {
                whole: self.place(&item.span),
                ..Default::default()
            };
            for (key, _, value) in self.table(item, "an example", &["name", "arguments", "expect"])
            {
                match key.as_str() {
                    "name" => example.name = self.line(value, "name").unwrap_or_default(),
                    "arguments" => {
                        let Value::Map(entries) = &value.value else {
                            self.wrong_type(value, "arguments", "a table of `name: value`");
                            continue;
                        };
                        for (name, span, value) in entries {
                            if let Some(text) = self.text(value, name) {
                                places.arguments.push(self.place(span));
                                example.arguments.push((name.clone(), text));
                            }
                        }
                    }
                    _ => {
                        for value in self.list(value, "expect") {
                            if let Some(text) = self.text(value, "expect") {
                                places.expect.push(self.place(&value.span));
                                example.expect.push(text);
                            }
                        }
                    }
                }
            }
            if example.name.is_empty() {
                example.name = format!("example {}", front.examples.len() + 1);
            }
            front.examples.push(example);
            front.example_places.push(places);
        }
    }
}

/// The name a prompt's path gives it, and its folder; or the problem with the path.
pub fn name_and_folder(path: &std::sync::Arc<str>) -> Result<(PromptName, String), Box<Problem>> {
    let inner = path.strip_prefix("prompts/").unwrap_or(path);
    let (folder, file) = inner.rsplit_once('/').unwrap_or(("", inner));
    let stem = file.strip_suffix(".md").unwrap_or(file);
    let name = PromptName::parse(stem).map_err(|error| {
        let hint = error.suggestion.as_ref().map(|s| {
            let place = if folder.is_empty() {
                String::new()
            } else {
                format!("{folder}/")
            };
            format!("rename the file to prompts/{place}{s}.md")
        });
        Box::new(Problem::whole(
            Severity::Error,
            "prompt-name",
            path,
            error.to_string(),
            hint,
        ))
    })?;
    for part in folder.split('/').filter(|p| !p.is_empty()) {
        if PromptName::parse(part).is_err() {
            return Err(Box::new(Problem::whole(
                Severity::Error,
                "folder-name",
                path,
                format!(
                    "folder `{part}` does not follow the name rule (a-z, then a-z, 0-9, `-`, `_`)"
                ),
                Some("folders are part of the address /mcp/<folder>; rename it".into()),
            )));
        }
    }
    Ok((name, folder.to_owned()))
}

#[cfg(test)]
mod tests;
