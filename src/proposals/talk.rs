//! What is said of a proposal: verdicts, comments, its title; and whether it stays open. Each asks what the actor may do.

use std::collections::BTreeSet;
use std::sync::Arc;

use super::place::Quote;
use super::review::{Authors, Given, ReviewRefusal, Verdict, decide_review};
use super::state::{self, State};
use super::{Proposals, ProposeError};
use crate::access::{Action, Actor};
use crate::git::{GitError, Repository};
use crate::store::{CommentRow, NewestComment, ProposalRow, ReviewRow, StoreError};

/// Longest text that somebody says, in bytes.
const MAX_TEXT: usize = 64 * 1024;
/// Verdicts, and comments, of one proposal.
const MOST: usize = 2000;
/// Longest name of an example, in characters.
const MAX_EXAMPLE: usize = 300;

/// Why something was not said.
#[derive(Debug, thiserror::Error)]
pub enum TalkError {
    /// There is no such proposal that the actor may see.
    #[error("there is no proposal {0}")]
    Absent(i64),
    /// The actor may not.
    #[error("{0}")]
    Forbidden(String),
    /// It has changed since the actor saw it; its tag is another now.
    #[error("proposal {0} has changed since you saw it; look again, then repeat what you did")]
    Changed(i64, String),
    /// A verdict that cannot be taken.
    #[error(transparent)]
    Review(#[from] ReviewRefusal),
    /// It cannot be done as it stands now.
    #[error("{0}")]
    Unfit(String),
    /// It cannot be asked for like that.
    #[error("{0}")]
    Wrong(String),
    /// git or the database failed.
    #[error(transparent)]
    Failed(#[from] ProposeError),
}

impl From<StoreError> for TalkError {
    fn from(error: StoreError) -> Self {
        Self::Failed(error.into())
    }
}

/// What whoever writes has seen: the tag of a proposal. None where they did not say.
pub type Seen<'a> = Option<&'a str>;

/// A tag that is another whenever anything of a proposal was written.
pub fn tag(row: &ProposalRow) -> String {
    format!(
        "{}-{}",
        row.head.get(..12).unwrap_or(&row.head),
        row.version
    )
}

/// A proposal with what is needed to judge it.
#[derive(Debug, Clone)]
pub struct About {
    /// Its row.
    pub row: ProposalRow,
    /// Where it parted from main; none where it has nothing in common with it.
    pub base: Option<String>,
    /// The tip of main.
    pub main: Option<String>,
    /// Every verdict, oldest first.
    pub given: Vec<Given>,
    /// The same as rows.
    pub reviews: Vec<ReviewRow>,
    /// Who has a part in it.
    pub authors: Authors,
}

impl About {
    /// Where it stands.
    pub fn state(&self) -> State {
        State::parse(&self.row.state)
    }
}

/// Where a comment is to stand.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Place {
    /// The file.
    pub path: String,
    /// Whether in the text before the change.
    pub old: bool,
    /// The line, from 1.
    pub line: u32,
    /// The example and the message, from 0, for a line of what the prompt renders to.
    pub rendered: Option<(String, u32)>,
    /// What stands on such a line.
    pub quote: Option<Quote>,
}

/// A comment that is to be made.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct NewComment {
    /// What it says.
    pub body: String,
    /// The thread it answers; none for a new one.
    pub thread: Option<i64>,
    /// Where a new thread stands; none for one about the whole.
    pub place: Option<Place>,
}

fn said(text: &str, what: &str) -> Result<String, TalkError> {
    let text = text.trim_end();
    if text.len() > MAX_TEXT {
        return Err(TalkError::Wrong(format!(
            "`{what}` is {} bytes; at most {MAX_TEXT} are taken",
            text.len()
        )));
    }
    if text.contains('\0') {
        return Err(TalkError::Wrong(format!(
            "`{what}` holds a NUL; leave it out"
        )));
    }
    Ok(text.to_owned())
}

