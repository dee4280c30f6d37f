//! Text before and after cleaning, as types.
//!
//! [`Raw`] is what an agent wrote: it has no `Display`, its `Debug` prints a length, and nothing
//! serialises it. [`Clean`] is what may be shown. Only this folder makes one, so a string that was
//! not cleaned cannot reach an output:
//!
//! ```compile_fail
//! let forged = narrows::Clean("/home/me/secret".into());
//! ```
//! ```compile_fail
//! let forged: narrows::Clean = String::from("/home/me/secret").into();
//! ```
//! ```compile_fail
//! let raw = narrows::Raw::new("text");
//! println!("{raw}");
//! ```
//! ```compile_fail
//! let raw = narrows::Raw::new("text");
//! serde_json::to_string(&raw).unwrap();
//! ```
//! ```compile_fail
//! fn show(event: narrows::Event<narrows::Raw>) -> narrows::Row<'static> {
//!     narrows::Row::new(1, "s", &event)
//! }
//! ```
//! ```compile_fail
//! let raw = narrows::Raw::new("text");
//! let text: &str = raw.as_ref();
//! ```
//! ```compile_fail
//! let mut fold = narrows::Fold::new();
//! let event: narrows::Event<narrows::Raw> = unimplemented!();
//! fold.push(&event, &mut Vec::new());
//! ```
#![cfg_attr(
    not(feature = "stored"),
    doc = r#"
```compile_fail
let text: narrows::Clean = serde_json::from_str("\"text\"").unwrap();
```
"#
)]

use ecow::EcoString;
use serde::{Serialize, Serializer};
use serde_json::value::RawValue;
use std::fmt;

/// Text as an agent wrote it.
#[derive(Clone)]
pub struct Raw(pub(super) Store);

/// Short texts are shared; long ones were just decoded and are about to be cleaned into new ones.
#[derive(Clone)]
pub(super) enum Store {
    Shared(EcoString),
    Own(String),
}

impl From<EcoString> for Store {
    fn from(text: EcoString) -> Self {
        Store::Shared(text)
    }
}

impl From<String> for Store {
    fn from(text: String) -> Self {
        Store::Own(text)
    }
}

impl From<&str> for Store {
    fn from(text: &str) -> Self {
        Store::Shared(text.into())
    }
}

impl From<std::borrow::Cow<'_, str>> for Store {
    fn from(text: std::borrow::Cow<'_, str>) -> Self {
        match text {
            std::borrow::Cow::Borrowed(text) => text.into(),
            std::borrow::Cow::Owned(text) => text.into(),
        }
    }
}

impl Store {
    pub(super) fn peek(&self) -> &str {
        match self {
            Store::Shared(text) => text,
            Store::Own(text) => text,
        }
    }

    pub(super) fn shared(self) -> EcoString {
        match self {
            Store::Shared(text) => text,
            Store::Own(text) => text.into(),
        }
    }
}

impl Default for Raw {
    fn default() -> Self {
        Raw(Store::Shared(EcoString::new()))
    }
}

impl PartialEq for Raw {
    fn eq(&self, other: &Self) -> bool {
        self.peek() == other.peek()
    }
}

impl Eq for Raw {}

impl Raw {
    /// Wraps text that has not been cleaned.
    #[allow(private_bounds, reason = "strings of every kind, and nothing else")]
    pub fn new(text: impl Into<Store>) -> Self {
        Raw(text.into())
    }

    /// Whether there is no text.
    pub fn is_empty(&self) -> bool {
        self.peek().is_empty()
    }

    /// Adds raw text at the end.
    pub(crate) fn push(&mut self, more: &Raw) {
        match &mut self.0 {
            Store::Shared(text) => text.push_str(more.peek()),
            Store::Own(text) => text.push_str(more.peek()),
        }
    }

    /// For adapters, which may look at what they read but show nothing.
    pub(crate) fn peek(&self) -> &str {
        self.0.peek()
    }
}

impl fmt::Debug for Raw {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Raw({} bytes)", self.peek().len())
    }
}

/// Text that has passed the sanitizer and may be shown.
///
/// One text stands in an event, in the state of its call and in a change: clones share it, and
/// short ones need no allocation.
#[derive(Clone, PartialEq, Eq, Default, Hash, PartialOrd, Ord)]
pub struct Clean(pub(super) EcoString);

impl Clean {
    /// A text of this program's own.
    pub(crate) fn literal(text: &'static str) -> Self {
        Clean(EcoString::from(text))
    }

