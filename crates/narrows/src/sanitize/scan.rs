//! Finding session paths in one segment, in linear time.
//!
//! Find the anchor first (some bytes of the known root, or the word `sessions`), check its
//! surroundings, then walk back to where the path begins. A walk never goes behind the last cut.
//! The text is a view: separators are `/` or `\`, whatever they were written as.

use super::field::{normal, outside};
use super::paths::{Id, Mode, Owner, Paths, Root};
use super::walk::{Back, is_path_byte};
use memchr::memmem;

/// Longest id that is recognised.
pub(super) const MAX_ID: usize = 128;

/// Folders at the top of a host.
pub(super) const TOPS: [&str; 13] = [
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

/// A byte of a file name.
pub(super) fn is_name(c: u8) -> bool {
    c.is_ascii_alphanumeric() || c == b'_' || c == b'-' || c >= 0x80
}

fn is_id_byte(c: u8) -> bool {
    c.is_ascii_alphanumeric() || c == b'_' || c == b'-'
}

/// A UUID in any case, or at least 32 hexadecimal digits.
pub(super) fn is_long_id(id: &[u8]) -> bool {
    let hex = |b: &[u8]| b.iter().all(u8::is_ascii_hexdigit);
    if id.len() == 36 {
        return id.split(|c| *c == b'-').map(<[u8]>::len).eq([8, 4, 4, 4, 12])
            && id.split(|c| *c == b'-').all(hex);
    }
    id.len() >= 32 && id.len() <= MAX_ID && hex(id)
}

/// One piece of text to replace.
#[derive(Debug)]
pub(super) struct Cut {
    pub(super) start: usize,
    pub(super) end: usize,
    pub(super) put: Put,
}

/// What stands there instead.
#[derive(Debug)]
pub(super) enum Put {
    Nothing,
    Dot,
    Home,
    /// Something of the known root that is no path: its id, its dashed name.
    Ellipsis,
    Text(String),
}

/// All cuts of one segment, in order.
pub(super) fn cuts(paths: &Paths, spots: &[(usize, Owner)], b: &[u8], mode: Mode) -> Vec<Cut> {
    if spots.is_empty() {
        return Vec::new();
    }
    let mut scan = Scan::new(paths, b, mode);
    // What is known comes first, then what merely looks like a session, then what is left of ids.
    for i in (0..paths.roots.len()).filter(|i| spots.iter().any(|s| s.1 == Owner::Root(*i))) {
        scan.pass(spots, |owner| owner == Owner::Root(i));
    }
    scan.pass(spots, |owner| matches!(owner, Owner::Sessions));
    scan.pass(spots, |owner| matches!(owner, Owner::Id(_)));
    scan.cuts
}

/// One segment that is being scanned.
pub(super) struct Scan<'a> {
    paths: &'a Paths,
    pub(super) b: &'a [u8],
    mode: Mode,
    /// Where the last cut ended: no walk goes behind it.
    pub(super) floor: usize,
    /// No `sessions` anchor counts before this place: it lies in a URL.
    shut: usize,
    cuts: Vec<Cut>,
}

