//! `cuebook log`, `diff`, `revert` and `promote`: the versions of a prompt, and moving between them.

use std::io::{IsTerminal as _, Write};
use std::process::ExitCode;
use std::time::Duration;

use serde::Deserialize;
use serde::de::DeserializeOwned;
use serde_json::{Value, json};

use super::serve::ConfigArgs;
use super::service::{Refused, Service};
use crate::prompt::PromptName;

/// Time between two attempts while versions are being numbered.
const AGAIN: Duration = Duration::from_millis(200);

/// Arguments of `cuebook log`.
#[derive(Debug, clap::Args)]
pub(super) struct LogArgs {
    /// The prompt's name
    name: String,
    #[command(flatten)]
    config: ConfigArgs,
}

/// Arguments of `cuebook diff`.
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Shows what differs in the prompt's file and the partials it includes, then what its examples render to, both with the
resources of today. Example: cuebook diff incident-triage v3 v7")]
pub(super) struct DiffArgs {
    /// The prompt's name
    name: String,
    /// A version, e.g. v3, or a label that is on the prompt
    from: String,
    /// Another
    to: String,
    #[command(flatten)]
    config: ConfigArgs,
}

/// Arguments of `cuebook revert`.
#[derive(Debug, clap::Args)]
#[command(after_help = "\
A new commit gives the prompt's file the bytes of that version; partials, which other prompts include too, stay as they
are. It passes the same gate as a push. Example: cuebook revert incident-triage v3 --reason 'v4 lost the rubric'")]
pub(super) struct RevertArgs {
    /// The prompt's name
    name: String,
    /// A version, e.g. v3, or a label that is on the prompt
    version: String,
    /// Why; it stands in the commit and in the log of the prompt
    #[arg(long, value_name = "TEXT")]
    reason: String,
    #[command(flatten)]
    config: ConfigArgs,
}

/// Arguments of `cuebook promote`.
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Moves a label of labels.toml in a new commit, which passes the same gate as a push. Promoting an older version is how to
roll back. Example: cuebook promote incident-triage v7 --to production --reason 'a week on staging'")]
pub(super) struct PromoteArgs {
    /// The prompt's name
    name: String,
    /// A version, e.g. v7, or another label that is on the prompt
    version: String,
    /// The label
    #[arg(long, value_name = "LABEL")]
    to: String,
    /// Why; it stands in the commit and in the log of the prompt
    #[arg(long, value_name = "TEXT")]
    reason: String,
    #[command(flatten)]
    config: ConfigArgs,
}

#[derive(Debug, Deserialize)]
struct Of {
    commit: String,
    time: i64,
    author: String,
    subject: String,
}

#[derive(Debug, Deserialize)]
struct Entry {
    version: u64,
    labels: Vec<String>,
    #[serde(flatten)]
    of: Of,
}

#[derive(Debug, Deserialize)]
struct Move {
    label: String,
    version: Option<u64>,
    #[serde(flatten)]
    of: Of,
}

#[derive(Debug, Deserialize)]
struct Log {
    served: Option<u64>,
    versions: Vec<Entry>,
    moves: Vec<Move>,
}

#[derive(Debug, Deserialize)]
struct Compared {
    source: String,
    rendered: Vec<Example>,
}

#[derive(Debug, Deserialize)]
struct Example {
    example: String,
    diff: String,
}

#[derive(Debug, Deserialize)]
struct Done {
    commit: String,
    lines: Vec<String>,
}

/// Asks, and waits while versions are being numbered, which a terminal is told of.
fn asked<T>(ask: impl Fn() -> anyhow::Result<T>) -> anyhow::Result<T> {
    let mut err = std::io::stderr();
    let shows = err.is_terminal();
    loop {
        let error = match ask() {
            Ok(answer) => {
                if shows {
                    let _ = write!(err, "\r\x1b[K");
                }
                return Ok(answer);
            }
            Err(error) => error,
        };
        match error.downcast_ref::<Refused>() {
            Some(refused) if refused.status.as_u16() == 503 => {
                if shows {
                    let _ = write!(err, "\r\x1b[K{refused}");
                }
                std::thread::sleep(AGAIN);
            }
            _ => return Err(error),
        }
    }
}

fn path(name: &str, what: &str) -> anyhow::Result<String> {
    // a name needs no escaping in a URL
    let name = PromptName::parse(name)?;
    Ok(format!("/api/v1/prompts/{name}/{what}"))
}

