//! What of a proposal conflicts with main, and the form that resolves it.

use std::collections::{BTreeMap, BTreeSet};

use axum::extract::{Path, Request, State};
use axum::http::StatusCode;
use axum::response::Response;
use serde::Serialize;

use super::merged::{is_marked, merged};
use super::{failure, number, who};
use crate::api::proposals as api;
use crate::api::proposals::view::{self, ConflictView};
use crate::gate::propose::Proposing;
use crate::git::commit::Edit;
use crate::proposals::state::State as Stands;
use crate::web::Web;
use crate::web::edit::endings;
use crate::web::layout::{form_of, see_other};
use crate::web::page::{Failure, Page, answer, failed, show};
use crate::web::text::Lang;
use crate::web::visit::Visit;

/// Longest form, in bytes: it holds whole files.
const MAX_FORM: usize = 12 * 1024 * 1024;

/// A file that conflicts, and the text that the form holds for it.
#[derive(Debug, Serialize)]
pub(super) struct ToResolve {
    /// The file, as each side has it.
    pub file: ConflictView,
    /// What was typed; before, what both sides make of it, with markers where they differ.
    pub text: String,
    /// Whether it is to be removed.
    pub remove: bool,
}

/// What was typed for a file that does not conflict any more.
#[derive(Debug, Serialize)]
pub(super) struct Other {
    /// Its path.
    pub path: String,
    /// The text.
    pub text: String,
}

/// What the template of conflicts sees.
#[derive(Debug, Serialize)]
pub(super) struct Resolving {
    /// The proposal's number.
    pub number: i64,
    /// What it is about.
    pub title: String,
    /// The head that the texts of the form were made on.
    pub head: String,
    /// The tip of main that they were made on.
    pub main: Option<String>,
    /// The head now.
    pub head_now: String,
    /// The tip of main now.
    pub main_now: Option<String>,
    /// Whether one of both is another by now.
    pub moved: bool,
    /// What conflicts.
    pub files: Vec<ToResolve>,
    /// What else was typed.
    pub others: Vec<Other>,
    /// Whether whoever looks may resolve it.
    pub may: bool,
    /// Why it was not resolved.
    pub refused: Option<String>,
}

impl Page for Resolving {
    const TEMPLATE: &'static str = "review-conflicts.html";
    const SECTION: &'static str = "proposals";

    fn title(&self, lang: Lang) -> String {
        lang.text("review.conflicts.title", &[("n", &self.number.to_string())])
    }
}

/// What a form held that was refused.
#[derive(Debug, Default)]
struct Sent {
    refused: Option<String>,
    /// The head and the tip of main that it was made on.
    on: Option<(String, Option<String>)>,
    typed: BTreeMap<String, String>,
    removed: BTreeSet<String>,
}

/// Fills the form: with what was sent, else with what both sides make of a file. Blocks.
fn filled(files: Vec<ConflictView>, mut sent: Sent) -> (Vec<ToResolve>, Vec<Other>) {
    let mut out = Vec::new();
    for file in files {
        let plain = |text: &Option<String>| endings::plain(text.as_deref().unwrap_or_default());
        let text = match sent.typed.remove(&file.path) {
            Some(typed) => typed,
            None if file.binary => String::new(),
            None => merged(&plain(&file.base), &plain(&file.ours), &plain(&file.theirs)),
        };
        out.push(ToResolve {
            remove: sent.removed.contains(&file.path),
            file,
            text,
        });
    }
    let others = sent.typed.into_iter();
    let others = others.map(|(path, text)| Other { path, text });
    (out, others.collect())
}

async fn resolving(
    web: &Web,
    visit: &Visit,
    number: i64,
    mut sent: Sent,
) -> Result<Resolving, Failure> {
    let about = api::about(&web.api, &visit.actor, number)
        .await
        .map_err(failure)?;
    let now = view::conflicts(&web.api, &visit.actor, &about)
        .await
        .map_err(failure)?;
    let paths = about.row.touches();
    let may = |path: &String| visit.actor.may(crate::access::Action::Propose, path);
    let refused = sent.refused.take();
    let on = sent.on.take();
    let (head, main) = on.unwrap_or_else(|| (now.head.clone(), now.main.clone()));
    let files = now.files;
    let (files, others) = tokio::task::spawn_blocking(move || filled(files, sent))
        .await
        .map_err(|error| Failure::Internal(error.to_string()))?;
    Ok(Resolving {
        number,
        title: about.row.title.clone(),
        moved: head != now.head || main != now.main,
        head,
        main,
        head_now: now.head,
        main_now: now.main,
        may: about.state() == Stands::Open && paths.iter().all(may),
        files,
        others,
        refused,
    })
}

