//! A scanner of our own over Tera's template syntax.
//!
//! Tera 2 has no public syntax tree. This gives what the checker needs with places: the constructs of a
//! source, their tokens, which identifiers are variables, what is included, and where the lexer of Tera 2.4
//! (whose rules it follows) would stop. It renders nothing.

use std::ops::Range;

/// The kind of a construct.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Kind {
    /// `{{ … }}`
    Expression,
    /// `{% … %}`
    Tag,
    /// `{# … #}`
    Comment,
    /// `{% raw %} … {% endraw %}`
    Raw,
}

/// The kind of a token.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum TokenKind {
    /// A word.
    Ident,
    /// A quoted text.
    Text,
    /// A number.
    Number,
    /// An operator or bracket.
    Punct,
}

/// A token inside an expression or a tag.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Token {
    /// Its kind.
    pub kind: TokenKind,
    /// Bytes of the source.
    pub span: Range<usize>,
}

/// Why a construct cannot be read.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Fault {
    /// No closing delimiter.
    Open,
    /// A quote without its partner.
    OpenText,
    /// A character that begins no token.
    Character(char),
}

/// One construct.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Construct {
    /// What it is.
    pub kind: Kind,
    /// Bytes, delimiters included.
    pub span: Range<usize>,
    /// Tokens, of expressions and tags.
    pub tokens: Vec<Token>,
    /// Where and why reading stopped.
    pub fault: Option<(usize, Fault)>,
}

impl Construct {
    /// The text of token `i`, or nothing.
    pub fn word<'s>(&self, source: &'s str, i: usize) -> &'s str {
        self.tokens.get(i).map_or("", |t| &source[t.span.clone()])
    }

    /// The word that makes a tag what it is: `if`, `include`, …
    pub fn tag_word<'s>(&self, source: &'s str) -> &'s str {
        if self.kind == Kind::Tag {
            self.word(source, 0)
        } else {
            ""
        }
    }
}

/// Reading ends after so many faults: each may cost a look at the rest of the source.
const MAX_FAULTS: usize = 100;

/// Reads the constructs of a source, in order. After a fault, reading goes on behind the construct.
pub fn scan(source: &str) -> Vec<Construct> {
    scan_from(source, 0..source.len())
}

/// The same for a part of a source; spans are bytes of the whole.
pub fn scan_from(source: &str, part: Range<usize>) -> Vec<Construct> {
    let mut out = Vec::new();
    let text = &source[..part.end];
    let mut at = part.start;
    let mut faults = 0;
    while let Some(open) = next_open(text, at) {
        let construct = construct(text, open);
        at = construct.span.end.max(open + 2);
        faults += usize::from(construct.fault.is_some());
        out.push(construct);
        if faults >= MAX_FAULTS {
            break;
        }
    }
    out
}

fn next_open(text: &str, at: usize) -> Option<usize> {
    text.as_bytes()
        .get(at..)?
        .windows(2)
        .position(|w| w[0] == b'{' && matches!(w[1], b'{' | b'%' | b'#'))
        .map(|i| at + i)
}

