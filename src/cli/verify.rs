//! `cuebook verify` and `cuebook reindex`: whether what is derived from git equals what git says.

use std::io::Write;
use std::process::ExitCode;

use serde::Deserialize;
use serde_json::json;

use super::report::number;
use super::serve::ConfigArgs;
use super::service::Service;

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
        let rows = number(table.rows, "row");
        if table.different == 0 {
            writeln!(out, "{}: {rows}, as git says", table.name)?;
            continue;
        }
        writeln!(
            out,
            "{}: {rows}, {} not as git says",
            table.name, table.different
        )?;
        let shown = |value: &Option<String>| value.clone().unwrap_or_else(|| "nothing".into());
        for row in &table.differences {
            writeln!(
                out,
                "  {}: git says {}, found {}",
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
    if verified.ok {
        return Ok(ExitCode::SUCCESS);
    }
    if what == What::Verify {
        writeln!(out, "cuebook reindex repairs it.")?;
    }
    Ok(ExitCode::from(super::FAILED))
}
