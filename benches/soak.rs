//! Attackers beside honest clients: `cargo bench --bench soak` (or `just soak`). Ends with an error when the honest p99
//! with the attack is more than five times that without, in the same run.
//!
//! A server with honest prompts and all hostile ones that get past the gate by sleeping until an argument wakes them;
//! 16 honest clients; four attackers that loop over all hostile templates, two by `prompts/get`, two by previews from
//! addresses of their own. `CUEBOOK_SOAK_SECONDS` is how long the attack lasts.
#![allow(
    missing_docs,
    clippy::expect_used,
    clippy::panic,
    clippy::print_stdout,
    clippy::disallowed_methods,
    reason = "a bench prints, reads its one variable, and has nothing to say when it cannot go on"
)]

use std::net::{IpAddr, Ipv4Addr};
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::{Duration, Instant};

use cuebook::config::Config;
use cuebook::server::{Serve, start};
use serde_json::{Value, json};

const HONEST: usize = 16;
const FACTOR: u32 = 5;

fn write(root: &Path, path: &str, text: &str) {
    let path = root.join(path);
    std::fs::create_dir_all(path.parent().expect("a folder")).expect("a folder");
    std::fs::write(path, text).expect("a file");
}

/// Names and texts of the hostile templates, of one file each.
fn hostile() -> Vec<(String, String)> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/fixtures/hostile");
    let mut out = Vec::new();
    for entry in std::fs::read_dir(folder).expect("the fixture") {
        let path = entry.expect("an entry").path();
        let name = path
            .file_stem()
            .expect("a name")
            .to_string_lossy()
            .into_owned();
        let text = std::fs::read_to_string(&path).expect("a text");
        if let Some(body) = text
            .strip_prefix("=== main\n")
            .filter(|b| !b.contains("\n=== "))
        {
            out.push((name, body.to_owned()));
        }
    }
    out.sort();
    out
}

fn front(body: &str) -> String {
    let words: Vec<&str> = body
        .split(|c: char| !c.is_ascii_alphanumeric() && c != '_')
        .collect();
    let mut front = String::from("---\ndescription: D\narguments:\n");
    for name in ["big", "text", "name", "items", "users", "mode"] {
        if words.contains(&name) {
            front.push_str(&format!("  - name: {name}\n"));
        }
    }
    format!("{front}---\n{body}")
}

fn asleep(body: &str) -> String {
    front(&format!(
        "{{% if mode == \"attack\" %}}{body}{{% endif %}}calm"
    ))
}

fn library(root: &Path) {
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
    for (name, body) in hostile() {
        write(root, &format!("prompts/hostile/{name}.md"), &asleep(&body));
    }
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

fn attack(
    url: &str,
    stop: &Arc<AtomicBool>,
    count: &Arc<AtomicU64>,
) -> Vec<tokio::task::JoinHandle<()>> {
    let big = "x".repeat(10_000);
    (0..4u8)
        .map(|attacker| {
            let (url, stop, count, big) =
                (url.to_owned(), stop.clone(), count.clone(), big.clone());
            tokio::spawn(async move {
                let own = IpAddr::V4(Ipv4Addr::new(127, 0, 0, 2 + attacker));
                let http = reqwest::Client::builder()
                    .local_address(own)
                    .build()
                    .expect("a client");
                let all = hostile();
                for (name, body) in all.iter().cycle().skip(usize::from(attacker) * 17) {
                    if stop.load(Ordering::Relaxed) {
                        return;
                    }
                    let mut arguments = json!({ "mode": "attack" });
                    for (argument, value) in [
                        ("big", big.as_str()),
                        ("text", "{{ x }}"),
                        ("name", "Ada"),
                        ("items", "a,b"),
                        ("users", "u"),
                    ] {
                        arguments[argument] = json!(value);
                    }
                    if attacker % 2 == 0 {
                        get(&http, &url, name, arguments).await;
                    } else {
                        let ask =
                            json!({ "name": "x", "text": front(body), "arguments": arguments });
                        let _ = http
                            .post(format!("{url}/api/v1/preview"))
                            .header("content-type", "application/json")
                            .body(ask.to_string())
                            .send()
                            .await;
                    }
                    count.fetch_add(1, Ordering::Relaxed);
                }
            })
        })
        .collect()
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
        library(folder.path());
        let mut config = Config::load(None, &|_| None, &[("listen", "127.0.0.1:0".into())]).expect("settings");
        config.rendering.executable = env!("CARGO_BIN_EXE_cuebook").into();
        let running = start(Serve::Watch(folder.path().to_owned()), &config).await.expect("a server");
        let served = running.registry.snapshot().catalog.list(None).len();
        println!("{served} prompts are served, of them {} hostile", served - 51);
        honest(&running.url, Duration::from_secs(3)).await;
        let memory = resident_mb();
        let (mut fast, mut looped) = honest(&running.url, Duration::from_secs(30)).await;
        let quiet = shown("fast, quiet", &mut fast);
        shown("worker, quiet", &mut looped);
        let mut all: Vec<Duration> = fast.iter().chain(&looped).copied().collect();
        let quiet_all = shown("all, quiet", &mut all);
        let (stop, count) = (Arc::new(AtomicBool::new(false)), Arc::new(AtomicU64::new(0)));
        let attackers = attack(&running.url, &stop, &count);
        let (mut fast, mut looped) = honest(&running.url, Duration::from_secs(seconds)).await;
        stop.store(true, Ordering::Relaxed);
        for one in attackers {
            one.await.expect("an attacker");
        }
        let attacked = shown("fast, attacked", &mut fast);
        shown("worker, attacked", &mut looped);
        let mut all: Vec<Duration> = fast.iter().chain(&looped).copied().collect();
        let attacked_all = shown("all, attacked", &mut all);
        println!(
            "{} attacks in {seconds} s; memory of server and clients {memory} MB before, {} MB after",
            count.load(Ordering::Relaxed),
            resident_mb()
        );
        println!(
            "p99 with attack is {:.1} times that without (fast lane alone: {:.1})",
            attacked_all.as_secs_f64() / quiet_all.as_secs_f64(),
            attacked.as_secs_f64() / quiet.as_secs_f64()
        );
        running.stop().await;
        assert!(attacked_all <= quiet_all * FACTOR, "more than {FACTOR} times");
    });
}
