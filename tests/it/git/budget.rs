//! The renders of one check are on a budget, whichever way a commit comes, and end when nobody waits for them.

use std::fmt::Write as _;
use std::os::unix::process::CommandExt as _;
use std::time::Duration;

use cuebook::registry::Refreshed;

use super::*;

/// A prompt that a worker renders once at a check, and that costs some milliseconds there.
fn costly(rounds: u32) -> String {
    prompt(&format!(
        "{{% for i in range(end={rounds}) %}}{{% set x = i %}}{{% endfor %}}done"
    ))
}

/// Writes many of them, and one that costs more than each of the others.
fn many(work: &Work, count: u32) {
    for n in 0..count {
        work.write(&format!("prompts/many/m{n:03}.md"), costly(4000));
    }
    work.write("prompts/many/heavy.md", costly(16_000));
}

/// Milliseconds of CPU time that all children of this process have used (Linux).
fn children_cpu_ms() -> u64 {
    let mut ticks = 0;
    for child in crate::hostile::children() {
        let stat = std::fs::read_to_string(format!("/proc/{child}/stat")).unwrap_or_default();
        let after = stat.rsplit(')').next().unwrap_or_default();
        let numbers: Vec<u64> = after
            .split_whitespace()
            .skip(11)
            .take(2)
            .filter_map(|n| n.parse().ok())
            .collect();
        ticks += numbers.iter().sum::<u64>();
    }
    ticks * 10
}

/// The numbers of `… used N ms of CPU time; at most M are given (check_cpu_ms); PATH used the most, K ms`.
#[track_caller]
fn numbers(text: &str) -> (u64, u64, String, u64) {
    let line = text
        .lines()
        .find(|line| line.contains("(check_cpu_ms)"))
        .unwrap_or_else(|| panic!("no budget in:\n{text}"));
    let after = |words: &str| {
        let at = line.find(words).unwrap_or_else(|| panic!("{line}")) + words.len();
        line[at..].split_whitespace().next().unwrap().to_owned()
    };
    (
        after("the renders of this check used ").parse().unwrap(),
        after("at most ").parse().unwrap(),
        after("(check_cpu_ms); "),
        after("used the most, ").parse().unwrap(),
    )
}

#[tokio::test(flavor = "multi_thread")]
async fn a_push_that_costs_too_much_is_refused_as_a_whole_and_in_parts_it_is_taken() {
    let host = Host::small_with(|config| config.rendering.check_cpu_ms = 60).await;
    let work = host.work("work");
    let main = host.main();
    many(&work, 80);
    work.commit("many");
    let said = work.no(&["push", "origin", "HEAD:main"]);
    let (used, limit, prompt, most) = numbers(&said.text);
    assert!(used >= 60 && limit == 60 && most <= used, "{}", said.text);
    // which of them is met before the budget is spent is the machine's to say
    assert!(prompt.starts_with("prompts/many/"), "{}", said.text);
    said.says("were not checked to the end");
    said.says("refused: 1 error");
    assert_eq!(host.main(), main);
    assert_eq!(host.text("after").await, "Write it down.\n");

    // each in a push of its own is inside the budget
    work.back();
    work.publish(&[("prompts/many/heavy.md", &costly(900))]);
    for n in 0..3 {
        let path = format!("prompts/many/m{n}.md");
        work.publish(&[(&path, &costly(300))]);
    }
    assert_eq!(host.text("m2").await, "done\n");
}

