//! The merge of a proposal: a commit on main like any other, made here, judged by the same gate and by its reviewers.

use std::collections::BTreeSet;
use std::num::NonZeroUsize;
use std::sync::{Arc, Mutex, PoisonError};

use lru::LruCache;
use tokio::sync::Semaphore;
use tokio_util::sync::CancellationToken;

use super::policy::{action_at, rules};
use super::publish::{Made, PublishError, Published, Tip, blocking};
use super::wire::{Deed, Judged};
use super::{Checked, Gate, permit};
use crate::access::{Access, Action, Actor, By, Scope};
use crate::catalog::policy::Approval;
use crate::git::commit::{Apart, Message};
use crate::git::merge::{Conflict, Merged};
use crate::git::{GitError, MAIN, Repository, SERVER_EMAIL, read_again};
use crate::proposals::review::{
    Facts, Given, MergePlan, MergeRefusal, Needed, approving, decide_merge, merge_message, named,
    needed,
};
use crate::proposals::{About, ProposeError, Seen, TalkError, tag};

/// What a merge is called in questions and in the audit.
pub(super) const MERGE: &str = "merge";

/// Proposals that are held against main at a time, for who looks at them.
const VIEWS: usize = 2;
/// Checks of proposals that are kept.
const KEPT: usize = 32;

/// Tip of main, head, and generation of the catalog: what the check of a proposal rests on.
type Key = (String, String, u64);

/// What looking at proposals takes: turns of its own, so that no push waits for them, and what was found already.
#[derive(Debug)]
pub(super) struct Views {
    turns: Arc<Semaphore>,
    checked: Mutex<LruCache<Key, Arc<Checked>>>,
}

impl Default for Views {
    fn default() -> Self {
        Self {
            turns: Arc::new(Semaphore::new(VIEWS)),
            checked: Mutex::new(LruCache::new(
                NonZeroUsize::new(KEPT).unwrap_or(NonZeroUsize::MIN),
            )),
        }
    }
}

impl Views {
    fn get(&self, key: &Key) -> Option<Arc<Checked>> {
        let mut checked = self.checked.lock().unwrap_or_else(PoisonError::into_inner);
        checked.get(key).cloned()
    }

    fn put(&self, key: Key, found: Arc<Checked>) {
        let mut checked = self.checked.lock().unwrap_or_else(PoisonError::into_inner);
        checked.put(key, found);
    }
}

