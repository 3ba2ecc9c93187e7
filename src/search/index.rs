//! The index in the database: kept at what is served by writing what changed, asked for candidates, proven, made again.

use std::collections::{BTreeMap, HashMap, HashSet};
use std::sync::Arc;
use std::time::Duration;

use rpds::HashTrieMapSync;
use tokio_util::sync::CancellationToken;

use super::document::{Document, Documents, hash};
use super::form::RULE;
use super::query::Query;
use super::{Index, MAX_CANDIDATES, Search};
use crate::prompt::parse::hex;
use crate::registry::Registry;
use crate::store::{IndexDifference, SearchState, SearchText, Store, StoreError};

/// Documents written in one go: others who write wait for no more.
const BATCH: usize = 200;
/// Texts read in one go.
const PAGE: i64 = 500;
/// Runs of three characters that one word is looked up by, at most.
const RUNS: usize = 6;
/// Time between two looks at what is used.
const COUNTED: Duration = Duration::from_mins(10);
/// Days of use that count.
const DAYS: i64 = 30;
/// How long a database that failed is left alone, unless something is published.
const AGAIN: Duration = Duration::from_secs(30);

/// What the database holds, where it is whole.
#[derive(Debug)]
pub(super) struct Written {
    digest: String,
    pub(super) revision: Option<String>,
    by_id: ById,
}

/// What is known of the rows; `by_id` and `at` are of what was written last.
#[derive(Debug, Default)]
pub(super) struct Rows {
    /// By kind and name: id, and what the text was made from.
    known: HashMap<(String, String), (i64, String)>,
    by_id: ById,
    at: Option<Arc<Documents>>,
    /// Texts and rows that must go, whatever is served.
    wrong: Vec<i64>,
    state: Option<SearchState>,
}

type ById = HashTrieMapSync<i64, Arc<Document>>;

impl Search {
    /// Documents that may fit, from the index; none where all of them must be looked at.
    pub(super) async fn candidates(
        &self,
        documents: &Documents,
        query: &Query,
    ) -> (Index, Option<Vec<Arc<Document>>>) {
        let written = self.written.load_full();
        let digest = documents.digest().hex();
        let (Some(store), Some(written)) = (
            self.store.get(),
            written.filter(|written| written.digest == digest),
        ) else {
            return (Index::Scan, None);
        };
        let runs = runs(query);
        if runs.is_empty() {
            return (Index::Current, None);
        }
        let limit = i64::try_from(MAX_CANDIDATES + 1).unwrap_or(i64::MAX);
        let ids = match store.search_candidates(&digest, &runs, limit).await {
            Ok(Some(ids)) => ids,
            Ok(None) => return (Index::Scan, None),
            Err(error) => {
                tracing::warn!(%error, "the search index could not be read; everything is looked at");
                return (Index::Scan, None);
            }
        };
        if ids.len() > MAX_CANDIDATES {
            return (Index::Current, None);
        }
        let found: Option<Vec<Arc<Document>>> = ids
            .iter()
            .map(|id| written.by_id.get(id).cloned())
            .collect();
        match found {
            Some(found) => (Index::Current, Some(found)),
            None => (Index::Scan, None),
        }
    }

    /// Keeps the index at what is served until it is cancelled.
    pub async fn keep(self: Arc<Self>, registry: Arc<Registry>, cancel: CancellationToken) {
        let mut published = registry.subscribe();
        loop {
            published.mark_unchanged();
            let catching_up = self.catch_up(&registry);
            let Some(caught_up) = cancel.run_until_cancelled(catching_up).await else {
                return;
            };
            if let Err(error) = &caught_up {
                tracing::error!(%error, "the search index could not be written; search looks at everything meanwhile");
            }
            if let Err(error) = self.count_gets(crate::clock::unix_millis()).await {
                tracing::debug!(%error, "what is used could not be counted for search");
            }
            let pause = if caught_up.is_ok() { COUNTED } else { AGAIN };
            let next = async {
                tokio::select! {
                    changed = published.changed() => changed.is_ok(),
                    () = tokio::time::sleep(pause) => true,
                }
            };
            if cancel.run_until_cancelled(next).await != Some(true) {
                return;
            }
        }
    }

