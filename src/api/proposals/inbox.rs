//! What waits for somebody: proposals to judge, and answers to their own.

use serde::Serialize;
use utoipa::ToSchema;

use super::view::{Summary, own_verdict};
use super::{Api, Refusal, proposals, talk};
use crate::access::{Action, Actor};
use crate::proposals::state::State;

/// Open proposals that are looked at, the newest.
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
}

/// What waits for an actor.
pub async fn inbox(api: &Api, actor: &Actor) -> Result<Inbox, Refusal> {
    let (_, proposals) = proposals(api)?;
    let mut out = Inbox::default();
    let page = proposals.page(actor, Some(State::Open), None, LOOKED_AT);
    let (rows, _) = page.await.map_err(talk)?;
    let newest = proposals.newest_comments().await?;
    for row in rows {
        let about = proposals.about(row).await.map_err(talk)?;
        let row = &about.row;
        let comment = newest.iter().find(|newest| newest.proposal == row.number);
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
            continue;
        }
        let may = row
            .touches()
            .iter()
            .all(|path| actor.may(Action::Review, path));
        if may && own_verdict(&about, actor).is_none() {
            out.to_review.push(summary);
        }
    }
    Ok(out)
}