#[tokio::test(flavor = "multi_thread")]
async fn more_examples_than_one_prompt_may_have_are_refused_with_both_numbers() {
    let host = Host::small().await;
    let work = host.work("work");
    let text = |count: usize| {
        let mut text = String::from("---\ndescription: D\narguments: [{ name: a }]\nexamples:\n");
        for n in 0..count {
            let _ = writeln!(text, "  - {{ name: e{n}, arguments: {{ a: x }} }}");
        }
        text + "---\n{{ a }}\n"
    };
    work.change(&[("prompts/sre/shown.md", &text(65))]);
    let said = work.no(&["push", "origin", "HEAD:main"]);
    said.says("65 examples; at most 64 are run (examples_count)");
    work.publish(&[("prompts/sre/shown.md", &text(64))]);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_commit_by_the_back_door_that_costs_too_much_is_not_served_and_costs_once() {
    let host = Host::small_with(|config| config.rendering.check_cpu_ms = 60).await;
    let work = host.work("work");
    let served = host.main();
    many(&work, 80);
    let commit = work.commit("many");
    // past every hook
    let by_the_back_door = || {
        let from = work.path.to_str().unwrap();
        let ran = git(&host.bare(), &["fetch", from, "HEAD:refs/heads/main"]);
        assert!(ran.ok, "{}", ran.text);
    };
    by_the_back_door();
    let registry = host.running.as_ref().unwrap().registry.clone();
    soon("the tip to be looked at", async {
        while registry.snapshot().status.tip.as_deref() != Some(&commit) {
            tokio::time::sleep(Duration::from_millis(10)).await;
        }
    })
    .await;
    let status = registry.snapshot().status.clone();
    assert_eq!(status.served.as_deref(), Some(&*served));
    assert!(!status.partial);
    let (used, limit, prompt, _) = numbers(&status.tip_problems.join("\n"));
    assert!(used >= 60 && limit == 60, "{status:?}");
    assert!(prompt.starts_with("prompts/many/"), "{prompt}");
    assert_eq!(host.client().names().await.len(), 3);

    // looking again costs nothing
    let before = children_cpu_ms();
    for _ in 0..5 {
        let registry = registry.clone();
        let looked = tokio::task::spawn_blocking(move || registry.refresh());
        assert_eq!(looked.await.unwrap().unwrap(), Refreshed::Unchanged);
    }
    assert_eq!(children_cpu_ms(), before);

    // and what mends it is served: the prompts that were left are checked now
    for n in 2..80 {
        work.remove(&format!("prompts/many/m{n:03}.md"));
    }
    work.write("prompts/many/heavy.md", costly(300));
    let mended = work.commit("less");
    by_the_back_door();
    soon("the mended commit to be served", async {
        while registry.snapshot().status.served.as_deref() != Some(&mended) {
            tokio::time::sleep(Duration::from_millis(10)).await;
        }
    })
    .await;
    assert_eq!(host.text("m001").await, "done\n");
}

#[tokio::test(flavor = "multi_thread")]
async fn what_was_published_in_parts_starts_again_as_a_whole() {
    let mut host = Host::small_with(|config| config.rendering.check_cpu_ms = 600).await;
    let work = host.work("work");
    for round in 0..4 {
        for n in 0..6 {
            work.write(&format!("prompts/many/m{round}{n}.md"), costly(6000));
        }
        work.commit("some");
        work.ok(&["push", "origin", "HEAD:main"]);
    }
    // on a budget that the whole does not fit into, however fast this machine is
    host.config.rendering.check_cpu_ms = 10;
    host.stop().await;
    host.start_again().await;
    let status = host
        .running
        .as_ref()
        .unwrap()
        .registry
        .snapshot()
        .status
        .clone();
    assert_eq!(status.served, status.tip, "{status:?}");
    assert!(
        !status.partial && status.tip_problem_count == 0,
        "{status:?}"
    );
    assert_eq!(host.text("m35").await, "done\n");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_check_ends_when_whoever_pushed_has_gone() {
    let host = Host::small_with(|config| config.rendering.check_cpu_ms = 600_000).await;
    let work = host.work_by_path("work");
    let main = host.main();
    // four hundred times the 100 ms that one render may take: nothing here is so patient
    for n in 0..400 {
        let text = format!(
            "---\ndescription: D\narguments: [{{ name: a }}]\n---\n{{% if a == \"{n}\" %}}{{% endif %}}{{% for i in range(end=100000) %}}{{% for j in range(end=1000) %}}{{% endfor %}}{{% endfor %}}"
        );
        work.write(&format!("prompts/many/m{n}.md"), text);
    }
    work.commit("many");
    let mut command = git_command(&work.path, &["push", "origin", "HEAD:main"]);
    // git, its hook and the hook's program are one group: that of a terminal, where a push is ended by Ctrl-C
    let mut push = command
        .process_group(0)
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .spawn()
        .unwrap();
    // each ends its worker
    let mut seen = std::collections::BTreeSet::new();
    soon("its renders", async {
        while seen.len() < 3 {
            seen.extend(crate::hostile::children());
            seen.remove(&push.id());
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
    })
    .await;
    let group = format!("-{}", push.id());
    let killed = Command::new("kill")
        .args(["-9", "--", &group])
        .status()
        .unwrap();
    assert!(killed.success());
    push.wait().unwrap();
    // the renders end: no worker is started and none works any more
    let state = || (crate::hostile::children(), children_cpu_ms());
    soon("the workers to rest", async {
        let mut quiet = 0;
        let mut last = state();
        while quiet < 20 {
            tokio::time::sleep(Duration::from_millis(25)).await;
            let now = state();
            quiet = if now == last { quiet + 1 } else { 0 };
            last = now;
        }
    })
    .await;
    assert_eq!(host.main(), main);
    // both places for checks are free
    let other = host.work("other");
    other.publish(&[("prompts/sre/after.md", &prompt("Still here."))]);
    assert_eq!(host.text("after").await, "Still here.\n");
}
