//! What the `cuebook.toml` of the main that is left asks of a change: approvals. Every way to main passes here.

use std::collections::BTreeSet;

use super::rules::Refused;
use super::wire::{Question, Update};
use crate::access::Action;
use crate::catalog::library::approvals;
use crate::catalog::policy::Approval;
use crate::git::history::NOTHING;
use crate::git::{GitError, Repository};
use crate::proposals::review::{Authors, named, needed};

/// The file that says the policy.
pub(super) const POLICY: &str = "cuebook.toml";
/// What takes a prompt back to an earlier version.
const RESTORE: &str = "restore";

/// What it takes to change a file of the library on main.
pub(super) fn action_at(path: &str) -> Action {
    match path {
        POLICY => Action::ChangePolicy,
        crate::catalog::relabel::LABELS => Action::MoveLabel,
        _ => Action::Publish,
    }
}

/// The approvals that a commit asks for; an error in words where that cannot be known.
pub(super) fn rules(
    repository: &Repository,
    commit: &str,
) -> Result<Result<Vec<Approval>, Refused>, GitError> {
    let Some(bytes) = repository.file(commit, POLICY)? else {
        return Ok(Ok(Vec::new()));
    };
    Ok(approvals(&bytes).ok_or_else(|| Refused {
        message: format!("{POLICY} of main cannot be read, so nobody knows what takes approval"),
        hint: format!("mend {POLICY} in the same push; that takes an admin"),
    }))
}

/// What refuses a change of main, by the policy of the main that it leaves.
pub(super) fn refuses(
    repository: &Repository,
    update: &Update,
    question: &Question,
) -> Result<Option<Refused>, GitError> {
    if update.old == NOTHING {
        return Ok(None);
    }
    let Some(old) = repository.commit_of(&update.old)? else {
        return Ok(None);
    };
    let rules = match rules(repository, &old)? {
        Ok(rules) if rules.is_empty() => return Ok(None),
        Ok(rules) => rules,
        Err(refused) => {
            let mends = repository.differing(&old, &update.new, usize::MAX)?;
            let mends = mends.iter().any(|path| path == POLICY);
            return Ok((!mends).then_some(refused));
        }
    };
    let touched = repository.touched(&old, &update.new, true)?;
    let restores = question.here
        && question
            .deed
            .as_ref()
            .is_some_and(|deed| deed.action == RESTORE);
    Ok(unmet(&rules, &touched, question, restores))
}

fn unmet(
    rules: &[Approval],
    touched: &BTreeSet<String>,
    question: &Question,
    restores: bool,
) -> Option<Refused> {
    let rules: Vec<Approval> = rules
        .iter()
        .filter(|rule| !(restores && rule.rollback))
        .cloned()
        .collect();
    let nobody = Authors::default();
    let needed = match &question.judged {
        Some(judged) => needed(
            &rules,
            touched,
            &judged.given,
            &judged.head,
            &judged.authors,
        ),
        None => needed(&rules, touched, &[], "", &nobody),
    };
    let unmet = needed.into_iter().find(|needed| !needed.is_met())?;
    let back = if restores {
        "; to let a prompt go back without, an admin sets rollback = true for them"
    } else {
        ""
    };
    Some(Refused {
        message: format!(
            "{} {} {} before {} can be published ({POLICY} of main){back}",
            named(&unmet.paths),
            if unmet.paths.len() == 1 {
                "takes"
            } else {
                "take"
            },
            if unmet.required == 1 {
                "an approval".to_owned()
            } else {
                format!("{} approvals", unmet.required)
            },
            if unmet.paths.len() == 1 { "it" } else { "they" },
        ),
        hint: "propose the change: git push origin HEAD:refs/for/main".into(),
    })
}
