//! Proposals: `git push origin HEAD:refs/for/main`.

use super::*;

const FOR: &str = "HEAD:refs/for/main";

/// Refs of proposals in the repository.
fn refs(host: &Host) -> Vec<String> {
    let listed = git(
        &host.bare(),
        &[
            "for-each-ref",
            "--format=%(refname) %(objectname)",
            "refs/proposals",
        ],
    );
    listed.text.lines().map(str::to_owned).collect()
}

/// The head of a proposal in the repository.
fn head(host: &Host, number: u32) -> String {
    let name = format!("refs/proposals/{number}/head");
    git(&host.bare(), &["rev-parse", "--verify", &name])
        .text
        .trim()
        .to_owned()
}

#[tokio::test(flavor = "multi_thread")]
async fn a_push_for_main_opens_a_proposal_and_does_not_publish() {
    let host = Host::small().await;
    let work = host.work("work");
    let main = host.main();
    work.write("prompts/sre/after.md", prompt("Proposed."));
    let commit = work.commit("Shorter postmortems\n\nWith a body.");
    let said = work.ok(&["push", "origin", FOR]);
    assert_eq!(
        said.remote(),
        [
            "opened proposal 1: Shorter postmortems",
            &*format!(
                "  see it: http://{}/proposals/1 or git fetch origin refs/proposals/1/head",
                host.address
            ),
            "  revise it: git push -o proposal=1 origin HEAD:refs/for/main",
        ],
        "{}",
        said.text
    );
    said.says("* [new reference]   HEAD -> refs/proposals/1/head");
    assert_eq!((host.main(), head(&host, 1)), (main, commit.clone()));
    assert_eq!(host.text("after").await, "Write it down.\n");

    // what it says works
    let other = host.work("other");
    other.ok(&["fetch", "origin", "refs/proposals/1/head"]);
    assert_eq!(other.ok(&["rev-parse", "FETCH_HEAD"]).text.trim(), commit);

    // the same again, then an amended one by the number that was told
    work.no(&["push", "origin", FOR])
        .says("proposal 1 has this commit already");
    work.write("prompts/sre/after.md", prompt("Amended."));
    work.ok(&["commit", "--quiet", "--all", "--amend", "--no-edit"]);
    let said = work.ok(&["push", "-o", "proposal=1", "origin", FOR]);
    assert_eq!(
        said.remote()[0],
        "revised proposal 1 (revision 2): Shorter postmortems"
    );
    said.says("(forced update)");
    assert_eq!(head(&host, 1), work.head());
    // both revisions are kept
    assert_eq!(refs(&host).len(), 3);
    settled(&host.bare()).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_topic_finds_its_proposal_again() {
    let host = Host::small().await;
    let work = host.work("work");
    work.write("prompts/sre/after.md", prompt("One."));
    work.commit("First words");
    let said = work.ok(&[
        "push",
        "-o",
        "topic=shorter",
        "-o",
        "title=장애 후 기록",
        "origin",
        FOR,
    ]);
    assert_eq!(said.remote()[0], "opened proposal 1: 장애 후 기록");
    assert_eq!(
        said.remote()[2],
        "  revise it: git push -o topic=shorter origin HEAD:refs/for/main"
    );
    // amended
    work.write("prompts/sre/after.md", prompt("Two."));
    work.ok(&["commit", "--quiet", "--all", "--amend", "--no-edit"]);
    let said = work.ok(&["push", "-o", "topic=shorter", "origin", FOR]);
    assert_eq!(
        said.remote()[0],
        "revised proposal 1 (revision 2): 장애 후 기록"
    );
    // one more commit on top, without a topic: it builds on what is proposed
    work.change(&[("prompts/sre/after.md", &prompt("Three."))]);
    let said = work.ok(&["push", "origin", FOR]);
    assert_eq!(
        said.remote()[0],
        "revised proposal 1 (revision 3): 장애 후 기록"
    );
    said.says_not("forced");
    assert_eq!(head(&host, 1), work.head());
    // another topic is another proposal
    work.back();
    work.change(&[("prompts/review/code-review.md", &prompt("Another."))]);
    let said = work.ok(&["push", "-o", "topic=another", "origin", FOR]);
    said.says("opened proposal 2: change");
    // a new title alone
    let said = work.ok(&[
        "push",
        "-o",
        "topic=another",
        "-o",
        "title=New title",
        "origin",
        FOR,
    ]);
    assert_eq!(
        said.remote()[0],
        "revised proposal 2 (revision 1): New title"
    );
    work.no(&["push", "-o", "topic=another", "origin", FOR])
        .says("proposal 2 has this commit already");
    work.no(&[
        "push",
        "-o",
        "proposal=2",
        "-o",
        "topic=shorter",
        "-o",
        "title=x",
        "origin",
        FOR,
    ])
    .says("topic `shorter` is that of proposal 1; choose another, or leave -o topic out");
    // a third, from main, without a topic
    work.back();
    work.change(&[("prompts/sre/third.md", &prompt("Third."))]);
    work.ok(&["push", "origin", FOR]).says("opened proposal 3");
}

#[tokio::test(flavor = "multi_thread")]
async fn what_cannot_be_proposed_is_refused_in_words() {
    let host = Host::small_with(|config| config.protected_branches = vec!["stable".into()]).await;
    let work = host.work("work");
    let main = host.main();
    work.no(&["push", "origin", FOR])
        .says("main has this commit already: there is nothing to propose");
    work.change(&[("prompts/sre/after.md", &prompt("Proposed."))]);
    let refused = |arguments: &[&str], words: &[&str]| {
        let mut all = vec!["push"];
        all.extend_from_slice(arguments);
        let said = work.no(&all);
        for word in words {
            said.says(word);
        }
        assert_eq!(refs(&host), Vec::<String>::new(), "{arguments:?}");
        assert_eq!(host.main(), main);
    };
    refused(
        &["-o", "topc=x", "origin", FOR],
        &[
            "no push option `topc` (did you mean `topic`?); there are topic=…, title=… and proposal=<number>",
        ],
    );
    refused(
        &["-o", "ci.skip", "origin", FOR],
        &["no push option `ci.skip`; there are"],
    );
    refused(
        &["-o", "topic=", "origin", FOR],
        &["-o topic=… needs a value"],
    );
    refused(
        &["-o", "proposal=seven", "origin", FOR],
        &["takes the number of a proposal"],
    );
    refused(
        &["-o", "proposal=7", "origin", FOR],
        &["proposal 7 is not open"],
    );
    refused(
        &["origin", "HEAD:refs/for/other"],
        &[
            "remote: refused: there is no branch other to propose to",
            "remote:   git push origin HEAD:refs/for/main",
        ],
    );
    refused(
        &["origin", "HEAD:refs/for/stable"],
        &["there is no branch stable to propose to"],
    );
    refused(&["origin", ":refs/for/main"], &["refs/for/main"]);
    // content is checked as at a push to main
    work.change(&[("prompts/sre/bad.md", &prompt("{{ nope }}"))]);
    refused(
        &["origin", FOR],
        &[
            "remote: prompts/sre/bad.md:4:4: `nope` is not an argument",
            "refused: 1 error",
        ],
    );
    // a history of its own
    work.ok(&["checkout", "--quiet", "--orphan", "other"]);
    work.remove("prompts/sre/bad.md");
    work.commit("another history");
    refused(
        &["origin", FOR],
        &[
            "remote: refused: the commit has no history in common with main",
            "git rebase origin/main",
        ],
    );
    // a tag is no commit
    work.ok(&["checkout", "--quiet", "main"]);
    work.ok(&["tag", "--annotate", "--message", "x", "heavy", "HEAD~1"]);
    refused(&["origin", "heavy:refs/for/main"], &["is a tag"]);
    settled(&host.bare()).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn what_main_gets_is_merged() {
    let host = Host::small().await;
    let work = host.work("work");
    work.change(&[("prompts/sre/after.md", &prompt("Proposed."))]);
    work.ok(&["push", "-o", "topic=t", "origin", FOR]);
    work.ok(&["push", "origin", "HEAD:main"]);
    // it is open no longer: neither by number nor by topic
    work.change(&[("prompts/sre/after.md", &prompt("More."))]);
    work.no(&["push", "-o", "proposal=1", "origin", FOR])
        .says("proposal 1 is not open; leave -o proposal out to open a new one");
    work.ok(&["push", "-o", "topic=t", "origin", FOR])
        .says("opened proposal 2");
    // a proposal and main in one push
    work.back();
    work.change(&[("prompts/sre/both.md", &prompt("Both."))]);
    let first = work.head();
    work.change(&[("prompts/sre/both.md", &prompt("Both, more."))]);
    let said = work.ok(&["push", "origin", FOR, &format!("{first}:refs/heads/main")]);
    said.says("opened proposal 3");
    said.says("published 1 prompt: both");
    assert_eq!(host.text("both").await, "Both.\n");
    assert_eq!(head(&host, 3), work.head());
}

#[tokio::test(flavor = "multi_thread")]
async fn a_deleted_database_loses_no_proposal_and_nothing_that_is_served() {
    let mut host = Host::small().await;
    let work = host.work("work");
    for n in 1..=3 {
        work.back();
        work.write(&format!("prompts/sre/p{n}.md"), prompt("Proposed."));
        work.commit(&format!("Proposal {n}"));
        work.ok(&["push", "origin", FOR]);
    }
    work.change(&[("prompts/sre/p3.md", &prompt("Revised."))]);
    work.ok(&["push", "origin", FOR])
        .says("revised proposal 3 (revision 2)");
    let served = host.client().names().await;
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
    assert_eq!(host.client().names().await, served);
    work.no(&["push", "-o", "proposal=3", "origin", FOR])
        .says("proposal 3 has this commit already");
    work.change(&[("prompts/sre/p3.md", &prompt("Again."))]);
    work.ok(&["push", "origin", FOR])
        .says("revised proposal 3 (revision 3): change");
    work.back();
    work.change(&[("prompts/sre/p4.md", &prompt("Fourth."))]);
    work.ok(&["push", "origin", FOR]).says("opened proposal 4");
}

#[tokio::test(flavor = "multi_thread")]
async fn without_a_database_prompts_are_served_and_published_and_proposals_refused() {
    let newer = async |path: &Path| {
        // as a later release leaves it
        let store = cuebook::store::Store::open(path).await.unwrap();
        store.close().await;
        let options = sqlx::sqlite::SqliteConnectOptions::new().filename(path);
        let pool = sqlx::SqlitePool::connect_with(options).await.unwrap();
        sqlx::query(
            "INSERT INTO _sqlx_migrations (version, description, success, checksum, execution_time) VALUES (9999, 'later', 1, x'00', 1)",
        )
        .execute(&pool)
        .await
        .unwrap();
        pool.close().await;
    };
    let mut host = Host::small().await;
    let work = host.work("work");
    host.stop().await;
    let database = host.data_dir().join("cuebook.db");
    std::fs::remove_file(&database).unwrap();
    newer(&database).await;
    let before = std::fs::read(&database).unwrap();
    host.start_again().await;
    work.publish(&[("prompts/sre/after.md", &prompt("Published."))]);
    assert_eq!(host.text("after").await, "Published.\n");
    work.change(&[("prompts/sre/after.md", &prompt("Proposed."))]);
    let said = work.no(&["push", "origin", FOR]);
    said.says("remote: refused: no proposals can be taken: ");
    said.says("was written by a newer release of cuebook (migration 9999)");
    assert_eq!(refs(&host), Vec::<String>::new());
    host.stop().await;
    assert_eq!(
        std::fs::read(&database).unwrap(),
        before,
        "what it cannot read is left alone"
    );
}

/// A damaged file is kept under another name, and a new one takes what follows.
#[tokio::test(flavor = "multi_thread")]
async fn a_damaged_database_is_kept_and_a_new_one_takes_proposals() {
    let mut host = Host::small().await;
    let work = host.work("work");
    host.stop().await;
    let database = host.data_dir().join("cuebook.db");
    let damaged = noise(8192, 5);
    std::fs::write(&database, &damaged).unwrap();
    host.start_again().await;
    work.publish(&[("prompts/sre/after.md", &prompt("Published."))]);
    assert_eq!(host.text("after").await, "Published.\n");
    work.change(&[("prompts/sre/after.md", &prompt("Proposed."))]);
    work.ok(&["push", "origin", FOR]).says("opened proposal 1");
    let kept = std::fs::read(host.data_dir().join("cuebook.db.damaged-1")).unwrap();
    assert!(kept == damaged, "it is kept to the byte");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_push_whose_record_could_not_be_written_opens_no_second_proposal() {
    let host = Host::small().await;
    let work = host.work("work");
    work.change(&[("prompts/sre/after.md", &prompt("Proposed."))]);
    // somebody else writes in the database for as long as the server waits
    let database = host.data_dir().join("cuebook.db");
    let options = sqlx::sqlite::SqliteConnectOptions::new().filename(&database);
    let pool = sqlx::SqlitePool::connect_with(options).await.unwrap();
    let busy = pool.begin_with("BEGIN IMMEDIATE").await.unwrap();
    let said = work.no(&["push", "origin", FOR]);
    said.says("the server could not write it; its log says more");
    busy.rollback().await.unwrap();
    work.no(&["push", "origin", FOR])
        .says("proposal 1 has this commit already");
    work.change(&[("prompts/sre/after.md", &prompt("More."))]);
    work.ok(&["push", "origin", FOR])
        .says("revised proposal 1 (revision 2): change");
    assert_eq!(refs(&host).len(), 3);
}
