//! The two lanes: which prompts are in which and why, and that both give the same, byte for byte.

use std::sync::LazyLock;

use cuebook::catalog::build::{Built, build};
use cuebook::catalog::{MemoryTree, Revision};
use cuebook::prompt::{BoundArguments, Content, Lane, Limits, Rendered, render};
use cuebook::starter::{self, Language};
use cuebook::workers::Renderer;
use proptest::prelude::*;
use proptest::sample::select;

use crate::support::worker_settings;

/// A library with one prompt whose body is given; nothing is rendered.
fn library(body: &str) -> Built {
    let prompt = format!(
        "---\ndescription: D\narguments:\n  - name: a\n  - name: b\nresources:\n  - name: r\n    uri: \"runbook://{{{{ a }}}}\"\n    required: false\n---\n{body}"
    );
    let tree = MemoryTree::default()
        .with("prompts/p.md", prompt)
        .with("partials/fast.md", "fast {{ b | upper }}\r\n")
        .with(
            "partials/deep.md",
            "{% include \"fast.md\" %}{% include \"fast.md\" %}",
        )
        .with(
            "partials/loop.md",
            "one\n{% for x in b %}{{ x }}{% endfor %}",
        )
        .with(
            "resources/runbook/one.md",
            "# One\n한글 <untrusted> & \"quotes\"\n",
        );
    let none = &cuebook::catalog::examples::none;
    build(&tree, Revision::WorkTree, &Limits::default(), None, none).unwrap()
}

/// `fast`, or `line:column why` of what keeps a body out of the fast lane.
#[track_caller]
fn lane(body: &str) -> String {
    // both arguments are used, whatever the body
    let built = library(&format!("{body}\n{{{{ a }}}}{{{{ b }}}}"));
    let found = built.catalog.prompt("p");
    let prompt = found.unwrap_or_else(|| panic!("{body}: {:?}", built.problems));
    match &prompt.lane {
        Lane::Fast(_) => "fast".into(),
        Lane::Worker(reason) => {
            let file = reason.path.rsplit('/').next().unwrap();
            // the front matter has ten lines
            let line = if file == "p.md" {
                reason.line - 10
            } else {
                reason.line
            };
            format!("{file}:{line}:{} {}", reason.column, reason.why)
        }
    }
}

#[test]
fn what_is_in_the_fast_lane() {
    for body in [
        "text",
        "{# comment #}{% raw %}{{ x }}{% endraw %}",
        "{{ a }}{{ a | trim | upper }}{{ 'x' }}{{ 1.5 }}{{ true }}",
        "{{ a | default(value=b) | truncate(length=3, end='…') }}",
        "{{ a | replace(from='aa', to='bbbb') }}{{ a | indent(width=2) }}{{ a | json }}",
        "{{ a | untrusted(label='x') }}{{ a | escape }}{{ a | length }}",
        "{{ resources.r.text | trim }}{% if resources.r.found %}{{ resources.r.uri }}{% endif %}",
        "{% if a == 'x' and not (b or a in ['x', 'y']) %}1{% elif a is containing(pat='x') %}2{% else %}3{% endif %}",
        "{% if a not in b and a is not defined %}1{% endif %}",
        "{% for x in ['a', 'b', 1] %}{{ loop.index }} {{ x | upper }} {{ a }}{% else %}none{% endfor %}",
        "{% include \"deep.md\" %}",
    ] {
        assert_eq!(lane(body), "fast", "{body}");
    }
}

