//! `name@v3`, labels, and what a library serves that serves a label: prompts as earlier commits have them, in the served
//! library.

use std::collections::{BTreeMap, HashMap};
use std::sync::{Arc, PoisonError};
use std::time::{Duration, Instant};

use serde::Serialize;
use tokio_util::sync::CancellationToken;
use utoipa::ToSchema;

use crate::catalog::versioned::Files;
use crate::catalog::{Catalog, Difference};
use crate::git::{Blobs, GitError, Repository, read_again};
use crate::history::{Facts, History, Version};
use crate::prompt::parse::{file_name, hex};
use crate::prompt::{Problem, Prompt};
use crate::workers::Check;

use super::check::run;
use super::numbering::Numbering;
use super::revisions::AtError;
use super::source::Library;
use super::{OpenError, Registry, Snapshot};

/// Time between two attempts to count, when one fails.
const AGAIN: Duration = Duration::from_secs(15);
/// Partials that are read for one version at most; no check passes more.
const MAX_PARTIALS: usize = 1024;

/// A catalog that may be served: with its versions, and with the prompts that its labels put in place of the newest.
pub(super) struct Ready {
    /// As the commit has it.
    pub(super) latest: Arc<Catalog>,
    /// As it is served.
    pub(super) catalog: Arc<Catalog>,
    pub(super) numbering: Option<Numbering>,
    /// Against what was served before.
    pub(super) difference: Difference,
    /// What keeps its labels from being served.
    pub(super) problems: Vec<Problem>,
}

impl Ready {
    pub(super) fn is_clean(&self) -> bool {
        self.latest.is_clean() && self.problems.is_empty()
    }
}

/// Prompts that a label put in the place of the newest, by name, with what they were made of.
pub(super) type Labelled = BTreeMap<Arc<str>, (Version, Arc<str>, Arc<Prompt>)>;

/// A version of a prompt in the served library.
#[derive(Debug, Clone)]
pub struct Versioned {
    /// The prompt, under its name and folder of today.
    pub prompt: Arc<Prompt>,
    /// Its number.
    pub number: u64,
    /// The commit it is of, and where it was.
    pub version: Version,
}

/// Versions that were read for a generation, by name and number.
pub(super) type ReadVersions = lru::LruCache<(u64, Arc<str>, u64), Versioned>;

/// The numbers of prompts at other commits, by commit and name.
pub(super) type NumbersAt = lru::LruCache<(Arc<str>, Arc<str>), u64>;

/// A label on a prompt.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, ToSchema)]
#[schema(as = PromptLabel)]
pub struct Label {
    /// Its name.
    pub name: String,
    /// The version it is on.
    pub version: u64,
}

impl Snapshot {
    /// Every label on each prompt, sorted; one on a version that was where `sees` says no to is left out.
    pub fn labels(&self, sees: impl Fn(&str) -> bool) -> HashMap<&str, Vec<Label>> {
        let mut out: HashMap<&str, Vec<Label>> = HashMap::new();
        for (label, prompt, version) in self.latest.labels() {
            let history = self.history.as_deref();
            let of = history.and_then(|history| history.version(prompt, version));
            if of.is_none_or(|of| sees(&of.path)) {
                out.entry(prompt).or_default().push(Label {
                    name: label.to_owned(),
                    version,
                });
            }
        }
        out
    }

    /// The version of a prompt that is served by default: its label's or its newest; none while that is not known.
    pub fn served_version(&self, name: &str) -> Option<(u64, &Version)> {
        let history = self.history.as_deref()?;
        let labelled = self
            .latest
            .serves()
            .and_then(|(label, _)| self.latest.label(label, name));
        let number = labelled.or_else(|| history.latest(name))?;
        Some((number, history.version(name, number)?))
    }

    /// The newest version of a prompt; none while that is not known.
    pub fn latest_version(&self, name: &str) -> Option<u64> {
        self.history.as_deref()?.latest(name)
    }
}

/// Whether main goes on from where versions were counted to.
pub(super) fn goes_on_from(library: &Library, history: &History) -> bool {
    let (Some(repository), Some(counted)) = (library.repository(), history.tip()) else {
        return false;
    };
    let tip = repository.main_tip().ok().flatten();
    tip.is_some_and(|tip| repository.reachable(&hex(&counted), &tip).is_ok())
}

