//! Search: what is found, in which order, with which snippets; the index beside a naive look at everything; its proof.

mod index;
mod oracle;
mod ways;

use std::path::Path;
use std::sync::Arc;

use cuebook::registry::Registry;
use cuebook::search::{Access, Ask, Cursor, Found, Index, Kinds, Search, scan};
use cuebook::store::Store;
use serde_json::{Value, json};
use unicode_normalization::UnicodeNormalization;

use crate::support::library::TestLibrary;
use crate::support::mcp::{Client, MODERN};
use crate::support::server::{TestServer, registry};

/// A library in two scripts.
const FILES: &[(&str, &str)] = &[
    (
        "prompts/sre/payment-outage.md",
        "---\ntitle: 결제장애대응\ndescription: 결제가 멈췄을 때 처음 하는 일\ntags: [incident, 결제]\narguments:\n  - name: service\n    description: Which service\n---\nLook at {{ service }} first.\nThen call the bank.\n",
    ),
    (
        "prompts/sre/db/failover_plan.md",
        "---\ntitle: Database failover\ndescription: Move to the replica\ntags: [incident]\n---\nCheck replication lag before C++ clients reconnect.\n障害のときはここを見る。\n",
    ),
    (
        "prompts/review/code-review.md",
        "---\ntitle: Code review\ndescription: Review a change\ntags: [review]\narguments:\n  - name: language\n---\nReview this {{ language }} change. Say \"why\" * twice.\nThe outage checklist is elsewhere.\n",
    ),
    (
        "resources/runbook/payments.md",
        "# Payments\n\n1. Look at the connection pool.\n2. 결제 대행사에 전화한다.\n",
    ),
    ("labels.toml", "[production]\npayment-outage = \"v1\"\n"),
];

/// A search of a library with an index in a database of its own.
struct Indexed {
    registry: Arc<Registry>,
    search: Arc<Search>,
    store: Store,
}

impl Indexed {
    async fn of(library: &TestLibrary, database: &Path) -> Self {
        let indexed = Self::without_catching_up(library, database).await;
        indexed.catch_up().await;
        indexed
    }

    async fn without_catching_up(library: &TestLibrary, database: &Path) -> Self {
        let store = Store::open(database).await.unwrap();
        let search = Arc::new(Search::new());
        search.index_in(store.clone());
        Self {
            registry: registry(library).await,
            search,
            store,
        }
    }

    async fn catch_up(&self) {
        self.search.catch_up(&self.registry).await.unwrap();
    }

    async fn refresh(&self) {
        let registry = self.registry.clone();
        let refreshed = tokio::task::spawn_blocking(move || registry.refresh());
        refreshed.await.unwrap().unwrap();
    }

    async fn ask(&self, ask: Ask) -> Found {
        let catalog = self.registry.snapshot().catalog.clone();
        self.search.search(&catalog, ask).await
    }

    /// Asks the index, and looks at everything: both must say the same.
    async fn both(&self, query: &str) -> Found {
        let found = self.ask(Ask::new(query, usize::MAX)).await;
        let catalog = self.registry.snapshot().catalog.clone();
        let scanned = scan(&catalog, &Ask::new(query, usize::MAX));
        assert_eq!(names(&found), names(&scanned), "{query:?}");
        assert_eq!(found.index, Index::Current, "{query:?}");
        assert_eq!(scanned.index, Index::Scan);
        found
    }
}

fn names(found: &Found) -> Vec<String> {
    let names = found.hits.iter().map(|hit| hit.item.name().to_owned());
    names.collect()
}

