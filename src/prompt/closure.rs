//! A prompt with everything it includes: linked, compiled, its variables checked through the includes.

use std::borrow::Cow;
use std::collections::BTreeSet;
use std::ops::Range;
use std::sync::Arc;

use sha2::{Digest, Sha256};
use tera::Tera;

use super::argument::{Argument, Example, ResourceBinding};
use super::engine::{self, Compiled, EngineError};
use super::front_matter;
use super::includes::{Walk, fan_out};
use super::lane::{self, Lane};
use super::limits::Limits;
use super::lint;
use super::message::Role;
use super::name::PromptName;
use super::parse::{Part, Partial, PromptFile, hex};
use super::problem::{Problem, Severity, nearest};
use super::scan::{self, Construct};
use super::source::Source;
use super::variables;

/// Unknown filters, tests and functions of one closure that the engine itself is asked about.
const MAX_UNKNOWN: usize = 20;

/// Constructs of a URI's template, with the texts between them.
const MAX_URI_STEPS: u64 = 64;

/// Partials by the name `include` uses.
pub type Partials = rpds::RedBlackTreeMapSync<Arc<str>, Arc<Partial>>;

/// A prompt that is ready to be listed and rendered, with the closure of what it includes.
#[derive(Debug)]
pub struct Prompt {
    /// Its name, the stem of its file.
    pub name: PromptName,
    /// The folder under `prompts/`, e.g. `sre`; empty at the top; `a/b` when nested.
    pub folder: Arc<str>,
    /// Path in the library, e.g. `prompts/sre/incident-triage.md`.
    pub path: Arc<str>,
    /// Title for people, any script.
    pub title: Option<String>,
    /// What it is for.
    pub description: Option<String>,
    /// Tags, in the author's order.
    pub tags: Vec<String>,
    /// Declared arguments, in the author's order.
    pub arguments: Vec<Argument>,
    /// Declared resources.
    pub bindings: Vec<ResourceBinding>,
    /// Worked examples.
    pub examples: Vec<Example>,
    /// SHA-256 of the stored bytes of the file, lower-case hex.
    pub sha256: Arc<str>,
    /// SHA-256 over everything that decides how it lists (name, folder, title, description, tags, arguments), hex.
    pub list_hash: Arc<str>,
    /// SHA-256 over everything of the file that decides how it renders, and every partial it includes, hex.
    pub closure_hash: Arc<str>,
    /// Where it is rendered, and why.
    pub lane: Lane,
    /// Partials it includes, directly or through others, by path.
    pub partials: Vec<Arc<Partial>>,
    pub(super) parts: Vec<Part>,
    pub(super) text: Arc<str>,
    /// Parts without any construct, which need no engine.
    pub(super) literal: Vec<bool>,
    pub(super) uses_resources: bool,
    pub(super) uses_nonce: bool,
    /// For each binding: the arguments its URI reads, and whether it is a template at all.
    pub(super) uri_arguments: Vec<Option<Vec<Arc<str>>>>,
    pub(super) compiled: Compiled,
}

/// Name of the template of part `i`; no partial can have it.
pub(super) fn part_template(i: usize) -> String {
    format!("#{i}")
}

/// Name of the template of binding `i`'s URI.
pub(super) fn uri_template(i: usize) -> String {
    format!("@{i}")
}

impl Prompt {
    /// The engine with this closure's templates.
    pub(super) fn engine(&self) -> Option<Arc<engine::Kept>> {
        self.compiled
            .get(|| templates(&self.text, &self.parts, &self.bindings, &self.partials))
    }

    /// Name and source of every template of the closure but the URIs'.
    pub(crate) fn sources(&self) -> impl Iterator<Item = (Cow<'_, str>, Cow<'_, str>)> {
        let parts = self.parts.iter().enumerate().filter_map(|(i, part)| {
            let Part::Text { span, .. } = part else {
                return None;
            };
            let source = &self.text[span.clone()];
            (!self.literal[i]).then(|| (part_template(i).into(), source.into()))
        });
        let partials = self
            .partials
            .iter()
            .map(|p| ((&*p.name).into(), p.source.text.as_str().into()));
        parts.chain(partials)
    }

    /// Whether its templates read the text of a resource.
    pub fn reads_resources(&self) -> bool {
        self.uses_resources
    }

