//! `cuebook token`: makes, lists and revokes tokens.

use std::io::Write;
use std::process::ExitCode;

use serde::Deserialize;
use serde_json::{Value, json};

use super::serve::ConfigArgs;
use super::service::Service;
use crate::prompt::visible::visible;

/// What is done with tokens.
#[derive(Debug, clap::Subcommand)]
pub(super) enum Command {
    /// Make a token, which is shown once
    #[command(after_help = "\
A token goes into the header `Authorization: Bearer cbk_…`, to git as the password (any user name), and to
`cuebook stdio` in the environment variable CUEBOOK_TOKEN. It never belongs into an address.

  cuebook token create ana --label laptop
  cuebook token create ci --label deploy --role reader --path 'prompts/sre/**' --no-expiry")]
    Create(CreateArgs),
    /// List tokens: whose they are, what they may do, when they end and were last used
    List(ListArgs),
    /// Revoke a token at once, with what it has open
    Revoke(RevokeArgs),
}

/// Arguments of `cuebook token create`.
#[derive(Debug, clap::Args)]
pub(super) struct CreateArgs {
    /// The person or the service whose token it is
    name: String,
    /// What it is for, e.g. laptop
    #[arg(long, value_name = "TEXT", default_value = "cuebook token create")]
    label: String,
    /// The most it may do: reader, author, reviewer, publisher or admin [default: all that its owner may]
    #[arg(long)]
    role: Option<String>,
    /// Where it may do that, e.g. prompts/sre/**; may be repeated [default: everywhere]
    #[arg(long = "path", value_name = "PATH")]
    paths: Vec<String>,
    /// When it ends, e.g. 90d [default: as the settings say]
    #[arg(long, value_name = "DAYS", value_parser = days, conflicts_with = "no_expiry")]
    expires: Option<u32>,
    /// It never ends by itself; only for services
    #[arg(long)]
    no_expiry: bool,
    #[command(flatten)]
    config: ConfigArgs,
}

/// Arguments of `cuebook token list`.
#[derive(Debug, clap::Args)]
pub(super) struct ListArgs {
    /// Only the tokens of this person or service
    name: Option<String>,
    /// Also those that let nobody in any more
    #[arg(long)]
    all: bool,
    /// Print JSON
    #[arg(long)]
    json: bool,
    #[command(flatten)]
    config: ConfigArgs,
}

/// Arguments of `cuebook token revoke`.
#[derive(Debug, clap::Args)]
pub(super) struct RevokeArgs {
    /// What the token begins with, as the list shows it
    prefix: String,
    #[command(flatten)]
    config: ConfigArgs,
}

/// `90d`, or `90`.
fn days(text: &str) -> Result<u32, String> {
    text.strip_suffix('d')
        .unwrap_or(text)
        .parse()
        .map_err(|_| "must be a number of days, such as 90d".to_owned())
}

#[derive(Deserialize)]
struct Made {
    token: String,
    prefix: String,
    owner: String,
    expires: Option<String>,
    notes: Vec<String>,
}

#[derive(Deserialize)]
struct Tokens {
    tokens: Vec<Token>,
}

#[derive(Deserialize)]
struct Token {
    prefix: String,
    owner: String,
    label: String,
    role: Option<String>,
    paths: Vec<String>,
    expires: Option<String>,
    revoked: Option<String>,
    used: Option<String>,
    live: bool,
}

/// The day of a time.
fn day(time: &str) -> &str {
    time.get(..10).unwrap_or(time)
}

pub(super) fn run(command: &Command, out: &mut impl Write) -> anyhow::Result<ExitCode> {
    match command {
        Command::Create(args) => create(args, out),
        Command::List(args) => list(args, out),
        Command::Revoke(args) => {
            let service = Service::open(&args.config)?;
            let prefix: String = args.prefix.chars().take(12).collect();
            if !prefix
                .chars()
                .all(|c| c.is_ascii_alphanumeric() || c == '_')
            {
                anyhow::bail!(
                    "a token begins with cbk_ and letters; cuebook token list shows them"
                );
            }
            let path = format!("/api/v1/access/tokens/{prefix}/revoke");
            let _: Value = service.post(&path, &json!({}))?;
            writeln!(out, "revoked {prefix}: it lets nobody in any more")?;
            Ok(ExitCode::SUCCESS)
        }
    }
}

fn create(args: &CreateArgs, out: &mut impl Write) -> anyhow::Result<ExitCode> {
    let service = Service::open(&args.config)?;
    let ask = json!({
        "owner": args.name,
        "label": args.label,
        "role": args.role,
        "paths": args.paths,
        "expires_days": args.expires,
        "no_expiry": args.no_expiry,
    });
    let made: Made = service.post("/api/v1/access/tokens", &ask)?;
    let ends = match &made.expires {
        Some(time) => format!("ends on {}", day(time)),
        None => "does not end".to_owned(),
    };
    writeln!(out, "{}\n", made.token)?;
    writeln!(
        out,
        "This is {}, a token of {}; it {ends}. It is shown this once: keep it where passwords are kept.",
        made.prefix,
        visible(&made.owner)
    )?;
    for note in &made.notes {
        writeln!(out, "note: {}", visible(note))?;
    }
    Ok(ExitCode::SUCCESS)
}

fn list(args: &ListArgs, out: &mut impl Write) -> anyhow::Result<ExitCode> {
    let service = Service::open(&args.config)?;
    let query: Vec<(&str, &str)> = args.name.iter().map(|name| ("of", &**name)).collect();
    if args.json {
        service.copy("/api/v1/access/tokens", &query, out)?;
        writeln!(out)?;
        return Ok(ExitCode::SUCCESS);
    }
    let Tokens { tokens } = service.all("/api/v1/access/tokens", &query, "tokens")?;
    let shown: Vec<&Token> = tokens
        .iter()
        .filter(|token| args.all || token.live)
        .collect();
    for token in &shown {
        write!(
            out,
            "{}  {}  {}",
            token.prefix,
            visible(&token.owner),
            visible(&token.label)
        )?;
        if let Some(role) = &token.role {
            write!(out, "; at most {role}")?;
        }
        if !token.paths.is_empty() {
            write!(out, "; at {}", visible(&token.paths.join(", ")))?;
        }
        match (&token.revoked, &token.expires) {
            (Some(time), _) => write!(out, "; revoked on {}", day(time))?,
            (None, Some(time)) if token.live => write!(out, "; ends on {}", day(time))?,
            (None, Some(time)) => write!(out, "; ended on {}", day(time))?,
            (None, None) => write!(out, "; does not end")?,
        }
        match &token.used {
            Some(time) => writeln!(out, "; last used on {}", day(time))?,
            None => writeln!(out, "; never used")?,
        }
    }
    if shown.is_empty() {
        writeln!(out, "no tokens; make one: cuebook token create NAME")?;
    }
    Ok(ExitCode::SUCCESS)
}
