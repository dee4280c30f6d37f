//! The host paths to redact.

mod bounds;
pub(crate) mod field;
pub(crate) mod partial;
pub(crate) mod scan;

use crate::chars::is_long_id;
use crate::keyword_index::KeywordIndex;
use std::collections::BTreeSet;
use unicode_normalization::UnicodeNormalization;

/// Roots that are known at the same time; a session normally has one.
const MAX_ROOTS: usize = 8;
/// Bytes of a root that are searched for before the rest is compared.
const ANCHOR_LEN: usize = 4;

/// Which spellings of a session path are redacted.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Mode {
    /// Commands, outputs, prose: every known spelling of a session path.
    #[default]
    Text,
    /// File bodies, which are the user's own text: only the known root and prefixes with a UUID.
    Body,
}

/// One folder to redact, prepared for the search.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct PathRoot {
    pub(crate) parts: Vec<String>,
    /// Replaced by `~`.
    pub(crate) is_home: bool,
    /// The searched bytes: part, start, length.
    anchor: Option<(usize, usize, usize)>,
    /// The root as Claude Code names its project folder: `-workspace-sessions-1`.
    pub(crate) dashed: Option<DashedName>,
    /// Distinct enough to match in the middle of a path.
    pub(crate) is_distinct: bool,
    /// Contains an id, so that no match is chance.
    pub(crate) has_id: bool,
    /// Number of blanks in its names.
    blanks: usize,
}

/// The dashed name and the position of the searched bytes in it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct DashedName {
    pub(crate) name: String,
    pub(crate) at: usize,
}

impl PathRoot {
    fn new(parts: Vec<String>, is_home: bool) -> PathRoot {
        let anchor = anchor_bytes(&parts);
        let dashed = anchor.filter(|_| parts.len() >= 3 && !is_home).map(|(part, from, _)| {
            let name: String = parts.iter().flat_map(|p| ["-", p.as_str()]).collect();
            let plain = |c: char| if c.is_ascii_alphanumeric() { c } else { '-' };
            let before: usize = parts[..part].iter().map(|p| p.chars().count() + 1).sum();
            let at = before + 1 + parts[part][..from].chars().count();
            DashedName { name: name.chars().map(plain).collect(), at }
        });
        let id = parts.iter().any(|p| is_long_id(p.as_bytes()));
        let blanks = parts.iter().map(|p| p.split_whitespace().count().saturating_sub(1)).sum();
        let is_distinct = id || parts.len() >= 3;
        PathRoot { is_distinct, has_id: id, anchor, dashed, is_home, blanks, parts }
    }

    /// The alphanumeric run around the searched bytes when these stand at `at`, and its start.
    fn around(&self, at: usize) -> Option<(usize, &[u8])> {
        let (part, from, len) = self.anchor?;
        let b = self.parts[part].as_bytes();
        let plain = |c: &&u8| c.is_ascii_alphanumeric();
        let before = b[..from].iter().rev().take_while(plain).count();
        let after = b[from + len..].iter().take_while(plain).count();
        Some((at.checked_sub(before)?, &b[from - before..from + len + after]))
    }

    /// The part that is searched for, and the first searched byte in it.
    pub(crate) fn anchor(&self) -> Option<(usize, usize)> {
        self.anchor.map(|(part, from, _)| (part, from))
    }
}

/// Chooses the bytes of a root to search for: part, start, length. Letters and digits are the same
/// in every spelling; fewer letters have fewer cases to search for.
fn anchor_bytes(parts: &[String]) -> Option<(usize, usize, usize)> {
    let mut best = None;
    for (i, part) in parts.iter().enumerate() {
        let b = part.as_bytes();
        for len in 1..=ANCHOR_LEN.min(b.len()) {
            for (from, w) in b.windows(len).enumerate() {
                if w.iter().all(|c| c.is_ascii_alphanumeric() || *c == b'-') {
                    let letters = w.iter().filter(|c| c.is_ascii_alphabetic()).count();
                    let rank = (len, std::cmp::Reverse(letters), i, std::cmp::Reverse(from));
                    best = best.max(Some((rank, (i, from, len))));
                }
            }
        }
    }
    best.map(|(_, found)| found)
}

