//! Open streams: each connection makes a session, says it is initialized, and listens.
//!
//! Commands on stdin, an answer for each on stdout:
//! `open COUNT AT_ONCE SECONDS` listens with so many; `stuck PREFIX COUNT` opens one that takes next to nothing into its
//! window and is never read, and subscribes it to so many resources `PREFIX0…`; `arm` begins to count; `wait MS` answers when all who
//! listen have been told since; `close` ends all.

use std::io::{BufRead, ErrorKind, Read, Write};
use std::net::SocketAddr;
use std::sync::mpsc::{Receiver, TryRecvError, channel};
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

use memchr::memmem::Finder;
use mio::net::TcpStream;
use mio::{Events, Interest, Poll, Token, Waker};
use serde_json::{Value, json};

use crate::answer;

type Failed = Box<dyn std::error::Error>;

const WAKE: Token = Token(usize::MAX);
const INITIALIZE: &str = r#"{"jsonrpc":"2.0","id":0,"method":"initialize","params":{"protocolVersion":"2025-11-25","capabilities":{},"clientInfo":{"name":"load","version":"1"}}}"#;
const INITIALIZED: &str = r#"{"jsonrpc":"2.0","method":"notifications/initialized"}"#;

#[derive(PartialEq, Clone, Copy)]
enum State {
    Initialize,
    Initialized,
    Head,
    Open,
    Gone,
}

struct Stream {
    socket: TcpStream,
    state: State,
    /// What was read of an answer, while the stream is being opened.
    buffer: Vec<u8>,
    session: Option<String>,
    told: bool,
}

struct Streams {
    address: SocketAddr,
    poll: Poll,
    commands: Receiver<String>,
    streams: Vec<Stream>,
    opening: usize,
    open: usize,
    told: usize,
    notices: usize,
    first: u128,
    last: u128,
    failed: usize,
    why: String,
    stuck: Vec<std::net::TcpStream>,
    scratch: Vec<u8>,
    notice: Finder<'static>,
}

pub fn run(address: &str) -> Result<(), Failed> {
    let poll = Poll::new()?;
    let waker = Waker::new(poll.registry(), WAKE)?;
    let (send, commands) = channel();
    std::thread::spawn(move || {
        for line in std::io::stdin().lock().lines().map_while(Result::ok) {
            if send.send(line).is_err() || waker.wake().is_err() {
                return;
            }
        }
        drop(send);
        let _ = waker.wake();
    });
    Streams {
        address: address.parse()?,
        poll,
        commands,
        streams: Vec::new(),
        opening: 0,
        open: 0,
        told: 0,
        notices: 0,
        first: 0,
        last: 0,
        failed: 0,
        why: String::new(),
        stuck: Vec::new(),
        scratch: vec![0; 65_536],
        notice: Finder::new("prompts/list_changed"),
    }
    .serve()
}

impl Streams {
    fn serve(mut self) -> Result<(), Failed> {
        loop {
            let command = match self.commands.try_recv() {
                Ok(command) => command,
                Err(TryRecvError::Disconnected) => return Ok(()),
                Err(TryRecvError::Empty) => {
                    self.turn(Duration::from_secs(1))?;
                    continue;
                }
            };
            let words: Vec<&str> = command.split_whitespace().collect();
            let answer = match words[..] {
                ["open", count, at_once, seconds] => {
                    self.open(count.parse()?, at_once.parse()?, seconds.parse()?)?
                }
                ["stuck", prefix, count] => self.open_stuck(prefix, count.parse()?)?,
                ["arm"] => {
                    (self.told, self.notices, self.first, self.last) = (0, 0, 0, 0);
                    for stream in &mut self.streams {
                        stream.told = false;
                    }
                    json!({"open": self.open})
                }
                ["wait", ms] => self.wait(Duration::from_millis(ms.parse()?))?,
                ["close"] => return Ok(()),
                _ => return Err(format!("no such command: {command}").into()),
            };
            println!("{answer}");
        }
    }

    fn open(&mut self, count: usize, at_once: usize, seconds: f64) -> Result<Value, Failed> {
        let begun = Instant::now();
        let end = begun + Duration::from_secs_f64(seconds);
        (self.failed, self.why) = (0, String::new());
        while self.open < count && Instant::now() < end && self.failed <= 100 {
            while self.opening < at_once && self.open + self.opening < count {
                self.begin()?;
            }
            self.turn(Duration::from_millis(100))?;
        }
        // those that are halfway are left alone: they listen a little later, or not at all
        Ok(json!({
            "open": self.open,
            "asked": count,
            "seconds": begun.elapsed().as_secs_f64(),
            "failed": self.failed,
            "why": self.why,
        }))
    }

