//! Which prompts are rendered in this process, and which only in a worker.
//!
//! The fast lane takes what this reader can prove to be linear: it reads the tokens of every construct of a closure
//! against a small grammar, and whatever is not in it sends the prompt to the workers, with the place. What it admits:
//!
//! - text, comments and `{% raw %}`: written once each;
//! - `{{ value | filters }}`, where a value is a literal, an argument or a member of a bound resource, and a filter is
//!   one whose output is at most a small multiple of its input (`factor`); the multiples of one expression together
//!   are at most 8;
//! - `if`, `elif`, `else` with comparisons, `in`, `and`, `or`, `not` and simple tests: each looks at a value once;
//! - `for` over a list of literals: its length is known, and multiplies what stands in it;
//! - includes of texts of the same class: counted wherever they stand.
//!
//! Nothing binds a value, calls anything, builds a list, joins or multiplies texts, so no value grows but by the filters
//! of one expression, and no text is run more often than it is counted. A render then runs at most `steps` constructs and
//! touches at most `work_bytes` of what is written out and `weight` × the bytes of all values ([`Fast`]). `steps` and
//! `work_bytes` are bounded when the lane is decided, all of it when the values are known ([`Lane::admits`]); a render
//! over it goes to a worker too.

use std::collections::BTreeMap;
use std::sync::Arc;

use super::limits::Limits;
use super::parse::{Part, Partial, PromptFile};
use super::scan::{self, Construct, Kind, TokenKind};
use super::source::Source;

/// What one expression may make of a value: so many times its bytes.
const MAX_FACTOR: u64 = 8;
/// Constructs that stand in each other.
const MAX_DEPTH: usize = 16;
/// Tokens of one construct.
const MAX_TOKENS: usize = 128;
/// Brackets in brackets of a condition.
const MAX_BRACKETS: usize = 8;
/// Bytes that a number takes when it is printed, at most: the largest float has 309 digits.
const NUMBER_BYTES: u64 = 400;

/// Where a prompt is rendered.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Lane {
    /// In this process.
    Fast(Fast),
    /// In a worker process.
    Worker(Reason),
}

/// Upper bounds of what a render in this process does.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Fast {
    /// Constructs that are run.
    pub steps: u64,
    /// How often a byte of a value is looked at, copied or written.
    pub weight: u64,
    /// How often a byte of a value is in the output.
    pub growth: u64,
    /// Bytes of output that are there whatever the values.
    pub text_bytes: u64,
    /// Bytes of texts that are written out in constructs, as often as they are looked at.
    pub work_bytes: u64,
    /// Bytes of the longest text that a loop gives a name to: it stands where a value may stand.
    pub longest_bytes: u64,
    /// Bytes that may be gone over in this process, those of the values included.
    pub most_work_bytes: u64,
}

impl Fast {
    /// Bytes that are gone over with values of so many bytes.
    fn work(&self, value_bytes: u64) -> u64 {
        self.weight
            .saturating_mul(value_bytes.saturating_add(self.longest_bytes))
            .saturating_add(self.work_bytes)
    }
}

/// What keeps a prompt out of the fast lane.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Reason {
    /// What it is, one line.
    pub why: String,
    /// The file it stands in.
    pub path: Arc<str>,
    /// Line from 1.
    pub line: u32,
    /// Column in characters, from 1.
    pub column: u32,
}

impl std::fmt::Display for Reason {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let Self {
            why,
            path,
            line,
            column,
        } = self;
        write!(f, "{path}:{line}:{column}: {why}")
    }
}