/// An id inside a known root. It is redacted wherever it stands.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct RootId {
    /// Without hyphens when it is a UUID.
    pub(crate) text: String,
    /// The position of the searched bytes in `text`.
    pub(crate) at: usize,
    /// A UUID or the like, which never matches by chance; other ids match only as whole words.
    pub(crate) is_long: bool,
}

impl RootId {
    fn new(part: &str, after: Option<&str>) -> Option<RootId> {
        let is_long = is_long_id(part.as_bytes());
        let is_session_id = matches!(after, Some("sessions" | "sandboxes"))
            && part.len() >= 6
            && part.bytes().any(|c| c.is_ascii_digit())
            && part.bytes().all(|c| c.is_ascii_alphanumeric() || c == b'-' || c == b'_');
        if !is_long && !is_session_id {
            return None;
        }
        let text: String = if is_long { part.replace('-', "") } else { part.to_owned() };
        // The searched bytes contain no hyphen in any spelling.
        let solid = |w: &[u8]| w.iter().all(u8::is_ascii_alphanumeric);
        let spans =
            (0..=text.len().saturating_sub(ANCHOR_LEN)).filter(|at| !is_long || at % 4 == 0);
        let at =
            spans.filter(|at| solid(&text.as_bytes()[*at..at + ANCHOR_LEN])).min_by_key(|at| {
                text.as_bytes()[*at..at + ANCHOR_LEN]
                    .iter()
                    .filter(|c| c.is_ascii_alphabetic())
                    .count()
            })?;
        Some(RootId { text, at, is_long })
    }
}

/// What the searched bytes belong to.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum AnchorKind {
    Root(usize),
    Id(usize),
    /// The word `sessions`, which every session path without a known root contains.
    Sessions,
}

/// The paths to redact.
#[derive(Clone)]
pub struct Paths {
    pub(crate) roots: Vec<PathRoot>,
    pub(crate) ids: Vec<RootId>,
    index: Option<KeywordIndex>,
    anchors: Vec<Vec<AnchorKind>>,
    /// Some root has no letter or digit to search for: it is tried at every separator.
    pub(crate) has_unindexed_root: bool,
}

// Redacted paths must not be printed, not even for debugging.
impl std::fmt::Debug for Paths {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "Paths({} roots)", self.roots.len())
    }
}

impl Default for Paths {
    fn default() -> Self {
        let mut paths = Paths {
            roots: Vec::new(),
            ids: Vec::new(),
            index: None,
            anchors: Vec::new(),
            has_unindexed_root: false,
        };
        paths.rebuild();
        paths
    }
}

impl Paths {
    /// Creates a set without roots: only `sandboxes/<id>/sessions/<id>` and `sessions/<id>` match.
    pub fn new() -> Self {
        Paths::default()
    }

    /// Adds the real root of a session. Adding a known root, or `/`, has no effect.
    pub fn add_root(&mut self, path: &str) {
        self.add(path, false);
    }

    /// Sets the home directory, which is replaced by `~`.
    pub fn set_home(&mut self, path: &str) {
        self.roots.retain(|r| !r.is_home);
        self.add(path, true);
    }

    /// Returns whether the path is exactly a root.
    pub(crate) fn is_root(&self, path: &str) -> bool {
        let parts = field::resolved(path);
        self.roots.iter().any(|root| root.parts == parts)
    }

    fn add(&mut self, path: &str, is_home: bool) {
        let parts = field::resolved(path);
        let is_known = |parts: &Vec<String>| self.roots.iter().any(|r| r.parts == *parts);
        let min_parts = if is_home { 2 } else { 1 };
        let roots = self.roots.iter().filter(|r| r.is_home == is_home).count();
        if parts.len() < min_parts || is_known(&parts) || roots >= MAX_ROOTS {
            return;
        }
        for (i, part) in parts.iter().enumerate().filter(|_| !is_home) {
            let after = i.checked_sub(1).and_then(|i| parts.get(i)).map(String::as_str);
            if let Some(id) = RootId::new(part, after)
                && !self.ids.contains(&id)
            {
                self.ids.push(id);
            }
        }
        for parts in spellings(&parts) {
            self.roots.push(PathRoot::new(parts, is_home));
        }
        // Longest root first: one root may lie inside another.
        self.roots.sort_by_key(|r| std::cmp::Reverse(r.parts.len()));
        self.rebuild();
    }