fn forbidden(action: &str, path: &str) -> TalkError {
    let path = if path.is_empty() {
        "the whole library"
    } else {
        path
    };
    TalkError::Forbidden(format!(
        "you may not {action} {path}; ask an admin for the role, or somebody who has it"
    ))
}

/// Whether an actor may see a proposal: everything it touches.
fn sees(actor: &Actor, row: &ProposalRow) -> bool {
    row.touches()
        .iter()
        .all(|path| actor.may(Action::Read, path))
}

fn to_given(row: &ReviewRow) -> Option<Given> {
    Some(Given {
        reviewer: row.reviewer.clone(),
        groups: serde_json::from_str(&row.groups).unwrap_or_default(),
        verdict: Verdict::parse(&row.verdict)?,
        head: row.head.clone(),
    })
}

/// Where a proposal parted from main: the main before it was merged, where it is.
fn base_of(
    repository: &Repository,
    row: &ProposalRow,
    main: Option<&str>,
) -> Result<Option<String>, GitError> {
    let before = match &row.merge_commit {
        Some(merge) => repository.first_parent(merge)?,
        None => main.map(str::to_owned),
    };
    let Some(before) = before else {
        return Ok(None);
    };
    let base = repository.merge_base(&before, &row.head)?;
    if base.as_ref() == Some(&row.head) {
        // it came to main as it is
        return repository.first_parent(&row.head);
    }
    Ok(base)
}

impl Proposals {
    /// A proposal that an actor may see.
    pub async fn seen_by(&self, actor: &Actor, number: i64) -> Result<ProposalRow, TalkError> {
        let row = self.store.proposal(number).await?;
        row.filter(|row| sees(actor, row))
            .ok_or(TalkError::Absent(number))
    }

    /// Those of a page of proposals that an actor may see, newest first, and the number to go on before.
    pub async fn page(
        &self,
        actor: &Actor,
        state: Option<State>,
        mut before: Option<i64>,
        most: usize,
    ) -> Result<(Vec<ProposalRow>, Option<i64>), TalkError> {
        let mut out = Vec::new();
        let ask = i64::try_from(most.saturating_add(1)).unwrap_or(i64::MAX);
        loop {
            let rows = self
                .store
                .proposals_before(state.map(State::as_str), before, ask)
                .await?;
            let last = rows.len() < usize::try_from(ask).unwrap_or(usize::MAX);
            before = rows.last().map(|row| row.number);
            out.extend(rows.into_iter().filter(|row| sees(actor, row)));
            if out.len() > most {
                out.truncate(most);
                let next = out.last().map(|row| row.number);
                return Ok((out, next));
            }
            if last || before.is_none() {
                return Ok((out, None));
            }
        }
    }

    /// A proposal with what is needed to judge it.
    pub async fn about(self: &Arc<Self>, row: ProposalRow) -> Result<About, TalkError> {
        let reviews = self.store.reviews_of(row.number).await?;
        let revisions = self.store.revisions_of(row.number).await?;
        let mut names: BTreeSet<String> = revisions
            .into_iter()
            .map(|revision| revision.pushed_by)
            .collect();
        names.insert(row.author.clone());
        let (row, base, main, authors) = self
            .blocking(move |repository| {
                let main = repository.main_tip()?;
                let base = base_of(repository, &row, main.as_deref())?;
                let mut addresses = BTreeSet::new();
                if let Some(base) = &base {
                    for (name, address) in repository.authors(&row.head, base)? {
                        names.insert(name);
                        addresses.insert(address);
                    }
                }
                Ok((row, base, main, Authors { names, addresses }))
            })
            .await?;
        Ok(About {
            given: reviews.iter().filter_map(to_given).collect(),
            row,
            base,
            main,
            reviews,
            authors,
        })
    }

    /// The comments on a proposal, oldest first.
    pub async fn comments(&self, number: i64) -> Result<Vec<CommentRow>, StoreError> {
        self.store.comments_of(number).await
    }

