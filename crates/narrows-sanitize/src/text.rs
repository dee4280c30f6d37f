//! Text before and after redaction, as types.
//!
//! [`Raw`] is text that a program received: it has no `Display`, its `Debug` prints a length and it
//! does not serialize. [`Clean`] is text that may be shown. Only this crate turns raw text into clean
//! text, so unredacted text cannot reach an output by mistake:
//!
//! ```compile_fail,E0603
//! let forged = narrows_sanitize::Clean("/home/me/secret".into());
//! ```
//! ```compile_fail,E0277
//! let forged: narrows_sanitize::Clean = String::from("/home/me/secret").into();
//! ```
//! ```compile_fail,E0597
//! let secret = String::from("/home/me/secret");
//! let forged = narrows_sanitize::Clean::literal(&secret);
//! ```
//! ```compile_fail,E0277
//! let raw = narrows_sanitize::Raw::new("text");
//! println!("{raw}");
//! ```
//! ```compile_fail,E0277
//! let raw = narrows_sanitize::Raw::new("text");
//! serde_json::to_string(&raw).unwrap();
//! ```
//! ```compile_fail,E0599
//! let raw = narrows_sanitize::Raw::new("text");
//! let text: &str = raw.as_ref();
//! ```
//! ```compile_fail,E0277
//! let tree = narrows_sanitize::Tree::text("text");
//! serde_json::to_string(&tree).unwrap();
//! ```
//!
//! The same lines without the mistake compile:
//!
//! ```
//! use narrows_sanitize::{Clean, Mode, Paths, Raw, Redactor, Secrets};
//!
//! let raw = Raw::new("text");
//! let clean: Clean = Redactor::new(Paths::new(), Secrets::none()).redact(raw, Mode::Text);
//! assert_eq!(serde_json::to_string(&clean).unwrap(), "\"text\"");
//! assert_eq!(format!("{clean}"), AsRef::<str>::as_ref(&clean));
//! assert_eq!(Clean::literal("text"), clean);
//! ```
#![cfg_attr(
    not(feature = "unchecked-deserialize"),
    doc = r#"
```compile_fail,E0277
let text: narrows_sanitize::Clean = serde_json::from_str("\"text\"").unwrap();
```
"#
)]

use ecow::EcoString;
use serde::{Serialize, Serializer};
use std::fmt;

/// Text that has not been redacted.
#[derive(Clone)]
pub struct Raw(pub(crate) RawRepr);

/// Short text is shared; long text was just decoded and is about to be redacted into a new string.
#[derive(Clone)]
pub(crate) enum RawRepr {
    Shared(EcoString),
    Own(String),
}

impl From<EcoString> for RawRepr {
    #[inline]
    fn from(text: EcoString) -> Self {
        RawRepr::Shared(text)
    }
}

impl From<String> for RawRepr {
    #[inline]
    fn from(text: String) -> Self {
        RawRepr::Own(text)
    }
}

impl From<&str> for RawRepr {
    #[inline]
    fn from(text: &str) -> Self {
        RawRepr::Shared(text.into())
    }
}

impl From<std::borrow::Cow<'_, str>> for RawRepr {
    #[inline]
    fn from(text: std::borrow::Cow<'_, str>) -> Self {
        match text {
            std::borrow::Cow::Borrowed(text) => text.into(),
            std::borrow::Cow::Owned(text) => text.into(),
        }
    }
}

impl RawRepr {
    #[inline]
    pub(crate) fn peek(&self) -> &str {
        match self {
            RawRepr::Shared(text) => text,
            RawRepr::Own(text) => text,
        }
    }

    #[inline]
    pub(crate) fn shared(self) -> EcoString {
        match self {
            RawRepr::Shared(text) => text,
            RawRepr::Own(text) => text.into(),
        }
    }
}

impl Default for Raw {
    #[inline]
    fn default() -> Self {
        Raw(RawRepr::Shared(EcoString::new()))
    }
}

impl PartialEq for Raw {
    #[inline]
    fn eq(&self, other: &Self) -> bool {
        self.peek() == other.peek()
    }
}

impl Eq for Raw {}

impl Raw {
    /// Wraps text that has not been redacted.
    #[inline]
    #[allow(private_bounds, reason = "accepts every kind of string and nothing else")]
    pub fn new(text: impl Into<RawRepr>) -> Self {
        Raw(text.into())
    }

