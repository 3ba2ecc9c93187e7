//! Proposals: the list, one with what it does and what is said of it, what conflicts, and what waits for somebody.
//!
//! Everything is read and written as by the API; a form that is refused comes back with what was typed.

mod conflicts;
mod merged;
mod rows;

use axum::extract::{Path, Request, State};
use axum::http::StatusCode;
use axum::http::request::Parts;
use axum::response::Response;
use serde::Serialize;

use super::Web;
use super::layout::{form_of, see_other};
use super::page::{Failure, Page, answer, failed, show};
use super::text::{Lang, Query};
use super::visit::Visit;
use crate::access::By;
use crate::api::Refusal;
use crate::api::proposals::inbox::{Inbox, inbox};
use crate::api::proposals::view::{self, Detail, Summary, own_verdict};
use crate::api::proposals::{self as api, Said, effect};
use crate::proposals::review::Verdict;
use crate::proposals::state::State as Stands;
use crate::proposals::{NewComment, Place};

pub(super) use conflicts::{conflicts, resolve};
use rows::{FileView, Placed, PromptView};

/// Proposals of one page.
const SHOWN: i64 = 50;
/// What waits for somebody of one page.
const WAITING: usize = 20;
/// Longest form, in bytes: more than any comment takes, so that one that is too long comes back with its text.
const MAX_FORM: usize = 1024 * 1024;

fn failure(refusal: Refusal) -> Failure {
    match refusal.status {
        StatusCode::NOT_FOUND => Failure::NotFound,
        StatusCode::FORBIDDEN => Failure::Forbidden(refusal.detail),
        StatusCode::INTERNAL_SERVER_ERROR => Failure::Internal(refusal.detail),
        StatusCode::SERVICE_UNAVAILABLE | StatusCode::BAD_GATEWAY => {
            Failure::Unavailable(refusal.detail)
        }
        // a work tree is served, which has no proposals
        StatusCode::CONFLICT => Failure::Unavailable(refusal.detail),
        _ => Failure::Invalid(refusal.detail),
    }
}

/// What the list's template sees.
#[derive(Debug, Serialize)]
pub struct List {
    /// The state that is shown: `open`, `merged`, `closed` or `all`.
    pub state: String,
    /// The states that can be chosen.
    pub states: [&'static str; 4],
    /// Newest first.
    pub proposals: Vec<Summary>,
    /// Where the next page is.
    pub next: Option<String>,
    /// How many wait for whoever looks.
    pub waiting: usize,
}

impl Page for List {
    const TEMPLATE: &'static str = "review-list.html";
    const SECTION: &'static str = "proposals";

    fn title(&self, lang: Lang) -> String {
        lang.text("review.title", &[])
    }
}

/// `GET /proposals`.
pub(super) async fn list(State(web): State<Web>, visit: Visit) -> Response {
    let list = async {
        let state = visit.query.get("state").unwrap_or("open").to_owned();
        let stands = match &*state {
            "merged" => Some(Stands::Merged),
            "closed" => Some(Stands::Closed),
            "all" => None,
            _ => Some(Stands::Open),
        };
        let before = visit.query.get("cursor").and_then(|text| text.parse().ok());
        let page = api::page(&web.api, &visit.actor, stands, before, SHOWN).await;
        let (proposals, next) = page.map_err(failure)?;
        let waiting = inbox(&web.api, &visit.actor, None, usize::MAX).await;
        let waiting = waiting.map_err(failure)?;
        Ok(List {
            next: next.map(|next| {
                let next = next.to_string();
                format!("/proposals{}", visit.query.with("cursor", Some(&next)))
            }),
            states: ["open", "merged", "closed", "all"],
            waiting: waiting.len(),
            state,
            proposals,
        })
    };
    answer(&web, &visit, list.await).await
}

/// What the template of the inbox sees.
#[derive(Debug, Serialize)]
pub struct Waiting {
    /// What waits.
    pub inbox: Inbox,
    /// Where the next page is.
    pub next: Option<String>,
}

impl Page for Waiting {
    const TEMPLATE: &'static str = "review-inbox.html";
    const SECTION: &'static str = "proposals";

