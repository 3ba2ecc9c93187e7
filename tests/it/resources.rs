//! Resources: what a URI can reach, its two forms, types, bindings.

use std::collections::BTreeMap;

use cuebook::catalog::{Lookup, MemoryTree};
use cuebook::prompt::{BoundArguments, Limits, ResourceBody};
use proptest::prelude::*;
use unicode_normalization::UnicodeNormalization;

use crate::format::{build, built, errors, messages, places, told, try_messages};

/// A library with something to steal beside the runbooks.
fn library() -> cuebook::catalog::Built {
    built(&[
        (
            "prompts/t/optional.md",
            "---\ndescription: D\narguments: [{ name: service }]\nresources: [{ name: runbook, uri: \"runbook://{{ service }}\" }]\n---\n{% if resources.runbook.found %}found {{ resources.runbook.uri }}: {{ resources.runbook.text }}{% else %}none{% endif %}",
        ),
        (
            "prompts/t/required.md",
            "---\ndescription: D\narguments: [{ name: service }]\nresources: [{ name: runbook, uri: \"runbook://team/{{ service }}\", required: true }]\n---\nB",
        ),
        (
            "prompts/t/any.md",
            "---\ndescription: D\narguments: [{ name: uri }]\nresources: [{ name: it, uri: \"{{ uri }}\" }]\n---\nB {{ resources.it.found }}",
        ),
        ("partials/secret.md", "PARTIAL"),
        ("values/secret.txt", "VALUE"),
        ("cuebook.toml", "title = \"SECRET\""),
        ("resources/runbook/payments.md", "PAYMENTS"),
        ("resources/runbook/team/search.md", "SEARCH"),
        ("resources/runbook/a b.md", "BLANK"),
        ("resources/runbook/결제.md", "KOREAN"),
        ("resources/secret/payments.md", "SECRET"),
        ("resources/secret/keys.md", "SECRET"),
    ])
}

/// Ways to say `../secret/keys`, an absolute path, or something else that is no name.
const ESCAPES: &[&str] = &[
    "../secret/keys",
    "../secret/keys.md",
    "../../cuebook.toml",
    "../../partials/secret.md",
    "../../prompts/t/optional.md",
    "../payments",
    "payments/../../secret/keys",
    "payments/../payments",
    "team/../../secret/keys",
    "team/../payments",
    "./payments",
    "team/./search",
    "..",
    ".",
    "",
    "/",
    "//secret/keys",
    "/secret/keys",
    "/etc/passwd",
    "/payments",
    "payments/",
    "team//search",
    "%2e%2e/secret/keys",
    "%2e%2e%2fsecret%2fkeys",
    "%2E%2E%2Fsecret%2Fkeys",
    "..%2fsecret%2fkeys",
    ".%2e/secret/keys",
    "%252e%252e/secret/keys",
    "%2fetc%2fpasswd",
    "%2e",
    "payments%00",
    "payments\0",
    "\0",
    "payments%0a",
    "payments\n",
    "payments\t",
    "payments%7f",
    "..\\secret\\keys",
    "..%5csecret%5ckeys",
    "\\\\server\\share",
    "C:\\Windows\\win.ini",
    "．．/secret/keys",
    "．．／secret／keys",
    "‥/secret/keys",
    "…/secret/keys",
    "..∕secret∕keys",
    "..⁄secret⁄keys",
    "..／secret／keys",
    "․․/secret/keys",
    "%c0%ae%c0%ae/secret/keys",
    "%ff",
    "%uff0e%uff0e/secret/keys",
    "secret://keys",
    "@secret://keys",
    "payments@secret",
    "file:///etc/passwd",
    "http://127.0.0.1/",
    "payments?x=../secret/keys",
    "payments#../secret/keys",
    "payments;../secret/keys",
    "~/.ssh/id_rsa",
    "$HOME/x",
    "{{ service }}",
    "*",
    "paymen?s",
    "ⓟayments",
    "ｐａｙｍｅｎｔｓ",
    "pаyments",
    "payments\u{200b}",
    "\u{202e}stnemyap",
];

