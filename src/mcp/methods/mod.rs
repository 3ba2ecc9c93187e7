//! The method table: what exists in which era, and who answers it.

mod completion;
mod lifecycle;
mod prompts;
mod resources;
mod tools;

use std::sync::Arc;

pub(super) use self::resources::starting_hashes;
use super::envelope::Request;
use super::error::{Failure, RpcError};
use super::params::Params;
use super::revision::Era::{Legacy, Modern};
use super::wire::{self, Common};
use super::{Answer, Caller, Service, shortened};
use crate::access::Action;
use crate::registry::Snapshot;

/// One call of a method, with the one snapshot it is answered from.
pub(super) struct Call<'a> {
    pub(super) service: &'a Service,
    pub(super) caller: &'a Caller,
    /// What is served, as the caller sees it.
    pub(super) snapshot: Arc<Snapshot>,
    /// The same with what the caller does not see.
    pub(super) whole: Arc<Snapshot>,
    pub(super) id: &'a str,
    pub(super) params: &'a Params<'a>,
}

impl Call<'_> {
    fn folder(&self) -> Option<&str> {
        self.caller.folder.as_deref()
    }

    /// Whether the caller may read a path of the library.
    fn sees(&self, path: &str) -> bool {
        self.caller.actor.may(Action::Read, path)
    }

    /// Whether lists may differ from one actor to the next.
    pub(super) fn by_actor(&self) -> bool {
        !self.service.access.is_open()
    }

    /// A result without content of its own.
    fn empty(&self) -> Result<Answer, Failure> {
        self.respond(&Common::plain(self.caller.revision), 64)
    }

    /// A whole response; `expected` is a guess at its size in bytes.
    fn respond(&self, result: &impl serde::Serialize, expected: usize) -> Result<Answer, Failure> {
        wire::respond(self.id, result, expected)
            .map(Answer::Response)
            .map_err(|error| Failure::Internal(error.to_string()))
    }
}

pub(super) async fn dispatch(
    service: &Service,
    caller: &Caller,
    request: &Request<'_>,
) -> Result<Answer, Failure> {
    let whole = service.registry.snapshot();
    let call = Call {
        service,
        caller,
        snapshot: service.views.of(&caller.actor, whole.clone()).snapshot,
        whole,
        id: request.id,
        params: &request.params,
    };
    match (caller.revision.era(), &*request.method) {
        (Legacy, "initialize") => lifecycle::initialize(&call),
        (Legacy, "ping") => call.empty(),
        (Legacy, "logging/setLevel") => lifecycle::set_level(&call),
        (Legacy, "resources/subscribe") => resources::subscribe(&call),
        (Legacy, "resources/unsubscribe") => resources::unsubscribe(&call),
        (Modern, "server/discover") => lifecycle::discover(&call),
        (Modern, "subscriptions/listen") => resources::listen(&call),
        (_, "prompts/list") => prompts::list(&call),
        (_, "prompts/get") => prompts::get(&call).await,
        (_, "completion/complete") => completion::complete(&call),
        (_, "resources/list") => resources::list(&call),
        (_, "resources/templates/list") => resources::templates(&call),
        (_, "resources/read") => resources::read(&call),
        (_, "tools/list") => tools::list(&call),
        (_, "tools/call") => tools::call(&call).await,
        (_, method) => Err(RpcError::method_not_found(shortened(method), caller.revision).into()),
    }
}
