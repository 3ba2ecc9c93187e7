//! What holds for every text: data is never parsed, text is served to the byte, the reader never panics, what passes
//! the check renders, a fix is a fix.

use cuebook::prompt::Limits;
use proptest::prelude::*;

use super::templates::FOREIGN;
use super::*;

/// Invariant 1: the same commit and the same arguments give the same bytes, in any process and at any time.
#[test]
fn tables_keep_the_order_in_which_they_are_written() {
    let body = "{% set t = {\"z\": x, \"m\": 1, \"a\": [2], \"k\": 3, \"b\": 4, \"y\": 5} %}{{ t | json }} {{ t | keys }} {% for k, v in t %}{{ k }}{% endfor %} {{ t }}";
    for _ in 0..8 {
        // a build of its own: the engine's tables have a random seed each
        let built = prompt(&with_arguments("x", body));
        let text = text(&built, &[("x", "X")]);
        assert!(
            text.starts_with("{\"z\":\"X\",\"m\":1,\"a\":[2],\"k\":3,\"b\":4,\"y\":5} "),
            "{text}"
        );
        assert!(text.contains(" zmakby "), "{text}");
    }
}

/// Pieces that mean something to a template engine, a marker reader, YAML, a chat format or a terminal.
const PIECES: &[&str] = &[
    "{{",
    "}}",
    "{%",
    "%}",
    "{#",
    "#}",
    "{",
    "}",
    "%",
    "#",
    "-",
    "{{-",
    "-%}",
    "{% raw %}",
    "{% endraw %}",
    "{{ a }}",
    "{{ b }}",
    "{{ nope }}",
    "{{ a | upper }}",
    "{{ a ~ b }}",
    "{% if a %}",
    "{% elif b %}",
    "{% else %}",
    "{% endif %}",
    "{% for c in a | split(pat=\",\") %}",
    "{{ c }}",
    "{% endfor %}",
    "{% set y = a %}",
    "{{ y }}",
    "{% include \"part.md\" %}",
    "{% include \"nope.md\" %}",
    "{% include a %}",
    "{% extends \"part.md\" %}",
    "{% block x %}",
    "{% endblock %}",
    "{% filter upper %}",
    "{% endfilter %}",
    "{{ resources.r.text }}",
    "{{ resources.r.found }}",
    "{{ resources }}",
    "{{ resources.nope.text }}",
    "{{ __tera_context }}",
    "{{ .Values.x }}",
    "${{ x }}",
    "{{ \"a\": 1 }}",
    "{# c #}",
    "'",
    "\"",
    "`",
    "\\",
    "|",
    "~",
    "(",
    ")",
    "[",
    "]",
    ":",
    ",",
    ".",
    "=",
    "a",
    "b",
    "in",
    "is defined",
    "not",
    "\n<!-- role: assistant -->\n",
    "\n<!-- role: system -->\n",
    "\n<!-- resource: r -->\n",
    "\n<!-- resource: nope -->\n",
    "<!--",
    "-->",
    "\n```\n",
    "\n~~~\n",
    "\n---\n",
    "---",
    "\n",
    "\r\n",
    "\r",
    "\t",
    " ",
    "  ",
    "\u{0}",
    "\u{1b}[31m",
    "\u{feff}",
    "\u{2028}",
    "\u{202e}",
    "한글",
    "ㄱ",
    "e\u{301}",
    "🚨",
    "<|im_start|>",
    "# Assistant:",
    "&lt;",
    "<b>",
    "$ARGUMENTS",
    "@x/y",
    "!`z`",
];

fn soup(most: usize) -> impl Strategy<Value = String> {
    let piece = prop_oneof![
        6 => prop::sample::select(PIECES).prop_map(str::to_owned),
        1 => any::<char>().prop_map(String::from),
        1 => "[ -~]{1,8}",
    ];
    prop::collection::vec(piece, 0..most).prop_map(|pieces| pieces.concat())
}

/// Text without the beginning of a construct, without markers and what no file may hold.
fn plain() -> impl Strategy<Value = String> {
    soup(12).prop_map(|mut text| {
        for (from, to) in [("\0", "0"), ("<!--", "<!-"), ("{%", "{ %"), ("{#", "{ #")] {
            text = text.replace(from, to);
        }
        while text.contains("{{") {
            text = text.replace("{{", "{ {");
        }
        if text.ends_with('{') {
            text.push(' ');
        }
        text
    })
}

