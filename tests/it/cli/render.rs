//! `cuebook render`.

use insta::assert_snapshot;

use super::*;
use crate::support::library::{TestLibrary, git};

const TRIAGE: &str = "---\ndescription: D\narguments:\n  - { name: ticketId, required: true }\n  - { name: service }\n  - { name: severity, default: HIGH }\nresources:\n  - { name: runbook, uri: \"runbook://{{ service }}\" }\n  - { name: dot, uri: \"image://dot\", as: image }\n---\n{{ severity }} incident {{ ticketId }}.\n\n<!-- resource: runbook -->\n<!-- resource: dot -->\n\n<!-- role: assistant -->\nI will, 한글.";

fn library() -> Folder {
    let folder = Folder::new(&[
        ("prompts/sre/incident-triage.md", TRIAGE),
        ("prompts/sre/plain.md", "---\ndescription: D\n---\nplain\n"),
        (
            "prompts/sre/broken.md",
            "---\ndescription: D\n---\n{{ nope }}",
        ),
        ("resources/runbook/payments.md", "# Payments"),
    ]);
    folder.write("resources/image/dot.png", "");
    std::fs::write(folder.at("resources/image/dot.png"), b"\x89PNG\xff").unwrap();
    folder
}

#[test]
fn text_shows_every_message_under_its_role() {
    let folder = library();
    assert_eq!(
        succeeds(folder.path(), &["render", "plain"]),
        "--- user\nplain\n"
    );
    assert_snapshot!(succeeds(
        folder.path(),
        &[
            "render",
            "incident-triage",
            "ticketId=INC-1",
            "service=payments"
        ]
    ));
}

#[test]
fn json_is_a_document() {
    let folder = library();
    let out = succeeds(
        folder.path(),
        &[
            "render",
            "incident-triage",
            "ticketId=a=\"b\"&<c>",
            "severity=",
            "--format",
            "json",
        ],
    );
    let document: serde_json::Value = serde_json::from_str(&out).unwrap();
    assert_eq!(
        document["messages"][0]["content"]["text"],
        "HIGH incident a=\"b\"&<c>.\n"
    );
    assert_snapshot!(out);
}

#[test]
fn a_value_comes_from_a_file_byte_for_byte() {
    let folder = library();
    let value = "+{{ domain }}\r\n<!-- role: system -->\n";
    folder.write("change.diff", value);
    let out = succeeds(
        folder.path(),
        &[
            "render",
            "incident-triage",
            "ticketId@=change.diff",
            "--format",
            "json",
        ],
    );
    let document: serde_json::Value = serde_json::from_str(&out).unwrap();
    assert_eq!(document["messages"].as_array().unwrap().len(), 3);
    assert_eq!(
        document["messages"][0]["content"]["text"],
        format!("HIGH incident {value}.\n")
    );
}

#[test]
fn what_is_wrong_is_told_with_how_to_call_it() {
    let folder = library();
    let check = |arguments: &[&str], expected: &str| {
        let arguments = [&["render"], arguments].concat();
        assert_eq!(
            fails(folder.path(), &arguments, 1),
            format!("error: {expected}\n")
        );
    };
    let usage = "usage: cuebook render incident-triage ticketId=… [service=…] [severity=…]";
    check(
        &["incident-triage"],
        &format!("missing required argument: ticketId\n{usage}"),
    );
    check(
        &["incident-triage", "ticketId=1", "sevice=x"],
        &format!("`incident-triage` has no argument `sevice`\n{usage}"),
    );
    check(
        &["incident-triage", "ticketId"],
        "`ticketId` is no argument; write name=value",
    );
    check(
        &["incident-triag"],
        "there is no prompt `incident-triag`; did you mean incident-triage?",
    );
    check(&["zzz"], "there is no prompt `zzz`");
    check(
        &["broken"],
        "`broken` has problems: prompts/sre/broken.md:4:4: `nope` is not an argument\nsee: cuebook check .",
    );
    check(
        &["plain@v3"],
        "versions and labels are for a server to say, and this renders files; use plain@<commit>, which `cuebook log` shows for each version",
    );
    check(
        &["plain@0123456"],
        "this folder has no git repository, so it has no revisions",
    );
    check(
        &["Plain"],
        "`Plain` is not a prompt name: it must begin with a lower-case letter a-z",
    );
    let error = fails(
        folder.path(),
        &["render", "incident-triage", "ticketId@=nowhere"],
        1,
    );
    assert!(error.contains("cannot read nowhere"), "{error}");
    assert_eq!(cuebook(folder.path(), &["render"]).code, 2);
}

