//! A map that forgets its oldest entries.

use crate::sanitize::Clean;
use ecow::EcoString;
use std::collections::{HashMap, VecDeque};

/// At most `cap` entries, by text; the one that came first goes first.
#[derive(Debug)]
pub(crate) struct BoundedMap<V> {
    cap: usize,
    map: HashMap<EcoString, V>,
    order: VecDeque<EcoString>,
}

impl<V: Default> BoundedMap<V> {
    pub(crate) fn new(cap: usize) -> Self {
        BoundedMap { cap, map: HashMap::new(), order: VecDeque::new() }
    }

    pub(crate) fn has(&self, key: &str) -> bool {
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

    /// Takes out the oldest entry when there is no room for `key`.
    pub(crate) fn make_room(&mut self, key: &str) -> Option<(EcoString, V)> {
        if self.map.len() < self.cap || self.map.contains_key(key) {
            return None;
        }
        while let Some(oldest) = self.order.pop_front() {
            if let Some(value) = self.map.remove(&oldest) {
                return Some((oldest, value));
            }
        }
        None
    }

    /// The entry of `key`, made if it is not there, and whether it was made.
    pub(crate) fn open(&mut self, key: &str) -> (&mut V, bool) {
        self.open_as(key, || key.into())
    }

    /// The same for a key whose text can be shared.
    pub(crate) fn open_shared(&mut self, key: &Clean) -> (&mut V, bool) {
        self.open_as(key, || key.shared())
    }

    fn open_as(&mut self, key: &str, make: impl FnOnce() -> EcoString) -> (&mut V, bool) {
        let new = !self.map.contains_key(key);
        if new {
            self.make_room(key);
            // Entries that were taken out leave their names behind: sweep them now and then.
            if self.order.len() > 2 * self.cap {
                self.order.retain(|k| self.map.contains_key(k));
            }
        }
        let key = make();
        if new {
            self.order.push_back(key.clone());
        }
        (self.map.entry(key).or_default(), new)
    }

    /// The keys of the values that are looked for, oldest first.
    pub(crate) fn keys(&self, wanted: impl Fn(&V) -> bool) -> Vec<EcoString> {
        let is_wanted = |key: &&EcoString| self.map.get(*key).is_some_and(&wanted);
        let mut keys: Vec<EcoString> = self.order.iter().filter(is_wanted).cloned().collect();
        // A key that was taken and came back has its old place too.
        let mut seen = std::collections::HashSet::new();
        keys.retain(|key| seen.insert(key.clone()));
        keys
    }

    pub(crate) fn take(&mut self, key: &str) -> Option<V> {
        self.map.remove(key)
    }
}
