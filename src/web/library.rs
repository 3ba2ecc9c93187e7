//! The library: every prompt that may be seen, by folder, tag and search, with what is known of each.

use std::collections::{BTreeMap, HashMap, HashSet};
use std::sync::Arc;

use axum::response::Response;
use serde::Serialize;

use super::page::{Page, show};
use super::text::{Lang, Query};
use super::visit::{Visit, reads};
use super::{Web, waiting};
use crate::prompt::{Lane, Prompt};
use crate::records::calendar;
use crate::registry::Snapshot;
use crate::registry::versions::Label;
use crate::search::{Access, Ask, Item, Kinds};

/// Prompts of one page.
const SHOWN: usize = 100;
/// Tags that are offered, the most used.
const TAGS: usize = 24;
/// Days of the small charts.
pub(super) const DAYS: usize = 30;

/// What the template sees.
#[derive(Debug, Serialize)]
pub struct Library {
    /// Whether there is no prompt at all.
    pub is_empty: bool,
    /// What to do about that.
    pub steps: Vec<Step>,
    /// What is wrong with the tip of main, a line each.
    pub problems: Vec<String>,
    /// What was searched for.
    pub query: String,
    /// What else is chosen, for the form.
    pub kept: Vec<Field>,
    /// How many prompts fit.
    pub total: usize,
    /// Folders, the first of which is all of them.
    pub folders: Vec<Folder>,
    /// Tags that can be chosen.
    pub tags: Vec<Tag>,
    /// Those of this page.
    pub prompts: Vec<Row>,
    /// Whether use is recorded.
    pub has_use: bool,
    /// Where the page before is.
    pub previous: Option<String>,
    /// Where the next page is.
    pub next: Option<String>,
}

/// One thing to do.
#[derive(Debug, Serialize)]
pub struct Step {
    /// Its text is `library.empty.<text>`.
    pub text: &'static str,
    /// What to type.
    pub command: String,
}

/// A field of a form.
#[derive(Debug, Serialize)]
pub struct Field {
    /// Its name.
    pub name: String,
    /// What it holds.
    pub value: String,
}

/// A folder of the filters.
#[derive(Debug, Serialize)]
pub struct Folder {
    /// Its name; empty for all of them.
    pub name: String,
    /// Prompts in it and below.
    pub count: usize,
    /// Where it leads.
    pub href: String,
    /// Whether it is chosen.
    pub current: bool,
}

/// A tag of the filters.
#[derive(Debug, Serialize)]
pub struct Tag {
    /// Its name.
    pub name: String,
    /// Where it leads: to it, or without it.
    pub href: String,
    /// Whether it is chosen.
    pub current: bool,
}

/// A prompt in the list.
#[derive(Debug, Serialize)]
pub struct Row {
    /// Its name.
    pub name: String,
    /// Its title, or its name.
    pub title: String,
    /// What it is for.
    pub description: Option<String>,
    /// The version that is served, where it is known.
    pub version: Option<u64>,
    /// Labels that are on it.
    pub labels: Vec<Label>,
    /// Its tags.
    pub tags: Vec<String>,
    /// Why it is rendered apart, where it is.
    pub worker: Option<String>,
    /// Open proposals that change it.
    pub proposals: usize,
    /// Times it was got in 30 days.
    pub uses: i64,
    /// Its chart, as the path of an SVG of 119 by 24.
    pub bars: String,
}

impl Page for Library {
    const TEMPLATE: &'static str = "library.html";
    const SECTION: &'static str = "library";

    fn title(&self, lang: Lang) -> String {
        lang.text("library.title", &[])
    }
}

/// The page.
pub(super) async fn page(web: &Web, visit: &Visit) -> Response {
    let library = library(web, visit).await;
    show(web, visit, &library).await
}

