//! No template can hurt the server: every hostile one through the check, a push, a preview and a get ends as it should,
//! and then the next request is answered as if nothing had been.

mod lanes;
mod limits;
mod sandbox;
mod templates;

use std::collections::BTreeMap;

use cuebook::catalog::{MemoryTree, Revision};
use cuebook::prompt::{Limits, Problem};
use cuebook::registry::check;
use cuebook::workers::Renderer;
use serde_json::{Value, json};

use self::templates::{Case, Expected, fixture, large, siblings};
use crate::support::http::send;
use crate::support::library::TestLibrary;
use crate::support::mcp::Client;
use crate::support::renderer;
use crate::support::server::TestServer;

const CALM: &str = "---\ndescription: D\narguments:\n  - name: name\n---\nHello {{ name }}.\n";

fn all() -> Vec<Case> {
    let mut all = fixture();
    all.extend(large());
    all.extend(siblings());
    all
}

/// Bytes of this process that were in memory at its fullest (Linux; 0 elsewhere).
fn peak_bytes() -> u64 {
    status_number("VmHWM:") * 1024
}

fn status_number(key: &str) -> u64 {
    let Ok(status) = std::fs::read_to_string("/proc/self/status") else {
        return 0;
    };
    let line = status.lines().find(|line| line.starts_with(key)).unwrap();
    line.split_whitespace().nth(1).unwrap().parse().unwrap()
}

/// Processes whose parent this one is, zombies included (Linux; none elsewhere).
pub(crate) fn children() -> Vec<u32> {
    let me = std::process::id();
    let Ok(folder) = std::fs::read_dir("/proc") else {
        return Vec::new();
    };
    folder
        .filter_map(|entry| entry.ok()?.file_name().to_str()?.parse::<u32>().ok())
        .filter(|pid| {
            std::fs::read_to_string(format!("/proc/{pid}/stat")).is_ok_and(|stat| {
                // the name in brackets may hold anything
                let after = stat.rsplit(')').next().unwrap_or_default();
                after.split_whitespace().nth(1) == Some(&me.to_string())
            })
        })
        .collect()
}

/// What this process may have held at its fullest: the library, its index and the requests; no template's wishes.
const PEAK_BYTES: u64 = 600 * 1024 * 1024;

#[test]
fn at_the_check_each_ends_as_expected() {
    let renderer = renderer();
    for case in all() {
        let errors = checked(&renderer, &case);
        match case.expected {
            Expected::Refused => assert!(!errors.is_empty(), "{} is published", case.name),
            Expected::Rendered => assert_eq!(errors, Vec::<String>::new(), "{}", case.name),
            Expected::Either => {}
        }
        // and the next one as usual
        let calm = Case {
            name: "calm".into(),
            expected: Expected::Rendered,
            body: "{% for i in name | split(pat=',') %}{{ i }}{% endfor %}".into(),
            partials: BTreeMap::new(),
        };
        assert_eq!(
            checked(&renderer, &calm),
            Vec::<String>::new(),
            "{}",
            case.name
        );
    }
    drop(renderer);
    assert_eq!(children(), Vec::<u32>::new());
    assert!(peak_bytes() < PEAK_BYTES, "{}", peak_bytes());
}

fn checked(renderer: &Renderer, case: &Case) -> Vec<String> {
    let tree = case
        .files()
        .into_iter()
        .fold(MemoryTree::default(), |tree, (path, text)| {
            tree.with(&path, text)
        });
    let built = check(
        &tree,
        Revision::WorkTree,
        &Limits::default(),
        None,
        renderer,
    )
    .unwrap();
    let errors = built.problems.iter().filter(|p| p.is_error());
    errors.map(Problem::one_line).collect()
}

#[tokio::test(flavor = "multi_thread")]
async fn a_push_of_all_of_them_changes_nothing_that_is_served() {
    let library = TestLibrary::with(&[("prompts/calm.md", CALM)]);
    let server = TestServer::start(&library).await;
    let served = server.registry.snapshot().status.served.clone();
    for case in all() {
        for (path, text) in case.files() {
            library.write_bytes(&path, text.as_bytes());
        }
    }
    library.commit("attack");
    library.push();
    server.refresh().await;
    let snapshot = server.registry.snapshot();
    assert_eq!(snapshot.status.served, served);
    assert!(snapshot.status.tip_problem_count > 80);
    calm(&Client::modern(&server)).await;
    assert!(peak_bytes() < PEAK_BYTES, "{}", peak_bytes());
}

