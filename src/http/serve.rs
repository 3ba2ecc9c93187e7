//! Accepts connections, bounds what a connection may cost, ends them gracefully.

use std::convert::Infallible;
use std::net::{IpAddr, SocketAddr};
use std::sync::Arc;
use std::time::Duration;

use axum::Router;
use axum::body::Body;
use axum::extract::Request;
use axum::http::StatusCode;
use axum::http::header::{self, HeaderValue};
use axum::response::{IntoResponse as _, Response};
use hyper::body::Incoming;
use hyper::server::conn::http1;
use hyper_util::rt::{TokioIo, TokioTimer};
use ipnet::IpNet;
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::Semaphore;
use tokio::task::JoinSet;
use tokio_io_timeout::TimeoutStream;
use tokio_rustls::server::TlsStream;
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;
use tower::Service;

use super::actor::SameMachine;
use super::client::Peer;
use super::crowd::Crowd;
use super::json_error;
use super::rates::Network;
use super::tls::Tls;

/// What one connection and all of them may cost.
#[derive(Debug, Clone)]
pub struct Limits {
    /// Connections at a time; more wait to be accepted.
    pub connections: usize,
    /// Connections of one address at a time; more are closed. 0 is no limit.
    pub connections_per_address: usize,
    /// Whether programs of this machine may have as many as there are.
    pub exempt_loopback: bool,
    /// Networks of which each address may, too: proxies bring the connections of many.
    pub exempt: Vec<IpNet>,
    /// Time for a request's headers, and for which an idle connection is kept.
    pub header_timeout: Duration,
    /// Time in which a TLS connection must be agreed on.
    pub handshake_timeout: Duration,
    /// Time for which a write may make no progress: a client that reads nothing loses its connection.
    pub write_timeout: Duration,
    /// Headers of a request.
    pub headers: usize,
    /// Bytes of a request's headers that are read before it is refused.
    pub header_bytes: usize,
    /// Time that open requests and streams get to end at shutdown.
    pub grace: Duration,
}

impl Limits {
    /// How many connections an address may have; none where it is not counted.
    fn most_of(&self, ip: IpAddr) -> Option<usize> {
        let ip = ip.to_canonical();
        let exempt = (self.exempt_loopback && ip.is_loopback())
            || self.exempt.iter().any(|network| network.contains(&ip));
        (!exempt && self.connections_per_address > 0).then_some(self.connections_per_address)
    }
}

impl Default for Limits {
    fn default() -> Self {
        Self {
            connections: 25_000,
            connections_per_address: 2_500,
            exempt_loopback: true,
            exempt: Vec::new(),
            header_timeout: Duration::from_secs(75),
            handshake_timeout: Duration::from_secs(10),
            write_timeout: Duration::from_secs(30),
            headers: 64,
            header_bytes: 16 * 1024,
            grace: Duration::from_secs(5),
        }
    }
}

/// Time for the answer of a write that has just ended.
const LAST: Duration = Duration::from_secs(1);

/// What answers requests: a router, or what stands before one.
pub trait App:
    Service<Request, Response = Response, Error = Infallible, Future: Send>
    + Clone
    + Send
    + Sync
    + 'static
{
}

impl<S> App for S where
    S: Service<Request, Response = Response, Error = Infallible, Future: Send>
        + Clone
        + Send
        + Sync
        + 'static
{
}

/// Serves an app until told to stop; returns when every connection has ended or the grace is over. `writes` are tasks
/// that must not be cut (a push): the end of those that run then is waited for.
pub async fn serve(
    listener: TcpListener,
    app: impl App,
    limits: &Limits,
    shutdown: CancellationToken,
    writes: &TaskTracker,
) {
    accept(listener, None, app, limits, shutdown, writes).await;
}

/// The same over TLS.
pub async fn serve_tls(
    listener: TcpListener,
    tls: Arc<Tls>,
    app: impl App,
    limits: &Limits,
    shutdown: CancellationToken,
    writes: &TaskTracker,
) {
    accept(listener, Some(tls), app, limits, shutdown, writes).await;
}

async fn accept(
    listener: TcpListener,
    tls: Option<Arc<Tls>>,
    app: impl App,
    limits: &Limits,
    shutdown: CancellationToken,
    writes: &TaskTracker,
) {
    let places = Arc::new(Semaphore::new(limits.connections));
    let crowd = Arc::new(Crowd::<Network>::default());
    let limits = Arc::new(limits.clone());
    let mut connections = JoinSet::new();
    loop {
        let place = tokio::select! {
            () = shutdown.cancelled() => break,
            place = places.clone().acquire_owned() => match place {
                Ok(place) => place,
                Err(_) => break,
            },
        };
        let (socket, peer) = tokio::select! {
            () = shutdown.cancelled() => break,
            accepted = listener.accept() => match accepted {
                Ok(accepted) => accepted,
                Err(error) => {
                    // Out of file descriptors: trying at once would only burn the core.
                    tracing::warn!(%error, "could not accept a connection");
                    tokio::time::sleep(Duration::from_millis(100)).await;
                    continue;
                }
            },
        };
        while connections.try_join_next().is_some() {}
        let most = limits.most_of(peer.ip());
        let held = most.and_then(|most| crowd.take(peer.ip().into(), most));
        if most.is_some() && held.is_none() {
            tracing::debug!(%peer, most, "closed a connection: its address has too many");
            continue;
        }
        // Answers are written whole; waiting for more to send costs 40 ms a call.
        if let Err(error) = socket.set_nodelay(true) {
            tracing::debug!(%error, "could not turn Nagle's algorithm off");
        }
        let (app, tls) = (app.clone(), tls.clone());
        let shutdown = shutdown.clone();
        let limits = limits.clone();
        connections.spawn(async move {
            if let Some(tls) = tls {
                encrypted(socket, peer, &tls, app, &limits, shutdown).await;
            } else {
                let peer = Peer {
                    address: peer,
                    encrypted: false,
                };
                connection(socket, Some(peer), app, &limits, shutdown).await;
            }
            drop((place, held));
        });
    }
    drop(listener);
    writes.close();
    let ended = async { while connections.join_next().await.is_some() {} };
    tokio::pin!(ended);
    if tokio::time::timeout(limits.grace, &mut ended)
        .await
        .is_err()
    {
        if !writes.is_empty() {
            let count = writes.len();
            tracing::info!(
                "waiting for {count} push{} to end",
                if count == 1 { "" } else { "es" }
            );
        }
        writes.wait().await;
        // their answers are on the way
        if tokio::time::timeout(LAST, ended).await.is_err() {
            tracing::warn!("some connections did not end in time and were cut");
        }
    }
    writes.wait().await;
}

