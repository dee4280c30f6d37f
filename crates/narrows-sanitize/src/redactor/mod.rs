//! The redactor of one text: cuts it into segments and redacts each segment alone.
//!
//! A whole text and the parts of a stream take the same path: both are cut into the same segments,
//! so both give the same clean text. Segments without a candidate are copied. `segment` says where
//! a text may be cut, `matches` what is replaced, `partial` what may have started at the end.

pub(crate) mod cache;
mod fixpoint;
mod matches;
pub(crate) mod partial;
mod preview;
pub(crate) mod segment;
mod segment_rules;
mod tree;

use crate::escapes;
use crate::paths::{Mode, Paths};
use crate::report::RedactionCounts;
use crate::secrets::Secrets;
use crate::secrets::pem::KeyState;
use cache::long::LongTextCache;
use cache::short::ShortTextCache;
use ecow::EcoString;
use segment::{LOOKAHEAD_BYTES, MAX_SEGMENT_BYTES, SpanWindow};
use segment_rules::SegmentRules;
use std::cell::Cell;
use std::ops::Range;
use std::sync::Arc;

/// Redacts texts and counts what it redacted. Caches recent results.
#[derive(Debug, Clone)]
pub struct Redactor {
    pub(crate) paths: Paths,
    pub(crate) secrets: Arc<Secrets>,
    pub(crate) segment_rules: SegmentRules,
    pub(crate) counts: RedactionCounts,
    pub(crate) long_cache: LongTextCache,
    pub(crate) short_cache: ShortTextCache,
    /// The text had a match, or a possible one, that may span several lines.
    pub(crate) multi_line: bool,
    /// The text had a match that depends on the [`Mode`].
    pub(crate) mode_sensitive: Cell<bool>,
    /// Candidates of the current text; kept for its allocation.
    candidates: Vec<PackedCandidate>,
}

/// State that a text carries from one segment to the next.
#[derive(Debug, Clone, Default)]
pub(crate) struct SegmentCarry {
    key: KeyState,
}

impl SegmentCarry {
    pub(crate) fn is_idle(&self) -> bool {
        matches!(self.key, KeyState::None)
    }

    /// The state of a text that follows a redacted secret, whose remainder it may start with.
    pub(crate) fn after_secret() -> SegmentCarry {
        SegmentCarry { key: KeyState::AfterSecret(String::new()) }
    }

    /// Returns whether the held-back part is decided without more text.
    pub(crate) fn can_end(&self) -> bool {
        matches!(self.key, KeyState::None | KeyState::AfterSecret(_))
    }

    /// Notes that the segment was cut through a secret that continues in the next one.
    pub(crate) fn continue_secret(&mut self) {
        if self.is_idle() {
            self.key = KeyState::LongToken;
        }
    }

    /// Returns the text that is still held when the input ends.
    pub(crate) fn end(&mut self) -> String {
        match std::mem::take(&mut self.key) {
            KeyState::HeaderSeen(held) => held,
            KeyState::None
            | KeyState::Inside(..)
            | KeyState::LongToken
            | KeyState::AfterSecret(_) => String::new(),
        }
    }
}

/// What is known of a segment before it is scanned.
#[derive(Debug, Clone, Copy)]
pub(crate) struct SegmentHints {
    /// The text ends with this segment.
    pub(crate) ends: bool,
    /// The segment may hold secrets.
    pub(crate) secrets: bool,
}

/// A candidate's position and whether it may be a secret, packed into one number for sorting.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
struct PackedCandidate(usize);

impl PackedCandidate {
    fn new(at: usize, secret: bool) -> PackedCandidate {
        PackedCandidate(at << 1 | usize::from(secret))
    }

    fn at(self) -> usize {
        self.0 >> 1
    }

    fn is_secret(self) -> bool {
        self.0 & 1 == 1
    }
}

impl Redactor {
    /// Creates a redactor of `paths` and `secrets`; the secrets may be shared in an `Arc`.
    pub fn new(paths: Paths, secrets: impl Into<Arc<Secrets>>) -> Self {
        let secrets = secrets.into();
        let segment_rules = SegmentRules::new(&paths, secrets.known_values());
        Redactor {
            paths,
            secrets,
            segment_rules,
            counts: RedactionCounts::default(),
            long_cache: LongTextCache::default(),
            short_cache: ShortTextCache::default(),
            multi_line: false,
            mode_sensitive: Cell::new(false),
            candidates: Vec::new(),
        }
    }