#[tokio::test]
async fn s1_korean_is_found_by_any_part_of_it() {
    let folder = tempfile::tempdir().unwrap();
    let library = TestLibrary::with(FILES);
    let indexed = Indexed::of(&library, &folder.path().join("cuebook.db")).await;
    for query in [
        "결제",
        "장애",
        "결",
        "겨",
        "ㄱㅈ",
        "ㅈㅇ",
        "ㄱㅈㅈㅇㄷㅇ",
        "결젲",
        "대응",
        "제장",
        "결제장애대응",
        "장애 결제",
        "PAYMENT",
        "outage",
        "pay",
        "ment-out",
        "payment_outage",
        "ＰＡＹ",
    ] {
        for query in [query.to_owned(), query.nfd().collect()] {
            let found = indexed.both(&query).await;
            assert_eq!(names(&found)[0], "payment-outage", "{query:?}");
        }
    }
    // 결제 is in the title of one, and in the text of the other
    assert_eq!(
        names(&indexed.both("결제").await),
        ["payment-outage", "runbook://payments"]
    );
    for query in ["障害", "障", "ここ", "こ", "lag", "replica", "c++ 見"] {
        assert_eq!(
            names(&indexed.both(query).await),
            ["failover_plan"],
            "{query}"
        );
    }
    for query in ["정산", "ㄱㅎ", "결제 review", "xyz"] {
        assert_eq!(
            names(&indexed.both(query).await),
            Vec::<String>::new(),
            "{query}"
        );
    }
}

#[tokio::test]
async fn s2_what_is_typed_is_text() {
    let folder = tempfile::tempdir().unwrap();
    let library = TestLibrary::with(FILES);
    let indexed = Indexed::of(&library, &folder.path().join("cuebook.db")).await;
    for (query, expected) in [
        ("code-review", &["code-review"][..]),
        ("c++", &["failover_plan"]),
        ("\"", &["code-review"]),
        ("\"why\"", &["code-review"]),
        ("*", &["code-review"]),
        ("rev*", &[]),
        ("AND", &[]),
        ("review AND change", &[]),
        ("-x", &[]),
        ("NEAR(review change)", &[]),
        ("form:review", &[]),
        ("^code", &[]),
        ("{review}", &[]),
        ("review OR", &[]),
        ("';--", &[]),
        ("🚒", &[]),
        ("review\0change", &["code-review"]),
        ("\0", &["code-review", "failover_plan", "payment-outage"]),
        ("", &["code-review", "failover_plan", "payment-outage"]),
    ] {
        let found = indexed.both(query).await;
        assert_eq!(names(&found), expected, "{query:?}");
    }
    let long = "review ".repeat(1500);
    assert_eq!(names(&indexed.both(&long).await), ["code-review"]);
    let long = "z".repeat(10_000);
    assert_eq!(names(&indexed.both(&long).await), Vec::<String>::new());
}

#[tokio::test]
async fn filters_narrow_and_unknown_ones_are_text() {
    let folder = tempfile::tempdir().unwrap();
    let library = TestLibrary::with(FILES);
    let indexed = Indexed::of(&library, &folder.path().join("cuebook.db")).await;
    for (query, expected) in [
        ("folder:sre", &["failover_plan", "payment-outage"][..]),
        ("folder:sre/db", &["failover_plan"]),
        ("folder:sr", &[]),
        ("tag:incident", &["failover_plan", "payment-outage"]),
        ("tag:incident tag:결제", &["payment-outage"]),
        ("TAG:Incident replica", &["failover_plan"]),
        ("arg:service", &["payment-outage"]),
        ("label:production", &["payment-outage"]),
        ("label:staging", &[]),
        ("folder:review outage", &["code-review"]),
        ("outage", &["payment-outage", "code-review"]),
        ("title:outage", &[]),
        ("tag:", &[]),
    ] {
        assert_eq!(names(&indexed.both(query).await), expected, "{query}");
    }
}

