//! A proposal as it is shown: by the API as JSON, and by the pages.

use std::collections::{HashMap, HashSet};
use std::sync::Arc;

use serde::Serialize;
use utoipa::ToSchema;

use super::{Api, Refusal, effect, internal, merging, proposals};
use crate::access::{Action, Actor};
use crate::gate::merge::Standing;
use crate::proposals::place::{Quote, Texts};
use crate::proposals::review::{MergeRefusal, Verdict};
use crate::proposals::state::State;
use crate::proposals::{About, head_ref, tag};
use crate::records::calendar;
use crate::store::{CommentRow, ProposalRow};
use crate::versions::effect::Effect;

/// The files of a row that are known; what is not known is shown as nothing.
fn touched(row: &ProposalRow) -> Vec<String> {
    let mut paths = row.touches();
    paths.retain(|path| !path.is_empty());
    paths
}

/// A proposal in a list.
#[derive(Debug, Clone, Serialize, ToSchema)]
#[schema(as = Proposal)]
pub struct Summary {
    /// Its number.
    pub number: i64,
    /// What it is about.
    pub title: String,
    /// Who opened it.
    pub author: String,
    /// `open`, `merged` or `closed`.
    pub state: String,
    /// The commit that is proposed.
    pub head: String,
    /// How often something was pushed to it.
    pub revision: i64,
    /// When it was opened.
    pub opened: String,
    /// When it last changed.
    pub changed: String,
    /// Files that it touches.
    pub paths: Vec<String>,
    /// How many comments it has; in a list 0 where it is not open.
    pub comments: i64,
}

impl Summary {
    /// A row as it is shown.
    pub fn of(row: &ProposalRow, comments: i64) -> Self {
        Self {
            number: row.number,
            title: row.title.clone(),
            author: row.author.clone(),
            state: row.state.clone(),
            head: row.head.clone(),
            revision: row.revision,
            opened: calendar::show(row.opened_at),
            changed: calendar::show(row.changed_at),
            paths: touched(row),
            comments,
        }
    }
}

/// A push to a proposal.
#[derive(Debug, Clone, Serialize, ToSchema)]
#[schema(as = ProposalRevision)]
pub struct Revision {
    /// From 1.
    pub revision: i64,
    /// The commit.
    pub head: String,
    /// Who pushed it.
    pub by: String,
    /// When.
    pub at: String,
}

/// A verdict.
#[derive(Debug, Clone, Serialize, ToSchema)]
#[schema(as = ProposalReview)]
pub struct Review {
    /// From 1.
    pub id: i64,
    /// Who gave it.
    pub reviewer: String,
    /// `approve` or `request-changes`.
    pub verdict: String,
    /// The commit that was judged.
    pub head: String,
    /// Whether that is not the head any more.
    pub stale: bool,
    /// What they said with it.
    pub message: String,
    /// When.
    pub at: String,
}

/// Where a thread stands.
#[derive(Debug, Clone, Serialize, ToSchema)]
pub struct ThreadPlace {
    /// The file.
    pub path: String,
    /// `old` or `new`.
    pub side: String,
    /// The line it was made on.
    pub line: i64,
    /// The line that has become; none where it was changed or removed.
    pub now: Option<i64>,
    /// The example, for a line of what the prompt renders to.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub example: Option<String>,
    /// The message of the example, from 0.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub message: Option<i64>,
    /// Whether what it was made on is there no more.
    pub outdated: bool,
    /// What stood there, where it is outdated and known.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub quote: Option<String>,
}

/// A comment.
#[derive(Debug, Clone, Serialize, ToSchema)]
#[schema(as = ProposalComment)]
pub struct Comment {
    /// From 1.
    pub id: i64,
    /// Who made it.
    pub author: String,
    /// What it says.
    pub message: String,
    /// When.
    pub at: String,
    /// Whether it was edited since.
    pub edited: bool,
}

/// Comments that answer each other.
#[derive(Debug, Clone, Serialize, ToSchema)]
#[schema(as = CommentThread)]
pub struct Thread {
    /// The id of its first comment.
    pub thread: i64,
    /// Where it stands; none where it is about the whole.
    pub place: Option<ThreadPlace>,
    /// Who has resolved it.
    pub resolved_by: Option<String>,
    /// Its comments, oldest first.
    pub comments: Vec<Comment>,
}

