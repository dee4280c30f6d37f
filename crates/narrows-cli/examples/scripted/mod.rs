//! What the scripted agents share: programs that do what the prompt says, for tests.
//!
//! A prompt is one command a line; `script.rs` has the list.
#![allow(dead_code, unreachable_pub, reason = "each agent uses its part")]

pub mod acts;
pub mod options;
pub mod play;
pub mod room;
pub mod script;
pub mod state;
pub mod wire;

/// Sixteen bytes that nobody else has, as a UUID is written.
pub fn uuid() -> String {
    use std::hash::{BuildHasher, Hasher, RandomState};
    let part = || RandomState::new().build_hasher().finish();
    let (a, b) = (part(), part());
    format!(
        "{:08x}-{:04x}-4{:03x}-8{:03x}-{:012x}",
        a >> 32,
        (a >> 16) & 0xffff,
        a & 0xfff,
        b >> 52,
        b & 0xffff_ffff_ffff
    )
}
