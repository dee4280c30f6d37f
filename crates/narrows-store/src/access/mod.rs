//! Access control: tokens with their scopes, their revocation, and the audit log.
//! `store/tokens.rs` has the methods.

pub(crate) mod audit;
pub(crate) mod revocations;
pub(crate) mod tokens;
