//! What an actor may change: every path of every commit that comes to main, or is proposed, is asked of the permissions.
//!
//! Every commit, and not the last alone: versions count along main, and each commit of it can be asked for.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use crate::access::{Action, Actor};
use crate::catalog::Catalog;
use crate::catalog::library::library;
use crate::catalog::relabel::{LABELS, said};
use crate::git::history::{Beyond, NOTHING};
use crate::git::{Blobs, GitError, Repository};
use crate::prompt::Problem;
use crate::prompt::source::Source;
use crate::prompt::visible::visible;
use crate::registry::candidate::Checked;

use super::rules::Kind;
use super::wire::Update;

/// The file of the policy.
pub(super) const POLICY: &str = "cuebook.toml";
/// Commits of one push; each is looked at.
const COMMITS: usize = 10_000;
/// Paths that are named.
const SHOWN: usize = 20;
/// Largest `labels.toml` or `cuebook.toml` that is read, in bytes; a larger one says nothing that can be trusted.
const MAX_FILE: u64 = 4 * 1024 * 1024;

/// What somebody would have to be allowed, by path; a label's name beside the action that moves it.
type Needs = BTreeMap<String, BTreeSet<(Action, String)>>;

/// Why an actor may not move a ref so, one line for each path; empty where they may.
pub(super) fn refused(
    repository: &Repository,
    actor: &Actor,
    here: bool,
    update: &Update,
    kind: &Kind,
) -> Result<Vec<String>, GitError> {
    if actor.may(Action::Administer, "") {
        return Ok(Vec::new());
    }
    let needs = match kind {
        Kind::Main => {
            let base = Some(&*update.old).filter(|old| *old != NOTHING);
            let Some(mut needs) = changed(repository, &update.new, base, Action::Publish)? else {
                return Ok(vec![too_many()]);
            };
            if let Some(paths) = needs.paths.remove(LABELS) {
                labels(repository, base, &needs.labelled, &mut needs.paths)?;
                // only its words were changed
                needs.paths.entry(LABELS.into()).or_insert(paths);
            }
            if needs.paths.contains_key(POLICY) {
                needs.paths.insert(
                    POLICY.into(),
                    [(Action::ChangePolicy, String::new())].into(),
                );
            }
            needs.paths
        }
        Kind::Propose(_) => {
            let main = repository.main_tip()?;
            match changed(repository, &update.new, main.as_deref(), Action::Propose)? {
                Some(needs) => needs.paths,
                None => return Ok(vec![too_many()]),
            }
        }
        Kind::Branch { .. } | Kind::Tag | Kind::Reserved | Kind::Unknown => {
            if actor.may(Action::Publish, "") {
                return Ok(Vec::new());
            }
            return Ok(vec![format!(
                "{}: branches and tags are kept for who may publish the whole library; you may propose: git push origin \
                 HEAD:refs/for/main",
                visible(&update.name)
            )]);
        }
    };
    let mut lines: Vec<String> = needs
        .iter()
        .flat_map(|(path, needs)| {
            needs
                .iter()
                .map(move |(action, label)| (path, *action, label))
        })
        .filter(|(path, action, _)| !actor.may(*action, path))
        .map(|(path, action, label)| line(actor, here, path, action, label))
        .collect();
    if lines.len() > SHOWN {
        let more = lines.len() - SHOWN;
        lines.truncate(SHOWN);
        lines.push(format!("and {more} more"));
    }
    Ok(lines)
}

/// Why an actor may not change a file on main; none where they may. What a label needs is asked when it is known which.
pub fn refused_path(actor: &Actor, path: &str) -> Option<String> {
    let action = match path {
        LABELS => Action::MoveLabel,
        POLICY => Action::ChangePolicy,
        _ => Action::Publish,
    };
    (!actor.may(action, path)).then(|| line(actor, true, path, action, ""))
}

