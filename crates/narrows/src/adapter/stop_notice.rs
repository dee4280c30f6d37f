//! Notices for answers and turns that ended early.

use crate::model::event::Notice;
use crate::sanitize::Raw;

/// Returns the notice for a stop reason; none for a regular end. Agents have two names for the turn
/// limit.
pub(super) fn notice_for(reason: &str) -> Option<Notice<Raw>> {
    let (kind, text) = match reason {
        "max_tokens" => ("max_tokens", "The answer was cut off at the token limit."),
        "model_context_window_exceeded" => {
            ("context_full", "The answer was cut off: the context window is full.")
        }
        "refusal" => ("refusal", "The model refused to go on."),
        "max_turns" | "max_turn_requests" => ("max_turns", "The limit of turns was reached."),
        "max_budget" => ("max_budget", "The limit of cost was reached."),
        _ => return None,
    };
    Some(Notice { kind: Raw::new(kind), text: Raw::new(text) })
}

/// Returns the notice for a turn that ended without a stop reason.
pub(super) fn missing_reason() -> Notice<Raw> {
    let text = "The agent did not say why its turn ended.";
    Notice { kind: Raw::new("no_stop_reason"), text: Raw::new(text) }
}

/// Whether a notice of this kind reports a truncated answer.
pub(super) fn is_truncation(kind: &str) -> bool {
    matches!(kind, "max_tokens" | "context_full" | "refusal")
}
