//! What a call costs without a socket: the core alone, the whole router, and the floor (a bare axum
//! handler that reads the body and returns the same bytes).
#![allow(
    missing_docs,
    clippy::expect_used,
    clippy::panic,
    reason = "a bench that cannot go on has nothing to say"
)]

use std::sync::Arc;

use axum::Router;
use axum::body::{Body, Bytes, to_bytes};
use axum::http::Request;
use axum::routing::post;
use criterion::measurement::WallTime;
use criterion::{BenchmarkGroup, Criterion, criterion_group, criterion_main};
use cuebook::api::Api;
use cuebook::api::preview::Previews;
use cuebook::http::{App, Entrance};
use cuebook::mcp::envelope::{Incoming, Message};
use cuebook::mcp::revision::Revision;
use cuebook::mcp::{self, Answer, Caller};
use cuebook::registry::source::Library;
use cuebook::registry::{Registry, Settings};
use cuebook::router::{AppState, router};
use tokio::runtime::Runtime;
use tokio_util::sync::CancellationToken;
use tower::ServiceExt;

const GET: &str = r#"{"jsonrpc":"2.0","id":1,"method":"prompts/get","params":{"name":"incident-triage","arguments":{"ticketId":"INC-9942","service":"payments","severity":"CRITICAL"}}}"#;
const LIST: &str = r#"{"jsonrpc":"2.0","id":1,"method":"prompts/list"}"#;

fn write(root: &std::path::Path, path: &str, text: &str) {
    let path = root.join(path);
    if let Some(folder) = path.parent() {
        std::fs::create_dir_all(folder).expect("a folder");
    }
    std::fs::write(path, text).expect("a file");
}

/// Fifty prompts, one of them of 2 KB with a runbook.
fn library(root: &std::path::Path) {
    let body =
        "Look at the dashboards of {{ service }} first, then at what was deployed.\n".repeat(26);
    write(
        root,
        "prompts/sre/incident-triage.md",
        &format!(
            "---\ndescription: First response\narguments:\n  - name: ticketId\n    required: true\n  - name: service\n  - name: severity\n    default: HIGH\nresources:\n  - name: runbook\n    uri: \"runbook://{{{{ service }}}}\"\n    required: false\n---\n{{{{ severity }}}} incident {{{{ ticketId }}}}.\n{body}"
        ),
    );
    write(
        root,
        "resources/runbook/payments.md",
        "# Payments\n\nLook at the connection pool.\n",
    );
    for n in 0..49 {
        let text = format!("---\ndescription: Prompt number {n} of the bench\n---\nText.\n");
        write(root, &format!("prompts/more/p{n}.md"), &text);
    }
}

fn request(body: &str) -> Request<Body> {
    Request::post("/mcp")
        .header("host", "localhost")
        .header("content-type", "application/json")
        .header("accept", "application/json, text/event-stream")
        .header("mcp-protocol-version", "2025-11-25")
        .body(Body::from(body.to_owned()))
        .expect("a request")
}

fn calls(criterion: &mut Criterion) {
    let root = tempfile::TempDir::new().expect("a folder");
    library(root.path());
    let registry = Registry::open(
        Library::find(root.path()).expect("a library"),
        Settings::default(),
    );
    let registry = Arc::new(registry.expect("a registry"));
    let service = Arc::new(mcp::Service::new(
        registry.clone(),
        mcp::Settings::default(),
    ));
    let caller = Caller {
        revision: Revision::V2025_11_25,
        client: mcp::clients::Client::new("bench", "1"),
        actor: cuebook::access::Actor::local(),
        folder: None,
        session: None,
        charged: cuebook::workers::Caller::local(),
        request_id: "bench".into(),
    };
    let ours = router(AppState {
        registry: registry.clone(),
        mcp: service.clone(),
        git: None,
        records: None,
        webhooks: None,
        upstream: None,
        api: Api::new(registry, Previews::default()),
        access: Arc::new(cuebook::access::Access::open()),
        bearers: None,
        entrance: Arc::new(Entrance::default()),
        url: "http://localhost".into(),
        shutdown: CancellationToken::new(),
    });
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()
        .expect("a runtime");
    for (name, body) in [("prompts/get", GET), ("prompts/list", LIST)] {
        let mut group = criterion.benchmark_group(name);
        let core = || {
            runtime.block_on(async {
                let Incoming::One(Ok(Message::Request(request))) = Incoming::parse(body.as_bytes())
                else {
                    return Vec::new();
                };
                match mcp::handle(&service, &caller, &request).await {
                    Answer::Response(bytes) => bytes,
                    other => panic!("{other:?}"),
                }
            })
        };
        let same = Bytes::from(core());
        let answer = same.clone();
        let floor = Router::new().route(
            "/mcp",
            post(move |body: Bytes| async move {
                drop(body);
                answer
            }),
        );
        group.bench_function("core", |bencher| bencher.iter(core));
        through(&mut group, &runtime, "router", &ours, body, same.len());
        through(&mut group, &runtime, "floor", &floor, body, same.len());
        group.finish();
    }
}

/// Asks an app, and reads what it answers.
fn through(
    group: &mut BenchmarkGroup<'_, WallTime>,
    runtime: &Runtime,
    name: &str,
    app: &impl App,
    body: &'static str,
    length: usize,
) {
    group.bench_function(name, |bencher| {
        bencher.iter(|| {
            runtime.block_on(async {
                let reply = app.clone().oneshot(request(body)).await.expect("a reply");
                let bytes = to_bytes(reply.into_body(), usize::MAX)
                    .await
                    .expect("a body");
                assert_eq!(bytes.len(), length);
            });
        });
    });
}

criterion_group!(benches, calls);
criterion_main!(benches);
