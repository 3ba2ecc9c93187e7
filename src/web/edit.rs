//! The editor: `/edit/{path}` for any file of the library, `/new` for one that is not there yet.
//!
//! The text is edited in the browser; here is what it begins with, and the form that works without a script. What is saved goes
//! through the API's own way of publishing.

mod check;
mod drafts;
pub(super) mod endings;
mod place;
mod plain;
mod starters;
mod there;
mod words;

use std::collections::BTreeMap;

use axum::Router;
use axum::extract::{Path, State};
use axum::http::StatusCode;
use axum::response::{IntoResponse, Response};
use axum::routing::{get, post};
use serde::Serialize;

use super::layout::see_other;
use super::page::{Failure, Page, answer, failed, show};
use super::text::{Lang, encoded, encoded_path};
use super::{Visit, Web};
use crate::access::{Action, Actor};
use crate::api::changes::gate;
use crate::api::{Refusal, json};

use place::{Found, Kind, fault, find, reads};
use starters::{Starter, begin, outline, starters};
use there::{Group, there};

pub(super) fn routes() -> Router<Web> {
    Router::new()
        .route("/edit/{*path}", get(edit).post(plain::submit))
        .route("/new", get(new))
        .route("/editor/words", get(words::words))
        .route("/editor/file", get(file))
        .route("/editor/place", get(may_be_there))
        .route("/editor/check", post(check::check))
        .route(
            "/editor/draft",
            get(drafts::list).put(drafts::put).delete(drafts::delete),
        )
}

/// What the page shows without a script, and gives to it.
#[derive(Debug, Serialize)]
#[allow(
    clippy::struct_excessive_bools,
    reason = "a template asks each by its name"
)]
struct Edit {
    path: String,
    kind: Kind,
    exists: bool,
    base: Option<String>,
    /// The text with `\n` alone.
    text: String,
    /// Where it is to be.
    to: String,
    /// Whether it is to be removed.
    remove: bool,
    message: String,
    /// What more is said of it.
    more: String,
    starter: Option<String>,
    read_only: Option<String>,
    may_publish: bool,
    may_propose: bool,
    /// Why nothing can be proposed, where somebody may.
    no_proposals: Option<String>,
    /// Why what was sent was not taken.
    refused: Option<plain::Refused>,
    /// The commit that was made of what was sent.
    published: Option<String>,
    /// The page of the prompt.
    view: Option<String>,
    /// What the script begins with, as JSON.
    data: String,
}

impl Page for Edit {
    const TEMPLATE: &'static str = "edit.html";
    const SECTION: &'static str = "library";

    fn title(&self, lang: Lang) -> String {
        lang.text("editor.title", &[("path", &self.path)])
    }
}

/// What the script gets.
#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
struct Data<'a> {
    path: &'a str,
    kind: Kind,
    base: Option<&'a str>,
    exists: bool,
    raw: &'a str,
    may: May,
    read_only: Option<&'a str>,
    draft: Option<drafts::Shown>,
    comes_with: BTreeMap<String, String>,
    max_bytes: usize,
    texts: BTreeMap<&'static str, &'static str>,
}

#[derive(Debug, Clone, Copy, Serialize)]
struct May {
    publish: bool,
    propose: bool,
}

impl May {
    fn of(actor: &Actor, kind: Kind, path: &str) -> Self {
        let publish = match kind {
            Kind::Labels => Action::MoveLabel,
            Kind::Library => Action::ChangePolicy,
            _ => Action::Publish,
        };
        Self {
            publish: actor.may(publish, path),
            propose: actor.may(Action::Propose, path),
        }
    }
}

/// The texts of the editor's script.
fn texts(lang: Lang) -> BTreeMap<&'static str, &'static str> {
    let all = lang.table().iter();
    all.filter_map(|(key, text)| Some((key.strip_prefix("editor.")?, text.as_str())))
        .collect()
}

