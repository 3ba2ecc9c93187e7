//! `cuebook hook`: what git runs at a push (`run`), and a check before every commit of a clone (`install`).

use std::io::{self, BufRead as _, BufReader, Read as _, Write};
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::time::{Duration, Instant};

use anyhow::{Context as _, bail};
use tokio_util::sync::CancellationToken;

use crate::gate::hook::{self, Environment};
use crate::gate::install::{executable, quoted};
use crate::gate::wire::{Answer, Hook, MAX_LINE, Question};
use crate::gate::{self, PUSH};
use crate::git::Repository;

/// `cuebook hook …`.
#[derive(Debug, clap::Subcommand)]
pub(super) enum Command {
    /// Check every commit of a clone before it is made: writes its pre-commit hook
    Install(Install),
    /// Take that hook away again
    Uninstall(Install),
    /// What git runs in the server's repository at a push
    #[command(hide = true)]
    Run(Run),
}

/// Arguments of `cuebook hook install`.
#[derive(Debug, clap::Args)]
#[command(after_help = "\
A commit with problems is then refused with what `cuebook check` prints; warnings are shown and do not refuse.
git commit --no-verify passes over the hook once.")]
pub(super) struct Install {
    /// The clone
    #[arg(default_value = ".")]
    dir: PathBuf,
}

/// Arguments of `cuebook hook run`.
#[derive(Debug, clap::Args)]
pub(super) struct Run {
    #[arg(value_enum)]
    hook: Hook,
    #[arg(long, value_name = "DIR")]
    data_dir: PathBuf,
}

/// The first line of a hook that is ours.
const MARK: &str = "# Written by `cuebook hook install`";
/// How long a hook waits for a server that is starting.
const STARTING: Duration = Duration::from_secs(10);
/// How long it waits for the answer: a library of any size is checked by then.
const ANSWER: Duration = Duration::from_mins(10);

pub(super) fn run(command: &Command, out: &mut impl Write) -> anyhow::Result<ExitCode> {
    match command {
        Command::Install(args) => install(&args.dir, out),
        Command::Uninstall(args) => uninstall(&args.dir, out),
        Command::Run(args) => run_hook(args, out),
    }
}

/// A path without links and `.`; its end need not be there yet.
fn real(path: &Path) -> PathBuf {
    let path = std::path::absolute(path).unwrap_or_else(|_| path.to_path_buf());
    for there in path.ancestors() {
        if let (Ok(real), Ok(rest)) = (there.canonicalize(), path.strip_prefix(there)) {
            return real.join(rest);
        }
    }
    path
}

/// Where a clone's pre-commit hook belongs; git's own word, since `core.hooksPath` and worktrees move it.
fn pre_commit(dir: &Path) -> anyhow::Result<PathBuf> {
    if Repository::open(dir).is_ok_and(|repository| repository.is_bare()) {
        bail!(
            "{} is a bare repository: nobody commits there, and its server checks every push",
            dir.display()
        );
    }
    let (top, hooks) = crate::git::hooks_folder(dir)
        .with_context(|| format!("{} is no clone; run this in one, or name it", dir.display()))?;
    let git = crate::git::common_folder(dir)?;
    let (top, git) = (real(&top), real(&git));
    if !real(&hooks).starts_with(&top) && !real(&hooks).starts_with(&git) {
        let program = std::env::current_exe().context("cannot find this program")?;
        bail!(
            "your git runs the hooks of {} for every repository (core.hooksPath); to have this library checked, add to \
             pre-commit there:\n  if [ -d prompts ]; then {} check --staged || exit 1; fi",
            hooks.display(),
            quoted(&program)
        );
    }
    Ok(hooks.join("pre-commit"))
}

fn install(dir: &Path, out: &mut impl Write) -> anyhow::Result<ExitCode> {
    let path = pre_commit(dir)?;
    let program = std::env::current_exe().context("cannot find this program")?;
    let text = format!(
        "#!/bin/sh\n{MARK}: what is staged must pass the check. Once without it: git commit --no-verify\nexec {} check --staged\n",
        quoted(&program)
    );
    if let Ok(old) = std::fs::read_to_string(&path)
        && !old.contains(MARK)
    {
        bail!(
            "{} is there already and is kept; add this line to it:\n  {} check --staged || exit 1",
            path.display(),
            quoted(&program)
        );
    }
    if let Some(folder) = path.parent() {
        std::fs::create_dir_all(folder)?;
    }
    std::fs::write(&path, text).with_context(|| format!("cannot write {}", path.display()))?;
    executable(&path)?;
    writeln!(
        out,
        "Every commit in {} is now checked first ({}).",
        dir.display(),
        path.display()
    )?;
    Ok(ExitCode::SUCCESS)
}

