//! `cuebook render`: a prompt with arguments, as a client gets it.

use std::io::Write;
use std::path::PathBuf;
use std::process::ExitCode;
use std::sync::Arc;

use anyhow::{Context as _, bail};
use serde_json::json;

use crate::catalog::{Catalog, Revision};
use crate::git::GitError;
use crate::prompt::{At, BindError, BoundArguments, Content, Limits, Message, Prompt, Selector};
use crate::registry::source::{CommitTree, Library, WorkTree};
use crate::registry::{self, AtError, Registry, Settings};
use crate::workers::Renderer;

/// Arguments of `cuebook render`.
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Examples:
  cuebook render incident-triage ticketId=INC-9942 service=payments
  cuebook render code-review@4f2a91c language=rust diff@=change.diff   (name@=FILE reads a value from a file)")]
pub(super) struct Args {
    /// The prompt: `name` or `name@<commit>`
    name: String,
    /// Values: `name=value`, or `name@=FILE`
    #[arg(value_name = "NAME=VALUE")]
    arguments: Vec<String>,
    /// A work tree, a clone, a bare repository or a data directory
    #[arg(long, value_name = "DIR", default_value = ".")]
    library: PathBuf,
    /// How messages are printed
    #[arg(long, value_enum, default_value_t)]
    format: Format,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, clap::ValueEnum)]
enum Format {
    /// Each message below a line with its role.
    #[default]
    Text,
    /// A JSON document.
    Json,
}

pub(super) fn run(args: &Args, out: &mut impl Write) -> anyhow::Result<ExitCode> {
    let selector = Selector::parse(&args.name)?;
    let library = Library::find(&args.library)?;
    let config = super::library_config(&args.library)?;
    let commit = match &selector.at {
        At::Served | At::Latest => None,
        At::Revision(id) => Some(id.clone()),
        At::Version(_) | At::Label(_) => {
            bail!(
                "versions and labels are for a server to say, and this renders files; use {}@<commit>, which `cuebook log` shows for each version",
                selector.name
            )
        }
    };
    let limits = &config.limits;
    let renderer = config.renderer();
    let catalog = match (&commit, &library) {
        (None, Library::WorkTree { root, .. }) => {
            let tree = WorkTree::open(root)?;
            Arc::new(registry::check(&tree, Revision::WorkTree, limits, None, &renderer)?.catalog)
        }
        (None, Library::Bare(repository)) => {
            repository
                .main_tip()?
                .context("the repository has no commit on main yet")?;
            // what clients get, which is an older commit where the tip has problems
            let settings = Settings {
                limits: limits.clone(),
                renderer: renderer.clone(),
                ..Settings::default()
            };
            let registry = Registry::open(library.clone(), settings)?;
            let snapshot = registry.snapshot();
            if selector.at == At::Latest {
                snapshot.latest.clone()
            } else {
                snapshot.catalog.clone()
            }
        }
        (Some(id), library) => at_commit(library, id, limits, &renderer)?,
    };
    let name = selector.name.as_str();
    let Some(prompt) = catalog.prompt(name) else {
        let suffix = format!("/{name}.md");
        if let Some(problem) = catalog
            .problems()
            .into_iter()
            .find(|p| p.is_error() && p.path.ends_with(&suffix))
        {
            bail!(
                "`{name}` has problems: {}\nsee: cuebook check {}",
                problem.one_line(),
                args.library.display()
            );
        }
        let near = catalog.suggest(name, None);
        let hint = if near.is_empty() {
            String::new()
        } else {
            format!("; did you mean {}?", near.join(", "))
        };
        bail!("there is no prompt `{name}`{hint}");
    };
    let given = values(&args.arguments)?;
    let bound = BoundArguments::bind(
        &prompt.arguments,
        given.iter().map(|(n, v)| (n.as_str(), v.as_str())),
        &config.limits,
    )
    .map_err(|error| match &error {
        BindError::Missing(_) => anyhow::anyhow!("{error}\n{}", usage(prompt)),
        BindError::TooLarge { .. } => error.into(),
    })?;
    if let Some(unknown) = bound.unknown().first() {
        bail!("`{name}` has no argument `{unknown}`\n{}", usage(prompt));
    }
    let mut resources = catalog.resolve(prompt, &bound)?;
    resources.nonce = format!("{:016x}", getrandom::u64().unwrap_or_default());
    let rendered = renderer
        .check_again()
        .render(prompt, &bound, &resources, &config.limits)?;
    match args.format {
        Format::Text => text(&rendered.messages, out)?,
        Format::Json => {
            let document = json!({
                "prompt": name,
                "commit": catalog.revision().commit(),
                "sha256": &*prompt.sha256,
                "lane": prompt.lane.as_str(),
                "messages": rendered.messages.iter().map(message_json).collect::<Vec<_>>(),
            });
            writeln!(out, "{}", serde_json::to_string_pretty(&document)?)?;
        }
    }
    Ok(ExitCode::SUCCESS)
}

