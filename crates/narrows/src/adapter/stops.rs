//! Why an answer or a turn ended before it was done, in words for people.

use crate::event::Note;
use crate::sanitize::Raw;

/// What is told of a reason to stop; none where there is nothing to tell. Agents name the limit of
/// turns in two ways.
pub(super) fn mark(reason: &str) -> Option<Note<Raw>> {
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
    Some(Note { kind: Raw::new(kind), text: Raw::new(text) })
}

/// What is told of a turn whose end has no reason.
pub(super) fn unnamed() -> Note<Raw> {
    let text = "The agent did not say why its turn ended.";
    Note { kind: Raw::new("no_stop_reason"), text: Raw::new(text) }
}

/// Whether a notice of this kind tells that an answer was cut off.
pub(super) fn is_cut(kind: &str) -> bool {
    matches!(kind, "max_tokens" | "context_full" | "refusal")
}
