//! The composition root: puts the parts together, starts them, ends them.

mod data_dir;

use std::fs::File;
use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use anyhow::{Context as _, bail};
use tokio::net::TcpListener;
use tokio::task::JoinHandle;
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;

use crate::access::Access;
use crate::api::Api;
use crate::api::access::sign_in::SignIn;
use crate::api::preview::Previews;
use crate::config::Config;
use crate::gate::Gate;
use crate::gate::pushers::Pushers;
use crate::git::{self, Repository, pack};
use crate::git_http;
use crate::http::actor::Cookies;
#[cfg(unix)]
use crate::http::serve_unix;
use crate::http::{Tls, serve, serve_tls};
use crate::identity::Arrivals;
use crate::identity::bearer::Bearers;
use crate::identity::login::Login;
use crate::mcp;
use crate::proposals::Proposals;
use crate::records::Records;
use crate::registry::{self, Registry};
use crate::router::{AppState, Front, router};
use crate::search::Search;
use crate::starter::Language;
use crate::upstream::{Mode, Upstream};
use crate::versions;
use crate::webhooks::Webhooks;
use data_dir::{Opened, open};

/// What is served.
#[derive(Debug, Clone)]
pub enum Serve {
    /// A data directory, made when there is none.
    DataDir {
        /// The directory.
        path: PathBuf,
        /// The starter library a new one begins with; none for an empty one.
        starter: Option<Language>,
    },
    /// A plain work tree with uncommitted edits.
    Watch(PathBuf),
}

/// A running server.
#[derive(Debug)]
pub struct Running {
    /// The address it listens on.
    pub address: SocketAddr,
    /// The address clients use.
    pub url: String,
    /// The library's path, for people.
    pub library: PathBuf,
    /// Whether the library was made just now.
    pub created: bool,
    /// What it serves.
    pub registry: Arc<Registry>,
    /// What was used, delivered and done; none where a work tree is served.
    pub records: Option<Arc<Records>>,
    /// A link with which the first admin makes themselves, once; none where there is one, or no access control.
    pub setup: Option<String>,
    /// Who may get in and what they may do.
    pub access: Arc<Access>,
    /// Why nothing can be published or recorded, where the data directory cannot be written.
    pub read_only: Option<String>,
    shutdown: CancellationToken,
    tasks: Vec<JoinHandle<()>>,
    git: Option<Git>,
    _lock: Option<File>,
}

impl Running {
    /// Ends streams, finishes requests, and returns when everything has ended.
    pub async fn stop(self) {
        self.shutdown.cancel();
        for task in self.tasks {
            let _ = task.await;
        }
        // the last pushes have been answered through it
        if let Some(git) = self.git {
            git.hooks.cancel();
            let _ = git.answering.await;
            let _ = git.tidying.await;
            if let Some(keeping_up) = git.keeping_up {
                let _ = keeping_up.await;
            }
            // what was asked for and done until now is written
            git.recorded.cancel();
            let _ = git.recording.await;
            if let Ok(store) = git.records.store() {
                store.close().await;
            }
        }
    }
}

/// What takes pushes.
#[derive(Debug)]
struct Git {
    hooks: CancellationToken,
    answering: JoinHandle<()>,
    tidying: JoinHandle<()>,
    keeping_up: Option<JoinHandle<()>>,
    recorded: CancellationToken,
    recording: JoinHandle<()>,
    records: Arc<Records>,
}

/// Starts a server; it runs until [`Running::stop`].
pub async fn start(what: Serve, config: &Config) -> anyhow::Result<Running> {
    if !config.listen.ip().is_loopback() && !config.access.enabled {
        bail!(
            "{} is not a loopback address: anyone who reaches it could read and change every prompt. Turn access control on \
             (enabled = true under [access] in config.toml, or CUEBOOK_ACCESS_ENABLED=true), or listen on 127.0.0.1, the default.",
            config.listen
        );
    }
    // bound first: a second server on the same port says so before it touches anything
    let listener = TcpListener::bind(config.listen).await.with_context(|| {
        format!(
            "cannot listen on {}; choose another with --listen ADDRESS:PORT",
            config.listen
        )
    })?;
    let address = listener.local_addr()?;
    let tls = config.tls()?;
    if !config.access.enabled && !config.network.trusted_proxies.is_empty() {
        tracing::warn!(
            "access control is off and http.trusted_proxies is set: whoever the proxy lets through may read and change \
             everything; turn access control on (access.enabled), or let the proxy ask who they are"
        );
    }
    let Composed {
        router,
        mut running,
        pushes,
        data_dir,
    } = compose(what, config, address, tls.clone()).await?;
    let http = config.connection_limits();
    #[cfg(unix)]
    if let Some(data_dir) = &data_dir {
        let socket = crate::socket::Socket::bind(data_dir, COMMANDS, &std::env::temp_dir())
            .context("cannot open the socket on which commands ask")?;
        let (router, http, stop) = (router.clone(), http.clone(), running.shutdown.clone());
        running.tasks.push(tokio::spawn(async move {
            serve_unix(socket.listener(), router, &http, stop).await;
        }));
    }
    #[cfg(not(unix))]
    drop(data_dir);
    let stop = running.shutdown.clone();
    if let Some(tls) = &tls {
        let keeping = tls.clone().keep(running.shutdown.clone());
        running.tasks.push(tokio::spawn(keeping));
    }
    running.tasks.push(tokio::spawn(async move {
        match tls {
            Some(tls) => serve_tls(listener, tls, router, &http, stop, &pushes).await,
            None => serve(listener, router, &http, stop, &pushes).await,
        }
    }));
    Ok(running)
}

