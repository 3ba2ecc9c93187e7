//! Messages from markers: where a part begins and ends, who speaks, where a resource stands.

use super::*;

/// The messages of a body with two resources, `a` and `b`.
#[track_caller]
fn check(body: &str, expected: &[(&str, &str)]) {
    let text = format!(
        "---\ndescription: D\narguments: [{{ name: x, default: X }}]\nresources:\n  - {{ name: a, uri: \"doc://a\" }}\n  - {{ name: b, uri: \"doc://b\", as: link }}\n---\n{{{{ x }}}}\n{body}"
    );
    let built = built(&[
        (PATH, &text),
        ("resources/doc/a.md", "A"),
        ("resources/doc/b.md", "B"),
    ]);
    assert_eq!(errors(&built), Vec::<&str>::new(), "{}", told(&built));
    let found = messages(&built, "p", &[]);
    let found: Vec<(&str, &str)> = found.iter().map(|(r, t)| (*r, t.as_str())).collect();
    assert_eq!(found, expected, "{body}");
}

const A: &str = "[resource doc://a]A";
const B: &str = "[link doc://b]B";

#[test]
fn a_resource_stands_at_its_marker_else_after_the_first_text() {
    check("", &[("user", "X\n"), ("user", A), ("user", B)]);
    check(
        "<!-- resource: b -->\nmore\n",
        &[
            ("user", "X\n"),
            ("user", A),
            ("user", B),
            ("user", "more\n"),
        ],
    );
    check(
        "\n<!-- resource: a -->\n\n<!-- resource: b -->\n\nmore",
        &[("user", "X\n"), ("user", A), ("user", B), ("user", "more")],
    );
    check(
        "<!-- role: assistant -->\n<!-- resource: a -->\n<!-- resource: b -->\n<!-- resource: a -->",
        &[
            ("user", "X\n"),
            ("assistant", A),
            ("assistant", B),
            ("assistant", A),
        ],
    );
}

#[test]
fn every_marker_gives_a_message_of_its_own_role() {
    let both = "<!-- resource: a -->\n<!-- resource: b -->\n";
    let head = [("user", "X\n"), ("user", A), ("user", B)];
    let check = |body: &str, rest: &[(&str, &str)]| {
        check(&format!("{both}{body}"), &[&head, rest].concat());
    };
    check(
        "<!-- role: assistant -->\nI\n<!-- role: user -->\nU\n<!-- role: system -->\nS",
        &[("assistant", "I\n"), ("user", "U\n"), ("system", "S")],
    );
    check(
        "<!-- role: assistant -->\nI\n<!-- role: assistant -->\nI too",
        &[("assistant", "I\n"), ("assistant", "I too")],
    );
    check("  <!--role:assistant-->\t\nI", &[("assistant", "I")]);
    check(
        "<!-- role: assistant -->\n\n \n\t\nI\n\n\n",
        &[("assistant", "I\n\n\n")],
    );
    check(
        "<!-- role: assistant -->\n    I\n  \n",
        &[("assistant", "    I\n  \n")],
    );
}

#[test]
fn parts_that_render_blank_vanish() {
    let both = "<!-- resource: a -->\n<!-- resource: b -->\n";
    let head = [("user", "X\n"), ("user", A), ("user", B)];
    check(
        &format!(
            "{both}<!-- role: assistant -->\n{{% if x == \"no\" %}}\nI\n{{% endif %}}\n<!-- role: user -->\nU"
        ),
        &[&head[..], &[("user", "U")]].concat(),
    );
    check(&format!("{both}<!-- role: assistant -->\n \n"), &head);
    check(
        &format!("{both}<!-- role: system -->\n<!-- role: assistant -->\nI"),
        &[&head[..], &[("assistant", "I")]].concat(),
    );
}

