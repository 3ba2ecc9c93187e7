//! Commits that are checked before a ref points to them: what a push would publish, and what refuses it.
//!
//! A clean candidate is kept, so that the refresh that follows the push swaps it in without building it again.

use std::sync::{Arc, PoisonError};

use tokio_util::sync::CancellationToken;

use crate::catalog::{Catalog, Update, examples};
use crate::git::{Repository, read_again};
use crate::prompt::{Problem, Prompt};

use super::{OpenError, Registry};

/// Candidates that are kept.
pub(super) const KEPT_CANDIDATES: usize = 4;

/// What a commit would do if main pointed to it, against what is served now.
#[derive(Debug, Clone, Default)]
pub struct Checked {
    /// Every error, and the warnings of what the commit changes, by path and line.
    pub problems: Vec<Problem>,
    /// Errors among them; one is enough to refuse.
    pub errors: usize,
    /// Prompts that would come, move or change (a partial's edit changes all that include it), by name.
    pub published: Vec<PublishedPrompt>,
    /// Names that would be gone, sorted.
    pub removed: Vec<Arc<str>>,
    /// Resources that would come, go or change.
    pub resources_changed: usize,
}

/// Somebody who does not see the whole library, and what they change.
pub struct Viewer<'a> {
    /// Whether they see a path.
    pub sees: &'a dyn Fn(&str) -> bool,
    /// The prompts that they change, path and text.
    pub prompts: Vec<(String, String)>,
}

impl Checked {
    /// Takes what a prompt binds and its author does not see for what is not there: examples are rendered with the whole
    /// library, so what they expect of a resource would tell what it says.
    fn see(&mut self, catalog: &Catalog, viewer: &Viewer<'_>) {
        // what a prompt includes is a part of it
        let seen = catalog.seen(|path| path.starts_with("partials/") || (viewer.sees)(path));
        for (path, text) in &viewer.prompts {
            let unmet = seen.unmet(path, text, viewer.sees);
            if unmet.is_empty() {
                continue;
            }
            self.problems.retain(|problem| {
                *problem.path != **path || !examples::tells_of_resources(problem)
            });
            self.problems.extend(unmet);
            self.published.retain(|prompt| prompt.path() != *path);
        }
        self.errors = self.problems.iter().filter(|p| p.is_error()).count();
    }

    /// Whether nothing refuses it.
    pub fn is_clean(&self) -> bool {
        self.errors == 0
    }

    /// Whether it was not checked to its end, since its renders cost more than those of one check may.
    pub fn is_over_budget(&self) -> bool {
        self.problems
            .iter()
            .any(|problem| problem.code == examples::OVER_BUDGET)
    }
}

/// A prompt that a commit publishes.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PublishedPrompt {
    /// Its name.
    pub name: Arc<str>,
    /// Its folder, e.g. `sre`; empty at the top.
    pub folder: Arc<str>,
    /// How many arguments it takes.
    pub arguments: usize,
    /// What happens to it.
    pub kind: PublishedKind,
}

impl PublishedPrompt {
    /// Its path, e.g. `prompts/sre/triage.md`.
    pub fn path(&self) -> String {
        let slash = if self.folder.is_empty() { "" } else { "/" };
        format!("prompts/{}{slash}{}.md", self.folder, self.name)
    }
}

/// What a commit does to a prompt.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum PublishedKind {
    /// It is new.
    Added,
    /// Its text, a partial it includes or its front matter is another.
    Changed,
    /// Its file has moved: another folder, or the same bytes under another name. Its text may differ as well.
    Moved {
        /// The path it had, e.g. `prompts/sre/triage.md`.
        from: Arc<str>,
    },
}

/// A commit that passed the check, ready to be served.
#[derive(Debug)]
pub(super) struct Candidate {
    /// Made from the catalog of generation `base`.
    update: Update,
    base: u64,
}

impl Registry {
    /// Checks a commit as if main pointed to it, and says what it would publish. Blocks for as long as the commit's
    /// changes take to read; several may run at once, and none waits for a refresh.
    ///
    /// `repository` is where the commit's objects are: the library's own, or one with a push's quarantine
    /// ([`Repository::with_objects`]). When `cancel` is, it ends soon, with an error.
    pub fn check(
        &self,
        repository: &Repository,
        commit: &str,
        cancel: &CancellationToken,
    ) -> Result<Checked, OpenError> {
        self.check_for(repository, commit, None, cancel)
    }

    /// The same as it is told to somebody who does not see the whole library.
    pub fn check_for(
        &self,
        repository: &Repository,
        commit: &str,
        viewer: Option<&Viewer<'_>>,
        cancel: &CancellationToken,
    ) -> Result<Checked, OpenError> {
        let (candidate, checked) = self.examined(repository, commit, viewer, cancel)?;
        if let Some(candidate) = candidate {
            self.candidates
                .lock()
                .unwrap_or_else(PoisonError::into_inner)
                .put(commit.to_owned(), candidate);
        }
        Ok(checked)
    }

