//! Clients that are slow on purpose, many, or endless.

use std::net::{Ipv4Addr, SocketAddr};
use std::sync::Arc;
use std::time::{Duration, Instant};

use axum::Router;
use axum::routing::{get, post};
use cuebook::http::{Entrance, Limits, Pace, layers, serve};
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::{TcpListener, TcpSocket, TcpStream};
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;

use super::*;
use crate::support::http::raw;
use crate::support::soon;

/// A small server with these limits; it stops when the token is dropped.
async fn start(limits: Limits, pace: Pace) -> (SocketAddr, tokio_util::sync::DropGuard) {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap();
    let cancel = CancellationToken::new();
    let stop = cancel.clone();
    let length = post(async |body: axum::body::Bytes| body.len().to_string());
    let router = Router::new()
        .route("/", get(|| async { "ok" }))
        .route("/length", length)
        .layer(axum::middleware::from_fn(move |request, next| {
            pace.bound(request, next)
        }));
    let router = layers(router, Arc::new(Entrance::default()));
    tokio::spawn(async move {
        serve(listener, router, &limits, stop, &TaskTracker::new()).await;
    });
    (address, cancel.drop_guard())
}

const REQUEST: &[u8] = b"GET / HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n";

/// What a connection from another address of this machine is answered; none when it is closed without an answer.
async fn ask_from(ip: Ipv4Addr, server: SocketAddr) -> Option<String> {
    let socket = TcpSocket::new_v4().unwrap();
    socket.bind(SocketAddr::from((ip, 0))).unwrap();
    let mut stream = socket.connect(server).await.unwrap();
    stream.write_all(REQUEST).await.ok()?;
    let mut all = String::new();
    soon("the end", stream.read_to_string(&mut all))
        .await
        .ok()?;
    (!all.is_empty()).then_some(all)
}

#[cfg(target_os = "linux")]
#[tokio::test]
async fn thousands_of_connections_from_one_address_leave_every_other_address_its_place() {
    let limits = Limits {
        connections: 200,
        connections_per_address: 100,
        exempt_loopback: false,
        ..Limits::default()
    };
    let (address, _stop) = start(limits, Pace::default()).await;
    let (crowd, other) = (Ipv4Addr::LOCALHOST, Ipv4Addr::new(127, 0, 0, 2));
    let mut held = Vec::new();
    for number in 0..3000 {
        let mut stream = TcpStream::connect(address).await.unwrap();
        // half a request: each waits for the rest
        let _ = stream.write_all(b"GET / HTTP/1.1\r\nHost: loc").await;
        if number < 200 {
            held.push(stream);
        }
        if number % 500 == 0 {
            let answer = ask_from(other, address).await.unwrap();
            assert!(answer.ends_with("ok"), "{answer}");
        }
    }
    assert_eq!(ask_from(crowd, address).await, None, "its places are taken");
    let answer = ask_from(other, address).await.unwrap();
    assert!(answer.ends_with("ok"), "{answer}");
    // and it gets its places back
    drop(held);
    soon("a place", async {
        while ask_from(crowd, address).await.is_none() {
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
    })
    .await;
}

#[tokio::test]
async fn a_body_that_comes_a_byte_at_a_time_ends() {
    let pace = Pace {
        patience: Duration::from_millis(500),
        bytes_per_second: 1024,
    };
    let (address, _stop) = start(Limits::default(), pace).await;
    let head = "POST /length HTTP/1.1\r\nHost: localhost\r\nContent-Length: 100000\r\n\r\n";
    let mut dripping = TcpStream::connect(address).await.unwrap();
    dripping.write_all(head.as_bytes()).await.unwrap();
    let mut silent = TcpStream::connect(address).await.unwrap();
    silent.write_all(head.as_bytes()).await.unwrap();
    let (mut reading, mut writing) = dripping.into_split();
    let drips = tokio::spawn(async move {
        while writing.write_all(b"x").await.is_ok() {
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
    });
    let mut answer = Vec::new();
    let _ = soon("the end of the drips", reading.read_to_end(&mut answer)).await;
    assert!(
        answer.starts_with(b"HTTP/1.1 4"),
        "{}",
        String::from_utf8_lossy(&answer)
    );
    drips.abort();
    let mut answer = Vec::new();
    let _ = soon("the end of the silence", silent.read_to_end(&mut answer)).await;
    assert!(
        answer.starts_with(b"HTTP/1.1 4"),
        "{}",
        String::from_utf8_lossy(&answer)
    );
    // one that comes is taken
    let whole = [head.as_bytes(), &vec![b'x'; 100_000]].concat();
    assert_eq!(raw(address, &whole).await.text(), "100000");
}

#[tokio::test]
async fn headers_without_end_are_refused() {
    let started = Started::new(&[]);
    let head = "GET /healthz HTTP/1.1\r\nHost: localhost\r\n";
    let long = format!("{head}X-Long: {}\r\n\r\n", "x".repeat(64 * 1024));
    let many: String = (0..200).map(|n| format!("X-{n}: y\r\n")).collect();
    let many = format!("{head}{many}\r\n");
    let target = format!(
        "GET /{} HTTP/1.1\r\nHost: localhost\r\n\r\n",
        "x".repeat(64 * 1024)
    );
    for request in [&long, &many, &target] {
        let reply = raw(started.address(), request.as_bytes()).await;
        assert!(matches!(reply.status, 414 | 431), "{reply:?}");
    }
    is_list(&started.list("").await);
}

#[tokio::test(flavor = "multi_thread")]
async fn everybody_else_is_served_while_hundreds_are_slow() {
    let started = Started::new(&[]);
    let mut held = Vec::new();
    let long = "x".repeat(1000);
    let body = "POST /mcp HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\nContent-Length: 9999\r\n\r\n{";
    let hook = "POST /hooks/upstream HTTP/1.1\r\nHost: localhost\r\nContent-Length: 9999\r\n\r\n{";
    let headers = format!("GET / HTTP/1.1\r\nHost: localhost\r\nX-Slow: {long}");
    // asks for much, and reads nothing of it
    let list = json!({ "jsonrpc": "2.0", "id": 1, "method": "prompts/list" }).to_string();
    let one = format!(
        "POST /mcp HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\nAccept: application/json, text/event-stream\r\nContent-Length: {}\r\n\r\n{list}",
        list.len()
    );
    let stuck = one.repeat(200);
    let stream =
        "GET /mcp HTTP/1.1\r\nHost: localhost\r\nAccept: text/event-stream\r\n\r\n".to_owned();
    for begun in [body, hook, &headers, &stuck, &stream] {
        for _ in 0..100 {
            let mut socket = TcpStream::connect(started.address()).await.unwrap();
            // one that reads nothing may be left unread itself
            let writing = socket.write_all(begun.as_bytes());
            let _ = tokio::time::timeout(Duration::from_millis(50), writing).await;
            held.push(socket);
        }
        let began = Instant::now();
        for _ in 0..5 {
            is_list(&started.list("").await);
        }
        assert!(
            began.elapsed() < Duration::from_secs(5),
            "{:?}",
            began.elapsed()
        );
    }
    assert_eq!(held.len(), 500);
    let memory = started.server.memory_kib("VmRSS");
    assert!(memory < 300 * 1024, "{memory} KiB");
}
