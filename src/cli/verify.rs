//! `cuebook verify` and `cuebook reindex`: whether what is derived from git equals what git says.

use std::io::Write;
use std::process::ExitCode;

use serde::Deserialize;
use serde_json::json;

use super::report::number;
use super::serve::ConfigArgs;
use super::service::Service;
use crate::prompt::visible::visible;

/// Arguments of `cuebook verify` and of `cuebook reindex`.
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Everything that the server derives from git is made again and compared, row by row.
Exit code 0: all of it is the same. 1: something differs, and is named; cuebook reindex repairs it.")]
pub(super) struct Args {
    #[command(flatten)]
    config: ConfigArgs,
}

#[derive(Debug, Deserialize)]
struct Verified {
    ok: bool,
    tables: Vec<Table>,
    #[serde(default)]
    unseen: Vec<String>,
}

#[derive(Debug, Deserialize)]
struct Table {
    name: String,
    rows: usize,
    different: usize,
    differences: Vec<Differing>,
}

#[derive(Debug, Deserialize)]
struct Differing {
    row: String,
    expected: Option<String>,
    found: Option<String>,
}

/// The table that is not derived from git.
const AUDIT: &str = "audit";

/// What is to be done.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum What {
    /// Only looks.
    Verify,
    /// Makes everything derived again first.
    Reindex,
}

pub(super) fn run(what: What, args: &Args, out: &mut impl Write) -> anyhow::Result<ExitCode> {
    let service = Service::open(&args.config)?;
    let path = match what {
        What::Verify => "/api/v1/verify",
        What::Reindex => "/api/v1/reindex",
    };
    let verified: Verified = service.post(path, &json!({}))?;
    for table in &verified.tables {
        // the audit is no child of git: its own hashes prove it
        let source = if table.name == AUDIT {
            "the chain"
        } else {
            "git"
        };
        let rows = number(table.rows, "row");
        if table.different == 0 {
            writeln!(out, "{}: {rows}, as {source} says", table.name)?;
            continue;
        }
        writeln!(
            out,
            "{}: {rows}, {} not as {source} says",
            table.name, table.different
        )?;
        let shown = |value: &Option<String>| value.clone().unwrap_or_else(|| "nothing".into());
        for row in &table.differences {
            writeln!(
                out,
                "  {}: {source} says {}, found {}",
                row.row,
                shown(&row.expected),
                shown(&row.found)
            )?;
        }
        let more = table.different - table.differences.len();
        if more > 0 {
            writeln!(out, "  and {more} more")?;
        }
    }
    for unseen in &verified.unseen {
        writeln!(out, "not looked at: {}", visible(unseen))?;
    }
    if verified.ok {
        return Ok(ExitCode::SUCCESS);
    }
    let differs = |audit: bool| {
        let mut tables = verified.tables.iter();
        tables.any(|table| table.different > 0 && (table.name == AUDIT) == audit)
    };
    if what == What::Verify && differs(false) {
        writeln!(out, "cuebook reindex repairs what differs from git.")?;
    }
    if differs(true) {
        writeln!(
            out,
            "the audit was changed by somebody else than cuebook; nothing repairs it, a backup may have the rows"
        )?;
    }
    Ok(ExitCode::from(super::FAILED))
}
