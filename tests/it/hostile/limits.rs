//! Each limit of a render by its name and with both numbers, and what a caller may use of the workers.

use std::sync::Arc;

use cuebook::api::preview::Previews;
use cuebook::catalog::{Catalog, MemoryTree, Revision};
use cuebook::prompt::render::Stopped;
use cuebook::prompt::{BoundArguments, Limits, Prompt, RenderError, ResolvedResources};
use cuebook::workers::{Renderer, Settings};
use serde_json::json;

use super::{CALM, children, preview};
use crate::support::library::TestLibrary;
use crate::support::server::TestServer;
use crate::support::{soon, worker_settings};

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
    let rendering = renderer.render(prompt, &bound, &resources, &limits);
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
            .render(&calm, &bound, &resources, &Limits::default())
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
        .render(&prompt, &bound, &resources, &Limits::default())
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
            .render(&looped, &bound, &resources, &Limits::default())
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
        let rendered = renderer.render(&looped, &bound, &resources, &limits).await;
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
        .render(&fast, &bound, &resources, &Limits::default())
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
    }
    let (_, answer) = preview(&server, &json!({ "name": "triage", "text": text })).await;
    assert_eq!(answer["problems"][1]["code"], "arguments", "{answer}");
}
