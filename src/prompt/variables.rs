//! Which variables the templates of a prompt read, and whether each has a value where it is read.
//!
//! Tera is strict on `{{ typo }}` and silent on `{% if typo %}`; its own list of variables has no places, does not know
//! that a `set` under a condition may not run, and cannot tell one part from another. This walks the constructs in the
//! order in which they are rendered, through the includes, with what is bound at each place.

use std::collections::{BTreeMap, BTreeSet};
use std::ops::Range;
use std::sync::Arc;

use super::parse::{Part, Partial, PromptFile};
use super::problem::{Problem, Severity, nearest};
use super::scan::{self, Construct, Nesting};
use super::source::Source;

/// Undeclared variables that are reported of one prompt; fixing them shows the rest.
const MAX_FINDINGS: usize = 100;

/// Undeclared variables and unused arguments, found through the includes.
pub(super) fn check(file: &PromptFile, closure: &[Arc<Partial>], problems: &mut Vec<Problem>) {
    let declared: Vec<&str> = file.front.arguments.iter().map(|a| &*a.name).collect();
    let mut reader = Reader {
        partials: closure.iter().map(|p| (&*p.name, &**p)).collect(),
        declared: &declared,
        used: BTreeSet::new(),
        faults: BTreeMap::new(),
        misuses: Vec::new(),
    };
    for part in &file.parts {
        let Part::Text { span, .. } = part else {
            continue;
        };
        let constructs = file
            .constructs
            .iter()
            .filter(|c| span.start <= c.span.start && c.span.start < span.end);
        reader.walk(&file.source, constructs, &mut Bound::default());
    }
    let Reader {
        mut used,
        faults,
        misuses,
        ..
    } = reader;
    problems.extend(misuses);
    for (name, fault) in faults.iter().take(MAX_FINDINGS) {
        problems.push(fault_problem(name, fault, file, &declared));
    }
    // the URI of a binding is a template of its own, in which nothing can be bound
    for (binding, (_, at)) in file.front.bindings.iter().zip(&file.front.binding_places) {
        for construct in &scan::scan(&binding.uri) {
            for token in scan::variables(&binding.uri, construct) {
                let name = &binding.uri[token.span.clone()];
                match declared.iter().find(|d| **d == name) {
                    Some(declared) => {
                        used.insert(declared);
                    }
                    None if faults.contains_key(name) => {}
                    None => {
                        problems.push(undeclared(&file.source, at.clone(), name, &declared, file));
                    }
                }
            }
        }
    }
    for (argument, places) in file.front.arguments.iter().zip(&file.front.argument_places) {
        if !used.contains(&*argument.name) {
            problems.push(file.source.problem(
                Severity::Error,
                "unused-argument",
                places.name.clone(),
                format!("argument `{}` changes nothing in the text", argument.name),
                Some(format!("use it ({{{{ {} }}}}) or remove it", argument.name)),
            ));
        }
    }
    resource_members(file, closure, problems);
}

/// What has a value at a place besides the arguments.
#[derive(Debug, Clone, Default)]
struct Bound<'a> {
    /// On every way to the place.
    always: BTreeSet<&'a str>,
    /// On some way to it.
    sometimes: BTreeSet<&'a str>,
}

impl<'a> Bound<'a> {
    fn bind(&mut self, name: &'a str) {
        self.always.insert(name);
        self.sometimes.insert(name);
    }
}

/// What is open at a place, with what was bound before it.
enum Open<'a> {
    /// An `if`: what each arm so far bound, and whether one of them is the `else`.
    If {
        before: BTreeSet<&'a str>,
        arms: Vec<BTreeSet<&'a str>>,
        has_else: bool,
    },
    /// A `for`: what it binds ends with it.
    Scope(BTreeSet<&'a str>),
    /// `{% set name %} … {% endset %}`.
    Set(&'a str),
    Other,
}

/// The first place where a name is read without a value.
struct Fault<'a> {
    source: &'a Source,
    construct: &'a Construct,
    span: Range<usize>,
    /// It is bound on some ways to the place, and not on all.
    sometimes: bool,
}

struct Reader<'a> {
    partials: BTreeMap<&'a str, &'a Partial>,
    declared: &'a [&'a str],
    /// Arguments that are read.
    used: BTreeSet<&'a str>,
    faults: BTreeMap<&'a str, Fault<'a>>,
    misuses: Vec<Problem>,
}

