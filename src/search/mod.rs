//! Search: one function for every way in (MCP, HTTP, the command line, the web).
//!
//! What is searched is held in memory, derived from the catalog that is served; what changed is made again and nothing
//! else. The index in the database only says which documents need not be looked at. So it decides how fast an answer is,
//! and never what is in it: where it is behind or cannot be read, everything is looked at, and the answer says so.

mod document;
mod form;
mod grams;
mod index;
mod page;
mod query;
mod rank;
mod snippet;

use std::collections::HashMap;
use std::fmt;
use std::sync::{Arc, Mutex, OnceLock, PoisonError};

use arc_swap::{ArcSwap, ArcSwapOption};
use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use serde::{Deserialize, Serialize};

use crate::catalog::Catalog;
use crate::store::Store;

pub use document::{Document, Documents, Field, Item, MAX_TEXT};
use index::{Rows, Written};
pub use page::{Page, PageHit};
pub use query::{Filter, Query, Word};
use rank::{Key, Matcher, Scored};
pub use snippet::{Match, Span};

/// Candidates that are taken from the index; where there are more, looking at everything costs less.
const MAX_CANDIDATES: usize = 200;

/// Decides what a caller may see; asked before anything is ranked or shown.
#[derive(Clone)]
pub struct Access(Arc<dyn Fn(&Item) -> bool + Send + Sync>);

impl Access {
    /// Sees what passes.
    pub fn new(sees: impl Fn(&Item) -> bool + Send + Sync + 'static) -> Self {
        Self(Arc::new(sees))
    }

    /// Sees what lies at a path that passes.
    pub fn reading(reads: impl Fn(&str) -> bool + Send + Sync + 'static) -> Self {
        Self::new(move |item| reads(item.path()))
    }

    /// Sees everything.
    pub fn all() -> Self {
        Self::new(|_| true)
    }
}

impl fmt::Debug for Access {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Access")
    }
}

/// Which kinds of things are looked for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Kinds {
    /// Both.
    All,
    /// Prompts alone.
    Prompts,
    /// Resources alone.
    Resources,
}

impl Kinds {
    fn has(self, item: &Item) -> bool {
        match self {
            Self::All => true,
            Self::Prompts => item.prompt().is_some(),
            Self::Resources => item.prompt().is_none(),
        }
    }
}

/// What is asked.
#[derive(Debug, Clone)]
pub struct Ask {
    /// What someone typed; every text is a query.
    pub query: String,
    /// Which kinds.
    pub kinds: Kinds,
    /// The only folder whose prompts are seen.
    pub folder: Option<Arc<str>>,
    /// What is seen.
    pub access: Access,
    /// Hits at most.
    pub limit: usize,
    /// Only what comes after this place.
    pub after: Option<Cursor>,
}

impl Ask {
    /// Asks for everything that a query finds, up to a number.
    pub fn new(query: impl Into<String>, limit: usize) -> Self {
        Self {
            query: query.into(),
            kinds: Kinds::All,
            folder: None,
            access: Access::all(),
            limit,
            after: None,
        }
    }
}

/// A place in an answer, from which the next one goes on.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Cursor {
    score: u32,
    kind: String,
    name: String,
}

impl Cursor {
    /// As it is sent.
    pub fn encode(&self) -> String {
        URL_SAFE_NO_PAD.encode(format!("{}\0{}\0{}", self.score, self.kind, self.name))
    }

    /// Reads one; none where it is not one of ours.
    pub fn decode(text: &str) -> Option<Self> {
        let bytes = URL_SAFE_NO_PAD.decode(text).ok()?;
        let text = String::from_utf8(bytes).ok()?;
        let mut parts = text.splitn(3, '\0');
        Some(Self {
            score: parts.next()?.parse().ok()?,
            kind: parts.next()?.to_owned(),
            name: parts.next()?.to_owned(),
        })
    }

    fn key(&self) -> Key<'_> {
        Key {
            score: self.score,
            kind: &self.kind,
            name: &self.name,
        }
    }
}

/// How an answer was found.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, utoipa::ToSchema)]
#[schema(as = SearchedBy)]
#[serde(rename_all = "lowercase")]
pub enum Index {
    /// The index was at the revision that was searched.
    Current,
    /// It was behind, being made, broken or there is none: everything was looked at.
    Scan,
}

/// What was found.
#[derive(Debug, Clone)]
pub struct Found {
    /// How.
    pub index: Index,
    /// In which catalog.
    pub catalog: Arc<Catalog>,
    /// How many there are in all.
    pub total: usize,
    /// The best of them, best first.
    pub hits: Vec<Hit>,
    /// Where the next answer goes on, where there is more.
    pub next: Option<Cursor>,
}

/// One of them.
#[derive(Debug, Clone)]
pub struct Hit {
    /// What it is.
    pub item: Item,
    /// How well it fits; only to be compared with others of one answer.
    pub score: u32,
    /// How often it was got lately; 0 for a resource.
    pub gets: u64,
    /// Where the words stand in it.
    pub matches: Vec<Match>,
}

/// Gets of prompts by name.
type Gets = HashMap<Box<str>, u64>;

