//! Mirror mode: this library follows another repository, a forge's for instance.
//!
//! A webhook is only a hint; a poll stands behind it. What is fetched passes the same check as a push before main moves
//! there, and nothing of main is ever given up that the other side has not had.

mod adopt;
pub mod webhook;

use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use tokio::sync::Notify;
use tokio_util::sync::CancellationToken;

use crate::catalog::relabel::apart;
use crate::git::remote::Remote;
use crate::git::{GitError, MAIN, Repository};
use crate::registry::Registry;

pub use adopt::ADOPTED;
use adopt::Adopted;

/// What happens to what is pushed here.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum Mode {
    /// It is refused: the other repository is the place to publish.
    #[default]
    Follow,
    /// A proposal goes to the other repository as a branch.
    Propose,
}

impl Mode {
    /// `follow` or `propose`.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Follow => "follow",
            Self::Propose => "propose",
        }
    }
}

/// How another repository is followed.
#[derive(Clone)]
pub struct Settings {
    /// Where it is.
    pub remote: Remote,
    /// The branch that is followed.
    pub branch: String,
    /// What happens to pushes.
    pub mode: Mode,
    /// Time between two fetches that nobody asked for.
    pub poll: Duration,
    /// What a forge signs its webhooks with; without it none is taken.
    pub webhook_secret: Option<String>,
}

impl std::fmt::Debug for Settings {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Settings")
            .field("remote", &self.remote)
            .field("branch", &self.branch)
            .field("mode", &self.mode)
            .finish_non_exhaustive()
    }
}

/// How the library stands to the one it follows.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Status {
    /// The commit of the branch that was fetched last.
    pub upstream: Option<String>,
    /// When it was fetched, in milliseconds since 1970; none before the first time.
    pub fetched_at: Option<i64>,
    /// Why the last fetch failed, or why what was fetched is not served.
    pub error: Option<String>,
    /// Error-level problems of the fetched commit, as lines, at most 20.
    pub problems: Vec<String>,
    /// Labels that were moved here and not there, when it was fetched, as lines, at most 100.
    pub label_moves: Vec<String>,
}

/// The repository that is followed.
#[derive(Debug)]
pub struct Upstream {
    settings: Settings,
    repository: Repository,
    registry: Arc<Registry>,
    status: Mutex<Status>,
    wanted: Notify,
}

/// Why nobody may publish here, and where to publish instead.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Closed {
    /// Whether proposals are taken all the same.
    pub takes_proposals: bool,
    /// The repository that is followed.
    pub url: String,
    /// The branch that is followed.
    pub branch: String,
}

impl Settings {
    /// What this means for a push.
    pub fn closed(&self) -> Closed {
        Closed {
            takes_proposals: self.mode == Mode::Propose,
            url: self.remote.url.clone(),
            branch: self.branch.clone(),
        }
    }
}

impl Closed {
    /// How what was moved here gets to the other repository.
    pub fn bring(&self) -> String {
        format!(
            "to bring it there, in a clone of this library: git fetch, then git push {} origin/main:{}",
            self.url, self.branch
        )
    }
}

/// Moves of labels that are told.
const LABELS_SHOWN: usize = 100;
/// Longest time for a proposal to get to the other repository.
const PUSH: Duration = Duration::from_mins(1);
/// Waits after failures grow up to this.
const LONGEST_WAIT: Duration = Duration::from_mins(10);

impl Upstream {
    /// Follows another repository with a registry's.
    pub fn new(settings: Settings, repository: Repository, registry: Arc<Registry>) -> Self {
        Self {
            settings,
            repository,
            registry,
            status: Mutex::default(),
            wanted: Notify::new(),
        }
    }

    /// How it is followed.
    pub fn settings(&self) -> &Settings {
        &self.settings
    }

    /// How the library stands to it.
    pub fn status(&self) -> Status {
        self.status
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .clone()
    }

    /// Labels that were moved here and are elsewhere, or not at all, in the other repository: one line each.
    pub fn label_moves(&self) -> Result<Vec<String>, GitError> {
        let (Some(main), Some(adopted)) = (
            self.repository.read_ref(MAIN)?,
            self.repository.read_ref(ADOPTED)?,
        ) else {
            return Ok(Vec::new());
        };
        if main == adopted {
            return Ok(Vec::new());
        }
        let here = adopt::labels_of(&self.repository, &main)?.unwrap_or_default();
        let there = adopt::labels_of(&self.repository, &adopted)?.unwrap_or_default();
        Ok(apart(&here, &there, LABELS_SHOWN))
    }

    /// Asks for a fetch soon; asked often before it begins, it is one.
    pub fn want(&self) {
        self.wanted.notify_one();
    }

