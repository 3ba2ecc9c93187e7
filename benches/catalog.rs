//! How long a library takes to load, what it costs in memory, and what a one-file commit costs.
//!
//! `cargo bench --bench catalog`: real repositories of 100, 1,000 and 10,000 prompts in folders, each with two
//! arguments, a partial, a bound runbook and an example that is run. Three rounds, the median and the spread.
#![allow(
    missing_docs,
    clippy::expect_used,
    clippy::panic,
    clippy::print_stdout,
    clippy::cast_precision_loss,
    reason = "a bench prints, and one that cannot go on has nothing to say"
)]

use std::fmt::Write as _;
use std::path::Path;
use std::time::{Duration, Instant};

use cuebook::git::{NewFile, Repository, import_commit, init};
use cuebook::registry::source::Library;
use cuebook::registry::{Registry, Settings};

const ROUNDS: usize = 3;

fn main() {
    println!(
        "{:>8}  {:>22}  {:>22}  {:>12}",
        "prompts", "load (median, spread)", "one-file commit", "memory"
    );
    for count in [100, 1_000, 10_000] {
        let folder = tempfile::tempdir().expect("a temporary folder");
        let path = folder.path().join("library.git");
        write(&path, count);
        let mut loads = Vec::new();
        let mut commits = Vec::new();
        let mut memory = 0;
        for round in 0..ROUNDS {
            let before = resident_bytes();
            let started = Instant::now();
            let registry = open(&path);
            loads.push(started.elapsed());
            assert_eq!(registry.snapshot().catalog.list(None).len(), count);
            memory = resident_bytes().saturating_sub(before).max(memory);
            commit(&path, round);
            let started = Instant::now();
            registry.refresh().expect("a refresh");
            commits.push(started.elapsed());
            assert!(registry.snapshot().status.tip_problems.is_empty());
        }
        println!(
            "{count:>8}  {:>22}  {:>22}  {:>9.1} MB",
            shown(&mut loads),
            shown(&mut commits),
            memory as f64 / 1e6
        );
    }
}

fn open(path: &Path) -> Registry {
    let repository = Repository::open(path).expect("a repository");
    Registry::open(Library::Bare(repository), Settings::default()).expect("a registry")
}

fn shown(times: &mut [Duration]) -> String {
    times.sort();
    let ms = |d: Duration| d.as_secs_f64() * 1e3;
    format!(
        "{:.1} ms ({:.1}–{:.1})",
        ms(times[times.len() / 2]),
        ms(times[0]),
        ms(times[times.len() - 1])
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
    let mut files: Vec<(String, String)> = vec![
        (
            "partials/rubric.md".into(),
            "| Level | Use it when |\n|---|---|\n| HIGH | users are affected |\n".into(),
        ),
        (
            "cuebook.toml".into(),
            "format = 1\n[[resource]]\ntemplate = \"runbook://{service}\"\n".into(),
        ),
    ];
    for i in 0..50 {
        files.push((
            format!("resources/runbook/service-{i}.md"),
            format!(
                "# service-{i}\n\n{}",
                "1. Look at the dashboard.\n".repeat(40)
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
    for step in 0..15 {
        let _ = writeln!(
            body,
            "{step}. Check what changed in {{{{ service }}}} and say what you ruled out, with the evidence for it."
        );
    }
    format!(
        "---\ntitle: Prompt {i}\ndescription: First response number {i}\ntags: [sre, bench]\narguments:\n  - name: ticket\n    \
         description: The ticket\n    required: true\n  - name: service\n    description: The service\n    values: {{ resource: \"runbook://{{service}}\" }}\n\
         resources:\n  - name: runbook\n    uri: \"runbook://{{{{ service }}}}\"\nexamples:\n  - name: one\n    arguments: {{ ticket: INC-{i}, service: service-1 }}\n    \
         expect: [INC-{i}]\n---\nHelp with {{{{ ticket }}}}.{note}\n{{% include \"rubric.md\" %}}\n{body}"
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