    fn title(&self, lang: Lang) -> String {
        lang.text("review.inbox", &[])
    }
}

/// `GET /inbox`.
pub(super) async fn waiting(State(web): State<Web>, visit: Visit) -> Response {
    let before = visit.query.get("cursor").and_then(|text| text.parse().ok());
    let inbox = inbox(&web.api, &visit.actor, before, WAITING).await;
    let page = inbox.map_err(failure).map(|inbox| Waiting {
        next: inbox.next_cursor.as_ref().map(|cursor| {
            let query = visit.query.with("cursor", Some(cursor));
            format!("/inbox{query}")
        }),
        inbox,
    });
    answer(&web, &visit, page).await
}

/// What the template of a proposal sees.
#[derive(Debug, Serialize)]
pub struct Proposal {
    /// The proposal.
    pub detail: Detail,
    /// Its files.
    pub files: Vec<FileView>,
    /// How many.
    pub file_count: usize,
    /// The prompts it reaches, with what they render to.
    pub prompts: Vec<PromptView>,
    /// Threads about the whole, and those whose place is not shown.
    pub threads: Vec<view::Thread>,
    /// What is not shown, because there is too much of it.
    pub left_out: usize,
    /// The verdict that whoever looks has given on this head.
    pub own: Option<&'static str>,
    /// Errors of the check.
    pub errors: usize,
    /// Warnings of the check.
    pub warnings: usize,
    /// Why what was asked was not done.
    pub refused: Option<String>,
    /// What was typed below the conversation then.
    pub typed: String,
    /// What was typed then in the place of what is there.
    pub again: Option<Again>,
}

/// What a refused form would have put in the place of what is there.
#[derive(Debug, Serialize)]
pub struct Again {
    /// The comment; none where it was the title and what is said with it.
    pub comment: Option<i64>,
    /// The title.
    pub title: String,
    /// The comment, or what is said with the title.
    pub message: String,
}

impl Page for Proposal {
    const TEMPLATE: &'static str = "review.html";
    const SECTION: &'static str = "proposals";

