//! Another repository over the network: fetched from, and pushed to, by the real git.
//!
//! The token goes by the environment, never by the command line or the URL, and only to the remote it is for.

use std::io;
use std::path::Path;
use std::process::Stdio;
use std::time::Duration;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use tokio::process::Command;

use super::process::git_with;
use super::{GitError, Repository};

/// Where another repository is, and how to get in.
#[derive(Clone)]
pub struct Remote {
    /// Any URL that git takes, without a password in it.
    pub url: String,
    /// The name that goes with the token.
    pub username: String,
    /// A token, for `http` and `https`.
    pub token: Option<String>,
    /// Longest time for one fetch or push.
    pub timeout: Duration,
}

impl std::fmt::Debug for Remote {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Remote")
            .field("url", &self.url)
            .finish_non_exhaustive()
    }
}

/// What of the server's environment a connection may need.
const PASSED: [&str; 12] = [
    "HOME",
    "SSH_AUTH_SOCK",
    "GIT_SSH_COMMAND",
    "http_proxy",
    "https_proxy",
    "HTTPS_PROXY",
    "all_proxy",
    "ALL_PROXY",
    "no_proxy",
    "NO_PROXY",
    "SSL_CERT_FILE",
    "SSL_CERT_DIR",
];

impl Remote {
    fn command(&self, directory: &Path) -> Command {
        let header_key = format!("http.{}.extraHeader", self.url);
        let header = self.token.as_ref().map(|token| {
            let basic = STANDARD.encode(format!("{}:{token}", self.username));
            format!("Authorization: Basic {basic}")
        });
        let mut settings = vec![
            ("fetch.fsckObjects", "true"),
            ("http.lowSpeedLimit", "100"),
            ("http.lowSpeedTime", "60"),
            ("credential.helper", ""),
            // a redirect would carry the token to another host
            (
                "http.followRedirects",
                if header.is_some() { "false" } else { "initial" },
            ),
            ("fetch.fsck.badTimezone", "warn"),
            ("fetch.fsck.missingSpaceBeforeDate", "warn"),
            ("fetch.fsck.zeroPaddedFilemode", "warn"),
            // a remote that is named by a URL must not reach this machine's files through a submodule or a helper
            ("protocol.ext.allow", "never"),
        ];
        if let Some(header) = &header {
            settings.push((&header_key, header));
        }
        let mut command = git_with(directory, &settings);
        for name in PASSED {
            #[allow(
                clippy::disallowed_methods,
                reason = "keys, proxies and certificates of the server's user"
            )]
            if let Some(value) = std::env::var_os(name) {
                command.env(name, value);
            }
        }
        if !command
            .get_envs()
            .any(|(name, _)| name == "GIT_SSH_COMMAND")
        {
            command.env("GIT_SSH_COMMAND", "ssh -o BatchMode=yes");
        }
        command
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped());
        #[cfg(unix)]
        {
            use std::os::unix::process::CommandExt as _;
            command.process_group(0);
        }
        let mut command = Command::from(command);
        command.kill_on_drop(true);
        command
    }

    async fn run(&self, mut command: Command, name: &str) -> Result<String, GitError> {
        let failed = |message: String| GitError::Process {
            command: name.into(),
            message,
        };
        let child = match command.spawn() {
            Ok(child) => child,
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Err(GitError::Missing),
            Err(error) => return Err(error.into()),
        };
        let group = child.id();
        let ended = tokio::time::timeout(self.timeout, child.wait_with_output()).await;
        let Ok(output) = ended else {
            super::process::kill_group(group);
            return Err(failed(format!(
                "no end after {} seconds",
                self.timeout.as_secs()
            )));
        };
        let output = output?;
        let text = String::from_utf8_lossy(&output.stderr).into_owned();
        if output.status.success() {
            return Ok(text);
        }
        let said: Vec<&str> = text
            .lines()
            .filter(|line| {
                ["fatal:", "error:", "remote:", " ! "]
                    .iter()
                    .any(|start| line.starts_with(start))
            })
            .take(4)
            .collect();
        Err(failed(if said.is_empty() {
            text.lines().last().unwrap_or("failed").to_owned()
        } else {
            said.join("; ")
        }))
    }

    /// Fetches every branch into `refs/upstream/heads/`, all or none; branches that are gone there go here too.
    pub async fn fetch(&self, repository: &Repository) -> Result<(), GitError> {
        let mut command = self.command(repository.path());
        command
            .args([
                "fetch",
                "--quiet",
                "--prune",
                "--atomic",
                "--no-tags",
                "--no-write-fetch-head",
                "--no-auto-maintenance",
                "--",
            ])
            .arg(&self.url)
            .arg("+refs/heads/*:refs/upstream/heads/*");
        self.run(command, "fetch").await.map(drop)
    }

    /// Pushes a commit as a branch that is still where it was left (`old`; none for a new one); what the other side said.
    pub async fn push(
        &self,
        repository: &Repository,
        commit: &str,
        branch: &str,
        old: Option<&str>,
    ) -> Result<String, GitError> {
        let mut command = self.command(repository.path());
        command
            .args(["push", "--no-verify"])
            .arg(format!(
                "--force-with-lease=refs/heads/{branch}:{}",
                old.unwrap_or_default()
            ))
            .arg("--")
            .arg(&self.url)
            .arg(format!("{commit}:refs/heads/{branch}"));
        self.run(command, "push").await
    }
}
