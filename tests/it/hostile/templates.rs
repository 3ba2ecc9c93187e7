//! The hostile templates: those of the fixture with what is expected of them, large ones that are made here, and more of
//! their kind.

use std::collections::BTreeMap;

/// What is to become of a template.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Expected {
    /// Not published: refused when it is read, when it is linked, or because a render hits a limit.
    Refused,
    /// Rendered.
    Rendered,
    /// Rendered or refused with an error, and nothing else.
    Either,
}

/// One hostile template with the files it needs.
#[derive(Debug, Clone)]
pub(super) struct Case {
    pub(super) name: String,
    pub(super) expected: Expected,
    /// The body of the prompt.
    pub(super) body: String,
    /// Partials by name.
    pub(super) partials: BTreeMap<String, String>,
}

/// Arguments that templates of the fixture read, with values for them.
pub(super) const ARGUMENTS: &[(&str, &str)] = &[
    ("big", "abcdefghij"),
    ("text", "{{ name }} {% raw %}"),
    ("name", "Ada"),
    ("items", "a,b,c"),
    ("users", "u"),
    ("mode", "quiet"),
];

impl Case {
    fn new(name: &str, expected: Expected, body: impl Into<String>) -> Self {
        Self {
            name: name.to_owned(),
            expected,
            body: body.into(),
            partials: BTreeMap::new(),
        }
    }

    /// The arguments that the templates read.
    pub(super) fn arguments(&self) -> Vec<&'static str> {
        let all: String = self
            .partials
            .values()
            .fold(self.body.clone(), |all, text| all + text);
        let words: std::collections::BTreeSet<&str> = all
            .split(|c: char| !c.is_ascii_alphanumeric() && c != '_')
            .collect();
        ARGUMENTS
            .iter()
            .map(|(name, _)| *name)
            .filter(|name| words.contains(name))
            .collect()
    }

    /// The prompt's file.
    pub(super) fn prompt(&self) -> String {
        let mut front = String::from("---\ndescription: D\n");
        let arguments = self.arguments();
        if !arguments.is_empty() {
            front.push_str("arguments:\n");
        }
        for name in arguments {
            front.push_str(&format!("  - name: {name}\n"));
        }
        format!("{front}---\n{}", self.body)
    }

    /// The same, doing what it does only when it is told to: it passes the gate.
    pub(super) fn asleep(&self) -> Self {
        Self {
            body: format!(
                "{{% if mode == \"attack\" %}}{}{{% endif %}}calm",
                self.body
            ),
            ..self.clone()
        }
    }

    /// Its files in a library; partials have names of their own.
    pub(super) fn files(&self) -> Vec<(String, String)> {
        let mut out = vec![(format!("prompts/hostile/{}.md", self.name), self.prompt())];
        for (name, text) in &self.partials {
            out.push((format!("partials/{name}"), text.clone()));
        }
        out
    }
}

/// The templates of the fixture.
pub(super) fn fixture() -> Vec<Case> {
    let folder = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/fixtures/hostile");
    let table = std::fs::read_to_string(folder.join("EXPECTED.md")).unwrap();
    let mut out = Vec::new();
    for line in table.lines() {
        let cells: Vec<&str> = line.split('|').map(str::trim).collect();
        let [_, name, expected, ..] = cells[..] else {
            continue;
        };
        let Ok(text) = std::fs::read_to_string(folder.join(format!("{name}.tera"))) else {
            assert!(matches!(name, "case" | "---"), "{name} is not there");
            continue;
        };
        let expected = match expected {
            "ok" => Expected::Rendered,
            // with the stack that a worker has, some of those that kill a bare engine come through
            "ok-or-error" | "error-t1ok" | "crash-or-reject" => Expected::Either,
            _ => Expected::Refused,
        };
        out.push(bundle(name, expected, &text));
    }
    assert_eq!(out.len(), 75);
    out
}