fn construct(text: &str, open: usize) -> Construct {
    let bytes = text.as_bytes();
    let done = |kind, end, tokens, fault| Construct {
        kind,
        span: open..end,
        tokens,
        fault,
    };
    let trimmed = usize::from(bytes.get(open + 2) == Some(&b'-'));
    let inner = open + 2 + trimmed;
    if bytes[open + 1] == b'#' {
        return match text[inner..].find("#}") {
            Some(i) => done(Kind::Comment, inner + i + 2, Vec::new(), None),
            None => done(
                Kind::Comment,
                open + 2,
                Vec::new(),
                Some((open, Fault::Open)),
            ),
        };
    }
    if bytes[open + 1] == b'%'
        && let Some(after) = skip_tag(text, open + 2, "raw")
    {
        let mut at = after;
        while let Some(i) = text[at..].find("{%") {
            let tag = at + i;
            if let Some(end) = skip_tag(text, tag + 2, "endraw") {
                return done(Kind::Raw, end, Vec::new(), None);
            }
            at = tag + 2;
        }
        return done(Kind::Raw, after, Vec::new(), Some((open, Fault::Open)));
    }
    let (kind, close) = if bytes[open + 1] == b'{' {
        (Kind::Expression, "}}")
    } else {
        (Kind::Tag, "%}")
    };
    let mut tokens = Vec::new();
    let mut at = inner;
    let fault = loop {
        let rest = &text[at..];
        let Some(first) = rest.chars().next() else {
            break (open, Fault::Open);
        };
        if first.is_ascii_whitespace() {
            at += 1;
            continue;
        }
        if rest.starts_with(close) {
            return done(kind, at + 2, tokens, None);
        }
        if first == '-' && rest[1..].starts_with(close) {
            return done(kind, at + 3, tokens, None);
        }
        // no expression holds an opening delimiter: this one was never closed
        if rest.starts_with("{{") || rest.starts_with("{%") {
            break (open, Fault::Open);
        }
        match token(rest, first) {
            Ok((kind, length)) => {
                tokens.push(Token {
                    kind,
                    span: at..at + length,
                });
                at += length;
            }
            Err(fault) => break (at, fault),
        }
    };
    // Behind the closing delimiter when one comes before the next opening, else behind the opening.
    let rest = &text[inner..];
    let end = match (rest.find(close), next_open(rest, 0)) {
        (Some(c), None) => inner + c + 2,
        (Some(c), Some(o)) if c < o => inner + c + 2,
        _ => open + 2,
    };
    done(kind, end, tokens, Some(fault))
}

/// The end of `{% name %}` when one stands there; `at` is behind `{%`.
fn skip_tag(text: &str, at: usize, name: &str) -> Option<usize> {
    let blank = |s: &'static [char]| s;
    let white = blank(&[' ', '\t', '\n', '\r', '\u{c}']);
    let rest = &text[at..];
    let rest = rest
        .strip_prefix('-')
        .unwrap_or(rest)
        .trim_start_matches(white);
    let rest = rest.strip_prefix(name)?.trim_start_matches(white);
    let rest = rest.strip_prefix('-').unwrap_or(rest).strip_prefix("%}")?;
    Some(text.len() - rest.len())
}

fn token(rest: &str, first: char) -> Result<(TokenKind, usize), Fault> {
    const LONG: [&str; 10] = ["...", "//", "**", "==", "!=", ">=", "<=", "</", "?.", "?["];
    if let Some(op) = LONG.iter().find(|op| rest.starts_with(**op)) {
        return Ok((TokenKind::Punct, op.len()));
    }
    let bytes = rest.as_bytes();
    match first {
        '"' | '\'' | '`' => {
            let mut escaped = false;
            for (i, byte) in bytes.iter().enumerate().skip(1) {
                if escaped {
                    escaped = false;
                } else if *byte == b'\\' {
                    escaped = true;
                } else if char::from(*byte) == first {
                    return Ok((TokenKind::Text, i + 1));
                }
            }
            Err(Fault::OpenText)
        }
        '0'..='9' => {
            let mut float = false;
            let length = bytes
                .iter()
                .take_while(|b| {
                    if !float && **b == b'.' {
                        float = true;
                        true
                    } else {
                        b.is_ascii_digit()
                    }
                })
                .count();
            Ok((TokenKind::Number, length))
        }
        'a'..='z' | 'A'..='Z' | '_' => {
            let length = bytes
                .iter()
                .take_while(|b| b.is_ascii_alphanumeric() || **b == b'_')
                .count();
            Ok((TokenKind::Ident, length))
        }
        c if "+-*/%!.,:~|=<>()[]{}@".contains(c) => Ok((TokenKind::Punct, 1)),
        c => Err(Fault::Character(c)),
    }
}

/// Words of the expression language that are never variables.
const WORDS: &[&str] = &[
    "and", "or", "not", "in", "is", "if", "elif", "else", "for", "true", "True", "false", "False",
    "none", "None", "null",
];

