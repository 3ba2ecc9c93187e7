//! Smart HTTP at `/library.git`: what real clients send, and what none should.

use std::time::{Duration, Instant};

use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::TcpStream;

use super::*;
use crate::support::http::head;

#[tokio::test(flavor = "multi_thread")]
async fn every_protocol_version_clones_fetches_and_pushes() {
    let host = Host::small().await;
    let reader = host.work("reader");
    for version in ["0", "1", "2"] {
        let setting = format!("protocol.version={version}");
        let work = Work::clone(
            host.folder.path(),
            &host.url(),
            &format!("v{version}"),
            &["-c", &setting],
        );
        let mut command = git_command(&work.path, &["ls-remote"]);
        command.env("GIT_TRACE_PACKET", "1");
        let trace = run(command).text;
        assert_eq!(trace.contains("< version 1"), version == "1", "{trace}");
        assert_eq!(trace.contains("< version 2"), version == "2", "{trace}");

        let text = format!("by version {version}");
        let said = work.publish(&[("prompts/sre/after.md", &prompt(&text))]);
        assert!(said.text.contains("published 1 prompt"), "{}", said.text);
        assert_eq!(host.text("after").await, format!("{text}\n"));
        reader.ok(&["-c", &setting, "pull", "--quiet"]);
        assert_eq!(reader.head(), work.head());
        assert_eq!(work.ok(&["fetch"]).text, "", "there is nothing new");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn shallow_and_partial_clones() {
    let host = Host::small().await;
    let work = host.work("work");
    for n in 0..5 {
        work.publish(&[("prompts/sre/after.md", &prompt(&format!("Edit {n}.")))]);
    }
    for version in ["0", "2"] {
        let setting = format!("protocol.version={version}");
        let name = format!("shallow{version}");
        let shallow = Work::clone(
            host.folder.path(),
            &host.url(),
            &name,
            &["-c", &setting, "--depth", "1"],
        );
        let count = || {
            shallow
                .ok(&["rev-list", "--count", "HEAD"])
                .text
                .trim()
                .to_owned()
        };
        assert_eq!(count(), "1");
        shallow.ok(&["fetch", "--quiet", "--deepen", "2"]);
        assert_eq!(count(), "3");
        shallow.publish(&[(
            "prompts/sre/after.md",
            &prompt(&format!("From a shallow clone {version}.")),
        )]);
        assert_eq!(
            host.text("after").await,
            format!("From a shallow clone {version}.\n")
        );
        shallow.ok(&["fetch", "--quiet", "--unshallow"]);
        assert!(!shallow.path.join(".git/shallow").exists());

        let name = format!("partial{version}");
        let options = ["-c", &setting, "--filter=blob:none", "--no-checkout"];
        let partial = Work::clone(host.folder.path(), &host.url(), &name, &options);
        let missing = partial
            .ok(&["rev-list", "--objects", "--missing=print", "HEAD"])
            .text;
        assert!(missing.contains("\n?"), "nothing was left out: {missing}");
        partial.ok(&["checkout", "--quiet", "main"]);
        let text = std::fs::read_to_string(partial.path.join("prompts/sre/after.md")).unwrap();
        assert!(
            text.contains(&format!("From a shallow clone {version}.")),
            "{text}"
        );
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn compressed_requests_are_read() {
    let host = Host::small().await;
    let behind = host.work("behind");
    let ahead = host.work("ahead");
    // a client that has much to tell compresses what it tells
    for version in ["0", "2"] {
        for n in 0..40 {
            ahead.ok(&[
                "commit",
                "--quiet",
                "--allow-empty",
                "--message",
                &n.to_string(),
            ]);
            ahead.ok(&["branch", &format!("wip{version}-{n}")]);
        }
        ahead.ok(&[
            "push",
            "--quiet",
            "origin",
            "HEAD:main",
            "refs/heads/wip*:refs/heads/wip*",
        ]);
        let mut command = git_command(
            &behind.path,
            &[
                "-c",
                &format!("protocol.version={version}"),
                "fetch",
                "origin",
            ],
        );
        command
            .env("GIT_TRACE_CURL", "1")
            .env("GIT_TRACE_CURL_NO_DATA", "1");
        let ran = run(command);
        assert!(ran.ok, "{}", ran.text);
        let compressed = ran
            .text
            .to_ascii_lowercase()
            .contains("content-encoding: gzip");
        assert!(compressed, "git did not compress: {}", ran.text);
        assert_eq!(
            behind.ok(&["rev-parse", "origin/main"]).text.trim(),
            ahead.head()
        );
    }
    // a push by hand, which no git compresses
    let old = ahead.head();
    let new = ahead.change(&[("prompts/sre/after.md", &prompt("Compressed."))]);
    let body = gzipped(&push_request(&ahead, &old, &new));
    for encoding in ["gzip", "x-gzip"] {
        let headers = [("Content-Type", RECEIVE), ("Content-Encoding", encoding)];
        let reply = send(
            host.address,
            "POST",
            "/library.git/git-receive-pack",
            &headers,
            &body,
        )
        .await;
        let text = String::from_utf8_lossy(&reply.body).into_owned();
        assert_eq!(reply.status, 200, "{text}");
        assert_eq!(
            reply.header("content-type"),
            Some("application/x-git-receive-pack-result")
        );
        assert_eq!(reply.header("cache-control"), Some("no-cache"));
        let first = encoding == "gzip";
        assert_eq!(text.contains("ok refs/heads/main"), first, "{text}");
        assert_eq!(
            text.contains("another push moved main meanwhile"),
            !first,
            "{text}"
        );
    }
    assert_eq!(host.main(), new);
    assert_eq!(host.text("after").await, "Compressed.\n");
    settled(&host.bare()).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn chunked_pushes_and_those_that_ask_first_are_read() {
    let host = Host::small().await;
    let work = host.work("work");
    work.write("attachments/noise.bin", noise(400_000, 1));
    work.commit("large");
    work.ok(&["config", "http.postBuffer", "65536"]);
    let mut command = git_command(&work.path, &["push", "origin", "HEAD:main"]);
    command
        .env("GIT_TRACE_CURL", "1")
        .env("GIT_TRACE_CURL_NO_DATA", "1");
    let ran = run(command);
    assert!(ran.ok, "{}", ran.text);
    assert!(
        ran.text
            .to_ascii_lowercase()
            .contains("transfer-encoding: chunked"),
        "{}",
        ran.text
    );
    assert_eq!(host.main(), work.head());

    // git's probe before a large request
    let probe = send(
        host.address,
        "POST",
        "/library.git/git-receive-pack",
        &[("Content-Type", RECEIVE)],
        b"0000",
    )
    .await;
    assert_eq!((probe.status, probe.text()), (200, ""));

    // Expect: 100-continue, answered before the body is sent
    let old = work.head();
    let new = work.change(&[("prompts/sre/after.md", &prompt("Expected."))]);
    let body = push_request(&work, &old, &new);
    let headers = [
        ("Content-Type", RECEIVE),
        ("Expect", "100-continue"),
        ("Connection", "close"),
    ];
    let head = head(
        "POST",
        "/library.git/git-receive-pack",
        &headers,
        Some(body.len()),
    );
    let mut stream = TcpStream::connect(host.address).await.unwrap();
    stream.write_all(head.as_bytes()).await.unwrap();
    let mut first = [0; 25];
    soon("100 Continue", stream.read_exact(&mut first))
        .await
        .unwrap();
    assert_eq!(&first, b"HTTP/1.1 100 Continue\r\n\r\n");
    stream.write_all(&body).await.unwrap();
    let mut answer = Vec::new();
    soon("the answer", stream.read_to_end(&mut answer))
        .await
        .unwrap();
    let answer = String::from_utf8_lossy(&answer).into_owned();
    assert!(answer.contains("ok refs/heads/main"), "{answer}");
    assert_eq!(host.text("after").await, "Expected.\n");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_large_push_streams_through() {
    const SIZE: usize = 200 * 1024 * 1024;
    let process = Process::start(&[]);
    let work = process.work("work");
    work.publish(&[("prompts/sre/after.md", &prompt("Small."))]);
    let before = process.server().memory_kib("VmHWM");
    work.write("attachments/noise.bin", noise(SIZE, 7));
    for setting in [
        "core.compression=0",
        "core.looseCompression=0",
        "pack.compression=0",
        "core.bigFileThreshold=1m",
        "core.fsync=none",
    ] {
        let (key, value) = setting.split_once('=').unwrap();
        work.ok(&["config", key, value]);
    }
    work.commit("large");
    let said = work.ok(&["push", "origin", "HEAD:main"]);
    said.says("published; nothing that clients see has changed");
    assert_eq!(main_of(&process.bare()), work.head());
    let grown = process.server().memory_kib("VmHWM").saturating_sub(before);
    assert!(
        grown < 48 * 1024,
        "the server grew by {grown} KiB for a push of {} KiB",
        SIZE / 1024
    );
    settled(&process.bare()).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_push_over_the_limit_is_told_which_limit() {
    let host = Host::small_with(|config| config.git.max_push_bytes = 300_000).await;
    let work = host.work("work");
    let main = host.main();
    // over git's own limit for the pack, over ours for the request, and over both by far
    for size in [500_000, 1_500_000, 8_000_000] {
        work.write("attachments/noise.bin", noise(size, 3));
        work.commit("large");
        let said = work.push();
        assert!(!said.ok);
        let remote = said.remote().join("\n");
        assert!(
            remote.contains("at most 300000 bytes (git.max_push_bytes)")
                && remote.contains("split the push"),
            "{size}: {}",
            said.text
        );
        said.says_not("Everything up-to-date");
        said.says_not("RPC failed");
        assert_eq!(host.main(), main);
        work.back();
    }
    settled(&host.bare()).await;

    // the limit counts what a compressed request holds
    let old = work.head();
    let mut body = packet(&format!(
        "{old} {} refs/heads/main\0report-status side-band-64k",
        "1".repeat(40)
    ));
    body.extend_from_slice(b"0000PACK");
    body.resize(6_000_000, 0);
    let body = gzipped(&body);
    assert!(body.len() < 100_000);
    let headers = [("Content-Type", RECEIVE), ("Content-Encoding", "gzip")];
    let reply = send(
        host.address,
        "POST",
        "/library.git/git-receive-pack",
        &headers,
        &body,
    )
    .await;
    let text = String::from_utf8_lossy(&reply.body).into_owned();
    assert!(text.contains("git.max_push_bytes"), "{text}");
    settled(&host.bare()).await;
    // what fits goes in
    work.publish(&[("prompts/sre/after.md", &prompt("Small."))]);
}

#[tokio::test(flavor = "multi_thread")]
async fn what_no_git_sends_is_refused_in_words() {
    let host = Host::small().await;
    let post = async |path: &str, headers: &[(&str, &str)], body: &[u8]| {
        send(host.address, "POST", path, headers, body).await
    };
    for (path, headers, status, words) in [
        (
            "/library.git/git-receive-pack",
            vec![("Content-Type", "text/plain")],
            415,
            RECEIVE,
        ),
        ("/library.git/git-upload-pack", vec![], 415, UPLOAD),
        (
            "/library.git/git-upload-pack",
            vec![("Content-Type", RECEIVE)],
            415,
            UPLOAD,
        ),
        (
            "/library.git/git-upload-pack",
            vec![("Content-Type", UPLOAD), ("Content-Encoding", "br")],
            415,
            "gzip",
        ),
        (
            "/library.git/git-upload-archive",
            vec![("Content-Type", UPLOAD)],
            404,
            "nothing here",
        ),
    ] {
        let reply = post(path, &headers, b"0000").await;
        assert_eq!(reply.status, status, "{path} {headers:?}: {reply:?}");
        assert!(reply.text().contains(words), "{path}: {}", reply.text());
        assert_eq!(
            reply.header("content-type"),
            Some("text/plain; charset=utf-8")
        );
    }
    for (path, status, words) in [
        ("/library.git", 404, "git clone this address"),
        ("/library.git/", 404, "git clone this address"),
        ("/library.git/info/refs", 404, "dumb protocol"),
        ("/library.git/HEAD", 404, "dumb protocol"),
        ("/library.git/objects/info/packs", 404, "dumb protocol"),
        ("/library.git/config", 404, "nothing here"),
        ("/library.git/../cuebook.db", 404, ""),
        (
            "/library.git/info/refs?service=git-upload-archive",
            403,
            "no such git service",
        ),
        (
            "/library.git/info/refs?service=git-upload-pack%00",
            403,
            "no such git service",
        ),
        (
            "/library.git/info/refs?service=",
            403,
            "no such git service",
        ),
    ] {
        let reply = host.get(path, &[]).await;
        assert_eq!(reply.status, status, "{path}: {reply:?}");
        assert!(reply.text().contains(words), "{path}: {}", reply.text());
    }
    let reply = send(
        host.address,
        "PUT",
        "/library.git/git-receive-pack",
        &[],
        b"0000",
    )
    .await;
    assert_eq!(reply.status, 405);

    // what a dumb client's user reads
    let mut command = git_command(host.folder.path(), &["clone", &host.url(), "dumb"]);
    command.env("GIT_SMART_HTTP", "0");
    let dumb = run(command);
    assert!(!dumb.ok);
    dumb.says(
        "remote: there is nothing here; git's dumb protocol is not served, only the smart one",
    );

    // no gzip where gzip is promised; half of one
    let old = host.main();
    let request = {
        let mut body = packet(&format!(
            "{old} {} refs/heads/main\0report-status side-band-64k",
            "1".repeat(40)
        ));
        body.extend_from_slice(b"0000");
        body.extend_from_slice(&noise(5000, 1));
        gzipped(&body)
    };
    let before = host.main();
    for body in [&b"this is no gzip"[..], &request[..request.len() / 2], b""] {
        for (service, kind) in [("git-receive-pack", RECEIVE), ("git-upload-pack", UPLOAD)] {
            let headers = [("Content-Type", kind), ("Content-Encoding", "gzip")];
            let head = head(
                "POST",
                &format!("/library.git/{service}"),
                &headers,
                Some(body.len()),
            );
            let mut stream = TcpStream::connect(host.address).await.unwrap();
            stream.write_all(head.as_bytes()).await.unwrap();
            stream.write_all(body).await.unwrap();
            stream.shutdown().await.unwrap();
            // whatever is answered, it ends, and nothing has moved
            soon("the end", stream.read_to_end(&mut Vec::new()))
                .await
                .ok();
        }
    }
    quiet(&host.bare()).await;
    assert_eq!(host.main(), before);
    settled(&host.bare()).await;

    // Git-Protocol is an environment variable of git: odd characters never get there
    let refs = "/library.git/info/refs?service=git-upload-pack";
    let plain = host.get(refs, &[("Git-Protocol", "version=2")]).await;
    assert!(
        plain.text().starts_with("000eversion 2\n"),
        "{}",
        plain.text()
    );
    for odd in [
        "version=2;id",
        "version=2 x",
        "version=2$(id)",
        &format!("version=2:{}", "x".repeat(300)),
    ] {
        let reply = host.get(refs, &[("Git-Protocol", odd)]).await;
        assert!(
            reply
                .text()
                .starts_with("001e# service=git-upload-pack\n0000"),
            "{odd}: {}",
            reply.text()
        );
        assert!(reply.text().contains("refs/heads/main"), "{odd}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_full_queue_is_told_to_one_kind_and_the_others_are_served() {
    let host = Host::small_with(|config| {
        config.git.reads = 1;
        config.git.queue = 0;
    })
    .await;
    let work = host.work("work");
    // a fetch that does not go on holds the only place
    let head = head(
        "POST",
        "/library.git/git-upload-pack",
        &[("Content-Type", UPLOAD)],
        Some(1000),
    );
    let refs = "/library.git/info/refs?service=git-upload-pack";
    // the place of the clone is free when its process has been waited for
    soon("the place to be free", async {
        while host.get(refs, &[]).await.status != 200 {
            tokio::time::sleep(Duration::from_millis(10)).await;
        }
    })
    .await;
    let slow = soon("the place to be taken", async {
        loop {
            quiet(&host.bare()).await;
            let mut slow = TcpStream::connect(host.address).await.unwrap();
            slow.write_all(head.as_bytes()).await.unwrap();
            slow.write_all(b"0032want").await.unwrap();
            // refused where the last one has not quite ended; else its process runs. Nothing else asks meanwhile: it would
            // take the place itself
            tokio::select! {
                _ = slow.readable() => {}
                () = async {
                    while git_processes(&host.bare()).is_empty() {
                        tokio::time::sleep(Duration::from_millis(10)).await;
                    }
                } => break slow,
            }
        }
    })
    .await;
    let reply = host.get(refs, &[]).await;
    assert_eq!(
        (reply.status, reply.header("retry-after")),
        (503, Some("5"))
    );
    assert_eq!(
        reply.text(),
        "the server is busy with other clones and fetches; try again in 5 seconds\n"
    );
    let said = work.no(&["fetch"]);
    said.says("remote: the server is busy with other clones and fetches; try again in 5 seconds");
    said.says("503");
    // pushes and prompts have places of their own
    work.publish(&[("prompts/sre/after.md", &prompt("Pushed meanwhile."))]);
    assert_eq!(host.text("after").await, "Pushed meanwhile.\n");
    // and when it has gone away, its place is free
    drop(slow);
    soon("the place to be free", async {
        while host.get(refs, &[]).await.status != 200 {
            tokio::time::sleep(Duration::from_millis(10)).await;
        }
    })
    .await;
    work.ok(&["fetch"]);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_place_that_becomes_free_in_time_is_given_on() {
    let host = Host::small_with(|config| config.git.pushes = 1).await;
    let work = host.work("work");
    let main = host.main();
    let head = head(
        "POST",
        "/library.git/git-receive-pack",
        &[("Content-Type", RECEIVE)],
        Some(1000),
    );
    let mut slow = TcpStream::connect(host.address).await.unwrap();
    slow.write_all(head.as_bytes()).await.unwrap();
    slow.write_all(b"00").await.unwrap();
    soon("the slow push to begin", async {
        while git_processes(&host.bare()).is_empty() {
            tokio::time::sleep(Duration::from_millis(10)).await;
        }
    })
    .await;
    work.change(&[("prompts/sre/after.md", &prompt("It waited."))]);
    let mut waiting = work.start_push(&["origin", "HEAD:main"]);
    let started = Instant::now();
    while started.elapsed() < Duration::from_millis(300) {
        assert!(waiting.try_wait().unwrap().is_none(), "it did not wait");
        assert_eq!(host.main(), main);
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
    drop(slow);
    assert!(waiting.wait().unwrap().success());
    assert_eq!(host.text("after").await, "It waited.\n");
}

#[tokio::test(flavor = "multi_thread")]
async fn credentials_are_taken_and_never_logged() {
    const SECRET: &str = "cbk-3e9f1c0aa7";
    let process = Process::start(&[("CUEBOOK_LOG", "trace")]);
    let work = process.work("work");
    work.publish(&[("prompts/sre/after.md", &prompt("One."))]);
    let with_user = process
        .url()
        .replace("http://", &format!("http://me:{SECRET}@"));
    let cloned = Work::clone(process.folder.path(), &with_user, "password", &[]);
    cloned.publish(&[("prompts/sre/after.md", &prompt("Two."))]);
    let bearer = format!("http.extraHeader=Authorization: Bearer {SECRET}");
    let basic = format!("http.extraHeader=Authorization: Basic {SECRET}");
    for header in [&bearer, &basic] {
        work.ok(&["-c", header, "pull", "--quiet"]);
        work.change(&[("prompts/sre/after.md", &prompt(&header.len().to_string()))]);
        work.ok(&["-c", header, "push", "origin", "HEAD:main"]);
        cloned.ok(&["-c", header, "pull", "--quiet"]);
    }
    let (code, log) = process.server.unwrap().end("-TERM");
    assert_eq!(code, Some(0));
    assert!(log.contains("push ended"), "{log}");
    assert!(!log.contains(SECRET), "{log}");
}
