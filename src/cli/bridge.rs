//! `cuebook stdio --server URL`: an MCP client on stdin and stdout, a Cuebook server over HTTP.
//!
//! Every line from the client is forwarded as it is, in both eras of the protocol, and every message of
//! the server becomes a line. On top of that the bridge keeps the client going while the server is away:
//!
//! - `link`: the session, which is opened again when it is lost, and the way back after an absence, with a
//!   `list_changed` where the lists have changed meanwhile;
//! - `streams`: notifications and subscriptions, which outlast the server;
//! - `requests`: one request from its line to its reply, if need be from memory;
//! - `memory`: the last lists, also in a file, and the last rendered prompts;
//! - `remote`, `sse`, `message`: HTTP, event streams and JSON-RPC, each knowing nothing of the others' matters.
//!
//! The bridge never invents content: a reply that cannot be had and was not seen is an error that says so.

mod link;
mod memory;
mod message;
mod remote;
mod requests;
mod sse;
mod streams;

use std::collections::HashMap;
use std::ffi::OsString;
use std::path::PathBuf;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use bytes::Bytes;
use tokio::io::{AsyncBufRead, AsyncBufReadExt, AsyncRead, AsyncWrite, AsyncWriteExt, BufReader};
use tokio::sync::{Notify, Semaphore, mpsc, watch};
use tokio::time::timeout;
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;

use super::endpoint;
use link::State;
use memory::Memory;
use message::Message;
use remote::Remote;

/// The most bytes of one line from the client.
const MAX_LINE: usize = 8 * 1024 * 1024;
/// What all requests that wait for a reply may weigh together; the client is read no further then.
const MAX_PENDING: usize = 64 * 1024 * 1024;
/// What a request weighs at least, so that their number is bounded too.
const MIN_WEIGHT: usize = 64 * 1024;
/// How many requests are with the server at once.
const MAX_ACTIVE: usize = 32;
/// How many subscriptions a client may have open.
const MAX_LISTENS: usize = 16;
/// How many lines may wait for a client that does not read.
const MAX_UNREAD: usize = 16;

/// How long the bridge waits for what.
#[derive(Debug, Clone, Copy)]
pub struct Timing {
    /// For a connection.
    pub connect: Duration,
    /// For a reply, from the request to its last byte.
    pub answer: Duration,
    /// For a reply that memory could stand in for.
    pub list_answer: Duration,
    /// How long a request goes on trying when a server that was there cannot be reached: a restart.
    pub patience: Duration,
    /// The first pause before an absent server is tried again; each next one is twice as long.
    pub first_retry: Duration,
    /// The longest pause.
    pub last_retry: Duration,
    /// How long a stream may be silent; servers send a comment every 15 to 25 seconds.
    pub silence: Duration,
    /// For replies that are still pending when the client has gone.
    pub farewell: Duration,
}

impl Default for Timing {
    fn default() -> Self {
        Self {
            connect: Duration::from_secs(3),
            answer: Duration::from_mins(1),
            list_answer: Duration::from_secs(8),
            patience: Duration::from_millis(1500),
            first_retry: Duration::from_millis(250),
            last_retry: Duration::from_secs(10),
            silence: Duration::from_secs(90),
            farewell: Duration::from_secs(10),
        }
    }
}

/// What the bridge takes from its surroundings.
#[derive(Debug, Clone)]
pub struct Options {
    /// Sent as `Authorization: Bearer`.
    pub token: Option<String>,
    /// The folder for cached lists; without one they are kept in memory alone.
    pub cache: Option<PathBuf>,
    /// How long to wait for what.
    pub timing: Timing,
    /// The clock.
    pub now: fn() -> SystemTime,
}

impl Options {
    /// Reads `CUEBOOK_TOKEN` and finds the user's cache folder; `variable` looks up the environment.
    pub fn from_environment(variable: impl Fn(&str) -> Option<OsString>) -> Self {
        let token = variable("CUEBOOK_TOKEN").and_then(|token| token.into_string().ok());
        Self {
            token: token.filter(|token| !token.trim().is_empty()),
            cache: cache_folder(variable),
            timing: Timing::default(),
            now: crate::clock::now,
        }
    }
}

