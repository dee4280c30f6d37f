//! The durable log of narrows sessions, and the rows that are derived from it.
//!
//! One data directory holds one SQLite database. One thread writes it: what many callers append
//! at the same time shares one commit, and an append is answered when it is durable. Readers have
//! connections of their own and never wait for the writer.
//!
//! The log of clean events is the truth. A row holds an event, the changes that it made and the
//! messages of the activity view, as JSON that is served byte for byte. Rows of items are written
//! when an item closes, and completed from the log's tail when they are read.

mod append;
mod around;
mod audit;
mod backup;
mod batch;
mod beside;
mod blob;
mod bundle;
mod careful;
mod check;
mod clip;
mod cluster;
mod connection;
mod copies;
mod cursor;
mod damage;
mod db;
mod deadline;
mod dir;
mod durable;
mod era;
mod error;
mod figures;
mod files;
mod fill;
mod frames;
mod housework;
mod index;
mod intact;
mod items;
mod layout;
mod left_out;
mod link;
mod list;
mod log;
mod meta;
mod mover;
mod names;
mod news;
mod outline;
mod pack;
mod pen;
mod probe;
mod prompt;
mod repair;
mod revoked;
mod rows;
mod run;
mod search;
mod session_row;
mod sessions;
mod settle;
mod source;
mod stats;
mod store;
mod sum;
mod tail;
mod threes;
mod tokens;
mod unindexed;
mod which;
mod words;
mod writer;

pub use append::{Append, ItemWrite, Request, SessionFacts};
pub use audit::{Audited, NewAudit};
pub use backup::{backup, restore};
pub use blob::{Blob, NewBlob};
pub use check::Checked;
pub use clip::clip;
pub use cursor::{Cursor, Place, Within};
pub use damage::{Damage, Part as DamagedPart};
pub use dir::{ADDRESS_FILE, DataDir, TOKEN_FILE, write_private};
pub use error::{Error, Result};
pub use files::FileMark;
pub use housework::{Cleared, Retention};
pub use items::{ItemRow, Kept, Window, WindowPage};
pub use list::{Facet, Facets, ListFilter, ListPage, STALE_MS};
pub use log::{EventRow, Page, events_of};
pub use names::{new_epoch, new_id, now, random};
pub use news::News;
pub use outline::{FileSum, Outline, Turn};
pub use pack::{parts, plain};
pub use pen::Pen;
pub use repair::{Repaired, RepairedSession, Repairing, gone, repair};
pub use run::{Asked, Holding, MessageRow, MessageState, RunRow, Taken};
pub use search::{Hit, Part, Query, SearchPage};
pub use session_row::{SessionRow, Sight};
pub use sessions::{NewSession, Session};
pub use source::{BodyDigest, KeptRequest, SourceMark};
pub use stats::{StatsBy, StatsFilter, StatsRow, UsageRow};
pub use store::{Options, Store, StoreSize};
pub use tokens::{Scope, Scopes, Token, TokenKind};
pub use which::{MAX_BYTES, Which};

/// The number of the schema that this version writes.
pub const SCHEMA: u32 = connection::SCHEMA;