#[tokio::test]
async fn names_and_titles_come_first_and_use_counts() {
    let text = |title: &str, body: &str| format!("---\ntitle: {title}\n---\n{body}\n");
    let files = [
        ("prompts/rollback.md", text("A", "x")),
        ("prompts/quick-rollback.md", text("B", "x")),
        ("prompts/c.md", text("Do a rollback", "x")),
        ("prompts/d.md", text("D", "how to rollback")),
        ("prompts/e.md", text("E", "how to rollback")),
        ("prompts/f.md", text("F", "how to rollback")),
    ];
    let files: Vec<(&str, &str)> = files.iter().map(|(path, text)| (*path, &**text)).collect();
    let folder = tempfile::tempdir().unwrap();
    let library = TestLibrary::with(&files);
    let indexed = Indexed::of(&library, &folder.path().join("cuebook.db")).await;
    assert_eq!(
        names(&indexed.both("rollback").await),
        ["rollback", "quick-rollback", "c", "d", "e", "f"]
    );
    let gets = [("f", 1_000_000), ("e", 3)];
    indexed
        .search
        .set_gets(gets.map(|(name, gets)| (name.into(), gets)));
    let found = indexed.ask(Ask::new("rollback", 10)).await;
    assert_eq!(
        names(&found),
        ["rollback", "quick-rollback", "c", "f", "e", "d"]
    );
    assert_eq!(found.hits[3].gets, 1_000_000);
    // where nothing is asked for, what is used is listed first
    assert_eq!(names(&indexed.ask(Ask::new("", 3)).await), ["f", "e", "c"]);
}

#[tokio::test]
async fn pages_go_on_where_the_last_ended() {
    let files: Vec<(String, String)> = (0..57)
        .map(|n| {
            let title = if n % 3 == 0 { "Number" } else { "T" };
            (
                format!("prompts/p{n}.md"),
                format!("---\ntitle: {title}\n---\nnumber {n}\n"),
            )
        })
        .collect();
    let files: Vec<(&str, &str)> = files.iter().map(|(p, t)| (&**p, &**t)).collect();
    let folder = tempfile::tempdir().unwrap();
    let library = TestLibrary::with(&files);
    let indexed = Indexed::of(&library, &folder.path().join("cuebook.db")).await;
    let all = names(&indexed.both("number").await);
    assert_eq!(all.len(), 57);
    let mut paged = Vec::new();
    let mut after = None;
    loop {
        let found = indexed
            .ask(Ask {
                after,
                ..Ask::new("number", 10)
            })
            .await;
        assert_eq!(found.total, 57);
        paged.extend(names(&found));
        let Some(next) = found.next else { break };
        after = Some(Cursor::decode(&next.encode()).unwrap());
    }
    assert_eq!(paged, all);
    for text in ["", "x", "!!", "AAAA"] {
        assert_eq!(Cursor::decode(text), None);
    }
}

#[tokio::test]
async fn what_a_caller_may_not_see_is_neither_found_nor_counted() {
    let folder = tempfile::tempdir().unwrap();
    let library = TestLibrary::with(FILES);
    let indexed = Indexed::of(&library, &folder.path().join("cuebook.db")).await;
    let ask = Ask::new("outage", 10);
    let inside = indexed
        .ask(Ask {
            folder: Some("review".into()),
            ..ask.clone()
        })
        .await;
    assert_eq!(
        (names(&inside), inside.total),
        (vec!["code-review".to_owned()], 1)
    );
    let access = Access::new(|item| !item.path().starts_with("prompts/review/"));
    let seen = indexed.ask(Ask { access, ..ask }).await;
    assert_eq!(
        (names(&seen), seen.total),
        (vec!["payment-outage".to_owned()], 1)
    );
    for (kinds, expected) in [(Kinds::All, 2), (Kinds::Prompts, 1), (Kinds::Resources, 1)] {
        let ask = Ask {
            kinds,
            ..Ask::new("결제", 10)
        };
        assert_eq!(indexed.ask(ask).await.total, expected);
    }
}

