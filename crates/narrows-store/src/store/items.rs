//! Items of a session.

use super::Store;
use crate::error::Result;
use crate::items::outline::{self, Outline};
use crate::items::read;
use crate::items::select::Which;
use crate::items::{Kept, Window, WindowPage};
use narrows::Item;

impl Store {
    /// Some items of a session, as they are now.
    pub async fn items(&self, session: i64, window: Window, limit: usize) -> Result<WindowPage> {
        self.items_of(session, Which::All, window, limit).await
    }

    /// Some of those items that are meant: a window counts only these. It has no more than
    /// [`MAX_BYTES`](crate::MAX_BYTES) of them, about, and one in any case.
    pub async fn items_of(
        &self,
        session: i64,
        which: Which,
        window: Window,
        limit: usize,
    ) -> Result<WindowPage> {
        self.read(move |db| read::window(db, session, &which, window, limit)).await
    }

    /// One item, as it is now, and whether the session's source is over.
    pub async fn item(&self, session: i64, id: &str) -> Result<(Item, bool)> {
        let id = id.to_owned();
        self.read(move |db| read::item(db, session, &id)).await
    }

    /// What is needed to go on: the header, open items and the last `recent` ones.
    pub async fn kept(&self, session: i64, recent: usize) -> Result<Kept> {
        self.read(move |db| read::kept(db, session, recent)).await
    }

    /// A session at a glance, with the turns after an order.
    pub async fn outline(&self, session: i64, after: Option<u64>, limit: usize) -> Result<Outline> {
        self.read(move |db| outline::outline(db, session, after, limit)).await
    }
}
