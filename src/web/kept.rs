//! What was typed into a form that is refused, whoever refuses it: shown again under the reason, to be sent once more.
//!
//! A handler that shows its own form again has kept it by that; here is every other way, from who asks too often to who is
//! not signed in any more.

use std::pin::Pin;
use std::sync::{Arc, Mutex, PoisonError};
use std::task::{Context, Poll};
use std::time::Duration;

use axum::body::{Body, BodyDataStream, Bytes};
use axum::http::Method;
use axum::http::header::{self, HeaderValue};
use axum::http::request::Parts;
use futures_util::{Stream as _, stream};
use serde::Serialize;
use tokio::sync::Semaphore;

use super::text::Query;
use crate::http::Pace;

/// Pages whose forms are kept: no password is typed there.
const PAGES: [&str; 3] = ["/edit/", "/proposals/", "/prompts/"];
/// Fields that people fill in, each with its text `error.field.<name>`.
const KNOWN: [&str; 5] = ["text", "message", "more", "title", "reason"];
/// Longest form that is shown again to somebody who is known, in bytes.
const MOST: usize = 12 * 1024 * 1024;
/// The same to others.
const MOST_OF_ANYBODY: usize = 512 * 1024;
/// Fields of a form that is shown again.
const FIELDS: usize = 1000;
/// Forms that are read at once of people who are known, and of others.
static READ: [Semaphore; 2] = [Semaphore::const_new(4), Semaphore::const_new(4)];
/// Time for what has not come yet of others, whose place somebody may want who has lost a session.
const PATIENCE: Duration = Duration::from_secs(5);

/// What somebody has typed, and what else the form held.
#[derive(Debug, Clone, Serialize)]
pub(super) struct Kept {
    /// Fields that people fill in.
    typed: Vec<Field>,
    /// All others but the token.
    fixed: Vec<Field>,
}

/// A field of a form.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
struct Field {
    name: String,
    value: String,
    /// Whether `error.field.<name>` says what it is.
    known: bool,
}

impl Kept {
    /// None where nobody has typed anything.
    fn of(fields: &Query) -> Option<Self> {
        let all = fields.pairs().filter(|(name, _)| *name != "csrf");
        let all = all.map(|(name, value)| Field {
            name: name.to_owned(),
            value: value.to_owned(),
            known: KNOWN.contains(&name),
        });
        let (typed, fixed): (Vec<Field>, Vec<Field>) = all.partition(Field::is_typed);
        let is_empty = typed.iter().all(|field| field.value.trim().is_empty());
        (!is_empty).then_some(Self { typed, fixed })
    }
}

impl Field {
    /// Whether people fill it in; others are files of a page of conflicts, and the arguments of a prompt.
    fn is_typed(&self) -> bool {
        self.known || self.name.starts_with("file:") || self.name.starts_with("a.")
    }
}

/// The body of a request, remembered while it is read: what is left of it can be read after it was refused.
#[derive(Clone)]
pub(super) struct Held(Arc<Mutex<Reading>>);

struct Reading {
    body: BodyDataStream,
    taken: Vec<Bytes>,
    /// Nothing more comes.
    ended: bool,
    /// It did not come whole.
    broken: bool,
}

/// Holds the body of a form in which somebody types, where a page of this server may have sent it: what another site makes
/// a browser send is shown to nobody.
pub(super) fn hold(parts: &Parts, body: Body) -> (Option<Held>, Body) {
    let site = parts.headers.get("sec-fetch-site");
    let is_form = parts.method == Method::POST
        && PAGES.iter().any(|page| parts.uri.path().starts_with(page))
        && parts.headers.get(header::CONTENT_TYPE).is_some_and(|kind| {
            kind.as_bytes()
                .starts_with(b"application/x-www-form-urlencoded")
        })
        && matches!(
            site.map(HeaderValue::as_bytes),
            None | Some(b"same-origin" | b"none")
        );
    if !is_form {
        return (None, body);
    }
    let held = Held(Arc::new(Mutex::new(Reading {
        body: body.into_data_stream(),
        taken: Vec::new(),
        ended: false,
        broken: false,
    })));
    let body = held.body();
    (Some(held), body)
}

impl Held {
    fn body(&self) -> Body {
        let held = self.clone();
        Body::from_stream(stream::poll_fn(move |context| held.poll(context)))
    }

