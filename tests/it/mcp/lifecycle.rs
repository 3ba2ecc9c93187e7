//! `initialize`, `server/discover`, eras, and what stands around the endpoint.

use serde_json::json;

use crate::support::http::send;
use crate::support::library::{TestLibrary, git};
use crate::support::mcp::{Client, LEGACY, MODERN, request};
use crate::support::server::TestServer;

#[tokio::test]
async fn every_legacy_revision_is_echoed_and_shaped_as_it_was() {
    let server = TestServer::start(&TestLibrary::small()).await;
    for revision in LEGACY {
        let mut client = Client {
            revision,
            ..Client::modern(&server)
        };
        let result = client.initialize().await;
        assert_eq!(result["serverInfo"]["name"], "cuebook");
        assert_eq!(result["instructions"], "Ask for a prompt.");
        assert_eq!(
            result["capabilities"]["prompts"],
            json!({ "listChanged": true })
        );
        assert_eq!(
            result["capabilities"]["resources"],
            json!({ "listChanged": true, "subscribe": true })
        );
        assert_eq!(result["capabilities"]["tools"], json!({}));
        assert_eq!(
            result["capabilities"].get("completions").is_some(),
            revision >= "2025-03-26"
        );
        assert_eq!(
            result["serverInfo"].get("title").is_some(),
            revision >= "2025-06-18"
        );
        assert!(result.get("_meta").is_none() && result.get("resultType").is_none());
        assert_eq!(client.call("ping", json!({})).await, json!({}));
        assert_eq!(
            client
                .call("logging/setLevel", json!({ "level": "info" }))
                .await,
            json!({})
        );
        assert_eq!(
            client
                .fail("logging/setLevel", json!({ "level": "loud" }))
                .await
                .1,
            -32602
        );
        let prompts = client.call("prompts/list", json!({})).await;
        let titled = prompts["prompts"]
            .as_array()
            .unwrap()
            .iter()
            .any(|p| p.get("title").is_some());
        assert_eq!(titled, revision >= "2025-06-18");
        assert!(prompts.get("ttlMs").is_none() && prompts.get("cacheScope").is_none());
    }
}

#[tokio::test]
async fn an_unknown_revision_gets_the_newest_that_has_initialize() {
    let server = TestServer::start(&TestLibrary::small()).await;
    let client = Client::modern(&server);
    for asked in ["2026-07-28", "2099-01-01", "1.0", ""] {
        let params = json!({ "protocolVersion": asked, "capabilities": {}, "clientInfo": { "name": "x", "version": "1" } });
        let reply = send(
            server.address,
            "POST",
            "/mcp",
            &[],
            request("initialize", &params).as_bytes(),
        )
        .await;
        assert_eq!(
            reply.json()["result"]["protocolVersion"],
            "2025-11-25",
            "{asked}"
        );
    }
    // A stale session is no reason not to begin another; nor is what one said of oneself.
    let params = json!({ "protocolVersion": "2025-06-18" });
    let reply = send(
        server.address,
        "POST",
        "/mcp",
        &[("Mcp-Session-Id", "gone")],
        request("initialize", &params).as_bytes(),
    )
    .await;
    assert_eq!(
        (reply.status, reply.header("mcp-session-id").is_some()),
        (200, true)
    );
    let (status, code, _) = client.fail("initialize", params).await;
    assert_eq!(
        (status, code),
        (404, -32601),
        "initialize with modern _meta"
    );
    let reply = send(
        server.address,
        "POST",
        "/mcp",
        &[],
        request("initialize", &json!({})).as_bytes(),
    )
    .await;
    assert_eq!(reply.json()["error"]["code"], -32602);
}

#[tokio::test]
async fn discover_says_what_is_spoken() {
    let server = TestServer::start(&TestLibrary::small()).await;
    let client = Client::modern(&server);
    let result = client.call("server/discover", json!({})).await;
    assert_eq!(
        result,
        json!({
            "resultType": "complete",
            "supportedVersions": [MODERN],
            "capabilities": {
                "completions": {},
                "prompts": { "listChanged": true },
                "resources": { "listChanged": true, "subscribe": true },
                "tools": {}
            },
            "instructions": "Ask for a prompt.",
            "ttlMs": 0,
            "cacheScope": "public",
            "_meta": { "io.modelcontextprotocol/serverInfo": { "name": "cuebook", "version": env!("CARGO_PKG_VERSION") } }
        })
    );
}

