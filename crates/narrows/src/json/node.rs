//! Walks an indexed JSON text.

use super::decode::decode;
use std::borrow::Cow;

/// The type of a value.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Kind {
    /// `null`
    Null,
    /// `true` or `false`
    Bool,
    /// A number, as it is written.
    Number,
    /// A string.
    String,
    /// An array.
    Array,
    /// An object.
    Object,
}

/// The position of one value. For a string `start..end` excludes the quotes.
#[derive(Debug, Clone, Copy)]
pub(super) struct JsonNode {
    pub(super) start: u32,
    pub(super) end: u32,
    /// The node after this value and its children.
    pub(super) next: u32,
    pub(super) kind: Kind,
    pub(super) escaped: bool,
}

impl JsonNode {
    pub(super) fn new(start: usize, end: usize, kind: Kind) -> Self {
        JsonNode { start: start as u32, end: end as u32, next: 0, kind, escaped: false }
    }
}

/// An indexed text.
pub struct Doc<'a> {
    text: &'a str,
    nodes: &'a [JsonNode],
}

impl std::fmt::Debug for Doc<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "Doc({} bytes)", self.text.len())
    }
}

impl<'a> Doc<'a> {
    pub(super) fn new(text: &'a str, nodes: &'a [JsonNode]) -> Self {
        Doc { text, nodes }
    }

    /// The outermost value.
    pub fn root(&self) -> Json<'_> {
        Json { doc: self, at: 0 }
    }
}

/// One value of an indexed text.
#[derive(Clone, Copy)]
pub struct Json<'a> {
    doc: &'a Doc<'a>,
    at: u32,
}

impl std::fmt::Debug for Json<'_> {
    /// Prints the kind and the length only: the text may hold secrets.
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "Json({:?}, {} bytes)", self.kind(), self.raw().len())
    }
}

impl<'a> Json<'a> {
    fn node(self) -> JsonNode {
        let null = JsonNode { start: 0, end: 0, next: 0, kind: Kind::Null, escaped: false };
        self.doc.nodes.get(self.at as usize).copied().unwrap_or(null)
    }

    /// The number of this value's node.
    pub(crate) fn node_index(self) -> u32 {
        self.at
    }

    /// Returns the value with another node of the same text.
    pub(crate) fn with_node(self, at: u32) -> Self {
        Json { doc: self.doc, at }
    }

    /// The type of this value.
    pub fn kind(self) -> Kind {
        self.node().kind
    }

    /// The source text of this value; for a string the text between the quotes.
    pub fn raw(self) -> &'a str {
        let n = self.node();
        self.doc.text.get(n.start as usize..n.end as usize).unwrap_or_default()
    }

    /// Whether a string has escapes.
    pub fn escaped(self) -> bool {
        self.node().escaped
    }

    /// Whether this is `null`.
    pub fn is_null(self) -> bool {
        self.kind() == Kind::Null
    }

    /// Whether this is null, `""`, `[]` or `{}`.
    pub fn is_empty(self) -> bool {
        let n = self.node();
        match n.kind {
            Kind::Null => true,
            Kind::String => n.start == n.end,
            Kind::Array | Kind::Object => n.next == self.at + 1,
            Kind::Bool | Kind::Number => false,
        }
    }

    /// The decoded string; none for other types.
    pub fn str(self) -> Option<Cow<'a, str>> {
        let n = self.node();
        (n.kind == Kind::String).then(|| {
            if n.escaped { Cow::Owned(decode(self.raw())) } else { Cow::Borrowed(self.raw()) }
        })
    }

    /// The decoded string as an owned text.
    pub(crate) fn owned(self) -> Option<String> {
        self.str().map(Cow::into_owned)
    }

    /// A string, or a number or boolean as it is written; none for other types.
    pub fn scalar(self) -> Option<Cow<'a, str>> {
        match self.kind() {
            Kind::String => self.str(),
            Kind::Number | Kind::Bool => Some(Cow::Borrowed(self.raw())),
            Kind::Null | Kind::Array | Kind::Object => None,
        }
    }

    /// The boolean; none for other types.
    pub fn bool(self) -> Option<bool> {
        (self.kind() == Kind::Bool).then(|| self.raw() == "true")
    }

    /// The number as an integer, truncated.
    pub fn i64(self) -> Option<i64> {
        (self.kind() == Kind::Number).then(|| self.raw())?.parse().ok().or_else(|| {
            let f = self.f64()?;
            #[expect(clippy::cast_precision_loss, reason = "a bound, not a value")]
            (f.abs() < i64::MAX as f64).then_some(f as i64)
        })
    }

    /// The number as a non-negative integer.
    pub fn u64(self) -> Option<u64> {
        self.i64().and_then(|n| u64::try_from(n).ok())
    }

    /// The number, if it is finite.
    pub fn f64(self) -> Option<f64> {
        let n: f64 = (self.kind() == Kind::Number).then(|| self.raw())?.parse().ok()?;
        n.is_finite().then_some(n)
    }

    /// The keys and values of an object, in order; empty for other types.
    ///
    /// Keys are not decoded: no known key contains an escape.
    pub fn fields(self) -> impl Iterator<Item = (&'a str, Json<'a>)> {
        let n = self.node();
        let mut at = self.at + 1;
        let end = if n.kind == Kind::Object { n.next } else { 0 };
        std::iter::from_fn(move || {
            if at >= end {
                return None;
            }
            let key = Json { doc: self.doc, at };
            let value = Json { doc: self.doc, at: at + 1 };
            at = value.node().next;
            Some((key.raw(), value))
        })
    }

    /// The values of an array; empty for other types.
    pub fn items(self) -> impl Iterator<Item = Json<'a>> {
        let n = self.node();
        let mut at = self.at + 1;
        let end = if n.kind == Kind::Array { n.next } else { 0 };
        std::iter::from_fn(move || {
            if at >= end {
                return None;
            }
            let value = Json { doc: self.doc, at };
            at = value.node().next;
            Some(value)
        })
    }

    /// The value of the last key of this name, as in JavaScript; null counts as absent.
    pub fn get(self, name: &str) -> Option<Json<'a>> {
        let mut value = None;
        for (key, candidate) in self.fields() {
            if key == name {
                value = Some(candidate);
            }
        }
        value.filter(|v| !v.is_null())
    }

    /// The value of the first of `names` that is present and not null.
    pub fn any(self, names: &[&str]) -> Option<Json<'a>> {
        names.iter().find_map(|name| self.get(name))
    }

    /// Follows a path of keys.
    pub fn path(self, names: &[&str]) -> Option<Json<'a>> {
        names.iter().try_fold(self, |json, name| json.get(name))
    }

    /// The string value of `name`.
    pub fn text(self, name: &str) -> Option<Cow<'a, str>> {
        self.get(name).and_then(Json::str)
    }
}