/// Where this system keeps a user's caches.
fn cache_folder(variable: impl Fn(&str) -> Option<OsString>) -> Option<PathBuf> {
    // Relative paths in these variables are to be ignored, says the XDG specification.
    let folder = |name: &str| {
        variable(name)
            .map(PathBuf::from)
            .filter(|path| path.is_absolute())
    };
    let caches = if cfg!(windows) {
        folder("LOCALAPPDATA")
    } else if cfg!(target_os = "macos") {
        folder("HOME").map(|home| home.join("Library/Caches"))
    } else {
        folder("XDG_CACHE_HOME").or_else(|| folder("HOME").map(|home| home.join(".cache")))
    };
    caches.map(|caches| caches.join("cuebook"))
}

/// Bridges until the client closes `stdin`, then finishes what is pending.
///
/// Fails only where nothing can be bridged: an address that is none, a token that cannot be sent. An absent
/// server is no error.
pub async fn run<R, W>(url: &str, stdin: R, stdout: W, options: Options) -> anyhow::Result<()>
where
    R: AsyncRead + Unpin,
    W: AsyncWrite + Unpin + Send + 'static,
{
    let url = endpoint::parse(url)?;
    let file = options
        .cache
        .as_ref()
        .map(|folder| folder.join(memory::file_name(url.as_str(), options.token.as_deref())));
    let remote = Remote::new(url, options.token.as_deref(), options.timing)?;
    let memory = tokio::task::spawn_blocking(move || Memory::open(file)).await?;
    let (out, lines) = mpsc::channel(MAX_UNREAD);
    let stop = CancellationToken::new();
    let bridge = Arc::new(Bridge {
        remote,
        out,
        options,
        memory: Mutex::new(memory),
        state: Mutex::new(State::default()),
        up: watch::Sender::new(true),
        sessions: watch::Sender::new(0),
        trouble: Notify::new(),
        unsaved: Notify::new(),
        reviving: tokio::sync::Mutex::new(()),
        reconciling: tokio::sync::Mutex::new(()),
        flights: Mutex::new(HashMap::new()),
        pending: Arc::new(Semaphore::new(MAX_PENDING)),
        active: Semaphore::new(MAX_ACTIVE),
        listens: Arc::new(Semaphore::new(MAX_LISTENS)),
        tasks: TaskTracker::new(),
        hang_up: stop.child_token(),
        stop,
    });
    let writer = tokio::spawn(write(stdout, lines, bridge.stop.clone()));
    let background = [
        tokio::spawn(Arc::clone(&bridge).supervise()),
        tokio::spawn(Arc::clone(&bridge).save_changes()),
    ];

    bridge.read(BufReader::new(stdin)).await;

    bridge.hang_up.cancel();
    bridge.tasks.close();
    if timeout(bridge.options.timing.farewell, bridge.tasks.wait())
        .await
        .is_err()
    {
        tracing::warn!("the client has gone; giving up on the replies that are still pending");
        bridge.cancel_all();
        bridge.tasks.wait().await;
    }
    bridge.stop.cancel();
    for task in background {
        let _ = task.await;
    }
    bridge.end_session().await;
    drop(bridge);
    let _ = writer.await;
    Ok(())
}

/// Everything the tasks of one bridge share.
struct Bridge {
    remote: Remote,
    /// Lines for the client.
    out: mpsc::Sender<String>,
    options: Options,
    memory: Mutex<Memory>,
    state: Mutex<State>,
    /// Whether the server can be reached, as far as is known.
    up: watch::Sender<bool>,
    /// The number of the session, which changes when it is opened again.
    sessions: watch::Sender<u64>,
    /// Wakes the supervisor.
    trouble: Notify,
    /// Wakes the task that writes the cache file.
    unsaved: Notify,
    /// Held while the session is opened again.
    reviving: tokio::sync::Mutex<()>,
    /// Held while lists are compared.
    reconciling: tokio::sync::Mutex<()>,
    /// The requests that wait for a reply, by id.
    flights: Mutex<HashMap<String, CancellationToken>>,
    pending: Arc<Semaphore>,
    active: Semaphore,
    listens: Arc<Semaphore>,
    /// Requests and notifications on their way.
    tasks: TaskTracker,
    /// Ends streams, when nobody is there to hear.
    hang_up: CancellationToken,
    /// Ends everything else too.
    stop: CancellationToken,
}

