//! `cuebook check`: the check of a publish, printed as compilers do.

use std::io::Write;
use std::path::PathBuf;
use std::process::ExitCode;

use anyhow::{Context as _, bail};

use crate::catalog::Revision;
use crate::catalog::build::{Built, build_and_run};
use crate::prompt::Problem;
use crate::registry::source::{CommitTree, Library, WorkTree};
use crate::registry::{Registry, Settings};

use super::report::{self, Format};
use super::serve::short;

/// Arguments of `cuebook check`.
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Exit code: 0 when there is no error (warnings do not count), 1 when there is one, 2 when the command line is wrong.

  cuebook check                    the files in this folder, uncommitted edits included
  cuebook check --revision HEAD    what is committed
  cuebook check --fix              wraps pasted Helm, GitHub Actions and Alertmanager text in {% raw %}
  cuebook check --format github    annotations in a GitHub workflow")]
pub(super) struct Args {
    /// A work tree, a clone, a bare repository or a data directory
    #[arg(default_value = ".")]
    dir: PathBuf,
    /// Check a commit instead of the files: a commit id, a branch, HEAD~1
    #[arg(long, value_name = "REVISION")]
    revision: Option<String>,
    /// How problems are printed
    #[arg(long, value_enum, default_value_t)]
    format: Format,
    /// Put right what has one obvious fix, in the files
    #[arg(long, conflicts_with = "revision")]
    fix: bool,
}

pub(super) fn run(args: &Args, out: &mut impl Write) -> anyhow::Result<ExitCode> {
    let library = Library::find(&args.dir)?;
    let config = super::library_config(&args.dir)?;
    let limits = &config.limits;
    let mut fixed = None;
    if args.fix {
        let Library::WorkTree { root, .. } = &library else {
            bail!(
                "--fix changes files, and {} is a bare repository; run it in a clone",
                args.dir.display()
            );
        };
        fixed = Some(super::fix::run(root, limits)?);
    }
    let (built, served) = match (&args.revision, &library) {
        (None, Library::WorkTree { root, .. }) => {
            let tree =
                WorkTree::open(root).with_context(|| format!("cannot read {}", root.display()))?;
            (
                build_and_run(&tree, Revision::WorkTree, limits, None)?,
                None,
            )
        }
        (revision, library) => {
            let repository = library
                .repository()
                .context("this folder has no git repository, so it has no revisions")?;
            let commit = match revision {
                Some(revision) => repository.resolve(revision)?,
                None => repository
                    .main_tip()?
                    .context("the repository has no commit on main yet")?,
            };
            let tree = CommitTree::open(repository, &commit)?;
            let built = build_and_run(
                &tree,
                Revision::Commit(commit.as_str().into()),
                limits,
                None,
            )?;
            let served = if revision.is_none() {
                served_instead(library, &built, limits)?
            } else {
                None
            };
            (built, served)
        }
    };
    report::print(&built.problems, args.format, super::colour(), out)?;
    if args.format == Format::Text {
        if let Some(files) = fixed.filter(|n| *n > 0) {
            writeln!(out, "fixed: {}", report::number(files, "file"))?;
        }
        if let Some(line) = served {
            writeln!(out, "{line}")?;
        }
        if built.problems.is_empty() {
            writeln!(out, "{}", summary(&built))?;
        }
    }
    Ok(ExitCode::from(u8::from(
        built.problems.iter().any(Problem::is_error),
    )))
}

fn summary(built: &Built) -> String {
    let catalog = &built.catalog;
    let examples: usize = catalog.list(None).iter().map(|p| p.examples.len()).sum();
    format!(
        "{}, {}, {}",
        report::number(catalog.list(None).len(), "prompt"),
        report::number(catalog.resources().len(), "resource"),
        report::number(examples, "example")
    )
}

/// What a server would serve in the place of a bad main.
fn served_instead(
    library: &Library,
    built: &Built,
    limits: &crate::prompt::Limits,
) -> anyhow::Result<Option<String>> {
    if built.is_clean() {
        return Ok(None);
    }
    let settings = Settings {
        limits: limits.clone(),
        ..Settings::default()
    };
    let registry = Registry::open(library.clone(), settings)?;
    let status = &registry.snapshot().status;
    Ok(Some(match (&status.tip, &status.served) {
        (Some(tip), Some(served)) if tip != served => {
            format!(
                "main is at {} and is not served; the newest clean commit {} is",
                short(tip),
                short(served)
            )
        }
        _ => "no commit of main is clean; only the prompts without problems are served".into(),
    }))
}
