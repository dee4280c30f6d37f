//! The old names of moved and renamed modules, for callers that still use them.

pub(crate) mod sum {
    pub(crate) use crate::checksum::{
        Checksum as Sum, ItemChecksum as ItemSum, log_counters_sql as tally, matches as holds,
        of_event_row as event, of_log_counters as tally_of, of_values as of,
        row_matches as row_holds,
    };
    impl Sum {
        pub(crate) fn end(self) -> i64 {
            self.finish()
        }
    }
    impl ItemSum<'_> {
        pub(crate) fn end(&self) -> i64 {
            self.without_level()
        }
        pub(crate) fn at(&self, top: bool) -> i64 {
            self.with_level(top)
        }
    }
}

pub(crate) mod beside {
    pub(crate) use crate::checksum::backfill::backfill_first as fill_first;
    pub(crate) use crate::checksum::columns::{AUDIT_MISMATCH as AUDIT, SECOND_SCHEMA as SECOND};
    pub(crate) use crate::checksum::side_tables::{
        PENDING_DELETE_MATCHES as DOOMED, of_activity as active_sum,
        of_pending_delete as doomed_sum, of_usage_owner as usage_sum, visibility_sql as hidden,
    };
    use crate::db::Db;
    use crate::error::Result;

    pub(crate) fn fill_second(db: &Db<'_>) -> Result<()> {
        crate::checksum::backfill::backfill_second(db)?;
        crate::meta::duplicate_redaction_key(db)
    }

    pub(crate) fn fill_all(db: &Db<'_>) -> Result<()> {
        fill_first(db)?;
        fill_second(db)
    }
}

pub(crate) mod figures {
    pub(crate) use crate::checksum::session_counters::{
        ColumnChange as Change, changed_sum_sql as changed, sum_sql as of,
    };
}

pub(crate) mod words {
    pub(crate) use crate::checksum::search_terms::with_sum_term as with_sum;
}

pub(crate) mod careful {
    pub(crate) use crate::damage::key_scan::{KeyScan as Careful, ScanStep as Next};
}

pub(crate) mod check {
    pub(crate) use crate::damage::check_progress::CheckProgress as Looking;
    pub(crate) use crate::damage::key_scan::session_keys as sessions;
}

pub(crate) mod unindexed {
    pub(crate) use crate::damage::unindexed_lookup::find_session_key as key_of;
}

/// Old names in `crate::damage`.
mod damage {
    use crate::damage::notice::{self, DamageEvent};
    use crate::damage::{Damage, DamageRegistry};
    use crate::error::Result;
    use crate::log::EventRow;

    pub(crate) fn event(session: &str, first: u64, last: u64, order: u64) -> EventRow {
        let DamageEvent { seq, event, changes } =
            notice::unreadable_events(session, first, last, order);
        EventRow { seq, kind: notice::KIND.into(), event, changes: Some(changes), activity: None }
    }

    impl DamageRegistry {
        pub(crate) fn keep(&self, found: Vec<Damage>) {
            self.add(found);
        }
        pub(crate) fn note<T>(&self, made: &Result<T>) {
            self.add_error(made);
        }
        pub(crate) fn forget(&self, what: &str) {
            self.remove(what);
        }
    }
}
pub(crate) use damage::event;

pub(crate) mod durable {
    use crate::dir::DataDir;
    pub(crate) use crate::durability::log_ends::{
        FILE_REPLACED as GONE, LogEnds as Durable, find_losses as missing, note_log_end as wrote,
        recorded_losses as lost,
    };
    use rusqlite::Connection;

    impl Durable {
        pub(crate) fn forget(dir: &DataDir) {
            Durable::remove(dir);
        }
        pub(crate) fn ends(dir: &DataDir) -> Vec<(i64, u64, String)> {
            Durable::read(dir)
        }
        pub(crate) fn roll_back() {
            Durable::discard_uncommitted();
        }
        pub(crate) fn committed(&mut self, db: &Connection) {
            self.write_committed(db);
        }
    }
}

pub(crate) mod frames {
    pub(crate) use crate::durability::wal_frames::{
        copy_if_damaged as keep, damage_of_copies as said, damage_of_wal as said_of_log,
        move_copies_aside as set_aside,
    };
    impl crate::durability::wal_frames::WalCopy {
        pub(crate) fn let_go(self) {
            self.discard_if_torn();
        }
    }
}

pub(crate) mod intact {
    pub(crate) use crate::durability::file_guard::FileGuard as Intact;
}

pub(crate) mod mover {
    use crate::connection::open_mover;
    use crate::dir::DataDir;
    pub(crate) use crate::durability::checkpointer::{Checkpointer as Mover, restart_wal};
    use crate::durability::file_guard::FileGuard;
    use crate::error::Result;
    use std::sync::Arc;
    use std::sync::atomic::AtomicBool;

    impl Mover {
        pub(crate) fn start(
            dir: &DataDir,
            removed: Arc<AtomicBool>,
            intact: Arc<FileGuard>,
        ) -> Result<Mover> {
            Mover::spawn(open_mover(dir)?, dir, removed, intact)
        }
    }
}

pub(crate) mod revoked {
    pub(crate) use crate::access::revocations::{
        Revocations as Revoked, delete_revoked_tokens as keep_revocations,
    };
    use crate::dir::DataDir;
    use crate::error::Result;

    impl Revoked {
        pub(crate) fn has(&self, hash: &[u8; 32]) -> bool {
            self.contains(hash)
        }
        pub(crate) fn forget(&self, dir: &DataDir, hash: &[u8; 32]) -> Result<()> {
            self.remove(dir, hash)
        }
    }
}
