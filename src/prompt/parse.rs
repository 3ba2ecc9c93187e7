//! A prompt file and a partial, each read by itself: sections, declarations, markers, constructs.

use std::ops::Range;
use std::sync::Arc;

use sha2::{Digest, Sha256};
use unicode_normalization::UnicodeNormalization as _;

use super::foreign;
use super::front_matter::{self, FrontMatter};
use super::limits::Limits;
use super::lint;
use super::markers::{self, Mark, Marker};
use super::message::Role;
use super::name::PromptName;
use super::problem::{Problem, Severity, nearest};
use super::scan::{self, Construct, Fault, Kind, Nesting};
use super::source::Source;

/// Findings about the constructs of one file; fixing them shows the rest.
const MAX_FINDINGS: usize = 100;

/// A piece of the body that gives one message.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Part {
    /// A template of its own.
    Text {
        /// Who speaks.
        role: Role,
        /// Bytes of the file.
        span: Range<usize>,
    },
    /// The bound resource of this index.
    Resource {
        /// Who speaks.
        role: Role,
        /// Index into the prompt's bindings.
        binding: usize,
    },
}

/// A prompt file read by itself.
#[derive(Debug)]
pub struct PromptFile {
    /// The text.
    pub source: Source,
    /// Its name.
    pub name: PromptName,
    /// Its folder under `prompts/`.
    pub folder: String,
    /// SHA-256 of the stored bytes, hex.
    pub sha256: Arc<str>,
    /// Declarations.
    pub front: FrontMatter,
    /// Everything behind the front matter.
    pub body: Range<usize>,
    /// The body's template constructs.
    pub constructs: Vec<Construct>,
    /// Its parts in order.
    pub parts: Vec<Part>,
    /// Whether declarations and body can be given to the engine.
    pub sound: bool,
}

/// A partial read by itself.
#[derive(Debug)]
pub struct Partial {
    /// The name used in `include`: its path under `partials/`.
    pub name: Arc<str>,
    /// The text.
    pub source: Source,
    /// SHA-256 of the stored bytes, hex.
    pub sha256: Arc<str>,
    /// Its template constructs.
    pub constructs: Vec<Construct>,
    /// Whether it can be given to the engine.
    pub sound: bool,
}

/// Lower-case hex of the SHA-256 of bytes.
pub fn sha256_hex(bytes: &[u8]) -> Arc<str> {
    hex(&Sha256::digest(bytes))
}

/// Lower-case hex of bytes.
pub fn hex(bytes: &[u8]) -> Arc<str> {
    use std::fmt::Write as _;
    let mut out = String::with_capacity(bytes.len() * 2);
    for byte in bytes {
        let _ = write!(out, "{byte:02x}");
    }
    out.into()
}

/// Reads a prompt file; `None` when it has no usable name or is no text.
pub fn prompt_file(
    path: &Arc<str>,
    bytes: &[u8],
    limits: &Limits,
    problems: &mut Vec<Problem>,
) -> Option<PromptFile> {
    let (name, folder) = match front_matter::name_and_folder(path) {
        Ok(found) => found,
        Err(problem) => {
            problems.push(*problem);
            return None;
        }
    };
    let source = decode(path, bytes, limits, problems)?;
    let sections = match front_matter::split(&source) {
        Ok(sections) => sections,
        Err(problem) => {
            problems.push(*problem);
            return None;
        }
    };
    if let Some(problem) = front_matter::misplaced(&source, &sections) {
        problems.push(problem);
    }
    // a front matter that cannot be read declares nothing: what follows from that is no finding
    let before = count_errors(problems);
    let front = front_matter::read(&source, &sections.yaml, limits, problems);
    let body = sections.body;
    let marks = markers::find(&source, body.clone(), problems);
    let constructs = scan::scan_from(&source.text, body.clone());
    let declared = |name: &str| {
        front.unreadable || name == "resources" || front.arguments.iter().any(|a| &*a.name == name)
    };
    structure(&source, limits, &constructs, &marks, &declared, problems);
    let parts = parts(&source, &body, &marks, &front, problems);
    let sound = count_errors(problems) == before;
    Some(PromptFile {
        name,
        folder,
        sha256: sha256_hex(bytes),
        front,
        body,
        constructs,
        parts,
        sound,
        source,
    })
}

