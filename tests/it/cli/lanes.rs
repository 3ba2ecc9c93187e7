//! Lanes and limits as the commands show them.

use super::*;

const LOOPED: &str = "---\ndescription: D\narguments:\n  - name: items\n---\n{% for i in items | split(pat=\",\") %}- {{ i }}\n{% endfor %}";
const FAST: &str = "---\ndescription: D\narguments:\n  - name: items\n---\n{{ items | upper }}\n";
const ENDLESS: &str = "---\ndescription: D\n---\nok\n{% for i in range(end=100000) %}{% for j in range(end=100000) %}{% endfor %}{% endfor %}";

#[test]
fn check_says_which_prompts_need_workers_and_why() {
    let folder = Folder::new(&[("prompts/looped.md", LOOPED), ("prompts/fast.md", FAST)]);
    let out = succeeds(folder.path(), &["check"]);
    assert_eq!(
        out.lines().last().unwrap(),
        "2 prompts, 0 resources, 0 examples; 1 prompt is rendered in worker processes (--lanes says why)"
    );
    let out = succeeds(folder.path(), &["check", "--lanes"]);
    let why = "a loop over a value: how long it is depends on who calls";
    assert!(out.contains("fast: fast\n"), "{out}");
    assert!(
        out.contains(&format!(
            "looped: worker, because of prompts/looped.md:6:13: {why}\n"
        )),
        "{out}"
    );
    let out = succeeds(folder.path(), &["check", "--lanes", "--format", "json"]);
    let document: serde_json::Value = serde_json::from_str(out.lines().last().unwrap()).unwrap();
    assert_eq!(document["lanes"][0]["lane"], "fast");
    assert_eq!(document["lanes"][1]["line"], 6);
    assert_eq!(document["lanes"][1]["reason"], why);
}

#[test]
fn a_render_in_a_worker_is_a_render() {
    let folder = Folder::new(&[("prompts/looped.md", LOOPED)]);
    let out = succeeds(folder.path(), &["render", "looped", "items=a,b"]);
    assert_eq!(out, "--- user\n- a\n- b\n");
}

#[test]
fn check_refuses_what_hits_a_limit_and_says_which() {
    let folder = Folder::new(&[("prompts/endless.md", ENDLESS)]);
    let ran = cuebook(folder.path(), &["check"]);
    assert_eq!(ran.code, 1, "{ran:?}");
    assert!(
        ran.stdout.contains("at most 100 are given (worker_cpu_ms)"),
        "{ran:?}"
    );
    // a limit that the settings raise is the one that holds, and is the one that is told
    let ran = command(folder.path(), &["check"])
        .env("CUEBOOK_RENDERING_WORKER_CPU_MS", "10")
        .output()
        .unwrap();
    let ran = Ran::from(ran);
    assert!(
        ran.stdout.contains("at most 10 are given (worker_cpu_ms)"),
        "{ran:?}"
    );
}

#[test]
fn config_show_has_every_limit_of_a_render() {
    let folder = Folder::new(&[]);
    let out = succeeds(folder.path(), &["config", "show"]);
    for (key, value) in [
        ("worker_renders", "1000"),
        ("worker_memory_bytes", "201326592"),
        ("worker_cpu_ms", "100"),
        ("worker_wall_ms", "1000"),
        ("queue_length", "64"),
        ("queue_wait_ms", "2000"),
        ("preview_cpu_ms_per_minute", "6000"),
        ("preview_bytes", "2097152"),
        ("unsafe_rendering", "false"),
    ] {
        let key = format!("rendering.{key} ");
        let line = out.lines().find(|line| line.starts_with(&key));
        let line = line.unwrap_or_else(|| panic!("{key}: {out}"));
        assert!(
            line.contains(&format!("= {value} ")) && line.contains("default"),
            "{line}"
        );
    }
    let ran = command(folder.path(), &["config", "show"])
        .env("CUEBOOK_RENDERING_WORKER_CPU_MS", "5")
        .output()
        .unwrap();
    let ran = Ran::from(ran);
    assert_eq!(ran.code, 2, "{ran:?}");
    assert!(
        ran.stderr.contains("must be a number from 10 to 60000"),
        "{ran:?}"
    );
}
