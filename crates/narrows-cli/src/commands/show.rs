//! `narrows show`: prints a session.

use crate::args::{OutputFormat, ShowArgs};
use crate::error::CliError;
use crate::local_store::{LATEST, LocalStore};
use crate::output::{PagedOutput, terminal_style};
use narrows_render::Form;
use narrows_server::export::StoredSession as Session;
use narrows_store::{SessionRow, Window};

const PAGE_ITEMS: usize = 500;

impl From<OutputFormat> for Form {
    fn from(format: OutputFormat) -> Form {
        match format {
            OutputFormat::Text => Form::Text,
            OutputFormat::Md => Form::Md,
            OutputFormat::Html => Form::Html,
            OutputFormat::Json => Form::Json,
            OutputFormat::Jsonl => Form::Jsonl,
        }
    }
}

pub(crate) fn run(args: &ShowArgs) -> Result<(), CliError> {
    let (name, item) = match args.session.split_once('#') {
        Some((name, item)) => (name, Some(item)),
        None => (args.session.as_str(), None),
    };
    let local = LocalStore::open(&args.local)?;
    // `#item` alone is an item of the latest session.
    let row =
        local.resolve_session(if name.is_empty() && item.is_some() { LATEST } else { name })?;
    let mut from = 0;
    if let Some(item) = item {
        from = item_order(&local, &row, item)?;
    }
    if let Some(last) = args.last {
        from = from.max(last_items_order(&local, &row, last)?);
    }
    let session = open_session(&local, row)?.from(from);
    let mut style = terminal_style(args.width, args.color);
    style.tools = args.tool_output || args.all;
    style.thinking = args.thinking || args.all;
    let mut out = PagedOutput::new(!args.no_pager && args.format == OutputFormat::Text);
    let written = session.write(&mut out, args.format.into(), &style).map_err(CliError::from);
    out.finish(written)
}

/// Opens a session for rendering.
pub(crate) fn open_session(local: &LocalStore, row: SessionRow) -> Result<Session, CliError> {
    let key = local.block_on(local.store.session(&row.id))?.key;
    Ok(Session::new(local.store.clone(), local.handle(), row, key))
}

/// The order of an item in its session.
fn item_order(local: &LocalStore, row: &SessionRow, item: &str) -> Result<u64, CliError> {
    let key = local.block_on(local.store.session(&row.id))?.key;
    let found = local.block_on(local.store.item(key, item));
    let not_found = |_| CliError::new(format!("no item `{item}` in session {}", row.id));
    found.map(|(item, _)| item.order).map_err(not_found)
}

/// The order of the first of the last `last` items.
fn last_items_order(local: &LocalStore, row: &SessionRow, last: usize) -> Result<u64, CliError> {
    let key = local.block_on(local.store.session(&row.id))?.key;
    let (mut window, mut left, mut first) = (Window::End, last.max(1), 0);
    while left > 0 {
        let size = left.min(PAGE_ITEMS);
        let page = local.block_on(local.store.items(key, window, size))?;
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