/// `GET /proposals/{number}/conflicts`.
pub(in crate::web) async fn conflicts(
    State(web): State<Web>,
    Path(text): Path<String>,
    visit: Visit,
) -> Response {
    let page = async { resolving(&web, &visit, number(&text)?, Sent::default()).await };
    answer(&web, &visit, page.await).await
}

/// The edits of a form, with the line ends that the proposal has stored.
async fn edits(web: &Web, head: String, sent: &Sent) -> Result<Vec<Edit>, Failure> {
    let registry = web.api.registry.clone();
    let kept = sent.typed.iter();
    let kept = kept.filter(|(path, _)| !sent.removed.contains(*path));
    let kept: Vec<(String, String)> = kept
        .map(|(path, text)| (path.clone(), text.clone()))
        .collect();
    let made = tokio::task::spawn_blocking(move || {
        let repository = registry.library().repository();
        let mut out = Vec::new();
        for (path, text) in kept {
            let stored = repository
                .and_then(|repository| repository.file(&head, &path).ok().flatten())
                .and_then(|bytes| String::from_utf8(bytes).ok())
                .unwrap_or_default();
            let text = endings::restored(&stored, &text);
            out.push(Edit {
                path,
                content: Some(text.into_bytes()),
            });
        }
        out
    });
    let mut edits = made
        .await
        .map_err(|error| Failure::Internal(error.to_string()))?;
    edits.extend(sent.removed.iter().map(|path| Edit {
        path: path.clone(),
        content: None,
    }));
    Ok(edits)
}

/// `POST /proposals/{number}/conflicts`: a revision in which nothing conflicts.
pub(in crate::web) async fn resolve(
    State(web): State<Web>,
    Path(text): Path<String>,
    request: Request,
) -> Response {
    let (parts, body) = request.into_parts();
    let visit = Visit::of(&parts);
    let by = who(&parts, &visit);
    drop(parts);
    let acted = async {
        let number = number(&text)?;
        let fields = form_of(&web, &visit, body, MAX_FORM).await?;
        let mut sent = Sent::default();
        for (name, value) in fields.pairs() {
            if let Some(path) = name.strip_prefix("file:") {
                // a browser sends every line end of a form as CRLF
                sent.typed
                    .insert(path.to_owned(), value.replace("\r\n", "\n"));
            }
        }
        sent.removed = fields.all("remove").map(str::to_owned).collect();
        let main = |main: &str| Some(main.to_owned()).filter(|main| !main.is_empty());
        // who has seen what came since puts their text in its place
        let seen = fields.get("seen").and_then(|seen| seen.split_once(' '));
        let (base, merges) = match seen {
            Some((head, tip)) => (head.to_owned(), main(tip)),
            None => (
                fields.get("head").unwrap_or_default().to_owned(),
                fields.get("main").and_then(main),
            ),
        };
        sent.on = Some((base.clone(), merges.clone()));
        let marked = sent
            .typed
            .iter()
            .find(|(path, text)| !sent.removed.contains(*path) && is_marked(text));
        if let Some((path, _)) = marked {
            let values = [("path", &**path)];
            let why = visit.lang.text("review.conflicts.marked", &values);
            sent.refused = Some(why);
            let page = resolving(&web, &visit, number, sent).await?;
            return Ok(Some((page, StatusCode::UNPROCESSABLE_ENTITY)));
        }
        let about = api::about(&web.api, &visit.actor, number)
            .await
            .map_err(failure)?;
        let ask = Proposing {
            title: None,
            body: None,
            base,
            number: Some(number),
            merges,
            edits: edits(&web, about.row.head.clone(), &sent).await?,
            message: format!("Merge main into proposal {number}"),
        };
        let Err(refusal) = api::revise(&web.api, by, ask).await else {
            return Ok(None);
        };
        if matches!(
            refusal.status,
            StatusCode::NOT_FOUND | StatusCode::INTERNAL_SERVER_ERROR
        ) {
            return Err(failure(refusal));
        }
        let status = refusal.status;
        sent.refused = Some(refusal.detail);
        let page = resolving(&web, &visit, number, sent).await?;
        Ok(Some((page, status)))
    };
    match acted.await {
        Ok(None) => see_other(&format!("/proposals/{text}")),
        Ok(Some((page, status))) => {
            let mut response = show(&web, &visit, &page).await;
            *response.status_mut() = status;
            response
        }
        Err(failure) => failed(&web, &visit, failure).await,
    }
}
