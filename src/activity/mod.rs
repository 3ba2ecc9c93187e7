//! What happens: who listens, what is not as it should be, how far things are, what was published. The page of it and the
//! API tell the same.

pub mod health;
pub mod published;

use std::cmp::Reverse;
use std::collections::BTreeMap;
use std::sync::Arc;

use serde::Serialize;
use utoipa::ToSchema;

use crate::access::{Action, Actor};
use crate::http::Tls;
use crate::mcp;
use crate::records::Records;
use crate::registry::Registry;
use crate::search::Search;
use crate::upstream::Upstream;
use crate::webhooks::Webhooks;

/// Clients that are listed.
const CLIENTS: usize = 50;

/// Where it is looked up.
#[derive(Debug, Clone)]
pub struct Activity {
    /// What is served.
    pub registry: Arc<Registry>,
    /// Searches it.
    pub search: Arc<Search>,
    /// The MCP core, for who is connected.
    pub mcp: Arc<mcp::Service>,
    /// What was used, delivered and done; none where a work tree is served.
    pub records: Option<Arc<Records>>,
    /// The repository that the library follows, when it does.
    pub upstream: Option<Arc<Upstream>>,
    /// The certificate, where the server speaks TLS itself.
    pub tls: Option<Arc<Tls>>,
    /// Who is told of proposals and publishes, where somebody is.
    pub webhooks: Option<Arc<Webhooks>>,
}

/// What is so now. Lines, clients and the repository that is followed are told to who reads the whole library alone.
#[derive(Debug, Clone, Serialize, ToSchema)]
#[schema(as = Activity)]
pub struct Now {
    /// What is not as it should be, a line each.
    pub messages: Vec<String>,
    /// Problems at the tip of main, as lines, at most 20.
    pub problems: Vec<String>,
    /// How many there are in all.
    pub problem_count: usize,
    /// The commit that is served; none for a work tree.
    pub served: Option<String>,
    /// The tip of main; none for a work tree.
    pub tip: Option<String>,
    /// Prompts that who asks sees.
    pub prompts: usize,
    /// Streams that are open.
    pub streams: usize,
    /// Clients that listen, those of most streams first, at most 50.
    pub clients: Vec<Connected>,
    /// Milliseconds from the last change that was seen until all who listen were woken; none before the first.
    pub told_ms: Option<f64>,
    /// Where the index of the search is: `current`, `behind`, `making`, or `none`.
    pub index: &'static str,
    /// How far the versions are counted, while they are.
    pub counting: Option<Counting>,
    /// The repository that the library follows, where it does.
    pub upstream: Option<Following>,
}

/// Clients of one kind that listen.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Serialize, ToSchema)]
#[schema(as = ActivityClient)]
pub struct Connected {
    /// Its name, as it says.
    pub name: String,
    /// Its version, as it says.
    pub version: String,
    /// The revision of the protocol, e.g. `2025-06-18`.
    pub revision: String,
    /// Streams of it that are open.
    pub streams: usize,
}

/// How far a count has come.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, ToSchema)]
#[schema(as = ActivityCounting)]
pub struct Counting {
    /// Commits that are read.
    pub done: u64,
    /// How many there are; 0 while that is not known.
    pub total: u64,
}

/// The repository that the library follows.
#[derive(Debug, Clone, Serialize, ToSchema)]
#[schema(as = ActivityUpstream)]
pub struct Following {
    /// Its address.
    pub url: String,
    /// The branch.
    pub branch: String,
    /// When it was fetched last, in seconds since 1970.
    pub fetched_at: Option<i64>,
    /// Why it could not be.
    pub error: Option<String>,
}

impl Activity {
    /// What is not as it should be, a line each; for who reads the whole library.
    pub fn messages(&self) -> Vec<String> {
        let mut messages = health::messages(
            &self.registry,
            self.records.as_deref(),
            self.upstream.as_deref(),
            self.tls.as_deref(),
        );
        let webhooks = self.webhooks.iter();
        messages.extend(webhooks.flat_map(|webhooks| webhooks.messages()));
        messages
    }

    /// What is so now, as an actor is told.
    pub fn now(&self, actor: &Actor) -> Now {
        let snapshot = self.registry.snapshot();
        let status = &snapshot.status;
        let listed = snapshot.catalog.list(None);
        let mut now = Now {
            messages: Vec::new(),
            problems: Vec::new(),
            problem_count: 0,
            served: status.served.clone(),
            tip: status.tip.clone(),
            prompts: listed
                .iter()
                .filter(|prompt| actor.may(Action::Read, &prompt.path))
                .count(),
            streams: self.mcp.open_streams(),
            clients: Vec::new(),
            told_ms: self.mcp.last_told().map(|told| told.as_secs_f64() * 1000.0),
            index: self.index(status.served.as_deref()),
            counting: self
                .registry
                .counting()
                .map(|(done, total)| Counting { done, total }),
            upstream: None,
        };
        // lines name files, and clients are of others
        if actor.sees_all() {
            now.messages = self.messages();
            now.problems.clone_from(&status.tip_problems);
            now.problem_count = status.tip_problem_count;
            now.clients = self.clients();
            now.upstream = self.upstream.as_deref().map(following);
        }
        now
    }

    /// Where the index of the search is against what is served.
    fn index(&self, served: Option<&str>) -> &'static str {
        if !self.search.has_index() {
            return "none";
        }
        match self.search.indexed() {
            None => "making",
            at if at.as_deref() == served => "current",
            Some(_) => "behind",
        }
    }

    /// Who listens now: by name, version and revision, most first.
    fn clients(&self) -> Vec<Connected> {
        let mut counts: BTreeMap<(String, String, String), usize> = BTreeMap::new();
        for listening in self.mcp.listening() {
            let client = &listening.client;
            let key = (
                client.name.to_string(),
                client.version.to_string(),
                listening.revision.as_str().to_owned(),
            );
            *counts.entry(key).or_default() += 1;
        }
        let mut out: Vec<Connected> = counts
            .into_iter()
            .map(|((name, version, revision), streams)| Connected {
                name,
                version,
                revision,
                streams,
            })
            .collect();
        out.sort_by_key(|client| Reverse(client.streams));
        out.truncate(CLIENTS);
        out
    }
}

fn following(upstream: &Upstream) -> Following {
    let status = upstream.status();
    Following {
        url: upstream.settings().remote.url.clone(),
        branch: upstream.settings().branch.clone(),
        fetched_at: status.fetched_at.map(|at| at / 1000),
        error: status.error,
    }
}
