//! `cuebook search`: prompts and resources by words.

use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::sync::Arc;

use anyhow::Context as _;

use super::serve::ConfigArgs;
use super::service::Service;
use crate::catalog::{Catalog, Revision};
use crate::prompt::visible::visible;
use crate::registry::source::{Library, WorkTree};
use crate::registry::{self, Registry, Settings};
use crate::search::{Ask, Cursor, Match, Page, scan};

/// Hits shown at most, whatever is asked for.
const MAX_LIMIT: u64 = 200;

/// Arguments of `cuebook search`.
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Every word must be found: in a name, title, tag, description, argument or text, in any part of it.
folder:sre, tag:incident, arg:service and label:production narrow it.
Exit code 0: something was found. 1: nothing was.

Examples:
  cuebook search database outage
  cuebook search 결제 tag:incident
  cuebook search -- -x                      (behind -- nothing is an option)
  cuebook search --library . rollback       (a clone, its uncommitted edits included)")]
pub(super) struct Args {
    /// What to look for
    #[arg(required = true)]
    words: Vec<String>,
    /// A work tree, a clone or a bare repository, instead of a data directory
    #[arg(long, value_name = "DIR")]
    library: Option<PathBuf>,
    /// How many at most
    #[arg(long, value_name = "N", default_value_t = 20, value_parser = clap::value_parser!(u64).range(1..=MAX_LIMIT))]
    limit: u64,
    /// Go on where an answer in JSON ended: its `next_cursor`
    #[arg(long, value_name = "CURSOR")]
    cursor: Option<String>,
    /// How hits are printed
    #[arg(long, value_enum, default_value_t)]
    format: Format,
    #[command(flatten)]
    config: ConfigArgs,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, clap::ValueEnum)]
enum Format {
    /// Two lines or so for each.
    #[default]
    Text,
    /// A JSON document, as the API answers.
    Json,
}

pub(super) fn run(args: &Args, out: &mut impl Write) -> anyhow::Result<ExitCode> {
    let query = args.words.join(" ");
    let page = if let Some(library) = &args.library {
        let after = args.cursor.as_deref().map(|cursor| {
            Cursor::decode(cursor).context("--cursor must be a `next_cursor` of an earlier answer")
        });
        let ask = Ask {
            after: after.transpose()?,
            ..Ask::new(query, usize::try_from(args.limit)?)
        };
        Page::from(scan(&catalog(library)?, &ask))
    } else {
        let limit = args.limit.to_string();
        let mut asked = vec![("q", &*query), ("limit", &*limit)];
        asked.extend(args.cursor.as_deref().map(|cursor| ("cursor", cursor)));
        Service::open(&args.config)?.get("/api/v1/search", &asked)?
    };
    match args.format {
        Format::Text => text(&page, out)?,
        Format::Json => writeln!(out, "{}", serde_json::to_string_pretty(&page)?)?,
    }
    Ok(if page.total == 0 {
        ExitCode::from(super::FAILED)
    } else {
        ExitCode::SUCCESS
    })
}

/// What a library has that passes the check.
fn catalog(at: &Path) -> anyhow::Result<Arc<Catalog>> {
    let library = Library::find(at)?;
    let config = super::library_config(at)?;
    let renderer = config.renderer();
    match &library {
        Library::WorkTree { root, .. } => {
            let tree = WorkTree::open(root)?;
            let limits = &config.limits;
            let built = registry::check(&tree, Revision::WorkTree, limits, None, &renderer)?;
            Ok(Arc::new(built.catalog))
        }
        Library::Bare(repository) => {
            repository
                .main_tip()?
                .context("the repository has no commit on main yet")?;
            let settings = Settings {
                limits: config.limits.clone(),
                renderer,
                ..Settings::default()
            };
            let registry = Registry::open(library.clone(), settings)?;
            Ok(registry.snapshot().catalog.clone())
        }
    }
}

fn text(page: &Page, out: &mut impl Write) -> std::io::Result<()> {
    let colour = super::colour();
    for hit in &page.hits {
        write!(out, "{}", visible(&hit.name))?;
        if let Some(title) = &hit.title {
            write!(out, "  {}", visible(title))?;
        }
        writeln!(out)?;
        for found in &hit.matches {
            let Some(line) = found.line else { continue };
            writeln!(
                out,
                "  {}:{line}: {}",
                visible(&hit.path),
                marked(found, colour)
            )?;
        }
        let described = hit
            .description
            .as_deref()
            .filter(|_| hit.matches.iter().all(|found| found.line.is_none()));
        if let Some(description) = described {
            writeln!(out, "  {}", visible(description.trim()))?;
        }
    }
    if page.hits.len() < page.total {
        let shown = page.hits.len();
        writeln!(
            out,
            "{shown} of {} shown; more words or --limit find the others",
            page.total
        )?;
    }
    if page.hits.is_empty() {
        writeln!(out, "nothing fits")?;
    }
    Ok(())
}

/// The text of a match on one line; what was found is bold on a terminal.
fn marked(found: &Match, colour: bool) -> String {
    let mut out = String::new();
    let mut at = 0;
    for [from, to] in found.ranges.iter().copied().filter(|_| colour) {
        let (Some(before), Some(word)) = (found.text.get(at..from), found.text.get(from..to))
        else {
            break;
        };
        out.push_str(&visible(before));
        out.push_str("\x1b[1m");
        out.push_str(&visible(word));
        out.push_str("\x1b[0m");
        at = to;
    }
    out.push_str(&visible(found.text.get(at..).unwrap_or_default()));
    out.trim().to_owned()
}
