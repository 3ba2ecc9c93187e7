//! The one gate of every push, whichever way it comes: what it may move, what its content must pass, what follows.
//!
//! git's hooks ask it: `hook` is the side that git runs, `socket` the server's. Nothing here knows HTTP.

pub mod hook;
pub mod install;
mod leaks;
mod lines;
pub mod merge;
pub mod permit;
mod policy;
pub mod propose;
pub mod publish;
mod published;
pub mod pushers;
pub mod rules;
#[cfg(unix)]
pub mod socket;
pub mod wire;

use std::num::NonZeroUsize;
use std::path::Path;
use std::sync::{Arc, Mutex, PoisonError};

use lru::LruCache;
use tokio::sync::Semaphore;
use tokio_util::sync::CancellationToken;

use crate::access::{Access, Action, Actor};
use crate::catalog::library::rests_on_versions;
use crate::catalog::relabel::LABELS;
use crate::git::history::NOTHING;
use crate::git::{GitError, MAIN, Repository};
use crate::prompt::{Problem, secrets};
use crate::proposals::Proposals;
use crate::records::Records;
use crate::registry::candidate::{Checked, Viewer};
use crate::registry::{OpenError, Registry};
use crate::starter;
use crate::upstream::{ADOPTED, Closed};

use pushers::Pushers;
use rules::{Kind, Made, Refused};
use wire::{Answer, Hook, Question, Update};

/// The environment variable in which the HTTP adapter tells the hooks which push it is.
pub const PUSH: &str = "CUEBOOK_PUSH";

/// What of a check is kept until the ref has moved, in pushes.
const KEPT: usize = 16;
/// Checks at a time; each builds a catalog.
const CHECKS: usize = 2;
/// How long a push waits for its check to begin.
const CHECKING: std::time::Duration = std::time::Duration::from_mins(1);
/// Where a push came from that came over no network of ours: by path, or by SSH.
const BY_PATH: &str = "by path or SSH";
/// Where a change came from that a command of the same machine made.
const HERE: &str = "on this machine";
/// Refs of one push; each is checked.
const MAX_REFS: usize = 100;

/// How the gate judges.
#[derive(Debug, Clone, Default)]
pub struct Settings {
    /// Branches beside main that may be neither rewound nor deleted.
    pub protected_branches: Vec<String>,
    /// The address that clients use.
    pub url: String,
    /// The library follows another, which is the place to publish.
    pub closed: Option<Closed>,
}

/// How many clients would be told of a change.
pub type Clients = Box<dyn Fn() -> usize + Send + Sync>;

/// The gate of a library.
pub struct Gate {
    registry: Arc<Registry>,
    repository: Repository,
    /// Where proposals are kept; or why there are none.
    proposals: Result<Arc<Proposals>, String>,
    settings: Settings,
    clients: Option<Clients>,
    /// Who does what is noted there; none where no server runs.
    records: Option<Arc<Records>>,
    /// Who makes the pushes that come over HTTP.
    pushers: Arc<Pushers>,
    checks: Arc<Semaphore>,
    checked: Mutex<LruCache<String, Arc<Checked>>>,
    /// What looking at proposals takes.
    views: merge::Views,
    /// Changes that are made here are made one after the other.
    publishing: tokio::sync::Mutex<()>,
}

impl std::fmt::Debug for Gate {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Gate")
            .field("settings", &self.settings)
            .finish_non_exhaustive()
    }
}

