//! Libraries with a fault, one or more for each code of a problem.

use crate::format::PATH;

/// Paths with their bytes.
pub(super) type Files = Vec<(String, Vec<u8>)>;

/// Prompts with a fault: its code, lines of the front matter, the body.
pub(super) const PROMPTS: &[(&str, &str, &str)] = &[
    ("argument-member", "arguments: [{ name: a }]\n", "{{ a.b }}"),
    (
        "argument-name",
        "arguments:\n  - description: x\n  - name: a-b\n  - name: loop\n  - name: \"\"\n  - name: aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa\n",
        "x",
    ),
    (
        "argument-order",
        "arguments:\n  - name: a\n  - name: b\n    required: true\n",
        "{{ a }}{{ b }}",
    ),
    ("client-executes", "", "!`ls` $ARGUMENTS @src/main.rs"),
    ("control-character", "title: \"a\\x07b\"\n", "x"),
    (
        "duplicate-argument",
        "arguments: [{ name: a }, { name: a }]\n",
        "{{ a }}",
    ),
    ("duplicate-key", "title: a\ntitle: b\n", "x"),
    (
        "duplicate-resource",
        "resources: [{ name: r, uri: \"runbook://a\" }, { name: r, uri: \"runbook://a\" }]\n",
        "x",
    ),
    ("empty-prompt", "", ""),
    (
        "example-expect",
        "examples:\n  - name: e\n    expect: [nothing]\n",
        "x",
    ),
    (
        "example-fails",
        "arguments: [{ name: a, required: true }]\nexamples:\n  - name: e\n",
        "{{ a }}",
    ),
    (
        "example-fails",
        "arguments: [{ name: a }]\nresources: [{ name: r, uri: \"runbook://{{ a }}\", required: true }]\nexamples:\n  - arguments: { a: aa }\n  - name: e\n",
        "{{ a }}",
    ),
    ("first-message", "", "<!-- role: assistant -->\nx"),
    (
        "first-message",
        "resources: [{ name: r, uri: \"runbook://a\" }]\n",
        "<!-- resource: r -->\nx",
    ),
    (
        "foreign-template",
        "",
        "${{ github.sha }} {{ .Values.image }} {{ $labels.instance }} {{ .CommonLabels.alertname }} {{ range .Items }} {{ .x }} {{ \"a\": 1 }} {{#if x}} {% 100 %} {% assign x = 1 %} {{ \u{e9} }} {#id",
    ),
    ("foreign-template", "", "a {{ b"),
    ("hyphen-in-name", "", "{{ svc-name }}"),
    (
        "include-dynamic",
        "arguments: [{ name: a }]\n",
        "{% include a %}{{ a }}",
    ),
    ("include-missing", "", "{% include \"nope.md\" %}"),
    ("include-name", "", "{% include \"../x\" %}"),
    (
        "iterates-text",
        "arguments: [{ name: a }]\n",
        "{% for x in a %}{{ x }}{% endfor %}",
    ),
    ("marker", "", "<!-- Role: user -->\nx"),
    (
        "marker-crossed",
        "arguments: [{ name: a }]\n",
        "{% if a %}\n<!-- role: user -->\nx{% endif %}",
    ),
    ("marker-inside", "", "{# x\n<!-- role: user -->\n#}x"),
    (
        "marker-inside",
        "",
        "{% raw %}\n<!-- role: user -->\n{% endraw %}",
    ),
    ("marker-inside", "", "{{ 'x\n<!-- role: user -->\n' }}"),
    ("marker-role", "", "<!-- role: tool -->\nx"),
    ("marker-role", "", "<!-- role: assitant -->\nx"),
    (
        "missing-resource",
        "resources: [{ name: r, uri: \"runbook://zzzz\" }]\n",
        "x",
    ),
    ("null-value", "title:\n", "x"),
    ("one-line", "title: |\n  a\n  b\n", "x"),
    ("render-fails", "", "{{ throw(message='x') }}"),
    (
        "render-fails",
        "arguments: [{ name: a, required: true }]\n",
        "{{ a }}{{ throw(message='x') }}",
    ),
    (
        "required-default",
        "arguments: [{ name: a, required: true, default: x }]\n",
        "{{ a }}",
    ),
    ("reserved-name", "", "{{ __tera_context }}"),
    (
        "resource-as",
        "resources: [{ name: r, uri: \"runbook://a\", as: nope }]\n",
        "x",
    ),
    ("resource-binding", "resources: [{ name: r }]\n", "x"),
    (
        "resource-name",
        "resources: [{ name: a-b, uri: \"runbook://a\" }, { name: loop, uri: \"runbook://a\" }]\n",
        "x",
    ),
    (
        "resource-type",
        "resources: [{ name: r, uri: \"runbook://a\", as: image }]\n",
        "x",
    ),
    (
        "resource-type",
        "resources: [{ name: r, uri: \"image://i\", as: text }]\n",
        "x",
    ),
    ("resource-uri", "resources: [{ name: r, uri: nope }]\n", "x"),
    (
        "resource-uri",
        "resources: [{ name: r, uri: \"runbook://{x}\" }]\n",
        "x",
    ),
    (
        "resource-uri",
        "resources: [{ name: r, uri: \"runbook://a/../b\" }]\n",
        "x",
    ),
    (
        "resource-uri",
        "arguments: [{ name: a }]\nresources: [{ name: r, uri: \"runbook://../{{ a }}\" }]\n",
        "x",
    ),
    (
        "resource-uri",
        "arguments: [{ name: a }]\nresources: [{ name: r, uri: \"x{{ a }}\" }]\n",
        "x",
    ),
    (
        "resource-uri",
        "arguments: [{ name: a }]\nresources: [{ name: r, uri: \"runbook://{{ a | split(pat=',') }}\" }]\n",
        "x",
    ),
    (
        "sometimes-set",
        "arguments: [{ name: a }]\n",
        "{% if a %}{% set x = 1 %}{% endif %}{{ x }}",
    ),
    ("template-syntax", "", "{{ 1 | nope }}"),
    ("template-syntax", "", "{{ 'x' | uper }}"),
    ("template-syntax", "", "{% nope %}"),
    ("template-syntax", "", "{% if x"),
    ("template-syntax", "", "{% if true %}x"),
    ("template-syntax", "", "x{% endif %}"),
    ("template-syntax", "", "{{ 1 is nope }}"),
    ("template-syntax", "", "{{ nope() }}"),
    ("template-syntax", "", "{{ 1 + }}"),
    ("template-syntax", "", "{{ 1 | default(1) }}"),
    ("tight-comment", "", "{#x #}y"),
    ("undeclared-variable", "", "{{ nope }}"),
    (
        "undeclared-variable",
        "arguments: [{ name: service }]\n",
        "{{ servce }}{{ service }}{{ zzzz }}",
    ),
    (
        "undeclared-variable",
        "",
        "{% set x = 1 %}{{ x }}\n<!-- role: user -->\n{{ x }}",
    ),
    ("undeclared-variable", "", "{% include \"reads.md\" %}"),
    (
        "sometimes-set",
        "arguments: [{ name: nope }]\n",
        "{% if nope %}{% set other = 1 %}{% endif %}{% include \"reads.md\" %}",
    ),
    (
        "unknown-argument",
        "arguments: [{ name: a }]\nexamples:\n  - arguments: { zzzz: x }\n",
        "{{ a }}",
    ),
    (
        "unknown-argument",
        "examples:\n  - arguments: { a: x }\n",
        "x",
    ),
    (
        "unknown-argument",
        "arguments: [{ name: a, values: { file: v.txt, where: zzzz } }]\n",
        "{{ a }}",
    ),
    ("unknown-binding", "", "<!-- resource: x -->\nx"),
    ("unknown-binding", "", "{{ resources.x.text }}"),
    (
        "unknown-binding",
        "resources: [{ name: r, uri: \"runbook://a\" }]\n",
        "{{ resources.r.zzzzzz }}",
    ),
    ("unknown-key", "tag: x\n", "x"),
    ("unknown-key", "zzzzzzz: x\n", "x"),
    (
        "unknown-key",
        "arguments: [{ name: a, zzzzzzzz: 1, values: { zzzzzzz: 1 } }]\nresources: [{ zzzzzzzz: 1 }]\nexamples: [{ zzzzzzzz: 1 }]\n",
        "{{ a }}",
    ),
    (
        "unknown-scheme",
        "resources: [{ name: r, uri: \"zzzz://x\" }]\n",
        "x",
    ),
    ("unused-argument", "arguments: [{ name: a }]\n", "x"),
    (
        "values-file",
        "arguments: [{ name: a, values: { file: zzzzzzzz.txt } }]\n",
        "{{ a }}",
    ),
    (
        "values-file",
        "arguments: [{ name: a, values: { file: ../zzzzzzzz } }]\n",
        "{{ a }}",
    ),
    (
        "values-resource",
        "arguments: [{ name: a, values: { resource: x } }]\n",
        "{{ a }}",
    ),
    (
        "values-resource",
        "arguments: [{ name: a, values: { resource: \"runbook://{a}/{b}\" } }]\n",
        "{{ a }}",
    ),
    (
        "values-where",
        "arguments: [{ name: a, values: { where: a } }]\n",
        "{{ a }}",
    ),
    (
        "wrong-type",
        "tags: x\ntitle: [a]\narguments: [x, { name: b, required: 1 }, { name: c, values: x }]\nexamples:\n  - arguments: x\n",
        "x",
    ),
    ("yaml-anchor", "title: &x a\n", "x"),
    ("yaml-comment", "title: a # b\n", "x"),
    ("yaml-depth", "title: [[[[[[[[[[[[x]]]]]]]]]]]]\n", "x"),
    ("yaml-documents", "title: a\n--- b\n", "x"),
    ("yaml-key", "? [a]\n: x\n", "x"),
    ("yaml-syntax", "title: a: b\n", "x"),
    ("yaml-syntax", "title: [a\n", "x"),
    ("yaml-tag", "title: !!str a\n", "x"),
];

