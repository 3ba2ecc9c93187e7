//! The ways in: the API, the command on a server, the command on a clone.

use std::process::{Command, Output};

use cuebook::config::Config;
use cuebook::search::Page;
use cuebook::server::{Running, Serve, start};
use tempfile::TempDir;

use super::*;
use crate::support::http::send;
use crate::support::library::git;
use crate::support::soon;

/// A server of a data directory that holds a library.
pub(super) async fn serve(folder: &TempDir, library: &TestLibrary) -> Running {
    let data = folder.path().join("data");
    std::fs::create_dir(&data).unwrap();
    let to = data.join("library.git");
    let paths = [library.bare(), to].map(|path| path.to_str().unwrap().to_owned());
    git(
        folder.path(),
        &["clone", "--quiet", "--bare", &paths[0], &paths[1]],
    );
    let mut config = Config::default();
    config.listen = "127.0.0.1:0".parse().unwrap();
    config.program = env!("CARGO_BIN_EXE_cuebook").into();
    config.rendering.executable = env!("CARGO_BIN_EXE_cuebook").into();
    let serve = Serve::DataDir {
        path: data,
        starter: None,
    };
    start(serve, &config).await.unwrap()
}

async fn get(address: std::net::SocketAddr, query: &str) -> (u16, Value) {
    let reply = send(address, "GET", &format!("/api/v1/search?{query}"), &[], b"").await;
    (reply.status, reply.json())
}

async fn cuebook(at: &Path, arguments: &[&str]) -> Output {
    let mut command = Command::new(env!("CARGO_BIN_EXE_cuebook"));
    command.args(arguments).current_dir(at);
    tokio::task::spawn_blocking(move || command.output().unwrap())
        .await
        .unwrap()
}

fn stdout(output: &Output) -> String {
    String::from_utf8(output.stdout.clone()).unwrap()
}

#[tokio::test(flavor = "multi_thread")]
async fn the_api_and_the_command_answer_alike() {
    let folder = TempDir::new().unwrap();
    let library = TestLibrary::with(FILES);
    let running = serve(&folder, &library).await;
    let address = running.address;
    let (status, page) = soon("the index", async {
        loop {
            let answer = get(address, "q=%EA%B2%B0%EC%A0%9C").await;
            if answer.1["index"] == "current" {
                return answer;
            }
            tokio::time::sleep(std::time::Duration::from_millis(10)).await;
        }
    })
    .await;
    assert_eq!(status, 200);
    let page: Page = serde_json::from_value(page).unwrap();
    assert_eq!(page.total, 2);
    assert_eq!(page.hits[0].name, "payment-outage");
    assert_eq!(page.hits[0].folder.as_deref(), Some("sre"));
    assert_eq!(page.hits[0].matches[0].ranges, [[0, 6]]);
    assert_eq!(page.hits[1].name, "runbook://payments");
    assert_eq!(page.revision, running.registry.snapshot().status.served);
    // pages
    let (_, first) = get(address, "q=outage&limit=1").await;
    assert_eq!(first["hits"][0]["name"], "payment-outage");
    let cursor = first["next_cursor"].as_str().unwrap();
    let (_, second) = get(address, &format!("q=outage&limit=1&cursor={cursor}")).await;
    assert_eq!(second["hits"][0]["name"], "code-review");
    assert_eq!(second.get("next_cursor"), None);
    // narrowed
    for (query, total) in [
        ("q=outage&folder=review", 1),
        ("q=%EA%B2%B0%EC%A0%9C&kind=prompt", 1),
        ("q=tag%3Aincident+outage", 1),
        ("", 3),
        ("q=%22+%2A", 1),
        ("q=%00%FF%F0", 0),
        ("q=NEAR%28", 0),
    ] {
        let (status, page) = get(address, query).await;
        assert_eq!(
            (status, &page["total"]),
            (200, &json!(total)),
            "{query} {page}"
        );
    }
    for query in ["limit=0", "limit=x", "limit=201", "cursor=!", "kind=x"] {
        let (status, problem) = get(address, query).await;
        assert_eq!(status, 400, "{query}");
        let name = query.split('=').next().unwrap();
        assert!(
            problem["detail"].as_str().unwrap().contains(name),
            "{problem}"
        );
    }
    // the command asks the server
    let data = folder.path().join("data");
    let data = data.to_str().unwrap();
    let ran = cuebook(
        folder.path(),
        &["search", "전화", "--data-dir", data, "--format", "json"],
    )
    .await;
    let of_command: Page = serde_json::from_slice(&ran.stdout).unwrap();
    let (_, of_api) = get(address, "q=%EC%A0%84%ED%99%94").await;
    assert_eq!(serde_json::to_value(&of_command).unwrap(), of_api);
    let ran = cuebook(folder.path(), &["search", "zzz", "--data-dir", data]).await;
    assert_eq!(
        (ran.status.code(), &*stdout(&ran)),
        (Some(1), "nothing fits\n")
    );
    // verify and reindex know of it
    for command in ["verify", "reindex"] {
        let ran = cuebook(folder.path(), &[command, "--data-dir", data]).await;
        assert!(ran.status.success(), "{ran:?}");
        assert!(
            stdout(&ran).contains("search: 4 rows, as git says"),
            "{ran:?}"
        );
    }
    running.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_clone_is_searched_with_its_edits() {
    let library = TestLibrary::with(FILES);
    library.write_bytes(
        "prompts/draft.md",
        b"---\ntitle: Draft\ndescription: Not committed\n---\nA zebra\x1b[31m crossing.\n",
    );
    let at = library.clone();
    let ran = cuebook(&at, &["search", "--library", ".", "zebra"]).await;
    assert_eq!(
        stdout(&ran),
        "draft  Draft\n  prompts/draft.md:5: A zebra␛[31m crossing.\n",
        "{ran:?}"
    );
    let ran = cuebook(&at, &["search", "--library", ".", "장애", "--limit", "1"]).await;
    assert_eq!(
        stdout(&ran),
        "payment-outage  결제장애대응\n  결제가 멈췄을 때 처음 하는 일\n",
        "{ran:?}"
    );
    let ran = cuebook(
        &at,
        &[
            "search",
            "--library",
            "../library.git",
            "--format",
            "json",
            "--",
            "-x",
        ],
    )
    .await;
    let page: Page = serde_json::from_slice(&ran.stdout).unwrap();
    assert_eq!((page.total, page.index), (0, Index::Scan));
    assert_eq!(ran.status.code(), Some(1));
}