async fn library(web: &Web, visit: &Visit) -> Library {
    let snapshot = web.api.registry.snapshot();
    let seen: Vec<&Arc<Prompt>> = snapshot
        .catalog
        .list(None)
        .iter()
        .filter(|prompt| visit.reads(&prompt.path))
        .collect();
    let query = &visit.query;
    let (asked, folder) = (query.get("q").unwrap_or_default(), query.get("folder"));
    let chosen: HashSet<&str> = query.all("tag").collect();
    let fits = |prompt: &&Arc<Prompt>| {
        folder.is_none_or(|folder| is_within(&prompt.folder, folder))
            && chosen
                .iter()
                .all(|tag| prompt.tags.iter().any(|own| own == tag))
    };
    let found: Vec<&Arc<Prompt>> = if asked.trim().is_empty() {
        seen.iter().copied().filter(fits).collect()
    } else {
        // in the order of the search, which knows what is meant
        let mut ask = Ask::new(asked, seen.len().max(1));
        ask.kinds = Kinds::Prompts;
        let actor = visit.actor.clone();
        ask.access = Access::new(move |item: &Item| reads(&actor, item.path()));
        let hits = web.api.search.search(&snapshot.catalog, ask).await.hits;
        let prompts = hits
            .iter()
            .filter_map(|hit| snapshot.catalog.prompt(hit.item.name()));
        prompts.filter(fits).collect()
    };
    let from = query
        .get("from")
        .and_then(|from| from.parse::<usize>().ok())
        .unwrap_or_default()
        .min(found.len());
    let shown: Vec<&Arc<Prompt>> = found.iter().copied().skip(from).take(SHOWN).collect();
    let names: Vec<&str> = shown.iter().map(|prompt| prompt.name.as_str()).collect();
    let uses = uses(web, &names).await;
    let waiting = waiting::by_prompt(web, visit).await;
    let labels = snapshot.labels(|path| visit.reads(path));
    let page = |from: usize| {
        let from = (from > 0).then(|| from.to_string());
        format!("/{}", query.with("from", from.as_deref()))
    };
    Library {
        is_empty: seen.is_empty(),
        steps: steps(web),
        problems: problems(&snapshot, visit),
        query: asked.to_owned(),
        kept: query
            .pairs()
            .filter(|(name, value)| matches!(*name, "folder" | "tag") && !value.is_empty())
            .map(|(name, value)| Field {
                name: name.to_owned(),
                value: value.to_owned(),
            })
            .collect(),
        total: found.len(),
        folders: folders(&seen, query, folder),
        tags: tags(&seen, query, &chosen),
        prompts: shown
            .iter()
            .map(|prompt| {
                let name = prompt.name.as_str();
                let days = uses.as_ref().and_then(|uses| uses.get(name));
                Row {
                    name: name.to_owned(),
                    title: prompt.title.clone().unwrap_or_else(|| name.to_owned()),
                    description: prompt.description.clone(),
                    version: snapshot.served_version(name).map(|(number, _)| number),
                    labels: labels.get(name).cloned().unwrap_or_default(),
                    tags: prompt.tags.clone(),
                    worker: match &prompt.lane {
                        Lane::Fast(_) => None,
                        Lane::Worker(reason) => Some(reason.why.clone()),
                    },
                    proposals: waiting.get(&*prompt.path).map_or(0, Vec::len),
                    uses: days.map_or(0, |days| days.iter().sum()),
                    bars: days.map(bars).unwrap_or_default(),
                }
            })
            .collect(),
        has_use: uses.is_some(),
        previous: (from > 0).then(|| page(from.saturating_sub(SHOWN))),
        next: (from + SHOWN < found.len()).then(|| page(from + SHOWN)),
    }
}

/// What is wrong with the tip, for who sees everything: the lines name files.
fn problems(snapshot: &Snapshot, visit: &Visit) -> Vec<String> {
    if !visit.actor.sees_all() {
        return Vec::new();
    }
    let lines = snapshot.status.tip_problems.iter();
    lines.take(5).cloned().collect()
}

/// Whether a folder is another one or lies below it.
fn is_within(folder: &str, of: &str) -> bool {
    folder
        .strip_prefix(of.trim_matches('/'))
        .is_some_and(|rest| rest.is_empty() || rest.starts_with('/'))
}

