//! A library in a repository made with the real git: what is served of it, what a change changes, how it is noticed.

mod candidates;
mod changes;
mod data_dir;
mod incremental;
mod odd_files;
mod revisions;
mod served;
mod watching;

use std::path::Path;
use std::process::{Command, Stdio};
use std::sync::Arc;

use cuebook::prompt::{BoundArguments, Content, render};
use cuebook::registry::source::Library;
use cuebook::registry::{Registry, Settings, Snapshot};

use crate::support::library::{TestLibrary, git};
use crate::support::renderer;

/// Settings of a server that owns its data directory.
fn owner() -> Settings {
    Settings {
        remember: true,
        ..Settings::default()
    }
}

/// A registry of a folder.
#[track_caller]
fn open(path: &Path, settings: Settings) -> Arc<Registry> {
    let library = Library::find(path).unwrap();
    let settings = Settings {
        renderer: renderer(),
        ..settings
    };
    Arc::new(Registry::open(library, settings).unwrap())
}

/// A prompt with this text.
fn prompt(text: &str) -> String {
    format!("---\ndescription: D\n---\n{text}")
}

/// A prompt that does not pass the check.
const BAD: &str = "---\ndescription: D\n---\n{{ nope }}";

/// The texts that a snapshot serves, as `name: text`.
fn texts(snapshot: &Snapshot) -> Vec<String> {
    let catalog = &snapshot.catalog;
    let mut out: Vec<String> = catalog
        .list(None)
        .iter()
        .map(|prompt| {
            let bound =
                BoundArguments::bind(&prompt.arguments, [("x", "X")], catalog.limits()).unwrap();
            let resources = catalog.resolve(prompt, &bound).unwrap();
            let rendered = render(prompt, &bound, &resources, catalog.limits()).unwrap();
            let text: String = rendered
                .messages
                .iter()
                .map(|message| match &message.content {
                    Content::Text(text) => text.clone(),
                    Content::Resource { resource, .. } => {
                        format!("[{}]", resource.text().unwrap_or_default())
                    }
                })
                .collect();
            format!("{}: {text}", prompt.name)
        })
        .collect();
    out.sort();
    out
}

/// The commit that main names.
fn tip(library: &TestLibrary) -> String {
    git(&library.bare(), &["rev-parse", "refs/heads/main"])
        .trim()
        .to_owned()
}

/// Runs git with something on its stdin.
fn git_with(at: &Path, arguments: &[&str], input: &[u8]) -> String {
    use std::io::Write as _;
    let mut child = Command::new("git")
        .args(arguments)
        .current_dir(at)
        .env("GIT_CONFIG_GLOBAL", "/dev/null")
        .env("GIT_CONFIG_NOSYSTEM", "1")
        .env("GIT_AUTHOR_NAME", "Test")
        .env("GIT_AUTHOR_EMAIL", "test@example.com")
        .env("GIT_COMMITTER_NAME", "Test")
        .env("GIT_COMMITTER_EMAIL", "test@example.com")
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    child.stdin.take().unwrap().write_all(input).unwrap();
    let output = child.wait_with_output().unwrap();
    assert!(
        output.status.success(),
        "git {arguments:?}: {}",
        String::from_utf8_lossy(&output.stderr)
    );
    String::from_utf8(output.stdout).unwrap().trim().to_owned()
}
