//! Settings of the server: defaults, then `config.toml`, then the environment, then flags. Parsed once.
//!
//! Every key has a name with its unit, an environment variable (`limits.output_bytes` is
//! `CUEBOOK_LIMITS_OUTPUT_BYTES`) and an origin that `cuebook config show` tells.

mod access;
mod keys;
mod network;
mod webhooks;

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use crate::api::Limit;
use crate::mcp::clients::Inline;
use crate::prompt::Limits;
use crate::prompt::problem::nearest;
use crate::upstream::{self, Mode};
use crate::workers::Renderer;

pub use access::AccessConfig;
pub use keys::{Key, keys};
pub use network::NetworkConfig;

use keys::find;

/// Everything that can be set.
#[derive(Debug, Clone)]
pub struct Config {
    /// Where to listen.
    pub listen: SocketAddr,
    /// The address clients use, when it is another than `listen`.
    pub public_url: Option<String>,
    /// Whether callers must say who they are, and may do what they were given.
    pub access: AccessConfig,
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
    /// What clients connect to.
    pub network: NetworkConfig,
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
    /// How long records are kept.
    pub records: crate::records::Settings,
    /// Who is told of proposals and publishes: `[[webhook]]` of the file.
    pub webhooks: Vec<crate::webhooks::Hook>,
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

impl Default for Config {
    fn default() -> Self {
        let mcp = crate::mcp::Settings::default();
        Self {
            listen: SocketAddr::from(([127, 0, 0, 1], 8400)),
            public_url: None,
            access: AccessConfig::default(),
            log: "info".into(),
            notify_body_edits: true,
            tools: mcp.tools,
            inline_resources: mcp.inline,
            neutralise: mcp.neutralise,
            page_size: mcp.page_size,
            message_bytes: mcp.message_bytes,
            max_streams: mcp.max_streams,
            keep_alive_seconds: mcp.keep_alive.as_secs(),
            network: NetworkConfig::default(),
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
            records: crate::records::Settings::default(),
            webhooks: Vec::new(),
            origins: BTreeMap::new(),
        }
    }
}

impl Config {
    /// Sets one key from text.
    fn set(&mut self, key: &'static Key, value: &str, origin: Origin) -> Result<(), String> {
        (key.set)(self, value)?;
        self.origins.insert(key.name, origin);
        Ok(())
    }

    /// What renders prompts with these settings.
    pub fn renderer(&self) -> Arc<Renderer> {
        let named = Some(&self.rendering.executable).filter(|path| !path.as_os_str().is_empty());
        Arc::new(Renderer::new(crate::workers::Settings {
            executable: named.unwrap_or(&self.program).clone(),
            ..self.rendering.clone()
        }))
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
        for key in keys() {
            let variable = variable(key.name);
            if let Some(value) = environment(&variable)
                && let Err(fault) = config.set(key, &value, Origin::Environment)
            {
                problems.push(format!("environment: {variable} {fault}"));
            }
        }
        for (key, value) in flags {
            let set = find(key)
                .ok_or_else(|| "is not a setting".to_owned())
                .and_then(|key| config.set(key, value, Origin::Flag));
            if let Err(fault) = set {
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
        let mut table: toml::Table = match text.parse() {
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
        if let Some(hooks) = table.remove("webhook") {
            let mut wrong = Vec::new();
            self.webhooks = webhooks::read(hooks, &mut wrong);
            let of_file = |fault| format!("{}: {fault}", path.display());
            problems.extend(wrong.into_iter().map(of_file));
        }
        let mut flat = Vec::new();
        flatten("", &toml::Value::Table(table), &mut flat);
        for (name, value) in flat {
            let Some(key) = find(&name) else {
                let hint = nearest(&name, keys().map(|key| key.name)).map_or_else(
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
        let width = keys().map(|key| key.name.len()).max().unwrap_or(0);
        let mut out = String::new();
        for Key {
            name: key,
            meaning,
            get,
            ..
        } in keys()
        {
            let origin = match self.origins.get(key).copied().unwrap_or(Origin::Default) {
                Origin::Default => "default",
                Origin::File => "config file",
                Origin::Environment => "environment",
                Origin::Flag => "flag",
            };
            let value = get(self);
            let value = if value.is_empty() {
                "(not set)"
            } else {
                &value
            };
            let _ = writeln!(out, "{key:width$} = {value:16} # {origin}; {meaning}");
        }
        for hook in &self.webhooks {
            let events: Vec<&str> = hook.events.iter().map(|event| event.as_str()).collect();
            let (url, events) = (hook.shown(), events.join(", "));
            let _ = writeln!(
                out,
                "{:width$} = {url:16} # config file; is told of {events}",
                "webhook"
            );
        }
        out
    }

    /// Every setting that is a number: nothing else is a limit, and no number is a secret.
    pub fn limits_in_force(&self) -> Arc<[Limit]> {
        let default = Self::default();
        keys()
            .filter(|key| (key.get)(&default).parse::<i64>().is_ok())
            .filter_map(|key| {
                Some(Limit {
                    name: key.name,
                    meaning: key.meaning,
                    value: (key.get)(self).parse().ok()?,
                })
            })
            .collect()
    }

    /// The settings of the gate; `url` is the address that clients use.
    pub fn gate(&self, url: String) -> crate::gate::Settings {
        crate::gate::Settings {
            protected_branches: self.protected_branches.clone(),
            url,
            closed: self.upstream().map(|upstream| upstream.closed()),
        }
    }

    /// How long records are kept.
    pub fn records(&self) -> crate::records::Settings {
        self.records.clone()
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
