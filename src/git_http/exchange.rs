//! One exchange: a git process between a request's body and a response's.
//!
//! A push outlives its client: the process reads the end of its input and ends by itself, so that no lock and no
//! quarantine stays. A fetch is killed as soon as nobody reads.

use std::ffi::OsStr;
use std::io;
use std::net::IpAddr;
use std::pin::Pin;
use std::process::ExitStatus;
use std::sync::Arc;
use std::time::{Duration, Instant};

use async_compression::tokio::bufread::GzipDecoder;
use axum::body::Body;
use bytes::Bytes;
use futures_util::TryStreamExt as _;
use tokio::io::{AsyncRead, AsyncReadExt as _, AsyncWriteExt as _};
use tokio::process::{Child, ChildStderr, ChildStdin, ChildStdout, Command};
use tokio::sync::{OwnedSemaphorePermit, mpsc};
use tokio_util::io::StreamReader;
use tokio_util::sync::CancellationToken;

use crate::access::Actor;
use crate::gate::pushers::Push;
use crate::git::pack::{self, Receive, Service, Step};

use super::report::Report;
use super::{Endpoint, MAX_FETCH_BYTES};

/// What is to be done.
pub(super) struct Job {
    pub(super) endpoint: Arc<Endpoint>,
    pub(super) service: Service,
    pub(super) step: Step,
    pub(super) protocol: Option<String>,
    pub(super) peer: Option<IpAddr>,
    pub(super) actor: Actor,
    /// Named to the hooks of a push, until the exchange has ended.
    pub(super) push: Option<Push>,
    /// What the response begins with.
    pub(super) prologue: String,
    /// Whether the request's body is compressed.
    pub(super) gzip: bool,
    /// Kept until the exchange has ended.
    #[expect(dead_code, reason = "dropping it is what it is for")]
    pub(super) place: OwnedSemaphorePermit,
}

/// Pieces of a response that wait to be sent.
const PIECES: usize = 4;
/// Bytes read at a time.
const PIECE: usize = 64 * 1024;
/// Bytes of a process's stderr that are logged.
const MAX_STDERR: u64 = 4096;
/// Bytes of a refused push that are read before the connection is cut, as a multiple of the limit, and at least.
const DRAINED: u64 = 4;
const DRAINED_LEAST: u64 = 256 * 1024 * 1024;

/// Bytes a second below which a client holds a place for nothing.
const SLOWEST: u64 = 256;
/// Time that an upload gets to end when the server stops.
const AT_THE_END: Duration = Duration::from_secs(30);

type Input = Pin<Box<dyn AsyncRead + Send>>;

/// Starts the process; the response's body ends when it has ended.
pub(super) fn start(job: Job, body: Body) -> io::Result<Body> {
    let mut child = spawn(&job)?;
    let (sender, receiver) = mpsc::channel::<io::Result<Bytes>>(PIECES);
    let missing = || io::Error::other("a git process without pipes");
    let stdin = child.stdin.take().ok_or_else(missing)?;
    let stdout = child.stdout.take().ok_or_else(missing)?;
    let stderr = child.stderr.take().ok_or_else(missing)?;
    let tracker = job.endpoint.running.clone();
    let pushing = job.service == Service::ReceivePack && job.step == Step::Answer;
    let exchange = Exchange {
        job,
        child,
        sender,
        started: Instant::now(),
    };
    let run = exchange.run(body, stdin, stdout, stderr);
    if pushing {
        tracker.spawn(run);
    } else {
        tokio::spawn(run);
    }
    let pieces = futures_util::stream::unfold(receiver, |mut receiver| async {
        let piece = receiver.recv().await?;
        Some((piece, receiver))
    });
    Ok(Body::from_stream(pieces))
}

fn spawn(job: &Job) -> io::Result<Child> {
    let endpoint = &job.endpoint;
    let protocol = job.protocol.as_deref();
    let command = match job.service {
        Service::UploadPack => pack::upload_pack(&endpoint.repository, job.step, protocol),
        Service::ReceivePack => {
            let how = Receive {
                hooks: &endpoint.hooks,
                max_pack_bytes: endpoint.settings.max_push_bytes,
                pusher: &job.actor.name,
            };
            let push = job.push.as_ref().map_or("", Push::id);
            let environment = [(crate::gate::PUSH, OsStr::new(push))];
            pack::receive_pack(&endpoint.repository, job.step, protocol, &how, &environment)
        }
    };
    Command::from(command)
        // a receive-pack that is killed leaves locks and half of a push
        .kill_on_drop(job.service == Service::UploadPack)
        .spawn()
}

struct Exchange {
    job: Job,
    child: Child,
    sender: mpsc::Sender<io::Result<Bytes>>,
    started: Instant,
}

