//! The loop that accepts connections: what a connection may cost.

use std::convert::Infallible;
use std::time::{Duration, Instant};

use axum::Router;
use axum::body::{Body, Bytes};
use axum::routing::get;
use cuebook::http::{Limits, serve};
use futures_util::stream;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};
use tokio_util::sync::CancellationToken;

use crate::support::http::raw;
use crate::support::soon;

const REQUEST: &[u8] = b"GET / HTTP/1.1\r\nHost: localhost\r\n\r\n";

const REQUEST_CLOSE: &[u8] = b"GET / HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n";

async fn start(
    limits: Limits,
) -> (
    std::net::SocketAddr,
    CancellationToken,
    tokio::task::JoinHandle<()>,
) {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap();
    let cancel = CancellationToken::new();
    let stop = cancel.clone();
    let endless = get(|| async {
        let chunk = Bytes::from(vec![b'x'; 65_536]);
        Body::from_stream(stream::repeat(Ok::<_, Infallible>(chunk)))
    });
    let router = Router::new()
        .route("/", get(|| async { "ok" }))
        .route("/endless", endless)
        .route(
            "/slow",
            get(|| async {
                tokio::time::sleep(Duration::from_millis(500)).await;
                "slow"
            }),
        );
    let task = tokio::spawn(async move {
        serve(
            listener,
            router,
            &limits,
            stop,
            &tokio_util::task::TaskTracker::new(),
        )
        .await;
    });
    (address, cancel, task)
}

#[tokio::test]
async fn a_connection_that_sends_no_headers_is_closed() {
    let limits = Limits {
        header_timeout: Duration::from_millis(300),
        ..Limits::default()
    };
    let (address, _cancel, _task) = start(limits).await;
    for begun in [&b""[..], b"GET / HTTP/1.1\r\nHost: loc", REQUEST] {
        let mut stream = TcpStream::connect(address).await.unwrap();
        stream.write_all(begun).await.unwrap();
        let mut all = Vec::new();
        soon("the end", stream.read_to_end(&mut all)).await.unwrap();
    }
}

#[tokio::test]
async fn the_time_for_headers_is_not_the_time_for_an_answer() {
    let limits = Limits {
        header_timeout: Duration::from_millis(100),
        ..Limits::default()
    };
    let (address, _cancel, _task) = start(limits).await;
    let request = b"GET /slow HTTP/1.1\r\nHost: localhost\r\n\r\n";
    assert_eq!(raw(address, request).await.text(), "slow");
}

#[tokio::test]
async fn a_client_that_reads_nothing_loses_its_connection_and_one_that_reads_slowly_does_not() {
    let (address, _cancel, _task) = start(Limits {
        connections: 2,
        write_timeout: Duration::from_secs(2),
        ..Limits::default()
    })
    .await;
    let request = b"GET /endless HTTP/1.1\r\nHost: localhost\r\n\r\n";
    let mut slow = TcpStream::connect(address).await.unwrap();
    slow.write_all(request).await.unwrap();
    let mut stuck = TcpStream::connect(address).await.unwrap();
    stuck.write_all(request).await.unwrap();
    // both places are taken; the next is served when the one that reads nothing is dropped, while the other reads on
    let reading = tokio::spawn(async move {
        let mut some = vec![0; 200_000];
        loop {
            let count = slow.read(&mut some).await.unwrap();
            assert!(count > 0, "it was cut off");
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
    });
    assert_eq!(raw(address, REQUEST_CLOSE).await.text(), "ok");
    assert!(!reading.is_finished());
    reading.abort();
    // what the kernel held is there; then the connection ends, one way or the other
    let mut rest = Vec::new();
    let _ = soon("the end", stuck.read_to_end(&mut rest)).await;
}

#[tokio::test]
async fn connections_past_the_limit_wait_for_a_place() {
    let (address, _cancel, _task) = start(Limits {
        connections: 1,
        ..Limits::default()
    })
    .await;
    let mut first = TcpStream::connect(address).await.unwrap();
    first.write_all(REQUEST).await.unwrap();
    let mut buffer = [0; 12];
    soon("a response", first.read_exact(&mut buffer))
        .await
        .unwrap();
    let second = tokio::spawn(async move { raw(address, REQUEST).await });
    tokio::time::sleep(Duration::from_millis(200)).await;
    assert!(!second.is_finished());
    drop(first);
    assert_eq!(second.await.unwrap().status, 200);
}

#[tokio::test]
async fn shutdown_lets_a_request_end_and_waits_no_longer_than_its_grace() {
    let (address, cancel, task) = start(Limits::default()).await;
    let slow = tokio::spawn(async move {
        raw(
            address,
            b"GET /slow HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n",
        )
        .await
    });
    tokio::time::sleep(Duration::from_millis(100)).await;
    cancel.cancel();
    soon("the end", task).await.unwrap();
    assert_eq!(slow.await.unwrap().text(), "slow");

    let (address, cancel, task) = start(Limits {
        grace: Duration::from_millis(300),
        ..Limits::default()
    })
    .await;
    // One that has sent half a request would wait for ever.
    let mut stuck = TcpStream::connect(address).await.unwrap();
    stuck.write_all(b"GET / HT").await.unwrap();
    tokio::time::sleep(Duration::from_millis(100)).await;
    let started = Instant::now();
    cancel.cancel();
    soon("the end", task).await.unwrap();
    assert!(started.elapsed() < Duration::from_secs(3));
}
