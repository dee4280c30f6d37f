//! `narrows watch`: a session as it happens.

use crate::args::WatchArgs;
use crate::index::{before_showing, is_followed, parts, unless_taken};
use crate::library::{failed, session};
use crate::settings::{data_dir, sources};
use crate::show::style;
use crate::{Fault, serve};
use narrows::item::ItemBody;
use narrows::{Change, Items, stored};
use narrows_server::intake::Intake;
use narrows_server::source::Follower;
use narrows_server::source::spool::Spools;
use narrows_show::text::Printer;
use narrows_show::{Header, Style};
use narrows_store::{ListFilter, SessionRow, Store, Window};
use std::io::{self, BufWriter, Write};
use std::time::Duration;

/// How often the log is looked at, and how often for a newer session.
const LOOK: Duration = Duration::from_millis(100);
const LOOKS: u32 = 10;
/// Rows that are read at once.
const ROWS: usize = 500;
const BYTES: usize = 4 << 20;

pub(crate) fn run(args: &WatchArgs) -> Result<(), Fault> {
    let data = data_dir(&args.library.data)?;
    if !args.library.no_scan {
        // A session can be named only when it was read.
        before_showing(&args.library.data, &args.library.hide)?;
    }
    let runtime = serve::runtime()?;
    // Somebody must read what agents write: whoever does it already, or this command.
    let is_read = args.library.no_scan || is_followed(&data)?;
    let own = if is_read { None } else { sources(&args.library.hide)? };
    runtime.block_on(async {
        let own = match own {
            Some(options) => unless_taken(parts(&data, &args.library.hide))?.map(|p| (p, options)),
            None => None,
        };
        let (store, reading) = match own {
            Some(((store, intake, hub), options)) => {
                let spools = Spools::new(&data, store.clone(), intake.clone(), hub.clone());
                let follower = Follower::start(store.clone(), intake.clone(), hub, options);
                (store, Some((intake, follower, spools.with_live(true))))
            }
            None => (Store::open_read_only(&data).map_err(failed)?, None),
        };
        let own = reading.as_ref().map(|(intake, _, spools)| (intake, spools));
        let printing = watch(args, &store, own);
        let done = tokio::select! {
            done = printing => done,
            ended = serve::wait() => ended.map_err(Fault::new("signals")),
        };
        if let Some((intake, follower, _)) = reading {
            follower.stop().await;
            intake.close().await;
            store.close().await;
        }
        done
    })
}

/// One session on the screen.
pub(crate) struct Watched<W: Write> {
    row: SessionRow,
    key: i64,
    epoch: String,
    seq: u64,
    items: Items,
    shown: Shown<W>,
    /// Questions are shown by whoever asks them.
    pub(crate) hide_asks: bool,
    /// The event after which nothing is shown.
    until: Option<u64>,
    cancelled: bool,
}

/// How a session is shown.
enum Shown<W: Write> {
    Text(Box<Printer<W>>),
    /// Its events, one a line.
    Json(W),
}

impl<W: Write> Shown<W> {
    fn flush(&mut self) -> io::Result<()> {
        match self {
            Shown::Text(printer) => printer.flush(),
            Shown::Json(out) => out.flush(),
        }
    }
}

async fn watch(
    args: &WatchArgs,
    store: &Store,
    own: Option<(&Intake, &Spools)>,
) -> Result<(), Fault> {
    let mut style = style::of_terminal(None, args.color);
    style.tools = args.tools;
    style.thinking = args.thinking;
    let mut watched: Option<Watched<_>> = None;
    let mut looks = 0_u32;
    let mut told = false;
    loop {
        if looks.is_multiple_of(LOOKS) {
            if let Some((intake, spools)) = own {
                spools.read().await;
                intake.tidy().await;
            }
            let row = match (&args.session, &watched) {
                (Some(name), None) => Some(session(store, name).await?),
                (Some(_), Some(_)) => None,
                (None, _) => newest(store).await?,
            };
            if let Some(row) = row
                && watched.as_ref().is_none_or(|w| w.row.id != row.id)
            {
                let out = BufWriter::new(io::stdout());
                watched = Some(begin(store, row, args.last, out, style.clone()).await?);
            }
            if watched.is_none() && !told {
                told = true;
                writeln!(io::stderr(), "no sessions yet: waiting for one")
                    .map_err(Fault::new("standard error"))?;
            }
        }
        if let Some(watched) = &mut watched
            && !watched.go_on(store).await?
            && args.until_end
        {
            return Ok(());
        }
        looks = looks.wrapping_add(1);
        tokio::time::sleep(LOOK).await;
    }
}

async fn newest(store: &Store) -> Result<Option<SessionRow>, Fault> {
    let one = ListFilter { limit: 1, ..ListFilter::default() };
    Ok(store.list(one).await.map_err(failed)?.sessions.into_iter().next())
}

