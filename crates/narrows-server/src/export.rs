//! Stored sessions as a source of the renderers of `narrows-render`.
//!
//! `narrows export`, `narrows show` and the export route all read the store through
//! [`StoredSession`].

use narrows::Item;
use narrows::tool::Image;
use narrows_render::{
    BlobSource, ExportFormat, ItemSource, RenderOptions, SessionHeader, SessionSource,
    SessionSummary, write_session,
};
use narrows_store::{Result, SessionRow, Store, Window};
use std::io::{self, Write};
use tokio::runtime::Handle;

/// Items that are read from the store at once.
const PAGE_ITEMS: usize = 200;

/// A stored session from a first item on. Reading blocks: never call it on a runtime thread.
#[derive(Debug)]
pub struct StoredSession {
    store: Store,
    runtime: Handle,
    row: SessionRow,
    key: i64,
    first_order: u64,
}

impl StoredSession {
    /// Creates a source from the row and the key of a session; `runtime` must outlive every read.
    pub fn new(store: Store, runtime: Handle, row: SessionRow, key: i64) -> StoredSession {
        StoredSession { store, runtime, row, key, first_order: 0 }
    }

    /// Skips the items before `order`.
    pub fn from(self, order: u64) -> StoredSession {
        StoredSession { first_order: order, ..self }
    }

    /// Reads the header of the session.
    pub fn header(&self) -> io::Result<SessionHeader> {
        let item = |window: Window| {
            let page = self.wait(self.store.items(self.key, window, 1))?;
            Ok::<_, io::Error>(page.items.into_iter().next().map(|row| row.item))
        };
        let (first, last) = (item(Window::From(0))?, item(Window::End)?);
        Ok(session_header(&self.row, first.as_ref(), last.as_ref()))
    }

    /// Writes the session in `format`.
    pub fn write(
        &self,
        out: &mut dyn Write,
        format: ExportFormat,
        options: &RenderOptions,
    ) -> io::Result<()> {
        write_session(out, format, self, options)
    }

    fn wait<T>(&self, query: impl Future<Output = Result<T>>) -> io::Result<T> {
        self.runtime.block_on(query).map_err(io::Error::other)
    }
}

impl ItemSource for StoredSession {
    fn items(&self, each: &mut dyn FnMut(Item) -> io::Result<()>) -> io::Result<()> {
        let mut next = self.first_order;
        loop {
            let page = self.wait(self.store.items(self.key, Window::From(next), PAGE_ITEMS))?;
            let Some(last) = page.items.last() else { return Ok(()) };
            next = last.order + 1;
            for row in page.items {
                each(row.item)?;
            }
            if !page.after {
                return Ok(());
            }
        }
    }
}

impl BlobSource for StoredSession {
    fn image_bytes(&self, image: &Image) -> Option<Vec<u8>> {
        let blob = self.wait(self.store.blob(self.key, &image.blob)).ok()?;
        Some(blob.bytes.to_vec())
    }
}

impl SessionSource for StoredSession {
    type Record = SessionRow;

    fn record(&self) -> &SessionRow {
        &self.row
    }

    fn header(&self) -> io::Result<SessionHeader> {
        StoredSession::header(self)
    }
}

/// Builds the header of a session from its row, its first item and its last item.
pub fn session_header(
    row: &SessionRow,
    first: Option<&Item>,
    last: Option<&Item>,
) -> SessionHeader {
    let mut header = SessionHeader {
        id: row.id.clone(),
        label: row.label.clone(),
        project: row.project.clone(),
        info: SessionSummary::from_json(row.info.get()),
        ..SessionHeader::default()
    };
    header.set_bounds(first, last);
    header.period = header.period.or(Some((row.created_at, row.updated_at)));
    header
}