/// How the reading of a request ended.
#[derive(Debug, Default, Clone, Copy)]
struct Fed {
    bytes: u64,
    too_large: bool,
    /// The client went away, stalled, or sent what is no gzip.
    broken: bool,
}

impl Exchange {
    async fn run(
        mut self,
        body: Body,
        stdin: ChildStdin,
        stdout: ChildStdout,
        stderr: ChildStderr,
    ) {
        let service = self.job.service;
        let idle = self.job.endpoint.settings.idle;
        let errors = tokio::spawn(read_errors(stderr));
        let input: Input = {
            let reader = StreamReader::new(body.into_data_stream().map_err(io::Error::other));
            if self.job.gzip {
                Box::pin(GzipDecoder::new(reader))
            } else {
                Box::pin(reader)
            }
        };
        let limit = match service {
            Service::UploadPack => MAX_FETCH_BYTES,
            // the commands and the pack's own framing come on top of the pack, which git measures itself
            Service::ReceivePack => self.job.endpoint.settings.max_push_bytes + 1024 * 1024,
        };
        let pace = Pace {
            idle,
            stopping: self.job.endpoint.stopping.clone(),
        };
        let feeding = feed(input, stdin, limit, pace);
        let (fed, read) = if service == Service::ReceivePack && self.job.step == Step::Answer {
            let reading = read_report(stdout, &self.sender, idle);
            let (fed, report) = tokio::join!(feeding, reading);
            let status = self.child.wait().await;
            // git's own words for a pack over the limit name no setting
            let max = self.job.endpoint.settings.max_push_bytes;
            let line = if fed.too_large || (fed.bytes > max && !report.unpacked()) {
                Some(self.too_large_line())
            } else if report.says(b"unable to migrate objects to permanent storage") {
                Some("the repository was being tidied meanwhile; push again".to_owned())
            } else if fed.broken || report.unpacked() {
                None
            } else {
                self.cannot_write().await
            };
            if fed.broken {
                // a receive-pack that dies while its child still writes cannot remove what that writes
                let repository = self.job.endpoint.repository.clone();
                let swept = tokio::task::spawn_blocking(move || {
                    crate::git::remove_unfinished(&repository, None)
                });
                if let Ok(Err(error)) = swept.await {
                    tracing::debug!(%error, "an unfinished push could not be removed");
                }
            }
            let last = report.end(line.as_deref());
            if !last.is_empty() {
                let _ = tokio::time::timeout(idle, self.sender.send(Ok(last))).await;
            }
            (fed, status)
        } else {
            let passing = pass(&self.job.prologue, stdout, &self.sender, idle);
            tokio::pin!(feeding, passing);
            // a fetch ends when nobody reads it, whatever its request says
            let (fed, sent) = tokio::select! {
                sent = &mut passing => (Fed::default(), sent),
                fed = &mut feeding => (fed, passing.await),
            };
            if !sent {
                kill(&mut self.child);
            }
            let status = self.child.wait().await;
            if !sent || status.as_ref().is_ok_and(|s| !s.success()) {
                // a response that ends early must not look whole
                let _ = self
                    .sender
                    .try_send(Err(io::Error::other("the git process failed")));
            }
            (fed, status)
        };
        let errors = errors.await.unwrap_or_default();
        self.log(&fed, &read, &errors);
    }

    fn too_large_line(&self) -> String {
        format!(
            "this server takes pushes of at most {} bytes (git.max_push_bytes); split the push, or leave the large files out",
            self.job.endpoint.settings.max_push_bytes
        )
    }

    /// What to say where the repository cannot be written: git says that it failed, and not why.
    async fn cannot_write(&self) -> Option<String> {
        let probe = self.job.endpoint.repository.join("objects/cuebook-probe");
        let probing = tokio::task::spawn_blocking(move || {
            let written = std::fs::write(&probe, [0; 4096]);
            let _ = std::fs::remove_file(&probe);
            written
        });
        let error = probing.await.ok()?.err()?;
        tracing::error!(%error, "the repository cannot be written; pushes are refused");
        Some(format!(
            "the server cannot write to its repository ({error}); nothing was changed, and its operator has to look"
        ))
    }

