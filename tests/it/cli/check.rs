//! `cuebook check`: what it prints, what it exits with, what it puts right.

use insta::assert_snapshot;

use super::*;
use crate::support::library::{TestLibrary, git};

const GOOD: &str = "---\ndescription: D\n---\ngood\n";
const WARNS: &str = "a prompt without a description\n";
const BAD: &str = "---\ndescription: D\narguments:\n  - name: service\n---\nFor {{ servce }}.\n";

/// Something of every kind of problem.
fn problems() -> Folder {
    Folder::new(&[
        ("prompts/sre/good.md", GOOD),
        ("prompts/sre/help.md", WARNS),
        ("prompts/sre/misspelt.md", BAD),
        (
            "prompts/sre/pasted.md",
            "---\ndescription: 배포\n---\n이미지는 {{ .Values.image }}, 커밋은 ${{ github.sha }} 입니다.\n",
        ),
        (
            "prompts/sre/yaml.md",
            "---\ndescription: Review: find bugs\n---\nB\n",
        ),
        ("prompts/sre/Bad Name.md", GOOD),
        ("resources/http/x.md", "X"),
        (
            "prompts/sre/escape.md",
            "---\ndescription: D\n---\n\u{1b}[31m{{ \u{1b} }}\n",
        ),
    ])
}

#[test]
fn text_is_what_compilers_print() {
    let ran = cuebook(problems().path(), &["check"]);
    assert_eq!((ran.code, ran.stderr.as_str()), (1, ""));
    assert!(
        !ran.stdout.contains('\u{1b}'),
        "an escape sequence of the library reaches the terminal"
    );
    assert_snapshot!(ran.stdout);
}

#[test]
fn json_is_for_programs() {
    let ran = cuebook(problems().path(), &["check", "--format", "json"]);
    assert_eq!((ran.code, ran.stderr.as_str()), (1, ""));
    let document: serde_json::Value = serde_json::from_str(&ran.stdout).unwrap();
    let count = |severity: &str| {
        document["problems"]
            .as_array()
            .unwrap()
            .iter()
            .filter(|p| p["severity"] == severity)
            .count()
    };
    assert_eq!(document["errors"], count("error"));
    assert_eq!(document["warnings"], count("warning"));
    assert_snapshot!(ran.stdout);
}

#[test]
fn github_is_for_annotations() {
    let ran = cuebook(problems().path(), &["check", "--format", "github"]);
    assert_eq!((ran.code, ran.stderr.as_str()), (1, ""));
    assert_snapshot!(ran.stdout);
}

#[test]
fn exit_codes() {
    let good = Folder::new(&[("prompts/a/good.md", GOOD)]);
    let warns = Folder::new(&[("prompts/a/good.md", GOOD), ("prompts/a/warns.md", WARNS)]);
    let bad = Folder::new(&[("prompts/a/bad.md", BAD)]);
    for format in ["text", "json", "github"] {
        for (folder, code) in [(&good, 0), (&warns, 0), (&bad, 1)] {
            let ran = cuebook(folder.path(), &["check", "--format", format]);
            assert_eq!(
                (ran.code, ran.stderr.as_str()),
                (code, ""),
                "{format}: {ran:?}"
            );
        }
    }
    assert_eq!(
        succeeds(good.path(), &["check"]),
        "no problems\n1 prompt, 0 resources, 0 examples\n"
    );
    assert!(succeeds(warns.path(), &["check"]).ends_with("1 warning in 1 file\n"));

    let here = good.path();
    for usage in [
        &["check", "--nope"][..],
        &["check", "--format", "xml"],
        &["check", "--fix", "--revision", "HEAD"],
        &["check", "a", "b"],
        &["chekc"],
        &[],
        &["check", "--log"],
    ] {
        let ran = cuebook(here, usage);
        assert_eq!(
            (ran.code, ran.stdout.as_str()),
            (2, ""),
            "{usage:?}: {ran:?}"
        );
        assert!(
            ran.stderr.contains("Usage:") || ran.stderr.contains("--help"),
            "{usage:?}: {ran:?}"
        );
    }
    let error = fails(here, &["check", "nowhere"], 1);
    assert!(
        error.starts_with("error: ") && error.contains("nowhere"),
        "{error}"
    );
}

#[test]
fn what_is_no_library_is_told_with_what_to_do() {
    let empty = Folder::new(&[("src/main.rs", "fn main() {}")]);
    let error = fails(empty.path(), &["check"], 1);
    assert!(
        error.contains("no prompts/ folder") && error.contains("cuebook init"),
        "{error}"
    );
    let error = fails(empty.path(), &["check", "--revision", "HEAD"], 1);
    assert!(error.contains("no prompts/ folder"), "{error}");
    let plain = Folder::new(&[("prompts/a/good.md", GOOD)]);
    let error = fails(plain.path(), &["check", "--revision", "HEAD"], 1);
    assert!(error.contains("no git repository"), "{error}");
    let library = TestLibrary::empty();
    let error = fails(&library.bare(), &["check"], 1);
    assert!(error.contains("no commit on main yet"), "{error}");
}

