//! Which open proposals change which file, for marks beside prompts.

use std::collections::HashMap;
use std::num::NonZeroUsize;
use std::sync::{Arc, LazyLock, Mutex, PoisonError};

use lru::LruCache;

use super::Web;
use super::visit::{Visit, reads};
use crate::git::GitError;

/// Proposals that are looked at, the newest.
const PROPOSALS: usize = 100;
/// Files of one proposal that are looked at.
const FILES: usize = 200;

/// An open proposal, as a mark shows it.
#[derive(Debug, Clone, PartialEq, Eq, serde::Serialize)]
pub struct Waiting {
    /// Its number.
    pub number: i64,
    /// What it is about.
    pub title: String,
}

/// The files that a commit changes against another: both commits never change, so it is read once.
type Known = LruCache<(String, String), Arc<[String]>>;

static KNOWN: LazyLock<Mutex<Known>> =
    LazyLock::new(|| Mutex::new(LruCache::new(NonZeroUsize::MIN.saturating_add(511))));

/// Open proposals by the path of a file that they change, of those whose every file this visit may read; nothing where
/// there are none to be had.
pub(super) async fn by_prompt(web: &Web, visit: &Visit) -> HashMap<String, Vec<Waiting>> {
    let rows = match web.api.records.as_ref().map(|records| records.store()) {
        Some(Ok(store)) => store.proposals_in("open").await.unwrap_or_default(),
        _ => return HashMap::new(),
    };
    let registry = web.api.registry.clone();
    let Some(tip) = registry.snapshot().status.tip.clone() else {
        return HashMap::new();
    };
    if rows.is_empty() {
        return HashMap::new();
    }
    let actor = visit.actor.clone();
    let read = tokio::task::spawn_blocking(move || {
        let mut out: HashMap<String, Vec<Waiting>> = HashMap::new();
        for row in rows.iter().rev().take(PROPOSALS) {
            let key = (tip.clone(), row.head.clone());
            let kept = KNOWN
                .lock()
                .unwrap_or_else(PoisonError::into_inner)
                .get(&key)
                .cloned();
            let files = if let Some(files) = kept {
                files
            } else {
                let Some(repository) = registry.library().repository() else {
                    break;
                };
                let files: Arc<[String]> = repository.changed_since(&tip, &row.head, FILES)?.into();
                KNOWN
                    .lock()
                    .unwrap_or_else(PoisonError::into_inner)
                    .put(key, files.clone());
                files
            };
            // of a list that was cut nobody knows whether all of it may be read
            let is_seen = actor.sees_all()
                || (files.len() < FILES && files.iter().all(|file| reads(&actor, file)));
            if !is_seen {
                continue;
            }
            for file in files.iter() {
                out.entry(file.clone()).or_default().push(Waiting {
                    number: row.number,
                    title: row.title.clone(),
                });
            }
        }
        Ok::<_, GitError>(out)
    });
    match read.await {
        Ok(Ok(out)) => out,
        Ok(Err(error)) => {
            tracing::warn!(%error, "what open proposals change could not be read");
            HashMap::new()
        }
        Err(_) => HashMap::new(),
    }
}
