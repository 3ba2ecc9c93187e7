//! How `cuebook check` prints problems: for people, for programs and for a forge's annotations.
//!
//! Knows nothing of libraries, files or terminals: it takes problems and writes bytes. Text that came
//! from a library is never written raw, so a prompt cannot send escape sequences to a terminal.

mod line;

use std::collections::BTreeSet;
use std::ffi::OsStr;
use std::io::{self, Write};

use serde::Serialize;

use crate::prompt::{Problem, Severity};

pub use crate::prompt::visible::visible;

/// How problems are written.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, clap::ValueEnum)]
pub enum Format {
    /// As compilers do: the place, the line, a caret, help.
    #[default]
    Text,
    /// One JSON document with the problems and their counts.
    Json,
    /// GitHub Actions workflow commands, shown on the changed lines of a pull request.
    Github,
}

/// How many problems of each kind there are.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize)]
pub struct Counts {
    /// Problems that keep a commit from being served.
    pub errors: usize,
    /// Problems that are only shown.
    pub warnings: usize,
}

impl Counts {
    /// Counts `problems` by severity.
    pub fn of(problems: &[Problem]) -> Self {
        let errors = problems
            .iter()
            .filter(|problem| problem.severity == Severity::Error)
            .count();
        Self {
            errors,
            warnings: problems.len() - errors,
        }
    }
}

/// Whether to write colours: only to a terminal, and not where `NO_COLOR` is set or `TERM` is `dumb`.
///
/// The caller reads the environment, so that this stays testable.
pub fn wants_colour(is_terminal: bool, no_color: Option<&OsStr>, term: Option<&OsStr>) -> bool {
    is_terminal && no_color.is_none_or(OsStr::is_empty) && term != Some(OsStr::new("dumb"))
}

/// Writes `problems` in `format`, ordered by path, line and column.
///
/// `colour` concerns [`Format::Text`] alone. The last line says how many there are.
pub fn print(
    problems: &[Problem],
    format: Format,
    colour: bool,
    out: &mut impl Write,
) -> io::Result<()> {
    let mut sorted: Vec<&Problem> = problems.iter().collect();
    sorted.sort_by(|a, b| (&a.path, a.line, a.column).cmp(&(&b.path, b.line, b.column)));
    match format {
        Format::Text => text(&sorted, Counts::of(problems), &Paint { on: colour }, out),
        Format::Json => json(&sorted, Counts::of(problems), out),
        Format::Github => github(&sorted, Counts::of(problems), out),
    }
}

/// `2 errors, 1 warning in 2 files`, or `no problems`.
pub fn summary(problems: &[Problem]) -> String {
    summary_of(Counts::of(problems), files(problems.iter()))
}

/// `1 prompt`, `2 prompts`.
pub(super) fn number(n: usize, word: &str) -> String {
    format!("{n} {word}{}", if n == 1 { "" } else { "s" })
}

fn summary_of(counts: Counts, files: usize) -> String {
    let found = match (counts.errors, counts.warnings) {
        (0, 0) => return "no problems".to_owned(),
        (errors, 0) => number(errors, "error"),
        (0, warnings) => number(warnings, "warning"),
        (errors, warnings) => {
            format!(
                "{}, {}",
                number(errors, "error"),
                number(warnings, "warning")
            )
        }
    };
    if files == 0 {
        found
    } else {
        format!("{found} in {}", number(files, "file"))
    }
}

/// How many files have problems; the library as a whole is none.
fn files<'a>(problems: impl Iterator<Item = &'a Problem>) -> usize {
    let paths: BTreeSet<&str> = problems.map(|problem| &*problem.path).collect();
    paths.len() - usize::from(paths.contains(""))
}

/// Puts escape sequences around a piece of text, or not.
struct Paint {
    on: bool,
}

impl Paint {
    const BLUE: &str = "1;34";
    const BOLD: &str = "1";

    fn severity(severity: Severity) -> &'static str {
        match severity {
            Severity::Error => "1;31",
            Severity::Warning => "1;33",
        }
    }

    fn with(&self, style: &str, text: &str) -> String {
        if self.on && !text.is_empty() {
            format!("\x1b[{style}m{text}\x1b[0m")
        } else {
            text.to_owned()
        }
    }
}

fn text(
    problems: &[&Problem],
    counts: Counts,
    paint: &Paint,
    out: &mut impl Write,
) -> io::Result<()> {
    for problem in problems {
        let style = Paint::severity(problem.severity);
        let kind = format!("{}[{}]", problem.severity.as_str(), problem.code);
        let message = format!(": {}", visible(&problem.message));
        writeln!(
            out,
            "{}{}",
            paint.with(style, &kind),
            paint.with(Paint::BOLD, &message)
        )?;
        place(problem, paint, out)?;
        writeln!(out)?;
    }
    let style = match counts {
        Counts {
            errors: 0,
            warnings: 0,
        } => "1;32",
        Counts { errors: 0, .. } => Paint::severity(Severity::Warning),
        Counts { .. } => Paint::severity(Severity::Error),
    };
    let summary = summary_of(counts, files(problems.iter().copied()));
    writeln!(out, "{}", paint.with(style, &summary))?;
    let fixable = problems
        .iter()
        .filter(|problem| !problem.fix.is_empty())
        .count();
    if fixable > 0 {
        writeln!(
            out,
            "{fixable} of them can be put right by `cuebook check --fix`"
        )?;
    }
    Ok(())
}

