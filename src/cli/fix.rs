//! `cuebook check --fix`: puts in what a problem says, byte for byte elsewhere.

use std::collections::BTreeMap;
use std::path::Path;
use std::sync::Arc;

use anyhow::Context as _;

use crate::catalog::Revision;
use crate::catalog::build::build;
use crate::prompt::Limits;
use crate::prompt::problem::Insertion;
use crate::registry::source::WorkTree;

/// Rounds of checking and fixing: a fix can uncover a second construct on the same line.
const ROUNDS: usize = 8;

/// Fixes the files of a work tree; gives how many changed.
pub(super) fn run(root: &Path, limits: &Limits) -> anyhow::Result<usize> {
    let mut changed = std::collections::BTreeSet::new();
    for _ in 0..ROUNDS {
        let tree = WorkTree::open(root)?;
        let built = build(&tree, Revision::WorkTree, limits, None)?;
        let mut by_path: BTreeMap<Arc<str>, Vec<Insertion>> = BTreeMap::new();
        for problem in &built.problems {
            by_path
                .entry(problem.path.clone())
                .or_default()
                .extend(problem.fix.iter().cloned());
        }
        by_path.retain(|_, fixes| !fixes.is_empty());
        if by_path.is_empty() {
            break;
        }
        for (path, fixes) in by_path {
            let file = root.join(&*path);
            let text = std::fs::read_to_string(&file)
                .with_context(|| format!("cannot read {}", file.display()))?;
            std::fs::write(&file, insert(&text, fixes))
                .with_context(|| format!("cannot write {}", file.display()))?;
            changed.insert(path);
        }
    }
    Ok(changed.len())
}

/// Puts insertions into stored text, whose newlines may be CRLF or CR and which may begin with a BOM.
fn insert(text: &str, mut fixes: Vec<Insertion>) -> String {
    fixes.sort_by_key(|f| (f.line, f.column));
    fixes.dedup();
    let mut fixes = fixes.into_iter().peekable();
    let mut out = String::with_capacity(text.len() + 64);
    let (mut line, mut column) = (1u32, 1u32);
    let mut chars = text.chars().peekable();
    loop {
        let at_bom = out.is_empty() && chars.peek() == Some(&'\u{feff}');
        while !at_bom && let Some(fix) = fixes.next_if(|f| (f.line, f.column) <= (line, column)) {
            out.push_str(fix.text);
        }
        let Some(c) = chars.next() else { return out };
        out.push(c);
        match c {
            '\u{feff}' if at_bom => {}
            '\n' => (line, column) = (line + 1, 1),
            '\r' if chars.peek() != Some(&'\n') => (line, column) = (line + 1, 1),
            '\r' => {}
            _ => column += 1,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn other_bytes_stay() {
        let fix = |line, column, text| Insertion { line, column, text };
        let text = "\u{feff}a\r\n한 {{ .x }}\r{#\n";
        let fixes = vec![
            fix(3, 1, "<"),
            fix(3, 3, ">"),
            fix(2, 3, "["),
            fix(2, 11, "]"),
        ];
        assert_eq!(insert(text, fixes), "\u{feff}a\r\n한 [{{ .x }}]\r<{#>\n");
        assert_eq!(insert("ab", vec![fix(1, 3, "!")]), "ab!");
    }
}