/// The name by which prompts call a file of a folder: file systems differ in Unicode forms, names are NFC.
pub fn file_name(path: &str, folder: &str) -> String {
    path.strip_prefix(folder).unwrap_or(path).nfc().collect()
}

/// Reads a partial; `None` when it is no text.
pub fn partial(
    path: &Arc<str>,
    bytes: &[u8],
    limits: &Limits,
    problems: &mut Vec<Problem>,
) -> Option<Partial> {
    let name = file_name(path, "partials/");
    let source = decode(path, bytes, limits, problems)?;
    let before = count_errors(problems);
    let whole = 0..source.text.len();
    for marker in markers::find(&source, whole.clone(), problems) {
        problems.push(source.problem(
            Severity::Error,
            "marker-in-partial",
            marker.line,
            "a marker cannot stand in a partial: it would split the text of whatever includes it".into(),
            Some("put the marker into the prompt".into()),
        ));
    }
    lint::executed(&source, &whole, problems);
    let constructs = scan::scan_from(&source.text, whole);
    // a partial does not know what its prompts declare: a name is taken for an argument unless it is a
    // context of GitHub Actions or a word that ends a Go action
    let declared = |name: &str| {
        !matches!(
            name,
            "github"
                | "env"
                | "secrets"
                | "vars"
                | "matrix"
                | "steps"
                | "needs"
                | "runner"
                | "job"
                | "strategy"
                | "end"
                | "else"
        )
    };
    structure(&source, limits, &constructs, &[], &declared, problems);
    let sound = count_errors(problems) == before;
    Some(Partial {
        name: name.into(),
        sha256: sha256_hex(bytes),
        constructs,
        sound,
        source,
    })
}

fn count_errors(problems: &[Problem]) -> usize {
    problems.iter().filter(|p| p.is_error()).count()
}

/// The problem with a file whose content is somewhere else.
pub fn lfs_pointer(path: &Arc<str>, bytes: &[u8]) -> Option<Problem> {
    bytes
        .starts_with(b"version https://git-lfs.github.com/spec/")
        .then(|| {
            Problem::whole(
                Severity::Error,
                "lfs-pointer",
                path,
                "this is a Git LFS pointer, not the content itself".into(),
                Some("store it in git directly: git lfs untrack, then add it again".into()),
            )
        })
}

fn decode(
    path: &Arc<str>,
    bytes: &[u8],
    limits: &Limits,
    problems: &mut Vec<Problem>,
) -> Option<Source> {
    if let Some(problem) = lfs_pointer(path, bytes) {
        problems.push(problem);
        return None;
    }
    if bytes.len() > limits.prompt_file_bytes {
        problems.push(Problem::whole(
            Severity::Error,
            "file-size",
            path,
            format!(
                "the file is {} bytes; at most {} are read (prompt_file_bytes)",
                bytes.len(),
                limits.prompt_file_bytes
            ),
            Some("move parts of it into partials or resources".into()),
        ));
        return None;
    }
    match Source::decode(path, bytes) {
        Ok(source) => {
            if let Some(at) = source.text.find('\0') {
                let message = "the file holds a NUL character".into();
                problems.push(source.problem(Severity::Error, "nul", at..at + 1, message, None));
                return None;
            }
            Some(source)
        }
        Err(problem) => {
            problems.push(*problem);
            None
        }
    }
}

