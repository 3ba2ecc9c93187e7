//! Notices: what has changed since a listener was last told, decided by comparing generations.
//!
//! Nothing is queued for anyone. A listener remembers one number, and for each subscribed URI one
//! hash; when it is ready to be told, what it is owed follows from the snapshot of that moment. So
//! a slow reader costs nothing, and ten publishes while it slept are one notice.

use std::collections::BTreeMap;
use std::sync::Arc;

use bytes::Bytes;
use serde::Serialize;
use serde_json::value::RawValue;

pub use super::views::Seen;
use super::views::View;
use crate::catalog::{Catalog, Lookup};

/// Subscribed URIs, as they were written, with the hash last told; none for no content.
pub type Subscriptions = BTreeMap<Arc<str>, Option<Arc<str>>>;

/// Which lists a listener wants to hear about.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Interest {
    /// `notifications/prompts/list_changed`.
    pub prompts: bool,
    /// `notifications/resources/list_changed`.
    pub resources: bool,
}

impl Interest {
    /// Everything, which is what legacy clients get.
    pub const ALL: Self = Self {
        prompts: true,
        resources: true,
    };
}

/// One thing to tell.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Notice {
    /// The list of prompts changed, or how one renders.
    Prompts,
    /// The list of resources changed.
    Resources,
    /// The content at a subscribed URI changed.
    Updated(Arc<str>),
}

/// Of what a listener has heard everything.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Told {
    /// The generation; 0 for nothing.
    pub generation: u64,
    /// What it saw then, where that is a part of the library.
    pub seen: Option<Seen>,
}

impl Told {
    /// Everything that a view shows now.
    pub(super) fn of(view: &View, folder: Option<&str>, bodies: bool) -> Self {
        Self {
            generation: view.snapshot.generation,
            seen: view.seen(folder, bodies),
        }
    }
}

/// What a listener is owed; afterwards it counts as told. `bodies` says whether an edit of a body alone is told.
pub(super) fn due(
    view: &View,
    folder: Option<&str>,
    interest: Interest,
    bodies: bool,
    told: &mut Told,
    subscriptions: &mut Subscriptions,
) -> Vec<Notice> {
    let snapshot = &view.snapshot;
    let now = Told::of(view, folder, bodies);
    if now == *told {
        return Vec::new();
    }
    let since = told.generation;
    let changes = &snapshot.changes;
    let (prompts, resources, contents) = match (&told.seen, &now.seen) {
        (None, None) => {
            let prompts = match folder {
                None => changes.prompts,
                Some(folder) => changes.folders.get(folder).copied().unwrap_or(0),
            };
            let contents = changes.resources_content.max(changes.resources_list);
            (
                prompts > since,
                changes.resources_list > since,
                contents > since,
            )
        }
        // of what is changed elsewhere nothing is to be noticed
        (Some(before), Some(now)) => (
            before.prompts != now.prompts,
            before.resources != now.resources,
            true,
        ),
        // who saw a part sees everything, or the other way round
        _ => (true, true, true),
    };
    let mut notices = Vec::new();
    if interest.prompts && prompts {
        notices.push(Notice::Prompts);
    }
    if interest.resources && resources {
        notices.push(Notice::Resources);
    }
    if contents {
        for (uri, hash) in subscriptions {
            let now = content_hash(&snapshot.catalog, uri);
            if now != *hash {
                *hash = now;
                notices.push(Notice::Updated(uri.clone()));
            }
        }
    }
    *told = now;
    notices
}

/// The hash of what is at a URI now.
pub fn content_hash(catalog: &Catalog, uri: &str) -> Option<Arc<str>> {
    match catalog.resource(uri) {
        Lookup::Found(resource) => Some(resource.sha256.clone()),
        Lookup::Missing | Lookup::Invalid(_) => None,
    }
}

#[derive(Serialize)]
struct Notification<'a> {
    jsonrpc: &'static str,
    method: &'static str,
    #[serde(skip_serializing_if = "Option::is_none")]
    params: Option<NotificationParams<'a>>,
}

#[derive(Serialize)]
struct NotificationParams<'a> {
    #[serde(rename = "_meta", skip_serializing_if = "Option::is_none")]
    meta: Option<NotificationMeta<'a>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    uri: Option<&'a str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    notifications: Option<&'a Filter>,
}

#[derive(Serialize)]
struct NotificationMeta<'a> {
    #[serde(rename = "io.modelcontextprotocol/subscriptionId")]
    subscription: &'a RawValue,
}

/// The filter of `subscriptions/listen`, as it is asked for and as it is acknowledged.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Filter {
    /// Prompts.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub prompts_list_changed: bool,
    /// Resources.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub resources_list_changed: bool,
    /// URIs.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub resource_subscriptions: Vec<Arc<str>>,
}

