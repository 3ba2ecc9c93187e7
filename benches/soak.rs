//! Attackers beside honest clients: `cargo bench --bench soak` (or `just soak`). Ends with an error when the honest p99
//! with the attack is more than five times that without, in the same run.
//!
//! A data directory with honest prompts and all hostile ones that get past the gate by sleeping until an argument wakes
//! them; 16 honest clients; six attackers from addresses of their own that loop over all hostile templates, bundles of
//! several files and large ones included: two by `prompts/get`, two by previews, one that calls the honest looping
//! prompt with arguments that cost as much as a render may, and one that pushes. `CUEBOOK_SOAK_SECONDS` is how long the
//! attack lasts.
#![allow(
    missing_docs,
    clippy::expect_used,
    clippy::unwrap_used,
    clippy::panic,
    clippy::print_stdout,
    clippy::disallowed_methods,
    reason = "a bench prints, reads its one variable, and has nothing to say when it cannot go on"
)]

#[allow(dead_code, reason = "what becomes of each is the tests' business")]
#[path = "../tests/it/hostile/templates.rs"]
mod templates;

use std::collections::BTreeMap;
use std::net::{IpAddr, Ipv4Addr};
use std::path::Path;
use std::process::Command;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::{Duration, Instant};

use cuebook::catalog::{MemoryTree, Revision};
use cuebook::config::Config;
use cuebook::prompt::Limits;
use cuebook::registry::check;
use cuebook::server::{Serve, start};
use cuebook::workers::{Renderer, Settings};
use serde_json::{Value, json};

use templates::Case;

const HONEST: usize = 16;
const FACTOR: u32 = 5;

fn write(root: &Path, path: &str, text: &str) {
    let path = root.join(path);
    std::fs::create_dir_all(path.parent().expect("a folder")).expect("a folder");
    std::fs::write(path, text).expect("a file");
}

/// The hostile templates: those of the fixture, the large ones, and more of their kind.
fn hostile() -> Vec<Case> {
    let mut all = templates::fixture();
    all.extend(templates::large());
    all.extend(templates::siblings());
    all
}

fn git(at: &Path, arguments: &[&str]) -> bool {
    let output = Command::new("git")
        .args(["-c", "user.name=Soak", "-c", "user.email=soak@example.com"])
        .args(arguments)
        .current_dir(at)
        .env("GIT_CONFIG_GLOBAL", "/dev/null")
        .env("GIT_CONFIG_NOSYSTEM", "1")
        .env("GIT_TERMINAL_PROMPT", "0")
        .output();
    output.expect("git").status.success()
}

/// Writes the library; how many hostile prompts are in it: those that pass the check while they sleep.
fn library(root: &Path) -> usize {
    for i in 0..50 {
        let line = "Look at the dashboards of {{ service }} first, then at what was deployed.\n";
        let text = format!(
            "---\ndescription: Number {i}\narguments:\n  - name: service\n---\n{}",
            line.repeat(10)
        );
        write(root, &format!("prompts/honest/h{i}.md"), &text);
    }
    write(
        root,
        "prompts/honest/looped.md",
        "---\ndescription: A loop\narguments:\n  - name: service\n---\n{% for s in service | split(pat=\",\") %}- {{ s }}\n{% endfor %}",
    );
    let renderer = Renderer::new(Settings {
        executable: env!("CARGO_BIN_EXE_cuebook").into(),
        ..Settings::default()
    });
    let mut asleep = 0;
    for case in hostile() {
        let files = case.asleep().files();
        let tree = files
            .iter()
            .fold(MemoryTree::default(), |tree, (path, text)| {
                tree.with(path, text.clone())
            });
        let limits = Limits::default();
        let built = check(&tree, Revision::WorkTree, &limits, None, &renderer).expect("a check");
        if built.is_clean() {
            asleep += 1;
            for (path, text) in &files {
                write(root, path, text);
            }
        }
    }
    asleep
}

async fn get(client: &reqwest::Client, url: &str, name: &str, arguments: Value) -> Value {
    let params = json!({ "name": name, "arguments": arguments, "_meta": {
        "io.modelcontextprotocol/protocolVersion": "2026-07-28",
        "io.modelcontextprotocol/clientInfo": { "name": "soak", "version": "1" },
        "io.modelcontextprotocol/clientCapabilities": {},
    } });
    let body = json!({ "jsonrpc": "2.0", "id": 1, "method": "prompts/get", "params": params });
    let reply = client
        .post(format!("{url}/mcp"))
        .header("content-type", "application/json")
        .header("accept", "application/json, text/event-stream")
        .header("mcp-protocol-version", "2026-07-28")
        .header("mcp-method", "prompts/get")
        .header("mcp-name", name)
        .body(body.to_string())
        .send()
        .await
        .expect("a reply");
    serde_json::from_slice(&reply.bytes().await.expect("a body")).unwrap_or_default()
}

