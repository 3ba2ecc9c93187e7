//! The server on a free port, in this process.

use std::net::SocketAddr;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use cuebook::api::Api;
use cuebook::api::preview::Previews;
use cuebook::http::{Allowed, Entrance, Limits, serve};
use cuebook::mcp;
use cuebook::registry::source::Library;
use cuebook::registry::{self, Registry};
use cuebook::router::{AppState, router};
use tokio::net::TcpListener;
use tokio::task::JoinHandle;
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;

use super::library::TestLibrary;

/// The key of every test server, so that one can follow another.
pub(crate) const KEY: [u8; 32] = [42; 32];

/// A running server; it stops when it is dropped.
pub(crate) struct TestServer {
    pub(crate) address: SocketAddr,
    pub(crate) registry: Arc<Registry>,
    pub(crate) service: Arc<mcp::Service>,
    cancel: CancellationToken,
    task: Option<JoinHandle<()>>,
}

/// Settings of most tests.
pub(crate) fn settings() -> mcp::Settings {
    mcp::Settings {
        session_key: KEY,
        ..mcp::Settings::default()
    }
}

/// A registry of a library.
pub(crate) async fn registry(library: &TestLibrary) -> Arc<Registry> {
    registry_at(library.bare()).await
}

async fn registry_at(path: PathBuf) -> Arc<Registry> {
    let registry = uncounted(path).await;
    let counting = registry.clone();
    tokio::task::spawn_blocking(move || counting.count().unwrap())
        .await
        .unwrap();
    registry
}

/// One whose versions are not known yet.
async fn uncounted(path: PathBuf) -> Arc<Registry> {
    tokio::task::spawn_blocking(move || {
        let library = Library::find(&path).unwrap();
        let settings = registry::Settings {
            renderer: super::renderer(),
            ..registry::Settings::default()
        };
        Arc::new(Registry::open(library, settings).unwrap())
    })
    .await
    .unwrap()
}

/// A budget of previews that no test spends by chance.
fn plenty() -> Previews {
    Previews::new(60_000_000, 2 * 1024 * 1024)
}

impl TestServer {
    /// Serves a library.
    pub(crate) async fn start(library: &TestLibrary) -> Self {
        Self::with(library, settings(), None).await
    }

    /// Serves a library with settings and a public URL.
    pub(crate) async fn with(
        library: &TestLibrary,
        settings: mcp::Settings,
        public_url: Option<&str>,
    ) -> Self {
        let registry = registry(library).await;
        Self::of_registry(registry, settings, public_url, plenty()).await
    }

    /// Serves a library with other budgets of previews.
    pub(crate) async fn with_previews(library: &TestLibrary, previews: Previews) -> Self {
        Self::of_registry(registry(library).await, settings(), None, previews).await
    }

    /// Serves a library's clone as it lies on disk.
    pub(crate) async fn of_work_tree(library: &TestLibrary) -> Self {
        let registry = registry_at(library.clone()).await;
        Self::of_registry(registry, settings(), None, plenty()).await
    }

    /// Serves a library whose versions are not known yet.
    pub(crate) async fn uncounted(library: &TestLibrary) -> Self {
        let registry = uncounted(library.bare()).await;
        Self::of_registry(registry, settings(), None, plenty()).await
    }

    async fn of_registry(
        registry: Arc<Registry>,
        settings: mcp::Settings,
        public_url: Option<&str>,
        previews: Previews,
    ) -> Self {
        let service = Arc::new(mcp::Service::new(registry.clone(), settings));
        let cancel = CancellationToken::new();
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap();
        let state = AppState {
            registry: registry.clone(),
            mcp: service.clone(),
            git: None,
            records: None,
            upstream: None,
            api: Api::new(registry.clone(), previews),
            access: Arc::new(cuebook::access::Access::open()),
            entrance: Arc::new(Entrance {
                allowed: Allowed::new(public_url).unwrap(),
                ..Entrance::default()
            }),
            url: format!("http://{address}").into(),
            shutdown: cancel.clone(),
        };
        let router = router(state);
        let limits = Limits {
            grace: Duration::from_secs(2),
            ..Limits::default()
        };
        let stop = cancel.clone();
        let task = tokio::spawn(async move {
            serve(listener, router, &limits, stop, &TaskTracker::new()).await;
        });
        Self {
            address,
            registry,
            service,
            cancel,
            task: Some(task),
        }
    }

    /// Notices what changes by itself from now on, as a server does.
    pub(crate) fn watch(&self) {
        tokio::spawn(self.registry.clone().watch(self.cancel.clone()));
    }

    /// Reads the library again now.
    pub(crate) async fn refresh(&self) {
        let registry = self.registry.clone();
        tokio::task::spawn_blocking(move || registry.refresh().unwrap())
            .await
            .unwrap();
    }

    /// Stops it in good order.
    pub(crate) async fn stop(mut self) {
        self.cancel.cancel();
        if let Some(task) = self.task.take() {
            super::soon("the server to stop", task).await.unwrap();
        }
    }
}

impl Drop for TestServer {
    fn drop(&mut self) {
        self.cancel.cancel();
    }
}
