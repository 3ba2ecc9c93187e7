//! rmcp's client as a witness: it shares no code with our transport.

use std::process::Stdio;

use rmcp::model::{
    GetPromptRequestParams, ProtocolVersion, ServerNotification, SubscriptionFilter,
};
use rmcp::service::{NotificationContext, RunningService};
use rmcp::transport::{StreamableHttpClientTransport, TokioChildProcess};
use rmcp::{ClientHandler, ClientLifecycleMode, ClientServiceExt, RoleClient};
use tokio::process::Command;
use tokio::sync::mpsc;

use crate::support::library::TestLibrary;
use crate::support::server::TestServer;
use crate::support::soon;

/// A client that passes on that the list has changed.
#[derive(Clone)]
struct Witness(mpsc::UnboundedSender<()>);

impl ClientHandler for Witness {
    async fn on_prompt_list_changed(&self, _context: NotificationContext<RoleClient>) {
        let _ = self.0.send(());
    }
}

type Running = RunningService<RoleClient, Witness>;

fn modern() -> ClientLifecycleMode {
    ClientLifecycleMode::Discover {
        preferred_versions: vec![ProtocolVersion::V_2026_07_28],
    }
}

async fn over_http(
    server: &TestServer,
    lifecycle: ClientLifecycleMode,
) -> (Running, mpsc::UnboundedReceiver<()>) {
    // Nothing here is encrypted, but the HTTP client wants to know by what it would be.
    let _ = rustls::crypto::ring::default_provider().install_default();
    let (sender, receiver) = mpsc::unbounded_channel();
    let transport =
        StreamableHttpClientTransport::from_uri(format!("http://{}/mcp", server.address));
    let running = Witness(sender).serve_with_lifecycle(transport, lifecycle);
    (soon("a client over HTTP", running).await.unwrap(), receiver)
}

async fn over_stdio(
    library: &TestLibrary,
    lifecycle: ClientLifecycleMode,
) -> (Running, mpsc::UnboundedReceiver<()>) {
    let (sender, receiver) = mpsc::unbounded_channel();
    let mut command = Command::new(env!("CARGO_BIN_EXE_cuebook"));
    command.args(["stdio", "--library"]).arg(library.bare());
    let (transport, _) = TokioChildProcess::builder(command)
        .stderr(Stdio::null())
        .spawn()
        .unwrap();
    let running = Witness(sender).serve_with_lifecycle(transport, lifecycle);
    (
        soon("a client over stdio", running).await.unwrap(),
        receiver,
    )
}

/// Lists, gets, completes, reads.
async fn looks_around(client: &Running) {
    let prompts = client.list_all_prompts().await.unwrap();
    assert_eq!(prompts.len(), 7);
    let triage = prompts
        .iter()
        .find(|prompt| prompt.name == "incident-triage")
        .unwrap();
    assert_eq!(triage.title.as_deref(), Some("장애 초동 조치"));
    assert_eq!(triage.arguments.as_ref().unwrap()[0].required, Some(true));

    let arguments = serde_json::json!({ "ticketId": "INC-1", "service": "payments" });
    let params = GetPromptRequestParams::new("incident-triage")
        .with_arguments(arguments.as_object().unwrap().clone());
    let got = client.get_prompt(params).await.unwrap();
    assert_eq!(got.messages.len(), 3);
    assert!(got.messages[1].content.as_resource().is_some());

    let values = client
        .complete_prompt_simple("incident-triage", "service", "pay")
        .await
        .unwrap();
    assert_eq!(values, ["payments"]);
    assert_eq!(client.list_all_resources().await.unwrap().len(), 4);
    assert_eq!(client.list_all_resource_templates().await.unwrap().len(), 1);
    assert_eq!(client.list_all_tools().await.unwrap().len(), 3);
    let error = client
        .get_prompt(GetPromptRequestParams::new("incident-traige"))
        .await
        .unwrap_err();
    assert!(error.to_string().contains("did you mean"), "{error}");
}

const NEW: (&str, &str) = ("prompts/new.md", "---\ndescription: New\n---\nNew.\n");

async fn hears_of_a_push(
    library: &TestLibrary,
    client: &Running,
    told: &mut mpsc::UnboundedReceiver<()>,
) {
    library.publish(&[NEW]);
    soon("list_changed", told.recv()).await.unwrap();
    assert_eq!(client.list_all_prompts().await.unwrap().len(), 8);
}

async fn hears_of_a_push_by_listening(library: &TestLibrary, client: &Running) {
    let filter = SubscriptionFilter::builder().prompts_list_changed().build();
    let mut subscription = soon("a subscription", client.listen(filter)).await.unwrap();
    library.publish(&[NEW]);
    let notice = soon("list_changed", subscription.next())
        .await
        .unwrap()
        .unwrap();
    assert!(
        matches!(notice, ServerNotification::PromptListChangedNotification(_)),
        "{notice:?}"
    );
    assert_eq!(client.list_all_prompts().await.unwrap().len(), 8);
    subscription.cancel().await.unwrap();
}

#[tokio::test]
async fn legacy_over_http() {
    let library = TestLibrary::small();
    let server = TestServer::start(&library).await;
    server.watch();
    let (client, mut told) = over_http(&server, ClientLifecycleMode::Initialize).await;
    looks_around(&client).await;
    hears_of_a_push(&library, &client, &mut told).await;
    client.cancel().await.unwrap();
}

#[tokio::test]
async fn modern_over_http() {
    let library = TestLibrary::small();
    let server = TestServer::start(&library).await;
    server.watch();
    let (client, _told) = over_http(&server, modern()).await;
    looks_around(&client).await;
    hears_of_a_push_by_listening(&library, &client).await;
    client.cancel().await.unwrap();
}

#[tokio::test]
async fn legacy_over_stdio() {
    let library = TestLibrary::small();
    let (client, mut told) = over_stdio(&library, ClientLifecycleMode::Initialize).await;
    looks_around(&client).await;
    hears_of_a_push(&library, &client, &mut told).await;
    client.cancel().await.unwrap();
}

#[tokio::test]
async fn modern_over_stdio() {
    let library = TestLibrary::small();
    let (client, _told) = over_stdio(&library, modern()).await;
    looks_around(&client).await;
    hears_of_a_push_by_listening(&library, &client).await;
    client.cancel().await.unwrap();
}
