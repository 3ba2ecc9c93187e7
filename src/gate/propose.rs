//! Proposals that pass the gate: pushed to `refs/for/main`, or made here of texts.

use std::path::Path;
use std::sync::Arc;

use tokio_util::sync::CancellationToken;

use super::publish::{PublishError, blocking};
use super::wire::{Answer, Hook, Proposed, Question, Update};
use super::{Gate, install, who};
use crate::access::{Action, Actor, By};
use crate::git::commit::{Apart, Edit, Message};
use crate::git::history::NOTHING;
use crate::git::merge::Merged;
use crate::git::pack::PROPOSE;
use crate::git::{GitError, MAIN, read_again};
use crate::proposals::state::{Options, Refusal};
use crate::proposals::{Proposals, ProposeError, TalkError, Words, Written, head_ref};
use crate::store::AuditEntry;

/// A proposal, or a revision of one, that is made of texts.
#[derive(Debug, Clone)]
pub struct Proposing {
    /// What it is about, one line; none to leave that as it is, or for the subject of the message.
    pub title: Option<String>,
    /// What else its author says of it.
    pub body: Option<String>,
    /// What it is made from: a commit of main, or the head of the proposal that is revised.
    pub base: String,
    /// The proposal that is revised; none for a new one.
    pub number: Option<i64>,
    /// Merges this commit of main into it, with the edits in the place of what conflicts.
    pub merges: Option<String>,
    /// What happens to which file.
    pub edits: Vec<Edit>,
    /// The message of the commit.
    pub message: String,
}

