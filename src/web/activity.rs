//! What happens: what was published, who is connected, what is wrong; the audit for admins.

use std::cmp::Reverse;
use std::collections::BTreeMap;

use axum::extract::State;
use axum::response::Response;
use serde::Serialize;

use super::Web;
use super::health;
use super::page::{Page, show};
use super::published::{Published, published};
use super::text::Lang;
use super::visit::Visit;
use crate::access::Action;

/// Rows of the audit that are listed.
const AUDIT: i64 = 50;
/// Clients that are listed.
const CLIENTS: usize = 50;

/// What the template sees.
#[derive(Debug, Serialize)]
pub struct ActivityPage {
    /// What is not as it should be, a line each.
    pub messages: Vec<String>,
    /// Problems at the tip, as lines, and how many there are in all.
    pub problems: Vec<String>,
    /// How many there are.
    pub problem_count: usize,
    /// The commit that is served.
    pub served: Option<String>,
    /// The tip of main.
    pub tip: Option<String>,
    /// Prompts that this actor sees.
    pub prompts: usize,
    /// Streams that are open.
    pub streams: usize,
    /// Clients that listen: the name, its version, the protocol's revision, how many.
    pub clients: Vec<(String, String, String, usize)>,
    /// How long it took from the last change that was seen until all who listen were woken.
    pub told: Option<String>,
    /// Where the index of the search is: `current`, `behind`, `making`, or `none`; its text is `activity.index.<word>`.
    pub index: &'static str,
    /// How far the versions are counted, while they are.
    pub counting: Option<String>,
    /// The mirrored repository, where there is one.
    pub upstream: Option<Mirror>,
    /// What was published, newest first.
    pub published: Vec<Published>,
    /// Whether moves of labels are among it.
    pub whole: bool,
    /// The audit, for those who may see it.
    pub audit: Option<Vec<Audited>>,
}

/// The repository that the library follows.
#[derive(Debug, Serialize)]
pub struct Mirror {
    /// Its address.
    pub url: String,
    /// The branch.
    pub branch: String,
    /// When it was fetched last, in seconds since 1970.
    pub fetched_at: Option<i64>,
    /// Why it could not be.
    pub error: Option<String>,
}

/// A row of the audit.
#[derive(Debug, Serialize)]
pub struct Audited {
    /// Its number.
    pub seq: i64,
    /// When, in seconds since 1970.
    pub at: i64,
    /// Who.
    pub actor: String,
    /// From where.
    pub origin: Option<String>,
    /// What was done.
    pub action: String,
    /// To what.
    pub subject: Option<String>,
    /// What else there is to say.
    pub detail: Option<String>,
    /// The commit after.
    pub commit: Option<String>,
}

impl Page for ActivityPage {
    const TEMPLATE: &'static str = "activity.html";
    const SECTION: &'static str = "activity";

    fn title(&self, lang: Lang) -> String {
        lang.text("activity.title", &[])
    }
}

/// `GET /activity`.
pub(super) async fn page(State(web): State<Web>, visit: Visit) -> Response {
    let page = made(&web, &visit).await;
    show(&web, &visit, &page).await
}

async fn made(web: &Web, visit: &Visit) -> ActivityPage {
    let snapshot = web.api.registry.snapshot();
    let status = &snapshot.status;
    // lines name files, and clients are of others: only who sees everything sees these
    let sees_all = visit.actor.sees_all();
    let listed = snapshot.catalog.list(None);
    let (published, whole) = published(web, &snapshot, visit).await;
    ActivityPage {
        messages: if sees_all {
            health::messages(
                &web.api.registry,
                web.api.records.as_deref(),
                web.upstream.as_deref(),
                web.tls.as_deref(),
            )
        } else {
            Vec::new()
        },
        problems: if sees_all {
            status.tip_problems.clone()
        } else {
            Vec::new()
        },
        problem_count: if sees_all {
            status.tip_problem_count
        } else {
            0
        },
        served: status.served.clone(),
        tip: status.tip.clone(),
        prompts: listed
            .iter()
            .filter(|prompt| visit.reads(&prompt.path))
            .count(),
        streams: web.mcp.open_streams(),
        clients: if sees_all { clients(web) } else { Vec::new() },
        told: web
            .mcp
            .last_told()
            .map(|told| format!("{:.1} ms", told.as_secs_f64() * 1000.0)),
        index: index(web, status.served.as_deref()),
        counting: web.api.registry.counting().map(|(done, total)| {
            visit.lang.text(
                "versions.counting",
                &[("done", &done.to_string()), ("total", &total.to_string())],
            )
        }),
        upstream: web.upstream.as_ref().filter(|_| sees_all).map(|upstream| {
            let status = upstream.status();
            Mirror {
                url: upstream.settings().remote.url.clone(),
                branch: upstream.settings().branch.clone(),
                fetched_at: status.fetched_at.map(|at| at / 1000),
                error: status.error,
            }
        }),
        published,
        whole,
        audit: audit(web, visit).await,
    }
}

/// Where the index of the search is against what is served.
fn index(web: &Web, served: Option<&str>) -> &'static str {
    if !web.api.search.has_index() {
        return "none";
    }
    match web.api.search.indexed() {
        None => "making",
        at if at.as_deref() == served => "current",
        Some(_) => "behind",
    }
}

/// Who listens now: by name, version and revision, most first.
fn clients(web: &Web) -> Vec<(String, String, String, usize)> {
    let mut counts: BTreeMap<(String, String, String), usize> = BTreeMap::new();
    for listening in web.mcp.listening() {
        let client = &listening.client;
        let key = (
            client.name.to_string(),
            client.version.to_string(),
            listening.revision.as_str().to_owned(),
        );
        *counts.entry(key).or_default() += 1;
    }
    let mut out: Vec<(String, String, String, usize)> = counts
        .into_iter()
        .map(|((name, version, revision), count)| (name, version, revision, count))
        .collect();
    out.sort_by_key(|(.., count)| Reverse(*count));
    out.truncate(CLIENTS);
    out
}

async fn audit(web: &Web, visit: &Visit) -> Option<Vec<Audited>> {
    if !visit.actor.may(Action::Administer, "") {
        return None;
    }
    let store = web.api.records.as_ref()?.store().ok()?;
    let rows = store
        .audit_before(None, AUDIT)
        .await
        .inspect_err(|error| tracing::error!(%error, "the audit could not be read"))
        .ok()?;
    let rows = rows.into_iter().map(|row| Audited {
        seq: row.seq,
        at: row.at / 1000,
        actor: row.actor,
        origin: row.origin,
        action: row.action,
        subject: row.subject,
        detail: row.detail,
        commit: row.new_commit,
    });
    Some(rows.collect())
}
