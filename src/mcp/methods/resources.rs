//! `resources/*` and `subscriptions/listen`.

use std::sync::Arc;

use serde::{Deserialize, Serialize};
use serde_json::value::RawValue;

use super::super::Answer;
use super::super::envelope::{kind, present, text};
use super::super::error::{Failure, RpcError};
use super::super::notices::{Filter, content_hash};
use super::super::pages::List;
use super::super::params::object;
use super::super::session::lock;
use super::super::wire::{Common, Contents};
use super::Call;
use crate::catalog::Lookup;

/// Longest URI that is looked at, in bytes.
const MAX_URI: usize = 2048;

pub(super) fn list(call: &Call<'_>) -> Result<Answer, Failure> {
    call.page(List::Resources)
}

pub(super) fn templates(call: &Call<'_>) -> Result<Answer, Failure> {
    call.page(List::Templates)
}

pub(super) fn read(call: &Call<'_>) -> Result<Answer, Failure> {
    #[derive(Serialize)]
    struct Read<'a> {
        contents: [Contents<'a>; 1],
        #[serde(flatten)]
        common: Common<'a>,
    }
    let uri = call.params.uri()?;
    let resource = found(call, &uri)?;
    call.respond(
        &Read {
            contents: [Contents::new(&uri, &resource)],
            common: Common::cacheable(call.caller.revision, call.by_actor()),
        },
        resource.bytes().len() * 4 / 3 + 256,
    )
}

fn found(call: &Call<'_>, uri: &str) -> Result<Arc<crate::prompt::Resource>, Failure> {
    let revision = call.caller.revision;
    if uri.len() > MAX_URI {
        return Err(
            RpcError::invalid_params(format!("`uri` is longer than {MAX_URI} bytes")).into(),
        );
    }
    match call.snapshot.catalog.resource(uri) {
        Lookup::Found(resource) => Ok(resource),
        Lookup::Missing => {
            let near = call.snapshot.catalog.near(uri);
            Err(RpcError::resource_not_found(uri, &near, revision).into())
        }
        Lookup::Invalid(why) => Err(RpcError::invalid_params(format!("`uri`: {why}")).into()),
    }
}

pub(super) fn subscribe(call: &Call<'_>) -> Result<Answer, Failure> {
    let uri = call.params.uri()?;
    let resource = found(call, &uri)?;
    // Without a session there is no stream on which to tell, and nothing to keep.
    if let Some(session) = &call.caller.session {
        let mut state = lock(&session.state);
        let max = call.service.settings.max_subscriptions;
        if state.subscriptions.len() >= max && !state.subscriptions.contains_key(&*uri) {
            return Err(RpcError::invalid_params(format!(
                "a session can subscribe to {max} resources at most"
            ))
            .into());
        }
        state
            .subscriptions
            .insert(uri.into(), Some(resource.sha256.clone()));
    }
    call.empty()
}

pub(super) fn unsubscribe(call: &Call<'_>) -> Result<Answer, Failure> {
    let uri = call.params.uri()?;
    if let Some(session) = &call.caller.session {
        lock(&session.state).subscriptions.remove(&*uri);
    }
    call.empty()
}

#[derive(Default, Deserialize)]
#[serde(rename_all = "camelCase")]
struct Wanted<'a> {
    #[serde(borrow, default, deserialize_with = "present")]
    prompts_list_changed: Option<&'a RawValue>,
    #[serde(borrow, default, deserialize_with = "present")]
    resources_list_changed: Option<&'a RawValue>,
    #[serde(borrow, default, deserialize_with = "present")]
    tools_list_changed: Option<&'a RawValue>,
    #[serde(borrow, default, deserialize_with = "present")]
    resource_subscriptions: Option<&'a RawValue>,
}

/// Answers with the part of the wish that is granted: the tools never change, and what is not a URI
/// of this library never will be.
pub(super) fn listen(call: &Call<'_>) -> Result<Answer, Failure> {
    if call.params.notifications.is_none() {
        return Err(RpcError::invalid_params("`notifications` is missing").into());
    }
    let wanted: Wanted<'_> = object(call.params.notifications, "notifications")?;
    flag(wanted.tools_list_changed, "toolsListChanged")?;
    let mut filter = Filter {
        prompts_list_changed: flag(wanted.prompts_list_changed, "promptsListChanged")?,
        resources_list_changed: flag(wanted.resources_list_changed, "resourcesListChanged")?,
        resource_subscriptions: Vec::new(),
    };
    let max = call.service.settings.max_subscriptions;
    for uri in uris(wanted.resource_subscriptions)? {
        let Some(uri) = text(uri) else {
            return Err(RpcError::invalid_params(format!(
                "`resourceSubscriptions` must hold strings, not {}",
                kind(uri)
            ))
            .into());
        };
        if filter.resource_subscriptions.len() == max {
            return Err(RpcError::invalid_params(format!(
                "a stream can subscribe to {max} resources at most"
            ))
            .into());
        }
        if uri.len() <= MAX_URI
            && !matches!(call.snapshot.catalog.resource(&uri), Lookup::Invalid(_))
        {
            filter.resource_subscriptions.push(uri.into());
        }
    }
    Ok(Answer::Listen(filter))
}

fn flag(raw: Option<&RawValue>, name: &str) -> Result<bool, RpcError> {
    match raw.map(RawValue::get) {
        None | Some("null" | "false") => Ok(false),
        Some("true") => Ok(true),
        _ => Err(RpcError::invalid_params(format!(
            "`{name}` must be true or false"
        ))),
    }
}

fn uris(raw: Option<&RawValue>) -> Result<Vec<&RawValue>, RpcError> {
    match raw {
        None => Ok(Vec::new()),
        Some(raw) if raw.get() == "null" => Ok(Vec::new()),
        Some(raw) => serde_json::from_str(raw.get()).map_err(|_| {
            RpcError::invalid_params("`resourceSubscriptions` must be an array of URIs")
        }),
    }
}

/// The hashes from which a new listener starts.
pub(crate) fn starting_hashes(
    catalog: &crate::catalog::Catalog,
    uris: &[Arc<str>],
) -> super::super::notices::Subscriptions {
    uris.iter()
        .map(|uri| (uri.clone(), content_hash(catalog, uri)))
        .collect()
}