/// Why a proposal was not merged.
#[derive(Debug, thiserror::Error)]
pub enum MergeError {
    /// What reviewers, policy and history say against it.
    #[error("{}", .0.iter().map(ToString::to_string).collect::<Vec<_>>().join("\n"))]
    Refused(Vec<MergeRefusal>),
    /// The actor does not see it, or it has changed.
    #[error(transparent)]
    Talk(#[from] TalkError),
    /// The policy cannot be read.
    #[error("{0}")]
    Policy(String),
}

/// How a proposal stands to main as it is now.
#[derive(Debug)]
pub struct Standing {
    /// Whether whoever asks may merge it, and why not.
    pub plan: Result<MergePlan, Vec<MergeRefusal>>,
    /// The approvals it takes.
    pub needed: Vec<Needed>,
    /// Files that both have changed.
    pub conflicts: Vec<Conflict>,
    /// What the check finds in what main would be; none where it cannot be merged, or is.
    pub checked: Option<Arc<Checked>>,
    /// What main would be, apart; none where it cannot be merged, or is.
    pub merge: Option<Apart>,
    /// The commit of main that it was held against.
    pub main: Option<String>,
    /// Why the policy is not known.
    pub policy: Option<String>,
}

/// A merge that was tried.
struct Tried {
    merge: Option<Apart>,
    conflicts: Vec<Conflict>,
    touched: BTreeSet<String>,
    in_main: bool,
}

fn attempt(
    repository: &Repository,
    tip: &str,
    head: &str,
    message: &Message,
) -> Result<Tried, GitError> {
    let merged = read_again(GitError::git, || {
        repository.merge_apart(tip, head, &[], message)
    })?;
    let mut tried = Tried {
        merge: None,
        conflicts: Vec::new(),
        touched: BTreeSet::new(),
        in_main: false,
    };
    match merged {
        Merged::Made(apart) => {
            let with = repository.with_objects(apart.objects());
            tried.touched = with.touched(tip, &apart.commit, true)?;
            tried.merge = Some(apart);
        }
        Merged::Conflicts(conflicts) => {
            if let Some(base) = repository.merge_base(tip, head)? {
                tried.touched = repository.touched(&base, head, false)?;
            }
            tried.conflicts = conflicts;
        }
        Merged::Nothing => tried.in_main = true,
    }
    Ok(tried)
}

fn decide(
    about: &About,
    actor: &Actor,
    rules: &[Approval],
    tried: &Tried,
    seen: Option<&str>,
) -> Result<MergePlan, Vec<MergeRefusal>> {
    let forbidden = tried
        .touched
        .iter()
        .filter(|path| !actor.may(action_at(path), path));
    decide_merge(&Facts {
        number: about.row.number,
        state: about.state(),
        head: &about.row.head,
        seen,
        given: &about.given,
        rules,
        touched: &tried.touched,
        authors: &about.authors,
        forbidden: forbidden.cloned().collect(),
        conflicts: tried
            .conflicts
            .iter()
            .map(|conflict| conflict.path.clone())
            .collect(),
        in_main: tried.in_main,
    })
}

/// The verdicts of those who may still review all that a proposal touches, with the groups that they are in now.
fn counting(access: &Access, about: &About) -> Vec<Given> {
    if access.is_open() {
        return about.given.clone();
    }
    let (rows, touched) = (access.rows(), about.row.touches());
    let now = |given: &Given| {
        let row = rows.principal(&given.reviewer)?;
        if row.disabled {
            return None;
        }
        let reviewer = rows.actor(row, &[], Scope::default());
        let may = touched
            .iter()
            .all(|path| reviewer.may(Action::Review, path));
        let groups = reviewer.groups().iter().map(ToString::to_string).collect();
        may.then(|| Given {
            groups,
            ..given.clone()
        })
    };
    about.given.iter().filter_map(now).collect()
}

impl Gate {
    /// Merges a proposal whose head is the one that was seen; `tagged` is what else of it was seen.
    pub async fn merge(
        self: &Arc<Self>,
        by: &By,
        number: i64,
        tagged: Seen<'_>,
        seen: &str,
    ) -> Result<Published, PublishError<MergeError>> {
        let failed = |error: TalkError| PublishError::Change(MergeError::Talk(error));
        let proposals = self
            .proposals()
            .map_err(|why| PublishError::Unjudged(why.to_owned()))?;
        let proposals = proposals.clone();
        let now = crate::clock::unix_millis();
        let late = |error: ProposeError| failed(TalkError::Failed(error));
        proposals.reconcile(now).await.map_err(late)?;
        let _one = proposals.hold().await;
        let row = proposals.seen_by(&by.actor, number).await.map_err(failed)?;
        if tagged.is_some_and(|tagged| tagged != tag(&row)) {
            return Err(failed(TalkError::Changed(number, tag(&row))));
        }
        let mut about = proposals.about(row).await.map_err(failed)?;
        about.given = counting(self.pushers.access(), &about);
        let (actor, seen) = (by.actor.clone(), seen.to_owned());
        let make = move |tip: &Tip| merge_of(tip, &about, &actor, &seen);
        let published = self.publish_commit(by, make).await?;
        // the commit says it as well, by which it is put right where this fails
        if let Err(error) = proposals.merged(&by.actor, number, &published.commit).await {
            tracing::error!(%error, proposal = number, "a merged proposal could not be noted as merged; it is tried again");
        }
        Ok(published)
    }

    /// How a proposal stands to main as it is now, for who asks. Nothing is changed.
    pub async fn standing(
        self: &Arc<Self>,
        actor: &Actor,
        about: &About,
    ) -> Result<Standing, PublishError<MergeError>> {
        let (gate, mut about, actor) = (self.clone(), about.clone(), actor.clone());
        about.given = counting(self.pushers.access(), &about);
        let one = self.views.turns.clone().acquire_owned();
        let one = tokio::time::timeout(super::CHECKING, one)
            .await
            .ok()
            .and_then(Result::ok)
            .ok_or(PublishError::Busy)?;
        let gone = CancellationToken::new();
        let waits = gone.clone().drop_guard();
        let standing = blocking(move || {
            let _one = one;
            gate.stands(&actor, &about, &gone)
        })
        .await;
        drop(waits.disarm());
        standing
    }