impl Notice {
    fn method(&self) -> &'static str {
        match self {
            Self::Prompts => "notifications/prompts/list_changed",
            Self::Resources => "notifications/resources/list_changed",
            Self::Updated(_) => "notifications/resources/updated",
        }
    }

    fn uri(&self) -> Option<&str> {
        match self {
            Self::Updated(uri) => Some(uri),
            Self::Prompts | Self::Resources => None,
        }
    }

    /// The notification as JSON; the id of the subscription it is sent on, in the modern era.
    pub fn json(&self, subscription: Option<&str>) -> Vec<u8> {
        notification(self.method(), subscription, self.uri(), None)
    }

    /// The notification as an event of a stream.
    pub fn event(&self, subscription: Option<&str>) -> Bytes {
        // The same bytes for every legacy listener: nothing is made, nothing is copied.
        match (self, subscription) {
            (Self::Prompts, None) => Bytes::from_static(
                b"event: message\ndata: {\"jsonrpc\":\"2.0\",\"method\":\"notifications/prompts/list_changed\"}\n\n",
            ),
            (Self::Resources, None) => Bytes::from_static(
                b"event: message\ndata: {\"jsonrpc\":\"2.0\",\"method\":\"notifications/resources/list_changed\"}\n\n",
            ),
            _ => event(&self.json(subscription)),
        }
    }
}

/// The first notification of a subscription: what was accepted.
pub fn acknowledged(subscription: &str, filter: &Filter) -> Vec<u8> {
    notification(
        "notifications/subscriptions/acknowledged",
        Some(subscription),
        None,
        Some(filter),
    )
}

/// The last message of a subscription: its request is complete.
pub fn completed(subscription: &str) -> Vec<u8> {
    #[derive(Serialize)]
    struct Response<'a> {
        jsonrpc: &'static str,
        id: &'a RawValue,
        result: Complete<'a>,
    }
    #[derive(Serialize)]
    #[serde(rename_all = "camelCase")]
    struct Complete<'a> {
        result_type: &'static str,
        #[serde(rename = "_meta")]
        meta: NotificationMeta<'a>,
    }
    let Ok(id) = serde_json::from_str::<&RawValue>(subscription) else {
        return Vec::new();
    };
    let result = Complete {
        result_type: "complete",
        meta: NotificationMeta { subscription: id },
    };
    serde_json::to_vec(&Response {
        jsonrpc: "2.0",
        id,
        result,
    })
    .unwrap_or_default()
}

fn notification(
    method: &'static str,
    subscription: Option<&str>,
    uri: Option<&str>,
    notifications: Option<&Filter>,
) -> Vec<u8> {
    let meta = subscription
        .and_then(|id| serde_json::from_str::<&RawValue>(id).ok())
        .map(|subscription| NotificationMeta { subscription });
    let params = (meta.is_some() || uri.is_some() || notifications.is_some()).then_some(
        NotificationParams {
            meta,
            uri,
            notifications,
        },
    );
    serde_json::to_vec(&Notification {
        jsonrpc: "2.0",
        method,
        params,
    })
    .unwrap_or_default()
}

/// A JSON text as an event of a stream. JSON has no raw line breaks, so one `data:` line holds it.
pub fn event(json: &[u8]) -> Bytes {
    let mut out = Vec::with_capacity(json.len() + 24);
    out.extend_from_slice(b"event: message\ndata: ");
    out.extend_from_slice(json);
    out.extend_from_slice(b"\n\n");
    out.into()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn events() {
        for notice in [Notice::Prompts, Notice::Resources] {
            assert_eq!(notice.event(None), event(&notice.json(None)));
        }
        let updated = Notice::Updated("runbook://pay".into());
        assert_eq!(
            String::from_utf8(updated.json(Some("\"a\""))).unwrap(),
            r#"{"jsonrpc":"2.0","method":"notifications/resources/updated","params":{"_meta":{"io.modelcontextprotocol/subscriptionId":"a"},"uri":"runbook://pay"}}"#
        );
        assert_eq!(
            String::from_utf8(completed("1")).unwrap(),
            r#"{"jsonrpc":"2.0","id":1,"result":{"resultType":"complete","_meta":{"io.modelcontextprotocol/subscriptionId":1}}}"#
        );
        let filter = Filter {
            prompts_list_changed: true,
            ..Filter::default()
        };
        assert_eq!(
            String::from_utf8(acknowledged("1", &filter)).unwrap(),
            r#"{"jsonrpc":"2.0","method":"notifications/subscriptions/acknowledged","params":{"_meta":{"io.modelcontextprotocol/subscriptionId":1},"notifications":{"promptsListChanged":true}}}"#
        );
    }
}
