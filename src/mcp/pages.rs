//! Lists: entries serialised once, pages assembled when they are first asked for.
//!
//! An entry is kept under the hash of what it shows, so that a publish that changes one prompt
//! serialises one entry. A page is kept under the generation it was assembled from.

use std::sync::{Arc, Mutex};

use base64::Engine;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use bytes::Bytes;
use lru::LruCache;
use rmcp::model;
use serde::Serialize;

use super::Answer;
use super::error::{Failure, RpcError};
use super::methods::Call;
use super::revision::Revision;
use super::session::lock;
use super::wire::{self, Common};
use crate::access::Permissions;
use crate::catalog::list_key;
use crate::prompt::{Prompt, Resource};

/// Entries that are kept; 10,000 prompts in two shapes, and as many again of yesterday's.
const KEPT_ENTRIES: usize = 40_000;
/// Pages that are kept.
const KEPT_PAGES: usize = 64;
/// Longest cursor that is read, in bytes.
const MAX_CURSOR: usize = 8192;

/// Which list.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(super) enum List {
    /// `prompts/list`.
    Prompts,
    /// `resources/list`.
    Resources,
    /// `resources/templates/list`.
    Templates,
}

impl List {
    fn field(self) -> &'static str {
        match self {
            Self::Prompts => "prompts",
            Self::Resources => "resources",
            Self::Templates => "resourceTemplates",
        }
    }

    fn letter(self) -> u8 {
        match self {
            Self::Prompts => b'p',
            Self::Resources => b'r',
            Self::Templates => b't',
        }
    }
}

#[derive(Debug, PartialEq, Eq, Hash)]
struct PageKey {
    list: List,
    generation: u64,
    folder: Option<Arc<str>>,
    title: bool,
    modern: bool,
    /// The key after which the page begins.
    after: Option<String>,
    /// Who sees it; none for who sees everything.
    permissions: Option<Arc<Permissions>>,
}

/// The caches.
#[derive(Debug)]
pub(super) struct Pages {
    entries: Mutex<LruCache<(Arc<str>, bool), Bytes>>,
    made: Mutex<LruCache<PageKey, Bytes>>,
    /// Those of who sees a part: they must not take the place of the others.
    parts: Mutex<LruCache<PageKey, Bytes>>,
}

impl Default for Pages {
    fn default() -> Self {
        Self {
            entries: Mutex::new(LruCache::unbounded()),
            made: Mutex::new(LruCache::unbounded()),
            parts: Mutex::new(LruCache::unbounded()),
        }
    }
}

impl Pages {
    fn prompt_entry(&self, prompt: &Prompt, title: bool) -> Result<Bytes, serde_json::Error> {
        let key = (prompt.list_hash.clone(), title);
        let mut entries = lock(&self.entries);
        if let Some(entry) = entries.get(&key) {
            return Ok(entry.clone());
        }
        let entry = Bytes::from(serde_json::to_vec(&prompt_model(prompt, title))?);
        entries.push(key, entry.clone());
        if entries.len() > KEPT_ENTRIES {
            entries.pop_lru();
        }
        Ok(entry)
    }
}

impl Call<'_> {
    /// One page of a list.
    pub(super) fn page(&self, list: List) -> Result<Answer, Failure> {
        let after = match self.params.cursor()? {
            Some(cursor) if !cursor.is_empty() => Some(read_cursor(list, &cursor)?),
            _ => None,
        };
        let (revision, actor) = (self.caller.revision, &self.caller.actor);
        let key = PageKey {
            list,
            generation: self.snapshot.generation,
            folder: if list == List::Prompts {
                self.caller.folder.clone()
            } else {
                None
            },
            title: revision.has_title(),
            modern: revision.is_modern(),
            after,
            permissions: (!actor.sees_all()).then(|| actor.permissions().clone()),
        };
        let pages = match key.permissions {
            None => &self.service.pages.made,
            Some(_) => &self.service.pages.parts,
        };
        let kept = lock(pages).get(&key).cloned();
        let page = if let Some(page) = kept {
            page
        } else {
            let (page, full) = self
                .assemble(&key, revision)
                .map_err(|error| Failure::Internal(error.to_string()))?;
            // A cursor that a client made up gives a page that no other client asks for.
            if key.after.is_none() || full {
                let mut pages = lock(pages);
                pages.push(key, page.clone());
                if pages.len() > KEPT_PAGES {
                    pages.pop_lru();
                }
            }
            page
        };
        Ok(Answer::Response(wire::response(self.id, &page)))
    }

    /// A page as the JSON of a result, and whether its size is that of a page between others.
    fn assemble(
        &self,
        key: &PageKey,
        revision: Revision,
    ) -> Result<(Bytes, bool), serde_json::Error> {
        let size = self.service.settings.page_size.max(1);
        let catalog = &self.snapshot.catalog;
        let mut page = Page::new(key.list);
        let after = key.after.as_deref().unwrap_or_default();
        let mut more = false;
        match key.list {
            List::Prompts => {
                let rest = catalog.list(key.folder.as_deref()).after(after);
                let mut rest = rest.iter();
                for prompt in rest.by_ref().take(size) {
                    page.add(
                        list_key(&prompt.folder, prompt.name.as_str()),
                        &self.service.pages.prompt_entry(prompt, key.title)?,
                    );
                }
                more = rest.next().is_some();
            }
            List::Resources => {
                let rest = catalog.resources().after(after);
                let mut rest = rest.iter();
                for resource in rest.by_ref().take(size) {
                    page.add(
                        resource.uri.to_string(),
                        &serde_json::to_vec(&resource_model(resource))?,
                    );
                }
                more = rest.next().is_some();
            }
            List::Templates => {
                for family in catalog.families() {
                    let mut entry = model::ResourceTemplate::new(&family.template, &family.name);
                    entry.title = family.title.clone().filter(|_| key.title);
                    entry.description.clone_from(&family.description);
                    entry.mime_type.clone_from(&family.mime_type);
                    page.add(family.template.clone(), &serde_json::to_vec(&entry)?);
                }
            }
        }
        let full = page.count == size;
        let commit = match key.list {
            List::Prompts => catalog.revision().commit(),
            List::Resources | List::Templates => None,
        };
        let common = Common::cacheable(revision, self.by_actor()).with_commit(commit);
        Ok((page.finish(more, common)?, full))
    }
}

