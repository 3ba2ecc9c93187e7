//! Proposals under review: opened by git and by the API, judged, merged through the gate; and the policy of `cuebook.toml`.

use super::*;

const FOR: &str = "HEAD:refs/for/main";
/// A policy: one approval for everything below `prompts/sre`.
const POLICY: &str = "[[approval]]\npaths = [\"prompts/sre/**\"]\n";

impl Host {
    async fn ask(&self, method: &str, path: &str, body: &Value) -> Reply {
        self.ask_with(method, path, &[], body).await
    }

    async fn ask_with(
        &self,
        method: &str,
        path: &str,
        more: &[(&str, &str)],
        body: &Value,
    ) -> Reply {
        let mut headers = vec![("Content-Type", "application/json")];
        headers.extend_from_slice(more);
        let body = if body.is_null() {
            String::new()
        } else {
            body.to_string()
        };
        send(self.address, method, path, &headers, body.as_bytes()).await
    }

    /// What the API says of a proposal.
    async fn proposal(&self, number: u32) -> Value {
        let reply = self
            .ask("GET", &format!("/api/v1/proposals/{number}"), &Value::Null)
            .await;
        assert_eq!(reply.status, 200, "{}", reply.text());
        reply.json()
    }

    /// Opens a proposal of one file on the tip of main; its head.
    async fn open(&self, path: &str, text: &str) -> String {
        let body = json!({ "title": "Change one", "base": self.main(), "files": { path: text } });
        let reply = self.ask("POST", "/api/v1/proposals", &body).await;
        assert_eq!(reply.status, 201, "{}", reply.text());
        reply.json()["head"].as_str().unwrap().to_owned()
    }

    async fn merge(&self, number: u32, head: &str) -> Reply {
        let path = format!("/api/v1/proposals/{number}/merge");
        self.ask("POST", &path, &json!({ "head": head })).await
    }
}

#[track_caller]
fn refused(reply: &Reply, status: u16, words: &str) -> Value {
    assert_eq!(reply.status, status, "{}", reply.text());
    assert_eq!(
        reply.header("content-type"),
        Some("application/problem+json")
    );
    let problem = reply.json();
    let detail = problem["detail"].as_str().unwrap();
    assert!(detail.contains(words), "no `{words}` in: {detail}");
    problem
}

