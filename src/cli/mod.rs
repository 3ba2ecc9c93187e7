//! The command line: what each command takes and prints.

mod access;
mod audit;
pub mod bridge;
mod check;
pub mod connect;
mod deliveries;
pub mod endpoint;
mod fix;
mod hook;
mod init;
mod render;
pub mod report;
mod search;
mod serve;
mod service;
mod stdio;
mod token;
mod usage;
mod verify;
mod versions;
mod worker;

use std::ffi::OsString;
use std::io::{IsTerminal as _, Write as _};
use std::path::PathBuf;
use std::process::ExitCode;

use clap::{Parser, Subcommand};

use crate::config::{Config, ConfigError};
use crate::starter::Language;
use crate::telemetry::{self, LogFormat};

/// Exit code when content has problems, or a command could not do its work.
const FAILED: u8 = 1;
/// Exit code when the command line or the configuration is wrong.
const USAGE: u8 = 2;

/// A team's prompts, in git, as slash commands in every IDE.
#[derive(Debug, Parser)]
#[command(name = "cuebook", version, arg_required_else_help = true, after_help = EXAMPLES)]
struct Cli {
    /// What is logged to stderr: error, warn, info, debug, or directives
    #[arg(long, global = true, value_name = "FILTER")]
    log: Option<String>,
    /// How logs are written
    #[arg(long, global = true, value_enum, default_value_t)]
    log_format: LogFormat,
    #[command(subcommand)]
    command: Command,
}

const EXAMPLES: &str = "\
To begin:
  cuebook serve                         a server with a starter library, on http://127.0.0.1:8400
  cuebook connect claude-code           how to connect a client to it
  git clone http://127.0.0.1:8400/library.git
                                        the library, to edit; `git push` publishes
  cuebook check                         checks the library in this folder

More: cuebook COMMAND --help";

#[derive(Debug, Subcommand)]
enum Command {
    /// Serve a library to MCP clients over HTTP
    Serve(serve::Args),
    /// Speak MCP on stdin and stdout, for one client: a library on this machine, or a server elsewhere
    Stdio(stdio::Args),
    /// Make a new library to edit, with the starter prompts
    Init(init::Args),
    /// Check a library as a publish does
    Check(check::Args),
    /// Render a prompt with arguments, as a client gets it
    Render(render::Args),
    /// Check every commit of a clone before it is made
    #[command(subcommand)]
    Hook(hook::Command),
    /// Print how to connect a client
    Connect(connect::Args),
    /// Show the server's settings and where each comes from
    #[command(subcommand)]
    Config(ConfigCommand),
    /// Find prompts and runbooks by words
    Search(search::Args),
    /// Show what is used, what nobody uses, and what fails more than it did
    Usage(usage::Args),
    /// Show which text was delivered to whom when, with which resources
    Deliveries(deliveries::Args),
    /// Show who published, proposed and moved what, from where and when
    Audit(audit::Args),
    /// Show and change who may do what
    #[command(subcommand)]
    Access(access::Command),
    /// Make, list and revoke tokens
    #[command(subcommand)]
    Token(token::Command),
    /// Show a prompt's versions, newest first, and the labels that were moved on it
    Log(versions::LogArgs),
    /// Show what differs between two versions of a prompt, in its files and as it renders
    Diff(versions::DiffArgs),
    /// Publish the text of an earlier version of a prompt again
    Revert(versions::RevertArgs),
    /// Put a label on a version of a prompt
    Promote(versions::PromoteArgs),
    /// Prove that everything derived from git equals what git says
    Verify(verify::Args),
    /// Derive everything from git again
    Reindex(verify::Args),
    /// Render templates for another process of this program, shut off from everything
    #[command(hide = true)]
    RenderWorker(worker::Args),
}

#[derive(Debug, Subcommand)]
enum ConfigCommand {
    /// Print every setting, its value and its origin
    Show(serve::ConfigArgs),
}

/// Runs the command line of this process.
pub fn main() -> ExitCode {
    let cli = match Cli::try_parse() {
        Ok(cli) => cli,
        Err(error) => {
            let _ = error.print();
            return if error.use_stderr() {
                ExitCode::from(USAGE)
            } else {
                ExitCode::SUCCESS
            };
        }
    };
    match run(cli) {
        Ok(code) => code,
        Err(error) => {
            // `cuebook check | head` is no failure worth a word
            if error
                .downcast_ref::<std::io::Error>()
                .is_some_and(|e| e.kind() == std::io::ErrorKind::BrokenPipe)
            {
                return ExitCode::SUCCESS;
            }
            let mut err = anstream_like(std::io::stderr().is_terminal());
            let _ = err.write_all(format!("{error:#}\n").as_bytes());
            let usage = error.downcast_ref::<ConfigError>().is_some();
            ExitCode::from(if usage { USAGE } else { FAILED })
        }
    }
}

/// stderr with an `error: ` in front, coloured on a terminal.
fn anstream_like(terminal: bool) -> std::io::Stderr {
    let mut err = std::io::stderr();
    let colour = report::wants_colour(
        terminal,
        variable("NO_COLOR").as_deref(),
        variable("TERM").as_deref(),
    );
    let _ = err.write_all(if colour {
        b"\x1b[1;31merror:\x1b[0m "
    } else {
        b"error: "
    });
    err
}