/// Why it cannot be merged.
#[derive(Debug, Clone, Serialize, ToSchema)]
#[schema(as = MergeRefusal)]
pub struct Why {
    /// One word.
    pub code: &'static str,
    /// A line.
    pub detail: String,
}

/// A rule of approvals it falls under.
#[derive(Debug, Clone, Serialize, ToSchema)]
#[schema(as = NeededApprovals)]
pub struct Approvals {
    /// Files that the rule covers.
    pub paths: Vec<String>,
    /// How many it takes.
    pub required: u32,
    /// Whose count; anybody's who may review where it is empty.
    pub reviewers: Vec<String>,
    /// Who has approved this head and counts.
    pub have: Vec<String>,
}

/// A problem that the check finds.
#[derive(Debug, Clone, Serialize, ToSchema)]
#[schema(as = ProposalProblem)]
pub struct Problem {
    /// `error` or `warning`.
    pub severity: &'static str,
    /// One word.
    pub code: &'static str,
    /// The file.
    #[schema(value_type = String)]
    pub path: Arc<str>,
    /// The line, from 1; 0 for the whole file.
    pub line: u32,
    /// The column, from 1.
    pub column: u32,
    /// What is wrong.
    pub message: String,
    /// What to do.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub hint: Option<String>,
}

/// What whoever asks may do with it.
#[derive(Debug, Clone, Serialize, ToSchema)]
#[schema(as = MayDo)]
#[allow(clippy::struct_excessive_bools, reason = "each is a button of its own")]
pub struct May {
    /// Comment on it.
    pub comment: bool,
    /// Give it a verdict.
    pub review: bool,
    /// Approve it, which nobody may of their own work.
    pub approve: bool,
    /// Merge it, as far as their role goes.
    pub publish: bool,
    /// Change its title, close it, reopen it.
    pub change: bool,
    /// Revise it.
    pub propose: bool,
}

/// A proposal in full.
#[derive(Debug, Clone, Serialize, ToSchema)]
#[schema(as = ProposalDetail)]
pub struct Detail {
    /// As in lists.
    #[serde(flatten)]
    pub summary: Summary,
    /// What its author says beside the title.
    pub message: String,
    /// The tag for `If-Match`.
    pub tag: String,
    /// Where it parted from main.
    pub base: Option<String>,
    /// The tip of main.
    pub main: Option<String>,
    /// The commit that merged it.
    pub merge_commit: Option<String>,
    /// Who merged or closed it.
    pub ended_by: Option<String>,
    /// When.
    pub ended: Option<String>,
    /// What fetches it.
    pub fetch: String,
    /// The pushes to it, oldest first.
    pub revisions: Vec<Revision>,
    /// Verdicts, oldest first.
    pub reviews: Vec<Review>,
    /// Threads, oldest first.
    pub threads: Vec<Thread>,
    /// Whether whoever asks may merge it now.
    pub mergeable: bool,
    /// Why not.
    pub refusals: Vec<Why>,
    /// The approvals it takes.
    pub approvals: Vec<Approvals>,
    /// What the check finds in what main would be.
    pub problems: Vec<Problem>,
    /// Files that main has changed as well.
    pub conflicts: Vec<String>,
    /// What whoever asks may do.
    pub may: May,
}

/// Refusals as they are shown.
pub(super) fn refusals(refusals: &[MergeRefusal]) -> Vec<Why> {
    let shown = |refusal: &MergeRefusal| Why {
        code: refusal.code(),
        detail: refusal.to_string(),
    };
    refusals.iter().map(shown).collect()
}

fn problems(standing: &Standing) -> Vec<Problem> {
    let found = standing
        .checked
        .iter()
        .flat_map(|checked| &checked.problems);
    found
        .map(|problem| Problem {
            severity: problem.severity.as_str(),
            code: problem.code,
            path: problem.path.clone(),
            line: problem.line,
            column: problem.column,
            message: problem.message.clone(),
            hint: problem.hint.clone(),
        })
        .collect()
}

