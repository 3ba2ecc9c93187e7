//! `GET /`: the library for who comes with a browser, and for everyone else a text that says what this is.

use axum::extract::State;
use axum::http::HeaderMap;
use axum::http::header::{self, HeaderValue};
use axum::response::{IntoResponse, Response};

use super::{Visit, Web, library, wants_html};

pub(super) async fn front(State(web): State<Web>, visit: Visit, headers: HeaderMap) -> Response {
    if wants_html(&headers) {
        return library::page(&web, &visit).await;
    }
    let snapshot = web.api.registry.snapshot();
    let title = snapshot
        .catalog
        .title()
        .filter(|_| visit.actor.is_known())
        .unwrap_or("A library of prompts");
    let listed = snapshot.catalog.list(None);
    let count = listed.iter().filter(|p| visit.reads(&p.path)).count();
    let prompts = if count == 1 { "prompt" } else { "prompts" };
    let page = format!(
        "{title}\n\nThis is Cuebook, a prompt registry. It serves {count} {prompts} over the Model Context Protocol.\n\n\
         MCP endpoint   {url}/mcp\nOne folder     {url}/mcp/<folder>\n{git}Health         {url}/healthz and {url}/readyz\n\n\
         `cuebook connect CLIENT` prints the configuration for an editor, e.g.\n\n  \
         claude mcp add --transport http cuebook {url}/mcp\n",
        url = web.url,
        git = if web.git {
            format!("The library    git clone {}/library.git\n", web.url)
        } else {
            String::new()
        },
    );
    let headers = [
        (
            header::CONTENT_TYPE,
            HeaderValue::from_static("text/plain; charset=utf-8"),
        ),
        (header::VARY, HeaderValue::from_static("Accept")),
    ];
    (headers, page).into_response()
}