impl<'a> Reader<'a> {
    fn walk(
        &mut self,
        source: &'a Source,
        constructs: impl IntoIterator<Item = &'a Construct>,
        bound: &mut Bound<'a>,
    ) {
        let text = source.text.as_str();
        let mut open: Vec<Open<'a>> = Vec::new();
        for construct in constructs {
            let tag = construct.tag_word(text);
            // the condition of an arm is read with what was bound before the first
            if matches!(tag, "elif" | "else")
                && let Some(last) = open.last_mut()
            {
                match last {
                    Open::If {
                        before,
                        arms,
                        has_else,
                    } => {
                        *has_else |= tag == "else";
                        arms.push(std::mem::replace(&mut bound.always, before.clone()));
                    }
                    Open::Scope(before) => bound.always.clone_from(before),
                    Open::Set(_) | Open::Other => {}
                }
            }
            self.reads(source, construct, bound);
            match tag {
                "if" => open.push(Open::If {
                    before: bound.always.clone(),
                    arms: Vec::new(),
                    has_else: false,
                }),
                "for" => {
                    open.push(Open::Scope(bound.always.clone()));
                    bound.bind("loop");
                    for name in for_names(text, construct) {
                        bound.bind(name);
                    }
                }
                "set" | "set_global" if scan::nesting(text, construct) == Nesting::Opens => {
                    open.push(Open::Set(construct.word(text, 1)));
                }
                "set" | "set_global" => bound.bind(construct.word(text, 1)),
                "include" => self.include(text, construct, bound),
                "elif" => {}
                _ => match scan::nesting(text, construct) {
                    Nesting::Opens => open.push(Open::Other),
                    Nesting::Closes => match open.pop() {
                        Some(Open::If {
                            before,
                            arms,
                            has_else,
                        }) => {
                            bound.always = if has_else {
                                let last = std::mem::take(&mut bound.always);
                                arms.iter().fold(last, |all, arm| &all & arm)
                            } else {
                                before
                            };
                        }
                        Some(Open::Scope(before)) => bound.always = before,
                        Some(Open::Set(name)) => bound.bind(name),
                        Some(Open::Other) | None => {}
                    },
                    Nesting::Flat => {}
                },
            }
            if matches!(tag, "if" | "elif") {
                for name in true_names(text, construct) {
                    if bound.sometimes.contains(name) {
                        bound.always.insert(name);
                    }
                }
            }
        }
    }

    /// An included file sees what is bound where it is included; what it binds stays in it.
    fn include(&mut self, text: &'a str, construct: &'a Construct, bound: &Bound<'a>) {
        let included = scan::includes(text, std::slice::from_ref(construct))
            .next()
            .and_then(|(name, _)| self.partials.get(name).copied());
        if let Some(partial) = included {
            let mut inner = bound.clone();
            self.walk(&partial.source, &partial.constructs, &mut inner);
        }
    }

    /// An argument is a text: it has no members, and a loop over it goes over its characters.
    fn misuse(&mut self, source: &Source, construct: &Construct, token: &scan::Token, name: &str) {
        if self.misuses.len() >= MAX_FINDINGS {
            return;
        }
        let text = source.text.as_str();
        let at = construct.tokens.iter().position(|t| t.span == token.span);
        let Some(at) = at else { return };
        let after = construct.word(text, at + 1);
        let before = at.checked_sub(1).map_or("", |i| construct.word(text, i));
        let (severity, code, message, hint) = if after == "." {
            (
                Severity::Error,
                "argument-member",
                format!(
                    "`{name}` is a text and has no `{}`",
                    construct.word(text, at + 2)
                ),
                format!("write the argument itself: {{{{ {name} }}}}"),
            )
        } else if construct.tag_word(text) == "for" && before == "in" && after.is_empty() {
            (
                Severity::Warning,
                "iterates-text",
                format!("`{name}` is a text: this loop goes over its characters"),
                format!("split it: {{% for item in {name} | split(pat=\",\") %}}"),
            )
        } else {
            return;
        };
        self.misuses
            .push(source.problem(severity, code, token.span.clone(), message, Some(hint)));
    }

