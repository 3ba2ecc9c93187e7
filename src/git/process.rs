//! Git processes: an environment of our own, nothing of the caller's configuration.

use std::ffi::OsStr;
use std::io::Write as _;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use super::{GitError, MAIN, SERVER_EMAIL};

/// A file to be committed.
#[derive(Debug, Clone)]
pub struct NewFile<'a> {
    /// Path from the root, `/` separated.
    pub path: &'a str,
    /// Its content.
    pub bytes: &'a [u8],
}

/// A git command with a clean environment; `directory` is where it runs.
fn git(directory: &Path) -> Command {
    git_with(directory, &[])
}

/// The same with more settings than every git process gets.
pub(super) fn git_with(directory: &Path, more: &[(&str, &str)]) -> Command {
    let mut command = Command::new("git");
    command.current_dir(directory).env_clear();
    #[allow(
        clippy::disallowed_methods,
        reason = "git must be found, and its helpers by it"
    )]
    if let Some(path) = std::env::var_os("PATH") {
        command.env("PATH", path);
    }
    let settings = [
        ("safe.directory", "*"),
        ("core.fsync", "committed"),
        ("gc.auto", "0"),
        ("init.defaultBranch", "main"),
        ("advice.detachedHead", "false"),
    ];
    command
        .env("LC_ALL", "C")
        .env("GIT_CONFIG_NOSYSTEM", "1")
        .env("GIT_CONFIG_GLOBAL", "/dev/null")
        .env("GIT_TERMINAL_PROMPT", "0")
        .env(
            "GIT_CONFIG_COUNT",
            (settings.len() + more.len()).to_string(),
        );
    for (i, (key, value)) in settings.iter().chain(more).enumerate() {
        command
            .env(format!("GIT_CONFIG_KEY_{i}"), key)
            .env(format!("GIT_CONFIG_VALUE_{i}"), value);
    }
    command
}

pub(super) fn run(mut command: Command, name: &str, input: &[u8]) -> Result<String, GitError> {
    command
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped());
    let mut child = command.spawn().map_err(|error| match error.kind() {
        std::io::ErrorKind::NotFound => GitError::Missing,
        _ => error.into(),
    })?;
    if let Some(mut stdin) = child.stdin.take() {
        // a child that ends early says why itself
        let _ = stdin.write_all(input);
    }
    let output = child.wait_with_output()?;
    if output.status.success() {
        return Ok(String::from_utf8_lossy(&output.stdout).trim().to_owned());
    }
    let text = String::from_utf8_lossy(&output.stderr);
    let message = text
        .lines()
        .find(|l| l.starts_with("fatal:"))
        .or(text.lines().last())
        .unwrap_or("failed");
    Err(GitError::Process {
        command: name.into(),
        message: message.trim_start_matches("fatal: ").into(),
    })
}

/// Kills a process and what it has started, which are a group of their own.
pub fn kill_group(leader: Option<u32>) {
    #[cfg(unix)]
    if let Some(pid) = leader
        && let Ok(pid) = i32::try_from(pid)
        && let Some(group) = rustix::process::Pid::from_raw(pid)
    {
        let _ = rustix::process::kill_process_group(group, rustix::process::Signal::KILL);
    }
    #[cfg(not(unix))]
    let _ = leader;
}

/// The version of git, e.g. `2.47.3`.
pub fn version() -> Result<String, GitError> {
    let mut command = git(Path::new("/"));
    command.arg("version");
    run(command, "version", b"").map(|text| text.trim_start_matches("git version ").to_owned())
}

/// Makes an empty bare repository, or a plain one, in a format that libgit2 reads.
pub fn init(path: &Path, bare: bool) -> Result<(), GitError> {
    std::fs::create_dir_all(path)?;
    let mut command = git(path);
    command.args(["init", "--quiet", "--object-format=sha1"]);
    if bare {
        command.arg("--bare");
    }
    command.arg(".");
    run(command, "init", b"").map(drop)
}

/// Makes the work tree of a repository what HEAD says.
pub fn reset_work_tree(path: &Path) -> Result<(), GitError> {
    let mut command = git(path);
    command.args(["reset", "--quiet", "--hard"]);
    run(command, "reset", b"").map(drop)
}

