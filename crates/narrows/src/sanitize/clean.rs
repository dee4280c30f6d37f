//! Cleaning one text: segments, what is found in them, what stands there instead.
//!
//! A whole text and the parts of a stream take the same way: both are cut into the same segments,
//! and each segment is cleaned alone. Segments in which nothing was spotted are not looked at.

use super::across::Holds;
use super::escape;
use super::hits::{Hit, is_settled};
use super::memo::Memo;
use super::paths::{Mode, Paths};
use super::pem::{self, Key};
use super::removed::Removed;
use super::secret::{Secrets, What};
use super::segment::{AHEAD, Ends, MAX_SEGMENT};
use super::short::Short;
use super::view::View;
use ecow::EcoString;
use std::cell::Cell;
use std::ops::Range;
use std::sync::Arc;

/// Rounds after which a segment that still changes is given up.
const MAX_ROUNDS: usize = 16;

/// Cleans texts, and counts what it removed.
#[derive(Debug, Clone)]
pub(super) struct Cleaner {
    pub(super) paths: Paths,
    pub(super) secrets: Arc<Secrets>,
    pub(super) holds: Holds,
    pub(super) removed: Removed,
    pub(super) memo: Memo,
    pub(super) short: Short,
    /// Something was found, or might have been, that may reach over several lines.
    pub(super) wide: bool,
    /// Something was found of which the mode decides.
    pub(super) moded: Cell<bool>,
    /// Places to look at, of the text in work.
    spots: Vec<Place>,
}

/// What a text carries from one segment to the next.
#[derive(Debug, Clone, Default)]
pub(super) struct Flow {
    key: Key,
}

impl Flow {
    pub(super) fn is_idle(&self) -> bool {
        matches!(self.key, Key::None)
    }

    /// A text that comes behind a secret.
    pub(super) fn behind_secret() -> Flow {
        Flow { key: Key::Behind(String::new()) }
    }

    /// Whether what is held back can be told from what it is, without what follows.
    pub(super) fn can_end(&self) -> bool {
        matches!(self.key, Key::None | Key::Behind(_))
    }

    /// The segment was cut through a secret: its rest is in the next.
    pub(super) fn go_on(&mut self) {
        if self.is_idle() {
            self.key = Key::Long;
        }
    }

    /// What is left when the text is over.
    pub(super) fn end(&mut self) -> String {
        match std::mem::take(&mut self.key) {
            Key::Begun(held) => held,
            Key::None | Key::Inside(..) | Key::Long | Key::Behind(_) => String::new(),
        }
    }
}

/// What is known of a segment before it is looked at.
#[derive(Debug, Clone, Copy)]
pub(super) struct Kind {
    /// The text ends with it.
    pub(super) ends: bool,
    /// There may be secrets in it.
    pub(super) secrets: bool,
}

/// A place in a text, and whether a secret may stand there: kept as one number, to be sorted.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
struct Place(usize);

impl Place {
    fn new(at: usize, secret: bool) -> Place {
        Place(at << 1 | usize::from(secret))
    }

    fn at(self) -> usize {
        self.0 >> 1
    }

    fn is_secret(self) -> bool {
        self.0 & 1 == 1
    }
}

impl Cleaner {
    pub(super) fn new(paths: Paths, secrets: Arc<Secrets>) -> Self {
        let holds = Holds::new(&paths, secrets.known());
        Cleaner {
            paths,
            secrets,
            holds,
            removed: Removed::default(),
            memo: Memo::default(),
            short: Short::default(),
            wide: false,
            moded: Cell::new(false),
            spots: Vec::new(),
        }
    }

    pub(super) fn add_root(&mut self, path: &str) {
        self.paths.add_root(path);
        self.memo.forget();
        self.short.forget();
        self.holds.add_root(&self.paths);
    }

    pub(super) fn fresh(&mut self, text: &str, mode: Mode) -> Option<EcoString> {
        if !escape::has_any(text) {
            return self.run(&mut Flow::default(), text, 0..text.len(), mode, true);
        }
        self.escaped(text, mode)
    }

    /// A text with escape sequences.
    pub(super) fn escaped(&mut self, text: &str, mode: Mode) -> Option<EcoString> {
        let mut plain = String::with_capacity(text.len());
        self.removed.escapes += escape::Escapes::default().push(text, true, &mut plain);
        let done = self.run(&mut Flow::default(), &plain, 0..plain.len(), mode, true);
        let done = done.unwrap_or_else(|| plain.into());
        (done != text).then_some(done)
    }

    /// The mark of a value that stands under a key with the name of a secret.
    pub(super) fn keyed(&mut self, key: &str, value: &str) -> Option<EcoString> {
        if key.len() > 64 || !self.secrets.is_keyed(key, value) {
            return None;
        }
        self.removed.add("assignment");
        Some(self.secrets.mark("assignment", value.as_bytes()).into())
    }

