//! `name@v3`, labels, and a library that serves a label.

use serde_json::{Value, json};

use crate::support::library::TestLibrary;
use crate::support::mcp::Client;
use crate::support::server::TestServer;

fn prompt(text: &str) -> String {
    format!(
        "---\ndescription: About {text}\nresources:\n  - name: runbook\n    uri: \"runbook://r\"\n    as: text\n---\n{{% include \"head.md\" %}} {text}\n"
    )
}

/// A prompt of three versions: an edit, and an edit of its partial; its runbook changes with each.
fn three() -> (TestLibrary, [String; 3]) {
    let library = TestLibrary::empty();
    let commits = [
        library.publish(&[
            ("prompts/sre/triage.md", &prompt("one")),
            ("prompts/review/other.md", "other"),
            ("partials/head.md", "head 1"),
            ("resources/runbook/r.md", "runbook 1"),
        ]),
        library.publish(&[
            ("prompts/sre/triage.md", &prompt("two")),
            ("resources/runbook/r.md", "runbook 2"),
        ]),
        library.publish(&[
            ("partials/head.md", "head 2"),
            ("resources/runbook/r.md", "runbook 3"),
        ]),
    ];
    (library, commits)
}

fn texts(got: &Value) -> String {
    got["messages"]
        .as_array()
        .unwrap()
        .iter()
        .filter_map(|m| m["content"]["text"].as_str())
        .collect::<Vec<_>>()
        .join("|")
}

/// What a name gives: the texts, and version and commit of the reply.
async fn got(client: &Client, name: &str) -> (String, Value, Value) {
    let got = client.get(name, json!({})).await;
    let source = &got["_meta"]["dev.cuebook/source"];
    (
        texts(&got),
        source["version"].clone(),
        source["commit"].clone(),
    )
}

async fn fails(client: &Client, name: &str, says: &str) {
    let (_, _, message) = client.fail("prompts/get", json!({ "name": name })).await;
    assert!(message.contains(says), "{name}: {message}");
}

#[tokio::test]
async fn a_version_has_its_own_text_and_partials_and_todays_resources() {
    let (library, commits) = three();
    let server = TestServer::start(&library).await;
    let client = Client::modern(&server);
    for (name, text, version) in [
        ("triage@v1", "head 1 one\n|runbook 3", 1),
        ("triage@v2", "head 1 two\n|runbook 3", 2),
        ("triage@v3", "head 2 two\n|runbook 3", 3),
        ("triage", "head 2 two\n|runbook 3", 3),
        ("triage@latest", "head 2 two\n|runbook 3", 3),
        // a second time, from what is kept
        ("triage@v1", "head 1 one\n|runbook 3", 1),
    ] {
        let commit = &commits[version - 1];
        assert_eq!(
            got(&client, name).await,
            (text.to_owned(), json!(version), json!(commit)),
            "{name}"
        );
    }
    // a commit is everything as it was, and knows its version
    let at = format!("triage@{}", commits[1]);
    assert_eq!(
        got(&client, &at).await,
        ("head 1 two\n|runbook 2".into(), json!(2), json!(commits[1]))
    );
    let source = client.get("triage@v1", json!({})).await["_meta"]["dev.cuebook/source"].clone();
    assert_eq!(source["resources_commit"], json!(commits[2]));
    assert_eq!(
        source["sha256"],
        json!(&*cuebook::prompt::parse::sha256_hex(
            prompt("one").as_bytes()
        ))
    );
    fails(&client, "triage@v4", "`triage` has no v4; its newest is v3").await;
    fails(&client, "triage@v0", "`triage` has no v0").await;
    fails(&client, "nothing@v1", "there is no prompt `nothing`").await;
    // another folder's prompt is none here, whatever is asked of it
    fails(
        &client.at("/mcp/review"),
        "triage@v1",
        "there is no prompt `triage`",
    )
    .await;
    assert_eq!(got(&client.at("/mcp/sre"), "triage@v1").await.1, json!(1));
    let tool = client
        .call(
            "tools/call",
            json!({ "name": "get_prompt", "arguments": { "name": "triage@v1" } }),
        )
        .await;
    assert_eq!(
        tool["structuredContent"]["source"]["version"],
        json!(1),
        "{tool}"
    );
}

#[tokio::test]
async fn what_an_old_version_needs_and_is_gone_is_said() {
    let (library, _) = three();
    library.remove("resources/runbook/r.md");
    library.publish(&[("prompts/sre/triage.md", "plain")]);
    let server = TestServer::start(&library).await;
    let client = Client::modern(&server);
    fails(
        &client,
        "triage@v2",
        "triage v2 does not pass the check: prompts/sre/triage.md:",
    )
    .await;
    assert_eq!(got(&client, "triage").await.0, "plain");
}

