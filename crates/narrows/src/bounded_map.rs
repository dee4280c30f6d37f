//! A map of bounded size that evicts its oldest entries.

use crate::sanitize::Clean;
use ecow::EcoString;
use std::collections::{HashMap, HashSet, VecDeque};

/// At most `capacity` entries by text, evicted in the order of their insertion.
#[derive(Debug)]
pub(crate) struct BoundedMap<V> {
    capacity: usize,
    map: HashMap<EcoString, V>,
    order: VecDeque<EcoString>,
}

impl<V: Default> BoundedMap<V> {
    pub(crate) fn new(capacity: usize) -> Self {
        BoundedMap { capacity, map: HashMap::new(), order: VecDeque::new() }
    }

    pub(crate) fn contains_key(&self, key: &str) -> bool {
        self.map.contains_key(key)
    }

    pub(crate) fn get(&self, key: &str) -> Option<&V> {
        self.map.get(key)
    }

    pub(crate) fn get_mut(&mut self, key: &str) -> Option<&mut V> {
        self.map.get_mut(key)
    }

    pub(crate) fn len(&self) -> usize {
        self.map.len()
    }

    /// Evicts the oldest entry if there is no room for `key`.
    pub(crate) fn evict_for(&mut self, key: &str) -> Option<(EcoString, V)> {
        if self.map.len() < self.capacity || self.map.contains_key(key) {
            return None;
        }
        while let Some(oldest) = self.order.pop_front() {
            if let Some(value) = self.map.remove(&oldest) {
                return Some((oldest, value));
            }
        }
        None
    }

    /// The entry of `key`, inserted if it is missing, and whether it was inserted.
    pub(crate) fn get_or_insert(&mut self, key: &str) -> (&mut V, bool) {
        self.get_or_insert_with_key(key, || key.into())
    }

    /// Like [`BoundedMap::get_or_insert`], sharing the text of the key where possible.
    pub(crate) fn get_or_insert_shared(&mut self, key: &Clean) -> (&mut V, bool) {
        self.get_or_insert_with_key(key, || key.shared())
    }

    fn get_or_insert_with_key(
        &mut self,
        key: &str,
        make_key: impl FnOnce() -> EcoString,
    ) -> (&mut V, bool) {
        let is_new = !self.map.contains_key(key);
        if is_new {
            self.evict_for(key);
            // Removed entries leave their keys in `order`: sweep them now and then.
            if self.order.len() > 2 * self.capacity {
                self.order.retain(|k| self.map.contains_key(k));
            }
        }
        let key = make_key();
        if is_new {
            self.order.push_back(key.clone());
        }
        (self.map.entry(key).or_default(), is_new)
    }

    /// The keys of the values that match, oldest first.
    pub(crate) fn keys_where(&self, matches: impl Fn(&V) -> bool) -> Vec<EcoString> {
        let is_match = |key: &&EcoString| self.map.get(*key).is_some_and(&matches);
        let mut keys: Vec<EcoString> = self.order.iter().filter(is_match).cloned().collect();
        // A key that was removed and inserted again is in `order` twice.
        let mut seen = HashSet::new();
        keys.retain(|key| seen.insert(key.clone()));
        keys
    }

    pub(crate) fn remove(&mut self, key: &str) -> Option<V> {
        self.map.remove(key)
    }
}