fn run(cli: Cli) -> anyhow::Result<ExitCode> {
    let log = |default: &str| {
        let filter = cli
            .log
            .clone()
            .or_else(|| text_variable("CUEBOOK_LOG"))
            .unwrap_or_else(|| default.into());
        telemetry::start(&filter, cli.log_format).map_err(|error| ConfigError(vec![error]))
    };
    let mut out = std::io::stdout().lock();
    match cli.command {
        Command::Serve(args) => {
            let config = args.config.load(
                &args.data_dir(),
                args.listen.as_deref(),
                cli.log.as_deref(),
                args.unsafe_rendering,
            )?;
            telemetry::start(&config.log, cli.log_format)
                .map_err(|error| ConfigError(vec![error]))?;
            serve::run(&args, &config, &mut out)
        }
        Command::Stdio(args) => {
            log("warn")?;
            drop(out);
            stdio::run(&args)
        }
        Command::Init(args) => {
            log("warn")?;
            init::run(&args, &mut out)
        }
        Command::Check(args) => {
            log("off")?;
            check::run(&args, &mut out)
        }
        Command::Render(args) => {
            log("warn")?;
            render::run(&args, &mut out)
        }
        Command::Hook(command) => {
            log("warn")?;
            hook::run(&command, &mut out)
        }
        Command::Connect(args) => {
            let executable = std::env::current_exe().unwrap_or_else(|_| PathBuf::from("cuebook"));
            connect::run(&args, &executable, &mut out)?;
            Ok(ExitCode::SUCCESS)
        }
        Command::Config(ConfigCommand::Show(args)) => {
            let config = args.load(&args.data_dir(), None, cli.log.as_deref(), false)?;
            out.write_all(config.show().as_bytes())?;
            Ok(ExitCode::SUCCESS)
        }
        Command::Search(args) => {
            log("warn")?;
            search::run(&args, &mut out)
        }
        Command::Usage(args) => {
            log("warn")?;
            usage::run(&args, &mut out)
        }
        Command::Deliveries(args) => {
            log("warn")?;
            deliveries::run(&args, &mut out)
        }
        Command::Audit(args) => {
            log("warn")?;
            audit::run(&args, &mut out)
        }
        Command::Access(command) => {
            log("warn")?;
            access::run(&command, &mut out)
        }
        Command::Token(command) => {
            log("warn")?;
            token::run(&command, &mut out)
        }
        Command::Log(args) => {
            log("warn")?;
            versions::log(&args, &mut out)
        }
        Command::Diff(args) => {
            log("warn")?;
            versions::diff(&args, &mut out)
        }
        Command::Revert(args) => {
            log("warn")?;
            versions::revert(&args, &mut out)
        }
        Command::Promote(args) => {
            log("warn")?;
            versions::promote(&args, &mut out)
        }
        Command::Verify(args) => {
            log("warn")?;
            verify::run(verify::What::Verify, &args, &mut out)
        }
        Command::Reindex(args) => {
            log("warn")?;
            verify::run(verify::What::Reindex, &args, &mut out)
        }
        Command::RenderWorker(args) => worker::run(&args),
    }
}

/// An environment variable of the person who runs the command.
#[allow(
    clippy::disallowed_methods,
    reason = "the command line is where the environment is read"
)]
fn variable(name: &str) -> Option<OsString> {
    std::env::var_os(name)
}

/// The same as text.
fn text_variable(name: &str) -> Option<String> {
    variable(name)?.into_string().ok()
}

/// The language of the person's locale.
fn locale_language() -> Language {
    let locale = ["LC_ALL", "LC_MESSAGES", "LANG"]
        .iter()
        .find_map(|name| text_variable(name).filter(|v| !v.is_empty()));
    Language::of_locale(locale.as_deref())
}

/// Whether stdout is a terminal that wants colours.
fn colour() -> bool {
    report::wants_colour(
        std::io::stdout().is_terminal(),
        variable("NO_COLOR").as_deref(),
        variable("TERM").as_deref(),
    )
}

/// A multi-threaded runtime for commands that serve.
fn runtime() -> anyhow::Result<tokio::runtime::Runtime> {
    Ok(tokio::runtime::Builder::new_multi_thread()
        .enable_all()
        .build()?)
}

/// This program as the person called it: `cuebook`, or a path such as `target/release/cuebook`.
fn program() -> String {
    std::env::args_os().next().map_or_else(
        || "cuebook".into(),
        |name| name.to_string_lossy().into_owned(),
    )
}

/// The settings for a library: those of its data directory, when it lies in one. A clone has none of its own.
fn library_config(library: &std::path::Path) -> Result<Config, ConfigError> {
    if library.join("library.git").is_dir() {
        return load_config(library, None, &[]);
    }
    // the repository of a data directory, named itself
    if let Ok(path) = library.canonicalize()
        && path.ends_with("library.git")
        && path.join("HEAD").is_file()
        && path.join("objects").is_dir()
        && let Some(data_dir) = path.parent()
    {
        return load_config(data_dir, None, &[]);
    }
    read_config(None, &[])
}

/// Loads the configuration of a data directory.
fn load_config(
    data_dir: &std::path::Path,
    file: Option<&std::path::Path>,
    flags: &[(&'static str, String)],
) -> Result<Config, ConfigError> {
    let own = data_dir.join("config.toml");
    let file = file
        .map(std::path::Path::to_path_buf)
        .or_else(|| own.is_file().then_some(own));
    read_config(file.as_deref(), flags)
}

/// Reads the configuration; workers are this program again.
fn read_config(
    file: Option<&std::path::Path>,
    flags: &[(&'static str, String)],
) -> Result<Config, ConfigError> {
    let mut config = Config::load(file, &text_variable, flags)?;
    config.rendering.executable = this_program();
    Ok(config)
}

/// This program's file: on Linux the one that runs, even when another has been put in its place since.
fn this_program() -> PathBuf {
    let running = PathBuf::from("/proc/self/exe");
    if cfg!(target_os = "linux") && running.exists() {
        return running;
    }
    std::env::current_exe().unwrap_or_else(|_| PathBuf::from("cuebook"))
}