    /// Fetches at once, on every hint, and by the clock, until it is cancelled.
    pub async fn follow(self: Arc<Self>, cancel: CancellationToken) {
        let mut failures: u32 = 0;
        loop {
            let synced = tokio::select! {
                () = cancel.cancelled() => return,
                synced = self.sync() => synced,
            };
            failures = if synced {
                0
            } else {
                failures.saturating_add(1)
            };
            let wait = self
                .settings
                .poll
                .saturating_mul(1 << failures.min(6))
                .min(LONGEST_WAIT.max(self.settings.poll));
            tokio::select! {
                () = cancel.cancelled() => return,
                () = self.wanted.notified() => {}
                () = tokio::time::sleep(wait) => {}
            }
        }
    }

    /// Fetches once, and serves what passes the check. Returns whether the fetch succeeded; the status says the rest.
    pub async fn sync(self: &Arc<Self>) -> bool {
        if let Err(error) = self.settings.remote.fetch(&self.repository).await {
            self.failed(format!("the last fetch failed: {error}"));
            return false;
        }
        let now = crate::clock::unix_millis();
        let upstream = self.clone();
        let adopted = tokio::task::spawn_blocking(move || {
            let adopted = adopt::adopt(
                &upstream.repository,
                &upstream.registry,
                &upstream.settings.branch,
            )?;
            if matches!(adopted, Adopted::Moved { .. }) {
                upstream.registry.refresh()?;
            }
            Ok::<_, adopt::AdoptError>(adopted)
        })
        .await;
        let adopted = match adopted {
            Ok(Ok(adopted)) => adopted,
            Ok(Err(error)) => {
                self.failed(format!("what was fetched could not be served: {error}"));
                return false;
            }
            Err(_) => {
                self.failed("what was fetched could not be served; the log says more".into());
                return false;
            }
        };
        let status = match adopted {
            Adopted::Nothing => Status {
                error: Some(format!(
                    "the repository that is followed has no branch {}; set upstream.branch",
                    self.settings.branch
                )),
                ..Status::default()
            },
            Adopted::Same(commit) => Status {
                upstream: Some(commit),
                ..Status::default()
            },
            Adopted::Moved {
                upstream,
                to,
                problems,
            } => {
                tracing::info!(%upstream, served = %to, "followed");
                Status {
                    error: (upstream != to).then(|| unclean(&upstream, Some(&to))),
                    upstream: Some(upstream),
                    problems,
                    ..Status::default()
                }
            }
            Adopted::Unclean { upstream, problems } => Status {
                error: Some(unclean(&upstream, None)),
                upstream: Some(upstream),
                problems,
                ..Status::default()
            },
            Adopted::Apart { upstream, own } => Status {
                error: Some(format!(
                    "main has {own} of its own that the repository that is followed does not have, so main is not moved; \
                     push them there, or, to give them up: git update-ref refs/heads/main {upstream} in library.git"
                )),
                upstream: Some(upstream),
                ..Status::default()
            },
        };
        self.set(Status {
            fetched_at: Some(now),
            label_moves: self.label_moves().unwrap_or_default(),
            ..status
        });
        true
    }

    fn failed(&self, error: String) {
        let before = self.status();
        self.set(Status {
            error: Some(error),
            ..before
        });
    }

    /// Said once in the log, however often it is tried again.
    fn set(&self, status: Status) {
        let mut current = self.status.lock().unwrap_or_else(PoisonError::into_inner);
        if current.error != status.error {
            match &status.error {
                Some(error) => tracing::error!(url = %self.settings.remote.url, "{error}"),
                None => {
                    tracing::info!(url = %self.settings.remote.url, "the library follows again");
                }
            }
            for problem in &status.problems {
                tracing::error!("{problem}");
            }
        }
        if current.label_moves != status.label_moves {
            let bring = self.settings.closed().bring();
            match status.label_moves.len() {
                0 => tracing::info!(
                    "the repository that is followed has all labels as they are here"
                ),
                moves => tracing::info!(
                    moves,
                    "labels were moved here that the repository that is followed does not have; {bring}"
                ),
            }
            for line in &status.label_moves {
                tracing::info!("labels.toml: {line}");
            }
        }
        *current = status;
    }

    /// Gives a commit of this repository to the other as a branch, which must be where it was left (`old`); what the other
    /// side said. What somebody has put there meanwhile is not overwritten.
    pub async fn propose(
        &self,
        commit: &str,
        branch: &str,
        old: Option<&str>,
    ) -> Result<Vec<String>, GitError> {
        // whoever pushes waits for it
        let remote = Remote {
            timeout: PUSH,
            ..self.settings.remote.clone()
        };
        let said = remote.push(&self.repository, commit, branch, old).await?;
        Ok(said
            .lines()
            .filter_map(|line| line.strip_prefix("remote:"))
            .map(|line| crate::prompt::visible::visible(line.trim()).into_owned())
            .filter(|line| !line.is_empty())
            .collect())
    }
}

fn unclean(upstream: &str, served: Option<&str>) -> String {
    let short = |id: &str| id.get(..7).unwrap_or(id).to_owned();
    let served = match served {
        Some(served) => format!(
            "the newest clean commit before it, {}, is served",
            short(served)
        ),
        None => "what was served before is".into(),
    };
    format!(
        "{} does not pass the check, so {served}; mend what `problems` lists there",
        short(upstream)
    )
}