/// Partials that a change would show to somebody who may not read them, since a prompt shows what it includes: problems as
/// if they were not there. Each commit beyond `base` is looked at, as each can be asked for. What a file has included before,
/// where the commit parted from `base` or in `base` itself, may stay.
pub(super) fn shown_unread(
    actor: &Actor,
    catalog: &Catalog,
    repository: &Repository,
    base: Option<&str>,
    tip: &str,
) -> Result<Vec<Problem>, GitError> {
    let Some(base) = base.filter(|base| *base != NOTHING && !actor.sees_all()) else {
        return Ok(Vec::new());
    };
    let seen = catalog.seen(|path| actor.may(Action::Read, path));
    let blobs = repository.blobs()?;
    let read = |commit: &str, path: &str| read(&blobs, commit, path);
    let missing = |path: &str, text: &str, partials: &BTreeMap<String, String>| {
        let mut problems = seen.draft(path, text, partials).problems;
        problems.retain(|problem| problem.code == "include-missing");
        problems
    };
    let mut out: Vec<Problem> = Vec::new();
    for commit in repository.commits_beyond(tip, Some(base), COMMITS)? {
        let own = changed_by(repository, &blobs, &commit)?;
        let shows = |path: &String| path.starts_with("partials/") || path.starts_with("prompts/");
        if !own.iter().any(shows) {
            continue;
        }
        let fork = repository.merge_base(&commit.id, base)?;
        let fork = fork.unwrap_or_else(|| base.to_owned());
        let changed = between(&blobs, &fork, &commit.id)?;
        let mut partials = BTreeMap::new();
        for path in changed.iter().filter(|path| path.starts_with("partials/")) {
            if let Some(text) = read(&commit.id, path)? {
                partials.insert(path.clone(), text);
            }
        }
        let mut before = Vec::new();
        for place in [&*fork, base] {
            let mut earlier = BTreeMap::new();
            for path in partials.keys() {
                if let Some(text) = read(place, path)? {
                    earlier.insert(path.clone(), text);
                }
            }
            before.push((place, earlier));
        }
        for path in changed.intersection(&own).filter(|path| shows(path)) {
            let include = path
                .strip_prefix("partials/")
                .map(|name| format!("{{% include \"{name}\" %}}\n"));
            let file = if include.is_some() {
                "prompts/x.md"
            } else {
                path.as_str()
            };
            let text = |commit: &str| match &include {
                Some(text) => Ok(Some(text.clone())),
                None => read(commit, path),
            };
            let Some(after) = text(&commit.id)? else {
                continue;
            };
            let mut known = BTreeSet::new();
            for (place, earlier) in &before {
                if let Some(text) = text(place)? {
                    let found = missing(file, &text, earlier).into_iter();
                    known.extend(found.map(|problem| problem.message));
                }
            }
            for problem in missing(file, &after, &partials) {
                let told = |other: &Problem| {
                    other.path == problem.path && other.message == problem.message
                };
                if !known.contains(&problem.message) && !out.iter().any(told) {
                    out.push(problem);
                }
            }
        }
    }
    Ok(out)
}

/// The prompts that a commit changes since it parted from `base`, path and text.
pub(super) fn changed_prompts(
    repository: &Repository,
    base: Option<&str>,
    tip: &str,
) -> Result<Vec<(String, String)>, GitError> {
    let blobs = repository.blobs()?;
    let paths: BTreeSet<String> = if let Some(base) = base.filter(|base| *base != NOTHING) {
        let fork = repository.merge_base(tip, base)?;
        between(&blobs, fork.as_deref().unwrap_or(base), tip)?
    } else {
        let files = repository.tree(tip)?;
        files.into_iter().map(|entry| text(&entry.path)).collect()
    };
    let mut out = Vec::new();
    for path in paths
        .into_iter()
        .filter(|path| path.starts_with("prompts/"))
    {
        if let Some(text) = read(&blobs, tip, &path)? {
            out.push((path, text));
        }
    }
    Ok(out)
}

/// A text of a commit; none where there is none, or where it is too large.
fn read(blobs: &Blobs, commit: &str, path: &str) -> Result<Option<String>, GitError> {
    match blobs.file(commit, path)? {
        Some(id) if blobs.size(id)? <= MAX_FILE => Ok(String::from_utf8(blobs.read(id)?).ok()),
        _ => Ok(None),
    }
}

/// What a check found, without what an actor does not see.
pub(super) fn seen_by(actor: &Actor, checked: &Arc<Checked>) -> Arc<Checked> {
    if actor.sees_all() {
        return checked.clone();
    }
    let mut seen = (**checked).clone();
    let problems = seen.problems.iter();
    seen.problems = problems
        .filter(|problem| actor.may(Action::Read, &problem.path))
        .map(|problem| seen_problem(actor, problem))
        .collect();
    seen.published
        .retain(|prompt| actor.may(Action::Read, &prompt.path()));
    // where they were is not said
    seen.removed.clear();
    seen.resources_changed = 0;
    Arc::new(seen)
}

/// A problem without the paths of others that an actor may not see: a name can be taken by what they do not see.
pub(super) fn seen_problem(actor: &Actor, problem: &Problem) -> Problem {
    let mut out = problem.clone();
    if !actor.sees_all() && matches!(problem.code, "duplicate-name" | "resource-clash") {
        out.message = "the name is taken; choose another".into();
        out.hint = None;
    }
    out
}

fn too_many() -> String {
    format!(
        "the push brings more than {COMMITS} commits, and what you may change is asked of each; push them in parts"
    )
}

fn line(actor: &Actor, here: bool, path: &str, action: Action, label: &str) -> String {
    let what = match action {
        Action::Propose => "propose changes of this".to_owned(),
        Action::MoveLabel if !label.is_empty() => format!("move the label {label}"),
        Action::MoveLabel => "move labels".to_owned(),
        Action::MoveProtectedLabel if label.is_empty() => {
            "move labels that are protected".to_owned()
        }
        Action::MoveProtectedLabel => format!("move the label {label}, which is protected"),
        Action::ChangePolicy => "change the policy".to_owned(),
        _ => "publish this".to_owned(),
    };
    let instead = if action != Action::Propose && actor.may(Action::Propose, path) {
        if here {
            "you may propose it".to_owned()
        } else {
            "you may propose it: git push origin HEAD:refs/for/main".to_owned()
        }
    } else {
        format!(
            "ask an admin of this server for the role {} there",
            action.needs()
        )
    };
    visible(&format!("{path}: you may not {what}; {instead}")).into_owned()
}