/// Files with a fault: its code, path and text.
pub(super) const FILES: &[(&str, &str, &str)] = &[
    (
        "approval",
        "cuebook.toml",
        "[[approval]]\n[[approval]]\npaths = [\"/x\", \"x/\", \"a//b\", \"a**\", \"\"]\nrequired = 99\nreviewers = [\"a b\"]\n",
    ),
    ("client-command", "prompts/t/help.md", "x"),
    ("folder-name", "prompts/Bad Folder/p.md", "x"),
    ("front-matter-open", PATH, "---\ntitle: x\n"),
    ("front-matter-place", PATH, "\n---\ntitle: x\n---\nhi"),
    ("wrong-type", PATH, "---\nx\n---\nhi"),
    ("label-name", "labels.toml", "[latest]\n"),
    (
        "label-prompt",
        "labels.toml",
        "[production]\nnope = \"v1\"\n",
    ),
    (
        "label-prompt",
        "labels.toml",
        "[production]\nouter = \"v1\"\n",
    ),
    (
        "label-version",
        "labels.toml",
        "[production]\nother = \"x\"\n",
    ),
    (
        "lfs-pointer",
        PATH,
        "version https://git-lfs.github.com/spec/v1\noid sha256:0\n",
    ),
    ("library-format", "cuebook.toml", "format = 2\n"),
    (
        "marker-in-partial",
        "partials/x.md",
        "<!-- role: user -->\n",
    ),
    ("no-description", PATH, "x"),
    ("nul", PATH, "a\0b"),
    ("prompt-name", "prompts/t/Bad Name.md", "x"),
    ("resource-name", "resources/runbook/a\u{7}b", "x"),
    ("resource-place", "resources/x.md", "x"),
    ("resource-scheme", "resources/http/x.md", "x"),
    ("resource-scheme", "resources/Bad Scheme/x.md", "x"),
    (
        "resource-template",
        "cuebook.toml",
        "[[resource]]\ntemplate = \"a://{b}\"\n[[resource]]\ntemplate = \"a://{b}\"\n[[resource]]\ntemplate = \"x\"\n[[resource]]\ntemplate = \"http://{a}\"\n[[resource]]\ntemplate = \"a://x\"\n[[resource]]\ntemplate = \"a://{b\"\n[[resource]]\ntemplate = \"a://b}\"\n[[resource]]\ntemplate = \"a://{b}{c}\"\n[[resource]]\ntemplate = \"a://{+b}\"\n",
    ),
    ("stray-file", "prompts/x.txt", "x"),
    ("template-syntax", "partials/x.md", "{{ 1 | nope }}"),
    ("toml", "cuebook.toml", "x = \n"),
    ("toml", "cuebook.toml", "zzzz = 1\n"),
    ("unlabelled", "cuebook.toml", "unlabelled = \"x\"\n"),
    ("values-line", "values/x.txt", "\tx\na\tb\tc\td\na\u{7}b\n"),
];