#[test]
fn an_argument_never_leads_out_of_its_folder() {
    let built = library();
    for escape in ESCAPES {
        assert_eq!(
            messages(&built, "optional", &[("service", escape)]),
            [("user", "none".into())],
            "{escape:?}"
        );
        for form in [format!("runbook://{escape}"), format!("RUNBOOK://{escape}")] {
            let messages = messages(&built, "any", &[("uri", &form)]);
            assert_eq!(messages, [("user", "B false".into())], "{form:?}");
        }
        let error = try_messages(&built, "required", &[("service", escape)]).unwrap_err();
        if escape.is_empty() {
            assert_eq!(
                error,
                "the required resource `runbook` needs a value for service"
            );
        } else {
            let named: String = format!("runbook://team/{escape}");
            assert!(
                error.starts_with("resource `runbook://team/") && error.contains(&named),
                "{escape:?}: {error}"
            );
            let near = error.split_once("near it").map_or("", |(_, near)| near);
            assert!(!near.contains("secret"), "{escape:?}: {error}");
        }
    }
}

#[test]
fn a_read_never_leads_out_of_the_library() {
    let built = library();
    for escape in ESCAPES {
        for uri in [
            format!("runbook://{escape}"),
            format!("runbook:{escape}"),
            format!("://{escape}"),
            format!("file://{escape}"),
            format!("resources://{escape}"),
            (*escape).to_owned(),
        ] {
            if uri == "secret://keys" {
                continue;
            }
            let lookup = built.catalog.resource(&uri);
            assert!(!matches!(lookup, Lookup::Found(_)), "{uri:?}: {lookup:?}");
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::default() })]

    /// What is found is the file whose name the value is, whatever the value.
    #[test]
    fn a_value_finds_the_file_of_its_name_or_nothing(
        pieces in prop::collection::vec(
            prop_oneof![
                prop::sample::select(vec![
                    "..", ".", "/", "//", "%2e", "%2F", "%00", "\\", "payments", "PAYMENTS", "team", "search", "secret",
                    "keys", ".md", "a b", "a%20b", "결제", "%EA%B2%B0", "%EC%A0%9C", "\u{1100}\u{1167}\u{11af}", "제",
                    "：", "://", "?", "#", "%", " ",
                ]).prop_map(str::to_owned),
                any::<char>().prop_map(String::from),
            ],
            0..6,
        )
    ) {
        let value = pieces.concat();
        let built = library();
        let prompt = built.catalog.prompt("optional").unwrap();
        let bound = BoundArguments::bind(&prompt.arguments, [("service", value.as_str())], &Limits::default()).unwrap();
        let resolved = built.catalog.resolve(prompt, &bound).unwrap();
        if let Some(resource) = &resolved.entries[0].resource {
            let decoded = percent_encoding::percent_decode_str(&value).decode_utf8().unwrap();
            let name: String = decoded.nfc().collect();
            let name = name.strip_suffix(".md").unwrap_or(&name);
            let path = resource.path.strip_prefix("resources/runbook/").unwrap().strip_suffix(".md").unwrap();
            // the first part of a name has no case
            prop_assert_eq!(name.to_lowercase(), path);
        }
    }
}

/// The listed URIs and the codes of the problems of files at these paths.
fn listed(paths: &[&str]) -> (Vec<String>, Vec<&'static str>) {
    let files: Vec<_> = paths.iter().map(|p| (*p, *p)).collect();
    let built = built(&files);
    let uris = built
        .catalog
        .resources()
        .iter()
        .map(|r| r.uri.to_string())
        .collect();
    (uris, errors(&built))
}

