//! Versions in the database: read at the start, written behind what is served, proven against git, made again.
//!
//! The rows only save a start the reading of the whole history. Without them, or with a database that cannot be used,
//! versions are counted from git, and they are the same.

pub mod blame;
pub mod diff;
pub mod effect;
pub mod log;
mod rows;

use std::collections::{BTreeMap, HashMap};
use std::sync::Arc;
use std::time::{Duration, Instant};

use tokio_util::sync::CancellationToken;

use crate::git::GitError;
use crate::history::{History, RULE};
use crate::prompt::parse::hex;
use crate::registry::Registry;
use crate::registry::numbering::{Numbering, Progress};
use crate::store::{IndexDifference, Store, StoreError, VersionRows, VersionState};

/// How long a database that failed is left alone, unless something is published.
const AGAIN: Duration = Duration::from_secs(30);
/// Versions that are written in one transaction: others who write wait for no more.
const BATCH: usize = 20_000;
/// How long rows may be behind what is served before that is a fault.
const LATE: Duration = Duration::from_secs(10);
/// Time between two looks at where the rows are.
const LOOK: Duration = Duration::from_millis(10);

/// Why the rows could not be proven or made again.
#[derive(Debug, thiserror::Error)]
pub enum VersionsError {
    /// The database failed.
    #[error(transparent)]
    Store(#[from] StoreError),
    /// git failed.
    #[error(transparent)]
    Git(#[from] GitError),
    /// A thread ended early.
    #[error("the count of versions ended early; the log says why")]
    Ended,
}

/// The versions that the database holds, where they are whole and of this release's rules.
pub async fn load(store: &Store) -> Result<Option<History>, StoreError> {
    let (Some(state), rows) = store.version_rows().await? else {
        return Ok(None);
    };
    if state.rule != RULE || state.tip.is_empty() {
        return Ok(None);
    }
    let history = rows::history(&state.tip, rows);
    if history.is_none() {
        tracing::warn!("the kept versions are damaged; they are counted again");
    }
    Ok(history)
}

/// Writes versions behind what is served, until it is cancelled. `kept` is what the rows say already.
pub async fn keep(
    registry: Arc<Registry>,
    store: Store,
    kept: Option<Arc<History>>,
    cancel: CancellationToken,
) {
    let mut published = registry.subscribe();
    let mut written = kept;
    loop {
        published.mark_unchanged();
        let now = registry.snapshot().history.clone();
        let mut failed = false;
        if let Some(now) = now
            && written.as_ref().is_none_or(|w| w.tip() != now.tip())
        {
            let writing = write(&store, written.as_deref(), &now);
            let Some(done) = cancel.run_until_cancelled(writing).await else {
                return;
            };
            match done {
                Ok(()) => written = Some(now),
                Err(error) => {
                    // half of them may be there: all of them are written the next time
                    written = None;
                    failed = true;
                    tracing::error!(%error, "versions could not be written to the database; they are counted from git at the next start");
                }
            }
        }
        let next = async {
            tokio::select! {
                changed = published.changed() => changed.is_ok(),
                () = tokio::time::sleep(AGAIN), if failed => true,
            }
        };
        if cancel.run_until_cancelled(next).await != Some(true) {
            return;
        }
    }
}

fn state(tip: &str) -> VersionState {
    VersionState {
        rule: RULE,
        tip: tip.to_owned(),
    }
}

fn state_of(history: &History) -> Option<VersionState> {
    history.tip().map(|tip| state(&hex(&tip)))
}

/// Writes what a history has beyond another, where the rows are at that; all of it, where they are not or it does not
/// go on from that.
pub async fn write(
    store: &Store,
    before: Option<&History>,
    now: &History,
) -> Result<(), StoreError> {
    let _one = store.writing_versions().await;
    let Some(tip) = state_of(now) else {
        return Ok(());
    };
    if let Some(before) = before {
        let at = store.version_state().await?;
        // whoever wrote it wrote all of it
        if at.as_ref() == Some(&tip) {
            return Ok(());
        }
        if let Some(added) = rows::added(before, now)
            && added.versions.len() <= BATCH
            && store
                .put_versions(&added, state_of(before).as_ref(), &tip)
                .await?
        {
            return Ok(());
        }
    }
    write_all(store, now).await
}

/// Writes every row anew, for who holds the right to.
async fn write_all(store: &Store, now: &History) -> Result<(), StoreError> {
    let Some(tip) = state_of(now) else {
        return Ok(());
    };
    store.clear_versions().await?;
    let mut rows = rows::all(now);
    let versions = std::mem::take(&mut rows.versions);
    let half = state("");
    let mut at = None;
    // the tip comes last: until it is there, a start counts from git
    for share in versions.chunks(BATCH) {
        let share = VersionRows {
            versions: share.to_vec(),
            ..VersionRows::default()
        };
        if !store.put_versions(&share, at, &half).await? {
            return Err(StoreError::Overtaken);
        }
        at = Some(&half);
    }
    if !store.put_versions(&rows, at, &tip).await? {
        return Err(StoreError::Overtaken);
    }
    Ok(())
}

/// Counts the versions from git and compares them with the rows: how many rows, and every one that differs. Writes
/// nothing; rows that are late are waited for, 10 seconds at most.
pub async fn verify(
    registry: &Arc<Registry>,
    store: &Store,
) -> Result<(usize, Vec<IndexDifference>), VersionsError> {
    let counting = registry.clone();
    tokio::task::spawn_blocking(move || counting.count())
        .await
        .map_err(|_| VersionsError::Ended)??;
    // what was served meanwhile: rows that are at none of it are late, or are not what git says
    let mut served: HashMap<String, Arc<History>> = HashMap::new();
    let started = Instant::now();
    let (held, tip, found) = loop {
        let Some(now) = registry.snapshot().history.clone() else {
            return Ok((0, Vec::new()));
        };
        let Some(expected) = state_of(&now) else {
            return Ok((0, Vec::new()));
        };
        served.entry(expected.tip.clone()).or_insert(now);
        let known = |at: Option<VersionState>| {
            at.filter(|at| at.rule == RULE)
                .and_then(|at| served.get(&at.tip).cloned().map(|held| (held, at.tip)))
        };
        if known(store.version_state().await?).is_some() {
            let (at, rows) = store.version_rows().await?;
            if let Some((held, tip)) = known(at) {
                break (held, tip, rows::shown(&rows));
            }
        }
        if started.elapsed() > LATE {
            let (at, rows) = store.version_rows().await?;
            let late = IndexDifference {
                table: "version_state",
                row: "the commit they reach".to_owned(),
                expected: Some(expected.tip),
                found: at.map(|at| at.tip),
            };
            let rows = rows::shown(&rows).values().map(BTreeMap::len).sum();
            return Ok((rows, vec![late]));
        }
        tokio::time::sleep(LOOK).await;
    };
    let counted = count(registry, &tip).await?.history;
    let expected = rows::shown(&rows::all(&counted));
    let mut out = differences(&expected, &found);
    if *counted != *held {
        let held = rows::shown(&rows::all(&held));
        out.extend(
            differences(&expected, &held)
                .into_iter()
                .map(|difference| IndexDifference {
                    row: format!("{}, in memory", difference.row),
                    ..difference
                }),
        );
    }
    let rows = found.values().map(BTreeMap::len).sum();
    Ok((rows, out))
}

/// Counts the versions from git, serves them, and writes every row anew.
pub async fn reindex(registry: &Arc<Registry>, store: &Store) -> Result<(), VersionsError> {
    let counting = registry.clone();
    tokio::task::spawn_blocking(move || counting.recount())
        .await
        .map_err(|_| VersionsError::Ended)??;
    let _one = store.writing_versions().await;
    // what is served now, not before the wait
    if let Some(history) = registry.snapshot().history.clone() {
        write_all(store, &history).await?;
    }
    Ok(())
}

async fn count(registry: &Arc<Registry>, tip: &str) -> Result<Numbering, VersionsError> {
    let (registry, tip) = (registry.clone(), tip.to_owned());
    let counted = tokio::task::spawn_blocking(move || {
        let repository = registry
            .library()
            .repository()
            .ok_or_else(|| GitError::Unknown(tip.clone()))?;
        Numbering::cold(repository, &tip, &Progress::default())
    });
    Ok(counted.await.map_err(|_| VersionsError::Ended)??)
}

fn differences(expected: &rows::Shown, found: &rows::Shown) -> Vec<IndexDifference> {
    let empty = BTreeMap::new();
    let mut out = Vec::new();
    for table in expected
        .keys()
        .chain(found.keys())
        .collect::<std::collections::BTreeSet<_>>()
    {
        let (expected, found) = (
            expected.get(table).unwrap_or(&empty),
            found.get(table).unwrap_or(&empty),
        );
        for (row, text) in expected {
            if found.get(row) != Some(text) {
                out.push(IndexDifference {
                    table,
                    row: row.clone(),
                    expected: Some(text.clone()),
                    found: found.get(row).cloned(),
                });
            }
        }
        for (row, text) in found {
            if !expected.contains_key(row) {
                out.push(IndexDifference {
                    table,
                    row: row.clone(),
                    expected: None,
                    found: Some(text.clone()),
                });
            }
        }
    }
    out
}
