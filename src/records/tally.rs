//! From calls to rows: what is counted together is one row. Bounded: what does not fit is counted as lost.

use std::collections::{BTreeMap, HashMap, HashSet, VecDeque};
use std::sync::Arc;

use serde::Serialize;

use super::calendar::day;
use super::get::{Get, Outcome};
use crate::catalog::Revision;
use crate::prompt::secrets;
use crate::store::{Batch, DeliveryRow, LatencyRow, LossRow, RecentRow, UsageRow};

/// Rows of use that wait to be written, at most.
pub const MAX_KEYS: usize = 50_000;
/// Deliveries that wait to be written, at most: some 30 MB.
pub const MAX_DELIVERIES: usize = 50_000;
/// Clients of one day that are told apart; a name is the client's own word, and costs a row.
pub const MAX_CLIENTS: usize = 500;
/// What stands for the clients beyond them.
pub const OTHER: &str = "(other)";
/// Buckets of times: the last one is open.
pub const BUCKETS: i64 = 20;

/// What was lost.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Lost {
    /// Calls that were not counted.
    pub usage: u64,
    /// Deliveries without a row.
    pub deliveries: u64,
}

/// Prompt, version, client, its version, day.
type Key = (Arc<str>, i64, Arc<str>, Arc<str>, i64);

/// What two deliveries have in common that are one row.
#[derive(Debug, PartialEq, Eq, Hash)]
struct Same {
    second: i64,
    actor: Arc<str>,
    client: Arc<str>,
    client_version: Arc<str>,
    via: &'static str,
    placeholder: bool,
    prompt: Arc<str>,
    path: Arc<str>,
    version: Option<u32>,
    revision: Option<Arc<str>>,
    sha256: Arc<str>,
    served: Option<Arc<str>>,
    /// URI, path and hash of each.
    resources: Vec<[Arc<str>; 3]>,
}

impl Same {
    fn of(get: &Get) -> Self {
        let served = match get.catalog.revision() {
            Revision::Commit(commit) => Some(commit.clone()),
            Revision::WorkTree => None,
        };
        let (revision, path) = match &get.of {
            Some((commit, path)) => (Some(commit.clone()), path.clone()),
            None => (served.clone(), get.prompt.path.clone()),
        };
        Self {
            second: get.at.div_euclid(1000),
            actor: get.actor.clone(),
            client: get.client.clone(),
            client_version: get.client_version.clone(),
            via: get.via.as_str(),
            placeholder: get.given.placeholder,
            prompt: get.prompt.name.clone().into(),
            path,
            version: get.version,
            revision,
            sha256: get.prompt.sha256.clone(),
            served,
            resources: get
                .resources
                .iter()
                .map(|r| [&r.uri, &r.path, &r.sha256].map(Arc::clone))
                .collect(),
        }
    }

    /// The row of the first of them, in milliseconds since 1970.
    fn row(&self, at: i64) -> DeliveryRow {
        let resources = self.resources.iter();
        let resources: Vec<Delivered<'_>> = resources
            .map(|[uri, path, sha256]| Delivered { uri, path, sha256 })
            .collect();
        DeliveryRow {
            seq: 0,
            at,
            times: 1,
            actor: self.actor.to_string(),
            client: self.client.to_string(),
            client_version: self.client_version.to_string(),
            via: self.via.into(),
            placeholder: self.placeholder,
            prompt: self.prompt.to_string(),
            version: self.version.map(i64::from),
            revision: self.revision.as_deref().map(str::to_owned),
            path: self.path.to_string(),
            sha256: self.sha256.to_string(),
            resources_revision: self.served.as_deref().map(str::to_owned),
            resources: serde_json::to_string(&resources).unwrap_or_else(|_| "[]".into()),
        }
    }
}

/// What waits to be written.
#[derive(Debug, Default)]
pub(super) struct Tally {
    usage: HashMap<Key, UsageRow>,
    latency: HashMap<(Arc<str>, i64, i64, i64), i64>,
    deliveries: VecDeque<DeliveryRow>,
    /// Where among them the row of each is that may come again.
    repeats: HashMap<Same, usize>,
    losses: BTreeMap<(i64, &'static str), i64>,
    recents: Vec<RecentRow>,
    forgotten: Vec<(String, String, String)>,
    /// Told apart on `clients_day`.
    clients: HashSet<(Arc<str>, Arc<str>)>,
    clients_day: i64,
}

#[derive(Serialize)]
struct Delivered<'a> {
    uri: &'a str,
    path: &'a str,
    sha256: &'a str,
}

