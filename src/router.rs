//! Every URL of the server.

use std::convert::Infallible;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};

use axum::Router;
use axum::extract::{Request, State};
use axum::http::header::{self, HeaderValue};
use axum::http::{Extensions, StatusCode, Uri};
use axum::middleware::{self, Next};
use axum::response::{IntoResponse, Response};
use axum::routing::{any, get};
use serde::Serialize;
use tokio_util::sync::CancellationToken;
use tower::Service;
use tower::util::MapRequestLayer;

use crate::access::{Access, Actor};
use crate::activity::Activity;
use crate::api::openapi::problems;
use crate::api::{self, Api};
use crate::git_http;
use crate::http::actor::{Cookies, Door, Row, actor};
use crate::http::{Entrance, Pace, json_error, outer, per_actor};
use crate::identity::bearer::Bearers;
use crate::mcp;
use crate::records::Records;
use crate::registry::Registry;
use crate::upstream::{self, Upstream};
use crate::web::page::dressed;
use crate::web::{self, Visit, Web};

/// What the handlers share.
#[derive(Debug, Clone)]
pub struct AppState {
    /// What is served.
    pub registry: Arc<Registry>,
    /// The MCP core.
    pub mcp: Arc<mcp::Service>,
    /// What the JSON API needs.
    pub api: Api,
    /// What git clients reach; none where a work tree is served.
    pub git: Option<Arc<git_http::Endpoint>>,
    /// The repository that the library follows, when it does.
    pub upstream: Option<Arc<Upstream>>,
    /// What was used, delivered and done; none where a work tree is served.
    pub records: Option<Arc<Records>>,
    /// Who may do what.
    pub access: Arc<Access>,
    /// Takes access tokens of an OpenID provider, where there is one.
    pub bearers: Option<Arc<Bearers>>,
    /// Who is told of proposals and publishes, where somebody is.
    pub webhooks: Option<Arc<crate::webhooks::Webhooks>>,
    /// Who may come in, and from where they come.
    pub entrance: Arc<Entrance>,
    /// The address clients are told to use, e.g. `http://127.0.0.1:8400`.
    pub url: Arc<str>,
    /// Ends every stream.
    pub shutdown: CancellationToken,
}

/// The whole server as a service: the endpoint that every prompt goes through, and a router for the rest. A router copies its
/// layers for each request, which costs as much as a prompt does.
#[derive(Debug, Clone)]
pub struct Front {
    doors: Arc<Doors>,
    endpoint: Arc<mcp::http::Endpoint>,
    router: Router,
}

/// The URL that is not the router's.
const ENDPOINT: &str = "/mcp";

impl Service<Request> for Front {
    type Response = Response;
    type Error = Infallible;
    type Future = Answering;

    fn poll_ready(&mut self, _: &mut Context<'_>) -> Poll<Result<(), Infallible>> {
        Poll::Ready(Ok(()))
    }

    fn call(&mut self, mut request: Request) -> Answering {
        if request.uri().path() != ENDPOINT {
            return Box::pin(self.router.call(request));
        }
        let (doors, endpoint) = (self.doors.clone(), self.endpoint.clone());
        request.extensions_mut().insert(Row(ENDPOINT));
        Box::pin(async move {
            // it has a bound of its own for how long a body may take
            let answer = async |request| mcp::http::whole(State(endpoint), request).await;
            Ok(pass(&doors, request, answer).await)
        })
    }
}

/// An answer that is being made.
type Answering = Pin<Box<dyn Future<Output = Result<Response, Infallible>> + Send>>;

