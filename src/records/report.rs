//! What rows of use come to: by prompt and version, what nobody uses, what fails more than it did.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

use super::tally::BUCKETS;
use crate::store::{ClientRow, LatencyRow, LossRow, UsageRow};

/// Calls of a version from which on its failures say something.
const ENOUGH: i64 = 10;

/// Use over some days.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct Usage {
    /// By prompt, most used first.
    pub prompts: Vec<PromptUsage>,
    /// Prompts of the served library that nobody got.
    pub unused: Vec<String>,
    /// Prompts whose newest version fails more than the one before.
    pub rising: Vec<Rising>,
    /// Calls that could not be counted.
    pub lost_calls: i64,
    /// Deliveries that have no row.
    pub lost_deliveries: i64,
}

/// Use of one prompt.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct PromptUsage {
    /// Its name.
    pub prompt: String,
    /// All of it.
    #[serde(flatten)]
    pub all: Counts,
    /// By version, newest first; what was counted before versions were known has none.
    pub versions: Vec<VersionUsage>,
    /// By client, most used first: its name and version as it says.
    pub clients: Vec<ClientUsage>,
}

/// Use of one version.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct VersionUsage {
    /// The version, where it was known.
    pub version: Option<i64>,
    /// All of it.
    #[serde(flatten)]
    pub all: Counts,
}

/// Use by one client.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct ClientUsage {
    /// Its name, as it says.
    pub client: String,
    /// Its version, as it says.
    pub version: String,
    /// Times it got the prompt.
    pub gets: i64,
}

/// What was counted.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, ToSchema)]
#[schema(as = UsageCounts)]
pub struct Counts {
    /// Times it was delivered.
    pub gets: i64,
    /// Times it could not be rendered.
    pub failed: i64,
    /// Times its arguments did not satisfy its declaration.
    pub refused: i64,
    /// Given values that completion offers.
    pub picks: i64,
    /// Half of the gets took at most so many milliseconds, to a factor of two.
    pub p50_ms: Option<f64>,
    /// Nineteen in twenty took at most so many milliseconds, to a factor of two.
    pub p95_ms: Option<f64>,
    /// The slowest, in milliseconds.
    pub max_ms: f64,
}

/// A prompt that fails more since a version.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, ToSchema)]
#[schema(as = RisingFailures)]
pub struct Rising {
    /// Its name.
    pub prompt: String,
    /// The version that fails more.
    pub version: i64,
    /// Of a hundred calls so many fail.
    pub percent: f64,
    /// The version before it that was used.
    pub before: i64,
    /// Of a hundred calls of that one so many failed.
    pub percent_before: f64,
}

#[allow(clippy::cast_precision_loss, reason = "counts, for people")]
fn real(n: i64) -> f64 {
    n as f64
}

impl Counts {
    fn add(&mut self, row: &UsageRow) {
        self.gets += row.gets;
        self.failed += row.failed;
        self.refused += row.refused;
        self.picks += row.picks;
        self.max_ms = self.max_ms.max(real(row.micros_max) / 1000.0);
    }

    fn times(&mut self, buckets: &BTreeMap<i64, i64>) {
        self.p50_ms = quantile(buckets, 0.5).map(|ms| ms.min(self.max_ms));
        self.p95_ms = quantile(buckets, 0.95).map(|ms| ms.min(self.max_ms));
    }

    /// Of a hundred calls so many failed; none of too few.
    fn percent(&self) -> Option<f64> {
        let failed = self.failed + self.refused;
        let calls = self.gets + failed;
        (calls >= ENOUGH).then(|| 100.0 * real(failed) / real(calls))
    }
}

/// The time in milliseconds below which a share of the gets stayed: the end of its bucket.
fn quantile(buckets: &BTreeMap<i64, i64>, share: f64) -> Option<f64> {
    let all: i64 = buckets.values().sum();
    let mut wanted = share * real(all);
    for (bucket, gets) in buckets {
        wanted -= real(*gets);
        if wanted <= 1e-9 {
            let exponent = i32::try_from((*bucket).clamp(0, BUCKETS)).unwrap_or(0);
            return Some(0.1 * 2f64.powi(exponent));
        }
    }
    None
}

