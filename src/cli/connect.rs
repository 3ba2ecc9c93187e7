//! `cuebook connect CLIENT`: the configuration that makes a client use this library.
//!
//! Prints, changes nothing. What each client is called, wants and lacks stands in `clients`; how its
//! files are written in `document`.

mod clients;
pub(super) mod document;

use std::fmt::Write as _;
use std::io::Write;
use std::path::{Path, PathBuf};

use anyhow::{Context, ensure};
use clap::ValueEnum;

use super::endpoint;
use document::Block;

/// The clients whose configuration is known.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum Client {
    /// Claude Code.
    ClaudeCode,
    /// Claude Desktop.
    ClaudeDesktop,
    /// Visual Studio Code with GitHub Copilot.
    #[value(name = "vscode")]
    VsCode,
    /// Cursor.
    Cursor,
    /// Zed.
    Zed,
    /// Gemini CLI.
    GeminiCli,
    /// opencode.
    Opencode,
    /// Codex: CLI, IDE extension and app.
    Codex,
    /// Continue.
    Continue,
    /// goose.
    Goose,
    /// JetBrains AI Assistant and Junie.
    Jetbrains,
}

/// Which way of reaching the library to print.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, ValueEnum)]
pub enum Transport {
    /// The client talks to the server itself.
    Http,
    /// The client starts `cuebook stdio`.
    Stdio,
    /// Both, for choosing.
    #[default]
    Both,
}

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
    let target = Target::of(args, executable)?;
    Ok(write!(out, "{}", configuration(client, &target))?)
}

/// What a client shall be connected to. All texts are ready to be quoted, none is quoted yet.
#[derive(Debug, Clone)]
pub struct Target {
    /// What the client calls the server.
    pub name: String,
    /// The MCP endpoint.
    pub url: String,
    /// A library on disk that stdio serves; without it stdio leads to `url`.
    pub library: Option<String>,
    /// The `cuebook` to start for stdio.
    pub executable: String,
    /// Which ways to print.
    pub transport: Transport,
}

impl Target {
    /// Reads the flags: completes the address, makes paths absolute, since a client starts programs from
    /// anywhere, and refuses names that some clients would fold or choke on.
    pub fn of(args: &Args, executable: &Path) -> anyhow::Result<Self> {
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
        Ok(Self {
            name: args.name.clone(),
            url: endpoint::parse(&args.url)?.into(),
            library,
            executable: absolute(executable)?,
            transport,
        })
    }

    fn wants(&self, transport: Transport) -> bool {
        self.transport == transport || self.transport == Transport::Both
    }

    /// What follows the executable's name.
    fn arguments(&self) -> Vec<String> {
        let (flag, value) = match &self.library {
            Some(library) => ("--library", library),
            None => ("--server", &self.url),
        };
        ["stdio", flag, value].map(str::to_owned).to_vec()
    }
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
    for client in Client::value_variants() {
        let _ = writeln!(
            text,
            "  cuebook connect {:<15} {}",
            name(*client),
            clients::title(*client)
        );
    }
    text.push_str(
        "\nAny other MCP client: Streamable HTTP at http://127.0.0.1:8400/mcp, or start `cuebook stdio`.\n",
    );
    text
}

fn name(client: Client) -> String {
    client
        .to_possible_value()
        .map_or_else(String::new, |value| value.get_name().to_owned())
}

/// Everything there is to say to someone who connects one client.
struct Guide {
    title: &'static str,
    ways: Vec<Way>,
    /// How a prompt is called up there.
    using: String,
    /// What the client does not do, or does otherwise than people expect.
    limits: Vec<String>,
}

/// One thing to do: a command to run or a piece of a file.
struct Way {
    transport: Transport,
    /// What to do with the block, without the colon.
    what: String,
    /// Where the file is, by system.
    places: Vec<(&'static str, String)>,
    block: Block,
}

/// The text that `cuebook connect` prints for `client`.
pub fn configuration(client: Client, target: &Target) -> String {
    let guide = clients::guide(client, target);
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
