//! Pushes at the same time, clients that vanish, a server that is told to stop.

use std::time::{Duration, Instant};

use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::TcpStream;

use super::*;
use crate::support::http::head;

#[tokio::test(flavor = "multi_thread")]
async fn of_eight_pushes_at_the_same_time_one_wins_and_is_served() {
    const PUSHERS: usize = 8;
    let host = Host::small().await;
    let works: Vec<Work> = (0..PUSHERS).map(|n| host.work(&format!("w{n}"))).collect();
    for round in 0..10 {
        for (n, work) in works.iter().enumerate() {
            work.back();
            work.change(&[(
                "prompts/sre/after.md",
                &prompt(&format!("Round {round} by {n}.")),
            )]);
        }
        let before = host.main();
        let pushes: Vec<Child> = works
            .iter()
            .map(|work| work.start_push(&["origin", "HEAD:main"]))
            .collect();
        let mut winners = Vec::new();
        for (n, push) in pushes.into_iter().enumerate() {
            let output = push.wait_with_output().unwrap();
            let said = String::from_utf8_lossy(&output.stderr).into_owned();
            if output.status.success() {
                assert!(said.contains("published 1 prompt: after"), "{said}");
                winners.push(n);
            } else {
                let told = said.contains("another push moved main meanwhile")
                    || said.contains("fetch first")
                    || said.contains("cannot lock ref")
                    || said.contains("failed to update ref");
                assert!(told, "{said}");
            }
        }
        assert_eq!(winners.len(), 1, "round {round}: {winners:?}");
        let winner = winners[0];
        assert_eq!(host.main(), works[winner].head());
        assert_ne!(host.main(), before);
        assert_eq!(
            host.text("after").await,
            format!("Round {round} by {winner}.\n")
        );
    }
    settled(&host.bare()).await;
    assert!(git(&host.bare(), &["fsck", "--strict"]).ok);
}

/// How a client goes away.
#[derive(Debug, Clone, Copy, PartialEq)]
enum Goes {
    /// It closes its connection.
    Fin,
    /// It is gone.
    Rst,
}

