//! Items of a session: reading their rows, and completing them from the log.
//!
//! Item rows are a materialized view of the log. `read.rs` has windows of items, `overlay.rs` the
//! changes that rows lack; `append/item_write.rs` writes the rows.

pub(crate) mod derived;
pub(crate) mod first_prompt;
pub(crate) mod outline;
pub(crate) mod overlay;
pub(crate) mod read;
pub(crate) mod select;

pub(crate) use read::{
    COLUMNS, SessionSnapshot, open_items, read_item, read_row, report_damage, row, verify_row,
};
pub use read::{ItemRow, Kept, Window, WindowPage};

use narrows::{Change, Item};

/// A write of an item's row.
#[derive(Debug)]
pub enum ItemWrite {
    /// Inserts or replaces the item as of the event `seq`.
    Put {
        /// The item.
        item: Box<Item>,
        /// The last event whose change is in the item.
        seq: u64,
    },
    /// Applies changes to an item that has a row.
    Patch {
        /// The id of the item.
        id: String,
        /// The changes, each with the number of its event.
        changes: Vec<(u64, Change)>,
    },
    /// Removes the item.
    Remove {
        /// The id of the item.
        id: String,
    },
}