/// Why a push could not be judged; the person sees that it is not their fault.
#[derive(Debug, thiserror::Error)]
enum JudgeError {
    #[error(transparent)]
    Git(#[from] GitError),
    #[error(transparent)]
    Open(#[from] OpenError),
}

impl Gate {
    /// The gate of a registry's repository. `clients` counts who is told; without it nobody is.
    pub fn new(
        registry: Arc<Registry>,
        repository: Repository,
        proposals: Result<Arc<Proposals>, String>,
        settings: Settings,
        clients: Option<Clients>,
    ) -> Self {
        Self {
            registry,
            repository,
            proposals,
            settings,
            clients,
            records: None,
            pushers: Arc::new(Pushers::new(Arc::new(Access::open()))),
            checks: Arc::new(Semaphore::new(CHECKS)),
            checked: Mutex::new(LruCache::new(
                NonZeroUsize::new(KEPT).unwrap_or(NonZeroUsize::MIN),
            )),
            views: merge::Views::default(),
            publishing: tokio::sync::Mutex::default(),
        }
    }

    /// The same, with what is done noted in the audit.
    #[must_use]
    pub fn with_records(mut self, records: Arc<Records>) -> Self {
        self.records = Some(records);
        self
    }

    /// The same, knowing who makes the pushes that come over HTTP.
    #[must_use]
    pub fn with_pushers(mut self, pushers: Arc<Pushers>) -> Self {
        self.pushers = pushers;
        self
    }

    /// Answers a hook.
    /// When nobody waits any more (`gone`), a check that is under way ends soon; what has begun to move is finished.
    pub async fn answer(
        self: &Arc<Self>,
        mut question: Question,
        gone: &CancellationToken,
    ) -> Answer {
        if let Some(id) = &question.push {
            let known = self.pushers.who(id);
            let refused = if let Some((by, denied)) = known {
                question.peer = by.peer;
                question.actor = Some(by.actor);
                denied.err().map(|denied| denied.to_string())
            } else {
                question.actor = Some(Actor::nobody());
                Some("the server that took this push has ended; push again".into())
            };
            // what has moved is served, whoever moved it
            if let Some(why) = refused.filter(|_| question.hook != Hook::PostReceive) {
                return Answer::refused(vec![format!("refused: {why}")]);
            }
        }
        match question.hook {
            Hook::PreReceive => self.accept(question, gone).await,
            Hook::ProcReceive => self.propose(question).await,
            Hook::PostReceive => self.published(question).await,
        }
    }

    /// Whether a push may go on: every ref it moves is judged, and one that is refused refuses all.
    async fn accept(self: &Arc<Self>, question: Question, gone: &CancellationToken) -> Answer {
        if let Some(records) = &self.records
            && let Err(why) = records.audit().ready()
        {
            return unjudged(&why);
        }
        let expected: Vec<Update> = question
            .updates
            .iter()
            .filter(|update| update.name == MAIN && update.new != NOTHING)
            .cloned()
            .collect();
        let (actor, origin) = who(&question);
        let mut answer = self.accept_checked(question, gone).await;
        if answer.accepted
            && let Err(why) = self.may_still(&actor)
        {
            answer = Answer {
                forbidden: true,
                ..Answer::refused(vec![format!("refused: {why}")])
            };
        }
        if let Some(records) = self.records.as_ref().filter(|_| answer.accepted) {
            for update in expected {
                let old = Some(&*update.old).filter(|old| *old != NOTHING);
                records
                    .audit()
                    .expect(old, &update.new, &actor, Some(&origin));
            }
        }
        answer
    }

    /// Whether an actor may what they might when they were asked: a check takes its time, and a credential is taken back at
    /// once.
    fn may_still(&self, actor: &Actor) -> Result<(), String> {
        let now = self
            .pushers
            .access()
            .again(actor, crate::clock::unix_millis());
        match now {
            Ok(now) if now.permissions() == actor.permissions() => Ok(()),
            Ok(_) => Err("what you may do here has changed meanwhile; push again".into()),
            Err(denied) => Err(denied.to_string()),
        }
    }

    async fn accept_checked(
        self: &Arc<Self>,
        question: Question,
        gone: &CancellationToken,
    ) -> Answer {
        const GONE: &str = "whoever pushed has gone";
        let waiting = tokio::time::timeout(CHECKING, self.checks.clone().acquire_owned());
        let waited = tokio::select! {
            waited = waiting => waited,
            () = gone.cancelled() => return unjudged(GONE),
        };
        let one = match waited {
            Ok(Ok(one)) => one,
            Ok(Err(_)) => return unjudged("the server is stopping"),
            Err(_) => return unjudged("the server is busy with the checks of other pushes"),
        };
        let (gate, cancel) = (self.clone(), gone.clone());
        let judged = tokio::task::spawn_blocking(move || {
            // taken until the check has ended, whatever becomes of who waits for it
            let _one = one;
            gate.judge(&question, &cancel)
        })
        .await;
        match judged {
            Ok(Ok(answer)) => answer,
            Ok(Err(_)) if gone.is_cancelled() => {
                tracing::info!("the check of a push was given up: {GONE}");
                unjudged(GONE)
            }
            Ok(Err(error)) => {
                tracing::error!(%error, "a push could not be checked");
                unjudged("the server could not read it; its log says more")
            }
            Err(error) => {
                tracing::error!(%error, "the check of a push failed");
                unjudged("the check failed; the server's log says more")
            }
        }
    }

    fn judge(&self, question: &Question, cancel: &CancellationToken) -> Result<Answer, JudgeError> {
        let repository = match &question.quarantine {
            Some(objects) => self.repository.with_objects(objects),
            None => self.repository.clone(),
        };
        let mut lines = Vec::new();
        let (mut errors, mut refused) = (0, 0);
        let (mut checkable, mut forbidden) = (true, false);
        let (actor, _) = who(question);
        if question.updates.len() > MAX_REFS {
            return Ok(Answer::refused(vec![format!(
                "refused: the push moves {} refs, more than {MAX_REFS} at once; push fewer: git push origin HEAD:main",
                question.updates.len()
            )]));
        }
        let proposes = |update: &Update| {
            let kind = rules::kind(&update.name, &self.settings.protected_branches);
            matches!(kind, Kind::Propose(_))
        };
        let proposes = question.updates.iter().any(proposes);
        if let Err(why) = rules::by_options(&question.options, proposes) {
            lines.extend(lines::refusal(&why));
            refused += 1;
        }
        for update in &question.updates {
            let kind = rules::kind(&update.name, &self.settings.protected_branches);
            if let Err(why) = self.may_move(&repository, update, &kind, question.here)? {
                lines.extend(lines::refusal(&why));
                refused += 1;
                continue;
            }
            let denied = permit::refused(&repository, &actor, question.here, update, &kind)?;
            if !denied.is_empty() {
                lines.extend(denied);
                refused += 1;
                forbidden = true;
                continue;
            }
            if update.new == NOTHING {
                continue;
            }
            let commit = match rules::by_object(
                &update.name,
                &kind,
                repository.commit_of(&update.new)?,
                &update.new,
            ) {
                Ok(commit) => commit,
                Err(why) => {
                    lines.extend(lines::refusal(&why));
                    refused += 1;
                    continue;
                }
            };
            if kind == Kind::Main
                && let Some(why) = policy::refuses(&repository, update, question)?
            {
                lines.extend(lines::refusal(&why));
                refused += 1;
                continue;
            }
            let base = match kind {
                Kind::Main => Some(update.old.clone()),
                Kind::Propose(_) => repository.main_tip()?,
                _ => None,
            };
            let base = base.as_deref();
            // what a merge brings was asked of who proposed it
            let brings = question
                .deed
                .as_ref()
                .is_some_and(|d| d.action == merge::MERGE);
            let writes = base.is_some() && !brings;
            let checked = self.check_for(&actor, writes, &repository, base, &commit, cancel)?;
            let largest = self.registry.limits().resource_file_bytes;
            let leaks = leaks::find(&repository, &commit, largest)?;
            if !leaks.all {
                lines.push(
                    "warning: only the newest commits of this push were searched for secrets; look at the older ones yourself"
                        .into(),
                );
            }
            let mut leaked = leaks.found;
            if base.is_some() {
                let served = self.registry.snapshot().latest.clone();
                let shown = permit::shown_unread(&actor, &served, &repository, base, &commit)?;
                leaked.extend(shown);
            }
            // what the tip still has is told once
            leaked.retain(|leak| {
                let same =
                    |p: &Problem| p.code == leak.code && p.path == leak.path && p.line == leak.line;
                !checked.problems.iter().any(same)
            });
            let served = matches!(kind, Kind::Main | Kind::Propose(_));
            let shown: Vec<&Problem> = checked
                .problems
                .iter()
                .filter(|problem| served || problem.code == secrets::CODE)
                .chain(&leaked)
                .collect();
            errors += shown.iter().filter(|problem| problem.is_error()).count();
            checkable &= !shown.iter().any(|problem| rests_on_versions(problem.code));
            let all = shown.len();
            let shown: Vec<Problem> = shown
                .into_iter()
                .filter(|problem| actor.may(Action::Read, &problem.path))
                .map(|problem| permit::seen_problem(&actor, problem))
                .collect();
            let shown: Vec<&Problem> = shown.iter().collect();
            lines.extend(lines::problems(&shown));
            if shown.len() < all {
                lines.push("what you may not see has problems with it; ask somebody who sees the whole library".into());
            }
        }
        let accepted = errors + refused == 0;
        if !accepted {
            lines.extend(lines::refused_by(errors, question.updates.len(), checkable));
            let refs: Vec<&str> = question.updates.iter().map(|u| &*u.name).collect();
            tracing::info!(
                peer = question.peer.as_deref(),
                ?refs,
                errors,
                "refused a push"
            );
        }
        Ok(Answer {
            accepted,
            lines,
            forbidden,
            ..Answer::default()
        })
    }

    /// Whether the ref may move so, whatever the content.
    fn may_move(
        &self,
        repository: &Repository,
        update: &Update,
        kind: &Kind,
        here: bool,
    ) -> Result<Result<(), Refused>, JudgeError> {
        let deletes = update.new == NOTHING;
        if let Some(closed) = &self.settings.closed {
            let made = match (here, kind) {
                (false, _) => Made::Pushed,
                // a move before the first fetch would keep main apart from what is to be followed
                (true, Kind::Main) if repository.read_ref(ADOPTED)?.is_none() => Made::TooEarly,
                (true, Kind::Main) if labels_alone(repository, update)? => Made::Label,
                (true, _) => Made::Other,
            };
            if let Err(refused) = rules::by_upstream(kind, closed, made) {
                return Ok(Err(refused));
            }
        }
        if let Err(refused) = rules::by_name(&update.name, kind, deletes) {
            return Ok(Err(refused));
        }
        if let Kind::Propose(_) = kind {
            if let Err(reason) = &self.proposals {
                return Ok(Err(Refused {
                    message: format!("no proposals can be taken: {reason}"),
                    hint: "the operator of the server has to look".into(),
                }));
            }
            let commit = repository.commit_of(&update.new)?;
            let main = repository.main_tip()?;
            if main.is_none() {
                return Ok(Err(Refused {
                    message: "the library is empty, so there is nothing to propose a change of"
                        .into(),
                    hint: "git push origin HEAD:main publishes its first prompts".into(),
                }));
            }
            if let (Some(commit), Some(main)) = (commit, main)
                && !repository.related(&commit, &main)?
            {
                return Ok(Err(Refused {
                    message: "the commit has no history in common with main".into(),
                    hint: "git fetch origin, then git rebase origin/main".into(),
                }));
            }
            return Ok(Ok(()));
        }
        // git looks again when it moves the ref; here the person is told what to do
        let now = repository.read_ref(&update.name)?;
        if now.as_deref().unwrap_or(NOTHING) != update.old {
            return Ok(Err(rules::moved_meanwhile(&update.name)));
        }
        if deletes || update.old == NOTHING {
            return Ok(Ok(()));
        }
        // a tag's or a branch's old value may be no commit; then there is no history to lose
        let (Some(old), Some(new)) = (
            repository.commit_of(&update.old)?,
            repository.commit_of(&update.new)?,
        ) else {
            return Ok(Ok(()));
        };
        if *kind == Kind::Main && starter::is_untouched(&repository.facts(&old)?) {
            return Ok(Ok(()));
        }
        let advance = repository.advance(&old, &new)?;
        Ok(rules::by_history(&update.name, kind, advance, &old))
    }

    fn check(
        &self,
        repository: &Repository,
        commit: &str,
        cancel: &CancellationToken,
    ) -> Result<Arc<Checked>, JudgeError> {
        let known = |gate: &Self| gate.kept().get(commit).cloned();
        if let Some(checked) = known(self)
            && !checked.is_clean()
            // what it cost is against what is served now
            && !checked.is_over_budget()
        {
            return Ok(checked);
        }
        let checked = Arc::new(self.registry.check(repository, commit, cancel)?);
        self.kept().put(commit.to_owned(), checked.clone());
        Ok(checked)
    }

    /// The same as it is told to somebody, who has written the commit (`writes`) or only brings it.
    fn check_for(
        &self,
        actor: &Actor,
        writes: bool,
        repository: &Repository,
        base: Option<&str>,
        commit: &str,
        cancel: &CancellationToken,
    ) -> Result<Arc<Checked>, JudgeError> {
        if actor.sees_all() {
            return self.check(repository, commit, cancel);
        }
        let checked = if writes {
            let sees = |path: &str| actor.may(Action::Read, path);
            let viewer = Viewer {
                sees: &sees,
                prompts: permit::changed_prompts(repository, base, commit)?,
            };
            let registry = &self.registry;
            Arc::new(registry.check_for(repository, commit, Some(&viewer), cancel)?)
        } else {
            self.check(repository, commit, cancel)?
        };
        self.kept().put(kept_as(commit, actor), checked.clone());
        Ok(checked)
    }

    /// What the check of a commit found, as somebody may see it.
    fn found(&self, commit: &str, actor: &Actor) -> Option<Arc<Checked>> {
        let checked = self.kept().get(&kept_as(commit, actor)).cloned()?;
        Some(permit::seen_by(actor, &checked))
    }

    fn kept(&self) -> std::sync::MutexGuard<'_, LruCache<String, Arc<Checked>>> {
        self.checked.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Under what the check of a commit is kept: its words are not the same for everybody, nor for all that one may come with.
fn kept_as(commit: &str, actor: &Actor) -> String {
    if actor.sees_all() {
        commit.to_owned()
    } else {
        format!("{commit} {actor} {:?}", actor.permissions())
    }
}

/// Whether an update changes `labels.toml` and nothing else.
fn labels_alone(repository: &Repository, update: &Update) -> Result<bool, GitError> {
    if update.old == NOTHING || update.new == NOTHING {
        return Ok(false);
    }
    Ok(repository.differing(&update.old, &update.new, 2)? == [LABELS])
}

/// Who asks, and from where.
fn who(question: &Question) -> (Actor, String) {
    let actor = question.actor.clone().unwrap_or_else(Actor::local);
    let origin = match (&question.peer, &question.actor) {
        (Some(peer), _) => peer.clone(),
        (None, Some(_)) => HERE.to_owned(),
        (None, None) => BY_PATH.to_owned(),
    };
    (actor, origin)
}

fn unjudged(why: &str) -> Answer {
    Answer {
        unjudged: true,
        ..Answer::refused(vec![format!(
            "refused: {why}. Nothing was changed; push again in a moment."
        )])
    }
}

/// The gate of a data directory that no server serves now: it checks alone, and takes no proposals.
pub fn without_server(
    data_dir: &Path,
    library: crate::registry::Settings,
    settings: Settings,
) -> Result<Gate, OpenError> {
    let repository = Repository::open(&data_dir.join("library.git"))?;
    let registry = Registry::open(
        crate::registry::source::Library::Bare(repository.clone()),
        library,
    )?;
    let none = Err("no server is running on this data directory".to_owned());
    Ok(Gate::new(
        Arc::new(registry),
        repository,
        none,
        settings,
        None,
    ))
}