    fn begin(&mut self) -> Result<(), Failed> {
        let mut socket = TcpStream::connect(self.address)?;
        let token = Token(self.streams.len());
        self.poll.registry().register(
            &mut socket,
            token,
            Interest::READABLE | Interest::WRITABLE,
        )?;
        self.streams.push(Stream {
            socket,
            state: State::Initialize,
            buffer: Vec::new(),
            session: None,
            told: false,
        });
        self.opening += 1;
        Ok(())
    }

    fn wait(&mut self, most: Duration) -> Result<Value, Failed> {
        let end = Instant::now() + most;
        while self.told < self.open {
            let left = end.saturating_duration_since(Instant::now());
            if left.is_zero() {
                break;
            }
            self.turn(left)?;
        }
        Ok(json!({
            "told": self.told,
            "open": self.open,
            "notices": self.notices,
            "first_ns": self.first.to_string(),
            "last_ns": self.last.to_string(),
        }))
    }

    /// Waits for sockets once, and does what they ask for.
    fn turn(&mut self, most: Duration) -> Result<(), Failed> {
        let mut events = Events::with_capacity(4096);
        match self.poll.poll(&mut events, Some(most)) {
            Err(error) if error.kind() == ErrorKind::Interrupted => return Ok(()),
            other => other?,
        }
        for event in &events {
            let token = event.token();
            if token == WAKE {
                continue;
            }
            let number = token.0;
            if event.is_writable()
                && self.streams[number].state == State::Initialize
                && self.streams[number].buffer.is_empty()
            {
                // a second writable event while waiting would ask twice: the buffer marks that it was asked
                self.streams[number].buffer.push(0);
                self.send(number, post(self.address, INITIALIZE, None));
            }
            if event.is_readable() {
                self.read(number);
            }
        }
        Ok(())
    }

    fn send(&mut self, number: usize, request: String) {
        match self.streams[number].socket.write(request.as_bytes()) {
            Ok(count) if count == request.len() => {}
            Ok(_) => self.gone(number, "a request was not taken whole".into()),
            Err(error) => self.gone(number, error.to_string()),
        }
    }

    fn gone(&mut self, number: usize, why: String) {
        let stream = &mut self.streams[number];
        match stream.state {
            State::Gone => return,
            State::Open => self.open -= 1,
            _ => self.opening -= 1,
        }
        stream.state = State::Gone;
        let _ = self.poll.registry().deregister(&mut stream.socket);
        let _ = stream.socket.shutdown(std::net::Shutdown::Both);
        self.failed += 1;
        self.why = why;
    }

    fn read(&mut self, number: usize) {
        loop {
            let stream = &mut self.streams[number];
            if stream.state == State::Gone {
                return;
            }
            let count = match stream.socket.read(&mut self.scratch) {
                Ok(0) => return self.gone(number, "the server hung up".into()),
                Ok(count) => count,
                Err(error) if error.kind() == ErrorKind::WouldBlock => return,
                Err(error) if error.kind() == ErrorKind::Interrupted => continue,
                Err(error) => return self.gone(number, error.to_string()),
            };
            if stream.state == State::Open {
                let notices = self.notice.find_iter(&self.scratch[..count]).count();
                if notices > 0 {
                    self.notices += notices;
                    if !stream.told {
                        stream.told = true;
                        self.told += 1;
                        self.last = now();
                        if self.first == 0 {
                            self.first = self.last;
                        }
                    }
                }
                if count < self.scratch.len() {
                    return;
                }
                continue;
            }
            stream.buffer.extend_from_slice(&self.scratch[..count]);
            if let Err(why) = self.step(number) {
                return self.gone(number, why);
            }
        }
    }

