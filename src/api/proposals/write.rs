//! What is written of proposals: opened, revised, judged, commented, merged, closed.

use std::collections::BTreeMap;

use axum::extract::{Path, Request, State};
use axum::http::{HeaderValue, StatusCode, header};
use axum::response::{IntoResponse, Response};
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

use super::{
    Api, Refusal, about, by, effect, internal, json, merging, number, proposals, proposing, tag_of,
    tagged, talk, view,
};
use crate::access::By;
use crate::api::changes::{self, Answer as Merged, NewFile};
use crate::api::openapi::{
    Absent, Anywhere, Changed, Conflict, Failed, Numbered, Seen, Unfit, Unreached, Unread,
};
use crate::api::tag::{seen_tag, unchanged};
use crate::api::{parse, read};
use crate::gate::propose::Proposing;
use crate::gate::publish::Published;
use crate::proposals::place::Quote;
use crate::proposals::review::Verdict;
use crate::proposals::state::State as Stands;
use crate::proposals::{NewComment, Written};
use crate::store::{CommentRow, ProposalRow, ReviewRow};

/// Longest request that holds no files, in bytes.
pub(super) const MAX_BODY: usize = 512 * 1024;
/// Longest title, in characters.
const MAX_TITLE: usize = 200;

/// A request: who makes it, what they have seen, and what they ask.
pub(super) struct Asked<T> {
    pub(super) by: By,
    pub(super) seen: Option<String>,
    pub(super) ask: T,
}

pub(super) async fn asked<T: DeserializeOwned>(
    request: Request,
    most: usize,
) -> Result<Asked<T>, Refusal> {
    let (parts, body) = request.into_parts();
    let body = read(&parts.headers, body, most, "a limit of this release").await?;
    Ok(Asked {
        by: by(&parts.extensions),
        seen: seen_tag(&parts.headers),
        ask: parse(&body)?,
    })
}

pub(super) fn wrong(detail: impl Into<String>) -> Refusal {
    Refusal::new(StatusCode::UNPROCESSABLE_ENTITY, detail)
}

fn title(text: &str) -> Result<String, Refusal> {
    let text = text.trim();
    if text.is_empty() || text.chars().count() > MAX_TITLE || text.contains(char::is_control) {
        return Err(wrong(format!(
            "`title` is one line of at most {MAX_TITLE} characters that says what the change is for"
        )));
    }
    Ok(text.to_owned())
}

/// What came of a proposal that was opened or revised.
#[derive(Debug, Clone, Serialize, ToSchema)]
#[schema(as = ProposalWritten)]
pub(super) struct Opened {
    /// Its number.
    number: i64,
    /// The commit that is proposed now.
    head: String,
    /// How often something was pushed to it.
    revision: i64,
    /// What it is about.
    title: String,
    /// What the check and the audit have to say of it, a line each.
    lines: Vec<String>,
}

/// Makes a proposal or a revision; whoever hangs up has it made all the same, or not at all.
pub async fn make(api: &Api, by: By, ask: Proposing) -> Result<(Written, Vec<String>), Refusal> {
    let (gate, _) = proposals(api)?;
    let gate = gate.clone();
    let place = changes::place(api).await?;
    api.writing
        .spawn(async move {
            let _place = place;
            gate.propose_here(&by, ask).await
        })
        .await
        .map_err(|error| internal(&error))?
        .map_err(proposing)
}

pub(super) fn opened(status: StatusCode, (written, lines): (Written, Vec<String>)) -> Response {
    let row = &written.proposal;
    let mut response = tagged(
        row,
        &Opened {
            number: row.number,
            head: row.head.clone(),
            revision: row.revision,
            title: row.title.clone(),
            lines,
        },
    );
    *response.status_mut() = status;
    if status == StatusCode::CREATED
        && let Ok(place) = HeaderValue::from_str(&format!("/api/v1/proposals/{}", row.number))
    {
        response.headers_mut().insert(header::LOCATION, place);
    }
    response
}

#[derive(Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
#[schema(as = ProposalAsk)]
struct AskOpen {
    /// One line that says what the change is for.
    title: String,
    /// What else there is to say of it.
    #[serde(default)]
    message: Option<String>,
    /// The commit of main that the edits were made from.
    base: String,
    /// What each file holds afterwards, by path; null deletes it.
    #[serde(alias = "changes")]
    files: BTreeMap<String, NewFile>,
}

