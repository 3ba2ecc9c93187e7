//! The floor: a bare axum handler that reads a request and returns fixed bytes, and a bare broadcast to open streams.
//! It parses nothing, checks nothing and renders nothing.
//!
//! `floor ADDRESS:PORT ANSWERS`: each file `NAME.json` of the folder is the answer to `POST /bytes/NAME`.

use std::convert::Infallible;

use axum::Router;
use axum::body::{Body, Bytes};
use axum::http::{StatusCode, header};
use axum::response::{IntoResponse, Response};
use axum::routing::{get, post};
use axum::serve::ListenerExt;
use futures_util::stream;
use tokio::sync::broadcast;
use tokio::sync::broadcast::error::RecvError;

#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

const NOTICE: Bytes = Bytes::from_static(
    b"event: message\ndata: {\"jsonrpc\":\"2.0\",\"method\":\"notifications/prompts/list_changed\"}\n\n",
);
const INITIALIZED: &str = r#"{"jsonrpc":"2.0","id":0,"result":{"protocolVersion":"2025-11-25","capabilities":{"prompts":{"listChanged":true}},"serverInfo":{"name":"floor","version":"0"}}}"#;

#[tokio::main]
async fn main() -> Result<(), Box<dyn std::error::Error>> {
    let mut arguments = std::env::args().skip(1);
    let (Some(address), Some(answers)) = (arguments.next(), arguments.next()) else {
        return Err("usage: floor ADDRESS:PORT ANSWERS".into());
    };
    let (notices, _) = broadcast::channel::<Bytes>(16);
    let told = notices.clone();
    let mut router = Router::new()
        .route("/mcp", get(move || listen(told.subscribe())).post(session))
        .route(
            "/notify",
            post(move || async move {
                // nobody listens: nobody is told
                let _ = notices.send(NOTICE);
                StatusCode::NO_CONTENT
            }),
        );
    for entry in std::fs::read_dir(answers)? {
        let path = entry?.path();
        if path.extension().is_some_and(|e| e == "json") {
            let name = path.file_stem().unwrap_or_default().to_string_lossy();
            let bytes = Bytes::from(std::fs::read(&path)?);
            let handler = move |body: Bytes| async move {
                drop(body);
                ([(header::CONTENT_TYPE, "application/json")], bytes)
            };
            router = router.route(&format!("/bytes/{name}"), post(handler));
        }
    }
    let listener = tokio::net::TcpListener::bind(&address).await?;
    let listener = listener.tap_io(|socket| {
        // a socket that is gone is found out when it is read
        let _ = socket.set_nodelay(true);
    });
    axum::serve(listener, router).await?;
    Ok(())
}

/// What a client sends before it listens, answered without looking further than for the one word.
async fn session(body: Bytes) -> Response {
    if memchr::memmem::find(&body, b"\"initialize\"").is_none() {
        return StatusCode::ACCEPTED.into_response();
    }
    let headers = [
        (header::CONTENT_TYPE.as_str(), "application/json"),
        ("mcp-session-id", "floor"),
    ];
    (headers, INITIALIZED).into_response()
}

async fn listen(notices: broadcast::Receiver<Bytes>) -> Response {
    let notices = stream::unfold((notices, true), |(mut notices, first)| async move {
        if first {
            return Some((
                Ok::<_, Infallible>(Bytes::from_static(b":\n\n")),
                (notices, false),
            ));
        }
        loop {
            match notices.recv().await {
                Ok(notice) => return Some((Ok(notice), (notices, false))),
                Err(RecvError::Lagged(_)) => {}
                Err(RecvError::Closed) => return None,
            }
        }
    });
    (
        [(header::CONTENT_TYPE, "text/event-stream")],
        Body::from_stream(notices),
    )
        .into_response()
}
