//! What the tests share: a library made with the real git, a server on a free port, raw HTTP.

pub(crate) mod http;
pub(crate) mod library;
pub(crate) mod mcp;
pub(crate) mod process;
pub(crate) mod server;

use std::time::Duration;

/// Longest time that anything here may take; a test that needs it has failed.
pub(crate) const PATIENCE: Duration = Duration::from_secs(20);

/// Waits for something that must happen.
pub(crate) async fn soon<T>(what: &str, future: impl Future<Output = T>) -> T {
    let value = tokio::time::timeout(PATIENCE, future).await;
    value.unwrap_or_else(|_| panic!("waited in vain for {what}"))
}
