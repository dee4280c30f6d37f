//! Access control: tokens with their scopes, and the audit log. `store/tokens.rs` has the methods.

pub(crate) mod audit;
pub(crate) mod tokens;
