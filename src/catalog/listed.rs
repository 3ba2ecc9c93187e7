//! Lists of a catalog: a part of an ordered map that its successor shares.

use std::ops::Bound;
use std::sync::Arc;

use rpds::RedBlackTreeMapSync;

/// Values by a key that sorts as they are listed.
pub(super) type Ordered<T> = RedBlackTreeMapSync<Arc<str>, Arc<T>>;

/// Prompts or resources in their order; all of them or a part.
#[derive(Debug)]
pub struct Listed<'a, T> {
    map: &'a Ordered<T>,
    from: Bound<String>,
    to: Bound<String>,
}

impl<'a, T> Listed<'a, T> {
    pub(super) fn all(map: &'a Ordered<T>) -> Self {
        Self {
            map,
            from: Bound::Unbounded,
            to: Bound::Unbounded,
        }
    }

    pub(super) fn between(map: &'a Ordered<T>, from: String, to: String) -> Self {
        Self {
            map,
            from: Bound::Included(from),
            to: Bound::Excluded(to),
        }
    }

    /// What comes after a key, whether or not something has that key.
    #[must_use]
    pub fn after(self, key: &str) -> Self {
        let earlier = match &self.from {
            Bound::Included(from) => key < from.as_str(),
            Bound::Excluded(from) => key <= from.as_str(),
            Bound::Unbounded => false,
        };
        let beyond = match &self.to {
            Bound::Excluded(to) | Bound::Included(to) => key >= to.as_str(),
            Bound::Unbounded => false,
        };
        if earlier {
            return self;
        }
        // a range that begins at its end is empty; one that begins behind it is not allowed
        let from = match self.to {
            Bound::Excluded(ref to) if beyond => Bound::Included(to.clone()),
            _ => Bound::Excluded(key.to_owned()),
        };
        Self { from, ..self }
    }

    /// They, in order.
    pub fn iter(&self) -> impl Iterator<Item = &'a Arc<T>> + use<'_, 'a, T> {
        let from = self.from.as_ref().map(String::as_str);
        let to = self.to.as_ref().map(String::as_str);
        self.map.range::<str, _>((from, to)).map(|(_, value)| value)
    }

    /// How many there are; counted, unless it is all of them.
    pub fn len(&self) -> usize {
        match (&self.from, &self.to) {
            (Bound::Unbounded, Bound::Unbounded) => self.map.size(),
            _ => self.iter().count(),
        }
    }

    /// Whether there is none.
    pub fn is_empty(&self) -> bool {
        self.first().is_none()
    }

    /// The first.
    pub fn first(&self) -> Option<&'a Arc<T>> {
        self.iter().next()
    }
}

impl<'a, T> IntoIterator for Listed<'a, T> {
    type Item = &'a Arc<T>;
    type IntoIter = std::vec::IntoIter<&'a Arc<T>>;

    fn into_iter(self) -> Self::IntoIter {
        self.iter().collect::<Vec<_>>().into_iter()
    }
}

/// The key by which prompts are listed: by the parts of the folder, then by name.
pub fn list_key(folder: &str, name: &str) -> String {
    let mut key = folder_key(folder);
    key.push('\0');
    key.push_str(name);
    key
}

/// A slash sorts below every other character of a folder, so that parts are compared and not texts.
pub(super) fn folder_key(folder: &str) -> String {
    folder.replace('/', "\u{1}")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(map: &Ordered<String>, listed: Listed<'_, String>, expected: &[&str]) {
        assert_eq!(listed.len(), expected.len());
        assert_eq!(listed.is_empty(), expected.is_empty());
        assert!(listed.len() <= map.size());
        let found: Vec<&str> = listed.into_iter().map(|s| s.as_str()).collect();
        assert_eq!(found, expected);
    }

    #[test]
    fn a_part_is_what_lies_between() {
        let mut map: Ordered<String> = Ordered::default();
        for key in ["b", "a", "d", "c"] {
            map.insert_mut(key.into(), Arc::new(key.to_owned()));
        }
        let part = || Listed::between(&map, "b".into(), "d".into());
        check(&map, Listed::all(&map), &["a", "b", "c", "d"]);
        check(&map, Listed::all(&map).after("b"), &["c", "d"]);
        check(&map, Listed::all(&map).after("bb"), &["c", "d"]);
        check(&map, Listed::all(&map).after("z"), &[]);
        check(&map, part(), &["b", "c"]);
        check(&map, part().after("a"), &["b", "c"]);
        check(&map, part().after("b"), &["c"]);
        check(&map, part().after("c"), &[]);
        check(&map, part().after("d"), &[]);
        check(&map, part().after("z"), &[]);
    }

    #[test]
    fn folders_sort_by_their_parts() {
        let mut keys: Vec<String> = ["a-b", "a", "a/b", "", "a/b/c", "a/a"]
            .map(|folder| list_key(folder, "x"))
            .to_vec();
        keys.sort();
        let folders: Vec<String> = keys
            .iter()
            .map(|k| k.trim_end_matches("\0x").replace('\u{1}', "/"))
            .collect();
        assert_eq!(folders, ["", "a", "a/a", "a/b", "a/b/c", "a-b"]);
    }
}
