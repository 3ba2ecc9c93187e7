//! Everything that the check finds, that keeps a prompt out of the fast lane, that bounds something and that is not well has
//! its words in Korean: each code of a problem has a case here, and the sources say which codes there are.

mod cases;

use std::collections::BTreeSet;
use std::io;
use std::path::{Path, PathBuf};

use cuebook::catalog::build::{Built, build, build_and_run};
use cuebook::catalog::{Entry, EntryKind, MemoryTree, Revision, Tree, examples};
use cuebook::config::Config;
use cuebook::prompt::render::Stopped;
use cuebook::prompt::{BindError, Lane, Limits, RenderError};
use cuebook::web::Lang;
use cuebook::web::told::told;
use regex::Regex;

use crate::format::PATH;
use cases::{FILES, PROMPTS, made, named, prompt};

/// What else is in each library.
const OTHERS: &[(&str, &str)] = &[
    ("prompts/t/other.md", "---\ndescription: D\n---\nother\n"),
    ("partials/reads.md", "{{ other }}"),
    ("resources/runbook/a.md", "A\n"),
    ("resources/image/i.png", "\0"),
    ("values/v.txt", "a\n"),
];

/// A tree in which the names of some files say what else they are.
struct Odd(MemoryTree);

impl Tree for Odd {
    fn entries(&self) -> io::Result<Vec<Entry>> {
        let mut entries = self.0.entries()?;
        for entry in &mut entries {
            entry.kind = match &*entry.path {
                "prompts/symlink" => EntryKind::Symlink,
                "prompts/submodule" => EntryKind::Gitlink,
                "prompts/deep-folder" => EntryKind::Deep,
                "prompts/bad-path" => EntryKind::BadPath,
                _ => continue,
            };
        }
        Ok(entries)
    }

    fn read(&self, entry: &Entry) -> io::Result<Vec<u8>> {
        self.0.read(entry)
    }
}

/// A library of some files and the others.
fn library(files: &[(String, Vec<u8>)]) -> Odd {
    let mut tree = MemoryTree::default();
    for (path, text) in OTHERS {
        if files.iter().all(|(other, _)| other != path) {
            tree = tree.with(path, *text);
        }
    }
    for (path, bytes) in files {
        tree = tree.with(path, bytes.clone());
    }
    Odd(tree)
}

fn checked(files: &[(String, Vec<u8>)]) -> Built {
    let limits = Limits {
        // so that the depth of includes is met before their number
        closure_files: 60,
        ..Limits::default()
    };
    build_and_run(&library(files), Revision::WorkTree, &limits, None).unwrap()
}

/// Lines of problems that only a machine under load, a worker or who knows the history finds: the code, and the line.
fn elsewhere() -> Vec<(&'static str, String)> {
    let output = RenderError::OutputLimit {
        actual: 9,
        limit: 8,
    };
    let (used_ms, limit_ms) = (9, 8);
    let mut out = vec![
        (
            "render-limit",
            format!("the prompt cannot be rendered with 7 bytes of arguments in all: {output}"),
        ),
        (
            "check-budget",
            Stopped::Check {
                used_ms,
                limit_ms,
                prompt: "prompts/x.md".into(),
                prompt_ms: 5,
            }
            .to_string(),
        ),
        (
            // an alias is of an anchor, and that is refused before it
            "yaml-alias",
            "YAML aliases (`*name`) are not read in front matter".into(),
        ),
    ];
    let stopped = [
        Stopped::Cpu { used_ms, limit_ms },
        Stopped::Wall { used_ms, limit_ms },
        Stopped::Memory {
            wanted: 9,
            limit: 8,
        },
        Stopped::Crashed("signal 9".into()),
        Stopped::QueueFull {
            waiting: 9,
            limit: 8,
        },
        Stopped::QueueWait {
            waited_ms: 9,
            limit_ms,
        },
        Stopped::Budget {
            used_ms,
            limit_ms,
            wait_seconds: 3,
        },
        Stopped::GivenUp,
        Stopped::Unavailable("no memory".into()),
    ];
    out.extend(stopped.map(|stopped| ("not-rendered", stopped.to_string())));
    let too_large = BindError::TooLarge {
        actual: 9,
        limit: 8,
    };
    out.push(("arguments", too_large.to_string()));
    out
}

