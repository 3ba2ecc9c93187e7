//! From data to a page: the templates of `web/pages/`, their filters, and the response they come in.

use std::io::Write;
use std::sync::LazyLock;

use async_compression::Level;
use async_compression::tokio::bufread::GzipEncoder;
use axum::body::Bytes;
use axum::extract::Request;
use axum::http::header::{self, HeaderValue};
use axum::http::{HeaderMap, Method, StatusCode};
use axum::response::{IntoResponse, Response};
use include_dir::{Dir, include_dir};
use serde::Serialize;
use sha2::{Digest, Sha256};
use tera::{Context, Kwargs, StringInput, Tera, Value};
use tokio::io::AsyncReadExt;

use super::kept::{Again, Kept, hold};
use super::text::{Lang, encoded, encoded_path, grouped};
use super::told::{self, told};
use super::visit::Visit;
use super::{Web, assets, layout, wants_html};
use crate::access::Actor;
use crate::prompt::parse::hex;
use crate::prompt::visible::shown;
use crate::records::calendar;

/// What a page may load and where it may send: this server, and no script or style that stands in the page itself.
pub const POLICY: &str = "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data:; \
     connect-src 'self'; font-src 'self'; form-action 'self'; base-uri 'none'; frame-ancestors 'none'";

/// Longest refusal of a layer that is read, in bytes.
const MAX_REFUSAL: usize = 64 * 1024;
/// Pages shorter than this are sent as they are, in bytes.
const SMALL: usize = 1400;

static FILES: Dir<'static> = include_dir!("$CARGO_MANIFEST_DIR/web/pages");

/// What a page shows. Its fields are what its template sees as `page`.
pub trait Page: Serialize {
    /// The file in `web/pages/`.
    const TEMPLATE: &'static str;
    /// The entry of the menu that it stands under: `library`, `proposals` …; empty for none.
    const SECTION: &'static str;
    /// What the window is called, before the name of the library.
    fn title(&self, lang: Lang) -> String;
}

static TEMPLATES: LazyLock<Result<Tera, String>> = LazyLock::new(|| {
    let mut tera = Tera::default();
    tera.set_escape_fn(escape);
    tera.register_filter("t", translate);
    tera.register_filter("tn", translate_counted);
    tera.register_filter(
        "told",
        |text: &str, _: Kwargs, state: &tera::State<'_>| -> tera::TeraResult<String> {
            Ok(told(language(state)?, text))
        },
    );
    tera.register_filter("exact", exact);
    tera.register_filter("url", |text: &str, _: Kwargs, _: &tera::State<'_>| {
        encoded(text)
    });
    tera.register_filter("place", |path: &str, _: Kwargs, _: &tera::State<'_>| {
        encoded_path(path)
    });
    tera.register_filter("day", |seconds: i64, _: Kwargs, _: &tera::State<'_>| {
        moment(seconds)
    });
    tera.register_filter("at", |stamp: &str, _: Kwargs, _: &tera::State<'_>| {
        minute(stamp)
    });
    tera.register_filter("stamp", |seconds: i64, _: Kwargs, _: &tera::State<'_>| {
        calendar::show(seconds.saturating_mul(1000))
    });
    tera.register_filter("number", |number: i64, _: Kwargs, _: &tera::State<'_>| {
        grouped(number)
    });
    tera.register_filter("short", |text: &str, _: Kwargs, _: &tera::State<'_>| {
        text.chars().take(10).collect::<String>()
    });
    tera.register_filter("asset", |name: &str, _: Kwargs, _: &tera::State<'_>| {
        assets::address(name)
            .ok_or_else(|| tera::Error::message(format!("web/dist has no {name}: npm run build")))
    });
    let files = FILES.files().filter_map(|file| {
        let name = file.path().to_str()?.to_owned();
        Some((name, file.contents_utf8()?.to_owned()))
    });
    tera.add_raw_templates(files)
        .map_err(|error| error.to_string())?;
    Ok(tera)
});

/// Whether every template can be read; looked at when the server starts.
pub fn prove() -> Result<(), String> {
    TEMPLATES
        .as_ref()
        .map(|_| ())
        .map_err(|error| format!("the pages cannot be shown: {error}"))
}