#[tokio::test]
async fn hints_for_caches_are_on_lists_and_reads_and_nowhere_else() {
    let server = TestServer::start(&TestLibrary::small()).await;
    let client = Client::modern(&server);
    let cases = [
        ("prompts/list", json!({}), true),
        ("resources/list", json!({}), true),
        ("resources/templates/list", json!({}), true),
        ("tools/list", json!({}), true),
        (
            "resources/read",
            json!({ "uri": "runbook://payments" }),
            true,
        ),
        ("prompts/get", json!({ "name": "postmortem" }), false),
        (
            "completion/complete",
            json!({ "ref": { "type": "ref/prompt", "name": "code-review" }, "argument": { "name": "language", "value": "" } }),
            false,
        ),
        ("tools/call", json!({ "name": "list_prompts" }), false),
    ];
    for (method, params, cached) in cases {
        let result = client.call(method, params).await;
        let expected = cached.then_some((0, "public"));
        let found = result["ttlMs"].as_i64().zip(result["cacheScope"].as_str());
        assert_eq!(found, expected, "{method}");
        assert_eq!(
            result["_meta"]["io.modelcontextprotocol/serverInfo"]["name"], "cuebook",
            "{method}"
        );
    }
}

#[tokio::test]
async fn what_modern_requests_must_carry() {
    let server = TestServer::start(&TestLibrary::small()).await;
    let client = Client::modern(&server);
    let list = |meta: serde_json::Value| request("prompts/list", &json!({ "_meta": meta }));
    let headers = [("Mcp-Method", "prompts/list")];
    let code = |reply: crate::support::http::Reply| {
        (
            reply.status,
            reply.json()["error"]["code"].as_i64().unwrap_or(0),
        )
    };

    assert_eq!(
        code(client.post(&list(client.meta()), &headers).await),
        (200, 0)
    );
    for field in [
        "io.modelcontextprotocol/protocolVersion",
        "io.modelcontextprotocol/clientCapabilities",
    ] {
        let mut meta = client.meta();
        meta.as_object_mut().unwrap().remove(field);
        assert_eq!(
            code(client.post(&list(meta), &headers).await),
            (400, -32602),
            "{field}"
        );
    }
    let mut meta = client.meta();
    meta.as_object_mut()
        .unwrap()
        .remove("io.modelcontextprotocol/clientInfo");
    assert_eq!(code(client.post(&list(meta), &headers).await), (200, 0));
    assert_eq!(
        code(
            client
                .post(&request("prompts/list", &json!({})), &headers)
                .await
        ),
        (400, -32602)
    );
    assert_eq!(
        code(client.post(&list(client.meta()), &[]).await),
        (400, -32020)
    );
    assert_eq!(
        code(
            client
                .post(&list(client.meta()), &[("Mcp-Method", "prompts/get")])
                .await
        ),
        (400, -32020)
    );

    // Without the header, and with another than the body's.
    let post = async |headers: &[(&str, &str)], meta| {
        send(
            server.address,
            "POST",
            "/mcp",
            headers,
            list(meta).as_bytes(),
        )
        .await
    };
    assert_eq!(code(post(&headers, client.meta()).await), (400, -32020));
    let other = [("MCP-Protocol-Version", "2025-11-25"), headers[0]];
    assert_eq!(code(post(&other, client.meta()).await), (400, -32020));

    let mut meta = client.meta();
    meta["io.modelcontextprotocol/protocolVersion"] = json!("2099-01-01");
    let reply = post(&[("MCP-Protocol-Version", "2099-01-01"), headers[0]], meta).await;
    assert_eq!(reply.status, 400);
    assert_eq!(reply.json()["error"]["code"], -32022);
    assert_eq!(
        reply.json()["error"]["data"],
        json!({ "supported": [MODERN], "requested": "2099-01-01" })
    );
}

#[tokio::test]
async fn methods_belong_to_eras() {
    let server = TestServer::start(&TestLibrary::small()).await;
    let modern = Client::modern(&server);
    for method in [
        "ping",
        "logging/setLevel",
        "resources/subscribe",
        "resources/unsubscribe",
        "no/such",
    ] {
        let (status, code, _) = modern.fail(method, json!({})).await;
        assert_eq!((status, code), (404, -32601), "{method}");
    }
    let legacy = Client::legacy(&server, "2025-11-25").await;
    for method in ["no/such", "tasks/list", "prompts/delete"] {
        let (status, code, _) = legacy.fail(method, json!({})).await;
        assert_eq!((status, code), (200, -32601), "{method}");
    }
}

