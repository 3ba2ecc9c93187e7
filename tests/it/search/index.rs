//! The index: it finds what a naive search finds, keeps up by what changed, is proven, and is mended row by row.

use std::collections::{BTreeSet, HashMap};
use std::path::PathBuf;

use proptest::prelude::*;
use proptest::test_runner::{Config as Cases, TestRunner};
use sqlx::sqlite::{SqliteConnectOptions, SqliteConnection};
use sqlx::{AssertSqlSafe, Connection as _, Row as _};
use tempfile::TempDir;

use super::oracle::{are_consonants, found, keys};
use super::ways::serve;
use super::*;
use crate::support::http::send;
use crate::support::soon;

/// Pieces of which texts and queries are made.
const PIECES: &[&str] = &[
    "결제",
    "장애",
    "대응",
    "결",
    "서울",
    "값",
    "닭",
    "외워",
    "ㄱㅈ",
    "ㅈㅇ",
    "ㄳ",
    "ㅏ",
    "pay",
    "Payment",
    "db",
    "c++",
    "code-review",
    "snake_case",
    "k",
    "障害",
    "障",
    "カード",
    "é",
    "ＡＢ",
    "*",
    "\"",
    "AND",
    "-x",
    "(",
    "'",
    "🚒",
    "NEAR(",
    "^",
    "tags:",
    "%",
    "ﬁ",
];

/// Several pieces, some of them together, some decomposed.
fn text() -> impl Strategy<Value = String> {
    let piece = (proptest::sample::select(PIECES), 0..4u8).prop_map(|(piece, form)| {
        let piece = if form & 1 == 0 {
            piece.to_owned()
        } else {
            piece.nfd().collect()
        };
        if form & 2 == 0 { piece + " " } else { piece }
    });
    proptest::collection::vec(piece, 1..6).prop_map(|pieces| pieces.concat().trim().to_owned())
}

fn file(title: &str, tag: &str, body: &str) -> String {
    let quoted = |text: &str| Value::from(text).to_string();
    format!(
        "---\ntitle: {}\ntags: [{}]\narguments:\n  - name: unused\n    description: {}\n---\nUse {{{{ unused }}}}.\n{body}\n",
        quoted(title),
        quoted(tag),
        quoted(tag),
    )
}

/// Changes of one publish: which file, what it says; nothing where it goes.
type Publish = Vec<(u8, Option<(String, String, String)>)>;

fn path(n: u8) -> String {
    match n % 8 {
        0 => format!("resources/runbook/r{n}.md"),
        1 | 2 => format!("prompts/sre/p{n}-pay.md"),
        _ => format!("prompts/p{n}_결제.md").replace("결제", "db"),
    }
}

fn publish(library: &TestLibrary, changes: &Publish) {
    for (n, content) in changes {
        let path = path(*n);
        match content {
            Some((title, tag, body)) if path.starts_with("prompts/") => {
                library.write_bytes(&path, file(title, tag, body).as_bytes());
            }
            Some((_, _, body)) => library.write_bytes(&path, body.as_bytes()),
            None if library.clone().join(&path).exists() => library.remove(&path),
            None => {}
        }
    }
    library.commit("publish");
    library.push();
}

async fn dump(store: &Store) -> Vec<(String, String, String, Option<String>)> {
    let rows = store.search_texts(i64::MIN, i64::MAX).await.unwrap();
    let rows = rows
        .into_iter()
        .map(|row| (row.kind, row.name, row.hash, row.form));
    let sorted: BTreeSet<_> = rows.collect();
    sorted.into_iter().collect()
}