impl Registry {
    /// How far the count of all versions has come, while there is one.
    pub fn counting(&self) -> Option<(u64, u64)> {
        let snapshot = self.snapshot();
        let counts = snapshot.history.is_none() && snapshot.status.served.is_some();
        counts.then(|| self.progress.get())
    }

    /// Why the versions could not be counted the last time.
    pub fn counting_error(&self) -> Option<String> {
        self.counting_error
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .clone()
    }

    /// Counts versions in the background whenever they are not known, until it is cancelled.
    pub async fn keep_counted(self: Arc<Self>, cancel: CancellationToken) {
        let mut generations = self.subscribe();
        loop {
            generations.mark_unchanged();
            let registry = self.clone();
            let mut counting = tokio::task::spawn_blocking(move || registry.count());
            let done = tokio::select! {
                done = &mut counting => done,
                () = cancel.cancelled() => {
                    self.progress.stop();
                    let _ = counting.await;
                    return;
                }
            };
            let error = match done {
                Ok(Ok(())) => None,
                Ok(Err(error)) => Some(error.to_string()),
                Err(error) => Some(error.to_string()),
            };
            if let Some(error) = &error {
                tracing::error!(%error, "the versions of the prompts could not be counted");
            }
            let again = error.is_some();
            *self
                .counting_error
                .lock()
                .unwrap_or_else(PoisonError::into_inner) = error;
            tokio::select! {
                () = cancel.cancelled() => return,
                changed = generations.changed() => if changed.is_err() { return },
                () = tokio::time::sleep(AGAIN), if again => {}
            }
        }
    }

    /// Counts the versions of what is served, unless they are known, and puts them beside it. Blocks.
    pub fn count(&self) -> Result<(), GitError> {
        let Some(repository) = self.library.repository() else {
            return Ok(());
        };
        loop {
            let snapshot = self.snapshot();
            let Some(served) = snapshot.status.served.clone() else {
                return Ok(());
            };
            if snapshot.history.is_some() {
                let mut numbering = self.numbering();
                return match numbering.as_mut() {
                    Some(numbering) => numbering.prepare(repository),
                    None => Ok(()),
                };
            }
            let numbering = self.number_all(repository, &served)?;
            // what is served may have moved on meanwhile
            let _refreshing = self
                .refreshing
                .lock()
                .unwrap_or_else(PoisonError::into_inner);
            let now = self.snapshot();
            let mut numbering = numbering;
            if let Some(commit) = now.status.served.as_deref()
                && now.history.is_none()
                && numbering.advance(repository, commit)?
            {
                self.put_beside(&now, numbering);
                return Ok(());
            }
        }
    }

    /// Puts versions beside what is served.
    fn put_beside(&self, now: &Snapshot, numbering: Numbering) {
        let history = Some(numbering.history.clone());
        *self.numbering() = Some(numbering);
        self.current.store(Arc::new(Snapshot {
            history,
            ..now.clone()
        }));
        // the same generation: who waits for versions looks again, and a stream finds nothing to tell
        self.generation.send_replace(now.generation);
    }

    /// Forgets the versions, counts them from the first commit and puts them beside what is served. Blocks.
    pub fn recount(&self) -> Result<(), GitError> {
        {
            let _refreshing = self
                .refreshing
                .lock()
                .unwrap_or_else(PoisonError::into_inner);
            let now = self.snapshot();
            // a label that is served is not served without them
            if now.latest.serves().is_none() {
                *self.numbering() = None;
                self.current.store(Arc::new(Snapshot {
                    history: None,
                    ..(*now).clone()
                }));
                // should this count fail, the one in the background goes on
                self.generation.send_replace(now.generation);
            }
        }
        self.count()
    }

    fn number_all(&self, repository: &Repository, commit: &str) -> Result<Numbering, GitError> {
        let started = Instant::now();
        tracing::info!(%commit, "numbering the versions of the prompts");
        let made = read_again(GitError::git, || {
            Numbering::cold(repository, commit, &self.progress)
        })?;
        tracing::info!(
            prompts = made.history.len(),
            versions = made.history.versions(),
            elapsed_ms = super::millis(started),
            "versions are numbered"
        );
        Ok(made)
    }

