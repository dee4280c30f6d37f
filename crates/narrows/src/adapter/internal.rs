//! Text that stands where a user's words stand but that no user typed.

/// What such a text is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Internal {
    /// The user stopped the agent.
    Interrupted,
    /// A summary that replaces what came before.
    Compaction,
    /// Context for the model; nobody needs to see it.
    Context,
}

/// Recognises internal text, whatever white space is before it.
pub(super) fn classify(text: &str) -> Option<Internal> {
    const TABLE: &[(&str, Internal)] = &[
        ("[Request interrupted by user", Internal::Interrupted),
        ("This session is being continued from a previous conversation", Internal::Compaction),
        ("[Function Response:", Internal::Context),
        ("This is the Gemini CLI. We are setting up the context", Internal::Context),
        ("<system-reminder>", Internal::Context),
        ("<task-notification>", Internal::Context),
        ("<command-name>", Internal::Context),
        ("<environment_context>", Internal::Context),
        ("<session_context>", Internal::Context),
    ];
    let text = text.trim_start();
    TABLE.iter().find(|(start, _)| text.starts_with(start)).map(|(_, what)| *what)
}