/// The index keeps up with random publishes; after each it finds what a naive search finds, and is what one made from
/// nothing is.
#[test]
fn the_index_finds_what_a_naive_search_finds_whatever_was_published() {
    let runtime = tokio::runtime::Runtime::new().unwrap();
    let publishes = proptest::collection::vec(
        proptest::collection::vec(
            (
                0..24u8,
                proptest::option::weighted(0.8, (text(), text(), text())),
            ),
            1..12,
        ),
        1..4,
    );
    let queries = proptest::collection::vec(text(), 40);
    let mut runner = TestRunner::new(Cases {
        cases: 12,
        ..Cases::default()
    });
    runner
        .run(&(publishes, queries), |(publishes, queries)| {
            runtime.block_on(async {
                let folder = TempDir::new().unwrap();
                let library = TestLibrary::with(&[("cuebook.toml", "format = 1\n")]);
                let indexed = Indexed::of(&library, &folder.path().join("one.db")).await;
                for (n, changes) in publishes.iter().enumerate() {
                    publish(&library, changes);
                    indexed.refresh().await;
                    assert_eq!(
                        indexed.registry.snapshot().status.tip_problems,
                        Vec::<String>::new()
                    );
                    indexed.catch_up().await;
                    let catalog = indexed.registry.snapshot().catalog.clone();
                    for query in &queries {
                        let all = indexed.both(query).await;
                        check_snippets(&all, query);
                        let mut names = names(&all);
                        names.sort();
                        assert_eq!(names, found(&catalog, query), "{query:?}");
                    }
                    let cold =
                        Indexed::of(&library, &folder.path().join(format!("cold{n}.db"))).await;
                    assert_eq!(dump(&indexed.store).await, dump(&cold.store).await);
                    assert_eq!(indexed.search.verify(&indexed.registry).await.unwrap(), []);
                    cold.store.close().await;
                }
                indexed.store.close().await;
            });
            Ok(())
        })
        .unwrap();
}

/// What is marked is there, and holds a word of the query.
fn check_snippets(found: &Found, query: &str) {
    let words: Vec<String> = query.split_whitespace().map(keys).collect();
    for hit in &found.hits {
        assert!(!hit.matches.is_empty(), "{query:?} {}", hit.item.name());
        for shown in &hit.matches {
            let mut end = 0;
            for [from, to] in &shown.ranges {
                assert!(end <= *from && from < to, "{query:?} {shown:?}");
                end = *to;
                let marked = keys(&shown.text[*from..*to]);
                assert!(
                    words
                        .iter()
                        .any(|word| marked.contains(word) || are_consonants(word)),
                    "{query:?} {shown:?}"
                );
            }
        }
    }
}

/// A connection that knows nothing of the index.
async fn raw(database: &PathBuf) -> SqliteConnection {
    let options = SqliteConnectOptions::new().filename(database);
    SqliteConnection::connect_with(&options).await.unwrap()
}

#[tokio::test]
async fn a_row_that_is_not_what_git_says_is_named_and_mended() {
    let folder = TempDir::new().unwrap();
    let database = folder.path().join("cuebook.db");
    let library = TestLibrary::with(FILES);
    let indexed = Indexed::of(&library, &database).await;
    let good = dump(&indexed.store).await;
    assert_eq!(good.len(), 4);
    assert_eq!(indexed.search.verify(&indexed.registry).await.unwrap(), []);
    for (tamper, table, row) in [
        (
            "UPDATE search_text SET form = 'nothing' WHERE rowid = (SELECT id FROM search_document WHERE name = 'code-review')",
            "search_text",
            "prompt code-review",
        ),
        (
            "UPDATE search_document SET hash = 'x' WHERE name = 'runbook://payments'",
            "search_document",
            "resource runbook://payments",
        ),
        (
            "DELETE FROM search_document WHERE name = 'failover_plan'",
            "search_document",
            "prompt failover_plan",
        ),
        (
            "DELETE FROM search_text WHERE rowid = (SELECT id FROM search_document WHERE name = 'failover_plan')",
            "search_text",
            "prompt failover_plan",
        ),
        (
            "INSERT INTO search_document (kind, name, hash) VALUES ('prompt', 'ghost', 'x')",
            "search_document",
            "prompt ghost",
        ),
        (
            "INSERT INTO search_text (rowid, form) VALUES (4711, 'stray')",
            "search_text",
            "the text 4711",
        ),
        (
            // behind the back of the index
            "UPDATE search_text_content SET c0 = c0 || 'xyz' WHERE id = (SELECT id FROM search_document WHERE name = 'code-review')",
            "search_text",
            "its index",
        ),
        (
            "DELETE FROM search_text_data WHERE id > 10",
            "search_text",
            "its index",
        ),
    ] {
        let mut connection = raw(&database).await;
        let done = sqlx::query(AssertSqlSafe(tamper.to_owned()))
            .execute(&mut connection)
            .await;
        assert!(done.unwrap().rows_affected() > 0, "{tamper}");
        connection.close().await.unwrap();
        let differences = indexed.search.verify(&indexed.registry).await.unwrap();
        assert!(
            differences.iter().any(|d| d.table == table && d.row == row),
            "{tamper}: {differences:?}"
        );
        let named = indexed.search.reindex(&indexed.registry).await.unwrap();
        assert_eq!(named, differences, "{tamper}");
        assert_eq!(indexed.search.verify(&indexed.registry).await.unwrap(), []);
        assert_eq!(dump(&indexed.store).await, good, "{tamper}");
        assert_eq!(names(&indexed.both("review").await), ["code-review"]);
        assert_eq!(names(&indexed.both("replication").await), ["failover_plan"]);
    }
}

