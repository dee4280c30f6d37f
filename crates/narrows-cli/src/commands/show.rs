//! `narrows show`: a session in one of several forms.

mod pager;
pub(crate) mod style;

use crate::args::{ShowArgs, ShowFormat};
use crate::library::Library;
use crate::{Fault, fault};
use narrows_show::{Form, Session};
use narrows_store::{SessionRow, Window};
use pager::Output;

/// Items that are read at once.
const PAGE: usize = 500;

impl From<ShowFormat> for Form {
    fn from(format: ShowFormat) -> Form {
        match format {
            ShowFormat::Text => Form::Text,
            ShowFormat::Md => Form::Md,
            ShowFormat::Html => Form::Html,
            ShowFormat::Json => Form::Json,
            ShowFormat::Jsonl => Form::Jsonl,
        }
    }
}

pub(crate) fn run(args: &ShowArgs) -> Result<(), Fault> {
    let (name, item) = match args.session.split_once('#') {
        Some((name, item)) => (name, Some(item)),
        None => (args.session.as_str(), None),
    };
    let library = Library::open(&args.library)?;
    // `#item` alone is one of the latest.
    let row = library.session(if name.is_empty() && item.is_some() { "latest" } else { name })?;
    let mut from = 0;
    if let Some(item) = item {
        from = order_of(&library, &row, item)?;
    }
    if let Some(last) = args.last {
        from = from.max(first_of_last(&library, &row, last)?);
    }
    let session = session(&library, row)?.from(from);
    let mut style = style::of_terminal(args.width, args.color);
    style.tools = args.tools || args.all;
    style.thinking = args.thinking || args.all;
    let mut out = Output::new(!args.no_pager && args.format == ShowFormat::Text);
    let done = session.write(&mut out, args.format.into(), &style).map_err(Fault::new(""));
    out.finish(done)
}

/// A session, to be written.
pub(crate) fn session(library: &Library, row: SessionRow) -> Result<Session, Fault> {
    let key = library.wait(library.store.session(&row.id))?.key;
    Ok(Session::new(library.store.clone(), library.runtime(), row, key))
}

fn order_of(library: &Library, row: &SessionRow, item: &str) -> Result<u64, Fault> {
    let key = library.wait(library.store.session(&row.id))?.key;
    let found = library.wait(library.store.item(key, item));
    let none = |_| fault(format!("there is no item `{item}` in session {}", row.id));
    found.map(|(item, _)| item.order).map_err(none)
}

/// The order of the first of the last items.
fn first_of_last(library: &Library, row: &SessionRow, last: usize) -> Result<u64, Fault> {
    let key = library.wait(library.store.session(&row.id))?.key;
    let (mut window, mut left, mut first) = (Window::End, last.max(1), 0);
    while left > 0 {
        let size = left.min(PAGE);
        let page = library.wait(library.store.items(key, window, size))?;
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
