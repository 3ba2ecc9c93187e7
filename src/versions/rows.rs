//! Histories as rows, and rows as histories.

use std::collections::{BTreeMap, HashMap, HashSet};
use std::sync::Arc;

use crate::history::{Commit, History, Id, LabelsAt, Numbered, Version};
use crate::prompt::parse::hex;
use crate::store::{CommitRow, LabelRow, NameRow, VersionRow, VersionRows};

fn text(id: &Id) -> String {
    hex(id).to_string()
}

fn id(text: &str) -> Option<Id> {
    let bytes = text.as_bytes();
    if bytes.len() != 40 || !text.is_ascii() {
        return None;
    }
    let mut out = [0; 20];
    for (i, byte) in out.iter_mut().enumerate() {
        *byte = u8::from_str_radix(&text[2 * i..2 * i + 2], 16).ok()?;
    }
    Some(out)
}

#[derive(Default)]
struct Rows {
    out: VersionRows,
    commits: HashSet<Id>,
}

impl Rows {
    fn commit(&mut self, commit: &Commit) -> String {
        let id = text(&commit.id);
        if self.commits.insert(commit.id) {
            self.out.commits.push(CommitRow {
                commit_id: id.clone(),
                seconds: commit.seconds,
                author: commit.author.to_string(),
                subject: commit.subject.to_string(),
            });
        }
        id
    }

    fn name(&mut self, name: &str, numbered: &Numbered, from: usize) {
        self.out.names.push(NameRow {
            name: name.to_owned(),
            last: numbered.last.as_ref().map(text),
        });
        for (index, version) in numbered.versions.iter().enumerate().skip(from) {
            let commit_id = self.commit(&version.commit);
            self.out.versions.push(VersionRow {
                name: name.to_owned(),
                number: i64::try_from(index + 1).unwrap_or(i64::MAX),
                commit_id,
                path: version.path.to_string(),
                content: text(&version.content),
            });
        }
    }

    /// What a name has beyond another history; none where it does not go on from that.
    fn beyond(&mut self, name: &str, before: &History, now: &Arc<Numbered>) -> Option<()> {
        let from = match before.of(name) {
            Some(known) if Arc::ptr_eq(known, now) => return Some(()),
            Some(known) => {
                let length = known.versions.len();
                if now.versions.get(..length) != Some(&known.versions[..]) {
                    return None;
                }
                length
            }
            None => 0,
        };
        self.name(name, now, from);
        Some(())
    }

    fn label(&mut self, position: usize, at: &LabelsAt) {
        let commit_id = self.commit(&at.commit);
        self.out.labels.push(LabelRow {
            position: i64::try_from(position).unwrap_or(i64::MAX),
            commit_id,
            blob: at.blob.as_ref().map(text),
        });
    }
}

/// Every row of a history.
pub(super) fn all(history: &History) -> VersionRows {
    added(&History::default(), history).unwrap_or_default()
}

/// The rows that a history has beyond another; none where it does not go on from that.
pub(super) fn added(before: &History, now: &History) -> Option<VersionRows> {
    let mut rows = Rows::default();
    if let Some(changed) = now.changed_since(before) {
        for name in changed {
            rows.beyond(name, before, now.of(name)?)?;
        }
    } else {
        for (name, numbered) in now.names() {
            rows.beyond(name, before, numbered)?;
        }
        if before.names().any(|(name, _)| now.of(name).is_none()) {
            return None;
        }
        let known = before.labels().count();
        if !before.labels().eq(now.labels().take(known)) {
            return None;
        }
    }
    let known = before.labels().len();
    for (position, at) in now.labels().enumerate().skip(known) {
        rows.label(position, at);
    }
    Some(rows.out)
}

/// The history that rows say; none where they are not whole.
pub(super) fn history(tip: &str, rows: VersionRows) -> Option<History> {
    let tip = id(tip)?;
    let mut authors: HashSet<Arc<str>> = HashSet::new();
    let mut commits: HashMap<String, Arc<Commit>> = HashMap::with_capacity(rows.commits.len());
    for row in rows.commits {
        let mut commit = Commit::new(id(&row.commit_id)?, row.seconds, &row.author, &row.subject);
        match authors.get(&commit.author) {
            Some(known) => commit.author = known.clone(),
            None => {
                authors.insert(commit.author.clone());
            }
        }
        commits.insert(row.commit_id, Arc::new(commit));
    }
    let mut names: HashMap<Arc<str>, Numbered> = HashMap::with_capacity(rows.names.len());
    for row in rows.names {
        let last = match &row.last {
            Some(last) => Some(id(last)?),
            None => None,
        };
        let numbered = Numbered {
            versions: Vec::new(),
            last,
        };
        names.insert(row.name.into(), numbered);
    }
    let mut paths: HashSet<Arc<str>> = HashSet::new();
    for row in rows.versions {
        let numbered = names.get_mut(row.name.as_str())?;
        if u64::try_from(row.number).ok()? != numbered.latest() + 1 {
            return None;
        }
        let path: Arc<str> = row.path.into();
        let path = paths.get(&path).cloned().unwrap_or_else(|| {
            paths.insert(path.clone());
            path
        });
        numbered.versions.push(Version {
            commit: commits.get(&row.commit_id)?.clone(),
            path,
            content: id(&row.content)?,
        });
    }
    let mut labels = Vec::with_capacity(rows.labels.len());
    for (expected, row) in (0..).zip(rows.labels) {
        if row.position != expected {
            return None;
        }
        let blob = match &row.blob {
            Some(blob) => Some(id(blob)?),
            None => None,
        };
        labels.push(LabelsAt {
            commit: commits.get(&row.commit_id)?.clone(),
            blob,
        });
    }
    let whole = names.values().all(|numbered| numbered.latest() > 0);
    whole.then(|| History::kept(tip, names, labels))
}

/// Rows by table and key, as text.
pub(super) type Shown = BTreeMap<&'static str, BTreeMap<String, String>>;

/// Rows as they are compared and shown.
pub(super) fn shown(rows: &VersionRows) -> Shown {
    let gone = || "gone".to_owned();
    Shown::from([
        (
            "version",
            rows.versions
                .iter()
                .map(|row| {
                    (
                        format!("{} v{}", row.name, row.number),
                        format!("{} {} {}", row.commit_id, row.path, row.content),
                    )
                })
                .collect(),
        ),
        (
            "version_name",
            rows.names
                .iter()
                .map(|row| (row.name.clone(), row.last.clone().unwrap_or_else(gone)))
                .collect(),
        ),
        (
            "version_commit",
            rows.commits
                .iter()
                .map(|row| {
                    (
                        row.commit_id.clone(),
                        format!("{} {} {}", row.seconds, row.author, row.subject),
                    )
                })
                .collect(),
        ),
        (
            "label_change",
            rows.labels
                .iter()
                .map(|row| {
                    (
                        row.position.to_string(),
                        format!(
                            "{} {}",
                            row.commit_id,
                            row.blob.clone().unwrap_or_else(gone)
                        ),
                    )
                })
                .collect(),
        ),
    ])
}
