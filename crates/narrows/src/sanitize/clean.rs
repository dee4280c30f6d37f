//! Cleaning one text: segments, what is found in them, what stands there instead.
//!
//! A whole text and the parts of a stream take the same way: both are cut into the same segments,
//! and each segment is cleaned alone. Segments in which nothing was spotted are not looked at.

use super::escape;
use super::field;
use super::paths::{Mode, Owner, Paths};
use super::pem::{self, After, Key};
use super::removed::Removed;
use super::scan::{self, Put};
use super::secret::{Secret, Secrets, Spot, What};
use super::segment::{AHEAD, Holds, MAX_SEGMENT};
use super::view::{View, colour};
use ecow::EcoString;
use std::collections::HashMap;
use std::sync::Arc;

/// Rounds after which a segment that still changes is given up.
const MAX_ROUNDS: usize = 16;
/// How often one rule may look in vain in one segment: a text of nothing but beginnings of tokens
/// must not cost more than others.
const MAX_VAIN: u16 = 256;

/// Cleans texts, and counts what it removed.
#[derive(Debug, Clone)]
pub(super) struct Cleaner {
    pub(super) paths: Paths,
    secrets: Arc<Secrets>,
    holds: Holds,
    pub(super) removed: Removed,
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

    /// What is left when the text is over.
    pub(super) fn end(&mut self) -> String {
        match std::mem::take(&mut self.key) {
            Key::Begun(held) => held,
            Key::None | Key::Inside(..) => String::new(),
        }
    }
}

/// Places to look at in a text.
#[derive(Debug, Default)]
struct Found {
    paths: Vec<(usize, Owner)>,
    secrets: Vec<Spot>,
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

/// Something found in a segment.
struct Hit {
    start: usize,
    end: usize,
    kind: EcoString,
    put: EcoString,
    secret: bool,
}

impl Hit {
    fn path((start, end): (usize, usize), kind: &str, put: &str) -> Hit {
        Hit { start, end, kind: kind.into(), put: put.into(), secret: false }
    }
}

impl Cleaner {
    pub(super) fn new(paths: Paths, secrets: Arc<Secrets>) -> Self {
        let holds = Holds {
            more_words: paths.blanks(),
            keywords: secrets.keywords(),
            begun: secrets.begun_values(),
        };
        Cleaner { paths, secrets, holds, removed: Removed::default(), spots: Vec::new() }
    }

    pub(super) fn add_root(&mut self, path: &str) {
        self.paths.add_root(path);
        self.holds.more_words = self.paths.blanks();
    }

    pub(super) fn holds(&self) -> &Holds {
        &self.holds
    }

    /// The cleaned text, when it differs.
    pub(super) fn text(&mut self, text: &str, mode: Mode) -> Option<EcoString> {
        if text.len() < 4 {
            return None;
        }
        if !escape::has_any(text) {
            return self.run(&mut Flow::default(), text, 0, mode, true).map(EcoString::from);
        }
        let mut plain = String::with_capacity(text.len());
        self.removed.escapes += escape::Escapes::default().push(text, true, &mut plain);
        let done = self.run(&mut Flow::default(), &plain, 0, mode, true).unwrap_or(plain);
        (done != text).then(|| done.into())
    }

    /// Cleans a path field: relative to the session root where it lies inside.
    pub(super) fn field(&mut self, path: &str) -> String {
        let Some(shown) = field::show(&self.paths, path) else {
            return self.text(path, Mode::Text).map_or_else(|| path.to_owned(), String::from);
        };
        if shown != path {
            self.removed.add("path");
        }
        // What is left of it is text like any other.
        self.text(&shown, Mode::Body).map_or(shown, String::from)
    }

    /// The mark of a value that stands under a key with the name of a secret.
    pub(super) fn keyed(&mut self, key: &str, value: &str) -> Option<EcoString> {
        if key.len() > 64 || !self.secrets.is_keyed(key, value) {
            return None;
        }
        self.removed.add("assignment");
        Some(self.secrets.mark("assignment", value.as_bytes()).into())
    }