#[test]
fn what_is_not_and_why() {
    for (body, why) in [
        (
            "{% for x in a %}{{ x }}{% endfor %}",
            "p.md:1:13 a loop over a value: how long it is depends on who calls",
        ),
        (
            "\n{% for x in range(end=3) %}{{ x }}{% endfor %}",
            "p.md:2:13 a loop over a value: how long it is depends on who calls",
        ),
        (
            "{% for x in ['a'] | sort %}{{ x }}{% endfor %}",
            "p.md:1:19 `|` stands here",
        ),
        (
            "{% set x = a %}{{ x }}",
            "p.md:1:4 `set` keeps a value, which may grow",
        ),
        (
            "{% filter upper %}x{% endfilter %}",
            "p.md:1:4 `filter` runs over a text of any length",
        ),
        ("{{ a ~ b }}", "p.md:1:6 `~` joins texts, which may grow"),
        ("{{ 2 * 3 }}", "p.md:1:6 `*` calculates"),
        (
            "{{ a if b else 'x' }}",
            "p.md:1:6 a condition inside an expression",
        ),
        (
            "{{ [a, b] | length }}",
            "p.md:1:4 it builds a list or a map",
        ),
        ("{{ a[0] }}", "p.md:1:5 it reads by an index"),
        ("{{ range(end=3) }}", "p.md:1:9 it calls `range`"),
        (
            "{{ a | split(pat=',') | first }}",
            "p.md:1:8 `split` works on a list",
        ),
        (
            "{{ resources | json }}",
            "p.md:1:4 it reads a resource as a whole",
        ),
        (
            "{{ a | replace(from='a', to=b) }}",
            "p.md:1:29 a filter whose argument is not written out",
        ),
        (
            "{{ a | replace(from='', to='b') }}",
            "p.md:1:8 `replace` puts in a text wherever it finds one",
        ),
        (
            "{{ a | replace(from='a', to='0123456789') }}",
            "p.md:1:8 `replace` may make 10 times as much of a value; at most 8 times is allowed",
        ),
        (
            "{{ a | indent(width=100) }}",
            "p.md:1:8 `indent` may make 101 times as much of a value; at most 8 times is allowed",
        ),
        (
            "{{ a | escape | upper }}",
            "p.md:1:17 the filters may make 18 times as much of a value; at most 8 times is allowed",
        ),
        (
            "x {% include \"loop.md\" %}",
            "loop.md:2:13 a loop over a value: how long it is depends on who calls",
        ),
        (
            &"{% for x in [1,2,3,4,5,6,7,8,9] %}".repeat(5),
            "p.md:1:140 it runs up to 66430 constructs; at most 16384 are run in the fast lane (fast_lane_steps)",
        ),
    ] {
        let closing = "{% endfor %}".repeat(if body.starts_with("{% for x in [1") {
            5
        } else {
            0
        });
        assert_eq!(lane(&format!("{body}{closing}")), why, "{body}");
    }
}

#[test]
fn a_fast_prompt_with_values_too_large_for_it_goes_to_a_worker() {
    let built = library(&"{{ a | upper | length }}{{ b }}".repeat(50));
    let prompt = built.catalog.prompt("p").unwrap();
    assert!(matches!(prompt.lane, Lane::Fast(_)), "{:?}", prompt.lane);
    assert!(prompt.lane.admits(5_000));
    assert!(!prompt.lane.admits(1024 * 1024));
}

#[test]
fn starter_prompts_without_loops_are_fast() {
    for language in [Language::En, Language::Ko] {
        let tree = starter::files(language)
            .into_iter()
            .fold(MemoryTree::default(), |tree, file| {
                tree.with(file.path, file.bytes)
            });
        let none = &cuebook::catalog::examples::none;
        let built = build(&tree, Revision::WorkTree, &Limits::default(), None, none).unwrap();
        let prompts = built.catalog.list(None);
        assert!(prompts.len() > 3);
        for prompt in prompts {
            let loops = prompt.text().contains("{% for")
                || prompt
                    .partials
                    .iter()
                    .any(|p| p.source.text.contains("{% for"));
            assert_eq!(
                matches!(prompt.lane, Lane::Worker(_)),
                loops,
                "{}: {:?}",
                prompt.name,
                prompt.lane
            );
        }
    }
}

/// What is seen of a render: roles, texts, and which resource stands where.
fn seen(rendered: &Rendered) -> Vec<String> {
    let message = |message: &cuebook::prompt::Message| match &message.content {
        Content::Text(text) => format!("{}: {text}", message.role.as_str()),
        Content::Resource {
            resource, embed, ..
        } => format!(
            "{}: {embed:?} {} {}",
            message.role.as_str(),
            resource.uri,
            resource.sha256
        ),
    };
    let mut out: Vec<String> = rendered.messages.iter().map(message).collect();
    out.push(rendered.nonce_used.to_string());
    out
}