/// A proposal as an actor sees it, held against main as it is now.
pub async fn detail(api: &Api, actor: &Actor, about: &About) -> Result<Detail, Refusal> {
    let (gate, proposals) = proposals(api)?;
    let row = &about.row;
    let standing = gate.standing(actor, about).await.map_err(merging)?;
    let comments = proposals.comments(row.number).await?;
    let revisions = proposals.revisions(row.number).await?;
    let count = i64::try_from(comments.len()).unwrap_or(i64::MAX);
    let threads = threads(api, actor, about, comments).await?;
    let problems = problems(&standing);
    let mut why = match &standing.plan {
        Ok(_) => Vec::new(),
        Err(all) => refusals(all),
    };
    // also those that whoever asks does not see
    let errors = standing.checked.as_ref().map_or(0, |found| found.errors);
    if errors > 0 {
        why.push(Why {
            code: "problems",
            detail: format!(
                "what main would be does not pass the check ({errors} {}); mend it and revise the proposal",
                if errors == 1 { "error" } else { "errors" }
            ),
        });
    }
    if let Some(detail) = standing.policy.clone() {
        why.push(Why {
            code: "policy",
            detail,
        });
    }
    let paths = row.touches();
    let all = |action: Action| paths.iter().all(|path| actor.may(action, path));
    let own = *row.author == *actor.name;
    let open = about.state() == State::Open;
    let review = open && all(Action::Review);
    Ok(Detail {
        summary: Summary::of(row, count),
        message: row.body.clone(),
        tag: tag(row),
        base: about.base.clone(),
        main: standing.main.clone(),
        merge_commit: row.merge_commit.clone(),
        ended_by: row.ended_by.clone(),
        ended: row.ended_at.map(calendar::show),
        fetch: format!("git fetch origin {}", head_ref(row.number)),
        revisions: revisions
            .into_iter()
            .map(|revision| Revision {
                revision: revision.revision,
                head: revision.head,
                by: revision.pushed_by,
                at: calendar::show(revision.pushed_at),
            })
            .collect(),
        reviews: about
            .reviews
            .iter()
            .map(|review| Review {
                id: review.id,
                reviewer: review.reviewer.clone(),
                verdict: review.verdict.clone(),
                stale: review.head != row.head,
                head: review.head.clone(),
                message: review.body.clone(),
                at: calendar::show(review.at),
            })
            .collect(),
        threads,
        mergeable: why.is_empty(),
        refusals: why,
        approvals: standing
            .needed
            .iter()
            .map(|needed| Approvals {
                paths: needed.paths.clone(),
                required: needed.required,
                reviewers: needed.reviewers.clone(),
                have: needed.have.clone(),
            })
            .collect(),
        problems,
        conflicts: standing.conflicts.iter().map(|c| c.path.clone()).collect(),
        may: May {
            comment: paths.is_empty() || paths.iter().any(|p| actor.may(Action::Propose, p)),
            review,
            approve: review && !about.authors.has(&actor.name),
            publish: open && all(Action::Publish),
            change: own || all(Action::Publish),
            propose: open && all(Action::Propose),
        },
    })
}

/// The comments as threads, each where its line is now. One on a file that the actor may not read is as if it were not there.
async fn threads(
    api: &Api,
    actor: &Actor,
    about: &About,
    mut comments: Vec<CommentRow>,
) -> Result<Vec<Thread>, Refusal> {
    let Some(repository) = api.registry.library().repository().cloned() else {
        return Ok(Vec::new());
    };
    let hidden: HashSet<i64> = comments
        .iter()
        .filter(|row| {
            row.path
                .as_ref()
                .is_some_and(|path| !actor.may(Action::Read, path))
        })
        .map(|row| row.thread)
        .collect();
    comments.retain(|row| !hidden.contains(&row.thread));
    // what renders is looked at where somebody speaks of it
    let effect = if comments.iter().any(|row| row.example.is_some()) {
        effect::effect(api, actor, about).await?
    } else {
        Arc::default()
    };
    let (head, base) = (about.row.head.clone(), about.base.clone());
    let sees_all = actor.sees_all();
    let made = tokio::task::spawn_blocking(move || {
        let mut texts = Texts::new(|commit: &str, path: &str| {
            let bytes = repository.file(commit, path).ok()??;
            Some(String::from_utf8_lossy(&bytes).into_owned())
        });
        let mut out: Vec<Thread> = Vec::new();
        let mut known: HashMap<i64, usize> = HashMap::new();
        for row in comments {
            let comment = Comment {
                id: row.id,
                author: row.author.clone(),
                message: row.body.clone(),
                at: calendar::show(row.at),
                edited: row.edited_at.is_some(),
            };
            if row.thread != row.id {
                if let Some(thread) = known.get(&row.thread).and_then(|at| out.get_mut(*at)) {
                    thread.comments.push(comment);
                }
                continue;
            }
            let at = if row.side.as_deref() == Some("old") {
                base.as_deref()
            } else {
                Some(&*head)
            };
            known.insert(row.id, out.len());
            out.push(Thread {
                thread: row.id,
                place: stands(&row, at, (&effect, sees_all), &mut texts),
                resolved_by: row.resolved_by,
                comments: vec![comment],
            });
        }
        out
    });
    made.await.map_err(|error| internal(&error))
}