#[test]
fn the_short_form_is_listed_where_it_is_unique_and_both_are_read() {
    let check = |files: &[(&str, &str, &[&str])]| {
        let paths: Vec<_> = files.iter().map(|(path, ..)| (*path, *path)).collect();
        let built = built(&paths);
        assert_eq!(errors(&built), Vec::<&str>::new(), "{}", told(&built));
        for (path, uri, others) in files {
            for spelling in [&[*uri], *others].concat() {
                let Lookup::Found(found) = built.catalog.resource(spelling) else {
                    panic!("{spelling} is not there");
                };
                assert_eq!((&*found.path, &*found.uri), (*path, *uri), "{spelling}");
            }
        }
        let count: usize = built.catalog.resources().len();
        assert_eq!(count, files.len(), "each is listed once");
    };
    check(&[(
        "resources/runbook/payments.md",
        "runbook://payments",
        &[
            "runbook://payments.md",
            "runbook://Payments",
            "RUNBOOK://PAYMENTS.MD",
            "runbook://pay%6Dents",
        ],
    )]);
    check(&[
        ("resources/runbook/a.md", "runbook://a.md", &[]),
        ("resources/runbook/a.txt", "runbook://a.txt", &[]),
        ("resources/style/a.md", "style://a", &["style://a.md"]),
    ]);
    check(&[
        ("resources/runbook/b", "runbook://b", &[]),
        ("resources/runbook/b.md", "runbook://b.md", &[]),
    ]);
    check(&[
        (
            "resources/runbook/v1.2.md",
            "runbook://v1.2",
            &["runbook://v1.2.md"],
        ),
        ("resources/runbook/v1", "runbook://v1", &[]),
        (
            "resources/runbook/x.tar.gz",
            "runbook://x.tar",
            &["runbook://x.tar.gz"],
        ),
    ]);
    check(&[
        (
            "resources/runbook/team/Pay.md",
            "runbook://team/Pay",
            &["runbook://TEAM/Pay.md"],
        ),
        (
            "resources/runbook/team/pay.md",
            "runbook://team/pay",
            &["runbook://Team/pay"],
        ),
        (
            "resources/runbook/team.md",
            "runbook://team",
            &["runbook://team.md"],
        ),
    ]);
    check(&[(
        "resources/runbook/결제/a b+c&d.md",
        "runbook://%EA%B2%B0%EC%A0%9C/a%20b+c&d",
        &[
            "runbook://결제/a b+c&d.md",
            "runbook://%ea%b2%b0%ec%a0%9c/a%20b%2Bc%26d",
        ],
    )]);
    check(&[(
        "resources/runbook/100%.md",
        "runbook://100%25",
        &["runbook://100%25.md"],
    )]);
}

#[test]
fn clashing_uris_are_a_problem_naming_both_and_neither_is_served() {
    let nfd: String = "resources/runbook/결제.md".nfd().collect();
    let check = |paths: &[&str]| {
        let (uris, codes) = listed(paths);
        assert_eq!(
            (uris, codes),
            (vec![], vec!["resource-clash"; paths.len() - 1]),
            "{paths:?}"
        );
        let files: Vec<_> = paths.iter().map(|p| (*p, "x")).collect();
        let built = built(&files);
        assert!(
            paths.iter().all(|path| told(&built).contains(path)),
            "{}",
            told(&built)
        );
    };
    check(&["resources/runbook/A.md", "resources/runbook/a.md"]);
    check(&["resources/runbook/Team/a.md", "resources/runbook/team/a.md"]);
    check(&["resources/runbook/결제.md", &nfd]);
    check(&[
        "resources/runbook/a.MD",
        "resources/runbook/A.md",
        "resources/runbook/a.md",
    ]);
    // beyond the first part, case tells names apart
    assert_eq!(
        listed(&["resources/runbook/t/A.md", "resources/runbook/t/a.md"]).1,
        Vec::<&str>::new()
    );
}

#[test]
fn where_a_resource_may_lie() {
    let check = |path: &str, code: &str| {
        assert_eq!(listed(&[path]), (vec![], vec![code]), "{path}");
    };
    check("resources/x.md", "resource-place");
    for scheme in [
        "http",
        "https",
        "file",
        "data",
        "javascript",
        "ftp",
        "ws",
        "blob",
        "about",
    ] {
        check(&format!("resources/{scheme}/x.md"), "resource-scheme");
    }
    for scheme in ["Runbook", "1a", "런북", "a b", "-a", &"a".repeat(41)] {
        check(&format!("resources/{scheme}/x.md"), "resource-scheme");
    }
    check("resources/runbook/a\\b.md", "resource-name");
    check("resources/runbook/a\u{1}.md", "resource-name");
    check("resources/runbook/a/../b.md", "resource-name");
    for good in [
        "resources/a+b.c-1/x.md",
        "resources/runbook/x",
        "resources/runbook/a/b/c/d.md",
    ] {
        assert_eq!(listed(&[good]).0.len(), 1, "{good}");
    }
}

