//! `initialize`, `server/discover`, `logging/setLevel`.

use rmcp::model::{
    Implementation, JsonObject, PromptsCapability, ResourcesCapability, ServerCapabilities,
    ToolsCapability,
};
use serde::Serialize;

use super::super::clients::Client;
use super::super::error::{Failure, RpcError};
use super::super::meta::is_log_level;
use super::super::params::required_text;
use super::super::revision::Revision;
use super::super::wire::{self, Common, SERVER_NAME, SERVER_VERSION};
use super::super::{Answer, Service};
use super::Call;

fn capabilities(service: &Service, revision: Revision) -> ServerCapabilities {
    let mut prompts = PromptsCapability::default();
    prompts.list_changed = Some(true);
    let mut resources = ResourcesCapability::default();
    resources.subscribe = Some(true);
    resources.list_changed = Some(true);
    let mut all = ServerCapabilities::default();
    all.prompts = Some(prompts);
    all.resources = Some(resources);
    all.completions = revision.has_completions_capability().then(JsonObject::new);
    // The tools are fixed, so their list never changes.
    all.tools = service.settings.tools.then(ToolsCapability::default);
    all
}

pub(super) fn initialize(call: &Call<'_>) -> Result<Answer, Failure> {
    #[derive(Serialize)]
    #[serde(rename_all = "camelCase")]
    struct Initialized<'a> {
        protocol_version: &'static str,
        capabilities: ServerCapabilities,
        server_info: Implementation,
        #[serde(skip_serializing_if = "Option::is_none")]
        instructions: Option<&'a str>,
    }
    let requested = required_text(call.params.protocol_version, "protocolVersion")?;
    let revision = Revision::parse_legacy(&requested).unwrap_or(Revision::LATEST_LEGACY);
    let client = call
        .params
        .client_info
        .map(Client::from_json)
        .unwrap_or_default();
    let catalog = &call.snapshot.catalog;
    let mut server_info = Implementation::new(SERVER_NAME, SERVER_VERSION);
    if revision.has_title() {
        server_info.title = catalog.title().map(str::to_owned);
    }
    let result = Initialized {
        protocol_version: revision.as_str(),
        capabilities: capabilities(call.service, revision),
        server_info,
        instructions: catalog.instructions(),
    };
    let response = wire::respond(call.id, &result, 512)
        .map_err(|error| Failure::Internal(error.to_string()))?;
    Ok(Answer::Initialized {
        response,
        revision,
        client,
    })
}

pub(super) fn discover(call: &Call<'_>) -> Result<Answer, Failure> {
    #[derive(Serialize)]
    #[serde(rename_all = "camelCase")]
    struct Discovered<'a> {
        supported_versions: [&'static str; 1],
        capabilities: ServerCapabilities,
        #[serde(skip_serializing_if = "Option::is_none")]
        instructions: Option<&'a str>,
        #[serde(flatten)]
        common: Common<'a>,
    }
    let revision = call.caller.revision;
    call.respond(
        &Discovered {
            supported_versions: Revision::MODERN,
            capabilities: capabilities(call.service, revision),
            instructions: call.snapshot.catalog.instructions(),
            common: Common::cacheable(revision, call.by_actor()),
        },
        512,
    )
}

/// Accepted and without effect: this server writes its log to stderr and sends none to clients.
pub(super) fn set_level(call: &Call<'_>) -> Result<Answer, Failure> {
    let level = required_text(call.params.level, "level")?;
    if !is_log_level(&level) {
        return Err(RpcError::invalid_params("`level` is not a log level").into());
    }
    call.empty()
}
