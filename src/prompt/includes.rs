//! What a prompt includes: followed through the partials, bounded in number, size, depth and multiplication.

use std::collections::BTreeMap;
use std::ops::Range;
use std::sync::Arc;

use super::closure::Partials;
use super::limits::Limits;
use super::parse::{Partial, PromptFile};
use super::problem::{Problem, Severity, nearest};
use super::scan::{self, Construct};
use super::source::Source;

/// Bytes that the includes of one prompt put together, for each byte that a closure may have: the check goes through
/// every one of them.
const MAX_INCLUDED_TIMES: u64 = 2;

pub(super) struct Walk<'a> {
    pub(super) partials: &'a Partials,
    pub(super) limits: &'a Limits,
    pub(super) order: Vec<Arc<Partial>>,
    pub(super) bytes: usize,
    /// Includes of this prompt that name no partial.
    pub(super) missing: usize,
    pub(super) problems: &'a mut Vec<Problem>,
}

/// Missing partials that get a suggestion.
const SUGGESTIONS: usize = 20;

/// Missing partials that are reported of one prompt; fixing them shows the rest.
const MAX_MISSING: usize = 100;

impl Walk<'_> {
    /// Follows the includes of a file depth first; `chain` is how we came here.
    pub(super) fn includes(
        &mut self,
        source: &Source,
        constructs: &[Construct],
        chain: &mut Vec<String>,
    ) {
        for (name, token) in scan::includes(&source.text, constructs) {
            if self.missing >= MAX_MISSING {
                return;
            }
            if !super::parse::is_partial_name(name) {
                continue;
            }
            let mut error = |code, message: String, hint: Option<String>| {
                self.problems.push(source.problem(
                    Severity::Error,
                    code,
                    token.span.clone(),
                    message,
                    hint,
                ));
            };
            if chain.iter().any(|c| c == name) {
                let shown = way(chain, name);
                error(
                    "include-cycle",
                    format!("includes go in a circle: {shown}"),
                    Some("break the circle".into()),
                );
                continue;
            }
            if self.order.iter().any(|p| *p.name == *name) {
                continue;
            }
            let Some(partial) = self.partials.get(name) else {
                // looking for what was meant costs a look at every partial: the first findings get it
                let near = (self.missing < SUGGESTIONS)
                    .then(|| nearest(name, self.partials.keys().map(|k| &**k)))
                    .flatten();
                self.missing += 1;
                let hint = near.map_or_else(
                    || format!("create partials/{name}"),
                    |near| format!("did you mean `{near}`?"),
                );
                error(
                    "include-missing",
                    format!("there is no partial `{name}` (partials/{name})"),
                    Some(hint),
                );
                continue;
            };
            if chain.len() > self.limits.include_depth {
                let shown = way(chain, name);
                error(
                    "include-depth",
                    format!(
                        "includes go {} deep; at most {} are followed (include_depth): {shown}",
                        chain.len(),
                        self.limits.include_depth
                    ),
                    Some("join some of the partials".into()),
                );
                return;
            }
            if self.order.len() + 1 >= self.limits.closure_files {
                let shown = way(chain, name);
                error(
                    "include-count",
                    format!(
                        "the prompt includes more than {} files (closure_files counts the prompt too): {shown}",
                        self.limits.closure_files - 1
                    ),
                    Some("join some of the partials".into()),
                );
                return;
            }
            self.bytes += partial.source.text.len();
            if self.bytes > self.limits.closure_bytes {
                error(
                    "include-size",
                    format!(
                        "the prompt and what it includes are {} bytes; at most {} are read (closure_bytes)",
                        self.bytes, self.limits.closure_bytes
                    ),
                    None,
                );
                return;
            }
            let partial = partial.clone();
            self.order.push(partial.clone());
            chain.push(name.to_owned());
            self.includes(&partial.source, &partial.constructs, chain);
            chain.pop();
        }
    }
}

/// Refuses includes that multiply; there is no circle when this is called.
pub(super) fn fan_out(
    file: &PromptFile,
    partials: &Partials,
    limits: &Limits,
    problems: &mut Vec<Problem>,
) {
    let mut known = BTreeMap::new();
    let mut total = Included::default();
    let mut heaviest: Option<(Included, &str, Range<usize>)> = None;
    for (name, token) in scan::includes(&file.source.text, &file.constructs) {
        let count = included(name, partials, &mut known);
        total.add(count);
        if heaviest.as_ref().is_none_or(|(most, ..)| count > *most) {
            heaviest = Some((count, name, token.span.clone()));
        }
    }
    // 30 partials that include the next one twice are a thousand million texts
    let most_texts = limits.includes_count as u64;
    let most_bytes = (limits.closure_bytes as u64).saturating_mul(MAX_INCLUDED_TIMES);
    let Some((_, name, span)) =
        heaviest.filter(|_| total.texts > most_texts || total.bytes > most_bytes)
    else {
        return;
    };
    let mut chain = format!("{} → {name}", file.name);
    let mut at = name;
    while let Some(partial) = partials.get(at)
        && let Some((next, _)) = scan::includes(&partial.source.text, &partial.constructs)
            .max_by_key(|(name, _)| known.get(*name).copied().unwrap_or_default())
    {
        chain.push_str(&format!(" → {next}"));
        at = next;
    }
    let message = if total.texts > most_texts {
        format!(
            "the includes multiply: {} texts are put together, at most {most_texts} may be (includes_count): {chain}",
            total.texts
        )
    } else {
        format!(
            "the includes multiply: {} bytes are put together, at most {most_bytes} may be (twice closure_bytes): {chain}",
            total.bytes
        )
    };
    problems.push(file.source.problem(
        Severity::Error,
        "include-fan-out",
        span,
        message,
        Some("include each partial once, where it is needed".into()),
    ));
}

/// What an include puts in.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, PartialOrd, Ord)]
struct Included {
    texts: u64,
    bytes: u64,
}

impl Included {
    fn add(&mut self, other: Self) {
        self.texts = self.texts.saturating_add(other.texts);
        self.bytes = self.bytes.saturating_add(other.bytes);
    }
}

/// What an include puts in, itself counted.
fn included<'p>(
    name: &'p str,
    partials: &'p Partials,
    known: &mut BTreeMap<&'p str, Included>,
) -> Included {
    if let Some(count) = known.get(name) {
        return *count;
    }
    let mut count = Included { texts: 1, bytes: 0 };
    if let Some(partial) = partials.get(name) {
        count.bytes = partial.source.text.len() as u64;
        for (name, _) in scan::includes(&partial.source.text, &partial.constructs) {
            count.add(included(name, partials, known));
        }
    }
    known.insert(name, count);
    count
}

/// How an include was come to: `p → a.md → b.md`.
fn way(chain: &[String], name: &str) -> String {
    let mut out = chain.join(" → ");
    out.push_str(" → ");
    out.push_str(name);
    out
}