    /// The arguments a binding's URI reads that have no value.
    pub fn empty_uri_arguments(
        &self,
        binding: usize,
        bound: &super::BoundArguments,
    ) -> Vec<String> {
        self.uri_arguments
            .get(binding)
            .and_then(Option::as_ref)
            .into_iter()
            .flatten()
            .filter(|name| bound.get(name).is_none_or(str::is_empty))
            .map(ToString::to_string)
            .collect()
    }

    /// Who speaks in each of its parts, in order.
    pub fn roles(&self) -> impl Iterator<Item = Role> {
        self.parts.iter().map(|part| match part {
            Part::Text { role, .. } | Part::Resource { role, .. } => *role,
        })
    }

    /// Gives back what rendering keeps in memory; the next render compiles the templates again.
    pub fn release(&self) {
        self.compiled.release();
    }

    /// The stored text of the file, decoded.
    pub fn text(&self) -> &str {
        &self.text
    }

    /// The stored text behind the front matter, decoded.
    pub fn body(&self) -> &str {
        let body = front_matter::sections(&self.text).map_or(0, |sections| sections.body.start);
        &self.text[body..]
    }

    /// Where an engine error is: path, line and column of the file it is in.
    pub(super) fn locate(&self, error: &EngineError) -> (String, u32, u32) {
        let source = Source::new(&self.path, &self.text);
        let (source, offset) =
            place(error, &source, &self.parts, &self.partials, &[]).unwrap_or((&source, 0));
        let (line, column) = source.position(offset);
        (source.path.to_string(), line, column)
    }
}

/// The templates of a closure by name: its parts, its URI templates, its partials.
fn templates(
    text: &str,
    parts: &[Part],
    bindings: &[ResourceBinding],
    partials: &[Arc<Partial>],
) -> Vec<(String, String)> {
    let mut out = Vec::with_capacity(parts.len() + partials.len() + bindings.len());
    for (i, part) in parts.iter().enumerate() {
        if let Part::Text { span, .. } = part {
            out.push((part_template(i), text[span.clone()].to_owned()));
        }
    }
    for (i, binding) in bindings.iter().enumerate() {
        if binding.uri.contains('{') {
            out.push((uri_template(i), binding.uri.clone()));
        }
    }
    out.extend(
        partials
            .iter()
            .map(|p| (p.name.to_string(), p.source.text.clone())),
    );
    out
}

/// The file an engine error is in and the offset there.
fn place<'a>(
    error: &EngineError,
    source: &'a Source,
    parts: &[Part],
    partials: &'a [Arc<Partial>],
    uris: &[Range<usize>],
) -> Option<(&'a Source, usize)> {
    if let Some(i) = error
        .template
        .strip_prefix('#')
        .and_then(|n| n.parse::<usize>().ok())
    {
        let Part::Text { span, .. } = parts.get(i)? else {
            return None;
        };
        // lines of a part are lines of the file; only its first begins at another column
        let (first_line, first_column) = source.position(span.start);
        let line = first_line as usize + error.line.max(1) - 1;
        let column = if error.line <= 1 {
            first_column as usize + error.column.max(1) - 1
        } else {
            error.column
        };
        return Some((source, source.offset(line, column)));
    }
    if let Some(i) = error
        .template
        .strip_prefix('@')
        .and_then(|n| n.parse::<usize>().ok())
    {
        return Some((source, uris.get(i)?.start));
    }
    let partial = partials.iter().find(|p| *p.name == *error.template)?;
    Some((
        &partial.source,
        partial.source.offset(error.line, error.column),
    ))
}

