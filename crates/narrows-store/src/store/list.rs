//! Lists, facets and statistics of sessions, and search.

use super::Store;
use crate::error::Result;
use crate::search::query::{Query, SearchPage, search};
use crate::sessions::list::{Facets, ListFilter, ListPage, facets, list};
use crate::sessions::row::Sight;
use crate::sessions::stats::{StatsFilter, StatsRow, stats};

impl Store {
    /// One page of sessions.
    pub async fn list(&self, filter: ListFilter) -> Result<ListPage> {
        self.read(move |db| list(db, &filter)).await
    }

    /// What the sessions that somebody sees have in common.
    pub async fn facets(&self, sight: Sight) -> Result<Facets> {
        self.read(move |db| facets(db, &sight)).await
    }
}

impl Store {
    /// Adds up. Rows come by name; by tool they have calls only.
    pub async fn stats(&self, filter: StatsFilter) -> Result<Vec<StatsRow>> {
        self.read(move |db| stats(db, &filter)).await
    }
}

impl Store {
    /// One page of hits.
    pub async fn search(&self, query: Query) -> Result<SearchPage> {
        self.read(move |db| search(db, &query)).await
    }
}