    /// Cleans what follows `from`, a number of whole segments; `last` says that the text ends with
    /// them. Nothing when nothing changes.
    pub(super) fn run(
        &mut self,
        flow: &mut Flow,
        text: &str,
        from: usize,
        mode: Mode,
        last: bool,
    ) -> Option<String> {
        let mut spots = std::mem::take(&mut self.spots);
        spots.clear();
        self.spot(text.as_bytes(), &mut spots);
        let out = self.segments(flow, text, from, mode, last, &spots);
        self.spots = spots;
        out
    }

    /// All places worth a look, in order.
    fn spot(&self, b: &[u8], spots: &mut Vec<Place>) {
        self.paths.spots(b, |at, _| spots.push(Place::new(at, false)));
        let paths = spots.len();
        self.secrets.spots(b, |spot| spots.push(Place::new(spot.at, true)));
        if spots.len() > paths {
            spots.sort_unstable();
        }
    }

    fn segments(
        &mut self,
        flow: &mut Flow,
        text: &str,
        from: usize,
        mode: Mode,
        last: bool,
        spots: &[Place],
    ) -> Option<String> {
        let b = text.as_bytes();
        let mut out: Option<String> = None;
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
                start = self.holds.last_end(&b[..seen], done).unwrap_or(done);
                // No segment ends between the two; one that is too long is cut.
                while seen >= start + MAX_SEGMENT + AHEAD {
                    start = floor(text, start + MAX_SEGMENT);
                    forced = true;
                }
            }
            let natural = self.holds.next_end(b, seen, start + MAX_SEGMENT + AHEAD - seen);
            let end = match natural {
                Some(end) => end,
                None if b.len() - start <= MAX_SEGMENT + AHEAD => b.len(),
                None => self.forced(text, start, mode),
            };
            let ends = last && end == b.len();
            let segment = &text[start..end];
            done = end;
            // Where the segment was not cut by force, the whole text shows what is in it.
            let here = spots[next..].iter().take_while(|spot| spot.at() < end);
            let apart = natural.is_none() || forced || ends || !idle;
            forced = natural.is_none();
            let secrets = apart || here.into_iter().any(|spot| spot.is_secret());
            if let Some(clean) = self.segment(flow, segment, mode, Kind { ends, secrets }) {
                let out = out.get_or_insert_with(|| String::with_capacity(text.len()));
                out.push_str(&text[copied..start]);
                out.push_str(&clean);
                copied = end;
            }
        }
        if let Some(out) = &mut out {
            out.push_str(&text[copied..]);
        }
        out
    }

    /// Where a segment that is too long is cut: not through anything that is found.
    fn forced(&self, text: &str, start: usize, mode: Mode) -> usize {
        let end = floor(text, start + MAX_SEGMENT);
        let window = &text[start..floor(text, start + MAX_SEGMENT + AHEAD)];
        let at = end - start;
        let found = self.look(window.as_bytes(), true);
        let kind = Kind { ends: false, secrets: true };
        match self.hits(window, &found, mode, kind).iter().find(|h| h.start < at && h.end > at) {
            Some(hit) if hit.start > MAX_SEGMENT / 2 => start + hit.start,
            Some(hit) if hit.end < window.len() => start + hit.end,
            _ => end,
        }
    }

    /// Where the segment at `start` is cut, when it has no end of its own.
    pub(super) fn forced_end(&self, text: &str, start: usize, mode: Mode) -> Option<usize> {
        let natural = self.holds.next_end(text.as_bytes(), start, MAX_SEGMENT + AHEAD);
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
            return self.rounds(flow, text, mode, kind);
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
            if found.secrets.iter().any(|s| matches!(s.what, What::Pem | What::Odd)) {
                self.private_key(flow, text, kind.ends, &mut hits);
            }
            if hits.is_empty() {
                return now;
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

    /// Everything in a text that may have to be hidden.
    fn look(&self, b: &[u8], secrets: bool) -> Found {
        let mut found = Found::default();
        self.paths.spots(b, |at, owner| found.paths.push((at, owner)));
        if secrets {
            self.secrets.spots(b, |spot| found.secrets.push(spot));
        }
        found
    }

    /// The private key that begins in a segment.
    fn private_key(&self, flow: &mut Flow, text: &str, ends: bool, hits: &mut Vec<Hit>) {
        let view = View::new(text);
        let Some((start, end)) = pem::header(&view.b) else { return };
        let rest = &view.b[end..];
        let mut hit = |(start, end), put: EcoString| {
            let kind = if put.is_empty() { EcoString::new() } else { "private-key".into() };
            hits.push(Hit { start, end, kind, put, secret: true });
        };
        match pem::after(rest) {
            After::Body(at) => {
                let (len, on) = pem::swallow(&rest[at..]);
                let to = end + at + len;
                let mark = self.secrets.mark("private-key", &pem::sample(&rest[at..]));
                hit(view.source(start, to), mark.into());
                if on && to == view.b.len() {
                    flow.key = Key::Inside(len, String::new());
                }
            }
            // What follows decides.
            After::Nothing if !ends => {
                let from = view.source(start, end).0;
                hit((from, text.len()), EcoString::new());
                flow.key = Key::Begun(text[from..].to_owned());
            }
            After::Nothing | After::Other => {}
        }
        hits.sort_by_key(|h| (h.start, std::cmp::Reverse(h.end)));
    }

    /// Everything to hide in a segment, in order.
    fn hits(&self, text: &str, found: &Found, mode: Mode, kind: Kind) -> Vec<Hit> {
        let mut hits = Vec::new();
        if found.paths.is_empty() && found.secrets.is_empty() && !kind.ends {
            return hits;
        }
        let view = View::new(text);
        if view.is_source() {
            self.hits_in(&view, found, mode, kind.ends, &mut hits);
        } else {
            self.hits_in(&view, &self.look(&view.b, kind.secrets), mode, kind.ends, &mut hits);
            if let Some(view) = View::literal(text) {
                let from = hits.len();
                let found = self.look(&view.b, kind.secrets);
                self.hits_in(&view, &found, mode, kind.ends, &mut hits);
                // A backslash that is no escape was seen as a separator before.
                let mut late = hits.split_off(from);
                late.retain(|h| h.secret || !text[h.start..h.end].contains('\\'));
                hits.append(&mut late);
            }
        }
        hits.sort_by_key(|h| (h.start, std::cmp::Reverse(h.end)));
        hits
    }

    fn hits_in(&self, view: &View<'_>, found: &Found, mode: Mode, ends: bool, hits: &mut Vec<Hit>) {
        let b = &*view.b;
        for cut in scan::cuts(&self.paths, &found.paths, b, mode) {
            let (kind, put) = match &cut.put {
                Put::Nothing => ("path", ""),
                Put::Dot => ("path", "."),
                Put::Home => ("home", "~"),
                Put::Ellipsis => ("id", "…"),
                Put::Text(text) => ("path", text.as_str()),
            };
            hits.push(Hit::path(view.source(cut.start, cut.end), kind, put));
        }
        let mut secrets = self.secrets_in(b, &found.secrets);
        if ends {
            let covered = secrets.iter().map(|s| s.end).max().unwrap_or(0);
            secrets.extend(self.secrets.begun(b, b.len(), 8).filter(|s| s.end > covered));
            let from = scan::begun(&self.paths, b, false);
            if from < b.len() {
                hits.push(Hit::path(view.source(from, b.len()), "path", "…"));
            }
        }
        for secret in secrets {
            let (start, end) = view.source(secret.start, secret.end);
            let put = self.secrets.mark(secret.kind, &b[secret.start..secret.end]).into();
            hits.push(Hit { start, end, kind: secret.kind.into(), put, secret: true });
        }
    }

    /// The secrets at the spots of a text.
    fn secrets_in(&self, b: &[u8], spots: &[Spot]) -> Vec<Secret<'_>> {
        if spots.is_empty() {
            return Vec::new();
        }
        let mut spots = spots.to_vec();
        spots.sort_by_key(|s| s.at);
        let (mut covered, mut around) = (0, 0);
        let mut vain: HashMap<What, u16> = HashMap::new();
        let mut found: Vec<Secret<'_>> = Vec::new();
        for spot in spots.into_iter().filter(|s| !matches!(s.what, What::Pem | What::Odd)) {
            let generic = self.secrets.is_generic(spot);
            let done = if generic { around } else { covered };
            if spot.at < done && spot.what != What::Login {
                continue;
            }
            if !generic && vain.get(&spot.what).is_some_and(|n| *n >= MAX_VAIN) {
                continue;
            }
            let Some(secret) = self.secrets.at(b, spot) else {
                *vain.entry(spot.what).or_default() += 1;
                continue;
            };
            let done = if generic { &mut around } else { &mut covered };
            *done = secret.end.max(*done);
            found.push(secret);
        }
        let mut sure: Vec<(usize, usize)> =
            found.iter().filter(|s| !s.generic).map(|s| (s.start, s.end)).collect();
        sure.sort_unstable();
        found.retain(|s| {
            let at = sure.partition_point(|(start, _)| *start <= s.start);
            let within = at.checked_sub(1).is_some_and(|i| sure[i].1 >= s.end);
            !s.generic || !within
        });
        found
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

    /// Where in a text that may go on something to hide may have begun; its end when nothing has.
    pub(super) fn may_begin(&self, text: &str) -> usize {
        let view = View::new(text);
        let b = &*view.b;
        let mut at = scan::begun(&self.paths, b, true);
        if let Some(secret) = self.secrets.begun(b, b.len(), 0) {
            at = at.min(secret.start);
        }
        // A key and its value: none of it is shown before both are there.
        let mut spots = Vec::new();
        self.secrets.spots(b, |spot| spots.push(spot.at));
        let word = b.iter().rposition(u8::is_ascii_whitespace).map_or(0, |i| i + 1);
        if spots.iter().any(|s| *s + 64 >= word) {
            at = at.min(word.min(spots.into_iter().min().unwrap_or(word)));
        }
        if at == b.len() { text.len() } else { floor(text, view.source(at, at).0) }
    }

    /// The text with what was found replaced. What overlaps is hidden as one.
    fn put_in(&mut self, text: &str, hits: &[Hit]) -> String {
        let mut out = String::with_capacity(text.len());
        let (mut at, mut marked) = (0, false);
        for hit in hits.iter().filter(|h| h.end > h.start) {
            if hit.end <= at {
                continue;
            }
            let start = hit.start.max(at);
            let apart = at == 0 || hit.start >= at;
            out.push_str(text.get(at..start).unwrap_or_default());
            if apart || (hit.secret && !marked) {
                out.push_str(&hit.put);
                marked = hit.secret;
                if !hit.kind.is_empty() {
                    self.removed.add(&hit.kind);
                }
            }
            // Colours that change within it change behind it; what is only held back has its own.
            let hidden = &text.as_bytes()[start..hit.end];
            for i in memchr::memchr_iter(0x1b, hidden).filter(|_| !hit.kind.is_empty()) {
                if let Some(len) = colour(&hidden[i..]) {
                    out.push_str(text.get(start + i..start + i + len).unwrap_or_default());
                }
            }
            at = hit.end;
        }
        out.push_str(text.get(at..).unwrap_or_default());
        out
    }
}

/// Whether nothing can be found any more once the hits are replaced: nothing else was spotted, and
/// no name meets what stood behind a hit.
fn is_settled(text: &str, found: &Found, hits: &[Hit]) -> bool {
    let b = text.as_bytes();
    let meets = |h: &Hit| {
        let before = h.start.checked_sub(1).map_or(b' ', |i| b[i]);
        h.secret
            || !matches!(before, b' ' | b'\n' | b'\t' | b'"' | b'\'' | b'(' | b'=' | b':' | b'`')
    };
    let plain = memchr::memchr3(b'\\', b'%', 0x1b, b).is_none() && text.is_ascii();
    let within = |at: usize| hits.iter().any(|h| h.start <= at && at < h.end);
    plain
        && hits.len() <= 8
        && !hits.iter().any(meets)
        && found.paths.iter().all(|(at, _)| within(*at))
}

/// The nearest place at or before `at` that lies between two characters.
pub(super) fn floor(text: &str, at: usize) -> usize {
    let mut at = at.min(text.len());
    while !text.is_char_boundary(at) {
        at -= 1;
    }
    at
}
