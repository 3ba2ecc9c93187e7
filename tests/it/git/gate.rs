//! The gate: what a push is told, what it may not move, what follows when it may.

use super::*;
use crate::support::http::Events;

const PROMPTS: &str = "notifications/prompts/list_changed";
const RESOURCES: &str = "notifications/resources/list_changed";

/// A tree of raw entries `(mode, name, object)`, as no git would write it; its id.
fn raw_tree(work: &Work, entries: &[(&str, &str, &str)]) -> String {
    let mut tree = Vec::new();
    for (mode, name, id) in entries {
        tree.extend_from_slice(format!("{mode} {name}\0").as_bytes());
        tree.extend(
            (0..40)
                .step_by(2)
                .map(|i| u8::from_str_radix(&id[i..i + 2], 16).unwrap()),
        );
    }
    let id = git_with_input(
        &work.path,
        &["hash-object", "-t", "tree", "-w", "--stdin", "--literally"],
        &tree,
    );
    String::from_utf8(id).unwrap().trim().to_owned()
}

fn blob(work: &Work, bytes: &[u8]) -> String {
    let id = git_with_input(&work.path, &["hash-object", "-w", "--stdin"], bytes);
    String::from_utf8(id).unwrap().trim().to_owned()
}

#[tokio::test(flavor = "multi_thread")]
async fn v9_a_bad_file_is_refused_with_its_place_and_a_hint() {
    let host = Host::small().await;
    let work = host.work("work");
    let main = host.main();
    work.change(&[("prompts/sre/bad.md", &prompt("Hello {{ nmae }}."))]);
    let said = work.no(&["push", "origin", "HEAD:main"]);
    let remote = said.remote();
    assert_eq!(
        remote[0], "prompts/sre/bad.md:4:10: `nmae` is not an argument",
        "{}",
        said.text
    );
    assert!(remote[1].starts_with("  hint: "), "{}", said.text);
    assert_eq!(
        *remote.last().unwrap(),
        "refused: 1 error; nothing was changed. Mend it, commit, push again; `cuebook check` in your clone finds the same."
    );
    said.says("! [remote rejected] HEAD -> main (pre-receive hook declined)");
    assert_eq!(host.main(), main);
    assert!(!host.client().names().await.contains(&"bad".to_owned()));
    settled(&host.bare()).await;

    // the next push, mended
    work.publish(&[("prompts/sre/bad.md", &prompt("Hello."))]);
    assert_eq!(host.text("bad").await, "Hello.\n");
}

#[tokio::test(flavor = "multi_thread")]
async fn at_most_twenty_problems_are_shown_and_the_rest_is_counted() {
    let host = Host::small().await;
    let work = host.work("work");
    for n in 0..25 {
        work.write(&format!("prompts/sre/bad-{n:02}.md"), prompt("{{ x }}"));
    }
    // a warning beside them is not among the twenty
    work.write("prompts/sre/a-warning.md", "---\ndescription: D\narguments: [{ name: a }, { name: b, required: true }]\n---\n{{ a }}{{ b }}\n");
    work.commit("many");
    let said = work.no(&["push", "origin", "HEAD:main"]);
    let shown = said
        .remote()
        .iter()
        .filter(|line| line.starts_with("prompts/sre/bad-"))
        .count();
    assert_eq!(shown, 20, "{}", said.text);
    said.says("and 6 more; `cuebook check` in your clone shows all");
    said.says("refused: 25 errors; nothing was changed. Mend them");
    said.says_not("a-warning.md");
}

#[tokio::test(flavor = "multi_thread")]
async fn warnings_are_shown_and_do_not_refuse() {
    let host = Host::small().await;
    let work = host.work("work");
    let said = work.publish(&[(
        "prompts/sre/help.md",
        "---\ndescription: D\narguments: [{ name: a }, { name: b, required: true }]\n---\n{{ a }}{{ b }}\n",
    )]);
    let remote = said.remote();
    let warnings: Vec<&&str> = remote
        .iter()
        .filter(|line| line.contains(": warning: "))
        .collect();
    assert!(warnings.len() >= 2, "{}", said.text);
    assert!(
        warnings
            .iter()
            .all(|line| line.starts_with("prompts/sre/help.md")),
        "{}",
        said.text
    );
    said.says("published 1 prompt: help (2 arguments, new)");
    said.says_not("refused");
    assert!(host.client().names().await.contains(&"help".to_owned()));
}