/// The one search of a process.
#[derive(Debug, Default)]
pub struct Search {
    documents: ArcSwapOption<Documents>,
    /// One makes them; who asks meanwhile waits and takes the same.
    making: Mutex<()>,
    gets: ArcSwap<Gets>,
    store: OnceLock<Store>,
    /// What the database holds.
    written: ArcSwapOption<Written>,
    rows: tokio::sync::Mutex<Option<Rows>>,
}

impl Search {
    /// One without an index: everything is always looked at.
    pub fn new() -> Self {
        Self::default()
    }

    /// Puts its index into a database, once; [`Self::keep`] or [`Self::catch_up`] then writes it.
    pub fn index_in(&self, store: Store) {
        let _ = self.store.set(store);
    }

    /// Whether it has one.
    pub fn has_index(&self) -> bool {
        self.store.get().is_some()
    }

    /// How often each prompt was got lately; [`Self::keep`] takes it from the database. What is used comes before what fits as well and is not.
    pub fn set_gets(&self, gets: impl IntoIterator<Item = (Box<str>, u64)>) {
        self.gets.store(Arc::new(gets.into_iter().collect()));
    }

    /// The commit that the index is at; none while it is being made, and where there is none.
    pub fn indexed(&self) -> Option<String> {
        self.written.load().as_ref()?.revision.clone()
    }

    /// The documents of a catalog.
    fn documents(&self, catalog: &Arc<Catalog>) -> Arc<Documents> {
        let _making = self.making.lock().unwrap_or_else(PoisonError::into_inner);
        let before = self.documents.load_full();
        if let Some(documents) = before
            .as_ref()
            .filter(|d| Arc::ptr_eq(d.catalog(), catalog))
        {
            return documents.clone();
        }
        let documents = Arc::new(Documents::of(catalog.clone(), before.as_deref()));
        self.documents.store(Some(documents.clone()));
        documents
    }

    /// Finds in a catalog. Every text is a query; nothing fails.
    pub async fn search(self: &Arc<Self>, catalog: &Arc<Catalog>, ask: Ask) -> Found {
        let query = Query::parse(&ask.query);
        let documents = {
            let (this, catalog) = (self.clone(), catalog.clone());
            let known = self.documents.load_full();
            match known.filter(|d| Arc::ptr_eq(d.catalog(), &catalog)) {
                Some(documents) => documents,
                // after a publish what changed is made, at the first search everything
                None => off_thread(move || this.documents(&catalog)).await,
            }
        };
        let (index, candidates) = self.candidates(&documents, &query).await;
        let gets = self.gets.load_full();
        off_thread(move || {
            let all = candidates.as_deref().unwrap_or(documents.all());
            answer(&documents, all, &query, &gets, &ask, index)
        })
        .await
    }
}

/// Finds in a catalog without an index; blocks.
pub fn scan(catalog: &Arc<Catalog>, ask: &Ask) -> Found {
    let documents = Documents::of(catalog.clone(), None);
    let query = Query::parse(&ask.query);
    let all = documents.all();
    answer(&documents, all, &query, &Gets::new(), ask, Index::Scan)
}

/// A search looks at megabytes; requests go on meanwhile.
async fn off_thread<T: Send + 'static>(work: impl FnOnce() -> T + Send + 'static) -> T {
    match tokio::task::spawn_blocking(work).await {
        Ok(done) => done,
        // nobody cancels it: it has panicked, which is the caller's to map
        Err(error) => std::panic::resume_unwind(error.into_panic()),
    }
}

fn answer(
    documents: &Documents,
    among: &[Arc<Document>],
    query: &Query,
    gets: &Gets,
    ask: &Ask,
    index: Index,
) -> Found {
    let catalog = documents.catalog();
    let matcher = Matcher::new(query, catalog, gets);
    let sees = |item: &Item| {
        let folder = ask.folder.as_deref().filter(|folder| !folder.is_empty());
        let inside = match (item.prompt(), folder) {
            (Some(prompt), Some(folder)) => rank::in_folder(&prompt.folder, folder),
            _ => true,
        };
        ask.kinds.has(item) && inside && (ask.access.0)(item)
    };
    let mut found: Vec<Scored> = among
        .iter()
        .filter(|document| sees(&document.item))
        .filter_map(|document| {
            Some(Scored {
                score: matcher.score(document)?,
                document: document.clone(),
            })
        })
        .collect();
    let total = found.len();
    if let Some(after) = &ask.after {
        found.retain(|scored| scored.key().order(&after.key()).is_gt());
    }
    let more = found.len() > ask.limit;
    if more {
        found.select_nth_unstable_by(ask.limit, Scored::order);
        found.truncate(ask.limit);
    }
    found.sort_unstable_by(Scored::order);
    let next = found.last().filter(|_| more).map(|last| Cursor {
        score: last.score,
        kind: last.key().kind.to_owned(),
        name: last.key().name.to_owned(),
    });
    let hits = found
        .into_iter()
        .map(|scored| Hit {
            gets: matcher.gets_of(&scored.document.item),
            matches: snippet::matches(&scored.document, query),
            score: scored.score,
            item: scored.document.item.clone(),
        })
        .collect();
    Found {
        index,
        catalog: catalog.clone(),
        total,
        hits,
        next,
    }
}
