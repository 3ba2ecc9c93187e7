//! F1 to F5: what goes wrong with files.

use cuebook::prompt::Limits;
use proptest::prelude::*;

use super::*;

/// A prompt with something of everything, LF.
const WHOLE: &str = "---\ntitle: 장애 초동 조치\ndescription: First response\ntags: [sre, incident]\narguments:\n  - name: service\n    description: |\n      Two lines\n      of it\n    default: 3\nresources:\n  - { name: runbook, uri: \"runbook://a\", as: text }\nexamples:\n  - arguments: { service: x }\n    expect: [\"Line x\"]\n---\nLine {{ service }}\n\n{% if service %}\nyes\n{% endif %}\n```\n<!-- role: user -->\n```\n\n<!-- resource: runbook -->\n\n<!-- role: assistant -->\n\nEnd\n";

/// What a prompt lists and renders.
fn seen(text: &str) -> String {
    let built = built(&[(PATH, text), ("resources/runbook/a.md", "A\r\nB\rC\n")]);
    assert_eq!(
        errors(&built),
        Vec::<&str>::new(),
        "{text:?}: {}",
        told(&built)
    );
    let prompt = built.catalog.prompt("p").unwrap();
    format!(
        "{:?} {:?} {:?} {:?} {:?}",
        prompt.title,
        prompt.description,
        prompt.tags,
        prompt.arguments,
        messages(&built, "p", &[])
    )
}

#[test]
fn f1_every_line_ending_gives_the_same_metadata_and_text() {
    let lf = seen(WHOLE);
    assert!(
        lf.contains("A\\r\\nB\\rC\\n"),
        "a resource is untouched: {lf}"
    );
    assert_eq!(seen(&WHOLE.replace('\n', "\r\n")), lf);
    assert_eq!(seen(&WHOLE.replace('\n', "\r")), lf);
    assert_eq!(seen(&format!("\u{feff}{WHOLE}")), lf);
    assert_eq!(
        seen(&format!("\u{feff}{}", WHOLE.replace('\n', "\r\n"))),
        lf
    );
}

proptest! {
    #[test]
    fn f1_mixed_line_endings_too(endings in prop::collection::vec(0..3usize, WHOLE.matches('\n').count())) {
        let mut endings = endings.into_iter().map(|i| ["\n", "\r\n", "\r"][i]);
        let mixed: String = WHOLE
            .split_inclusive('\n')
            .map(|line| {
                let ending = endings.next().unwrap_or("\n");
                line.replace('\n', ending)
            })
            .collect();
        // a lone CR that comes to stand before a lone LF is one ending and not two
        prop_assume!(!mixed.contains("\r\n\n") && mixed.replace("\r\n", "\n").replace('\r', "\n") == WHOLE);
        prop_assert_eq!(seen(&mixed), seen(WHOLE));
    }
}

#[test]
fn f1_the_last_newline_stays_as_stored() {
    for end in ["", "\n", "\n\n", "\n \n"] {
        for ending in ["\n", "\r\n", "\r"] {
            let stored = format!("---\ndescription: D\n---\nbody{end}").replace('\n', ending);
            assert_eq!(
                text(&prompt(&stored), &[]),
                format!("body{end}"),
                "{stored:?}"
            );
        }
    }
}

#[test]
fn f1_nothing_after_the_closing_line() {
    let front = "---\ndescription: D\nresources: [{ name: r, uri: \"runbook://a\" }]\n---";
    let resource = ("resources/runbook/a.md", "A");
    for end in ["", "\n", "\r", "\r\n", "\n\n", " \n"] {
        let built_with = built(&[(PATH, &format!("{front}{end}")), resource]);
        assert_eq!(
            messages(&built_with, "p", &[]),
            [("user", "[resource runbook://a]A".into())],
            "{end:?}"
        );
        let built = prompt(&format!("---\ndescription: D\n---{end}"));
        assert_eq!(errors(&built), ["empty-prompt"], "{end:?}");
    }
}