/// The name of the socket on which commands of the same machine reach the API.
pub const COMMANDS: &str = "commands";

/// A server that nobody reaches but the command that has opened it, for a data directory that no server serves.
pub async fn open_alone(data_dir: &Path, config: &Config) -> anyhow::Result<(Front, Running)> {
    let what = Serve::DataDir {
        path: data_dir.to_path_buf(),
        starter: None,
    };
    let composed = compose(what, config, config.listen, None).await?;
    Ok((composed.router, composed.running))
}

/// A server that does not listen yet.
struct Composed {
    router: Front,
    running: Running,
    /// Pushes that run; their end is waited for.
    pushes: TaskTracker,
    data_dir: Option<PathBuf>,
}

/// Puts the parts together and starts what runs beside the requests.
async fn compose(
    what: Serve,
    config: &Config,
    address: SocketAddr,
    tls: Option<Arc<Tls>>,
) -> anyhow::Result<Composed> {
    let scheme = if tls.is_some() { "https" } else { "http" };
    let entrance = Arc::new(config.entrance(tls)?);
    crate::web::prove().map_err(anyhow::Error::msg)?;
    let settings = registry::Settings {
        limits: config.limits.clone(),
        notify_body_edits: config.notify_body_edits,
        remember: false,
        renderer: config.renderer(),
    };
    let config_of = config.clone();
    let opened = tokio::task::spawn_blocking(move || {
        // a server that cannot render safely does not begin to
        settings.renderer.prove().map_err(anyhow::Error::msg)?;
        open(what, settings, &config_of)
    })
    .await??;
    let Opened {
        registry,
        library,
        created,
        session_key,
        data_dir,
        records,
        kept,
        lock,
        read_only,
    } = opened;
    let registry = Arc::new(registry);
    let url = config
        .public_url
        .clone()
        .unwrap_or_else(|| format!("{scheme}://{address}"));
    let shutdown = CancellationToken::new();
    let kept = kept.map(Arc::new);
    let search = Arc::new(Search::new());
    let access = Arc::new(open_access(config, records.as_deref()).await?);
    let mut mcp = mcp::Service::new(registry.clone(), config.mcp(session_key))
        .with_search(search.clone())
        .with_access(access.clone());
    if let Some(records) = &records {
        mcp = mcp.with_records(records.clone());
    }
    let mcp = Arc::new(mcp);
    let pushes = TaskTracker::new();
    let previews = Previews::new(config.preview_cpu_ms_per_minute, config.preview_bytes);
    let mut api = Api::new(registry.clone(), previews);
    api.access = access.clone();
    api.token_days = config.access.token_days;
    api.limits = config.limits_in_force();
    api.sign_in = Arc::new(SignIn::new(config.access.session_days, entrance.clone()));
    api.url = url.as_str().into();
    api.cookies = Cookies::of(&url);
    let providers = Providers::open(config, &access, records.as_ref(), &url)?;
    api.login = providers.login;
    api.arrivals = providers.arrivals;
    api.search = search.clone();
    api.records.clone_from(&records);
    let pushers = Arc::new(Pushers::new(access.clone()));
    let mut upstream = None;
    let (git, endpoint) = match (&data_dir, &records) {
        (Some(data_dir), Some(_)) if let Some(why) = &read_only => {
            let endpoint = git_http::Endpoint::new(
                data_dir.join("library.git").canonicalize()?,
                data_dir.join("hooks"),
                pushers,
                config.git.clone(),
                pushes.clone(),
                shutdown.clone(),
            );
            (None, Some(Arc::new(endpoint.read_only(why.clone()))))
        }
        (Some(data_dir), Some(records)) => {
            let repository = Repository::open(&data_dir.join("library.git"))?;
            upstream = config.upstream().map(|settings| {
                Arc::new(Upstream::new(
                    settings,
                    repository.clone(),
                    registry.clone(),
                ))
            });
            let (git, endpoint, gate) = take_pushes(
                data_dir,
                &repository,
                &registry,
                &mcp,
                records,
                pushers,
                config,
                upstream.as_ref(),
                &url,
                &pushes,
                shutdown.clone(),
            )?;
            api.gate = Some(gate);
            api.writing = pushes.clone();
            (Some(git), Some(endpoint))
        }
        _ => (None, None),
    };
    let setup = access
        .setup_code()?
        .map(|code| format!("{url}/setup?code={code}"));
    let webhooks = (!config.webhooks.is_empty())
        .then(|| Arc::new(Webhooks::new(config.webhooks.clone(), url.clone())));
    let state = AppState {
        access: access.clone(),
        bearers: providers.bearers,
        registry: registry.clone(),
        mcp,
        api,
        git: endpoint,
        upstream: upstream.clone(),
        records: records.clone(),
        webhooks: webhooks.clone(),
        entrance,
        url: url.as_str().into(),
        shutdown: shutdown.clone(),
    };
    let watching = tokio::spawn(registry.clone().watch(shutdown.clone()));
    let counting = tokio::spawn(registry.clone().keep_counted(shutdown.clone()));
    let mut tasks = vec![watching, counting];
    if let (Some(webhooks), Some(records)) = (webhooks, &records) {
        let store = records.store().ok().cloned();
        let noted = records.audit().subscribe();
        tasks.push(tokio::spawn(webhooks.run(noted, store, shutdown.clone())));
    }
    tasks.push(tokio::spawn(access.clone().keep(shutdown.clone())));
    if let Some(Ok(store)) = records.as_ref().map(|records| records.store()) {
        search.index_in(store.clone());
        tasks.push(tokio::spawn(versions::keep(
            registry.clone(),
            store.clone(),
            kept,
            shutdown.clone(),
        )));
        tasks.push(tokio::spawn(
            search.keep(registry.clone(), shutdown.clone()),
        ));
    }
    if let Some(upstream) = upstream {
        tasks.push(tokio::spawn(upstream.follow(shutdown.clone())));
    }
    let running = Running {
        address,
        url,
        library,
        created,
        registry,
        records,
        access,
        shutdown,
        tasks,
        git,
        _lock: lock,
        read_only,
        setup,
    };
    Ok(Composed {
        router: router(state),
        pushes,
        // its sockets would be files there
        data_dir: data_dir.filter(|_| running.read_only.is_none()),
        running,
    })
}

