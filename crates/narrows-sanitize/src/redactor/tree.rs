//! Redacts JSON trees: every string, leaf or key, by the kind of its key. The text stays JSON.

use super::Redactor;
use crate::json_string::decode;
use crate::paths::Mode;
use crate::text::{Clean, Raw};
use crate::tree::{Tree, is_path_key, rewrite_strings};

impl Redactor {
    /// Redacts a tree of at most `max_bytes`; a longer one becomes a string that gives its length.
    pub fn redact_tree(&mut self, tree: &Tree<Raw>, max_bytes: usize) -> Tree<Clean> {
        let json = tree.0.peek();
        if json.len() > max_bytes {
            return Tree(Clean(ecow::eco_format!("\"({} bytes left out)\"", json.len())));
        }
        let clean = rewrite_strings(json, |raw, key| self.redact_json_string(raw, key));
        Tree(Clean(clean.into()))
    }

    /// Returns the redacted string with its quotes when it differs from the source.
    fn redact_json_string(&mut self, raw: &str, key: &str) -> Option<String> {
        let text = decode(raw);
        let clean = match key {
            key if is_path_key(key) => Some(self.path_text(&text)),
            "content" | "oldString" | "newString" | "old_string" | "new_string" | "patchText" => {
                self.changed_text(&text, Mode::Body)
            }
            _ => match self.redact_key_value(key, &text) {
                None => self.changed_text(&text, Mode::Text),
                placeholder => placeholder,
            },
        };
        // A lone surrogate is no character: it is written as U+FFFD.
        let has_replacement = text.contains(char::REPLACEMENT_CHARACTER);
        let changed = clean.as_deref().is_some_and(|c| c != text);
        if !changed && !has_replacement {
            return None;
        }
        serde_json::to_string(clean.as_deref().unwrap_or(&text)).ok()
    }
}