/// Serves an app to the programs of this machine that may connect to a Unix socket, until told to stop.
#[cfg(unix)]
pub async fn serve_unix(
    listener: &tokio::net::UnixListener,
    app: impl App,
    limits: &Limits,
    shutdown: CancellationToken,
) {
    let mut connections = JoinSet::new();
    loop {
        let accepted = tokio::select! {
            () = shutdown.cancelled() => break,
            accepted = listener.accept() => accepted,
        };
        while connections.try_join_next().is_some() {}
        match accepted {
            Ok((socket, _)) => {
                let (app, limits, shutdown) = (app.clone(), limits.clone(), shutdown.clone());
                connections.spawn(async move {
                    connection(socket, None, app, &limits, shutdown).await;
                });
            }
            Err(error) => {
                tracing::warn!(%error, "could not accept a connection");
                tokio::time::sleep(Duration::from_millis(100)).await;
            }
        }
    }
    let ended = async { while connections.join_next().await.is_some() {} };
    let _ = tokio::time::timeout(limits.grace, ended).await;
}

/// What a client has begun with.
enum Begun {
    Tls(Box<TlsStream<TcpStream>>),
    Plain(TcpStream),
}

/// Serves an app to a client that speaks TLS, and tells one that does not.
async fn encrypted(
    socket: TcpStream,
    address: SocketAddr,
    tls: &Tls,
    app: impl App,
    limits: &Limits,
    shutdown: CancellationToken,
) {
    let begun = tokio::select! {
        () = shutdown.cancelled() => return,
        begun = tokio::time::timeout(limits.handshake_timeout, begin(socket, tls)) => begun,
    };
    let peer = |encrypted| Some(Peer { address, encrypted });
    match begun {
        Ok(Ok(Begun::Tls(socket))) => {
            connection(*socket, peer(true), app, limits, shutdown).await;
        }
        Ok(Ok(Begun::Plain(socket))) => {
            let limits = Limits {
                header_timeout: limits.handshake_timeout,
                ..limits.clone()
            };
            let router = Router::new().fallback(not_encrypted);
            connection(socket, peer(false), router, &limits, shutdown).await;
        }
        Ok(Err(error)) => tracing::debug!(%error, %address, "no TLS connection came about"),
        Err(_) => tracing::debug!(%address, "no TLS connection came about in time"),
    }
}

/// The first byte of a TLS connection: a record that is a handshake (RFC 8446, section 5.1).
const HANDSHAKE: u8 = 22;

async fn begin(socket: TcpStream, tls: &Tls) -> std::io::Result<Begun> {
    let mut first = [0];
    if socket.peek(&mut first).await? == 1 && first[0] != HANDSHAKE {
        return Ok(Begun::Plain(socket));
    }
    let socket = tls.acceptor().accept(socket).await?;
    Ok(Begun::Tls(Box::new(socket)))
}

async fn not_encrypted() -> Response {
    let close = [(header::CONNECTION, HeaderValue::from_static("close"))];
    let error = json_error("this port speaks TLS; begin the address with https://");
    (StatusCode::BAD_REQUEST, close, error).into_response()
}

async fn connection(
    socket: impl AsyncRead + AsyncWrite + Send + 'static,
    peer: Option<Peer>,
    app: impl App,
    limits: &Limits,
    shutdown: CancellationToken,
) {
    let service = hyper::service::service_fn(move |mut request: hyper::Request<Incoming>| {
        match peer {
            Some(peer) => request.extensions_mut().insert(peer).is_some(),
            None => request.extensions_mut().insert(SameMachine).is_some(),
        };
        // it is ready at any time, as a router is
        app.clone().call(request.map(Body::new))
    });
    let mut builder = http1::Builder::new();
    builder
        .timer(TokioTimer::new())
        .header_read_timeout(limits.header_timeout)
        .max_headers(limits.headers)
        .max_buf_size(limits.header_bytes.max(8192))
        .half_close(false);
    // what a client does not read stays in the kernel's buffers until they are full: from then on it has this long
    let mut socket = TimeoutStream::new(socket);
    socket.set_write_timeout(Some(limits.write_timeout));
    let connection = builder.serve_connection(TokioIo::new(Box::pin(socket)), service);
    tokio::pin!(connection);
    let outcome = tokio::select! {
        outcome = connection.as_mut() => outcome,
        () = shutdown.cancelled() => {
            connection.as_mut().graceful_shutdown();
            connection.await
        }
    };
    if let Err(error) = outcome {
        tracing::debug!(%error, ?peer, "a connection ended with an error");
    }
}