impl Lane {
    /// `fast` or `worker`.
    pub fn as_str(&self) -> &'static str {
        match self {
            Self::Fast(_) => "fast",
            Self::Worker(_) => "worker",
        }
    }

    /// Whether a render with so many bytes of values is done in this process.
    pub fn admits(&self, value_bytes: usize) -> bool {
        match self {
            Self::Fast(fast) => {
                fast.work(u64::try_from(value_bytes).unwrap_or(u64::MAX)) <= fast.most_work_bytes
            }
            Self::Worker(_) => false,
        }
    }

    /// Bytes of output that values of so many bytes give at most; none where nothing is known.
    pub fn output_bound(&self, value_bytes: u64) -> Option<u64> {
        match self {
            Self::Fast(fast) => Some(
                fast.growth
                    .saturating_mul(value_bytes.saturating_add(fast.longest_bytes))
                    .saturating_add(fast.text_bytes),
            ),
            Self::Worker(_) => None,
        }
    }
}

/// The lane of a prompt with what it includes.
pub(super) fn classify(file: &PromptFile, closure: &[Arc<Partial>], limits: &Limits) -> Lane {
    let partials = closure.iter().map(|p| (&*p.name, &**p)).collect();
    let most_steps = limits.fast_lane_steps;
    let mut costs = Costs {
        partials,
        known: BTreeMap::new(),
        most_steps,
    };
    let mut total = Fast {
        most_work_bytes: limits.fast_lane_work_bytes,
        ..Fast::default()
    };
    for part in &file.parts {
        let Part::Text { span, .. } = part else {
            continue;
        };
        let inside = |c: &&Construct| span.start <= c.span.start && c.span.start < span.end;
        let constructs: Vec<&Construct> = file.constructs.iter().filter(inside).collect();
        match costs.of(&file.source, &constructs, span.len(), 0) {
            Ok((cost, _)) => total = plus(total, cost, 1),
            Err(reason) => return Lane::Worker(reason),
        }
        if total.work(0) > total.most_work_bytes {
            let why = format!(
                "it goes over {} bytes that are written out, counted as often as it does; at most {} in the fast lane (fast_lane_work_bytes)",
                total.work(0),
                total.most_work_bytes
            );
            return Lane::Worker(at(&file.source, span.start, why));
        }
        if total.steps > most_steps {
            let why = too_many_steps(total.steps, most_steps);
            return Lane::Worker(at(&file.source, span.start, why));
        }
    }
    Lane::Fast(total)
}

/// The lane of a template that includes nothing, such as a URI's: what is wrong with it, when it is not fast.
pub(super) fn standing_alone(text: &str) -> Result<Fast, String> {
    let source = Source::new(&"".into(), text);
    let constructs = scan::scan(text);
    let mut costs = Costs {
        partials: BTreeMap::new(),
        known: BTreeMap::new(),
        most_steps: Limits::default().fast_lane_steps,
    };
    costs
        .of(
            &source,
            &constructs.iter().collect::<Vec<_>>(),
            text.len(),
            0,
        )
        .map(|(cost, _)| cost)
        .map_err(|reason| reason.why)
}

fn too_many_steps(steps: u64, most: u64) -> String {
    format!(
        "it runs up to {steps} constructs; at most {most} are run in the fast lane (fast_lane_steps)"
    )
}

fn at(source: &Source, offset: usize, why: String) -> Reason {
    let (line, column) = source.position(offset);
    Reason {
        why,
        path: source.path.clone(),
        line,
        column,
    }
}

fn plus(a: Fast, b: Fast, times: u64) -> Fast {
    let add = |a: u64, b: u64| a.saturating_add(b.saturating_mul(times));
    Fast {
        steps: add(a.steps, b.steps),
        weight: add(a.weight, b.weight),
        growth: add(a.growth, b.growth),
        text_bytes: add(a.text_bytes, b.text_bytes),
        work_bytes: add(a.work_bytes, b.work_bytes),
        longest_bytes: a.longest_bytes.max(b.longest_bytes),
        most_work_bytes: a.most_work_bytes.max(b.most_work_bytes),
    }
}

struct Costs<'a> {
    partials: BTreeMap<&'a str, &'a Partial>,
    /// With how many includes go on below.
    known: BTreeMap<&'a str, (Fast, usize)>,
    most_steps: u64,
}

