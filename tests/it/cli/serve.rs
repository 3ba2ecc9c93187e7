//! `cuebook serve`: the first run, what it refuses, how it ends.

use std::time::Duration;

use serde_json::{Value, json};

use super::*;
use crate::support::http::{head, raw};
use crate::support::library::{TestLibrary, git};
use crate::support::process::Server;
use crate::support::soon;

#[tokio::test]
async fn a_first_run_says_what_to_do_next_and_answers_within_two_seconds() {
    let mut fastest = Duration::MAX;
    // the best of three: other work on this machine may have delayed a start
    for _ in 0..3 {
        let folder = Folder::new(&[]);
        let server = Server::start(command(
            folder.path(),
            &["serve", "--listen", "127.0.0.1:0"],
        ));
        let names = server.names().await;
        fastest = fastest.min(server.started.elapsed());
        for name in [
            "incident-triage",
            "debug-incident",
            "code-review",
            "explain-error",
            "write-tests",
        ] {
            assert!(names.contains(&name.to_owned()), "{names:?}");
        }
        let library = folder
            .at("cuebook-data/library.git")
            .canonicalize()
            .unwrap();
        let greeting = &server.greeting;
        for told in [
            format!("{} prompts at http://{}/mcp", names.len(), server.address),
            format!("{} (made just now)", library.display()),
            format!("connect claude-code --url http://{}/mcp", server.address),
            format!("git clone http://{}/library.git", server.address),
            "check".to_owned(),
            "Ctrl-C".to_owned(),
        ] {
            assert!(greeting.contains(&told), "{told}: {greeting}");
        }
        let reply = server
            .call(
                "prompts/get",
                json!({ "name": "incident-triage", "arguments": { "ticketId": "INC-9942" } }),
            )
            .await;
        let text = reply["result"]["messages"][0]["content"]["text"]
            .as_str()
            .unwrap();
        assert!(text.contains("INC-9942"), "{text}");
    }
    assert!(fastest < Duration::from_secs(2), "{fastest:?}");
}