/// Honest clients for a while: the latencies of fast prompts and of the looped one.
async fn honest(url: &str, time: Duration) -> (Vec<Duration>, Vec<Duration>) {
    let mut running = Vec::new();
    for client in 0..HONEST {
        let url = url.to_owned();
        running.push(tokio::spawn(async move {
            let http = reqwest::Client::new();
            let (mut fast, mut looped) = (Vec::new(), Vec::new());
            let end = Instant::now() + time;
            let mut n = client;
            while Instant::now() < end {
                n += 1;
                let is_looped = n % 10 == 0;
                let name = if is_looped {
                    "looped".to_owned()
                } else {
                    format!("h{}", n % 50)
                };
                let began = Instant::now();
                let got = get(&http, &url, &name, json!({ "service": "payments,search" })).await;
                let took = began.elapsed();
                assert!(got["result"].is_object(), "an honest request failed: {got}");
                if is_looped {
                    looped.push(took);
                } else {
                    fast.push(took);
                }
                tokio::time::sleep(Duration::from_millis(10)).await;
            }
            (fast, looped)
        }));
    }
    let (mut fast, mut looped) = (Vec::new(), Vec::new());
    for one in running {
        let (a, b) = one.await.expect("a client");
        fast.extend(a);
        looped.extend(b);
    }
    (fast, looped)
}

/// The ways in which an attacker comes.
const KINDS: [&str; 6] = [
    "get",
    "preview",
    "get",
    "preview",
    "costly arguments",
    "push",
];

fn attack(
    url: &str,
    work: &Path,
    stop: &Arc<AtomicBool>,
    counts: &Arc<[AtomicU64; KINDS.len()]>,
) -> Vec<tokio::task::JoinHandle<()>> {
    let mut out = Vec::new();
    for (attacker, kind) in KINDS.into_iter().enumerate() {
        let (url, work) = (url.to_owned(), work.to_owned());
        let (stop, counts) = (stop.clone(), counts.clone());
        out.push(tokio::spawn(async move {
            let own = [127, 0, 0, 2 + u8::try_from(attacker).expect("a few")];
            let http = reqwest::Client::builder()
                .local_address(IpAddr::V4(Ipv4Addr::from(own)))
                .build()
                .expect("a client");
            let big = "x".repeat(10_000);
            let commas = "a,".repeat(500_000);
            let all = hostile();
            for case in all.iter().cycle().skip(attacker * 17) {
                if stop.load(Ordering::Relaxed) {
                    return;
                }
                let mut arguments = json!({ "mode": "attack", "big": big });
                for (name, value) in templates::ARGUMENTS {
                    if !matches!(*name, "mode" | "big") {
                        arguments[*name] = json!(value);
                    }
                }
                match kind {
                    "get" => {
                        get(&http, &url, &case.name, arguments).await;
                    }
                    "costly arguments" => {
                        get(&http, &url, "looped", json!({ "service": commas })).await;
                    }
                    "preview" => {
                        let files: BTreeMap<String, &String> = case
                            .partials
                            .iter()
                            .map(|(name, text)| (format!("partials/{name}"), text))
                            .collect();
                        let ask = json!({ "name": "x", "text": case.prompt(), "arguments": arguments, "files": files });
                        let _ = http
                            .post(format!("{url}/api/v1/preview"))
                            .header("content-type", "application/json")
                            .body(ask.to_string())
                            .send()
                            .await;
                    }
                    _ => {
                        let (case, work) = (case.clone(), work.clone());
                        let pushing = tokio::task::spawn_blocking(move || push(&work, &case));
                        pushing.await.expect("a push");
                    }
                }
                counts[attacker].fetch_add(1, Ordering::Relaxed);
            }
        }));
    }
    out
}

/// Commits a hostile template that is awake, ten times over, and pushes it.
fn push(work: &Path, case: &Case) {
    for (path, text) in case.files() {
        write(work, &path, &text);
    }
    for n in 0..10 {
        let path = format!("prompts/hostile/{}-{n}.md", case.name);
        write(work, &path, &case.prompt());
    }
    git(work, &["add", "--all"]);
    git(work, &["commit", "--quiet", "--message", "attack"]);
    git(work, &["push", "--quiet", "origin", "HEAD:main"]);
    git(work, &["fetch", "--quiet", "origin"]);
    git(work, &["reset", "--quiet", "--hard", "origin/main"]);
}