    fn stands(
        &self,
        actor: &Actor,
        about: &About,
        gone: &CancellationToken,
    ) -> Result<Standing, PublishError<MergeError>> {
        let main = self.repository.read_ref(MAIN)?;
        let head = &about.row.head;
        let Some(tip) = main
            .clone()
            .filter(|_| about.state() != crate::proposals::state::State::Merged)
        else {
            let nothing = Tried {
                merge: None,
                conflicts: Vec::new(),
                touched: BTreeSet::new(),
                in_main: false,
            };
            return Ok(Standing {
                plan: decide(about, actor, &[], &nothing, None),
                needed: Vec::new(),
                conflicts: Vec::new(),
                checked: None,
                merge: None,
                main,
                policy: None,
            });
        };
        // the same commit each time it is asked, so that what the check found is known
        let message = Message {
            author: "Cuebook".into(),
            email: SERVER_EMAIL.into(),
            text: format!("Try proposal {}\n", about.row.number),
            seconds: self.repository.facts(head)?.seconds,
        };
        let tried = attempt(&self.repository, &tip, head, &message)?;
        let (rules, policy) = match rules(&self.repository, &tip)? {
            Ok(rules) => (rules, None),
            Err(why) => (Vec::new(), Some(why.message)),
        };
        let checked = match &tried.merge {
            Some(apart) => Some(self.checked_view(&tip, head, apart, gone)?),
            None => None,
        };
        Ok(Standing {
            plan: decide(about, actor, &rules, &tried, None),
            needed: needed(&rules, &tried.touched, &about.given, head, &about.authors),
            conflicts: tried.conflicts,
            checked: checked.map(|checked| permit::seen_by(actor, &checked)),
            merge: tried.merge,
            main: Some(tip),
            policy,
        })
    }

    /// What the check finds in the merge of a head into a tip, looked for once.
    fn checked_view(
        &self,
        tip: &str,
        head: &str,
        apart: &Apart,
        gone: &CancellationToken,
    ) -> Result<Arc<Checked>, PublishError<MergeError>> {
        let generation = self.registry.snapshot().generation;
        let key = (tip.to_owned(), head.to_owned(), generation);
        if let Some(known) = self.views.get(&key) {
            return Ok(known);
        }
        let with = self.repository.with_objects(apart.objects());
        let checked = self.registry.look(&with, &apart.commit, gone);
        let checked = Arc::new(checked.map_err(|error| {
            tracing::error!(%error, "what a proposal would make of main could not be checked");
            PublishError::Unjudged("it could not be checked now; the server's log says more".into())
        })?);
        self.views.put(key, checked.clone());
        Ok(checked)
    }
}

/// The commit that merges a proposal into a tip.
fn merge_of(
    tip: &Tip,
    about: &About,
    actor: &Actor,
    seen: &str,
) -> Result<Made, PublishError<MergeError>> {
    let refused = |refusals| PublishError::Change(MergeError::Refused(refusals));
    let row = &about.row;
    let Some(commit) = &tip.commit else {
        return Err(refused(vec![MergeRefusal::InMain(row.number)]));
    };
    let approved_by = approving(&about.given, &row.head, &about.authors);
    let message = Message {
        author: actor.to_string(),
        email: actor.email(),
        text: merge_message(row.number, &row.title, &row.body, &approved_by),
        seconds: i64::try_from(crate::clock::unix_seconds()).unwrap_or(i64::MAX),
    };
    let tried = attempt(&tip.repository, commit, &row.head, &message)?;
    let rules = rules(&tip.repository, commit)?.map_err(|why| {
        PublishError::Change(MergeError::Policy(format!("{}; {}", why.message, why.hint)))
    })?;
    let plan = decide(about, actor, &rules, &tried, Some(seen)).map_err(refused)?;
    let Some(apart) = tried.merge else {
        return Err(refused(vec![MergeRefusal::InMain(row.number)]));
    };
    let reason = match &*plan.approved_by {
        [] => None,
        names => Some(format!("approved by {}", named(names))),
    };
    Ok(Made {
        apart,
        deed: Some(Deed {
            action: MERGE.into(),
            subject: format!("proposal {}", row.number),
            reason,
        }),
        judged: Some(Arc::new(Judged {
            head: row.head.clone(),
            given: about.given.clone(),
            authors: about.authors.clone(),
        })),
    })
}
