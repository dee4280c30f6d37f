//! Who may use the store: tokens, and the audit log of what they did.

pub(crate) mod audit;
pub(crate) mod tokens;
