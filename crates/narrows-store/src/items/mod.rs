//! Items of a session: reading their rows, and completing them from the log.

pub(crate) mod derived;
pub(crate) mod first_prompt;
pub(crate) mod outline;
pub(crate) mod overlay;
pub(crate) mod read;
pub(crate) mod select;

pub(crate) use read::{COLUMNS, Log, lost, open_items, read_item, read_row, row, sound};
pub use read::{ItemRow, Kept, Window, WindowPage};

use narrows::{Change, Item};

/// What happens to the row of an item.
#[derive(Debug)]
pub enum ItemWrite {
    /// The item as it is after the event `seq`.
    Put {
        /// The item.
        item: Box<Item>,
        /// The last event whose change is in it.
        seq: u64,
    },
    /// Changes of an item whose row was written before.
    Patch {
        /// The item.
        id: String,
        /// The changes, each with its event.
        changes: Vec<(u64, Change)>,
    },
    /// The item is gone.
    Remove {
        /// The item.
        id: String,
    },
}