/// The beginning of an answer that may be a megabyte.
fn short(answer: &Value) -> String {
    answer.to_string().chars().take(500).collect()
}

async fn calm(client: &Client) {
    let texts = client.texts("calm", json!({ "name": "Ada" })).await;
    assert_eq!(texts, ["Hello Ada.\n"]);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_get_of_one_that_slept_through_the_gate_is_an_error_and_nothing_more() {
    let library = TestLibrary::empty();
    let mut cases = Vec::new();
    let gate = renderer();
    for case in all() {
        let asleep = case.asleep();
        let gate = gate.clone();
        let found = tokio::task::spawn_blocking(move || (checked(&gate, &asleep), asleep));
        let (errors, asleep) = found.await.unwrap();
        if errors.is_empty() {
            for (path, text) in asleep.files() {
                library.write_bytes(&path, text.as_bytes());
            }
            cases.push(asleep);
        }
    }
    assert!(cases.len() > 40, "{}", cases.len());
    library.publish(&[("prompts/calm.md", CALM)]);
    let server = TestServer::start(&library).await;
    assert!(!server.registry.snapshot().status.partial);
    let client = Client::modern(&server);
    let big = "x".repeat(10_000);
    for case in &cases {
        let arguments: BTreeMap<&str, &str> = case
            .arguments()
            .into_iter()
            .map(|name| match name {
                "mode" => (name, "attack"),
                "big" => (name, big.as_str()),
                name => {
                    let found = templates::ARGUMENTS.iter().find(|(n, _)| *n == name);
                    (name, found.unwrap().1)
                }
            })
            .collect();
        let params = json!({ "name": case.name, "arguments": arguments });
        let got = client.exchange("prompts/get", params).await.json();
        let text = got["result"]["messages"][0]["content"]["text"].as_str();
        match case.expected {
            Expected::Refused => {
                let message = got["error"]["message"].as_str();
                assert!(message.is_some(), "{}: {}", case.name, short(&got));
            }
            Expected::Rendered => assert!(text.unwrap().ends_with("calm"), "{}", short(&got)),
            Expected::Either => assert!(
                text.is_some() || got["error"].is_object(),
                "{}",
                short(&got)
            ),
        }
        calm(&client).await;
    }
    server.stop().await;
    drop(gate);
    assert!(peak_bytes() < PEAK_BYTES, "{}", peak_bytes());
}

#[tokio::test(flavor = "multi_thread")]
async fn a_preview_of_each_answers_with_problems() {
    let library = TestLibrary::with(&[("prompts/calm.md", CALM)]);
    let server = TestServer::start(&library).await;
    let client = Client::modern(&server);
    let big = "x".repeat(10_000);
    for case in all() {
        let mut arguments: BTreeMap<&str, &str> = templates::ARGUMENTS.iter().copied().collect();
        arguments.insert("big", &big);
        let files: BTreeMap<String, String> = case
            .files()
            .into_iter()
            .filter(|(path, _)| path.starts_with("partials/"))
            .collect();
        let ask = json!({
            "path": format!("prompts/hostile/{}.md", case.name),
            "text": case.prompt(), "arguments": arguments, "files": files,
        });
        let (status, answer) = preview(&server, &ask).await;
        if ask.to_string().len() > 2 * 1024 * 1024 {
            assert_eq!(status, 413, "{}: {}", case.name, short(&answer));
            continue;
        }
        assert_eq!(status, 200, "{}: {}", case.name, short(&answer));
        let problems = answer["problems"].as_array().unwrap();
        let messages = answer["messages"].as_array().unwrap();
        let has_error = problems.iter().any(|p| p["severity"] == "error");
        match case.expected {
            Expected::Refused => assert!(has_error, "{}: {}", case.name, short(&answer)),
            Expected::Rendered => assert!(!has_error && messages.len() == 1),
            Expected::Either => assert!(has_error || messages.len() < 2),
        }
        calm(&client).await;
    }
    server.stop().await;
    assert!(peak_bytes() < PEAK_BYTES, "{}", peak_bytes());
}

/// One request for a preview.
pub(super) async fn preview(server: &TestServer, ask: &Value) -> (u16, Value) {
    let reply = send(
        server.address,
        "POST",
        "/api/v1/preview",
        &[("Content-Type", "application/json")],
        ask.to_string().as_bytes(),
    )
    .await;
    (reply.status, reply.json())
}
