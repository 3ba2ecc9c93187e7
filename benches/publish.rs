//! What a publish costs once git has moved the ref: from reading the ref to the new catalog being served.
//!
//! `cargo bench --bench publish`: real bare repositories with 50,000 commits and 100, 1,000 or 10,000 prompts in 100
//! folders (each with two arguments, a partial, a bound runbook and an example that is run), and 10,000 in one folder. Each
//! measured commit changes one file. The floor is `git push` of such a commit to a path, without any server.
#![allow(
    missing_docs,
    clippy::expect_used,
    clippy::panic,
    reason = "a bench that cannot go on has nothing to say"
)]

use std::fmt::Write as _;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use criterion::{BenchmarkId, Criterion, criterion_group, criterion_main};
use cuebook::git::{Repository, init};
use cuebook::registry::source::Library;
use cuebook::registry::{Registry, Settings};

/// Commits of a history.
const HISTORY: usize = 50_000;
/// The last of them, which are measured.
const MEASURED: usize = 2_000;

/// A repository, and the commits at its end.
struct Bench {
    folder: tempfile::TempDir,
    commits: Vec<String>,
}

/// What each commit changes.
#[derive(Clone, Copy)]
enum Edit {
    Prompt,
    /// A runbook that the examples of one prompt in a hundred read.
    Runbook,
    /// A partial that one prompt in a hundred includes.
    Partial,
}

impl Bench {
    fn new(prompts: usize, folders: usize, edit: Edit, history: usize) -> Self {
        let folder = tempfile::tempdir().expect("a folder");
        let path = folder.path().join("library.git");
        init(&path, true).expect("git init");
        let place = |i: usize| format!("prompts/team-{}/prompt-{i}.md", i % folders);
        let mut stream = String::new();
        let commit = |i: usize, files: &[(String, String)], stream: &mut String| {
            let _ = write!(
                stream,
                "commit refs/heads/main\ncommitter B <b@localhost> {} +0000\ndata 1\nx\n",
                1_600_000_000 + i
            );
            for (path, text) in files {
                let _ = write!(
                    stream,
                    "M 100644 inline {path}\ndata {}\n{text}\n",
                    text.len()
                );
            }
        };
        let mut files: Vec<(String, String)> = (0..prompts)
            .map(|i| (place(i), prompt(i, "first")))
            .collect();
        for i in 0..100 {
            files.push((format!("partials/rubric-{i}.md"), rubric("first")));
            files.push((
                format!("resources/runbook/service-{i}.md"),
                runbook(i, "first"),
            ));
        }
        files.push((
            "cuebook.toml".into(),
            "format = 1\n[[resource]]\ntemplate = \"runbook://{service}\"\n".into(),
        ));
        commit(0, &files, &mut stream);
        for n in 1..history {
            let note = format!("Note {n}.");
            let i = n * 7919 % prompts;
            let file = match edit {
                Edit::Prompt => (place(i), prompt(i, &note)),
                Edit::Runbook => (
                    format!("resources/runbook/service-{}.md", i % 100),
                    runbook(i % 100, &note),
                ),
                Edit::Partial => (format!("partials/rubric-{}.md", i % 100), rubric(&note)),
            };
            commit(n, &[file], &mut stream);
        }
        pipe(&path, &["fast-import", "--quiet"], stream.as_bytes());
        let last = format!("-{}", MEASURED.min(history));
        let commits = run(&path, &["rev-list", "--reverse", &last, "main"]);
        Self {
            commits: commits.lines().map(str::to_owned).collect(),
            folder,
        }
    }

    fn path(&self) -> PathBuf {
        self.folder.path().join("library.git")
    }

    /// Moves main as git does, without the 2 ms of a process.
    fn move_main(&self, i: usize) {
        let path = self.path().join("refs/heads/main");
        let next = path.with_extension("next");
        std::fs::write(&next, format!("{}\n", self.commits[i])).expect("a ref");
        std::fs::rename(next, path).expect("a ref");
    }

    fn open(&self) -> Registry {
        self.move_main(0);
        let repository = Repository::open(&self.path()).expect("a repository");
        let settings = Settings {
            remember: true,
            ..Settings::default()
        };
        Registry::open(Library::Bare(repository), settings).expect("a registry")
    }