    /// What an answer that is now whole leads to.
    fn step(&mut self, number: usize) -> Result<(), String> {
        let stream = &mut self.streams[number];
        // the first byte only says that it was asked
        let buffer = &stream.buffer[1..];
        let Some(head) = answer::head(buffer)? else {
            return Ok(());
        };
        let refused = |expected: u16| {
            let text = String::from_utf8_lossy(&buffer[..buffer.len().min(400)]);
            if head.status == expected {
                Ok(())
            } else {
                Err(format!("refused: {text}"))
            }
        };
        match stream.state {
            State::Initialize if answer::whole(buffer)?.is_some() => {
                refused(200)?;
                let session = head.session.map(str::to_owned);
                let next = post(self.address, INITIALIZED, session.as_deref());
                stream.session = session;
                stream.state = State::Initialized;
                stream.buffer.truncate(1);
                self.send(number, next);
            }
            State::Initialized if answer::whole(buffer)?.is_some() => {
                refused(202)?;
                let next = listen(self.address, stream.session.as_deref());
                stream.state = State::Head;
                stream.buffer.truncate(1);
                self.send(number, next);
            }
            State::Head => {
                refused(200)?;
                stream.state = State::Open;
                stream.buffer = Vec::new();
                stream.session = None;
                self.opening -= 1;
                self.open += 1;
            }
            _ => {}
        }
        Ok(())
    }

    /// One that does not read, on a connection whose buffers are as small as they get.
    fn open_stuck(&mut self, prefix: &str, count: usize) -> Result<Value, Failed> {
        // the session is made on another connection: what that one carries would widen this one's buffers
        let mut other = std::net::TcpStream::connect(self.address)?;
        other.set_nodelay(true)?;
        other.set_read_timeout(Some(Duration::from_secs(20)))?;
        let (_, session) = exchange(&mut other, &post(self.address, INITIALIZE, None))?;
        let session = session.as_deref();
        let _ = exchange(&mut other, &post(self.address, INITIALIZED, session))?;
        for n in 0..count {
            let body = json!({"jsonrpc": "2.0", "id": n, "method": "resources/subscribe", "params": {"uri": format!("{prefix}{n}")}});
            let (status, _) =
                exchange(&mut other, &post(self.address, &body.to_string(), session))?;
            if status != 200 {
                return Err(format!("a subscription was answered with {status}").into());
            }
        }
        let socket = socket2::Socket::new(socket2::Domain::IPV4, socket2::Type::STREAM, None)?;
        socket.set_recv_buffer_size(2048)?;
        socket.set_tcp_mss(536)?;
        socket.connect(&self.address.into())?;
        let mut socket: std::net::TcpStream = socket.into();
        socket.set_read_timeout(Some(Duration::from_secs(20)))?;
        socket.write_all(listen(self.address, session).as_bytes())?;
        let mut buffer = Vec::new();
        while answer::head(&buffer)?.is_none() {
            let mut byte = [0];
            socket.read_exact(&mut byte)?;
            buffer.push(byte[0]);
        }
        let port = socket.local_addr()?.port();
        self.stuck.push(socket);
        Ok(json!({"port": port}))
    }
}

/// A request and its whole answer: status and session.
fn exchange(
    socket: &mut std::net::TcpStream,
    request: &str,
) -> Result<(u16, Option<String>), Failed> {
    socket.write_all(request.as_bytes())?;
    let mut buffer = Vec::new();
    let mut part = [0; 4096];
    loop {
        let count = socket.read(&mut part)?;
        if count == 0 {
            return Err("the server hung up".into());
        }
        buffer.extend_from_slice(&part[..count]);
        if let Some(answer) = answer::whole(&buffer)? {
            let session = answer::head(&buffer)?.and_then(|h| h.session.map(str::to_owned));
            return Ok((answer.status, session));
        }
    }
}

fn headers(host: SocketAddr, session: Option<&str>) -> String {
    let session = session
        .map(|s| format!("Mcp-Session-Id: {s}\r\n"))
        .unwrap_or_default();
    format!("Host: {host}\r\nMCP-Protocol-Version: 2025-11-25\r\n{session}")
}

fn post(host: SocketAddr, body: &str, session: Option<&str>) -> String {
    let headers = headers(host, session);
    let length = body.len();
    format!(
        "POST /mcp HTTP/1.1\r\n{headers}Content-Type: application/json\r\nAccept: application/json, text/event-stream\r\nContent-Length: {length}\r\n\r\n{body}"
    )
}

fn listen(host: SocketAddr, session: Option<&str>) -> String {
    format!(
        "GET /mcp HTTP/1.1\r\n{}Accept: text/event-stream\r\n\r\n",
        headers(host, session)
    )
}

fn now() -> u128 {
    SystemTime::now()
        .duration_since(UNIX_EPOCH)
        .map_or(0, |d| d.as_nanos())
}
