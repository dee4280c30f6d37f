//! Redacts one segment until nothing changes.

use super::matches::{Match, is_fixpoint};
use super::segment::SpanWindow;
use super::{Redactor, SegmentCarry, SegmentHints};
use crate::normalize::NormalizedText;
use crate::paths::Mode;
use crate::secrets::CandidateKind;
use crate::secrets::pem::{self, KeyState};

/// Rounds after which a segment that still changes becomes an ellipsis.
const MAX_ROUNDS: usize = 16;

impl Redactor {
    /// Redacts one segment, which may start inside a private key or a long token.
    pub(crate) fn redact_segment(
        &mut self,
        carry: &mut SegmentCarry,
        text: &str,
        mode: Mode,
        hints: SegmentHints,
    ) -> Option<String> {
        if carry.is_idle() {
            let clean = self.redact_to_fixpoint(carry, text, mode, hints)?;
            return Some(if carry.is_idle() {
                self.redact_joined(clean, mode, hints)
            } else {
                clean
            });
        }
        let split = carry.key.split(text, hints.ends);
        let mut out = String::new();
        if let Some(sample) = split.key_sample {
            self.counts.add("private-key");
            out.push_str(&self.secrets.placeholder("private-key", &sample));
        }
        out.push_str(&split.released);
        if !split.rest.is_empty() {
            let clean = self.redact_to_fixpoint(carry, split.rest, mode, hints);
            out.push_str(clean.as_deref().unwrap_or(split.rest));
        }
        Some(out)
    }

    /// Redacts the result again by segments: without the removed parts, it may have new segment
    /// ends.
    fn redact_joined(&mut self, clean: String, mode: Mode, hints: SegmentHints) -> String {
        let mut clean = clean;
        for _ in 0..MAX_ROUNDS {
            let inner = 0..clean.len().saturating_sub(1);
            let Some(end) = self.last_end(&mut SpanWindow::default(), &clean, inner, !hints.ends)
            else {
                break;
            };
            let (mut parts, mut changed, mut at) = (String::new(), false, 0);
            let mut window = SpanWindow::default();
            while at < clean.len() {
                let to = if at < end {
                    self.next_end(&mut window, &clean, at, end, !hints.ends)
                } else {
                    None
                };
                let to = to.unwrap_or(clean.len());
                let part = &clean[at..to];
                let hints = SegmentHints { ends: hints.ends && to == clean.len(), secrets: true };
                let mut carry = SegmentCarry::default();
                match self
                    .redact_to_fixpoint(&mut carry, part, mode, hints)
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

    /// Redacts until nothing changes: a removed part may join its neighbors to a new match.
    fn redact_to_fixpoint(
        &mut self,
        carry: &mut SegmentCarry,
        text: &str,
        mode: Mode,
        hints: SegmentHints,
    ) -> Option<String> {
        let mut current: Option<String> = None;
        let mut hints = hints;
        for _ in 0..MAX_ROUNDS {
            let text = current.as_deref().unwrap_or(text);
            let candidates = self.find_candidates(text.as_bytes(), hints.secrets);
            let mut matches = self.resolve_matches(text, &candidates, mode, hints);
            // The hint holds for the first round only.
            hints.secrets = true;
            let armored = candidates
                .secrets
                .iter()
                .any(|s| matches!(s.kind, CandidateKind::Pem | CandidateKind::Obscured));
            self.multi_line |= armored;
            if armored && let Some(key) = self.private_key_match(carry, text) {
                matches.push(key);
                matches.sort_by_key(|m| (m.start, std::cmp::Reverse(m.end)));
            }
            if matches.is_empty() {
                // No match is left. A private key may start at the end; the next segment decides.
                let header = if armored && !hints.ends { pem::trailing_header(text) } else { None };
                let Some(from) = header else { return current };
                carry.key = KeyState::HeaderSeen(text[from..].to_owned());
                // The text before it may end in a match that is one only without the key.
                let head = text[..from].to_owned();
                let clean =
                    self.redact_to_fixpoint(&mut SegmentCarry::default(), &head, mode, hints);
                return Some(clean.unwrap_or(head));
            }
            let is_done = !hints.ends
                && candidates.secrets.is_empty()
                && is_fixpoint(text, &candidates, &matches);
            let next = self.apply_matches(text, &matches);
            if next == text {
                return current;
            }
            current = Some(next);
            if is_done {
                return current;
            }
        }
        self.counts.add("path");
        Some("…".to_owned())
    }

    /// The match of a private key that starts in this segment and has at least one line of its
    /// body.
    fn private_key_match(&self, carry: &mut SegmentCarry, text: &str) -> Option<Match> {
        let view = NormalizedText::new(text);
        let (start, body) = pem::find_key(&view.b)?;
        let (len, continues) = pem::key_extent(&view.b[body..]);
        if continues && body + len == view.b.len() {
            carry.key = KeyState::Inside(len, String::new());
        }
        let replacement =
            self.secrets.placeholder("private-key", &pem::sample(&view.b[body..])).into();
        let (start, end) = view.source(start, body + len);
        Some(Match { start, end, kind: "private-key".into(), replacement, secret: true })
    }
}
