//! Publishing with the real git: a data directory that is served, clones of it, and what git says to its user.

mod audit;
mod budget;
mod changes;
mod delivered;
mod disk;
mod gate;
mod hook;
mod kill;
mod outside;
mod promote;
mod proposals;
mod records;
mod review;
mod robust;
mod secrets;
mod slips;
mod store;
mod transport;
mod versions;
mod webhooks;

use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};

use cuebook::config::Config;
use cuebook::server::{Running, Serve, start};
use cuebook::starter::Language;
use serde_json::{Value, json};
use tempfile::TempDir;

use crate::support::http::{Reply, send};
use crate::support::mcp::{Client, MODERN};
use crate::support::process::Server;
use crate::support::soon;

/// Address of the test's own commits.
const EMAIL: &str = "test@example.com";

/// What a git command did.
#[derive(Debug)]
pub(crate) struct Ran {
    pub(crate) ok: bool,
    /// stdout, then stderr.
    pub(crate) text: String,
}

impl Ran {
    /// What the server said, a line each, without `remote:`.
    pub(crate) fn remote(&self) -> Vec<&str> {
        let lines = self
            .text
            .lines()
            .filter_map(|line| line.strip_prefix("remote:"));
        lines
            .map(|line| line.strip_prefix(' ').unwrap_or(line).trim_end())
            .filter(|l| !l.is_empty())
            .collect()
    }

    #[track_caller]
    pub(crate) fn says(&self, words: &str) {
        assert!(self.text.contains(words), "no `{words}` in:\n{}", self.text);
    }

    #[track_caller]
    pub(crate) fn says_not(&self, words: &str) {
        assert!(!self.text.contains(words), "`{words}` in:\n{}", self.text);
    }
}

/// A git command with nothing of the machine's configuration.
pub(crate) fn git_command(at: &Path, arguments: &[&str]) -> Command {
    let mut command = Command::new("git");
    command
        .args(arguments)
        .current_dir(at)
        .env_clear()
        .env("HOME", "/nowhere")
        .env("LC_ALL", "C")
        .env("GIT_CONFIG_GLOBAL", "/dev/null")
        .env("GIT_CONFIG_NOSYSTEM", "1")
        .env("GIT_TERMINAL_PROMPT", "0")
        .env("GIT_AUTHOR_NAME", "Test")
        .env("GIT_AUTHOR_EMAIL", EMAIL)
        .env("GIT_COMMITTER_NAME", "Test")
        .env("GIT_COMMITTER_EMAIL", EMAIL)
        .stdin(Stdio::null());
    #[allow(clippy::disallowed_methods, reason = "git must be found")]
    if let Some(path) = std::env::var_os("PATH") {
        command.env("PATH", path);
    }
    command
}

pub(crate) fn run(mut command: Command) -> Ran {
    let output = command.output().unwrap();
    let mut text = String::from_utf8_lossy(&output.stdout).into_owned();
    text.push_str(&String::from_utf8_lossy(&output.stderr));
    Ran {
        ok: output.status.success(),
        text,
    }
}

pub(crate) fn git(at: &Path, arguments: &[&str]) -> Ran {
    run(git_command(at, arguments))
}

/// A git command with bytes for its stdin that must succeed: its stdout.
#[track_caller]
fn git_with_input(at: &Path, arguments: &[&str], input: &[u8]) -> Vec<u8> {
    use std::io::Write as _;
    let mut command = git_command(at, arguments);
    let mut child = command
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    let mut stdin = child.stdin.take().unwrap();
    let input = input.to_vec();
    let writing = std::thread::spawn(move || stdin.write_all(&input));
    let output = child.wait_with_output().unwrap();
    writing.join().unwrap().unwrap();
    assert!(output.status.success(), "{arguments:?}");
    output.stdout
}

/// A clone in which a test works.
pub(crate) struct Work {
    pub(crate) path: PathBuf,
}

