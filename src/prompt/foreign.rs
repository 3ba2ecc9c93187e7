//! Pasted operations text that Tera would misread: Helm, GitHub Actions, Alertmanager, JSON, Handlebars, Jinja.
//!
//! It is a problem that names what it is, with the raw-wrapped form as its fix.

use std::ops::Range;

use super::problem::{Insertion, Problem, Severity};
use super::scan::{Construct, Fault, Kind, TokenKind};
use super::source::Source;

/// The tag words of the library format; anything else after `{%` is not of it.
const TAGS: &[&str] = &[
    "set",
    "set_global",
    "endset",
    "endset_global",
    "include",
    "for",
    "endfor",
    "if",
    "elif",
    "else",
    "endif",
    "filter",
    "endfilter",
    "break",
    "continue",
    "raw",
    "endraw",
];

/// Tag words of engines people paste from. Tera has the first five as well, and the library format has not: in Tera 2.4
/// blocks that call each other through `super()` overflow the stack, which ends the process.
const OTHER_ENGINES: &[&str] = &[
    "extends",
    "block",
    "endblock",
    "component",
    "endcomponent",
    "macro",
    "endmacro",
    "call",
    "import",
    "from",
    "do",
    "with",
    "endwith",
    "assign",
    "capture",
    "endcapture",
    "liquid",
    "comment",
    "endcomment",
    "render",
    "case",
    "when",
    "endcase",
    "unless",
    "endunless",
    "url",
    "load",
    "trans",
    "endtrans",
    "blocktrans",
    "endblocktrans",
    "csrf_token",
    "autoescape",
    "endautoescape",
    "static",
    "now",
    "spaceless",
    "verbatim",
    "endverbatim",
    "increment",
    "decrement",
    "cycle",
    "tablerow",
];

/// Words that begin a Go template action.
const GO_WORDS: &[&str] = &[
    "range", "end", "if", "else", "with", "template", "define", "block", "include", "toYaml",
    "printf", "print", "and", "or", "not", "eq", "ne", "index", "len", "tpl", "required", "lookup",
    "nindent", "query", "first", "humanize", "args", "break", "continue",
];

/// Of these, what begins a Go action and never an expression of Tera.
const GO_OPENERS: &[&str] = &["if", "else", "with", "range", "define", "template", "block"];

/// Words that join two operands in Tera.
const OPERATORS: &[&str] = &["and", "or", "in", "is", "not", "if", "else"];

/// What a construct is when it is not Tera: a phrase that completes "this is …".
pub fn recognise(
    source: &Source,
    construct: &Construct,
    declared: &dyn Fn(&str) -> bool,
) -> Option<&'static str> {
    let text = &source.text;
    let body = text[construct.span.start + 2..]
        .trim_start_matches('-')
        .trim_start();
    let first = construct.word(text, 0);
    let is_declared = construct
        .tokens
        .first()
        .is_some_and(|t| t.kind == TokenKind::Ident)
        && declared(first);
    match construct.kind {
        Kind::Raw => None,
        Kind::Comment => construct
            .fault
            .is_some()
            .then_some("a literal `{#`, which begins a Tera comment"),
        Kind::Tag => {
            if TAGS.contains(&first) && !matches!(construct.fault, Some((_, Fault::Character(_)))) {
                None
            } else if OTHER_ENGINES.contains(&first) {
                Some("a tag of another template engine (Jinja, Django or Liquid)")
            } else if first.starts_with(|c: char| c.is_ascii_alphabetic())
                && construct.fault.is_none()
            {
                None
            } else {
                Some("a literal `{%`, which begins a Tera tag")
            }
        }
        Kind::Expression => {
            if construct.span.start > 0
                && text.as_bytes()[construct.span.start - 1] == b'$'
                && !is_declared
            {
                return Some("a GitHub Actions expression");
            }
            if is_declared && construct.fault.is_none() {
                return None;
            }
            expression(text, construct, body, first)
        }
    }
}

