//! The load generator: fixed bytes over kept sockets, one thread, no parsing beyond where an answer ends.
//!
//! `load requests ADDRESS:PORT CONNECTIONS WARM_MS MS REQUESTS EXPECTED` measures; `load streams ADDRESS:PORT` opens and
//! watches streams as it is told on stdin. Both write JSON to stdout, a line each.

#[path = "load/answer.rs"]
mod answer;
#[path = "load/requests.rs"]
mod requests;
#[path = "load/streams.rs"]
mod streams;

use std::process::ExitCode;

fn main() -> ExitCode {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let words: Vec<&str> = arguments.iter().map(String::as_str).collect();
    let done = match words[..] {
        ["requests", address, connections, warm, measured, requests, expected] => {
            requests::run(address, connections, warm, measured, requests, expected)
        }
        ["streams", address] => streams::run(address),
        _ => Err("usage: load requests ADDRESS CONNECTIONS WARM_MS MS REQUESTS EXPECTED | load streams ADDRESS".into()),
    };
    match done {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("load: {error}");
            ExitCode::FAILURE
        }
    }
}