#[test]
fn types_and_bodies() {
    let check = |file: &str, bytes: &[u8], mime: &str, textual: bool| {
        let path = format!("resources/doc/{file}");
        let built = build(
            &MemoryTree::default().with(&path, bytes),
            &Limits::default(),
        );
        let Lookup::Found(resource) = built.catalog.resource(&format!("doc://{file}")) else {
            panic!("{file}: {}", told(&built));
        };
        assert_eq!(
            (&*resource.mime_type, resource.text().is_some()),
            (mime, textual),
            "{file}"
        );
        // stored bytes are untouched: no BOM dropped, no newline made another
        assert_eq!(resource.bytes(), bytes, "{file}");
        assert_eq!(matches!(resource.body, ResourceBody::Text(_)), textual);
    };
    let text = "\u{feff}한글\r\na\rb\n".as_bytes();
    check("a.md", text, "text/markdown", true);
    check("a.markdown", text, "text/markdown", true);
    check("a.MD", text, "text/markdown", true);
    check("a.txt", text, "text/plain", true);
    check("noextension", text, "text/plain", true);
    check("a.unknown-thing", text, "text/plain", true);
    check("a.json", b"{}", "application/json", true);
    check("a.yaml", b"a: 1", "application/yaml", true);
    check("a.yml", b"a: 1", "application/yaml", true);
    check("a.toml", b"a = 1", "application/toml", true);
    check("a.csv", b"a,b", "text/csv", true);
    check("a.html", b"<p>", "text/html", true);
    check("a.xml", b"<a/>", "text/xml", true);
    check("a.svg", b"<svg/>", "image/svg+xml", true);
    check("a.ts", b"let a", "text/x-typescript", true);
    check("a.py", b"a = 1", "text/plain", true);
    check("a.rs", b"fn a() {}", "text/x-rust", true);
    check("a.sh", b"ls", "application/x-sh", true);
    check("a.sql", b"select 1", "application/x-sql", true);
    check("a.js", b"let a", "text/javascript", true);
    check("empty.md", b"", "text/markdown", true);
    check("a.png", b"\x89PNG\r\n\x1a\n", "image/png", false);
    check("a.jpg", b"\xff\xd8\xff", "image/jpeg", false);
    check("a.mp3", b"ID3", "audio/mpeg", false);
    check("a.wav", b"RIFF", "audio/wav", false);
    check("a.pdf", b"%PDF-1.7", "application/pdf", false);
    check("a.zip", b"PK", "application/zip", false);
    // called text and none
    check("a.md", b"a\xff", "application/octet-stream", false);
    check("a.txt", b"a\0b", "application/octet-stream", false);
    check(
        "noextension",
        b"\x7fELF\0",
        "application/octet-stream",
        false,
    );
}

#[test]
fn a_missing_required_resource_names_the_uri_and_what_is_near() {
    let built = built(&[
        (
            "prompts/t/p.md",
            "---\ndescription: D\narguments: [{ name: service }]\nresources: [{ name: r, uri: \"runbook://{{ service }}\", required: true }]\n---\nB",
        ),
        ("resources/runbook/payments.md", "P"),
        ("resources/runbook/payment.md", "P"),
        ("resources/runbook/paymentz.md", "P"),
        ("resources/runbook/payroll-eu.md", "P"),
        ("resources/runbook/search.md", "S"),
    ]);
    let check = |value: &str, expected: &str| {
        let error = try_messages(&built, "p", &[("service", value)]).unwrap_err();
        assert_eq!(error, expected);
    };
    check(
        "paymens",
        "resource `runbook://paymens` (binding `r`) is not in the library; near it: runbook://payment, runbook://payments, runbook://paymentz",
    );
    check(
        "zzzzzzzzzzzzzzzzzzzzzzzzzzz",
        "resource `runbook://zzzzzzzzzzzzzzzzzzzzzzzzzzz` (binding `r`) is not in the library",
    );
    check("", "the required resource `r` needs a value for service");
    assert_eq!(
        messages(&built, "p", &[("service", "Payments.md")]),
        [
            ("user", "B".into()),
            ("user", "[resource runbook://payments]P".into())
        ]
    );
}

#[test]
fn a_template_can_test_what_was_found() {
    let built = built(&[
        (
            "prompts/t/p.md",
            "---\ndescription: D\narguments: [{ name: s }, { name: t }]\nresources:\n  - { name: a, uri: \"runbook://{{ s }}\" }\n  - { name: b, uri: \"style://{{ s }}/{{ t }}\" }\n---\n{{ resources.a.found }} {{ resources.a.uri }} {{ resources.a.text }}|{{ resources.b.found }} {{ resources.b.uri }} {{ resources.b.text }}|\n\n<!-- role: assistant -->\n{% if not resources.a.found and s %}no runbook for {{ s }}{% endif %}\n<!-- resource: a -->\n\n<!-- resource: b -->\n",
        ),
        ("resources/runbook/x.md", "RX"),
        ("resources/style/x/y.png", "\u{1}"),
    ]);
    assert_eq!(errors(&built), Vec::<&str>::new(), "{}", told(&built));
    let check = |arguments: &[(&str, &str)], expected: &[(&str, &str)]| {
        let found = messages(&built, "p", arguments);
        let found: Vec<_> = found.iter().map(|(r, t)| (*r, t.as_str())).collect();
        assert_eq!(found, expected, "{arguments:?}");
    };
    check(&[], &[("user", "false  |false  |\n")]);
    check(
        &[("s", "x")],
        &[
            ("user", "true runbook://x RX|false  |\n"),
            ("assistant", "[resource runbook://x]RX"),
        ],
    );
    check(
        &[("s", "x"), ("t", "y")],
        &[
            ("user", "true runbook://x RX|true style://x/y |\n"),
            ("assistant", "[resource runbook://x]RX"),
            ("assistant", "[resource style://x/y]"),
        ],
    );
    check(
        &[("s", "no"), ("t", "y")],
        &[
            ("user", "false runbook://no |false style://no/y |\n"),
            ("assistant", "no runbook for no\n"),
        ],
    );
}