impl Work {
    /// Clones a repository.
    #[track_caller]
    pub(crate) fn clone(folder: &Path, url: &str, name: &str, options: &[&str]) -> Self {
        let mut arguments = vec!["clone", "--quiet"];
        arguments.extend_from_slice(options);
        arguments.extend_from_slice(&[url, name]);
        let ran = git(folder, &arguments);
        assert!(ran.ok, "{}", ran.text);
        let work = Self {
            path: folder.join(name),
        };
        work.ok(&["config", "push.autoSetupRemote", "true"]);
        work
    }

    pub(crate) fn git(&self, arguments: &[&str]) -> Ran {
        git(&self.path, arguments)
    }

    /// A command that must succeed; what it said.
    #[track_caller]
    pub(crate) fn ok(&self, arguments: &[&str]) -> Ran {
        let ran = self.git(arguments);
        assert!(ran.ok, "git {arguments:?}:\n{}", ran.text);
        ran
    }

    /// A command that must fail; what it said.
    #[track_caller]
    pub(crate) fn no(&self, arguments: &[&str]) -> Ran {
        let ran = self.git(arguments);
        assert!(!ran.ok, "git {arguments:?} succeeded:\n{}", ran.text);
        ran
    }

    pub(crate) fn write(&self, path: &str, text: impl AsRef<[u8]>) {
        let path = self.path.join(path);
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        std::fs::write(path, text).unwrap();
    }

    pub(crate) fn remove(&self, path: &str) {
        std::fs::remove_file(self.path.join(path)).unwrap();
    }

    /// Commits everything; the commit's id.
    #[track_caller]
    pub(crate) fn commit(&self, message: &str) -> String {
        self.ok(&["add", "--all"]);
        self.ok(&["commit", "--quiet", "--allow-empty", "--message", message]);
        self.head()
    }

    #[track_caller]
    pub(crate) fn head(&self) -> String {
        self.ok(&["rev-parse", "HEAD"]).text.trim().to_owned()
    }

    /// Pushes to main.
    pub(crate) fn push(&self) -> Ran {
        self.git(&["push", "origin", "HEAD:main"])
    }

    /// Writes files and commits them; the commit's id.
    #[track_caller]
    pub(crate) fn change(&self, files: &[(&str, &str)]) -> String {
        for (path, text) in files {
            self.write(path, text);
        }
        self.commit("change")
    }

    /// Writes files, commits and pushes them; what the push said.
    #[track_caller]
    pub(crate) fn publish(&self, files: &[(&str, &str)]) -> Ran {
        self.change(files);
        self.ok(&["push", "origin", "HEAD:main"])
    }

    /// Takes everything back to what the server has.
    #[track_caller]
    pub(crate) fn back(&self) {
        self.ok(&["fetch", "--quiet", "origin"]);
        self.ok(&["reset", "--quiet", "--hard", "origin/main"]);
        self.ok(&["clean", "--quiet", "-fd"]);
    }

    /// Starts a push that goes on by itself.
    pub(crate) fn start_push(&self, arguments: &[&str]) -> Child {
        let mut all = vec!["push"];
        all.extend_from_slice(arguments);
        git_command(&self.path, &all)
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .unwrap()
    }
}

/// A prompt with this text.
fn prompt(text: &str) -> String {
    format!("---\ndescription: D\n---\n{text}\n")
}

/// A prompt with one required argument.
const TRIAGE: &str = "---\ndescription: First response\narguments: [{ name: ticket, required: true }]\n---\nTicket {{ ticket }}.\n";

/// A data directory served in this process.
struct Host {
    folder: TempDir,
    config: Config,
    running: Option<Running>,
    address: SocketAddr,
}

impl Host {
    /// With three prompts.
    async fn small() -> Self {
        Self::small_with(|_| {}).await
    }

    async fn small_with(change: impl FnOnce(&mut Config)) -> Self {
        let host = Self::with(None, change).await;
        host.work("first").publish(&[
            ("prompts/sre/triage.md", TRIAGE),
            ("prompts/sre/after.md", &prompt("Write it down.")),
            ("prompts/review/code-review.md", &prompt("Review this.")),
            ("resources/runbook/payments.md", "# Payments\n"),
        ]);
        host
    }