/// Who may do what: everything for everybody, or what the database says.
async fn open_access(config: &Config, records: Option<&Records>) -> anyhow::Result<Access> {
    if !config.access.enabled {
        return Ok(Access::open());
    }
    let Some(records) = records else {
        bail!(
            "a work tree has nobody to let in: serve a data directory, or turn access control off"
        );
    };
    let store = records.store().map_err(|error| {
        anyhow::anyhow!("who may do what is in the database, which cannot be read: {error}")
    })?;
    let idle = std::time::Duration::from_hours(config.access.session_idle_hours.into());
    Ok(Access::closed(Some(store.clone())).await?.with_idle(idle))
}

/// OpenID providers.
#[derive(Debug, Default)]
struct Providers {
    bearers: Option<Arc<Bearers>>,
    login: Option<Arc<Login>>,
    arrivals: Option<Arrivals>,
}

impl Providers {
    fn open(
        config: &Config,
        access: &Arc<Access>,
        records: Option<&Arc<Records>>,
        url: &str,
    ) -> anyhow::Result<Self> {
        if access.is_open() {
            return Ok(Self::default());
        }
        let create = config.access.auto_create;
        let arrivals = Arrivals::new(access.clone(), records.cloned(), create);
        let bearers = match config.access.bearers(url) {
            Some(settings) => {
                let bearers = Bearers::new(settings, access.clone(), arrivals.clone(), url)?;
                Some(Arc::new(bearers))
            }
            None => None,
        };
        let login = match config.access.login()? {
            Some(settings) => Some(Arc::new(Login::new(settings, url)?)),
            None => None,
        };
        Ok(Self {
            bearers,
            login,
            arrivals: Some(arrivals),
        })
    }
}

/// Time between two looks at the repository itself.
const TIDY: std::time::Duration = std::time::Duration::from_secs(2);

