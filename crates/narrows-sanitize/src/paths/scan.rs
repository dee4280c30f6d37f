//! Finds session paths in one segment, in linear time.
//!
//! It finds an anchor (some bytes of a known root, or the word `sessions`), checks its
//! surroundings, then walks back to the start of the path. A walk never passes the previous match.
//! The text is normalized: separators are `/` or `\`, however they were written.

use super::bounds::{PathStart, is_path_byte};
use super::field::{normal, outside};
use super::{AnchorKind, Mode, PathRoot, Paths, RootId};
use crate::chars::{MAX_ID_LEN, is_long_id, is_name_byte};
use memchr::memmem;

/// Top folders of a host.
pub(crate) const TOP_FOLDERS: [&str; 13] = [
    "users",
    "home",
    "workspace",
    "data",
    "var",
    "tmp",
    "mnt",
    "root",
    "srv",
    "opt",
    "private",
    "volumes",
    "media",
];

fn is_id_byte(c: u8) -> bool {
    c.is_ascii_alphanumeric() || c == b'_' || c == b'-'
}

/// A part of the text to replace.
#[derive(Debug)]
pub(crate) struct PathSpan {
    pub(crate) start: usize,
    pub(crate) end: usize,
    pub(crate) replacement: Replacement,
}

/// The replacement of a path.
#[derive(Debug)]
pub(crate) enum Replacement {
    Empty,
    Dot,
    Home,
    /// Not a path, but part of a known root: its id, its dashed name.
    Ellipsis,
    Text(String),
}

/// Finds all matches of one segment, in order.
pub(crate) fn spans(
    paths: &Paths,
    candidates: &[(usize, AnchorKind)],
    b: &[u8],
    mode: Mode,
) -> Vec<PathSpan> {
    if candidates.is_empty() {
        return Vec::new();
    }
    let mut scan = PathScanner::new(paths, b, mode);
    // Known roots come first, then whatever looks like a session, then the remaining ids.
    for i in
        (0..paths.roots.len()).filter(|i| candidates.iter().any(|s| s.1 == AnchorKind::Root(*i)))
    {
        scan.run_pass(candidates, |anchor| anchor == AnchorKind::Root(i));
    }
    scan.run_pass(candidates, |anchor| matches!(anchor, AnchorKind::Sessions));
    scan.run_pass(candidates, |anchor| matches!(anchor, AnchorKind::Id(_)));
    scan.spans
}

/// The scan of one segment.
pub(crate) struct PathScanner<'a> {
    paths: &'a Paths,
    pub(crate) b: &'a [u8],
    mode: Mode,
    /// The end of the previous match: no walk passes it.
    pub(crate) floor: usize,
    /// The end of a URL: no `sessions` anchor counts before it.
    url_end: usize,
    spans: Vec<PathSpan>,
}

