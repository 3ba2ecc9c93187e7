//! The API of a data directory, for commands: the server's that serves it, else one made for the command alone.

use std::io::Write;
use std::path::{Path, PathBuf};

use anyhow::{Context as _, anyhow, bail};
use axum::body::Body;
use axum::http::{Method, Request, StatusCode, header};
use http_body_util::BodyExt as _;
use reqwest::Url;
use serde::de::DeserializeOwned;
use serde_json::Value;
use tokio::runtime::Runtime;
use tower::ServiceExt as _;

use super::serve::ConfigArgs;
use crate::http::actor::SameMachine;
use crate::router::Front;
use crate::server::{self, Running};

/// A way to call the API.
#[derive(Debug)]
pub(super) struct Service {
    runtime: Runtime,
    reach: Reach,
}

#[derive(Debug)]
enum Reach {
    /// Over the socket of the server that runs.
    Server(reqwest::Client),
    /// In this process; the data directory is locked meanwhile.
    Alone(Front, Option<Box<Running>>),
}

/// What a refusal of the API says (RFC 9457).
#[derive(Debug, thiserror::Error)]
#[error("{detail}")]
pub(super) struct Refused {
    /// The status of the answer.
    pub(super) status: StatusCode,
    /// One or more lines for a person.
    pub(super) detail: String,
}

impl Service {
    /// Finds the server of a data directory, or opens the directory.
    pub(super) fn open(args: &ConfigArgs) -> anyhow::Result<Self> {
        let data_dir = args.data_dir();
        if !data_dir.join("library.git").is_dir() {
            bail!(
                "there is no data directory at {}: name it with --data-dir DIR, or make one with cuebook serve",
                data_dir.display()
            );
        }
        let runtime = super::runtime()?;
        if let Some(client) = connect(&data_dir) {
            return Ok(Self {
                runtime,
                reach: Reach::Server(client),
            });
        }
        let config = args.load(&data_dir, None, None, false)?;
        let (router, running) = runtime.block_on(server::open_alone(&data_dir, &config))?;
        Ok(Self {
            runtime,
            reach: Reach::Alone(router, Some(Box::new(running))),
        })
    }

    /// Whether a server answers, and not this process.
    pub(super) fn is_served(&self) -> bool {
        matches!(self.reach, Reach::Server(_))
    }

    /// Asks for something.
    pub(super) fn get<T: DeserializeOwned>(
        &self,
        path: &str,
        query: &[(&str, &str)],
    ) -> anyhow::Result<T> {
        let body = self.call(Method::GET, path, query, None, &mut None::<Vec<u8>>)?;
        serde_json::from_slice(&body).context("the server answered something else")
    }

    /// Asks for a list, page after page; the answer is as if it had come in one.
    pub(super) fn all<T: DeserializeOwned>(
        &self,
        path: &str,
        query: &[(&str, &str)],
        list: &str,
    ) -> anyhow::Result<T> {
        let mut answer: Value = self.get(path, query)?;
        while let Some(cursor) = answer["next_cursor"].as_str().map(str::to_owned) {
            let mut query = query.to_vec();
            query.push(("cursor", &cursor));
            let mut next: Value = self.get(path, &query)?;
            if let (Some(all), Some(more)) =
                (answer[list].as_array_mut(), next[list].as_array_mut())
            {
                all.append(more);
            }
            answer["next_cursor"] = next["next_cursor"].take();
        }
        serde_json::from_value(answer).context("the server answered something else")
    }

    /// Asks for something and writes it out as it comes.
    pub(super) fn copy(
        &self,
        path: &str,
        query: &[(&str, &str)],
        out: &mut impl Write,
    ) -> anyhow::Result<()> {
        self.call(Method::GET, path, query, None, &mut Some(out))
            .map(drop)
    }

    /// Sends something.
    pub(super) fn post<T: DeserializeOwned>(&self, path: &str, body: &Value) -> anyhow::Result<T> {
        let body = self.call(Method::POST, path, &[], Some(body), &mut None::<Vec<u8>>)?;
        serde_json::from_slice(&body).context("the server answered something else")
    }

