//! The durable log of narrows sessions, and the tables derived from it.
//!
//! A data directory holds one SQLite database; a cluster shares one PostgreSQL database. One thread
//! commits: appends that wait at the same time share a commit, and an append is acknowledged when
//! it is durable. Readers have connections of their own and never wait for the writer.
//!
//! The log of clean events is the source of truth. A log row holds an event, its changes and the
//! messages of the activity view, as JSON that is served byte for byte. Item rows are a
//! materialized view: they are written when an item closes, and completed from the log when they
//! are read.
//!
//! Modules, from low to high: `error`, `ids`, `keys`; `damage`, `db`, `checksum`, `durability`; `log`, `sessions`, `items`, `search`,
//! `sources`, `blobs`, which work on a transaction; `append`, `migrations`, `maintenance`,
//! `writer`; and [`Store`], whose methods combine them. `runs`, `integrity`, `repair` and `backup` build on the store.

mod access;
mod append;
mod backup;
mod blobs;
mod buckets;
mod checksum;
mod cluster;
mod compress;
mod cursor;
mod damage;
mod data_dir;
mod db;
mod deadline;
mod durability;
mod error;
mod event_row;
mod fold_case;
mod ids;
mod integrity;
mod items;
mod keys;
mod log;
mod maintenance;
mod meta;
mod migrations;
mod preview;
mod repair;
mod runs;
mod search;
mod sessions;
mod sources;
mod store;
mod writer;

pub use access::audit::{Audited, NewAudit};
pub use access::tokens::{Scope, Scopes, Token, TokenKind};
pub use append::{Append, Pen, Request, SessionFacts};
pub use backup::{backup, restore};
pub use blobs::{Blob, NewBlob};
pub use cluster::changes::News;
pub use cursor::{Cursor, Place, Within};
pub use damage::{Damage, DamageKind as DamagedPart};
pub use data_dir::{ADDRESS_FILE, DataDir, TOKEN_FILE, write_private};
pub use error::{Error, Result};
pub use event_row::EventRow;
pub use ids::{new_epoch, new_id, now, random};
pub use integrity::IntegrityReport as Checked;
pub use items::outline::{FileSum, Outline, Turn};
pub use items::select::{MAX_BYTES, Which};
pub use items::{ItemRow, ItemWrite, Kept, Window, WindowPage};
pub use log::event_block::{column_parts as parts, plain};
pub use log::{Page, events_of};
pub use maintenance::{Cleared, Retention};
pub use preview::clip;
pub use repair::{
    RepairProgress as Repairing, RepairReport as Repaired, SessionRepair as RepairedSession,
    missing_database as gone, repair,
};
pub use runs::{Asked, Holding, MessageRow, MessageState, RunRow, Taken};
pub use search::query::{Hit, Part, Query, SearchPage};
pub use sessions::list::{Facet, Facets, ListFilter, ListPage, STALE_MS};
pub use sessions::row::{SessionRow, Sight};
pub use sessions::stats::{StatsBy, StatsFilter, StatsRow, UsageRow};
pub use sessions::{NewSession, Session};
pub use sources::checkpoint::{BodyDigest, KeptRequest, SourceMark};
pub use sources::files::FileMark;
pub use store::{Options, Store, StoreSize};

/// The number of the schema that this version writes.
pub const SCHEMA: u32 = migrations::SCHEMA;