/// A case of a bundle: `=== name` begins a file. Files are renamed to what can be a partial here.
fn bundle(name: &str, expected: Expected, text: &str) -> Case {
    let mut files: BTreeMap<String, String> = BTreeMap::new();
    let mut at = String::from("main");
    for line in text.split_inclusive('\n') {
        if let Some(file) = line.strip_prefix("=== ") {
            file.trim().clone_into(&mut at);
        } else {
            files.entry(at.clone()).or_default().push_str(line);
        }
    }
    let names: Vec<String> = files.keys().cloned().collect();
    let renamed = |text: &str| {
        names.iter().fold(text.to_owned(), |text, file| {
            text.replace(&format!("\"{file}\""), &format!("\"{name}-{file}.md\""))
        })
    };
    let body = renamed(&files.remove("main").unwrap());
    // what includes itself can be nothing but a partial
    let mut case = Case::new(name, expected, body.clone());
    if body.contains(&format!("\"{name}-main.md\"")) {
        case.partials.insert(format!("{name}-main.md"), body);
    }
    for (file, text) in &files {
        case.partials
            .insert(format!("{name}-{file}.md"), renamed(text));
    }
    case
}

/// The large ones.
pub(super) fn large() -> Vec<Case> {
    use Expected::Refused;
    let many = |n: usize, text: &str| text.repeat(n);
    let mut all = vec![
        Case::new(
            "p01-nested-if",
            Refused,
            many(20_000, "{% if name %}") + &many(20_000, "{% endif %}"),
        ),
        Case::new(
            "p04-elif-chain",
            Refused,
            format!(
                "{{% if name %}}{}{{% endif %}}",
                many(30_000, "{% elif name %}")
            ),
        ),
        Case::new(
            "p05-filter-chain",
            Refused,
            format!("{{{{ name{} }}}}", many(50_000, "|trim")),
        ),
        Case::new(
            "p08-not-chain",
            Refused,
            format!("{{% if {}name %}}{{% endif %}}", many(50_000, "not ")),
        ),
        Case::new(
            "p10-ternary-chain",
            Refused,
            format!("{{{{ name{} }}}}", many(20_000, " if name else name")),
        ),
        Case::new(
            "p11-nested-filter-section",
            Refused,
            many(20_000, "{% filter upper %}") + &many(20_000, "{% endfilter %}"),
        ),
        Case::new(
            "p14-50k-blocks",
            Refused,
            (0..50_000)
                .map(|i| format!("{{% block b{i} %}}{{% endblock %}}"))
                .collect::<String>(),
        ),
        Case::new("p16-8mb-text", Refused, many(8 * 1024 * 1024, "x")),
        Case::new(
            "p19-60k-sets",
            Refused,
            (0..60_000)
                .map(|i| format!("{{% set a{i}=1 %}}"))
                .collect::<String>(),
        ),
    ];
    for (name, tag) in [
        ("r05-include-chain-3000", "include"),
        ("r09-extends-chain-3000", "extends"),
    ] {
        let next = |i: usize| format!("{{% {tag} \"{name}-{i}.md\" %}}");
        let mut case = Case::new(name, Refused, next(0));
        for i in 0..3000 {
            case.partials.insert(format!("{name}-{i}.md"), next(i + 1));
        }
        case.partials
            .insert(format!("{name}-3000.md"), "end".into());
        all.push(case);
    }
    // the same inside the size of a file
    all.extend([
        Case::new(
            "s01-nested-if",
            Refused,
            many(2400, "{% if name %}") + &many(2400, "{% endif %}"),
        ),
        Case::new(
            "s05-filter-chain",
            Refused,
            format!("{{{{ name{} }}}}", many(10_000, "|trim")),
        ),
        Case::new(
            "s08-not-chain",
            Refused,
            format!("{{% if {}name %}}{{% endif %}}", many(15_000, "not ")),
        ),
        Case::new(
            "s10-ternary-chain",
            Refused,
            format!("{{{{ name{} }}}}", many(3500, " if name else name")),
        ),
        Case::new(
            "s11-nested-filter-section",
            Refused,
            many(1900, "{% filter upper %}") + &many(1900, "{% endfilter %}"),
        ),
        Case::new(
            "s19-sets-and-ifs",
            Expected::Either,
            (0..1500)
                .map(|i| format!("{{% set a{i}=1 %}}{{% if a{i} %}}{{% endif %}}"))
                .collect::<String>(),
        ),
    ]);
    all
}

