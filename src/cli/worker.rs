//! `cuebook render-worker`: the hidden command that a worker process is.

use std::process::ExitCode;

use crate::workers::{Probe, Restrictions};

/// Arguments of `cuebook render-worker`.
#[derive(Debug, clap::Args)]
pub(super) struct Args {
    /// Memory it may hold
    #[arg(long)]
    memory_bytes: u64,
    /// CPU time of one render
    #[arg(long)]
    cpu_ms: u64,
    /// Go on where the kernel has no seccomp filters
    #[arg(long)]
    without_seccomp: bool,
    /// Try what a worker must not survive, instead of working
    #[arg(long, value_enum)]
    probe: Option<Probe>,
}

pub(super) fn run(args: &Args) -> anyhow::Result<ExitCode> {
    let restrictions = Restrictions {
        memory_bytes: args.memory_bytes,
        cpu_ms: args.cpu_ms,
        without_seccomp: args.without_seccomp,
        probe: args.probe,
    };
    #[cfg(unix)]
    {
        crate::workers::run(&restrictions)?;
        Ok(ExitCode::SUCCESS)
    }
    #[cfg(not(unix))]
    anyhow::bail!("there are no workers on this system: {restrictions:?}")
}
