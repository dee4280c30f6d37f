//! Agents that narrows runs: real processes (the scripted agents), a real server, real clients.
#![allow(clippy::expect_used, clippy::panic, reason = "a test may fail loudly")]

#[path = "../agents/mod.rs"]
mod agents;
mod ends;
mod faults;
mod forms;
mod held;
mod helper;
mod ids;
mod life;
mod login;
mod newer;
mod permissions;
mod sent;
mod socket;
mod taken;
mod terminal;

#[path = "../served/mod.rs"]
mod served;