/// Propose a change of files
#[utoipa::path(
    post,
    path = "/api/v1/proposals",
    operation_id = "propose",
    tag = "proposals",
    request_body = AskOpen,
    responses(
        (status = 201, description = "Propose a change of files", body = Opened,
         headers(("ETag" = String, description = "For `If-Match` of what changes it"))),
        Anywhere,
        Conflict,
        Unread,
        Unfit,
        Failed,
        Unreached
    )
)]
pub(crate) async fn open(State(api): State<Api>, request: Request) -> Response {
    let answer = async {
        let Asked { by, ask, .. } = asked::<AskOpen>(request, changes::MAX_BODY).await?;
        let title = title(&ask.title)?;
        let body = ask.message.unwrap_or_default().trim().to_owned();
        let text = if body.is_empty() {
            title.clone()
        } else {
            format!("{title}\n\n{body}")
        };
        let ask = Proposing {
            message: changes::message(&text)?,
            title: Some(title),
            body: Some(body),
            base: ask.base,
            number: None,
            merges: None,
            edits: changes::edits(ask.files)?,
        };
        Ok::<_, Refusal>(opened(StatusCode::CREATED, make(&api, by, ask).await?))
    };
    answer.await.unwrap_or_else(Refusal::into_response)
}

#[derive(Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
#[schema(as = RevisionAsk)]
struct AskRevise {
    /// The head that the edits were made from.
    base: String,
    /// The tip of main that is merged into it; `files` then says what the files with conflicts are to hold.
    #[serde(default)]
    merges: Option<String>,
    /// What each file holds afterwards, by path; null deletes it.
    #[serde(alias = "changes", default)]
    files: BTreeMap<String, NewFile>,
    /// The message of the commit.
    #[serde(default)]
    message: Option<String>,
}

/// Put another commit on a proposal
#[utoipa::path(
    post,
    path = "/api/v1/proposals/{number}/revisions",
    operation_id = "revise",
    tag = "proposals",
    params(Numbered, Seen),
    request_body = AskRevise,
    responses(
        (status = 200, description = "Put another commit on a proposal", body = Opened,
         headers(("ETag" = String, description = "For `If-Match` of what changes it"))),
        Anywhere,
        Absent,
        Conflict,
        Changed,
        Unread,
        Unfit,
        Failed,
        Unreached
    )
)]
pub(super) async fn revise(
    State(api): State<Api>,
    Path(text): Path<String>,
    request: Request,
) -> Response {
    let answer = async {
        let number = number(&text)?;
        let Asked { by, seen, ask } = asked::<AskRevise>(request, changes::MAX_BODY).await?;
        if seen.is_some() {
            // `base` is what two that come at once are told apart by
            let now = about(&api, &by.actor, number).await?.row;
            unchanged(seen.as_deref(), &tag_of(&now))?;
        }
        let text = match (&ask.message, &ask.merges) {
            (Some(message), _) => message.clone(),
            (None, Some(_)) => format!("Merge main into proposal {number}"),
            (None, None) => String::new(),
        };
        let edits = if ask.files.is_empty() && ask.merges.is_some() {
            Vec::new()
        } else {
            changes::edits(ask.files)?
        };
        let ask = Proposing {
            title: None,
            body: None,
            base: ask.base,
            number: Some(number),
            merges: ask.merges,
            edits,
            message: changes::message(&text)?,
        };
        Ok::<_, Refusal>(opened(StatusCode::OK, make(&api, by, ask).await?))
    };
    answer.await.unwrap_or_else(Refusal::into_response)
}

/// Resolves a thread, or opens it again.
pub async fn resolve(
    api: &Api,
    by: &By,
    at: (i64, i64),
    said: &Said,
    resolved: bool,
) -> Result<(), Refusal> {
    let (_, proposals) = proposals(api)?;
    let done = proposals
        .resolve(&by.actor, at, said.tag.as_deref(), resolved)
        .await;
    done.map_err(talk)
}

/// What somebody has seen of a proposal: its tag, where they say so.
#[derive(Debug, Clone, Default)]
pub struct Said {
    /// The tag.
    pub tag: Option<String>,
}

/// Gives a verdict on a head.
pub async fn review(
    api: &Api,
    by: &By,
    number: i64,
    said: &Said,
    (verdict, message, head): (Verdict, &str, &str),
) -> Result<(ReviewRow, Vec<String>), Refusal> {
    let (gate, proposals) = proposals(api)?;
    let row = proposals
        .review(
            &by.actor,
            number,
            said.tag.as_deref(),
            head,
            (verdict, message),
        )
        .await
        .map_err(talk)?;
    let noted = gate.note(by, verdict.as_str(), number, head, None).await;
    Ok((row, noted.into_iter().collect()))
}

#[derive(Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
#[schema(as = ReviewAsk)]
struct AskReview {
    /// `approve`, `request-changes` or `comment`.
    verdict: String,
    /// The head that was judged.
    head: String,
    /// What to say with it.
    #[serde(default)]
    message: String,
}

#[derive(Serialize, ToSchema)]
#[schema(as = ReviewGiven)]
struct Given {
    /// From 1.
    id: i64,
    /// What the audit has to say of it, a line each.
    lines: Vec<String>,
}

