//! Finding session paths in free text, in linear time.
//!
//! Find the anchor first (a part of the known root, or the word `sessions`), check its
//! surroundings, then walk back to where the path begins. Each byte is walked over at most a
//! constant number of times: a walk never goes behind the last cut.

use super::field::{normal, outside};
use super::paths::{MAX_ROOTS, Mode, Paths, Root};
use super::walk::{Back, is_path_byte};
use ecow::EcoString;
use memchr::memmem;

/// Longest id that is recognised.
pub(super) const MAX_ID: usize = 128;

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
struct Cut {
    start: usize,
    end: usize,
    put: Put,
}

enum Put {
    Nothing,
    Dot,
    Text(String),
}

/// The cleaned text, when it differs.
pub(super) fn clean(paths: &Paths, text: &str, mode: Mode) -> Option<EcoString> {
    let mut scan = Scan { paths, b: text.as_bytes(), mode, floor: 0, shut: 0, left: false };
    let cuts = scan.run();
    // Where every find of a root's part was cut, nothing else of it can be there.
    let left = scan.left || paths.vague;
    let mut out = (!cuts.is_empty()).then(|| {
        let mut out = EcoString::with_capacity(text.len());
        let mut from = 0;
        for cut in &cuts {
            out.push_str(text.get(from..cut.start).unwrap_or_default());
            match &cut.put {
                Put::Nothing => {}
                Put::Dot => out.push('.'),
                Put::Text(t) => out.push_str(t),
            }
            from = cut.end;
        }
        out.push_str(text.get(from..).unwrap_or_default());
        out
    });
    for mask in [mask_ids, mask_dashed] {
        if left && let Some(masked) = mask(paths, out.as_deref().unwrap_or(text)) {
            out = Some(masked.into());
        }
    }
    out
}

/// Replaces ids of the known root by an ellipsis.
pub(super) fn mask_ids(paths: &Paths, text: &str) -> Option<String> {
    let mut out: Option<String> = None;
    for id in &paths.ids {
        let now = out.as_deref().unwrap_or(text);
        if now.len() < id.needle().len() {
            continue;
        }
        if id.find(now.as_bytes()).is_some() {
            let needle = std::str::from_utf8(id.needle()).unwrap_or_default();
            out = Some(now.replace(needle, "…"));
        }
    }
    out
}

/// Replaces the known root as Claude Code writes it in the name of its project folder.
fn mask_dashed(paths: &Paths, text: &str) -> Option<String> {
    let mut out: Option<String> = None;
    for finder in paths.roots.iter().filter_map(|r| r.dashed.as_ref()) {
        let now = out.as_deref().unwrap_or(text);
        let b = now.as_bytes();
        let (mut made, mut from, mut at) = (String::new(), 0, 0);
        while let Some(i) = b.get(at..).and_then(|rest| finder.find(rest)) {
            let start = at + i;
            let end = start + finder.needle().len();
            let opens = start > 0 && matches!(b[start - 1], b'/' | b'\\');
            if opens && !b.get(end).copied().is_some_and(is_name) {
                made.push_str(now.get(from..start).unwrap_or_default());
                made.push('…');
                from = end;
            }
            at = end;
        }
        if from > 0 {
            made.push_str(now.get(from..).unwrap_or_default());
            out = Some(made);
        }
    }
    out
}

/// One text that is being scanned.
pub(super) struct Scan<'a> {
    paths: &'a Paths,
    pub(super) b: &'a [u8],
    mode: Mode,
    /// Where the last cut ended: no walk goes behind it.
    pub(super) floor: usize,
    /// No `sessions` anchor counts before this place: it lies in a path already cut, or in a URL.
    shut: usize,
    /// A part of a root was found that is not in one of the cuts.
    left: bool,
}