/// The top folder of a clone, and the folder of its hooks as its owner's git finds it.
pub fn hooks_folder(dir: &Path) -> Result<(PathBuf, PathBuf), GitError> {
    // with the person's own configuration, which may move the hooks (core.hooksPath)
    let ask = |argument: &[&str]| {
        let mut command = Command::new("git");
        command.current_dir(dir).arg("rev-parse").args(argument);
        run(command, "rev-parse", b"")
    };
    let top = PathBuf::from(ask(&["--show-toplevel"])?);
    let hooks = dir.join(ask(&["--git-path", "hooks"])?);
    Ok((top, hooks))
}

/// The folder that a clone shares with its worktrees, `.git` of the first of them.
pub fn common_folder(dir: &Path) -> Result<PathBuf, GitError> {
    let mut command = git(dir);
    command.args(["rev-parse", "--git-common-dir"]);
    Ok(dir.join(run(command, "rev-parse", b"")?))
}

/// A commit of what is staged in a clone, which no ref points to. `index` is `GIT_INDEX_FILE` where git has set it: a
/// commit of some paths has an index of its own.
pub fn staged_commit(dir: &Path, index: Option<&OsStr>) -> Result<String, GitError> {
    let mut command = git(dir);
    command.arg("write-tree");
    if let Some(index) = index {
        command.env("GIT_INDEX_FILE", index);
    }
    let tree = run(command, "write-tree", b"")?;
    let mut command = git(dir);
    command.args(["commit-tree", "-m", "staged", &tree]);
    for role in ["AUTHOR", "COMMITTER"] {
        command
            .env(format!("GIT_{role}_NAME"), "Cuebook")
            .env(format!("GIT_{role}_EMAIL"), SERVER_EMAIL)
            .env(format!("GIT_{role}_DATE"), "@0 +0000");
    }
    run(command, "commit-tree", b"")
}

/// Clones a repository; what git says goes to the terminal.
pub fn clone(url: &str, path: &Path) -> Result<(), GitError> {
    // credentials and proxies of the person who runs it: this one is not the server's
    let status = Command::new("git")
        .args(["clone", "--"])
        .arg(url)
        .arg(path)
        .status()
        .map_err(|error| match error.kind() {
            std::io::ErrorKind::NotFound => GitError::Missing,
            _ => error.into(),
        })?;
    if status.success() {
        Ok(())
    } else {
        Err(GitError::Process {
            command: "clone".into(),
            message: format!("{url} could not be cloned"),
        })
    }
}

/// Writes one commit without a parent on main of a repository that has none, through `git fast-import`.
pub fn import_commit(
    repository: &Path,
    files: &[NewFile<'_>],
    message: &str,
    seconds: u64,
) -> Result<String, GitError> {
    let mut stream = Vec::new();
    let data = |bytes: &[u8]| {
        let mut out = format!("data {}\n", bytes.len()).into_bytes();
        out.extend_from_slice(bytes);
        out.push(b'\n');
        out
    };
    stream.extend_from_slice(
        format!("commit {MAIN}\ncommitter Cuebook <{SERVER_EMAIL}> {seconds} +0000\n").as_bytes(),
    );
    stream.extend(data(message.as_bytes()));
    for file in files {
        stream.extend_from_slice(format!("M 100644 inline {}\n", quoted(file.path)).as_bytes());
        stream.extend(data(file.bytes));
    }
    stream.extend_from_slice(b"done\n");
    let mut command = git(repository);
    command.args(["fast-import", "--quiet", "--done", "--date-format=raw"]);
    run(command, "fast-import", &stream)?;
    let mut command = git(repository);
    command.args(["rev-parse", MAIN]);
    run(command, "rev-parse", b"")
}

/// A path as fast-import reads it: quoted where it must be.
fn quoted(path: &str) -> String {
    if path.starts_with('"') || path.contains(['\n', '"', '\\', ' ']) {
        format!(
            "\"{}\"",
            path.replace('\\', "\\\\")
                .replace('"', "\\\"")
                .replace('\n', "\\n")
        )
    } else {
        path.to_owned()
    }
}
