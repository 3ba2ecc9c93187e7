//! Input of every wrong kind, over the wire: the right code, and a server that goes on.

use serde_json::{Value, json};

use crate::support::http::{Connection, raw, send};
use crate::support::library::TestLibrary;
use crate::support::mcp::Client;
use crate::support::server::TestServer;

const JSON: (&str, &str) = ("Content-Type", "application/json");

fn get(arguments: &str) -> Vec<u8> {
    format!(r#"{{"jsonrpc":"2.0","id":1,"method":"prompts/get","params":{{"name":"echo","arguments":{arguments}}}}}"#)
        .into_bytes()
}

#[tokio::test]
async fn the_table() {
    let server = TestServer::start(&TestLibrary::small()).await;
    let deep = |n: usize| format!("{}{}", "[".repeat(n), "]".repeat(n));
    let object = |n: usize| format!("{}1{}", r#"{"a":"#.repeat(n), "}".repeat(n));
    let ping = |id: &str| format!(r#"{{"jsonrpc":"2.0","id":{id},"method":"ping"}}"#).into_bytes();
    let million = (0..200_000)
        .map(|n| format!(r#""a{n}":"x""#))
        .collect::<Vec<_>>()
        .join(",");
    // Body, HTTP status, code (0 for a result), the id that comes back.
    let cases: Vec<(Vec<u8>, u16, i64, Value)> = vec![
        (b"".to_vec(), 400, -32700, Value::Null),
        (b"{".to_vec(), 400, -32700, Value::Null),
        (b"not json".to_vec(), 400, -32700, Value::Null),
        (b"{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"ping\"} x".to_vec(), 400, -32700, Value::Null),
        (b"\xef\xbb\xbf{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"ping\"}".to_vec(), 400, -32700, Value::Null),
        (b"{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"\xff\xfe\"}".to_vec(), 400, -32700, Value::Null),
        (b"\x00\x01\x02".to_vec(), 400, -32700, Value::Null),
        (b"5".to_vec(), 400, -32600, Value::Null),
        (b"\"ping\"".to_vec(), 400, -32600, Value::Null),
        (b"[]".to_vec(), 400, -32600, Value::Null),
        (b"{}".to_vec(), 400, -32600, Value::Null),
        (b"{\"jsonrpc\":\"1.0\",\"id\":1,\"method\":\"ping\"}".to_vec(), 400, -32600, json!(1)),
        (b"{\"jsonrpc\":2.0,\"id\":1,\"method\":\"ping\"}".to_vec(), 400, -32600, json!(1)),
        (b"{\"id\":1,\"method\":\"ping\"}".to_vec(), 400, -32600, json!(1)),
        (b"{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":7}".to_vec(), 400, -32600, json!(1)),
        (b"{\"jsonrpc\":\"2.0\",\"id\":1,\"id\":2,\"method\":\"ping\"}".to_vec(), 400, -32600, Value::Null),
        (ping("null"), 400, -32600, Value::Null),
        (ping("1.5"), 400, -32600, Value::Null),
        (ping("1e3"), 400, -32600, Value::Null),
        (ping("{}"), 400, -32600, Value::Null),
        (ping("[1]"), 400, -32600, Value::Null),
        (ping("true"), 400, -32600, Value::Null),
        (ping(&format!("\"{}\"", "x".repeat(100_000))), 400, -32600, Value::Null),
        (ping("-7"), 200, 0, json!(-7)),
        (ping("\"\""), 200, 0, json!("")),
        (ping("\"한 \\n \\u0000\""), 200, 0, json!("한 \n \0")),
        (b"{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"ping\",\"unknown\":{\"a\":[1,2]},\"params\":{\"unknown\":1}}".to_vec(), 200, 0, json!(1)),
        (b"{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"ping\",\"params\":[1]}".to_vec(), 200, -32602, json!(1)),
        (b"{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"ping\",\"params\":7}".to_vec(), 200, -32602, json!(1)),
        (b"{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"prompts/list\",\"params\":{\"cursor\":\"a\",\"cursor\":\"b\"}}".to_vec(), 200, -32602, json!(1)),
        (format!(r#"{{"jsonrpc":"2.0","id":1,"method":"ping","params":{{"x":{}}}}}"#, deep(100_000)).into_bytes(), 200, 0, json!(1)),
        ("[".repeat(4_000_000).into_bytes(), 400, -32700, Value::Null),
        (get(&object(100_000)), 200, -32602, json!(1)),
        (get(&format!(r#"{{"text":{}}}"#, deep(100_000))), 200, -32602, json!(1)),
        (get(&format!("{{{million}}}")), 200, -32602, json!(1)),
        (get(r#"{"text":"\ud800"}"#), 200, -32602, json!(1)),
        (get(r#"{"text":"\ud83c\udfad"}"#), 200, 0, json!(1)),
        (get(r#"{"text":"a","text":"b"}"#), 200, 0, json!(1)),
        (vec![b' '; 5 * 1024 * 1024], 413, -32600, Value::Null),
        (vec![b'x'; 10 * 1024 * 1024], 413, -32600, Value::Null),
    ];
    for (body, status, code, id) in cases {
        let shown: String = String::from_utf8_lossy(&body).chars().take(100).collect();
        let reply = send(server.address, "POST", "/mcp", &[JSON], &body).await;
        let answer = reply.json();
        assert_eq!(reply.status, status, "{shown}: {answer}");
        assert_eq!(
            answer["error"]["code"].as_i64().unwrap_or(0),
            code,
            "{shown}: {answer}"
        );
        assert_eq!(answer["id"], id, "{shown}: {answer}");
        assert!(reply.body.len() < 2000, "{shown}");
    }
    assert_eq!(Client::modern(&server).names().await.len(), 7);
}

#[tokio::test]
async fn a_huge_integer_is_an_id_and_comes_back_as_it_was() {
    let server = TestServer::start(&TestLibrary::small()).await;
    let body = r#"{"jsonrpc":"2.0","id":123456789012345678901234567890,"method":"ping"}"#;
    let reply = send(server.address, "POST", "/mcp", &[JSON], body.as_bytes()).await;
    assert_eq!(
        reply.text(),
        r#"{"jsonrpc":"2.0","id":123456789012345678901234567890,"result":{}}"#
    );
}

#[tokio::test]
async fn content_types() {
    let server = TestServer::start(&TestLibrary::small()).await;
    let ping = br#"{"jsonrpc":"2.0","id":1,"method":"ping"}"#;
    for (kind, status) in [
        ("application/json", 200),
        ("application/json; charset=utf-8", 200),
        ("", 200),
        ("text/plain", 415),
        ("application/x-www-form-urlencoded", 415),
        ("multipart/form-data; boundary=x", 415),
    ] {
        let reply = send(
            server.address,
            "POST",
            "/mcp",
            &[("Content-Type", kind)],
            ping,
        )
        .await;
        assert_eq!(reply.status, status, "{kind}");
    }
}

#[tokio::test]
async fn what_is_wrong_around_a_good_message_is_said_in_its_own_words() {
    let server = TestServer::start(&TestLibrary::small()).await;
    let ping = r#"{"jsonrpc":"2.0","id":1,"method":"ping"}"#;
    let batch = format!("[{ping}]");
    let response = r#"{"jsonrpc":"2.0","id":1,"result":{}}"#;
    let version = |revision| ("MCP-Protocol-Version", revision);
    let session = ("Mcp-Session-Id", "x");
    for (verb, headers, body, status, says) in [
        (
            "POST",
            vec![("Content-Type", "text/plain")],
            ping,
            415,
            "the Content-Type header must be application/json",
        ),
        (
            "POST",
            vec![JSON, version("1999-01-01")],
            ping,
            400,
            "the MCP-Protocol-Version header is `1999-01-01`, which is not one of 2024-11-05, ",
        ),
        (
            "POST",
            vec![JSON, version("2025-11-25")],
            &batch,
            400,
            "revision 2025-11-25 has no batches; send one message at a time",
        ),
        (
            "POST",
            vec![JSON, version("2026-07-28")],
            response,
            400,
            "responses are not accepted in this revision",
        ),
        (
            "POST",
            vec![JSON, session],
            ping,
            404,
            "there is no such session, or it has ended; initialize again",
        ),
        (
            "GET",
            vec![session],
            "",
            404,
            "there is no such session, or it has ended; initialize again",
        ),
        (
            "DELETE",
            vec![],
            "",
            400,
            "the Mcp-Session-Id header is missing; it says which session to end",
        ),
    ] {
        let reply = send(server.address, verb, "/mcp", &headers, body.as_bytes()).await;
        let answer = reply.json();
        assert_eq!(reply.status, status, "{answer}");
        assert_eq!(answer["error"]["code"], -32600, "{answer}");
        let message = answer["error"]["message"].as_str().unwrap();
        assert!(message.starts_with(says), "{message}");
    }
    let reply = send(server.address, "POST", "/mcp", &[JSON], b"{}").await;
    let message = reply.json()["error"]["message"].to_string();
    assert!(
        message.contains("not a JSON-RPC 2.0 request: "),
        "{message}"
    );
}

#[tokio::test]
async fn a_connection_goes_on_after_an_error() {
    let server = TestServer::start(&TestLibrary::small()).await;
    let mut connection = Connection::open(server.address).await;
    for body in [
        &b"{"[..],
        b"[]",
        br#"{"jsonrpc":"2.0","id":1,"method":"no/such"}"#,
    ] {
        connection.send("POST", "/mcp", &[JSON], body).await;
    }
    let reply = connection
        .send(
            "POST",
            "/mcp",
            &[JSON],
            br#"{"jsonrpc":"2.0","id":1,"method":"ping"}"#,
        )
        .await;
    assert_eq!(reply.status, 200);
}

#[tokio::test]
async fn http_that_is_none() {
    let server = TestServer::start(&TestLibrary::small()).await;
    for bytes in [
        "NONSENSE\r\n\r\n".to_owned(),
        format!(
            "GET /healthz HTTP/1.1\r\nHost: localhost\r\nX: {}\r\n\r\n",
            "x".repeat(100_000)
        ),
        format!(
            "GET /healthz HTTP/1.1\r\nHost: localhost\r\n{}\r\n",
            "A: b\r\n".repeat(1000)
        ),
    ] {
        let reply = raw(server.address, bytes.as_bytes()).await;
        assert!(matches!(reply.status, 400 | 431), "{}", reply.status);
    }
    assert_eq!(Client::modern(&server).names().await.len(), 7);
}