    pub(super) fn numbering(&self) -> std::sync::MutexGuard<'_, Option<Numbering>> {
        self.numbering
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
    }

    /// The versions up to a commit: from those that are known, or, when they must be there, from the first commit.
    /// What is known stays as it is until the commit is served.
    pub(super) fn numbered(
        &self,
        repository: &Repository,
        commit: &str,
        must: bool,
    ) -> Result<Option<Numbering>, GitError> {
        let known = {
            let mut numbering = self.numbering();
            match numbering.as_mut() {
                Some(numbering) => {
                    numbering.prepare(repository)?;
                    Some(numbering.clone())
                }
                None => None,
            }
        };
        if let Some(mut numbering) = known
            && numbering.advance(repository, commit)?
        {
            return Ok(Some(numbering));
        }
        if must {
            return self.number_all(repository, commit).map(Some);
        }
        Ok(None)
    }

    /// Numbers a catalog and puts its labels in force, ready to be swapped in.
    pub(super) fn ready(
        &self,
        repository: &Repository,
        commit: &str,
        latest: Catalog,
        difference: Option<Difference>,
        old: &Snapshot,
        check: &Check<'_>,
    ) -> Result<Ready, OpenError> {
        let latest = Arc::new(latest);
        let serves_label = latest.serves().is_some();
        let numbering = match self.numbered(repository, commit, serves_label) {
            Ok(numbering) => numbering,
            // versions are no reason to serve nothing new
            Err(error) if !serves_label => {
                tracing::error!(%error, "the versions could not be counted on");
                None
            }
            Err(error) => return Err(error.into()),
        };
        let mut problems = Vec::new();
        let mut catalog = latest.clone();
        if let Some(numbering) = &numbering
            && serves_label
        {
            let history = &numbering.history;
            problems = latest.check_label_versions(|name| history.latest(name).unwrap_or(0));
            let labels = self.labelled_view(repository, &latest, history, check, &mut problems)?;
            catalog = Arc::new(labels);
        }
        let is_plain = Arc::ptr_eq(&catalog, &latest) && Arc::ptr_eq(&old.catalog, &old.latest);
        let difference = match difference {
            Some(difference) if is_plain => difference,
            _ => Difference::between(&old.catalog, &catalog),
        };
        Ok(Ready {
            latest,
            catalog,
            numbering,
            difference,
            problems,
        })
    }

    /// Problems of a commit's labels that its catalog alone does not know: versions that do not exist, and, where a label
    /// is served, versions that do not pass.
    pub(super) fn label_problems(
        &self,
        repository: &Repository,
        commit: &str,
        latest: &Catalog,
        check: &Check<'_>,
    ) -> Result<Vec<Problem>, OpenError> {
        let serves_label = latest.serves().is_some();
        if latest.labels().next().is_none() {
            return Ok(Vec::new());
        }
        let Some(numbering) = self.numbered(repository, commit, serves_label)? else {
            return Ok(Vec::new());
        };
        let history = &numbering.history;
        let mut problems = latest.check_label_versions(|name| history.latest(name).unwrap_or(0));
        if serves_label {
            self.labelled_view(repository, latest, history, check, &mut problems)?;
        }
        Ok(problems)
    }

    /// The catalog with the versions in it that its label is on.
    fn labelled_view(
        &self,
        repository: &Repository,
        latest: &Catalog,
        history: &History,
        check: &Check<'_>,
        problems: &mut Vec<Problem>,
    ) -> Result<Catalog, OpenError> {
        let Some((label, hide)) = latest.serves() else {
            return Ok(latest.clone());
        };
        let blobs = repository.blobs()?;
        let surroundings = latest.surroundings();
        let kept = self
            .labelled
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .clone();
        let mut labelled = Labelled::new();
        let mut others: HashMap<Arc<str>, Option<Arc<Prompt>>> = HashMap::new();
        for prompt in latest.list(None) {
            let name: Arc<str> = prompt.name.as_str().into();
            let Some(number) = latest.label(label, &name) else {
                if hide {
                    others.insert(name, None);
                }
                continue;
            };
            if history.latest(&name) == Some(number) {
                continue;
            }
            // that there is none is a problem already
            let Some(version) = history.version(&name, number) else {
                continue;
            };
            if let Some((of, around, known)) = kept.get(&name)
                && of == version
                && *around == surroundings
                && known.path == prompt.path
            {
                others.insert(name.clone(), Some(known.clone()));
                labelled.insert(name, (version.clone(), around.clone(), known.clone()));
                continue;
            }
            match read_version(&blobs, latest, &prompt.path, version, check)? {
                Ok(made) => {
                    let entry = (version.clone(), surroundings.clone(), made.clone());
                    labelled.insert(name.clone(), entry);
                    others.insert(name, Some(made));
                }
                Err(found) => {
                    if let Some(first) = found.first() {
                        problems.push(latest.label_fails(label, &name, first));
                    }
                }
            }
        }
        *self.labelled.lock().unwrap_or_else(PoisonError::into_inner) = labelled;
        Ok(latest.with_prompts(others))
    }

    /// The version that a prompt is at a commit; none where that is not known. Read off the async threads, and kept.
    pub async fn version_at(
        self: &Arc<Self>,
        snapshot: &Arc<Snapshot>,
        name: &str,
        commit: &Arc<str>,
        path: &Arc<str>,
    ) -> Option<u64> {
        let history = snapshot.history.clone()?;
        let key = (commit.clone(), Arc::from(name));
        let known = self
            .versions_at
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .get(&key)
            .copied();
        if known.is_some() {
            return known;
        }
        let _permit = self.reading().await.ok()?;
        let (registry, commit, path) = (self.clone(), commit.clone(), path.clone());
        let read = tokio::task::spawn_blocking(move || {
            let repository = registry.library.repository()?;
            let found = version_at(repository, &history, &key.1, &commit, &path);
            let number = found
                .inspect_err(|error| tracing::error!(%error, "a version could not be found"))
                .ok()??;
            registry
                .versions_at
                .lock()
                .unwrap_or_else(PoisonError::into_inner)
                .put(key, number);
            Some(number)
        });
        read.await.ok()?
    }

    /// A version of a prompt that is served: its file and partials as its commit has them, the rest as it is served
    /// now. Read off the async threads, and kept for as long as nothing is published.
    pub async fn version(
        self: &Arc<Self>,
        snapshot: &Arc<Snapshot>,
        name: &str,
        number: u64,
    ) -> Result<Versioned, AtError> {
        let Some(history) = &snapshot.history else {
            return Err(match self.counting() {
                Some((done, total)) => AtError::Counting { done, total },
                None => AtError::NotNumbered,
            });
        };
        let Some(prompt) = snapshot.latest.prompt(name) else {
            return Err(AtError::NoVersion {
                name: name.into(),
                number,
                latest: 0,
            });
        };
        let Some(version) = history.version(name, number) else {
            return Err(AtError::NoVersion {
                name: name.into(),
                number,
                latest: history.latest(name).unwrap_or(0),
            });
        };
        if history.latest(name) == Some(number) {
            return Ok(Versioned {
                prompt: prompt.clone(),
                number,
                version: version.clone(),
            });
        }
        let key = (snapshot.generation, Arc::from(name), number);
        let known = self
            .versions
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .get(&key)
            .cloned();
        if let Some(known) = known {
            return Ok(known);
        }
        let _permit = self.reading().await?;
        let (registry, version) = (self.clone(), version.clone());
        let (catalog, path) = (snapshot.latest.clone(), prompt.path.clone());
        let shown = format!("{name} v{number}");
        let read = tokio::task::spawn_blocking(move || {
            let repository = registry.library.repository().ok_or(AtError::NotNumbered)?;
            let unreadable = |error: GitError| {
                tracing::error!(%error, "a version could not be read");
                AtError::Io
            };
            let check = registry.renderer().check(CancellationToken::new());
            let read = read_again(GitError::git, || {
                read_version(&repository.blobs()?, &catalog, &path, &version, &check)
            })
            .map_err(unreadable)?;
            match read {
                Ok(prompt) => {
                    let made = Versioned {
                        prompt,
                        number,
                        version,
                    };
                    registry
                        .versions
                        .lock()
                        .unwrap_or_else(PoisonError::into_inner)
                        .put(key, made.clone());
                    Ok(made)
                }
                Err(problems) => Err(AtError::UncleanVersion {
                    version: shown,
                    first: problems
                        .first()
                        .map_or_else(|| "it cannot be read".to_owned(), Problem::one_line),
                }),
            }
        });
        read.await.map_err(|_| AtError::Io)?
    }
}

