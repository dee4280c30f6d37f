//! Which kinds and fields of an agent's packets the parser does not know.
//!
//! `known.txt` lists what it has been taught: a kind a line, with its fields. Agents add some with
//! every release; the ones that are not listed are where to look when something is missing.

use crate::adapter::is_bookkeeping;
use crate::json::{Index, Json, Kind};
use std::borrow::Cow;
use std::collections::{BTreeMap, HashMap, HashSet};

const KNOWN: &str = include_str!("known.txt");
/// Different names that are counted; more are counted together.
const MAX_NAMES: usize = 10_000;
/// Longest name that is told: a longer one is data, not a name.
const MAX_NAME: usize = 64;

/// Counts what is not known, by the version of the agent.
///
/// ```
/// let mut drift = narrows::drift::Drift::new();
/// drift.push(br#"{"type":"user","uuid":"1","message":{"content":"Hi."},"brandNew":1}"#);
/// let found: Vec<_> = drift.unknown().collect();
/// assert_eq!(found[0].name, "user.brandNew");
/// ```
#[derive(Debug)]
pub struct Drift {
    known: HashMap<&'static str, HashSet<&'static str>>,
    index: Index,
    version: String,
    found: BTreeMap<(String, String), u64>,
    read: u64,
    unread: u64,
}

/// Something that is not known.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Unknown<'a> {
    /// The agent's version, where records tell it.
    pub version: &'a str,
    /// A kind, or a kind and the way to one of its fields.
    pub name: &'a str,
    /// How often it came.
    pub count: u64,
}

impl Default for Drift {
    fn default() -> Self {
        Drift::new()
    }
}

impl Drift {
    /// Knows what the table lists.
    pub fn new() -> Self {
        let mut known: HashMap<&'static str, HashSet<&'static str>> = HashMap::new();
        for line in KNOWN.lines().filter(|l| !l.starts_with('#')) {
            let mut words = line.split_whitespace();
            if let Some(kind) = words.next() {
                known.entry(kind).or_default().extend(words);
            }
        }
        Drift::with(known)
    }

    fn with(known: HashMap<&'static str, HashSet<&'static str>>) -> Self {
        let (version, found) = (String::new(), BTreeMap::new());
        Drift { known, index: Index::default(), version, found, read: 0, unread: 0 }
    }

    /// Another file begins: its version is not known yet.
    pub fn file(&mut self) {
        self.version.clear();
    }

    /// Looks at one packet.
    pub fn push(&mut self, bytes: &[u8]) {
        let mut index = std::mem::take(&mut self.index);
        let text = std::str::from_utf8(bytes).ok();
        match text.and_then(|t| index.read(t.trim()).ok()) {
            Some(doc) if doc.root().kind() == Kind::Object => {
                self.read += 1;
                let inner = doc.root().get("msg").filter(|m| m.kind() == Kind::Object);
                self.packet(inner.unwrap_or(doc.root()));
            }
            _ => self.unread += 1,
        }
        self.index = index;
    }

    /// Packets that were looked at, and lines that are none.
    pub fn counts(&self) -> (u64, u64) {
        (self.read, self.unread)
    }

    /// What is not known, by version and name.
    pub fn unknown(&self) -> impl Iterator<Item = Unknown<'_>> {
        self.found.iter().map(|((version, name), count)| Unknown { version, name, count: *count })
    }

    fn packet(&mut self, object: Json<'_>) {
        if let Some(version) = object.any(&["version", "claude_code_version"]).and_then(Json::str)
            && is_name(&version)
        {
            self.version = version.into_owned();
        }
        let update = object.path(&["params", "update"]).or_else(|| object.get("update"));
        if let Some(update) = update.filter(|u| u.kind() == Kind::Object) {
            let kind = update.any(&["sessionUpdate", "session_update", "type"]);
            let kind = format!("update:{}", word(kind));
            if self.is_kind(&kind) {
                self.fields(&kind, "", update);
            }
            return;
        }
        if let Some(method) = object.get("method") {
            self.is_kind(&format!("method:{}", word(Some(method))));
            return;
        }
        if object.get("type").is_none() && object.get("id").is_some() {
            self.is_kind("answer");
            return;
        }
        self.record(object);
    }

    fn record(&mut self, object: Json<'_>) {
        let first = word(object.any(&["type", "sessionUpdate", "session_update"]));
        if is_bookkeeping(&first) {
            return;
        }
        let part = match &*first {
            "attachment" => object.path(&["attachment", "type"]),
            "stream_event" => object.path(&["event", "type"]),
            "control_request" => object.path(&["request", "subtype"]),
            _ => object.get("subtype"),
        };
        let kind = part.map_or_else(|| first.to_string(), |p| format!("{first}:{}", word(Some(p))));
        if !self.is_kind(&kind) {
            return;
        }
        self.fields(&kind, "", object);
        for name in
            ["message", "attachment", "event", "request", "toolUseResult", "tool_use_result"]
        {
            let inner = object.get(name).filter(|i| i.kind() == Kind::Object);
            let Some(inner) = inner else { continue };
            // The two forms of a result are one.
            let name = if name == "tool_use_result" { "toolUseResult" } else { name };
            self.fields(&kind, name, inner);
            for block in inner.get("content").into_iter().flat_map(Json::items) {
                if block.kind() == Kind::Object && name == "message" {
                    let way = format!("message.content.{}", word(block.get("type")));
                    self.fields(&kind, &way, block);
                }
            }
        }
    }

    /// The fields of an object that stands at `way` in a packet of a kind.
    fn fields(&mut self, kind: &str, way: &str, object: Json<'_>) {
        for (key, _) in object.fields().filter(|(_, value)| !value.is_null()) {
            // A key that is no name is data.
            let key = if is_name(key) { key } else { "(odd)" };
            let name: Cow<'_, str> = match way {
                "" => key.into(),
                _ => format!("{way}.{key}").into(),
            };
            let has = |kind: &str| self.known.get(kind).is_some_and(|f| f.contains(&*name));
            if !has(kind) && !has("*") {
                self.count(format!("{kind}.{name}"));
            }
        }
    }

    /// Whether a kind is known; one that is not is counted.
    fn is_kind(&mut self, kind: &str) -> bool {
        let known = self.known.contains_key(kind);
        if !known {
            self.count(kind.to_owned());
        }
        known
    }

    fn count(&mut self, name: String) {
        let key = (self.version.clone(), name);
        if let Some(count) = self.found.get_mut(&key) {
            *count += 1;
        } else if self.found.len() < MAX_NAMES {
            self.found.insert(key, 1);
        } else {
            *self.found.entry((String::new(), "(others)".to_owned())).or_default() += 1;
        }
    }
}

/// A name out of a packet; what does not look like one is not told.
fn word(json: Option<Json<'_>>) -> Cow<'_, str> {
    let method = |text: &str| is_name(&text.replace('/', "_"));
    match json.and_then(Json::str) {
        Some(text) if method(&text) => text,
        Some(_) => "(odd)".into(),
        None => "(untyped)".into(),
    }
}

/// Whether a text looks like the name of a kind, a field or a version.
fn is_name(text: &str) -> bool {
    let plain = |c: u8| c.is_ascii_alphanumeric() || matches!(c, b'_' | b'-' | b'$' | b'.');
    (1..=MAX_NAME).contains(&text.len()) && text.bytes().all(plain)
}
