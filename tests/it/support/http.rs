//! HTTP as bytes: a test decides every header, and sees every byte that comes back.

use std::net::SocketAddr;

use serde_json::Value;
use tokio::io::{AsyncBufReadExt, AsyncReadExt, AsyncWriteExt, BufReader};
use tokio::net::TcpStream;

use super::soon;

/// A whole response.
#[derive(Debug, Clone)]
pub(crate) struct Reply {
    pub(crate) status: u16,
    pub(crate) headers: Vec<(String, String)>,
    pub(crate) body: Vec<u8>,
}

impl Reply {
    pub(crate) fn header(&self, name: &str) -> Option<&str> {
        self.headers
            .iter()
            .find(|(n, _)| n.eq_ignore_ascii_case(name))
            .map(|(_, value)| value.as_str())
    }

    pub(crate) fn text(&self) -> &str {
        std::str::from_utf8(&self.body).unwrap()
    }

    #[track_caller]
    pub(crate) fn json(&self) -> Value {
        serde_json::from_slice(&self.body)
            .unwrap_or_else(|e| panic!("{e}: {:?}", String::from_utf8_lossy(&self.body)))
    }
}

/// The headers of a request as text, `Host` included unless a test sets it itself.
pub(crate) fn head(
    method: &str,
    path: &str,
    headers: &[(&str, &str)],
    length: Option<usize>,
) -> String {
    let mut head = format!("{method} {path} HTTP/1.1\r\n");
    if !headers
        .iter()
        .any(|(name, _)| name.eq_ignore_ascii_case("host"))
    {
        head.push_str("Host: localhost\r\n");
    }
    for (name, value) in headers {
        // A header without a value is one that must not be sent.
        if !value.is_empty() {
            head.push_str(&format!("{name}: {value}\r\n"));
        }
    }
    if let Some(length) = length {
        head.push_str(&format!("Content-Length: {length}\r\n"));
    }
    head.push_str("\r\n");
    head
}

/// One request on a connection of its own.
pub(crate) async fn send(
    address: SocketAddr,
    method: &str,
    path: &str,
    headers: &[(&str, &str)],
    body: &[u8],
) -> Reply {
    let mut all = vec![("Connection", "close")];
    all.extend_from_slice(headers);
    let length = (method == "POST" || !body.is_empty()).then_some(body.len());
    let mut bytes = head(method, path, &all, length).into_bytes();
    bytes.extend_from_slice(body);
    raw(address, &bytes).await
}

/// Bytes as they are, and what comes back.
pub(crate) async fn raw(address: SocketAddr, bytes: &[u8]) -> Reply {
    soon("a response", async {
        let stream = TcpStream::connect(address).await.unwrap();
        let (read, mut write) = stream.into_split();
        let mut reader = BufReader::new(read);
        // A server may answer before it has read everything.
        let (_, reply) = tokio::join!(write.write_all(bytes), read_reply(&mut reader));
        reply
    })
    .await
}

/// One request with a JSON body on a stream of any kind.
pub(crate) async fn on(
    stream: tokio::net::UnixStream,
    method: &str,
    path: &str,
    body: &[u8],
) -> Reply {
    let headers = [
        ("Connection", "close"),
        ("Content-Type", "application/json"),
    ];
    let mut bytes = head(method, path, &headers, Some(body.len())).into_bytes();
    bytes.extend_from_slice(body);
    soon("a response", async {
        let (read, mut write) = stream.into_split();
        write.write_all(&bytes).await.unwrap();
        read_reply(&mut BufReader::new(read)).await
    })
    .await
}

/// A connection that is kept open for many requests.
pub(crate) struct Connection {
    reader: BufReader<tokio::net::tcp::OwnedReadHalf>,
    writer: tokio::net::tcp::OwnedWriteHalf,
}

impl Connection {
    pub(crate) async fn open(address: SocketAddr) -> Self {
        let (read, writer) = TcpStream::connect(address).await.unwrap().into_split();
        Self {
            reader: BufReader::new(read),
            writer,
        }
    }

    pub(crate) async fn send(
        &mut self,
        method: &str,
        path: &str,
        headers: &[(&str, &str)],
        body: &[u8],
    ) -> Reply {
        let mut bytes = head(method, path, headers, Some(body.len())).into_bytes();
        bytes.extend_from_slice(body);
        self.writer.write_all(&bytes).await.unwrap();
        soon("a response", read_reply(&mut self.reader)).await
    }
}

