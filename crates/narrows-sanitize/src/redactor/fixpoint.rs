//! Redacts one segment until nothing changes.

use super::matches::{Match, is_fixpoint};
use super::segment::SpanWindow;
use super::{Redactor, SegmentCarry, SegmentHints};
use crate::normalize::NormalizedText;
use crate::paths::Mode;
use crate::secrets::CandidateKind;
use crate::secrets::pem::{self, KeyState};

/// Rounds after which a segment that still changes is given up.
const MAX_ROUNDS: usize = 16;

impl Redactor {
    /// One segment.
    pub(crate) fn redact_segment(
        &mut self,
        carry: &mut SegmentCarry,
        text: &str,
        mode: Mode,
        kind: SegmentHints,
    ) -> Option<String> {
        if carry.is_idle() {
            let clean = self.redact_to_fixpoint(carry, text, mode, kind)?;
            return Some(if carry.is_idle() {
                self.redact_joined(clean, mode, kind)
            } else {
                clean
            });
        }
        let split = carry.key.split(text, kind.ends);
        let mut out = String::new();
        if let Some(sample) = split.key_sample {
            self.counts.add("private-key");
            out.push_str(&self.secrets.placeholder("private-key", &sample));
        }
        out.push_str(&split.released);
        if !split.rest.is_empty() {
            let clean = self.redact_to_fixpoint(carry, split.rest, mode, kind);
            out.push_str(clean.as_deref().unwrap_or(split.rest));
        }
        Some(out)
    }

    /// Cleans what became of a segment: without what was cut out, it may be more than one.
    fn redact_joined(&mut self, clean: String, mode: Mode, kind: SegmentHints) -> String {
        let mut clean = clean;
        for _ in 0..MAX_ROUNDS {
            let inner = 0..clean.len().saturating_sub(1);
            let Some(end) = self.last_end(&mut SpanWindow::default(), &clean, inner, !kind.ends)
            else {
                break;
            };
            let (mut parts, mut changed, mut at) = (String::new(), false, 0);
            let mut ends = SpanWindow::default();
            while at < clean.len() {
                let to = if at < end {
                    self.next_end(&mut ends, &clean, at, end, !kind.ends)
                } else {
                    None
                };
                let to = to.unwrap_or(clean.len());
                let part = &clean[at..to];
                let kind = SegmentHints { ends: kind.ends && to == clean.len(), secrets: true };
                let mut carry = SegmentCarry::default();
                match self
                    .redact_to_fixpoint(&mut carry, part, mode, kind)
                    .filter(|_| carry.is_idle())
                {
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
    fn redact_to_fixpoint(
        &mut self,
        carry: &mut SegmentCarry,
        text: &str,
        mode: Mode,
        kind: SegmentHints,
    ) -> Option<String> {
        let mut now: Option<String> = None;
        let mut kind = kind;
        for _ in 0..MAX_ROUNDS {
            let text = now.as_deref().unwrap_or(text);
            let found = self.find_candidates(text.as_bytes(), kind.secrets);
            let mut matches = self.resolve_matches(text, &found, mode, kind);
            // Only of the first round is it known what can be in it.
            kind.secrets = true;
            let armored = found
                .secrets
                .iter()
                .any(|s| matches!(s.kind, CandidateKind::Pem | CandidateKind::Obscured));
            self.multi_line |= armored;
            if armored && let Some(found) = self.private_key_match(carry, text) {
                matches.push(found);
                matches.sort_by_key(|h| (h.start, std::cmp::Reverse(h.end)));
            }
            if matches.is_empty() {
                // Nothing else changes: a key may begin at the end, and what follows decides.
                let begun = if armored && !kind.ends { pem::trailing_header(text) } else { None };
                let Some(from) = begun else { return now };
                carry.key = KeyState::HeaderSeen(text[from..].to_owned());
                // CandidateKind stands before it may end in a name that is one only without it.
                let head = text[..from].to_owned();
                let clean =
                    self.redact_to_fixpoint(&mut SegmentCarry::default(), &head, mode, kind);
                return Some(clean.unwrap_or(head));
            }
            let settled =
                !kind.ends && found.secrets.is_empty() && is_fixpoint(text, &found, &matches);
            let next = self.apply_matches(text, &matches);
            if next == text {
                return now;
            }
            now = Some(next);
            if settled {
                return now;
            }
        }
        self.counts.add("path");
        Some("…".to_owned())
    }

    /// The private key that begins in a segment and has some of itself in it.
    fn private_key_match(&self, carry: &mut SegmentCarry, text: &str) -> Option<Match> {
        let view = NormalizedText::new(text);
        let (start, body) = pem::find_key(&view.b)?;
        let (len, on) = pem::key_extent(&view.b[body..]);
        if on && body + len == view.b.len() {
            carry.key = KeyState::Inside(len, String::new());
        }
        let replacement =
            self.secrets.placeholder("private-key", &pem::sample(&view.b[body..])).into();
        let (start, end) = view.source(start, body + len);
        Some(Match { start, end, kind: "private-key".into(), replacement, secret: true })
    }
}