    /// Cleans a part of a text, a number of whole segments; `last` says that the text is over with
    /// them. What stands around the part is only looked at. Nothing when nothing changes.
    pub(super) fn run(
        &mut self,
        flow: &mut Flow,
        text: &str,
        part: Range<usize>,
        mode: Mode,
        last: bool,
    ) -> Option<EcoString> {
        let mut spots = std::mem::take(&mut self.spots);
        spots.clear();
        self.spot(&text.as_bytes()[..part.end], &mut spots);
        let out = self.segments(flow, text, part, mode, last, &spots);
        self.spots = spots;
        out
    }

    /// All places worth a look, in order.
    fn spot(&self, b: &[u8], spots: &mut Vec<Place>) {
        self.paths.spots(b, |at, _| spots.push(Place::new(at, false)));
        let paths = spots.len();
        self.secrets.spots(b, |spot| spots.push(Place::new(spot.at, true)));
        // Places of roots without a plain letter come behind all others.
        if spots.len() > paths || self.paths.plainless {
            spots.sort_unstable();
        }
    }

    fn segments(
        &mut self,
        flow: &mut Flow,
        text: &str,
        Range { start: from, end: to }: Range<usize>,
        mode: Mode,
        last: bool,
        spots: &[Place],
    ) -> Option<EcoString> {
        let b = &text.as_bytes()[..to];
        let mut ends_seen = Ends::default();
        let mut out: Option<EcoString> = None;
        // What is copied, and where the segments end that were looked at.
        let (mut copied, mut done) = (from, from);
        let mut next = 0;
        let mut forced = from > 0;
        while done < b.len() {
            let idle = matches!(flow.key, Key::None);
            while spots.get(next).is_some_and(|spot| spot.at() < done) {
                next += 1;
            }
            let spot = spots.get(next).map(|spot| spot.at());
            let (mut start, mut seen) = (done, done);
            if idle {
                // The last segment may break off within something to hide.
                seen = match spot {
                    Some(spot) => spot,
                    None if last && self.may_break_off(&b[done..]) => b.len() - 1,
                    None => break,
                };
                let before = self.last_end(&mut ends_seen, text, done..seen, !last);
                start = before.unwrap_or(done);
                // No segment ends between the two; one that is too long is cut.
                while seen >= start + MAX_SEGMENT + AHEAD {
                    start = floor(text, start + MAX_SEGMENT);
                    forced = true;
                }
            }
            let reach = (start + MAX_SEGMENT + AHEAD).min(to) - seen;
            let natural = self.next_end(&mut ends_seen, text, seen, reach, !last);
            let (end, through) = match natural {
                Some(end) => (end, false),
                None if b.len() - start <= MAX_SEGMENT + AHEAD => (b.len(), false),
                None => self.forced(text, start, mode),
            };
            let ends = last && end == b.len();
            let segment = &text[start..end];
            done = end;
            // Where the segment was not cut by force, the whole text shows what is in it.
            let here = spots[next..].iter().take_while(|spot| spot.at() < end);
            let apart = natural.is_none() || forced || ends || !idle;
            forced = natural.is_none();
            // What is encoded is seen only in the segment itself.
            let encoded = || memchr::memchr3(b'%', b'\\', 0x1b, segment.as_bytes()).is_some();
            let secrets = apart || here.into_iter().any(|spot| spot.is_secret()) || encoded();
            if let Some(clean) = self.segment(flow, segment, mode, Kind { ends, secrets }) {
                let out = out.get_or_insert_with(|| EcoString::with_capacity(to - from));
                out.push_str(&text[copied..start]);
                out.push_str(&clean);
                copied = end;
            }
            if through {
                flow.go_on();
            }
        }
        if let Some(out) = &mut out {
            out.push_str(&text[copied..to]);
            // What is kept for long is kept small; short texts need no memory of their own.
            if out.len() < 64 {
                *out = EcoString::from(out.as_str());
            }
        }
        out
    }

    /// Where a segment that is too long is cut: not through anything that is found, but for a
    /// secret that is too long itself. Says whether it is one.
    fn forced(&self, text: &str, start: usize, mode: Mode) -> (usize, bool) {
        let end = floor(text, start + MAX_SEGMENT);
        let window = &text[start..floor(text, start + MAX_SEGMENT + AHEAD)];
        let at = end - start;
        let found = self.look(window.as_bytes(), true);
        let kind = Kind { ends: false, secrets: true };
        match self.hits(window, &found, mode, kind).iter().find(|h| h.start < at && h.end > at) {
            Some(hit) if hit.start > MAX_SEGMENT / 2 => (start + hit.start, false),
            Some(hit) if hit.end < window.len() => (start + hit.end, false),
            hit => (end, hit.is_some_and(|h| h.secret)),
        }
    }

    /// Where the segment at `start` is cut, when it has no end of its own.
    pub(super) fn forced_end(&self, text: &str, start: usize, mode: Mode) -> Option<(usize, bool)> {
        let natural = self.next_end(&mut Ends::default(), text, start, MAX_SEGMENT + AHEAD, true);
        natural.is_none().then(|| self.forced(text, start, mode))
    }

