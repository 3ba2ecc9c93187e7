//! Moving a label: the smallest edit of `labels.toml`, with its comments, order and spelling kept.

use std::collections::{BTreeMap, BTreeSet};

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

/// The file of the labels.
pub const LABELS: &str = "labels.toml";

/// Versions by label and name of a prompt.
pub type Numbers = BTreeMap<(String, String), u64>;

/// What a `labels.toml` says; none where it has errors.
pub fn said(text: &str) -> Option<Numbers> {
    read(text).map(|labels| numbers(&labels))
}

/// Where two say something else: one line for each, at most so many.
pub fn apart(here: &Numbers, there: &Numbers, most: usize) -> Vec<String> {
    let keys: BTreeSet<_> = here.keys().chain(there.keys()).collect();
    let on = |number: Option<&u64>| number.map_or("off".to_owned(), |number| format!("v{number}"));
    keys.into_iter()
        .map(|key| (key, here.get(key), there.get(key)))
        .filter(|(_, here, there)| here != there)
        .take(most)
        .map(|((label, name), here, there)| {
            format!(
                "{label} of {name} is {} here and {} there",
                on(here),
                on(there)
            )
        })
        .collect()
}

/// Labels that were moved at both ends.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Joined {
    /// `labels.toml` as the other end has it, with what was moved here.
    pub text: String,
    /// Where not both could be had, a line each: a label moved at both ends stays where it is here, and one on a prompt that
    /// is gone goes with it.
    pub told: Vec<String>,
}

/// The other end's `labels.toml` (`text`) with what was moved from `base` to `ours`. None where it has errors.
pub fn join(
    base: &Numbers,
    ours: &Numbers,
    text: &str,
    exists: impl Fn(&str) -> bool,
) -> Option<Joined> {
    let theirs = said(text)?;
    let mut text = text.to_owned();
    let mut wanted = theirs.clone();
    let mut told = Vec::new();
    let keys: BTreeSet<_> = base.keys().chain(ours.keys()).collect();
    for key in keys {
        let (was, here, there) = (base.get(key), ours.get(key), theirs.get(key));
        if here == was || here == there {
            continue;
        }
        let (label, name) = key;
        let on = |number: Option<&u64>| number.map_or("off".into(), |number| format!("v{number}"));
        if here.is_some() && !exists(name) {
            told.push(format!(
                "{label} of {name}, which was moved here, goes: the prompt is gone there"
            ));
            continue;
        }
        if there != was {
            let (here, there) = (on(here), on(there));
            told.push(format!("{label} of {name} was moved to {here} here and to {there} there; here it stays {here}"));
        }
        match here {
            Some(number) => wanted.insert(key.clone(), *number),
            None => wanted.remove(key),
        };
        if let Ok(edited) = relabel(&text, label, name, here.copied()) {
            text = edited;
        }
    }
    // a form that is not edited by machine is given up rather than a move
    if said(&text).as_ref() != Some(&wanted) {
        text = written(&wanted);
    }
    Some(Joined { text, told })
}

fn written(numbers: &Numbers) -> String {
    let mut out = String::new();
    let mut of = None;
    for ((label, name), number) in numbers {
        if of != Some(label) {
            let gap = if of.is_some() { "\n" } else { "" };
            out.push_str(&format!("{gap}[{label}]\n"));
            of = Some(label);
        }
        out.push_str(&format!("{name} = \"v{number}\"\n"));
    }
    out
}

fn numbers(labels: &Labels) -> Numbers {
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
    fn moves_of_both_ends_are_joined() {
        let numbers = |text: &str| said(text).unwrap();
        let base = numbers("[production]\na = \"v1\"\nb = \"v1\"\nc = \"v1\"\nd = \"v1\"\n");
        // a, c and d are moved here, e put on, b left alone
        let ours = numbers(
            "[production]\na = \"v2\"\nb = \"v1\"\nd = \"v2\"\n[next]\ne = \"v4\"\ngone = \"v1\"\n",
        );
        // there b and d are moved
        let theirs = "# theirs\n[production]\na = \"v1\" # a\nb = \"v7\"\nc = \"v1\"\nd = \"v3\"\n";
        let joined = join(&base, &ours, theirs, |name| name != "gone").unwrap();
        assert_eq!(
            joined.text,
            "# theirs\n[production]\na = \"v2\" # a\nb = \"v7\"\nd = \"v2\"\n\n[next]\ne = \"v4\"\n"
        );
        assert_eq!(
            joined.told,
            [
                "next of gone, which was moved here, goes: the prompt is gone there",
                "production of d was moved to v2 here and to v3 there; here it stays v2"
            ]
        );
        // a form that is not edited keeps what was meant all the same
        let inline = "production = { a = \"v1\", b = \"v1\", c = \"v1\", d = \"v1\" }\n";
        let joined = join(&base, &ours, inline, |_| true).unwrap();
        assert_eq!(said(&joined.text).unwrap(), ours);
        assert_eq!(join(&base, &ours, "[production\n", |_| true), None);
        assert_eq!(
            apart(&ours, &base, 2),
            [
                "next of e is v4 here and off there",
                "next of gone is v1 here and off there"
            ]
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