#[tokio::test]
async fn a_renamed_prompt_has_the_versions_of_its_old_name() {
    let (library, commits) = three();
    let text = std::fs::read_to_string(library.clone().join("prompts/sre/triage.md")).unwrap();
    library.remove("prompts/sre/triage.md");
    library.publish(&[("prompts/first-aid.md", &text)]);
    let server = TestServer::start(&library).await;
    let client = Client::modern(&server);
    assert_eq!(
        got(&client, "first-aid@v1").await,
        ("head 1 one\n|runbook 3".into(), json!(1), json!(commits[0]))
    );
    assert_eq!(got(&client, "first-aid").await.1, json!(3));
    // V2: what is gone is gone on every path
    for name in ["triage", "triage@v1", "triage@latest", "triage@production"] {
        fails(&client, name, "there is no prompt `triage`").await;
    }
}

#[tokio::test]
async fn a_label_selects_a_version_and_is_gone_at_once_when_it_is_removed() {
    let (library, commits) = three();
    library.publish(&[(
        "labels.toml",
        "[production]\ntriage = \"v1\"\n[next]\ntriage = \"v9\"\n",
    )]);
    let server = TestServer::start(&library).await;
    let client = Client::modern(&server);
    let first = (
        "head 1 one\n|runbook 3".to_owned(),
        json!(1),
        json!(commits[0]),
    );
    assert_eq!(got(&client, "triage@production").await, first);
    assert_eq!(got(&client, "triage").await.1, json!(3));
    fails(
        &client,
        "other@production",
        "label `production` is not on `other`",
    )
    .await;
    fails(
        &client,
        "triage@next",
        "`triage` has no v9; its newest is v3",
    )
    .await;
    library.publish(&[("labels.toml", "[production]\ntriage = \"v2\"\n")]);
    server.refresh().await;
    assert_eq!(got(&client, "triage@production").await.1, json!(2));
    library.publish(&[("labels.toml", "")]);
    server.refresh().await;
    fails(
        &client,
        "triage@production",
        "there is no label `production`",
    )
    .await;
    fails(&client, "triage@next", "there is no label `next`").await;
}

#[tokio::test]
async fn a_library_serves_a_label() {
    let (library, _) = three();
    library.publish(&[
        ("cuebook.toml", "serve = \"production\"\n"),
        ("labels.toml", "[production]\ntriage = \"v1\"\n"),
    ]);
    let server = TestServer::start(&library).await;
    let client = Client::modern(&server);
    assert_eq!(got(&client, "triage").await.0, "head 1 one\n|runbook 3");
    assert_eq!(got(&client, "triage").await.1, json!(1));
    assert_eq!(got(&client, "triage@latest").await.1, json!(3));
    assert_eq!(got(&client, "triage@v2").await.1, json!(2));
    // those without the label are served at latest
    assert_eq!(got(&client, "other").await.1, json!(1));
    let listed = |list: Value| -> Vec<(String, String)> {
        let prompts = list["prompts"].as_array().unwrap().clone();
        prompts
            .iter()
            .map(|p| {
                (
                    p["name"].as_str().unwrap().to_owned(),
                    p["description"].as_str().unwrap_or_default().to_owned(),
                )
            })
            .collect()
    };
    let list = listed(client.call("prompts/list", json!({})).await);
    assert_eq!(
        list,
        [
            ("other".into(), String::new()),
            ("triage".into(), "About one".into())
        ]
    );

    // an edit changes nothing that is served, so nobody is told
    let before = server.registry.snapshot().changes.prompts;
    library.publish(&[("prompts/sre/triage.md", &prompt("four"))]);
    server.refresh().await;
    assert_eq!(server.registry.snapshot().changes.prompts, before);
    assert_eq!(got(&client, "triage").await.1, json!(1));
    assert_eq!(got(&client, "triage@latest").await.1, json!(4));

    // the label moves: the served text is another, and everyone is told
    library.publish(&[("labels.toml", "[production]\ntriage = \"v4\"\n")]);
    server.refresh().await;
    let snapshot = server.registry.snapshot();
    assert_eq!(snapshot.changes.prompts, snapshot.generation);
    assert_eq!(got(&client, "triage").await.0, "head 2 four\n|runbook 3");
    // and back
    library.publish(&[("labels.toml", "[production]\ntriage = \"v1\"\n")]);
    server.refresh().await;
    assert_eq!(got(&client, "triage").await.0, "head 1 one\n|runbook 3");

    // those without it are hidden, where the library says so
    library.publish(&[(
        "cuebook.toml",
        "serve = \"production\"\nunlabelled = \"hidden\"\n",
    )]);
    server.refresh().await;
    let list = listed(client.call("prompts/list", json!({})).await);
    assert_eq!(list, [("triage".into(), "About one".into())]);
    fails(&client, "other", "there is no prompt `other`").await;
    assert_eq!(got(&client, "other@latest").await.0, "other");

    // V2: without the label it is hidden at once
    library.publish(&[("labels.toml", "")]);
    server.refresh().await;
    assert_eq!(listed(client.call("prompts/list", json!({})).await), []);
    fails(&client, "triage", "there is no prompt `triage`").await;
}

