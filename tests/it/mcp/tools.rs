//! Prompts as tools.

use serde_json::{Value, json};

use crate::support::library::TestLibrary;
use crate::support::mcp::{Client, LEGACY, MODERN};
use crate::support::server::TestServer;

#[tokio::test]
async fn three_tools_in_the_shape_of_each_revision() {
    let server = TestServer::start(&TestLibrary::small()).await;
    for revision in LEGACY.into_iter().chain([MODERN]) {
        let client = Client::named(&server, revision, "test").await;
        let result = client.call("tools/list", json!({})).await;
        let tools = result["tools"].as_array().unwrap();
        let names: Vec<_> = tools
            .iter()
            .map(|tool| tool["name"].as_str().unwrap())
            .collect();
        assert_eq!(names, ["list_prompts", "search_prompts", "get_prompt"]);
        for tool in tools {
            assert_eq!(tool["inputSchema"]["type"], "object");
            assert_eq!(tool.get("title").is_some(), revision >= "2025-06-18");
            assert_eq!(tool.get("outputSchema").is_some(), revision >= "2025-06-18");
            assert_eq!(
                tool["annotations"]["readOnlyHint"].as_bool(),
                (revision >= "2025-03-26").then_some(true)
            );
        }
    }
}

async fn tool(client: &Client, name: &str, arguments: Value) -> Value {
    client
        .call(
            "tools/call",
            json!({ "name": name, "arguments": arguments }),
        )
        .await
}

#[tokio::test]
async fn listing_searching_and_getting() {
    let server = TestServer::start(&TestLibrary::small()).await;
    for revision in LEGACY.into_iter().chain([MODERN]) {
        let client = Client::named(&server, revision, "test").await;
        let structured = revision >= "2025-06-18";

        let listed = tool(
            &client,
            "list_prompts",
            json!({ "folder": "sre", "tag": "" }),
        )
        .await;
        assert_eq!(listed["isError"], false);
        let text = listed["content"][0]["text"].as_str().unwrap();
        assert!(
            text.contains("incident-triage(ticketId, [service], [severity]): First response"),
            "{text}"
        );
        assert_eq!(listed.get("structuredContent").is_some(), structured);
        if structured {
            assert_eq!(listed["structuredContent"]["total"], 3);
            assert_eq!(
                listed["structuredContent"]["prompts"][0]["arguments"][2]["default"],
                "HIGH"
            );
        }
        let tagged = tool(&client, "list_prompts", json!({ "tag": "incident" })).await;
        assert_eq!(
            tagged["content"][0]["text"]
                .as_str()
                .unwrap()
                .lines()
                .count(),
            1
        );

        let found = tool(
            &client,
            "search_prompts",
            json!({ "query": "장애", "limit": 1 }),
        )
        .await;
        assert!(
            found["content"][0]["text"]
                .as_str()
                .unwrap()
                .starts_with("incident-triage"),
            "{found}"
        );
        let none = tool(&client, "search_prompts", json!({ "query": "qqqqqq" })).await;
        assert_eq!(none["content"][0]["text"], "no prompt fits\n");

        let arguments = json!({ "ticketId": "INC-1", "service": "payments" });
        let got = tool(
            &client,
            "get_prompt",
            json!({ "name": "incident-triage", "arguments": arguments }),
        )
        .await;
        let text = got["content"][0]["text"].as_str().unwrap();
        assert!(
            text.contains("INC-1")
                && text.contains("connection pool")
                && text.contains("Assistant: I will"),
            "{text}"
        );
        if structured {
            let content = &got["structuredContent"];
            assert_eq!(content["name"], "incident-triage");
            assert_eq!(content["messages"].as_array().unwrap().len(), 3);
            assert_eq!(content["source"]["path"], "prompts/sre/incident-triage.md");
        }
        let everything = tool(&client, "get_prompt", json!({ "name": "everything" })).await;
        assert_eq!(everything["content"][1]["type"], "image");
    }
}

#[tokio::test]
async fn a_search_says_how_many_there_are() {
    let files: Vec<(String, String)> = (0..230)
        .map(|n| {
            let text = format!("---\ndescription: Number {n}\n---\nText {n}.\n");
            (format!("prompts/many/p{n}.md"), text)
        })
        .collect();
    let files: Vec<(&str, &str)> = files.iter().map(|(p, t)| (&**p, &**t)).collect();
    let server = TestServer::start(&TestLibrary::with(&files)).await;
    let client = Client::modern(&server);
    let more = Some("more words or a higher limit find the others");
    for (name, arguments, shown, total, others) in [
        (
            "search_prompts",
            json!({ "query": "number" }),
            10,
            230,
            more,
        ),
        (
            "search_prompts",
            json!({ "query": "number", "limit": 3 }),
            3,
            230,
            more,
        ),
        (
            "search_prompts",
            json!({ "query": "number", "limit": 200 }),
            200,
            230,
            Some("more words find the others"),
        ),
        (
            "search_prompts",
            json!({ "query": "number 229" }),
            1,
            1,
            None,
        ),
        ("search_prompts", json!({ "query": "qqqq" }), 0, 0, None),
        (
            "list_prompts",
            json!({}),
            200,
            230,
            Some("search_prompts finds the others"),
        ),
    ] {
        let found = tool(&client, name, arguments).await;
        let content = &found["structuredContent"];
        assert_eq!(content["total"], total, "{found}");
        assert_eq!(content["prompts"].as_array().unwrap().len(), shown);
        let text = found["content"][0]["text"].as_str().unwrap();
        let last = text.lines().last().unwrap();
        match others {
            Some(others) => assert_eq!(last, format!("{shown} of {total} shown; {others}")),
            None => assert!(!text.contains(" shown; "), "{text}"),
        }
    }
}

#[tokio::test]
async fn errors_are_lines_that_a_model_can_act_on() {
    let server = TestServer::start(&TestLibrary::small()).await;
    for revision in ["2025-11-25", MODERN] {
        let client = Client::named(&server, revision, "test").await;
        for (name, arguments, says) in [
            (
                "get_prompt",
                json!({ "name": "incident-traige" }),
                "did you mean `incident-triage`",
            ),
            (
                "get_prompt",
                json!({ "name": "incident-triage" }),
                "missing required argument: ticketId",
            ),
            (
                "get_prompt",
                json!({ "name": "echo", "arguments": { "text": 5 } }),
                "must be a string, not a number",
            ),
            ("get_prompt", json!({}), "`name` is missing"),
            (
                "get_prompt",
                json!({ "name": 5 }),
                "`name` must be a string",
            ),
            ("search_prompts", json!({}), "`query` is missing"),
            (
                "search_prompts",
                json!({ "query": "x", "limit": 0 }),
                "`limit` must be an integer",
            ),
            (
                "search_prompts",
                json!({ "query": "x", "limit": "many" }),
                "`limit` must be an integer",
            ),
            (
                "list_prompts",
                json!({ "folder": [] }),
                "`folder` must be a string",
            ),
            ("list_prompts", json!([]), "`arguments` must be an object"),
        ] {
            let called = tool(&client, name, arguments).await;
            assert_eq!(called["isError"], true, "{called}");
            assert!(
                called["content"][0]["text"]
                    .as_str()
                    .unwrap()
                    .contains(says),
                "{says}: {called}"
            );
            assert!(called.get("structuredContent").is_none());
        }
        assert_eq!(
            client.fail("tools/call", json!({ "name": "rm" })).await.1,
            -32602
        );
        assert_eq!(client.fail_raw("tools/call", json!({})).await.1, -32602);
    }
}
