//! The facts that only one of Claude Code's two forms of a session contains.

use crate::adapter::Side::{self, Both, History, Live};

/// The subject of a difference, the side that has it, and the reason.
pub(crate) const FORM_DIFFERENCES: &[(&str, Side, &str)] = &[
    ("earlier", History, "a resumed or forked session streams only new records"),
    ("user_message", History, "prompts are streamed only with --replay-user-messages"),
    ("notice command", History, "only the effect of a slash command is streamed"),
    (
        "notice refusal",
        History,
        "the stop reason of an answer is streamed only in partial messages",
    ),
    ("notice max_turns", Live, "2.0 does not record that the turn limit was reached"),
    ("text of a subagent", History, "the text of a subagent is in its own file"),
    ("thinking of a subagent", History, "the thinking of a subagent is in its own file"),
    ("tool_call of a subagent", History, "2.0 does not stream the calls of background subagents"),
    (
        "user_message of a subagent",
        History,
        "2.0 does not stream the prompts of background subagents",
    ),
    ("tool_call.permission", Live, "2.0 does not record who allowed a call"),
    ("tool_call.offloaded", Both, "output that is too long is stored in a file of its own"),
    ("question.requestId", Live, "the control channel is not recorded"),
    (
        "session.answers",
        Live,
        "2.0 does not record the end of most turns, and no version that of a command of the program",
    ),
];
