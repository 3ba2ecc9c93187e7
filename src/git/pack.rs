//! The two halves of git's smart protocol, as processes: what is sent to whoever fetches, what is taken from whoever pushes.
//!
//! Source: git's `http-protocol` and `protocol-v2` pages; `git http-backend` for the environment.

use std::ffi::OsStr;
use std::path::Path;
use std::process::{Command, Stdio};

use super::SERVER_EMAIL;
use super::process::git_with;

/// A service of the smart protocol.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Service {
    /// Clone and fetch.
    UploadPack,
    /// Push.
    ReceivePack,
}

impl Service {
    /// The service with this name on the wire.
    pub fn named(name: &str) -> Option<Self> {
        match name {
            "git-upload-pack" => Some(Self::UploadPack),
            "git-receive-pack" => Some(Self::ReceivePack),
            _ => None,
        }
    }

    /// Its name on the wire.
    pub fn name(self) -> &'static str {
        match self {
            Self::UploadPack => "git-upload-pack",
            Self::ReceivePack => "git-receive-pack",
        }
    }

    fn subcommand(self) -> &'static str {
        match self {
            Self::UploadPack => "upload-pack",
            Self::ReceivePack => "receive-pack",
        }
    }
}

/// Refs that nobody may push to, and that a fetch does not list: they are the server's own notes.
pub const HIDDEN: [&str; 2] = ["refs/cuebook", "refs/upstream"];

/// How a push is taken.
#[derive(Debug, Clone)]
pub struct Receive<'a> {
    /// Folder of the hooks that judge it.
    pub hooks: &'a Path,
    /// Largest pack, in bytes.
    pub max_pack_bytes: u64,
    /// Who pushes, for the reflog.
    pub pusher: &'a str,
}

/// What a process of the protocol is to do.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Step {
    /// List the refs.
    Advertise,
    /// Answer one request.
    Answer,
}

fn service_command(
    repository: &Path,
    service: Service,
    step: Step,
    more: &[(&str, &str)],
) -> Command {
    let mut command = git_with(repository, more);
    command.arg(service.subcommand()).arg("--stateless-rpc");
    if step == Step::Advertise {
        command.arg("--http-backend-info-refs");
    }
    command
        .arg(".")
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped());
    #[cfg(unix)]
    {
        use std::os::unix::process::CommandExt as _;
        // a Ctrl-C at the server's terminal must not end a push
        command.process_group(0);
    }
    command
}

/// `git upload-pack`, ready to be started; `protocol` is the checked value of the Git-Protocol header.
pub fn upload_pack(repository: &Path, step: Step, protocol: Option<&str>) -> Command {
    let settings = [
        ("uploadpack.allowFilter", "true"),
        ("uploadpack.allowAnySHA1InWant", "true"),
        ("uploadpack.hideRefs", HIDDEN[0]),
        ("uploadpack.hideRefs", HIDDEN[1]),
    ];
    let mut command = service_command(repository, Service::UploadPack, step, &settings);
    if let Some(protocol) = protocol {
        command.env("GIT_PROTOCOL", protocol);
    }
    command
}

/// `git receive-pack`, ready to be started. It must not be killed: close its stdin and let it end.
pub fn receive_pack(
    repository: &Path,
    step: Step,
    protocol: Option<&str>,
    how: &Receive<'_>,
    environment: &[(&str, &OsStr)],
) -> Command {
    let max = how.max_pack_bytes.to_string();
    let hooks = how.hooks.to_string_lossy();
    let settings = [
        ("core.hooksPath", &*hooks),
        ("core.logAllRefUpdates", "true"),
        ("receive.fsckObjects", "true"),
        // what old histories hold and nobody is harmed by
        ("receive.fsck.badTimezone", "warn"),
        ("receive.fsck.missingSpaceBeforeDate", "warn"),
        ("receive.fsck.zeroPaddedFilemode", "warn"),
        ("receive.maxInputSize", &max),
        ("receive.advertisePushOptions", "true"),
        ("receive.procReceiveRefs", PROPOSE),
        ("receive.hideRefs", HIDDEN[0]),
        ("receive.hideRefs", HIDDEN[1]),
        ("receive.autogc", "false"),
        ("receive.denyDeleteCurrent", "ignore"),
    ];
    let mut command = service_command(repository, Service::ReceivePack, step, &settings);
    if let Some(protocol) = protocol {
        command.env("GIT_PROTOCOL", protocol);
    }
    command
        .env("GIT_COMMITTER_NAME", how.pusher)
        .env("GIT_COMMITTER_EMAIL", SERVER_EMAIL);
    for (name, value) in environment {
        command.env(name, value);
    }
    command
}

/// Where a push opens a proposal: `refs/for/main`.
pub const PROPOSE: &str = "refs/for";

/// Settings that the repository's own configuration needs, for pushes that reach it without the server (over SSH, by
/// path): the hooks, and what the hooks rest on.
pub fn own_settings(hooks: &Path, max_pack_bytes: u64) -> Vec<(&'static str, String)> {
    vec![
        ("core.hooksPath", hooks.to_string_lossy().into_owned()),
        ("core.logAllRefUpdates", "true".into()),
        ("core.fsync", "committed".into()),
        ("receive.fsckObjects", "true".into()),
        ("receive.fsck.badTimezone", "warn".into()),
        ("receive.fsck.missingSpaceBeforeDate", "warn".into()),
        ("receive.fsck.zeroPaddedFilemode", "warn".into()),
        ("receive.maxInputSize", max_pack_bytes.to_string()),
        ("receive.advertisePushOptions", "true".into()),
        ("receive.procReceiveRefs", PROPOSE.into()),
        ("receive.autogc", "false".into()),
        // deletion is refused by the hook, which says why
        ("receive.denyDeleteCurrent", "ignore".into()),
        ("gc.auto", "0".into()),
    ]
}
