//! Line ends of a text that came back from a form: browsers send CRLF whatever was there, so that what was stored decides.

use similar::{ChangeTag, TextDiff};

/// The text with `\n` alone at the end of lines, without a byte order mark.
pub(in crate::web) fn plain(text: &str) -> String {
    let text = text.strip_prefix('\u{feff}').unwrap_or(text);
    text.replace("\r\n", "\n").replace('\r', "\n")
}

/// What to store for a text from a form: the stored bytes where nothing changed, and the stored text's mark and line ends
/// where something did. A line that was there keeps its own end; a new one ends as the line before it.
pub(in crate::web) fn restored(stored: &str, sent: &str) -> String {
    let sent = plain(sent);
    let before = plain(stored);
    if sent == before {
        return stored.to_owned();
    }
    let ends = ends(stored);
    let mut out = String::with_capacity(sent.len() + 16);
    if stored.starts_with('\u{feff}') {
        out.push('\u{feff}');
    }
    let mut last = most(&ends);
    let difference = TextDiff::from_lines(&*before, &*sent);
    for change in difference.iter_all_changes() {
        if change.tag() == ChangeTag::Delete {
            continue;
        }
        let line = change.value();
        let Some(body) = line.strip_suffix('\n') else {
            out.push_str(line);
            continue;
        };
        let own = change.old_index().and_then(|index| ends.get(index));
        last = own.copied().unwrap_or(last);
        out.push_str(body);
        out.push_str(last);
    }
    out
}

/// What ends each line.
fn ends(text: &str) -> Vec<&'static str> {
    let mut out = Vec::new();
    let mut bytes = text.bytes().peekable();
    while let Some(byte) = bytes.next() {
        match byte {
            b'\r' if bytes.next_if_eq(&b'\n').is_some() => out.push("\r\n"),
            b'\r' => out.push("\r"),
            b'\n' => out.push("\n"),
            _ => {}
        }
    }
    out
}

fn most(ends: &[&'static str]) -> &'static str {
    let count = |end: &str| ends.iter().filter(|other| **other == end).count();
    ["\n", "\r\n", "\r"]
        .into_iter()
        .rev()
        .max_by_key(|end| count(end))
        .unwrap_or("\n")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_was_not_changed_is_what_was_stored() {
        for stored in [
            "",
            "a",
            "a\n",
            "\u{feff}a\r\nb\r\n",
            "a\rb",
            "a\r\nb\nc\rd\n",
            "\n\n",
        ] {
            let form = plain(stored).replace('\n', "\r\n");
            assert_eq!(restored(stored, &form), stored, "{stored:?}");
        }
    }

    #[test]
    fn a_change_keeps_the_ends_of_the_other_lines() {
        let check = |stored, sent, expected: &str| assert_eq!(restored(stored, sent), expected);
        check(
            "\u{feff}a\r\nb\r\n",
            "a\r\nx\r\nc\r\n",
            "\u{feff}a\r\nx\r\nc\r\n",
        );
        check("a\r\nb\nc\rd", "a\r\nB\r\nc\r\nd", "a\r\nB\r\nc\rd");
        check("a\nb\n", "a\r\nb\r\nc", "a\nb\nc");
        check("", "a\r\nb\r\n", "a\nb\n");
    }
}