/// The bucket of a time in microseconds: the lowest `n` with `micros < 2^n × 100`.
pub fn bucket(micros: i64) -> i64 {
    let hundreds = micros.max(0) / 100;
    i64::from(i64::BITS - hundreds.leading_zeros()).min(BUCKETS - 1)
}

impl Tally {
    /// Counts calls. Returns the values among them that colleagues may be offered, and what was lost.
    pub(super) fn add(&mut self, gets: impl Iterator<Item = Get>) -> (Vec<RecentRow>, Lost) {
        let mut used = Vec::new();
        let mut lost = Lost::default();
        for get in gets {
            let before = lost;
            self.count(&get, &mut lost);
            if get.outcome == Outcome::Delivered {
                self.deliver(&get, &mut lost);
                used.extend(recent(&get));
            }
            let day = day(get.at);
            self.lose(
                day,
                Lost {
                    usage: lost.usage - before.usage,
                    deliveries: lost.deliveries - before.deliveries,
                },
            );
        }
        (used, lost)
    }

    /// Notes what was lost on a day.
    pub(super) fn lose(&mut self, day: i64, lost: Lost) {
        for (kind, n) in [("usage", lost.usage), ("delivery", lost.deliveries)] {
            if n > 0 {
                *self.losses.entry((day, kind)).or_default() +=
                    i64::try_from(n).unwrap_or(i64::MAX);
            }
        }
    }

    fn count(&mut self, get: &Get, lost: &mut Lost) {
        // a client that puts the values in by itself asks for every prompt, used or not
        if get.given.placeholder {
            return;
        }
        let day = day(get.at);
        let (client, client_version) = self.client(get, day);
        let version = get.version.map_or(0, i64::from);
        let prompt: Arc<str> = get.prompt.name.clone().into();
        let key = (prompt.clone(), version, client, client_version, day);
        if self.usage.len() >= MAX_KEYS && !self.usage.contains_key(&key) {
            lost.usage += 1;
            return;
        }
        let row = self.usage.entry(key).or_insert_with_key(|key| UsageRow {
            prompt: key.0.to_string(),
            version: key.1,
            client: key.2.to_string(),
            client_version: key.3.to_string(),
            day: key.4,
            ..UsageRow::default()
        });
        match get.outcome {
            Outcome::Failed => row.failed += 1,
            Outcome::Refused => row.refused += 1,
            Outcome::Delivered => {
                let micros = i64::try_from(get.took.as_micros()).unwrap_or(i64::MAX);
                row.gets += 1;
                row.micros_sum = row.micros_sum.saturating_add(micros);
                row.micros_max = row.micros_max.max(micros);
                row.picks += picks(get);
                let key = (prompt, version, day, bucket(micros));
                *self.latency.entry(key).or_default() += 1;
            }
        }
    }

    fn client(&mut self, get: &Get, day: i64) -> (Arc<str>, Arc<str>) {
        if self.clients_day != day {
            self.clients_day = day;
            self.clients.clear();
        }
        let known = &mut self.clients;
        let client = (get.client.clone(), get.client_version.clone());
        if known.contains(&client) {
            return client;
        }
        if known.len() >= MAX_CLIENTS {
            return (OTHER.into(), "".into());
        }
        known.insert(client.clone());
        client
    }

    fn deliver(&mut self, get: &Get, lost: &mut Lost) {
        let same = Same::of(get);
        if let Some(at) = self.repeats.get(&same) {
            self.deliveries[*at].times += 1;
            return;
        }
        if self.deliveries.len() >= MAX_DELIVERIES {
            lost.deliveries += 1;
            return;
        }
        self.deliveries.push_back(same.row(get.at));
        self.repeats.insert(same, self.deliveries.len() - 1);
    }

    /// Values to be written in the place of what is there, and those to be removed.
    pub(super) fn keep(&mut self, written: Vec<RecentRow>, removed: Vec<RecentRow>) {
        self.forget(removed);
        let same = |a: &RecentRow, b: &RecentRow| {
            (&a.prompt, &a.argument, &a.value) == (&b.prompt, &b.argument, &b.value)
        };
        self.recents
            .retain(|row| !written.iter().any(|new| same(row, new)));
        self.recents.extend(written);
    }

    /// Values to be removed.
    pub(super) fn forget(&mut self, removed: Vec<RecentRow>) {
        if removed.is_empty() {
            return;
        }
        let gone: HashSet<(String, String, String)> = removed
            .into_iter()
            .map(|row| (row.prompt, row.argument, row.value))
            .collect();
        self.recents.retain(|row| {
            let key = (row.prompt.clone(), row.argument.clone(), row.value.clone());
            !gone.contains(&key)
        });
        self.forgotten.extend(gone);
    }