    /// Returns whether the text is empty.
    #[inline]
    pub fn is_empty(&self) -> bool {
        self.peek().is_empty()
    }

    /// Appends raw text.
    #[inline]
    pub fn push(&mut self, more: &Raw) {
        match &mut self.0 {
            RawRepr::Shared(text) => text.push_str(more.peek()),
            RawRepr::Own(text) => text.push_str(more.peek()),
        }
    }

    /// Returns the unredacted text: for parsers, which read it but must not show it.
    #[inline]
    pub fn peek(&self) -> &str {
        self.0.peek()
    }
}

impl fmt::Debug for Raw {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Raw({} bytes)", self.peek().len())
    }
}

/// Redacted text, which may be shown.
///
/// Clones share long text; text of up to 15 bytes is stored inline, without an allocation.
#[derive(Clone, PartialEq, Eq, Default, Hash, PartialOrd, Ord)]
pub struct Clean(pub(crate) EcoString);

impl Clean {
    /// Wraps a constant of the program itself. A `&'static str` cannot be text that was received at run
    /// time.
    #[inline]
    pub fn literal(text: &'static str) -> Self {
        Clean(EcoString::from(text))
    }

    /// Formats a number in decimal.
    pub fn number(n: u64) -> Self {
        Clean(ecow::eco_format!("{n}"))
    }

    /// Returns the shared string.
    #[inline]
    pub fn shared(&self) -> EcoString {
        self.0.clone()
    }

    /// Returns the text.
    #[inline]
    pub fn as_str(&self) -> &str {
        &self.0
    }

    /// Appends clean text.
    #[inline]
    pub fn push(&mut self, more: &Clean) {
        self.0.push_str(&more.0);
    }

    /// Returns the part from byte `at` on; `None` when `at` is not a character boundary.
    pub fn after(&self, at: usize) -> Option<Clean> {
        self.0.get(at..).map(|s| Clean(EcoString::from(s)))
    }

    /// Returns the part before byte `at`; `None` when `at` is not a character boundary.
    pub fn before(&self, at: usize) -> Option<Clean> {
        self.0.get(..at).map(|s| Clean(EcoString::from(s)))
    }

    /// Returns the bytes `from..until`; `None` when either is not a character boundary.
    pub fn between(&self, from: usize, until: usize) -> Option<Clean> {
        self.0.get(from..until).map(|s| Clean(EcoString::from(s)))
    }

    /// Returns the first `chars` characters.
    pub fn head(&self, chars: usize) -> Clean {
        let end = self.0.char_indices().nth(chars).map_or(self.0.len(), |(i, _)| i);
        Clean(EcoString::from(self.0.get(..end).unwrap_or_default()))
    }

    /// Returns the text without whitespace at both ends.
    pub fn trimmed(&self) -> Clean {
        Clean(EcoString::from(self.0.trim()))
    }

    /// Splits at each `\n`, keeping empty lines, also at the end.
    pub fn split_lines(&self) -> impl Iterator<Item = Clean> {
        self.0.split('\n').map(|line| Clean(EcoString::from(line)))
    }

    /// Joins clean parts.
    pub fn concat(parts: &[&Clean]) -> Clean {
        let mut all = EcoString::new();
        parts.iter().for_each(|p| all.push_str(&p.0));
        Clean(all)
    }
}

impl std::ops::Deref for Clean {
    type Target = str;

    #[inline]
    fn deref(&self) -> &str {
        &self.0
    }
}

impl AsRef<str> for Clean {
    #[inline]
    fn as_ref(&self) -> &str {
        &self.0
    }
}

impl PartialEq<str> for Clean {
    #[inline]
    fn eq(&self, other: &str) -> bool {
        self.as_str() == other
    }
}

impl PartialEq<&str> for Clean {
    #[inline]
    fn eq(&self, other: &&str) -> bool {
        self.as_str() == *other
    }
}

impl std::borrow::Borrow<str> for Clean {
    #[inline]
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

// For a program that reads back its own redacted output.
#[cfg(feature = "unchecked-deserialize")]
impl<'de> serde::Deserialize<'de> for Clean {
    fn deserialize<D: serde::Deserializer<'de>>(d: D) -> Result<Self, D::Error> {
        struct Text;
        impl serde::de::Visitor<'_> for Text {
            type Value = Clean;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("a string")
            }

            fn visit_str<E>(self, text: &str) -> Result<Clean, E> {
                Ok(Clean(text.into()))
            }
        }
        d.deserialize_str(Text)
    }
}