impl<'a> Costs<'a> {
    /// The cost of a text with its constructs, and how many includes go on below it; `depth` counts those above.
    fn of(
        &mut self,
        source: &'a Source,
        constructs: &[&'a Construct],
        length: usize,
        depth: usize,
    ) -> Result<(Fast, usize), Reason> {
        let mut height = 0;
        let text = source.text.as_str();
        // all text is counted with the largest multiplier it can have, which is that of the construct before it
        let mut total = Fast {
            steps: 1,
            text_bytes: length as u64,
            ..Fast::default()
        };
        // for what is open, how often the text around it is run
        let mut open: Vec<u64> = Vec::new();
        let mut times = 1u64;
        for (i, construct) in constructs.iter().enumerate() {
            let fail = |token: usize, why: String| {
                let offset = construct
                    .tokens
                    .get(token)
                    .map_or(construct.span.start, |t| t.span.start);
                at(source, offset, why)
            };
            if construct.tokens.len() > MAX_TOKENS {
                let why = format!(
                    "{} words and signs in one construct; at most {MAX_TOKENS} are read for the fast lane",
                    construct.tokens.len()
                );
                return Err(fail(0, why));
            }
            let mut reader = Reader {
                text,
                construct,
                at: 0,
                cost: Fast {
                    steps: 1,
                    ..Fast::default()
                },
                longest: 0,
            };
            match construct.kind {
                Kind::Comment | Kind::Raw => {}
                Kind::Expression => reader.expression().map_err(|(t, why)| fail(t, why))?,
                Kind::Tag => match construct.tag_word(text) {
                    "if" | "elif" => {
                        reader.at = 1;
                        reader.condition().map_err(|(t, why)| fail(t, why))?;
                        if construct.tag_word(text) == "if" {
                            open.push(times);
                        }
                    }
                    "for" => {
                        let count = reader.list_loop().map_err(|(t, why)| fail(t, why))?;
                        open.push(times);
                        // what stands behind the `else` of an empty loop is run once
                        times = times.saturating_mul(count.max(1));
                    }
                    "else" => {}
                    "endif" | "endfor" => {
                        times = open.pop().unwrap_or(times);
                    }
                    "include" => {
                        let (cost, below) = self
                            .include(text, construct, depth)
                            .map_err(|inner| inner.unwrap_or_else(|why| fail(1, why)))?;
                        height = height.max(below + 1);
                        total = plus(total, cost, times);
                    }
                    word => return Err(fail(0, unfit_tag(word))),
                },
            }
            if open.len() > MAX_DEPTH {
                let why = format!("more than {MAX_DEPTH} tags stand in each other");
                return Err(fail(0, why));
            }
            // what stands behind a construct is text of the same level, and so are its own literals
            let end = constructs
                .get(i + 1)
                .map_or(construct.span.end, |next| next.span.start);
            let own = MAX_FACTOR * construct.span.len() as u64;
            reader.cost.text_bytes += own + (end - construct.span.end) as u64;
            // a text that is written out is looked at as often as a value would be, and once to get there
            let length = construct.span.len() as u64;
            reader.cost.work_bytes += length.saturating_mul(reader.cost.weight + 1);
            total = plus(total, reader.cost, times);
            if total.steps > self.most_steps {
                return Err(fail(0, too_many_steps(total.steps, self.most_steps)));
            }
        }
        Ok((total, height))
    }

    fn include(
        &mut self,
        text: &'a str,
        construct: &'a Construct,
        depth: usize,
    ) -> Result<(Fast, usize), Result<Reason, String>> {
        let found = scan::includes(text, std::slice::from_ref(construct)).next();
        let Some((name, _)) = found.filter(|_| construct.tokens.len() == 2) else {
            return Err(Err("it includes what is not written out".into()));
        };
        if let Some((cost, below)) = self.known.get(name).copied() {
            if depth + below >= MAX_DEPTH {
                return Err(Err(format!("includes go more than {MAX_DEPTH} deep")));
            }
            return Ok((cost, below));
        }
        let Some(partial) = self.partials.get(name).copied() else {
            return Err(Err("it includes what is not there".into()));
        };
        if depth >= MAX_DEPTH {
            return Err(Err(format!("includes go more than {MAX_DEPTH} deep")));
        }
        let constructs: Vec<&Construct> = partial.constructs.iter().collect();
        let found = self
            .of(
                &partial.source,
                &constructs,
                partial.source.text.len(),
                depth + 1,
            )
            .map_err(Ok)?;
        self.known.insert(&partial.name, found);
        Ok(found)
    }
}

fn unfit_tag(word: &str) -> String {
    match word {
        "set" | "set_global" => format!("`{word}` keeps a value, which may grow"),
        "filter" => "`filter` runs over a text of any length".into(),
        "" => "this tag cannot be read".into(),
        word => format!("`{word}` is not of the fast lane"),
    }
}

/// A place among the tokens and what is wrong there.
type Unfit = (usize, String);

struct Reader<'a> {
    text: &'a str,
    construct: &'a Construct,
    at: usize,
    cost: Fast,
    /// Bytes of the longest literal of a list.
    longest: u64,
}

