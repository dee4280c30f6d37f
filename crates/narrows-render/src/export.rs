//! A whole session in one of the export formats.

use crate::html::{self, BlobSource};
use crate::nesting::{self, ItemSource};
use crate::options::RenderOptions;
use crate::session_header::SessionHeader;
use crate::text::TranscriptPrinter;
use crate::{json, markdown};
use serde::Serialize;
use std::io::{self, Write};

/// The format of an exported session.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ExportFormat {
    /// Text for a terminal.
    Text,
    /// Markdown.
    Md,
    /// One self-contained HTML file.
    Html,
    /// One JSON document: the session record and its items.
    Json,
    /// One JSON item per line.
    Jsonl,
}

/// A session that can be exported. Its methods may block.
pub trait SessionSource: ItemSource + BlobSource {
    /// The record of the session in the JSON export.
    type Record: Serialize;

    /// Returns the record of the session.
    fn record(&self) -> &Self::Record;

    /// Returns the header that stands above the transcript.
    fn header(&self) -> io::Result<SessionHeader>;
}

/// Writes a session in `format`.
pub fn write_session<S: SessionSource>(
    out: &mut dyn Write,
    format: ExportFormat,
    session: &S,
    options: &RenderOptions,
) -> io::Result<()> {
    match format {
        ExportFormat::Text => {
            let mut printer = TranscriptPrinter::new(out, options.clone());
            printer.header(&session.header()?)?;
            nesting::for_each_item(session, |item| printer.item(item))?;
            printer.finish()?;
            Ok(())
        }
        ExportFormat::Json => json::write_document(out, session.record(), session),
        ExportFormat::Jsonl => json::write_lines(out, session),
        ExportFormat::Md => markdown::write(out, &session.header()?, session, options),
        ExportFormat::Html => html::write(out, &session.header()?, session, session, options),
    }
}
