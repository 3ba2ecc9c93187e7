use super::*;

#[test]
fn later_sources_win_and_are_shown() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("config.toml");
    std::fs::write(
        &file,
        "log = \"debug\"\n[limits]\noutput_bytes = 1000\nclosure_files = 5\n",
    )
    .unwrap();
    let environment =
        |name: &str| (name == "CUEBOOK_LIMITS_OUTPUT_BYTES").then(|| "2000".to_owned());
    let config = Config::load(
        Some(&file),
        &environment,
        &[("listen", "127.0.0.1:0".into())],
    )
    .unwrap();
    assert_eq!(
        (config.limits.output_bytes, config.limits.closure_files),
        (2000, 5)
    );
    let shown = config.show();
    assert!(shown.lines().any(|l| l.starts_with("limits.output_bytes")
        && l.contains("2000")
        && l.contains("environment")));
    assert!(
        shown
            .lines()
            .any(|l| l.starts_with("listen") && l.contains("flag"))
    );
}

#[test]
fn every_problem_is_listed_at_once() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("config.toml");
    std::fs::write(&file, "listne = \"x\"\nlisten = \"x\"\n[mcp]\ntools = 1\n").unwrap();
    let error = Config::load(Some(&file), &|_| None, &[]).unwrap_err();
    assert_eq!(error.0.len(), 3, "{error}");
    assert!(error.to_string().contains("did you mean `listen`?"));
}

#[test]
fn every_key_can_be_shown_and_set_again() {
    let mut config = Config::default();
    for key in keys().filter(|key| {
        !matches!(
            key.name,
            "public_url" | "upstream.token_file" | "upstream.webhook_secret_file"
        )
    }) {
        let value = (key.get)(&config);
        assert_eq!(
            config.set(key, &value, Origin::Flag),
            Ok(()),
            "{}",
            key.name
        );
    }
}
