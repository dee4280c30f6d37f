//! Agents of one node, driven from another: two real servers on one PostgreSQL and one NATS. They do
//! nothing unless `NARROWS_TEST_STORE`=postgres: a pass of its own runs them with these services.
#![allow(clippy::expect_used, clippy::panic, reason = "a test may fail loudly")]

#[path = "../agents/mod.rs"]
mod agents;
mod driven;
#[path = "../run/helper.rs"]
#[allow(dead_code, reason = "each test uses its part")]
mod helper;
mod lost;
mod nodes;
#[path = "../served/mod.rs"]
mod served;
