//! Findings of reviews, each with its kind.

use super::{PATH, built, errors, places, prompt, told, with_arguments};

#[test]
fn a_prompt_that_can_never_render_is_refused() {
    for body in [
        "{{ a }}{{ loop.index }}",
        "{{ a }}{{ self }}",
        "{{ a }}{{ a.b }}",
        "{{ a + 1 }}",
        "{{ a }}{{ 1 / 0 }}",
        "{{ a | int }}",
    ] {
        let built = prompt(&with_arguments("a", body));
        assert!(!errors(&built).is_empty(), "{body}");
        assert!(built.catalog.prompt("p").is_none(), "{body}");
    }
    for body in [
        "{{ a }}{% for x in [1] %}{{ loop.index }}{% endfor %}",
        "{% if a %}{{ a | int }}{% endif %}",
        "{{ a ~ 1 }}",
    ] {
        let built = prompt(&with_arguments("a", body));
        assert!(errors(&built).is_empty(), "{body}: {}", told(&built));
    }
}

#[test]
fn a_binding_that_never_finds_anything_is_refused() {
    let check = |uri: &str, refused: bool| {
        let built = built(&[
            (
                PATH,
                &format!(
                    "---\ndescription: D\narguments: [{{ name: a }}]\nresources: [{{ name: r, uri: \"{uri}\" }}]\n---\n{{{{ a }}}}"
                ),
            ),
            ("resources/runbook/x.md", "X"),
        ]);
        assert_eq!(
            errors(&built).contains(&"resource-uri"),
            refused,
            "{uri}: {}",
            told(&built)
        );
    };
    check("runbook://{a}", true);
    check("runbook://../x/{{ a }}", true);
    check("runbook:/{{ a }}", true);
    check("runbook://x//{{ a }}", true);
    check("runbook://{{ a }}", false);
    check("runbook://team/{{ a }}-{{ a }}", false);
    check("{{ a }}", false);
}

#[test]
fn what_is_open_or_closes_nothing_is_named_where_it_stands() {
    let check = |body: &str, place: &str, says: &str| {
        let built = prompt(&with_arguments("a", &format!("{{{{ a }}}}{body}")));
        assert_eq!(
            places(&built),
            [format!("{PATH}:{place} error template-syntax")],
            "{body}"
        );
        assert!(told(&built).contains(says), "{}", told(&built));
    };
    check("\n{% if a %}\ntext", "8:1", "`{% if a %}` is never closed");
    check(
        "\n{% if a %}{% for x in [1] %}{% endfor %}",
        "8:1",
        "{% endif %}",
    );
    check("\ntext {% endif %}", "8:6", "`endif` closes nothing");
}

#[test]
fn a_loop_over_a_text_says_how_to_split_it() {
    let built = prompt(&with_arguments(
        "a",
        "{% for x in a %}[{{ x }}]{% endfor %}",
    ));
    assert_eq!(
        places(&built),
        [format!("{PATH}:7:13 warning iterates-text")]
    );
    assert!(told(&built).contains("split(pat=\",\")"));
}

#[test]
fn a_long_line_is_shown_where_the_finding_is() {
    let line = format!(
        "{}Use {{{{ langauge }}}}",
        "You are a senior reviewer. ".repeat(12)
    );
    let built = prompt(&with_arguments("", &line));
    let problem = built.problems.iter().find(|p| p.is_error()).unwrap();
    let excerpt: Vec<char> = problem.excerpt.as_ref().unwrap().chars().collect();
    let from = problem.column as usize - 1;
    let shown: String = excerpt[from..from + problem.width as usize]
        .iter()
        .collect();
    assert_eq!(shown, "langauge");
}

#[test]
fn a_marker_is_pointed_at_where_its_word_stands() {
    let built = prompt(&with_arguments("", "x\n<!-- resource: so -->\n"));
    assert_eq!(
        places(&built),
        [format!("{PATH}:5:16 error unknown-binding")]
    );
}

#[test]
fn a_name_in_another_script_is_told_where_it_belongs() {
    let built = built(&[(
        "prompts/t/결제장애대응초동조치프롬프트.md",
        "---\ndescription: D\n---\nx",
    )]);
    assert!(
        told(&built).contains("other scripts go in `title`"),
        "{}",
        told(&built)
    );
}

#[test]
fn a_newer_format_is_said_before_its_new_words() {
    let built = built(&[("cuebook.toml", "format = 2\n[policy]\napprovals = 1\n")]);
    assert_eq!(errors(&built), ["library-format"]);
}

#[test]
fn front_matter_that_does_not_begin_the_file_is_told() {
    for text in [
        "\n---\ndescription: D\n---\nx",
        "---yaml\ndescription: D\n---\nx",
    ] {
        let built = prompt(text);
        assert!(
            told(&built).contains("looks like front matter"),
            "{}",
            told(&built)
        );
    }
    let built = prompt("---\ndescription: D\n---\n\n---\nx\n---\n");
    assert!(built.problems.is_empty(), "{}", told(&built));
}