/// What is at a path for somebody: as if there were nothing where they may not look.
struct Opened {
    kind: Kind,
    raw: String,
    exists: bool,
    commit: Option<String>,
    read_only: Option<String>,
    no_proposals: Option<String>,
    may: May,
    comes_with: BTreeMap<String, String>,
    starter: Option<String>,
}

async fn open(web: &Web, visit: &Visit, path: &str) -> Result<Opened, Failure> {
    let kind = Kind::of(path).ok_or(Failure::NotFound)?;
    let mut may = May::of(&visit.actor, kind, path);
    if !reads(&visit.actor, path) {
        return Err(Failure::NotFound);
    }
    let Found {
        bytes,
        commit,
        work_tree,
    } = look(web, path).await?;
    let text = |key: &str| visit.lang.text(&format!("editor.{key}"), &[]);
    let exists = bytes.is_some();
    if !(exists || may.propose || may.publish) {
        return Err(Failure::NotFound);
    }
    let mut no_proposals = None;
    let read_only = if work_tree {
        Some(text("read_only_work_tree"))
    } else if !(may.propose || may.publish) {
        Some(text("read_only_role"))
    } else {
        match gate(&web.api) {
            Err(refusal) => Some(refusal.detail),
            Ok(gate) => {
                let why = gate.proposals().err().filter(|_| may.propose);
                no_proposals = why.map(|why| {
                    let values = [("why", why)];
                    visit.lang.text("editor.no_proposals", &values)
                });
                may.propose &= no_proposals.is_none();
                no_proposals.clone().filter(|_| !may.publish)
            }
        }
    };
    let starter = visit.query.get("starter").filter(|_| !exists);
    let (raw, comes_with) = match (bytes, starter.and_then(begin)) {
        (Some(bytes), _) => {
            let raw = String::from_utf8(bytes).map_err(|_| Failure::Invalid(text("binary")))?;
            (raw, BTreeMap::new())
        }
        (None, Some((raw, needs))) => (raw, missing(web, needs).await?),
        (None, None) => {
            let name = path.rsplit('/').next().unwrap_or(path);
            let name = name.split('.').next().unwrap_or(name);
            (outline(kind, visit.lang, name), BTreeMap::new())
        }
    };
    Ok(Opened {
        kind,
        raw,
        exists,
        commit,
        read_only,
        no_proposals,
        may,
        comes_with,
        starter: starter.map(str::to_owned),
    })
}

async fn look(web: &Web, path: &str) -> Result<Found, Failure> {
    let (registry, path) = (web.api.registry.clone(), path.to_owned());
    tokio::task::spawn_blocking(move || find(&registry, &path))
        .await
        .unwrap_or_else(|error| Err(Failure::Internal(error.to_string())))
}

/// Of the files that a starter needs, those that the library has not.
async fn missing(
    web: &Web,
    needs: BTreeMap<String, String>,
) -> Result<BTreeMap<String, String>, Failure> {
    let mut out = BTreeMap::new();
    for (path, text) in needs {
        if look(web, &path).await?.bytes.is_none() {
            out.insert(path, text);
        }
    }
    Ok(out)
}

/// `GET /edit/{path}`.
async fn edit(State(web): State<Web>, visit: Visit, Path(path): Path<String>) -> Response {
    let page = async {
        let opened = open(&web, &visit, &path).await?;
        let published = visit
            .query
            .get("published")
            .filter(|commit| commit.len() == 40 && commit.bytes().all(|b| b.is_ascii_hexdigit()));
        Ok(Edit {
            published: published.map(str::to_owned),
            ..shown(&web, &visit, &path, opened).await
        })
    };
    answer(&web, &visit, page.await).await
}