/// HTML's own characters are escaped, and what is invisible or turns the direction of writing is shown by its number, so
/// that no text of an author looks like what it is not. Line ends and tabs stay.
fn escape(text: &str, out: &mut dyn Write) -> std::io::Result<()> {
    let mut plain = 0;
    for (at, character) in text.char_indices() {
        let replaced = match character {
            '&' => "&amp;".into(),
            '<' => "&lt;".into(),
            '>' => "&gt;".into(),
            '"' => "&quot;".into(),
            '\'' => "&#39;".into(),
            '\n' | '\t' | ' '..='~' => continue,
            _ => {
                let visible = shown(character);
                let mut own = [0; 4];
                if *visible == *character.encode_utf8(&mut own) {
                    continue;
                }
                std::borrow::Cow::from(visible.replace('<', "&lt;").replace('>', "&gt;"))
            }
        };
        out.write_all(&text.as_bytes()[plain..at])?;
        out.write_all(replaced.as_bytes())?;
        plain = at + character.len_utf8();
    }
    out.write_all(&text.as_bytes()[plain..])
}

/// A value of a form's field, which comes back byte for byte: escaped, and nothing replaced.
fn exact(text: &str, _: Kwargs, _: &tera::State<'_>) -> Value {
    let mut out = Vec::with_capacity(text.len());
    // Writing to a Vec cannot fail.
    let _ = tera::escape_html(text, &mut out);
    Value::safe_string(&String::from_utf8_lossy(&out).replace('\r', "&#13;"))
}

/// A time of day for people, UTC; the script of the page says it in theirs.
fn moment(seconds: i64) -> String {
    minute(&calendar::show(seconds.saturating_mul(1000)))
}

/// The minute of a time as RFC 3339 writes it in UTC, for people.
fn minute(stamp: &str) -> String {
    let minute = stamp.get(..16).unwrap_or(stamp);
    format!("{} UTC", minute.replace('T', " "))
}

fn language(state: &tera::State<'_>) -> tera::TeraResult<Lang> {
    let tag: Option<String> = state.get("lang")?;
    Ok(tag.and_then(|tag| Lang::of_tag(&tag)).unwrap_or(Lang::En))
}

/// What stands in a text, as text.
fn values(kwargs: &Kwargs) -> Vec<(String, String)> {
    kwargs
        .iter()
        .map(|(name, value)| (name.to_string(), value.to_string()))
        .collect()
}

#[allow(clippy::needless_pass_by_value, reason = "the shape of a filter")]
fn translate(
    key: StringInput<'_>,
    kwargs: Kwargs,
    state: &tera::State<'_>,
) -> tera::TeraResult<String> {
    let lang = language(state)?;
    let key = key.as_str();
    if !lang.table().contains_key(key) {
        return Err(tera::Error::message(format!(
            "web/text/{}.toml has no {key}",
            lang.tag()
        )));
    }
    let values = values(&kwargs);
    let values: Vec<(&str, &str)> = values.iter().map(|(n, v)| (&**n, &**v)).collect();
    Ok(lang.text(key, &values))
}

#[allow(clippy::needless_pass_by_value, reason = "the shape of a filter")]
fn translate_counted(
    key: StringInput<'_>,
    kwargs: Kwargs,
    state: &tera::State<'_>,
) -> tera::TeraResult<String> {
    let lang = language(state)?;
    let key = key.as_str();
    if !lang.table().contains_key(&format!("{key}.other")) {
        return Err(tera::Error::message(format!(
            "web/text/{}.toml has no {key}.other",
            lang.tag()
        )));
    }
    let count: i64 = kwargs.must_get("n")?;
    let values = values(&kwargs);
    let values: Vec<(&str, &str)> = values
        .iter()
        .filter(|(name, _)| name != "n")
        .map(|(n, v)| (&**n, &**v))
        .collect();
    Ok(lang.counted(key, count, &values))
}

/// Stands for the token of forms while a page is made, so that the page's `ETag` does not change with it.
static TOKEN_PLACE: LazyLock<String> =
    LazyLock::new(|| format!("token-{:016x}", getrandom::u64().unwrap_or_default()));

/// A page as HTML, with the place of the token still in it.
fn html<P: Page>(web: &Web, visit: &Visit, page: &P) -> Result<String, String> {
    let templates = TEMPLATES.as_ref().map_err(Clone::clone)?;
    let mut context = Context::new();
    context.insert("lang", visit.lang.tag());
    context.insert("page", page);
    context.insert("csrf", &*TOKEN_PLACE);
    let layout = layout::Layout::of(web, visit, page.title(visit.lang), P::SECTION);
    context.insert("layout", &layout);
    templates
        .render(P::TEMPLATE, &context)
        .map_err(|error| format!("{}: {error}", P::TEMPLATE))
}