    /// Time of refreshes, each after main has moved by one commit; `check` first checks it as a push does, untimed.
    fn refreshes(&self, registry: &Registry, at: &mut usize, count: u64, check: bool) -> Duration {
        let mut all = Duration::ZERO;
        for _ in 0..count {
            *at += 1;
            if *at == self.commits.len() {
                *at = 1;
                self.move_main(0);
                registry.refresh().expect("a refresh");
            }
            if check {
                let repository = registry.library().repository().expect("a repository");
                let checked = registry.check(
                    repository,
                    &self.commits[*at],
                    &tokio_util::sync::CancellationToken::new(),
                );
                assert!(checked.expect("a check").is_clean());
            }
            self.move_main(*at);
            let started = Instant::now();
            registry.refresh().expect("a refresh");
            all += started.elapsed();
            let snapshot = registry.snapshot();
            assert_eq!(snapshot.status.served.as_ref(), Some(&self.commits[*at]));
        }
        all
    }
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
         resources:\n  - name: runbook\n    uri: \"runbook://{{{{ service }}}}\"\nexamples:\n  - name: one\n    arguments: {{ ticket: INC-{i}, service: service-{} }}\n    \
         expect: [INC-{i}]\n---\nHelp with {{{{ ticket }}}}. {note}\n{{% include \"rubric-{}.md\" %}}\n{body}",
        i % 100,
        i % 100
    )
}

fn rubric(note: &str) -> String {
    format!("| Level | Use it when |\n|---|---|\n| HIGH | users are affected |\n{note}\n")
}

fn runbook(i: usize, note: &str) -> String {
    let steps = "1. Look at the dashboard.\n".repeat(40);
    format!("# service-{i}\n\n{note}\n\n{steps}")
}

fn git(at: &Path, arguments: &[&str]) -> Command {
    let mut command = Command::new("git");
    command
        .args(arguments)
        .current_dir(at)
        .env("GIT_CONFIG_GLOBAL", "/dev/null")
        .env("GIT_CONFIG_NOSYSTEM", "1");
    for name in ["AUTHOR", "COMMITTER"] {
        command.env(format!("GIT_{name}_NAME"), "B");
        command.env(format!("GIT_{name}_EMAIL"), "b@localhost");
    }
    command
}

fn run(at: &Path, arguments: &[&str]) -> String {
    let output = git(at, arguments).output().expect("git");
    assert!(output.status.success(), "git {arguments:?}");
    String::from_utf8(output.stdout).expect("text")
}

fn pipe(at: &Path, arguments: &[&str], input: &[u8]) {
    let mut child = git(at, arguments)
        .stdin(Stdio::piped())
        .spawn()
        .expect("git");
    let mut stdin = child.stdin.take().expect("stdin");
    std::io::Write::write_all(&mut stdin, input).expect("a pipe");
    drop(stdin);
    assert!(child.wait().expect("git").success());
}

/// Time of `git push` of one-file commits from a clone to the bare repository's path.
fn pushes(bench: &Bench, round: &mut usize, count: u64) -> Duration {
    let clone = bench.folder.path().join("clone");
    if !clone.exists() {
        let folder = bench.folder.path();
        run(folder, &["clone", "--quiet", "library.git", "clone"]);
    }
    let mut all = Duration::ZERO;
    for _ in 0..count {
        *round += 1;
        let path = clone.join("prompts/team-7/prompt-7.md");
        std::fs::write(path, prompt(7, &format!("Push {round}."))).expect("a file");
        run(&clone, &["commit", "--quiet", "--all", "--message", "x"]);
        let started = Instant::now();
        run(&clone, &["push", "--quiet", "origin", "HEAD:main"]);
        all += started.elapsed();
    }
    all
}

fn publish(criterion: &mut Criterion) {
    let mut group = criterion.benchmark_group("one file");
    group.sample_size(20);
    group.measurement_time(Duration::from_secs(3));
    for prompts in [100, 1_000, 10_000] {
        let bench = Bench::new(prompts, 100, Edit::Prompt, HISTORY);
        let registry = bench.open();
        let mut at = 0;
        group.bench_function(BenchmarkId::new("refresh", prompts), |bencher| {
            bencher.iter_custom(|count| bench.refreshes(&registry, &mut at, count, false));
        });
        group.bench_function(
            BenchmarkId::new("refresh after check", prompts),
            |bencher| {
                bencher.iter_custom(|count| bench.refreshes(&registry, &mut at, count, true));
            },
        );
        drop(registry);
        bench.move_main(bench.commits.len() - 1);
        let mut round = 0;
        group.bench_function(
            BenchmarkId::new("git push, the floor", prompts),
            |bencher| {
                bencher.iter_custom(|count| pushes(&bench, &mut round, count));
            },
        );
    }
    for (name, folders, edit) in [
        ("refresh, all in one folder", 1, Edit::Prompt),
        ("refresh, a runbook that 100 read", 100, Edit::Runbook),
        ("refresh, a partial that 100 include", 100, Edit::Partial),
    ] {
        // one folder of 10,000 costs git 400 KB a commit: a short history is enough to see what it costs here
        let bench = Bench::new(10_000, folders, edit, MEASURED);
        let registry = bench.open();
        let mut at = 0;
        group.bench_function(BenchmarkId::new(name, 10_000), |bencher| {
            bencher.iter_custom(|count| bench.refreshes(&registry, &mut at, count, false));
        });
    }
    group.finish();
}

criterion_group!(benches, publish);
criterion_main!(benches);
