//! What differs between two versions of a prompt: their files, and what their examples render to in the library of today.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write as _;
use std::sync::Arc;
use std::time::Duration;

use similar::TextDiff;
use tokio_util::sync::CancellationToken;

use super::VersionsError;
use crate::catalog::Catalog;
use crate::catalog::versioned::Files;
use crate::git::Repository;
use crate::history::Version;
use crate::prompt::{BoundArguments, Content, Prompt};
use crate::registry::Registry;
use crate::registry::versions::version_files;
use crate::workers::Check;

/// How long one comparison of texts may take; then what was found is shown in larger pieces.
const COMPARING: Duration = Duration::from_millis(500);
/// Lines around a change.
const CONTEXT: usize = 3;
/// Examples that are rendered.
const EXAMPLES: usize = 20;
/// The nonce of both sides, so that only what differs is shown.
const NONCE: &str = "0000000000000000";

/// Two versions, compared.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Compared {
    /// A unified diff of the prompt's file and of the partials it includes, those that may be read by themselves.
    pub source: String,
    /// For each example of either version: its name, and a unified diff of what it renders to; empty where that is the
    /// same.
    pub rendered: Vec<(String, String)>,
}

fn unified(before: &str, after: &str, from: &str, to: &str) -> String {
    if before == after {
        return String::new();
    }
    let mut config = TextDiff::configure();
    config.timeout(COMPARING);
    let diff = config.diff_lines(before, after);
    diff.unified_diff()
        .context_radius(CONTEXT)
        .header(from, to)
        .to_string()
}

fn text(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).into_owned()
}

/// Compares two versions of a prompt: at its path of today, or where it was last. Blocks: reads both, and renders their
/// examples. What a prompt includes is a part of what it renders to; of the files themselves, those that `sees` says yes to
/// are shown.
pub fn compare(
    registry: &Registry,
    repository: &Repository,
    catalog: &Catalog,
    path: &Arc<str>,
    (from, before): (u64, &Version),
    (to, after): (u64, &Version),
    sees: &dyn Fn(&str) -> bool,
) -> Result<Compared, VersionsError> {
    let blobs = repository.blobs()?;
    let (old, new) = (
        version_files(&blobs, before)?,
        version_files(&blobs, after)?,
    );
    let mut source = unified(
        &text(&old.prompt),
        &text(&new.prompt),
        &format!("v{from}/{}", before.path),
        &format!("v{to}/{}", after.path),
    );
    let partials = |files: &Files| -> BTreeMap<String, String> {
        let all = files.partials.iter().filter(|(path, _)| sees(path));
        all.map(|(path, bytes)| (path.to_string(), text(bytes)))
            .collect()
    };
    let (of_old, of_new) = (partials(&old), partials(&new));
    for path in of_old.keys().chain(of_new.keys()).collect::<BTreeSet<_>>() {
        let side = |all: &BTreeMap<String, String>, number: u64| match all.get(path) {
            Some(text) => (text.clone(), format!("v{number}/{path}")),
            None => (String::new(), "/dev/null".to_owned()),
        };
        let ((a, from), (b, to)) = (side(&of_old, from), side(&of_new, to));
        source.push_str(&unified(&a, &b, &from, &to));
    }
    let linked = |files: &Files| {
        let made = catalog.versioned(path, files, &crate::catalog::examples::none);
        made.map_err(|problems| {
            problems.first().map_or_else(
                || "cannot be read".to_owned(),
                crate::prompt::Problem::one_line,
            )
        })
    };
    let (old, new) = (linked(&old), linked(&new));
    let mut examples: Vec<&crate::prompt::Example> = Vec::new();
    for side in [&new, &old].into_iter().flatten() {
        for example in &side.examples {
            if !examples.iter().any(|known| known.name == example.name) {
                examples.push(example);
            }
        }
    }
    let check = registry.renderer().check(CancellationToken::new());
    let mut rendered = Vec::new();
    for example in examples.into_iter().take(EXAMPLES) {
        let side = |made: &Result<Arc<Prompt>, String>| match made {
            Ok(made) => shown(&check, catalog, made, &example.arguments),
            Err(problem) => format!("does not pass the check: {problem}\n"),
        };
        let (from, to) = (format!("v{from}"), format!("v{to}"));
        let diff = unified(&side(&old), &side(&new), &from, &to);
        rendered.push((example.name.clone(), diff));
    }
    Ok(Compared { source, rendered })
}

/// The messages of a prompt as text, or why there are none.
fn shown(
    check: &Check<'_>,
    catalog: &Catalog,
    prompt: &Prompt,
    arguments: &[(String, String)],
) -> String {
    let limits = catalog.limits();
    let given = arguments
        .iter()
        .map(|(name, value)| (name.as_str(), value.as_str()));
    let made = || -> Result<String, Box<dyn std::error::Error>> {
        let bound = BoundArguments::bind(&prompt.arguments, given, limits)?;
        let mut resources = catalog.resolve(prompt, &bound)?;
        resources.nonce = NONCE.into();
        let rendered = check.render(prompt, &bound, &resources, limits)?;
        let mut out = String::new();
        for message in &rendered.messages {
            let _ = writeln!(out, "--- {}", message.role.as_str());
            match &message.content {
                Content::Text(text) => {
                    out.push_str(text);
                    if !text.ends_with('\n') {
                        out.push('\n');
                    }
                }
                Content::Resource { resource, .. } => {
                    let _ = writeln!(out, "[{} {}]", resource.uri, resource.sha256);
                }
            }
        }
        Ok(out)
    };
    made().unwrap_or_else(|error| format!("does not render: {error}\n"))
}