#[test]
fn f1_only_the_first_block_is_front_matter() {
    let check = |stored: &str, expected: &str| {
        assert_eq!(text(&prompt(stored), &[]), expected);
    };
    check(
        "---\ndescription: D\n---\na\n---\nb: 1\n---\n",
        "a\n---\nb: 1\n---\n",
    );
    check("---\ndescription: D\n---\n---\nb\n---\n", "---\nb\n---\n");
    check("a\n---\nb: 1\n---\n", "a\n---\nb: 1\n---\n");
    check("\n---\nb: 1\n---\n", "\n---\nb: 1\n---\n");
    check(" ---\nb: 1\n---\n", " ---\nb: 1\n---\n");
    check("----\nb\n", "----\nb\n");
    check("--- \ndescription: D\n---\t\na", "a");
    check("---\n---\na", "a");
    check("---\n# nothing\n---\na", "a");
    let built = prompt("---\ndescription: D\na\n");
    assert_eq!(
        places(&built)[0],
        format!("{PATH}:1:1 error front-matter-open")
    );
}

#[test]
fn f2_one_bad_file_takes_nobody_down() {
    let bad: &[(&str, &str, u32, u32)] = &[
        ("argument-hint: [optional: x]", "unknown-key", 2, 1),
        ("argument-hint: [optional: x", "yaml-syntax", 3, 1),
        ("description: Review: find bugs", "yaml-syntax", 2, 20),
        ("description: \"unclosed", "yaml-syntax", 2, 14),
        ("description: *alias", "yaml-syntax", 2, 14),
        ("description: @me", "yaml-syntax", 2, 14),
        ("description: `x`", "yaml-syntax", 2, 14),
        ("description: %x", "yaml-syntax", 2, 14),
        ("description: [a]", "wrong-type", 2, 14),
        ("description: { a: b }", "wrong-type", 2, 14),
        ("description:\n", "null-value", 2, 12),
        ("arguments:\n\t- name: x", "yaml-syntax", 3, 2),
        ("title: a\n b: c", "yaml-syntax", 3, 3),
        ("- a\n- b", "wrong-type", 2, 1),
        ("tags: sre", "wrong-type", 2, 7),
        ("titel: x", "unknown-key", 2, 1),
        ("arguments: { a: b }", "wrong-type", 2, 12),
        ("arguments: [a]", "wrong-type", 2, 13),
        ("a: 1\n...\nb: 2", "yaml-documents", 4, 1),
        ("title: \u{1}", "control-character", 2, 8),
    ];
    for (front, code, line, column) in bad {
        let built = built(&[
            ("prompts/t/bad.md", &format!("---\n{front}\n---\nB\n")),
            ("prompts/t/good.md", &with_arguments("", "G")),
        ]);
        assert_eq!(messages(&built, "good", &[]), [("user", "G".into())]);
        let place = format!("prompts/t/bad.md:{line}:{column} error {code}");
        assert!(
            places(&built).contains(&place),
            "{front}: {place}: {}",
            told(&built)
        );
        assert!(built.catalog.prompt("bad").is_none());
    }
}