/// Why a page is not shown.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Failure {
    /// There is no such thing, or it may not be seen: which of them, nobody is told.
    NotFound,
    /// Who asks has not said who they are.
    Unknown,
    /// It is there and may be seen, and may not be done; one line that says what would help.
    Forbidden(String),
    /// It cannot be answered now; one line for people.
    Unavailable(String),
    /// A form does not say what it has to; one line for people.
    Invalid(String),
    /// A fault of ours; logged, and not shown.
    Internal(String),
}

#[derive(Debug, Clone, Serialize)]
struct ErrorPage {
    status: u16,
    /// The keys of its texts end in this.
    kind: &'static str,
    detail: Option<String>,
    request_id: String,
    /// What was typed into the form that was refused.
    kept: Option<Kept>,
    /// Whether what was typed is too much to be shown.
    lost: bool,
}

impl ErrorPage {
    fn of(visit: &Visit, status: StatusCode, kind: &'static str, detail: Option<String>) -> Self {
        Self {
            status: status.as_u16(),
            kind,
            detail,
            request_id: visit.request_id.to_string(),
            kept: None,
            lost: false,
        }
    }
}

/// Stands beside the response of an error: the page can be made again with what was typed.
#[derive(Debug, Clone)]
struct Made {
    page: ErrorPage,
    visit: Visit,
}

impl Page for ErrorPage {
    const TEMPLATE: &'static str = "error.html";
    const SECTION: &'static str = "";

    fn title(&self, lang: Lang) -> String {
        lang.text(&format!("error.{}.title", self.kind), &[])
    }
}

/// The response of a page.
pub async fn show<P: Page>(web: &Web, visit: &Visit, page: &P) -> Response {
    match html(web, visit, page) {
        Ok(html) => respond(web, visit, StatusCode::OK, html).await,
        Err(error) => failed(web, visit, Failure::Internal(error)).await,
    }
}

/// The same with another status: a form that was refused shows its page again.
pub async fn respond_with<P: Page>(
    web: &Web,
    visit: &Visit,
    status: StatusCode,
    page: &P,
) -> Response {
    match html(web, visit, page) {
        Ok(html) => respond(web, visit, status, html).await,
        Err(error) => failed(web, visit, Failure::Internal(error)).await,
    }
}

/// The response of a page, or of why there is none.
pub async fn answer<P: Page>(web: &Web, visit: &Visit, page: Result<P, Failure>) -> Response {
    match page {
        Ok(page) => show(web, visit, &page).await,
        Err(failure) => failed(web, visit, failure).await,
    }
}

/// The page that says why there is none.
pub async fn failed(web: &Web, visit: &Visit, failure: Failure) -> Response {
    let (status, kind, detail) = match failure {
        Failure::NotFound => (StatusCode::NOT_FOUND, "not_found", None),
        Failure::Unknown => (StatusCode::UNAUTHORIZED, "unknown", None),
        Failure::Forbidden(detail) => (StatusCode::FORBIDDEN, "forbidden", Some(detail)),
        Failure::Unavailable(detail) => {
            (StatusCode::SERVICE_UNAVAILABLE, "unavailable", Some(detail))
        }
        Failure::Invalid(detail) => (StatusCode::UNPROCESSABLE_ENTITY, "invalid", Some(detail)),
        Failure::Internal(error) => {
            tracing::error!(%error, request_id = &*visit.request_id, path = &*visit.path, "a page could not be shown");
            (StatusCode::INTERNAL_SERVER_ERROR, "internal", None)
        }
    };
    let page = ErrorPage::of(visit, status, kind, detail);
    error_page(web, visit, status, page).await
}

async fn error_page(web: &Web, visit: &Visit, status: StatusCode, page: ErrorPage) -> Response {
    let mut response = match html(web, visit, &page) {
        Ok(html) => respond(web, visit, status, html).await,
        Err(error) => {
            tracing::error!(%error, request_id = &*visit.request_id, "the page of an error could not be shown");
            (status, format!("{status}\n")).into_response()
        }
    };
    let visit = visit.clone();
    response.extensions_mut().insert(Made { page, visit });
    response
}