fn uninstall(dir: &Path, out: &mut impl Write) -> anyhow::Result<ExitCode> {
    let path = pre_commit(dir)?;
    match std::fs::read_to_string(&path) {
        Ok(text) if text.contains(MARK) => {
            std::fs::remove_file(&path)?;
            writeln!(out, "Removed {}.", path.display())?;
        }
        Ok(_) => bail!("{} was not written by cuebook; it is kept", path.display()),
        Err(_) => writeln!(out, "There is no {}.", path.display())?,
    }
    Ok(ExitCode::SUCCESS)
}

fn run_hook(args: &Run, out: &mut impl Write) -> anyhow::Result<ExitCode> {
    let environment = environment();
    let mut input = BufReader::new(io::stdin().lock());
    let mut said = io::stderr();
    let goes_on = hook::run(
        args.hook,
        &environment,
        &mut input,
        out,
        &mut said,
        |question| ask(&args.data_dir, &question),
    )?;
    Ok(if goes_on {
        ExitCode::SUCCESS
    } else {
        ExitCode::from(super::FAILED)
    })
}

/// What git and the HTTP adapter say in the environment.
fn environment() -> Environment {
    let count = super::text_variable("GIT_PUSH_OPTION_COUNT")
        .and_then(|count| count.parse().ok())
        .unwrap_or(0_usize)
        .min(100);
    Environment {
        quarantine: super::variable("GIT_QUARANTINE_PATH").map(PathBuf::from),
        options: (0..count)
            .filter_map(|i| super::text_variable(&format!("GIT_PUSH_OPTION_{i}")))
            .collect(),
        push: super::text_variable(PUSH).filter(|push| !push.is_empty()),
    }
}

/// Asks the server of the data directory; where there is none, the gate of this process.
fn ask(data_dir: &Path, question: &Question) -> io::Result<Answer> {
    let started = Instant::now();
    loop {
        match connect(data_dir) {
            Ok(stream) => return converse(stream, question),
            Err(error) if !is_served(data_dir) => {
                tracing::debug!(%error, "no server answers");
                return Ok(alone(data_dir, question));
            }
            Err(error) if started.elapsed() > STARTING => {
                return Ok(Answer::refused(vec![format!(
                    "refused: the server does not answer its hooks ({error}). Nothing was changed; push again in a moment."
                )]));
            }
            // the server holds its lock before its socket is there
            Err(_) => std::thread::sleep(Duration::from_millis(50)),
        }
    }
}

#[cfg(unix)]
type Stream = std::os::unix::net::UnixStream;

#[cfg(unix)]
fn connect(data_dir: &Path) -> io::Result<Stream> {
    Stream::connect(crate::socket::find(data_dir, gate::socket::NAME)?)
}

#[cfg(unix)]
fn converse(mut stream: Stream, question: &Question) -> io::Result<Answer> {
    stream.set_read_timeout(Some(ANSWER))?;
    let mut line = serde_json::to_vec(question)?;
    line.push(b'\n');
    stream.write_all(&line)?;
    let mut text = String::new();
    let read = BufReader::new(stream.take(MAX_LINE)).read_line(&mut text);
    let answer = read.and_then(|_| Ok(serde_json::from_str(&text)?));
    Ok(answer.unwrap_or_else(|error| {
        tracing::debug!(%error, "the server's answer");
        Answer::refused(vec![
            "refused: the server ended before it had answered. Push again in a moment.".into(),
        ])
    }))
}

#[cfg(not(unix))]
fn connect(_: &Path) -> io::Result<std::convert::Infallible> {
    Err(io::ErrorKind::Unsupported.into())
}

#[cfg(not(unix))]
fn converse(stream: std::convert::Infallible, _: &Question) -> io::Result<Answer> {
    match stream {}
}

/// Whether a server holds the data directory.
fn is_served(data_dir: &Path) -> bool {
    let lock = std::fs::File::options()
        .read(true)
        .open(data_dir.join("lock"));
    lock.is_ok_and(|lock| {
        matches!(
            lock.try_lock_shared(),
            Err(std::fs::TryLockError::WouldBlock)
        )
    })
}

/// The gate without a server: it checks as the server would, and what it lets in is served at the next start.
fn alone(data_dir: &Path, question: &Question) -> Answer {
    if question.hook == Hook::PostReceive {
        return Answer {
            accepted: true,
            lines: vec!["no server is running; what you pushed is served when one starts".into()],
            ..Answer::default()
        };
    }
    let answer = (|| -> anyhow::Result<Answer> {
        let config = super::load_config(data_dir, None, &[])?;
        let library = crate::registry::Settings {
            limits: config.limits.clone(),
            renderer: config.renderer(),
            ..crate::registry::Settings::default()
        };
        let gate = gate::without_server(data_dir, library, config.gate(String::new()))?;
        let runtime = super::runtime()?;
        Ok(runtime.block_on(
            std::sync::Arc::new(gate).answer(question.clone(), &CancellationToken::new()),
        ))
    })();
    answer.unwrap_or_else(|error| {
        Answer::refused(vec![format!(
            "refused: the push could not be checked ({error:#})"
        )])
    })
}
