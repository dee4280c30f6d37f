//! Renders transcripts as terminal text, Markdown, HTML and JSON, for the command line and the
//! server alike.
//!
//! The crate knows items and nothing of where they are stored: a [`SessionSource`] supplies them.
//! Begin with [`write_session`]; [`TranscriptPrinter`] prints items that arrive one by one.

/// Appends formatted text to a `String`, which cannot fail.
macro_rules! append {
    ($out:expr, $($args:tt)*) => {{
        use std::fmt::Write as _;
        let _ = write!($out, $($args)*);
    }};
}

pub mod ansi_style;
mod call;
mod diff;
pub mod escape;
mod export;
pub mod format;
mod html;
mod json;
mod line_diff;
mod markdown;
mod markdown_blocks;
mod nesting;
mod options;
pub mod permission;
mod session_header;
mod terminal_markdown;
pub mod text;
mod text_parts;
pub mod wrap;

#[cfg(test)]
mod tests;

pub use export::{ExportFormat, SessionSource, write_session};
pub use html::BlobSource;
pub use nesting::ItemSource;
pub use options::RenderOptions;
pub use session_header::{SessionHeader, SessionSummary, TokenUsage};
pub use text::TranscriptPrinter;

// Former names, until their uses in other crates are renamed.
pub use ansi_style as pen;
pub use export::ExportFormat as Form;
pub use format as words;
pub use options::RenderOptions as Style;
pub use permission as asked;
pub use session_header::SessionHeader as Header;
