//! What a proposal does, kept for as long as it and main stay where they are.

use std::num::NonZeroUsize;
use std::sync::{Arc, Mutex, PoisonError};

use lru::LruCache;
use tokio::sync::Semaphore;
use tokio_util::sync::CancellationToken;

use super::{Api, Refusal, internal, merging, proposals};
use crate::access::{Action, Actor, Permissions};
use crate::proposals::About;
use crate::proposals::place::RenderedLine;
use crate::versions::effect::{Effect, files, prompts};

/// Effects that are kept.
const KEPT: usize = 16;

/// Head, tip of main, generation of the catalog, and what is seen, where that is not all: what an effect rests on.
type Key = (String, Option<String>, u64, Option<Arc<Permissions>>);

/// Effects that were looked up, one at a time.
#[derive(Debug)]
pub struct Effects {
    kept: Mutex<LruCache<Key, Arc<Effect>>>,
    one: Semaphore,
}

impl Default for Effects {
    fn default() -> Self {
        Self {
            kept: Mutex::new(LruCache::new(
                NonZeroUsize::new(KEPT).unwrap_or(NonZeroUsize::MIN),
            )),
            one: Semaphore::new(1),
        }
    }
}

impl Effects {
    fn get(&self, key: &Key) -> Option<Arc<Effect>> {
        let mut kept = self.kept.lock().unwrap_or_else(PoisonError::into_inner);
        kept.get(key).cloned()
    }
}

/// What a proposal does, as far as an actor may see it.
pub async fn effect(api: &Api, actor: &Actor, about: &About) -> Result<Arc<Effect>, Refusal> {
    let whole = whole(api, actor, about).await?;
    if actor.sees_all() {
        return Ok(whole);
    }
    // a partial reaches prompts that are none of theirs
    let mut seen = Effect::clone(&whole);
    seen.prompts
        .retain(|prompt| actor.may(Action::Read, &prompt.path));
    seen.files
        .retain(|file| actor.may(Action::Read, &file.path));
    Ok(Arc::new(seen))
}

/// The lines of one side of what an example renders to, as far as they are shown.
pub(super) fn lines<'a>(
    effect: &'a Effect,
    path: &str,
    example: &str,
    old: bool,
) -> Vec<RenderedLine<'a>> {
    let prompts = effect.prompts.iter().filter(|prompt| *prompt.path == *path);
    let examples = prompts.flat_map(|prompt| &prompt.examples);
    let messages = examples
        .filter(|shown| shown.example == example)
        .flat_map(|shown| (0..).zip(&shown.messages));
    messages
        .flat_map(|(message, shown)| {
            shown
                .hunks
                .iter()
                .flatten()
                .map(move |line| (message, line))
        })
        .filter_map(|(message, line)| {
            let number = if old { line.old } else { line.new };
            Some((message, i64::from(number?), &*line.text))
        })
        .collect()
}

async fn whole(api: &Api, actor: &Actor, about: &About) -> Result<Arc<Effect>, Refusal> {
    let (gate, _) = proposals(api)?;
    let key = || {
        let generation = api.registry.snapshot().generation;
        let part = (!actor.sees_all()).then(|| actor.permissions().clone());
        (about.row.head.clone(), about.main.clone(), generation, part)
    };
    if let Some(known) = api.effects.get(&key()) {
        return Ok(known);
    }
    let _one = api
        .effects
        .one
        .acquire()
        .await
        .map_err(|error| internal(&error))?;
    let key = key();
    if let Some(known) = api.effects.get(&key) {
        return Ok(known);
    }
    let standing = gate.standing(actor, about).await.map_err(merging)?;
    let Some(repository) = api.registry.library().repository().cloned() else {
        return Ok(Arc::default());
    };
    let (registry, base, head) = (
        api.registry.clone(),
        about.base.clone(),
        about.row.head.clone(),
    );
    let who = actor.clone();
    let gone = CancellationToken::new();
    let waits = gone.clone().drop_guard();
    let made = tokio::task::spawn_blocking(move || {
        let mut effect = Effect::default();
        if let Some(base) = base {
            let (found, left_out) = files(&repository, &base, &head)?;
            effect.files = found;
            effect.left_out += left_out;
        }
        // what conflicts or is merged makes no other main that could be rendered
        if let Some(merge) = &standing.merge {
            let with = repository.with_objects(merge.objects());
            let (found, left_out) = prompts(
                &registry,
                &with,
                &merge.commit,
                |path| who.may(Action::Read, path),
                &gone,
            )?;
            effect.prompts = found;
            effect.left_out += left_out;
        }
        Ok::<_, crate::versions::VersionsError>(effect)
    })
    .await
    .map_err(|error| internal(&error))?
    .map_err(|error| internal(&error))?;
    drop(waits.disarm());
    let made = Arc::new(made);
    let mut kept = api
        .effects
        .kept
        .lock()
        .unwrap_or_else(PoisonError::into_inner);
    kept.put(key, made.clone());
    Ok(made)
}
