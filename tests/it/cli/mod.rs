//! The command line, run as people run it: the real binary, its output and its exit codes.

mod check;
mod help;
mod init;
mod lanes;
mod locale;
mod render;
mod serve;
mod settings;
mod starter;

use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};

/// A command of the binary in a folder, with nothing of this process's environment but the PATH.
fn command(directory: &Path, arguments: &[&str]) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_cuebook"));
    command
        .args(arguments)
        .current_dir(directory)
        .env_clear()
        .env("GIT_CONFIG_GLOBAL", "/dev/null")
        .env("GIT_CONFIG_NOSYSTEM", "1")
        .stdin(Stdio::null());
    #[allow(clippy::disallowed_methods, reason = "git must be found")]
    if let Some(path) = std::env::var_os("PATH") {
        command.env("PATH", path);
    }
    command
}

/// What a command did.
#[derive(Debug)]
struct Ran {
    code: i32,
    stdout: String,
    stderr: String,
}

impl From<Output> for Ran {
    fn from(output: Output) -> Self {
        Self {
            code: output.status.code().unwrap_or(-1),
            stdout: String::from_utf8(output.stdout).unwrap(),
            stderr: String::from_utf8(output.stderr).unwrap(),
        }
    }
}

/// Runs a command to its end.
fn cuebook(directory: &Path, arguments: &[&str]) -> Ran {
    command(directory, arguments).output().unwrap().into()
}

/// Runs a command that must succeed and say nothing on stderr; its stdout.
#[track_caller]
fn succeeds(directory: &Path, arguments: &[&str]) -> String {
    let ran = cuebook(directory, arguments);
    assert_eq!(
        (ran.code, ran.stderr.as_str()),
        (0, ""),
        "{arguments:?}: {ran:?}"
    );
    ran.stdout
}

/// Runs a command that must fail with this code and print nothing; its stderr.
#[track_caller]
fn fails(directory: &Path, arguments: &[&str], code: i32) -> String {
    let ran = cuebook(directory, arguments);
    assert_eq!(
        (ran.code, ran.stdout.as_str()),
        (code, ""),
        "{arguments:?}: {ran:?}"
    );
    ran.stderr
}

/// A folder with files.
struct Folder(tempfile::TempDir);

impl Folder {
    fn new(files: &[(&str, &str)]) -> Self {
        let folder = Self(tempfile::tempdir().unwrap());
        for (path, text) in files {
            folder.write(path, text);
        }
        folder
    }

    fn path(&self) -> &Path {
        self.0.path()
    }

    fn at(&self, path: &str) -> PathBuf {
        self.path().join(path)
    }

    fn write(&self, path: &str, text: &str) {
        let path = self.at(path);
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        std::fs::write(path, text).unwrap();
    }

    fn read(&self, path: &str) -> String {
        std::fs::read_to_string(self.at(path)).unwrap()
    }
}