impl<'a> PathScanner<'a> {
    pub(crate) fn new(paths: &'a Paths, b: &'a [u8], mode: Mode) -> PathScanner<'a> {
        PathScanner { paths, b, mode, floor: 0, url_end: 0, spans: Vec::new() }
    }

    fn run_pass(
        &mut self,
        candidates: &[(usize, AnchorKind)],
        is_included: impl Fn(AnchorKind) -> bool,
    ) {
        let mut new: Vec<PathSpan> = Vec::new();
        for (at, anchor) in candidates.iter().filter(|(_, anchor)| is_included(*anchor)) {
            let next = self.spans.partition_point(|c| c.start <= *at);
            let earlier = next.checked_sub(1).map_or(0, |i| self.spans[i].end);
            self.floor = new.last().map_or(0, |c| c.end).max(earlier);
            let limit = self.spans.get(next).map_or(self.b.len(), |c| c.start);
            let span = match anchor {
                _ if *at < self.floor => None,
                AnchorKind::Root(i) => {
                    let root = &self.paths.roots[*i];
                    self.match_root(root, *at).or_else(|| self.match_dashed(root, *at))
                }
                AnchorKind::Id(i) => self.match_id(&self.paths.ids[*i], *at),
                AnchorKind::Sessions if *at < self.url_end => None,
                AnchorKind::Sessions => self.match_session(*at),
            };
            new.extend(span.filter(|c| c.start >= self.floor && c.end <= limit));
        }
        if !new.is_empty() {
            self.spans.append(&mut new);
            self.spans.sort_by_key(|c| c.start);
        }
    }

    /// Matches the known root around the bytes at `at`.
    fn match_root(&self, root: &PathRoot, at: usize) -> Option<PathSpan> {
        let (start, end) = if let Some((part, from)) = root.anchor() {
            self.root_around(root, part, at.checked_sub(from)?)?
        } else {
            // Only the separator before it can be searched for.
            let start = self.sep_after(at)?;
            (start, self.parts_after(&root.parts, start)?)
        };
        if start < self.floor || !self.name_ends(end) {
            return None;
        }
        let Some(lead) = self.sep_before(start).filter(|lead| *lead >= self.floor) else {
            let is_glued = self.is_glued(start);
            let is_start = start == self.floor || self.b[start - 1] != b'.';
            return match (!is_glued && is_start, root.has_id) {
                (true, _) if root.is_distinct => Some(self.prefix_span(root.is_home, start, end)),
                // No other folder has this id in its path.
                (false, true) => Some(PathSpan { start, end, replacement: Replacement::Dot }),
                _ => None,
            };
        };
        if lead == self.floor || !is_path_byte(self.b[lead - 1]) {
            return Some(self.prefix_span(root.is_home, lead, end));
        }
        match self.walk_back(lead, self.is_backslash(lead)) {
            PathStart::At(from) => {
                let before = self.b.get(from..lead).unwrap_or_default();
                match prefix(before) {
                    RootPrefix::Host => {
                        Some(self.prefix_span(root.is_home, self.before_drive(from), end))
                    }
                    RootPrefix::Flag => Some(self.prefix_span(root.is_home, lead, end)),
                    // The root's names lie inside another path.
                    RootPrefix::Folder if root.is_distinct => {
                        Some(PathSpan { start: from, end, replacement: Replacement::Ellipsis })
                    }
                    RootPrefix::Folder => None,
                    RootPrefix::Word => {
                        Some(PathSpan { start, end, replacement: Replacement::Dot })
                    }
                }
            }
            // Only the root is removed: the rest of the URL belongs to the user.
            PathStart::InUrl => Some(PathSpan { start, end, replacement: Replacement::Dot }),
        }
    }

    /// The start and end of a root whose part number `key` starts at `at`.
    fn root_around(&self, root: &PathRoot, key: usize, at: usize) -> Option<(usize, usize)> {
        let mut start = at;
        for part in root.parts.get(..key)?.iter().rev() {
            let end = self.sep_before(start)?;
            start = end.checked_sub(part.len())?;
            self.b.get(start..end)?.eq_ignore_ascii_case(part.as_bytes()).then_some(())?;
        }
        Some((start, self.parts_after(root.parts.get(key..)?, at)?))
    }

    /// The end of the parts that start at `at`.
    fn parts_after(&self, parts: &[String], at: usize) -> Option<usize> {
        let mut end = at;
        for (i, part) in parts.iter().enumerate() {
            let from = if i == 0 { end } else { self.sep_after(end)? };
            end = from + part.len();
            self.b.get(from..end)?.eq_ignore_ascii_case(part.as_bytes()).then_some(())?;
        }
        Some(end)
    }

    /// The start of what belongs to a path before its drive letter: `file:///`, `\\\\?\\`, `/`.
    fn before_drive(&self, from: usize) -> usize {
        let before = &self.b[self.floor..from];
        let lower = before[before.len().saturating_sub(8)..].to_ascii_lowercase();
        let signs: [&[u8]; 7] = [b"file:///", b"file://", b"file:/", b"?\\", b"?/", b"\\\\", b"/"];
        let found =
            signs.iter().find(|s| self.b.get(from + 1) == Some(&b':') && lower.ends_with(s));
        from - found.map_or(0, |s| s.len())
    }

    /// Matches the known root as Claude Code writes it in the name of its project folder.
    fn match_dashed(&self, root: &PathRoot, at: usize) -> Option<PathSpan> {
        let dashed = root.dashed.as_ref()?;
        let start = at.checked_sub(dashed.at)?;
        let end = start + dashed.name.len();
        let same = self.b.get(start..end)?.eq_ignore_ascii_case(dashed.name.as_bytes());
        let opens = self.sep_before(start).is_some();
        let ends = self.b.get(end) == Some(&b'-') || self.name_ends(end);
        (same && opens && ends).then_some(PathSpan {
            start,
            end,
            replacement: Replacement::Ellipsis,
        })
    }

    /// Matches an id of a known root anywhere.
    fn match_id(&self, id: &RootId, at: usize) -> Option<PathSpan> {
        let text = id.text.as_bytes();
        let (mut start, mut end) = (at, at);
        for c in text[..id.at].iter().rev() {
            if id.is_long && start > 0 && self.b[start - 1] == b'-' {
                start -= 1;
            }
            start = start.checked_sub(1)?;
            self.b[start].eq_ignore_ascii_case(c).then_some(())?;
        }
        for c in &text[id.at..] {
            if id.is_long && end > at && self.b.get(end) == Some(&b'-') {
                end += 1;
            }
            self.b.get(end)?.eq_ignore_ascii_case(c).then_some(())?;
            end += 1;
        }
        let word = |c: Option<&u8>| c.copied().is_none_or(|c| !is_name_byte(c));
        let alone = word(start.checked_sub(1).and_then(|i| self.b.get(i))) && word(self.b.get(end));
        (id.is_long || alone).then_some(PathSpan { start, end, replacement: Replacement::Ellipsis })
    }

    /// Matches a session path whose word `sessions` stands at `at`.
    fn match_session(&mut self, at: usize) -> Option<PathSpan> {
        let lead = match self.sep_before(at) {
            Some(lead) => Some(lead),
            None if at == 0 || !self.b.get(at - 1).copied().is_some_and(is_name_byte) => None,
            None => return None,
        };
        let id_start = self.sep_after(at + "sessions".len())?;
        let id = self.b.get(id_start..)?;
        let id =
            id.get(..id.iter().take(MAX_ID_LEN + 1).take_while(|c| is_id_byte(**c)).count())?;
        let id_end = id_start + id.len();
        if id.len() > MAX_ID_LEN || !id.first()?.is_ascii_alphanumeric() || !self.name_ends(id_end)
        {
            return None;
        }
        let sandbox = lead.and_then(|lead| self.sandbox_before(lead));
        let names_start = sandbox.unwrap_or(at);
        let long = is_long_id(id);
        let short = sandbox.is_some() || lead.is_some_and(|lead| self.is_workspace(lead));
        if !long && (self.mode == Mode::Body || !short) {
            return None;
        }
        let Some(lead) = self.sep_before(names_start).filter(|lead| *lead >= self.floor) else {
            return (names_start >= self.floor)
                .then(|| self.prefix_span(false, names_start, id_end));
        };
        match self.walk_back(lead, self.is_backslash(lead)) {
            // The rest of a path below an earlier match belongs to the user.
            PathStart::At(from) if !long && from == self.floor && from > 0 => None,
            PathStart::At(from) if !long && !self.is_rooted(from, lead) => None,
            PathStart::At(from) => Some(self.prefix_span(false, from, id_end)),
            PathStart::InUrl => {
                self.url_end = self.token_end(id_end);
                None
            }
        }
    }

    /// Returns whether the path at `from` starts at the top of a host: `/…`, `~/…`, `C:\…`, or the
    /// same without the first character (`Users/…`). Other paths are relative and belong to the
    /// user.
    fn is_rooted(&self, from: usize, lead: usize) -> bool {
        let word = self.b.get(from..).unwrap_or_default();
        let top = &word[..word.iter().position(|c| matches!(c, b'/' | b'\\')).unwrap_or(0)];
        self.is_absolute(from)
            || from == lead
            || top.eq_ignore_ascii_case(b"file:")
            || TOP_FOLDERS.iter().any(|t| top.eq_ignore_ascii_case(t.as_bytes()))
    }

    /// The start of `sandboxes` when `sandboxes/<id>` ends at `end`.
    fn sandbox_before(&self, end: usize) -> Option<usize> {
        let before = self.b.get(self.floor..end)?;
        let len = before.iter().rev().take(MAX_ID_LEN).take_while(|c| is_id_byte(**c)).count();
        let word_end = self.sep_before(end - len).filter(|_| len > 0)?;
        let start = word_end.checked_sub("sandboxes".len())?;
        (self.b.get(start..word_end)? == b"sandboxes" && start >= self.floor).then_some(start)
    }

    /// Returns whether `/workspace` ends at `end` and nothing precedes it.
    fn is_workspace(&self, end: usize) -> bool {
        let Some(before) = self.b.get(self.floor..end) else {
            return false;
        };
        let Some(rest) = before.strip_suffix(b"workspace") else {
            return false;
        };
        // Without a separator before it, it is a folder of the user.
        match self.sep_before(self.floor + rest.len()) {
            Some(lead) if lead > self.floor => {
                !self.b.get(lead - 1).copied().is_some_and(is_name_byte)
            }
            lead => lead.is_some(),
        }
    }

    /// Matches a prefix that ends at `end`, with its separator, or the root itself.
    fn prefix_span(&self, is_home: bool, start: usize, end: usize) -> PathSpan {
        if is_home {
            return PathSpan { start, end, replacement: Replacement::Home };
        }
        let Some(rest) = self.sep_after(end) else {
            return PathSpan { start, end, replacement: Replacement::Dot };
        };
        let mut rest = rest;
        while self.b.get(rest..).is_some_and(|b| b.starts_with(b"./")) {
            rest += 2;
        }
        let token = self.b.get(rest..self.token_end(rest)).unwrap_or_default();
        if token.is_empty() {
            return PathSpan { start, end, replacement: Replacement::Dot };
        }
        if memmem::find(token, b"..").is_some() {
            let text = String::from_utf8_lossy(token);
            let parts: Vec<&str> = text.split(['/', '\\']).filter(|p| !p.is_empty()).collect();
            if normal(&parts).starts_with("<outside>") {
                let replacement = Replacement::Text(outside(&parts));
                return PathSpan { start, end: rest + token.len(), replacement };
            }
        }
        PathSpan { start, end: rest, replacement: Replacement::Empty }
    }
}

