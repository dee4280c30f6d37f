//! Items of a session.

use super::Store;
use crate::error::Result;
use crate::items::outline::{self, Outline};
use crate::items::read;
use crate::items::select::Which;
use crate::items::{Kept, Window, WindowPage};
use narrows::Item;

impl Store {
    /// Reads a window over all items of a session.
    pub async fn items(&self, session: i64, window: Window, limit: usize) -> Result<WindowPage> {
        self.items_of(session, Which::All, window, limit).await
    }

    /// Reads a window over the selected items, of about [`MAX_BYTES`](crate::MAX_BYTES) bytes and
    /// at least one item.
    pub async fn items_of(
        &self,
        session: i64,
        which: Which,
        window: Window,
        limit: usize,
    ) -> Result<WindowPage> {
        self.read(move |db| read::window(db, session, &which, window, limit)).await
    }

    /// Reads an item, and whether the session's source has ended.
    pub async fn item(&self, session: i64, id: &str) -> Result<(Item, bool)> {
        let id = id.to_owned();
        self.read(move |db| read::item(db, session, &id)).await
    }

    /// Reads the state needed to resume a session, with the last `recent` items.
    pub async fn kept(&self, session: i64, recent: usize) -> Result<Kept> {
        self.read(move |db| read::resume_state(db, session, recent)).await
    }

    /// Reads the outline of a session, with the turns after a position.
    pub async fn outline(&self, session: i64, after: Option<u64>, limit: usize) -> Result<Outline> {
        self.read(move |db| outline::outline(db, session, after, limit)).await
    }
}