struct Page {
    list: List,
    out: Vec<u8>,
    count: usize,
    last: String,
}

impl Page {
    fn new(list: List) -> Self {
        let mut out = Vec::with_capacity(4096);
        out.extend_from_slice(b"{\"");
        out.extend_from_slice(list.field().as_bytes());
        out.extend_from_slice(b"\":[");
        Self {
            list,
            out,
            count: 0,
            last: String::new(),
        }
    }

    fn add(&mut self, key: String, entry: &[u8]) {
        if self.count > 0 {
            self.out.push(b',');
        }
        self.out.extend_from_slice(entry);
        self.count += 1;
        self.last = key;
    }

    fn finish(mut self, more: bool, common: Common<'_>) -> Result<Bytes, serde_json::Error> {
        #[derive(Serialize)]
        #[serde(rename_all = "camelCase")]
        struct Rest<'a> {
            #[serde(skip_serializing_if = "Option::is_none")]
            next_cursor: Option<String>,
            #[serde(flatten)]
            common: Common<'a>,
        }
        let next_cursor = more.then(|| write_cursor(self.list, &self.last));
        let rest = serde_json::to_vec(&Rest {
            next_cursor,
            common,
        })?;
        self.out.push(b']');
        if rest == b"{}" {
            self.out.push(b'}');
        } else {
            self.out.push(b',');
            self.out.extend_from_slice(&rest[1..]);
        }
        Ok(self.out.into())
    }
}

fn prompt_model(prompt: &Prompt, title: bool) -> model::Prompt {
    let arguments: Vec<model::PromptArgument> = prompt
        .arguments
        .iter()
        .map(|argument| {
            let mut entry =
                model::PromptArgument::new(&*argument.name).with_required(argument.required);
            entry.description.clone_from(&argument.description);
            entry
        })
        .collect();
    let mut entry = model::Prompt::new(
        prompt.name.as_str(),
        prompt.description.as_deref(),
        (!arguments.is_empty()).then_some(arguments),
    );
    entry.title = prompt.title.clone().filter(|_| title);
    entry
}

fn resource_model(resource: &Resource) -> model::Resource {
    model::Resource::new(&*resource.uri, &*resource.name)
        .with_mime_type(&*resource.mime_type)
        .with_size(resource.bytes().len() as u64)
}

/// A cursor names the last entry of its page, not a count: a publish between two pages makes the
/// next one neither repeat nor skip what stayed.
fn write_cursor(list: List, key: &str) -> String {
    let mut bytes = Vec::with_capacity(key.len() + 2);
    bytes.extend_from_slice(&[1, list.letter()]);
    bytes.extend_from_slice(key.as_bytes());
    URL_SAFE_NO_PAD.encode(&bytes)
}

fn read_cursor(list: List, cursor: &str) -> Result<String, RpcError> {
    let wrong = || RpcError::invalid_params("`cursor` is not one that this list gave out");
    if cursor.len() > MAX_CURSOR {
        return Err(wrong());
    }
    let mut bytes = URL_SAFE_NO_PAD.decode(cursor).map_err(|_| wrong())?;
    if bytes.len() < 3 || bytes[..2] != [1, list.letter()] {
        return Err(wrong());
    }
    String::from_utf8(bytes.split_off(2)).map_err(|_| wrong())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn cursors_are_of_one_list() {
        let cursor = write_cursor(List::Prompts, "sre\0triage");
        assert_eq!(read_cursor(List::Prompts, &cursor).unwrap(), "sre\0triage");
        for (list, cursor) in [
            (List::Resources, &*cursor),
            (List::Prompts, "x"),
            (List::Prompts, "AXA"),
            (List::Prompts, "!"),
        ] {
            assert_eq!(
                read_cursor(list, cursor).unwrap_err().code,
                -32602,
                "{cursor}"
            );
        }
    }

    #[test]
    fn a_page_is_one_json_object() {
        let mut page = Page::new(List::Prompts);
        page.add("a".into(), b"{\"name\":\"a\"}");
        page.add("b".into(), b"{\"name\":\"b\"}");
        assert_eq!(
            page.finish(false, Common::cacheable(Revision::V2025_06_18, false))
                .unwrap(),
            r#"{"prompts":[{"name":"a"},{"name":"b"}]}"#
        );
        let empty = Page::new(List::Templates)
            .finish(false, Common::cacheable(Revision::V2026_07_28, false))
            .unwrap();
        let value: serde_json::Value = serde_json::from_slice(&empty).unwrap();
        assert_eq!(value["resourceTemplates"], serde_json::json!([]));
        assert_eq!(value["resultType"], "complete");
        assert_eq!(
            (value["ttlMs"].as_u64(), value["cacheScope"].as_str()),
            (Some(0), Some("public"))
        );
    }
}