impl<'a> Reader<'a> {
    fn word(&self) -> &'a str {
        self.construct.word(self.text, self.at)
    }

    fn kind(&self) -> Option<TokenKind> {
        self.construct.tokens.get(self.at).map(|t| t.kind)
    }

    fn take(&mut self, word: &str) -> bool {
        let is = self.word() == word && self.kind() != Some(TokenKind::Text);
        self.at += usize::from(is);
        is
    }

    fn unfit<T>(&self, why: impl Into<String>) -> Result<T, Unfit> {
        Err((self.at, why.into()))
    }

    fn end(&self) -> Result<(), Unfit> {
        if self.at >= self.construct.tokens.len() {
            return Ok(());
        }
        match self.word() {
            "~" => self.unfit("`~` joins texts, which may grow"),
            word @ ("+" | "-" | "*" | "/" | "//" | "%" | "**") => {
                self.unfit(format!("`{word}` calculates"))
            }
            "if" => self.unfit("a condition inside an expression"),
            "[" | "?[" => self.unfit("it reads by an index"),
            word => self.unfit(format!("`{}` stands here", short(word))),
        }
    }

    fn expression(&mut self) -> Result<(), Unfit> {
        let factor = self.value()?;
        self.cost.growth += factor;
        self.cost.weight += factor;
        self.end()
    }

    /// `for name in [literal, …]`: how many.
    fn list_loop(&mut self) -> Result<u64, Unfit> {
        self.at = 1;
        if self.kind() != Some(TokenKind::Ident) {
            return self.unfit("this loop cannot be read");
        }
        self.at += 1;
        if !self.take("in") {
            return self.unfit("a loop over keys and values");
        }
        if self.word() != "[" {
            return self.unfit("a loop over a value: how long it is depends on who calls");
        }
        let count = self.list()?;
        self.cost.longest_bytes = self.longest;
        self.end()?;
        Ok(count)
    }

    /// `[literal, …]`: how many.
    fn list(&mut self) -> Result<u64, Unfit> {
        self.at += 1;
        let mut count = 0;
        loop {
            if self.take("]") {
                return Ok(count);
            }
            let bytes = self.word().len() as u64;
            if !self.literal() {
                return self.unfit("a list of what is not written out");
            }
            count += 1;
            self.longest = self.longest.max(bytes);
            if !self.take(",") && self.word() != "]" {
                return self.unfit("a list of what is not written out");
            }
        }
    }

    fn literal(&mut self) -> bool {
        let is = match self.kind() {
            Some(TokenKind::Text | TokenKind::Number) => true,
            Some(TokenKind::Ident) => matches!(
                self.word(),
                "true" | "True" | "false" | "False" | "none" | "None" | "null"
            ),
            _ => false,
        };
        self.at += usize::from(is);
        is
    }

    /// Comparisons joined by `and` and `or`; brackets are counted, not followed.
    fn condition(&mut self) -> Result<(), Unfit> {
        let mut brackets = 0usize;
        loop {
            // what may stand before a value
            loop {
                if self.take("(") {
                    brackets += 1;
                    if brackets > MAX_BRACKETS {
                        return self.unfit("too many brackets");
                    }
                } else if !self.take("not") {
                    break;
                }
            }
            if self.word() == "[" && self.kind() == Some(TokenKind::Punct) {
                let count = self.list()?;
                self.cost.weight += count;
            } else {
                let factor = self.value()?;
                self.cost.weight += factor;
            }
            while self.take("is") {
                self.take("not");
                self.test()?;
            }
            while brackets > 0 && self.take(")") {
                brackets -= 1;
            }
            if self.at >= self.construct.tokens.len() {
                return Ok(());
            }
            if self.take("not") && self.word() != "in" {
                return self.unfit("`not` stands here");
            }
            let operators = ["and", "or", "in", "==", "!=", "<", ">", "<=", ">="];
            if !operators.iter().any(|operator| self.take(operator)) {
                self.end()?;
            }
        }
    }

    fn test(&mut self) -> Result<(), Unfit> {
        let name = self.word();
        let plain = [
            "defined",
            "undefined",
            "string",
            "number",
            "map",
            "bool",
            "array",
            "integer",
            "float",
            "none",
            "iterable",
            "odd",
            "even",
        ];
        let looks = ["starting_with", "ending_with", "containing"];
        if !plain.contains(&name) && !looks.contains(&name) {
            return self.unfit(format!("the test `{}`", short(name)));
        }
        self.at += 1;
        let arguments = self.arguments(true)?;
        if plain.contains(&name) && !arguments.is_empty() {
            return self.unfit("a test with an argument");
        }
        self.cost.weight += 1;
        Ok(())
    }

    /// A literal or a path with filters: the multiple of its bytes that comes out.
    fn value(&mut self) -> Result<u64, Unfit> {
        if !self.literal() {
            self.path()?;
        }
        let mut product = 1u64;
        while self.take("|") {
            let name_at = self.at;
            let name = self.word();
            if self.kind() != Some(TokenKind::Ident) {
                return self.unfit("a filter without a name");
            }
            self.at += 1;
            let arguments = self.arguments(name == "default")?;
            let times = factor(name, &arguments).map_err(|why| (name_at, why))?;
            product = product.saturating_mul(times);
            if product > MAX_FACTOR {
                let why = format!(
                    "the filters may make {product} times as much of a value; at most {MAX_FACTOR} times is allowed"
                );
                return Err((name_at, why));
            }
            self.cost.weight += product;
            self.cost.text_bytes += NUMBER_BYTES;
        }
        Ok(product)
    }

    fn path(&mut self) -> Result<(), Unfit> {
        const WORDS: &[&str] = &["if", "elif", "else", "for", "in", "is", "not", "and", "or"];
        let first = self.word();
        if self.kind() != Some(TokenKind::Ident) || WORDS.contains(&first) {
            return self.unfit(match first {
                "" => "nothing stands here".to_owned(),
                "[" | "{" | "..." => "it builds a list or a map".to_owned(),
                "-" | "+" => "it calculates".to_owned(),
                word => format!("`{}` stands here", short(word)),
            });
        }
        let start = self.at;
        self.at += 1;
        let mut members = Vec::new();
        while self.take(".") {
            if self.kind() != Some(TokenKind::Ident) {
                return self.unfit("a member without a name");
            }
            members.push(self.word());
            self.at += 1;
        }
        match self.word() {
            "(" => return self.unfit(format!("it calls `{}`", short(first))),
            "[" | "?[" | "?." => return self.unfit("it reads by an index"),
            _ => {}
        }
        if first == "resources" && !matches!(members[..], [_, "text" | "uri" | "found"]) {
            return Err((start, "it reads a resource as a whole".into()));
        }
        Ok(())
    }

    /// `(name=literal, …)` or nothing; a path may stand for a literal where that changes no bound.
    fn arguments(&mut self, paths: bool) -> Result<Vec<(&'a str, &'a str)>, Unfit> {
        let mut out = Vec::new();
        if !self.take("(") {
            return Ok(out);
        }
        while !self.take(")") {
            let name = self.word();
            if self.kind() != Some(TokenKind::Ident) {
                return self.unfit("an argument without a name");
            }
            self.at += 1;
            if !self.take("=") {
                return self.unfit("an argument without a value");
            }
            let value = self.word();
            if !self.literal() {
                if !paths {
                    return self.unfit("a filter whose argument is not written out");
                }
                self.path()?;
                self.cost.weight += 1;
            }
            out.push((name, value));
            if !self.take(",") && self.word() != ")" {
                return self.unfit("an argument that is calculated");
            }
        }
        Ok(out)
    }
}