#[tokio::test]
async fn a_served_label_on_what_does_not_pass_keeps_the_commit_from_being_served() {
    let (library, _) = three();
    library.publish(&[
        ("cuebook.toml", "serve = \"production\"\n"),
        ("labels.toml", "[production]\ntriage = \"v1\"\n"),
        ("prompts/sre/triage.md", "plain"),
    ]);
    let server = TestServer::start(&library).await;
    let client = Client::modern(&server);
    assert_eq!(got(&client, "triage").await.1, json!(1));
    // v1 needs the runbooks that this removes
    library.remove("resources/runbook/r.md");
    library.publish(&[]);
    server.refresh().await;
    let status = server.registry.snapshot().status.clone();
    assert_ne!(status.served, status.tip);
    assert!(
        status.tip_problems[0].starts_with("labels.toml:2:10: label `production` serves `triage` v1, which does not pass the check: prompts/sre/triage.md:"),
        "{:?}",
        status.tip_problems
    );
    assert_eq!(got(&client, "triage").await.0, "head 1 one\n|runbook 3");
    // a version that does not exist
    library.publish(&[
        ("resources/runbook/r.md", "back"),
        ("labels.toml", "[production]\ntriage = \"v8\"\n"),
    ]);
    server.refresh().await;
    let status = server.registry.snapshot().status.clone();
    assert_eq!(
        status.tip_problems,
        ["labels.toml:2:10: label `production` is on v8 of `triage`, which does not exist"]
    );
    library.publish(&[("labels.toml", "[production]\ntriage = \"v4\"\n")]);
    server.refresh().await;
    assert_eq!(got(&client, "triage").await.0, "plain");
}

#[tokio::test]
async fn while_versions_are_counted_everything_else_works_and_it_is_said() {
    let (library, commits) = three();
    library.publish(&[("labels.toml", "[production]\ntriage = \"v1\"\n")]);
    let server = TestServer::uncounted(&library).await;
    let client = Client::modern(&server);
    let counting = "the versions of the prompts are being numbered, 0 of all commits are read; try again in a moment";
    for name in ["triage@v1", "triage@production"] {
        let (_, code, message) = client.fail("prompts/get", json!({ "name": name })).await;
        assert_eq!((code, &*message), (-32603, counting));
    }
    assert_eq!(got(&client, "triage").await.1, Value::Null);
    assert_eq!(
        got(&client, &format!("triage@{}", commits[0])).await.1,
        Value::Null
    );
    let ready = crate::support::http::send(server.address, "GET", "/readyz", &[], b"")
        .await
        .json();
    assert_eq!(ready["status"], "ready");
    assert!(
        ready["messages"][0]
            .as_str()
            .unwrap()
            .contains("are being numbered"),
        "{ready}"
    );
    library.publish(&[("prompts/review/other.md", "another")]);
    server.refresh().await;
    assert_eq!(got(&client, "other").await.0, "another");
    // the count, and a publish after it
    server.registry.count().unwrap();
    assert_eq!(got(&client, "triage@production").await.1, json!(1));
    assert_eq!(got(&client, "other").await.1, json!(2));
    library.publish(&[("prompts/review/other.md", "a third")]);
    server.refresh().await;
    assert_eq!(got(&client, "other").await.1, json!(3));
    // main is rewound behind the server's back: counted again
    crate::support::library::git(
        &library.clone(),
        &["reset", "--quiet", "--hard", &commits[1]],
    );
    library.publish_by_force(&[("prompts/review/other.md", "rewound")]);
    server.refresh().await;
    assert_eq!(got(&client, "other").await.1, Value::Null);
    server.registry.count().unwrap();
    assert_eq!(got(&client, "other").await.1, json!(2));
    assert_eq!(got(&client, "triage").await.1, json!(2));
    let ready = crate::support::http::send(server.address, "GET", "/readyz", &[], b"")
        .await
        .json();
    assert_eq!(ready["messages"], Value::Null, "{ready}");
}

#[tokio::test]
async fn a_work_tree_has_no_versions_and_says_so() {
    let (library, _) = three();
    let server = TestServer::of_work_tree(&library).await;
    let client = Client::modern(&server);
    fails(
        &client,
        "triage@v1",
        "there are no versions here, because the files of a work tree are served",
    )
    .await;
    assert_eq!(got(&client, "triage").await.1, Value::Null);
}