    /// Brings the index to what is served now: what differs is written, and nothing else.
    pub async fn catch_up(self: &Arc<Self>, registry: &Registry) -> Result<(), StoreError> {
        let Some(store) = self.store.get() else {
            return Ok(());
        };
        let mut held = self.rows.lock().await;
        self.catch_up_with(store, registry, &mut held).await
    }

    async fn catch_up_with(
        self: &Arc<Self>,
        store: &Store,
        registry: &Registry,
        held: &mut Option<Rows>,
    ) -> Result<(), StoreError> {
        let rows = match held.take() {
            Some(rows) => rows,
            None => load(store).await?,
        };
        let written = self.write(store, registry, rows).await;
        // what was half written is read again
        *held = Some(written?);
        Ok(())
    }

    /// Takes over what was got in the last 30 days; `now` in milliseconds since 1970.
    pub async fn count_gets(&self, now: i64) -> Result<(), StoreError> {
        let Some(store) = self.store.get() else {
            return Ok(());
        };
        let today = now.div_euclid(24 * 60 * 60 * 1000);
        let gets = store.gets_since(today - DAYS).await?.into_iter();
        self.set_gets(gets.map(|(name, gets)| (name.into(), u64::try_from(gets).unwrap_or(0))));
        Ok(())
    }

    async fn write(
        self: &Arc<Self>,
        store: &Store,
        registry: &Registry,
        mut rows: Rows,
    ) -> Result<Rows, StoreError> {
        let catalog = registry.snapshot().catalog.clone();
        let this = self.clone();
        let documents = super::off_thread(move || this.documents(&catalog)).await;
        let revision = documents.catalog().revision().commit().map(str::to_owned);
        if rows.state.as_ref().is_some_and(|state| state.rule != RULE) {
            store.clear_search().await?;
            rows = Rows::default();
        }
        let Changed { mut remove, add } = rows.changed(&documents);
        remove.append(&mut rows.wrong);
        let digest = documents.digest().hex();
        let whole = SearchState {
            rule: RULE,
            revision: revision.clone(),
            digest: Some(digest.clone()),
        };
        if !remove.is_empty() || !add.is_empty() || rows.state.as_ref() != Some(&whole) {
            self.written.store(None);
            // a name is free before it is taken again
            let removing = remove.chunks(BATCH).map(|ids| (ids, &[][..]));
            let adding = add.chunks(BATCH).map(|documents| (&[][..], documents));
            let mut steps: Vec<(&[i64], &[Arc<Document>])> = removing.chain(adding).collect();
            if remove.len().max(add.len()) <= BATCH {
                // a publish as most are: all or nothing
                steps = vec![(&remove, &add)];
            }
            let last = steps.len() - 1;
            for (step, (remove, add)) in steps.into_iter().enumerate() {
                let texts: Vec<SearchText> = add
                    .iter()
                    .map(|document| SearchText {
                        id: 0,
                        kind: document.item.kind().to_owned(),
                        name: document.item.name().to_owned(),
                        hash: hex(&document.hash).to_string(),
                        form: Some(document.form.to_string()),
                    })
                    .collect();
                let state = SearchState {
                    digest: whole.digest.clone().filter(|_| step == last),
                    ..whole.clone()
                };
                let ids = store.write_search(remove, &texts, &state).await?;
                for ((text, document), id) in texts.into_iter().zip(add).zip(ids) {
                    rows.by_id.insert_mut(id, document.clone());
                    rows.known.insert((text.kind, text.name), (id, text.hash));
                }
            }
            rows.state = Some(whole);
        }
        rows.at = Some(documents);
        self.written.store(Some(Arc::new(Written {
            digest,
            revision,
            by_id: rows.by_id.clone(),
        })));
        Ok(rows)
    }

