//! A bare repository over HTTP as a forge serves it: git's own `http-backend`, behind a token.

use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::process::Stdio;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};

use axum::Router;
use axum::body::{Body, to_bytes};
use axum::extract::{Request, State};
use axum::http::{Response, StatusCode};
use base64::Engine as _;
use tokio::io::AsyncWriteExt as _;
use tokio::net::TcpListener;
use tokio::process::Command;

/// What lets a client in.
pub(super) const TOKEN: &str = "token-of-the-forge";

struct Inner {
    root: PathBuf,
    token: Option<&'static str>,
    locked: AtomicBool,
    /// Where everything is sent on to.
    redirect: Option<String>,
    asked: AtomicUsize,
}

/// It is served until this is dropped.
pub(super) struct Forge {
    address: SocketAddr,
    name: String,
    inner: Arc<Inner>,
    task: tokio::task::JoinHandle<()>,
}

impl Forge {
    pub(super) async fn serve(bare: &Path, token: Option<&'static str>) -> Self {
        Self::start(bare, token, None).await
    }

    /// Answers everything with a redirect to another one.
    pub(super) async fn redirecting(to: &Self) -> Self {
        let bare = to.inner.root.join(&to.name);
        Self::start(&bare, None, Some(format!("http://{}", to.address))).await
    }

    async fn start(bare: &Path, token: Option<&'static str>, redirect: Option<String>) -> Self {
        let inner = Arc::new(Inner {
            root: bare.parent().unwrap().to_owned(),
            token,
            locked: AtomicBool::new(false),
            redirect,
            asked: AtomicUsize::new(0),
        });
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap();
        let router = Router::new().fallback(answer).with_state(inner.clone());
        let task = tokio::spawn(async move { axum_serve(listener, router).await });
        Self {
            address,
            name: bare.file_name().unwrap().to_str().unwrap().to_owned(),
            inner,
            task,
        }
    }

    pub(super) fn url(&self) -> String {
        format!("http://{}/{}", self.address, self.name)
    }

    /// How many requests came.
    pub(super) fn asked(&self) -> usize {
        self.inner.asked.load(Ordering::SeqCst)
    }

    /// From now on no token is good.
    pub(super) fn lock_out(&self) {
        self.inner.locked.store(true, Ordering::SeqCst);
    }
}

impl Drop for Forge {
    fn drop(&mut self) {
        self.task.abort();
    }
}

async fn axum_serve(listener: TcpListener, router: Router) {
    let limits = cuebook::http::Limits::default();
    let never = tokio_util::sync::CancellationToken::new();
    let none = tokio_util::task::TaskTracker::new();
    cuebook::http::serve(listener, router, &limits, never, &none).await;
}

async fn answer(State(forge): State<Arc<Inner>>, request: Request) -> Response<Body> {
    forge.asked.fetch_add(1, Ordering::SeqCst);
    if let Some(to) = &forge.redirect {
        return Response::builder()
            .status(StatusCode::FOUND)
            .header("Location", format!("{to}{}", request.uri()))
            .body(Body::empty())
            .unwrap();
    }
    let (parts, body) = request.into_parts();
    let header = |name: &str| {
        let value = parts.headers.get(name)?.to_str().ok()?;
        Some(value.to_owned())
    };
    let expected = forge.token.map(|token| {
        let basic = base64::engine::general_purpose::STANDARD.encode(format!("git:{token}"));
        format!("Basic {basic}")
    });
    let let_in = expected.is_none() || header("authorization") == expected;
    if forge.locked.load(Ordering::SeqCst) || !let_in {
        return Response::builder()
            .status(StatusCode::UNAUTHORIZED)
            .header("WWW-Authenticate", "Basic realm=\"forge\"")
            .body(Body::empty())
            .unwrap();
    }
    let mut command = Command::new("git");
    command
        .arg("http-backend")
        .env("GIT_PROJECT_ROOT", &forge.root)
        .env("GIT_HTTP_EXPORT_ALL", "1")
        .env("GIT_CONFIG_COUNT", "2")
        .env("GIT_CONFIG_KEY_0", "http.receivepack")
        .env("GIT_CONFIG_VALUE_0", "true")
        .env("GIT_CONFIG_KEY_1", "safe.directory")
        .env("GIT_CONFIG_VALUE_1", "*")
        .env("PATH_INFO", parts.uri.path())
        .env("QUERY_STRING", parts.uri.query().unwrap_or_default())
        .env("REQUEST_METHOD", parts.method.as_str())
        .env("CONTENT_TYPE", header("content-type").unwrap_or_default())
        .env(
            "HTTP_CONTENT_ENCODING",
            header("content-encoding").unwrap_or_default(),
        )
        .env("GIT_PROTOCOL", header("git-protocol").unwrap_or_default())
        .stdin(Stdio::piped())
        .stdout(Stdio::piped());
    let body = to_bytes(body, usize::MAX).await.unwrap();
    command.env("CONTENT_LENGTH", body.len().to_string());
    let mut child = command.spawn().unwrap();
    child.stdin.take().unwrap().write_all(&body).await.unwrap();
    let output = child.wait_with_output().await.unwrap().stdout;
    let split = output.windows(4).position(|w| w == b"\r\n\r\n").unwrap();
    let mut response = Response::builder();
    for line in std::str::from_utf8(&output[..split]).unwrap().lines() {
        let (name, value) = line.split_once(": ").unwrap();
        response = match name {
            "Status" => response.status(value[..3].parse::<u16>().unwrap()),
            _ => response.header(name, value),
        };
    }
    response
        .body(Body::from(output[split + 4..].to_vec()))
        .unwrap()
}
