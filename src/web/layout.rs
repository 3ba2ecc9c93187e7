//! What stands around every page: the menu, who is there, the language.

use axum::extract::State;
use axum::http::StatusCode;
use axum::http::header::{self, HeaderValue};
use axum::response::{IntoResponse, Response};
use serde::Serialize;

use super::page::{Failure, failed};
use super::text::{Lang, Query};
use super::visit::Visit;
use super::{Web, assets};
use crate::access::Action;

/// The menu: the name of the section, whose text is `nav.<name>`, and where it leads. A page belongs to one by
/// [`super::Page::SECTION`].
const MENU: [(&str, &str); 4] = [
    ("library", "/"),
    ("proposals", "/proposals"),
    ("activity", "/activity"),
    ("connect", "/connect"),
];

/// What the template of the layout sees as `layout`.
#[derive(Debug, Serialize)]
pub struct Layout {
    title: String,
    library: String,
    menu: Vec<Entry>,
    actor: String,
    known: bool,
    /// Whether who looks may propose a file, so that the page for a new one is offered.
    may_propose: bool,
    languages: Vec<Language>,
    /// Where the form of the language comes back to.
    back: String,
    path: String,
    /// Texts of scripts, as JSON.
    texts: &'static str,
    preload: Vec<String>,
    section: &'static str,
}

#[derive(Debug, Serialize)]
struct Entry {
    name: &'static str,
    href: &'static str,
    current: bool,
}

#[derive(Debug, Serialize)]
struct Language {
    tag: &'static str,
    current: bool,
}

impl Layout {
    pub(super) fn of(web: &Web, visit: &Visit, title: String, section: &'static str) -> Self {
        let snapshot = web.api.registry.snapshot();
        Self {
            title,
            library: snapshot
                .catalog
                .title()
                .filter(|_| visit.actor.is_known())
                .unwrap_or("Cuebook")
                .to_owned(),
            menu: MENU
                .iter()
                .filter(|_| visit.actor.is_known())
                .map(|&(name, href)| Entry {
                    name,
                    href,
                    current: name == section,
                })
                .collect(),
            actor: visit.actor.name.to_string(),
            known: visit.actor.is_known(),
            may_propose: web.api.gate.is_some() && visit.actor.may_somewhere(Action::Propose),
            languages: Lang::ALL
                .iter()
                .map(|lang| Language {
                    tag: lang.tag(),
                    current: *lang == visit.lang,
                })
                .collect(),
            back: format!("{}{}", visit.path, visit.query.with("", None)),
            path: visit.path.to_string(),
            texts: visit.lang.of_scripts(),
            preload: assets::imports("app.js"),
            section,
        }
    }
}

/// Longest form, in bytes.
const MAX_FORM: usize = 64 * 1024;

/// The fields of a form whose token is good; why not, else.
pub async fn form(web: &Web, visit: &Visit, body: axum::body::Body) -> Result<Query, Failure> {
    form_of(web, visit, body, MAX_FORM).await
}

/// The same for a form that may hold more than others: at most `most` bytes, where it is known who sends it.
pub async fn form_of(
    web: &Web,
    visit: &Visit,
    body: axum::body::Body,
    most: usize,
) -> Result<Query, Failure> {
    let most = if visit.actor.is_known() {
        most
    } else {
        most.min(MAX_FORM)
    };
    let bytes = axum::body::to_bytes(body, most)
        .await
        .map_err(|_| Failure::Invalid(format!("a form has at most {most} bytes")))?;
    let fields = Query::of(&String::from_utf8_lossy(&bytes));
    if visit.sent(web, fields.get("csrf").unwrap_or_default()) {
        Ok(fields)
    } else {
        Err(Failure::Forbidden(
            visit.lang.text("error.forbidden.token", &[]),
        ))
    }
}

/// A way back inside this server: a path, and never another host.
pub fn local_path(text: Option<&str>) -> &str {
    text.filter(|text| {
        text.starts_with('/')
            && !text.starts_with("//")
            && !text.contains('\\')
            && text.bytes().all(|b| (0x21..0x7f).contains(&b))
    })
    .unwrap_or("/")
}

/// A redirect after a form.
pub fn see_other(path: &str) -> Response {
    let mut response = StatusCode::SEE_OTHER.into_response();
    if let Ok(value) = HeaderValue::from_str(local_path(Some(path))) {
        response.headers_mut().insert(header::LOCATION, value);
    }
    response
}

/// `POST /language`: keeps the language in a cookie, for a year.
pub(super) async fn language(
    State(web): State<Web>,
    visit: Visit,
    body: axum::body::Body,
) -> Response {
    let fields = match form(&web, &visit, body).await {
        Ok(fields) => fields,
        Err(failure) => return failed(&web, &visit, failure).await,
    };
    let Some(lang) = fields.get("lang").and_then(Lang::of_tag) else {
        let known: Vec<&str> = Lang::ALL.iter().map(|lang| lang.tag()).collect();
        let detail = format!("`lang` must be one of {}", known.join(", "));
        return failed(&web, &visit, Failure::Invalid(detail)).await;
    };
    let mut response = see_other(local_path(fields.get("back")));
    let cookie = format!(
        "lang={}; Path=/; Max-Age=31536000; SameSite=Lax; HttpOnly",
        lang.tag()
    );
    if let Ok(value) = HeaderValue::from_str(&cookie) {
        response.headers_mut().insert(header::SET_COOKIE, value);
    }
    response
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_way_back_stays_here() {
        let check = |text, expected| assert_eq!(local_path(Some(text)), expected, "{text}");
        check("/prompts/x?a=b", "/prompts/x?a=b");
        for other in [
            "//evil.example",
            "https://evil.example",
            "/\\evil.example",
            "",
            "x",
            "/a\r\nb",
            "/é",
        ] {
            check(other, "/");
        }
        assert_eq!(local_path(None), "/");
    }
}
