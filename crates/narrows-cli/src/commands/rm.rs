//! `narrows rm`: deletes sessions.

use super::session_index::{SessionIndex, title};
use crate::args::{ColorChoice, LocalStoreArgs, RedactionArgs, RmArgs};
use crate::client::Client;
use crate::config::data_dir;
use crate::error::CliError;
use crate::local_store::{LocalStore, store_error};
use crate::output::{Cell, Clock, Column, Table, TerminalInfo};
use crate::runtime::runtime;
use narrows_render::pen::CYAN;
use narrows_render::words::count;
use narrows_store::{Options, SessionRow, Store};
use std::io::{self, BufRead, IsTerminal, Write};
use std::path::Path;

pub(crate) fn run(args: &RmArgs) -> Result<(), CliError> {
    let data = data_dir(&args.data)?;
    let rows = list_sessions(args)?;
    let sessions = count(rows.len(), "session");
    if !args.yes {
        if !io::stdin().is_terminal() {
            return Err(CliError::new(format!(
                "cannot ask for confirmation to delete {sessions}: standard input is not a terminal"
            ))
            .hint("use --yes"));
        }
        if !confirm(&format!("Delete {sessions}? [y/N] "))? {
            return writeln!(io::stderr(), "nothing deleted")
                .map_err(CliError::cannot("write to standard error"));
        }
    }
    delete(&data, &rows)?;
    let mut message = format!("deleted {sessions}\n");
    // Only sessions from files of an agent could come back.
    if rows.iter().any(|row| row.file_exists.is_some()) {
        message.push_str("The agent's own files stay and are not imported again.\n");
    }
    io::stdout().lock().write_all(message.as_bytes()).map_err(CliError::stdout)
}

/// Resolves the named sessions, without duplicates, and prints them.
fn list_sessions(args: &RmArgs) -> Result<Vec<SessionRow>, CliError> {
    let redaction = RedactionArgs::none();
    let local =
        LocalStore::open(&LocalStoreArgs { data: args.data.clone(), no_scan: true, redaction })?;
    let mut rows: Vec<SessionRow> = Vec::new();
    for name in &args.sessions {
        let row = local.resolve_session(name)?;
        if !rows.iter().any(|known| known.id == row.id) {
            rows.push(row);
        }
    }
    let (index, clock) = (SessionIndex::load(&local)?, Clock::local());
    let mut table = Table::new(vec![
        Column::text("ID", usize::MAX, usize::MAX),
        Column::number("WHEN"),
        Column::text("TITLE", 20, usize::MAX),
    ]);
    for row in &rows {
        table.push(vec![
            Cell::new(index.short_id(&row.id)).style(CYAN),
            Cell::new(&clock.format_short(row.updated_at)),
            Cell::new(&title(row)),
        ]);
    }
    table.print(&mut io::stdout().lock(), TerminalInfo::stdout(ColorChoice::Auto))?;
    Ok(rows)
}

fn confirm(question: &str) -> Result<bool, CliError> {
    let mut out = io::stderr().lock();
    let asked = out.write_all(question.as_bytes()).and_then(|()| out.flush());
    asked.map_err(CliError::cannot("write to standard error"))?;
    let mut answer = String::new();
    io::stdin().lock().read_line(&mut answer).map_err(CliError::cannot("read standard input"))?;
    Ok(matches!(answer.trim().to_lowercase().as_str(), "y" | "yes"))
}

fn delete(data: &Path, rows: &[SessionRow]) -> Result<(), CliError> {
    if let Some(client) = Client::find(data)? {
        // Deleted by the server, so that clients are notified.
        return rows.iter().try_for_each(|row| client.delete(&format!("/api/sessions/{}", row.id)));
    }
    runtime()?.block_on(async {
        let store = Store::open(data, &Options::default()).map_err(store_error)?;
        let mut result = Ok(());
        for row in rows {
            result = store.delete(&row.id).await.map_err(store_error);
            if result.is_err() {
                break;
            }
        }
        store.close().await;
        result
    })
}
