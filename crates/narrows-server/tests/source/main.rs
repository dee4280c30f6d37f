//! The sessions of this machine: found, read into the store once, and followed as they grow.
#![allow(clippy::expect_used, clippy::panic, reason = "a test may fail loudly")]

mod bed;
mod both;
mod crash;
mod damaged;
mod deleted;
mod discovery;
mod following;
mod grown;
mod lines;
mod live;
mod private;
mod replaced;
mod replaced_anyhow;
mod requests;
mod twice;
mod upgrade;
mod used;
mod ways;
