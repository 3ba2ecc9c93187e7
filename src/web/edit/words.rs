//! What a text may name: partials, resources, values, filters, prompts, labels; of those, what the actor sees.

use std::collections::BTreeSet;

use axum::extract::State;
use axum::response::Response;
use serde::Serialize;

use crate::api::json;
use crate::prompt::{TESTS, filter_names};

use super::super::{Visit, Web};
use super::place::reads;

/// Most entries of one kind.
const MOST: usize = 2000;

#[derive(Debug, Serialize)]
struct Word {
    name: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    detail: Option<String>,
}

#[derive(Debug, Serialize)]
struct PromptWord {
    name: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    detail: Option<String>,
    path: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    version: Option<String>,
}

#[derive(Debug, Serialize)]
struct Words {
    partials: Vec<Word>,
    resources: Vec<Word>,
    families: Vec<Word>,
    values: Vec<Word>,
    filters: Vec<&'static str>,
    tests: &'static [&'static str],
    prompts: Vec<PromptWord>,
    labels: Vec<String>,
    /// Prompts that include the partial at `path`.
    includers: Vec<PromptWord>,
}

/// `GET /editor/words?path=…`.
pub(super) async fn words(State(web): State<Web>, visit: Visit) -> Response {
    let snapshot = web.api.registry.snapshot();
    let catalog = &snapshot.latest;
    let seen_catalog = visit.catalog(catalog);
    let path = visit.query.get("path").unwrap_or_default();
    let word = |name: &str| Word {
        name: name.to_owned(),
        detail: None,
    };
    let seen = |folder: &str, names: Vec<&str>| -> Vec<Word> {
        let names = names.into_iter();
        names
            .filter(|name| reads(&visit.actor, &format!("{folder}/{name}")))
            .take(MOST)
            .map(word)
            .collect()
    };
    let prompt = |prompt: &crate::prompt::Prompt| {
        let version = snapshot
            .history
            .as_ref()
            .and_then(|history| history.latest(prompt.name.as_str()))
            .map(|number| format!("v{number}"));
        PromptWord {
            name: prompt.name.to_string(),
            detail: prompt.title.clone(),
            path: prompt.path.to_string(),
            version,
        }
    };
    let prompts: Vec<_> = catalog
        .list(None)
        .iter()
        .filter(|prompt| reads(&visit.actor, &prompt.path))
        .collect();
    let labels: BTreeSet<&str> = if reads(&visit.actor, "labels.toml") {
        catalog.labels().map(|(label, _, _)| label).collect()
    } else {
        BTreeSet::new()
    };
    json(&Words {
        partials: seen("partials", catalog.partial_names().collect()),
        values: seen("values", catalog.values_files()),
        resources: catalog
            .resources()
            .iter()
            .filter(|resource| reads(&visit.actor, &resource.path))
            .take(MOST)
            .map(|resource| Word {
                name: resource.uri.to_string(),
                detail: Some(resource.path.to_string()),
            })
            .collect(),
        families: seen_catalog
            .families()
            .iter()
            .take(MOST)
            .map(|family| Word {
                name: family.template.clone(),
                detail: family.title.clone(),
            })
            .collect(),
        filters: filter_names().collect(),
        tests: TESTS,
        includers: prompts
            .iter()
            .filter(|prompt| {
                let partials = &prompt.partials;
                partials.iter().any(|partial| &*partial.source.path == path)
            })
            .take(MOST)
            .map(|found| prompt(found))
            .collect(),
        prompts: prompts
            .iter()
            .take(MOST)
            .map(|found| prompt(found))
            .collect(),
        labels: labels.into_iter().map(str::to_owned).collect(),
    })
}