#[test]
fn a_work_tree_a_bare_repository_and_a_revision() {
    let library = TestLibrary::with(&[("prompts/a/one.md", GOOD)]);
    let first = git(&library.bare(), &["rev-parse", "main"])
        .trim()
        .to_owned();
    library.publish(&[("prompts/a/two.md", BAD)]);
    library.publish(&[("prompts/a/three.md", WARNS), ("prompts/a/four.md", GOOD)]);
    let (bare, clone) = (library.bare(), library.clone());

    // what is committed
    let ran = cuebook(&bare, &["check"]);
    assert_eq!(ran.code, 1, "{ran:?}");
    let tip = git(&bare, &["rev-parse", "main"]);
    let line = format!(
        "main is at {} and is not served; the newest clean commit {} is\n",
        &tip[..7],
        &first[..7]
    );
    assert!(ran.stdout.ends_with(&line), "{}", ran.stdout);
    for revision in [first.as_str(), &first[..8], "HEAD~2", "main~2"] {
        for place in [&bare, &clone] {
            let out = succeeds(place, &["check", "--revision", revision]);
            assert_eq!(out, "no problems\n1 prompt, 0 resources, 0 examples\n");
        }
    }
    for revision in ["HEAD", "HEAD~1", "main"] {
        assert_eq!(cuebook(&clone, &["check", "--revision", revision]).code, 1);
    }
    let error = fails(&clone, &["check", "--revision", "no-such-branch"], 1);
    assert_eq!(error, "error: no commit `no-such-branch`\n");

    // what is on disk, uncommitted edits included
    library.remove("prompts/a/two.md");
    assert_eq!(cuebook(&clone, &["check"]).code, 0);
    library.write_bytes("prompts/a/one.md", BAD.as_bytes());
    assert_eq!(cuebook(&clone, &["check"]).code, 1);
    assert_eq!(cuebook(&bare, &["check"]).code, 1);

    // by its path, and a data directory
    let folder = tempfile::tempdir().unwrap();
    git(
        folder.path(),
        &[
            "clone",
            "--quiet",
            "--bare",
            bare.to_str().unwrap(),
            "library.git",
        ],
    );
    for place in [folder.path(), &folder.path().join("library.git")] {
        let ran = cuebook(Path::new("/"), &["check", place.to_str().unwrap()]);
        assert!(ran.code == 1 && ran.stdout.ends_with(&line), "{ran:?}");
    }
    // a check changes nothing: the served commit is the server's to remember
    assert_eq!(
        git(
            &folder.path().join("library.git"),
            &["for-each-ref", "refs/cuebook"]
        ),
        ""
    );
}

#[test]
fn where_no_commit_is_clean_that_is_told() {
    let library = TestLibrary::with(&[("prompts/a/one.md", GOOD), ("prompts/a/bad.md", BAD)]);
    let ran = cuebook(&library.bare(), &["check"]);
    assert!(
        ran.stdout.ends_with(
            "no commit of main is clean; only the prompts without problems are served\n"
        ),
        "{}",
        ran.stdout
    );
}

#[test]
fn fix_wraps_what_was_pasted_and_touches_nothing_else() {
    let pasted = "\u{feff}---\r\ndescription: 배포\r\n---\r\n이미지 {{ .Values.image }}\r\n{% raw %}{{ .a }}{% endraw %} ${{ github.sha }}\r{#id\n";
    let folder = Folder::new(&[
        ("prompts/a/pasted.md", pasted),
        ("prompts/a/good.md", GOOD),
        ("partials/chart.md", "{{ $labels.x }} and {{ $labels.y }}\n"),
        (
            "prompts/a/user.md",
            "---\ndescription: D\n---\n{% include \"chart.md\" %}\n",
        ),
        ("docs/other.md", "{{ .Values.image }}\n"),
    ]);
    assert_eq!(cuebook(folder.path(), &["check"]).code, 1);
    let before = folder
        .at("prompts/a/good.md")
        .metadata()
        .unwrap()
        .modified()
        .unwrap();
    let out = succeeds(folder.path(), &["check", "--fix"]);
    assert_eq!(
        out,
        "no problems\nfixed: 2 files\n3 prompts, 0 resources, 0 examples\n"
    );
    assert_eq!(
        folder.read("prompts/a/pasted.md"),
        "\u{feff}---\r\ndescription: 배포\r\n---\r\n이미지 {% raw %}{{ .Values.image }}{% endraw %}\r\n{% raw %}{{ .a }}{% endraw %} {% raw %}${{ github.sha }}{% endraw %}\r{% raw %}{#{% endraw %}id\n"
    );
    assert_eq!(
        folder.read("partials/chart.md"),
        "{% raw %}{{ $labels.x }}{% endraw %} and {% raw %}{{ $labels.y }}{% endraw %}\n"
    );
    assert_eq!(folder.read("docs/other.md"), "{{ .Values.image }}\n");
    assert_eq!(
        folder
            .at("prompts/a/good.md")
            .metadata()
            .unwrap()
            .modified()
            .unwrap(),
        before
    );
    // again: nothing to do
    assert_eq!(
        succeeds(folder.path(), &["check", "--fix"]),
        "no problems\n3 prompts, 0 resources, 0 examples\n"
    );
    let out = succeeds(folder.path(), &["render", "pasted"]);
    assert_eq!(
        out,
        "--- user\n이미지 {{ .Values.image }}\n{{ .a }} ${{ github.sha }}\n{#id\n"
    );
}