/// What is wrong with the constructs before the engine sees them.
fn structure(
    source: &Source,
    limits: &Limits,
    constructs: &[Construct],
    marks: &[Marker],
    declared: &dyn Fn(&str) -> bool,
    problems: &mut Vec<Problem>,
) {
    let text = &source.text;
    let mut open: Vec<&Construct> = Vec::new();
    let mut marks = marks.iter().peekable();
    let mut elif = 0usize;
    let mut tight = 0usize;
    let mut seen = problems.len();
    let mut errors = 0;
    for construct in constructs {
        // Only errors may end this: what is looked for here keeps the engine from what it does not survive, and a file
        // with an error is never given to it.
        errors += count_errors(&problems[seen..]);
        seen = problems.len();
        if errors >= MAX_FINDINGS {
            return;
        }
        while let Some(mark) = marks.next_if(|m| m.line.start < construct.span.start) {
            crossing(source, mark, open.last().copied(), problems);
        }
        while let Some(mark) = marks.next_if(|m| m.line.start < construct.span.end) {
            let what = match construct.kind {
                Kind::Expression => "an expression",
                Kind::Tag => "a tag",
                Kind::Comment => "a template comment",
                Kind::Raw => "a raw block",
            };
            problems.push(source.problem(
                Severity::Error,
                "marker-inside",
                mark.line.clone(),
                format!("this marker stands inside {what}"),
                Some("close it before the marker; to keep the line as text put it into a code fence".into()),
            ));
        }
        if let Some(what) = foreign::recognise(source, construct, declared) {
            problems.push(foreign::problem(source, construct, what));
            continue;
        }
        if let Some((at, fault)) = construct.fault {
            problems.push(unreadable(source, construct, at, fault));
            continue;
        }
        if construct.kind == Kind::Comment
            && tight < MAX_FINDINGS
            && !text[construct.span.start + 2..].starts_with([' ', '-', '\n', '\t', '#'])
        {
            tight += 1;
            problems.push(source.problem(
                Severity::Warning,
                "tight-comment",
                construct.span.clone(),
                "this is a template comment and is never shown".into(),
                Some("put a blank after `{#` if it is one, or wrap it in {% raw %}".into()),
            ));
        }
        if construct.kind == Kind::Tag {
            elif += usize::from(construct.tag_word(text) == "elif");
            if elif == limits.elif_count + 1 {
                let is_elif = |c: &&Construct| c.kind == Kind::Tag && c.tag_word(text) == "elif";
                problems.push(source.problem(
                    Severity::Error,
                    "elif-count",
                    construct.span.clone(),
                    format!(
                        "{} elif arms in one file; at most {} are read (elif_count)",
                        constructs.iter().filter(is_elif).count(),
                        limits.elif_count
                    ),
                    Some("move the texts into resources and bind the one that is needed".into()),
                ));
            }
            include_target(source, construct, problems);
        }
        match scan::nesting(text, construct) {
            Nesting::Opens => open.push(construct),
            Nesting::Closes => {
                open.pop();
            }
            Nesting::Flat => {}
        }
        reserved_names(source, construct, problems);
    }
    for mark in marks {
        crossing(source, mark, open.last().copied(), problems);
    }
}

fn crossing(source: &Source, mark: &Marker, open: Option<&Construct>, problems: &mut Vec<Problem>) {
    let Some(open) = open else { return };
    let (line, _) = source.position(open.span.start);
    let shown: String = source.text[open.span.clone()].chars().take(40).collect();
    problems.push(source.problem(
        Severity::Error,
        "marker-crossed",
        mark.line.clone(),
        format!("`{shown}` of line {line} is still open at this marker; each part is a template of its own"),
        Some("close it before the marker and open it again after it".into()),
    ));
}

fn unreadable(source: &Source, construct: &Construct, at: usize, fault: Fault) -> Problem {
    let (span, message, hint) = match fault {
        Fault::Open => (
            construct.span.clone(),
            format!("`{}` is never closed", &source.text[construct.span.clone()]),
            "close it, or wrap it in {% raw %} … {% endraw %} to keep it as text",
        ),
        Fault::OpenText => (
            at..at + 1,
            "this quote is never closed".into(),
            "add the closing quote",
        ),
        Fault::Character(c) => (
            at..at + c.len_utf8(),
            format!("`{c}` cannot stand in a template expression"),
            "names are ASCII letters, digits and `_`; other text goes in quotes, or wrap it in {% raw %}",
        ),
    };
    source.problem(
        Severity::Error,
        "template-syntax",
        span,
        message,
        Some(hint.into()),
    )
}

