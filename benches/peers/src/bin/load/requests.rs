//! Requests a second, and what each of them waited.

use std::io::{ErrorKind, Read, Write};
use std::net::SocketAddr;
use std::time::{Duration, Instant};

use mio::net::TcpStream;
use mio::{Events, Interest, Poll, Token};

use crate::answer;

type Failed = Box<dyn std::error::Error>;

/// How much longer or shorter an answer in chunks may be than the first: event ids count up.
const CHUNKED_SLACK: usize = 64;

struct Connection {
    socket: TcpStream,
    request: Vec<u8>,
    buffer: Vec<u8>,
    filled: usize,
    asked: Instant,
}

/// `requests`: a file of whole HTTP requests as a JSON list of texts, taken in turn by the connections. `expected`: the
/// body that was found right, byte for byte.
pub fn run(
    address: &str,
    connections: &str,
    warm: &str,
    measured: &str,
    requests: &str,
    expected: &str,
) -> Result<(), Failed> {
    let address: SocketAddr = address.parse()?;
    let connections: usize = connections.parse()?;
    let warm = Duration::from_millis(warm.parse()?);
    let measured = Duration::from_millis(measured.parse()?);
    let requests: Vec<String> = serde_json::from_slice(&std::fs::read(requests)?)?;
    let expected = std::fs::read(expected)?;

    let mut poll = Poll::new()?;
    let mut open = Vec::with_capacity(connections);
    for n in 0..connections {
        let socket = std::net::TcpStream::connect(address)?;
        socket.set_nodelay(true)?;
        socket.set_nonblocking(true)?;
        let mut socket = TcpStream::from_std(socket);
        poll.registry()
            .register(&mut socket, Token(n), Interest::READABLE)?;
        open.push(Connection {
            socket,
            request: requests[n % requests.len()].clone().into_bytes(),
            buffer: vec![0; expected.len() + 65_536],
            filled: 0,
            asked: Instant::now(),
        });
    }
    let mut waits: Vec<u32> = Vec::with_capacity(1 << 20);
    for connection in &mut open {
        ask(connection)?;
    }
    let begun = Instant::now() + warm;
    let end = begun + measured;
    let (mut idle, mut first_cpu) = (true, cpu_ns());
    let mut events = Events::with_capacity(1024);
    let (mut waiting, mut last) = (open.len(), begun);
    // what is on its way at the end is waited for: a session must not meet its answer later
    while waiting > 0 {
        poll.poll(&mut events, Some(Duration::from_secs(20)))?;
        if events.is_empty() {
            return Err("no answer for 20 s".into());
        }
        for event in &events {
            let connection = &mut open[event.token().0];
            if !filled(connection, &expected)? {
                continue;
            }
            let now = Instant::now();
            if now >= end {
                waiting -= 1;
                continue;
            }
            if now >= begun {
                if idle {
                    (idle, first_cpu) = (false, cpu_ns());
                }
                let wait = now - connection.asked;
                waits.push(u32::try_from(wait.as_nanos()).unwrap_or(u32::MAX));
                last = now;
            }
            ask(connection)?;
        }
    }
    let seconds = (last - begun).as_secs_f64();
    let cpu = (cpu_ns() - first_cpu) as f64 / 1e9;
    waits.sort_unstable();
    let at = |share: f64| {
        let place = (waits.len() as f64 * share) as usize;
        waits
            .get(place.min(waits.len().saturating_sub(1)))
            .map_or(0.0, |ns| f64::from(*ns) / 1e3)
    };
    println!(
        "{}",
        serde_json::json!({
            "requests": waits.len(),
            "seconds": seconds,
            "per_second": waits.len() as f64 / seconds,
            "p50_us": at(0.5),
            "p99_us": at(0.99),
            "max_us": at(1.0),
            "generator_busy": cpu / seconds,
            "bytes": expected.len(),
        })
    );
    Ok(())
}

fn ask(connection: &mut Connection) -> Result<(), Failed> {
    connection.filled = 0;
    connection.asked = Instant::now();
    // a request is small, and the socket is empty
    let written = connection.socket.write(&connection.request)?;
    if written == connection.request.len() {
        Ok(())
    } else {
        Err("a request was not taken whole".into())
    }
}

/// Reads what is there; whether it is the whole answer, and the right one.
fn filled(connection: &mut Connection, expected: &[u8]) -> Result<bool, Failed> {
    loop {
        if connection.filled == connection.buffer.len() {
            return Err("an answer is far longer than expected".into());
        }
        match connection
            .socket
            .read(&mut connection.buffer[connection.filled..])
        {
            Ok(0) => return Err("the server hung up".into()),
            Ok(count) => connection.filled += count,
            Err(error) if error.kind() == ErrorKind::WouldBlock => return Ok(false),
            Err(error) if error.kind() == ErrorKind::Interrupted => continue,
            Err(error) => return Err(error.into()),
        }
        let buffer = &connection.buffer[..connection.filled];
        let Some(answer) = answer::whole(buffer)? else {
            continue;
        };
        let body = &buffer[answer.body];
        let right = answer.status == 200
            && if answer.chunked {
                body.len().abs_diff(expected.len()) <= CHUNKED_SLACK
            } else {
                body == expected
            };
        if right {
            return Ok(true);
        }
        let text = String::from_utf8_lossy(&buffer[..buffer.len().min(600)]);
        return Err(format!("another answer than was checked: {text}").into());
    }
}

/// Nanoseconds this thread was on a processor.
fn cpu_ns() -> u64 {
    let text = std::fs::read_to_string("/proc/thread-self/schedstat").unwrap_or_default();
    text.split(' ')
        .next()
        .and_then(|n| n.parse().ok())
        .unwrap_or_default()
}