/// The tokens of a construct that read a variable (its first name: `a` of `a.b`).
pub fn variables<'c>(source: &'c str, construct: &'c Construct) -> impl Iterator<Item = &'c Token> {
    let text = move |i: usize| construct.word(source, i);
    let tag = construct.tag_word(source);
    let start = match tag {
        "" => 0,
        "set" | "set_global" | "for" | "if" | "elif" | "filter" => 1,
        // behind the component's name
        "<" => 2,
        // these name something that is no variable
        _ => usize::MAX,
    };
    // `for a in b`, `for k, v in m`, `set a = b`: names before `in` or `=` are bound, not read
    let body = match tag {
        "for" => (0..construct.tokens.len())
            .find(|i| text(*i) == "in")
            .map_or(usize::MAX, |i| i + 1),
        "set" | "set_global" => 2,
        _ => start,
    };
    construct
        .tokens
        .iter()
        .enumerate()
        .skip(body)
        .filter_map(move |(i, token)| {
            if token.kind != TokenKind::Ident || WORDS.contains(&text(i)) {
                return None;
            }
            let before = if i == 0 { "" } else { text(i - 1) };
            let before2 = if i < 2 { "" } else { text(i - 2) };
            let after = text(i + 1);
            let is_member = matches!(before, "." | "?.");
            let is_filter = before == "|" || (tag == "filter" && i == 1);
            let is_test = before == "is" || (before == "not" && before2 == "is");
            // `<card title={x} />`, where `<` begins the construct and is no comparison
            let is_component = i == 1 && matches!(before, "<" | "</");
            let is_call = after == "(" || is_component;
            let is_keyword = after == "=" && (matches!(before, "(" | ",") || text(0) == "<");
            let is_key = after == ":" && matches!(before, "{" | ",");
            (!(is_member || is_filter || is_test || is_call || is_keyword || is_key))
                .then_some(token)
        })
}

/// What kind of thing a word names that the engine looks up when it links templates.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Named {
    /// `x | name`
    Filter,
    /// `x is name`
    Test,
    /// `name(…)`
    Function,
}

/// The filters, tests and functions that a construct uses, with their tokens.
pub fn named<'c>(
    source: &'c str,
    construct: &'c Construct,
) -> impl Iterator<Item = (Named, &'c Token)> {
    let text = move |i: usize| construct.word(source, i);
    construct
        .tokens
        .iter()
        .enumerate()
        .filter_map(move |(i, token)| {
            if token.kind != TokenKind::Ident {
                return None;
            }
            let before = i.checked_sub(1).map_or("", text);
            let before2 = i.checked_sub(2).map_or("", text);
            if before == "|" || (i == 1 && construct.tag_word(source) == "filter") {
                Some((Named::Filter, token))
            } else if (before == "is" && text(i) != "not") || (before == "not" && before2 == "is") {
                Some((Named::Test, token))
            } else if text(i + 1) == "(" && !WORDS.contains(&text(i)) {
                Some((Named::Function, token))
            } else {
                None
            }
        })
}

/// Names a source binds itself: `set`, `set_global`, `for`, component parameters.
pub fn bound_names<'s>(source: &'s str, constructs: &'s [Construct]) -> Vec<&'s str> {
    let mut out = Vec::new();
    for construct in constructs {
        match construct.tag_word(source) {
            "set" | "set_global" => out.push(construct.word(source, 1)),
            "for" => out.extend(
                construct
                    .tokens
                    .iter()
                    .map(|t| &source[t.span.clone()])
                    .skip(1)
                    .take_while(|w| *w != "in")
                    .filter(|w| *w != ","),
            ),
            "component" => out.extend(
                construct
                    .tokens
                    .iter()
                    .filter(|t| t.kind == TokenKind::Ident)
                    .map(|t| &source[t.span.clone()]),
            ),
            _ => {}
        }
    }
    out
}

/// What a source includes or extends: the name without quotes, and the token.
pub fn includes<'s>(
    source: &'s str,
    constructs: &'s [Construct],
) -> impl Iterator<Item = (&'s str, &'s Token)> {
    constructs.iter().filter_map(move |construct| {
        if !matches!(construct.tag_word(source), "include" | "extends") {
            return None;
        }
        let token = construct.tokens.get(1)?;
        let text = &source[token.span.clone()];
        (token.kind == TokenKind::Text).then(|| (&text[1..text.len() - 1], token))
    })
}

