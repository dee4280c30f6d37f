//! Prints a session while its log grows, for `narrows watch` and `narrows run`.

use crate::error::CliError;
use crate::local_store::store_error;
use narrows::item::ItemBody;
use narrows::{Change, Items, stored};
use narrows_render::Style;
use narrows_render::text::Printer;
use narrows_store::{SessionRow, Store, Window};
use std::io::{self, Write};

/// Limits of one page of the log.
const PAGE_EVENTS: usize = 500;
const PAGE_BYTES: usize = 4 << 20;

/// One session on standard output.
pub(super) struct LiveTranscript<W: Write> {
    row: SessionRow,
    key: i64,
    epoch: String,
    seq: u64,
    items: Items,
    output: TranscriptOutput<W>,
    /// Leaves out permission requests and questions, because the caller asks them.
    pub(super) hide_requests: bool,
    /// The last event to print.
    end_seq: Option<u64>,
    cancelled: bool,
}

enum TranscriptOutput<W: Write> {
    Text(Box<Printer<W>>),
    /// One event per line.
    Json(W),
}

impl<W: Write> TranscriptOutput<W> {
    fn flush(&mut self) -> io::Result<()> {
        match self {
            TranscriptOutput::Text(printer) => printer.flush(),
            TranscriptOutput::Json(out) => out.flush(),
        }
    }
}

impl<W: Write> LiveTranscript<W> {
    /// Prints the header and the last items, and continues from there.
    pub(super) async fn from_last(
        store: &Store,
        row: SessionRow,
        last: usize,
        out: W,
        style: Style,
    ) -> Result<Self, CliError> {
        let key = store.session(&row.id).await.map_err(store_error)?.key;
        let page = store.items(key, Window::End, last.max(1)).await.map_err(store_error)?;
        let mut printer = Printer::new(out, style);
        // A session without a title is named after its first prompt.
        let start = store.items(key, Window::From(0), 1).await.map_err(store_error)?;
        let (first, newest) = (start.items.first(), page.items.last());
        let header = narrows_server::export::session_header(
            &row,
            first.map(|i| &i.item),
            newest.map(|i| &i.item),
        );
        printer.header(&header).map_err(CliError::stdout)?;
        let mut items = Items::default();
        for stored in page.items {
            if last > 0 {
                printer.update(&stored.item).map_err(CliError::stdout)?;
            }
            items.apply(Change::Put { item: Box::new(stored.item) });
        }
        printer.flush().map_err(CliError::stdout)?;
        Ok(LiveTranscript {
            row,
            key,
            epoch: page.epoch,
            seq: page.seq,
            items,
            output: TranscriptOutput::Text(Box::new(printer)),
            hide_requests: false,
            end_seq: None,
            cancelled: false,
        })
    }

    /// Prints only what comes from now on: as text in a style, else as JSON events.
    pub(super) async fn from_now(
        store: &Store,
        row: SessionRow,
        out: W,
        style: Option<Style>,
    ) -> Result<Self, CliError> {
        let session = store.session(&row.id).await.map_err(store_error)?;
        let output = match style {
            Some(style) => TranscriptOutput::Text(Box::new(Printer::new(out, style))),
            None => TranscriptOutput::Json(out),
        };
        Ok(LiveTranscript {
            row,
            key: session.key,
            epoch: session.epoch,
            seq: session.seq,
            items: Items::default(),
            output,
            hide_requests: false,
            end_seq: None,
            cancelled: false,
        })
    }

    pub(super) fn session_id(&self) -> &str {
        &self.row.id
    }

    /// The items that were printed.
    pub(super) fn items(&self) -> &Items {
        &self.items
    }

    /// Stops at the end of the turn of a message, if that is known.
    pub(super) async fn stop_after_message(
        &mut self,
        store: &Store,
        message: u64,
    ) -> Result<(), CliError> {
        let row = store.message(self.key, message).await.map_err(store_error)?;
        self.end_seq = row.and_then(|row| row.until);
        Ok(())
    }

    /// Whether the last item is an error.
    pub(super) fn has_failed(&self) -> bool {
        let is_aside =
            |body: &ItemBody| matches!(body, ItemBody::Artifact { .. } | ItemBody::Notice { .. });
        let last = self.items.iter().filter(|item| !is_aside(&item.body)).last();
        last.is_some_and(|item| matches!(item.body, ItemBody::Error { .. }))
    }

    /// Whether the last completed turn was cancelled.
    pub(super) fn was_cancelled(&self) -> bool {
        self.cancelled
    }

    /// Prints a line between JSON events; nothing in text output.
    pub(super) fn print_json_line(&mut self, line: &str) -> io::Result<()> {
        match &mut self.output {
            TranscriptOutput::Json(out) => writeln!(out, "{line}").and_then(|()| out.flush()),
            TranscriptOutput::Text(_) => Ok(()),
        }
    }

    /// Prints new events; false if the session has ended.
    pub(super) async fn print_new(&mut self, store: &Store) -> Result<bool, CliError> {
        loop {
            let page = store.events_after(self.key, self.seq, PAGE_EVENTS, PAGE_BYTES).await;
            let page = page.map_err(store_error)?;
            if page.epoch != self.epoch {
                return Err(CliError::new(
                    "cannot continue: the session was reloaded from its source",
                )
                .hint("watch it again"));
            }
            let is_full = page.rows.len() == PAGE_EVENTS;
            for row in &page.rows {
                if self.end_seq.is_some_and(|end| row.seq > end) {
                    break;
                }
                self.seq = row.seq;
                if matches!(row.kind.as_ref(), "prompt_response" | "error") {
                    let event: serde_json::Value =
                        serde_json::from_slice(&row.event).unwrap_or_default();
                    self.cancelled = event["stopReason"] == "cancelled";
                }
                if let TranscriptOutput::Json(out) = &mut self.output {
                    let written = out.write_all(&row.event).and_then(|()| out.write_all(b"\n"));
                    written.map_err(CliError::stdout)?;
                }
                let Some(changes) = &row.changes else { continue };
                let text = std::str::from_utf8(changes).unwrap_or("[]");
                for change in stored::changes(text).unwrap_or_default() {
                    self.apply(change).map_err(CliError::stdout)?;
                }
            }
            if page.rows.is_empty() {
                return Ok(!store.session(&self.row.id).await.map_err(store_error)?.ended);
            }
            self.output.flush().map_err(CliError::stdout)?;
            if !is_full {
                return Ok(true);
            }
        }
    }

    fn apply(&mut self, change: Change) -> io::Result<()> {
        let Some(id) = change.item().map(|id| id.as_str().to_owned()) else { return Ok(()) };
        self.items.apply(change);
        let (Some(item), TranscriptOutput::Text(printer)) = (self.items.get(&id), &mut self.output)
        else {
            return Ok(());
        };
        let is_request =
            matches!(item.body, ItemBody::Permission { .. } | ItemBody::Question { .. });
        if is_request && self.hide_requests { Ok(()) } else { printer.update(item) }
    }
}
