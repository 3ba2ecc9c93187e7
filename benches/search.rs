//! How long a search takes at 10,000 prompts: by the index, by looking at everything in memory, and by a plain linear scan
//! that folds every text again; how long the index takes to make, and to follow a publish.
//!
//! `cargo bench --bench search [prompts]`: prompts of 1.5 KB, half of them Korean, and 200 runbooks, in a real repository
//! and a real database. Every query 200 times, among other kinds in turn; p50 and p99.
#![allow(
    missing_docs,
    clippy::expect_used,
    clippy::panic,
    clippy::print_stdout,
    clippy::cast_precision_loss,
    clippy::cast_possible_truncation,
    clippy::cast_sign_loss,
    reason = "a bench prints, and one that cannot go on has nothing to say"
)]

use std::fmt::Write as _;
use std::path::Path;
use std::sync::Arc;
use std::time::{Duration, Instant};

use cuebook::catalog::{Catalog, text};
use cuebook::git::{NewFile, Repository, import_commit, init};
use cuebook::registry::source::Library;
use cuebook::registry::{Registry, Settings};
use cuebook::search::{Ask, Index, Search};
use cuebook::store::Store;

const ROUNDS: usize = 200;
const SCANS: usize = 10;

/// What is asked, and what it is an example of.
const QUERIES: &[(&str, &str)] = &[
    ("prompt-4711", "one name"),
    ("payment outage", "two words, many"),
    ("incident", "a word of every prompt"),
    ("rollback-317", "rare, in texts alone"),
    ("결제 장애", "Korean, many"),
    ("정산배치317", "Korean, rare"),
    ("겨", "a syllable being typed"),
    ("ㄱㅈ", "initial consonants"),
    ("db", "two letters"),
    ("q", "one letter"),
    ("zzzzzz", "nothing"),
    ("tag:incident folder:team-7 payment", "filters"),
    ("", "empty"),
];

fn main() {
    let count = std::env::args()
        .skip(1)
        .find_map(|argument| argument.parse().ok())
        .unwrap_or(10_000);
    let runtime = tokio::runtime::Builder::new_multi_thread()
        .enable_all()
        .build()
        .expect("a runtime");
    let folder = tempfile::tempdir().expect("a temporary folder");
    let path = folder.path().join("library.git");
    write(&path, count);
    let repository = Repository::open(&path).expect("a repository");
    let registry =
        Registry::open(Library::Bare(repository), Settings::default()).expect("a registry");
    let catalog = registry.snapshot().catalog.clone();
    assert_eq!(catalog.list(None).len(), count);
    let before = resident_bytes();
    let scanning = Arc::new(Search::new());
    let started = Instant::now();
    runtime.block_on(scanning.search(&catalog, Ask::new("x", 10)));
    println!(
        "{count} prompts: forms made in {:.0} ms, {:.1} MB",
        ms(started.elapsed()),
        resident_bytes().saturating_sub(before) as f64 / 1e6
    );
    let database = folder.path().join("cuebook.db");
    let store = runtime.block_on(Store::open(&database)).expect("a store");
    let indexed = Arc::new(Search::new());
    indexed.index_in(store);
    let started = Instant::now();
    runtime
        .block_on(indexed.catch_up(&registry))
        .expect("an index");
    println!(
        "index made in {:.2} s, database {:.1} MB",
        started.elapsed().as_secs_f64(),
        std::fs::metadata(&database).expect("a file").len() as f64 / 1e6
    );
    println!(
        "{:36} {:>7}  {:>21}  {:>21}  {:>10}",
        "query", "found", "index p50, p99", "in memory p50, p99", "linear"
    );
    let mut times = vec![(Vec::new(), Vec::new(), Vec::new()); QUERIES.len()];
    let mut totals = vec![0; QUERIES.len()];
    for round in 0..ROUNDS {
        for (n, (query, _)) in QUERIES.iter().enumerate() {
            let started = Instant::now();
            let found = runtime.block_on(indexed.search(&catalog, Ask::new(*query, 10)));
            times[n].0.push(started.elapsed());
            assert_eq!(found.index, Index::Current);
            totals[n] = found.total;
            let started = Instant::now();
            let same = runtime.block_on(scanning.search(&catalog, Ask::new(*query, 10)));
            times[n].1.push(started.elapsed());
            assert_eq!((same.index, same.total), (Index::Scan, found.total));
            if round < SCANS {
                let started = Instant::now();
                std::hint::black_box(linear(&catalog, query));
                times[n].2.push(started.elapsed());
            }
        }
    }
    let mut all = (Vec::new(), Vec::new());
    for (n, (query, what)) in QUERIES.iter().enumerate() {
        let (index, memory, linear) = &mut times[n];
        println!(
            "{:36} {:>7}  {:>21}  {:>21}  {:>10}",
            format!("{what} (`{query}`)"),
            totals[n],
            shown(index),
            shown(memory),
            format!("{:.1} ms", ms(at(linear, 0.5)))
        );
        all.0.append(index);
        all.1.append(memory);
    }
    println!(
        "{:36} {:>7}  {:>21}  {:>21}",
        "all",
        "",
        shown(&mut all.0),
        shown(&mut all.1)
    );
    let mut publishes = Vec::new();
    for round in 0..10 {
        commit(&path, round);
        registry.refresh().expect("a refresh");
        let started = Instant::now();
        runtime
            .block_on(indexed.catch_up(&registry))
            .expect("an index");
        publishes.push(started.elapsed());
    }
    println!(
        "one prompt published: the index follows in {}",
        shown(&mut publishes)
    );
    let started = Instant::now();
    let differences = runtime
        .block_on(indexed.verify(&registry))
        .expect("a verdict");
    assert!(differences.is_empty());
    println!("verified in {:.2} s", started.elapsed().as_secs_f64());
}

