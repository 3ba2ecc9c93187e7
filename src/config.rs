//! Settings of the server: defaults, then `config.toml`, then the environment, then flags. Parsed once.
//!
//! Every key has a name with its unit, an environment variable (`limits.output_bytes` is
//! `CUEBOOK_LIMITS_OUTPUT_BYTES`) and an origin that `cuebook config show` tells.

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use crate::mcp::clients::Inline;
use crate::prompt::Limits;
use crate::prompt::problem::nearest;
use crate::upstream::{self, Mode};
use crate::workers::Renderer;

/// Everything that can be set.
#[derive(Debug, Clone)]
pub struct Config {
    /// Where to listen.
    pub listen: SocketAddr,
    /// The address clients use, when it is another than `listen`.
    pub public_url: Option<String>,
    /// What is logged.
    pub log: String,
    /// Whether an edit of a body alone is told to clients.
    pub notify_body_edits: bool,
    /// MCP: prompts as tools too.
    pub tools: bool,
    /// MCP: embedded resources put into text.
    pub inline_resources: Inline,
    /// MCP: text a client would execute made inert in argument values.
    pub neutralise: bool,
    /// MCP: entries on a page.
    pub page_size: usize,
    /// MCP: longest message.
    pub message_bytes: usize,
    /// MCP: open streams.
    pub max_streams: usize,
    /// MCP: time between two comments on a silent stream.
    pub keep_alive_seconds: u64,
    /// HTTP: connections at a time.
    pub max_connections: usize,
    /// git: how pushes and fetches are bounded.
    pub git: crate::git_http::Settings,
    /// git: branches beside main that may be neither rewound nor deleted.
    pub protected_branches: Vec<String>,
    /// upstream: the repository that the library follows, when it does.
    pub upstream: UpstreamConfig,
    /// This program, which git's hooks run again.
    pub program: PathBuf,
    /// Limits of the format and of a render.
    pub limits: Limits,
    /// Where templates are rendered, and what each render gets. Without an executable, workers are `program`.
    pub rendering: crate::workers::Settings,
    /// CPU time that the previews of one address have in a minute.
    pub preview_cpu_ms_per_minute: u64,
    /// Longest request for a preview.
    pub preview_bytes: usize,
    origins: BTreeMap<&'static str, Origin>,
}

/// Another repository to follow.
#[derive(Debug, Clone)]
pub struct UpstreamConfig {
    /// Where it is; none where the library follows nobody.
    pub url: Option<String>,
    /// The branch that is followed.
    pub branch: String,
    /// What happens to pushes.
    pub mode: Mode,
    /// The name that goes with the token.
    pub username: String,
    /// Lets the server in.
    pub token: Option<Secret>,
    /// What the forge signs its webhooks with.
    pub webhook_secret: Option<Secret>,
    /// Time between two fetches.
    pub poll_seconds: u64,
}

impl Default for UpstreamConfig {
    fn default() -> Self {
        Self {
            url: None,
            branch: "main".into(),
            mode: Mode::Follow,
            username: "git".into(),
            token: None,
            webhook_secret: None,
            poll_seconds: 60,
        }
    }
}

/// A value that is never shown.
#[derive(Clone)]
pub struct Secret(String);

impl std::fmt::Debug for Secret {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(HIDDEN)
    }
}

/// What is shown in the place of a secret.
const HIDDEN: &str = "(hidden)";

/// Where a value came from.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Origin {
    /// Nobody set it.
    Default,
    /// `config.toml`.
    File,
    /// An environment variable.
    Environment,
    /// A flag of the command.
    Flag,
}

/// Every problem of a configuration at once.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{}", .0.join("\n"))]
pub struct ConfigError(pub Vec<String>);