fn steps(web: &Web) -> Vec<Step> {
    let mut out = Vec::new();
    if web.git {
        out.push(Step {
            text: "clone",
            command: format!("git clone {}/library.git", web.url),
        });
    }
    out.push(Step {
        text: "write",
        command: "cuebook init .".to_owned(),
    });
    out.push(Step {
        text: "check",
        command: "cuebook check".to_owned(),
    });
    if web.git {
        out.push(Step {
            text: "push",
            command: "git add . && git commit -m \"First prompts\" && git push origin HEAD:main"
                .to_owned(),
        });
    }
    out
}

fn folders(seen: &[&Arc<Prompt>], query: &Query, current: Option<&str>) -> Vec<Folder> {
    let mut counts: BTreeMap<&str, usize> = BTreeMap::new();
    for prompt in seen {
        let folder = &*prompt.folder;
        let ends = folder.match_indices('/').map(|(at, _)| at);
        for end in ends.chain([folder.len()]).filter(|end| *end > 0) {
            *counts.entry(&folder[..end]).or_default() += 1;
        }
    }
    let without = query.without("from");
    let href = |folder: Option<&str>| format!("/{}", without.with("folder", folder));
    let all = Folder {
        name: String::new(),
        count: seen.len(),
        href: href(None),
        current: current.is_none(),
    };
    let others = counts.into_iter().map(|(name, count)| Folder {
        name: name.to_owned(),
        count,
        href: href(Some(name)),
        current: current == Some(name),
    });
    [all].into_iter().chain(others).collect()
}

fn tags(seen: &[&Arc<Prompt>], query: &Query, chosen: &HashSet<&str>) -> Vec<Tag> {
    let mut counts: BTreeMap<&str, usize> = BTreeMap::new();
    for tag in seen.iter().flat_map(|prompt| &prompt.tags) {
        *counts.entry(tag).or_default() += 1;
    }
    let mut tags: Vec<(&str, usize)> = counts.into_iter().collect();
    tags.sort_by_key(|(name, count)| (!chosen.contains(name), std::cmp::Reverse(*count), *name));
    tags.truncate(TAGS.max(chosen.len()));
    let without = query.without("from");
    tags.into_iter()
        .map(|(name, _)| {
            let current = chosen.contains(name);
            Tag {
                name: name.to_owned(),
                href: format!("/{}", without.toggled("tag", name)),
                current,
            }
        })
        .collect()
}

/// Gets of each day of the last 30 by prompt, oldest first; none where nothing is recorded.
pub(super) async fn uses(web: &Web, names: &[&str]) -> Option<HashMap<String, [i64; DAYS]>> {
    let store = web.api.records.as_ref()?.store().ok()?;
    let today = calendar::day(crate::clock::unix_millis());
    let first = today - i64::try_from(DAYS).unwrap_or(30) + 1;
    let rows = store
        .gets_by_day(first, today, names)
        .await
        .inspect_err(|error| tracing::error!(%error, "the use of prompts could not be read"))
        .ok()?;
    let mut out: HashMap<String, [i64; DAYS]> = HashMap::new();
    for (prompt, day, gets) in rows {
        if let Ok(at) = usize::try_from(day - first)
            && let Some(of_day) = out.entry(prompt).or_insert([0; DAYS]).get_mut(at)
        {
            *of_day += gets;
        }
    }
    Some(out)
}

/// A chart of 30 days as the path of an SVG of 119 by 24: a bar of 3 for each day that has something, with 1 between.
pub(super) fn bars(days: &[i64; DAYS]) -> String {
    let most = days.iter().copied().max().unwrap_or_default().max(1);
    let mut path = String::new();
    for (at, &count) in days.iter().enumerate() {
        if count > 0 {
            // what is little is seen all the same
            let height = (count * 22 / most).max(2);
            path.push_str(&format!("M{} 23v-{height}h3v{height}z", at * 4));
        }
    }
    path
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_chart_has_a_bar_for_each_day_with_something() {
        let mut days = [0; DAYS];
        assert_eq!(bars(&days), "");
        (days[0], days[29]) = (1, 1000);
        assert_eq!(bars(&days), "M0 23v-2h3v2zM116 23v-22h3v22z");
    }

    #[test]
    fn a_folder_holds_what_is_below_it() {
        assert!(is_within("sre/db", "sre") && is_within("sre", "sre/"));
        assert!(!is_within("sre-old", "sre") && !is_within("", "sre"));
    }
}
