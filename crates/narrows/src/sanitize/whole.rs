//! Whole texts, outside of a stream of events.

use super::clean::Cleaner;
use super::paths::{Mode, Paths};
use super::removed::Removed;
use super::secret::Secrets;
use super::text::Clean;
use std::sync::Arc;

/// Cleans texts and paths one at a time.
#[derive(Debug, Clone)]
pub struct TextCleaner(Cleaner);

impl TextCleaner {
    /// Hides `paths` and `secrets`.
    pub fn new(paths: Paths, secrets: Secrets) -> Self {
        TextCleaner(Cleaner::new(paths, Arc::new(secrets)))
    }

    /// The same with secrets that others hide too.
    pub fn shared(paths: Paths, secrets: Arc<Secrets>) -> Self {
        TextCleaner(Cleaner::new(paths, secrets))
    }

    /// Cleans free text.
    pub fn text(&mut self, text: &str, mode: Mode) -> Clean {
        Clean(self.0.text(text, mode).unwrap_or_else(|| text.into()))
    }

    /// Cleans a path field: relative to the session root where it lies inside.
    pub fn field(&mut self, path: &str) -> Clean {
        Clean(self.0.field(path))
    }

    /// What was removed so far.
    pub fn removed(&self) -> &Removed {
        &self.0.removed
    }
}

/// Strips the session prefix of one path, as a path field is cleaned when no root is known.
///
/// ```
/// let path = "/workspace/sessions/9c7662c1-785f-4f1c-b9e0-9021ddbf2893/outputs/web/page.tsx";
/// assert_eq!(narrows::strip_session_prefix(path), "outputs/web/page.tsx");
/// ```
pub fn strip_session_prefix(path: &str) -> Clean {
    TextCleaner::new(Paths::new(), Secrets::none()).field(path)
}

/// Cuts session prefixes out of free text, as text is cleaned when no root is known.
///
/// ```
/// let text = "cd /workspace/sessions/def-456/outputs/web && ls";
/// assert_eq!(narrows::sanitize_paths_in_text(text), "cd outputs/web && ls");
/// ```
pub fn sanitize_paths_in_text(text: &str) -> Clean {
    TextCleaner::new(Paths::new(), Secrets::none()).text(text, Mode::Text)
}