/// Keys with what they mean.
pub const KEYS: &[(&str, &str)] = &[
    ("listen", "address and port to listen on"),
    (
        "public_url",
        "address that clients use, for links and allowed hosts",
    ),
    (
        "log",
        "what is logged: error, warn, info, debug, or directives",
    ),
    (
        "notify_body_edits",
        "whether an edit of a prompt's text alone is told to clients",
    ),
    ("mcp.tools", "whether prompts are offered as tools too"),
    (
        "mcp.inline_resources",
        "embedded resources put into text: auto, always or never",
    ),
    (
        "mcp.neutralise",
        "whether text that a client would execute is made inert in argument values",
    ),
    ("mcp.page_size", "entries on one page of a list"),
    ("mcp.message_bytes", "longest message of a client"),
    ("mcp.max_streams", "open streams of all clients together"),
    (
        "mcp.keep_alive_seconds",
        "time between two comments on a silent stream",
    ),
    ("http.max_connections", "connections at a time"),
    ("git.max_push_bytes", "largest push, decompressed"),
    ("git.max_pushes", "pushes at a time"),
    ("git.max_fetches", "clones and fetches at a time"),
    (
        "git.queue_length",
        "pushes, and fetches, that wait for their turn; more are refused",
    ),
    ("git.queue_wait_seconds", "how long they wait"),
    (
        "git.idle_seconds",
        "time without a byte after which a push or fetch ends",
    ),
    (
        "git.protected_branches",
        "branches beside main that may not be rewound or deleted, e.g. release/*",
    ),
    (
        "upstream.url",
        "repository that this library follows, e.g. https://git.example.com/team/prompts.git",
    ),
    ("upstream.branch", "branch of it that is served"),
    (
        "upstream.mode",
        "follow: pushes here are refused; propose: proposals go there as branches",
    ),
    ("upstream.username", "name that goes with the token"),
    (
        "upstream.token",
        "token for http and https; better in a file",
    ),
    ("upstream.token_file", "file that holds the token"),
    ("upstream.poll_seconds", "time between two fetches"),
    (
        "upstream.webhook_secret",
        "secret of the webhook that the forge sends to /hooks/upstream",
    ),
    (
        "upstream.webhook_secret_file",
        "file that holds that secret",
    ),
    (
        "limits.prompt_file_bytes",
        "a prompt, partial, cuebook.toml or labels.toml",
    ),
    ("limits.front_matter_bytes", "the front matter of a prompt"),
    (
        "limits.closure_bytes",
        "a prompt with everything it includes",
    ),
    (
        "limits.closure_files",
        "files of a prompt with everything it includes",
    ),
    ("limits.resource_file_bytes", "a resource"),
    ("limits.values_file_bytes", "a values file"),
    (
        "limits.arguments_bytes",
        "all argument values of one request",
    ),
    ("limits.output_bytes", "the rendered text of one prompt"),
    ("limits.arguments_count", "arguments that a prompt declares"),
    (
        "rendering.workers",
        "worker processes for templates outside of the fast lane",
    ),
    (
        "rendering.worker_renders",
        "renders of a worker before it is replaced",
    ),
    ("rendering.worker_memory_bytes", "memory of a worker"),
    (
        "rendering.worker_cpu_ms",
        "CPU time of one render in a worker",
    ),
    (
        "rendering.worker_wall_ms",
        "time by the clock of one render in a worker",
    ),
    ("rendering.queue_length", "renders that wait for a worker"),
    (
        "rendering.queue_wait_ms",
        "time that a render waits for a worker",
    ),
    (
        "rendering.preview_cpu_ms_per_minute",
        "CPU time of all previews of one address in a minute",
    ),
    ("rendering.preview_bytes", "a request for a preview"),
    (
        "rendering.unsafe_rendering",
        "whether templates may be rendered where workers cannot be shut off",
    ),
];

impl Default for Config {
    fn default() -> Self {
        let mcp = crate::mcp::Settings::default();
        Self {
            listen: SocketAddr::from(([127, 0, 0, 1], 8400)),
            public_url: None,
            log: "info".into(),
            notify_body_edits: true,
            tools: mcp.tools,
            inline_resources: mcp.inline,
            neutralise: mcp.neutralise,
            page_size: mcp.page_size,
            message_bytes: mcp.message_bytes,
            max_streams: mcp.max_streams,
            keep_alive_seconds: mcp.keep_alive.as_secs(),
            max_connections: crate::http::Limits::default().connections,
            git: crate::git_http::Settings::default(),
            protected_branches: Vec::new(),
            upstream: UpstreamConfig::default(),
            program: std::env::current_exe().unwrap_or_else(|_| "cuebook".into()),
            limits: Limits::default(),
            rendering: crate::workers::Settings {
                executable: PathBuf::new(),
                ..crate::workers::Settings::default()
            },
            preview_cpu_ms_per_minute: 6000,
            preview_bytes: 2 * 1024 * 1024,
            origins: BTreeMap::new(),
        }
    }
}