#[test]
fn fix_leaves_to_a_person_what_a_person_must_decide() {
    let folder = Folder::new(&[
        (
            "prompts/a/both.md",
            "---\ndescription: D\n---\n{{ .a }} {{ nope }}\n",
        ),
        ("prompts/a/bad.md", BAD),
    ]);
    let ran = cuebook(folder.path(), &["check", "--fix"]);
    assert_eq!(ran.code, 1, "{ran:?}");
    assert!(ran.stdout.ends_with("fixed: 1 file\n"), "{}", ran.stdout);
    assert_eq!(
        folder.read("prompts/a/both.md"),
        "---\ndescription: D\n---\n{% raw %}{{ .a }}{% endraw %} {{ nope }}\n"
    );
    assert_eq!(folder.read("prompts/a/bad.md"), BAD);

    let library = TestLibrary::with(&[("prompts/a/bad.md", BAD)]);
    let error = fails(&library.bare(), &["check", "--fix"], 1);
    assert!(
        error.contains("bare repository") && error.contains("clone"),
        "{error}"
    );
}

#[test]
fn a_clone_follows_no_link_when_it_is_fixed() {
    #[cfg(unix)]
    {
        let outside = Folder::new(&[("outside.md", "{{ .Values.image }}\n")]);
        let folder = Folder::new(&[("prompts/a/good.md", GOOD)]);
        std::os::unix::fs::symlink(outside.at("outside.md"), folder.at("prompts/a/link.md"))
            .unwrap();
        let ran = cuebook(folder.path(), &["check", "--fix"]);
        assert_eq!(ran.code, 1, "{ran:?}");
        assert_eq!(outside.read("outside.md"), "{{ .Values.image }}\n");
    }
}

#[test]
fn settings_of_a_data_directory_hold_and_those_of_a_clone_do_not() {
    let library = TestLibrary::with(&[(
        "prompts/a/long.md",
        &format!("---\ndescription: D\n---\n{}", "x".repeat(200)),
    )]);
    let folder = tempfile::tempdir().unwrap();
    git(
        folder.path(),
        &[
            "clone",
            "--quiet",
            "--bare",
            library.bare().to_str().unwrap(),
            "library.git",
        ],
    );
    let config = "[limits]\nprompt_file_bytes = 100\n";
    std::fs::write(folder.path().join("config.toml"), config).unwrap();
    for (at, place) in [("", "."), ("", "library.git"), ("library.git", ".")] {
        let ran = cuebook(&folder.path().join(at), &["check", place]);
        assert!(
            ran.code == 1
                && ran
                    .stdout
                    .contains("at most 100 are read (prompt_file_bytes)"),
            "{ran:?}"
        );
    }
    // `config.toml` in a clone is whatever its author put there
    library.write_bytes("config.toml", config.as_bytes());
    assert_eq!(cuebook(&library.clone(), &["check"]).code, 0);
    // the environment is the person's own
    let ran: Ran = command(&library.clone(), &["check"])
        .env("CUEBOOK_LIMITS_PROMPT_FILE_BYTES", "100")
        .output()
        .unwrap()
        .into();
    assert_eq!(ran.code, 1, "{ran:?}");
}

#[test]
fn output_that_nobody_reads_is_no_failure() {
    use std::io::Read as _;
    let many: Vec<(String, &str)> = (0..400)
        .map(|i| (format!("prompts/a/p{i}.md"), BAD))
        .collect();
    let files: Vec<(&str, &str)> = many.iter().map(|(p, t)| (p.as_str(), *t)).collect();
    let folder = Folder::new(&files);
    let mut child = command(folder.path(), &["check"])
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    let mut first = [0; 10];
    let mut stdout = child.stdout.take().unwrap();
    stdout.read_exact(&mut first).unwrap();
    drop(stdout);
    let output = child.wait_with_output().unwrap();
    assert_eq!(String::from_utf8_lossy(&output.stderr), "");
    assert!(
        !output.status.to_string().contains("signal"),
        "{}",
        output.status
    );
}

