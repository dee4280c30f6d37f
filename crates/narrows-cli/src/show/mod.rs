//! `narrows show`: a session in one of several forms.

/// Adds to a text, which cannot fail.
macro_rules! put {
    ($out:expr, $($what:tt)*) => {{
        use std::fmt::Write as _;
        let _ = write!($out, $($what)*);
    }};
}

mod blocks;
pub(crate) mod call;
mod diff;
pub(crate) mod escape;
pub(crate) mod header;
mod html;
mod json;
mod lines;
mod markdown;
mod order;
mod pager;
pub(crate) mod pen;
mod prose;
pub(crate) mod style;
pub(crate) mod text;
pub(crate) mod wrap;

#[cfg(test)]
mod tests;

pub(crate) use header::Header;
pub(crate) use style::Style;

use crate::args::{ShowArgs, ShowFormat};
use crate::library::Library;
use crate::{Fault, fault};
use html::Pictures;
use narrows::Item;
use narrows::tool::Image;
use narrows_store::{SessionRow, Window};
use order::Source;
use pager::Output;
use std::io::Write;

/// Items that are read at once.
const PAGE: usize = 500;

pub(crate) fn run(args: &ShowArgs) -> Result<(), Fault> {
    let (name, item) = match args.session.split_once('#') {
        Some((name, item)) => (name, Some(item)),
        None => (args.session.as_str(), None),
    };
    let library = Library::open(&args.library)?;
    let row = library.session(if name.is_empty() { "latest" } else { name })?;
    let mut session = Session::new(&library, row)?;
    if let Some(item) = item {
        session.from = session.order_of(item)?;
    }
    if let Some(last) = args.last {
        session.from = session.from.max(session.first_of_last(last)?);
    }
    let mut style = Style::of_terminal(args.width, args.color);
    style.tools = args.tools || args.all;
    style.thinking = args.thinking || args.all;
    let mut out = Output::new(!args.no_pager && args.format == ShowFormat::Text);
    let done = session.write(&mut out, args.format, &style);
    out.finish(done)
}

/// A session in the store, from an item on.
pub(crate) struct Session<'a> {
    library: &'a Library,
    row: SessionRow,
    key: i64,
    from: u64,
}

impl Source for Session<'_> {
    fn items(&self, each: &mut dyn FnMut(Item) -> Result<(), Fault>) -> Result<(), Fault> {
        self.library.items(&self.row, self.from, each)
    }
}

impl Pictures for Session<'_> {
    fn picture(&self, image: &Image) -> Option<Vec<u8>> {
        let blob = self.library.wait(self.library.store.blob(self.key, &image.blob)).ok()?;
        Some(blob.bytes.to_vec())
    }
}

impl<'a> Session<'a> {
    pub(crate) fn new(library: &'a Library, row: SessionRow) -> Result<Session<'a>, Fault> {
        let key = library.wait(library.store.session(&row.id))?.key;
        Ok(Session { library, row, key, from: 0 })
    }

    /// What stands above it.
    pub(crate) fn header(&self) -> Result<Header, Fault> {
        let item = |window: Window| {
            let page = self.library.wait(self.library.store.items(self.key, window, 1))?;
            Ok::<_, Fault>(page.items.into_iter().next().map(|row| row.item))
        };
        let (first, last) = (item(Window::From(0))?, item(Window::End)?);
        Ok(Header::of(&self.row, first.as_ref(), last.as_ref()))
    }

    /// Writes it in a form.
    pub(crate) fn write(
        &self,
        out: &mut dyn Write,
        form: ShowFormat,
        style: &Style,
    ) -> Result<(), Fault> {
        let failed = || Fault::new("");
        match form {
            ShowFormat::Text => {
                let mut printer = text::Printer::new(out, style.clone());
                printer.header(&self.header()?).map_err(failed())?;
                order::ordered(self, |item| printer.item(item).map_err(failed()))?;
                printer.finish().map_err(failed())?;
                Ok(())
            }
            ShowFormat::Json => json::document(out, &self.row, self),
            ShowFormat::Jsonl => json::lines(out, self),
            ShowFormat::Md => markdown::write(out, &self.header()?, self, style),
            ShowFormat::Html => html::write(out, &self.header()?, self, self, style),
        }
    }

    fn order_of(&self, item: &str) -> Result<u64, Fault> {
        let found = self.library.wait(self.library.store.item(self.key, item));
        let none = |_| fault(format!("there is no item `{item}` in session {}", self.row.id));
        found.map(|(item, _)| item.order).map_err(none)
    }

    /// The order of the first of the last items.
    fn first_of_last(&self, last: usize) -> Result<u64, Fault> {
        let (mut window, mut left, mut first) = (Window::End, last.max(1), 0);
        while left > 0 {
            let size = left.min(PAGE);
            let page = self.library.wait(self.library.store.items(self.key, window, size))?;
            let Some(row) = page.items.first() else { break };
            first = row.order;
            left -= page.items.len().min(left);
            if !page.before {
                break;
            }
            window = Window::Before(first);
        }
        Ok(first)
    }
}