    /// One segment.
    pub(super) fn segment(
        &mut self,
        flow: &mut Flow,
        text: &str,
        mode: Mode,
        kind: Kind,
    ) -> Option<String> {
        if flow.is_idle() {
            let clean = self.rounds(flow, text, mode, kind)?;
            return Some(if flow.is_idle() { self.apart(clean, mode, kind) } else { clean });
        }
        let taken = flow.key.take(text, kind.ends);
        let mut out = String::new();
        if let Some(sample) = taken.found {
            self.removed.add("private-key");
            out.push_str(&self.secrets.mark("private-key", &sample));
        }
        out.push_str(&taken.put);
        if !taken.rest.is_empty() {
            let clean = self.rounds(flow, taken.rest, mode, kind);
            out.push_str(clean.as_deref().unwrap_or(taken.rest));
        }
        Some(out)
    }

    /// Cleans what became of a segment: without what was cut out, it may be more than one.
    fn apart(&mut self, clean: String, mode: Mode, kind: Kind) -> String {
        let mut clean = clean;
        for _ in 0..MAX_ROUNDS {
            let inner = 0..clean.len().saturating_sub(1);
            let Some(end) = self.last_end(&mut Ends::default(), &clean, inner, !kind.ends) else {
                break;
            };
            let (mut parts, mut changed, mut at) = (String::new(), false, 0);
            let mut ends = Ends::default();
            while at < clean.len() {
                let to = if at < end {
                    self.next_end(&mut ends, &clean, at, end, !kind.ends)
                } else {
                    None
                };
                let to = to.unwrap_or(clean.len());
                let part = &clean[at..to];
                let kind = Kind { ends: kind.ends && to == clean.len(), secrets: true };
                let mut flow = Flow::default();
                match self.rounds(&mut flow, part, mode, kind).filter(|_| flow.is_idle()) {
                    Some(new) => {
                        changed |= new != part;
                        parts.push_str(&new);
                    }
                    None => parts.push_str(part),
                }
                at = to;
            }
            if !changed {
                break;
            }
            clean = parts;
        }
        clean
    }

    /// Cleans until nothing changes any more: what is cut out may let its neighbours meet.
    fn rounds(&mut self, flow: &mut Flow, text: &str, mode: Mode, kind: Kind) -> Option<String> {
        let mut now: Option<String> = None;
        let mut kind = kind;
        for _ in 0..MAX_ROUNDS {
            let text = now.as_deref().unwrap_or(text);
            let found = self.look(text.as_bytes(), kind.secrets);
            let mut hits = self.hits(text, &found, mode, kind);
            // Only of the first round is it known what can be in it.
            kind.secrets = true;
            let armoured = found.secrets.iter().any(|s| matches!(s.what, What::Pem | What::Odd));
            self.wide |= armoured;
            if armoured && let Some(hit) = self.private_key(flow, text) {
                hits.push(hit);
                hits.sort_by_key(|h| (h.start, std::cmp::Reverse(h.end)));
            }
            if hits.is_empty() {
                // Nothing else changes: a key may begin at the end, and what follows decides.
                let begun = if armoured && !kind.ends { pem::begun(text) } else { None };
                let Some(from) = begun else { return now };
                flow.key = Key::Begun(text[from..].to_owned());
                // What stands before it may end in a name that is one only without it.
                let head = text[..from].to_owned();
                let clean = self.rounds(&mut Flow::default(), &head, mode, kind);
                return Some(clean.unwrap_or(head));
            }
            let settled = !kind.ends && found.secrets.is_empty() && is_settled(text, &found, &hits);
            let next = self.put_in(text, &hits);
            if next == text {
                return now;
            }
            now = Some(next);
            if settled {
                return now;
            }
        }
        self.removed.add("path");
        Some("…".to_owned())
    }

    /// The private key that begins in a segment and has some of itself in it.
    fn private_key(&self, flow: &mut Flow, text: &str) -> Option<Hit> {
        let view = View::new(text);
        let (start, body) = pem::key(&view.b)?;
        let (len, on) = pem::swallow(&view.b[body..]);
        if on && body + len == view.b.len() {
            flow.key = Key::Inside(len, String::new());
        }
        let put = self.secrets.mark("private-key", &pem::sample(&view.b[body..])).into();
        let (start, end) = view.source(start, body + len);
        Some(Hit { start, end, kind: "private-key".into(), put, secret: true })
    }

    /// Whether the end of a text may be the beginning of something to hide.
    fn may_break_off(&self, b: &[u8]) -> bool {
        let tail = &b[b.len().saturating_sub(MAX_SEGMENT)..];
        let word = memchr::memrchr3(b' ', b'\n', b'\t', tail).map_or(0, |i| i + 1);
        let word = &tail[word..];
        self.paths.blanks() > 0
            || (word.len() > 8
                && word.iter().any(|c| matches!(c, b'/' | b'\\' | b'%') || c.is_ascii_digit()))
    }
}

/// The nearest place at or before `at` that lies between two characters.
pub(super) fn floor(text: &str, at: usize) -> usize {
    let mut at = at.min(text.len());
    while !text.is_char_boundary(at) {
        at -= 1;
    }
    at
}
