//! `cuebook stdio`: MCP on stdin and stdout, for one client.

use std::path::PathBuf;
use std::process::ExitCode;
use std::sync::Arc;

use tokio_util::sync::CancellationToken;

use crate::mcp;
use crate::registry::source::Library;
use crate::registry::{Registry, Settings};

/// Arguments of `cuebook stdio`.
#[derive(Debug, clap::Args)]
pub(super) struct Args {
    /// A library on this machine: a clone, a work tree (uncommitted edits are served), a bare repository or a data directory [default: .]
    #[arg(long, value_name = "DIR", conflicts_with = "server")]
    library: Option<PathBuf>,
    /// A server to bridge to, e.g. <http://127.0.0.1:8400/mcp>; a token goes in `CUEBOOK_TOKEN`
    #[arg(long, value_name = "URL")]
    server: Option<String>,
}

pub(super) fn run(args: &Args) -> anyhow::Result<ExitCode> {
    let runtime = super::runtime()?;
    let result = if let Some(server) = &args.server {
        let options = super::bridge::Options::from_environment(super::variable);
        runtime.block_on(super::bridge::run(
            server,
            tokio::io::stdin(),
            tokio::io::stdout(),
            options,
        ))
    } else {
        let root = args.library.clone().unwrap_or_else(|| ".".into());
        runtime.block_on(local(root))
    };
    // a read of stdin that blocks must not keep the process
    runtime.shutdown_background();
    result.map(|()| ExitCode::SUCCESS)
}

async fn local(root: PathBuf) -> anyhow::Result<()> {
    let (config, registry) = tokio::task::spawn_blocking(move || -> anyhow::Result<_> {
        let config = super::library_config(&root)?;
        let settings = Settings {
            limits: config.limits.clone(),
            notify_body_edits: config.notify_body_edits,
            remember: false,
            renderer: config.renderer(),
        };
        Ok((config, Registry::open(Library::find(&root)?, settings)?))
    })
    .await??;
    let registry = Arc::new(registry);
    let mut key = [0; 32];
    getrandom::fill(&mut key).map_err(|error| anyhow::anyhow!("no random numbers: {error}"))?;
    let cancel = CancellationToken::new();
    let watching = tokio::spawn(registry.clone().watch(cancel.clone()));
    let counting = tokio::spawn(registry.clone().keep_counted(cancel.clone()));
    let service = Arc::new(mcp::Service::new(registry, config.mcp(key)));
    let result = mcp::stdio::run(
        service,
        tokio::io::stdin(),
        tokio::io::stdout(),
        cancel.clone(),
    )
    .await;
    cancel.cancel();
    let _ = watching.await;
    let _ = counting.await;
    Ok(result?)
}