    /// Compares the index with what is served; what differs names its row. Nothing is written but what was not yet.
    pub async fn verify(
        self: &Arc<Self>,
        registry: &Registry,
    ) -> Result<Vec<IndexDifference>, StoreError> {
        let Some(store) = self.store.get() else {
            return Ok(Vec::new());
        };
        // nobody writes until they are compared: they are at these documents, whatever is published meanwhile
        let mut held = self.rows.lock().await;
        let catalog = registry.snapshot().catalog.clone();
        let this = self.clone();
        let mut documents = super::off_thread(move || this.documents(&catalog)).await;
        let digest = documents.digest().hex();
        let at = store.search_state().await?.and_then(|state| state.digest);
        if at.as_deref() != Some(&digest) {
            self.catch_up_with(store, registry, &mut held).await?;
            if let Some(written) = held.as_ref().and_then(|rows| rows.at.clone()) {
                documents = written;
            }
        }
        let mut out = Vec::new();
        let mut expected: BTreeMap<(String, String), String> = documents
            .all()
            .iter()
            .map(|document| (key(document), hex(&document.hash).to_string()))
            .collect();
        for (row, text) in texts(store).await? {
            let expected = expected.remove(&(row.kind.clone(), row.name.clone()));
            let name = format!("{} {}", row.kind, row.name);
            if expected.as_deref() != Some(&*row.hash) {
                out.push(IndexDifference {
                    table: "search_document",
                    row: name.clone(),
                    expected: expected.clone(),
                    found: Some(row.hash),
                });
            }
            if expected.is_some() && expected != text {
                out.push(IndexDifference {
                    table: "search_text",
                    row: name,
                    expected,
                    found: text,
                });
            }
        }
        out.extend(
            expected
                .into_iter()
                .map(|((kind, name), hash)| IndexDifference {
                    table: "search_document",
                    row: format!("{kind} {name}"),
                    expected: Some(hash),
                    found: None,
                }),
        );
        out.extend(
            store
                .search_strays()
                .await?
                .into_iter()
                .map(|id| IndexDifference {
                    table: "search_text",
                    row: format!("the text {id}"),
                    expected: None,
                    found: Some("a text of no row".to_owned()),
                }),
        );
        out.extend(store.check_search().await?.map(|fault| IndexDifference {
            table: "search_text",
            row: "its index".to_owned(),
            expected: Some("what its texts say".to_owned()),
            found: Some(fault),
        }));
        Ok(out)
    }

    /// Mends what [`Self::verify`] finds, row by row where that is enough. What was found.
    pub async fn reindex(
        self: &Arc<Self>,
        registry: &Registry,
    ) -> Result<Vec<IndexDifference>, StoreError> {
        let Some(store) = self.store.get() else {
            return Ok(Vec::new());
        };
        // tables that cannot be read, or be compared, are made anew
        let found = match self.verify(registry).await {
            Ok(found) if found.is_empty() => return Ok(found),
            Ok(found) => found,
            Err(error) => {
                let fault = IndexDifference {
                    table: "search_text",
                    row: "all of it".to_owned(),
                    expected: Some("a table that can be read".to_owned()),
                    found: Some(error.to_string()),
                };
                self.start_over(store, registry).await?;
                return Ok(vec![fault]);
            }
        };
        let broken = found.iter().any(|difference| difference.row == "its index");
        if !broken {
            let mut held = self.rows.lock().await;
            let mut rows = Rows {
                state: store.search_state().await?,
                wrong: store.search_strays().await?,
                ..Rows::default()
            };
            for (row, text) in texts(store).await? {
                if text.as_deref() == Some(&*row.hash) {
                    rows.known.insert((row.kind, row.name), (row.id, row.hash));
                } else {
                    rows.wrong.push(row.id);
                }
            }
            *held = Some(rows);
            drop(held);
            self.catch_up(registry).await?;
        }
        if broken || !self.verify(registry).await?.is_empty() {
            self.start_over(store, registry).await?;
        }
        Ok(found)
    }

    async fn start_over(
        self: &Arc<Self>,
        store: &Store,
        registry: &Registry,
    ) -> Result<(), StoreError> {
        let mut held = self.rows.lock().await;
        self.written.store(None);
        store.clear_search().await?;
        *held = None;
        drop(held);
        self.catch_up(registry).await
    }
}

/// What must be written.
struct Changed {
    remove: Vec<i64>,
    add: Vec<Arc<Document>>,
}