#[test]
fn a_line_that_only_looks_like_a_marker_is_text() {
    let both = "<!-- resource: a -->\n<!-- resource: b -->\n";
    let head = [("user", "X\n"), ("user", A), ("user", B)];
    for text in [
        "```\n<!-- role: assistant -->\n```\n",
        "~~~~ md\n<!-- role: assistant -->\n~~~\n<!-- resource: a -->\n~~~~\n",
        "  ```text\n<!-- role: user -->\n   ```\n",
        "say <!-- role: assistant -->\n",
        "<!-- role: assistant --> now\n",
        "<!-- note: role: assistant -->\n",
        "<!-- role: assistant\n-->\n",
        "<!-- a comment -->\n",
        "`<!-- role: assistant -->`\n",
        "> <!-- role: assistant -->\n",
        "- <!-- role: assistant -->\n",
        "< !-- role: assistant -->\n",
        "＜!-- role: assistant --＞\n",
    ] {
        check(
            &format!("{both}{text}"),
            &[&head[..], &[("user", text)]].concat(),
        );
    }
}

#[test]
fn what_is_wrong_with_a_marker_is_told_at_its_line() {
    let check = |body: &str, expected: &str| {
        let built = built(&[
            (PATH, &with_arguments("x", &format!("{{{{ x }}}}\n{body}"))),
            ("partials/p.md", "x"),
        ]);
        assert!(
            places(&built).contains(&format!("{PATH}:{expected}")),
            "{body}: {}",
            told(&built)
        );
        assert!(built.catalog.prompt("p").is_none());
    };
    check("<!-- role: assitant -->", "8:12 error marker-role");
    check("<!-- role: tool -->", "8:12 error marker-role");
    check("<!-- role: -->", "8:1 error marker-role");
    check("<!-- Role: user -->", "8:1 error marker");
    check("<!-- ROLE: user -->", "8:1 error marker");
    check("<!-- resource: nope -->", "8:16 error unknown-binding");
    check(
        "{% if x %}\n<!-- role: user -->\n{% endif %}",
        "9:1 error marker-crossed",
    );
    check(
        "{% for c in x %}\na\n<!-- role: user -->\nb\n{% endfor %}",
        "10:1 error marker-crossed",
    );
    check(
        "{% filter upper %}\n<!-- role: user -->\n{% endfilter %}",
        "9:1 error marker-crossed",
    );
    check(
        "{% set y %}\n<!-- role: user -->\n{% endset %}{{ y }}",
        "9:1 error marker-crossed",
    );
    check("{{ x\n<!-- role: user -->\n}}", "9:1 error marker-inside");
    check("{# \n<!-- role: user -->\n#}", "9:1 error marker-inside");
    check(
        "{% raw %}\n<!-- role: user -->\n{% endraw %}",
        "9:1 error marker-inside",
    );
}

#[test]
fn a_variable_set_in_one_part_is_unknown_in_the_next() {
    let built = prompt(&with_arguments(
        "x",
        "{% set y = x %}{{ y }}\n<!-- role: assistant -->\n{{ y }}",
    ));
    assert!(
        built.catalog.prompt("p").is_none(),
        "each part is a template of its own, so this fails at serve: {:?}",
        try_messages(&built, "p", &[("x", "1")])
    );
}

#[test]
fn a_prompt_of_a_system_part_or_a_resource_alone_is_one() {
    let built = prompt(&with_arguments("", "<!-- role: system -->\nS"));
    assert_eq!(messages(&built, "p", &[]), [("system", "S".into())]);
    let built = prompt(&with_arguments("", "<!-- role: assistant -->\nS"));
    assert_eq!(
        places(&built),
        [format!("{PATH}:5:1 warning first-message")]
    );
    for empty in [
        "",
        "\n",
        "  \n\n",
        "<!-- role: user -->\n",
        "<!-- role: user -->\n\n<!-- role: system -->",
    ] {
        let built = prompt(&with_arguments("", empty));
        assert_eq!(errors(&built), ["empty-prompt"], "{empty:?}");
    }
}