/// Where a comment stands now: in the file of a commit, or in what an example renders to.
fn stands<R: FnMut(&str, &str) -> Option<String>>(
    row: &CommentRow,
    at: Option<&str>,
    (effect, sees_all): (&Effect, bool),
    texts: &mut Texts<R>,
) -> Option<ThreadPlace> {
    let (path, commit, line) = (row.path.as_ref()?, row.place_commit.as_ref()?, row.line?);
    let side = row.side.clone().unwrap_or_default();
    let (now, message, quote) = if let Some(example) = &row.example {
        let quote: Option<Quote> = row
            .quote
            .as_deref()
            .and_then(|text| serde_json::from_str(text).ok());
        // of what they may not read neither what it says nor that it is there
        let quote = quote.filter(|quote| sees_all || !quote.of_others);
        let lines = effect::lines(effect, path, example, side == "old");
        let then = (row.message.unwrap_or(0), line);
        let found = quote.as_ref().and_then(|quote| quote.found(&lines, then));
        let message = found.map_or(row.message, |(message, _)| Some(message));
        (
            found.map(|(_, line)| line),
            message,
            quote.map(|quote| quote.line),
        )
    } else {
        let line = usize::try_from(line).unwrap_or(0);
        let now = at.and_then(|at| texts.carried(path, commit, at, line));
        let text = texts.text(commit, path);
        let quote = text.and_then(|text| {
            let then = text.lines().nth(line.checked_sub(1)?)?;
            Some(then.chars().take(300).collect())
        });
        (now.and_then(|line| i64::try_from(line).ok()), None, quote)
    };
    Some(ThreadPlace {
        path: path.clone(),
        side,
        line,
        now,
        example: row.example.clone(),
        message,
        outdated: now.is_none(),
        quote: quote.filter(|_| now.is_none()),
    })
}

/// A file that both sides have changed; a side is none where it has no such file, or where that is no text.
#[derive(Debug, Clone, Serialize, ToSchema)]
#[schema(as = ConflictingFile)]
pub struct ConflictView {
    /// Its path.
    pub path: String,
    /// Where the two parted.
    pub base: Option<String>,
    /// As the proposal has it.
    pub ours: Option<String>,
    /// As main has it.
    pub theirs: Option<String>,
    /// Whether a side is no text, so that it cannot be resolved as one.
    pub binary: bool,
}

/// What conflicts, and what a resolution names.
#[derive(Debug, Clone, Serialize, ToSchema)]
#[schema(as = ProposalConflicts)]
pub struct Conflicts {
    /// The head, which a resolution gives as `base`.
    pub head: String,
    /// The tip of main, which a resolution gives as `merges`.
    pub main: Option<String>,
    /// The files.
    pub files: Vec<ConflictView>,
}

/// What of a proposal conflicts with main as it is now.
pub async fn conflicts(api: &Api, actor: &Actor, about: &About) -> Result<Conflicts, Refusal> {
    let (gate, _) = proposals(api)?;
    let standing = gate.standing(actor, about).await.map_err(merging)?;
    let files = standing
        .conflicts
        .into_iter()
        .filter(|file| actor.may(Action::Read, &file.path));
    let files = files.map(|file| {
        let sides = [&file.base, &file.first, &file.other];
        let is_text = |bytes: &Vec<u8>| std::str::from_utf8(bytes).is_ok();
        let binary = sides.into_iter().flatten().any(|bytes| !is_text(bytes));
        let text = |bytes: Option<Vec<u8>>| bytes.and_then(|bytes| String::from_utf8(bytes).ok());
        ConflictView {
            path: file.path,
            base: text(file.base),
            ours: text(file.other),
            theirs: text(file.first),
            binary,
        }
    });
    Ok(Conflicts {
        head: about.row.head.clone(),
        main: standing.main,
        files: files.collect(),
    })
}

/// The newest verdict that an actor has given on the head; none where they have not.
pub fn own_verdict(about: &About, actor: &Actor) -> Option<Verdict> {
    let standing = crate::proposals::review::standing(&about.given, &about.row.head);
    standing.get(&*actor.name).map(|given| given.verdict)
}