/// What a push changes.
struct Changed {
    paths: Needs,
    /// Commits that change the labels, each after what it changes; none where there was nothing.
    labelled: Vec<(Option<String>, String)>,
}

/// Every path that the commits beyond `base` change, each with the action it takes; none where there are too many commits.
fn changed(
    repository: &Repository,
    tip: &str,
    base: Option<&str>,
    action: Action,
) -> Result<Option<Changed>, GitError> {
    let commits = repository.commits_beyond(tip, base, COMMITS + 1)?;
    if commits.len() > COMMITS {
        return Ok(None);
    }
    let blobs = repository.blobs()?;
    let mut out = Changed {
        paths: Needs::new(),
        labelled: Vec::new(),
    };
    let mut add = |before: Option<&str>, after: &str, paths: BTreeSet<String>| {
        if paths.contains(LABELS) {
            out.labelled
                .push((before.map(str::to_owned), after.to_owned()));
        }
        for path in paths {
            out.paths
                .entry(path)
                .or_default()
                .insert((action, String::new()));
        }
    };
    for commit in &commits {
        let paths = changed_by(repository, &blobs, commit)?;
        add(
            commit.parents.first().map(String::as_str),
            &commit.id,
            paths,
        );
    }
    // a first push that takes the place of the starter prompts is no descendant of theirs
    if action == Action::Publish
        && let Some(base) = base
    {
        add(Some(base), tip, between(&blobs, base, tip)?);
    }
    Ok(Some(out))
}

/// What a commit changes: on the first-parent chain, which is what main was, against its first parent; beside it, what no
/// parent of it has.
fn changed_by(
    repository: &Repository,
    blobs: &Blobs,
    commit: &Beyond,
) -> Result<BTreeSet<String>, GitError> {
    let Some((first, others)) = commit.parents.split_first() else {
        let files = repository.tree(&commit.id)?;
        return Ok(files.into_iter().map(|entry| text(&entry.path)).collect());
    };
    let mut paths = between(blobs, first, &commit.id)?;
    if !commit.first_line {
        for other in others {
            let theirs = between(blobs, other, &commit.id)?;
            paths.retain(|path| theirs.contains(path));
        }
    }
    Ok(paths)
}

fn between(blobs: &Blobs, old: &str, new: &str) -> Result<BTreeSet<String>, GitError> {
    let changes = blobs.changes(old, new)?.into_iter();
    let entries = changes.flat_map(|change| [change.before, change.after]);
    Ok(entries.flatten().map(|entry| text(&entry.path)).collect())
}

fn text(path: &[u8]) -> String {
    String::from_utf8_lossy(path).into_owned()
}

/// What the labels that were moved take. Which are protected is what the main that is left says.
fn labels(
    repository: &Repository,
    base: Option<&str>,
    labelled: &[(Option<String>, String)],
    needs: &mut Needs,
) -> Result<(), GitError> {
    let blobs = repository.blobs()?;
    let read = |commit: Option<&str>, path: &str| -> Result<Option<String>, GitError> {
        let Some(commit) = commit else {
            return Ok(Some(String::new()));
        };
        match blobs.file(commit, path)? {
            None => Ok(Some(String::new())),
            Some(id) if blobs.size(id)? > MAX_FILE => Ok(None),
            Some(id) => Ok(String::from_utf8(blobs.read(id)?).ok()),
        }
    };
    let policy = read(base, POLICY)?;
    let protected = policy.and_then(|policy| {
        let mut problems = Vec::new();
        let library = library(&Source::new(&POLICY.into(), &policy), &mut problems);
        problems.is_empty().then_some(library.protected_labels)
    });
    let mut need = |action: Action, label: &str| {
        needs
            .entry(LABELS.into())
            .or_default()
            .insert((action, label.to_owned()));
    };
    for (before, after) in labelled {
        let before = read(before.as_deref(), LABELS)?.and_then(|text| said(&text));
        let after = read(Some(after), LABELS)?.and_then(|text| said(&text));
        let (Some(before), Some(after)) = (before, after) else {
            // what cannot be read may say anything
            need(Action::MoveProtectedLabel, "");
            continue;
        };
        let keys: BTreeSet<_> = before.keys().chain(after.keys()).collect();
        for key in keys {
            if before.get(key) == after.get(key) {
                continue;
            }
            let label = &key.0;
            let action = match &protected {
                Some(protected) if !protected.contains(label) => Action::MoveLabel,
                _ => Action::MoveProtectedLabel,
            };
            need(action, label);
        }
    }
    Ok(())
}