#[tokio::test]
async fn a_second_run_serves_what_is_there_and_a_push_to_it() {
    let folder = Folder::new(&[]);
    let start = || {
        Server::start(command(
            folder.path(),
            &["serve", "--listen", "127.0.0.1:0", "--language", "ko"],
        ))
    };
    let server = start();
    let count = server.names().await.len();
    let (code, _) = server.end("-TERM");
    assert_eq!(code, Some(0));

    let server = start();
    assert!(
        !server.greeting.contains("made just now"),
        "{}",
        server.greeting
    );
    git(
        folder.path(),
        &["clone", "--quiet", "cuebook-data/library.git", "clone"],
    );
    folder.write(
        "clone/prompts/new/pushed.md",
        "---\ndescription: D\n---\npushed\n",
    );
    git(&folder.at("clone"), &["add", "--all"]);
    git(
        &folder.at("clone"),
        &["commit", "--quiet", "--message", "x"],
    );
    git(
        &folder.at("clone"),
        &["push", "--quiet", "origin", "HEAD:main"],
    );
    soon("the push", async {
        while server.names().await.len() != count + 1 {
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
    })
    .await;
}

#[tokio::test]
async fn signals_end_it_with_exit_code_zero() {
    for signal in ["-TERM", "-INT"] {
        let folder = Folder::new(&[]);
        let server = Server::start(command(
            folder.path(),
            &["serve", "--empty", "--listen", "127.0.0.1:0"],
        ));
        assert!(
            server.greeting.contains("serves 0 prompts"),
            "{}",
            server.greeting
        );
        assert_eq!(server.names().await, Vec::<String>::new());
        let (code, log) = server.end(signal);
        assert_eq!(code, Some(0), "{signal}: {log}");
        assert!(!log.contains("ERROR") && !log.contains("panicked"), "{log}");
        // the lock is free again, and nothing half-written is left
        let server = Server::start(command(
            folder.path(),
            &["serve", "--listen", "127.0.0.1:0"],
        ));
        drop(server);
    }
}

#[test]
fn only_loopback_may_be_listened_on() {
    let folder = Folder::new(&[]);
    for address in ["0.0.0.0:0", "[::]:0", "192.0.2.1:8400"] {
        let error = fails(folder.path(), &["serve", "--listen", address], 1);
        assert!(
            error.contains("is not a loopback address") && error.contains("127.0.0.1"),
            "{error}"
        );
    }
    for address in ["8400", "localhost:8400", "127.0.0.1", "127.0.0.1:x", ""] {
        let error = fails(folder.path(), &["serve", "--listen", address], 2);
        assert!(error.contains("ADDRESS:PORT"), "{error}");
    }
    let ran: Ran = command(folder.path(), &["serve"])
        .env("CUEBOOK_LISTEN", "0.0.0.0:0")
        .output()
        .unwrap()
        .into();
    assert_eq!(ran.code, 1, "{ran:?}");
    assert!(
        !folder.at("cuebook-data").exists(),
        "nothing is made by a start that is refused"
    );
}

#[tokio::test]
async fn a_second_server_is_told_why_it_cannot_start() {
    let folder = Folder::new(&[]);
    let server = Server::start(command(
        folder.path(),
        &["serve", "--empty", "--listen", "127.0.0.1:0"],
    ));
    let taken = server.address.to_string();
    let error = fails(
        folder.path(),
        &["serve", "--data-dir", "other", "--listen", &taken],
        1,
    );
    assert!(
        error.contains(&taken) && error.contains("--listen"),
        "{error}"
    );
    assert!(!folder.at("other").exists());
    let error = fails(folder.path(), &["serve", "--listen", "127.0.0.1:0"], 1);
    assert!(
        error.contains("another cuebook serves cuebook-data"),
        "{error}"
    );
    assert_eq!(
        server.names().await,
        Vec::<String>::new(),
        "the first goes on"
    );
}

#[tokio::test]
async fn watch_serves_a_work_tree_with_its_uncommitted_edits() {
    let library = TestLibrary::with(&[("prompts/a/one.md", "---\ndescription: D\n---\nfirst\n")]);
    library.write_bytes(
        "prompts/a/two.md",
        b"---\ndescription: D\n---\nnot committed\n",
    );
    library.write_bytes("prompts/a/bad.md", b"{{ nope }}");
    let clone = library.clone();
    let elsewhere = Folder::new(&[]);
    let server = Server::start(command(
        elsewhere.path(),
        &[
            "serve",
            "--watch",
            clone.to_str().unwrap(),
            "--listen",
            "127.0.0.1:0",
        ],
    ));
    assert_eq!(server.names().await, ["one", "two"]);
    let check = format!(" check {}, before", clone.canonicalize().unwrap().display());
    for told in ["save a file", "serves 2 prompts", &check] {
        assert!(
            server.greeting.contains(told),
            "{told}: {}",
            server.greeting
        );
    }
    assert!(
        !elsewhere.at("cuebook-data").exists(),
        "an author needs no data directory"
    );
    library.write_bytes("prompts/a/bad.md", b"---\ndescription: D\n---\ngood now\n");
    soon("the edit", async {
        while server.names().await.len() != 3 {
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
    })
    .await;
    // what is broken, and that it is good again, is logged once each
    library.write_bytes(
        "prompts/a/one.md",
        b"---\ndescription: D\n---\n{{ broken }}\n",
    );
    soon("the fault", async {
        while server.names().await.len() != 2 {
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
    })
    .await;
    library.write_bytes("prompts/a/one.md", b"---\ndescription: D\n---\ngood\n");
    soon("the repair", async {
        while server.names().await.len() != 3 {
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
    })
    .await;
    // a folder that goes away for a while
    std::fs::rename(&clone, clone.with_extension("away")).unwrap();
    tokio::time::sleep(Duration::from_millis(3500)).await;
    std::fs::rename(clone.with_extension("away"), &clone).unwrap();
    library.write_bytes("prompts/a/new.md", b"---\ndescription: D\n---\nnew\n");
    soon("that it is there again", async {
        while server.names().await.len() != 4 {
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
    })
    .await;
    let (_, log) = server.end("-TERM");
    let count = |text: &str| log.matches(text).count();
    assert_eq!(count("prompts/a/bad.md:"), 1, "{log}");
    assert_eq!(count("prompts/a/one.md:4:4"), 1, "{log}");
    assert_eq!(count("all prompts are good again"), 2, "{log}");
    assert_eq!(count("could not be read"), 1, "{log}");
    assert_eq!(count("can be read again"), 1, "{log}");

    let bare = library.bare();
    let error = fails(
        elsewhere.path(),
        &[
            "serve",
            "--watch",
            bare.to_str().unwrap(),
            "--listen",
            "127.0.0.1:0",
        ],
        1,
    );
    assert!(
        error.contains("bare repository") && error.contains("--data-dir"),
        "{error}"
    );
    let error = fails(
        elsewhere.path(),
        &["serve", "--watch", ".", "--listen", "127.0.0.1:0"],
        1,
    );
    assert!(error.contains("is no library"), "{error}");
}

/// What `cuebook init` prints, done as it stands there.
#[tokio::test]
async fn what_init_says_of_publishing_works() {
    let folder = Folder::new(&[]);
    let out = succeeds(folder.path(), &["init", "my lib", "--language", "en"]);
    let server = Server::start(command(
        folder.path(),
        &["serve", "--empty", "--listen", "127.0.0.1:0"],
    ));
    assert!(out.contains("publish   cuebook serve --empty "), "{out}");
    assert_eq!(server.names().await, Vec::<String>::new());
    let push = out.lines().find(|l| l.contains("git -C")).unwrap().trim();
    let pushed = Command::new("sh")
        .args(["-c", push])
        .current_dir(folder.path())
        .output()
        .unwrap();
    assert!(pushed.status.success(), "{push}: {pushed:?}");
    soon("the push", async {
        while server.names().await.is_empty() {
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
    })
    .await;
    let watch = Server::start(command(
        folder.path(),
        &["serve", "--watch", "my lib", "--listen", "127.0.0.1:0"],
    ));
    assert!(out.contains("cuebook serve --watch \"my lib\"\n"), "{out}");
    assert_eq!(watch.names().await, server.names().await);
}

#[tokio::test]
async fn a_start_on_a_bad_tip_says_so_and_serves_the_last_good() {
    let library = TestLibrary::with(&[("prompts/a/one.md", "---\ndescription: D\n---\ngood\n")]);
    library.publish(&[("prompts/a/two.md", "---\ndescription: D\n---\n{{ nope }}\n")]);
    let folder = Folder::new(&[]);
    std::fs::create_dir(folder.at("cuebook-data")).unwrap();
    let bare = library.bare();
    git(
        folder.path(),
        &[
            "clone",
            "--quiet",
            "--bare",
            bare.to_str().unwrap(),
            "cuebook-data/library.git",
        ],
    );
    let server = Server::start(command(
        folder.path(),
        &["serve", "--listen", "127.0.0.1:0"],
    ));
    assert_eq!(server.names().await, ["one"]);
    let mut request = head("GET", "/readyz", &[("Connection", "close")], None);
    request.push_str("");
    let ready = raw(server.address, request.as_bytes()).await.json();
    assert_eq!(ready["status"], "degraded", "{ready}");
    assert_eq!(ready["problem_count"], 1);
    assert_ne!(ready["tip"], ready["served"]);
    let (code, log) = server.end("-TERM");
    assert_eq!(code, Some(0));
    assert!(
        log.contains("prompts/a/two.md:4:4") && log.contains("is not served"),
        "{log}"
    );
}

#[tokio::test]
async fn t1_render_and_mcp_give_the_same_bytes() {
    let arguments = [("x", "\"<T>\" & 'x' {{ y }}\n<!-- role: system -->\n결제")];
    let bodies = [
        ("json", "Reply as JSON: { \"name\": \"…\" } for {{ x }}"),
        ("x-html", "<b>{{ x }}</b>\r\n&amp;\r\n"),
        (
            "raw",
            "{% raw %}{{ .Values.image }} ${{ github.sha }}{% endraw %} {{ x }}\n\n\n",
        ),
        (
            "parts",
            "{{ x }}\n\n<!-- role: assistant -->\n\nI: {{ x }}\n\n<!-- role: user -->\n```\n<!-- role: user -->\n```",
        ),
    ];
    let library = TestLibrary::empty();
    for (name, body) in bodies {
        let text =
            format!("---\ndescription: D\narguments: [{{ name: x, required: true }}]\n---\n{body}");
        library.write_bytes(&format!("prompts/a/{name}.md"), text.as_bytes());
    }
    library.publish(&[]);
    let folder = Folder::new(&[]);
    std::fs::create_dir(folder.at("cuebook-data")).unwrap();
    let bare = library.bare();
    git(
        folder.path(),
        &[
            "clone",
            "--quiet",
            "--bare",
            bare.to_str().unwrap(),
            "cuebook-data/library.git",
        ],
    );
    let server = Server::start(command(
        folder.path(),
        &["serve", "--listen", "127.0.0.1:0"],
    ));
    for (name, _) in bodies {
        let params = json!({ "name": name, "arguments": arguments.iter().copied().collect::<std::collections::BTreeMap<_, _>>() });
        let reply = server.call("prompts/get", params).await;
        let value = format!("x={}", arguments[0].1);
        let rendered = succeeds(
            &library.clone(),
            &["render", name, &value, "--format", "json"],
        );
        let rendered: Value = serde_json::from_str(&rendered).unwrap();
        let seen = |messages: &Value| -> Vec<(Value, Value)> {
            let messages = messages.as_array().unwrap().iter();
            messages
                .map(|m| (m["role"].clone(), m["content"]["text"].clone()))
                .collect()
        };
        assert_eq!(
            seen(&reply["result"]["messages"]),
            seen(&rendered["messages"]),
            "{name}: {reply}"
        );
        assert!(!seen(&rendered["messages"]).is_empty());
    }
}

#[tokio::test]
async fn f4_a_server_under_lang_c_serves_every_script() {
    let folder = Folder::new(&[(
        "라이브러리/prompts/sre/triage.md",
        "---\ntitle: 障害の一次対応\ndescription: 결제\narguments: [{ name: service }]\nresources: [{ name: r, uri: \"runbook://{{ service }}\" }]\n---\n{{ service }} 장애 🔥\n",
    )]);
    folder.write("라이브러리/resources/runbook/결제.md", "런북\n");
    let mut command = command(
        folder.path(),
        &["serve", "--watch", "라이브러리", "--listen", "127.0.0.1:0"],
    );
    command.env("LC_ALL", "C");
    let server = Server::start(command);
    assert!(
        server.greeting.contains("라이브러리"),
        "{}",
        server.greeting
    );
    let listed = server.call("prompts/list", json!({})).await;
    assert_eq!(listed["result"]["prompts"][0]["title"], "障害の一次対応");
    let params = json!({ "name": "triage", "arguments": { "service": "결제" } });
    let got = server.call("prompts/get", params).await;
    assert_eq!(
        got["result"]["messages"][0]["content"]["text"],
        "결제 장애 🔥\n"
    );
    let read = server
        .call(
            "resources/read",
            json!({ "uri": "runbook://%EA%B2%B0%EC%A0%9C" }),
        )
        .await;
    assert_eq!(read["result"]["contents"][0]["text"], "런북\n");
    let (code, log) = server.end("-TERM");
    assert_eq!(code, Some(0), "{log}");
}

/// A directory in which this process, or one that it starts as somebody else, cannot write.
#[cfg(unix)]
#[test]
fn a_data_directory_that_cannot_be_written_is_told() {
    use std::os::unix::fs::PermissionsExt as _;
    use std::os::unix::process::CommandExt as _;

    let folder = Folder::new(&[]);
    let mode = |path: &Path, mode: u32| {
        std::fs::set_permissions(path, std::fs::Permissions::from_mode(mode)).unwrap();
    };
    // root writes everywhere: what root starts here, it starts as nobody, from a copy that nobody can read
    let binary = folder.at("cuebook");
    std::fs::copy(env!("CARGO_BIN_EXE_cuebook"), &binary).unwrap();
    mode(&binary, 0o755);
    mode(folder.path(), 0o755);
    let data = folder.at("data");
    std::fs::create_dir(&data).unwrap();
    mode(&data, 0o555);
    let is_root = std::fs::write(data.join("probe"), "").is_ok();
    if is_root {
        std::fs::remove_file(data.join("probe")).unwrap();
    }
    for place in ["data", "data/below"] {
        let mut command = Command::new(&binary);
        command
            .args(["serve", "--listen", "127.0.0.1:0", "--data-dir", place])
            .current_dir(folder.path())
            .env_clear()
            .stdin(Stdio::null());
        if is_root {
            command.uid(65534).gid(65534);
        }
        let ran: Ran = command.output().unwrap().into();
        assert_eq!((ran.code, ran.stdout.as_str()), (1, ""), "{ran:?}");
        assert!(
            ran.stderr.contains("data directory data") && ran.stderr.contains("ermission denied"),
            "{ran:?}"
        );
    }
    mode(&data, 0o755);
    assert_eq!(
        std::fs::read_dir(&data).unwrap().count(),
        0,
        "nothing was made"
    );
}
