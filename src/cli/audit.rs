//! `cuebook audit`: who did what, from where, when, which commit.

use std::io::Write;
use std::process::ExitCode;

use serde::Deserialize;

use super::serve::ConfigArgs;
use super::service::Service;
use crate::prompt::visible::visible;

/// Arguments of `cuebook audit`.
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Rows are only appended, and each one's hash covers the one before: cuebook verify finds one that was changed or removed.
Keep the newest hash elsewhere now and then: whoever may write the file can compute a whole chain anew.")]
pub(super) struct Args {
    /// Print every row, oldest first, as a JSON object a line
    #[arg(long)]
    export: bool,
    /// How many of the newest rows
    #[arg(long, default_value_t = 50, value_parser = clap::value_parser!(u32).range(1..=1000))]
    limit: u32,
    #[command(flatten)]
    config: ConfigArgs,
}

#[derive(Deserialize)]
struct Answer {
    rows: Vec<Row>,
}

#[derive(Deserialize)]
struct Row {
    seq: i64,
    time: String,
    actor: String,
    origin: Option<String>,
    action: String,
    subject: Option<String>,
    old_commit: Option<String>,
    new_commit: Option<String>,
    detail: Option<String>,
    hash: String,
}

pub(super) fn run(args: &Args, out: &mut impl Write) -> anyhow::Result<ExitCode> {
    let service = Service::open(&args.config)?;
    if args.export {
        service.copy("/api/v1/audit/export", &[], out)?;
        return Ok(ExitCode::SUCCESS);
    }
    let limit = args.limit.to_string();
    let answer: Answer = service.get("/api/v1/audit", &[("limit", &limit)])?;
    for row in &answer.rows {
        write!(
            out,
            "{}  {}  {} {}",
            row.seq,
            row.time,
            visible(&row.actor),
            row.action
        )?;
        if let Some(subject) = &row.subject {
            write!(out, " {}", visible(subject))?;
        }
        let short = |id: &str| id.get(..10).unwrap_or(id).to_owned();
        match (&row.old_commit, &row.new_commit) {
            (Some(old), Some(new)) => write!(out, " {}..{}", short(old), short(new))?,
            (None, Some(new)) => write!(out, " {}", short(new))?,
            (Some(old), None) => write!(out, " {} removed", short(old))?,
            (None, None) => {}
        }
        if let Some(origin) = &row.origin {
            // an address, or how it came
            let from = match origin.parse::<std::net::IpAddr>() {
                Ok(_) => "from ",
                Err(_) => "",
            };
            write!(out, "  {from}{}", visible(origin))?;
        }
        if let Some(detail) = &row.detail {
            write!(out, "  ({})", visible(detail))?;
        }
        writeln!(out)?;
    }
    if let Some(newest) = answer.rows.first() {
        writeln!(out, "\nnewest: {} {}", newest.seq, newest.hash)?;
    }
    Ok(ExitCode::SUCCESS)
}
