//! From "the ref has moved" to "the last listener was told", over real sockets, and what a request waits meanwhile.
//!
//! `cargo bench --bench telling`: the server is a process of its own (both ends of 10,000 sockets are more file
//! descriptors than one may have); 1,000 and 10,000 open streams, one of which is never read. Ten publishes each; median
//! and worst. Meanwhile one connection asks `prompts/get` without a pause.
#![allow(
    missing_docs,
    clippy::expect_used,
    clippy::panic,
    clippy::print_stdout,
    clippy::disallowed_methods,
    reason = "a bench prints, and one that cannot go on has nothing to say"
)]

use std::fmt::Write as _;
use std::io::{BufRead, BufReader, Write as _};
use std::net::SocketAddr;
use std::path::Path;
use std::process::{Command, Stdio};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::time::{Duration, Instant};

use cuebook::api::Api;
use cuebook::api::preview::Previews;
use cuebook::git::init;
use cuebook::http::{Entrance, Limits, serve};
use cuebook::mcp;
use cuebook::registry::source::Library;
use cuebook::registry::{Registry, Settings};
use cuebook::router::{AppState, router};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::Notify;
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;

const PUBLISHES: usize = 10;
const SERVER: &str = "CUEBOOK_BENCH_SERVER";
const LISTEN: &[u8] = b"GET /mcp HTTP/1.1\r\nHost: localhost\r\nAccept: text/event-stream\r\nMCP-Protocol-Version: 2025-03-26\r\n\r\n";
const GET: &str = r#"{"jsonrpc":"2.0","id":1,"method":"prompts/get","params":{"name":"triage"}}"#;

fn main() {
    if let Ok(path) = std::env::var(SERVER) {
        runtime().block_on(server(Path::new(&path)));
        return;
    }
    println!(
        "{:>8}  {:>24}  {:>24}  {:>24}",
        "streams", "told, all (median, worst)", "get, at rest", "get, while telling"
    );
    for streams in [1_000, 10_000] {
        let folder = tempfile::tempdir().expect("a folder");
        let path = folder.path().join("library.git");
        init(&path, true).expect("git init");
        let commits = history(&path);
        runtime().block_on(measure(&path, streams, &commits));
    }
}

fn runtime() -> tokio::runtime::Runtime {
    tokio::runtime::Builder::new_multi_thread()
        .enable_all()
        .build()
        .expect("a runtime")
}

/// Commits that change one prompt, oldest first, each as a ref's file says it.
fn history(path: &Path) -> Vec<String> {
    let mut stream = String::new();
    for n in 0..=PUBLISHES {
        let text = format!("---\ndescription: First response\n---\nLook at the dashboard, {n}.\n");
        let _ = write!(
            stream,
            "commit refs/heads/main\ncommitter B <b@localhost> {} +0000\ndata 1\nx\nM 100644 inline prompts/sre/triage.md\ndata {}\n{text}\n",
            1_700_000_000 + n,
            text.len()
        );
    }
    let git = |arguments: &[&str]| {
        let mut command = Command::new("git");
        command.args(arguments).current_dir(path);
        command.stdin(Stdio::piped()).stdout(Stdio::piped());
        command.spawn().expect("git")
    };
    let mut child = git(&["fast-import", "--quiet"]);
    let mut stdin = child.stdin.take().expect("stdin");
    stdin.write_all(stream.as_bytes()).expect("a pipe");
    drop(stdin);
    assert!(child.wait().expect("git").success());
    let output = git(&["rev-list", "--reverse", "main"]).wait_with_output();
    let text = String::from_utf8(output.expect("git").stdout).expect("text");
    text.lines().map(|id| format!("{id}\n")).collect()
}

fn move_main(path: &Path, commit: &str) {
    let next = path.join("refs/heads/main.next");
    std::fs::write(&next, commit).expect("a ref");
    std::fs::rename(next, path.join("refs/heads/main")).expect("a ref");
}