    /// A number in decimal.
    pub(crate) fn number(n: u64) -> Self {
        Clean(ecow::eco_format!("{n}"))
    }

    /// An event's id.
    pub(crate) fn id(id: crate::id::EventId) -> Self {
        Clean(ecow::eco_format!("{id}"))
    }

    /// The text, shared.
    pub(crate) fn shared(&self) -> EcoString {
        self.0.clone()
    }

    /// The text.
    pub fn as_str(&self) -> &str {
        &self.0
    }

    /// Adds clean text at the end.
    pub fn push(&mut self, more: &Clean) {
        self.0.push_str(&more.0);
    }

    /// The part after the first `at` bytes, if that is a place between two characters.
    pub fn after(&self, at: usize) -> Option<Clean> {
        self.0.get(at..).map(|s| Clean(EcoString::from(s)))
    }

    /// The part before byte `at`, if that is a place between two characters.
    pub fn before(&self, at: usize) -> Option<Clean> {
        self.0.get(..at).map(|s| Clean(EcoString::from(s)))
    }

    /// The part between two bytes, if these are places between characters.
    pub(crate) fn between(&self, from: usize, until: usize) -> Option<Clean> {
        self.0.get(from..until).map(|s| Clean(EcoString::from(s)))
    }

    /// The first `chars` characters.
    pub fn head(&self, chars: usize) -> Clean {
        let end = self.0.char_indices().nth(chars).map_or(self.0.len(), |(i, _)| i);
        Clean(EcoString::from(self.0.get(..end).unwrap_or_default()))
    }

    /// This text without white space at both ends.
    pub fn trimmed(&self) -> Clean {
        Clean(EcoString::from(self.0.trim()))
    }

    /// Its lines, each a text of its own; all of them, also empty ones at the end.
    pub(crate) fn lines_apart(&self) -> impl Iterator<Item = Clean> {
        self.0.split('\n').map(|line| Clean(EcoString::from(line)))
    }

    /// Joins clean parts.
    pub(crate) fn concat(parts: &[&Clean]) -> Clean {
        let mut all = EcoString::new();
        parts.iter().for_each(|p| all.push_str(&p.0));
        Clean(all)
    }
}

impl std::ops::Deref for Clean {
    type Target = str;

    fn deref(&self) -> &str {
        &self.0
    }
}

impl AsRef<str> for Clean {
    fn as_ref(&self) -> &str {
        &self.0
    }
}

impl PartialEq<str> for Clean {
    fn eq(&self, other: &str) -> bool {
        self.as_str() == other
    }
}

impl PartialEq<&str> for Clean {
    fn eq(&self, other: &&str) -> bool {
        self.as_str() == *other
    }
}

impl std::borrow::Borrow<str> for Clean {
    fn borrow(&self) -> &str {
        &self.0
    }
}

impl fmt::Display for Clean {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl fmt::Debug for Clean {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Debug::fmt(&self.0, f)
    }
}

impl Serialize for Clean {
    fn serialize<S: Serializer>(&self, s: S) -> Result<S::Ok, S::Error> {
        s.serialize_str(&self.0)
    }
}

// For whoever keeps what was printed: see `crate::stored`.
#[cfg(feature = "stored")]
impl<'de> serde::Deserialize<'de> for Clean {
    fn deserialize<D: serde::Deserializer<'de>>(d: D) -> Result<Self, D::Error> {
        struct Text;
        impl serde::de::Visitor<'_> for Text {
            type Value = Clean;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("a text")
            }

            fn visit_str<E>(self, text: &str) -> Result<Clean, E> {
                Ok(Clean(text.into()))
            }
        }
        d.deserialize_str(Text)
    }
}

#[cfg(feature = "stored")]
impl<'de> serde::Deserialize<'de> for Tree<Clean> {
    fn deserialize<D: serde::Deserializer<'de>>(d: D) -> Result<Self, D::Error> {
        <&RawValue>::deserialize(d).map(|raw| Tree(Clean(raw.get().into())))
    }
}

/// A JSON tree, kept as JSON text of stage `T`.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Tree<T>(pub(super) T);

impl Tree<Raw> {
    /// A tree that is one text.
    pub fn text(text: &str) -> Self {
        Tree(Raw::new(serde_json::Value::from(text).to_string()))
    }

    /// A tree whose text has been checked to be JSON.
    pub(crate) fn checked(json: &str) -> Self {
        Tree(Raw::new(json))
    }
}

impl Tree<Clean> {
    /// `{}`
    pub(crate) fn empty() -> Self {
        Tree(Clean::literal("{}"))
    }

    /// The JSON text.
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
