//! `cuebook serve` as a process of its own.

use std::io::{BufRead as _, BufReader};
use std::net::SocketAddr;
use std::process::{Child, Command, Stdio};
use std::sync::{Arc, Mutex};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use serde_json::{Value, json};

use super::http::{head, raw};

/// A server in a process of its own; it is killed when this is dropped.
pub(crate) struct Server {
    child: Child,
    pub(crate) address: SocketAddr,
    /// What it said at its start.
    pub(crate) greeting: String,
    pub(crate) started: Instant,
    log: Arc<Mutex<String>>,
    reading: Option<JoinHandle<()>>,
}

impl Server {
    #[track_caller]
    pub(crate) fn start(mut command: Command) -> Self {
        let started = Instant::now();
        let mut child = command
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .unwrap();
        let log = Arc::new(Mutex::new(String::new()));
        let mut stderr = BufReader::new(child.stderr.take().unwrap());
        let reading = std::thread::spawn({
            let log = log.clone();
            move || {
                let mut line = Vec::new();
                while stderr.read_until(b'\n', &mut line).is_ok_and(|n| n > 0) {
                    log.lock()
                        .unwrap()
                        .push_str(&String::from_utf8_lossy(&line));
                    line.clear();
                }
            }
        });
        let mut lines = BufReader::new(child.stdout.take().unwrap()).lines();
        let mut greeting = String::new();
        while !greeting.contains("stop ") {
            let Some(line) = lines.next() else {
                reading.join().unwrap();
                panic!("it ended: {greeting}{}", log.lock().unwrap());
            };
            greeting.push_str(&line.unwrap());
            greeting.push('\n');
        }
        let address = greeting
            .split_once("://")
            .and_then(|(_, rest)| rest.split('/').next())
            .and_then(|address| address.parse().ok())
            .unwrap_or_else(|| panic!("no address in {greeting}"));
        Self {
            child,
            address,
            greeting,
            started,
            log,
            reading: Some(reading),
        }
    }

    /// Its process id.
    pub(crate) fn id(&self) -> u32 {
        self.child.id()
    }

    /// What it has logged so far.
    pub(crate) fn log(&self) -> String {
        self.log.lock().unwrap().clone()
    }

    /// A field of `/proc/<pid>/status` in KiB, e.g. `VmHWM`.
    pub(crate) fn memory_kib(&self, field: &str) -> u64 {
        let status = std::fs::read_to_string(format!("/proc/{}/status", self.id())).unwrap();
        let line = status.lines().find(|line| line.starts_with(field)).unwrap();
        line.split_whitespace().nth(1).unwrap().parse().unwrap()
    }

    /// Processor time that it has used.
    pub(crate) fn processor_time(&self) -> Duration {
        let stat = std::fs::read_to_string(format!("/proc/{}/stat", self.id())).unwrap();
        let fields: Vec<&str> = stat.rsplit(") ").next().unwrap().split(' ').collect();
        let ticks: u64 = fields[11].parse::<u64>().unwrap() + fields[12].parse::<u64>().unwrap();
        Duration::from_millis(ticks * 10)
    }

    /// Calls a method as a client that keeps no session.
    pub(crate) async fn call(&self, method: &str, params: Value) -> Value {
        let body =
            json!({ "jsonrpc": "2.0", "id": 1, "method": method, "params": params }).to_string();
        let headers = [
            ("Connection", "close"),
            ("Content-Type", "application/json"),
            ("Accept", "application/json, text/event-stream"),
            ("MCP-Protocol-Version", "2025-06-18"),
        ];
        let mut request = head("POST", "/mcp", &headers, Some(body.len()));
        request.push_str(&body);
        raw(self.address, request.as_bytes()).await.json()
    }

    pub(crate) async fn names(&self) -> Vec<String> {
        let reply = self.call("prompts/list", json!({})).await;
        reply["result"]["prompts"]
            .as_array()
            .unwrap_or_else(|| panic!("{reply}"))
            .iter()
            .map(|p| p["name"].as_str().unwrap().to_owned())
            .collect()
    }

    /// The first text of a prompt without arguments.
    pub(crate) async fn text(&self, name: &str) -> String {
        let reply = self.call("prompts/get", json!({ "name": name })).await;
        let text = &reply["result"]["messages"][0]["content"]["text"];
        text.as_str()
            .unwrap_or_else(|| panic!("{reply}"))
            .to_owned()
    }

    /// Sends a signal.
    pub(crate) fn signal(&self, signal: &str) {
        let status = Command::new("kill")
            .args([signal, &self.id().to_string()])
            .status()
            .unwrap();
        assert!(status.success());
    }

    /// Waits for the end: the exit code, and what it logged.
    pub(crate) fn ended(mut self) -> (Option<i32>, String) {
        let started = Instant::now();
        let code = loop {
            if let Some(status) = self.child.try_wait().unwrap() {
                break status.code();
            }
            assert!(
                started.elapsed() < Duration::from_secs(30),
                "it does not end: {}",
                self.log()
            );
            std::thread::sleep(Duration::from_millis(10));
        };
        self.reading.take().unwrap().join().unwrap();
        (code, self.log())
    }

    /// Sends a signal and waits for the end: the exit code, and what it logged.
    pub(crate) fn end(self, signal: &str) -> (Option<i32>, String) {
        self.signal(signal);
        self.ended()
    }

    /// Kills it, as a power cut does.
    pub(crate) fn kill(mut self) {
        self.child.kill().unwrap();
        self.child.wait().unwrap();
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}