#[test]
fn f2_a_template_never_ends_the_process() {
    let deep = |open: &str, inner: &str, close: &str, n: usize| {
        format!("{}{inner}{}", open.repeat(n), close.repeat(n))
    };
    let bodies = [
        deep("{{ (", "a", ") }}", 1),
        format!("{{{{ {} }}}}", deep("(", "a", ")", 25_000)),
        format!("{{{{ {} }}}}", deep("[", "a", "]", 25_000)),
        format!("{{{{ {} }}}}", deep("a[", "1", "]", 20_000)),
        format!("{{{{ {} }}}}", deep("{\"a\":", "1", "}", 8_000)),
        format!("{{{{ {} }}}}", deep("a | default(value=", "a", ")", 3_000)),
        format!("{{{{ {} }}}}", deep("[b for b in ", "a", "]", 3_500)),
        format!("{{{{ {}1 }}}}", "-".repeat(40_000)),
        format!("{{{{ {}a }}}}", "not ".repeat(15_000)),
        format!("{{{{ a{} }}}}", " ~ a".repeat(14_000)),
        format!("{{{{ a{} }}}}", "|upper".repeat(9_000)),
        format!("{{{{ a{} }}}}", ".b".repeat(25_000)),
        format!("{{{{ {}a }}}}", "a if a else ".repeat(4_500)),
        deep("{% if a %}", "x", "{% endif %}", 2_700),
        deep("{% for b in a %}", "x", "{% endfor %}", 1_900),
        deep("{% filter upper %}", "x", "{% endfilter %}", 1_700),
        deep("{% set y %}", "x", "{% endset %}", 2_500),
        format!("{{% if a %}}{}{{% endif %}}", "{% elif a %}".repeat(4_500)),
        format!("{{% if a %}}{}{{% endif %}}", "{% elif a %}".repeat(256)),
        "{% extends \"base.md\" %}{% block y %}{{ a }}{% block x %}{{ super() }}{% endblock %}{% endblock %}".to_owned(),
        "{{ a }}{% component c() %}{{ <c /> }}{% endcomponent c %}{{ <c /> }}".to_owned(),
    ];
    for body in bodies {
        let built = built(&[
            (
                "prompts/t/p.md",
                &format!("{}{body}", with_arguments("a", "{{ a }}")),
            ),
            (
                "partials/base.md",
                "{% block x %}{% block y %}{% endblock %}{% endblock %}",
            ),
            ("prompts/t/good.md", &with_arguments("", "G")),
        ]);
        assert_eq!(messages(&built, "good", &[]), [("user", "G".into())]);
        if built.catalog.prompt("p").is_some() {
            // in a thread as small as those that serve
            let rendered = std::thread::Builder::new()
                .stack_size(2 * 1024 * 1024)
                .spawn(move || try_messages(&built, "p", &[("a", "x")]))
                .unwrap()
                .join()
                .unwrap();
            assert!(rendered.is_ok(), "{rendered:?}");
        }
    }
}

#[test]
fn f2_what_needs_quotes_is_told_to_be_quoted() {
    let check = |line: &str, quoted: &str| {
        let built = prompt(&format!("---\n{line}\n---\nB\n"));
        let problem = built.problems.iter().find(|p| p.is_error()).unwrap();
        let hint = format!("quote it: {quoted}");
        assert_eq!(problem.hint.as_deref(), Some(hint.as_str()), "{line}");
        let built = prompt(&format!("---\n{quoted}\n---\nB\n"));
        assert!(
            !errors(&built).contains(&"yaml-syntax"),
            "{quoted}: {}",
            told(&built)
        );
    };
    check(
        "description: Review: find bugs",
        "description: \"Review: find bugs\"",
    );
    check("title: 검토: 버그", "title: \"검토: 버그\"");
    check("title: a \"b\": c", "title: \"a \\\"b\\\": c\"");
    check("title: @me", "title: \"@me\"");
    check("title: *", "title: \"*\"");
    check("title: `code`", "title: \"`code`\"");
    check("title: %d items", "title: \"%d items\"");
}

#[test]
fn f2_front_matter_that_cannot_be_read_is_one_problem() {
    let body = "{{ service }} ${{ service }}\n{% if severity %}x{% endif %}\n\n<!-- resource: runbook -->\n";
    for front in [
        "description: Review: find bugs",
        "arguments: [{ name: service",
        "title: a\ntitle: b",
        "title: &a b",
        &format!("description: {}", "x".repeat(20_000)),
    ] {
        let built = prompt(&format!("---\n{front}\n---\n{body}"));
        assert_eq!(built.problems.len(), 1, "{}", told(&built));
        assert!(!built.is_clean() && built.catalog.list(None).is_empty());
    }
}