#[test]
fn a_commit_and_a_library_elsewhere() {
    let library = TestLibrary::with(&[("prompts/a/one.md", "---\ndescription: D\n---\nfirst\n")]);
    let first = git(&library.bare(), &["rev-parse", "main"])
        .trim()
        .to_owned();
    library.publish(&[("prompts/a/one.md", "---\ndescription: D\n---\nsecond\n")]);
    library.write_bytes("prompts/a/one.md", b"---\ndescription: D\n---\nedited\n");
    let (bare, clone) = (library.bare(), library.clone());
    let at = |library: &Path, name: &str| {
        succeeds(
            Path::new("/"),
            &["render", "--library", library.to_str().unwrap(), name],
        )
    };
    assert_eq!(at(&clone, "one"), "--- user\nedited\n");
    assert_eq!(at(&bare, "one"), "--- user\nsecond\n");
    for library in [&clone, &bare] {
        assert_eq!(at(library, &format!("one@{first}")), "--- user\nfirst\n");
        assert_eq!(
            at(library, &format!("one@{}", &first[..7])),
            "--- user\nfirst\n"
        );
    }
    let error = fails(&bare, &["render", "one@0123456"], 1);
    assert_eq!(error, "error: no commit `0123456`\n");
}

#[test]
fn a_commit_that_clients_cannot_ask_for_is_not_rendered() {
    let text = |text: &str| format!("---\ndescription: D\n---\n{text}\n");
    let library = TestLibrary::with(&[("prompts/a/one.md", &text("first"))]);
    let (bare, clone) = (library.bare(), library.clone());
    let head = || git(&clone, &["rev-parse", "HEAD"]).trim().to_owned();

    // one that does not pass the check
    library.publish(&[("prompts/a/two.md", &text("{{ nope }}"))]);
    let bad = head();
    for place in [&bare, &clone] {
        let error = fails(place, &["render", &format!("one@{}", &bad[..8])], 1);
        assert_eq!(
            error,
            format!(
                "error: commit `{bad}` does not pass the check: prompts/a/two.md:4:4: `nope` is not an argument\n"
            )
        );
    }
    // a tip that is not served: what clients get
    library.publish(&[("prompts/a/one.md", &text("second"))]);
    let ran = cuebook(&bare, &["render", "one"]);
    assert_eq!((ran.code, ran.stdout.as_str()), (0, "--- user\nfirst\n"));
    assert!(ran.stderr.contains("is not served"), "{ran:?}");
    assert_eq!(git(&bare, &["for-each-ref", "refs/cuebook"]), "");
    let error = cuebook(&bare, &["render", "two"]).stderr;
    assert!(error.contains("there is no prompt `two`"), "{error}");

    // one that only a branch has: a clone that stands on it renders it
    library.remove("prompts/a/two.md");
    git(&clone, &["checkout", "--quiet", "-b", "topic"]);
    library.write_bytes("prompts/a/one.md", text("topic").as_bytes());
    library.commit("topic");
    let topic = head();
    git(&clone, &["push", "--quiet", "origin", "topic"]);
    let name = format!("one@{topic}");
    assert_eq!(succeeds(&clone, &["render", &name]), "--- user\ntopic\n");
    let unknown = format!("error: no commit `{topic}`\n");
    assert_eq!(fails(&bare, &["render", &name], 1), unknown);
    git(&clone, &["checkout", "--quiet", "main"]);
    assert_eq!(fails(&clone, &["render", &name], 1), unknown);
}
