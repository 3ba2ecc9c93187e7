//! Requests to a provider: bounded in time and size, never redirected, encrypted unless it runs on this machine.

use std::time::Duration;

use reqwest::Url;

/// Longest answer, in bytes.
const MAX_ANSWER: usize = 1024 * 1024;

/// Why a request to a provider failed.
#[derive(Debug, Clone, thiserror::Error)]
#[error("{0}")]
pub(super) struct FetchError(String);

/// Asks a provider.
#[derive(Debug, Clone)]
pub(super) struct Fetch {
    client: reqwest::Client,
}

fn failed(error: impl std::fmt::Display) -> FetchError {
    FetchError(error.to_string())
}

/// Whether an address may be asked: HTTPS, or this machine.
pub(super) fn is_safe(url: &Url) -> bool {
    url.scheme() == "https"
        || (url.scheme() == "http"
            && match url.host_str() {
                Some("localhost") => true,
                Some(host) => host
                    .trim_matches(['[', ']'])
                    .parse::<std::net::IpAddr>()
                    .is_ok_and(|ip| ip.is_loopback()),
                None => false,
            })
}

impl Fetch {
    pub(super) fn new() -> Result<Self, FetchError> {
        let _ = rustls::crypto::ring::default_provider().install_default();
        let client = reqwest::Client::builder()
            .user_agent(concat!("cuebook/", env!("CARGO_PKG_VERSION")))
            .redirect(reqwest::redirect::Policy::none())
            .connect_timeout(Duration::from_secs(5))
            .timeout(Duration::from_secs(10))
            .build()
            .map_err(failed)?;
        Ok(Self { client })
    }

    /// What stands at an address.
    pub(super) async fn get(&self, url: &str) -> Result<Vec<u8>, FetchError> {
        let request = axum::http::Request::get(url)
            .header("accept", "application/json")
            .body(Vec::new())
            .map_err(failed)?;
        let response = self.send(request).await?;
        if response.status().is_success() {
            return Ok(response.into_body());
        }
        Err(failed(format!("{url} answers {}", response.status())))
    }

    /// A request, and the whole answer to it.
    pub(super) async fn send(
        &self,
        request: axum::http::Request<Vec<u8>>,
    ) -> Result<axum::http::Response<Vec<u8>>, FetchError> {
        let request = reqwest::Request::try_from(request).map_err(failed)?;
        if !is_safe(request.url()) {
            return Err(failed(format!(
                "{} is neither https nor on this machine",
                request.url()
            )));
        }
        let mut answer = self.client.execute(request).await.map_err(|error| {
            // the address may hold what is not to be logged
            failed(error.without_url())
        })?;
        let mut response = axum::http::Response::builder().status(answer.status());
        for (name, value) in answer.headers() {
            response = response.header(name, value);
        }
        let mut body = Vec::new();
        while let Some(chunk) = answer.chunk().await.map_err(failed)? {
            if body.len() + chunk.len() > MAX_ANSWER {
                return Err(failed(format!(
                    "the answer has more than {MAX_ANSWER} bytes"
                )));
            }
            body.extend_from_slice(&chunk);
        }
        response.body(body).map_err(failed)
    }
}