#[test]
fn f2_a_comment_that_eats_text_is_a_warning() {
    let built = prompt("---\ndescription: fix bug #12 # now\n---\nB\n");
    assert_eq!(
        places(&built),
        [format!("{PATH}:2:21 warning yaml-comment")],
        "{}",
        told(&built)
    );
    let built = prompt("---\ndescription: D # of the team\n---\nB\n");
    assert_eq!(
        places(&built),
        [format!("{PATH}:2:15 warning yaml-comment")]
    );
    let built = prompt("---\n# of the team\ndescription: \"a # b\"\ntags: [a] # x\n---\nB\n");
    assert_eq!(places(&built), Vec::<String>::new());
}

#[test]
fn f3_strings_stay_strings() {
    for value in [
        "1.10",
        "yes",
        "on",
        "no",
        "off",
        "y",
        "true",
        "False",
        "0x1F",
        "0o17",
        "017",
        "1e3",
        "12:30:45",
        "2024-01-01",
        "1_000",
        "+1",
        ".5",
        ".inf",
        ".nan",
        "-0",
        "00",
        "1.0",
    ] {
        let built = prompt(&format!(
            "---\ntitle: {value}\ndescription: {value}\ntags: [{value}]\narguments:\n  - name: a\n    description: {value}\n    values: [{value}]\n    default: {value}\nexamples:\n  - arguments: {{ a: {value} }}\n    expect: [{value}]\n---\n{{{{ a }}}}"
        ));
        assert_eq!(text(&built, &[]), value);
        let prompt = built.catalog.prompt("p").unwrap();
        assert_eq!(prompt.title.as_deref(), Some(value));
        assert_eq!(prompt.description.as_deref(), Some(value));
        assert_eq!(prompt.tags, [value]);
        let argument = &prompt.arguments[0];
        assert_eq!(argument.description.as_deref(), Some(value));
        assert_eq!(argument.default.as_deref(), Some(value));
        assert_eq!(argument.values.list, [value]);
    }
}

#[test]
fn f3_null_is_a_problem_where_a_text_is_wanted() {
    for null in ["", "~", "null", "Null", "NULL"] {
        for line in [
            "title:",
            "description:",
            "tags:",
            "arguments:",
            "resources:",
            "examples:",
        ] {
            let built = prompt(&format!("---\n{line} {null}\n---\nB\n"));
            assert!(
                errors(&built).contains(&"null-value"),
                "{line} {null}: {}",
                told(&built)
            );
        }
        let built = prompt(&format!(
            "---\narguments:\n  - name: a\n    default: {null}\n---\n{{{{ a }}}}"
        ));
        assert!(
            errors(&built).contains(&"null-value"),
            "{null}: {}",
            told(&built)
        );
    }
    let built = prompt("---\ntitle: \"null\"\ndescription: '~'\n---\nB\n");
    assert_eq!(errors(&built), Vec::<&str>::new());
}

