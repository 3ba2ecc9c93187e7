//! Whatever the fast lane admits stays inside the bounds it is admitted with: no more output than `output_bound` says, no
//! more memory asked for, in all, and no more comparisons made than its steps and the work on its values account for.
//!
//! Comparisons are counted by the hooks that the compiler puts before each one of the program and of what it depends on;
//! no loop is without one. They are the same however busy the machine is.
#![no_main]

use std::alloc::{GlobalAlloc, Layout, System};
use std::sync::Arc;
use std::sync::LazyLock;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};

use cuebook::prompt::closure::{self, Partials};
use cuebook::prompt::{
    BoundArguments, Content, Lane, Limits, Prompt, RenderError, ResolvedResources, parse, render,
};
use libfuzzer_sys::fuzz_target;

struct Counting;

static ASKED: AtomicU64 = AtomicU64::new(0);
static COMPARED: AtomicU64 = AtomicU64::new(0);

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

/// Counts, then calls libFuzzer's own, which the linker knows by the other name.
macro_rules! counted {
    ($($wrap:ident $real:ident $kind:ty, $other:ty;)*) => { $(
        unsafe extern "C" {
            fn $real(a: $kind, b: $other);
        }

        #[unsafe(no_mangle)]
        unsafe extern "C" fn $wrap(a: $kind, b: $other) {
            COMPARED.fetch_add(1, Relaxed);
            unsafe { $real(a, b) }
        }
    )* };
}

counted! {
    __wrap___sanitizer_cov_trace_cmp1 __real___sanitizer_cov_trace_cmp1 u8, u8;
    __wrap___sanitizer_cov_trace_cmp2 __real___sanitizer_cov_trace_cmp2 u16, u16;
    __wrap___sanitizer_cov_trace_cmp4 __real___sanitizer_cov_trace_cmp4 u32, u32;
    __wrap___sanitizer_cov_trace_cmp8 __real___sanitizer_cov_trace_cmp8 u64, u64;
    __wrap___sanitizer_cov_trace_const_cmp1 __real___sanitizer_cov_trace_const_cmp1 u8, u8;
    __wrap___sanitizer_cov_trace_const_cmp2 __real___sanitizer_cov_trace_const_cmp2 u16, u16;
    __wrap___sanitizer_cov_trace_const_cmp4 __real___sanitizer_cov_trace_const_cmp4 u32, u32;
    __wrap___sanitizer_cov_trace_const_cmp8 __real___sanitizer_cov_trace_const_cmp8 u64, u64;
    __wrap___sanitizer_cov_trace_switch __real___sanitizer_cov_trace_switch u64, *mut u64;
}

const FRONT: &str = "---\ndescription: D\narguments:\n  - name: a\n  - name: b\n---\n{{ a }}{{ b }}";

/// Bytes asked for by one construct that is run, whatever the values: a frame, a span, an error.
const EACH_STEP: u64 = 8 * 1024;
/// What begins a render.
const BEGINNING: u64 = 256 * 1024;
/// Comparisons of one construct that is run.
const STEP_COMPARED: u64 = 4096;
/// Comparisons for each byte that is gone over.
const BYTE_COMPARED: u64 = 64;
/// Comparisons that begin a render.
const BEGINNING_COMPARED: u64 = 64 * 1024;

/// What values are made of: letters, what is escaped, what grows in upper case, what is forged, what is not shown.
const SEEDS: [&str; 6] = ["a\"<é\n", "ß", "&", "</untrusted-0>", "\0\u{1b}", " one, two;"];

fn link(body: &str, partials: &[(&str, &str)]) -> Option<Prompt> {
    let limits = Limits::default();
    let mut problems = Vec::new();
    let mut all = Partials::default();
    for (name, text) in partials {
        let path: Arc<str> = format!("partials/{name}").into();
        if let Some(partial) = parse::partial(&path, text.as_bytes(), &limits, &mut problems) {
            closure::compile_partial(&partial, &mut problems);
            all.insert_mut(partial.name.clone(), Arc::new(partial));
        }
    }
    let text = format!("{FRONT}{body}");
    let file = parse::prompt_file(&"prompts/p.md".into(), text.as_bytes(), &limits, &mut problems)?;
    let prompt = closure::link(&file, &all, &limits, &mut problems)?;
    (!problems.iter().any(|problem| problem.is_error())).then_some(prompt)
}

/// That the counter counts: a loop of a known length makes at least that many comparisons.
static COUNTS: LazyLock<()> = LazyLock::new(|| {
    let body = format!("{{% for x in [{}] %}}{{{{ x }}}}{{% endfor %}}", "1,".repeat(50));
    let prompt = link(&body, &[]).expect("a prompt");
    assert!(matches!(prompt.lane, Lane::Fast(_)), "{:?}", prompt.lane);
    let (bound, limits) = (BoundArguments::default(), Limits::default());
    let before = COMPARED.load(Relaxed);
    let _ = render(&prompt, &bound, &ResolvedResources::default(), &limits);
    assert!(COMPARED.load(Relaxed) - before >= 50, "comparisons are not counted");
});

fuzz_target!(|data: (u16, &str, &str, &str, &str)| {
    LazyLock::force(&COUNTS);
    let (size, own, body, one, two) = data;
    let partials = [("one.md", one), ("two.md", two)];
    let Some(prompt) = link(body, &partials) else { return };
    let Lane::Fast(fast) = prompt.lane else { return };
    let limits = Limits::default();
    let resources = ResolvedResources { nonce: "0".into(), ..ResolvedResources::default() };
    // compiled once, as a server has it
    let _ = render(&prompt, &BoundArguments::default(), &resources, &limits);
    let seed = if own.is_empty() { SEEDS[usize::from(size) % SEEDS.len()] } else { own };
    for part in [0, 1, 4, 16] {
        let value = seed.repeat(usize::from(size) * part / 16 / seed.len());
        let other = SEEDS[part % SEEDS.len()].repeat(value.len() / 20);
        let bytes = (value.len() + other.len()) as u64;
        if !prompt.lane.admits(value.len() + other.len()) {
            return;
        }
        let given = [("a", value.as_str()), ("b", other.as_str())];
        let bound = BoundArguments::bind(&prompt.arguments, given, &limits).expect("bound");
        let asked = ASKED.load(Relaxed);
        let compared = COMPARED.load(Relaxed);
        let rendered = render(&prompt, &bound, &resources, &limits);
        let compared = COMPARED.load(Relaxed) - compared;
        let asked = ASKED.load(Relaxed) - asked;
        let most_output = prompt.lane.output_bound(bytes).expect("it is fast");
        let work = fast.weight * (bytes + fast.longest_bytes) + fast.work_bytes + most_output;
        let shown = || format!("{bytes} bytes: {body:?} {one:?} {two:?}");
        // a vector that grows is asked for twice over; each touch of a value may copy it
        let most = BEGINNING + EACH_STEP * fast.steps + 4 * work;
        assert!(asked <= most, "{asked} bytes were asked for, {most} are accounted for: {}", shown());
        let most = BEGINNING_COMPARED + STEP_COMPARED * fast.steps + BYTE_COMPARED * work;
        assert!(compared <= most, "{compared} comparisons, {most} are accounted for: {}", shown());
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
                assert!(output as u64 <= most_output, "{output} bytes, {most_output} are accounted for: {}", shown());
            }
            Err(RenderError::OutputLimit { limit, .. }) => {
                assert!(most_output > limit as u64, "{most_output} bytes are accounted for: {}", shown());
            }
            Err(_) => {}
        }
    }
});