#[tokio::test]
async fn snippets_are_the_text_itself_with_ranges() {
    let folder = tempfile::tempdir().unwrap();
    let library = TestLibrary::with(FILES);
    let indexed = Indexed::of(&library, &folder.path().join("cuebook.db")).await;
    let matches = |found: &Found, name: &str| {
        let hit = found.hits.iter().find(|hit| hit.item.name() == name);
        let matches = hit.unwrap().matches.iter();
        let shown = matches.map(|found| {
            let marked: Vec<&str> = found
                .ranges
                .iter()
                .map(|[from, to]| &found.text[*from..*to])
                .collect();
            (found.field.clone(), found.line, marked.join("|"))
        });
        shown.collect::<Vec<_>>()
    };
    let of = |field: &str, line, marked: &str| (field.to_owned(), line, marked.to_owned());
    assert_eq!(
        matches(&indexed.both("제장").await, "payment-outage"),
        [of("title", None, "제장")]
    );
    assert_eq!(
        matches(&indexed.both("ㅈㅇ").await, "payment-outage"),
        [of("title", None, "장애")]
    );
    assert_eq!(
        matches(&indexed.both("전화 겨").await, "runbook://payments"),
        [of("body", Some(4), "결|전화")]
    );
    // the line is that of the file, its front matter counted
    assert_eq!(
        matches(&indexed.both("bank look").await, "payment-outage"),
        [of("body", Some(9), "Look"), of("body", Some(10), "bank")]
    );
    let found = indexed.both("outage").await;
    assert_eq!(
        matches(&found, "payment-outage"),
        [of("name", None, "outage")]
    );
    assert_eq!(
        found.hits[1].matches[0].text,
        "The outage checklist is elsewhere."
    );
}

#[tokio::test]
async fn a_long_line_is_cut_around_the_word() {
    let body = format!("{}바늘{}", "짚 ".repeat(3000), " 더미".repeat(3000));
    let text = format!("---\ntitle: T\n---\n{body}\n");
    let library = TestLibrary::with(&[("prompts/hay.md", &text)]);
    let catalog = registry(&library).await.snapshot().catalog.clone();
    let found = scan(&catalog, &Ask::new("바늘", 10));
    let shown = &found.hits[0].matches[0];
    assert!(shown.text.len() <= 240, "{}", shown.text.len());
    let [from, to] = shown.ranges[0];
    assert_eq!(&shown.text[from..to], "바늘");
}

#[tokio::test]
async fn the_tool_answers_with_snippets_resources_and_how_it_looked() {
    let server = TestServer::start(&TestLibrary::with(FILES)).await;
    let call = async |client: &Client, query: &str| -> Value {
        let arguments = json!({ "query": query });
        client
            .call(
                "tools/call",
                json!({ "name": "search_prompts", "arguments": arguments }),
            )
            .await
    };
    let whole = Client::named(&server, MODERN, "test").await;
    let found = call(&whole, "결제").await;
    let content = &found["structuredContent"];
    assert_eq!(content["index"], "scan");
    assert_eq!(content["total"], 1);
    assert_eq!(content["prompts"][0]["name"], "payment-outage");
    assert_eq!(content["prompts"][0]["matches"][0]["field"], "title");
    assert_eq!(
        content["prompts"][0]["matches"][0]["ranges"],
        json!([[0, 6]])
    );
    assert_eq!(content["resources"][0]["uri"], "runbook://payments");
    let snapshot = server.registry.snapshot();
    assert_eq!(content["revision"], snapshot.status.served.clone().unwrap());
    let text = found["content"][0]["text"].as_str().unwrap();
    assert!(
        text.contains("resource runbook://payments: 2. 결제 대행사에 전화한다."),
        "{text}"
    );
    // a folder's endpoint sees its folder
    let review = whole.at("/mcp/review");
    let found = call(&review, "outage").await;
    assert_eq!(found["structuredContent"]["total"], 1, "{found}");
    assert_eq!(
        found["structuredContent"]["prompts"][0]["name"],
        "code-review"
    );
    for query in ["\"", "*", "AND", "-x", "NEAR(", "a\0b", "🚒", "{{", "'"] {
        let found = call(&whole, query).await;
        assert_eq!(found["isError"], false, "{found}");
    }
}