/// Links a prompt file with the partials it includes. `None` when it cannot be rendered; why is in `problems`.
pub fn link(
    file: &PromptFile,
    partials: &Partials,
    limits: &Limits,
    problems: &mut Vec<Problem>,
) -> Option<Prompt> {
    let before = problems.iter().filter(|p| p.is_error()).count();
    let source = &file.source;
    let front = &file.front;
    if file.sound && file.parts.is_empty() {
        problems.push(Problem::whole(
            Severity::Error,
            "empty-prompt",
            &source.path,
            "the prompt has no text, so a client would get no messages".into(),
            Some("write the text below the front matter".into()),
        ));
    }
    let mut walk = Walk {
        partials,
        limits,
        order: Vec::new(),
        bytes: source.text.len(),
        missing: 0,
        problems: &mut *problems,
    };
    walk.includes(source, &file.constructs, &mut vec![file.name.to_string()]);
    let closure = walk.order;
    if problems.iter().filter(|p| p.is_error()).count() == before {
        fan_out(file, partials, limits, problems);
    }
    if !file.sound
        || closure.iter().any(|p| !p.sound)
        || problems.iter().filter(|p| p.is_error()).count() > before
    {
        if file.sound {
            lint::file(file, problems);
        }
        return None;
    }
    let uri_spans: Vec<_> = front
        .binding_places
        .iter()
        .map(|(_, uri)| uri.clone())
        .collect();
    let sources = closure.iter().map(|p| (&p.source, p.constructs.as_slice()));
    let sources = std::iter::once((source, file.constructs.as_slice())).chain(sources);
    if unknown_names(sources, problems) {
        return None;
    }
    let compiled = engine::compile(templates(
        &source.text,
        &file.parts,
        &front.bindings,
        &closure,
    ));
    let tera = match compiled {
        Ok(tera) => tera,
        Err(error) => {
            for error in engine::places(&error).into_iter().take(20) {
                let found = place(&error, source, &file.parts, &closure, &uri_spans);
                problems.push(engine_problem(&error, found, file));
            }
            return None;
        }
    };
    if !front.unreadable {
        variables::check(file, &closure, problems);
        declarations(file, problems);
        uris(file, problems);
    }
    lint::file(file, problems);
    if problems.iter().filter(|p| p.is_error()).count() > before {
        return None;
    }
    Some(prompt(file, closure, limits, tera))
}

/// Names nothing is known of, in more places than the engine should report: it quotes a whole line for each.
fn unknown_names<'a>(
    sources: impl Iterator<Item = (&'a Source, &'a [Construct])>,
    problems: &mut Vec<Problem>,
) -> bool {
    let mut found = Vec::new();
    for (source, constructs) in sources {
        for construct in constructs {
            for (kind, token) in scan::named(&source.text, construct) {
                let name = &source.text[token.span.clone()];
                if !engine::has(kind, name) {
                    found.push((source, kind, token.span.start, name));
                }
            }
            if found.len() > MAX_UNKNOWN {
                problems.extend(found.iter().map(|(source, kind, at, name)| {
                    let unknown = match kind {
                        scan::Named::Filter => "Unknown filter",
                        scan::Named::Test => "Unknown test",
                        scan::Named::Function => "Unknown function",
                    };
                    let shown: String = name.chars().take(80).collect();
                    syntax_problem(source, *at, &format!("{unknown} `{shown}`"))
                }));
                return true;
            }
        }
    }
    false
}

/// Checks a partial that no prompt may include yet: its own syntax.
pub fn compile_partial(partial: &Partial, problems: &mut Vec<Problem>) {
    if !partial.sound {
        return;
    }
    if unknown_names(
        std::iter::once((&partial.source, partial.constructs.as_slice())),
        problems,
    ) {
        return;
    }
    // what it includes is checked where it is used; here every name stands for an empty text
    let mut templates = vec![(partial.name.to_string(), partial.source.text.clone())];
    let names: BTreeSet<&str> = scan::includes(&partial.source.text, &partial.constructs)
        .map(|(name, _)| name)
        .collect();
    templates.extend(
        names
            .into_iter()
            .filter(|n| *n != &*partial.name)
            .map(|n| (n.to_owned(), String::new())),
    );
    if let Err(error) = engine::compile(templates) {
        for error in engine::places(&error).into_iter().take(20) {
            if *error.template == *partial.name {
                let at = partial.source.offset(error.line, error.column);
                problems.push(syntax_problem(&partial.source, at, &error.message));
            }
        }
    }
}

fn engine_problem(
    error: &EngineError,
    found: Option<(&Source, usize)>,
    file: &PromptFile,
) -> Problem {
    let (source, at) = found.unwrap_or((&file.source, file.body.start));
    let mut problem = syntax_problem(source, at, &error.message);
    if source.path != file.source.path {
        problem.message = format!("{} (included by {})", problem.message, file.source.path);
    }
    problem
}

