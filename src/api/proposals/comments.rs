//! `/api/v1/proposals/{number}/comments…`: where a comment stands, and what is said.

use axum::extract::{Path, Request, State};
use axum::http::StatusCode;
use axum::response::{IntoResponse, Response};
use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

use super::write::{Asked, MAX_BODY, Said, asked, comment, edit, resolve, wrong};
use super::{Api, Refusal, about, number, tagged};
use crate::api::openapi::{
    Absent, Anywhere, Changed, Conflict, Failed, Numbered, Seen, Unfit, Unreached, Unread,
};
use crate::proposals::{NewComment, Place};

/// Where a comment is to stand, as a request says it.
#[derive(Debug, Clone, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
#[schema(as = CommentPlace)]
struct AskedPlace {
    /// The file.
    path: String,
    /// `old` or `new`; the text after the change where it is left out.
    #[serde(default)]
    side: Option<String>,
    /// The line, from 1.
    line: u32,
    /// The example, for a line of what the prompt renders to.
    #[serde(default)]
    example: Option<String>,
    /// The message of the example, from 0.
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

#[derive(Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
#[schema(as = CommentAsk)]
struct AskComment {
    /// What it says.
    message: String,
    /// The thread it answers.
    #[serde(default)]
    thread: Option<i64>,
    /// Where it stands; about the whole where it is left out.
    #[serde(default)]
    place: Option<AskedPlace>,
}

#[derive(Serialize, ToSchema)]
#[schema(as = CommentMade)]
struct Commented {
    /// Its id.
    id: i64,
    /// The id of the first comment of its thread.
    thread: i64,
}

/// Comment on a proposal
#[utoipa::path(
    post,
    path = "/api/v1/proposals/{number}/comments",
    operation_id = "comment",
    tag = "proposals",
    params(Numbered, Seen),
    request_body = AskComment,
    responses(
        (status = 201, description = "Comment on a proposal", body = Commented,
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
pub(super) async fn say(
    State(api): State<Api>,
    Path(text): Path<String>,
    request: Request,
) -> Response {
    let answer = async {
        let number = number(&text)?;
        let Asked { by, seen, ask } = asked::<AskComment>(request, MAX_BODY).await?;
        let new = NewComment {
            body: ask.message,
            thread: ask.thread,
            place: ask.place.map(AskedPlace::place).transpose()?,
        };
        let made = comment(&api, &by, number, &Said { tag: seen }, new).await?;
        let row = about(&api, &by.actor, number).await?.row;
        let mut response = tagged(
            &row,
            &Commented {
                id: made.id,
                thread: made.thread,
            },
        );
        *response.status_mut() = StatusCode::CREATED;
        Ok::<_, Refusal>(response)
    };
    answer.await.unwrap_or_else(Refusal::into_response)
}

#[derive(Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
struct CommentChange {
    /// What it says now; one of the two.
    #[serde(default)]
    message: Option<String>,
    /// Whether its thread is resolved: of the first comment of a thread.
    #[serde(default)]
    resolved: Option<bool>,
}

#[derive(Serialize, ToSchema)]
#[schema(as = CommentChanged)]
struct Mended {
    /// The comment.
    id: i64,
}

/// Edit a comment, or resolve its thread
#[utoipa::path(
    patch,
    path = "/api/v1/proposals/{number}/comments/{id}",
    operation_id = "changeComment",
    tag = "proposals",
    params(Numbered, ("id" = i64, Path, description = "The comment", example = 1), Seen),
    request_body = CommentChange,
    responses(
        (status = 200, description = "Edit a comment, or resolve its thread", body = Mended,
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
pub(super) async fn mend(
    State(api): State<Api>,
    Path((text, id)): Path<(String, String)>,
    request: Request,
) -> Response {
    let answer = async {
        let at = (number(&text)?, number(&id)?);
        let Asked { by, seen, ask } = asked::<CommentChange>(request, MAX_BODY).await?;
        let said = Said { tag: seen };
        match (ask.message, ask.resolved) {
            (Some(message), None) => edit(&api, &by, at, &said, &message).await?,
            (None, Some(resolved)) => resolve(&api, &by, at, &said, resolved).await?,
            _ => return Err(wrong("say one of `message` and `resolved`")),
        }
        let row = about(&api, &by.actor, at.0).await?.row;
        Ok(tagged(&row, &Mended { id: at.1 }))
    };
    answer.await.unwrap_or_else(Refusal::into_response)
}
