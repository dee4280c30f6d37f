//! Counts the kinds and fields of packets that the parser does not know.
//!
//! `known_fields.txt` lists what the parser knows: one kind per line, with its fields. Agents add
//! fields with every release; the unlisted ones are where to look when something is missing.

use crate::adapter::{PacketShape, is_name};
use crate::json::{Index, Json, Kind};
use std::borrow::Cow;
use std::collections::{BTreeMap, HashMap, HashSet};

const KNOWN_FIELDS: &str = include_str!("known_fields.txt");
/// The number of distinct names that are counted; further names are counted together.
const MAX_NAMES: usize = 10_000;

/// Counts unknown kinds and fields by the version of the agent.
///
/// ```
/// let mut drift = narrows::drift::Drift::new();
/// drift.push(br#"{"type":"user","uuid":"1","message":{"content":"Hi."},"brandNew":1}"#);
/// let unknown: Vec<_> = drift.unknown().collect();
/// assert_eq!(unknown[0].name, "user.brandNew");
/// ```
#[derive(Debug)]
pub struct Drift {
    known: HashMap<&'static str, HashSet<&'static str>>,
    index: Index,
    version: String,
    counts: BTreeMap<(String, String), u64>,
    parsed: u64,
    unparsed: u64,
}

/// A kind or a field that the parser does not know.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct UnknownField<'a> {
    /// The version of the agent; empty when its records do not contain it.
    pub version: &'a str,
    /// A kind, or a kind and the path to one of its fields.
    pub name: &'a str,
    /// The number of occurrences.
    pub count: u64,
}

impl Default for Drift {
    fn default() -> Self {
        Drift::new()
    }
}

impl Drift {
    /// Loads the table of known fields.
    pub fn new() -> Self {
        let mut known: HashMap<&'static str, HashSet<&'static str>> = HashMap::new();
        for line in KNOWN_FIELDS.lines().filter(|l| !l.starts_with('#')) {
            let mut words = line.split_whitespace();
            if let Some(kind) = words.next() {
                known.entry(kind).or_default().extend(words);
            }
        }
        let (version, counts) = (String::new(), BTreeMap::new());
        Drift { known, index: Index::default(), version, counts, parsed: 0, unparsed: 0 }
    }

    /// Starts another file, whose agent version is not known yet.
    pub fn file(&mut self) {
        self.version.clear();
    }

    /// Checks one packet.
    pub fn push(&mut self, bytes: &[u8]) {
        let mut index = std::mem::take(&mut self.index);
        let text = std::str::from_utf8(bytes).ok();
        match text.and_then(|t| index.read(t.trim()).ok()) {
            Some(doc) if doc.root().kind() == Kind::Object => {
                self.parsed += 1;
                let message = doc.root().get("msg").filter(|m| m.kind() == Kind::Object);
                self.check_packet(message.unwrap_or(doc.root()));
            }
            _ => self.unparsed += 1,
        }
        self.index = index;
    }

    /// The number of packets that were checked, and of lines that are not packets.
    pub fn counts(&self) -> (u64, u64) {
        (self.parsed, self.unparsed)
    }

    /// The unknown kinds and fields, ordered by version and name.
    pub fn unknown(&self) -> impl Iterator<Item = UnknownField<'_>> {
        self.counts.iter().map(|((version, name), count)| UnknownField {
            version,
            name,
            count: *count,
        })
    }

    fn check_packet(&mut self, object: Json<'_>) {
        if let Some(version) = object.any(&["version", "claude_code_version"]).and_then(Json::str)
            && is_name(&version)
        {
            self.version = version.into_owned();
        }
        let Some(PacketShape { kind, objects }) = PacketShape::read(object) else { return };
        if !self.known.contains_key(&*kind) {
            return self.count(kind);
        }
        for (path, object) in objects {
            self.check_fields(&kind, &path, object);
        }
    }

    /// Checks the fields of the object at `path` in a packet of `kind`.
    fn check_fields(&mut self, kind: &str, path: &str, object: Json<'_>) {
        for (key, _) in object.fields().filter(|(_, value)| !value.is_null()) {
            // A key that is not a name is data.
            let key = if is_name(key) { key } else { "(odd)" };
            let name: Cow<'_, str> = match path {
                "" => key.into(),
                _ => format!("{path}.{key}").into(),
            };
            let has = |kind: &str| self.known.get(kind).is_some_and(|f| f.contains(&*name));
            if !has(kind) && !has("*") {
                self.count(format!("{kind}.{name}"));
            }
        }
    }

    fn count(&mut self, name: String) {
        let key = (self.version.clone(), name);
        if let Some(count) = self.counts.get_mut(&key) {
            *count += 1;
        } else if self.counts.len() < MAX_NAMES {
            self.counts.insert(key, 1);
        } else {
            *self.counts.entry((String::new(), "(others)".to_owned())).or_default() += 1;
        }
    }
}