/// A version's files in a library, checked as today.
fn read_version(
    blobs: &Blobs,
    catalog: &Catalog,
    path: &Arc<str>,
    version: &Version,
    check: &Check<'_>,
) -> Result<Result<Arc<Prompt>, Vec<Problem>>, GitError> {
    let files = version_files(blobs, version)?;
    Ok(catalog.versioned(path, &files, &run(check)))
}

/// Blobs of a prompt and of the partials it reaches, with their bytes.
struct Blob {
    id: [u8; 20],
    bytes: Vec<u8>,
}

/// Partials by name, with their paths.
type Reached = BTreeMap<Arc<str>, (Arc<str>, Blob)>;

/// A prompt's file in a commit and the partials that it reaches there, by name with their paths; none where there is no
/// such file.
fn closure(blobs: &Blobs, commit: &str, path: &str) -> Result<Option<(Blob, Reached)>, GitError> {
    let Some(id) = blobs.file(commit, path)? else {
        return Ok(None);
    };
    let bytes = blobs.read(id)?;
    let mut todo: Vec<Arc<str>> = Facts::of_prompt(&bytes).includes.to_vec();
    let prompt = Blob { id, bytes };
    let mut partials = Reached::new();
    if todo.is_empty() {
        return Ok(Some((prompt, partials)));
    }
    let mut known: HashMap<Arc<str>, (Arc<str>, [u8; 20])> = HashMap::new();
    for entry in blobs.folder(commit, "partials")? {
        if let Ok(path) = String::from_utf8(entry.path) {
            let name: Arc<str> = file_name(&path, "partials/").into();
            known.entry(name).or_insert((path.into(), entry.id));
        }
    }
    while let Some(name) = todo.pop() {
        if partials.len() >= MAX_PARTIALS || partials.contains_key(&name) {
            continue;
        }
        if let Some((path, id)) = known.get(&name) {
            let bytes = blobs.read(*id)?;
            todo.extend(Facts::of_partial(&bytes).includes.iter().cloned());
            partials.insert(name, (path.clone(), Blob { id: *id, bytes }));
        }
    }
    Ok(Some((prompt, partials)))
}

