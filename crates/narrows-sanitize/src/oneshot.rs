//! Whole texts and path fields, one call each.

use crate::paths::{Mode, Paths};
use crate::redactor::Redactor;
use crate::report::RedactionCounts;
use crate::secrets::Secrets;
use crate::text::{Clean, Raw};
use std::sync::Arc;

impl Redactor {
    /// Redacts with secrets that other redactors share.
    pub fn shared(paths: Paths, secrets: Arc<Secrets>) -> Self {
        Redactor::new(paths, secrets)
    }

    /// Redacts free text.
    pub fn text(&mut self, text: &str, mode: Mode) -> Clean {
        Clean(self.changed_text(text, mode).unwrap_or_else(|| text.into()))
    }

    /// Redacts free text that was received as [`Raw`], without a copy when nothing changes.
    pub fn redact(&mut self, raw: Raw, mode: Mode) -> Clean {
        Clean(self.shared_text(raw.0, mode))
    }

    /// Redacts a field that holds one path: it becomes relative to the root that contains it.
    pub fn field(&mut self, path: &str) -> Clean {
        Clean(self.path_text(path))
    }

    /// Counts of everything that was redacted so far.
    #[inline]
    pub fn removed(&self) -> &RedactionCounts {
        &self.counts
    }
}

/// Strips the session prefix of one path, as a path field is redacted when no root is known.
///
/// ```
/// let path = "/workspace/sessions/9c7662c1-785f-4f1c-b9e0-9021ddbf2893/outputs/web/page.tsx";
/// assert_eq!(narrows_sanitize::strip_session_prefix(path), "outputs/web/page.tsx");
/// ```
pub fn strip_session_prefix(path: &str) -> Clean {
    Redactor::new(Paths::new(), Secrets::none()).field(path)
}

/// Removes session prefixes from free text, as text is redacted when no root is known.
///
/// ```
/// let text = "cd /workspace/sessions/def-456/outputs/web && ls";
/// assert_eq!(narrows_sanitize::sanitize_paths_in_text(text), "cd outputs/web && ls");
/// ```
pub fn sanitize_paths_in_text(text: &str) -> Clean {
    Redactor::new(Paths::new(), Secrets::none()).text(text, Mode::Text)
}