    /// The same for who only looks: it takes no place among the candidates, which are few and are kept for pushes.
    pub fn look(
        &self,
        repository: &Repository,
        commit: &str,
        cancel: &CancellationToken,
    ) -> Result<Checked, OpenError> {
        Ok(self.examined(repository, commit, None, cancel)?.1)
    }

    /// What the check finds, and the candidate where it is clean.
    fn examined(
        &self,
        repository: &Repository,
        commit: &str,
        viewer: Option<&Viewer<'_>>,
        cancel: &CancellationToken,
    ) -> Result<(Option<Candidate>, Checked), OpenError> {
        let base = self.snapshot();
        let kept = || {
            self.over_budget
                .lock()
                .unwrap_or_else(PoisonError::into_inner)
        };
        let key = (commit.to_owned(), base.generation);
        let known = kept().get(&key).cloned();
        if let Some(mut checked) = known {
            if viewer.is_some() {
                // that it costs too much is all that is sure to tell nothing else
                checked.problems.retain(|problem| {
                    problem.code == examples::OVER_BUDGET || !examples::tells_of_resources(problem)
                });
                checked.published.clear();
                checked.errors = checked.problems.iter().filter(|p| p.is_error()).count();
            }
            return Ok((None, checked));
        }
        let check = self.renderer().check(cancel.clone());
        let (update, checked) = read_again(OpenError::git, || {
            let update = self.build_commit(repository, commit, Some(&base.latest), &check)?;
            let mut checked = checked(&update);
            if checked.is_over_budget() {
                // whoever asks again, as a poll does, is told the same for nothing
                kept().put(key.clone(), checked.clone());
            }
            if let Some(viewer) = viewer {
                checked.see(&update.catalog, viewer);
            }
            if checked.is_clean() {
                let found = self.label_problems(repository, commit, &update.catalog, &check)?;
                checked.errors += found.len();
                checked.problems.extend(found);
            }
            Ok((update, checked))
        })?;
        let candidate = checked.is_clean().then_some(Candidate {
            update,
            base: base.generation,
        });
        Ok((candidate, checked))
    }

    /// The catalog that a commit would be, and what differs from the one that is given with it, which is of what main
    /// says now. Blocks, as the check does.
    pub fn would_be(
        &self,
        repository: &Repository,
        commit: &str,
        cancel: &CancellationToken,
    ) -> Result<(Arc<Catalog>, Update), OpenError> {
        let base = self.snapshot().latest.clone();
        let check = self.renderer().check(cancel.clone());
        let update = read_again(OpenError::git, || {
            self.build_commit(repository, commit, Some(&base), &check)
        })?;
        Ok((base, update))
    }

    /// Whether a commit passed the check and is not served yet.
    pub fn has_candidate(&self, commit: &str) -> bool {
        self.candidates
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .contains(commit)
    }

    /// The kept candidate of a commit, if what it was made from is what is served; it is given once. Where something was
    /// published in between, making it again from that costs no more than the check did.
    pub(super) fn candidate(&self, commit: &str, served: u64) -> Option<Update> {
        self.candidates
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .pop(commit)
            .filter(|candidate| candidate.base == served)
            .map(|candidate| candidate.update)
    }
}

fn checked(update: &Update) -> Checked {
    let difference = &update.difference;
    let mut out = Checked {
        resources_changed: difference.resources.len(),
        ..Checked::default()
    };
    let gone: Vec<&Arc<Prompt>> = difference
        .prompts
        .values()
        .filter(|changed| changed.after.is_none())
        .filter_map(|changed| changed.before.as_ref())
        .collect();
    for (name, changed) in &difference.prompts {
        let Some(prompt) = &changed.after else {
            out.removed.push(name.clone());
            continue;
        };
        let moved_from = match &changed.before {
            Some(before) => Some(before).filter(|before| before.path != prompt.path),
            None => gone
                .iter()
                .copied()
                .find(|before| before.sha256 == prompt.sha256),
        };
        out.published.push(PublishedPrompt {
            name: name.clone(),
            folder: prompt.folder.clone(),
            arguments: prompt.arguments.len(),
            kind: match (moved_from, &changed.before) {
                (Some(before), _) => PublishedKind::Moved {
                    from: before.path.clone(),
                },
                (None, Some(_)) => PublishedKind::Changed,
                (None, None) => PublishedKind::Added,
            },
        });
    }
    out.problems = update.problems();
    out.errors = out.problems.iter().filter(|p| p.is_error()).count();
    out
}
