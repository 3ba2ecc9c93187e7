//! `cuebook check`: the check of a publish, printed as compilers do.

use std::collections::BTreeSet;
use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::sync::Arc;

use anyhow::{Context as _, bail};
use serde_json::json;

use crate::catalog::build::Built;
use crate::catalog::{Revision, Tree as _};
use crate::prompt::problem::Severity;
use crate::prompt::{Lane, Problem, Prompt};
use crate::registry::source::{CommitTree, Library, WorkTree};
use crate::registry::{self, Registry, Settings};

use crate::workers::Renderer;

use super::report::{self, Format};
use super::serve::short;

/// Arguments of `cuebook check`.
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Exit code: 0 when there is no error (warnings do not count), 1 when there is one, 2 when the command line is wrong.

  cuebook check                    the files in this folder, uncommitted edits included
  cuebook check --revision HEAD    what is committed
  cuebook check --staged           what the next commit would hold; `cuebook hook install` runs it before each
  cuebook check --fix              wraps pasted Helm, GitHub Actions and Alertmanager text in {% raw %}
  cuebook check --format github    annotations in a GitHub workflow")]
pub(super) struct Args {
    /// A work tree, a clone, a bare repository or a data directory
    #[arg(default_value = ".")]
    dir: PathBuf,
    /// Check a commit instead of the files: a commit id, a branch, HEAD~1
    #[arg(long, value_name = "REVISION")]
    revision: Option<String>,
    /// Check what is staged for the next commit instead of the files
    #[arg(long, conflicts_with_all = ["revision", "fix"])]
    staged: bool,
    /// How problems are printed
    #[arg(long, value_enum, default_value_t)]
    format: Format,
    /// Show where each prompt is rendered, and what keeps it out of the fast lane
    #[arg(long)]
    lanes: bool,
    /// Put right what has one obvious fix, in the files
    #[arg(long, conflicts_with = "revision")]
    fix: bool,
}

pub(super) fn run(args: &Args, out: &mut impl Write) -> anyhow::Result<ExitCode> {
    let library = Library::find(&args.dir)?;
    let config = super::library_config(&args.dir)?;
    let limits = &config.limits;
    let renderer = config.renderer();
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
    let staged = if args.staged {
        Some(crate::git::staged_commit(
            &args.dir,
            super::variable("GIT_INDEX_FILE").as_deref(),
        )?)
    } else {
        None
    };
    let revision = staged.as_ref().or(args.revision.as_ref());
    let (built, names, served) = match (revision, &library) {
        (None, Library::WorkTree { root, .. }) => {
            let tree =
                WorkTree::open(root).with_context(|| format!("cannot read {}", root.display()))?;
            let built = registry::check(&tree, Revision::WorkTree, limits, None, &renderer)?;
            (built, folders_of(root)?, None)
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
            let names = tree
                .entries()?
                .iter()
                .filter_map(|entry| Some(entry.path.split_once('/')?.0.to_owned()))
                .collect();
            let built = registry::check(
                &tree,
                Revision::Commit(commit.as_str().into()),
                limits,
                None,
                &renderer,
            )?;
            let served = if revision.is_none() {
                served_instead(library, &built, limits, &renderer)?
            } else {
                None
            };
            (built, names, served)
        }
    };
    let mut built = built;
    built.problems.splice(0..0, folder_names(&names));
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
    if args.lanes {
        lanes(&built, args.format, out)?;
    }
    Ok(ExitCode::from(u8::from(
        built.problems.iter().any(Problem::is_error),
    )))
}

/// The folders in a folder, by the names that are stored.
fn folders_of(root: &Path) -> std::io::Result<BTreeSet<String>> {
    let mut names = BTreeSet::new();
    for entry in std::fs::read_dir(root)? {
        let entry = entry?;
        if entry.path().is_dir() {
            names.extend(entry.file_name().into_string());
        }
    }
    Ok(names)
}

/// What is told where a library has no prompts, or a folder is named as if it were one of a library.
fn folder_names(names: &BTreeSet<String>) -> Vec<Problem> {
    let warning = |path: &str, message: &str, hint: String| {
        let code = "folder-name";
        Problem::whole(
            Severity::Warning,
            code,
            &path.into(),
            message.into(),
            Some(hint),
        )
    };
    let mut out = Vec::new();
    for right in ["prompts", "partials", "resources", "values"] {
        if names.contains(right) {
            continue;
        }
        let near = names.iter().find(|name| {
            let name = name.to_lowercase();
            name == right || Some(name.as_str()) == right.strip_suffix('s')
        });
        match near {
            Some(near) if right == "prompts" => out.push(warning(
                near,
                "no prompts/ folder here",
                format!("did you mean prompts/? {near}/ is not read"),
            )),
            Some(near) => out.push(warning(
                near,
                "this folder is not read",
                format!("did you mean {right}/?"),
            )),
            None if right == "prompts" => out.push(warning(
                "prompts",
                "no prompts/ folder here",
                "a prompt is a file such as prompts/sre/incident-triage.md".into(),
            )),
            None => {}
        }
    }
    out
}

fn summary(built: &Built) -> String {
    let catalog = &built.catalog;
    let examples: usize = catalog.list(None).iter().map(|p| p.examples.len()).sum();
    let mut line = format!(
        "{}, {}, {}",
        report::number(catalog.list(None).len(), "prompt"),
        report::number(catalog.resources().len(), "resource"),
        report::number(examples, "example")
    );
    let is_slow = |prompt: &&Arc<Prompt>| matches!(prompt.lane, Lane::Worker(_));
    let slow = catalog.list(None).iter().filter(is_slow).count();
    if slow > 0 {
        let prompts = report::number(slow, "prompt");
        let are = if slow == 1 { "is" } else { "are" };
        line.push_str(&format!(
            "; {prompts} {are} rendered in worker processes (--lanes says why)"
        ));
    }
    line
}

/// The lane of each prompt: a line, or one JSON document for all.
fn lanes(built: &Built, format: Format, out: &mut impl Write) -> std::io::Result<()> {
    let prompts = built.catalog.list(None);
    if format == Format::Json {
        let lanes: Vec<_> = prompts
            .iter()
            .map(|prompt| {
                let lane = prompt.lane.as_str();
                match &prompt.lane {
                    Lane::Fast(_) => json!({ "prompt": prompt.name.as_str(), "lane": lane }),
                    Lane::Worker(reason) => json!({
                        "prompt": prompt.name.as_str(), "lane": lane, "reason": reason.why,
                        "path": &*reason.path, "line": reason.line, "column": reason.column,
                    }),
                }
            })
            .collect();
        return writeln!(out, "{}", json!({ "lanes": lanes }));
    }
    for prompt in prompts {
        match &prompt.lane {
            Lane::Fast(_) => writeln!(out, "{}: fast", prompt.name)?,
            Lane::Worker(reason) => writeln!(
                out,
                "{}: worker, because of {}",
                prompt.name,
                report::visible(&reason.to_string())
            )?,
        }
    }
    Ok(())
}

/// What a server would serve in the place of a bad main.
fn served_instead(
    library: &Library,
    built: &Built,
    limits: &crate::prompt::Limits,
    renderer: &Arc<Renderer>,
) -> anyhow::Result<Option<String>> {
    if built.is_clean() {
        return Ok(None);
    }
    let settings = Settings {
        limits: limits.clone(),
        renderer: renderer.clone(),
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