#[tokio::test]
async fn a_version_header_that_is_none_is_refused_and_an_absent_one_is_not() {
    let server = TestServer::start(&TestLibrary::small()).await;
    let body = request("prompts/list", &json!({}));
    for (version, status) in [
        ("2025-06-18", 200),
        ("2024-11-05", 200),
        ("2025-06-19", 400),
        ("x", 400),
    ] {
        let reply = send(
            server.address,
            "POST",
            "/mcp",
            &[("MCP-Protocol-Version", version)],
            body.as_bytes(),
        )
        .await;
        assert_eq!(reply.status, status, "{version}");
        assert!(reply.header("mcp-session-id").is_none());
    }
    let reply = send(server.address, "POST", "/mcp", &[], body.as_bytes()).await;
    assert_eq!(reply.status, 200);
}

#[tokio::test]
async fn batches_belong_to_one_revision() {
    let server = TestServer::start(&TestLibrary::small()).await;
    let batch = r#"[{"jsonrpc":"2.0","id":"a","method":"ping"},{"jsonrpc":"2.0","method":"notifications/x"},5,{"jsonrpc":"2.0","id":2,"method":"initialize","params":{"protocolVersion":"2025-03-26"}}]"#;
    let client = Client::legacy(&server, "2025-03-26").await;
    let reply = client.post(batch, &[]).await;
    assert_eq!(reply.status, 200);
    let answers = reply.json();
    assert_eq!(answers.as_array().unwrap().len(), 3);
    assert_eq!(
        answers[0],
        json!({ "jsonrpc": "2.0", "id": "a", "result": {} })
    );
    assert_eq!(answers[1]["error"]["code"], -32600);
    assert_eq!(
        (&answers[2]["id"], &answers[2]["error"]["code"]),
        (&json!(2), &json!(-32600))
    );
    let reply = client
        .post(r#"[{"jsonrpc":"2.0","method":"notifications/x"}]"#, &[])
        .await;
    assert_eq!((reply.status, reply.body.len()), (202, 0));
    for revision in ["2024-11-05", "2025-06-18", "2025-11-25"] {
        let reply = Client::legacy(&server, revision)
            .await
            .post(batch, &[])
            .await;
        assert_eq!(
            (reply.status, reply.json()["error"]["code"].as_i64()),
            (400, Some(-32600)),
            "{revision}"
        );
    }
}

#[tokio::test]
async fn notifications_and_responses_are_accepted_without_a_body() {
    let server = TestServer::start(&TestLibrary::small()).await;
    let legacy = Client::legacy(&server, "2025-06-18").await;
    for body in [
        r#"{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":1}}"#,
        r#"{"jsonrpc":"2.0","method":"notifications/of-tomorrow","params":[]}"#,
        r#"{"jsonrpc":"2.0","id":1,"result":{}}"#,
        r#"{"jsonrpc":"2.0","id":1,"error":{"code":1,"message":"x"}}"#,
    ] {
        let reply = legacy.post(body, &[]).await;
        assert_eq!((reply.status, reply.body.len()), (202, 0), "{body}");
    }
    let modern = Client::modern(&server);
    let reply = modern
        .post(
            r#"{"jsonrpc":"2.0","method":"notifications/cancelled"}"#,
            &[],
        )
        .await;
    assert_eq!((reply.status, reply.body.len()), (202, 0));
    assert_eq!(
        modern
            .post(r#"{"jsonrpc":"2.0","id":1,"result":{}}"#, &[])
            .await
            .status,
        400
    );
}

#[tokio::test]
async fn around_the_endpoint() {
    let library = TestLibrary::small();
    let server = TestServer::start(&library).await;
    let get = async |path: &str| send(server.address, "GET", path, &[], b"").await;
    let front = get("/").await;
    assert_eq!(front.status, 200);
    assert!(
        front.text().contains("Test library") && front.text().contains("/mcp"),
        "{}",
        front.text()
    );
    assert_eq!(get("/healthz").await.status, 200);
    let ready = get("/readyz").await;
    assert_eq!(
        (ready.status, ready.json()["status"].as_str()),
        (200, Some("ready"))
    );
    assert_eq!(ready.json()["partial"], false);
    for absent in ["messages", "read_error", "problems"] {
        assert!(ready.json().get(absent).is_none(), "{absent}");
    }
    for path in [
        "/.well-known/oauth-protected-resource",
        "/.well-known/oauth-authorization-server/mcp",
        "/.well-known/x",
    ] {
        let reply = get(path).await;
        assert_eq!((reply.status, reply.text()), (404, "not found\n"), "{path}");
    }
    let reply = get("/nothing").await;
    assert_eq!(
        (reply.status, reply.json()["error"].is_string()),
        (404, true)
    );
    for header in [
        "x-request-id",
        "x-content-type-options",
        "content-security-policy",
        "referrer-policy",
    ] {
        assert!(reply.header(header).is_some(), "{header}");
    }

    let bad = library.publish(&[(
        "prompts/sre/broken.md",
        "---\ndescription: x\n---\n{{ nothing }}\n",
    )]);
    server.refresh().await;
    let ready = get("/readyz").await;
    let body = ready.json();
    assert_eq!((ready.status, body["tip"].as_str()), (200, Some(&*bad)));
    assert_ne!(body["served"], body["tip"]);
    assert!(
        body["problems"][0]
            .as_str()
            .unwrap()
            .starts_with("prompts/sre/broken.md:4:"),
        "{body}"
    );
    assert_eq!(body["problem_count"], 1);
    assert_eq!(body["status"], "degraded");
    let message = body["messages"][0].as_str().unwrap();
    assert!(
        message.contains(&*bad) && message.contains("push again"),
        "{message}"
    );
    assert_eq!(body["messages"].as_array().unwrap().len(), 1);

    library.remove("prompts/sre/broken.md");
    library.publish(&[]);
    server.refresh().await;
    assert_eq!(get("/readyz").await.json()["status"], "ready");
}

#[tokio::test]
async fn what_is_served_in_part_is_degraded() {
    let library = TestLibrary::with(&[
        ("prompts/good.md", "---\ndescription: Good\n---\nGood.\n"),
        (
            "prompts/bad.md",
            "---\ndescription: Bad\n---\n{{ nothing }}\n",
        ),
    ]);
    let of_main = TestServer::start(&library).await;
    let of_files = TestServer::of_work_tree(&library).await;
    for server in [&of_main, &of_files] {
        let ready = send(server.address, "GET", "/readyz", &[], b"").await;
        let body = ready.json();
        assert_eq!((ready.status, &body["status"]), (200, &json!("degraded")));
        assert_eq!(
            (&body["partial"], &body["problem_count"]),
            (&json!(true), &json!(1))
        );
        let message = body["messages"].to_string();
        assert!(message.contains("only its good prompts"), "{message}");
        assert_eq!(Client::modern(server).names().await, ["good"]);
    }
}

#[tokio::test]
async fn a_library_that_cannot_be_read_is_degraded_until_it_can() {
    let library = TestLibrary::small();
    let server = TestServer::start(&library).await;
    let ready = async || {
        let ready = send(server.address, "GET", "/readyz", &[], b"").await;
        assert_eq!(ready.status, 200);
        ready.json()
    };
    git(&library.bare(), &["update-ref", "-d", "refs/heads/main"]);
    server.refresh().await;
    let body = ready().await;
    assert_eq!(body["status"], "degraded");
    assert!(
        body["read_error"]
            .as_str()
            .unwrap()
            .contains("main is gone"),
        "{body}"
    );
    let message = body["messages"][0].as_str().unwrap();
    assert!(message.contains("main is gone"), "{message}");
    assert_eq!(Client::modern(&server).names().await.len(), 7);
    library.push();
    server.refresh().await;
    assert_eq!(ready().await["status"], "ready");
}

#[tokio::test]
async fn methods_of_http() {
    let server = TestServer::start(&TestLibrary::small()).await;
    for method in ["PUT", "PATCH", "OPTIONS", "TRACE"] {
        let reply = send(server.address, method, "/mcp", &[], b"").await;
        assert_eq!(
            (reply.status, reply.header("allow").is_some()),
            (405, true),
            "{method}"
        );
    }
    for headers in [
        &[("Accept", "text/html")][..],
        &[("MCP-Protocol-Version", MODERN)],
    ] {
        let reply = send(server.address, "GET", "/mcp", headers, b"").await;
        assert_eq!(
            (reply.status, reply.header("allow").is_some()),
            (405, true),
            "{headers:?}"
        );
    }
    assert_eq!(
        send(
            server.address,
            "GET",
            "/mcp",
            &[("Mcp-Session-Id", "x")],
            b""
        )
        .await
        .status,
        404
    );
    let reply = send(
        server.address,
        "POST",
        "/mcp/",
        &[],
        request("ping", &json!({})).as_bytes(),
    )
    .await;
    assert_eq!(reply.status, 200);
}
