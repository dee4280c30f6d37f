//! Where sessions lie on disk.

mod claude;

pub use claude::{Found, find};
