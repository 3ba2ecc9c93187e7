//! Accepts connections, bounds what a connection may cost, ends them gracefully.

use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use axum::Router;
use axum::body::Body;
use axum::extract::ConnectInfo;
use hyper::body::Incoming;
use hyper::server::conn::http1;
use hyper_util::rt::{TokioIo, TokioTimer};
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::net::TcpListener;
use tokio::sync::Semaphore;
use tokio::task::JoinSet;
use tokio_io_timeout::TimeoutStream;
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;
use tower::ServiceExt;

use super::actor::SameMachine;

/// What one connection and all of them may cost.
#[derive(Debug, Clone)]
pub struct Limits {
    /// Connections at a time; more wait to be accepted.
    pub connections: usize,
    /// Time for a request's headers, and for which an idle connection is kept.
    pub header_timeout: Duration,
    /// Time for which a write may make no progress: a client that reads nothing loses its connection.
    pub write_timeout: Duration,
    /// Headers of a request.
    pub headers: usize,
    /// Bytes of a request's headers that are read before it is refused.
    pub header_bytes: usize,
    /// Time that open requests and streams get to end at shutdown.
    pub grace: Duration,
}

impl Default for Limits {
    fn default() -> Self {
        Self {
            connections: 25_000,
            header_timeout: Duration::from_secs(75),
            write_timeout: Duration::from_secs(30),
            headers: 64,
            header_bytes: 16 * 1024,
            grace: Duration::from_secs(5),
        }
    }
}

/// Time for the answer of a write that has just ended.
const LAST: Duration = Duration::from_secs(1);

/// Serves a router until told to stop; returns when every connection has ended or the grace is over. `writes` are tasks
/// that must not be cut (a push): the end of those that run then is waited for.
pub async fn serve(
    listener: TcpListener,
    router: Router,
    limits: &Limits,
    shutdown: CancellationToken,
    writes: &TaskTracker,
) {
    let places = Arc::new(Semaphore::new(limits.connections));
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
        // Answers are written whole; waiting for more to send costs 40 ms a call.
        if let Err(error) = socket.set_nodelay(true) {
            tracing::debug!(%error, "could not turn Nagle's algorithm off");
        }
        let router = router.clone();
        let shutdown = shutdown.clone();
        let limits = limits.clone();
        connections.spawn(async move {
            connection(socket, Some(peer), router, &limits, shutdown).await;
            drop(place);
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

/// Serves a router to the programs of this machine that may connect to a Unix socket, until told to stop.
#[cfg(unix)]
pub async fn serve_unix(
    listener: &tokio::net::UnixListener,
    router: Router,
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
                let (router, limits, shutdown) = (router.clone(), limits.clone(), shutdown.clone());
                connections.spawn(async move {
                    connection(socket, None, router, &limits, shutdown).await;
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

async fn connection(
    socket: impl AsyncRead + AsyncWrite + Send + 'static,
    peer: Option<SocketAddr>,
    router: Router,
    limits: &Limits,
    shutdown: CancellationToken,
) {
    let service = hyper::service::service_fn(move |mut request: hyper::Request<Incoming>| {
        match peer {
            Some(peer) => request.extensions_mut().insert(ConnectInfo(peer)).is_some(),
            None => request.extensions_mut().insert(SameMachine).is_some(),
        };
        router.clone().oneshot(request.map(Body::new))
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