/// More of their kind, found while this was made.
pub(super) fn siblings() -> Vec<Case> {
    use Expected::{Either, Refused};
    let elif = "{% elif name %}".repeat(4000);
    let mut all = vec![
        // a hundred warnings before it once ended the look at what the engine does not survive
        Case::new(
            "x01-elif-behind-warnings",
            Refused,
            format!("{}{{% if name %}}{elif}{{% endif %}}", "{#x#}".repeat(120)),
        ),
        Case::new(
            "x02-block-behind-warnings",
            Refused,
            format!("{}{{% block a %}}{{% endblock %}}", "{#x#}".repeat(120)),
        ),
        // one line, quoted once for each of its faults
        Case::new("x03-unknown-filters", Refused, "{{name|nope}}".repeat(4900)),
        Case::new("x04-unknown-functions", Refused, "{{nope()}}".repeat(6000)),
        Case::new(
            "x05-unknown-tests",
            Refused,
            "{%if name is nope%}{%endif%}".repeat(2300),
        ),
        Case::new(
            "x06-comprehension",
            Refused,
            "{{ [x for x in range(end=100000) if name] | length }}".repeat(500),
        ),
        Case::new(
            "x07-literal-loops",
            Refused,
            format!(
                "{}{}{{{{ a }}}}{}",
                "{% for a in [1,2,3,4,5,6,7,8,9,10] %}".repeat(10),
                "{% if name %}",
                "{% endif %}".to_owned() + &"{% endfor %}".repeat(10)
            ),
        ),
        Case::new(
            "x08-growing-replace",
            Refused,
            "{% set_global s = 'aa' %}{% for i in range(end=60) %}{% set_global s = s | replace(from='a', to='aaaa') %}{% endfor %}{{ s | length }}",
        ),
        Case::new(
            "x09-growing-json",
            Refused,
            "{% set_global s = '\"' %}{% for i in range(end=60) %}{% set_global s = s | json %}{% endfor %}{{ s | length }}",
        ),
        Case::new(
            "x10-filter-section",
            Refused,
            "{% filter upper %}{% for i in range(end=100000) %}{{ big }}{{ i }}{{ 'x' | indent(width=1000, first=true) }}{% endfor %}{% endfilter %}",
        ),
        Case::new(
            "x11-split-nothing",
            Refused,
            "{% for a in big | split(pat='') %}{% for b in big | split(pat='') %}{% for c in big | split(pat='') %}{% endfor %}{% endfor %}{% endfor %}",
        ),
        Case::new(
            "x12-group-by",
            Refused,
            "{% set_global l = [{\"a\": 1}] %}{% for i in range(end=22) %}{% set_global l = [...l, ...l] %}{% endfor %}{{ l | group_by(attribute='a') | length }}{{ l | json | length }}",
        ),
        Case::new(
            "x13-spread-map",
            Refused,
            "{% set_global m = {\"a\": 1} %}{% for i in range(end=100000) %}{% set_global m = {...m, \"b\": m} %}{% endfor %}{{ m }}",
        ),
        Case::new(
            "x14-output",
            Refused,
            "{% for i in range(end=100000) %}0123456789012345678901234567890123456789{% endfor %}",
        ),
        Case::new(
            "x15-blanks-in-tags",
            Either,
            format!("{{{{{}name }}}}", " ".repeat(60_000)),
        ),
        Case::new("x16-opening-braces", Either, "{{".repeat(30_000)),
        Case::new("x17-open-comments", Either, "{#".repeat(30_000)),
        Case::new("x18-quotes", Refused, "{{ '".repeat(15_000)),
        Case::new("x19-include-itself-often", Refused, ""),
    ];
    let last = all.last_mut().unwrap();
    last.body = "{% include \"x19-a.md\" %}".repeat(1000);
    last.partials.insert(
        "x19-a.md".into(),
        "{% if name %}{{ name | upper }}{% endif %}".repeat(1400),
    );
    all
}
