//! Every setting: its name with the unit, what it means, how it is read from text and shown, in one place each.

use std::time::Duration;

use crate::mcp::clients::Inline;
use crate::prompt::limits::{MOST_ELIF, MOST_INCLUDE_DEPTH};
use crate::upstream::Mode;

use super::{Config, HIDDEN, Secret};

const MIB: usize = 1024 * 1024;

/// One setting.
#[derive(Debug)]
pub struct Key {
    /// Its name in `config.toml`, e.g. `limits.output_bytes`.
    pub name: &'static str,
    /// What it means, for people.
    pub meaning: &'static str,
    /// Sets it from text, or says what is wrong with the text.
    pub(super) set: fn(&mut Config, &str) -> Result<(), String>,
    /// Its value as text; empty where it is not set.
    pub(super) get: fn(&Config) -> String,
}

/// Every setting but those of access and the network, in the order in which they are shown.
pub(super) static KEYS: &[Key] = &[
    Key {
        name: "listen",
        meaning: "address and port to listen on",
        set: |c, value| {
            c.listen = value
                .parse()
                .map_err(|_| "must be ADDRESS:PORT, like 127.0.0.1:8400".to_owned())?;
            Ok(())
        },
        get: |c| c.listen.to_string(),
    },
    Key {
        name: "public_url",
        meaning: "address that clients use, for links and allowed hosts",
        set: |c, value| {
            crate::http::Allowed::new(Some(value)).map_err(|e| e.to_string())?;
            c.public_url = Some(value.trim_end_matches('/').to_owned());
            Ok(())
        },
        get: |c| c.public_url.clone().unwrap_or_default(),
    },
    Key {
        name: "log",
        meaning: "what is logged: error, warn, info, debug, or directives",
        set: |c, value| {
            value.clone_into(&mut c.log);
            Ok(())
        },
        get: |c| c.log.clone(),
    },
    Key {
        name: "notify_body_edits",
        meaning: "whether an edit of a prompt's text alone is told to clients",
        set: |c, value| {
            c.notify_body_edits = flag(value)?;
            Ok(())
        },
        get: |c| c.notify_body_edits.to_string(),
    },
    Key {
        name: "mcp.tools",
        meaning: "whether prompts are offered as tools too",
        set: |c, value| {
            c.tools = flag(value)?;
            Ok(())
        },
        get: |c| c.tools.to_string(),
    },
    Key {
        name: "mcp.inline_resources",
        meaning: "embedded resources put into text: auto, always or never",
        set: |c, value| {
            c.inline_resources = match value {
                "auto" => Inline::Auto,
                "always" => Inline::Always,
                "never" => Inline::Never,
                _ => return Err("must be auto, always or never".into()),
            };
            Ok(())
        },
        get: |c| {
            match c.inline_resources {
                Inline::Auto => "auto",
                Inline::Always => "always",
                Inline::Never => "never",
            }
            .into()
        },
    },
    Key {
        name: "mcp.neutralise",
        meaning: "whether text that a client would execute is made inert in argument values",
        set: |c, value| {
            c.neutralise = flag(value)?;
            Ok(())
        },
        get: |c| c.neutralise.to_string(),
    },
    Key {
        name: "mcp.page_size",
        meaning: "entries on one page of a list",
        set: |c, value| {
            c.page_size = number(value, 1, 10_000)?;
            Ok(())
        },
        get: |c| c.page_size.to_string(),
    },
    Key {
        name: "mcp.message_bytes",
        meaning: "longest message of a client",
        set: |c, value| {
            c.message_bytes = number(value, 1, 256 * MIB)?;
            Ok(())
        },
        get: |c| c.message_bytes.to_string(),
    },
    Key {
        name: "mcp.max_streams",
        meaning: "open streams of all clients together",
        set: |c, value| {
            c.max_streams = number(value, 0, 1_000_000)?;
            Ok(())
        },
        get: |c| c.max_streams.to_string(),
    },
    Key {
        name: "mcp.keep_alive_seconds",
        meaning: "time between two comments on a silent stream",
        set: |c, value| {
            c.keep_alive_seconds = number(value, 1, 3600)?;
            Ok(())
        },
        get: |c| c.keep_alive_seconds.to_string(),
    },
    Key {
        name: "git.max_push_bytes",
        meaning: "largest push, decompressed",
        set: |c, value| {
            c.git.max_push_bytes = number(value, 1, 1 << 40)?;
            Ok(())
        },
        get: |c| c.git.max_push_bytes.to_string(),
    },
    Key {
        name: "git.max_pushes",
        meaning: "pushes at a time",
        set: |c, value| {
            c.git.pushes = number(value, 1, 1000)?;
            Ok(())
        },
        get: |c| c.git.pushes.to_string(),
    },
    Key {
        name: "git.max_fetches",
        meaning: "clones and fetches at a time",
        set: |c, value| {
            c.git.reads = number(value, 1, 1000)?;
            Ok(())
        },
        get: |c| c.git.reads.to_string(),
    },
    Key {
        name: "git.queue_length",
        meaning: "pushes, and fetches, that wait for their turn; more are refused",
        set: |c, value| {
            c.git.queue = number(value, 0, 100_000)?;
            Ok(())
        },
        get: |c| c.git.queue.to_string(),
    },
    Key {
        name: "git.queue_wait_seconds",
        meaning: "how long they wait",
        set: |c, value| {
            c.git.queue_wait = seconds(value)?;
            Ok(())
        },
        get: |c| c.git.queue_wait.as_secs().to_string(),
    },
    Key {
        name: "git.idle_seconds",
        meaning: "time without a byte after which a push or fetch ends",
        set: |c, value| {
            c.git.idle = seconds(value)?;
            Ok(())
        },
        get: |c| c.git.idle.as_secs().to_string(),
    },
    Key {
        name: "git.protected_branches",
        meaning: "branches beside main that may not be rewound or deleted, e.g. release/*",
        set: |c, value| {
            c.protected_branches = value
                .split(',')
                .map(|name| name.trim().to_owned())
                .filter(|name| !name.is_empty())
                .collect();
            Ok(())
        },
        get: |c| c.protected_branches.join(","),
    },
    Key {
        name: "upstream.url",
        meaning: "repository that this library follows, e.g. https://git.example.com/team/prompts.git",
        set: |c, value| {
            c.upstream.url = remote_url(value)?;
            Ok(())
        },
        get: |c| c.upstream.url.clone().unwrap_or_default(),
    },
    Key {
        name: "upstream.branch",
        meaning: "branch of it that is served",
        set: |c, value| {
            value.clone_into(&mut c.upstream.branch);
            Ok(())
        },
        get: |c| c.upstream.branch.clone(),
    },
    Key {
        name: "upstream.mode",
        meaning: "follow: pushes here are refused; propose: proposals go there as branches",
        set: |c, value| {
            c.upstream.mode = match value {
                "follow" => Mode::Follow,
                "propose" => Mode::Propose,
                _ => return Err("must be follow or propose".into()),
            };
            Ok(())
        },
        get: |c| c.upstream.mode.as_str().into(),
    },
    Key {
        name: "upstream.username",
        meaning: "name that goes with the token",
        set: |c, value| {
            value.clone_into(&mut c.upstream.username);
            Ok(())
        },
        get: |c| c.upstream.username.clone(),
    },
    Key {
        name: "upstream.token",
        meaning: "token for http and https; better in a file",
        set: |c, value| {
            c.upstream.token = secret(value);
            Ok(())
        },
        get: |c| hidden(c.upstream.token.as_ref()),
    },
    Key {
        name: "upstream.token_file",
        meaning: "file that holds the token",
        set: |c, value| {
            c.upstream.token = secret_file(value)?;
            Ok(())
        },
        get: |c| hidden(c.upstream.token.as_ref()),
    },
    Key {
        name: "upstream.poll_seconds",
        meaning: "time between two fetches",
        set: |c, value| {
            c.upstream.poll_seconds = number(value, 1, 86_400)?;
            Ok(())
        },
        get: |c| c.upstream.poll_seconds.to_string(),
    },
    Key {
        name: "upstream.webhook_secret",
        meaning: "secret of the webhook that the forge sends to /hooks/upstream",
        set: |c, value| {
            c.upstream.webhook_secret = secret(value);
            Ok(())
        },
        get: |c| hidden(c.upstream.webhook_secret.as_ref()),
    },
    Key {
        name: "upstream.webhook_secret_file",
        meaning: "file that holds that secret",
        set: |c, value| {
            c.upstream.webhook_secret = secret_file(value)?;
            Ok(())
        },
        get: |c| hidden(c.upstream.webhook_secret.as_ref()),
    },
    Key {
        name: "limits.prompt_file_bytes",
        meaning: "a prompt, partial, cuebook.toml or labels.toml",
        set: |c, value| {
            c.limits.prompt_file_bytes = number(value, 1, 16 * MIB)?;
            Ok(())
        },
        get: |c| c.limits.prompt_file_bytes.to_string(),
    },
    Key {
        name: "limits.front_matter_bytes",
        meaning: "the front matter of a prompt",
        set: |c, value| {
            c.limits.front_matter_bytes = number(value, 1, MIB)?;
            Ok(())
        },
        get: |c| c.limits.front_matter_bytes.to_string(),
    },
    Key {
        name: "limits.closure_bytes",
        meaning: "a prompt with everything it includes",
        set: |c, value| {
            c.limits.closure_bytes = number(value, 1, 64 * MIB)?;
            Ok(())
        },
        get: |c| c.limits.closure_bytes.to_string(),
    },
    Key {
        name: "limits.closure_files",
        meaning: "files of a prompt with everything it includes",
        set: |c, value| {
            c.limits.closure_files = number(value, 1, 1000)?;
            Ok(())
        },
        get: |c| c.limits.closure_files.to_string(),
    },
    Key {
        name: "limits.resource_file_bytes",
        meaning: "the file of a resource",
        set: |c, value| {
            c.limits.resource_file_bytes = number(value, 1, 64 * MIB)?;
            Ok(())
        },
        get: |c| c.limits.resource_file_bytes.to_string(),
    },
    Key {
        name: "limits.values_file_bytes",
        meaning: "a values file",
        set: |c, value| {
            c.limits.values_file_bytes = number(value, 1, 64 * MIB)?;
            Ok(())
        },
        get: |c| c.limits.values_file_bytes.to_string(),
    },
    Key {
        name: "limits.arguments_bytes",
        meaning: "all argument values of one request",
        set: |c, value| {
            c.limits.arguments_bytes = number(value, 1, 64 * MIB)?;
            Ok(())
        },
        get: |c| c.limits.arguments_bytes.to_string(),
    },
    Key {
        name: "limits.output_bytes",
        meaning: "the rendered text of one prompt",
        set: |c, value| {
            c.limits.output_bytes = number(value, 1, 64 * MIB)?;
            Ok(())
        },
        get: |c| c.limits.output_bytes.to_string(),
    },
    Key {
        name: "limits.arguments_count",
        meaning: "arguments that a prompt declares",
        set: |c, value| {
            c.limits.arguments_count = number(value, 0, 1000)?;
            Ok(())
        },
        get: |c| c.limits.arguments_count.to_string(),
    },
    Key {
        name: "limits.examples_count",
        meaning: "examples that a prompt has",
        set: |c, value| {
            c.limits.examples_count = number(value, 0, 10_000)?;
            Ok(())
        },
        get: |c| c.limits.examples_count.to_string(),
    },
    Key {
        name: "limits.elif_count",
        meaning: "`elif` arms in one file; more than 256 the engine does not survive",
        set: |c, value| {
            c.limits.elif_count = number(value, 0, MOST_ELIF)?;
            Ok(())
        },
        get: |c| c.limits.elif_count.to_string(),
    },
    Key {
        name: "limits.includes_count",
        meaning: "texts that the includes of a prompt put together, each counted wherever it stands",
        set: |c, value| {
            c.limits.includes_count = number(value, 1, 10_000)?;
            Ok(())
        },
        get: |c| c.limits.includes_count.to_string(),
    },
    Key {
        name: "limits.include_depth",
        meaning: "partials inside partials; more than 40 the engine may not survive",
        set: |c, value| {
            c.limits.include_depth = number(value, 1, MOST_INCLUDE_DEPTH)?;
            Ok(())
        },
        get: |c| c.limits.include_depth.to_string(),
    },
    Key {
        name: "limits.fast_lane_steps",
        meaning: "constructs that a render outside of the workers may run",
        set: |c, value| {
            c.limits.fast_lane_steps = number(value, 0, 1_000_000)?;
            Ok(())
        },
        get: |c| c.limits.fast_lane_steps.to_string(),
    },
    Key {
        name: "limits.fast_lane_work_bytes",
        meaning: "bytes that a render outside of the workers may go over",
        set: |c, value| {
            c.limits.fast_lane_work_bytes = number(value, 0, 256 << 20)?;
            Ok(())
        },
        get: |c| c.limits.fast_lane_work_bytes.to_string(),
    },
    Key {
        name: "limits.check_arguments_bytes",
        meaning: "arguments, all together, with which a prompt must render to be published",
        set: |c, value| {
            c.limits.check_arguments_bytes = number(value, 1, 64 * MIB)?;
            Ok(())
        },
        get: |c| c.limits.check_arguments_bytes.to_string(),
    },
    Key {
        name: "rendering.workers",
        meaning: "worker processes for templates outside of the fast lane",
        set: |c, value| {
            c.rendering.workers = number(value, 1, 256)?;
            Ok(())
        },
        get: |c| c.rendering.workers.to_string(),
    },
    Key {
        name: "rendering.worker_renders",
        meaning: "renders of a worker before it is replaced",
        set: |c, value| {
            c.rendering.worker_renders = number(value, 1, 1_000_000)?;
            Ok(())
        },
        get: |c| c.rendering.worker_renders.to_string(),
    },
    Key {
        name: "rendering.worker_memory_bytes",
        meaning: "memory of a worker",
        set: |c, value| {
            c.rendering.memory_bytes = number(value, 16 << 20, 16 << 30)?;
            Ok(())
        },
        get: |c| c.rendering.memory_bytes.to_string(),
    },
    Key {
        name: "rendering.worker_cpu_ms",
        meaning: "CPU time of one render in a worker",
        set: |c, value| {
            c.rendering.cpu_ms = number(value, 10, 60_000)?;
            Ok(())
        },
        get: |c| c.rendering.cpu_ms.to_string(),
    },
    Key {
        name: "rendering.worker_wall_ms",
        meaning: "time by the clock of one render in a worker",
        set: |c, value| {
            c.rendering.wall_ms = number(value, 10, 600_000)?;
            Ok(())
        },
        get: |c| c.rendering.wall_ms.to_string(),
    },
    Key {
        name: "rendering.queue_length",
        meaning: "renders that wait for a worker",
        set: |c, value| {
            c.rendering.queue_length = number(value, 1, 100_000)?;
            Ok(())
        },
        get: |c| c.rendering.queue_length.to_string(),
    },
    Key {
        name: "rendering.queue_wait_ms",
        meaning: "time that a render waits for a worker",
        set: |c, value| {
            c.rendering.queue_wait_ms = number(value, 1, 600_000)?;
            Ok(())
        },
        get: |c| c.rendering.queue_wait_ms.to_string(),
    },
    Key {
        name: "rendering.check_cpu_ms",
        meaning: "CPU time of all renders of one check: of a push, of `cuebook check`",
        set: |c, value| {
            c.rendering.check_cpu_ms = number(value, 10, 3_600_000)?;
            Ok(())
        },
        get: |c| c.rendering.check_cpu_ms.to_string(),
    },
    Key {
        name: "rendering.caller_cpu_ms_per_minute",
        meaning: "CPU time in workers of all requests of one address in a minute",
        set: |c, value| {
            c.rendering.caller_cpu_ms_per_minute = number(value, 1, 60_000_000)?;
            Ok(())
        },
        get: |c| c.rendering.caller_cpu_ms_per_minute.to_string(),
    },
    Key {
        name: "rendering.preview_cpu_ms_per_minute",
        meaning: "CPU time of all previews of one address in a minute",
        set: |c, value| {
            c.preview_cpu_ms_per_minute = number(value, 1, 60_000_000)?;
            Ok(())
        },
        get: |c| c.preview_cpu_ms_per_minute.to_string(),
    },
    Key {
        name: "rendering.preview_bytes",
        meaning: "a request for a preview",
        set: |c, value| {
            c.preview_bytes = number(value, 1, 64 * 1024 * 1024)?;
            Ok(())
        },
        get: |c| c.preview_bytes.to_string(),
    },
    Key {
        name: "rendering.unsafe_rendering",
        meaning: "whether templates may be rendered where workers cannot be shut off",
        set: |c, value| {
            c.rendering.unsafe_rendering = flag(value)?;
            Ok(())
        },
        get: |c| c.rendering.unsafe_rendering.to_string(),
    },
    Key {
        name: "records.deliveries_days",
        meaning: "days that deliveries are kept",
        set: |c, value| {
            c.records.deliveries_days = number(value, 1, 36_500)?;
            Ok(())
        },
        get: |c| c.records.deliveries_days.to_string(),
    },
    Key {
        name: "records.deliveries_rows",
        meaning: "deliveries that are kept at most",
        set: |c, value| {
            c.records.deliveries_rows = number(value, 1000, 1_000_000_000)?;
            Ok(())
        },
        get: |c| c.records.deliveries_rows.to_string(),
    },
    Key {
        name: "records.usage_days",
        meaning: "days that use is kept",
        set: |c, value| {
            c.records.usage_days = number(value, 1, 36_500)?;
            Ok(())
        },
        get: |c| c.records.usage_days.to_string(),
    },
    Key {
        name: "records.audit_days",
        meaning: "days that the audit is kept; 0 for ever",
        set: |c, value| {
            c.records.audit_days = number(value, 0, 36_500)?;
            Ok(())
        },
        get: |c| c.records.audit_days.to_string(),
    },
    Key {
        name: "records.values_days",
        meaning: "days that a value is offered after a colleague last used it",
        set: |c, value| {
            c.records.values_days = number(value, 1, 36_500)?;
            Ok(())
        },
        get: |c| c.records.values_days.to_string(),
    },
];

