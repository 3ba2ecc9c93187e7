//! Completion over 100, 10,000 and 1,000,000 values, beside a linear scan and a prefix search in SQLite; then over the
//! wire, beside `ping` on the same connection.
//!
//! `cargo bench --bench completion`: first what an index costs, then each kind of query, then the wire, where the server
//! is a process of its own. The scan looks for prefixes alone, and so does SQLite (a covering index over folded values,
//! one prepared statement, the database in memory): neither knows words, jamo, initial consonants or typing errors.
#![allow(
    missing_docs,
    clippy::expect_used,
    clippy::panic,
    clippy::print_stdout,
    clippy::cast_precision_loss,
    clippy::disallowed_methods,
    reason = "a bench prints, and one that cannot go on has nothing to say"
)]

use std::fmt::Write as _;
use std::hint::black_box;
use std::io::{BufRead, BufReader};
use std::net::SocketAddr;
use std::path::Path;
use std::process::{Command, Stdio};
use std::sync::Arc;
use std::time::{Duration, Instant};

use criterion::{BenchmarkId, Criterion};
use cuebook::api::Api;
use cuebook::api::preview::Previews;
use cuebook::catalog::complete::{Rows, ValueIndex, Values, complete};
use cuebook::catalog::text::fold_query;
use cuebook::catalog::values::parse;
use cuebook::http::{Entrance, Limits, serve};
use cuebook::mcp;
use cuebook::prompt::source::Source;
use cuebook::registry::source::Library;
use cuebook::registry::{Registry, Settings};
use cuebook::router::{AppState, router};
use sqlx::sqlite::SqlitePoolOptions;
use sqlx::{Row, SqlitePool};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;

const SIZES: [usize; 3] = [100, 10_000, 1_000_000];
const SERVER: &str = "CUEBOOK_BENCH_SERVER";
const ROUNDS: usize = 10_000;

/// What is typed, by what it shows.
const QUERIES: [(&str, &str); 9] = [
    ("empty", ""),
    ("short", "p"),
    ("long", "payment-kr-01"),
    ("word", "kr-00"),
    ("Korean", "결제"),
    ("syllable", "서우"),
    ("initials", "ㄱㅈ"),
    ("fuzzy", "paymnet-kr-01"),
    ("no match", "zqxvw"),
];

fn main() {
    if let Ok(path) = std::env::var(SERVER) {
        runtime().block_on(server(Path::new(&path)));
        return;
    }
    let mut criterion = Criterion::default()
        .sample_size(20)
        .warm_up_time(Duration::from_millis(300))
        .measurement_time(Duration::from_secs(1))
        .configure_from_args();
    for size in SIZES {
        in_process(&mut criterion, size);
    }
    criterion.final_summary();
    println!(
        "\n{:>9}  {:<10} {:>10} {:>10} {:>22}",
        "values", "asked", "p50", "p99", "p99 beyond ping's"
    );
    for size in SIZES {
        wire(size);
    }
}

fn runtime() -> tokio::runtime::Runtime {
    tokio::runtime::Builder::new_multi_thread()
        .enable_all()
        .build()
        .expect("a runtime")
}

/// A values file of services in three scripts, no value twice, at most 16 bytes a line.
fn values(size: usize) -> String {
    let names = ["pay", "payment", "search", "결제", "서울", "정산", "決済"];
    let regions = ["kr", "us", "eu"];
    (0..size).fold(String::new(), |mut text, n| {
        // in no order, as people write
        let n = n * 7_919 % size;
        let (name, region) = (names[n % 7], regions[n / 7 % 3]);
        let _ = writeln!(text, "{name}-{region}-{:05}", n / 7);
        text
    })
}

fn rows(text: &str) -> Rows {
    let mut problems = Vec::new();
    let rows = parse(Source::new(&"values/x.txt".into(), text), &mut problems);
    assert!(problems.is_empty());
    rows
}

