//! What commands print: tables, times, colors, a pager.

mod pager;
mod style;
mod table;
mod time;

pub(crate) use pager::PagedOutput;
pub(crate) use style::terminal_style;
pub(crate) use table::{Cell, Column, Table, TerminalInfo, json_line};
pub(crate) use time::Clock;

use std::env;
use std::path::{Path, PathBuf};

/// A path for people: `~` stands for the home directory.
pub(crate) fn display_path(path: &Path) -> String {
    let home = env::var_os("HOME").filter(|h| !h.is_empty()).map(PathBuf::from);
    match home.as_ref().and_then(|home| path.strip_prefix(home).ok()) {
        Some(relative) => format!("~/{}", relative.display()),
        None => path.display().to_string(),
    }
}