    /// How many comments a proposal has.
    pub async fn comment_count(&self, number: i64) -> Result<i64, StoreError> {
        self.store.comment_count(number).await
    }

    /// The pushes to a proposal, oldest first.
    pub async fn revisions(
        &self,
        number: i64,
    ) -> Result<Vec<crate::store::RevisionRow>, StoreError> {
        self.store.revisions_of(number).await
    }

    /// The newest comment on each open proposal that has any, without what it says.
    pub async fn newest_comments(&self) -> Result<Vec<NewestComment>, StoreError> {
        self.store.newest_comments(State::Open.as_str()).await
    }

    /// A row as it is now, where the actor may see it and it is what they have seen. Called with the lock of writers.
    async fn still(
        &self,
        actor: &Actor,
        number: i64,
        seen: Seen<'_>,
    ) -> Result<ProposalRow, TalkError> {
        let row = self.seen_by(actor, number).await?;
        match seen {
            Some(seen) if seen != tag(&row) => Err(TalkError::Changed(number, tag(&row))),
            _ => Ok(row),
        }
    }

    /// Gives a verdict on the head that was judged.
    pub async fn review(
        self: &Arc<Self>,
        actor: &Actor,
        number: i64,
        seen: Seen<'_>,
        judged: &str,
        (verdict, body): (Verdict, &str),
    ) -> Result<ReviewRow, TalkError> {
        let body = said(body, "message")?;
        let _one = self.writing.lock().await;
        let row = self.still(actor, number, seen).await?;
        if let Some(path) = row
            .touches()
            .iter()
            .find(|path| !actor.may(Action::Review, path))
        {
            return Err(forbidden(Action::Review.verb(), path));
        }
        let about = self.about(row).await?;
        let own = about.authors.has(&actor.name) || about.authors.has_address(&actor.email());
        decide_review(number, about.state(), &about.row.head, judged, verdict, own)?;
        if about.reviews.len() >= MOST {
            return Err(TalkError::Unfit(format!(
                "proposal {number} has {MOST} verdicts, and takes no more"
            )));
        }
        let mut review = ReviewRow {
            proposal: number,
            id: 0,
            reviewer: actor.name.to_string(),
            groups: serde_json::to_string(actor.groups()).unwrap_or_default(),
            verdict: verdict.as_str().into(),
            head: about.row.head,
            body,
            at: crate::clock::unix_millis(),
        };
        review.id = self.store.add_review(&review).await?;
        Ok(review)
    }

    /// Comments on a proposal.
    pub async fn comment(
        self: &Arc<Self>,
        actor: &Actor,
        number: i64,
        seen: Seen<'_>,
        new: NewComment,
    ) -> Result<CommentRow, TalkError> {
        let body = said(&new.body, "message")?;
        if body.trim().is_empty() {
            return Err(TalkError::Wrong("say something in `message`".into()));
        }
        let _one = self.writing.lock().await;
        let row = self.still(actor, number, seen).await?;
        let touched = row.touches();
        if !touched.is_empty() && !touched.iter().any(|path| actor.may(Action::Propose, path)) {
            return Err(forbidden("comment on changes of", &touched[0]));
        }
        let comments = self.store.comments_of(number).await?;
        if comments.len() >= MOST {
            return Err(TalkError::Unfit(format!(
                "proposal {number} has {MOST} comments, and takes no more"
            )));
        }
        let mut comment = CommentRow {
            proposal: number,
            author: actor.name.to_string(),
            body,
            at: crate::clock::unix_millis(),
            head: row.head.clone(),
            ..CommentRow::default()
        };
        match (new.thread, new.place) {
            (Some(_), Some(_)) => {
                return Err(TalkError::Wrong(
                    "an answer has the place of its thread; leave `place` out".into(),
                ));
            }
            (Some(thread), None) => {
                if !comments
                    .iter()
                    .any(|known| known.id == thread && known.thread == thread)
                {
                    return Err(TalkError::Wrong(format!(
                        "proposal {number} has no thread {thread}"
                    )));
                }
                comment.thread = thread;
            }
            (None, Some(place)) => {
                self.put_place(actor, &mut comment, row, (&touched[..], place))
                    .await?;
            }
            (None, None) => {}
        }
        comment.id = self.store.add_comment(&comment).await?;
        if comment.thread == 0 {
            comment.thread = comment.id;
        }
        Ok(comment)
    }