/// How a tag changes what is open.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Nesting {
    /// Opens a construct.
    Opens,
    /// Closes one.
    Closes,
    /// Neither.
    Flat,
}

/// Whether a construct opens or closes a block.
pub fn nesting(source: &str, construct: &Construct) -> Nesting {
    match construct.tag_word(source) {
        "if" | "for" | "filter" | "block" | "component" => Nesting::Opens,
        "set" | "set_global" => {
            let assigns = construct
                .tokens
                .iter()
                .any(|t| &source[t.span.clone()] == "=");
            let is_block = construct.tokens.len() == 2 || construct.word(source, 2) == "|";
            if is_block || !assigns {
                Nesting::Opens
            } else {
                Nesting::Flat
            }
        }
        "endif" | "endfor" | "endfilter" | "endblock" | "endcomponent" | "endset"
        | "endset_global" | "</" => Nesting::Closes,
        "<" => {
            if construct
                .tokens
                .last()
                .is_some_and(|t| &source[t.span.clone()] == "/")
            {
                Nesting::Flat
            } else {
                Nesting::Opens
            }
        }
        _ => Nesting::Flat,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn kinds(source: &str) -> Vec<(Kind, &str, bool)> {
        scan(source)
            .iter()
            .map(|c| (c.kind, &source[c.span.clone()], c.fault.is_some()))
            .collect()
    }

    fn names(source: &str) -> Vec<&str> {
        let constructs = scan(source);
        constructs
            .iter()
            .flat_map(|c| {
                variables(source, c)
                    .map(|t| t.span.clone())
                    .collect::<Vec<_>>()
            })
            .map(|span| &source[span])
            .collect()
    }

    #[test]
    fn constructs() {
        assert_eq!(
            kinds("a {{ b }} {%- if c -%} { d } {# e }} #}{% raw %}{{ f }}{% endraw %}"),
            [
                (Kind::Expression, "{{ b }}", false),
                (Kind::Tag, "{%- if c -%}", false),
                (Kind::Comment, "{# e }} #}", false),
                (Kind::Raw, "{% raw %}{{ f }}{% endraw %}", false),
            ]
        );
        assert_eq!(
            kinds("{{ '}}' }}"),
            [(Kind::Expression, "{{ '}}' }}", false)]
        );
        assert_eq!(kinds("{ {a} } 한글 {"), []);
    }

    #[test]
    fn faults_do_not_hide_what_follows() {
        assert_eq!(
            kinds("{{ $labels.x }} {#id {{ a }}"),
            [
                (Kind::Expression, "{{ $labels.x }}", true),
                (Kind::Comment, "{#", true),
                (Kind::Expression, "{{ a }}", false),
            ]
        );
        assert_eq!(kinds("{{ a ? {{ b }}")[0], (Kind::Expression, "{{", true));
        assert_eq!(kinds("{% raw %} x")[0], (Kind::Raw, "{% raw %}", true));
        assert!(kinds("{{ '한 }}")[0].2);
    }

    #[test]
    fn variables_are_found() {
        assert_eq!(names("{{ a.b | upper | default(value=c) }}"), ["a", "c"]);
        assert_eq!(
            names("{% if a is defined and not b %}{% elif c == 'd' %}"),
            ["a", "b", "c"]
        );
        assert_eq!(
            names("{% for k, v in m.items %}{{ k }}{% endfor %}"),
            ["m", "k"]
        );
        assert_eq!(names("{% set x = y ~ 'z' %}{{ range(end=n) }}"), ["y", "n"]);
        assert_eq!(
            names("{{ {a: b, 'c': d} }}{{ x is containing(pat=y) }}"),
            ["b", "d", "x", "y"]
        );
        assert_eq!(
            names("{% include 'a.md' %}{% block b %}{% filter upper %}"),
            Vec::<&str>::new()
        );
    }

    #[test]
    fn includes_are_found() {
        let source = "{% include \"a.md\" %}{%- include 'b.md' -%}{% include c %}";
        let constructs = scan(source);
        assert_eq!(
            includes(source, &constructs)
                .map(|(n, _)| n)
                .collect::<Vec<_>>(),
            ["a.md", "b.md"]
        );
    }
}