/// A prompt of lines of the front matter and a body.
pub(super) fn prompt(front: &str, body: &str) -> String {
    format!("---\ndescription: D\n{front}---\n{body}")
}

/// Libraries that are too large to be written out: the code, and the files.
pub(super) fn made() -> Vec<(&'static str, Files)> {
    let one = |text: String| vec![(PATH.to_owned(), text.into_bytes())];
    let with = |text: String, partials: Vec<(String, String)>| {
        let mut files = one(text);
        let partials = partials.into_iter();
        files.extend(partials.map(|(name, text)| (format!("partials/{name}"), text.into_bytes())));
        files
    };
    let include = |name: &str| format!("{{% include \"{name}\" %}}");
    let numbered = |count: usize, text: &dyn Fn(usize) -> String| -> Vec<(String, String)> {
        (0..count).map(|n| (format!("n{n}.md"), text(n))).collect()
    };
    let all =
        |count: usize| -> String { (0..count).map(|n| include(&format!("n{n}.md"))).collect() };
    let arguments: String = (0..33)
        .map(|n| format!("  - name: a{n}\n"))
        .collect::<Vec<_>>()
        .concat();
    vec![
        (
            "arguments-count",
            one(prompt(&format!("arguments:\n{arguments}"), "x")),
        ),
        (
            "examples-count",
            one(prompt(
                &format!("examples:\n{}", "  - name: e\n".repeat(65)),
                "x",
            )),
        ),
        (
            "elif-count",
            one(prompt(
                "arguments: [{ name: a }]\n",
                &format!("{{% if a %}}{}{{% endif %}}", "{% elif a %}".repeat(257)),
            )),
        ),
        ("file-size", one("x".repeat(70_000))),
        (
            "front-matter-size",
            one(prompt(&format!("title: {}\n", "x".repeat(17_000)), "x")),
        ),
        (
            "include-count",
            with(prompt("", &all(61)), numbered(61, &|n| n.to_string())),
        ),
        (
            "include-cycle",
            with(
                prompt("", &include("n0.md")),
                numbered(2, &|n| include(&format!("n{}.md", 1 - n))),
            ),
        ),
        (
            "include-depth",
            with(
                prompt("", &include("n0.md")),
                numbered(45, &|n| include(&format!("n{}.md", n + 1))),
            ),
        ),
        (
            "include-fan-out",
            with(
                prompt("", &include("n0.md")),
                numbered(4, &|n| {
                    if n == 3 {
                        "x".to_owned()
                    } else {
                        include(&format!("n{}.md", n + 1)).repeat(12)
                    }
                }),
            ),
        ),
        (
            "include-size",
            with(prompt("", &all(6)), numbered(6, &|_| "x".repeat(60_000))),
        ),
    ]
}