fn shown(name: &str, times: &mut [Duration]) -> Duration {
    times.sort();
    let at = |thousandth: usize| times[(times.len() - 1) * thousandth / 1000];
    let ms = |time: Duration| time.as_secs_f64() * 1e3;
    println!(
        "{name:<28} {:>8} requests  p50 {:>7.2} ms  p99 {:>7.2} ms  max {:>8.2} ms",
        times.len(),
        ms(at(500)),
        ms(at(990)),
        ms(at(1000))
    );
    at(990)
}

fn resident_mb() -> u64 {
    let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    let line = status
        .lines()
        .find(|l| l.starts_with("VmRSS:"))
        .unwrap_or_default();
    line.split_whitespace()
        .nth(1)
        .and_then(|n| n.parse::<u64>().ok())
        .unwrap_or_default()
        / 1024
}

fn main() {
    if !std::env::args().any(|a| a == "--bench") {
        return;
    }
    // the client wants one, though it speaks no TLS here; it is installed once
    let _ = rustls::crypto::ring::default_provider().install_default();
    let seconds = std::env::var("CUEBOOK_SOAK_SECONDS")
        .ok()
        .and_then(|s| s.parse().ok())
        .unwrap_or(120);
    let runtime = tokio::runtime::Runtime::new().expect("a runtime");
    runtime.block_on(async {
        let folder = tempfile::TempDir::new().expect("a folder");
        let work = folder.path().join("work");
        let asleep = library(&work);
        let mut config =
            Config::load(None, &|_| None, &[("listen", "127.0.0.1:0".into())]).expect("settings");
        config.program = env!("CARGO_BIN_EXE_cuebook").into();
        let serve = Serve::DataDir {
            path: folder.path().join("data"),
            starter: None,
        };
        let running = start(serve, &config).await.expect("a server");
        let remote = format!("{}/library.git", running.url);
        let pushed = tokio::task::spawn_blocking({
            let work = work.clone();
            move || {
                [
                    &["init", "--quiet", "--initial-branch=main"][..],
                    &["add", "--all"],
                    &["commit", "--quiet", "--message", "the library"],
                    &["remote", "add", "origin", &remote],
                    &["push", "--quiet", "origin", "HEAD:main"],
                ]
                .iter()
                .all(|arguments| git(&work, arguments))
            }
        });
        assert!(pushed.await.expect("git"), "the library was not published");
        let served = running.registry.snapshot().catalog.list(None).len();
        println!("{served} prompts are served, of them {asleep} hostile");
        honest(&running.url, Duration::from_secs(3)).await;
        let memory = resident_mb();
        let (mut fast, mut looped) = honest(&running.url, Duration::from_secs(30)).await;
        let quiet = shown("fast, quiet", &mut fast);
        shown("worker, quiet", &mut looped);
        let mut all: Vec<Duration> = fast.iter().chain(&looped).copied().collect();
        let quiet_all = shown("all, quiet", &mut all);
        let stop = Arc::new(AtomicBool::new(false));
        let counts: Arc<[AtomicU64; KINDS.len()]> = Arc::default();
        let attackers = attack(&running.url, &work, &stop, &counts);
        let (mut fast, mut looped) = honest(&running.url, Duration::from_secs(seconds)).await;
        stop.store(true, Ordering::Relaxed);
        for one in attackers {
            one.await.expect("an attacker");
        }
        let attacked = shown("fast, attacked", &mut fast);
        shown("worker, attacked", &mut looped);
        let mut all: Vec<Duration> = fast.iter().chain(&looped).copied().collect();
        let attacked_all = shown("all, attacked", &mut all);
        for (kind, count) in KINDS.iter().zip(counts.iter()) {
            println!("attacks by {kind}: {}", count.load(Ordering::Relaxed));
        }
        println!(
            "in {seconds} s; memory of server and clients {memory} MB before, {} MB after",
            resident_mb()
        );
        println!(
            "p99 with attack is {:.1} times that without (fast lane alone: {:.1})",
            attacked_all.as_secs_f64() / quiet_all.as_secs_f64(),
            attacked.as_secs_f64() / quiet.as_secs_f64()
        );
        running.stop().await;
        assert!(
            attacked_all <= quiet_all * FACTOR,
            "more than {FACTOR} times"
        );
    });
}
