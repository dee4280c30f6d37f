//! Sessions as people read them: text for a terminal, Markdown, HTML, JSON. The command line and
//! the server write the same.

/// Adds to a text, which cannot fail.
macro_rules! put {
    ($out:expr, $($what:tt)*) => {{
        use std::fmt::Write as _;
        let _ = write!($out, $($what)*);
    }};
}

pub mod asked;
mod blocks;
mod call;
mod diff;
pub mod escape;
mod header;
mod html;
mod json;
mod lines;
mod markdown;
mod order;
mod parts;
pub mod pen;
mod prose;
mod session;
mod style;
pub mod text;
pub mod words;
pub mod wrap;

#[cfg(test)]
mod tests;

pub use header::Header;
pub use session::{Form, Session};
pub use style::Style;
