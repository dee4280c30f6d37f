//! Checks of the parser against recorded packets: drift of a format, parity of two formats.

pub mod drift;
pub mod parity;