    fn call(
        &self,
        method: Method,
        path: &str,
        query: &[(&str, &str)],
        body: Option<&Value>,
        out: &mut Option<impl Write>,
    ) -> anyhow::Result<Vec<u8>> {
        let url = Url::parse_with_params(&format!("http://localhost{path}"), query)?;
        let content = body.map(Value::to_string).unwrap_or_default();
        self.runtime.block_on(async {
            match &self.reach {
                Reach::Server(client) => {
                    let request = client
                        .request(method, url)
                        .header(header::CONTENT_TYPE, "application/json")
                        .body(content);
                    let mut response = request
                        .send()
                        .await
                        .context("the server of the data directory does not answer")?;
                    let mut answer = Answer::new(response.status(), out);
                    while let Some(chunk) = response
                        .chunk()
                        .await
                        .context("the server ended before it had answered")?
                    {
                        answer.take(&chunk)?;
                    }
                    answer.end()
                }
                Reach::Alone(router, _) => {
                    let path = match url.query() {
                        Some(query) => format!("{}?{query}", url.path()),
                        None => url.path().to_owned(),
                    };
                    let request = Request::builder()
                        .method(method)
                        .uri(path)
                        .header(header::HOST, "localhost")
                        .header(header::CONTENT_TYPE, "application/json")
                        .extension(SameMachine)
                        .body(Body::from(content))?;
                    let response = router.clone().oneshot(request).await?;
                    let mut answer = Answer::new(response.status(), out);
                    let mut body = response.into_body();
                    while let Some(frame) = body.frame().await {
                        if let Ok(data) = frame?.into_data() {
                            answer.take(&data)?;
                        }
                    }
                    answer.end()
                }
            }
        })
    }
}

impl Drop for Service {
    fn drop(&mut self) {
        // what was to be written is
        if let Reach::Alone(_, running) = &mut self.reach
            && let Some(running) = running.take()
        {
            self.runtime.block_on(running.stop());
        }
    }
}

/// An answer as it comes: to `out`, or kept; a refusal is always kept.
struct Answer<'a, W> {
    status: StatusCode,
    kept: Vec<u8>,
    out: &'a mut Option<W>,
}

impl<'a, W: Write> Answer<'a, W> {
    fn new(status: StatusCode, out: &'a mut Option<W>) -> Self {
        Self {
            status,
            kept: Vec::new(),
            out,
        }
    }

    fn take(&mut self, chunk: &[u8]) -> std::io::Result<()> {
        match self.out {
            Some(out) if self.status.is_success() => out.write_all(chunk),
            _ => {
                self.kept.extend_from_slice(chunk);
                Ok(())
            }
        }
    }

    fn end(self) -> anyhow::Result<Vec<u8>> {
        if self.status.is_success() {
            return Ok(self.kept);
        }
        let detail = serde_json::from_slice::<Value>(&self.kept)
            .ok()
            .and_then(|problem| Some(problem.get("detail")?.as_str()?.to_owned()))
            .unwrap_or_else(|| format!("the server answered {}", self.status));
        Err(anyhow!(Refused {
            status: self.status,
            detail,
        }))
    }
}

/// A client of the server that serves a data directory; none where none does.
#[cfg(unix)]
fn connect(data_dir: &Path) -> Option<reqwest::Client> {
    let path: PathBuf = crate::socket::find(data_dir, server::COMMANDS).ok()?;
    // a server that was killed leaves its socket behind
    std::os::unix::net::UnixStream::connect(&path).ok()?;
    let _ = rustls::crypto::ring::default_provider().install_default();
    reqwest::Client::builder()
        .user_agent(concat!("cuebook/", env!("CARGO_PKG_VERSION")))
        .redirect(reqwest::redirect::Policy::none())
        .tls_certs_only([])
        .no_proxy()
        .unix_socket(path)
        .build()
        .ok()
}

/// Where there are no Unix sockets, commands wait until no server serves the data directory.
#[cfg(not(unix))]
fn connect(_: &Path) -> Option<reqwest::Client> {
    None
}