async fn read_head(reader: &mut (impl AsyncBufReadExt + Unpin)) -> Reply {
    let mut line = String::new();
    reader.read_line(&mut line).await.unwrap();
    let status = line
        .split(' ')
        .nth(1)
        .unwrap_or_else(|| panic!("no status in {line:?}"))
        .parse()
        .unwrap();
    let mut headers = Vec::new();
    loop {
        let mut line = String::new();
        reader.read_line(&mut line).await.unwrap();
        let line = line.trim_end();
        if line.is_empty() {
            return Reply {
                status,
                headers,
                body: Vec::new(),
            };
        }
        let (name, value) = line.split_once(':').unwrap();
        headers.push((name.to_owned(), value.trim().to_owned()));
    }
}

async fn read_reply(reader: &mut (impl AsyncBufReadExt + Unpin)) -> Reply {
    let mut reply = read_head(reader).await;
    if let Some(length) = reply
        .header("content-length")
        .map(|length| length.parse().unwrap())
    {
        reply.body = vec![0; length];
        reader.read_exact(&mut reply.body).await.unwrap();
    } else if reply.header("transfer-encoding").is_some() {
        while let Some(chunk) = read_chunk(reader).await {
            reply.body.extend_from_slice(&chunk);
        }
    }
    reply
}

async fn read_chunk(reader: &mut (impl AsyncBufReadExt + Unpin)) -> Option<Vec<u8>> {
    let mut line = String::new();
    if reader.read_line(&mut line).await.ok()? == 0 {
        return None;
    }
    let size = usize::from_str_radix(line.trim(), 16).ok()?;
    let mut chunk = vec![0; size + 2];
    reader.read_exact(&mut chunk).await.ok()?;
    chunk.truncate(size);
    (size > 0).then_some(chunk)
}

/// An open stream of events.
pub(crate) struct Events {
    reader: BufReader<tokio::net::tcp::OwnedReadHalf>,
    _writer: tokio::net::tcp::OwnedWriteHalf,
    buffer: String,
}

impl Events {
    /// Opens a stream; the response must be one.
    pub(crate) async fn open(
        address: SocketAddr,
        method: &str,
        path: &str,
        headers: &[(&str, &str)],
        body: &[u8],
    ) -> Self {
        let (read, mut writer) = TcpStream::connect(address).await.unwrap().into_split();
        let mut reader = BufReader::new(read);
        let mut bytes = head(
            method,
            path,
            headers,
            (!body.is_empty()).then_some(body.len()),
        )
        .into_bytes();
        bytes.extend_from_slice(body);
        writer.write_all(&bytes).await.unwrap();
        let reply = soon("a stream", read_head(&mut reader)).await;
        assert_eq!(
            (reply.status, reply.header("content-type")),
            (200, Some("text/event-stream")),
            "{reply:?}"
        );
        assert_eq!(reply.header("x-accel-buffering"), Some("no"));
        Self {
            reader,
            _writer: writer,
            buffer: String::new(),
        }
    }

    /// The next block, comments included; none at the end.
    pub(crate) async fn block(&mut self) -> Option<String> {
        loop {
            if let Some(end) = self.buffer.find("\n\n") {
                let block = self.buffer[..end].to_owned();
                self.buffer.drain(..end + 2);
                return Some(block);
            }
            let chunk = read_chunk(&mut self.reader).await?;
            self.buffer.push_str(std::str::from_utf8(&chunk).unwrap());
        }
    }

    /// The next message; none at the end.
    pub(crate) async fn message(&mut self) -> Option<Value> {
        soon("an event", async {
            loop {
                let block = self.block().await?;
                if let Some(data) = block.lines().find_map(|line| line.strip_prefix("data: ")) {
                    return Some(serde_json::from_str(data).unwrap());
                }
                assert!(block.starts_with(':'), "{block:?}");
            }
        })
        .await
    }

    /// The next message's method and, where it has one, URI.
    pub(crate) async fn notice(&mut self) -> String {
        let message = self.message().await.expect("the stream has ended");
        let method = message["method"]
            .as_str()
            .unwrap_or_else(|| panic!("{message}"));
        match message["params"]["uri"].as_str() {
            Some(uri) => format!("{method} {uri}"),
            None => method.to_owned(),
        }
    }
}