    fn log(&self, fed: &Fed, status: &io::Result<ExitStatus>, errors: &str) {
        let service = self.job.service.name();
        let elapsed_ms = u64::try_from(self.started.elapsed().as_millis()).unwrap_or(u64::MAX);
        let peer = self.job.peer.map(|p| p.to_string()).unwrap_or_default();
        let ok = status.as_ref().is_ok_and(ExitStatus::success);
        if self.job.step == Step::Answer && self.job.service == Service::ReceivePack {
            tracing::info!(
                service,
                peer,
                bytes = fed.bytes,
                elapsed_ms,
                broken = fed.broken,
                ok,
                "push ended"
            );
        } else {
            tracing::debug!(
                service,
                peer,
                bytes = fed.bytes,
                elapsed_ms,
                ok,
                "exchange ended"
            );
        }
        if !ok && !errors.is_empty() && !fed.broken {
            tracing::warn!(service, peer, "git: {errors}");
        }
    }
}

/// Ends a fetch: git and what it has started.
fn kill(child: &mut Child) {
    crate::git::kill_group(child.id());
    let _ = child.start_kill();
}

/// How slow a client may be.
struct Pace {
    /// Time for which nothing may come.
    idle: Duration,
    stopping: CancellationToken,
}

impl Pace {
    /// Ends when the server has been stopping for long enough.
    async fn late(&self) {
        self.stopping.cancelled().await;
        tokio::time::sleep(AT_THE_END).await;
    }
}

/// Gives a request's body to a process, and reads it to its end also when the process wants no more: a client that
/// is still sending does not read the answer.
async fn feed(mut input: Input, stdin: ChildStdin, limit: u64, pace: Pace) -> Fed {
    let mut fed = Fed::default();
    let started = Instant::now();
    let late = pace.late();
    tokio::pin!(late);
    let mut stdin = Some(stdin);
    let mut piece = vec![0; PIECE];
    loop {
        let read = tokio::select! {
            read = tokio::time::timeout(pace.idle, input.read(&mut piece)) => read,
            () = &mut late => {
                fed.broken = true;
                return fed;
            }
        };
        match read {
            Ok(Ok(0)) => return fed,
            Ok(Ok(n)) => {
                fed.bytes += n as u64;
                if started.elapsed() > pace.idle
                    && fed.bytes < started.elapsed().as_secs() * SLOWEST
                {
                    fed.broken = true;
                    return fed;
                }
                if fed.bytes > limit {
                    fed.too_large = true;
                    stdin = None;
                }
                if fed.bytes > limit.saturating_mul(DRAINED).max(DRAINED_LEAST) {
                    fed.broken = true;
                    return fed;
                }
                if let Some(to) = &mut stdin
                    && to.write_all(&piece[..n]).await.is_err()
                {
                    stdin = None;
                }
            }
            Ok(Err(_)) | Err(_) => {
                fed.broken = true;
                return fed;
            }
        }
    }
}

/// Sends on what a process says; false when nobody reads it.
async fn pass(
    prologue: &str,
    mut stdout: ChildStdout,
    sender: &mpsc::Sender<io::Result<Bytes>>,
    idle: Duration,
) -> bool {
    if !prologue.is_empty() {
        let prologue = Bytes::copy_from_slice(prologue.as_bytes());
        if sender.send(Ok(prologue)).await.is_err() {
            return false;
        }
    }
    let mut piece = vec![0; PIECE];
    loop {
        let read = tokio::select! {
            read = stdout.read(&mut piece) => read,
            () = sender.closed() => return false,
        };
        match read {
            Ok(0) | Err(_) => return true,
            Ok(n) => {
                let bytes = Bytes::copy_from_slice(&piece[..n]);
                match tokio::time::timeout(idle, sender.send(Ok(bytes))).await {
                    Ok(Ok(())) => {}
                    Ok(Err(_)) | Err(_) => return false,
                }
            }
        }
    }
}

/// Sends on what may be known before a push is published. Reads to the end whether or not somebody is there.
async fn read_report(
    mut stdout: ChildStdout,
    sender: &mpsc::Sender<io::Result<Bytes>>,
    idle: Duration,
) -> Report {
    let mut report = Report::default();
    let mut piece = vec![0; PIECE];
    let mut heard = true;
    loop {
        match stdout.read(&mut piece).await {
            Ok(0) | Err(_) => return report,
            Ok(n) => {
                let now = report.take(&piece[..n]);
                if heard && !now.is_empty() {
                    let sent = tokio::time::timeout(idle, sender.send(Ok(now))).await;
                    heard = matches!(sent, Ok(Ok(())));
                }
            }
        }
    }
}

async fn read_errors(stderr: ChildStderr) -> String {
    let mut bytes = Vec::new();
    let mut stderr = stderr.take(MAX_STDERR);
    let _ = stderr.read_to_end(&mut bytes).await;
    let mut rest = stderr.into_inner();
    // read on, so that the process is not stopped by a full pipe
    let _ = tokio::io::copy(&mut rest, &mut tokio::io::sink()).await;
    String::from_utf8_lossy(&bytes).trim().replace('\n', "; ")
}
