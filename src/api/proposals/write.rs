//! What is written of proposals: opened, revised, judged, commented, merged, closed.

use std::collections::BTreeMap;

use axum::extract::{Path, Request, State};
use axum::http::{HeaderValue, StatusCode, header};
use axum::response::{IntoResponse, Response};
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};

use super::{
    Api, Refusal, about, by, effect, internal, json, merging, number, proposals, proposing, seen,
    tagged, talk,
};
use crate::access::By;
use crate::api::changes::{self, NewContent};
use crate::api::{parse, read};
use crate::gate::propose::Proposing;
use crate::gate::publish::Published;
use crate::git::commit::Edit;
use crate::proposals::place::Quote;
use crate::proposals::review::Verdict;
use crate::proposals::state::State as Stands;
use crate::proposals::{NewComment, Place, Written};
use crate::store::{CommentRow, ReviewRow};

/// Longest request that holds no files, in bytes.
const MAX_BODY: usize = 512 * 1024;
/// Longest title, in characters.
const MAX_TITLE: usize = 200;

/// A request: who makes it, what they have seen, and what they ask.
struct Asked<T> {
    by: By,
    seen: Option<String>,
    ask: T,
}

async fn asked<T: DeserializeOwned>(request: Request, most: usize) -> Result<Asked<T>, Refusal> {
    let (parts, body) = request.into_parts();
    let body = read(&parts.headers, body, most, "a limit of this release").await?;
    Ok(Asked {
        by: by(&parts.extensions),
        seen: seen(&parts.headers),
        ask: parse(&body)?,
    })
}