/// Codes of problems that pass on what the engine or a parser says, which is English in the sentence.
const PASSED_ON: &[&str] = &[
    "template-syntax",
    "toml",
    "yaml-syntax",
    "render-fails",
    "label-fails",
    "not-rendered",
];

/// A line in Korean that leaves nothing out.
#[track_caller]
fn korean(code: &str, line: &str) {
    let said = told(Lang::Ko, line);
    let is_hangul = |c: char| ('가'..='힣').contains(&c);
    assert!(said.contains(is_hangul), "{code}: {line}");
    let names = Regex::new(r"\{[a-z_]+\}").unwrap();
    for name in names.find_iter(&said) {
        assert!(line.contains(name.as_str()), "{code}: {said}");
    }
    if PASSED_ON.contains(&code) {
        return;
    }
    let quoted = Regex::new("`[^`]*`").unwrap();
    let english = Regex::new(r"\b(is|are|an|the|not|must|cannot|has|which|it)\b").unwrap();
    let left = quoted.replace_all(&said, "");
    assert!(!english.is_match(&left), "{code}: {said}");
}

/// The files of Rust below a folder of the sources.
fn sources(folder: &str) -> Vec<PathBuf> {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join(folder);
    let mut out = Vec::new();
    for entry in std::fs::read_dir(root).unwrap() {
        let path = entry.unwrap().path();
        if path.extension().is_some_and(|ending| ending == "rs") {
            out.push(path);
        }
    }
    out
}

/// The codes of problems that the sources make.
fn codes() -> BTreeSet<String> {
    let code = Regex::new(
        r#"(?:Severity::(?:Error|Warning),|\b(?:error|warn|fault|whole)\(|code: |=> \()\s*"([a-z][a-z0-9]*(?:-[a-z0-9]+)*)",|const (?:CODE|NO_SUCH_VERSION|LABEL_FAILS|OVER_BUDGET|NOT_RENDERED): &str = "([a-z-]+)""#,
    )
    .unwrap();
    let mut out = BTreeSet::new();
    for path in [sources("src/prompt"), sources("src/catalog")].concat() {
        let text = std::fs::read_to_string(&path).unwrap();
        let text = text.split("#[cfg(test)]").next().unwrap();
        for found in code.captures_iter(text) {
            let name = found.get(1).or_else(|| found.get(2)).unwrap();
            out.insert(name.as_str().to_owned());
        }
    }
    assert!(out.len() > 90, "{out:?}");
    out
}

#[test]
fn every_problem_is_told_in_korean() {
    let mut seen = BTreeSet::new();
    let prompts = PROMPTS.iter().map(|(code, front, body)| {
        let text = prompt(front, body).into_bytes();
        (*code, vec![(PATH.to_owned(), text)])
    });
    let files = FILES.iter().map(|(code, path, text)| {
        let text = text.as_bytes().to_vec();
        (*code, vec![((*path).to_owned(), text)])
    });
    for (code, files) in prompts.chain(files).chain(made()).chain(named()) {
        let built = checked(&files);
        let problems = &built.problems;
        assert!(
            problems.iter().any(|problem| problem.code == code),
            "{code}: {problems:?}"
        );
        for problem in problems {
            seen.insert(problem.code.to_owned());
            korean(problem.code, &problem.message);
            korean(problem.code, &problem.one_line());
            if let Some(hint) = &problem.hint {
                korean(problem.code, hint);
            }
        }
    }
    for (code, line) in elsewhere() {
        seen.insert(code.to_owned());
        korean(code, &line);
    }
    // labels on versions, which the history knows
    let text = "[production]\nother = \"v3\"\n";
    let built = checked(&[("labels.toml".into(), text.into())]);
    let mut problems = built.catalog.check_label_versions(|_| 0);
    problems.extend(built.catalog.check_label_versions(|_| 1));
    let first = problems[0].clone();
    problems.push(built.catalog.label_fails("production", "other", &first));
    for problem in problems {
        seen.insert(problem.code.to_owned());
        korean(problem.code, &problem.message);
        if let Some(hint) = &problem.hint {
            korean(problem.code, hint);
        }
    }
    let missing: Vec<String> = codes().difference(&seen).cloned().collect();
    assert_eq!(missing, Vec::<String>::new(), "these have no case");
}

