//! Secrets in a push: in what it would serve, in a branch, and in a commit that a later one has mended.

use super::*;

/// What looks like a key, put together here so that no file of this repository holds one.
fn key() -> String {
    format!("AK{}{}", "IA", "Q3EGRTY7LMNB2ZXV")
}

#[tokio::test(flavor = "multi_thread")]
async fn a_key_is_refused_by_line_and_kind_and_not_repeated() {
    let host = Host::small().await;
    let work = host.work("work");
    let main = host.main();
    let with_key = prompt(&format!("Use\n{}\nfor it.", key()));
    work.change(&[("prompts/sre/keys.md", &with_key)]);
    let said = work.no(&["push", "origin", "HEAD:main"]);
    said.says("prompts/sre/keys.md:5:1: this looks like an AWS access key (`AKIA…`)");
    said.says("secret: allow");
    said.says_not(&key());
    // a branch that is not served would give it to whoever clones
    let said = work.no(&["push", "origin", "HEAD:wip"]);
    said.says("an AWS access key");
    assert_eq!(host.main(), main);

    // mended by a later commit, it is still in the history
    work.change(&[("prompts/sre/keys.md", &prompt("Use the key of the vault."))]);
    let said = work.no(&["push", "origin", "HEAD:main"]);
    said.says("an AWS access key");
    said.says("it stays in the history");
    said.says_not(&key());
    for target in ["HEAD:refs/for/main", "HEAD:wip"] {
        work.no(&["push", "origin", target])
            .says("it stays in the history");
    }
    work.ok(&["reset", "--quiet", "--soft", "origin/main"]);
    work.commit("one clean commit");
    work.ok(&["push", "origin", "HEAD:main"]);
    assert_eq!(host.text("keys").await, "Use the key of the vault.\n");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_secret_that_is_allowed_in_every_commit_passes() {
    let host = Host::small().await;
    let work = host.work("work");
    let allowed = prompt(&format!("An example: {} <!-- secret: allow -->", key()));
    work.change(&[("prompts/sre/keys.md", &allowed)]);
    work.change(&[("prompts/sre/keys.md", &prompt("None any more."))]);
    work.ok(&["push", "origin", "HEAD:main"]);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_push_of_very_many_refs_is_refused_at_once() {
    let host = Host::small().await;
    let work = host.work("work");
    let targets: Vec<String> = (0..101).map(|i| format!("HEAD:refs/heads/b{i}")).collect();
    let mut arguments = vec!["push", "origin"];
    arguments.extend(targets.iter().map(String::as_str));
    work.no(&arguments)
        .says("the push moves 101 refs, more than 100 at once");
    arguments.pop();
    work.ok(&arguments);
}