/// What rows of use come to: those by version, those by client; `known` are the prompts of the served library.
pub fn usage<'a>(
    rows: &[UsageRow],
    clients: &[ClientRow],
    latency: &[LatencyRow],
    losses: &[LossRow],
    known: impl Iterator<Item = &'a str>,
) -> Usage {
    #[derive(Default)]
    struct Of {
        all: Counts,
        times: BTreeMap<i64, i64>,
        versions: BTreeMap<i64, (Counts, BTreeMap<i64, i64>)>,
        clients: Vec<ClientUsage>,
    }
    let mut by_prompt: BTreeMap<&str, Of> = BTreeMap::new();
    for row in rows {
        let of = by_prompt.entry(&row.prompt).or_default();
        of.all.add(row);
        of.versions.entry(row.version).or_default().0.add(row);
    }
    for row in clients {
        let of = by_prompt.entry(&row.prompt).or_default();
        of.clients.push(ClientUsage {
            client: row.client.clone(),
            version: row.client_version.clone(),
            gets: row.gets,
        });
    }
    for row in latency {
        let of = by_prompt.entry(&row.prompt).or_default();
        *of.times.entry(row.bucket).or_default() += row.gets;
        let times = &mut of.versions.entry(row.version).or_default().1;
        *times.entry(row.bucket).or_default() += row.gets;
    }
    let mut unused: Vec<String> = known
        .filter(|name| by_prompt.get(name).is_none_or(|of| of.all.gets == 0))
        .map(str::to_owned)
        .collect();
    unused.sort();
    let mut out = Usage {
        unused,
        ..Usage::default()
    };
    for (prompt, mut of) in by_prompt {
        of.all.times(&of.times);
        for (counts, times) in of.versions.values_mut() {
            counts.times(times);
        }
        out.rising.extend(rising(prompt, &of.versions));
        of.clients.sort_by_key(|client| -client.gets);
        out.prompts.push(PromptUsage {
            prompt: prompt.to_owned(),
            all: of.all,
            versions: of
                .versions
                .into_iter()
                .rev()
                .map(|(version, (all, _))| VersionUsage {
                    version: (version > 0).then_some(version),
                    all,
                })
                .collect(),
            clients: of.clients,
        });
    }
    out.prompts.sort_by_key(|prompt| -prompt.all.gets);
    for row in losses {
        match row.kind.as_str() {
            "usage" => out.lost_calls += row.lost,
            _ => out.lost_deliveries += row.lost,
        }
    }
    out
}

/// Whether the newest version that is used enough fails more than the one before it: at least twice as often, and five in
/// a hundred more.
fn rising<T>(prompt: &str, versions: &BTreeMap<i64, (Counts, T)>) -> Option<Rising> {
    let mut newest = versions
        .iter()
        .rev()
        .filter(|(version, _)| **version > 0)
        .filter_map(|(version, (counts, _))| Some((*version, counts.percent()?)));
    let (version, percent) = newest.next()?;
    let (before, percent_before) = newest.next()?;
    (percent >= 2.0 * percent_before && percent >= percent_before + 5.0).then(|| Rising {
        prompt: prompt.to_owned(),
        version,
        percent,
        before,
        percent_before,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn row(prompt: &str, version: i64, gets: i64, failed: i64) -> UsageRow {
        UsageRow {
            prompt: prompt.into(),
            version,
            client: "zed".into(),
            gets,
            failed,
            micros_max: 5000,
            ..UsageRow::default()
        }
    }

    #[test]
    fn failures_that_rose_after_a_version_are_told() {
        let rows = [
            row("a", 1, 100, 1),
            row("a", 2, 20, 10),
            row("b", 1, 100, 50),
            row("b", 2, 100, 50),
            row("c", 1, 100, 0),
            // too few to say anything
            row("c", 2, 0, 3),
            row("d", 0, 100, 0),
            row("d", 7, 10, 90),
        ];
        let usage = usage(&rows, &[], &[], &[], ["a", "z", "c"].into_iter());
        let rising: Vec<_> = usage
            .rising
            .iter()
            .map(|rising| (rising.prompt.as_str(), rising.version, rising.before))
            .collect();
        assert_eq!(rising, [("a", 2, 1)]);
        assert_eq!(usage.unused, ["z"]);
        assert_eq!(usage.prompts.len(), 4);
        assert_eq!(usage.prompts[0].prompt, "b");
        let versions: Vec<_> = usage.prompts[3]
            .versions
            .iter()
            .map(|v| v.version)
            .collect();
        assert_eq!(versions, [Some(2), Some(1)]);
    }

    #[test]
    fn quantiles_are_ends_of_buckets() {
        let buckets = BTreeMap::from([(1, 50), (3, 45), (10, 5)]);
        assert_eq!(quantile(&buckets, 0.5), Some(0.2));
        assert_eq!(quantile(&buckets, 0.95), Some(0.8));
        assert_eq!(quantile(&buckets, 0.99), Some(102.4));
        assert_eq!(quantile(&BTreeMap::new(), 0.5), None);
    }
}