/// The catalog of a commit that clients may ask for too: one of main, or of what a clone has checked out, that passes
/// the check.
fn at_commit(
    library: &Library,
    id: &str,
    limits: &Limits,
    renderer: &Renderer,
) -> anyhow::Result<Arc<Catalog>> {
    let repository = library
        .repository()
        .context("this folder has no git repository, so it has no revisions")?;
    let mut tips = Vec::new();
    if !repository.is_bare() {
        tips.extend(repository.resolve("HEAD").ok());
    }
    tips.extend(repository.main_tip()?);
    let mut found = Err(GitError::Unknown(id.into()));
    for tip in tips {
        found = repository.reachable(id, &tip);
        if !matches!(found, Err(GitError::Unknown(_))) {
            break;
        }
    }
    let commit = found?;
    let tree = CommitTree::open(repository, &commit)?;
    let revision = Revision::Commit(commit.as_str().into());
    let built = registry::check(&tree, revision, limits, None, renderer)?;
    if let Some(first) = built.problems.iter().find(|p| p.is_error()) {
        let first = first.one_line();
        return Err(AtError::Unclean { commit, first }.into());
    }
    Ok(Arc::new(built.catalog))
}

fn values(given: &[String]) -> anyhow::Result<Vec<(String, String)>> {
    given
        .iter()
        .map(|argument| {
            let (name, value) = argument
                .split_once('=')
                .with_context(|| format!("`{argument}` is no argument; write name=value"))?;
            match name.strip_suffix('@') {
                Some(name) => {
                    let text = std::fs::read_to_string(value)
                        .with_context(|| format!("cannot read {value}"))?;
                    Ok((name.to_owned(), text))
                }
                None => Ok((name.to_owned(), value.to_owned())),
            }
        })
        .collect()
}

fn usage(prompt: &Prompt) -> String {
    let mut text = format!("usage: cuebook render {}", prompt.name);
    for argument in &prompt.arguments {
        let shown = if argument.required {
            format!(" {}=…", argument.name)
        } else {
            format!(" [{}=…]", argument.name)
        };
        text.push_str(&shown);
    }
    text
}

fn text(messages: &[Message], out: &mut impl Write) -> std::io::Result<()> {
    for message in messages {
        match &message.content {
            Content::Text(text) => {
                writeln!(out, "--- {}", message.role.as_str())?;
                out.write_all(text.as_bytes())?;
                if !text.ends_with('\n') {
                    out.write_all(b"\n")?;
                }
            }
            Content::Resource {
                resource, embed, ..
            } => {
                writeln!(
                    out,
                    "--- {} {} {} ({}, {})",
                    message.role.as_str(),
                    embed.as_str(),
                    resource.uri,
                    resource.mime_type,
                    resource.path
                )?;
                match resource.text() {
                    Some(text) => {
                        out.write_all(text.as_bytes())?;
                        if !text.ends_with('\n') {
                            out.write_all(b"\n")?;
                        }
                    }
                    None => writeln!(out, "[{} bytes]", resource.bytes().len())?,
                }
            }
        }
    }
    Ok(())
}

fn message_json(message: &Message) -> serde_json::Value {
    let content = match &message.content {
        Content::Text(text) => json!({ "type": "text", "text": text }),
        Content::Resource {
            resource, embed, ..
        } => json!({
            "type": embed.as_str(),
            "uri": &*resource.uri,
            "mimeType": &*resource.mime_type,
            "sha256": &*resource.sha256,
            "text": resource.text(),
        }),
    };
    json!({ "role": message.role.as_str(), "content": content })
}
