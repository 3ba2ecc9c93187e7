//! The scanner over Tera's syntax, and all that rests on it: no text makes it panic, and what it tells lies in the text.
#![no_main]

use std::sync::Arc;

use cuebook::prompt::closure::{self, Partials};
use cuebook::prompt::{Limits, parse, scan};
use libfuzzer_sys::fuzz_target;

fuzz_target!(|text: &str| {
    let constructs = scan::scan(text);
    let mut at = 0;
    for construct in &constructs {
        assert!(construct.span.start >= at && construct.span.end <= text.len());
        at = construct.span.start;
        for token in &construct.tokens {
            assert!(!text[token.span.clone()].is_empty());
        }
        let _ = scan::variables(text, construct).count();
        let _ = scan::named(text, construct).count();
        let _ = scan::nesting(text, construct);
    }
    let _ = scan::bound_names(text, &constructs);
    let _ = scan::includes(text, &constructs).count();
    // the lane is decided on the same tokens
    let path: Arc<str> = "prompts/p.md".into();
    let limits = Limits::default();
    let mut problems = Vec::new();
    if let Some(file) = parse::prompt_file(&path, text.as_bytes(), &limits, &mut problems) {
        let _ = closure::link(&file, &Partials::default(), &limits, &mut problems);
    }
    let partial: Arc<str> = "partials/p.md".into();
    if let Some(partial) = parse::partial(&partial, text.as_bytes(), &limits, &mut problems) {
        closure::compile_partial(&partial, &mut problems);
    }
});