fn expression(text: &str, construct: &Construct, body: &str, first: &str) -> Option<&'static str> {
    const PROMETHEUS: [&str; 4] = ["$labels", "$value", "$externalLabels", "$externalURL"];
    const HELM: [&str; 6] = [
        ".Values",
        ".Release",
        ".Chart",
        ".Capabilities",
        ".Files",
        ".Template",
    ];
    const ALERTMANAGER: [&str; 9] = [
        ".Labels",
        ".Annotations",
        ".Status",
        ".Alerts",
        ".CommonLabels",
        ".CommonAnnotations",
        ".GroupLabels",
        ".ExternalURL",
        ".Receiver",
    ];
    let begins = |prefixes: &[&str]| prefixes.iter().any(|p| body.starts_with(p));
    if begins(&PROMETHEUS) {
        return Some("a Prometheus or Alertmanager template");
    }
    if begins(&HELM)
        || (GO_WORDS.contains(&first)
            && HELM
                .iter()
                .any(|h| text[construct.span.clone()].contains(h)))
    {
        return Some("a Helm template");
    }
    if begins(&ALERTMANAGER) {
        return Some("an Alertmanager template");
    }
    if body.starts_with(['.', '$']) {
        return Some("a Go template");
    }
    if body.starts_with(['#', '/', '>', '^', '&', '!']) {
        return Some("a Handlebars or Mustache tag");
    }
    let second = construct.word(text, 1);
    let is_name = |i: usize| {
        construct
            .tokens
            .get(i)
            .is_some_and(|t| t.kind == TokenKind::Ident)
            && !OPERATORS.contains(&construct.word(text, i))
    };
    if GO_OPENERS.contains(&first) && (is_name(1) || first == "if" && construct.tokens.len() > 1) {
        return Some("a Go template (Helm, Alertmanager)");
    }
    if GO_WORDS.contains(&first)
        && (construct.tokens.len() == 1
            || matches!(second, "." | "if")
            || second.starts_with(['"', '`'])
            || matches!(construct.fault, Some((_, Fault::Character('$')))))
        && !matches!(second, "(" | "|")
    {
        return Some("a Go template (Helm, Alertmanager)");
    }
    let is_key = construct
        .tokens
        .first()
        .is_some_and(|t| matches!(t.kind, TokenKind::Text | TokenKind::Ident));
    // adjacent, so that `{{ {"a": 1} | json }}`, a Tera table, is left alone
    if text[construct.span.start + 2..].starts_with('{') || (is_key && second == ":") {
        return Some("JSON or another literal text in double braces");
    }
    match construct.fault {
        Some((_, Fault::Open)) => Some("a literal `{{`, which begins a Tera expression"),
        // nothing closes it: the quote that was not closed is somewhere else, maybe a code fence
        Some((_, Fault::OpenText)) if construct.span.len() == 2 => {
            Some("a literal `{{`, which begins a Tera expression")
        }
        Some((_, Fault::Character(_))) => Some("no Tera expression"),
        Some((_, Fault::OpenText)) | None => None,
    }
}

/// The problem for a recognised construct: `{% raw %}` round it is the fix.
pub fn problem(source: &Source, construct: &Construct, what: &str) -> Problem {
    let text = &source.text;
    let span = extent(text, construct);
    let shown: String = text[span.clone()].chars().take(60).collect();
    let mut problem = source.problem(
        Severity::Error,
        "foreign-template",
        span.clone(),
        format!("`{shown}` is {what}"),
        Some(format!(
            "to keep it as text write {{% raw %}}{shown}{{% endraw %}} (`cuebook check --fix` does)"
        )),
    );
    let insertion = |offset: usize, text: &'static str| {
        let (line, column) = source.position(offset);
        Insertion { line, column, text }
    };
    problem.fix = vec![
        insertion(span.start, "{% raw %}"),
        insertion(span.end, "{% endraw %}"),
    ];
    problem
}

/// What to wrap: the construct, with the `$` of GitHub Actions; never across another line than it covers.
fn extent(text: &str, construct: &Construct) -> Range<usize> {
    let mut span = construct.span.clone();
    if span.start > 0
        && text.as_bytes()[span.start - 1] == b'$'
        && construct.kind == Kind::Expression
    {
        span.start -= 1;
    }
    // `{{{ x }}}`: the third brace belongs to it
    if text[span.end..].starts_with('}')
        && text[span.clone()]
            .trim_start_matches('$')
            .starts_with("{{{")
    {
        span.end += 1;
    }
    span
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::prompt::scan::scan;

    fn what(text: &str) -> Vec<&'static str> {
        let source = Source::new(&"p.md".into(), text);
        scan(&source.text)
            .iter()
            .filter_map(|c| recognise(&source, c, &|name| matches!(name, "user" | "price")))
            .collect()
    }

    #[test]
    fn pasted_text_is_named() {
        let cases = [
            ("${{ github.sha }}", "a GitHub Actions expression"),
            ("image: {{ .Values.image }}", "a Helm template"),
            ("{{- toYaml .Values.x | nindent 4 }}", "a Helm template"),
            (
                "{{ $labels.instance }}",
                "a Prometheus or Alertmanager template",
            ),
            ("{{ .CommonLabels.alertname }}", "an Alertmanager template"),
            ("{{ range .Items }}", "a Go template (Helm, Alertmanager)"),
            ("{{ end }}", "a Go template (Helm, Alertmanager)"),
            (
                "{{ range $i, $e := .Items }}",
                "a Go template (Helm, Alertmanager)",
            ),
            (
                "{{ \"a\": 1 }}",
                "JSON or another literal text in double braces",
            ),
            (
                "{{{ body }}}",
                "JSON or another literal text in double braces",
            ),
            ("{{#if x}}", "a Handlebars or Mustache tag"),
            ("{#id", "a literal `{#`, which begins a Tera comment"),
            ("{% 100 %}", "a literal `{%`, which begins a Tera tag"),
            ("50{% of", "a literal `{%`, which begins a Tera tag"),
            (
                "{% assign x = 1 %}",
                "a tag of another template engine (Jinja, Django or Liquid)",
            ),
            ("{{ 서비스 }}", "no Tera expression"),
        ];
        for (text, expected) in cases {
            assert_eq!(what(text), [expected], "{text}");
        }
    }

    #[test]
    fn tera_is_left_alone() {
        for text in [
            "{{ user }}",
            "${{ price }}",
            "{{ user.name | upper }}",
            "{% if user %}{% endif %}",
            "{ \"a\": 1 }",
            "{# a comment #}",
            "{% raw %}{{ .Values.x }}{% endraw %}",
            "{{ range(end=3) }}",
            "{{ {\"a\": 1} | json }}",
        ] {
            assert_eq!(what(text), Vec::<&str>::new(), "{text}");
        }
    }
}