/// The engine names the end of the file for a block that is never closed; the opener is what is looked for.
fn unbalanced(source: &Source, at: usize, message: &str) -> Option<Problem> {
    let is_end = message.contains("end of input") || message.contains("Unexpected end");
    let is_tag = message.contains("Unknown tag");
    if !is_end && !is_tag {
        return None;
    }
    let text = source.text.as_str();
    let mut open: Vec<Construct> = Vec::new();
    for construct in scan::scan(text) {
        let stray = is_tag && construct.span.contains(&at);
        match scan::nesting(text, &construct) {
            scan::Nesting::Opens => open.push(construct),
            scan::Nesting::Closes if open.is_empty() && stray => {
                let word = construct.tag_word(text).to_owned();
                return Some(source.problem(
                    Severity::Error,
                    "template-syntax",
                    construct.span,
                    format!("`{word}` closes nothing: nothing is open here"),
                    Some("remove it, or open what it should close before it".into()),
                ));
            }
            scan::Nesting::Closes => {
                open.pop();
            }
            scan::Nesting::Flat => {}
        }
    }
    let opener = open.pop().filter(|_| is_end)?;
    let word = opener.tag_word(text).to_owned();
    let shown: String = text[opener.span.clone()].chars().take(60).collect();
    Some(source.problem(
        Severity::Error,
        "template-syntax",
        opener.span,
        format!("`{shown}` is never closed"),
        Some(format!(
            "close it with {{% end{word} %}} before the end of its part"
        )),
    ))
}

fn syntax_problem(source: &Source, at: usize, message: &str) -> Problem {
    if let Some(problem) = unbalanced(source, at, message) {
        return problem;
    }
    let hint = if let Some(name) = message
        .strip_prefix("Unknown filter `")
        .and_then(|m| m.strip_suffix('`'))
    {
        Some(match nearest(name, engine::filter_names()) {
            Some(near) => format!("did you mean `{near}`?"),
            None => "filters are listed in docs/library-format.md".into(),
        })
    } else if message.contains("Unknown tag") {
        Some("tags are if, elif, else, for, set, include, raw, filter; to keep it as text use {% raw %}".into())
    } else if source
        .line(source.position(at).0 as usize)
        .contains("default(")
    {
        Some("arguments of filters have names: default(value=\"…\")".into())
    } else {
        None
    };
    let mut chars = message.chars();
    let lower: String = chars
        .next()
        .map(|c| c.to_lowercase().chain(chars).collect())
        .unwrap_or_default();
    let message = if lower.starts_with("unknown ") {
        lower
    } else {
        format!("the template cannot be read: {lower}")
    };
    let width = source.text[at..].chars().next().map_or(0, char::len_utf8);
    source.problem(
        Severity::Error,
        "template-syntax",
        at..at + width,
        message,
        hint,
    )
}

/// What the front matter says about its own names.
fn declarations(file: &PromptFile, problems: &mut Vec<Problem>) {
    let front = &file.front;
    let names: Vec<&str> = front.arguments.iter().map(|a| &*a.name).collect();
    let mut unknown = |span: &Range<usize>, name: &str, what: &str| {
        let hint = nearest(name, names.iter().copied()).map_or_else(
            || {
                if names.is_empty() {
                    "this prompt declares no arguments".to_owned()
                } else {
                    format!("declared are: {}", names.join(", "))
                }
            },
            |near| format!("did you mean `{near}`?"),
        );
        let message = format!(
            "{what} `{}`, which is not an argument",
            name.chars().take(40).collect::<String>()
        );
        problems.push(file.source.problem(
            Severity::Error,
            "unknown-argument",
            span.clone(),
            message,
            Some(hint),
        ));
    };
    for (argument, places) in front.arguments.iter().zip(&front.argument_places) {
        if let Some(other) = &argument.values.where_argument
            && !names.contains(&other.as_str())
        {
            unknown(&places.values, other, "`where` names");
        }
    }
    for (example, places) in front.examples.iter().zip(&front.example_places) {
        for ((name, _), span) in example.arguments.iter().zip(&places.arguments) {
            if !names.contains(&name.as_str()) {
                unknown(span, name, "the example gives");
            }
        }
    }
}