/// Libraries whose fault is in the names of files, in bytes, or in a secret: the code, and the files.
pub(super) fn named() -> Vec<(&'static str, Files)> {
    let two = |paths: [&str; 2]| paths.map(|path| (path.to_owned(), b"x".to_vec())).to_vec();
    // put together here, so that this file holds none
    let token = format!("{}_{}", "ghp", "k3Vd0QxT9bLw2RzYpJ7hN5sCfG8mA1uEo6Xi");
    let secret = prompt("", &format!("{{{{ nope }}}} {token}"));
    vec![
        (
            "duplicate-name",
            two(["prompts/a/same-name.md", "prompts/b/same_name.md"]),
        ),
        (
            "duplicate-name",
            two(["values/\u{e9}.txt", "values/e\u{301}.txt"]),
        ),
        (
            "resource-clash",
            two(["resources/runbook/X.md", "resources/runbook/x.md"]),
        ),
        ("not-utf8", vec![(PATH.to_owned(), b"ab\n\xffc".to_vec())]),
        ("secret", vec![(PATH.to_owned(), secret.into_bytes())]),
        ("symlink", two(["prompts/symlink", "prompts/t/x.md"])),
        ("submodule", two(["prompts/submodule", "prompts/t/x.md"])),
        (
            "deep-folder",
            two(["prompts/deep-folder", "prompts/t/x.md"]),
        ),
        ("bad-path", two(["prompts/bad-path", "prompts/t/x.md"])),
    ]
}
