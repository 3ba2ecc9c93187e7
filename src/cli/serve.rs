//! `cuebook serve`: starts the server, says what to do next, waits for the end.

use std::io::Write;
use std::path::PathBuf;
use std::process::ExitCode;

use crate::config::{Config, ConfigError};
use crate::server::{self, Running, Serve};
use crate::starter::Language;

/// Where the data is unless told otherwise.
const DATA_DIR: &str = "cuebook-data";

/// Arguments of `cuebook serve`.
#[derive(Debug, clap::Args)]
pub(super) struct Args {
    /// Address and port to listen on [default: 127.0.0.1:8400]
    #[arg(long, value_name = "ADDR:PORT")]
    pub(super) listen: Option<String>,
    #[command(flatten)]
    pub(super) config: ConfigArgs,
    /// Serve a plain work tree with its uncommitted edits, for authors, instead of a data directory
    #[arg(long, value_name = "DIR", conflicts_with = "empty")]
    watch: Option<PathBuf>,
    /// Begin a new library without the starter prompts
    #[arg(long)]
    empty: bool,
    /// Serve even where templates cannot be rendered in processes that are shut off from this machine
    #[arg(long)]
    pub(super) unsafe_rendering: bool,
    /// Language of the starter prompts [default: that of the locale]
    #[arg(long, value_enum)]
    language: Option<Language>,
}

/// Where the configuration is.
#[derive(Debug, clap::Args)]
pub(super) struct ConfigArgs {
    /// Directory of the library and everything else the server keeps; made when there is none [default: ./cuebook-data]
    #[arg(long, value_name = "DIR", env = "CUEBOOK_DATA_DIR")]
    data_dir: Option<PathBuf>,
    /// Configuration file [default: config.toml in the data directory]
    #[arg(long, value_name = "FILE")]
    config: Option<PathBuf>,
}

impl ConfigArgs {
    pub(super) fn data_dir(&self) -> PathBuf {
        self.data_dir.clone().unwrap_or_else(|| DATA_DIR.into())
    }

    pub(super) fn load(
        &self,
        data_dir: &std::path::Path,
        listen: Option<&str>,
        log: Option<&str>,
        unsafe_rendering: bool,
    ) -> Result<Config, ConfigError> {
        let mut flags = Vec::new();
        if unsafe_rendering {
            flags.push(("rendering.unsafe_rendering", "true".to_owned()));
        }
        flags.extend(listen.map(|value| ("listen", value.to_owned())));
        flags.extend(log.map(|value| ("log", value.to_owned())));
        super::load_config(data_dir, self.config.as_deref(), &flags)
    }
}

impl Args {
    pub(super) fn data_dir(&self) -> PathBuf {
        self.config.data_dir()
    }
}

pub(super) fn run(args: &Args, config: &Config, out: &mut impl Write) -> anyhow::Result<ExitCode> {
    let what = match &args.watch {
        Some(root) => Serve::Watch(root.clone()),
        None => Serve::DataDir {
            path: args.data_dir(),
            starter: (!args.empty && config.upstream.url.is_none())
                .then(|| args.language.unwrap_or_else(super::locale_language)),
        },
    };
    let runtime = super::runtime()?;
    runtime.block_on(async {
        // before the greeting: whoever reads it may end the server at once
        let signals = Signals::listen()?;
        let running = server::start(what, config).await?;
        out.write_all(
            greeting(
                &running,
                args.watch.is_some(),
                config.upstream.url.as_deref(),
            )
            .as_bytes(),
        )?;
        out.flush()?;
        signals.ended().await?;
        tracing::info!("stopping");
        running.stop().await;
        Ok(ExitCode::SUCCESS)
    })
}

/// What to do next.
fn greeting(running: &Running, watch: bool, following: Option<&str>) -> String {
    let snapshot = running.registry.snapshot();
    let prompts = super::report::number(snapshot.catalog.list(None).len(), "prompt");
    let library = running
        .library
        .canonicalize()
        .unwrap_or_else(|_| running.library.clone());
    let library = library.display();
    let program = super::program();
    let mut text = format!(
        "\n  Cuebook serves {prompts} at {url}/mcp\n\n",
        url = running.url
    );
    if running.created {
        text.push_str(&format!("  library   {library} (made just now)\n"));
    } else {
        text.push_str(&format!("  library   {library}\n"));
    }
    text.push_str(&format!("  pages     {}/\n", running.url));
    text.push_str(&format!(
        "  connect   {program} connect claude-code --url {}/mcp   (or vscode, cursor, zed, …)\n",
        running.url
    ));
    if watch {
        text.push_str("  edit      save a file, and connected clients have it\n");
        text.push_str(&format!(
            "  check     {program} check {library}, before you commit\n"
        ));
    } else if let Some(why) = &running.read_only {
        text.push_str(&format!("  edit      not now: {why}\n"));
    } else {
        text.push_str(&match following {
            Some(upstream) => format!("  follows   {upstream}: publish there\n"),
            None => format!(
                "  edit      git clone {}/library.git, change a prompt, commit, git push\n",
                running.url
            ),
        });
        text.push_str(&format!(
            "  check     {program} check in the clone, before you push\n"
        ));
    }
    if let Some(link) = &running.setup {
        text.push_str(&format!(
            "  set up    {link}\n            Open it once to become the first admin; it is good until there is one, or the server ends.\n"
        ));
    }
    text.push_str("  stop      Ctrl-C\n\n");
    let status = &snapshot.status;
    if status.tip.is_none() && !watch && following.is_none() {
        text.push_str(&format!(
            "  The library is empty: git push {}/library.git HEAD:main\n\n",
            running.url
        ));
    }
    if status.tip_problem_count > 0 {
        let what = match (&status.tip, &status.served) {
            (Some(tip), Some(served)) if tip != served => {
                format!("main ({}) is not served; {} is", short(tip), short(served))
            }
            _ => "prompts with problems are left out".into(),
        };
        text.push_str(&format!(
            "  {}: {what}\n",
            super::report::number(status.tip_problem_count, "problem")
        ));
        for problem in &status.tip_problems {
            text.push_str(&format!("    {problem}\n"));
        }
        text.push('\n');
    }
    text
}

/// The first seven digits of a commit id.
pub(super) fn short(commit: &str) -> &str {
    commit.get(..7).unwrap_or(commit)
}

/// Ctrl-C and SIGTERM, listened for from the moment this is made.
#[cfg(unix)]
struct Signals {
    terminate: tokio::signal::unix::Signal,
    interrupt: tokio::signal::unix::Signal,
}

#[cfg(unix)]
impl Signals {
    fn listen() -> std::io::Result<Self> {
        use tokio::signal::unix::{SignalKind, signal};
        Ok(Self {
            terminate: signal(SignalKind::terminate())?,
            interrupt: signal(SignalKind::interrupt())?,
        })
    }

    /// Waits for the first of them.
    async fn ended(mut self) -> std::io::Result<()> {
        tokio::select! {
            _ = self.terminate.recv() => {}
            _ = self.interrupt.recv() => {}
        }
        Ok(())
    }
}

#[cfg(not(unix))]
struct Signals;

#[cfg(not(unix))]
impl Signals {
    fn listen() -> std::io::Result<Self> {
        Ok(Self)
    }

    async fn ended(self) -> std::io::Result<()> {
        tokio::signal::ctrl_c().await
    }
}