/// Judge a proposal
#[utoipa::path(
    post,
    path = "/api/v1/proposals/{number}/reviews",
    operation_id = "review",
    tag = "proposals",
    params(Numbered, Seen),
    request_body = AskReview,
    responses(
        (status = 201, description = "Judge a proposal", body = Given,
         headers(("ETag" = String, description = "For `If-Match` of what changes it"))),
        Anywhere,
        Absent,
        Conflict,
        Changed,
        Unread,
        Unfit,
        Failed,
        Unreached
    )
)]
pub(super) async fn give(
    State(api): State<Api>,
    Path(text): Path<String>,
    request: Request,
) -> Response {
    let answer = async {
        let number = number(&text)?;
        let Asked { by, seen, ask } = asked::<AskReview>(request, MAX_BODY).await?;
        let said = Said { tag: seen };
        let (id, lines) = if let Some(verdict) = Verdict::parse(&ask.verdict) {
            let given = (verdict, &*ask.message, &*ask.head);
            let (row, lines) = review(&api, &by, number, &said, given).await?;
            (row.id, lines)
        } else if ask.verdict == "comment" {
            let new = NewComment {
                body: ask.message,
                thread: None,
                place: None,
            };
            (comment(&api, &by, number, &said, new).await?.id, Vec::new())
        } else {
            return Err(wrong("`verdict` is approve, request-changes or comment"));
        };
        let row = about(&api, &by.actor, number).await?.row;
        let mut response = tagged(&row, &Given { id, lines });
        *response.status_mut() = StatusCode::CREATED;
        Ok(response)
    };
    answer.await.unwrap_or_else(Refusal::into_response)
}

/// Comments on a proposal.
pub async fn comment(
    api: &Api,
    by: &By,
    number: i64,
    said: &Said,
    mut new: NewComment,
) -> Result<CommentRow, Refusal> {
    let (_, proposals) = proposals(api)?;
    if let Some(place) = new.place.as_mut()
        && let Some((example, message)) = place.rendered.clone()
    {
        let about = about(api, &by.actor, number).await?;
        let effect = effect::effect(api, &by.actor, &about).await?;
        let lines = effect::lines(&effect, &place.path, &example, place.old);
        let quote = Quote::of(&lines, (message.into(), place.line.into()));
        let mut quote = quote.ok_or_else(|| {
            let shown: String = place.path.chars().take(80).collect();
            wrong(format!("`{shown}` has no line {} there", place.line))
        })?;
        let mut prompts = effect.prompts.iter();
        quote.of_others = prompts.any(|prompt| *prompt.path == *place.path && prompt.of_others);
        place.quote = Some(quote);
    }
    let made = proposals
        .comment(&by.actor, number, said.tag.as_deref(), new)
        .await;
    made.map_err(talk)
}

/// Gives a comment of the actor's own another text.
pub async fn edit(
    api: &Api,
    by: &By,
    at: (i64, i64),
    said: &Said,
    message: &str,
) -> Result<(), Refusal> {
    let (_, proposals) = proposals(api)?;
    let done = proposals
        .edit_comment(&by.actor, at, said.tag.as_deref(), message)
        .await;
    done.map_err(talk)
}

/// Merges a proposal whose head is the one that was seen; whoever hangs up has it merged all the same, or not at all.
pub async fn merge(
    api: &Api,
    by: By,
    number: i64,
    said: Said,
    head: String,
) -> Result<Published, Refusal> {
    let (gate, _) = proposals(api)?;
    let gate = gate.clone();
    let place = changes::place(api).await?;
    api.writing
        .spawn(async move {
            let _place = place;
            gate.merge(&by, number, said.tag.as_deref(), &head).await
        })
        .await
        .map_err(|error| internal(&error))?
        .map_err(merging)
}

#[derive(Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
struct MergeAsk {
    /// The head that was seen; no other is merged.
    head: String,
}

/// Merge a proposal
#[utoipa::path(
    post,
    path = "/api/v1/proposals/{number}/merge",
    operation_id = "merge",
    tag = "proposals",
    params(Numbered, Seen),
    request_body = MergeAsk,
    responses(
        (status = 200, description = "Merge a proposal", body = Merged),
        Anywhere,
        Absent,
        Conflict,
        Changed,
        Unread,
        Unfit,
        Failed,
        Unreached
    )
)]
pub(super) async fn bring(
    State(api): State<Api>,
    Path(text): Path<String>,
    request: Request,
) -> Response {
    let answer = async {
        let number = number(&text)?;
        let Asked { by, seen, ask } = asked::<MergeAsk>(request, MAX_BODY).await?;
        let said = Said { tag: seen };
        let Published { commit, lines } = merge(&api, by, number, said, ask.head).await?;
        Ok::<_, Refusal>(json(&Merged { commit, lines }))
    };
    answer.await.unwrap_or_else(Refusal::into_response)
}

