//! The durable log of sessions.