/// The text before a root in the same word.
enum RootPrefix {
    /// A drive, `file:` and the like: removed with the root.
    Host,
    /// `-I`, `@`: kept.
    Flag,
    /// Other folders.
    Folder,
    /// A name that is no folder.
    Word,
}

/// Classifies the text before a root in the same word.
fn prefix(before: &[u8]) -> RootPrefix {
    let lower = before.to_ascii_lowercase();
    let drive = |b: &[u8]| matches!(b, [d, b':', ..] if d.is_ascii_alphabetic());
    let host = match lower.as_slice() {
        [] => true,
        [d, b':'] => d.is_ascii_alphabetic(),
        b"file:" | b"file:/" | b"file://" | b"file://localhost" => true,
        // macOS gives `/tmp` and `/var` under this name too.
        b"/private" | b"file:///private" => true,
        b => b.strip_prefix(b"file:").is_some_and(|r| {
            drive(r.strip_prefix(b"///").or_else(|| r.strip_prefix(b"/")).unwrap_or(r))
        }),
    };
    // `\\?\C:`, `//server`, `/C:`.
    let long = lower.strip_prefix(b"\\?").or_else(|| lower.strip_prefix(b"\\\\?"));
    let slashed = lower.strip_prefix(b"/").is_some_and(|r| drive(r) && r.len() == 2);
    if host || slashed || long.is_some_and(|r| r.len() <= 4) {
        RootPrefix::Host
    } else if before.iter().any(|c| matches!(c, b'/' | b'\\')) {
        RootPrefix::Folder
    } else if before.last().copied().is_some_and(is_name_byte) && before.first() != Some(&b'-') {
        RootPrefix::Word
    } else {
        RootPrefix::Flag
    }
}
