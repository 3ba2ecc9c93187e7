//! The only module that knows MCP.
//!
//! One core for both transports and both eras: [`handle`] takes a parsed request and who sent it,
//! and gives an answer. [`http`] and [`stdio`] move bytes. It knows nothing of files, databases or
//! processes: all that is served comes from one [`Registry::snapshot`] a request.

mod batch;
pub mod clients;
pub mod envelope;
pub mod error;
pub mod http;
pub mod messages;
pub mod meta;
mod methods;
pub mod neutralise;
pub mod notices;
mod pages;
pub mod params;
pub mod revision;
pub mod session;
pub mod stdio;
mod stream;
mod views;
mod waves;
pub mod wire;

use std::collections::BTreeMap;
use std::panic::AssertUnwindSafe;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use futures_util::FutureExt;
use tracing::Instrument;

use self::clients::{Client, Inline};
use self::envelope::Request;
use self::error::{Failure, RpcError};
use self::notices::Filter;
use self::pages::Pages;
use self::revision::Revision;
use self::session::{Session, Sessions};
use self::views::{View, Views};
use self::waves::Waves;
use crate::access::{Access, Actor};
use crate::records::Records;
use crate::registry::Registry;
use crate::search::Search;
use crate::workers;

/// What an operator can set about MCP.
#[derive(Debug, Clone)]
pub struct Settings {
    /// Signs session ids; from the data directory, so that sessions survive a restart.
    pub session_key: [u8; 32],
    /// Whether prompts are offered as tools too.
    pub tools: bool,
    /// Whether embedded resources are put into text.
    pub inline: Inline,
    /// Whether text in argument values that a client would execute is made inert.
    pub neutralise: bool,
    /// Entries on one page of a list.
    pub page_size: usize,
    /// Longest message, in bytes.
    pub message_bytes: usize,
    /// Open streams, of all clients together.
    pub max_streams: usize,
    /// Subscribed URIs of one session or stream.
    pub max_subscriptions: usize,
    /// Time between two comments on a silent stream; each stream varies it by a quarter.
    pub keep_alive: Duration,
}

impl Default for Settings {
    fn default() -> Self {
        Self {
            session_key: [0; 32],
            tools: true,
            inline: Inline::Auto,
            neutralise: true,
            page_size: 500,
            message_bytes: 4 * 1024 * 1024,
            max_streams: 20_000,
            max_subscriptions: 1000,
            keep_alive: Duration::from_secs(20),
        }
    }
}

/// What is shared by all requests.
#[derive(Debug)]
pub struct Service {
    registry: Arc<Registry>,
    search: Arc<Search>,
    settings: Settings,
    sessions: Sessions,
    pages: Pages,
    views: Views,
    access: Arc<Access>,
    streams: AtomicUsize,
    /// Who is at each open stream, by its number.
    listening: Mutex<BTreeMap<u64, Listening>>,
    waves: Waves,
    records: Option<Arc<Records>>,
}

impl Service {
    /// Serves what a registry holds; it is searched without an index.
    pub fn new(registry: Arc<Registry>, settings: Settings) -> Self {
        Self {
            registry,
            search: Arc::new(Search::new()),
            sessions: Sessions::new(settings.session_key),
            pages: Pages::default(),
            views: Views::default(),
            access: Arc::new(Access::open()),
            streams: AtomicUsize::new(0),
            listening: Mutex::default(),
            waves: Waves::default(),
            records: None,
            settings,
        }
    }

    /// The same for who may get in by that; without it everybody is the person at this machine.
    #[must_use]
    pub fn with_access(self, access: Arc<Access>) -> Self {
        Self { access, ..self }
    }

    /// What is served now, as an actor sees it.
    fn view(&self, actor: &Actor) -> View {
        self.views.of(actor, self.registry.snapshot())
    }

    /// The same, with what is delivered noted in records.
    #[must_use]
    pub fn with_records(mut self, records: Arc<Records>) -> Self {
        self.records = Some(records);
        self
    }

