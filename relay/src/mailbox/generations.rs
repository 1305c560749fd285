//! A bounded cache without bookkeeping per read: two generations of entries.

use std::collections::HashMap;
use std::hash::Hash;
use std::mem;

/// Keeps at least the `max` entries used last, and at most twice as many.
///
/// New and used entries are in the young generation; when it is full it becomes the old one, and the old one
/// is gone.
#[derive(Debug)]
pub(crate) struct Generations<K, V> {
    young: HashMap<K, V>,
    old: HashMap<K, V>,
    max: usize,
}

impl<K: Hash + Eq + Copy, V: Clone> Generations<K, V> {
    pub(crate) fn new(max: usize) -> Self {
        Self {
            young: HashMap::new(),
            old: HashMap::new(),
            max: max.max(1),
        }
    }

    pub(crate) fn get(&mut self, key: &K) -> Option<V> {
        if let Some(value) = self.young.get(key) {
            return Some(value.clone());
        }
        let value = self.old.remove(key)?;
        self.insert(*key, value.clone());
        Some(value)
    }

    pub(crate) fn insert(&mut self, key: K, value: V) {
        if self.young.len() >= self.max && !self.young.contains_key(&key) {
            self.old = mem::take(&mut self.young);
        }
        self.young.insert(key, value);
    }

    pub(crate) fn remove(&mut self, key: &K) {
        self.young.remove(key);
        self.old.remove(key);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn keeps_what_is_used_and_stays_bounded() {
        let mut cache = Generations::new(10);
        for n in 0..1_000 {
            cache.insert(n, n);
            assert_eq!(cache.get(&0), Some(0), "used all the time");
            assert!(cache.young.len() + cache.old.len() <= 20);
        }
        assert_eq!(cache.get(&1), None);
        assert_eq!(cache.get(&999), Some(999));
    }

    #[test]
    fn a_newer_value_hides_the_older_one() {
        let mut cache = Generations::new(1);
        cache.insert(1, "old");
        cache.insert(2, "other");
        cache.insert(1, "new");
        assert_eq!(cache.get(&1), Some("new"));
        cache.remove(&1);
        assert_eq!(cache.get(&1), None);
    }
}
