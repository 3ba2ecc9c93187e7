//! Use, deliveries and values colleagues used: what calls leave in the database, and what they do not.

use std::time::Duration;

use std::sync::Arc;

use cuebook::git::Repository;
use cuebook::records::{
    Get, Given, Lost, MAX_CLIENTS, OTHER, Outcome, QUEUE, Recents, Records, Via, calendar, report,
    sweep,
};
use cuebook::store::{Batch, DeliveryFilter, DeliveryRow, Store, UsageRow};
use sqlx::Connection as _;

use super::*;
use crate::support::library::TestLibrary;

/// One argument of every kind that matters here.
const ROUTE: &str = "---
description: Routes an alert
arguments:
  - { name: service, required: true, values: { list: [payments, search], recent: true } }
  - { name: note }
  - { name: secret, values: { recent: true } }
resources:
  - { name: runbook, uri: \"runbook://{{ service }}\", required: false, as: text }
---
{{ service }}: {{ note }} {{ secret }}

<!-- resource: runbook -->
";

fn records(host: &Host) -> &Records {
    host.running.as_ref().unwrap().records.as_ref().unwrap()
}

fn store(host: &Host) -> &Store {
    records(host).store().unwrap()
}

/// All use of a prompt, once as many calls as these have been counted.
async fn counted(host: &Host, prompt: &str, calls: i64) -> Vec<UsageRow> {
    soon("the calls to be counted", async {
        loop {
            let rows = store(host).usage(0, i64::MAX, Some(prompt)).await.unwrap();
            let all: i64 = rows.iter().map(|r| r.gets + r.failed + r.refused).sum();
            if all >= calls {
                return rows;
            }
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
    })
    .await
}

/// The newest deliveries, once there are as many, of which some may be one row.
async fn delivered(store: &Store, filter: &DeliveryFilter, rows: usize) -> Vec<DeliveryRow> {
    soon("the deliveries to be written", async {
        loop {
            let found = store.deliveries(filter, 1000).await.unwrap();
            let times: i64 = found.iter().map(|row| row.times).sum();
            if usize::try_from(times).unwrap() >= rows {
                return found;
            }
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
    })
    .await
}

fn named(host: &Host, name: &'static str) -> Client {
    Client {
        name,
        ..host.client()
    }
}

async fn with_route() -> Host {
    let host = Host::small().await;
    host.work("route")
        .publish(&[("prompts/sre/route.md", ROUTE)]);
    host
}

fn values(recents: &Recents, argument: &str) -> Vec<String> {
    let recent = recents.get("route", argument);
    recent.iter().map(|r| r.value.to_string()).collect()
}

/// Whether a text is anywhere in the files of the database.
fn is_in_database(host: &Host, text: &str) -> bool {
    ["cuebook.db", "cuebook.db-wal"].iter().any(|name| {
        let bytes = std::fs::read(host.data_dir().join(name)).unwrap_or_default();
        bytes
            .windows(text.len())
            .any(|part| part == text.as_bytes())
    })
}

#[tokio::test(flavor = "multi_thread")]
async fn use_is_counted_by_prompt_client_and_outcome_and_holds_no_values() {
    let mut host = with_route().await;
    let zed = named(&host, "Zed");
    let marked = "marked-value-5b1f";
    zed.texts("route", json!({ "service": "payments", "note": marked }))
        .await;
    zed.texts("route", json!({ "service": "billing", "note": marked }))
        .await;
    let vscode = named(&host, "Visual Studio Code");
    vscode
        .texts("route", json!({ "service": "search", "note": "PAYMENTS" }))
        .await;
    // a required argument is missing
    let refused = vscode
        .fail("prompts/get", json!({ "name": "route", "arguments": {} }))
        .await;
    assert_eq!(refused.1, -32602);
    // a client that puts the values in by itself asks for everything at its start
    named(&host, "opencode")
        .texts("route", json!({ "service": "$1", "note": "$2" }))
        .await;
    let rows = counted(&host, "route", 4).await;
    let mut seen: Vec<_> = rows
        .iter()
        .map(|r| (r.client.as_str(), r.gets, r.refused, r.failed, r.picks))
        .collect();
    seen.sort_unstable();
    assert_eq!(
        seen,
        [("Visual Studio Code", 1, 1, 0, 1), ("Zed", 2, 0, 0, 1)],
        "{rows:?}"
    );
    assert!(rows.iter().all(|row| row.micros_max > 0
        && row.micros_sum >= row.micros_max
        && row.day == calendar::day(cuebook::clock::unix_millis())));
    // the delivery of the placeholder is one all the same, and says so
    let all = delivered(store(&host), &DeliveryFilter::default(), 4).await;
    let placeholders: Vec<_> = all.iter().filter(|row| row.placeholder).collect();
    assert_eq!(placeholders.len(), 1);
    assert_eq!(placeholders[0].client, "opencode");
    let latency = store(&host).latency(0, i64::MAX, None).await.unwrap();
    assert_eq!(latency.iter().map(|row| row.gets).sum::<i64>(), 3);
    let names = ["route", "triage", "after", "code-review"];
    let today = calendar::day(cuebook::clock::unix_millis());
    let by_version = store(&host)
        .usage_by_version(today - 1, today, None)
        .await
        .unwrap();
    let by_client = store(&host)
        .gets_by_client(today - 1, today, Some("route"))
        .await
        .unwrap();
    assert_eq!(by_version.len(), 1, "{by_version:?}");
    assert_eq!((by_version[0].gets, by_version[0].refused), (3, 1));
    let report = report::usage(&by_version, &by_client, &latency, &[], names.into_iter());
    assert_eq!(report.unused, ["after", "code-review", "triage"]);
    assert_eq!(report.prompts[0].clients[0].client, "Zed");
    assert!(report.prompts[0].all.p95_ms.unwrap() <= report.prompts[0].all.max_ms);
    // the value of an argument that offers none, and the text that was delivered, are nowhere
    host.stop().await;
    assert!(is_in_database(&host, "route"));
    assert!(!is_in_database(&host, marked));
    assert!(!is_in_database(&host, "PAYMENTS"));
}

#[tokio::test(flavor = "multi_thread")]
async fn which_text_was_used_at_a_time_with_which_runbook() {
    let host = with_route().await;
    let work = host.work("work");
    let commit = host.main();
    let before = cuebook::clock::unix_millis();
    let client = named(&host, "on-call");
    client
        .texts("route", json!({ "service": "payments" }))
        .await;
    let tool = client
        .call(
            "tools/call",
            json!({ "name": "get_prompt", "arguments": { "name": "route", "arguments": { "service": "nothing-there" } } }),
        )
        .await;
    assert_eq!(tool["isError"], false);
    let after = cuebook::clock::unix_millis();
    work.publish(&[
        ("prompts/sre/route.md", &ROUTE.replace("Routes", "Sends")),
        ("resources/runbook/payments.md", "# Payments, newer\n"),
    ]);
    client
        .texts("route", json!({ "service": "payments" }))
        .await;
    let rows = delivered(store(&host), &DeliveryFilter::default(), 3).await;
    assert_eq!(
        rows.iter().map(|row| row.seq).collect::<Vec<_>>(),
        [3, 2, 1]
    );
    let then = DeliveryFilter {
        from: Some(before),
        before: Some(after + 1),
        prompt: Some("route".into()),
        actor: Some("local".into()),
        ..DeliveryFilter::default()
    };
    let rows = store(&host).deliveries(&then, 10).await.unwrap();
    let [by_tool, by_prompt] = &rows[..] else {
        panic!("{rows:?}")
    };
    assert_eq!((&*by_tool.via, &*by_tool.resources), ("tool", "[]"));
    assert_eq!(by_prompt.via, "prompt");
    assert_eq!(by_prompt.revision.as_deref(), Some(&*commit));
    assert_eq!(by_prompt.path, "prompts/sre/route.md");
    // the row leads to the very bytes
    let stored = git_with_input(
        &host.bare(),
        &[
            "cat-file",
            "blob",
            &format!("{commit}:prompts/sre/route.md"),
        ],
        b"",
    );
    assert_eq!(by_prompt.sha256, sha256(&stored));
    let resources: Value = serde_json::from_str(&by_prompt.resources).unwrap();
    assert_eq!(
        resources,
        json!([{
            "uri": "runbook://payments",
            "path": "resources/runbook/payments.md",
            "sha256": sha256(b"# Payments\n"),
        }])
    );
    let none = DeliveryFilter {
        before: Some(before),
        ..DeliveryFilter::default()
    };
    assert_eq!(store(&host).deliveries(&none, 10).await.unwrap(), []);
}

fn sha256(bytes: &[u8]) -> String {
    use sha2::Digest as _;
    let digest = sha2::Sha256::digest(bytes);
    digest.iter().map(|byte| format!("{byte:02x}")).collect()
}

#[tokio::test(flavor = "multi_thread")]
async fn values_are_kept_where_they_are_asked_for_and_can_be_erased() {
    let mut host = with_route().await;
    let client = host.client();
    let secret = "ghp_x7Kq2mZp9RtVw4LbNc8YdFs3JhGa6TeUoXiQ";
    let long = "v".repeat(257);
    for (service, key) in [
        ("orders-7731", secret),
        ("orders-7731", "plain-one"),
        ("ledger-9004", &*long),
        ("$1", "{{secret}}"),
    ] {
        let arguments = json!({ "service": service, "note": "never-kept", "secret": key });
        client.texts("route", arguments).await;
    }
    delivered(store(&host), &DeliveryFilter::default(), 4).await;
    let recents = records(&host).recents();
    assert_eq!(values(recents, "service"), ["orders-7731", "ledger-9004"]);
    assert_eq!(values(recents, "secret"), ["plain-one"]);
    assert_eq!(values(recents, "note"), Vec::<String>::new());
    // a colleague is offered them
    let asked = json!({
        "ref": { "type": "ref/prompt", "name": "route" },
        "argument": { "name": "service", "value": "ord" },
    });
    let offered = named(&host, "colleague")
        .call("completion/complete", asked)
        .await;
    assert_eq!(offered["completion"]["values"], json!(["orders-7731"]));

    // they are there after a restart
    host.stop().await;
    for never in [secret, &long, "never-kept"] {
        assert!(!is_in_database(&host, never), "{never}");
    }
    host.start_again().await;
    soon("the values to be loaded", async {
        while values(records(&host).recents(), "service").is_empty() {
            tokio::time::sleep(Duration::from_millis(10)).await;
        }
    })
    .await;
    let loaded = values(records(&host).recents(), "service");
    assert_eq!(loaded, ["orders-7731", "ledger-9004"]);

    // of one argument, also those that are not written yet; then of all
    host.client()
        .texts(
            "route",
            json!({ "service": "fresh-1188", "secret": "plain-two" }),
        )
        .await;
    let erased = records(&host)
        .erase_values(Some("route"), Some("service"))
        .await;
    assert_eq!(erased.unwrap(), 2);
    assert_eq!(
        values(records(&host).recents(), "service"),
        Vec::<String>::new()
    );
    assert_eq!(values(records(&host).recents(), "secret").len(), 2);
    records(&host).erase_values(None, None).await.unwrap();
    host.stop().await;
    for gone in ["orders-7731", "ledger-9004", "fresh-1188", "plain-one"] {
        assert!(!is_in_database(&host, gone), "{gone}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn clients_that_make_up_names_cost_no_row_each() {
    let host = Host::small().await;
    let many = MAX_CLIENTS + 40;
    for n in 0..many {
        let name: &'static str = Box::leak(format!("made-up-{n}").into_boxed_str());
        named(&host, name).texts("after", json!({})).await;
    }
    let rows = counted(&host, "after", i64::try_from(many).unwrap()).await;
    assert_eq!(rows.len(), MAX_CLIENTS + 1);
    let other = rows.iter().find(|row| row.client == OTHER).unwrap();
    assert_eq!(other.gets, 40);
    assert_eq!(records(&host).lost(), Lost::default());
}

#[tokio::test]
async fn records_are_kept_as_long_as_is_said() {
    let folder = tempfile::tempdir().unwrap();
    let store = Store::open(&folder.path().join("cuebook.db"))
        .await
        .unwrap();
    let now = 1_000 * calendar::DAY_MS;
    let row = |at| DeliveryRow {
        at,
        resources: "[]".into(),
        ..DeliveryRow::default()
    };
    let deliveries = (0..12_000).map(|n| row(n * calendar::DAY_MS / 12));
    let usage = (0..1000).map(|day| UsageRow {
        day,
        gets: 1,
        ..UsageRow::default()
    });
    let batch = Batch {
        deliveries: deliveries.collect(),
        usage: usage.collect(),
        ..Default::default()
    };
    store.write_records(&batch).await.unwrap();
    let settings = cuebook::records::Settings {
        deliveries_days: 100,
        deliveries_rows: 1_000_000,
        usage_days: 10,
        ..Default::default()
    };
    sweep(&store, &settings, now).await.unwrap();
    let kept = store.deliveries(&DeliveryFilter::default(), 100_000).await;
    assert_eq!(kept.unwrap().len(), 1200);
    assert_eq!(store.usage(0, 5000, None).await.unwrap().len(), 10);
    // by number, whatever their age
    let settings = cuebook::records::Settings {
        deliveries_rows: 7,
        ..settings
    };
    sweep(&store, &settings, now).await.unwrap();
    let kept = store
        .deliveries(&DeliveryFilter::default(), 100)
        .await
        .unwrap();
    assert_eq!(kept.iter().map(|row| row.seq).next_back(), Some(11_994));
    assert_eq!(kept.len(), 7);
    // the log is cut back
    let log = std::fs::metadata(folder.path().join("cuebook.db-wal")).unwrap();
    assert_eq!(log.len(), 0);
    // numbers go on
    store.write_records(&batch).await.unwrap();
    let newest = store
        .deliveries(&DeliveryFilter::default(), 1)
        .await
        .unwrap();
    assert_eq!(newest[0].seq, 24_000);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_running_server_removes_old_records_again_and_again() {
    let host = Host::small_with(|config| {
        config.records.deliveries_days = 3;
        config.records.usage_days = 3;
        config.records.first_sweep = Duration::from_millis(50);
        config.records.sweep_every = Duration::from_millis(50);
    })
    .await;
    let work = host.work("route");
    work.publish(&[("prompts/sre/route.md", ROUTE)]);
    host.client()
        .texts(
            "route",
            json!({ "service": "payments", "secret": "kept-3391" }),
        )
        .await;
    delivered(store(&host), &DeliveryFilter::default(), 1).await;
    assert_eq!(values(records(&host).recents(), "secret"), ["kept-3391"]);
    let now = cuebook::clock::unix_millis();
    for round in 0..3 {
        let old = Batch {
            deliveries: vec![DeliveryRow {
                at: now - 4 * calendar::DAY_MS,
                prompt: "old".into(),
                resources: "[]".into(),
                ..DeliveryRow::default()
            }],
            usage: vec![UsageRow {
                prompt: "old".into(),
                day: calendar::day(now) - 4,
                gets: 1,
                ..UsageRow::default()
            }],
            ..Batch::default()
        };
        store(&host).write_records(&old).await.unwrap();
        soon("the old to go", async {
            let filter = DeliveryFilter {
                prompt: Some("old".into()),
                ..DeliveryFilter::default()
            };
            loop {
                let rows = store(&host).deliveries(&filter, 10).await.unwrap();
                let usage = store(&host).usage(0, i64::MAX, Some("old")).await.unwrap();
                if rows.is_empty() && usage.is_empty() {
                    return;
                }
                tokio::time::sleep(Duration::from_millis(10)).await;
            }
        })
        .await;
        let left = store(&host)
            .deliveries(&DeliveryFilter::default(), 10)
            .await
            .unwrap();
        assert_eq!(left.len(), 1, "round {round}: what is new stays");
    }
    // values of an argument that offers them no more
    let closed = ROUTE.replace(", values: { recent: true } }\nresources", " }\nresources");
    assert_ne!(closed, ROUTE);
    work.publish(&[("prompts/sre/route.md", &closed)]);
    soon("the values to go", async {
        while !values(records(&host).recents(), "secret").is_empty() {
            tokio::time::sleep(Duration::from_millis(10)).await;
        }
    })
    .await;
    assert_eq!(values(records(&host).recents(), "service"), ["payments"]);
}

#[tokio::test(flavor = "multi_thread")]
async fn what_does_not_fit_into_the_queue_is_counted_as_lost() {
    let library = TestLibrary::with(&[("prompts/sre/after.md", &prompt("After."))]);
    let registry = crate::support::server::registry(&library).await;
    let folder = tempfile::tempdir().unwrap();
    let store = Store::open(&folder.path().join("cuebook.db"))
        .await
        .unwrap();
    let records = Arc::new(Records::new(
        folder.path(),
        Ok(store.clone()),
        cuebook::records::Settings::default(),
    ));
    let catalog = registry.snapshot().catalog.clone();
    let get = |outcome| Get {
        at: cuebook::clock::unix_millis(),
        actor: "local".into(),
        client: "test".into(),
        client_version: "1".into(),
        via: Via::Prompt,
        outcome,
        took: Duration::from_micros(200),
        prompt: catalog.prompt("after").unwrap().clone(),
        catalog: catalog.clone(),
        version: None,
        of: None,
        resources: Vec::new(),
        given: Given::default(),
    };
    // nobody takes them yet
    for _ in 0..QUEUE {
        records.got(get(Outcome::Delivered));
    }
    assert_eq!(records.lost(), Lost::default());
    for n in 0..500 {
        records.got(get(if n % 5 == 0 {
            Outcome::Refused
        } else {
            Outcome::Delivered
        }));
    }
    let lost = Lost {
        usage: 500,
        deliveries: 400,
    };
    assert_eq!(records.lost(), lost);
    let told = records.messages().join("\n");
    assert!(
        told.contains(
            "500 calls were not counted as use and 400 deliveries have no row: they came faster"
        ),
        "{told}"
    );
    let cancel = tokio_util::sync::CancellationToken::new();
    let running = tokio::spawn(records.clone().run(
        registry.clone(),
        Repository::open(&library.bare()).unwrap(),
        None,
        cancel.clone(),
    ));
    cancel.cancel();
    soon("the last to be written", running).await.unwrap();
    let usage = store.usage(0, i64::MAX, None).await.unwrap();
    let queued = i64::try_from(QUEUE).unwrap();
    assert_eq!(usage.iter().map(|row| row.gets).sum::<i64>(), queued);
    let losses = store.losses(0, i64::MAX).await.unwrap();
    let mut losses: Vec<_> = losses.iter().map(|row| (&*row.kind, row.lost)).collect();
    losses.sort_unstable();
    assert_eq!(losses, [("delivery", 400), ("usage", 500)]);
    // counted once
    assert_eq!(records.lost(), lost);
}

#[tokio::test(flavor = "multi_thread")]
async fn commands_tell_use_deliveries_and_the_audit() {
    let mut host = with_route().await;
    let commit = host.main();
    let client = named(&host, "on-call");
    client
        .texts(
            "route",
            json!({ "service": "payments", "note": "not-told" }),
        )
        .await;
    let row = delivered(store(&host), &DeliveryFilter::default(), 1)
        .await
        .remove(0);
    let at = calendar::show(row.at);
    let version = row.version.map_or(String::new(), |n| format!(" v{n}"));
    let cuebook = |data_dir: &Path, arguments: &[&str]| {
        let mut process = Command::new(env!("CARGO_BIN_EXE_cuebook"));
        process.args(arguments).arg("--data-dir").arg(data_dir);
        run(process)
    };
    // through the server that runs, then in the directory that none serves
    for running in [true, false] {
        if !running {
            host.stop().await;
        }
        let ran = |arguments: &[&str]| {
            let ran = cuebook(&host.data_dir(), arguments);
            assert!(ran.ok, "{arguments:?}: {}", ran.text);
            ran.says_not("not-told");
            ran
        };
        let told = ran(&["deliveries", "--at", &at[..16], "--prompt", "route"]);
        told.says(&format!("{at}  route{version}  to local by on-call"));
        told.says(&format!(
            "git show {commit}:prompts/sre/route.md   sha256 {}",
            row.sha256
        ));
        told.says(&format!(
            "with runbook://payments: git show {commit}:resources/runbook/payments.md   sha256 {}",
            sha256(b"# Payments\n")
        ));
        ran(&["deliveries", "--at", "2020-01-01"]).says("nothing was delivered then");
        let told = ran(&["usage", "--prompt", "route"]);
        told.says("1       0       0       1");
        told.says("by on-call");
        ran(&["usage", "--unused"]).says("code-review");
        let told = ran(&["audit"]);
        told.says("local publish refs/heads/main");
        told.says("author Test <test@example.com>");
        let lines = ran(&["audit", "--export"]);
        let rows: Vec<Value> = lines
            .text
            .lines()
            .map(|line| serde_json::from_str(line).unwrap())
            .collect();
        assert_eq!(rows.len(), 2, "{}", lines.text);
        assert_eq!(rows[1]["previous"], rows[0]["hash"]);
        assert_eq!(rows[1]["new_commit"], *commit);
        ran(&["verify"]).says("audit: 2 rows, as the chain says");
    }
    cuebook(&host.data_dir(), &["deliveries", "--at", "yesterday"]).says("`yesterday` is no time");
    let erased = cuebook(
        &host.data_dir(),
        &["usage", "--erase-values", "route", "service"],
    );
    erased.says("erased 1 value");
    // a row that somebody has changed is named
    let options =
        sqlx::sqlite::SqliteConnectOptions::new().filename(host.data_dir().join("cuebook.db"));
    let mut other = sqlx::SqliteConnection::connect_with(&options)
        .await
        .unwrap();
    sqlx::query("UPDATE audit SET actor = 'nobody' WHERE seq = 1")
        .execute(&mut other)
        .await
        .unwrap();
    other.close().await.unwrap();
    let verified = cuebook(&host.data_dir(), &["verify"]);
    assert!(!verified.ok);
    verified.says("audit: 2 rows, 1 not as the chain says");
    verified.says("1: the chain says");
}