#[test]
fn f3_keys_that_are_given_twice_or_unknown_are_problems() {
    let check = |front: &str, expected: &str| {
        let built = prompt(&format!("---\n{front}\n---\n{{{{ a }}}}B\n"));
        let expected = format!("{PATH}:{expected}");
        assert!(
            places(&built).contains(&expected),
            "{front}: {expected}: {}",
            told(&built)
        );
    };
    let a = "arguments: [{ name: a }]";
    check(
        &format!("{a}\ntitle: x\ntitle: y"),
        "4:1 error duplicate-key",
    );
    check(
        &format!("{a}\ntitle: x\n\"title\": y"),
        "4:1 error duplicate-key",
    );
    check(
        "arguments: [{ name: a, name: a }]",
        "2:24 error duplicate-key",
    );
    check(
        "arguments: [{ name: a }, { name: a }]",
        "2:34 error duplicate-argument",
    );
    check(
        &format!("{a}\nexamples: [{{ arguments: {{ a: 1, a: 2 }} }}]"),
        "3:33 error duplicate-key",
    );
    check(&format!("{a}\nversion: 1.10"), "3:1 error unknown-key");
    check(&format!("{a}\non: yes"), "3:1 error unknown-key");
    check(
        "arguments: [{ name: a, requried: true }]",
        "2:24 error unknown-key",
    );
    check(
        "arguments: [{ name: a, required: yes }]",
        "2:34 error wrong-type",
    );
    check(
        "arguments: [{ name: a, required: \"true\" }]",
        "2:34 error wrong-type",
    );
    check(
        "arguments: [{ name: a, values: { lst: [x] } }]",
        "2:34 error unknown-key",
    );
    check(
        &format!("{a}\nresources: [{{ name: r, uri: \"x://y\", optional: true }}]"),
        "3:38 error unknown-key",
    );
    check(&format!("{a}\ntitle: &x y"), "3:8 error yaml-anchor");
    check(&format!("{a}\ntitle: !!str y"), "3:8 error yaml-tag");
    check(&format!("{a}\n<<: {{ title: x }}"), "3:1 error unknown-key");
}

#[test]
fn f4_any_script_in_every_place_where_text_may_stand() {
    let built = built(&[
        (
            "prompts/sre/ja.md",
            "---\ntitle: 障害の一次対応 🚨\ndescription: 결제 서비스 — أول استجابة\ntags: [장애, 障害]\narguments:\n  - name: service\n    description: 서비스\n    values: { file: 서비스.txt }\nresources:\n  - { name: r, uri: \"runbook://결제\" }\n---\n{% if service == \"결제\" %}결제 서비스{% endif %}です。{% include \"심각도.md\" %}",
        ),
        ("partials/심각도.md", "심각도 🔥 {{ service }}"),
        ("values/서비스.txt", "결제\t돈\n검색\n"),
        ("resources/runbook/결제.md", "런북"),
        ("cuebook.toml", "title = \"팀의 라이브러리\"\n"),
    ]);
    assert_eq!(errors(&built), Vec::<&str>::new(), "{}", told(&built));
    assert_eq!(
        messages(&built, "ja", &[("service", "결제")]),
        [
            ("user", "결제 서비스です。심각도 🔥 결제".into()),
            ("user", "[resource runbook://%EA%B2%B0%EC%A0%9C]런북".into())
        ]
    );
    assert_eq!(built.catalog.title(), Some("팀의 라이브러리"));
}

#[test]
fn f4_what_is_not_utf8_has_a_place() {
    let check = |bytes: &[u8], line: u32, column: u32| {
        let tree = MemoryTree::default()
            .with(PATH, bytes)
            .with("prompts/t/good.md", "G");
        let built = build(&tree, &Limits::default());
        let problem = built.problems.iter().find(|p| p.is_error()).unwrap();
        assert_eq!(
            (problem.code, problem.line, problem.column),
            ("not-utf8", line, column)
        );
        assert!(problem.hint.as_deref().unwrap().contains("UTF-8"));
        assert_eq!(messages(&built, "good", &[]).len(), 1);
    };
    // EUC-KR, UTF-16 with its BOM, a surrogate, an overlong slash, a cut character
    check(b"---\ntitle: \xb0\xe1\xc1\xa6\n---\nB", 2, 8);
    check(b"\xff\xfea\0b\0", 1, 1);
    check(
        "한\n"
            .as_bytes()
            .iter()
            .chain(b"\xed\xa0\x80")
            .copied()
            .collect::<Vec<_>>()
            .as_slice(),
        2,
        1,
    );
    check(b"a\xc0\xaf", 1, 2);
    check(b"ab\xea\xb0", 1, 3);
}

