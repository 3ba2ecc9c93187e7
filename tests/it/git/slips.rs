//! What a hurried person, or a broken machine, does: nothing of it publishes unseen, and each is answered with the way.

use super::*;

#[cfg(unix)]
#[tokio::test(flavor = "multi_thread")]
async fn no_push_is_taken_where_git_would_pass_over_a_hook() {
    use std::os::unix::fs::PermissionsExt as _;
    let host = Host::small().await;
    let work = host.work("work");
    let main = host.main();
    for hook in ["pre-receive", "proc-receive", "post-receive"] {
        let path = host.data_dir().join("hooks").join(hook);
        let set =
            |mode| std::fs::set_permissions(&path, std::fs::Permissions::from_mode(mode)).unwrap();
        set(0o644);
        work.change(&[("prompts/sre/bad.md", &prompt("{{ nope }}"))]);
        let said = work.no(&["push", "origin", "HEAD:main"]);
        said.says("remote: the server cannot check pushes now, so it takes none");
        assert_eq!(host.main(), main, "{hook}");
        // who reads is served
        host.work(&format!("reader-{hook}"));
        set(0o755);
        work.back();
    }
    std::fs::rename(host.data_dir().join("hooks"), host.data_dir().join("away")).unwrap();
    work.change(&[("prompts/sre/bad.md", &prompt("{{ nope }}"))]);
    work.no(&["push", "origin", "HEAD:main"]).says("takes none");
    assert_eq!(host.main(), main);
    // a start puts them back
    let mut host = host;
    host.stop().await;
    host.start_again().await;
    work.ok(&["remote", "set-url", "origin", &host.url()]);
    work.no(&["push", "origin", "HEAD:main"])
        .says("`nope` is not an argument");
}

#[tokio::test(flavor = "multi_thread")]
async fn options_of_a_proposal_do_not_publish() {
    let host = Host::small().await;
    let work = host.work("work");
    let main = host.main();
    work.change(&[("prompts/sre/after.md", &prompt("Other words."))]);
    for option in ["topic=words", "title=Words", "proposal=1"] {
        let said = work.no(&["push", "-o", option, "origin", "HEAD:main"]);
        said.says("belongs to a proposal, and this push publishes");
        said.says("git push -o … origin HEAD:refs/for/main proposes");
    }
    assert_eq!(host.main(), main);
    // what other servers know is nothing to this one
    work.ok(&["push", "-o", "ci.skip", "origin", "HEAD:main"]);
    assert_ne!(host.main(), main);
}

#[tokio::test(flavor = "multi_thread")]
async fn names_that_only_look_right_are_refused() {
    let host = Host::with(None, |_| {}).await;
    let work = host.work("work");
    work.change(&[("prompts/sre/first.md", &prompt("First."))]);
    // an empty library: a branch below main would stand in the way of main
    for target in [
        "HEAD:refs/heads/main/x",
        "HEAD:refs/heads/Main",
        "HEAD:refs/heads/HEAD",
        "HEAD:refs/heads/for/main",
    ] {
        let said = work.no(&["push", "origin", target]);
        said.says("git push origin HEAD:main publishes");
    }
    work.no(&["push", "origin", "HEAD:refs/for/main"])
        .says("the library is empty, so there is nothing to propose a change of");
    work.ok(&["push", "origin", "HEAD:refs/heads/master"])
        .says("main, which is served, does not exist yet: git push origin HEAD:main");
    work.ok(&["push", "origin", "HEAD:main"]);
    work.ok(&["push", "origin", ":refs/heads/master"]);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_library_whose_branch_is_master_is_not_served_ungated() {
    let mut host = Host::small().await;
    host.stop().await;
    let ok = |arguments: &[&str]| {
        let ran = git(&host.bare(), arguments);
        assert!(ran.ok, "{}", ran.text);
    };
    ok(&["branch", "-m", "main", "master"]);
    let what = Serve::DataDir {
        path: host.data_dir(),
        starter: None,
    };
    let error = match start(what, &host.config).await {
        Ok(_) => panic!("it was served"),
        Err(error) => format!("{error:#}"),
    };
    assert!(error.contains("branch -m master main"), "{error}");
    ok(&["branch", "-m", "master", "main"]);
    host.start_again().await;
    assert_eq!(host.text("after").await, "Write it down.\n");
}

#[cfg(unix)]
#[tokio::test(flavor = "multi_thread")]
async fn whoever_says_nothing_on_the_hooks_socket_does_not_hold_the_stop() {
    let mut host = Host::small().await;
    let path = std::fs::read_to_string(host.data_dir().join("hook.socket.path")).unwrap();
    let _silent = std::os::unix::net::UnixStream::connect(path).unwrap();
    host.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn old_histories_with_harmless_faults_are_taken() {
    let host = Host::with(None, |_| {}).await;
    let work = host.work("work");
    work.change(&[("prompts/sre/first.md", &prompt("First."))]);
    let tree = work
        .ok(&["rev-parse", "HEAD^{tree}"])
        .text
        .trim()
        .to_owned();
    let commit = format!(
        "tree {tree}\nauthor A <a@example.com> 1 +51800\ncommitter A <a@example.com> 1 +51800\n\nold\n"
    );
    let id = git_with_input(
        &work.path,
        &[
            "hash-object",
            "-t",
            "commit",
            "-w",
            "--stdin",
            "--literally",
        ],
        commit.as_bytes(),
    );
    let id = String::from_utf8(id).unwrap();
    work.ok(&["push", "origin", &format!("{}:refs/heads/main", id.trim())]);
    assert_eq!(host.text("first").await, "First.\n");
}
