//! `completion/complete`.

use serde_json::{Value, json};

use crate::support::library::TestLibrary;
use crate::support::mcp::{Client, LEGACY, MODERN};
use crate::support::server::TestServer;

async fn complete(
    client: &Client,
    prompt: &str,
    argument: &str,
    typed: &str,
    context: Value,
) -> Value {
    let mut params = json!({
        "ref": { "type": "ref/prompt", "name": prompt },
        "argument": { "name": argument, "value": typed }
    });
    if !context.is_null() {
        params["context"] = json!({ "arguments": context });
    }
    client.call("completion/complete", params).await["completion"].clone()
}

#[tokio::test]
async fn values_from_every_source() {
    let server = TestServer::start(&TestLibrary::small()).await;
    for revision in LEGACY.into_iter().chain([MODERN]) {
        let client = Client::named(&server, revision, "test").await;
        let all = complete(&client, "incident-triage", "severity", "", Value::Null).await;
        assert_eq!(
            all,
            json!({ "values": ["CRITICAL", "HIGH", "MEDIUM", "LOW"], "total": 4, "hasMore": false })
        );
        for typed in ["cr", "CR", "ｃｒ"] {
            let some = complete(&client, "incident-triage", "severity", typed, Value::Null).await;
            assert_eq!(some["values"], json!(["CRITICAL"]), "{typed}");
        }
        let runbooks = complete(&client, "incident-triage", "service", "", Value::Null).await;
        assert_eq!(runbooks["values"], json!(["payments", "search"]));
        let narrowed = complete(
            &client,
            "code-review",
            "focus",
            "",
            json!({ "language": "Rust" }),
        )
        .await;
        assert_eq!(narrowed["values"], json!(["ownership", "lifetimes"]));
        let other = complete(
            &client,
            "code-review",
            "focus",
            "",
            json!({ "language": "Ruby", "x": 5 }),
        )
        .await;
        assert_eq!(other["values"], json!(["metaprogramming"]));
        let template = client
            .call(
                "completion/complete",
                json!({ "ref": { "type": "ref/resource", "uri": "runbook://{service}" }, "argument": { "name": "service", "value": "pa" } }),
            )
            .await;
        assert_eq!(template["completion"]["values"], json!(["payments"]));
    }
}

#[tokio::test]
async fn what_has_no_values_completes_to_nothing() {
    let server = TestServer::start(&TestLibrary::small()).await;
    let nothing = json!({ "values": [], "total": 0, "hasMore": false });
    for revision in ["2025-06-18", MODERN] {
        let client = Client::named(&server, revision, "test").await;
        for (prompt, argument) in [
            ("incident-triage", "ticketId"),
            ("incident-triage", "nope"),
            ("nope", "x"),
            ("", ""),
            ("a@b@c", "x"),
        ] {
            assert_eq!(
                complete(&client, prompt, argument, "", Value::Null).await,
                nothing,
                "{prompt} {argument}"
            );
        }
        assert_eq!(
            complete(&client, "code-review@latest", "language", "g", json!([])).await["values"],
            json!(["Go"])
        );
        for (reference, argument) in [
            (
                json!({ "type": "ref/tool", "name": "x" }),
                json!({ "name": "a", "value": "" }),
            ),
            (
                json!({ "type": "ref/prompt" }),
                json!({ "name": "a", "value": "" }),
            ),
            (
                json!({ "type": "ref/prompt", "name": "x" }),
                json!({ "name": "a" }),
            ),
            (
                json!({ "type": "ref/prompt", "name": "x" }),
                json!({ "name": 1, "value": "" }),
            ),
            (json!("x"), json!({ "name": "a", "value": "" })),
        ] {
            let params = json!({ "ref": reference, "argument": argument });
            assert_eq!(
                client
                    .fail_raw("completion/complete", params.clone())
                    .await
                    .1,
                -32602,
                "{params}"
            );
        }
    }
}

#[tokio::test]
async fn a_hundred_values_and_how_many_there_are() {
    let values: Vec<String> = (0..250).map(|n| format!("v{n:03}")).collect();
    let values = values.join("\n");
    let library = TestLibrary::with(&[
        ("values/many.txt", &values),
        (
            "prompts/many.md",
            "---\ndescription: Many\narguments:\n  - name: x\n    values: { file: many.txt }\n---\n{{ x }}\n",
        ),
    ]);
    let server = TestServer::start(&library).await;
    let client = Client::modern(&server);
    let all = complete(&client, "many", "x", "", Value::Null).await;
    assert_eq!(all["values"].as_array().unwrap().len(), 100);
    assert_eq!(
        (all["total"].as_u64(), all["hasMore"].as_bool()),
        (Some(250), Some(true))
    );
    let some = complete(&client, "many", "x", "v24", Value::Null).await;
    assert_eq!(
        (some["total"].as_u64(), some["hasMore"].as_bool()),
        (Some(10), Some(false))
    );
}