#[test]
fn what_a_binding_says_is_checked_against_the_library() {
    let check = |binding: &str, code: &str, column: u32| {
        let text = format!("---\ndescription: D\nresources:\n  - {{ name: r, {binding} }}\n---\nB");
        let built = built(&[
            ("prompts/t/p.md", &text),
            ("resources/runbook/a.md", "A"),
            ("resources/image/a.png", "\u{1}"),
            ("resources/sound/a.wav", "\u{1}"),
            ("cuebook.toml", "[[resource]]\ntemplate = \"later://{x}\"\n"),
        ]);
        let expected: Vec<String> = (!code.is_empty())
            .then(|| format!("prompts/t/p.md:4:{column} error {code}"))
            .into_iter()
            .collect();
        let found: Vec<_> = places(&built)
            .into_iter()
            .filter(|p| p.contains(" error "))
            .collect();
        assert_eq!(found, expected, "{binding}: {}", told(&built));
    };
    check("uri: \"runbook://a\"", "", 0);
    check("uri: \"runbook://a.md\", as: text", "", 0);
    check("uri: \"image://a\", as: image", "", 0);
    check("uri: \"sound://a\", as: audio", "", 0);
    check("uri: \"runbook://b\"", "missing-resource", 21);
    check("uri: \"runbok://a\"", "unknown-scheme", 21);
    check("uri: \"later://a\"", "missing-resource", 21);
    check("uri: \"runbook\"", "resource-uri", 21);
    check("uri: \"runbook://../image/a.png\"", "resource-uri", 21);
    check("uri: \"runbook://%2e%2e/image/a.png\"", "resource-uri", 21);
    check("uri: \"file:///etc/passwd\"", "unknown-scheme", 21);
    check("uri: \"runbook://a\", as: image", "resource-type", 21);
    check("uri: \"image://a\", as: audio", "resource-type", 21);
    check("uri: \"image://a\", as: text", "resource-type", 21);
    check("uri: \"runbook://a\", as: picture", "resource-as", 40);
}

#[test]
fn completion_offers_the_resources_that_exist() {
    let built = built(&[
        (
            "prompts/t/p.md",
            "---\ndescription: D\narguments:\n  - { name: s, values: { resource: \"runbook://{service}\" } }\n  - { name: t, values: { resource: \"style://{lang}/errors\" } }\n---\n{{ s }}{{ t }}",
        ),
        ("resources/runbook/payments.md", "P"),
        ("resources/runbook/a b.md", "P"),
        ("resources/runbook/결제.md", "P"),
        ("resources/runbook/team/search.md", "P"),
        ("resources/runbook/two.md", "P"),
        ("resources/runbook/two.txt", "P"),
        ("resources/style/rust/errors.md", "P"),
        ("resources/style/go/errors.md", "P"),
        ("resources/style/go/names.md", "P"),
    ]);
    let prompt = built.catalog.prompt("p").unwrap();
    let complete = |argument: &str, typed: &str| {
        built
            .catalog
            .complete(prompt, argument, typed, &BTreeMap::new(), &[])
            .values
    };
    assert_eq!(
        complete("s", ""),
        ["a b", "payments", "two.md", "two.txt", "결제"]
    );
    assert_eq!(complete("s", "PAY"), ["payments"]);
    let nfd: String = "결".nfd().collect();
    assert_eq!(complete("s", &nfd), ["결제"]);
    assert_eq!(complete("t", ""), ["go", "rust"]);
    assert_eq!(complete("nope", ""), Vec::<String>::new());
    // every value offered is found by the binding it completes
    for value in complete("s", "") {
        assert!(matches!(
            built.catalog.resource(&format!("runbook://{value}")),
            Lookup::Found(_)
        ));
    }
}
