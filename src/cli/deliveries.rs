//! `cuebook deliveries`: which text was used when, with which runbook.

use std::io::Write;
use std::process::ExitCode;

use serde::Deserialize;

use super::serve::ConfigArgs;
use super::service::Service;
use crate::prompt::visible::visible;

/// Arguments of `cuebook deliveries`.
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Times are UTC, or say otherwise: 2026-11-30, 2026-11-30T03:12, 2026-11-30T12:12+09:00. `--at 2026-11-30T03:12` shows what
was delivered in that minute and before it, newest first. Argument values and rendered text are not kept.")]
pub(super) struct Args {
    /// Up to this time, newest first
    #[arg(long, value_name = "TIME")]
    at: Option<String>,
    /// Not before this time
    #[arg(long, value_name = "TIME")]
    from: Option<String>,
    /// Only of this prompt
    #[arg(long, value_name = "NAME")]
    prompt: Option<String>,
    /// Only to this person or program
    #[arg(long, value_name = "NAME")]
    actor: Option<String>,
    /// Only to this client, as it calls itself
    #[arg(long, value_name = "NAME")]
    client: Option<String>,
    /// How many at most
    #[arg(long, default_value_t = 20, value_parser = clap::value_parser!(u32).range(1..=1000))]
    limit: u32,
    /// Print JSON
    #[arg(long)]
    json: bool,
    #[command(flatten)]
    config: ConfigArgs,
}

#[derive(Deserialize)]
struct Answer {
    deliveries: Vec<Delivery>,
    next_cursor: Option<String>,
}

#[derive(Deserialize)]
struct Delivery {
    at: String,
    times: i64,
    actor: String,
    client: String,
    client_version: String,
    via: String,
    placeholder: bool,
    prompt: String,
    version: Option<i64>,
    commit: Option<String>,
    path: String,
    sha256: String,
    resources_commit: Option<String>,
    resources: Vec<Resource>,
}

#[derive(Deserialize)]
struct Resource {
    uri: String,
    path: String,
    sha256: String,
}

pub(super) fn run(args: &Args, out: &mut impl Write) -> anyhow::Result<ExitCode> {
    let service = Service::open(&args.config)?;
    let limit = args.limit.to_string();
    let mut query = vec![("limit", limit.as_str())];
    for (name, value) in [
        ("at", &args.at),
        ("from", &args.from),
        ("prompt", &args.prompt),
        ("actor", &args.actor),
        ("client", &args.client),
    ] {
        query.extend(value.as_deref().map(|value| (name, value)));
    }
    if args.json {
        service.copy("/api/v1/deliveries", &query, out)?;
        writeln!(out)?;
        return Ok(ExitCode::SUCCESS);
    }
    let answer: Answer = service.get("/api/v1/deliveries", &query)?;
    if answer.deliveries.is_empty() {
        writeln!(out, "nothing was delivered then")?;
    }
    for delivery in &answer.deliveries {
        let version = delivery.version.map_or(String::new(), |n| format!(" v{n}"));
        let client = format!("{} {}", delivery.client, delivery.client_version);
        let client = match client.trim() {
            "" => "a client without a name".to_owned(),
            client => visible(client).into_owned(),
        };
        writeln!(
            out,
            "{}  {}{version}  to {} by {client}{}{}{}",
            delivery.at,
            delivery.prompt,
            delivery.actor,
            if delivery.via == "tool" {
                ", as a tool"
            } else {
                ""
            },
            if delivery.placeholder {
                ", which put the arguments in by itself"
            } else {
                ""
            },
            match delivery.times {
                1 => String::new(),
                times => format!(", {times} times in that second"),
            }
        )?;
        let from = |commit: &Option<String>, path: &str, sha256: &str| match commit {
            Some(commit) => format!("git show {commit}:{path}   sha256 {sha256}"),
            None => format!("{path}   sha256 {sha256}"),
        };
        let text = from(&delivery.commit, &delivery.path, &delivery.sha256);
        writeln!(out, "    {text}")?;
        for resource in &delivery.resources {
            writeln!(
                out,
                "    with {}: {}",
                resource.uri,
                from(&delivery.resources_commit, &resource.path, &resource.sha256)
            )?;
        }
    }
    if answer.next_cursor.is_some() {
        writeln!(out, "there are more: --limit, --from")?;
    }
    Ok(ExitCode::SUCCESS)
}