fn in_process(criterion: &mut Criterion, size: usize) {
    let text = values(size);
    let before = resident();
    let started = Instant::now();
    let rows = rows(&text);
    let read = started.elapsed();
    let index = ValueIndex::new(rows);
    index.wait();
    println!(
        "{size} values, a file of {:.1} MB: read in {:.1?}, indexed after {:.1?}; {:.1} MB, the process {:.1} MB more",
        text.len() as f64 / 1e6,
        read,
        started.elapsed(),
        index.memory() as f64 / 1e6,
        resident().saturating_sub(before) as f64 / 1e6,
    );
    let folded: Vec<(String, &str)> = text.lines().map(|v| (fold_query(v), v)).collect();
    let runtime = runtime();
    let sqlite = runtime.block_on(database(&folded));
    for (name, typed) in QUERIES {
        let mut group = criterion.benchmark_group(format!("{name}/{size}"));
        let sources = [Values::Indexed(&index)];
        let found = complete(&sources, typed, None);
        println!("{name}: {:?} finds {}", typed, found.total);
        group.bench_function(BenchmarkId::from_parameter("cuebook"), |bencher| {
            bencher.iter(|| complete(&sources, black_box(typed), None));
        });
        group.bench_function(BenchmarkId::from_parameter("scan"), |bencher| {
            bencher.iter(|| scan(&folded, black_box(typed)));
        });
        group.bench_function(BenchmarkId::from_parameter("sqlite"), |bencher| {
            bencher.iter(|| runtime.block_on(search(&sqlite, black_box(typed))));
        });
        group.finish();
    }
    runtime.block_on(sqlite.close());
}

/// What a server does that has a list.
fn scan(folded: &[(String, &str)], typed: &str) -> (Vec<String>, usize) {
    let typed = fold_query(typed);
    let mut best = Vec::new();
    let mut total = 0;
    for (key, value) in folded {
        if key.starts_with(&typed) {
            total += 1;
            if best.len() < 100 {
                best.push((*value).to_owned());
            }
        }
    }
    (best, total)
}

async fn database(folded: &[(String, &str)]) -> SqlitePool {
    let pool = SqlitePoolOptions::new()
        .max_connections(1)
        .idle_timeout(None)
        .max_lifetime(None)
        .connect("sqlite::memory:")
        .await
        .expect("a database");
    let run = async |sql: &'static str| {
        sqlx::query(sql).execute(&pool).await.expect(sql);
    };
    run(
        "CREATE TABLE entry (place INTEGER PRIMARY KEY, folded TEXT NOT NULL, value TEXT NOT NULL)",
    )
    .await;
    for chunk in folded.chunks(50_000) {
        let json = serde_json::to_string(chunk).expect("json");
        sqlx::query(
            "INSERT INTO entry (folded, value) SELECT value ->> 0, value ->> 1 FROM json_each($1)",
        )
        .bind(json)
        .execute(&pool)
        .await
        .expect("rows");
    }
    run("CREATE INDEX entry_folded ON entry (folded, place, value)").await;
    run("ANALYZE").await;
    pool
}

async fn search(pool: &SqlitePool, typed: &str) -> Vec<String> {
    let from = fold_query(typed);
    let to = format!("{from}\u{10FFFF}");
    sqlx::query(
        "SELECT value FROM entry WHERE folded >= $1 AND folded < $2 ORDER BY place LIMIT 100",
    )
    .bind(from)
    .bind(to)
    .fetch_all(pool)
    .await
    .expect("rows")
    .iter()
    .map(|row| row.get(0))
    .collect()
}

/// Memory of this process that is in RAM, in bytes (Linux; 0 elsewhere).
fn resident() -> u64 {
    std::fs::read_to_string("/proc/self/statm")
        .ok()
        .and_then(|text| text.split_whitespace().nth(1)?.parse::<u64>().ok())
        .map_or(0, |pages| pages * 4096)
}

fn wire(size: usize) {
    let folder = tempfile::tempdir().expect("a folder");
    let write = |path: &str, text: &str| {
        let path = folder.path().join(path);
        std::fs::create_dir_all(path.parent().expect("a folder")).expect("a folder");
        std::fs::write(path, text).expect("a file");
    };
    write("values/services.txt", &values(size));
    write(
        "prompts/triage.md",
        "---\ndescription: First response\narguments:\n  - name: service\n    values: { file: services.txt }\n---\nLook at {{ service }}.\n",
    );
    let mut child = Command::new(std::env::current_exe().expect("this program"))
        .env(SERVER, folder.path())
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .expect("a server");
    let mut line = String::new();
    BufReader::new(child.stdout.take().expect("stdout"))
        .read_line(&mut line)
        .expect("an address");
    let address: SocketAddr = line.trim().parse().expect("an address");
    runtime().block_on(ask(address, size));
    // its input ends, so it does
    drop(child.stdin.take());
    child.wait().expect("an end");
}

