//! Moving a label: the smallest edit of `labels.toml`, with its comments, order and spelling kept.

use std::collections::BTreeMap;

use crate::prompt::name::is_label;
use crate::prompt::source::Source;

use super::library::{Labels, labels};

/// Why a label could not be moved.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum RelabelError {
    /// The name cannot be a label.
    #[error(
        "`{0}` cannot be a label: a-z, then a-z, 0-9, `-`, `_`; not `latest`, a version (`v3`) or 7 to 40 hex digits"
    )]
    Name(String),
    /// The file has errors.
    #[error("labels.toml has errors, which `cuebook check` shows; mend them first")]
    Broken,
    /// The file is written in a way that is left to its authors.
    #[error(
        "labels.toml says this label in a way that is not edited by machine; write it as a table, `[{0}]`, or edit it by hand"
    )]
    Form(String),
}

fn read(text: &str) -> Option<Labels> {
    let mut problems = Vec::new();
    let labels = labels(&Source::new(&"labels.toml".into(), text), &mut problems);
    problems.is_empty().then_some(labels)
}

fn numbers(labels: &Labels) -> BTreeMap<(String, String), u64> {
    let entries = labels.iter().flat_map(|(label, entries)| {
        entries
            .iter()
            .map(|(name, (number, _))| ((label.clone(), name.clone()), *number))
    });
    entries.collect()
}

/// The text of `labels.toml` with a label on a version of a prompt, or off it where there is no version.
pub fn relabel(
    text: &str,
    label: &str,
    name: &str,
    number: Option<u64>,
) -> Result<String, RelabelError> {
    if !is_label(label) {
        return Err(RelabelError::Name(label.chars().take(40).collect()));
    }
    let text = Source::new(&"labels.toml".into(), text).text;
    let before = read(&text).ok_or(RelabelError::Broken)?;
    let entries = before.get(label);
    let entry = entries.and_then(|entries| entries.get(name));
    let edited = match (entry, number) {
        (None, None) => text.clone(),
        (Some((_, span)), Some(number)) => {
            format!("{}\"v{number}\"{}", &text[..span.start], &text[span.end..])
        }
        (Some((_, span)), None) => {
            let start = text[..span.start].rfind('\n').map_or(0, |i| i + 1);
            let end = text[span.end..]
                .find('\n')
                .map_or(text.len(), |i| span.end + i + 1);
            format!("{}{}", &text[..start], &text[end..])
        }
        (None, Some(number)) => {
            let line = format!("{name} = \"v{number}\"\n");
            if let Some(at) = place(&text, label, entries.map(|e| e.values())) {
                let open = match &text[..at] {
                    "" => "",
                    before if before.ends_with('\n') => "",
                    _ => "\n",
                };
                format!("{}{open}{line}{}", &text[..at], &text[at..])
            } else {
                let gap = match text.as_str() {
                    "" => "",
                    text if text.ends_with('\n') => "\n",
                    _ => "\n\n",
                };
                format!("{text}{gap}[{label}]\n{line}")
            }
        }
    };
    let mut expected = numbers(&before);
    let key = (label.to_owned(), name.to_owned());
    match number {
        Some(number) => expected.insert(key, number),
        None => expected.remove(&key),
    };
    // whatever form the file has: what comes out says what was meant and nothing else
    match read(&edited) {
        Some(after) if numbers(&after) == expected => Ok(edited),
        _ => Err(RelabelError::Form(label.to_owned())),
    }
}

/// Where a line is put in: behind the last entry of the label's table, or behind its header; none where it has none.
fn place<'a>(
    text: &str,
    label: &str,
    entries: Option<impl Iterator<Item = &'a (u64, std::ops::Range<usize>)>>,
) -> Option<usize> {
    let end_of_line = |at: usize| text[at..].find('\n').map_or(text.len(), |i| at + i + 1);
    let last = entries.and_then(|entries| entries.map(|(_, span)| span.end).max());
    if let Some(end) = last {
        return Some(end_of_line(end));
    }
    let mut at = 0;
    for line in text.split_inclusive('\n') {
        let header = line.split('#').next().unwrap_or_default().trim();
        let inner = header.strip_prefix('[').and_then(|h| h.strip_suffix(']'));
        if inner.is_some_and(|inner| inner.trim().trim_matches(['"', '\'']) == label) {
            return Some(at + line.len());
        }
        at += line.len();
    }
    None
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn put(text: &str, name: &str, number: Option<u64>, expected: Result<&str, RelabelError>) {
        assert_eq!(
            relabel(text, "production", name, number),
            expected.map(str::to_owned)
        );
    }

    #[test]
    fn the_smallest_edit() {
        put("", "a", Some(3), Ok("[production]\na = \"v3\"\n"));
        put(
            "# ours\n[next]\na = \"v9\"\n",
            "a",
            Some(3),
            Ok("# ours\n[next]\na = \"v9\"\n\n[production]\na = \"v3\"\n"),
        );
        let text = "# who\n[ production ] # live\n\"b\" = 'v1'   # why\n\n[next]\na = \"v9\"\n";
        put(
            text,
            "b",
            Some(12),
            Ok("# who\n[ production ] # live\n\"b\" = \"v12\"   # why\n\n[next]\na = \"v9\"\n"),
        );
        put(
            text,
            "a",
            Some(2),
            Ok(
                "# who\n[ production ] # live\n\"b\" = 'v1'   # why\na = \"v2\"\n\n[next]\na = \"v9\"\n",
            ),
        );
        put(
            text,
            "b",
            None,
            Ok("# who\n[ production ] # live\n\n[next]\na = \"v9\"\n"),
        );
        put(text, "zzz", None, Ok(text));
        put(
            "[production]\n",
            "a",
            Some(1),
            Ok("[production]\na = \"v1\"\n"),
        );
        put(
            "[production]\na = \"v1\"",
            "b",
            Some(1),
            Ok("[production]\na = \"v1\"\nb = \"v1\"\n"),
        );
        // dotted and inline forms, where the edit is still what was meant
        put(
            "production = { a = \"v1\" }\n",
            "a",
            Some(2),
            Ok("production = { a = \"v2\" }\n"),
        );
        put(
            "production.a = \"v1\"\n",
            "a",
            Some(2),
            Ok("production.a = \"v2\"\n"),
        );
    }

    #[test]
    fn what_is_left_alone() {
        let form = || Err(RelabelError::Form("production".into()));
        put("production = { a = \"v1\" }\n", "b", Some(2), form());
        put(
            "production = { a = \"v1\", b = \"v1\" }\n",
            "b",
            None,
            form(),
        );
        put("production.a = \"v1\"\n", "b", Some(2), form());
        put("[production\n", "a", Some(1), Err(RelabelError::Broken));
        assert_eq!(
            relabel("", "v3", "a", Some(1)),
            Err(RelabelError::Name("v3".into()))
        );
    }
}