    /// Takes values that wait to be written out, as [`super::Records::erase_values`] has it.
    pub(super) fn erase(&mut self, prompt: Option<&str>, argument: Option<&str>) {
        self.recents.retain(|row| {
            !(prompt.is_none_or(|prompt| row.prompt == prompt)
                && argument.is_none_or(|argument| row.argument == argument))
        });
    }

    /// Deliveries that wait.
    pub(super) fn deliveries(&self) -> usize {
        self.deliveries.len()
    }

    /// Whether nothing waits.
    pub(super) fn is_empty(&self) -> bool {
        self.usage.is_empty()
            && self.deliveries.is_empty()
            && self.losses.is_empty()
            && self.recents.is_empty()
            && self.forgotten.is_empty()
    }

    /// Takes all that waits.
    pub(super) fn take(&mut self) -> Batch {
        Batch {
            usage: std::mem::take(&mut self.usage).into_values().collect(),
            latency: std::mem::take(&mut self.latency)
                .into_iter()
                .map(|((prompt, version, day, bucket), gets)| LatencyRow {
                    prompt: prompt.to_string(),
                    version,
                    day,
                    bucket,
                    gets,
                })
                .collect(),
            losses: std::mem::take(&mut self.losses)
                .into_iter()
                .map(|((day, kind), lost)| LossRow {
                    day,
                    kind: kind.into(),
                    lost,
                })
                .collect(),
            deliveries: {
                self.repeats.clear();
                std::mem::take(&mut self.deliveries).into()
            },
            recents: std::mem::take(&mut self.recents),
            forgotten: std::mem::take(&mut self.forgotten),
        }
    }

    /// Puts a batch back that could not be written; nothing was added since it was taken.
    pub(super) fn put_back(&mut self, batch: Batch) {
        for row in batch.usage {
            let key = (
                row.prompt.as_str().into(),
                row.version,
                row.client.as_str().into(),
                row.client_version.as_str().into(),
                row.day,
            );
            self.usage.insert(key, row);
        }
        for row in batch.latency {
            self.latency.insert(
                (row.prompt.into(), row.version, row.day, row.bucket),
                row.gets,
            );
        }
        for row in batch.losses {
            let kind = if row.kind == "usage" {
                "usage"
            } else {
                "delivery"
            };
            self.losses.insert((row.day, kind), row.lost);
        }
        self.deliveries = batch.deliveries.into();
        self.recents = batch.recents;
        self.forgotten = batch.forgotten;
    }
}

/// How many of the given values the argument's completion offers, whether they were picked or typed.
fn picks(get: &Get) -> i64 {
    let argument = |at: usize| &get.prompt.arguments[at];
    let has_values = |at: usize| {
        let values = &argument(at).values;
        !values.list.is_empty() || values.file.is_some() || values.resource.is_some()
    };
    let given = &get.given.values;
    if !given.iter().any(|(at, _)| has_values(*at)) {
        return 0;
    }
    let context: BTreeMap<String, String> = given
        .iter()
        .map(|(at, value)| (argument(*at).name.to_string(), value.to_string()))
        .collect();
    let offered = given.iter().filter(|(at, value)| {
        has_values(*at)
            && get
                .catalog
                .offers(&get.prompt, &argument(*at).name, value, &context)
    });
    i64::try_from(offered.count()).unwrap_or(i64::MAX)
}

/// The values that colleagues may be offered.
fn recent(get: &Get) -> impl Iterator<Item = RecentRow> {
    get.given.values.iter().filter_map(|(at, value)| {
        let argument = &get.prompt.arguments[*at];
        let shown = !value.trim().is_empty() && !value.chars().any(char::is_control);
        // the path of a values file: no comment in the value can allow a secret
        let secret = || !secrets::find(&"values/recent.txt".into(), value.as_bytes()).is_empty();
        (argument.values.recent && shown && !secret()).then(|| RecentRow {
            prompt: get.prompt.name.as_str().to_owned(),
            argument: argument.name.to_string(),
            value: value.to_string(),
            weight: 1.0,
            at: get.at,
        })
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn buckets_double() {
        for (micros, expected) in [
            (0, 0),
            (99, 0),
            (100, 1),
            (199, 1),
            (200, 2),
            (399, 2),
            (400, 3),
            (10_000, 7),
            (i64::MAX, BUCKETS - 1),
        ] {
            assert_eq!(bucket(micros), expected, "{micros}");
        }
    }
}