    fn poll(&self, context: &mut Context<'_>) -> Poll<Option<Result<Bytes, axum::Error>>> {
        let mut guard = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let reading = &mut *guard;
        if reading.ended {
            return Poll::Ready(None);
        }
        let polled = Pin::new(&mut reading.body).poll_next(context);
        match &polled {
            Poll::Ready(Some(Ok(bytes))) => reading.taken.push(bytes.clone()),
            Poll::Ready(Some(Err(_))) => {
                reading.ended = true;
                reading.broken = true;
            }
            Poll::Ready(None) => reading.ended = true,
            Poll::Pending => {}
        }
        polled
    }

    /// What was sent, for the page that says why it was refused; to somebody who is known, or not.
    pub(super) async fn kept(&self, is_known: bool) -> Again {
        let Ok(_place) = READ[usize::from(!is_known)].try_acquire() else {
            return Again::Lost;
        };
        let most = if is_known { MOST } else { MOST_OF_ANYBODY };
        // what has not come yet
        let rest = axum::body::to_bytes(Pace::default().of(self.body()), most);
        let came = if is_known {
            rest.await.is_ok()
        } else {
            matches!(tokio::time::timeout(PATIENCE, rest).await, Ok(Ok(_)))
        };
        let reading = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let length: usize = reading.taken.iter().map(Bytes::len).sum();
        let separators = reading.taken.iter().flatten().filter(|byte| **byte == b'&');
        if !came || reading.broken || length > most || separators.count() >= FIELDS {
            return Again::Lost;
        }
        let whole = reading.taken.concat();
        match Kept::of(&Query::of(&String::from_utf8_lossy(&whole))) {
            Some(kept) => Again::Kept(kept),
            None => Again::Nothing,
        }
    }
}

/// What of a refused form is shown again.
pub(super) enum Again {
    /// All that was typed.
    Kept(Kept),
    /// It is too long, has too many fields, or did not come whole: only the browser has it.
    Lost,
    /// Nothing was typed.
    Nothing,
}

#[cfg(test)]
mod tests {
    use axum::http::Request;

    use super::*;

    fn request(path: &str, site: Option<&str>) -> (Parts, Body) {
        let mut request = Request::post(path).header(
            header::CONTENT_TYPE,
            "application/x-www-form-urlencoded; charset=UTF-8",
        );
        if let Some(site) = site {
            request = request.header("sec-fetch-site", site);
        }
        let body = Body::from("csrf=a&do=publish&text=One%0D%0Atwo&message=");
        request.body(body).unwrap().into_parts()
    }

    #[tokio::test]
    async fn what_was_typed_is_read_again_whether_or_not_somebody_has_read_it() {
        for reads in [0, 10, 1000] {
            let (parts, body) = request("/edit/prompts/a.md", None);
            let (held, body) = hold(&parts, body);
            let read = axum::body::to_bytes(body, reads).await;
            assert_eq!(read.is_ok(), reads == 1000);
            let Again::Kept(kept) = held.unwrap().kept(reads > 0).await else {
                panic!("nothing is kept");
            };
            let field = |name: &str, value: &str, known| Field {
                name: name.into(),
                value: value.into(),
                known,
            };
            let typed = [
                field("text", "One\r\ntwo", true),
                field("message", "", true),
            ];
            assert_eq!(kept.typed, typed);
            assert_eq!(kept.fixed, [field("do", "publish", false)]);
        }
    }

    #[tokio::test]
    async fn what_is_too_much_is_not_shown_again() {
        let long = |bytes: usize| format!("message={}", "a".repeat(bytes));
        for (body, is_known, is_kept) in [
            (long(600 * 1024), true, true),
            (long(600 * 1024), false, false),
            (long(13 * 1024 * 1024), true, false),
            (format!("message=a{}", "&a".repeat(900)), false, true),
            (format!("message=a{}", "&a".repeat(1100)), true, false),
        ] {
            let (parts, _) = request("/edit/prompts/a.md", None);
            let (held, _) = hold(&parts, Body::from(body));
            let again = held.unwrap().kept(is_known).await;
            assert_eq!(matches!(again, Again::Kept(_)), is_kept);
        }
    }

    #[test]
    fn no_password_and_nothing_of_another_site_is_kept() {
        let check = |path: &str, site: Option<&str>, expected: bool| {
            let (parts, body) = request(path, site);
            assert_eq!(hold(&parts, body).0.is_some(), expected, "{path} {site:?}");
        };
        check("/edit/prompts/a.md", Some("same-origin"), true);
        check("/edit/prompts/a.md", Some("cross-site"), false);
        check("/login", None, false);
        check("/settings", None, false);
    }
}
