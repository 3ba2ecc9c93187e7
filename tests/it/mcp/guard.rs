//! Host and Origin, over the wire.

use serde_json::json;

use crate::support::http::{raw, send};
use crate::support::library::TestLibrary;
use crate::support::mcp::request;
use crate::support::server::{TestServer, settings};

#[tokio::test]
async fn host_and_origin() {
    let library = TestLibrary::small();
    let server = TestServer::with(&library, settings(), Some("https://prompts.example.com")).await;
    let ping = request("ping", &json!({}));
    let status = async |headers: &[(&str, &str)]| {
        let mut statuses = Vec::new();
        statuses.push(
            send(server.address, "POST", "/mcp", headers, ping.as_bytes())
                .await
                .status,
        );
        for path in ["/", "/healthz", "/nothing"] {
            statuses.push(send(server.address, "GET", path, headers, b"").await.status);
        }
        statuses
    };
    let served = [200, 200, 200, 404];
    for headers in [
        &[("Host", "localhost")][..],
        &[("Host", "127.0.0.1:8400")],
        &[("Host", "[::1]:8400")],
        &[("Host", "prompts.example.com")],
        &[("Host", "localhost"), ("Origin", "http://localhost:6274")],
        &[
            ("Host", "prompts.example.com"),
            ("Origin", "https://prompts.example.com"),
        ],
    ] {
        assert_eq!(status(headers).await, served, "{headers:?}");
    }
    for headers in [
        &[("Host", "evil.example")][..],
        &[("Host", "localhost.evil.example")],
        &[("Host", "prompts.example.com.evil.example")],
        &[("Host", "localhost"), ("Origin", "http://evil.example")],
        &[("Host", "localhost"), ("Origin", "null")],
        &[
            ("Host", "localhost"),
            ("Origin", "http://prompts.example.com"),
        ],
        &[
            ("Host", "localhost"),
            ("Origin", "http://localhost"),
            ("Origin", "http://evil.example"),
        ],
    ] {
        assert_eq!(status(headers).await, [403; 4], "{headers:?}");
    }
    for bytes in [
        "GET /healthz HTTP/1.1\r\nConnection: close\r\n\r\n",
        "GET /healthz HTTP/1.0\r\n\r\n",
        "GET /healthz HTTP/1.1\r\nHost: localhost\r\nHost: localhost\r\nConnection: close\r\n\r\n",
        "GET /healthz HTTP/1.1\r\nHost:\r\nConnection: close\r\n\r\n",
    ] {
        assert_eq!(
            raw(server.address, bytes.as_bytes()).await.status,
            400,
            "{bytes}"
        );
    }
}