#[tokio::test]
async fn an_index_that_is_behind_absent_or_broken_is_said_and_costs_no_answer() {
    let folder = TempDir::new().unwrap();
    let database = folder.path().join("cuebook.db");
    let library = TestLibrary::with(FILES);
    let indexed = Indexed::without_catching_up(&library, &database).await;
    let ask = async |query: &str| {
        let found = indexed.ask(Ask::new(query, 10)).await;
        (found.index, names(&found))
    };
    let review = || vec!["code-review".to_owned()];
    assert_eq!(ask("review").await, (Index::Scan, review()));
    assert_eq!(indexed.search.indexed(), None);
    indexed.catch_up().await;
    assert_eq!(ask("review").await, (Index::Current, review()));
    let first = indexed.registry.snapshot().status.served.clone();
    assert_eq!(indexed.search.indexed(), first);
    // what was published since is found, and what is gone is not
    library.remove("prompts/sre/db/failover_plan.md");
    library.publish(&[("prompts/new.md", "---\ntitle: N\n---\nreviewing\n")]);
    indexed.refresh().await;
    let both = || vec!["code-review".to_owned(), "new".to_owned()];
    assert_eq!(ask("review").await, (Index::Scan, both()));
    assert_eq!(ask("replication").await, (Index::Scan, Vec::new()));
    assert_eq!(indexed.search.indexed(), first);
    indexed.catch_up().await;
    assert_eq!(ask("review").await, (Index::Current, both()));
    assert_eq!(
        indexed.search.indexed(),
        indexed.registry.snapshot().status.served
    );
    // rows of another process that has gone on
    let mut connection = raw(&database).await;
    sqlx::query("UPDATE search_state SET digest = 'other'")
        .execute(&mut connection)
        .await
        .unwrap();
    assert_eq!(ask("review").await, (Index::Scan, both()));
    sqlx::query("DROP TABLE search_text")
        .execute(&mut connection)
        .await
        .unwrap();
    assert_eq!(ask("review").await, (Index::Scan, both()));
    indexed.store.close().await;
    assert_eq!(ask("review").await, (Index::Scan, both()));
    assert!(indexed.search.catch_up(&indexed.registry).await.is_ok());
    assert_eq!(ask("review").await, (Index::Scan, both()));
}

#[tokio::test]
async fn a_publish_writes_what_changed_and_a_start_writes_nothing() {
    let folder = TempDir::new().unwrap();
    let database = folder.path().join("cuebook.db");
    let library = TestLibrary::with(FILES);
    let indexed = Indexed::of(&library, &database).await;
    let ids = async |store: &Store| {
        let rows = store.search_rows().await.unwrap();
        let ids = rows.into_iter().map(|row| (row.name, row.id));
        ids.collect::<HashMap<_, _>>()
    };
    let before = ids(&indexed.store).await;
    library.publish(&[(
        "prompts/review/code-review.md",
        "---\ntitle: Other\n---\nother words\n",
    )]);
    indexed.refresh().await;
    indexed.catch_up().await;
    let after = ids(&indexed.store).await;
    for (name, id) in &before {
        assert_eq!(after[name] == *id, name != "code-review", "{name}");
    }
    indexed.store.close().await;
    // the next process finds it as it was left
    let again = Indexed::of(&library, &database).await;
    assert_eq!(ids(&again.store).await, after);
    assert_eq!(names(&again.both("other words").await), ["code-review"]);
    // and one that follows another rule makes it anew
    again.store.close().await;
    let mut connection = raw(&database).await;
    sqlx::query("UPDATE search_state SET rule = 0")
        .execute(&mut connection)
        .await
        .unwrap();
    sqlx::query("UPDATE search_text SET form = 'old'")
        .execute(&mut connection)
        .await
        .unwrap();
    let third = Indexed::of(&library, &database).await;
    assert_eq!(names(&third.both("other words").await), ["code-review"]);
    let row = sqlx::query("SELECT rule FROM search_state")
        .fetch_one(&mut connection)
        .await
        .unwrap();
    assert_eq!(row.get::<i64, _>(0), 1);
    assert_eq!(third.search.verify(&third.registry).await.unwrap(), []);
}