fn services() -> TestLibrary {
    TestLibrary::with(&[
        (
            "values/services.txt",
            "payments\ttakes money\tkr\nmy-payroll\t\tkr\n결제 게이트웨이\t\tkr\n서울 정산\t\tus\n決済サービス\nCafé\t\tus\n",
        ),
        ("resources/runbook/payments.md", "P"),
        ("resources/runbook/deep-payments.md", "P"),
        ("resources/runbook/결제.md", "P"),
        (
            "cuebook.toml",
            "format = 1\n[[resource]]\ntemplate = \"runbook://{service}\"\n",
        ),
        (
            "prompts/p.md",
            "---\ndescription: P\narguments:\n  - name: region\n  - name: service\n    values: { list: [checkout, payments], file: services.txt, where: region, resource: \"runbook://{service}\" }\n---\n{{ region }} {{ service }}\n",
        ),
    ])
}

#[tokio::test]
async fn every_way_of_typing_in_every_source() {
    let server = TestServer::start(&services()).await;
    let nfd = "결제\u{1100}";
    let decomposed = "\u{1100}\u{1167}\u{11AF}\u{110C}\u{1166}";
    for revision in ["2025-06-18", MODERN] {
        let client = Client::named(&server, revision, "test").await;
        for (typed, region, expected) in [
            // listed, then the file, then resources; each value once
            (
                "",
                "",
                json!([
                    "checkout",
                    "payments",
                    "my-payroll",
                    "결제 게이트웨이",
                    "서울 정산",
                    "決済サービス",
                    "Café",
                    "deep-payments",
                    "결제"
                ]),
            ),
            (
                "",
                "us",
                json!([
                    "checkout",
                    "payments",
                    "서울 정산",
                    "決済サービス",
                    "Café",
                    "deep-payments",
                    "결제"
                ]),
            ),
            (
                "PAY",
                "",
                json!(["payments", "my-payroll", "deep-payments"]),
            ),
            ("pay", "us", json!(["payments", "deep-payments"])),
            // from macOS, and while a syllable is typed
            (decomposed, "", json!(["결제 게이트웨이", "결제"])),
            ("결ㅈ", "", json!(["결제 게이트웨이", "결제"])),
            ("서우", "", json!(["서울 정산"])),
            (nfd, "", json!(["결제 게이트웨이", "결제"])),
            ("ㄱㅈ", "", json!(["결제 게이트웨이", "결제"])),
            ("ㅈ", "", json!(["서울 정산"])),
            ("サー", "", json!(["決済サービス"])),
            ("済", "", json!(["決済サービス"])),
            ("ｃａｆｅ\u{301}", "", json!(["Café"])),
            ("paymnets", "", json!(["payments"])),
            ("nothing like it", "", json!([])),
        ] {
            let found = complete(&client, "p", "service", typed, json!({ "region": region })).await;
            assert_eq!(found["values"], expected, "{typed} in {region:?}");
            let total = expected.as_array().unwrap().len();
            assert_eq!(
                (&found["total"], &found["hasMore"]),
                (&json!(total), &json!(false)),
                "{typed} in {region:?}"
            );
        }
        for (typed, expected) in [
            ("", json!(["deep-payments", "payments", "결제"])),
            ("pay", json!(["payments", "deep-payments"])),
            ("ㄱ", json!(["결제"])),
        ] {
            let found = client
                .call(
                    "completion/complete",
                    json!({ "ref": { "type": "ref/resource", "uri": "runbook://{service}" }, "argument": { "name": "service", "value": typed } }),
                )
                .await;
            assert_eq!(found["completion"]["values"], expected, "{typed}");
        }
    }
}

#[tokio::test]
async fn no_query_is_too_long_or_too_odd() {
    let server = TestServer::start(&services()).await;
    let client = Client::modern(&server);
    for typed in [
        "결제".repeat(100_000),
        "a".repeat(300_000),
        "\u{301}".repeat(1000),
        "ㄱ".repeat(1000),
        "\u{0}\u{7f}\u{200d}".into(),
        "ﷺ".repeat(200),
    ] {
        let found = complete(&client, "p", "service", &typed, Value::Null).await;
        assert_eq!(
            found,
            json!({ "values": [], "total": 0, "hasMore": false }),
            "{}",
            typed.chars().take(9).collect::<String>()
        );
    }
}