/// Serves a library; refreshes on every line it reads.
async fn server(path: &Path) {
    let library = Library::find(path).expect("a library");
    let registry = Arc::new(Registry::open(library, Settings::default()).expect("a registry"));
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
        for line in std::io::stdin().lines() {
            line.expect("a line");
            registry.refresh().expect("a refresh");
        }
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

/// How many have heard, in all.
#[derive(Default)]
struct Heard {
    count: AtomicUsize,
    wanted: AtomicUsize,
    all: Notify,
}

async fn measure(path: &Path, streams: usize, commits: &[String]) {
    move_main(path, &commits[0]);
    let mut child = Command::new(std::env::current_exe().expect("this program"))
        .env(SERVER, path)
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .expect("the server");
    let mut line = String::new();
    BufReader::new(child.stdout.take().expect("stdout"))
        .read_line(&mut line)
        .expect("its address");
    let address: SocketAddr = line.trim().parse().expect("an address");
    let mut stdin = child.stdin.take().expect("stdin");

    let heard = Arc::new(Heard::default());
    let mut stuck = TcpStream::connect(address).await.expect("a connection");
    stuck.write_all(LISTEN).await.expect("a request");
    for _ in 1..streams {
        listen(address, heard.clone()).await;
    }
    let rest = ask(address, Arc::new(AtomicBool::new(false)), 2_000)
        .join()
        .expect("the asking");
    let mut told = Vec::new();
    let mut waits = Vec::new();
    for commit in &commits[1..] {
        let stop = Arc::new(AtomicBool::new(false));
        let asking = ask(address, stop.clone(), usize::MAX);
        tokio::time::sleep(Duration::from_millis(50)).await;
        let wanted = heard.wanted.fetch_add(streams - 1, Ordering::SeqCst) + streams - 1;
        let all = heard.all.notified();
        move_main(path, commit);
        let started = Instant::now();
        stdin.write_all(b"\n").expect("a pipe");
        stdin.flush().expect("a pipe");
        if heard.count.load(Ordering::SeqCst) < wanted {
            tokio::time::timeout(Duration::from_mins(1), all)
                .await
                .expect("everybody hears");
        }
        told.push(started.elapsed());
        stop.store(true, Ordering::SeqCst);
        waits.extend(asking.join().expect("the asking"));
        tokio::time::sleep(Duration::from_millis(200)).await;
        assert_eq!(heard.count.load(Ordering::SeqCst), wanted, "told once each");
    }
    println!(
        "{streams:>8}  {:>24}  {:>24}  {:>24}",
        shown(told),
        shown(rest),
        shown(waits)
    );
    drop(stdin);
    child.wait().expect("the server");
}

fn shown(mut times: Vec<Duration>) -> String {
    times.sort();
    let ms = |d: Duration| d.as_secs_f64() * 1e3;
    format!(
        "{:.2} ms, {:.2} ms",
        ms(times[times.len() / 2]),
        ms(times[times.len() - 1])
    )
}

/// Opens a stream and counts what it hears.
async fn listen(address: SocketAddr, heard: Arc<Heard>) {
    let mut stream = TcpStream::connect(address).await.expect("a connection");
    stream.write_all(LISTEN).await.expect("a request");
    let mut buffer = [0; 512];
    // the first comment says that the stream is open
    let mut begun = Vec::new();
    while !begun.ends_with(b":\n\n\r\n") {
        let count = stream.read(&mut buffer).await.expect("the beginning");
        assert!(count > 0, "no stream");
        begun.extend_from_slice(&buffer[..count]);
    }
    tokio::spawn(async move {
        let mut buffer = [0; 512];
        loop {
            match stream.read(&mut buffer).await {
                Ok(count) if count > 0 => {
                    let text = String::from_utf8_lossy(&buffer[..count]);
                    let notices = text.matches("list_changed").count();
                    let now = heard.count.fetch_add(notices, Ordering::SeqCst) + notices;
                    if notices > 0 && now == heard.wanted.load(Ordering::SeqCst) {
                        heard.all.notify_one();
                    }
                }
                _ => return,
            }
        }
    });
}

/// Asks for a prompt again and again on one connection, on a thread of its own: the readers of this process are not to be
/// waited for. How long each took.
fn ask(
    address: SocketAddr,
    stop: Arc<AtomicBool>,
    most: usize,
) -> std::thread::JoinHandle<Vec<Duration>> {
    let request = format!(
        "POST /mcp HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\nAccept: application/json, text/event-stream\r\nMCP-Protocol-Version: 2025-03-26\r\nContent-Length: {}\r\n\r\n{GET}",
        GET.len()
    );
    std::thread::spawn(move || {
        let mut stream = std::net::TcpStream::connect(address).expect("a connection");
        stream.set_nodelay(true).expect("a socket");
        let mut out = Vec::new();
        let mut buffer = vec![0; 16_384];
        while out.len() < most && !stop.load(Ordering::SeqCst) {
            let started = Instant::now();
            stream.write_all(request.as_bytes()).expect("a request");
            let mut reply = Vec::new();
            while !reply.ends_with(b"}}") {
                let count = std::io::Read::read(&mut stream, &mut buffer).expect("a reply");
                assert!(count > 0, "no reply");
                reply.extend_from_slice(&buffer[..count]);
            }
            out.push(started.elapsed());
            // one client, not a load: what it costs the server is what it waits for, not the other way round
            std::thread::sleep(Duration::from_micros(500));
        }
        out
    })
}