/// Removes what a push has left that could not end as it should, and puts a repository under the gate that has taken the
/// place of the one that was there at the start (a restored backup), until it is cancelled.
async fn tidy(
    repository: Repository,
    settings: Vec<(&'static str, String)>,
    cancel: CancellationToken,
) {
    let settings = Arc::new(settings);
    while cancel
        .run_until_cancelled(tokio::time::sleep(TIDY))
        .await
        .is_some()
    {
        let (repository, settings) = (repository.clone(), settings.clone());
        let done = tokio::task::spawn_blocking(move || {
            repository.configure(&settings)?;
            let now = crate::clock::unix_seconds();
            git::remove_unfinished(repository.path(), Some(now)).map_err(git::GitError::from)
        });
        match done.await {
            Ok(Ok(0)) | Err(_) => {}
            Ok(Ok(removed)) => {
                tracing::info!(removed, "removed what an unfinished push had left");
            }
            Ok(Err(error)) => tracing::debug!(%error, "the repository could not be tidied"),
        }
    }
}

#[allow(
    clippy::too_many_arguments,
    reason = "the parts of one composition, named at its one call"
)]
/// Opens the gate and its socket, puts the hooks in their place, and makes the endpoint of git clients.
fn take_pushes(
    data_dir: &Path,
    repository: &Repository,
    registry: &Arc<Registry>,
    mcp: &Arc<mcp::Service>,
    records: &Arc<Records>,
    pushers: Arc<Pushers>,
    config: &Config,
    upstream: Option<&Arc<Upstream>>,
    url: &str,
    pushes: &TaskTracker,
    stopping: CancellationToken,
) -> anyhow::Result<(Git, Arc<git_http::Endpoint>, Arc<Gate>)> {
    let hooks = crate::gate::install::install(data_dir, &config.program)
        .context("cannot write the hooks that check a push")?;
    if let Some(hook) = crate::gate::install::passed_over(&hooks) {
        bail!(
            "{} cannot be run, so git would take pushes unchecked; is the data directory on a file system that is mounted noexec?",
            hook.display()
        );
    }
    let settings = pack::own_settings(&hooks, config.git.max_push_bytes);
    repository.configure(&settings)?;
    let proposals = match records.store() {
        Ok(store) => Ok(Arc::new(Proposals::new(
            store.clone(),
            repository.clone(),
            upstream
                .filter(|upstream| upstream.settings().mode == Mode::Propose)
                .cloned(),
        ))),
        Err(error) => Err(error.to_owned()),
    };
    let kept_up = proposals.as_ref().ok().cloned();
    let told = mcp.clone();
    let gate = Gate::new(
        registry.clone(),
        repository.clone(),
        proposals,
        config.gate(url.to_owned()),
        Some(Box::new(move || told.open_streams())),
    );
    let gate = gate
        .with_records(records.clone())
        .with_pushers(pushers.clone());
    let gate = Arc::new(gate);
    let cancel = CancellationToken::new();
    let recorded = CancellationToken::new();
    let recording = tokio::spawn(records.clone().run(
        registry.clone(),
        repository.clone(),
        upstream.map(|upstream| upstream.settings().remote.url.clone()),
        recorded.clone(),
    ));
    let answering = answer_hooks(data_dir, gate.clone(), cancel.clone())?;
    let keeping_up = kept_up
        .map(|proposals| tokio::spawn(proposals.keep_up(registry.subscribe(), cancel.clone())));
    let tidying = tokio::spawn(tidy(repository.clone(), settings, cancel.clone()));
    let endpoint = git_http::Endpoint::new(
        repository.path().canonicalize()?,
        hooks,
        pushers,
        config.git.clone(),
        pushes.clone(),
        stopping,
    );
    let git = Git {
        hooks: cancel,
        answering,
        tidying,
        keeping_up,
        recorded,
        recording,
        records: records.clone(),
    };
    Ok((git, Arc::new(endpoint), gate))
}

#[cfg(unix)]
fn answer_hooks(
    data_dir: &Path,
    gate: Arc<Gate>,
    cancel: CancellationToken,
) -> anyhow::Result<JoinHandle<()>> {
    use crate::gate::socket::{NAME, serve};
    let socket = crate::socket::Socket::bind(data_dir, NAME, &std::env::temp_dir())
        .context("cannot open the socket on which git's hooks ask")?;
    Ok(tokio::spawn(serve(socket, gate, cancel)))
}

/// Where there are no Unix sockets, a hook judges by itself.
#[cfg(not(unix))]
fn answer_hooks(
    _: &Path,
    _: Arc<Gate>,
    cancel: CancellationToken,
) -> anyhow::Result<JoinHandle<()>> {
    Ok(tokio::spawn(async move { cancel.cancelled().await }))
}