    async fn put_place(
        self: &Arc<Self>,
        actor: &Actor,
        comment: &mut CommentRow,
        row: ProposalRow,
        (touched, place): (&[String], Place),
    ) -> Result<(), TalkError> {
        let Place {
            path,
            old,
            line,
            rendered,
            quote,
        } = place;
        let shown: String = path.chars().take(80).collect();
        // what renders differently need not be what was touched: a partial is
        if rendered.is_none() && !touched.contains(&path) {
            return Err(TalkError::Wrong(format!(
                "proposal {} does not touch `{shown}`",
                row.number
            )));
        }
        let nowhere = || TalkError::Wrong(format!("`{shown}` has no line {line} there"));
        // what they may not read is as if it were not there
        if !actor.may(Action::Read, &path) {
            return Err(nowhere());
        }
        let (of, in_file) = (path.clone(), rendered.is_none());
        let found = self
            .blocking(move |repository| {
                let main = repository.main_tip()?;
                let commit = if old {
                    base_of(repository, &row, main.as_deref())?
                } else {
                    Some(row.head.clone())
                };
                let Some(commit) = commit else {
                    return Ok(None);
                };
                let Some(bytes) = repository.file(&commit, &of)? else {
                    return Ok(None);
                };
                let lines = String::from_utf8_lossy(&bytes).lines().count();
                let fits = line >= 1 && (!in_file || line as usize <= lines.max(1));
                Ok(fits.then_some(commit))
            })
            .await?;
        let Some(commit) = found else {
            return Err(nowhere());
        };
        if let Some((example, message)) = rendered {
            if example.chars().count() > MAX_EXAMPLE {
                return Err(TalkError::Wrong("`example` is too long a name".into()));
            }
            comment.example = Some(example);
            comment.message = Some(message.into());
            comment.quote = quote.and_then(|quote| serde_json::to_string(&quote).ok());
        }
        comment.place_commit = Some(commit);
        comment.path = Some(path);
        comment.side = Some(if old { "old" } else { "new" }.into());
        comment.line = Some(line.into());
        Ok(())
    }

    /// Gives a comment of the actor's own another text.
    pub async fn edit_comment(
        self: &Arc<Self>,
        actor: &Actor,
        (number, id): (i64, i64),
        seen: Seen<'_>,
        body: &str,
    ) -> Result<(), TalkError> {
        let body = said(body, "message")?;
        if body.trim().is_empty() {
            return Err(TalkError::Wrong("say something in `message`".into()));
        }
        let _one = self.writing.lock().await;
        self.still(actor, number, seen).await?;
        let comments = self.store.comments_of(number).await?;
        let Some(comment) = comments.iter().find(|comment| comment.id == id) else {
            return Err(TalkError::Wrong(format!(
                "proposal {number} has no comment {id}"
            )));
        };
        if *comment.author != *actor.name {
            return Err(TalkError::Forbidden(
                "you may edit your own comments only; answer this one instead".into(),
            ));
        }
        let now = crate::clock::unix_millis();
        Ok(self.store.edit_comment(number, id, &body, now).await?)
    }

