//! The problems of a revision, kept by what they were found in, so that a change costs only its own.

use std::collections::BTreeSet;
use std::sync::Arc;

use rpds::HashTrieMapSync;

use crate::prompt::Problem;

/// What a name of a source begins with that is no file: a group of files that want one name, the labels.
const GROUP: char = '\0';

/// Problems by source: the key of a file, or [`GROUP`] and words.
#[derive(Debug, Clone, Default)]
pub(super) struct Findings {
    by_source: HashTrieMapSync<Arc<str>, Arc<[Problem]>>,
    errors: usize,
    warnings: usize,
    /// Those that a file's check found in another file, which others may find again.
    shared: usize,
}

/// The source of a group's problems.
pub(super) fn group(kind: &str, name: &str) -> Arc<str> {
    format!("{GROUP}{kind}{GROUP}{name}").into()
}

impl Findings {
    /// Puts the problems of a source in the place of what it had.
    pub(super) fn set(&mut self, source: &Arc<str>, problems: Vec<Problem>) {
        if let Some(old) = self.by_source.get(source).cloned() {
            self.count(source, &old, usize::wrapping_sub);
            self.by_source.remove_mut(source);
        }
        if problems.is_empty() {
            return;
        }
        let problems: Arc<[Problem]> = once(problems).into();
        self.count(source, &problems, usize::wrapping_add);
        self.by_source.insert_mut(source.clone(), problems);
    }

    fn count(&mut self, source: &str, problems: &[Problem], by: fn(usize, usize) -> usize) {
        let file = source.split(GROUP).next().unwrap_or_default();
        let errors = problems.iter().filter(|p| p.is_error()).count();
        let shared = problems
            .iter()
            .filter(|p| !file.is_empty() && *p.path != *file)
            .count();
        self.errors = by(self.errors, errors);
        self.warnings = by(self.warnings, problems.len() - errors);
        self.shared = by(self.shared, shared);
    }

    /// Whether no error is among them.
    pub(super) fn is_clean(&self) -> bool {
        self.errors == 0
    }

    /// How many warnings there are.
    pub(super) fn warnings(&self) -> usize {
        if self.shared == 0 {
            return self.warnings;
        }
        self.all().iter().filter(|p| !p.is_error()).count()
    }

    /// Those of one source.
    pub(super) fn of(&self, source: &str) -> &[Problem] {
        self.by_source.get(source).map_or(&[], |found| &**found)
    }

    /// All, each once, by path and line.
    pub(super) fn all(&self) -> Vec<Problem> {
        let mut sources: Vec<_> = self.by_source.iter().collect();
        sources.sort_by_key(|(source, _)| *source);
        let all = sources
            .into_iter()
            .flat_map(|(_, problems)| problems.iter().cloned())
            .collect();
        let mut all = once(all);
        order(&mut all);
        all
    }
}

/// By path and line.
pub(super) fn order(problems: &mut [Problem]) {
    problems.sort_by(|a, b| {
        (&a.path, a.line, a.column, a.severity).cmp(&(&b.path, b.line, b.column, b.severity))
    });
}

/// A fault in a partial is found again by every prompt that includes it; one finding says it, naming a prompt.
fn once(mut problems: Vec<Problem>) -> Vec<Problem> {
    let place = |p: &Problem| (p.path.clone(), p.line, p.column, p.code);
    let named: BTreeSet<_> = problems
        .iter()
        .filter(|p| p.message.contains("(included by "))
        .map(place)
        .collect();
    let mut seen = BTreeSet::new();
    problems.retain(|p| {
        let shared = p.code == "template-syntax";
        let again = shared && named.contains(&place(p)) && !p.message.contains("(included by ");
        !again && seen.insert((place(p), p.severity, (!shared).then(|| p.message.clone())))
    });
    problems
}
