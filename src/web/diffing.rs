//! A unified diff as rows of a page: numbered, and with what differs within a changed line marked.

use serde::Serialize;

/// Rows of one page at most; a person reads no more.
const ROWS: usize = 3000;

/// A file of a diff.
#[derive(Debug, Default, PartialEq, Eq, Serialize)]
pub struct File {
    /// Its name before and after, or one where they are the same.
    pub name: String,
    /// Its rows.
    pub rows: Vec<Row>,
    /// Lines that were added.
    pub added: usize,
    /// Lines that were removed.
    pub removed: usize,
}

/// A row: a line, or a place where lines are left out.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Row {
    /// `add`, `del`, `same` or `gap`.
    pub kind: &'static str,
    /// The line's number before.
    pub old: Option<u32>,
    /// Its number after.
    pub new: Option<u32>,
    /// The line up to what differs; all of it where nothing is marked.
    pub before: String,
    /// What differs within it.
    pub marked: String,
    /// The rest.
    pub after: String,
}

/// Reads a unified diff of one or more files.
pub fn files(diff: &str) -> Vec<File> {
    let mut out: Vec<File> = Vec::new();
    let (mut old, mut new) = (0, 0);
    // lines of the hunk that are still to come: a `--- x` within it is a removed line
    let (mut olds, mut news) = (0, 0);
    let mut from = String::new();
    let mut rows = 0;
    for line in diff.split_inclusive('\n') {
        let line = line.strip_suffix('\n').unwrap_or(line);
        if olds == 0 && news == 0 {
            if let Some(name) = line.strip_prefix("--- ") {
                name.clone_into(&mut from);
            } else if let Some(name) = line.strip_prefix("+++ ") {
                out.push(File {
                    name: if from == name || from == "/dev/null" {
                        name.to_owned()
                    } else if name == "/dev/null" {
                        from.clone()
                    } else {
                        format!("{from} → {name}")
                    },
                    ..File::default()
                });
            } else if let Some(place) = hunk(line) {
                ((old, olds), (new, news)) = place;
                if let Some(file) = out.last_mut()
                    && !file.rows.is_empty()
                {
                    file.rows.push(row("gap", None, None, ""));
                }
            }
            continue;
        }
        let Some(file) = out.last_mut() else { continue };
        rows += 1;
        let kind = line.chars().next();
        let text = line.get(1..).unwrap_or_default();
        let made = match kind {
            Some('+') => {
                news -= 1;
                file.added += 1;
                row("add", None, Some(new), text)
            }
            Some('-') => {
                olds -= 1;
                file.removed += 1;
                row("del", Some(old), None, text)
            }
            // a line about the end of the file, and no line of it
            Some('\\') => continue,
            _ => {
                olds = olds.saturating_sub(1);
                news = news.saturating_sub(1);
                row("same", Some(old), Some(new), text)
            }
        };
        old += u32::from(made.old.is_some());
        new += u32::from(made.new.is_some());
        if rows <= ROWS {
            file.rows.push(made);
        }
    }
    for file in &mut out {
        mark(&mut file.rows);
    }
    out
}

fn row(kind: &'static str, old: Option<u32>, new: Option<u32>, text: &str) -> Row {
    Row {
        kind,
        old,
        new,
        before: text.to_owned(),
        marked: String::new(),
        after: String::new(),
    }
}

type Place = ((u32, u32), (u32, u32));

/// `@@ -1,3 +1,4 @@`: where a hunk begins on both sides and how many lines it has there.
fn hunk(line: &str) -> Option<Place> {
    let inner = line.strip_prefix("@@ -")?.split(" @@").next()?;
    let (old, new) = inner.split_once(" +")?;
    let side = |text: &str| -> Option<(u32, u32)> {
        match text.split_once(',') {
            Some((from, count)) => Some((from.parse().ok()?, count.parse().ok()?)),
            None => Some((text.parse().ok()?, 1)),
        }
    };
    Some((side(old)?, side(new)?))
}

/// Marks what differs where as many lines were removed as were added in their place.
fn mark(rows: &mut [Row]) {
    let mut at = 0;
    while at < rows.len() {
        let dels = rows[at..]
            .iter()
            .take_while(|row| row.kind == "del")
            .count();
        let adds = rows[at + dels..]
            .iter()
            .take_while(|row| row.kind == "add")
            .count();
        if dels > 0 && dels == adds {
            let (removed, added) = rows[at..at + 2 * dels].split_at_mut(dels);
            for (removed, added) in removed.iter_mut().zip(added) {
                mark_pair(removed, added);
            }
        }
        at += (dels + adds).max(1);
    }
}

fn mark_pair(removed: &mut Row, added: &mut Row) {
    let old: Vec<char> = removed.before.chars().collect();
    let new: Vec<char> = added.before.chars().collect();
    let start = old.iter().zip(&new).take_while(|(a, b)| a == b).count();
    let end = old[start..]
        .iter()
        .rev()
        .zip(new[start..].iter().rev())
        .take_while(|(a, b)| a == b)
        .count();
    // lines with little in common are read better without
    if (start + end) * 3 < old.len().max(new.len()) {
        return;
    }
    let set = |row: &mut Row, chars: &[char]| {
        let text = |part: &[char]| part.iter().collect::<String>();
        row.before = text(&chars[..start]);
        row.marked = text(&chars[start..chars.len() - end]);
        row.after = text(&chars[chars.len() - end..]);
    };
    set(removed, &old);
    set(added, &new);
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_diff_becomes_rows() {
        let diff = "--- v1/a.md\n+++ v2/a.md\n@@ -1,3 +1,3 @@\n one\n-look at the pool\n+look at the pools\n three\n\
            @@ -9 +9,2 @@\n nine\n+--- no header\n--- /dev/null\n+++ v2/b.md\n@@ -0,0 +1 @@\n+new\n\\ No newline at end of file\n";
        let found = files(diff);
        assert_eq!(found.len(), 2);
        assert_eq!(
            (&*found[0].name, found[0].added, found[0].removed),
            ("v1/a.md → v2/a.md", 2, 1)
        );
        assert_eq!((&*found[1].name, found[1].added), ("v2/b.md", 1));
        let rows: Vec<(&str, Option<u32>, Option<u32>)> = found[0]
            .rows
            .iter()
            .map(|r| (r.kind, r.old, r.new))
            .collect();
        assert_eq!(
            rows,
            [
                ("same", Some(1), Some(1)),
                ("del", Some(2), None),
                ("add", None, Some(2)),
                ("same", Some(3), Some(3)),
                ("gap", None, None),
                ("same", Some(9), Some(9)),
                ("add", None, Some(10)),
            ]
        );
        assert_eq!(found[0].rows[6].before, "--- no header");
        let marked = &found[0].rows[2];
        assert_eq!(
            (&*marked.before, &*marked.marked),
            ("look at the pool", "s")
        );
    }

    #[test]
    fn nothing_is_no_file() {
        assert_eq!(files(""), Vec::new());
    }
}
