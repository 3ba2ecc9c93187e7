//! What versions cost: counting 50,000 commits over 10,000 prompts from cold, counting on, and reading what was kept.
//!
//! `cargo bench --bench history`: one real bare repository, made with `git fast-import`; each commit edits one prompt, every
//! hundredth a partial that 100 prompts include. Beside it, the floor: `git log --first-parent --raw` of the same history.
#![allow(
    missing_docs,
    clippy::expect_used,
    clippy::panic,
    clippy::print_stdout,
    reason = "a bench that cannot go on has nothing to say, and prints what it has"
)]

use std::fmt::Write as _;
use std::io::Write as _;
use std::path::Path;
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use cuebook::git::{Repository, init};
use cuebook::registry::numbering::{Numbering, Progress};
use cuebook::store::Store;
use cuebook::versions;

const COMMITS: usize = 50_000;
const PROMPTS: usize = 10_000;
const PARTIALS: usize = 100;
/// Commits at the end that are counted one by one.
const STEPS: usize = 300;
const ROUNDS: usize = 5;

fn prompt(i: usize, n: usize) -> String {
    format!(
        "---\ntitle: Prompt {i}\ndescription: What it is for\ntags: [sre, bench]\narguments:\n  - name: service\n    required: true\n  - name: severity\n    values: [HIGH, LOW]\n    default: HIGH\n---\nEdit {n} of {{{{ service }}}} at {{{{ severity }}}}.\n{{% include \"rubric-{}.md\" %}}\n{{% if service %}}Some text.{{% endif %}}\n",
        i % PARTIALS
    )
}

/// The main of the repository, as a stream for `git fast-import`.
fn stream() -> String {
    let mut out = String::new();
    let file = |out: &mut String, path: &str, text: &str| {
        let _ = write!(out, "M 100644 inline {path}\ndata {}\n{text}\n", text.len());
    };
    for n in 0..COMMITS {
        let _ = write!(
            out,
            "commit refs/heads/main\ncommitter B <b@localhost> {} +0000\ndata 8\nsubject\n\n",
            1_600_000_000 + n
        );
        if n == 0 {
            for i in 0..PARTIALS {
                file(&mut out, &format!("partials/rubric-{i}.md"), "A rubric.\n");
            }
            for i in 0..PROMPTS {
                file(
                    &mut out,
                    &format!("prompts/team-{}/prompt-{i}.md", i % 100),
                    &prompt(i, 0),
                );
            }
        } else if n % 100 == 0 {
            let i = n / 100 % PARTIALS;
            file(
                &mut out,
                &format!("partials/rubric-{i}.md"),
                &format!("Rubric of {n}.\n"),
            );
        } else {
            let i = n * 7919 % PROMPTS;
            file(
                &mut out,
                &format!("prompts/team-{}/prompt-{i}.md", i % 100),
                &prompt(i, n),
            );
        }
    }
    out.push_str("done\n");
    out
}

fn git(path: &Path, arguments: &[&str], input: &[u8]) -> Vec<u8> {
    let mut child = Command::new("git")
        .current_dir(path)
        .args(arguments)
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .expect("git");
    let mut stdin = child.stdin.take().expect("stdin");
    let input = input.to_vec();
    let writing = std::thread::spawn(move || stdin.write_all(&input));
    let output = child.wait_with_output().expect("git");
    writing.join().expect("the writer").expect("a whole stream");
    assert!(output.status.success(), "git {arguments:?}");
    output.stdout
}

fn report(what: &str, mut times: Vec<Duration>) {
    times.sort();
    let ms = |time: &Duration| time.as_secs_f64() * 1000.0;
    println!(
        "{what:<52} {:>10.2} ms ({:.2}–{:.2})",
        ms(&times[times.len() / 2]),
        ms(&times[0]),
        ms(&times[times.len() - 1])
    );
}

fn timed<T>(run: impl FnOnce() -> T) -> (Duration, T) {
    let started = Instant::now();
    let value = run();
    (started.elapsed(), value)
}

fn main() {
    let folder = tempfile::tempdir().expect("a folder");
    let path = folder.path().join("library.git");
    init(&path, true).expect("git init");
    git(
        &path,
        &["fast-import", "--quiet", "--done", "--date-format=raw"],
        stream().as_bytes(),
    );
    let repository = Repository::open(&path).expect("the repository");
    let ids = git(
        &path,
        &["rev-list", "--first-parent", "--reverse", "main"],
        b"",
    );
    let ids: Vec<String> = String::from_utf8_lossy(&ids)
        .lines()
        .map(str::to_owned)
        .collect();
    let tip = ids.last().expect("a commit");

    let mut floor = Vec::new();
    let mut cold = Vec::new();
    let mut counted = None;
    for _ in 0..ROUNDS {
        let log = [
            "log",
            "--first-parent",
            "--raw",
            "-z",
            "--no-renames",
            "--no-abbrev",
            "main",
        ];
        floor.push(timed(|| git(&path, &log, b"")).0);
        let (time, made) =
            timed(|| Numbering::cold(&repository, tip, &Progress::default()).expect("a count"));
        cold.push(time);
        counted = Some(made);
    }
    report("git log --first-parent --raw, 50,000 commits", floor);
    report("all versions from cold", cold);
    let counted = counted.expect("a count");
    println!(
        "  {} prompts, {} versions",
        counted.history.len(),
        counted.history.versions()
    );

    let from = ids.len() - 1 - STEPS;
    let mut numbering =
        Numbering::cold(&repository, &ids[from], &Progress::default()).expect("a count");
    let (mut prompts, mut partials) = (Vec::new(), Vec::new());
    for (n, id) in ids.iter().enumerate().skip(from + 1) {
        let (time, done) = timed(|| numbering.advance(&repository, id).expect("a count"));
        assert!(done);
        if n % 100 == 0 {
            &mut partials
        } else {
            &mut prompts
        }
        .push(time);
    }
    assert_eq!(numbering.history, counted.history);
    report("one commit further, a prompt", prompts);
    report("one commit further, a partial that 100 include", partials);

    let runtime = tokio::runtime::Runtime::new().expect("a runtime");
    let (mut writes, mut loads, mut prepared) = (Vec::new(), Vec::new(), Vec::new());
    for round in 0..ROUNDS {
        let file = folder.path().join(format!("{round}.db"));
        let store = runtime.block_on(Store::open(&file)).expect("a database");
        let write = versions::write(&store, None, &counted.history);
        writes.push(timed(|| runtime.block_on(write).expect("written")).0);
        let (time, kept) = timed(|| runtime.block_on(versions::load(&store)).expect("read"));
        loads.push(time);
        let kept = kept.expect("what was written");
        assert_eq!(kept, *counted.history);
        let mut numbering = Numbering::kept(kept);
        prepared.push(timed(|| numbering.prepare(&repository).expect("the files")).0);
        let bytes = std::fs::metadata(&file).map_or(0, |m| m.len());
        if round == 0 {
            println!("  {} kB of rows", bytes / 1024);
        }
    }
    report("all rows written", writes);
    report("all rows read, at a start", loads);
    report("the files of the tip, read behind the start", prepared);
}
