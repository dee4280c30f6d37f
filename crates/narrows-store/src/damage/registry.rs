//! The damage that an open store has met, each place logged once.

use super::unindexed_lookup::ScanBackoff;
use super::{Damage, DamageKind, MAX_REPORTS};
use crate::error::{Error, Result};
use std::collections::BTreeSet;
use std::sync::{Mutex, MutexGuard, PoisonError};

/// All damage that was met while the store is open.
#[derive(Debug, Default)]
pub(crate) struct DamageRegistry {
    damage: Mutex<BTreeSet<Damage>>,
    scan_backoff: Mutex<ScanBackoff>,
}

impl DamageRegistry {
    fn lock(&self) -> MutexGuard<'_, BTreeSet<Damage>> {
        self.damage.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Adds new reports, and logs each once.
    pub(crate) fn add(&self, reports: Vec<Damage>) {
        if reports.is_empty() {
            return;
        }
        let mut all = self.lock();
        for damage in reports {
            if all.len() < MAX_REPORTS && !all.contains(&damage) {
                let session = damage
                    .lost_session_id()
                    .map_or_else(|| format!("#{}", damage.session), str::to_owned);
                let description = damage.words(&session);
                tracing::error!(damage = %description, "the store is damaged");
                all.insert(damage);
            }
        }
    }

    /// Adds the damage that made an operation fail.
    pub(crate) fn add_error<T>(&self, result: &Result<T>) {
        if let Err(Error::Damaged(detail)) = result {
            self.add(vec![Damage::database(detail.clone())]);
        }
    }

    /// Removes damage that was repaired.
    pub(crate) fn remove(&self, detail: &str) {
        self.lock().retain(|damage| damage.what != detail);
    }

    pub(crate) fn all(&self) -> Vec<Damage> {
        self.lock().iter().cloned().collect()
    }

    /// Whether the details of some damage contain a text.
    pub(crate) fn mentions(&self, text: &str) -> bool {
        self.lock().iter().any(|damage| damage.what.contains(text))
    }

    /// Whether the database file itself is damaged.
    pub(crate) fn has_database_damage(&self) -> bool {
        self.lock().iter().any(|damage| damage.part == DamageKind::Database)
    }

    /// The backoff of [`super::unindexed_lookup`].
    pub(super) fn scan_backoff(&self) -> MutexGuard<'_, ScanBackoff> {
        self.scan_backoff.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(crate) fn count(&self) -> usize {
        self.lock().len()
    }
}