    /// Resolves a thread, or opens it again.
    pub async fn resolve(
        self: &Arc<Self>,
        actor: &Actor,
        (number, thread): (i64, i64),
        seen: Seen<'_>,
        resolved: bool,
    ) -> Result<(), TalkError> {
        let _one = self.writing.lock().await;
        let row = self.still(actor, number, seen).await?;
        let comments = self.store.comments_of(number).await?;
        let first = comments
            .iter()
            .find(|c| c.id == thread && c.thread == thread);
        let Some(first) = first else {
            return Err(TalkError::Wrong(format!(
                "proposal {number} has no thread {thread}"
            )));
        };
        let touched = row.touches();
        let own = *first.author == *actor.name || *row.author == *actor.name;
        if !own && !touched.iter().all(|path| actor.may(Action::Review, path)) {
            return Err(TalkError::Forbidden(
                "a thread is resolved by who began it, by the author of the proposal, or by a reviewer".into(),
            ));
        }
        let by = resolved.then_some(&*actor.name);
        let now = crate::clock::unix_millis();
        Ok(self.store.resolve_thread(number, thread, by, now).await?)
    }

    /// Closes a proposal, opens it again, or gives it another title or body: by its author, or by who may publish it.
    pub async fn change(
        self: &Arc<Self>,
        actor: &Actor,
        number: i64,
        seen: Seen<'_>,
        (to, title, body): (Option<State>, Option<&str>, Option<&str>),
    ) -> Result<ProposalRow, TalkError> {
        let body = body.map(|body| said(body, "message")).transpose()?;
        let _one = self.writing.lock().await;
        // what main has got meanwhile can be closed no more
        self.bring_up(crate::clock::unix_millis()).await?;
        let mut row = self.still(actor, number, seen).await?;
        let own = *row.author == *actor.name;
        if !own
            && !row
                .touches()
                .iter()
                .all(|path| actor.may(Action::Publish, path))
        {
            return Err(TalkError::Forbidden(format!(
                "proposal {number} is changed by its author, {}, or by who may publish it",
                row.author
            )));
        }
        let now = crate::clock::unix_millis();
        let state = State::parse(&row.state);
        match to {
            Some(State::Closed) if state == State::Open => {
                row.state = State::Closed.as_str().into();
                row.ended_by = Some(actor.name.to_string());
                row.ended_at = Some(now);
            }
            Some(State::Open) if state == State::Closed => {
                let open = self.store.proposals_in(State::Open.as_str()).await?;
                if row.topic.is_some() && open.iter().any(|other| other.topic == row.topic) {
                    // the name goes on with who has it now
                    row.topic = None;
                }
                row.state = State::Open.as_str().into();
                row.ended_by = None;
                row.ended_at = None;
            }
            Some(to) => {
                return Err(TalkError::Unfit(format!(
                    "proposal {number} is {}, and cannot become {}",
                    row.state,
                    to.as_str()
                )));
            }
            None => {}
        }
        if let Some(title) = title {
            row.title = state::title(title);
        }
        if let Some(body) = body {
            row.body = body;
        }
        row.changed_at = now;
        self.store.put_proposal(&row, &actor.name).await?;
        row.version += 1;
        Ok(row)
    }

    /// Notes that a proposal is merged, by whom and as which commit of main.
    pub async fn merged(
        self: &Arc<Self>,
        actor: &Actor,
        number: i64,
        commit: &str,
    ) -> Result<(), TalkError> {
        let Some(row) = self.store.proposal(number).await? else {
            return Err(TalkError::Absent(number));
        };
        let now = crate::clock::unix_millis();
        let row = ProposalRow {
            state: State::Merged.as_str().into(),
            changed_at: now,
            merge_commit: Some(commit.to_owned()),
            ended_by: Some(actor.name.to_string()),
            ended_at: Some(now),
            ..row
        };
        Ok(self.store.put_proposal(&row, &actor.name).await?)
    }

    /// Held by who merges, so that no revision and no verdict comes in between.
    pub async fn hold(&self) -> tokio::sync::MutexGuard<'_, ()> {
        self.writing.lock().await
    }
}