    async fn with(starter: Option<Language>, change: impl FnOnce(&mut Config)) -> Self {
        let mut config =
            Config::load(None, &|_| None, &[("listen", "127.0.0.1:0".into())]).unwrap();
        config.program = env!("CARGO_BIN_EXE_cuebook").into();
        change(&mut config);
        let folder = tempfile::tempdir().unwrap();
        let running = serve(folder.path(), starter, &config).await;
        Self {
            folder,
            config,
            address: running.address,
            running: Some(running),
        }
    }

    fn data_dir(&self) -> PathBuf {
        self.folder.path().join("data")
    }

    /// The bare repository.
    fn bare(&self) -> PathBuf {
        self.data_dir().join("library.git")
    }

    fn url(&self) -> String {
        format!("http://{}/library.git", self.address)
    }

    /// A clone by HTTP.
    #[track_caller]
    fn work(&self, name: &str) -> Work {
        Work::clone(self.folder.path(), &self.url(), name, &[])
    }

    /// A clone by the repository's path, as SSH has it.
    #[track_caller]
    fn work_by_path(&self, name: &str) -> Work {
        Work::clone(self.folder.path(), self.bare().to_str().unwrap(), name, &[])
    }

    fn client(&self) -> Client {
        Client {
            address: self.address,
            path: "/mcp".into(),
            revision: MODERN,
            name: "test",
            session: None,
        }
    }

    /// The first text of a prompt without arguments.
    async fn text(&self, name: &str) -> String {
        self.client().texts(name, json!({})).await.remove(0)
    }

    /// What main says.
    fn main(&self) -> String {
        main_of(&self.bare())
    }

    async fn get(&self, path: &str, headers: &[(&str, &str)]) -> Reply {
        send(self.address, "GET", path, headers, b"").await
    }

    async fn ready(&self) -> Value {
        self.get("/readyz", &[]).await.json()
    }

    /// Stops the server in good order.
    async fn stop(&mut self) {
        if let Some(running) = self.running.take() {
            soon("the server to stop", running.stop()).await;
        }
    }

    /// Starts it again after `stop`, at the same address.
    async fn start_again(&mut self) {
        self.config.listen = self.address;
        let running = serve(self.folder.path(), None, &self.config).await;
        self.running = Some(running);
    }
}

async fn serve(folder: &Path, starter: Option<Language>, config: &Config) -> Running {
    let what = Serve::DataDir {
        path: folder.join("data"),
        starter,
    };
    soon("the server", start(what, config)).await.unwrap()
}

fn main_of(bare: &Path) -> String {
    git(bare, &["rev-parse", "--verify", "refs/heads/main"])
        .text
        .trim()
        .to_owned()
}

/// Locks and half-received pushes.
pub(crate) fn left_behind(bare: &Path) -> Vec<PathBuf> {
    let mut out = Vec::new();
    let mut folders = vec![bare.to_owned()];
    while let Some(folder) = folders.pop() {
        // a folder may go while it is looked at
        for entry in std::fs::read_dir(folder).into_iter().flatten().flatten() {
            let name = entry.file_name().into_string().unwrap();
            let is_lock = entry.path().extension().is_some_and(|e| e == "lock");
            if is_lock || name.starts_with("tmp_objdir") {
                out.push(entry.path());
            } else if entry.path().is_dir() {
                folders.push(entry.path());
            }
        }
    }
    out
}

/// Git processes that work in a repository, with their commands.
fn git_processes(bare: &Path) -> Vec<(u32, String)> {
    let bare = bare.canonicalize().unwrap();
    let mut out = Vec::new();
    for entry in std::fs::read_dir("/proc").unwrap().flatten() {
        let Some(id) = entry
            .file_name()
            .to_str()
            .and_then(|name| name.parse().ok())
        else {
            continue;
        };
        if std::fs::read_link(entry.path().join("cwd"))
            .is_ok_and(|folder| folder.starts_with(&bare))
        {
            let command = std::fs::read(entry.path().join("cmdline")).unwrap_or_default();
            out.push((id, String::from_utf8_lossy(&command).replace('\0', " ")));
        }
    }
    out
}