/// HTML as a response: with its policy, an `ETag`, and compressed where that is taken.
async fn respond(web: &Web, visit: &Visit, status: StatusCode, html: String) -> Response {
    // of this session alone: a page that is kept from another has a token that is no good
    let mut hash = Sha256::new();
    hash.update(visit.session.as_bytes());
    hash.update(b"\0");
    hash.update(html.as_bytes());
    let tag = format!("\"{}\"", &hex(&hash.finalize())[..32]);
    let mut headers = HeaderMap::new();
    let fixed = [
        (header::CONTENT_TYPE, "text/html; charset=utf-8"),
        (header::CONTENT_SECURITY_POLICY, POLICY),
        (header::CACHE_CONTROL, "private, no-cache"),
        // without it a browser sends `Origin: null` with our own forms, which is nobody's origin
        (header::REFERRER_POLICY, "same-origin"),
        (
            header::VARY,
            "Accept, Accept-Encoding, Accept-Language, Cookie",
        ),
    ];
    for (name, value) in fixed {
        headers.insert(name, HeaderValue::from_static(value));
    }
    if status == StatusCode::OK {
        if let Ok(value) = HeaderValue::from_str(&format!("W/{tag}")) {
            headers.insert(header::ETAG, value);
        }
        let known = visit
            .headers
            .get(header::IF_NONE_MATCH)
            .and_then(|value| value.to_str().ok())
            .unwrap_or_default();
        if known.contains(&*tag) {
            return (StatusCode::NOT_MODIFIED, headers).into_response();
        }
    }
    let html = html.replace(&*TOKEN_PLACE, &web.csrf.token(&visit.session));
    if html.len() >= SMALL
        && takes_gzip(&visit.headers)
        && let Some(packed) = gzip(html.as_bytes(), Level::Fastest).await
    {
        headers.insert(header::CONTENT_ENCODING, HeaderValue::from_static("gzip"));
        return (status, headers, packed).into_response();
    }
    (status, headers, html).into_response()
}

/// Whether a browser takes gzip.
pub(super) fn takes_gzip(headers: &HeaderMap) -> bool {
    headers
        .get(header::ACCEPT_ENCODING)
        .and_then(|value| value.to_str().ok())
        .is_some_and(|value| {
            value.split(',').any(|coding| {
                let (name, weight) = coding.split_once(';').unwrap_or((coding, ""));
                name.trim().eq_ignore_ascii_case("gzip") && weight.trim() != "q=0"
            })
        })
}

/// Bytes compressed; none where that fails, which memory does not.
pub(super) async fn gzip(bytes: &[u8], level: Level) -> Option<Bytes> {
    let mut out = Vec::new();
    GzipEncoder::with_quality(bytes, level)
        .read_to_end(&mut out)
        .await
        .ok()?;
    Some(out.into())
}

/// Gives who comes with a browser a page where a layer has refused with a line for programs.
pub async fn dressed(
    web: &Web,
    request: Request,
    next: impl AsyncFnOnce(Request) -> Response,
) -> Response {
    let path = request.uri().path();
    let is_page = wants_html(request.headers()) && !is_for_programs(path);
    if !is_page {
        let is_asked_by_pages = path.starts_with("/api/") || !is_for_programs(path);
        let lang = told::lang_of(request.headers());
        let lists_problems = told::lists_problems(path);
        let response = next(request).await;
        return if is_asked_by_pages {
            told::answer(lang, lists_problems, response).await
        } else {
            response
        };
    }
    let (parts, body) = request.into_parts();
    let visit = Visit::of(&parts);
    let reads = matches!(parts.method, Method::GET | Method::HEAD);
    let (held, body) = hold(&parts, body);
    let response = next(Request::from_parts(parts, body)).await;
    let made = response.extensions().get::<Made>();
    let is_known = made.is_some_and(|made| made.visit.actor.is_known());
    let mut response = in_words(web, visit, reads, response).await;
    let made = response.extensions_mut().remove::<Made>();
    let (Some(held), Some(Made { mut page, visit })) = (held, made) else {
        return response;
    };
    match held.kept(is_known).await {
        Again::Kept(kept) => page.kept = Some(kept),
        Again::Lost => page.lost = true,
        Again::Nothing => return response,
    }
    let mut again = error_page(web, &visit, response.status(), page).await;
    for name in [header::RETRY_AFTER, header::WWW_AUTHENTICATE] {
        if let Some(value) = response.headers_mut().remove(&name) {
            again.headers_mut().insert(name, value);
        }
    }
    again
}