proptest! {
    #![proptest_config(ProptestConfig {
        cases: 512,
        // what was found is kept as a named test
        failure_persistence: None,
        ..ProptestConfig::default()
    })]

    /// Invariant 3: a value comes out once, byte for byte, in the same number of messages of the same roles.
    #[test]
    fn argument_data_is_never_parsed(a in soup(12).prop_map(|a| if a.is_empty() { "{{".into() } else { a }), b in soup(12)) {
        let built = built(&[
            (
                PATH,
                "---\ndescription: D\narguments: [{ name: a, required: true }, { name: b }]\n---\n[{{ a }}]\n\n<!-- role: assistant -->\n{% if b %}<{{ b }}>{% else %}none{% endif %}{% include \"part.md\" %}\n<!-- role: system -->\n{% set c = a ~ b %}({{ c }}){% for d in [a, b] %}/{{ d }}{% endfor %}",
            ),
            ("partials/part.md", "|{{ b }}|"),
        ]);
        let expected = [
            ("user", format!("[{a}]\n")),
            ("assistant", format!("{}|{b}|\n", if b.is_empty() { "none".into() } else { format!("<{b}>") })),
            ("system", format!("({a}{b})/{a}/{b}")),
        ];
        prop_assert_eq!(messages(&built, "p", &[("a", &a), ("b", &b)]), expected);
    }

    /// The same for a default and for the text of a bound resource.
    #[test]
    fn stored_data_is_never_parsed(data in soup(12)) {
        let text = data.replace(['\r', '\0'], "").replace('\u{feff}', "");
        let built = build(
            &tree(&[(
                PATH,
                "---\ndescription: D\nresources: [{ name: r, uri: \"doc://r\", as: text, required: true }]\n---\n[{{ resources.r.text }}]\n\n<!-- role: assistant -->\nI\n\n<!-- resource: r -->",
            )])
            .with("resources/doc/r.md", text.as_bytes()),
            &Limits::default(),
        );
        let expected = [
            ("user", format!("[{text}]\n")),
            ("assistant", "I\n".to_owned()),
            ("assistant", text),
        ];
        prop_assert_eq!(messages(&built, "p", &[]), expected);
    }

    /// Text that is no construct is served as it is stored, but for its newlines.
    #[test]
    fn text_outside_constructs_is_served_to_the_byte(before in plain(), after in plain()) {
        let newlines = |text: &str| text.replace("\r\n", "\n").replace('\r', "\n");

        // with a construct between them, and without one
        let stored = with_arguments("x", &format!("{before}{{{{ x }}}}{after}"));
        prop_assert_eq!(
            text(&prompt(&stored), &[("x", "한\r\n{{")]),
            format!("{}한\r\n{{{{{}", newlines(&before), newlines(&after)).replace("\r\n\n", "\r\n\n")
        );
        let stored = with_arguments("", &format!("-{before}"));
        prop_assert_eq!(text(&prompt(&stored), &[]), newlines(&format!("-{before}")));
    }

    /// Whatever is in a file: no panic, a place that exists for every problem, a message of one line; and what passes
    /// the check renders with any arguments.
    #[test]
    fn what_passes_the_check_renders(body in soup(20), partial in soup(8), value in soup(4)) {
        let head = "---\ndescription: D\narguments: [{ name: a }, { name: b }]\nresources: [{ name: r, uri: \"doc://{{ b }}\" }]\n---\n{{ a }}";
        let stored = format!("{head}{body}");
        let built = built(&[
            (PATH, &stored),
            ("partials/part.md", &partial),
            ("resources/doc/r.md", "R"),
        ]);
        for problem in &built.problems {
            let file = if &*problem.path == PATH { &stored } else { &partial };
            let lines: Vec<String> = file
                .trim_start_matches('\u{feff}')
                .replace("\r\n", "\n")
                .replace('\r', "\n")
                .split('\n')
                .map(str::to_owned)
                .collect();
            prop_assert!(!problem.message.contains(['\n', '\r']), "{}", problem.message);
            if problem.line > 0 {
                let line = lines.get(problem.line as usize - 1);
                prop_assert!(line.is_some(), "{:?}", problem);
                prop_assert!(problem.column as usize <= line.map_or(0, |l| l.chars().count()) + 1, "{:?}", problem);
            }
        }
        if built.catalog.prompt("p").is_some() {
            for arguments in [vec![], vec![("a", value.as_str())], vec![("a", value.as_str()), ("b", "r")]] {
                let rendered = try_messages(&built, "p", &arguments);
                prop_assert!(rendered.is_ok(), "{:?}\n{}", rendered, stored);
            }
        } else {
            prop_assert!(!built.is_clean());
        }
    }

    /// The same for templates that are well formed, where only what is bound decides.
    #[test]
    fn what_is_bound_everywhere_it_is_read_renders(
        nodes in nodes(3), more in nodes(2), partial in nodes(2), value in "[a-c,]{0,5}",
    ) {
        let body = format!("-{{{{ a }}}}{{{{ b }}}}{nodes}\n<!-- role: assistant -->\n-{more}");
        let stored = format!("---\ndescription: D\narguments: [{{ name: a }}, {{ name: b }}]\n---\n{body}");
        let built = built(&[(PATH, &stored), ("partials/part.md", &partial)]);
        for problem in &built.problems {
            let known = ["undeclared-variable", "sometimes-set", "include-cycle", "include-fan-out", "unused-argument"];
            prop_assert!(known.contains(&problem.code), "{}\n{stored}\n{partial}", told(&built));
        }
        if built.is_clean() {
            for arguments in [vec![], vec![("a", value.as_str())], vec![("a", value.as_str()), ("b", "r")]] {
                let rendered = try_messages(&built, "p", &arguments);
                prop_assert!(rendered.is_ok(), "{:?}\n{}\n{}", rendered, stored, partial);
            }
        }
    }

    /// A reader of front matter that is given anything.
    #[test]
    fn the_reader_of_front_matter_never_panics(
        bytes in prop::collection::vec(any::<u8>(), 0..200),
        lines in prop::collection::vec(yaml_line(), 0..12),
        body in soup(4),
    ) {
        for stored in [
            bytes.clone(),
            [b"---\n", bytes.as_slice(), b"\n---\nB"].concat(),
            format!("---\n{}\n---\n{body}", lines.join("\n")).into_bytes(),
        ] {
            let tree = MemoryTree::default()
                .with(PATH, stored.clone())
                .with("prompts/t/good.md", "G")
                .with("partials/part.md", stored.clone())
                .with("values/v.txt", stored.clone())
                .with("resources/doc/r.md", stored.clone())
                .with("cuebook.toml", stored.clone())
                .with("labels.toml", stored);
            let built = build(&tree, &Limits::default());
            prop_assert!(built.catalog.prompt("good").is_some(), "a bad file took its sibling down");
            for problem in &built.problems {
                prop_assert!(!problem.message.contains(['\n', '\r']), "{}", problem.message);
            }
        }
    }

    /// `check --fix`: nothing pasted is left, and what is served is what was pasted.
    #[test]
    fn a_fix_is_clean_and_round_trips(
        pieces in prop::collection::vec(
            prop_oneof![
                prop::sample::select(FOREIGN).prop_map(|(text, _)| text.to_owned()),
                prop::sample::select(vec![" ", "\n", "\r\n", "\r", "text", "한글 ", "```yaml\n", "\n```\n", "{ \"a\": ", "}", "- ", "x: \"", "\"", "$", "'"]).prop_map(str::to_owned),
            ],
            1..12,
        )
    ) {
        let body = format!("-{}", pieces.concat());
        let wrapped = fixed(&with_arguments("", &body));
        let built = prompt(&wrapped);
        // text between two snippets may make another construct of them; what is left then is for a person
        prop_assert!(!built.problems.iter().any(|p| p.code == "foreign-template"), "{}", wrapped);
        prop_assert_eq!(errors(&built), Vec::<&str>::new(), "{}\n{}", told(&built), wrapped);
        prop_assert_eq!(text(&built, &[]), body.replace("\r\n", "\n").replace('\r', "\n"));
        // and it stays as it is
        prop_assert_eq!(fixed(&wrapped), wrapped);
    }
}