/// Begins with the last items.
async fn begin<W: Write>(
    store: &Store,
    row: SessionRow,
    last: usize,
    out: W,
    style: Style,
) -> Result<Watched<W>, Fault> {
    let key = store.session(&row.id).await.map_err(failed)?.key;
    let page = store.items(key, Window::End, last.max(1)).await.map_err(failed)?;
    let mut printer = Printer::new(out, style);
    let print = |done: io::Result<()>| done.map_err(Fault::new("standard output"));
    // A session without a title is called by its first prompt.
    let beginning = store.items(key, Window::From(0), 1).await.map_err(failed)?;
    let (first, newest) = (beginning.items.first(), page.items.last());
    let header = Header::of(&row, first.map(|i| &i.item), newest.map(|i| &i.item));
    print(printer.header(&header))?;
    let mut items = Items::default();
    for one in page.items {
        if last > 0 {
            print(printer.update(&one.item))?;
        }
        items.apply(Change::Put { item: Box::new(one.item) });
    }
    print(printer.flush())?;
    let (shown, hide_asks, until) = (Shown::Text(Box::new(printer)), false, None);
    Ok(Watched {
        row,
        key,
        epoch: page.epoch,
        seq: page.seq,
        items,
        shown,
        hide_asks,
        until,
        cancelled: false,
    })
}

impl<W: Write> Watched<W> {
    /// Begins with what comes from now on.
    pub(crate) async fn after(
        store: &Store,
        row: SessionRow,
        out: W,
        style: Option<Style>,
    ) -> Result<Self, Fault> {
        let session = store.session(&row.id).await.map_err(failed)?;
        let (key, epoch, seq) = (session.key, session.epoch, session.seq);
        let shown = match style {
            Some(style) => Shown::Text(Box::new(Printer::new(out, style))),
            None => Shown::Json(out),
        };
        let (items, hide_asks, until) = (Items::default(), false, None);
        Ok(Watched { row, key, epoch, seq, items, shown, hide_asks, until, cancelled: false })
    }

    /// What was printed.
    pub(crate) fn items(&self) -> &Items {
        &self.items
    }

    /// Shows nothing after the end of a message's turn, once that is known.
    pub(crate) async fn ends_with(&mut self, store: &Store, message: u64) -> Result<(), Fault> {
        let row = store.message(self.key, message).await.map_err(failed)?;
        self.until = row.and_then(|row| row.until);
        Ok(())
    }

    /// Whether the last thing that happened is that something failed.
    pub(crate) fn has_failed(&self) -> bool {
        let aside =
            |body: &ItemBody| matches!(body, ItemBody::Artifact { .. } | ItemBody::Notice { .. });
        let last = self.items.iter().filter(|item| !aside(&item.body)).last();
        last.is_some_and(|item| matches!(item.body, ItemBody::Error { .. }))
    }

    /// Whether the last turn that ended was cancelled.
    pub(crate) fn was_cancelled(&self) -> bool {
        self.cancelled
    }

    /// Prints a line among the events.
    pub(crate) fn line(&mut self, line: &str) -> io::Result<()> {
        match &mut self.shown {
            Shown::Json(out) => writeln!(out, "{line}").and_then(|()| out.flush()),
            Shown::Text(_) => Ok(()),
        }
    }

    /// Prints what is new; false when nothing more comes.
    pub(crate) async fn go_on(&mut self, store: &Store) -> Result<bool, Fault> {
        loop {
            let page = store.events_after(self.key, self.seq, ROWS, BYTES).await.map_err(failed)?;
            if page.epoch != self.epoch {
                let what = "the session was read anew: watch it again to see it from here";
                return Err(crate::fault(what));
            }
            let full = page.rows.len() == ROWS;
            for row in &page.rows {
                if self.until.is_some_and(|until| row.seq > until) {
                    break;
                }
                self.seq = row.seq;
                if matches!(row.kind.as_ref(), "prompt_response" | "error") {
                    let event: serde_json::Value =
                        serde_json::from_slice(&row.event).unwrap_or_default();
                    self.cancelled = event["stopReason"] == "cancelled";
                }
                if let Shown::Json(out) = &mut self.shown {
                    let line = out.write_all(&row.event).and_then(|()| out.write_all(b"\n"));
                    line.map_err(Fault::new("standard output"))?;
                }
                let Some(changes) = &row.changes else { continue };
                let text = std::str::from_utf8(changes).unwrap_or("[]");
                for change in stored::changes(text).unwrap_or_default() {
                    self.apply(change).map_err(Fault::new("standard output"))?;
                }
            }
            if page.rows.is_empty() {
                return Ok(!store.session(&self.row.id).await.map_err(failed)?.ended);
            }
            self.shown.flush().map_err(Fault::new("standard output"))?;
            if !full {
                return Ok(true);
            }
        }
    }

    fn apply(&mut self, change: Change) -> io::Result<()> {
        let Some(id) = change.item().map(|id| id.as_str().to_owned()) else { return Ok(()) };
        self.items.apply(change);
        let (Some(item), Shown::Text(printer)) = (self.items.get(&id), &mut self.shown) else {
            return Ok(());
        };
        let asks = matches!(item.body, ItemBody::Permission { .. } | ItemBody::Question { .. });
        if asks && self.hide_asks { Ok(()) } else { printer.update(item) }
    }
}
