//! Each limit of a render by its name and with both numbers, and what a caller may use of the workers.

use std::sync::{Arc, LazyLock};

use cuebook::api::preview::Previews;
use cuebook::catalog::{Catalog, MemoryTree, Revision};
use cuebook::prompt::render::Stopped;
use cuebook::prompt::{BoundArguments, Limits, Prompt, RenderError, ResolvedResources};
use cuebook::workers::{Caller, Renderer, Settings};
use serde_json::json;

use super::{CALM, children, preview};
use crate::support::library::TestLibrary;
use crate::support::server::TestServer;
use crate::support::{soon, worker_settings};

static LOCAL: LazyLock<Caller> = LazyLock::new(Caller::local);

/// A prompt that is not checked by rendering it.
fn prompt(body: &str) -> Arc<Prompt> {
    let text = format!("---\ndescription: D\n---\n{body}");
    let tree = MemoryTree::default().with("prompts/p.md", text);
    let none = &cuebook::catalog::examples::none;
    let built =
        cuebook::catalog::build::build(&tree, Revision::WorkTree, &Limits::default(), None, none)
            .unwrap();
    let catalog: &Catalog = &built.catalog;
    catalog
        .prompt("p")
        .unwrap_or_else(|| panic!("{:?}", built.problems))
        .clone()
}

async fn stopped(renderer: &Renderer, prompt: &Prompt) -> Stopped {
    let (bound, resources) = (BoundArguments::default(), ResolvedResources::default());
    let limits = Limits::default();
    let rendering = renderer.render(&LOCAL, prompt, &bound, &resources, &limits);
    match soon("a render", rendering).await {
        Err(RenderError::Stopped(stopped)) => stopped,
        other => panic!("{other:?}"),
    }
}

fn with(change: impl FnOnce(&mut Settings)) -> Renderer {
    let mut settings = worker_settings();
    change(&mut settings);
    Renderer::new(settings)
}

const ENDLESS: &str = "{% for i in range(end=100000) %}{% for j in range(end=100000) %}{% set x = j %}{% endfor %}{% endfor %}";

