//! `cuebook usage`: what is used, what is not, what fails more than it did.

use std::io::Write;
use std::process::ExitCode;

use serde::Deserialize;
use serde_json::{Value, json};

use super::serve::ConfigArgs;
use super::service::Service;
use crate::prompt::visible::visible;
use crate::records::report::{Counts, Usage};

/// Arguments of `cuebook usage`.
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Counted are prompts/get and the tool get_prompt, by prompt, version, client and day (UTC). Argument values and rendered
text are never kept, except the values of arguments that say `values: { recent: true }`: --erase-values forgets those.")]
pub(super) struct Args {
    /// How many days to look at, today included
    #[arg(long, default_value_t = 30, value_parser = clap::value_parser!(u32).range(1..=36_500))]
    days: u32,
    /// Only this prompt, with its versions and clients
    #[arg(long, value_name = "NAME")]
    prompt: Option<String>,
    /// Only the names of the prompts that nobody got
    #[arg(long)]
    unused: bool,
    /// Print JSON
    #[arg(long)]
    json: bool,
    /// Forget the values that colleagues used: all, those of a prompt, or those of one of its arguments
    #[arg(long, num_args = 0..=2, value_names = ["NAME", "ARGUMENT"])]
    erase_values: Option<Vec<String>>,
    #[command(flatten)]
    config: ConfigArgs,
}

#[derive(Deserialize)]
struct Answer {
    from: String,
    to: String,
    #[serde(flatten)]
    usage: Usage,
}

pub(super) fn run(args: &Args, out: &mut impl Write) -> anyhow::Result<ExitCode> {
    let service = Service::open(&args.config)?;
    if let Some(which) = &args.erase_values {
        let ask = json!({ "prompt": which.first(), "argument": which.get(1) });
        let answer: Value = service.post("/api/v1/usage/erase-values", &ask)?;
        let erased = answer["erased"].as_u64().unwrap_or_default();
        writeln!(
            out,
            "erased {erased} {}",
            if erased == 1 { "value" } else { "values" }
        )?;
        return Ok(ExitCode::SUCCESS);
    }
    let days = args.days.to_string();
    let mut query = vec![("days", days.as_str())];
    if let Some(prompt) = &args.prompt {
        query.push(("prompt", prompt));
    }
    if args.json {
        service.copy("/api/v1/usage", &query, out)?;
        writeln!(out)?;
        return Ok(ExitCode::SUCCESS);
    }
    let Answer { from, to, usage } = service.all("/api/v1/usage", &query, "prompts")?;
    if args.unused {
        for name in &usage.unused {
            writeln!(out, "{name}")?;
        }
        return Ok(ExitCode::SUCCESS);
    }
    writeln!(out, "{from} to {to}, UTC\n")?;
    out.write_all(b"    gets  failed refused   picks   p50 ms   p95 ms  prompt\n")?;
    for prompt in &usage.prompts {
        line(out, &prompt.all, &prompt.prompt)?;
        if args.prompt.is_none() {
            continue;
        }
        for version in &prompt.versions {
            let name = version
                .version
                .map_or("  version unknown".to_owned(), |n| format!("  v{n}"));
            line(out, &version.all, &name)?;
        }
        for client in &prompt.clients {
            let name = format!("{} {}", client.client, client.version);
            writeln!(out, "{:>8}  by {}", client.gets, visible(name.trim()))?;
        }
    }
    for rising in &usage.rising {
        writeln!(
            out,
            "\n{} fails more since v{}: {:.0} of 100 calls, {:.0} in v{}",
            rising.prompt, rising.version, rising.percent, rising.percent_before, rising.before
        )?;
    }
    if !usage.unused.is_empty() {
        writeln!(out, "\nnot used: {}", usage.unused.join(", "))?;
    }
    if usage.lost_calls + usage.lost_deliveries > 0 {
        writeln!(
            out,
            "\nlost under pressure: {} calls are not counted here, {} deliveries have no row",
            usage.lost_calls, usage.lost_deliveries
        )?;
    }
    Ok(ExitCode::SUCCESS)
}

fn line(out: &mut impl Write, counts: &Counts, name: &str) -> std::io::Result<()> {
    let ms = |value: Option<f64>| value.map_or("-".to_owned(), |ms| format!("{ms:.1}"));
    writeln!(
        out,
        "{:>8} {:>7} {:>7} {:>7} {:>8} {:>8}  {name}",
        counts.gets,
        counts.failed,
        counts.refused,
        counts.picks,
        ms(counts.p50_ms),
        ms(counts.p95_ms)
    )
}