    fn title(&self, _: Lang) -> String {
        format!(
            "{} · {}",
            self.detail.summary.title, self.detail.summary.number
        )
    }
}

fn number(text: &str) -> Result<i64, Failure> {
    text.parse()
        .ok()
        .filter(|number| *number > 0)
        .ok_or(Failure::NotFound)
}

/// What was refused of a form, and what it held.
#[derive(Debug, Default)]
struct Refused {
    detail: Option<String>,
    typed: String,
    again: Option<Again>,
}

impl Refused {
    fn of(detail: String, fields: &Query) -> Self {
        let field = |name: &str| fields.get(name).unwrap_or_default().to_owned();
        let message = field("message");
        let (typed, again) = match &*field("do") {
            "rename" | "edit" => {
                let again = Again {
                    comment: field("comment").parse().ok(),
                    title: field("title"),
                    message,
                };
                (String::new(), Some(again))
            }
            _ => (message, None),
        };
        Self {
            detail: Some(detail),
            typed,
            again,
        }
    }
}

async fn proposal(
    web: &Web,
    visit: &Visit,
    number: i64,
    refused: Refused,
) -> Result<Proposal, Failure> {
    let about = api::about(&web.api, &visit.actor, number)
        .await
        .map_err(failure)?;
    let mut detail = view::detail(&web.api, &visit.actor, &about)
        .await
        .map_err(failure)?;
    let effect = effect::effect(&web.api, &visit.actor, &about)
        .await
        .map_err(failure)?;
    let mut threads = Placed::of(std::mem::take(&mut detail.threads));
    // where a comment is to be made, without scripts
    let at = visit.query.get("at").unwrap_or_default();
    let files = rows::files(&effect.files, &mut threads, at);
    let prompts = rows::prompts(&effect.prompts, &mut threads, at);
    let count = |severity: &str| {
        let found = detail
            .problems
            .iter()
            .filter(|problem| problem.severity == severity);
        found.count()
    };
    Ok(Proposal {
        own: own_verdict(&about, &visit.actor).map(Verdict::as_str),
        errors: count("error"),
        warnings: count("warning"),
        file_count: files.len(),
        files,
        prompts,
        threads: threads.rest(),
        left_out: effect.left_out,
        refused: refused.detail,
        typed: refused.typed,
        again: refused.again,
        detail,
    })
}

/// `GET /proposals/{number}`.
pub(super) async fn page(
    State(web): State<Web>,
    Path(text): Path<String>,
    visit: Visit,
) -> Response {
    let page = async { proposal(&web, &visit, number(&text)?, Refused::default()).await };
    answer(&web, &visit, page.await).await
}

/// What a form of a proposal asks for.
async fn done(
    web: &Web,
    by: &By,
    number: i64,
    fields: &Query,
) -> Result<Result<String, Refusal>, Failure> {
    let field = |name: &str| fields.get(name).unwrap_or_default();
    let said = Said {
        tag: fields.get("tag").map(str::to_owned),
    };
    let message = field("message").replace("\r\n", "\n");
    let back = |anchor: &str| format!("/proposals/{number}{anchor}");
    let id = || field("thread").parse::<i64>().ok();
    let new = |thread: Option<i64>, place: Option<Place>| NewComment {
        body: message.clone(),
        thread,
        place,
    };
    let api = &web.api;
    Ok(match field("do") {
        "approve" | "request-changes" => {
            let verdict = if field("do") == "approve" {
                Verdict::Approve
            } else {
                Verdict::RequestChanges
            };
            let given = (verdict, &*message, field("head"));
            api::review(api, by, number, &said, given)
                .await
                .map(|_| back("#said"))
        }
        "comment" => {
            let made = api::comment(api, by, number, &said, new(id(), place(fields))).await;
            made.map(|made| back(&format!("#t{}", made.thread)))
        }
        "resolve" | "unresolve" => {
            let resolved = field("do") == "resolve";
            let thread = id().unwrap_or_default();
            let done = api::resolve(api, by, (number, thread), &said, resolved).await;
            done.map(|()| back(&format!("#t{thread}")))
        }
        "merge" => {
            let head = field("head").to_owned();
            let merged = api::merge(api, by.clone(), number, said, head).await;
            merged.map(|_| back(""))
        }
        "close" => {
            let change = (Some(Stands::Closed), None, None);
            api::close(api, by, number, &said, change)
                .await
                .map(|_| back(""))
        }
        "reopen" => {
            let change = (Some(Stands::Open), None, None);
            api::close(api, by, number, &said, change)
                .await
                .map(|_| back(""))
        }
        "edit" => {
            let comment = field("comment").parse().unwrap_or_default();
            let done = api::edit(api, by, (number, comment), &said, &message).await;
            done.map(|()| back(&format!("#c{comment}")))
        }
        "rename" => {
            let change = (None, Some(field("title")), Some(&*message));
            api::close(api, by, number, &said, change)
                .await
                .map(|_| back(""))
        }
        "revert" => {
            let made = api::revert(api, by.clone(), number, &message).await;
            made.map(|(written, _)| format!("/proposals/{}", written.proposal.number))
        }
        other => {
            let shown: String = other.chars().take(40).collect();
            return Err(Failure::Invalid(format!("nothing is called `{shown}`")));
        }
    })
}

/// Where a form says that its comment stands.
fn place(fields: &Query) -> Option<Place> {
    let path = fields.get("path")?;
    let number = |name: &str| fields.get(name).and_then(|text| text.parse::<u32>().ok());
    let rendered = number("rendered").map(|message| {
        let example = fields.get("example").unwrap_or_default();
        (example.to_owned(), message)
    });
    Some(Place {
        path: path.to_owned(),
        old: fields.get("side") == Some("old"),
        line: number("line").unwrap_or(0),
        rendered,
        quote: None,
    })
}

fn who(parts: &Parts, visit: &Visit) -> By {
    By {
        actor: visit.actor.clone(),
        ..crate::api::by(&parts.extensions)
    }
}

/// `POST /proposals/{number}`: what the buttons of the page do.
pub(super) async fn act(
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
        let refusal = match done(&web, &by, number, &fields).await? {
            Ok(to) => return Ok(Ok(to)),
            Err(refusal) => refusal,
        };
        if matches!(
            refusal.status,
            StatusCode::NOT_FOUND | StatusCode::INTERNAL_SERVER_ERROR
        ) {
            return Err(failure(refusal));
        }
        let refused = Refused::of(refusal.detail, &fields);
        let page = proposal(&web, &visit, number, refused).await?;
        Ok(Err((page, refusal.status)))
    };
    match acted.await {
        Ok(Ok(to)) => see_other(&to),
        Ok(Err((page, status))) => {
            let mut response = show(&web, &visit, &page).await;
            *response.status_mut() = status;
            response
        }
        Err(failure) => failed(&web, &visit, failure).await,
    }
}
