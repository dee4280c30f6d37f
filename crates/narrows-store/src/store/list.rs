//! Lists, facets and statistics of sessions, and search.

use super::Store;
use crate::error::Result;
use crate::search::query::{Query, SearchPage, search};
use crate::sessions::list::{Facets, ListFilter, ListPage, facets, list};
use crate::sessions::row::Sight;
use crate::sessions::stats::{StatsFilter, StatsRow, stats};

impl Store {
    /// Reads a page of sessions.
    pub async fn list(&self, filter: ListFilter) -> Result<ListPage> {
        self.read(move |db| list(db, &filter)).await
    }

    /// Counts the visible sessions by agent and project.
    pub async fn facets(&self, sight: Sight) -> Result<Facets> {
        self.read(move |db| facets(db, &sight)).await
    }
}

impl Store {
    /// Computes statistics, sorted by name; grouped by tool, they contain calls only.
    pub async fn stats(&self, filter: StatsFilter) -> Result<Vec<StatsRow>> {
        self.read(move |db| stats(db, &filter)).await
    }
}

impl Store {
    /// Searches items.
    pub async fn search(&self, query: Query) -> Result<SearchPage> {
        self.read(move |db| search(db, &query)).await
    }
}
