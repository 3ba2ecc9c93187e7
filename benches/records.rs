//! What records cost: `cargo bench --bench records`. A database on the disk of the temporary folder, WAL, synchronous full.
//!
//! Audit rows a second, one by one as a publish waits for them and many at a time; rows of use a second in the batches
//! that the writer makes; deliveries a second, the same; and what a `prompts/get` pays for being recorded, the MCP core
//! with records beside the same core without, in turns. `CUEBOOK_BENCH_CALLS` is how many calls each of these makes.
#![allow(
    missing_docs,
    clippy::expect_used,
    clippy::panic,
    clippy::print_stdout,
    clippy::disallowed_methods,
    reason = "a bench prints, reads its one variable, and has nothing to say when it cannot go on"
)]

use std::path::Path;
use std::sync::Arc;
use std::time::{Duration, Instant};

use cuebook::git::{NewFile, Repository};
use cuebook::mcp::envelope::{Incoming, Message};
use cuebook::mcp::revision::Revision;
use cuebook::mcp::{self, Answer, Caller};
use cuebook::records::{Lost, Records, Settings};
use cuebook::registry::source::Library;
use cuebook::registry::{self, Registry};
use cuebook::store::{AuditEntry, Batch, DeliveryRow, Store, UsageRow};
use tokio_util::sync::CancellationToken;

const GET: &str = r#"{"jsonrpc":"2.0","id":1,"method":"prompts/get","params":{"name":"triage","arguments":{"ticket":"INC-9942","service":"payments"}}}"#;
const PROMPT: &str = "---\ndescription: First response\narguments:\n  - { name: ticket, required: true }\n  - { name: service, values: { list: [payments, search], recent: true } }\n---\nTicket {{ ticket }} of {{ service }}.\n";

/// Calls of one turn.
const TURN: usize = 1000;

fn rate(what: &str, rows: usize, took: Duration) {
    let per_second = f64::from(u32::try_from(rows).unwrap_or(u32::MAX)) / took.as_secs_f64();
    println!("{what:<42} {rows:>8} rows in {took:>10.2?}: {per_second:>9.0} a second");
}

fn entry(n: usize) -> AuditEntry {
    AuditEntry {
        at: i64::try_from(n).unwrap_or_default(),
        actor: "local".into(),
        origin: Some("127.0.0.1".into()),
        action: "publish".into(),
        subject: Some("refs/heads/main".into()),
        old_commit: Some(format!("{n:040x}")),
        new_commit: Some(format!("{:040x}", n + 1)),
        detail: Some("author Bench <bench@localhost>".into()),
        main: Some(format!("{:040x}", n + 1)),
    }
}

async fn audit(store: &Store) {
    let alone = 300;
    let began = Instant::now();
    for n in 0..alone {
        store.append_audit(&[entry(n)]).await.expect("a row");
    }
    rate("audit, one transaction each", alone, began.elapsed());
    let (times, together) = (40, 256);
    let began = Instant::now();
    for time in 0..times {
        let entries: Vec<AuditEntry> = (0..together).map(|n| entry(time * together + n)).collect();
        store.append_audit(&entries).await.expect("rows");
    }
    rate("audit, 256 together", times * together, began.elapsed());
    let began = Instant::now();
    let wrong = store.verify_audit().await.expect("the chain");
    assert!(wrong.is_empty(), "{wrong:?}");
    rate("audit, verified", alone + times * together, began.elapsed());
}

async fn usage(store: &Store) {
    // the same keys again and again, as a day has them
    let (times, keys) = (20, 2000);
    let batch = Batch {
        usage: (0..keys)
            .map(|n| UsageRow {
                prompt: format!("prompt-{}", n % 500),
                version: 3,
                client: format!("client-{}", n / 500),
                client_version: "1.0".into(),
                day: 20_000,
                gets: 5,
                micros_sum: 1000,
                micros_max: 400,
                ..UsageRow::default()
            })
            .collect(),
        ..Batch::default()
    };
    let began = Instant::now();
    for _ in 0..times {
        store.write_records(&batch).await.expect("a batch");
    }
    rate("use, 2,000 keys a batch", times * keys, began.elapsed());
}

