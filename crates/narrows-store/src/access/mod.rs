//! Who may use the store: tokens, their revocation and the audit log.

pub(crate) mod revocations;
