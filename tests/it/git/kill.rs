//! A server that is killed at any point of a push: what was acknowledged is there, and the next push works.

use std::time::Instant;

use super::*;

/// Kills what works in a repository.
fn kill_git(bare: &Path) {
    for (id, _) in git_processes(bare) {
        // it may have ended meanwhile
        let _ = Command::new("kill")
            .args(["-KILL", &id.to_string()])
            .stderr(Stdio::null())
            .status();
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_server_killed_at_any_point_of_a_push_loses_nothing_that_was_acknowledged() {
    const ROUNDS: u64 = 100;
    let mut process = Process::start(&[("CUEBOOK_LOG", "warn")]);
    let work = process.work("work");
    let bare = process.bare();
    work.publish(&[("prompts/sre/after.md", &prompt("Begun."))]);
    let mut acknowledged = 0;
    // how long a whole push takes here and now: the kills are spread over it
    let started = Instant::now();
    work.publish(&[("prompts/sre/after.md", &prompt("Timed."))]);
    let whole = started.elapsed();
    for round in 0..ROUNDS {
        let text = format!("Round {round}.");
        let new = work.change(&[("prompts/sre/after.md", &prompt(&text))]);
        let push = work.start_push(&["origin", "HEAD:main"]);
        let share = (round * 37) % ROUNDS;
        tokio::time::sleep(whole * u32::try_from(share).unwrap() / 60).await;
        // only the server, or all that it has started as well
        process.server.take().unwrap().kill();
        if round % 2 == 1 {
            kill_git(&bare);
        }
        let was_acknowledged = push.wait_with_output().unwrap().status.success();
        process.again();
        work.ok(&["remote", "set-url", "origin", &process.url()]);
        if was_acknowledged {
            acknowledged += 1;
            assert_eq!(
                process.server().text("after").await,
                format!("{text}\n"),
                "round {round}"
            );
            let has = git(&bare, &["merge-base", "--is-ancestor", &new, "main"]);
            assert!(
                has.ok,
                "round {round}: an acknowledged push is gone: {}",
                has.text
            );
        }
        // a git that outlived its server may still be at work, and tidies up after itself
        settled(&bare).await;
        // no lock blocks the next push: every fifth round, and the next victim shows it as well
        if round % 5 == 4 {
            work.change(&[("prompts/sre/after.md", &prompt(&format!("After {round}.")))]);
            let said = work.push();
            assert!(said.ok, "round {round}: {}", said.text);
            assert_eq!(
                process.server().text("after").await,
                format!("After {round}.\n")
            );
        }
    }
    assert!(
        acknowledged > 0,
        "every kill was too early to show anything"
    );
    assert!(
        acknowledged < ROUNDS,
        "every kill was too late to show anything"
    );
    assert!(git(&bare, &["fsck", "--strict", "--connectivity-only"]).ok);
}