    /// The same with another search.
    #[must_use]
    pub fn with_search(self, search: Arc<Search>) -> Self {
        Self { search, ..self }
    }

    /// Streams that are open now.
    pub fn open_streams(&self) -> usize {
        self.streams.load(Ordering::Relaxed)
    }

    /// Who listens now, the longest first.
    pub fn listening(&self) -> Vec<Listening> {
        let all = self
            .listening
            .lock()
            .unwrap_or_else(PoisonError::into_inner);
        all.values().cloned().collect()
    }

    /// How long it took from the last change that was seen until all who listen were woken; none before the first.
    pub fn last_told(&self) -> Option<Duration> {
        self.waves.last()
    }
}

/// Who is at an open stream.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Listening {
    /// The client, as it calls itself.
    pub client: Client,
    /// The revision in use.
    pub revision: Revision,
}

/// Who sends a request, and how.
#[derive(Debug, Clone)]
pub struct Caller {
    /// The revision in use.
    pub revision: Revision,
    /// The client, as it calls itself.
    pub client: Client,
    /// Who it acts for.
    pub actor: Actor,
    /// The only folder it sees, when it came in by one.
    pub folder: Option<Arc<str>>,
    /// Its legacy session.
    pub session: Option<Session>,
    /// Whom its renders are charged to.
    pub charged: workers::Caller,
    /// Names the request in the log and in an internal error.
    pub request_id: Arc<str>,
}

/// What a request comes to.
#[derive(Debug)]
pub enum Answer {
    /// A whole JSON-RPC response.
    Response(Vec<u8>),
    /// An error; [`RpcError::to_response`] makes it one.
    Error(RpcError),
    /// A legacy client is initialised.
    Initialized {
        /// The whole response.
        response: Vec<u8>,
        /// What was agreed on.
        revision: Revision,
        /// Who it is.
        client: Client,
    },
    /// A modern client listens from now on.
    Listen(Filter),
}

impl Answer {
    fn into_bytes(self, id: &str, modern: bool) -> Vec<u8> {
        match self {
            Self::Response(bytes)
            | Self::Initialized {
                response: bytes, ..
            } => bytes,
            Self::Error(error) => error.to_response(Some(id), modern),
            Self::Listen(_) => RpcError::refused(400, "a stream cannot be opened here")
                .to_response(Some(id), modern),
        }
    }
}

/// Answers a request: span, panic guard and error map are here, once. Fields of a span are formatted when it begins: the
/// span is there where debugging is, and what is logged without it says itself which request it was.
pub async fn handle(service: &Service, caller: &Caller, request: &Request<'_>) -> Answer {
    let span = tracing::debug_span!(
        "mcp",
        method = shortened(&request.method),
        prompt = tracing::field::Empty,
        revision = caller.revision.as_str(),
        client = &*caller.client.name,
        request_id = &*caller.request_id,
    );
    async {
        let outcome = AssertUnwindSafe(methods::dispatch(service, caller, request))
            .catch_unwind()
            .await;
        let failure = match outcome {
            Ok(Ok(answer)) => return answer,
            Ok(Err(failure)) => failure,
            // The panic hook has logged where; here is which request it was.
            Err(_) => Failure::Internal("a method panicked".to_owned()),
        };
        match failure {
            Failure::Client(error) => {
                tracing::debug!(code = error.code, "refused");
                Answer::Error(error)
            }
            Failure::Internal(detail) => {
                tracing::error!(
                    detail,
                    method = shortened(&request.method),
                    client = &*caller.client.name,
                    request_id = &*caller.request_id,
                    "internal fault"
                );
                Answer::Error(RpcError::internal(&caller.request_id))
            }
        }
    }
    .instrument(span)
    .await
}

fn shortened(text: &str) -> &str {
    match text.char_indices().nth(64) {
        Some((end, _)) => &text[..end],
        None => text,
    }
}
