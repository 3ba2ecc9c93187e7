//! The front matter and body of a prompt file: whatever bytes come in, they are read or refused with problems that
//! have a place in the file, a message on one line, and no panic.
#![no_main]

use std::sync::Arc;

use cuebook::prompt::closure::{self, Partials};
use cuebook::prompt::source::Source;
use cuebook::prompt::{Limits, Problem, parse};
use libfuzzer_sys::fuzz_target;

fuzz_target!(|data: &[u8]| {
    let path: Arc<str> = "prompts/sre/x.md".into();
    let limits = Limits::default();
    let mut problems = Vec::new();
    let file = parse::prompt_file(&path, data, &limits, &mut problems);
    let linked = file.as_ref().and_then(|file| closure::link(file, &Partials::default(), &limits, &mut problems));
    let refused = problems.iter().any(Problem::is_error);
    assert_eq!(linked.is_none(), refused, "refused with a reason, or linked: {problems:?}");
    let Ok(text) = std::str::from_utf8(data) else { return };
    let source = Source::new(&path, text);
    for problem in &problems {
        assert!(!problem.message.is_empty() && !problem.message.contains('\n'), "{problem:?}");
        assert!(problem.line == 0 || problem.column >= 1, "{problem:?}");
        let line = source.line(problem.line as usize);
        assert!(problem.column as usize <= line.chars().count() + 1, "{problem:?}");
    }
});
