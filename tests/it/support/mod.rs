//! What the tests share: a library made with the real git, a server on a free port, raw HTTP.

pub(crate) mod http;
pub(crate) mod library;
pub(crate) mod mcp;
pub(crate) mod process;
pub(crate) mod server;

use std::sync::Arc;
use std::time::Duration;

use cuebook::workers::{Renderer, Settings};

/// Longest time that anything here may take; a test that needs it has failed.
pub(crate) const PATIENCE: Duration = Duration::from_secs(20);

/// Waits for something that must happen.
pub(crate) async fn soon<T>(what: &str, future: impl Future<Output = T>) -> T {
    let value = tokio::time::timeout(PATIENCE, future).await;
    value.unwrap_or_else(|_| panic!("waited in vain for {what}"))
}

/// Workers of the built program; this one is the test harness. Times by the clock are generous: CPU time is what
/// tells a hostile template from a busy machine.
pub(crate) fn worker_settings() -> Settings {
    Settings {
        executable: env!("CARGO_BIN_EXE_cuebook").into(),
        wall_ms: 60_000,
        queue_wait_ms: 15_000,
        ..Settings::default()
    }
}

/// What renders the prompts of most tests.
pub(crate) fn renderer() -> Arc<Renderer> {
    Arc::new(Renderer::new(worker_settings()))
}