/// Closes a proposal, opens it again, or changes its title or what its author says.
pub async fn close(
    api: &Api,
    by: &By,
    number: i64,
    said: &Said,
    (to, wanted, body): (Option<Stands>, Option<&str>, Option<&str>),
) -> Result<ProposalRow, Refusal> {
    let (gate, proposals) = proposals(api)?;
    let wanted = wanted.map(title).transpose()?;
    let change = (to, wanted.as_deref(), body);
    let row = proposals
        .change(&by.actor, number, said.tag.as_deref(), change)
        .await;
    let row = row.map_err(talk)?;
    let action = match to {
        Some(Stands::Closed) => "close",
        Some(_) => "reopen",
        None => return Ok(row),
    };
    gate.note(by, action, number, &row.head, None).await;
    Ok(row)
}

/// The answer about a proposal that was changed.
async fn changed(api: &Api, row: &ProposalRow) -> Result<Response, Refusal> {
    let (_, proposals) = proposals(api)?;
    let comments = proposals.comment_count(row.number).await?;
    Ok(tagged(row, &view::Summary::of(row, comments)))
}

/// A request that asks for nothing but what its URL says.
#[derive(Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
struct Nothing {}

async fn becomes(api: &Api, text: &str, request: Request, to: Stands) -> Result<Response, Refusal> {
    let number = number(text)?;
    let Asked { by, seen, .. } = asked::<Nothing>(request, MAX_BODY).await?;
    let row = close(
        api,
        &by,
        number,
        &Said { tag: seen },
        (Some(to), None, None),
    )
    .await?;
    changed(api, &row).await
}

/// Close a proposal
#[utoipa::path(
    post,
    path = "/api/v1/proposals/{number}/close",
    operation_id = "close",
    tag = "proposals",
    params(Numbered, Seen),
    request_body = Nothing,
    responses(
        (status = 200, description = "Close a proposal", body = view::Summary,
         headers(("ETag" = String, description = "For `If-Match` of what changes it"))),
        Anywhere,
        Absent,
        Conflict,
        Changed,
        Unread,
        Unfit,
        Failed,
        Unreached
    )
)]
pub(super) async fn end(
    State(api): State<Api>,
    Path(text): Path<String>,
    request: Request,
) -> Response {
    let answer = becomes(&api, &text, request, Stands::Closed).await;
    answer.unwrap_or_else(Refusal::into_response)
}

/// Open a closed proposal again
#[utoipa::path(
    post,
    path = "/api/v1/proposals/{number}/reopen",
    operation_id = "reopen",
    tag = "proposals",
    params(Numbered, Seen),
    request_body = Nothing,
    responses(
        (status = 200, description = "Open a closed proposal again", body = view::Summary,
         headers(("ETag" = String, description = "For `If-Match` of what changes it"))),
        Anywhere,
        Absent,
        Conflict,
        Changed,
        Unread,
        Unfit,
        Failed,
        Unreached
    )
)]
pub(super) async fn again(
    State(api): State<Api>,
    Path(text): Path<String>,
    request: Request,
) -> Response {
    let answer = becomes(&api, &text, request, Stands::Open).await;
    answer.unwrap_or_else(Refusal::into_response)
}

#[derive(Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
struct ProposalChange {
    /// What it is about; as it is where it is left out.
    #[serde(default)]
    title: Option<String>,
    /// What its author says beside the title; as it is where it is left out.
    #[serde(default)]
    message: Option<String>,
}

/// Change the title of a proposal, or what its author says
#[utoipa::path(
    patch,
    path = "/api/v1/proposals/{number}",
    operation_id = "changeProposal",
    tag = "proposals",
    params(Numbered, Seen),
    request_body = ProposalChange,
    responses(
        (status = 200, description = "Change the title of a proposal, or what its author says", body = view::Summary,
         headers(("ETag" = String, description = "For `If-Match` of what changes it"))),
        Anywhere,
        Absent,
        Conflict,
        Changed,
        Unread,
        Unfit,
        Failed,
        Unreached
    )
)]
pub(super) async fn change(
    State(api): State<Api>,
    Path(text): Path<String>,
    request: Request,
) -> Response {
    let answer = async {
        let number = number(&text)?;
        let Asked { by, seen, ask } = asked::<ProposalChange>(request, MAX_BODY).await?;
        let change = (None, ask.title.as_deref(), ask.message.as_deref());
        let row = close(&api, &by, number, &Said { tag: seen }, change).await?;
        changed(&api, &row).await
    };
    answer.await.unwrap_or_else(Refusal::into_response)
}