/// The page of a refusal for programs that a layer has made; other responses as they are.
async fn in_words(web: &Web, mut visit: Visit, reads: bool, response: Response) -> Response {
    let kind = response.headers().get(header::CONTENT_TYPE);
    if kind.is_none_or(|kind| kind != "application/json" && kind != "application/problem+json") {
        return response;
    }
    let (parts, body) = response.into_parts();
    // who it was is known where the layer behind found that out
    if let Some(actor) = parts.extensions.get::<Actor>() {
        visit = visit.by(actor.clone());
    }
    let status = parts.status;
    let (kind, detail) = match status {
        // who opens a page signs in first, and comes back to it
        StatusCode::UNAUTHORIZED if reads => {
            let back = format!("{}{}", visit.path, visit.query.with("", None));
            let back = encoded(layout::local_path(Some(&back)));
            return layout::see_other(&format!("/login?next={back}"));
        }
        StatusCode::UNAUTHORIZED => ("unknown", None),
        StatusCode::FORBIDDEN => {
            let detail = visit.lang.text("error.forbidden.role", &[]);
            ("forbidden", Some(detail))
        }
        StatusCode::TOO_MANY_REQUESTS | StatusCode::SERVICE_UNAVAILABLE => {
            let bytes = axum::body::to_bytes(body, MAX_REFUSAL).await;
            let value: serde_json::Value =
                serde_json::from_slice(&bytes.unwrap_or_default()).unwrap_or_default();
            let said = value["detail"].as_str().or(value["error"].as_str());
            ("unavailable", said.map(str::to_owned))
        }
        _ => return Response::from_parts(parts, body),
    };
    let page = ErrorPage::of(&visit, status, kind, detail);
    let mut page = error_page(web, &visit, status, page).await;
    for name in [header::RETRY_AFTER, header::WWW_AUTHENTICATE] {
        if let Some(value) = parts.headers.get(&name) {
            page.headers_mut().insert(name, value.clone());
        }
    }
    page
}

/// Whether an address is one that programs use, which read JSON.
pub fn is_for_programs(path: &str) -> bool {
    [
        "/api/",
        "/mcp",
        "/library.git",
        "/healthz",
        "/readyz",
        "/metrics",
        "/hooks/",
    ]
    .iter()
    .any(|start| path.starts_with(start))
}

/// The page for an address where there is nothing.
pub async fn nothing(web: &Web, visit: &Visit) -> Response {
    failed(web, visit, Failure::NotFound).await
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check_escape(text: &str, expected: &str) {
        let mut out = Vec::new();
        escape(text, &mut out).unwrap();
        assert_eq!(String::from_utf8(out).unwrap(), expected);
    }

    #[test]
    fn texts_of_authors_are_shown_and_do_nothing() {
        check_escape("plain\n\ttext 결제", "plain\n\ttext 결제");
        check_escape(
            "<img src=x onerror='a'>&\"",
            "&lt;img src=x onerror=&#39;a&#39;&gt;&amp;&quot;",
        );
        check_escape("a\u{202e}b\u{200b}", "a&lt;U+202E&gt;b&lt;U+200B&gt;");
        check_escape("\u{1b}[31m\r", "␛[31m␍");
    }

    #[test]
    fn every_template_can_be_read() {
        prove().unwrap();
    }

    #[test]
    fn every_text_that_a_template_names_is_there() {
        let mut found = 0;
        for file in FILES.files() {
            let text = file.contents_utf8().unwrap();
            for (at, _) in text.match_indices("\" | t") {
                let filter = &text[at + 4..];
                let key = text[..at].rsplit('"').next().unwrap();
                let counted = filter.starts_with("tn");
                let wanted = if counted {
                    format!("{key}.other")
                } else {
                    key.to_owned()
                };
                // a key that is put together ends where its variable begins
                if key.ends_with('.') || key.is_empty() {
                    continue;
                }
                assert!(
                    Lang::En.table().contains_key(&wanted),
                    "{} names {wanted}",
                    file.path().display()
                );
                found += 1;
            }
            assert!(!text.contains("| safe"), "{}", file.path().display());
            assert!(!text.contains(" style=") && !text.contains(" onclick="));
        }
        assert!(found > 20, "{found}");
    }

    #[test]
    fn gzip_is_taken_where_it_is_said() {
        let check = |value: &'static str, expected| {
            let mut headers = HeaderMap::new();
            headers.insert(header::ACCEPT_ENCODING, HeaderValue::from_static(value));
            assert_eq!(takes_gzip(&headers), expected, "{value}");
        };
        check("gzip, deflate, br", true);
        check("br, GZIP;q=0.5", true);
        check("gzip;q=0", false);
        check("identity", false);
    }
}