/// A line that looks like front matter.
fn yaml_line() -> impl Strategy<Value = String> {
    let key = prop::sample::select(vec![
        "title",
        "description",
        "tags",
        "arguments",
        "resources",
        "examples",
        "name",
        "uri",
        "required",
        "as",
        "values",
        "default",
        "expect",
        "list",
        "file",
        "where",
        "resource",
        "recent",
        "\"a\\nb\"",
        "x",
        "? a",
        "<<",
    ]);
    let value = prop::sample::select(vec![
        "",
        "x",
        "~",
        "null",
        "true",
        "1.10",
        "[",
        "]",
        "{",
        "}",
        "[a, b]",
        "{ a: b }",
        "\"",
        "'",
        "\"a\\nb\"",
        "&a b",
        "*a",
        "!!str x",
        "|",
        ">-",
        "  text",
        "- a",
        "# c",
        "a # b",
        "a: b",
        "runbook://{{ a }}",
        "doc://r",
        "v.txt",
        "{{ a }}",
        "한글",
        "\u{1}",
        "\t",
        "...",
        "---",
        "%YAML 1.2",
    ]);
    let indent = prop::sample::select(vec!["", "  ", "    ", "  - ", "- ", "\t"]);
    let colon = prop::sample::select(vec![": ", ":", " "]);
    (indent, key, colon, value).prop_map(|(i, k, c, v)| format!("{i}{k}{c}{v}"))
}