impl<'a> Scan<'a> {
    pub(super) fn new(paths: &'a Paths, b: &'a [u8], mode: Mode) -> Scan<'a> {
        Scan { paths, b, mode, floor: 0, shut: 0, cuts: Vec::new() }
    }

    fn pass(&mut self, spots: &[(usize, Owner)], of: impl Fn(Owner) -> bool) {
        let mut new: Vec<Cut> = Vec::new();
        for (at, owner) in spots.iter().filter(|(_, owner)| of(*owner)) {
            let next = self.cuts.partition_point(|c| c.start <= *at);
            let earlier = next.checked_sub(1).map_or(0, |i| self.cuts[i].end);
            self.floor = new.last().map_or(0, |c| c.end).max(earlier);
            let limit = self.cuts.get(next).map_or(self.b.len(), |c| c.start);
            let cut = match owner {
                _ if *at < self.floor => None,
                Owner::Root(i) => {
                    let root = &self.paths.roots[*i];
                    self.root(root, *at).or_else(|| self.dashed(root, *at))
                }
                Owner::Id(i) => self.id(&self.paths.ids[*i], *at),
                Owner::Sessions if *at < self.shut => None,
                Owner::Sessions => self.session(*at),
            };
            new.extend(cut.filter(|c| c.start >= self.floor && c.end <= limit));
        }
        if !new.is_empty() {
            self.cuts.append(&mut new);
            self.cuts.sort_by_key(|c| c.start);
        }
    }

    /// The known root around the bytes at `at`.
    fn root(&self, root: &Root, at: usize) -> Option<Cut> {
        let (start, end) = if let Some((part, from)) = root.key() {
            self.around(root, part, at.checked_sub(from)?)?
        } else {
            // Nothing to look for but the separator before it.
            let start = self.sep_after(at)?;
            (start, self.parts_after(&root.parts, start)?)
        };
        if start < self.floor || !self.name_ends(end) {
            return None;
        }
        let Some(lead) = self.sep_before(start).filter(|lead| *lead >= self.floor) else {
            let glued = self.is_glued(start);
            let begins = start == self.floor || self.b[start - 1] != b'.';
            return match (!glued && begins, root.has_id) {
                (true, _) if root.distinct => Some(self.cut(root.home, start, end)),
                // No other folder has this id in its path.
                (false, true) => Some(Cut { start, end, put: Put::Dot }),
                _ => None,
            };
        };
        if lead == self.floor || !is_path_byte(self.b[lead - 1]) {
            return Some(self.cut(root.home, lead, end));
        }
        match self.back(lead, self.style(lead)) {
            Back::Start(from) => {
                let before = self.b.get(from..lead).unwrap_or_default();
                match prefix(before) {
                    Prefix::Host => Some(self.cut(root.home, self.before_drive(from), end)),
                    Prefix::Flag => Some(self.cut(root.home, lead, end)),
                    // The root's names lie inside another path.
                    Prefix::Folder if root.distinct => {
                        Some(Cut { start: from, end, put: Put::Ellipsis })
                    }
                    Prefix::Folder => None,
                    Prefix::Word => Some(Cut { start, end, put: Put::Dot }),
                }
            }
            // Only the root goes: the rest of the address is not ours.
            Back::Url => Some(Cut { start, end, put: Put::Dot }),
        }
    }

    /// Where a root begins and ends whose part number `key` begins at `at`.
    fn around(&self, root: &Root, key: usize, at: usize) -> Option<(usize, usize)> {
        let mut start = at;
        for part in root.parts.get(..key)?.iter().rev() {
            let end = self.sep_before(start)?;
            start = end.checked_sub(part.len())?;
            self.b.get(start..end)?.eq_ignore_ascii_case(part.as_bytes()).then_some(())?;
        }
        Some((start, self.parts_after(root.parts.get(key..)?, at)?))
    }

    /// Where the parts end that begin at `at`.
    fn parts_after(&self, parts: &[String], at: usize) -> Option<usize> {
        let mut end = at;
        for (i, part) in parts.iter().enumerate() {
            let from = if i == 0 { end } else { self.sep_after(end)? };
            end = from + part.len();
            self.b.get(from..end)?.eq_ignore_ascii_case(part.as_bytes()).then_some(())?;
        }
        Some(end)
    }

    /// What belongs to a path before its drive letter: `file:///`, `\\\\?\\`, `/`.
    fn before_drive(&self, from: usize) -> usize {
        let before = &self.b[self.floor..from];
        let lower = before[before.len().saturating_sub(8)..].to_ascii_lowercase();
        let signs: [&[u8]; 7] = [b"file:///", b"file://", b"file:/", b"?\\", b"?/", b"\\\\", b"/"];
        let found =
            signs.iter().find(|s| self.b.get(from + 1) == Some(&b':') && lower.ends_with(s));
        from - found.map_or(0, |s| s.len())
    }

    /// The known root as Claude Code writes it in the name of its project folder.
    fn dashed(&self, root: &Root, at: usize) -> Option<Cut> {
        let dashed = root.dashed.as_ref()?;
        let start = at.checked_sub(dashed.at)?;
        let end = start + dashed.name.len();
        let same = self.b.get(start..end)?.eq_ignore_ascii_case(dashed.name.as_bytes());
        let opens = self.sep_before(start).is_some();
        let ends = self.b.get(end) == Some(&b'-') || self.name_ends(end);
        (same && opens && ends).then_some(Cut { start, end, put: Put::Ellipsis })
    }

    /// An id of the known root, wherever it stands.
    fn id(&self, id: &Id, at: usize) -> Option<Cut> {
        let text = id.text.as_bytes();
        let (mut start, mut end) = (at, at);
        for c in text[..id.at].iter().rev() {
            if id.long && start > 0 && self.b[start - 1] == b'-' {
                start -= 1;
            }
            start = start.checked_sub(1)?;
            self.b[start].eq_ignore_ascii_case(c).then_some(())?;
        }
        for c in &text[id.at..] {
            if id.long && end > at && self.b.get(end) == Some(&b'-') {
                end += 1;
            }
            self.b.get(end)?.eq_ignore_ascii_case(c).then_some(())?;
            end += 1;
        }
        let word = |c: Option<&u8>| c.copied().is_none_or(|c| !is_name(c));
        let alone = word(start.checked_sub(1).and_then(|i| self.b.get(i))) && word(self.b.get(end));
        (id.long || alone).then_some(Cut { start, end, put: Put::Ellipsis })
    }

    /// A session path whose word `sessions` stands at `at`.
    fn session(&mut self, at: usize) -> Option<Cut> {
        let lead = match self.sep_before(at) {
            Some(lead) => Some(lead),
            None if at == 0 || !self.b.get(at - 1).copied().is_some_and(is_name) => None,
            None => return None,
        };
        let id_start = self.sep_after(at + "sessions".len())?;
        let id = self.b.get(id_start..)?;
        let id = id.get(..id.iter().take(MAX_ID + 1).take_while(|c| is_id_byte(**c)).count())?;
        let id_end = id_start + id.len();
        if id.len() > MAX_ID || !id.first()?.is_ascii_alphanumeric() || !self.name_ends(id_end) {
            return None;
        }
        let sandbox = lead.and_then(|lead| self.sandbox_before(lead));
        let begins = sandbox.unwrap_or(at);
        let long = is_long_id(id);
        let short = sandbox.is_some() || lead.is_some_and(|lead| self.is_workspace(lead));
        if !long && (self.mode == Mode::Body || !short) {
            return None;
        }
        let Some(lead) = self.sep_before(begins).filter(|lead| *lead >= self.floor) else {
            return (begins >= self.floor).then(|| self.cut(false, begins, id_end));
        };
        match self.back(lead, self.style(lead)) {
            // What is left of a path below an earlier cut is the user's own.
            Back::Start(from) if !long && from == self.floor && from > 0 => None,
            Back::Start(from) if !long && !self.is_rooted(from, lead) => None,
            Back::Start(from) => Some(self.cut(false, from, id_end)),
            Back::Url => {
                self.shut = self.token_end(id_end);
                None
            }
        }
    }

    /// Whether the path that begins at `from` is one of a host: `/…`, `~/…`, `C:\…`, or the same
    /// without its first sign (`Users/…`). Others are relative: the user's own.
    fn is_rooted(&self, from: usize, lead: usize) -> bool {
        let word = self.b.get(from..).unwrap_or_default();
        let top = &word[..word.iter().position(|c| matches!(c, b'/' | b'\\')).unwrap_or(0)];
        self.is_absolute(from)
            || from == lead
            || top.eq_ignore_ascii_case(b"file:")
            || TOPS.iter().any(|t| top.eq_ignore_ascii_case(t.as_bytes()))
    }

    /// Where `sandboxes` stands when `sandboxes/<id>` ends at `end`.
    fn sandbox_before(&self, end: usize) -> Option<usize> {
        let before = self.b.get(self.floor..end)?;
        let len = before.iter().rev().take(MAX_ID).take_while(|c| is_id_byte(**c)).count();
        let word_end = self.sep_before(end - len).filter(|_| len > 0)?;
        let start = word_end.checked_sub("sandboxes".len())?;
        (self.b.get(start..word_end)? == b"sandboxes" && start >= self.floor).then_some(start)
    }

    /// Whether what ends at `end` is `/workspace` and nothing before it.
    fn is_workspace(&self, end: usize) -> bool {
        let Some(before) = self.b.get(self.floor..end) else {
            return false;
        };
        let Some(rest) = before.strip_suffix(b"workspace") else {
            return false;
        };
        // Without a separator before it, it is a folder of the user's own.
        match self.sep_before(self.floor + rest.len()) {
            Some(lead) if lead > self.floor => !self.b.get(lead - 1).copied().is_some_and(is_name),
            lead => lead.is_some(),
        }
    }

    /// The cut of a prefix that ends at `end`, with its separator, or the root itself.
    fn cut(&self, home: bool, start: usize, end: usize) -> Cut {
        if home {
            return Cut { start, end, put: Put::Home };
        }
        let Some(rest) = self.sep_after(end) else {
            return Cut { start, end, put: Put::Dot };
        };
        let mut rest = rest;
        while self.b.get(rest..).is_some_and(|b| b.starts_with(b"./")) {
            rest += 2;
        }
        let token = self.b.get(rest..self.token_end(rest)).unwrap_or_default();
        if token.is_empty() {
            return Cut { start, end, put: Put::Dot };
        }
        if memmem::find(token, b"..").is_some() {
            let text = String::from_utf8_lossy(token);
            let parts: Vec<&str> = text.split(['/', '\\']).filter(|p| !p.is_empty()).collect();
            if normal(&parts).starts_with("<outside>") {
                let put = Put::Text(outside(&parts));
                return Cut { start, end: rest + token.len(), put };
            }
        }
        Cut { start, end: rest, put: Put::Nothing }
    }
}

/// What stands before a root in the same word.
enum Prefix {
    /// A drive, `file:` and the like: it belongs to the root.
    Host,
    /// `-I`, `@`: it stays.
    Flag,
    /// Other folders.
    Folder,
    /// A name that is no folder.
    Word,
}

/// What stands before a root in the same word.
fn prefix(before: &[u8]) -> Prefix {
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
        Prefix::Host
    } else if before.iter().any(|c| matches!(c, b'/' | b'\\')) {
        Prefix::Folder
    } else if before.last().copied().is_some_and(is_name) && before.first() != Some(&b'-') {
        Prefix::Word
    } else {
        Prefix::Flag
    }
}