/// A URI is rendered where it is looked up, so that its template must be one that costs next to nothing.
fn uris(file: &PromptFile, problems: &mut Vec<Problem>) {
    for (binding, (_, at)) in file.front.bindings.iter().zip(&file.front.binding_places) {
        let why = match lane::standing_alone(&binding.uri) {
            Ok(cost) if cost.steps <= MAX_URI_STEPS => continue,
            Ok(cost) => format!(
                "it has {} steps; at most {MAX_URI_STEPS} are allowed",
                cost.steps
            ),
            Err(why) => why,
        };
        problems.push(file.source.problem(
            Severity::Error,
            "resource-uri",
            at.clone(),
            format!("the URI of `{}` is no simple template: {why}", binding.name),
            Some("put arguments into it, like \"runbook://{{ service }}\"".into()),
        ));
    }
}

/// The variables a URI template reads; `None` when it is no template.
fn uri_variables(uri: &str) -> Option<Vec<Arc<str>>> {
    if !uri.contains('{') {
        return None;
    }
    let constructs = scan::scan(uri);
    let mut out: Vec<Arc<str>> = Vec::new();
    for construct in &constructs {
        for token in scan::variables(uri, construct) {
            let name = &uri[token.span.clone()];
            if !out.iter().any(|n| **n == *name) {
                out.push(name.into());
            }
        }
    }
    Some(out)
}

fn uses_word(source: &str, constructs: &[Construct], word: &str) -> bool {
    constructs
        .iter()
        .any(|c| c.tokens.iter().any(|t| &source[t.span.clone()] == word))
}

fn prompt(file: &PromptFile, partials: Vec<Arc<Partial>>, limits: &Limits, tera: Tera) -> Prompt {
    let front = &file.front;
    let anywhere = |word: &str| {
        uses_word(&file.source.text, &file.constructs, word)
            || partials
                .iter()
                .any(|p| uses_word(&p.source.text, &p.constructs, word))
    };
    let literal = file
        .parts
        .iter()
        .map(|part| match part {
            Part::Text { span, .. } => !file
                .constructs
                .iter()
                .any(|c| c.span.start < span.end && c.span.end > span.start),
            Part::Resource { .. } => true,
        })
        .collect();
    Prompt {
        name: file.name.clone(),
        folder: file.folder.as_str().into(),
        path: file.source.path.clone(),
        title: front.title.clone(),
        description: front.description.clone(),
        tags: front.tags.clone(),
        arguments: front.arguments.clone(),
        bindings: front.bindings.clone(),
        examples: front.examples.clone(),
        sha256: file.sha256.clone(),
        list_hash: list_hash(file),
        closure_hash: closure_hash(file, &partials),
        parts: file.parts.clone(),
        text: file.source.text.as_str().into(),
        literal,
        uses_resources: anywhere("resources"),
        uses_nonce: anywhere("untrusted"),
        uri_arguments: front
            .bindings
            .iter()
            .map(|b| uri_variables(&b.uri))
            .collect(),
        compiled: Compiled::new(tera),
        lane: lane::classify(file, &partials, limits),
        partials,
    }
}

fn closure_hash(file: &PromptFile, partials: &[Arc<Partial>]) -> Arc<str> {
    let mut hash = Sha256::new();
    let mut field = |text: &str| {
        hash.update(text.len().to_le_bytes());
        hash.update(text);
    };
    field(&file.source.text[file.body.clone()]);
    for argument in &file.front.arguments {
        field(&argument.name);
        field(argument.default.as_deref().unwrap_or_default());
    }
    for binding in &file.front.bindings {
        field(&binding.name);
        field(&binding.uri);
        field(binding.embed.as_str());
        field(if binding.required { "1" } else { "0" });
    }
    for partial in partials {
        hash.update([0]);
        hash.update(partial.name.as_bytes());
        hash.update([0]);
        hash.update(partial.sha256.as_bytes());
    }
    hex(&hash.finalize())
}

fn list_hash(file: &PromptFile) -> Arc<str> {
    let mut hash = Sha256::new();
    let mut field = |text: &str| {
        hash.update(text.len().to_le_bytes());
        hash.update(text);
    };
    field(file.name.as_str());
    field(&file.folder);
    field(file.front.title.as_deref().unwrap_or_default());
    field(file.front.description.as_deref().unwrap_or_default());
    field(&file.front.tags.join("\n"));
    for argument in &file.front.arguments {
        field(&argument.name);
        field(argument.description.as_deref().unwrap_or_default());
        field(if argument.required { "1" } else { "0" });
        field(argument.default.as_deref().unwrap_or_default());
    }
    hex(&hash.finalize())
}
