//! Values that colleagues used, in memory: completion reads them, the writer keeps them. Weights halve with time.

use std::collections::HashMap;
use std::sync::{Arc, LazyLock, PoisonError, RwLock};

use super::calendar::DAY_MS;
use crate::catalog::Recent;
use crate::store::RecentRow;

/// Time in which a weight halves: two weeks, in milliseconds.
const HALF_LIFE_MS: f64 = 14.0 * 86_400_000.0;
/// Values of one argument that are kept, heaviest first.
pub const PER_ARGUMENT: usize = 200;
/// Values of all arguments together.
pub const IN_ALL: usize = 100_000;

static NONE: LazyLock<Arc<[Recent]>> = LazyLock::new(|| Arc::new([]));

/// What is kept of one argument.
#[derive(Debug)]
struct Kept {
    rows: Vec<RecentRow>,
    shown: Arc<[Recent]>,
}

/// Values by prompt and argument.
#[derive(Debug, Default)]
pub struct Recents {
    kept: RwLock<HashMap<String, HashMap<String, Kept>>>,
}

/// What a weight of then is now.
#[allow(
    clippy::cast_precision_loss,
    reason = "milliseconds fit; a weight needs no more"
)]
fn decayed(weight: f64, at: i64, now: i64) -> f64 {
    weight * (-((now - at).max(0) as f64) / HALF_LIFE_MS).exp2()
}

/// All that is shown of rows, heaviest first. The order is the same at any time: all weights halve together.
fn shown(rows: &mut [RecentRow], now: i64) -> Arc<[Recent]> {
    rows.sort_by(|a, b| {
        let (x, y) = (decayed(a.weight, a.at, now), decayed(b.weight, b.at, now));
        y.total_cmp(&x).then_with(|| a.value.cmp(&b.value))
    });
    rows.iter()
        .map(|row| Recent {
            value: row.value.as_str().into(),
            weight: decayed(row.weight, row.at, now),
        })
        .collect()
}

impl Recents {
    /// The values of an argument, heaviest first; never waits for a disk.
    pub fn get(&self, prompt: &str, argument: &str) -> Arc<[Recent]> {
        let kept = self.kept.read().unwrap_or_else(PoisonError::into_inner);
        kept.get(prompt)
            .and_then(|arguments| arguments.get(argument))
            .map_or_else(|| NONE.clone(), |kept| kept.shown.clone())
    }

    /// Takes what a store has, in the place of what is there.
    pub fn load(&self, rows: Vec<RecentRow>, now: i64) {
        let mut all: HashMap<String, HashMap<String, Kept>> = HashMap::new();
        for row in rows.into_iter().take(IN_ALL) {
            all.entry(row.prompt.clone())
                .or_default()
                .entry(row.argument.clone())
                .or_insert_with(|| Kept {
                    rows: Vec::new(),
                    shown: NONE.clone(),
                })
                .rows
                .push(row);
        }
        for kept in all.values_mut().flat_map(HashMap::values_mut) {
            kept.shown = shown(&mut kept.rows, now);
        }
        *self.kept.write().unwrap_or_else(PoisonError::into_inner) = all;
    }

    /// Notes values that were used: the rows to be written, and those to be removed because others weigh more.
    pub(super) fn note(&self, used: Vec<RecentRow>) -> (Vec<RecentRow>, Vec<RecentRow>) {
        let mut kept = self.kept.write().unwrap_or_else(PoisonError::into_inner);
        let mut in_all: usize = kept
            .values()
            .flat_map(HashMap::values)
            .map(|kept| kept.rows.len())
            .sum();
        let (mut written, mut removed) = (Vec::new(), Vec::new());
        let mut by_argument: HashMap<(String, String), Vec<RecentRow>> = HashMap::new();
        for row in used {
            by_argument
                .entry((row.prompt.clone(), row.argument.clone()))
                .or_default()
                .push(row);
        }
        for ((prompt, argument), used) in by_argument {
            let kept = kept
                .entry(prompt)
                .or_default()
                .entry(argument)
                .or_insert_with(|| Kept {
                    rows: Vec::new(),
                    shown: NONE.clone(),
                });
            let mut now = 0;
            for row in used {
                now = now.max(row.at);
                let known = kept.rows.iter_mut().find(|known| known.value == row.value);
                let row = match known {
                    Some(known) => {
                        known.weight = decayed(known.weight, known.at, row.at) + row.weight;
                        known.at = known.at.max(row.at);
                        known.clone()
                    }
                    None if in_all >= IN_ALL => continue,
                    None => {
                        in_all += 1;
                        kept.rows.push(row.clone());
                        row
                    }
                };
                written.retain(|other: &RecentRow| {
                    (&other.prompt, &other.argument, &other.value)
                        != (&row.prompt, &row.argument, &row.value)
                });
                written.push(row);
            }
            kept.shown = shown(&mut kept.rows, now);
            if kept.rows.len() > PER_ARGUMENT {
                let over = kept.rows.split_off(PER_ARGUMENT);
                in_all = in_all.saturating_sub(over.len());
                written.retain(|row| !over.contains(row));
                removed.extend(over);
                kept.shown = shown(&mut kept.rows, now);
            }
        }
        (written, removed)
    }

