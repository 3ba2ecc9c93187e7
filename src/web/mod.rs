//! The web UI: pages rendered here, which work before any script of theirs has loaded.
//!
//! A file for each page: it says what the page shows as plain data (a [`Page`]) and which template of `web/pages/` shows it.
//! Rules are elsewhere: what may be seen is the actor's, what is written goes through the API or the gate.

mod account;
pub mod activity;
pub mod assets;
pub mod blame;
pub mod connect;
pub mod csrf;
pub mod diffing;
mod edit;
mod front;
mod kept;
pub mod layout;
pub mod library;
pub mod page;
pub mod prompt;
pub mod reference;
pub mod rendering;
pub mod review;
mod settings;
pub mod text;
pub mod told;
pub mod versions;
pub mod visit;
pub mod waiting;

use std::sync::Arc;

use axum::Router;
use axum::http::HeaderMap;
use axum::http::header;
use axum::routing::{get, post};

use crate::activity::Activity;
use crate::api::Api;

pub use csrf::Csrf;
pub use page::{Failure, Page, prove};
pub use text::Lang;
pub use visit::Visit;

/// What the pages share.
#[derive(Debug, Clone)]
pub struct Web {
    /// What the API has: what is served, searches, records, the gate.
    pub api: Api,
    /// What happens.
    pub activity: Arc<Activity>,
    /// The address clients are told to use, e.g. `http://127.0.0.1:8400`.
    pub url: Arc<str>,
    /// Whether git clients are served.
    pub git: bool,
    /// Makes and checks the token of forms.
    pub csrf: Arc<Csrf>,
}

impl Web {
    /// The pages of a server.
    pub fn new(api: Api, activity: Arc<Activity>, url: Arc<str>, git: bool) -> Self {
        Self {
            api,
            activity,
            url,
            git,
            csrf: Arc::default(),
        }
    }
}

/// Every page, with what it loads.
pub fn routes(web: Web) -> Router {
    Router::new()
        .route("/", get(front::front))
        .route("/proposals", get(review::list))
        .route("/proposals/{number}", get(review::page).post(review::act))
        .route(
            "/proposals/{number}/conflicts",
            get(review::conflicts).post(review::resolve),
        )
        .route("/inbox", get(review::waiting))
        .route("/prompts/{name}", get(prompt::page).post(prompt::typed))
        .route("/prompts/{name}/complete", post(prompt::complete))
        .route("/prompts/{name}/versions", get(versions::page))
        .route("/prompts/{name}/diff", get(versions::compare))
        .route("/prompts/{name}/blame", get(blame::page))
        .route("/prompts/{name}/restore", post(versions::restore))
        .route("/prompts/{name}/promote", post(versions::promote))
        .route("/connect", get(connect::page))
        .route("/activity", get(activity::page))
        .route("/api", get(reference::page))
        .route("/language", post(layout::language))
        .route("/assets/{file}", get(assets::asset))
        .route("/favicon.ico", get(assets::icon))
        .merge(account::routes())
        .merge(settings::routes())
        .merge(edit::routes())
        .with_state(web)
}

/// Whether someone asks with a browser: the page is for them, the plain text for all others.
pub fn wants_html(headers: &HeaderMap) -> bool {
    headers
        .get_all(header::ACCEPT)
        .iter()
        .filter_map(|value| value.to_str().ok())
        .any(|value| value.contains("text/html"))
}
