//! What the fast lane admits renders to the same bytes, or fails with the same words, in a worker. Workers are the
//! `cuebook` that `CUEBOOK_PROGRAM` names, or that of `cargo build`.
#![no_main]

use std::sync::{Arc, LazyLock};

use cuebook::prompt::closure::{self, Partials};
use cuebook::prompt::{BoundArguments, Content, Lane, Limits, Rendered, ResolvedResources, parse, render};
use cuebook::workers::{Caller, Renderer, Settings};
use libfuzzer_sys::fuzz_target;

const FRONT: &str = "---\ndescription: D\narguments:\n  - name: a\n  - name: b\n---\n{{ a }}{{ b }}";

static RENDERER: LazyLock<Renderer> = LazyLock::new(|| {
    let built = concat!(env!("CARGO_MANIFEST_DIR"), "/../target/debug/cuebook");
    Renderer::new(Settings {
        executable: std::env::var_os("CUEBOOK_PROGRAM").map_or_else(|| built.into(), Into::into),
        workers: 1,
        wall_ms: 60_000,
        queue_wait_ms: 60_000,
        ..Settings::default()
    })
});

static RUNTIME: LazyLock<tokio::runtime::Runtime> =
    LazyLock::new(|| tokio::runtime::Builder::new_current_thread().enable_time().build().expect("a runtime"));

fn texts(rendered: &Rendered) -> Vec<(&'static str, String)> {
    rendered
        .messages
        .iter()
        .map(|message| match &message.content {
            Content::Text(text) => (message.role.as_str(), text.clone()),
            Content::Resource { resource, .. } => (message.role.as_str(), resource.uri.to_string()),
        })
        .collect()
}

fuzz_target!(|data: (&str, &str, &str)| {
    let (a, b, body) = data;
    let path: Arc<str> = "prompts/p.md".into();
    let limits = Limits::default();
    let mut problems = Vec::new();
    let text = format!("{FRONT}{body}");
    let Some(file) = parse::prompt_file(&path, text.as_bytes(), &limits, &mut problems) else { return };
    let Some(prompt) = closure::link(&file, &Partials::default(), &limits, &mut problems) else { return };
    if !matches!(prompt.lane, Lane::Fast(_)) {
        return;
    }
    let Ok(bound) = BoundArguments::bind(&prompt.arguments, [("a", a), ("b", b)], &limits) else { return };
    let resources = ResolvedResources { nonce: "0123456789abcdef".into(), ..ResolvedResources::default() };
    let here = render(&prompt, &bound, &resources, &limits).map(|r| texts(&r));
    let there = RUNTIME.block_on(RENDERER.isolated(&Caller::local(), &prompt, &bound, &resources, &limits));
    assert_eq!(here, there.rendered.map(|r| texts(&r)), "{text}");
});