/// Makes the whole server.
pub fn router(mut state: AppState) -> Front {
    let entrance = state.entrance.clone();
    let activity = Arc::new(Activity {
        registry: state.registry.clone(),
        search: state.api.search.clone(),
        mcp: state.mcp.clone(),
        records: state.records.clone(),
        upstream: state.upstream.clone(),
        tls: entrance.tls.clone(),
        webhooks: state.webhooks.clone(),
    });
    state.api.activity = Some(activity.clone());
    let door = Door {
        access: state.access.clone(),
        cookies: Cookies::of(&state.url),
        bearers: state.bearers.clone(),
        entrance: entrance.clone(),
    };
    let endpoint = Arc::new(mcp::http::Endpoint {
        service: state.mcp.clone(),
        shutdown: state.shutdown.clone(),
    });
    let mcp = Router::new()
        .route("/mcp/", any(mcp::http::whole))
        .route("/mcp/{*folder}", any(mcp::http::folder))
        .with_state(endpoint.clone());
    let web = Web::new(
        state.api.clone(),
        activity,
        state.url.clone(),
        state.git.is_some(),
    );
    let doors = Arc::new(Doors {
        entrance,
        door,
        web: web.clone(),
    });
    let router = Router::new()
        .route("/healthz", get(healthz))
        .route("/readyz", get(readyz))
        .route("/.well-known/oauth-protected-resource", get(resource))
        .route("/.well-known/oauth-protected-resource/mcp", get(resource))
        .with_state(state.clone())
        .merge(upstream::webhook::routes(state.upstream.clone()))
        .merge(mcp)
        .merge(api::routes(state.api))
        .merge(web::routes(web.clone()))
        .layer(MapRequestLayer::new(|request: Request| {
            request.map(|body| Pace::default().of(body))
        }))
        // a push has bounds of its own, which its operator sets
        .merge(match state.git {
            Some(endpoint) => git_http::routes(endpoint),
            None => git_http::none(),
        })
        .merge(Router::new().fallback(not_found).with_state(web))
        .layer(middleware::from_fn_with_state(
            doors.clone(),
            async |State(doors): State<Arc<Doors>>, request, next: Next| {
                pass(&doors, request, async |request| next.run(request).await).await
            },
        ));
    Front {
        doors,
        endpoint,
        router,
    }
}

/// What the way to a handler leads through.
#[derive(Debug)]
struct Doors {
    entrance: Arc<Entrance>,
    door: Door,
    web: Web,
}

/// What everything passes, outermost first.
async fn pass(
    doors: &Doors,
    request: Request,
    next: impl AsyncFnOnce(Request) -> Response,
) -> Response {
    problems(request, async |request| {
        outer(&doors.entrance, request, async |request| {
            dressed(&doors.web, request, async |request| {
                actor(&doors.door, request, async |request| {
                    per_actor(&doors.entrance, request, next).await
                })
                .await
            })
            .await
        })
        .await
    })
    .await
}

/// Who makes access tokens for this server (RFC 9728). Where nobody does there is nothing, or clients would go and ask.
async fn resource(State(state): State<AppState>) -> Response {
    match &state.bearers {
        Some(bearers) => (
            [(
                header::CONTENT_TYPE,
                HeaderValue::from_static("application/json"),
            )],
            bearers.metadata().to_string(),
        )
            .into_response(),
        None => (StatusCode::NOT_FOUND, "not found\n").into_response(),
    }
}

/// The process answers.
async fn healthz() -> &'static str {
    "ok\n"
}

