//! What happens: what was published, who is connected, what is wrong; the audit for admins.

use axum::extract::State;
use axum::response::Response;
use serde::Serialize;

use super::Web;
use super::page::{Page, show};
use super::text::Lang;
use super::visit::Visit;
use crate::access::Action;
use crate::activity::Now;
use crate::activity::published::{Asked, Published, published};

/// Rows of the audit that are listed.
const AUDIT: i64 = 50;
/// What was published that is listed, and changes of the labels that are looked at for it.
const PUBLISHED: usize = 40;

/// What the template sees.
#[derive(Debug, Serialize)]
pub struct ActivityPage {
    /// What is so now; the text of `index` is `activity.index.<word>`.
    pub now: Now,
    /// How long it took from the last change that was seen until all who listen were woken.
    pub told: Option<String>,
    /// How far the versions are counted, while they are.
    pub counting: Option<String>,
    /// What was published, newest first.
    pub published: Vec<Published>,
    /// Whether labels that were moved are missing there, because they could not be read.
    pub unread: bool,
    /// The audit, for those who may see it.
    pub audit: Option<Vec<Audited>>,
}

/// A row of the audit.
#[derive(Debug, Serialize)]
pub struct Audited {
    /// Its number.
    pub seq: i64,
    /// When, in seconds since 1970.
    pub at: i64,
    /// Who.
    pub actor: String,
    /// From where.
    pub origin: Option<String>,
    /// What was done.
    pub action: String,
    /// To what.
    pub subject: Option<String>,
    /// What else there is to say.
    pub detail: Option<String>,
    /// The commit after.
    pub commit: Option<String>,
}

impl Page for ActivityPage {
    const TEMPLATE: &'static str = "activity.html";
    const SECTION: &'static str = "activity";

    fn title(&self, lang: Lang) -> String {
        lang.text("activity.title", &[])
    }
}

/// `GET /activity`.
pub(super) async fn page(State(web): State<Web>, visit: Visit) -> Response {
    let page = made(&web, &visit).await;
    show(&web, &visit, &page).await
}

async fn made(web: &Web, visit: &Visit) -> ActivityPage {
    let now = web.activity.now(&visit.actor);
    let asked = Asked {
        before: None,
        most: PUBLISHED,
        back: PUBLISHED,
    };
    let (published, unread) = published(&web.api.registry, &visit.actor, &asked).await;
    ActivityPage {
        told: now.told_ms.map(|told| format!("{told:.1} ms")),
        counting: now.counting.map(|counting| {
            let (done, total) = (counting.done.to_string(), counting.total.to_string());
            visit
                .lang
                .text("versions.counting", &[("done", &done), ("total", &total)])
        }),
        now,
        published,
        unread: unread.is_some(),
        audit: audit(web, visit).await,
    }
}

async fn audit(web: &Web, visit: &Visit) -> Option<Vec<Audited>> {
    if !visit.actor.may(Action::Administer, "") {
        return None;
    }
    let store = web.api.records.as_ref()?.store().ok()?;
    let rows = store
        .audit_before(None, AUDIT)
        .await
        .inspect_err(|error| tracing::error!(%error, "the audit could not be read"))
        .ok()?;
    let rows = rows.into_iter().map(|row| Audited {
        seq: row.seq,
        at: row.at / 1000,
        actor: row.actor,
        origin: row.origin,
        action: row.action,
        subject: row.subject,
        detail: row.detail,
        commit: row.new_commit,
    });
    Some(rows.collect())
}