/// What a filter makes of a value at most: so many times its bytes. An error says why it may be more.
fn factor(name: &str, arguments: &[(&str, &str)]) -> Result<u64, String> {
    let known = |allowed: &[&str]| arguments.iter().all(|(name, _)| allowed.contains(name));
    let argument = |wanted: &str| {
        arguments
            .iter()
            .find(|(n, _)| *n == wanted)
            .map(|(_, v)| *v)
    };
    let number = |text: &str| text.parse::<u64>().ok();
    // the quotes of a literal; an escape in one only makes it shorter
    let length = |text: &str| text.len().saturating_sub(2) as u64;
    let (times, fits) = match name {
        // the same text, a piece of it, or a number
        "trim" | "trim_start" | "trim_end" | "reverse" | "safe" | "str" | "length"
        | "wordcount" | "int" | "float" | "abs" => (1, known(&[])),
        "default" => (1, known(&["value", "boolean"])),
        "truncate" => (1, known(&["length", "end"])),
        "pluralize" => (1, known(&["singular", "plural"])),
        "round" => (1, known(&["method", "precision"])),
        // one letter becomes at most three of its size (ΐ), or at most one and a half
        "upper" | "title" | "capitalize" => (3, known(&[])),
        "lower" => (2, known(&[])),
        // `"` becomes `&quot;`, a control character `\u0000`
        "escape" | "escape_html" | "escape_xml" | "json" => (6, known(&[])),
        "newlines_to_br" => (4, known(&[])),
        // `<untrusted` becomes `&lt;untrusted`; and the tags around it
        "untrusted" => (2, known(&["label", "bytes"])),
        "indent" => {
            let width = argument("width").map_or(Some(4), number);
            let times = width.map_or(u64::MAX, |width| width.saturating_add(1));
            (times, known(&["width", "first", "blank"]))
        }
        "replace" => {
            let from = argument("from").map_or(0, length);
            let to = argument("to").map_or(u64::MAX, length);
            let escaped = arguments.iter().any(|(_, value)| value.contains('\\'));
            if from == 0 || escaped {
                return Err("`replace` puts in a text wherever it finds one".into());
            }
            (to.div_ceil(from).max(1), known(&["from", "to"]))
        }
        "split" | "join" | "sort" | "unique" | "first" | "last" | "nth" | "get" | "values"
        | "keys" | "pairs" | "group_by" => {
            return Err(format!("`{name}` works on a list"));
        }
        name => return Err(format!("the filter `{}`", short(name))),
    };
    if !fits {
        return Err(format!("`{name}` with this argument"));
    }
    if times > MAX_FACTOR {
        return Err(format!(
            "`{name}` may make {times} times as much of a value; at most {MAX_FACTOR} times is allowed"
        ));
    }
    Ok(times)
}

fn short(word: &str) -> String {
    word.chars().take(40).collect()
}
