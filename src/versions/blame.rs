//! Which version each line of a prompt's file is from: its versions, from the newest on, each compared with the one before it.
//!
//! Versions follow a prompt through renames, and know nothing of commits that did not change it. Line ends are not compared.

use std::time::{Duration, Instant};

use similar::{Algorithm, DiffOp, capture_diff_slices_deadline};

use crate::git::{GitError, Repository};
use crate::history::Numbered;

/// Earlier versions that are looked at; what is older than those is not told apart.
const COMPARED: usize = 500;
/// How long it may take; then the rest is as if it were older.
const TIME: Duration = Duration::from_secs(1);
/// Lines of a file that are looked at; no file that passes the check has more, as its size is limited.
const LINES: usize = 65_536;

/// The lines of a file, and where they are from.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Blame {
    /// The version that they are of; 0 where there is none to be seen.
    pub version: u64,
    /// The lines, without what ends them.
    pub lines: Vec<String>,
    /// For each line the version it came with; none where that is older than what was compared.
    pub from: Vec<Option<u64>>,
}

/// Where the lines of a version are from, among the versions that were where `sees` allows. Blocks: reads up to 501 versions.
pub fn blame(
    repository: &Repository,
    numbered: &Numbered,
    at: u64,
    sees: impl Fn(&str) -> bool,
) -> Result<Blame, GitError> {
    let blobs = repository.blobs()?;
    let most = usize::try_from(at).unwrap_or(usize::MAX);
    let versions = numbered.versions.iter().enumerate().take(most).rev();
    let mut last = None;
    let texts = versions.filter(|(_, version)| sees(&version.path)).map(
        |(index, version)| -> Result<_, GitError> {
            let blob = blobs.file(&version.commit.hex(), &version.path)?;
            let text = match blob {
                Some(_) if blob == last => None,
                Some(id) => Some(String::from_utf8_lossy(&blobs.read(id)?).into_owned()),
                None => Some(String::new()),
            };
            last = blob;
            Ok((index as u64 + 1, text))
        },
    );
    walked(texts, Instant::now() + TIME)
}

/// Walks versions from the newest to the oldest: each with its text, or none where that is the one of the version before.
fn walked<E>(
    mut texts: impl Iterator<Item = Result<(u64, Option<String>), E>>,
    until: Instant,
) -> Result<Blame, E> {
    let Some((mut number, text)) = texts.next().transpose()? else {
        return Ok(Blame::default());
    };
    let version = number;
    let mut newer = text.unwrap_or_default();
    let lines: Vec<String> = newer.lines().take(LINES).map(str::to_owned).collect();
    let mut from = vec![None; lines.len()];
    // for each line of `newer`: which of the lines it is, where it is one
    let mut places: Vec<Option<usize>> = (0..lines.len()).map(Some).collect();
    let mut open = lines.len();
    for _ in 0..COMPARED {
        if open == 0 {
            break;
        }
        let Some(next) = texts.next() else {
            for place in places.into_iter().flatten() {
                from[place] = Some(number);
            }
            break;
        };
        let (below, older) = next?;
        if let Some(older) = older {
            let Some(kept) = kept(&newer, &older, until) else {
                break;
            };
            let mut next = vec![None; older.lines().count()];
            for (place, kept) in places.into_iter().zip(kept) {
                let Some(place) = place else { continue };
                if let Some(at) = kept {
                    next[at] = Some(place);
                } else {
                    from[place] = Some(number);
                    open -= 1;
                }
            }
            places = next;
            newer = older;
        }
        number = below;
    }
    Ok(Blame {
        version,
        lines,
        from,
    })
}

/// For each line of a text the line of an older one that it is. None where time is up: a comparison that was cut short
/// finds less than there is.
fn kept(newer: &str, older: &str, until: Instant) -> Option<Vec<Option<usize>>> {
    let old: Vec<&str> = older.lines().collect();
    let new: Vec<&str> = newer.lines().collect();
    let found = capture_diff_slices_deadline(Algorithm::Myers, &old, &new, Some(until));
    if Instant::now() >= until {
        return None;
    }
    let mut kept = vec![None; new.len()];
    for op in found {
        if let DiffOp::Equal {
            old_index,
            new_index,
            len,
        } = op
        {
            for offset in 0..len {
                kept[new_index + offset] = Some(old_index + offset);
            }
        }
    }
    Some(kept)
}

#[cfg(test)]
mod tests {
    use std::convert::Infallible;

    use super::*;

    /// Texts from the newest to the oldest, which is version 1.
    fn from(texts: &[&str], until: Instant) -> Vec<Option<u64>> {
        let newest = texts.len() as u64;
        let texts = texts.iter().zip(0..).map(|(text, below)| {
            let text = (!text.is_empty()).then(|| (*text).to_owned());
            Ok::<_, Infallible>((newest - below, text))
        });
        match walked(texts, until) {
            Ok(blame) => {
                assert_eq!(blame.version, newest);
                assert_eq!(blame.lines.len(), blame.from.len());
                blame.from
            }
            Err(never) => match never {},
        }
    }

    fn soon() -> Instant {
        Instant::now() + Duration::from_mins(1)
    }

    #[test]
    fn a_line_is_of_the_version_that_it_came_with() {
        assert_eq!(from(&["a\nb\n"], soon()), [Some(1), Some(1)]);
        assert_eq!(
            from(&["a\nB\nc\nd\n", "a\nb\nc\n", "a\nc\n"], soon()),
            [Some(1), Some(3), Some(1), Some(3)]
        );
        // an empty text stands for the same bytes again
        assert_eq!(from(&["a\nb\n", "", "a\n"], soon()), [Some(1), Some(2)]);
        assert_eq!(from(&[], soon()), Vec::<Option<u64>>::new());
    }

    #[test]
    fn line_ends_are_nobodys() {
        assert_eq!(from(&["a\r\nb", "a\nb\n"], soon()), [Some(1), Some(1)]);
    }

    #[test]
    fn what_is_older_than_what_is_compared_is_not_told_apart() {
        let texts: Vec<String> = (0..=COMPARED)
            .rev()
            .map(|version| format!("first\n{version}\n"))
            .collect();
        let texts: Vec<&str> = texts.iter().map(String::as_str).collect();
        assert_eq!(from(&texts, soon()), [None, Some(COMPARED as u64 + 1)]);
        assert_eq!(from(&texts[1..], soon())[0], Some(1));
        assert_eq!(from(&["a\nb\n", "a\n"], Instant::now()), [None, None]);
    }
}
