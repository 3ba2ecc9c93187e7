//! `cuebook hook install`: a check before every commit of a clone.

use super::*;

/// The binary in a folder.
fn cuebook(at: &Path, arguments: &[&str]) -> Ran {
    let mut command = Command::new(env!("CARGO_BIN_EXE_cuebook"));
    command
        .args(arguments)
        .current_dir(at)
        .env_clear()
        .stdin(Stdio::null());
    command.env("HOME", "/nowhere");
    #[allow(clippy::disallowed_methods, reason = "git must be found")]
    if let Some(path) = std::env::var_os("PATH") {
        command.env("PATH", path);
    }
    run(command)
}

/// A repository with one prompt and the hook.
fn hooked() -> (TempDir, Work) {
    let folder = tempfile::tempdir().unwrap();
    let work = Work {
        path: folder.path().join("my clone"),
    };
    std::fs::create_dir(&work.path).unwrap();
    work.ok(&["init", "--quiet", "--initial-branch=main"]);
    work.change(&[("prompts/sre/good.md", &prompt("Good."))]);
    let said = cuebook(&work.path, &["hook", "install"]);
    assert!(said.ok, "{}", said.text);
    said.says("Every commit in . is now checked first");
    (folder, work)
}

#[test]
fn a_commit_with_a_problem_is_refused_before_it_is_made() {
    let (_folder, work) = hooked();
    let before = work.head();
    work.write("prompts/sre/bad.md", prompt("{{ nope }}"));
    work.ok(&["add", "--all"]);
    let said = work.no(&["commit", "--message", "bad"]);
    said.says("prompts/sre/bad.md:4:4: `nope` is not an argument of this prompt");
    said.says("1 problem");
    assert_eq!(work.head(), before);
    // what is staged counts, not what lies beside it
    work.write("prompts/sre/bad.md", prompt("Mended, not staged."));
    work.no(&["commit", "--message", "bad"]);
    work.ok(&["add", "--all"]);
    work.write("prompts/sre/other.md", prompt("{{ not_staged }}"));
    work.ok(&["commit", "--quiet", "--message", "good"]);
    // a commit of some paths has an index of its own
    work.write("prompts/sre/good.md", prompt("Better."));
    work.ok(&["add", "--all"]);
    work.no(&["commit", "--message", "with the staged other"]);
    work.ok(&[
        "commit",
        "--quiet",
        "--message",
        "only one",
        "--",
        "prompts/sre/good.md",
    ]);
    let listed = work.ok(&["show", "--stat", "--format=%s"]).text;
    assert!(
        listed.contains("good.md") && !listed.contains("other.md"),
        "{listed}"
    );
    work.no(&[
        "commit",
        "--message",
        "the bad one",
        "--",
        "prompts/sre/other.md",
    ]);
    // from a folder below, amended, and without the hook
    let below = work.path.join("prompts/sre");
    assert!(!git(&below, &["commit", "--message", "from below"]).ok);
    work.ok(&[
        "commit",
        "--quiet",
        "--no-verify",
        "--message",
        "passed over",
    ]);
    work.no(&["commit", "--amend", "--no-edit"]);
}

#[test]
fn warnings_do_not_refuse_and_a_merge_is_checked_too() {
    let (_folder, work) = hooked();
    work.write(
        "prompts/sre/warned.md",
        "---\ndescription: D\narguments: [{ name: a }, { name: b, required: true }]\n---\n{{ a }}{{ b }}\n",
    );
    work.ok(&["add", "--all"]);
    let said = work.ok(&["commit", "--message", "warned"]);
    said.says("warning");
}

#[test]
fn somebody_elses_hook_is_kept() {
    let (_folder, work) = hooked();
    let path = work.path.join(".git/hooks/pre-commit");
    assert!(
        cuebook(&work.path, &["hook", "install"]).ok,
        "again is no error"
    );
    let said = cuebook(&work.path, &["hook", "uninstall"]);
    assert!(said.ok && !path.exists(), "{}", said.text);
    cuebook(&work.path, &["hook", "uninstall"]).says("There is no ");
    work.write("prompts/sre/bad.md", prompt("{{ nope }}"));
    work.commit("unchecked");

    std::fs::write(&path, "#!/bin/sh\nexit 0\n").unwrap();
    let said = cuebook(&work.path, &["hook", "install"]);
    assert!(!said.ok);
    said.says("is there already and is kept; add this line to it:");
    said.says("check --staged || exit 1");
    // the line that it advises does what the hook does
    let line = said
        .text
        .lines()
        .find(|line| line.contains("--staged"))
        .unwrap();
    std::fs::write(&path, format!("#!/bin/sh\n{}\necho theirs\n", line.trim())).unwrap();
    cuebook::gate::install::executable(&path).unwrap();
    work.write("prompts/sre/worse.md", prompt("{{ nope }}"));
    work.ok(&["add", "--all"]);
    work.no(&["commit", "--message", "x"])
        .says("prompts/sre/worse.md:4:4");
    let said = cuebook(&work.path, &["hook", "uninstall"]);
    assert!(!said.ok);
    said.says("was not written by cuebook; it is kept");
}

#[test]
fn it_is_for_clones_and_finds_where_git_looks() {
    let (folder, work) = hooked();
    let said = cuebook(folder.path(), &["hook", "install"]);
    assert!(!said.ok);
    said.says("is no clone; run this in one, or name it");
    assert!(git(folder.path(), &["init", "--quiet", "--bare", "bare.git"]).ok);
    let said = cuebook(folder.path(), &["hook", "install", "bare.git"]);
    assert!(!said.ok);
    said.says("is a bare repository: nobody commits there");
    // a second work tree, and hooks in another place
    work.ok(&["worktree", "add", "--quiet", "../tree", "-b", "tree"]);
    let tree = Work {
        path: folder.path().join("tree"),
    };
    tree.write("prompts/sre/bad.md", prompt("{{ nope }}"));
    tree.ok(&["add", "--all"]);
    tree.no(&["commit", "--message", "bad"])
        .says("prompts/sre/bad.md:4:4");
    work.ok(&["config", "core.hooksPath", "my-hooks"]);
    let said = cuebook(&work.path, &["hook", "install"]);
    assert!(said.ok, "{}", said.text);
    assert!(
        work.path.join("my-hooks/pre-commit").is_file(),
        "{}",
        said.text
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn a_new_library_keeps_line_ends_and_says_what_it_is() {
    let folder = tempfile::tempdir().unwrap();
    for language in ["en", "ko"] {
        let made = cuebook(folder.path(), &["init", language, "--language", language]);
        assert!(made.ok, "{}", made.text);
    }
    let host = Host::with(Some(Language::En), |_| {}).await;
    host.work("served");
    for path in [
        folder.path().join("en"),
        folder.path().join("ko"),
        host.folder.path().join("served"),
    ] {
        let work = Work { path };
        assert!(work.path.join("README.md").is_file());
        // somebody on another system, whose editor writes CRLF and whose git is told to keep it
        work.ok(&["config", "core.autocrlf", "false"]);
        work.write(
            "prompts/sre/crlf.md",
            prompt("Windows.").replace('\n', "\r\n"),
        );
        work.write("resources/runbook/crlf.md", "as\r\nit is\r\n");
        work.commit("line ends");
        assert_eq!(
            work.ok(&["show", "HEAD:prompts/sre/crlf.md"]).text,
            prompt("Windows.")
        );
        assert_eq!(
            work.ok(&["show", "HEAD:resources/runbook/crlf.md"]).text,
            "as\r\nit is\r\n"
        );
        assert_eq!(work.ok(&["status", "--porcelain"]).text, "");
    }
}
