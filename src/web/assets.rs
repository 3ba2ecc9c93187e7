//! What pages load: the files of `web/dist/`, which are named by their content and so kept for ever.

use std::collections::BTreeMap;
use std::sync::LazyLock;

use async_compression::Level;
use axum::body::Bytes;
use axum::extract::Path;
use axum::http::header::{self, HeaderValue};
use axum::http::{HeaderMap, StatusCode};
use axum::response::{IntoResponse, Response};
use include_dir::{Dir, include_dir};
use serde::Deserialize;
use tokio::sync::OnceCell;

use super::page::{gzip, takes_gzip};

static FILES: Dir<'static> = include_dir!("$CARGO_MANIFEST_DIR/web/dist");

/// The picture of the window's tab: a cue mark.
const ICON: &str = r##"<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 32 32"><rect width="32" height="32" rx="7" fill="#4f46e5"/><path d="M9 8h9a5 5 0 0 1 0 10h-4v6H9z" fill="#fff"/><circle cx="23" cy="23" r="3" fill="#c7d2fe"/></svg>"##;

#[derive(Deserialize)]
struct Entry {
    file: String,
    imports: Vec<String>,
}

static MANIFEST: LazyLock<BTreeMap<String, Entry>> = LazyLock::new(|| {
    FILES
        .get_file("manifest.json")
        .and_then(|file| serde_json::from_slice(file.contents()).ok())
        .unwrap_or_default()
});

/// The compressed form of each file, made when it is first asked for.
static PACKED: LazyLock<BTreeMap<&'static str, OnceCell<Option<Bytes>>>> = LazyLock::new(|| {
    FILES
        .files()
        .filter_map(|file| Some((file.path().to_str()?, OnceCell::new())))
        .collect()
});

/// The address of an entry by the name of its source, e.g. `library.js` or `app.css`.
pub fn address(name: &str) -> Option<String> {
    MANIFEST
        .get(name)
        .map(|entry| format!("/assets/{}", entry.file))
}

/// The addresses of what an entry loads at once.
pub fn imports(name: &str) -> Vec<String> {
    MANIFEST
        .get(name)
        .into_iter()
        .flat_map(|entry| &entry.imports)
        .map(|file| format!("/assets/{file}"))
        .collect()
}

/// `GET /assets/{file}`.
pub(super) async fn asset(Path(name): Path<String>, headers: HeaderMap) -> Response {
    let found = FILES.get_file(&name).filter(|_| name != "manifest.json");
    let Some(file) = found else {
        return (StatusCode::NOT_FOUND, "not found\n").into_response();
    };
    let kind = match name.rsplit('.').next() {
        Some("js") => "text/javascript; charset=utf-8",
        Some("css") => "text/css; charset=utf-8",
        Some("svg") => "image/svg+xml",
        _ => "application/octet-stream",
    };
    let mut out = HeaderMap::new();
    out.insert(header::CONTENT_TYPE, HeaderValue::from_static(kind));
    out.insert(
        header::CACHE_CONTROL,
        HeaderValue::from_static("public, max-age=31536000, immutable"),
    );
    out.insert(header::VARY, HeaderValue::from_static("Accept-Encoding"));
    if takes_gzip(&headers)
        && let Some(cell) = PACKED.get(&*name)
        && let Some(packed) = cell
            .get_or_init(|| gzip(file.contents(), Level::Best))
            .await
    {
        out.insert(header::CONTENT_ENCODING, HeaderValue::from_static("gzip"));
        return (out, packed.clone()).into_response();
    }
    (out, file.contents()).into_response()
}

/// `GET /favicon.ico`.
pub(super) async fn icon() -> Response {
    let headers = [
        (header::CONTENT_TYPE, "image/svg+xml"),
        (header::CACHE_CONTROL, "public, max-age=86400"),
    ];
    (headers, ICON).into_response()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_the_manifest_names_is_there_and_nothing_else() {
        let mut named: Vec<&str> = vec!["manifest.json"];
        for entry in MANIFEST.values() {
            assert!(FILES.get_file(&entry.file).is_some(), "{}", entry.file);
            named.push(&entry.file);
            for import in &entry.imports {
                assert!(FILES.get_file(import).is_some(), "{import}");
            }
        }
        for file in FILES.files() {
            let path = file.path().to_str().unwrap();
            assert!(
                named.contains(&path) || path.starts_with("chunk-"),
                "{path} is left over: npm run build"
            );
        }
        assert!(address("app.js").is_some() && address("app.css").is_some());
    }
}