async fn deliveries(store: &Store) {
    for (times, together) in [(40, 500), (20, 5000)] {
        let batch = Batch {
            deliveries: (0..together)
                .map(|n| DeliveryRow {
                    at: 1_700_000_000_000 + n,
                    actor: "local".into(),
                    client: "bench".into(),
                    client_version: "1.0".into(),
                    via: "prompt".into(),
                    prompt: format!("prompt-{}", n % 500),
                    version: Some(3),
                    revision: Some(format!("{n:040x}")),
                    path: format!("prompts/sre/prompt-{}.md", n % 500),
                    sha256: format!("{n:064x}"),
                    resources_revision: None,
                    resources: "[]".into(),
                    ..DeliveryRow::default()
                })
                .collect(),
            ..Batch::default()
        };
        let began = Instant::now();
        for _ in 0..times {
            store.write_records(&batch).await.expect("a batch");
        }
        let rows = times * batch.deliveries.len();
        rate(
            &format!("deliveries, {together} a batch"),
            rows,
            began.elapsed(),
        );
    }
}

/// One call through the core; how long it took.
async fn call(service: &mcp::Service, caller: &Caller) -> Duration {
    let began = Instant::now();
    let Incoming::One(Ok(Message::Request(request))) = Incoming::parse(GET.as_bytes()) else {
        panic!("no request");
    };
    let Answer::Response(bytes) = mcp::handle(service, caller, &request).await else {
        panic!("no answer");
    };
    let took = began.elapsed();
    assert!(bytes.len() > 100, "an error");
    took
}

fn percentiles(what: &str, times: &mut [Duration]) -> Duration {
    times.sort_unstable();
    let at = |share: usize| times[(times.len() - 1) * share / 1000];
    println!(
        "{what:<42} p50 {:>9.2?}  p99 {:>9.2?}  p99.9 {:>9.2?}",
        at(500),
        at(990),
        at(999)
    );
    at(500)
}

async fn gets(folder: &Path, store: Store) {
    let calls: usize = std::env::var("CUEBOOK_BENCH_CALLS")
        .ok()
        .and_then(|calls| calls.parse().ok())
        .unwrap_or(50_000);
    let bare = folder.join("library.git");
    cuebook::git::init(&bare, true).expect("git init");
    let files = [NewFile {
        path: "prompts/sre/triage.md",
        bytes: PROMPT.as_bytes(),
    }];
    cuebook::git::import_commit(&bare, &files, "bench", 1_700_000_000).expect("a commit");
    let library = Library::find(&bare).expect("a library");
    let registry = tokio::task::spawn_blocking(move || {
        Registry::open(library, registry::Settings::default()).expect("a registry")
    });
    let registry = Arc::new(registry.await.expect("a registry"));
    let records = Arc::new(Records::new(folder, Ok(store), Settings::default()));
    let cancel = CancellationToken::new();
    let running = tokio::spawn(records.clone().run(
        registry.clone(),
        Repository::open(&bare).expect("a repository"),
        None,
        cancel.clone(),
    ));
    let without = mcp::Service::new(registry.clone(), mcp::Settings::default());
    let with =
        mcp::Service::new(registry.clone(), mcp::Settings::default()).with_records(records.clone());
    let caller = Caller {
        revision: Revision::V2025_11_25,
        client: mcp::clients::Client::new("bench", "1"),
        actor: cuebook::access::Actor::local(),
        folder: None,
        session: None,
        charged: cuebook::workers::Caller::local(),
        request_id: "bench".into(),
    };
    let (mut plain, mut recorded) = (Vec::new(), Vec::new());
    while recorded.len() < calls {
        for _ in 0..TURN {
            plain.push(call(&without, &caller).await);
        }
        for _ in 0..TURN {
            recorded.push(call(&with, &caller).await);
        }
        // no more than a busy server gets: what is lost would be cheaper
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
    let plain = percentiles("prompts/get, not recorded", &mut plain);
    let cost = percentiles("prompts/get, recorded", &mut recorded);
    println!("a get pays {:.2?} (p50)", cost.saturating_sub(plain));
    cancel.cancel();
    running.await.expect("an end");
    let Lost { usage, deliveries } = records.lost();
    println!("lost: {usage} calls, {deliveries} deliveries");
}

fn main() {
    if !std::env::args().any(|a| a == "--bench") {
        return;
    }
    let runtime = tokio::runtime::Runtime::new().expect("a runtime");
    runtime.block_on(async {
        let folder = tempfile::TempDir::new().expect("a folder");
        let store = Store::open(&folder.path().join("cuebook.db"))
            .await
            .expect("a database");
        audit(&store).await;
        usage(&store).await;
        deliveries(&store).await;
        gets(folder.path(), store).await;
    });
}