    /// Looks at every variable that a construct reads.
    fn reads(&mut self, source: &'a Source, construct: &'a Construct, bound: &Bound<'a>) {
        let text = source.text.as_str();
        let inner: Vec<&str> = match construct.tag_word(text) {
            "for" => Vec::new(),
            _ => comprehension_names(text, construct),
        };
        for token in scan::variables(text, construct) {
            let name = &text[token.span.clone()];
            if inner.contains(&name) || bound.always.contains(name) || name == "resources" {
                continue;
            }
            if let Some(declared) = self.declared.iter().find(|d| **d == name) {
                self.used.insert(declared);
                self.misuse(source, construct, token, name);
                continue;
            }
            let sometimes = bound.sometimes.contains(name);
            if sometimes && is_lenient(text, construct, &token.span) {
                continue;
            }
            self.faults.entry(name).or_insert(Fault {
                source,
                construct,
                span: token.span.clone(),
                sometimes,
            });
        }
    }
}

/// The names that must have a value for a condition to hold: `y` of `{% if y and … %}` and of `y is defined`.
fn true_names<'a>(text: &'a str, construct: &'a Construct) -> Vec<&'a str> {
    let words: Vec<&str> = construct
        .tokens
        .iter()
        .skip(1)
        .map(|t| &text[t.span.clone()])
        .collect();
    if words.iter().any(|w| matches!(*w, "or" | "(" | "[" | "{")) {
        return Vec::new();
    }
    words
        .split(|word| *word == "and")
        .filter_map(|term| match term {
            [name] | [name, "is", "defined"] => Some(*name),
            _ => None,
        })
        .collect()
}

/// The names that `for` binds.
fn for_names<'a>(text: &'a str, construct: &'a Construct) -> impl Iterator<Item = &'a str> {
    construct
        .tokens
        .iter()
        .map(|t| &text[t.span.clone()])
        .skip(1)
        .take_while(|word| *word != "in")
        .filter(|word| *word != ",")
}

/// The names that `[x for x in list]` binds inside an expression.
fn comprehension_names<'a>(text: &'a str, construct: &'a Construct) -> Vec<&'a str> {
    let mut out = Vec::new();
    let mut words = construct.tokens.iter().map(|t| &text[t.span.clone()]);
    while words.any(|word| word == "for") {
        out.extend(
            words
                .by_ref()
                .take_while(|word| *word != "in")
                .filter(|word| *word != ","),
        );
    }
    out
}

/// Whether Tera takes a variable without a value silently here: a condition, a test, a default, `or`, `~`.
fn is_lenient(text: &str, construct: &Construct, span: &Range<usize>) -> bool {
    let Some(i) = construct.tokens.iter().position(|t| t.span == *span) else {
        return false;
    };
    let before = i.checked_sub(1).map_or("", |i| construct.word(text, i));
    let after = construct.word(text, i + 1);
    let is_condition = matches!(construct.tag_word(text), "if" | "elif")
        && matches!(after, "" | "and" | "or" | ")" | "==" | "!=")
        && matches!(
            before,
            "if" | "elif" | "and" | "or" | "not" | "(" | "==" | "!="
        );
    is_condition
        || before == "~"
        || matches!(after, "is" | "or" | "~")
        || (after == "|" && construct.word(text, i + 2) == "default")
}

fn fault_problem(name: &str, fault: &Fault<'_>, file: &PromptFile, declared: &[&str]) -> Problem {
    let source = fault.source;
    if let Some((whole, _)) = subtraction(source, fault.construct, &fault.span, declared) {
        let text = &source.text[whole.clone()];
        return source.problem(
            Severity::Error,
            "hyphen-in-name",
            whole.clone(),
            format!("`{text}` is read as a subtraction: names have no `-`"),
            Some(format!("call it `{}`", text.replace('-', "_"))),
        );
    }
    if fault.sometimes {
        return source.problem(
            Severity::Error,
            "sometimes-set",
            fault.span.clone(),
            format!(
                "`{name}` has no value here when a `set` before it is not reached{}",
                through(source, file)
            ),
            Some(format!(
                "set it before the condition as well: {{% set {name} = \"\" %}}"
            )),
        );
    }
    let mut problem = undeclared(source, fault.span.clone(), name, declared, file);
    if source.path == file.source.path
        && scan::bound_names(&source.text, &file.constructs).contains(&name)
    {
        problem.hint = Some(
            "it is bound elsewhere: each part between markers is a template of its own, read from its top".into(),
        );
    }
    problem
}