/// Every setting there is.
pub fn keys() -> impl Iterator<Item = &'static Key> {
    KEYS.iter()
        .chain(super::access::KEYS)
        .chain(super::network::KEYS)
}

/// The setting of a name.
pub(super) fn find(name: &str) -> Option<&'static Key> {
    keys().find(|key| key.name == name)
}

pub(super) fn number<T: std::str::FromStr + PartialOrd + std::fmt::Display + Copy>(
    value: &str,
    least: T,
    most: T,
) -> Result<T, String> {
    match value.parse::<T>() {
        Ok(n) if n >= least && n <= most => Ok(n),
        _ => Err(format!("must be a number from {least} to {most}")),
    }
}

/// A URL that git takes, with no secret in it.
fn remote_url(value: &str) -> Result<Option<String>, String> {
    if value.is_empty() {
        return Ok(None);
    }
    let authority = value
        .split_once("://")
        .map_or("", |(_, rest)| rest.split('/').next().unwrap_or_default());
    // a token stands there as a name too, and the URL is shown to everybody
    let scheme = value.split("://").next().unwrap_or_default();
    let is_http = scheme.eq_ignore_ascii_case("http") || scheme.eq_ignore_ascii_case("https");
    if let Some((user, _)) = authority.rsplit_once('@')
        && (is_http || user.contains(':'))
    {
        return Err(
            "must hold no name, password or token; set upstream.username and upstream.token_file"
                .into(),
        );
    }
    // `ext::` runs a command, and an option is no URL
    if value.starts_with('-') || value.contains("::") || value.chars().any(char::is_control) {
        return Err(
            "must be a URL of a repository: https://…, ssh://…, user@host:path, or a path".into(),
        );
    }
    Ok(Some(value.to_owned()))
}

pub(super) fn secret(value: &str) -> Option<Secret> {
    (!value.is_empty()).then(|| Secret(value.to_owned()))
}

/// Reads a secret from a file, whose last newline is no part of it.
pub(super) fn secret_file(path: &str) -> Result<Option<Secret>, String> {
    if path.is_empty() {
        return Ok(None);
    }
    secret_text(path).map(|text| secret(&text))
}

/// The same, where there must be one.
pub(super) fn secret_text(path: &str) -> Result<String, String> {
    let text = std::fs::read_to_string(path)
        .map_err(|error| format!("cannot be read: {path}: {error}"))?;
    let text = text.trim_end_matches(['\n', '\r']);
    if text.is_empty() {
        return Err(format!("{path} is empty"));
    }
    Ok(text.to_owned())
}

pub(super) fn hidden(value: Option<&Secret>) -> String {
    value.map_or_else(String::new, |_| HIDDEN.into())
}

fn seconds(value: &str) -> Result<Duration, String> {
    number(value, 1, 3600).map(Duration::from_secs)
}

pub(super) fn flag(value: &str) -> Result<bool, String> {
    value.parse().map_err(|_| "must be true or false".into())
}
