//! What a render costs: the fast lane, a worker, and the bare engine, on the same prompts in one run.
#![allow(
    missing_docs,
    clippy::expect_used,
    reason = "a bench that cannot go on has nothing to say"
)]

use criterion::{Criterion, criterion_group, criterion_main};
use cuebook::catalog::build::build_and_run;
use cuebook::catalog::{MemoryTree, Revision};
use cuebook::prompt::{BoundArguments, Limits, render};
use cuebook::workers::{Caller, Renderer, Settings};
use tera::{Context, Tera};

const ARGUMENTS: [(&str, &str); 3] = [
    ("ticketId", "INC-9942"),
    ("service", "payments"),
    ("severity", "CRITICAL"),
];

/// Three templates of 0.1, 2 and 20 KB.
fn bodies() -> [(&'static str, String); 3] {
    let line = "Look at the dashboards of {{ service }} first, then at what was deployed.\n";
    let head = "{{ severity }} incident {{ ticketId }}.{% if service %} It is {{ service | upper }}.{% endif %}\n";
    [
        ("100 bytes", head.to_owned()),
        ("2 KB", format!("{head}{}", line.repeat(26))),
        ("20 KB", format!("{head}{}", line.repeat(260))),
    ]
}

fn lanes(criterion: &mut Criterion) {
    let runtime = tokio::runtime::Builder::new_multi_thread()
        .enable_all()
        .worker_threads(1)
        .build()
        .expect("a runtime");
    let renderer = Renderer::new(Settings {
        executable: env!("CARGO_BIN_EXE_cuebook").into(),
        worker_renders: u32::MAX,
        ..Settings::default()
    });
    let caller = Caller::local();
    for (name, body) in bodies() {
        let text = format!(
            "---\ndescription: D\narguments:\n  - name: ticketId\n  - name: service\n  - name: severity\n---\n{body}"
        );
        let tree = MemoryTree::default().with("prompts/p.md", text);
        let limits = Limits::default();
        let built = build_and_run(&tree, Revision::WorkTree, &limits, None).expect("a build");
        let prompt = built.catalog.prompt("p").expect("a prompt");
        let bound = BoundArguments::bind(&prompt.arguments, ARGUMENTS, &limits).expect("bound");
        let resources = built.catalog.resolve(prompt, &bound).expect("resolved");
        let mut tera = Tera::default();
        tera.autoescape_on(Vec::<&'static str>::new());
        tera.add_raw_template("t", &body).expect("a template");
        let mut group = criterion.benchmark_group(name);
        group.bench_function("bare engine", |bencher| {
            bencher.iter(|| {
                let mut context = Context::new();
                for (name, value) in ARGUMENTS {
                    context.insert(name, value);
                }
                tera.render("t", &context).expect("a text")
            });
        });
        group.bench_function("fast lane", |bencher| {
            bencher.iter(|| render(prompt, &bound, &resources, &limits).expect("messages"));
        });
        group.bench_function("worker", |bencher| {
            bencher.iter(|| {
                runtime
                    .block_on(renderer.isolated(&caller, prompt, &bound, &resources, &limits))
                    .rendered
                    .expect("messages")
            });
        });
        group.finish();
    }
}

criterion_group!(benches, lanes);
criterion_main!(benches);