/// A day, UTC.
fn day(seconds: i64) -> String {
    let days = seconds.div_euclid(86_400);
    // days since 0000-03-01, in eras of 400 years
    let shifted = days + 719_468;
    let era = shifted.div_euclid(146_097);
    let of_era = shifted.rem_euclid(146_097);
    let year_of_era = (of_era - of_era / 1460 + of_era / 36_524 - of_era / 146_096) / 365;
    let day_of_year = of_era - (365 * year_of_era + year_of_era / 4 - year_of_era / 100);
    let month_from_march = (5 * day_of_year + 2) / 153;
    let day = day_of_year - (153 * month_from_march + 2) / 5 + 1;
    let month = if month_from_march < 10 {
        month_from_march + 3
    } else {
        month_from_march - 9
    };
    let year = year_of_era + era * 400 + i64::from(month <= 2);
    format!("{year:04}-{month:02}-{day:02}")
}

/// A text of a commit as one line without control characters.
fn plain(text: &str) -> String {
    crate::prompt::visible::visible(text).into_owned()
}

fn row(out: &mut impl Write, first: &str, of: &Of, rest: &str) -> std::io::Result<()> {
    writeln!(
        out,
        "{first:<5} {} {} {}: {}{rest}",
        of.commit.get(..8).unwrap_or(&of.commit),
        day(of.time),
        plain(&of.author),
        plain(&of.subject)
    )
}

pub(super) fn log(args: &LogArgs, out: &mut impl Write) -> anyhow::Result<ExitCode> {
    let service = Service::open(&args.config)?;
    let path = path(&args.name, "versions")?;
    let log: Log = asked(|| service.get(&path, &[]))?;
    for version in &log.versions {
        let mut marks = version.labels.clone();
        if log.served == Some(version.version) {
            marks.push("served".into());
        }
        let marks = if marks.is_empty() {
            String::new()
        } else {
            format!("  [{}]", marks.join(", "))
        };
        row(out, &format!("v{}", version.version), &version.of, &marks)?;
    }
    if !log.moves.is_empty() {
        writeln!(out, "\nlabels")?;
    }
    for moved in &log.moves {
        let rest = match moved.version {
            Some(number) => format!("  [{} → v{number}]", moved.label),
            None => format!("  [{} taken off]", moved.label),
        };
        row(out, "", &moved.of, &rest)?;
    }
    Ok(ExitCode::SUCCESS)
}

pub(super) fn diff(args: &DiffArgs, out: &mut impl Write) -> anyhow::Result<ExitCode> {
    let service = Service::open(&args.config)?;
    let path = path(&args.name, "diff")?;
    let query = [("from", args.from.as_str()), ("to", args.to.as_str())];
    let compared: Compared = asked(|| service.get(&path, &query))?;
    if compared.source.is_empty() {
        writeln!(out, "the files are the same")?;
    }
    out.write_all(compared.source.as_bytes())?;
    for Example { example, diff } in &compared.rendered {
        writeln!(out, "\nexample: {}", plain(example))?;
        if diff.is_empty() {
            writeln!(out, "renders the same")?;
        }
        out.write_all(diff.as_bytes())?;
    }
    Ok(ExitCode::SUCCESS)
}

fn change(
    config: &ConfigArgs,
    path: &str,
    body: &Value,
    out: &mut impl Write,
) -> anyhow::Result<ExitCode> {
    let service = Service::open(config)?;
    let done: Done = asked(|| post(&service, path, body))?;
    writeln!(out, "published {}", done.commit)?;
    for line in &done.lines {
        writeln!(out, "{line}")?;
    }
    Ok(ExitCode::SUCCESS)
}

fn post<T: DeserializeOwned>(service: &Service, path: &str, body: &Value) -> anyhow::Result<T> {
    service.post(path, body)
}

pub(super) fn revert(args: &RevertArgs, out: &mut impl Write) -> anyhow::Result<ExitCode> {
    let body = json!({ "version": args.version, "reason": args.reason });
    change(&args.config, &path(&args.name, "revert")?, &body, out)
}

pub(super) fn promote(args: &PromoteArgs, out: &mut impl Write) -> anyhow::Result<ExitCode> {
    let body = json!({ "version": args.version, "label": args.to, "reason": args.reason });
    change(&args.config, &path(&args.name, "label")?, &body, out)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn days() {
        assert_eq!(day(0), "1970-01-01");
        assert_eq!(day(951_782_400), "2000-02-29");
        assert_eq!(day(1_796_058_653), "2026-11-30");
        assert_eq!(day(-1), "1969-12-31");
        assert_eq!(day(4_107_542_400), "2100-03-01");
    }
}