#[test]
fn what_hostile_templates_are_refused_for_is_told_in_korean() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/fixtures/hostile");
    let front = "arguments: [{ name: big }, { name: text }, { name: name }, { name: items }, { name: users }, { name: mode }]\n";
    let (mut problems, mut reasons) = (0, 0);
    for entry in std::fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        if path.extension().is_none_or(|ending| ending != "tera") {
            continue;
        }
        // of a bundle, what stands before its second file is enough
        let text = std::fs::read_to_string(&path).unwrap();
        let used = "{{ big }}{{ text }}{{ name }}{{ items }}{{ users }}{{ mode }}";
        let body = format!("{used}{}", text.replace("=== main\n", ""));
        let tree = library(&[(PATH.to_owned(), prompt(front, &body).into_bytes())]);
        // nothing of them is run in this process
        let limits = Limits::default();
        let built = build(&tree, Revision::WorkTree, &limits, None, &examples::none).unwrap();
        for problem in &built.problems {
            problems += 1;
            korean(problem.code, &problem.one_line());
            if let Some(hint) = &problem.hint {
                korean(problem.code, hint);
            }
        }
        if let Some(prompt) = built.catalog.prompt("p")
            && let Lane::Worker(reason) = &prompt.lane
        {
            reasons += 1;
            korean("lane", &reason.to_string());
        }
    }
    assert!(problems > 10 && reasons > 10, "{problems} {reasons}");
}

/// Every sentence that a file of the sources writes out, with 7 for what differs.
fn sentences(path: &str) -> Vec<String> {
    let text = std::fs::read_to_string(Path::new(env!("CARGO_MANIFEST_DIR")).join(path)).unwrap();
    let is_code = |line: &&str| !line.trim_start().starts_with("//");
    let code: Vec<&str> = text.lines().filter(is_code).collect();
    let goes_on = Regex::new(r"\\\n\s*").unwrap();
    let code = code.join("\n");
    let code = goes_on.replace_all(&code, "");
    let literal = Regex::new(r#""((?:[^"\\]|\\.)*)""#).unwrap();
    let differs = Regex::new(r"\{[^{}]*\}").unwrap();
    literal
        .captures_iter(&code)
        .map(|found| differs.replace_all(&found[1], "7").into_owned())
        .filter(|line| line.contains(' ') && line.contains(|c: char| c.is_ascii_lowercase()))
        .collect()
}

#[test]
fn every_reason_of_a_lane_and_what_is_not_well_is_told_in_korean() {
    for (path, least) in [("src/prompt/lane.rs", 40), ("src/activity/health.rs", 4)] {
        let found = sentences(path);
        assert!(found.len() >= least, "{path}: {found:?}");
        for line in found {
            korean(path, &line);
        }
    }
    for line in [
        "following https://git.example.com/x.git: the last fetch failed: no route",
        "abc1234 does not pass the check, so what was served before is; mend what `problems` lists there",
        "use and deliveries cannot be written: full; 3 deliveries wait in memory (at most 9), and it is tried again",
        "the audit cannot be written: full; 3 rows wait, and nothing is lost while the server runs",
        "since the start 3 calls were not counted as use and 2 deliveries have no row: there is no database",
        "the database was damaged (why); it is kept as /a/b, and a new one has all of its 3 rows",
        "the TLS certificate expires in 3 days; renew it",
    ] {
        korean("health", line);
    }
}

#[test]
fn what_every_limit_bounds_is_told_in_korean() {
    let limits = Config::default().limits_in_force();
    assert!(limits.len() > 40, "{}", limits.len());
    for limit in &*limits {
        korean(limit.name, limit.meaning);
    }
}