/// What one would write without any of it: every text folded, every word looked for.
fn linear(catalog: &Catalog, query: &str) -> usize {
    let words: Vec<String> = query.split_whitespace().map(text::jamo).collect();
    let prompts = catalog.list(None);
    let found = prompts.iter().filter(|prompt| {
        let title = prompt.title.as_deref().unwrap_or_default();
        let whole = format!("{}\n{title}\n{}", prompt.name, prompt.text());
        let whole = text::jamo(&whole);
        words.iter().all(|word| whole.contains(word.as_str()))
    });
    found.count()
}

fn ms(time: Duration) -> f64 {
    time.as_secs_f64() * 1e3
}

fn at(times: &mut [Duration], part: f64) -> Duration {
    times.sort_unstable();
    times[((times.len() as f64 * part) as usize).min(times.len() - 1)]
}

fn shown(times: &mut [Duration]) -> String {
    format!(
        "{:.2} ms, {:.2} ms",
        ms(at(times, 0.5)),
        ms(at(times, 0.99))
    )
}

/// Memory of this process that is in RAM, in bytes (Linux; 0 elsewhere).
fn resident_bytes() -> u64 {
    std::fs::read_to_string("/proc/self/statm")
        .ok()
        .and_then(|text| text.split_whitespace().nth(1)?.parse::<u64>().ok())
        .map_or(0, |pages| pages * 4096)
}

fn write(path: &Path, count: usize) {
    init(path, true).expect("git init");
    let mut files: Vec<(String, String)> = Vec::new();
    for i in 0..200 {
        files.push((
            format!("resources/runbook/service-{i}.md"),
            format!(
                "# service-{i}\n\n{}",
                "1. Look at the dashboard, then at the connection pool.\n".repeat(40)
            ),
        ));
    }
    for i in 0..count {
        files.push((
            format!("prompts/team-{}/prompt-{i}.md", i % 100),
            prompt(i, ""),
        ));
    }
    let files: Vec<NewFile<'_>> = files
        .iter()
        .map(|(path, text)| NewFile {
            path,
            bytes: text.as_bytes(),
        })
        .collect();
    import_commit(path, &files, "benchmark library", 1_700_000_000).expect("a commit");
}

fn prompt(i: usize, note: &str) -> String {
    let mut body = String::new();
    for step in 0..14 {
        if i.is_multiple_of(2) {
            let _ = writeln!(
                body,
                "{step}. Check what changed in the service and say what you ruled out, with the evidence for it."
            );
        } else {
            let _ = writeln!(
                body,
                "{step}. 무엇이 바뀌었는지 확인하고, 배제한 원인과 그 근거를 적는다. 판단이 어려우면 담당자에게 묻는다."
            );
        }
    }
    if i % 1000 == 317 {
        let _ = writeln!(body, "Then run rollback-{i} and 정산배치{i}.");
    }
    let title = if i.is_multiple_of(2) {
        format!("Payment outage {i}")
    } else {
        format!("결제 장애 {i}")
    };
    format!(
        "---\ntitle: {title}\ndescription: First response number {i} to an incident\ntags: [incident, db]\n\
         arguments:\n  - name: ticket\n    description: The ticket\n---\nHelp with {{{{ ticket }}}}.{note}\n{body}"
    )
}

/// One commit that changes one prompt, with the real git.
fn commit(path: &Path, round: usize) {
    let script = format!(
        "set -e; export GIT_CONFIG_NOSYSTEM=1 GIT_CONFIG_GLOBAL=/dev/null GIT_DIR=$1; \
         tip=$(git rev-parse refs/heads/main); blob=$(git hash-object -w --stdin); export GIT_INDEX_FILE=$1/bench.index; \
         git read-tree $tip; git update-index --add --cacheinfo 100644,$blob,prompts/team-7/prompt-7.md; \
         tree=$(git write-tree); \
         commit=$(git -c user.name=b -c user.email=b@localhost commit-tree -p $tip -m 'round {round}' $tree); \
         git update-ref refs/heads/main $commit $tip"
    );
    let mut child = std::process::Command::new("sh")
        .args(["-c", &script, "sh"])
        .arg(path)
        .stdin(std::process::Stdio::piped())
        .spawn()
        .expect("sh");
    let text = prompt(7, &format!(" Round {round}."));
    std::io::Write::write_all(&mut child.stdin.take().expect("stdin"), text.as_bytes())
        .expect("a blob");
    assert!(child.wait().expect("sh").success());
}
