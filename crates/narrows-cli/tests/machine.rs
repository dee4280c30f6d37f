//! narrows on a machine with an agent: it finds sessions by itself, follows them, and shows none of
//! the secrets in them.
#![allow(clippy::expect_used, clippy::panic, reason = "a test may fail loudly")]

#[path = "machine/asked.rs"]
mod asked;
#[path = "machine/canaries.rs"]
mod canaries;
#[path = "machine/database.rs"]
mod database;
#[path = "machine/demo.rs"]
mod demo;
#[path = "machine/finding.rs"]
mod finding;
#[path = "machine/home.rs"]
mod home;
#[path = "machine/serving.rs"]
mod serving;
#[path = "machine/trouble.rs"]
mod trouble;
#[path = "machine/twice.rs"]
mod twice;
#[path = "machine/watching.rs"]
mod watching;