#[tokio::test(flavor = "multi_thread")]
async fn cpu_time() {
    let error = stopped(&with(|_| {}), &prompt(ENDLESS)).await;
    let Stopped::Cpu { used_ms, limit_ms } = error else {
        panic!("{error:?}");
    };
    assert!(used_ms >= 100 && limit_ms == 100, "{error}");
    assert!(
        error
            .to_string()
            .ends_with("at most 100 are given (worker_cpu_ms)")
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn time_by_the_clock() {
    let renderer = with(|settings| {
        settings.cpu_ms = 60_000;
        settings.wall_ms = 200;
        settings.queue_wait_ms = 15_000;
    });
    // starting a worker is no part of it
    let calm = prompt("{% for i in [1] | sort %}{{ i }}{% endfor %}");
    let (bound, resources) = (BoundArguments::default(), ResolvedResources::default());
    for _ in 0..2 {
        let _ = renderer
            .render(&LOCAL, &calm, &bound, &resources, &Limits::default())
            .await;
    }
    let error = stopped(&renderer, &prompt(ENDLESS)).await;
    assert!(
        matches!(error, Stopped::Wall { used_ms, limit_ms: 200 } if used_ms >= 200),
        "{error:?}"
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn memory() {
    let renderer = with(|settings| {
        settings.cpu_ms = 15_000;
        settings.memory_bytes = 32 * 1024 * 1024;
    });
    for body in [
        "{% set_global s = 'aaaaaaaaaa' %}{% for i in range(end=40) %}{% set_global s = s ~ s %}{% endfor %}{{ s | length }}",
        "{% set_global a = [1,2] %}{% for i in range(end=40) %}{% set_global a = [...a, ...a] %}{% endfor %}{{ a | length }}",
        "{% set x %}{% for i in range(end=100000) %}{{ 'x' | indent(width=1000, first=true) }}{% endfor %}{% endset %}{{ x | length }}",
    ] {
        let error = stopped(&renderer, &prompt(body)).await;
        let Stopped::Memory { wanted, limit } = error else {
            panic!("{body}: {error:?}");
        };
        assert!(wanted > limit && limit == 32 * 1024 * 1024, "{error}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_stack_that_overflows_ends_the_worker_alone() {
    let renderer = with(|settings| {
        settings.cpu_ms = 15_000;
        settings.memory_bytes = 1024 * 1024 * 1024;
    });
    let deep = "{% set_global a = [1] %}{% for i in range(end=100000) %}{% set_global a = [a] %}{% endfor %}{{ a | json }}";
    let error = stopped(&renderer, &prompt(deep)).await;
    assert!(
        matches!(&error, Stopped::Crashed(how) if how.starts_with("signal ")),
        "{error:?}"
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn output() {
    let renderer = with(|settings| settings.cpu_ms = 15_000);
    let prompt = prompt("{% for i in range(end=100000) %}0123456789012345678901234{% endfor %}");
    let (bound, resources) = (BoundArguments::default(), ResolvedResources::default());
    let error = renderer
        .render(&LOCAL, &prompt, &bound, &resources, &Limits::default())
        .await
        .unwrap_err();
    assert_eq!(
        error.to_string(),
        "the rendered text is 1048600 bytes or more; at most 1048576 are given (output_bytes)"
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn a_queue_has_an_end_and_a_patience() {
    let renderer = Arc::new(with(|settings| {
        settings.workers = 1;
        settings.cpu_ms = 300;
        settings.queue_length = 2;
        settings.queue_wait_ms = 50;
    }));
    let endless = prompt(ENDLESS);
    let mut running = Vec::new();
    for _ in 0..8 {
        let (renderer, endless) = (renderer.clone(), endless.clone());
        running.push(tokio::spawn(
            async move { stopped(&renderer, &endless).await },
        ));
    }
    let mut ends = Vec::new();
    for one in running {
        ends.push(one.await.unwrap());
    }
    let full = ends.iter().find(|e| {
        matches!(
            e,
            Stopped::QueueFull {
                waiting: 2,
                limit: 2
            }
        )
    });
    assert!(full.is_some(), "{ends:?}");
    let waited = |e: &&Stopped| matches!(e, Stopped::QueueWait { waited_ms, limit_ms: 50 } if *waited_ms >= 50);
    assert!(ends.iter().any(|e| waited(&e)), "{ends:?}");
    assert!(
        ends.iter().any(|e| matches!(e, Stopped::Cpu { .. })),
        "{ends:?}"
    );
}

fn other(n: u8) -> Caller {
    Caller::address([127, 0, 0, n].into())
}

/// A render for a caller that goes on by itself.
fn begun(
    renderer: &Arc<Renderer>,
    caller: &Caller,
    prompt: &Arc<Prompt>,
) -> tokio::task::JoinHandle<Result<(), RenderError>> {
    let (renderer, caller, prompt) = (renderer.clone(), caller.clone(), prompt.clone());
    tokio::spawn(async move {
        let (bound, resources) = (BoundArguments::default(), ResolvedResources::default());
        let limits = Limits::default();
        let rendered = renderer.render(&caller, &prompt, &bound, &resources, &limits);
        rendered.await.map(drop)
    })
}

const QUICK: &str = "{% for i in [2, 1] | sort %}{{ i }}{% endfor %}";

#[tokio::test(flavor = "multi_thread")]
async fn whoever_waits_longer_than_they_may_is_told_when_that_is() {
    let renderer = Arc::new(with(|settings| {
        settings.workers = 1;
        settings.cpu_ms = 2000;
        settings.queue_wait_ms = 100;
    }));
    // a worker is started, and is busy
    soon("a render", begun(&renderer, &LOCAL, &prompt(QUICK)))
        .await
        .unwrap()
        .unwrap();
    let busy = begun(&renderer, &other(2), &prompt(ENDLESS));
    let quick = prompt(QUICK);
    let (mut waited, mut ran) = (None, 0);
    while waited.is_none() {
        match begun(&renderer, &LOCAL, &quick).await.unwrap() {
            Err(RenderError::Stopped(Stopped::QueueWait {
                waited_ms,
                limit_ms,
            })) => {
                waited = Some((waited_ms, limit_ms));
            }
            // the other had not begun
            Ok(()) => ran += 1,
            Err(error) => panic!("{error}"),
        }
        assert!(ran < 1000);
    }
    let (waited_ms, limit_ms) = waited.unwrap();
    assert!(
        (100..2000).contains(&waited_ms) && limit_ms == 100,
        "{waited_ms}"
    );
    assert!(!busy.is_finished(), "it was told when the worker was free");
    busy.abort();
}

#[tokio::test(flavor = "multi_thread")]
async fn whoever_goes_away_leaves_the_queue() {
    let renderer = Arc::new(with(|settings| {
        settings.workers = 1;
        settings.cpu_ms = 4000;
        settings.queue_length = 2;
    }));
    let (quick, endless) = (prompt(QUICK), prompt(ENDLESS));
    let busy = begun(&renderer, &LOCAL, &endless);
    let full = |error: &RenderError| {
        matches!(
            error,
            RenderError::Stopped(Stopped::QueueFull {
                waiting: 2,
                limit: 2
            })
        )
    };
    let mut waiting = Vec::new();
    // until there is no place: one of them may have been given to the worker before the other
    soon("the queue to be full", async {
        loop {
            let mut one = begun(&renderer, &LOCAL, &quick);
            match tokio::time::timeout(std::time::Duration::from_millis(200), &mut one).await {
                Err(_) => waiting.push(one),
                Ok(Err(_)) => panic!("a task ended"),
                Ok(Ok(Ok(()))) => {}
                Ok(Ok(Err(error))) if full(&error) => break,
                Ok(Ok(Err(error))) => panic!("{error}"),
            }
        }
    })
    .await;
    assert_eq!(waiting.len(), 2);
    assert!(!busy.is_finished());
    for one in waiting {
        one.abort();
        assert!(one.await.unwrap_err().is_cancelled());
    }
    // there is room again, though no worker was free since
    let mut next = begun(&renderer, &LOCAL, &quick);
    let early = tokio::time::timeout(std::time::Duration::from_millis(300), &mut next).await;
    assert!(early.is_err(), "{early:?}");
    assert!(!busy.is_finished());
    // and another caller, when the queue is full of one's, takes the place of the last
    let mut own: Vec<_> = (0..2).map(|_| begun(&renderer, &LOCAL, &quick)).collect();
    soon("the queue to be full", async {
        while own.iter().all(|one| !one.is_finished()) {
            tokio::time::sleep(std::time::Duration::from_millis(5)).await;
        }
    })
    .await;
    own.retain(|one| !one.is_finished());
    assert_eq!(own.len(), 1);
    let stranger = begun(&renderer, &other(2), &quick);
    let displaced = soon("a place", own.remove(0)).await.unwrap();
    assert!(full(&displaced.unwrap_err()));
    assert!(!busy.is_finished() && !stranger.is_finished());
    busy.abort();
}

#[tokio::test(flavor = "multi_thread")]
async fn what_one_caller_costs_is_not_felt_by_another() {
    let renderer = Arc::new(with(|settings| {
        settings.workers = 1;
        settings.caller_cpu_ms_per_minute = 1_000_000;
    }));
    let (quick, endless) = (prompt(QUICK), prompt(ENDLESS));
    let mut costly: Vec<_> = (0..20)
        .map(|_| begun(&renderer, &other(2), &endless))
        .collect();
    // one has ended, so that all the others are in line
    soon("a render", async {
        while costly.iter().all(|one| !one.is_finished()) {
            tokio::time::sleep(std::time::Duration::from_millis(2)).await;
        }
    })
    .await;
    soon("the other's", begun(&renderer, &LOCAL, &quick))
        .await
        .unwrap()
        .unwrap();
    costly.retain(|one| !one.is_finished());
    assert!(costly.len() >= 10, "{} were left", costly.len());
    for one in costly {
        one.abort();
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_caller_has_a_budget_and_is_charged_when_it_hangs_up() {
    let renderer = Arc::new(with(|settings| settings.caller_cpu_ms_per_minute = 150));
    let (quick, endless) = (prompt(QUICK), prompt(ENDLESS));
    let mut refused = None;
    soon("the budget to be spent", async {
        while refused.is_none() {
            let mut one = begun(&renderer, &other(2), &endless);
            // gone as soon as it can be: what runs is charged all the same
            match tokio::time::timeout(std::time::Duration::from_millis(20), &mut one).await {
                Err(_) => one.abort(),
                Ok(ended) => match ended.unwrap().unwrap_err() {
                    RenderError::Stopped(stopped @ Stopped::Budget { .. }) => {
                        refused = Some(stopped);
                    }
                    RenderError::Stopped(Stopped::Cpu { .. }) => {}
                    error => panic!("{error}"),
                },
            }
        }
    })
    .await;
    let refused = refused.unwrap();
    let Stopped::Budget {
        used_ms,
        limit_ms,
        wait_seconds,
    } = refused
    else {
        panic!("{refused}");
    };
    assert!(
        used_ms >= 150 && limit_ms == 150 && wait_seconds >= 1,
        "{refused}"
    );
    assert!(
        refused
            .to_string()
            .contains("at most 150 are given in a minute (caller_cpu_ms_per_minute)")
    );
    // nobody else is held back, and the fast lane holds nobody back
    begun(&renderer, &LOCAL, &quick).await.unwrap().unwrap();
    begun(&renderer, &other(2), &prompt("{{ 'a' | upper }}"))
        .await
        .unwrap()
        .unwrap();
}

/// A program that says the hello of a worker and then does something else.
#[cfg(target_os = "linux")]
fn impostor(folder: &std::path::Path, then: &str) -> Arc<Renderer> {
    use std::os::unix::fs::PermissionsExt as _;
    let path = folder.join(format!("worker-{}", then.len()));
    let hello = r#"{"environment":0,"refused":true,"no_new_privileges":true,"seccomp":true}"#;
    let script = format!(
        "#!/bin/sh\nprintf 'h\\{:03o}\\000\\000\\000%s' '{hello}'\n{then}\nread -r rest\n",
        hello.len()
    );
    std::fs::write(&path, script).unwrap();
    std::fs::set_permissions(&path, std::fs::Permissions::from_mode(0o755)).unwrap();
    Arc::new(with(|settings| {
        settings.executable = path;
        settings.workers = 1;
        settings.wall_ms = 10_000;
    }))
}

#[cfg(target_os = "linux")]
#[tokio::test(flavor = "multi_thread")]
async fn what_a_worker_says_is_not_taken_on_trust() {
    let folder = tempfile::tempdir().unwrap();
    let quick = prompt(QUICK);
    let before = super::peak_bytes();
    for (then, why) in [
        // four gigabytes of texts; of a refusal; a hello again
        (r"printf 't\377\377\377\377'", ""),
        (r"printf 'r\377\377\377\177'", ""),
        (r"printf 'h\000\000\000\000'  ", ""),
        // two texts where one was asked for, and one that is longer than it is
        (
            r"printf 't\024\000\000\000\000\000\000\000\000\000\000\000\002\000\000\000\000\000\000\000\000\000\000\000'",
            "another number of texts",
        ),
        (
            r"printf 't\021\000\000\000\000\000\000\000\000\000\000\000\001\000\000\000\377\000\000\000x'",
            "not as long as it says",
        ),
        // more memory, and more CPU time, than numbers can be added to
        (
            r"printf 'm\010\000\000\000\377\377\377\377\377\377\377\377'",
            "bytes of memory",
        ),
        (
            r"printf 'c\010\000\000\000\377\377\377\377\377\377\377\377' ",
            "CPU time",
        ),
    ] {
        let renderer = impostor(folder.path(), then);
        let ended = soon("an answer", begun(&renderer, &LOCAL, &quick))
            .await
            .unwrap();
        let error = ended.unwrap_err().to_string();
        assert!(error.contains(why), "{then}: {error}");
    }
    assert!(super::peak_bytes() - before < 64 * 1024 * 1024);
}

#[cfg(target_os = "linux")]
#[tokio::test(flavor = "multi_thread")]
async fn the_kernel_counts_what_a_worker_uses_and_not_the_worker() {
    let folder = tempfile::tempdir().unwrap();
    // when a job comes it counts for a while, and then says that it took no time at all
    let renderer = impostor(
        folder.path(),
        r"/usr/bin/head -c 5 >/dev/null; i=0; while [ $i -lt 400000 ]; do i=$((i+1)); done; printf 't\021\000\000\000\000\000\000\000\000\000\000\000\001\000\000\000\001\000\000\000x'",
    );
    let (bound, resources) = (BoundArguments::default(), ResolvedResources::default());
    let quick = prompt(QUICK);
    let done = renderer
        .isolated(&LOCAL, &quick, &bound, &resources, &Limits::default())
        .await;
    assert!(done.rendered.is_ok(), "{done:?}");
    assert!(done.cpu.as_millis() > 20, "{done:?}");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_worker_is_replaced_after_so_many_renders_and_none_is_left() {
    let renderer = with(|settings| {
        settings.workers = 1;
        settings.worker_renders = 3;
    });
    let looped = prompt("{% for i in [2, 1] | sort %}{{ i }}{% endfor %}");
    let (bound, resources) = (BoundArguments::default(), ResolvedResources::default());
    let mut seen = std::collections::BTreeSet::new();
    for _ in 0..9 {
        let rendered = renderer
            .render(&LOCAL, &looped, &bound, &resources, &Limits::default())
            .await;
        assert!(rendered.is_ok(), "{rendered:?}");
        seen.extend(children());
    }
    if cfg!(target_os = "linux") {
        assert_eq!(seen.len(), 3, "{seen:?}");
    }
    drop(renderer);
    assert_eq!(children(), Vec::<u32>::new());
}

#[cfg(target_os = "linux")]
#[tokio::test(flavor = "multi_thread")]
async fn an_idle_worker_that_was_killed_is_replaced_and_nobody_notices() {
    let renderer = with(|settings| settings.workers = 1);
    let looped = prompt("{% for i in [2, 1] | sort %}{{ i }}{% endfor %}");
    let (bound, resources) = (BoundArguments::default(), ResolvedResources::default());
    let limits = Limits::default();
    for _ in 0..3 {
        let rendered = renderer
            .render(&LOCAL, &looped, &bound, &resources, &limits)
            .await;
        assert!(rendered.is_ok(), "{rendered:?}");
        let worker = children()[0].to_string();
        let killed = std::process::Command::new("kill")
            .args(["-9", &worker])
            .status()
            .unwrap();
        assert!(killed.success());
        let stat = format!("/proc/{worker}/stat");
        // ended, whether or not anybody has asked how
        while std::fs::read_to_string(&stat).is_ok_and(|stat| !stat.contains(") Z ")) {
            tokio::time::sleep(std::time::Duration::from_millis(5)).await;
        }
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn who_hangs_up_pays_and_who_sends_slowly_keeps_nobody_out() {
    use tokio::io::AsyncWriteExt as _;
    let library = TestLibrary::with(&[("prompts/calm.md", CALM)]);
    let server = TestServer::with_previews(&library, Previews::new(95, 100_000)).await;
    let text = |body: &str| json!({ "name": "x", "text": format!("---\ndescription: D\n---\n{body}"), "arguments": {} });
    let send = async |body: &str, whole: usize| {
        let mut stream = tokio::net::TcpStream::connect(server.address)
            .await
            .unwrap();
        let head = format!(
            "POST /api/v1/preview HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\nContent-Length: {}\r\n\r\n",
            body.len()
        );
        stream.write_all(head.as_bytes()).await.unwrap();
        stream.write_all(&body.as_bytes()[..whole]).await.unwrap();
        stream
    };
    let calm = text("calm");
    // half of a request is no preview
    let half = calm.to_string();
    let _slow = send(&half, half.len() / 2).await;
    assert_eq!(preview(&server, &calm).await.0, 200);
    // one that costs, and is seen to run; then its client goes away
    let endless = text(ENDLESS).to_string();
    let detail = async || {
        let (status, answer) = preview(&server, &calm).await;
        let detail = answer["detail"].as_str().unwrap_or_default().to_owned();
        (status, detail)
    };
    let mut runs = false;
    for _ in 0..10 {
        let _client = send(&endless, endless.len()).await;
        let (status, said) = detail().await;
        if said.contains("at most 95 ms") {
            // it ran between the two, and is charged
            return;
        }
        assert!(status == 200 || said.contains("running"), "{said}");
        runs = status == 429;
        if runs {
            break;
        }
    }
    assert!(runs, "it was never seen to run");
    // nobody begins beside it, and when it has ended its time is charged: nothing is left
    soon("the charge", async {
        loop {
            let (status, said) = detail().await;
            assert_eq!(status, 429, "it was not charged");
            if said.contains("at most 95 ms") {
                break;
            }
            tokio::time::sleep(std::time::Duration::from_millis(5)).await;
        }
    })
    .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn no_worker_is_started_while_all_prompts_are_fast() {
    let renderer = with(|_| {});
    let fast = prompt("{{ 'a' | upper }}{% for i in [1, 2] %}{{ i }}{% endfor %}");
    let (bound, resources) = (BoundArguments::default(), ResolvedResources::default());
    let rendered = renderer
        .render(&LOCAL, &fast, &bound, &resources, &Limits::default())
        .await;
    assert!(rendered.is_ok(), "{rendered:?}");
    assert_eq!(children(), Vec::<u32>::new());
}

#[tokio::test(flavor = "multi_thread")]
async fn a_program_that_is_no_worker_is_an_error() {
    let renderer = with(|settings| settings.executable = "/bin/false".into());
    let looped = prompt("{% for i in [2, 1] | sort %}{{ i }}{% endfor %}");
    let error = stopped(&renderer, &looped).await;
    assert!(matches!(error, Stopped::Unavailable(_)), "{error:?}");
    assert!(renderer.prove().unwrap_err().contains("--unsafe-rendering"));
}

#[tokio::test(flavor = "multi_thread")]
async fn previews_of_one_address_are_one_at_a_time_and_on_a_budget() {
    let library = TestLibrary::with(&[("prompts/calm.md", CALM)]);
    let server = TestServer::with_previews(&library, Previews::new(50, 100_000)).await;
    let ask = |body: &str| json!({ "name": "x", "text": format!("---\ndescription: D\n---\n{body}"), "arguments": {} });
    let (status, answer) = preview(&server, &ask(ENDLESS)).await;
    assert_eq!(status, 200, "{answer}");
    assert_eq!(answer["problems"][0]["code"], "render-limit", "{answer}");
    // 100 ms of 50 are used, so that nothing is left for a minute
    let body = ask("calm").to_string();
    let reply = crate::support::http::send(
        server.address,
        "POST",
        "/api/v1/preview",
        &[("Content-Type", "application/json")],
        body.as_bytes(),
    )
    .await;
    assert_eq!(reply.status, 429, "{}", reply.text());
    assert_eq!(
        reply.header("content-type"),
        Some("application/problem+json")
    );
    let wait: u64 = reply.header("retry-after").unwrap().parse().unwrap();
    assert!((1..=600).contains(&wait), "{wait}");
    let detail = reply.json()["detail"].as_str().unwrap().to_owned();
    assert!(detail.contains("at most 50 ms"), "{detail}");

    let server = TestServer::start(&library).await;
    let (first, second) = (ask(ENDLESS), ask(ENDLESS));
    let mut ends = Vec::new();
    // whichever is first, one of many at once has to wait
    for _ in 0..20 {
        let (a, b) = tokio::join!(preview(&server, &first), preview(&server, &second));
        ends.extend([a.0, b.0]);
        if ends.contains(&429) {
            break;
        }
    }
    assert!(ends.contains(&429) && ends.contains(&200), "{ends:?}");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_preview_shows_problems_messages_and_the_lane_together() {
    let library = TestLibrary::with(&[
        ("prompts/calm.md", CALM),
        ("partials/rubric.md", "Rubric.\n"),
        ("resources/runbook/payments.md", "Look at the pool.\n"),
    ]);
    let server = TestServer::start(&library).await;
    let text = "---\narguments:\n  - name: service\n    required: true\nresources:\n  - name: runbook\n    uri: \"runbook://{{ service }}\"\n    required: true\n---\n{% for s in service | split(pat=\",\") %}{{ s }}\n{% endfor %}{% include \"rubric.md\" %}\n<!-- resource: runbook -->\n";
    let ask = json!({ "name": "triage", "text": text, "arguments": { "service": "payments" },
        "files": { "partials/rubric.md": "Better rubric.\n" } });
    let (status, answer) = preview(&server, &ask).await;
    assert_eq!(status, 200, "{answer}");
    assert_eq!(answer["problems"][0]["code"], "no-description", "{answer}");
    let messages = answer["messages"].as_array().unwrap();
    assert_eq!(
        messages[0]["content"]["text"], "payments\nBetter rubric.\n\n",
        "{answer}"
    );
    assert_eq!(
        messages[1]["content"]["uri"], "runbook://payments",
        "{answer}"
    );
    assert_eq!(answer["lane"]["lane"], "worker");
    assert_eq!(answer["lane"]["reason"]["line"], 10, "{answer}");
    // a commit, and one that is none
    let commit = server.registry.snapshot().status.served.clone().unwrap();
    let mut at = ask.clone();
    at["revision"] = json!(commit);
    at["files"] = json!({});
    let (_, answer) = preview(&server, &at).await;
    assert_eq!(
        answer["messages"][0]["content"]["text"], "payments\nRubric.\n\n",
        "{answer}"
    );
    at["revision"] = json!("0123456789012345678901234567890123456789");
    assert_eq!(preview(&server, &at).await.0, 404);
    // what is wrong with the request itself
    for (ask, status) in [
        (json!({ "text": "x" }), 422),
        (json!({ "path": "resources/x.md", "text": "x" }), 422),
        (
            json!({ "name": "x", "text": "x", "files": { "../a": "" } }),
            422,
        ),
        (json!({ "name": "x" }), 400),
        (json!({ "name": "x", "text": "y".repeat(3_000_000) }), 413),
    ] {
        let (found, answer) = preview(&server, &ask).await;
        assert_eq!(
            (found, answer["status"].as_u64()),
            (status, Some(status.into())),
            "{answer}"
        );
        if status == 413 {
            let said = format!(
                "the request is {} bytes; at most 2097152 are read (rendering.preview_bytes)",
                ask.to_string().len()
            );
            assert_eq!(answer["detail"], json!(said));
        }
    }
    let (_, answer) = preview(&server, &json!({ "name": "triage", "text": text })).await;
    assert_eq!(answer["problems"][1]["code"], "arguments", "{answer}");
}

/// The errors of a check of one prompt with one argument, with limits.
fn errors_of(body: &str, limits: &Limits) -> Vec<String> {
    let text = format!("---\ndescription: D\narguments:\n  - name: a\n---\n{body}");
    let tree = MemoryTree::default().with("prompts/p.md", text);
    let renderer = crate::support::renderer();
    let built =
        cuebook::registry::check(&tree, Revision::WorkTree, limits, None, &renderer).unwrap();
    let errors = built.problems.iter().filter(|p| p.is_error());
    errors.map(cuebook::prompt::Problem::one_line).collect()
}

#[test]
fn an_argument_that_is_written_often_is_published_and_one_that_multiplies_is_not() {
    let limits = Limits::default();
    let none = Vec::<String>::new();
    // 64 KiB, 20 times, are more than a megabyte: in the fast lane, and in a worker
    let often = "{{ a }}\n".repeat(20);
    assert_eq!(errors_of(&often, &limits), none);
    let slow = format!("{often}{{% for i in [2, 1] | sort %}}{{{{ i }}}}{{% endfor %}}");
    assert_eq!(errors_of(&slow, &limits), none);
    // whoever calls it with so much is told
    let text = format!("---\ndescription: D\narguments:\n  - name: a\n---\n{often}");
    let built = cuebook::catalog::build::build_and_run(
        &MemoryTree::default().with("prompts/p.md", text),
        Revision::WorkTree,
        &limits,
        None,
    )
    .unwrap();
    let prompt = built.catalog.prompt("p").unwrap();
    let much = "x".repeat(65_536);
    let bound = BoundArguments::bind(&prompt.arguments, [("a", much.as_str())], &limits).unwrap();
    let error = cuebook::prompt::render(prompt, &bound, &ResolvedResources::default(), &limits)
        .unwrap_err();
    assert!(
        error
            .to_string()
            .contains("at most 1048576 are given (output_bytes)")
    );
    // each line with the whole: four times the argument is sixteen times the output
    let squared = "{% for i in a | split(pat=\"\n\") %}{{ a }}{% endfor %}";
    let errors = errors_of(squared, &limits);
    assert!(
        errors.len() == 1 && errors[0].contains("(output_bytes)"),
        "{errors:?}"
    );
}

#[test]
fn limits_of_a_template_are_settings_and_are_told_with_both_numbers() {
    let arms = |n: usize| format!("{{% if a %}}{}{{% endif %}}", "{% elif a %}x".repeat(n));
    let said = |body: &str, limits: &Limits| errors_of(body, limits).join("\n");
    assert!(
        said(&arms(300), &Limits::default())
            .contains("300 elif arms in one file; at most 256 are read (elif_count)")
    );
    let limits = Limits {
        elif_count: 2,
        ..Limits::default()
    };
    assert_eq!(said(&arms(2), &limits), "");
    assert!(said(&arms(3), &limits).contains("3 elif arms in one file; at most 2 are read"));
    // the lane is decided by the settings
    let lane = |limits: &Limits| {
        let text = "---\ndescription: D\n---\n{% for i in [1, 2, 3] %}{{ i }}{% endfor %}";
        let tree = MemoryTree::default().with("prompts/p.md", text);
        let none = &cuebook::catalog::examples::none;
        let built =
            cuebook::catalog::build::build(&tree, Revision::WorkTree, limits, None, none).unwrap();
        built.catalog.prompt("p").unwrap().lane.clone()
    };
    assert_eq!(lane(&Limits::default()).as_str(), "fast");
    let cuebook::prompt::Lane::Worker(reason) = lane(&Limits {
        fast_lane_steps: 4,
        ..Limits::default()
    }) else {
        panic!("it is fast");
    };
    assert!(
        reason
            .why
            .contains("at most 4 are run in the fast lane (fast_lane_steps)"),
        "{reason}"
    );
    let cuebook::prompt::Lane::Worker(reason) = lane(&Limits {
        fast_lane_work_bytes: 10,
        ..Limits::default()
    }) else {
        panic!("it is fast");
    };
    assert!(
        reason
            .why
            .contains("at most 10 in the fast lane (fast_lane_work_bytes)"),
        "{reason}"
    );
}
