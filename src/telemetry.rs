//! Logs: to stderr, as text for people or JSON lines for machines. Argument values and rendered text never go there.

use std::io::IsTerminal as _;

use tracing_subscriber::EnvFilter;

/// How logs are written.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, clap::ValueEnum)]
pub enum LogFormat {
    /// A line for people.
    #[default]
    Text,
    /// A JSON object a line.
    Json,
}

/// Starts logging; `filter` is a level or directives such as `cuebook=debug`. A second call changes nothing.
pub fn start(filter: &str, format: LogFormat) -> Result<(), String> {
    let filter =
        EnvFilter::try_new(filter).map_err(|error| format!("log filter `{filter}`: {error}"))?;
    let builder = tracing_subscriber::fmt()
        .with_env_filter(filter)
        .with_writer(std::io::stderr)
        .with_target(false);
    let result = match format {
        LogFormat::Text => builder
            .with_ansi(std::io::stderr().is_terminal())
            .try_init(),
        LogFormat::Json => builder.json().try_init(),
    };
    // already started, as in tests that start several servers
    let _ = result;
    Ok(())
}