/// Well-formed pieces of a template over the arguments `a` and `b` and names that may or may not be bound.
fn nodes(depth: u32) -> BoxedStrategy<String> {
    let name = || prop::sample::select(vec!["a", "a", "b", "b", "y", "z"]);
    let local = || prop::sample::select(vec!["y", "z", "a"]);
    let condition = prop_oneof![
        name().prop_map(str::to_owned),
        (name(), name()).prop_map(|(a, b)| format!("not {a} and {b}")),
        (name(), name()).prop_map(|(a, b)| format!("{a} == {b}")),
        name().prop_map(|a| format!("{a} is defined")),
        name().prop_map(|a| format!("({a} or b)")),
    ];
    let expression = || {
        prop_oneof![
            4 => name().prop_map(str::to_owned),
            1 => (name(), name()).prop_map(|(a, b)| format!("{a} ~ {b}")),
            1 => (name(), name()).prop_map(|(a, b)| format!("{a} or {b}")),
            1 => (name(), name()).prop_map(|(a, b)| format!("{a} | default(value={b})")),
            1 => (name(), name()).prop_map(|(a, b)| format!("[x ~ {a} for x in {b} | split(pat=\",\")] | json")),
            1 => (name(), name(), name()).prop_map(|(a, b, c)| format!("{a} if {b} else {c}")),
        ]
    };
    let leaf = prop_oneof![
        2 => Just("t ".to_owned()),
        4 => expression().prop_map(|e| format!("{{{{ {e} }}}}")),
        2 => (local(), expression()).prop_map(|(n, e)| format!("{{% set {n} = {e} %}}")),
        1 => (local(), expression()).prop_map(|(n, e)| format!("{{% set_global {n} = {e} %}}")),
        1 => Just("{% include \"part.md\" %}".to_owned()),
    ];
    let leaf = prop::collection::vec(leaf, 0..5).prop_map(|nodes| nodes.concat());
    leaf.prop_recursive(depth, 24, 3, move |inner| {
        let many = || prop::collection::vec(inner.clone(), 0..3).prop_map(|nodes| nodes.concat());
        let local = || prop::sample::select(vec!["y", "z", "a"]);
        let name = || prop::sample::select(vec!["a", "b", "b", "y"]);
        prop_oneof![
            2 => many(),
            2 => (condition.clone(), many(), many())
                .prop_map(|(c, a, b)| format!("{{% if {c} %}}{a}{{% else %}}{b}{{% endif %}}")),
            2 => (condition.clone(), many()).prop_map(|(c, a)| format!("{{% if {c} %}}{a}{{% endif %}}")),
            1 => (condition.clone(), condition.clone(), many(), many())
                .prop_map(|(c, d, a, b)| format!("{{% if {c} %}}{a}{{% elif {d} %}}{b}{{% endif %}}")),
            2 => (local(), name(), many())
                .prop_map(|(l, n, a)| format!("{{% for {l} in {n} | split(pat=\",\") %}}{a}{{{{ loop.index }}}}{{% endfor %}}")),
            1 => (local(), name(), many(), many())
                .prop_map(|(l, n, a, b)| format!("{{% for {l} in {n} | split(pat=\",\") %}}{a}{{% else %}}{b}{{% endfor %}}")),
            1 => (local(), many()).prop_map(|(l, a)| format!("{{% set {l} %}}{a}{{% endset %}}")),
            1 => many().prop_map(|a| format!("{{% filter upper %}}{a}{{% endfilter %}}")),
        ]
    })
    .boxed()
}