impl Scan<'_> {
    fn run(&mut self) -> Vec<Cut> {
        let mut cuts = Vec::new();
        let roots = self.paths.roots.as_slice();
        let mut next = [None; MAX_ROOTS];
        for (at, root) in next.iter_mut().zip(roots).filter(|(_, r)| r.parts.len() >= 2) {
            *at = root.finder.find(self.b);
        }
        let word = &self.paths.word.0;
        let mut session = word.find(self.b);
        loop {
            let root = next.iter().enumerate().filter_map(|(i, at)| at.map(|at| (at, i))).min();
            let cut = match (root, session) {
                (None, None) => break,
                (Some((at, i)), s) if s.is_none_or(|s| at <= s) => {
                    next[i] = find_after(&roots[i].finder, self.b, at + 1);
                    let cut = self.root(&roots[i], at);
                    self.left |= cut.is_none();
                    cut
                }
                (_, Some(at)) => {
                    session = find_after(word, self.b, at + 1);
                    if at < self.shut { None } else { self.session(at) }
                }
                (Some(_), None) => None,
            };
            if let Some(cut) = cut {
                self.floor = cut.end;
                self.shut = self.shut.max(self.token_end(cut.end));
                for (i, at) in next.iter_mut().enumerate() {
                    if at.is_some_and(|at| at < cut.end) {
                        *at = find_after(&roots[i].finder, self.b, cut.end);
                    }
                }
                if session.is_some_and(|at| at < cut.end) {
                    session = find_after(word, self.b, cut.end);
                }
                cuts.push(cut);
            }
        }
        cuts
    }

    /// The known root whose key part stands at `at`.
    fn root(&mut self, root: &Root, at: usize) -> Option<Cut> {
        let mut start = at;
        for part in root.parts.get(..root.key)?.iter().rev() {
            start = self.sep_before(start)?;
            start = self.b.get(..start)?.ends_with(part.as_bytes()).then(|| start - part.len())?;
        }
        let mut end = at + root.parts.get(root.key)?.len();
        for part in root.parts.get(root.key + 1..)? {
            end = self.sep_after(end)?;
            end = self.b.get(end..)?.starts_with(part.as_bytes()).then(|| end + part.len())?;
        }
        if start < self.floor || !self.name_ends(end) {
            return None;
        }
        let Some(lead) = self.sep_before(start).filter(|lead| *lead >= self.floor) else {
            let glued = start > self.floor && self.b.get(start - 1).copied().is_some_and(is_name);
            return (!glued).then(|| self.cut(start, end));
        };
        if lead == self.floor || !is_path_byte(self.b[lead - 1]) {
            return Some(self.cut(lead, end));
        }
        match self.back(lead, self.style(lead)) {
            // A flag, a colour, a drive or `file:` stands before the root.
            Back::Start(from) if !self.has_folder(from, lead) => {
                Some(self.cut(self.drive(from, lead), end))
            }
            // The root's names lie inside another path: that is another place.
            Back::Start(_) => None,
            // Only the root goes: the rest of the address is not ours.
            Back::Url => Some(Cut { start, end, put: Put::Dot }),
        }
    }

    /// Whether there is a separator between two places.
    fn has_folder(&self, from: usize, to: usize) -> bool {
        let before = self.b.get(from..to).unwrap_or_default();
        let after_drive = if before.len() > 1 && before[1] == b':' { 2 } else { 0 };
        let rest = before.get(after_drive..).unwrap_or_default();
        let file = rest.get(..7).is_some_and(|s| s.eq_ignore_ascii_case(b"file://"));
        let rest = if file { &rest[7..] } else { rest };
        rest.iter().any(|c| matches!(c, b'/' | b'\\'))
    }

    /// Where a root begins whose leading separator is at `lead`: a drive letter and `file:` belong
    /// to it, a flag that is glued to it does not.
    fn drive(&self, from: usize, lead: usize) -> usize {
        let before = self.b.get(from..lead).unwrap_or_default();
        let file = before.get(..5).is_some_and(|s| s.eq_ignore_ascii_case(b"file:"));
        if file || before.ends_with(b":") { from } else { lead }
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
        if id.is_empty() || id.len() > MAX_ID || !self.name_ends(id_end) {
            return None;
        }
        let sandbox = lead.and_then(|lead| self.sandbox_before(lead));
        let begins = sandbox.unwrap_or(at);
        let short = sandbox.is_some() || lead.is_some_and(|lead| self.is_workspace(lead));
        if !is_long_id(id) && (self.mode == Mode::Body || !short) {
            return None;
        }
        let Some(lead) = self.sep_before(begins).filter(|lead| *lead >= self.floor) else {
            return (begins >= self.floor).then(|| self.cut(begins, id_end));
        };
        match self.back(lead, self.style(lead)) {
            Back::Start(from) => Some(self.cut(from, id_end)),
            Back::Url => {
                self.shut = self.token_end(id_end);
                None
            }
        }
    }

    /// Where `sandboxes` stands when `sandboxes/<id>` ends at `end`.
    fn sandbox_before(&self, end: usize) -> Option<usize> {
        let before = self.b.get(self.floor..end)?;
        let len = before.iter().rev().take(MAX_ID).take_while(|c| is_id_byte(**c)).count();
        let word_end = self.sep_before(end - len).filter(|_| len > 0)?;
        self.b.get(..word_end)?.ends_with(b"sandboxes").then(|| word_end - "sandboxes".len())
    }

    /// Whether what ends at `end` is `/workspace` and nothing before it.
    fn is_workspace(&self, end: usize) -> bool {
        let Some(before) = self.b.get(self.floor..end) else {
            return false;
        };
        let Some(rest) = before.strip_suffix(b"workspace") else {
            return false;
        };
        match self.sep_before(self.floor + rest.len()) {
            Some(lead) if lead > self.floor => !self.b.get(lead - 1).copied().is_some_and(is_name),
            Some(_) => true,
            None => rest.is_empty(),
        }
    }

    /// The cut of a prefix that ends at `end`, with its separator, or the root itself.
    fn cut(&self, start: usize, end: usize) -> Cut {
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

fn find_after(finder: &memmem::Finder<'_>, b: &[u8], at: usize) -> Option<usize> {
    finder.find(b.get(at..)?).map(|i| at + i)
}
