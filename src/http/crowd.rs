//! How much of a thing one client has at a time: connections of an address, streams of an actor.

use std::collections::HashMap;
use std::hash::Hash;
use std::sync::{Arc, Mutex, PoisonError};

/// Counts what each key has. Keys that have nothing are not kept.
#[derive(Debug)]
pub struct Crowd<K> {
    held: Mutex<HashMap<K, usize>>,
}

/// One of them; it is given back when this is dropped.
#[derive(Debug)]
pub struct Held<K: Hash + Eq> {
    crowd: Arc<Crowd<K>>,
    key: K,
}

impl<K> Default for Crowd<K> {
    fn default() -> Self {
        Self {
            held: Mutex::default(),
        }
    }
}

impl<K: Hash + Eq + Clone> Crowd<K> {
    /// One more for a key; none when it has as many as it may.
    pub fn take(self: &Arc<Self>, key: K, most: usize) -> Option<Held<K>> {
        let mut held = self.held.lock().unwrap_or_else(PoisonError::into_inner);
        let count = held.get(&key).copied().unwrap_or(0);
        if count >= most {
            return None;
        }
        held.insert(key.clone(), count + 1);
        drop(held);
        Some(Held {
            crowd: self.clone(),
            key,
        })
    }
}

impl<K: Hash + Eq> Drop for Held<K> {
    fn drop(&mut self) {
        let mut held = self
            .crowd
            .held
            .lock()
            .unwrap_or_else(PoisonError::into_inner);
        if let Some(count) = held.get_mut(&self.key) {
            *count -= 1;
            if *count == 0 {
                held.remove(&self.key);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_key_has_its_own_and_gives_back() {
        let crowd = Arc::new(Crowd::default());
        let first = crowd.take("a", 2).unwrap();
        let second = crowd.take("a", 2).unwrap();
        assert!(crowd.take("a", 2).is_none());
        let other = crowd.take("b", 2).unwrap();
        drop(first);
        let third = crowd.take("a", 2).unwrap();
        assert!(crowd.take("a", 2).is_none());
        drop((second, third, other));
        assert!(crowd.held.lock().unwrap().is_empty());
    }
}