async fn shown(web: &Web, visit: &Visit, path: &str, opened: Opened) -> Edit {
    let limits = web.api.registry.limits();
    let data = Data {
        path,
        kind: opened.kind,
        base: opened.commit.as_deref(),
        exists: opened.exists,
        raw: &opened.raw,
        may: opened.may,
        read_only: opened.read_only.as_deref(),
        draft: match opened.read_only {
            None => drafts::of(web, visit, path).await,
            Some(_) => None,
        },
        comes_with: opened.comes_with,
        max_bytes: match opened.kind {
            Kind::Resource => limits.resource_file_bytes,
            Kind::Values => limits.values_file_bytes,
            _ => limits.prompt_file_bytes,
        },
        texts: texts(visit.lang),
    };
    let data = serde_json::to_string(&data).unwrap_or_default();
    let has_main = opened.commit.is_some();
    let name = path.rsplit('/').next().unwrap_or(path);
    let name = name.split('.').next().unwrap_or(name);
    let key = if opened.exists {
        "message_edit"
    } else {
        "message_new"
    };
    Edit {
        path: path.to_owned(),
        kind: opened.kind,
        exists: opened.exists,
        base: opened.commit,
        text: endings::plain(&opened.raw),
        to: path.to_owned(),
        remove: false,
        message: visit.lang.text(&format!("editor.{key}"), &[("name", name)]),
        more: String::new(),
        starter: opened.starter,
        may_publish: opened.may.publish && opened.read_only.is_none(),
        // a proposal is made of a commit of main
        may_propose: opened.may.propose && opened.read_only.is_none() && has_main,
        no_proposals: opened.no_proposals.filter(|_| opened.read_only.is_none()),
        read_only: opened.read_only,
        refused: None,
        published: None,
        view: (opened.kind == Kind::Prompt && opened.exists)
            .then(|| format!("/prompts/{}", encoded(name))),
        data,
    }
}

fn unread() -> Refusal {
    Refusal::new(
        StatusCode::INTERNAL_SERVER_ERROR,
        "the library could not be read; the server's log says more",
    )
}

/// `GET /editor/file?path=…`: a file as it is stored at the tip of main.
async fn file(State(web): State<Web>, visit: Visit) -> Response {
    #[derive(Serialize)]
    struct Answer {
        /// None where it is no text.
        raw: Option<String>,
        commit: Option<String>,
    }
    let path = visit.query.get("path").unwrap_or_default();
    let found = if Kind::of(path).is_some() && reads(&visit.actor, path) {
        look(&web, path).await
    } else {
        Err(Failure::NotFound)
    };
    match found {
        Ok(Found {
            bytes: Some(bytes),
            commit,
            ..
        }) => json(&Answer {
            raw: String::from_utf8(bytes).ok(),
            commit,
        }),
        Ok(_) | Err(Failure::NotFound) => {
            Refusal::new(StatusCode::NOT_FOUND, "there is no such file on main").into_response()
        }
        Err(error) => {
            tracing::error!(?error, "a file could not be read");
            unread().into_response()
        }
    }
}

/// `GET /editor/place?path=…&from=…`: whether a file can be put there.
async fn may_be_there(State(web): State<Web>, visit: Visit) -> Response {
    #[derive(Serialize)]
    struct Answer<'a> {
        path: &'a str,
        kind: Option<Kind>,
    }
    let path = visit.query.get("path").unwrap_or_default();
    match place_fault(&web, &visit, path, visit.query.get("from")).await {
        Ok(None) => json(&Answer {
            path,
            kind: Kind::of(path),
        }),
        Ok(Some(why)) => Refusal::new(StatusCode::UNPROCESSABLE_ENTITY, why).into_response(),
        Err(error) => {
            tracing::error!(?error, "a place could not be looked at");
            unread().into_response()
        }
    }
}

async fn place_fault(
    web: &Web,
    visit: &Visit,
    path: &str,
    from: Option<&str>,
) -> Result<Option<String>, Failure> {
    let taken = Kind::of(path).is_some() && look(web, path).await?.bytes.is_some();
    let snapshot = web.api.registry.snapshot();
    Ok(fault(&snapshot.latest, &visit.actor, path, from, taken))
}

