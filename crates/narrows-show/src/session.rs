//! A session of the store, written in a form.

use crate::header::Header;
use crate::html::{self, Pictures};
use crate::order::{self, Source};
use crate::style::Style;
use crate::{json, markdown, text};
use narrows::Item;
use narrows::tool::Image;
use narrows_store::{Result, SessionRow, Store, Window};
use std::io::{self, Write};
use tokio::runtime::Handle;

/// Items that are read at once.
const PAGE: usize = 200;

/// What a session is written as.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Form {
    /// For a terminal.
    Text,
    /// Markdown.
    Md,
    /// One file for a browser.
    Html,
    /// One JSON document: the session and its items.
    Json,
    /// One item a line.
    Jsonl,
}

/// A session in the store, from an item on. Reading it blocks: not for the threads of a runtime.
#[derive(Debug)]
pub struct Session {
    store: Store,
    runtime: Handle,
    row: SessionRow,
    key: i64,
    from: u64,
}

impl Source for Session {
    fn items(&self, each: &mut dyn FnMut(Item) -> io::Result<()>) -> io::Result<()> {
        let mut next = self.from;
        loop {
            let page = self.wait(self.store.items(self.key, Window::From(next), PAGE))?;
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

impl Pictures for Session {
    fn picture(&self, image: &Image) -> Option<Vec<u8>> {
        let blob = self.wait(self.store.blob(self.key, &image.blob)).ok()?;
        Some(blob.bytes.to_vec())
    }
}

impl Session {
    /// A session by its row and its key; `runtime` is one that goes on while it is read.
    pub fn new(store: Store, runtime: Handle, row: SessionRow, key: i64) -> Session {
        Session { store, runtime, row, key, from: 0 }
    }

    /// Without the items before this order.
    pub fn from(self, order: u64) -> Session {
        Session { from: order, ..self }
    }

    /// What stands above it.
    pub fn header(&self) -> io::Result<Header> {
        let item = |window: Window| {
            let page = self.wait(self.store.items(self.key, window, 1))?;
            Ok::<_, io::Error>(page.items.into_iter().next().map(|row| row.item))
        };
        let (first, last) = (item(Window::From(0))?, item(Window::End)?);
        Ok(Header::of(&self.row, first.as_ref(), last.as_ref()))
    }

    /// Writes it in a form.
    pub fn write(&self, out: &mut dyn Write, form: Form, style: &Style) -> io::Result<()> {
        match form {
            Form::Text => {
                let mut printer = text::Printer::new(out, style.clone());
                printer.header(&self.header()?)?;
                order::ordered(self, |item| printer.item(item))?;
                printer.finish()?;
                Ok(())
            }
            Form::Json => json::document(out, &self.row, self),
            Form::Jsonl => json::lines(out, self),
            Form::Md => markdown::write(out, &self.header()?, self, style),
            Form::Html => html::write(out, &self.header()?, self, self, style),
        }
    }

    fn wait<T>(&self, work: impl Future<Output = Result<T>>) -> io::Result<T> {
        self.runtime.block_on(work).map_err(io::Error::other)
    }
}