    fn rebuild(&mut self) {
        let mut patterns: Vec<Vec<u8>> = vec![b"sessions".to_vec()];
        let mut anchors = vec![vec![AnchorKind::Sessions]];
        let mut add = |bytes: &[u8], anchor: AnchorKind| {
            for pattern in cases(bytes) {
                if let Some(i) = patterns.iter().position(|p| *p == pattern) {
                    anchors[i].push(anchor);
                } else {
                    patterns.push(pattern);
                    anchors.push(vec![anchor]);
                }
            }
        };
        self.has_unindexed_root = false;
        for (i, root) in self.roots.iter().enumerate().filter(|(_, r)| r.parts.len() >= 2) {
            match root.anchor {
                Some((part, from, len)) => {
                    add(&root.parts[part].as_bytes()[from..from + len], AnchorKind::Root(i));
                }
                None => self.has_unindexed_root = true,
            }
        }
        for (i, id) in self.ids.iter().enumerate() {
            add(&id.text.as_bytes()[id.at..id.at + ANCHOR_LEN], AnchorKind::Id(i));
        }
        self.index = KeywordIndex::new(&patterns);
        self.anchors = anchors;
    }

    /// Returns whether an anchor is worth a scan.
    fn is_plausible(&self, anchor: AnchorKind, b: &[u8], at: usize) -> bool {
        match anchor {
            // The word is far more frequent than the word with an id after it.
            AnchorKind::Sessions => b
                .get(at + "sessions".len())
                .is_some_and(|c| matches!(c, b'/' | b'\\' | b'%' | 0x1b) || *c >= 0x80),
            // The letters around the anchor are those of the root in every spelling.
            AnchorKind::Root(i) => self.roots[i].around(at).is_none_or(|(start, run)| {
                b.get(start..start + run.len()).is_some_and(|w| w.eq_ignore_ascii_case(run))
                    || b[at.saturating_sub(64)..b.len().min(at + 64)]
                        .iter()
                        .any(|c| *c == 0x1b || *c >= 0x80)
            }),
            AnchorKind::Id(_) => true,
        }
    }

    /// Most additional words that a path may have.
    pub(crate) fn extra_words(&self) -> usize {
        self.roots.iter().map(|r| r.blanks).max().unwrap_or(0)
    }

    /// Reports every position where something to redact may be.
    pub(crate) fn each_candidate(&self, b: &[u8], mut emit: impl FnMut(usize, AnchorKind)) {
        if let Some(index) = &self.index {
            index.each(b, |pattern, at| {
                let anchors = self.anchors[pattern].iter().copied();
                anchors
                    .filter(|anchor| self.is_plausible(*anchor, b, at))
                    .for_each(|anchor| emit(at, anchor));
            });
        }
        if self.has_unindexed_root {
            for at in memchr::memchr3_iter(b'/', b'\\', b'%', b) {
                for (i, root) in self.roots.iter().enumerate() {
                    if root.anchor.is_none() && root.parts.len() >= 2 {
                        emit(at, AnchorKind::Root(i));
                    }
                }
            }
        }
    }
}

/// The forms in which file systems return the same name.
fn spellings(parts: &[String]) -> BTreeSet<Vec<String>> {
    let mut out = BTreeSet::from([parts.to_vec()]);
    if parts.iter().all(|p| p.is_ascii()) {
        return out;
    }
    let all = |f: fn(&str) -> String| parts.iter().map(|p| f(p)).collect::<Vec<_>>();
    for composed in [all(|p| p.nfc().collect()), all(|p| p.nfd().collect())] {
        out.insert(composed.iter().map(|p| p.to_lowercase()).collect());
        out.insert(composed.iter().map(|p| p.to_uppercase()).collect());
        out.insert(composed);
    }
    out
}

/// The bytes in every case.
fn cases(bytes: &[u8]) -> Vec<Vec<u8>> {
    let mut out = vec![Vec::new()];
    for c in bytes {
        let both = [c.to_ascii_lowercase(), c.to_ascii_uppercase()];
        let used = if c.is_ascii_alphabetic() { &both[..] } else { &both[..1] };
        out = out
            .into_iter()
            .flat_map(|p: Vec<u8>| {
                used.iter().map(move |c| p.iter().copied().chain([*c]).collect::<Vec<u8>>())
            })
            .collect();
    }
    out
}