#[test]
fn f5_sizes_are_limited_and_named_and_nothing_is_cut() {
    let sized = |bytes: usize| {
        let head = "---\ndescription: D\n---\n";
        format!("{head}{}", "가나다\n".repeat(bytes / 10 + 1))[..]
            .chars()
            .scan(0, |n, c| {
                *n += c.len_utf8();
                (*n <= bytes).then_some(c)
            })
            .collect::<String>()
    };
    let check = |bytes: usize, limit: usize| {
        let stored = sized(bytes);
        let stored = format!("{stored}{}", "x".repeat(bytes - stored.len()));
        let limits = Limits {
            prompt_file_bytes: limit,
            closure_bytes: 16 * 1024 * 1024,
            output_bytes: 16 * 1024 * 1024,
            ..Limits::default()
        };
        let built = build(
            &tree(&[(PATH, &stored), ("prompts/t/good.md", "G")]),
            &limits,
        );
        assert_eq!(messages(&built, "good", &[]).len(), 1);
        if bytes <= limit {
            let text = messages(&built, "p", &[]).remove(0).1;
            assert_eq!(text, stored["---\ndescription: D\n---\n".len()..]);
        } else {
            let problem = built.problems.iter().find(|p| p.is_error()).unwrap();
            assert_eq!(
                problem.message,
                format!("the file is {bytes} bytes; at most {limit} are read (prompt_file_bytes)")
            );
            assert!(built.catalog.prompt("p").is_none());
        }
    };
    let default = Limits::default().prompt_file_bytes;
    for bytes in [25 * 1024, 250 * 1024, 2 * 1024 * 1024] {
        check(bytes, default);
        check(bytes, 4 * 1024 * 1024);
        check(bytes, bytes);
        check(bytes, bytes - 1);
    }
}

#[test]
fn f5_every_other_size_is_named_with_both_numbers() {
    let limits = Limits {
        prompt_file_bytes: 3000,
        front_matter_bytes: 200,
        closure_bytes: 4000,
        closure_files: 3,
        resource_file_bytes: 50,
        values_file_bytes: 40,
        arguments_count: 2,
        ..Limits::default()
    };
    let x = |n: usize| "x".repeat(n);
    let check = |files: &[(&str, &str)], says: &str| {
        let built = build(&tree(files), &limits);
        assert!(told(&built).contains(says), "{says}: {}", told(&built));
        assert!(!built.is_clean());
    };
    check(
        &[(PATH, &format!("---\ndescription: {}\n---\nB", x(200)))],
        "the front matter is 214 bytes; at most 200 are read (front_matter_bytes)",
    );
    check(
        &[
            (
                PATH,
                &with_arguments("", "{% include \"a.md\" %}{% include \"b.md\" %}"),
            ),
            ("partials/a.md", &x(2000)),
            ("partials/b.md", &x(2500)),
        ],
        "bytes; at most 4000 are read (closure_bytes)",
    );
    check(
        &[
            (
                PATH,
                &with_arguments(
                    "",
                    "{% include \"a.md\" %}{% include \"b.md\" %}{% include \"c.md\" %}",
                ),
            ),
            ("partials/a.md", "a"),
            ("partials/b.md", "b"),
            ("partials/c.md", "c"),
        ],
        "more than 2 files (closure_files counts the prompt too)",
    );
    check(
        &[("partials/a.md", &x(3001))],
        "the file is 3001 bytes; at most 3000 are read (prompt_file_bytes)",
    );
    check(
        &[("cuebook.toml", &x(3001))],
        "the file is 3001 bytes; at most 3000 are read (prompt_file_bytes)",
    );
    check(
        &[("labels.toml", &x(3001))],
        "the file is 3001 bytes; at most 3000 are read (prompt_file_bytes)",
    );
    check(
        &[("resources/doc/a.md", &x(51))],
        "the file is 51 bytes; at most 50 are served (resource_file_bytes)",
    );
    check(
        &[("values/a.txt", &x(41))],
        "the file is 41 bytes; at most 40 are read (values_file_bytes)",
    );
    check(
        &[(PATH, &with_arguments("a b c", "{{ a }}{{ b }}{{ c }}"))],
        "3 arguments; at most 2 are read (arguments_count)",
    );
}
