//! Where a comment stands when the file it was made on has changed. Pure.

use std::time::Duration;

use similar::{Algorithm, DiffOp, capture_diff_slices_deadline};

/// How long one comparison may take; what is not matched by then counts as changed.
const COMPARING: Duration = Duration::from_millis(200);

/// The line of `now` that a line of `then` has become, both from 1; none where it was changed or removed.
pub fn carried(then: &str, now: &str, line: usize) -> Option<usize> {
    let index = line.checked_sub(1)?;
    if then == now {
        return (index < then.lines().count()).then_some(line);
    }
    let then: Vec<&str> = then.lines().collect();
    let now: Vec<&str> = now.lines().collect();
    let deadline = std::time::Instant::now() + COMPARING;
    let ops = capture_diff_slices_deadline(Algorithm::Myers, &then, &now, Some(deadline));
    ops.into_iter().find_map(|op| match op {
        DiffOp::Equal {
            old_index,
            new_index,
            len,
        } if (old_index..old_index + len).contains(&index) => {
            Some(new_index + (index - old_index) + 1)
        }
        _ => None,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_line_is_carried_or_outdated() {
        let then = "a\nb\nc\nd\n";
        assert_eq!(carried(then, then, 3), Some(3));
        assert_eq!(carried(then, then, 5), None);
        assert_eq!(carried(then, then, 0), None);
        assert_eq!(carried(then, "x\na\nb\nc\nd\n", 3), Some(4));
        assert_eq!(carried(then, "a\nc\nd\n", 3), Some(2));
        assert_eq!(carried(then, "a\nb\nC\nd\n", 3), None);
        assert_eq!(carried(then, "", 1), None);
    }

    proptest::proptest! {
        /// Where a line is said to be, the same text stands; and where nothing above changed, it stays.
        #[test]
        fn the_same_text_stands_there(
            then in proptest::collection::vec("[a-c]{0,2}", 1..20),
            now in proptest::collection::vec("[a-c]{0,2}", 0..20),
            at in 0..20usize,
        ) {
            let (a, b) = (then.join("\n") + "\n", now.join("\n") + "\n");
            let line = at % then.len() + 1;
            if let Some(to) = carried(&a, &b, line) {
                proptest::prop_assert_eq!(a.lines().nth(line - 1), b.lines().nth(to - 1));
            }
            let more = a.clone() + "more\n";
            proptest::prop_assert_eq!(carried(&a, &more, line), Some(line));
        }
    }
}
