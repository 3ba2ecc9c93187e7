//! `cuebook init`: a new library to edit.

use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use anyhow::{Context as _, bail};

use crate::connect::document::shell;
use crate::git;
use crate::starter::{self, Language};

/// Arguments of `cuebook init`.
#[derive(Debug, clap::Args)]
pub(super) struct Args {
    /// Folder to make it in; must be new or empty
    #[arg(default_value = "prompts-library")]
    dir: PathBuf,
    /// Clone this repository instead of beginning with the starter prompts
    #[arg(long, value_name = "URL", conflicts_with = "language")]
    from: Option<String>,
    /// Language of the starter prompts [default: that of the locale]
    #[arg(long, value_enum)]
    language: Option<Language>,
}

pub(super) fn run(args: &Args, out: &mut impl Write) -> anyhow::Result<ExitCode> {
    let dir = &args.dir;
    if !is_empty(dir)? {
        bail!(
            "{} is not empty; name a new folder: cuebook init DIR",
            dir.display()
        );
    }
    if let Some(url) = &args.from {
        git::clone(url, dir)?;
    } else {
        let language = args.language.unwrap_or_else(super::locale_language);
        std::fs::create_dir_all(dir).with_context(|| format!("cannot make {}", dir.display()))?;
        git::init(dir, false)?;
        let files = starter::files(language);
        git::import_commit(
            dir,
            &files,
            language.commit_message(),
            crate::clock::unix_seconds(),
        )?;
        git::reset_work_tree(dir)?;
    }
    let shown = shell(&dir.display().to_string());
    write!(
        out,
        "A library in {}\n\n  edit      {}/prompts/<folder>/<name>.md is one prompt\n  check     cuebook check {shown}\n  \
         try       cuebook serve --watch {shown}\n",
        dir.display(),
        dir.display()
    )?;
    if args.from.is_some() {
        writeln!(out, "  publish   git -C {shown} push")?;
    } else {
        // `git -C` makes what is relative relative to the library
        let here = std::env::current_dir().context("cannot find the current folder")?;
        let bare = here.join("cuebook-data").join("library.git");
        write!(
            out,
            "  publish   cuebook serve --empty   (a server of its own; it makes cuebook-data in this folder)\n            \
             git -C {shown} push {} HEAD:main\n",
            shell(&bare.display().to_string())
        )?;
    }
    Ok(ExitCode::SUCCESS)
}

fn is_empty(dir: &Path) -> anyhow::Result<bool> {
    match std::fs::read_dir(dir) {
        Ok(mut entries) => Ok(entries.next().is_none()),
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => Ok(true),
        Err(error) => Err(error).with_context(|| format!("cannot use {}", dir.display())),
    }
}
