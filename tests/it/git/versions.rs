//! Versions of a data directory that is served: kept over restarts, the same without the database, checked at a push.

use super::*;

/// What a name gives: its text and its version.
async fn got(host: &Host, name: &str) -> (String, Value) {
    let got = host.client().get(name, json!({})).await;
    let text = got["messages"][0]["content"]["text"]
        .as_str()
        .unwrap()
        .to_owned();
    (text, got["_meta"]["dev.cuebook/source"]["version"].clone())
}

/// The version of a prompt once versions are known.
async fn version(host: &Host, name: &str) -> u64 {
    soon("the versions", async {
        loop {
            if let Some(version) = got(host, name).await.1.as_u64() {
                return version;
            }
            tokio::time::sleep(std::time::Duration::from_millis(5)).await;
        }
    })
    .await
}

/// The tip that the database says its versions reach, read by a connection of its own.
async fn kept_tip(data_dir: &Path) -> String {
    use sqlx::Connection as _;
    let options = sqlx::sqlite::SqliteConnectOptions::new()
        .filename(data_dir.join("cuebook.db"))
        .read_only(true);
    let mut connection = sqlx::SqliteConnection::connect_with(&options)
        .await
        .unwrap();
    let tip: Option<String> = sqlx::query_scalar("SELECT tip FROM version_state")
        .fetch_optional(&mut connection)
        .await
        .unwrap();
    tip.unwrap_or_default()
}

async fn kept_up(host: &Host) {
    let main = host.main();
    soon("the versions to be written", async {
        while kept_tip(&host.data_dir()).await != main {
            tokio::time::sleep(std::time::Duration::from_millis(5)).await;
        }
    })
    .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn v3_versions_are_the_same_without_the_database() {
    let mut host = Host::small().await;
    let work = host.work("author");
    for text in ["second", "third"] {
        work.publish(&[("prompts/sre/after.md", &prompt(text))]);
    }
    work.publish(&[("labels.toml", "[production]\nafter = \"v2\"\n")]);
    let latest = version(&host, "after").await;
    assert_eq!(latest, 3);
    let mut before = Vec::new();
    for name in [
        "after",
        "after@v1",
        "after@v2",
        "after@v3",
        "after@production",
    ] {
        before.push((name, got(&host, name).await));
    }
    let same = async |host: &Host, when: &str| {
        version(host, "after").await;
        for (name, expected) in &before {
            assert_eq!(&got(host, name).await, expected, "{name} {when}");
        }
    };
    kept_up(&host).await;
    host.stop().await;
    host.start_again().await;
    // kept: known from the first answer on
    assert_eq!(got(&host, "after").await.1, json!(3));
    same(&host, "after a restart").await;
    host.stop().await;
    for file in ["cuebook.db", "cuebook.db-wal", "cuebook.db-shm"] {
        let _ = std::fs::remove_file(host.data_dir().join(file));
    }
    host.start_again().await;
    same(&host, "without the database").await;
    kept_up(&host).await;
    host.stop().await;
    std::fs::write(host.data_dir().join("cuebook.db"), "this is no database").unwrap();
    for file in ["cuebook.db-wal", "cuebook.db-shm"] {
        let _ = std::fs::remove_file(host.data_dir().join(file));
    }
    host.start_again().await;
    same(&host, "with a damaged database").await;
    work.publish(&[("prompts/sre/after.md", &prompt("fourth"))]);
    assert_eq!(got(&host, "after").await, ("fourth\n".into(), json!(4)));
    host.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_push_may_label_only_versions_that_exist() {
    let mut host = Host::small().await;
    let work = host.work("author");
    version(&host, "after").await;
    work.change(&[("labels.toml", "[production]\nafter = \"v2\"\n")]);
    let main = host.main();
    let refused = work.push();
    assert!(!refused.ok);
    refused.says("labels.toml:2:9: label `production` is on v2 of `after`, which does not exist");
    assert_eq!(host.main(), main);
    // the version that the same push makes does
    work.change(&[("prompts/sre/after.md", &prompt("second"))]);
    let taken = work.push();
    assert!(taken.ok, "{}", taken.text);
    assert_eq!(
        got(&host, "after@production").await,
        ("second\n".into(), json!(2))
    );
    host.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_push_may_not_break_what_a_label_serves() {
    let mut host = Host::small().await;
    let work = host.work("author");
    let needs = "---\nresources: [{ name: r, uri: \"doc://r\" }]\n---\nfirst\n";
    work.publish(&[("prompts/a.md", needs), ("resources/doc/r.md", "r")]);
    work.publish(&[
        ("prompts/a.md", "second\n"),
        ("cuebook.toml", "serve = \"production\"\n"),
        ("labels.toml", "[production]\na = \"v1\"\n"),
    ]);
    assert_eq!(got(&host, "a").await, ("first\n".into(), json!(1)));
    work.remove("resources/doc/r.md");
    work.change(&[]);
    let refused = work.push();
    assert!(!refused.ok);
    refused.says("labels.toml:2:5: label `production` serves `a` v1, which does not pass the check: prompts/a.md:");
    // a check of the clone knows no versions, so it is not said to find this
    refused.says("Mend it, commit, push again.");
    refused.says_not("cuebook check");
    assert_eq!(got(&host, "a").await, ("first\n".into(), json!(1)));
    host.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn rows_are_whole_after_publishes_beside_verify_and_reindex() {
    let mut host = Host::small().await;
    version(&host, "after").await;
    let looked = async |path: &str| {
        let headers = [("Content-Type", "application/json")];
        let reply = send(host.address, "POST", path, &headers, b"{}").await;
        assert_eq!(reply.status, 200, "{}", reply.text());
        let said = reply.json();
        assert_eq!(said["ok"], true, "{path}: {said}");
        said
    };
    let work = host.work("author");
    let publishing = tokio::task::spawn_blocking(move || {
        for i in 0..12 {
            let name = format!("prompts/new{i}.md");
            work.publish(&[
                ("prompts/sre/after.md", &prompt(&format!("text {i}"))),
                (&name, &prompt("new")),
            ]);
        }
    });
    let mut rounds = 0;
    while !publishing.is_finished() || rounds == 0 {
        // one of them at a time, as the API has it
        looked("/api/v1/verify").await;
        looked("/api/v1/reindex").await;
        rounds += 1;
    }
    publishing.await.unwrap();
    kept_up(&host).await;
    let before = looked("/api/v1/verify").await;
    host.stop().await;
    host.start_again().await;
    let headers = [("Content-Type", "application/json")];
    let reply = send(host.address, "POST", "/api/v1/verify", &headers, b"{}").await;
    let after = reply.json();
    assert_eq!(after["ok"], true, "{after}");
    let rows = |said: &Value| {
        let tables = said["tables"].as_array().unwrap();
        tables
            .iter()
            .find(|table| table["name"] == "versions")
            .unwrap()["rows"]
            .clone()
    };
    assert_eq!(rows(&before), rows(&after));
    assert_eq!(got(&host, "after").await.1, json!(13));
    host.stop().await;
}