static RENDERER: LazyLock<Renderer> = LazyLock::new(|| Renderer::new(worker_settings()));

/// Pieces of templates of the fast class.
fn piece() -> impl Strategy<Value = String> {
    let value = || {
        select(vec![
            "a",
            "b",
            "resources.r.text",
            "resources.r.uri",
            "'lit \\' x'",
            "7",
            "0.5",
            "true",
        ])
    };
    let filter = || {
        select(vec![
            "",
            " | trim",
            " | upper",
            " | lower",
            " | title",
            " | capitalize",
            " | json",
            " | escape",
            " | str | length",
            " | default(value='d')",
            " | str | truncate(length=2)",
            " | str | untrusted(label='u')",
            " | str | indent(width=3, first=true)",
            " | str | replace(from='a', to='AB')",
            " | str | reverse",
            " | newlines_to_br",
            " | wordcount",
        ])
    };
    let condition = || {
        select(vec![
            "a",
            "not a",
            "a == b",
            "a != 'x'",
            "a in b",
            "b not in a",
            "a is defined",
            "a < b",
            "a and (b or not a)",
            "a is starting_with(pat='x')",
            "resources.r.found",
            "a in ['x', '']",
        ])
    };
    let leaf = prop_oneof![
        "[a-z 한\\r\\n&<>\"{}%#-]{0,12}".prop_map(|text| text.replace(['{', '#'], "")),
        (
            value(),
            filter(),
            select(vec![("{{ ", " }}"), ("{{- ", " -}}")])
        )
            .prop_map(|(value, filter, (open, close))| format!("{open}{value}{filter}{close}")),
        Just("{% include \"fast.md\" %}".to_owned()),
        Just("{% include \"deep.md\" %}".to_owned()),
        Just("{% raw %}{{ a }}{% endraw %}".to_owned()),
        Just("{# a comment #}".to_owned()),
    ];
    leaf.prop_recursive(3, 24, 4, move |inner| {
        let many = prop::collection::vec(inner, 0..4).prop_map(|all| all.concat());
        prop_oneof![
            (
                condition(),
                many.clone(),
                condition(),
                many.clone(),
                many.clone()
            )
                .prop_map(|(one, a, two, b, c)| {
                    format!("{{% if {one} %}}{a}{{% elif {two} %}}{b}{{% else %}}{c}{{% endif %}}")
                }),
            (select(vec!["", "1", "1, 'two', 3.5"]), many).prop_map(|(list, body)| {
                format!(
                    "{{% for x in [{list}] %}}{{{{ x }}}}{{{{ loop.index }}}}{body}{{% endfor %}}"
                )
            }),
        ]
    })
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 200, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn both_lanes_give_the_same(
        first in prop::collection::vec(piece(), 1..6),
        second in prop::collection::vec(piece(), 1..4),
        a in select(vec!["", "one", "two words", "<b> & \"q\" '", "한글\n셋"]),
        b in "[a-z한 \\n<&]{0,20}",
    ) {
        let body = format!(
            "{}\n\n<!-- role: assistant -->\n{}\n\n<!-- resource: r -->\n\n<!-- role: user -->\n{{{{ a }}}}{{{{ b }}}}\n",
            first.concat(), second.concat(),
        );
        let built = library(&body);
        let Some(prompt) = built.catalog.prompt("p") else {
            panic!("{body}: {:?}", built.problems);
        };
        prop_assert!(matches!(prompt.lane, Lane::Fast(_)), "{body}: {:?}", prompt.lane);
        let limits = built.catalog.limits();
        let bound = BoundArguments::bind(&prompt.arguments, [("a", a), ("b", b.as_str())], limits).unwrap();
        let mut resources = built.catalog.resolve(prompt, &bound).unwrap();
        resources.nonce = "0123456789abcdef".into();
        let here = render(prompt, &bound, &resources, limits);
        // and what the lane says of the output holds
        let found = resources.entries[0].resource.as_ref();
        let read = found.map_or(0, |r| r.bytes().len() + r.uri.len()) + resources.entries[0].uri.len();
        let most = prompt.lane.output_bound((a.len() + b.len() + read) as u64).unwrap();
        let output: usize = here.iter().flat_map(|r| &r.messages).map(|message| match &message.content {
            Content::Text(text) => text.len(),
            Content::Resource { .. } => 0,
        }).sum();
        prop_assert!(output as u64 <= most, "{} > {}: {}", output, most, body);
        let here = here.map(|r| seen(&r));
        let runtime = tokio::runtime::Builder::new_current_thread().enable_time().build().unwrap();
        let there = runtime.block_on(RENDERER.isolated(&cuebook::workers::Caller::local(), prompt, &bound, &resources, limits));
        let there = there.rendered.map(|r| seen(&r));
        prop_assert_eq!(here, there, "{}", body);
    }
}

