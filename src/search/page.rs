//! An answer as programs get it: of the API, and of `cuebook search --format json`.

use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

use super::{Found, Hit, Index, Match};

/// What was found, a page of it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[schema(as = SearchPage)]
pub struct Page {
    /// How it was found.
    pub index: Index,
    /// The commit that was searched; none for a work tree.
    pub revision: Option<String>,
    /// How many there are in all.
    pub total: usize,
    /// The best of them, best first.
    pub hits: Vec<PageHit>,
    /// Where the next page begins, where there is one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub next_cursor: Option<String>,
}

/// One of them.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[schema(as = SearchHit)]
pub struct PageHit {
    /// `prompt` or `resource`.
    pub kind: String,
    /// A prompt's name, a resource's URI.
    pub name: String,
    /// Its path in the library.
    pub path: String,
    /// A prompt's folder.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub folder: Option<String>,
    /// A prompt's title.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub title: Option<String>,
    /// A prompt's description.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub description: Option<String>,
    /// A prompt's tags.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub tags: Vec<String>,
    /// How often it was got lately.
    pub gets: u64,
    /// How well it fits; only to be compared with others of one answer.
    pub score: u32,
    /// Where the words stand in it.
    pub matches: Vec<Match>,
}

impl From<Found> for Page {
    fn from(found: Found) -> Self {
        Self {
            index: found.index,
            revision: found.catalog.revision().commit().map(str::to_owned),
            total: found.total,
            hits: found.hits.into_iter().map(PageHit::from).collect(),
            next_cursor: found.next.map(|cursor| cursor.encode()),
        }
    }
}

impl From<Hit> for PageHit {
    fn from(hit: Hit) -> Self {
        let prompt = hit.item.prompt();
        Self {
            kind: hit.item.kind().to_owned(),
            name: hit.item.name().to_owned(),
            path: hit.item.path().to_owned(),
            folder: prompt.map(|prompt| prompt.folder.to_string()),
            title: prompt.and_then(|prompt| prompt.title.clone()),
            description: prompt.and_then(|prompt| prompt.description.clone()),
            tags: prompt.map(|prompt| prompt.tags.clone()).unwrap_or_default(),
            gets: hit.gets,
            score: hit.score,
            matches: hit.matches,
        }
    }
}

impl PageHit {
    /// Whether it is a prompt.
    pub fn is_prompt(&self) -> bool {
        self.kind == "prompt"
    }
}
