//! A prompt's text with the version that each line is from: who wrote it, when and why.

use axum::extract::{Path, State};
use axum::response::Response;
use serde::Serialize;

use super::Web;
use super::page::{Failure, Page, answer};
use super::prompt::{Head, head, seen};
use super::text::Lang;
use super::versions::{meant, numbered, readable};
use super::visit::{Visit, reads};
use crate::git::{GitError, read_again};
use crate::history::Numbered;
use crate::versions::blame::{Blame, blame};

/// Lines of one page at most; a person reads no more.
const LINES: usize = 3000;

/// What the template sees.
#[derive(Debug, Serialize)]
pub struct BlamePage {
    /// The prompt.
    pub head: Head,
    /// The version whose text it is.
    pub version: u64,
    /// Its lines, those that come from one version and follow each other together.
    pub groups: Vec<Group>,
    /// Lines that are not shown.
    pub left_out: usize,
}

/// Lines that follow each other and are from one version.
#[derive(Debug, Serialize)]
pub struct Group {
    /// The number of the first one.
    pub first: usize,
    /// What they say.
    pub lines: Vec<String>,
    /// Where they are from; none where that is older than what is compared.
    pub from: Option<Origin>,
}

/// A version that lines are from.
#[derive(Debug, Serialize)]
pub struct Origin {
    /// Its number.
    pub number: u64,
    /// When, in seconds since 1970.
    pub at: i64,
    /// Who made it.
    pub author: String,
    /// The first line of the message.
    pub subject: String,
}

impl Page for BlamePage {
    const TEMPLATE: &'static str = "blame.html";
    const SECTION: &'static str = "library";

    fn title(&self, lang: Lang) -> String {
        lang.text("blame.window", &[("name", &self.head.name)])
    }
}

/// `GET /prompts/{name}/blame`, of the newest version or `?at=v3`.
pub(super) async fn page(
    State(web): State<Web>,
    visit: Visit,
    Path(name): Path<String>,
) -> Response {
    let page = made(&web, &visit, &name).await;
    answer(&web, &visit, page).await
}

async fn made(web: &Web, visit: &Visit, name: &str) -> Result<BlamePage, Failure> {
    let snapshot = web.api.registry.snapshot();
    let prompt = seen(&snapshot.catalog, visit, name)?;
    let numbered = numbered(&snapshot, visit, name)?;
    let at = match visit.query.get("at") {
        Some(text) => readable(&numbered, visit, meant(&snapshot, name, text)?)?.0,
        None => numbered.latest(),
    };
    let registry = web.api.registry.clone();
    let (of, actor) = (numbered.clone(), visit.actor.clone());
    let place = web.api.registry.blaming().await;
    let _place = place.map_err(|error| Failure::Unavailable(error.to_string()))?;
    let read = tokio::task::spawn_blocking(move || {
        let repository = registry.library().repository().ok_or(Failure::NotFound)?;
        let sees = |path: &str| reads(&actor, path);
        read_again(GitError::git, || blame(repository, &of, at, sees))
            .map_err(|error| Failure::Internal(error.to_string()))
    });
    let found = read
        .await
        .map_err(|error| Failure::Internal(error.to_string()))??;
    Ok(BlamePage {
        head: head(&snapshot, visit, &prompt),
        version: found.version,
        left_out: found.lines.len().saturating_sub(LINES),
        groups: groups(found, &numbered),
    })
}

/// Puts lines together that follow each other and are from one version.
fn groups(found: Blame, numbered: &Numbered) -> Vec<Group> {
    let mut out: Vec<Group> = Vec::new();
    let mut last = None;
    let lines = found.lines.into_iter().zip(found.from).take(LINES);
    for (index, (line, from)) in lines.enumerate() {
        match out.last_mut() {
            Some(group) if last == Some(from) => group.lines.push(line),
            _ => out.push(Group {
                first: index + 1,
                lines: vec![line],
                from: from.and_then(|number| origin(numbered, number)),
            }),
        }
        last = Some(from);
    }
    out
}

fn origin(numbered: &Numbered, number: u64) -> Option<Origin> {
    let commit = &numbered.get(number)?.commit;
    Some(Origin {
        number,
        at: commit.seconds,
        author: commit.author.to_string(),
        subject: commit.subject.to_string(),
    })
}
