//! The documentation's examples are what they say: a library that passes the check.

use std::path::Path;
use std::process::Command;

/// Writes every fenced block whose first line names a file (```` ```markdown prompts/sre/x.md ````).
fn write_examples(page: &str, library: &Path) -> usize {
    let text = std::fs::read_to_string(Path::new(env!("CARGO_MANIFEST_DIR")).join(page)).unwrap();
    let mut count = 0;
    let mut lines = text.lines();
    while let Some(line) = lines.next() {
        let Some((_, path)) = line
            .strip_prefix("```")
            .and_then(|info| info.split_once(' '))
        else {
            continue;
        };
        let body: Vec<&str> = lines.by_ref().take_while(|line| *line != "```").collect();
        let path = library.join(path);
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        std::fs::write(path, body.join("\n") + "\n").unwrap();
        count += 1;
    }
    count
}

#[test]
fn the_examples_of_the_library_format_pass_the_check() {
    let library = tempfile::tempdir().unwrap();
    assert!(write_examples("docs/library-format.md", library.path()) >= 5);
    let output = Command::new(env!("CARGO_BIN_EXE_cuebook"))
        .args(["check", "--format", "json"])
        .arg(library.path())
        .output()
        .unwrap();
    let report: serde_json::Value = serde_json::from_slice(&output.stdout).unwrap();
    assert_eq!(
        (&report["errors"], &report["warnings"]),
        (&0.into(), &0.into()),
        "{report:#}"
    );
    assert!(output.status.success());
}