#[tokio::test(flavor = "multi_thread")]
async fn v8_main_and_protected_branches_go_only_forward() {
    let host = Host::small_with(|config| {
        config.protected_branches = vec!["stable".into(), "release/*".into()];
    })
    .await;
    let work = host.work("work");
    work.publish(&[("prompts/sre/after.md", &prompt("Second."))]);
    let main = host.main();
    let short = &main[..7];
    work.ok(&[
        "push",
        "origin",
        "HEAD:stable",
        "HEAD:release/1",
        "HEAD:wip",
    ]);
    let refused = |arguments: &[&str], words: &[&str]| {
        let said = work.no(arguments);
        for word in words {
            said.says(word);
        }
        // what does not apply is not said
        said.says_not("cuebook check");
        said.says_not("error;");
        assert_eq!(host.main(), main, "{arguments:?}");
    };
    // a rewind, another history, a deletion
    let force = format!(
        "remote: refused: this push would take {short} and what came with it out of main (a force-push)"
    );
    refused(
        &["push", "--force", "origin", "HEAD~1:main"],
        &[
            &force,
            "remote:   git pull --rebase, then push; to undo a published change: git revert",
        ],
    );
    work.ok(&["checkout", "--quiet", "--orphan", "other"]);
    work.commit("another history");
    refused(&["push", "--force", "origin", "HEAD:main"], &[&force]);
    refused(
        &["push", "--force-with-lease", "origin", "HEAD:main"],
        &[&force],
    );
    refused(
        &["push", "origin", ":main"],
        &[
            "remote: refused: main is what is served and cannot be deleted",
            "delete their files, commit and push",
        ],
    );
    refused(
        &["push", "--mirror", "origin"],
        &[
            "refs/remotes/origin/main is neither a branch nor a tag",
            "nothing was changed: a push moves all of its refs or none",
        ],
    );
    for name in ["stable", "release/1"] {
        let at = format!("refs/heads/{name}");
        let rewrite =
            format!("{at} is protected: this push would take {short} out of it (a force-push)");
        refused(
            &["push", "--force", "origin", &format!("HEAD:{name}")],
            &[&rewrite, "git pull --rebase, then push"],
        );
        let deletion = format!("{at} is protected and cannot be deleted");
        refused(
            &["push", "origin", &format!(":{name}")],
            &[&deletion, "git.protected_branches"],
        );
    }
    // a branch of one's own is one's own
    work.ok(&["push", "--force", "origin", "HEAD:wip"]);
    work.ok(&["push", "origin", ":wip"]);
    assert_eq!(host.text("after").await, "Second.\n");
    settled(&host.bare()).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_merge_that_loses_the_first_parent_chain_is_refused_and_a_rebase_works() {
    let host = Host::small().await;
    let mine = host.work("mine");
    let theirs = host.work("theirs");
    theirs.publish(&[("prompts/sre/after.md", &prompt("Theirs."))]);
    mine.change(&[("prompts/review/code-review.md", &prompt("Mine."))]);
    let said = mine.no(&["push", "origin", "HEAD:main"]);
    said.says("fetch first");
    mine.ok(&["pull", "--quiet", "--no-rebase", "--no-edit"]);
    let said = mine.no(&["push", "origin", "HEAD:main"]);
    said.says("remote: refused: the first-parent chain of this push leaves out");
    said.says("remote:   git pull --rebase, then push");
    assert_eq!(host.main(), theirs.head());
    mine.ok(&["pull", "--quiet", "--rebase"]);
    mine.ok(&["push", "origin", "HEAD:main"]);
    assert_eq!(
        (host.text("after").await, host.text("code-review").await),
        ("Theirs.\n".into(), "Mine.\n".into())
    );

    // a merge of a branch into main keeps the chain
    mine.ok(&["checkout", "--quiet", "-b", "topic"]);
    mine.change(&[("prompts/sre/after.md", &prompt("Of a topic."))]);
    mine.ok(&["checkout", "--quiet", "main"]);
    mine.ok(&["merge", "--quiet", "--no-ff", "--no-edit", "topic"]);
    mine.ok(&["push", "origin", "HEAD:main"]);
    assert_eq!(host.text("after").await, "Of a topic.\n");
}

#[tokio::test(flavor = "multi_thread")]
async fn the_starter_library_is_replaced_once_and_only_untouched() {
    let own = |host: &Host, name: &str| {
        let path = host.folder.path().join(name);
        std::fs::create_dir(&path).unwrap();
        let work = Work { path };
        work.ok(&["init", "--quiet", "--initial-branch=main"]);
        work.ok(&["remote", "add", "origin", &host.url()]);
        work.change(&[("prompts/team/ours.md", &prompt(name))]);
        work
    };
    let host = Host::with(Some(Language::Ko), |_| {}).await;
    let first = own(&host, "first");
    // git itself asks for --force: the histories have nothing in common
    first
        .no(&["push", "origin", "HEAD:main"])
        .says("fetch first");
    let said = first.ok(&["push", "--force", "origin", "HEAD:main"]);
    said.says("published 1 prompt: ours (0 arguments, new)");
    said.says("removed ");
    assert_eq!(host.client().names().await, ["ours"]);
    let second = own(&host, "second");
    second
        .no(&["push", "--force", "origin", "HEAD:main"])
        .says("refused: this push would take");
    assert_eq!(host.main(), first.head());

    // a starter library that somebody has worked on is theirs
    let host = Host::with(Some(Language::En), |_| {}).await;
    let work = host.work("work");
    work.publish(&[("prompts/team/added.md", &prompt("Added."))]);
    own(&host, "third")
        .no(&["push", "--force", "origin", "HEAD:main"])
        .says("refused: this push would take");
    assert_eq!(host.main(), work.head());
    // nor may it be thrown away by a rewind
    work.no(&["push", "--force", "origin", "HEAD~1:main"])
        .says("refused: this push would take");
}

#[tokio::test(flavor = "multi_thread")]
async fn v10_links_modules_and_names_that_lead_out_are_refused_and_never_followed() {
    let host = Host::small().await;
    let work = host.work("work");
    let main = host.main();
    let refused = |words: &[&str]| {
        let said = work.no(&["push", "origin", "HEAD:main"]);
        for word in words {
            said.says(word);
        }
        assert_eq!(host.main(), main, "{}", said.text);
        said
    };
    std::os::unix::fs::symlink("/etc/passwd", work.path.join("prompts/sre/passwd.md")).unwrap();
    std::os::unix::fs::symlink("/etc/passwd", work.path.join("resources/runbook/passwd.md"))
        .unwrap();
    work.commit("links");
    let said = refused(&[
        "remote: prompts/sre/passwd.md: ",
        "remote: resources/runbook/passwd.md: ",
        "link",
    ]);
    said.says_not("root:");
    work.back();

    let head = work.head();
    work.ok(&[
        "update-index",
        "--add",
        "--cacheinfo",
        &format!("160000,{head},prompts/vendor"),
    ]);
    work.ok(&["commit", "--quiet", "--message", "a module"]);
    refused(&["remote: prompts/vendor: ", "submodule"]);
    work.back();

    let pointer = "version https://git-lfs.github.com/spec/v1\noid sha256:4d7a214614ab2935c943f9e0ff69d22eadbb8f32b1258daaa5e2ca24d17e2393\nsize 12345\n";
    for path in [
        "prompts/sre/large.md",
        "partials/large.md",
        "resources/image/large.png",
        "values/large.txt",
    ] {
        work.write(path, pointer);
    }
    work.commit("pointers");
    refused(&[
        "remote: prompts/sre/large.md: this is a Git LFS pointer, not the content itself",
        "remote: resources/image/large.png: this is a Git LFS pointer",
        "remote: partials/large.md: this is a Git LFS pointer",
        "remote: values/large.txt: this is a Git LFS pointer",
        "git lfs untrack",
    ]);
    work.back();

    // trees that git itself does not write
    let file = blob(&work, prompt("Hidden.").as_bytes());
    for name in ["..", ".", ".git", ".GIT", "a/b"] {
        let inner = raw_tree(&work, &[("100644", name, &file)]);
        let root = raw_tree(&work, &[("40000", "prompts", &inner)]);
        let commit = git_with_input(
            &work.path,
            &["commit-tree", "-p", &head, "-m", "odd", &root],
            b"",
        );
        let commit = String::from_utf8(commit).unwrap().trim().to_owned();
        let said = work.no(&["push", "origin", &format!("{commit}:refs/heads/main")]);
        assert_eq!(host.main(), main, "{name}: {}", said.text);
    }
    settled(&host.bare()).await;
    assert_eq!(host.client().names().await.len(), 3);
}

#[tokio::test(flavor = "multi_thread")]
async fn names_examples_and_limits_are_checked() {
    let host = Host::small_with(|config| config.limits.prompt_file_bytes = 2000).await;
    let work = host.work("work");
    let main = host.main();
    for (path, text, words) in [
        ("prompts/sre/Bad Name.md", prompt("x"), "prompts/sre/Bad Name.md: "),
        ("prompts/review/after.md", prompt("x"), "prompts/sre/after.md"),
        (
            "prompts/sre/example.md",
            "---\ndescription: D\nexamples:\n  - name: one\n    expect: [\"pool\"]\n---\nNothing.\n".to_owned(),
            "prompts/sre/example.md:",
        ),
        ("prompts/sre/large.md", prompt(&"x".repeat(3000)), "prompts/sre/large.md: "),
        ("cuebook.toml", "title = 3\n".to_owned(), "cuebook.toml:1:"),
    ] {
        work.change(&[(path, &text)]);
        let said = work.no(&["push", "origin", "HEAD:main"]);
        said.says(&format!("remote: {words}"));
        said.says("nothing was changed. Mend ");
        assert_eq!(host.main(), main, "{path}");
        work.back();
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn only_branches_and_tags_are_taken() {
    let host = Host::small().await;
    let work = host.work("work");
    for name in [
        "refs/notes/commits",
        "refs/stash",
        "refs/foo/main",
        "refs/upstream/heads/main",
        "refs/cuebook/served",
        "refs/proposals/1/head",
    ] {
        let said = work.no(&["push", "origin", &format!("HEAD:{name}")]);
        let told = said.text.contains("neither a branch nor a tag")
            || said.text.contains("is written by the server alone")
            || said.text.contains("hidden ref");
        assert!(told, "{name}: {}", said.text);
        assert!(
            !git(&host.bare(), &["rev-parse", "--verify", "--quiet", name]).ok
                || name.contains("served"),
            "{name}"
        );
    }
    assert_eq!(
        work.ok(&["ls-remote"]).text.matches("refs/").count(),
        1,
        "main alone is listed"
    );

    // another branch is kept and not served, even with problems
    work.change(&[("prompts/sre/wip.md", &prompt("{{ not_yet }}"))]);
    let said = work.ok(&["push", "origin", "HEAD:wip"]);
    said.says("remote: refs/heads/wip is kept here and not served; git push origin HEAD:refs/for/main proposes it");
    said.says_not("error");
    assert!(!host.client().names().await.contains(&"wip".to_owned()));
    assert_eq!(
        host.work("again")
            .ok(&["rev-parse", "origin/wip"])
            .text
            .trim(),
        work.head()
    );

    // tags, of both kinds
    work.back();
    work.ok(&["tag", "light"]);
    work.ok(&["tag", "--annotate", "--message", "x", "heavy"]);
    work.ok(&["push", "origin", "--tags"]);
    work.ok(&["push", "origin", ":light"]);
    let listed = work.ok(&["ls-remote", "--tags"]).text;
    assert!(
        listed.contains("refs/tags/heavy") && !listed.contains("light"),
        "{listed}"
    );

    // a branch holds commits
    let main = host.main();
    work.change(&[("prompts/sre/after.md", &prompt("Tagged."))]);
    work.ok(&["tag", "--annotate", "--message", "x", "next"]);
    let said = work.no(&["push", "origin", "next:refs/heads/main"]);
    said.says(
        "remote: refused: what was pushed to refs/heads/main is a tag, and a branch holds commits",
    );
    said.says("TAG^{commit}");
    let file = blob(&work, b"a blob");
    for name in ["refs/heads/main", "refs/heads/other", "refs/tags/blob"] {
        let said = work.no(&["push", "--force", "origin", &format!("{file}:{name}")]);
        said.says(&format!(
            "remote: refused: what was pushed to {name} is no commit"
        ));
    }
    assert_eq!(host.main(), main);
    work.ok(&["push", "origin", "next^{commit}:refs/heads/main"]);
    assert_eq!(host.text("after").await, "Tagged.\n");
}

#[tokio::test(flavor = "multi_thread")]
async fn several_refs_move_together_or_not_at_all() {
    let host = Host::small().await;
    let work = host.work("work");
    let main = host.main();
    work.change(&[("prompts/sre/after.md", &prompt("{{ bad }}"))]);
    let said = work.no(&[
        "push",
        "--atomic",
        "origin",
        "HEAD:main",
        "HEAD~1:refs/heads/good",
        "HEAD~1:refs/tags/good",
    ]);
    said.says("prompts/sre/after.md:4:4: ");
    assert_eq!(host.main(), main);
    assert_eq!(work.ok(&["ls-remote"]).text.matches("refs/").count(), 1);
    work.back();
    work.change(&[("prompts/sre/after.md", &prompt("Good."))]);
    let said = work.ok(&[
        "push",
        "--atomic",
        "origin",
        "HEAD:main",
        "HEAD:good",
        "HEAD:refs/tags/good",
    ]);
    said.says("published 1 prompt: after (0 arguments)");
    said.says("refs/heads/good is kept here");
    assert_eq!(
        work.ok(&["ls-remote"]).text.matches(&work.head()).count(),
        4
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn a_push_to_the_path_passes_the_same_gate_with_and_without_a_server() {
    let mut host = Host::small().await;
    let work = host.work_by_path("work");
    let said = work.publish(&[("prompts/sre/after.md", &prompt("By path."))]);
    said.says("published 1 prompt: after (0 arguments)");
    assert_eq!(host.text("after").await, "By path.\n");
    let bad = |host: &Host, work: &Work| {
        let main = host.main();
        work.change(&[("prompts/sre/bad.md", &prompt("{{ nope }}"))]);
        let said = work.no(&["push", "origin", "HEAD:main"]);
        said.says("remote: prompts/sre/bad.md:4:4: `nope` is not an argument");
        said.says("refused: 1 error");
        assert_eq!(host.main(), main);
        work.back();
        work.no(&["push", "--force", "origin", "HEAD~1:main"])
            .says("refused: this push would take");
        assert_eq!(host.main(), main);
    };
    bad(&host, &work);
    work.change(&[("prompts/sre/after.md", &prompt("Proposed by path."))]);
    work.ok(&["push", "origin", "HEAD:refs/for/main"])
        .says("opened proposal 1");
    work.back();

    host.stop().await;
    bad(&host, &work);
    work.change(&[("prompts/sre/after.md", &prompt("Without a server."))]);
    work.no(&["push", "origin", "HEAD:refs/for/main"])
        .says("no server is running on this data directory");
    let said = work.ok(&["push", "origin", "HEAD:main"]);
    said.says("remote: no server is running; what you pushed is served when one starts");
    said.says_not("published");
    host.start_again().await;
    assert_eq!(host.text("after").await, "Without a server.\n");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_push_is_told_what_it_published_and_to_how_many() {
    let host = Host::small().await;
    let work = host.work("work");
    let said = work.publish(&[
        (
            "prompts/sre/triage.md",
            &TRIAGE.replace("Ticket", "Incident"),
        ),
        ("prompts/sre/two.md", &prompt("Two.")),
    ]);
    let remote = said.remote();
    assert_eq!(
        remote,
        [
            "published 2 prompts: triage (1 argument), two (0 arguments, new); no client is connected",
            &format!("served at http://{}/mcp", host.address)
        ]
    );
    let client = host.client();
    let mut one = client.listen(json!({ "promptsListChanged": true })).await;
    let legacy = {
        let mut client = Client {
            revision: "2025-06-18",
            ..host.client()
        };
        client.initialize().await;
        client
    };
    let mut other = legacy.listen(Value::Null).await;
    assert_eq!(
        one.notice().await,
        "notifications/subscriptions/acknowledged"
    );
    let said = work.publish(&[
        ("prompts/sre/two.md", &prompt("Three.")),
        ("resources/runbook/search.md", "# Search\n"),
    ]);
    assert_eq!(
        said.remote()[..2],
        [
            "published 1 prompt: two (0 arguments)",
            "changed 1 resource; telling 2 clients"
        ]
    );
    for events in [&mut one, &mut other] {
        assert_eq!(events.notice().await, PROMPTS);
    }
    drop((one, other));

    work.ok(&["mv", "prompts/sre/two.md", "prompts/review/two.md"]);
    work.remove("prompts/sre/after.md");
    let said = work.publish(&[]);
    let remote = said.remote();
    assert_eq!(remote[0], "published 1 prompt: two (0 arguments, moved)");
    assert!(
        remote[1].starts_with("removed 1 prompt: after"),
        "{}",
        said.text
    );

    work.write("README.md", "# Ours\n");
    work.commit("readme");
    assert_eq!(
        work.ok(&["push", "origin", "HEAD:main"]).remote()[0],
        "published; nothing that clients see has changed"
    );

    for n in 0..12 {
        work.write(&format!("prompts/many/p{n:02}.md"), prompt("P."));
    }
    let said = work.publish(&[]);
    said.says("published 12 prompts: p00 (0 arguments, new), ");
    said.says("p07 (0 arguments, new), and 4 more; ");
}

#[tokio::test(flavor = "multi_thread")]
async fn v1_a_get_after_the_push_has_the_new_text() {
    let host = Host::small().await;
    let work = host.work("work");
    let by_path = host.work_by_path("by-path");
    for n in 0..20 {
        let pusher = if n % 2 == 0 { &work } else { &by_path };
        pusher.ok(&["pull", "--quiet", "--rebase"]);
        let text = format!("Round {n}.");
        pusher.publish(&[("prompts/sre/after.md", &prompt(&text))]);
        let got = host.client().get("after", json!({})).await;
        assert_eq!(got["messages"][0]["content"]["text"], format!("{text}\n"));
        assert_eq!(
            got["_meta"]["dev.cuebook/source"]["commit"],
            pusher.head(),
            "{got}"
        );
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn v2_what_is_deleted_or_renamed_is_gone_at_once_everywhere() {
    let host = Host::small().await;
    let work = host.work("work");
    let client = host.client();
    let sre = client.at("/mcp/sre");
    work.remove("prompts/sre/after.md");
    work.remove("resources/runbook/payments.md");
    work.ok(&[
        "mv",
        "prompts/review/code-review.md",
        "prompts/review/review.md",
    ]);
    work.publish(&[]);
    assert_eq!(client.names().await, ["review", "triage"]);
    assert_eq!(sre.names().await, ["triage"]);
    for gone in ["after", "code-review"] {
        let (_, code, message) = client.fail("prompts/get", json!({ "name": gone })).await;
        assert_eq!(code, -32602, "{message}");
        let tool = client
            .call(
                "tools/call",
                json!({ "name": "get_prompt", "arguments": { "name": gone } }),
            )
            .await;
        assert_eq!(tool["isError"], true, "{tool}");
    }
    assert_eq!(host.text("review").await, "Review this.\n");
    let listed = client.call("resources/list", json!({})).await;
    assert_eq!(listed["resources"], json!([]));
    client
        .fail("resources/read", json!({ "uri": "runbook://payments" }))
        .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn v4_a_shared_partial_tells_of_every_prompt_it_changes() {
    let host = Host::small().await;
    let work = host.work("work");
    let with = |name: &str| {
        format!("---\ndescription: {name}\n---\n{name} {{% include \"shared.md\" %}}\n")
    };
    work.publish(&[
        ("partials/shared.md", "shared\n"),
        ("prompts/sre/one.md", &with("one")),
        ("prompts/review/two.md", &with("two")),
    ]);
    let client = host.client();
    let filter = json!({ "promptsListChanged": true });
    let mut streams = Vec::new();
    for path in ["/mcp", "/mcp/sre", "/mcp/review"] {
        let mut events = client.at(path).listen(filter.clone()).await;
        assert_eq!(
            events.notice().await,
            "notifications/subscriptions/acknowledged"
        );
        streams.push(events);
    }
    let said = work.publish(&[("partials/shared.md", "changed\n")]);
    said.says("published 2 prompts: one (0 arguments), two (0 arguments); telling 3 clients");
    for events in &mut streams {
        assert_eq!(events.notice().await, PROMPTS);
    }
    assert!(
        host.text("one").await.contains("changed") && host.text("two").await.contains("changed")
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn p2_whichever_way_it_comes_the_next_get_has_it() {
    let host = Host::small().await;
    let work = host.work("work");
    let by_path = host.work_by_path("by-path");
    work.publish(&[("prompts/sre/after.md", &prompt("By HTTP."))]);
    assert_eq!(host.text("after").await, "By HTTP.\n");
    by_path.ok(&["pull", "--quiet"]);
    by_path.publish(&[("prompts/sre/after.md", &prompt("By path."))]);
    assert_eq!(host.text("after").await, "By path.\n");
    // and what passes no gate: seen by itself, a moment later
    let new = by_path.change(&[("prompts/sre/after.md", &prompt("Behind its back."))]);
    by_path.ok(&["push", "origin", "HEAD:other"]);
    assert!(git(&host.bare(), &["update-ref", "refs/heads/main", &new]).ok);
    served(&host, "after", "Behind its back.\n").await;
    by_path.ok(&["branch", "earlier", "HEAD~1"]);
    let out = git(
        &host.bare(),
        &[
            "fetch",
            by_path.path.to_str().unwrap(),
            "+earlier:refs/heads/main",
        ],
    );
    assert!(out.ok, "{}", out.text);
    served(&host, "after", "By path.\n").await;
}

/// Waits until a prompt has this text.
async fn served(host: &Host, name: &str, text: &str) {
    soon(text, async {
        while host.text(name).await != text {
            tokio::time::sleep(std::time::Duration::from_millis(20)).await;
        }
    })
    .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn p3_one_push_of_forty_prompts_is_one_notice_to_subscribers_only() {
    let host = Host::small().await;
    let work = host.work("work");
    let client = host.client();
    let mut of_prompts = client
        .listen(json!({ "promptsListChanged": true, "resourcesListChanged": true }))
        .await;
    let mut of_resources = client.listen(json!({ "resourcesListChanged": true })).await;
    for events in [&mut of_prompts, &mut of_resources] {
        assert_eq!(
            events.notice().await,
            "notifications/subscriptions/acknowledged"
        );
    }
    for n in 0..40 {
        work.write(&format!("prompts/many/p{n}.md"), prompt("P."));
    }
    let told = async |events: &mut Events| {
        let notice = events.notice().await;
        (notice, client.names().await.len())
    };
    let said = work.publish(&[]);
    said.says("published 40 prompts");
    assert_eq!(told(&mut of_prompts).await, (PROMPTS.into(), 43));
    // one was all: the next thing that is said is of the next push, and the other was told nothing before it
    work.publish(&[("resources/guide/new.md", "# New\n")]);
    assert_eq!(told(&mut of_prompts).await.0, RESOURCES);
    assert_eq!(told(&mut of_resources).await.0, RESOURCES);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_data_directory_of_any_name_and_length_works() {
    let folder = tempfile::tempdir().unwrap();
    let name = format!("it's \"a\" $HOME `id` 장애 {}", "x".repeat(110));
    let data = folder.path().join(name);
    let mut command = Command::new(env!("CARGO_BIN_EXE_cuebook"));
    command
        .args(["serve", "--empty", "--listen", "127.0.0.1:0", "--data-dir"])
        .arg(&data)
        .env_clear()
        .env("TMPDIR", folder.path())
        .stdin(Stdio::null());
    #[allow(clippy::disallowed_methods, reason = "git must be found")]
    if let Some(path) = std::env::var_os("PATH") {
        command.env("PATH", path);
    }
    let server = Server::start(command);
    let url = format!("http://{}/library.git", server.address);
    let bare = data.join("library.git");
    for (name, url) in [("http", url.as_str()), ("path", bare.to_str().unwrap())] {
        let work = Work::clone(folder.path(), url, name, &[]);
        work.publish(&[("prompts/sre/after.md", &prompt(name))])
            .says("published 1 prompt: after");
        assert_eq!(server.text("after").await, format!("{name}\n"));
        work.change(&[("prompts/sre/bad.md", &prompt("{{ nope }}"))]);
        work.no(&["push", "origin", "HEAD:main"])
            .says("prompts/sre/bad.md:4:4");
    }
    // its sockets lie in short places of their own, which go with it
    let short = || {
        let entries = std::fs::read_dir(folder.path()).unwrap().flatten();
        let names = entries.map(|entry| entry.file_name().into_string().unwrap());
        names.filter(|name| name.starts_with("cuebook-")).count()
    };
    assert_eq!(short(), 2);
    assert_eq!(server.end("-TERM").0, Some(0));
    assert_eq!(short(), 0);
}
