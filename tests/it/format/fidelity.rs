//! What holds for every text: data is never parsed, text is served to the byte, the reader never panics, what passes
//! the check renders, a fix is a fix.

use cuebook::prompt::Limits;
use proptest::prelude::*;

use super::templates::FOREIGN;
use super::*;

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
    #![proptest_config(ProptestConfig::with_cases(512))]

    /// Invariant 3: a value comes out once, byte for byte, in the same number of messages of the same roles.
    #[test]
    fn argument_data_is_never_parsed(a in soup(12), b in soup(12)) {
        prop_assume!(!a.is_empty());
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