/// The page on which a new file begins.
#[derive(Debug, Serialize)]
struct New {
    starters: Vec<Starter>,
    /// Folders of prompts that there are, for the field's list.
    folders: Vec<String>,
    starter: String,
    kind: String,
    folder: String,
    name: String,
    fault: Option<String>,
    /// What there is besides prompts.
    there: Vec<Group>,
    data: String,
}

impl Page for New {
    const TEMPLATE: &'static str = "edit_new.html";
    const SECTION: &'static str = "library";

    fn title(&self, lang: Lang) -> String {
        lang.text("editor.new_title", &[])
    }
}

/// What the script of that page gets.
#[derive(Debug, Serialize)]
struct NewData {
    texts: BTreeMap<&'static str, &'static str>,
}

/// Where a new file goes.
fn new_path(kind: &str, folder: &str, name: &str) -> String {
    let within = |top: &str, file: String| {
        let folder = folder.trim().trim_matches('/');
        if folder.is_empty() {
            format!("{top}/{file}")
        } else {
            format!("{top}/{folder}/{file}")
        }
    };
    let name = name.trim();
    match kind {
        "partial" => within("partials", format!("{}.md", name.trim_end_matches(".md"))),
        "values" => within("values", format!("{}.txt", name.trim_end_matches(".txt"))),
        "resource" if name.contains('.') => within("resources", name.to_owned()),
        "resource" => within("resources", format!("{name}.md")),
        _ => within("prompts", format!("{}.md", name.trim_end_matches(".md"))),
    }
}

/// `GET /new`: the form, or, when it is filled in, the editor of the new file.
async fn new(State(web): State<Web>, visit: Visit) -> Response {
    let field = |name: &str| visit.query.get(name).unwrap_or_default().to_owned();
    let (starter, kind, folder, name) = (
        field("starter"),
        field("kind"),
        field("folder"),
        field("name"),
    );
    if !visit.actor.may_somewhere(Action::Propose) {
        let why = visit.lang.text("editor.read_only_role", &[]);
        return failed(&web, &visit, Failure::Forbidden(why)).await;
    }
    let mut wrong = None;
    if !name.is_empty() {
        let path = new_path(&kind, &folder, &name);
        wrong = match place_fault(&web, &visit, &path, None).await {
            Ok(fault) => fault,
            Err(failure) => return failed(&web, &visit, failure).await,
        };
        if wrong.is_none() {
            let place = encoded_path(&path);
            let query = if Kind::of(&path) == Some(Kind::Prompt) && begin(&starter).is_some() {
                format!("?starter={}", encoded(&starter))
            } else {
                String::new()
            };
            return see_other(&format!("/edit/{place}{query}"));
        }
    }
    let snapshot = web.api.registry.snapshot();
    let mut folders: Vec<String> = snapshot
        .latest
        .list(None)
        .iter()
        .filter(|prompt| reads(&visit.actor, &prompt.path) && !prompt.folder.is_empty())
        .map(|prompt| prompt.folder.to_string())
        .collect();
    folders.dedup();
    let data = NewData {
        texts: texts(visit.lang),
    };
    let page = New {
        starters: starters(visit.lang),
        folders,
        starter,
        kind: if kind.is_empty() {
            "prompt".into()
        } else {
            kind
        },
        folder,
        name,
        fault: wrong,
        there: there(&web, &visit),
        data: serde_json::to_string(&data).unwrap_or_default(),
    };
    show(&web, &visit, &page).await
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_new_file_goes_where_its_kind_is() {
        let check = |kind, folder, name, expected: &str| {
            assert_eq!(new_path(kind, folder, name), expected);
        };
        check("prompt", "sre", "triage", "prompts/sre/triage.md");
        check("", "", "triage.md", "prompts/triage.md");
        check("partial", "/a/", "x", "partials/a/x.md");
        check("values", "", "services", "values/services.txt");
        check(
            "resource",
            "runbook",
            "payments",
            "resources/runbook/payments.md",
        );
        check("resource", "image", "a.png", "resources/image/a.png");
    }
}
