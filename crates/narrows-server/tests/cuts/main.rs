//! A cut anywhere changes nothing and shows nothing: whatever ends between two packets or within one,
//! whoever sends them and however, the items are those of the uncut session, and no part of a secret
//! or of a root is ever kept or told.
#![allow(clippy::expect_used, clippy::panic, reason = "a test may fail loudly")]

mod answered;
mod bed;
mod captures;
#[path = "../common/mod.rs"]
mod common;
mod ends;
mod planted;