    /// The redacted paths, including roots that were added later.
    #[inline]
    pub fn paths(&self) -> &Paths {
        &self.paths
    }

    /// The redacted secrets.
    #[inline]
    pub fn secrets(&self) -> &Arc<Secrets> {
        &self.secrets
    }

    /// Redacts one more root from now on.
    pub fn add_root(&mut self, path: &str) {
        self.paths.add_root(path);
        self.long_cache.clear();
        self.short_cache.clear();
        self.segment_rules.add_root(&self.paths);
    }

    pub(crate) fn redact_uncached(&mut self, text: &str, mode: Mode) -> Option<EcoString> {
        if !escapes::has_any(text) {
            return self.redact_part(&mut SegmentCarry::default(), text, 0..text.len(), mode, true);
        }
        self.redact_escaped(text, mode)
    }

    /// Redacts a text that contains escape sequences.
    pub(crate) fn redact_escaped(&mut self, text: &str, mode: Mode) -> Option<EcoString> {
        let mut plain = String::with_capacity(text.len());
        self.counts.escapes += escapes::EscapeFilter::default().push(text, true, &mut plain);
        let done =
            self.redact_part(&mut SegmentCarry::default(), &plain, 0..plain.len(), mode, true);
        let done = done.unwrap_or_else(|| plain.into());
        (done != text).then_some(done)
    }

    /// Returns the placeholder of a value whose key names a secret.
    pub(crate) fn redact_key_value(&mut self, key: &str, value: &str) -> Option<EcoString> {
        if key.len() > 64 || !self.secrets.is_key_value(key, value) {
            return None;
        }
        self.counts.add("assignment");
        Some(self.secrets.placeholder("assignment", value.as_bytes()).into())
    }

    /// Redacts `part` of a text, which is a number of whole segments; `last` marks the end of the
    /// text. The surroundings of the part are read as context only. Returns `None` when nothing
    /// changes.
    pub(crate) fn redact_part(
        &mut self,
        carry: &mut SegmentCarry,
        text: &str,
        part: Range<usize>,
        mode: Mode,
        last: bool,
    ) -> Option<EcoString> {
        let mut candidates = std::mem::take(&mut self.candidates);
        candidates.clear();
        self.collect_candidates(&text.as_bytes()[..part.end], &mut candidates);
        let out = self.redact_segments(carry, text, part, mode, last, &candidates);
        self.candidates = candidates;
        out
    }

    /// Collects all candidate positions in order.
    fn collect_candidates(&self, b: &[u8], candidates: &mut Vec<PackedCandidate>) {
        self.paths.each_candidate(b, |at, _| candidates.push(PackedCandidate::new(at, false)));
        let paths = candidates.len();
        self.secrets.each_candidate(b, |candidate| {
            candidates.push(PackedCandidate::new(candidate.at, true))
        });
        // Roots without a searchable letter are reported after all others.
        if candidates.len() > paths || self.paths.has_unindexed_root {
            candidates.sort_unstable();
        }
    }