fn wrong(detail: impl Into<String>) -> Refusal {
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
#[derive(Debug, Clone, Serialize)]
struct Opened {
    number: i64,
    head: String,
    revision: i64,
    title: String,
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

fn opened(status: StatusCode, (written, lines): (Written, Vec<String>)) -> Response {
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

/// Answers a request for a proposal; forms of pages come here as well.
pub(crate) async fn open(State(api): State<Api>, request: Request) -> Response {
    #[derive(Deserialize)]
    #[serde(deny_unknown_fields)]
    struct Ask {
        title: String,
        /// What else there is to say of it.
        #[serde(default)]
        message: Option<String>,
        /// The commit of main that the edits were made from.
        base: String,
        /// What each file holds afterwards, by path; null deletes it.
        #[serde(alias = "changes")]
        files: BTreeMap<String, Option<NewContent>>,
    }
    let answer = async {
        let Asked { by, ask, .. } = asked::<Ask>(request, changes::MAX_BODY).await?;
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

pub(super) async fn revise(
    State(api): State<Api>,
    Path(text): Path<String>,
    request: Request,
) -> Response {
    #[derive(Deserialize)]
    #[serde(deny_unknown_fields)]
    struct Ask {
        /// The head that the edits were made from.
        base: String,
        /// The tip of main that is merged into it; `files` then says what the files with conflicts are to hold.
        #[serde(default)]
        merges: Option<String>,
        #[serde(alias = "changes", default)]
        files: BTreeMap<String, Option<NewContent>>,
        /// The message of the commit.
        #[serde(default)]
        message: Option<String>,
    }
    let answer = async {
        let number = number(&text)?;
        let Asked { by, ask, .. } = asked::<Ask>(request, changes::MAX_BODY).await?;
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

pub(super) async fn give(
    State(api): State<Api>,
    Path(text): Path<String>,
    request: Request,
) -> Response {
    #[derive(Deserialize)]
    #[serde(deny_unknown_fields)]
    struct Ask {
        /// `approve`, `request-changes` or `comment`.
        verdict: String,
        /// The head that was judged.
        head: String,
        #[serde(default)]
        message: String,
    }
    #[derive(Serialize)]
    struct Answer {
        id: i64,
        lines: Vec<String>,
    }
    let answer = async {
        let number = number(&text)?;
        let Asked { by, seen, ask } = asked::<Ask>(request, MAX_BODY).await?;
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
        let mut response = tagged(&row, &Answer { id, lines });
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
        place.quote = Some(quote.ok_or_else(|| {
            let shown: String = place.path.chars().take(80).collect();
            wrong(format!("`{shown}` has no line {} there", place.line))
        })?);
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

/// Where a comment is to stand, as a request says it.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
struct AskedPlace {
    path: String,
    /// `old` or `new`; the text after the change where it is left out.
    #[serde(default)]
    side: Option<String>,
    line: u32,
    #[serde(default)]
    example: Option<String>,
    #[serde(default)]
    message: Option<u32>,
}

impl AskedPlace {
    fn place(self) -> Result<Place, Refusal> {
        let old = match self.side.as_deref() {
            None | Some("new") => false,
            Some("old") => true,
            Some(_) => return Err(wrong("`side` is old or new")),
        };
        let rendered = match (self.example, self.message) {
            (None, None) => None,
            (Some(example), message) => Some((example, message.unwrap_or(0))),
            (None, Some(_)) => return Err(wrong("`message` needs `example`, whose message it is")),
        };
        Ok(Place {
            path: self.path,
            old,
            line: self.line,
            rendered,
            quote: None,
        })
    }
}

pub(super) async fn say(
    State(api): State<Api>,
    Path(text): Path<String>,
    request: Request,
) -> Response {
    #[derive(Deserialize)]
    #[serde(deny_unknown_fields)]
    struct Ask {
        message: String,
        /// The thread it answers.
        #[serde(default)]
        thread: Option<i64>,
        #[serde(default)]
        place: Option<AskedPlace>,
    }
    #[derive(Serialize)]
    struct Answer {
        id: i64,
        thread: i64,
    }
    let answer = async {
        let number = number(&text)?;
        let Asked { by, seen, ask } = asked::<Ask>(request, MAX_BODY).await?;
        let new = NewComment {
            body: ask.message,
            thread: ask.thread,
            place: ask.place.map(AskedPlace::place).transpose()?,
        };
        let made = comment(&api, &by, number, &Said { tag: seen }, new).await?;
        let row = about(&api, &by.actor, number).await?.row;
        let mut response = tagged(
            &row,
            &Answer {
                id: made.id,
                thread: made.thread,
            },
        );
        *response.status_mut() = StatusCode::CREATED;
        Ok::<_, Refusal>(response)
    };
    answer.await.unwrap_or_else(Refusal::into_response)
}

pub(super) async fn mend(
    State(api): State<Api>,
    Path((text, id)): Path<(String, String)>,
    request: Request,
) -> Response {
    #[derive(Deserialize)]
    #[serde(deny_unknown_fields)]
    struct Ask {
        #[serde(default)]
        message: Option<String>,
        /// Of the first comment of a thread.
        #[serde(default)]
        resolved: Option<bool>,
    }
    let answer = async {
        let at = (number(&text)?, number(&id)?);
        let Asked { by, seen, ask } = asked::<Ask>(request, MAX_BODY).await?;
        let said = Said { tag: seen };
        match (ask.message, ask.resolved) {
            (Some(message), None) => edit(&api, &by, at, &said, &message).await?,
            (None, Some(resolved)) => resolve(&api, &by, at, &said, resolved).await?,
            _ => return Err(wrong("say one of `message` and `resolved`")),
        }
        let row = about(&api, &by.actor, at.0).await?.row;
        Ok(tagged(&row, &serde_json::json!({ "id": at.1 })))
    };
    answer.await.unwrap_or_else(Refusal::into_response)
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

pub(super) async fn bring(
    State(api): State<Api>,
    Path(text): Path<String>,
    request: Request,
) -> Response {
    #[derive(Deserialize)]
    #[serde(deny_unknown_fields)]
    struct Ask {
        /// The head that was seen; no other is merged.
        head: String,
    }
    #[derive(Serialize)]
    struct Answer {
        commit: String,
        lines: Vec<String>,
    }
    let answer = async {
        let number = number(&text)?;
        let Asked { by, seen, ask } = asked::<Ask>(request, MAX_BODY).await?;
        let said = Said { tag: seen };
        let Published { commit, lines } = merge(&api, by, number, said, ask.head).await?;
        Ok::<_, Refusal>(json(&Answer { commit, lines }))
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
) -> Result<crate::store::ProposalRow, Refusal> {
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

/// A request that asks for nothing but what its URL says.
#[derive(Deserialize)]
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
    Ok(tagged(&row, &super::view::Summary::of(&row, 0)))
}

pub(super) async fn end(
    State(api): State<Api>,
    Path(text): Path<String>,
    request: Request,
) -> Response {
    let answer = becomes(&api, &text, request, Stands::Closed).await;
    answer.unwrap_or_else(Refusal::into_response)
}

pub(super) async fn again(
    State(api): State<Api>,
    Path(text): Path<String>,
    request: Request,
) -> Response {
    let answer = becomes(&api, &text, request, Stands::Open).await;
    answer.unwrap_or_else(Refusal::into_response)
}

pub(super) async fn change(
    State(api): State<Api>,
    Path(text): Path<String>,
    request: Request,
) -> Response {
    #[derive(Deserialize)]
    #[serde(deny_unknown_fields)]
    struct Ask {
        #[serde(default)]
        title: Option<String>,
        #[serde(default)]
        message: Option<String>,
    }
    let answer = async {
        let number = number(&text)?;
        let Asked { by, seen, ask } = asked::<Ask>(request, MAX_BODY).await?;
        let change = (None, ask.title.as_deref(), ask.message.as_deref());
        let row = close(&api, &by, number, &Said { tag: seen }, change).await?;
        Ok::<_, Refusal>(tagged(&row, &super::view::Summary::of(&row, 0)))
    };
    answer.await.unwrap_or_else(Refusal::into_response)
}

/// What takes a merged proposal back: edits of main as it is now, which is given with them.
async fn reverting(
    api: &Api,
    by: &By,
    number: i64,
) -> Result<(String, String, Vec<Edit>), Refusal> {
    let about = about(api, &by.actor, number).await?;
    let (Some(merge), Some(main)) = (about.row.merge_commit.clone(), about.main.clone()) else {
        let detail = match about.state() {
            Stands::Merged => format!(
                "proposal {number} came to main by a push, not by a merge made here; take it back with git revert"
            ),
            _ => format!(
                "proposal {number} is {}; only what is merged is taken back",
                about.row.state
            ),
        };
        return Err(Refusal::new(StatusCode::CONFLICT, detail));
    };
    let Some(repository) = api.registry.library().repository().cloned() else {
        return Err(internal(&"there is no repository"));
    };
    let tip = main.clone();
    let found = tokio::task::spawn_blocking(move || repository.reverting(&tip, &merge))
        .await
        .map_err(|error| internal(&error))?
        .map_err(|error| internal(&error))?;
    match found {
        Ok(edits) if edits.is_empty() => Err(Refusal::new(
            StatusCode::CONFLICT,
            format!(
                "main has nothing of proposal {number} any more: there is nothing to take back"
            ),
        )),
        Ok(edits) => Ok((main, about.row.title, edits)),
        Err(conflicts) => {
            let paths: Vec<String> = conflicts.into_iter().map(|c| c.path).collect();
            Err(Refusal::new(
                StatusCode::CONFLICT,
                format!(
                    "{} changed on main since proposal {number}; edit by hand, or git revert",
                    crate::proposals::review::named(&paths)
                ),
            ))
        }
    }
}

/// Proposes to take a merged proposal back.
pub async fn revert(
    api: &Api,
    by: By,
    number: i64,
    why: &str,
) -> Result<(Written, Vec<String>), Refusal> {
    let (main, of, edits) = reverting(api, &by, number).await?;
    let title = crate::proposals::state::title(&format!("Revert proposal {number}: {of}"));
    let body = why.trim().to_owned();
    let text = if body.is_empty() {
        title.clone()
    } else {
        format!("{title}\n\n{body}")
    };
    let ask = Proposing {
        message: changes::message(&text)?,
        title: Some(title),
        body: Some(body),
        base: main,
        number: None,
        merges: None,
        edits,
    };
    make(api, by, ask).await
}

pub(super) async fn undo(
    State(api): State<Api>,
    Path(text): Path<String>,
    request: Request,
) -> Response {
    #[derive(Deserialize)]
    #[serde(deny_unknown_fields)]
    struct Ask {
        /// Why.
        #[serde(default)]
        message: String,
    }
    let answer = async {
        let number = number(&text)?;
        let Asked { by, ask, .. } = asked::<Ask>(request, MAX_BODY).await?;
        let made = revert(&api, by, number, &ask.message).await?;
        Ok::<_, Refusal>(opened(StatusCode::CREATED, made))
    };
    answer.await.unwrap_or_else(Refusal::into_response)
}
