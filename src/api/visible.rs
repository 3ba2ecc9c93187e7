//! What an actor is shown of what the API tells: the rest looks like what is not there.

use std::sync::Arc;

use axum::http::StatusCode;

use super::Refusal;
use crate::access::{Action, Actor};
use crate::catalog::Catalog;
use crate::registry::Snapshot;

/// Whether an actor may know of a prompt: one that is gone is known to who may read where it was last.
pub(super) fn sees_prompt(snapshot: &Snapshot, actor: &Actor, name: &str) -> bool {
    if actor.sees_all() {
        return true;
    }
    let sees = |path: &str| actor.may(Action::Read, path);
    if let Some(prompt) = snapshot.latest.prompt(name) {
        return sees(&prompt.path);
    }
    let numbered = snapshot
        .history
        .as_ref()
        .and_then(|history| history.of(name));
    let last =
        numbered.and_then(|numbered| numbered.versions.last().map(|version| version.path.clone()));
    last.is_some_and(|path| sees(&path))
}

/// There is no prompt of a name, or none that an actor may know of; names near it are of what they see.
pub(super) fn no_prompt(catalog: &Arc<Catalog>, actor: &Actor, name: &str) -> Refusal {
    let seen = seen(catalog, actor);
    let near = seen.suggest(name, None);
    let hint = if near.is_empty() {
        String::new()
    } else {
        format!("; did you mean {}?", near.join(", "))
    };
    Refusal::new(
        StatusCode::NOT_FOUND,
        format!("there is no prompt `{name}`{hint}"),
    )
}

/// A catalog as an actor sees it.
pub(super) fn seen(catalog: &Arc<Catalog>, actor: &Actor) -> Arc<Catalog> {
    if actor.sees_all() {
        return catalog.clone();
    }
    Arc::new(catalog.seen(|path| actor.may(Action::Read, path)))
}
