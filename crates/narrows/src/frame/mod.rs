//! Framing: splits the bytes of a source into lines, and lines into packets.
//!
//! Knows nothing of formats: what a packet means is decided by its adapter.

pub mod lines;
pub mod packets;
