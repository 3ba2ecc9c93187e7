//! `cuebook init`.

use super::*;
use crate::support::library::git;

#[test]
fn init_makes_a_library_that_is_clean_and_committed() {
    let folder = Folder::new(&[]);
    for (language, title) in [("en", "Starter library"), ("ko", "시작 라이브러리")] {
        let out = succeeds(folder.path(), &["init", language, "--language", language]);
        for word in ["edit", "check", "try", "publish", "git -C"] {
            assert!(out.contains(word), "{out}");
        }
        let library = folder.at(language);
        assert_eq!(git(&library, &["status", "--porcelain"]), "");
        assert_eq!(git(&library, &["rev-list", "--count", "HEAD"]).trim(), "1");
        assert_eq!(
            git(&library, &["symbolic-ref", "HEAD"]).trim(),
            "refs/heads/main"
        );
        assert_eq!(git(&library, &["log", "-1", "--format=%s"]).trim(), title);
        let checked = succeeds(&library, &["check"]);
        assert!(checked.starts_with("no problems\n"), "{checked}");
        let committed = succeeds(&library, &["check", "--revision", "HEAD"]);
        assert_eq!(committed, checked);
    }
}

#[test]
fn init_takes_an_empty_folder_and_no_other() {
    let folder = Folder::new(&[("full/notes.txt", "mine"), ("file", "mine")]);
    std::fs::create_dir(folder.at("empty")).unwrap();
    succeeds(folder.path(), &["init", "empty"]);
    for taken in ["full", "empty"] {
        let error = fails(folder.path(), &["init", taken], 1);
        assert!(
            error.contains("is not empty") && error.contains("cuebook init DIR"),
            "{error}"
        );
    }
    assert_eq!(folder.read("full/notes.txt"), "mine");
    assert!(!folder.at("full/.git").exists());
    let error = fails(folder.path(), &["init", "file"], 1);
    assert!(error.contains("file"), "{error}");
    // without a name, and one level deeper than what exists
    succeeds(folder.path(), &["init"]);
    assert!(folder.at("prompts-library/prompts").is_dir());
    succeeds(folder.path(), &["init", "a/b/c"]);
    assert!(folder.at("a/b/c/prompts").is_dir());
    assert_eq!(
        cuebook(folder.path(), &["init", "x", "--language", "fr"]).code,
        2
    );
    assert_eq!(
        cuebook(
            folder.path(),
            &["init", "x", "--language", "en", "--from", "y"]
        )
        .code,
        2
    );
}

#[test]
fn init_follows_the_locale_and_clones() {
    let folder = Folder::new(&[]);
    for (variable, value, expected) in [
        ("LANG", "ko_KR.UTF-8", "장애"),
        ("LC_ALL", "ko_KR.EUC-KR", "장애"),
        ("LANG", "C", "Incident"),
        ("LANG", "en_US.UTF-8", "Incident"),
        ("LANG", "kok_IN", "Incident"),
    ] {
        let name = format!("{variable}-{value}");
        let ran: Ran = command(folder.path(), &["init", &name])
            .env(variable, value)
            .output()
            .unwrap()
            .into();
        assert_eq!(ran.code, 0, "{ran:?}");
        let text = folder.read(&format!("{name}/prompts/sre/incident-triage.md"));
        assert!(text.contains(expected), "{name}: {text}");
    }
    let origin = folder.at("LANG-C");
    let ran = cuebook(
        folder.path(),
        &["init", "cloned", "--from", origin.to_str().unwrap()],
    );
    assert_eq!(ran.code, 0, "{ran:?}");
    assert_eq!(
        git(&folder.at("cloned"), &["rev-parse", "HEAD"]),
        git(&origin, &["rev-parse", "HEAD"])
    );
    let ran = cuebook(
        folder.path(),
        &["init", "not", "--from", "/no/such/repository"],
    );
    assert_eq!(ran.code, 1, "{ran:?}");
    assert!(ran.stderr.contains("could not be cloned"), "{ran:?}");
}
