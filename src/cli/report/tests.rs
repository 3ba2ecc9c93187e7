use std::sync::Arc;

use insta::assert_snapshot;
use serde_json::Value;
use unicode_width::{UnicodeWidthChar, UnicodeWidthStr};

use super::*;
use crate::prompt::problem::Insertion;

fn problem(line: u32, column: u32, width: u32, excerpt: &str) -> Problem {
    Problem {
        severity: Severity::Error,
        code: "undeclared-variable",
        path: Arc::from("prompts/sre/triage.md"),
        line,
        column,
        width,
        message: "`servce` is not declared".to_owned(),
        hint: Some("did you mean `service`?".to_owned()),
        excerpt: (!excerpt.is_empty()).then(|| excerpt.to_owned()),
        fix: Vec::new(),
    }
}

fn printed(problems: &[Problem], format: Format, colour: bool) -> String {
    let mut out = Vec::new();
    print(problems, format, colour, &mut out).unwrap();
    String::from_utf8(out).unwrap()
}

fn text_of(problems: &[Problem]) -> String {
    printed(problems, Format::Text, false)
}

#[test]
fn text_looks_like_a_compiler() {
    let warning = Problem {
        severity: Severity::Warning,
        code: "reserved-command",
        path: Arc::from("prompts/sre/help.md"),
        message: "`help` is a command of Claude Code".to_owned(),
        hint: None,
        ..problem(0, 0, 1, "")
    };
    let library = Problem {
        code: "no-prompts",
        path: Arc::from(""),
        message: "the library has no prompts".to_owned(),
        hint: Some("put one in prompts/<folder>/<name>.md\nor run `cuebook init`".to_owned()),
        ..problem(0, 0, 1, "")
    };
    let all = [
        problem(127, 13, 6, "Look into {{ servce }}."),
        warning,
        library,
    ];
    assert_snapshot!(text_of(&all), @r"
    error[no-prompts]: the library has no prompts
      = help: put one in prompts/<folder>/<name>.md
              or run `cuebook init`

    warning[reserved-command]: `help` is a command of Claude Code
     --> prompts/sre/help.md

    error[undeclared-variable]: `servce` is not declared
       --> prompts/sre/triage.md:127:13
        |
    127 | Look into {{ servce }}.
        |             ^^^^^^
        = help: did you mean `service`?

    2 errors, 1 warning in 2 files
    ");
}

#[test]
fn korean_takes_two_cells_a_syllable() {
    assert_snapshot!(text_of(&[problem(3, 17, 6, "장애 {{ x }} 는 {{ servce }} 입니다")]), @r#"
    error[undeclared-variable]: `servce` is not declared
     --> prompts/sre/triage.md:3:17
      |
    3 | 장애 {{ x }} 는 {{ servce }} 입니다
      |                    ^^^^^^
      = help: did you mean `service`?

    1 error in 1 file
    "#);
}

#[test]
fn decomposed_korean_lines_up_too() {
    // NFD: three code points, two cells. The column counts code points.
    let line = "\u{1100}\u{1161}\u{11a8} {{ x }}";
    assert_eq!(
        line::Shown::of(line, 8, 1),
        line::Shown {
            text: line.to_owned(),
            indent: 6,
            carets: 1
        }
    );
}

#[test]
fn a_wide_character_is_underlined_in_full() {
    let shown = line::Shown::of("값: 결제", 4, 2);
    assert_eq!((shown.indent, shown.carets), (4, 4));
}

#[test]
fn tabs_go_to_the_next_stop() {
    let shown = line::Shown::of("a\tb\t\tservce", 6, 6);
    assert_eq!(
        shown,
        line::Shown {
            text: "a   b       servce".to_owned(),
            indent: 12,
            carets: 6
        }
    );
}

#[test]
fn column_zero_underlines_the_line_without_its_blanks() {
    let shown = line::Shown::of("   name: x  ", 0, 1);
    assert_eq!(
        shown,
        line::Shown {
            text: "   name: x".to_owned(),
            indent: 3,
            carets: 7
        }
    );
}

#[test]
fn a_column_past_the_end_points_just_behind_the_line() {
    for column in [5, 6, 4_000_000] {
        let shown = line::Shown::of("name", column, 3);
        assert_eq!((shown.indent, shown.carets), (4, 1), "column {column}");
    }
    assert_eq!(line::Shown::of("", 1, 1).carets, 1);
    assert_eq!(line::Shown::of("", 0, 1).carets, 1);
}

#[test]
fn a_very_long_line_is_cut_around_the_finding() {
    let line = format!(
        "{}servce{}",
        "가나다라 ".repeat(5_000),
        " 마바사".repeat(5_000)
    );
    let shown = line::Shown::of(&line, 25_001, 6);
    assert!(shown.text.width() <= 122, "{}", shown.text.width());
    assert!(
        shown.text.starts_with('…') && shown.text.ends_with('…'),
        "{}",
        shown.text
    );
    let before: String = shown
        .text
        .chars()
        .scan(0, |cells, c| {
            (*cells < shown.indent).then(|| {
                *cells += c.width().unwrap();
                c
            })
        })
        .collect();
    assert!(
        shown.text[before.len()..].starts_with("servce"),
        "{}",
        shown.text
    );
    assert_eq!(shown.carets, 6);
}

#[test]
fn a_finding_wider_than_the_window_is_underlined_to_its_edge() {
    let shown = line::Shown::of(&"x".repeat(1_000), 1, 900);
    assert_eq!((shown.indent, shown.carets), (0, 120));
    let at_the_end = line::Shown::of(&"x".repeat(1_000), 1_000, 1);
    assert!(at_the_end.text.ends_with('x'));
    assert_eq!((at_the_end.indent, at_the_end.carets), (41, 1));
}

#[test]
fn control_characters_are_made_visible_everywhere() {
    let evil = Problem {
        path: Arc::from("prompts/a\x1b]0;x\x07.md"),
        message: "bad \x1b[2J name\nsecond \u{202e}line".to_owned(),
        hint: Some("a \u{9b}31m hint".to_owned()),
        ..problem(1, 6, 3, "abc\x1b[\x00\u{feff}z\r")
    };
    let text = text_of(std::slice::from_ref(&evil));
    assert!(
        text.chars().all(|c| c == '\n' || !c.is_control()),
        "{text:?}"
    );
    assert_snapshot!(text, @r#"
    error[undeclared-variable]: bad ␛[2J name␊second <U+202E>line
     --> prompts/a␛]0;x␇.md:1:6
      |
    1 | abc␛[␀<U+FEFF>z
      |      ^^^^^^^^^^
      = help: a <U+009B>31m hint

    1 error in 1 file
    "#);
    let github = printed(&[evil], Format::Github, false);
    assert!(
        github.chars().all(|c| c == '\n' || !c.is_control()),
        "{github:?}"
    );
}

#[test]
fn joiners_that_scripts_need_stay() {
    assert_eq!(
        visible("👩\u{200d}🚒 क्\u{200d}ष ✈\u{fe0f}"),
        "👩\u{200d}🚒 क्\u{200d}ष ✈\u{fe0f}"
    );
}

#[test]
fn colours_only_where_asked() {
    let problems = [problem(1, 1, 2, "ab")];
    assert!(!text_of(&problems).contains('\x1b'));
    let coloured = printed(&problems, Format::Text, true);
    assert!(
        coloured.starts_with("\x1b[1;31merror[undeclared-variable]\x1b[0m"),
        "{coloured:?}"
    );
    assert!(coloured.contains("\x1b[1;31m^^\x1b[0m"), "{coloured:?}");
}

#[test]
fn colour_needs_a_terminal_and_leave() {
    let set = |text: &'static str| Some(OsStr::new(text));
    assert!(wants_colour(true, None, set("xterm")));
    assert!(wants_colour(true, set(""), None));
    assert!(!wants_colour(true, set("1"), None));
    assert!(!wants_colour(false, None, None));
    assert!(!wants_colour(true, None, set("dumb")));
}

#[test]
fn json_is_one_document_with_counts() {
    let fix = vec![Insertion {
        line: 2,
        column: 4,
        text: "{% raw %}",
    }];
    let all = [
        Problem {
            fix,
            ..problem(2, 4, 6, "장애 {{")
        },
        Problem {
            hint: None,
            ..problem(0, 0, 1, "")
        },
    ];
    let document: Value = serde_json::from_str(&printed(&all, Format::Json, true)).unwrap();
    insta::assert_json_snapshot!(document, @r#"
    {
      "errors": 2,
      "problems": [
        {
          "code": "undeclared-variable",
          "column": null,
          "excerpt": null,
          "fixable": false,
          "hint": null,
          "line": null,
          "message": "`servce` is not declared",
          "path": "prompts/sre/triage.md",
          "severity": "error",
          "width": 1
        },
        {
          "code": "undeclared-variable",
          "column": 4,
          "excerpt": "장애 {{",
          "fixable": true,
          "hint": "did you mean `service`?",
          "line": 2,
          "message": "`servce` is not declared",
          "path": "prompts/sre/triage.md",
          "severity": "error",
          "width": 6
        }
      ],
      "warnings": 0
    }
    "#);
}

#[test]
fn github_commands_are_escaped() {
    let all = [
        Problem {
            severity: Severity::Warning,
            path: Arc::from("prompts/a,b:100%.md"),
            message: "50% of\nlines: bad, all".to_owned(),
            ..problem(2, 4, 6, "x")
        },
        Problem {
            path: Arc::from(""),
            hint: None,
            ..problem(0, 0, 1, "")
        },
    ];
    assert_snapshot!(printed(&all, Format::Github, false), @r#"
    ::error title=undeclared-variable::`servce` is not declared
    ::warning file=prompts/a%2Cb%3A100%25.md,line=2,col=4,title=undeclared-variable::50%25 of%0Alines: bad, all%0Ahelp: did you mean `service`?
    1 error, 1 warning in 1 file
    "#);
}

#[test]
fn what_can_be_fixed_is_said() {
    let fix = vec![Insertion {
        line: 1,
        column: 1,
        text: "{% raw %}",
    }];
    let text = text_of(&[
        Problem {
            fix,
            ..problem(1, 1, 1, "{{")
        },
        problem(2, 1, 1, "x"),
    ]);
    assert!(
        text.ends_with(
            "\n2 errors in 1 file\n1 of them can be put right by `cuebook check --fix`\n"
        ),
        "{text}"
    );
}

#[test]
fn the_summary_counts_in_words() {
    assert_eq!(summary(&[]), "no problems");
    assert_eq!(text_of(&[]), "no problems\n");
    assert_eq!(summary(&[problem(1, 1, 1, "")]), "1 error in 1 file");
    assert_eq!(
        summary(&[Problem {
            path: Arc::from(""),
            ..problem(0, 0, 1, "")
        }]),
        "1 error"
    );
    let two = [problem(1, 1, 1, ""), problem(2, 1, 1, "")];
    assert_eq!(summary(&two), "2 errors in 1 file");
}
