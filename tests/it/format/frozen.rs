//! F6: a library written by an earlier release serves unchanged.
//!
//! `tests/fixtures/libraries/format-1` is frozen: it says everything that format 1 can say. When this snapshot changes,
//! somebody's library changes with it; a change that is meant goes into the next format instead.

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::path::Path;

use cuebook::prompt::{Limits, ResourceBody};
use cuebook::registry::source::WorkTree;

use super::*;

#[test]
fn f6_a_library_of_format_1_serves_unchanged() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/fixtures/libraries/format-1");
    let tree = WorkTree::open(&root).unwrap();
    let built = build_and_run(&tree, Revision::WorkTree, &Limits::default(), None).unwrap();
    assert_eq!(errors(&built), Vec::<&str>::new(), "{}", told(&built));
    insta::assert_snapshot!(everything(&built));
}

/// All that clients see of a library.
fn everything(built: &Built) -> String {
    let catalog = &built.catalog;
    let mut out = String::new();
    let w = &mut out;
    writeln!(w, "title {:?}", catalog.title()).unwrap();
    writeln!(w, "instructions {:?}", catalog.instructions()).unwrap();
    for family in catalog.families() {
        writeln!(
            w,
            "family {} {:?} {:?} {:?} {:?}",
            family.template, family.name, family.title, family.description, family.mime_type
        )
        .unwrap();
    }
    for problem in places(built) {
        writeln!(w, "problem {problem}").unwrap();
    }
    for resource in catalog.resources() {
        let kind = match resource.body {
            ResourceBody::Text(_) => "text",
            ResourceBody::Blob(_) => "blob",
        };
        writeln!(
            w,
            "resource {} {} {:?} {} {kind} {} bytes {}",
            resource.uri,
            resource.long_uri,
            resource.name,
            resource.mime_type,
            resource.bytes().len(),
            resource.sha256
        )
        .unwrap();
    }
    for prompt in catalog.list(None) {
        writeln!(w, "\n== {} in {:?}", prompt.name, prompt.folder).unwrap();
        writeln!(w, "title {:?}", prompt.title).unwrap();
        writeln!(w, "description {:?}", prompt.description).unwrap();
        writeln!(w, "tags {:?}", prompt.tags).unwrap();
        for argument in &prompt.arguments {
            writeln!(
                w,
                "argument {} required={} default={:?} {:?}",
                argument.name, argument.required, argument.default, argument.description
            )
            .unwrap();
            for service in ["", "payments"] {
                let context = BTreeMap::from([("service".to_owned(), service.to_owned())]);
                let completion = catalog.complete(prompt, &argument.name, "", &context, &[]);
                writeln!(w, "  with {service:?}: {:?}", completion.values).unwrap();
            }
        }
        let examples = prompt.examples.iter().map(|e| e.arguments.clone());
        let values = prompt
            .arguments
            .iter()
            .map(|a| (a.name.to_string(), format!("<{}>", a.name)))
            .collect();
        for arguments in examples.chain([values]) {
            writeln!(w, "-- {arguments:?}").unwrap();
            let arguments: Vec<_> = arguments
                .iter()
                .map(|(n, v)| (n.as_str(), v.as_str()))
                .collect();
            for (role, text) in messages(built, prompt.name.as_str(), &arguments) {
                // every character that matters is visible, and lines stay lines
                let text = text.escape_debug().to_string().replace("\\n", "\\n\n    ");
                writeln!(w, "{role}: {text}").unwrap();
            }
        }
    }
    out
}
