//! Values files: a value a line, with its description and what `where` compares with.

use crate::prompt::problem::{Problem, Severity};
use crate::prompt::source::Source;

use super::complete::{Rows, place};

/// Reads a values file: a value a line, `value<TAB>description<TAB>key`.
pub fn parse(source: Source, problems: &mut Vec<Problem>) -> Rows {
    let mut rows = Vec::new();
    let mut at = 0;
    for raw in source.text.split_inclusive('\n') {
        let line = raw.strip_suffix('\n').unwrap_or(raw);
        let span = at..at + line.len();
        at += raw.len();
        if line.trim().is_empty() {
            continue;
        }
        let mut fields = line.split('\t');
        let value = fields.next().unwrap_or_default().trim();
        let more = fields.nth(2).is_some();
        let (message, hint) = if value.is_empty() {
            (
                "a line begins with its value, here there is none",
                "value, TAB, description, TAB, key",
            )
        } else if more {
            (
                "a line has at most three fields: value, description, key",
                "remove the other TABs",
            )
        } else if line.chars().any(|c| c.is_control() && c != '\t') {
            ("a value cannot hold a control character", "remove it")
        } else {
            let start = span.start + (line.len() - line.trim_start().len());
            rows.push((place(start), place(start + value.len())));
            continue;
        };
        problems.push(source.problem(
            Severity::Error,
            "values-line",
            span,
            message.into(),
            Some(hint.into()),
        ));
        if problems.len() > 1000 {
            break;
        }
    }
    Rows::new(source.text.into_boxed_str(), rows)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn rows(text: &str) -> (Rows, Vec<u32>) {
        let mut problems = Vec::new();
        let rows = parse(Source::new(&"values/x.txt".into(), text), &mut problems);
        (rows, problems.iter().map(|p| p.line).collect())
    }

    #[test]
    fn lines_and_their_fields() {
        let (rows, problems) =
            rows(" Payments \t takes money \t kr\r\n\n결제\t\tkr\n a b \t\nlast");
        assert_eq!(problems, Vec::<u32>::new());
        let fields: Vec<_> = (0..rows.len())
            .filter_map(|i| rows.get(i))
            .map(|row| (row.value, row.description, row.key))
            .collect();
        assert_eq!(
            fields,
            [
                ("Payments", Some("takes money"), Some("kr")),
                ("결제", None, Some("kr")),
                ("a b", None, None),
                ("last", None, None),
            ]
        );
    }

    #[test]
    fn lines_that_cannot_be_read() {
        let (rows, problems) = rows("\tx\na\tb\tc\td\n\nok\na\u{7}b\n");
        assert_eq!(rows.len(), 1);
        assert_eq!(problems, [1, 2, 5]);
    }
}