/// The files of a version, as its commit has them.
pub fn version_files(blobs: &Blobs, version: &Version) -> Result<Files, GitError> {
    let commit = hex(&version.commit.id);
    let Some((prompt, partials)) = closure(blobs, &commit, &version.path)? else {
        return Ok(Files::default());
    };
    Ok(Files {
        prompt: prompt.bytes,
        partials: partials
            .into_values()
            .map(|(path, blob)| (path, blob.bytes))
            .collect(),
    })
}

/// The version that a prompt is at a commit: of those with the same content the newest that the commit has.
fn version_at(
    repository: &Repository,
    history: &History,
    name: &str,
    commit: &str,
    path: &str,
) -> Result<Option<u64>, GitError> {
    let Some(numbered) = history.of(name) else {
        return Ok(None);
    };
    let Some((prompt, partials)) = closure(&repository.blobs()?, commit, path)? else {
        return Ok(None);
    };
    let partials = partials
        .iter()
        .map(|(name, (_, blob))| (&**name, blob.id))
        .collect();
    let content = crate::history::content(prompt.id, &partials);
    let mut newest_first = numbered.versions.iter().enumerate().rev();
    Ok(newest_first
        .find(|(_, version)| {
            version.content == content
                && repository.reachable(&version.commit.hex(), commit).is_ok()
        })
        .map(|(index, _)| index as u64 + 1))
}