impl Rows {
    /// What differs from what was written last, or from the rows that were found; it is taken out of what is known.
    fn changed(&mut self, documents: &Documents) -> Changed {
        let mut out = Changed {
            remove: Vec::new(),
            add: Vec::new(),
        };
        let Some(before) = self.at.take() else {
            let mut gone = std::mem::take(&mut self.known);
            for document in documents.all() {
                match gone.remove_entry(&key(document)) {
                    Some((key, (id, hash))) if *hash == *hex(&document.hash) => {
                        self.by_id.insert_mut(id, document.clone());
                        self.known.insert(key, (id, hash));
                        continue;
                    }
                    Some((_, (id, _))) => out.remove.push(id),
                    None => {}
                }
                out.add.push(document.clone());
            }
            out.remove.extend(gone.into_values().map(|(id, _)| id));
            return out;
        };
        // both are in the order of lists: what changed lies between two parts that are the same
        let (old, new) = (before.all(), documents.all());
        let same = |(old, new): &(&Arc<Document>, &Arc<Document>)| Arc::ptr_eq(old, new);
        let first = old.iter().zip(new).take_while(same).count();
        let (old, new) = (&old[first..], &new[first..]);
        let last = old
            .iter()
            .rev()
            .zip(new.iter().rev())
            .take_while(same)
            .count();
        let (old, new) = (&old[..old.len() - last], &new[..new.len() - last]);
        let places = |documents: &[Arc<Document>]| -> HashSet<*const Document> {
            documents.iter().map(Arc::as_ptr).collect()
        };
        let (stay, known) = (places(new), places(old));
        for document in old {
            if !stay.contains(&Arc::as_ptr(document))
                && let Some((id, _)) = self.known.remove(&key(document))
            {
                self.by_id.remove_mut(&id);
                out.remove.push(id);
            }
        }
        let added = new.iter();
        out.add
            .extend(added.filter(|d| !known.contains(&Arc::as_ptr(d))).cloned());
        out
    }
}

fn key(document: &Document) -> (String, String) {
    let item = &document.item;
    (item.kind().to_owned(), item.name().to_owned())
}

async fn load(store: &Store) -> Result<Rows, StoreError> {
    let state = store.search_state().await?;
    let rows = store.search_rows().await?.into_iter();
    Ok(Rows {
        known: rows
            .map(|row| ((row.kind, row.name), (row.id, row.hash)))
            .collect(),
        state,
        ..Rows::default()
    })
}

/// Every row, with what its text is known by.
async fn texts(store: &Store) -> Result<Vec<(SearchText, Option<String>)>, StoreError> {
    let mut out = Vec::new();
    let mut after = i64::MIN;
    loop {
        let page = store.search_texts(after, PAGE).await?;
        let Some(last) = page.last() else {
            return Ok(out);
        };
        after = last.id;
        for mut row in page {
            let form = row.form.take();
            let text = form.map(|form| hex(&hash(&row.kind, &row.name, &form)).to_string());
            out.push((row, text));
        }
    }
}

/// What the index is asked for: of each word that is found nowhere but in forms, some runs of three characters.
fn runs(query: &Query) -> Vec<String> {
    let mut out = Vec::new();
    for word in query.words.iter().filter(|word| !word.initials) {
        let characters: Vec<char> = word.form.chars().collect();
        let all = characters.len().saturating_sub(2);
        let asked = all.min(RUNS);
        for n in 0..asked {
            // from the first to the last, as far from each other as can be
            let at = if asked == 1 {
                0
            } else {
                n * (all - 1) / (asked - 1)
            };
            let run: String = characters[at..at + 3].iter().collect();
            if !out.contains(&run) {
                out.push(run);
            }
        }
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_are_asked_for_by_runs_of_three() {
        let asked = |text: &str| runs(&Query::parse(text));
        assert_eq!(asked("ab c ㄱㅈ ㄱㅈㅈㅇ *"), Vec::<String>::new());
        assert_eq!(asked("pay"), ["pay"]);
        assert_eq!(asked("pays db"), ["pay", "ays"]);
        assert_eq!(asked("결"), ["ㄱㅕㄹ"]);
        assert_eq!(asked("incident-triage").len(), RUNS);
        assert_eq!(asked("incident-triage").last().unwrap(), "age");
        assert_eq!(asked("障"), ["障\u{1}\u{2}"]);
    }
}