#[tokio::test(flavor = "multi_thread")]
async fn a_client_that_vanishes_in_the_middle_leaves_nothing_and_burns_nothing() {
    let process = Process::start(&[]);
    let work = process.work("work");
    work.publish(&[("prompts/sre/after.md", &prompt("Before."))]);
    let old = work.head();
    work.write("attachments/noise.bin", noise(3_000_000, 9));
    let new = work.commit("large");
    let request = push_request(&work, &old, &new);
    for goes in [Goes::Fin, Goes::Rst] {
        for chunked in [false, true] {
            // in the commands, before the pack, early and late in it
            for cut in [2, 60, 200, 300_000, request.len() - 10] {
                let framing = if chunked {
                    "Transfer-Encoding"
                } else {
                    "X-Framing"
                };
                let length = (!chunked).then_some(request.len());
                let headers = [("Content-Type", RECEIVE), (framing, "chunked")];
                let head = head("POST", "/library.git/git-receive-pack", &headers, length);
                let mut stream = TcpStream::connect(process.server().address).await.unwrap();
                if goes == Goes::Rst {
                    stream.set_zero_linger().unwrap();
                }
                stream.write_all(head.as_bytes()).await.unwrap();
                for piece in request[..cut].chunks(50_000) {
                    if chunked {
                        stream
                            .write_all(format!("{:x}\r\n", piece.len()).as_bytes())
                            .await
                            .unwrap();
                    }
                    stream.write_all(piece).await.unwrap();
                    if chunked {
                        stream.write_all(b"\r\n").await.unwrap();
                    }
                }
                // git has begun to read it
                soon("a receive-pack", async {
                    while cut > 1000 && left_behind(&process.bare()).is_empty() {
                        tokio::time::sleep(Duration::from_millis(5)).await;
                    }
                })
                .await;
                drop(stream);
                settled(&process.bare()).await;
                assert_eq!(main_of(&process.bare()), old, "{goes:?} {chunked} {cut}");
            }
        }
    }
    // nothing goes on: the server uses no processor time to speak of
    let before = (Instant::now(), process.server().processor_time());
    tokio::time::sleep(Duration::from_secs(1)).await;
    let used = process.server().processor_time().saturating_sub(before.1);
    assert!(
        used < before.0.elapsed() / 4,
        "{used:?} in {:?}",
        before.0.elapsed()
    );
    work.ok(&["push", "origin", "HEAD:main"]);
    assert_eq!(main_of(&process.bare()), new);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_git_that_is_killed_while_it_pushes_leaves_nothing() {
    let process = Process::start(&[]);
    let work = process.work("work");
    work.publish(&[("prompts/sre/after.md", &prompt("Before."))]);
    work.write("attachments/noise.bin", noise(20_000_000, 11));
    work.commit("large");
    work.ok(&["config", "core.compression", "0"]);
    for after in [20, 60, 120, 200] {
        let mut push = work.start_push(&["origin", "HEAD:main"]);
        tokio::time::sleep(Duration::from_millis(after)).await;
        push.kill().unwrap();
        push.wait().unwrap();
        settled(&process.bare()).await;
    }
    work.git(&["push", "origin", "HEAD:main"]);
    assert_eq!(main_of(&process.bare()), work.head());
}

#[tokio::test(flavor = "multi_thread")]
async fn a_fetch_that_nobody_reads_is_ended() {
    let process = Process::start(&[("CUEBOOK_GIT_IDLE_SECONDS", "1")]);
    let work = process.work("work");
    work.write("attachments/noise.bin", noise(30_000_000, 13));
    work.change(&[("prompts/sre/after.md", &prompt("Large."))]);
    work.ok(&["push", "origin", "HEAD:main"]);
    let mut body = packet(&format!(
        "want {} side-band-64k ofs-delta agent=test\n",
        work.head()
    ));
    body.extend_from_slice(b"0000");
    body.extend(packet("done\n"));
    let head = head(
        "POST",
        "/library.git/git-upload-pack",
        &[("Content-Type", UPLOAD)],
        Some(body.len()),
    );
    for reads in [true, false] {
        let mut stream = TcpStream::connect(process.server().address).await.unwrap();
        stream.write_all(head.as_bytes()).await.unwrap();
        stream.write_all(&body).await.unwrap();
        soon("the pack to begin", stream.read_exact(&mut [0; 1000]))
            .await
            .unwrap();
        if reads {
            // gone: at once
            drop(stream);
            quiet(&process.bare()).await;
        } else {
            // there, and it reads no more: after the idle time
            quiet(&process.bare()).await;
            drop(stream);
        }
    }
    // a push that stalls ends as well
    let headers = [("Content-Type", RECEIVE)];
    let stalled = crate::support::http::head(
        "POST",
        "/library.git/git-receive-pack",
        &headers,
        Some(5000),
    );
    let mut stream = TcpStream::connect(process.server().address).await.unwrap();
    stream.write_all(stalled.as_bytes()).await.unwrap();
    stream.write_all(b"00").await.unwrap();
    soon("the end", stream.read_to_end(&mut Vec::new()))
        .await
        .ok();
    settled(&process.bare()).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_push_that_runs_at_sigterm_is_finished_first() {
    let process = Process::start(&[]);
    let work = process.work("work");
    work.publish(&[("prompts/sre/after.md", &prompt("Before."))]);
    let old = work.head();
    work.write("attachments/noise.bin", noise(600_000, 17));
    let new = work.change(&[("prompts/sre/after.md", &prompt("Finished."))]);
    let request = push_request(&work, &old, &new);
    let headers = [("Content-Type", RECEIVE)];
    let head = head(
        "POST",
        "/library.git/git-receive-pack",
        &headers,
        Some(request.len()),
    );
    let mut stream = TcpStream::connect(process.server().address).await.unwrap();
    stream.write_all(head.as_bytes()).await.unwrap();
    let (first, rest) = request.split_at(request.len() / 3);
    stream.write_all(first).await.unwrap();
    soon("the push to begin", async {
        while left_behind(&process.bare()).is_empty() {
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
    })
    .await;
    let bare = process.bare();
    let server = process.server.unwrap();
    let started = Instant::now();
    server.signal("-TERM");
    soon("it to take no more connections", async {
        while TcpStream::connect(server.address).await.is_ok() {
            tokio::time::sleep(Duration::from_millis(10)).await;
        }
    })
    .await;
    // slower than the grace that other requests get
    for piece in rest.chunks(rest.len() / 7 + 1) {
        tokio::time::sleep(Duration::from_secs(1)).await;
        stream.write_all(piece).await.unwrap();
    }
    let mut answer = Vec::new();
    soon("the answer", stream.read_to_end(&mut answer))
        .await
        .unwrap();
    let answer = String::from_utf8_lossy(&answer).into_owned();
    assert!(answer.contains("published 1 prompt: after"), "{answer}");
    assert!(answer.contains("ok refs/heads/main"), "{answer}");
    assert!(started.elapsed() > Duration::from_secs(6));
    let (code, log) = server.ended();
    assert_eq!(code, Some(0), "{log}");
    assert!(log.contains("waiting for 1 push to end"), "{log}");
    assert_eq!(main_of(&bare), new);
    settled(&bare).await;
}