#[test]
fn texts_that_are_written_out_count_as_often_as_they_are_looked_at() {
    let long = "x".repeat(4000);
    let twelve = format!("[{}]", ["1"; 12].join(", "));
    let reversed = " | reverse".repeat(30);
    for body in [
        // looked at by filters, printed by nothing
        format!(
            "{{% for i in {twelve} %}}{{% for j in {twelve} %}}{{% if '{long}'{reversed} == 'y' %}}{{% endif %}}{{% endfor %}}{{% endfor %}}"
        ),
        // given a name by a loop, looked at by what stands in it
        format!(
            "{{% for t in ['{long}', '{long}'] %}}{{% for i in {twelve} %}}{{% for j in {twelve} %}}{{% if t{reversed} == 'y' %}}{{% endif %}}{{% endfor %}}{{% endfor %}}{{% endfor %}}"
        ),
        // searched for, and searched in
        format!(
            "{{% for i in {twelve} %}}{{% for j in {twelve} %}}{{% for k in {twelve} %}}{{% if '{long}' in ['{long}', '{long}'] %}}{{% endif %}}{{% endfor %}}{{% endfor %}}{{% endfor %}}"
        ),
    ] {
        assert!(
            lane(&body).contains("that are written out"),
            "{}",
            lane(&body)
        );
    }
    assert_eq!(lane(&format!("{{{{ '{long}' | upper }}}}")), "fast");
    // what a loop gives a name to is in the output as often as it is printed
    let built = library(&format!(
        "{{% for t in ['{long}', '{long}'] %}}{{{{ t }}}}{{{{ t }}}}{{% endfor %}}{{{{ a }}}}{{{{ b }}}}"
    ));
    let bound = built.catalog.prompt("p").unwrap().lane.output_bound(0);
    assert!(bound.unwrap() >= 16_000, "{bound:?}");
}

#[test]
fn includes_are_counted_from_wherever_they_are_reached() {
    let chain = |first: &str| {
        let mut tree = MemoryTree::default()
            .with("prompts/p.md", format!("---\ndescription: D\n---\n{first}"));
        for i in 0..29 {
            let next = i + 1;
            tree = tree.with(
                &format!("partials/c{i}.md"),
                format!("{{% include \"c{next}.md\" %}}"),
            );
        }
        let tree = tree.with("partials/c29.md", "end");
        let none = &cuebook::catalog::examples::none;
        let built = build(&tree, Revision::WorkTree, &Limits::default(), None, none).unwrap();
        let found = built.catalog.prompt("p");
        found
            .unwrap_or_else(|| panic!("{:?}", built.problems))
            .lane
            .as_str()
    };
    assert_eq!(chain("{% include \"c14.md\" %}"), "fast");
    assert_eq!(chain("{% include \"c0.md\" %}"), "worker");
    assert_eq!(
        chain("{% include \"c14.md\" %}{% include \"c0.md\" %}"),
        "worker"
    );
}
