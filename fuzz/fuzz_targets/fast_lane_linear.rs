//! Whatever the fast lane admits stays inside the bounds it is admitted with: no more output than `output_bound` says,
//! and no more memory asked for, in all, than its steps and the work on its values account for.
#![no_main]

use std::alloc::{GlobalAlloc, Layout, System};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};

use cuebook::prompt::closure::{self, Partials};
use cuebook::prompt::{BoundArguments, Content, Lane, Limits, RenderError, ResolvedResources, parse, render};
use libfuzzer_sys::fuzz_target;

struct Counting;

static ASKED: AtomicU64 = AtomicU64::new(0);

unsafe impl GlobalAlloc for Counting {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        ASKED.fetch_add(layout.size() as u64, Relaxed);
        unsafe { System.alloc(layout) }
    }

    unsafe fn dealloc(&self, pointer: *mut u8, layout: Layout) {
        unsafe { System.dealloc(pointer, layout) }
    }
}

#[global_allocator]
static ALLOCATOR: Counting = Counting;

const FRONT: &str = "---\ndescription: D\narguments:\n  - name: a\n  - name: b\n---\n{{ a }}{{ b }}";

/// Bytes asked for by one construct that is run, whatever the values: a frame, a span, an error.
const EACH_STEP: u64 = 8 * 1024;
/// What begins a render.
const BEGINNING: u64 = 256 * 1024;

fuzz_target!(|data: (u16, &str)| {
    let (size, body) = data;
    let path: Arc<str> = "prompts/p.md".into();
    let limits = Limits::default();
    let mut problems = Vec::new();
    let text = format!("{FRONT}{body}");
    let Some(file) = parse::prompt_file(&path, text.as_bytes(), &limits, &mut problems) else { return };
    let Some(prompt) = closure::link(&file, &Partials::default(), &limits, &mut problems) else { return };
    let Lane::Fast(fast) = prompt.lane else { return };
    let value = "a\"<é\n".repeat(usize::from(size) / 6);
    if !prompt.lane.admits(2 * value.len()) {
        return;
    }
    let given = [("a", value.as_str()), ("b", value.as_str())];
    let bound = BoundArguments::bind(&prompt.arguments, given, &limits).expect("bound");
    let resources = ResolvedResources::default();
    let before = ASKED.load(Relaxed);
    let rendered = render(&prompt, &bound, &resources, &limits);
    let asked = ASKED.load(Relaxed) - before;
    let bytes = 2 * value.len() as u64;
    let most_output = prompt.lane.output_bound(bytes).expect("it is fast");
    // a vector that grows is asked for twice over; each touch of a value may copy it
    let most = BEGINNING + EACH_STEP * fast.steps + 4 * (fast.weight * bytes + most_output);
    assert!(asked <= most, "{asked} bytes were asked for, {most} are accounted for: {text}");
    match rendered {
        Ok(rendered) => {
            let output: usize = rendered
                .messages
                .iter()
                .map(|message| match &message.content {
                    Content::Text(text) => text.len(),
                    Content::Resource { .. } => 0,
                })
                .sum();
            assert!(output as u64 <= most_output, "{output} bytes, {most_output} are accounted for: {text}");
        }
        Err(RenderError::OutputLimit { limit, .. }) => {
            assert!(most_output > limit as u64, "{most_output} bytes are accounted for: {text}");
        }
        Err(_) => {}
    }
});
