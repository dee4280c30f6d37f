//! `narrows rm`.

use crate::args::{HideArgs, LibraryArgs, RmArgs, When};
use crate::client::Client;
use crate::library::{Library, failed};
use crate::ls::{Known, title};
use crate::settings::data_dir;
use crate::table::{Cell, Column, Look, Table, unwritten};
use crate::when::Clock;
use crate::{Fault, fault, serve};
use narrows_show::pen::CYAN;
use narrows_show::words::count;
use narrows_store::{Options, SessionRow, Store};
use std::io::{self, BufRead, IsTerminal, Write};
use std::path::Path;

pub(crate) fn run(args: &RmArgs) -> Result<(), Fault> {
    let data = data_dir(&args.data)?;
    let rows = named(args)?;
    let what = count(rows.len(), "session");
    if !args.yes {
        if !io::stdin().is_terminal() {
            return Err(fault(format!("{what} would be deleted: say -y, nobody can be asked")));
        }
        if !agreed(&format!("Delete {what}? [y/N] "))? {
            return writeln!(io::stderr(), "nothing was deleted")
                .map_err(Fault::new("standard error"));
        }
    }
    delete(&data, &rows)?;
    let mut told = format!("deleted {what}\n");
    // Only what was read from an agent's files could come back.
    if rows.iter().any(|row| row.file_exists.is_some()) {
        told.push_str("The agent's own files stay; they are not read again.\n");
    }
    io::stdout().lock().write_all(told.as_bytes()).map_err(unwritten)
}

/// The sessions that were named, once each. Shows them.
fn named(args: &RmArgs) -> Result<Vec<SessionRow>, Fault> {
    let hide = HideArgs { root: Vec::new(), home: None, config: None, no_env: true };
    let library = Library::open(&LibraryArgs { data: args.data.clone(), no_scan: true, hide })?;
    let mut rows: Vec<SessionRow> = Vec::new();
    for name in &args.sessions {
        let row = library.session(name)?;
        if !rows.iter().any(|known| known.id == row.id) {
            rows.push(row);
        }
    }
    let (known, clock) = (Known::read(&library)?, Clock::here());
    let mut table = Table::new(vec![
        Column::text("ID", usize::MAX, usize::MAX),
        Column::number("WHEN"),
        Column::text("TITLE", 20, usize::MAX),
    ]);
    for row in &rows {
        table.push(vec![
            Cell::new(known.short(&row.id)).pen(CYAN),
            Cell::new(&clock.short(row.updated_at)),
            Cell::new(&title(row)),
        ]);
    }
    table.print(&mut io::stdout().lock(), Look::new(When::Auto))?;
    Ok(rows)
}

fn agreed(question: &str) -> Result<bool, Fault> {
    let mut out = io::stderr().lock();
    let asked = out.write_all(question.as_bytes()).and_then(|()| out.flush());
    asked.map_err(Fault::new("standard error"))?;
    let mut answer = String::new();
    io::stdin().lock().read_line(&mut answer).map_err(Fault::new("standard input"))?;
    Ok(matches!(answer.trim().to_lowercase().as_str(), "y" | "yes"))
}

fn delete(data: &Path, rows: &[SessionRow]) -> Result<(), Fault> {
    if let Some(client) = Client::find(data)? {
        // The server deletes: whoever follows a session is told.
        return rows.iter().try_for_each(|row| client.delete(&format!("/api/sessions/{}", row.id)));
    }
    serve::runtime()?.block_on(async {
        let store = Store::open(data, &Options::default()).map_err(failed)?;
        let mut done = Ok(());
        for row in rows {
            done = store.delete(&row.id).await.map_err(failed);
            if done.is_err() {
                break;
            }
        }
        store.close().await;
        done
    })
}
