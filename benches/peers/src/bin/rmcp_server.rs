//! rmcp's own server over its own Streamable HTTP transport, with the library in memory.
//!
//! `rmcp_server ADDRESS:PORT LIBRARY stateful|stateless-json`: stateful is rmcp's default.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError};

use axum::Router;
use axum::http::StatusCode;
use axum::routing::post;
use axum::serve::ListenerExt;
use futures_util::future::join_all;
use rmcp::handler::server::ServerHandler;
use rmcp::model::{
    CompleteRequestParams, CompleteResult, CompletionInfo, GetPromptRequestParams,
    GetPromptResponse, GetPromptResult, ListPromptsResult, PaginatedRequestParams, Prompt,
    PromptArgument, PromptMessage, Role, ServerCapabilities, ServerConfig,
};
use rmcp::service::{NotificationContext, Peer, RequestContext};
use rmcp::transport::streamable_http_server::session::local::LocalSessionManager;
use rmcp::transport::streamable_http_server::{StreamableHttpServerConfig, StreamableHttpService};
use rmcp::{ErrorData, RoleServer};
use serde::Deserialize;

#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

#[derive(Deserialize)]
struct File {
    prompts: Vec<Entry>,
    runbooks: HashMap<String, Runbook>,
    services: Vec<String>,
}

#[derive(Deserialize)]
struct Entry {
    name: String,
    description: String,
    arguments: Vec<Argument>,
    parts: Vec<Part>,
    runbook: bool,
}

#[derive(Deserialize)]
struct Argument {
    name: String,
    description: String,
    required: bool,
}

#[derive(Deserialize)]
#[serde(rename_all = "lowercase")]
enum Part {
    Text(String),
    Arg(String),
}

#[derive(Deserialize)]
struct Runbook {
    uri: String,
    #[serde(rename = "mimeType")]
    mime_type: String,
    text: String,
}

struct Library {
    list: Vec<Prompt>,
    prompts: HashMap<String, Entry>,
    runbooks: HashMap<String, Runbook>,
    services: Vec<String>,
    listening: Mutex<Vec<Peer<RoleServer>>>,
}

#[derive(Clone)]
struct Server(Arc<Library>);

impl ServerHandler for Server {
    fn get_info(&self) -> ServerConfig {
        ServerConfig::new(
            ServerCapabilities::builder()
                .enable_prompts()
                .enable_prompts_list_changed()
                .enable_completions()
                .build(),
        )
    }

    async fn on_initialized(&self, context: NotificationContext<RoleServer>) {
        let mut listening = self
            .0
            .listening
            .lock()
            .unwrap_or_else(PoisonError::into_inner);
        listening.push(context.peer);
    }

    async fn list_prompts(
        &self,
        _: Option<PaginatedRequestParams>,
        _: RequestContext<RoleServer>,
    ) -> Result<ListPromptsResult, ErrorData> {
        Ok(ListPromptsResult::with_all_items(self.0.list.clone()))
    }

    async fn get_prompt(
        &self,
        request: GetPromptRequestParams,
        _: RequestContext<RoleServer>,
    ) -> Result<GetPromptResponse, ErrorData> {
        let Some(entry) = self.0.prompts.get(&request.name) else {
            return Err(ErrorData::invalid_params("no such prompt", None));
        };
        let arguments = request.arguments.unwrap_or_default();
        let value = |name: &str| arguments.get(name).and_then(|v| v.as_str());
        let mut text = String::with_capacity(4096);
        for part in &entry.parts {
            match part {
                Part::Text(part) => text.push_str(part),
                Part::Arg(name) => text.push_str(value(name).unwrap_or_default()),
            }
        }
        let mut messages = vec![PromptMessage::new_text(Role::User, text)];
        let runbook = value("service").and_then(|s| self.0.runbooks.get(s));
        if let Some(runbook) = runbook.filter(|_| entry.runbook) {
            messages.push(PromptMessage::new_resource(
                Role::User,
                runbook.uri.clone(),
                Some(runbook.mime_type.clone()),
                Some(runbook.text.clone()),
                None,
                None,
                None,
            ));
        }
        let result = GetPromptResult::new(messages).with_description(entry.description.clone());
        Ok(result.into())
    }

    async fn complete(
        &self,
        request: CompleteRequestParams,
        _: RequestContext<RoleServer>,
    ) -> Result<CompleteResult, ErrorData> {
        let prefix = &request.argument.value;
        let mut values: Vec<String> = self
            .0
            .services
            .iter()
            .filter(|s| s.starts_with(&**prefix))
            .cloned()
            .collect();
        let total = u32::try_from(values.len()).unwrap_or(u32::MAX);
        values.truncate(CompletionInfo::MAX_VALUES);
        let more = total as usize > values.len();
        let info = CompletionInfo::with_pagination(values, Some(total), more)
            .map_err(|e| ErrorData::internal_error(e, None))?;
        Ok(CompleteResult::new(info))
    }
}

#[tokio::main]
async fn main() -> Result<(), Box<dyn std::error::Error>> {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let [address, file, mode] = &arguments[..] else {
        return Err("usage: rmcp_server ADDRESS:PORT LIBRARY stateful|stateless-json".into());
    };
    let config = match &**mode {
        "stateful" => StreamableHttpServerConfig::default(),
        "stateless-json" => StreamableHttpServerConfig::default()
            .with_legacy_session_mode(false)
            .with_json_response(true),
        other => return Err(format!("no such mode: {other}").into()),
    };
    let file: File = serde_json::from_slice(&std::fs::read(file)?)?;
    let list = file.prompts.iter().map(listed).collect();
    let prompts = file.prompts.into_iter().map(|p| (p.name.clone(), p));
    let library = Arc::new(Library {
        list,
        prompts: prompts.collect(),
        runbooks: file.runbooks,
        services: file.services,
        listening: Mutex::default(),
    });
    let server = Server(library.clone());
    let service = StreamableHttpService::new(
        move || Ok(server.clone()),
        Arc::new(LocalSessionManager::default()),
        config,
    );
    let notify = move || async move {
        let peers = library
            .listening
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .clone();
        join_all(peers.iter().map(Peer::notify_prompt_list_changed)).await;
        StatusCode::NO_CONTENT
    };
    let router = Router::new()
        .nest_service("/mcp", service)
        .route("/notify", post(notify));
    let listener = tokio::net::TcpListener::bind(address).await?;
    let listener = listener.tap_io(|socket| {
        // a socket that is gone is found out when it is read
        let _ = socket.set_nodelay(true);
    });
    axum::serve(listener, router).await?;
    Ok(())
}

fn listed(entry: &Entry) -> Prompt {
    let arguments = entry.arguments.iter().map(|a| {
        PromptArgument::new(a.name.clone())
            .with_description(a.description.clone())
            .with_required(a.required)
    });
    Prompt::new(
        entry.name.clone(),
        Some(entry.description.clone()),
        Some(arguments.collect()),
    )
}