/// The arrow, the source line with its caret, and the help of one problem.
fn place(problem: &Problem, paint: &Paint, out: &mut impl Write) -> io::Result<()> {
    let number = if problem.line == 0 {
        String::new()
    } else {
        problem.line.to_string()
    };
    let margin = " ".repeat(number.len().max(1));
    let bar = paint.with(Paint::BLUE, "|");
    if !problem.path.is_empty() {
        let path = visible(&problem.path);
        let arrow = paint.with(Paint::BLUE, "-->");
        if problem.line == 0 {
            writeln!(out, "{margin}{arrow} {path}")?;
        } else {
            writeln!(
                out,
                "{margin}{arrow} {path}:{number}:{}",
                problem.column.max(1)
            )?;
        }
    }
    if let (Some(excerpt), true) = (&problem.excerpt, problem.line > 0) {
        let shown = line::Shown::of(excerpt, problem.column, problem.width);
        let caret = paint.with(Paint::severity(problem.severity), &"^".repeat(shown.carets));
        writeln!(out, "{margin} {bar}")?;
        writeln!(
            out,
            "{} {bar} {}",
            paint.with(Paint::BLUE, &number),
            shown.text
        )?;
        writeln!(out, "{margin} {bar} {}{caret}", " ".repeat(shown.indent))?;
    }
    if let Some(hint) = &problem.hint {
        let equals = paint.with(Paint::BLUE, "=");
        let mut lines = hint.lines();
        let first = visible(lines.next().unwrap_or_default());
        writeln!(
            out,
            "{margin} {equals} {}: {first}",
            paint.with(Paint::BOLD, "help")
        )?;
        for more in lines {
            writeln!(out, "{margin}         {}", visible(more))?;
        }
    }
    Ok(())
}

/// One problem as the JSON document shows it; what is not known is null.
#[derive(Serialize)]
struct Entry<'a> {
    severity: &'static str,
    code: &'a str,
    path: &'a str,
    line: Option<u32>,
    column: Option<u32>,
    width: u32,
    message: &'a str,
    hint: Option<&'a str>,
    excerpt: Option<&'a str>,
    /// Whether `cuebook check --fix` puts it right.
    fixable: bool,
}

#[derive(Serialize)]
struct Document<'a> {
    problems: Vec<Entry<'a>>,
    #[serde(flatten)]
    counts: Counts,
}

fn json(problems: &[&Problem], counts: Counts, out: &mut impl Write) -> io::Result<()> {
    let known = |n: u32| (n > 0).then_some(n);
    let problems = problems.iter().map(|problem| Entry {
        severity: problem.severity.as_str(),
        code: problem.code,
        path: &problem.path,
        line: known(problem.line),
        column: known(problem.column),
        width: problem.width,
        message: &problem.message,
        hint: problem.hint.as_deref(),
        excerpt: problem.excerpt.as_deref(),
        fixable: !problem.fix.is_empty(),
    });
    serde_json::to_writer_pretty(
        &mut *out,
        &Document {
            problems: problems.collect(),
            counts,
        },
    )?;
    writeln!(out)
}

fn github(problems: &[&Problem], counts: Counts, out: &mut impl Write) -> io::Result<()> {
    for problem in problems {
        write!(out, "::{} ", problem.severity.as_str())?;
        if !problem.path.is_empty() {
            write!(out, "file={},", property(&problem.path))?;
        }
        if problem.line > 0 {
            write!(out, "line={},", problem.line)?;
        }
        if problem.line > 0 && problem.column > 0 {
            write!(out, "col={},", problem.column)?;
        }
        write!(
            out,
            "title={}::{}",
            property(problem.code),
            data(&problem.message)
        )?;
        if let Some(hint) = &problem.hint {
            write!(out, "%0Ahelp: {}", data(hint))?;
        }
        writeln!(out)?;
    }
    writeln!(
        out,
        "{}",
        summary_of(counts, files(problems.iter().copied()))
    )
}

/// Escapes the message of a workflow command.
fn data(text: &str) -> String {
    let lines: Vec<String> = text
        .lines()
        .map(|line| visible(line).replace('%', "%25"))
        .collect();
    lines.join("%0A")
}

/// Escapes a property of a workflow command, where `:` and `,` are syntax too.
fn property(text: &str) -> String {
    data(text).replace(':', "%3A").replace(',', "%2C")
}

#[cfg(test)]
mod tests;