fn include_target(source: &Source, construct: &Construct, problems: &mut Vec<Problem>) {
    let text = &source.text;
    if !matches!(construct.tag_word(text), "include" | "extends") {
        return;
    }
    let Some(token) = construct.tokens.get(1) else {
        return;
    };
    let word = &text[token.span.clone()];
    if token.kind != scan::TokenKind::Text {
        problems.push(
            source.problem(
                Severity::Error,
                "include-dynamic",
                token.span.clone(),
                "what is included must be written out in quotes".into(),
                Some(
                    "{% include \"severity-rubric.md\" %}; choose between partials with {% if %}"
                        .into(),
                ),
            ),
        );
        return;
    }
    let name = &word[1..word.len() - 1];
    if !is_partial_name(name) {
        problems.push(source.problem(
            Severity::Error,
            "include-name",
            token.span.clone(),
            format!(
                "`{}` is not the name of a partial",
                name.chars().take(80).collect::<String>()
            ),
            Some("name a file under partials/, like \"severity-rubric.md\"".into()),
        ));
    }
}

/// Whether a text can name a partial: relative, `/` separated, no `.` or `..` segments, ending in `.md`.
pub fn is_partial_name(name: &str) -> bool {
    name.len() <= 200
        && name
            .strip_suffix(".md")
            .is_some_and(|stem| !stem.is_empty())
        && name.split('/').all(|segment| {
            !segment.is_empty()
                && !segment.starts_with('.')
                && segment
                    .chars()
                    .all(|c| c.is_alphanumeric() || matches!(c, '-' | '_' | '.' | ' '))
        })
}

/// `__tera_context` dumps everything; names with two underscores in front belong to the engine and to us.
fn reserved_names(source: &Source, construct: &Construct, problems: &mut Vec<Problem>) {
    for token in &construct.tokens {
        let word = &source.text[token.span.clone()];
        if token.kind == scan::TokenKind::Ident
            && word.starts_with("__")
            && problems.len() < MAX_FINDINGS
        {
            problems.push(source.problem(
                Severity::Error,
                "reserved-name",
                token.span.clone(),
                format!("`{word}` is reserved: names that begin with `__` belong to the engine"),
                None,
            ));
        }
    }
}

/// Cuts the body at its markers. The marker lines and the blank lines around them belong to no part.
fn parts(
    source: &Source,
    body: &Range<usize>,
    marks: &[Marker],
    front: &FrontMatter,
    problems: &mut Vec<Problem>,
) -> Vec<Part> {
    let text = &source.text;
    let mut out = Vec::new();
    let mut placed = vec![false; front.bindings.len()];
    let mut role = Role::User;
    let mut start = body.start;
    let mut after_marker = false;
    let text_part =
        |out: &mut Vec<Part>, role, mut span: Range<usize>, after: bool, before: bool| {
            if after {
                span.start += blank_lines_ahead(&text[span.clone()]);
            }
            if before {
                span.end -= blank_lines_behind(&text[span.clone()]);
            }
            if !text[span.clone()].trim().is_empty() {
                out.push(Part::Text { role, span });
            }
        };
    for mark in marks {
        text_part(&mut out, role, start..mark.line.start, after_marker, true);
        match &mark.mark {
            Mark::Role(r) => role = *r,
            Mark::Resource(name) => {
                if let Some(binding) = front.bindings.iter().position(|b| *b.name == **name) {
                    placed[binding] = true;
                    out.push(Part::Resource { role, binding });
                } else if !front.unreadable {
                    let near = nearest(name, front.bindings.iter().map(|b| &*b.name));
                    let hint = near.map_or_else(
                        || "declare it under `resources:` in the front matter".to_owned(),
                        |near| format!("did you mean `{near}`?"),
                    );
                    problems.push(source.problem(
                        Severity::Error,
                        "unknown-binding",
                        mark.word.clone(),
                        format!(
                            "no resource `{}` is declared",
                            name.chars().take(40).collect::<String>()
                        ),
                        Some(hint),
                    ));
                }
            }
        }
        start = (mark.line.end + 1).min(body.end);
        after_marker = true;
    }
    text_part(&mut out, role, start..body.end, after_marker, false);
    // a declared resource with no marker follows the first text
    let mut at = out
        .iter()
        .position(|p| matches!(p, Part::Text { .. }))
        .map_or(out.len(), |i| i + 1);
    for (binding, placed) in placed.iter().enumerate() {
        if !placed {
            let role = match at.checked_sub(1).and_then(|i| out.get(i)) {
                Some(Part::Text { role, .. } | Part::Resource { role, .. }) => *role,
                None => Role::User,
            };
            out.insert(at, Part::Resource { role, binding });
            at += 1;
        }
    }
    out
}

