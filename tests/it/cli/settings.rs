//! `cuebook connect` and `cuebook config show`.

use super::*;

#[test]
fn connect_prints_the_configuration_of_every_client() {
    let folder = Folder::new(&[]);
    let list = succeeds(folder.path(), &["connect"]);
    let clients = [
        "claude-code",
        "claude-desktop",
        "vscode",
        "cursor",
        "zed",
        "gemini-cli",
        "opencode",
        "codex",
        "continue",
        "goose",
        "jetbrains",
    ];
    for client in clients {
        assert!(
            list.contains(&format!("cuebook connect {client}")),
            "{list}"
        );
        let url = "http://127.0.0.1:9999/mcp/sre";
        let out = succeeds(folder.path(), &["connect", client, "--url", url]);
        assert!(
            out.contains(url) && out.contains("== Use"),
            "{client}: {out}"
        );
        let library = folder.path().to_str().unwrap();
        let out = succeeds(folder.path(), &["connect", client, "--library", "."]);
        assert!(
            out.contains(library) && out.contains(env!("CARGO_BIN_EXE_cuebook")),
            "{client}: {out}"
        );
    }
    let ran = cuebook(folder.path(), &["connect", "emacs"]);
    assert!(
        ran.code == 2 && ran.stderr.contains("claude-code"),
        "{ran:?}"
    );
    for bad in [&["--url", "ftp://x"][..], &["--name", "a b"]] {
        let error = fails(folder.path(), &[&["connect", "zed"], bad].concat(), 1);
        assert!(error.starts_with("error: "), "{error}");
    }
}

#[test]
fn config_show_says_where_each_value_comes_from() {
    let folder = Folder::new(&[(
        "cuebook-data/config.toml",
        "log = \"debug\"\n[limits]\noutput_bytes = 1000\nclosure_files = 5\n",
    )]);
    let show = |arguments: &[&str]| {
        let ran: Ran = command(folder.path(), &[&["config", "show"], arguments].concat())
            .env("CUEBOOK_LIMITS_OUTPUT_BYTES", "2000")
            .output()
            .unwrap()
            .into();
        assert_eq!((ran.code, ran.stderr.as_str()), (0, ""), "{ran:?}");
        ran.stdout
    };
    let out = show(&[]);
    let line = |out: &str, key: &str| {
        let line = out
            .lines()
            .find(|l| l.split_whitespace().next() == Some(key));
        line.unwrap_or_else(|| panic!("no {key} in {out}"))
            .split_whitespace()
            .collect::<Vec<_>>()
            .join(" ")
    };
    assert!(line(&out, "listen").starts_with("listen = 127.0.0.1:8400 # default; "));
    assert!(line(&out, "log").starts_with("log = debug # config file; "));
    assert!(
        line(&out, "limits.output_bytes").starts_with("limits.output_bytes = 2000 # environment; ")
    );
    assert!(
        line(&out, "limits.closure_files").starts_with("limits.closure_files = 5 # config file; ")
    );
    assert!(line(&show(&["--log", "warn"]), "log").starts_with("log = warn # flag; "));
    // every setting is explained
    for line in out.lines() {
        let (_, meaning) = line.split_once("; ").unwrap_or_else(|| panic!("{line}"));
        assert!(meaning.len() > 5, "{line}");
    }
}

#[test]
fn a_bad_configuration_is_refused_with_every_problem_at_once() {
    let folder = Folder::new(&[(
        "cuebook-data/config.toml",
        "listne = \"x\"\nlisten = \"x\"\n[limits]\noutput_bytes = \"many\"\n",
    )]);
    for command in [&["config", "show"][..], &["serve"]] {
        let error = fails(folder.path(), command, 2);
        assert_eq!(error.lines().count(), 3, "{error}");
        assert!(error.contains("did you mean `listen`?"), "{error}");
        assert!(
            error.contains("`limits.output_bytes` must be a number from 1 to"),
            "{error}"
        );
    }
    folder.write("cuebook-data/config.toml", "listen = \n");
    let error = fails(folder.path(), &["config", "show"], 2);
    assert!(error.contains("config.toml:1: "), "{error}");
    let error = fails(
        folder.path(),
        &["config", "show", "--config", "nowhere.toml"],
        2,
    );
    assert!(error.contains("nowhere.toml"), "{error}");
}