/// Why a proposal could not be made of texts.
#[derive(Debug, thiserror::Error)]
pub enum ProposingError {
    /// The actor may not, or does not see it.
    #[error(transparent)]
    Talk(#[from] TalkError),
    /// The commit it was made from is none of main, or no longer the head.
    #[error("there is no commit `{0}` on main; give the commit that the edits were made from")]
    Base(String),
    /// It still conflicts in these files.
    #[error("{0} still conflict; say what they are to hold")]
    Conflicts(String),
    /// It could not be written.
    #[error(transparent)]
    Propose(#[from] ProposeError),
}

impl Gate {
    /// The proposals; in words why there are none.
    pub fn proposals(&self) -> Result<&Arc<Proposals>, &str> {
        self.proposals.as_ref().map_err(String::as_str)
    }

    /// Opens or revises a proposal for each ref.
    pub(super) async fn propose(self: &Arc<Self>, question: Question) -> Answer {
        let mut answer = Answer {
            accepted: true,
            ..Answer::default()
        };
        let (actor, origin) = who(&question);
        for update in question.updates {
            let refused = |reason: String| Proposed::Refused {
                pushed: update.name.clone(),
                reason,
            };
            let proposals = match &self.proposals {
                Ok(proposals) => proposals,
                Err(reason) => {
                    answer.proposed.push(refused(reason.clone()));
                    continue;
                }
            };
            let now = crate::clock::unix_millis();
            let written = proposals
                .push(&actor, &update.new, &question.options, now)
                .await;
            match written {
                Ok(written) => {
                    answer
                        .lines
                        .extend(self.told(&actor, &origin, &written).await);
                    answer.proposed.push(Proposed::Written {
                        pushed: update.name.clone(),
                        name: head_ref(written.proposal.number),
                        old: written.old.clone(),
                        new: written.proposal.head.clone(),
                        forced: written.forced,
                    });
                }
                Err(error @ (ProposeError::Refused(_) | ProposeError::Upstream(_))) => {
                    answer.proposed.push(refused(error.to_string()));
                }
                Err(error) => {
                    tracing::error!(%error, "a proposal could not be written");
                    answer.proposed.push(refused(
                        "the server could not write it; its log says more".into(),
                    ));
                }
            }
        }
        answer
    }

    /// Notes a proposal in the audit, and says to its author what became of it.
    async fn told(&self, actor: &Actor, origin: &str, written: &Written) -> Vec<String> {
        let mut out = Vec::new();
        let row = &written.proposal;
        let what = match &written.old {
            None => format!("opened proposal {}: {}", row.number, row.title),
            Some(_) => format!(
                "revised proposal {} (revision {}): {}",
                row.number, row.revision, row.title
            ),
        };
        tracing::info!(proposal = row.number, head = %row.head, "{}", if written.old.is_none() { "opened" } else { "revised" });
        let entry = AuditEntry {
            action: if written.old.is_none() {
                "propose"
            } else {
                "revise"
            }
            .into(),
            subject: Some(format!("proposal {}", row.number)),
            old_commit: written.old.clone(),
            new_commit: Some(row.head.clone()),
            ..self.entry(actor, origin, &row.head)
        };
        out.push(crate::prompt::visible::visible(&what).into_owned());
        out.extend(self.audited(entry).await);
        if let Some(branch) = &written.branch {
            out.push(format!(
                "  pushed as branch {} to the repository that this library follows",
                branch.name
            ));
            out.extend(branch.said.iter().map(|line| format!("  {line}")));
        }
        out.push(format!(
            "  see it: {}/proposals/{} or git fetch origin {}",
            self.settings.url,
            row.number,
            head_ref(row.number)
        ));
        let again = match &row.topic {
            Some(topic)
                if topic
                    .chars()
                    .all(|c| c.is_alphanumeric() || "-_.".contains(c)) =>
            {
                format!("-o topic={topic}")
            }
            Some(topic) => format!(
                "-o {}",
                install::quoted(Path::new(&format!("topic={topic}")))
            ),
            None => format!("-o proposal={}", row.number),
        };
        out.push(format!(
            "  revise it: git push {again} origin HEAD:refs/for/main"
        ));
        out
    }

    /// Notes in the audit what was done with a proposal; a line for the person where that has to wait.
    pub async fn note(
        &self,
        by: &By,
        action: &str,
        number: i64,
        head: &str,
        detail: Option<String>,
    ) -> Option<String> {
        let origin = by.peer.clone().unwrap_or_else(|| super::HERE.to_owned());
        let entry = AuditEntry {
            action: action.into(),
            subject: Some(format!("proposal {number}")),
            new_commit: Some(head.to_owned()),
            detail,
            ..self.entry(&by.actor, &origin, head)
        };
        self.audited(entry).await
    }

    /// Opens or revises a proposal of texts, as a push of the same commit does.
    pub async fn propose_here(
        self: &Arc<Self>,
        by: &By,
        ask: Proposing,
    ) -> Result<(Written, Vec<String>), PublishError<ProposingError>> {
        let failed = |error: ProposingError| PublishError::Change(error);
        let proposals = self
            .proposals()
            .map_err(|why| PublishError::Unjudged(why.to_owned()))?;
        let proposals = proposals.clone();
        for edit in &ask.edits {
            // who may not see a file must not learn whether it is there
            if !by.actor.may(Action::Propose, &edit.path) {
                let why = format!(
                    "you may not propose changes of {}; ask for the role",
                    edit.path
                );
                return Err(failed(TalkError::Forbidden(why).into()));
            }
        }
        if let Some(number) = ask.number {
            let row = proposals.seen_by(&by.actor, number).await;
            let row = row.map_err(|error| failed(error.into()))?;
            let paths = row.touches();
            if let Some(path) = paths
                .iter()
                .find(|path| !by.actor.may(Action::Propose, path))
            {
                let why = format!("you may not propose changes of {path}; ask for the role");
                return Err(failed(TalkError::Forbidden(why).into()));
            }
            if row.head != ask.base {
                let moved = ProposeError::from(Refusal::MovedOn(number, row.head));
                return Err(failed(moved.into()));
            }
        }
        let (gate, asked, author) = (self.clone(), ask.clone(), by.actor.clone());
        let apart = blocking(move || gate.proposed(&author, &asked)).await?;
        let head = apart.commit.clone();
        let question = Question {
            hook: Hook::PreReceive,
            updates: vec![Update {
                old: NOTHING.into(),
                new: head.clone(),
                name: format!("{PROPOSE}/main"),
            }],
            options: Vec::new(),
            quarantine: Some(apart.objects().to_path_buf()),
            push: None,
            peer: by.peer.clone(),
            actor: Some(by.actor.clone()),
            here: true,
            deed: None,
            judged: None,
        };
        let (_, origin) = who(&question);
        // whoever drops this ends the check
        let gone = CancellationToken::new();
        let waits = gone.clone().drop_guard();
        let Answer {
            accepted,
            lines: mut all,
            unjudged,
            forbidden,
            ..
        } = self.accept(question, &gone).await;
        drop(waits.disarm());
        if unjudged {
            return Err(PublishError::Unjudged(all.join("\n")));
        }
        if forbidden {
            return Err(PublishError::Forbidden { lines: all });
        }
        if !accepted {
            let checked = self.found(&head, &by.actor);
            return Err(PublishError::Refused {
                lines: all,
                checked,
            });
        }
        blocking(move || Ok(apart.keep()?)).await?;
        let words = Words {
            options: Options {
                title: ask.title.as_deref().map(crate::proposals::state::title),
                proposal: ask.number,
                ..Options::default()
            },
            body: ask.body,
            onto: ask.number.map(|_| ask.base),
        };
        let now = crate::clock::unix_millis();
        let written = proposals.record(&by.actor, &head, words, now).await;
        let written = written.map_err(|error| failed(error.into()))?;
        all.extend(self.told(&by.actor, &origin, &written).await);
        Ok((written, all))
    }

    /// The commit of a proposal that is made of texts, apart.
    fn proposed(
        &self,
        author: &Actor,
        ask: &Proposing,
    ) -> Result<Apart, PublishError<ProposingError>> {
        let no_base = || {
            let shown = ask.base.chars().take(40).collect();
            PublishError::Change(ProposingError::Base(shown))
        };
        let tip = self.repository.read_ref(MAIN)?.ok_or_else(no_base)?;
        let is_id = |id: &str| id.len() >= 7 && id.bytes().all(|b| b.is_ascii_hexdigit());
        let on_main = |id: &str| {
            if !is_id(id) {
                return Err(no_base());
            }
            match self.repository.reachable(id, &tip) {
                Ok(commit) => Ok(commit),
                Err(GitError::Unknown(_) | GitError::Ambiguous(_)) => Err(no_base()),
                Err(error) => Err(error.into()),
            }
        };
        let message = Message {
            author: author.to_string(),
            email: author.email(),
            text: ask.message.clone(),
            seconds: i64::try_from(crate::clock::unix_seconds()).unwrap_or(i64::MAX),
        };
        let base = match ask.number {
            Some(_) => ask.base.clone(),
            None => on_main(&ask.base)?,
        };
        let Some(merges) = &ask.merges else {
            let apart = read_again(GitError::git, || {
                self.repository
                    .commit_apart(Some(&base), &ask.edits, &message)
            })?;
            return apart.ok_or(PublishError::Nothing);
        };
        let merges = on_main(merges)?;
        let merged = read_again(GitError::git, || {
            self.repository
                .merge_apart(&base, &merges, &ask.edits, &message)
        })?;
        match merged {
            Merged::Made(apart) => Ok(apart),
            Merged::Nothing => Err(PublishError::Nothing),
            Merged::Conflicts(conflicts) => {
                let paths: Vec<String> = conflicts.into_iter().map(|c| c.path).collect();
                let paths = crate::proposals::review::named(&paths);
                Err(PublishError::Change(ProposingError::Conflicts(paths)))
            }
        }
    }
}