#[tokio::test(flavor = "multi_thread")]
async fn one_person_alone_opens_and_merges() {
    let host = Host::small().await;
    let base = host.main();
    let client = host.client();
    let mut events = client.listen(json!({ "promptsListChanged": true })).await;
    assert_eq!(
        events.notice().await,
        "notifications/subscriptions/acknowledged"
    );
    let body = json!({
        "title": "Write it down today",
        "message": "Because tomorrow it is forgotten.\n\nProposal: 99",
        "base": base,
        "files": { "prompts/sre/after.md": prompt("Write it down today.") },
    });
    let reply = host.ask("POST", "/api/v1/proposals", &body).await;
    assert_eq!(reply.status, 201, "{}", reply.text());
    assert_eq!(reply.header("location"), Some("/api/v1/proposals/1"));
    let head = reply.json()["head"].as_str().unwrap().to_owned();
    assert_eq!(host.main(), base, "nothing is published yet");
    assert_eq!(host.text("after").await, "Write it down.\n");

    let seen = host.proposal(1).await;
    assert_eq!(
        (&seen["state"], &seen["mergeable"]),
        (&json!("open"), &json!(true))
    );
    assert_eq!(seen["paths"], json!(["prompts/sre/after.md"]));
    assert_eq!(seen["fetch"], "git fetch origin refs/proposals/1/head");
    // what it says works
    let work = host.work("work");
    work.ok(&["fetch", "origin", "refs/proposals/1/head"]);
    assert_eq!(work.ok(&["rev-parse", "FETCH_HEAD"]).text.trim(), head);

    // another head than was seen is not merged
    let other = refused(&host.merge(1, &base).await, 409, "has moved on to");
    assert_eq!(other["head"], json!(head));
    let reply = host.merge(1, &head).await;
    assert_eq!(reply.status, 200, "{}", reply.text());
    let merged = reply.json()["commit"].as_str().unwrap().to_owned();
    assert_eq!(host.main(), merged);
    assert_eq!(events.notice().await, "notifications/prompts/list_changed");
    assert_eq!(host.text("after").await, "Write it down today.\n");
    work.ok(&["fetch", "--quiet", "origin"]);
    let log = work
        .ok(&["log", "-1", "--format=%an|%cn|%P|%B", "origin/main"])
        .text;
    assert_eq!(
        log.trim(),
        format!(
            "local|Cuebook|{base} {head}|Merge proposal 1: Write it down today\n\n\
             Because tomorrow it is forgotten.\n\nProposal: 99\n\nProposal: 1"
        )
    );
    git(&host.bare(), &["fsck", "--strict"]);
    let after = host.proposal(1).await;
    assert_eq!(
        (&after["state"], &after["merge_commit"], &after["ended_by"]),
        (&json!("merged"), &json!(merged), &json!("local"))
    );
    refused(&host.merge(1, &head).await, 409, "proposal 1 is merged");
    let audit = host.get("/api/v1/audit", &[]).await.json();
    let actions: Vec<&str> = audit["rows"]
        .as_array()
        .unwrap()
        .iter()
        .map(|row| row["action"].as_str().unwrap())
        .collect();
    assert_eq!(actions[..2], ["merge", "propose"]);
    settled(&host.bare()).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn what_takes_approval_is_refused_on_every_way_but_review() {
    let host = Host::small().await;
    let work = host.work("work");
    work.publish(&[("cuebook.toml", POLICY)]);
    let main = host.main();
    let words =
        "prompts/sre/after.md takes an approval before it can be published (cuebook.toml of main)";
    let push = |work: &Work| {
        let said = work.no(&["push", "origin", "HEAD:main"]);
        said.says(words);
        said.says("propose the change: git push origin HEAD:refs/for/main");
        assert_eq!(host.main(), main);
    };
    work.change(&[("prompts/sre/after.md", &prompt("Changed."))]);
    push(&work);
    // taken back in the same push: the version in between would have a number
    work.change(&[("prompts/sre/after.md", &prompt("Write it down."))]);
    push(&work);
    // a change grants itself no leave
    work.back();
    work.change(&[
        ("cuebook.toml", ""),
        ("prompts/sre/after.md", &prompt("Changed.")),
    ]);
    push(&work);
    work.back();
    work.change(&[("cuebook.toml", "")]);
    work.change(&[("prompts/sre/after.md", &prompt("Changed."))]);
    push(&work);
    // by a merge of a branch
    work.back();
    work.ok(&["checkout", "--quiet", "-b", "side"]);
    work.change(&[("prompts/sre/after.md", &prompt("Changed."))]);
    work.ok(&["checkout", "--quiet", "main"]);
    work.ok(&["merge", "--quiet", "--no-ff", "--no-edit", "side"]);
    push(&work);
    // by path, as over SSH
    let by_path = host.work_by_path("by-path");
    by_path.change(&[("prompts/sre/after.md", &prompt("Changed."))]);
    push(&by_path);
    // by the API
    let files = json!({ "prompts/sre/after.md": prompt("Changed.") });
    let body = json!({ "base": main, "files": files, "message": "Change" });
    refused(
        &host.ask("POST", "/api/v1/changes", &body).await,
        422,
        words,
    );
    // nobody approves their own
    let head = host.open("prompts/sre/after.md", &prompt("Changed.")).await;
    let reply = host.merge(1, &head).await;
    let problem = refused(
        &reply,
        409,
        "takes 1 approval of the newest revision and has 0",
    );
    assert_eq!(problem["refusals"][0]["code"], "approvals");
    let review = json!({ "verdict": "approve", "head": head });
    let reply = host
        .ask("POST", "/api/v1/proposals/1/reviews", &review)
        .await;
    refused(&reply, 409, "nobody approves their own work");
    assert_eq!(host.main(), main);
    // what no rule covers goes on as before
    work.back();
    work.publish(&[("prompts/review/code-review.md", &prompt("Another."))]);
    settled(&host.bare()).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_rollback_needs_approval_unless_the_policy_says_so() {
    let host = Host::small().await;
    let work = host.work("work");
    work.publish(&[("prompts/sre/after.md", &prompt("Worse."))]);
    work.publish(&[("cuebook.toml", POLICY)]);
    let back = json!({ "version": "v1", "reason": "It was better." });
    let revert = "/api/v1/prompts/after/revert";
    refused(
        &host.ask("POST", revert, &back).await,
        422,
        "sets rollback = true",
    );
    assert_eq!(host.text("after").await, "Worse.\n");
    work.publish(&[("cuebook.toml", &format!("{POLICY}rollback = true\n"))]);
    let reply = host.ask("POST", revert, &back).await;
    assert_eq!(reply.status, 200, "{}", reply.text());
    assert_eq!(host.text("after").await, "Write it down.\n");
    // and nothing else
    work.back();
    work.change(&[("prompts/sre/after.md", &prompt("Worse."))]);
    work.no(&["push", "origin", "HEAD:main"])
        .says("takes an approval");
}

#[tokio::test(flavor = "multi_thread")]
async fn conflicts_are_shown_three_ways_and_resolved_here() {
    let host = Host::small().await;
    let base = host.main();
    let head = host.open("prompts/sre/after.md", &prompt("Mine.")).await;
    let work = host.work("work");
    work.publish(&[("prompts/sre/after.md", &prompt("Theirs."))]);
    let main = host.main();
    let seen = host.proposal(1).await;
    assert_eq!(seen["mergeable"], false);
    assert_eq!(seen["conflicts"], json!(["prompts/sre/after.md"]));
    refused(
        &host.merge(1, &head).await,
        409,
        "main has changed prompts/sre/after.md as well",
    );
    let conflicts = host
        .ask("GET", "/api/v1/proposals/1/conflicts", &Value::Null)
        .await
        .json();
    assert_eq!(
        conflicts,
        json!({ "head": head, "main": main, "files": [{
            "path": "prompts/sre/after.md",
            "base": prompt("Write it down."),
            "ours": prompt("Mine."),
            "theirs": prompt("Theirs."),
            "binary": false,
        }]})
    );
    let revise = "/api/v1/proposals/1/revisions";
    let half = json!({ "base": head, "merges": main });
    refused(
        &host.ask("POST", revise, &half).await,
        409,
        "prompts/sre/after.md still conflict",
    );
    let files = json!({ "prompts/sre/after.md": prompt("Both.") });
    let whole = json!({ "base": head, "merges": main, "files": files });
    let reply = host.ask("POST", revise, &whole).await;
    assert_eq!(reply.status, 200, "{}", reply.text());
    let new = reply.json()["head"].as_str().unwrap().to_owned();
    // what main did is none of the proposal's
    assert_eq!(
        host.proposal(1).await["paths"],
        json!(["prompts/sre/after.md"])
    );
    // the head that was resolved is not the head any more
    refused(
        &host.ask("POST", revise, &whole).await,
        409,
        "has moved on to",
    );
    let reply = host.merge(1, &new).await;
    assert_eq!(reply.status, 200, "{}", reply.text());
    assert_eq!(host.text("after").await, "Both.\n");
    // the old main is on the first-parent chain
    work.ok(&["fetch", "--quiet", "origin"]);
    let chain = work.ok(&["rev-list", "--first-parent", "origin/main"]).text;
    assert!(
        chain.contains(&main) && chain.contains(&base) && !chain.contains(&new),
        "{chain}"
    );
    settled(&host.bare()).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn changes_of_other_lines_and_files_merge_by_themselves() {
    let host = Host::small().await;
    let long = |a: &str, b: &str| prompt(&format!("{a}\n\nOne.\n\nTwo.\n\nThree.\n\n{b}"));
    let work = host.work("work");
    work.publish(&[("prompts/sre/long.md", &long("First.", "Last."))]);
    let head = host
        .open("prompts/sre/long.md", &long("FIRST.", "Last."))
        .await;
    work.publish(&[
        ("prompts/sre/long.md", &long("First.", "LAST.")),
        ("prompts/review/code-review.md", &prompt("Meanwhile.")),
    ]);
    let reply = host.merge(1, &head).await;
    assert_eq!(reply.status, 200, "{}", reply.text());
    assert_eq!(
        host.text("long").await,
        "FIRST.\n\nOne.\n\nTwo.\n\nThree.\n\nLAST.\n"
    );
    assert_eq!(host.text("code-review").await, "Meanwhile.\n");
}

#[tokio::test(flavor = "multi_thread")]
async fn what_would_not_pass_the_check_is_not_merged() {
    let host = Host::small().await;
    let work = host.work("work");
    work.publish(&[("partials/shared.md", "Shared.\n")]);
    let head = host
        .open(
            "prompts/sre/uses.md",
            &prompt("{% include \"shared.md\" %}"),
        )
        .await;
    // main takes away what it rests on
    work.back();
    work.remove("partials/shared.md");
    work.commit("No partial");
    work.ok(&["push", "origin", "HEAD:main"]);
    let main = host.main();
    let seen = host.proposal(1).await;
    assert_eq!(
        (&seen["mergeable"], &seen["refusals"][0]["code"]),
        (&json!(false), &json!("problems"))
    );
    assert_eq!(seen["problems"][0]["path"], "prompts/sre/uses.md");
    refused(&host.merge(1, &head).await, 422, "prompts/sre/uses.md:4");
    assert_eq!(host.main(), main);
    // what does not pass as it is is no proposal, as by git
    let body =
        json!({ "title": "Bad", "base": main, "files": { "prompts/a.md": prompt("{{ no }}") } });
    refused(
        &host.ask("POST", "/api/v1/proposals", &body).await,
        422,
        "`no` is not an argument",
    );
    settled(&host.bare()).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn comments_stand_on_lines_and_are_carried_or_outdated() {
    let host = Host::small().await;
    let head = host
        .open("prompts/sre/after.md", &prompt("One.\n\nTwo.\n\nThree."))
        .await;
    let comments = "/api/v1/proposals/1/comments";
    let on = |line: u32, side: &str, text: &str| json!({ "message": text, "place": { "path": "prompts/sre/after.md", "line": line, "side": side } });
    // hostile text is data
    let hostile = "<script>alert(1)</script> {{ x }} \u{202e}";
    for (body, id) in [
        (on(6, "new", "Which two?"), 1),
        (on(8, "new", hostile), 2),
        (on(4, "old", "Gone"), 3),
    ] {
        let reply = host.ask("POST", comments, &body).await;
        assert_eq!(
            (reply.status, &reply.json()["id"]),
            (201, &json!(id)),
            "{}",
            reply.text()
        );
    }
    let answer = json!({ "message": "Both.", "thread": 1 });
    assert_eq!(host.ask("POST", comments, &answer).await.status, 201);
    for (body, words) in [
        (on(99, "new", "x"), "has no line 99"),
        (on(1, "new", " "), "say something"),
        (json!({ "message": "x", "thread": 9 }), "no thread 9"),
        (
            json!({ "message": "x", "place": { "path": "labels.toml", "line": 1 } }),
            "does not touch",
        ),
        (json!({ "message": "x".repeat(65 * 1024) }), "at most 65536"),
        (json!({ "message": "a\u{0}b" }), "NUL"),
    ] {
        refused(&host.ask("POST", comments, &body).await, 422, words);
    }
    let seen = host.proposal(1).await;
    assert_eq!(seen["threads"][0]["comments"][1]["message"], "Both.");
    assert_eq!(seen["threads"][1]["comments"][0]["message"], hostile);
    assert_eq!(seen["threads"][2]["place"]["now"], 4);

    // a line before the first comment, and another third line
    let files = json!({ "prompts/sre/after.md": prompt("Zero.\n\nOne.\n\nTwo.\n\nThird.") });
    let body = json!({ "base": head, "files": files, "message": "More" });
    let reply = host
        .ask("POST", "/api/v1/proposals/1/revisions", &body)
        .await;
    assert_eq!(reply.status, 200, "{}", reply.text());
    let seen = host.proposal(1).await;
    let place = |n: usize| {
        (
            &seen["threads"][n]["place"]["now"],
            &seen["threads"][n]["place"]["outdated"],
        )
    };
    assert_eq!(place(0), (&json!(8), &json!(false)));
    assert_eq!(place(1), (&Value::Null, &json!(true)));
    assert_eq!(place(2), (&json!(4), &json!(false)));

    // edited and resolved; what was seen before is refused
    let tag = format!("\"{}\"", seen["tag"].as_str().unwrap());
    let seen_then = [("If-Match", &*tag)];
    let edit = json!({ "message": "Which of them?" });
    let path = format!("{comments}/1");
    let reply = host.ask_with("PATCH", &path, &seen_then, &edit).await;
    assert_eq!(reply.status, 200, "{}", reply.text());
    refused(
        &host.ask_with("PATCH", &path, &seen_then, &edit).await,
        412,
        "has changed since",
    );
    let reply = host.ask("PATCH", &path, &json!({ "resolved": true })).await;
    assert_eq!(reply.status, 200, "{}", reply.text());
    let seen = host.proposal(1).await;
    assert_eq!(seen["threads"][0]["resolved_by"], "local");
    assert_eq!(seen["threads"][0]["comments"][0]["edited"], true);
}

#[tokio::test(flavor = "multi_thread")]
async fn the_effect_is_of_every_prompt_that_is_reached() {
    let host = Host::small().await;
    let work = host.work("work");
    let with_example = "---\ndescription: D\narguments: [{ name: who, required: true }]\nexamples:\n  - name: mina\n    arguments: { who: Mina }\n---\nHello {{ who }}.\n{% include \"tone.md\" %}\n\n<!-- role: assistant -->\nYes.\n";
    work.publish(&[
        ("partials/tone.md", "Be kind.\n"),
        ("prompts/sre/hello.md", with_example),
        ("prompts/sre/quiet.md", &prompt("Nothing shared.")),
    ]);
    host.open("partials/tone.md", "Be brief.\n").await;
    let reply = host
        .ask("GET", "/api/v1/proposals/1/effect", &Value::Null)
        .await;
    assert_eq!(reply.status, 200, "{}", reply.text());
    let effect = reply.json();
    assert_eq!(effect["files"][0]["path"], "partials/tone.md");
    assert_eq!(
        effect["files"][0]["hunks"],
        json!([[{ "old": 1, "text": "Be kind." }, { "new": 1, "text": "Be brief." }]])
    );
    assert_eq!(effect["prompts"].as_array().unwrap().len(), 1, "{effect}");
    let prompt = &effect["prompts"][0];
    assert_eq!(
        (&prompt["name"], &prompt["kind"]),
        (&json!("hello"), &json!("reached"))
    );
    let example = &prompt["examples"][0];
    assert_eq!(example["example"], "mina");
    assert_eq!(
        example["messages"],
        json!([
            { "role_before": "user", "role_after": "user", "hunks": [[
                { "old": 1, "new": 1, "text": "Hello Mina." },
                { "old": 2, "text": "Be kind." },
                { "new": 2, "text": "Be brief." },
                { "old": 3, "new": 3, "text": "" },
            ]] },
            { "role_before": "assistant", "role_after": "assistant", "hunks": [] },
        ])
    );
    assert_eq!(effect["left_out"], 0);
    // a line of what it renders to takes a comment
    let place =
        json!({ "path": "prompts/sre/hello.md", "line": 2, "example": "mina", "message": 0 });
    let body = json!({ "message": "Too brief?", "place": place });
    let reply = host
        .ask("POST", "/api/v1/proposals/1/comments", &body)
        .await;
    assert_eq!(reply.status, 201, "{}", reply.text());
    // a proposal that only touches a resource reaches who embeds it
    let bound = "---\ndescription: D\nresources:\n  - name: runbook\n    uri: runbook://payments\n---\nRead.\n\n<!-- resource: runbook -->\n";
    work.back();
    work.publish(&[("prompts/sre/bound.md", bound)]);
    let head = host
        .open("resources/runbook/payments.md", "# Payments, again\n")
        .await;
    let effect = host
        .ask("GET", "/api/v1/proposals/2/effect", &Value::Null)
        .await
        .json();
    assert_eq!(effect["prompts"][0]["name"], "bound", "{effect}");
    assert_eq!(host.merge(2, &head).await.status, 200);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_comment_on_a_rendered_line_goes_with_it_when_a_partial_changes() {
    let host = Host::small().await;
    let work = host.work("work");
    work.publish(&[
        ("partials/tone.md", "Be kind.\n"),
        (
            "prompts/sre/hello.md",
            "---\ndescription: D\n---\nHello.\n{% include \"tone.md\" %}\nBye.\n",
        ),
    ]);
    let mut head = host.open("partials/tone.md", "Be brief.\n").await;
    let comments = "/api/v1/proposals/1/comments";
    let on = |line: u32| {
        let place =
            json!({ "path": "prompts/sre/hello.md", "line": line, "example": "", "message": 0 });
        json!({ "message": "Too brief?", "place": place })
    };
    let reply = host.ask("POST", comments, &on(2)).await;
    assert_eq!(reply.status, 201, "{}", reply.text());
    refused(
        &host.ask("POST", comments, &on(99)).await,
        422,
        "has no line 99",
    );
    for (partial, now) in [
        ("Be brief.\n", Some(2)),
        ("Read it twice.\nThen once more.\nBe brief.\n", Some(4)),
        ("Read it twice.\n", None),
        ("Be brief.\n\nNow.\n", Some(2)),
    ] {
        if partial != "Be brief.\n" {
            let files = json!({ "partials/tone.md": partial });
            let body = json!({ "base": head, "files": files, "message": "Again" });
            let path = "/api/v1/proposals/1/revisions";
            let reply = host.ask("POST", path, &body).await;
            assert_eq!(reply.status, 200, "{}", reply.text());
            head = reply.json()["head"].as_str().unwrap().to_owned();
        }
        let place = host.proposal(1).await["threads"][0]["place"].clone();
        assert_eq!(place["now"], json!(now), "{partial}: {place}");
        assert_eq!(place["outdated"], json!(now.is_none()), "{partial}");
        // what stood there is shown where it stands no more
        let quote = now.is_none().then_some("Be brief.");
        assert_eq!(place["quote"].as_str(), quote, "{partial}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn it_is_closed_reopened_and_taken_back() {
    let host = Host::small().await;
    let head = host.open("prompts/sre/after.md", &prompt("Changed.")).await;
    let at = |what: &str| format!("/api/v1/proposals/1/{what}");
    let nothing = json!({});
    assert_eq!(host.ask("POST", &at("close"), &nothing).await.status, 200);
    refused(
        &host.ask("POST", &at("close"), &nothing).await,
        409,
        "is closed",
    );
    refused(
        &host.merge(1, &head).await,
        409,
        "proposal 1 is closed; reopen it first",
    );
    let review = json!({ "verdict": "request-changes", "head": head });
    refused(
        &host.ask("POST", &at("reviews"), &review).await,
        409,
        "only open proposals",
    );
    refused(
        &host.ask("POST", &at("revert"), &nothing).await,
        409,
        "only what is merged",
    );
    let list = |state: &str| format!("/api/v1/proposals?state={state}");
    let count = async |state: &str| {
        let listed = host.ask("GET", &list(state), &Value::Null).await.json();
        listed["proposals"].as_array().unwrap().len()
    };
    assert_eq!(
        (
            count("open").await,
            count("closed").await,
            count("all").await
        ),
        (0, 1, 1)
    );
    assert_eq!(host.ask("POST", &at("reopen"), &nothing).await.status, 200);
    let renamed = json!({ "title": "다른 제목", "message": "Why." });
    assert_eq!(
        host.ask("PATCH", "/api/v1/proposals/1", &renamed)
            .await
            .status,
        200
    );
    assert_eq!(host.proposal(1).await["title"], "다른 제목");
    assert_eq!(host.merge(1, &head).await.status, 200);
    assert_eq!(host.text("after").await, "Changed.\n");
    refused(
        &host.ask("POST", &at("close"), &nothing).await,
        409,
        "is merged",
    );
    // something else is published meanwhile, and stays
    host.work("work")
        .publish(&[("prompts/sre/more.md", &prompt("More."))]);
    let reply = host
        .ask(
            "POST",
            &at("revert"),
            &json!({ "message": "It was worse." }),
        )
        .await;
    assert_eq!(reply.status, 201, "{}", reply.text());
    let undo = reply.json();
    assert_eq!(undo["title"], "Revert proposal 1: 다른 제목");
    assert_eq!(
        host.merge(2, undo["head"].as_str().unwrap()).await.status,
        200
    );
    assert_eq!(host.text("after").await, "Write it down.\n");
    assert_eq!(host.text("more").await, "More.\n");
    refused(
        &host.ask("POST", &at("revert"), &nothing).await,
        409,
        "nothing to take back",
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn a_deleted_database_still_knows_who_merged_what() {
    let mut host = Host::small().await;
    let head = host.open("prompts/sre/after.md", &prompt("Changed.")).await;
    assert_eq!(host.merge(1, &head).await.status, 200);
    host.open("prompts/sre/other.md", &prompt("Open.")).await;
    let main = host.main();
    host.stop().await;
    for entry in std::fs::read_dir(host.data_dir()).unwrap().flatten() {
        if entry
            .file_name()
            .to_string_lossy()
            .starts_with("cuebook.db")
        {
            std::fs::remove_file(entry.path()).unwrap();
        }
    }
    host.start_again().await;
    soon("the proposals to be known again", async {
        loop {
            let listed = host
                .ask("GET", "/api/v1/proposals?state=all", &Value::Null)
                .await
                .json();
            if listed["proposals"]
                .as_array()
                .is_some_and(|all| all.len() == 2)
            {
                return;
            }
            tokio::time::sleep(std::time::Duration::from_millis(20)).await;
        }
    })
    .await;
    // asked for, a merge is brought up to date
    let reply = host.merge(1, &head).await;
    refused(&reply, 409, "proposal 1 is merged");
    let seen = host.proposal(1).await;
    assert_eq!(
        (&seen["title"], &seen["merge_commit"], &seen["ended_by"]),
        (&json!("Change one"), &json!(main), &json!("local"))
    );
    let open = host.proposal(2).await;
    assert_eq!(
        (&open["state"], &open["paths"]),
        (&json!("open"), &json!(["prompts/sre/other.md"]))
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn merges_at_the_same_time_lose_nothing() {
    let host = Host::small().await;
    let mut heads = Vec::new();
    for n in 1..=8u32 {
        heads.push((
            n,
            host.open(&format!("prompts/sre/p{n}.md"), &prompt("P."))
                .await,
        ));
    }
    let host = &host;
    let merges = heads
        .iter()
        .map(|(n, head)| async move { host.merge(*n, head).await.status });
    let all = futures_util::future::join_all(merges).await;
    assert_eq!(all, [200; 8]);
    let names = host.client().names().await;
    assert_eq!(
        names.iter().filter(|name| name.starts_with('p')).count(),
        8,
        "{names:?}"
    );
    let work = host.work("work");
    let merged = work
        .ok(&["log", "--first-parent", "--format=%s", "origin/main"])
        .text;
    assert_eq!(merged.matches("Merge proposal").count(), 8, "{merged}");
    settled(&host.bare()).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn lists_have_pages_and_urls_are_read_strictly() {
    let host = Host::small().await;
    for n in 1..=3 {
        host.open(&format!("prompts/sre/p{n}.md"), &prompt("P."))
            .await;
    }
    let page = host
        .ask("GET", "/api/v1/proposals?limit=2", &Value::Null)
        .await
        .json();
    assert_eq!(
        (&page["proposals"][0]["number"], &page["next_cursor"]),
        (&json!(3), &json!("2"))
    );
    let page = host
        .ask("GET", "/api/v1/proposals?limit=2&cursor=2", &Value::Null)
        .await
        .json();
    assert_eq!(
        (&page["proposals"][0]["number"], &page["next_cursor"]),
        (&json!(1), &Value::Null)
    );
    refused(
        &host
            .ask("GET", "/api/v1/proposals?state=gone", &Value::Null)
            .await,
        400,
        "`state` is",
    );
    for number in ["9", "0", "-1", "x", "99999999999999999999"] {
        let reply = host
            .ask("GET", &format!("/api/v1/proposals/{number}"), &Value::Null)
            .await;
        refused(&reply, 404, "there is no proposal");
    }
    for (body, words) in [
        (
            json!({ "title": " ", "base": host.main(), "files": { "a": "" } }),
            "`title`",
        ),
        (
            json!({ "title": "T", "base": "1111111", "files": { "a": "" } }),
            "no commit `1111111`",
        ),
        (
            json!({ "title": "T", "base": host.main(), "files": {} }),
            "names no file",
        ),
        (
            json!({ "title": "T", "base": host.main(), "files": { "../a": "" } }),
            "is no path",
        ),
    ] {
        refused(
            &host.ask("POST", "/api/v1/proposals", &body).await,
            422,
            words,
        );
    }
    // of git's own
    let work = host.work("work");
    work.change(&[("prompts/sre/after.md", &prompt("By git."))]);
    work.ok(&["push", "origin", FOR]).says("opened proposal 4");
    assert_eq!(host.proposal(4).await["mergeable"], true);
}
