//! JSON trees, kept as JSON text.
//!
//! Strings are rewritten in the text itself, so numbers, order and repeated keys stay as they are.

use crate::json_string::decode;
use crate::text::{Clean, Raw};
use memchr::memchr2;
use serde::{Serialize, Serializer};
use serde_json::value::RawValue;

/// Deepest nesting that is shown; deeper containers become `"…"`.
const MAX_DEPTH: usize = 64;

/// A JSON tree, kept as JSON text of stage `T`.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Tree<T>(pub(crate) T);

impl Tree<Raw> {
    /// Wraps one string as a JSON string.
    pub fn text(text: &str) -> Self {
        Tree(Raw::new(serde_json::Value::from(text).to_string()))
    }

    /// Wraps text that the caller has checked to be JSON.
    #[inline]
    pub fn checked(json: &str) -> Self {
        Tree(Raw::new(json))
    }

    /// Length of the JSON text in bytes.
    #[inline]
    pub fn json_len(&self) -> usize {
        self.0.peek().len()
    }

    /// Replaces strings of the tree. `replace` gets each decoded string and, for a value, its key (else
    /// `""`). Returns `None` when nothing was replaced.
    pub fn replace_strings(
        &self,
        mut replace: impl FnMut(&str, &str) -> Option<String>,
    ) -> Option<Tree<Raw>> {
        let mut any = false;
        let json = rewrite_strings(self.0.peek(), |raw, key| {
            let new = replace(&decode(raw), key).and_then(|new| serde_json::to_string(&new).ok());
            any |= new.is_some();
            new
        });
        any.then(|| Tree(Raw::new(json)))
    }
}

impl Tree<Clean> {
    /// Returns `{}`.
    pub fn empty() -> Self {
        Tree(Clean::literal("{}"))
    }

    /// Returns the JSON text.
    #[inline]
    pub fn json(&self) -> &str {
        &self.0.0
    }
}

impl Serialize for Tree<Clean> {
    fn serialize<S: Serializer>(&self, s: S) -> Result<S::Ok, S::Error> {
        match serde_json::from_str::<&RawValue>(&self.0.0) {
            Ok(raw) => raw.serialize(s),
            Err(_) => s.serialize_none(),
        }
    }
}

#[cfg(feature = "unchecked-deserialize")]
impl<'de> serde::Deserialize<'de> for Tree<Clean> {
    fn deserialize<D: serde::Deserializer<'de>>(d: D) -> Result<Self, D::Error> {
        <&RawValue>::deserialize(d).map(|raw| Tree(Clean(raw.get().into())))
    }
}

/// Copies the JSON text with some strings replaced. `replace` gets the escaped text between the quotes
/// and, for a value, its key; it returns the new string with its quotes.
pub(crate) fn rewrite_strings(
    json: &str,
    mut replace: impl FnMut(&str, &str) -> Option<String>,
) -> String {
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
                let new = replace(raw, if is_key { "" } else { &key });
                if let Some(new) = &new {
                    out.push_str(json.get(from..at).unwrap_or_default());
                    out.push_str(new);
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

/// The closing quote of the string whose text starts at `at`.
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

/// The end of the object or array that opens at `at`.
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

/// Returns whether values of this JSON key are file paths.
pub fn is_path_key(key: &str) -> bool {
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