/// Something is served, and whether it is all that it should be.
async fn readyz(State(state): State<AppState>, extensions: Extensions) -> Response {
    #[derive(Serialize)]
    struct Ready<'a> {
        status: &'static str,
        served: Option<&'a str>,
        tip: Option<&'a str>,
        #[serde(skip_serializing_if = "Vec::is_empty")]
        messages: Vec<String>,
        partial: bool,
        #[serde(skip_serializing_if = "Option::is_none")]
        read_error: Option<&'a str>,
        #[serde(skip_serializing_if = "<[_]>::is_empty")]
        problems: &'a [String],
        problem_count: usize,
        #[serde(skip_serializing_if = "Option::is_none")]
        upstream: Option<Following>,
    }
    #[derive(Serialize)]
    struct Following {
        url: String,
        branch: String,
        mode: &'static str,
        /// The commit that was fetched last.
        commit: Option<String>,
        /// How long ago, in seconds.
        fetched_seconds_ago: Option<i64>,
        #[serde(skip_serializing_if = "Option::is_none")]
        error: Option<String>,
        #[serde(skip_serializing_if = "Vec::is_empty")]
        problems: Vec<String>,
        /// Labels that were moved here and not there.
        #[serde(skip_serializing_if = "Vec::is_empty")]
        label_moves: Vec<String>,
    }
    let snapshot = state.registry.snapshot();
    let now = &snapshot.status;
    let activity = state.api.activity.iter();
    let mut messages: Vec<String> = activity.flat_map(|activity| activity.messages()).collect();
    let following = state.upstream.as_ref().map(|upstream| {
        let settings = upstream.settings();
        let status = upstream.status();
        Following {
            url: settings.remote.url.clone(),
            branch: settings.branch.clone(),
            mode: settings.mode.as_str(),
            commit: status.upstream,
            fetched_seconds_ago: status
                .fetched_at
                .map(|at| (crate::clock::unix_millis() - at).max(0) / 1000),
            error: status.error,
            problems: status.problems,
            // as it is now: labels are moved while the other side is away
            label_moves: upstream.label_moves().unwrap_or(status.label_moves),
        }
    });
    let (code, status) = if now.tip.is_some() && now.served.is_none() {
        (StatusCode::SERVICE_UNAVAILABLE, "nothing is served")
    } else if messages.is_empty() {
        (StatusCode::OK, "ready")
    } else {
        (StatusCode::OK, "degraded")
    };
    // what was moved here is what is wanted
    if let Some(upstream) = &state.upstream
        && let Some(moves) = following
            .as_ref()
            .map(|following| following.label_moves.len())
        && moves > 0
    {
        messages.push(format!(
            "{moves} {} here that {} does not have; {}",
            if moves == 1 {
                "label was moved"
            } else {
                "labels were moved"
            },
            upstream.settings().remote.url,
            upstream.settings().closed().bring()
        ));
    }
    // nothing is wrong, and it ends by itself
    if let Some((done, total)) = state.registry.counting()
        && state.registry.counting_error().is_none()
    {
        messages.push(format!(
            "the versions of the prompts are being numbered, {done} of {} commits are read; prompts are served and \
             published meanwhile",
            if total == 0 { "all".to_owned() } else { total.to_string() }
        ));
    }
    // paths, commits and addresses are for who may see them all
    if !extensions.get::<Actor>().is_some_and(Actor::sees_all) {
        let body = serde_json::json!({ "status": status }).to_string();
        return (code, [(header::CONTENT_TYPE, "application/json")], body).into_response();
    }
    let ready = Ready {
        status,
        served: now.served.as_deref(),
        tip: now.tip.as_deref(),
        messages,
        partial: now.partial,
        read_error: now.read_error.as_deref(),
        problems: &now.tip_problems,
        problem_count: now.tip_problem_count,
        upstream: following,
    };
    let body = serde_json::to_vec(&ready).unwrap_or_default();
    (
        code,
        [(
            header::CONTENT_TYPE,
            HeaderValue::from_static("application/json"),
        )],
        body,
    )
        .into_response()
}

async fn not_found(State(web): State<Web>, visit: Visit, uri: Uri) -> Response {
    // Clients look there for authorization metadata, and read anything but a plain miss as an answer.
    if uri.path().starts_with("/.well-known/") {
        return (StatusCode::NOT_FOUND, "not found\n").into_response();
    }
    if web::wants_html(&visit.headers) && !web::page::is_for_programs(uri.path()) {
        return web::page::nothing(&web, &visit).await;
    }
    (StatusCode::NOT_FOUND, json_error("there is nothing here")).into_response()
}
