//! The starter libraries: clean, complete, and what somebody on call or in review would use.

use cuebook::catalog::build::Built;
use cuebook::catalog::{MemoryTree, Revision};
use cuebook::prompt::Limits;
use cuebook::starter::{Language, files};

use crate::format::{messages, told};

fn starter(language: Language) -> Built {
    let tree = files(language)
        .into_iter()
        .fold(MemoryTree::default(), |tree, file| {
            tree.with(file.path, file.bytes)
        });
    cuebook::catalog::build::build_and_run(&tree, Revision::WorkTree, &Limits::default(), None)
        .unwrap()
}

const BOTH: [Language; 2] = [Language::En, Language::Ko];

/// All text of a render.
fn text(built: &Built, name: &str, arguments: &[(&str, &str)]) -> String {
    messages(built, name, arguments)
        .into_iter()
        .map(|(_, text)| text)
        .collect()
}

#[test]
fn there_is_no_problem_and_no_warning() {
    for language in BOTH {
        let built = starter(language);
        assert_eq!(told(&built), "", "{language:?}");
    }
}

#[test]
fn there_are_enough_prompts_and_each_is_whole() {
    for language in BOTH {
        let built = starter(language);
        for folder in ["sre", "code-review"] {
            let count = built.catalog.list(Some(folder)).len();
            assert!(count >= 8, "{language:?} {folder}: {count}");
        }
        assert!(built.catalog.title().is_some() && built.catalog.instructions().is_some());
        for prompt in built.catalog.list(None) {
            assert!(
                prompt.title.is_some() && prompt.description.is_some(),
                "{}",
                prompt.name
            );
            assert!(!prompt.tags.is_empty(), "{}", prompt.name);
            assert!(
                prompt.examples.iter().any(|e| !e.expect.is_empty()),
                "{language:?} {} has no example that expects something",
                prompt.name
            );
            for argument in &prompt.arguments {
                assert!(
                    argument.description.is_some(),
                    "{} {}",
                    prompt.name,
                    argument.name
                );
            }
            if language == Language::Ko {
                let hangul = prompt
                    .text()
                    .chars()
                    .filter(|c| ('가'..='힣').contains(c))
                    .count();
                assert!(hangul > 100, "{}: {hangul}", prompt.name);
            }
        }
        let completing = built
            .catalog
            .list(None)
            .iter()
            .flat_map(|p| &p.arguments)
            .filter(|a| !a.values.is_empty())
            .count();
        assert!(completing >= 15, "{completing}");
        assert!(
            built
                .catalog
                .list(None)
                .iter()
                .any(|p| !p.bindings.is_empty())
        );
        assert!(
            built
                .catalog
                .list(None)
                .iter()
                .any(|p| p.partials.len() >= 2)
        );
    }
}

/// Name, folder, arguments and whether they are required.
type Promise = (&'static str, &'static str, &'static [(&'static str, bool)]);

#[test]
fn the_prompts_that_were_promised_have_their_arguments() {
    let promised: &[Promise] = &[
        (
            "incident-triage",
            "sre",
            &[("ticketId", true), ("service", false), ("severity", false)],
        ),
        (
            "debug-incident",
            "sre",
            &[("service", false), ("symptom", false)],
        ),
        (
            "code-review",
            "code-review",
            &[("language", true), ("focus", false), ("severity", false)],
        ),
        (
            "explain-error",
            "code-review",
            &[("error_message", true), ("language", true)],
        ),
        ("write-tests", "code-review", &[("framework", false)]),
    ];
    for language in BOTH {
        let built = starter(language);
        for (name, folder, arguments) in promised {
            let prompt = built.catalog.prompt(name).unwrap();
            assert_eq!(&*prompt.folder, *folder);
            for (argument, required) in *arguments {
                let found = prompt.arguments.iter().find(|a| &*a.name == *argument);
                let found = found.unwrap_or_else(|| panic!("{name} has no {argument}"));
                if *required {
                    assert!(found.required, "{name} {argument}");
                }
            }
        }
        let review = built.catalog.prompt("code-review").unwrap();
        let focus = review
            .arguments
            .iter()
            .find(|a| &*a.name == "focus")
            .unwrap();
        for value in ["security", "performance", "readability", "general"] {
            assert!(focus.values.list.iter().any(|v| v == value), "{value}");
        }
    }
}

#[test]
fn both_languages_have_the_same_prompts_with_the_same_arguments() {
    let shape = |built: &Built| -> Vec<_> {
        built
            .catalog
            .list(None)
            .iter()
            .map(|p| {
                let arguments: Vec<_> = p
                    .arguments
                    .iter()
                    .map(|a| (a.name.to_string(), a.required, a.default.clone()))
                    .collect();
                (p.folder.to_string(), p.name.to_string(), arguments)
            })
            .collect()
    };
    assert_eq!(shape(&starter(Language::En)), shape(&starter(Language::Ko)));
}

#[test]
fn a_review_has_criteria_of_its_own_for_each_language() {
    for language in BOTH {
        let built = starter(language);
        let other = text(&built, "code-review", &[("language", "cobol")]);
        let mut seen = std::collections::BTreeSet::new();
        for name in ["rust", "python", "go", "typescript", "java", "c"] {
            let review = text(&built, "code-review", &[("language", name)]);
            let neutral = review.replace(name, "cobol");
            assert_ne!(neutral, other, "{language:?}: {name} has no criteria");
            assert!(
                review.len() > other.len() + 200,
                "{language:?}: {name} says hardly more than a language nobody knows"
            );
            // any case that people type
            let shouted = text(&built, "code-review", &[("language", &name.to_uppercase())]);
            assert!(
                shouted.len() > other.len() + 200,
                "{language:?}: {}",
                name.to_uppercase()
            );
            assert!(seen.insert(neutral), "{language:?}: {name} is like another");
        }
        let focused: std::collections::BTreeSet<String> =
            ["security", "performance", "readability", "general"]
                .iter()
                .map(|focus| {
                    text(
                        &built,
                        "code-review",
                        &[("language", "rust"), ("focus", focus)],
                    )
                    .replace(focus, "")
                })
                .collect();
        assert_eq!(
            focused.len(),
            4,
            "{language:?}: two kinds of focus ask for the same"
        );
    }
}

#[test]
fn a_triage_carries_the_runbook_of_its_service() {
    for language in BOTH {
        let built = starter(language);
        let with = messages(
            &built,
            "incident-triage",
            &[
                ("ticketId", "INC-9942"),
                ("service", "payments"),
                ("severity", "CRITICAL"),
            ],
        );
        assert!(
            with.iter()
                .any(|(_, text)| text.starts_with("[resource runbook://payments]")),
            "{with:?}"
        );
        assert!(with[0].1.contains("INC-9942") && with[0].1.contains("CRITICAL"));
        let without = messages(&built, "incident-triage", &[("ticketId", "INC-1")]);
        assert!(
            !without
                .iter()
                .any(|(_, text)| text.starts_with("[resource")),
            "{without:?}"
        );
    }
}