#[tokio::test]
async fn gets_of_the_last_days_count() {
    let folder = TempDir::new().unwrap();
    let database = folder.path().join("cuebook.db");
    let text = "---\ntitle: T\n---\nthe same words\n";
    let files = ["prompts/a.md", "prompts/b.md", "prompts/c.md"].map(|path| (path, text));
    let indexed = Indexed::of(&TestLibrary::with(&files), &database).await;
    let mut connection = raw(&database).await;
    for (name, day, gets) in [("c", 995, 7), ("b", 969, 9000), ("b", 1000, 1)] {
        sqlx::query("INSERT INTO usage_day VALUES ($1, 1, 'client', '1', $2, $3, 0, 0, 0, 0, 0)")
            .bind(name)
            .bind(day)
            .bind(gets)
            .execute(&mut connection)
            .await
            .unwrap();
    }
    let day = 24 * 60 * 60 * 1000;
    indexed.search.count_gets(1000 * day + 5).await.unwrap();
    let found = indexed.ask(Ask::new("same words", 10)).await;
    let gets: Vec<u64> = found.hits.iter().map(|hit| hit.gets).collect();
    assert_eq!(
        (names(&found), gets),
        (vec!["c".into(), "b".into(), "a".into()], vec![7, 1, 0])
    );
}

#[tokio::test]
async fn a_change_of_everything_is_written_in_steps() {
    let folder = TempDir::new().unwrap();
    let library = TestLibrary::with(&[("cuebook.toml", "format = 1\n")]);
    let indexed = Indexed::of(&library, &folder.path().join("cuebook.db")).await;
    let publish = async |names: std::ops::Range<usize>, word: &str| {
        for n in 0..700 {
            let path = format!("prompts/p{n}.md");
            if names.contains(&n) {
                library.write_bytes(&path, file("T", "t", word).as_bytes());
            } else if library.clone().join(&path).exists() {
                library.remove(&path);
            }
        }
        library.commit("publish");
        library.push();
        indexed.refresh().await;
        indexed.catch_up().await;
        let found = indexed.both(word).await;
        assert_eq!(found.total, names.len());
        assert_eq!(indexed.search.verify(&indexed.registry).await.unwrap(), []);
    };
    publish(0..450, "apple").await;
    // most of them changed, some gone, some new
    publish(250..700, "banana").await;
    assert_eq!(indexed.both("apple").await.total, 0);
    publish(0..3, "cherry").await;
}

#[tokio::test]
async fn a_server_keeps_its_index_at_what_is_published() {
    let folder = TempDir::new().unwrap();
    let library = TestLibrary::with(FILES);
    let running = serve(&folder, &library).await;
    let search = async |query: &str| {
        let client = Client {
            address: running.address,
            path: "/mcp".into(),
            revision: MODERN,
            name: "test",
            session: None,
        };
        let arguments = json!({ "query": query });
        let found = client
            .call(
                "tools/call",
                json!({ "name": "search_prompts", "arguments": arguments }),
            )
            .await;
        found["structuredContent"].clone()
    };
    let current = async |query: &str, total: u64| {
        loop {
            let found = search(query).await;
            if found["index"] == "current" && found["total"] == total {
                return found;
            }
            tokio::time::sleep(std::time::Duration::from_millis(10)).await;
        }
    };
    let first = soon("the index", current("review", 1)).await;
    let clone = library.clone();
    library.write_bytes(
        "prompts/zebra.md",
        b"---\ntitle: Z\n---\nA review of zebras.\n",
    );
    library.commit("zebra");
    let url = format!("http://{}/library.git", running.address);
    let pushed = tokio::task::spawn_blocking(move || {
        crate::support::library::git(&clone, &["push", "--quiet", &url, "HEAD:main"])
    });
    pushed.await.unwrap();
    let second = soon("the index after a push", current("review", 2)).await;
    assert_ne!(first["revision"], second["revision"]);
    assert_eq!(
        soon("zebras", current("zebras", 1)).await["prompts"][0]["name"],
        "zebra"
    );
    let ready = send(running.address, "GET", "/readyz", &[], b"").await;
    assert_eq!(ready.status, 200);
    running.stop().await;
}
