//! What waits for somebody: proposals to judge, and answers to their own.

use serde::Serialize;
use utoipa::ToSchema;

use super::view::{Summary, own_verdict};
use super::{Api, Refusal, proposals, talk};
use crate::access::{Action, Actor};
use crate::proposals::state::State;
use crate::proposals::{About, Proposals};
use crate::store::NewestComment;

/// Open proposals that are looked at for one answer.
const LOOKED_AT: usize = 200;

/// An answer to a proposal of somebody's own.
#[derive(Debug, Clone, Serialize, ToSchema)]
#[schema(as = AnsweredProposal)]
pub struct Answered {
    /// The proposal.
    #[serde(flatten)]
    pub proposal: Summary,
    /// What came: `approved`, `changes requested` or `commented`.
    pub what: &'static str,
    /// Who it came from.
    pub from: String,
}

/// What waits for somebody.
#[derive(Debug, Clone, Default, Serialize, ToSchema)]
pub struct Inbox {
    /// Proposals that they may judge, and have not at this head.
    pub to_review: Vec<Summary>,
    /// Their own, with the newest answer, where they have not spoken since.
    pub answered: Vec<Answered>,
    /// What `cursor` says to get what waits of older proposals; none where there are none. A page may hold fewer than were
    /// asked for, where many were looked at in vain.
    pub next_cursor: Option<String>,
}

impl Inbox {
    /// How many there are in it.
    pub fn len(&self) -> usize {
        self.to_review.len() + self.answered.len()
    }

    /// Whether nothing waits.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }
}

/// What waits for an actor, at most so much, newest first; only of proposals before a number, where one is given.
pub async fn inbox(
    api: &Api,
    actor: &Actor,
    before: Option<i64>,
    most: usize,
) -> Result<Inbox, Refusal> {
    let (_, proposals) = proposals(api)?;
    let mut out = Inbox::default();
    let page = proposals.page(actor, Some(State::Open), before, LOOKED_AT);
    let (rows, mut next) = page.await.map_err(talk)?;
    let newest = proposals.newest_comments().await?;
    let mut rows = rows.into_iter();
    while out.len() < most {
        let Some(row) = rows.next() else {
            break;
        };
        let number = row.number;
        let about = proposals.about(row).await.map_err(talk)?;
        let comment = newest.iter().find(|newest| newest.proposal == number);
        look(proposals, actor, &about, comment, &mut out).await?;
        if !rows.as_slice().is_empty() && out.len() == most {
            next = Some(number);
        }
    }
    out.next_cursor = next.map(|number| number.to_string());
    Ok(out)
}

/// Puts a proposal where it waits, if it does.
async fn look(
    proposals: &Proposals,
    actor: &Actor,
    about: &About,
    comment: Option<&NewestComment>,
    out: &mut Inbox,
) -> Result<(), Refusal> {
    let row = &about.row;
    let summary = Summary::of(row, comment.map_or(0, |newest| newest.comments));
    if about.authors.has(&actor.name) {
        let mut said: Vec<(i64, &str, &'static str)> = Vec::new();
        said.extend(comment.map(|c| (c.at, &*c.author, "commented")));
        said.extend(about.reviews.iter().map(|review| {
            let what = if review.verdict == "approve" {
                "approved"
            } else {
                "changes requested"
            };
            (review.at, &*review.reviewer, what)
        }));
        let revisions = proposals.revisions(row.number).await?;
        said.extend(
            revisions
                .iter()
                .map(|r| (r.pushed_at, &*r.pushed_by, "revised")),
        );
        said.sort_by_key(|(at, ..)| *at);
        if let Some((_, from, what)) = said.last()
            && **from != *actor.name
            && *what != "revised"
        {
            out.answered.push(Answered {
                what,
                from: (*from).to_owned(),
                proposal: summary,
            });
        }
        return Ok(());
    }
    let may = row
        .touches()
        .iter()
        .all(|path| actor.may(Action::Review, path));
    if may && own_verdict(about, actor).is_none() {
        out.to_review.push(summary);
    }
    Ok(())
}