    fn redact_segments(
        &mut self,
        carry: &mut SegmentCarry,
        text: &str,
        Range { start: from, end: to }: Range<usize>,
        mode: Mode,
        last: bool,
        candidates: &[PackedCandidate],
    ) -> Option<EcoString> {
        let b = &text.as_bytes()[..to];
        let mut window = SpanWindow::default();
        let mut out: Option<EcoString> = None;
        // The end of the text copied so far, and the end of the last scanned segment.
        let (mut copied, mut done) = (from, from);
        let mut next = 0;
        let mut forced = from > 0;
        while done < b.len() {
            let idle = matches!(carry.key, KeyState::None);
            while candidates.get(next).is_some_and(|candidate| candidate.at() < done) {
                next += 1;
            }
            let candidate = candidates.get(next).map(|candidate| candidate.at());
            let (mut start, mut seen) = (done, done);
            if idle {
                // The last segment may end in the middle of a match.
                seen = match candidate {
                    Some(candidate) => candidate,
                    None if last && self.may_end_in_partial(&b[done..]) => b.len() - 1,
                    None => break,
                };
                let before = self.last_end(&mut window, text, done..seen, !last);
                start = before.unwrap_or(done);
                // No segment ends in between; a segment that is too long is split.
                while seen >= start + MAX_SEGMENT_BYTES + LOOKAHEAD_BYTES {
                    start = text.floor_char_boundary(start + MAX_SEGMENT_BYTES);
                    forced = true;
                }
            }
            let reach = (start + MAX_SEGMENT_BYTES + LOOKAHEAD_BYTES).min(to) - seen;
            let natural = self.next_end(&mut window, text, seen, reach, !last);
            let (end, cuts_secret) = match natural {
                Some(end) => (end, false),
                None if b.len() - start <= MAX_SEGMENT_BYTES + LOOKAHEAD_BYTES => (b.len(), false),
                None => self.force_split(text, start, mode),
            };
            let ends = last && end == b.len();
            let segment = &text[start..end];
            done = end;
            // When the segment was not split by force, the candidates of the whole text show what
            // it holds.
            let here = candidates[next..].iter().take_while(|candidate| candidate.at() < end);
            let is_isolated = natural.is_none() || forced || ends || !idle;
            forced = natural.is_none();
            // Encoded secrets are seen only in the segment itself.
            let encoded = || memchr::memchr3(b'%', b'\\', 0x1b, segment.as_bytes()).is_some();
            let secrets =
                is_isolated || here.into_iter().any(|candidate| candidate.is_secret()) || encoded();
            if let Some(clean) =
                self.redact_segment(carry, segment, mode, SegmentHints { ends, secrets })
            {
                let out = out.get_or_insert_with(|| EcoString::with_capacity(to - from));
                out.push_str(&text[copied..start]);
                out.push_str(&clean);
                copied = end;
            }
            if cuts_secret {
                carry.continue_secret();
            }
        }
        if let Some(out) = &mut out {
            out.push_str(&text[copied..to]);
            // Strings that live long should be small; short ones are stored inline.
            if out.len() < 64 {
                *out = EcoString::from(out.as_str());
            }
        }
        out
    }

    /// Splits a segment that is too long: not through a match, unless the match is a secret that is
    /// too long itself. Returns the position and whether it cuts through such a secret.
    fn force_split(&self, text: &str, start: usize, mode: Mode) -> (usize, bool) {
        let end = text.floor_char_boundary(start + MAX_SEGMENT_BYTES);
        let window =
            &text[start..text.floor_char_boundary(start + MAX_SEGMENT_BYTES + LOOKAHEAD_BYTES)];
        let at = end - start;
        let candidates = self.find_candidates(window.as_bytes(), true);
        let hints = SegmentHints { ends: false, secrets: true };
        match self
            .resolve_matches(window, &candidates, mode, hints)
            .iter()
            .find(|m| m.start < at && m.end > at)
        {
            Some(m) if m.start > MAX_SEGMENT_BYTES / 2 => (start + m.start, false),
            Some(m) if m.end < window.len() => (start + m.end, false),
            m => (end, m.is_some_and(|m| m.secret)),
        }
    }

    /// Returns where the segment at `start` is split when it has no end of its own.
    pub(crate) fn forced_split(
        &self,
        text: &str,
        start: usize,
        mode: Mode,
    ) -> Option<(usize, bool)> {
        let natural = self.next_end(
            &mut SpanWindow::default(),
            text,
            start,
            MAX_SEGMENT_BYTES + LOOKAHEAD_BYTES,
            true,
        );
        natural.is_none().then(|| self.force_split(text, start, mode))
    }

    /// Returns whether the end of a text may be the start of a match.
    fn may_end_in_partial(&self, b: &[u8]) -> bool {
        let tail = &b[b.len().saturating_sub(MAX_SEGMENT_BYTES)..];
        let word = memchr::memrchr3(b' ', b'\n', b'\t', tail).map_or(0, |i| i + 1);
        let word = &tail[word..];
        self.paths.extra_words() > 0
            || (word.len() > 8
                && word.iter().any(|c| matches!(c, b'/' | b'\\' | b'%') || c.is_ascii_digit()))
    }
}