    /// Forgets the values of every argument, of a prompt's arguments, or of one argument. Returns how many.
    pub(super) fn erase(&self, prompt: Option<&str>, argument: Option<&str>) -> usize {
        self.remove(|row| {
            prompt.is_none_or(|prompt| row.prompt == prompt)
                && argument.is_none_or(|argument| row.argument == argument)
        })
        .len()
    }

    /// Forgets what was not used for so many days, and the values of arguments that no longer offer them.
    pub(super) fn sweep(
        &self,
        now: i64,
        days: u32,
        offers: impl Fn(&str, &str) -> bool,
    ) -> Vec<RecentRow> {
        let before = now - i64::from(days) * DAY_MS;
        self.remove(|row| row.at < before || !offers(&row.prompt, &row.argument))
    }

    fn remove(&self, which: impl Fn(&RecentRow) -> bool) -> Vec<RecentRow> {
        let mut out = Vec::new();
        let mut kept = self.kept.write().unwrap_or_else(PoisonError::into_inner);
        kept.retain(|_, arguments| {
            arguments.retain(|_, kept| {
                let before = kept.rows.len();
                out.extend(kept.rows.extract_if(.., |row| which(row)));
                if kept.rows.len() < before {
                    let now = kept.rows.iter().map(|row| row.at).max().unwrap_or(0);
                    kept.shown = shown(&mut kept.rows, now);
                }
                !kept.rows.is_empty()
            });
            !arguments.is_empty()
        });
        out
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn row(value: &str, at: i64) -> RecentRow {
        RecentRow {
            prompt: "p".into(),
            argument: "a".into(),
            value: value.into(),
            weight: 1.0,
            at,
        }
    }

    fn values(recents: &Recents) -> Vec<String> {
        let recent = recents.get("p", "a");
        recent
            .iter()
            .map(|recent| recent.value.to_string())
            .collect()
    }

    #[test]
    fn what_is_used_often_and_lately_comes_first() {
        let recents = Recents::default();
        let old: Vec<RecentRow> = (0..5).map(|i| row("old", i)).collect();
        let (written, removed) = recents.note(old);
        assert_eq!((written.len(), removed.len()), (1, 0));
        assert!((written[0].weight - 5.0).abs() < 1e-6);
        // two half-lives: five uses weigh 1.25
        let later = 28 * DAY_MS;
        recents.note(vec![row("new", later)]);
        assert_eq!(values(&recents), ["old", "new"]);
        recents.note(vec![row("new", later)]);
        assert_eq!(values(&recents), ["new", "old"]);
        assert_eq!(recents.get("p", "b").len() + recents.get("q", "a").len(), 0);
    }

    #[test]
    fn the_lightest_go_when_there_are_too_many() {
        let recents = Recents::default();
        let used = (0..300).map(|i| row(&format!("v{i}"), i * DAY_MS));
        let (written, removed) = recents.note(used.collect());
        assert_eq!((written.len(), removed.len()), (PER_ARGUMENT, 100));
        assert_eq!(values(&recents)[0], "v299");
        assert!(removed.iter().any(|row| row.value == "v0"));
    }

    #[test]
    fn what_is_loaded_is_what_was_kept_and_can_be_erased() {
        let recents = Recents::default();
        recents.load(vec![row("x", 5), row("y", 10)], 10);
        assert_eq!(values(&recents), ["y", "x"]);
        assert_eq!(recents.erase(Some("q"), None), 0);
        assert_eq!(recents.erase(Some("p"), Some("a")), 2);
        assert_eq!(values(&recents), Vec::<String>::new());
    }

    #[test]
    fn old_values_and_those_that_are_not_offered_go() {
        let recents = Recents::default();
        recents.load(vec![row("x", 0), row("y", 95 * DAY_MS)], 0);
        let gone = recents.sweep(100 * DAY_MS, 90, |_, _| true);
        assert_eq!(gone.len(), 1);
        assert_eq!(values(&recents), ["y"]);
        assert_eq!(recents.sweep(100 * DAY_MS, 90, |_, _| false).len(), 1);
    }
}
