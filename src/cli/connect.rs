//! `cuebook connect CLIENT`: the configuration that makes a client use this library.
//!
//! Prints, changes nothing. What each client is called, wants and lacks stands in `crate::connect`.

use std::fmt::Write as _;
use std::io::Write;
use std::path::{Path, PathBuf};

use anyhow::{Context, ensure};

use super::endpoint;
use crate::connect::{self, Client, Target, Transport, Way};

/// The flags of `cuebook connect`.
#[derive(Debug, clap::Args)]
pub struct Args {
    /// The client; without one, the clients are listed
    pub client: Option<Client>,
    /// Address of the server
    #[arg(long, value_name = "URL", default_value = endpoint::DEFAULT)]
    pub url: String,
    /// Serve this library from disk over stdio, without a server
    #[arg(long, value_name = "DIR")]
    pub library: Option<PathBuf>,
    /// What the client calls the server; it is part of the slash commands
    #[arg(long, default_value = "cuebook")]
    pub name: String,
    /// Which way to print
    #[arg(long, value_enum, default_value_t)]
    pub transport: Transport,
}

/// Runs `cuebook connect`; `executable` is the path that a client shall start for stdio.
pub fn run(args: &Args, executable: &Path, out: &mut impl Write) -> anyhow::Result<()> {
    let Some(client) = args.client else {
        return Ok(write!(out, "{}", list())?);
    };
    let target = target(args, executable)?;
    Ok(write!(out, "{}", configuration(client, &target))?)
}

/// Reads the flags: completes the address, makes paths absolute, since a client starts programs from
/// anywhere, and refuses names that some clients would fold or choke on.
pub fn target(args: &Args, executable: &Path) -> anyhow::Result<Target> {
    let fits = |c: char| c.is_ascii_alphanumeric() || c == '-' || c == '_';
    ensure!(
        (1..=40).contains(&args.name.len()) && args.name.chars().all(fits),
        "`{}` cannot name a server: use up to 40 of a-z, 0-9, - and _",
        args.name
    );
    let library = args.library.as_deref().map(absolute).transpose()?;
    // A library on disk has no address, so nothing but stdio leads to it.
    let transport = if library.is_some() {
        Transport::Stdio
    } else {
        args.transport
    };
    Ok(Target {
        name: args.name.clone(),
        url: endpoint::parse(&args.url)?.into(),
        library,
        executable: absolute(executable)?,
        transport,
    })
}

fn absolute(path: &Path) -> anyhow::Result<String> {
    let full = std::path::absolute(path).with_context(|| format!("`{}`", path.display()))?;
    let text = full.into_os_string().into_string();
    text.ok().with_context(|| {
        format!(
            "`{}` is not valid Unicode, so no configuration can name it",
            path.display()
        )
    })
}

/// The clients and what to type for each.
pub fn list() -> String {
    let mut text = String::from("Prints how to connect a client. Clients:\n\n");
    for client in Client::all() {
        let _ = writeln!(
            text,
            "  cuebook connect {:<15} {}",
            client.id(),
            connect::title(*client)
        );
    }
    text.push_str(
        "\nAny other MCP client: Streamable HTTP at http://127.0.0.1:8400/mcp, or start `cuebook stdio`.\n",
    );
    text
}

/// The text that `cuebook connect` prints for `client`.
pub fn configuration(client: Client, target: &Target) -> String {
    let guide = connect::guide(client, target);
    // A client that knows one way only gets that one, whatever was asked for.
    let only = !guide.ways.iter().any(|way| target.wants(way.transport));
    let mut text = format!("{}\n", guide.title);
    for transport in [Transport::Http, Transport::Stdio] {
        let ways: Vec<&Way> = guide
            .ways
            .iter()
            .filter(|way| way.transport == transport)
            .collect();
        if ways.is_empty() || !(only || target.wants(transport)) {
            continue;
        }
        let heading = match (transport, &target.library) {
            (Transport::Http, _) => "HTTP: the client talks to the server",
            (_, Some(_)) => "stdio: the client starts cuebook, which reads the library from disk",
            (_, None) => {
                "stdio: the client starts cuebook, which talks to the server and keeps the lists while it is away"
            }
        };
        let _ = write!(text, "\n== {heading}\n");
        for way in ways {
            let _ = write!(text, "\n{}:\n", way.what);
            for (system, path) in &way.places {
                let _ = writeln!(text, "  {system:<12} {path}");
            }
            let _ = write!(text, "\n{}\n", way.block.text.trim_end());
        }
    }
    let _ = write!(text, "\n== Use\n\n{}\n", guide.using);
    if !guide.limits.is_empty() {
        text.push_str("\n== Good to know\n\n");
        for limit in &guide.limits {
            let _ = writeln!(text, "- {limit}");
        }
    }
    text
}

#[cfg(test)]
mod tests;