#[test]
fn a_repository_without_prompts_and_misnamed_folders_are_told() {
    let folder = Folder::new(&[("src/main.rs", "fn main() {}")]);
    git(folder.path(), &["init", "--quiet"]);
    let out = succeeds(folder.path(), &["check"]);
    assert!(
        out.contains("no prompts/ folder here") && out.ends_with("1 warning in 1 file\n"),
        "{out}"
    );
    for (path, told) in [
        ("Prompts/a/one.md", "did you mean prompts/?"),
        ("prompt/a/one.md", "did you mean prompts/?"),
        ("partial/one.md", "did you mean partials/?"),
        ("Partials/one.md", "did you mean partials/?"),
        ("resource/one.md", "did you mean resources/?"),
        ("value/one.txt", "did you mean values/?"),
    ] {
        let library = TestLibrary::empty();
        library.write_bytes(path, GOOD.as_bytes());
        library.commit("misnamed");
        library.push();
        for place in [library.clone(), library.bare()] {
            let out = succeeds(&place, &["check"]);
            assert!(
                out.contains(told) && out.contains("no prompts/ folder here"),
                "{out}"
            );
        }
    }
    // beside one that is right
    let folder = Folder::new(&[("prompts/a/good.md", GOOD), ("partial/one.md", "x")]);
    let out = succeeds(folder.path(), &["check"]);
    assert!(
        out.contains("did you mean partials/?") && !out.contains("no prompts/"),
        "{out}"
    );
    let folder = Folder::new(&[("prompts/a/good.md", GOOD), ("values/v.txt", "x\n")]);
    assert!(succeeds(folder.path(), &["check"]).starts_with("no problems\n"));
}

#[test]
fn a_part_of_a_library_is_told_which_folder_is_the_library() {
    let folder = Folder::new(&[
        ("lib/prompts/sre/good.md", GOOD),
        ("lib/resources/doc/x.md", "x"),
        ("other/Prompts/a/good.md", GOOD),
    ]);
    for (at, dir, library) in [
        ("", "lib/prompts", "lib".to_owned()),
        ("", "lib/prompts/", "lib".to_owned()),
        ("", "lib/prompts/sre", "lib".to_owned()),
        ("", "lib/resources", "lib".to_owned()),
        (
            "lib/prompts",
            ".",
            folder
                .at("lib")
                .canonicalize()
                .unwrap()
                .display()
                .to_string(),
        ),
    ] {
        let error = fails(&folder.at(at), &["check", dir], 1);
        assert!(
            error.contains(&format!(
                "({library} looks like the library; name that one)"
            )) && !error.contains("init"),
            "{error}"
        );
    }
    let error = fails(folder.path(), &["check", "other"], 1);
    assert!(error.contains("did you mean prompts/?"), "{error}");
}

#[cfg(unix)]
#[test]
fn fix_keeps_permissions_and_leaves_nothing_beside() {
    use std::os::unix::fs::PermissionsExt as _;
    let folder = Folder::new(&[(
        "prompts/a/pasted.md",
        "---\ndescription: D\n---\n{{ .a }}\n",
    )]);
    let file = folder.at("prompts/a/pasted.md");
    let mode = |path: &Path| std::fs::metadata(path).unwrap().permissions().mode() & 0o777;
    std::fs::set_permissions(&file, std::fs::Permissions::from_mode(0o640)).unwrap();
    // a reader that has the file open sees the old one whole
    let mut open = std::fs::File::open(&file).unwrap();
    succeeds(folder.path(), &["check", "--fix"]);
    let mut text = String::new();
    std::io::Read::read_to_string(&mut open, &mut text).unwrap();
    assert_eq!(text, "---\ndescription: D\n---\n{{ .a }}\n");
    assert!(folder.read("prompts/a/pasted.md").contains("{% raw %}"));
    assert_eq!(mode(&file), 0o640);
    assert_eq!(
        std::fs::read_dir(folder.at("prompts/a")).unwrap().count(),
        1
    );

    folder.write(
        "prompts/a/pasted.md",
        "---\ndescription: D\n---\n{{ .a }}\n",
    );
    std::fs::set_permissions(&file, std::fs::Permissions::from_mode(0o440)).unwrap();
    let error = fails(folder.path(), &["check", "--fix"], 1);
    assert!(
        error.contains("cannot write") && error.contains("pasted.md"),
        "{error}"
    );
}