/// Waits until no git works in a repository, no lock and no half-received push is left.
async fn settled(bare: &Path) {
    quiet(bare).await;
    soon("what is left to be removed", async {
        while !left_behind(bare).is_empty() || !git_processes(bare).is_empty() {
            tokio::time::sleep(std::time::Duration::from_millis(20)).await;
        }
    })
    .await;
}

/// Waits until no git process works in a repository.
async fn quiet(bare: &Path) {
    soon("git to end", async {
        while !git_processes(bare).is_empty() {
            tokio::time::sleep(std::time::Duration::from_millis(20)).await;
        }
    })
    .await;
}

/// A server as a process, with a data directory in a folder of its own.
struct Process {
    folder: TempDir,
    server: Option<Server>,
    settings: Vec<(String, String)>,
}

impl Process {
    #[track_caller]
    fn start(settings: &[(&str, &str)]) -> Self {
        let mut process = Self {
            folder: tempfile::tempdir().unwrap(),
            server: None,
            settings: settings
                .iter()
                .map(|(k, v)| ((*k).to_owned(), (*v).to_owned()))
                .collect(),
        };
        process.again();
        process
    }

    fn command(&self) -> Command {
        let mut command = Command::new(env!("CARGO_BIN_EXE_cuebook"));
        command
            .args(["serve", "--empty", "--listen", "127.0.0.1:0"])
            .current_dir(self.folder.path())
            .env_clear()
            .envs(self.settings.iter().cloned())
            .stdin(Stdio::null());
        #[allow(clippy::disallowed_methods, reason = "git must be found")]
        if let Some(path) = std::env::var_os("PATH") {
            command.env("PATH", path);
        }
        command
    }

    #[track_caller]
    fn again(&mut self) {
        self.server = Some(Server::start(self.command()));
    }

    fn server(&self) -> &Server {
        self.server.as_ref().unwrap()
    }

    fn bare(&self) -> PathBuf {
        self.folder.path().join("cuebook-data/library.git")
    }

    fn url(&self) -> String {
        format!("http://{}/library.git", self.server().address)
    }

    #[track_caller]
    fn work(&self, name: &str) -> Work {
        Work::clone(self.folder.path(), &self.url(), name, &[])
    }
}

/// Bytes that do not compress, the same for the same seed.
fn noise(length: usize, seed: u64) -> Vec<u8> {
    let mut state = seed.wrapping_mul(0x9E37_79B9_7F4A_7C15) | 1;
    let mut out = Vec::with_capacity(length + 8);
    while out.len() < length {
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        out.extend_from_slice(&state.to_le_bytes());
    }
    out.truncate(length);
    out
}

/// One packet line.
fn packet(content: &str) -> Vec<u8> {
    let mut out = format!("{:04x}", content.len() + 4).into_bytes();
    out.extend_from_slice(content.as_bytes());
    out
}

/// A push as the bytes of a request: `new` to main, from a clone that has it.
pub(crate) fn push_request(work: &Work, old: &str, new: &str) -> Vec<u8> {
    let mut out = packet(&format!(
        "{old} {new} refs/heads/main\0report-status side-band-64k object-format=sha1 agent=test"
    ));
    out.extend_from_slice(b"0000");
    let wanted = if old.starts_with("0000") {
        format!("{new}\n")
    } else {
        format!("{new}\n^{old}\n")
    };
    out.extend(git_with_input(
        &work.path,
        &["pack-objects", "--revs", "--stdout", "--quiet"],
        wanted.as_bytes(),
    ));
    out
}

/// The same bytes compressed.
fn gzipped(bytes: &[u8]) -> Vec<u8> {
    use std::io::Write as _;
    let mut child = Command::new("gzip")
        .arg("-c")
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    let mut stdin = child.stdin.take().unwrap();
    let bytes = bytes.to_vec();
    let writing = std::thread::spawn(move || stdin.write_all(&bytes));
    let output = child.wait_with_output().unwrap();
    writing.join().unwrap().unwrap();
    output.stdout
}

pub(crate) const RECEIVE: &str = "application/x-git-receive-pack-request";
const UPLOAD: &str = "application/x-git-upload-pack-request";