/// Names the prompt where a problem is in a partial.
fn through(source: &Source, file: &PromptFile) -> String {
    if source.path == file.source.path {
        String::new()
    } else {
        format!(" of {} (which includes this partial)", file.source.path)
    }
}

fn undeclared(
    source: &Source,
    span: Range<usize>,
    name: &str,
    declared: &[&str],
    file: &PromptFile,
) -> Problem {
    let hint = match nearest(name, declared.iter().copied()) {
        Some(near) => format!("did you mean `{near}`?"),
        None if declared.is_empty() => {
            format!("declare it: arguments: [{{ name: {name} }}]; or wrap the text in {{% raw %}}")
        }
        None => format!("declared are: {}", declared.join(", ")),
    };
    source.problem(
        Severity::Error,
        "undeclared-variable",
        span,
        format!("`{name}` is not an argument{}", through(source, file)),
        Some(hint),
    )
}

/// `{{ svc-name }}`: the span of the whole, and the names in it, when the pieces touch and what follows is not declared.
fn subtraction<'s>(
    source: &'s Source,
    construct: &Construct,
    span: &Range<usize>,
    declared: &[&str],
) -> Option<(Range<usize>, Vec<&'s str>)> {
    let text = &source.text;
    let at = construct.tokens.iter().position(|t| t.span == *span)?;
    // whether a name, a `-` and a name stand at `i` without a blank between them
    let joined = |i: usize| {
        let Some([left, minus, right]) = construct.tokens.get(i..i + 3) else {
            return false;
        };
        left.kind == scan::TokenKind::Ident
            && right.kind == scan::TokenKind::Ident
            && &text[minus.span.clone()] == "-"
            && left.span.end == minus.span.start
            && minus.span.end == right.span.start
    };
    let mut first = at;
    while first >= 2 && joined(first - 2) {
        first -= 2;
    }
    let mut last = at;
    while joined(last) && !declared.contains(&construct.word(text, last + 2)) {
        last += 2;
    }
    let names: Vec<&str> = (first..=last)
        .step_by(2)
        .map(|i| construct.word(text, i))
        .collect();
    let whole = construct.tokens[first].span.start..construct.tokens[last].span.end;
    (names.len() > 1).then_some((whole, names))
}

/// `resources.<name>.<member>` must name a declared resource and one of its members.
fn resource_members(file: &PromptFile, closure: &[Arc<Partial>], problems: &mut Vec<Problem>) {
    let files = std::iter::once((&file.source, file.constructs.as_slice()))
        .chain(closure.iter().map(|p| (&p.source, p.constructs.as_slice())));
    let declared: Vec<&str> = file.front.bindings.iter().map(|b| &*b.name).collect();
    for (source, constructs) in files {
        let text = &source.text;
        for construct in constructs {
            for (i, token) in construct.tokens.iter().enumerate() {
                if &text[token.span.clone()] != "resources" || construct.word(text, i + 1) != "." {
                    continue;
                }
                let name = construct.word(text, i + 2);
                let member = construct.word(text, i + 4);
                let (at, message, near) = if !declared.contains(&name) {
                    (
                        i + 2,
                        format!("no resource `{name}` is declared"),
                        nearest(name, declared.iter().copied()),
                    )
                } else if construct.word(text, i + 3) == "."
                    && !["found", "uri", "text"].contains(&member)
                {
                    (
                        i + 4,
                        format!("a resource has no `{member}`"),
                        nearest(member, ["found", "uri", "text"]),
                    )
                } else {
                    continue;
                };
                let Some(token) = construct.tokens.get(at) else {
                    continue;
                };
                let hint = near.map_or_else(
                    || "resources.<name>.found, .uri and .text".to_owned(),
                    |near| format!("did you mean `{near}`?"),
                );
                problems.push(source.problem(
                    Severity::Error,
                    "unknown-binding",
                    token.span.clone(),
                    message,
                    Some(hint),
                ));
            }
        }
    }
}
