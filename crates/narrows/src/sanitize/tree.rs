//! JSON trees: every string in them, leaf or key, is shown; the text stays JSON.

use super::clean::Cleaner;
use super::paths::Mode;
use super::text::{Clean, Raw, Tree};
use crate::json::decode;
use memchr::memchr2;

/// Deepest nesting that is shown; what lies deeper is left out.
const MAX_DEPTH: usize = 64;

/// Cleans a checked tree of at most `limit` bytes; a longer one is named, not shown.
pub(super) fn clean(cleaner: &mut Cleaner, tree: &Tree<Raw>, limit: usize) -> Tree<Clean> {
    let json = tree.0.peek();
    if json.len() > limit {
        return Tree(Clean(ecow::eco_format!("\"({} bytes left out)\"", json.len())));
    }
    let shown = each_string(json, |raw, key| string(cleaner, raw, key));
    Tree(Clean(shown.into()))
}

/// A tree of which some strings are held back, and whether there are such: `cut` says how a string is
/// shown for now, under which key, when not whole.
pub(super) fn hold_back(
    tree: &Tree<Raw>,
    mut cut: impl FnMut(&str, &str) -> Option<String>,
) -> Option<Tree<Raw>> {
    let json = tree.0.peek();
    let mut any = false;
    let shown = each_string(json, |raw, key| {
        let part = cut(&decode(raw), key).and_then(|part| serde_json::to_string(&part).ok());
        any |= part.is_some();
        part
    });
    any.then(|| Tree(Raw::new(shown)))
}

/// The JSON text with some of its strings put anew, quotes included. `put` is given what stands
/// between the quotes, and the key of a value.
fn each_string(json: &str, mut put: impl FnMut(&str, &str) -> Option<String>) -> String {
    let b = json.as_bytes();
    let mut out = String::with_capacity(json.len());
    let (mut at, mut depth, mut from) = (0, 0, 0);
    let mut key = String::new();
    while let Some(&c) = b.get(at) {
        match c {
            b'"' => {
                let end = string_end(b, at + 1);
                let raw = json.get(at + 1..end).unwrap_or_default();
                let is_key = b.get(end + 1..).is_some_and(next_is_colon);
                let shown = put(raw, if is_key { "" } else { &key });
                if let Some(shown) = &shown {
                    out.push_str(json.get(from..at).unwrap_or_default());
                    out.push_str(shown);
                    from = end + 1;
                }
                if is_key {
                    key.clear();
                    key.push_str(raw);
                }
                at = end + 1;
            }
            b'{' | b'[' if depth == MAX_DEPTH => {
                out.push_str(json.get(from..at).unwrap_or_default());
                out.push_str("\"…\"");
                at = container_end(b, at);
                from = at;
            }
            b'{' | b'[' => {
                depth += 1;
                at += 1;
            }
            b'}' | b']' => {
                if c == b'}' {
                    key.clear();
                }
                depth = usize::saturating_sub(depth, 1);
                at += 1;
            }
            _ => at += 1,
        }
    }
    out.push_str(json.get(from..).unwrap_or_default());
    out
}

/// Where the string that begins at `at` has its closing quote.
fn string_end(b: &[u8], mut at: usize) -> usize {
    while let Some(i) = b.get(at..).and_then(|rest| memchr2(b'"', b'\\', rest)) {
        at += i;
        if b[at] == b'"' {
            return at;
        }
        at += 2;
    }
    b.len()
}

fn next_is_colon(b: &[u8]) -> bool {
    b.iter().find(|c| !c.is_ascii_whitespace()) == Some(&b':')
}

/// The place after the object or array that opens at `at`.
fn container_end(b: &[u8], mut at: usize) -> usize {
    let mut depth = 0usize;
    while let Some(&c) = b.get(at) {
        match c {
            b'"' => at = string_end(b, at + 1),
            b'{' | b'[' => depth += 1,
            b'}' | b']' => depth = depth.saturating_sub(1),
            _ => {}
        }
        at += 1;
        if depth == 0 {
            break;
        }
    }
    at
}

/// Whether the value of a key is a path.
pub(super) fn is_path(key: &str) -> bool {
    matches!(
        key,
        "filePath"
            | "file_path"
            | "filepath"
            | "path"
            | "cwd"
            | "file"
            | "directory"
            | "dir"
            | "outputPath"
            | "absolutePath"
            | "notebook_path"
    )
}

/// The shown string with its quotes, when it differs from the source.
fn string(cleaner: &mut Cleaner, raw: &str, key: &str) -> Option<String> {
    let text = decode(raw);
    let shown = match key {
        key if is_path(key) => Some(cleaner.field(&text)),
        "content" | "oldString" | "newString" | "old_string" | "new_string" | "patchText" => {
            cleaner.text(&text, Mode::Body)
        }
        _ => match cleaner.keyed(key, &text) {
            None => cleaner.text(&text, Mode::Text),
            masked => masked,
        },
    };
    // A lone surrogate is no text: it is written anew as U+FFFD.
    let lone = text.contains(char::REPLACEMENT_CHARACTER);
    let changed = shown.as_deref().is_some_and(|c| c != text);
    if !changed && !lone {
        return None;
    }
    serde_json::to_string(shown.as_deref().unwrap_or(&text)).ok()
}