/// Serves a library until its input ends.
async fn server(path: &Path) {
    let library = Library::find(path).expect("a library");
    let registry = Arc::new(Registry::open(library, Settings::default()).expect("a registry"));
    assert!(registry.snapshot().catalog.is_clean());
    registry.snapshot().catalog.wait_for_values();
    let settings = mcp::Settings::default();
    let service = Arc::new(mcp::Service::new(registry.clone(), settings));
    let listener = TcpListener::bind("127.0.0.1:0").await.expect("a port");
    println!("{}", listener.local_addr().expect("an address"));
    let shutdown = CancellationToken::new();
    let router = router(AppState {
        registry: registry.clone(),
        mcp: service,
        api: Api::new(registry.clone(), Previews::default()),
        git: None,
        records: None,
        upstream: None,
        access: Arc::new(cuebook::access::Access::open()),
        entrance: Arc::new(Entrance::default()),
        url: "http://localhost".into(),
        shutdown: shutdown.clone(),
    });
    tokio::task::spawn_blocking(move || {
        std::io::stdin().lines().for_each(drop);
        std::process::exit(0);
    });
    serve(
        listener,
        router,
        &Limits::default(),
        shutdown,
        &TaskTracker::new(),
    )
    .await;
}

async fn ask(address: SocketAddr, size: usize) {
    let mut stream = TcpStream::connect(address).await.expect("a connection");
    stream.set_nodelay(true).expect("an option");
    let mut asked = vec![(
        "ping",
        request(r#"{"jsonrpc":"2.0","id":1,"method":"ping"}"#),
    )];
    for (name, typed) in QUERIES {
        let params = serde_json::json!({
            "ref": { "type": "ref/prompt", "name": "triage" },
            "argument": { "name": "service", "value": typed },
        });
        let body = serde_json::json!({ "jsonrpc": "2.0", "id": 1, "method": "completion/complete", "params": params });
        asked.push((name, request(&body.to_string())));
    }
    let mut times: Vec<Vec<Duration>> = vec![Vec::with_capacity(ROUNDS); asked.len()];
    let mut buffer = vec![0; 64 * 1024];
    // in turn, so that whatever the machine does meanwhile happens to all
    for round in 0..ROUNDS {
        for ((_, request), times) in asked.iter().zip(&mut times) {
            let started = Instant::now();
            stream.write_all(request).await.expect("a request");
            let answer = read(&mut stream, &mut buffer).await;
            let time = started.elapsed();
            assert!(answer.contains("\"result\""), "{answer}");
            if round >= ROUNDS / 20 {
                times.push(time);
            }
        }
    }
    let mut ping = Duration::ZERO;
    for ((name, _), mut times) in asked.into_iter().zip(times) {
        times.sort_unstable();
        let (p50, p99) = (times[times.len() / 2], times[times.len() * 99 / 100]);
        if name == "ping" {
            ping = p99;
        }
        println!(
            "{size:>9}  {name:<10} {p50:>10.1?} {p99:>10.1?} {:>19.3} ms",
            (p99.as_secs_f64() - ping.as_secs_f64()) * 1e3
        );
    }
}

fn request(body: &str) -> Vec<u8> {
    format!(
        "POST /mcp HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\nAccept: application/json, text/event-stream\r\n\
         MCP-Protocol-Version: 2025-11-25\r\nContent-Length: {}\r\n\r\n{body}",
        body.len()
    )
    .into_bytes()
}

/// Reads an answer whole.
async fn read<'b>(stream: &mut TcpStream, buffer: &'b mut [u8]) -> &'b str {
    let mut have = 0;
    loop {
        let n = stream.read(&mut buffer[have..]).await.expect("an answer");
        assert!(n > 0, "the server hung up");
        have += n;
        let Some(end) = buffer[..have].windows(4).position(|w| w == b"\r\n\r\n") else {
            continue;
        };
        let head = std::str::from_utf8(&buffer[..end]).expect("a head");
        let length: usize = head
            .lines()
            .find_map(|line| {
                let (name, value) = line.split_once(':')?;
                name.eq_ignore_ascii_case("content-length")
                    .then(|| value.trim().parse().ok())?
            })
            .expect("a length");
        if have >= end + 4 + length {
            return std::str::from_utf8(&buffer[end + 4..have]).expect("text");
        }
    }
}