/// A lock whose holders never panic half-way through a change.
fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

impl Bridge {
    /// Reads the client until it closes its side or stops reading ours.
    async fn read(self: &Arc<Self>, mut input: impl AsyncBufRead + Unpin) {
        loop {
            let line = tokio::select! {
                () = self.stop.cancelled() => return,
                line = read_line(&mut input) => line,
            };
            match line {
                Ok(Line::End) => return,
                Ok(Line::TooLong) => {
                    let text = format!("a line is longer than {MAX_LINE} bytes");
                    self.write(message::error("null", message::INVALID_REQUEST, &text))
                        .await;
                }
                Ok(Line::Text(line)) if line.iter().all(u8::is_ascii_whitespace) => {}
                Ok(Line::Text(line)) => match Message::parse(Bytes::from(line)) {
                    Ok(message) => self.accept(message).await,
                    Err((code, text)) => self.write(message::error("null", code, &text)).await,
                },
                Err(error) => {
                    tracing::warn!(%error, "the client cannot be read any more");
                    return;
                }
            }
        }
    }

    /// Gives the client a line. A client that has gone is noticed elsewhere.
    async fn write(&self, line: String) {
        debug_assert!(!line.contains('\n'));
        let _ = self.out.send(line).await;
    }

    fn seconds(&self) -> u64 {
        (self.options.now)()
            .duration_since(UNIX_EPOCH)
            .unwrap_or_default()
            .as_secs()
    }

    /// Writes the cache file a moment after lists have changed, and at the end.
    async fn save_changes(self: Arc<Self>) {
        loop {
            let last = tokio::select! {
                () = self.stop.cancelled() => true,
                () = self.unsaved.notified() => {
                    // The lists of a client come in one after the other.
                    timeout(Duration::from_millis(300), self.stop.cancelled()).await.is_ok()
                }
            };
            let changes = lock(&self.memory).take_changes();
            if let Some((file, lists)) = changes {
                let shown = file.display().to_string();
                let saved = tokio::task::spawn_blocking(move || memory::save(&file, &lists)).await;
                if let Ok(Err(error)) = saved {
                    tracing::warn!(file = shown, %error, "the lists cannot be cached");
                }
            }
            if last {
                return;
            }
        }
    }
}

/// Writes lines until there are no more, and stops the bridge when the client no longer takes them.
async fn write(
    mut stdout: impl AsyncWrite + Unpin,
    mut lines: mpsc::Receiver<String>,
    stop: CancellationToken,
) {
    while let Some(mut line) = lines.recv().await {
        line.push('\n');
        let written = async {
            stdout.write_all(line.as_bytes()).await?;
            stdout.flush().await
        };
        if let Err(error) = written.await {
            tracing::warn!(%error, "the client does not read any more");
            stop.cancel();
            return;
        }
    }
}

#[derive(Debug, PartialEq, Eq)]
enum Line {
    Text(Vec<u8>),
    TooLong,
    End,
}

/// Reads up to the next line end, which is left out; drops a line that is too long as it comes.
async fn read_line(input: &mut (impl AsyncBufRead + Unpin)) -> std::io::Result<Line> {
    let (mut line, mut too_long) = (Vec::new(), false);
    loop {
        let chunk = input.fill_buf().await?;
        if chunk.is_empty() {
            return Ok(match (line.is_empty(), too_long) {
                (_, true) => Line::TooLong,
                (true, false) => Line::End,
                (false, false) => Line::Text(line),
            });
        }
        let end = chunk.iter().position(|&byte| byte == b'\n');
        let part = &chunk[..end.unwrap_or(chunk.len())];
        too_long |= line.len() + part.len() > MAX_LINE;
        if too_long {
            line = Vec::new();
        } else {
            line.extend_from_slice(part);
        }
        let used = end.map_or(chunk.len(), |end| end + 1);
        input.consume(used);
        if end.is_some() {
            return Ok(if too_long {
                Line::TooLong
            } else {
                Line::Text(line)
            });
        }
    }
}

#[cfg(test)]
mod tests;
