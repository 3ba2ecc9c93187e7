use super::*;

fn check(text: &str) -> (FrontMatter, Vec<String>) {
    let source = Source::new(&"p.md".into(), text);
    let sections = split(&source).unwrap();
    let mut problems = Vec::new();
    let front = read(&source, &sections.yaml, &Limits::default(), &mut problems);
    let lines = problems
        .iter()
        .map(|p| format!("{}:{} {} {}", p.line, p.column, p.severity.as_str(), p.code))
        .collect();
    (front, lines)
}

#[test]
fn a_whole_declaration() {
    let (front, problems) = check(
        "---\ntitle: 장애 초동 조치\ndescription: First response\ntags: [sre, incident]\narguments:\n  - name: ticketId\n    required: true\n  - name: n\n    default: 3\n    values: { file: services.txt, where: ticketId }\nresources:\n  - name: runbook\n    uri: \"runbook://{{ n }}\"\n    as: text\nexamples:\n  - name: x\n    arguments: { ticketId: 1.10 }\n    expect: [ \"a\" ]\n---\nbody",
    );
    assert_eq!(problems, Vec::<String>::new());
    assert_eq!(front.title.as_deref(), Some("장애 초동 조치"));
    assert_eq!(front.arguments[1].default.as_deref(), Some("3"));
    assert_eq!(
        front.arguments[1].values.where_argument.as_deref(),
        Some("ticketId")
    );
    assert_eq!(front.bindings[0].embed, Embed::Text);
    assert_eq!(
        front.examples[0].arguments,
        [("ticketId".into(), "1.10".into())]
    );
}

#[test]
fn what_is_wrong_has_a_place() {
    let cases = [
        ("---\nversion: 1.10\n---\n", "2:1 error unknown-key"),
        ("---\non: yes\n---\n", "2:1 error unknown-key"),
        ("---\ntitle: a\ntitle: b\n---\n", "3:1 error duplicate-key"),
        ("---\ntitle:\n---\n", "2:6 error null-value"),
        ("---\ntitle: [a]\n---\n", "2:8 error wrong-type"),
        ("---\ntags: a\n---\n", "2:7 error wrong-type"),
        (
            "---\narguments:\n  - name: svc-name\n---\n",
            "3:11 error argument-name",
        ),
        (
            "---\narguments:\n  - name: a\n  - name: a\n---\n",
            "4:11 error duplicate-argument",
        ),
        (
            "---\narguments:\n  - name: a\n    required: yes\n---\n",
            "4:15 error wrong-type",
        ),
        (
            "---\narguments:\n  - description: a\n---\n",
            "3:5 error argument-name",
        ),
        (
            "---\nargument-hint: [optional: x]\n---\n",
            "2:1 error unknown-key",
        ),
        (
            "---\ndescription: Review: find bugs\n---\n",
            "2:20 error yaml-syntax",
        ),
        (
            "---\ntitle: fix bug #12\n---\n",
            "2:15 warning yaml-comment",
        ),
        ("---\njust text\n---\n", "2:1 error wrong-type"),
        (
            "---\nresources:\n  - name: r\n    uri: x://y\n    as: picture\n---\n",
            "5:9 error resource-as",
        ),
    ];
    for (text, expected) in cases {
        assert_eq!(check(text).1, [expected], "{text}");
    }
}

#[test]
fn only_the_first_block_is_front_matter() {
    let source = Source::new(&"p.md".into(), "---\ntitle: a\n---\nx\n---\ny: 1\n---\n");
    let sections = split(&source).unwrap();
    assert_eq!(&source.text[sections.body], "x\n---\ny: 1\n---\n");
    let none = Source::new(&"p.md".into(), "x\n---\n");
    assert_eq!(split(&none).unwrap().body, 0..6);
    let open = Source::new(&"p.md".into(), "---\na: b\n");
    assert_eq!(split(&open).unwrap_err().code, "front-matter-open");
}
