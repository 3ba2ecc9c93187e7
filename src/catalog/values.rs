//! Completion values: listed ones, values files, and what a URI pattern finds.

use std::sync::Arc;

use crate::prompt::problem::{Problem, Severity};
use crate::prompt::source::Source;

use super::text::fold;

/// Most values one answer carries (MCP `completion/complete`).
pub const MAX_VALUES: usize = 100;

/// One completion value.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Candidate {
    /// The value.
    pub value: Box<str>,
    /// What it means, for people.
    pub description: Option<Box<str>>,
    /// What `where` compares with.
    pub key: Option<Box<str>>,
}

/// Values in the author's order, found by prefix in any case and Unicode form.
#[derive(Debug, Default)]
pub struct ValueIndex {
    candidates: Vec<Candidate>,
    /// Folded value and position, sorted.
    sorted: Vec<(Box<str>, u32)>,
}

impl ValueIndex {
    /// Indexes candidates given in the author's order.
    pub fn new(candidates: Vec<Candidate>) -> Self {
        let mut sorted: Vec<(Box<str>, u32)> = candidates
            .iter()
            .zip(0u32..)
            .map(|(candidate, i)| (fold(&candidate.value).into_boxed_str(), i))
            .collect();
        sorted.sort();
        Self { candidates, sorted }
    }

    /// Plain values without descriptions.
    pub fn plain<'a>(values: impl IntoIterator<Item = &'a str>) -> Self {
        Self::new(
            values
                .into_iter()
                .map(|v| Candidate {
                    value: v.into(),
                    description: None,
                    key: None,
                })
                .collect(),
        )
    }

    /// Every candidate, in the author's order.
    pub fn candidates(&self) -> &[Candidate] {
        &self.candidates
    }

    /// Positions of the values that begin with a folded text, in the author's order.
    fn matching(&self, folded: &str) -> Vec<u32> {
        if folded.is_empty() {
            return (0..).take(self.candidates.len()).collect();
        }
        let from = self.sorted.partition_point(|(key, _)| &**key < folded);
        let mut out: Vec<u32> = self.sorted[from..]
            .iter()
            .take_while(|(key, _)| key.starts_with(folded))
            .map(|(_, i)| *i)
            .collect();
        out.sort_unstable();
        out
    }
}

/// An answer to a completion request.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Completion {
    /// At most 100 values, best first.
    pub values: Vec<String>,
    /// How many there are in all.
    pub total: usize,
}

/// Merges what several indexes have for a folded prefix; a value that occurs twice is given once.
pub fn complete(
    indexes: &[Arc<ValueIndex>],
    folded: &str,
    accept: impl Fn(&Candidate) -> bool,
) -> Completion {
    let mut out = Completion::default();
    let mut seen = std::collections::HashSet::new();
    for index in indexes {
        for i in index.matching(folded) {
            let candidate = &index.candidates[i as usize];
            if accept(candidate) && seen.insert(&*candidate.value) {
                out.total += 1;
                if out.values.len() < MAX_VALUES {
                    out.values.push(candidate.value.to_string());
                }
            }
        }
    }
    out
}

/// Reads a values file: a value a line, `value<TAB>description<TAB>key`.
pub fn parse(source: &Source, problems: &mut Vec<Problem>) -> Vec<Candidate> {
    let mut out = Vec::new();
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
        let description = fields.next().map(str::trim).filter(|f| !f.is_empty());
        let key = fields.next().map(str::trim).filter(|f| !f.is_empty());
        let (message, hint) = if value.is_empty() {
            (
                "a line begins with its value, here there is none",
                "value, TAB, description, TAB, key",
            )
        } else if fields.next().is_some() {
            (
                "a line has at most three fields: value, description, key",
                "remove the other TABs",
            )
        } else if line.chars().any(|c| c.is_control() && c != '\t') {
            ("a value cannot hold a control character", "remove it")
        } else {
            out.push(Candidate {
                value: value.into(),
                description: description.map(Into::into),
                key: key.map(Into::into),
            });
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
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    fn index(text: &str) -> Arc<ValueIndex> {
        let source = Source::new(&"values/x.txt".into(), text);
        let mut problems = Vec::new();
        let candidates = parse(&source, &mut problems);
        assert_eq!(problems, []);
        Arc::new(ValueIndex::new(candidates))
    }

    #[test]
    fn prefixes_in_any_case_and_form_in_the_authors_order() {
        let index = index("Payments\tmoney\npayroll\n결제\n결산\ncheckout\n");
        let complete =
            |typed: &str| complete(std::slice::from_ref(&index), &fold(typed), |_| true).values;
        assert_eq!(complete("PAY"), ["Payments", "payroll"]);
        assert_eq!(complete("결"), ["결제", "결산"]);
        assert_eq!(complete("ㄱ"), Vec::<String>::new());
        assert_eq!(complete("").len(), 5);
    }

    #[test]
    fn narrowed_and_counted() {
        let index = index("a\t\tkr\nb\t\tus\nc\t\tkr\n");
        let c = complete(&[index.clone(), index], "", |c| {
            c.key.as_deref() == Some("kr")
        });
        assert_eq!((c.values, c.total), (vec!["a".into(), "c".into()], 2));
    }

    #[test]
    fn lines_that_cannot_be_read() {
        let source = Source::new(&"values/x.txt".into(), "\tx\na\tb\tc\td\n\nok\n");
        let mut problems = Vec::new();
        assert_eq!(parse(&source, &mut problems).len(), 1);
        assert_eq!(problems.iter().map(|p| p.line).collect::<Vec<_>>(), [1, 2]);
    }
}