fn number<T: std::str::FromStr + PartialOrd + std::fmt::Display + Copy>(
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

fn secret(value: &str) -> Option<Secret> {
    (!value.is_empty()).then(|| Secret(value.to_owned()))
}

/// Reads a secret from a file, whose last newline is no part of it.
fn secret_file(path: &str) -> Result<Option<Secret>, String> {
    if path.is_empty() {
        return Ok(None);
    }
    let text = std::fs::read_to_string(path)
        .map_err(|error| format!("cannot be read: {path}: {error}"))?;
    let text = text.trim_end_matches(['\n', '\r']);
    if text.is_empty() {
        return Err(format!("{path} is empty"));
    }
    Ok(secret(text))
}

fn hidden(value: Option<&Secret>) -> String {
    value.map_or_else(String::new, |_| HIDDEN.into())
}

fn seconds(value: &str) -> Result<Duration, String> {
    number(value, 1, 3600).map(Duration::from_secs)
}

fn flag(value: &str) -> Result<bool, String> {
    value.parse().map_err(|_| "must be true or false".into())
}

impl Config {
    /// Sets one key from text.
    fn set(&mut self, key: &'static str, value: &str, origin: Origin) -> Result<(), String> {
        const MIB: usize = 1024 * 1024;
        let bytes = |most: usize| number::<usize>(value, 1, most);
        match key {
            "listen" => {
                self.listen = value
                    .parse()
                    .map_err(|_| "must be ADDRESS:PORT, like 127.0.0.1:8400".to_owned())?;
            }
            "public_url" => {
                crate::http::Allowed::new(Some(value)).map_err(|e| e.to_string())?;
                self.public_url = Some(value.trim_end_matches('/').to_owned());
            }
            "log" => value.clone_into(&mut self.log),
            "notify_body_edits" => self.notify_body_edits = flag(value)?,
            "mcp.tools" => self.tools = flag(value)?,
            "mcp.inline_resources" => {
                self.inline_resources = match value {
                    "auto" => Inline::Auto,
                    "always" => Inline::Always,
                    "never" => Inline::Never,
                    _ => return Err("must be auto, always or never".into()),
                }
            }
            "mcp.neutralise" => self.neutralise = flag(value)?,
            "mcp.page_size" => self.page_size = number(value, 1, 10_000)?,
            "mcp.message_bytes" => self.message_bytes = bytes(256 * MIB)?,
            "mcp.max_streams" => self.max_streams = number(value, 0, 1_000_000)?,
            "mcp.keep_alive_seconds" => self.keep_alive_seconds = number(value, 1, 3600)?,
            "http.max_connections" => self.max_connections = number(value, 1, 1_000_000)?,
            "git.max_push_bytes" => self.git.max_push_bytes = number(value, 1, 1 << 40)?,
            "git.max_pushes" => self.git.pushes = number(value, 1, 1000)?,
            "git.max_fetches" => self.git.reads = number(value, 1, 1000)?,
            "git.queue_length" => self.git.queue = number(value, 0, 100_000)?,
            "git.queue_wait_seconds" => self.git.queue_wait = seconds(value)?,
            "git.idle_seconds" => self.git.idle = seconds(value)?,
            "git.protected_branches" => {
                self.protected_branches = value
                    .split(',')
                    .map(|name| name.trim().to_owned())
                    .filter(|name| !name.is_empty())
                    .collect();
            }
            "upstream.url" => self.upstream.url = remote_url(value)?,
            "upstream.branch" => value.clone_into(&mut self.upstream.branch),
            "upstream.mode" => {
                self.upstream.mode = match value {
                    "follow" => Mode::Follow,
                    "propose" => Mode::Propose,
                    _ => return Err("must be follow or propose".into()),
                }
            }
            "upstream.username" => value.clone_into(&mut self.upstream.username),
            "upstream.token" => self.upstream.token = secret(value),
            "upstream.token_file" => self.upstream.token = secret_file(value)?,
            "upstream.poll_seconds" => self.upstream.poll_seconds = number(value, 1, 86_400)?,
            "upstream.webhook_secret" => self.upstream.webhook_secret = secret(value),
            "upstream.webhook_secret_file" => self.upstream.webhook_secret = secret_file(value)?,
            "limits.prompt_file_bytes" => self.limits.prompt_file_bytes = bytes(16 * MIB)?,
            "limits.front_matter_bytes" => self.limits.front_matter_bytes = bytes(MIB)?,
            "limits.closure_bytes" => self.limits.closure_bytes = bytes(64 * MIB)?,
            "limits.closure_files" => self.limits.closure_files = number(value, 1, 1000)?,
            "limits.resource_file_bytes" => self.limits.resource_file_bytes = bytes(64 * MIB)?,
            "limits.values_file_bytes" => self.limits.values_file_bytes = bytes(64 * MIB)?,
            "limits.arguments_bytes" => self.limits.arguments_bytes = bytes(64 * MIB)?,
            "limits.output_bytes" => self.limits.output_bytes = bytes(64 * MIB)?,
            "limits.arguments_count" => self.limits.arguments_count = number(value, 0, 1000)?,
            _ => self.set_rendering(key, value)?,
        }
        self.origins.insert(key, origin);
        Ok(())
    }

    fn set_rendering(&mut self, key: &str, value: &str) -> Result<(), String> {
        const MIB: u64 = 1024 * 1024;
        let rendering = &mut self.rendering;
        match key {
            "rendering.workers" => rendering.workers = number(value, 1, 256)?,
            "rendering.worker_renders" => rendering.worker_renders = number(value, 1, 1_000_000)?,
            "rendering.worker_memory_bytes" => {
                rendering.memory_bytes = number(value, 16 * MIB, 16 * 1024 * MIB)?;
            }
            "rendering.worker_cpu_ms" => rendering.cpu_ms = number(value, 10, 60_000)?,
            "rendering.worker_wall_ms" => rendering.wall_ms = number(value, 10, 600_000)?,
            "rendering.queue_length" => rendering.queue_length = number(value, 1, 100_000)?,
            "rendering.queue_wait_ms" => rendering.queue_wait_ms = number(value, 1, 600_000)?,
            "rendering.preview_cpu_ms_per_minute" => {
                self.preview_cpu_ms_per_minute = number(value, 1, 60_000_000)?;
            }
            "rendering.preview_bytes" => {
                self.preview_bytes = number(value, 1, 64 * 1024 * 1024)?;
            }
            "rendering.unsafe_rendering" => rendering.unsafe_rendering = flag(value)?,
            _ => return Err("is not a setting".into()),
        }
        Ok(())
    }

    /// What renders prompts with these settings.
    pub fn renderer(&self) -> Arc<Renderer> {
        let named = Some(&self.rendering.executable).filter(|path| !path.as_os_str().is_empty());
        Arc::new(Renderer::new(crate::workers::Settings {
            executable: named.unwrap_or(&self.program).clone(),
            output_bytes: self.limits.output_bytes,
            ..self.rendering.clone()
        }))
    }

    /// The value of a key as text.
    fn get(&self, key: &str) -> String {
        match key {
            "listen" => self.listen.to_string(),
            "public_url" => self.public_url.clone().unwrap_or_default(),
            "log" => self.log.clone(),
            "notify_body_edits" => self.notify_body_edits.to_string(),
            "mcp.tools" => self.tools.to_string(),
            "mcp.inline_resources" => match self.inline_resources {
                Inline::Auto => "auto",
                Inline::Always => "always",
                Inline::Never => "never",
            }
            .into(),
            "mcp.neutralise" => self.neutralise.to_string(),
            "mcp.page_size" => self.page_size.to_string(),
            "mcp.message_bytes" => self.message_bytes.to_string(),
            "mcp.max_streams" => self.max_streams.to_string(),
            "mcp.keep_alive_seconds" => self.keep_alive_seconds.to_string(),
            "http.max_connections" => self.max_connections.to_string(),
            "git.max_push_bytes" => self.git.max_push_bytes.to_string(),
            "git.max_pushes" => self.git.pushes.to_string(),
            "git.max_fetches" => self.git.reads.to_string(),
            "git.queue_length" => self.git.queue.to_string(),
            "git.queue_wait_seconds" => self.git.queue_wait.as_secs().to_string(),
            "git.idle_seconds" => self.git.idle.as_secs().to_string(),
            "git.protected_branches" => self.protected_branches.join(","),
            "upstream.url" => self.upstream.url.clone().unwrap_or_default(),
            "upstream.branch" => self.upstream.branch.clone(),
            "upstream.mode" => self.upstream.mode.as_str().into(),
            "upstream.username" => self.upstream.username.clone(),
            "upstream.token" | "upstream.token_file" => hidden(self.upstream.token.as_ref()),
            "upstream.poll_seconds" => self.upstream.poll_seconds.to_string(),
            "upstream.webhook_secret" | "upstream.webhook_secret_file" => {
                hidden(self.upstream.webhook_secret.as_ref())
            }
            "limits.prompt_file_bytes" => self.limits.prompt_file_bytes.to_string(),
            "limits.front_matter_bytes" => self.limits.front_matter_bytes.to_string(),
            "limits.closure_bytes" => self.limits.closure_bytes.to_string(),
            "limits.closure_files" => self.limits.closure_files.to_string(),
            "limits.resource_file_bytes" => self.limits.resource_file_bytes.to_string(),
            "limits.values_file_bytes" => self.limits.values_file_bytes.to_string(),
            "limits.arguments_bytes" => self.limits.arguments_bytes.to_string(),
            "limits.output_bytes" => self.limits.output_bytes.to_string(),
            "limits.arguments_count" => self.limits.arguments_count.to_string(),
            "rendering.workers" => self.rendering.workers.to_string(),
            "rendering.worker_renders" => self.rendering.worker_renders.to_string(),
            "rendering.worker_memory_bytes" => self.rendering.memory_bytes.to_string(),
            "rendering.worker_cpu_ms" => self.rendering.cpu_ms.to_string(),
            "rendering.worker_wall_ms" => self.rendering.wall_ms.to_string(),
            "rendering.queue_length" => self.rendering.queue_length.to_string(),
            "rendering.queue_wait_ms" => self.rendering.queue_wait_ms.to_string(),
            "rendering.preview_cpu_ms_per_minute" => self.preview_cpu_ms_per_minute.to_string(),
            "rendering.preview_bytes" => self.preview_bytes.to_string(),
            "rendering.unsafe_rendering" => self.rendering.unsafe_rendering.to_string(),
            _ => String::new(),
        }
    }

    /// Reads a file (when there is one), the environment and flags, and lists every problem at once.
    pub fn load(
        file: Option<&Path>,
        environment: &dyn Fn(&str) -> Option<String>,
        flags: &[(&'static str, String)],
    ) -> Result<Self, ConfigError> {
        let mut config = Self::default();
        let mut problems = Vec::new();
        if let Some(path) = file {
            match std::fs::read_to_string(path) {
                Ok(text) => config.read_file(path, &text, &mut problems),
                Err(error) => problems.push(format!("{}: {error}", path.display())),
            }
        }
        for (key, _) in KEYS {
            let variable = variable(key);
            if let Some(value) = environment(&variable)
                && let Err(fault) = config.set(key, &value, Origin::Environment)
            {
                problems.push(format!("environment: {variable} {fault}"));
            }
        }
        for (key, value) in flags {
            if let Err(fault) = config.set(key, value, Origin::Flag) {
                problems.push(format!("--{}: {fault}", key.replace('_', "-")));
            }
        }
        if problems.is_empty() {
            Ok(config)
        } else {
            Err(ConfigError(problems))
        }
    }

    fn read_file(&mut self, path: &Path, text: &str, problems: &mut Vec<String>) {
        let table: toml::Table = match text.parse() {
            Ok(table) => table,
            Err(error) => {
                let error: toml::de::Error = error;
                let line = error
                    .span()
                    .map_or(1, |s| text[..s.start].matches('\n').count() + 1);
                problems.push(format!("{}:{line}: {}", path.display(), error.message()));
                return;
            }
        };
        let mut flat = Vec::new();
        flatten("", &toml::Value::Table(table), &mut flat);
        for (name, value) in flat {
            let Some((key, _)) = KEYS.iter().find(|(key, _)| **key == *name) else {
                let hint = nearest(&name, KEYS.iter().map(|(k, _)| *k)).map_or_else(
                    || "`cuebook config show` lists the settings".into(),
                    |n| format!("did you mean `{n}`?"),
                );
                problems.push(format!(
                    "{}: `{name}` is not a setting; {hint}",
                    path.display()
                ));
                continue;
            };
            if let Err(fault) = self.set(key, &value, Origin::File) {
                problems.push(format!("{}: `{name}` {fault}", path.display()));
            }
        }
    }

    /// Every setting with its value and where it came from.
    pub fn show(&self) -> String {
        let width = KEYS.iter().map(|(k, _)| k.len()).max().unwrap_or(0);
        let mut out = String::new();
        for (key, meaning) in KEYS {
            let origin = match self.origins.get(key).copied().unwrap_or(Origin::Default) {
                Origin::Default => "default",
                Origin::File => "config file",
                Origin::Environment => "environment",
                Origin::Flag => "flag",
            };
            let value = self.get(key);
            let value = if value.is_empty() {
                "(not set)"
            } else {
                &value
            };
            let _ = writeln!(out, "{key:width$} = {value:16} # {origin}; {meaning}");
        }
        out
    }

    /// The settings of the gate; `url` is the address that clients use.
    pub fn gate(&self, url: String) -> crate::gate::Settings {
        crate::gate::Settings {
            protected_branches: self.protected_branches.clone(),
            url,
            closed: self.upstream().map(|upstream| upstream.closed()),
        }
    }

    /// How another repository is followed, when one is.
    pub fn upstream(&self) -> Option<upstream::Settings> {
        let from = &self.upstream;
        let plain = |secret: &Option<Secret>| secret.as_ref().map(|secret| secret.0.clone());
        Some(upstream::Settings {
            remote: crate::git::remote::Remote {
                url: from.url.clone()?,
                username: from.username.clone(),
                token: plain(&from.token),
                timeout: Duration::from_mins(10),
            },
            branch: from.branch.clone(),
            mode: from.mode,
            poll: Duration::from_secs(from.poll_seconds),
            webhook_secret: plain(&from.webhook_secret),
        })
    }

    /// The settings of the MCP layer.
    pub fn mcp(&self, session_key: [u8; 32]) -> crate::mcp::Settings {
        crate::mcp::Settings {
            session_key,
            tools: self.tools,
            inline: self.inline_resources,
            neutralise: self.neutralise,
            page_size: self.page_size,
            message_bytes: self.message_bytes,
            max_streams: self.max_streams,
            keep_alive: Duration::from_secs(self.keep_alive_seconds),
            ..crate::mcp::Settings::default()
        }
    }
}

/// The environment variable of a key.
pub fn variable(key: &str) -> String {
    format!("CUEBOOK_{}", key.replace('.', "_").to_ascii_uppercase())
}

fn flatten(prefix: &str, value: &toml::Value, out: &mut Vec<(String, String)>) {
    match value {
        toml::Value::Table(table) => {
            for (key, value) in table {
                let name = if prefix.is_empty() {
                    key.clone()
                } else {
                    format!("{prefix}.{key}")
                };
                flatten(&name, value, out);
            }
        }
        toml::Value::String(text) => out.push((prefix.into(), text.clone())),
        toml::Value::Integer(n) => out.push((prefix.into(), n.to_string())),
        toml::Value::Boolean(b) => out.push((prefix.into(), b.to_string())),
        toml::Value::Array(values) if values.iter().all(toml::Value::is_str) => {
            let names: Vec<&str> = values.iter().filter_map(toml::Value::as_str).collect();
            out.push((prefix.into(), names.join(",")));
        }
        toml::Value::Float(_) | toml::Value::Datetime(_) | toml::Value::Array(_) => {
            out.push((prefix.into(), "(a value of another type)".into()));
        }
    }
}

#[cfg(test)]
mod tests;