fn blank_lines_ahead(text: &str) -> usize {
    text.split_inclusive('\n')
        .take_while(|l| l.trim().is_empty())
        .map(str::len)
        .sum()
}

fn blank_lines_behind(text: &str) -> usize {
    text.split_inclusive('\n')
        .rev()
        .take_while(|l| l.trim().is_empty())
        .map(str::len)
        .sum()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(text: &str) -> (Vec<String>, Vec<String>) {
        let mut problems = Vec::new();
        let file = prompt_file(
            &"prompts/sre/x.md".into(),
            text.as_bytes(),
            &Limits::default(),
            &mut problems,
        );
        let parts = file.map_or_else(Vec::new, |file| {
            file.parts
                .iter()
                .map(|part| match part {
                    Part::Text { role, span } => {
                        format!("{} {:?}", role.as_str(), &file.source.text[span.clone()])
                    }
                    Part::Resource { role, binding } => {
                        format!("{} ={}", role.as_str(), file.front.bindings[*binding].name)
                    }
                })
                .collect()
        });
        (
            parts,
            problems
                .iter()
                .map(|p| format!("{}:{} {}", p.line, p.column, p.code))
                .collect(),
        )
    }

    #[test]
    fn parts_are_cut_at_markers() {
        let text = "---\nresources: [{name: r, uri: \"x://y\"}, {name: s, uri: \"x://z\"}]\n---\nA\n\n<!-- resource: r -->\n\n<!-- role: assistant -->\n\n\nB\n  \nC\n";
        assert_eq!(
            check(text).0,
            [
                "user \"A\\n\"",
                "user =s",
                "user =r",
                "assistant \"B\\n  \\nC\\n\""
            ]
        );
        assert_eq!(check("A").0, ["user \"A\""]);
        assert_eq!(check("---\n---").0, Vec::<String>::new());
        assert_eq!(
            check("<!-- role: system -->\nS\n<!-- role: user -->\nU").0,
            ["system \"S\\n\"", "user \"U\""]
        );
    }

    #[test]
    fn what_is_wrong_with_a_body() {
        let cases = [
            (
                "{% if a %}\n<!-- role: user -->\n{% endif %}",
                "2:1 marker-crossed",
            ),
            (
                "{% raw %}\n<!-- role: user -->\n{% endraw %}",
                "2:1 marker-inside",
            ),
            ("{#\n<!-- role: user -->\n#}", "2:1 marker-inside"),
            ("<!-- resource: nope -->", "1:16 unknown-binding"),
            ("{% include x %}", "1:12 include-dynamic"),
            ("{% include \"/etc/passwd\" %}", "1:12 include-name"),
            ("{% include \"../a.md\" %}", "1:12 include-name"),
            ("{{ __tera_context }}", "1:4 reserved-name"),
            ("{% if 'a %}", "1:7 template-syntax"),
            ("a\0", "1:2 nul"),
            ("{#x#}", "1:1 tight-comment"),
        ];
        for (text, expected) in cases {
            assert_eq!(check(text).1, [expected], "{text}");
        }
    }

    #[test]
    fn sizes_are_named_with_both_numbers() {
        let limits = Limits {
            prompt_file_bytes: 10,
            ..Limits::default()
        };
        let mut problems = Vec::new();
        assert!(
            prompt_file(
                &"prompts/x.md".into(),
                b"01234567890",
                &limits,
                &mut problems
            )
            .is_none()
        );
        assert_eq!(
            problems[0].message,
            "the file is 11 bytes; at most 10 are read (prompt_file_bytes)"
        );
    }
}
